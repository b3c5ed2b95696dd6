//! Why a file of findings is refused: one error, with the place or the entry that is wrong.

use std::fmt;

use tilewright_kernels::gemm::DataType;

use super::{FORMAT, MOST_PARTS, VERSION};

/// Why a file of findings is refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum FindingsError {
    /// The file can't be read.
    Io(std::io::Error),
    /// It is larger than any file of findings.
    TooLarge {
        /// The most bytes that are read.
        limit: u64,
    },
    /// It is not JSON.
    NotJson {
        /// Where it stops being JSON, from 1.
        line: usize,
        /// As `line`.
        column: usize,
        /// What was expected there.
        reason: String,
    },
    /// It is JSON, but does not say that it holds findings.
    Format {
        /// Its `format`, as JSON; `null` if there is none.
        found: String,
    },
    /// It is in a version of the format that this program does not read.
    Version {
        /// Its `version`, as JSON.
        found: String,
    },
    /// A key is missing, unknown, given twice, or has a value of another type.
    Shape {
        /// Where, from 1.
        line: usize,
        /// As `line`.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// An entry says what can't be.
    Entry {
        /// Which, from 1.
        entry: usize,
        /// What is wrong.
        error: EntryError,
    },
}

/// What can be wrong with an entry of a file of findings.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EntryError {
    /// An empty `device`, `driver` or `date`.
    Blank {
        /// Which.
        key: &'static str,
    },
    /// A type that does not exist.
    UnknownType(String),
    /// Transposes other than nn, nt, tn, tt.
    UnknownTrans(String),
    /// A size of 0.
    Size {
        /// Which.
        key: &'static str,
    },
    /// A width other than 1, 2, 4, 8 and 16.
    Width(u32),
    /// No candidates.
    Empty,
    /// A plan that does not exist.
    UnknownPlan(String),
    /// A plan of another type than the problem's.
    WrongType {
        /// The plan.
        plan: String,
        /// What it computes in.
        serves: DataType,
    },
    /// A split of 0 or more than the most parts there can be.
    Split {
        /// The plan.
        plan: String,
        /// Its split.
        split: u32,
    },
    /// A time that is not a positive number.
    Time {
        /// The plan.
        plan: String,
        /// Its time, in milliseconds.
        ms: f64,
    },
    /// A plan that is faster than one before it.
    Order {
        /// The plan.
        plan: String,
    },
    /// A plan and schedule that is there twice.
    Repeated {
        /// The plan.
        plan: String,
    },
    /// The device and problem of an earlier entry.
    Duplicate {
        /// That entry, from 1.
        of: usize,
    },
}

impl FindingsError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::TooLarge { .. } => "findings_too_large",
            Self::NotJson { .. } => "findings_not_json",
            Self::Format { .. } => "findings_format",
            Self::Version { .. } => "findings_version",
            Self::Shape { .. } => "findings_shape",
            Self::Entry { .. } => "findings_entry",
        }
    }
}

impl fmt::Display for FindingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => e.fmt(f),
            Self::TooLarge { limit } => {
                write!(f, "a file of findings has at most {} MiB", limit >> 20)
            }
            Self::NotJson {
                line,
                column,
                reason,
            } => write!(f, "not JSON at line {line}, column {column}: {reason}"),
            Self::Format { found } => write!(
                f,
                "no findings: \"format\" is {found} and should be \"{FORMAT}\""
            ),
            Self::Version { found } => write!(
                f,
                "findings in version {found} of the format, and this program reads version {VERSION}: measure again, or use the program that wrote them"
            ),
            Self::Shape {
                line,
                column,
                reason,
            } => write!(f, "line {line}, column {column}: {reason}"),
            Self::Entry { entry, error } => write!(f, "entry {entry}: {error}"),
        }
    }
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank { key } => write!(f, "\"{key}\" is empty"),
            Self::UnknownType(t) => write!(f, "there is no element type `{t}`"),
            Self::UnknownTrans(t) => write!(f, "there is no transpose `{t}`"),
            Self::Size { key } => write!(f, "\"{key}\" is 0, and an empty product has no time"),
            Self::Width(w) => write!(f, "a width is {w}, and can be 1, 2, 4, 8 or 16 bytes"),
            Self::Empty => f.write_str("there are no candidates"),
            Self::UnknownPlan(plan) => write!(f, "there is no plan `{plan}`"),
            Self::WrongType { plan, serves } => {
                write!(
                    f,
                    "plan {plan} computes in {serves}, and the problem does not"
                )
            }
            Self::Split { plan, split } => write!(
                f,
                "plan {plan} is split into {split}, and can be split into 1 to {MOST_PARTS}"
            ),
            Self::Time { plan, ms } => {
                write!(f, "the time of plan {plan} is {ms} ms, which is no time")
            }
            Self::Order { plan } => write!(
                f,
                "plan {plan} is faster than the one before it, and the fastest comes first"
            ),
            Self::Repeated { plan } => {
                write!(f, "plan {plan} is there twice with the same split and pack")
            }
            Self::Duplicate { of } => {
                write!(f, "it has the device and the problem of entry {of}")
            }
        }
    }
}

impl std::error::Error for EntryError {}

impl std::error::Error for FindingsError {}
