//! What is refused: layouts that distribute no matrix, and mutated redistributions.

use std::collections::BTreeMap;

use layout_core::CoordLayout;
use layout_core::devices::{
    Distribution, DistributionError, MAX_EXTENT, Piece, Redistribution, Refusal, Runs, Shard,
};
use proptest::prelude::*;

use super::{elements, inputs, pair, places};

fn refused(extents: [u64; 2], text: &str) -> DistributionError {
    Distribution::new(extents, CoordLayout::parse(text).expect(text)).expect_err(text)
}

#[test]
fn each_refusal_says_what_stands_in_the_way() {
    let e = [8, 6];
    for (text, code, part) in [
        ("(8,6):(1@0,1@1)", "", ""),
        (
            "(2,4):(4@0,1@0+1@1)",
            "diagonal",
            "4:1@0+1@1 moves along rows and columns at once",
        ),
        ("(2,4):(4@0,1@0+1@1)", "diagonal", "such as (4,4):(1@0,1@1)"),
        (
            "(2,(4,6)):(-4@0,(1@0,1@1))",
            "backwards",
            "2:-4@0 counts backwards",
        ),
        ("(2,(8,-3@1)):(0,(1@0,1@1))", "parse", ""),
        (
            "(2,(4,6,2)):(4@0,(1@0,1@1,0))",
            "local_copies",
            "2:0 of the local mode",
        ),
        (
            "(2,(4,6)):(5@0,(1@0,1@1))",
            "unheld",
            "no device holds row 4 of 0..8",
        ),
        (
            "(2,(3,6)):(3@0,(1@0,1@1))",
            "unheld",
            "no device holds row 6 of 0..8",
        ),
        (
            "(2,(8,2)):(2@1,(1@0,1@1))",
            "unheld",
            "no device holds column 4 of 0..6",
        ),
        (
            "(2,(8,3)):(2@1,(1@0,1@1))",
            "held_twice",
            "column 2 has two places, local 0 of device 1 and local 16 of device 0",
        ),
        ("(2,4,6):(4@0,1@0,1@1)", "rank", "rank 3"),
        ("8:1@0", "rank", "rank 1"),
        ("(2,(4,6)):(4@0,(1@0,1@2))", "axes", "have 3 axes"),
        ("(2,(4,6)):(4@0@1,(1@0,1@1@1))", "axes", "axes"),
        (
            "(65,(8,6)):(0,(1@0,1@1))",
            "devices",
            "65 devices: there must be from 1 to 64",
        ),
    ] {
        let Ok(layout) = CoordLayout::parse(text) else {
            assert_eq!(code, "parse", "{text}");
            continue;
        };
        match Distribution::new(e, layout) {
            Ok(_) => assert_eq!(code, "", "{text}"),
            Err(error) => {
                assert_eq!(error.code(), code, "{text}: {error}");
                assert!(error.to_string().contains(part), "{text}: {error}");
            }
        }
    }
    for extents in [
        [0, 6],
        [8, 0],
        [MAX_EXTENT + 1, 1],
        [1 << 30, 1 << 30],
        [u64::MAX, u64::MAX],
    ] {
        let error = Distribution::rows(extents, 2).unwrap_err();
        assert_eq!(error.code(), "extents", "{error}");
        assert_eq!(refused(extents, "(2,(4,6)):(4@0,(1@0,1@1))"), error);
    }
    for devices in [0, 65, usize::MAX] {
        assert_eq!(
            Distribution::rows(e, devices).unwrap_err().code(),
            "devices"
        );
        assert_eq!(
            Distribution::replicas(e, devices).unwrap_err().code(),
            "devices"
        );
        assert_eq!(
            Distribution::grid(e, [devices, devices])
                .unwrap_err()
                .code(),
            "devices"
        );
    }
    let runs = refused([1 << 40, 1], "(2,549755813888):(1@0,2@0)");
    assert!(
        runs.to_string()
            .contains("the devices hold more than 65536 separate runs of rows"),
        "{runs}"
    );
}

#[test]
fn distributions_that_do_not_fit_each_other_are_refused() {
    let rows = Distribution::rows([8, 6], 2).unwrap();
    let code = |from: &Distribution, to: &Distribution| {
        let error = Redistribution::derive(from, to).unwrap_err();
        assert!(Redistribution::check(from, to, &[]).is_err());
        error.code()
    };
    let larger = Distribution::rows([8, 7], 2).unwrap();
    assert_eq!(code(&rows, &larger), "different_extents");
    let more = Distribution::rows([8, 6], 3).unwrap();
    assert_eq!(code(&rows, &more), "different_devices");
    let terms = Distribution::terms([8, 6], 2).unwrap();
    assert_eq!(code(&rows, &terms), "new_terms");
    let halves = CoordLayout::parse("((2,2),(4,6)):((4@0,0),(1@0,1@1))").unwrap();
    let halves = Distribution::new([8, 6], halves).unwrap().summed();
    assert_eq!(
        code(&Distribution::terms([8, 6], 4).unwrap(), &halves),
        "new_terms"
    );
}

#[test]
fn the_largest_matrices_overflow_nothing() {
    for p in [1, 2, 3, 63, 64] {
        for extents in [[MAX_EXTENT, 1024], [1, MAX_EXTENT], [1 << 25, 1 << 25]] {
            let made = [
                Distribution::rows(extents, p),
                Distribution::columns(extents, p),
                Distribution::replicas(extents, p),
                Distribution::terms(extents, p),
                Distribution::grid(extents, [1, p]),
            ]
            .map(|made| made.expect("within the limits"));
            for from in &made {
                for to in &made {
                    if to.is_sum() && !from.is_sum() {
                        continue;
                    }
                    let moved = Redistribution::derive(from, to).expect("comparable");
                    assert!(moved.total() <= 64 * 64 * extents[0] * extents[1]);
                    assert_eq!(moved.certificate().lines().len(), p + 1);
                }
            }
        }
    }
}

#[test]
fn the_most_runs_are_soon_redistributed() {
    // 65,536 rows one by one over 64 devices, with as many columns, to everybody and to blocks.
    let extents = [65_536, 65_536];
    let dealt = "((8,8),(8192,8192)):((1@0,1@1),(8@0,8@1))";
    let dealt = Distribution::new(extents, CoordLayout::parse(dealt).unwrap()).unwrap();
    for to in [
        Distribution::replicas(extents, 64).unwrap(),
        Distribution::grid(extents, [8, 8]).unwrap(),
        Distribution::rows(extents, 64).unwrap(),
    ] {
        let moved = Redistribution::derive(&dealt, &to).unwrap();
        assert_eq!(moved.certificate().owners(), to.copies());
    }
}

/// Layouts with any small extents and strides, most of which distribute nothing.
fn any_layout() -> impl Strategy<Value = ([u64; 2], String)> {
    let leaf = || {
        (
            1..=4_i64,
            prop::sample::select(vec![0, 1, 1, 2, 2, 3, 4, 6, 8, 9]),
            0..2_usize,
        )
    };
    let mode = || prop::collection::vec(leaf(), 1..=3);
    ([1..=9_u64, 1..=4_u64], mode(), mode()).prop_map(|(extents, device, local)| {
        let write = |mode: &[(i64, i64, usize)]| {
            let shape: Vec<_> = mode.iter().map(|l| l.0.to_string()).collect();
            let stride: Vec<_> = mode
                .iter()
                .map(|&(_, stride, axis)| {
                    if stride == 0 {
                        "0".into()
                    } else {
                        format!("{stride}@{axis}")
                    }
                })
                .collect();
            (shape.join(","), stride.join(","))
        };
        let ((ds, dt), (ls, lt)) = (write(&device), write(&local));
        (extents, format!("(({ds}),({ls})):(({dt}),({lt}))"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_layout_is_refused_exactly_if_an_element_has_no_place_or_two((extents, text) in any_layout()) {
        let layout = CoordLayout::parse(&text).expect("well formed");
        let mut count = BTreeMap::new();
        for (device, row, column) in places(extents, &layout) {
            *count.entry((device, row, column)).or_insert(0) += 1;
        }
        // On how many devices each element is, and whether one has it twice.
        let mut devices = BTreeMap::new();
        for &(_, row, column) in count.keys() {
            *devices.entry((row, column)).or_insert(0_u64) += 1;
        }
        let device = layout.get(0).expect("a device mode");
        let mut copies = 1;
        for mode in 0..device.rank() {
            let leaf = device.get(mode).expect("a leaf");
            if leaf.size() > 1 && leaf.cosize() == Ok(1) {
                copies *= leaf.size() as u64;
            }
        }
        let covered = devices.len() as u64 == extents[0] * extents[1];
        let once = count.values().all(|&n| n == 1) && devices.values().all(|&n| n == copies);
        match Distribution::new(extents, layout) {
            Ok(made) => {
                prop_assert!(covered && once, "{:?} {}", extents, text);
                prop_assert_eq!(made.copies() as u64, copies);
            }
            Err(DistributionError::LocalCopies { .. }) => prop_assert!(!once || !covered),
            Err(DistributionError::Unheld { axis, index, .. }) => {
                let missing = |&(row, column): &(u64, u64)| [row, column][axis] == index;
                prop_assert!(index < extents[axis] && !devices.keys().any(missing));
            }
            Err(DistributionError::HeldTwice { axis, index, first, second }) => {
                prop_assert!(first != second && index < extents[axis]);
                for place in [first, second] {
                    let linear = place.device as i64 + device.size() * place.local as i64;
                    let at = layout.checked_index(linear).expect("in the domain");
                    let at = if at.leaves() == 1 { at } else { at.get(axis).expect("an axis") };
                    prop_assert_eq!(at.size(), Ok(index as i64), "{:?} {}", extents, text);
                }
            }
            Err(DistributionError::Devices { .. }) => prop_assert!(device.size() > 64),
            Err(error) => prop_assert!(false, "{}: {}", text, error),
        }
    }

    #[test]
    fn mutated_redistributions_are_refused((extents, devices, bytes) in inputs(), at in any::<prop::sample::Index>(), way in 0..8) {
        let (from, to) = pair(extents, devices, &bytes);
        let moved = Redistribution::derive(&from, &to).expect("comparable");
        let mut pieces = moved.pieces().to_vec();
        prop_assert_eq!(&Redistribution::check(&from, &to, &pieces), &Ok(moved.certificate().clone()));
        if pieces.is_empty() {
            return Ok(());
        }
        let at = at.index(pieces.len());
        let piece = pieces[at].clone();
        let all = 0..from.devices();
        let refusal = match way {
            0 => {
                pieces.remove(at);
                Redistribution::check(&from, &to, &pieces)
            }
            1 => {
                pieces.push(piece);
                Redistribution::check(&from, &to, &pieces)
            }
            2 => {
                // From a device that does not hold it.
                let Some(other) = all.clone().find(|&d| d != piece.to && !piece.shard.is_within(&from.shard(d))) else {
                    return Ok(());
                };
                pieces[at].from = other;
                Redistribution::check(&from, &to, &pieces)
            }
            3 => {
                pieces[at].adds = !piece.adds;
                Redistribution::check(&from, &to, &pieces)
            }
            4 => {
                // One row less.
                let rows: Vec<u64> = piece.shard.rows.iter().flatten().skip(1).collect();
                let rows: Runs = rows.into_iter().map(|r| r..r + 1).collect();
                pieces[at].shard = Shard::new(rows, piece.shard.columns.clone());
                Redistribution::check(&from, &to, &pieces)
            }
            5 => {
                let Some(other) = all.clone().find(|&d| d != piece.to && d != piece.from) else {
                    return Ok(());
                };
                pieces[at].to = other;
                Redistribution::check(&from, &to, &pieces)
            }
            6 => {
                pieces[at].to = piece.from;
                Redistribution::check(&from, &to, &pieces)
            }
            _ => {
                // What the receiver keeps, once more.
                let kept = &moved.kept()[piece.to];
                if kept.is_empty() || from.is_sum() {
                    return Ok(());
                }
                let Some(holder) = all.clone().find(|&d| d != piece.to && kept.is_within(&from.shard(d))) else {
                    return Ok(());
                };
                pieces.push(Piece { from: holder, shard: kept.clone(), ..piece });
                Redistribution::check(&from, &to, &pieces)
            }
        };
        prop_assert!(refusal.is_err(), "way {}: {} -> {}", way, from, to);
    }

    #[test]
    fn copies_may_come_from_any_holder((extents, devices, bytes) in inputs(), at in any::<prop::sample::Index>()) {
        let (from, to) = pair(extents, devices, &bytes);
        let moved = Redistribution::derive(&from, &to).expect("comparable");
        let mut pieces = moved.pieces().to_vec();
        if pieces.is_empty() || from.is_sum() {
            return Ok(());
        }
        let at = at.index(pieces.len());
        let (row, column) = *elements(&pieces[at].shard).first().expect("not empty");
        for holder in from.holders(row, column) {
            pieces[at].from = holder;
            prop_assert!(Redistribution::check(&from, &to, &pieces).is_ok());
        }
    }

    #[test]
    fn no_layout_panics(
        extents in [1..=1_u64 << 41, 1..=1_u64 << 41],
        leaves in prop::collection::vec((1..=1_i64 << 40, -4..=1_i64 << 40, 0..3_usize), 2..6),
        shift in 0..40_u32,
    ) {
        let shape: Vec<_> = leaves.iter().map(|l| (l.0 >> shift).max(1).to_string()).collect();
        let stride: Vec<_> = leaves.iter().map(|l| format!("{}@{}", l.1 >> (l.2 * 13), l.2 % 2)).collect();
        let local = |all: &[String]| all[1..].join(",");
        let text = format!("({},({})):({},({}))", shape[0], local(&shape), stride[0], local(&stride));
        if let Ok(layout) = CoordLayout::parse(&text)
            && let Ok(made) = Distribution::new(extents, layout)
        {
            prop_assert!(made.shard(0).elements() <= extents[0] * extents[1]);
        }
    }
}

#[test]
fn a_refusal_names_the_piece() {
    let rows = Distribution::rows([8, 6], 2).unwrap();
    let all = Distribution::replicas([8, 6], 2).unwrap();
    let piece = |from, to, rows| Piece {
        from,
        to,
        shard: Shard::new(Runs::from(rows), Runs::from(0..6)),
        adds: false,
    };
    for (pieces, expected) in [
        (
            vec![piece(0, 2, 0..4)],
            Refusal::NoDevice {
                piece: 0,
                device: 2,
            },
        ),
        (vec![piece(0, 0, 0..4)], Refusal::Idle { piece: 0 }),
        (vec![piece(0, 1, 0..0)], Refusal::Idle { piece: 0 }),
        (
            vec![piece(1, 0, 0..4)],
            Refusal::NotHeld { piece: 0, from: 1 },
        ),
        (
            vec![piece(1, 0, 4..8), piece(0, 1, 0..3), piece(0, 1, 2..4)],
            Refusal::Twice {
                piece: 2,
                earlier: Some(1),
            },
        ),
        (
            vec![piece(1, 0, 4..8), piece(0, 1, 0..3)],
            Refusal::Missing {
                to: 1,
                arrived: 42,
                needed: 48,
            },
        ),
    ] {
        let refusal = Redistribution::check(&rows, &all, &pieces).unwrap_err();
        assert_eq!(refusal, expected);
        assert!(!refusal.to_string().is_empty());
    }
    let refusal = Redistribution::check(&rows, &rows, &[piece(0, 1, 0..4)]).unwrap_err();
    assert_eq!(refusal, Refusal::NotWanted { piece: 0, to: 1 });
    let refusal = Redistribution::check(&all, &all, &[piece(0, 1, 0..4)]).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::Twice {
            piece: 0,
            earlier: None
        }
    );
}
