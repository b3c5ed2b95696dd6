//! Versions: which of the values that a buffer keeps at the same bytes, one after the other, is there.
//!
//! A stage of a pipeline keeps tile after tile. Its view has a mode without a stride, and the coordinate along it says which tile an access means: the
//! tile's first k, say, a value that grows with the iterations of the loop. A read must find the version that it expects, so a copy that was forgotten, or that
//! went to another stage, is found although what was there before is defined.
//!
//! ```text
//! iteration t      copies tile  s·t + 2d, reads tile  s·t          (s: what an iteration adds, d: one tile)
//! iteration t + 1  tile s·t + 2d is now called s·(t + 1) + 2d − s
//! ```

use super::histories::Histories;
use super::memory::Effect;
use crate::prove::algebra::numbers::Num;
use crate::prove::algebra::symbols::{Change, Symbols};
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Event, Iterations};
use crate::quick::QuickMap;

/// A version that no read expects any more.
pub(super) const OLD: u32 = u32::MAX;

/// The versions so far, by number.
#[derive(Default)]
pub(super) struct Versions {
    all: Vec<Vec<Lin>>,
    numbers: QuickMap<Vec<Lin>, u32>,
}

/// What a loop does with versions.
pub(super) struct Renewal {
    /// The versions that its reads expect, with their buffers.
    reads: Vec<(u16, Vec<Lin>)>,
}

impl Renewal {
    pub(super) fn of(l: &Iterations, histories: &Histories, versions: &Versions) -> Self {
        let mut reads: Vec<Effect> = Vec::new();
        for iteration in &l.period {
            expected(&iteration.events, histories, &mut reads);
        }
        let version = |e: &Effect| versions.all.get(e.version as usize);
        let reads = reads
            .iter()
            .filter_map(|e| Some((e.buffer, version(e)?.clone())));
        Self {
            reads: reads.filter(|(_, version)| !version.is_empty()).collect(),
        }
    }
}

fn expected(events: &[Event], histories: &Histories, reads: &mut Vec<Effect>) {
    for event in events {
        match event {
            Event::Access(_) => {
                for effect in histories.reads(event) {
                    if !reads.contains(effect) {
                        reads.push(*effect);
                    }
                }
            }
            Event::If(_, then, otherwise) => {
                expected(then, histories, reads);
                expected(otherwise, histories, reads);
            }
            Event::Loop(l) => {
                for iteration in &l.period {
                    expected(&iteration.events, histories, reads);
                }
            }
            _ => {}
        }
    }
}

impl Versions {
    pub(super) fn number(&mut self, version: &[Lin]) -> u32 {
        if let Some(&known) = self.numbers.get(version) {
            return known;
        }
        let number = self.all.len() as u32;
        self.all.push(version.to_vec());
        self.numbers.insert(version.to_vec(), number);
        number
    }

    fn mapped(&mut self, number: u32, f: impl Fn(usize, &Lin) -> Option<Lin>) -> u32 {
        let Some(version) = self.all.get(number as usize) else {
            return OLD;
        };
        let new: Option<Vec<Lin>> = version.iter().enumerate().map(|(i, x)| f(i, x)).collect();
        new.map_or(OLD, |new| self.number(&new))
    }

    /// The version where some symbols are 0.
    pub(super) fn without(&mut self, number: u32, zero: &[Sym]) -> u32 {
        let nothing = Lin::constant(0);
        let left_out = |_: usize, x: &Lin| {
            let mut x = *x;
            for &s in zero {
                x = x.substitute(s, &nothing)?;
            }
            Some(x)
        };
        self.mapped(number, left_out)
    }

    /// A version as a loop begins, whose iterations are counted from 0: what does not mention the iteration is said in terms of it, as reads expect it.
    pub(super) fn entered(
        &mut self,
        buffer: u16,
        number: u32,
        (l, symbols): (&Iterations, &Symbols),
        r: &Renewal,
    ) -> u32 {
        let read = r.reads.iter().find(|(b, _)| *b == buffer);
        self.mapped(number, |i, x| {
            // What an earlier execution of this loop left, said in terms of its counts, has no name any more.
            if [l.iteration, l.trips]
                .into_iter()
                .any(|s| symbols.change(x, s) != Change::None)
            {
                return None;
            }
            let grows = read.and_then(|(_, read)| read.get(i)).map(|read| {
                let terms = read.terms.list();
                let grows = terms.iter().filter(|(m, _)| m.symbols().eq([l.iteration]));
                Lin::of(grows.copied(), Num::ZERO)
            });
            match grows {
                Some(grows) => Some(x.add(&grows)),
                None => Some(*x),
            }
        })
    }

    /// A version in the next iteration; old if no read expects it or a later one.
    pub(super) fn renewed(
        &mut self,
        buffer: u16,
        number: u32,
        (l, symbols): (&Iterations, &Symbols),
        r: &Renewal,
    ) -> u32 {
        let before = Lin::symbol(l.iteration).plus(-1);
        let next = self.mapped(number, |_, x| symbols.shifted(x, l.iteration, &before));
        let Some(version) = self.all.get(next as usize) else {
            return OLD;
        };
        let wanted = |read: &Vec<Lin>| {
            let ahead =
                |(x, y): (&Lin, &Lin)| x.sub(y).as_constant().is_none_or(|ahead| ahead >= 0);
            version.iter().zip(read).all(ahead)
        };
        let mut reads = r.reads.iter().filter(|(b, _)| *b == buffer).peekable();
        if reads.peek().is_some() && !reads.any(|(_, read)| wanted(read)) {
            return OLD;
        }
        next
    }

    /// A version behind a loop, said in terms of the iterations that were completed.
    pub(super) fn left(
        &mut self,
        number: u32,
        (l, symbols): (&Iterations, &Symbols),
        by: Way,
    ) -> u32 {
        let last = match by {
            Way::Before => Lin::constant(0),
            Way::Midst => Lin::symbol(l.trips),
            Way::End => Lin::symbol(l.trips).plus(-1),
        };
        let single = l.period.len() == 1;
        self.mapped(number, |_, x| {
            // Where iterations take each other's place, their number is not linear in how often all were made.
            if !single && by != Way::Before && x.mentions(l.iteration) {
                return None;
            }
            symbols.shifted(x, l.iteration, &last)
        })
    }
}

/// Where a loop is left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Way {
    /// Before its first iteration.
    Before,
    /// In the midst of an iteration, which is not completed.
    Midst,
    /// At the end of an iteration.
    End,
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::prove::algebra::formula::Formula;
    use crate::prove::algebra::symbols::Symbols;
    use crate::prove::walk::execute::Iteration;

    #[test]
    fn a_iteration_that_is_left_in_its_midst_is_not_completed() {
        let mut symbols = Symbols::default();
        let (iteration, trips) = (symbols.free(0, 99, false), symbols.free(0, 100, false));
        let always = Rc::new(Formula::True);
        let period = vec![Iteration {
            begins: Rc::clone(&always),
            events: Vec::new(),
            again: always,
        }];
        let l = Iterations {
            iteration,
            trips,
            count: None,
            own: 0..0,
            period,
        };
        let mut versions = Versions::default();
        // The tile of this iteration.
        let tile = versions.number(&[Lin::symbol(iteration).scale(32)]);
        let completed = Lin::symbol(trips).scale(32);
        for (way, expected) in [
            (Way::Before, Lin::constant(0)),
            (Way::Midst, completed),
            (Way::End, completed.plus(-32)),
        ] {
            let number = versions.left(tile, (&l, &symbols), way);
            assert_eq!(versions.all[number as usize], [expected], "{way:?}");
        }
    }
}
