//! The report of `gemm`, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::codegen::plan::{Arch, ArgumentValue, Emitted, Gemm, Launch, Plan, PlanError};
use tilewright::gpu::ptxas;
use tilewright::host::{Check, DeviceRun, EmulatedAccess, EmulatedRun, Matrix};

/// What a run gave, wherever it was.
pub(super) struct Ran {
    pub(super) device: String,
    pub(super) c: Matrix,
    time_ms: Option<f64>,
    registers: Option<u32>,
    accesses: Vec<EmulatedAccess>,
    findings: Vec<String>,
    lane_instructions: Option<u64>,
}

impl Ran {
    pub(super) fn on_gpu(device: String, run: DeviceRun) -> Self {
        Self {
            device,
            c: run.c,
            time_ms: run.time_ms,
            registers: run.registers,
            accesses: Vec::new(),
            findings: Vec::new(),
            lane_instructions: None,
        }
    }

    pub(super) fn emulated(run: EmulatedRun) -> Self {
        let (time_ms, findings, lanes) = run.report.map_or((None, Vec::new(), None), |r| {
            let findings = r.findings.iter().map(ToString::to_string).collect();
            (
                Some(r.wall.as_secs_f64() * 1e3),
                findings,
                Some(r.counters.lane_instructions),
            )
        });
        Self {
            device: "emulator".to_owned(),
            c: run.c,
            time_ms,
            registers: None,
            accesses: run.accesses,
            findings,
            lane_instructions: lanes,
        }
    }

    fn measured(&self, access: &str) -> Option<(u32, u32)> {
        self.accesses
            .iter()
            .find(|a| a.access == access)
            .and_then(|a| a.wavefronts)
    }
}

/// Everything that there is to say.
pub(super) struct Report<'a> {
    pub(super) plan: &'a dyn Plan,
    pub(super) arch: Arch,
    pub(super) problem: &'a Gemm,
    pub(super) kernel: &'a Emitted,
    pub(super) launch: Option<&'a Launch>,
    pub(super) ran: &'a Ran,
    pub(super) check: Option<Check>,
}

impl Report<'_> {
    /// Numbers, gaps, findings and wavefronts all as they should be.
    pub(super) fn passed(&self) -> bool {
        self.check.is_none_or(|c| c.passed)
            && self.ran.findings.is_empty()
            && self.disagreements().is_empty()
    }

    /// Shared accesses whose counted wavefronts are not the proven ones.
    fn disagreements(&self) -> Vec<&str> {
        let proven = self.kernel.proof.accesses.iter();
        proven
            .filter(|a| {
                self.ran
                    .measured(&a.access)
                    .is_some_and(|m| m != (a.wavefronts, a.wavefronts))
            })
            .map(|a| a.access.as_str())
            .collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let smem: Vec<Value> = self
            .kernel
            .proof
            .accesses
            .iter()
            .map(|a| {
                let measured = self.ran.measured(&a.access).map(|(_, most)| most);
                json!({"access": a.access, "op": a.op.to_string(), "wavefronts": a.wavefronts, "ideal": a.ideal, "measured": measured})
            })
            .collect();
        json!({
            "plan": self.plan.name(),
            "dtype": self.plan.data_type().to_string(),
            "trans": self.problem.operands.to_string(),
            "m": self.problem.m,
            "n": self.problem.n,
            "k": self.problem.k,
            "arch": self.arch.to_string(),
            "device": self.ran.device,
            "max_abs_err": self.check.map(|c| finite(c.max_abs_err)),
            "max_rel_err": self.check.map(|c| finite(c.max_rel_err)),
            "tolerance": self.check.map(|c| c.tolerance),
            "passed": self.passed(),
            "smem": smem,
            "findings": self.ran.findings,
            "time_ms": self.ran.time_ms,
            "launch": self.launch.map(|l| launch_json(self.problem, l)),
        })
    }

    pub(super) fn to_text(&self) -> Result<String, PlanError> {
        let mut out = String::new();
        let p = self.problem;
        let _ = writeln!(
            out,
            "{} for {}: C {}x{} = {} op(A) op(B) + {} C, k = {}, {}",
            self.plan.name(),
            self.arch,
            p.m,
            p.n,
            p.alpha,
            p.beta,
            p.k,
            p.operands
        );
        let _ = writeln!(out, "\nlayouts");
        for l in self.plan.layouts(p.operands)? {
            let _ = writeln!(out, "  {:<11} {:<38} {}", l.name, l.layout, l.meaning);
        }
        let _ = writeln!(out, "\nproven, for all threads and tiles");
        for o in &self.kernel.proof.obligations {
            let _ = writeln!(out, "  {}", o.name);
        }
        let _ = writeln!(out, "\nshared memory   wavefronts: proven  ideal  counted");
        for a in &self.kernel.proof.accesses {
            let counted = match self.ran.measured(&a.access) {
                None => "-".to_owned(),
                Some((lo, hi)) if lo == hi => lo.to_string(),
                Some((lo, hi)) => format!("{lo}..{hi}"),
            };
            let _ = writeln!(
                out,
                "  {:<11} {:<11} {:>8} {:>6} {:>8}",
                a.access,
                a.op.to_string(),
                a.wavefronts,
                a.ideal,
                counted
            );
        }
        let _ = writeln!(out, "\nkernel {}: {}", self.kernel.kernel, self.size());
        if let Some(l) = self.launch {
            let [x, y, z] = l.grid;
            let _ = writeln!(out, "grid {x}x{y}x{z}, {} threads a block", l.block[0]);
        }
        let _ = writeln!(out, "\n{}", self.speed());
        for f in &self.ran.findings {
            let _ = writeln!(out, "finding: {f}");
        }
        for a in self.disagreements() {
            let _ = writeln!(out, "{a}: the counted wavefronts are not the proven ones");
        }
        if let Some(c) = self.check {
            let _ = writeln!(
                out,
                "error against float64: {:.3e} absolute, {:.3e} relative, tolerance {:.3e}",
                c.max_abs_err, c.max_rel_err, c.tolerance
            );
            if !c.gaps_untouched {
                let _ = writeln!(out, "the kernel wrote between the rows of C");
            }
        }
        out.push_str(if self.passed() { "passed" } else { "FAILED" });
        Ok(out)
    }

    fn size(&self) -> String {
        let lines = self
            .kernel
            .ptx
            .lines()
            .filter(|l| l.trim_end().contains(';') && !l.trim_start().starts_with(['.', '/']))
            .count();
        let mut text = format!("{lines} PTX instructions");
        let assembled =
            ptxas::find().and_then(|p| p.assemble(&self.kernel.ptx, &self.arch.to_string()));
        let kernels = assembled.map(|a| a.kernels).unwrap_or_default();
        match (kernels.first(), self.ran.registers) {
            (Some(r), _) => {
                let _ = write!(
                    text,
                    ", {} registers, {} bytes of shared memory, {} bytes spilled (ptxas)",
                    r.registers,
                    r.shared_bytes,
                    r.spill_store_bytes + r.spill_load_bytes
                );
            }
            (None, Some(registers)) => {
                let _ = write!(text, ", {registers} registers (driver)");
            }
            _ => {}
        }
        text
    }

    fn speed(&self) -> String {
        let Some(ms) = self.ran.time_ms else {
            return format!("{}: nothing to launch", self.ran.device);
        };
        let flops = 2.0 * self.problem.m as f64 * self.problem.n as f64 * self.problem.k as f64;
        match self.ran.lane_instructions {
            Some(n) => format!(
                "emulator: {ms:.1} ms, {:.0} million lane instructions a second",
                n as f64 / ms / 1e3
            ),
            None => format!(
                "{}: {ms:.4} ms, {:.2} TFLOP/s",
                self.ran.device,
                flops / ms / 1e9
            ),
        }
    }
}

fn finite(v: f64) -> Value {
    if v.is_finite() { json!(v) } else { Value::Null }
}

/// The launch contract: enough for any other host program.
fn launch_json(problem: &Gemm, launch: &Launch) -> Value {
    let matrix = |rows: u64, cols: u64, ld: u64| json!({"rows": rows, "cols": cols, "ld": ld});
    let params: Vec<Value> = launch
        .arguments
        .iter()
        .map(|a| {
            let value = match a.value {
                ArgumentValue::A => matrix(problem.stored_a().0, problem.stored_a().1, problem.lda),
                ArgumentValue::B => matrix(problem.stored_b().0, problem.stored_b().1, problem.ldb),
                ArgumentValue::C => matrix(problem.m, problem.n, problem.ldc),
                ArgumentValue::Bias => json!({"elements": problem.m.max(problem.n)}),
                ArgumentValue::Workspace(offset) => json!({"workspace": offset}),
                ArgumentValue::Int(v) => json!(v),
                ArgumentValue::Float(v) => json!(v),
            };
            json!({"name": a.name, "type": a.kind.name(), "value": value})
        })
        .collect();
    json!({
        "kernel": launch.kernel,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "shared_bytes": launch.shared_bytes,
        "params": params,
    })
}
