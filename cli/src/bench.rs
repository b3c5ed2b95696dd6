//! `tilewright bench`: our kernels against cuBLAS in one run.

use std::fmt::Write as _;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::gpu::cublas::Cublas;
use tilewright::gpu::{Gpu, TimeOptions};
use tilewright::host::{Comparison, compare};
use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::{DataType, Gemm, Operands, ProblemError};

use crate::devices::{self, DevicesArgs};
use crate::error::{CliError, Outcome, finish};
use crate::gemm::{self, select};
use crate::layers::{self, Part};
use crate::tune::at_least_one;
use crate::{memory, output};

/// How long both sides run before their times are taken. The chip is idle and cool while operands are drawn on the host, and would run at clocks that long work
/// does not have.
pub(crate) const WARM_FOR: Duration = Duration::from_secs(1);

/// How long a slice lasts, in milliseconds: an H100 needs half of that until its clock has settled at what a product's power allows.
pub(crate) const SLICE: u32 = 100;

/// A set of shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Set {
    /// Layers of four language models by 1 to 8192 tokens, 378 products
    Llm,
}

/// Time our kernels and cuBLAS in one run on a GPU, every row checked
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Element types (with `--set`, bf16 and e4m3)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "f32",
        default_value_if("set", ArgPredicate::IsPresent, "bf16,e4m3")
    )]
    dtype: Vec<String>,
    /// Element type of C (the usual one of each element type by default)
    #[arg(long)]
    ctype: Option<String>,
    /// Shapes m x n x k
    #[arg(long, value_delimiter = ',', value_parser = shape, default_value = "1000x1000x1000,2048x2048x2048,4096x4096x4096,4095x4097x4093")]
    shapes: Vec<[u64; 3]>,
    /// A set of shapes, in place of `--shapes`
    #[arg(long, value_enum, conflicts_with = "shapes")]
    set: Option<Set>,
    /// Only part I of N: every N-th row, from the I-th on
    #[arg(long, value_name = "I/N", value_parser = Part::parse)]
    part: Option<Part>,
    /// Transposes: nn, nt, tn, tt (with `--set`, nt)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "nn",
        default_value_if("set", ArgPredicate::IsPresent, "nt")
    )]
    trans: Vec<String>,
    /// Plans: auto, or names that `tilewright plans` lists
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    plan: Vec<String>,
    #[command(flatten)]
    schedule: select::ScheduleArgs,
    /// Number of GEMMs of each shape, one after the other
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = gemm::count)]
    batch: u64,
    /// The matrices begin at multiples of this many bytes and, below 16, of no more (C of at least an element)
    #[arg(long, value_name = "BYTES", default_value_t = 16, allow_negative_numbers = true, value_parser = gemm::alignment)]
    align: u32,
    /// Times taken of each
    #[arg(long, default_value_t = 20, value_parser = at_least_one)]
    repeats: usize,
    /// Milliseconds of a timing slice of either side (0: the two alternate call by call)
    #[arg(long, value_name = "MS", default_value_t = SLICE, value_parser = slice, conflicts_with = "devices")]
    slice: u32,
    #[command(flatten)]
    over: DevicesArgs,
    /// Seed of the random operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

/// Milliseconds of a timing slice.
pub(crate) fn slice(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(ms) if ms <= 10_000 => Ok(ms),
        _ => Err("give a whole number of milliseconds, 0 to 10000".to_owned()),
    }
}

/// Sizes as `MxNxK`.
pub(crate) fn shape(text: &str) -> Result<[u64; 3], String> {
    let parts: Vec<u64> = text
        .split('x')
        .map(|part| {
            part.parse()
                .map_err(|error: ParseIntError| match error.kind() {
                    IntErrorKind::PosOverflow => format!("{part} is too large"),
                    _ => "give MxNxK".to_owned(),
                })
        })
        .collect::<Result<_, _>>()?;
    match parts[..] {
        [m, n, k] if m > 0 && n > 0 && k > 0 => Ok([m, n, k]),
        _ => Err("give MxNxK, each at least 1".to_owned()),
    }
}

pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    finish(bench(args), args.json)
}

fn bench(args: &BenchArgs) -> Outcome {
    let problems = args.problems()?;
    select::findings(args.schedule.findings.as_deref())?;
    if let Some(count) = args.over.count() {
        let asked = devices::Bench {
            args: &args.over,
            problems: &problems,
            plans: &args.plan,
            schedule: &args.schedule,
            repeats: args.repeats,
            seed: args.seed,
            json: args.json,
        };
        return devices::bench(&asked, count);
    }
    let gpu = Gpu::open(0)
        .map_err(|e| CliError::new(e.code(), format!("bench measures on a GPU: {e}")))?;
    let cublas = match Cublas::new(&gpu) {
        Ok(cublas) => Some(cublas),
        Err(e) => {
            eprintln!("cuBLAS: {e}; our times only");
            None
        }
    };
    let arch = select::newest(&gpu)?;
    let mut rows = Vec::new();
    let mut failed = false;
    if !args.json {
        output::print_line(&format!(
            "{}, {arch}; times in ms, median of {}{}",
            gpu.info().name,
            args.repeats,
            args.particulars()
        ));
        output::print_line(
            "dtype    trans        m      n      k  plan                                       ours  TFLOP/s   cuBLAS  TFLOP/s  ratio",
        );
    }
    for (data_type, problem) in &problems {
        for plan in &args.plan {
            let row = Row {
                data_type: *data_type,
                problem,
                plan,
                outcome: args.row(&gpu, cublas.as_ref(), plan, *data_type, problem, arch),
            };
            failed |= !row.passed();
            if !args.json {
                output::print_line(&row.line());
            }
            rows.push(row.to_json());
        }
    }
    if args.json {
        let version = cublas
            .as_ref()
            .and_then(|c| c.version().ok())
            .map(|(a, b, c)| format!("{a}.{b}.{c}"));
        output::print_json(
            &json!({"device": gpu.info().name, "arch": arch.to_string(), "cublas": version, "rows": rows}),
        );
    }
    Ok(ExitCode::from(u8::from(failed)))
}

impl BenchArgs {
    /// Everything to measure. What is wrong with the arguments themselves ends the command before a GPU is asked for.
    fn problems(&self) -> Result<Vec<(DataType, Gemm)>, CliError> {
        let wrong = |e: ProblemError| CliError::usage(e.code(), e.to_string());
        for name in self.plan.iter().filter(|name| *name != "auto") {
            name.parse::<Config>()
                .map_err(|e| CliError::usage(e.code(), e.to_string()))?;
        }
        let shapes = match self.set {
            Some(Set::Llm) => layers::products().collect(),
            None => self.shapes.clone(),
        };
        let mut all = Vec::new();
        for name in &self.dtype {
            let data_type = select::data_type(name)?;
            let output = self.ctype.as_deref();
            let output = output
                .map(|name| gemm::output_type(name, data_type))
                .transpose()?;
            for &[m, n, k] in &shapes {
                for trans in &self.trans {
                    let operands: Operands = trans.parse().map_err(wrong)?;
                    let mut problem = Gemm::packed(m, n, k, operands);
                    problem.output = output;
                    problem.batch = gemm::batched(&problem, self.batch, [None; 3]);
                    problem.alignment = gemm::aligned(&problem, self.align, data_type);
                    problem.placed(data_type).map_err(wrong)?;
                    all.push((data_type, problem));
                }
            }
        }
        Ok(match self.part {
            Some(part) => part.take(all),
            None => all,
        })
    }

    /// What holds for all rows and is not as usual.
    fn particulars(&self) -> String {
        let mut text = String::new();
        if let Some(name) = &self.ctype {
            let _ = write!(text, "; C in {name}");
        }
        if self.batch > 1 {
            let _ = write!(text, "; {} products at once", self.batch);
        }
        if self.align < 16 {
            let _ = write!(text, "; matrices at multiples of {} bytes", self.align);
        }
        text
    }

    /// One comparison; a refusal belongs to its row.
    fn row(
        &self,
        gpu: &Gpu,
        cublas: Option<&Cublas>,
        plan: &str,
        data_type: DataType,
        problem: &Gemm,
        arch: Arch,
    ) -> Result<Comparison, CliError> {
        let plan = select::plan(plan, &self.schedule, data_type, problem, arch, Some(gpu))?;
        let kernel = plan
            .emit(problem.operands, arch)
            .map_err(|e| CliError::new(e.code(), e.to_string()))?;
        let options = TimeOptions {
            repeats: self.repeats,
            warm_for: WARM_FOR,
            slice: Duration::from_millis(self.slice.into()),
            ..TimeOptions::default()
        };
        let plan = &plan;
        memory::for_rows(problem, data_type)?;
        compare(gpu, cublas, plan, &kernel, problem, options, self.seed)
            .map_err(|e| CliError::new(e.code(), e.to_string()))
    }
}

/// One row of the table.
struct Row<'a> {
    data_type: DataType,
    problem: &'a Gemm,
    /// The plan as it was asked for.
    plan: &'a str,
    outcome: Result<Comparison, CliError>,
}

impl Row<'_> {
    /// Right numbers. A plan that is refused gives none, and so does not pass; a product that cuBLAS refuses only lacks its ratio.
    fn passed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|row| row.passed)
    }

    fn tflops(&self, ms: f64) -> f64 {
        let p = self.problem;
        2.0 * p.m as f64 * p.n as f64 * p.k as f64 * p.batch.count as f64 / ms / 1e9
    }

    fn line(&self) -> String {
        let p = self.problem;
        let (name, result) = match &self.outcome {
            Ok(row) => (row.plan.as_str(), self.figures(row)),
            Err(refusal) => (self.plan, format!("not run: {}", refusal.message())),
        };
        format!(
            "{:<8} {:<5} {:>8} {:>6} {:>6}  {name:<40} {result}",
            self.data_type.to_string(),
            p.operands.to_string(),
            p.m,
            p.n,
            p.k
        )
    }

    fn figures(&self, row: &Comparison) -> String {
        let theirs = row.cublas_ms.map_or_else(
            || format!("{:>8} {:>8} {:>6}", "-", "-", "-"),
            |ms| {
                format!(
                    "{ms:>8.4} {:>8.1} {:>6.3}  {}",
                    self.tflops(ms),
                    row.ratio().unwrap_or(f64::NAN),
                    row.cublas_way.as_deref().unwrap_or_default()
                )
            },
        );
        let verdict = if row.passed {
            String::new()
        } else {
            format!(
                "  WRONG: error {:.2e} > {:.2e}",
                row.max_rel_err, row.tolerance
            )
        };
        format!(
            "{:>8.4} {:>8.1} {theirs}{verdict}",
            row.ours_ms,
            self.tflops(row.ours_ms)
        )
    }

    fn to_json(&self) -> Value {
        let p = self.problem;
        let mut value = json!({
            "dtype": self.data_type.to_string(),
            "ctype": p.result(self.data_type).to_string(),
            "trans": p.operands.to_string(),
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "batch": p.batch.count,
            "plan": self.plan,
            "passed": self.passed(),
        });
        let more = match &self.outcome {
            Ok(row) => json!({
                "plan": row.plan,
                "ours_ms": row.ours_ms,
                "ours_tflops": self.tflops(row.ours_ms),
                "cublas_ms": row.cublas_ms,
                "cublas_way": row.cublas_way,
                "cublas_tflops": row.cublas_ms.map(|ms| self.tflops(ms)),
                "ratio": row.ratio(),
                "max_rel_err": row.max_rel_err,
                "tolerance": row.tolerance,
            }),
            Err(refusal) => refusal.to_json(),
        };
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    }
}
