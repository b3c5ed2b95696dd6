//! What the tests of the command share: runs, the one JSON value, and pages whose commands must print what they show.

#![allow(dead_code)] // Each test binary uses its part.

#[path = "../../../tests/common/generated.rs"]
pub(crate) mod generated;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command in a folder, with no file of findings from outside.
pub(crate) fn tilewright_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(args)
        .current_dir(folder)
        .env_remove("TILEWRIGHT_FINDINGS")
        .output()
        .expect("the command starts")
}

pub(crate) fn tilewright(args: &[&str]) -> Output {
    tilewright_in(Path::new("."), args)
}

/// The exit code of a run with `--json`, and the one value on standard output.
pub(crate) fn one_json(output: Output, args: &[&str]) -> (i32, Value) {
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!log.contains("panicked"), "{args:?}: {log}");
    let code = output.status.code().expect("an exit code, not a signal");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{args:?} prints {text} and {log}");
    (code, serde_json::from_str(&text).expect("one JSON value"))
}

/// Runs with `--json`.
pub(crate) fn json(args: &[&str]) -> (i32, Value) {
    one_json(tilewright(&[args, &["--json"]].concat()), args)
}

/// Compiles `tests/stand_in/NAME.rs` into a folder, as the CUDA driver of programs that look for it there.
pub(crate) fn stand_in(folder: &Path, name: &str) {
    let source = format!("{}/tests/stand_in/{name}.rs", env!("CARGO_MANIFEST_DIR"));
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["-C", "panic=abort", "-A", "warnings", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(source)
        .output()
        .expect("rustc starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    std::fs::copy(folder.join("libcuda.so"), folder.join("libcuda.so.1")).expect("copied");
}

/// Words of a command line, quotes taken off.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        if i % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Runs the commands of a page in one folder: `files` are blocks of it, by language and the name that the page gives them.
pub(crate) fn check_page(page: &str, files: &[(&str, &str)], commands: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = 0;
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        if let Some((_, name)) = files.iter().find(|file| file.0 == language) {
            std::fs::write(folder.path().join(name), format!("{text}\n")).expect("written");
        }
        if language != "console" {
            continue;
        }
        for command in format!("\n{text}").split("\n$ ").skip(1) {
            let (line, shown) = command.split_once('\n').unwrap_or((command, ""));
            prints(folder.path(), line, shown);
            run += 1;
        }
    }
    assert_eq!(run, commands, "commands on the page");
}

/// The lines come in this order, and next to each other but for a line `…`, which stands for any number of lines.
fn prints(folder: &Path, line: &str, shown: &str) {
    let words = words(line);
    assert_eq!(words[0], "tilewright");
    // Its output is looked at here, wherever the page sends it.
    let to_file = words.iter().position(|word| word == ">");
    let args: Vec<&str> = words[1..to_file.unwrap_or(words.len())]
        .iter()
        .map(String::as_str)
        .collect();
    let output = tilewright_in(folder, &args);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {log}");
    if shown.trim().is_empty() {
        // Shown alone, it only has to work.
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut printed = text.lines();
    let mut skip = false;
    for expected in shown.lines() {
        if expected == "…" {
            skip = true;
        } else if skip {
            let found = printed.any(|real| real == expected);
            assert!(found, "{line} does not print: {expected}\n{text}");
            skip = false;
        } else {
            assert_eq!(printed.next(), Some(expected), "{line}");
        }
    }
    assert!(skip || printed.next().is_none(), "{line} prints more");
}
