//! The attention of `examples/attention.rs`: clean, right and counted as proven over ragged sizes, and its command line.

#![allow(
    clippy::float_cmp,
    reason = "what is compared is exact: 0, 1, 3 and infinity"
)]

#[path = "../examples/attention.rs"]
#[allow(dead_code)]
mod example;

use clap::Parser as _;
use half::{bf16, f16};
use serde_json::Value;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{On, run};

use example::{Attention, Schedule, Sizes, attention, error, outputs};

/// What the command gives for these flags.
fn command(flags: &str) -> Result<Value, (String, String)> {
    let words = std::iter::once("attention").chain(flags.split_whitespace());
    let command = example::Command::try_parse_from(words);
    let command = command.map_err(|e| ("usage".to_owned(), e.to_string()))?;
    command.run().map_err(|e| (e.code, e.message))
}

/// Runs the command on the emulator; everything must hold.
fn passes(flags: &str) -> Value {
    let report = command(&format!("{flags} --on emulator")).expect(flags);
    assert_eq!(report["passed"], true, "{flags}: {report}");
    assert_eq!(report["findings"], 0, "{flags}: {report}");
    report
}

#[test]
fn ragged_sizes_are_right_clean_and_counted_as_proven() {
    let sizes = [
        (1, 1),
        (1, 200),
        (129, 1),
        (127, 131),
        (128, 128),
        (150, 257),
        (257, 67),
    ];
    for (seed, (queries, keys)) in sizes.into_iter().enumerate() {
        for dtype in ["f16", "bf16"] {
            for d in [64, 128] {
                for causal in ["", "--causal"] {
                    let report = passes(&format!(
                        "--dtype {dtype} --heads 1 --queries {queries} --keys {keys} --head-dim {d} {causal} --seed {seed}"
                    ));
                    let smem = report["smem"].as_array().expect("a list");
                    assert_eq!(smem.len(), 6, "{report}");
                    for access in smem {
                        assert_eq!(access["wavefronts"], access["ideal"], "{access}");
                        assert_eq!(access["wavefronts"], access["measured"], "{access}");
                    }
                }
            }
        }
    }
}

#[test]
fn heads_share_their_keys() {
    for flags in [
        "--batch 2 --heads 6 --kv-heads 2 --queries 67 --keys 41",
        "--batch 3 --heads 4 --kv-heads 1 --queries 20 --keys 90 --causal --dtype bf16",
        "--batch 2 --heads 2 --kv-heads 2 --queries 130 --keys 130 --causal --head-dim 128",
    ] {
        passes(flags);
    }
    let (code, message) = command("--heads 6 --kv-heads 4").expect_err("no divisor");
    assert_eq!(code, "kv_heads");
    assert_eq!(message, "4 kv-heads do not divide 6 heads: take a divisor");
}

#[test]
fn every_schedule_is_right() {
    for (d, tile, keys, warps, stages) in [
        (64, 128, 64, 8, 2),
        (64, 64, 32, 4, 3),
        (64, 128, 128, 4, 2),
        (128, 128, 64, 8, 2),
        (128, 64, 64, 4, 1),
        (128, 128, 32, 4, 4),
    ] {
        for causal in ["", "--causal"] {
            passes(&format!(
                "--heads 1 --queries 140 --keys 300 --head-dim {d} --tile-queries {tile} --tile-keys {keys} --warps {warps} --stages {stages} {causal}"
            ));
        }
    }
}

#[test]
fn every_output_is_covered() {
    for element in [Element::F16, Element::Bf16] {
        for d in [64, 128] {
            for causal in [false, true] {
                let what = Attention { element, d, causal };
                let kernel = attention(what, Schedule::default(), Arch(80)).expect("proven");
                assert_eq!(kernel.proof.covered, ["o", "lse"]);
            }
        }
    }
}

/// o and the logarithms of f16 inputs with one head of 64.
fn one_head(sizes: Sizes, causal: bool, inputs: [&[f16]; 3]) -> (Vec<f16>, Vec<f32>) {
    let what = Attention {
        element: Element::F16,
        d: 64,
        causal,
    };
    let how = Schedule {
        queries: 64,
        keys: 32,
        warps: 4,
        stages: 1,
    };
    let kernel = attention(what, how, Arch(80)).expect("proven");
    let launch = |args: Vec<_>| Ok(run(&kernel, On::Emulator, args)?);
    let (outcome, o, lse) = outputs(what, sizes, inputs, launch).expect("runs");
    outcome.assert_clean();
    (o, lse)
}

/// Sizes of one head.
fn head(queries: usize, keys: usize) -> Sizes {
    Sizes {
        sets: 1,
        group: 1,
        queries,
        keys,
    }
}

#[test]
fn without_keys_the_result_is_0_and_its_logarithm_is_minus_infinity() {
    for causal in ["", "--causal"] {
        passes(&format!("--heads 2 --queries 130 --keys 0 {causal}"));
        passes(&format!("--heads 2 --queries 0 --keys 10 {causal}"));
        passes(&format!("--batch 0 --queries 5 --keys 10 {causal}"));
    }
    let q = vec![f16::ONE; 3 * 64];
    let (o, lse) = one_head(head(3, 0), false, [&q, &[], &[]]);
    assert!(o.iter().all(|x| x.to_f32() == 0.0));
    assert!(lse.iter().all(|&x| x == f32::NEG_INFINITY));
}

#[test]
fn nan_and_infinities_are_as_stated() {
    let (queries, keys) = (70, 50);
    let zeros = |rows: usize| vec![f16::ZERO; rows * 64];
    let rows = |o: &[f16], is: fn(f16) -> bool| -> Vec<usize> {
        let row = |r: &usize| o[r * 64..][..64].iter().all(|&x| is(x));
        (0..queries).filter(row).collect()
    };
    let some = |from: usize, to: usize| (from..to).collect::<Vec<_>>();
    let ones = vec![f16::ONE; keys * 64];

    // A NaN in a query: its row. One in a key or a value: the rows that see it.
    let mut q = zeros(queries);
    q[5 * 64 + 3] = f16::NAN;
    let (o, lse) = one_head(head(queries, keys), false, [&q, &zeros(keys), &ones]);
    assert_eq!(rows(&o, f16::is_nan), [5]);
    assert_eq!(rows(&o, |x| x == f16::ONE).len(), queries - 1);
    assert!(lse[5].is_nan() && lse[6].is_finite());
    let mut k = zeros(keys);
    k[33 * 64 + 9] = f16::NAN;
    let (o, _) = one_head(head(queries, keys), true, [&zeros(queries), &k, &ones]);
    assert_eq!(rows(&o, f16::is_nan), some(33, queries));
    assert_eq!(rows(&o, |x| x == f16::ONE), some(0, 33));

    // A score of infinity: NaN. Scores that are all −∞: 0, as without keys; some of them: those keys do not count.
    let mut q = zeros(queries);
    (q[64], q[2 * 64]) = (f16::INFINITY, f16::NEG_INFINITY);
    let k = vec![f16::ONE; keys * 64];
    let (o, lse) = one_head(head(queries, keys), false, [&q, &k, &ones]);
    assert_eq!(rows(&o, f16::is_nan), [1]);
    assert_eq!(rows(&o, |x| x == f16::ZERO), [2]);
    assert_eq!(lse[2], f32::NEG_INFINITY);
    let mut k = zeros(keys);
    k[..20 * 64].fill(f16::ONE);
    k[20 * 64..].fill(f16::NEG_INFINITY);
    let mut v = ones.clone();
    v[..20 * 64].fill(f16::from_f32(3.0));
    let q = vec![f16::from_f32(0.5); queries * 64];
    let (o, _) = one_head(head(queries, keys), false, [&q, &k, &v]);
    assert!(o.iter().all(|x| x.to_f32() == 3.0));
}

#[test]
fn large_scores_do_not_overflow() {
    let what = Attention {
        element: Element::Bf16,
        d: 64,
        causal: true,
    };
    let sizes = head(100, 100);
    let random = |seed| <bf16 as example::common::Number>::random(100 * 64, seed);
    // Scores of up to ±1000 · 8, of which the exponentials of all but a few are 0.
    let scaled = |x: Vec<bf16>| -> Vec<bf16> {
        x.into_iter()
            .map(|x| bf16::from_f32(x.to_f32() * 30.0))
            .collect()
    };
    let (q, k, v) = (scaled(random(1)), scaled(random(2)), random(3));
    let kernel = attention(what, Schedule::default(), Arch(80)).expect("proven");
    let launch = |args: Vec<_>| Ok(run(&kernel, On::Emulator, args)?);
    let inputs = [&q[..], &k[..], &v[..]];
    let (outcome, o, lse) = outputs(what, sizes, inputs, launch).expect("runs");
    outcome.assert_clean();
    let (_, worst) = error(what, sizes, inputs, (&o, &lse), 0..100);
    assert!(worst <= 4.0, "{worst}"); // the error of scores of 8000 in f32 is 2⁻¹⁰
}

#[test]
fn the_launch_contract_is_complete() {
    let report = command("--batch 2 --heads 8 --kv-heads 2 --queries 1000 --keys 500 --on none");
    let report = report.expect("a report");
    assert_eq!(report["launch"]["grid"], serde_json::json!([8, 4, 4]));
    assert_eq!(report["launch"]["params"][1]["value"], 4);
    let (code, message) = command("--batch 65536 --heads 1 --on none").expect_err("too many");
    assert_eq!(code, "too_large", "{message}");
}
