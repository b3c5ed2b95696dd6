//! From global memory to registers: a thread's part of one operand's tile.
//!
//! A tile whose rows are all inside and whose vectors are aligned is loaded 16 bytes at a time; any other element by element, each with
//! its own predicate, and zeros outside. The two halves of the block load different operands with the same instructions; where the
//! operands lie differently in memory, addresses are chosen by half.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Cache, Choice, Instructions, Logic, LoopHandle, Pred, Reg, Type,
};
use layout_codegen::ir::{Cmp, Kernel};
use layout_core::Layout;

use super::{Gemm, K_STEP, Side, ZERO};
use crate::gemm::PlanError;

impl Gemm<'_> {
    /// The side and the k index of value `v` of this thread, apart from the tile's own corner.
    pub(super) fn coordinates(
        &mut self,
        along: bool,
        t: Expr,
        v: i64,
    ) -> Result<(Expr, Expr), PlanError> {
        let tv = self.maps.load(Side::X, along).tv;
        let w = self.maps.w;
        let v = self.k.constant(v);
        let side = Layout::flat(&[w, K_STEP], &[1, 0])?.compose(&tv)?;
        let step = Layout::flat(&[w, K_STEP], &[0, 1])?.compose(&tv)?;
        let side = self.k.index(&side, &[t, v])?;
        let step = self.k.index(&step, &[t, v])?;
        Ok((side, step))
    }

    /// This thread's first value in the first tile along k, for whichever side it loads.
    fn corner(&mut self) -> Result<Choice, PlanError> {
        let mut by = Vec::new();
        for (_, along) in self.sides {
            let (side, step) = self.coordinates(along, self.t, 0)?;
            by.push([self.k.add(self.origin, side), step]);
        }
        let [b, a] = &self.operands;
        Ok(Choice::at(self.k, self.loads_x, [b, a], [&by[0], &by[1]])?)
    }

    /// The places of this thread's vectors in the tile that begins at `k0`.
    fn vectors(&mut self, k0: Expr, of: Option<&LoopHandle>) -> Result<Vec<Choice>, PlanError> {
        let zero = self.k.constant(0);
        let tile = [zero, k0];
        let mut first = self.corner()?.moved(self.k, [&tile, &tile])?;
        if let Some(handle) = of {
            first = first.carried(self.k, "pointer", handle);
        }
        let [x, y] = self.sides.map(|(_, along)| along);
        (0..self.vectors as i64)
            .map(|v| {
                let (xs, xk) = self.coordinates(x, zero, 4 * v)?;
                let (ys, yk) = self.coordinates(y, zero, 4 * v)?;
                Ok(first.moved(self.k, [&[xs, xk], &[ys, yk]])?)
            })
            .collect()
    }

    /// Brings this thread's part of the tile that begins at `k0` to registers: `vectors` × 4 floats.
    pub(super) fn load_tile(
        &mut self,
        k0: Expr,
        depth: Expr,
        of: Option<&LoopHandle>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let vectors = self.vectors(k0, of)?;
        let mut addresses = Vec::new();
        for v in &vectors {
            addresses.push(v.element(self.k, [&[], &[]], None)?);
        }
        let whole = self.k.constant(K_STEP);
        let end = self.k.add(k0, whole);
        let is_whole = self.k.compare(Cmp::Le, end, depth);
        let level = of.map_or(0, |_| 1);
        let fast = self.k.combine(Logic::And, is_whole, self.fast, level);
        self.k.begin_if(Pred::from(fast).not(), false);
        self.k.name_branch("vectors", "loaded");
        let [(_, along_x), (_, along_y)] = self.sides;
        let (edge_x, edge_y) = ((self.x0, self.n), (self.y0, self.m));
        if self.alike() {
            self.load_elements(along_x, [edge_x, edge_y], (k0, depth), &vectors, staged)?;
        } else {
            let [xs, ys] =
                [true, false].map(|x| vectors.iter().map(|v| v.known(x)).collect::<Vec<_>>());
            self.k.begin_if(self.loads_x, false);
            self.k.name_branch("elements_y", "elements");
            self.load_elements(along_x, [edge_x, edge_x], (k0, depth), &xs, staged)?;
            self.k.otherwise();
            self.load_elements(along_y, [edge_y, edge_y], (k0, depth), &ys, staged)?;
            self.k.end_if();
        }
        self.k.otherwise();
        for (v, at) in addresses.iter().enumerate() {
            let regs = &staged[4 * v..4 * v + 4];
            self.k.load(None, Cache::ReadOnly, Type::F32, regs, *at);
        }
        self.k.end_if();
        Ok(())
    }

    /// Element by element, each with its own predicate; what is outside the matrix is 0.
    ///
    /// `edges` are (first row or column of the tile, extent of the matrix) of the sides that threads here may load.
    fn load_elements(
        &mut self,
        along: bool,
        edges: [(Expr, Expr); 2],
        (k0, depth): (Expr, Expr),
        vectors: &[Choice],
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        // What only this path needs does not occupy registers elsewhere.
        self.k.open_region();
        let zero = self.k.constant(0);
        let (side, step) = self.coordinates(along, self.t, 0)?;
        // Elements left from this thread's first one to the edge, on either axis.
        let left = edges.map(|(origin, extent)| {
            let left = self.k.sub(extent, origin);
            self.k.sub(left, side)
        });
        let left_side = self.k.select(self.loads_x, left[0], left[1]);
        let left_k = self.k.sub(depth, k0);
        let left_k = self.k.sub(left_k, step);
        for (v, first) in vectors.iter().enumerate() {
            for j in 0..4 {
                let r = staged[4 * v + j];
                let (side, step) = self.coordinates(along, zero, (4 * v + j) as i64)?;
                let distance = |k: &Kernel, e: Expr| k.as_const(e).unwrap_or(0);
                let (side, step) = (distance(self.k, side), distance(self.k, step));
                let inside = self.k.compare_here(Cmp::Gt, left_side, side, None);
                let inside = self.k.compare_here(Cmp::Gt, left_k, step, Some(inside));
                self.k.set(Type::F32, r, ZERO);
                // A vector's values are neighbours in memory.
                let j = self.k.constant(j as i64);
                let by = if along { [j, zero] } else { [zero, j] };
                let at = first.element(self.k, [&by, &by], None)?;
                self.k
                    .load(Some(inside.into()), Cache::ReadOnly, Type::F32, &[r], at);
            }
        }
        self.k.close_region();
        Ok(())
    }
}
