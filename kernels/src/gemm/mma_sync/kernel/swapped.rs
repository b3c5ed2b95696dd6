//! The consumers of a product with A and B swapped in tf32: Bᵀ through registers, A by descriptors ([`swapped`](super::super::swapped)).
//!
//! ```text
//! wait full(i), read step 0
//! for each step of 8 k
//!   fence, wgmma, commit              the tensor cores have the step before, and this one
//!   read the next step                of the same stage, into registers of its own
//!   wait for the step before          all but the youngest group
//!   behind step 0: give back i − 1    its last products are complete, and its reads
//! ```
//!
//! A product is always in flight, and each step of a stage has its own registers: those being read into were last used four products ago.

use std::sync::Arc;

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{
    Addresses, Class, Factor, Instructions, Reg, RingHandle, Side,
};
use layout_core::atoms::wgmma;

use super::Gemm;
use super::fragment::coordinates;
use crate::gemm::PlanError;

/// A stage that is held: its use, its slot, its first k.
#[derive(Clone, Copy)]
struct Stage<'r> {
    ring: &'r RingHandle,
    index: Expr,
    slot: Expr,
    first: Expr,
}

impl Gemm<'_> {
    /// Sums of all tiles in `acc`.
    pub(super) fn multiply_from_registers(
        &mut self,
        ring: &RingHandle,
        before: Expr,
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let atom = self.maps.atom;
        let (operand, sum) = (atom.a_type, atom.c_type);
        let instruction = Arc::new(wgmma(self.plan.tile_of_c().0, operand, sum)?);
        let each = instruction.registers()[0] as usize;
        let sums = acc.concat().concat();
        let zero = self.k.constant(0);
        let lane0 = self.k.compare(Cmp::Eq, self.lane, zero);
        let add = self.k.compare(Cmp::Eq, zero, zero);
        let (depth, most) = (self.plan.depth(), self.plan.limit() as i64);
        let steps = depth / instruction.k;
        let fragments: Vec<_> = (0..steps).map(|_| self.k.regs(Class::B32, each)).collect();
        let iteration = self.k.open_loop("multiply", 0, depth, most);
        let first = iteration.counter;
        let index = self.k.div(first, depth);
        let index = self.k.add(before, index);
        self.k.wait_stage(ring, Side::Full, index)?;
        let slot = self.k.slot(ring, index);
        let stage = Stage {
            ring,
            index,
            slot,
            first,
        };
        self.read_fragment(&stage, 0, &fragments[0])?;
        for step in 0..steps {
            let k = self.k.constant(step * instruction.k);
            let now = &fragments[step as usize];
            self.k.wgmma_fence();
            let b = self.matrix(0, ring, (zero, k), (index, slot, first))?;
            let a = Factor::Fragment(now.clone());
            self.k.wgmma(&instruction, &sums, (a, b), (false, add));
            self.k.wgmma_commit();
            if let Some(next) = fragments.get(step as usize + 1) {
                self.read_fragment(&stage, step + 1, next)?;
            }
            self.k.wgmma_wait(1);
            if step == 0 {
                // Lanes have read their parts of the stage before.
                self.k.warp_barrier();
                self.release(ring, index, lane0)?;
            }
        }
        self.k.close_loop(&iteration, self.depth);
        self.k.wgmma_wait(0);
        Ok(())
    }

    /// The fragment of a step, two neighbours at a time.
    fn read_fragment(&mut self, stage: &Stage<'_>, step: i64, to: &[Reg]) -> Result<(), PlanError> {
        let side = &self.sides[1];
        let (o, stages, tag) = (side.maps, side.stages.clone(), side.read_tag);
        let columns = self.plan.columns_of_warps()?;
        for (pair, to) in (0..).zip(to.chunks(2)) {
            let kernel = &mut *self.k;
            let value = kernel.constant(2 * pair);
            let warp = kernel.index(&columns, &[self.warp.1])?;
            let (column, k) = coordinates(kernel, o, &o.fragment, &[self.lane, value])?;
            let column = kernel.add(warp, column);
            let before = kernel.constant(step * self.maps.atom.k);
            let k = kernel.add(k, before);
            let (row, col) = o.place(column, k);
            let at = stages.element(self.k, &[row, col, stage.slot, stage.first])?;
            self.k.fetch(to, at, stage.ring, stage.index);
            self.k.tag(tag);
        }
        Ok(())
    }
}
