//! What a check has to say: the reports of all processes of the program, put together.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitStatus;

use serde_json::{Map, Value, json};

use crate::error::CliError;

/// The outcome of a check.
pub(super) struct Checked {
    program: String,
    status: ExitStatus,
    /// What each kernel did, as the library writes it, by name.
    pub(super) kernels: Map<String, Value>,
}

/// A list of an object; empty if it is not there.
pub(super) fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

/// A string of an object.
pub(super) fn string<'a>(of: &'a Value, name: &str) -> &'a str {
    of[name].as_str().unwrap_or_default()
}

impl Checked {
    /// Reads the reports of a folder.
    pub(super) fn read(
        folder: &Path,
        status: ExitStatus,
        program: &OsStr,
    ) -> Result<Self, CliError> {
        let program = program.display().to_string();
        let io = |e: std::io::Error| CliError::io(folder, &e);
        let mut kernels = Map::new();
        let mut reports = 0;
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let path = entry.map_err(io)?.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let text = std::fs::read(&path).map_err(|e| CliError::io(&path, &e))?;
            let report: Value = serde_json::from_slice(&text).map_err(|e| {
                let message = format!("the library's report is not JSON ({e}): is --driver the library of this version?");
                CliError::new("report", message)
            })?;
            reports += 1;
            for kernel in list(&report, "kernels") {
                let name = string(kernel, "name").to_owned();
                match kernels.get_mut(&name) {
                    Some(known) => merge(known, kernel),
                    None => _ = kernels.insert(name, kernel.clone()),
                }
            }
        }
        if reports == 0 {
            let ended = ended(status);
            let message = format!(
                "{program} {ended} and never initialised the CUDA driver: nothing was checked. It must load libcuda.so.1 from LD_LIBRARY_PATH"
            );
            return Err(CliError::new("no_driver_calls", message));
        }
        Ok(Self {
            program,
            status,
            kernels,
        })
    }

    fn findings(&self) -> usize {
        let all = self.kernels.values();
        all.map(|k| list(k, "findings").len()).sum()
    }

    /// No launch ran with the sanitizer.
    pub(super) fn is_unchecked(&self) -> bool {
        let count = |k: &Value, name: &str| k[name].as_u64().unwrap_or(0);
        let mut all = self.kernels.values();
        all.all(|k| count(k, "launches") == count(k, "unchecked") + count(k, "skipped"))
    }

    /// The names of all kernels.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.kernels.keys().map(String::as_str).collect();
        if names.is_empty() {
            return "none".to_owned();
        }
        names.join(", ")
    }

    /// The program succeeded, every launch could run, and nothing was found.
    pub(super) fn passed(&self) -> bool {
        let ran = |k: &Value| list(k, "errors").is_empty();
        self.status.success() && self.findings() == 0 && self.kernels.values().all(ran)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "program": {"name": self.program, "exit": self.status.code(), "ended": ended(self.status)},
            "passed": self.passed(),
            "kernels": self.kernels.values().collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for kernel in self.kernels.values() {
            lines.extend(kernel_text(kernel));
        }
        if self.kernels.is_empty() {
            lines.push("no kernel was launched".to_owned());
        }
        if !self.status.success() {
            lines.push(format!("{} {}", self.program, ended(self.status)));
        }
        let findings = match self.findings() {
            0 => "none".to_owned(),
            n => n.to_string(),
        };
        lines.push(format!("findings: {findings}"));
        lines.join("\n")
    }
}

/// How a program ended, in words.
fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(0) => "succeeded".to_owned(),
        Some(code) => format!("failed with exit status {code}"),
        None => format!("was ended by {status}"),
    }
}

/// Adds what another process says of a kernel.
fn merge(known: &mut Value, other: &Value) {
    for count in ["launches", "skipped", "unchecked"] {
        let sum = known[count].as_u64().unwrap_or(0) + other[count].as_u64().unwrap_or(0);
        known[count] = sum.into();
    }
    for name in ["findings", "notes", "errors", "conflicts"] {
        let new = list(other, name).iter().filter(|entry| {
            let place = |v: &Value| ["kind", "line", "text"].map(|field| v[field].clone());
            let same =
                |old: &Value| place(old) == place(entry) && old["message"] == entry["message"];
            !list(known, name).iter().any(same)
        });
        let new: Vec<Value> = new.cloned().collect();
        if let Some(all) = known[name].as_array_mut() {
            all.extend(new);
        }
    }
}

fn counted(n: u64, what: &str) -> String {
    let s = if n == 1 { "" } else { "es" };
    format!("{n} {what}{s}")
}

fn kernel_text(kernel: &Value) -> Vec<String> {
    let count = |name: &str| kernel[name].as_u64().unwrap_or(0);
    let mut first = format!(
        "{}: {}",
        string(kernel, "name"),
        counted(count("launches"), "launch")
    );
    for (name, words) in [
        ("skipped", "skipped"),
        ("unchecked", "without the sanitizer"),
    ] {
        if count(name) > 0 {
            let _ = write!(first, ", {} {words}", count(name));
        }
    }
    let mut lines = vec![first];
    for error in list(kernel, "errors") {
        lines.push(format!("  not run: {}", string(error, "message")));
    }
    let mut last = &Value::Null;
    for finding in list(kernel, "findings") {
        // The calls once for several findings of one launch.
        lines.extend(finding_text(finding, last != &finding["backtrace"]));
        last = &finding["backtrace"];
    }
    for conflict in list(kernel, "conflicts") {
        lines.push(format!(
            "  bank conflicts: line {}: {} wavefronts, {} without conflicts: {}",
            conflict["line"],
            conflict["wavefronts"],
            conflict["ideal"],
            string(conflict, "text")
        ));
    }
    lines
}

/// `sum.cu:12, inlined at main.cu:3`
pub(super) fn source_text(source: &Value) -> String {
    let mut text = format!("{}:{}", string(source, "file"), source["line"]);
    let mut outer = &source["inlined_at"];
    while outer.is_object() {
        let _ = write!(
            text,
            ", inlined at {}:{}",
            string(outer, "file"),
            outer["line"]
        );
        outer = &outer["inlined_at"];
    }
    text
}

fn finding_text(finding: &Value, with_calls: bool) -> Vec<String> {
    let source = &finding["source"];
    let place = if source.is_object() {
        format!("{} (PTX line {})", source_text(source), finding["line"])
    } else {
        format!("PTX line {}", finding["line"])
    };
    let block: Vec<String> = list(finding, "block")
        .iter()
        .map(Value::to_string)
        .collect();
    let mut lines = vec![
        format!(
            "  {}: {place}: {}",
            string(finding, "kind"),
            string(finding, "message")
        ),
        format!("      {}", string(finding, "text")),
        format!(
            "      block ({}), warp {}, {} times in {}",
            block.join(","),
            finding["warp"],
            finding["count"],
            counted(finding["launches"].as_u64().unwrap_or(0), "launch")
        ),
    ];
    let calls = list(finding, "backtrace").iter().filter_map(Value::as_str);
    if with_calls {
        lines.extend(calls.map(|call| format!("      from {call}")));
    }
    lines
}
