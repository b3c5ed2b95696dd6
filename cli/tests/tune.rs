//! `tune`, `plans --for` and `--findings` seen from outside: what is chosen and why, and one clear error for a file that can't be right.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::one_json;
use serde_json::{Value, json};

fn tilewright(args: &[&str], findings: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(args).env_remove("TILEWRIGHT_FINDINGS");
    if let Some(path) = findings {
        command.env("TILEWRIGHT_FINDINGS", path);
    }
    command.output().expect("the command starts")
}

/// Runs with `--json`.
fn json_with(args: &[&str], findings: Option<&Path>) -> (i32, Value) {
    one_json(tilewright(&[args, &["--json"]].concat(), findings), args)
}

fn json_of(args: &[&str]) -> (i32, Value) {
    json_with(args, None)
}

/// A refusal: exit code, code and message.
fn refused(args: &[&str]) -> (i32, String, String) {
    let (exit, value) = json_of(args);
    let text = |key: &str| value["error"][key].as_str().unwrap_or_default().to_owned();
    (exit, text("code"), text("message"))
}

fn has_gpu() -> bool {
    json_of(&["doctor"]).1["gpu"]["found"] == true
}

/// A file of one finding for a product in f16 on the machine that stands for `sm_90`.
fn finding(device: &str, sizes: [u64; 3], plan: &str, split: u32) -> Value {
    let [m, n, k] = sizes;
    json!({
        "format": "tilewright-findings",
        "version": 1,
        "entries": [{
            "device": device,
            "driver": "13.0",
            "date": "2026-11-21",
            "problem": {
                "dtype": "f16", "trans": "nn", "m": m, "n": n, "k": k, "batch": 1, "widths": [16, 16, 16],
            },
            "candidates": [{"plan": plan, "split": split, "pack": false, "ms": 0.25}],
        }],
    })
}

fn written(folder: &Path, name: &str, value: &Value) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, value.to_string()).expect("written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

const LARGE: [&str; 7] = [
    "plans",
    "--for",
    "4096x4096x4096",
    "--dtype",
    "f16",
    "--arch",
    "sm_90",
];

#[test]
fn candidates_come_in_the_order_of_their_estimates() {
    let (exit, value) = json_of(&LARGE);
    assert_eq!(exit, 0, "{value}");
    let all = value["candidates"].as_array().expect("an array");
    assert!(all.len() > 5);
    // Plans that gain nothing here come last: rows begin with sectors, and k is large.
    let behind = |plan: &str| {
        ["+cluster", "+pingpong"]
            .iter()
            .any(|kind| plan.contains(kind))
    };
    let times: Vec<(bool, f64)> = all
        .iter()
        .map(|c| {
            let time = c["estimated_ms"].as_f64().expect("a time");
            (behind(c["plan"].as_str().expect("a name")), time)
        })
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    for c in all {
        assert!(
            c["plan"]
                .as_str()
                .is_some_and(|p| p.starts_with("mma-f16-") || p.starts_with("wgmma-f16-"))
        );
        assert!(c["split"].as_u64() >= Some(1) && c["pack"].is_boolean());
        assert!(c["waves"].as_f64() > Some(0.0) && c["bound"].is_string());
        assert!(c["step_clocks"]["math"].as_f64() > Some(0.0));
    }
    if !has_gpu() {
        assert_eq!(value["chosen"]["plan"], all[0]["plan"]);
        assert_eq!(value["chosen"]["source"], "model");
    }
    let output = tilewright(&LARGE, None);
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(table.lines().count(), all.len() + 3, "{table}");
    assert!(table.contains("\nauto takes wgmma-f16-"), "{table}");
    // Of one plan only.
    let one = [&LARGE[..], &["mma-f16-64x64x64"]].concat();
    let (exit, value) = json_of(&one);
    assert_eq!(
        (exit, &value["chosen"]["plan"]),
        (0, &"mma-f16-64x64x64".into())
    );
}

#[test]
fn a_product_of_few_blocks_is_split_and_one_of_odd_rows_packed() {
    let of = |shape: &str, arch: &str| {
        let args = ["plans", "--for", shape, "--dtype", "f16", "--arch", arch];
        let (exit, value) = json_of(&args);
        assert_eq!(exit, 0, "{value}");
        value["candidates"][0].clone()
    };
    assert!(of("512x512x65536", "sm_90")["split"].as_u64() > Some(1));
    assert_eq!(of("4096x4096x4096", "sm_90")["split"], 1);
    assert_eq!(of("4095x4097x4093", "sm_90")["pack"], true);
    assert_eq!(of("4096x4096x4096", "sm_80")["pack"], false);
}

#[test]
fn findings_decide_and_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = json_of(&LARGE).1["machine"]
        .as_str()
        .expect("a name")
        .to_owned();
    let sizes = [4096, 4096, 4096];
    let path = written(
        folder.path(),
        "good.json",
        &finding(&machine, sizes, "mma-f16-64x64x32", 2),
    );
    let chosen = |shape: &str| {
        let args = ["plans", "--for", shape, "--dtype", "f16", "--arch", "sm_90"];
        let (exit, value) = json_of(&[&args[..], &["--findings", text(&path)]].concat());
        assert_eq!(exit, 0, "{value}");
        let (_, same) = json_with(&args, Some(&path));
        assert_eq!(value, same, "the variable does as the option");
        value["chosen"].clone()
    };
    let exact = chosen("4096x4096x4096");
    assert_eq!(
        [&exact["plan"], &exact["source"]],
        ["mma-f16-64x64x32", "measured"]
    );
    assert_eq!(exact["split"], 2);
    let near = chosen("4000x4096x4096");
    assert_eq!(
        [&near["plan"], &near["source"]],
        ["mma-f16-64x64x32", "measured_near"]
    );
    assert_eq!(chosen("2048x2048x2048")["source"], "model");
    // Another device says nothing.
    let other = written(
        folder.path(),
        "other.json",
        &finding("another GPU", sizes, "mma-f16-64x64x32", 2),
    );
    let (_, value) = json_of(&[&LARGE[..], &["--findings", text(&other)]].concat());
    assert_eq!(value["chosen"]["source"], "model");
}

#[test]
fn gemm_takes_what_was_measured() {
    // With a GPU this is its own machine, whose name is not known here.
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(
        folder.path(),
        "good.json",
        &finding("NVIDIA H200", [64, 64, 64], "mma-f16-128x128x32", 1),
    );
    let args = [
        "gemm", "--on", "emulator", "--arch", "sm_90", "--dtype", "f16", "--m", "64", "--n", "64",
        "--k", "64",
    ];
    let (exit, value) = json_of(&args);
    assert_eq!(exit, 0, "{value}");
    assert_ne!(value["plan"], "mma-f16-128x128x32");
    let (exit, value) = json_of(&[&args[..], &["--findings", text(&path)]].concat());
    assert_eq!((exit, &value["plan"]), (0, &"mma-f16-128x128x32".into()));
    assert_eq!(value["passed"], true);
    // What is asked for goes before what was measured.
    let asked = ["--findings", text(&path), "--plan", "mma-f16-64x64x32"];
    let (exit, value) = json_of(&[&args[..], &asked].concat());
    assert_eq!((exit, &value["plan"]), (0, &"mma-f16-64x64x32".into()));
}

#[test]
fn a_file_that_cannot_be_right_is_refused_whoever_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = finding("NVIDIA H200", [64, 64, 64], "mma-f16-64x64x32", 1);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        value
    };
    let cases = [
        (
            with(&|v| v["entries"][0]["candidates"][0]["plan"] = json!("mma-none")),
            "findings_entry",
            "entry 1: there is no plan `mma-none`",
        ),
        (
            with(&|v| v["entries"][0]["candidates"][0]["ms"] = json!(-1)),
            "findings_entry",
            "entry 1",
        ),
        (
            with(&|v| v["version"] = json!(2)),
            "findings_version",
            "version 2",
        ),
        (
            with(&|v| v["format"] = json!("x")),
            "findings_format",
            "\"x\"",
        ),
        (with(&|v| v["more"] = json!(1)), "findings_shape", "more"),
    ];
    let out = folder.path().join("bad.json");
    for (value, code, part) in cases {
        written(folder.path(), "bad.json", &value);
        let before = std::fs::read(&out).expect("there");
        let file = text(&out);
        for args in [
            &["gemm", "--on", "emulator", "--findings", file][..],
            &["plans", "--for", "64x64x64", "--findings", file],
            &["tune", "--out", file],
        ] {
            let (exit, got, message) = refused(args);
            assert_eq!((exit, got.as_str()), (1, code), "{args:?}: {message}");
            assert!(
                message.contains(part) && message.contains(file),
                "{message}"
            );
        }
        assert_eq!(std::fs::read(&out).expect("there"), before, "left alone");
    }
    std::fs::write(&out, "not json").expect("written");
    let (exit, code, _) = refused(&["gemm", "--on", "emulator", "--findings", text(&out)]);
    assert_eq!((exit, code.as_str()), (1, "findings_not_json"));
    let missing = folder.path().join("missing.json");
    let (exit, code, message) =
        refused(&["gemm", "--on", "emulator", "--findings", text(&missing)]);
    assert_eq!((exit, code.as_str()), (1, "io"), "{message}");
    // The variable's file is named as such.
    let (exit, value) = json_with(&["gemm", "--on", "emulator"], Some(&missing));
    assert_eq!(exit, 1);
    let message = value["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("TILEWRIGHT_FINDINGS"), "{message}");
}

#[test]
fn bad_usage_is_one_clear_error() {
    for (args, code) in [
        (&["tune"][..], "usage"),
        (&["tune", "--out", "x.json", "--top", "0"], "usage"),
        (&["tune", "--out", "x.json", "--shapes", "4x4"], "usage"),
        (&["tune", "--out", "x.json", "--random", "0"], "usage"),
        (
            &[
                "tune", "--out", "x.json", "--random", "2", "--shapes", "4x4x4",
            ],
            "usage",
        ),
        (&["tune", "--out", "x.json", "--within", "0.5"], "usage"),
        (&["tune", "--out", "x.json", "--limit", "-1"], "usage"),
        (
            &["tune", "--out", "x.json", "--dtype", "f17"],
            "unknown_dtype",
        ),
        (
            &["tune", "--out", "x.json", "--trans", "xx"],
            "unknown_trans",
        ),
        (&["plans", "--for", "4x4"], "usage"),
        (&["plans", "--dtype", "f16"], "usage"),
        (
            &["plans", "--for", "4x4x4", "--dtype", "f17"],
            "unknown_dtype",
        ),
        (&["plans", "none", "--for", "4x4x4"], "unknown_plan"),
        (
            &[
                "plans",
                "sgemm-maxas-64",
                "--for",
                "4x4x4",
                "--dtype",
                "f16",
            ],
            "wrong_type",
        ),
    ] {
        let (exit, got, message) = refused(args);
        assert_eq!((exit, got.as_str()), (2, code), "{args:?}: {message}");
        assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    }
    let (exit, code, message) = refused(&[
        "plans", "--for", "4x4x4", "--dtype", "bf16", "--arch", "sm_75",
    ]);
    assert_eq!((exit, code.as_str()), (1, "no_plan"));
    assert!(message.contains("sm_80"), "{message}");
}

#[test]
fn tune_measures_where_there_is_a_gpu_and_says_so_where_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("findings.json");
    let args = [
        "tune",
        "--dtype",
        "f16",
        "--shapes",
        "256x256x256,250x250x250",
        "--top",
        "2",
        "--repeats",
        "3",
        "--out",
        text(&out),
    ];
    let (exit, value) = json_of(&args);
    if !has_gpu() {
        println!("no GPU: not run");
        let code = value["error"]["code"].as_str().unwrap_or_default();
        assert!(
            exit == 1 && ["no_cuda_driver", "old_cuda_driver", "no_gpu"].contains(&code),
            "{value}"
        );
        assert!(!out.exists());
        return;
    }
    assert_eq!(exit, 0, "{value}");
    assert_eq!(value["entries"], 2, "{value}");
    let winner = &value["problems"][0]["candidates"][0];
    let plans = [
        "plans",
        "--for",
        "256x256x256",
        "--dtype",
        "f16",
        "--findings",
        text(&out),
    ];
    let chosen = &json_of(&plans).1["chosen"];
    assert_eq!(
        [&chosen["plan"], &chosen["source"]],
        [&winner["plan"], &json!("measured")]
    );
    // Once more: the same problems are replaced, not repeated.
    let (exit, value) = json_of(&args);
    assert_eq!((exit, &value["entries"]), (0, &json!(2)), "{value}");
    // Random shapes beside them, every time in a file.
    let csv = folder.path().join("times.csv");
    let random = [
        "tune",
        "--dtype",
        "f16,s8",
        "--random",
        "2",
        "--within",
        "1.5",
        "--splits",
        "1",
        "--repeats",
        "3",
        "--out",
        text(&out),
        "--csv",
        text(&csv),
    ];
    let (exit, value) = json_of(&random);
    assert_eq!((exit, &value["entries"]), (0, &json!(6)), "{value}");
    let problems = value["problems"].as_array().expect("a list");
    let candidates = |p: &Value| p["candidates"].as_array().map_or(0, Vec::len);
    let all: usize = problems.iter().map(candidates).sum();
    let lines = std::fs::read_to_string(&csv).expect("written");
    assert_eq!(lines.lines().count(), 2 + all, "{lines}");
    assert!(problems.iter().all(|p| candidates(p) >= 4));
}
