//! `ldmatrix`, `stmatrix` and `movmatrix` (PTX ISA, sections 9.7.14.5.15 to 9.7.14.5.17).
//!
//! A matrix is eight rows of eight 16-bit elements; lane 8j + r gives the address of row r of matrix j. Register j of lane l holds
//! elements (l/4, 2(l%4)) and (l/4, 2(l%4)+1) of matrix j, or with `.trans` (2(l%4), l/4) and (2(l%4)+1, l/4): the second element in
//! the upper half. Example: after a plain load, lane 5 holds row 1, columns 2 and 3.

use super::alu::put;
use super::lanes::whole_warp;
use super::mem::lanes_of;
use super::smem::{check_shared, count_wavefronts, report_conflict, shared_offsets};
use super::undefined::ALL;
use super::warp::Warp;
use super::{Context, Env};
use crate::banks::SharedAccess;
use crate::ir::{Matrix, Reg};
use crate::shared::Who;
use crate::shared_conflicts::Conflict;
use crate::types::File;
use crate::windows::SHARED_WINDOW;

/// Rows of a matrix as words of two elements.
type Rows = [[u32; 4]; 8];

/// The word of lane `l` of matrix `m`.
fn fragment(m: &Rows, l: usize, transposed: bool) -> u32 {
    let (g, t) = (l / 4, l % 4);
    if !transposed {
        return m[g][t];
    }
    let element = |row: usize, col: usize| m[row][col / 2] >> (16 * (col % 2)) & 0xffff;
    element(2 * t, g) | element(2 * t + 1, g) << 16
}

/// The matrix whose fragments are `row`: the inverse of [`fragment`].
fn assemble(row: &[u32; 32], transposed: bool) -> Rows {
    let mut m = [[0; 4]; 8];
    for r in 0..8 {
        for c in 0..8 {
            let (lane, high) = if transposed {
                (4 * c + r / 2, r % 2)
            } else {
                (4 * r + c / 2, c % 2)
            };
            let element = row[lane] >> (16 * high) & 0xffff;
            m[r][c / 2] |= element << (16 * (c % 2));
        }
    }
    m
}

/// Checks the row addresses and the shadow; returns the offsets, the lanes whose rows are fine, and whether some of their bytes may be undefined.
fn rows(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    m: &Matrix,
    active: u32,
    store: bool,
) -> ([u32; 32], u32, bool) {
    whole_warp(cx, env, w, pc, active);
    let givers = if m.count == 4 {
        u32::MAX
    } else {
        (1 << (8 * m.count)) - 1
    } & active;
    let window = if m.generic { SHARED_WINDOW } else { 0 };
    let at = shared_offsets(w, m.address, givers, window + u64::from(env.start()));
    let lanes = check_shared(cx, env, w, pc, &at, 16, givers);
    count_wavefronts(
        env,
        pc,
        SharedAccess::Matrix {
            matrices: u32::from(m.count),
        },
        &at,
        lanes,
    );
    let (mut conflict, mut undefined) = (None, false);
    if let (Some(shadow), Some(pattern)) = (&mut env.shadow, env.patterns.get(pc)) {
        let lane = lanes.trailing_zeros();
        let (first, who) = (at[lane as usize & 31], Who::new(pc, w.index, lane & 31));
        undefined = !shadow.stored.is_empty();
        if lanes == 0 || !store && shadow.read_runs(first, pattern.runs(), who) {
            return (at, lanes, undefined);
        }
        for l in lanes_of(lanes) {
            let who = Who::new(pc, w.index, l as u32);
            let first = (at[l] >> shadow.grain) as usize;
            for u in first..first + (16 >> shadow.grain) {
                let found = if store {
                    shadow.write(u, who)
                } else {
                    shadow.read(u, who)
                };
                undefined |= found == Some(Conflict::Undefined);
                let found = found.filter(|c| *c != Conflict::Undefined);
                conflict = found
                    .map(|c| (who, (u as u32) << shadow.grain, c))
                    .or(conflict);
            }
        }
    }
    if let Some((who, offset, c)) = conflict {
        report_conflict(cx, env, who, (env.rank, offset), c, store);
    }
    (at, lanes, undefined)
}

/// `ldmatrix`.
#[inline(never)]
pub(crate) fn load(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Matrix,
    active: u32,
) {
    let (at, lanes, undefined) = rows(cx, env, w, pc, m, active, false);
    for (j, &reg) in m.regs.iter().enumerate().take(usize::from(m.count)) {
        let mut matrix = [[0u32; 4]; 8];
        for (r, row) in matrix.iter_mut().enumerate() {
            let lane = 8 * j + r;
            if lanes >> lane & 1 == 1 {
                for (k, word) in row.iter_mut().enumerate() {
                    *word = env.shared.word(at[lane] + 4 * k as u32);
                }
            }
        }
        let mut out = [0; 32];
        for (l, o) in out.iter_mut().enumerate() {
            *o = fragment(&matrix, l, m.transposed);
        }
        put(&mut w.r32[reg as usize], &out, active);
    }
    if undefined {
        load_undefined(cx, env, w, pc, m, (&at, lanes), active);
    }
}

/// Carries the undefined bits of the rows to the registers.
#[cold]
#[inline(never)]
fn load_undefined(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Matrix,
    (at, lanes): (&[u32; 32], u32),
    active: u32,
) {
    for (j, &reg) in m.regs.iter().enumerate().take(usize::from(m.count)) {
        let (mut matrix, mut origin) = ([[0u32; 4]; 8], None);
        for (r, row) in matrix.iter_mut().enumerate() {
            let lane = 8 * j + r;
            for (k, word) in row.iter_mut().enumerate() {
                if lanes >> lane & 1 == 1 {
                    let (bits, from) = env.undefined_shared(pc, lane, at[lane] + 4 * k as u32, 4);
                    *word = bits as u32;
                    origin = origin.or(from);
                }
            }
        }
        if origin.is_some() || w.watch == ALL {
            let row = std::array::from_fn(|l| fragment(&matrix, l, m.transposed).into());
            let reg = Reg {
                file: File::R32,
                row: reg,
            };
            w.watch_all(cx.program);
            w.set_undefined(reg, &row, active, origin.unwrap_or(u32::MAX));
        }
    }
}

/// `stmatrix`.
#[inline(never)]
pub(crate) fn store(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Matrix,
    active: u32,
) {
    let (at, lanes, _) = rows(cx, env, w, pc, m, active, true);
    for (j, &reg) in m.regs.iter().enumerate().take(usize::from(m.count)) {
        let matrix = assemble(&w.r32[reg as usize], m.transposed);
        for (r, row) in matrix.iter().enumerate() {
            let lane = 8 * j + r;
            if lanes >> lane & 1 == 1 {
                for (k, word) in row.iter().enumerate() {
                    env.shared.set_word(at[lane] + 4 * k as u32, *word);
                }
            }
        }
    }
    if env.carries_undefined(w) {
        store_undefined(env, w, pc, m, &at, lanes);
    }
}

/// Carries the undefined bits of the registers to the rows.
#[cold]
#[inline(never)]
fn store_undefined(env: &mut Env, w: &Warp, pc: usize, m: &Matrix, at: &[u32; 32], lanes: u32) {
    for (j, &reg) in m.regs.iter().enumerate().take(usize::from(m.count)) {
        let (bits, from) = env.undefined_register(w, pc, reg);
        let matrix = assemble(&bits, m.transposed);
        for (r, row) in matrix.iter().enumerate() {
            let lane = 8 * j + r;
            for (k, word) in row.iter().enumerate() {
                if let (Some(shadow), 1) = (&mut env.shadow, lanes >> lane & 1) {
                    shadow.store_undefined(at[lane] + 4 * k as u32, 4, u64::from(*word), from);
                }
            }
        }
    }
}

/// `movmatrix`: the transposed fragment.
pub(crate) fn transpose(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    d: u32,
    a: u32,
    active: u32,
) {
    whole_warp(cx, env, w, pc, active);
    let out = transposed(&w.r32[a as usize]);
    put(&mut w.r32[d as usize], &out, active);
}

/// The transposed fragment `row`.
pub(super) fn transposed(row: &[u32; 32]) -> [u32; 32] {
    let matrix = assemble(row, false);
    std::array::from_fn(|l| fragment(&matrix, l, true))
}
