//! `gemm --target opencl` seen from outside: the file, the report, and one clear error for whatever can't be done.

mod common;

use common::{json, tilewright};
use serde_json::Value;

/// A small problem with more arguments.
fn gemm(more: &[&str]) -> (i32, Value) {
    let small = ["gemm", "--m", "70", "--n", "50", "--k", "30"];
    json(&[&small[..], more].concat())
}

fn error(more: &[&str]) -> (i32, String, String) {
    let (exit, value) = gemm(more);
    let text = |key: &str| value["error"][key].as_str().unwrap_or_default().to_owned();
    (exit, text("code"), text("message"))
}

#[test]
fn a_file_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("dgemm.cl");
    let name = file.to_str().expect("UTF-8");
    let (exit, value) = gemm(&[
        "--dtype", "f64", "--trans", "tn", "--target", "opencl", "--on", "none", "--emit", name,
    ]);
    assert_eq!(exit, 0, "{value}");
    assert_eq!(value["plan"], "dgemm-4x4");
    assert_eq!(
        (&value["target"], &value["banks"]),
        (&"opencl".into(), &"amd-gcn".into())
    );
    assert!(value["passed"].is_null() && value["arch"].is_null());
    assert_eq!(value["launch"]["kernel"], "dgemm_4x4_tn");
    let text = std::fs::read_to_string(&file).expect("written");
    assert!(
        text.contains("void dgemm_4x4_tn(const __global double *restrict A"),
        "{text}"
    );
    for access in value["smem"].as_array().expect("an array") {
        assert_eq!(access["wavefronts"], access["ideal"], "{access}");
    }
}

#[test]
fn the_banks_are_those_that_are_asked_for() {
    let cost = |banks: &str| {
        let (exit, value) = gemm(&[
            "--plan",
            "sgemm-maxas-64",
            "--target",
            "opencl",
            "--on",
            "none",
            "--banks",
            banks,
        ]);
        assert_eq!(exit, 0, "{value}");
        let all = value["smem"].as_array().expect("an array").clone();
        let of = all.iter().find(|a| a["access"] == "writeCs");
        of.expect("the access")["wavefronts"].clone()
    };
    assert_eq!((cost("amd-gcn"), cost("amd-r700")), (4.into(), 16.into()));
}

#[test]
fn a_plan_without_a_form_is_one_error() {
    let (exit, code, message) = error(&[
        "--dtype",
        "f16",
        "--plan",
        "mma-f16-64x64x32",
        "--target",
        "opencl",
        "--on",
        "none",
    ]);
    assert_eq!((exit, code.as_str()), (1, "no_opencl_form"));
    assert!(
        message.contains("mma_f16_64x64x32_nn") && message.contains("has no OpenCL C form"),
        "{message}"
    );
    assert!(
        message.contains("cp.async") && message.contains("sgemm-maxas-128"),
        "{message}"
    );
    let (exit, code, message) = error(&["--dtype", "f16", "--target", "opencl", "--on", "none"]);
    assert_eq!((exit, code.as_str()), (1, "no_opencl_form"));
    assert!(message.contains("no plan in f16"), "{message}");
}

#[test]
fn arguments_that_do_not_go_together_are_bad_usage() {
    for (more, word) in [
        (&["--target", "ptx", "--on", "opencl"][..], "runs no PTX"),
        (&["--target", "opencl", "--on", "emulator"], "--on opencl"),
        (&["--target", "opencl", "--on", "gpu"], "--on opencl"),
        (&["--banks", "amd-gcn", "--on", "none"], "--target opencl"),
        (&["--target", "opencl", "--arch", "sm_80"], "--target ptx"),
        (&["--target", "opencl", "--banks", "maxwell"], "amd-r700"),
    ] {
        let (exit, _, message) = error(more);
        assert_eq!(exit, 2, "{more:?}: {message}");
        assert!(message.contains(word), "{more:?}: {message}");
    }
}

#[cfg(not(feature = "opencl"))]
#[test]
fn a_build_without_devices_says_so() {
    let (exit, code, message) = error(&["--on", "opencl"]);
    assert_eq!((exit, code.as_str()), (1, "not_built"));
    assert!(message.contains("--features opencl"), "{message}");
}

#[cfg(feature = "opencl")]
#[test]
fn a_product_runs_on_a_device() {
    if std::env::var_os("TILEWRIGHT_NO_OPENCL").is_some_and(|v| v == "1") {
        eprintln!("no OpenCL (TILEWRIGHT_NO_OPENCL=1): not run");
        return;
    }
    let (exit, value) = gemm(&[
        "--dtype", "f64", "--trans", "tn", "--alpha", "1.5", "--beta", "-2", "--on", "opencl",
    ]);
    assert_eq!(exit, 0, "{value}");
    assert_eq!(value["passed"], true);
    assert!(
        value["time_ms"].as_f64().is_some_and(|ms| ms > 0.0),
        "{value}"
    );
}

#[cfg(feature = "opencl")]
#[test]
fn no_device_is_one_error() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args([
            "gemm", "--m", "8", "--n", "8", "--k", "8", "--on", "opencl", "--json",
        ])
        // Where the loader looks for drivers: in a folder that is not there.
        .env("OCL_ICD_VENDORS", "/nonexistent/")
        .env("OPENCL_VENDOR_PATH", "/nonexistent/")
        .output()
        .expect("the command starts");
    let (exit, value) = common::one_json(output, &["--on", "opencl"]);
    assert_eq!(
        (exit, &value["error"]["code"]),
        (1, &"no_opencl_device".into())
    );
    let message = value["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("pocl-opencl-icd") && message.contains("--on none"),
        "{message}"
    );
}

#[test]
fn the_help_names_both_languages() {
    let output = tilewright(&["gemm", "--help"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("OpenCL C, for any OpenCL device"), "{text}");
}
