//! The report of `gemm`, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::banks::BankModel;
use tilewright::codegen::Arch;
use tilewright::codegen::mix::Mix;
use tilewright::gpu::ptxas;
#[cfg(feature = "opencl")]
use tilewright::host::Outcome;
use tilewright::host::{Check, Contract, DeviceRun, EmulatedAccess, EmulatedRun, Matrix};
use tilewright::kernels::gemm::{Activation, Bias, Emitted, Gemm, Launch, PlanError, Specialized};

/// What a run gave, wherever it was.
pub(super) struct Ran {
    pub(super) device: String,
    /// C after the product; none if nothing was run.
    pub(super) c: Option<Matrix>,
    time_ms: Option<f64>,
    registers: Option<u32>,
    accesses: Vec<EmulatedAccess>,
    findings: Vec<String>,
    lane_instructions: Option<u64>,
}

impl Ran {
    /// Nothing was run: proofs and text are all that is wanted.
    pub(super) fn nowhere() -> Self {
        Self {
            device: "none".to_owned(),
            c: None,
            time_ms: None,
            registers: None,
            accesses: Vec::new(),
            findings: Vec::new(),
            lane_instructions: None,
        }
    }

    pub(super) fn on_gpu(device: String, run: DeviceRun) -> Self {
        let outside = (!run.guards_untouched)
            .then(|| "a kernel wrote outside of a matrix, just before or behind it".to_owned());
        Self {
            device,
            c: Some(run.c),
            time_ms: run.time_ms,
            registers: run.registers,
            accesses: Vec::new(),
            findings: outside.into_iter().collect(),
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
            c: Some(run.c),
            time_ms,
            registers: None,
            accesses: run.accesses,
            findings,
            lane_instructions: lanes,
        }
    }

    #[cfg(feature = "opencl")]
    pub(super) fn on_opencl(c: Matrix, outcome: &Outcome) -> Self {
        let outside = |name: &String| format!("a kernel wrote behind {name}");
        let changed = |name: &String| format!("a kernel changed {name}");
        let findings = outcome.guards_touched.iter().map(outside);
        let findings = findings.chain(outcome.inputs_changed.iter().map(changed));
        Self {
            device: outcome.device.clone(),
            c: Some(c),
            time_ms: outcome.time_ms,
            registers: None,
            accesses: Vec::new(),
            findings: findings.collect(),
            lane_instructions: None,
        }
    }

    fn measured(&self, access: &str) -> Option<(u32, u32)> {
        self.accesses
            .iter()
            .find(|a| a.access == access)
            .and_then(|a| a.wavefronts)
    }
}

/// What a kernel was printed for.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// PTX for an architecture.
    Ptx(Arch),
    /// OpenCL C, proven on a bank model.
    OpenCl(&'static BankModel),
}

/// Everything that there is to say.
pub(super) struct Report<'a> {
    pub(super) plan: &'a Specialized,
    pub(super) target: Target,
    pub(super) problem: &'a Gemm,
    pub(super) kernel: &'a Emitted,
    pub(super) launch: Option<&'a Launch>,
    pub(super) contract: &'a Contract,
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
        let (p, data_type) = (self.problem, self.plan.data_type);
        // As it was done: fewer parts than were wanted if there are not so many tiles along k.
        let split = self
            .launch
            .map_or(1, |l| if l.after.is_empty() { 1 } else { l.grid[2] });
        let packed = self.launch.is_some_and(|l| !l.before.is_empty());
        json!({
            "plan": self.plan.name(),
            "dtype": data_type.to_string(),
            "ctype": p.result(data_type).to_string(),
            "trans": p.operands.to_string(),
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "alpha": p.alpha,
            "beta": p.beta,
            "bias": p.epilogue.bias.to_string(),
            "activation": p.epilogue.activation.to_string(),
            "batch": {"count": p.batch.count, "strides": p.batch.strides},
            "alignment": [p.alignment.a, p.alignment.b, p.alignment.c],
            "split": split,
            "pack": packed,
            "target": match self.target {
                Target::Ptx(_) => "ptx",
                Target::OpenCl(_) => "opencl",
            },
            "arch": match self.target {
                Target::Ptx(arch) => Some(arch.to_string()),
                Target::OpenCl(_) => None,
            },
            "banks": match self.target {
                Target::Ptx(_) => "nvidia",
                Target::OpenCl(model) => model.name,
            },
            "device": self.ran.device,
            "max_abs_err": self.check.map(|c| finite(c.max_abs_err)),
            "max_rel_err": self.check.map(|c| finite(c.max_rel_err)),
            "tolerance": self.check.map(|c| c.tolerance),
            "passed": self.ran.c.as_ref().map(|_| self.passed()),
            "smem": smem,
            "main_loop": self.kernel.mix.map(mix_json),
            "findings": self.ran.findings,
            "time_ms": self.ran.time_ms,
            "launch": super::contract::to_json(self.contract, self.problem),
        })
    }

    pub(super) fn to_text(&self) -> Result<String, PlanError> {
        let mut out = String::new();
        let p = self.problem;
        let target = match self.target {
            Target::Ptx(arch) => arch.to_string(),
            Target::OpenCl(model) => format!("OpenCL C, banks of {}", model.name),
        };
        let (plan, formula) = (self.plan.name(), self.formula());
        let _ = writeln!(out, "{plan} for {target}: {formula}");
        let _ = writeln!(out, "\nlayouts");
        for l in self.plan.layouts(p.operands)? {
            let _ = writeln!(out, "  {:<11} {:<38} {}", l.name, l.layout, l.meaning);
        }
        let _ = writeln!(out, "\nproven, for all threads and tiles");
        for o in &self.kernel.proof.obligations {
            let _ = writeln!(out, "  {}", o.name);
        }
        let _ = writeln!(
            out,
            "\nshared memory          wavefronts: proven  ideal  counted"
        );
        for a in &self.kernel.proof.accesses {
            let counted = match self.ran.measured(&a.access) {
                None => "-".to_owned(),
                Some((lo, hi)) if lo == hi => lo.to_string(),
                Some((lo, hi)) => format!("{lo}..{hi}"),
            };
            let _ = writeln!(
                out,
                "  {:<11} {:<18} {:>8} {:>6} {:>8}",
                a.access,
                a.op.to_string(),
                a.wavefronts,
                a.ideal,
                counted
            );
        }
        out.push('\n');
        let others = |out: &mut String, when: &str, launches: &[Launch]| {
            for l in launches {
                let _ = writeln!(out, "{when}: kernel {}, {}", l.kernel, shape(l));
            }
        };
        if let Some(l) = self.launch {
            others(&mut out, "before", &l.before);
        }
        let _ = writeln!(out, "kernel {}: {}", self.kernel.kernel, self.size());
        if let Some(mix) = self.kernel.mix {
            let _ = writeln!(out, "main loop: {mix}{}", source(self.plan));
        }
        if let Some(l) = self.launch {
            let _ = writeln!(out, "{}", shape(l));
            others(&mut out, "after", &l.after);
            if l.workspace_bytes > 0 {
                let _ = writeln!(out, "workspace: {} bytes", l.workspace_bytes);
            }
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
                let _ = writeln!(
                    out,
                    "a kernel wrote between the rows of C or between its matrices"
                );
            }
        }
        out.push_str(match (&self.ran.c, self.passed()) {
            (None, _) => "not run",
            (_, true) => "passed",
            (_, false) => "FAILED",
        });
        Ok(out)
    }

    /// The problem in one line, with what is not as usual.
    fn formula(&self) -> String {
        let p = self.problem;
        let mut sum = format!("{} op(A) op(B) + {} C", p.alpha, p.beta);
        match p.epilogue.bias {
            Bias::None => {}
            Bias::Row => sum.push_str(" + bias of the row"),
            Bias::Column => sum.push_str(" + bias of the column"),
        }
        if p.epilogue.activation != Activation::Identity {
            sum = format!("{}({sum})", p.epilogue.activation);
        }
        let mut text = format!("C {}x{} = {sum}, k = {}, {}", p.m, p.n, p.k, p.operands);
        let data_type = self.plan.data_type;
        if p.result(data_type) != data_type.result() {
            let _ = write!(text, ", C in {}", p.result(data_type));
        }
        if p.batch.count > 1 {
            let [a, b, c] = p.batch.strides;
            let _ = write!(
                text,
                ", {} products {a}, {b} and {c} elements apart",
                p.batch.count
            );
        }
        let least = p.alignment.a.min(p.alignment.b);
        if least < 16 {
            let _ = write!(text, ", at multiples of {least} bytes");
        }
        text
    }

    fn size(&self) -> String {
        let arch = match self.target {
            Target::Ptx(arch) => arch,
            Target::OpenCl(_) => {
                return format!("{} lines of OpenCL C", self.kernel.ptx.lines().count());
            }
        };
        let lines = self
            .kernel
            .ptx
            .lines()
            .filter(|l| l.trim_end().contains(';') && !l.trim_start().starts_with(['.', '/']))
            .count();
        let mut text = format!("{lines} PTX instructions");
        let assembled = ptxas::find().and_then(|p| p.assemble(&self.kernel.ptx, &arch.to_string()));
        let kernels = assembled.map(|a| a.kernels).unwrap_or_default();
        let main = kernels.iter().find(|k| k.kernel == self.kernel.kernel);
        match (main, self.ran.registers) {
            (Some(r), _) => {
                let _ = write!(
                    text,
                    ", {} registers, {} bytes of static shared memory, {} bytes spilled (ptxas)",
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
        if self.ran.c.is_none() {
            return match self.target {
                Target::Ptx(_) => "nothing is run (`--on none`)".to_owned(),
                Target::OpenCl(_) => "nothing is run (`--on opencl` runs it)".to_owned(),
            };
        }
        let Some(ms) = self.ran.time_ms else {
            return format!("{}: nothing to launch", self.ran.device);
        };
        let p = self.problem;
        let flops = 2.0 * p.m as f64 * p.n as f64 * p.k as f64 * p.batch.count as f64;
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

/// What the plan's source reports of its loop, if it does.
pub(crate) fn source(plan: &Specialized) -> String {
    plan.source_mix().map_or(String::new(), |(name, useful)| {
        format!(" ({name}: {:.0} %)", 100.0 * useful)
    })
}

/// The instructions of a main loop.
pub(crate) fn mix_json(mix: Mix) -> Value {
    json!({
        "products": mix.products,
        "loads": mix.loads,
        "stores": mix.stores,
        "others": mix.others,
        "useful": mix.useful(),
    })
}

fn finite(v: f64) -> Value {
    if v.is_finite() { json!(v) } else { Value::Null }
}

/// Grid, block and dynamic shared memory of a launch, for people.
fn shape(launch: &Launch) -> String {
    let [x, y, z] = launch.grid;
    let shared = match launch.shared_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes of dynamic shared memory"),
    };
    format!(
        "grid {x}x{y}x{z}, {} threads a block{shared}",
        launch.block[0]
    )
}
