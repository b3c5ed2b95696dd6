//! `tilewright show`: pictures of layouts and of instructions.
//!
//! One [`scene::Scene`] is built from the arguments ([`tile`] for layouts, [`fragment`] for instructions); [`terminal`], [`svg`],
//! [`html`] and [`data`] write it. The element width matters to banks only and is 4 bytes (`f32`) unless `--elem` says otherwise;
//! under `ldmatrix` and `stmatrix`, which move halves, it is 2 (`f16`).

mod canvas;
mod data;
mod fit;
mod fragment;
mod html;
mod input;
mod legend;
mod names;
mod operands;
mod palette;
mod scene;
mod svg;
mod terminal;
mod tile;
mod touch;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright::Swizzled;
use tilewright::banks::{BankModel, MODELS, model_named};

use crate::error::{CliError, Outcome, finish};
use crate::output;
use scene::Scene;
use terminal::Colour;
use tile::{Before, Tile};

/// Rows and columns of a picture, unless a window is asked for.
const LIMIT: usize = 128;
/// Rows and columns of a picture at most.
const MOST: usize = 256;
/// Rows of a table in the terminal, unless a window is asked for.
const TERMINAL_ROWS: usize = 64;
/// Columns of a terminal that does not say how wide it is.
const TERMINAL_WIDTH: usize = 160;

/// Draw a layout, the lanes of an access to it, or the thread-value map of an instruction
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tilewright show '(8,8):(8,1)'
  tilewright show 'Sw<3,3,3> o (64,64):(64,1)' --banks --elem f16 --svg tile.svg
  tilewright show 'Sw<3,3,3> o (64,64):(64,1)' --access 'ldmatrix.x4 @ (16,2):(64,8)' --html tile.html
  tilewright show --atom mma.m16n8k16.f16 --svg mma.svg
  tilewright show --atom wgmma.m64n64k16.bf16 --operand D
  tilewright show --atom mma.sp.m16n8k32.f16 --svg sparse.svg
  tilewright show --atom list")]
pub(crate) struct ShowArgs {
    /// The layout, such as 'Sw<3,3,3> o (64,64):(64,1)': rows are its first mode, columns all others
    #[arg(required_unless_present = "atom", conflicts_with = "atom")]
    layout: Option<String>,
    /// Draw an instruction: ldmatrix.x4, mma.m16n8k16.f16, wgmma.m64n128k16.bf16, …; `list` names all
    #[arg(long, value_name = "NAME")]
    atom: Option<String>,
    /// Which operand of the instruction: A, B, C, D, E (metadata), src, dst, tmem (default: all)
    #[arg(
        long,
        value_name = "NAME",
        requires = "atom",
        conflicts_with = "layout"
    )]
    operand: Option<String>,
    /// Colour elements by bank
    #[arg(long, conflicts_with = "atom")]
    banks: bool,
    /// Show the lanes of a warp access 'OP @ LAYOUT'; LAYOUT maps the lane to the row-major index of its first element
    #[arg(long, value_name = "OP @ LAYOUT", conflicts_with = "atom")]
    access: Option<String>,
    /// Element type or bytes (default: f32; f16 under ldmatrix and stmatrix)
    #[arg(long, value_name = "TYPE", conflicts_with = "atom")]
    elem: Option<String>,
    /// The memory: nvidia, amd-gcn, amd-r700
    #[arg(long, default_value = "nvidia", conflicts_with = "atom")]
    model: String,
    /// The picture to compare with
    #[arg(long, value_enum, default_value_t = Before::Auto, conflicts_with = "atom")]
    before: Before,
    /// Rows to show, the end not included
    #[arg(long, value_name = "A..B")]
    rows: Option<String>,
    /// Columns to show, the end not included
    #[arg(long, value_name = "A..B")]
    cols: Option<String>,
    /// Write the picture as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the picture as one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Colours in the terminal
    #[arg(long, value_enum, default_value_t = When::Auto)]
    color: When,
    /// Print one JSON value: the cells of the picture
    #[arg(long)]
    json: bool,
}

/// Whether to write colours to the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum When {
    /// If standard output is a terminal and `NO_COLOR` is unset
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Runs `show`.
pub(crate) fn run(args: &ShowArgs) -> ExitCode {
    finish(show(args), args.json)
}

fn show(args: &ShowArgs) -> Outcome {
    if args.svg.is_some() && args.svg == args.html {
        return Err(CliError::usage(
            "same_file",
            "--svg and --html name the same file",
        ));
    }
    let drawn = args.svg.is_some() || args.html.is_some();
    if args.atom.as_deref() == Some("list") {
        list(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    // The terminal shows less than a file does.
    let narrow = !drawn && !args.json;
    let scene = if let Some(name) = &args.atom {
        let limit = if narrow { TERMINAL_ROWS } else { MOST };
        fragment::scene(&fragment::Request {
            name,
            operand: args.operand.as_deref(),
            rows: args.rows.as_deref(),
            cols: args.cols.as_deref(),
            limit,
            most: MOST,
        })?
    } else {
        layout_scene(args, narrow)?
    };
    let svg = args.svg.as_deref().map(|path| (path, svg::svg(&scene)));
    let html = args.html.as_deref().map(|path| (path, html::page(&scene)));
    write(svg.iter().chain(&html))?;
    if args.json {
        let mut value = data::to_json(&scene);
        let name = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        value["svg"] = json!(name(&args.svg));
        value["html"] = json!(name(&args.html));
        output::print_json(&value);
    } else if drawn {
        output::print_line(terminal::summary(&scene).trim_end());
    } else {
        output::print_line(
            terminal::picture(&scene, colour(args.color), terminal_width()).trim_end(),
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Names every instruction that has a picture, apart from those of any N.
fn list(as_json: bool) {
    let names: Vec<String> = names::all().into_iter().map(|one| one.name).collect();
    if as_json {
        output::print_json(&json!({"atoms": names}));
    } else {
        output::print_line(&names.join("\n"));
    }
}

/// Writes all pictures or none.
fn write<'a>(pictures: impl Iterator<Item = &'a (&'a Path, String)>) -> Result<(), CliError> {
    let files: Vec<_> = pictures
        .map(|(path, text)| (*path, text.as_bytes()))
        .collect();
    output::write_together(&files)?;
    for (path, _) in files {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

fn layout_scene(args: &ShowArgs, narrow: bool) -> Result<Scene, CliError> {
    let text = args.layout.as_deref().unwrap_or_default();
    let layout = input::layout(text)?;
    let access = args.access.as_deref().map(input::access).transpose()?;
    let halves = access
        .as_ref()
        .is_some_and(|access| access.access.matrices().is_some());
    let elem = match &args.elem {
        Some(elem) => elem.trim(),
        None if halves => "f16",
        None => "f32",
    };
    let elem_bytes = input::element_bytes(elem)?;
    let model = memory(&args.model)?;
    let (rows, cols) = Tile::of(&layout.layout()).extents();
    let limits = if narrow && access.is_none() {
        (TERMINAL_ROWS, terminal_columns(&layout))
    } else {
        (LIMIT, LIMIT)
    };
    let shown_rows = input::window(args.rows.as_deref(), rows, limits.0, MOST)?;
    let shown_cols = input::window(args.cols.as_deref(), cols, limits.1, MOST)?;
    tile::scene(&tile::Request {
        layout,
        elem_bytes,
        elem,
        model,
        banks: args.banks,
        access: access.as_ref(),
        before: args.before,
        rows: shown_rows,
        cols: shown_cols,
    })
}

/// A banked memory by name; register files have no layouts to draw.
fn memory(name: &str) -> Result<&'static BankModel, CliError> {
    model_named(name)
        .filter(|model| !model.registers)
        .ok_or_else(|| {
            let known: Vec<&str> = MODELS
                .iter()
                .filter(|model| !model.registers)
                .map(|model| model.name)
                .collect();
            let message = format!("no such memory; one of {}", known.join(", "));
            CliError::usage("unknown_model", message).at((0, name.len()), name)
        })
}

/// Letters of a line of the terminal.
fn terminal_width() -> usize {
    std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(TERMINAL_WIDTH)
        .max(20)
}

/// How many columns of offsets fit into a line of the terminal.
fn terminal_columns(layout: &Swizzled) -> usize {
    let (least, most) = layout.offset_range();
    let digits = least.to_string().len().max(most.to_string().len());
    let room = terminal_width().saturating_sub(8) / (digits + 1);
    // A multiple of 8, so that no vector is cut.
    if room >= 8 { room / 8 * 8 } else { room.max(1) }
}

fn colour(when: When) -> Colour {
    let wanted = match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            std::io::stdout().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    };
    let full = std::env::var("COLORTERM").is_ok_and(|kind| kind == "truecolor" || kind == "24bit");
    match (wanted, full) {
        (false, _) => Colour::None,
        (true, true) => Colour::True,
        (true, false) => Colour::Cube,
    }
}
