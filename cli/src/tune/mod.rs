//! `tilewright tune`: measures plans on the GPU and keeps what it finds.
//!
//! ```text
//! problems ──▶ candidates, best by the model first ──▶ some of them: emit, run, check, time in interleaved slices ──▶ table, findings file
//! ```
//!
//! Every result is checked against float64 before its time counts: a kernel that is fast and wrong is reported and not kept. The file
//! is read before anything is measured, so that a file of another format is found at once and left alone; what was measured goes
//! into what it holds by then, and the whole is written at once.

mod date;
mod measure;
mod random;
mod table;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tilewright::gpu::{Gpu, TimeOptions, ptxas};
use tilewright::host::findings_to_json;
use tilewright::kernels::gemm::{DataType, Gemm, Operands, ProblemError};
use tilewright::kernels::select::{Candidate, Findings, shortlist};

use crate::bench::{SLICE, shape, slice};
use crate::error::{CliError, Outcome, finish};
use crate::gemm::select;
use crate::output;
use measure::Measurement;
use table::Table;

/// The shapes that are measured unless others are asked for.
const SHAPES: [[u64; 3]; 6] = [
    [1000, 1000, 1000],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [4095, 4097, 4093],
    [512, 512, 65_536],
];

/// Candidates of a problem that are measured unless something else is asked for, and splits of each plan.
const TOP: usize = 10;
const SPLITS: usize = 2;

/// Candidates that `--within` leaves, however bad their estimates.
const AT_LEAST: usize = 4;

/// How often the file of findings is written.
const SAVE_EACH: Duration = Duration::from_secs(2);

/// Measure plans on a GPU and save their times to a file from which `gemm` and `bench` choose
#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// Element types
    #[arg(long, value_delimiter = ',', default_value = "f16")]
    dtype: Vec<String>,
    /// Shapes m x n x k (1000x1000x1000, 1024x1024x1024, 2048x2048x2048, 4096x4096x4096, 4095x4097x4093 and 512x512x65536 by default)
    #[arg(long, value_delimiter = ',', value_parser = shape)]
    shapes: Vec<[u64; 3]>,
    /// Measure N random shapes of each type instead of `--shapes`; `--seed` determines them
    #[arg(long, value_name = "N", conflicts_with = "shapes", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    random: Option<u32>,
    /// Transposes: nn, nt, tn, tt (nn by default, all four of random shapes)
    #[arg(long, value_delimiter = ',')]
    trans: Vec<String>,
    /// Measure at most N candidates of each problem, those with the shortest estimates (10 by default; no limit with `--within`)
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    top: Option<usize>,
    /// Measure the candidates whose estimate is at most this many times the best one, and at least 4
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    within: Option<f64>,
    /// Measure at most N split-K counts of each plan, packed and unpacked separately (2 by default; no limit with `--within`)
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    splits: Option<usize>,
    /// Timed runs of each candidate
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    /// Milliseconds of a timing slice of a candidate (0: they alternate call by call)
    #[arg(long, value_name = "MS", default_value_t = SLICE, value_parser = slice)]
    slice: u32,
    /// Start no new problem after this many seconds of measuring
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    limit: Option<Duration>,
    /// Seed of the random shapes and operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The file to keep the findings in; what it holds of other problems stays
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Write every candidate with its estimate and its times to this file, problem by problem
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
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

/// A multiple of the best time.
fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor >= 1.0 => Ok(factor),
        _ => Err("give a finite number, at least 1".to_owned()),
    }
}

/// A length of time.
fn seconds(text: &str) -> Result<Duration, String> {
    at_least_one(text).map(|seconds| Duration::from_secs(seconds as u64))
}

pub(crate) fn run(args: &TuneArgs) -> ExitCode {
    finish(tune(args), args.json)
}

fn tune(args: &TuneArgs) -> Outcome {
    let problems = args.problems()?;
    let outputs = [Some(&args.out), args.csv.as_ref()];
    let outputs: Vec<&Path> = outputs
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    output::distinct(&outputs)?;
    existing(&args.out)?;
    let gpu = Gpu::open(0)
        .map_err(|e| CliError::new(e.code(), format!("tune measures on a GPU: {e}")))?
        .keeping_modules(ptxas::find().ok());
    let arch = select::newest(&gpu)?;
    let machine = select::machine(arch, Some(&gpu));
    let (major, minor) = gpu.info().driver_version;
    let driver = format!("{major}.{minor}");
    let today = date::today();
    let mut measurement = Measurement {
        gpu: &gpu,
        arch,
        machine: &machine,
        options: TimeOptions {
            repeats: args.repeats as usize,
            warm_for: measure::WARM_FOR,
            slice: Duration::from_millis(args.slice.into()),
            ..TimeOptions::default()
        },
        seed: args.seed,
        until: None,
    };
    let asked = problems.len();
    let work = measurement.prepare(problems, |all| args.chosen(all))?;
    let mut csv = match &args.csv {
        Some(path) => Some(Csv::create(path, &machine.name, &driver, &today)?),
        None => None,
    };
    // A limit beyond what the clock counts is none.
    measurement.until = args
        .limit
        .and_then(|limit| Instant::now().checked_add(limit));
    let bar = progress(work.candidates());
    let mut findings = existing(&args.out)?;
    let mut saved = Instant::now();
    let mut tables: Vec<Table> = Vec::new();
    let outcome = measurement.run(&work, |table| {
        bar.set_message(table.title());
        bar.inc(table.rows.len() as u64);
        if let Some(finding) = table.finding(&machine.name, &driver, &today) {
            findings.insert(finding);
        }
        // What ends the command later loses little.
        if saved.elapsed() >= SAVE_EACH {
            output::write_atomically(&args.out, findings_to_json(&findings).as_bytes())?;
            saved = Instant::now();
        }
        if let Some(csv) = &mut csv {
            csv.write(&table)?;
        }
        tables.push(table);
        Ok(())
    });
    bar.finish_and_clear();
    // Also if something went wrong: what was measured by then is kept.
    output::write_atomically(&args.out, findings_to_json(&findings).as_bytes())?;
    outcome?;
    if tables.len() < asked {
        eprintln!(
            "--limit was reached: {} of {asked} problems were measured",
            tables.len()
        );
    }
    if args.json {
        let rows: Vec<Value> = tables.iter().map(Table::to_json).collect();
        output::print_json(&json!({
            "device": machine.name,
            "arch": arch.to_string(),
            "out": args.out.display().to_string(),
            "entries": findings.all().len(),
            "left_out": asked - tables.len(),
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
        let kept = findings.all().len();
        let _ = write!(text, "\n{kept} problems in {}", args.out.display());
        output::print_line(&text);
    }
    let passed = !tables.is_empty() && tables.iter().all(Table::passed);
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

/// A file with one line a candidate.
struct Csv<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> Csv<'p> {
    fn create(path: &'p Path, device: &str, driver: &str, date: &str) -> Result<Self, CliError> {
        output::named(path)?;
        let file = File::create(path).map_err(|e| CliError::io(path, &e))?;
        let mut csv = Self { path, file };
        csv.append(&format!(
            "# {device}, driver {driver}, {date}; times in microseconds: median, quartiles\n{}\n",
            table::CSV_COLUMNS
        ))?;
        Ok(csv)
    }

    /// All candidates of a problem, in the file when this returns.
    fn write(&mut self, table: &Table) -> Result<(), CliError> {
        self.append(&table.to_csv())
    }

    fn append(&mut self, text: &str) -> Result<(), CliError> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|e| CliError::io(self.path, &e))
    }
}

impl TuneArgs {
    /// The problems, a type at a time for given shapes; of random ones the types alternate, so that a time limit affects all equally.
    fn problems(&self) -> Result<Vec<(DataType, Gemm)>, CliError> {
        let transposes = self.transposes()?;
        let types = self.dtype.iter().map(|name| select::data_type(name));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        if let Some(count) = self.random.map(|count| count as usize) {
            let of_type: Vec<_> = types
                .iter()
                .map(|&t| random::problems(t, &transposes, count, self.seed))
                .collect();
            let slices =
                (0..count).flat_map(|i| types.iter().zip(&of_type).map(move |(&t, p)| (t, p[i])));
            return Ok(slices.collect());
        }
        let shapes = if self.shapes.is_empty() {
            &SHAPES[..]
        } else {
            &self.shapes
        };
        let mut all = Vec::new();
        for data_type in types {
            for &[m, n, k] in shapes {
                for &operands in &transposes {
                    all.push((data_type, Gemm::packed(m, n, k, operands)));
                }
            }
        }
        Ok(all)
    }

    fn transposes(&self) -> Result<Vec<Operands>, CliError> {
        if self.trans.is_empty() {
            return Ok(match self.random {
                Some(_) => Operands::ALL.to_vec(),
                None => Operands::ALL[..1].to_vec(),
            });
        }
        let parse = |text: &String| {
            text.parse()
                .map_err(|e: ProblemError| CliError::usage(e.code(), e.to_string()))
        };
        self.trans.iter().map(parse).collect()
    }

    /// The candidates to measure, those with the shortest estimates first: also of plans that are not chosen before they have been measured.
    fn chosen(&self, all: Vec<Candidate>) -> Vec<Candidate> {
        let Some(factor) = self.within else {
            return shortlist(all, self.splits.unwrap_or(SPLITS), self.top.unwrap_or(TOP));
        };
        let mut all = shortlist(all, self.splits.unwrap_or(usize::MAX), usize::MAX);
        if let Some(best) = all.first() {
            let most = factor * best.estimate.seconds;
            let near = all.iter().filter(|c| c.estimate.seconds <= most).count();
            all.truncate(near.max(AT_LEAST));
        }
        all.truncate(self.top.unwrap_or(usize::MAX));
        all
    }
}
