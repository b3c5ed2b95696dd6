//! Global to shared memory: `cp.async` where rows are aligned to words, loads and stores through registers where they are not.
//!
//! Rows of single bytes or halves are read in pieces by neighbouring lanes, put together to words, and stored as words: the loads of a
//! part are in flight while a k step is multiplied, and land after it.

use layout_core::Layout;

use super::Gemm;
use crate::index::layout::{combined_index, index, swizzled_index};
use crate::index::{Expr, Pool};
use crate::mma::operand::OperandMaps;
use crate::plan::PlanError;
use crate::ptx::{Address, Class, Kernel, Pred, Reg, Space};

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
        let (edge, done) = (self.k.label("edge"), self.k.label("copied"));
        if may_be_absent {
            let absent = self.k.compare("ge", at, self.depth);
            self.k.branch(Some(absent.into()), &done, true);
        }
        let tile = self.k.pool.constant(self.plan.depth);
        let end = self.k.pool.add(at, tile);
        let whole = self.k.compare("le", end, self.depth);
        let fast = self.k.combine("and", whole, self.inside, level);
        self.k.branch(Some(Pred::from(fast).not()), &edge, true);
        for (edge_here, skip) in [(false, true), (true, false)] {
            if edge_here {
                self.k.place(&edge);
            }
            // A few at a time, so that registers suffice.
            let parts = self.parts();
            for part in 0..parts {
                let flying = self.copy_part(k0, offset, stage, edge_here, (part, parts))?;
                self.land(flying);
            }
            if skip {
                self.k.branch(None, &done, true);
            }
        }
        self.k.place(&done);
        self.commit();
        Ok(())
    }

    /// Part `part.0` of `part.1` of the vectors of both operands.
    pub(super) fn copy_part(
        &mut self,
        k0: Expr,
        offset: Expr,
        stage: i64,
        edge: bool,
        part: (i64, i64),
    ) -> Result<InFlight, PlanError> {
        let mut all = InFlight::default();
        for i in 0..2 {
            all.stores
                .extend(self.copy_side(i, (k0, offset), stage, edge, part)?);
        }
        Ok(all)
    }

    /// Puts into shared memory what came through registers.
    pub(super) fn land(&mut self, all: InFlight) {
        for (pieces, size, target, tag) in all.stores {
            let words = put_together(self.k, &pieces, size);
            self.k.store(None, "b32", &words, target);
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
        if self.plan.arch >= 80 {
            self.k.ins("cp.async.commit_group");
        }
    }

    /// Waits until all groups of asynchronous copies but the youngest `pending` have arrived.
    pub(super) fn wait(&mut self, pending: i64) {
        if self.plan.arch >= 80 {
            self.k.ins(format!("cp.async.wait_group {pending}"));
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
        let (o, ld, corner, tag) = (
            self.sides[i].maps,
            self.sides[i].ld,
            self.sides[i].corner,
            self.sides[i].tag,
        );
        let (origin, extent, base) = (
            self.sides[i].origin,
            self.sides[i].extent,
            self.sides[i].base,
        );
        let zero = self.k.pool.constant(0);
        let moved = if o.k_major {
            global(&mut self.k.pool, o, ld, zero, k0)?
        } else {
            global(&mut self.k.pool, o, ld, k0, zero)?
        };
        let pointer = self.k.pool.add(corner, moved);
        let pointer = self.k.pool.pin(pointer);
        let (row, col) = copy_coordinates(&mut self.k.pool, o, self.tid, zero)?;
        // Elements left from this thread's first one to either edge.
        let k_at = self.k.pool.add(k0, offset);
        let (left_row, left_col) = {
            let pool = &mut self.k.pool;
            let left_side = pool.sub(extent, origin);
            let left_k = pool.sub(self.depth, k_at);
            let (r, c) = if o.k_major {
                (left_side, left_k)
            } else {
                (left_k, left_side)
            };
            (pool.sub(r, row), pool.sub(c, col))
        };
        let vectors = o.copy.size() / self.plan.thread_count() / o.vector;
        let mut stores = Vec::new();
        for v in vectors * part.0 / part.1..vectors * (part.0 + 1) / part.1 {
            let value = self.k.pool.constant(v * o.vector);
            let (dr, dc) = copy_coordinates(&mut self.k.pool, o, zero, value)?;
            let (gr, gc) = if o.k_major {
                (dr, self.k.pool.add(dc, offset))
            } else {
                (self.k.pool.add(dr, offset), dc)
            };
            let distance = global(&mut self.k.pool, o, ld, gr, gc)?;
            let source = self.k.pool.add(pointer, distance);
            // Swizzled as a whole: row and column of the vector, not of the thread.
            let (r, c) = (self.k.pool.add(row, dr), self.k.pool.add(col, dc));
            let byte = swizzled_index(&mut self.k.pool, &o.shared, &[r, c])?;
            let start = self.k.pool.constant(stage * self.stage_bytes + base);
            let byte = self.k.pool.add(byte, start);
            let byte = self.k.pool.add(byte, self.smem);
            let target = self.k.address(Space::Shared, byte);
            let constant = |pool: &Pool, e: Expr| pool.as_const(e).unwrap_or(0);
            let (dr, dc) = (constant(&self.k.pool, dr), constant(&self.k.pool, dc));
            let left = edge.then_some((left_row, left_col, dr, dc));
            if o.copies.asynchronous {
                self.copy_async(o, source, target, left);
                self.k.tag(tag);
            } else {
                let (pieces, size) = self.load_pieces(o, source, left);
                stores.push((pieces, size, target, tag));
            }
        }
        self.k.close_region();
        Ok(stores)
    }

    /// `cp.async` of one vector; at an edge, with the number of its bytes that are inside.
    fn copy_async(
        &mut self,
        o: &OperandMaps,
        source: Expr,
        target: Address,
        left: Option<(Expr, Expr, i64, i64)>,
    ) {
        let source = self.k.address(Space::Global, source);
        let bytes = o.copies.bytes;
        let cache = if o.copies.cached { "ca" } else { "cg" };
        let mut text = format!("cp.async.{cache}.shared.global {{0}}, {{1}}, {bytes}");
        if let Some((left_row, left_col, dr, dc)) = left {
            let size = self.bytes_inside(left_row, left_col, (dr, dc), o);
            text.push_str(", ");
            text.push_str(&size.to_string());
        }
        self.k.memory_ins(None, &text, &[target, source]);
    }

    /// Loads of one vector in pieces as wide as the rows allow; at an edge element by element, with zeros outside. Returns the pieces
    /// and their size.
    fn load_pieces(
        &mut self,
        o: &OperandMaps,
        source: Expr,
        left: Option<(Expr, Expr, i64, i64)>,
    ) -> (Vec<Reg>, i64) {
        let size = if left.is_some() {
            o.bytes
        } else {
            o.copies.bytes
        };
        let row_inside =
            left.map(|(left_row, _, dr, _)| self.k.compare_here("gt", left_row, dr, None));
        let mut pieces = Vec::new();
        for at in (0..o.copies.unit()).step_by(size as usize) {
            let offset = self.k.pool.constant(at);
            let from = self.k.pool.add(source, offset);
            let from = self.k.address(Space::Global, from);
            let regs = self.k.regs(Class::B32, (size / 4).max(1) as usize);
            let guard = left.map(|(_, left_col, _, dc)| {
                for r in &regs {
                    self.k.ins(format!("mov.b32 {r}, 0"));
                }
                let element = dc + at / o.bytes;
                Pred::from(self.k.compare_here("gt", left_col, element, row_inside))
            });
            self.k.load(guard, "", bits(size), &regs, from);
            pieces.extend(regs);
        }
        (pieces, size)
    }

    /// How many of a vector's bytes are inside the matrix.
    fn bytes_inside(
        &mut self,
        left_row: Expr,
        left_col: Expr,
        (dr, dc): (i64, i64),
        o: &OperandMaps,
    ) -> Reg {
        let row_inside = self.k.compare_here("gt", left_row, dr, None);
        let left = self.k.value(left_col);
        let size = self.k.reg(Class::B32);
        self.k.ins(format!("sub.s32 {size}, {left}, {dc}"));
        self.k.ins(format!("max.s32 {size}, {size}, 0"));
        self.k.ins(format!("min.s32 {size}, {size}, {}", o.vector));
        if o.bytes > 1 {
            self.k.ins(format!(
                "shl.b32 {size}, {size}, {}",
                o.bytes.trailing_zeros()
            ));
        }
        self.k
            .ins(format!("selp.b32 {size}, {size}, 0, {row_inside}"));
        size
    }
}

/// The type of a load of `size` bytes into 32-bit registers.
pub(in crate::mma) fn bits(size: i64) -> &'static str {
    match size {
        1 => "u8",
        2 => "u16",
        _ => "b32",
    }
}

/// Words from pieces of `size` bytes, each in the low bits of a register.
pub(in crate::mma) fn put_together(k: &mut Kernel, pieces: &[Reg], size: i64) -> Vec<Reg> {
    let join = |k: &mut Kernel, low: Reg, high: Reg, selector: &str| {
        let word = k.reg(Class::B32);
        k.ins(format!("prmt.b32 {word}, {low}, {high}, {selector}"));
        word
    };
    match size {
        1 => pieces
            .chunks(4)
            .map(|b| {
                let low = join(k, b[0], b[1], "0x0040");
                let high = join(k, b[2], b[3], "0x0040");
                join(k, low, high, "0x5410")
            })
            .collect(),
        2 => pieces
            .chunks(2)
            .map(|h| join(k, h[0], h[1], "0x5410"))
            .collect(),
        _ => pieces.to_vec(),
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

/// Byte distance in the operand's matrix of (row, column): `(row,column):(ld,1)`, times the element's bytes.
pub(super) fn global(
    pool: &mut Pool,
    o: &OperandMaps,
    ld: Expr,
    row: Expr,
    col: Expr,
) -> Result<Expr, PlanError> {
    let unit = |r: i64, c: i64| Layout::flat(&[1, 1], &[o.bytes * r, o.bytes * c]);
    let terms = [(None, unit(0, 1)?), (Some(ld), unit(1, 0)?)];
    Ok(combined_index(pool, &terms, &[row, col])?)
}
