//! `ld.shared` and `st.shared`: the race detector and the data.
//!
//! Both go by the runs of bytes that the lanes touch together ([`crate::pattern`]). The detector first asks whether all runs are clear of conflicts, which
//! takes one comparison a word; only if not does it look at each lane's words, in order. A store that lanes disagree about (two lanes, one place,
//! different values) shows when each lane reads back what it stored.

use super::alu::put;
use super::mem::{get_lane, lanes_of, set_lane};
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::banks::SharedAccess;
use crate::ir::{Access, NONE};
use crate::report::FindingKind;
use crate::shared::Who;
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
    if env.shadow.is_some() {
        observe(cx, env, w, pc, a, &at, active, store);
    }
    if words(env, w, pc, a, &at, active, store) {
        return check_store(cx, env, w, pc, a, &at, active, store);
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
    check_store(cx, env, w, pc, a, &at, active, store);
}

/// The race detector.
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
) {
    let (Some(shadow), Some(pattern)) = (&mut env.shadow, env.patterns.get(pc)) else {
        return;
    };
    let lane = active.trailing_zeros();
    let who = Who::new(pc, w.index, lane);
    let (first, runs) = (at[lane as usize & 31], pattern.runs());
    if !store {
        if a.strong || !shadow.read_runs(first, runs, who) {
            lane_by_lane(cx, env, w, pc, a, at, active, store);
        }
        return;
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
}

/// The race detector for accesses that may conflict.
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
) {
    let Some(shadow) = &mut env.shadow else {
        return;
    };
    let total = u32::from(a.bytes) * u32::from(a.count);
    let (grain, units) = (shadow.grain, (total >> shadow.grain).max(1));
    let mut conflict = None;
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
                (true, false) => shadow.write(u, who),
                (true, true) => shadow.write(u, who.atomic()),
            };
            if found.is_some() {
                conflict = found.map(|c| (who, (u as u32) << grain, c));
            }
        }
    }
    if let Some((who, offset, c)) = conflict {
        report_conflict(cx, env, who, (env.rank, offset), c, store);
    }
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
    store: bool,
) {
    let distinct = env.patterns.get(pc).is_some_and(|p| p.distinct);
    if store && cx.sanitize && !distinct {
        find_lost(cx, env, w, pc, a, at, active);
    }
}

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
    let mut lost = 0u32;
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        for l in lanes_of(active) {
            let mask = if bytes == 8 {
                u64::MAX
            } else {
                (1 << (8 * bytes)) - 1
            };
            let differs =
                env.shared.load(at[l] + e as u32 * bytes, bytes) != get_lane(w, *reg, l) & mask;
            lost |= u32::from(differs) << l;
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
        env.report(cx, FindingKind::WriteConflict, site, &|| {
            format!("lane {lane} and another lane of the warp store different values to shared address {address:#x}")
        });
    }
}
