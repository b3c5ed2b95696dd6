//! The race detector's first look: all bytes that an instruction touches, by one comparison of clocks for each word.
//!
//! For each warp [`Shadow`] keeps a floor: a clock up to which the warp has seen every warp of the block, below its own clock now. What carries no clock
//! above it is ordered before the warp's next access, whoever did it, and so are the warp's own plain accesses. Only what is above is worth the
//! vectors. Example: after a barrier of the whole block the floor of each warp is the clock at which the others arrived, so that reads of what they wrote
//! before pass, word by word, without asking who wrote it.

use crate::pattern::Run;
use crate::shared::{Cell, REMOTE, Shadow, Who};

impl Shadow {
    /// Whether an access by `who` to bytes of `runs`, where the lowest lane accesses `first`, is ordered after all that it could conflict with, as
    /// far as one comparison of clocks tells; if not, the accesses must be looked at one by one.
    ///
    /// What is not above the floor of the warp is ordered before it, whoever did it; so are its own plain accesses.
    #[inline(always)]
    #[allow(
        clippy::needless_bitwise_bool,
        reason = "no branch, so that loops become vector code"
    )]
    fn clear<const WRITES: bool, const ATOMIC: bool>(
        &self,
        first: u32,
        runs: &[Run],
        who: Who,
    ) -> bool {
        if self.lanes || !self.is_simple() {
            return false;
        }
        let warp = who.warp() as usize & 31;
        let (now, floor) = (self.seen[warp][warp], self.floors[warp]);
        let (mut bad, mut read) = (false, false);
        for run in runs {
            let units = self.units(*run, first);
            let (Some(cells), Some(newest)) =
                (self.cells.get(units.clone()), self.newest.get(units))
            else {
                return false;
            };
            for cell in cells {
                let limit = if cell.who.is_plain_of(warp) {
                    now
                } else {
                    floor
                };
                // Bytes never written may be written, but not read.
                let clock = if WRITES && !ATOMIC {
                    cell.clock
                } else {
                    cell.clock.wrapping_sub(1)
                };
                let late = if WRITES && !ATOMIC {
                    clock > limit
                } else {
                    clock >= limit
                };
                let both = ATOMIC && cell.who.is_atomic() && clock < REMOTE - 1;
                bad |= late & !both;
            }
            if WRITES {
                for clock in newest {
                    read |= *clock > floor;
                }
            }
        }
        !bad && (!read || self.has_seen_readers(first, runs, warp))
    }

    /// Whether `warp` has seen all reads of `runs`. It has seen its own, as of what it reads, changes and stores.
    #[inline(never)]
    fn has_seen_readers(&self, first: u32, runs: &[Run], warp: usize) -> bool {
        let columns = self.reads.chunks(self.cells.len().max(1));
        let mut bad = false;
        for (column, seen) in columns.zip(&self.seen[warp]) {
            for run in runs {
                let clocks = column.get(self.units(*run, first));
                for clock in clocks.unwrap_or_default() {
                    bad |= clock > seen;
                }
            }
        }
        !bad
    }

    #[inline(always)]
    fn units(&self, run: Run, first: u32) -> std::ops::Range<usize> {
        let start = (run.start(first) >> self.grain) as usize;
        start..start + (run.bytes >> self.grain) as usize
    }

    /// Plain reads by a warp of all `runs`; false, and nothing done, if they must be looked at one by one.
    #[inline(always)]
    pub(crate) fn read_runs(&mut self, first: u32, runs: &[Run], who: Who) -> bool {
        if !self.clear::<false, false>(first, runs, who) {
            return false;
        }
        let warp = who.warp() as usize & 31;
        let now = self.seen[warp][warp];
        let column = warp * self.cells.len();
        for run in runs {
            let units = self.units(*run, first);
            let reads = &mut self.reads[column + units.start..column + units.end];
            let last = &mut self.last_reader[units.clone()];
            let newest = &mut self.newest[units];
            // Mostly one unit or many.
            if let ([read], [last], [newest]) = (&mut *reads, &mut *last, &mut *newest) {
                (*read, *last, *newest) = (now, who, now.max(*newest));
                continue;
            }
            reads.fill(now);
            last.fill(who);
            for clock in newest {
                *clock = (*clock).max(now);
            }
        }
        true
    }

    /// Whether a warp may write all `runs`; if so, [`Shadow::set_writer`] is to follow for each lane. `ATOMIC` accesses do not conflict with each other.
    #[inline(always)]
    pub(crate) fn may_write<const ATOMIC: bool>(&self, first: u32, runs: &[Run], who: Who) -> bool {
        self.clear::<true, ATOMIC>(first, runs, who)
    }

    /// `who` writes `bytes` from byte `offset` on, with nothing that conflicts.
    #[inline(always)]
    pub(crate) fn set_writer(&mut self, offset: u32, bytes: u32, who: Who) {
        let warp = who.warp() as usize & 31;
        let clock = self.seen[warp][warp];
        let first = (offset >> self.grain) as usize;
        let units = first..first + (bytes >> self.grain) as usize;
        match self.cells.get_mut(units) {
            Some([cell]) => *cell = Cell { clock, who },
            Some(cells) => cells.fill(Cell { clock, who }),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::banks::SharedAccess;
    use crate::pattern::Pattern;
    use crate::proxies::{Clocks, Knowledge};

    const WARPS: usize = 3;

    fn shadow() -> Shadow {
        Shadow::new(512, 4, (WARPS, false), false, Clocks::new(0, 1, false))
    }

    /// The accesses of a warp one by one: the number of units with a conflict.
    fn exact(s: &mut Shadow, units: &[usize], who: Who, write: bool, atomic: bool) -> usize {
        let found = |u: &&usize| match (write, atomic) {
            (false, _) => s.read(**u, who).is_some(),
            (true, false) => s.write(**u, who).is_some(),
            (true, true) => {
                let who = who.atomic();
                s.read_strong(**u, who).is_some() | s.write(**u, who).is_some()
            }
        };
        units.iter().filter(found).count()
    }

    /// Whole accesses and single units find the same in random programs with barriers, some of which only some warps reach.
    #[test]
    fn runs_find_what_single_units_find() {
        let mut state = 17u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            (state >> 16) % n
        };
        let (mut clear, mut conflicts) = (0, 0);
        for _ in 0..300 {
            let (mut fast, mut slow) = (shadow(), shadow());
            for pc in 0..60 {
                if below(3) == 0 {
                    let all = below(4) != 0;
                    let there: Vec<usize> = (0..WARPS).filter(|_| all || below(2) == 0).collect();
                    for s in [&mut fast, &mut slow] {
                        let mut met = Knowledge::default();
                        for w in &there {
                            s.give(*w, &mut met);
                        }
                        for w in &there {
                            s.take(*w, &met);
                            s.tick(*w);
                        }
                    }
                }
                let (write, atomic) = (below(2) == 0, below(4) == 0);
                let (start, stride) = (4 * below(32), 4 * below(3));
                let at: [u32; 32] = std::array::from_fn(|l| start + stride * l as u32);
                let lanes = (1 << (1 + below(24))) - 1;
                let mut pattern = Pattern::default();
                pattern.count(SharedAccess::Load { bytes: 4 }, &at, lanes);
                let who = Who::new(pc, below(WARPS as u32), 0);
                let mut units: Vec<usize> = (0..32)
                    .filter(|l| lanes >> l & 1 != 0)
                    .map(|l| at[l] as usize / 4)
                    .collect();
                units.dedup();
                let expected = exact(&mut slow, &units, who, write, atomic);
                let passes = match (write, atomic) {
                    (false, _) => fast.read_runs(start, pattern.runs(), who),
                    (true, false) => fast.may_write::<false>(start, pattern.runs(), who),
                    (true, true) => fast.may_write::<true>(start, pattern.runs(), who),
                };
                if passes {
                    assert_eq!(expected, 0, "at {pc}");
                    clear += 1;
                    if write {
                        let who = if atomic { who.atomic() } else { who };
                        for u in &units {
                            fast.set_writer(4 * *u as u32, 4, who);
                        }
                    }
                } else {
                    assert_eq!(exact(&mut fast, &units, who, write, atomic), expected);
                    conflicts += expected.min(1);
                }
                assert_eq!(fast.cells.len(), slow.cells.len());
                for (x, y) in fast.cells.iter().zip(&slow.cells) {
                    assert_eq!((x.clock, x.who), (y.clock, y.who));
                }
                assert_eq!(fast.reads, slow.reads);
            }
        }
        // Both ways out are taken, often.
        assert!(clear > 1000 && conflicts > 1000, "{clear} {conflicts}");
    }
}
