//! Why a product over devices is refused, and what is wrong with a program.

use std::fmt;

use layout_core::devices::DistributionError;

use crate::gemm::ProblemError;

/// Why there is no program for a placement, or why one is not proven.
///
/// ```
/// use tilewright_kernels::devices::Placement;
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(64, 64, 64, Operands::ALL[0]);
/// let error = Placement::parse("rows,columns", &problem, 2).unwrap_err();
/// assert_eq!(error.code(), "placement");
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum DevicesError {
    /// The text of a placement can't be read.
    Placement {
        /// The text.
        text: String,
        /// What is wrong with it, and what to write.
        reason: String,
    },
    /// A layout is not a distribution, or two distributions do not go together.
    Distribution(DistributionError),
    /// The sizes or factors of the product are invalid.
    Problem(ProblemError),
    /// No program is known for this placement or problem.
    Unsupported {
        /// What stands in the way, and what is accepted.
        reason: String,
    },
    /// No program with direct stores: factors move, or a sum begins with the old C.
    NoDirect,
    /// No program with one collective.
    NoCollective {
        /// Everything is in its place already.
        nothing_moves: bool,
    },
    /// The program is wrong.
    Fault(Box<Fault>),
}

impl DevicesError {
    /// A stable name of the kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Placement { .. } => "placement",
            Self::Distribution(_) => "distribution",
            Self::Problem(e) => e.code(),
            Self::Unsupported { .. } => "unsupported_placement",
            Self::NoDirect => "no_direct",
            Self::NoCollective { .. } => "no_collective",
            Self::Fault(_) => "program_fault",
        }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported {
            reason: reason.into(),
        }
    }
}

impl fmt::Display for DevicesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placement { text, reason } => write!(f, "`{text}` is not a placement: {reason}"),
            Self::Distribution(e) => e.fmt(f),
            Self::Problem(e) => e.fmt(f),
            Self::Unsupported { reason } => f.write_str(reason),
            Self::NoDirect => f.write_str(
                "direct stores take A and B that are cut along k alike (columns,rows,…) and β = 0",
            ),
            Self::NoCollective {
                nothing_moves: true,
            } => f.write_str("nothing moves with these shards, so that there is no collective"),
            Self::NoCollective {
                nothing_moves: false,
            } => f.write_str(
                "no single all-gather or reduce-scatter does what moves here: it takes equal shards of whole rows as they are stored (A not \
                 transposed, B transposed), and nothing added after a reduce-scatter (β, bias, activation)",
            ),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for DevicesError {}

impl From<DistributionError> for DevicesError {
    fn from(error: DistributionError) -> Self {
        Self::Distribution(error)
    }
}

impl From<ProblemError> for DevicesError {
    fn from(error: ProblemError) -> Self {
        Self::Problem(error)
    }
}

impl From<Fault> for DevicesError {
    fn from(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }
}

/// What is wrong with a program: what [`Program::prove`](super::Program::prove) finds.
///
/// ```
/// use tilewright_kernels::devices::{Action, DevicesError, Fault, Placement, Program};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
/// let mut program = Program::derive(&problem, &Placement::parse("rows,columns,columns", &problem, 2)?)?;
/// // Without its waits, a product reads what may not have arrived.
/// program.ops.retain(|op| !matches!(op.action, Action::Wait(_)));
/// let Err(DevicesError::Fault(fault)) = program.prove() else { panic!("accepted") };
/// assert!(matches!(*fault, Fault::Race { .. }), "{fault}");
/// # Ok::<(), DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// An operation names a device, stream, buffer or flag that does not exist, or a block outside of its buffer.
    Malformed {
        /// The operation.
        op: String,
        /// What is wrong.
        reason: String,
    },
    /// Streams wait for flags that nobody can set any more.
    Deadlock {
        /// The operations that wait.
        waiting: Vec<String>,
    },
    /// An operation is submitted before one that it waits for, and may hold it up: a deadlock if the driver puts both into one queue.
    HeldUp {
        /// The operation that waits.
        wait: String,
        /// What it waits for.
        held: String,
    },
    /// A flag is set twice: it can't tell which of the two is done.
    FlagTwice {
        /// The flag.
        flag: usize,
    },
    /// Two operations touch the same elements, one of them writes, and nothing orders them.
    Race {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The buffer, as `device 0's A`.
        buffer: String,
    },
    /// An operation reads elements that nobody wrote.
    Unwritten {
        /// The operation.
        op: String,
        /// The buffer.
        buffer: String,
        /// The first such element as (row, column) of the matrix.
        element: (u64, u64),
    },
    /// A product or a copy does not fit what its buffers hold.
    Wrong {
        /// The operation.
        op: String,
        /// What is wrong.
        reason: String,
    },
    /// An element of C is not what it should be at the end.
    Incomplete {
        /// The device.
        device: usize,
        /// The element.
        element: (u64, u64),
        /// What it lacks or has too much of.
        reason: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { op, reason } | Self::Wrong { op, reason } => {
                write!(f, "{op}: {reason}")
            }
            Self::Deadlock { waiting } => write!(
                f,
                "nothing can go on: {}; no stream sets these flags before it waits itself",
                waiting.join("; ")
            ),
            Self::HeldUp { wait, held } => write!(
                f,
                "`{wait}` is submitted before `{held}`, which it waits for and may hold up: a driver may put both into one queue; submit what is waited for first"
            ),
            Self::FlagTwice { flag } => write!(
                f,
                "flag {flag} is set twice, so a wait for it does not say which of the two is done; take two flags"
            ),
            Self::Race {
                first,
                second,
                buffer,
            } => write!(
                f,
                "{first} and {second} use the same elements of {buffer}, and no stream or flag orders them"
            ),
            Self::Unwritten {
                op,
                buffer,
                element: (row, column),
            } => write!(
                f,
                "{op} reads element ({row}, {column}) of {buffer}, which nobody has written"
            ),
            Self::Incomplete {
                device,
                element: (row, column),
                reason,
            } => write!(f, "C({row}, {column}) on device {device}: {reason}"),
        }
    }
}

impl std::error::Error for Fault {}
