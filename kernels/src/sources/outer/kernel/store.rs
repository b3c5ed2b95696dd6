//! From sums to C: each thread finishes and stores its own vectors, whose neighbours are those of the neighbouring lanes.

use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Addresses, Instructions, Logic, Reg};

use super::{Gemm, TILE};
use crate::gemm::PlanError;
use crate::gemm::epilogue::{Loaded, Place};

impl Gemm<'_> {
    /// Rows of sums to C, two vectors each.
    pub(super) fn epilogue(&mut self, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let vector = self.maps.vector;
        let zero = self.k.constant(0);
        let [x, y] = super::Side::ALL.map(|side| self.maps.first(side));
        let col = self.k.index(&x?, &[self.tid])?;
        let row = self.k.index(&y?, &[self.tid])?;
        let kernel = &mut *self.k;
        let (row, col) = (kernel.add(self.row0, row), kernel.add(self.col0, col));
        let corner = self.c.moved(self.k, &[row, col])?.pinned(self.k);
        let matrices = self.end.matrices(self.k, (row, col))?;
        // C is taken as it comes: vectors where it is aligned.
        let bytes = vector * i64::from(self.end.types().output.bytes());
        let base = self.c.base(self.k)?;
        let low = self.k.rem(base, bytes);
        let low_ld = self.k.rem(self.ldc, vector);
        let aligned = self.k.compare(Cmp::Eq, low, zero);
        let aligned_ld = self.k.compare(Cmp::Eq, low_ld, zero);
        let aligned = self.k.combine(Logic::And, aligned, aligned_ld, 0);
        let left_row = self.k.sub(self.m, row);

        let end = self.end.clone();
        let width = self.k.constant(vector);
        let mut halves = Vec::new();
        for half in [0, TILE / 2] {
            let half = self.k.constant(half);
            let col = self.k.add(col, half);
            let left = self.k.sub(self.n, col);
            let columns: Loaded = end.load_columns(self.k, col, left, vector)?;
            let whole = self.k.compare(Cmp::Ge, left, width);
            let whole = self.k.combine(Logic::And, aligned, whole, 0);
            halves.push((half, col, left, columns, whole));
        }
        let steps = self.maps.steps()?;
        for (y, sums) in (0..).zip(acc) {
            self.k.open_region();
            let down = steps.index(y);
            let inside = self.k.compare_here(Cmp::Gt, left_row, down, None);
            let down = self.k.constant(down);
            let row = self.k.add(row, down);
            for ((half, col, left, columns, whole), sums) in
                halves.iter().zip(sums.chunks(vector as usize))
            {
                let mut loaded = columns.clone();
                end.load_rows(self.k, row, Some(inside), &mut loaded)?;
                let by = (down, *half);
                let place = Place {
                    at: (row, *col),
                    targets: Place::targets(self.k, &corner, by, vector)?,
                    matrices: &matrices,
                    by,
                    row: inside,
                    whole: Some(*whole),
                    left: *left,
                };
                let sums = end.scaled(self.k, sums);
                end.update(self.k, [&sums, &[]], &loaded, &place)?;
            }
            self.k.close_region();
        }
        Ok(())
    }
}
