//! Composition is exact: nothing wrong is returned and nothing representable is refused, compared with brute force that
//! tries every factorization and evaluates.

mod oracle;

use layout_core::Layout;
use oracle::Modes;

/// What a comparison found.
#[derive(Default, Debug, PartialEq)]
struct Tally {
    right: usize,
    wrong: usize,
    refused: usize,
    impossible: usize,
}

fn layout(modes: &[(i64, i64)]) -> Layout {
    let (shape, stride): (Vec<_>, Vec<_>) = modes.iter().copied().unzip();
    Layout::flat(&shape, &stride).unwrap()
}

fn compare(tally: &mut Tally, a: &Modes, b: &Modes) {
    let possible = oracle::composable(a, b);
    match layout(a).compose(&layout(b)) {
        Ok(r) => {
            let found: Vec<(i64, i64)> = (0..r.leaves()).map(|i| r.leaf(i)).collect();
            let law = oracle::table(b)
                .into_iter()
                .map(|x| oracle::value(a, x))
                .eq(oracle::table(&found));
            let profile =
                r.rank() == b.len() && (0..b.len()).all(|i| r.get(i).unwrap().size() == b[i].0);
            if law && profile && possible {
                tally.right += 1;
            } else {
                tally.wrong += 1;
            }
        }
        Err(_) if possible => tally.refused += 1,
        Err(_) => tally.impossible += 1,
    }
}

/// Strides that no small combination makes coincide.
const GENERAL: [i64; 3] = [1, 1_009, 1_000_003];

#[test]
fn exact_on_every_rank_2_layout_in_general_position() {
    let mut tally = Tally::default();
    for s0 in 2..=8 {
        for s1 in 2..=8 {
            let a = vec![(s0, GENERAL[0]), (s1, GENERAL[1])];
            for s in 1..=12 {
                for d in 0..=24 {
                    compare(&mut tally, &a, &vec![(s, d)]);
                }
            }
        }
    }
    assert_eq!((tally.wrong, tally.refused), (0, 0), "{tally:?}");
    assert!(tally.right > 5_000 && tally.impossible > 1_000, "{tally:?}");
}

#[test]
fn exact_on_every_rank_3_layout_in_general_position() {
    let mut tally = Tally::default();
    for s0 in 2..=6 {
        for s1 in 2..=6 {
            for s2 in 2..=6 {
                let a = vec![(s0, GENERAL[2]), (s1, GENERAL[0]), (s2, GENERAL[1])];
                for s in 1..=12 {
                    for d in 0..=24 {
                        compare(&mut tally, &a, &vec![(s, d)]);
                    }
                }
            }
        }
    }
    assert_eq!((tally.wrong, tally.refused), (0, 0), "{tally:?}");
    assert!(
        tally.right > 10_000 && tally.impossible > 3_000,
        "{tally:?}"
    );
}

/// Small strides, where the digit rule alone would refuse compositions that exist by coincidence.
#[test]
fn coincidences_of_strides_are_found() {
    let mut tally = Tally::default();
    for s0 in 2..=4 {
        for s1 in 2..=4 {
            for code in 0..7 * 7 * 7 {
                let t = [code % 7 - 1, code / 7 % 7 - 1, code / 49 - 1];
                let a = vec![(s0, t[0]), (s1, t[1]), (3, t[2])];
                for s in [4, 6, 8, 9, 12] {
                    for d in [1, 2, 3, 5, 6, 7, 10] {
                        compare(&mut tally, &a, &vec![(s, d)]);
                    }
                }
            }
        }
    }
    assert_eq!((tally.wrong, tally.refused), (0, 0), "{tally:?}");
}

#[test]
fn exact_on_right_hand_sides_of_two_modes() {
    let mut tally = Tally::default();
    for strides in [[1, 1_009, 1_000_003], [1, 10, 30], [3, 1, 2], [1, 0, 1]] {
        for s0 in 2..=5 {
            for s1 in 2..=4 {
                let a = vec![(s0, strides[0]), (s1, strides[1]), (2, strides[2])];
                for (n0, n1) in [(2, 2), (2, 3), (3, 2), (4, 4), (1, 6), (6, 1), (4, 3)] {
                    for code in 0..100 {
                        let (d0, d1) = (code % 10, code / 10);
                        compare(&mut tally, &a, &vec![(n0, d0), (n1, d1)]);
                    }
                }
            }
        }
    }
    assert_eq!((tally.wrong, tally.refused), (0, 0), "{tally:?}");
    assert!(tally.impossible > 1_000, "{tally:?}");
}

/// Negative strides count downwards from 0, through the last mode's continuation below it.
#[test]
fn exact_on_negative_right_hand_strides() {
    let mut tally = Tally::default();
    for s0 in 2..=6 {
        for s1 in 2..=4 {
            let a = vec![(s0, 1), (s1, 1_009)];
            for s in 1..=12 {
                for d in -24..0 {
                    compare(&mut tally, &a, &vec![(s, d)]);
                }
            }
        }
    }
    assert_eq!((tally.wrong, tally.refused), (0, 0), "{tally:?}");
}

/// Two coincidences: the digits carry, but the strides make up for it.
#[test]
fn examples_of_coincidences() {
    for (a, b, expected) in [
        ("(2,2,4):(0,1,1)", "6:3", "(3,2):(1,2)"),
        ("(4,4,4):(1,1,7)", "4:7", "(2,2):(4,5)"),
    ] {
        let (a, b) = (Layout::parse(a).unwrap(), Layout::parse(b).unwrap());
        let r = a.compose(&b).unwrap();
        assert_eq!(r.to_string(), expected);
        for i in 0..b.size() {
            assert_eq!(r.index(i), a.index(b.index(i)));
        }
    }
}
