//! `tilewright check` on a program in C that launches exhibits of the emulator's museum. Without a C compiler this says so and runs nothing.
#![cfg(target_os = "linux")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{json, one_json, tilewright};
use serde_json::Value;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The library, which cargo builds beside the tests.
fn library() -> String {
    let test = std::env::current_exe().expect("this test");
    let path = test.with_file_name("libtilewright_driver.so");
    assert!(path.exists(), "{} is not there", path.display());
    path.display().to_string()
}

/// The program of the driver's own tests.
fn program(folder: &TempDir) -> Option<String> {
    let program = folder.path().join("exhibit");
    let output = Command::new("cc")
        .args(["-std=c11", "-rdynamic", "-o"])
        .arg(&program)
        .arg(root().join("driver/tests/c/exhibit.c"))
        .arg("-ldl")
        .output();
    let Ok(output) = output else {
        eprintln!("no C compiler: not run");
        return None;
    };
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    Some(program.display().to_string())
}

/// The command line of a check of an exhibit.
fn line<'a>(
    program: &'a str,
    library: &'a str,
    file: &'a str,
    kernel: &'a str,
    more: &[&'a str],
) -> Vec<&'a str> {
    let mut line = vec!["check", "--json", "--driver", library];
    line.extend(more);
    line.extend(["--", program, file, kernel, "1", "64", "1"]);
    line
}

#[test]
fn what_it_finds_and_how_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(&folder) else {
        return;
    };
    let library = library();
    let file = root().join("emulator/museum/missing_barrier.ptx");
    let file = file.display().to_string();
    let sarif = folder.path().join("findings.sarif");
    let sarif = sarif.display().to_string();
    let check = |kernel: &str, more: &[&str]| {
        let line = line(&program, &library, &file, kernel, more);
        one_json(tilewright(&line), &line)
    };

    let (code, report) = check("bug", &["--sarif", &sarif]);
    assert_eq!(
        (code, &report["passed"]),
        (1, &Value::Bool(false)),
        "{report}"
    );
    assert_eq!(report["program"]["exit"], 0);
    let kernel = &report["kernels"][0];
    assert_eq!(
        (&kernel["name"], &kernel["launches"]),
        (&"bug".into(), &1.into())
    );
    let finding = &kernel["findings"][0];
    assert_eq!(finding["kind"], "shared_race");
    let calls = finding["backtrace"].to_string();
    assert!(
        calls.contains("cuLaunchKernelEx") && calls.contains("main"),
        "{calls}"
    );
    let text = std::fs::read_to_string(&sarif).expect("the file");
    let run = serde_json::from_str::<Value>(&text).expect("JSON")["runs"][0].clone();
    assert_eq!(run["results"][0]["ruleId"], "shared_race");
    assert_eq!(run["results"][0]["level"], "error");

    let (code, report) = check("fixed", &["--device", "b200,h100"]);
    // PTX for sm_90a is for no other device: the program fails, and says why.
    assert_eq!(
        (code, &report["program"]["exit"]),
        (1, &4.into()),
        "{report}"
    );
    let (code, report) = check("fixed", &[]);
    assert_eq!(
        (code, &report["passed"]),
        (0, &Value::Bool(true)),
        "{report}"
    );
    let (code, report) = check("bug", &["--skip", "bug"]);
    assert_eq!(
        (code, &report["kernels"][0]["skipped"]),
        (0, &1.into()),
        "{report}"
    );
    let (code, report) = check("bug", &["--kernel", "other"]);
    assert_eq!(
        (code, &report["error"]["code"]),
        (1, &"no_such_kernel".into())
    );
    let (code, report) = check("nothing", &["--sample", "1"]);
    assert_eq!(
        (code, &report["program"]["exit"]),
        (1, &4.into()),
        "{report}"
    );
}

#[test]
fn a_program_that_checks_nothing_is_no_success() {
    let library = library();
    for (program, code) in [("true", "no_driver_calls"), ("/no/such/program", "program")] {
        let line = ["check", "--json", "--driver", &library, "--", program];
        let (exit, report) = one_json(tilewright(&line), &line);
        assert_eq!(
            (exit, &report["error"]["code"]),
            (1, &code.into()),
            "{report}"
        );
    }
    let (exit, report) = json(&["check", "--driver", "/no/such/library.so"]);
    assert_eq!(
        (exit, &report["error"]["code"]),
        (2, &"usage".into()),
        "{report}"
    );
    let line = [
        "check",
        "--json",
        "--driver",
        "/no/such/library.so",
        "--",
        "true",
    ];
    let (exit, report) = one_json(tilewright(&line), &line);
    assert_eq!(
        (exit, &report["error"]["code"]),
        (1, &"io".into()),
        "{report}"
    );
}
