//! The expected results of the derivation, row by row: wavefronts of one phase in each family.

use layout_core::banks::{Access, NVIDIA, effective_phase_lanes};
use layout_core::derive::{
    Derivation, DeriveError, Family, Pattern, Status, Tile, derive, recount,
};
use layout_core::proof::{bijective, prove_access};
use layout_core::{Layout, Swizzled};

fn pattern(access: &str, layout: &str) -> Pattern {
    Pattern::from_layout(access.parse().unwrap(), &Layout::parse(layout).unwrap()).unwrap()
}

fn tile(rows: i64, cols: i64, elem_bytes: i64) -> Tile {
    Tile {
        rows,
        cols,
        elem_bytes,
    }
}

/// Wavefronts of one phase of each access.
fn per_phase(derivation: &Derivation, patterns: &[Pattern]) -> Vec<u32> {
    derivation
        .accesses()
        .iter()
        .zip(patterns)
        .map(|(count, pattern)| {
            let phases = pattern.access.lanes()
                / effective_phase_lanes(&NVIDIA, pattern.access, &pattern.elements);
            assert_eq!(count.wavefronts % phases, 0);
            count.wavefronts / phases
        })
        .collect()
}

struct Row {
    name: &'static str,
    tile: Tile,
    patterns: Vec<Pattern>,
    plain: &'static [u32],
    swizzle: &'static [u32],
    padded: &'static [u32],
}

fn rows() -> Vec<Row> {
    let ldmatrix = |cols: i64| pattern("ldmatrix.x4", &format!("(16,2):({cols},8)"));
    let copy = |cols: i64| match cols {
        32 => pattern("cp.async.16", "(4,8):(8,32)"),
        64 => pattern("cp.async.16", "(8,4):(8,64)"),
        _ => pattern("cp.async.16", "(16,2):(8,128)"),
    };
    let mut rows = Vec::new();
    for (cols, row_major, padded) in [
        (32, &[1, 4], &[2, 1]),
        (64, &[1, 8], &[1, 1]),
        (128, &[1, 8], &[1, 1]),
    ] {
        rows.push(Row {
            name: "cp.async.16 + ldmatrix",
            tile: tile(64, cols, 2),
            patterns: vec![copy(cols), ldmatrix(cols)],
            plain: row_major,
            swizzle: &[1, 1],
            padded,
        });
    }
    rows.push(Row {
        name: "st.v4, 4 lanes a row x 2 rows + ldmatrix",
        tile: tile(64, 64, 2),
        patterns: vec![pattern("st.128", "(4,8):(8,64)"), ldmatrix(64)],
        plain: &[2, 8],
        swizzle: &[2, 1],
        padded: &[2, 1],
    });
    rows.push(Row {
        name: "f32 transpose",
        tile: tile(16, 32, 4),
        patterns: vec![pattern("st.32", "32:1"), pattern("ld.32", "(16,2):(32,1)")],
        plain: &[1, 16],
        swizzle: &[1, 1],
        padded: &[],
    });
    rows.push(Row {
        name: "f32 epilogue",
        tile: tile(64, 128, 4),
        patterns: vec![pattern("st.64", "(4,8):(2,128)"), pattern("ld.128", "32:4")],
        plain: &[4, 1],
        swizzle: &[1, 1],
        padded: &[1, 1],
    });
    rows.push(Row {
        name: "row + column + diagonal",
        tile: tile(32, 64, 2),
        patterns: vec![
            pattern("ld.128", "(8,4):(8,64)"),
            pattern("ldmatrix.x4", "(8,4):(64,8)"),
            pattern("ld.128", "(8,4):(72,512)"),
        ],
        plain: &[1, 8, 1],
        swizzle: &[1, 2, 1],
        padded: &[1, 2, 1],
    });
    rows
}

#[test]
fn every_row_of_the_table_is_reproduced_or_beaten() {
    for row in rows() {
        let sum = |v: &[u32]| v.iter().sum::<u32>();
        let total = |v: &[u32]| -> u32 {
            v.iter()
                .zip(&row.patterns)
                .map(|(w, p)| {
                    w * (p.access.lanes() / effective_phase_lanes(&NVIDIA, p.access, &p.elements))
                })
                .sum()
        };
        let plain = Swizzled::plain(
            Layout::flat(&[row.tile.rows, row.tile.cols], &[row.tile.cols, 1]).unwrap(),
        );
        let row_major: u32 = row
            .patterns
            .iter()
            .map(|p| recount(row.tile, p, &plain).unwrap().wavefronts)
            .sum();
        assert_eq!(row_major, total(row.plain), "{}", row.name);
        for (family, expected) in [(Family::Swizzle, row.swizzle), (Family::Padded, row.padded)] {
            let found = derive(row.tile, &row.patterns, family).unwrap();
            let phases = per_phase(&found, &row.patterns);
            println!("{} {:?}: {phases:?} {:?}", row.name, family, found.layout);
            if !expected.is_empty() {
                assert!(
                    found.wavefronts() <= total(expected) && sum(&phases) <= sum(expected),
                    "{} {family:?}: {phases:?}",
                    row.name
                );
            }
        }
        for family in [Family::F2, Family::Any] {
            let found = derive(row.tile, &row.patterns, family).unwrap();
            println!(
                "{} {family:?}: {:?} {:?} {}",
                row.name, found.layout, found.matrix, found.certificate
            );
            assert_eq!(
                found.status,
                Status::Optimal,
                "{}: {}",
                row.name,
                found.certificate
            );
            assert!(
                per_phase(&found, &row.patterns).iter().all(|&w| w == 1),
                "{}",
                row.name
            );
            assert_eq!(found.wavefronts(), found.lower_bound);
            assert!(found.bijective || found.family == Family::Padded);
        }
    }
}

#[test]
fn the_permuted_family_solves_what_no_swizzle_and_no_padding_does() {
    let patterns = [
        pattern("st.128", "(4,8):(8,64)"),
        pattern("cp.async.16", "(8,4):(8,64)"),
        pattern("ldmatrix.x4", "(16,2):(64,8)"),
    ];
    let tile = tile(64, 64, 2);
    for family in [Family::Swizzle, Family::Padded] {
        let found = derive(tile, &patterns, family).unwrap();
        assert_eq!(found.status, Status::Impossible);
        assert!(found.lower_bound > 12);
        assert!(
            found.certificate.to_string().contains("lanes"),
            "{}",
            found.certificate
        );
    }
    let found = derive(tile, &patterns, Family::Any).unwrap();
    assert_eq!(
        (found.status, found.family, found.wavefronts()),
        (Status::Optimal, Family::Permuted, 12)
    );
    let layout = found.layout.unwrap();
    assert!(bijective(&layout).is_ok());
    println!("{layout}");
    // The reference's own answer counts the same.
    let known = Swizzled::parse("Sw<3,3,3> o ((2,4,8),64):((256,64,512),1)").unwrap();
    assert!(
        patterns
            .iter()
            .all(|p| recount(tile, p, &known).unwrap().wavefronts == 4)
    );
}

#[test]
fn ten_subsets_of_five_chunk_bits_have_a_clique() {
    // A tile of 4 x 64 bf16: two row bits and three chunk bits, five in all; each access takes three of them.
    let bits = [8, 16, 32, 64, 128];
    let mut patterns = Vec::new();
    for a in 0..5 {
        for b in a + 1..5 {
            for c in b + 1..5 {
                let rest: Vec<i64> = (0..5)
                    .filter(|i| ![a, b, c].contains(i))
                    .map(|i| bits[i])
                    .collect();
                patterns.push(pattern(
                    "ldmatrix.x4",
                    &format!(
                        "(2,2,2,2,2):({},{},{},{},{})",
                        bits[a], bits[b], bits[c], rest[0], rest[1]
                    ),
                ));
            }
        }
    }
    assert_eq!(patterns.len(), 10);
    let found = derive(tile(4, 64, 2), &patterns, Family::Any).unwrap();
    assert_eq!(found.status, Status::Impossible);
    let witness = found.certificate.witness.unwrap();
    assert!(witness.elements().len() == 9 && witness.groups == 8);
    // Check the clique by hand: two elements differ in chunk bits that some access spans.
    for a in witness.elements() {
        for b in witness.elements() {
            let differ = ((a.0 ^ b.0) * 64 + (a.1 ^ b.1)) / 8;
            assert!(differ.count_ones() <= 3);
        }
    }
    assert!(found.lower_bound > 40 && found.wavefronts() == found.lower_bound);
    println!("{}", found.certificate);
}

#[test]
fn tma_tiles_take_the_mode_of_their_row() {
    for (cols, mode) in [
        (16, "Sw<1,3,3>"),
        (32, "Sw<2,3,3>"),
        (64, "Sw<3,3,3>"),
        (128, "Sw<3,3,3>"),
    ] {
        let read = pattern("ldmatrix.x4", &format!("(16,2):({cols},8)"));
        let found = derive(tile(64, cols, 2), &[read], Family::Tma).unwrap();
        let text = found.layout.unwrap().to_string();
        assert_eq!(
            found.status,
            Status::Optimal,
            "{cols}: {text} {}",
            found.certificate
        );
        assert!(text.starts_with(mode), "{cols}: {text}");
    }
    let odd = derive(tile(64, 20, 2), &[pattern("ld.32", "32:2")], Family::Tma);
    assert_eq!(odd.unwrap_err().code(), "family_does_not_apply");
}

#[test]
fn bad_input_is_refused_with_its_reason() {
    let error = |tile, patterns: &[Pattern]| derive(tile, patterns, Family::Any).unwrap_err();
    let read = pattern("ld.128", "32:8");
    assert_eq!(error(tile(8, 12, 2), &[read]).code(), "tile_not_divisible");
    assert_eq!(
        error(tile(2, 64, 2), &[read]),
        DeriveError::OutsideTile {
            pattern: 0,
            lane: 16,
            index: 128,
            size: 128
        }
    );
    assert_eq!(
        error(tile(64, 64, 2), &[pattern("ld.128", "32:4")]),
        DeriveError::Misaligned {
            pattern: 0,
            access: Access::Ld128,
            lane: 1,
            index: 4,
            multiple: 8
        }
    );
    assert_eq!(
        error(tile(64, 64, 2), &[read, pattern("st.32", "(16,2):(2,0)")]),
        DeriveError::DuplicateLanes {
            pattern: 1,
            access: Access::St32,
            first: 0,
            second: 16,
            index: 0
        }
    );
    assert_eq!(error(tile(64, 64, 2), &[]).code(), "bad_pattern_count");
    assert_eq!(
        error(tile(64, 64, 2), &[read; 17]).code(),
        "bad_pattern_count"
    );
    assert_eq!(error(tile(0, 64, 2), &[read]).code(), "bad_tile");
    assert_eq!(error(tile(64, 64, 17), &[read]).code(), "bad_element");
    assert_eq!(
        error(tile(64, 64, 3), &[pattern("ld.8", "32:1")]).code(),
        "narrow_on_odd_element"
    );
    let too_few = Pattern::from_layout(
        "ldmatrix.x4".parse().unwrap(),
        &Layout::parse("16:64").unwrap(),
    );
    assert_eq!(too_few.unwrap_err().code(), "wrong_lane_count");
    let too_many = Pattern::from_layout(Access::Ld32, &Layout::parse("64:1").unwrap());
    assert_eq!(too_many.unwrap_err().code(), "wrong_lane_count");
    assert_eq!(
        error(tile(4, 8, 4), &[pattern("ffma", "3:1")]).code(),
        "unsupported_access"
    );
}

#[test]
fn a_derived_layout_proves_with_the_rank_formula() {
    // The lane's elements through the derived layout, in bytes, with the row blocks and k-steps as the rest.
    let read = pattern("ldmatrix.x4", "(16,2):(64,8)");
    let found = derive(tile(64, 64, 2), &[read], Family::Any).unwrap();
    assert_eq!(
        found.layout.unwrap().to_string(),
        "Sw<3,3,3> o (64,64):(64,1)"
    );
    let in_bytes = Swizzled::parse("Sw<3,4,3> o ((16,2),4,4):((128,16),2048,32)").unwrap();
    assert_eq!(
        prove_access(read.access, &in_bytes).unwrap().wavefronts,
        found.accesses()[0].wavefronts
    );
}

#[test]
fn a_winner_is_verified_again_in_const() {
    // What a macro emits: the layout it found, counted again at compile time.
    const COUNT: (u32, bool) = {
        let Ok(layout) = Swizzled::parse("Sw<3,3,3> o (64,64):(64,1)") else {
            panic!("a layout");
        };
        let Ok(lanes) = Layout::parse("(16,2):(64,8)") else {
            panic!("a layout");
        };
        let access = Access::LdMatrix {
            matrices: layout_core::banks::Matrices::X4,
            trans: false,
        };
        let Ok(read) = Pattern::from_layout(access, &lanes) else {
            panic!("a pattern");
        };
        let tile = Tile {
            rows: 64,
            cols: 64,
            elem_bytes: 2,
        };
        match recount(tile, &read, &layout) {
            Ok(count) => (count.wavefronts, bijective(&layout).is_ok()),
            Err(_) => (0, false),
        }
    };
    assert_eq!(COUNT, (4, true));
}
