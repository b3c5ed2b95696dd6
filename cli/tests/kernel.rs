//! `tilewright kernel NAME`: reports, launch contracts, files, and what is refused.

mod common;

use common::{json, tilewright, words};
use serde_json::{Value, json as value};

/// Runs `kernel` with these words and `--json`.
fn kernel(line: &str) -> (i32, Value) {
    let words = words(&format!("kernel {line}"));
    json(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs a kernel on the emulator; everything must hold.
fn passes(line: &str) -> Value {
    let (exit, report) = kernel(&format!("{line} --on emulator"));
    assert_eq!(exit, 0, "{line}: {report}");
    assert_eq!(report["passed"], true, "{line}: {report}");
    assert_eq!(report["findings"], value!([]), "{line}: {report}");
    report
}

#[test]
fn every_kernel_that_is_listed_runs_with_its_defaults() {
    let (exit, list) = kernel("list");
    assert_eq!(exit, 0);
    let list = list.as_array().expect("a list");
    assert!(list.len() >= 6, "{list:?}");
    for named in list {
        let name = named["name"].as_str().expect("a name");
        let report = passes(name);
        let kernel = report["kernel"].as_str().expect("a name");
        assert!(kernel.starts_with(name), "{kernel}");
        for param in report["launch"]["params"].as_array().expect("a list") {
            assert!(!param["value"].is_null(), "{name}: {param}");
        }
        let text = tilewright(&["kernel", name, "--on", "emulator"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(
            text.ends_with("passed\n") && text.starts_with(kernel),
            "{text}"
        );
    }
}

#[test]
fn options_choose_the_problem() {
    for line in [
        "softmax --dtype bf16 --rows 3 --cols 77",
        "rms_norm --residual --quantize s8 --dtype f16 --rows 9 --cols 130",
        "rms_norm --quantize e4m3 --rows 2 --cols 33 --seed 5",
        "layer_norm --rows 0",
        "layer_norm --backward --rows 0",
        "rms_norm --backward --rows 18 --cols 8200",
        "layer_norm --backward --dtype bf16 --rows 77 --cols 130 --blocks 5",
        "rms_norm --backward --dtype f16 --rows 300 --cols 33",
        "cross_entropy --dtype bf16 --rows 11 --cols 333",
        "gemv --dtype bf16 --m 5 --n 100 --k 333",
        "gemv --dtype e4m3 --ctype f32 --tile-n 32 --m 16",
        "gemv --dtype f16 --ctype bf16 --bias column --activation gelu --alpha 0.5 --beta -1",
        "grouped --groups 3 --m 70 --n 72 --k 72",
        "grouped --dtype e4m3 --kind masked --groups 3 --m 30 --n 40 --k 48 --tile-m 128 --tile-n 64 --blocks 7",
        "grouped --dtype e4m3 --scales 1x128,128x128 --groups 3 --m 75 --n 140 --k 272",
        "attention --varlen --batch 3 --heads 4 --kv-heads 2 --queries 150 --keys 170 --causal --align bottom-right --lse",
        "grouped --dtype e4m3 --scales none --ctype f32 --groups 2 --m 9 --n 40 --k 16 --seed 3",
        "quantize --dtype f32 --to e5m2 --scales 128x128 --m 130 --k 140 --ld-scale 4",
        "quantize --dtype f16 --scales row --m 7 --k 333",
        "quantize --swiglu --m 40 --k 200 --seed 3",
        "quantize --norm rms --residual --m 9 --k 300",
        "quantize --norm rms --scales row --m 3 --k 77",
        "quantize --gather 20 --m 70 --k 200",
        "route --dtype f32 --tokens 70 --experts 33 --top 5 --softmax",
        "gather_rows --dtype e4m3 --tokens 9 --rows 20 --k 77",
        "combine_rows --dtype f16 --tokens 9 --top 3 --rows 20 --n 77",
        "transpose --dtype s8 --rows 33 --cols 7",
        "transpose --rows 0 --cols 0",
        "attention --dtype bf16 --batch 2 --heads 6 --kv-heads 2 --queries 67 --keys 41 --causal --head-dim 128",
        "attention --heads 1 --queries 70 --keys 90 --tile-queries 64 --tile-keys 32 --stages 2",
        "attention --heads 4 --kv-heads 2 --queries 40 --keys 90 --window 30,0 --align bottom-right --softcap 20 --sinks --lse --layout bshd",
        "attention --heads 1 --queries 40 --keys 90 --causal --window 9,-1 --head-dim 96 --value-dim 64 --arch sm_90a",
    ] {
        passes(line);
    }
}

#[test]
fn the_launch_contract_names_the_tensors() {
    let (_, report) =
        kernel("attention --batch 2 --heads 8 --kv-heads 2 --queries 1000 --keys 500 --on none");
    let launch = &report["launch"];
    assert_eq!(launch["grid"], value!([8, 8, 2]));
    assert_eq!(
        launch["params"][1],
        value!({"name": "kv_heads", "type": "u32", "value": 2})
    );
    assert_eq!(
        launch["params"][4],
        value!({"name": "q", "type": "ptr", "value": {
            "tensor": "q", "shape": [2, 8, 1000, 64], "strides": [512_000, 64_000, 64, 1], "dtype": "f16",
        }})
    );
    for key in ["passed", "max_abs_err", "of_tolerance", "time_ms"] {
        assert_eq!(report[key], Value::Null, "{key}");
    }
    assert_eq!(report["smem"][0]["measured"], Value::Null);
    assert_eq!(
        (&report["device"], &report["arch"]),
        (&value!("none"), &value!("sm_80"))
    );
}

#[test]
fn a_kernel_in_two_launches_has_the_second_under_after() {
    let (_, report) = kernel("layer_norm --backward --rows 9 --cols 40 --blocks 3 --on none");
    let launch = &report["launch"];
    assert_eq!(launch["kernel"], "layer_norm_backward_f32");
    assert_eq!(launch["grid"], value!([3, 1, 1]));
    let after = launch["after"].as_array().expect("a list");
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["kernel"], "layer_norm_backward_f32_sums");
    let params = after[0]["params"].as_array().expect("a list");
    let named: Vec<_> = params.iter().map(|p| (&p["name"], &p["value"])).collect();
    assert_eq!(
        named[..3],
        [
            (&value!("cols"), &value!(40)),
            (&value!("dw_parts"), &value!({"workspace": 0})),
            (&value!("db_parts"), &value!({"workspace": 512})),
        ]
    );
    assert_eq!(named[4].1["tensor"], "db");
    assert_eq!(launch["workspace_bytes"], 1024);
}

#[test]
fn tiles_are_measured_on_a_gpu() {
    let (exit, value) = kernel("attention --tune --queries 64 --keys 64");
    let tiles = value["tiles"].as_array();
    match value["error"]["code"].as_str() {
        Some(code) => {
            println!("no GPU: not run");
            let none = ["no_cuda_driver", "old_cuda_driver", "no_gpu"];
            assert!(exit == 1 && none.contains(&code), "{value}");
        }
        None => assert!(
            exit == 0 && tiles.is_some_and(|t| t.len() > 10 && t[0]["passed"] == true),
            "{value}"
        ),
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (line, exit, code, part) in [
        ("transpose --rows -1", 2, "usage", "-1 is negative"),
        ("transpose --rows 1e3", 2, "usage", "whole number"),
        (
            "transpose --rows 99999999999999999999999",
            2,
            "usage",
            "too large",
        ),
        (
            "transpose --dtype f64",
            2,
            "usage",
            "possible values: f32, f16, s8",
        ),
        ("transpose --on mars", 2, "usage", "possible values"),
        ("transpose --on opencl", 2, "usage", "run as PTX"),
        ("gelu", 2, "usage", "unrecognized subcommand 'gelu'"),
        ("gemv --m 17 --on none", 1, "too_large", "at most 16"),
        ("gemv --tile-n 7", 1, "number", "16 or 32"),
        ("gemv --bias both", 2, "unknown_name", "row"),
        ("grouped --tile-n 72", 1, "number", "64, 128, 192 or 256"),
        ("grouped --scales 1x128,128x128", 1, "number", "row,row"),
        (
            "grouped --groups 513 --on none",
            1,
            "too_large",
            "at most 512",
        ),
        ("quantize --swiglu --scales row", 1, "number", "1x128"),
        (
            "quantize --norm rms --scales 128x128",
            1,
            "number",
            "1x128 or row",
        ),
        ("quantize --m 9 --ld-scale 3", 1, "assumption", "ld_scale"),
        ("quantize --gather 9 --scales row", 1, "number", "1x128"),
        ("route --top 17", 1, "number", "1 to 16"),
        (
            "route --experts 3",
            1,
            "number",
            "at least as many as a token has",
        ),
        ("combine_rows --top -1", 1, "number", "1 to 16"),
        ("grouped --kind k", 2, "usage", "offsets, masked"),
        (
            "rms_norm --backward --residual",
            2,
            "usage",
            "cannot be used with",
        ),
        ("rms_norm --blocks 3", 2, "usage", "--backward"),
        ("layer_norm --backward --blocks 0", 1, "number", "1 to 4096"),
        (
            "layer_norm --backward --cols 131073 --on none",
            1,
            "too_large",
            "at most 131072",
        ),
        ("softmax --arch sm_1", 2, "unknown_arch", "known are sm_75"),
        (
            "softmax --arch sm_75 --dtype bf16",
            1,
            "not_proven",
            "sm_80",
        ),
        (
            "rms_norm --quantize e4m3 --arch sm_80",
            1,
            "not_proven",
            "sm_89",
        ),
        (
            "transpose --rows 1073741825 --on none",
            1,
            "too_large",
            "`rows` is 1073741825, and the kernel was proven for at most 1073741824",
        ),
        (
            "transpose --rows 5000000000 --on none",
            1,
            "too_large",
            "at most 1073741824",
        ),
        (
            "transpose --rows 1073741824 --cols 1073741824 --on none",
            1,
            "too_large",
            "take larger tiles",
        ),
        (
            "transpose --rows 4000000 --cols 4000000 --on emulator",
            1,
            "too_large",
            "GiB are free",
        ),
        ("softmax --cols 131073 --on none", 1, "too_large", "131072"),
        (
            "attention --heads 6 --kv-heads 4",
            1,
            "number",
            "4 is not a divisor of the heads",
        ),
        (
            "attention --heads 6 --kv-heads 0",
            1,
            "number",
            "0 is not a divisor of the heads",
        ),
        (
            "attention --window -3,0",
            2,
            "usage",
            "and -1 for all keys of a side",
        ),
        (
            "attention --softcap -1",
            1,
            "number",
            "soft cap: -1 is not 0.001 to 1000000",
        ),
        (
            "attention --value-dim 32",
            1,
            "number",
            "values of a head: 32 is not 64 or 128",
        ),
        (
            "attention --head-dim 96",
            1,
            "number",
            "96 is not 64 or 128",
        ),
        (
            "attention --tile-queries 100",
            1,
            "number",
            "a multiple of 16",
        ),
        (
            "attention --batch 65536 --heads 1 --on none",
            1,
            "too_large",
            "65535",
        ),
        (
            "softmax --emit /nonexistent/file.ptx --on none",
            1,
            "io",
            "/nonexistent/file.ptx",
        ),
        (
            "softmax --on none --emit-host java x",
            2,
            "unknown_language",
            "cudarc, rust, c or python",
        ),
    ] {
        let (is, report) = kernel(line);
        let error = &report["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert_eq!(
            (is, error["code"].as_str()),
            (exit, Some(code)),
            "{line}: {report}"
        );
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn the_launcher_of_the_cudarc_example_is_what_the_command_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("transpose.rs");
    let path = path.to_str().expect("UTF-8");
    let line = format!("transpose --rows 1000 --cols 700 --on none --emit-host cudarc {path}");
    assert_eq!(kernel(&line).0, 0);
    let written = std::fs::read_to_string(path).expect("written");
    let kept = include_str!("../../examples/hosts/cudarc/src/transpose.rs");
    assert_eq!(
        written, kept,
        "examples/hosts/cudarc/src/transpose.rs is old"
    );
}
