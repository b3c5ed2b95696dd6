//! Rings over the blocks of a cluster: which copies come to a stage of each block, and whom consumers tell that it is released.
//!
//! ```text
//! rank 0 copies A0 to 0, B's first half to 0 and 1        comes to 0: A0, both halves of B        comes to 1: A1, both halves of B
//! rank 1 copies A1 to 1, B's second half to 0 and 1
//! ```
//!
//! Without clusters there is one block, to which everything comes.

use super::Walk;
use crate::ir::Side;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::walk::hopper::{Fill, UNIT, Used, What};

/// Threads that release a stage in a block.
#[derive(Clone, PartialEq)]
pub(super) enum Arrivals {
    /// To the block itself.
    Own(u32),
    /// To the block of each rank.
    At(Vec<u32>),
}

impl Arrivals {
    /// How many arrive at the mbarrier of the block of a rank, of all blocks.
    pub(super) fn at(&self, rank: usize, blocks: i64) -> u32 {
        match self {
            Arrivals::Own(threads) => *threads,
            Arrivals::At(all) => all[rank] * blocks as u32,
        }
    }
}

impl Walk<'_> {
    /// Outside of loops, behind stages that are filled.
    pub(super) fn is_behind_fills(&self) -> bool {
        self.loops.is_empty() && !self.found.places.is_empty()
    }

    /// Behind the wait for a ring's last stages a role fills no stage, of any ring, and waits for none that others fill: the consumers may give those last stages back behind
    /// stages that would come later.
    pub(super) fn is_drained(&self, what: &What) -> Result<(), String> {
        let more = matches!(what, What::Expect(..) | What::Wait(_, Side::Full));
        if self.found.drained > 0 && more {
            return Err(
                "stages are filled or waited for behind the wait for its last stages: drain all rings at the end of the role that fills them".to_owned(),
            );
        }
        Ok(())
    }

    /// A use behind the last one that is filled: its stage is waited for, and with it the arrivals in an earlier use.
    pub(super) fn drain(&mut self, used: &Used) -> Result<(), String> {
        self.filled_whole()?;
        (self.held, self.expected) = (None, None);
        if used.index != self.next.plus(self.found.drained) {
            return Err(
                "a stage that is waited for behind the last fill is not the next".to_owned(),
            );
        }
        self.found.drained += 1;
        Ok(())
    }

    /// A copy comes to a stage of each block that it goes to.
    pub(super) fn fill(&mut self, used: &Used, fill: &Fill) -> Result<(), String> {
        let name = &fill.from[0].name;
        if self.held != Some(*used) || !self.found.fills || self.expected.is_none() {
            return Err(format!(
                "{name}: a copy to a stage that is not known to be empty"
            ));
        }
        let versions = fill.from.iter().flat_map(|region| &region.version);
        let mut same = fill.origin.iter().chain(versions);
        if fill.is_shared() && !same.all(|x| self.alike.value(x)) {
            return Err(format!(
                "{name}: a block copies to others of its cluster what is of its own tile"
            ));
        }
        self.found.shares |= fill.is_shared();
        let comes = &mut self.found.places[self.found.here].comes;
        comes.resize(self.filled.len(), Vec::new());
        for (rank, all) in comes.iter_mut().enumerate() {
            for region in fill.arriving_at(rank) {
                self.filled[rank] += region.units.len() as u32 * UNIT as u32;
                if all.iter().any(|r| !r.units.is_disjoint(&region.units)) {
                    return Err(format!("{name}: two copies to the same bytes"));
                }
                all.push(region.clone());
            }
        }
        Ok(())
    }

    /// Threads release a stage, to their own block or to those of ranks: each warp of the role does so once to each.
    pub(super) fn arrivals(&self, threads: Mask, to: Option<Num>) -> Result<Arrivals, String> {
        let list = threads.list();
        let role = self.role.list();
        // A warp's products are complete when its own wait says so.
        let counted = |list: &[bool]| {
            let each = role.chunks(32).zip(list.chunks(32));
            let mut all = each.filter(|(role, _)| role.contains(&true));
            if !all.all(|(_, arrive)| arrive.contains(&true)) {
                return Err("a warp reads a stage that others release".to_owned());
            }
            Ok(list.iter().filter(|t| **t).count() as u32)
        };
        let Some(to) = to else {
            return Ok(Arrivals::Own(counted(&list)?));
        };
        let blocks = self.alike.blocks();
        let rank = |t: usize| to.at(t);
        if (0..list.len()).any(|t| list[t] && !(0..blocks).contains(&rank(t))) {
            return Err("a stage is released to a block that the cluster does not have".to_owned());
        }
        let at = |block: i64| {
            let those: Vec<bool> = (0..list.len())
                .map(|t| list[t] && rank(t) == block)
                .collect();
            counted(&those)
        };
        let all: Result<Vec<u32>, String> = (0..blocks).map(at).collect();
        Ok(Arrivals::At(all?))
    }
}
