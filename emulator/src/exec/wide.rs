//! Registers of either width as rows of 64 bits.
//!
//! Example: a load of bytes makes a row of 64-bit values, and [`set_wide`] puts them, or their lower halves, into the destination.

use super::alu::{Row32, Row64, put};
use super::warp::Warp;
use crate::ir::{NONE, Reg};
use crate::types::File;

/// What `r` holds, zero-extended.
#[inline(always)]
pub(super) fn wide(w: &Warp, r: Reg) -> Row64 {
    if r.file == File::R64 {
        return w.r64[r.row as usize];
    }
    // A loop: `map` would be a function of its own, without wide vectors.
    let row = &w.r32[r.row as usize];
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = u64::from(row[l]);
    }
    out
}

/// Sets `d`, if it is a register, in the lanes `active`.
#[inline(always)]
pub(super) fn set_wide(w: &mut Warp, d: Reg, value: &Row64, active: u32) {
    match d.file {
        _ if d.row == NONE => {}
        File::R64 => put(&mut w.r64[d.row as usize], value, active),
        _ => put(&mut w.r32[d.row as usize], &narrow(value), active),
    }
}

/// The lower halves.
#[inline(always)]
pub(super) fn narrow(row: &Row64) -> Row32 {
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = row[l] as u32;
    }
    out
}
