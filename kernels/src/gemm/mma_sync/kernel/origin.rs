//! Where a block is in C and along k, and what of A, B and C is its own.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Addresses, Extent, Instructions, Role, Stride};
use layout_codegen::ir::{Axis, Cmp, Kernel};
use layout_codegen::view::View;

use crate::gemm::mma_sync::maps::Maps;
use crate::gemm::{PlanError, Specialized, TileSchedule};

/// The kernel's parameters that say where A, B and C are.
pub(super) struct Operands {
    /// The addresses of A, B and C (or partial sums).
    pub(super) pointers: [Expr; 3],
    /// The address of B2 in a dual product, which lies as B does.
    pub(super) b2: Option<Expr>,
    /// Their leading dimensions.
    pub(super) ld: [Expr; 3],
    pub(super) m: Expr,
    pub(super) n: Expr,
    pub(super) k: Expr,
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
    layers: TileSchedule,
}

impl Origin {
    pub(super) fn new(
        k: &mut Kernel,
        plan: &Specialized,
        [m, n]: [Expr; 2],
        (depth, chunk): (Expr, Option<Expr>),
    ) -> Result<Self, PlanError> {
        let zero = k.constant(0);
        let hi = plan.limit() as i64;
        let layers = plan.variant.tiles;
        let tile = layers.tile(k, [m, n], plan.tile_of_c())?;
        let (row, col) = (tile.row, tile.col);
        let Some(bz) = tile.layer else {
            return Ok(Self {
                row,
                col,
                k: zero,
                depth,
                layer: None,
                layers,
            });
        };
        let (first, depth) = match chunk {
            None => (zero, depth),
            Some(chunk) => {
                // The launch has no part that begins after the last product.
                let first = k.mul(bz, chunk);
                k.launch_keeps(first, depth);
                k.param_multiple("chunk", plan.depth() as u64);
                let first = k.bounded(first, hi);
                let left = k.sub(depth, first);
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

    /// Which product of a batch this block is of.
    pub(super) fn layer(&self) -> Option<Expr> {
        self.layer.filter(|_| self.layers == TileSchedule::Batch)
    }

    /// This layer's A, B and C (or partial sums), and B2: rows and columns as they lie in memory.
    pub(super) fn matrices(
        &self,
        k: &mut Kernel,
        plan: &Specialized,
        maps: &Maps,
        all: &Operands,
    ) -> Result<([View; 3], Option<View>), PlanError> {
        // From one matrix of a batch to the next, or from one part of the sums to the next.
        let layers: [Option<Expr>; 3] = match self.layers {
            TileSchedule::Groups
            | TileSchedule::Columns
            | TileSchedule::Rectangle(_)
            | TileSchedule::Linear { .. } => [None; 3],
            TileSchedule::SplitK(_) => [None, None, Some(k.mul(all.m, all.ld[2]))],
            TileSchedule::Batch => {
                ["strideA", "strideB", "strideC"].map(|p| Some(k.param_u32(p, i64::from(u32::MAX))))
            }
        };
        let c_bytes = if plan.partial() {
            maps.staging.bytes
        } else {
            plan.variant.output.bytes().into()
        };
        // The rows of an operand that is packed are zeros from their end to their pitch.
        let mut operand = |i: usize, o: &super::OperandMaps, side| match plan.variant.pack[i] {
            Some(_) if !o.k_major => {
                k.launch_keeps(side, all.ld[i]);
                o.place(all.ld[i], all.k)
            }
            _ => o.place(side, all.k),
        };
        let [a, b, c] = all.pointers;
        let of_b = operand(1, &maps.b, all.n);
        // Each with whose rows it has: those of A, B or C.
        let mut matrices = vec![
            (0, "A", a, maps.a.bytes, operand(0, &maps.a, all.m)),
            (1, "B", b, maps.b.bytes, of_b),
        ];
        let name = if plan.partial() { "partial" } else { "C" };
        matrices.push((2, name, c, c_bytes, (all.m, all.n)));
        matrices.extend(all.b2.map(|b2| (1, "B2", b2, maps.b.bytes, of_b)));
        let mut views = Vec::new();
        for (i, name, pointer, bytes, (rows, cols)) in matrices {
            let cols = match i {
                2 if plan.partial() => Extent::Padded {
                    used: cols,
                    whole: all.ld[2],
                },
                _ => Extent::Value(cols),
            };
            let mut extents = vec![Extent::Value(rows), cols];
            let mut strides = vec![Stride::Value(all.ld[i]), Stride::Fixed(1)];
            if let Some(stride) = layers[i] {
                extents.insert(0, Extent::Blocks(Axis::Z));
                strides.insert(0, Stride::Value(stride));
            }
            let role = if i == 2 { Role::Output } else { Role::Input };
            let view = k.launch_global(name, pointer, bytes, extents, strides, role);
            // As wide as copies and stores are; whether stores of 16 bytes serve is found at run time.
            let widths = [
                plan.variant.copies[0],
                plan.variant.copies[1],
                plan.variant.store,
            ];
            match i {
                2 if plan.partial() => {
                    k.launch_keeps(all.n, all.ld[2]);
                    k.rows_aligned(&view, 16);
                }
                2 if plan.variant.store == 16 => {}
                _ => k.rows_aligned(&view, widths[i]),
            }
            views.push(match (self.layer, layers[i]) {
                (Some(layer), Some(_)) => {
                    let zero = k.constant(0);
                    view.moved(k, &[layer, zero, zero])?.pinned(k)
                }
                _ => view,
            });
        }
        let mut views = views.into_iter();
        let three = [(); 3].map(|()| views.next().expect("three matrices"));
        Ok((three, views.next()))
    }
}
