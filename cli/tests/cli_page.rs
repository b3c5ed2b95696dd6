//! The commands of `docs/cli.md` and `docs/cli-banks.md` work, and print what the pages show.

use std::path::Path;
use std::process::Command;

/// Words of a command line, quotes taken off.
fn words(line: &str) -> Vec<String> {
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
fn check(page: &str, files: &[(&str, &str)], commands: usize) {
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
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .expect("the command starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {log}");
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

#[test]
fn the_commands_of_the_commands_page() {
    let page = include_str!("../../docs/cli.md");
    check(page, &[("ptx", "double.ptx")], 2);
}

#[test]
fn the_commands_of_banks_and_derive() {
    let page = include_str!("../../docs/cli-banks.md");
    check(page, &[("csv", "accesses.csv")], 3);
}
