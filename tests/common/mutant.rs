//! A mistake in the text of a kernel, and what catches it.

use std::collections::BTreeSet;

use tilewright::emulator::{FindingKind, Options};
use tilewright::host::{Inputs, check};
use tilewright::kernels::gemm::{Emitted, Gemm, Specialized};

use super::emulated::{not_as_proven, product, strict};
use super::text::Text;

/// What catches a mutant.
#[derive(Debug)]
pub(crate) enum Caught {
    /// The sanitizer, with a finding of one of these kinds.
    Finding(&'static [FindingKind]),
    /// The reference: wrong numbers or bytes changed between the rows of C, and nothing for the sanitizer to find.
    Numbers,
    /// The count of wavefronts, which are not those that were proven: numbers are right, and there is nothing for the sanitizer to find.
    Wavefronts,
    /// The order of the staging of C within a warp, in the text, and nothing else: see [`lanes_are_synchronised`].
    Lanes,
}

/// A mistake.
pub(crate) struct Mutant {
    pub(crate) what: &'static str,
    pub(crate) edit: fn(&mut Text),
    pub(crate) caught: Caught,
}

/// What a run and the text of a kernel show.
#[derive(Debug)]
struct Observed {
    findings: Vec<FindingKind>,
    numbers_right: bool,
    wavefronts: Option<String>,
    lanes_synchronised: bool,
}

/// A kernel, and a problem to run it on.
pub(crate) struct Subject<'a> {
    pub(crate) plan: &'a Specialized,
    pub(crate) kernel: &'a Emitted,
    pub(crate) problem: &'a Gemm,
    pub(crate) inputs: &'a Inputs,
}

impl Subject<'_> {
    fn observe(&self, kernel: &Emitted) -> Observed {
        let options = Options {
            // A mutant of a loop may never end.
            step_limit: 1 << 20,
            ..strict()
        };
        let run = product((self.plan, kernel), (self.problem, self.inputs), options)
            .unwrap_or_else(|e| panic!("a mutant must still be PTX: {e}"));
        let report = run.outcome.report.as_ref().expect("it was launched");
        let check = check(self.problem, self.plan.data_type, self.inputs, &run.c);
        Observed {
            findings: report.findings.iter().map(|f| f.kind).collect(),
            numbers_right: check.expect("shapes agree").passed,
            wavefronts: not_as_proven(&run.outcome),
            lanes_synchronised: lanes_are_synchronised(&kernel.ptx),
        }
    }

    /// The kernel itself passes: mutants are caught for what was changed.
    pub(crate) fn assert_passes(&self) {
        let observed = self.observe(self.kernel);
        let what = format!("{}, {:?}: {observed:?}", self.kernel.kernel, self.problem);
        assert!(observed.findings.is_empty(), "{what}");
        assert!(observed.numbers_right, "{what}");
        assert!(observed.wavefronts.is_none(), "{what}");
        assert!(observed.lanes_synchronised, "{what}");
    }

    /// Why a mutant is not caught as expected, if it is not.
    pub(crate) fn missed(&self, mutant: &Mutant) -> Option<String> {
        let mut text = Text::of(self.kernel);
        (mutant.edit)(&mut text);
        let mutated = text.instead_of(self.kernel);
        assert!(
            mutated.ptx != self.kernel.ptx,
            "{}: nothing changed",
            mutant.what
        );
        let seen = self.observe(&mutated);
        let clean = seen.findings.is_empty();
        let as_expected = match mutant.caught {
            Caught::Finding(expected) => seen.findings.iter().any(|kind| expected.contains(kind)),
            Caught::Numbers => clean && !seen.numbers_right,
            Caught::Wavefronts => clean && seen.numbers_right && seen.wavefronts.is_some(),
            Caught::Lanes => clean && seen.numbers_right && !seen.lanes_synchronised,
        };
        (!as_expected).then(|| {
            format!(
                "{}: expected {:?}, got {seen:?}",
                mutant.what, mutant.caught
            )
        })
    }
}

/// Between staging C and fetching it, and the other way round, the lanes of a warp wait for each other: all of them, so that no lane
/// branches around the barrier.
///
/// On the emulator the lanes of a warp go together, so that it does not see this; on a GPU they need not. An epilogue has no
/// loop, and what its branches skip neither stages nor fetches, so that the order of the text is the order of execution.
fn lanes_are_synchronised(ptx: &str) -> bool {
    // What was done last, and where lanes that branched away come back.
    let (mut last, mut away) = (None, BTreeSet::new());
    ptx.lines().all(|line| {
        let this = [
            ["// writeCs", "// stageC"], // SGEMM, mma
            ["// readCs", "// fetchC"],
        ]
        .iter()
        .position(|tags| tags.iter().any(|tag| line.ends_with(tag)));
        // Other branches than these are taken by whole warps.
        if let Some((_, label)) = line.split_once("bra ") {
            away.insert(label.trim_end_matches(';'));
        } else if let Some(label) = line.strip_suffix(':') {
            away.remove(label);
        } else if line.contains("bar.") && away.is_empty() {
            last = None;
        }
        let in_order = this.is_none() || last.is_none() || last == this;
        last = this.or(last);
        in_order
    })
}
