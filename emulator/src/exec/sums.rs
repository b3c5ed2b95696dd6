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

use super::rounding::{half_of, near_half};
use crate::float::half_to_f32;
use crate::ir::{Kept, Sums};

/// Exponent of a factor that is zero: the sum with any other is below [`NONE`].
const ZERO: i16 = -16384;
/// Sums of exponents below this belong to products that are zero.
const NONE: i16 = -4000;
/// Exponent of what is not finite: greater than any other.
const NOT_FINITE: i16 = 8192;
/// Sums of exponents of at most this size stay far within f32: see [`fast`].
const MODERATE: i16 = 100;
/// Columns that are added together: two vectors of f32, one of exponents.
pub(super) const LANES: usize = 16;
/// Products cut to whole numbers that are added in an i32: each is at most (2 − 2^-10)²·2^25 with the 11 significant bits that a factor has.
const RUN: usize = 16;

/// The exponent of a factor, see step 2.
#[inline(always)]
pub(super) fn exponent(x: f32, least: i16) -> i16 {
    let bits = x.to_bits() & 0x7fff_ffff;
    let field = (bits >> 23) as i16;
    let number = (field - 127).max(least);
    let number = if field == 0xff { NOT_FINITE } else { number };
    if bits == 0 { ZERO } else { number }
}

/// The least exponent of factors `i` (0 for A, 1 for B) that are not zero.
pub(super) fn least(sums: Sums, i: usize) -> i16 {
    sums.least[i]
}

/// The exponents of the factors `values`.
#[inline(always)]
pub(super) fn exponents(values: &[f32], least: i16) -> Vec<i16> {
    values.iter().map(|x| exponent(*x, least)).collect()
}

/// Numbers with their exponents: a row of A.
pub(crate) struct Row<'a> {
    /// The values.
    pub(crate) values: &'a [f32],
    /// Their exponents, see [`exponent`].
    pub(crate) exponents: &'a [i16],
}

/// A matrix whose columns are added side by side, [`LANES`] of them to a panel: B, or A where its rows take this part.
pub(crate) struct Panels {
    depth: usize,
    /// By panel, row after row.
    values: Vec<[f32; LANES]>,
    exponents: Vec<[i16; LANES]>,
}

impl Panels {
    /// From panels of so many rows each.
    #[inline(always)]
    pub(super) fn new(depth: usize, values: Vec<[f32; LANES]>, least: i16) -> Self {
        let mut exponents = vec![[0; LANES]; values.len()];
        for (to, from) in exponents.iter_mut().zip(&values) {
            for j in 0..LANES {
                to[j] = exponent(from[j], least);
            }
        }
        Self {
            depth,
            values,
            exponents,
        }
    }

    /// From a matrix of `depth` rows of `n` numbers; the last panel is filled up with zeros.
    pub(super) fn of_rows(values: &[f32], depth: usize, n: usize, least: i16) -> Self {
        let mut panels = vec![[0.0; LANES]; n.div_ceil(LANES) * depth];
        for (row, l) in values.chunks_exact(n).zip(0..depth) {
            for (j, x) in row.iter().enumerate() {
                panels[j / LANES * depth + l][j % LANES] = *x;
            }
        }
        Self::new(depth, panels, least)
    }
}

/// The least and the greatest exponent of numbers that are not zero, and 0.
#[inline(always)]
fn range(exponents: &[i16]) -> (i16, i16) {
    let (mut low, mut high) = (0, 0);
    for e in exponents {
        low = low.min(if *e < NONE { 0 } else { *e });
        high = high.max(*e);
    }
    (low, high)
}

/// Whether no product of a number with one of these exponents and one of `b` is near the ends of f32, or not finite.
#[inline(always)]
pub(super) fn moderate(a: &[i16], b: &Panels) -> bool {
    let (a, b) = (range(a), range(b.exponents.as_flattened()));
    a.0 + b.0 >= -MODERATE && a.1 + b.1 <= MODERATE
}

/// See [`add`].
trait Greatest: Fn(&[i16], &[[i16; LANES]]) -> [i16; LANES] {}
impl<F: Fn(&[i16], &[[i16; LANES]]) -> [i16; LANES]> Greatest for F {}
/// See [`add`].
trait Total: Fn(&[f32], &[[f32; LANES]], &[f32; LANES]) -> [i32; LANES] {}
impl<F: Fn(&[f32], &[[f32; LANES]], &[f32; LANES]) -> [i32; LANES]> Total for F {}

/// [`add`], compiled for every machine or for one with wide vectors.
pub(crate) type Adder = fn(Sums, &Row<'_>, &Panels, bool, &mut [f32]);

/// [`add`] for every machine.
pub(super) fn add_plain(sums: Sums, a: &Row<'_>, b: &Panels, is_moderate: bool, sum: &mut [f32]) {
    let greatest = |es: &[i16], others: &[[i16; LANES]]| {
        let mut top = [ZERO; LANES];
        for (e, others) in es.iter().zip(others) {
            for j in 0..LANES {
                top[j] = top[j].max(e.wrapping_add(others[j]));
            }
        }
        top
    };
    let total = |xs: &[f32], values: &[[f32; LANES]], scale: &[f32; LANES]| {
        let mut fixed = [0i32; LANES];
        for (x, ys) in xs.iter().zip(values) {
            for j in 0..LANES {
                fixed[j] = fixed[j].wrapping_add((x * ys[j] * scale[j]) as i32);
            }
        }
        fixed
    };
    add(sums, a, b, is_moderate, sum, (greatest, total));
}

/// Calls `one` with each pair of `xs` and `ys`, four at a time: no step is of another depth than a multiple.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_fours<X, Y>(xs: &[X], ys: &[Y], one: &mut impl FnMut(&X, &Y)) {
    let ((xs, last), (ys, lasts)) = (xs.as_chunks::<4>(), ys.as_chunks::<4>());
    for (xs, ys) in xs.iter().zip(ys) {
        for i in 0..4 {
            one(&xs[i], &ys[i]);
        }
    }
    for (x, y) in last.iter().zip(lasts) {
        one(x, y);
    }
}

/// [`add`] with the features of the fast version of the interpreter. The results are the same to the bit.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn add_simd(sums: Sums, a: &Row<'_>, b: &Panels, is_moderate: bool, sum: &mut [f32]) {
    use std::arch::x86_64::{
        __m256, __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_cvttps_epi32,
        _mm256_extract_epi16, _mm256_extract_epi32, _mm256_max_epi16, _mm256_mul_ps,
        _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi16, _mm256_setr_ps,
    };
    // LLVM makes vectors along the depth of a loop that says this.
    let greatest = |es: &[i16], others: &[[i16; LANES]]| {
        let load = |x: &[i16; LANES]| -> __m256i {
            _mm256_setr_epi16(
                x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12],
                x[13], x[14], x[15],
            )
        };
        let mut top = _mm256_set1_epi16(ZERO);
        let mut one = |e: &i16, others: &[i16; LANES]| {
            top = _mm256_max_epi16(top, _mm256_add_epi16(_mm256_set1_epi16(*e), load(others)));
        };
        by_fours(es, others, &mut one);
        [
            _mm256_extract_epi16::<0>(top) as i16,
            _mm256_extract_epi16::<1>(top) as i16,
            _mm256_extract_epi16::<2>(top) as i16,
            _mm256_extract_epi16::<3>(top) as i16,
            _mm256_extract_epi16::<4>(top) as i16,
            _mm256_extract_epi16::<5>(top) as i16,
            _mm256_extract_epi16::<6>(top) as i16,
            _mm256_extract_epi16::<7>(top) as i16,
            _mm256_extract_epi16::<8>(top) as i16,
            _mm256_extract_epi16::<9>(top) as i16,
            _mm256_extract_epi16::<10>(top) as i16,
            _mm256_extract_epi16::<11>(top) as i16,
            _mm256_extract_epi16::<12>(top) as i16,
            _mm256_extract_epi16::<13>(top) as i16,
            _mm256_extract_epi16::<14>(top) as i16,
            _mm256_extract_epi16::<15>(top) as i16,
        ]
    };
    // The conversion is one instruction; that of the language checks for what is out of range as well.
    let total = |xs: &[f32], values: &[[f32; LANES]], scale: &[f32; LANES]| {
        let load = |x: &[f32; LANES], h: usize| -> __m256 {
            let x: &[f32] = &x[8 * h..8 * h + 8];
            _mm256_setr_ps(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
        };
        let store = |x: __m256i| -> [i32; 8] {
            [
                _mm256_extract_epi32::<0>(x),
                _mm256_extract_epi32::<1>(x),
                _mm256_extract_epi32::<2>(x),
                _mm256_extract_epi32::<3>(x),
                _mm256_extract_epi32::<4>(x),
                _mm256_extract_epi32::<5>(x),
                _mm256_extract_epi32::<6>(x),
                _mm256_extract_epi32::<7>(x),
            ]
        };
        let scales = [load(scale, 0), load(scale, 1)];
        let mut fixed = [_mm256_set1_epi32(0); 2];
        let mut one = |x: &f32, ys: &[f32; LANES]| {
            let x = _mm256_set1_ps(*x);
            for h in 0..2 {
                let product = _mm256_mul_ps(_mm256_mul_ps(x, load(ys, h)), scales[h]);
                fixed[h] = _mm256_add_epi32(fixed[h], _mm256_cvttps_epi32(product));
            }
        };
        by_fours(xs, values, &mut one);
        let mut out = [0; LANES];
        out[..8].copy_from_slice(&store(fixed[0]));
        out[8..].copy_from_slice(&store(fixed[1]));
        out
    };
    add(sums, a, b, is_moderate, sum, (greatest, total));
}

/// Adds the products of a row of A with B to the sums of its columns. Of the two functions, `greatest` finds the
/// greatest of the sums of exponents down each column; `total` multiplies rows of a panel by numbers and a
/// scale by column, cuts the products to whole numbers and adds them, [`RUN`] at most. `is_moderate` is [`moderate`] of the
/// exponents. Where bytes are added in halves ([`Sums::halves`]), the first half of the depth is the first of them.
#[inline(always)]
fn add(
    sums: Sums,
    a: &Row<'_>,
    b: &Panels,
    is_moderate: bool,
    sum: &mut [f32],
    (greatest, total): (impl Greatest, impl Total),
) {
    let panels = b.values.chunks_exact(b.depth.max(1));
    let panels = panels.zip(b.exponents.chunks_exact(b.depth.max(1)));
    // Whole panels are copied by a few instructions, slices by a call.
    let (whole, rest) = sum.as_chunks_mut();
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let lasts = (!rest.is_empty()).then_some(&mut last);
    for (panel, out) in panels.zip(whole.iter_mut().chain(lasts)) {
        let done = if is_moderate {
            fast(sums, a, panel, out, (&greatest, &total))
        } else {
            None
        };
        *out = done.unwrap_or_else(|| careful(sums, a, panel, out));
    }
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Where number `l` of `k` along the depth is for [`add`].
#[inline(always)]
pub(super) fn place(sums: Sums, l: usize, k: usize) -> usize {
    if sums.halves {
        l % 4 / 2 * (k / 2) + l / 4 * 2 + l % 2
    } else {
        l
    }
}

/// How many products each step adds.
#[inline(always)]
fn depth(sums: Sums, k: usize) -> usize {
    let depth = if sums.halves {
        k / 2
    } else {
        usize::from(sums.depth).min(k)
    };
    depth.max(1)
}

/// Values and exponents of a panel.
type Panel<'a> = (&'a [[f32; LANES]], &'a [[i16; LANES]]);

/// [`add`] for a panel, where all numbers are so far from the ends of f32 that products are exact in it and sums are normal numbers or zero; `None` if an
/// accumulator is not, or if a sum is too great for an i32.
///
/// A product times the scale of the step is below 2^27, and a number too small for f32 has no whole part: the conversion to i32 cuts at the right bit.
#[inline(always)]
fn fast(
    sums: Sums,
    a: &Row<'_>,
    (values, exponents): Panel<'_>,
    out: &[f32; LANES],
    (greatest, add): (&impl Greatest, &impl Total),
) -> Option<[f32; LANES]> {
    let (k, depth) = (a.values.len(), depth(sums, a.values.len()));
    let (fraction, limit) = (i32::from(sums.fraction), i32::from(MODERATE));
    let mut c = if sums.halves { [0.0; LANES] } else { *out };
    // Not in chunks: a division for each panel would cost a tenth of the time.
    let mut first = 0;
    while first < k {
        let step = first..k.min(first + depth);
        first = step.end;
        let (xs, es) = (&a.values[step.clone()], &a.exponents[step.clone()]);
        let (values, exponents) = (&values[step.clone()], &exponents[step]);
        let top = greatest(es, exponents);
        // Negative in a lane whose numbers are extreme.
        let mut extreme = [0; LANES];
        let (mut scale, mut unit) = ([0.0; LANES], [0.0; LANES]);
        for j in 0..LANES {
            // Where it is not that of [`exponent`], it is extreme.
            let number = (c[j].to_bits() >> 23 & 0xff) as i32 - 127;
            let number = if c[j] == 0.0 { ZERO.into() } else { number };
            let top = number.max(top[j].into());
            extreme[j] = (limit - top) | ((limit + top) & (i32::from(NONE) - top));
            let up = fraction - top.max(-limit);
            scale[j] = f32::from_bits(((127 + up) << 23) as u32);
            unit[j] = f32::from_bits(((127 - up) << 23) as u32);
        }
        // The accumulator is cut as a product with 1 is.
        let mut total = add(&[1.0], &[c], &scale);
        for (xs, values) in xs.chunks(RUN).zip(values.chunks(RUN)) {
            let fixed = add(xs, values, &scale);
            for j in 0..LANES {
                let sum = total[j].wrapping_add(fixed[j]);
                extreme[j] |= (sum ^ total[j]) & (sum ^ fixed[j]);
                total[j] = sum;
            }
        }
        if extreme.iter().fold(0, |all, lane| all | lane) < 0 {
            return None;
        }
        if sums.kept == Kept::F16 {
            for j in 0..LANES {
                // To odd in the 24 bits of an f32, so that it is rounded once.
                let odd = total[j] >> 7 | i32::from(total[j] & 127 != 0);
                let fits = total[j].unsigned_abs() < 1 << 24;
                let (number, unit) = if fits {
                    (total[j], unit[j])
                } else {
                    (odd, 128.0 * unit[j])
                };
                c[j] = near_half(number as f32 * unit) + 0.0;
            }
        } else {
            let lost = if sums.kept == Kept::E8m13 { 0x3ff } else { 0 };
            for j in 0..LANES {
                // The 24 bits of f32.
                let cut = f64::from_bits(f64::from(total[j]).to_bits() & !0x1fff_ffff) as f32;
                c[j] = f32::from_bits((cut * unit[j]).to_bits() & !lost);
            }
        }
    }
    if sums.halves {
        for j in 0..LANES {
            c[j] = nearest(sums.kept, f64::from(c[j]) + f64::from(out[j]));
        }
    }
    Some(c)
}

/// 2^e for whole e from -1022 to 1023.
#[inline(always)]
fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// [`add`] for a panel, whatever the numbers.
#[inline(never)]
fn careful(
    sums: Sums,
    a: &Row<'_>,
    (values, exponents): Panel<'_>,
    out: &[f32; LANES],
) -> [f32; LANES] {
    let k = a.values.len();
    let depth = depth(sums, k);
    std::array::from_fn(|j| {
        let product = |l: usize| f64::from(a.values[l]) * f64::from(values[l][j]);
        let mut c = if sums.halves { 0.0 } else { out[j] };
        for first in (0..k).step_by(depth) {
            let products = first..(first + depth).min(k);
            let tops = products.clone().map(|l| a.exponents[l] + exponents[l][j]);
            let top = tops.fold(exponent(c, -126), i16::max);
            c = if top > NOT_FINITE / 2 {
                // An infinity or a NaN is added as such.
                products.fold(f64::from(c), |s, l| s + product(l)) as f32
            } else {
                let scale = if top < NONE {
                    1.0
                } else {
                    power(i32::from(sums.fraction) - i32::from(top))
                };
                let cut = |x: f64| (x * scale).trunc();
                let fixed = products.fold(cut(f64::from(c)), |s, l| s + cut(product(l)));
                finish(sums.kept, fixed / scale)
            };
        }
        if sums.halves {
            c = nearest(sums.kept, f64::from(c) + f64::from(out[j]));
        }
        c
    })
}

/// The sum of two numbers of the format, rounded to nearest: exact in f64 but for bits that cannot matter.
fn nearest(kept: Kept, x: f64) -> f32 {
    if kept == Kept::F16 {
        return half_to_f32(half_of(x));
    }
    x as f32
}

/// The exact sum in the format of the result. A zero has no sign.
#[inline(always)]
fn finish(kept: Kept, x: f64) -> f32 {
    /// The first number beyond f32.
    const BEYOND: f64 = 2.0 * (1u128 << 127) as f64;
    if kept == Kept::F16 {
        return half_to_f32(half_of(x)) + 0.0;
    }
    let near = x as f32;
    let over = f64::from(near).abs() > x.abs() && x.abs() < BEYOND;
    let cut = f32::from_bits(near.to_bits() - u32::from(over));
    match kept {
        Kept::E8m13 => f32::from_bits(cut.to_bits() & !0x3ff) + 0.0,
        _ => cut + 0.0,
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // results are exact
mod tests {
    use super::{LANES, Panels, Row, add_plain, exponents, least, moderate};
    use super::{half_of, power};
    use crate::float::half_to_f32;
    use crate::ir::{Kept, MmaType, Sums};

    /// The sum of `a` · `b` + `c` on `arch`, for factors of one type.
    fn dot(arch: u32, ty: MmaType, sum: MmaType, wgmma: bool, a: &[f64], c: f64) -> f64 {
        let sums = Sums::of(arch, [ty, ty], sum, wgmma);
        let a: Vec<f32> = a.iter().map(|x| *x as f32).collect();
        let ones = Panels::new(a.len(), vec![[1.0; LANES]; a.len()], least(sums, 1));
        let exponents = exponents(&a, least(sums, 0));
        let is_moderate = moderate(&exponents, &ones);
        let row = Row {
            values: &a,
            exponents: &exponents,
        };
        let mut out = [c as f32; LANES];
        add_plain(sums, &row, &ones, is_moderate, &mut out);
        assert!(out.iter().all(|x| x.to_bits() == out[0].to_bits()));
        let out = out.map(f64::from);
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

    /// A number as a whole number times a power of two.
    fn split(x: f32) -> (i128, i32) {
        let (bits, field) = (x.to_bits(), x.to_bits() >> 23 & 0xff);
        let fraction = i128::from(bits & 0x7f_ffff);
        let (size, place) = match field {
            0 => (fraction, -149),
            _ => (fraction | 1 << 23, field as i32 - 150),
        };
        (if bits >> 31 == 1 { -size } else { size }, place)
    }

    /// The sum by the rules at the top of the file, in whole numbers; `c` of numbers that are all finite.
    fn by_the_rules(sums: Sums, a: &[f32], b: &[f32], c: f32) -> f32 {
        let exponent =
            |x: f32, least: i16| ((x.to_bits() >> 23 & 0xff) as i32 - 127).max(least.into());
        let depth = if sums.halves {
            a.len() / 2
        } else {
            usize::from(sums.depth).min(a.len())
        };
        let mut sum = if sums.halves { 0.0 } else { c };
        for (xs, ys) in a.chunks(depth).zip(b.chunks(depth)) {
            let pairs = || xs.iter().zip(ys);
            if !sum.is_finite() || pairs().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
                sum = pairs().fold(f64::from(sum), |s, (x, y)| {
                    s + f64::from(*x) * f64::from(*y)
                }) as f32;
                continue;
            }
            let mut tops: Vec<i32> = pairs()
                .filter(|(x, y)| **x != 0.0 && **y != 0.0)
                .map(|(x, y)| exponent(*x, sums.least[0]) + exponent(*y, sums.least[1]))
                .collect();
            tops.extend((sum != 0.0).then(|| exponent(sum, -126)));
            let Some(top) = tops.into_iter().max() else {
                sum = 0.0;
                continue;
            };
            let unit = top - i32::from(sums.fraction);
            let align = |(size, place): (i128, i32)| match place - unit {
                up @ 0.. => size << up,
                down if down > -100 => size / (1 << -down),
                _ => 0,
            };
            let mut total = align(split(sum));
            for (x, y) in pairs() {
                let ((x, i), (y, j)) = (split(*x), split(*y));
                total += align((x * y, i + j));
            }
            if sums.kept == Kept::F16 {
                sum = half_to_f32(half_of(total as f64 * power(unit))) + 0.0;
                continue;
            }
            // 24 bits are kept, fewer of subnormal numbers.
            let length = 128 - total.abs().leading_zeros() as i32;
            let cut = (length - 24).max(-149 - unit).clamp(0, 120);
            let kept = (total / (1 << cut)) as f64 * power(cut);
            let kept = (kept * power(unit)) as f32;
            let lost = if sums.kept == Kept::E8m13 { 0x3ff } else { 0 };
            sum = f32::from_bits(kept.to_bits() & !lost) + 0.0;
        }
        if sums.halves {
            let all = f64::from(sum) + f64::from(c);
            return if sums.kept == Kept::F16 {
                half_to_f32(half_of(all))
            } else {
                all as f32
            };
        }
        sum
    }

    /// All products as great as their exponents let them be, of one sign, with an accumulator of either sign: 32 or 33 bits are needed.
    #[test]
    fn sums_too_great_for_an_i32_are_those_of_the_rules() {
        use MmaType::{Bf16, E4m3, F16, F32};
        let most = |bits: i32| 2.0 - 2f32.powi(-bits);
        for (arch, ty, sum, x, k) in [
            (90, F16, F32, most(10), 16),
            (90, F16, F16, most(10), 16),
            (90, Bf16, F32, most(7), 16),
            (120, E4m3, F32, most(3), 32),
            (120, E4m3, F16, most(3), 32),
        ] {
            let sums = Sums::of(arch, [ty, ty], sum, false);
            let ones = Panels::new(k, vec![[x; LANES]; k], least(sums, 1));
            for (sign, c) in [(1.0, 0.0), (1.0, 1.5), (-1.0, -1.75), (-1.0, 1.5)] {
                let a = vec![sign * x; k];
                let exponents = exponents(&a, least(sums, 0));
                let row = Row {
                    values: &a,
                    exponents: &exponents,
                };
                let mut out = [c; LANES];
                add_plain(sums, &row, &ones, true, &mut out);
                let expected = by_the_rules(sums, &a, &vec![x; k], c);
                assert_eq!(out, [expected; LANES], "{sums:?} {c}");
            }
        }
    }

    /// Random numbers of all types, near and far from each other, with zeros, subnormal numbers and what is not finite, on all architectures.
    #[test]
    fn sums_are_those_of_the_rules() {
        let mut state = 9u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state ^ state >> 29) >> 8
        };
        for round in 0..60_000 {
            let factor = [
                MmaType::F16,
                MmaType::Bf16,
                MmaType::Tf32,
                MmaType::E4m3,
                MmaType::E5m2,
            ][round % 5];
            let sum = if round % 3 == 0 && factor != MmaType::Bf16 && factor != MmaType::Tf32 {
                MmaType::F16
            } else {
                MmaType::F32
            };
            let arch = [75, 80, 90, 100, 120][random() as usize % 5];
            let sums = Sums::of(arch, [factor, factor], sum, random() % 2 == 0);
            // How far exponents are apart, and where they are.
            let spread = [1, 4, 12, 40, 255][random() as usize % 5];
            let middle = [127, 100, 20, 230][random() as usize % 4];
            let rare = random() % 4 == 0;
            let mut number = |factor: MmaType| {
                let bits = random() as u32;
                let f32_bits = |keep: u32| {
                    let field = (middle + bits % spread).saturating_sub(spread / 2).min(254);
                    (bits & 0x807f_ffff & !keep) | field << 23
                };
                let special = rare && random() % 8 == 0;
                let pick = random() as usize % 4;
                let x = match factor {
                    MmaType::F16 => half_to_f32(if spread > 20 {
                        bits & 0xffff
                    } else {
                        (bits & 0x83ff)
                            | (15 - spread.min(12) / 2 + random() as u32 % spread.min(12)) << 10
                    }),
                    MmaType::Bf16 => f32::from_bits(f32_bits(0xffff)),
                    MmaType::Tf32 => f32::from_bits(f32_bits(0x1fff)),
                    MmaType::E5m2 => half_to_f32((bits & 0xff) << 8),
                    MmaType::E4m3 => {
                        crate::float::widen(u64::from(bits & 0xff), crate::ir::Format::E4m3) as f32
                    }
                    _ => f32::from_bits(f32_bits(0)),
                };
                if !special {
                    return x;
                }
                let tiny = [f32::from_bits(1 << 16), f32::from_bits(0x3380_0000)]
                    [usize::from(factor == MmaType::F16)];
                match factor {
                    MmaType::E4m3 => [0.0, -0.0, f32::NAN, 0.015_625][pick],
                    MmaType::E5m2 => [0.0, -0.0, f32::NAN, f32::INFINITY][pick],
                    _ => [0.0, tiny, f32::NEG_INFINITY, -0.0][pick],
                }
            };
            let k = match factor {
                MmaType::Tf32 => 8,
                MmaType::E4m3 | MmaType::E5m2 => 32,
                _ => 16,
            };
            let a: Vec<f32> = (0..k).map(|_| number(factor)).collect();
            let b: Vec<[f32; LANES]> = (0..k)
                .map(|_| std::array::from_fn(|_| number(factor)))
                .collect();
            let accumulator = if sum == MmaType::F16 {
                MmaType::F16
            } else {
                MmaType::F32
            };
            let c: [f32; LANES] =
                std::array::from_fn(|j| if j % 5 == 0 { 0.0 } else { number(accumulator) });
            let panels = Panels::new(k, b.clone(), least(sums, 1));
            let exponents = exponents(&a, least(sums, 0));
            let row = Row {
                values: &a,
                exponents: &exponents,
            };
            let is_moderate = moderate(&exponents, &panels);
            let [mut out, mut slow] = [c; 2];
            add_plain(sums, &row, &panels, is_moderate, &mut out);
            add_plain(sums, &row, &panels, false, &mut slow);
            for j in 0..LANES {
                let column: Vec<f32> = b.iter().map(|row| row[j]).collect();
                let expected = by_the_rules(sums, &a, &column, c[j]);
                let same =
                    |x: f32| x.to_bits() == expected.to_bits() || x.is_nan() && expected.is_nan();
                assert!(
                    same(out[j]) && same(slow[j]),
                    "{sums:?} {a:?} · {column:?} + {}: {} or {}, not {expected}",
                    c[j],
                    out[j],
                    slow[j]
                );
            }
        }
    }
}
