//! GEMM plans: layouts, proofs and PTX of one, and a run of it on the emulator, what was counted beside what was proven.

use serde_json::{Value, json};
use tilewright::emulator::Options;
use tilewright::host::{GemmKernel, Inputs, On, RunOptions, check, run_with};
use tilewright::kernels::gemm::{
    Config, Emitted, Gemm, Operands, PlanError, Schedule, Specialized,
};
use tilewright_workbench::Refusal;

use crate::arguments::Arguments;

/// Sizes are at most this here: the emulator runs on one thread of the browser.
const MOST: u64 = 1024;

/// All plans, a row each.
pub(crate) fn plans() -> Value {
    let rows: Vec<Value> = Config::table()
        .map(|plan| {
            let [m, n, k] = plan.tile;
            json!({
                "plan": plan.to_string(),
                "dtype": plan.data_type.to_string(),
                "arch": plan.min_arch().to_string(),
                "tile": format!("{m}x{n}x{k}"),
                "threads": plan.threads(),
            })
        })
        .collect();
    json!({"plans": rows})
}

/// One plan for operands of one order.
pub(crate) fn plan(question: &Arguments) -> Result<Value, Refusal> {
    let plan = named(question)?;
    let operands = operands(question)?;
    let kernel = plan
        .emit(operands, plan.min_arch())
        .map_err(|error| refused(&error))?;
    let layouts: Vec<Value> = plan
        .layouts(operands)
        .map_err(|error| refused(&error))?
        .into_iter()
        .map(|l| json!({"name": l.name, "layout": l.layout, "meaning": l.meaning}))
        .collect();
    let proofs: Vec<Value> = kernel
        .proof
        .obligations
        .iter()
        .map(|o| json!({"name": o.name, "evidence": o.evidence}))
        .collect();
    Ok(json!({
        "plan": plan.name(),
        "arch": plan.min_arch().to_string(),
        "threads": plan.threads(),
        "layouts": layouts,
        "proofs": proofs,
        "accesses": proven(&kernel),
        "ptx": kernel.ptx,
    }))
}

/// The shared accesses of a kernel with their proven cost.
fn proven(kernel: &Emitted) -> Vec<Value> {
    let accesses = kernel.proof.accesses.iter();
    accesses
        .map(|a| {
            json!({
                "access": a.access,
                "op": a.op.to_string(),
                "wavefronts": a.wavefronts,
                "ideal": a.ideal,
            })
        })
        .collect()
}

/// A run of one plan on random operands.
pub(crate) fn run(question: &Arguments) -> Result<Value, Refusal> {
    let plan = named(question)?;
    let [m, n, k] = [
        question.size("m", MOST)?,
        question.size("n", MOST)?,
        question.size("k", MOST)?,
    ];
    let seed = question.optional("seed")?.map_or(Ok(1), |text| {
        text.parse()
            .map_err(|_| Refusal::usage("seed", format!("`{text}` is no whole number")))
    })?;
    let problem = Gemm::packed(m, n, k, operands(question)?);
    let failed = |code: &str, error: String| Refusal::new(code, error);
    let kernel = GemmKernel::new(&plan, &problem, Schedule::default(), plan.min_arch())
        .map_err(|error| refused(&error))?;
    let inputs = Inputs::random(&problem, plan.data_type, seed);
    let options = RunOptions {
        emulator: Options {
            // A page's module has one thread.
            workers: 1,
            ..RunOptions::default().emulator
        },
        ..RunOptions::default()
    };
    let args = kernel
        .args(&inputs)
        .map_err(|error| failed("run", error.to_string()))?;
    let outcome = run_with(&kernel, On::Emulator, args, &options)
        .map_err(|error| failed("run", error.to_string()))?;
    let result = kernel
        .result(&inputs, &outcome)
        .map_err(|error| failed("run", error.to_string()))?;
    let checked = check(&problem, plan.data_type, &inputs, &result)
        .map_err(|error| failed("reference", error.to_string()))?;
    let findings: Vec<String> = outcome
        .report
        .iter()
        .flat_map(|report| &report.findings)
        .map(ToString::to_string)
        .collect();
    let accesses: Vec<Value> = outcome
        .accesses
        .iter()
        .map(|counted| {
            json!({
                "access": counted.proof.access,
                "op": counted.proof.op.to_string(),
                "wavefronts": counted.proof.wavefronts,
                "ideal": counted.proof.ideal,
                "measured": counted.wavefronts.map(|(least, most)| [least, most]),
            })
        })
        .collect();
    let instructions = outcome
        .report
        .as_ref()
        .map(|report| report.counters.lane_instructions);
    Ok(json!({
        "passed": checked.passed && findings.is_empty(),
        "max_abs_err": checked.max_abs_err,
        "max_rel_err": checked.max_rel_err,
        "tolerance": checked.tolerance,
        "findings": findings,
        "accesses": accesses,
        "lane_instructions": instructions,
    }))
}

fn named(question: &Arguments) -> Result<Specialized, Refusal> {
    let config = question.text("plan")?.parse::<Config>();
    config.map(Config::kernel).map_err(|error| refused(&error))
}

fn operands(question: &Arguments) -> Result<Operands, Refusal> {
    let text = question.optional("trans")?.unwrap_or("nn");
    text.parse()
        .map_err(|error: tilewright::kernels::gemm::ProblemError| {
            Refusal::usage(error.code(), error.to_string())
        })
}

fn refused(error: &PlanError) -> Refusal {
    Refusal::new(error.code(), error.to_string())
}
