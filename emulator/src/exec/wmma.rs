//! `wmma`: matrices that a warp keeps in registers, by elements that no program may know (see [`Fragment`]).
//!
//! Loads and stores go element by element through the same checks as other accesses. The product is computed as for `mma`, see
//! `mma.rs` and `sums.rs`.

use super::lanes::whole_warp;
use super::mem::{access, addresses, lanes_of};
use super::sums::{self, Row};
use super::warp::Warp;
use super::{Context, Env};
use crate::float::narrow;
use crate::float64::fma;
use crate::ir::{Format, Fragment, MmaType, NONE, Rounding, WmmaMemory, WmmaMultiply};
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

/// The bits of element `i` of `lane`.
fn get(w: &Warp, f: &Fragment, lane: usize, i: usize) -> u64 {
    let p = per_register(f.ty);
    let row = f.regs[i / p] as usize;
    if f.ty == MmaType::F64 {
        return w.r64[row][lane];
    }
    let bits = 32 / p as u32;
    u64::from(w.r32[row][lane]) >> (bits * (i % p) as u32) & ((1u64 << bits) - 1)
}

fn set(w: &mut Warp, f: &Fragment, lane: usize, i: usize, value: u64) {
    let p = per_register(f.ty);
    let needed = elements(f).div_ceil(p);
    let bits = 32 / p as u32;
    let (shift, mask) = (bits * (i % p) as u32, ((1u64 << bits) - 1) as u32);
    // Registers that are left over repeat the elements.
    for row in f.regs.iter().skip(i / p).step_by(needed) {
        if f.ty == MmaType::F64 {
            w.r64[*row as usize][lane] = value;
        } else {
            let word = &mut w.r32[*row as usize][lane];
            *word = (*word & !(mask << shift)) | (value as u32 & mask) << shift;
        }
    }
}

/// `wmma.load` and `wmma.store`.
#[inline(never)]
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
    let (rows, columns) = (u64::from(f.rows), u64::from(f.columns));
    let base = addresses(w, m.address);
    let stride = if m.stride == NONE {
        [if m.column_major { rows } else { columns }; 32]
    } else {
        w.r32[m.stride as usize].map(u64::from)
    };
    let run = elements(f);
    let (Some(address), data) = (m.element.address.base, m.element.regs[0]) else {
        return;
    };
    for i in 0..run {
        for l in lanes_of(active) {
            let index = (l * run + i) as u64;
            let (r, c) = (index / columns, index % columns);
            let at = if m.column_major {
                c.wrapping_mul(stride[l]).wrapping_add(r)
            } else {
                r.wrapping_mul(stride[l]).wrapping_add(c)
            };
            let bytes = u64::from(m.element.bytes);
            w.r64[address.row as usize][l] = base[l].wrapping_add(at.wrapping_mul(bytes));
            if m.store {
                let value = get(w, f, l, i);
                match data.file {
                    File::R64 => w.r64[data.row as usize][l] = value,
                    _ => w.r32[data.row as usize][l] = value as u32,
                }
            }
        }
        access(cx, env, w, pc, &m.element, active, m.store);
        if !m.store {
            for l in lanes_of(active) {
                let value = match data.file {
                    File::R64 => w.r64[data.row as usize][l],
                    _ => u64::from(w.r32[data.row as usize][l]),
                };
                set(w, f, l, i, value);
            }
        }
    }
}

/// The matrix of a fragment, row by row.
fn matrix(w: &Warp, f: &Fragment) -> Vec<f64> {
    let run = elements(f);
    (0..32 * run)
        .map(|index| {
            let bits = get(w, f, index / run, index % run);
            if f.ty == MmaType::F64 {
                f64::from_bits(bits)
            } else {
                super::mma::element(bits as u32, 0, f.ty)
            }
        })
        .collect()
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
    for l in lanes_of(active) {
        for i in 0..run {
            let x = d[l * run + i];
            let bits = match m.d.ty {
                MmaType::F64 => x.to_bits(),
                MmaType::F16 => narrow(x, Format::F16, Rounding::Nearest, false),
                MmaType::S32 if m.satfinite => {
                    (x as i64).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64
                }
                MmaType::S32 => x as i64 as u64,
                _ => narrow(x, Format::F32, Rounding::Nearest, false),
            };
            set(w, &m.d, l, i, bits);
        }
    }
}
