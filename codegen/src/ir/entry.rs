//! A finished kernel: what the prover reads and the printer prints.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::index::code::Operand;
use crate::index::{Expr, Pool};

use super::inst::Axis;
use super::meaning::Meaning;
use super::node::Node;
use super::param::Param;
use super::place::{Buffer, Place};
use super::value::{Class, Reg};

/// The shared memory of a kernel.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiling {
    /// The value, of block indices.
    pub index: Expr,
    /// What the tiles cover, in elements.
    pub extent: Expr,
    /// Elements of a tile.
    pub tile: i64,
}

/// A finished kernel.
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
    /// The buffers that it touches.
    pub buffers: Vec<Buffer>,
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
