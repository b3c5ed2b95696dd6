//! Bounds and alignment of accesses of global memory.

use std::rc::Rc;

use crate::ir::Extent;
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, alike};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::Machine;

/// Choices within choices that an alignment may depend on.
const CASES: u32 = 6;

impl Machine<'_> {
    /// `0 ≤ c` and `c + n ≤ extent`.
    pub(in crate::prove) fn within(
        &mut self,
        name: &str,
        (buffer, mode): (usize, usize),
        c: &Lin,
        n: &Lin,
        facts: &Facts,
    ) -> Result<(), ProofError> {
        let below = if let Some(extent) = self.extent(buffer, mode) {
            let room = extent.sub(c).sub(n);
            self.symbols.at_least_zero(&room, facts)
        } else {
            // As many as there are blocks: the block's own index.
            match self.entry.buffers[buffer].extents[mode] {
                Extent::Blocks(axis) => *c == self.block(axis),
                _ => true,
            }
        };
        if below && self.symbols.at_least_zero(c, facts) {
            return Ok(());
        }
        let thread = facts.active.first().unwrap_or(0);
        Err(ProofError::Bounds {
            access: name.to_owned(),
            thread,
            mode,
        })
    }

    /// An asynchronous copy reads nothing that is outside, case by case of its size.
    pub(in crate::prove) fn partial_bounds(
        &mut self,
        name: &str,
        (buffer, elem): (usize, i64),
        coordinates: &[Lin],
        size: &Lin,
        facts: &Facts,
    ) -> Result<(), ProofError> {
        // The first symbol with cases, if there is one.
        let sym = size.symbols().find(|&s| {
            matches!(
                self.symbols.info(s).definition,
                Definition::Ite(..) | Definition::Max(..) | Definition::Min(..)
            )
        });
        if let Some(sym) = sym {
            let (p, a, b) = match self.symbols.info(sym).definition.clone() {
                Definition::Ite(p, a, b) => (p, a, b),
                Definition::Max(a, b) => (Rc::new(Formula::ge(a.sub(&b))), a, b),
                Definition::Min(a, b) => (Rc::new(Formula::ge(b.sub(&a))), a, b),
                _ => return Ok(()),
            };
            for (when, value) in [(Rc::clone(&p), a), (p.not(), b)] {
                let Some(size) = size.substitute(sym, &value) else {
                    continue;
                };
                if *when == Formula::False || size.is_zero() {
                    continue;
                }
                let mut case = facts.with(&when);
                case.active = when.possible(facts.active);
                self.partial_bounds(name, (buffer, elem), coordinates, &size, &case)?;
            }
            return Ok(());
        }
        let last = coordinates.len() - 1;
        if size.is_zero() {
            return Ok(());
        }
        // Elements that are read.
        let n = self.symbols.shr(size, elem.trailing_zeros());
        for (mode, c) in coordinates.iter().enumerate() {
            let one = Lin::constant(1);
            self.within(
                name,
                (buffer, mode),
                c,
                if mode == last { &n } else { &one },
                facts,
            )?;
        }
        Ok(())
    }

    /// The address is a multiple of the bytes that are moved at once.
    pub(in crate::prove) fn aligned(
        &mut self,
        name: &str,
        address: &Lin,
        bytes: u32,
        facts: &Facts,
    ) -> Result<(), ProofError> {
        let bits = bytes.trailing_zeros();
        let low: Vec<(Lin, u32)> = facts
            .all
            .iter()
            .filter_map(|f| self.symbols.low_bits_of(f))
            .collect();
        let question = (address.modulo(bits), bits, low, facts.active);
        let known = self.multiples.get(&question).copied();
        let multiple = known.unwrap_or_else(|| {
            self.multiple_by_cases(&question.0, bits, &question.2, facts, CASES)
        });
        self.multiples.insert(question, multiple);
        if multiple {
            return Ok(());
        }
        let rest = self.symbols.low(address, bits);
        if self.symbols.is_zero(&rest, facts) {
            return Ok(());
        }
        Err(ProofError::Alignment {
            access: name.to_owned(),
            bytes,
        })
    }

    /// The low bits of `x` are 0 where the facts hold, in each case of a value that a predicate chooses.
    fn multiple_by_cases(
        &mut self,
        x: &Lin,
        bits: u32,
        low: &[(Lin, u32)],
        facts: &Facts,
        depth: u32,
    ) -> bool {
        if self.multiple_of(x, bits, low, facts.active) {
            return true;
        }
        let chosen = x
            .symbols()
            .find_map(|s| match &self.symbols.info(s).definition {
                Definition::Ite(p, a, b) => Some((s, Rc::clone(p), *a, *b)),
                _ => None,
            });
        let Some((s, p, a, b)) = chosen.filter(|_| depth > 0) else {
            return false;
        };
        [(p.not(), b), (p, a)].into_iter().all(|(p, value)| {
            let Some(x) = self.symbols.replace(x, s, &value, self.threads) else {
                return false;
            };
            let mut low = low.to_vec();
            low.extend(
                p.conjuncts()
                    .iter()
                    .filter_map(|f| self.symbols.low_bits_of(f)),
            );
            self.multiple_by_cases(&x, bits, &low, facts, depth - 1)
        })
    }

    /// The low bits of `x` are 0 for every thread of a mask, where those of the given values are.
    pub(in crate::prove) fn multiple_of(
        &mut self,
        x: &Lin,
        bits: u32,
        low: &[(Lin, u32)],
        mask: Mask,
    ) -> bool {
        // Threads that have the same numbers in what is known are looked at together.
        let mut patterns = Vec::new();
        for (of, _) in low {
            patterns.extend(of.terms.list().iter().map(|(_, c)| c.pattern()));
        }
        let alike = alike(patterns, self.threads);
        (0..alike.count).all(|class| {
            let class = mask.keep(|t| alike.of[t] as usize == class);
            if class.is_empty() {
                return true;
            }
            let mut y = x.restricted(class);
            let known: Vec<_> = low
                .iter()
                .map(|(of, n)| (of.restricted(class), *n))
                .collect();
            for (of, n) in &known {
                if let Some(s) = of.single() {
                    let by = self.symbols.multiple(s, *n);
                    if let Some(z) = self.symbols.replace(&y, s, &by, self.threads) {
                        y = z;
                    }
                }
            }
            let zero = |m: &mut Self, y: &Lin| {
                let low = m.symbols.low(y, bits);
                let low = low.as_number().and_then(|k| k.range_of(class));
                low == Some((0, 0))
            };
            zero(self, &y)
                || known
                    .iter()
                    .any(|(of, n)| *n >= bits && zero(self, &y.sub(of)))
        })
    }
}
