//! What orders the lanes of a warp, and what is known of some lanes only.
//!
//! Instructions do not order lanes (PTX ISA, section 8.9): `bar.warp.sync`, the barriers of a block and of a cluster do. The clock of a warp is one number
//! for all its lanes, so that two things are missing in a vector of clocks: which accesses of a warp its own lanes may rely on, and what an arrival at an mbarrier
//! releases if not all lanes arrive. This module has both, for runs with `lane_races`.
//!
//! `bar.warp.sync` of some lanes orders these among themselves: per warp there may be a table of what each lane knows of each other one. Example: after
//! `bar.warp.sync 0xffff` by lanes 0 to 15, lane 0 may read what lane 15 wrote, not what lane 16 did.
//!
//! Per warp: *since*, the clock from which on nothing has ordered its lanes. A lane that arrives releases what all lanes did before *since*, and what it did
//! itself up to now. Who waits for the phase then knows of that warp a clock for all lanes, in [`crate::shared::Shadow::seen`], and beyond it a [`Partial`]: a mask of lanes and a later
//! clock. Several arrivals add their masks and keep the later clock, so that too much may be taken for known, never too little.
//!
//! Example: lanes 0 to 31 read a stage at clock 5, and lane 0 arrives for the warp with no `bar.warp.sync` between; *since* is 4. The producer learns 3 for all lanes and
//! ({0}, 5): its write to a word that lane 0 alone has read is ordered, to any other word it is a race.

use crate::proxies::ACTORS;
use crate::shared::Who;

/// Lanes of a warp whose accesses up to a clock are known, besides those of all its lanes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Partial {
    pub(crate) lanes: u32,
    pub(crate) clock: u32,
}

/// What is known of some lanes of the 32 warps of a block.
pub(crate) type Partials = [Partial; 32];

impl Partial {
    /// Whether accesses of `lanes` up to `clock` are known.
    pub(crate) fn covers(self, lanes: u32, clock: u32) -> bool {
        clock <= self.clock && lanes & !self.lanes == 0
    }

    fn add(&mut self, other: Self) {
        self.lanes |= other.lanes;
        self.clock = self.clock.max(other.clock);
    }

    /// Nothing is left of it if `seen` is known of all lanes.
    fn beyond(self, seen: u32) -> Self {
        if self.clock <= seen {
            Self::default()
        } else {
            self
        }
    }
}

/// Whether what the lane of `who`, a warp, did up to `clock` is in `some`.
pub(crate) fn covers(some: Option<&Partials>, who: Who, clock: u32) -> bool {
    let of = some.and_then(|s| s.get(who.warp() as usize));
    of.is_some_and(|p| p.covers(1 << who.lane(), clock))
}

/// Adds `from` to `to`, where `seen` is what is known of all lanes now.
pub(crate) fn add(to: &mut Partials, from: &Partials, seen: &[u32; ACTORS]) {
    for ((t, f), s) in to.iter_mut().zip(from).zip(seen) {
        *t = t.beyond(*s);
        t.add(f.beyond(*s));
    }
}

/// The state of a block.
#[derive(Debug)]
pub(crate) struct LaneOrder {
    /// By warp: the clock from which on its lanes are not ordered.
    since: [u32; 32],
    /// By warp, if some of its lanes have been ordered since: up to which clock each lane knows what each other lane did.
    parts: Vec<Option<Box<[[u32; 32]; 32]>>>,
    /// By warp and rank: what it knows of some lanes of the block with that rank.
    known: Vec<Vec<Partials>>,
    /// By unit and warp: the lanes that have read, and `since` then.
    readers: Vec<(u32, u32)>,
    warps: usize,
}

impl LaneOrder {
    pub(crate) fn new(units: usize, warps: usize, blocks: usize) -> Self {
        Self {
            since: [1; 32],
            parts: vec![None; 32],
            known: vec![vec![[Partial::default(); 32]; blocks]; 32],
            readers: vec![(0, 0); units * warps],
            warps,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.since = [1; 32];
        self.parts.fill(None);
        for row in &mut self.known {
            row.fill([Partial::default(); 32]);
        }
        self.readers.fill((0, 0));
    }

    /// The lanes of `warp` are ordered up to now, before `clock`.
    pub(crate) fn order(&mut self, warp: usize, clock: u32) {
        self.since[warp & 31] = clock;
        self.parts[warp & 31] = None;
    }

    /// Lanes `lanes` of `warp` are ordered among themselves up to `clock`: what one of them knows, all do.
    pub(crate) fn order_some(&mut self, warp: usize, lanes: u32, clock: u32) {
        let part = self.parts[warp & 31].get_or_insert_with(|| Box::new([[0; 32]; 32]));
        let is_in = |l: usize| lanes >> l & 1 == 1;
        let mut all = [0; 32];
        for (_, row) in part.iter().enumerate().filter(|(l, _)| is_in(*l)) {
            for (a, r) in all.iter_mut().zip(row) {
                *a = (*a).max(*r);
            }
        }
        for (_, a) in all.iter_mut().enumerate().filter(|(l, _)| is_in(*l)) {
            *a = clock;
        }
        for (_, row) in part.iter_mut().enumerate().filter(|(l, _)| is_in(*l)) {
            *row = all;
        }
    }

    /// Whether lane `me` of `warp` knows what lane `other` did up to `clock`, although not all lanes have been ordered since.
    pub(crate) fn is_known(&self, warp: usize, me: u32, other: u32, clock: u32) -> bool {
        let part = self.parts[warp & 31].as_ref();
        part.is_some_and(|p| p[me as usize & 31][other as usize & 31] >= clock)
    }

    /// The lanes of `warp` of which lane `me` knows something since all have been ordered, itself included.
    pub(crate) fn known_lanes(&self, warp: usize, me: usize) -> u32 {
        let part = self.parts[warp & 31].as_ref();
        let known = part.map_or(0, |p| {
            let row = p[me & 31].iter().enumerate();
            row.fold(0, |m, (l, clock)| m | u32::from(*clock != 0) << l)
        });
        known | 1 << (me & 31)
    }

    pub(crate) fn since(&self, warp: usize) -> u32 {
        self.since[warp & 31]
    }

    /// What `warp` knows of some lanes of the block `rank`.
    pub(crate) fn known(&self, warp: usize, rank: usize) -> &Partials {
        &self.known[warp & 31][rank]
    }

    /// The same of all blocks, by rank.
    pub(crate) fn all_known(&mut self, warp: usize) -> &mut [Partials] {
        &mut self.known[warp & 31]
    }

    /// Lane `lane` of `warp` reads unit `u`.
    pub(crate) fn note_reader(&mut self, u: usize, warp: usize, lane: u32) {
        let since = self.since(warp);
        if let Some(entry) = self.readers.get_mut(u * self.warps + warp) {
            if entry.1 != since {
                *entry = (0, since);
            }
            entry.0 |= 1 << lane;
        }
    }

    /// The lanes of `warp` that have read unit `u` since the warp's lanes were ordered.
    pub(crate) fn readers(&self, u: usize, warp: usize) -> u32 {
        let entry = self.readers.get(u * self.warps + warp);
        entry.filter(|e| e.1 == self.since(warp)).map_or(0, |e| e.0)
    }
}
