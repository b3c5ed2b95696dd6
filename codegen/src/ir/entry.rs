//! A finished kernel: what the prover reads and the printer prints.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
///
/// ```
/// use layout_codegen::ir::{Kernel, Shared};
/// use layout_codegen::ir::Element;
/// use layout_core::Swizzled;
///
/// let mut k = Kernel::new("k", 128);
/// k.shared("tile", Element::F32, &Swizzled::parse("(32,32):(32,1)")?)?;
/// assert_eq!(k.finish().shared, Some(Shared { bytes: 4096, align: 1024, dynamic: false }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shared {
    /// Its size, in bytes.
    pub bytes: u64,
    /// What its address is a multiple of, in bytes.
    pub align: u32,
    /// The launch gives its size; else the kernel declares it.
    pub dynamic: bool,
}

/// An axis of the grid that counts tiles.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel, TileAxis};
///
/// let mut k = Kernel::new("k", 128);
/// let extent = k.size("n", 1000);
/// k.tiles(Axis::X, extent, 64)?;
/// assert_eq!(k.finish().tile_axes, [TileAxis { axis: Axis::X, extent, tile: 64 }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileAxis {
    /// The axis.
    pub axis: Axis,
    /// What the tiles cover, in elements.
    pub extent: Expr,
    /// Elements of a tile.
    pub tile: i64,
}

/// A value that counts tiles: the blocks of a launch have each of its values, from 0 to the last tile that covers an extent, exactly once. Blocks
/// with larger values have nothing to store.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel, Tiling};
///
/// let mut k = Kernel::new("k", 128);
/// let extent = k.size("n", 1000);
/// let index = k.tiles(Axis::X, extent, 64)?;
/// assert_eq!(k.finish().tilings, [Tiling { index, extent, tile: 64 }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiling {
    /// The value, of block indices.
    pub index: Expr,
    /// What the tiles cover, in elements.
    pub extent: Expr,
    /// Elements of a tile.
    pub tile: i64,
}

/// How a loop deals out the tiles of a matrix to its turns and to blocks: where the tile of a turn begins. The turns and blocks of a launch have each tile of
/// the matrix exactly once, which the prover counts.
///
/// ```
/// use layout_codegen::gemm::{Operands, Plan};
/// use layout_codegen::ir::Deal;
/// use layout_codegen::{Arch, registry::plan_named};
///
/// let plan = plan_named("wgmma-e4m3-256x144x128-pingpong-dealt")?;
/// let entry = &plan.entries(Operands::ALL[1], Arch(90))?[0];
/// // One for each loop over tiles: of two roles of consumers and of the producer.
/// assert_eq!(entry.deals.len(), 3);
/// let Deal { tiles, .. } = entry.deals[0];
/// assert_eq!(tiles, [256, 144]);
/// # Ok::<(), layout_codegen::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deal {
    /// The counter of the loop.
    pub counter: Reg,
    /// The first row and column of the tile, made of the counter and of block indices: multiples of the tile's.
    pub origin: [Expr; 2],
    /// Rows and columns of the matrix.
    pub extents: [Expr; 2],
    /// Rows and columns of a tile.
    pub tiles: [i64; 2],
}

/// A finished kernel.
///
/// ```
/// use layout_codegen::ir::{Class, Kernel};
///
/// let mut k = Kernel::new("k", 64);
/// k.reg(Class::F32);
/// let entry = k.finish();
/// assert_eq!((entry.name.as_str(), entry.block, entry.registers[&Class::F32]), ("k", [64, 1, 1], 1));
/// ```
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Lines for the reader of the text.
    pub comments: Vec<String>,
    /// Threads of a block along x, y, z: a launch has exactly these.
    pub block: [u32; 3],
    /// Blocks along x, y, z: a launch has at most these.
    pub grid_limit: [u64; 3],
    /// Blocks of a cluster along x, y, z: a launch has whole clusters. All 1 without clusters.
    pub cluster: [u32; 3],
    /// Blocks that are to share a multiprocessor.
    pub min_blocks: Option<u32>,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Its shared memory, if it has any.
    pub shared: Option<Shared>,
    /// Registers of each class.
    pub registers: BTreeMap<Class, u32>,
    /// Registers that hold addresses made by the index compiler.
    pub addresses: BTreeSet<Reg>,
    /// Axes of the grid that count tiles.
    pub tile_axes: Vec<TileAxis>,
    /// Values that count tiles, those of the axes too.
    pub tilings: Vec<Tiling>,
    /// Values that deal out tiles to turns and blocks.
    pub deals: Vec<Deal>,
    /// Axes along which every launch has exactly so many blocks.
    pub whole_axes: Vec<(Axis, u64)>,
    /// The buffers that it touches.
    pub buffers: Vec<Buffer>,
    /// Pipelines of stages between roles.
    pub rings: Vec<Ring>,
    /// The arrays that copies by TMA read.
    pub tensor_maps: Vec<TensorMap>,
    /// What every launch keeps to: the first value is at most the second, in every block.
    pub promises: Vec<(Expr, Expr)>,
    /// What its predicates and chosen values mean.
    pub meanings: HashMap<Reg, Meaning>,
    /// What its addresses mean.
    pub places: Vec<Place>,
    /// Bytes of the accesses at each place: powers of two, added up.
    pub widths: Vec<u32>,
    /// The index expressions that those are written in.
    pub pool: Pool,
    /// The registers that hold the variables of those expressions.
    pub variables: HashMap<String, Operand>,
    /// What it does.
    pub nodes: Vec<Node>,
}

impl Entry {
    /// How many blocks a cluster has.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// // A kernel without clusters.
    /// let entry = Kernel::new("k", 64).finish();
    /// assert_eq!((entry.cluster, entry.cluster_blocks()), ([1, 1, 1], 1));
    /// ```
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster.iter().product()
    }
}
