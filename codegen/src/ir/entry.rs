//! A finished kernel: what the prover reads and the printer prints.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::index::code::Operand;
use crate::index::{Expr, Pool};

use super::hopper::{Ring, TensorMap};
use super::inst::Axis;
use super::meaning::Meaning;
use super::node::Node;
use super::param::Param;
use super::place::{Buffer, Place};
use super::value::{Class, Reg};

/// The shared memory of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shared {
    /// Its size, in bytes.
    pub(crate) bytes: u64,
    /// What its address is a multiple of, in bytes.
    pub(crate) align: u32,
    /// The launch gives its size; else the kernel declares it.
    pub(crate) dynamic: bool,
}

/// An axis of the grid that counts tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TileAxis {
    /// The axis.
    pub(crate) axis: Axis,
    /// What the tiles cover, in elements.
    pub(crate) extent: Expr,
    /// Elements of a tile.
    pub(crate) tile: i64,
}

/// A value that counts tiles: the blocks of a launch have each of its values, from 0 to the last tile that covers an extent, exactly once. Blocks
/// with larger values have nothing to store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tiling {
    /// The value, of block indices.
    pub(crate) index: Expr,
    /// What the tiles cover, in elements.
    pub(crate) extent: Expr,
    /// Elements of a tile.
    pub(crate) tile: i64,
}

/// How a loop deals out the tiles of a matrix to its iterations and to blocks: where the tile of an iteration begins. The iterations and blocks of a launch have each tile of
/// the matrix exactly once, which the prover shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deal {
    /// The counter of the loop.
    pub(crate) counter: Reg,
    /// The first row and column of the tile, made of the counter and of block indices: multiples of the tile's.
    pub(crate) origin: [Expr; 2],
    /// Rows and columns of the matrix.
    pub(crate) extents: [Expr; 2],
    /// Rows and columns of a tile.
    pub(crate) tiles: [i64; 2],
    /// How the tile follows from the number of the iteration and the block; none where the prover counts all tiles.
    pub(crate) order: Option<DealOrder<Expr>>,
}

/// Tiles in an order for all sizes: what a tile is made of, step by step. The prover takes nothing of it for granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DealOrder<X> {
    /// The number of the iteration and the block: the iteration times the blocks, and the block.
    pub(crate) position: X,
    /// The list whose element at this position is the tile's number, and the element; else the position is the number.
    pub(crate) list: Option<(usize, X)>,
    /// Row and column from the number.
    pub(crate) raster: Raster<X>,
}

/// Which tiles follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Raster<X> {
    /// Those of a row.
    Rows,
    /// Those of a column.
    Columns,
    /// Those of a column of a group of so many rows of tiles; the last group has the rows that are left.
    Groups {
        /// Rows of tiles of a group.
        of: i64,
        /// The number of the group.
        group: X,
        /// Its rows.
        height: X,
    },
}

impl<X: Copy> DealOrder<X> {
    /// With other values.
    pub(crate) fn map<Y>(&self, mut to: impl FnMut(X) -> Y) -> DealOrder<Y> {
        DealOrder {
            position: to(self.position),
            list: self.list.map(|(list, element)| (list, to(element))),
            raster: match self.raster {
                Raster::Rows => Raster::Rows,
                Raster::Columns => Raster::Columns,
                Raster::Groups { of, group, height } => Raster::Groups {
                    of,
                    group: to(group),
                    height: to(height),
                },
            },
        }
    }
}

/// A finished kernel, as the prover reads it and the printers print it. It cannot be changed.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Kernel;
///
/// let waits = Kernel::new("waits", 64);
/// assert_eq!(waits.build(Arch(80))?.entry().name(), "waits");
/// # Ok::<(), layout_codegen::prove::ProofError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Entry {
    /// What its author did wrong, which keeps it from being proven.
    pub(crate) mistake: Option<String>,
    /// Its name.
    pub(crate) name: String,
    /// The text has the lines of the author's program.
    pub(crate) lines: bool,
    /// Lines for the reader of the text.
    pub(crate) comments: Vec<String>,
    /// Threads of a block along x, y, z: a launch has exactly these.
    pub(crate) block: [u32; 3],
    /// Blocks along x, y, z: a launch has at most these.
    pub(crate) grid_limit: [u64; 3],
    /// Blocks of a cluster along x, y, z: a launch has whole clusters. All 1 without clusters.
    pub(crate) cluster: [u32; 3],
    /// Blocks that are to share a multiprocessor.
    pub(crate) min_blocks: Option<u32>,
    /// The parameters, in order.
    pub(crate) params: Vec<Param>,
    /// Its shared memory, if it has any.
    pub(crate) shared: Option<Shared>,
    /// Registers of each class.
    pub(crate) registers: BTreeMap<Class, u32>,
    /// Registers that hold addresses made by the index compiler.
    pub(crate) addresses: BTreeSet<Reg>,
    /// Axes of the grid that count tiles.
    pub(crate) tile_axes: Vec<TileAxis>,
    /// Values that count tiles, those of the axes too.
    pub(crate) tilings: Vec<Tiling>,
    /// Values that deal out tiles to iterations and blocks.
    pub(crate) deals: Vec<Deal>,
    /// Axes along which every launch has exactly so many blocks.
    pub(crate) whole_axes: Vec<(Axis, u64)>,
    /// The buffers that it touches.
    pub(crate) buffers: Vec<Buffer>,
    /// Pipelines of stages between roles.
    pub(crate) rings: Vec<Ring>,
    /// The arrays that copies by TMA read.
    pub(crate) tensor_maps: Vec<TensorMap>,
    /// What every launch keeps to: the first value is at most the second, in every block.
    pub(crate) promises: Vec<(Expr, Expr)>,
    /// Some of that is held by the program that launches a module, and not by the launch contract of a single kernel.
    pub(crate) for_modules: bool,
    /// What its predicates and chosen values mean.
    pub(crate) meanings: HashMap<Reg, Meaning>,
    /// What its addresses mean.
    pub(crate) places: Vec<Place>,
    /// Bytes of the accesses at each place: powers of two, added up.
    pub(crate) widths: Vec<u32>,
    /// The index expressions that those are written in.
    pub(crate) pool: Pool,
    /// The registers that hold the variables of those expressions.
    pub(crate) variables: HashMap<String, Operand>,
    /// Those of them that are numbers of their type whatever their registers hold: indices from data.
    pub(crate) indices: HashSet<String>,
    /// What it does.
    pub(crate) nodes: Vec<Node>,
}

impl Entry {
    /// Its name.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    ///
    /// let waits = Kernel::new("waits", 64);
    /// assert_eq!(waits.build(Arch(80))?.entry().name(), "waits");
    /// # Ok::<(), layout_codegen::prove::ProofError>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many blocks a cluster has.
    pub(crate) fn cluster_blocks(&self) -> u32 {
        self.cluster.iter().product()
    }
}
