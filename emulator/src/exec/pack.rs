//! `mov` between one register and several that hold its parts, lowest first.
//!
//! Example: `mov.b64 %rd1, {%r1, %r2};` puts `%r1` into the lower 32 bits.

use super::alu::Row64;
use super::warp::Warp;
use super::wide::{set_wide, wide};
use crate::ir::Reg;

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
    set_wide(w, d, &out, active);
}

/// The parts of `a`, `bits` bits each, to registers.
#[inline(always)]
pub(super) fn unpack(w: &mut Warp, a: Reg, bits: u8, parts: &[Reg], active: u32) {
    let whole = wide(w, a);
    for (k, part) in parts.iter().enumerate() {
        let shift = k as u32 * u32::from(bits);
        set_wide(w, *part, &field(&whole, shift, bits), active);
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
