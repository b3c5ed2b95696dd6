//! Mutants of the project's kernels by kinds: every kind of change of the emulator's own mutation test, at statements of a kernel of each family and of each example.
//!
//! `mutants` and `mma_mutants` know the slips of their emitters; here the changes know nothing of the kernel (`emulator/tests/common/mutate.rs`). A mutant is caught
//! by the decoder, by a finding, or by a result that differs from the kernel's in any bit: in two problems, in some twenty others, or in another order of blocks and
//! warps. What survives is either shown to do what the kernel does, by its text or by runs over all these problems (`equivalence.rs`), or it is in `survivors.txt`
//! with the reason. Nothing else may survive, at any share. The prover catches nothing here: it reads the representation, which has mutants of its own (`codegen/src/prove/mutants`).
//!
//! A share of the statements is tried, the same each time: one of each kind in each kernel. `TILEWRIGHT_MUTANTS=N` tries N, `TILEWRIGHT_MUTANTS=all` all;
//! `TILEWRIGHT_MUTANTS_OF=NAME` takes the kernels whose names begin so; `--nocapture` prints the table, and for each kernel what survived and why.
//!
//! `complete.rs` says which kernels there have to be.

#[path = "../common/mod.rs"]
mod common;
mod complete;
mod equivalence;
mod fate;
mod flow;
#[path = "../../emulator/tests/common/mutate.rs"]
mod mutate;
mod slice;
mod subjects;
mod survivors;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fate::Tried;
use mutate::Mutation;
use subjects::Subject;

/// What became of the mutants of one kind, by what caught them.
type Table = BTreeMap<&'static str, BTreeMap<String, u32>>;

/// How many mutants of a kind are tried in a kernel.
#[derive(Clone, Copy)]
struct Share {
    places: usize,
    /// Mutants that `survivors.txt` explains are tried on the first problems only.
    brief: bool,
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

/// What a kernel's mutants came to.
struct Tally {
    name: String,
    entries: Vec<String>,
    table: Table,
    /// Survivors without a reason.
    missing: Vec<String>,
}

/// Tries the mutants of one kernel, and prints what survives.
fn tally(subject: Subject, share: Share, listed: &[&str]) -> Tally {
    let tried = Tried::new(subject);
    let lines: Vec<&str> = tried.text().lines().collect();
    let mut by_kind: BTreeMap<&str, Vec<Mutation>> = BTreeMap::new();
    for m in mutate::all(&lines, 0, lines.len()) {
        if tried.reached[m.line] {
            by_kind.entry(m.kind).or_default().push(m);
        }
    }
    let (mut table, mut survivors) = (Table::new(), BTreeMap::new());
    for (kind, all) in &by_kind {
        for i in chosen(all.len(), share.places, [tried.name(), kind]) {
            let m = &all[i];
            let name = survivors::name(tried.name(), &lines, m);
            let known = survivors::explained(listed, &name);
            let fate = tried.fate(&lines, m, known && share.brief);
            let by = fate.unwrap_or_else(|| {
                survivors.insert(format!("{name} (line {})", m.line + 1), known);
                "(survives)".to_owned()
            });
            *table.entry(*kind).or_default().entry(by).or_default() += 1;
        }
    }
    let kinds = by_kind.len();
    assert!(kinds >= 12, "{}: {kinds} kinds", tried.name());
    let total: u32 = table.values().flat_map(BTreeMap::values).sum();
    let mut text = format!(
        "{}: {total} mutants of {kinds} kinds, {} survive\n",
        tried.name(),
        survivors.len()
    );
    for (name, known) in &survivors {
        let _ = writeln!(text, "    {name}{}", if *known { "" } else { ": why?" });
    }
    print!("{text}");
    let missing = survivors.into_iter().filter(|(_, known)| !known);
    Tally {
        name: tried.name().to_owned(),
        entries: lines
            .iter()
            .filter(|l| l.contains(".entry"))
            .map(|l| (*l).to_owned())
            .collect(),
        missing: missing.map(|(name, _)| name).collect(),
        table,
    }
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
    let share = Share {
        places,
        brief: asked.is_none(),
    };
    let listed = survivors::listed();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let Some(make) = subjects::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let subject = make();
            if subject.name.starts_with(&only) {
                own.push(tally(subject, share, &listed));
            }
        }
        own
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done = threads.into_iter().map(|t| t.join().expect("it ends"));
        done.flatten().collect()
    });
    assert!(!tallies.is_empty(), "no kernel's name begins with `{only}`");
    if only.is_empty() {
        let names: BTreeSet<&str> = tallies.iter().map(|t| t.name.as_str()).collect();
        let entries: Vec<&str> = tallies
            .iter()
            .flat_map(|t| &t.entries)
            .map(String::as_str)
            .collect();
        complete::check(&names, &entries.join("\n"));
    }
    let mut table = Table::new();
    let mut missing = Vec::new();
    for tally in tallies {
        missing.extend(tally.missing);
        for (kind, by) in tally.table {
            for (by, n) in by {
                *table.entry(kind).or_default().entry(by).or_default() += n;
            }
        }
    }
    for (kind, by) in &table {
        let by: Vec<_> = by.iter().map(|(by, n)| format!("{by} {n}")).collect();
        println!("{kind}: {}", by.join(", "));
    }
    let of = |what: &str| -> u32 {
        let rows = table.values().flatten();
        let counted = rows.filter(|(by, _)| by.starts_with(what));
        counted.map(|(_, n)| n).sum()
    };
    let [tried, equivalent, survive] = ["", "(equivalent", "(survives"].map(of);
    let caught = tried - equivalent - survive;
    println!("{tried} mutants: {caught} caught, {equivalent} shown equivalent, {survive} survive");
    assert!(
        missing.is_empty(),
        "of {tried} mutants {} survive with no reason: {missing:#?}",
        missing.len()
    );
}
