//! Outputs that boxes store: on a path that has boxes they are the block's tile, each element once. A box is cut off at the ends of the output by the copy
//! itself, so that nothing guards it.
//!
//! Other paths may store the tile by threads, which share it out in another way: what they ask of an element is that exactly one of its store and its box is
//! made.

use std::rc::Rc;

use super::{Case, Cut, Output, elements_of};
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::bulk::SentBox;
use crate::prove::walk::memory::GlobalAccess;

/// The boxes of an output, all on the same paths.
pub(super) struct Boxes<'a> {
    pub(super) all: Vec<&'a SentBox>,
}

impl<'a> Boxes<'a> {
    /// Those that go to an output, in the iterations of its first box.
    pub(super) fn of(all: &'a [SentBox], stores: &[&GlobalAccess]) -> Result<Self, String> {
        let all: Vec<&SentBox> = all.iter().collect();
        let same = |b: &&SentBox| {
            let first = all[0];
            b.path == first.path && b.stays == first.stays && b.iterations == first.iterations
        };
        if !all.iter().all(same) {
            return Err("boxes of it are stored on different paths".to_owned());
        }
        if let (Some(b), Some(s)) = (all.first(), stores.first())
            && b.iterations != s.iterations
        {
            return Err("boxes and stores of it are in different loops".to_owned());
        }
        Ok(Self { all })
    }

    /// What must hold for them to be stored.
    pub(super) fn when(&self) -> Option<Vec<Rc<Formula>>> {
        let first = self.all.first()?;
        Some(first.path.iter().chain(&first.stays).cloned().collect())
    }

    /// The loops that they are in, and where the first begins.
    pub(super) fn first(&self) -> Option<(&'a [Sym], &'a Vec<Lin>)> {
        self.all
            .first()
            .map(|b| (&b.iterations[..], &b.coordinates))
    }

    /// Behind the last element of a tile that begins at 0.
    pub(super) fn end(&self, mode: usize) -> i64 {
        let last = |(at, extent): (&Lin, i64)| at.k.range().1 + extent;
        self.along(mode).map(last).max().unwrap_or(0)
    }

    /// The first coordinate along a mode of each, and how many elements follow.
    pub(super) fn along(&self, mode: usize) -> impl Iterator<Item = (&'a Lin, i64)> {
        self.all.iter().map(move |b| {
            let leading = b.coordinates.len() - 2;
            let extent = mode.checked_sub(leading).map_or(1, |i| b.extents[i]);
            (&b.coordinates[mode], extent)
        })
    }
}

impl Output<'_> {
    /// Together, boxes have each element of the tile once, and nothing of another block's.
    pub(super) fn boxed_once(
        &mut self,
        boxes: &Boxes<'_>,
        cuts: &[Cut],
        here: &[&Case],
    ) -> Result<(), String> {
        if boxes.all.is_empty() {
            return Ok(());
        }
        if here.iter().any(|case| case.moved) {
            return Err("a tile that is moved back stores what another block has".to_owned());
        }
        let sizes = elements_of(cuts);
        let mut taken = vec![false; sizes.iter().product::<i64>() as usize];
        for b in &boxes.all {
            let coordinates = b.coordinates.iter();
            let locals: Result<Vec<_>, String> = coordinates
                .zip(here)
                .enumerate()
                .map(|(mode, (at, case))| self.local(at, case, mode))
                .collect();
            let locals = locals?;
            let list = b.threads.list();
            for thread in (0..list.len()).filter(|&t| list[t]) {
                let [rows, columns] = b.extents;
                for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let mut at = 0;
                    for (mode, (&n, local)) in sizes.iter().zip(&locals).enumerate() {
                        let within = match sizes.len() - mode {
                            1 => j,
                            2 => i,
                            _ => 0,
                        };
                        let k = local.at(thread) + within;
                        if !(0..n).contains(&k) {
                            return Err(format!(
                                "the box of thread {thread} has coordinate {k} of a tile of {n} along mode {mode}"
                            ));
                        }
                        at = at * n + k;
                    }
                    if std::mem::replace(&mut taken[at as usize], true) {
                        return Err(format!("two boxes store element {at} of the tile"));
                    }
                }
            }
        }
        match taken.iter().position(|&taken| !taken) {
            Some(at) => Err(format!("no box stores element {at} of the tile")),
            None => Ok(()),
        }
    }
}
