//! `mma.sync.m8n8k4` of f16 (PTX ISA, section 9.7.14.5.1): four products of 8 x 8 x 4, each by eight lanes.
//!
//! Product q belongs to lanes 4q to 4q + 3 and 4q + 16 to 4q + 19. With t = lane % 4, h = lane / 16 and element i of the lane:
//!
//! | operand | row | column |
//! |---|---|---|
//! | A row-major; by columns | t + 4h; i + 4h | i; t |
//! | B row-major; by columns | t; i | i + 4h; t + 4h |
//! | C, D of f16 | t + 4h | i |
//! | C, D of f32 | t % 2 + (i & 2) + 4h | (i & 4) + (t & 2) + i % 2 |
//!
//! **Arithmetic.** Up to `sm_75` there is a unit for this, which adds as [`super::sums`] says. For later targets the assembler makes it of f32 instructions:
//! (C + (a1·b1 + a0·b0)) + (a3·b3 + a2·b2), with the sums in brackets fused, each rounded to nearest.
//!
//! Example: with A row-major, lane 17 holds row 5 of the first A.

use super::mma::element;
use super::rounding::half as narrow;
use super::sums::{Adder, Panels, Row, exponents, least, moderate};
use super::warp::Warp;
use crate::float::{NAN32, fma32};
use crate::ir::{Mma, MmaType};

/// Row and column of element `i` of `lane` in C or D.
fn place(t: MmaType, lane: usize, i: usize) -> (usize, usize) {
    let (t4, h) = (lane % 4, lane / 16);
    if t == MmaType::F16 {
        (t4 + 4 * h, i)
    } else {
        (t4 % 2 + (i & 2) + 4 * h, (i & 4) + (t4 & 2) + i % 2)
    }
}

/// Runs `m` on the active lanes.
#[inline(never)]
pub(super) fn mma(w: &mut Warp, m: &Mma, active: u32, adder: Adder) {
    let half = |w: &Warp, rows: &[u32], i: usize, lane: usize| {
        element(w.r32[rows[i / 2] as usize][lane], i % 2, MmaType::F16) as f32
    };
    for quad in 0..4 {
        let lanes = (0..8).map(|l| 4 * quad + l % 4 + 16 * (l / 4));
        let (mut a, mut b) = ([0.0; 32], [0.0; 32]);
        let mut c = [[0.0; 8]; 8];
        for lane in lanes.clone() {
            let (t, h) = (lane % 4, lane / 16);
            for i in 0..4 {
                let [by_columns, b_by_columns] = m.by_columns;
                let (row, column) = if by_columns {
                    (i + 4 * h, t)
                } else {
                    (t + 4 * h, i)
                };
                a[4 * row + column] = half(w, &m.a, i, lane);
                let (row, column) = if b_by_columns {
                    (i, t + 4 * h)
                } else {
                    (t, i + 4 * h)
                };
                b[8 * row + column] = half(w, &m.b, i, lane);
            }
            for i in 0..8 {
                let (row, column) = place(m.c_ty, lane, i);
                c[row][column] = if m.c_ty == MmaType::F16 {
                    half(w, &m.c, i, lane)
                } else {
                    f32::from_bits(w.r32[m.c[i] as usize][lane])
                };
            }
        }
        if m.sums.has_quads {
            let b = Panels::of_rows(&b, 4, 8, least(m.sums, 1));
            let ea = exponents(&a, least(m.sums, 0));
            let is_moderate = moderate(&ea, &b);
            for (row, sum) in c.iter_mut().enumerate() {
                let values = Row {
                    values: &a[4 * row..][..4],
                    exponents: &ea[4 * row..][..4],
                };
                adder(m.sums, &values, &b, is_moderate, sum);
            }
        } else {
            for (row, sums) in c.iter_mut().enumerate() {
                for (column, sum) in sums.iter_mut().enumerate() {
                    let (x, y) = (|l: usize| a[4 * row + l], |l: usize| b[8 * l + column]);
                    // A product of halves is exact in f32.
                    let pair = |l: usize| fma32(x(l + 1), y(l + 1), x(l) * y(l));
                    *sum = (*sum + pair(0)) + pair(2);
                }
            }
        }
        for lane in lanes.filter(|l| active >> l & 1 == 1) {
            for i in 0..8 {
                let (row, column) = place(m.d_ty, lane, i);
                let x = c[row][column];
                if m.d_ty == MmaType::F16 {
                    let bits = narrow(x.to_bits());
                    let word = &mut w.r32[m.d[i / 2] as usize][lane];
                    let shift = 16 * (i % 2);
                    *word = *word & !(0xffff << shift) | bits << shift;
                } else {
                    let bits = if x.is_nan() { NAN32 } else { x.to_bits() };
                    w.r32[m.d[i] as usize][lane] = bits;
                }
            }
        }
    }
}
