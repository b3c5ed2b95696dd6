//! Bulk groups: copies from shared to global memory, carried out when their thread waits for them, or when the block ends.
//!
//! Example: a thread copies a tile and commits a group; until `cp.async.bulk.wait_group.read 0` the tile is being read, and a store to it is a finding.

use super::bulk::{Piece, copied, cut, global_place, little, observe};
use super::cluster::units;
use super::combine::combine;
use super::in_flight::{begin_reading, end_reading};
use super::sources::stored;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::Reduction;
use crate::shared::IN_FLIGHT;

/// A copy from shared to global memory that has not been waited for.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) pc: usize,
    pub(crate) lane: u8,
    /// Number of the bulk group of its lane.
    pub(crate) group: u32,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) reduction: Option<Reduction>,
}

/// Reads shared memory and writes global memory: what a store does in the end.
pub(super) fn perform(cx: &Context<'_>, env: &mut Env, w: &Warp, s: &Store) {
    env.published += 1;
    let mut hint = 0;
    let lane = usize::from(s.lane);
    for p in &s.pieces {
        let Some(address) = p.global else { continue };
        let Some(offset) = global_place(cx, env, w, s.pc, lane, address, p.bytes, &mut hint) else {
            continue;
        };
        let mut data = vec![0; p.bytes as usize];
        env.shared.read_bytes(p.shared, &mut data);
        copied(env, s.pc, p.bytes);
        if s.reduction.is_none() {
            observe(cx, env, w, s.pc, lane, address, p.bytes, true);
        }
        let Some(alloc) = cx.memory.locate(address, &mut hint) else {
            continue;
        };
        match s.reduction {
            Some(r) => {
                let bytes = u32::from(r.bytes);
                let guard = (bytes == 8).then(|| cx.atomic_lock.lock());
                for (k, x) in data.chunks_exact(bytes as usize).enumerate() {
                    let place = offset + u64::from(k as u32 * bytes);
                    alloc.update(place, bytes, |old| {
                        cut(combine(r.op, bytes, old, little(x), 0), bytes)
                    });
                }
                drop(guard);
                let site = Site {
                    pc: s.pc,
                    warp: w.index,
                    lanes: 1 << lane,
                    address: Some(address),
                };
                stored(cx, env, site, alloc, (offset, p.bytes));
                if cx.undefined_global {
                    alloc.mark_written(offset, p.bytes);
                }
            }
            None => alloc.write_bytes(offset, &data),
        }
    }
}

/// The bytes of shared memory that a store reads.
fn sources(s: &Store) -> Vec<(u32, u32)> {
    let inside = s.pieces.iter().filter(|p| p.global.is_some());
    inside.map(|p| (p.shared, p.bytes)).collect()
}

/// Registers a store of `w`.
pub(crate) fn begin_store(cx: &Context<'_>, env: &mut Env, w: &mut Warp, s: Store) {
    let issuer = (w.index, 1 << s.lane);
    begin_reading(cx, env, w, s.pc, issuer, sources(&s).into_iter());
    w.stores.push(s);
}

/// `cp.async.bulk.wait_group`.
pub(crate) fn wait(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pending: Option<u32>,
    active: u32,
) {
    let groups = w.bulk_groups;
    let all = std::mem::take(&mut w.stores);
    let (done, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|s| {
        let lane = usize::from(s.lane);
        active >> lane & 1 == 1 && pending.is_none_or(|n| s.group < groups[lane].saturating_sub(n))
    });
    for s in &done {
        perform(cx, env, w, s);
        end_reading(env, w.index as usize, &sources(s));
    }
    // What other copies of the warp still read stays marked.
    if let Some(shadow) = &mut env.shadow {
        for (offset, bytes) in left.iter().flat_map(sources) {
            for u in units(shadow, offset, bytes) {
                shadow.mark_read(u, w.index as usize, IN_FLIGHT);
            }
        }
    }
    w.stores = left;
}
