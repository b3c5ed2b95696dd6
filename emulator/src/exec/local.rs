//! Local memory: the private bytes of a lane, in which the frames of its functions lie.

use super::alu::{FEW, Row32, Row64, put};
use super::code::COMPACT;
use super::compare::mask_of;
use super::mem::{addresses, extended, get_lane, lanes_of, set_lane};
use super::registers::Rows;
use super::traffic;
use super::warp::Warp;
use super::wide::{set_wide, wide};
use super::{Context, Env, Site};
use crate::ir::{Access, Address, NONE, Reg};
use crate::report::FindingKind;
use crate::types::File;

/// Little-endian value of up to 8 bytes.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .enumerate()
        .fold(0, |v, (i, b)| v | u64::from(*b) << (8 * i))
}

/// Local memory of a warp. Row k has word k of every lane, as GPUs have it, so that lanes that access one offset access one row.
#[derive(Debug)]
pub(crate) struct Local {
    rows: Rows<u32>,
    /// Rows that have been in use since the start of the block; the others are zeros.
    used: usize,
}

impl Local {
    /// Of `bytes` bytes a lane, zeros.
    pub(super) fn new(bytes: u32) -> Self {
        let used = bytes.div_ceil(4) as usize;
        Self {
            rows: Rows::new(used),
            used,
        }
    }

    /// Zeros again, of which `bytes` bytes a lane are in use.
    pub(super) fn restart(&mut self, bytes: u32) {
        self.rows.clear(0..self.used);
        self.used = 0;
        self.reserve(bytes);
    }

    /// Makes each lane's local memory at least `bytes` large.
    pub(super) fn reserve(&mut self, bytes: u32) {
        let words = bytes.div_ceil(4) as usize;
        self.used = self.used.max(words);
        if words > self.rows.len() {
            self.rows.grow(words.next_power_of_two());
        }
    }

    /// The `BYTES` (1, 2, 4 or 8) at `offset` of `lane`, aligned to as many or to 4.
    #[inline(always)]
    fn element<const BYTES: u32>(&self, lane: usize, offset: u64) -> u64 {
        let word = |k: usize| {
            let row = self.rows.get((offset / 4) as usize + k);
            row.map_or(0, |row| u64::from(row[lane & 31]))
        };
        match BYTES {
            8 => word(0) | word(1) << 32,
            4 => word(0),
            _ => word(0) >> (8 * (offset % 4)) & (u64::MAX >> (64 - 8 * BYTES)),
        }
    }

    /// Sets it.
    #[inline(always)]
    fn set_element<const BYTES: u32>(&mut self, lane: usize, offset: u64, value: u64) {
        let mut set = |k: usize, mask: u32, value: u32| {
            if let Some(row) = self.rows.get_mut((offset / 4) as usize + k) {
                let word = &mut row[lane & 31];
                *word = (*word & !mask) | (value & mask);
            }
        };
        match BYTES {
            8 => {
                set(0, u32::MAX, value as u32);
                set(1, u32::MAX, (value >> 32) as u32);
            }
            4 => set(0, u32::MAX, value as u32),
            _ => {
                let shift = 8 * (offset % 4) as u32;
                set(
                    0,
                    (u32::MAX >> (32 - 8 * BYTES)) << shift,
                    (value as u32) << shift,
                );
            }
        }
    }

    /// The `bytes` (at most 8) at `offset` of `lane`.
    pub(super) fn load(&self, lane: usize, offset: u64, bytes: u32) -> u64 {
        match bytes {
            8 if offset.is_multiple_of(4) => self.element::<8>(lane, offset),
            4 if offset.is_multiple_of(4) => self.element::<4>(lane, offset),
            _ => (0..u64::from(bytes)).fold(0, |value, i| {
                value | self.element::<1>(lane, offset + i) << (8 * i)
            }),
        }
    }

    /// Sets the `bytes` (at most 8) at `offset` of `lane`.
    pub(super) fn store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) {
        match bytes {
            8 if offset.is_multiple_of(4) => self.set_element::<8>(lane, offset, value),
            4 if offset.is_multiple_of(4) => self.set_element::<4>(lane, offset, value),
            _ => {
                for i in 0..u64::from(bytes) {
                    self.set_element::<1>(lane, offset + i, value >> (8 * i));
                }
            }
        }
    }

    /// The `bytes` (1, 2, 4 or 8) at `offset`, aligned to as many or to 4, of all lanes.
    #[inline(always)]
    fn load_row(&self, offset: u64, bytes: u32) -> Row64 {
        let mut out = [0; 32];
        let (shift, mask) = (8 * (offset % 4) as u32, u32::MAX >> (32 - 8 * bytes.min(4)));
        if let Some(row) = self.rows.get((offset / 4) as usize) {
            for l in 0..32 {
                out[l] = u64::from(row[l] >> shift & mask);
            }
        }
        if bytes == 8
            && let Some(row) = self.rows.get((offset / 4) as usize + 1)
        {
            for l in 0..32 {
                out[l] |= u64::from(row[l]) << 32;
            }
        }
        out
    }

    /// Sets the same of the lanes `active`.
    #[inline(always)]
    fn store_row(&mut self, offset: u64, bytes: u32, value: &Row64, active: u32) {
        let (shift, mask) = (8 * (offset % 4) as u32, u32::MAX >> (32 - 8 * bytes.min(4)));
        if let Some(row) = self.rows.get_mut((offset / 4) as usize) {
            let mut new = *row;
            for l in 0..32 {
                new[l] = (new[l] & !(mask << shift)) | (value[l] as u32 & mask) << shift;
            }
            put(row, &new, active);
        }
        if bytes == 8
            && let Some(row) = self.rows.get_mut((offset / 4) as usize + 1)
        {
            let mut high = [0; 32];
            for l in 0..32 {
                high[l] = (value[l] >> 32) as u32;
            }
            put(row, &high, active);
        }
    }

    /// Copies `bytes` bytes of `lanes`, whose frames start in one place each, by whole rows; false, and nothing done, if they are no words.
    #[inline(always)]
    pub(super) fn copy_rows(
        &mut self,
        lanes: u32,
        to: (&Row32, u32),
        from: (&Row32, u32),
        bytes: u32,
    ) -> bool {
        let first = lanes.trailing_zeros() as usize & 31;
        let (start, target) = (from.0[first] + from.1, to.0[first] + to.1);
        if !(start | target | bytes).is_multiple_of(4) {
            return false;
        }
        for k in 0..bytes / 4 {
            let row = self.rows.get((start / 4 + k) as usize).copied();
            if let (Some(row), Some(to)) = (row, self.rows.get_mut((target / 4 + k) as usize)) {
                put(to, &row, lanes);
            }
        }
        true
    }

    /// Copies `bytes` bytes of `lanes`, each from its frame in `from` to that in `to`, at an offset.
    pub(super) fn copy(&mut self, lanes: u32, to: (&Row32, u32), from: (&Row32, u32), bytes: u32) {
        for l in lanes_of(lanes) {
            let (from, to) = (from.0[l] + from.1, to.0[l] + to.1);
            let mut done = 0;
            while done < bytes {
                let step = if bytes - done >= 4 { 4 } else { 1 };
                let value = self.load(l, (from + done).into(), step);
                self.store(l, (to + done).into(), step, value);
                done += step;
            }
        }
    }
}

impl Warp {
    /// The `bytes` at `offset` of the local memory of `lane`, or `None` outside it.
    pub(crate) fn local_load(&self, lane: usize, offset: u64, bytes: u32) -> Option<u64> {
        self.has_local(lane, offset, bytes)
            .then(|| self.local.load(lane, offset, bytes))
    }

    /// Stores to local memory; false outside it.
    pub(crate) fn local_store(&mut self, lane: usize, offset: u64, bytes: u32, value: u64) -> bool {
        let fine = self.has_local(lane, offset, bytes);
        if fine {
            self.local.store(lane, offset, bytes, value);
        }
        fine
    }

    fn has_local(&self, lane: usize, offset: u64, bytes: u32) -> bool {
        let end = offset.checked_add(u64::from(bytes));
        end.is_some_and(|end| end <= u64::from(self.ends[lane & 31]))
    }
}

/// A load or store of the active lanes at addresses of which `origin` is that of their local memory.
#[allow(clippy::too_many_arguments)] // an access is that much
#[inline(always)]
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
#[inline(always)]
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
#[inline(always)]
fn place(w: &Warp, a: Address, origin: u64, lane: usize) -> u64 {
    let base = a.base.map_or(0, |reg| get_lane(w, reg, lane));
    base.wrapping_add(a.offset as u64).wrapping_sub(origin)
}

/// An access of all lanes at one place. `None`, and nothing done, if it is misaligned or outside some lane's frames.
#[inline(always)]
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

/// An access of elements of `BYTES` bytes, lane by lane. `None`, and nothing done, if some lane's is misaligned or outside its frames.
#[inline(always)]
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
    let mut at = [0; 32];
    // The number of the vector from the start of local memory: rotated, a misaligned address is beyond any frame.
    let beyond = |l: usize, place: u64| place.rotate_right(bits) >= u64::from(w.ends[l] >> bits);
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
