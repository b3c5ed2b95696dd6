//! Comparisons of rows (PTX ISA, sections 9.7.6 and 9.7.7): the lanes in which they hold, as bits.
//!
//! Each pair of type and operator is a loop of its own, which the compiler turns into vector code. The operators ending in `u` hold if the values are
//! unordered too: `ltu` of 1 and NaN holds, `lt` does not.

use super::alu::{Row32, Row64};
use crate::float::{flush32, widen};
use crate::ir::{Cmp, CmpType, Format};

/// The lanes for which `f` holds.
#[inline(always)]
fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
    let mut m = 0;
    for i in 0..32 {
        m |= u32::from(f(i)) << i;
    }
    m
}

/// The lanes in which `a cmp b` holds.
#[inline(always)]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "no branch, so that loops become vector code"
)]
fn rows<T: PartialOrd + Copy>(cmp: Cmp, a: &[T; 32], b: &[T; 32]) -> u32 {
    match cmp {
        Cmp::Eq => mask_of(|i| a[i] == b[i]),
        Cmp::Ne => mask_of(|i| (a[i] < b[i]) | (a[i] > b[i])),
        Cmp::Lt => mask_of(|i| a[i] < b[i]),
        Cmp::Le => mask_of(|i| a[i] <= b[i]),
        Cmp::Gt => mask_of(|i| a[i] > b[i]),
        Cmp::Ge => mask_of(|i| a[i] >= b[i]),
        // The others are the complements of these six.
        Cmp::Equ => !mask_of(|i| (a[i] < b[i]) | (a[i] > b[i])),
        Cmp::Neu => !mask_of(|i| a[i] == b[i]),
        Cmp::Ltu => !mask_of(|i| a[i] >= b[i]),
        Cmp::Leu => !mask_of(|i| a[i] > b[i]),
        Cmp::Gtu => !mask_of(|i| a[i] <= b[i]),
        Cmp::Geu => !mask_of(|i| a[i] < b[i]),
        Cmp::Num => mask_of(|i| (a[i] <= b[i]) | (a[i] >= b[i])),
        Cmp::Nan => !mask_of(|i| (a[i] <= b[i]) | (a[i] >= b[i])),
    }
}

/// `row` with each lane through `f`.
#[inline(always)]
fn each<T: Copy, U: Copy + Default>(row: &[T; 32], f: impl Fn(T) -> U) -> [U; 32] {
    // A loop: `map` would be a function of its own, without wide vectors.
    let mut out = [U::default(); 32];
    for i in 0..32 {
        out[i] = f(row[i]);
    }
    out
}

/// The lanes in which `a cmp b` holds, for types in 32-bit rows. `upper` compares the high halves of packed values.
#[inline(always)]
pub(super) fn rows32(cmp: Cmp, ty: CmpType, [a, b]: [&Row32; 2], upper: bool) -> u32 {
    let half = |x: u32, f: Format| widen(u64::from(if upper { x >> 16 } else { x & 0xffff }), f);
    let flushed = |x: u32| {
        let x = half(x, Format::F16);
        if x.abs() < 2f64.powi(-14) { 0.0 } else { x }
    };
    match ty {
        CmpType::U32 => rows(cmp, a, b),
        CmpType::S32 => rows(cmp, &each(a, |x| x as i32), &each(b, |x| x as i32)),
        CmpType::F32 => rows(cmp, &each(a, f32::from_bits), &each(b, f32::from_bits)),
        CmpType::F32Ftz => {
            let value = |x| f32::from_bits(flush32(x));
            rows(cmp, &each(a, value), &each(b, value))
        }
        CmpType::U16 => rows(cmp, &each(a, |x| x & 0xffff), &each(b, |x| x & 0xffff)),
        CmpType::S16 => {
            let value = |x: u32| i32::from(x as u16 as i16);
            rows(cmp, &each(a, value), &each(b, value))
        }
        CmpType::F16 => doubles(cmp, [a, b], |x| half(x, Format::F16)),
        CmpType::F16Ftz => doubles(cmp, [a, b], flushed),
        CmpType::Bf16 => doubles(cmp, [a, b], |x| half(x, Format::Bf16)),
        CmpType::U64 | CmpType::S64 | CmpType::F64 => 0,
    }
}

/// Comparisons of rows that are widened to f64 first.
#[inline(always)]
fn doubles(cmp: Cmp, [a, b]: [&Row32; 2], value: impl Fn(u32) -> f64) -> u32 {
    rows(cmp, &each(a, &value), &each(b, &value))
}

/// The lanes in which `a cmp b` holds, for 64-bit types.
#[inline(always)]
pub(super) fn rows64(cmp: Cmp, ty: CmpType, [a, b]: [&Row64; 2]) -> u32 {
    match ty {
        CmpType::S64 => rows(cmp, &each(a, |x| x as i64), &each(b, |x| x as i64)),
        CmpType::F64 => rows(cmp, &each(a, f64::from_bits), &each(b, f64::from_bits)),
        _ => rows(cmp, a, b),
    }
}
