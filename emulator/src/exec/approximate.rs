//! `sin`, `cos`, `lg2` and `ex2` of f32 rows, by polynomials in f64.
//!
//! The definition is the host library's function in f64, rounded to f32 ([`super::fp::scalar32`]). A polynomial that is right to 2^-46 gives the same
//! f32 unless the exact value lies within its error of a boundary between two of them. So each value is rounded twice, once with [`SLACK`] added and once
//! with it taken away; where the two differ (one lane in 2^17), and outside the ranges in which the error is known, the lane is computed by the
//! definition (Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991).
//!
//! Example: `ex2` of 3 is 8 · (1 ± 2^-46), and both ends round to 8.

use super::alu::Row32;
use super::fp::scalar32;
use super::fp32::finish;
use super::mem::lanes_of;
use crate::ir::{FloatMode, FloatOp};

/// More than the relative error of any polynomial here and of the host library together.
const SLACK: f64 = 1.0 / (1u64 << 42) as f64;

/// Added to a number below 2^51, it rounds it to an integer, which the low bits then hold.
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// Coefficients 1/k! for k from `FIRST`, every second one, with alternating signs: sine and cosine.
const fn series<const N: usize>(first: u32) -> [f64; N] {
    let mut out = [0.0; N];
    let (mut term, mut k, mut n) = (1.0, 0, 0);
    while n < N {
        if k == first + 2 * n as u32 {
            out[n] = if n % 2 == 0 { term } else { -term };
            n += 1;
        }
        k += 1;
        term /= k as f64;
    }
    out
}

/// Coefficients of 2^x: ln(2)^k / k!.
const POWERS: [f64; 12] = {
    let mut out = [1.0; 12];
    let mut k = 1;
    while k < 12 {
        out[k] = out[k - 1] * std::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    out
};

/// Coefficients of atanh(s) / s in s²: 1 / (2k + 1).
const ATANH: [f64; 9] = {
    let mut out = [1.0; 9];
    let mut k = 1;
    while k < 9 {
        out[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    out
};

const SIN: [f64; 8] = series(1);
const COS: [f64; 8] = series(0);

/// π/2 in three parts; multiples of the first two below 2^20 are exact.
const HALF_PI: [f64; 3] = [
    f64::from_bits(0x3ff9_21fb_5440_0000),
    f64::from_bits(0x3dd0_b461_1a60_0000),
    f64::from_bits(0x3ba3_198a_2e03_7073),
];

#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut sum = coefficients[N - 1];
    for k in (0..N - 1).rev() {
        sum = sum * x + coefficients[k];
    }
    sum
}

/// sin(x + quarter · π/2), and whether it is right to 2^-46.
#[inline(always)]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "no branch, so that loops become vector code"
)]
fn sine(x: f64, quarter: u64) -> (f64, bool) {
    let rounded = x * std::f64::consts::FRAC_2_PI + ROUND;
    let k = rounded - ROUND;
    let r = ((x - k * HALF_PI[0]) - k * HALF_PI[1]) - k * HALF_PI[2];
    let quadrant = rounded.to_bits().wrapping_add(quarter);
    let square = r * r;
    let (s, c) = (r * polynomial(&SIN, square), polynomial(&COS, square));
    let size = if quadrant & 1 == 0 { s } else { c };
    let sign = (quadrant & 2) << 62;
    // Near its zeros, but for x = 0, the error of the reduced argument matters.
    let clear = (k == 0.0) | (size.abs() > 1.0 / 64.0);
    let known = (x.abs() < 32768.0) & clear;
    (f64::from_bits(size.to_bits() ^ sign), known)
}

/// 2^x likewise.
#[inline(always)]
fn power(x: f64) -> (f64, bool) {
    let rounded = x + ROUND;
    let fraction = x - (rounded - ROUND);
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let scale = f64::from_bits(exponent.wrapping_add(1023) << 52);
    (polynomial(&POWERS, fraction) * scale, x.abs() < 1000.0)
}

/// log2(x) likewise.
#[inline(always)]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "no branch, so that loops become vector code"
)]
fn logarithm(x: f64) -> (f64, bool) {
    /// The bits of √½: the mantissa is taken from there to √2.
    const LEAST: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits();
    let biased = bits.wrapping_add((1023 << 52) - LEAST) >> 52;
    let mantissa = f64::from_bits(bits.wrapping_sub(biased.wrapping_sub(1023) << 52));
    // A small integer becomes a float in the low bits of 2^52.
    let exponent = f64::from_bits(biased | 0x433 << 52) - ((1u64 << 52) + 1023) as f64;
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let log = 2.0 * std::f64::consts::LOG2_E * s * polynomial(&ATANH, s * s);
    (exponent + log, (x > 0.0) & (x < f64::INFINITY))
}

/// `f`, one of the four, of the row `a` (flushed if `mode` says so).
#[inline(always)]
pub(super) fn approximate(f: FloatOp, mode: FloatMode, a: &Row32) -> Row32 {
    match f {
        FloatOp::Sin => lanes(f, mode, a, |x| sine(x, 0)),
        FloatOp::Cos => lanes(f, mode, a, |x| sine(x, 1)),
        FloatOp::Lg2 => lanes(f, mode, a, logarithm),
        _ => lanes(f, mode, a, power),
    }
}

#[inline(always)]
fn lanes(f: FloatOp, mode: FloatMode, a: &Row32, value: impl Fn(f64) -> (f64, bool)) -> Row32 {
    let (mut out, mut unsure) = ([0; 32], [0u32; 32]);
    for i in 0..32 {
        let (y, known) = value(f64::from(f32::from_bits(a[i])));
        let slack = y * SLACK;
        let (low, high) = ((y - slack) as f32, (y + slack) as f32);
        unsure[i] = (low.to_bits() ^ high.to_bits()) | u32::from(!known);
        out[i] = finish(high, mode);
    }
    let mut left = 0;
    for i in 0..32 {
        left |= u32::from(unsure[i] != 0) << i;
    }
    for l in lanes_of(left) {
        out[l] = scalar32(f, mode, a[l], 0, 0);
    }
    out
}
