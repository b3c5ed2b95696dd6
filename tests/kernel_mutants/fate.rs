//! What becomes of a mutant: what catches it, or what shows that it does what the kernel does.
//!
//! In this order: the first problems; a text whose values stand beside the kernel's in all problems, which then can't catch the mutant; the other problems; other
//! orders of blocks and warps; results that nothing depends on.

use std::cell::OnceCell;

use tilewright::emulator::{Finding, Report};

use crate::equivalence;
use crate::mutate::{self, Mutation};
use crate::subjects::{How, Runs, Subject};

/// Steps that a mutant may take. No kernel here takes half as many.
const LIMIT: u64 = 1 << 17;

/// The usual order of blocks and warps.
const USUAL: How = How {
    limit: LIMIT,
    schedule: 0,
};

/// Seeds of other orders.
const SCHEDULES: [u64; 4] = [1, 2, 3, 4];

/// The bytes of a problem's results.
type Results = Vec<Vec<u8>>;

/// The first finding or note: a kernel of ours has neither.
fn first(report: &Report) -> Option<&Finding> {
    report.findings.iter().chain(&report.notes).next()
}

/// What catches a text.
fn caught(runs: &Runs, text: &str, good: &Results, how: How) -> Result<(), String> {
    let (report, results) = runs(text, how).map_err(|_| "(decoder)".to_owned())?;
    match first(&report) {
        Some(f) => Err(f.kind.code().to_owned()),
        None if results != *good => Err("(numbers)".to_owned()),
        None => Ok(()),
    }
}

/// A subject whose kernel has run: its problems with their results.
pub(crate) struct Tried {
    subject: Subject,
    good: Vec<Results>,
    of_others: OnceCell<Vec<Results>>,
    /// Lines that some lane executes. What none executes cannot matter.
    pub(crate) reached: Vec<bool>,
}

impl Tried {
    /// Runs the kernel, which must be clean and takes at most half of what a mutant may.
    pub(crate) fn new(subject: Subject) -> Self {
        let mut good = Vec::new();
        let mut reached = vec![false; subject.text.lines().count()];
        let half = How {
            limit: LIMIT / 2,
            ..USUAL
        };
        for runs in &subject.problems {
            let (report, results) = runs(&subject.text, half).expect("it runs");
            let first = first(&report);
            assert!(first.is_none(), "{}: {first:?}", subject.name);
            for i in report.counters.instructions.iter().filter(|i| i.lanes > 0) {
                reached[i.line as usize - 1] = true;
            }
            good.push(results);
        }
        Self {
            subject,
            good,
            of_others: OnceCell::new(),
            reached,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.subject.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.subject.text
    }

    /// The problems beside the first, with their results.
    fn others(&self) -> impl Iterator<Item = (&Runs, &Results)> {
        let run = |runs: &Runs| {
            let (report, results) = runs(&self.subject.text, USUAL).expect("it runs");
            let first = first(&report);
            assert!(first.is_none(), "{}: {first:?}", self.subject.name);
            results
        };
        let results = self
            .of_others
            .get_or_init(|| self.subject.others.iter().map(run).collect());
        self.subject.others.iter().zip(results)
    }

    /// What catches a text in the first problems.
    fn first(&self, text: &str, how: How) -> Option<String> {
        let mut problems = self.subject.problems.iter().zip(&self.good);
        problems.find_map(|(runs, good)| caught(runs, text, good, how).err())
    }

    /// What catches a text in the other problems.
    fn later(&self, text: &str) -> Option<String> {
        let mut problems = self.others();
        problems.find_map(|(runs, good)| caught(runs, text, good, USUAL).err())
    }

    /// What becomes of a mutant; none if it survives. One that is `listed` with a reason is tried on the first problems only.
    pub(crate) fn fate(&self, lines: &[&str], m: &Mutation, listed: bool) -> Option<String> {
        let text = mutate::apply(lines, m);
        let holds = |text: &str| self.first(text, USUAL).is_none() && self.later(text).is_none();
        let equivalent = |why| format!("(equivalent: {why})");
        if let Some(by) = self.first(&text, USUAL) {
            return Some(by);
        }
        if listed {
            return None;
        }
        if let Some(why) = equivalence::same(lines, m, &holds) {
            return Some(equivalent(why));
        }
        if let Some(by) = self.later(&text) {
            return Some(by);
        }
        let mut orders = SCHEDULES
            .map(|schedule| How { schedule, ..USUAL })
            .into_iter();
        if let Some(by) = orders.find_map(|how| self.first(&text, how)) {
            return Some(by);
        }
        equivalence::no_influence(lines, m, &holds).map(equivalent)
    }
}
