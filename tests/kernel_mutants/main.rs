//! Mutants of the project's kernels by kinds: every kind of change of the emulator's own mutation test, at statements of a kernel of each family.
//!
//! `mutants` and `mma_mutants` know the slips of their emitters; here the changes know nothing of the kernel (`emulator/tests/common/mutate.rs`). A mutant is caught
//! by the decoder, by a finding, or by a result that differs from the kernel's in any bit. What survives is either shown to do what the kernel does, by a run that
//! `equivalence.rs` makes for it, or it is in `survivors.txt` with the reason; at most a
//! fiftieth of all may be left over, which the test prints.
//!
//! A share of the statements is tried, the same each time: one of each kind in each kernel. `TILEWRIGHT_MUTANTS=N` tries N, `TILEWRIGHT_MUTANTS=all` all;
//! `--nocapture` prints the table, and for each kernel what survived and why.

#[path = "../common/mod.rs"]
mod common;
mod equivalence;
#[path = "../../emulator/tests/common/mutate.rs"]
mod mutate;
mod subjects;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use mutate::Mutation;
use subjects::{Runs, Subject};
use tilewright::emulator::Report;

/// What became of the mutants of one kind, by what caught them.
type Table = BTreeMap<&'static str, BTreeMap<String, u32>>;

/// Steps that a mutant may take. No kernel here takes half as many.
const LIMIT: u64 = 1 << 17;

/// What catches a text.
fn caught(runs: &Runs, text: &str, good: &[Vec<u8>]) -> Result<(), String> {
    let (report, results) = runs(text, LIMIT).map_err(|_| "(decoder)".to_owned())?;
    match report.findings.first() {
        Some(f) => Err(f.kind.code().to_owned()),
        None if results != good => Err("(numbers)".to_owned()),
        None => Ok(()),
    }
}

/// Lines that some lane executes. What none executes cannot matter.
fn executed(report: &Report) -> BTreeSet<usize> {
    let instructions = report.counters.instructions.iter();
    let lines = instructions.filter(|i| i.lanes > 0);
    lines.map(|i| i.line as usize - 1).collect()
}

/// Of `n` mutants the `places` that are tried: spread evenly from one on that the names choose.
fn chosen(n: usize, places: usize, names: [&str; 2]) -> BTreeSet<usize> {
    let bytes = names.iter().flat_map(|name| name.bytes());
    let seed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let first = (seed % n as u64) as usize;
    let places = places.min(n);
    (0..places).map(|i| (first + i * n / places) % n).collect()
}

/// How `survivors.txt` names a mutant: kernel, kind, what was there and what takes its place, without the numbers of registers and labels.
fn name(subject: &Subject, lines: &[&str], m: &Mutation) -> String {
    let plain = |text: &str| {
        let code = text.lines().map(|l| l.split("//").next().unwrap_or(""));
        let code: Vec<_> = code.flat_map(str::split_whitespace).collect();
        let mut out = String::new();
        let mut in_name = false;
        for c in code.join(" ").chars() {
            in_name = c == '%' || (in_name && c.is_ascii_alphanumeric());
            if !(in_name && c.is_ascii_digit()) {
                out.push(c);
            }
        }
        out
    };
    let (was, now) = (plain(lines[m.line]), plain(&m.text));
    format!("{}: {}: {was} => {now}", subject.name, m.kind)
}

/// Tries the mutants of one kernel: the number of kinds, and the survivors that nothing shows to be equivalent.
fn try_all(
    subject: &Subject,
    places: usize,
    table: &mut Table,
) -> (usize, BTreeMap<String, String>) {
    let lines: Vec<&str> = subject.text.lines().collect();
    let mut good = Vec::new();
    let mut reached = BTreeSet::new();
    for runs in &subject.problems {
        let (report, results) = runs(&subject.text, LIMIT / 2).expect("it runs");
        assert!(
            report.is_clean(),
            "{}: {}",
            subject.name,
            report.findings[0]
        );
        reached.extend(executed(&report));
        good.push(results);
    }
    let mut by_kind: BTreeMap<&str, Vec<Mutation>> = BTreeMap::new();
    for m in mutate::all(&lines, 0, lines.len()) {
        if reached.contains(&m.line) {
            by_kind.entry(m.kind).or_default().push(m);
        }
    }
    let mut unknown = BTreeMap::new();
    let of_others = OnceCell::new();
    let others = || {
        of_others.get_or_init(|| {
            let others = subject.others.iter();
            let runs = others.map(|runs| runs(&subject.text, LIMIT).expect("it runs").1);
            runs.collect::<Vec<_>>()
        })
    };
    for (kind, all) in &by_kind {
        for i in chosen(all.len(), places, [&subject.name, kind]) {
            let m = &all[i];
            let text = mutate::apply(&lines, m);
            let mut problems = subject.problems.iter().zip(&good);
            let by = problems.find_map(|(runs, good)| caught(runs, &text, good).err());
            let by = by.unwrap_or_else(|| {
                let holds = |text: &str| {
                    let mut problems = subject.problems.iter().zip(&good);
                    problems.all(|(runs, good)| caught(runs, text, good).is_ok())
                };
                if let Some(why) = equivalence::shown(&lines, m, &holds) {
                    return format!("(equivalent: {why})");
                }
                let mut more = subject.others.iter().zip(others());
                if let Some(by) = more.find_map(|(runs, good)| caught(runs, &text, good).err()) {
                    return by;
                }
                let place = format!("line {}", m.line + 1);
                unknown.insert(name(subject, &lines, m), place);
                "(survives)".to_owned()
            });
            let row = table.entry(kind).or_default();
            *row.entry(by).or_default() += 1;
        }
    }
    (by_kind.len(), unknown)
}

#[test]
fn every_mutant_is_caught_or_equivalent() {
    let asked = std::env::var("TILEWRIGHT_MUTANTS").ok();
    let only = std::env::var("TILEWRIGHT_MUTANTS_OF").unwrap_or_default();
    let places = match asked.as_deref() {
        None => 1,
        Some("all") => usize::MAX,
        Some(n) => n.parse().expect("TILEWRIGHT_MUTANTS is a number or `all`"),
    };
    let listed: Vec<&str> = include_str!("survivors.txt")
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| l.split(" // ").next().unwrap_or(l))
        .collect();
    let mut table = Table::new();
    let mut missing = Vec::new();
    for make in subjects::ALL {
        let subject = make();
        if !subject.name.contains(&only) {
            continue;
        }
        let mut own = Table::new();
        let (kinds, unknown) = try_all(&subject, places, &mut own);
        assert!(kinds >= 12, "{}: {kinds} kinds", subject.name);
        let total: u32 = own.values().flat_map(BTreeMap::values).sum();
        println!(
            "{}: {total} mutants of {kinds} kinds, {} survive",
            subject.name,
            unknown.len()
        );
        for (name, place) in unknown {
            println!("    {name} ({place})");
            let change = name.split_once(": ").map_or("", |(_, change)| change);
            let explains = |l: &&str| match l.strip_prefix("*: ") {
                Some(begin) => change.starts_with(begin),
                None => name.starts_with(l),
            };
            if !listed.iter().any(explains) {
                missing.push(format!("{name} ({place})"));
            }
        }
        for (kind, by) in own {
            for (by, n) in by {
                *table.entry(kind).or_default().entry(by).or_default() += n;
            }
        }
    }
    for (kind, by) in &table {
        let by: Vec<_> = by.iter().map(|(by, n)| format!("{by} {n}")).collect();
        println!("{kind}: {}", by.join(", "));
    }
    println!("not explained: {missing:#?}");
    let tried: u32 = table.values().flat_map(BTreeMap::values).sum();
    assert!(
        50 * missing.len() <= tried as usize,
        "of {tried} mutants more than a fiftieth survive with no reason: {missing:#?}"
    );
}
