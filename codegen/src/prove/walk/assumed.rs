//! Assumptions: what the author states becomes a fact, and is listed.

use std::fmt;

use crate::ir::{Assumption, checked};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::walk::arithmetic::compared;
use crate::prove::walk::execute::{Event, Machine};

/// An assumption that a proof rests on.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::{Cmp, Kernel};
///
/// let mut k = Kernel::new("k", 32);
/// let (n, one) = (k.size("n", 100), k.constant(1));
/// k.assume(n, Cmp::Ge, one, "callers have no empty rows")?;
/// let stated = &k.build(Arch(80))?.proof.assumptions[0];
/// assert_eq!((stated.condition.as_str(), stated.checked), ("n >= 1", true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assumed {
    /// The condition.
    pub condition: String,
    /// Why it holds, in the author's words.
    pub reason: String,
    /// Every launch checks it.
    pub checked: bool,
}

impl fmt::Display for Assumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checked = if self.checked {
            "checked at launch"
        } else {
            "not checked"
        };
        write!(f, "{}: {} ({checked})", self.condition, self.reason)
    }
}

impl Machine<'_> {
    /// From here on, what the author states is a fact.
    pub(in crate::prove) fn assume(&mut self, stated: &Assumption) -> Result<(), ProofError> {
        let (a, b) = (self.evaluate(stated.a), self.evaluate(stated.b));
        let f = compared(stated.cmp, &a, &b);
        let refuse = |reason: &'static str| ProofError::Assumption {
            condition: stated.condition(&self.entry.pool),
            reason,
        };
        if !f.is_uniform(&self.symbols) {
            return Err(refuse(
                "threads of a block may differ in it: state it of parameters with a range, block indices and loop counters",
            ));
        }
        let entry = self.entry;
        let mut all = checked(&entry.nodes, &entry.params, &entry.pool);
        let assumed = Assumed {
            condition: stated.condition(&entry.pool),
            reason: stated.reason.clone(),
            checked: all.any(|a| std::ptr::eq(a, stated)),
        };
        let mut facts = self.facts.with(&f);
        facts.all.extend(self.promises());
        if *f == Formula::False || self.symbols.contradicts(&facts) {
            return Err(ProofError::Assumption {
                condition: assumed.condition,
                reason: "it contradicts what is known there: nothing that follows would ever be done",
            });
        }
        self.learn(&f);
        // Outside of loops and branches it holds for all of the kernel.
        if self.path.is_empty()
            && self.iterations.is_empty()
            && self.divergent == 0
            && self.stays.is_empty()
        {
            self.assumed.extend(f.conjuncts());
        }
        let f = self.symbols.by_cases(&f, self.threads);
        self.events.push(Event::Assume(f));
        if !self.assumptions.contains(&assumed) {
            self.assumptions.push(assumed);
        }
        Ok(())
    }
}
