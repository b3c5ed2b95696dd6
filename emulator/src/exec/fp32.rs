//! f32 operations on rows.
//!
//! The plain forms (`.rn`, no `.ftz`, no `.sat`) of the five commonest are in the main loop; the others are loops here, those that do not round to
//! nearest in f64; what has no vector form goes lane by lane through [`super::fp::scalar32`]. All give the same bits. NaN results are the
//! canonical 0x7fffffff, as the ISA says. Example: `neg.ftz.f32` of a subnormal number is a zero of the other sign.

use super::alu::Row32;
use super::approximate::approximate;
use super::code::COMPACT;
use super::fp::{divide, root, scalar32};
use crate::float::{NAN32, add_to_odd, flush32, fma32, round32};
use crate::ir::{FloatMode, FloatOp, Rounding};

/// f32 bits with NaN made canonical.
#[inline(always)]
pub(super) fn canonical(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// The bits of a result by `mode`, which rounds to nearest, as [`crate::float::finish32`] makes them.
#[inline(always)]
pub(super) fn finish(x: f32, mode: FloatMode) -> u32 {
    let mut r = canonical(x);
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

macro_rules! lanes {
    ($a:ident $b:ident $c:ident, $mode:expr, $e:expr) => {{
        let mut out = [0u32; 32];
        for i in 0..32 {
            #[allow(unused_variables)]
            let ($a, $b, $c) = (
                f32::from_bits($a[i]),
                f32::from_bits($b[i]),
                f32::from_bits($c[i]),
            );
            out[i] = finish($e, $mode);
        }
        out
    }};
}

/// `f` on rows in the main loop. `FUSED` says that the machine has a fused multiply-add, to be used only inside code compiled for it; `rare` is
/// [`row`], compiled likewise.
#[inline(always)]
pub(super) fn common<const FUSED: bool>(
    f: FloatOp,
    mode: FloatMode,
    [a, b, c]: [&Row32; 3],
    rare: fn(FloatOp, FloatMode, [&Row32; 3]) -> Row32,
) -> Row32 {
    if mode == FloatMode::PLAIN {
        match f {
            FloatOp::Fma if FUSED => return lanes!(a b c, FloatMode::PLAIN, a.mul_add(b, c)),
            FloatOp::Fma => return lanes!(a b c, FloatMode::PLAIN, fma32(a, b, c)),
            FloatOp::Add => return lanes!(a b c, FloatMode::PLAIN, a + b),
            FloatOp::Sub => return lanes!(a b c, FloatMode::PLAIN, a - b),
            FloatOp::Mul => return lanes!(a b c, FloatMode::PLAIN, a * b),
            _ => {}
        }
    }
    rare(f, mode, [a, b, c])
}

/// `f` on rows in any mode.
#[inline(always)]
pub(super) fn row<const FUSED: bool>(f: FloatOp, mode: FloatMode, x: [&Row32; 3]) -> Row32 {
    if COMPACT {
        return by_lane(f, mode, x);
    }
    let mut x = [*x[0], *x[1], *x[2]];
    if mode.ftz {
        for i in 0..96 {
            let value = &mut x.as_flattened_mut()[i];
            *value = flush32(*value);
        }
    }
    let [a, b, c] = &x;
    if mode.rounding != Rounding::Nearest {
        return match f {
            FloatOp::Add
            | FloatOp::Sub
            | FloatOp::Mul
            | FloatOp::Fma
            | FloatOp::Div
            | FloatOp::Rcp
            | FloatOp::Sqrt => directed(f, mode, [a, b, c]),
            _ => by_lane(f, mode, [a, b, c]),
        };
    }
    match f {
        FloatOp::Add => lanes!(a b c, mode, a + b),
        FloatOp::Sub => lanes!(a b c, mode, a - b),
        FloatOp::Mul => lanes!(a b c, mode, a * b),
        FloatOp::Fma if FUSED => lanes!(a b c, mode, a.mul_add(b, c)),
        FloatOp::Fma => lanes!(a b c, mode, fma32(a, b, c)),
        // Quotient and root are rounded correctly, by the hardware as by the definition.
        FloatOp::Div => lanes!(a b c, mode, a / b),
        FloatOp::Rcp => lanes!(a b c, mode, 1.0 / a),
        FloatOp::Sqrt => lanes!(a b c, mode, a.sqrt()),
        FloatOp::Rsqrt => lanes!(a b c, mode, (1.0 / f64::from(a).sqrt()) as f32),
        FloatOp::Sin | FloatOp::Cos | FloatOp::Lg2 | FloatOp::Ex2 => approximate(f, mode, a),
        FloatOp::Abs => signs(a, |x| x & 0x7fff_ffff),
        FloatOp::Neg => signs(a, |x| x ^ 0x8000_0000),
        FloatOp::Min => extremes(a, b, false),
        FloatOp::Max => extremes(a, b, true),
        _ => by_lane(f, mode, [a, b, c]),
    }
}

/// Arithmetic that does not round to nearest: in f64, exact or to odd, and then once to f32.
#[inline(always)]
fn directed(f: FloatOp, mode: FloatMode, [a, b, c]: [&Row32; 3]) -> Row32 {
    let a = |i: usize| f64::from(f32::from_bits(a[i]));
    let b = |i: usize| f64::from(f32::from_bits(b[i]));
    let c = |i: usize| f64::from(f32::from_bits(c[i]));
    match f {
        FloatOp::Add => rounded(mode, |i| sum(a(i), b(i), mode.rounding)),
        FloatOp::Sub => rounded(mode, |i| sum(a(i), -b(i), mode.rounding)),
        FloatOp::Mul => rounded(mode, |i| a(i) * b(i)),
        FloatOp::Fma => rounded(mode, |i| sum(a(i) * b(i), c(i), mode.rounding)),
        FloatOp::Div => rounded(mode, |i| divide(a(i), b(i))),
        FloatOp::Rcp => rounded(mode, |i| divide(1.0, a(i))),
        _ => rounded(mode, |i| root(a(i))),
    }
}

#[inline(always)]
fn rounded(mode: FloatMode, x: impl Fn(usize) -> f64) -> Row32 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = finish(round32(x(i), mode.rounding), mode);
    }
    out
}

/// x + y to odd. Addends of different signs that cancel out give -0 toward -∞.
#[inline(always)]
fn sum(x: f64, y: f64, rounding: Rounding) -> f64 {
    let r = add_to_odd(x, y);
    let differ = x.is_sign_negative() != y.is_sign_negative();
    if rounding == Rounding::Down && differ && r == 0.0 {
        -0.0
    } else {
        r
    }
}

/// Operations on the sign: NaN becomes canonical, and nothing is saturated.
#[inline(always)]
fn signs(a: &Row32, f: impl Fn(u32) -> u32) -> Row32 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = if a[i] & 0x7fff_ffff > 0x7f80_0000 {
            NAN32
        } else {
            f(a[i])
        };
    }
    out
}

/// `min` and `max`: a NaN gives way to a number, and -0 is below +0.
#[inline(always)]
fn extremes(a: &Row32, b: &Row32, max: bool) -> Row32 {
    let nan = |x: u32| x & 0x7fff_ffff > 0x7f80_0000;
    // Sign and magnitude to a total order.
    let key = |x: u32| (x ^ (((x as i32) >> 31) as u32 & 0x7fff_ffff)) as i32;
    let mut out = [0; 32];
    for i in 0..32 {
        let (x, y) = (a[i], b[i]);
        let number = if (key(x) > key(y)) == max { x } else { y };
        let number = if nan(y) { x } else { number };
        let number = if nan(x) { y } else { number };
        out[i] = if nan(number) { NAN32 } else { number };
    }
    out
}

#[inline(never)]
fn by_lane(f: FloatOp, mode: FloatMode, [a, b, c]: [&Row32; 3]) -> Row32 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = scalar32(f, mode, a[i], b[i], c[i]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops against the definition, lane by lane, on numbers of all kinds.
    #[test]
    fn rows_are_their_lanes() {
        let special = [
            0x0000_0000,
            0x8000_0000,
            0x0000_0001,
            0x807f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7f80_0001,
            0xffc0_1234,
            0x4300_0000,
            0xc316_0000,
            0xc315_0000,
            0x4049_0fdb,
            0x3fc9_0fdb,
            0x4b00_0000,
        ];
        let mut state = 9u64;
        let mut number = |k: usize| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let r = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
            match k % 4 {
                0 => special[r as usize % special.len()],
                1 => r as u32,
                // Within some powers of two of 1, where the approximated functions are at home.
                _ => (r as u32 & 0x807f_ffff) + (((r as u32 >> 8) % 24 + 112) << 23),
            }
        };
        let functions = [
            FloatOp::Add,
            FloatOp::Sub,
            FloatOp::Mul,
            FloatOp::Fma,
            FloatOp::Div,
            FloatOp::Rcp,
            FloatOp::Sqrt,
            FloatOp::Rsqrt,
            FloatOp::Sin,
            FloatOp::Cos,
            FloatOp::Lg2,
            FloatOp::Ex2,
            FloatOp::Abs,
            FloatOp::Neg,
            FloatOp::Min,
            FloatOp::Max,
            FloatOp::MinNan,
            FloatOp::Copysign,
            FloatOp::Tanh,
        ];
        let roundings = [
            Rounding::Nearest,
            Rounding::Zero,
            Rounding::Down,
            Rounding::Up,
        ];
        for round in 0..400 {
            let mut x: [Row32; 3] =
                std::array::from_fn(|j| std::array::from_fn(|i| number(round + i / 8 + j)));
            if round % 5 == 0 {
                // Sums that cancel.
                x[1] = x[0].map(|x| x ^ 0x8000_0000);
            }
            for f in functions {
                for k in 0..16 {
                    let mode = FloatMode {
                        rounding: roundings[k / 4],
                        ftz: k & 1 != 0,
                        sat: k & 2 != 0,
                    };
                    let [a, b, c] = &x;
                    let expected = by_lane(f, mode, [a, b, c]);
                    for found in [
                        row::<false>(f, mode, [a, b, c]),
                        common::<false>(f, mode, [a, b, c], row::<false>),
                        row::<true>(f, mode, [a, b, c]),
                    ] {
                        for i in 0..32 {
                            let operands = [a[i], b[i], c[i]];
                            assert_eq!(found[i], expected[i], "{f:?} {mode:?} {operands:x?}");
                        }
                    }
                }
            }
        }
    }
}
