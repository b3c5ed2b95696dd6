//! `tilewright show`: pictures of layouts and of instructions, from [`tilewright_workbench::picture`], in the terminal or as files.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;
use tilewright_workbench::picture::{self, AtomQuestion, Colour, DevicesQuestion, Question};

use crate::error::{CliError, Outcome, finish};
use crate::output;

/// Columns of a terminal that does not say how wide it is.
const TERMINAL_WIDTH: usize = 160;

/// Draw a layout, the lanes of an access to it, a matrix over devices, or the thread-value map of an instruction
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tilewright show '(8,8):(8,1)'
  tilewright show 'Sw<3,3,3> o (64,64):(64,1)' --banks --elem f16 --svg tile.svg
  tilewright show 'Sw<3,3,3> o (64,64):(64,1)' --access 'ldmatrix.x4 @ (16,2):(64,8)' --html tile.html
  tilewright show '(2,(4,6)):(4@0,(1@0,1@1))' --devices
  tilewright show 'redistribute(row_shards((8,6),2), column_shards((8,6),2))' --devices --svg moved.svg
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
    /// Draw which device holds which element: the layout maps (device, local) to (row, column), or is a distribution or redistribution of `eval`; `MxN` are the extents (default: all that it covers)
    #[arg(
        long,
        value_name = "MxN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["atom", "banks", "access", "elem"]
    )]
    devices: Option<String>,
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

/// What the picture before the swizzle shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Before {
    /// The layout without its swizzle; row-major, if it has none and an access is shown
    Auto,
    /// The row-major tile of the same shape
    RowMajor,
    /// The layout without its swizzle
    Unswizzled,
    /// Nothing
    None,
}

impl From<Before> for picture::Before {
    fn from(before: Before) -> Self {
        match before {
            Before::Auto => Self::Auto,
            Before::RowMajor => Self::RowMajor,
            Before::Unswizzled => Self::Unswizzled,
            Before::None => Self::None,
        }
    }
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
    let drawn = args.svg.is_some() || args.html.is_some();
    if args.atom.as_deref() == Some("list") {
        list(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    // The terminal shows less than a file does.
    let narrow = !drawn && !args.json;
    let scene = if let Some(name) = &args.atom {
        AtomQuestion {
            operand: args.operand.as_deref(),
            rows: args.rows.as_deref(),
            cols: args.cols.as_deref(),
            terminal: narrow,
            ..AtomQuestion::of(name)
        }
        .scene()?
    } else if let Some(extents) = &args.devices {
        DevicesQuestion {
            extents: Some(extents.as_str()).filter(|text| !text.is_empty()),
            rows: args.rows.as_deref(),
            cols: args.cols.as_deref(),
            terminal: narrow,
            ..DevicesQuestion::of(args.layout.as_deref().unwrap_or_default())
        }
        .scene()?
    } else {
        Question {
            banks: args.banks,
            access: args.access.as_deref(),
            elem: args.elem.as_deref(),
            model: &args.model,
            before: args.before.into(),
            rows: args.rows.as_deref(),
            cols: args.cols.as_deref(),
            terminal: narrow.then(terminal_width),
            ..Question::of(args.layout.as_deref().unwrap_or_default())
        }
        .scene()?
    };
    let svg = args.svg.as_deref().map(|path| (path, scene.svg()));
    let html = args.html.as_deref().map(|path| (path, scene.page()));
    write(svg.iter().chain(&html))?;
    if args.json {
        let mut value = scene.to_json();
        let name = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        value["svg"] = json!(name(&args.svg));
        value["html"] = json!(name(&args.html));
        output::print_json(&value);
    } else if drawn {
        output::print_line(scene.summary().trim_end());
    } else {
        output::print_line(scene.table(colour(args.color), terminal_width()).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Names every instruction that has a picture.
fn list(as_json: bool) {
    let names = picture::atoms();
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

/// Letters of a line of the terminal.
fn terminal_width() -> usize {
    std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(TERMINAL_WIDTH)
        .max(20)
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
