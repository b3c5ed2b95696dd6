//! Mutants of the project's kernels by kinds: every kind of change of the emulator's own mutation test, at a few places of one kernel of each family.
//!
//! `mutants` and `mma_mutants` know the slips of their emitters; here the changes know nothing of the kernel (`emulator/tests/common/mutate.rs`). A mutant is caught
//! by the decoder, by a finding or by the numbers. Survivors are listed with the reason why they do what the kernel does.

mod common;
#[path = "../emulator/tests/common/mutate.rs"]
mod mutate;

use std::collections::{BTreeMap, BTreeSet};

use common::emulated::strict;
use tilewright::codegen::gemm::{Emitted, Gemm};
use tilewright::codegen::registry::plan_named;
use tilewright::emulator::Options;
use tilewright::host::{Inputs, check, emulate};

/// A plan, a problem (m, n, k) and how many places of each kind are tried.
const KERNELS: [(&str, [u64; 3], usize); 5] = [
    ("sgemm-maxas-64", [68, 64, 52], 3),
    ("dgemm-4x4", [40, 36, 52], 3),
    ("mma-f16-64x64x32", [72, 72, 200], 3),
    ("mma-s8-64x64x64", [80, 80, 336], 3),
    ("wgmma-f16-128x128x64", [72, 136, 328], 3),
];

/// Kinds of which some survive because they change nothing, and why. Of all others none may.
const EQUIVALENT: [(&str, &str); 8] = [
    (
        "comparison changed",
        "the two sides are never equal in this problem",
    ),
    (
        "constant off by one",
        "what is shifted is 0 in the first tile, or the bound is not met",
    ),
    (
        "operation changed",
        "what is shifted is 0, or another rounding stays within the tolerance",
    ),
    (
        "guard dropped",
        "the branch goes to the path for other alignments, which gives the same",
    ),
    (
        "predicate inverted",
        "the branch goes to the path for other alignments, which gives the same",
    ),
    (
        "exchanged with the next",
        "two stores to places of their own, or copies for an edge that is not there",
    ),
    (
        "register replaced by a constant",
        "a bound or an alignment that holds for the constant as well",
    ),
    (
        "registers exchanged",
        "sums, products and exclusive ors commute",
    ),
];

#[test]
fn every_kind_of_change_is_caught() {
    let mut table: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    let mut survivors = BTreeSet::new();
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut total = 0;
    for (name, [m, n, k], places) in KERNELS {
        let plan = plan_named(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let operands = "tn".parse().expect("operands");
        let packed = Gemm::packed(m, n, k, operands);
        let problem = Gemm {
            ldc: packed.ldc + 16,
            alpha: 2.0,
            beta: -1.0,
            ..packed
        };
        let inputs = Inputs::random(&problem, plan.data_type(), 9);
        let kernel = plan
            .emit(operands, plan.min_arch())
            .expect("the plan proves");
        let observe = |kernel: &Emitted, limit: u64| {
            let options = Options {
                step_limit: limit,
                lane_races: true,
                ..strict()
            };
            let run = emulate(plan.as_ref(), kernel, &problem, &inputs, &options)
                .map_err(|_| "(decoder)".to_owned())?;
            let report = run.report.as_ref().expect("it was launched");
            if let Some(f) = report.findings.first() {
                return Err(f.kind.code().to_owned());
            }
            let check = check(&problem, plan.data_type(), &inputs, &run.c);
            if check.expect("shapes agree").passed {
                Ok(())
            } else {
                Err("(numbers)".to_owned())
            }
        };
        assert_eq!(observe(&kernel, 1 << 22), Ok(()), "{name}");
        // What no lane of this problem executes cannot matter to it.
        let run = emulate(plan.as_ref(), &kernel, &problem, &inputs, &strict()).expect("it runs");
        let report = run.report.expect("it was launched");
        let executed: BTreeSet<usize> = report
            .counters
            .instructions
            .iter()
            .filter(|i| i.lanes > 0)
            .map(|i| i.line as usize - 1)
            .collect();
        let lines: Vec<&str> = kernel.ptx.lines().collect();
        let mut by_kind: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        let all = mutate::all(&lines, 0, lines.len());
        for mutation in all.into_iter().filter(|m| executed.contains(&m.line)) {
            by_kind.entry(mutation.kind).or_default().push(mutation);
        }
        for (kind, all) in &by_kind {
            kinds.entry(name).or_default().insert(kind);
            for i in 0..places.min(all.len()) {
                total += 1;
                // Spread over the kernel.
                let mutation = &all[i * all.len() / places.min(all.len())];
                let mutant = Emitted {
                    ptx: mutate::apply(&lines, mutation),
                    ..kernel.clone()
                };
                let by = if let Err(by) = observe(&mutant, 1 << 18) {
                    by
                } else {
                    let now: Vec<_> = mutation.text.split_whitespace().collect();
                    let line = lines[mutation.line].trim();
                    survivors.insert(format!("{name}: {kind}: {line} => {}", now.join(" ")));
                    "(nothing)".to_owned()
                };
                *table
                    .entry((*kind).to_owned())
                    .or_default()
                    .entry(by)
                    .or_default() += 1;
            }
        }
    }
    for (kind, by) in &table {
        println!("{kind}: {by:?}");
    }
    for (name, kinds) in &kinds {
        println!("{name}: {} kinds", kinds.len());
        assert!(kinds.len() >= 12, "{name}: {kinds:?}");
    }
    for (kind, why) in EQUIVALENT {
        println!("survivors of kind `{kind}`: {why}");
        for s in survivors
            .iter()
            .filter(|s| s.contains(&format!(": {kind}: ")))
        {
            println!("    {s}");
        }
    }
    let known = |s: &&String| {
        let of = |kind: &str| s.contains(&format!(": {kind}: "));
        EQUIVALENT.iter().any(|(kind, _)| of(kind))
    };
    let new: Vec<_> = survivors.iter().filter(|s| !known(s)).collect();
    assert!(new.is_empty(), "{new:#?}");
    // Few in all: a change of a number is caught as a rule.
    assert!(
        5 * survivors.len() < total,
        "{} of {total}",
        survivors.len()
    );
}
