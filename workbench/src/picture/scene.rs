//! The model of a picture: what is drawn, before anything says how.
//!
//! A [`Scene`] is a few [`Panel`]s (the tile before and after the swizzle; the operands of an instruction) with a heading, a
//! legend and notes. A panel is a window of a matrix of [`Cell`]s. Cells next to each other in a row that belong together (the
//! 8 halves that one lane of `ldmatrix` reads) share a [`Block`], which carries the label. The terminal, SVG, HTML and JSON
//! writers all read this and nothing else, so that they can't disagree.
//!
//! Worked example: `ldmatrix.x4` on a 64x64 tile of halves is two panels of 64x64 cells; each lane is one block of 8 cells with
//! the labels `lane 3, phase 0, banks 12-15`, `L3 p0 b12`, `L3 p0`, …, of which the drawing takes the longest that fits.

use super::palette::Tint;

/// A part of an axis: `first`, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    /// The first index shown.
    pub(crate) first: i64,
    /// How many are shown.
    pub(crate) count: usize,
    /// How many there are.
    pub(crate) all: i64,
}

impl Span {
    /// Whether something is left out.
    pub(crate) fn is_clipped(self) -> bool {
        self.first > 0 || self.first + (self.count as i64) < self.all
    }

    /// The indices shown.
    pub(crate) fn indices(self) -> std::ops::Range<i64> {
        self.first..self.first + self.count as i64
    }
}

/// An axis: its name, and what its index is counted in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Axis {
    /// What is written beside it.
    pub(crate) name: String,
    /// The label of index `i` is `scale * i`.
    pub(crate) scale: i64,
    /// A heavier line every so many indices; 0 for none.
    pub(crate) rule: usize,
}

impl Axis {
    /// An axis of plain indices.
    pub(crate) fn plain(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scale: 1,
            rule: 0,
        }
    }
}

/// One element of the matrix.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cell {
    /// Its offset in elements (layouts), or its number in the block that an instruction moves (atoms).
    pub(crate) offset: i64,
    /// The bank of its first byte, for layouts.
    pub(crate) bank: Option<u32>,
    /// Its colour.
    pub(crate) tint: Option<Tint>,
    /// The block it belongs to: an index into [`Panel::blocks`].
    pub(crate) block: Option<usize>,
}

/// Cells of one row, next to each other, that belong together.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Block {
    /// What may be written on it, most telling first; each a list of lines.
    pub(crate) labels: Vec<Vec<String>>,
    /// The lanes (threads, for atoms) that touch it, in order.
    pub(crate) lanes: Vec<u32>,
    /// The phase of those lanes.
    pub(crate) phase: Option<u32>,
    /// The banks it asks: the first, and how many follow.
    pub(crate) banks: Option<(u32, u32)>,
    /// Whether it asks the busiest bank of a phase that conflicts.
    pub(crate) offends: bool,
    /// The number of the value in its thread's fragment, and the register that holds it.
    pub(crate) value: Option<(u32, u32)>,
    /// What the pointer shows besides.
    pub(crate) detail: String,
}

/// What an access costs in one layout.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cost {
    /// The access's name.
    pub(crate) op: String,
    /// Wavefronts of the whole access.
    pub(crate) wavefronts: u32,
    /// What it would cost without conflicts.
    pub(crate) ideal: u32,
    /// Its phases.
    pub(crate) phases: Vec<PhaseCost>,
}

/// What one phase costs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PhaseCost {
    /// Its number, after merging by the pair rule.
    pub(crate) number: u32,
    /// The active lanes.
    pub(crate) lanes: Vec<u32>,
    /// Wavefronts.
    pub(crate) wavefronts: u32,
    /// What it would cost without conflicts.
    pub(crate) ideal: u32,
    /// The busiest bank.
    pub(crate) bank: u32,
    /// The words asked of that bank, each with the lanes that ask for it and the (row, column) of the first of them.
    pub(crate) words: Vec<Word>,
    /// The phase in one sentence.
    pub(crate) sentence: String,
}

/// One word that a bank is asked for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Word {
    /// Its number in memory: byte address over the bank's width.
    pub(crate) number: i64,
    /// Who asks.
    pub(crate) lanes: Vec<u32>,
    /// The row and column of the element at which the first of those lanes starts.
    pub(crate) at: (i64, i64),
}

/// A matrix of cells.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Panel {
    /// A short name for programs: `before`, `layout`, `A`, `src`, …
    pub(crate) role: String,
    /// What it is, for people.
    pub(crate) title: String,
    /// The layout drawn.
    pub(crate) layout: String,
    /// Below the picture: what it costs and who is to blame.
    pub(crate) verdict: Vec<String>,
    /// The rows and columns shown.
    pub(crate) rows: Span,
    /// The columns shown.
    pub(crate) cols: Span,
    /// The axes, rows first.
    pub(crate) axes: [Axis; 2],
    /// The cells of the window, row by row; `None` where the matrix has no element.
    pub(crate) cells: Vec<Option<Cell>>,
    /// What the cells' `block` stands for.
    pub(crate) blocks: Vec<Block>,
    /// Whether the offsets are to be written into the cells.
    pub(crate) offsets: bool,
    /// What the access costs here, if one was given and has a cost here.
    pub(crate) cost: Option<Cost>,
    /// Place in a grid of panels: row, column.
    pub(crate) place: (usize, usize),
}

impl Panel {
    /// The cell at a row and column of the window.
    pub(crate) fn cell(&self, row: usize, col: usize) -> Option<&Cell> {
        self.cells[row * self.cols.count + col].as_ref()
    }

    /// The block of a row and column of the window.
    pub(crate) fn block_at(&self, row: usize, col: usize) -> Option<&Block> {
        self.cell(row, col)?.block.map(|block| &self.blocks[block])
    }

    /// Runs of one row: first column, columns, block; only cells with a block.
    pub(crate) fn runs(&self, row: usize) -> Vec<(usize, usize, &Block)> {
        let mut runs: Vec<(usize, usize, usize)> = Vec::new();
        for col in 0..self.cols.count {
            let Some(block) = self.cell(row, col).and_then(|cell| cell.block) else {
                continue;
            };
            match runs.last_mut() {
                Some((first, count, last)) if *last == block && *first + *count == col => {
                    *count += 1;
                }
                _ => runs.push((col, 1, block)),
            }
        }
        runs.into_iter()
            .map(|(first, count, block)| (first, count, &self.blocks[block]))
            .collect()
    }
}

/// What a colour, bar or border means.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LegendItem {
    /// What it looks like.
    pub(crate) mark: Mark,
    /// What it means.
    pub(crate) text: String,
}

/// What a legend item looks like.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Mark {
    /// Squares of these colours.
    Fill(Vec<Tint>),
    /// A cell that nobody touches.
    Idle,
    /// The bar of a phase.
    Bar(u32),
    /// A thick border.
    Thick,
    /// Nothing: text only.
    None,
}

/// What the picture is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A layout.
    Layout,
    /// An instruction.
    Atom,
    /// A matrix over several devices, whose blocks' lanes are devices.
    Devices,
}

impl Kind {
    /// Its name for programs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Layout => "layout",
            Self::Atom => "atom",
            Self::Devices => "devices",
        }
    }
}

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Scene {
    /// What it is of.
    pub(crate) kind: Kind,
    /// The layout or the instruction, as text.
    pub(crate) heading: String,
    /// The facts below the heading.
    pub(crate) facts: Vec<String>,
    /// The matrices.
    pub(crate) panels: Vec<Panel>,
    /// What colours and marks mean.
    pub(crate) legend: Vec<LegendItem>,
    /// What the reader should know besides: clipping, grouping, shifts.
    pub(crate) notes: Vec<String>,
    /// Bytes of an element.
    pub(crate) elem_bytes: i64,
    /// Whether cells are coloured by bank or lane.
    pub(crate) coloured: bool,
}

/// `0-7, 9`: numbers in rising order as ranges.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut out: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match out.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => out.push((n, n)),
        }
    }
    let texts: Vec<String> = out
        .into_iter()
        .map(|(a, b)| match b - a {
            0 => a.to_string(),
            1 => format!("{a}, {b}"),
            _ => format!("{a}\u{2013}{b}"),
        })
        .collect();
    texts.join(", ")
}
