//! `bench --devices`: a product over GPUs against its parts alone, and against NCCL and a product in sequence.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::host::devices::{Devices, DevicesComparison, compare_devices};
use tilewright::kernels::devices::Program;
use tilewright::kernels::gemm::{DataType, Gemm};

use super::{Chooser, DevicesArgs, refused, without_nccl};
use crate::error::{CliError, Outcome};
use crate::gemm::select::{self, ScheduleArgs};
use crate::{memory, output};

/// What `bench` was asked for.
pub(crate) struct Bench<'a> {
    pub(crate) args: &'a DevicesArgs,
    pub(crate) problems: &'a [(DataType, Gemm)],
    pub(crate) plans: &'a [String],
    pub(crate) schedule: &'a ScheduleArgs,
    pub(crate) repeats: usize,
    pub(crate) seed: u64,
    pub(crate) json: bool,
}

/// `bench --devices`: ours against its products alone, and against NCCL and a product in sequence.
pub(crate) fn bench(asked: &Bench<'_>, count: usize) -> Outcome {
    let devices = Devices::open(count)
        .map_err(|e| CliError::new(e.code(), format!("bench measures on GPUs: {e}")))?;
    let gpu = &devices.gpus()[0];
    let arch = select::newest(gpu)?;
    let mut rows = Vec::new();
    let mut failed_any = false;
    if !asked.json {
        output::print_line(&format!(
            "{count} x {}, {arch}; shards {}; times in ms, medians of timing slices",
            gpu.info().name,
            asked.args.shards
        ));
        output::print_line(
            "dtype    trans      m      n      k  plan                                        ours    alone  overhead  NCCL+ours  NCCL+cuBLAS",
        );
    }
    for (data_type, problem) in asked.problems {
        for plan in asked.plans {
            let chooser = Chooser {
                plan,
                schedule: asked.schedule,
                data_type: *data_type,
                arch,
                gpu: Some(gpu),
            };
            let row = asked.row(&devices, &chooser, problem);
            let passed = row.as_ref().is_ok_and(|(_, row)| row.passed);
            failed_any |= !passed;
            if !asked.json {
                output::print_line(&line(*data_type, problem, plan, &row));
            }
            rows.push(row_json(*data_type, problem, plan, &row));
        }
    }
    if asked.json {
        output::print_json(&json!({
            "device": gpu.info().name,
            "devices": count,
            "arch": arch.to_string(),
            "shards": asked.args.shards,
            "rows": rows,
        }));
    }
    Ok(ExitCode::from(u8::from(failed_any)))
}

/// The plans that were taken, and the figures.
type Row = Result<(String, DevicesComparison), CliError>;

impl Bench<'_> {
    fn row(&self, devices: &Devices, chooser: &Chooser<'_>, problem: &Gemm) -> Row {
        let placement = self.args.placement(problem, devices.gpus().len())?;
        let program = self
            .args
            .program(problem, &placement, chooser.data_type, Some(devices))?;
        let alone = Program::alone(problem, &placement).map_err(|e| refused(&e))?;
        memory::for_rows(problem, chooser.data_type)?;
        let product = chooser.kernels(program)?;
        let alone = chooser.kernels(alone)?;
        let mut plans: Vec<String> = product.plans().into_iter().map(|(plan, _)| plan).collect();
        plans.dedup();
        let proof = product.proof();
        if proof.is_some_and(|proof| proof.collectives > 0) {
            plans.insert(0, "NCCL".to_owned());
        }
        let row = compare_devices(
            devices,
            &placement,
            &product,
            &alone,
            self.args.on(self.repeats),
            self.seed,
        )
        .map_err(|e| without_nccl(&e))?;
        Ok((plans.join("+"), row))
    }
}

fn line(data_type: DataType, problem: &Gemm, plan: &str, row: &Row) -> String {
    let Gemm { m, n, k, .. } = *problem;
    let head = format!(
        "{:<8} {:<5} {m:>6} {n:>6} {k:>6}",
        data_type.to_string(),
        problem.operands.to_string()
    );
    let (plans, row) = match row {
        Ok(row) => row,
        Err(refusal) => return format!("{head}  {plan:<40} not run: {}", refusal.message()),
    };
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.4}"));
    let mut text = format!(
        "{head}  {plans:<40} {:>8.4} {:>8.4} {:>8.1}% {:>10} {:>12}",
        row.ours_ms,
        row.alone_ms,
        row.overhead() * 100.0,
        ms(row.nccl_ms),
        ms(row.nccl_cublas_ms)
    );
    if !row.passed {
        let _ = write!(
            text,
            "  WRONG: error {:.2e} > {:.2e}",
            row.max_rel_err, row.tolerance
        );
    }
    if let Some(missing) = &row.missing {
        let _ = write!(text, "  ({missing})");
    }
    text
}

fn row_json(data_type: DataType, problem: &Gemm, plan: &str, row: &Row) -> Value {
    let Gemm { m, n, k, .. } = *problem;
    let mut value = json!({
        "dtype": data_type.to_string(),
        "trans": problem.operands.to_string(),
        "m": m,
        "n": n,
        "k": k,
        "plan": plan,
    });
    let more = match row {
        Ok((plans, row)) => json!({
            "plan": plans,
            "passed": row.passed,
            "ours_ms": row.ours_ms,
            "alone_ms": row.alone_ms,
            "overhead": row.overhead(),
            "nccl_ms": row.nccl_ms,
            "nccl_cublas_ms": row.nccl_cublas_ms,
            "missing": row.missing,
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
