//! `tilewright bench`: our kernels against cuBLAS in one run.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tilewright::codegen::plan::{Gemm, Operands, PlanError, ProblemError};
use tilewright::gpu::TimeOptions;
use tilewright::gpu::cublas::Cublas;
use tilewright::host::{Comparison, compare};

use crate::error::{CliError, Outcome, finish};
use crate::gemm::select::{self, Device};
use crate::output;

/// Time our kernels and cuBLAS in one run on a GPU, every row checked
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Element types
    #[arg(long, value_delimiter = ',', default_value = "f32")]
    dtype: Vec<String>,
    /// Shapes m x n x k
    #[arg(long, value_delimiter = ',', value_parser = shape, default_value = "1000x1000x1000,2048x2048x2048,4096x4096x4096,4095x4097x4093")]
    shapes: Vec<[u64; 3]>,
    /// Transposes: nn, nt, tn, tt
    #[arg(long, value_delimiter = ',', default_value = "nn")]
    trans: Vec<String>,
    /// Plans: auto, or names that `tilewright plans` lists
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    plan: Vec<String>,
    #[command(flatten)]
    schedule: select::ScheduleArgs,
    /// Times taken of each
    #[arg(long, default_value_t = 20)]
    repeats: usize,
    /// Seed of the random operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

fn shape(text: &str) -> Result<[u64; 3], String> {
    let parts: Vec<u64> = text
        .split('x')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| "give MxNxK".to_owned())?;
    match parts[..] {
        [m, n, k] if m > 0 && n > 0 && k > 0 => Ok([m, n, k]),
        _ => Err("give MxNxK, each at least 1".to_owned()),
    }
}

pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    finish(bench(args), args.json)
}

fn bench(args: &BenchArgs) -> Outcome {
    let Some(gpu) = select::gpu(Device::Gpu)? else {
        return Err(CliError::new("no_device", "bench needs a GPU"));
    };
    let cublas = match Cublas::new(&gpu) {
        Ok(cublas) => Some(cublas),
        Err(e) => {
            eprintln!("cuBLAS: {e}; our times only");
            None
        }
    };
    let arch = select::arch("auto", Some(&gpu))?;
    let mut rows = Vec::new();
    let mut failed = false;
    if !args.json {
        output::print_line(&format!(
            "{}, {arch}; times in ms, median of {}",
            gpu.info().name,
            args.repeats
        ));
        output::print_line(
            "dtype  trans        m      n      k  plan                     ours  TFLOP/s   cuBLAS  TFLOP/s  ratio",
        );
    }
    for name in &args.dtype {
        let data_type = select::data_type(name)?;
        for &[m, n, k] in &args.shapes {
            for trans in &args.trans {
                let operands: Operands = trans
                    .parse()
                    .map_err(|e: ProblemError| CliError::usage(e.code(), e.to_string()))?;
                let problem = Gemm::packed(m, n, k, operands);
                for plan in &args.plan {
                    let plan = select::plan(plan, args.schedule, data_type, &problem, arch)?;
                    let refused = |e: PlanError| CliError::new(e.code(), e.to_string());
                    let kernel = plan.emit(operands, arch).map_err(refused)?;
                    let options = TimeOptions {
                        repeats: args.repeats,
                        ..TimeOptions::default()
                    };
                    let row = compare(
                        &gpu,
                        cublas.as_ref(),
                        plan.as_ref(),
                        &kernel,
                        &problem,
                        options,
                        args.seed,
                    )
                    .map_err(|e| CliError::new("gpu", e.to_string()))?;
                    failed |= !row.passed;
                    if !args.json {
                        output::print_line(&line(name, &problem, &row));
                    }
                    rows.push(to_json(name, &problem, &row));
                }
            }
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

fn tflops(problem: &Gemm, ms: f64) -> f64 {
    2.0 * problem.m as f64 * problem.n as f64 * problem.k as f64 / ms / 1e9
}

fn line(dtype: &str, p: &Gemm, row: &Comparison) -> String {
    let theirs = row.cublas_ms.map_or_else(
        || format!("{:>8} {:>8} {:>6}", "-", "-", "-"),
        |ms| {
            format!(
                "{ms:>8.4} {:>8.1} {:>6.3}",
                tflops(p, ms),
                row.ratio().unwrap_or(f64::NAN)
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
        "{dtype:<6} {:<5} {:>8} {:>6} {:>6}  {:<22} {:>8.4} {:>8.1} {theirs}{verdict}",
        p.operands.to_string(),
        p.m,
        p.n,
        p.k,
        row.plan,
        row.ours_ms,
        tflops(p, row.ours_ms)
    )
}

fn to_json(dtype: &str, p: &Gemm, row: &Comparison) -> Value {
    json!({
        "dtype": dtype,
        "trans": p.operands.to_string(),
        "m": p.m,
        "n": p.n,
        "k": p.k,
        "plan": row.plan,
        "ours_ms": row.ours_ms,
        "ours_tflops": tflops(p, row.ours_ms),
        "cublas_ms": row.cublas_ms,
        "cublas_tflops": row.cublas_ms.map(|ms| tflops(p, ms)),
        "ratio": row.ratio(),
        "max_rel_err": row.max_rel_err,
        "tolerance": row.tolerance,
        "passed": row.passed,
    })
}
