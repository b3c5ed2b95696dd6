//! `wmma`: matrices that a warp keeps in registers, by elements that no program may know (see [`Fragment`]).
//!
//! Loads and stores go through the same checks as other accesses. The product is computed as for `mma`, see
//! `mma.rs` and `sums.rs`.

use super::alu::{Row32, Row64, put};
use super::lanes::whole_warp;
use super::mem::{self, addresses, lanes_of};
use super::rounding::half_of;
use super::sums::{Adder, Panels, Row, exponents, least, moderate};
use super::warp::Warp;
use super::{Context, Env};
use crate::float::NAN32;
use crate::float64::fma;
use crate::ir::{Fragment, MmaType, NONE, Reg, WmmaMemory, WmmaMultiply};
use crate::types::File;

/// Elements of a register of 32 bits, or of 64 for f64.
fn per_register(ty: MmaType) -> usize {
    match ty {
        MmaType::F16 | MmaType::Bf16 => 2,
        MmaType::S8 | MmaType::U8 => 4,
        _ => 1,
    }
}

fn elements(f: &Fragment) -> usize {
    usize::from(f.rows) * usize::from(f.columns) / 32
}

/// The bits `mask` from `shift` on of a row.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn widened(row: &Row32, shift: u32, mask: u32) -> Row64 {
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = u64::from(row[l] >> shift & mask);
    }
    out
}

/// Sets the bits `mask` from `shift` on of a row.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn put_narrow(row: &mut Row32, value: &Row64, shift: u32, mask: u32) {
    for l in 0..32 {
        row[l] = (row[l] & !(mask << shift)) | (value[l] as u32 & mask) << shift;
    }
}

/// Where element `i` lies in its register of 32 bits: the lowest bit, and a mask as wide as the element.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn place(f: &Fragment, i: usize) -> (u32, u32) {
    let p = per_register(f.ty);
    let bits = 32 / p as u32;
    (bits * (i % p) as u32, u32::MAX >> (32 - bits))
}

/// The bits of element `i` of all lanes.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn row(w: &Warp, f: &Fragment, i: usize) -> Row64 {
    let row = f.regs[i / per_register(f.ty)] as usize;
    if f.ty == MmaType::F64 {
        return w.r64[row];
    }
    let (shift, mask) = place(f, i);
    widened(&w.r32[row], shift, mask)
}

/// Sets element `i` of the lanes `active`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn set_row(w: &mut Warp, f: &Fragment, i: usize, value: &Row64, active: u32) {
    let p = per_register(f.ty);
    let needed = elements(f).div_ceil(p);
    let (shift, mask) = place(f, i);
    // Registers that are left over repeat the elements.
    for row in f.regs.iter().skip(i / p).step_by(needed) {
        if f.ty == MmaType::F64 {
            put(&mut w.r64[*row as usize], value, active);
        } else {
            let mut new = w.r32[*row as usize];
            put_narrow(&mut new, value, shift, mask);
            put(&mut w.r32[*row as usize], &new, active);
        }
    }
}

/// Bytes that a lane accesses at most in one piece.
const PIECE: usize = 16;

/// `wmma.load` and `wmma.store`. Lane l accesses the run of elements from element `l·run` of the matrix on, in the order of memory, in pieces as large as the alignment
/// permits: mostly of 16 bytes, at worst of an element. A matrix by columns has to change lanes on the way from or to the fragment, which goes by rows.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn memory(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &WmmaMemory,
    active: u32,
) {
    whole_warp(cx, env, w, pc, active);
    let f = &m.fragment;
    let Some(address) = m.element.address.base else {
        return;
    };
    let (run, bytes) = (elements(f), usize::from(m.element.bytes));
    let mut at = starts(w, m);
    let low = lanes_of(active).fold(0, |low, l| low | at[l]);
    let piece = [PIECE, 8, 4].into_iter().find(|piece| {
        bytes <= *piece && (run * bytes).is_multiple_of(*piece) && low % *piece as u64 == 0
    });
    let piece = piece.unwrap_or(bytes);
    let mut access = m.element;
    // Small elements go by whole words.
    let word = if piece < 4 { bytes } else { bytes.max(4) };
    access.bytes = word as u8;
    access.count = (piece / word) as u8;
    // Registers of 32 bits hold what lies in memory if both go by rows.
    let direct = !m.column_major && word == 4;
    let per_word = word / bytes;
    let words = run / per_word;
    let mut values = vec![[0; 32]; if direct { 0 } else { run }];
    // Which elements go to which lanes is not specified, so that all of a fragment counts as undefined if part of it is.
    let mut undefined = None;
    if m.store && !direct {
        for (i, value) in values.iter_mut().enumerate() {
            *value = row(w, f, i);
        }
        if m.column_major {
            values = exchange(&values, (f.rows, f.columns));
        }
    }
    for first in (0..words).step_by(usize::from(access.count)) {
        w.r64[address.row as usize] = at;
        for x in &mut at {
            *x = x.wrapping_add(piece as u64);
        }
        let places = first..first + usize::from(access.count);
        if direct {
            for (reg, k) in access.regs.iter_mut().zip(places.clone()) {
                reg.row = f.regs[k];
            }
        } else if m.store {
            for (reg, k) in access.regs.iter().zip(places.clone()) {
                for e in 0..per_word {
                    let (value, bits) = (&values[k * per_word + e], 8 * bytes as u32);
                    match reg.file {
                        File::R64 => w.r64[reg.row as usize] = *value,
                        _ => put_narrow(
                            &mut w.r32[reg.row as usize],
                            value,
                            bits * e as u32,
                            u32::MAX >> (32 - bits),
                        ),
                    }
                }
            }
        }
        mem::access(cx, env, w, pc, &access, active, m.store);
        if m.store || direct {
            continue;
        }
        undefined = undefined.or(w.take_undefined(&access.regs[..usize::from(access.count)]));
        for (reg, k) in access.regs.iter().zip(places) {
            for e in 0..per_word {
                let bits = 8 * bytes as u32;
                values[k * per_word + e] = match reg.file {
                    File::R64 => w.r64[reg.row as usize],
                    _ => widened(
                        &w.r32[reg.row as usize],
                        bits * e as u32,
                        u32::MAX >> (32 - bits),
                    ),
                };
            }
        }
    }
    if m.store {
        return;
    }
    if let Some(from) = undefined {
        for row in &f.regs {
            let file = if f.ty == MmaType::F64 {
                File::R64
            } else {
                File::R32
            };
            w.set_undefined(Reg { file, row: *row }, &[u64::MAX; 32], active, from);
        }
    }
    if direct {
        // Registers that are left over repeat the elements.
        for (k, reg) in f.regs.iter().enumerate().skip(words) {
            let row = w.r32[f.regs[k % words] as usize];
            put(&mut w.r32[*reg as usize], &row, active);
        }
        return;
    }
    if m.column_major {
        values = exchange(&values, (f.columns, f.rows));
    }
    for (i, value) in values.iter().enumerate() {
        set_row(w, f, i, value, active);
    }
}

/// Where the run of each lane starts. All numbers of rows and columns are powers of two, of which none is more than 32: a run lies in one row, or in one column.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn starts(w: &Warp, m: &WmmaMemory) -> Row64 {
    let (f, bytes) = (&m.fragment, u64::from(m.element.bytes));
    let length = if m.column_major { f.rows } else { f.columns };
    let mut at = addresses(w, m.address);
    for l in 0..32 {
        let index = l * elements(f);
        let outer = (index >> length.trailing_zeros()) as u64;
        let inner = (index & (usize::from(length) - 1)) as u64;
        let stride = if m.stride == NONE {
            length.into()
        } else {
            w.r32[m.stride as usize][l].into()
        };
        let elements = outer.wrapping_mul(stride).wrapping_add(inner);
        at[l] = at[l].wrapping_add(elements.wrapping_mul(bytes));
    }
    at
}

/// The transposed matrix of one of `rows` and `columns`, of which lane l has the run of elements from `l·run` on, by rows before and by columns after.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn exchange(values: &[Row64], (rows, columns): (u8, u8)) -> Vec<Row64> {
    let run = values.len();
    let mut out = vec![[0; 32]; run];
    let (shift, last) = (rows.trailing_zeros(), usize::from(rows) - 1);
    for i in 0..run {
        for l in 0..32 {
            let index = l * run + i;
            let from = (index & last) * usize::from(columns) + (index >> shift);
            // A power of two.
            out[i][l] = values[from & (run - 1)][from >> run.trailing_zeros() & 31];
        }
    }
    out
}

/// The matrix of a fragment, row by row.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
fn matrix(w: &Warp, f: &Fragment) -> Vec<f64> {
    let run = elements(f);
    let mut out = vec![0.0; 32 * run];
    for i in 0..run {
        for (l, bits) in row(w, f, i).into_iter().enumerate() {
            out[l * run + i] = if f.ty == MmaType::F64 {
                f64::from_bits(bits)
            } else {
                super::mma::element(bits as u32, 0, f.ty)
            };
        }
    }
    out
}

/// `wmma.mma`.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn multiply(w: &mut Warp, m: &WmmaMultiply, active: u32, adder: Adder) {
    let (a, b, mut d) = (matrix(w, &m.a), matrix(w, &m.b), matrix(w, &m.c));
    let (rows, depth, columns) = (
        usize::from(m.a.rows),
        usize::from(m.a.columns),
        usize::from(m.b.columns),
    );
    let fixed = !matches!(m.d.ty, MmaType::F64 | MmaType::S32);
    if fixed {
        let narrow = |x: &[f64]| -> Vec<f32> { x.iter().map(|x| *x as f32).collect() };
        let (a, b) = (narrow(&a), narrow(&b));
        let ea = exponents(&a, least(m.sums, 0));
        let b = Panels::of_rows(&b, depth, columns, least(m.sums, 1));
        let is_moderate = moderate(&ea, &b);
        for (i, d) in d.chunks_exact_mut(columns).enumerate() {
            let a = Row {
                values: &a[i * depth..][..depth],
                exponents: &ea[i * depth..][..depth],
            };
            let mut sum = [0.0; 32];
            let sum = &mut sum[..columns];
            for (to, from) in sum.iter_mut().zip(&*d) {
                *to = *from as f32;
            }
            adder(m.sums, &a, &b, is_moderate, sum);
            for (to, from) in d.iter_mut().zip(sum) {
                *to = f64::from(*from);
            }
        }
    }
    for i in 0..if fixed { 0 } else { rows } {
        let sums = &mut d[i * columns..][..columns];
        for k in 0..depth {
            let x = a[i * depth + k];
            let factors = sums.iter_mut().zip(&b[k * columns..][..columns]);
            if m.d.ty == MmaType::F64 {
                factors.for_each(|(sum, y)| *sum = fma(x, *y, *sum));
            } else {
                factors.for_each(|(sum, y)| *sum += x * *y);
            }
        }
    }
    let run = elements(&m.d);
    for i in 0..run {
        let mut value = [0; 32];
        for l in 0..32 {
            let x = d[l * run + i];
            value[l] = match m.d.ty {
                MmaType::F64 => x.to_bits(),
                MmaType::F16 => half_of(x).into(),
                MmaType::S32 if m.satfinite => {
                    (x as i64).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64
                }
                MmaType::S32 => x as i64 as u64,
                _ if x.is_nan() => NAN32.into(),
                _ => (x as f32).to_bits().into(),
            };
        }
        set_row(w, &m.d, i, &value, active);
    }
}
