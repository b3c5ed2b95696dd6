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

/// The most pages and words that the book has, README included.
const PAGES: usize = 24;
const WORDS: usize = 35_000;

/// Phrases of the left column of the vocabulary that have no other meaning: words in order, each with its forms.
const PHRASES: [&[&str]; 21] = [
    &["take|takes|taking", "tile", "after", "tile"],
    &["dealt", "out"],
    &["taker|ordered_roles"],
    &["own", "kernel|kernels"],
    &["kernel|kernels", "of", "one's|your|our", "own"],
    &["give|gives|given|giving", "a|the|its", "stage", "back"],
    &["stage|stages", "that", "is|are", "held"],
    &["stored", "in", "a", "straight", "line"],
    &["exchanged", "product|products"],
    &["product|products|plan|plans", "of", "warpgroups"],
    &["beside", "the", "previous", "kernel"],
    &["tell|tells", "its|their", "coordinates", "apart"],
    &["pass|passes|passed", "the", "turn", "on"],
    &["turn|turns", "of", "a|the", "loop"],
    &["hand|hands", "over"],
    &["use", "i", "of", "a|the", "ring"],
    &["begin|begins", "lines|sectors"],
    &["parts", "of", "sums"],
    &["kept", "by", "the", "launch"],
    &["blocks", "in", "a", "rectangle"],
    &["to", "cut", "a", "problem"],
];

/// README and the pages, by name.
fn book() -> Vec<(String, String)> {
    let page = |name: String| {
        (
            format!("docs/{name}"),
            read(&root().join("docs").join(&name)),
        )
    };
    let mut all: Vec<(String, String)> = pages().into_iter().map(page).collect();
    all.push(("README.md".to_owned(), read(&root().join("README.md"))));
    all
}

/// Whether the words contain the phrase.
fn has(words: &[String], phrase: &[&str]) -> bool {
    let fits = |(word, forms): (&String, &&str)| forms.split('|').any(|form| form == word);
    words
        .windows(phrase.len())
        .any(|window| window.iter().zip(phrase).all(fits))
}

/// The words of a text in lower case; a hyphen and an apostrophe belong to the word.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase().replace('’', "'");
    let parts = lower.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '\''));
    let kept = parts.filter(|part| !part.is_empty());
    kept.map(ToOwned::to_owned).collect()
}

#[test]
fn the_book_has_the_words_of_the_field() {
    let sample = words("Blocks take\ntile after *tile*, and `own-kernels.md` is a link.");
    assert!(has(&sample, PHRASES[0]) && !has(&sample, PHRASES[3]));
    for (name, text) in book() {
        let words = words(&text);
        for phrase in PHRASES {
            let phrase_text = phrase.join(" ");
            assert!(!has(&words, phrase), "{name} has: {phrase_text}");
        }
    }
}

#[test]
fn the_book_is_short() {
    let mut count = 0;
    for (_, text) in book() {
        let mut generated = false;
        for line in prose(&text) {
            generated |= line.starts_with("<!-- generated");
            if !generated {
                let tokens = line.split_whitespace();
                count += tokens.filter(|t| t.contains(char::is_alphanumeric)).count();
            }
            generated &= !line.starts_with("<!-- /generated");
        }
    }
    let number = pages().len();
    assert!(number <= PAGES, "{number} pages");
    assert!(
        count <= WORDS,
        "{count} words without code and generated parts"
    );
}
