//! Refusals: the claim that does not hold, with the lanes, banks and values that refute it.

use core::fmt;

use crate::banks::{Access, BankError};

/// The refutation of a claim.
///
/// ```
/// use layout_core::{Swizzled, proof::{ProofError, injective}};
/// let error = injective(&Swizzled::parse("(2,2):(1,1)").unwrap()).unwrap_err();
/// assert_eq!(error, ProofError::Collision { first: 1, second: 2, offset: 1 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ProofError {
    /// The bank model has no count for these addresses.
    Bank(BankError),
    /// The first mode must be the lanes.
    LaneMode {
        /// The access.
        access: Access,
        /// Size of the first mode.
        size: i64,
    },
    /// More cases to enumerate than the limit.
    TooManyCases {
        /// How many.
        cases: i64,
        /// How many are enumerated at most.
        limit: i64,
    },
    /// An offset below 0.
    NegativeOffset {
        /// The index (or mode) that goes there.
        index: i64,
        /// The offset.
        offset: i64,
    },
    /// A stride below 0 where parts are combined bit by bit.
    NegativeStride {
        /// The leaf.
        leaf: usize,
        /// Its stride.
        stride: i64,
    },
    /// A base below 0 where parts are combined bit by bit.
    NegativeBase {
        /// The base.
        base: i64,
    },
    /// Two indices go to the same offset.
    Collision {
        /// One index.
        first: i64,
        /// The other.
        second: i64,
        /// The offset of both.
        offset: i64,
    },
    /// An offset outside `0..size`.
    OutOfRange {
        /// The index that goes there.
        index: i64,
        /// The offset.
        offset: i64,
        /// The size.
        size: i64,
    },
    /// The number of threads times values is not the number of the tile's elements.
    SizeMismatch {
        /// Size of the map.
        size: i64,
        /// Elements of the tile.
        tile: i64,
    },
    /// Two regions share bytes.
    Overlap {
        /// The first shared byte.
        byte: i64,
    },
    /// A value that must be a multiple of another is not.
    NotMultiple {
        /// The value.
        value: i64,
        /// What it must be a multiple of.
        of: i64,
    },
    /// Parts of an address carry into each other.
    Carry {
        /// The leaf whose range of offsets...
        leaf: usize,
        /// ...shares this bit with an earlier leaf's, or with the base.
        bit: u32,
    },
    /// More wavefronts than claimed.
    TooManyWavefronts {
        /// The access.
        access: Access,
        /// The worst case of its wavefronts.
        wavefronts: u32,
        /// What was claimed.
        claimed: u32,
        /// The phase that costs most.
        phase: u32,
        /// Two lanes of it...
        lanes: (u32, u32),
        /// ...with different words in this bank.
        bank: u32,
        /// The linear coordinate over all modes except the lane.
        rest: i64,
    },
}

impl ProofError {
    /// A stable `snake_case` name for the kind of refusal.
    ///
    /// ```
    /// use layout_core::proof::multiple_of;
    /// assert_eq!(multiple_of(1000, 16).unwrap_err().code(), "not_multiple");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Bank(error) => error.code(),
            Self::LaneMode { .. } => "lane_mode",
            Self::TooManyCases { .. } => "too_many_cases",
            Self::NegativeOffset { .. }
            | Self::NegativeStride { .. }
            | Self::NegativeBase { .. } => "negative_offset",
            Self::Collision { .. } => "collision",
            Self::OutOfRange { .. } => "out_of_range",
            Self::SizeMismatch { .. } => "size_mismatch",
            Self::Overlap { .. } => "overlap",
            Self::NotMultiple { .. } => "not_multiple",
            Self::Carry { .. } => "carry",
            Self::TooManyWavefronts { .. } => "too_many_wavefronts",
        }
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bank(error) => error.fmt(f),
            Self::LaneMode { access, size } => write!(
                f,
                "the first mode must be the {} lanes of {access}; it has extent {size}",
                access.lanes()
            ),
            Self::TooManyCases { cases, limit } => {
                write!(
                    f,
                    "{cases} cases are more than the {limit} that are enumerated; use power-of-two strides"
                )
            }
            Self::NegativeOffset { index, offset } => {
                write!(f, "index {index} goes to offset {offset}, below 0")
            }
            Self::NegativeStride { leaf, stride } => {
                write!(
                    f,
                    "mode {leaf} has the negative stride {stride}; reverse that mode first"
                )
            }
            Self::NegativeBase { base } => write!(f, "the base {base} is below 0"),
            Self::Collision {
                first,
                second,
                offset,
            } => {
                write!(f, "indices {first} and {second} both go to offset {offset}")
            }
            Self::OutOfRange {
                index,
                offset,
                size,
            } => {
                write!(
                    f,
                    "index {index} goes to offset {offset}, outside 0..{size}"
                )
            }
            Self::SizeMismatch { size, tile } => {
                write!(
                    f,
                    "{size} (thread, value) pairs for a tile of {tile} elements"
                )
            }
            Self::Overlap { byte } => write!(f, "both regions hold byte {byte}"),
            Self::NotMultiple { value, of } => write!(f, "{value} is not a multiple of {of}"),
            Self::Carry { leaf, bit } => {
                write!(
                    f,
                    "mode {leaf} and an earlier part both reach offset bit {bit}, so they carry into each other"
                )
            }
            Self::TooManyWavefronts {
                access,
                wavefronts,
                claimed,
                phase,
                lanes,
                bank,
                rest,
            } => write!(
                f,
                "{access} takes {wavefronts} wavefronts, not {claimed}: lanes {} and {} of phase {phase} need different words of bank {bank} (at coordinate {rest} of the other modes)",
                lanes.0, lanes.1
            ),
        }
    }
}

impl core::error::Error for ProofError {}
