//! Raster: which tile of C a block computes.
//!
//! ```text
//! Grouped   x: row in a group of 8, y: column, z: group     blocks run down 8 rows, then across the columns, then to the next group,
//!                                                           so that they share tiles of B in the cache
//! Layers    x: row, y: column, z: layer                     a product of a batch, or a part of split sums
//! Turns     x: row, y: column, of the first tile            blocks take tile after tile, in steps of all blocks
//! Dealt     x: number of the first tile                     the same one by one, in the order of all tiles
//! ```
//!
//! The order of tiles that are dealt out is a layout: so many rows of tiles at a time, column by column.
//!
//! ```text
//! 64 × 57 tiles, 8 rows at a time    number of a tile = (row of 8, column, group) of (8, 57, 8)    row (8,57,8):(1,0,8), column (8,57,8):(0,1,0)
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::Instructions;
use layout_codegen::ir::{Axis, Kernel};
use layout_core::Layout;

use super::{LIMIT, Limit, PlanError, ProblemError};

/// Blocks of one column of C that run one after another.
pub(crate) const GROUP: u64 = 8;

/// Blocks along the y and the z axis of a grid.
pub(crate) const GRID_YZ: u64 = 65_535;

/// Blocks of a launch whose blocks take tile after tile, at most: the multiprocessors of an H100 SXM and an H200.
pub(crate) const TURNS_BLOCKS: u32 = 132;

/// Tiles that are dealt out one by one, at most: the prover counts them, and uses of stages by those of a block are less than 2³¹.
pub(crate) const MOST_DEALT: u64 = 1 << 19;

/// The largest m, n and k there, so that all uses of stages are counted in 64 bits.
pub(crate) const TURNS_LIMIT: i64 = 1 << 24;

/// How blocks that take tile after tile are best put, in whole clusters: rows and columns of blocks, and how many tiles each then has. They take the fewest
/// turns, each of which is as long as a tile has elements and longer for the rows and columns that all of its blocks read: squares share most in the cache.
pub(crate) fn best_turns(
    (down, across): (u64, u64),
    tile: (u64, u64),
    cluster: (u32, u32),
) -> ([u32; 2], u64) {
    let turns = |[rows, columns]: [u32; 2]| {
        down.div_ceil(rows.into())
            .saturating_mul(across.div_ceil(columns.into()))
    };
    let time = |blocks: [u32; 2]| {
        let [rows, columns] = blocks.map(u64::from);
        let read = rows * tile.0 + columns * tile.1;
        turns(blocks).saturating_mul(4 * tile.0 * tile.1 + 3 * read)
    };
    let whole = |most: u32, of: u32| (of..=most).step_by(of as usize);
    let best = whole(TURNS_BLOCKS / cluster.1, cluster.0)
        .flat_map(|rows| whole(TURNS_BLOCKS / rows, cluster.1).map(move |columns| [rows, columns]))
        .min_by_key(|&blocks| time(blocks));
    let best = best.unwrap_or([cluster.0, cluster.1]);
    (best, turns(best))
}

/// Rows of tiles that are dealt out together: those of a group, or fewer where that takes fewer turns. More would read less, but fewer blocks would share what they ask for at a
/// time: 16 rows took 2.7 to 3.1 million clocks at 8192³ in bf16, 8 rows 2.1.
fn rows_together([down, across]: [u32; 2], blocks: u32) -> u32 {
    let turns = |rows: &u32| {
        let tiles = u64::from(down.next_multiple_of(*rows)) * u64::from(across);
        tiles.div_ceil(blocks.into())
    };
    (1..=GROUP as u32).rev().min_by_key(turns).unwrap_or(1)
}

/// How often a block gets a tile where `blocks` of them have them dealt out.
pub(crate) fn turns_of_deal(tiles: [u32; 2], blocks: u32) -> u64 {
    let [down, across] = tiles;
    let rows = down.next_multiple_of(rows_together(tiles, blocks));
    (u64::from(rows) * u64::from(across)).div_ceil(blocks.into())
}

/// Rows and columns of the tiles that all blocks have in a turn, about, and how many tiles each block has.
pub(crate) fn best_deal((down, across): (u64, u64)) -> ([u32; 2], u64) {
    let most = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let tiles = [most(down), most(across)];
    let rows = rows_together(tiles, TURNS_BLOCKS);
    let turns = turns_of_deal(tiles, TURNS_BLOCKS);
    ([rows, TURNS_BLOCKS / rows], turns)
}

/// Number of a tile → its row, and its column.
pub(crate) fn order_of_deal(tiles: [u32; 2], blocks: u32) -> Result<[Layout; 2], PlanError> {
    let rows = i64::from(rows_together(tiles, blocks));
    let [down, across] = tiles.map(i64::from);
    let extents = [rows, across.max(1), (down + rows - 1).max(1) / rows];
    Ok([
        Layout::flat(&extents, &[1, 0, rows])?,
        Layout::flat(&extents, &[0, 1, 0])?,
    ])
}

/// The order of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Raster {
    /// Groups of rows of tiles.
    Grouped,
    /// The third axis counts products of a batch or parts of sums.
    Layers,
    /// Blocks take tile after tile; so many of them have tiles one below the other and side by side.
    Turns([u32; 2]),
    /// So many blocks take tile after tile, one by one, of so many below each other and side by side.
    Dealt(u32, [u32; 2]),
}

/// The tile of a block.
pub(crate) struct Tile {
    /// Its first row and column of C.
    pub(crate) row: Expr,
    pub(crate) col: Expr,
    /// Which product of a batch, or which part of the sums.
    pub(crate) layer: Option<Expr>,
}

impl Raster {
    /// The tile of this block, of `tm` rows and `tn` columns, in an m×n matrix.
    pub(crate) fn tile(
        self,
        k: &mut Kernel,
        [m, n]: [Expr; 2],
        (tm, tn): (i64, i64),
    ) -> Result<Tile, PlanError> {
        let hi = LIMIT as i64;
        if let Raster::Turns(counts) = self {
            let at = [(Axis::X, tm), (Axis::Y, tn)];
            let mut first = Vec::new();
            for ((axis, tile), count) in at.into_iter().zip(counts) {
                let block = k.block_index(axis, count.into());
                k.launch_blocks(axis, count.into());
                first.push(k.index(&Layout::mode(1, tile)?, &[block])?);
            }
            return Ok(Tile {
                row: first[0],
                col: first[1],
                layer: None,
            });
        }
        if let Raster::Dealt(blocks, _) = self {
            // Where it is depends on the turn.
            k.block_index(Axis::X, blocks.into());
            k.launch_blocks(Axis::X, blocks.into());
            let zero = k.constant(0);
            return Ok(Tile {
                row: zero,
                col: zero,
                layer: None,
            });
        }
        let by = k.block_index(Axis::Y, GRID_YZ);
        k.launch_tiles(by, n, tn);
        let col = k.index(&Layout::mode(1, tn)?, &[by])?;
        if self == Raster::Grouped {
            let bx = k.block_index(Axis::X, GROUP);
            let bz = k.block_index(Axis::Z, (hi / tm / GROUP as i64).min(65_534) as u64 + 1);
            let group = Layout::flat(&[GROUP as i64, 1], &[tm, tm * GROUP as i64])?;
            let row = k.index(&group, &[bx, bz])?;
            let tiles = Layout::flat(&[GROUP as i64, 1], &[1, GROUP as i64])?;
            let tiles = k.index(&tiles, &[bx, bz])?;
            k.launch_tiles(tiles, m, tm);
            let layer = None;
            return Ok(Tile { row, col, layer });
        }
        let blocks = k.whole_clusters(Axis::X, (hi / tm) as u64 + 1);
        let bx = k.block_index(Axis::X, blocks);
        let bz = k.block_index(Axis::Z, GRID_YZ);
        k.launch_tiles(bx, m, tm);
        let row = k.index(&Layout::mode(1, tm)?, &[bx])?;
        let layer = Some(bz);
        Ok(Tile { row, col, layer })
    }

    /// Blocks along x, y and z for an m×n matrix in tiles of `rows` × `columns`; `layers` is the name and the number of what the third
    /// axis counts.
    pub(crate) fn grid(
        self,
        (m, n): (u64, u64),
        (rows, columns): (u64, u64),
        layers: (&'static str, u64),
    ) -> Result<[u64; 3], ProblemError> {
        let at_most = |name, value, limit| Limit::Grid.at_most(name, value, limit);
        if let Raster::Turns([rows, columns]) = self {
            return Ok([rows.into(), columns.into(), 1]);
        }
        if let Raster::Dealt(blocks, [down, across]) = self {
            at_most("m", m, u64::from(down) * rows)?;
            at_most("n", n, u64::from(across) * columns)?;
            return Ok([blocks.into(), 1, 1]);
        }
        at_most("n", n, GRID_YZ * columns)?;
        let down = m.div_ceil(rows);
        let across = n.div_ceil(columns);
        if self == Raster::Grouped {
            at_most("m", m, GRID_YZ * GROUP * rows)?;
            let group = GROUP.min(down);
            return Ok([group, across, down.div_ceil(group)]);
        }
        at_most(layers.0, layers.1, GRID_YZ)?;
        Ok([down, across, layers.1])
    }
}

#[cfg(test)]
mod tests {
    use super::{TURNS_BLOCKS, best_turns};

    /// Whole clusters, no more blocks than there may be, and hardly more tiles for each than in any other rectangle.
    #[test]
    fn blocks_have_few_tiles() {
        for (down, across) in [(1, 1), (48, 24), (18, 20), (32, 16), (27, 20), (200, 3)] {
            for cluster in [(1, 1), (2, 1), (1, 2)] {
                let tile = (128, 256);
                let ([rows, columns], turns) = best_turns((down, across), tile, cluster);
                assert!(rows * columns <= TURNS_BLOCKS);
                assert_eq!((rows % cluster.0, columns % cluster.1), (0, 0));
                for other_rows in (cluster.0..=TURNS_BLOCKS).step_by(cluster.0 as usize) {
                    let most = TURNS_BLOCKS / other_rows / cluster.1 * cluster.1;
                    if most > 0 {
                        let other = down.div_ceil(other_rows.into()) * across.div_ceil(most.into());
                        assert!(
                            turns <= other + other / 4,
                            "{down}x{across}: {rows}x{columns}"
                        );
                    }
                }
            }
        }
        // 2560³ by 128×144.
        assert_eq!(best_turns((20, 18), (128, 144), (1, 1)), ([20, 6], 3));
    }
}
