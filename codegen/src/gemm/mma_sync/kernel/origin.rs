//! Where a block is in C and along k, and what of A, B and C is its own.

use layout_core::Layout;

use crate::gemm::mma_sync::{Depth, GROUP, Maps, MmaPlan};
use crate::gemm::{LIMIT, PlanError};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Axis, Cmp, Extent, Kernel, Logic, Reg, Role, Stride};
use crate::view::View;

/// The kernel's parameters that say where A, B and C are.
pub(super) struct Operands {
    /// The addresses of A, B and C (or partial sums).
    pub(super) pointers: [Expr; 3],
    /// Their leading dimensions.
    pub(super) ld: [Expr; 3],
    pub(super) m: Expr,
    pub(super) n: Expr,
    pub(super) k: Expr,
}

/// One direction of a block's tile in C.
pub(super) struct Span {
    pub(super) origin: Expr,
    pub(super) tile: i64,
    /// Rows or columns that can be read.
    pub(super) size: Expr,
    /// What a tile's place and its size must be multiples of, so that copies and stores stay aligned.
    pub(super) multiple: i64,
}

impl Span {
    /// Where the tile is computed, and the two reasons why all of it can be read there: it is whole where it is, or it was moved. The last
    /// tile is moved back until it ends with C, so that its copies need no predicates; what another block owns is not stored. Where that is
    /// not possible it stays.
    pub(super) fn moved_back(&self, k: &mut Kernel) -> (Expr, [Reg; 2]) {
        let tile = k.pool.constant(self.tile);
        let last = k.pool.add(self.origin, tile);
        let whole = k.compare(Cmp::Le, last, self.size);
        let large = k.compare(Cmp::Ge, self.size, tile);
        let movable = if self.multiple == 1 {
            large
        } else {
            let rest = k.pool.and(self.size, (self.multiple - 1) as u64);
            let zero = k.pool.constant(0);
            let aligned = k.compare(Cmp::Eq, rest, zero);
            k.combine(Logic::And, large, aligned, 0)
        };
        let back = k.pool.sub(self.size, tile);
        // Below 0 it is not taken.
        let back = k.bounded(back, LIMIT as i64);
        let back = k.select(movable, back, self.origin);
        let first = k.select(whole, self.origin, back);
        (first, [whole, movable])
    }
}

/// Where a block begins: in C, and along k.
pub(super) struct Origin {
    pub(super) row: Expr,
    pub(super) col: Expr,
    /// The first product of this block's sums.
    pub(super) k: Expr,
    /// How many there are.
    pub(super) depth: Expr,
    /// Which product of a batch, or which part of the sums.
    layer: Option<Expr>,
    layers: Depth,
}

impl Origin {
    pub(super) fn new(
        k: &mut Kernel,
        plan: MmaPlan,
        (depth, chunk): (Expr, Option<Expr>),
    ) -> Result<Self, PlanError> {
        let hi = LIMIT as i64;
        let (tm, tn) = plan.tile;
        let zero = k.pool.constant(0);
        let by = k.block_index(Axis::Y, 65_535);
        let col = index(&mut k.pool, &Layout::mode(1, tn)?, &[by])?;
        let layers = plan.variant.depth;
        if layers == Depth::Groups {
            // Blocks run down a group of rows, then across the columns, then to the next group.
            let bx = k.block_index(Axis::X, GROUP);
            let bz = k.block_index(Axis::Z, (hi / tm / GROUP as i64).min(65_534) as u64 + 1);
            let group = Layout::flat(&[GROUP as i64, 1], &[tm, tm * GROUP as i64])?;
            let row = index(&mut k.pool, &group, &[bx, bz])?;
            return Ok(Self {
                row,
                col,
                k: zero,
                depth,
                layer: None,
                layers,
            });
        }
        let bx = k.block_index(Axis::X, (hi / tm) as u64 + 1);
        let bz = k.block_index(Axis::Z, 65_535);
        let row = index(&mut k.pool, &Layout::mode(1, tm)?, &[bx])?;
        let (first, depth) = match chunk {
            None => (zero, depth),
            Some(chunk) => {
                // The launch has no part that begins after the last product.
                let first = k.pool.mul(bz, chunk);
                k.kept_by_launch(first, depth);
                let first = k.bounded(first, hi);
                let left = k.pool.sub(depth, first);
                let left = k.bounded(left, hi);
                let last = k.compare(Cmp::Lt, left, chunk);
                (first, k.select(last, left, chunk))
            }
        };
        Ok(Self {
            row,
            col,
            k: first,
            depth,
            layer: Some(bz),
            layers,
        })
    }

    /// This layer's A, B and C (or partial sums): rows and columns as they lie in memory.
    pub(super) fn matrices(
        &self,
        k: &mut Kernel,
        plan: &MmaPlan,
        maps: &Maps,
        all: &Operands,
    ) -> Result<[View; 3], PlanError> {
        // From one matrix of a batch to the next, or from one part of the sums to the next.
        let layers: [Option<Expr>; 3] = match self.layers {
            Depth::Groups => [None; 3],
            Depth::Split(_) => [None, None, Some(k.pool.mul(all.m, all.ld[2]))],
            Depth::Batch => {
                ["strideA", "strideB", "strideC"].map(|p| Some(k.param_u32(p, i64::from(u32::MAX))))
            }
        };
        let c_bytes = if plan.partial() {
            maps.staging.bytes
        } else {
            maps.c_bytes
        };
        let width = if plan.partial() { all.ld[2] } else { all.n };
        // The rows of an operand that is packed are zeros from their end to their pitch.
        let operand = |i: usize, o: &super::OperandMaps, side| {
            let side = match plan.variant.pack[i] {
                Some(_) if !o.k_major => all.ld[i],
                _ => side,
            };
            o.place(side, all.k)
        };
        let matrices = [
            ("A", maps.a.bytes, operand(0, &maps.a, all.m)),
            ("B", maps.b.bytes, operand(1, &maps.b, all.n)),
            (
                if plan.partial() { "partial" } else { "C" },
                c_bytes,
                (all.m, width),
            ),
        ];
        let mut views = Vec::new();
        for (i, (name, bytes, (rows, cols))) in matrices.into_iter().enumerate() {
            let mut extents = vec![Extent::Value(rows), Extent::Value(cols)];
            let mut strides = vec![Stride::Value(all.ld[i]), Stride::Fixed(1)];
            if let Some(stride) = layers[i] {
                extents.insert(0, Extent::Blocks(Axis::Z));
                strides.insert(0, Stride::Value(stride));
            }
            let role = if i == 2 { Role::Output } else { Role::Input };
            let view = k.global_at(name, all.pointers[i], bytes, extents, strides, role);
            // As wide as copies and stores are; whether stores of 16 bytes serve is found at run time.
            let widths = [
                plan.variant.copies[0],
                plan.variant.copies[1],
                plan.variant.store,
            ];
            match i {
                2 if plan.partial() => k.rows_aligned(&view, 16),
                2 if plan.variant.store == 16 => {}
                _ => k.rows_aligned(&view, widths[i]),
            }
            views.push(match (self.layer, layers[i]) {
                (Some(layer), Some(_)) => {
                    let zero = k.pool.constant(0);
                    view.moved(k, &[layer, zero, zero])?.pinned(k)
                }
                _ => view,
            });
        }
        let [a, b, c] = views.try_into().expect("three matrices");
        Ok([a, b, c])
    }
}
