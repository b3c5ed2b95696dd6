//! What a kernel promises and asks for: the trait [`Runnable`], its parameters and its launches.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use layout_codegen::ir::ParamKind;
use layout_codegen::prove::{AccessProof, Assumed};
use layout_codegen::tensor_map::MapArgument;
use layout_codegen::{Elements, Formulas};

use super::arg::{Arg, Role, Scalar};
use super::element::BufferType;
use super::error::RunError;

/// The type of a parameter.
///
/// ```
/// use tilewright::host::{BufferType, ParamType};
///
/// assert_eq!(ParamType::Pointer(Some(BufferType::F16)).to_string(), "a buffer of f16");
/// assert_eq!(ParamType::Integer(8).to_string(), "a buffer or an integer of 8 bytes");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParamType {
    /// The address of elements of one type, or of any.
    Pointer(Option<BufferType>),
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// An integer of so many bytes, signed or not, or, of 8 bytes, an address: what `.u32` and `.u64` in PTX text say.
    Integer(u32),
    /// Anything of so many bytes: what `.b32` and arrays in PTX text say.
    Bits(u32),
}

impl ParamType {
    /// Whether a parameter of this type takes an argument.
    pub(crate) fn takes(self, arg: &Arg<'_>) -> bool {
        match arg {
            Arg::Buffer(buffer) => match self {
                Self::Pointer(element) => element.is_none_or(|element| element == buffer.element),
                Self::Integer(bytes) | Self::Bits(bytes) => bytes == 8,
                _ => false,
            },
            Arg::Scalar(scalar) => match (self, scalar) {
                (Self::U32, Scalar::U32(_))
                | (Self::I32, Scalar::I32(_))
                | (Self::U64, Scalar::U64(_))
                | (Self::I64, Scalar::I64(_))
                | (Self::F32, Scalar::F32(_))
                | (Self::F64, Scalar::F64(_))
                | (Self::Integer(4), Scalar::U32(_) | Scalar::I32(_))
                | (Self::Integer(8), Scalar::U64(_) | Scalar::I64(_))
                | (Self::Bits(4), Scalar::U32(_) | Scalar::I32(_) | Scalar::F32(_))
                | (Self::Bits(8), Scalar::U64(_) | Scalar::I64(_) | Scalar::F64(_)) => true,
                (Self::Integer(bytes) | Self::Bits(bytes), Scalar::Bytes(value)) => {
                    bytes as usize == value.len()
                }
                _ => false,
            },
        }
    }
}

impl From<ParamKind> for ParamType {
    fn from(kind: ParamKind) -> Self {
        match kind {
            ParamKind::Pointer => Self::Pointer(None),
            ParamKind::U32 => Self::U32,
            ParamKind::U64 => Self::U64,
            ParamKind::S32 => Self::I32,
            ParamKind::F32 => Self::F32,
            ParamKind::F64 => Self::F64,
            ParamKind::TensorMap => Self::Bits(128),
        }
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(None) => write!(f, "a buffer"),
            Self::Pointer(Some(element)) => write!(f, "a buffer of {element}"),
            Self::U32 => write!(f, "a u32"),
            Self::I32 => write!(f, "an i32"),
            Self::U64 => write!(f, "a u64"),
            Self::I64 => write!(f, "an i64"),
            Self::F32 => write!(f, "an f32"),
            Self::F64 => write!(f, "an f64"),
            Self::Integer(8) => write!(f, "a buffer or an integer of 8 bytes"),
            Self::Integer(bytes) => write!(f, "an integer of {bytes} bytes"),
            Self::Bits(8) => write!(f, "a buffer or 8 bytes"),
            Self::Bits(bytes) => write!(f, "{bytes} bytes"),
        }
    }
}

/// A parameter: its name, its type, and what its values are.
///
/// ```
/// use tilewright::host::{BufferType, Param, ParamType};
///
/// let x = Param::pointer("x", BufferType::F32).aligned_to(16);
/// let n = Param::new("n", ParamType::U32).in_range(1..=1 << 20);
/// assert_eq!((x.name.as_str(), n.range), ("x", Some((1, 1 << 20))));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// The least and the greatest integer that it takes.
    pub range: Option<(i128, i128)>,
    /// What the address of a buffer must be a multiple of, in bytes.
    pub alignment: u64,
    /// What the kernel does with a buffer, if that is known: an argument without content is no input, and an input is not written. Each buffer of a run has
    /// memory of its own, so that none overlaps another.
    pub role: Option<Role>,
}

impl Param {
    /// A parameter of a type.
    pub fn new(name: impl Into<String>, ty: ParamType) -> Self {
        Self {
            name: name.into(),
            ty,
            range: None,
            alignment: 1,
            role: None,
        }
    }

    /// The address of elements, aligned to one of them.
    pub fn pointer(name: impl Into<String>, element: BufferType) -> Self {
        let alignment = element.bytes() as u64;
        Self::new(name, ParamType::Pointer(Some(element))).aligned_to(alignment)
    }

    /// The same with integers in this range only.
    #[must_use]
    pub fn in_range(self, range: RangeInclusive<i128>) -> Self {
        Self {
            range: Some((*range.start(), *range.end())),
            ..self
        }
    }

    /// The same of which it is known what the kernel does with it.
    #[must_use]
    pub fn used_as(self, role: Role) -> Self {
        Self {
            role: Some(role),
            ..self
        }
    }

    /// The same with addresses that are multiples of so many bytes only.
    #[must_use]
    pub fn aligned_to(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }
}

/// The scalar arguments of a run, by the names of their parameters: what a kernel makes its grid of.
///
/// ```
/// use tilewright::host::{Arg, On, PtxKernel, run};
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .u32 n) { ret; }";
/// let kernel = PtxKernel::new(text, "nothing")?
///     .grid_by(|scalars| Ok([scalars.size("n")?.div_ceil(256) as u32, 1, 1]));
/// let outcome = run(&kernel, On::Emulator, [("n", Arg::from(1000_u32))])?;
/// assert_eq!(outcome.report.map(|report| report.blocks), Some(4));
///
/// let error = run(&kernel, On::Emulator, [("n", Arg::from(-1_i32))]).unwrap_err();
/// assert_eq!(error.to_string(), "the kernel cannot be launched: `n` is a size and cannot be -1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a>(pub(crate) &'a [(&'a str, &'a Scalar)]);

impl Scalars<'_> {
    /// The argument for a parameter, if that is a scalar.
    pub fn get(&self, name: &str) -> Option<&Scalar> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, scalar)| *scalar)
    }

    /// The integer for a parameter, as a size.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] for a parameter that is not an integer, or is negative.
    pub fn size(&self, name: &str) -> Result<u64, RunError> {
        let value = self.get(name).and_then(Scalar::integer);
        let size = value.and_then(|value| u64::try_from(value).ok());
        size.ok_or_else(|| RunError::Refused {
            reason: match value {
                Some(value) => format!("`{name}` is a size and cannot be {value}"),
                None => format!("`{name}` is not an integer argument of this kernel"),
            },
        })
    }
}

/// One launch of a kernel of the module. [`Runnable`] shows one.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The entry's name.
    pub entry: String,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// What each parameter of the entry gets, in order.
    pub args: Vec<StepArg>,
}

/// What a parameter of a launched entry gets. [`Runnable`] shows it.
#[derive(Clone, PartialEq, Debug)]
pub enum StepArg {
    /// The argument of this name.
    Argument(String),
    /// The address of the workspace plus so many bytes.
    Workspace(u64),
    /// This value.
    Value(Scalar),
    /// A tensor map of the buffer that is the argument of this name, or of the workspace without a name, from so many bytes on.
    TensorMap(Option<String>, u64, MapArgument),
}

/// The launches of one run, in order; none if there is nothing to do. [`Runnable`] shows them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Launches {
    /// One after the other on one stream.
    pub steps: Vec<Step>,
    /// Bytes of device memory that they pass data through, aligned to 256; what is in it at first does not matter.
    pub workspace_bytes: u64,
    /// Bytes that a buffer must have at least, by the name of its parameter. Buffers that are not here can have any size.
    pub least_bytes: Vec<(String, u64)>,
    /// What is promised of the stores to a buffer, by the name of its parameter: the emulator counts them, and [`Outcome::clean`](super::Outcome::clean)
    /// includes it.
    pub stores: Vec<(String, Stores)>,
    /// What the kernel is proven for of the elements of buffers of 32-bit integers, by the names of their parameters: a run with others is refused.
    pub stated: Vec<(String, Elements)>,
}

/// How often the elements of a buffer are stored, which are in the first [`least_bytes`](Launches::least_bytes) of it. [`Launches`] has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stores {
    /// Never.
    Never,
    /// Each exactly once.
    Once,
    /// Each at most once.
    AtMostOnce,
}

/// A kernel that [`run`](super::run()) runs: its text, its parameters, and its launches for given scalar arguments.
///
/// Implemented by [`GemmKernel`](super::GemmKernel) (a plan with a problem), by [`Proven`](layout_codegen::Proven) (a kernel of your own), by
/// [`CompiledKernel`](tilewright_kernels::gemm::CompiledKernel) (a constant of `kernel!`) and by [`PtxKernel`](super::PtxKernel) (any text).
/// A type of your own says the same of itself:
///
/// ```
/// use tilewright::host::{
///     Arg, BufferType, Launches, On, Param, ParamType, RunError, Runnable, Scalars, Step, StepArg, run,
/// };
///
/// /// out[i] = i for i < n.
/// struct Iota;
///
/// impl Runnable for Iota {
///     fn ptx(&self) -> &str {
///         ".version 8.0\n.target sm_80\n.address_size 64\n\
///          .visible .entry iota(.param .u64 out, .param .u32 n) {\n\
///              .reg .pred %p<1>; .reg .b32 %r<5>; .reg .b64 %d<3>;\n\
///              ld.param.u64 %d0, [out]; ld.param.u32 %r0, [n];\n\
///              mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n\
///              mad.lo.s32 %r3, %r2, 32, %r1; setp.ge.u32 %p0, %r3, %r0;\n\
///              @%p0 ret;\n\
///              mul.wide.u32 %d1, %r3, 4; add.s64 %d2, %d0, %d1;\n\
///              st.global.u32 [%d2], %r3; ret;\n\
///          }\n"
///     }
///     fn entry(&self) -> &str {
///         "iota"
///     }
///     fn params(&self) -> Vec<Param> {
///         vec![
///             Param::pointer("out", BufferType::U32),
///             Param::new("n", ParamType::U32).in_range(0..=1 << 31),
///         ]
///     }
///     fn launches(&self, scalars: &Scalars) -> Result<Launches, RunError> {
///         let n = scalars.size("n")?;
///         let args = ["out", "n"].map(|name| StepArg::Argument(name.to_owned()));
///         let step = Step {
///             entry: "iota".to_owned(),
///             grid: [n.div_ceil(32) as u32, 1, 1],
///             block: [32, 1, 1],
///             cluster: [1, 1, 1],
///             shared_bytes: 0,
///             args: args.to_vec(),
///         };
///         Ok(Launches { steps: vec![step], least_bytes: vec![("out".to_owned(), 4 * n)], ..Launches::default() })
///     }
/// }
///
/// let outcome = run(&Iota, On::Emulator, [("out", Arg::output::<u32>(50)), ("n", Arg::from(50_u32))])?;
/// outcome.assert_clean();
/// assert_eq!(outcome.get::<u32>("out")?[49], 49);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Runnable {
    /// The complete PTX module.
    fn ptx(&self) -> &str;

    /// The name of the entry; of the main one, if there are several.
    fn entry(&self) -> &str;

    /// What it takes, by name. An argument is given for each, in any order.
    fn params(&self) -> Vec<Param>;

    /// What is launched for these scalar arguments, one for each parameter that is not a buffer.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] with the reason, or another error of the kernel's own.
    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError>;

    /// The complete program in OpenCL C, which has a kernel of each launch's name: what [`On::OpenCl`](super::On::OpenCl) runs.
    ///
    /// # Errors
    ///
    /// [`RunError::NoOpenCl`] for a kernel that has none: PTX text, and what OpenCL C has no form for (tensor cores, TMA, …).
    fn opencl(&self) -> Result<Cow<'_, str>, RunError> {
        let reason = format!(
            "`{}` is PTX text, which OpenCL devices do not compile: run it on a GPU or the emulator",
            self.entry()
        );
        Err(RunError::NoOpenCl { reason })
    }

    /// What is proven of its shared accesses: what [`Outcome::counted_as_proven`](super::Outcome::counted_as_proven) holds the emulator's
    /// counts to.
    fn accesses(&self) -> Vec<AccessProof> {
        Vec::new()
    }

    /// What its author states and the proof takes as facts.
    fn assumptions(&self) -> &[Assumed] {
        &[]
    }

    /// What is launched for any sizes, if one launch is: the text of a host computes it.
    fn any_size(&self) -> Option<(Step, Formulas)> {
        None
    }

    /// The names of an entry's parameters, in order: those of the text.
    ///
    /// # Errors
    ///
    /// [`RunError::Text`] if the text has no such entry, or a parameter of it cannot be read.
    fn param_names(&self, entry: &str) -> Result<Vec<String>, RunError> {
        let params = super::ptx_kernel::read_params(self.ptx(), entry);
        let params = params.map_err(|reason| RunError::Text { reason })?;
        Ok(params.into_iter().map(|p| p.name).collect())
    }

    /// Ways to do the same, of which a launch takes one: the names of the accesses of each. What is proven of the others is held to nothing in that
    /// run ([`Outcome::not_taken`](super::Outcome::not_taken)).
    fn alternatives(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// The lines (from 1) of the instructions that make a shared access: those that end in a comment with its name.
    fn lines_of(&self, access: &str) -> Vec<usize> {
        let tagged = |line: &str| {
            let rest = line.trim_end().strip_suffix(access);
            rest.is_some_and(|rest| rest.trim_end().ends_with("//"))
        };
        let lines = self.ptx().lines().enumerate();
        lines
            .filter(|(_, line)| tagged(line))
            .map(|(i, _)| i + 1)
            .collect()
    }
}
