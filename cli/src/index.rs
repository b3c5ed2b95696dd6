//! `tilewright index`: the index function of a layout, for other people's kernels and build scripts.
//!
//! ```text
//! LAYOUT      Sw<3,4,3> o 16 o (8,64):(ld,1)            any expression of `eval`; strides may be sums with names
//! --coords    linear | modes | row,col                  one linear coordinate, one for each mode, or the same by name
//! --range     row=0..128   ld=..4096   col=any          ends are exclusive; `any` is every value of the type
//! ```

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen::index::code::Ty;
use tilewright::codegen::index::targets::program;
use tilewright::codegen::index::{Bound, IndexError, IndexLayout, IndexSpec, Stride, Target};

use crate::error::{CliError, Outcome, finish};
use crate::eval::calculator::evaluate;
use crate::eval::is_expression;
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
    /// A `static inline` function
    #[value(name = "opencl")]
    OpenCl,
}

impl From<Language> for Target {
    fn from(language: Language) -> Self {
        match language {
            Language::Rust => Target::Rust,
            Language::Ptx => Target::Ptx,
            Language::Cuda => Target::Cuda,
            Language::OpenCl => Target::OpenCl,
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
    #[arg(long, value_enum)]
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
    let spec = spec(args)?;
    let target = Target::from(args.target);
    let refused = |e: IndexError| refusal(&e, args);
    let program = program(&spec).map_err(refused)?;
    let code = program.text(target).map_err(refused)?;
    if !args.json {
        output::print_line(code.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let lowered = spec.lower().map_err(refused)?;
    let parameters: Vec<Value> = lowered
        .parameters
        .iter()
        .map(|p| json!({"name": p.name, "type": p.ty.name(), "min": p.lo, "max": p.hi}))
        .collect();
    let number = |v: i128| i64::try_from(v).ok();
    output::print_json(&json!({
        "target": target.name(),
        "name": spec.name,
        "layout": spec.layout.to_string(),
        "parameters": parameters,
        "result": {
            "type": lowered.ty.name(),
            "min": number(lowered.range.0),
            "max": number(lowered.range.1),
        },
        "instructions": program.statements().len(),
        "code": code,
    }));
    Ok(ExitCode::SUCCESS)
}

/// Bad usage is what the command line says wrongly; a layout whose index does not fit is asked for rightly and can't be had.
fn refusal(error: &IndexError, args: &IndexArgs) -> CliError {
    let (code, message) = (error.code(), error.to_string());
    match error {
        IndexError::Parse(e) => CliError::usage(code, message).at(e.span, args.layout.as_str()),
        IndexError::Coordinates { .. }
        | IndexError::Name { .. }
        | IndexError::Unknown { .. }
        | IndexError::Range { .. } => CliError::usage(code, message),
        _ => CliError::new(code, message),
    }
}

fn spec(args: &IndexArgs) -> Result<IndexSpec, CliError> {
    let layout = layout(&args.layout)?;
    let mut spec = IndexSpec::new(&args.name, layout);
    match args.coords.as_str() {
        "modes" => {}
        "linear" => spec = spec.linear(),
        names => {
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            spec = spec.named(&names);
        }
    }
    if let Some(name) = &args.ty {
        let ty = Ty::named(name).ok_or_else(|| {
            let message = format!("there is no type `{name}` here; known are u32, i32, u64, i64");
            CliError::usage("unknown_type", message)
        })?;
        spec = spec.result(ty);
    }
    for range in &args.range {
        apply(&mut spec, range)?;
    }
    Ok(spec)
}

/// The layout that the text is: the notation, or any expression of the calculator.
fn layout(text: &str) -> Result<IndexLayout, CliError> {
    let written = match IndexLayout::parse(text) {
        Ok(layout) => return Ok(layout),
        Err(error) => error,
    };
    let whole = (0, text.len());
    let value = match evaluate(text) {
        Ok(value) => value,
        Err(error) if is_expression(text) => {
            return Err(CliError::usage(error.code, error.message).at(error.span, text));
        }
        Err(_) => {
            let message = written.message();
            return Err(CliError::usage(written.code(), message.as_str()).at(written.span, text));
        }
    };
    let spec = value
        .with_function(IndexLayout::from_function)
        .ok_or_else(|| {
            let message = format!(
                "index code is written for a layout, not for {}",
                value.kind()
            );
            CliError::usage("type_mismatch", message).at(whole, text)
        })?;
    spec.flatten()
        .map_err(|error| CliError::usage(error.code(), error.to_string()).at(whole, text))
}

/// `name=from..to` or `name=any`, of a coordinate or a stride.
fn apply(spec: &mut IndexSpec, text: &str) -> Result<(), CliError> {
    let wrong = || {
        let message = "expected NAME=FROM..TO, NAME=..TO or NAME=any, such as row=0..128";
        CliError::usage("syntax", message).at((0, text.len()), text)
    };
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    let range = if values == "any" {
        None
    } else {
        let (from, to) = values.split_once("..").ok_or_else(wrong)?;
        let number = |s: &str| s.parse::<i64>().map_err(|_| wrong());
        let from = if from.is_empty() { 0 } else { number(from)? };
        let to = match to.strip_prefix('=') {
            Some(last) => number(last)?,
            None => number(to)?.checked_sub(1).ok_or_else(wrong)?,
        };
        if from > to {
            let message = format!("`{values}` is no range for `{name}`: it is empty");
            return Err(CliError::usage("invalid_range", message).at((0, text.len()), text));
        }
        Some((from, to))
    };
    let Some(c) = spec.coordinates.iter_mut().find(|c| c.name == name) else {
        let (lo, hi) = range.unwrap_or((0, u32::MAX.into()));
        spec.strides.push(Stride {
            name: name.to_owned(),
            lo,
            hi,
            ty: None,
        });
        return Ok(());
    };
    // A coordinate's range starts at 0: a later start tells the compiler nothing that it could use.
    c.bound = match range {
        None => Bound::Unbounded,
        Some((0.., hi)) => Bound::UpTo(hi),
        Some(_) => {
            let message = format!("`{values}` is no range for `{name}`: coordinates start at 0");
            return Err(CliError::usage("invalid_range", message).at((0, text.len()), text));
        }
    };
    Ok(())
}
