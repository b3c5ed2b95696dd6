//! `ld.shared` and `st.shared`: the race detector and the data.
//!
//! Both go by the runs of bytes that the lanes touch together ([`crate::pattern`]). The detector first asks whether all runs are clear of conflicts, which
//! takes one comparison a word; only if not does it look at each lane's words, in order. A store that lanes disagree about (two lanes, one place,
//! different values) shows when each lane reads back what it stored.

use super::alu::put;
use super::mem::{are_close_sums, get_lane, lanes_of, set_lane};
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::undefined;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::banks::SharedAccess;
use crate::fences::Strong;
use crate::ir::{Access, NONE, Order};
use crate::report::FindingKind;
use crate::shared::Who;
use crate::shared_conflicts::Conflict;
use crate::shared_data::SharedData;
use crate::types::File;

/// A load or store of the block's shared memory, in the window that starts at `window`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[allow(clippy::too_many_arguments)] // an access is that much
pub(super) fn shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    active: u32,
    store: bool,
    window: u64,
) {
    let total = u32::from(a.bytes) * u32::from(a.count);
    let at = shared_offsets(w, a.address, active, window + u64::from(env.start()));
    let active = check_shared(cx, env, w, pc, &at, total, active);
    if active == 0 {
        return;
    }
    let kind = if store {
        SharedAccess::Store { bytes: total }
    } else {
        SharedAccess::Load { bytes: total }
    };
    count_wavefronts(env, pc, kind, &at, active);
    let undefined = env.shadow.is_some() && observe(cx, env, w, pc, a, &at, active, store);
    if a.strong && cx.program.relaxes {
        let access = if store { Strong::Store } else { Strong::Load };
        synchronise(env, w, &at, active, access, a.order);
    }
    if words(env, w, pc, a, &at, active, store) {
        return finish(cx, env, w, pc, a, &at, active, store, undefined);
    }
    let bytes = u32::from(a.bytes);
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        let step = e as u32 * bytes;
        for l in lanes_of(active) {
            if store {
                env.shared.store(at[l] + step, bytes, get_lane(w, *reg, l));
            } else {
                let v = env.shared.load(at[l] + step, bytes);
                set_lane(w, *reg, l, v, bytes, a.signed);
            }
        }
    }
    finish(cx, env, w, pc, a, &at, active, store, undefined);
}

/// The order that strong accesses of the active lanes make.
#[cold]
#[inline(never)]
pub(super) fn synchronise(
    env: &mut Env,
    w: &Warp,
    at: &[u32; 32],
    active: u32,
    access: Strong,
    order: Order,
) {
    let Some(shadow) = env.shadow.as_mut().filter(|s| s.clocks.fences.is_some()) else {
        return;
    };
    let mut rest = active;
    while rest != 0 {
        let first = at[rest.trailing_zeros() as usize & 31];
        let same = lanes_of(rest).filter(|l| at[*l] / 4 == first / 4);
        let same = same.fold(0u32, |m, l| m | 1 << l);
        shadow.synchronise(w.index as usize, same, first, access, order);
        rest &= !same;
    }
}

/// What follows the data: a look for lost stores, and undefined bits.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[allow(clippy::too_many_arguments)] // an access is that much
fn finish(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
    store: bool,
    undefined: bool,
) {
    if store {
        check_store(cx, env, w, pc, a, at, active);
        if env.carries_undefined(w) {
            store_undefined(env, w, pc, a, at, active);
        }
    } else if undefined {
        load_undefined(cx, env, w, pc, a, at, active);
    }
}

/// Carries the undefined bits of shared memory to the registers of a load.
#[cold]
#[inline(never)]
fn load_undefined(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
) {
    let bytes = u32::from(a.bytes);
    let mut found = Vec::new();
    for e in 0..u32::from(a.count) {
        let (mut row, mut origin) = ([0; 32], u32::MAX);
        for l in lanes_of(active) {
            let (bits, from) = env.undefined_shared(pc, l, at[l] + e * bytes, bytes);
            row[l] = bits;
            origin = from.unwrap_or(origin);
        }
        found.push((row, origin));
    }
    undefined::loaded(cx, w, a, active, &found);
}

/// Carries the undefined bits of the registers of a store to shared memory.
#[cold]
#[inline(never)]
fn store_undefined(env: &mut Env, w: &Warp, pc: usize, a: &Access, at: &[u32; 32], active: u32) {
    let bytes = u32::from(a.bytes);
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        let (row, from) = env.undefined_of(w, pc, *reg);
        let Some(shadow) = &mut env.shadow else {
            return;
        };
        for l in lanes_of(active) {
            shadow.store_undefined(at[l] + e as u32 * bytes, bytes, row[l], from);
        }
    }
}

/// The race detector. Whether the bytes of a load may be undefined.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[allow(clippy::too_many_arguments)] // an access is that much
fn observe(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
    store: bool,
) -> bool {
    let (Some(shadow), Some(pattern)) = (&mut env.shadow, env.patterns.get(pc)) else {
        return false;
    };
    let lane = active.trailing_zeros();
    let who = Who::new(pc, w.index, lane);
    let (first, runs) = (at[lane as usize & 31], pattern.runs());
    if !store {
        let stored = !shadow.stored.is_empty();
        if a.strong || !shadow.read_runs(first, runs, who) {
            return lane_by_lane(cx, env, w, pc, a, at, active, store) | stored;
        }
        return stored;
    }
    if !shadow.may_write::<false>(first, runs, who) {
        return lane_by_lane(cx, env, w, pc, a, at, active, store);
    }
    let total = u32::from(a.bytes) * u32::from(a.count);
    for l in lanes_of(active) {
        let who = Who::new(pc, w.index, l as u32);
        let who = if a.strong { who.atomic() } else { who };
        shadow.set_writer(at[l], total, who);
    }
    false
}

/// The race detector for accesses that may conflict. Whether it has found bytes of a load that nothing has written.
#[inline(never)]
#[allow(clippy::too_many_arguments)] // an access is that much
fn lane_by_lane(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
    store: bool,
) -> bool {
    let Some(shadow) = &mut env.shadow else {
        return false;
    };
    let total = u32::from(a.bytes) * u32::from(a.count);
    let (grain, units) = (shadow.grain, (total >> shadow.grain).max(1));
    let (mut conflict, mut undefined) = (None, false);
    let mut previous = u32::MAX;
    for lane in lanes_of(active) {
        if at[lane] == previous && !store {
            continue;
        }
        previous = at[lane];
        let first = (at[lane] >> grain) as usize;
        let who = Who::new(pc, w.index, lane as u32);
        for u in first..first + units as usize {
            let found = match (store, a.strong) {
                (false, false) => shadow.read(u, who),
                (false, true) => shadow.read_strong(u, who),
                (true, strong) => {
                    let who = if strong { who.atomic() } else { who };
                    let offset = (u as u32) << grain;
                    match shadow.write(u, who) {
                        // Two writes of one value: no order makes a difference.
                        Some(c)
                            if c.is_of_writes()
                                && changes_nothing(
                                    &env.shared,
                                    w,
                                    a,
                                    lane,
                                    offset,
                                    at[lane],
                                    1 << grain,
                                ) =>
                        {
                            shadow.explain_readers(u, who)
                        }
                        found => found,
                    }
                }
            };
            match found {
                Some(Conflict::Undefined) => undefined = true,
                Some(c) => conflict = Some((who, (u as u32) << grain, c)),
                None => {}
            }
        }
    }
    if let Some((who, offset, c)) = conflict {
        report_conflict(cx, env, who, (env.rank, offset), c, store);
    }
    undefined
}

/// Whether the store of `lane` at `start` leaves the `size` bytes at `offset` as they are.
fn changes_nothing(
    shared: &SharedData,
    w: &Warp,
    a: &Access,
    lane: usize,
    offset: u32,
    start: u32,
    size: u32,
) -> bool {
    let bytes = u32::from(a.bytes);
    (offset..offset + size).all(|at| {
        let place = at.wrapping_sub(start);
        let Some(reg) = a
            .regs
            .get((place / bytes) as usize)
            .filter(|r| r.row != NONE)
        else {
            return false;
        };
        let byte = get_lane(w, *reg, lane) >> (8 * (place % bytes)) & 0xff;
        shared.load(at, 1) == byte
    })
}

/// The data of accesses of one, two or four words, each in a register of 32 bits; false if it is another access.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn words(
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
    store: bool,
) -> bool {
    let count = usize::from(a.count);
    let regs = a.regs.iter().take(count);
    if a.bytes != 4 || regs.clone().any(|r| r.file != File::R32) {
        return false;
    }
    match (count, store) {
        (1, false) => {
            let row = a.regs[0].row;
            if row == NONE {
                return true;
            }
            let mut out = [0; 32];
            let start = (at[0] >> 2) as usize;
            let next = env.patterns.get(pc).is_some_and(|p| p.consecutive);
            match env.shared.words.get(start..start + 32) {
                Some(words) if next => out.copy_from_slice(words),
                _ => {
                    for l in 0..32 {
                        out[l] = env.shared.word(at[l]);
                    }
                }
            }
            put(&mut w.r32[row as usize], &out, active);
        }
        (1, true) if a.regs[0].row != NONE => {
            let row = &w.r32[a.regs[0].row as usize];
            for l in lanes_of(active) {
                env.shared.set_word(at[l], row[l]);
            }
        }
        (2, false) => load::<2>(env, w, a, at, active),
        (4, false) => load::<4>(env, w, a, at, active),
        (2, true) if regs.clone().all(|r| r.row != NONE) => self::store::<2>(env, w, a, at, active),
        (4, true) if regs.clone().all(|r| r.row != NONE) => self::store::<4>(env, w, a, at, active),
        _ => return false,
    }
    true
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn load<const N: usize>(env: &Env, w: &mut Warp, a: &Access, at: &[u32; 32], active: u32) {
    let mut out = [[0; 32]; N];
    for l in 0..32 {
        let start = (at[l] >> 2) as usize;
        if let Some(words) = env.shared.words.get(start..start + N) {
            for e in 0..N {
                out[e][l] = words[e];
            }
        }
    }
    for (reg, row) in a.regs.iter().zip(&out) {
        if reg.row != NONE {
            put(&mut w.r32[reg.row as usize], row, active);
        }
    }
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn store<const N: usize>(env: &mut Env, w: &Warp, a: &Access, at: &[u32; 32], active: u32) {
    let mut rows = [&[0; 32]; N];
    for (e, row) in rows.iter_mut().enumerate() {
        *row = &w.r32[a.regs[e].row as usize];
    }
    for l in lanes_of(active) {
        let start = (at[l] >> 2) as usize;
        if let Some(words) = env.shared.words.get_mut(start..start + N) {
            for e in 0..N {
                words[e] = rows[e][l];
            }
        }
    }
}

/// Every lane must find what it stored, or another lane stored something else there.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[allow(clippy::too_many_arguments)] // an access is that much
fn check_store(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
) {
    let distinct = env.patterns.get(pc).is_some_and(|p| p.distinct);
    if cx.sanitize && !distinct {
        find_lost(cx, env, w, pc, a, at, active);
    }
}

#[cold]
#[inline(never)]
fn find_lost(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &[u32; 32],
    active: u32,
) {
    let bytes = u32::from(a.bytes);
    let (mut lost, mut close) = (0u32, true);
    let opcode = &cx.program.meta[pc].opcode;
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        for l in lanes_of(active) {
            let mask = u64::MAX >> (64 - 8 * bytes);
            let found = env.shared.load(at[l] + e as u32 * bytes, bytes);
            let own = get_lane(w, *reg, l) & mask;
            lost |= u32::from(found != own) << l;
            close &= found == own || are_close_sums(opcode, bytes, found, own);
        }
    }
    if lost != 0 {
        let lane = lost.trailing_zeros();
        let address = u64::from(at[lane as usize] + env.start());
        let site = Site {
            pc,
            warp: w.index,
            lanes: lost,
            address: Some(address),
        };
        if close {
            env.note(cx, FindingKind::WriteConflict, site, &|| {
                format!("lane {lane} and another lane of the warp store values to shared address {address:#x} that differ in the last bits: sums in different orders")
            });
            return;
        }
        env.report(cx, FindingKind::WriteConflict, site, &|| {
            format!("lane {lane} and another lane of the warp store different values to shared address {address:#x}")
        });
    }
}
