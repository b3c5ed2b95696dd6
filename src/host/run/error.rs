//! Why a run did not start.

use std::fmt;

use layout_codegen::{ContractError, Elements};
#[cfg(feature = "emulator")]
use ptx_emulator::{MemoryError, ParseError};
#[cfg(feature = "gpu")]
use tilewright_gpu::GpuError;
#[cfg(feature = "opencl")]
use tilewright_gpu::opencl::ClDeviceError;
use tilewright_kernels::gemm::PlanError;

use super::super::OperandError;
use super::arg::Role;

/// An argument that does not go with the parameters.
///
/// ```
/// use tilewright::host::{Arg, ArgError, On, PtxKernel, RunError, run};
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .f32 a) { ret; }";
/// let kernel = PtxKernel::new(text, "nothing")?;
/// let error = run(&kernel, On::Emulator, [("a", Arg::from(1.0_f64))]).unwrap_err();
/// assert!(matches!(&error, RunError::Arg(ArgError::WrongType { name, .. }) if name == "a"));
/// assert_eq!(error.to_string(), "`a` takes an f32, and an f64 is given");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArgError {
    /// A parameter without an argument.
    Missing {
        /// The parameter.
        name: String,
        /// Its type.
        expected: String,
    },
    /// An argument without a parameter.
    Unknown {
        /// The argument's name.
        name: String,
        /// The parameters that there are, with their types.
        known: Vec<String>,
    },
    /// Two arguments of one name.
    Twice {
        /// The name.
        name: String,
    },
    /// An argument of another type.
    WrongType {
        /// The parameter.
        name: String,
        /// Its type.
        expected: String,
        /// The argument's.
        found: String,
    },
    /// An integer that the parameter does not take.
    OutOfRange {
        /// The parameter.
        name: String,
        /// The argument.
        value: i128,
        /// The least and the greatest that it takes.
        range: (i128, i128),
    },
    /// A buffer that is shorter than what the kernel reads or writes.
    TooShort {
        /// The parameter.
        name: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that it has.
        found: u64,
        /// Bytes of an element.
        element: u64,
    },
    /// A buffer at an address that is not as aligned as the kernel assumes.
    Misaligned {
        /// The parameter.
        name: String,
        /// What the address must be a multiple of.
        needed: u64,
        /// What was asked for.
        found: u64,
    },
    /// An element of a buffer that is not as the kernel is proven for.
    NotAsStated {
        /// The parameter.
        name: String,
        /// The number of the element; of two equal ones, of the second.
        element: usize,
        /// The element.
        value: i32,
        /// What the kernel is proven for.
        stated: Elements,
    },
    /// A buffer without content that the kernel reads, or an input that it writes.
    Role {
        /// The parameter.
        name: String,
        /// What the kernel does with the buffer.
        kernel: Role,
        /// What it was given as.
        given: Role,
    },
    /// An alignment that is not a power of two, or that is larger than 1 MiB.
    Alignment {
        /// The parameter.
        name: String,
        /// What was asked for.
        found: u64,
    },
}

impl ArgError {
    /// A stable name of the kind of error, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing_argument",
            Self::Unknown { .. } => "unknown_argument",
            Self::Twice { .. } => "argument_twice",
            Self::WrongType { .. } => "argument_type",
            Self::OutOfRange { .. } => "argument_range",
            Self::TooShort { .. } => "buffer_too_short",
            Self::Misaligned { .. } => "buffer_misaligned",
            Self::NotAsStated { .. } => "not_as_stated",
            Self::Role { .. } => "buffer_role",
            Self::Alignment { .. } => "bad_alignment",
        }
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, expected } => {
                write!(f, "no argument is given for `{name}`, {expected}")
            }
            Self::Unknown { name, known } if known.is_empty() => write!(
                f,
                "there is no parameter `{name}`: the kernel takes no arguments"
            ),
            Self::Unknown { name, known } => write!(
                f,
                "there is no parameter `{name}`; the kernel takes {}",
                known.join(", ")
            ),
            Self::Twice { name } => write!(f, "`{name}` is given twice"),
            Self::WrongType {
                name,
                expected,
                found,
            } => write!(f, "`{name}` takes {expected}, and {found} is given"),
            Self::OutOfRange {
                name,
                value,
                range: (least, most),
            } => write!(
                f,
                "`{name}` is {value}, and the kernel takes {least} to {most}"
            ),
            Self::TooShort {
                name,
                needed,
                found,
                element,
            } => write!(
                f,
                "the buffer for `{name}` has {} elements ({found} bytes), and the kernel needs {} ({needed} bytes) for these sizes",
                found / element,
                needed.div_ceil(*element)
            ),
            Self::Misaligned {
                name,
                needed,
                found,
            } => write!(
                f,
                "the buffer for `{name}` is aligned to {found} bytes, and the kernel needs {needed}"
            ),
            Self::NotAsStated {
                name,
                element,
                value,
                stated: Elements::Distinct,
            } => write!(
                f,
                "element {element} of `{name}` is {value}, as one before it: the kernel is proven for elements that are distinct"
            ),
            Self::NotAsStated {
                name,
                element,
                value,
                stated,
            } => write!(
                f,
                "element {element} of `{name}` is {value}: the kernel is proven for elements {stated}"
            ),
            Self::Role {
                name,
                kernel,
                given: Role::Output,
            } => write!(
                f,
                "the kernel reads `{name}`, and a buffer without content is given: give it by {}",
                if *kernel == Role::Input {
                    "`Arg::input`"
                } else {
                    "`Arg::in_out`"
                }
            ),
            Self::Role { name, kernel, .. } => write!(
                f,
                "the kernel writes `{name}`, and an input stays as it is: give it by {}",
                if *kernel == Role::Output {
                    "`Arg::output`"
                } else {
                    "`Arg::in_out`"
                }
            ),
            Self::Alignment { name, found } => write!(
                f,
                "the buffer for `{name}` asks for an alignment of {found} bytes: an alignment is a power of two and at most {}",
                1 << 20
            ),
        }
    }
}

impl std::error::Error for ArgError {}

/// Why a run did not start or did not end. What a kernel does wrong while it runs on the emulator is no error but in the outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// An argument does not go with the parameters.
    Arg(ArgError),
    /// The kernel cannot be launched for these arguments.
    Refused {
        /// Why.
        reason: String,
    },
    /// The PTX text has no such entry, or its parameters cannot be read.
    Text {
        /// What is wrong with it.
        reason: String,
    },
    /// The sizes are not what the kernel was proven for.
    Contract(ContractError),
    /// The plan refused the problem.
    Plan(PlanError),
    /// A matrix is not what the problem says.
    Operand(OperandError),
    /// The kernel has no text in OpenCL C.
    NoOpenCl {
        /// Which kernel, and why.
        reason: String,
    },
    /// This build lacks what was asked for.
    NotBuilt {
        /// The feature that has it.
        feature: &'static str,
    },
    /// The emulator cannot read the text.
    #[cfg(feature = "emulator")]
    Parse(ParseError),
    /// The emulator refused the launch.
    #[cfg(feature = "emulator")]
    Emulator(ptx_emulator::RunError),
    /// The buffers do not fit the emulator's memory.
    #[cfg(feature = "emulator")]
    Memory(MemoryError),
    /// There is no GPU, or the driver refused the text, the memory or a launch.
    #[cfg(feature = "gpu")]
    Gpu(GpuError),
    /// The OpenCL device refused the text, the memory or a launch.
    #[cfg(feature = "opencl")]
    OpenCl(ClDeviceError),
}

impl RunError {
    /// A stable name of the kind of error, in `snake_case`.
    ///
    /// ```
    /// use tilewright::host::PtxKernel;
    ///
    /// let error = PtxKernel::new(".version 8.0", "gemm").unwrap_err();
    /// assert_eq!(error.code(), "invalid_text");
    /// assert_eq!(error.to_string(), "the text has no entry `gemm`; it has none at all");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::Arg(e) => e.code(),
            Self::Refused { .. } => "refused",
            Self::Text { .. } => "invalid_text",
            Self::Contract(e) => e.code(),
            Self::Plan(e) => e.code(),
            Self::Operand(_) => "wrong_operand",
            Self::NoOpenCl { .. } => "no_opencl_form",
            Self::NotBuilt { .. } => "not_built",
            #[cfg(feature = "emulator")]
            Self::Parse(_) => "invalid_ptx",
            #[cfg(feature = "emulator")]
            Self::Emulator(_) => "invalid_launch",
            #[cfg(feature = "emulator")]
            Self::Memory(_) => "emulator_memory",
            #[cfg(feature = "gpu")]
            Self::Gpu(e) => e.code(),
            #[cfg(feature = "opencl")]
            Self::OpenCl(e) => e.code(),
        }
    }

    /// Whether there is no such device on this machine, or this build knows none: what a program that can do without it goes on after.
    pub fn means_no_device(&self) -> bool {
        match self {
            Self::NotBuilt { .. } => true,
            #[cfg(feature = "gpu")]
            Self::Gpu(e) => e.means_no_gpu(),
            #[cfg(feature = "opencl")]
            Self::OpenCl(e) => e.means_no_device(),
            _ => false,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arg(e) => e.fmt(f),
            Self::Refused { reason } => write!(f, "the kernel cannot be launched: {reason}"),
            Self::Text { reason } | Self::NoOpenCl { reason } => f.write_str(reason),
            Self::Contract(e) => e.fmt(f),
            Self::Plan(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
            Self::NotBuilt { feature } => {
                write!(f, "this needs the feature `{feature}` of tilewright")
            }
            #[cfg(feature = "emulator")]
            Self::Parse(e) => write!(f, "the emulator can't read the kernel: {e}"),
            #[cfg(feature = "emulator")]
            Self::Emulator(e) => write!(f, "the emulator can't run the kernel: {e}"),
            #[cfg(feature = "emulator")]
            Self::Memory(e) => write!(f, "the emulator's memory: {e}"),
            #[cfg(feature = "gpu")]
            Self::Gpu(e) => e.fmt(f),
            #[cfg(feature = "opencl")]
            Self::OpenCl(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<ArgError> for RunError {
    fn from(e: ArgError) -> Self {
        Self::Arg(e)
    }
}

impl From<OperandError> for RunError {
    fn from(e: OperandError) -> Self {
        Self::Operand(e)
    }
}

impl From<ContractError> for RunError {
    fn from(e: ContractError) -> Self {
        Self::Contract(e)
    }
}

impl From<PlanError> for RunError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

#[cfg(feature = "emulator")]
impl From<ParseError> for RunError {
    fn from(e: ParseError) -> Self {
        Self::Parse(e)
    }
}

#[cfg(feature = "emulator")]
impl From<ptx_emulator::RunError> for RunError {
    fn from(e: ptx_emulator::RunError) -> Self {
        Self::Emulator(e)
    }
}

#[cfg(feature = "emulator")]
impl From<MemoryError> for RunError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

#[cfg(feature = "gpu")]
impl From<GpuError> for RunError {
    fn from(e: GpuError) -> Self {
        Self::Gpu(e)
    }
}

#[cfg(feature = "opencl")]
impl From<ClDeviceError> for RunError {
    fn from(e: ClDeviceError) -> Self {
        Self::OpenCl(e)
    }
}
