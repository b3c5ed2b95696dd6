//! Floating point that does not depend on the host: exact sums, every PTX rounding, and the small formats.
//!
//! Everything rests on two facts. A product of two numbers of at most 26 bits is exact in `f64`. And a sum rounded *to odd* in
//! `f64` ([`add_to_odd`]: if inexact, the neighbour with an odd last bit) rounds a second time to any format of at most 51 bits, in
//! any direction, as if it had been rounded once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//! So `fma.rz.f32`, `fma.rn.f16` and `cvt.rna.tf32` are all "compute in f64 to odd, then [`narrow`]". Example: 1 + 2^-60 is to
//! odd 1 + 2^-52, which every rounding to f32 sees as "a little above 1".

use crate::ir::{FloatMode, Format, Rounding};

/// Canonical NaN of f32 results (PTX ISA 9.7.3).
pub(crate) const NAN32: u32 = 0x7fff_ffff;

/// a + b rounded to odd.
#[inline(always)]
pub(crate) fn add_to_odd(a: f64, b: f64) -> f64 {
    // Knuth's TwoSum: s + e == a + b exactly.
    let s = a + b;
    let t = s - a;
    let e = (a - (s - t)) + (b - t);
    to_odd(s, e)
}

/// `s` is a value rounded to nearest and `e` its error (true value minus `s`): the same rounded to odd.
#[inline(always)]
pub(crate) fn to_odd(s: f64, e: f64) -> f64 {
    let bits = s.to_bits();
    let inexact = e != 0.0 && !e.is_nan() && s.abs() < f64::INFINITY;
    let away = (e > 0.0) == (s > 0.0);
    let step = if away { 1u64 } else { u64::MAX };
    let fix = inexact && bits & 1 == 0;
    f64::from_bits(bits.wrapping_add(if fix { step } else { 0 }))
}

/// a + b in f32 rounded to odd, for a and b of at most 2^100 in size.
#[inline(always)]
pub(crate) fn add_to_odd32(a: f32, b: f32) -> f32 {
    let s = a + b;
    let t = s - a;
    let e = (a - (s - t)) + (b - t);
    let bits = s.to_bits();
    let inexact = e != 0.0 && !e.is_nan();
    let away = (e > 0.0) == (s > 0.0);
    let step = if away { 1 } else { u32::MAX };
    let fix = inexact && bits & 1 == 0;
    f32::from_bits(bits.wrapping_add(if fix { step } else { 0 }))
}

/// `x`, exact or to odd, rounded to odd in f32.
#[inline(always)]
pub(crate) fn odd32(x: f64) -> f32 {
    let r = x as f32;
    let (bits, back) = (r.to_bits(), f64::from(r).abs());
    let even = bits & 1 == 0;
    let over = even && back > x.abs();
    let under = even && back < x.abs();
    f32::from_bits(
        bits.wrapping_add(u32::from(under))
            .wrapping_sub(u32::from(over)),
    )
}

/// `x`, exact or to odd, rounded to f32 as `rounding` says; ties go to even.
#[inline(always)]
pub(crate) fn round32(x: f64, rounding: Rounding) -> f32 {
    let r = x as f32;
    let (bits, back) = (r.to_bits(), f64::from(r).abs());
    // What is beyond the largest number in size is one step from it, as infinity, and what is nearest to zero one step from zero.
    let (over, under) = (back > x.abs(), back < x.abs());
    let (inward, outward) = match rounding {
        Rounding::Nearest | Rounding::NearestAway => (false, false),
        Rounding::Zero => (over, false),
        Rounding::Down => (over && x > 0.0, under && x < 0.0),
        Rounding::Up => (over && x < 0.0, under && x > 0.0),
    };
    f32::from_bits(
        bits.wrapping_add(u32::from(outward))
            .wrapping_sub(u32::from(inward)),
    )
}

/// a·b + c in f32, correctly rounded, without a fused instruction.
#[inline(always)]
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    add_to_odd(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

/// The parameters of a binary format.
struct Layout {
    /// Bits of the fraction.
    p: u32,
    /// Exponent of the smallest normal number.
    emin: i32,
    /// Encoding of the largest finite number.
    max: u64,
    /// Encoding of infinity, if there is one.
    inf: Option<u64>,
    nan: u64,
    /// Bits of the whole number.
    bits: u32,
    /// Unused low bits of the register (tf32).
    low: u32,
}

fn layout(f: Format) -> Layout {
    match f {
        Format::F16 => Layout {
            p: 10,
            emin: -14,
            max: 0x7bff,
            inf: Some(0x7c00),
            nan: 0x7fff,
            bits: 16,
            low: 0,
        },
        Format::Bf16 => Layout {
            p: 7,
            emin: -126,
            max: 0x7f7f,
            inf: Some(0x7f80),
            nan: 0x7fff,
            bits: 16,
            low: 0,
        },
        Format::Tf32 => Layout {
            p: 10,
            emin: -126,
            max: 0x3_fbff,
            inf: Some(0x3_fc00),
            nan: 0x3_ffff,
            bits: 19,
            low: 13,
        },
        Format::E4m3 => Layout {
            p: 3,
            emin: -6,
            max: 0x7e,
            inf: None,
            nan: 0x7f,
            bits: 8,
            low: 0,
        },
        Format::E5m2 => Layout {
            p: 2,
            emin: -14,
            max: 0x7b,
            inf: Some(0x7c),
            nan: 0x7f,
            bits: 8,
            low: 0,
        },
        _ => Layout {
            p: 23,
            emin: -126,
            max: 0x7f7f_ffff,
            inf: Some(0x7f80_0000),
            nan: 0x7fff_ffff,
            bits: 32,
            low: 0,
        },
    }
}

/// `x` rounded to the format `f` (not f64, not an integer), as bits. `satfinite` clamps to the largest finite number.
pub(crate) fn narrow(x: f64, f: Format, rounding: Rounding, satfinite: bool) -> u64 {
    let l = layout(f);
    let negative = x.is_sign_negative();
    let sign = if negative { 1u64 << (l.bits - 1) } else { 0 };
    if x.is_nan() {
        return l.nan << l.low;
    }
    let overflow = || match (l.inf, satfinite) {
        (Some(inf), false) => inf,
        (None, false) => l.nan,
        (_, true) => l.max,
    };
    if x.is_infinite() {
        return (sign | overflow()) << l.low;
    }
    let raw = x.abs().to_bits();
    let (field, fraction) = ((raw >> 52) as i32, raw & ((1 << 52) - 1));
    if raw == 0 {
        return sign << l.low;
    }
    // |x| = m · 2^e
    let (m, e) = if field == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, field - 1075)
    };
    let top = e + 63 - m.leading_zeros() as i32;
    let q = top.max(l.emin) - l.p as i32;
    let drop = q - e;
    let (mut mant, above_half, half, inexact) = if drop <= 0 {
        (m << (-drop).min(63), false, false, false)
    } else if drop > 63 {
        (0, false, false, true)
    } else {
        let rest = m & ((1u64 << drop) - 1);
        let mid = 1u64 << (drop - 1);
        (m >> drop, rest > mid, rest == mid, rest != 0)
    };
    let up = match rounding {
        Rounding::Nearest => above_half || (half && mant & 1 == 1),
        Rounding::NearestAway => above_half || half,
        Rounding::Zero => false,
        Rounding::Down => inexact && negative,
        Rounding::Up => inexact && !negative,
    };
    mant += u64::from(up);
    let encoded = if mant >> l.p == 0 {
        mant
    } else {
        let exponent = (q + l.p as i32 - l.emin + 1) as u64;
        (exponent << l.p) + (mant - (1 << l.p))
    };
    if encoded > l.max {
        let finite = match rounding {
            Rounding::Nearest | Rounding::NearestAway => satfinite,
            Rounding::Zero => true,
            Rounding::Down => !negative || satfinite,
            Rounding::Up => negative || satfinite,
        };
        return (sign | if finite { l.max } else { overflow() }) << l.low;
    }
    (sign | encoded) << l.low
}

/// The value of the bits `x` in format `f` (not an integer), exactly.
pub(crate) fn widen(x: u64, f: Format) -> f64 {
    match f {
        Format::F32 | Format::Tf32 => f64::from(f32::from_bits(x as u32)),
        Format::F64 => f64::from_bits(x),
        Format::F16 => f64::from(half_to_f32(x as u32)),
        Format::Bf16 => f64::from(f32::from_bits((x as u32) << 16)),
        Format::E4m3 => {
            if x & 0x7f == 0x7f {
                return f64::NAN;
            }
            small(x, 3, 7)
        }
        Format::E5m2 => f64::from(half_to_f32((x as u32 & 0xff) << 8)),
        Format::U(_) | Format::S(_) => x as f64,
    }
}

/// An 8-bit number with `p` fraction bits and the given bias, no special values.
fn small(x: u64, p: u32, bias: i32) -> f64 {
    let sign = if x & 0x80 != 0 { -1.0 } else { 1.0 };
    let (field, fraction) = (((x & 0x7f) >> p) as i32, (x & ((1 << p) - 1)) as f64);
    let scale = f64::from(1 << p);
    let magnitude = if field == 0 {
        fraction / scale * exp2i(1 - bias)
    } else {
        (1.0 + fraction / scale) * exp2i(field - bias)
    };
    sign * magnitude
}

/// 2^e for -1022 ≤ e ≤ 1023.
fn exp2i(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// f16 bits to f32, exactly, branch-free on the common path.
#[inline(always)]
pub(crate) fn half_to_f32(h: u32) -> f32 {
    let sign = (h & 0x8000) << 16;
    let rest = h & 0x7fff;
    // Shift the exponent into place and scale by 2^112: exact for normals and subnormals alike.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits(0x7780_0000);
    let special = rest >= 0x7c00;
    let bits = if special {
        0x7f80_0000 | ((rest & 0x3ff) << 13)
    } else {
        scaled.to_bits()
    };
    f32::from_bits(bits | sign)
}

/// Flushes a subnormal f32 to zero of its sign.
#[inline(always)]
pub(crate) fn flush32(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 {
        x & 0x8000_0000
    } else {
        x
    }
}

/// Finishes an f32 result given to odd in f64: rounding, flush, saturation.
pub(crate) fn finish32(x: f64, mode: FloatMode) -> u32 {
    let mut r = match mode.rounding {
        // The host's cast rounds so too.
        Rounding::Nearest if !x.is_nan() => (x as f32).to_bits(),
        rounding => narrow(x, Format::F32, rounding, false) as u32,
    };
    if mode.ftz {
        r = flush32(r);
    }
    if mode.sat {
        let v = f32::from_bits(r);
        // NaN saturates to +0.
        r = if v > 0.0 { v.min(1.0).to_bits() } else { 0 };
    }
    r
}

/// `r` is a result rounded to nearest and `e` the sign of its error (true minus `r`): the same rounded as `rounding` says.
pub(crate) fn redirect64(r: f64, e: f64, rounding: Rounding) -> f64 {
    if e == 0.0 || e.is_nan() || r.is_nan() {
        return r;
    }
    if r.is_infinite() {
        // The true value is finite: one step inward, if the rounding does not go that way.
        let inward = match rounding {
            Rounding::Nearest | Rounding::NearestAway => false,
            Rounding::Zero => true,
            Rounding::Down => r > 0.0,
            Rounding::Up => r < 0.0,
        };
        return if inward { f64::MAX.copysign(r) } else { r };
    }
    match rounding {
        Rounding::Zero if r > 0.0 && e < 0.0 => r.next_down(),
        Rounding::Zero if r < 0.0 && e > 0.0 => r.next_up(),
        Rounding::Down if e < 0.0 => r.next_down(),
        Rounding::Up if e > 0.0 => r.next_up(),
        _ => r,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> u64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The software multiply-add against the host library's, which is correctly rounded.
    #[test]
    fn fma_without_the_instruction_is_the_same_to_the_bit() {
        let mut state = 5;
        for i in 0..400_000 {
            let mut number = || {
                let r = random(&mut state);
                f32::from_bits(match i % 4 {
                    0 => r as u32,
                    1 => 0x3f00_0000 + (r as u32 & 0x1ff_ffff),
                    2 => (r as u32 & 0x80ff_ffff) | ((r >> 33) as u32 & 1) << 23,
                    _ => (r as u32 & 0x807f_0000) + (((r >> 40) as u32 % 40 + 100) << 23),
                })
            };
            let (a, b, c) = (number(), number(), number());
            let (got, expected) = (fma32(a, b, c), a.mul_add(b, c));
            assert!(
                got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                "{a:e} {b:e} {c:e}"
            );
        }
    }

    #[test]
    fn narrowing_to_f32_is_the_hosts_cast() {
        let mut state = 6;
        for _ in 0..200_000 {
            let r = random(&mut state);
            let x = f64::from_bits(if r & 1 == 0 {
                r
            } else {
                (r >> 12) | (0x3800_0000_0000_0000 + (r & 0x0fff_0000_0000_0000))
            });
            if !x.is_nan() {
                assert_eq!(
                    narrow(x, Format::F32, Rounding::Nearest, false),
                    u64::from((x as f32).to_bits()),
                    "{x:e}"
                );
            }
        }
    }
}
