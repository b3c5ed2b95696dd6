//! Comparisons of rows (PTX ISA, sections 9.7.6 and 9.7.7): the lanes in which they hold, as bits.
//!
//! Each pair of type and operator is a loop of its own, which the compiler turns into vector code. The operators ending in `u` hold if the values are
//! unordered too: `ltu` of 1 and NaN holds, `lt` does not.

use std::cmp::Ordering;

use super::alu::{Row32, Row64};
use super::code::COMPACT;
use crate::float::{flush32, half_to_f32};
use crate::ir::{Cmp, CmpType};

/// The lanes for which `f` holds.
#[inline(always)]
pub(super) fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
    let mut bits = 0;
    for half in [0, 16] {
        // A closure that is called twice would be a function of its own.
        let mut holds = [0; 16];
        for (i, x) in holds.iter_mut().enumerate() {
            *x = -i8::from(f(half + i));
        }
        bits |= signs(holds) << half;
    }
    bits
}

/// The sign bits of 16 bytes.
///
/// x86-64 has an instruction for it, which the compiler does not find by itself: it makes loops that collect bits from the fourth byte of the rows on, and
/// loads across what was stored in two pieces wait for both.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn signs(x: [i8; 16]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_movemask_epi8};
    // SAFETY: SSE2 is part of x86-64, and the vector is 16 bytes of any value.
    #[allow(unsafe_code)]
    unsafe {
        _mm_movemask_epi8(std::mem::transmute::<[i8; 16], __m128i>(x)) as u32
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn signs(x: [i8; 16]) -> u32 {
    let bits = x.iter().enumerate();
    bits.fold(0, |m, (i, x)| m | u32::from(*x < 0) << i)
}

/// The lanes in which `a cmp b` holds, where `value` is what an element stands for.
#[inline(always)]
#[allow(
    clippy::needless_bitwise_bool,
    reason = "no branch, so that loops become vector code"
)]
fn rows<T: Copy, V: PartialOrd>(cmp: Cmp, [a, b]: [&[T; 32]; 2], value: impl Fn(T) -> V) -> u32 {
    let a = |i: usize| value(a[i]);
    let b = |i: usize| value(b[i]);
    match cmp {
        _ if COMPACT => by_order(cmp, |i| a(i).partial_cmp(&b(i))),
        Cmp::Eq => mask_of(|i| a(i) == b(i)),
        Cmp::Ne => mask_of(|i| (a(i) < b(i)) | (a(i) > b(i))),
        Cmp::Lt => mask_of(|i| a(i) < b(i)),
        Cmp::Le => mask_of(|i| a(i) <= b(i)),
        Cmp::Gt => mask_of(|i| a(i) > b(i)),
        Cmp::Ge => mask_of(|i| a(i) >= b(i)),
        // The others are the complements of these six.
        Cmp::Equ => !mask_of(|i| (a(i) < b(i)) | (a(i) > b(i))),
        Cmp::Neu => !mask_of(|i| a(i) == b(i)),
        Cmp::Ltu => !mask_of(|i| a(i) >= b(i)),
        Cmp::Leu => !mask_of(|i| a(i) > b(i)),
        Cmp::Gtu => !mask_of(|i| a(i) <= b(i)),
        Cmp::Geu => !mask_of(|i| a(i) < b(i)),
        Cmp::Num => mask_of(|i| (a(i) <= b(i)) | (a(i) >= b(i))),
        Cmp::Nan => !mask_of(|i| (a(i) <= b(i)) | (a(i) >= b(i))),
    }
}

/// The lanes in which `cmp` holds, by how the two values are ordered: one loop for all operators.
#[inline(always)]
fn by_order(cmp: Cmp, order: impl Fn(usize) -> Option<Ordering>) -> u32 {
    use Ordering::{Equal, Greater, Less};
    let (ordered, unordered): (&[Ordering], bool) = match cmp {
        Cmp::Eq => (&[Equal], false),
        Cmp::Ne => (&[Less, Greater], false),
        Cmp::Lt => (&[Less], false),
        Cmp::Le => (&[Less, Equal], false),
        Cmp::Gt => (&[Greater], false),
        Cmp::Ge => (&[Greater, Equal], false),
        Cmp::Equ => (&[Equal], true),
        Cmp::Neu => (&[Less, Greater], true),
        Cmp::Ltu => (&[Less], true),
        Cmp::Leu => (&[Less, Equal], true),
        Cmp::Gtu => (&[Greater], true),
        Cmp::Geu => (&[Greater, Equal], true),
        Cmp::Num => (&[Less, Equal, Greater], false),
        Cmp::Nan => (&[], true),
    };
    let holds = |i: usize| order(i).map_or(unordered, |order| ordered.contains(&order));
    (0..32).fold(0, |m, i| m | u32::from(holds(i)) << i)
}

/// The lanes in which `a cmp b` holds, for types in 32-bit rows. `upper` compares the high halves of packed values.
#[inline(always)]
pub(super) fn rows32(cmp: Cmp, ty: CmpType, x: [&Row32; 2], upper: bool) -> u32 {
    let half = |x: u32| half_to_f32(if upper { x >> 16 } else { x & 0xffff });
    let bfloat = |x: u32| f32::from_bits(if upper { x & 0xffff_0000 } else { x << 16 });
    let flushed = |x: u32| {
        let x = half(x);
        if x.abs() < 2f32.powi(-14) { 0.0 } else { x }
    };
    match ty {
        CmpType::U32 => rows(cmp, x, |x| x),
        CmpType::S32 => rows(cmp, x, |x| x as i32),
        CmpType::F32 => rows(cmp, x, f32::from_bits),
        CmpType::F32Ftz => rows(cmp, x, |x| f32::from_bits(flush32(x))),
        CmpType::U16 => rows(cmp, x, |x| x & 0xffff),
        CmpType::S16 => rows(cmp, x, |x| i32::from(x as u16 as i16)),
        CmpType::F16 => rows(cmp, x, half),
        CmpType::F16Ftz => rows(cmp, x, flushed),
        CmpType::Bf16 => rows(cmp, x, bfloat),
        CmpType::U64 | CmpType::S64 | CmpType::F64 => 0,
    }
}

/// The lanes in which `a cmp b` holds, for 64-bit types.
#[inline(always)]
pub(super) fn rows64(cmp: Cmp, ty: CmpType, x: [&Row64; 2]) -> u32 {
    match ty {
        CmpType::S64 => rows(cmp, x, |x| x as i64),
        CmpType::F64 => rows(cmp, x, f64::from_bits),
        _ => rows(cmp, x, |x| x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to compare agree, on every pair of these numbers.
    #[test]
    fn loops_are_their_definition() {
        let some = [
            f32::NAN,
            f32::NEG_INFINITY,
            -1.0,
            -0.0,
            0.0,
            1.0,
            f32::INFINITY,
            f32::MAX,
        ];
        let all = [
            Cmp::Eq,
            Cmp::Ne,
            Cmp::Lt,
            Cmp::Le,
            Cmp::Gt,
            Cmp::Ge,
            Cmp::Equ,
            Cmp::Neu,
            Cmp::Ltu,
            Cmp::Leu,
            Cmp::Gtu,
            Cmp::Geu,
            Cmp::Num,
            Cmp::Nan,
        ];
        let a: Row32 = std::array::from_fn(|i| some[i % 8].to_bits());
        for shift in 0..8 {
            let b: Row32 = std::array::from_fn(|i| some[(i + shift) % 8].to_bits());
            for cmp in all {
                let value = |x: &Row32, i: usize| f32::from_bits(x[i]);
                let defined = by_order(cmp, |i| value(&a, i).partial_cmp(&value(&b, i)));
                let found = rows32(cmp, CmpType::F32, [&a, &b], false);
                assert_eq!(found, defined, "{cmp:?}, {shift}");
            }
        }
    }
}
