//! Fences between threads, and what they make of relaxed operations (PTX ISA, sections 8.8, 8.9 and 9.7.13.4).
//!
//! A relaxed arrival orders nothing by itself. Behind a fence of the same thread it makes a release pattern: it passes on what the thread knew at the fence. A wait
//! that is relaxed makes an acquire pattern with a later fence of the same thread, which learns what the wait has found. Either fence counts only for
//! threads that its scope includes, and so does the relaxed operation: with `.cta` the threads of its block, with any other scope the cluster, beyond
//! which nothing is recorded.
//!
//! So each warp has, by scope and lane, what its lanes knew at their last fence that releases, and what their relaxed waits have found since their last fence that acquires.
//! Plain accesses are ordered with these alone: relaxed loads, stores and atomics of data make no pattern here.
//!
//! Example: lane 0 reads a stage at clock 5, executes `fence.acq_rel.cluster` (what it knows is kept, the clock is 6), reads once more at clock 6 and arrives by
//! `mbarrier.arrive.relaxed.cluster`. Who waits for the phase has seen clock 5: the first read is ordered before a copy into the stage, the second is not.

use crate::ir::{Fence, Scope};
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
pub(crate) struct Fences(Vec<OfWarp>);

impl Fences {
    pub(crate) fn new() -> Self {
        Self((0..32).map(|_| OfWarp::default()).collect())
    }

    pub(crate) fn reset(&mut self) {
        self.0.fill_with(OfWarp::default);
    }
}

impl Shadow {
    /// `lanes` of `warp` execute `fence`.
    pub(crate) fn fence(&mut self, warp: usize, fence: Fence, lanes: u32) {
        let warp = warp & 31;
        let Some(mut fences) = self.clocks.fences.take() else {
            return;
        };
        let OfWarp { released, found } = &mut fences.0[warp];
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
            fences.0[warp & 31].released[scope as usize].give(lanes, to);
        }
    }

    /// A relaxed wait by `lanes` of `warp` has found `known`, which a fence of `scope` acquires.
    pub(crate) fn find(&mut self, warp: usize, scope: Scope, lanes: u32, known: &Knowledge) {
        if let Some(fences) = &mut self.clocks.fences {
            fences.0[warp & 31].found[scope as usize].add(lanes, known);
        }
    }
}
