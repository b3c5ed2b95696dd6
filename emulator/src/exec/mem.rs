//! Loads, stores and atomics: addresses of all lanes at once, checked together, then moved lane by lane.
//!
//! The common case, all lanes inside, is found by one pass over the addresses; only if something is wrong are the culprits sought
//! and left out. Generic addresses are sorted by window first. A store that lanes disagree about (two lanes, one place, different
//! values) shows when each lane reads back what it stored.

use super::alu::Row64;
use super::local::little;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::banks::SharedAccess;
use crate::ir::{Access, Address, Atom, AtomOp, FloatMode, FloatOp, NONE, Reg};
use crate::report::FindingKind;
use crate::shared::{
    Conflict, LOCAL_WINDOW, PARAM_WINDOW, SHARED_BASE, SHARED_WINDOW, WINDOW, Who,
};
use crate::types::File;

/// Lanes of `mask`, lowest first.
#[inline(always)]
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}

/// Byte addresses of all lanes.
#[inline(always)]
pub(crate) fn addresses(w: &Warp, a: Address) -> Row64 {
    match a.base {
        None => [a.offset as u64; 32],
        Some(Reg {
            file: File::R64,
            row,
        }) => w.r64[row as usize].map(|x| x.wrapping_add(a.offset as u64)),
        Some(Reg { row, .. }) => {
            w.r32[row as usize].map(|x| u64::from(x).wrapping_add(a.offset as u64))
        }
    }
}

/// Offsets in the block's shared window of all lanes; out of range becomes `u32::MAX`, inactive lanes 0.
#[inline(always)]
pub(crate) fn shared_offsets(w: &Warp, a: Address, active: u32, base: u64) -> [u32; 32] {
    let mut out = [0u32; 32];
    match a.base {
        // 32-bit registers are the common case: stay in 32 bits.
        Some(Reg {
            file: File::R32,
            row,
        }) if base == 0 && i32::try_from(a.offset).is_ok() => {
            let r = &w.r32[row as usize];
            let add = (a.offset as u32).wrapping_sub(SHARED_BASE);
            for l in 0..32 {
                let on = if (active >> l) & 1 != 0 { u32::MAX } else { 0 };
                out[l] = r[l].wrapping_add(add) & on;
            }
        }
        _ => {
            let row = addresses(w, a);
            for l in 0..32 {
                let x = row[l]
                    .wrapping_sub(base)
                    .wrapping_sub(u64::from(SHARED_BASE));
                let x = if x >> 32 == 0 { x as u32 } else { u32::MAX };
                out[l] = if (active >> l) & 1 != 0 { x } else { 0 };
            }
        }
    }
    out
}

/// Checks offsets into shared memory: reports lanes out of bounds or misaligned, and returns the lanes that may go on.
#[inline(always)]
pub(crate) fn check_shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &[u32; 32],
    bytes: u32,
    active: u32,
) -> u32 {
    let (mut worst, mut low) = (0u32, 0u32);
    for a in at {
        worst = worst.max(*a);
        low |= *a;
    }
    let fits = env
        .shared
        .size
        .checked_sub(bytes)
        .is_some_and(|limit| worst <= limit);
    if fits && low & (bytes - 1) == 0 {
        return active;
    }
    sort_out_shared(cx, env, w, pc, at, bytes, active)
}

#[inline(never)]
fn sort_out_shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &[u32; 32],
    bytes: u32,
    active: u32,
) -> u32 {
    let size = env.shared.size;
    let bad = |test: &dyn Fn(u32) -> bool| {
        lanes_of(active)
            .filter(|&l| test(at[l]))
            .fold(0u32, |m, l| m | 1 << l)
    };
    let outside = bad(&|a| u64::from(a) + u64::from(bytes) > u64::from(size));
    let crooked = bad(&|a| a & (bytes - 1) != 0) & !outside;
    if outside != 0 {
        let lane = outside.trailing_zeros();
        let a = u64::from(at[lane as usize].wrapping_add(SHARED_BASE));
        let site = Site {
            pc,
            warp: w.index,
            lanes: outside,
            address: Some(a),
        };
        env.report(cx, FindingKind::OutOfBounds, site, || {
            let offset = a.wrapping_sub(u64::from(SHARED_BASE)) as u32 as i32;
            format!("lane {lane} accesses {bytes} bytes at byte {offset} of the block's {size} bytes of shared memory")
        });
    }
    if crooked != 0 {
        let lane = crooked.trailing_zeros();
        let a = u64::from(at[lane as usize].wrapping_add(SHARED_BASE));
        let site = Site {
            pc,
            warp: w.index,
            lanes: crooked,
            address: Some(a),
        };
        env.report(cx, FindingKind::Misaligned, site, || {
            format!("lane {lane} accesses {bytes} bytes at shared address {a:#x}, not a multiple of {bytes}")
        });
    }
    active & !outside & !crooked
}

/// Counts the wavefronts of a shared access.
#[inline(always)]
pub(crate) fn count_wavefronts(
    env: &mut Env,
    pc: usize,
    kind: SharedAccess,
    at: &[u32; 32],
    active: u32,
) {
    let Some(cache) = env.caches.get_mut(pc) else {
        return;
    };
    let n = cache.count(kind, at, active);
    let count = &mut env.counts[pc];
    count.wavefronts += u64::from(n.taken);
    count.ideal += u64::from(n.ideal);
    count.max = count.max.max(n.taken);
    count.min = if count.min == 0 || (n.taken != 0 && n.taken < count.min) {
        n.taken
    } else {
        count.min
    };
}

/// Reports a conflict found by the shadow.
#[cold]
#[inline(never)]
pub(crate) fn report_conflict(
    cx: &Context<'_>,
    env: &mut Env,
    who: Who,
    offset: u32,
    conflict: Conflict,
    store: bool,
) {
    let address = u64::from(offset) + u64::from(SHARED_BASE);
    let site = Site {
        pc: who.pc(),
        warp: who.warp(),
        lanes: 1 << who.lane(),
        address: Some(address),
    };
    let verb = if store { "writes" } else { "reads" };
    let (lane, meta) = (who.lane(), &cx.program.meta);
    let line = |w: Who| meta.get(w.pc()).map_or(0, |m| m.line);
    let (kind, text) = match conflict {
        Conflict::Undefined => (
            FindingKind::UndefinedShared,
            format!("lane {lane} {verb} shared byte {offset}, which nothing has written"),
        ),
        Conflict::AfterWrite(o) => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} shared byte {offset}, written by warp {} lane {} at line {} with no barrier between",
                o.warp(),
                o.lane(),
                line(o)
            ),
        ),
        Conflict::AfterRead { warp, who: Some(o) } => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} shared byte {offset}, read by warp {warp} at line {} with no barrier between",
                line(o)
            ),
        ),
        Conflict::AfterRead { warp, who: None } => (
            FindingKind::SharedRace,
            format!(
                "lane {lane} {verb} shared byte {offset}, read by warp {warp} with no barrier between"
            ),
        ),
        Conflict::InFlight(o) => (
            FindingKind::ReadBeforeWait,
            format!(
                "lane {lane} {verb} shared byte {offset} before cp.async.wait_group: the copy by warp {} lane {} at line {} is in flight",
                o.warp(),
                o.lane(),
                line(o)
            ),
        ),
        Conflict::NoBarrierAfterWait(o) => (
            FindingKind::MissingBarrierAfterWait,
            format!(
                "lane {lane} {verb} shared byte {offset}, copied by lane {} at line {}, with no barrier after its wait",
                o.lane(),
                line(o)
            ),
        ),
    };
    env.report(cx, kind, site, || text);
}

/// Sets a register in one lane, sign-extending from `bytes` if asked.
#[inline(always)]
fn set_lane(w: &mut Warp, reg: Reg, lane: usize, value: u64, bytes: u32, signed: bool) {
    let value = if signed && bytes < 8 {
        let shift = 64 - 8 * bytes;
        ((value << shift) as i64 >> shift) as u64
    } else {
        value
    };
    match reg.file {
        _ if reg.row == NONE => {}
        File::R64 => w.r64[reg.row as usize][lane] = value,
        _ => w.r32[reg.row as usize][lane] = value as u32,
    }
}

#[inline(always)]
fn get_lane(w: &Warp, reg: Reg, lane: usize) -> u64 {
    match reg.file {
        File::R64 => w.r64[reg.row as usize][lane],
        _ => u64::from(w.r32[reg.row as usize][lane]),
    }
}

/// A load or a store.
#[inline(always)]
pub(crate) fn access(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    active: u32,
    store: bool,
) {
    w.polls += u64::from(a.strong);
    match a.space {
        Space::Shared => shared(cx, env, w, pc, a, active, store, 0),
        Space::Global | Space::Const => {
            let at = addresses(w, a.address);
            global(cx, env, w, pc, a, &at, active, store);
        }
        Space::Param if !store => param(cx, env, w, pc, a, &addresses(w, a.address), active),
        _ => windows(cx, env, w, pc, a, active, store),
    }
}

/// Local, parameter and generic addresses.
#[inline(never)]
fn windows(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    active: u32,
    store: bool,
) {
    let at = addresses(w, a.address);
    if a.space == Space::Local {
        return local(cx, env, w, pc, a, &at, active, store);
    }
    let inside = |base: u64| {
        lanes_of(active)
            .filter(|&l| at[l].wrapping_sub(base) < WINDOW)
            .fold(0u32, |m, l| m | 1 << l)
    };
    let (to_shared, to_local, to_param) = (
        inside(SHARED_WINDOW),
        inside(LOCAL_WINDOW),
        inside(PARAM_WINDOW),
    );
    let to_global = active & !(to_shared | to_local | to_param);
    if to_shared != 0 {
        shared(cx, env, w, pc, a, to_shared, store, SHARED_WINDOW);
    }
    if to_local != 0 {
        local(
            cx,
            env,
            w,
            pc,
            a,
            &at.map(|x| x.wrapping_sub(LOCAL_WINDOW)),
            to_local,
            store,
        );
    }
    if to_param != 0 && !store {
        param(
            cx,
            env,
            w,
            pc,
            a,
            &at.map(|x| x.wrapping_sub(PARAM_WINDOW)),
            to_param,
        );
    }
    let to_global = if store {
        to_global | to_param
    } else {
        to_global
    };
    if to_global != 0 {
        global(cx, env, w, pc, a, &at, to_global, store);
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // an access is that much
fn shared(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    active: u32,
    store: bool,
    window: u64,
) {
    let (bytes, count) = (u32::from(a.bytes), u32::from(a.count));
    let total = bytes * count;
    let at = shared_offsets(w, a.address, active, window);
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
    if let Some(shadow) = &mut env.shadow {
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
            report_conflict(cx, env, who, offset, c, store);
        }
    }
    for (e, reg) in a.regs.iter().enumerate().take(count as usize) {
        if reg.row == NONE && !store {
            continue;
        }
        let step = e as u32 * bytes;
        match (store, bytes, reg.file) {
            (false, 4, File::R32) => {
                let data = &env.shared;
                let out = &mut w.r32[reg.row as usize];
                if active == u32::MAX {
                    for l in 0..32 {
                        out[l] = data.word(at[l] + step);
                    }
                } else {
                    for l in lanes_of(active) {
                        out[l] = data.word(at[l] + step);
                    }
                }
            }
            (true, 4, File::R32) => {
                let row = &w.r32[reg.row as usize];
                for l in lanes_of(active) {
                    env.shared.set_word(at[l] + step, row[l]);
                }
            }
            (false, ..) => {
                for l in lanes_of(active) {
                    let v = env.shared.load(at[l] + step, bytes);
                    set_lane(w, *reg, l, v, bytes, a.signed);
                }
            }
            (true, ..) => {
                for l in lanes_of(active) {
                    env.shared.store(at[l] + step, bytes, get_lane(w, *reg, l));
                }
            }
        }
    }
    if store && cx.sanitize {
        check_store(cx, env, w, pc, a, &at, active);
    }
}

/// Every lane must find what it stored, or another lane stored something else there.
#[inline(always)]
fn check_store(
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
        let address = u64::from(at[lane as usize]) + u64::from(SHARED_BASE);
        let site = Site {
            pc,
            warp: w.index,
            lanes: lost,
            address: Some(address),
        };
        env.report(cx, FindingKind::WriteConflict, site, || {
            format!("lane {lane} and another lane of the warp store different values to shared address {address:#x}")
        });
    }
}

#[allow(clippy::too_many_arguments)] // an access is that much
#[inline(never)]
fn local(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
    store: bool,
) {
    let bytes = u32::from(a.bytes);
    let total = bytes * u32::from(a.count);
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        if at[l] % u64::from(total) != 0 {
            let x = at[l];
            env.report(cx, FindingKind::Misaligned, site, || {
                format!("lane {l} accesses {total} bytes at local address {x:#x}")
            });
            continue;
        }
        for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
            let offset = at[l].wrapping_add(u64::from(e as u32 * bytes));
            let fine = if store {
                let value = get_lane(w, *reg, l);
                w.local_store(l, offset, bytes, value)
            } else {
                let value = w.local_load(l, offset, bytes);
                set_lane(w, *reg, l, value.unwrap_or(0), bytes, a.signed);
                value.is_some()
            };
            if !fine {
                let size = cx.program.local_bytes;
                env.report(cx, FindingKind::OutOfBounds, site, || {
                    format!("lane {l} accesses {bytes} bytes at byte {offset} of its {size} bytes of local memory")
                });
            }
        }
    }
}

fn param(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &Row64,
    active: u32,
) {
    let bytes = u64::from(a.bytes);
    for l in lanes_of(active) {
        for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
            let offset = at[l].wrapping_add(e as u64 * bytes);
            let range = usize::try_from(offset)
                .ok()
                .and_then(|o| cx.params.get(o..o.checked_add(bytes as usize)?));
            let site = Site {
                pc,
                warp: w.index,
                lanes: 1 << l,
                address: Some(offset),
            };
            if range.is_none() {
                let size = cx.params.len();
                env.report(cx, FindingKind::OutOfBounds, site, || {
                    format!("lane {l} loads {bytes} bytes at byte {offset} of the {size} bytes of parameters")
                });
            } else if offset % bytes != 0 {
                env.report(cx, FindingKind::Misaligned, site, || {
                    format!("lane {l} loads {bytes} bytes at byte {offset} of the parameters")
                });
            }
            set_lane(w, *reg, l, range.map_or(0, little), bytes as u32, a.signed);
        }
    }
}

/// Checks global addresses: reports lanes outside their allocation or misaligned, and returns the lanes that may go on, with the base
/// of the first lane's allocation and whether all are in it.
#[inline(always)]
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
    let mut bad = false;
    let mut low = 0u64;
    for l in 0..32 {
        let on = (active >> l) & 1 != 0;
        let offset = at[l].wrapping_sub(alloc.base);
        bad |= on & (offset > limit);
        low |= if on { at[l] } else { 0 };
    }
    if !bad && low & u64::from(total - 1) == 0 {
        return (active, true);
    }
    (sort_out_global(cx, env, w, pc, at, total, active), false)
}

#[inline(never)]
fn sort_out_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &Row64,
    total: u32,
    active: u32,
) -> u32 {
    let (mut outside, mut crooked) = (0u32, 0u32);
    for l in lanes_of(active) {
        let mut hint = 0;
        let inside = cx
            .memory
            .locate(at[l], &mut hint)
            .is_some_and(|a| a.len - (at[l] - a.base) >= u64::from(total));
        outside |= u32::from(!inside) << l;
        crooked |= u32::from(inside && at[l] % u64::from(total) != 0) << l;
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
        env.report(cx, FindingKind::OutOfBounds, site, || match cx.memory.nearest(x) {
            Some(a) => {
                let offset = x.wrapping_sub(a.base) as i64;
                let len = a.len;
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
        env.report(cx, FindingKind::Misaligned, site, || {
            format!("lane {lane} accesses {total} bytes at global address {x:#x}, not a multiple of {total}")
        });
    }
    active & !outside & !crooked
}

#[inline(always)]
#[allow(clippy::too_many_arguments)] // an access is that much
fn global(
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
    if cx.undefined_global || cx.global_shadow.is_some() {
        observe_global(cx, env, w, pc, at, total, active, store);
    }
    let mut hint = env.hints[pc];
    if together
        && bytes == 4
        && a.regs[..count as usize]
            .iter()
            .all(|r| r.file == File::R32 && (store || r.row != NONE))
    {
        let Some(alloc) = cx
            .memory
            .locate(at[active.trailing_zeros() as usize & 31], &mut hint)
        else {
            return;
        };
        for (e, reg) in a.regs.iter().enumerate().take(count as usize) {
            let row = &mut w.r32[reg.row as usize];
            let shift = alloc.base.wrapping_sub(4 * e as u64);
            for l in lanes_of(active) {
                if store {
                    alloc.set_word(at[l].wrapping_sub(shift), row[l]);
                } else {
                    row[l] = alloc.word(at[l].wrapping_sub(shift));
                }
            }
        }
    } else {
        for l in lanes_of(active) {
            let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
                continue;
            };
            for (e, reg) in a.regs.iter().enumerate().take(count as usize) {
                let offset = at[l] - alloc.base + u64::from(e as u32 * bytes);
                if store {
                    alloc.store(offset, bytes, get_lane(w, *reg, l));
                } else {
                    set_lane(w, *reg, l, alloc.load(offset, bytes), bytes, a.signed);
                }
            }
        }
    }
}

/// The optional checks on global memory.
#[inline(never)]
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn observe_global(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    at: &Row64,
    total: u32,
    active: u32,
    store: bool,
) {
    for l in lanes_of(active) {
        let site = Site {
            pc,
            warp: w.index,
            lanes: 1 << l,
            address: Some(at[l]),
        };
        let mut hint = 0;
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let offset = at[l] - alloc.base;
        if cx.undefined_global {
            if store {
                alloc.mark_written(offset, total);
            } else if !alloc.is_written(offset, total) {
                env.report(cx, FindingKind::UndefinedGlobal, site, || {
                    format!("lane {l} reads {total} bytes at byte {offset} of an allocation, which nothing has written")
                });
            }
        }
        let block = env.block;
        let other = cx
            .global_shadow
            .as_ref()
            .and_then(|s| s.access(at[l], total, store, block));
        if let Some(other) = other {
            let verb = if store { "writes" } else { "reads" };
            env.report(cx, FindingKind::GlobalRace, site, || {
                if other == u64::from(u32::MAX) {
                    format!("lane {l} {verb} byte {offset} of an allocation, which several other blocks read")
                } else {
                    format!("lane {l} {verb} byte {offset} of an allocation, which block number {other} accesses too")
                }
            });
        }
    }
}

fn combine(op: AtomOp, bytes: u32, old: u64, b: u64, c: u64) -> u64 {
    let signed = |x: u64| {
        if bytes == 4 {
            i64::from(x as u32 as i32)
        } else {
            x as i64
        }
    };
    let half = |bf16: bool, x: u64, y: u64, packed: bool| {
        let row = |v: u64| [v as u32; 32];
        u64::from(
            super::fp::half(
                FloatOp::Add,
                bf16,
                packed,
                FloatMode::PLAIN,
                &row(x),
                &row(y),
                &row(0),
            )[0],
        )
    };
    match op {
        AtomOp::Add => old.wrapping_add(b),
        AtomOp::MinU => old.min(b),
        AtomOp::MaxU => old.max(b),
        AtomOp::MinS => {
            if signed(old) <= signed(b) {
                old
            } else {
                b
            }
        }
        AtomOp::MaxS => {
            if signed(old) >= signed(b) {
                old
            } else {
                b
            }
        }
        AtomOp::And => old & b,
        AtomOp::Or => old | b,
        AtomOp::Xor => old ^ b,
        AtomOp::Exch => b,
        AtomOp::Cas => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomOp::Inc => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomOp::AddF32 => u64::from(super::fp::scalar32(
            FloatOp::Add,
            FloatMode::PLAIN,
            old as u32,
            b as u32,
            0,
        )),
        AtomOp::AddF64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        AtomOp::AddF16x2 => half(false, old, b, true),
        AtomOp::AddBf16x2 => half(true, old, b, true),
        AtomOp::AddF16 => half(false, old, b, false),
        AtomOp::AddBf16 => half(true, old, b, false),
    }
}

/// `atom` and `red`: lane after lane.
#[inline(never)]
pub(crate) fn atom(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Atom,
    active: u32,
) {
    w.polls += 1;
    let bytes = u32::from(a.bytes);
    let at = addresses(w, a.address);
    let in_window = |l: usize| at[l].wrapping_sub(SHARED_WINDOW) < WINDOW;
    let to_shared = match a.space {
        Space::Shared => active,
        Space::Generic => lanes_of(active)
            .filter(|&l| in_window(l))
            .fold(0, |m, l| m | 1 << l),
        _ => 0,
    };
    let base = if a.space == Space::Shared {
        0
    } else {
        SHARED_WINDOW
    };
    let mask = if bytes == 8 {
        u64::MAX
    } else {
        (1 << (8 * bytes)) - 1
    };
    if to_shared != 0 {
        let offsets = shared_offsets(w, a.address, to_shared, base);
        let lanes = check_shared(cx, env, w, pc, &offsets, bytes, to_shared);
        count_wavefronts(env, pc, SharedAccess::Store { bytes }, &offsets, lanes);
        for l in lanes_of(lanes) {
            let who = Who::new(pc, w.index, l as u32).atomic();
            let mut conflict = None;
            if let Some(shadow) = &mut env.shadow {
                let first = (offsets[l] >> shadow.grain) as usize;
                for u in first..first + (bytes >> shadow.grain).max(1) as usize {
                    conflict = conflict
                        .or(shadow.read_strong(u, who))
                        .or(shadow.write(u, who));
                }
            }
            if let Some(c) = conflict {
                report_conflict(cx, env, who, offsets[l], c, true);
            }
            let old = env.shared.load(offsets[l], bytes);
            let new = combine(
                a.op,
                bytes,
                old,
                get_lane(w, a.b, l) & mask,
                get_lane(w, a.c, l) & mask,
            );
            env.shared.store(offsets[l], bytes, new & mask);
            set_lane(w, a.d, l, old, bytes, false);
        }
    }
    let rest = active & !to_shared;
    if rest == 0 {
        return;
    }
    let (lanes, _) = check_global(cx, env, w, pc, &at, bytes, rest);
    let guard = (bytes == 8).then(|| cx.atomic_lock.lock());
    let mut hint = env.hints[pc];
    for l in lanes_of(lanes) {
        let Some(alloc) = cx.memory.locate(at[l], &mut hint) else {
            continue;
        };
        let (b, c) = (get_lane(w, a.b, l) & mask, get_lane(w, a.c, l) & mask);
        let offset = at[l] - alloc.base;
        let old = alloc.update(offset, bytes, |old| combine(a.op, bytes, old, b, c) & mask);
        if cx.undefined_global {
            alloc.mark_written(offset, bytes);
        }
        set_lane(w, a.d, l, old, bytes, false);
    }
    drop(guard);
}
