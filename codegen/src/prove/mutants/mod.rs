//! Mutants of the representation: what the emulator or the numbers refute, the prover must refuse.
//!
//! Each mutant is one small mistake in a finished kernel, at every place where it can be made (or at some of them, evenly spread). A mutant that the
//! prover accepts is printed, run on the emulator with the sanitizer on, over sizes with and without ragged edges, and compared with the reference: it must be
//! clean and right. The table of who caught what is printed by `cargo test -p layout-codegen mutants -- --nocapture`.

mod attention;
mod bulk;
mod cluster;
mod hopper;
mod kinds;
mod layer;
mod mma;
mod named;
mod outer;
mod pipeline;
mod rows;
mod sgemm;
mod transpose;

use std::collections::BTreeMap;

use crate::ir::Entry;
use crate::print::module;
use crate::prove::prove;

/// What became of the mutants of one kind.
#[derive(Default)]
struct Tally {
    made: usize,
    refused: BTreeMap<&'static str, usize>,
    accepted: usize,
    refuted: Vec<String>,
}

/// What is wrong with a text, if anything is.
type Judge = Box<dyn Fn(&str) -> Option<String>>;

/// A kernel whose mutants are judged, and a judge that knows nothing of the prover.
struct Subject {
    name: String,
    entry: Entry,
    /// The other kernels of its module.
    others: Vec<Entry>,
    /// None if the text is clean and right.
    judge: Judge,
}

/// The text of a subject's module with `entry` in place of its kernel.
fn printed(subject: &Subject, entry: &Entry) -> String {
    let all: Vec<Entry> = [entry]
        .into_iter()
        .chain(&subject.others)
        .cloned()
        .collect();
    if entry.rings.is_empty() && entry.tensor_maps.is_empty() && entry.cluster_blocks() == 1 {
        module(&all, "7.0", "sm_80")
    } else {
        module(&all, "8.0", "sm_90a")
    }
}

/// Makes the mutants of a kernel, at most `most` of a kind; returns how many there were, and those that were accepted and refuted.
fn judged(subject: &Subject, most: usize) -> (usize, Vec<String>) {
    prove(&subject.entry).unwrap_or_else(|e| panic!("{}: {e}", subject.name));
    let print = |e: &Entry| printed(subject, e);
    let own = print(&subject.entry);
    assert_eq!((subject.judge)(&own), None, "{}", subject.name);
    let mut table: BTreeMap<&str, Tally> = BTreeMap::new();
    for (kind, places, make) in kinds::all(&subject.entry) {
        let tally = table.entry(kind).or_default();
        let step = places.div_ceil(most).max(1);
        for place in (0..places).step_by(step) {
            let mut mutant = subject.entry.clone();
            make(&mut mutant, place);
            let text = print(&mutant);
            if text == own {
                continue;
            }
            tally.made += 1;
            if let Err(e) = prove(&mutant) {
                *tally.refused.entry(e.code()).or_default() += 1;
                continue;
            }
            tally.accepted += 1;
            if let Some(why) = (subject.judge)(&text) {
                let what = format!("{}: {kind} at {place}: {why}", subject.name);
                tally.refuted.push(what);
            }
        }
    }
    println!("{}", subject.name);
    let mut made = 0;
    let mut refuted = Vec::new();
    for (kind, t) in table {
        let by: Vec<_> = t.refused.iter().map(|(c, n)| format!("{c} {n}")).collect();
        println!(
            "  {kind:<40} {:>4} made, {:>3} accepted, refused: {}",
            t.made,
            t.accepted,
            by.join(", ")
        );
        made += t.made;
        refuted.extend(t.refuted);
    }
    (made, refuted)
}
