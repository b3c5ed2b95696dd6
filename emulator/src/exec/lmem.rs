//! Loads and stores of local memory: by whole rows where all lanes are at one place, lane by lane otherwise.

use super::alu::{FEW, Row64, put};
use super::code::COMPACT;
use super::compare::mask_of;
use super::mem::{addresses, extended, get_lane, lanes_of, set_lane};
use super::traffic;
use super::warp::Warp;
use super::wide::{set_wide, wide};
use super::{Context, Env, Site};
use crate::ir::{Access, Address, NONE, Reg};
use crate::report::FindingKind;
use crate::types::File;

/// A load or store of the active lanes at addresses of which `origin` is that of their local memory.
#[allow(clippy::too_many_arguments)] // an access is that much
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn local(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    origin: u64,
    active: u32,
    store: bool,
) {
    let moved = u64::from(u32::from(a.bytes) * u32::from(a.count) * active.count_ones());
    traffic::count(env, pc, |t| t.local_bytes += moved);
    let done = match a.bytes {
        _ if COMPACT => None,
        _ if active.count_ones() > FEW && is_one_place(w, a.address, active) => {
            row(w, a, origin, active, store)
        }
        1 => lanes::<1>(w, a, origin, active, store),
        2 => lanes::<2>(w, a, origin, active, store),
        4 => lanes::<4>(w, a, origin, active, store),
        _ => lanes::<8>(w, a, origin, active, store),
    };
    if done.is_none() {
        let mut at = addresses(w, a.address);
        for x in &mut at {
            *x = x.wrapping_sub(origin);
        }
        careful(cx, env, w, pc, a, &at, active, store);
    }
}

/// Whether address `a` is the same in all active lanes.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn is_one_place(w: &Warp, a: Address, active: u32) -> bool {
    let first = active.trailing_zeros() as usize & 31;
    let same = match a.base {
        None => u32::MAX,
        Some(Reg {
            file: File::R64,
            row,
        }) => {
            let x = &w.r64[row as usize];
            mask_of(|l| x[l] == x[first])
        }
        Some(Reg { row, .. }) => {
            let x = &w.r32[row as usize];
            mask_of(|l| x[l] == x[first])
        }
    };
    active & !same == 0
}

/// Where in local memory address `a` is in `lane`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn place(w: &Warp, a: Address, origin: u64, lane: usize) -> u64 {
    let base = a.base.map_or(0, |reg| get_lane(w, reg, lane));
    base.wrapping_add(a.offset as u64).wrapping_sub(origin)
}

/// An access of all lanes at one place. `None`, and nothing done, if it is misaligned or outside some lane's frames.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn row(w: &mut Warp, a: &Access, origin: u64, active: u32, store: bool) -> Option<()> {
    let offset = place(w, a.address, origin, active.trailing_zeros() as usize & 31);
    let regs = &a.regs[..usize::from(a.count)];
    let bytes = u32::from(a.bytes);
    let total = u64::from(bytes * u32::from(a.count));
    let mut ends = [u32::MAX; 32];
    put(&mut ends, &w.ends, active);
    let end = ends.iter().fold(u32::MAX, |least, end| least.min(*end));
    let inside = offset.checked_add(total)? <= u64::from(end);
    if !inside || !offset.is_multiple_of(total) || regs.iter().any(|r| r.row == NONE) {
        return None;
    }
    for (e, reg) in regs.iter().enumerate() {
        let offset = offset + u64::from(e as u32 * bytes);
        let place = (offset / 4) as usize;
        // Whole words of local memory are rows like those of registers.
        if (bytes, reg.file) == (4, File::R32)
            && let Some(words) = w.local.rows.get_mut(place)
        {
            let register = &mut w.r32[reg.row as usize];
            if store {
                put(words, register, active);
            } else {
                put(register, words, active);
            }
            continue;
        }
        if store {
            let value = wide(w, *reg);
            w.local.store_row(offset, bytes, &value, active);
            continue;
        }
        let mut value = w.local.load_row(offset, bytes);
        if a.signed {
            for x in &mut value {
                *x = extended(*x, bytes, true);
            }
        }
        set_wide(w, *reg, &value, active);
    }
    Some(())
}

/// An access of elements of `BYTES` bytes, lane by lane. `None` if some lane's is misaligned or outside its frames; then all lanes are still to be served, and no
/// address has changed.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn lanes<const BYTES: u32>(
    w: &mut Warp,
    a: &Access,
    origin: u64,
    active: u32,
    store: bool,
) -> Option<()> {
    let regs = &a.regs[..usize::from(a.count)];
    let bits = (BYTES * u32::from(a.count)).trailing_zeros();
    let add = (a.address.offset as u64).wrapping_sub(origin);
    // The number of the vector from the start of local memory: rotated, a misaligned address is beyond any frame.
    let ends = &w.ends;
    let beyond = |l: usize, place: u64| place.rotate_right(bits) >= u64::from(ends[l] >> bits);
    if let (&[data], Some(base)) = (regs, a.address.base)
        && (data.file, base.file) == (File::R32, File::R64)
        && data.row != NONE
    {
        // Mostly one pass is enough, since the addresses are in other registers than the data.
        let (base, data) = (&w.r64[base.row as usize], &mut w.r32[data.row as usize]);
        for l in lanes_of(active) {
            let at = base[l].wrapping_add(add);
            if beyond(l, at) {
                return None;
            }
            if store {
                w.local.set_element::<BYTES>(l, at, data[l].into());
            } else {
                let value = w.local.element::<BYTES>(l, at);
                data[l] = extended(value, BYTES, a.signed) as u32;
            }
        }
        return Some(());
    }
    let mut at = [0; 32];
    match a.address.base {
        Some(Reg {
            file: File::R64,
            row,
        }) => {
            let base = &w.r64[row as usize];
            for l in lanes_of(active) {
                at[l] = base[l].wrapping_add(add);
                if beyond(l, at[l]) {
                    return None;
                }
            }
        }
        base => {
            for l in lanes_of(active) {
                let base = base.map_or(0, |reg| get_lane(w, reg, l));
                at[l] = base.wrapping_add(add);
                if beyond(l, at[l]) {
                    return None;
                }
            }
        }
    }
    if regs.iter().any(|r| r.row == NONE) {
        return None;
    }
    for (e, reg) in regs.iter().enumerate() {
        let (row, step) = (reg.row as usize, u64::from(e as u32 * BYTES));
        let local = &mut w.local;
        match (reg.file, store) {
            (File::R64, false) => {
                let row = &mut w.r64[row];
                for l in lanes_of(active) {
                    let value = local.element::<BYTES>(l, at[l] + step);
                    row[l] = extended(value, BYTES, a.signed);
                }
            }
            (_, false) => {
                let row = &mut w.r32[row];
                for l in lanes_of(active) {
                    let value = local.element::<BYTES>(l, at[l] + step);
                    row[l] = extended(value, BYTES, a.signed) as u32;
                }
            }
            (File::R64, true) => {
                let row = &w.r64[row];
                for l in lanes_of(active) {
                    local.set_element::<BYTES>(l, at[l] + step, row[l]);
                }
            }
            (_, true) => {
                let row = &w.r32[row];
                for l in lanes_of(active) {
                    local.set_element::<BYTES>(l, at[l] + step, row[l].into());
                }
            }
        }
    }
    Some(())
}

/// The same lane by lane, with a finding for each that is wrong.
#[allow(clippy::too_many_arguments)] // an access is that much
#[cold]
#[inline(never)]
fn careful(
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
        if !at[l].is_multiple_of(u64::from(total)) {
            let x = at[l];
            env.report(cx, FindingKind::Misaligned, site, &|| {
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
                let size = w.ends[l];
                env.report(cx, FindingKind::OutOfBounds, site, &|| {
                    format!("lane {l} accesses {bytes} bytes at byte {offset} of its {size} bytes of local memory")
                });
            }
        }
    }
}
