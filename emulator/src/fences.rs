//! Fences between threads, and what they make of relaxed operations (PTX ISA, sections 8.8, 8.9 and 9.7.13.4).
//!
//! A relaxed arrival orders nothing by itself. Behind a fence of the same thread it makes a release pattern: it passes on what the thread knew at the fence. A wait
//! that is relaxed makes an acquire pattern with a later fence of the same thread, which learns what the wait has found. Either fence counts only for
//! threads that its scope includes, and so does the relaxed operation: with `.cta` the threads of its block, with any other scope the cluster, beyond
//! which nothing is recorded.
//!
//! So each warp has, by scope and lane, what its lanes knew at their last fence that releases, and what their relaxed waits have found since their last fence that acquires.
//!
//! Strong loads, stores and atomics of shared memory make the same patterns. For each word there is what its last store has released, and with it what the atomics
//! behind that have: they are one release sequence, also those that are relaxed, which pass on what they have found. Who acquires the word, by itself or by a
//! later fence, learns all of it. Example: 31 warps count themselves by `atom.add.release`, the last of them adds 100 by `atom.add.relaxed`; who then loads 131
//! by `ld.acquire` has seen what all of them did before.
//!
//! Example: lane 0 reads a stage at clock 5, executes `fence.acq_rel.cluster` (what it knows is kept, the clock is 6), reads once more at clock 6 and arrives by
//! `mbarrier.arrive.relaxed.cluster`. Who waits for the phase has seen clock 5: the first read is ordered before a copy into the stage, the second is not.

use std::collections::HashMap;

use crate::ir::{Fence, Order, Scope};
use crate::proxies::Knowledge;
use crate::shared::Shadow;

/// What is known by lanes: the sets are disjoint.
#[derive(Debug, Default)]
struct ByLane(Vec<(u32, Knowledge)>);

impl ByLane {
    /// Nothing is known by `lanes`.
    fn clear(&mut self, lanes: u32) {
        self.0.retain_mut(|(set, _)| {
            *set &= !lanes;
            *set != 0
        });
    }

    /// Adds `known` to what `lanes` know.
    fn add(&mut self, lanes: u32, known: &Knowledge) {
        let mut rest = lanes;
        for i in 0..self.0.len() {
            let (inside, outside) = (self.0[i].0 & lanes, self.0[i].0 & !lanes);
            if inside == 0 {
                continue;
            }
            if outside != 0 {
                let before = self.0[i].1.clone();
                self.0.push((outside, before));
            }
            self.0[i].0 = inside;
            self.0[i].1.add(known);
            rest &= !inside;
        }
        if rest != 0 {
            self.0.push((rest, known.clone()));
        }
    }

    /// Adds to `to` what one of `lanes` knows.
    fn give(&self, lanes: u32, to: &mut Knowledge) {
        for (_, known) in self.0.iter().filter(|(set, _)| set & lanes != 0) {
            to.add(known);
        }
    }
}

/// What a warp's fences and relaxed waits have left, by scope.
#[derive(Debug, Default)]
struct OfWarp {
    /// At the last fence of each lane that releases to the scope.
    released: [ByLane; 2],
    /// By relaxed waits: what a fence of the scope, or a wider one, acquires.
    found: [ByLane; 2],
}

/// The state of a block.
#[derive(Debug)]
pub(crate) struct Fences {
    warps: Vec<OfWarp>,
    /// By word of shared memory: what those know who have released it.
    words: HashMap<u32, Knowledge>,
}

/// What a strong access does with its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strong {
    Load,
    Store,
    /// Reads and writes: one more link of a release sequence.
    Update,
}

impl Fences {
    pub(crate) fn new() -> Self {
        Self {
            warps: (0..32).map(|_| OfWarp::default()).collect(),
            words: HashMap::new(),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.warps.fill_with(OfWarp::default);
        self.words.clear();
    }
}

impl Shadow {
    /// `lanes` of `warp` execute `fence`.
    pub(crate) fn fence(&mut self, warp: usize, fence: Fence, lanes: u32) {
        let warp = warp & 31;
        let Some(mut fences) = self.clocks.fences.take() else {
            return;
        };
        let OfWarp { released, found } = &mut fences.warps[warp];
        let scopes = ..=fence.scope as usize;
        if fence.acquires {
            let mut known = Knowledge::NONE;
            for found in &mut found[scopes] {
                found.give(lanes, &mut known);
                found.clear(lanes);
            }
            if !known.is_none() {
                self.take(warp, &known);
            }
        }
        if fence.releases {
            for released in &mut released[scopes] {
                released.clear(lanes);
            }
            for (known, set) in self.by_lane(warp, lanes) {
                for released in &mut released[scopes] {
                    released.add(set, &known);
                }
            }
            // What the warp does from now on comes after the fence.
            self.tick(warp);
        }
        self.clocks.fences = Some(fences);
    }

    /// What each of `lanes` of `warp` knows, by lane or, if they count as ordered, for all of them.
    fn by_lane(&self, warp: usize, lanes: u32) -> Vec<(Knowledge, u32)> {
        let sets: Vec<u32> = if self.lanes {
            let each = (0..32).map(|l| lanes & 1 << l);
            each.filter(|set| *set != 0).collect()
        } else {
            vec![lanes]
        };
        let known = |set: u32| {
            let mut known = Knowledge::NONE;
            self.give_lane(warp, set.trailing_zeros() as usize, &mut known);
            (known, set)
        };
        sets.into_iter().map(known).collect()
    }

    /// Adds to `to` what a relaxed arrival of `lanes` of `warp` passes on to threads of `scope`: what they knew at their last fences.
    pub(crate) fn give_fenced(&self, warp: usize, scope: Scope, lanes: u32, to: &mut Knowledge) {
        if let Some(fences) = &self.clocks.fences {
            fences.warps[warp & 31].released[scope as usize].give(lanes, to);
        }
    }

    /// Strong accesses of `lanes` of `warp` to the word at byte `at` of the block's shared memory, one after the other.
    pub(crate) fn synchronise(
        &mut self,
        warp: usize,
        lanes: u32,
        at: u32,
        access: Strong,
        order: Order,
    ) {
        let word = at / 4;
        let Some(fences) = &self.clocks.fences else {
            return;
        };
        let before = fences.words.get(&word).cloned();
        if let (Some(known), Strong::Load | Strong::Update) = (&before, access) {
            if order.acquires {
                self.take(warp, known);
            } else {
                self.find(warp, Scope::Block, lanes, known);
            }
        }
        if access == Strong::Load {
            return;
        }
        let mut known = match access {
            Strong::Update => before.unwrap_or(Knowledge::NONE),
            _ => Knowledge::NONE,
        };
        if order.releases {
            for (of, _) in self.by_lane(warp, lanes) {
                known.add(&of);
            }
            // What the warp does from now on is not released.
            self.tick(warp);
        } else {
            self.give_fenced(warp, Scope::Block, lanes, &mut known);
        }
        if let Some(fences) = &mut self.clocks.fences {
            if known.is_none() {
                fences.words.remove(&word);
            } else {
                fences.words.insert(word, known);
            }
        }
    }

    /// A relaxed wait by `lanes` of `warp` has found `known`, which a fence of `scope` acquires.
    pub(crate) fn find(&mut self, warp: usize, scope: Scope, lanes: u32, known: &Knowledge) {
        if let Some(fences) = &mut self.clocks.fences {
            fences.warps[warp & 31].found[scope as usize].add(lanes, known);
        }
    }
}
