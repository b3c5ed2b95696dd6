//! From a layout to a picture: panels of offsets, banks and lanes.
//!
//! A layout of rank 2 is a matrix, its first mode the rows. Of a higher rank, all modes after the first are grouped into the
//! columns (first of them fastest). Of rank 1, it is one row, broken into lines of 32. The logical index that an access's layout
//! speaks of is row-major in that matrix, as for `derive`.
//!
//! *Before and after.* A swizzled layout is drawn twice: without the swizzle and with it. A plain layout under an access is
//! compared with the row-major tile of the same shape, unless it is that. `--before` chooses otherwise.

use std::fmt::Write as _;

use tilewright::banks::BankModel;
use tilewright::{Layout, Swizzle, Swizzled};

use super::input::AccessText;
use super::palette::Tint;
use super::scene::{Axis, Block, Cell, Kind, LegendItem, Mark, Panel, Scene, Span, ranges};
use super::touch::{Lanes, Touched, lanes, touch};
use crate::Refusal;

/// Columns of the lines that a layout of rank 1 is broken into.
const LINE_COLUMNS: i64 = 32;

/// What the picture before the swizzle shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// The layout without its swizzle; row-major, if it has none and an access is shown
    Auto,
    /// The row-major tile of the same shape
    RowMajor,
    /// The layout without its swizzle
    Unswizzled,
    /// Nothing
    None,
}

/// The matrix that a layout is drawn as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tile {
    rows: i64,
    cols: i64,
    size: i64,
    lines: bool,
}

impl Tile {
    /// The matrix of a layout.
    pub(crate) fn of(layout: &Layout) -> Self {
        let size = layout.size();
        match layout.get(0) {
            Ok(first) if layout.rank() > 1 => Self {
                rows: first.size(),
                cols: size / first.size(),
                size,
                lines: false,
            },
            _ => Self {
                rows: 1 + (size - 1) / LINE_COLUMNS,
                cols: size.min(LINE_COLUMNS),
                size,
                lines: true,
            },
        }
    }

    /// Elements.
    pub(crate) fn size(&self) -> i64 {
        self.size
    }

    /// Rows and columns.
    pub(crate) fn extents(&self) -> (i64, i64) {
        (self.rows, self.cols)
    }

    /// Row and column of a row-major index.
    pub(crate) fn place(&self, index: i64) -> (i64, i64) {
        (index / self.cols, index % self.cols)
    }

    /// The layout's linear coordinate of row and column, if there is an element.
    fn coordinate(&self, row: i64, col: i64) -> Option<i64> {
        if self.lines {
            Some(row * self.cols + col).filter(|&i| i < self.size)
        } else {
            Some(row + self.rows * col)
        }
    }

    /// The row-major tile of the same shape; `None` where the layout is one row, which nothing is to be compared with.
    fn row_major(&self) -> Option<Swizzled> {
        if self.lines {
            return Layout::mode(self.size, 1).ok().map(Swizzled::plain);
        }
        Layout::flat(&[self.rows, self.cols], &[self.cols, 1])
            .ok()
            .map(Swizzled::plain)
    }
}

/// What to draw.
pub(crate) struct Request<'a> {
    /// The layout.
    pub(crate) layout: Swizzled,
    /// Bytes of an element.
    pub(crate) elem_bytes: i64,
    /// The element type as the user wrote it.
    pub(crate) elem: &'a str,
    /// The memory.
    pub(crate) model: &'static BankModel,
    /// Whether to colour all cells by bank.
    pub(crate) banks: bool,
    /// The access to show.
    pub(crate) access: Option<&'a AccessText>,
    /// The picture to compare with.
    pub(crate) before: Before,
    /// Rows shown.
    pub(crate) rows: Span,
    /// Columns shown.
    pub(crate) cols: Span,
}

/// The picture of a layout.
///
/// # Errors
/// An access that does not fit the tile or the layout.
pub(crate) fn scene(request: &Request) -> Result<Scene, Refusal> {
    let tile = Tile::of(&request.layout.layout());
    let lanes = request.access.map(|text| lanes(text, &tile)).transpose()?;
    let mut notes = notes(request, &tile);
    let mut panels = Vec::new();
    if let Some((before, title)) = before(request, &tile) {
        match panel(
            request,
            &tile,
            lanes.as_ref(),
            &before,
            "before",
            title.clone(),
        ) {
            Ok((panel, _)) => panels.push(panel),
            Err((_, message)) => notes.push(format!(
                "No picture of {title} ({before}), where the access has no cost: {message}."
            )),
        }
    }
    let title = if panels.is_empty() {
        String::new()
    } else if request.layout.swizzle().is_identity() {
        "this layout".to_owned()
    } else {
        "after the swizzle".to_owned()
    };
    let (mut after, touched) = panel(
        request,
        &tile,
        lanes.as_ref(),
        &request.layout,
        "layout",
        title,
    )
    .map_err(|(code, message)| match request.access {
        Some(access) => access.refuse(code, message),
        None => Refusal::new(code, message),
    })?;
    after.place = (0, panels.len());
    notes.extend(lane_notes(request, &tile, lanes.as_ref(), touched.as_ref()));
    panels.push(after);
    Ok(Scene {
        kind: Kind::Layout,
        heading: request.layout.to_string(),
        facts: facts(request, &tile),
        legend: legend(request, &panels),
        panels,
        notes,
        elem_bytes: request.elem_bytes,
        coloured: request.banks || request.access.is_some(),
    })
}

/// The layout to compare with, and what it is.
fn before(request: &Request, tile: &Tile) -> Option<(Swizzled, String)> {
    let layout = &request.layout;
    let row_major = tile.row_major()?;
    let is_row_major = |layout: &Swizzled| {
        layout
            .as_plain()
            .is_some_and(|plain| plain.equal_as_functions(&row_major.layout()))
    };
    let inner = Swizzled::new(Swizzle::IDENTITY, layout.offset(), layout.layout()).ok()?;
    let swizzled = !layout.swizzle().is_identity();
    let chosen = match request.before {
        Before::RowMajor => row_major,
        Before::Unswizzled => inner,
        Before::Auto if swizzled => inner,
        Before::Auto if request.access.is_some() && !is_row_major(layout) => row_major,
        Before::Auto | Before::None => return None,
    };
    let title = if is_row_major(&chosen) {
        "before: row-major"
    } else if swizzled {
        "before: without the swizzle"
    } else {
        "before"
    };
    Some((chosen, title.to_owned()))
}

/// The bank of a byte.
fn bank_of(model: &BankModel, byte: i128) -> u32 {
    let word = byte.div_euclid(i128::from(model.word_bytes));
    word.rem_euclid(i128::from(model.banks)) as u32
}

/// Hue: the bank's group of 16 bytes; shade: the bank within it.
fn tint_of(model: &BankModel, bank: u32) -> Tint {
    let group = (16 / model.word_bytes).max(1);
    Tint::new(bank / group, bank % group)
}

/// A code and a message, of which the caller knows the place.
type Reason = (&'static str, String);

/// One panel: the window of one layout, with what the lanes touch.
fn panel(
    request: &Request,
    tile: &Tile,
    lanes: Option<&Lanes>,
    layout: &Swizzled,
    role: &str,
    title: String,
) -> Result<(Panel, Option<Touched>), Reason> {
    let offset = |row, col| {
        tile.coordinate(row, col)
            .map_or(0, |coordinate| layout.index(coordinate))
    };
    let touched = lanes
        .map(|lanes| touch(lanes, tile, request.model, request.elem_bytes, &offset))
        .transpose()?;
    let mut cells = Vec::with_capacity(request.rows.count * request.cols.count);
    let mut blocks: Vec<Block> = Vec::new();
    let bytes = i128::from(request.elem_bytes);
    for row in request.rows.indices() {
        // The start of the block that the cell to the left belongs to.
        let mut left: Option<i128> = None;
        for col in request.cols.indices() {
            let Some(coordinate) = tile.coordinate(row, col) else {
                cells.push(None);
                continue;
            };
            let offset = layout.index(coordinate);
            let byte = i128::from(offset) * bytes;
            let bank = bank_of(request.model, byte);
            let mut cell = Cell {
                offset,
                bank: Some(bank),
                tint: request.banks.then(|| match touched {
                    Some(_) => tint_of(request.model, bank).pale(),
                    None => tint_of(request.model, bank),
                }),
                block: None,
            };
            let hit = touched
                .as_ref()
                .and_then(|touched| Some((touched, touched.at(byte, bytes)?)));
            if let Some((touched, (start, lanes, phase))) = hit {
                if left != Some(start) {
                    blocks.push(block(request, touched, start, lanes, phase));
                }
                let first = blocks.last().and_then(|block| block.banks);
                cell.tint = first.map(|(first, _)| tint_of(request.model, first));
                cell.block = Some(blocks.len() - 1);
                left = Some(start);
            } else {
                left = None;
            }
            cells.push(Some(cell));
        }
    }
    let verdict = touched.as_ref().map_or_else(Vec::new, verdict);
    let name = if tile.lines {
        ["first index of the line", "index in the line"]
    } else {
        ["row", "column"]
    };
    let mut axes = name.map(Axis::plain);
    if tile.lines {
        axes[0].scale = tile.cols;
    }
    let panel = Panel {
        role: role.to_owned(),
        title,
        layout: layout.to_string(),
        verdict,
        rows: request.rows,
        cols: request.cols,
        axes,
        cells,
        blocks,
        offsets: true,
        cost: touched.as_ref().map(|touched| touched.cost.clone()),
        place: (0, 0),
    };
    Ok((panel, touched))
}

/// The block of the lanes that start at a byte, with what may be written on it.
fn block(request: &Request, touched: &Touched, start: i128, lanes: Vec<u32>, phase: u32) -> Block {
    let model = request.model;
    let access = request.access.map_or(4, |access| access.access.bytes());
    let first = bank_of(model, start);
    let count = (access / model.word_bytes).max(1);
    let banks = if count > 1 {
        format!("{first}\u{2013}{}", first + count - 1)
    } else {
        first.to_string()
    };
    let plural = if lanes.len() == 1 { "" } else { "s" };
    // `3`, or `3+2` for lane 3 and two more.
    let who = match lanes.as_slice() {
        [one] => one.to_string(),
        [one, more @ ..] => format!("{one}+{}", more.len()),
        [] => String::new(),
    };
    let labels = vec![
        vec![format!(
            "lane{plural} {}, phase {phase}, bank{} {banks}",
            ranges(&lanes),
            if count > 1 { "s" } else { "" }
        )],
        vec![format!("L{who} p{phase} b{first}")],
        vec![format!("L{who} p{phase}"), format!("b{first}")],
        vec![format!("L{who} p{phase}")],
        vec![format!("L{who}"), format!("p{phase}")],
        vec![format!("L{who}")],
    ];
    Block {
        labels,
        phase: Some(phase),
        banks: Some((first, count)),
        offends: touched.offends(&lanes),
        lanes,
        value: None,
        detail: String::new(),
    }
}

/// The sentences below a panel.
fn verdict(touched: &Touched) -> Vec<String> {
    let cost = &touched.cost;
    let plural = if cost.wavefronts == 1 { "" } else { "s" };
    let good = if cost.wavefronts == cost.ideal {
        "conflict-free"
    } else {
        "bank conflicts"
    };
    let mut lines = vec![format!(
        "{}: {} wavefront{plural}, ideal {}: {good}",
        cost.op, cost.wavefronts, cost.ideal
    )];
    if cost.wavefronts > cost.ideal {
        lines.extend(cost.phases.iter().map(|phase| phase.sentence.clone()));
    } else if let [one] = cost.phases.as_slice() {
        lines.push(format!("one phase (lanes {})", ranges(&one.lanes)));
    } else {
        let phases: Vec<String> = cost
            .phases
            .iter()
            .map(|phase| format!("{} (lanes {})", phase.number, ranges(&phase.lanes)))
            .collect();
        lines.push(format!("phases {}", phases.join(", ")));
    }
    lines
}

/// The facts below the heading.
fn facts(request: &Request, tile: &Tile) -> Vec<String> {
    let bytes = request.elem_bytes;
    let plural = if bytes == 1 { "" } else { "s" };
    let shape = if tile.lines {
        format!("{} elements", tile.size)
    } else {
        format!("{} \u{d7} {} elements", tile.rows, tile.cols)
    };
    let elem = if request.elem.parse::<i64>().is_ok() {
        format!("{shape} of {bytes} byte{plural}")
    } else {
        format!("{shape} of {} ({bytes} byte{plural})", request.elem)
    };
    let mut facts = vec![elem];
    if request.banks || request.access.is_some() {
        let model = request.model;
        // Writing to a String never fails.
        let _ = write!(
            facts[0],
            "; {}: {} banks of {} bytes",
            model.name, model.banks, model.word_bytes
        );
    }
    if let Some(access) = request.access {
        facts.push(format!("access: {} @ {}", access.access, access.lanes));
    }
    facts
}

/// What the reader should know about the window and the grouping.
fn notes(request: &Request, tile: &Tile) -> Vec<String> {
    let mut notes = Vec::new();
    if request.rows.is_clipped() || request.cols.is_clipped() {
        let part = |span: Span| format!("{}..{}", span.first, span.first + span.count as i64);
        notes.push(format!(
            "Clipped: rows {} and columns {} of {} \u{d7} {}. --rows A..B and --cols A..B show others.",
            part(request.rows),
            part(request.cols),
            tile.rows,
            tile.cols
        ));
    }
    let rank = request.layout.rank();
    if rank > 2 {
        notes.push(format!(
            "Rank {rank}: modes 1 to {} are grouped into the columns, mode 1 fastest.",
            rank - 1
        ));
    }
    let (least, _) = request.layout.offset_range();
    if least < 0 && (request.banks || request.access.is_some()) {
        let period = request.model.banks * request.model.word_bytes;
        notes.push(format!(
            "Offsets go down to {least}: offset 0 is taken to lie at a multiple of {period} bytes."
        ));
    }
    notes
}

/// What the reader should know about the lanes.
fn lane_notes(
    request: &Request,
    tile: &Tile,
    lanes: Option<&Lanes>,
    touched: Option<&Touched>,
) -> Vec<String> {
    let (Some(lanes), Some(touched), Some(access)) = (lanes, touched, request.access) else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    if let Some(phase) = touched.merged {
        notes.push(format!(
            "Pair rule: neighbouring lanes load the same address, so phases merge to {phase} lanes."
        ));
    }
    let active = lanes.pattern.elements[..access.access.lanes() as usize]
        .iter()
        .filter(|&&element| element >= 0);
    let shown = |span: Span, at: i64| span.indices().contains(&at);
    let outside = active
        .clone()
        .filter(|&&element| {
            let (row, col) = tile.place(element);
            !shown(request.rows, row) || !shown(request.cols, col)
        })
        .count();
    if outside > 0 {
        notes.push(format!(
            "{outside} lanes touch elements outside what is shown; they are counted."
        ));
    }
    let width = (i64::from(access.access.bytes()) / request.elem_bytes).max(1);
    let straight = active.clone().all(|&element| {
        let (row, col) = tile.place(element);
        let at = |col| tile.coordinate(row, col).map(|c| request.layout.index(c));
        let first = at(col);
        (1..width).all(|k| {
            col + k < tile.cols
                && at(col + k)
                    .zip(first)
                    .is_some_and(|(other, first)| other.checked_sub(first) == Some(k))
        })
    });
    if !straight {
        notes.push(
            "A lane's elements are those that follow in memory; in this layout they are not those that follow in the row."
                .to_owned(),
        );
    }
    notes
}

/// What colours and marks mean.
fn legend(request: &Request, panels: &[Panel]) -> Vec<LegendItem> {
    if !request.banks && request.access.is_none() {
        return Vec::new();
    }
    let model = request.model;
    let per_group = (16 / model.word_bytes).max(1);
    let item = |mark, text: &str| LegendItem {
        mark,
        text: text.to_owned(),
    };
    let width = request
        .access
        .map_or(0, |access| access.access.bytes() / model.word_bytes);
    let shades = if width >= per_group { 1 } else { per_group };
    let mut items = Vec::new();
    for group in 0..model.banks / per_group {
        let first = group * per_group;
        let tints = (0..shades).map(|shade| tint_of(model, first + shade));
        let text = match per_group {
            1 => format!("bank {first}"),
            n => format!("banks {first}\u{2013}{}", first + n - 1),
        };
        items.push(LegendItem {
            mark: Mark::Fill(tints.collect()),
            text,
        });
    }
    let Some(cost) = panels.last().and_then(|panel| panel.cost.as_ref()) else {
        return items;
    };
    if request.banks {
        items.push(item(
            Mark::Fill((0..4).map(|hue| Tint::new(hue, 0).pale()).collect()),
            "pale: touched by no lane",
        ));
    } else {
        items.push(item(Mark::Idle, "touched by no lane"));
    }
    for phase in &cost.phases {
        items.push(item(
            Mark::Bar(phase.number),
            &format!("phase {}", phase.number),
        ));
    }
    if panels
        .iter()
        .any(|panel| panel.blocks.iter().any(|block| block.offends))
    {
        items.push(item(
            Mark::Thick,
            "asks the busiest bank of a phase that conflicts",
        ));
    }
    items.push(item(
        Mark::None,
        "L3 p0 b12: lane 3, phase 0, first bank 12; L3+2: lane 3 and two more",
    ));
    items
}
