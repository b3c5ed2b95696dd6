//! Global to shared memory: `cp.async` where rows are aligned to words, loads and stores through registers where they are not.
//!
//! Rows of single bytes or halves are read in pieces by neighbouring lanes, put together to words, and stored as words: the loads of a
//! part are in flight while a k step is multiplied, and land after it.

use layout_core::Layout;

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::mma_sync::operand::OperandMaps;
use crate::gemm::pieces::{bits, put_together};
use crate::index::layout::index;
use crate::index::{Expr, Pool};
use crate::ir::{Address, Cache, Class, Cmp, Logic, Pred, Reg, Type};
use crate::view::View;

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
        let at = self.k.pool.add(k0, offset);
        if may_be_absent {
            let absent = self.k.compare(Cmp::Ge, at, self.depth);
            self.k.begin_if(Pred::from(absent).not(), true);
            self.k.name_branch("absent", "copied");
        }
        let tile = self.k.pool.constant(self.plan.depth);
        let end = self.k.pool.add(at, tile);
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
            all.stores
                .extend(self.copy_side(i, (k0, offset), stage, edge, part)?);
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
        if self.plan.has_cp_async() {
            self.k.commit_group();
        }
    }

    /// Waits until all groups of asynchronous copies but the youngest `pending` have arrived.
    pub(super) fn wait(&mut self, pending: i64) {
        if self.plan.has_cp_async() {
            self.k.wait_group(pending as u32);
        }
    }

    /// This thread's vectors of one operand; at an edge, each with what of it is inside. Returns what is still to be stored.
    fn copy_side(
        &mut self,
        i: usize,
        (k0, offset): (Expr, Expr),
        stage: i64,
        edge: bool,
        part: (i64, i64),
    ) -> Result<Vec<Store>, PlanError> {
        // Nothing of this is needed elsewhere.
        self.k.open_region();
        let side = &self.sides[i];
        let (o, tag, origin, extent) = (side.maps, side.tag, side.origin, side.extent);
        let (corner, stages) = (side.corner.clone(), side.stages.clone());
        let zero = self.k.pool.constant(0);
        let (down, across) = o.place(zero, k0);
        let tile = corner.moved(self.k, &[down, across])?.pinned(self.k);
        let (row, col) = copy_coordinates(&mut self.k.pool, o, self.tid, zero)?;
        // Elements left from this thread's first one to either edge.
        let k_at = self.k.pool.add(k0, offset);
        let (left_row, left_col) = {
            let pool = &mut self.k.pool;
            let left_side = pool.sub(extent, origin);
            let left_k = pool.sub(self.depth, k_at);
            let (r, c) = o.place(left_side, left_k);
            (pool.sub(r, row), pool.sub(c, col))
        };
        let vectors = o.copy.size() / self.plan.thread_count() / o.vector;
        let mut stores = Vec::new();
        for v in vectors * part.0 / part.1..vectors * (part.0 + 1) / part.1 {
            let value = self.k.pool.constant(v * o.vector);
            let (dr, dc) = copy_coordinates(&mut self.k.pool, o, zero, value)?;
            let (down, across) = o.place(zero, offset);
            let from = [self.k.pool.add(dr, down), self.k.pool.add(dc, across)];
            // Swizzled as a whole: row and column of the vector, not of the thread.
            let (r, c) = (self.k.pool.add(row, dr), self.k.pool.add(col, dc));
            let stage = self.k.pool.constant(stage);
            let mut targets = Vec::new();
            for j in 0..if o.transposes { o.vector } else { 1 } {
                let j = self.k.pool.constant(j);
                let c = self.k.pool.add(c, j);
                targets.push(stages.element(self.k, &[r, c, stage, k_at])?);
            }
            let constant = |pool: &Pool, e: Expr| pool.as_const(e).unwrap_or(0);
            let (dr, dc) = (constant(&self.k.pool, dr), constant(&self.k.pool, dc));
            let left = edge.then_some((left_row, left_col, dr, dc));
            if o.copies.asynchronous {
                let source = tile.element(self.k, &from)?;
                self.copy_async(o, source, targets[0], left);
                self.k.tag(tag);
                continue;
            }
            let (pieces, size) = self.load_pieces(o, &tile, from, left)?;
            if o.transposes {
                let each = pieces.into_iter().zip(targets);
                stores.extend(each.map(|(piece, target)| (vec![piece], o.bytes, target, tag)));
            } else {
                stores.push((pieces, size, targets[0], tag));
            }
        }
        self.k.close_region();
        Ok(stores)
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
            let element = self.k.pool.constant(at / o.bytes);
            let col = self.k.pool.add(col, element);
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
    pool: &mut Pool,
    o: &OperandMaps,
    thread: Expr,
    value: Expr,
) -> Result<(Expr, Expr), PlanError> {
    let row = Layout::flat(&[o.cols, o.rows], &[0, 1])?.compose(&o.copy)?;
    let col = Layout::flat(&[o.cols, o.rows], &[1, 0])?.compose(&o.copy)?;
    Ok((
        index(pool, &row, &[thread, value])?,
        index(pool, &col, &[thread, value])?,
    ))
}
