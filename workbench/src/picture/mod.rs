//! Pictures of layouts and of instructions.
//!
//! One [`Scene`] is built from the texts of a question ([`Question`] for layouts, [`AtomQuestion`] for instructions,
//! [`DevicesQuestion`] for matrices over devices); the terminal, SVG, HTML
//! and JSON writers read the scene and nothing else, so that they can't disagree. The element width matters to banks only and is 4 bytes
//! (`f32`) unless the question says otherwise; under `ldmatrix` and `stmatrix`, which move halves, it is 2 (`f16`).
//!
//! ```
//! use tilewright_workbench::picture::Question;
//!
//! let scene = Question {
//!     access: Some("ldmatrix.x4 @ (16,2):(64,8)"),
//!     ..Question::of("Sw<3,3,3> o (64,64):(64,1)")
//! }
//! .scene()?;
//! let data = scene.to_json();
//! assert_eq!(data["panels"][1]["access"]["wavefronts"], 4);
//! assert!(scene.svg().starts_with("<svg"));
//! # Ok::<(), tilewright_workbench::Refusal>(())
//! ```

mod canvas;
mod data;
mod devices;
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

use serde_json::Value;
use tilewright::Swizzled;
use tilewright::banks::{BankModel, MODELS, model_named};

use crate::Refusal;
pub use scene::Scene;
pub use terminal::Colour;
pub use tile::Before;
use tile::Tile;

/// Rows and columns of a picture, unless a window is asked for.
const LIMIT: usize = 128;
/// Rows and columns of a picture at most.
const MOST: usize = 256;
/// Rows of a table in the terminal, unless a window is asked for.
const TERMINAL_ROWS: usize = 64;

/// A layout to be drawn, as text.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The layout: the notation, or any expression of the calculator. Its first mode is the rows, all others are the columns.
    pub layout: &'a str,
    /// Whether to colour elements by bank.
    pub banks: bool,
    /// A warp access `OP @ LAYOUT`; LAYOUT maps the lane to the row-major index of its first element.
    pub access: Option<&'a str>,
    /// Element type, or bytes.
    pub elem: Option<&'a str>,
    /// The name of the memory's bank model.
    pub model: &'a str,
    /// What to compare with.
    pub before: Before,
    /// Rows shown, `A..B`.
    pub rows: Option<&'a str>,
    /// Columns shown, `A..B`.
    pub cols: Option<&'a str>,
    /// The letters of a line, for a picture in a terminal, which shows less than a file.
    pub terminal: Option<usize>,
}

impl<'a> Question<'a> {
    /// The question of the layout alone, in NVIDIA's shared memory.
    #[must_use]
    pub fn of(layout: &'a str) -> Self {
        Self {
            layout,
            banks: false,
            access: None,
            elem: None,
            model: "nvidia",
            before: Before::Auto,
            rows: None,
            cols: None,
            terminal: None,
        }
    }

    /// The picture.
    ///
    /// # Errors
    ///
    /// A text that can't be read, an access that does not fit the tile or the layout, a window outside it.
    pub fn scene(&self) -> Result<Scene, Refusal> {
        let layout = input::layout(self.layout)?;
        let access = self.access.map(input::access).transpose()?;
        let halves = access
            .as_ref()
            .is_some_and(|access| access.access.matrices().is_some());
        let elem = match self.elem {
            Some(elem) => elem.trim(),
            None if halves => "f16",
            None => "f32",
        };
        let elem_bytes = input::element_bytes(elem)?;
        let model = memory(self.model)?;
        let (rows, cols) = Tile::of(&layout.layout()).extents();
        let limits = match self.terminal {
            Some(letters) if access.is_none() => {
                (TERMINAL_ROWS, terminal_columns(&layout, letters))
            }
            _ => (LIMIT, LIMIT),
        };
        let shown_rows = input::window(self.rows, rows, limits.0, MOST)?;
        let shown_cols = input::window(self.cols, cols, limits.1, MOST)?;
        tile::scene(&tile::Request {
            layout,
            elem_bytes,
            elem,
            model,
            banks: self.banks,
            access: access.as_ref(),
            before: self.before,
            rows: shown_rows,
            cols: shown_cols,
        })
    }
}

/// An instruction to be drawn, by name.
#[derive(Clone, Debug)]
pub struct AtomQuestion<'a> {
    /// Its name, such as `mma.m16n8k16.f16`.
    pub name: &'a str,
    /// Which operand; all without.
    pub operand: Option<&'a str>,
    /// Rows shown, `A..B`.
    pub rows: Option<&'a str>,
    /// Columns shown, `A..B`.
    pub cols: Option<&'a str>,
    /// Whether for a terminal, which shows less than a file.
    pub terminal: bool,
}

impl<'a> AtomQuestion<'a> {
    /// The question of all operands.
    #[must_use]
    pub fn of(name: &'a str) -> Self {
        Self {
            name,
            operand: None,
            rows: None,
            cols: None,
            terminal: false,
        }
    }

    /// The picture.
    ///
    /// # Errors
    ///
    /// An unknown name, an operand that the instruction does not have, a window outside it.
    ///
    /// ```
    /// use tilewright_workbench::picture::AtomQuestion;
    ///
    /// let scene = AtomQuestion::of("mma.m16n8k16.f16").scene()?;
    /// assert!(scene.svg().contains("T0"));
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn scene(&self) -> Result<Scene, Refusal> {
        let limit = if self.terminal { TERMINAL_ROWS } else { MOST };
        fragment::scene(&fragment::Request {
            name: self.name,
            operand: self.operand,
            rows: self.rows,
            cols: self.cols,
            limit,
            most: MOST,
        })
    }
}

/// A matrix over several devices to be drawn, as text.
#[derive(Clone, Debug)]
pub struct DevicesQuestion<'a> {
    /// The layout (device, local) to (row, column), or an expression of the calculator: a distribution or a redistribution.
    pub text: &'a str,
    /// The extents of the matrix, `8192x4096`; without, all that the layout covers.
    pub extents: Option<&'a str>,
    /// Rows shown, `A..B`.
    pub rows: Option<&'a str>,
    /// Columns shown, `A..B`.
    pub cols: Option<&'a str>,
    /// Whether for a terminal, which shows less than a file.
    pub terminal: bool,
}

impl<'a> DevicesQuestion<'a> {
    /// The question of the whole matrix.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self {
            text,
            extents: None,
            rows: None,
            cols: None,
            terminal: false,
        }
    }

    /// The picture.
    ///
    /// # Errors
    ///
    /// The text can't be read, the layout is not a distribution, or the extents or the window do not fit.
    ///
    /// ```
    /// use tilewright_workbench::picture::DevicesQuestion;
    ///
    /// let scene = DevicesQuestion::of("row_shards((8192,4096), 4)").scene()?;
    /// let data = scene.to_json();
    /// assert_eq!(data["panels"][0]["unit"], serde_json::json!([2048, 4096]));
    /// assert_eq!(data["panels"][0]["cells"][3]["devices"], serde_json::json!([3]));
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn scene(&self) -> Result<Scene, Refusal> {
        let limit = if self.terminal { TERMINAL_ROWS } else { LIMIT };
        devices::scene(&devices::Request {
            text: self.text,
            extents: self.extents,
            rows: self.rows,
            cols: self.cols,
            limit,
            most: MOST,
        })
    }
}

impl Scene {
    /// One SVG document, self-contained.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::svg(self)
    }

    /// One HTML page, self-contained, with a script for pointer, phase and before/after.
    #[must_use]
    pub fn page(&self) -> String {
        html::page(self)
    }

    /// The picture with its style for the shadow root of another page, which calls `attachPicture(root)` of `page.js`
    /// for it.
    #[must_use]
    pub fn shadow(&self) -> String {
        html::shadow(self)
    }

    /// The cells and costs, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        data::to_json(self)
    }

    /// Tables for a terminal of so many letters a line.
    #[must_use]
    pub fn table(&self, colour: Colour, letters: usize) -> String {
        terminal::picture(self, colour, letters)
    }

    /// What stands above and below the picture: heading, facts, costs and notes.
    #[must_use]
    pub fn summary(&self) -> String {
        terminal::summary(self)
    }
}

/// The names of all instructions that have a picture, every N of `wgmma` and `tcgen05.mma` included.
///
/// ```
/// let names = tilewright_workbench::picture::atoms();
/// assert!(names.iter().any(|name| name == "ldmatrix.x4"));
/// assert!(names.iter().any(|name| name == "wgmma.m64n128k16.bf16.f32"));
/// ```
#[must_use]
pub fn atoms() -> Vec<String> {
    crate::calculator::instructions::names()
}

/// A banked memory by name; register files have no layouts to draw.
fn memory(name: &str) -> Result<&'static BankModel, Refusal> {
    model_named(name)
        .filter(|model| !model.registers)
        .ok_or_else(|| {
            let known: Vec<&str> = MODELS
                .iter()
                .filter(|model| !model.registers)
                .map(|model| model.name)
                .collect();
            let message = format!(
                "there is no model `{name}` of a banked memory; known are {}",
                known.join(", ")
            );
            Refusal::usage("unknown_model", message).at((0, name.len()), name)
        })
}

/// How many columns of offsets fit into a line of the terminal.
fn terminal_columns(layout: &Swizzled, letters: usize) -> usize {
    let (least, most) = layout.offset_range();
    let digits = least.to_string().len().max(most.to_string().len());
    let room = letters.saturating_sub(8) / (digits + 1);
    // A multiple of 8, so that no vector is cut.
    if room >= 8 { room / 8 * 8 } else { room.max(1) }
}
