//! Tile schedulers: which tiles of C a block computes, and in which order.
//!
//! A [`Config`](super::Config) says which [`Scheduler`] it has; a kernel for a problem has a [`TileSchedule`], in which its sizes are known as far as they
//! matter:
//!
//! ```text
//! Groups       x: row in a group of 8, y: column, z: group      blocks run down 8 rows, then across the columns, then to the next group,
//!                                                               so that they share tiles of B in the cache
//! Columns      x: column, y and z: row                          as maxas has it
//! Batch        x: row, y: column, z: product of a batch
//! SplitK       x: row, y: column, z: part of split sums
//! Rectangle    x: row, y: column, of the first tile             persistent: steps of a rectangle of blocks
//! Linear       x: number of the first tile                      persistent: steps of all blocks in the order of all tiles
//! ```
//!
//! The order of tiles of a linear schedule is a layout: so many rows of tiles at a time, column by column.
//!
//! ```text
//! 64 × 57 tiles, 8 rows at a time    number of a tile = (row of 8, column, group) of (8, 57, 8)    row (8,57,8):(1,0,8), column (8,57,8):(0,1,0)
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::Instructions;
use layout_codegen::ir::{Axis, Kernel};
use layout_core::Layout;

use super::{LIMIT, Limit, PlanError, ProblemError};

/// Which tiles of C a block computes.
///
/// ```
/// use tilewright_kernels::gemm::{Config, Order, Scheduler};
///
/// let of = |name: &str| name.parse().map(|config: Config| config.scheduler);
/// assert_eq!(of("wgmma-bf16-128x256x64")?, Scheduler::Grid);
/// assert_eq!(of("wgmma-bf16-128x256x64+persistent")?, Scheduler::Persistent(Order::Rectangle));
/// assert_eq!(of("wgmma-e4m3-256x144x128+pingpong+linear")?, Scheduler::Persistent(Order::Linear));
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheduler {
    /// One, of one product of a batch or one part of split sums.
    Grid,
    /// Several, in a persistent kernel: a launch has at most 132 blocks. For GPUs of 128 multiprocessors and more.
    Persistent(Order),
}

/// In which order persistent blocks take tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// By a rectangle of blocks, which steps over C.
    Rectangle,
    /// By the numbers of tiles: block b has tiles b, b + blocks, b + 2·blocks …
    Linear,
}

impl Scheduler {
    /// The kernel is persistent.
    pub const fn is_persistent(self) -> bool {
        matches!(self, Self::Persistent(_))
    }
}

/// Blocks of one column of C that run one after another.
pub(crate) const GROUP: u64 = 8;

/// Blocks along the y and the z axis of a grid.
pub(crate) const GRID_YZ: u64 = 65_535;

/// Blocks of a persistent launch, at most: the multiprocessors of an H100 SXM and an H200.
pub(crate) const PERSISTENT_BLOCKS: u32 = 132;

/// Tiles of a linear schedule, at most: the prover counts them, and uses of stages by those of a block are less than 2³¹.
pub(crate) const MOST_LINEAR_TILES: u64 = 1 << 19;

/// The largest m, n and k of a persistent kernel, so that all uses of stages are counted in 64 bits.
pub(crate) const PERSISTENT_LIMIT: i64 = 1 << 24;

/// The best rectangle of persistent blocks, in whole clusters: rows and columns of blocks, and how many tiles each then has. They have the fewest
/// tiles, each of which takes as long as it has elements and longer for the rows and columns that all of its blocks read: squares share most in the cache.
pub(crate) fn best_rectangle(
    [down, across]: [u64; 2],
    [tm, tn]: [u64; 2],
    cluster: [u32; 2],
) -> ([u32; 2], u64) {
    let tiles_each = |[rows, columns]: [u32; 2]| {
        down.div_ceil(rows.into())
            .saturating_mul(across.div_ceil(columns.into()))
    };
    let time = |blocks: [u32; 2]| {
        let [rows, columns] = blocks.map(u64::from);
        let read = rows * tm + columns * tn;
        tiles_each(blocks).saturating_mul(4 * tm * tn + 3 * read)
    };
    let whole = |most: u32, of: u32| (of..=most).step_by(of as usize);
    let best = whole(PERSISTENT_BLOCKS / cluster[1], cluster[0])
        .flat_map(|rows| {
            whole(PERSISTENT_BLOCKS / rows, cluster[1]).map(move |columns| [rows, columns])
        })
        .min_by_key(|&blocks| time(blocks));
    let best = best.unwrap_or(cluster);
    (best, tiles_each(best))
}

/// Rows of tiles that a linear schedule takes together: those of a group, or fewer where a block then has fewer tiles. More would read less, but fewer blocks would share what they
/// ask for at a time: 16 rows took 2.7 to 3.1 million clocks at 8192³ in bf16, 8 rows 2.1.
fn rows_together([down, across]: [u32; 2], blocks: u32) -> u32 {
    let tiles_each = |rows: &u32| {
        let tiles = u64::from(down.next_multiple_of(*rows)) * u64::from(across);
        tiles.div_ceil(blocks.into())
    };
    (1..=GROUP as u32).rev().min_by_key(tiles_each).unwrap_or(1)
}

/// Tiles of a block in a linear schedule, at most.
pub(crate) fn linear_tiles_each(tiles: [u32; 2], blocks: u32) -> u64 {
    let [down, across] = tiles;
    let rows = down.next_multiple_of(rows_together(tiles, blocks));
    (u64::from(rows) * u64::from(across)).div_ceil(blocks.into())
}

/// Rows and columns of the tiles that all blocks of a linear schedule have at a time, about, and how many tiles each block has.
pub(crate) fn linear_wave([down, across]: [u64; 2]) -> ([u32; 2], u64) {
    let most = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let tiles = [most(down), most(across)];
    let rows = rows_together(tiles, PERSISTENT_BLOCKS);
    let each = linear_tiles_each(tiles, PERSISTENT_BLOCKS);
    ([rows, PERSISTENT_BLOCKS / rows], each)
}

/// Number of a tile → its row, and its column.
pub(crate) fn linear_order(tiles: [u32; 2], blocks: u32) -> Result<[Layout; 2], PlanError> {
    let rows = i64::from(rows_together(tiles, blocks));
    let [down, across] = tiles.map(i64::from);
    let extents = [rows, across.max(1), (down + rows - 1).max(1) / rows];
    Ok([
        Layout::flat(&extents, &[1, 0, rows])?,
        Layout::flat(&extents, &[0, 1, 0])?,
    ])
}

/// Which tiles the blocks of a kernel compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileSchedule {
    /// One each: so many rows of tiles at a time, column by column.
    Groups,
    /// One each: row by row.
    Columns,
    /// One each, of a product of a batch.
    Batch,
    /// One each, of a part of the sums, with the largest number of parts.
    SplitK(u32),
    /// Several, by a rectangle of persistent blocks: their rows and columns.
    Rectangle([u32; 2]),
    /// Several, by a linear tile scheduler.
    Linear {
        /// Blocks of the launch.
        blocks: u32,
        /// Rows and columns of tiles.
        tiles: [u32; 2],
    },
}

/// The tile of a block.
pub(crate) struct Tile {
    /// Its first row and column of C.
    pub(crate) row: Expr,
    pub(crate) col: Expr,
    /// Which product of a batch, or which part of the sums.
    pub(crate) layer: Option<Expr>,
}

impl TileSchedule {
    /// Blocks along x, y and z for so many rows and columns of tiles, of so many products of a batch or parts of sums.
    pub const fn blocks(self, [down, across]: [u64; 2], layers: u64) -> [u64; 3] {
        match self {
            Self::Groups => {
                let group = if down < GROUP { down } else { GROUP };
                [group, across, down.div_ceil(group)]
            }
            Self::Columns => {
                let y = if down < GRID_YZ { down } else { GRID_YZ };
                [across, y, down.div_ceil(GRID_YZ)]
            }
            Self::Batch | Self::SplitK(_) => [down, across, layers],
            Self::Rectangle([rows, columns]) => [rows as u64, columns as u64, 1],
            Self::Linear { blocks, .. } => [blocks as u64, 1, 1],
        }
    }

    /// Blocks along x, y and z for an m×n matrix in tiles of `rows` × `columns`, and the sizes that this serves.
    pub(crate) fn grid(
        self,
        [m, n]: [u64; 2],
        [rows, columns]: [u64; 2],
        layers: u64,
    ) -> Result<[u64; 3], ProblemError> {
        let at_most = |name, value, limit| Limit::Grid.at_most(name, value, limit);
        match self {
            Self::Groups => {
                at_most("n", n, GRID_YZ * columns)?;
                at_most("m", m, GRID_YZ * GROUP * rows)?;
            }
            Self::Batch => {
                at_most("n", n, GRID_YZ * columns)?;
                at_most("batch", layers, GRID_YZ)?;
            }
            Self::SplitK(_) => {
                at_most("n", n, GRID_YZ * columns)?;
                at_most("split", layers, GRID_YZ)?;
            }
            Self::Linear { tiles, .. } => {
                at_most("m", m, u64::from(tiles[0]) * rows)?;
                at_most("n", n, u64::from(tiles[1]) * columns)?;
            }
            Self::Columns | Self::Rectangle(_) => {}
        }
        Ok(self.blocks([m.div_ceil(rows), n.div_ceil(columns)], layers))
    }

    /// The tile of this block, of `tm` rows and `tn` columns, in an m×n matrix: the first one of a persistent block.
    pub(crate) fn tile(
        self,
        k: &mut Kernel,
        [m, n]: [Expr; 2],
        (tm, tn): (i64, i64),
    ) -> Result<Tile, PlanError> {
        match self {
            Self::Groups => {
                let col = column(k, n, tn)?;
                grouped_row(k, (m, tm), col)
            }
            Self::Columns => columns_first(k, [m, n], (tm, tn)),
            Self::Batch | Self::SplitK(_) => {
                let col = column(k, n, tn)?;
                let blocks = k.whole_clusters(Axis::X, (LIMIT as i64 / tm) as u64 + 1);
                let bx = k.block_index(Axis::X, blocks);
                let bz = k.block_index(Axis::Z, GRID_YZ);
                k.launch_tiles(bx, m, tm);
                let row = k.index(&Layout::mode(1, tm)?, &[bx])?;
                let layer = Some(bz);
                Ok(Tile { row, col, layer })
            }
            Self::Rectangle([rows, columns]) => {
                let row = first_of_blocks(k, (Axis::X, rows), tm)?;
                let col = first_of_blocks(k, (Axis::Y, columns), tn)?;
                Ok(alone(row, col))
            }
            Self::Linear { blocks, .. } => {
                // Where it is depends on the iteration.
                k.block_index(Axis::X, blocks.into());
                k.launch_blocks(Axis::X, blocks.into());
                let zero = k.constant(0);
                Ok(alone(zero, zero))
            }
        }
    }
}

/// A tile of the only product, with all of its sums.
fn alone(row: Expr, col: Expr) -> Tile {
    let layer = None;
    Tile { row, col, layer }
}

/// The first row or column of the first tile of a persistent block.
fn first_of_blocks(
    k: &mut Kernel,
    (axis, count): (Axis, u32),
    tile: i64,
) -> Result<Expr, PlanError> {
    let block = k.block_index(axis, count.into());
    k.launch_blocks(axis, count.into());
    Ok(k.index(&Layout::mode(1, tile)?, &[block])?)
}

/// The first column of a tile whose column is the block's y.
fn column(k: &mut Kernel, n: Expr, tn: i64) -> Result<Expr, PlanError> {
    let by = k.block_index(Axis::Y, GRID_YZ);
    k.launch_tiles(by, n, tn);
    Ok(k.index(&Layout::mode(1, tn)?, &[by])?)
}

/// The tile whose row is x in group z.
fn grouped_row(k: &mut Kernel, (m, tm): (Expr, i64), col: Expr) -> Result<Tile, PlanError> {
    let group = GROUP as i64;
    let groups = (LIMIT as i64 / tm / group).min(65_534) as u64 + 1;
    let bx = k.block_index(Axis::X, GROUP);
    let bz = k.block_index(Axis::Z, groups);
    let row = k.index(&Layout::flat(&[group, 1], &[tm, tm * group])?, &[bx, bz])?;
    let tiles = k.index(&Layout::flat(&[group, 1], &[1, group])?, &[bx, bz])?;
    k.launch_tiles(tiles, m, tm);
    Ok(alone(row, col))
}

/// The tile whose column is x, and whose row is y, from the last one on z.
fn columns_first(
    k: &mut Kernel,
    [m, n]: [Expr; 2],
    (tm, tn): (i64, i64),
) -> Result<Tile, PlanError> {
    let hi = LIMIT as i64;
    let bx = k.block_index(Axis::X, (hi / tn) as u64 + 1);
    let by = k.block_index(Axis::Y, GRID_YZ);
    let bz = k.block_index(Axis::Z, (hi / tm) as u64 / GRID_YZ + 1);
    let rows = Layout::flat(&[GRID_YZ as i64, 1], &[1, GRID_YZ as i64])?;
    let down = k.index(&rows, &[by, bz])?;
    let col = k.index(&Layout::mode(1, tn)?, &[bx])?;
    let row = k.index(&Layout::mode(1, tm)?, &[down])?;
    k.launch_tiles(bx, n, tn);
    k.launch_tiles(down, m, tm);
    Ok(alone(row, col))
}

#[cfg(test)]
mod tests {
    use super::{PERSISTENT_BLOCKS, best_rectangle};

    /// Whole clusters, no more blocks than there may be, and hardly more tiles for each than in any other rectangle.
    #[test]
    fn blocks_have_few_tiles() {
        for (down, across) in [(1, 1), (48, 24), (18, 20), (32, 16), (27, 20), (200, 3)] {
            for cluster in [[1, 1], [2, 1], [1, 2]] {
                let tile = [128, 256];
                let ([rows, columns], each) = best_rectangle([down, across], tile, cluster);
                assert!(rows * columns <= PERSISTENT_BLOCKS);
                assert_eq!([rows % cluster[0], columns % cluster[1]], [0, 0]);
                for other_rows in (cluster[0]..=PERSISTENT_BLOCKS).step_by(cluster[0] as usize) {
                    let most = PERSISTENT_BLOCKS / other_rows / cluster[1] * cluster[1];
                    if most > 0 {
                        let other = down.div_ceil(other_rows.into()) * across.div_ceil(most.into());
                        assert!(
                            each <= other + other / 4,
                            "{down}x{across}: {rows}x{columns}"
                        );
                    }
                }
            }
        }
        // 2560³ by 128×144.
        assert_eq!(best_rectangle([20, 18], [128, 144], [1, 1]), ([20, 6], 3));
    }
}
