//! Floating-point operations (PTX ISA, sections 9.7.3, 9.7.4), lane by lane.
//!
//! These are the definitions: everything goes through [`crate::float`], exactly. [`super::fp16`], [`super::fp32`] and [`super::fp64`] have vector code for
//! what is frequent. NaN results of f32 are the canonical 0x7fffffff, of f16 and bf16 0x7fff, as the ISA says; of f64, which it leaves open, they are those
//! of an H100 ([`crate::float64`]).

use crate::float::{NAN32, add_to_odd, finish32, flush32, narrow, to_odd, widen};
use crate::float64::{arithmetic, is_nan};
use crate::ir::{FloatMode, FloatOp, Format, Rounding, TestP};

const NAN64: u64 = 0x7ff8_0000_0000_0000;

/// One f32 operation with any mode.
pub(crate) fn scalar32(f: FloatOp, mode: FloatMode, a: u32, b: u32, c: u32) -> u32 {
    let flush = |x: u32| if mode.ftz { flush32(x) } else { x };
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let v = |x: u32| f64::from(f32::from_bits(x));
    match f {
        FloatOp::Abs | FloatOp::Neg if f32::from_bits(a).is_nan() => return NAN32,
        FloatOp::Abs => return a & 0x7fff_ffff,
        FloatOp::Neg => return a ^ 0x8000_0000,
        FloatOp::Copysign => return (a & 0x8000_0000) | (b & 0x7fff_ffff),
        f if f.is_extremum() => {
            return min_max(f, u64::from(a), u64::from(b), Format::F32) as u32;
        }
        _ => {}
    }
    let mut r = value(f, v(a), v(b), v(c));
    if r == 0.0 && mode.rounding == Rounding::Down {
        // Addends of different signs that cancel out give -0.
        let addends = match f {
            FloatOp::Add => (v(a), v(b)),
            FloatOp::Sub => (v(a), -v(b)),
            FloatOp::Fma => (v(a) * v(b), v(c)),
            _ => (r, r),
        };
        if addends.0.is_sign_negative() != addends.1.is_sign_negative() {
            r = -0.0;
        }
    }
    finish32(r, mode)
}

/// The result of an arithmetic operation in f64, to odd, or within a few units of f64's last place for the approximate ones.
fn value(f: FloatOp, a: f64, b: f64, c: f64) -> f64 {
    match f {
        FloatOp::Add => add_to_odd(a, b),
        FloatOp::Sub => add_to_odd(a, -b),
        FloatOp::Mul => a * b,
        FloatOp::Fma | FloatOp::FmaRelu | FloatOp::FmaOob | FloatOp::FmaOobRelu => {
            add_to_odd(a * b, c)
        }
        FloatOp::Div => divide(a, b),
        FloatOp::Rcp => divide(1.0, a),
        FloatOp::Sqrt => root(a),
        FloatOp::Rsqrt => 1.0 / a.sqrt(),
        FloatOp::Sin => a.sin(),
        FloatOp::Cos => a.cos(),
        FloatOp::Lg2 => a.log2(),
        FloatOp::Ex2 => a.exp2(),
        FloatOp::Tanh => a.tanh(),
        _ => f64::NAN,
    }
}

/// a / b to odd, for numbers of f32. If b is zero or infinite the remainder is NaN, and the quotient exact.
#[inline(always)]
pub(super) fn divide(a: f64, b: f64) -> f64 {
    let q = a / b;
    let remainder = (-q).mul_add(b, a);
    to_odd(q, if b < 0.0 { -remainder } else { remainder })
}

/// The root of a to odd, for numbers of f32.
#[inline(always)]
pub(super) fn root(a: f64) -> f64 {
    let r = a.sqrt();
    to_odd(r, (-r).mul_add(r, a))
}

/// Minimum or maximum of the bits `a` and `b` in format `f`: a NaN gives way to a number, and -0 is below +0.
fn min_max(op: FloatOp, a: u64, b: u64, f: Format) -> u64 {
    let (sign, nan) = match f {
        Format::F64 => (1u64 << 63, NAN64),
        Format::F32 => (1 << 31, u64::from(NAN32)),
        _ => (1 << 15, 0x7fff),
    };
    let is_nan = |x: u64| widen(x, f).is_nan();
    let xorsign = matches!(
        op,
        FloatOp::MinXorsign | FloatOp::MaxXorsign | FloatOp::MinNanXorsign | FloatOp::MaxNanXorsign
    );
    let signs = (a ^ b) & sign;
    let (a, b) = if xorsign {
        (a & !sign, b & !sign)
    } else {
        (a, b)
    };
    let strict = matches!(
        op,
        FloatOp::MinNan | FloatOp::MaxNan | FloatOp::MinNanXorsign | FloatOp::MaxNanXorsign
    );
    let max = matches!(
        op,
        FloatOp::Max | FloatOp::MaxNan | FloatOp::MaxXorsign | FloatOp::MaxNanXorsign
    );
    let pick = match (is_nan(a), is_nan(b)) {
        (true, true) => return nan,
        (true, false) | (false, true) if strict => return nan,
        (true, false) => b,
        (false, true) => a,
        _ => {
            // Sign-magnitude to a total order, which puts -0 below +0.
            let key = |x: u64| {
                if x & sign != 0 {
                    -((x & !sign) as i64) - 1
                } else {
                    x as i64
                }
            };
            if (key(a) > key(b)) == max { a } else { b }
        }
    };
    if xorsign {
        (pick & !sign) | signs
    } else {
        pick
    }
}

/// One f64 operation.
pub(super) fn scalar64(f: FloatOp, rounding: Rounding, a: u64, b: u64, c: u64) -> u64 {
    const SIGN: u64 = 1 << 63;
    if let Some(result) = arithmetic(f, rounding, [a, b, c]) {
        return result;
    }
    match f {
        // The sign of a NaN stays, and a signalling one becomes quiet.
        FloatOp::Abs | FloatOp::Neg if is_nan(a) => a | 1 << 51,
        FloatOp::Abs => a & !SIGN,
        FloatOp::Neg => a ^ SIGN,
        FloatOp::Copysign => (a & SIGN) | (b & !SIGN),
        f if f.is_extremum() => min_max(f, a, b, Format::F64),
        FloatOp::Rsqrt => {
            let r = 1.0 / f64::from_bits(a).sqrt();
            if r.is_nan() { NAN64 } else { r.to_bits() }
        }
        _ => NAN64,
    }
}

/// One operation on f16 or bf16, in the low bits.
pub(super) fn scalar16(f: FloatOp, bf16: bool, mode: FloatMode, a: u32, b: u32, c: u32) -> u32 {
    let (format, exponent) = if bf16 {
        (Format::Bf16, 0x7f80)
    } else {
        (Format::F16, 0x7c00)
    };
    let flush = |x: u32| {
        if mode.ftz && x & exponent == 0 {
            x & 0x8000
        } else {
            x
        }
    };
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let v = |x: u32| widen(u64::from(x), format);
    match f {
        FloatOp::Abs | FloatOp::Neg if v(a).is_nan() => return 0x7fff,
        FloatOp::Abs => return a & 0x7fff,
        FloatOp::Neg => return a ^ 0x8000,
        f if f.is_extremum() => {
            return min_max(f, u64::from(a), u64::from(b), format) as u32;
        }
        // The NaN of `TensorElement::nan`.
        FloatOp::FmaOob | FloatOp::FmaOobRelu if [a, b, c].contains(&0x7fff) => return 0,
        _ => {}
    }
    let mut r = value(f, v(a), v(b), v(c));
    if mode.sat {
        r = if r > 0.0 { r.min(1.0) } else { 0.0 };
    }
    if matches!(f, FloatOp::FmaRelu | FloatOp::FmaOobRelu) && r <= 0.0 {
        r = 0.0;
    }
    flush(narrow(r, format, mode.rounding, false) as u32)
}

/// `testp` of the value `x`; `wide` for f64 (else `x` came from f32, whose subnormals are below 2^-126).
pub(crate) fn testp(what: TestP, x: f64, wide: bool) -> bool {
    let smallest = if wide {
        f64::MIN_POSITIVE
    } else {
        f64::from(f32::MIN_POSITIVE)
    };
    match what {
        TestP::Finite => x.is_finite(),
        TestP::Infinite => x.is_infinite(),
        TestP::Number => !x.is_nan(),
        TestP::NotANumber => x.is_nan(),
        // Zeros count as normal.
        TestP::Normal => x == 0.0 || x.is_finite() && x.abs() >= smallest,
        TestP::Subnormal => x != 0.0 && x.abs() < smallest,
    }
}
