//! From global memory to registers: a thread's part of one operand's tile.
//!
//! A tile whose rows are all inside and whose vectors are aligned is loaded 16 bytes at a time; any other element by element, each with
//! its own predicate, and zeros outside. The two halves of the block load different operands with the same instructions; where the
//! operands lie differently in memory, addresses are chosen by half.

use layout_core::Layout;

use super::{Gemm, K_STEP, Side, ZERO};
use crate::index::Expr;
use crate::index::layout::{combined_index, index};
use crate::plan::PlanError;
use crate::ptx::{Address, Kernel, LoopHandle, Pred, Reg, Space};

impl Gemm<'_> {
    /// The side and the k index of value `v` of this thread, apart from the tile's own corner.
    fn coordinates(&mut self, along: bool, t: Expr, v: i64) -> Result<(Expr, Expr), PlanError> {
        let tv = self.maps.load(Side::X, along).tv;
        let w = self.maps.w;
        let v = self.k.pool.constant(v);
        let side = Layout::flat(&[w, K_STEP], &[1, 0])?.compose(&tv)?;
        let step = Layout::flat(&[w, K_STEP], &[0, 1])?.compose(&tv)?;
        let side = index(&mut self.k.pool, &side, &[t, v])?;
        let step = index(&mut self.k.pool, &step, &[t, v])?;
        Ok((side, step))
    }

    /// Byte distance, from the operand's pointer, of the element (side, k) of the matrix: `(side,k):(1,ld)` or `(ld,1)`.
    fn global(&mut self, along: bool, side: Expr, step: Expr) -> Result<Expr, PlanError> {
        let unit = |s: i64, d: i64| Layout::flat(&[1, 1], &[4 * s, 4 * d]);
        let terms = if along {
            [(None, unit(1, 0)?), (Some(self.ld), unit(0, 1)?)]
        } else {
            [(None, unit(0, 1)?), (Some(self.ld), unit(1, 0)?)]
        };
        Ok(combined_index(&mut self.k.pool, &terms, &[side, step])?)
    }

    /// Elements from one k to the next.
    fn k_stride(&mut self, along: bool) -> Expr {
        if along {
            self.ld
        } else {
            self.k.pool.constant(1)
        }
    }

    /// The byte address of this thread's first value in the first tile along k.
    fn corner(&mut self, along: bool) -> Result<Expr, PlanError> {
        let (side, step) = self.coordinates(along, self.t, 0)?;
        let side = self.k.pool.add(self.origin, side);
        let corner = self.global(along, side, step)?;
        let corner = self.k.pool.add(self.operand, corner);
        Ok(self.k.pool.pin(corner))
    }

    /// Bytes from this thread's first value to vector `v`.
    fn distance(&mut self, along: bool, v: usize) -> Result<Expr, PlanError> {
        let zero = self.k.pool.constant(0);
        let (side, step) = self.coordinates(along, zero, 4 * v as i64)?;
        self.global(along, side, step)
    }

    /// The addresses of this thread's vectors in the tile that begins at `k0`, for whichever side it loads.
    fn vector_addresses(
        &mut self,
        k0: Expr,
        of: Option<&LoopHandle>,
    ) -> Result<Vec<Address>, PlanError> {
        let [x, y] = self.sides.map(|(_, along)| along);
        let (mut first, mut stride) = (self.corner(x)?, self.k_stride(x));
        if !self.alike() {
            let (other, other_stride) = (self.corner(y)?, self.k_stride(y));
            first = self.k.select("corner", self.loads_x, first, other);
            stride = self
                .k
                .select("k_stride", self.loads_x, stride, other_stride);
        }
        let moved = self.k.pool.mul(k0, stride);
        let moved = self.k.pool.scale(moved, 4);
        let mut pointer = self.k.pool.add(first, moved);
        if let Some(handle) = of {
            pointer = self.k.induction_value("pointer", pointer, handle);
        }
        let mut addresses = Vec::new();
        for v in 0..self.vectors {
            let mut distance = self.distance(x, v)?;
            if !self.alike() {
                let other = self.distance(y, v)?;
                // A step along k is one stride on either side; anything else is chosen by side.
                let (ours, theirs) = (self.in_strides(x, distance), self.in_strides(y, other));
                distance = match (ours, theirs) {
                    (Some(a), Some(b)) if a == b => self.k.pool.scale(stride, a),
                    _ => self
                        .k
                        .select(&format!("distance{v}"), self.loads_x, distance, other),
                };
            }
            let e = self.k.pool.add(pointer, distance);
            addresses.push(self.k.address(Space::Global, e));
        }
        Ok(addresses)
    }

    /// `bytes` as a multiple of the stride along k, if it is one.
    fn in_strides(&self, along: bool, bytes: Expr) -> Option<i64> {
        match (
            along,
            self.k.pool.as_const(bytes),
            &self.k.pool.terms(bytes),
        ) {
            (false, Some(c), _) => Some(c),
            (true, _, (terms, 0)) => match terms[..] {
                [] => Some(0),
                [(c, ld)] if ld == self.ld => Some(c),
                _ => None,
            },
            _ => None,
        }
    }

    /// Brings this thread's part of the tile that begins at `k0` to registers: `vectors` × 4 floats.
    pub(super) fn load_tile(
        &mut self,
        k0: Expr,
        depth: Expr,
        of: Option<&LoopHandle>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let addresses = self.vector_addresses(k0, of)?;
        let (vectors, done) = (self.k.label("vectors"), self.k.label("loaded"));
        let whole = self.k.pool.constant(K_STEP);
        let end = self.k.pool.add(k0, whole);
        let is_whole = self.k.compare("le", end, depth);
        let fast = self
            .k
            .combine("and", is_whole, self.fast, of.map_or(0, |_| 1));
        self.k.branch(Some(fast.into()), &vectors, false);
        let [(_, along_x), (_, along_y)] = self.sides;
        let (edge_x, edge_y) = ((self.x0, self.n), (self.y0, self.m));
        if self.alike() {
            self.load_elements(along_x, [edge_x, edge_y], (k0, depth), &addresses, staged)?;
        } else {
            let other = self.k.label("elements_y");
            self.k
                .branch(Some(Pred::from(self.loads_x).not()), &other, false);
            self.load_elements(along_x, [edge_x, edge_x], (k0, depth), &addresses, staged)?;
            self.k.branch(None, &done, false);
            self.k.place(&other);
            self.load_elements(along_y, [edge_y, edge_y], (k0, depth), &addresses, staged)?;
        }
        self.k.branch(None, &done, false);
        self.k.place(&vectors);
        for (v, at) in addresses.iter().enumerate() {
            self.k
                .load(None, ".nc", "f32", &staged[4 * v..4 * v + 4], *at);
        }
        self.k.place(&done);
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
        addresses: &[Address],
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        // What only this path needs does not occupy registers elsewhere.
        self.k.open_region();
        let zero = self.k.pool.constant(0);
        let (side, step) = self.coordinates(along, self.t, 0)?;
        // Elements left from this thread's first one to the edge, on either axis.
        let left = edges.map(|(origin, extent)| {
            let left = self.k.pool.sub(extent, origin);
            self.k.pool.sub(left, side)
        });
        let name = self.k.label("left");
        let left_side = self.k.select(&name, self.loads_x, left[0], left[1]);
        let left_k = self.k.pool.sub(depth, k0);
        let left_k = self.k.pool.sub(left_k, step);
        for (v, at) in addresses.iter().enumerate() {
            for j in 0..4 {
                let r = staged[4 * v + j];
                let (side, step) = self.coordinates(along, zero, (4 * v + j) as i64)?;
                let distance = |k: &Kernel, e: Expr| k.pool.as_const(e).unwrap_or(0);
                let (side, step) = (distance(self.k, side), distance(self.k, step));
                let inside = self.k.compare_here("gt", left_side, side, None);
                let inside = self.k.compare_here("gt", left_k, step, Some(inside));
                self.k.ins(format!("mov.f32 {r}, {ZERO}"));
                let bytes = self.k.pool.constant(4 * j as i64);
                let at = self.k.offset(*at, bytes).unwrap_or(*at);
                self.k.load(Some(inside.into()), ".nc", "f32", &[r], at);
            }
        }
        self.k.close_region();
        Ok(())
    }
}
