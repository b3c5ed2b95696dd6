//! From a distribution to a picture: a matrix coloured by device, with the numbers of the devices in its blocks.
//!
//! A cell is an element of a small matrix. Along an axis of more than 16 rows or columns it is the largest block that no device's
//! boundary cuts: their greatest common divisor, so that an 8192×4096 matrix by rows on 4 devices is 4 cells. Heavier lines stand at that
//! divisor where cells are smaller. Elements with several holders name all, copies as `0, 1` and terms of a sum as `0 + 1`. A
//! redistribution is two panels, before and after, and below them what moves.

use tilewright::devices::{Distribution, Redistribution};

use super::input;
use super::palette::Tint;
use super::scene::{Axis, Block, Cell, Kind, LegendItem, Mark, Panel, Scene, Span, ranges};
use crate::Refusal;
use crate::calculator::devices::{Devices, distribution};
use crate::calculator::evaluate;

/// Rows or columns up to which each element is a cell.
const SMALL: u64 = 16;

/// Devices that the legend names.
const NAMED: usize = 8;

/// What to draw.
pub(crate) struct Request<'a> {
    /// A distribution, a redistribution, or the layout (device, local) -> (row, column).
    pub(crate) text: &'a str,
    /// The extents of the matrix, such as `8x6`.
    pub(crate) extents: Option<&'a str>,
    /// Rows shown.
    pub(crate) rows: Option<&'a str>,
    /// Columns shown.
    pub(crate) cols: Option<&'a str>,
    /// Cells a row and a column, unless asked for.
    pub(crate) limit: usize,
    /// Cells a row and a column at most.
    pub(crate) most: usize,
}

/// The picture of a distribution or a redistribution.
///
/// # Errors
/// A text that can't be read or is neither, extents or a window that do not fit.
pub(crate) fn scene(request: &Request) -> Result<Scene, Refusal> {
    let (of, moved) = read(request)?;
    let (panels, heading, facts) = match &moved {
        None => {
            let panel = panel(request, &of, "layout", String::new())?;
            (vec![panel], of.layout().to_string(), facts(&of))
        }
        Some(moved) => {
            let before = panel(request, moved.from(), "before", "before".to_owned())?;
            let mut after = panel(request, moved.to(), "after", "after".to_owned())?;
            after.place = (0, 1);
            after.verdict = verdict(moved);
            let heading = format!("{} -> {}", moved.from().layout(), moved.to().layout());
            (vec![before, after], heading, facts(moved.from()))
        }
    };
    let mut notes = Vec::new();
    let shown = &panels[0];
    if shown.rows.is_clipped() || shown.cols.is_clipped() {
        let range = |axis: usize, span: Span| {
            let scale = shown.axes[axis].scale;
            let end = (span.first + span.count as i64).saturating_mul(scale);
            let all = of.extents()[axis] as i64;
            format!("{}..{}", span.first * scale, end.min(all))
        };
        notes.push(format!(
            "Clipped: rows {} and columns {} of {} \u{d7} {}. --rows A..B and --cols A..B show others.",
            range(0, shown.rows),
            range(1, shown.cols),
            of.extents()[0],
            of.extents()[1]
        ));
    }
    Ok(Scene {
        kind: Kind::Devices,
        heading,
        facts,
        legend: legend(&of),
        panels,
        notes,
        elem_bytes: 0,
        coloured: true,
    })
}

/// The distribution to draw and, of a redistribution, what moves from it.
fn read(request: &Request) -> Result<(Distribution, Option<Redistribution>), Refusal> {
    let text = request.text;
    let whole = (0, text.len());
    let extents = request.extents.map(extents).transpose()?;
    let value = evaluate(text)
        .map_err(|error| Refusal::usage(error.code, error.message).at(error.span, text))?;
    if let Some(Devices::Redistribution { moved, .. }) = value.devices() {
        let own = moved.from().extents();
        if extents.is_some_and(|extents| extents != own) {
            let message = format!(
                "the redistribution is of a matrix of {}x{}; leave the extents out",
                own[0], own[1]
            );
            return Err(Refusal::usage("different_extents", message).at(whole, text));
        }
        return Ok((*moved.from(), Some(*moved.clone())));
    }
    match distribution(&value, extents) {
        Some(Ok(of)) => Ok((of, None)),
        Some(Err(error)) => Err(Refusal::new(error.code(), error.to_string()).at(whole, text)),
        None => {
            let message = format!(
                "a distribution over devices is needed here, or its layout (device, local) to (row, column), such as (2,(4,6)):(4@0,(1@0,1@1)), not {}",
                value.kind()
            );
            Err(Refusal::usage("type_mismatch", message).at(whole, text))
        }
    }
}

/// `8192x4096`.
fn extents(text: &str) -> Result<[u64; 2], Refusal> {
    let read = |text: &str| text.trim().parse::<u64>().ok().filter(|&n| n > 0);
    let pair = text
        .split_once('x')
        .and_then(|(rows, columns)| Some([read(rows)?, read(columns)?]));
    pair.ok_or_else(|| {
        let message = "expected the extents of the matrix, such as 8192x4096";
        Refusal::usage("bad_extents", message).at((0, text.len()), text)
    })
}

fn facts(of: &Distribution) -> Vec<String> {
    let [rows, columns] = of.extents();
    let devices = match of.devices() {
        1 => "1 device".to_owned(),
        n => format!("{n} devices"),
    };
    let held = match (of.copies(), of.is_sum()) {
        (1, _) => "each element on one".to_owned(),
        (copies, false) => format!("each element on {copies}"),
        (terms, true) => format!("each element a sum of terms on {terms}"),
    };
    vec![format!("{rows} \u{d7} {columns} over {devices}, {held}")]
}

/// What moves, in sentences.
fn verdict(moved: &Redistribution) -> Vec<String> {
    let mut lines = vec![match moved.pieces().len() {
        0 => moved.movement().to_string(),
        1 => format!("{}: 1 piece, {} elements", moved.movement(), moved.total()),
        pieces => format!(
            "{}: {pieces} pieces, {} elements; at most {} from one device to another",
            moved.movement(),
            moved.total(),
            moved.busiest_link()
        ),
    }];
    let certificate = moved.certificate().lines();
    let shown = certificate.len().min(NAMED);
    lines.extend_from_slice(&certificate[..shown]);
    if shown < certificate.len() {
        lines.extend(certificate.last().cloned());
    }
    lines
}

fn legend(of: &Distribution) -> Vec<LegendItem> {
    let mut items: Vec<LegendItem> = (0..of.devices().min(NAMED))
        .map(|device| LegendItem {
            mark: Mark::Fill(vec![tint(device)]),
            text: format!("{device}: {}", of.shard(device)),
        })
        .collect();
    if of.devices() > NAMED {
        items.push(LegendItem {
            mark: Mark::None,
            text: format!("and {} more", of.devices() - NAMED),
        });
    }
    items
}

fn tint(device: usize) -> Tint {
    Tint::new((device % 8) as u32, (device / 8) as u32)
}

/// One axis of the picture: elements a cell, and cells between heavier lines.
fn unit(of: &Distribution, axis: usize) -> (u64, u64) {
    let extent = of.extents()[axis];
    let mut divisor = 0;
    for device in 0..of.devices() {
        let shard = of.shard(device);
        let runs = if axis == 0 { shard.rows } else { shard.columns };
        for run in runs.iter() {
            for edge in [run.start, run.end] {
                // The end of the matrix cuts no block.
                if edge < extent {
                    divisor = gcd(divisor, edge);
                }
            }
        }
    }
    let block = if divisor == 0 { extent } else { divisor };
    if extent <= SMALL {
        (1, block)
    } else {
        (block, 1)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The cells of an axis to show.
fn span(request: &Request, asked: Option<&str>, extent: u64, unit: u64) -> Result<Span, Refusal> {
    let all = extent.div_ceil(unit) as i64;
    let Some(text) = asked else {
        return input::window(None, all, request.limit, request.most);
    };
    let most = usize::try_from(unit.saturating_mul(request.most as u64)).unwrap_or(usize::MAX);
    let elements = input::window(Some(text), extent as i64, most, most)?;
    let first = elements.first / unit as i64;
    let end = (elements.first as u64 + elements.count as u64).div_ceil(unit) as i64;
    Ok(Span {
        first,
        count: (end - first) as usize,
        all,
    })
}

fn panel(
    request: &Request,
    of: &Distribution,
    role: &str,
    title: String,
) -> Result<Panel, Refusal> {
    let [extent, width] = of.extents();
    let units = [unit(of, 0), unit(of, 1)];
    let rows = span(request, request.rows, extent, units[0].0)?;
    let cols = span(request, request.cols, width, units[1].0)?;
    let mut cells = Vec::with_capacity(rows.count * cols.count);
    let mut blocks: Vec<Block> = Vec::new();
    for row in rows.indices() {
        let mut left: Option<(Vec<usize>, usize)> = None;
        for col in cols.indices() {
            let at = [row as u64 * units[0].0, col as u64 * units[1].0];
            let holders = of.holders(at[0], at[1]);
            let block = match &left {
                Some((same, block)) if *same == holders => *block,
                _ => {
                    blocks.push(block_of(of, &holders));
                    blocks.len() - 1
                }
            };
            let first = holders.first().copied().unwrap_or(0);
            left = Some((holders, block));
            cells.push(Some(Cell {
                offset: first as i64,
                bank: None,
                tint: Some(tint(first)),
                block: Some(block),
            }));
        }
    }
    let axis = |name: &str, (unit, rule): (u64, u64)| Axis {
        name: name.to_owned(),
        scale: unit as i64,
        rule: if rule > 1 { rule as usize } else { 0 },
    };
    Ok(Panel {
        role: role.to_owned(),
        title,
        layout: of.to_string(),
        verdict: Vec::new(),
        rows,
        cols,
        axes: [axis("row", units[0]), axis("column", units[1])],
        cells,
        blocks,
        offsets: false,
        cost: None,
        place: (0, 0),
    })
}

fn block_of(of: &Distribution, holders: &[usize]) -> Block {
    let lanes: Vec<u32> = holders.iter().map(|&device| device as u32).collect();
    let list = match (of.is_sum(), lanes.as_slice()) {
        (true, [first, .., last]) if lanes.len() > 2 => format!("{first} + … + {last}"),
        (true, [first, second]) => format!("{first} + {second}"),
        _ => ranges(&lanes),
    };
    let (plural, what) = match (lanes.len(), of.is_sum()) {
        (1, _) => ("", ""),
        (_, false) => ("s", ", a copy each"),
        (_, true) => ("s", ", a term of the sum each"),
    };
    let short = lanes.first().map_or(String::new(), |first| {
        let more = if lanes.len() > 1 { "…" } else { "" };
        format!("{first}{more}")
    });
    Block {
        detail: format!("device{plural} {}{what}", ranges(&lanes)),
        labels: vec![vec![list], vec![short]],
        lanes,
        ..Block::default()
    }
}
