//! What a run has to say, for people and for programs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tilewright::emulator::{self, Counters};
use tilewright::gpu::KernelAttributes;
use tilewright::host::{counters_to_json, finding_to_json};

use super::argument::{self, Content};
use super::element::Element;
use super::profile::Profile;
use super::schedules::Schedules;
use crate::error::CliError;
use crate::output;

/// The outcome of a run.
pub(super) struct Report {
    device: String,
    kernel: String,
    /// Grid, block and cluster.
    shape: [[u32; 3]; 3],
    shared_bytes: u32,
    /// Time of the launch in milliseconds: wall time on the emulator, between two events on a GPU.
    pub(super) time_ms: f64,
    /// What the emulator saw.
    pub(super) watched: Option<Watched>,
    /// What the GPU's compiler made of the kernel.
    pub(super) attributes: Option<KernelAttributes>,
    /// Every buffer after the run.
    pub(super) buffers: Vec<Buffer>,
    /// What other orders gave, if asked for.
    pub(super) schedules: Option<Schedules>,
    /// What each line cost, if asked for.
    pub(super) profile: Option<Profile>,
}

/// What the emulator saw.
pub(super) struct Watched {
    pub(super) report: emulator::Report,
    pub(super) sanitized: bool,
}

/// A buffer after the run.
pub(super) struct Buffer {
    pub(super) name: String,
    pub(super) element: Element,
    pub(super) content: Vec<u8>,
    pub(super) out: Option<PathBuf>,
}

impl argument::Buffer {
    /// The size of the buffer, given its content if that is known.
    pub(super) fn len_bytes(&self, content: Option<&[u8]>) -> u64 {
        match (content, &self.content) {
            (Some(content), _) => content.len() as u64,
            (None, Content::Filled(count, _)) => count * self.element.bytes() as u64,
            (None, Content::File(_)) => 0,
        }
    }
}

impl Report {
    pub(super) fn new(
        device: String,
        kernel: String,
        shape: [[u32; 3]; 3],
        shared_bytes: u32,
    ) -> Self {
        let (watched, attributes, buffers) = (None, None, Vec::new());
        Self {
            device,
            kernel,
            shape,
            shared_bytes,
            time_ms: 0.0,
            watched,
            attributes,
            buffers,
            schedules: None,
            profile: None,
        }
    }

    /// Whether nothing was found wrong.
    pub(super) fn passed(&self) -> bool {
        self.watched
            .as_ref()
            .is_none_or(|watched| watched.report.is_clean())
    }

    /// Writes the buffers that are to be kept and the page of the profile, all of them whole or none.
    pub(super) fn save(&self, page: Option<&Path>) -> Result<(), CliError> {
        let html = self.profile.as_ref().map(Profile::html);
        let page = page.zip(html.as_ref().map(String::as_bytes));
        let kept = self.buffers.iter().filter_map(|buffer| {
            let path = buffer.out.as_deref()?;
            Some((path, &buffer.content[..]))
        });
        output::write_together(&kept.chain(page).collect::<Vec<_>>())
    }

    pub(super) fn to_json(&self, print: usize) -> Value {
        let [grid, block, cluster] = self.shape;
        let watched = self.watched.as_ref();
        let findings = watched.map_or_else(Vec::new, |watched| {
            watched
                .report
                .findings
                .iter()
                .map(finding_to_json)
                .collect()
        });
        json!({
            "device": self.device,
            "kernel": self.kernel,
            "passed": self.passed(),
            "time_ms": self.time_ms,
            "launch": {"grid": grid, "block": block, "cluster": cluster, "shared_bytes": self.shared_bytes},
            "sanitized": watched.is_some_and(|watched| watched.sanitized),
            "findings": findings,
            "notes": watched.map_or_else(Vec::new, |watched| {
                watched.report.notes.iter().map(finding_to_json).collect::<Vec<_>>()
            }),
            "total_findings": watched.map_or(0, |watched| watched.report.total_findings),
            "counters": watched.map(|watched| counters_to_json(&watched.report.counters)),
            "schedules": self.schedules.as_ref().map(Schedules::to_json),
            "profile": self.profile.as_ref().map(Profile::to_json),
            "printed": watched.map_or("", |watched| &watched.report.printed),
            "attributes": self.attributes.map(|attributes| json!({
                "registers": attributes.registers,
                "local_bytes": attributes.local_bytes,
                "static_shared_bytes": attributes.static_shared_bytes,
            })),
            "buffers": self.buffers.iter().map(|buffer| buffer.to_json(print)).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self, print: usize) -> String {
        let [grid, block, cluster] = self.shape.map(|[x, y, z]| format!("{x}×{y}×{z}"));
        let mut lines = vec![format!(
            "{} on {}: grid {grid}, block {block}, cluster {cluster}, {} bytes of dynamic shared memory, {:.3} ms",
            self.kernel, self.device, self.shared_bytes, self.time_ms
        )];
        if let Some(attributes) = self.attributes {
            lines.push(format!(
                "{} registers, {} bytes of local memory, {} bytes of static shared memory",
                attributes.registers, attributes.local_bytes, attributes.static_shared_bytes
            ));
            lines.push(
                "findings: unknown, the sanitizer is the emulator's (--on emulator)".to_owned(),
            );
        }
        if let Some(watched) = &self.watched {
            lines.extend(printed_text(&watched.report.printed));
            lines.extend(counters_text(&watched.report.counters));
            lines.extend(findings_text(watched));
        }
        lines.extend(self.schedules.iter().flat_map(Schedules::text));
        lines.extend(self.profile.iter().flat_map(Profile::text));
        lines.extend(self.buffers.iter().map(|buffer| buffer.text(print)));
        lines.join("\n")
    }
}

impl Buffer {
    fn first(&self, print: usize) -> Vec<Value> {
        let bytes = print
            .saturating_mul(self.element.bytes())
            .min(self.content.len());
        self.element.decode(&self.content[..bytes])
    }

    fn to_json(&self, print: usize) -> Value {
        json!({
            "name": self.name,
            "element": self.element.name(),
            "count": self.content.len() / self.element.bytes(),
            "first": self.first(print),
            "file": self.out,
        })
    }

    fn text(&self, print: usize) -> String {
        let count = self.content.len() / self.element.bytes();
        let first: Vec<String> = self.first(print).iter().map(show).collect();
        let rest = if count > first.len() { " …" } else { "" };
        let kept = self
            .out
            .as_ref()
            .map(|path| format!(" (kept in {})", path.display()))
            .unwrap_or_default();
        format!(
            "{}, {count} × {}{kept}: {}{rest}",
            self.name,
            self.element.name(),
            first.join(" ")
        )
    }
}

/// A number, or what JSON has no number for.
fn show(value: &Value) -> String {
    if value.is_null() {
        "not-finite".to_owned()
    } else {
        value.to_string()
    }
}

/// What the kernel printed, set off from the report.
fn printed_text(printed: &str) -> Vec<String> {
    if printed.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["printed:".to_owned()];
    lines.extend(printed.lines().map(|line| format!("  {line}")));
    lines
}

fn findings_text(watched: &Watched) -> Vec<String> {
    let report = &watched.report;
    let depth = if watched.sanitized {
        ""
    } else {
        " (bounds, alignment, barriers and deadlock only)"
    };
    let mut lines = if report.is_clean() {
        vec![format!("findings: none{depth}")]
    } else {
        vec![format!("findings: {}{depth}", report.total_findings)]
    };
    lines.extend(report.findings.iter().map(|finding| format!("  {finding}")));
    if report.total_findings > report.findings.len() as u64 {
        lines.push(format!(
            "  … and {} more",
            report.total_findings - report.findings.len() as u64
        ));
    }
    if !report.notes.is_empty() {
        lines.push(format!("notes: {}", report.notes.len()));
        lines.extend(report.notes.iter().map(|note| format!("  {note}")));
    }
    lines
}

fn counters_text(counters: &Counters) -> Vec<String> {
    let mut lines = vec![format!(
        "{} warp instructions, {} lane instructions",
        counters.warp_instructions, counters.lane_instructions
    )];
    if counters.shared().next().is_none() {
        return lines;
    }
    lines.push(format!(
        "shared memory: {} wavefronts, {} without conflicts",
        counters.wavefronts, counters.ideal_wavefronts
    ));
    lines.push(format!(
        "  {:>6}  {:<44} {:>10} {:>10} {:>10}  each",
        "line", "access", "executed", "wavefronts", "ideal"
    ));
    for access in counters.shared() {
        let (least, most) = (access.min_wavefronts, access.max_wavefronts);
        let each = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        lines.push(format!(
            "  {:>6}  {:<44} {:>10} {:>10} {:>10}  {each}",
            access.line, access.opcode, access.warps, access.wavefronts, access.ideal_wavefronts
        ));
    }
    lines
}
