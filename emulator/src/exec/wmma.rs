//! `wmma`: matrices that a warp keeps in registers, by elements that no program may know (see [`Fragment`]).
//!
//! Loads and stores go element by element through the same checks as other accesses. The product is computed as for `mma`, see
//! `mma.rs` and `sums.rs`.

use super::alu::{Row32, Row64, put};
use super::lanes::whole_warp;
use super::mem::{access, addresses};
use super::sums::{self, Row};
use super::warp::Warp;
use super::{Context, Env};
use crate::float::{finish32, narrow};
use crate::float64::fma;
use crate::ir::{FloatMode, Format, Fragment, MmaType, NONE, Rounding, WmmaMemory, WmmaMultiply};
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
#[inline(always)]
fn widened(row: &Row32, shift: u32, mask: u32) -> Row64 {
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = u64::from(row[l] >> shift & mask);
    }
    out
}

/// Sets the bits `mask` from `shift` on of a row.
#[inline(always)]
fn put_narrow(row: &mut Row32, value: &Row64, shift: u32, mask: u32) {
    for l in 0..32 {
        row[l] = (row[l] & !(mask << shift)) | (value[l] as u32 & mask) << shift;
    }
}

/// Where element `i` lies in its register of 32 bits: the lowest bit, and a mask as wide as the element.
#[inline(always)]
fn place(f: &Fragment, i: usize) -> (u32, u32) {
    let p = per_register(f.ty);
    let bits = 32 / p as u32;
    (bits * (i % p) as u32, u32::MAX >> (32 - bits))
}

/// The bits of element `i` of all lanes.
#[inline(always)]
fn row(w: &Warp, f: &Fragment, i: usize) -> Row64 {
    let row = f.regs[i / per_register(f.ty)] as usize;
    if f.ty == MmaType::F64 {
        return w.r64[row];
    }
    let (shift, mask) = place(f, i);
    widened(&w.r32[row], shift, mask)
}

/// Sets element `i` of the lanes `active`.
#[inline(always)]
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

/// `wmma.load` and `wmma.store`.
#[inline(always)]
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
    let base = addresses(w, m.address);
    let mut stride = [u64::from(if m.column_major { f.rows } else { f.columns }); 32];
    if m.stride != NONE {
        for (stride, row) in stride.iter_mut().zip(&w.r32[m.stride as usize]) {
            *stride = u64::from(*row);
        }
    }
    let (Some(address), data) = (m.element.address.base, m.element.regs[0]) else {
        return;
    };
    // All numbers of rows and columns are powers of two.
    let (shift, last) = (f.columns.trailing_zeros(), u64::from(f.columns) - 1);
    let (run, bytes) = (elements(f), u64::from(m.element.bytes));
    for i in 0..run {
        let at = &mut w.r64[address.row as usize];
        for l in 0..32 {
            let index = (l * run + i) as u64;
            let (r, c) = (index >> shift, index & last);
            let (outer, inner) = if m.column_major { (c, r) } else { (r, c) };
            let elements = outer.wrapping_mul(stride[l]).wrapping_add(inner);
            at[l] = base[l].wrapping_add(elements.wrapping_mul(bytes));
        }
        if m.store {
            let value = row(w, f, i);
            match data.file {
                File::R64 => w.r64[data.row as usize] = value,
                _ => put_narrow(&mut w.r32[data.row as usize], &value, 0, u32::MAX),
            }
        }
        access(cx, env, w, pc, &m.element, active, m.store);
        if !m.store {
            let value = match data.file {
                File::R64 => w.r64[data.row as usize],
                _ => widened(&w.r32[data.row as usize], 0, u32::MAX),
            };
            set_row(w, f, i, &value, active);
        }
    }
}

/// The matrix of a fragment, row by row.
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
#[inline(never)]
pub(super) fn multiply(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &WmmaMultiply,
    active: u32,
) {
    whole_warp(cx, env, w, pc, active);
    let (a, b, mut d) = (matrix(w, &m.a), matrix(w, &m.b), matrix(w, &m.c));
    let (rows, depth, columns) = (
        usize::from(m.a.rows),
        usize::from(m.a.columns),
        usize::from(m.b.columns),
    );
    let fixed = !matches!(m.d.ty, MmaType::F64 | MmaType::S32);
    if fixed {
        let [ea, eb] = sums::exponents(m.sums, [&a, &b]);
        let b = Row {
            values: &b,
            exponents: &eb,
        };
        for (i, sum) in d.chunks_exact_mut(columns).enumerate() {
            let a = Row {
                values: &a[i * depth..][..depth],
                exponents: &ea[i * depth..][..depth],
            };
            (env.code.adder)(m.sums, &a, &b, sum);
        }
    }
    for i in 0..if fixed { 0 } else { rows } {
        for j in 0..columns {
            let mut sum = d[i * columns + j];
            for k in 0..depth {
                let (x, y) = (a[i * depth + k], b[k * columns + j]);
                sum = if m.d.ty == MmaType::F64 {
                    fma(x, y, sum)
                } else {
                    sum + x * y
                };
            }
            d[i * columns + j] = sum;
        }
    }
    let run = elements(&m.d);
    for i in 0..run {
        let mut value = [0; 32];
        for l in 0..32 {
            let x = d[l * run + i];
            value[l] = match m.d.ty {
                MmaType::F64 => x.to_bits(),
                MmaType::F16 => narrow(x, Format::F16, Rounding::Nearest, false),
                MmaType::S32 if m.satfinite => {
                    (x as i64).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64
                }
                MmaType::S32 => x as i64 as u64,
                _ => finish32(x, FloatMode::PLAIN).into(),
            };
        }
        set_row(w, &m.d, i, &value, active);
    }
}
