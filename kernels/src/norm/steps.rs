//! What the norms share: where a thread stores each step of a row, and the weights that belong to it.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::view::{Fragment, Partition, View, ViewError};

use crate::rows::RowTile;

/// What a thread has of the rows of its block.
pub(super) struct Steps<'t> {
    pub(super) tile: &'t RowTile,
    /// The block's tile of rows.
    pub(super) i: Expr,
    pub(super) thread: Expr,
    /// The result, rows × cols.
    pub(super) y: View,
    /// Vectors along a row: weights, offsets.
    pub(super) along: Vec<View>,
}

impl Steps<'_> {
    /// Tile `j` of a matrix as it lies in memory.
    pub(super) fn load(
        &self,
        k: &mut Kernel,
        tile: &RowTile,
        of: &View,
        j: Expr,
    ) -> Result<Fragment, ViewError> {
        let of = tile.share(k, of, [self.i, j], self.thread)?;
        k.load_fragment(&of)
    }

    /// Where this thread stores step `at` of a row.
    pub(super) fn place(&self, k: &mut Kernel, at: Expr) -> Result<Partition, ViewError> {
        self.tile.place(k, &self.y, [self.i, at], self.thread)
    }

    /// Where this thread stores step `at`, and what belongs to it of the vectors along the row.
    pub(super) fn with_vectors(
        &self,
        k: &mut Kernel,
        at: Expr,
    ) -> Result<(Partition, Vec<Fragment>), ViewError> {
        let to = self.place(k, at)?;
        let along = self.along.iter().map(|of| {
            let of = of.tile(k, &[self.tile.width()], &[at])?;
            let of = to.along(k, 1, &of)?.vectors(k, self.tile.vector)?;
            k.load_fragment(&of)
        });
        let along = along.collect::<Result<_, _>>()?;
        Ok((to, along))
    }
}

/// Vectors along a row, in f32.
pub(super) fn in_f32(k: &mut Kernel, along: &[Fragment]) -> Result<Vec<Fragment>, ViewError> {
    let along = along.iter().map(|a| a.convert(k, Element::F32));
    along.collect()
}
