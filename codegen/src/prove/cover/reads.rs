//! Reads of outputs: an element is read by the thread that stores it, or by another one of its block, which it meets in between.
//!
//! Blocks, and turns of a loop, have tiles of their own. What a block has not got, another one may have stored already, or not: nothing orders the two.
//!
//! ```text
//! C = α·A·B + β·C       a thread reads what it stores
//! y[i] = y[i + 128]     refused: the element behind the tile is another block's
//! y reversed in place   by tiles: read, barrier, store; without the barrier refused
//! ```

use super::roles;
use crate::prove::ProofError;
use crate::prove::execute::Trace;
use crate::prove::memory::GlobalAccess;
use crate::prove::numbers::{Num, Terms};
use crate::quick::QuickMap;

/// The stores of one tile: those whose coordinates differ by numbers alone.
struct Tile {
    terms: Vec<Terms>,
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
    let loads = roles::in_turns_of(trace, loads, &first.turns);
    let mut tiles: Vec<Tile> = Vec::new();
    // An element of each thread in a tile, and a store that has it.
    let mut stored: QuickMap<(Vec<Num>, usize), usize> = QuickMap::default();
    for (i, store) in stores.iter().enumerate() {
        let terms = terms(store);
        let known = tiles.iter().position(|tile| tile.terms == terms);
        let number = known.unwrap_or(tiles.len());
        if known.is_none() {
            let ends = vec![(i64::MAX, i64::MIN); terms.len()];
            tiles.push(Tile { terms, ends });
        }
        for place in elements(store) {
            for (end, at) in tiles[number].ends.iter_mut().zip(&place) {
                let (least, most) = at.range();
                *end = (end.0.min(least), end.1.max(most));
            }
            stored.entry((place, number)).or_insert(i);
        }
    }
    for load in &loads {
        let of_others = "another block or turn has that element; read it from an input, or store to another output";
        let refused = |reason: String| ProofError::Overwritten {
            access: load.name.clone(),
            output: output.to_owned(),
            reason,
        };
        let active = load.facts.active;
        let terms = terms(load);
        let Some(number) = tiles.iter().position(|tile| tile.terms == terms) else {
            return Err(refused(of_others.to_owned()));
        };
        for place in elements(load) {
            let inside = place.iter().zip(&tiles[number].ends).all(|(at, end)| {
                let (least, most) = at.range_of(active).unwrap_or(*end);
                end.0 <= least && most <= end.1
            });
            let key = (place, number);
            let found = stored.get(&key).map(|&i| stores[i].facts.active);
            if found.is_some_and(|all| all == active || all.is_full()) {
                continue;
            }
            if !inside {
                return Err(refused(of_others.to_owned()));
            }
            if stores.iter().all(|s| s.meetings != load.meetings) {
                continue;
            }
            let list = active.list();
            let stores_it = |thread: usize| stores.iter().any(|s| has(s, thread, load, &key.0));
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

/// A thread stores the element that it has of a load.
fn has(store: &GlobalAccess, thread: usize, load: &GlobalAccess, place: &[Num]) -> bool {
    store.facts.active.list()[thread]
        && terms(store) == terms(load)
        && elements(store).any(|own| {
            let mut both = own.iter().zip(place);
            both.all(|(a, b)| a.at(thread) == b.at(thread))
        })
}

fn terms(access: &GlobalAccess) -> Vec<Terms> {
    access.coordinates.iter().map(|c| c.terms).collect()
}

/// What is added to the terms along each mode, for each element of an access.
fn elements(access: &GlobalAccess) -> impl Iterator<Item = Vec<Num>> {
    (0..access.width).map(|v| {
        let mut place: Vec<Num> = access.coordinates.iter().map(|c| c.k).collect();
        if let Some(last) = place.last_mut() {
            *last = last.plus(v);
        }
        place
    })
}
