//! What is wrong with a problem.

use std::fmt;

/// What is wrong with a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProblemError {
    /// A leading dimension shorter than a row.
    LeadingDimension {
        /// Which: `lda`, `ldb` or `ldc`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The row's length.
        row: u64,
    },
    /// α or β is not a number, or infinite, perhaps only after rounding to the type that the kernel takes.
    NotFinite(&'static str),
    /// A size beyond what a kernel or its launch can hold.
    TooLarge {
        /// Which size.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest that works.
        limit: u64,
        /// What sets the limit.
        reason: Limit,
    },
    /// Not one of nn, nt, tn, tt.
    UnknownTrans(String),
    /// α or β is no 32-bit integer, as a product of integers needs.
    NotIntegral {
        /// `alpha` or `beta`.
        name: &'static str,
        /// Its value, as text.
        value: String,
    },
    /// Rows, matrices or addresses that are not multiples of the bytes that the kernel copies at once.
    Unaligned {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// What its rows, its matrices of a batch and its address are all multiples of, in bytes.
        bytes: u32,
        /// What the kernel copies at once, in bytes.
        copies: u32,
    },
    /// An address that is not a multiple of the element size, or an alignment that is not a power of two.
    Alignment {
        /// `A`, `B` or `C`.
        matrix: &'static str,
        /// What its address is a multiple of, in bytes.
        bytes: u32,
        /// The size of its elements.
        element: u32,
    },
    /// Matrices of C that overlap in a batch.
    BatchOverlap {
        /// The distance between two matrices of C.
        stride: u64,
        /// The least that works.
        least: u64,
    },
    /// A name that is not one of a list.
    UnknownName {
        /// What is named.
        what: &'static str,
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<String>,
    },
}

/// What limits a size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Counters of 32 bits in the kernel.
    Counter,
    /// Blocks along an axis of the grid.
    Grid,
    /// Bytes that a GPU can address.
    Address,
}

impl Limit {
    /// That `value` is at most `limit`, for this reason.
    pub(crate) fn at_most(
        self,
        name: &'static str,
        value: u64,
        limit: u64,
    ) -> Result<(), ProblemError> {
        if value <= limit {
            return Ok(());
        }
        Err(ProblemError::TooLarge {
            name,
            value,
            limit,
            reason: self,
        })
    }
}

impl ProblemError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeadingDimension { .. } => "leading_dimension",
            Self::NotFinite(_) => "not_finite",
            Self::TooLarge { .. } => "too_large",
            Self::UnknownTrans(_) => "unknown_trans",
            Self::NotIntegral { .. } => "not_integral",
            Self::Unaligned { .. } => "unaligned",
            Self::Alignment { .. } => "alignment",
            Self::BatchOverlap { .. } => "batch_overlap",
            Self::UnknownName { .. } => "unknown_name",
        }
    }
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeadingDimension { name, value, row } => {
                write!(
                    f,
                    "{name} is {value}, but a row has {row} elements: {name} must be at least {row}"
                )
            }
            Self::NotFinite(name) => write!(
                f,
                "{name} must be a finite number, also in the type that the kernel takes it in"
            ),
            Self::TooLarge {
                name,
                value,
                limit,
                reason,
            } => {
                let reason = match reason {
                    Limit::Counter => "the kernel counts in 32 bits",
                    Limit::Grid => "a grid has room for no more blocks",
                    Limit::Address => "a GPU addresses no more bytes",
                };
                write!(
                    f,
                    "{name} is {value}, and {reason}: {name} can be at most {limit}"
                )
            }
            Self::NotIntegral { name, value } => {
                write!(
                    f,
                    "{name} is {value}: a product of integers takes a whole number of 32 bits"
                )
            }
            Self::Unaligned {
                matrix,
                bytes,
                copies,
            } => write!(
                f,
                "rows of {matrix} start at multiples of {bytes} bytes, and this kernel copies {copies} at a time: specialize the configuration for the problem first (`Config::specialize`)"
            ),
            Self::Alignment {
                matrix,
                bytes,
                element,
            } => write!(
                f,
                "{matrix} is aligned to {bytes} byte{}: an alignment is a power of two and at least the {element} bytes of an element",
                if *bytes == 1 { "" } else { "s" }
            ),
            Self::BatchOverlap { stride, least } => write!(
                f,
                "matrices of C in a batch are {stride} elements apart and overlap: the stride of C must be at least {least}"
            ),
            Self::UnknownName { what, asked, known } => write!(
                f,
                "there is no {what} `{asked}`; give one of {}",
                known.join(", ")
            ),
            Self::UnknownTrans(s) => write!(
                f,
                "there is no transpose `{s}`; give nn, nt, tn or tt (first letter A, second B)"
            ),
        }
    }
}

impl std::error::Error for ProblemError {}
