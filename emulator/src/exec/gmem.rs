//! Global-memory accesses: bounds by allocation, the optional checks, and the data.
//!
//! If all lanes lie in one allocation, which the instruction remembers from its last execution, they are checked together.

use super::alu::{Row64, put};
use super::compare::mask_of;
use super::mem::{are_close_sums, get_lane, lanes_of, set_lane};
use super::traffic;
use super::undefined::{self, Place};
use super::warp::Warp;
use super::{Context, Env, Site, global, sources};
use crate::fences::Strong;
use crate::ir::{Access, NONE};
use crate::memory::{Allocation, GlobalMemory};
use crate::report::FindingKind;
use crate::types::File;

/// Bytes beyond which an address has nothing to do with the nearest allocation.
const FAR: u64 = 1 << 32;

/// Checks global addresses: reports lanes outside their allocation or misaligned, and returns the lanes that may go on, with the base
/// of the first lane's allocation and whether all are in it.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(crate) fn check_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &Row64,
    total: u32,
    active: u32,
) -> (u32, bool) {
    let first = at[active.trailing_zeros() as usize & 31];
    let Some(hint) = env.hints.get_mut(pc) else {
        return (0, false);
    };
    let Some(alloc) = cx.memory.locate(first, hint) else {
        return (sort_out_global(cx, env, w, pc, at, total, active), false);
    };
    let Some(limit) = alloc.len.checked_sub(u64::from(total)) else {
        return (sort_out_global(cx, env, w, pc, at, total, active), false);
    };
    // Inactive lanes may be anywhere: they count as where the first active one is.
    let mut places = [first; 32];
    put(&mut places, at, active);
    let mut bad = false;
    let mut low = 0u64;
    for x in &places {
        bad |= x.wrapping_sub(alloc.base) > limit;
        low |= *x;
    }
    if low & u64::from(total - 1) == 0 {
        if !bad {
            return (active, true);
        }
        let mut groups = by_allocation(cx.memory, at, u64::from(total), active, *hint);
        if groups.all(|(alloc, _)| alloc.is_some()) {
            return (active, false);
        }
    }
    (sort_out_global(cx, env, w, pc, at, total, active), false)
}

/// The lanes of `active` by the allocation in which their `bytes` lie; without one, lanes that lie in none.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn by_allocation<'a>(
    memory: &'a GlobalMemory,
    at: &Row64,
    bytes: u64,
    active: u32,
    mut hint: u32,
) -> impl Iterator<Item = (Option<&'a Allocation>, u32)> {
    let mut rest = active;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let first = rest & rest.wrapping_neg();
        let alloc = memory.locate(at[first.trailing_zeros() as usize & 31], &mut hint);
        let lanes = alloc.map_or(0, |a| match a.len.checked_sub(bytes) {
            Some(limit) => rest & mask_of(|l| at[l].wrapping_sub(a.base) <= limit),
            None => 0,
        });
        let found = if lanes & first == 0 {
            (None, first)
        } else {
            (alloc, lanes)
        };
        rest &= !found.1;
        Some(found)
    })
}

#[inline(never)]
pub(super) fn sort_out_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &Row64,
    total: u32,
    active: u32,
) -> u32 {
    let (mut outside, mut crooked) = (0u32, 0u32);
    let mut hint = 0;
    for l in lanes_of(active) {
        let inside = cx
            .memory
            .locate(at[l], &mut hint)
            .is_some_and(|a| a.len - (at[l] - a.base) >= u64::from(total));
        outside |= u32::from(!inside) << l;
        crooked |= u32::from(inside && !at[l].is_multiple_of(u64::from(total))) << l;
    }
    if outside != 0 {
        let lane = outside.trailing_zeros();
        let x = at[lane as usize];
        let site = Site {
            pc,
            warp: w.index,
            lanes: outside,
            address: Some(x),
        };
        env.report(cx, FindingKind::OutOfBounds, site, &|| match cx.memory.nearest(x) {
            Some(a) => {
                let offset = x.wrapping_sub(a.base) as i64;
                let len = a.len;
                if offset.unsigned_abs() > FAR.saturating_add(len) {
                    return format!(
                        "lane {lane} accesses {total} bytes at {x:#x}, which is in no allocation: the nearest has {len} bytes from {:#x} on",
                        a.base
                    );
                }
                format!("lane {lane} accesses {total} bytes at byte {offset} of an allocation of {len} bytes")
            }
            None => format!("lane {lane} accesses {total} bytes of global memory, and nothing is allocated"),
        });
    }
    if crooked != 0 {
        let lane = crooked.trailing_zeros();
        let x = at[lane as usize];
        let site = Site {
            pc,
            warp: w.index,
            lanes: crooked,
            address: Some(x),
        };
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!("lane {lane} accesses {total} bytes at global address {x:#x}, not a multiple of {total}")
        });
    }
    active & !outside & !crooked
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
#[allow(clippy::too_many_arguments)] // an access is that much
pub(super) fn global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
    store: bool,
) {
    let (bytes, count) = (u32::from(a.bytes), u32::from(a.count));
    let total = bytes * count;
    let (active, together) = check_global(cx, env, w, pc, at, total, active);
    if active == 0 {
        return;
    }
    traffic::global(env, pc, at, total, active);
    env.touches += 1;
    env.published += u64::from(store);
    env.looks += u64::from(a.strong && !store);
    let mut unwritten = 0;
    if cx.observes() || store && env.sources.any() {
        unwritten = observe_global(cx, env, w, pc, Some(a), at, total, active, store);
    }
    let mut hint = env.hints[pc];
    let first = at[active.trailing_zeros() as usize & 31];
    match cx.memory.locate(first, &mut hint) {
        Some(alloc) if together => {
            if !words(w, a, alloc, at, active, store) {
                for l in lanes_of(active) {
                    element(w, a, alloc, at[l], l, store);
                }
            }
        }
        _ => {
            for (alloc, lanes) in by_allocation(cx.memory, at, u64::from(total), active, hint) {
                if let Some(alloc) = alloc
                    && !words(w, a, alloc, at, lanes, store)
                {
                    for l in lanes_of(lanes) {
                        element(w, a, alloc, at[l], l, store);
                    }
                }
            }
        }
    }
    if unwritten != 0 {
        load_undefined(cx, env, w, pc, a, at, unwritten);
    }
    if store && cx.sanitize && !are_apart(at, u64::from(total), active) {
        check_store(cx, env, w, pc, a, at, active);
    }
}

/// All elements of one lane.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn element(w: &mut Warp, a: &Access, alloc: &Allocation, at: u64, lane: usize, store: bool) {
    let bytes = u32::from(a.bytes);
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        let offset = at - alloc.base + u64::from(e as u32 * bytes);
        if store {
            alloc.store(offset, bytes, get_lane(w, *reg, lane));
        } else {
            set_lane(w, *reg, lane, alloc.load(offset, bytes), bytes, a.signed);
        }
    }
}

/// Accesses of one, two or four words, each in a register of 32 bits, all in `alloc`; false if it is another access.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn words(
    w: &mut Warp,
    a: &Access,
    alloc: &Allocation,
    at: &Row64,
    active: u32,
    store: bool,
) -> bool {
    let regs = &a.regs[..usize::from(a.count)];
    if a.bytes != 4
        || regs
            .iter()
            .any(|r| r.file != File::R32 || store && r.row == NONE)
    {
        return false;
    }
    match (a.count, store) {
        (1, false) => load::<1>(w, a, alloc, at, active),
        (2, false) => load::<2>(w, a, alloc, at, active),
        (4, false) => load::<4>(w, a, alloc, at, active),
        (_, true) => {
            for (e, reg) in regs.iter().enumerate() {
                let row = &w.r32[reg.row as usize];
                let shift = alloc.base.wrapping_sub(4 * e as u64);
                for l in lanes_of(active) {
                    alloc.set_word(at[l].wrapping_sub(shift), row[l]);
                }
            }
        }
        _ => return false,
    }
    true
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn load<const N: usize>(w: &mut Warp, a: &Access, alloc: &Allocation, at: &Row64, active: u32) {
    let mut out = [[0; 32]; N];
    let mut load = |l: usize| {
        if let Some(words) = alloc.words::<N>(at[l].wrapping_sub(alloc.base)) {
            for e in 0..N {
                out[e][l] = words[e];
            }
        }
    };
    if active == u32::MAX {
        (0..32).for_each(load);
    } else {
        lanes_of(active).for_each(&mut load);
    }
    for (reg, row) in a.regs.iter().zip(&out) {
        if reg.row != NONE {
            put(&mut w.r32[reg.row as usize], row, active);
        }
    }
}

/// Whether lanes access different bytes because each starts behind the end of the one before it.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn are_apart(at: &Row64, bytes: u64, active: u32) -> bool {
    if active == u32::MAX {
        let mut close = false;
        for l in 1..32 {
            close |= at[l] < at[l - 1].saturating_add(bytes);
        }
        return !close;
    }
    let mut end = 0;
    lanes_of(active).all(|l| {
        let apart = at[l] >= end;
        end = at[l].saturating_add(bytes);
        apart
    })
}

/// Lanes of one instruction must not store different values to one place: each finds what it stored, unless another block has stored there since.
#[inline(never)]
fn check_store(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
) {
    let bytes = u32::from(a.bytes);
    let mut hint = env.hints[pc];
    let mut lost = 0u32;
    for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
        for l in lanes_of(active) {
            let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
                continue;
            };
            let offset = at[l] - alloc.base + u64::from(e as u32 * bytes);
            let mask = if bytes == 8 {
                u64::MAX
            } else {
                (1 << (8 * bytes)) - 1
            };
            let differs = alloc.load(offset, bytes) != get_lane(w, *reg, l) & mask;
            lost |= u32::from(differs) << l;
        }
    }
    if lost != 0 {
        report_conflict(cx, env, w, pc, a, at, active, lost);
    }
}

/// Reports the lanes of `lost` that another lane of the warp has overwritten, if one has.
#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)] // an access is that much
fn report_conflict(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
    lost: u32,
) {
    let value = |l: usize| {
        a.regs
            .map(|r| if r.row == NONE { 0 } else { get_lane(w, r, l) })
    };
    let other = |l: usize| lanes_of(active).find(|&k| at[k] == at[l] && value(k) != value(l));
    let Some((lane, by)) = lanes_of(lost).find_map(|l| Some((l, other(l)?))) else {
        return;
    };
    let address = at[lane];
    let site = Site {
        pc,
        warp: w.index,
        lanes: lost,
        address: Some(address),
    };
    let (opcode, bytes) = (&cx.program.meta[pc].opcode, u32::from(a.bytes));
    let mask = u64::MAX >> (64 - 8 * bytes);
    let close = lanes_of(lost).all(|l| {
        let others = lanes_of(active).filter(|k| at[*k] == at[l]);
        others.into_iter().all(|k| {
            let pairs = value(l).into_iter().zip(value(k));
            pairs
                .map(|(x, y)| (x & mask, y & mask))
                .all(|(x, y)| x == y || are_close_sums(opcode, bytes, x, y))
        })
    });
    if close {
        env.note(cx, FindingKind::WriteConflict, site, &|| {
            format!("lanes {lane} and {by} of the warp store values to global address {address:#x} that differ in the last bits: sums in different orders")
        });
        return;
    }
    env.report(cx, FindingKind::WriteConflict, site, &|| {
        format!("lanes {lane} and {by} of the warp store different values to global address {address:#x}")
    });
}

/// A load of `lanes` has found bytes that nothing has written: carries them to its registers.
#[cold]
#[inline(never)]
fn load_undefined(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    lanes: u32,
) {
    if !cx.sanitize {
        return report_unwritten(cx, env, w, pc, at, lanes);
    }
    let bytes = u32::from(a.bytes);
    let mut hint = env.hints[pc];
    let mut found = Vec::new();
    for e in 0..u32::from(a.count) {
        let (mut row, mut origin) = ([0; 32], u32::MAX);
        for l in lanes_of(lanes) {
            let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
                continue;
            };
            for i in 0..bytes {
                let offset = at[l] - alloc.base + u64::from(e * bytes + i);
                if !alloc.is_written(offset, 1) {
                    row[l] |= 0xff << (8 * i);
                    origin = env.origins.number(pc, Place::Global { offset }, 1 << l);
                }
            }
        }
        found.push((row, origin));
    }
    undefined::loaded(cx, w, a, lanes, &found);
}

/// Reports that `lanes` read bytes that nothing has written.
#[cold]
#[inline(never)]
pub(crate) fn report_unwritten(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &Row64,
    lanes: u32,
) {
    let mut hint = env.hints[pc];
    for l in lanes_of(lanes) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        if let Some(alloc) = cx.memory.locate(at[l], &mut hint) {
            let offset = at[l] - alloc.base;
            env.report(cx, FindingKind::UndefinedGlobal, site, &|| {
                format!("lane {l} reads from byte {offset} of an allocation on, which nothing has written")
            });
        }
    }
}

/// Byte `k` of what `lane` stores, if it is one.
fn stored_byte(w: &Warp, a: &Access, lane: usize, k: u32) -> Option<u8> {
    let bytes = u32::from(a.bytes);
    let regs = &a.regs[..usize::from(a.count)];
    let reg = regs.get((k / bytes) as usize).filter(|r| r.row != NONE)?;
    Some((get_lane(w, *reg, lane) >> (8 * (k % bytes))) as u8)
}

/// The optional checks on global memory, on an access `a` or, without, on a copy, whose values are not known; returns the lanes that read bytes which nothing has written.
#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn observe_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    a: Option<&Access>,
    at: &Row64,
    total: u32,
    active: u32,
    store: bool,
) -> u32 {
    let (mut hint, mut unwritten) = (env.hints[pc], 0);
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let offset = at[l] - alloc.base;
        if store {
            sources::stored(cx, env, site, alloc, (offset, total));
        }
        if cx.undefined_global {
            if store {
                alloc.mark_written(offset, total);
            } else if !alloc.is_written(offset, total) {
                unwritten |= 1 << l;
            }
        }
        let block = env.block;
        let other = cx.global_shadow.as_ref().and_then(|s| {
            let byte = |k: u32| stored_byte(w, a?, l, k);
            let access = global::Access {
                block,
                thread: w.index * 32 + l as u32,
                strong: a.is_some_and(|a| a.strong),
                data: s.is_data(pc),
                store: store.then_some(&byte),
            };
            let racing = s.access(at[l], total, access);
            if let Some(a) = a.filter(|a| a.strong) {
                let kind = if store { Strong::Store } else { Strong::Load };
                let by = (block, access.thread);
                s.synchronise(by, at[l], kind, a.order.releases);
            }
            racing
        });
        if let Some(other) = other {
            let verb = if store { "writes" } else { "reads" };
            env.report(cx, FindingKind::GlobalRace, site, &|| {
                if other == u64::from(u32::MAX) {
                    format!("lane {l} {verb} byte {offset} of an allocation, which several other blocks read")
                } else {
                    format!("lane {l} {verb} byte {offset} of an allocation, which block number {other} accesses too")
                }
            });
        }
    }
    unwritten
}
