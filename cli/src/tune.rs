//! `tilewright tune`: measures plans on the GPU and keeps what it finds.
//!
//! ```text
//! problems ──▶ candidates, best by the model first ──▶ the first N: emit, run, check, time ──▶ table, findings file
//! ```
//!
//! Every result is checked against float64 before its time counts: a kernel that is fast and wrong is reported and not kept. The file
//! is read before anything is measured, so that a file of another format is found at once and left alone; what was measured goes
//! into what it holds by then, and the whole is written at once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::codegen::gemm::{DataType, Gemm, Operands, ProblemError, Schedule};
use tilewright::codegen::select::{Candidate, Finding, Findings, ProblemClass, Timed, candidates};
use tilewright::gpu::{Gpu, TimeOptions};
use tilewright::host::{compare, findings_to_json};

use crate::bench::shape;
use crate::error::{CliError, Outcome, finish};
use crate::gemm::select;
use crate::{memory, output};

/// Measure plans on a GPU and keep the fastest of each problem in a file that `gemm` and `bench` choose by
#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// Element types
    #[arg(long, value_delimiter = ',', default_value = "f16")]
    dtype: Vec<String>,
    /// Shapes m x n x k
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = shape,
        default_value = "1000x1000x1000,1024x1024x1024,2048x2048x2048,4096x4096x4096,4095x4097x4093,512x512x65536"
    )]
    shapes: Vec<[u64; 3]>,
    /// Transposes: nn, nt, tn, tt
    #[arg(long, value_delimiter = ',', default_value = "nn")]
    trans: Vec<String>,
    /// How many candidates of each problem to measure, the best by the model of time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    top: usize,
    /// Times taken of each
    #[arg(long, default_value_t = 20, value_parser = at_least_one)]
    repeats: usize,
    /// Seed of the random operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to keep the findings in; what it holds of other problems stays
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

/// A number of times or candidates.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("give a whole number, at least 1".to_owned()),
    }
}

pub(crate) fn run(args: &TuneArgs) -> ExitCode {
    finish(tune(args), args.json)
}

/// One candidate, measured.
struct Row {
    plan: String,
    schedule: Schedule,
    /// What the model said, in milliseconds.
    estimated: f64,
    outcome: Result<Measured, CliError>,
}

/// What a measurement gave.
struct Measured {
    milliseconds: f64,
    max_rel_err: f64,
    tolerance: f64,
    passed: bool,
}

/// All candidates of one problem.
struct Table {
    data_type: DataType,
    problem: Gemm,
    rows: Vec<Row>,
}

fn tune(args: &TuneArgs) -> Outcome {
    let problems = args.problems()?;
    output::named(&args.out)?;
    existing(&args.out)?;
    let gpu = Gpu::open(0)
        .map_err(|e| CliError::new(e.code(), format!("tune measures on a GPU: {e}")))?;
    let arch = select::newest(&gpu)?;
    let machine = select::machine(arch, Some(&gpu));
    let mut work = Vec::new();
    for (data_type, problem) in problems {
        let mut best =
            candidates(data_type, &problem, arch, &machine).map_err(|e| select::refused(&e))?;
        best.truncate(args.top);
        work.push((data_type, problem, best));
    }
    let bar = progress(work.iter().map(|w| w.2.len()).sum());
    let (major, minor) = gpu.info().driver_version;
    let driver = format!("{major}.{minor}");
    let mut findings = existing(&args.out)?;
    let mut tables: Vec<Table> = Vec::new();
    for (data_type, problem, best) in work {
        let measure = |c: &Candidate| {
            bar.set_message(format!(
                "{data_type} {}x{}x{} {}",
                problem.m,
                problem.n,
                problem.k,
                c.plan.name()
            ));
            let measured = args.measure(&gpu, c, &problem, arch);
            bar.inc(1);
            measured
        };
        let table = Table::new(data_type, problem, &best, measure);
        // After each problem: what ends the command later loses nothing.
        if let Some(finding) = table.finding(&machine.name, &driver, &today()) {
            findings.insert(finding);
            output::write_atomically(&args.out, findings_to_json(&findings).as_bytes())?;
        }
        tables.push(table);
    }
    bar.finish_and_clear();
    output::write_atomically(&args.out, findings_to_json(&findings).as_bytes())?;
    if args.json {
        let rows: Vec<Value> = tables.iter().map(Table::to_json).collect();
        output::print_json(&json!({
            "device": machine.name,
            "arch": arch.to_string(),
            "out": args.out.display().to_string(),
            "entries": findings.all().len(),
            "problems": rows,
        }));
    } else {
        let mut text = format!(
            "{}, {arch}; times in ms, median of {}\n",
            machine.name, args.repeats
        );
        for table in &tables {
            text.push_str(&table.to_text());
        }
        let _ = write!(
            text,
            "\n{} problems in {}",
            findings.all().len(),
            args.out.display()
        );
        output::print_line(&text);
    }
    let passed = tables.iter().all(Table::passed);
    Ok(ExitCode::from(u8::from(!passed)))
}

/// What a file of findings holds; nothing if there is none yet.
fn existing(path: &Path) -> Result<Findings, CliError> {
    match path.try_exists() {
        Ok(false) => Ok(Findings::default()),
        Ok(true) => select::load(path, ""),
        Err(e) => Err(CliError::io(path, &e)),
    }
}

fn progress(all: usize) -> ProgressBar {
    let bar = ProgressBar::new(all as u64);
    if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

impl TuneArgs {
    fn problems(&self) -> Result<Vec<(DataType, Gemm)>, CliError> {
        let mut all = Vec::new();
        for name in &self.dtype {
            let data_type = select::data_type(name)?;
            for &[m, n, k] in &self.shapes {
                for trans in &self.trans {
                    let operands: Operands = trans
                        .parse()
                        .map_err(|e: ProblemError| CliError::usage(e.code(), e.to_string()))?;
                    all.push((data_type, Gemm::packed(m, n, k, operands)));
                }
            }
        }
        Ok(all)
    }

    fn measure(
        &self,
        gpu: &Gpu,
        c: &Candidate,
        problem: &Gemm,
        arch: Arch,
    ) -> Result<Measured, CliError> {
        let refused =
            |e: tilewright::codegen::gemm::PlanError| CliError::new(e.code(), e.to_string());
        let plan = c.plan.adapt(problem, c.schedule).map_err(refused)?;
        let kernel = plan.emit(problem.operands, arch).map_err(refused)?;
        memory::for_rows(problem, plan.data_type())?;
        let options = TimeOptions {
            repeats: self.repeats,
            // What was done on the host before let the clocks fall.
            warm_for: crate::bench::WARM_FOR,
            ..TimeOptions::default()
        };
        let row = compare(
            gpu,
            None,
            plan.as_ref(),
            &kernel,
            problem,
            options,
            self.seed,
        )
        .map_err(|e| CliError::new("gpu", e.to_string()))?;
        Ok(Measured {
            milliseconds: row.ours_ms,
            max_rel_err: row.max_rel_err,
            tolerance: row.tolerance,
            passed: row.passed,
        })
    }
}

impl Table {
    /// Measures the candidates of a problem and puts those that are right in order of their times, the others behind them.
    fn new(
        data_type: DataType,
        problem: Gemm,
        candidates: &[Candidate],
        mut measure: impl FnMut(&Candidate) -> Result<Measured, CliError>,
    ) -> Self {
        let mut rows: Vec<Row> = candidates
            .iter()
            .map(|c| Row {
                plan: c.plan.name(),
                schedule: c.schedule,
                estimated: c.estimate.seconds * 1e3,
                outcome: measure(c),
            })
            .collect();
        let time = |row: &Row| row.time().unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
        Self {
            data_type,
            problem,
            rows,
        }
    }

    /// Every candidate that was measured was right.
    fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.time().is_some())
    }

    /// What there is to keep; nothing if no candidate was right.
    fn finding(&self, device: &str, driver: &str, date: &str) -> Option<Finding> {
        let timed = self.rows.iter().filter_map(|row| {
            Some(Timed {
                plan: row.plan.clone(),
                schedule: row.schedule,
                milliseconds: row.time()?,
            })
        });
        let candidates: Vec<_> = timed.collect();
        (!candidates.is_empty()).then(|| Finding {
            device: device.to_owned(),
            driver: driver.to_owned(),
            date: date.to_owned(),
            class: ProblemClass::of(self.data_type, &self.problem),
            candidates,
        })
    }

    fn tflops(&self, ms: f64) -> f64 {
        let p = &self.problem;
        2.0 * p.m as f64 * p.n as f64 * p.k as f64 / ms / 1e9
    }

    fn to_text(&self) -> String {
        let p = &self.problem;
        let mut text = format!(
            "\n{} {} {}x{}x{}\n  {:<26} {:>5} {:>4} {:>10} {:>10} {:>9}\n",
            self.data_type,
            p.operands,
            p.m,
            p.n,
            p.k,
            "plan",
            "split",
            "pack",
            "estimated",
            "measured",
            "TFLOP/s"
        );
        for row in &self.rows {
            let result = match &row.outcome {
                Ok(m) if m.passed => {
                    format!(
                        "{:>10.4} {:>9.1}",
                        m.milliseconds,
                        self.tflops(m.milliseconds)
                    )
                }
                Ok(m) => format!(
                    "     WRONG: error {:.2e} > {:.2e}, not kept",
                    m.max_rel_err, m.tolerance
                ),
                Err(e) => format!("     not run: {}", e.message()),
            };
            let pack = if row.schedule.pack { "yes" } else { "-" };
            let _ = writeln!(
                text,
                "  {:<26} {:>5} {pack:>4} {:>10.4} {result}",
                row.plan, row.schedule.split, row.estimated
            );
        }
        text
    }

    fn to_json(&self) -> Value {
        let p = &self.problem;
        let rows: Vec<Value> = self.rows.iter().map(|row| row.to_json(self)).collect();
        json!({
            "dtype": self.data_type.to_string(),
            "trans": p.operands.to_string(),
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "widths": p.widths(self.data_type),
            "passed": self.passed(),
            "candidates": rows,
        })
    }
}

impl Row {
    /// Milliseconds, if the result was right, to the nanosecond.
    fn time(&self) -> Option<f64> {
        let measured = self.outcome.as_ref().ok().filter(|m| m.passed)?;
        let ms = (measured.milliseconds * 1e6).round() / 1e6;
        (ms.is_finite() && ms > 0.0).then_some(ms)
    }

    fn to_json(&self, table: &Table) -> Value {
        let mut value = json!({
            "plan": self.plan,
            "split": self.schedule.split,
            "pack": self.schedule.pack,
            "estimated_ms": self.estimated,
            "ms": self.time(),
            "tflops": self.time().map(|ms| table.tflops(ms)),
            "passed": self.time().is_some(),
        });
        let more = match &self.outcome {
            Ok(m) => json!({"max_rel_err": finite(m.max_rel_err), "tolerance": m.tolerance}),
            Err(e) => e.to_json(),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    }
}

/// A number, or null: JSON has no infinity.
fn finite(v: f64) -> Value {
    if v.is_finite() { json!(v) } else { Value::Null }
}

/// The day, in UTC, as `2026-11-21`.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let (year, month, day) = civil(now.map_or(0, |d| d.as_secs() / 86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    // Years from March, so that the leap day is the last: eras of 400 years have 146,097 days.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year + 400 * era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright::codegen::select::Machine;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        assert_eq!(civil(0), (1970, 1, 1));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..60_000 {
            assert_eq!(civil(days), (year, month, day), "{days}");
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    fn table(measure: impl FnMut(&Candidate) -> Result<Measured, CliError>) -> Table {
        let operands: Operands = "nn".parse().expect("nn");
        let problem = Gemm::packed(1024, 1024, 1024, operands);
        let machine = Machine::for_arch(Arch(90));
        let mut all = candidates(DataType::F16, &problem, Arch(90), &machine).expect("plans");
        all.truncate(4);
        Table::new(DataType::F16, problem, &all, measure)
    }

    fn measured(milliseconds: f64, passed: bool) -> Measured {
        Measured {
            milliseconds,
            max_rel_err: if passed { 0.0 } else { f64::INFINITY },
            tolerance: 1e-3,
            passed,
        }
    }

    #[test]
    fn only_right_results_are_kept_and_the_fastest_comes_first() {
        let mut call = 0;
        let table = table(|_| {
            call += 1;
            match call {
                1 => Ok(measured(0.5, true)),
                2 => Ok(measured(0.1, false)),
                3 => Err(CliError::new("gpu", "lost")),
                _ => Ok(measured(0.25, true)),
            }
        });
        assert!(!table.passed());
        let finding = table
            .finding("gpu", "13.0", "2026-11-21")
            .expect("two are right");
        let times: Vec<_> = finding
            .candidates
            .iter()
            .map(|c| c.milliseconds.to_bits())
            .collect();
        assert_eq!(times, [0.25_f64.to_bits(), 0.5_f64.to_bits()]);
        assert!(table.to_text().contains("WRONG") && table.to_text().contains("not run: lost"));
        let json = table.to_json();
        assert_eq!(json["candidates"][0]["ms"], 0.25);
        assert!(json["candidates"][2]["ms"].is_null(), "{json}");
        // What is kept is what is read.
        let mut findings = Findings::default();
        findings.insert(finding);
        let text = findings_to_json(&findings);
        assert_eq!(
            tilewright::host::findings_from_json(&text).expect("its own text"),
            findings
        );
    }

    #[test]
    fn nothing_is_kept_if_nothing_was_right() {
        for (milliseconds, passed) in [(0.1, false), (0.0, true), (f64::NAN, true)] {
            let table = table(|_| Ok(measured(milliseconds, passed)));
            assert!(table.finding("gpu", "13.0", "2026-11-21").is_none());
            assert!(!table.passed());
        }
    }
}
