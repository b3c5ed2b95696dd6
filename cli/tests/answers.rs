//! Questions of newcomers: what they type is answered, or refused in a way that says what to type.

mod common;

use std::process::Command;

use common::{json, tilewright as run};

fn out(args: &[&str]) -> String {
    let output = run(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_plan_knows_its_type() {
    let small = [
        "gemm", "--on", "none", "--m", "64", "--n", "64", "--k", "64",
    ];
    let named = [&small[..], &["--plan", "mma-f16-64x64x32"]].concat();
    let (code, value) = json(&named);
    assert_eq!((code, value["dtype"].as_str()), (0, Some("f16")), "{value}");
    let (_, value) = json(&small);
    assert_eq!(value["dtype"].as_str(), Some("f32"));
    // A type that is given and is not the plan's is refused as before.
    let (code, value) = json(&[&named[..], &["--dtype", "s8"]].concat());
    assert_eq!(
        (code, value["error"]["code"].as_str()),
        (2, Some("wrong_type")),
        "{value}"
    );
}

#[test]
fn an_integer_parameter_has_an_integer_value() {
    let args = [
        "gemm",
        "--on",
        "none",
        "--dtype",
        "s8",
        "--m",
        "64",
        "--n",
        "64",
        "--k",
        "64",
        "--alpha",
        "-2147483648",
    ];
    let (code, value) = json(&args);
    assert_eq!(code, 0, "{value}");
    let params = value["launch"]["params"].as_array().expect("parameters");
    let alpha = params.iter().find(|p| p["name"] == "alpha").expect("alpha");
    assert_eq!(alpha["type"], "s32");
    assert_eq!(alpha["value"].to_string(), "-2147483648");
    // What does not fit is not printed in 300 digits.
    let (code, value) = json(&["gemm", "--on", "none", "--dtype", "s8", "--alpha", "1e300"]);
    let message = value["error"]["message"].as_str().expect("a message");
    assert!(
        code == 2 && message.contains("1e300") && message.len() < 200,
        "{message}"
    );
}

#[test]
fn index_composes_and_has_a_default_target() {
    let composed = out(&["index", "(8,64):(ld,1) o (4,2):(2,16)"]);
    assert!(composed.contains("__host__ __device__"), "{composed}");
    let opencl = out(&["index", "(8,64):(64,1)", "--target", "opencl"]);
    assert!(opencl.contains("uint offset(uint"), "{opencl}");
}

#[test]
fn an_instruction_without_its_types_offers_them() {
    let output = run(&["show", "--atom", "mma.m16n8k16"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    for name in ["mma.m16n8k16.f16", "mma.m16n8k16.bf16", "mma.m16n8k16.s8"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn unreadable_notation_is_bad_usage_everywhere() {
    for args in [
        &["eval", "(4,"][..],
        &["show", "(4,"],
        &["index", "(4,"],
        &[
            "derive",
            "--tile",
            "8x8",
            "--elem",
            "f16",
            "--access",
            "ld.32 @ (4,",
        ],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
    // What can be read and does not hold is an answer.
    assert_eq!(
        run(&["eval", "(4,8):(8,1) o (2,4):(2,1)"]).status.code(),
        Some(1)
    );
}

#[test]
fn two_outputs_are_two_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .current_dir(folder.path())
        .args(["show", "(8,8):(8,1)", "--svg", "s.x", "--html", "./s.x"])
        .output()
        .expect("the command starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path().join("s.x").exists());
}

#[test]
fn shells_and_man_are_served() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef tilewright"),
        ("fish", "complete -c tilewright"),
    ] {
        let script = out(&["completions", shell]);
        assert!(
            script.contains(word) && script.contains("derive"),
            "{shell}"
        );
    }
    assert!(out(&["man"]).contains(".TH tilewright 1"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let files = out(&["man", "--dir", path]);
    assert!(files.lines().count() > 10, "{files}");
    let page = std::fs::read_to_string(folder.path().join("tilewright-derive.1")).expect("a page");
    assert!(page.contains("\\-\\-access"), "{page}");
}

#[test]
fn the_largest_products_are_those_that_the_page_states() {
    let page = include_str!("../../docs/kernels.md");
    let rows = |plan, m: &str| {
        let size = ["gemm", "--on", "none", "--n", "8", "--k", "8", "--plan"];
        json(&[&size[..], &[plan, "--m", m]].concat())
    };
    for (plan, most, stated, refused) in [
        (
            "sgemm-maxas-64",
            2_130_706_432_u64,
            "2,130,706,432",
            "m can be at most 2130706432",
        ),
        (
            "mma-f16-64x64x32",
            33_553_920,
            "33,553,920",
            "m can be at most 33553920",
        ),
        (
            "dgemm-4x4",
            33_553_920,
            "33,553,920",
            "m can be at most 33553920",
        ),
        (
            "wgmma-f16-128x256x64+persistent",
            16_777_216,
            "16,777,216",
            "at most 2^24",
        ),
    ] {
        assert!(page.contains(stated), "{stated}");
        let (code, value) = rows(plan, &most.to_string());
        assert_eq!(code, 0, "{plan}: {value}");
        let (code, value) = rows(plan, &(most + 1).to_string());
        let message = value["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(code, 1, "{plan}: {value}");
        assert!(message.contains(refused), "{message}");
    }
}
