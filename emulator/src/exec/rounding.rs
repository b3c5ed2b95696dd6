//! Rows rounded to whole numbers, and f32 to halves, by loops over bits.
//!
//! Example: 65520 is the least number of f32 that rounds to the infinity of f16.

use super::alu::{Row32, Row64};
use crate::float::{flush32, odd32};
use crate::ir::{Convert, Rounding};

/// A loop: `map` would be a function of its own, without wide vectors.
#[inline(always)]
pub(super) fn each<T>(out: &mut [T; 32], f: impl Fn(usize) -> T) {
    for i in 0..32 {
        out[i] = f(i);
    }
}

/// f32 values rounded to whole numbers as `c` says.
#[inline(always)]
pub(super) fn whole(row: &Row32, c: &Convert) -> [f64; 32] {
    let mut x = [0.0; 32];
    if c.ftz {
        each(&mut x, |i| f64::from(f32::from_bits(flush32(row[i]))));
    } else {
        each(&mut x, |i| f64::from(f32::from_bits(row[i])));
    }
    round(&x, c.rounding)
}

/// f64 values rounded to whole numbers as `c` says.
#[inline(always)]
pub(super) fn whole64(row: &Row64, c: &Convert) -> [f64; 32] {
    let mut x = [0.0; 32];
    each(&mut x, |i| f64::from_bits(row[i]));
    round(&x, c.rounding)
}

#[inline(always)]
fn round(x: &[f64; 32], rounding: Rounding) -> [f64; 32] {
    let mut out = [0.0; 32];
    match rounding {
        Rounding::Nearest => each(&mut out, |i| x[i].round_ties_even()),
        Rounding::NearestAway => each(&mut out, |i| x[i].round()),
        Rounding::Zero => each(&mut out, |i| x[i].trunc()),
        Rounding::Down => each(&mut out, |i| x[i].floor()),
        Rounding::Up => each(&mut out, |i| x[i].ceil()),
    }
    out
}

/// f32 bits to bf16, rounded to nearest.
#[inline(always)]
pub(super) fn bfloat(x: u32) -> u32 {
    // Half a unit of what is cut, less if it is even; a carry goes on into the exponent, at last to infinity.
    let number = x.wrapping_add(0x7fff).wrapping_add(x >> 16 & 1) >> 16;
    if x & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff
    } else {
        number
    }
}

/// A finite f32 rounded to the nearest number that an f16 holds, or to an infinity: [`half`] and back in fewer steps.
#[inline(always)]
pub(super) fn near_half(x: f32) -> f32 {
    let (sign, size) = (x.to_bits() & 0x8000_0000, x.to_bits() & 0x7fff_ffff);
    // The last bit of a subnormal half is 2^-24, that of an f32 from 0.5 to 1.
    let subnormal = (f32::from_bits(size) + 0.5 - 0.5).to_bits();
    // Half a unit of what is cut, less if it is even, rounds.
    let normal = (size + 0xfff + (size >> 13 & 1)) & !0x1fff;
    let number = if size < 113 << 23 { subnormal } else { normal };
    // From 65520 on, what rounds is beyond the largest half.
    let number = if size >= 0x477f_f000 {
        0x7f80_0000
    } else {
        number
    };
    f32::from_bits(sign | number)
}

/// f32 bits to f16, rounded to nearest.
#[inline(always)]
pub(super) fn half(x: u32) -> u32 {
    /// Added to a number below the least normal half, it leaves the half in the low bits.
    const ALIGN: u32 = (127 - 15 + 23 - 10 + 1) << 23;
    let (sign, size) = (x >> 16 & 0x8000, x & 0x7fff_ffff);
    let subnormal = (f32::from_bits(size) + f32::from_bits(ALIGN))
        .to_bits()
        .wrapping_sub(ALIGN);
    // The exponent moves from one bias to the other; half a unit of what is cut, less if it is even, rounds.
    let odd = size >> 13 & 1;
    let normal = size.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
    let number = if size < 113 << 23 { subnormal } else { normal };
    // From 65520 on, what rounds is beyond the largest half.
    let number = if size >= 0x477f_f000 { 0x7c00 } else { number };
    if size > 0x7f80_0000 {
        0x7fff
    } else {
        sign | number
    }
}

/// A number to f16, rounded to nearest once: to odd in between.
#[inline(always)]
pub(super) fn half_of(x: f64) -> u32 {
    half(odd32(x).to_bits())
}

#[cfg(test)]
mod tests {
    use super::{half, half_of, near_half};
    use crate::float::{half_to_f32, narrow};
    use crate::ir::{Format, Rounding};

    /// Against the definition: numbers of all sizes, and ties of halves with what is next to them.
    #[test]
    fn halves_are_rounded_once() {
        let mut state = 5u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 29
        };
        for i in 0..400_000 {
            let bits = random();
            let exponent = 1023 - 30 + bits % 50;
            let near = (bits & 0x800f_fc00_0000_0000) | exponent << 52;
            let tie = near | 1 << 41;
            let x = f64::from_bits(match i % 5 {
                0 => bits,
                1 => tie - 1,
                2 => tie,
                3 => tie + 1,
                _ => (bits & !(0x7ff << 52)) | exponent << 52,
            });
            let exact = narrow(x, Format::F16, Rounding::Nearest, false) as u32;
            assert_eq!(half_of(x), exact, "{x:e}");
            let x = x as f32;
            if x.is_finite() {
                let there_and_back = half_to_f32(half(x.to_bits()));
                assert_eq!(near_half(x).to_bits(), there_and_back.to_bits(), "{x:e}");
            }
        }
        for x in [
            0.0,
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            65520.0,
            65519.9,
        ] {
            let exact = narrow(x, Format::F16, Rounding::Nearest, false) as u32;
            assert_eq!(half_of(x), exact, "{x:e}");
        }
    }
}
