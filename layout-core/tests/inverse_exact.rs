//! Inverses against brute force over all small layouts.

mod oracle;

use layout_core::{Layout, LayoutError};

/// All layouts of up to three modes with small extents and strides, as lists and as values.
fn small_layouts() -> impl Iterator<Item = (oracle::Modes, Layout)> {
    let extents = (1..=4).flat_map(|a| (1..=3).flat_map(move |b| (1..=3).map(move |c| [a, b, c])));
    extents.flat_map(|s| {
        (0..7 * 9 * 9).map(move |code| {
            let d = [
                code % 7,
                [0, 1, 2, 3, 4, 6, 8, 9, 12][code as usize / 7 % 9],
                code / 63,
            ];
            let modes = s.iter().copied().zip(d).collect();
            (modes, Layout::flat(&s, &d).unwrap())
        })
    })
}

/// The coordinates of each offset, stride-0 modes held at 0.
fn first_coordinates(modes: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let steps: Vec<i64> = modes
        .iter()
        .scan(1, |step, m| {
            let here = *step;
            *step *= m.0;
            Some(here)
        })
        .collect();
    let held = |x: i64| {
        modes
            .iter()
            .zip(&steps)
            .all(|(m, step)| m.1 != 0 || x / step % m.0 == 0)
    };
    (0..oracle::size(modes))
        .filter(|&x| held(x))
        .map(|x| (oracle::value(modes, x), x))
        .collect()
}

#[test]
fn right_inverse_is_the_largest_layout_that_inverts() {
    let mut longest = 0;
    for (modes, layout) in small_layouts() {
        let inverse = layout.right_inverse().unwrap();
        for i in 0..inverse.size() {
            assert_eq!(
                oracle::value(&modes, inverse.index(i)),
                i,
                "{layout} ∘ {inverse}"
            );
            assert!(inverse.index(i) < layout.size());
        }
        let coordinates = first_coordinates(&modes);
        let offsets: Vec<i64> = coordinates.iter().map(|c| c.0).collect();
        if oracle::distinct(&offsets).is_none() {
            // Coordinates that meet leave a choice; the law above is all that is promised.
            continue;
        }
        let mut table = vec![];
        while let Some(c) = coordinates.iter().find(|c| c.0 == table.len() as i64) {
            table.push(c.1);
        }
        let best = (1..=table.len())
            .rev()
            .find(|&m| oracle::is_layout(&table[..m]))
            .unwrap();
        assert_eq!(
            inverse.size(),
            best as i64,
            "right_inverse({layout}) = {inverse}"
        );
        longest = longest.max(best);
    }
    assert!(longest >= 36);
}

/// The chain condition, from its definition.
fn chained(modes: &[(i64, i64)]) -> bool {
    let mut used: Vec<_> = modes.iter().filter(|m| m.0 > 1 && m.1 != 0).collect();
    used.sort_by_key(|m| m.1);
    used.windows(2)
        .all(|w| w[1].1 % w[0].1 == 0 && w[1].1 >= w[0].0 * w[0].1)
}

#[test]
fn left_inverse_undoes_every_chained_layout_and_more_and_says_why_not() {
    let (mut beyond, mut none) = (0, 0);
    for (modes, layout) in small_layouts() {
        let result = layout.left_inverse();
        let inverse = match result {
            Ok(inverse) => inverse,
            Err(LayoutError::NotInjective {
                first,
                second,
                offset,
                ..
            }) => {
                assert!(first < second && second < layout.size());
                assert_eq!(oracle::value(&modes, first), offset, "{layout}");
                assert_eq!(oracle::value(&modes, second), offset, "{layout}");
                continue;
            }
            Err(error) => {
                assert_eq!(error.code(), "no_left_inverse", "{layout}");
                assert!(!chained(&modes), "{layout}");
                none += 1;
                continue;
            }
        };
        beyond += usize::from(!chained(&modes));
        for x in 0..layout.size() {
            let y = oracle::value(&modes, x);
            assert_eq!(
                oracle::value(&modes, inverse.index(y)),
                y,
                "{layout}, {inverse}"
            );
            if modes.iter().all(|m| m.1 != 0 || m.0 == 1) {
                assert_eq!(inverse.index(y), x, "{layout}, {inverse}");
            }
        }
    }
    assert!(beyond > 1000 && none > 100, "{beyond} {none}");
}

#[test]
fn left_inverse_allows_the_largest_stride_to_be_negative() {
    for text in [
        "4:-1",
        "(3,2):(1,-3)",
        "(2,3):(-6,2)",
        "(2,4,3):(2,-18,6)",
        "(2,4):(-1,2)",
    ] {
        let layout = Layout::parse(text).unwrap();
        let inverse = layout.left_inverse().unwrap();
        assert!(
            (0..layout.size()).all(|i| inverse.index(layout.index(i)) == i),
            "{layout}"
        );
    }
}

#[test]
fn preimage_finds_every_offset_and_no_other() {
    for (modes, layout) in small_layouts().step_by(7) {
        let table = oracle::table(&modes);
        for offset in -2..=layout.cosize() + 1 {
            match layout.preimage(offset) {
                Ok(i) => {
                    assert!(0 <= i && i < layout.size());
                    assert_eq!(oracle::value(&modes, i), offset);
                }
                Err(error) => {
                    assert_eq!(error.code(), "not_in_image");
                    assert!(!table.contains(&offset), "{layout} reaches {offset}");
                }
            }
        }
    }
}

/// The longest right inverse by trying every factorization and every coordinate for every stride.
fn longest_by_trial(table: &[i64]) -> i64 {
    let mut m = 0;
    while table.contains(&m) {
        m += 1;
    }
    (1..=m).rev().find(|&m| invertible(table, m)).unwrap()
}

fn invertible(table: &[i64], m: i64) -> bool {
    oracle::factorizations(m).into_iter().any(|factors| {
        let mut candidates: Vec<oracle::Modes> = vec![vec![(1, 0)]];
        let mut at = 1;
        for n in factors {
            let strides: Vec<i64> = (0..table.len() as i64)
                .filter(|&c| table[c as usize] == at)
                .collect();
            at *= n;
            candidates = candidates
                .iter()
                .flat_map(|modes| {
                    strides
                        .iter()
                        .map(move |&d| [modes.as_slice(), &[(n, d)]].concat())
                })
                .filter(|modes| {
                    (0..)
                        .zip(oracle::table(modes))
                        .all(|(i, c)| table.get(c as usize) == Some(&i))
                })
                .collect();
        }
        !candidates.is_empty()
    })
}

#[test]
fn right_inverse_is_the_longest_also_of_falling_and_overlapping_modes() {
    let (mut falling, mut overlapping) = (0, 0);
    let shapes = [
        [2, 2, 1],
        [2, 3, 2],
        [4, 3, 1],
        [2, 2, 3],
        [6, 2, 1],
        [3, 3, 2],
    ];
    for s in shapes {
        for code in 0..11 * 11 * 5 {
            let d = [
                code % 11 - 4,
                code / 11 % 11 - 4,
                [0, 1, -1, 4, 7][code as usize / 121],
            ];
            let layout = Layout::flat(&s, &d).unwrap();
            let modes: Vec<_> = s.into_iter().zip(d).collect();
            let table = oracle::table(&modes);
            let inverse = layout.right_inverse().unwrap();
            for i in 0..inverse.size() {
                assert_eq!(
                    table.get(inverse.index(i) as usize),
                    Some(&i),
                    "{layout} ∘ {inverse}"
                );
            }
            let best = longest_by_trial(&table);
            assert_eq!(inverse.size(), best, "right_inverse({layout}) = {inverse}");
            if best > 2 {
                falling += i32::from(d.iter().any(|d| *d < 0));
                overlapping += i32::from(oracle::distinct(&table).is_none());
            }
        }
    }
    assert!(
        falling > 100 && overlapping > 100,
        "{falling} {overlapping}"
    );
    assert_eq!(
        Layout::parse("(2,2):(2,-1)")
            .unwrap()
            .right_inverse()
            .unwrap()
            .to_string(),
        "2:3"
    );
}
