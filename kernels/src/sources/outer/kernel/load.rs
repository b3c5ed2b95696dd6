//! From global memory to registers, and from there to a stage: a thread's part of both operands' tiles.
//!
//! In the main loop every tile is whole: vectors without predicates, from one address an operand. Elsewhere each element has its own predicate,
//! and what is outside is 0.

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Addresses, Cache, Instructions, LoopHandle, Reg};
use layout_codegen::view::View;

use super::{DEPTH, Gemm, coordinates, place};
use crate::gemm::PlanError;

/// The values of a tile on their way: those of x, and those of y.
pub(super) type InFlight = [Vec<Reg>; 2];

impl Gemm<'_> {
    /// The first tile to stage 0. Without a product it is all zeros.
    pub(super) fn first_tile(&mut self) -> Result<(), PlanError> {
        self.k.comment("tile 0 to stage 0");
        let zero = self.k.constant(0);
        self.elements_to_stage(0, zero)?;
        self.k.barrier();
        Ok(())
    }

    /// Registers for a tile.
    fn registers(&mut self) -> InFlight {
        let (class, values) = (self.element.0, self.maps.values() as usize);
        [0, 1].map(|_| self.k.regs(class, values))
    }

    /// Where the tile after the one at the loop's counter begins for this thread: addresses that advance once a turn.
    pub(super) fn carried(&mut self, of: &LoopHandle) -> Result<[View; 2], PlanError> {
        let zero = self.k.constant(0);
        let depth = self.k.constant(DEPTH);
        let next = self.k.add(of.counter, depth);
        let mut at = |i: usize| -> Result<View, PlanError> {
            let operand = &self.operands[i];
            let by = place(operand.along, zero, next);
            let tile = operand.corner.moved(self.k, &by)?;
            Ok(tile.carried(self.k, ["pointer.x", "pointer.y"][i], of))
        };
        Ok([at(0)?, at(1)?])
    }

    /// Loads the tile that is `ahead` elements of k further than `from`: it is whole.
    pub(super) fn load_vectors(
        &mut self,
        from: &[View; 2],
        ahead: i64,
    ) -> Result<InFlight, PlanError> {
        let tile = self.registers();
        let zero = self.k.constant(0);
        let ahead = self.k.constant(ahead);
        let along = [0, 1].map(|i: usize| self.operands[i].along);
        for ((from, along), values) in from.iter().zip(along).zip(&tile) {
            let from = from.moved(self.k, &place(along, zero, ahead))?;
            let load = *self.maps.load(along);
            for (v, regs) in values.chunks(load.loaded as usize).enumerate() {
                let v = self.k.constant(v as i64 * load.loaded);
                let (side, step) = coordinates(self.k, &load.tv, zero, v)?;
                let at = from.element(self.k, &place(along, side, step))?;
                let ty = self.element.1;
                self.k.load(None, Cache::ReadOnly, ty, regs, at);
            }
        }
        Ok(tile)
    }

    /// Brings the tile that begins at k = `first` to a stage, element by element, with zeros outside: one operand after the other, so that few
    /// registers are on their way.
    pub(super) fn elements_to_stage(&mut self, stage: i64, first: Expr) -> Result<(), PlanError> {
        for i in 0..self.operands.len() {
            let values = self.load_elements(i, first)?;
            self.store_values(i, stage, first, &values)?;
        }
        Ok(())
    }

    /// Loads an operand's tile that begins at `first`, element by element, with zeros outside.
    fn load_elements(&mut self, i: usize, first: Expr) -> Result<Vec<Reg>, PlanError> {
        // What only this path needs does not occupy registers elsewhere.
        self.k.open_region();
        let (class, ty, none) = self.element;
        let values = self.k.regs(class, self.maps.values() as usize);
        let zero = self.k.constant(0);
        let operand = &self.operands[i];
        let (along, left, step) = (operand.along, operand.left, operand.step);
        let load = *self.maps.load(along);
        let corner = operand.corner.clone();
        let from = corner.moved(self.k, &place(along, zero, first))?;
        let from = from.pinned(self.k);
        let left_k = self.k.sub(self.depth, first);
        let left_k = self.k.sub(left_k, step);
        for (v, &r) in values.iter().enumerate() {
            let v = self.k.constant(v as i64);
            let (side, step) = coordinates(self.k, &load.tv, zero, v)?;
            let at = from.element(self.k, &place(along, side, step))?;
            let [side, step] = [side, step].map(|e| self.k.as_const(e).unwrap_or(0));
            let inside = self.k.compare_here(Cmp::Gt, left, side, None);
            let inside = self.k.compare_here(Cmp::Gt, left_k, step, Some(inside));
            self.k.set(ty, r, none);
            self.k
                .load(Some(inside.into()), Cache::ReadOnly, ty, &[r], at);
        }
        self.k.close_region();
        Ok(values)
    }

    /// Puts the tile that begins at k = `first` into a stage.
    pub(super) fn store_tile(
        &mut self,
        stage: i64,
        first: Expr,
        tile: &InFlight,
    ) -> Result<(), PlanError> {
        for (i, values) in tile.iter().enumerate() {
            self.store_values(i, stage, first, values)?;
        }
        Ok(())
    }

    /// Puts an operand's tile that begins at k = `first` into a stage.
    fn store_values(
        &mut self,
        i: usize,
        stage: i64,
        first: Expr,
        values: &[Reg],
    ) -> Result<(), PlanError> {
        let zero = self.k.constant(0);
        let stage = self.k.constant(stage);
        let operand = &self.operands[i];
        let (tag, to) = (operand.side.store(), operand.stores.clone());
        let load = *self.maps.load(operand.along);
        for (v, regs) in values.chunks(load.stored as usize).enumerate() {
            let v = self.k.constant(v as i64 * load.stored);
            let (side, step) = coordinates(self.k, &load.tv, zero, v)?;
            let at = to.element(self.k, &[side, step, stage, first])?;
            self.k.store(None, self.element.1, regs, at);
            self.k.tag(tag);
        }
        Ok(())
    }

    /// Elements of k that a turn of either loop multiplies.
    pub(super) fn turn() -> i64 {
        super::STAGES * DEPTH
    }
}
