//! The report of a product over devices, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright::host::Check;
use tilewright::host::devices::{DeviceGemm, DevicesRun};
use tilewright::kernels::devices::{Placement, ProgramProof};

use super::refused;
use crate::error::CliError;

/// Everything that there is to say about a product over devices.
pub(super) struct Report<'a> {
    pub(super) placement: &'a Placement,
    pub(super) shards: &'a str,
    pub(super) product: &'a DeviceGemm,
    pub(super) ran: Option<&'a (String, DevicesRun)>,
    pub(super) check: Option<Check>,
    pub(super) passed: bool,
}

impl Report<'_> {
    fn movements(&self) -> Result<[(char, String); 3], CliError> {
        let moves = self.placement.movements().map_err(|e| refused(&e))?;
        Ok([
            ('A', moves.a.movement().to_string()),
            ('B', moves.b.movement().to_string()),
            ('C', moves.c.movement().to_string()),
        ])
    }

    pub(super) fn to_text(&self) -> Result<String, CliError> {
        let mut text = String::new();
        let moved: Vec<String> = self
            .movements()?
            .iter()
            .map(|(matrix, movement)| format!("{matrix} {movement}"))
            .collect();
        let devices = self.placement.devices();
        let _ = writeln!(text, "devices    {devices}, shards {}", self.shards);
        let _ = writeln!(text, "movement   {}", moved.join(", "));
        for ((from, to), bytes) in self.product.link_bytes() {
            let _ = writeln!(text, "  link     {from} -> {to}: {bytes} bytes");
        }
        if let Some(proof) = self.product.proof() {
            let _ = writeln!(
                text,
                "proven     {} products, {}: no race in any schedule ({} ordered pairs), every element of C complete",
                proof.products,
                moved_by(proof),
                proof.ordered_pairs
            );
        }
        for (plan, [m, n, k]) in self.product.plans() {
            let _ = writeln!(text, "plan       {plan} for {m}x{n}x{k}");
        }
        let Some((device, run)) = self.ran else {
            let _ = write!(text, "ran        nowhere");
            return Ok(text);
        };
        let _ = writeln!(text, "ran on     {device}");
        if let Some(ms) = run.time_ms {
            let p = self.product.program().problem;
            let flops = 2.0 * p.m as f64 * p.n as f64 * p.k as f64;
            let _ = writeln!(
                text,
                "time       {ms:.4} ms, {:.1} TFLOP/s on all devices together",
                flops / ms / 1e9
            );
        }
        for finding in &run.findings {
            let _ = writeln!(text, "finding    {finding}");
        }
        if let Some(c) = self.check {
            let _ = writeln!(
                text,
                "error      largest relative {:.2e}, tolerance {:.2e}",
                c.max_rel_err, c.tolerance
            );
        }
        let _ = write!(text, "{}", if self.passed { "passed" } else { "FAILED" });
        Ok(text)
    }

    pub(super) fn to_json(&self) -> Result<Value, CliError> {
        let proof = self.product.proof().map(proof_json);
        let p = self.product.program().problem;
        let finite = |v: f64| v.is_finite().then_some(v);
        let links: Vec<Value> = links_json(self.product);
        let plans: Vec<Value> = self
            .product
            .plans()
            .into_iter()
            .map(|(plan, [m, n, k])| json!({"plan": plan, "m": m, "n": n, "k": k}))
            .collect();
        let [a, b, c] = self.movements()?;
        let run = self.ran.map(|(_, run)| run);
        Ok(json!({
            "devices": self.placement.devices(),
            "shards": self.shards,
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "movement": {"a": a.1, "b": b.1, "c": c.1},
            "links": links,
            "proof": proof,
            "plans": plans,
            "device": self.ran.map_or("none", |(device, _)| device),
            "time_ms": run.and_then(|run| run.time_ms),
            "findings": run.map_or(&[][..], |run| &run.findings),
            "max_abs_err": self.check.and_then(|c| finite(c.max_abs_err)),
            "max_rel_err": self.check.and_then(|c| finite(c.max_rel_err)),
            "tolerance": self.check.map(|c| c.tolerance),
            "passed": run.map(|_| self.passed),
        }))
    }
}

/// How many operations move things: `2 copies and 2 flags`.
pub(super) fn moved_by(proof: &ProgramProof) -> String {
    let (one, of) = (proof.collectives, "collective operation");
    match one {
        0 => format!("{} copies and {} flags", proof.copies, proof.flags),
        1 => format!("1 {of}"),
        _ => format!("{one} {of}s"),
    }
}

pub(super) fn proof_json(proof: &ProgramProof) -> Value {
    json!({
        "products": proof.products,
        "copies": proof.copies,
        "collectives": proof.collectives,
        "flags": proof.flags,
        "ordered_pairs": proof.ordered_pairs,
    })
}

fn links_json(product: &DeviceGemm) -> Vec<Value> {
    product
        .link_bytes()
        .into_iter()
        .map(|((from, to), bytes)| json!({"from": from, "to": to, "bytes": bytes}))
        .collect()
}
