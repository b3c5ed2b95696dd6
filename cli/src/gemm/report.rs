//! The report of `gemm`, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::banks::BankModel;
use tilewright::codegen::Arch;
use tilewright::codegen::mix::Mix;
use tilewright::gpu::ptxas;
use tilewright::host::{Check, Contract, Matrix, Outcome};
use tilewright::kernels::gemm::{Activation, Bias, Emitted, Gemm, Launch, PlanError, Specialized};

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
    /// The run and its C; none if nothing was run.
    pub(super) ran: Option<(Outcome, Matrix)>,
    pub(super) check: Option<Check>,
}

impl Report<'_> {
    /// Numbers, gaps, findings and wavefronts all as they should be.
    pub(super) fn passed(&self) -> bool {
        self.check.is_none_or(|c| c.passed) && self.findings().is_empty()
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.ran.as_ref().map(|(outcome, _)| outcome)
    }

    /// What the run did wrong, and shared accesses whose counted wavefronts are not the proven ones.
    fn findings(&self) -> Vec<String> {
        self.outcome().map_or(Vec::new(), Outcome::findings)
    }

    /// The least and the most wavefronts that were counted for an access.
    fn measured(&self, access: &str) -> Option<(u32, u32)> {
        let mut accesses = self.outcome()?.accesses.iter();
        let counted = accesses.find(|a| a.proof.access == access)?;
        counted.wavefronts
    }

    /// The time of a launch on a device, or of the run on the emulator.
    fn time_ms(&self) -> Option<f64> {
        let outcome = self.outcome()?;
        let emulated = outcome.report.as_ref();
        let emulated = emulated.map(|report| report.wall.as_secs_f64() * 1e3);
        outcome.time_ms.or(emulated)
    }

    pub(super) fn to_json(&self) -> Value {
        let smem: Vec<Value> = self
            .kernel
            .proof
            .accesses
            .iter()
            .map(|a| {
                let measured = self.measured(&a.access).map(|(_, most)| most);
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
            "device": self.outcome().map_or("none", |o| &o.device),
            "max_abs_err": self.check.map(|c| finite(c.max_abs_err)),
            "max_rel_err": self.check.map(|c| finite(c.max_rel_err)),
            "tolerance": self.check.map(|c| c.tolerance),
            "passed": self.ran.as_ref().map(|_| self.passed()),
            "smem": smem,
            "main_loop": self.kernel.mix.map(mix_json),
            "findings": self.findings(),
            "time_ms": self.time_ms(),
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
            let counted = match self.measured(&a.access) {
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
        for f in self.findings() {
            let _ = writeln!(out, "finding: {f}");
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
        out.push_str(match (&self.ran, self.passed()) {
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
        match (main, self.outcome().and_then(|o| o.registers)) {
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
        let Some(outcome) = self.outcome() else {
            return match self.target {
                Target::Ptx(_) => "nothing is run (`--on none`)".to_owned(),
                Target::OpenCl(_) => "nothing is run (`--on opencl` runs it)".to_owned(),
            };
        };
        let Some(ms) = self.time_ms() else {
            return format!("{}: nothing to launch", outcome.device);
        };
        let p = self.problem;
        let flops = 2.0 * p.m as f64 * p.n as f64 * p.k as f64 * p.batch.count as f64;
        match &outcome.report {
            Some(report) => format!(
                "emulator: {ms:.1} ms, {:.0} million lane instructions a second",
                report.counters.lane_instructions as f64 / ms / 1e3
            ),
            None => format!(
                "{}: {ms:.4} ms, {:.2} TFLOP/s",
                outcome.device,
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
