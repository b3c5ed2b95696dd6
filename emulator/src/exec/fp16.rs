//! f16 and bf16 operations on rows, one or two numbers to a register.
//!
//! An f16 is computed in f32: the product of two is exact there, and a sum rounded to odd rounds once more as if it had been rounded once. A bf16, which
//! has the exponents of f32, is computed in f64 in the same way. All arithmetic of halves rounds to nearest. What has no loop here goes lane by lane
//! through [`super::fp::scalar16`], which gives the same bits. Example: `fma.rn.f16` of 3, 1/4 and 2^-24 is 3/4 + 2^-24 to odd in f32, and 3/4.

use super::alu::Row32;
use super::code::COMPACT;
use super::fp::scalar16;
use super::rounding::{bfloat, half};
use crate::float::{add_to_odd, add_to_odd32, half_to_f32, odd32};
use crate::ir::{FloatMode, FloatOp};

/// The NaN of results, and the one by which tensor copies fill what is outside the array.
const NAN: u32 = 0x7fff;

/// `f` on rows of f16, or of bf16; of both halves of each register if `packed`, else of the lower.
#[inline(always)]
pub(super) fn row(f: FloatOp, bf16: bool, packed: bool, mode: FloatMode, x: [&Row32; 3]) -> Row32 {
    let mut out = [0; 32];
    for shift in [0, 16] {
        if shift == 0 || packed {
            let mut parts = [[0; 32]; 3];
            for (part, row) in parts.iter_mut().zip(x) {
                for i in 0..32 {
                    part[i] = row[i] >> shift & 0xffff;
                }
            }
            let half = if bf16 {
                element::<true>(f, mode, parts)
            } else {
                element::<false>(f, mode, parts)
            };
            for i in 0..32 {
                out[i] |= half[i] << shift;
            }
        }
    }
    out
}

/// `f` on rows of single halves.
#[inline(always)]
fn element<const BF16: bool>(f: FloatOp, mode: FloatMode, mut x: [Row32; 3]) -> Row32 {
    if mode.ftz && !COMPACT {
        for x in x.as_flattened_mut() {
            *x = flush::<BF16>(*x);
        }
    }
    let [a, b, c] = &x;
    match f {
        _ if COMPACT => by_lane(f, BF16, mode, [a, b, c]),
        FloatOp::Add => arithmetic::<BF16>(f, mode, |i| [a[i], ONE[usize::from(BF16)], b[i]]),
        FloatOp::Sub => {
            arithmetic::<BF16>(f, mode, |i| [a[i], ONE[usize::from(BF16)], b[i] ^ 0x8000])
        }
        // Nothing is added but a zero of the product's sign.
        FloatOp::Mul => arithmetic::<BF16>(f, mode, |i| [a[i], b[i], (a[i] ^ b[i]) & 0x8000]),
        FloatOp::Fma | FloatOp::FmaRelu | FloatOp::FmaOob | FloatOp::FmaOobRelu => {
            let mut out = arithmetic::<BF16>(f, mode, |i| [a[i], b[i], c[i]]);
            if matches!(f, FloatOp::FmaOob | FloatOp::FmaOobRelu) {
                for i in 0..32 {
                    let outside = [a[i], b[i], c[i]].contains(&NAN);
                    out[i] = if outside { 0 } else { out[i] };
                }
            }
            out
        }
        FloatOp::Abs => signs::<BF16>(a, |x| x & 0x7fff),
        FloatOp::Neg => signs::<BF16>(a, |x| x ^ 0x8000),
        FloatOp::Min => extremes::<BF16>(a, b, false, false),
        FloatOp::Max => extremes::<BF16>(a, b, true, false),
        FloatOp::MinNan => extremes::<BF16>(a, b, false, true),
        FloatOp::MaxNan => extremes::<BF16>(a, b, true, true),
        _ => by_lane(f, BF16, mode, [a, b, c]),
    }
}

/// One in f16 and in bf16.
const ONE: [u32; 2] = [0x3c00, 0x3f80];

/// The product of the first two operands and the third added, finished as `f` and `mode` say.
#[inline(always)]
fn arithmetic<const BF16: bool>(
    f: FloatOp,
    mode: FloatMode,
    operands: impl Fn(usize) -> [u32; 3],
) -> Row32 {
    let relu = matches!(f, FloatOp::FmaRelu | FloatOp::FmaOobRelu);
    let mut out = [0; 32];
    for i in 0..32 {
        let operands = operands(i);
        let mut r = if BF16 {
            let [a, b, c] = operands.map(|x| f64::from(f32::from_bits(x << 16)));
            odd32(add_to_odd(a * b, c))
        } else {
            let [a, b, c] = operands.map(half_to_f32);
            add_to_odd32(a * b, c)
        };
        if mode.sat {
            r = if r > 0.0 { r.min(1.0) } else { 0.0 };
        }
        if relu {
            r = if r <= 0.0 { 0.0 } else { r };
        }
        out[i] = if BF16 {
            bfloat(r.to_bits())
        } else {
            half(r.to_bits())
        };
        if mode.ftz {
            out[i] = flush::<BF16>(out[i]);
        }
    }
    out
}

/// Flushes a subnormal number to zero of its sign.
#[inline(always)]
fn flush<const BF16: bool>(x: u32) -> u32 {
    let exponent = if BF16 { 0x7f80 } else { 0x7c00 };
    if x & exponent == 0 { x & 0x8000 } else { x }
}

#[inline(always)]
fn is_nan<const BF16: bool>(x: u32) -> bool {
    x & 0x7fff > if BF16 { 0x7f80 } else { 0x7c00 }
}

/// Operations on the sign: NaN becomes canonical, and nothing is saturated.
#[inline(always)]
fn signs<const BF16: bool>(a: &Row32, f: impl Fn(u32) -> u32) -> Row32 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = if is_nan::<BF16>(a[i]) { NAN } else { f(a[i]) };
    }
    out
}

/// `min` and `max`: a NaN gives way to a number unless the operation is `strict`, and -0 is below +0.
#[inline(always)]
fn extremes<const BF16: bool>(a: &Row32, b: &Row32, max: bool, strict: bool) -> Row32 {
    // Sign and magnitude to a total order.
    let key = |x: u32| {
        let x = (x << 16) as i32 >> 16;
        x ^ (x >> 31 & 0x7fff)
    };
    let mut out = [0; 32];
    for i in 0..32 {
        let (x, y) = (a[i], b[i]);
        let number = if (key(x) > key(y)) == max { x } else { y };
        let other = |nan: u32, number: u32| if strict { nan } else { number };
        let number = if is_nan::<BF16>(y) {
            other(y, x)
        } else {
            number
        };
        let number = if is_nan::<BF16>(x) {
            other(x, y)
        } else {
            number
        };
        out[i] = if is_nan::<BF16>(number) { NAN } else { number };
    }
    out
}

#[inline(never)]
fn by_lane(f: FloatOp, bf16: bool, mode: FloatMode, [a, b, c]: [&Row32; 3]) -> Row32 {
    let mut out = [0; 32];
    for i in 0..32 {
        out[i] = scalar16(f, bf16, mode, a[i], b[i], c[i]);
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
            0x0000, 0x0001, 0x03ff, 0x0400, 0x007f, 0x0080, 0x3c00, 0x3f80, 0x7bff, 0x7c00, 0x7c01,
            0x7f7f, 0x7f80, 0x7f81, 0x7fff,
        ];
        let mut state = 5u64;
        let mut half = |k: usize, bf16: bool| {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let r = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
            match k % 4 {
                0 => special[r as usize % special.len()] | r >> 16 & 0x8000,
                1 => r & 0xffff,
                // Within some powers of two of 1.
                _ if bf16 => (r & 0x807f) + (((r >> 20) % 24 + 115) << 7),
                _ => (r & 0x83ff) + (((r >> 20) % 12 + 9) << 10),
            }
        };
        let functions = [
            FloatOp::Add,
            FloatOp::Sub,
            FloatOp::Mul,
            FloatOp::Fma,
            FloatOp::FmaRelu,
            FloatOp::FmaOob,
            FloatOp::FmaOobRelu,
            FloatOp::Abs,
            FloatOp::Neg,
            FloatOp::Min,
            FloatOp::Max,
            FloatOp::MinNan,
            FloatOp::MaxNan,
            FloatOp::MaxXorsign,
            FloatOp::Tanh,
        ];
        for round in 0..800 {
            for bf16 in [false, true] {
                let x: [Row32; 3] = std::array::from_fn(|j| {
                    std::array::from_fn(|i| half(round + i / 8 + j, bf16) | half(i + j, bf16) << 16)
                });
                let x = x.each_ref();
                for f in functions {
                    for (ftz, sat) in [(false, false), (true, false), (false, true), (true, true)] {
                        if bf16 && (ftz || sat) {
                            continue;
                        }
                        let mode = FloatMode {
                            ftz,
                            sat,
                            ..FloatMode::PLAIN
                        };
                        let (one, two) =
                            (row(f, bf16, false, mode, x), row(f, bf16, true, mode, x));
                        for i in 0..32 {
                            let part = |shift: u32| {
                                let [a, b, c] = x.map(|row| row[i] >> shift & 0xffff);
                                scalar16(f, bf16, mode, a, b, c)
                            };
                            let operands = x.map(|row| row[i]);
                            assert_eq!(one[i], part(0), "{f:?} {bf16} {mode:?} {operands:x?}");
                            assert_eq!(
                                two[i],
                                part(0) | part(16) << 16,
                                "{f:?} {bf16} {mode:?} {operands:x?}"
                            );
                        }
                    }
                }
            }
        }
    }
}
