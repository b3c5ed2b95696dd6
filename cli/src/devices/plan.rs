//! `plans --devices`: what would move for a product, and what each device would do.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::kernels::gemm::{DataType, Gemm};

use super::report::{moved_by, proof_json};
use super::{DevicesArgs, refused};
use crate::error::Outcome;
use crate::output;

/// `plans --devices`: what would move for a product, and what each device would do, step by step.
pub(crate) fn plan(
    args: &DevicesArgs,
    count: usize,
    problem: &Gemm,
    data_type: DataType,
    json: bool,
) -> Outcome {
    let placement = args.placement(problem, count)?;
    let program = args.program(problem, &placement, data_type, None)?;
    let proof = program.prove().map_err(|e| refused(&e))?;
    let moves = placement.movements().map_err(|e| refused(&e))?;
    let bytes = |elements: u64, result: bool| {
        let element = if result {
            problem.result(data_type).bytes()
        } else {
            data_type.bytes()
        };
        elements.saturating_mul(element.into())
    };
    let matrices = [
        ("A", &placement.a, &moves.a, false),
        ("B", &placement.b, &moves.b, false),
        ("C", &placement.c, &moves.c, true),
    ];
    if json {
        let rows: Vec<Value> = matrices
            .iter()
            .map(|(name, distribution, moved, result)| {
                json!({
                    "matrix": name,
                    "layout": distribution.layout().to_string(),
                    "movement": moved.movement().to_string(),
                    "bytes": bytes(moved.total(), *result),
                    "busiest_link_bytes": bytes(moved.busiest_link(), *result),
                })
            })
            .collect();
        let ops: Vec<Value> = program
            .ops
            .iter()
            .map(|op| json!({"device": op.device, "stream": op.stream, "action": op.action.to_string()}))
            .collect();
        output::print_json(&json!({
            "devices": count,
            "m": problem.m,
            "n": problem.n,
            "k": problem.k,
            "dtype": data_type.to_string(),
            "matrices": rows,
            "operations": ops,
            "proof": proof_json(&proof),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let Gemm { m, n, k, .. } = *problem;
    let mut text = format!("{data_type} {m}x{n}x{k} on {count} devices\n");
    for (name, distribution, moved, result) in matrices {
        let _ = writeln!(
            text,
            "  {name}  {:<42} {}, {} bytes in all, {} on the busiest link",
            distribution.layout().to_string(),
            moved.movement(),
            bytes(moved.total(), result),
            bytes(moved.busiest_link(), result)
        );
    }
    let _ = writeln!(
        text,
        "proven: {} products, {}, {} ordered pairs",
        proof.products,
        moved_by(&proof),
        proof.ordered_pairs
    );
    for op in &program.ops {
        let _ = writeln!(text, "  {op}");
    }
    output::print_line(text.trim_end());
    Ok(ExitCode::SUCCESS)
}
