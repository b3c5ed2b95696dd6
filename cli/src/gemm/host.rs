//! `gemm --emit-host LANGUAGE FILE`: the launch contract as source text of somebody else's host.
//!
//! What is written depends on nothing: it names the kernels, their grids and the values of their parameters in the order in which they are
//! launched, and leaves the launch to whoever has a stream, be that the CUDA driver, cudarc, `CuPy` or `PyTorch`. The buffers are typed
//! arguments, so that a contract for another problem does not compile or is refused with a wrong number of arguments.
//!
//! ```text
//! rust      launches(&Buffers { a, b, c, workspace }) -> [Launch; 1]      Launch { kernel, grid, …, args: vec![Arg::Ptr(a), …] }
//! c         tilewright_launches(&buffers, launch, context)                calls `launch` with what cuLaunchKernel takes
//! python    launches(a, b, c, workspace=0)                                a list of Launch, args as ctypes values
//! ```

use std::fmt::Write as _;

use tilewright::codegen::gemm::{Argument, ArgumentValue, Bias, Gemm, Launch};
use tilewright::codegen::ir::ParamKind;

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

    /// The source text.
    ///
    /// # Errors
    ///
    /// A launch with tensor maps, which only the driver encodes.
    pub(super) fn text(self, problem: &Gemm, launch: &Launch) -> Result<String, CliError> {
        let mut all = launch.sequence().flat_map(|l| &l.arguments);
        if all.any(|a| a.kind == ParamKind::TensorMap) {
            return Err(CliError::new(
                "unsupported",
                format!(
                    "kernel {} takes tensor maps, which the driver encodes from what `--json` says of them; --emit-host writes the contract of plans without, such as mma-f16-128x128x64",
                    launch.kernel
                ),
            ));
        }
        let contract = Contract {
            buffers: buffers(problem, launch),
            about: about(problem, launch),
            launch,
        };
        Ok(match self {
            Self::Rust => contract.rust(),
            Self::C => contract.c(),
            Self::Python => contract.python(),
        })
    }
}

struct Contract<'a> {
    /// The names of the device pointers.
    buffers: Vec<&'static str>,
    /// What the file is, a sentence a line.
    about: Vec<String>,
    launch: &'a Launch,
}

/// The product's buffers, and the workspace if the launches pass data through one.
fn buffers(problem: &Gemm, launch: &Launch) -> Vec<&'static str> {
    let mut names = vec!["a", "b", "c"];
    if problem.epilogue.bias != Bias::None {
        names.push("bias");
    }
    if launch.workspace_bytes > 0 {
        names.push("workspace");
    }
    names
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
    ];
    if launch.workspace_bytes > 0 {
        lines.push(format!(
            "The workspace has {} bytes at a multiple of 256; it needs no initial contents.",
            launch.workspace_bytes
        ));
    }
    lines
}

/// Where an argument comes from: a buffer with a distance in bytes, or a number.
enum Source {
    Buffer(&'static str, u64),
    Number(String),
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
        // The command's epilogues read nothing besides the bias, and tensor maps are refused.
        ArgumentValue::Given | ArgumentValue::TensorMap(_) => Source::Number("0".to_owned()),
    }
}

fn triple(values: [u32; 3]) -> String {
    values.map(|v| v.to_string()).join(", ")
}

impl Contract<'_> {
    fn rust(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let _ = writeln!(out, "//! {line}");
        }
        out.push_str(
            "\n/// A parameter's value.\n#[derive(Clone, Copy, PartialEq, Debug)]\npub enum Arg {\n    Ptr(u64),\n    U32(u32),\n    U64(u64),\n    S32(i32),\n    F32(f32),\n    F64(f64),\n}\n\n\
             /// One launch: `args` in the order of the kernel's parameters.\n#[derive(Clone, PartialEq, Debug)]\npub struct Launch {\n    pub kernel: &'static str,\n    pub grid: [u32; 3],\n    pub block: [u32; 3],\n    pub cluster: [u32; 3],\n    pub shared_bytes: u32,\n    pub args: Vec<Arg>,\n}\n\n\
             /// Device addresses.\n#[derive(Clone, Copy, PartialEq, Eq, Debug)]\npub struct Buffers {\n",
        );
        for name in &self.buffers {
            let _ = writeln!(out, "    pub {name}: u64,");
        }
        let count = self.launch.sequence().count();
        let _ = writeln!(
            out,
            "}}\n\n/// Bytes of the workspace.\npub const WORKSPACE_BYTES: u64 = {};\n\n/// The launches, in order.\npub fn launches(buffers: &Buffers) -> [Launch; {count}] {{\n    [",
            self.launch.workspace_bytes
        );
        for launch in self.launch.sequence() {
            let _ = writeln!(
                out,
                "        Launch {{\n            kernel: {:?},\n            grid: [{}],\n            block: [{}],\n            cluster: [{}],\n            shared_bytes: {},\n            args: vec![",
                launch.kernel,
                triple(launch.grid),
                triple(launch.block),
                triple(launch.cluster),
                launch.shared_bytes
            );
            for argument in &launch.arguments {
                let value = match source(argument) {
                    Source::Buffer(name, 0) => format!("buffers.{name}"),
                    Source::Buffer(name, offset) => format!("buffers.{name} + {offset}"),
                    Source::Number(number) => number,
                };
                let kind = match argument.kind {
                    // Tensor maps are refused before anything is written.
                    ParamKind::Pointer | ParamKind::TensorMap => "Ptr",
                    ParamKind::U32 => "U32",
                    ParamKind::U64 => "U64",
                    ParamKind::S32 => "S32",
                    ParamKind::F32 => "F32",
                    ParamKind::F64 => "F64",
                };
                let _ = writeln!(
                    out,
                    "                Arg::{kind}({value}), // {}",
                    argument.name
                );
            }
            out.push_str("            ],\n        },\n");
        }
        out.push_str("    ]\n}\n");
        out
    }

    fn c(&self) -> String {
        let mut out = String::new();
        for line in &self.about {
            let _ = writeln!(out, "// {line}");
        }
        let _ = writeln!(
            out,
            "#pragma once\n#include <stdint.h>\n\n// Device addresses.\ntypedef struct {{\n{}}} tilewright_buffers;\n\n\
             // One launch: `params` is the kernelParams of cuLaunchKernel, which are valid during the call.\n\
             typedef struct {{\n    const char *kernel;\n    unsigned grid[3], block[3], cluster[3], shared_bytes, count;\n    void **params;\n}} tilewright_launch;\n\n\
             enum {{ TILEWRIGHT_WORKSPACE_BYTES = {} }};\n\n\
             // Calls `launch` for each kernel in order; anything but 0 from it ends the sequence and is returned.\n\
             static inline int tilewright_launches(const tilewright_buffers *buffers,\n                                      int (*launch)(void *, const tilewright_launch *), void *context) {{\n    int status;",
            self.buffers.iter().fold(String::new(), |text, name| text
                + "    uint64_t "
                + name
                + ";\n"),
            self.launch.workspace_bytes
        );
        for launch in self.launch.sequence() {
            out.push_str("    {\n");
            let mut names = Vec::new();
            for (i, argument) in launch.arguments.iter().enumerate() {
                let value = match (source(argument), argument.kind) {
                    (Source::Buffer(name, 0), _) => format!("buffers->{name}"),
                    (Source::Buffer(name, offset), _) => format!("buffers->{name} + {offset}u"),
                    // The least integer has no literal of its own in C.
                    (Source::Number(number), ParamKind::S32) if number == "-2147483648" => {
                        "-2147483647 - 1".to_owned()
                    }
                    (Source::Number(number), ParamKind::U64) => format!("{number}ull"),
                    (Source::Number(number), _) => number,
                };
                let ty = match argument.kind {
                    ParamKind::Pointer | ParamKind::TensorMap | ParamKind::U64 => "uint64_t",
                    ParamKind::U32 => "uint32_t",
                    ParamKind::S32 => "int32_t",
                    ParamKind::F32 => "float",
                    ParamKind::F64 => "double",
                };
                let suffix = if argument.kind == ParamKind::F32 {
                    "f"
                } else {
                    ""
                };
                let _ = writeln!(
                    out,
                    "        {ty} p{i} = {value}{suffix}; // {}",
                    argument.name
                );
                names.push(format!("&p{i}"));
            }
            let _ = writeln!(
                out,
                "        void *params[] = {{{}}};\n        tilewright_launch one = {{\"{}\", {{{}}}, {{{}}}, {{{}}}, {}, {}, params}};\n        if ((status = launch(context, &one)) != 0) return status;\n    }}",
                names.join(", "),
                launch.kernel,
                triple(launch.grid),
                triple(launch.block),
                triple(launch.cluster),
                launch.shared_bytes,
                names.len()
            );
        }
        out.push_str("    return 0;\n}\n");
        out
    }

    fn python(&self) -> String {
        let mut out = format!("\"\"\"{}\"\"\"\n\n", self.about.join("\n"));
        let _ = write!(
            out,
            "import ctypes\nfrom typing import NamedTuple\n\nWORKSPACE_BYTES = {}\n\n\n\
             class Launch(NamedTuple):\n    \"\"\"One launch: `args` are ctypes values in the order of the kernel's parameters.\"\"\"\n\n    kernel: str\n    grid: tuple\n    block: tuple\n    cluster: tuple\n    shared_bytes: int\n    args: list\n\n\n\
             def launches({}):\n    \"\"\"The launches in order, for these device addresses.\"\"\"\n    return [\n",
            self.launch.workspace_bytes,
            self.buffers.join(", ")
        );
        for launch in self.launch.sequence() {
            let _ = writeln!(
                out,
                "        Launch(\n            {:?},\n            ({}),\n            ({}),\n            ({}),\n            {},\n            [",
                launch.kernel,
                triple(launch.grid),
                triple(launch.block),
                triple(launch.cluster),
                launch.shared_bytes
            );
            for argument in &launch.arguments {
                let value = match source(argument) {
                    Source::Buffer(name, 0) => name.to_owned(),
                    Source::Buffer(name, offset) => format!("{name} + {offset}"),
                    Source::Number(number) => number,
                };
                let kind = match argument.kind {
                    ParamKind::Pointer | ParamKind::TensorMap => "c_void_p",
                    ParamKind::U32 => "c_uint32",
                    ParamKind::U64 => "c_uint64",
                    ParamKind::S32 => "c_int32",
                    ParamKind::F32 => "c_float",
                    ParamKind::F64 => "c_double",
                };
                let _ = writeln!(
                    out,
                    "                ctypes.{kind}({value}),  # {}",
                    argument.name
                );
            }
            out.push_str("            ],\n        ),\n");
        }
        out.push_str("    ]\n");
        out
    }
}
