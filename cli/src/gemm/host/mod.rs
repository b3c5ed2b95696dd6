//! `gemm --emit-host LANGUAGE FILE`: the launch contract as source text of somebody else's host.
//!
//! What is written depends on nothing: it names the kernels, their grids and the values of their parameters in the order in which they are
//! launched, and leaves the launch to whoever has a stream, be that the CUDA driver, cudarc, `CuPy` or `PyTorch`. The buffers are typed
//! arguments, so that a contract for another problem does not compile or is refused with a wrong number of arguments. A contract with tensor maps has
//! one more type, or in C one more function: a host that does not encode them does not compile, or stops at the first one.
//!
//! ```text
//! rust      launches(&Buffers { a, b, c, workspace })? -> [Launch; 1]     Launch { kernel, grid, …, args: vec![Arg::Ptr(a), …] }
//! c         tilewright_launches(&buffers, launch, context)                calls `launch` with what cuLaunchKernel takes
//! python    launches(a, b, c, workspace)                                  a list of Launch, args as ctypes values
//! ```
//!
//! Before that each checks the addresses: alignments, and that what is written overlaps nothing else. Rust returns an error, C a status, Python raises one.

mod c;
mod python;
mod rust;

use tilewright::codegen::gemm::{
    Argument, ArgumentValue, DataType, Declared, Gemm, Launch, MapArgument, MapEncoding, MapSource,
};
use tilewright::codegen::ir::ParamKind;

use super::buffers::Buffer;
use crate::error::CliError;

/// A language that the contract is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Language {
    /// Rust without dependencies.
    Rust,
    /// A header of C99 and C++.
    C,
    /// Python with `ctypes`.
    Python,
}

impl Language {
    /// The language of a name.
    pub(super) fn named(name: &str) -> Result<Self, CliError> {
        match name {
            "rust" => Ok(Self::Rust),
            "c" => Ok(Self::C),
            "python" => Ok(Self::Python),
            _ => Err(CliError::usage(
                "unknown_language",
                format!("a host is written in rust, c or python, not in `{name}`"),
            )),
        }
    }

    /// The source text, for kernels of this PTX.
    pub(super) fn text(
        self,
        problem: &Gemm,
        data_type: DataType,
        ptx: &str,
        launch: &Launch,
    ) -> String {
        let contract = Contract::new(problem, data_type, ptx, launch);
        match self {
            Self::Rust => contract.rust(),
            Self::C => contract.c(),
            Self::Python => contract.python(),
        }
    }
}

struct Contract<'a> {
    /// The device pointers.
    buffers: Vec<Buffer>,
    /// What the file is, a sentence a line.
    about: Vec<String>,
    /// The launches, in order.
    steps: Vec<Step<'a>>,
    workspace_bytes: u64,
    /// m, n and k.
    sizes: [u64; 3],
}

/// One launch and what its kernel's text says of it.
struct Step<'a> {
    launch: &'a Launch,
    /// The text declares the clusters, so that a launch need not.
    cluster_declared: bool,
    /// The kernel waits for the one before it on the stream, and may begin beside it.
    beside_previous: bool,
}

impl<'a> Contract<'a> {
    fn new(problem: &Gemm, data_type: DataType, ptx: &str, launch: &'a Launch) -> Self {
        let step = |launch: &'a Launch| {
            let declared = Declared::of(ptx, &launch.kernel);
            Step {
                launch,
                cluster_declared: declared.cluster.is_some(),
                beside_previous: declared.waits,
            }
        };
        Self {
            buffers: super::buffers::of(problem, data_type, launch),
            about: about(problem, launch),
            steps: launch.sequence().map(step).collect(),
            workspace_bytes: launch.workspace_bytes,
            sizes: [problem.m, problem.n, problem.k],
        }
    }

    /// Whether some kernel takes a tensor map.
    fn has_maps(&self) -> bool {
        let mut all = self.steps.iter().flat_map(|step| &step.launch.arguments);
        all.any(|a| matches!(a.value, ArgumentValue::TensorMap(_)))
    }
}

fn about(problem: &Gemm, launch: &Launch) -> Vec<String> {
    let mut lines = vec![
        format!(
            "Launches of C {}x{} = {} op(A) op(B) + {} C, k = {}, {}; written by `tilewright gemm --emit-host`.",
            problem.m, problem.n, problem.alpha, problem.beta, problem.k, problem.operands
        ),
        format!(
            "Leading dimensions in elements: A {}, B {}, C {}. Buffers are device addresses.",
            problem.lda, problem.ldb, problem.ldc
        ),
        "Each buffer is aligned as checked below, and one that is written overlaps no other: inputs must not change while a kernel runs."
            .to_owned(),
    ];
    if launch.workspace_bytes > 0 {
        lines.push(format!(
            "The workspace has {} bytes at a multiple of 256; it needs no initial contents.",
            launch.workspace_bytes
        ));
    }
    lines
}

/// Where an argument comes from.
enum Source {
    /// A buffer and a distance in bytes.
    Buffer(&'static str, u64),
    Number(String),
    /// What the driver encodes, of the array in a buffer at a distance in bytes.
    Map(&'static str, u64, MapEncoding),
}

fn source(argument: &Argument) -> Source {
    match argument.value {
        ArgumentValue::A => Source::Buffer("a", 0),
        ArgumentValue::B => Source::Buffer("b", 0),
        ArgumentValue::C => Source::Buffer("c", 0),
        ArgumentValue::Bias => Source::Buffer("bias", 0),
        ArgumentValue::Workspace(offset) => Source::Buffer("workspace", offset),
        ArgumentValue::Int(v) => Source::Number(v.to_string()),
        ArgumentValue::Float(v) if argument.kind == ParamKind::S32 => {
            Source::Number((v as i32).to_string())
        }
        // With a point or an exponent, so that it is a float in every language.
        ArgumentValue::Float(v) => Source::Number(format!("{v:?}")),
        ArgumentValue::TensorMap(map) => map_source(&map),
        // The command's epilogues read nothing besides the bias.
        ArgumentValue::Given => Source::Number("0".to_owned()),
    }
}

fn map_source(map: &MapArgument) -> Source {
    let (buffer, offset) = match map.of {
        MapSource::A => ("a", 0),
        MapSource::B => ("b", 0),
        MapSource::C => ("c", 0),
        MapSource::Workspace(offset) => ("workspace", offset),
        // The command's plans have no operands beside A and B.
        MapSource::Given => ("0", 0),
    };
    Source::Map(buffer, offset, map.encoding())
}

/// The values of an encoding's constants, in the function's order: type, interleaving, swizzle, promotion, fill.
fn constants(encoding: &MapEncoding) -> [u32; 5] {
    encoding.constants().map(|(_, constant)| constant.value)
}

fn list(values: &[impl ToString]) -> String {
    let all: Vec<_> = values.iter().map(ToString::to_string).collect();
    all.join(", ")
}
