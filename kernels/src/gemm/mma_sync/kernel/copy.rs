//! Global to shared memory: `cp.async` where rows are aligned to words, loads and stores through registers where they are not.
//!
//! Rows of single bytes or halves are read in pieces by neighbouring lanes, put together to words, and stored as words: the loads of a
//! part are in flight while a k step is multiplied, and land after it.

use std::ops::Range;

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::Kernel;
use layout_codegen::ir::instructions::{
    Address, Addresses, Cache, Class, Instructions, Logic, LoopHandle, Pred, Reg, Type,
};
use layout_codegen::view::View;
use layout_core::Layout;

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::mma_sync::operand::OperandMaps;
use crate::gemm::pieces::{bits, put_together};

/// Pieces that a thread has in flight at most.
const IN_FLIGHT: i64 = 32;

/// The pieces of a word or vector, the size of each, where it goes and the tag of the store.
type Store = (Vec<Reg>, i64, Address, &'static str);

/// What is on its way through registers.
#[derive(Default)]
pub(super) struct InFlight {
    stores: Vec<Store>,
}

impl Gemm<'_> {
    /// Copies the tile at `k0 + offset` to stage `stage`, if there is one and unless it is the first, which is copied in any
    /// case: without products it is all zeros.
    pub(super) fn copy_tile(
        &mut self,
        k0: Expr,
        offset: Expr,
        stage: i64,
        level: u8,
        may_be_absent: bool,
    ) -> Result<(), PlanError> {
        let at = self.k.add(k0, offset);
        if may_be_absent {
            let absent = self.k.compare(Cmp::Ge, at, self.depth);
            self.k.begin_if(Pred::from(absent).not(), true);
            self.k.name_branch("absent", "copied");
        }
        let tile = self.k.constant(self.plan.depth());
        let end = self.k.add(at, tile);
        let whole = self.k.compare(Cmp::Le, end, self.depth);
        let fast = self.k.combine(Logic::And, whole, self.inside, level);
        self.k.begin_if(fast, true);
        self.k.name_branch("edge", "copied");
        for edge_here in [false, true] {
            if edge_here {
                self.k.otherwise();
            }
            // A few at a time, so that registers suffice.
            let parts = self.parts();
            for part in 0..parts {
                let flying = self.copy_part(k0, offset, stage, edge_here, (part, parts))?;
                self.land(flying);
            }
        }
        self.k.end_if();
        if may_be_absent {
            self.k.end_if();
        }
        self.commit();
        Ok(())
    }

    /// Part `part.0` of `part.1` of the vectors of all operands.
    pub(super) fn copy_part(
        &mut self,
        k0: Expr,
        offset: Expr,
        stage: i64,
        edge: bool,
        part: (i64, i64),
    ) -> Result<InFlight, PlanError> {
        let mut all = InFlight::default();
        for i in 0..self.sides.len() {
            let o = self.sides[i].maps;
            let vectors = o.copy.size() / self.plan.thread_count() / o.vector;
            let range = vectors * part.0 / part.1..vectors * (part.0 + 1) / part.1;
            all.stores
                .extend(self.copy_side(i, (k0, offset), stage, edge, range)?);
        }
        Ok(all)
    }

    /// Puts into shared memory what came through registers.
    pub(super) fn land(&mut self, all: InFlight) {
        for (pieces, size, target, tag) in all.stores {
            let words = put_together(self.k, &pieces, size);
            self.k.store(None, Type::B32, &words, target);
            self.k.tag(tag);
        }
    }

    /// Into how many parts the copies of a tile fall where they are made at once: registers hold what is in flight.
    pub(super) fn parts(&self) -> i64 {
        let pieces = |o: &OperandMaps| {
            if o.copies.asynchronous {
                0
            } else {
                o.copy.size() / self.plan.thread_count() * o.bytes / o.copies.bytes
            }
        };
        let all = self.sides.iter().map(|s| pieces(s.maps)).sum::<i64>();
        (all / IN_FLIGHT).max(1)
    }

    /// Closes a group of asynchronous copies.
    pub(super) fn commit(&mut self) {
        if self.has_groups() {
            self.k.commit_group();
        }
    }

    /// Waits until all groups of asynchronous copies but the youngest `pending` have arrived.
    pub(super) fn wait(&mut self, pending: i64) {
        if self.has_groups() {
            self.k.wait_group(pending as u32);
        }
    }

    /// Whether there are groups of asynchronous copies. Where all copies of multiply-adds go through registers, a group takes an issue slot for nothing.
    pub(super) fn has_groups(&self) -> bool {
        let any = self.sides.iter().any(|s| s.maps.copies.asynchronous);
        self.plan.is_asynchronous() && (any || !self.plan.is_fma())
    }

    /// Vectors `range` of this thread's of one operand; at an edge, each with what of it is inside. Returns what is still to be stored.
    fn copy_side(
        &mut self,
        i: usize,
        (k0, offset): (Expr, Expr),
        stage: i64,
        edge: bool,
        range: Range<i64>,
    ) -> Result<Vec<Store>, PlanError> {
        let side = &self.sides[i];
        let (o, tag, origin, extent) = (side.maps, side.tag, side.origin, side.extent);
        let corner = side.corner.clone();
        let carried = side.carried.clone().filter(|_| !edge);
        let zero = self.k.constant(0);
        let k_at = self.k.add(k0, offset);
        let hoisted = carried.is_some();
        let mut targets = Vec::new();
        if hoisted {
            // Addresses in shared memory are the same in every iteration: they stand before the loop.
            for v in range.clone() {
                targets.push(self.targets(i, v, (stage, k_at))?);
            }
        }
        // Nothing of this is needed elsewhere; but where k is contiguous, tiles differ by immediates, and from row to row it is as far in every iteration.
        if !hoisted {
            self.k.open_region();
        }
        let (down, across) = o.place(zero, k0);
        let tile = match carried {
            Some(tile) => tile,
            None => corner.moved(self.k, &[down, across])?.pinned(self.k),
        };
        let (row, col) = copy_coordinates(self.k, o, self.tid, zero)?;
        // Elements left from this thread's first one to either edge.
        let (left_row, left_col) = {
            let kernel = &mut *self.k;
            let left_side = kernel.sub(extent, origin);
            let left_k = kernel.sub(self.depth, k_at);
            let (r, c) = o.place(left_side, left_k);
            (kernel.sub(r, row), kernel.sub(c, col))
        };
        let mut stores: Vec<Store> = Vec::new();
        for v in range.clone() {
            let value = self.k.constant(v * o.vector);
            let (dr, dc) = copy_coordinates(self.k, o, zero, value)?;
            let (down, across) = o.place(zero, offset);
            let from = [self.k.add(dr, down), self.k.add(dc, across)];
            let targets = match targets.get((v - range.start) as usize) {
                Some(known) => Vec::clone(known),
                None => self.targets(i, v, (stage, k_at))?,
            };
            let constant = |k: &Kernel, e: Expr| k.as_const(e).unwrap_or(0);
            let (dr, dc) = (constant(self.k, dr), constant(self.k, dc));
            let left = edge.then_some((left_row, left_col, dr, dc));
            if o.copies.asynchronous {
                let source = tile.element(self.k, &from)?;
                self.copy_async(o, source, targets[0], left);
                self.k.tag(tag);
                continue;
            }
            let (pieces, size) = self.load_pieces(o, &tile, from, left)?;
            if !o.transposes {
                stores.push((pieces, size, targets[0], tag));
                continue;
            }
            let each = pieces.into_iter().zip(targets);
            stores.extend(each.map(|(piece, target)| (vec![piece], o.bytes, target, tag)));
        }
        if !hoisted {
            self.k.close_region();
        }
        Ok(stores)
    }

    /// Where vector `v` of a thread goes: one address, or one for each element where rows become columns.
    fn targets(
        &mut self,
        i: usize,
        v: i64,
        (stage, k_at): (i64, Expr),
    ) -> Result<Vec<Address>, PlanError> {
        let (o, stages) = (self.sides[i].maps, self.sides[i].stages.clone());
        let kernel = &mut *self.k;
        let (zero, value) = (kernel.constant(0), kernel.constant(v * o.vector));
        let (row, col) = copy_coordinates(kernel, o, self.tid, zero)?;
        let (dr, dc) = copy_coordinates(kernel, o, zero, value)?;
        // Swizzled as a whole: row and column of the vector, not of the thread.
        let (r, c) = (kernel.add(row, dr), kernel.add(col, dc));
        let stage = kernel.constant(stage);
        let mut targets = Vec::new();
        for j in 0..if o.transposes { o.vector } else { 1 } {
            let j = self.k.constant(j);
            let c = self.k.add(c, j);
            targets.push(stages.element(self.k, &[r, c, stage, k_at])?);
        }
        Ok(targets)
    }

    /// Whether all operands of multiply-adds go through registers as whole vectors, and there are so many sums that registers are scarce.
    pub(super) fn is_all_through_registers(&self) -> bool {
        let wide = self.plan.variant.copies.iter().all(|&bytes| bytes == 16);
        let all = self.sides.iter().all(|s| s.maps.transposes);
        wide && all && self.plan.sums_of_a_thread() >= 64 && self.plan.depth() >= 16
    }

    /// The operands from where the tile at the loop's counter begins: addresses that advance once an iteration, and what is added to them stands before the
    /// loop. Where all go through registers: 92.1 instead of 89.0 % of the loop are products, and on an H100 it is faster (0.93 of cuBLAS instead of 0.92).
    /// With `cp.async` it was slower in every case (tn 0.94 instead of 1.00), since ptxas then assigns registers with more bank conflicts.
    pub(super) fn carry(&mut self, of: &LoopHandle) -> Result<(), PlanError> {
        if !self.is_all_through_registers() {
            return Ok(());
        }
        for i in 0..self.sides.len() {
            let zero = self.k.constant(0);
            let (down, across) = self.sides[i].maps.place(zero, of.counter);
            let corner = self.sides[i].corner.clone();
            let tile = corner.moved(self.k, &[down, across])?;
            let name = ["pointer.a", "pointer.b", "pointer.b2"][i];
            self.sides[i].carried = Some(tile.carried(self.k, name, of));
        }
        Ok(())
    }

    /// Ends what [`Gemm::carry`] began: behind the loop.
    pub(super) fn carry_no_more(&mut self) {
        for side in &mut self.sides {
            side.carried = None;
        }
    }

    /// `cp.async` of one vector; at an edge, with the number of its bytes that are inside.
    fn copy_async(
        &mut self,
        o: &OperandMaps,
        source: Address,
        target: Address,
        left: Option<(Expr, Expr, i64, i64)>,
    ) {
        let size = left
            .map(|(left_row, left_col, dr, dc)| self.bytes_inside(left_row, left_col, (dr, dc), o));
        let how = (o.copies.bytes as u32, o.copies.cached);
        self.k.copy_async(target, source, how, size);
    }

    /// Loads of one vector in pieces as wide as the rows allow; at an edge element by element, with zeros outside. Returns the pieces
    /// and their size.
    fn load_pieces(
        &mut self,
        o: &OperandMaps,
        tile: &View,
        [row, col]: [Expr; 2],
        left: Option<(Expr, Expr, i64, i64)>,
    ) -> Result<(Vec<Reg>, i64), PlanError> {
        let size = if left.is_some() {
            o.bytes
        } else {
            o.copies.bytes
        };
        let row_inside =
            left.map(|(left_row, _, dr, _)| self.k.compare_here(Cmp::Gt, left_row, dr, None));
        let mut pieces = Vec::new();
        for at in (0..o.copies.unit()).step_by(size as usize) {
            let element = self.k.constant(at / o.bytes);
            let col = self.k.add(col, element);
            let from = tile.element(self.k, &[row, col])?;
            let regs = self.k.regs(Class::B32, (size / 4).max(1) as usize);
            let guard = left.map(|(_, left_col, _, dc)| {
                for r in &regs {
                    self.k.set(Type::B32, *r, 0);
                }
                let element = dc + at / o.bytes;
                Pred::from(self.k.compare_here(Cmp::Gt, left_col, element, row_inside))
            });
            self.k.load(guard, Cache::Coherent, bits(size), &regs, from);
            pieces.extend(regs);
        }
        Ok((pieces, size))
    }

    /// How many of a vector's bytes are inside the matrix.
    fn bytes_inside(
        &mut self,
        left_row: Expr,
        left_col: Expr,
        (dr, dc): (i64, i64),
        o: &OperandMaps,
    ) -> Reg {
        let row_inside = self.k.compare_here(Cmp::Gt, left_row, dr, None);
        self.k
            .bytes_inside(row_inside, (left_col, dc), (o.vector, o.bytes))
    }
}

/// Row and column of a thread's value in the shared tile.
pub(super) fn copy_coordinates(
    kernel: &mut Kernel,
    o: &OperandMaps,
    thread: Expr,
    value: Expr,
) -> Result<(Expr, Expr), PlanError> {
    let row = Layout::flat(&[o.cols, o.rows], &[0, 1])?.compose(&o.copy)?;
    let col = Layout::flat(&[o.cols, o.rows], &[1, 0])?.compose(&o.copy)?;
    Ok((
        kernel.index(&row, &[thread, value])?,
        kernel.index(&col, &[thread, value])?,
    ))
}
