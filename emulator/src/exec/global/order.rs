//! The order between blocks: which of their accesses are known to be over.
//!
//! Each block has an epoch, which its fences count. A word that was released in an epoch passes on what the block knew, and that its earlier epochs are over. Of a
//! unit that very many blocks have read, a crowd, only the clock of the last read is kept ([`Blocks::horizon`]).

use std::collections::HashMap;

use super::late::Late;
use super::readers::Read;

/// By block: the first epoch that is not known to be over.
pub(super) type Seen = HashMap<u32, u32>;

pub(super) fn raise(to: &mut Seen, from: &Seen) {
    for (block, epoch) in from {
        let known = to.entry(*block).or_default();
        *known = (*known).max(*epoch);
    }
}

#[derive(Debug, Default)]
pub(super) struct Block {
    /// Fences executed, from 1 on.
    pub(super) epoch: u32,
    /// The clock when each epoch from 1 on began.
    begins: Vec<u32>,
    /// The clock when it last read a unit of a crowd: by a weak load, and by any load.
    pub(super) last: [Option<u32>; 2],
    /// The last results of [`Blocks::horizon`], and the value of `changes` at that time.
    horizon: [(u32, u32); 2],
    pub(super) seen: Seen,
    /// What it knew at its last fence.
    pub(super) released: Seen,
}

/// The order between blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) each: HashMap<u32, Block>,
    /// By address of a word: what the blocks knew that released it.
    pub(super) words: HashMap<u64, Seen>,
    pub(super) late: Late,
    /// How many epochs have ended, of all blocks together.
    pub(super) clock: u32,
    /// How often something has changed that [`Blocks::horizon`] depends on.
    changes: u32,
    /// The blocks that have read a unit of a crowd.
    crowd: Vec<u32>,
}

impl Blocks {
    /// Ends the epoch of block `me`, and gives what it knows.
    pub(super) fn release(&mut self, me: u32) -> Seen {
        let block = self.each.entry(me).or_default();
        let mut known = block.seen.clone();
        known.insert(me, block.epoch + 1);
        block.epoch += 1;
        block.begins.push(self.clock + 1);
        self.clock += 1;
        self.changes += 1;
        known
    }

    /// Block `me` learns what a word passes on.
    pub(super) fn acquire(&mut self, me: u32, known: &Seen) {
        raise(&mut self.each.entry(me).or_default().seen, known);
        self.changes += 1;
    }

    /// Block `me` reads a unit of a crowd at this clock.
    pub(super) fn read_in_crowd(&mut self, me: u32, clock: u32, strong: bool) {
        let block = self.each.entry(me).or_default();
        if block.last == [None; 2] {
            self.crowd.push(me);
        }
        for last in &mut block.last[usize::from(strong)..] {
            *last = (*last).max(Some(clock));
        }
        self.changes += 1;
    }

    /// Notes a read of the past: it was at the end of its epoch at the latest.
    pub(super) fn has_read_in_crowd(&mut self, (block, epoch): Read, strong: bool) {
        let begins = self.each.get(&block).map(|b| &b.begins);
        let end = begins.and_then(|b| b.get(epoch as usize)).copied();
        self.read_in_crowd(block, end.map_or(self.clock, |end| end - 1), strong);
    }

    /// The clock up to which reads of crowds are ordered before what block `me` does now. Of units that blocks have `waited` for, strong reads count too. A
    /// block whose reads are all ordered sets no bound.
    pub(super) fn horizon(&mut self, me: u32, waited: bool) -> u32 {
        let (changes, which) = (self.changes, usize::from(waited));
        let seen = match self.each.get(&me) {
            None => return 0,
            Some(block) if block.horizon[which].1 == changes => return block.horizon[which].0,
            Some(block) => &block.seen,
        };
        let bound = |other: &u32| {
            let block = self.each.get(other)?;
            let epoch = seen.get(other).and_then(|e| e.checked_sub(1));
            let begun = epoch.and_then(|e| block.begins.get(e as usize).copied());
            let begun = begun.unwrap_or(0);
            (block.last[which] >= Some(begun)).then_some(begun)
        };
        let others = self.crowd.iter().filter(|other| **other != me);
        let least = others.filter_map(bound).min().unwrap_or(u32::MAX);
        if let Some(block) = self.each.get_mut(&me) {
            block.horizon[which] = (least, changes);
        }
        least
    }
}
