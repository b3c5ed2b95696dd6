//! f64 operations on rows.
//!
//! To nearest the host computes all lanes and is right unless the result is NaN, of which [`super::fp::scalar64`] knows the payload. In the other
//! roundings the host's result and the sign of its error say on which side of it the exact value lies: the error of a sum, product, quotient or root
//! is a number of f64 as long as nothing is tiny or huge, and a lane where something is goes to the definition. Example: 1 / 3 is to nearest
//! 0x3fd5555555555555 with the remainder 2^-54 > 0, so that it is the next number toward +∞.

use super::alu::Row64;
use super::code::COMPACT;
use super::fp::scalar64;
use crate::ir::{FloatMode, FloatOp, Rounding};

const SIGN: u64 = 1 << 63;
const QUIET: u64 = 1 << 51;

/// `f` on rows.
#[inline(always)]
pub(super) fn row(f: FloatOp, mode: FloatMode, x: [&Row64; 3]) -> Row64 {
    let [a, b, c] = x;
    match f {
        _ if COMPACT => by_lane(f, mode, x),
        FloatOp::Abs => signs(a, |x| x & !SIGN),
        FloatOp::Neg => signs(a, |x| x ^ SIGN),
        _ if mode.rounding != Rounding::Nearest => match f {
            FloatOp::Add => directed(f, mode, x, |[a, b, _]| sum(a, b)),
            FloatOp::Sub => directed(f, mode, x, |[a, b, _]| sum(a, -b)),
            FloatOp::Mul => directed(f, mode, x, |[a, b, _]| product(a, b)),
            FloatOp::Fma => directed(f, mode, x, |[a, b, c]| product_sum(a, b, c)),
            FloatOp::Div => directed(f, mode, x, |[a, b, _]| quotient(a, b)),
            FloatOp::Rcp => directed(f, mode, x, |[a, ..]| quotient(1.0, a)),
            FloatOp::Sqrt => directed(f, mode, x, |[a, ..]| root(a)),
            _ => by_lane(f, mode, x),
        },
        FloatOp::Add => nearest(f, mode, x, |[a, b, _]| a + b),
        FloatOp::Sub => nearest(f, mode, x, |[a, b, _]| a - b),
        FloatOp::Mul => nearest(f, mode, x, |[a, b, _]| a * b),
        FloatOp::Fma => nearest(f, mode, x, |[a, b, c]| a.mul_add(b, c)),
        FloatOp::Div => nearest(f, mode, x, |[a, b, _]| a / b),
        FloatOp::Rcp => nearest(f, mode, x, |[a, ..]| 1.0 / a),
        FloatOp::Sqrt => nearest(f, mode, x, |[a, ..]| a.sqrt()),
        FloatOp::Min => extremes(f, mode, [a, b, c], false),
        FloatOp::Max => extremes(f, mode, [a, b, c], true),
        _ => by_lane(f, mode, x),
    }
}

#[inline(never)]
fn by_lane(f: FloatOp, mode: FloatMode, [a, b, c]: [&Row64; 3]) -> Row64 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = scalar64(f, mode.rounding, a[i], b[i], c[i]);
    }
    out
}

/// The lanes of `out` that are NaN, by the definition. Without NaN, which is the rule, it is one comparison of the whole row.
#[inline(always)]
fn define(
    mut out: Row64,
    f: FloatOp,
    mode: FloatMode,
    [a, b, c]: [&Row64; 3],
    undefined: impl Fn(u64) -> bool,
) -> Row64 {
    let mut any = false;
    for x in &out {
        any |= undefined(*x);
    }
    if any {
        for i in 0..32 {
            if undefined(out[i]) {
                out[i] = scalar64(f, mode.rounding, a[i], b[i], c[i]);
            }
        }
    }
    out
}

/// NaN of either sign.
#[inline(always)]
fn is_nan(x: u64) -> bool {
    f64::from_bits(x).is_nan()
}

#[inline(always)]
fn nearest(f: FloatOp, mode: FloatMode, x: [&Row64; 3], host: impl Fn([f64; 3]) -> f64) -> Row64 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = host(x.map(|row| f64::from_bits(row[i]))).to_bits();
    }
    define(out, f, mode, x, is_nan)
}

/// Operations on the sign: that of a NaN stays, and a signalling one becomes quiet.
#[inline(always)]
fn signs(a: &Row64, f: impl Fn(u64) -> u64) -> Row64 {
    let mut out = [0; 32];
    for i in 0..32 {
        let x = a[i];
        out[i] = if is_nan(x) { x | QUIET } else { f(x) };
    }
    out
}

/// `min` and `max`: a NaN gives way to a number, and -0 is below +0.
#[inline(always)]
fn extremes(f: FloatOp, mode: FloatMode, x: [&Row64; 3], max: bool) -> Row64 {
    // Sign and magnitude to a total order.
    let key = |x: u64| (x ^ (((x as i64) >> 63) as u64 & !SIGN)) as i64;
    let mut out = [0; 32];
    for i in 0..32 {
        let (a, b) = (x[0][i], x[1][i]);
        let number = if (key(a) > key(b)) == max { a } else { b };
        out[i] = if is_nan(a) || is_nan(b) {
            u64::MAX
        } else {
            number
        };
    }
    define(out, f, mode, x, is_nan)
}

/// Results of `host`, each with the sign of its error (exact value less result), rounded as `mode` says.
#[inline(always)]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "no branch, so that the loop becomes vector code"
)]
fn directed(
    f: FloatOp,
    mode: FloatMode,
    x: [&Row64; 3],
    host: impl Fn([f64; 3]) -> (f64, f64),
) -> Row64 {
    /// 2^-300 and 2^300: products of three such numbers, and what is cut from them, are numbers of full precision.
    const MIDDLE: std::ops::Range<u64> = 723 << 52..1323 << 52;
    let inside = |x: u64| (x & !SIGN).wrapping_sub(MIDDLE.start) < MIDDLE.end - MIDDLE.start;
    let (mut out, mut middle) = ([0; 32], [0; 32]);
    for i in 0..32 {
        let bits = x.map(|row| row[i]);
        let (r, error) = host(bits.map(f64::from_bits));
        let near = r.to_bits();
        // The exact value is nearer to zero than `r`, or farther from it.
        let over = if r < 0.0 { error > 0.0 } else { error < 0.0 };
        let under = if r < 0.0 { error < 0.0 } else { error > 0.0 };
        let (inward, outward) = match mode.rounding {
            Rounding::Zero => (over, false),
            Rounding::Down => (over & (r > 0.0), under & (r < 0.0)),
            Rounding::Up => (over & (r < 0.0), under & (r > 0.0)),
            Rounding::Nearest | Rounding::NearestAway => (false, false),
        };
        out[i] = near
            .wrapping_add(u64::from(outward))
            .wrapping_sub(u64::from(inward));
        let fine = bits
            .iter()
            .fold(inside(near), |all, x| all & (inside(*x) | (x & !SIGN == 0)));
        middle[i] = u64::from(fine);
    }
    for i in 0..32 {
        if middle[i] == 0 {
            out[i] = scalar64(f, mode.rounding, x[0][i], x[1][i], x[2][i]);
        }
    }
    out
}

/// a + b, and its error (Knuth's `TwoSum`).
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// a·b, and its error.
#[inline(always)]
fn product(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

/// a·b + c, and a number of the sign of its error (Boldo and Muller, "Exact and approximated error of the FMA", 2011).
#[inline(always)]
fn product_sum(a: f64, b: f64, c: f64) -> (f64, f64) {
    let r = a.mul_add(b, c);
    let (high, low) = product(a, b);
    let (upper, lower) = sum(c, low);
    let (first, second) = sum(high, upper);
    (r, ((first - r) + second) + lower)
}

/// a / b, and a number of the sign of its error.
#[inline(always)]
fn quotient(a: f64, b: f64) -> (f64, f64) {
    let q = a / b;
    let rest = (-q).mul_add(b, a);
    (q, if b < 0.0 { -rest } else { rest })
}

/// The root of a, and a number of the sign of its error.
#[inline(always)]
fn root(a: f64) -> (f64, f64) {
    let r = a.sqrt();
    (r, (-r).mul_add(r, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFINITY: u64 = 0x7ff << 52;

    /// The loops against the definition, lane by lane, on numbers of all kinds and all roundings.
    #[test]
    fn rows_are_their_lanes() {
        let special = [
            0,
            1,
            0x000f_ffff_ffff_ffff,
            1 << 52,
            0x3ff0_0000_0000_0000,
            0x3ff0_0000_0000_0001,
            0x7fef_ffff_ffff_ffff,
            INFINITY,
            INFINITY | 1,
            INFINITY | QUIET | 0x1234,
        ];
        let mut state = 9u64;
        let mut random = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let mut number = |k: usize| {
            let (r, sign) = (random(), random() & SIGN);
            let field =
                |first: u64, count: u64| r & ((1 << 52) - 1) | (first + (r >> 52) % count) << 52;
            sign | match k % 5 {
                0 => special[r as usize % special.len()],
                1 => r & !SIGN,
                // Around one, where sums cancel, also to few bits.
                2 => field(1020, 6) & !((1 << ((r >> 58) % 53)) - 1),
                // Around the ends of what is in the middle.
                3 => field([721, 1321][(r >> 63) as usize], 5),
                _ => field(960, 120),
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
            FloatOp::Abs,
            FloatOp::Neg,
            FloatOp::Min,
            FloatOp::Max,
            FloatOp::MinNan,
        ];
        let roundings = [
            Rounding::Nearest,
            Rounding::Zero,
            Rounding::Down,
            Rounding::Up,
        ];
        for round in 0..1500 {
            // Rows of one kind and mixed ones; a third operand that cancels the product of the others.
            let mut x: [Row64; 3] = std::array::from_fn(|j| {
                std::array::from_fn(|i| number(if round % 2 == 0 { round / 2 } else { i + j }))
            });
            if round % 3 == 0 {
                let [a, b, c] = &mut x;
                for i in 0..32 {
                    c[i] = (-f64::from_bits(a[i]) * f64::from_bits(b[i])).to_bits();
                }
            }
            let x = x.each_ref();
            for f in functions {
                for rounding in roundings {
                    let mode = FloatMode {
                        rounding,
                        ..FloatMode::PLAIN
                    };
                    let (found, expected) = (row(f, mode, x), by_lane(f, mode, x));
                    for i in 0..32 {
                        let operands = x.map(|row| row[i]);
                        assert_eq!(found[i], expected[i], "{f:?} {rounding:?} {operands:x?}");
                    }
                }
            }
        }
    }
}
