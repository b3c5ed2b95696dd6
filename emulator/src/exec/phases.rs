//! The state of mbarriers: counts, phases, what is known to those who arrive, and the copies that will signal them. What instructions do to it is in
//! [`super::mbarrier`].

use std::collections::BTreeMap;

use super::bulk::Landing;
use crate::ir::Scope;
use crate::proxies::{Knowledge, Remote};
use crate::shared::Shadow;

/// The largest count of arrivals or bytes.
pub(crate) const MOST: i64 = (1 << 20) - 1;

/// `cp.async.mbarrier.arrive` of one lane, before its copies have landed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyArrival {
    pub(super) warp: u32,
    pub(super) lane: u32,
    pub(super) pc: usize,
    /// The copies of the warp below this number.
    pub(super) before: u32,
}

/// What those know who arrived: threads of the object's block and copies, and threads of other blocks. A fence with the scope of the block synchronises with the
/// first alone.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) own: Knowledge,
    pub(super) others: Knowledge,
}

impl Arrived {
    pub(super) fn add(&mut self, other: &Self) {
        self.own.add(&other.own);
        self.others.add(&other.others);
    }

    /// A wait by `lanes` of `warp` finds the phase completed: the warp learns this, or a later fence of the lanes does if the wait is relaxed.
    pub(super) fn tell(
        &self,
        shadow: &mut Shadow,
        warp: usize,
        relaxed: Option<Scope>,
        lanes: u32,
    ) {
        match relaxed {
            None => {
                shadow.take(warp, &self.own);
                if !self.others.is_none() {
                    shadow.take(warp, &self.others);
                }
            }
            Some(scope) => {
                shadow.find(warp, Scope::Block, lanes, &self.own);
                if scope == Scope::Cluster {
                    shadow.find(warp, Scope::Cluster, lanes, &self.others);
                }
            }
        }
    }
}

/// One object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Arrivals of each phase.
    pub(super) expected: i64,
    /// Arrivals that the current phase still needs.
    pub(super) pending: i64,
    /// Bytes expected less bytes that came.
    pub(super) tx: i64,
    /// Phases completed.
    pub(super) phase: u64,
    /// The actor that stands for the copies that it tracks.
    pub(crate) actor: u32,
    /// What those know who arrived in this phase, and in the completed ones.
    pub(super) seen: Arrived,
    pub(super) done: Arrived,
    /// Who initialised it: warp, its clock and the instruction.
    pub(super) init: (u32, u32, usize),
    /// The lane that initialised it, as a bit.
    pub(super) by: u32,
    /// The initialisation is visible to other proxies.
    pub(super) published: bool,
    /// Another thread has executed `fence.mbarrier_init` since.
    pub(super) half_published: bool,
    /// `fence.mbarrier_init` has released the initialisation to the cluster, and the phase of the cluster's barrier at which its thread arrived then.
    pub(super) released: bool,
    pub(super) gate: Option<u64>,
    /// The last instruction that expected bytes or brought some.
    pub(super) counted: usize,
    /// The phase that each warp's last wait here found complete, plus 1; 0 if there was none.
    pub(super) passed: [u64; 32],
    /// Copies that will complete bytes on it.
    pub(super) landings: Vec<Landing>,
    /// The last operations by each warp of other blocks, each with the phase that it counts in.
    pub(super) remote: Vec<(Remote, u64)>,
    /// Lanes whose `cp.async` copies will arrive at it.
    pub(super) copies: Vec<CopyArrival>,
}

impl Object {
    /// Its 8 bytes.
    pub(super) fn image(&self) -> u64 {
        let tx = (self.tx & 0x1f_ffff) as u64;
        1 << 63 | (self.phase & 1) << 62 | (self.pending as u64 & 0xf_ffff) << 21 | tx
    }
}

/// The objects of a block, by the byte of shared memory where they are.
#[derive(Debug, Default)]
pub(crate) struct Mbarriers {
    pub(super) objects: BTreeMap<u32, Object>,
    /// Objects made so far.
    pub(super) made: u32,
}

impl Mbarriers {
    pub(crate) fn reset(&mut self) {
        self.objects.clear();
        self.made = 0;
    }

    /// The objects that one of `lanes` of warp `warp` has initialised.
    fn made_by(&mut self, warp: u32, lanes: u32) -> impl Iterator<Item = &mut Object> {
        let objects = self.objects.values_mut();
        objects.filter(move |o| o.init.0 == warp && o.by & lanes != 0)
    }

    /// Warp `warp` executes a fence between proxies.
    pub(crate) fn publish(&mut self, warp: u32) {
        for o in self.made_by(warp, u32::MAX) {
            o.published = true;
        }
    }

    /// These lanes of warp `warp` execute `fence.mbarrier_init.release.cluster`, which is for what the same lane initialised.
    pub(crate) fn release_inits(&mut self, warp: u32, lanes: u32) {
        for o in self.objects.values_mut() {
            if o.init.0 == warp && o.by & lanes != 0 {
                o.published = true;
                o.released = true;
            } else {
                o.half_published = true;
            }
        }
    }

    /// Whether `fence.mbarrier_init` was executed behind the initialisation of the object at `offset`, by whatever thread.
    pub(super) fn is_half_published(&self, offset: u32) -> bool {
        self.objects.get(&offset).is_some_and(|o| o.half_published)
    }

    /// These lanes of warp `warp` arrive at the barrier of the cluster in `phase`: who waits for that knows of the initialisations that they have released,
    /// though the arrival be relaxed.
    pub(crate) fn pass_gate(&mut self, warp: u32, lanes: u32, phase: u64) {
        for o in self.made_by(warp, lanes).filter(|o| o.released) {
            o.gate.get_or_insert(phase);
        }
    }

    /// Some object waits for `cp.async` copies.
    pub(crate) fn track_copies(&self) -> bool {
        self.objects.values().any(|o| !o.copies.is_empty())
    }

    /// The last operations of other blocks' warps on each object, with its place: those in phases that nobody has waited for. Who has waited for a phase knows
    /// that all operations in it, and in those before it, have been performed.
    pub(crate) fn remote(&self) -> impl Iterator<Item = (u32, &Remote)> {
        self.objects.iter().flat_map(|(at, o)| {
            let waited = o.passed.iter().copied().max().unwrap_or(0);
            let open = o.remote.iter().filter(move |(_, phase)| *phase >= waited);
            open.map(|(r, _)| (*at, r))
        })
    }

    /// The copies that have not landed.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Landing> {
        self.objects.values().flat_map(|o| &o.landings)
    }

    /// The object that `offset` names, if there is one.
    pub(crate) fn get_mut(&mut self, offset: u32) -> Option<&mut Object> {
        self.objects.get_mut(&offset)
    }

    /// What warp `warp`, which waits for phase `want` at `offset`, waits for.
    pub(crate) fn describe(&self, offset: u32, want: u64, warp: u32) -> String {
        let Some(o) = self.objects.get(&offset) else {
            return format!("the mbarrier at shared byte {offset}, which is not initialised");
        };
        let (came, more) = (o.expected - o.pending, -o.tx);
        let bytes = if more > 0 {
            format!("{more} bytes more than it expected have come")
        } else {
            format!("it expects {} bytes", o.tx)
        };
        // A parity says little of the phase: one that has gone by twice looks like the current one.
        let last = o.passed[warp as usize & 31];
        let missed = want.saturating_sub(last);
        let late = if last > 0 && missed >= 2 {
            format!(
                "; its last wait was for phase {}, and {missed} have gone by since",
                last - 1
            )
        } else {
            String::new()
        };
        format!(
            "phase {want} of the mbarrier at shared byte {offset} ({came} of {} arrivals have come, {bytes}{late})",
            o.expected
        )
    }

    /// Where the mbarrier is that tracks the copy into `byte`, its phase, and the last phase that warp `warp` has waited for there.
    pub(crate) fn tracker(&self, byte: u32, warp: u32) -> Option<(u32, u64, Option<u64>)> {
        let fills = |l: &Landing| l.to.iter().any(|(at, n)| (*at..at + n).contains(&byte));
        let found = self
            .objects
            .iter()
            .find(|(_, o)| o.landings.iter().any(fills));
        let (at, o) = found?;
        Some((*at, o.phase, o.passed[warp as usize & 31].checked_sub(1)))
    }

    /// Objects whose bytes do not add up: where, bytes, and the last instruction that counted.
    pub(crate) fn unbalanced(&self) -> Vec<(u32, i64, usize)> {
        self.objects
            .iter()
            .filter(|(_, o)| o.tx != 0)
            .map(|(at, o)| (*at, o.tx, o.counted))
            .collect()
    }
}
