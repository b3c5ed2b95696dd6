//! `tilewright plans`: what kernels there are, with their layouts and proofs.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tilewright::codegen::plan::{Operands, Plan, PlanError, plan_named, plans};

use crate::error::{CliError, Outcome, finish};
use crate::output;

/// List the plans: type, architecture, tile, layouts, proofs
#[derive(Args, Debug)]
pub(crate) struct PlansArgs {
    /// Show one plan with all its layouts and proofs
    name: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &PlansArgs) -> ExitCode {
    finish(list(args), args.json)
}

fn list(args: &PlansArgs) -> Outcome {
    let refused = |e: PlanError| CliError::new(e.code(), e.to_string());
    let chosen = match &args.name {
        Some(name) => vec![plan_named(name).map_err(|e| CliError::usage(e.code(), e.to_string()))?],
        None => plans(),
    };
    if args.json {
        let rows = chosen
            .iter()
            .map(|p| to_json(p.as_ref()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        output::print_json(&Value::Array(rows));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for p in &chosen {
        let (m, n, k) = p.tile();
        let _ = writeln!(
            text,
            "{:<18} {:<5} {} and later   tile {m}x{n}x{k}, {} threads",
            p.name(),
            p.data_type().to_string(),
            p.min_arch(),
            p.threads()
        );
        if args.name.is_some() {
            text.push_str(&details(p.as_ref()).map_err(refused)?);
        }
    }
    if args.name.is_none() {
        text.push_str("`tilewright plans NAME` shows the layouts and proofs of one");
    }
    output::print_line(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn details(plan: &dyn Plan) -> Result<String, PlanError> {
    let mut text = String::new();
    for operands in Operands::ALL {
        let proof = plan.prove(operands)?;
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
    }
    Ok(text)
}

fn to_json(plan: &dyn Plan) -> Result<Value, PlanError> {
    let (m, n, k) = plan.tile();
    let mut variants = Vec::new();
    for operands in Operands::ALL {
        let proof = plan.prove(operands)?;
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
        variants.push(json!({"trans": operands.to_string(), "layouts": layouts, "proofs": obligations, "smem": accesses}));
    }
    Ok(json!({
        "plan": plan.name(),
        "dtype": plan.data_type().to_string(),
        "arch": plan.min_arch().to_string(),
        "tile": [m, n, k],
        "threads": plan.threads(),
        "variants": variants,
    }))
}
