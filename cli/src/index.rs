//! `tilewright index`: the index function of a layout, for other people's kernels and build scripts.
//!
//! ```text
//! LAYOUT      Sw<3,4,3> o 16 o (8,64):(ld,1)            any expression of `eval`; strides may be sums with names
//! --coords    linear | modes | row,col                  one linear coordinate, one for each mode, or the same by name
//! --range     row=0..128   ld=..4096   col=any          ends are exclusive; `any` is every value of the type
//! ```
//!
//! The question and its answer are [`tilewright_workbench::index_code`]'s.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tilewright_workbench::index_code::{Question, Target};

use crate::error::{Outcome, finish};
use crate::output;

/// A language to write the function in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Language {
    /// A `const fn` without std
    Rust,
    /// A block that reads and writes registers
    Ptx,
    /// A `__host__ __device__` function
    Cuda,
    /// A function of OpenCL C
    Opencl,
}

impl From<Language> for Target {
    fn from(language: Language) -> Self {
        match language {
            Language::Rust => Target::Rust,
            Language::Ptx => Target::Ptx,
            Language::Cuda => Target::Cuda,
            Language::Opencl => Target::OpenCl,
        }
    }
}

/// Write the index function of a layout in Rust, PTX, CUDA C or OpenCL C
#[derive(Args, Debug)]
pub(crate) struct IndexArgs {
    /// The layout, such as `Sw<3,4,3> o (8,64):(ld,1)`, or any expression of `eval`; strides may have names
    #[arg(allow_hyphen_values = true)]
    layout: String,
    /// The language
    #[arg(long, value_enum, default_value = "cuda")]
    target: Language,
    /// The function's name (in PTX: of its result register)
    #[arg(long, default_value = "offset")]
    name: String,
    /// The coordinates: `linear`, `modes` (one for each top-level mode), or their names, separated by commas
    #[arg(long, default_value = "modes")]
    coords: String,
    /// The type of the result: u32, i32, u64 or i64 (the narrowest by default)
    #[arg(long = "type")]
    ty: Option<String>,
    /// The values that a coordinate or a named stride takes: `row=0..128`, `ld=1..4097`, or `row=any`. By default a
    /// coordinate is below its extent and a stride is any u32
    #[arg(long, value_name = "NAME=FROM..TO")]
    range: Vec<String>,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &IndexArgs) -> ExitCode {
    finish(write(args), args.json)
}

fn write(args: &IndexArgs) -> Outcome {
    let question = Question {
        layout: &args.layout,
        target: args.target.into(),
        name: &args.name,
        coords: &args.coords,
        ty: args.ty.as_deref(),
        ranges: args.range.iter().map(String::as_str).collect(),
    };
    if args.json {
        output::print_json(&question.to_json()?);
    } else {
        output::print_line(question.code()?.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
