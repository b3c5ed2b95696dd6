//! The table of classes, the failures, and the floors.
//!
//! `refused` counts refusals of what does not exist, `wrong` answers that break their law, `denied` refusals of what exists.
//! The last two are failures.
//!
//! Every class of an operation and a kind of operand has a floor: at least a quarter of its questions are answered, and
//! right. Classes in which most answers do not exist have their own, lower floor.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::answer::Answer;
use crate::verdict::{Case, Verdict};

#[derive(Default)]
struct Count {
    asked: usize,
    right: usize,
    refused: usize,
    /// Answers that break their law.
    wrong: usize,
    /// Refusals of what exists.
    denied: usize,
}

/// One failure.
pub(crate) struct Failure {
    class: (&'static str, &'static str),
    text: String,
    answer: String,
    expected: String,
}

#[derive(Default)]
pub(crate) struct Report {
    classes: BTreeMap<(&'static str, &'static str), Count>,
    pub(crate) failures: Vec<Failure>,
}

/// Classes with few right answers, with their floors in percent of what is asked.
const LOW: &[(&str, &str, usize)] = &[
    ("composition_strict", "out of domain", 0),
    ("preimage", "not in image", 0),
    ("left_inverse", "overlapping", 0),
    ("inverse", "swizzled", 20),
];

/// Kinds of operands of which nothing exists, and all that is right is to refuse.
const NEVER: &[&str] = &["no complement", "does not divide", "modes with gaps"];

/// Products of blocks with strides below zero, or which overlap, have no complement.
const WITHOUT_REPETITION: &[&str] = &["negative strides", "overlapping"];

/// The floor in percent of all other classes.
const FLOOR: usize = 30;

/// Classes with fewer questions have too much chance in them.
const ENOUGH: usize = 40;

fn floor(operation: &str, kind: &str) -> usize {
    let product = operation.ends_with("product") || operation == "tile_to_shape";
    if NEVER.contains(&kind) || (product && WITHOUT_REPETITION.contains(&kind)) {
        return 0;
    }
    if product && kind == "padded" {
        return 15;
    }
    LOW.iter()
        .find(|low| low.0 == operation && low.1 == kind)
        .map_or(FLOOR, |low| low.2)
}

impl Report {
    pub(crate) fn add(&mut self, case: &Case, answer: &Answer, verdict: Verdict) {
        let class = (case.operation, case.kind);
        let count = self.classes.entry(class).or_default();
        count.asked += 1;
        match verdict {
            Verdict::Right => count.right += 1,
            Verdict::Refused => count.refused += 1,
            Verdict::Wrong(expected) => {
                if matches!(answer, Answer::Error(..)) {
                    count.denied += 1;
                } else {
                    count.wrong += 1;
                }
                self.failures.push(Failure {
                    class,
                    text: case.text.clone(),
                    answer: answer.shown(),
                    expected,
                });
            }
        }
    }

    pub(crate) fn join(&mut self, other: Report) {
        for (class, count) in other.classes {
            let sum = self.classes.entry(class).or_default();
            sum.asked += count.asked;
            sum.right += count.right;
            sum.refused += count.refused;
            sum.wrong += count.wrong;
            sum.denied += count.denied;
        }
        self.failures.extend(other.failures);
    }

    pub(crate) fn asked(&self) -> u64 {
        self.classes.values().map(|count| count.asked as u64).sum()
    }

    pub(crate) fn operations(&self) -> usize {
        let mut names: Vec<&str> = self.classes.keys().map(|class| class.0).collect();
        names.dedup();
        names.len()
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{:24} {:18} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
            "operation", "operands", "asked", "right", "refused", "wrong", "denied"
        );
        for ((operation, kind), count) in &self.classes {
            let Count {
                asked,
                right,
                refused,
                wrong,
                denied,
            } = count;
            let _ = writeln!(
                text,
                "{operation:24} {kind:18} {asked:7} {right:7} {refused:7} {wrong:7} {denied:7}"
            );
        }
        let _ = write!(
            text,
            "{} expressions, {} operations, {} failures",
            self.asked(),
            self.operations(),
            self.failures.len()
        );
        text
    }

    /// The shortest failures of each class, 20 in all; with `TILEWRIGHT_ORACLE_ALL` the five shortest of every class.
    pub(crate) fn first_failures(&self) -> String {
        let all = std::env::var_os("TILEWRIGHT_ORACLE_ALL").is_some();
        let mut failures: Vec<&Failure> = self.failures.iter().collect();
        failures.sort_by_key(|failure| (failure.class, failure.text.len()));
        let mut text = String::new();
        let (mut shown, mut of_class, mut last) = (0, 0, None);
        for failure in failures {
            of_class = if last == Some(failure.class) {
                of_class + 1
            } else {
                0
            };
            last = Some(failure.class);
            if of_class >= if all { 5 } else { 1 } || (!all && shown >= 20) {
                continue;
            }
            shown += 1;
            let Failure {
                class: (operation, kind),
                text: expression,
                answer,
                expected,
            } = failure;
            let _ = writeln!(
                text,
                "[{operation}, {kind}] {expression}\n    answered {answer}\n    expected {expected}"
            );
        }
        text
    }

    pub(crate) fn assert_floors(&self) {
        for ((operation, kind), count) in &self.classes {
            let floor = if count.asked < ENOUGH {
                0
            } else {
                floor(operation, kind)
            };
            assert!(
                count.right * 100 >= count.asked * floor,
                "{operation} of {kind}: {} right answers of {} are below the floor of {floor} %",
                count.right,
                count.asked
            );
        }
    }
}
