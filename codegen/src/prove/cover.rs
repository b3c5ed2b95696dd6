//! Outputs: the grid writes every element exactly once.
//!
//! Along a mode that the grid cuts into tiles, a coordinate is `tile·index + local`, where the blocks of a launch have each index once; along
//! any other it is local. The local coordinates of all threads and stores must take each element of the tile exactly once, and a guard must leave
//! out just what is beyond the output. Then the block of index b writes what of `[tile·b, tile·(b + 1))` is inside, and the blocks that the
//! launch contract has write all of it. Where branches decide what is stored, each path must write all.

use std::rc::Rc;

use super::ProofError;
use super::execute::Trace;
use super::formula::Formula;
use super::memory::GlobalAccess;
use super::value::Lin;
use crate::ir::{Entry, Role};

/// The outputs that are written exactly once; an output of which that cannot be shown is an error.
pub(super) fn covered(entry: &Entry, trace: &Trace) -> Result<Vec<String>, ProofError> {
    let mut all = Vec::new();
    for (number, buffer) in entry.buffers.iter().enumerate() {
        if buffer.role != Role::Output {
            continue;
        }
        let stores: Vec<&GlobalAccess> = trace
            .global
            .iter()
            .filter(|a| a.buffer == number && a.store)
            .collect();
        let refuse = |reason: String| ProofError::Coverage {
            output: buffer.name.clone(),
            reason,
        };
        if stores.is_empty() {
            return Err(refuse("nothing is stored".to_owned()));
        }
        // Each path through the branches must write all, and there must be a store on every path.
        let mut paths: Vec<(Vec<Rc<Formula>>, Vec<&GlobalAccess>)> = Vec::new();
        for s in stores {
            match paths.iter_mut().find(|(path, _)| *path == s.path) {
                Some((_, stores)) => stores.push(s),
                None => paths.push((s.path.clone(), vec![s])),
            }
        }
        let taken: Vec<&[Rc<Formula>]> = paths.iter().map(|(path, _)| &path[..]).collect();
        if !every_path(&taken) {
            return Err(refuse("on some path nothing is stored".to_owned()));
        }
        for (_, stores) in &paths {
            tile(entry, trace, number, stores).map_err(&refuse)?;
        }
        all.push(buffer.name.clone());
    }
    Ok(all)
}

/// Whether one of the paths is taken whatever branches decide.
fn every_path(paths: &[&[Rc<Formula>]]) -> bool {
    if paths.iter().any(|path| path.is_empty()) {
        // Stores outside of all branches; others beside them would be second ones.
        return paths.len() == 1;
    }
    let Some(first) = paths.first().map(|path| Rc::clone(&path[0])) else {
        return false;
    };
    let not = first.not();
    let side = |f: &Rc<Formula>| -> Vec<&[Rc<Formula>]> {
        let here = paths.iter().filter(|path| path[0] == *f);
        here.map(|path| &path[1..]).collect()
    };
    let (yes, no) = (side(&first), side(&not));
    yes.len() + no.len() == paths.len() && every_path(&yes) && every_path(&no)
}

fn tile(
    entry: &Entry,
    trace: &Trace,
    number: usize,
    stores: &[&GlobalAccess],
) -> Result<(), String> {
    let rank = stores[0].coordinates.len();
    // Which count of tiles runs along which mode.
    let mut cuts: Vec<Option<i64>> = Vec::new();
    let mut used = vec![false; trace.tilings.len()];
    let mut size = 1i64;
    for mode in 0..rank {
        let first = &stores[0].coordinates[mode];
        let extent = trace.extents.get(&(number, mode));
        if first.terms.is_empty() {
            let Some(n) = extent.and_then(Lin::as_constant) else {
                return Err(format!("no axis of the grid runs along mode {mode}"));
            };
            size *= n;
            cuts.push(None);
            continue;
        }
        let along = trace.tilings.iter().position(|(index, covers, tile)| {
            index.scale(*tile).terms == first.terms && Some(covers) == extent
        });
        let Some(along) = along else {
            return Err(format!("mode {mode} is not cut into tiles by the grid"));
        };
        let n = trace.tilings[along].2;
        used[along] = true;
        size *= n;
        cuts.push(Some(n));
    }
    // Blocks that differ along an axis differ in a tile.
    for (axis, &most) in entry.grid_limit.iter().enumerate() {
        let tilings = trace.tilings.iter().zip(&used);
        let counted = tilings.filter(|(_, used)| **used);
        if most > 1
            && !counted
                .clone()
                .any(|((i, _, _), _)| i.mentions(trace.blocks[axis]))
        {
            return Err("blocks along another axis write the same".to_owned());
        }
    }
    let mut owner: Vec<Option<(usize, usize)>> = vec![None; size as usize];
    for (i, s) in stores.iter().enumerate() {
        if s.in_loop {
            return Err("it is stored in a loop".to_owned());
        }
        // The guard is what is inside, and nothing else.
        let stays = s.stays.iter().flat_map(Formula::conjuncts);
        for f in s.guard.conjuncts().into_iter().chain(stays) {
            let Formula::Ge(left) = &*f else {
                return Err("a store is guarded by more than the output's bounds".to_owned());
            };
            let bound = (0..rank).any(|mode| {
                let Some(extent) = trace.extents.get(&(number, mode)) else {
                    return false;
                };
                let width = if mode == rank - 1 { s.width } else { 1 };
                let room = extent.sub(&s.coordinates[mode]).plus(-1);
                **left == room || **left == room.plus(1 - width)
            });
            if !bound {
                return Err("a store is guarded by more than the output's bounds".to_owned());
            }
        }
        for mode in 0..rank {
            let same = s.coordinates[mode].terms == stores[0].coordinates[mode].terms;
            if !same {
                return Err(format!(
                    "stores differ by more than numbers along mode {mode}"
                ));
            }
        }
        for thread in 0..trace.threads {
            if !s.facts.active[thread] {
                continue;
            }
            for v in 0..s.width {
                let mut at = 0;
                for mode in 0..rank {
                    let mut local = s.coordinates[mode].k.at(thread);
                    if mode == rank - 1 {
                        local += v;
                    }
                    let n = match cuts[mode] {
                        Some(n) => n,
                        None => trace
                            .extents
                            .get(&(number, mode))
                            .and_then(Lin::as_constant)
                            .unwrap_or(1),
                    };
                    if local < 0 || local >= n {
                        return Err(format!(
                            "thread {thread} stores coordinate {local} of a tile of {n} along mode {mode}"
                        ));
                    }
                    at = at * n + local;
                }
                if let Some((_, other)) = owner[at as usize].replace((i, thread)) {
                    return Err(format!(
                        "threads {other} and {thread} both store element {at} of the tile"
                    ));
                }
            }
        }
    }
    match owner.iter().position(Option::is_none) {
        Some(at) => Err(format!("no thread stores element {at} of the tile")),
        None => Ok(()),
    }
}
