//! The report of a kernel and its run.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::host::kernels::{Compared, Sequence};
use tilewright::host::{Outcome, Runnable as _};

/// The report, for people and for programs.
pub(super) struct Report<'a> {
    pub(super) kernel: &'a Sequence,
    pub(super) arch: Arch,
    pub(super) launch: Value,
    /// The run and its comparison with the reference; `None` if nothing was run.
    pub(super) ran: Option<(Outcome, Compared)>,
}

impl Report<'_> {
    /// Whether numbers, findings and wavefronts are right, as far as they are known.
    pub(super) fn passed(&self) -> bool {
        let compared = self.ran.as_ref().is_none_or(|(_, c)| c.passed());
        compared && self.findings().is_empty()
    }

    fn findings(&self) -> Vec<String> {
        let ran = self.ran.as_ref();
        ran.map_or(Vec::new(), |(outcome, _)| outcome.findings())
    }

    /// The wavefronts that were counted for an access.
    fn measured(&self, access: &str) -> Option<u32> {
        let (outcome, _) = self.ran.as_ref()?;
        let mut accesses = outcome.accesses.iter();
        let counted = accesses.find(|a| a.proof.access == access)?;
        counted.wavefronts.map(|(_, most)| most)
    }

    /// The time of a launch on a GPU, or of the run on the emulator.
    fn time_ms(&self) -> Option<f64> {
        let (outcome, _) = self.ran.as_ref()?;
        let emulated = outcome.report.as_ref();
        let emulated = emulated.map(|report| report.wall.as_secs_f64() * 1e3);
        outcome.time_ms.or(emulated)
    }

    pub(super) fn to_json(&self) -> Value {
        let accesses = self.kernel.accesses().into_iter();
        let smem = accesses.map(|a| {
            json!({
                "access": a.access, "op": a.op.to_string(), "wavefronts": a.wavefronts, "ideal": a.ideal,
                "measured": self.measured(&a.access),
            })
        });
        let finite = |v: f64| v.is_finite().then_some(v);
        let outcome = self.ran.as_ref().map(|(outcome, _)| outcome);
        let compared = self.ran.as_ref().map(|(_, compared)| compared);
        json!({
            "kernel": self.kernel.entry(),
            "arch": self.arch.to_string(),
            "device": outcome.map_or("none", |o| &o.device),
            "passed": outcome.map(|_| self.passed()),
            "max_abs_err": compared.and_then(|c| finite(c.max_abs_err)),
            "of_tolerance": compared.and_then(|c| finite(c.of_allowed)),
            "findings": self.findings(),
            "smem": smem.collect::<Vec<_>>(),
            "time_ms": self.time_ms(),
            "launch": self.launch,
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!("{} for {}", self.kernel.entry(), self.arch);
        let _ = match &self.kernel.results()[..] {
            // Data choose what is written.
            [] => writeln!(out, "\n\nproven: no element of an output twice"),
            all => writeln!(out, "\n\nproven: every element of {} once", all.join(", ")),
        };
        if !self.kernel.accesses().is_empty() {
            let _ = writeln!(
                out,
                "\nshared memory          wavefronts: proven  ideal  counted"
            );
        }
        for a in self.kernel.accesses() {
            let counted = self.measured(&a.access);
            let counted = counted.map_or("-".to_owned(), |n| n.to_string());
            let (name, op) = (&a.access, a.op.to_string());
            let _ = writeln!(
                out,
                "  {name:<16} {op:<13} {:>8} {:>6} {counted:>8}",
                a.wavefronts, a.ideal
            );
        }
        out.push('\n');
        let launch = &self.launch;
        let _ = match launch["shared_bytes"].as_u64() {
            None => writeln!(out, "nothing to launch"),
            Some(shared) => writeln!(
                out,
                "grid {}, block {}, {shared} bytes of dynamic shared memory",
                launch["grid"], launch["block"]
            ),
        };
        for after in launch["after"].as_array().into_iter().flatten() {
            let (grid, block) = (&after["grid"], &after["block"]);
            let name = after["kernel"].as_str().unwrap_or_default();
            let _ = writeln!(out, "after it {name}: grid {grid}, block {block}");
        }
        let Some((outcome, compared)) = &self.ran else {
            out.push_str("not run");
            return out;
        };
        if let Some(ms) = self.time_ms() {
            let _ = writeln!(out, "{}: {ms:.4} ms", outcome.device);
        }
        for finding in self.findings() {
            let _ = writeln!(out, "finding: {finding}");
        }
        let _ = writeln!(
            out,
            "error against float64: {:.3e} at most, {:.2} of what rounding allows",
            compared.max_abs_err, compared.of_allowed
        );
        out.push_str(if self.passed() { "passed" } else { "FAILED" });
        out
    }
}
