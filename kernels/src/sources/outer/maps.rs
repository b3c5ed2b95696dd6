//! The maps of an outer-product plan, each made by composing layouts.
//!
//! Everything starts from `owners`, which vectors of C's rows and columns a thread owns: a thread has two vectors along each side, half a
//! tile apart. With vectors of 2 doubles (`dgemm-4x4`) there are 16 of them along each half side:
//!
//! ```text
//! owners = (2,8,8,2):(16,1,32,8)     thread bits: 0 -> y vector bit 0, 1..3 -> x vector, 4..6 -> y vector bits 1..3, 7 -> x vector bit 3
//! x of the first vector              (16,16):(2,0) o owners
//! readX = stage bytes o that         one 16-byte load; half a tile further another
//! ```
//!
//! Lanes `l` and `l^1` read the same vector of x and lanes `l`, `l^2` the same of y: the pair rule of 16-byte loads merges the phases of both
//! reads, as in the maps of maxas.
//!
//! How a tile lies in a stage is the only difference between the plans: in rows along the side ([`Staging::Rows`]), or where the R700's
//! write map puts it ([`Staging::R700`], see [`r700`]). The reads follow by composition from either.

use layout_core::{Layout, LayoutError};

use super::r700;
use super::side::Side;
use crate::gemm::PlanError;

/// Rows and columns of C of a block.
pub const TILE: i64 = 64;

/// Elements along k of one stage.
pub const DEPTH: i64 = 8;

/// Stages in shared memory.
pub const STAGES: i64 = 2;

/// Bytes of a vector: the widest access.
const VECTOR: i64 = 16;

/// How the tiles lie in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Staging {
    /// The side is contiguous; rows of k follow each other, then the other operand, then the other stage.
    Rows,
    /// The write map of the R700's local data share.
    R700,
}

/// How the block brings one operand's tile from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// (thread, value) → element `side + 64·k` of the tile.
    pub tv: Layout,
    /// The same domain → byte in the operand's part of a stage.
    pub store: Layout,
    /// Neighbouring values that are neighbours in global memory: elements of one load.
    pub loaded: i64,
    /// Neighbouring values that are neighbours in shared memory: elements of one store.
    pub stored: i64,
}

/// The maps of one plan.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    /// Bytes of an element.
    pub bytes: i64,
    /// Elements of a vector of 16 bytes.
    pub vector: i64,
    /// Thread → vectors of C, `x + Q·y` with `Q` vectors along half a side.
    pub owners: Layout,
    /// (side, k) → byte in one operand's part of a stage.
    pub stage: Layout,
    /// From the part of x to that of y, and from a stage to the next, in bytes.
    pub apart: [i64; 2],
    /// Thread → byte of its first vector of x, and of y, in that operand's part of a stage.
    pub reads: [Layout; 2],
    loads: [Load; 2],
    staging: Staging,
}

/// The most values, up to `most` and a power of two, of which each group lies in steps of `step`.
fn together(values: &Layout, step: i64, most: i64) -> i64 {
    let mut size = most;
    while size > 1 {
        let steps = |i: i64| values.index(i) == values.index(i - i % size) + step * (i % size);
        if values.size() % size == 0 && (0..values.size()).all(steps) {
            return size;
        }
        size /= 2;
    }
    1
}

impl Maps {
    /// The maps of tiles of elements of `bytes` bytes that lie in shared memory as `staging` says.
    ///
    /// # Errors
    ///
    /// A composition that does not exist: none for 4 and 8 bytes.
    pub fn new(bytes: i64, staging: Staging) -> Result<Self, PlanError> {
        let vector = VECTOR / bytes;
        let q = TILE / 2 / vector;
        let owners = Layout::flat(&[2, 8, q / 2, q / 8], &[q, 1, 2 * q, 8])?;
        let threads = owners.size();
        // (thread, value) → element, where the side is contiguous in memory, and where k is.
        let (along, across) = match staging {
            Staging::Rows => {
                let per_row = TILE / vector;
                let rows = threads / per_row;
                let along = Layout::tuple(&[
                    Layout::flat(&[per_row, rows], &[vector, TILE])?,
                    Layout::flat(&[vector, DEPTH / rows], &[1, TILE * rows])?,
                ])?;
                let each = TILE * DEPTH / threads;
                let across = Layout::tuple(&[
                    Layout::flat(&[TILE, threads / TILE], &[1, TILE * each])?,
                    Layout::mode(each, TILE)?,
                ])?;
                (along, across)
            }
            Staging::R700 => (r700::owned()?, r700::owned()?),
        };
        let (stage, apart) = match staging {
            Staging::Rows => {
                let rows = Layout::flat(&[TILE, DEPTH], &[bytes, TILE * bytes])?;
                let part = TILE * DEPTH * bytes;
                (rows, [part, 2 * part])
            }
            Staging::R700 => (r700::stage()?, r700::APART),
        };
        let place = |elements: &Layout| stage.compose(elements);
        let first = |unit: [i64; 2]| place(&Layout::flat(&[q, q], &unit)?.compose(&owners)?);
        let load = |tv: Layout, step| -> Result<Load, LayoutError> {
            let store = place(&tv)?;
            Ok(Load {
                tv,
                store,
                loaded: together(&tv.get(1)?, step, vector),
                stored: together(&store.get(1)?, bytes, vector),
            })
        };
        Ok(Self {
            bytes,
            vector,
            owners,
            stage,
            apart,
            reads: [first([vector, 0])?, first([0, vector])?],
            loads: [load(along, 1)?, load(across, TILE)?],
            staging,
        })
    }

    /// How a side's tile is loaded: `along` if the side's index is contiguous in memory, else k is.
    pub fn load(&self, along: bool) -> &Load {
        &self.loads[usize::from(!along)]
    }

    /// Threads of the block.
    pub fn threads(&self) -> i64 {
        self.owners.size()
    }

    /// Values of a thread of one operand's tile.
    pub fn values(&self) -> i64 {
        TILE * DEPTH / self.threads()
    }

    /// Vectors along half a side.
    fn half(&self) -> i64 {
        TILE / 2 / self.vector
    }

    /// Bytes of all stages.
    pub fn shared_bytes(&self) -> i64 {
        match self.staging {
            Staging::Rows => STAGES * 2 * TILE * DEPTH * self.bytes,
            Staging::R700 => r700::BYTES,
        }
    }

    /// Thread → its first row of the tile (`Side::Y`) or column (`Side::X`).
    ///
    /// # Errors
    ///
    /// None for the plans there are.
    pub fn first(&self, side: Side) -> Result<Layout, LayoutError> {
        let unit = match side {
            Side::X => [self.vector, 0],
            Side::Y => [0, self.vector],
        };
        Layout::flat(&[self.half(), self.half()], &unit)?.compose(&self.owners)
    }

    /// (element of a vector, half of the tile) → row or column from the thread's first.
    ///
    /// # Errors
    ///
    /// None for the plans there are.
    pub fn steps(&self) -> Result<Layout, LayoutError> {
        Layout::flat(&[self.vector, 2], &[1, TILE / 2])
    }

    /// (thread, (element, half of x), (element, half of y)) → element `x + 64·y` of the tile of C.
    ///
    /// # Errors
    ///
    /// None for the plans there are.
    pub fn accumulators(&self) -> Result<Layout, LayoutError> {
        let (q, v) = (self.half(), self.vector);
        Layout::tuple(&[
            Layout::flat(&[q, q], &[v, v * TILE])?.compose(&self.owners)?,
            self.steps()?,
            Layout::flat(&[v, 2], &[TILE, TILE * TILE / 2])?,
        ])
    }

    /// Bytes that a thread reads of a side, (thread, (element, half), k) → byte, twice: from the read's address and its immediates, and from the
    /// elements that its accumulators need.
    ///
    /// # Errors
    ///
    /// None for the plans there are.
    pub fn fragment_read(&self, side: Side) -> Result<(Layout, Layout), LayoutError> {
        let stage = |elements: &Layout| self.stage.compose(elements);
        // An immediate is the byte of the element that is so far from the tile's first.
        let values = stage(&self.steps()?)?;
        let steps = stage(&Layout::mode(DEPTH, TILE)?)?;
        let fetched = Layout::tuple(&[self.reads[side as usize], values, steps])?;
        let needed =
            Layout::tuple(&[self.first(side)?, self.steps()?, Layout::mode(DEPTH, TILE)?])?;
        Ok((fetched, stage(&needed)?))
    }

    /// (thread, value, operand, stage) → byte of the kernel's shared memory, of what all threads store where the side is contiguous.
    ///
    /// # Errors
    ///
    /// None for the plans there are.
    pub fn stores(&self, along: bool) -> Result<Layout, LayoutError> {
        let [operand, stage] = self.apart;
        let store = self.load(along).store;
        Layout::tuple(&[
            store.get(0)?,
            store.get(1)?,
            Layout::mode(2, operand)?,
            Layout::mode(STAGES, stage)?,
        ])
    }
}
