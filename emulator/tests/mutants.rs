//! Mutants of the museum's correct twins: what catches each, and why the survivors are equivalent.
//!
//! Every mutation of `common/mutate.rs` is applied to every statement of every kernel `fixed` that it fits. A mutant is caught by the decoder, by a finding, or
//! by other numbers in the kernel's buffers. What survives is listed in `fixtures/mutant_survivors.txt` with the reason why it does what the original does;
//! the test fails if one survives that is not listed, or if one is caught that is. `--nocapture` prints the table.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::LazyLock;

use common::exhibit::{Exhibit, exhibits};
use common::mutate::{self, Mutation};
use ptx_emulator::{GlobalMemory, Module};
use rayon::prelude::*;

/// What caught a mutant.
enum Caught {
    Decoder,
    Finding(&'static str),
    Numbers,
    Nothing,
}

/// The lines of kernel `fixed`.
fn fixed(lines: &[&str]) -> (usize, usize) {
    let from = lines.iter().position(|l| l.contains(".entry fixed"));
    let from = from.expect("a kernel `fixed`");
    let to = lines[from..].iter().position(|l| *l == "}");
    (from, from + to.expect("its end"))
}

/// The result full of a pattern, so that what is not written shows; the input full of words of which no two are alike in any half.
fn fill(memory: &mut GlobalMemory, [out, input]: [u64; 2]) {
    fn words(f: fn(u32) -> u32) -> Vec<u8> {
        let n = common::exhibit::BYTES as u32 / 4;
        (0..n).flat_map(|i| f(i).to_le_bytes()).collect()
    }
    static PATTERN: LazyLock<Vec<u8>> =
        LazyLock::new(|| words(|i| i.wrapping_mul(0x85eb_ca6b) ^ 0xc2b2_ae35));
    static NUMBERS: LazyLock<Vec<u8>> =
        LazyLock::new(|| words(|i| i.wrapping_mul(0x9e37_79b1) ^ 0x2545_f491));
    memory.write(out, &PATTERN).expect("a write");
    memory.write(input, &NUMBERS).expect("a write");
}

/// The whole of the buffers.
fn contents(memory: &GlobalMemory, buffers: [u64; 2]) -> Vec<u8> {
    let read = |at| memory.read(at, common::exhibit::BYTES).expect("a read");
    [read(buffers[0]), read(buffers[1])].concat()
}

fn judge(e: &Exhibit, text: &str, good: &[u8]) -> Caught {
    let Ok(module) = Module::parse_strict(text) else {
        return Caught::Decoder;
    };
    let Ok((report, memory, buffers)) = e.launch(&module, "fixed", 1 << 16, fill) else {
        return Caught::Decoder;
    };
    // A note is enough: it says that the program is not right by the ISA.
    match report.findings.iter().chain(&report.notes).next() {
        Some(f) => Caught::Finding(f.kind.code()),
        None if contents(&memory, buffers) != good => Caught::Numbers,
        None => Caught::Nothing,
    }
}

/// What caught the mutants of an exhibit, and how often, by kind.
#[derive(Default)]
struct Tally {
    kinds: BTreeMap<&'static str, BTreeMap<&'static str, u32>>,
    survivors: BTreeSet<String>,
    /// Exhibits that few kinds of mutations fit.
    few: Vec<String>,
    total: u32,
}

fn mutants_of(e: &Exhibit) -> Tally {
    let mut tally = Tally::default();
    let lines: Vec<&str> = e.text.lines().collect();
    let (from, to) = fixed(&lines);
    let module = Module::parse_strict(&e.text).expect("PTX");
    let (report, memory, buffers) = e.launch(&module, "fixed", 1 << 20, fill).expect("a launch");
    assert!(report.is_clean(), "{}", e.name);
    let good = contents(&memory, buffers);
    let all = mutate::all(&lines, from, to);
    let own: BTreeSet<_> = all.iter().map(|m| m.kind).collect();
    if own.len() < 12 {
        tally.few.push(format!("{} {}", e.name, own.len()));
    }
    for m in &all {
        tally.total += 1;
        let by = match judge(e, &mutate::apply(&lines, m), &good) {
            Caught::Decoder => "(decoder)",
            Caught::Finding(kind) => kind,
            Caught::Numbers => "(numbers)",
            Caught::Nothing => {
                tally.survivors.insert(name(e, &lines, m));
                "(nothing)"
            }
        };
        *tally
            .kinds
            .entry(m.kind)
            .or_default()
            .entry(by)
            .or_default() += 1;
    }
    tally
}

#[test]
fn every_mutant_is_caught_or_equivalent() {
    let exhibits = exhibits();
    let tallies: Vec<Tally> = exhibits.par_iter().map(mutants_of).collect();
    let mut all = Tally::default();
    for tally in tallies {
        all.total += tally.total;
        all.survivors.extend(tally.survivors);
        all.few.extend(tally.few);
        for (kind, by) in tally.kinds {
            let sums = all.kinds.entry(kind).or_default();
            for (by, n) in by {
                *sums.entry(by).or_default() += n;
            }
        }
    }
    let Tally {
        kinds,
        survivors,
        few,
        total,
    } = all;
    let mut table = format!("{total} mutants\n");
    for (kind, by) in &kinds {
        let by: Vec<_> = by.iter().map(|(k, n)| format!("{k} {n}")).collect();
        let _ = writeln!(table, "{kind}: {}", by.join(", "));
    }
    println!("{table}");
    println!("few kinds: {few:?}");
    let listed: BTreeSet<String> = include_str!("fixtures/mutant_survivors.txt")
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| l.split(" // ").next().unwrap_or(l).to_owned())
        .collect();
    let new: Vec<_> = survivors.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&survivors).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "not listed: {new:#?}\nlisted and caught: {gone:#?}"
    );
}

/// How the list of survivors names a mutant.
fn name(e: &Exhibit, lines: &[&str], m: &Mutation) -> String {
    let (from, _) = fixed(lines);
    let line = lines[m.line].trim();
    let now = m.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let change = if now.is_empty() {
        String::new()
    } else {
        format!(" => {now}")
    };
    format!("{}:{}: {}: {line}{change}", e.name, m.line - from, m.kind)
}
