//! What can go wrong before a kernel runs: errors of the text ([`ParseError`]) and of the launch ([`RunError`]).
//!
//! What goes wrong *while* it runs is a finding about the kernel and not an error of the emulator, see [`crate::report`].

use std::error::Error;
use std::fmt;

/// An error in PTX text, with its place. `Display` gives `line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

/// The kinds of [`ParseError`], with the offending words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// A character that starts no token.
    BadCharacter(char),
    /// A literal that is not a number of PTX, or out of range.
    BadLiteral(String),
    /// A string or a comment that never ends.
    Unterminated(&'static str),
    /// Something else stands where `expected` should.
    Unexpected {
        /// What the grammar asks for here.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A directive that PTX does not have, or not here.
    UnknownDirective(String),
    /// An instruction that the emulator does not know.
    UnknownInstruction(String),
    /// A modifier that this instruction does not have.
    UnknownModifier {
        /// The modifier with its dot.
        modifier: String,
        /// The instruction.
        instruction: String,
    },
    /// A known instruction in a form that PTX does not have.
    Invalid(String),
    /// Something of PTX that the emulator does not support.
    Unsupported(String),
    /// A name that nothing in scope declares.
    Undeclared(String),
    /// A name declared twice in one scope.
    Redeclared(String),
    /// A label that no statement carries.
    UnknownLabel(String),
    /// The wrong number of operands.
    OperandCount {
        /// The instruction.
        instruction: String,
        /// What it takes.
        expected: String,
        /// What it was given.
        found: usize,
    },
    /// An operand of the wrong kind or size.
    OperandType {
        /// The operand as written.
        operand: String,
        /// What the instruction takes there.
        expected: String,
    },
    /// A value outside what PTX permits.
    OutOfRange(String),
    /// The module lacks something every module has.
    Missing(&'static str),
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadCharacter(c) => write!(f, "character {c:?} does not belong in PTX"),
            Self::BadLiteral(s) => write!(f, "`{s}` is not a valid literal"),
            Self::Unterminated(what) => write!(f, "{what} is never closed"),
            Self::Unexpected { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::UnknownDirective(d) => write!(f, "unknown directive `{d}`"),
            Self::UnknownInstruction(i) => write!(f, "unknown instruction `{i}`"),
            Self::UnknownModifier {
                modifier,
                instruction,
            } => {
                write!(f, "modifier `{modifier}` is not known on `{instruction}`")
            }
            Self::Invalid(what) => write!(f, "not valid: {what}"),
            Self::Unsupported(what) => write!(f, "not supported: {what}"),
            Self::Undeclared(name) => write!(f, "`{name}` is not declared"),
            Self::Redeclared(name) => write!(f, "`{name}` is declared twice"),
            Self::UnknownLabel(name) => write!(f, "label `{name}` is not defined in this kernel"),
            Self::OperandCount {
                instruction,
                expected,
                found,
            } => {
                write!(
                    f,
                    "`{instruction}` takes {expected} operands, found {found}"
                )
            }
            Self::OperandType { operand, expected } => {
                write!(f, "operand `{operand}`: expected {expected}")
            }
            Self::OutOfRange(what) => write!(f, "out of range: {what}"),
            Self::Missing(what) => write!(f, "missing {what}"),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.kind)
    }
}

impl Error for ParseError {}

/// A launch that cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The module has no kernel of this name.
    UnknownKernel {
        /// The name asked for.
        name: String,
        /// The kernels that there are.
        available: Vec<String>,
    },
    /// The wrong number of arguments.
    ArgumentCount {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments of the launch.
        found: usize,
    },
    /// An argument whose size differs from its parameter's.
    ArgumentSize {
        /// Position, from 0.
        index: usize,
        /// Name of the parameter.
        name: String,
        /// Bytes of the parameter.
        expected: u32,
        /// Bytes of the argument.
        found: u32,
    },
    /// An argument whose kind contradicts its parameter's type (a float for an integer, for instance).
    ArgumentType {
        /// Position, from 0.
        index: usize,
        /// Name of the parameter.
        name: String,
        /// Type of the parameter.
        expected: &'static str,
        /// Kind of the argument.
        found: &'static str,
    },
    /// Grid, block or cluster dimensions that no device takes, or that contradict the kernel's directives.
    Geometry(String),
    /// More shared memory than a block can have (227 KiB on `sm_90`).
    SharedMemory {
        /// Bytes asked for, static and dynamic.
        requested: u64,
        /// Bytes there are.
        limit: u64,
    },
    /// A variable of the module that is given an address: it is not there, or the address does not fit.
    Variable(String),
    /// The emulated global memory cannot hold what was asked.
    Memory(MemoryError),
    /// The worker threads could not be started.
    Workers(String),
    /// The kernel reached an instruction that the emulator lacks.
    Unsupported(ParseError),
}

/// A host access to emulated global memory that is outside every allocation, or an allocation that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// `[address, address + len)` is not inside one allocation.
    OutOfBounds {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
    },
    /// The alignment is not a power of two between 1 and 2^20.
    BadAlignment(u64),
    /// More bytes than the emulator's limit.
    TooLarge(u64),
    /// A texture whose sizes, pitch or filter do not go together.
    Texture(String),
    /// The host has no memory for an allocation of so many bytes.
    HostMemory(u64),
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { address, len } => {
                write!(
                    f,
                    "{len} bytes at {address:#x} are not inside one allocation"
                )
            }
            Self::BadAlignment(a) => write!(f, "alignment {a} is not a power of two up to 2^20"),
            Self::TooLarge(n) => write!(f, "an allocation of {n} bytes is too large"),
            Self::Texture(fault) => write!(f, "a texture of {fault}"),
            Self::HostMemory(n) => write!(f, "the host has no memory for {n} bytes"),
        }
    }
}

impl Error for MemoryError {}

impl From<MemoryError> for RunError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKernel { name, available } => {
                write!(
                    f,
                    "no kernel `{name}` in the module; it has: {}",
                    available.join(", ")
                )
            }
            Self::ArgumentCount { expected, found } => {
                write!(
                    f,
                    "the kernel takes {expected} arguments, the launch gives {found}"
                )
            }
            Self::ArgumentSize {
                index,
                name,
                expected,
                found,
            } => {
                write!(
                    f,
                    "argument {index} (`{name}`) has {found} bytes, but the parameter has {expected}"
                )
            }
            Self::ArgumentType {
                index,
                name,
                expected,
                found,
            } => {
                write!(
                    f,
                    "argument {index} (`{name}`) is {found}, but the parameter is .{expected}"
                )
            }
            Self::Geometry(what) | Self::Variable(what) => write!(f, "{what}"),
            Self::SharedMemory { requested, limit } => {
                write!(
                    f,
                    "{requested} bytes of shared memory were asked for; a block can have {limit}"
                )
            }
            Self::Memory(e) => write!(f, "{e}"),
            Self::Workers(e) => write!(f, "could not start worker threads: {e}"),
            Self::Unsupported(e) => write!(f, "the kernel reached {e}"),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Unsupported(e) => Some(e),
            _ => None,
        }
    }
}
