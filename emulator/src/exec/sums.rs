//! How tensor cores add: the sum of products and accumulator in a fixed number of bits.
//!
//! NVIDIA does not document it. The model here is the one that measurements on hardware have led to (Fasi, Higham, Mikaitis and Pranesh, "Numerical
//! behavior of NVIDIA tensor cores", 2021; Xie, Wang, Yang and Yang, "MMA-Sim: bit-accurate reference model of tensor cores and matrix cores", 2025):
//!
//! 1. The depth is cut into runs of [`Sums::depth`] products; each run is added to the accumulator in one step.
//! 2. Products are exact. The exponent of a product is the sum of the exponents of its factors, that of a subnormal number the least of its format.
//! 3. All products of the run and the accumulator are aligned to the greatest exponent and cut (toward zero) to [`Sums::fraction`] fraction bits.
//! 4. The sum of what is left is exact. It is rounded toward zero to f32, or to f32 with 13 fraction bits, or to nearest to f16. A zero is +0.
//!
//! Example: 2^24 + 1 + 1 in a run of two products gives 2^24 + 2 with 25 fraction bits, since both ones are within 2^(24-25), and 2^24 where
//! the ones are 2^-2 and only 13 bits are kept.
//!
//! Bytes that are widened to f16 are added in halves, and C last ([`Sums::halves`]).
//!
//! [`Sums::of`] says which numbers hold on which architecture.

use super::rounding::half_of;
use crate::float::half_to_f32;
use crate::ir::{Kept, Sums};

/// Exponent of what is not finite: greater than any other.
const NOT_FINITE: f64 = 1e6;
/// Columns that are added together.
const LANES: usize = 8;
/// Added to a small number that is not negative, it leaves the nearest whole number in the low bits.
const ALIGN: f64 = (1u64 << 52) as f64;

/// The exponent of a factor: of a zero none, which loses against every other.
#[inline(always)]
pub(super) fn exponent(x: f64, least: f64) -> f64 {
    let field = (x.to_bits() >> 52 & 0x7ff) as i32;
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if field == 0x7ff {
        NOT_FINITE
    } else {
        f64::from(field - 1023).max(least)
    }
}

/// The exponents of A and B.
#[inline(always)]
pub(super) fn exponents(sums: Sums, matrices: [&[f64]; 2]) -> [Vec<f64>; 2] {
    std::array::from_fn(|i| {
        let least = f64::from(sums.least[i]);
        matrices[i].iter().map(|x| exponent(*x, least)).collect()
    })
}

/// 2^e for whole e from -1022 to 1023.
#[inline(always)]
fn power(e: f64) -> f64 {
    // A conversion would be no vector code.
    f64::from_bits((e + 1023.0 + ALIGN).to_bits() << 52)
}

/// `x` without its fraction, for |x| < 2^52; `ROUNDS` if the machine has an instruction for it, where without it is a call.
#[inline(always)]
fn whole<const ROUNDS: bool>(x: f64) -> f64 {
    if ROUNDS {
        return x.trunc();
    }
    let size = x.abs();
    let near = (size + ALIGN) - ALIGN;
    let cut = near - if near > size { 1.0 } else { 0.0 };
    cut.copysign(x)
}

/// Numbers with their exponents.
pub(crate) struct Row<'a> {
    /// The values.
    pub(crate) values: &'a [f64],
    /// Their exponents, see [`exponent`].
    pub(crate) exponents: &'a [f64],
}

/// [`add`], compiled for every machine or for one with wide vectors.
pub(crate) type Adder = fn(Sums, &Row<'_>, &Row<'_>, &mut [f64]);

/// [`add`] for every machine.
pub(super) fn add_plain(sums: Sums, a: &Row<'_>, b: &Row<'_>, sum: &mut [f64]) {
    add::<false>(sums, a, b, sum);
}

/// [`add`] with the features of the fast version of the interpreter. The results are the same to the bit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn add_simd(sums: Sums, a: &Row<'_>, b: &Row<'_>, sum: &mut [f64]) {
    add::<true>(sums, a, b, sum);
}

/// Adds the products of a row of A with B (by rows, with exponents) to the sums of its columns, a multiple of 8 of them.
#[inline(always)]
pub(super) fn add<const ROUNDS: bool>(sums: Sums, a: &Row<'_>, b: &Row<'_>, sum: &mut [f64]) {
    let (n, k) = (sum.len(), a.values.len());
    let halves = sums.halves;
    let depth = if halves {
        k / 2
    } else {
        usize::from(sums.depth).min(k)
    };
    let runs = k / depth.max(1);
    // The place along the depth of product `i` of a run.
    let place = |run: usize, i: usize| {
        if halves {
            i / 2 * 4 + 2 * run + i % 2
        } else {
            run * depth + i
        }
    };
    for (first, out) in (0..n).step_by(LANES).zip(sum.chunks_exact_mut(LANES)) {
        let mut c = [0.0; LANES];
        if !halves {
            c.copy_from_slice(out);
        }
        for run in 0..runs {
            let mut top = [0.0; LANES];
            for j in 0..LANES {
                top[j] = exponent(c[j], -126.0);
            }
            for l in (0..depth).map(|i| place(run, i)) {
                let (e, others) = (a.exponents[l], &b.exponents[l * n + first..][..LANES]);
                for j in 0..LANES {
                    // None is a NaN.
                    let e = e + others[j];
                    top[j] = if e > top[j] { e } else { top[j] };
                }
            }
            let mut by = [0.0; LANES];
            for j in 0..LANES {
                by[j] = scale(sums, top[j]);
            }
            let scale = by;
            let mut fixed = [0.0; LANES];
            for j in 0..LANES {
                fixed[j] = whole::<ROUNDS>(c[j] * scale[j]);
            }
            for l in (0..depth).map(|i| place(run, i)) {
                let (x, ys) = (a.values[l], &b.values[l * n + first..][..LANES]);
                for j in 0..LANES {
                    fixed[j] += whole::<ROUNDS>(x * ys[j] * scale[j]);
                }
            }
            let before = c;
            for j in 0..LANES {
                c[j] = finish(sums.kept, fixed[j] / scale[j]);
            }
            for j in (0..LANES).filter(|j| top[*j] > NOT_FINITE / 2.0) {
                // An infinity or a NaN is added as such.
                let products = (0..depth).map(|i| place(run, i));
                let sum = products.fold(before[j], |s, l| {
                    s + a.values[l] * b.values[l * n + first + j]
                });
                c[j] = sum;
            }
        }
        if halves {
            for j in 0..LANES {
                c[j] = nearest(sums.kept, c[j] + out[j]);
            }
        }
        out.copy_from_slice(&c);
    }
}

/// The sum of two numbers of the format, rounded to nearest: exact in f64 but for bits that cannot matter.
fn nearest(kept: Kept, x: f64) -> f64 {
    if kept == Kept::F16 {
        let bits = half_of(x);
        return f64::from(half_to_f32(bits));
    }
    f64::from(x as f32)
}

/// What takes the greatest exponent to that of a number with all its fraction bits before the point.
#[inline(always)]
fn scale(sums: Sums, top: f64) -> f64 {
    let by = power(f64::from(sums.fraction) - top);
    if top == f64::NEG_INFINITY || top > NOT_FINITE / 2.0 {
        1.0
    } else {
        by
    }
}

/// The exact sum in the format of the result. A zero has no sign.
#[inline(always)]
fn finish(kept: Kept, x: f64) -> f64 {
    /// The first number beyond f32.
    const BEYOND: f64 = 2.0 * (1u128 << 127) as f64;
    if kept == Kept::F16 {
        let bits = half_of(x);
        return f64::from(half_to_f32(bits)) + 0.0;
    }
    let near = x as f32;
    let over = f64::from(near).abs() > x.abs() && x.abs() < BEYOND;
    let cut = f32::from_bits(near.to_bits() - u32::from(over));
    match kept {
        Kept::E8m13 => f64::from(f32::from_bits(cut.to_bits() & !0x3ff)) + 0.0,
        _ => f64::from(cut) + 0.0,
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // results are exact
mod tests {
    use super::{Row, add, exponents};
    use crate::ir::{MmaType, Sums};

    /// The sum of `a` · `b` + `c` on `arch`, for factors of one type.
    fn dot(arch: u32, ty: MmaType, sum: MmaType, wgmma: bool, a: &[f64], c: f64) -> f64 {
        let sums = Sums::of(arch, [ty, ty], sum, wgmma);
        let ones = vec![1.0; 8 * a.len()];
        let [ea, eb] = exponents(sums, [a, &ones]);
        let mut out = [c; 8];
        let row = |values, exponents| Row { values, exponents };
        add::<false>(sums, &row(a, &ea), &row(&ones, &eb), &mut out);
        let mut rounded = [c; 8];
        add::<true>(sums, &row(a, &ea), &row(&ones, &eb), &mut rounded);
        assert_eq!(out.map(f64::to_bits), rounded.map(f64::to_bits));
        assert!(out.iter().all(|x| x.to_bits() == out[0].to_bits()));
        out[0]
    }

    #[test]
    fn bits_below_the_fraction_are_cut_one_addend_at_a_time() {
        let mut a = [0.0; 16];
        // 16 addends of half a unit in the last place: with 25 fraction bits all count.
        a.fill(0.5);
        let c = f64::from(1 << 23);
        let half = |arch, a: &[f64]| dot(arch, MmaType::F16, MmaType::F32, false, a, c);
        assert_eq!(half(90, &a), c + 8.0);
        assert_eq!(half(80, &a), c + 8.0);
        // Of an eighth none does, whatever their sum.
        a.fill(0.0625);
        assert_eq!(half(90, &a), c);
        // A quarter has its last bit at 2^-25 of 2^23.
        a.fill(0.25);
        assert_eq!(half(90, &a), c + 4.0);
        // 24 bits: gone.
        assert_eq!(half(80, &a), c);
    }

    #[test]
    fn sums_are_rounded_toward_zero() {
        let mut a = [0.0; 8];
        a[0] = 0.75;
        let c = f64::from(1 << 23);
        for sign in [1.0, -1.0] {
            let a = a.map(|x| x * sign);
            let got = dot(90, MmaType::Tf32, MmaType::F32, false, &a, c * sign);
            assert_eq!(got, c * sign);
        }
    }

    #[test]
    fn bytes_keep_13_bits_in_wgmma_and_all_of_them_in_mma() {
        let mut a = [0.0; 32];
        (a[0], a[1]) = (256.0, 1.0 / 64.0);
        let of = |wgmma, a: &[f64]| dot(90, MmaType::E5m2, MmaType::F32, wgmma, a, 0.0);
        assert_eq!(of(true, &a), 256.0);
        assert_eq!(of(false, &a), 256.0 + 1.0 / 64.0);
        a[1] = 1.0 / 32.0;
        assert_eq!(of(true, &a), 256.0 + 1.0 / 32.0);
    }

    #[test]
    fn what_is_not_finite_is_added_as_such() {
        let mut a = [1.0; 16];
        a[3] = f64::INFINITY;
        let of = |a: &[f64], c| dot(90, MmaType::Bf16, MmaType::F32, false, a, c);
        assert_eq!(of(&a, 0.0), f64::INFINITY);
        assert!(of(&a, f64::NEG_INFINITY).is_nan());
        assert_eq!(of(&[0.0; 16], -0.0), 0.0);
    }
}
