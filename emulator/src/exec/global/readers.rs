//! Sets of blocks that have read the same unit.
//!
//! Many units have the same readers. So a set is kept once, as another set and one reader more, and a unit has the number of its set.

use std::collections::HashMap;

/// The most readers of a set.
pub(super) const MEMBERS: u8 = 16;

/// The most sets.
pub(super) const SETS: usize = 1 << 20;

/// No set: it would have too many readers, or there are too many sets.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A reader of a unit: the block and its epoch.
pub(super) type Read = (u32, u32);

/// Small sets of readers, each kept once.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// By number from 1 on: see [`Readers::at`]. 0 is the empty set.
    sets: Vec<(u32, Read, u8)>,
    numbers: HashMap<(u32, Read), u32>,
    /// The set after this reader has come to that set.
    after: HashMap<(u32, Read), u32>,
    /// The last lookup in `after`: neighbouring units mostly have the same readers.
    last: Option<((u32, Read), u32)>,
}

impl Readers {
    /// The number of `set` with one reader more.
    pub(super) fn with(&mut self, set: u32, read: Read) -> u32 {
        let members = self.at(set).map_or(0, |(_, _, members)| members);
        if set == UNKNOWN || members == MEMBERS || self.sets.len() >= SETS {
            return UNKNOWN;
        }
        let (sets, next) = (&mut self.sets, self.numbers.len() as u32 + 1);
        *self.numbers.entry((set, read)).or_insert_with(|| {
            sets.push((set, read, members + 1));
            next
        })
    }

    /// The set that a number stands for: another set, one reader more, and how many readers that makes.
    fn at(&self, set: u32) -> Option<(u32, Read, u8)> {
        self.sets.get(set.wrapping_sub(1) as usize).copied()
    }

    /// The readers of a set, the last one first.
    pub(super) fn of(&self, set: u32) -> impl Iterator<Item = Read> {
        let mut next = set;
        std::iter::from_fn(move || {
            let (rest, read, _) = self.at(next)?;
            next = rest;
            Some(read)
        })
    }

    /// The set after `read` has come to `set`. It leaves out readers that are `ordered` before `read`: a store that is ordered after `read` is ordered after them.
    pub(super) fn add(&mut self, set: u32, read: Read, ordered: impl Fn(Read) -> bool) -> u32 {
        if let Some((_, after)) = self.last.filter(|(of, _)| *of == (set, read)) {
            return after;
        }
        if let Some(after) = self.after.get(&(set, read)) {
            self.last = Some(((set, read), *after));
            return *after;
        }
        let others: Vec<Read> = self.of(set).collect();
        let keeps = |r: &Read| r.0 != read.0 && !ordered(*r);
        let after = if others.iter().all(keeps) {
            self.with(set, read)
        } else {
            let kept = others.iter().rev().filter(|r| keeps(r));
            let kept = kept.fold(0, |set, r| self.with(set, *r));
            self.with(kept, read)
        };
        if after != UNKNOWN {
            self.after.insert((set, read), after);
            self.after.insert((after, read), after);
        }
        after
    }
}
