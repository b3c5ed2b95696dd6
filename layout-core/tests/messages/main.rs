//! Every place in the crate that refuses something, and what it says: the table of calls, codes and messages.
//!
//! The tables are written to be read. A message names what was given, the numbers that stand in the way, and what would be
//! accepted. The last test holds the tables against the variants in the sources, so that a new variant without a case fails.
//!
//! Branches that no public call reaches, and why they stay:
//!
//! - `f2/convert.rs`, `TooManyBits` of a layout and `SwizzleDoesNotFit`, `LayoutTooLarge` of a swizzled result: a size fits
//!   in 62 bits, and the columns are checked before;
//! - `banks/r700.rs`, `Layout`: all checked groups and strides compose, which `banks_r700.rs` tries;
//! - `derive/mod.rs`, `Misaligned` and `UnsupportedAccess` of a recount: `pose` refuses both before;
//! - `derive/realize.rs`, the result of a plan that is a matrix: the caller asks for its matrix instead;
//! - `proof/cover.rs`, `TooManyCases` where the least offset can't be taken off: offsets fit in 63 bits;
//! - `atoms`, `Overflow` of a tile of shared memory: extents are bounded by the offsets of the descriptor;
//! - `relations.rs`, `fits128`: a product of two 63-bit integers fits;
//! - `affine.rs`, `TooManyModes` of a nested stride, and `profile.rs`: the same site for every tuple.

mod algebra;
mod atoms;
mod maps;
mod notation;
mod table;
mod tiles;

use std::collections::BTreeSet;

use table::Table;

/// The variants of `pub enum name` in a source text.
fn variants(source: &str, name: &str) -> BTreeSet<String> {
    let start = source
        .find(&format!("pub enum {name} {{"))
        .unwrap_or_else(|| panic!("no enum {name}"));
    source[start..]
        .lines()
        .skip(1)
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(|line| {
            let end = line.find(|c: char| !c.is_alphanumeric());
            line[..end.unwrap_or(line.len())].to_string()
        })
        .collect()
}

#[test]
fn every_refusal_says_what_stands_in_the_way() {
    let mut table = Table::new();
    notation::refusals(&mut table);
    algebra::refusals(&mut table);
    tiles::refusals(&mut table);
    maps::refusals(&mut table);
    atoms::refusals(&mut table);
    table.report();

    let sources = [
        ("LayoutError", include_str!("../../src/error.rs")),
        ("ParseErrorKind", include_str!("../../src/parse.rs")),
        ("F2Error", include_str!("../../src/f2/mod.rs")),
        ("BankError", include_str!("../../src/banks/count.rs")),
        ("R700Error", include_str!("../../src/banks/r700.rs")),
        ("DeriveError", include_str!("../../src/derive/error.rs")),
        ("ProofError", include_str!("../../src/proof/error.rs")),
    ];
    let unreachable = [("R700Error", "Layout")];
    let mut missing = Vec::new();
    for (name, source) in sources {
        let known = variants(source, name);
        assert!(known.len() > 2, "{name}: the scan found {known:?}");
        for variant in known {
            let seen = table.has(name, &variant);
            if !seen && !unreachable.contains(&(name, variant.as_str())) {
                missing.push(format!("{name}::{variant}"));
            }
        }
    }
    assert!(missing.is_empty(), "variants without a case: {missing:?}");
}
