//! The maxas maps as layouts, each made by composing what a thread owns with where that lives.
//!
//! Everything starts from one layout, `quads`: which 4×4 blocks of C a thread owns. With `Q = W/8` quads along each half side, for
//! the 64×64 tile:
//!
//! ```text
//! quads = (2,8,4):(8,1,16)      thread bits: 0 -> y quad bit 0, 1..3 -> x quad, 4..5 -> y quad bits 1..2
//! x of the first quad           (8,8):(4,0) o quads = (2,8,4):(0,4,0)
//! readAs = stage bytes o that   (2,8,4):(0,16,0)  =  ((tid >> 1) & 7) << 4
//! ```
//!
//! Lanes `l` and `l^1` read the same x quad and lanes `l`, `l^2` the same y quad: the pair rule merges the phases of both
//! reads, so each costs 2 wavefronts instead of 4.

use std::fmt;

use layout_core::{Layout, LayoutError};

/// Elements along k that one stage holds.
pub const K_STEP: i64 = 8;

/// Bytes of an f32.
pub(super) const BYTES: i64 = 4;

/// One of the two operands, named by the axis of C that it runs along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Columns of C: op(B).
    X,
    /// Rows of C: op(A).
    Y,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Side::X { "x" } else { "y" })
    }
}

/// How half of the block brings one operand's tile from global to shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The load's name in reports.
    pub name: &'static str,
    /// The store's name: the tag of its instructions.
    pub store_name: &'static str,
    /// (thread of the half block, (element of a vector, vector, …)) → element `x + W·k` of the tile.
    pub tv: Layout,
    /// The same domain → byte in the stage.
    pub store: Layout,
}

/// The maps of one tile size.
#[derive(Clone, Copy, Debug)]
pub struct Maps {
    /// The tile's side W.
    pub w: i64,
    /// Thread → quads of C, `qx + Q·qy`.
    pub quads: Layout,
    /// Thread → byte in the x half of a stage: readAs.
    pub read_x: Layout,
    /// Thread → byte in the y half of a stage: readBs without the base of that half.
    pub read_y: Layout,
    /// Thread → byte in the staging rows: writeCs.
    pub write_c: Layout,
    /// (thread, (row 4, half 2)) → byte in the staging rows: readCs.
    pub read_c: Layout,
    /// ((thread, (row 4, half 2)), (pass 4, half of y 2)) → element `x + W·y` of the tile of C.
    pub c_out: Layout,
    along: Load,
    across: Load,
    along_y: Load,
    across_y: Load,
}

fn scaled(l: &Layout, factor: i64) -> Result<Layout, LayoutError> {
    // (byte : factor) after l
    let size = l.cosize().max(1);
    Layout::mode(size, factor)?.compose(l)
}

impl Maps {
    /// The maps of a tile of side 64 or 128.
    ///
    /// # Errors
    ///
    /// A composition that does not exist: none for these sizes.
    pub fn new(w: i64) -> Result<Self, LayoutError> {
        let q = w / 8;
        let quads = if w == 64 {
            Layout::flat(&[2, 8, 4], &[q, 1, 2 * q])?
        } else {
            Layout::flat(&[2, 8, 8, 2], &[q, 1, 2 * q, 8])?
        };
        let half = w * w / 64 / 2;

        // A stage keeps x contiguous: element x + W·k at byte 4·(x + W·k).
        let stage = Layout::mode(w * K_STEP, BYTES)?;
        let read_x = stage.compose(&Layout::flat(&[q, q], &[4, 0])?.compose(&quads)?)?;
        let read_y = stage.compose(&Layout::flat(&[q, q], &[0, 4])?.compose(&quads)?)?;

        // Staging: one row for each y quad, W elements of x; element x + W·qy.
        let staging = Layout::mode(w * q, BYTES)?;
        let write_c = staging.compose(&Layout::flat(&[q, q], &[4, w])?.compose(&quads)?)?;

        // A warp reads back the rows it wrote, its lanes along x. What it wrote: lanes 0..32 hold 4 y quads and, of the
        // x quads, 8 in a row (32 elements) and their twins half a tile further.
        let lanes = if w == 64 {
            Layout::flat(&[32, 2], &[1, 4 * w])?
        } else {
            Layout::flat(&[32, 4, 2], &[1, 4 * w, 32])?
        };
        let rows = Layout::flat(&[4, 2], &[w, w / 2])?;
        let owned = Layout::tuple(&[lanes, rows])?;
        let read_c = staging.compose(&owned)?;

        // Staging row qy of pass `it` is row 4·qy + it of the tile, and W/2 further in the second half.
        let row_of = Layout::flat(&[w, q], &[1, 4 * w])?;
        let c_out = Layout::tuple(&[
            row_of.compose(&owned)?,
            Layout::flat(&[4, 2], &[w, w * w / 2])?,
        ])?;

        let per_row = w / 4;
        let rows_at_once = half / per_row;
        // Side contiguous in memory: a thread takes 4 neighbours of one k row, then the same of later rows.
        let along_tv = Layout::tuple(&[
            Layout::flat(&[per_row, rows_at_once], &[4, w])?,
            Layout::flat(&[4, K_STEP / rows_at_once], &[1, w * rows_at_once])?,
        ])?;
        // k contiguous in memory: a thread takes the 8 elements along k of one row of the tile (two rows if W > half).
        let across_tv = Layout::tuple(&[
            Layout::mode(half, 1)?,
            Layout::flat(&[4, 2, w / half], &[w, 4 * w, half])?,
        ])?;
        let load = |name, store_name, tv: Layout| -> Result<Load, LayoutError> {
            Ok(Load {
                name,
                store_name,
                tv,
                store: stage.compose(&tv)?,
            })
        };
        Ok(Self {
            w,
            quads,
            read_x,
            read_y,
            write_c,
            read_c,
            c_out,
            along: load("loadX", "writeS.x", along_tv)?,
            across: load("loadX.k", "writeS.x", across_tv)?,
            along_y: load("loadY", "writeS.y", along_tv)?,
            across_y: load("loadY.k", "writeS.y", across_tv)?,
        })
    }

    /// How a side's tile is loaded: `along` if the side's index is contiguous in memory, else k is.
    pub fn load(&self, side: Side, along: bool) -> Load {
        match (side, along) {
            (Side::X, true) => self.along,
            (Side::X, false) => self.across,
            (Side::Y, true) => self.along_y,
            (Side::Y, false) => self.across_y,
        }
    }

    /// Threads of the block.
    pub fn threads(&self) -> i64 {
        self.quads.size()
    }

    /// Bytes of one operand's half of a stage.
    pub fn half_stage(&self) -> i64 {
        self.w * K_STEP * BYTES
    }

    /// (side, k) → byte in one operand's half of a stage.
    ///
    /// # Errors
    ///
    /// None for the sizes there are.
    pub fn half_of_stage(&self) -> Result<Layout, LayoutError> {
        Layout::flat(&[self.w, K_STEP], &[BYTES, self.w * BYTES])
    }

    /// (x, y quad) → byte in the staging rows.
    ///
    /// # Errors
    ///
    /// None for the sizes there are.
    pub fn staging(&self) -> Result<Layout, LayoutError> {
        Layout::flat(&[self.w, self.w / 8], &[BYTES, self.w * BYTES])
    }

    /// The elements that a map to bytes means.
    ///
    /// # Errors
    ///
    /// None for the maps there are.
    pub fn elements(&self, bytes: &Layout) -> Result<Layout, LayoutError> {
        Layout::flat(&[BYTES, bytes.cosize().max(1)], &[0, 1])?.compose(bytes)
    }

    /// Both stages: (element, side, stage) → float. The second side follows the first, the second stage both.
    ///
    /// # Errors
    ///
    /// None for the sizes there are.
    pub fn both_stages(&self) -> Result<Layout, LayoutError> {
        let side = self.w * K_STEP;
        Layout::flat(&[side, 2, 2], &[1, side, 2 * side])
    }

    /// (thread, (i 4, x half 2), (j 4, y half 2)) → element `x + W·y` of the tile of C.
    ///
    /// # Errors
    ///
    /// None for the sizes there are.
    pub fn accumulators(&self) -> Result<Layout, LayoutError> {
        let (w, q) = (self.w, self.w / 8);
        let corner = Layout::flat(&[q, q], &[4, 4 * w])?.compose(&self.quads)?;
        Layout::tuple(&[
            corner,
            Layout::flat(&[4, 2], &[1, w / 2])?,
            Layout::flat(&[4, 2], &[w, w * w / 2])?,
        ])
    }

    /// Bytes that a thread reads of a side, (thread, (vector element, half, k)) → byte, twice: from the read's address with its
    /// immediates, and from the elements that its accumulators need.
    ///
    /// # Errors
    ///
    /// None for the sizes there are.
    pub fn fragment_read(&self, side: Side) -> Result<(Layout, Layout), LayoutError> {
        let (w, q) = (self.w, self.w / 8);
        let read = if side == Side::X {
            self.read_x
        } else {
            self.read_y
        };
        let values = Layout::flat(&[4, 2, K_STEP], &[BYTES, w / 2 * BYTES, w * BYTES])?;
        let read = Layout::tuple(&[read, values])?;
        // The element: coordinate of the accumulator along this side, and k.
        let corner = if side == Side::X {
            Layout::flat(&[q, q], &[4, 0])?
        } else {
            Layout::flat(&[q, q], &[0, 4])?
        };
        let needed = Layout::tuple(&[
            corner.compose(&self.quads)?,
            Layout::flat(&[4, 2, K_STEP], &[1, w / 2, w])?,
        ])?;
        Ok((read, scaled(&needed, BYTES)?))
    }
}
