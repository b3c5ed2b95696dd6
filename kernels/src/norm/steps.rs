//! What the norms share: the vectors of a row one after the other, each with the weights that belong to it.

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
    /// Columns of one vector of every thread of a row.
    pub(super) fn width(&self) -> i64 {
        self.tile.cols / self.tile.steps
    }

    /// What this thread has of tile `j` of a matrix.
    pub(super) fn share(&self, k: &mut Kernel, of: &View, j: Expr) -> Result<Partition, ViewError> {
        self.tile.share(k, of, [self.i, j], self.thread)
    }

    /// The same as numbers of f32.
    pub(super) fn load(&self, k: &mut Kernel, of: &View, j: Expr) -> Result<Fragment, ViewError> {
        let of = self.share(k, of, j)?;
        k.load_fragment(&of)?.convert(k, Element::F32)
    }

    /// Where this thread stores vector `at` of a row.
    pub(super) fn place(&self, k: &mut Kernel, at: Expr) -> Result<Partition, ViewError> {
        self.y
            .tile(k, &[self.tile.rows, self.width()], &[self.i, at])?
            .partition(k, &self.tile.step, self.thread)?
            .vectors(k, self.tile.vector)
    }

    /// Where this thread stores vector `step` of tile `j`, and what belongs to it of the vectors along the row.
    fn part(
        &self,
        k: &mut Kernel,
        j: Expr,
        step: usize,
    ) -> Result<(Partition, Vec<Fragment>), ViewError> {
        let (first, step) = (k.scale(j, self.tile.steps), k.constant(step as i64));
        let at = k.add(first, step);
        let to = self.place(k, at)?;
        let along = self.along.iter().map(|of| {
            let of = of.tile(k, &[self.width()], &[at])?;
            let of = to.along(k, 1, &of)?.vectors(k, self.tile.vector)?;
            k.load_fragment(&of)
        });
        let along = along.collect::<Result<_, _>>()?;
        Ok((to, along))
    }

    /// Visits each vector of tile `j`, of which `x` is the numbers: where it goes, the numbers, and in f32 what is along them, loaded one vector ahead.
    pub(super) fn each(
        &self,
        k: &mut Kernel,
        j: Expr,
        x: &Fragment,
        mut visit: impl FnMut(&mut Kernel, &Partition, &Fragment, &[Fragment]) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        let parts = x.split(1, self.tile.steps as usize)?;
        let mut next = self.part(k, j, 0)?;
        for (step, x) in parts.iter().enumerate() {
            let (to, along) = next.clone();
            if step + 1 < parts.len() {
                next = self.part(k, j, step + 1)?;
            }
            let along = along.iter().map(|a| a.convert(k, Element::F32));
            let along = along.collect::<Result<Vec<_>, _>>()?;
            visit(k, &to, x, &along)?;
        }
        Ok(())
    }

    /// Visits each tile of a row that is not in the registers: its index and its numbers.
    pub(super) fn tiles(
        &self,
        k: &mut Kernel,
        cols: Expr,
        mut visit: impl FnMut(&mut Kernel, Expr) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        k.for_loop("column", 0, self.tile.cols, cols, |k, column| {
            let j = k.div(column, self.tile.cols);
            visit(k, j)
        })
    }
}
