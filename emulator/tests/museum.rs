//! The museum: each kernel `bug` of `museum/*.ptx` gets the finding that its file names, at the line that it names; its twin `fixed` gets none. The
//! page `docs/museum.md` shows what is printed; `TILEWRIGHT_UPDATE=1` writes its exhibits anew.

mod common;

use std::fmt::Write;
use std::path::Path;

use common::assembles;
use common::exhibit::{Exhibit, exhibits};

#[test]
fn each_bug_is_found_and_each_twin_is_clean() {
    let all = exhibits();
    assert!(all.len() >= 30, "{} exhibits", all.len());
    let mut wrong = Vec::new();
    for e in &all {
        let report = e.run("bug");
        let expected = (e.head("finding"), e.head("at"), e.head("says"));
        let fits = report.findings.iter().chain(&report.notes).any(|f| {
            f.kind.code() == expected.0
                && f.opcode.starts_with(expected.1)
                && f.message.contains(expected.2)
        });
        if !fits {
            wrong.push(format!(
                "{}: no {expected:?} in {:#?}",
                e.name, report.findings
            ));
        }
        let report = e.run("fixed");
        if !report.is_clean() {
            wrong.push(format!("{} fixed: {:#?}", e.name, report.findings));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_kernels_of_each_exhibit_assemble() {
    for e in exhibits() {
        assembles(&e.name, &e.text);
    }
}

/// The sections of the page: what any GPU has, the asynchronous instructions of Hopper, and its clusters.
const SECTIONS: [&str; 3] = ["Any GPU", "mbarriers, bulk copies, wgmma", "Clusters"];

fn section_of(e: &Exhibit) -> &'static str {
    let hopper = ["mbarrier.", "wgmma.", "cp.async.bulk."];
    if !e.head("launch").ends_with("cluster 1") {
        SECTIONS[2]
    } else if hopper.iter().any(|word| e.text.contains(word)) {
        SECTIONS[1]
    } else {
        SECTIONS[0]
    }
}

/// The page from its introduction and the exhibits.
fn page(introduction: &str) -> String {
    let mut page = introduction.to_owned();
    let exhibits = exhibits();
    for section in SECTIONS {
        let _ = write!(page, "\n## {section}\n");
        for e in exhibits.iter().filter(|e| section_of(e) == section) {
            write_exhibit(&mut page, e);
        }
    }
    page
}

fn write_exhibit(page: &mut String, e: &Exhibit) {
    let story: Vec<_> = e
        .text
        .lines()
        .skip(2)
        .take_while(|l| *l != "//")
        .map(|l| l.trim_start_matches("// "))
        .collect();
    let report = e.run("bug");
    let found = report
        .findings
        .iter()
        .chain(&report.notes)
        .find(|f| f.kind.code() == e.head("finding") && f.message.contains(e.head("says")));
    let line = found.map_or(1, |f| f.line as usize);
    let found = found.map(ToString::to_string).unwrap_or_default();
    let text = e.text.lines().nth(line - 1).unwrap_or("").trim();
    let _ = write!(
        page,
        "\n### {}\n\n[`{name}.ptx`](../emulator/museum/{name}.ptx). {}\n\n```text\n{line:>4} | {text}\n{found}\n```\n",
        e.title(),
        story.join(" "),
        name = e.name,
    );
}

#[test]
fn the_page_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/museum.md");
    let old = std::fs::read_to_string(&path).expect("the page");
    let introduction = old.split("\n## ").next().expect("an introduction");
    let new = page(&format!("{}\n", introduction.trim_end()));
    if std::env::var_os("TILEWRIGHT_UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(&path, &new).expect("a write");
        return;
    }
    assert!(
        old == new,
        "docs/museum.md is old: run this test with TILEWRIGHT_UPDATE=1"
    );
}
