//! `show`, seen from outside: the data against brute force, the structure of the pictures, the terminal, errors, files.

#[path = "../common/mod.rs"]
mod common;
mod data;
mod devices;
mod errors;
mod pictures;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use common::one_json;
use serde_json::Value;

fn show_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("show")
        .args(args)
        .env_remove("COLUMNS")
        .env_remove("COLORTERM")
        .env_remove("NO_COLOR")
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn show(args: &[&str]) -> Output {
    show_in(Path::new("."), args)
}

fn text_of(args: &[&str]) -> String {
    let output = show(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(args: &[&str]) -> (i32, Value) {
    one_json(show(&[args, &["--json"]].concat()), args)
}

/// The file that `--svg` or `--html` writes.
fn file(option: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("picture");
    let path_text = path.display().to_string();
    text_of(&[args, &[option, &path_text]].concat());
    std::fs::read_to_string(&path).expect("written")
}

/// One panel's cells by (row, column).
fn cells(panel: &Value) -> BTreeMap<(i64, i64), &Value> {
    let list = panel["cells"].as_array().expect("cells");
    list.iter()
        .map(|cell| {
            let at = |key: &str| cell[key].as_i64().expect("an integer");
            ((at("row"), at("col")), cell)
        })
        .collect()
}

// The terminal.

#[test]
fn colours_are_for_terminals() {
    let plain = text_of(&["(4,8):(8,1)", "--banks"]);
    assert!(!plain.contains('\x1b'));
    let coloured = text_of(&["(4,8):(8,1)", "--banks", "--color", "always"]);
    assert!(coloured.contains("\x1b[48;5;"));
    // Without the escapes it is the same text.
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').expect("an end").1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
    assert!(plain.contains("3 │ 24 25 26 27 28 29 30 31"), "{plain}");
}

#[test]
fn what_is_left_out_is_said() {
    let text = text_of(&["(1000,1000):(1000,1)"]);
    assert!(
        text.contains("Clipped: rows 0..64 and columns 0..16 of 1000 × 1000"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 160));
    let (_, value) = json(&["(1000,1000):(1000,1)"]);
    assert_eq!(value["panels"][0]["clipped"], true);
    assert_eq!(cells(&value["panels"][0]).len(), 128 * 128);
    let (_, value) = json(&[
        "(9223372036854775,2):(0,1)",
        "--rows",
        "9223372036854000..9223372036854010",
    ]);
    assert_eq!(cells(&value["panels"][0]).len(), 20);
    let (_, value) = json(&[
        "(64,64):(64,1)",
        "--rows",
        "0..4",
        "--access",
        "ld.32 @ 32:64",
    ]);
    assert!(
        value["notes"]
            .to_string()
            .contains("28 lanes touch elements outside")
    );
}

// The pages of the book.

#[test]
fn the_books_pictures_are_what_its_commands_draw() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut drawn = BTreeSet::new();
    for entry in std::fs::read_dir(format!("{root}/docs")).expect("the book") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "md") {
            let page = std::fs::read_to_string(&path).expect("a page");
            draw(root, &page, &mut drawn);
        }
    }
    let kept = std::fs::read_dir(format!("{root}/docs/pictures")).expect("listed");
    assert_eq!(drawn.len(), kept.count(), "every picture has its command");
}

/// Runs the commands of a page that draw, and compares their pictures with those that are kept.
fn draw(root: &str, page: &str, drawn: &mut BTreeSet<String>) {
    for line in page.lines() {
        let Some(command) = line.strip_prefix("tilewright show ") else {
            continue;
        };
        let words = common::words(command);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("docs/pictures")).expect("created");
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = show_in(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{line}");
        if let Some(path) = words.iter().find(|word| word.starts_with("docs/pictures/")) {
            let made = std::fs::read_to_string(folder.path().join(path)).expect("made");
            let kept = std::fs::read_to_string(format!("{root}/{path}")).expect("kept");
            assert!(
                made == kept,
                "{path} is not what `{line}` draws: run it again"
            );
            assert!(
                page.contains(&format!("({})", path.trim_start_matches("docs/"))),
                "{path} is shown"
            );
            drawn.insert(path.clone());
        }
    }
}
