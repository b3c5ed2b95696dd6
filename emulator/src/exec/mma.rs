//! `mma.sync`: D = A·B + C by a whole warp (PTX ISA, section 9.7.14.5).
//!
//! Fragments, with g = lane / 4, t = lane % 4 and i the element of the lane (all from the ISA's formulas):
//!
//! | operand | element i of a lane |
//! |---|---|
//! | C, D of 16 rows | row g + 8(i/2), column 2t + i%2 |
//! | C, D of 8 rows | row g, column 2t + i |
//! | A, e elements to a register (e = 2, 4 for 16, 8 bits) | with r = i/e: row g + 8(r%2), column e·t + i%e + 4e(r/2); 8 rows: row g |
//! | A, one element to a register (tf32, f64) | the same with e = 1, and with e = 8 and 32 for 4 bits and one |
//! | B | with r = i/e: k = e·t + i%e + 4e·r, column g |
//!
//! So one rule serves all shapes: register r covers rows g + 8(r%2) and a run of 4e columns. `m8n8k4` of f16 is another, in [`super::quads`],
//! and a sparse A is in [`super::sparse`].
//!
//! **Arithmetic.** f16, bf16, tf32, e4m3 and e5m2 are added as [`super::sums`] says; tf32 operands lose their low 13 bits. f64 is a chain of
//! fused multiply-adds in ascending k. Integers wrap, or with `.satfinite` clamp the exact sum. Example: m16n8k16 with A = B = 1, C = 0 gives 16 everywhere.

use super::rounding::half_of;
use super::sums::{Adder, Panels, Row, exponent, least, moderate, place};
use super::warp::Warp;
use crate::float::{half_to_f32, widen};
use crate::float64::fma;
use crate::ir::{Format, Mma, MmaType};

/// Elements to a 32-bit register (f64 and 32-bit types: 1).
fn per_register(t: MmaType) -> usize {
    match t {
        MmaType::F16 | MmaType::Bf16 => 2,
        MmaType::E4m3 | MmaType::E5m2 | MmaType::S8 | MmaType::U8 => 4,
        _ => 1,
    }
}

/// Element `i` of the register `word`, as f64 (floats) or as an integer in f64, which holds 8 bits exactly.
#[inline(always)]
pub(super) fn element(word: u32, i: usize, t: MmaType) -> f64 {
    match t {
        MmaType::F16 => f64::from(half_to_f32(word >> (16 * i) & 0xffff)),
        MmaType::Bf16 => f64::from(f32::from_bits((word >> (16 * i)) << 16)),
        MmaType::Tf32 => f64::from(f32::from_bits(word & 0xffff_e000)),
        MmaType::E4m3 => widen(u64::from(word >> (8 * i) & 0xff), Format::E4m3),
        MmaType::E5m2 => widen(u64::from(word >> (8 * i) & 0xff), Format::E5m2),
        MmaType::S8 => f64::from((word >> (8 * i)) as u8 as i8),
        MmaType::U8 => f64::from((word >> (8 * i)) as u8),
        MmaType::F32 => f64::from(f32::from_bits(word)),
        MmaType::S32 => f64::from(word as i32),
        MmaType::S4 => f64::from((word >> (4 * i) << 28) as i32 >> 28),
        MmaType::U4 => f64::from(word >> (4 * i) & 0xf),
        MmaType::B1 => f64::from(word >> i & 1),
        MmaType::F64 => 0.0,
    }
}

/// The largest factors, A 16×32 and B 32×8, by columns.
struct Tiles<T> {
    a: [[T; 16]; 32],
    b: [[T; 32]; 8],
}

/// Runs `m` on the active lanes.
#[inline(always)]
pub(crate) fn mma(w: &mut Warp, m: &Mma, active: u32, adder: Adder) {
    if matches!(m.a_ty, MmaType::S4 | MmaType::U4 | MmaType::B1) {
        return narrow_integers(w, m, active);
    }
    if m.m == 8 && m.a_ty == MmaType::F16 {
        return super::quads::mma(w, m, active, adder);
    }
    let (rows, k) = (usize::from(m.m), usize::from(m.k));
    let mut c = accumulators(w, m);
    if m.d_ty == MmaType::F64 {
        let t = gather(m, |row, _, lane| f64::from_bits(w.r64[row][lane]));
        for (column, c) in t.b.iter().zip(&mut c) {
            for i in 0..rows {
                c[i] = (0..k).fold(c[i], |sum, l| fma(t.a[l][i], column[l], sum));
            }
        }
        return scatter(w, m, &c, active);
    }
    // The rows of D are the lanes of a vector.
    let t = match (m.a_ty, m.b_ty) {
        (MmaType::F16, _) => gather(m, |row, i, lane| {
            half_to_f32(w.r32[row][lane] >> (16 * i) & 0xffff)
        }),
        (MmaType::Bf16, _) => gather(m, |row, i, lane| {
            f32::from_bits(w.r32[row][lane] >> (16 * i) << 16)
        }),
        _ => factors(w, m),
    };
    if m.d_ty == MmaType::S32 {
        // Products of 8-bit integers and their sums are exact in f32 as well.
        for (column, c) in t.b.iter().zip(&mut c) {
            let mut sum = [0.0; 16];
            for l in 0..k {
                for i in 0..16 {
                    sum[i] += t.a[l][i] * column[l];
                }
            }
            for i in 0..16 {
                c[i] += f64::from(sum[i]);
            }
        }
    } else {
        let a = Panels::new(k, t.a[..k].to_vec(), least(m.sums, 0));
        // Loops: maps of arrays are functions of their own, without wide vectors.
        let mut eb = [[0; 32]; 8];
        for j in 0..8 {
            for l in 0..k {
                eb[j][l] = exponent(t.b[j][l], least(m.sums, 1));
            }
        }
        let is_moderate = moderate(eb.as_flattened(), &a);
        for j in 0..8 {
            let b = Row {
                values: &t.b[j][..k],
                exponents: &eb[j][..k],
            };
            let mut sum = [0.0; 16];
            for i in 0..16 {
                sum[i] = c[j][i] as f32;
            }
            adder(m.sums, &b, &a, is_moderate, &mut sum);
            for i in 0..16 {
                c[j][i] = f64::from(sum[i]);
            }
        }
    }
    scatter(w, m, &c, active);
}

/// Factors of 4 bits and of one bit: register by register, since all elements of a register of A meet those of one register of B.
#[inline(never)]
fn narrow_integers(w: &mut Warp, m: &Mma, active: u32) {
    let rows = usize::from(m.m);
    let halves = rows / 8;
    let nibble = |x: u32, i: u32, signed: bool| {
        let up = x << (28 - 4 * i);
        i64::from(if signed {
            up as i32 >> 28
        } else {
            (up >> 28) as i32
        })
    };
    let product = |x: u32, y: u32| -> i64 {
        if m.a_ty == MmaType::B1 {
            return i64::from(if m.xor { x ^ y } else { x & y }.count_ones());
        }
        let signed = [m.a_ty, m.b_ty].map(|t| t == MmaType::S4);
        let pairs = (0..8).map(|i| nibble(x, i, signed[0]) * nibble(y, i, signed[1]));
        pairs.sum()
    };
    let mut out = [[0u32; 32]; 4];
    for lane in 0..32 {
        let (g, q) = (lane / 4, lane % 4);
        for i in 0..rows / 4 {
            let (row, column) = (g + 8 * (i / 2), 2 * q + i % 2);
            let mut sum = i64::from(w.r32[m.c[i] as usize][lane] as i32);
            for (run, b) in m.b.iter().enumerate() {
                let a = m.a[run * halves + row / 8];
                for t in 0..4 {
                    let x = w.r32[a as usize][4 * (row % 8) + t];
                    sum += product(x, w.r32[*b as usize][4 * column + t]);
                }
            }
            out[i][lane] = if m.satfinite {
                sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
            } else {
                sum as u32
            };
        }
    }
    for (row, values) in m.d.iter().zip(&out) {
        super::alu::put(&mut w.r32[*row as usize], values, active);
    }
}

/// Factors of a type that is not frequent.
#[inline(never)]
fn factors(w: &Warp, m: &Mma) -> Tiles<f32> {
    // A and B may have different types of 8-bit integers, never of different size.
    let mut t = gather(m, |row, i, lane| {
        element(w.r32[row][lane], i, m.a_ty) as f32
    });
    if m.b_ty != m.a_ty {
        t.b = gather(m, |row, i, lane| {
            element(w.r32[row][lane], i, m.b_ty) as f32
        })
        .b;
    }
    t
}

/// A and B by columns, in the order in which products are added: element `i` of register `row` in `lane` is `of(row, i, lane)`.
#[inline(always)]
fn gather<T: Copy + Default>(m: &Mma, of: impl Fn(usize, usize, usize) -> T) -> Tiles<T> {
    let mut t = Tiles {
        a: [[T::default(); 16]; 32],
        b: [[T::default(); 32]; 8],
    };
    let (halves, k) = (usize::from(m.m) / 8, usize::from(m.k));
    let e = per_register(m.a_ty);
    for (r, &row) in m.a.iter().enumerate() {
        let (rows, columns) = (8 * (r % halves), 4 * e * (r / halves));
        for lane in 0..32 {
            let (g, q) = (lane / 4, lane % 4);
            for i in 0..e {
                t.a[place(m.sums, columns + e * q + i, k)][rows + g] = of(row as usize, i, lane);
            }
        }
    }
    for (r, &row) in m.b.iter().enumerate() {
        for lane in 0..32 {
            let (g, q) = (lane / 4, lane % 4);
            for i in 0..e {
                t.b[g][place(m.sums, 4 * e * r + e * q + i, k)] = of(row as usize, i, lane);
            }
        }
    }
    t
}

/// C, by columns.
pub(super) fn accumulators(w: &Warp, m: &Mma) -> [[f64; 16]; 8] {
    let mut c = [[0.0; 16]; 8];
    for lane in 0..32 {
        let (g, q) = (lane / 4, lane % 4);
        for i in 0..usize::from(m.m) / 4 {
            c[2 * q + i % 2][g + 8 * (i / 2)] = match m.c_ty {
                MmaType::F64 => f64::from_bits(w.r64[m.c[i] as usize][lane]),
                MmaType::F16 => element(w.r32[m.c[i / 2] as usize][lane], i % 2, MmaType::F16),
                other => element(w.r32[m.c[i] as usize][lane], 0, other),
            };
        }
    }
    c
}

/// Writes D.
pub(super) fn scatter(w: &mut Warp, m: &Mma, c: &[[f64; 16]; 8], active: u32) {
    for lane in 0..32 {
        if active >> lane & 1 == 0 {
            continue;
        }
        let (g, q) = (lane / 4, lane % 4);
        for i in 0..usize::from(m.m) / 4 {
            let x = c[2 * q + i % 2][g + 8 * (i / 2)];
            match m.d_ty {
                MmaType::F64 => {
                    w.r64[m.d[i] as usize][lane] = x.to_bits();
                }
                MmaType::F16 => {
                    let h = half_of(x);
                    let word = &mut w.r32[m.d[i / 2] as usize][lane];
                    *word = if i % 2 == 0 {
                        (*word & 0xffff_0000) | h
                    } else {
                        (*word & 0xffff) | h << 16
                    };
                }
                MmaType::S32 => {
                    let exact = x as i64;
                    let v = if m.satfinite {
                        exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
                    } else {
                        exact
                    };
                    w.r32[m.d[i] as usize][lane] = v as u32;
                }
                _ => {
                    let bits = if x.is_nan() {
                        crate::float::NAN32
                    } else {
                        (x as f32).to_bits()
                    };
                    w.r32[m.d[i] as usize][lane] = bits;
                }
            }
        }
    }
}
