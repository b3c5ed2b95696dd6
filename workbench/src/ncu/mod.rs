//! A profiler's report beside the model: which access to shared memory costs too much, and which layout mends it.
//!
//! Nsight Compute counts for every instruction the wavefronts that it took and those that it would take without conflicts ("ideal"). Both
//! come from the addresses of its lanes, as the model's do, so that a line of a report and an access in a layout can be compared number by
//! number. The question is a report as CSV, and what the kernel's author knows: the tile, its layout and the accesses to it.
//!
//! ```text
//! line 21  LDS R4, [R3]   32768 executed, 1048576 wavefronts, 32768 ideal: 32 each where 1 would do
//!          ld.32 @ 32:32 takes 32 in (32,32):(32,1): the model agrees
//!          with Sw<5,0,5> o (32,32):(32,1) it takes 1
//! ```
//!
//! A line belongs to an access if its operation is the same, and among those to the one that takes as many wavefronts in the layout as the
//! report counts.

mod csv;
mod instruction;
mod table;

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::Swizzled;
use tilewright::derive::{Derivation, Pattern, Tile, derive_layout, recount};

use crate::Refusal;
use crate::derivation;
use table::{Kernel, Line};

/// Wavefronts beyond the ideal that count as none: rounding in a report's averages.
const SLACK: f64 = 0.005;

/// A report, and what is known of the kernel.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The report's CSV.
    pub report: &'a str,
    /// The tile and the accesses to it, where they are known.
    pub model: Option<Model<'a>>,
    /// A part of the names of the kernels to look at; all of them without.
    pub kernel: Option<&'a str>,
}

/// A tile of shared memory and the accesses to it.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    /// Rows and columns, `64x32`; the layout's own if there is none.
    pub tile: Option<&'a str>,
    /// The layout, from (row, column) to the element; row-major if there is none.
    pub layout: Option<&'a str>,
    /// Element type, or its bytes.
    pub elem: &'a str,
    /// `OP @ LAYOUT` each, as `derive` takes them.
    pub accesses: Vec<&'a str>,
}

/// The kernels of a report, compared with the model.
#[derive(Clone, Debug)]
pub struct Answer {
    kernels: Vec<Kernel>,
    model: Option<Counted>,
}

/// The model's side.
#[derive(Clone, Debug)]
pub struct Counted {
    tile: Tile,
    elem: String,
    layout: Swizzled,
    texts: Vec<String>,
    patterns: Vec<Pattern>,
    /// Wavefronts and ideal of each access in the layout.
    costs: Vec<(u32, u32)>,
    best: Option<Derivation>,
}

impl Model<'_> {
    /// The wavefronts of every access in the layout, and the best layout for all of them.
    ///
    /// # Errors
    ///
    /// A text that can't be read, a tile without a shape, accesses outside it.
    ///
    /// ```
    /// use tilewright_workbench::ncu::Model;
    ///
    /// let model = Model {
    ///     tile: Some("32x32"),
    ///     layout: None,
    ///     elem: "f32",
    ///     accesses: vec!["ld.32 @ 32:32"],
    /// };
    /// assert_eq!(model.count()?.to_json()[0]["wavefronts"], 32);
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn count(&self) -> Result<Counted, Refusal> {
        let elem_bytes = derivation::element_bytes(self.elem)?;
        let layout = self
            .layout
            .map(|text| crate::notation::layout_at(text, (0, text.len())))
            .transpose()?;
        let extents = layout.as_ref().map(|layout| extents(self.layout, layout));
        let stated = self.tile.map(derivation::parse_tile);
        let (rows, cols) = match (stated.transpose()?, extents.transpose()?) {
            (Some(tile), Some(own)) if tile != own => {
                let message = format!(
                    "the layout is of {}x{} elements, and the tile has {}x{}: leave out `--tile`",
                    own.0, own.1, tile.0, tile.1
                );
                return Err(Refusal::usage("tile", message));
            }
            (Some(tile), _) | (None, Some(tile)) => tile,
            (None, None) => {
                let message = "say what the tile is: --tile ROWSxCOLUMNS or --layout LAYOUT";
                return Err(Refusal::usage("tile", message));
            }
        };
        let tile = Tile {
            rows,
            cols,
            elem_bytes,
        };
        let layout = match layout {
            Some(layout) => layout,
            None => derivation::row_major(tile).ok_or_else(|| {
                let message = format!(
                    "a tile of {rows}x{cols} elements; give at least 1x1, and fewer than 2^63 in all"
                );
                Refusal::usage("tile", message)
            })?,
        };
        let patterns = self
            .accesses
            .iter()
            .map(|text| derivation::parse_access(text))
            .collect::<Result<Vec<_>, _>>()?;
        let mut costs = Vec::new();
        for (pattern, text) in patterns.iter().zip(&self.accesses) {
            inside(tile, pattern, text)?;
            let count = recount(tile, pattern, &layout).map_err(|error| {
                Refusal::new(error.code(), error.to_string()).at((0, text.len()), *text)
            })?;
            costs.push((count.wavefronts, count.ideal));
        }
        let best = derive_layout(tile, &patterns).ok();
        Ok(Counted {
            tile,
            elem: self.elem.to_owned(),
            layout,
            texts: self
                .accesses
                .iter()
                .map(|text| (*text).to_owned())
                .collect(),
            patterns,
            costs,
            best,
        })
    }
}

/// Rows and columns of a layout.
fn extents(text: Option<&str>, layout: &Swizzled) -> Result<(i64, i64), Refusal> {
    let shape = layout.shape();
    let size = |mode| shape.get(mode).and_then(|mode| mode.size());
    match (layout.rank(), size(0), size(1)) {
        (2, Ok(rows), Ok(cols)) => Ok((rows, cols)),
        (rank, ..) => {
            let text = text.unwrap_or_default();
            let modes = if rank == 1 { "mode" } else { "modes" };
            let message = format!(
                "the layout has {rank} {modes}, and a tile has two, its rows and its columns, as in (32,32):(32,1)"
            );
            Err(Refusal::usage("tile", message).at((0, text.len()), text))
        }
    }
}

/// Refuses an access that leaves the tile.
fn inside(tile: Tile, pattern: &Pattern, text: &str) -> Result<(), Refusal> {
    let size = tile.rows.saturating_mul(tile.cols);
    let outside = pattern.elements.iter().position(|&element| element >= size);
    outside.map_or(Ok(()), |lane| {
        let message = format!(
            "lane {lane} touches element {}, outside the tile's {size} elements",
            pattern.elements[lane]
        );
        Err(Refusal::new("outside_tile", message).at((0, text.len()), text))
    })
}

impl Counted {
    /// One object an access, as `banks --layout --json` prints them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = self.texts.iter().zip(&self.patterns).zip(&self.costs);
        rows.enumerate()
            .map(|(row, ((text, pattern), (wavefronts, ideal)))| {
                json!({
                    "row": row, "op": pattern.access.name(), "access": text,
                    "wavefronts": wavefronts, "ideal": ideal,
                })
            })
            .collect()
    }

    /// One line an access, for people, with the elements at which some lanes begin; and the question to `derive` if one has bank conflicts.
    #[must_use]
    pub fn text(&self) -> String {
        let rows = self.texts.iter().zip(&self.patterns).zip(&self.costs);
        let mut lines: Vec<String> = rows
            .map(|((text, pattern), (wavefronts, ideal))| {
                let noun = if *wavefronts == 1 {
                    "wavefront"
                } else {
                    "wavefronts"
                };
                let verdict = if wavefronts == ideal {
                    "conflict-free"
                } else {
                    "bank conflicts"
                };
                let lanes = self.lanes(pattern);
                format!("{text}: {wavefronts} {noun}, ideal {ideal}: {verdict}\n  {lanes}")
            })
            .collect();
        if self
            .costs
            .iter()
            .any(|(wavefronts, ideal)| wavefronts > ideal)
        {
            let Tile { rows, cols, .. } = self.tile;
            let accesses = self.texts.iter().map(|text| format!(" --access '{text}'"));
            let accesses: String = accesses.collect();
            lines.push(format!(
                "a better layout: tilewright derive --tile {rows}x{cols} --elem {}{accesses}",
                self.elem
            ));
        }
        lines.join("\n")
    }

    /// Where the first two lanes and the last begin, as rows and columns of the tile.
    fn lanes(&self, pattern: &Pattern) -> String {
        let active = pattern
            .elements
            .iter()
            .enumerate()
            .filter(|(_, e)| **e >= 0);
        let active: Vec<(usize, &i64)> = active.collect();
        let some = active.iter().take(2).chain(active.iter().skip(2).last());
        let some = some.map(|(lane, element)| {
            let (row, col) = (*element / self.tile.cols, *element % self.tile.cols);
            format!("lane {lane} at ({row},{col})")
        });
        let some: Vec<String> = some.collect();
        format!("in elements of {}: {}", self.elem, some.join(", "))
    }

    /// The access of a line's operation that takes as many wavefronts as the line counts.
    fn equal_to(&self, line: &Line) -> Option<usize> {
        let name = instruction::access(&line.text)?;
        let costs = self.patterns.iter().zip(&self.costs);
        costs
            .enumerate()
            .find(|(_, (pattern, cost))| pattern.access.name() == name && agrees(line, cost.0))
            .map(|(i, _)| i)
    }

    /// The only access of a line's operation.
    fn only_of(&self, line: &Line) -> Option<usize> {
        let name = instruction::access(&line.text)?;
        let mut same = (0..self.patterns.len()).filter(|&i| self.patterns[i].access.name() == name);
        same.next().filter(|_| same.next().is_none())
    }

    /// The best layout's text, and what an access takes in it.
    fn best(&self, access: usize) -> Option<(String, u32)> {
        let best = self.best.as_ref()?;
        let layout = best.layout.as_ref()?;
        Some((layout.to_string(), best.accesses().get(access)?.wavefronts))
    }
}

/// The first word of an instruction, without its predicate.
fn opcode(line: &Line) -> &str {
    let mut words = line.text.split_whitespace();
    words
        .find(|word| !word.starts_with('@'))
        .unwrap_or_default()
}

fn same_operation(a: &Line, b: &Line) -> bool {
    opcode(a) == opcode(b) && instruction::access(&a.text).is_some()
}

/// Wavefronts of one execution.
fn each(line: &Line, total: f64) -> Option<f64> {
    (line.executed > 0.0).then(|| total / line.executed)
}

fn agrees(line: &Line, wavefronts: u32) -> bool {
    let counted = each(line, line.wavefronts);
    counted.is_some_and(|counted| (counted - f64::from(wavefronts)).abs() < 0.05)
}

fn excess(line: &Line) -> f64 {
    (line.wavefronts - line.ideal).max(0.0)
}

fn has_conflicts(line: &Line) -> bool {
    excess(line) > SLACK * line.wavefronts
}

impl Question<'_> {
    /// Reads the report and compares it.
    ///
    /// # Errors
    ///
    /// Code `ncu_report`: no table that is known, a row that is cut off, a number that is none; `unknown_kernel`; and those of [`Model::count`].
    ///
    /// ```
    /// use tilewright_workbench::ncu::{Model, Question};
    ///
    /// let report = "\"#\",\"Source\",\"Instructions Executed\",\"L1 Wavefronts Shared\",\"L1 Wavefronts Shared Ideal\"\n\
    ///               \"21\",\"LDS R4, [R3]\",\"32,768\",\"1,048,576\",\"32,768\"\n";
    /// let model = Model { tile: Some("32x32"), layout: None, elem: "f32", accesses: vec!["ld.32 @ 32:32"] };
    /// let answer = Question { report, model: Some(model), kernel: None }.answer()?;
    /// assert_eq!(answer.to_json()["fix"]["layout"], "Sw<5,0,5> o (32,32):(32,1)");
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn answer(&self) -> Result<Answer, Refusal> {
        let mut kernels = table::kernels(self.report)?;
        if let Some(part) = self.kernel {
            let names: Vec<String> = kernels.iter().map(|kernel| kernel.name.clone()).collect();
            kernels.retain(|kernel| kernel.name.contains(part));
            if kernels.is_empty() {
                let message = format!(
                    "no kernel has {part:?} in its name; there are {}",
                    names.join("; ")
                );
                return Err(Refusal::new("unknown_kernel", message));
            }
        }
        let model = self.model.as_ref().map(Model::count).transpose()?;
        Ok(Answer { kernels, model })
    }
}

impl Answer {
    /// The access that a line is: one that takes as many wavefronts, or the only one of its operation if that is no other line's.
    fn access_of(&self, line: &Line) -> Option<usize> {
        let model = self.model.as_ref()?;
        if let Some(equal) = model.equal_to(line) {
            return Some(equal);
        }
        let only = model.only_of(line)?;
        let mut lines = self.kernels.iter().flat_map(|kernel| &kernel.lines);
        lines
            .all(|other| model.equal_to(other) != Some(only))
            .then_some(only)
    }

    /// The line with the most excessive wavefronts: kernel and line.
    fn worst(&self) -> Option<(usize, usize)> {
        let lines = self.kernels.iter().enumerate().flat_map(|(k, kernel)| {
            let lines = kernel.lines.iter().enumerate();
            lines.map(move |(i, line)| (k, i, line))
        });
        lines
            .filter(|(_, _, line)| has_conflicts(line))
            .max_by(|a, b| excess(a.2).total_cmp(&excess(b.2)))
            .map(|(k, i, _)| (k, i))
    }

    /// The answer for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let kernels: Vec<Value> = self
            .kernels
            .iter()
            .map(|kernel| {
                let lines: Vec<Value> = kernel.lines.iter().map(|line| self.line(line)).collect();
                json!({
                    "kernel": kernel.name,
                    "lines": lines,
                    "wavefronts": kernel.wavefronts,
                    "conflicts": kernel.conflicts,
                    "excessive": excessive(kernel),
                    "other_traffic": other_traffic(kernel),
                })
            })
            .collect();
        let fix = self.worst().map(|(k, i)| {
            let line = &self.kernels[k].lines[i];
            let access = self.access_of(line);
            let best = self.model.as_ref().zip(access);
            let best = best.and_then(|(model, access)| model.best(access));
            json!({
                "kernel": self.kernels[k].name,
                "line": line.number,
                "instruction": line.text,
                "excessive": excess(line),
                "access": self.model.as_ref().zip(access).map(|(model, access)| &model.texts[access]),
                "layout": best.as_ref().map(|best| &best.0),
                "wavefronts": best.as_ref().map(|best| best.1),
            })
        });
        json!({"kernels": kernels, "fix": fix})
    }

    fn line(&self, line: &Line) -> Value {
        let model = self.model.as_ref();
        let access = self.access_of(line);
        let compared = model.zip(access).map(|(model, access)| {
            json!({
                "access": model.texts[access],
                "layout": model.layout.to_string(),
                "wavefronts": model.costs[access].0,
                "agrees": agrees(line, model.costs[access].0),
            })
        });
        json!({
            "line": line.number,
            "instruction": line.text,
            "op": instruction::access(&line.text),
            "executed": line.executed,
            "wavefronts": line.wavefronts,
            "ideal": line.ideal,
            "wavefronts_each": each(line, line.wavefronts),
            "ideal_each": each(line, line.ideal),
            "model": compared,
        })
    }

    /// The answer for people, several lines.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let worst = self.worst();
        for (k, kernel) in self.kernels.iter().enumerate() {
            // Writing to a String never fails.
            let name = if kernel.name.is_empty() {
                "kernel"
            } else {
                &kernel.name
            };
            let _ = writeln!(out, "{name}");
            if let Some(wavefronts) = kernel.wavefronts {
                let _ = writeln!(out, "  {} wavefronts of shared memory", count(wavefronts));
            }
            if let Some(conflicts) = kernel.conflicts {
                let _ = writeln!(out, "  {} bank conflicts counted", count(conflicts));
            }
            if let Some(other) = other_traffic(kernel) {
                let _ = writeln!(
                    out,
                    "  {} of them are excessive wavefronts of this kernel's addresses, {} come from other traffic",
                    count(excessive(kernel).unwrap_or(0.0)),
                    count(other)
                );
            }
            let mut lines = kernel.lines.iter().enumerate().peekable();
            while let Some((i, line)) = lines.next() {
                // A run of instructions that need nothing is one line, with their sums.
                let mut run = (1, line.clone());
                if self.model.is_none() && !has_conflicts(line) {
                    while let Some((_, next)) =
                        lines.next_if(|next| same_operation(line, next.1) && !has_conflicts(next.1))
                    {
                        run.0 += 1;
                        run.1.wavefronts += next.wavefronts;
                        run.1.ideal += next.ideal;
                    }
                }
                if run.0 > 1 {
                    run.1.text = format!("{} × {}", run.0, opcode(line));
                }
                self.describe(&mut out, &run.1, worst == Some((k, i)));
            }
            if kernel.lines.is_empty() && kernel.conflicts.is_none() && kernel.wavefronts.is_none()
            {
                let _ = writeln!(out, "  no access to shared memory");
            }
        }
        self.advise(&mut out, worst);
        out.trim_end().to_owned()
    }

    fn describe(&self, out: &mut String, line: &Line, worst: bool) {
        let verdict = match (each(line, line.wavefronts), each(line, line.ideal)) {
            _ if !has_conflicts(line) => "conflict-free".to_owned(),
            (Some(each), Some(ideal)) => {
                format!("{} each where {} would do", short(each), short(ideal))
            }
            _ => format!("{} excessive", count(excess(line))),
        };
        let mark = if worst { "  <- fix first" } else { "" };
        let _ = writeln!(
            out,
            "  {:>5}  {:<40} {:>13} wavefronts, {:>13} ideal: {verdict}{mark}",
            line.number,
            line.text.chars().take(40).collect::<String>(),
            count(line.wavefronts),
            count(line.ideal),
        );
        let Some(model) = &self.model else { return };
        if let Some(access) = self.access_of(line) {
            let wavefronts = model.costs[access].0;
            let verdict = if agrees(line, wavefronts) {
                "the model agrees"
            } else {
                "the report counts another number: is it this access, and this layout?"
            };
            let _ = writeln!(
                out,
                "         {} takes {wavefronts} in {}: {verdict}",
                model.texts[access], model.layout
            );
        } else {
            let op = instruction::access(&line.text);
            let _ = writeln!(
                out,
                "         no --access is this {}: another tile's, or one to add",
                op.as_deref().unwrap_or("line")
            );
        }
    }

    /// What to change.
    fn advise(&self, out: &mut String, worst: Option<(usize, usize)>) {
        let Some((k, i)) = worst else {
            if self.kernels.iter().any(|kernel| !kernel.lines.is_empty()) {
                let _ = writeln!(out, "nothing to fix: no access has conflicts");
            } else {
                let _ = writeln!(
                    out,
                    "which access to fix is in the report's source page: --page source --csv"
                );
            }
            return;
        };
        let line = &self.kernels[k].lines[i];
        let _ = writeln!(out, "fix first: {} {}", line.number, line.text);
        let Some(model) = &self.model else {
            let op = instruction::access(&line.text).unwrap_or_else(|| "ld.32".to_owned());
            let _ = writeln!(
                out,
                "  which layout mends it depends on the tile: --tile ROWSxCOLUMNS --elem TYPE --access '{op} @ LAYOUT' for each access"
            );
            return;
        };
        if let Some((layout, wavefronts)) =
            self.access_of(line).and_then(|access| model.best(access))
        {
            let _ = writeln!(out, "  with {layout} it takes {wavefronts}");
            let certificate = model.best.iter().map(|best| best.certificate.to_string());
            for part in certificate.collect::<String>().split("; ") {
                let _ = writeln!(out, "    {part}");
            }
        } else {
            let _ = writeln!(
                out,
                "  add its --access: the layout must serve all accesses to the tile"
            );
        }
    }
}

/// Wavefronts beyond the ideal of all lines, or the report's own sum.
fn excessive(kernel: &Kernel) -> Option<f64> {
    if kernel.lines.is_empty() {
        return kernel.excessive;
    }
    Some(kernel.lines.iter().map(excess).sum())
}

/// Conflicts that the hardware counted and no address explains.
fn other_traffic(kernel: &Kernel) -> Option<f64> {
    Some((kernel.conflicts? - excessive(kernel)?).max(0.0))
}

/// A whole number with separators.
fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with at most one decimal.
fn short(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}
