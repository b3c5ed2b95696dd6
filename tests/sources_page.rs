//! `docs/sources.md` is true as far as a page can be tested: each claim names tests that exist, and the layouts are those of the plans.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::Operands;

const PAGE: &str = include_str!("../docs/sources.md");

/// The rows of all tables of claims: the claim, and what holds it.
fn claims() -> Vec<(&'static str, &'static str)> {
    let mut rows = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if line != "| claim | held by |" {
            continue;
        }
        assert_eq!(lines.next(), Some("|---|---|"));
        for row in lines.by_ref().take_while(|line| line.starts_with('|')) {
            let mut cells = row.trim_matches('|').split(" | ");
            let (Some(claim), Some(held), None) = (cells.next(), cells.next(), cells.next()) else {
                panic!("two cells: {row}");
            };
            rows.push((claim.trim(), held.trim()));
        }
    }
    rows
}

#[test]
fn every_claim_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = BTreeSet::new();
    let claims = claims();
    for (claim, held) in &claims {
        for test in held.split(", ") {
            let test = test.strip_prefix('`').and_then(|t| t.strip_suffix('`'));
            let test = test.unwrap_or_else(|| panic!("{claim}: `file::function`, not {held}"));
            let (file, function) = test.split_once("::").expect("file::function");
            let text = std::fs::read_to_string(root.join(file));
            let text = text.unwrap_or_else(|e| panic!("{claim}: {file}: {e}"));
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let declared = format!("fn {function}(");
            let at = lines.iter().position(|line| line.starts_with(&declared));
            let at = at.unwrap_or_else(|| panic!("{claim}: {file} has no {function}"));
            // Between the attribute and the function there are other attributes at most; in a `proptest!` block too.
            let attributes = lines[..at].iter().rev();
            let is_test = attributes
                .take_while(|line| line.starts_with("#["))
                .any(|line| *line == "#[test]");
            assert!(is_test, "{claim}: {test} is no test");
            named.insert(test);
        }
    }
    assert!(claims.len() >= 35 && named.len() >= 40, "{}", named.len());
}

#[test]
fn the_layouts_are_those_of_the_plans() {
    let mut shown = BTreeSet::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(of) = line.strip_prefix("plan ") else {
            continue;
        };
        let (name, operands) = of.split_once(", ").expect("plan NAME, TRANSPOSES");
        let operands: Operands = operands.parse().expect("nn, nt, tn or tt");
        let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
        let layouts = plan.layouts(operands).expect("it composes");
        for line in lines.by_ref().take_while(|line| *line != "```") {
            let (name, layout) = line.split_once(' ').expect("a name and a layout");
            let own = layouts.iter().find(|own| own.name == name);
            let own = own.unwrap_or_else(|| panic!("{of} has no {name}"));
            assert_eq!(own.layout, layout.trim(), "{of}: {name}");
        }
        assert!(shown.insert(of), "{of} twice");
    }
    assert_eq!(shown.len(), 4, "two by maxas, one by each of AMD's sources");
}

/// What the page says of loops and of wavefronts.
#[test]
fn the_figures_are_those_of_the_kernels() {
    let emit = |name: &str, trans: &str| {
        let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
        let operands: Operands = trans.parse().expect("transposes");
        plan.emit(operands, plan.min_arch()).expect("it proves")
    };
    let dgemm = emit("dgemm-4x4", "tn").mix.expect("a main loop");
    let text = format!(
        "(in `tn` {} of {} instructions, {:.1} %)",
        dgemm.products + dgemm.loads,
        dgemm.all(),
        100.0 * dgemm.useful()
    );
    assert!(PAGE.contains(&text), "{text}");
    let maxas = emit("sgemm-maxas-128", "tn").mix.expect("a main loop");
    let text = format!(
        "{} of {} instructions of an iteration are FFMAs ({:.1} %)",
        maxas.products,
        maxas.all(),
        100.0 * maxas.multiplying()
    );
    assert!(PAGE.contains(&text), "{text}");
    let r700 = emit("sgemm-r700-64", "tn");
    for (access, row) in [("write", "store"), ("read", "read")] {
        let stated = r700.proof.obligations.iter();
        let stated = stated.filter(|o| o.name.starts_with(access) && o.name.contains("wavefronts"));
        let mut rows = stated.map(|o| {
            let counts = o.evidence.split(", ").map(|part| {
                let mut words = part.split_whitespace().skip(1);
                let count = words.next().expect("a count");
                let ideal = words.nth(1).expect("an ideal").trim_end_matches(')');
                format!("{count} of {ideal}")
            });
            let counts: Vec<String> = counts.collect();
            format!("| {row}, 16 bytes | {} |", counts.join(" | "))
        });
        assert!(rows.all(|row| PAGE.contains(&row)));
    }
}
