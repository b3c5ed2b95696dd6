//! The transpose of `examples/transpose.rs`: clean, exact and counted as proven over ragged sizes, and its command line.

#[path = "../examples/transpose.rs"]
#[allow(dead_code)]
mod example;

use clap::Parser as _;
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;

/// What the command gives for these flags.
fn command(flags: &str) -> Result<Value, (String, String)> {
    let words = std::iter::once("transpose").chain(flags.split_whitespace());
    let command = example::Command::try_parse_from(words);
    let command = command.map_err(|e| ("usage".to_owned(), e.to_string()))?;
    command.run().map_err(|e| (e.code, e.message))
}

#[test]
fn ragged_sizes_are_exact_clean_and_counted_as_proven() {
    let sizes = [
        (1, 1),
        (1, 200),
        (200, 1),
        (2, 2),
        (63, 65),
        (64, 64),
        (65, 63),
        (128, 128),
        (130, 260),
        (129, 131),
        (252, 36),
    ];
    for dtype in ["f32", "f16", "s8"] {
        for (seed, (rows, cols)) in sizes.iter().enumerate() {
            let flags =
                format!("--dtype {dtype} --rows {rows} --cols {cols} --on emulator --seed {seed}");
            let report = command(&flags).expect(&flags);
            assert_eq!(report["passed"], true, "{flags}: {report}");
            assert_eq!(report["findings"], 0, "{flags}: {report}");
            assert_eq!(report["max_abs_err"], 0.0, "{flags}: {report}");
            let smem = report["smem"].as_array().expect("a list");
            assert_eq!(smem.len(), 2, "{report}");
            for access in smem {
                assert_eq!(access["wavefronts"], 1, "{flags}: {access}");
                assert_eq!(access["ideal"], 1, "{flags}: {access}");
                assert_eq!(access["measured"], 1, "{flags}: {access}");
            }
        }
    }
}

#[test]
fn the_launch_contract_is_complete() {
    let report = command("--rows 1000 --cols 700 --on none").expect("a report");
    assert_eq!(
        report["launch"],
        json!({
            "kernel": "transpose_f32", "grid": [16, 11, 1], "block": [256, 1, 1], "cluster": [1, 1, 1], "shared_bytes": 0,
            "cluster_declared": false, "beside_previous": false, "workspace_bytes": 0, "before": [], "after": [], "assumptions": [],
            "memory": {
                "buffers": [
                    {"name": "x", "bytes": 2_800_000, "alignment": 16, "usage": "input"},
                    {"name": "y", "bytes": 2_800_000, "alignment": 16, "usage": "output"},
                ],
                "overlap": "a buffer that is written overlaps no other",
            },
            "params": [
                {"name": "rows", "type": "u32", "value": 1000},
                {"name": "cols", "type": "u32", "value": 700},
                {"name": "x", "type": "ptr", "value": {"buffer": "x", "element": "f32", "elements": 700_000}},
                {"name": "y", "type": "ptr", "value": {"buffer": "y", "element": "f32", "elements": 700_000}},
            ],
        })
    );
    for key in ["passed", "max_abs_err", "time_ms"] {
        assert_eq!(report[key], Value::Null, "{key}");
    }
    assert_eq!(report["smem"][0]["measured"], Value::Null);
}

#[test]
fn long_sides_go_along_x() {
    for (rows, cols) in [(1 << 30, 1), (1, 1 << 30), (131_072, 1024), (1024, 131_072)] {
        let report = command(&format!("--rows {rows} --cols {cols} --on none")).expect("a report");
        let blocks = |n: u64| n.div_ceil(64);
        let long = blocks(rows.max(cols));
        assert_eq!(
            report["launch"]["grid"],
            json!([long, blocks(rows.min(cols)), 1])
        );
    }
}

#[test]
fn nothing_to_do_passes() {
    for (rows, cols) in [(0, 7), (7, 0), (0, 0)] {
        let report =
            command(&format!("--rows {rows} --cols {cols} --on emulator")).expect("a report");
        assert_eq!(
            (&report["passed"], &report["launch"]),
            (&json!(true), &Value::Null),
            "{report}"
        );
    }
}

#[test]
fn absurd_input_is_refused() {
    for (flags, code, part) in [
        ("--rows -1", "usage", "-1 is negative"),
        ("--rows 1e3", "usage", "whole number"),
        ("--rows 99999999999999999999999", "usage", "too large"),
        ("--dtype f64", "usage", "possible values: f32, f16, s8"),
        ("--on mars", "usage", "possible values"),
        (
            "--rows 1073741825",
            "too_large",
            "`rows` is 1073741825, and the kernel was proven for at most 1073741824",
        ),
        (
            "--rows 5000000000 --on none",
            "too_large",
            "at most 1073741824",
        ),
        (
            "--rows 1073741824 --cols 1073741824",
            "too_large",
            "take larger tiles",
        ),
        (
            "--rows 4000000 --cols 4000000 --on emulator",
            "too_large",
            "GiB of memory",
        ),
        (
            "--emit /nonexistent/file.ptx --on none",
            "io",
            "/nonexistent/file.ptx",
        ),
    ] {
        let (is, message) = command(flags).expect_err(flags);
        assert_eq!(is, code, "{flags}: {message}");
        assert!(message.contains(part), "{flags}: {message}");
    }
}

#[test]
fn every_output_is_covered_for_both_grids() {
    for element in [Element::F32, Element::F16, Element::S8] {
        for tall in [false, true] {
            let kernel = example::transpose(element, tall, Arch(75)).expect("proven");
            assert_eq!(kernel.proof.covered, ["y"]);
        }
    }
}

#[test]
fn the_launcher_of_the_cudarc_example_is_what_the_command_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("transpose.rs");
    let path = path.to_str().expect("UTF-8");
    let flags = format!("--rows 1000 --cols 700 --on none --emit-host cudarc {path}");
    command(&flags).expect("a report");
    let written = std::fs::read_to_string(path).expect("written");
    let kept = include_str!("../examples/hosts/cudarc/src/transpose.rs");
    assert_eq!(
        written, kept,
        "examples/hosts/cudarc/src/transpose.rs is old"
    );
    let (_, error) = command("--on none --emit-host java x").expect_err("no such language");
    assert!(error.contains("cudarc, rust, c or python"), "{error}");
}
