//! Every public item of the kernel layer (`ir`, `view`, `pipeline`, what was proven, and the proof) has an example.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, and files of others, that belong to the layer.
const LAYER: [&str; 6] = [
    "src/ir",
    "src/view",
    "src/pipeline",
    "src/value",
    "src/proven.rs",
    "src/prove",
];

/// Items that an example is asked of. Fields and variants are shown by their item's; methods of foreign traits have their trait's.
const ITEMS: [&str; 8] = [
    "pub fn ",
    "pub const fn ",
    "pub struct ",
    "pub enum ",
    "pub trait ",
    "pub type ",
    "pub const ",
    "pub static ",
];

fn files(at: &Path, all: &mut Vec<PathBuf>) {
    if at.is_file() {
        all.push(at.to_owned());
        return;
    }
    for entry in fs::read_dir(at).unwrap_or_else(|e| panic!("{}: {e}", at.display())) {
        files(&entry.expect("an entry").path(), all);
    }
}

/// The names of the items of a file that have no example in the comment above them.
fn without_example(text: &str) -> Vec<String> {
    let mut missing = Vec::new();
    let mut example = false;
    // Attributes may run over several lines: the comment counts until an item or a blank line.
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            example = false;
        } else if line.starts_with("///") || line.starts_with("#[doc") {
            example |= line.contains("```");
        } else if let Some(item) = ITEMS.iter().find_map(|item| line.strip_prefix(item)) {
            let name = item
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            // Items that a macro names have `$name` there, and their comments come with them.
            if !example && !item.starts_with('$') {
                missing.push(name.unwrap_or(item).to_owned());
            }
            example = false;
        } else if line.ends_with('}') || line.ends_with(';') {
            example = false;
        }
    }
    missing
}

#[test]
fn every_public_item_of_the_layer_has_an_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for room in LAYER {
        files(&root.join(room), &mut all);
    }
    let mut missing = Vec::new();
    for file in all
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "rs"))
    {
        let text = fs::read_to_string(file).expect("a source file");
        let file = file.strip_prefix(root).unwrap_or(file);
        let of = without_example(&text).into_iter();
        missing.extend(of.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(
        missing.is_empty(),
        "without an example:\n{}",
        missing.join("\n")
    );
}

#[test]
fn an_item_without_an_example_is_found() {
    let text = "/// What.\n///\n/// ```\n/// a\n/// ```\n#[derive(Debug)]\npub struct A {\n    /// Field.\n    pub x: u8,\n}\n\n/// Does.\npub fn b() {}\n";
    assert_eq!(without_example(text), ["b"]);
}
