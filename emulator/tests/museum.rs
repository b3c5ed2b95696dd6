//! The museum: each kernel `bug` of `museum/*.ptx` gets the finding that its file names, at the line that it names; its twin `fixed` gets none. The
//! page `docs/emulator.md` lists the exhibits; `TILEWRIGHT_UPDATE=1` writes its list anew.

mod common;

use std::fmt::Write;

use common::exhibit::{Exhibit, exhibits};
use common::{assembles, generated};

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

/// The exhibits, a table for each section.
fn museum() -> String {
    let mut text = String::new();
    let exhibits = exhibits();
    for section in SECTIONS {
        let _ = write!(
            text,
            "\n**{section}**\n\n| mistake | what happens | finding |\n|---|---|---|\n"
        );
        for e in exhibits.iter().filter(|e| section_of(e) == section) {
            let story: Vec<_> = e
                .text
                .lines()
                .skip(2)
                .take_while(|l| *l != "//")
                .map(|l| l.trim_start_matches("// ").replace('|', "\\|"))
                .collect();
            let (title, name, story) = (e.title(), &e.name, story.join(" "));
            let finding = e.head("finding");
            let _ = writeln!(
                text,
                "| [{title}](../emulator/museum/{name}.ptx) | {story} | `{finding}` |"
            );
        }
    }
    text + "\n"
}

/// What is printed of one exhibit: the line, and the finding.
fn finding() -> String {
    let all = exhibits();
    let e = all.iter().find(|e| e.name == "missing_barrier");
    let e = e.expect("the exhibit");
    let report = e.run("bug");
    let mut found = report.findings.iter();
    let found = found.find(|f| f.message.contains(e.head("says")));
    let found = found.expect("a finding");
    let line = found.line as usize;
    let text = e.text.lines().nth(line - 1).expect("the line").trim();
    format!("```text\n{line:>4} | {text}\n{found}\n```\n")
}

#[test]
fn the_page_lists_the_exhibits() {
    generated::parts(
        "emulator.md",
        &[("finding", finding()), ("museum", museum())],
    );
}
