//! What warps know of each other beyond the clocks of their own block: fences between proxies, and the other blocks of a cluster.
//!
//! **Proxies.** Ordinary instructions reach shared memory by the generic proxy, bulk copies and `wgmma` by the asynchronous one (PTX ISA, section
//! 8.6). That a write happens before a bulk store is not enough for the store to see it: a `fence.proxy.async` must lie between them on the
//! path of synchronisation. So each warp has, besides its vector of clocks, a second one: the writes that it knows to be fenced. The fence
//! sets it to all that the warp has seen, and it travels with every barrier like the first.
//!
//! **Clusters.** Each block keeps the vector clocks of its own warps about its own actors in [`crate::shared::Shadow::seen`], where the hot loop
//! needs them. What its warps know of the other blocks is here, by rank.
//!
//! Example: warp 0 writes shared memory (clock 3), executes `fence.proxy.async` (fenced up to 3, clock now 4) and arrives at a barrier; warp 1
//! waits there: it has seen 3 and knows 3 to be fenced, and may let a bulk store read what warp 0 wrote.

use crate::fences::Fences;
use crate::lane_order::{self, LaneOrder, Partial, Partials};
use crate::shared::{Shadow, Who};

/// Actors of a block: warps 0 to 31, the place of remote readers, warpgroups, and mbarriers.
pub(crate) const ACTORS: usize = 64;
/// The reader that stands for all other blocks.
pub(crate) const REMOTE_READER: usize = 32;
/// The first of eight warpgroups as readers by `wgmma`.
pub(crate) const WARPGROUPS: usize = REMOTE_READER + 1;
/// The first mbarrier as a writer; mbarriers share actors if there are more than 23.
const MBARRIERS: usize = WARPGROUPS + 8;

/// The actor of the `n`-th mbarrier of a block.
pub(crate) fn mbarrier_actor(n: u32) -> u32 {
    (MBARRIERS + n as usize % (ACTORS - MBARRIERS)) as u32
}

/// An access by a warp of another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Rank of the block in the cluster.
    pub(crate) rank: u32,
    pub(crate) who: Who,
    /// The warp's clock then.
    pub(crate) clock: u32,
}

/// What is known at some point: clocks of all actors of all blocks of a cluster, and those of them that are fenced for the
/// asynchronous proxy. Empty if nothing is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Knowledge {
    seen: Vec<[u32; ACTORS]>,
    fenced: Vec<[u32; ACTORS]>,
    /// Of some lanes of warps, beyond `seen`; empty unless lanes are checked.
    some: Vec<Partials>,
}

fn raise(to: &mut [u32], from: &[u32]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t = (*t).max(*f);
    }
}

impl Knowledge {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        seen: Vec::new(),
        fenced: Vec::new(),
        some: Vec::new(),
    };

    /// Whether nothing is known.
    pub(crate) fn is_none(&self) -> bool {
        self.seen.is_empty() && self.some.is_empty()
    }

    /// Adds what is known in `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        let blank = [0; ACTORS];
        for (to, from) in [
            (&mut self.seen, &other.seen),
            (&mut self.fenced, &other.fenced),
        ] {
            to.resize(to.len().max(from.len()), blank);
            for (t, f) in to.iter_mut().zip(from) {
                raise(t, f);
            }
        }
        self.add_some(&other.some);
    }

    /// Adds what is known of some lanes, by rank.
    fn add_some(&mut self, some: &[Partials]) {
        let rows = self.some.len().max(some.len());
        self.some.resize(rows, [Partial::default(); 32]);
        for ((to, from), seen) in self.some.iter_mut().zip(some).zip(&self.seen) {
            lane_order::add(to, from, seen);
        }
    }

    /// Adds that actor `actor` of block `rank` has come to `clock`.
    pub(crate) fn add_clock(&mut self, rank: usize, actor: u32, clock: u32) {
        let rows = self.seen.len().max(rank + 1);
        self.seen.resize(rows, [0; ACTORS]);
        let c = &mut self.seen[rank][actor as usize & 63];
        *c = (*c).max(clock);
    }
}

/// What the warps of a block know besides the clocks of their own block.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// The block's rank in its cluster.
    rank: usize,
    blocks: usize,
    /// Whether proxies matter.
    proxies: bool,
    /// By warp and rank, the own one included: fenced clocks.
    fenced: Vec<Vec<[u32; ACTORS]>>,
    /// By warp and rank: clocks of the actors of other blocks.
    far: Vec<Vec<[u32; ACTORS]>>,
    /// Clocks of the actors above the warps.
    own: Vec<u32>,
    /// What orders lanes, if that is checked.
    pub(crate) lanes: Option<Box<LaneOrder>>,
    /// What fences leave for relaxed operations, if the kernel has some.
    pub(crate) fences: Option<Box<Fences>>,
}

impl Clocks {
    /// For block `rank` of `blocks`; `proxies` says whether the kernel has asynchronous operations.
    pub(crate) fn new(rank: usize, blocks: usize, proxies: bool) -> Self {
        let table = |is: bool| {
            let rows = if is { 32 } else { 0 };
            vec![vec![[0; ACTORS]; blocks]; rows]
        };
        Self {
            rank,
            blocks,
            proxies,
            fenced: table(proxies),
            far: table(blocks > 1),
            own: vec![0; ACTORS],
            lanes: None,
            fences: None,
        }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        for row in self.fenced.iter_mut().chain(&mut self.far) {
            row.fill([0; ACTORS]);
        }
        self.own.fill(0);
        if let Some(lanes) = &mut self.lanes {
            lanes.reset();
        }
        if let Some(fences) = &mut self.fences {
            fences.reset();
        }
    }

    /// What `warp` knows of some lanes of block `rank`.
    pub(crate) fn some(&self, warp: usize, rank: usize) -> Option<&Partials> {
        self.lanes.as_ref().map(|order| order.known(warp, rank))
    }

    /// Whether warp `warp` is ordered after what another block did.
    pub(crate) fn has_seen(&self, warp: usize, other: &Remote) -> bool {
        self.far
            .get(warp)
            .and_then(|rows| rows.get(other.rank as usize))
            .is_some_and(|row| row[other.who.warp() as usize & 63] >= other.clock)
            || lane_order::covers(self.some(warp, other.rank as usize), other.who, other.clock)
    }

    /// How far warp `warp` has seen the clocks of block `rank`, another one.
    pub(crate) fn far(&self, warp: usize, rank: usize) -> [u32; ACTORS] {
        let rows = self.far.get(warp).and_then(|rows| rows.get(rank));
        rows.copied().unwrap_or([0; ACTORS])
    }

    /// The clocks of block `rank` that warp `warp` knows to be fenced for the asynchronous proxy.
    pub(crate) fn fenced(&self, warp: usize, rank: usize) -> [u32; ACTORS] {
        let rows = self.fenced.get(warp).and_then(|rows| rows.get(rank));
        rows.copied().unwrap_or([u32::MAX; ACTORS])
    }

    /// The block's rank in its cluster.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The order of lanes for a block with so many units of shared memory and warps.
    pub(crate) fn lane_order(&self, units: usize, warps: usize) -> LaneOrder {
        LaneOrder::new(units, warps, self.blocks)
    }

    /// A new clock of `actor`, one that is no warp.
    pub(crate) fn advance(&mut self, actor: u32) -> u32 {
        let clock = &mut self.own[actor as usize & 63];
        *clock += 1;
        *clock
    }
}

impl Shadow {
    /// Adds all that `warp` knows to `to`.
    pub(crate) fn give(&self, warp: usize, to: &mut Knowledge) {
        let (warp, c) = (warp & 31, &self.clocks);
        to.seen.resize(c.blocks, [0; ACTORS]);
        if let Some(far) = c.far.get(warp) {
            for (t, f) in to.seen.iter_mut().zip(far) {
                raise(t, f);
            }
        }
        raise(&mut to.seen[c.rank], &self.seen[warp]);
        if let Some(fenced) = c.fenced.get(warp) {
            to.fenced.resize(c.blocks, [0; ACTORS]);
            for (t, f) in to.fenced.iter_mut().zip(fenced) {
                raise(t, f);
            }
        }
        if let Some(order) = &c.lanes {
            let some: Vec<_> = (0..c.blocks).map(|r| *order.known(warp, r)).collect();
            to.add_some(&some);
        }
    }

    /// Adds what `warp` knows to `to`, where one lane of it releases: of the other lanes only what comes before the lanes were last ordered.
    pub(crate) fn give_lane(&self, warp: usize, lane: usize, to: &mut Knowledge) {
        let (warp, c) = (warp & 31, &self.clocks);
        let Some(order) = &c.lanes else {
            return self.give(warp, to);
        };
        let mut known = Knowledge::NONE;
        self.give(warp, &mut known);
        let now = std::mem::replace(&mut known.seen[c.rank][warp], order.since(warp) - 1);
        let mut some = vec![[Partial::default(); 32]; c.blocks];
        some[c.rank][warp] = Partial {
            lanes: order.known_lanes(warp, lane),
            clock: now,
        };
        known.add_some(&some);
        to.add(&known);
    }

    /// Adds to `to` the asynchronous operations that `warp` knows to be complete: what a relaxed arrival passes on. Such an arrival orders no access by a thread, so
    /// that nothing is said of warps. But a `wgmma` that `wgmma.wait_group` has waited for has read its matrices, and a copy whose phase has completed has
    /// written its bytes; no operation that is issued after somebody has acquired the phase of the arrival can come before them.
    ///
    /// Example: a multicast copy refills a stage that another block gave back by `mbarrier.arrive.relaxed.cluster`. If that block read it by `wgmma` and waited,
    /// the copy is ordered after; if it read it by `ld.shared`, it is not. The reading of a bulk store counts as an access of its warp.
    pub(crate) fn give_completed(&self, warp: usize, to: &mut Knowledge) {
        let (warp, c) = (warp & 31, &self.clocks);
        to.seen.resize(c.blocks, [0; ACTORS]);
        let far = c.far.get(warp).into_iter().flatten();
        for (t, f) in to.seen.iter_mut().zip(far) {
            raise(&mut t[WARPGROUPS..], &f[WARPGROUPS..]);
        }
        raise(
            &mut to.seen[c.rank][WARPGROUPS..],
            &self.seen[warp][WARPGROUPS..],
        );
    }

    /// `warp` learns all of `from`.
    pub(crate) fn take(&mut self, warp: usize, from: &Knowledge) {
        let (warp, c) = (warp & 31, &mut self.clocks);
        if let Some(own) = from.seen.get(c.rank) {
            raise(&mut self.seen[warp], own);
        }
        if let Some(far) = c.far.get_mut(warp) {
            for (t, f) in far.iter_mut().zip(&from.seen) {
                raise(t, f);
            }
        }
        if let Some(fenced) = c.fenced.get_mut(warp) {
            for (t, f) in fenced.iter_mut().zip(&from.fenced) {
                raise(t, f);
            }
        }
        let (far, rank) = (c.far.get(warp).cloned(), c.rank);
        if let Some(order) = &mut c.lanes {
            let mut own = self.seen[warp];
            // Of its own lanes a warp knows what comes before they were last ordered.
            own[warp] = order.since(warp) - 1;
            let rows = order.all_known(warp).iter_mut().zip(&from.some);
            for (r, (to, from)) in rows.enumerate() {
                let row = far.as_ref().and_then(|f| f.get(r));
                let seen = row.filter(|_| r != rank).unwrap_or(&own);
                lane_order::add(to, from, seen);
            }
        }
        self.settle(warp);
    }

    /// `warp` executes a fence between the generic and the asynchronous proxy: all writes that it has seen are fenced now.
    pub(crate) fn fence_proxies(&mut self, warp: usize) {
        let warp = warp & 31;
        if !self.clocks.proxies {
            return;
        }
        let (rank, seen) = (self.clocks.rank, self.seen[warp]);
        let far = self.clocks.far.get(warp).cloned();
        let mut seen = seen;
        for (other, clock) in seen.iter_mut().take(REMOTE_READER).enumerate() {
            let some = self.clocks.some(warp, rank).map_or(0, |s| s[other].clock);
            *clock = (*clock).max(some);
        }
        if let Some(fenced) = self.clocks.fenced.get_mut(warp) {
            for (t, f) in fenced.iter_mut().zip(far.iter().flatten()) {
                raise(t, f);
            }
            raise(&mut fenced[rank], &seen);
        }
        // What the warp writes from now on is not fenced.
        self.tick(warp);
    }
}
