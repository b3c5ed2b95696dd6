//! `tilewright derive`: the best shared-memory layout for all accesses to a tile.
//!
//! ```text
//! tilewright derive --tile 64x64 --elem bf16 --access 'cp.async.16 @ (8,4):(8,64)' --access 'ldmatrix.x4 @ (16,2):(64,8)'
//! ```
//!
//! Exit code 0 means that the question is answered: that no layout is conflict-free is an answer, with the best layout there is and the
//! bound. The question and its answer are [`tilewright_workbench::derivation`]'s.

use std::process::ExitCode;

use tilewright_workbench::Notation;
use tilewright_workbench::derivation::Question;

use crate::error::{Outcome, finish};
use crate::output;

/// Derive the best shared-memory layout for all accesses to a tile, with its certificate
#[derive(clap::Args)]
pub(crate) struct DeriveArgs {
    /// Print one JSON value
    #[arg(long)]
    json: bool,
    /// Rows and columns of the tile, in elements
    #[arg(long, value_name = "RxC")]
    tile: String,
    /// Element type (f16, bf16, f32, e4m3, s8, b128, …), or its bytes: 1 to 16
    #[arg(long, value_name = "TYPE")]
    elem: String,
    /// 'OP @ LAYOUT'; LAYOUT maps the lane to the row-major index of the first element it touches. Where lanes are counted the first
    /// mode fastest, as compositions and partitions count them, write `'OP @ row_major((R,C)) o LAYOUT'`
    #[arg(long = "access", value_name = "OP @ LAYOUT", required = true)]
    accesses: Vec<String>,
    /// plain, swizzle, permuted, padded, f2, rotated, tma, any
    #[arg(long, default_value = "any")]
    family: String,
    /// Write the layout once more as another library does: pycute, cute, cute-cpp, cute-dsl, triton-shared
    #[arg(long, value_name = "NAME")]
    notation: Option<String>,
}

/// Runs `derive`.
pub(crate) fn run(args: &DeriveArgs) -> ExitCode {
    finish(answer(args), args.json)
}

fn answer(args: &DeriveArgs) -> Outcome {
    let question = Question {
        tile: &args.tile,
        elem: &args.elem,
        accesses: args.accesses.iter().map(String::as_str).collect(),
        family: &args.family,
    };
    let notation = args.notation.as_deref().map(Notation::named).transpose()?;
    let answer = question.answer()?;
    let written = notation
        .map(|notation| answer.written(&notation))
        .transpose()?;
    if args.json {
        let mut value = answer.to_json();
        if let Some(written) = written {
            value["written"] = written.into();
        }
        output::print_json(&value);
    } else {
        output::print_line(&answer.text());
        if let (Some(name), Some(written)) = (&args.notation, written) {
            output::print_line(&format!("  as {name}: {written}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
