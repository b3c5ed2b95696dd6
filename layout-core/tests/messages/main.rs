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

use layout_core::f2::F2Error;
use layout_core::{LayoutError, Message};
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
        ("LayoutError", include_str!("../../src/error/mod.rs")),
        ("ParseErrorKind", include_str!("../../src/parse.rs")),
        ("F2Error", include_str!("../../src/f2/error.rs")),
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

#[test]
fn the_longest_messages_fit_with_the_longest_numbers() {
    let (mode, lhs_mode) = (31, 31);
    let (extent, stride, lhs_extent) = (i64::MAX, i64::MIN, i64::MAX);
    let operation =
        "mma.sp.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32";
    let errors = [
        LayoutError::NotComposable {
            mode,
            extent,
            stride,
            lhs_mode,
            lhs_extent,
            run: i64::MAX,
            unit_last: true,
        },
        LayoutError::ModesCarry {
            mode,
            extent,
            stride,
            lhs_mode,
            lhs_extent,
            unit_last: true,
        },
        LayoutError::NegativeCoordinates {
            mode,
            extent,
            stride,
        },
        LayoutError::StraddlesUnit {
            operation: "upcast",
            mode,
            extent,
            stride: i64::MAX,
            n: i64::MAX - 1,
        },
        LayoutError::NumberOutOfRange {
            operation,
            argument: "the number of threads of the destination",
            value: i64::MIN,
            least: i64::MIN,
            most: i64::MIN,
        },
        LayoutError::NotBijective {
            operation: "the threads of a tiled mma",
            size: i64::MAX,
            cosize: i64::MAX,
        },
        LayoutError::NotLinear {
            operation: "composition with a matrix on the right",
            cause: F2Error::NotLinear {
                index: 1 << 62,
                offset: i64::MIN,
            },
        },
        LayoutError::ShapeNotDivisible {
            mode,
            value: i64::MAX,
            divisor: i64::MAX,
            rest: i64::MAX - 1,
        },
    ];
    for error in errors {
        let message = error.message();
        assert!(message.as_str().len() < Message::CAPACITY, "{message}");
    }
}
