//! Every snippet of the book that shows the calculator is true: `>> expression`, and the answer on the next line.

#[path = "../../workbench/src/calculator/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the command uses the rest")]
mod calculator;
mod common;

use std::fmt::Write;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The answer as the book prints it.
fn answer(expression: &str) -> String {
    match calculator::evaluate(expression) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {}", error.code),
    }
}

fn check(name: &str, least: usize) {
    let text = page(name);
    let mut lines = text.lines().enumerate();
    let mut snippets = 0;
    while let Some((number, line)) = lines.next() {
        if let Some(expression) = line.strip_prefix(">> ") {
            let (_, expected) = lines.next().expect("an answer follows each expression");
            assert_eq!(
                answer(expression),
                expected.trim(),
                "{name}, line {}: {expression}",
                number + 1
            );
            snippets += 1;
        }
    }
    assert!(snippets >= least, "{name} has {snippets} snippets");
}

#[test]
fn the_essay_on_the_algebra_is_true() {
    check("algebra.md", 140);
}

#[test]
fn the_page_on_differences_from_cute_is_true() {
    check("cute.md", 55);
}

#[test]
fn the_calculators_page_is_true() {
    check("cli.md", 30);
}

#[test]
fn the_page_on_devices_is_true() {
    check("devices.md", 14);
}

/// A table for each group of functions, which are the comments of the list.
#[test]
fn the_calculators_page_lists_every_function() {
    let source = include_str!("../../workbench/src/calculator/functions/table.rs");
    let mut text = String::new();
    let mut functions = calculator::FUNCTIONS.iter();
    for line in source.lines() {
        if let Some(group) = line.strip_prefix("    // ") {
            let _ = writeln!(text, "\n**{group}**\n\n| call | gives |\n|---|---|");
        } else if line.starts_with("    (") {
            let (_, usage, meaning) = functions.next().expect("an entry");
            let _ = writeln!(text, "| `{usage}` | {meaning} |");
        }
    }
    assert!(functions.next().is_none(), "every function has its row");
    common::generated::parts("cli.md", &[("functions", format!("{text}\n"))]);
}
