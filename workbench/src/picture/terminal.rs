//! Pictures in the terminal: a table of offsets; with `--banks` one of banks; with an access one of lanes.
//!
//! Where a panel's lanes each touch several elements of a row, the table of lanes has one column for each such vector, so that a
//! tile of 64 halves a row is 8 columns wide. Rows that no lane touches are left out. Colours are 256-colour escapes (true
//! colour if `COLORTERM` says so), and only if asked for or if standard output is a terminal and `NO_COLOR` is unset.

use std::fmt::Write as _;

use super::palette::{INK, Rgb, Tint};
use super::scene::{Cell, Kind, Panel, Scene};

/// How colours are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Not at all.
    None,
    /// 24 bits.
    True,
    /// The 6x6x6 cube of the 256.
    Cube,
}

/// `text` on this colour.
fn paint(text: &str, tint: Option<Tint>, colour: Colour) -> String {
    let Some(tint) = tint else {
        return text.to_owned();
    };
    let level = |part: u8| (u32::from(part) * 5 + 127) / 255;
    let code = |[r, g, b]: Rgb| match colour {
        Colour::True => format!("2;{r};{g};{b}"),
        _ => format!("5;{}", 16 + 36 * level(r) + 6 * level(g) + level(b)),
    };
    match colour {
        Colour::None => text.to_owned(),
        _ => format!(
            "\x1b[48;{}m\x1b[38;{}m{text}\x1b[0m",
            code(tint.rgb()),
            code(INK)
        ),
    }
}

/// A table: what stands above the columns, and lines of a label and entries.
struct Table {
    corner: String,
    columns: Vec<String>,
    lines: Vec<Line>,
}

enum Line {
    Row(String, Vec<(String, Option<Tint>)>),
    Gap(String),
}

impl Table {
    fn print(&self, out: &mut String, colour: Colour) {
        let label = |line: &Line| match line {
            Line::Row(label, _) => label.chars().count(),
            Line::Gap(_) => 0,
        };
        let left = self
            .lines
            .iter()
            .map(label)
            .max()
            .unwrap_or(0)
            .max(self.corner.chars().count());
        let entries = self.lines.iter().flat_map(|line| match line {
            Line::Row(_, entries) => entries.as_slice(),
            Line::Gap(_) => &[],
        });
        let width = entries
            .map(|(text, _)| text.chars().count())
            .chain(self.columns.iter().map(|column| column.chars().count()))
            .max()
            .unwrap_or(1);
        let mut line = format!("{:>left$} \u{2502}", self.corner);
        for column in &self.columns {
            let _ = write!(line, " {column:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
        let _ = writeln!(
            out,
            "{}\u{253c}{}",
            "\u{2500}".repeat(left + 1),
            "\u{2500}".repeat(self.columns.len() * (width + 1))
        );
        for row in &self.lines {
            match row {
                Line::Row(label, entries) => {
                    let mut line = format!("{label:>left$} \u{2502}");
                    for (text, tint) in entries {
                        line.push_str(&paint(&format!(" {text:>width$}"), *tint, colour));
                    }
                    let _ = writeln!(out, "{}", line.trim_end());
                }
                Line::Gap(text) => {
                    let _ = writeln!(out, "{:>left$} \u{2502} {text}", "\u{2026}");
                }
            }
        }
    }
}

fn labels(panel: &Panel, axis: usize) -> Vec<String> {
    let span = if axis == 0 { panel.rows } else { panel.cols };
    span.indices()
        .map(|index| panel.axes[axis].scale.saturating_mul(index).to_string())
        .collect()
}

/// A table with one entry a cell.
fn table(panel: &Panel, entry: &dyn Fn(&Cell, usize, usize) -> String) -> Table {
    let lines = labels(panel, 0)
        .into_iter()
        .enumerate()
        .map(|(row, label)| {
            let entries = (0..panel.cols.count).map(|col| match panel.cell(row, col) {
                Some(cell) => (entry(cell, row, col), cell.tint),
                None => (String::new(), None),
            });
            Line::Row(label, entries.collect())
        })
        .collect();
    Table {
        corner: String::new(),
        columns: labels(panel, 1),
        lines,
    }
}

/// The most columns that every block covers whole, from a multiple of them: 8 for `ldmatrix` on halves.
fn vector(panel: &Panel) -> usize {
    let mut step = 0;
    for row in 0..panel.rows.count {
        for (col, columns, _) in panel.runs(row) {
            if step == 0 {
                step = columns;
            }
            if columns != step || col % step != 0 {
                return 1;
            }
        }
    }
    step.max(1)
}

/// The table of lanes: `3 p0 b12`, a `!` behind who offends.
fn lane_table(panel: &Panel) -> Table {
    let step = vector(panel);
    let columns: Vec<String> = labels(panel, 1).into_iter().step_by(step).collect();
    let mut lines: Vec<Line> = Vec::new();
    let mut idle: Vec<String> = Vec::new();
    let close = |idle: &mut Vec<String>, lines: &mut Vec<Line>| {
        if let (Some(first), Some(last)) = (idle.first(), idle.last()) {
            let text = if idle.len() == 1 {
                format!("row {first}: no lane")
            } else {
                format!("rows {first} to {last}: no lane")
            };
            lines.push(Line::Gap(text));
        }
        idle.clear();
    };
    for (row, label) in labels(panel, 0).into_iter().enumerate() {
        if panel.runs(row).is_empty() {
            idle.push(label);
            continue;
        }
        close(&mut idle, &mut lines);
        let entries = (0..panel.cols.count).step_by(step).map(|col| {
            let tint = panel.cell(row, col).and_then(|cell| cell.tint);
            let text = panel.block_at(row, col).map_or(".".to_owned(), |block| {
                let short = block
                    .labels
                    .get(1)
                    .map_or(String::new(), |lines| lines.join(" "));
                format!("{short}{}", if block.offends { "!" } else { "" })
            });
            (text, tint)
        });
        lines.push(Line::Row(label, entries.collect()));
    }
    close(&mut idle, &mut lines);
    Table {
        corner: String::new(),
        columns,
        lines,
    }
}

/// The lines that stand above the tables, and below them: heading, facts, costs, notes.
pub(crate) fn summary(scene: &Scene) -> String {
    let mut out = head(scene);
    for panel in &scene.panels {
        costs(&mut out, panel);
    }
    tail(&mut out, scene);
    out
}

fn head(scene: &Scene) -> String {
    let mut out = format!("{}\n", scene.heading);
    for fact in &scene.facts {
        let _ = writeln!(out, "{fact}");
    }
    out
}

fn costs(out: &mut String, panel: &Panel) {
    if panel.verdict.is_empty() {
        return;
    }
    let title = if panel.title.is_empty() {
        String::new()
    } else {
        format!("{} ({})\n", panel.title, panel.layout)
    };
    let _ = write!(out, "\n{title}");
    for line in &panel.verdict {
        let _ = writeln!(out, "{line}");
    }
}

fn tail(out: &mut String, scene: &Scene) {
    for note in &scene.notes {
        let _ = writeln!(out, "\n{note}");
    }
}

/// The whole picture.
///
/// Under an access the offsets are left out where a line of them is longer than `width`: they are not what was asked for.
pub(crate) fn picture(scene: &Scene, colour: Colour, width: usize) -> String {
    let mut out = head(scene);
    let banks = scene.kind == Kind::Layout && scene.coloured;
    for (number, panel) in scene.panels.iter().enumerate() {
        let last = number + 1 == scene.panels.len();
        if scene.kind == Kind::Atom {
            let _ = writeln!(out, "\n{}\n{}", panel.title, panel.layout);
            let mut atoms = table(panel, &|_, row, col| {
                let block = panel.block_at(row, col);
                block.map_or(String::new(), |block| {
                    let thread = block.lanes.first().copied().unwrap_or(0);
                    let value = block.value.map_or(String::new(), |v| format!(":{}", v.0));
                    format!("T{thread}{value}")
                })
            });
            atoms.corner = format!("{}\\{}", panel.axes[0].name, panel.axes[1].name);
            if atoms.corner.len() > 8 {
                atoms.corner = String::new();
            }
            atoms.print(&mut out, colour);
            continue;
        }
        if scene.kind == Kind::Devices {
            device_table(&mut out, panel, colour);
            continue;
        }
        if panel.cost.is_some() {
            let _ = writeln!(out, "\n{}", heading_of(panel));
            lane_table(panel).print(&mut out, colour);
            for line in &panel.verdict {
                let _ = writeln!(out, "{line}");
            }
            if !last {
                continue;
            }
        } else if !last {
            // Without an access, the layout itself is what was asked for.
            continue;
        }
        let digits = panel
            .cells
            .iter()
            .flatten()
            .map(|cell| cell.offset.to_string().len());
        let line = 8 + panel.cols.count * (digits.max().unwrap_or(1) + 1);
        if panel.cost.is_some() && (line > width || panel.rows.count > 64) {
            continue;
        }
        let _ = writeln!(out, "\noffsets");
        table(panel, &|cell, _, _| cell.offset.to_string()).print(&mut out, colour);
        if banks {
            let _ = writeln!(out, "\nbanks");
            table(panel, &|cell, _, _| {
                cell.bank.map_or(String::new(), |bank| bank.to_string())
            })
            .print(&mut out, colour);
        }
    }
    tail(&mut out, scene);
    out
}

/// The devices of each cell and, below, what moves.
fn device_table(out: &mut String, panel: &Panel, colour: Colour) {
    let title = if panel.title.is_empty() {
        String::new()
    } else {
        format!("{} ({})\n", panel.title, panel.layout)
    };
    let _ = write!(out, "\n{title}");
    let devices = |_: &Cell, row: usize, col: usize| {
        let label = panel.block_at(row, col).and_then(|b| b.labels.first());
        label.map_or(String::new(), |lines| lines.join(" "))
    };
    table(panel, &devices).print(out, colour);
    for line in &panel.verdict {
        let _ = writeln!(out, "{line}");
    }
}

fn heading_of(panel: &Panel) -> String {
    if panel.title.is_empty() {
        format!("lanes in {}", panel.layout)
    } else {
        format!("lanes, {} ({})", panel.title, panel.layout)
    }
}
