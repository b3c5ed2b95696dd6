//! The part of C that a lane stores: where it begins, and which of its vectors are the block's own.

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Addresses, Instructions, Logic, Reg};
use layout_codegen::view::View;
use layout_core::Layout;

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::edges::first_own;
use crate::gemm::epilogue::{End, Loaded};

/// What all vectors of a lane have in common.
pub(super) struct Lane {
    /// The warp's strip in shared memory; none where lanes store what they hold.
    pub(super) strip: Option<View>,
    /// (lane, value) → row and column in the strip of what is read.
    pub(super) read: (Layout, Layout),
    /// The first row of the tile that is not another block's.
    pub(super) own_row: Expr,
    /// This lane's first row and column of C.
    pub(super) row: Expr,
    pub(super) col: Expr,
    /// C from there on, and the epilogue's matrices.
    pub(super) corner: View,
    pub(super) matrices: Vec<Option<View>>,
    /// For each part of a row: its columns are this block's own.
    pub(super) own: Vec<Reg>,
    /// C is aligned for stores as wide as the vectors, if that is found at run time.
    pub(super) aligned: Option<Reg>,
}

impl Gemm<'_> {
    /// What all vectors of a lane have in common.
    pub(super) fn lane_of_c(&mut self) -> Result<Lane, PlanError> {
        let st = &self.maps.staging;
        let (tm, tn) = self.plan.tile_of_c();
        let [row0, col0] = [0, 1].map(|i: usize| self.spans[i].moved_back(self.k).0);
        let mut own = |at: Expr, span: usize, tile: i64| {
            // Where the tile lies before it is moved back; a remainder of a power of two costs less than a register through the main loop, another one more.
            if tile.count_ones() == 1 {
                first_own(self.k, at, tile)
            } else {
                self.spans[span].origin
            }
        };
        let (own_row, own_col) = (own(row0, 0, tm), own(col0, 1, tn));
        let kernel = &mut *self.k;
        let warp = kernel.div(self.tid, 32);
        let zero = kernel.constant(0);
        let strip = match self.staging.clone() {
            Some(all) => Some(all.moved(self.k, &[zero, zero, warp, zero])?),
            None => None,
        };
        let rows = self.plan.rows_of_warps()?;
        let columns = self.plan.columns_of_warps()?;
        let kernel = &mut *self.k;
        let read = st.split(&st.read)?;
        let (r, c) = (
            kernel.index(&read.0, &[self.lane, zero])?,
            kernel.index(&read.1, &[self.lane, zero])?,
        );
        let down = kernel.index(&rows, &[self.warp.0])?;
        let across = kernel.index(&columns, &[self.warp.1])?;
        let row = [down, r].into_iter().fold(row0, |s, e| kernel.add(s, e));
        let col = [across, c].into_iter().fold(col0, |s, e| kernel.add(s, e));
        let corner = self.c.moved(self.k, &[row, col])?.pinned(self.k);
        let matrices = match &self.end {
            Some(end) => end.matrices(self.k, (row, col))?,
            None => Vec::new(),
        };
        // A listed plan takes C as it comes: 16 bytes at once where that is aligned. Others know their C.
        let found = self.plan.variant.store == 16;
        let aligned = (self.end.is_some() && st.vector > 1 && found)
            .then(|| {
                let c = self.c.base(self.k)?;
                let low = self.k.rem(c, 16);
                let low_ld = self.k.rem(self.ldc, st.vector);
                let aligned = self.k.compare(Cmp::Eq, low, zero);
                let aligned_ld = self.k.compare(Cmp::Eq, low_ld, zero);
                Ok::<_, PlanError>(self.k.combine(Logic::And, aligned, aligned_ld, 0))
            })
            .transpose()?;
        let mut lane = Lane {
            strip,
            read,
            own_row,
            row,
            col,
            corner,
            matrices,
            own: Vec::new(),
            aligned,
        };
        for part in 0..st.read.get(1)?.get(0)?.get(0)?.size() * self.plan.chunks() {
            let (col, _) = self.columns(&lane, part)?;
            lane.own.push(self.k.compare(Cmp::Ge, col, own_col));
        }
        Ok(lane)
    }

    /// The column of a lane's vectors in part `part` of a row, and how many columns are left from there.
    fn columns(&mut self, lane: &Lane, part: i64) -> Result<(Expr, Expr), PlanError> {
        let kernel = &mut *self.k;
        let again = lane.read.1.get(1)?.get(0)?.get(0)?.size();
        let (zero, value) = (kernel.constant(0), kernel.constant(part % again));
        let across = kernel.index(&lane.read.1, &[zero, value])?;
        let chunk = kernel.constant(part / again * self.plan.strip_cols());
        let across = kernel.add(across, chunk);
        let col = kernel.add(lane.col, across);
        Ok((col, kernel.sub(self.n, col)))
    }

    /// The epilogue's inputs by column for a lane's vectors, by the parts of a row.
    pub(super) fn columns_of_lane(
        &mut self,
        end: &End<'_>,
        lane: &Lane,
    ) -> Result<Vec<Loaded>, PlanError> {
        let vector = self.maps.staging.vector;
        (0..lane.own.len() as i64)
            .map(|part| {
                let (col, left) = self.columns(lane, part)?;
                end.load_columns(self.k, col, left, vector)
            })
            .collect()
    }
}
