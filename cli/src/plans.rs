//! `tilewright plans`: what kernels there are, with their layouts and proofs; or, for a problem, how long each is estimated to take.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::{Gemm, Operands, PlanError, ProblemError, Specialized};
use tilewright::kernels::select::{Candidate, Reason, SelectError, Wanted};

use crate::bench::shape;
use crate::devices::{self, DevicesArgs};
use crate::error::{CliError, Outcome, finish};
use crate::gemm::report;
use crate::gemm::select::{self, Device};
use crate::output;

/// List the plans: type, architecture, tile, layouts, proofs
#[derive(Args, Debug)]
pub(crate) struct PlansArgs {
    /// Show one plan with all its layouts and proofs
    name: Option<String>,
    /// List the candidates for a GEMM of this shape, in the order of the model's estimates, and say which one `auto` takes
    #[arg(long = "for", value_name = "MxNxK", value_parser = shape)]
    shape: Option<[u64; 3]>,
    /// Element type of that GEMM (f32 by default)
    #[arg(long, requires = "shape")]
    dtype: Option<String>,
    /// Its transposes: nn, nt, tn or tt (nn by default)
    #[arg(long, requires = "shape")]
    trans: Option<String>,
    /// The architecture: that of the GPU by default, or without one `sm_80`, or the first later one that the type needs
    #[arg(long, requires = "shape")]
    arch: Option<String>,
    /// Choose by what `tilewright tune` wrote to this file (by default the one that `TILEWRIGHT_FINDINGS` names)
    #[arg(long, value_name = "FILE", requires = "shape")]
    findings: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    over: DevicesArgs,
}

pub(crate) fn run(args: &PlansArgs) -> ExitCode {
    finish(list(args), args.json)
}

fn list(args: &PlansArgs) -> Outcome {
    if let Some(shape) = args.shape {
        return candidates(args, shape);
    }
    if args.over.count().is_some() {
        let message = "--devices says what moves for one product: give its shape too, as in --for 4096x4096x4096";
        return Err(CliError::usage("usage", message));
    }
    let refused = |e: PlanError| CliError::new(e.code(), e.to_string());
    let chosen = match &args.name {
        Some(name) => vec![
            name.parse::<Config>()
                .map_err(|e| CliError::usage(e.code(), e.to_string()))?,
        ],
        None => Config::table().collect(),
    };
    if args.json {
        let rows = chosen
            .iter()
            .map(|c| to_json(&c.kernel()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        output::print_json(&Value::Array(rows));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for p in &chosen {
        let [m, n, k] = p.tile;
        let everywhere = Arch::ALL
            .iter()
            .all(|&arch| arch < p.min_arch() || p.runs_on(arch));
        let later = if everywhere { "and later" } else { "only" };
        let _ = writeln!(
            text,
            "{:<29} {:<8} {} {later:<9}   tile {m}x{n}x{k}, {} threads",
            p.to_string(),
            p.data_type.to_string(),
            p.min_arch(),
            p.threads()
        );
        if args.name.is_some() {
            text.push_str(&details(&p.kernel()).map_err(refused)?);
        }
    }
    if args.name.is_none() {
        text.push_str("`tilewright plans NAME` shows the layouts and proofs of one");
    }
    output::print_line(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn details(plan: &Specialized) -> Result<String, PlanError> {
    let mut text = String::new();
    for operands in Operands::ALL {
        let kernel = plan.emit(operands, plan.min_arch())?;
        let proof = kernel.proof;
        let _ = writeln!(text, "\n{operands}: layouts");
        for l in plan.layouts(operands)? {
            let _ = writeln!(text, "  {:<11} {:<38} {}", l.name, l.layout, l.meaning);
        }
        let _ = writeln!(text, "{operands}: proofs");
        for o in &proof.obligations {
            let _ = writeln!(text, "  {}\n      {}", o.name, o.evidence);
        }
        for a in &proof.accesses {
            let _ = writeln!(
                text,
                "  {} ({}): {} wavefronts, ideal {}",
                a.access, a.op, a.wavefronts, a.ideal
            );
        }
        if let Some(mix) = kernel.mix {
            let _ = writeln!(
                text,
                "{operands}: main loop\n  {mix}{}",
                report::source(plan)
            );
        }
    }
    Ok(text)
}

fn to_json(plan: &Specialized) -> Result<Value, PlanError> {
    let [m, n, k] = plan.tile();
    let mut variants = Vec::new();
    for operands in Operands::ALL {
        let kernel = plan.emit(operands, plan.min_arch())?;
        let proof = kernel.proof;
        let layouts: Vec<Value> = plan
            .layouts(operands)?
            .into_iter()
            .map(|l| json!({"name": l.name, "layout": l.layout, "meaning": l.meaning}))
            .collect();
        let obligations: Vec<Value> = proof
            .obligations
            .iter()
            .map(|o| json!({"name": o.name, "evidence": o.evidence}))
            .collect();
        let accesses: Vec<Value> = proof
            .accesses
            .iter()
            .map(|a| json!({"access": a.access, "op": a.op.to_string(), "wavefronts": a.wavefronts, "ideal": a.ideal}))
            .collect();
        variants.push(json!({"trans": operands.to_string(), "layouts": layouts, "proofs": obligations, "smem": accesses, "main_loop": kernel.mix.map(report::mix_json)}));
    }
    Ok(json!({
        "plan": plan.name(),
        "dtype": plan.data_type.to_string(),
        "arch": plan.min_arch().to_string(),
        "tile": [m, n, k],
        "threads": plan.threads(),
        "source_useful": plan.source_mix().map(|(source, useful)| json!({"source": source, "useful": useful})),
        "variants": variants,
    }))
}

/// The candidates for one product.
fn candidates(args: &PlansArgs, [m, n, k]: [u64; 3]) -> Outcome {
    let data_type = select::data_type(args.dtype.as_deref().unwrap_or("f32"))?;
    let operands: Operands = args
        .trans
        .as_deref()
        .unwrap_or("nn")
        .parse()
        .map_err(|e: ProblemError| CliError::usage(e.code(), e.to_string()))?;
    let problem = Gemm::packed(m, n, k, operands);
    if let Some(count) = args.over.count() {
        return devices::plan(&args.over, count, &problem, data_type, args.json);
    }
    let gpu = select::gpu(Device::Auto)?;
    let arch = select::arch(
        args.arch.as_deref().unwrap_or("auto"),
        gpu.as_ref(),
        args.name.as_deref().unwrap_or("auto"),
        data_type,
    )?;
    let machine = select::machine(arch, gpu.as_ref());
    let findings = select::findings(args.findings.as_deref())?;
    let config = match &args.name {
        Some(name) => Some(
            name.parse::<Config>()
                .map_err(|e| select::refused(&SelectError::Plan(e)))?,
        ),
        None => None,
    };
    let wanted = Wanted {
        config,
        ..Wanted::default()
    };
    let all = wanted
        .candidates(data_type, &problem, arch, &machine)
        .map_err(|e| select::refused(&e))?;
    let chosen = wanted
        .choose(data_type, &problem, arch, &machine, findings.as_ref())
        .map_err(|e| select::refused(&e))?;
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    let tflops = |c: &Candidate| flops / c.estimate.seconds / 1e12;
    if args.json {
        let rows: Vec<Value> = all.iter().map(|c| row_json(c, tflops(c))).collect();
        let source = match &chosen.reason {
            Reason::Measured { exact: true, .. } => "measured",
            Reason::Measured { exact: false, .. } => "measured_near",
            Reason::Estimated(_) => "model",
        };
        output::print_json(&json!({
            "dtype": data_type.to_string(),
            "trans": operands.to_string(),
            "m": m,
            "n": n,
            "k": k,
            "arch": arch.to_string(),
            "machine": machine.name,
            "multiprocessors": machine.multiprocessors,
            "candidates": rows,
            "chosen": {
                "plan": chosen.config.to_string(),
                "split": chosen.schedule.split,
                "pack": chosen.schedule.pack,
                "source": source,
                "reason": chosen.reason.to_string(),
            },
        }));
        return Ok(ExitCode::SUCCESS);
    }
    // The widest of the names that are listed, so that columns are straight.
    let width = all
        .iter()
        .map(|c| c.config.to_string().len())
        .max()
        .unwrap_or(0)
        .max(26);
    let mut text = format!(
        "{data_type} {operands} {m}x{n}x{k} for {arch} on {} ({} multiprocessors); times in ms, estimated\n  {:<width$} {:>5} {:>4} {:>10} {:>8} {:>8} {:>11}  bound by\n",
        machine.name,
        machine.multiprocessors,
        "plan",
        "split",
        "pack",
        "time",
        "TFLOP/s",
        "blocks",
        "waves"
    );
    for c in &all {
        let e = &c.estimate;
        let pack = if c.schedule.pack { "yes" } else { "-" };
        let waves = format!("{:.2} of {}", e.waves, e.resident);
        let _ = writeln!(
            text,
            "  {:<width$} {:>5} {pack:>4} {:>10.4} {:>8.1} {:>8} {waves:>11}  {}",
            c.config.to_string(),
            c.schedule.split,
            e.seconds * 1e3,
            tflops(c),
            e.blocks,
            e.bound
        );
    }
    let packed = if chosen.schedule.pack { ", packed" } else { "" };
    let _ = write!(
        text,
        "auto takes {}, split {}{packed}: {}",
        chosen.config, chosen.schedule.split, chosen.reason
    );
    output::print_line(&text);
    Ok(ExitCode::SUCCESS)
}

fn row_json(c: &Candidate, tflops: f64) -> Value {
    let e = &c.estimate;
    let d = &e.demands;
    json!({
        "plan": c.config.to_string(),
        "split": c.schedule.split,
        "pack": c.schedule.pack,
        "estimated_ms": e.seconds * 1e3,
        "tflops": tflops,
        "blocks": e.blocks,
        "resident": e.resident,
        "waves": e.waves,
        "steps": e.steps,
        "period_clocks": e.period,
        "step_clocks": {"math": d.math, "slots": d.slots, "shared": d.shared, "l2": d.l2},
        "around_ms": e.around * 1e3,
        "bound": e.bound.to_string(),
    })
}
