//! The arithmetic of `wgmma`: D = A·B + D on the matrices of a warpgroup.
//!
//! A matrix is decoded once, to f32, which all types of factors fit in. The 64 rows of D are the lanes of a vector: a column of D is the sum of columns of
//! A, each times one number of B. So A is kept by columns, and so are B and D.
//!
//! Integers of 8 bits need no i32: their products and the sum over one depth are below 2^24, exact in f32.

use super::alu::Row32;
use super::mma::element;
use super::rounding::half;
use super::sparse::{self, Pattern};
use super::sums::{Adder, LANES, Panels, Row, exponents, least, moderate};
use super::warp::Warp;
use super::wgmma::{Issued, Layout, Operation, bits, extents};
use crate::float::{NAN32, half_to_f32};
use crate::ir::{MmaType, Multiplicand, Wgmma};
use crate::shared_data::SharedData;

/// Rows of A and D.
const ROWS: usize = 64;

/// Carries out the operations of `chain`, with their instructions, on the accumulators of four `warps`, which are the same for all of them.
#[inline(always)]
pub(super) fn multiply(
    chain: &[Issued<'_>],
    shared: &SharedData,
    warps: &mut [Warp],
    adder: Adder,
) {
    let Some((m, first)) = chain.first() else {
        return;
    };
    // Element (r, j) of D is at 64·j + r.
    let mut d = vec![0.0; ROWS * usize::from(m.n)];
    if first.scale {
        gather(m, warps, &mut d);
    }
    for (m, op) in chain {
        if !op.scale {
            d.fill(0.0);
        }
        multiply_add(m, shared, op, &mut d, adder);
    }
    scatter(m, warps, &d);
}

/// D = A·B + D.
#[inline(always)]
fn multiply_add(m: &Wgmma, shared: &SharedData, op: &Operation, d: &mut [f32], adder: Adder) {
    let (n, k, a_depth) = (usize::from(m.n), usize::from(m.k), m.a_depth() as usize);
    // Element (r, l) of A is at 64·l + r, (l, j) of B at k·j + l.
    let mut a = vec![0.0; ROWS * a_depth];
    let mut b = vec![0.0; k * n];
    let minus = |x: &Multiplicand| match x {
        Multiplicand::Shared { negated, .. } | Multiplicand::Registers { negated, .. } => *negated,
    };
    match &m.a {
        Multiplicand::Shared { transposed, .. } => {
            let from = (shared, Layout::of(op.descriptors[0], *transposed));
            load(from, (ROWS, a_depth), m.a_ty, &mut a, (1, ROWS));
        }
        Multiplicand::Registers { .. } => from_registers(op, a_depth, m.a_ty, &mut a),
    }
    if let Multiplicand::Shared { transposed, .. } = &m.b {
        let from = (shared, Layout::of(op.descriptors[1], *transposed));
        load(from, (n, k), m.b_ty, &mut b, (k, 1));
    }
    if minus(&m.a) != minus(&m.b) {
        for x in &mut a {
            *x = -*x;
        }
    }
    if m.sparse.is_some() {
        multiply_sparse(m, op, &a, &b, d, adder);
    } else if m.d_ty == MmaType::S32 {
        for (column, d) in b.chunks_exact(k).zip(d.as_chunks_mut::<ROWS>().0) {
            let mut sum = [0.0; ROWS];
            for (y, xs) in column.iter().zip(a.as_chunks::<ROWS>().0) {
                for r in 0..ROWS {
                    sum[r] += y * xs[r];
                }
            }
            for r in 0..ROWS {
                d[r] = add_integer(m.satfinite, d[r], sum[r]);
            }
        }
    } else {
        // Panels of rows: element (r, l) at depth·(r / 16) + l, r % 16.
        let mut panels = vec![[0.0; LANES]; ROWS / LANES * k];
        for (l, rows) in a.as_chunks::<ROWS>().0.iter().enumerate() {
            for (i, part) in rows.as_chunks().0.iter().enumerate() {
                panels[i * k + l] = *part;
            }
        }
        let rows = Panels::new(k, panels, least(m.sums, 0));
        let eb = exponents(&b, least(m.sums, 1));
        let is_moderate = moderate(&eb, &rows);
        for (j, d) in d.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            let column = Row {
                values: &b[k * j..][..k],
                exponents: &eb[k * j..][..k],
            };
            adder(m.sums, &column, &rows, is_moderate, d);
        }
    }
}

/// The accumulator `d`, the bits of an i32, and a sum of products of integers.
#[inline(always)]
fn add_integer(satfinite: bool, d: f32, sum: f32) -> f32 {
    let (d, sum) = (d.to_bits() as i32, sum as i32);
    let sum = if satfinite {
        d.saturating_add(sum)
    } else {
        d.wrapping_add(sum)
    };
    f32::from_bits(sum as u32)
}

/// A sparse A: each of its rows meets other rows of B, so that here the columns of D are the lanes.
#[inline(never)]
fn multiply_sparse(m: &Wgmma, op: &Operation, a: &[f32], b: &[f32], d: &mut [f32], adder: Adder) {
    let Some(s) = &m.sparse else { return };
    let (n, k) = (usize::from(m.n), usize::from(m.k));
    let by_rows: Vec<f32> = (0..k * n).map(|i| b[k * (i % n) + i / n]).collect();
    let is_integer = m.d_ty == MmaType::S32;
    for row in 0..ROWS {
        let values: Vec<f32> = a.iter().skip(row).step_by(ROWS).copied().collect();
        let columns = Pattern::of(m.a_ty, m.k, s).columns(&op.meta[row / 16], row % 16);
        let places = (0..n).map(|j| ROWS * j + row);
        let mut sum: Vec<f32> = if is_integer {
            vec![0.0; n]
        } else {
            places.clone().map(|at| d[at]).collect()
        };
        sparse::add(m.sums, m.d_ty, &values, &columns, &by_rows, &mut sum, adder);
        for (at, sum) in places.zip(&sum) {
            d[at] = if is_integer {
                add_integer(m.satfinite, d[at], *sum)
            } else {
                *sum
            };
        }
    }
}

/// Decodes a matrix of `outer` rows (of A) or columns (of B) of depth `k`; the element at place (i, l) goes to `out[i·by.0 + l·by.1]`.
#[inline(always)]
fn load(
    from: (&SharedData, Layout),
    size: (usize, usize),
    t: MmaType,
    out: &mut [f32],
    by: (usize, usize),
) {
    match t {
        MmaType::F16 => each_chunk::<8>(from, size, t, out, by, |words, e| {
            half_to_f32(words[e / 2] >> (16 * (e % 2)) & 0xffff)
        }),
        MmaType::Bf16 => each_chunk::<8>(from, size, t, out, by, |words, e| {
            f32::from_bits(words[e / 2] >> (16 * (e % 2)) << 16)
        }),
        MmaType::Tf32 => each_chunk::<4>(from, size, t, out, by, |words, e| {
            f32::from_bits(words[e] & 0xffff_e000)
        }),
        MmaType::B1 => each_chunk::<128>(from, size, t, out, by, |words, e| {
            (words[e / 32] >> (e % 32) & 1) as f32
        }),
        MmaType::S8 => each_chunk::<16>(from, size, t, out, by, |words, e| {
            f32::from((words[e / 4] >> (8 * (e % 4))) as u8 as i8)
        }),
        MmaType::U8 => each_chunk::<16>(from, size, t, out, by, |words, e| {
            f32::from((words[e / 4] >> (8 * (e % 4))) as u8)
        }),
        _ => each_chunk::<16>(from, size, t, out, by, |words, e| {
            element(words[e / 4], e % 4, t) as f32
        }),
    }
}

/// [`load`] for types of which `E` are in a chunk.
#[inline(always)]
fn each_chunk<const E: usize>(
    (shared, layout): (&SharedData, Layout),
    (outer, k): (usize, usize),
    t: MmaType,
    out: &mut [f32],
    (by_outer, by_depth): (usize, usize),
    decode: impl Fn([u32; 4], usize) -> f32,
) {
    let (rows, each) = extents(outer as u32, k as u32, t, layout.is_transposed());
    // A chunk runs along the depth, or along the other dimension.
    let (by_row, by_element) = if layout.is_transposed() {
        (by_depth, by_outer)
    } else {
        (by_outer, by_depth)
    };
    let end = if layout.is_transposed() { outer } else { k };
    for r in 0..rows {
        for c in 0..each {
            let at = layout.chunk(r, c);
            let words: [u32; 4] = std::array::from_fn(|i| shared.word(at + 4 * i as u32));
            let mut values = [0.0; E];
            for e in 0..E {
                values[e] = decode(words, e);
            }
            let first = c as usize * E;
            let Some(out) = out.get_mut(r as usize * by_row + first * by_element..) else {
                continue;
            };
            // Most runs are whole and dense, which compiles to a few stores.
            match out.first_chunk_mut() {
                Some(run) if by_element == 1 && first + E <= end => *run = values,
                _ => {
                    let count = end.saturating_sub(first);
                    let places = out.iter_mut().step_by(by_element).take(count);
                    for (place, value) in places.zip(values) {
                        *place = value;
                    }
                }
            }
        }
    }
}

/// A from the fragments of four warps, by columns.
#[inline(always)]
fn from_registers(op: &Operation, k: usize, t: MmaType, out: &mut [f32]) {
    let e = (32 / bits(t)) as usize;
    for (warp, fragment) in op.a.iter().enumerate() {
        let Some(fragment) = fragment else { continue };
        for (r, row) in fragment.iter().enumerate().take(4) {
            for (lane, word) in row.iter().enumerate() {
                let (g, q) = (lane / 4, lane % 4);
                for i in 0..e {
                    let (m, c) = (16 * warp + g + 8 * (r % 2), e * q + i + 4 * e * (r / 2));
                    if c < k {
                        out[ROWS * c + m] = element(*word, i, t) as f32;
                    }
                }
            }
        }
    }
}

/// Calls `f` with each register of D, the half of it that is an element (for f16), and the first row and column of its elements: lane 4g + t has row g and
/// column 2t of them.
#[inline(always)]
fn each_register(m: &Wgmma, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
    let halves = m.d_ty == MmaType::F16;
    for warp in 0..4 {
        for i in 0..usize::from(m.n) / 2 {
            let (register, half) = if halves { (i / 2, i % 2) } else { (i, 0) };
            let (row, column) = (16 * warp + 8 * (i / 2 % 2), 8 * (i / 4) + i % 2);
            f(warp, m.d[register] as usize, half, row, column);
        }
    }
}

/// D from the registers: f32, for f16 too, or the bits of i32.
#[inline(always)]
fn gather(m: &Wgmma, warps: &[Warp], d: &mut [f32]) {
    let halves = m.d_ty == MmaType::F16;
    each_register(m, |warp, register, half, row, column| {
        let words: &Row32 = &warps[warp].r32[register];
        for t in 0..4 {
            let run = &mut d[ROWS * (column + 2 * t) + row..][..8];
            for g in 0..8 {
                let word = words[4 * g + t];
                run[g] = if halves {
                    half_to_f32(word >> (16 * half) & 0xffff)
                } else {
                    f32::from_bits(word)
                };
            }
        }
    });
}

/// Writes D to the registers.
#[inline(always)]
fn scatter(m: &Wgmma, warps: &mut [Warp], d: &[f32]) {
    let is_integer = m.d_ty == MmaType::S32;
    let halves = m.d_ty == MmaType::F16;
    each_register(m, |warp, register, which, row, column| {
        let words: &mut Row32 = &mut warps[warp].r32[register];
        let mut new = [0; 32];
        for t in 0..4 {
            let run = &d[ROWS * (column + 2 * t) + row..][..8];
            for g in 0..8 {
                new[4 * g + t] = run[g].to_bits();
            }
        }
        if halves {
            let shift = 16 * which;
            for lane in 0..32 {
                words[lane] = words[lane] & !(0xffff << shift) | half(new[lane]) << shift;
            }
        } else if is_integer {
            *words = new;
        } else {
            for lane in 0..32 {
                let is_nan = new[lane] << 1 > 0xff00_0000;
                words[lane] = if is_nan { NAN32 } else { new[lane] };
            }
        }
    });
}
