//! One operand's way from global memory to the fragments of `mma.sync`: shared layout, copy, reads.
//!
//! A tile of A is T×K (rows of C, k), a tile of B is K×T. In memory one of the two indices is contiguous, and shared memory keeps
//! it so: the tile is `rows × cols` with `cols` contiguous, where the rows are the side's index (`k` contiguous) or k (the side
//! contiguous). What lies between is only a swizzle, and it is *derived* from the two accesses that the kernel makes:
//!
//! ```text
//! write   cp.async.16   neighbouring lanes along a row, then down the rows (or .8, .4, or st.shared after ld.global)
//! read    ldmatrix.x4   8 rows of 16 bytes for each 8×8 matrix   (k contiguous)
//!         ldmatrix.x4.trans                                      (16-bit elements, side contiguous)
//!         ldmatrix.x4.trans and prmt, two bytes a unit           (8-bit elements, side contiguous)
//!         ld.32, ld.64         element by element                (everything else)
//! ```
//!
//! For f16 with k contiguous and 32 k a tile, rows are 64 bytes and the derivation finds `Sw<2,3,3>`: both accesses free of conflicts.

use layout_codegen::view::{in_bytes, panels};
use layout_core::atoms::{self, CopyAtom, MmaAtom};
use layout_core::banks::{Access, Matrices};
use layout_core::derive::{Family, Pattern, Tile, derive, derive_layout};
use layout_core::{Layout, LayoutError, Swizzled};

use crate::gemm::{PlanError, Refusal};

/// How a thread brings elements from global to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Copies {
    /// Bytes of one access of global memory: 16, 8, 4, 2 or 1.
    pub bytes: i64,
    /// By `cp.async`; else by `ld.global` and `st.shared`.
    pub asynchronous: bool,
    /// Through the first-level cache. Always so below 16 bytes (PTX ISA, `cp.async`).
    pub cached: bool,
}

impl Copies {
    /// Copies of `bytes` bytes: asynchronous where the hardware has such, and past the cache where that can be and is wanted.
    pub const fn of(bytes: i64, has_cp_async: bool, cached: bool) -> Self {
        Self {
            bytes,
            asynchronous: has_cp_async && bytes >= 4,
            cached: cached || bytes < 16,
        }
    }

    /// Bytes that one store puts into shared memory: at least a word.
    pub const fn unit(self) -> i64 {
        if self.bytes < 4 { 4 } else { self.bytes }
    }

    /// The access of shared memory.
    pub const fn access(self) -> Access {
        match (self.asynchronous, self.unit()) {
            (true, 16) => Access::CpAsync16,
            (true, 8) => Access::CpAsync8,
            (true, _) => Access::CpAsync4,
            (false, 16) => Access::St128,
            (false, 8) => Access::St64,
            (false, _) => Access::St32,
        }
    }
}

/// How a warp brings a fragment from shared memory to registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// `ldmatrix.x4`, with `.trans` or not.
    Ldmatrix {
        /// Transposing each 8×8 matrix of 16-bit elements.
        trans: bool,
    },
    /// `ldmatrix.x4.trans` of units of two bytes, which are then put apart: see [`pairs`].
    LdmatrixPairs,
    /// One load for each element.
    Elements,
    /// One load of 16 bytes for the elements of an FMA atom, which are neighbours along the side.
    Vectors,
    /// One load for two neighbours of the side.
    Neighbours,
    /// Not at all: the product reads shared memory, by a descriptor of the tile.
    Descriptor,
}

/// Bytes by `ldmatrix.trans`, where the side is contiguous.
///
/// A unit of 16 bits is two neighbours along the side. Transposed, a lane gets two units of one column of units: bytes (k, s), (k, s+1), (k+1,
/// s), (k+1, s+1). A second matrix holds the rows two further along k, so that two registers hold four k of both neighbours,
/// and two `prmt` put the neighbours apart:
///
/// ```text
/// matrix 0, lane (t, g)   k = 4t, 4t+1      s = 2g, 2g+1      prmt 0x6420   4t, 4t+1, 4t+2, 4t+3 of s = 2g
/// matrix 1                k = 4t+2, 4t+3    s = 2g, 2g+1      prmt 0x7531   the same of s = 2g+1
/// ```
///
/// Lane (t, g) has neighbours 2g and 2g+1 where a fragment has g and g + 8: the 16 indices of a side lie in this other order
/// ([`arrangement`](OperandMaps::arrangement)), which a product does not mind if C does likewise.
pub mod pairs {
    /// The selectors that put the first and the second neighbour together.
    pub const SELECTORS: [u16; 2] = [0x6420, 0x7531];

    /// Which byte of the two registers of half `h` of k becomes byte `i`: 0 to 3 of the first, 4 to 7 of the second.
    pub fn source(neighbour: i64, i: i64) -> i64 {
        2 * i + neighbour
    }

    /// Atom and register of a fragment that gets what was put together of half `h` of k. For A the neighbours are the two
    /// halves of an atom's rows, for B two atoms.
    pub fn target(is_a: bool, h: i64, neighbour: i64) -> (i64, i64) {
        if is_a {
            (0, 2 * h + neighbour)
        } else {
            (neighbour, h)
        }
    }
}

/// An operand's maps.
#[derive(Clone, Debug)]
pub struct OperandMaps {
    /// Rows of the shared tile.
    pub rows: i64,
    /// Columns of the shared tile: contiguous.
    pub cols: i64,
    /// Whether k is contiguous.
    pub k_major: bool,
    /// Bytes of an element.
    pub bytes: i64,
    /// (row, column) → byte of the stage.
    pub shared: Swizzled,
    /// (row, column) → element of the stage: the derived layout itself.
    pub derived: Swizzled,
    /// The certificate of the derivation, in words.
    pub certificate: String,
    /// (thread, (element of a vector, vector)) → `column + cols·row`.
    pub copy: Layout,
    /// Elements that are copied at once.
    pub vector: i64,
    /// Elements are stored one by one, to columns that were rows: k is contiguous in memory and the side in shared memory.
    pub transposes: bool,
    /// How they get there.
    pub copies: Copies,
    /// How fragments are read.
    pub read: Read,
    /// (lane, value) → `side + S·k` of what one read fills: with `ldmatrix.x4`, S = 16 for A and for two neighbours of B.
    pub fragment: Layout,
    /// Lane → `side + S·k` of the first element of the row that the lane points at (`ldmatrix`).
    pub points: Layout,
    /// The S of `fragment` and `points`: the side's extent in one read.
    pub side: i64,
}

/// Bytes of the panels that boxes of TMA and descriptors of `wgmma` have, as their swizzles do.
pub(super) const PANELS: [i64; 3] = [128, 64, 32];

/// One 16-bit unit, of which `ldmatrix` moves pairs whatever the element is.
const UNIT: i64 = 2;

/// Whether the atom is an outer product of fused multiply-adds, not an instruction.
pub(super) fn is_fma(atom: &MmaAtom) -> bool {
    *atom == atoms::FMA_M16N32_F32
}

/// A value for each lane of a warp.
fn lanes(first: impl Fn(i64) -> i64) -> [i64; 32] {
    std::array::from_fn(|lane| first(lane as i64))
}

impl OperandMaps {
    /// The maps of the A (`is_a`) or B operand for a tile of side `side_tile` and depth `k_tile`, copied by `threads` threads.
    ///
    /// # Errors
    ///
    /// A tile that the pieces do not divide, or one for which nothing can be derived.
    pub fn new(
        atom: &MmaAtom,
        is_a: bool,
        k_major: bool,
        (side_tile, k_tile): (i64, i64),
        (threads, copies): (i64, Copies),
    ) -> Result<Self, PlanError> {
        let bytes = if is_a {
            atom.a_type.bits()
        } else {
            atom.b_type.bits()
        } / 8;
        let (rows, cols) = if k_major {
            (side_tile, k_tile)
        } else {
            (k_tile, side_tile)
        };
        let vector = copies.unit() / bytes;
        let per_row = cols / vector;
        let fma = is_fma(atom);
        // Threads along a row first; a row longer than the block is walked by several copies of the same thread. Where rows become columns, four
        // neighbours of the side are stored by one warp: a swizzle keeps four together, and puts those of eight rows into banks of their own.
        let most = if fma && k_major { 8 } else { threads };
        let along = per_row.min(most);
        let (down, again) = (threads / along, per_row / along);
        let copies_down = rows / down;
        let copy = Layout::tuple(&[
            Layout::flat(&[along, down], &[vector, cols])?,
            Layout::flat(
                &[vector, again, copies_down],
                &[1, vector * along, cols * down],
            )?,
        ])?;
        if copy.size() != rows * cols {
            return Err(Refusal {
                obligation: "the copies cover the tile".to_owned(),
                reason: format!(
                    "{threads} threads with {} bytes each do not divide {rows}x{cols}",
                    copies.unit()
                ),
            }
            .into());
        }

        let read = match (bytes, k_major) {
            _ if fma => Read::Vectors,
            (1 | 2 | 4, true) => Read::Ldmatrix { trans: false },
            (2, false) => Read::Ldmatrix { trans: true },
            (1, false) => Read::LdmatrixPairs,
            _ => Read::Elements,
        };
        let (fragment, points, side) = Self::fragment(atom, is_a, read, bytes)?;
        let transposes = fma && k_major;
        let copies = Copies {
            asynchronous: copies.asynchronous && !transposes,
            ..copies
        };
        let mut maps = Self {
            rows,
            cols,
            k_major,
            bytes,
            shared: Layout::row_major(&[rows, cols])?.into(),
            derived: Layout::row_major(&[rows, cols])?.into(),
            certificate: String::new(),
            copy,
            vector,
            transposes,
            copies,
            read,
            fragment,
            points,
            side,
        };
        maps.derive()?;
        Ok(maps)
    }

    /// The maps of an operand of `wgmma`, copied by TMA: panels of 128 bytes side by side under the swizzle of 128 bytes. Rows of 64 or 32 bytes are one panel,
    /// under the swizzle of as many bytes.
    ///
    /// # Errors
    ///
    /// A tile whose rows are not whole panels.
    pub fn of_warpgroups(
        atom: &MmaAtom,
        is_a: bool,
        k_major: bool,
        tile: (i64, i64),
        threads: i64,
    ) -> Result<Self, PlanError> {
        let copies = Copies::of(16, true, false);
        // As many rows at a time as divide the tile: of 192 columns 24 threads have a row, and 144 rows are taken by sixteens.
        let bits = if is_a { atom.a_type } else { atom.b_type }.bits();
        let along = if k_major { tile.1 } else { tile.0 } * bits / 128;
        let rows = if k_major { tile.0 } else { tile.1 };
        let down = (threads / along).max(1).ilog2().min(rows.trailing_zeros());
        let threads = along.min(threads) << down;
        let mut maps = Self::new(atom, is_a, k_major, tile, (threads, copies))?;
        let (rows, cols) = (maps.rows, maps.cols);
        let panel = PANELS.into_iter().find(|&panel| panel == cols * maps.bytes);
        let panel = panel.unwrap_or(PANELS[0]);
        let wide = panel / maps.bytes;
        if cols % wide != 0 || rows % 8 != 0 {
            return Err(Refusal {
                obligation: "a tile of the swizzle of 128 bytes".to_owned(),
                reason: format!("{rows}x{cols} elements are not rows of 128 bytes by eights"),
            }
            .into());
        }
        maps.derived = panels([rows, cols], maps.bytes).map_err(|e| Refusal {
            obligation: "a tile that boxes of TMA fill".to_owned(),
            reason: e.to_string(),
        })?;
        maps.shared = in_bytes(&maps.derived, maps.bytes)?;
        "what both a box of TMA and a descriptor of wgmma express"
            .clone_into(&mut maps.certificate);
        maps.read = Read::Descriptor;
        (maps.fragment, maps.points, maps.side) =
            Self::fragment(atom, is_a, Read::Descriptor, maps.bytes)?;
        Ok(maps)
    }

    /// What one read fills: the fragment of the atom, or of two neighbouring atoms for B by `ldmatrix.x4`.
    fn fragment(
        atom: &MmaAtom,
        is_a: bool,
        read: Read,
        bytes: i64,
    ) -> Result<(Layout, Layout, i64), LayoutError> {
        let own = if is_a { atom.a } else { atom.b };
        let side = if is_a { atom.m } else { atom.n };
        let trans = match read {
            Read::Ldmatrix { trans } => trans,
            Read::LdmatrixPairs => {
                // Row of a matrix, then matrix: k = 4·(r/2) + r mod 2, 2 further, 16 further.
                let k = Layout::flat(&[2, 4, 2, 2], &[16, 16 * 4, 16 * 2, 16 * 16])?;
                return Ok((own, k, 16));
            }
            Read::Elements | Read::Vectors | Read::Neighbours | Read::Descriptor => {
                return Ok((own, own.get(0)?, side));
            }
        };
        // In units of 16 bits every K-major fragment is that of f16.
        let units = if is_a {
            atoms::MMA_M16N8K16_F16.a
        } else {
            atoms::MMA_M16N8K16_F16.b
        };
        let copy: &CopyAtom = if trans {
            &atoms::LDMATRIX_X4_TRANS
        } else {
            &atoms::LDMATRIX_X4
        };
        let whole = if is_a {
            units
        } else {
            // n + 8k becomes n + 16k, and the second atom's columns follow the first's.
            let wide = Layout::flat(&[8, 16], &[1, 16])?.compose(&units)?;
            Layout::tuple(&[
                wide.get(0)?,
                Layout::tuple(&[wide.get(1)?, Layout::mode(2, 8)?])?,
            ])?
        };
        let points = atoms::addresses_for(copy, &whole)?;
        // Rows of units to rows of elements: k counts bytes / UNIT units an element.
        let lane = points.get(0)?;
        let to_elements = if bytes == UNIT {
            lane
        } else {
            // side + 16·unit; a lane points at units 0 or 8 of k only.
            let per_chunk = 16 / bytes;
            Layout::flat(&[16, 8, 2], &[1, 0, 16 * per_chunk])?.compose(&lane)?
        };
        Ok((whole, to_elements, 16))
    }

    /// Whether the side lies in another order than the fragment's.
    pub fn is_arranged(&self) -> bool {
        self.read == Read::LdmatrixPairs
    }

    /// Index of the side within one read → index within the tile's part of it: in order, or neighbours assigned to the two
    /// halves ([`pairs`]).
    ///
    /// # Errors
    ///
    /// Those of [`Layout::flat`].
    pub fn arrangement(&self) -> Result<Layout, LayoutError> {
        if self.is_arranged() {
            Layout::flat(&[8, 2], &[2, 1])
        } else {
            Layout::flat(&[self.side], &[1])
        }
    }

    /// (side, k) to (row, column).
    pub fn place<T>(&self, side: T, k: T) -> (T, T) {
        if self.k_major { (side, k) } else { (k, side) }
    }

    /// Rows and columns of the tile that is derived: columns are what lies together in shared memory.
    fn derived_tile(&self) -> (i64, i64) {
        if self.transposes {
            (self.cols, self.rows)
        } else {
            (self.rows, self.cols)
        }
    }

    /// Row-major index in that tile of the element at a row and a column.
    fn row_major(&self, row: i64, col: i64) -> i64 {
        if self.transposes {
            col * self.rows + row
        } else {
            row * self.cols + col
        }
    }

    /// The same of a coordinate `side + S·k`.
    fn element(&self, coordinate: i64) -> i64 {
        let (row, col) = self.place(coordinate % self.side, coordinate / self.side);
        self.row_major(row, col)
    }

    /// The access of the reads, and its lanes' row-major element indices for the first fragment.
    pub fn read_pattern(&self) -> Pattern {
        let access = match (self.read, self.bytes) {
            (Read::Ldmatrix { trans: false }, _) => Access::LdMatrix {
                matrices: Matrices::X4,
                trans: false,
            },
            (Read::Ldmatrix { trans: true } | Read::LdmatrixPairs, _) => Access::LdMatrix {
                matrices: Matrices::X4,
                trans: true,
            },
            (Read::Elements, 8) | (Read::Neighbours, 4) => Access::Ld64,
            (Read::Elements | Read::Neighbours, _) => Access::Ld32,
            // What no instruction reads has no pattern; nothing is derived from this one.
            (Read::Vectors | Read::Descriptor, _) => Access::Ld128,
        };
        let elements = match self.read {
            Read::Ldmatrix { .. } | Read::LdmatrixPairs => {
                lanes(|lane| self.element(self.points.index(lane)))
            }
            Read::Elements | Read::Vectors | Read::Neighbours | Read::Descriptor => {
                lanes(|lane| self.element(self.fragment.at(&[lane, 0])))
            }
        };
        Pattern { access, elements }
    }

    /// The access of the copies, and its lanes' element indices.
    pub fn write_pattern(&self) -> Pattern {
        let access = if self.transposes {
            Access::St32
        } else {
            self.copies.access()
        };
        let first = |lane| {
            let at = self.copy.at(&[lane, 0]);
            self.row_major(at / self.cols, at % self.cols)
        };
        Pattern {
            access,
            elements: lanes(first),
        }
    }

    /// Derives the shared layout from the accesses.
    fn derive(&mut self) -> Result<(), PlanError> {
        let (rows, cols) = self.derived_tile();
        let tile = Tile {
            rows,
            cols,
            elem_bytes: self.bytes,
        };
        let patterns = [self.write_pattern(), self.read_pattern()];
        let refuse = |reason: String| {
            PlanError::Refused(Refusal {
                obligation: "a shared layout for the copies and the reads".to_owned(),
                reason,
            })
        };
        let mut best = derive(tile, &patterns, Family::Any).map_err(|e| refuse(e.to_string()))?;
        if best.matrix.is_some() {
            // A general F2 matrix is no layout with strides: the best swizzle of permuted strides serves.
            best = derive(tile, &patterns, Family::Permuted).map_err(|e| refuse(e.to_string()))?;
        } else if best.rotation.is_some() {
            best = derive_layout(tile, &patterns).map_err(|e| refuse(e.to_string()))?;
        }
        let layout = best
            .layout
            .ok_or_else(|| refuse("nothing was derived".to_owned()))?;
        self.derived = if self.transposes {
            // (k, side) becomes (side, k): the order of memory.
            let own = layout.layout();
            let swapped = Layout::tuple(&[own.get(1)?, own.get(0)?])?;
            Swizzled::new(layout.swizzle(), layout.offset(), swapped)?
        } else {
            layout
        };
        self.certificate = best.certificate.to_string();
        self.shared = in_bytes(&self.derived, self.bytes)?;
        Ok(())
    }

    /// Bytes of one stage.
    pub fn stage_bytes(&self) -> i64 {
        // Stages start at multiples of the swizzle's period, so that a stage is an immediate. Operands that TMA copies may have different swizzles, and start
        // at multiples of the longest.
        let period = 1i64 << self.shared.swizzle().width();
        let unit = match self.read {
            Read::Descriptor | Read::Neighbours => 8 * PANELS[0],
            _ => period.max(128),
        };
        (self.shared.cosize() + unit - 1) / unit * unit
    }
}
