//! Loads and stores: the addresses of all lanes, sent to the memory they name.
//!
//! Generic addresses are sorted by window first; local and parameter memory, which no hot loop touches, are served here.

use super::alu::{Row64, put};
use super::cluster;
use super::compare::mask_of;
use super::gmem::global;
use super::lds::shared;
use super::local::little;
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::ir::{Access, Address, NONE, Reg};
use crate::report::FindingKind;
use crate::types::File;
use crate::windows::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW};

/// Lanes of `mask`, lowest first.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
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
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(crate) fn addresses(w: &Warp, a: Address) -> Row64 {
    match a.base {
        None => [a.offset as u64; 32],
        Some(Reg {
            file: File::R64,
            row,
        }) => {
            // Loops: `map` would be a function of its own, without wide vectors.
            let mut out = w.r64[row as usize];
            for x in &mut out {
                *x = x.wrapping_add(a.offset as u64);
            }
            out
        }
        Some(Reg { row, .. }) => {
            let mut out = [0; 32];
            for (x, r) in out.iter_mut().zip(&w.r32[row as usize]) {
                *x = u64::from(*r).wrapping_add(a.offset as u64);
            }
            out
        }
    }
}

/// A value of `bytes`, sign-extended if asked.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn extended(value: u64, bytes: u32, signed: bool) -> u64 {
    if signed && bytes < 8 {
        let shift = 64 - 8 * bytes;
        ((value << shift) as i64 >> shift) as u64
    } else {
        value
    }
}

/// Sets a register in one lane, sign-extending from `bytes` if asked.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn set_lane(w: &mut Warp, reg: Reg, lane: usize, value: u64, bytes: u32, signed: bool) {
    let value = extended(value, bytes, signed);
    match reg.file {
        _ if reg.row == NONE => {}
        File::R64 => w.r64[reg.row as usize][lane] = value,
        _ => w.r32[reg.row as usize][lane] = value as u32,
    }
}

#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn get_lane(w: &Warp, reg: Reg, lane: usize) -> u64 {
    match reg.file {
        File::R64 => w.r64[reg.row as usize][lane],
        _ => u64::from(w.r32[reg.row as usize][lane]),
    }
}

/// Whether two values of `bytes` that an instruction `opcode` stores look like one sum, added in two orders: floats of one sign and about the same size, of
/// which at most the last 4 bits (of a half the last 2) differ. A store of integers has none; bits may be floats, if they are too large for small numbers.
pub(super) fn are_close_sums(opcode: &str, bytes: u32, x: u64, y: u64) -> bool {
    let ty = opcode.rsplit('.').next().unwrap_or_default();
    let (mantissa, most) = match bytes {
        2 => (7, 3),
        4 => (23, 15),
        8 => (52, 15),
        _ => return false,
    };
    let sign = 8 * bytes - 1;
    let is_normal = |x: u64| x << (64 - sign) >> (64 - sign) >> mantissa != 0;
    let is_float = !ty.starts_with(['u', 's']);
    is_float && is_normal(x) && is_normal(y) && x >> sign == y >> sign && x.abs_diff(y) <= most
}

/// A load or a store.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
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
        Space::Param if !store => {
            if !constant(cx, w, a, active) {
                param(cx, env, w, pc, a, &addresses(w, a.address), active);
            }
        }
        Space::Local => (env.code.local)(cx, env, w, pc, a, 0, active, store),
        _ => (env.code.windows)(cx, env, w, pc, a, active, store),
    }
}

/// A load of parameters at a constant address, the same in all lanes; false, and nothing done, if something is wrong with it.
fn constant(cx: &Context<'_>, w: &mut Warp, a: &Access, active: u32) -> bool {
    let (bytes, count) = (u64::from(a.bytes), usize::from(a.count));
    let offset = |e: usize| (a.address.offset as u64).wrapping_add(e as u64 * bytes);
    let value = |e: usize| {
        let start = usize::try_from(offset(e)).ok()?;
        cx.params.get(start..start.checked_add(bytes as usize)?)
    };
    if a.address.base.is_some()
        || !offset(0).is_multiple_of(bytes)
        || (0..count).any(|e| value(e).is_none())
    {
        return false;
    }
    for (e, reg) in a.regs.iter().enumerate().take(count) {
        let value = extended(value(e).map_or(0, little), bytes as u32, a.signed);
        match reg.file {
            _ if reg.row == NONE => {}
            File::R64 => put(&mut w.r64[reg.row as usize], &[value; 32], active),
            _ => put(&mut w.r32[reg.row as usize], &[value as u32; 32], active),
        }
    }
    true
}

/// The lanes whose address is in the window from `base` on, a multiple of its size.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn inside(at: &Row64, base: u64) -> u32 {
    const BITS: u32 = WINDOW.trailing_zeros();
    mask_of(|l| (at[l] >> BITS) as u32 == (base >> BITS) as u32)
}

/// Local, parameter and generic addresses.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn windows(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    active: u32,
    store: bool,
) {
    let at = addresses(w, a.address);
    if a.space == Space::Cluster {
        return cluster::sort(cx, env, w, pc, a, &at, active, store, 0);
    }
    // Mostly all are in the window of the first.
    let first = at[active.trailing_zeros() as usize & 31] / WINDOW * WINDOW;
    let (mut to_shared, mut to_local, mut to_param) = (0, 0, 0);
    if active & !inside(&at, first) == 0 {
        match first {
            SHARED_WINDOW => to_shared = active,
            LOCAL_WINDOW => to_local = active,
            PARAM_WINDOW => to_param = active,
            _ => {}
        }
    } else {
        to_shared = active & inside(&at, SHARED_WINDOW);
        to_local = active & inside(&at, LOCAL_WINDOW);
        to_param = active & inside(&at, PARAM_WINDOW);
    }
    let to_global = active & !(to_shared | to_local | to_param);
    env.effects += u64::from(store && to_local != active);
    if to_shared != 0 {
        cluster::sort(cx, env, w, pc, a, &at, to_shared, store, SHARED_WINDOW);
    }
    if to_local != 0 {
        (env.code.local)(cx, env, w, pc, a, LOCAL_WINDOW, to_local, store);
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
                env.report(cx, FindingKind::OutOfBounds, site, &|| {
                    format!("lane {l} loads {bytes} bytes at byte {offset} of the {size} bytes of parameters")
                });
            } else if !offset.is_multiple_of(bytes) {
                env.report(cx, FindingKind::Misaligned, site, &|| {
                    format!("lane {l} loads {bytes} bytes at byte {offset} of the parameters")
                });
            }
            set_lane(w, *reg, l, range.map_or(0, little), bytes as u32, a.signed);
        }
    }
}
