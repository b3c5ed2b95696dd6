//! Shared memory to fragments, and their products.

use std::sync::Arc;

use layout_codegen::index::Expr;
use layout_codegen::ir::Kernel;
use layout_codegen::ir::instructions::{
    Address, Addresses, Binary, Cache, Class, Instructions, Reg, Type,
};
use layout_core::Layout;
use layout_core::atoms::Scalar;

use super::{Fragments, Gemm, Side};
use crate::gemm::epilogue::scalar_type;
use crate::gemm::mma_sync::operand::{OperandMaps, Read, pairs};
use crate::gemm::{DataType, PlanError};

/// A tile along k in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) stage: i64,
    /// Its first k.
    pub(super) first: Expr,
}

impl Gemm<'_> {
    /// Accumulators: atoms by rows and columns, those of a second product after the first's, each the registers of one atom, set to 0.
    pub(super) fn accumulators(&mut self) -> Vec<Vec<Vec<Reg>>> {
        let (rows, cols) = self.atoms();
        let cols = cols * self.plan.variant.products;
        let each = self.maps.atom.registers()[2];
        let (class, ty, zero) = match self.maps.atom.c_type {
            // Two sums in each register.
            Scalar::F16 => (Class::B32, Type::B32, 0.into()),
            _ => scalar_type(self.plan.data_type.scalar()),
        };
        self.k.comment(format!(
            "acc: {rows} x {cols} atoms of {each} registers a thread"
        ));
        let mut all = Vec::new();
        for _ in 0..rows {
            let mut row = Vec::new();
            for _ in 0..cols {
                let regs = self.k.regs(class, each as usize);
                for r in &regs {
                    self.k.set(ty, *r, zero);
                }
                row.push(regs);
            }
            all.push(row);
        }
        all
    }

    /// Elements along k of one step: those of the atom.
    pub(super) fn k_step(&self) -> i64 {
        self.maps.atom.k
    }

    pub(super) fn fragments(&mut self) -> Fragments {
        let (rows, cols) = self.atoms();
        let cols = cols * self.plan.variant.products;
        let [a, b, _] = self.maps.atom.registers();
        let class = match self.maps.atom.a_type {
            Scalar::F64 => Class::F64,
            Scalar::F32 => Class::F32,
            _ => Class::B32,
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
        tile: Tile,
        step: i64,
    ) -> Result<(), PlanError> {
        self.fetch_side(0, &into.a, tile, step)?;
        let each = self.atoms().1 as usize;
        for (i, b) in (1..).zip(into.b.chunks(each)) {
            self.fetch_side(i, b, tile, step)?;
        }
        Ok(())
    }

    fn fetch_side(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        tile: Tile,
        step: i64,
    ) -> Result<(), PlanError> {
        match self.sides[i].maps.read {
            Read::Ldmatrix { .. } | Read::LdmatrixPairs => {
                self.fetch_matrices(i, into, (tile, step))?;
            }
            Read::Elements => self.fetch_elements(i, into, (tile, step))?,
            Read::Vectors => self.fetch_vectors(i, into, (tile, step))?,
            // The product reads shared memory itself, or its loop the stage of a ring.
            Read::Descriptor | Read::Neighbours => {}
        }
        if self.plan.data_type == DataType::Tf32 {
            for r in into.iter().flatten() {
                self.k.binary(Binary::Mul, Type::F32, *r, *r, ROUND_TF32);
            }
        }
        Ok(())
    }

    /// The side of one atom, and the first index of the warp's.
    fn warp_origin(&mut self, i: usize, atoms: usize) -> (i64, Expr) {
        let (atom, warp) = if self.sides[i].is_a {
            (self.maps.atom.m, self.warp.0)
        } else {
            (self.maps.atom.n, self.warp.1)
        };
        (atom, self.k.scale(warp, atoms as i64 * atom))
    }

    /// By `ldmatrix.x4`, which fills one atom of A or two of B.
    fn fetch_matrices(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        (tile, step): (Tile, i64),
    ) -> Result<(), PlanError> {
        let o = self.sides[i].maps;
        let (atom, warp) = self.warp_origin(i, into.len());
        for (j, regs) in (0..).zip(into.chunks((o.side / atom) as usize)) {
            let (side, k) = coordinates(self.k, o, &o.points, &[self.lane])?;
            let at = self.fragment_address(i, (warp, j * o.side, side), (k, step), tile)?;
            let trans = o.read != Read::Ldmatrix { trans: false };
            let to = regs.iter().flatten().copied().collect();
            self.k.load_matrix(to, trans, at);
            self.k.tag(self.sides[i].read_tag);
        }
        Ok(())
    }

    /// What was read as it is multiplied: neighbouring bytes of [`pairs`] each in registers of its own. Only now, not where it was read, so
    /// that a warp does not wait for what it needs in the next step.
    fn put_apart(&mut self, i: usize, read: &[Vec<Reg>]) -> Vec<Vec<Reg>> {
        let (o, is_a) = (self.sides[i].maps, self.sides[i].is_a);
        if o.read != Read::LdmatrixPairs {
            return read.to_vec();
        }
        let mut all = Vec::new();
        for atoms in read.chunks(if is_a { 1 } else { 2 }) {
            let mut apart = atoms.to_vec();
            let loaded: Vec<_> = atoms.iter().flatten().collect();
            for (h, two) in (0..).zip(loaded.chunks(2)) {
                for (neighbour, selector) in (0..).zip(pairs::SELECTORS) {
                    let (atom, register) = pairs::target(is_a, h, neighbour);
                    let to = self.k.permute(*two[0], *two[1], selector);
                    apart[atom as usize][register as usize] = to;
                }
            }
            all.extend(apart);
        }
        all
    }

    /// Element by element.
    fn fetch_elements(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        (tile, step): (Tile, i64),
    ) -> Result<(), PlanError> {
        let o = self.sides[i].maps;
        let (atom, warp) = self.warp_origin(i, into.len());
        let ty = if o.bytes == 8 { Type::F64 } else { Type::B32 };
        for (j, regs) in (0..).zip(into) {
            for (value, &reg) in (0..).zip(regs) {
                let value = self.k.constant(value);
                let (side, k) = coordinates(self.k, o, &o.fragment, &[self.lane, value])?;
                let at = self.fragment_address(i, (warp, j * atom, side), (k, step), tile)?;
                self.k.load(None, Cache::Coherent, ty, &[reg], at);
                self.k.tag(self.sides[i].read_tag);
            }
        }
        Ok(())
    }

    /// The neighbours of an FMA atom at once.
    fn fetch_vectors(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        (tile, step): (Tile, i64),
    ) -> Result<(), PlanError> {
        let o = self.sides[i].maps;
        let (atom, warp) = self.warp_origin(i, into.len());
        let first = o.fragment.get(0)?;
        for (j, regs) in (0..).zip(into) {
            let (side, k) = coordinates(self.k, o, &first, &[self.lane])?;
            let at = self.fragment_address(i, (warp, j * atom, side), (k, step), tile)?;
            self.k.load(None, Cache::Coherent, Type::F32, regs, at);
            self.k.tag(self.sides[i].read_tag);
        }
        Ok(())
    }

    /// The shared address of a fragment's element: `side` = warp + atom + lane, k = step + lane.
    fn fragment_address(
        &mut self,
        i: usize,
        (warp, atom, lane): (Expr, i64, Expr),
        (k, step): (Expr, i64),
        tile: Tile,
    ) -> Result<Address, PlanError> {
        let step = step * self.k_step();
        let Side { maps, stages, .. } = &self.sides[i];
        let kernel = &mut *self.k;
        let atom = kernel.constant(atom);
        let side = kernel.add(warp, lane);
        let side = kernel.add(side, atom);
        let step = kernel.constant(step);
        let (row, col) = maps.place(side, kernel.add(k, step));
        let stage = kernel.constant(tile.stage);
        Ok(stages.element(self.k, &[row, col, stage, tile.first])?)
    }

    /// Products of all pairs of fragments; an instruction of half the depth takes them in two steps.
    pub(super) fn multiply(&mut self, f: &Fragments, acc: &[Vec<Vec<Reg>>]) {
        if self.plan.is_fma() {
            self.multiply_outer(f, acc);
            return;
        }
        let (rows, columns) = (self.put_apart(0, &f.a), self.put_apart(1, &f.b));
        let instruction = Arc::new(self.plan.instruction_atom());
        let [per_a, per_b, _] = instruction.registers().map(|n| n as usize);
        for (a, row) in rows.iter().zip(acc) {
            for (b, sums) in columns.iter().zip(row) {
                for (a, b) in a.chunks(per_a).zip(b.chunks(per_b)) {
                    if self.one_by_one {
                        self.k.warp_barrier();
                    }
                    self.k.multiply_accumulate(&instruction, sums, a, b);
                }
            }
        }
    }
}

impl Gemm<'_> {
    /// The outer product of a column of A and a row of B, row by row, to and fro in turn.
    ///
    /// A multiprocessor reads one register a clock from each of two banks (registers of even and of odd number), so that a product which reads three
    /// takes two clocks or more (measured on an H100). Products that follow each other here share a factor, which the register cache keeps: each reads
    /// its sum and one factor more. Which sums and factors share a bank is up to the assembler; along the rows of C, its machine code has more products
    /// a clock than down the columns (0.91 and 0.83 in `sgemm-256x128x8` nn, 0.87 and 0.87 in `sgemm-128x128x16` nn; ptxas 13.0).
    fn multiply_outer(&mut self, f: &Fragments, acc: &[Vec<Vec<Reg>>]) {
        let (a, b): (Vec<Reg>, Vec<Reg>) = (f.a.concat(), f.b.concat());
        for (i, &row) in a.iter().enumerate() {
            for step in 0..b.len() {
                let j = if i % 2 == 0 { step } else { b.len() - 1 - step };
                // A lane has 4×4 sums of an atom.
                let sum = acc[i / 4][j / 4][4 * (i % 4) + j % 4];
                self.k.mul_add(Type::F32, sum, row, b[j], sum);
            }
        }
    }
}

/// 1 + 2⁻¹¹. The tensor cores cut a tf32 factor off after 10 bits of mantissa; multiplied by this first, what they cut off leaves a
/// relative error of at most 2⁻¹¹ either way, the unit roundoff of tf32: for x in [1, 2), x·(1 + 2⁻¹¹) cut off to a multiple of 2⁻¹⁰ lies
/// between x − (2⁻¹⁰ − x·2⁻¹¹) and x + x·2⁻¹¹. NaN and infinity stay, as they would not under an integer addition, and `cvt.rna.tf32` runs
/// at a quarter of the rate (measured on H200: 0.34 of cuBLAS with it).
const ROUND_TF32: f32 = 1.0 + 1.0 / 2048.0;

/// Side and k of `map`, whose values are `side + S·k`.
pub(super) fn coordinates(
    kernel: &mut Kernel,
    o: &OperandMaps,
    map: &Layout,
    at: &[Expr],
) -> Result<(Expr, Expr), PlanError> {
    let most = map.cosize() / o.side + 1;
    let side = Layout::flat(&[o.side, most], &[1, 0])?.compose(map)?;
    let k = Layout::flat(&[o.side, most], &[0, 1])?.compose(map)?;
    Ok((kernel.index(&side, at)?, kernel.index(&k, at)?))
}
