//! `cvt` (PTX ISA, section 9.7.9.21), exact.
//!
//! What compilers emit all the time has loops in [`super::convert`]; the rest, which defines the results, is here, lane by lane.
//!
//! A value is either an integer (as `i128`) or a float (as `f64`, which holds every source format exactly). So there are four
//! cases: integer to integer wraps or saturates, float to integer rounds and always saturates, integer to float is two exact halves
//! added to odd, float to float is [`narrow`]. Example: `cvt.rni.s32.f32` of 2.5 is 2.

use super::warp::Warp;
use crate::float::{add_to_odd, flush32, narrow, redirect64, widen};
use crate::ir::{Convert, Format, Packed, Reg, Rounding};
use crate::types::File;

/// Runs `c` on the active lanes.
#[inline(never)]
pub(super) fn by_lane(w: &mut Warp, c: &Convert, active: u32) {
    for lane in 0..32 {
        if active >> lane & 1 == 0 {
            continue;
        }
        let read = |r: Reg| match r.file {
            File::R64 => w.r64[r.row as usize][lane],
            _ => u64::from(w.r32[r.row as usize][lane]),
        };
        let a = read(c.a);
        let value = match c.packed {
            Packed::No => one(c, a),
            Packed::Join => {
                let width = width(c.to);
                one(c, a) << width | one(c, read(c.b))
            }
            Packed::Both => {
                let (from, to) = (width(c.from), width(c.to));
                one(c, a >> from) << to | one(c, a & ((1 << from) - 1))
            }
        };
        match c.d.file {
            File::R64 => w.r64[c.d.row as usize][lane] = value,
            _ => w.r32[c.d.row as usize][lane] = value as u32,
        }
    }
}

fn width(f: Format) -> u32 {
    match f {
        Format::U(b) | Format::S(b) => u32::from(b),
        Format::F16 | Format::Bf16 => 16,
        Format::E4m3 | Format::E5m2 => 8,
        Format::F64 => 64,
        Format::F32 | Format::Tf32 => 32,
    }
}

/// The integer that the low bits of `x` are in format `f`.
fn integer(x: u64, f: Format) -> i128 {
    match f {
        Format::S(bits) => {
            i128::from((x << (64 - u32::from(bits))) as i64 >> (64 - u32::from(bits)))
        }
        Format::U(bits) => i128::from(x << (64 - u32::from(bits)) >> (64 - u32::from(bits))),
        _ => 0,
    }
}

/// Smallest and largest integer of `f`.
fn range(f: Format) -> (i128, i128) {
    match f {
        Format::S(b) => (-(1i128 << (b - 1)), (1i128 << (b - 1)) - 1),
        Format::U(b) => (0, (1i128 << b) - 1),
        _ => (0, 0),
    }
}

/// One value converted; the result of a signed type is extended to 64 bits.
pub(crate) fn one(c: &Convert, x: u64) -> u64 {
    let is_int = |f: Format| matches!(f, Format::U(_) | Format::S(_));
    match (is_int(c.from), is_int(c.to)) {
        (true, true) => {
            let (low, high) = range(c.to);
            let v = integer(x, c.from);
            let v = if c.sat {
                v.clamp(low, high)
            } else {
                integer(v as u64, c.to)
            };
            v as u64
        }
        (true, false) => {
            let v = integer(x, c.from);
            // |v| < 2^64: the upper and lower 32 bits are exact, and so is the sum to odd.
            let (high, low) = (((v >> 32) << 32) as f64, (v & 0xffff_ffff) as f64);
            if c.to == Format::F64 {
                let s = high + low;
                let t = s - high;
                let e = (high - (s - t)) + (low - t);
                return redirect64(s, e, c.rounding).to_bits();
            }
            let r = add_to_odd(high, low);
            narrow(
                if c.sat { r.clamp(0.0, 1.0) } else { r },
                c.to,
                c.rounding,
                c.satfinite,
            )
        }
        (false, true) => to_integer(c, source(c, x)),
        (false, false) => match payload(c, x) {
            Some(nan) => nan,
            None => to_float(c, source(c, x)),
        },
    }
}

/// The float value of the source.
fn source(c: &Convert, x: u64) -> f64 {
    // Hardware does not flush what becomes a half.
    let x = if c.ftz && c.from == Format::F32 && c.to != Format::F16 {
        u64::from(flush32(x as u32))
    } else {
        x
    };
    widen(x, c.from)
}

/// The NaN that a NaN becomes where hardware keeps its payload: to and from f64, from bf16, and to tf32.
fn payload(c: &Convert, x: u64) -> Option<u64> {
    if !widen(x, c.from).is_nan() || c.sat || c.relu {
        return None;
    }
    let sign = |bits: u32| x >> (bits - 1) & 1;
    let f64_of = |bits: u32, fraction: u32| {
        let low = x & ((1 << fraction) - 1);
        sign(bits) << 63 | 0x7ff8 << 48 | low << (52 - fraction)
    };
    match (c.from, c.to) {
        (Format::F64, Format::F64) => Some(x | 1 << 51),
        // Flushing canonicalises first.
        (Format::F32, Format::F64) if c.ftz => Some(0x7fff_ffff_e000_0000),
        (Format::F32, Format::F64) => Some(f64_of(32, 23)),
        (Format::F16, Format::F64) => Some(f64_of(16, 10)),
        (Format::F64, Format::F32) => Some(sign(64) << 31 | 0x7fc0_0000 | (x >> 29 & 0x3f_ffff)),
        (Format::F64, Format::F16) => Some(sign(64) << 15 | 0x7e00 | (x >> 42 & 0x1ff)),
        (Format::Bf16, Format::F32) => Some(x << 16),
        (Format::F32, Format::Tf32) => Some(x & 0xffff_e000),
        _ => None,
    }
}

fn round_integral(v: f64, r: Rounding) -> f64 {
    match r {
        Rounding::Nearest => v.round_ties_even(),
        Rounding::NearestAway => v.round(),
        Rounding::Zero => v.trunc(),
        Rounding::Down => v.floor(),
        Rounding::Up => v.ceil(),
    }
}

fn to_integer(c: &Convert, v: f64) -> u64 {
    let (low, high) = range(c.to);
    if v.is_nan() {
        let bits = width(c.to);
        return if c.from == Format::F64 || bits == 64 {
            1 << (bits - 1)
        } else {
            0
        };
    }
    // `as` saturates to i128, far outside every range.
    ((round_integral(v, c.rounding) as i128).clamp(low, high)) as u64
}

fn to_float(c: &Convert, v: f64) -> u64 {
    let mut v = if c.integral {
        round_integral(v, c.rounding)
    } else {
        v
    };
    if c.sat {
        v = if v > 0.0 { v.min(1.0) } else { 0.0 };
    }
    if c.relu && v <= 0.0 {
        v = 0.0;
    }
    if c.to == Format::F64 {
        return if v.is_nan() {
            0x7ff8_0000_0000_0000
        } else {
            v.to_bits()
        };
    }
    let r = narrow(v, c.to, c.rounding, c.satfinite);
    if c.ftz && c.to == Format::F32 {
        u64::from(flush32(r as u32))
    } else {
        r
    }
}
