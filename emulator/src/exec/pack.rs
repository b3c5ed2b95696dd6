//! `mov` between one register and several that hold its parts, lowest first.
//!
//! Example: `mov.b64 %rd1, {%r1, %r2};` puts `%r1` into the lower 32 bits.

use super::alu::{Row32, Row64, put};
use super::warp::Warp;
use crate::ir::{NONE, Reg};
use crate::types::File;

/// Parts of `bits` bits joined in `d`.
#[inline(always)]
pub(super) fn pack(w: &mut Warp, d: Reg, bits: u8, parts: &[Reg], active: u32) {
    let mut out: Row64 = [0; 32];
    for (k, part) in parts.iter().enumerate() {
        let part = field(&wide(w, *part), 0, bits);
        let shift = k as u32 * u32::from(bits);
        for i in 0..32 {
            out[i] |= part[i] << shift;
        }
    }
    set(w, d, &out, active);
}

/// The parts of `a`, `bits` bits each, to registers.
#[inline(always)]
pub(super) fn unpack(w: &mut Warp, a: Reg, bits: u8, parts: &[Reg], active: u32) {
    let whole = wide(w, a);
    for (k, part) in parts.iter().enumerate() {
        let shift = k as u32 * u32::from(bits);
        set(w, *part, &field(&whole, shift, bits), active);
    }
}

/// `bits` bits of each lane from `shift` on.
#[inline(always)]
fn field(row: &Row64, shift: u32, bits: u8) -> Row64 {
    let mask = (1 << bits) - 1;
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = row[i] >> shift & mask;
    }
    out
}

#[inline(always)]
fn wide(w: &Warp, r: Reg) -> Row64 {
    if r.file == File::R64 {
        return w.r64[r.row as usize];
    }
    let row = &w.r32[r.row as usize];
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = u64::from(row[i]);
    }
    out
}

#[inline(always)]
fn set(w: &mut Warp, d: Reg, out: &Row64, active: u32) {
    match d.file {
        _ if d.row == NONE => {}
        File::R64 => put(&mut w.r64[d.row as usize], out, active),
        _ => {
            let mut narrow: Row32 = [0; 32];
            for i in 0..32 {
                narrow[i] = out[i] as u32;
            }
            put(&mut w.r32[d.row as usize], &narrow, active);
        }
    }
}
