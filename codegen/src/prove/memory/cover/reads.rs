//! Reads of outputs: an element is read by the thread that stores it, or by another thread of its block with a barrier between the read and the store.
//!
//! Blocks, and iterations of a loop, have tiles of their own. Nothing orders a read of one block and a store of another.
//!
//! ```text
//! C = α·A·B + β·C       a thread reads what it stores
//! y[i] = y[i + 128]     refused: the element behind the tile is another block's
//! y reversed in place   by tiles: read, barrier, store; without the barrier refused
//! ```

use super::roles;
use crate::prove::ProofError;
use crate::prove::algebra::numbers::{Mask, Num, Terms};
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Arrives, Trace};
use crate::prove::walk::memory::GlobalAccess;
use crate::quick::QuickSet;

/// The stores of one tile by the same threads: those whose coordinates differ by numbers alone.
struct Tile {
    terms: Vec<Terms>,
    active: Mask,
    /// The first coordinate along each mode, and the last one.
    ends: Vec<(i64, i64)>,
}

/// Each read of an output is of what its thread stores, or of what another thread of the block stores at another time. `loads` and `stores` are of that output.
pub(super) fn own(
    trace: &mut Trace,
    output: &str,
    loads: &[&GlobalAccess],
    stores: &[&GlobalAccess],
) -> Result<(), ProofError> {
    let Some(first) = stores.first().filter(|_| !loads.is_empty()) else {
        return Ok(());
    };
    let mut tiles: Vec<Tile> = Vec::new();
    // Elements of each thread, and the number of their tile.
    let mut stored: QuickSet<(Vec<Num>, usize)> = QuickSet::default();
    for store in stores {
        let terms = terms(&store.coordinates);
        let active = store.facts.active;
        let known = |tile: &Tile| tile.terms == terms && tile.active == active;
        let known = tiles.iter().position(known);
        let number = known.unwrap_or(tiles.len());
        if known.is_none() {
            let ends = vec![(i64::MAX, i64::MIN); terms.len()];
            tiles.push(Tile {
                terms,
                active,
                ends,
            });
        }
        for place in elements(&store.coordinates, store.width) {
            for (end, at) in tiles[number].ends.iter_mut().zip(&place) {
                let (least, most) = at.range_of(active).unwrap_or(*end);
                *end = (end.0.min(least), end.1.max(most));
            }
            stored.insert((place, number));
        }
    }
    for load in loads {
        let of_others = "another block or iteration has that element; read it from an input, or store to another output";
        let refused = |reason: String| ProofError::Overwritten {
            access: load.name.clone(),
            output: output.to_owned(),
            reason,
        };
        // Threads do not wait for each other's copies, so that a barrier orders no copy before the store of another thread.
        let asynchronous = match &load.arrives {
            Arrives::Now => false,
            Arrives::At(wait) if stores.iter().all(|s| wait.is_between([load, s])) => true,
            _ => {
                return Err(refused(
                    "an asynchronous copy reads it, and the wait for that copy is not known to be between the two: wait for it before the store".to_owned(),
                ));
            }
        };
        let active = load.facts.active;
        let coordinates = roles::coordinates_in(trace, load, &first.iterations);
        let terms = terms(&coordinates);
        let same = |&number: &usize| tiles[number].terms == terms;
        let numbers: Vec<usize> = (0..tiles.len()).filter(same).collect();
        for place in elements(&coordinates, load.width) {
            let by_all = |&&number: &&usize| {
                let all = tiles[number].active;
                all == active || all.is_full()
            };
            let mut own = numbers.iter().filter(by_all);
            if own.any(|&number| stored.contains(&(place.clone(), number))) {
                continue;
            }
            let inside = place.iter().enumerate().all(|(mode, at)| {
                let ends = numbers.iter().map(|&number| tiles[number].ends[mode]);
                let ends = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
                ends.is_some_and(|end| {
                    let (least, most) = at.range_of(active).unwrap_or(end);
                    end.0 <= least && most <= end.1
                })
            });
            if !inside {
                return Err(refused(of_others.to_owned()));
            }
            if asynchronous {
                return Err(refused(
                    "an asynchronous copy of one thread reads what another thread stores: let each thread copy what it stores, or read it by a load".to_owned(),
                ));
            }
            let meetings = &trace.meetings;
            let met = |s: &GlobalAccess| meetings.iter().any(|m| m.is_between([load, s]));
            if stores.iter().all(|s| met(s)) {
                continue;
            }
            let list = active.list();
            let stores_it = |thread: usize| stores.iter().any(|s| has(s, thread, &terms, &place));
            let other = |&thread: &usize| list[thread] && !stores_it(thread);
            if let Some(thread) = (0..list.len()).find(other) {
                return Err(refused(format!(
                    "thread {thread} reads what another thread stores, and no barrier is between the two: put one there, or let each thread read what it stores"
                )));
            }
        }
    }
    Ok(())
}

/// A store of a tile has a thread's element.
fn has(store: &GlobalAccess, thread: usize, of: &[Terms], place: &[Num]) -> bool {
    store.facts.active.list()[thread]
        && terms(&store.coordinates) == of
        && elements(&store.coordinates, store.width).any(|own| {
            let mut both = own.iter().zip(place);
            both.all(|(a, b)| a.at(thread) == b.at(thread))
        })
}

fn terms(coordinates: &[Lin]) -> Vec<Terms> {
    coordinates.iter().map(|c| c.terms).collect()
}

/// What is added to the terms along each mode, for each element of an access.
fn elements(coordinates: &[Lin], width: i64) -> impl Iterator<Item = Vec<Num>> {
    (0..width).map(|v| {
        let mut place: Vec<Num> = coordinates.iter().map(|c| c.k).collect();
        if let Some(last) = place.last_mut() {
            *last = last.plus(v);
        }
        place
    })
}
