//! Tiles as Hopper's copies and products know them: the box of a tensor map, and the matrix descriptor of `wgmma`.
//!
//! Both place runs of 16 bytes by a few numbers, and both permute them by the same swizzles of addresses, `Sw<B,4,3>` with B = 0 to 3. Run (r, c) of an
//! operand, where r counts rows of the side if k is contiguous (K-major) and k otherwise, lies at
//!
//! | | swizzle of 16·W bytes, W = 2, 4, 8 | none, W = 1 |
//! |---|---|---|
//! | K-major | 16·W·(r mod 8) + stride·⌊r/8⌋ + 16·c | 16·(r mod 8) + stride·⌊r/8⌋ + leading·c |
//! | MN-major | 16·W·(r mod 8) + stride·⌊r/8⌋ + 16·(c mod W) + leading·⌊c/W⌋ | 16·(r mod 8) + leading·⌊r/8⌋ + stride·c |
//!
//! before the swizzle (PTX ISA, `wgmma`, strides and canonical layouts). Which numbers these are follows from the layout of the tile; that they place every
//! element of every step along k where the layout does is checked element by element. What they cannot express is refused, with the element:
//!
//! ```
//! use layout_core::{MatrixDescriptor, Swizzled, TensorBox};
//!
//! // 128 rows of 64 halves: rows of 128 bytes under the swizzle of 128 bytes.
//! let tile = Swizzled::parse("Sw<3,3,3> o (128,64):(64,1)").unwrap();
//! let a = MatrixDescriptor::of(&tile, 2, true).unwrap();
//! assert_eq!((a.swizzle_bytes, a.leading_bytes, a.stride_bytes, a.steps), (128, 0, 1024, 4));
//! let copies = TensorBox::of(&tile, 2).unwrap();
//! assert_eq!((copies.columns, copies.rows, copies.swizzle_bytes, copies.copies), (64, 128, 128, 1));
//!
//! // Padded rows suit neither.
//! let padded = Swizzled::parse("(128,64):(72,1)").unwrap();
//! assert!(MatrixDescriptor::of(&padded, 2, true).is_err());
//! assert!(TensorBox::of(&padded, 2).is_err());
//! ```

use core::fmt;

use crate::swizzled::Swizzled;

/// Bytes of a run that swizzles keep together.
const RUN: i64 = 16;

/// Rows that the swizzles' period has.
const ROWS: i64 = 8;

/// Bytes of k that one `wgmma` multiplies.
const K_BYTES: i64 = 32;

/// The largest offset that a field of 14 bits holds.
const MOST: i64 = ((1 << 14) - 1) * RUN;

/// Elements along one dimension of the box of a tensor map, at most.
const BOX: i64 = 256;

/// The fields of a `wgmma` matrix descriptor that follow from a tile's layout.
///
/// ```
/// use layout_core::{MatrixDescriptor, Swizzled};
///
/// // 64 k of 128 columns, the columns contiguous: two panels of 64 halves.
/// let b = Swizzled::parse("Sw<3,3,3> o (64,(64,2)):(64,(1,4096))").unwrap();
/// let b = MatrixDescriptor::of(&b, 2, false).unwrap();
/// assert_eq!((b.leading_bytes, b.stride_bytes, b.steps), (8192, 1024, 4));
/// // Start at byte 1024 of shared memory: address and offsets in units of 16 bytes, and mode 1 for 128 bytes.
/// assert_eq!(b.bits(1024), 1 << 62 | 64 << 32 | 512 << 16 | 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixDescriptor {
    /// Bytes of the swizzle: 128, 64, 32, or 0 for none.
    pub swizzle_bytes: i64,
    /// The leading offset in bytes; 0 where the hardware does not read it.
    pub leading_bytes: i64,
    /// The stride offset in bytes.
    pub stride_bytes: i64,
    /// Steps of 32 bytes along k that the tile has.
    pub steps: i64,
}

/// How a tensor map's boxes fill a tile.
///
/// ```
/// use layout_core::{Swizzled, TensorBox};
///
/// let tile = Swizzled::parse("Sw<3,2,3> o (128,(32,2)):(32,(1,4096))").unwrap();
/// let of = TensorBox::of(&tile, 4).unwrap();
/// // Two boxes of 32 × 128 floats, 16 KiB apart.
/// assert_eq!((of.columns, of.rows, of.copies, of.apart_bytes), (32, 128, 2, 16384));
/// assert_eq!(of.driver_name(), "CU_TENSOR_MAP_SWIZZLE_128B");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TensorBox {
    /// Elements of the box along the contiguous dimension.
    pub columns: i64,
    /// Rows of the box.
    pub rows: i64,
    /// Bytes of the swizzle: 128, 64, 32, or 0 for none.
    pub swizzle_bytes: i64,
    /// Boxes in all. They fill one panel of `columns` columns from top to bottom, then the next.
    pub copies: i64,
    /// Boxes one below the other in a panel: 1 for up to 256 rows.
    pub down: i64,
    /// Bytes from where one lands to where the next does.
    pub apart_bytes: i64,
}

/// Why a layout is no matrix descriptor, or not what boxes of a tensor map fill.
///
/// ```
/// use layout_core::{DescriptorError, MatrixDescriptor, Swizzled};
///
/// let tile = Swizzled::parse("Sw<2,2,2> o (64,64):(64,1)").unwrap();
/// let error = MatrixDescriptor::of(&tile, 2, true).unwrap_err();
/// assert_eq!(error.to_string(), "the swizzle of the bytes is none of Sw<1,4,3>, Sw<2,4,3> and Sw<3,4,3>");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The tile has another number of modes than rows and columns.
    Rank(usize),
    /// Elements of so many bytes.
    Element(i64),
    /// The side is contiguous, which `wgmma` takes of 16-bit elements alone.
    KMajorOnly(i64),
    /// The layout does not begin at offset 0.
    Offset(i64),
    /// Another swizzle.
    Swizzle,
    /// The side is no multiple of 8, or k is no multiple of 32 bytes.
    Sizes {
        /// Elements of the side.
        side: i64,
        /// Elements along k.
        k: i64,
    },
    /// An offset that the field has no room for, or that is no multiple of 16.
    Field {
        /// Which: `leading` or `stride`.
        name: &'static str,
        /// The offset.
        bytes: i64,
    },
    /// An element that is somewhere else.
    Misplaced {
        /// Its row.
        row: i64,
        /// Its column.
        column: i64,
        /// The byte where the layout has it, before the swizzle.
        at: i64,
        /// The byte where the hardware takes it to be.
        expected: i64,
    },
    /// Rows that no equal boxes of at most 256 rows cover, more than 256 columns without a swizzle, or rows that are no multiple of 16 bytes.
    Box {
        /// Rows.
        rows: i64,
        /// Bytes of a row.
        row_bytes: i64,
    },
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(
                f,
                "a tile has rows and columns, and this layout has {rank} modes"
            ),
            Self::Element(bytes) => write!(f, "elements of {bytes} bytes; 1, 2 and 4 are taken"),
            Self::KMajorOnly(bytes) => write!(
                f,
                "k is not contiguous, which wgmma takes of 2-byte elements alone, and not of {bytes}: transpose the tile"
            ),
            Self::Offset(offset) => write!(f, "the layout begins at offset {offset} and not at 0"),
            Self::Swizzle => f.write_str(
                "the swizzle of the bytes is none of Sw<1,4,3>, Sw<2,4,3> and Sw<3,4,3>",
            ),
            Self::Sizes { side, k } => write!(
                f,
                "{side} elements of the side by {k} along k; multiples of 8 by 32 bytes are taken"
            ),
            Self::Field { name, bytes } => write!(
                f,
                "a {name} offset of {bytes} bytes; multiples of 16 from 0 to {MOST} have room"
            ),
            Self::Misplaced {
                row,
                column,
                at,
                expected,
            } => write!(
                f,
                "row {row}, column {column} is at byte {at} before the swizzle, where the hardware has it at {expected}"
            ),
            Self::Box { rows, row_bytes } => write!(
                f,
                "boxes have at most 256 rows and columns, equally many rows each (multiples of 8 under a swizzle), and rows of multiples of 16 bytes: not {rows} rows of {row_bytes} bytes"
            ),
        }
    }
}

impl core::error::Error for DescriptorError {}

/// A tile in bytes, before its swizzle.
struct Plain<'t> {
    tile: &'t Swizzled,
    bytes: i64,
    /// Runs in a row of the swizzle: 1 without one.
    runs: i64,
}

impl<'t> Plain<'t> {
    fn new(tile: &'t Swizzled, bytes: i64) -> Result<Self, DescriptorError> {
        if tile.rank() != 2 {
            return Err(DescriptorError::Rank(tile.rank()));
        }
        if !matches!(bytes, 1 | 2 | 4) {
            return Err(DescriptorError::Element(bytes));
        }
        if tile.offset() != 0 {
            return Err(DescriptorError::Offset(tile.offset()));
        }
        let swizzle = tile.swizzle();
        let runs = if swizzle.is_identity() {
            1
        } else {
            let in_bytes = (swizzle.m() + bytes.trailing_zeros(), swizzle.s());
            if in_bytes != (4, 3) || swizzle.b() > 3 {
                return Err(DescriptorError::Swizzle);
            }
            1 << swizzle.b()
        };
        Ok(Self { tile, bytes, runs })
    }

    /// Rows and columns.
    fn extents(&self) -> [i64; 2] {
        let extent = |mode| self.tile.layout().get(mode).map_or(0, |l| l.size());
        [extent(0), extent(1)]
    }

    /// The byte of an element.
    fn at(&self, row: i64, column: i64) -> i64 {
        self.tile.layout().at(&[row, column]) * self.bytes
    }

    fn swizzle_bytes(&self) -> i64 {
        if self.runs == 1 { 0 } else { RUN * self.runs }
    }
}

impl MatrixDescriptor {
    /// The descriptor of a tile whose two modes are rows and columns: k runs along the columns if `k_major`, else along the rows. Elements have `bytes`
    /// bytes.
    ///
    /// # Errors
    ///
    /// What a descriptor cannot express: [`DescriptorError`].
    pub fn of(tile: &Swizzled, bytes: i64, k_major: bool) -> Result<Self, DescriptorError> {
        let plain = Plain::new(tile, bytes)?;
        if !k_major && bytes != 2 {
            return Err(DescriptorError::KMajorOnly(bytes));
        }
        let [rows, columns] = plain.extents();
        let (side, k) = if k_major {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let (run, step) = (RUN / bytes, K_BYTES / bytes);
        if side % ROWS != 0 || side == 0 || k % step != 0 || k == 0 {
            return Err(DescriptorError::Sizes { side, k });
        }
        // Either way r counts rows and c runs of columns; what lies outside of the tile does not matter.
        let offset = |r: i64, c: i64| {
            if r < rows && c * run < columns {
                plain.at(r, c * run)
            } else {
                0
            }
        };
        let w = plain.runs;
        let (leading, stride) = match (k_major, w) {
            (true, 1) => (offset(0, 1), offset(ROWS, 0)),
            (true, _) => (0, offset(ROWS, 0)),
            (false, 1) => (offset(ROWS, 0), offset(0, 1)),
            (false, _) => (offset(0, w), offset(ROWS, 0)),
        };
        let formula = |r: i64, c: i64| match (k_major, w) {
            (true, 1) => RUN * (r % ROWS) + stride * (r / ROWS) + leading * c,
            (true, _) => RUN * w * (r % ROWS) + stride * (r / ROWS) + RUN * c,
            (false, 1) => RUN * (r % ROWS) + leading * (r / ROWS) + stride * c,
            (false, _) => {
                RUN * w * (r % ROWS) + stride * (r / ROWS) + RUN * (c % w) + leading * (c / w)
            }
        };
        for (name, bytes) in [("leading", leading), ("stride", stride)] {
            if !(0..=MOST).contains(&bytes) || bytes % RUN != 0 {
                return Err(DescriptorError::Field { name, bytes });
            }
        }
        // Each step begins where its first element is; the swizzle is of addresses, so that it is the same for all.
        for step_at in (0..k).step_by(step as usize) {
            for s in 0..side {
                for depth in 0..step {
                    let (row, column) = if k_major {
                        (s, step_at + depth)
                    } else {
                        (step_at + depth, s)
                    };
                    let (start, r, c, e) = if k_major {
                        (plain.at(0, step_at), s, depth / run, depth % run)
                    } else {
                        (plain.at(step_at, 0), depth, s / run, s % run)
                    };
                    let expected = start + formula(r, c) + e * bytes;
                    let at = plain.at(row, column);
                    if at != expected {
                        return Err(DescriptorError::Misplaced {
                            row,
                            column,
                            at,
                            expected,
                        });
                    }
                }
            }
        }
        Ok(Self {
            swizzle_bytes: plain.swizzle_bytes(),
            leading_bytes: leading,
            stride_bytes: stride,
            steps: k / step,
        })
    }

    /// The swizzle mode of a descriptor: 1 for 128 bytes, 2 for 64, 3 for 32, 0 for none. The driver's numbers for tensor maps are others.
    ///
    /// ```
    /// use layout_core::{MatrixDescriptor, Swizzled};
    ///
    /// let tile = Swizzled::parse("Sw<2,3,3> o (64,32):(32,1)").unwrap();
    /// assert_eq!(MatrixDescriptor::of(&tile, 2, true).unwrap().mode(), 2);
    /// ```
    pub const fn mode(&self) -> u32 {
        match self.swizzle_bytes {
            128 => 1,
            64 => 2,
            32 => 3,
            _ => 0,
        }
    }

    /// All 64 bits, for a tile (or a step) at a byte of shared memory; atoms begin at multiples of their size, so that the base offset is 0.
    pub const fn bits(&self, address: u32) -> u64 {
        (address as u64 >> 4 & 0x3fff)
            | (self.leading_bytes as u64 >> 4) << 16
            | (self.stride_bytes as u64 >> 4) << 32
            | (self.mode() as u64) << 62
    }
}

/// Rows of each of the fewest equal boxes that cover `rows` rows; a box of part of the rows keeps the period of a swizzle.
pub(crate) fn box_rows(rows: i64, swizzled: bool) -> Option<i64> {
    if rows <= BOX {
        return Some(rows);
    }
    let step = if swizzled { ROWS } else { 1 };
    (2..=BOX)
        .rev()
        .find(|height| rows % height == 0 && height % step == 0)
}

impl TensorBox {
    /// The boxes that fill a tile of rows and columns, the columns contiguous in the array. Elements have `bytes` bytes.
    ///
    /// # Errors
    ///
    /// What boxes cannot fill: [`DescriptorError`].
    pub fn of(tile: &Swizzled, bytes: i64) -> Result<Self, DescriptorError> {
        let plain = Plain::new(tile, bytes)?;
        let [rows, all] = plain.extents();
        let columns = if plain.runs == 1 {
            all
        } else {
            plain.swizzle_bytes() / bytes
        };
        let fits = columns <= BOX && columns * bytes % RUN == 0;
        let height = box_rows(rows, plain.runs > 1);
        let (true, Some(height)) = (fits && all % columns.max(1) == 0 && rows * all > 0, height)
        else {
            return Err(DescriptorError::Box {
                rows,
                row_bytes: all * bytes,
            });
        };
        let down = rows / height;
        let copies = all / columns * down;
        let apart = match (down, copies) {
            (1, 1) => 0,
            (1, _) => plain.at(0, columns),
            _ => plain.at(height, 0),
        };
        for row in 0..rows {
            for column in 0..all {
                let in_box = row % height * columns + column % columns;
                let number = column / columns * down + row / height;
                let expected = apart * number + in_box * bytes;
                let at = plain.at(row, column);
                if at != expected {
                    return Err(DescriptorError::Misplaced {
                        row,
                        column,
                        at,
                        expected,
                    });
                }
            }
        }
        Ok(Self {
            columns,
            rows: height,
            swizzle_bytes: plain.swizzle_bytes(),
            copies,
            down,
            apart_bytes: apart,
        })
    }

    /// The driver's name of the swizzle.
    pub const fn driver_name(&self) -> &'static str {
        match self.swizzle_bytes {
            128 => "CU_TENSOR_MAP_SWIZZLE_128B",
            64 => "CU_TENSOR_MAP_SWIZZLE_64B",
            32 => "CU_TENSOR_MAP_SWIZZLE_32B",
            _ => "CU_TENSOR_MAP_SWIZZLE_NONE",
        }
    }
}
