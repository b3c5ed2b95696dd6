//! The tables of a report: per-instruction counters (`--page source`) and counters of whole kernels (`--page raw`, `--csv --metrics …`).
//!
//! Columns are found by their names, in any order; what is not needed is not looked at. A report may have several kernels, each with its own
//! header.

use std::collections::HashSet;

use super::csv::{Record, number, records};
use crate::Refusal;

/// Columns of the source page.
const EXECUTED: [&str; 3] = [
    "Instructions Executed",
    "# Instructions Executed",
    "inst_executed",
];
const WAVEFRONTS: [&str; 3] = [
    "L1 Wavefronts Shared",
    "# L1 Wavefronts Shared",
    "memory_l1_wavefronts_shared",
];
const IDEAL: [&str; 3] = [
    "L1 Wavefronts Shared Ideal",
    "# L1 Wavefronts Shared Ideal",
    "memory_l1_wavefronts_shared_ideal",
];
const SOURCE: [&str; 2] = ["Source", "SASS"];
const LINE: [&str; 3] = ["#", "Line No", "Line"];

/// Counters of the raw page.
const COUNTERS: [(&str, Counter); 3] = [
    (
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        Counter::Wavefronts,
    ),
    (
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        Counter::Conflicts,
    ),
    (
        "derived__memory_l1_wavefronts_shared_excessive",
        Counter::Excessive,
    ),
];

#[derive(Clone, Copy)]
enum Counter {
    Wavefronts,
    Conflicts,
    Excessive,
}

/// One instruction, or one line of source, that touched shared memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// What the report calls it: the line of source code, or the number of the instruction from 0.
    pub(super) number: String,
    /// The instruction's or the line's text.
    pub(super) text: String,
    /// How many warps executed it; 0 if the report does not say.
    pub(super) executed: f64,
    pub(super) wavefronts: f64,
    pub(super) ideal: f64,
}

/// One kernel of a report.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
    /// Counters of the whole kernel.
    pub(super) wavefronts: Option<f64>,
    pub(super) conflicts: Option<f64>,
    pub(super) excessive: Option<f64>,
}

fn refuse(line: usize, message: &str) -> Refusal {
    Refusal::new("ncu_report", format!("line {line}: {message}"))
}

/// The kernels of a report that touched shared memory.
pub(super) fn kernels(text: &str) -> Result<Vec<Kernel>, Refusal> {
    let records = records(text).map_err(|line| refuse(line, "a quote does not end"))?;
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut name = String::new();
    let mut known = false;
    let mut rows = records.iter().peekable();
    while let Some(record) = rows.next() {
        if let Some(header) = Raw::of(record) {
            known = true;
            // The units stand below the names, or there are none.
            if rows.peek().is_some_and(|row| header.is_units(row)) {
                rows.next();
            }
            for row in rows.by_ref() {
                header.row(row, &mut kernels)?;
            }
        } else if let Some((title, found)) = title(record) {
            if title != "File Path" {
                name = found;
            }
        } else if let Some(header) = Source::of(record) {
            known = true;
            let mut kernel = Kernel {
                name: name.clone(),
                ..Kernel::default()
            };
            let mut place = Place::default();
            while let Some(row) = rows.peek() {
                if title(row).is_some() || Source::of(row).is_some() {
                    break;
                }
                kernel.lines.extend(header.line(row, &mut place)?);
                rows.next();
            }
            // The page has a kernel once for every view of it.
            if kernels.last() != Some(&kernel) {
                kernels.push(kernel);
            }
        }
    }
    // A table of other metrics names no kernel.
    known &= !kernels.is_empty();
    if known {
        return Ok(kernels);
    }
    Err(Refusal::new(
        "ncu_report",
        "no table with counters of shared memory; write one with `ncu --import REPORT --page source --csv` of a report that was taken with \
         `--set full`, or with `--page raw --csv`",
    ))
}

/// `"Kernel Name","f(float *)"`: what the next table is of, as a title and a name.
fn title(record: &Record) -> Option<(&str, String)> {
    let [first, name, rest @ ..] = &record.fields[..] else {
        return None;
    };
    let title = first.trim().trim_end_matches(':');
    (matches!(
        title,
        "Kernel Name" | "Function Name" | "Kernel" | "File Path"
    ) && rest.iter().all(|field| field.trim().is_empty()))
    .then(|| (title, name.trim().to_owned()))
}

fn column(record: &Record, names: &[&str]) -> Option<usize> {
    let at = |name: &&str| record.fields.iter().position(|field| field.trim() == *name);
    names.iter().find_map(at)
}

/// Where the columns of the source page are.
struct Source {
    fields: usize,
    number: Option<usize>,
    /// Of an instruction. Beside lines of source code the instructions have rows of their own, some of them twice.
    address: Option<usize>,
    text: usize,
    executed: Option<usize>,
    wavefronts: usize,
    ideal: usize,
}

/// Where in a table we are.
#[derive(Default)]
struct Place {
    /// The number of the line of source code, or of the instruction.
    line: String,
    instructions: usize,
    /// Addresses of the instructions before.
    seen: HashSet<String>,
}

impl Source {
    fn of(record: &Record) -> Option<Self> {
        let address = column(record, &["Address"]);
        // Of two columns of source, the one behind the address is the instruction's.
        let behind = address.map_or(0, |address| address + 1);
        let named = |field: &String| SOURCE.contains(&field.trim());
        let instruction = record.fields.iter().skip(behind).position(named);
        let text = match instruction {
            Some(position) => behind + position,
            None => column(record, &SOURCE)?,
        };
        Some(Self {
            fields: record.fields.len(),
            number: column(record, &LINE),
            address,
            text,
            executed: column(record, &EXECUTED),
            wavefronts: column(record, &WAVEFRONTS)?,
            ideal: column(record, &IDEAL)?,
        })
    }

    /// The line of a row; nothing for one without wavefronts of shared memory.
    fn line(&self, row: &Record, place: &mut Place) -> Result<Option<Line>, Refusal> {
        if row.fields.len() < self.fields {
            let message = format!(
                "{} fields, the header has {}: is the file cut off?",
                row.fields.len(),
                self.fields
            );
            return Err(refuse(row.line, &message));
        }
        let value = |column: usize, what: &str| {
            let field = row.fields[column].trim();
            match number(field) {
                Some(value) => Ok(value),
                None if matches!(field, "" | "-") => Ok(0.0),
                None => {
                    let field: String = field.chars().take(40).collect();
                    Err(refuse(
                        row.line,
                        &format!("{what} is {field:?}: a number is expected"),
                    ))
                }
            }
        };
        let own = self.number.map_or("", |column| row.fields[column].trim());
        if !own.is_empty() {
            own.clone_into(&mut place.line);
        }
        if let Some(column) = self.address {
            let address = row.fields[column].trim();
            if matches!(address, "-" | "...") || place.seen.contains(address) {
                return Ok(None);
            }
            place.seen.insert(address.to_owned());
        }
        let index = place.instructions;
        place.instructions += 1;
        // The units row of a page that has one: names where numbers are expected.
        let wavefronts = row.fields[self.wavefronts].trim();
        if row.fields[self.text].trim().is_empty() && number(wavefronts).is_none() {
            return Ok(None);
        }
        let wavefronts = value(self.wavefronts, WAVEFRONTS[0])?;
        if wavefronts <= 0.0 {
            return Ok(None);
        }
        Ok(Some(Line {
            number: if place.line.is_empty() {
                index.to_string()
            } else {
                place.line.clone()
            },
            text: row.fields[self.text].trim().to_owned(),
            executed: match self.executed {
                Some(column) => value(column, EXECUTED[0])?,
                None => 0.0,
            },
            wavefronts,
            ideal: value(self.ideal, IDEAL[0])?,
        }))
    }
}

/// Where the columns of the raw page are, or of `--metrics` with one metric a row.
struct Raw {
    name: usize,
    counters: Vec<(usize, Counter)>,
    /// The columns of a metric's name and value.
    metric: Option<(usize, usize)>,
}

impl Raw {
    fn of(record: &Record) -> Option<Self> {
        let name = column(record, &["Kernel Name", "Function Name"])?;
        let counters: Vec<(usize, Counter)> = COUNTERS
            .iter()
            .filter_map(|&(metric, counter)| Some((column(record, &[metric])?, counter)))
            .collect();
        let metric = column(record, &["Metric Name"]).zip(column(record, &["Metric Value"]));
        (!counters.is_empty() || metric.is_some()).then_some(Self {
            name,
            counters,
            metric,
        })
    }

    /// Whether a row has units and no values: no kernel is named.
    fn is_units(&self, row: &Record) -> bool {
        row.fields
            .get(self.name)
            .is_none_or(|name| name.trim().is_empty())
    }

    fn row(&self, row: &Record, kernels: &mut Vec<Kernel>) -> Result<(), Refusal> {
        let field = |column: usize| row.fields.get(column).map_or("", |field| field.trim());
        let name = field(self.name);
        let mut found = Vec::new();
        for &(column, counter) in &self.counters {
            found.push((counter, field(column)));
        }
        if let Some((metric, value)) = self.metric {
            let known = COUNTERS.iter().find(|known| known.0 == field(metric));
            match known {
                Some(known) => found.push((known.1, field(value))),
                None => return Ok(()),
            }
        }
        // Metrics one a row belong to the kernel of the rows before.
        let same = self.metric.is_some() && kernels.last().is_some_and(|last| last.name == name);
        if !same {
            kernels.push(Kernel {
                name: name.to_owned(),
                ..Kernel::default()
            });
        }
        let Some(kernel) = kernels.last_mut() else {
            return Ok(());
        };
        for (counter, text) in found {
            let value = match number(text) {
                None if matches!(text, "" | "-" | "n/a") => continue,
                None => {
                    return Err(refuse(
                        row.line,
                        &format!("a counter is {text:?}: a number is expected"),
                    ));
                }
                value => value,
            };
            match counter {
                Counter::Wavefronts => kernel.wavefronts = value,
                Counter::Conflicts => kernel.conflicts = value,
                Counter::Excessive => kernel.excessive = value,
            }
        }
        Ok(())
    }
}
