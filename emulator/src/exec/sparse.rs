//! Products with a sparse A: `mma.sp.sync` and `wgmma.mma_async.sp` (PTX ISA, sections 9.7.14.6 and 9.7.15.6).
//!
//! Half of the elements of A are kept, and four bits of *metadata* say where those of a chunk of a row belong:
//!
//! | type | chunk | its four bits |
//! |---|---|---|
//! | f16, bf16, 8 bits | 2 of 4 elements | the place of the first, that of the second above it |
//! | tf32 | 1 of 2 | `0100`: the first, `1110`: the second |
//! | 4 bits | 2 of 4 pairs | as for f16, of pairs |
//!
//! The metadata of row r of a warp's 16 rows is a run of 16, 32 or 64 bits, chunk 0 in the lowest. With g = r % 8, h = r / 8 and the sparsity
//! selector s it is in the register of these lanes:
//!
//! | | 16 bits a row | 32 bits | 64 bits |
//! |---|---|---|---|
//! | f16, bf16, tf32 | lane 4g + s, bits 16h to 16h + 15 | lanes 4g + 2s (low half of the run) and 4g + 2s + 1, bits 16h to 16h + 15 | |
//! | 8 and 4 bits | | lane 4g + 2s + h | lanes 4g + h (low half) and 4g + h + 2 |
//!
//! The ISA shows this in pictures; it is the arrangement that published libraries for these instructions rely on.
//!
//! Two equal places in a chunk, places that do not ascend where `.sp::ordered_metadata` promises it, and other values for tf32 are findings. Only
//! the elements of B that a row of A meets take part: a NaN that all kept elements skip has no effect. The sums are those of a product half as deep.
//!
//! Example: metadata `0b1110` in a chunk of f16 puts the two elements that are kept at columns 2 and 3; `0b0100` at columns 0 and 1.

use super::mma::{accumulators, element, scatter};
use super::sums::{Adder, Panels, Row, exponents, least, moderate, place};
use super::warp::Warp;
use super::{Context, Env, Site};
use crate::ir::{Mma, MmaType, Sparse, Sums, metadata_bits};
use crate::report::FindingKind;

/// What the metadata of a matrix means.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    t: MmaType,
    /// Bits of metadata to a row.
    bits: u32,
    selector: u32,
    ordered: bool,
}

impl Pattern {
    pub(super) fn of(t: MmaType, k: u16, s: &Sparse) -> Self {
        Self {
            t,
            bits: metadata_bits(t, u32::from(k)),
            selector: u32::from(s.selector),
            ordered: s.ordered,
        }
    }

    /// The lane and the lowest bit of the metadata of chunk `c` of row `r`.
    fn place(self, r: u32, c: u32) -> (u32, u32) {
        let (g, h) = (r % 8, r / 8);
        let halves = matches!(self.t, MmaType::F16 | MmaType::Bf16 | MmaType::Tf32);
        let (lane, bit) = if halves {
            (
                self.selector * (self.bits / 16) + c / 4,
                16 * h + 4 * (c % 4),
            )
        } else {
            (2 * self.selector + h + 2 * (c / 8), 4 * (c % 8))
        };
        (4 * g + lane % 4, bit)
    }

    /// The columns of the elements of row `r` that are kept.
    pub(super) fn columns(self, meta: &[u32; 32], r: usize) -> Vec<usize> {
        let mut out = Vec::new();
        for c in 0..self.bits / 4 {
            let (lane, bit) = self.place(r as u32, c);
            let four = meta[lane as usize] >> bit & 15;
            let (first, second) = ((four & 3) as usize, (four >> 2) as usize);
            let c = c as usize;
            match self.t {
                MmaType::Tf32 => out.push(2 * c + second / 2),
                MmaType::S4 | MmaType::U4 => {
                    let pair = |p: usize| [8 * c + 2 * p, 8 * c + 2 * p + 1];
                    out.extend(pair(first).into_iter().chain(pair(second)));
                }
                _ => out.extend([4 * c + first, 4 * c + second]),
            }
        }
        out
    }

    /// What is wrong with four bits.
    fn fault(self, four: u32) -> Option<&'static str> {
        let (first, second) = (four & 3, four >> 2);
        if self.t == MmaType::Tf32 {
            return (four != 0b0100 && four != 0b1110)
                .then_some("of tf32 only 0b0100 and 0b1110 have a meaning");
        }
        if first == second {
            Some("the places of two elements of a chunk must differ")
        } else if self.ordered && first > second {
            Some(".sp::ordered_metadata asks for places that ascend")
        } else {
            None
        }
    }

    /// Reports the first chunk whose metadata has no meaning; the rows of the warp begin at row `base`.
    pub(super) fn check(
        self,
        cx: &Context<'_>,
        env: &mut Env,
        meta: &[u32; 32],
        base: u32,
        site: Site,
    ) {
        let lanes = match self.bits {
            16 => 4,
            32 => 2,
            _ => 1,
        };
        if self.selector >= lanes {
            let last = lanes - 1;
            env.report(cx, FindingKind::BadOperand, site, &|| {
                format!(
                    "the sparsity selector of this shape and type is at most {last}, and it is {}",
                    self.selector
                )
            });
            return;
        }
        for (r, c) in (0..16).flat_map(|r| (0..self.bits / 4).map(move |c| (r, c))) {
            let (lane, bit) = self.place(r, c);
            let four = meta[lane as usize] >> bit & 15;
            let Some(fault) = self.fault(four) else {
                continue;
            };
            let site = Site {
                lanes: 1 << lane,
                ..site
            };
            let wide = match self.t {
                MmaType::Tf32 => 2,
                MmaType::S4 | MmaType::U4 => 8,
                _ => 4,
            };
            env.report(cx, FindingKind::BadOperand, site, &|| {
                format!(
                    "sparsity metadata {four:#06b} (bits {bit} to {} of lane {lane}) of row {}, columns {} to {} of A: {fault}",
                    bit + 3,
                    base + r,
                    wide * c,
                    wide * c + wide - 1
                )
            });
            return;
        }
    }
}

/// Adds a row of A (the kept `values`, in `columns`) times B, by rows of `sum.len()` columns, to `sum`, which for integers is zero.
pub(super) fn add(
    sums: Sums,
    d: MmaType,
    values: &[f32],
    columns: &[usize],
    b: &[f32],
    sum: &mut [f32],
    adder: Adder,
) {
    let (n, k) = (sum.len(), values.len());
    if d == MmaType::S32 {
        // Exact: below 2^24.
        for (x, l) in values.iter().zip(columns) {
            for (s, y) in sum.iter_mut().zip(&b[l * n..]) {
                *s += x * y;
            }
        }
        return;
    }
    let (mut kept, mut met) = (vec![0.0; k], vec![0.0; k * n]);
    for (i, (x, l)) in values.iter().zip(columns).enumerate() {
        let to = place(sums, i, k);
        kept[to] = *x;
        met[to * n..][..n].copy_from_slice(&b[l * n..][..n]);
    }
    let row = Row {
        values: &kept,
        exponents: &exponents(&kept, least(sums, 0)),
    };
    let met = Panels::of_rows(&met, k, n, least(sums, 1));
    adder(sums, &row, &met, moderate(row.exponents, &met), sum);
}

/// Elements to a register.
fn per_register(t: MmaType) -> usize {
    match t {
        MmaType::F16 | MmaType::Bf16 => 2,
        MmaType::Tf32 => 1,
        MmaType::S4 | MmaType::U4 => 8,
        _ => 4,
    }
}

/// `mma.sp.sync` by a whole warp. Fragments are those of [`super::mma`], A's of half the depth.
#[inline(never)]
pub(crate) fn mma(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Mma,
    s: &Sparse,
    active: u32,
) {
    let (k, pattern) = (usize::from(m.k), Pattern::of(m.a_ty, m.k, s));
    let meta = w.r32[s.meta as usize];
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    pattern.check(cx, env, &meta, 0, site);
    let mut a = vec![0.0; 16 * k / 2];
    let mut b = vec![0.0; k * 8];
    let e = per_register(m.a_ty);
    for lane in 0..32 {
        let (g, q) = (lane / 4, lane % 4);
        for i in 0..e {
            for (r, &row) in m.a.iter().enumerate() {
                let at = (g + 8 * (r % 2)) * (k / 2) + e * q + i + 4 * e * (r / 2);
                a[at] = element(w.r32[row as usize][lane], i, m.a_ty) as f32;
            }
            for (r, &row) in m.b.iter().enumerate() {
                b[8 * (e * q + i + 4 * e * r) + g] =
                    element(w.r32[row as usize][lane], i, m.b_ty) as f32;
            }
        }
    }
    let mut c = accumulators(w, m);
    for r in 0..16 {
        let columns = pattern.columns(&meta, r);
        let is_integer = m.d_ty == MmaType::S32;
        let mut sum: [f32; 8] =
            std::array::from_fn(|j| if is_integer { 0.0 } else { c[j][r] as f32 });
        let values = &a[r * k / 2..][..k / 2];
        add(
            m.sums,
            m.d_ty,
            values,
            &columns,
            &b,
            &mut sum,
            env.code.adder,
        );
        for (c, sum) in c.iter_mut().zip(sum) {
            let before = if is_integer { c[r] } else { 0.0 };
            c[r] = before + f64::from(sum);
        }
    }
    scatter(w, m, &c, active);
}
