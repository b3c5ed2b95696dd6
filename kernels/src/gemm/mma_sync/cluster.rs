//! Clusters: blocks whose tiles lie side by side in C have an operand's tile in common, of which each copies a part to all of them.
//!
//! Two blocks one below the other multiply the same columns of B, two side by side the same rows of A. Which block copies what is a layout over the cluster:
//! the lines of a stage, rows of a panel in the order in which they lie, are divided by the number of blocks.
//!
//! ```text
//! B of 128x256x64, k contiguous        lines 256:1                       (line, rank) = (128,2):(1,128)                one box of 128 rows each
//! B of 128x256x64, columns contiguous  lines (64,4):(1,64·64)            (line, rank) = ((64,2),2):((1,64·64),2·64·64) two boxes of 64 rows each
//! B of 192x192x64, columns contiguous  lines (64,3):(1,64·64)            (line, rank) = ((32,3),2):((1,64·64),32)      three boxes of 32 rows each
//!                                            row + R·column of the tile
//! ```
//!
//! Blocks copy whole boxes where these are divided among them, and else some rows of every box.
//!
//! The boxes, their coordinates, the bytes and the rows of the tensor map follow from it. A block that shares nothing is a cluster of one.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Kernel};
use layout_core::{Layout, TensorBox};

use super::operand::OperandMaps;
use crate::gemm::{PlanError, Refusal, Specialized};

/// What a block of a cluster copies of an operand's tile.
pub(super) struct Portion {
    /// Rows of a box.
    pub(super) rows: i64,
    /// How many boxes.
    pub(super) boxes: i64,
    /// (box, rank) → the first row and the first column of the tile.
    at: [Layout; 2],
    /// The blocks that get it, a bit for each rank, where that is more than the one that copies.
    pub(super) to: Option<u16>,
}

impl Portion {
    /// The portion of each of `blocks` blocks that have the tile in common.
    pub(super) fn of(tile: &OperandMaps, blocks: i64) -> Result<Self, PlanError> {
        let whole = TensorBox::of(&tile.derived, tile.bytes)?;
        let (rows, panels) = (whole.rows, whole.copies);
        let lines = Layout::flat(&[rows, panels], &[1, whole.columns * tile.rows])?;
        let whole_panels = panels % blocks == 0;
        let share = rows / blocks;
        if !whole_panels && (share * blocks != rows || share % 8 != 0) {
            return Err(Refusal {
                obligation: "a tile that the blocks of a cluster copy in equal parts".to_owned(),
                reason: format!(
                    "{panels} boxes of {rows} rows, which are by eights, are not divided by {blocks} blocks"
                ),
            }
            .into());
        }
        // Lines of a box, boxes, blocks: some of the panels each, or some rows of every panel.
        let (rows, boxes, next) = if whole_panels {
            let boxes = panels / blocks;
            (rows, boxes, [rows, boxes * rows])
        } else {
            (share, panels, [rows, share])
        };
        let extents = [rows, boxes, blocks];
        let parts = lines.compose(&Layout::flat(&extents, &[1, next[0], next[1]])?)?;
        let first = Layout::tuple(&[parts.get(1)?, parts.get(2)?])?;
        let of_tile =
            |strides: [i64; 2]| Layout::flat(&[tile.rows, tile.cols], &strides)?.compose(&first);
        Ok(Self {
            rows,
            boxes,
            at: [of_tile([1, 0])?, of_tile([0, 1])?],
            to: (blocks > 1).then(|| (1 << blocks) - 1),
        })
    }

    /// The first row and the first column of a box of the block of a rank.
    pub(super) fn place(
        &self,
        k: &mut Kernel,
        number: i64,
        rank: Expr,
    ) -> Result<[Expr; 2], PlanError> {
        let number = k.constant(number);
        let [row, column] = &self.at;
        let row = k.index(row, &[number, rank])?;
        Ok([row, k.index(column, &[number, rank])?])
    }
}

impl Specialized {
    /// Blocks of a cluster along x, y and z of the grid, whose x counts rows of tiles and y columns.
    pub(super) fn cluster_of_grid(&self) -> [u32; 3] {
        let (rows, columns) = self.cluster_shape();
        [rows as u32, columns as u32, 1]
    }

    /// Whether blocks share operands.
    pub(super) fn is_clustered(&self) -> bool {
        self.cluster_shape() != (1, 1)
    }

    /// The portion of A (or of B) that a block copies: blocks side by side have A's tile in common, those one below the other B's.
    pub(super) fn portion(&self, tile: &OperandMaps, is_a: bool) -> Result<Portion, PlanError> {
        let (rows, columns) = self.cluster_shape();
        Portion::of(tile, if is_a { columns } else { rows })
    }

    /// The axis of the grid along which blocks have A's (or B's) tile in common.
    pub(super) fn axis_of_sharing(is_a: bool) -> Axis {
        if is_a { Axis::Y } else { Axis::X }
    }
}

#[cfg(test)]
mod tests {
    use layout_core::TensorBox;

    use super::Portion;
    use crate::gemm::{Config, Operands};
    use layout_codegen::ir::Kernel;

    /// All blocks together copy each line of the tile once, and as many each.
    #[test]
    fn portions_are_the_tile() {
        let mut divided = 0;
        for config in Config::table().filter(Config::is_wgmma) {
            let plan = config.kernel();
            for operands in Operands::ALL {
                let maps = plan.maps(operands).expect("maps");
                for (tile, blocks) in [&maps.a, &maps.b]
                    .into_iter()
                    .flat_map(|t| [(t, 1), (t, 2), (t, 4)])
                {
                    let Ok(portion) = Portion::of(tile, blocks) else {
                        // 144 rows are not four times as many by eights.
                        assert_ne!(tile.rows % (8 * blocks), 0, "{}", plan.name());
                        continue;
                    };
                    divided += 1;
                    let whole = TensorBox::of(&tile.derived, tile.bytes).expect("boxes");
                    let wide = whole.columns;
                    let mut seen = vec![0; (tile.rows * tile.cols / wide) as usize];
                    let mut k = Kernel::new("k", 32);
                    for rank in 0..blocks {
                        for number in 0..portion.boxes {
                            let at = k.constant(rank);
                            let place = portion.place(&mut k, number, at).expect("a place");
                            let [row, column] = place.map(|e| k.as_const(e).expect("a number"));
                            for line in row..row + portion.rows {
                                seen[(line * (tile.cols / wide) + column / wide) as usize] += 1;
                            }
                        }
                    }
                    assert!(
                        seen.iter().all(|&n| n == 1),
                        "{} {operands}: {seen:?}",
                        plan.name()
                    );
                }
            }
        }
        assert!(divided > 100, "{divided}");
    }
}
