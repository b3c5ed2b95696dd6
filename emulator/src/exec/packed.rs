//! Packed integers: `.s16x2`, `cvt.pack` and the video instructions, whose intermediate results have as many bits as they need.

use super::mem::lanes_of;
use super::warp::Warp;
use crate::ir::{Cmp, IntOp, Join, NONE, Row, Video, VideoOp};

/// `f` on each half of a register.
pub(super) fn packed16(w: &mut Warp, f: IntOp, signed: bool, rows: [Row; 3], active: u32) {
    let [d, a, b] = rows;
    let (a, b) = (w.r32[a as usize], w.r32[b as usize]);
    let half = |r: &[u32; 32], shift: u32| r.map(|x| x >> shift & 0xffff);
    let low = super::alu::int16(f, signed, false, &half(&a, 0), &half(&b, 0), &[0; 32]);
    let high = super::alu::int16(f, signed, false, &half(&a, 16), &half(&b, 16), &[0; 32]);
    for l in lanes_of(active) {
        w.r32[d as usize][l] = low[l] | high[l] << 16;
    }
}

/// `cvt.pack`.
pub(super) fn cvt_pack(w: &mut Warp, signed: bool, bits: u8, rows: [Row; 4], active: u32) {
    let [d, a, b, c] = rows;
    let (low, high) = if signed {
        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) - 1)
    };
    let narrow = |x: u32| {
        let clamped = i64::from(x as i32).clamp(low, high);
        clamped as u32 & ((1u64 << bits) - 1) as u32
    };
    for l in lanes_of(active) {
        let pair = narrow(w.r32[a as usize][l]) << bits | narrow(w.r32[b as usize][l]);
        let above = if c == NONE {
            0
        } else {
            w.r32[c as usize][l]
                .checked_shl(2 * u32::from(bits))
                .unwrap_or(0)
        };
        w.r32[d as usize][l] = above | pair;
    }
}

/// Bits `bits` of `x` from `shift` on, sign-extended if `signed`.
fn field(x: u64, shift: u32, bits: u32, signed: bool) -> i64 {
    let raw = x >> shift & ((1u64 << bits) - 1);
    if signed {
        (raw << (64 - bits)) as i64 >> (64 - bits)
    } else {
        raw as i64
    }
}

/// Place and width of a part: byte 0 to 3, half 4 or 5, or everything.
fn place(part: u8) -> (u32, u32) {
    match part {
        0..=3 => (8 * u32::from(part), 8),
        4 | 5 => (16 * u32::from(part - 4), 16),
        _ => (0, 32),
    }
}

fn compute(v: &Video, a: i64, b: i64, c: i64) -> i64 {
    match v.op {
        VideoOp::Add => a + b,
        VideoOp::Sub => a - b,
        VideoOp::AbsDiff => (a - b).abs(),
        VideoOp::Min => a.min(b),
        VideoOp::Max => a.max(b),
        // Rounds away from zero below it and up above.
        VideoOp::Average if a + b >= 0 => (a + b + 1) >> 1,
        VideoOp::Average => (a + b) >> 1,
        // The third signedness says that the amount wraps.
        VideoOp::Shl | VideoOp::Shr => {
            let amount = if v.signed[2] {
                (b & 31) as u32
            } else {
                (b as u64).min(32) as u32
            };
            if v.op == VideoOp::Shl {
                a << amount
            } else {
                a >> amount
            }
        }
        VideoOp::Set(cmp) => i64::from(match cmp {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            _ => a >= b,
        }),
        VideoOp::Mad { shift, plus_one } => {
            let sum = i128::from(a) * i128::from(b) + i128::from(c) + i128::from(plus_one);
            (sum >> shift).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        }
    }
}

fn saturate(x: i64, bits: u32, signed: bool) -> i64 {
    if signed {
        x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        x.clamp(0, (1 << bits) - 1)
    }
}

/// A video instruction.
pub(super) fn video(w: &mut Warp, v: &Video, active: u32) {
    for l in lanes_of(active) {
        let (a, b, c) = (
            w.r32[v.a as usize][l],
            w.r32[v.b as usize][l],
            w.r32[v.c as usize][l],
        );
        w.r32[v.d as usize][l] = if v.count == 1 {
            scalar(v, a, b, c)
        } else {
            elements(v, a, b, c)
        };
    }
}

fn scalar(v: &Video, a: u32, b: u32, c: u32) -> u32 {
    let part = |x: u32, part: u8, signed: bool| {
        let (shift, bits) = place(part);
        field(u64::from(x), shift, bits, signed)
    };
    let shifts = matches!(v.op, VideoOp::Shl | VideoOp::Shr);
    let x = part(a, v.select[0][0], v.signed[1]);
    let y = part(b, v.select[1][0], v.signed[2] && !shifts);
    let z = if v.signed[0] {
        i64::from(c as i32)
    } else {
        i64::from(c)
    };
    let (at, bits) = place(v.part);
    let mut r = compute(v, x, y, z);
    if v.saturate {
        r = saturate(r, bits, v.signed[0]);
    }
    let r = r as u32;
    match v.join {
        Join::None => r,
        Join::Add => r.wrapping_add(c),
        Join::Min if v.signed[0] => (r as i32).min(c as i32) as u32,
        Join::Min => r.min(c),
        Join::Max if v.signed[0] => (r as i32).max(c as i32) as u32,
        Join::Max => r.max(c),
        Join::Merge => {
            let mask = (u64::from(u32::MAX) >> (32 - bits) << at) as u32;
            (c & !mask) | (r << at & mask)
        }
    }
}

fn elements(v: &Video, a: u32, b: u32, c: u32) -> u32 {
    let bits = 32 / u32::from(v.count);
    let mask = (1u32 << bits) - 1;
    let pair = u64::from(b) << 32 | u64::from(a);
    let mut sum = c;
    let mut merged = c;
    for e in 0..usize::from(v.count) {
        if v.part >> e & 1 == 0 {
            continue;
        }
        let x = field(pair, bits * u32::from(v.select[0][e]), bits, v.signed[1]);
        let y = field(pair, bits * u32::from(v.select[1][e]), bits, v.signed[2]);
        let mut r = compute(v, x, y, 0);
        if v.saturate {
            r = saturate(r, bits, v.signed[0]);
        }
        let at = bits * e as u32;
        // A sum takes the element as a number of the result's type.
        sum = sum.wrapping_add(if v.saturate || v.op == VideoOp::AbsDiff {
            r as u32
        } else {
            field(r as u64, 0, bits, v.signed[0]) as u32
        });
        merged = (merged & !(mask << at)) | (r as u32 & mask) << at;
    }
    if v.join == Join::Add { sum } else { merged }
}
