//! The documentation is a book: an index that leads to all of them, links that arrive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page of the book but the index, by its file name.
fn pages() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("docs")).expect("the book");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| Path::new(name).extension().is_some_and(|e| e == "md"))
        .filter(|name| name != "SUMMARY.md")
        .collect()
}

/// The lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The targets of links in a line, code spans left out.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut spans = 0;
    for (i, _) in line.match_indices("](") {
        let before = &line[spans..i];
        // In `code` this is not a link.
        if before.matches('`').count() % 2 == 1 && !before.contains("[`") {
            continue;
        }
        spans = i;
        if let Some((target, _)) = line[i + 2..].split_once(')') {
            found.push(target);
        }
    }
    found
}

/// The name of a heading in an address: lower case, spaces as dashes, other punctuation left out.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(anchor)
        .collect()
}

#[test]
fn the_index_leads_to_every_page_once() {
    let index = read(&root().join("docs/SUMMARY.md"));
    let targets: Vec<&str> = index.lines().flat_map(links).collect();
    let listed: BTreeSet<String> = targets
        .iter()
        .filter(|target| **target != "../README.md")
        .map(|target| (*target).to_owned())
        .collect();
    assert_eq!(listed.len() + 1, targets.len(), "a page is listed twice");
    assert_eq!(listed, pages());
    let readme = read(&root().join("README.md"));
    assert!(
        readme.contains("](docs/SUMMARY.md)"),
        "the README leads to the index"
    );
}

#[test]
fn every_link_arrives() {
    let mut sources: Vec<PathBuf> = pages()
        .into_iter()
        .map(|page| root().join("docs").join(page))
        .collect();
    for name in [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "docs/SUMMARY.md",
        "notes/tried.md",
        "notes/limits.md",
        "examples/hosts/README.md",
    ] {
        sources.push(root().join(name));
    }
    let mut followed = 0;
    for source in &sources {
        let text = read(source);
        for line in prose(&text) {
            for target in links(line) {
                if target.contains("://") {
                    continue;
                }
                let (file, place) = target.split_once('#').unwrap_or((target, ""));
                let path = if file.is_empty() {
                    source.clone()
                } else {
                    source.parent().expect("a folder").join(file)
                };
                let at = source.display();
                assert!(path.exists(), "{at}: {target} is not there");
                if !place.is_empty() {
                    let known = anchors(&read(&path));
                    assert!(known.contains(place), "{at}: {target} has no such heading");
                }
                followed += 1;
            }
        }
    }
    assert!(followed > 150, "{followed} links");
}

/// The blocks of Rust in a text, without the lines that rustdoc hides.
fn snippets(text: &str) -> Vec<String> {
    let blocks = text.split("\n```").skip(1).step_by(2);
    let rust = blocks.filter_map(|block| {
        block
            .strip_prefix("rust\n")
            .or_else(|| block.strip_prefix('\n'))
    });
    rust.map(|code| {
        let shown = code.lines().filter(|line| !line.starts_with("# "));
        shown.collect::<Vec<_>>().join("\n")
    })
    .collect()
}

#[test]
fn the_crate_page_and_the_readme_show_the_same_three_uses() {
    let source = read(&root().join("src/lib.rs"));
    let page: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let uses = snippets(&page.join("\n"));
    assert_eq!(uses.len(), 3);
    assert_eq!(uses, snippets(&read(&root().join("README.md")))[..3]);
}
