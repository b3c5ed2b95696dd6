//! What a run cost by line: `--profile` as text and JSON, `--profile-html` as a page annotated on the PTX.
//!
//! Counts, not times: the emulator has no clock. Wavefronts of shared memory are those that the hardware's counters give; sectors are the 32-byte pieces of
//! global memory that the requests touch, against the fewest that hold as many bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::emulator::{InstructionCounter, Module, Report, Traffic};
use tilewright::host::source_to_json;

/// Lines of a profile: the text that stands there, and what it cost.
pub(super) struct Profile {
    kernel: String,
    warp_instructions: u64,
    lane_instructions: u64,
    wavefronts: [u64; 2],
    traffic: Traffic,
    /// Executions by kind of instruction, most first.
    mix: Vec<(String, u64)>,
    lines: Vec<Line>,
    /// Lines that the text report shows; nothing if only the page is asked for.
    shown: Option<usize>,
    /// The whole text, by lines.
    text: Vec<String>,
}

struct Line {
    counter: InstructionCounter,
    source: Option<(String, Value)>,
}

impl Profile {
    pub(super) fn new(
        kernel: &str,
        module: &Module,
        ptx: &str,
        report: &Report,
        shown: Option<usize>,
    ) -> Self {
        let counters = &report.counters;
        let mut mix: BTreeMap<&str, u64> = BTreeMap::new();
        for counter in &counters.instructions {
            *mix.entry(kind(&counter.opcode)).or_default() += counter.warps;
        }
        let mut mix: Vec<(String, u64)> = mix
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| (name.to_owned(), n))
            .collect();
        mix.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let lines = counters.instructions.iter().filter(|c| c.warps > 0);
        Self {
            kernel: kernel.to_owned(),
            warp_instructions: counters.warp_instructions,
            lane_instructions: counters.lane_instructions,
            wavefronts: [counters.wavefronts, counters.ideal_wavefronts],
            traffic: counters.traffic,
            mix,
            lines: lines
                .map(|counter| Line {
                    counter: counter.clone(),
                    source: module
                        .source(counter.line)
                        .map(|source| (source.to_string(), source_to_json(&source))),
                })
                .collect(),
            shown,
            text: ptx.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| {
            let c = &line.counter;
            json!({
                "line": c.line,
                "opcode": c.opcode,
                "source": line.source.as_ref().map(|(_, json)| json),
                "warps": c.warps,
                "lanes": c.lanes,
                "wavefronts": c.wavefronts,
                "ideal_wavefronts": c.ideal_wavefronts,
                "traffic": traffic_json(&c.traffic),
            })
        });
        json!({
            "mix": self.mix.iter().map(|(name, n)| json!({"kind": name, "warps": n})).collect::<Vec<_>>(),
            "active_lanes": self.active_lanes(),
            "traffic": traffic_json(&self.traffic),
            "lines": lines.collect::<Vec<_>>(),
        })
    }

    /// Lanes that an instruction has on average.
    fn active_lanes(&self) -> f64 {
        self.lane_instructions as f64 / self.warp_instructions.max(1) as f64
    }

    fn summary(&self) -> Vec<String> {
        let t = &self.traffic;
        let [taken, ideal] = self.wavefronts;
        let mut lines = vec![format!(
            "{} warp instructions with {:.1} active lanes each",
            self.warp_instructions,
            self.active_lanes()
        )];
        lines.push(format!(
            "bytes: {} global, {} shared, {} local",
            t.global_bytes, t.shared_bytes, t.local_bytes
        ));
        if t.requests > 0 {
            lines.push(format!(
                "global memory: {} sectors in {} requests, {:.2} each; {} would hold the bytes",
                t.sectors,
                t.requests,
                t.sectors as f64 / t.requests as f64,
                t.ideal_sectors
            ));
        }
        if taken > 0 {
            lines.push(format!(
                "shared memory: {taken} wavefronts, {ideal} without conflicts"
            ));
        }
        let all = self.warp_instructions.max(1) as f64;
        let mix = self
            .mix
            .iter()
            .map(|(name, n)| format!("{name} {:.1} %", 100.0 * *n as f64 / all));
        lines.push(format!("mix: {}", mix.collect::<Vec<_>>().join(", ")));
        lines
    }

    /// The summary and the lines that are executed most.
    pub(super) fn text(&self) -> Vec<String> {
        let Some(shown) = self.shown else {
            return Vec::new();
        };
        let mut out = vec!["profile:".to_owned()];
        out.extend(self.summary().into_iter().map(|line| format!("  {line}")));
        out.push(format!(
            "  {:>6}  {:>12} {:>7} {:>12} {:>12}  {:<40} source",
            "line", "warps", "share", "wavefronts", "sectors", "instruction"
        ));
        let mut most: Vec<&Line> = self.lines.iter().collect();
        most.sort_by_key(|line| (std::cmp::Reverse(line.counter.warps), line.counter.line));
        let all = self.warp_instructions.max(1) as f64;
        for line in most.into_iter().take(shown) {
            let c = &line.counter;
            let share = 100.0 * c.warps as f64 / all;
            let of = |n: u64, ideal: u64| match n {
                0 => String::new(),
                _ => format!("{n}/{ideal}"),
            };
            let row = format!(
                "  {:>6}  {:>12} {share:>5.1} % {:>12} {:>12}  {:<40} {}",
                c.line,
                c.warps,
                of(c.wavefronts, c.ideal_wavefronts),
                of(c.traffic.sectors, c.traffic.ideal_sectors),
                c.opcode,
                line.source.as_ref().map_or("", |(text, _)| text)
            );
            out.push(row.trim_end().to_owned());
        }
        out
    }

    /// One page without a reference to another file.
    pub(super) fn html(&self) -> String {
        let mut by_line: BTreeMap<u32, Vec<&Line>> = BTreeMap::new();
        for line in &self.lines {
            by_line.entry(line.counter.line).or_default().push(line);
        }
        let most = self
            .lines
            .iter()
            .map(|l| l.counter.warps)
            .max()
            .unwrap_or(1)
            .max(1);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n",
            title = escape(&self.kernel)
        );
        for line in self.summary() {
            let _ = writeln!(page, "<p>{}</p>", escape(&line));
        }
        page += "<table>\n<thead><tr><th>line<th>warps<th>lanes<th>wavefronts<th>ideal<th>sectors<th>ideal<th>global bytes<th>shared bytes<th>source<th>PTX</thead>\n<tbody>\n";
        for (number, text) in (1u32..).zip(&self.text) {
            let counted = by_line.get(&number).map(Vec::as_slice).unwrap_or_default();
            let sum = |f: &dyn Fn(&InstructionCounter) -> u64| match counted
                .iter()
                .map(|l| f(&l.counter))
                .sum::<u64>()
            {
                0 => String::new(),
                n => n.to_string(),
            };
            let heat =
                counted.iter().map(|l| l.counter.warps).max().unwrap_or(0) as f64 / most as f64;
            let source = counted.iter().find_map(|l| l.source.as_ref());
            let _ = writeln!(
                page,
                "<tr style=\"--heat:{heat:.3}\"><td>{number}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td><pre>{}</pre>",
                sum(&|c| c.warps),
                sum(&|c| c.lanes),
                sum(&|c| c.wavefronts),
                sum(&|c| c.ideal_wavefronts),
                sum(&|c| c.traffic.sectors),
                sum(&|c| c.traffic.ideal_sectors),
                sum(&|c| c.traffic.global_bytes),
                sum(&|c| c.traffic.shared_bytes),
                escape(source.map_or("", |(text, _)| text)),
                escape(text)
            );
        }
        page + "</tbody>\n</table>\n</html>\n"
    }
}

const STYLE: &str = "body{margin:24px;background:#fff;color:#111;font:14px/1.4 system-ui,sans-serif}\
h1{font-size:20px;margin:0 0 8px}p{margin:0 0 2px}table{border-collapse:collapse;margin-top:16px;font:12px/1.4 ui-monospace,Menlo,Consolas,monospace}\
thead{position:sticky;top:0;background:#fff}th{text-align:right;padding:2px 8px;border-bottom:1px solid #999}td{text-align:right;padding:0 8px;white-space:nowrap}\
td:last-child,th:last-child,td:nth-last-child(2),th:nth-last-child(2){text-align:left}pre{margin:0;font:inherit;tab-size:4}\
tr{background:rgba(230,120,20,calc(var(--heat)*.45))}";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn traffic_json(t: &Traffic) -> Value {
    json!({
        "global_bytes": t.global_bytes,
        "shared_bytes": t.shared_bytes,
        "local_bytes": t.local_bytes,
        "requests": t.requests,
        "sectors": t.sectors,
        "ideal_sectors": t.ideal_sectors,
    })
}

/// What an instruction does, by its name.
fn kind(opcode: &str) -> &'static str {
    let mut words = opcode.split('.');
    let name = words.next().unwrap_or_default();
    let float = words.clone().any(|w| {
        matches!(
            w,
            "f16" | "f16x2" | "bf16" | "bf16x2" | "f32" | "f32x2" | "f64"
        )
    });
    let space = words.find_map(|w| match w.split("::").next().unwrap_or_default() {
        "global" | "const" => Some("global memory"),
        "shared" => Some("shared memory"),
        "local" => Some("local memory"),
        "param" => Some("parameters"),
        _ => None,
    });
    match name {
        "ld" | "ldu" | "st" => space.unwrap_or("generic memory"),
        "atom" | "red" | "multimem" => "atomics",
        "ldmatrix" | "stmatrix" | "movmatrix" => "shared memory",
        "cp" | "prefetch" | "prefetchu" => "asynchronous copies",
        "mma" | "wmma" | "wgmma" => "tensor cores",
        "bar" | "barrier" | "mbarrier" | "fence" | "membar" => "synchronisation",
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" => "control",
        "mov" | "cvta" | "cvt" | "selp" | "prmt" | "shfl" => "moves and conversions",
        "setp" | "set" => "comparisons",
        "ex2" | "lg2" | "sin" | "cos" | "rsqrt" | "rcp" | "sqrt" | "tanh" | "div" if float => {
            "special functions"
        }
        _ if float => "floating point",
        _ => "integers",
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn instructions_are_sorted_by_what_they_do() {
        let kinds = [
            ("ld.global.v4.f32", "global memory"),
            ("ld.shared::cta.f32", "shared memory"),
            ("fma.rn.f32", "floating point"),
            ("mad.lo.s32", "integers"),
            ("rcp.approx.ftz.f32", "special functions"),
            ("div.s32", "integers"),
            (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
                "tensor cores",
            ),
        ];
        for (opcode, expected) in kinds {
            assert_eq!(kind(opcode), expected, "{opcode}");
        }
    }
}
