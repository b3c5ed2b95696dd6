//! `atom` and `red` (PTX ISA, sections 9.7.13.5 and 9.7.13.6): lane after lane, in order.
//!
//! Lanes of neighbouring numbers at one place are one chain ([`super::combine`]): one access of the memory, atomic as a whole. Example: `atom.global.add.u32`
//! of 1 by 32 lanes to a counter at 5 gives them 5 to 36, and the word goes from 5 to 37 at once.

use super::alu::{Row32, Row64};
use super::cluster;
use super::combine::Operands;
use super::compare::mask_of;
use super::gmem::check_global;
use super::lds::synchronise;
use super::mem::{addresses, inside, lanes_of, set_lane};
use super::places::by_rank;
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::sources::stored;
use super::traffic;
use super::warp::Warp;
use super::wide::set_wide;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::banks::SharedAccess;
use crate::fences::Strong;
use crate::ir::{Atom, Atom128, NONE, Row};
use crate::shared::Who;
use crate::windows::SHARED_WINDOW;

/// `atom` and `red`: lane after lane.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn atom(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    active: u32,
) {
    w.polls += 1;
    match a.space {
        Space::Shared => shared(cx, env, w, pc, a, active, 0),
        Space::Generic | Space::Cluster => windows(cx, env, w, pc, a, active),
        _ => global(cx, env, w, pc, a, &addresses(w, a.address), active),
    }
}

/// Addresses that may be in the shared memory of any block of the cluster; in no other window but global memory.
#[inline(never)]
fn windows(cx: &Context<'_>, env: &mut Env, w: &mut Warp, pc: usize, a: &Atom, active: u32) {
    let bytes = u32::from(a.bytes);
    let at = addresses(w, a.address);
    let (base, to_shared) = if a.space == Space::Cluster {
        (0, active)
    } else {
        (SHARED_WINDOW, active & inside(&at, SHARED_WINDOW))
    };
    if to_shared != 0 {
        for (rank, lanes) in by_rank(&at, to_shared, base) {
            if rank == env.rank {
                shared(cx, env, w, pc, a, lanes, base);
                continue;
            }
            let operands = Operands::of(w, a);
            let mut old = [0; 32];
            for l in lanes_of(lanes) {
                let address = (l, at[l]);
                let place = cluster::remote_place(cx, env, w, pc, address, bytes, rank, a.space);
                let Some(offset) = place else { continue };
                cluster::observe(cx, env, w, pc, l, rank, (offset, bytes), true, true);
                env.within(rank, |env| {
                    let found = env.shared.load(offset, bytes);
                    let (new, changed) = operands.chain(found, 1 << l, &mut old);
                    env.shared.store(offset, bytes, new);
                    env.effects += changed;
                });
                set_lane(w, a.d, l, old[l], bytes, false);
            }
        }
    }
    let rest = active & !to_shared;
    if rest != 0 {
        global(cx, env, w, pc, a, &at, rest);
    }
}

/// `atom` and `red` on global memory.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    at: &Row64,
    active: u32,
) {
    let bytes = u32::from(a.bytes);
    let (lanes, _) = check_global(cx, env, w, pc, at, bytes, active);
    traffic::global(env, pc, at, bytes, lanes);
    env.touches += 1;
    let operands = Operands::of(w, a);
    let mut old = [0; 32];
    let mut done = 0;
    let guard = (bytes == 8).then(|| cx.atomic_lock.lock());
    let mut hint = env.hints[pc];
    for (l, same) in runs(at, lanes) {
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let offset = at[l] - alloc.base;
        let mut changed = 0;
        alloc.update(offset, bytes, |found| {
            let (new, changes) = operands.chain(found, same, &mut old);
            changed = changes;
            new
        });
        env.effects += changed;
        env.published += changed;
        env.looks += u64::from(changed == 0);
        done |= same;
        if let Some(shadow) = &cx.global_shadow {
            let by = (env.block, w.index * 32 + l as u32);
            shadow.synchronise(by, at[l], Strong::Update, a.order.releases);
        }
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        if changed > 0 {
            stored(cx, env, site, alloc, (offset, bytes));
        }
        if cx.undefined_global {
            alloc.mark_written(offset, bytes);
        }
    }
    drop(guard);
    set_wide(w, a.d, &old, done);
}

/// The lanes of `lanes`, lowest first, in runs of those that access the same place one after the other: the first of each, and all.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn runs<T: Copy + PartialEq>(at: &[T; 32], lanes: u32) -> impl Iterator<Item = (usize, u32)> {
    let first = at[lanes.trailing_zeros() as usize & 31];
    // All at one place, as counters are, is one comparison of the row.
    let all = lanes & !mask_of(|l| at[l] == first) == 0;
    let mut rest = lanes;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let l = rest.trailing_zeros() as usize;
        let mut run = if all { rest } else { 1 << l };
        rest &= !run;
        while rest != 0 && at[rest.trailing_zeros() as usize] == at[l] {
            run |= rest & rest.wrapping_neg();
            rest &= rest - 1;
        }
        Some((l, run))
    })
}

/// `atom` of 128 bits, on global memory: lane after lane.
#[inline(never)]
pub(crate) fn atom128(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom128,
    active: u32,
) {
    w.polls += 1;
    let at = addresses(w, a.address);
    let (lanes, _) = check_global(cx, env, w, pc, &at, 16, active);
    traffic::global(env, pc, &at, 16, lanes);
    (env.touches, env.looks) = (env.touches + 1, env.looks + 1);
    let guard = cx.atomic_lock.lock();
    let mut hint = env.hints[pc];
    for l in lanes_of(lanes) {
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let offset = at[l] - alloc.base;
        let get = |rows: [Row; 2]| rows.map(|row| w.r64[row as usize][l]);
        let old = [alloc.load(offset, 8), alloc.load(offset + 8, 8)];
        let new = get(a.value);
        if a.expected.is_none_or(|rows| get(rows) == old) {
            env.effects += u64::from(new != old);
            env.published += u64::from(new != old);
            alloc.store(offset, 8, new[0]);
            alloc.store(offset + 8, 8, new[1]);
            let site = Site {
                pc,
                warp: w.index,
                lanes: 1 << l,
                address: Some(at[l]),
            };
            stored(cx, env, site, alloc, (offset, 16));
        }
        if cx.undefined_global {
            alloc.mark_written(offset, 16u32);
        }
        for (row, half) in a.d.iter().zip(old) {
            if *row != NONE {
                w.r64[*row as usize][l] = half;
            }
        }
    }
    drop(guard);
}

/// `atom` and `red` on the block's own shared memory, where shared address 0 is `base`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    active: u32,
    base: u64,
) {
    let bytes = u32::from(a.bytes);
    let offsets = shared_offsets(w, a.address, active, base + u64::from(env.start()));
    let lanes = check_shared(cx, env, w, pc, &offsets, bytes, active);
    count_wavefronts(env, pc, SharedAccess::Store { bytes }, &offsets, lanes);
    observe(cx, env, w, pc, &offsets, bytes, lanes);
    if cx.program.relaxes {
        synchronise(env, w, &offsets, lanes, Strong::Update, a.order);
    }
    let operands = Operands::of(w, a);
    let mut old = [0; 32];
    for (l, same) in runs(&offsets, lanes) {
        let found = env.shared.load(offsets[l], bytes);
        let (new, changed) = operands.chain(found, same, &mut old);
        env.effects += changed;
        env.shared.store(offsets[l], bytes, new);
    }
    set_wide(w, a.d, &old, lanes);
}

/// The race detector on atomics of `lanes`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn observe(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    offsets: &Row32,
    bytes: u32,
    lanes: u32,
) {
    let (Some(shadow), Some(pattern)) = (&mut env.shadow, env.patterns.get(pc)) else {
        return;
    };
    if lanes == 0 {
        return;
    }
    let lane = lanes.trailing_zeros();
    let first = offsets[lane as usize & 31];
    if shadow.may_write::<true>(first, pattern.runs(), Who::new(pc, w.index, lane)) {
        for l in lanes_of(lanes) {
            shadow.set_writer(offsets[l], bytes, Who::new(pc, w.index, l as u32).atomic());
        }
        return;
    }
    observe_lanes(cx, env, w, pc, offsets, bytes, lanes);
}

/// The race detector on atomics that may conflict.
#[inline(never)]
fn observe_lanes(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    offsets: &Row32,
    bytes: u32,
    lanes: u32,
) {
    for l in lanes_of(lanes) {
        let Some(shadow) = &mut env.shadow else {
            return;
        };
        let who = Who::new(pc, w.index, l as u32).atomic();
        let mut conflict = None;
        let first = (offsets[l] >> shadow.grain) as usize;
        for u in first..first + (bytes >> shadow.grain).max(1) as usize {
            conflict = conflict
                .or(shadow.read_strong(u, who))
                .or(shadow.write(u, who));
        }
        if let Some(c) = conflict {
            report_conflict(cx, env, who, (env.rank, offsets[l]), c, true);
        }
    }
}
