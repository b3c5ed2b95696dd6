//! Errors of the derivation. Every error names the access, the lane and the value that stand in the way.

use core::fmt;

use crate::banks::Access;

use super::{MAX_EXTENT, MAX_PATTERNS};

/// The errors of a derivation.
///
/// ```
/// use layout_core::derive::{DeriveError, Family, Tile, derive};
/// let error = derive(Tile { rows: 8, cols: 8, elem_bytes: 2 }, &[], Family::Any).unwrap_err();
/// assert_eq!(error, DeriveError::BadPatternCount { count: 0 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum DeriveError {
    /// An extent of the tile is 0, or above [`MAX_EXTENT`].
    BadTile {
        /// Rows of the tile.
        rows: i64,
        /// Columns of the tile.
        cols: i64,
    },
    /// An element width outside 1 to 16 bytes.
    BadElement {
        /// The bytes given.
        bytes: i64,
    },
    /// No pattern, or more than [`MAX_PATTERNS`].
    BadPatternCount {
        /// How many.
        count: usize,
    },
    /// The access is not a shared-memory access.
    UnsupportedAccess {
        /// Which pattern.
        pattern: usize,
        /// Its access.
        access: Access,
    },
    /// A row of the tile is not a multiple of the access width, so that some vector would straddle two rows.
    TileNotDivisible {
        /// Which pattern.
        pattern: usize,
        /// Its access.
        access: Access,
        /// Bytes of one row of the tile.
        row_bytes: i64,
    },
    /// A lane's element lies outside the tile.
    OutsideTile {
        /// Which pattern.
        pattern: usize,
        /// The lane.
        lane: usize,
        /// Its element index.
        index: i64,
        /// Elements in the tile; 0 where the tile is not known, and `index` is negative.
        size: i64,
    },
    /// A lane's first byte is not a multiple of the access width.
    Misaligned {
        /// Which pattern.
        pattern: usize,
        /// The access.
        access: Access,
        /// The lane.
        lane: usize,
        /// Its element index.
        index: i64,
        /// The element indices this access can start at are the multiples of this.
        multiple: i64,
    },
    /// Two lanes of a store write the same element: a race.
    DuplicateLanes {
        /// Which pattern.
        pattern: usize,
        /// The access.
        access: Access,
        /// One lane.
        first: usize,
        /// The other.
        second: usize,
        /// The element both write.
        index: i64,
    },
    /// The layout names fewer or more lanes than the access has.
    WrongLaneCount {
        /// Which pattern.
        pattern: usize,
        /// The access.
        access: Access,
        /// Lanes the pattern gives.
        given: i64,
        /// Lanes the access can take.
        expected: u32,
    },
    /// No lane is active.
    NoActiveLane {
        /// Which pattern.
        pattern: usize,
    },
    /// Accesses narrower than a 4-byte word on elements whose size has an odd factor share words in a way that changes
    /// from element to element: no count holds for every translation.
    NarrowOnOddElement {
        /// Which pattern.
        pattern: usize,
        /// The access.
        access: Access,
        /// Bytes of an element.
        elem_bytes: i64,
    },
    /// The family has no member for this tile.
    FamilyDoesNotApply {
        /// The family's name.
        family: &'static str,
        /// What it needs.
        needs: &'static str,
    },
}

impl DeriveError {
    /// A stable `snake_case` name for the kind of error.
    ///
    /// ```
    /// use layout_core::derive::{Family, Tile, derive};
    /// let error = derive(Tile { rows: 0, cols: 8, elem_bytes: 2 }, &[], Family::Any).unwrap_err();
    /// assert_eq!(error.code(), "bad_tile");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadTile { .. } => "bad_tile",
            Self::BadElement { .. } => "bad_element",
            Self::BadPatternCount { .. } => "bad_pattern_count",
            Self::UnsupportedAccess { .. } => "unsupported_access",
            Self::TileNotDivisible { .. } => "tile_not_divisible",
            Self::OutsideTile { .. } => "outside_tile",
            Self::Misaligned { .. } => "misaligned",
            Self::DuplicateLanes { .. } => "duplicate_lanes",
            Self::WrongLaneCount { .. } => "wrong_lane_count",
            Self::NoActiveLane { .. } => "no_active_lane",
            Self::NarrowOnOddElement { .. } => "narrow_on_odd_element",
            Self::FamilyDoesNotApply { .. } => "family_does_not_apply",
        }
    }

    /// The pattern that the error is about, if it is about one.
    ///
    /// ```
    /// use layout_core::derive::DeriveError;
    /// assert_eq!(DeriveError::NoActiveLane { pattern: 1 }.pattern(), Some(1));
    /// assert_eq!(DeriveError::BadElement { bytes: 32 }.pattern(), None);
    /// ```
    pub const fn pattern(&self) -> Option<usize> {
        match *self {
            Self::UnsupportedAccess { pattern, .. }
            | Self::TileNotDivisible { pattern, .. }
            | Self::OutsideTile { pattern, .. }
            | Self::Misaligned { pattern, .. }
            | Self::DuplicateLanes { pattern, .. }
            | Self::WrongLaneCount { pattern, .. }
            | Self::NoActiveLane { pattern }
            | Self::NarrowOnOddElement { pattern, .. } => Some(pattern),
            Self::BadTile { .. }
            | Self::BadElement { .. }
            | Self::BadPatternCount { .. }
            | Self::FamilyDoesNotApply { .. } => None,
        }
    }
}

impl fmt::Display for DeriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pattern) = self.pattern() {
            write!(f, "access {pattern}: ")?;
        }
        match *self {
            Self::BadTile { rows, cols } => {
                write!(
                    f,
                    "a tile of {rows}x{cols} elements; extents are 1 to {MAX_EXTENT}"
                )
            }
            Self::BadElement { bytes } => {
                write!(f, "an element of {bytes} bytes; widths are 1 to 16 bytes")
            }
            Self::BadPatternCount { count } => {
                write!(f, "{count} accesses; give 1 to {MAX_PATTERNS}")
            }
            Self::UnsupportedAccess { access, .. } => {
                write!(
                    f,
                    "{access} does not access shared memory; use a load, a store, cp.async, ldmatrix or stmatrix"
                )
            }
            Self::TileNotDivisible {
                access, row_bytes, ..
            } => write!(
                f,
                "{access} moves {} bytes a lane, which do not divide a row of {row_bytes} bytes; widen the row or narrow the access",
                access.bytes()
            ),
            Self::OutsideTile { lane, index, .. } if index < 0 => write!(
                f,
                "lane {lane} touches element {index}; the elements of the tile are numbered from 0"
            ),
            Self::OutsideTile {
                lane, index, size, ..
            } => {
                write!(
                    f,
                    "lane {lane} touches element {index}, outside the tile's {size} elements"
                )
            }
            Self::Misaligned {
                access,
                lane,
                index,
                multiple,
                ..
            } => write!(
                f,
                "lane {lane} starts at element {index}, but {access} must start at a multiple of {multiple}"
            ),
            Self::DuplicateLanes {
                access,
                first,
                second,
                index,
                ..
            } => {
                write!(
                    f,
                    "lanes {first} and {second} both write element {index} by {access}, which is a race"
                )
            }
            Self::WrongLaneCount { access, given, .. } if given > 32 => {
                write!(f, "the layout gives {access} {given} lanes; a warp has 32")
            }
            Self::WrongLaneCount {
                access,
                given,
                expected,
                ..
            } => {
                write!(
                    f,
                    "{access} needs the addresses of {expected} lanes; the layout gives {given}"
                )
            }
            Self::NoActiveLane { .. } => {
                f.write_str("no lane is active; give at least one lane an element")
            }
            Self::NarrowOnOddElement {
                access, elem_bytes, ..
            } => write!(
                f,
                "{access} is narrower than a 4-byte word and elements of {elem_bytes} bytes straddle words, so that no count holds for every translation; use an access of at least 4 bytes"
            ),
            Self::FamilyDoesNotApply { family, needs } => {
                write!(f, "the {family} family needs {needs}")
            }
        }
    }
}

impl core::error::Error for DeriveError {}
