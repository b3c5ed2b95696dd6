//! What atomics compute: the new value of a place from the old one and a lane's operands.
//!
//! Lanes that change one place make a chain: each finds what the one before it left. Example: `add` of 1, 2 and 3 to 10 leaves 16, and the lanes find
//! 10, 11 and 13.

use super::alu::Row64;
use super::code::COMPACT;
use super::fp::{scalar16, scalar32};
use super::fp32::canonical;
use super::mem::lanes_of;
use super::warp::Warp;
use super::wide::wide;
use crate::ir::{Atom, AtomOp, FloatMode, FloatOp, Reg};

/// The operands of all lanes of an atomic instruction.
pub(super) struct Operands {
    op: AtomOp,
    bytes: u32,
    /// The bits of a value.
    mask: u64,
    b: Row64,
    /// Only `cas` has it.
    c: Row64,
}

impl Operands {
    #[inline(always)]
    pub(super) fn of(w: &Warp, a: &Atom) -> Self {
        let bytes = u32::from(a.bytes);
        let mask = u64::MAX >> (64 - 8 * bytes);
        Self {
            op: a.op,
            bytes,
            mask,
            b: values(w, a.b, mask),
            c: if a.op == AtomOp::Cas {
                values(w, a.c, mask)
            } else {
                [0; 32]
            },
        }
    }

    /// `lanes` change a place that holds `first`, one after the other: what they leave, and how many of them changed it. What each lane finds goes to
    /// `found`.
    #[inline(always)]
    pub(super) fn chain(&self, first: u64, lanes: u32, found: &mut Row64) -> (u64, u64) {
        match self.op {
            op if COMPACT => self.fold(first, lanes, found, |x, b, c| {
                combine(op, self.bytes, x, b, c)
            }),
            AtomOp::Add => self.fold(first, lanes, found, |x, b, _| x.wrapping_add(b)),
            AtomOp::Exch => self.fold(first, lanes, found, |_, b, _| b),
            AtomOp::Cas => self.fold(first, lanes, found, |x, b, c| if x == b { c } else { x }),
            AtomOp::AddF32 => self.fold(first, lanes, found, |x, b, c| {
                combine(AtomOp::AddF32, 4, x, b, c)
            }),
            op => self.fold(first, lanes, found, |x, b, c| {
                combine(op, self.bytes, x, b, c)
            }),
        }
    }

    #[inline(always)]
    fn fold(
        &self,
        first: u64,
        lanes: u32,
        found: &mut Row64,
        f: impl Fn(u64, u64, u64) -> u64,
    ) -> (u64, u64) {
        let (mut value, mut changed) = (first, 0);
        for l in lanes_of(lanes) {
            found[l] = value;
            let new = f(value, self.b[l], self.c[l]) & self.mask;
            changed += u64::from(new != value);
            value = new;
        }
        (value, changed)
    }
}

/// The bits `mask` of a register.
#[inline(always)]
fn values(w: &Warp, r: Reg, mask: u64) -> Row64 {
    let mut out = wide(w, r);
    for x in &mut out {
        *x &= mask;
    }
    out
}

/// The new value.
pub(super) fn combine(op: AtomOp, bytes: u32, old: u64, b: u64, c: u64) -> u64 {
    let signed = |x: u64| {
        if bytes == 4 {
            i64::from(x as u32 as i32)
        } else {
            x as i64
        }
    };
    let halves = |f: FloatOp, bf16: bool, x: u64, y: u64, packed: bool| {
        let part = |shift: u32| {
            let [x, y] = [x, y].map(|x| (x >> shift) as u32 & 0xffff);
            u64::from(scalar16(f, bf16, FloatMode::PLAIN, x, y, 0)) << shift
        };
        part(0) | if packed { part(16) } else { 0 }
    };
    let half = |bf16, x, y, packed| halves(FloatOp::Add, bf16, x, y, packed);
    match op {
        AtomOp::MinF16 => halves(FloatOp::Min, false, old, b, false),
        AtomOp::MaxF16 => halves(FloatOp::Max, false, old, b, false),
        AtomOp::MinBf16 => halves(FloatOp::Min, true, old, b, false),
        AtomOp::MaxBf16 => halves(FloatOp::Max, true, old, b, false),
        AtomOp::AddF32Ftz => {
            let mode = FloatMode {
                ftz: true,
                ..FloatMode::PLAIN
            };
            let sum = scalar32(FloatOp::Add, mode, old as u32, b as u32, 0);
            u64::from(sum)
        }
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
        AtomOp::AddF32 => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(b as u32);
            u64::from(canonical(sum))
        }
        AtomOp::AddF64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        AtomOp::AddF16x2 => half(false, old, b, true),
        AtomOp::AddBf16x2 => half(true, old, b, true),
        AtomOp::AddF16 => half(false, old, b, false),
        AtomOp::AddBf16 => half(true, old, b, false),
    }
}
