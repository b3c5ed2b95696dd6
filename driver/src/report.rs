//! The report: what the sanitizer found in each kernel, as JSON in the file that `TILEWRIGHT_REPORT` names.
//!
//! It is written when there is something new and when the process ends, so that a program that crashes has said what was found before. A finding appears once, with how
//! often it happened, the line of PTX, the line of the source where the compiler has left it, and the host's calls that led to the first launch with it.

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptx_emulator::{Finding, InstructionCounter, Report, SourceLine};

use crate::settings::settings;

/// A finding with what led to it.
#[derive(Debug)]
struct Found {
    finding: Finding,
    /// The line of PTX.
    text: String,
    /// Calls of the host, innermost first.
    calls: Vec<String>,
    /// How many launches had it.
    launches: u64,
}

/// An access of shared memory that takes more wavefronts than it has to.
#[derive(Debug, Default)]
struct Conflict {
    opcode: String,
    text: String,
    warps: u64,
    wavefronts: u64,
    ideal: u64,
}

/// All launches of a kernel.
#[derive(Debug, Default)]
struct Kernel {
    launches: u64,
    skipped: u64,
    /// Launches that ran without the sanitizer.
    unchecked: u64,
    found: Vec<Found>,
    /// What the ISA does not promise and hardware allows: no errors.
    notes: Vec<Found>,
    /// Launches that could not start, by the reason.
    errors: BTreeMap<String, u64>,
    conflicts: BTreeMap<u32, Conflict>,
}

/// The kernels by name.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    kernels: BTreeMap<String, Kernel>,
}

impl Reports {
    fn kernel(&mut self, name: &str) -> &mut Kernel {
        self.kernels.entry(name.to_owned()).or_default()
    }

    pub(crate) fn skipped(&mut self, name: &str) {
        let kernel = self.kernel(name);
        kernel.launches += 1;
        kernel.skipped += 1;
    }

    /// A launch that could not start.
    pub(crate) fn refused(&mut self, name: &str, reason: &str) {
        *self
            .kernel(name)
            .errors
            .entry(reason.to_owned())
            .or_default() += 1;
        self.write();
    }

    /// A launch that has run.
    pub(crate) fn add(&mut self, name: &str, text: &str, report: &Report, checked: bool) {
        let kernel = self.kernel(name);
        kernel.launches += 1;
        if !checked {
            kernel.unchecked += 1;
            return;
        }
        let mut lines = None;
        let mut line = |number: u32| {
            let lines = lines.get_or_insert_with(|| text.lines().collect::<Vec<_>>());
            let at = (number as usize).saturating_sub(1);
            lines.get(at).map_or("", |l| l.trim()).to_owned()
        };
        let mut calls = None;
        let mut is_new = false;
        for (all, new) in [
            (&mut kernel.found, &report.findings),
            (&mut kernel.notes, &report.notes),
        ] {
            for finding in new {
                let text = line(finding.line);
                let same = |f: &&mut Found| {
                    let (old, new) = (&f.finding, finding);
                    old.kind == new.kind && old.line == new.line && f.text == text
                };
                if let Some(known) = all.iter_mut().find(same) {
                    known.finding.count += finding.count;
                    known.launches += 1;
                    continue;
                }
                is_new = true;
                all.push(Found {
                    finding: finding.clone(),
                    text,
                    calls: calls.get_or_insert_with(host_calls).clone(),
                    launches: 1,
                });
            }
        }
        for access in report
            .counters
            .shared()
            .filter(|a| a.wavefronts > a.ideal_wavefronts)
        {
            let InstructionCounter {
                line: number,
                opcode,
                warps,
                wavefronts,
                ideal_wavefronts,
                ..
            } = access;
            let known = kernel.conflicts.entry(*number).or_default();
            if known.opcode.is_empty() {
                known.opcode.clone_from(opcode);
                known.text = line(*number);
            }
            known.warps += warps;
            known.wavefronts += wavefronts;
            known.ideal += ideal_wavefronts;
        }
        if is_new {
            self.write();
        }
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn write(&self) {
        let Some(path) = &settings().report else {
            return;
        };
        let partial = path.with_extension("partial");
        let written =
            std::fs::write(&partial, self.json()).and_then(|()| std::fs::rename(&partial, path));
        if let Err(error) = written {
            eprintln!("tilewright: TILEWRIGHT_REPORT={}: {error}", path.display());
        }
    }

    fn json(&self) -> String {
        let kernels = self.kernels.iter().map(|(name, kernel)| kernel.json(name));
        object(&[("kernels", list(kernels))]) + "\n"
    }
}

/// The calls of the host's program that are being made, innermost first, from the API's function on.
fn host_calls() -> Vec<String> {
    let all = Backtrace::force_capture().to_string();
    let mut frames: Vec<(String, String)> = Vec::new();
    for line in all.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("at ") {
            if let Some(last) = frames.last_mut() {
                place.clone_into(&mut last.1);
            }
        } else if let Some((_, name)) = line.split_once(": ") {
            frames.push((name.to_owned(), String::new()));
        }
    }
    let own = |name: &str| name.contains("tilewright_driver::") || name.contains("ptx_emulator::");
    let last = frames.iter().rposition(|(name, _)| own(name));
    let outside = frames.into_iter().skip(last.map_or(0, |last| last + 1));
    let noise = ["__libc_start", "_start", "<unknown>", "libcudart_static_"];
    let told = outside.filter(|(name, _)| !noise.iter().any(|n| name.starts_with(n)));
    let shown = told.map(|(name, place)| {
        // Where the API's function is in this library is nobody's concern.
        if place.is_empty() || name.starts_with("cu") && place.contains("driver/src/") {
            name
        } else {
            format!("{name} at {place}")
        }
    });
    shown.take(24).collect()
}

impl Kernel {
    fn json(&self, name: &str) -> String {
        let errors = self.errors.iter().map(|(message, launches)| {
            object(&[
                ("message", string(message)),
                ("launches", launches.to_string()),
            ])
        });
        let conflicts = self.conflicts.iter().map(|(line, c)| {
            object(&[
                ("line", line.to_string()),
                ("opcode", string(&c.opcode)),
                ("text", string(&c.text)),
                ("warps", c.warps.to_string()),
                ("wavefronts", c.wavefronts.to_string()),
                ("ideal", c.ideal.to_string()),
            ])
        });
        object(&[
            ("name", string(name)),
            ("launches", self.launches.to_string()),
            ("skipped", self.skipped.to_string()),
            ("unchecked", self.unchecked.to_string()),
            ("findings", list(self.found.iter().map(Found::json))),
            ("notes", list(self.notes.iter().map(Found::json))),
            ("errors", list(errors)),
            ("conflicts", list(conflicts)),
        ])
    }
}

impl Found {
    fn json(&self) -> String {
        let f = &self.finding;
        let numbers = |all: &[u32]| list(all.iter().map(u32::to_string));
        object(&[
            ("kind", string(f.kind.code())),
            ("line", f.line.to_string()),
            ("column", f.column.to_string()),
            ("opcode", string(&f.opcode)),
            ("text", string(&self.text)),
            ("block", numbers(&f.block)),
            ("warp", f.warp.to_string()),
            ("lanes", f.lanes.to_string()),
            (
                "address",
                f.address
                    .map_or_else(|| "null".to_owned(), |a| a.to_string()),
            ),
            ("message", string(&f.message)),
            ("count", f.count.to_string()),
            ("launches", self.launches.to_string()),
            (
                "source",
                f.source.as_ref().map_or_else(|| "null".to_owned(), source),
            ),
            ("also", numbers(&f.also)),
            ("backtrace", list(self.calls.iter().map(|c| string(c)))),
        ])
    }
}

fn source(line: &SourceLine) -> String {
    let outer = line.inlined_at.as_deref();
    object(&[
        ("file", string(&line.file)),
        ("line", line.line.to_string()),
        ("column", line.column.to_string()),
        (
            "inlined_at",
            outer.map_or_else(|| "null".to_owned(), source),
        ),
    ])
}

fn object(fields: &[(&str, String)]) -> String {
    let fields = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

/// A string of JSON.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if u32::from(c) < 32 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_of_json() {
        assert_eq!(string("a\"\\\n\u{1}é"), r#""a\"\\\u000a\u0001é""#);
    }
}
