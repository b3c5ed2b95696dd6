//! Shared memory to fragments, and their products.

use layout_core::atoms::Scalar;
use layout_core::{Layout, composition};

use super::copy::put_together;
use super::{Fragments, Gemm};
use crate::index::layout::{index, swizzled_index};
use crate::index::{Expr, Pool};
use crate::mma::operand::{OperandMaps, Read};
use crate::plan::{DataType, PlanError};
use crate::ptx::{Address, Class, Reg, Space};

impl Gemm<'_> {
    /// Elements along k of one step: those of the atom.
    pub(super) fn k_step(&self) -> i64 {
        self.maps.atom.k
    }

    pub(super) fn fragments(&mut self) -> Fragments {
        let (rows, cols) = self.atoms();
        let [a, b, _] = self.maps.atom.registers();
        let class = if self.maps.atom.a_type == Scalar::F64 {
            Class::F64
        } else {
            Class::B32
        };
        Fragments {
            a: (0..rows).map(|_| self.k.regs(class, a as usize)).collect(),
            b: (0..cols).map(|_| self.k.regs(class, b as usize)).collect(),
        }
    }

    /// Brings the fragments of one k step of a stage to registers.
    pub(super) fn fetch(
        &mut self,
        into: &Fragments,
        stage: i64,
        step: i64,
    ) -> Result<(), PlanError> {
        self.fetch_side(0, &into.a, stage, step)?;
        self.fetch_side(1, &into.b, stage, step)
    }

    fn fetch_side(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        stage: i64,
        step: i64,
    ) -> Result<(), PlanError> {
        let (o, is_a, tag) = (
            self.sides[i].maps,
            self.sides[i].is_a,
            self.sides[i].read_tag,
        );
        let atom_side = if is_a {
            self.maps.atom.m
        } else {
            self.maps.atom.n
        };
        let warp_side = into.len() as i64 * atom_side;
        let warp = if is_a { self.warp.0 } else { self.warp.1 };
        let warp_origin = self.k.pool.scale(warp, warp_side);
        match o.read {
            Read::Ldmatrix { trans } => {
                let per_read = o.side / atom_side;
                for (j, regs) in into.chunks(per_read as usize).enumerate() {
                    let (side, k) = coordinates(&mut self.k.pool, o, &o.points, &[self.lane])?;
                    let at = self.fragment_address(
                        i,
                        (warp_origin, j as i64 * o.side, side),
                        (k, step),
                        stage,
                    )?;
                    let regs: Vec<String> =
                        regs.iter().flatten().map(ToString::to_string).collect();
                    let t = if trans { ".trans" } else { "" };
                    self.k.memory_ins(
                        None,
                        &format!(
                            "ldmatrix.sync.aligned.m8n8.x4{t}.shared.b16 {{{}}}, {{0}}",
                            regs.join(", ")
                        ),
                        &[at],
                    );
                    self.k.tag(tag);
                }
            }
            Read::Elements => {
                for (j, regs) in into.iter().enumerate() {
                    let per_register = (4 / o.bytes).max(1);
                    for (r, reg) in regs.iter().enumerate() {
                        let mut parts = Vec::new();
                        for p in 0..per_register {
                            let value = self.k.pool.constant(r as i64 * per_register + p);
                            let (side, k) =
                                coordinates(&mut self.k.pool, o, &o.fragment, &[self.lane, value])?;
                            let at = self.fragment_address(
                                i,
                                (warp_origin, j as i64 * atom_side, side),
                                (k, step),
                                stage,
                            )?;
                            let part = if per_register == 1 {
                                *reg
                            } else {
                                self.k.reg(Class::B32)
                            };
                            let ty = match o.bytes {
                                8 => "f64",
                                4 => "b32",
                                _ => "u8",
                            };
                            self.k.load(None, "", ty, &[part], at);
                            self.k.tag(tag);
                            parts.push(part);
                        }
                        if per_register > 1 {
                            let words = put_together(self.k, &parts, o.bytes);
                            self.k.ins(format!("mov.b32 {reg}, {}", words[0]));
                        }
                    }
                }
            }
        }
        if self.plan.data_type == DataType::Tf32 {
            for r in into.iter().flatten() {
                self.k.ins(format!("mul.f32 {r}, {r}, {ROUND_TF32}"));
            }
        }
        Ok(())
    }

    /// The shared address of a fragment's element: `side` = warp + atom + lane, k = step + lane.
    fn fragment_address(
        &mut self,
        i: usize,
        (warp, atom, lane): (Expr, i64, Expr),
        (k, step): (Expr, i64),
        stage: i64,
    ) -> Result<Address, PlanError> {
        let (o, base) = (self.sides[i].maps, self.sides[i].base);
        let step = step * self.k_step();
        let pool = &mut self.k.pool;
        let atom = pool.constant(atom);
        let side = pool.add(warp, lane);
        let side = pool.add(side, atom);
        let step = pool.constant(step);
        let k = pool.add(k, step);
        let (row, col) = if o.k_major { (side, k) } else { (k, side) };
        let byte = swizzled_index(pool, &o.shared, &[row, col])?;
        let start = pool.constant(stage * self.stage_bytes + base);
        let byte = pool.add(byte, start);
        let byte = pool.add(byte, self.smem);
        Ok(self.k.address(Space::Shared, byte))
    }

    /// Products of all pairs of fragments; an instruction of half the depth takes them in two steps.
    pub(super) fn multiply(&mut self, f: &Fragments, acc: &[Vec<Vec<Reg>>]) {
        let list = |regs: &[Reg]| {
            regs.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let instruction = self.plan.instruction();
        let [per_a, per_b, _] = instruction.registers().map(|n| n as usize);
        for (a, row) in f.a.iter().zip(acc) {
            for (b, sums) in f.b.iter().zip(row) {
                let c = list(sums);
                for (a, b) in a.chunks(per_a).zip(b.chunks(per_b)) {
                    self.k.ins(format!(
                        "{} {{{c}}}, {{{}}}, {{{}}}, {{{c}}}",
                        instruction.name,
                        list(a),
                        list(b)
                    ));
                }
            }
        }
    }
}

/// 1 + 2⁻¹¹. The tensor cores cut a tf32 factor off after 10 bits of mantissa; multiplied by this first, what they cut off leaves a
/// relative error of at most 2⁻¹¹ either way, the unit roundoff of tf32: for x in [1, 2), x·(1 + 2⁻¹¹) cut off to a multiple of 2⁻¹⁰
/// lies between x − (2⁻¹⁰ − x·2⁻¹¹) and x + x·2⁻¹¹. NaN and infinity stay, as they would not under an integer addition, and
/// `cvt.rna.tf32` runs at a quarter of the rate (measured on H200: 0.34 of cuBLAS with it).
const ROUND_TF32: &str = "0f3F801000";

/// Side and k of `map`, whose values are `side + S·k`.
fn coordinates(
    pool: &mut Pool,
    o: &OperandMaps,
    map: &Layout,
    at: &[Expr],
) -> Result<(Expr, Expr), PlanError> {
    let most = map.cosize() / o.side + 1;
    let side = composition(&Layout::flat(&[o.side, most], &[1, 0])?, map)?;
    let k = composition(&Layout::flat(&[o.side, most], &[0, 1])?, map)?;
    Ok((index(pool, &side, at)?, index(pool, &k, at)?))
}
