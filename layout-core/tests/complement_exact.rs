//! Complements against brute force: the translates of the tile that cover a range, found greedily.

mod oracle;

use layout_core::Layout;

/// The first layout of translates that cover `0..n`: where they do not end at `n`, they may go on beyond.
fn covering_layout(tile: &[i64], n: i64) -> Option<Vec<i64>> {
    let reach = tile.iter().max().unwrap() + 1;
    for m in n..=n + 2 * reach {
        let starts = oracle::cover(tile, m)?;
        if oracle::is_layout(&starts) {
            return Some(starts);
        }
    }
    None
}

#[test]
fn complement_fills_the_range_whenever_some_layout_does() {
    let (mut right, mut impossible, mut small) = (0, 0, 0);
    for (s0, s1) in (1..=5).flat_map(|a| (1..=4).map(move |b| (a, b))) {
        for (d0, d1) in (0..=12).flat_map(|a| (0..=12).map(move |b| (a, b))) {
            let modes = [(s0, d0), (s1, d1)];
            let layout = Layout::flat(&[s0, s1], &[d0, d1]).unwrap();
            // Modes of stride 0 do not count.
            let counted: Vec<_> = modes
                .iter()
                .copied()
                .filter(|m| m.1 != 0)
                .chain([(1, 0)])
                .collect();
            for n in [1, 2, 5, 12, 24, 30] {
                let tile = oracle::distinct(&oracle::table(&counted));
                let expected = tile.as_ref().and_then(|tile| covering_layout(tile, n));
                let found = layout.complement(n).ok().map(|c| {
                    oracle::table(&(0..c.leaves()).map(|i| c.leaf(i)).collect::<Vec<_>>())
                });
                assert_eq!(
                    found.is_some(),
                    expected.is_some(),
                    "complement({layout}, {n}): {found:?} for {expected:?}"
                );
                if let (Some(tile), Some(found)) = (tile, &found) {
                    // In order, disjoint, and no offset below n is missing.
                    assert!(found.windows(2).all(|w| w[0] < w[1]) && found[0] == 0);
                    let all: Vec<_> = found
                        .iter()
                        .flat_map(|c| tile.iter().map(move |t| t + c))
                        .collect();
                    let all = oracle::distinct(&all)
                        .unwrap_or_else(|| panic!("complement({layout}, {n}) = {found:?}"));
                    assert!((0..n).all(|x| all.binary_search(&x).is_ok()));
                    // What fills a range without gaps is the complement there, as in CuTe.
                    if let Some(starts) = oracle::fill(&tile, n).filter(|s| oracle::is_layout(s)) {
                        assert_eq!(*found, starts, "complement({layout}, {n})");
                    }
                    if layout.cosize() > n {
                        small += 1;
                    }
                }
                if expected.is_some() {
                    right += 1;
                } else {
                    impossible += 1;
                }
            }
        }
    }
    assert!(
        right > 3_000 && impossible > 3_000 && small > 1_000,
        "{right} {impossible} {small}"
    );
}

#[test]
fn strides_beyond_the_range_do_not_matter() {
    let complement = |text: &str, n| Layout::parse(text).unwrap().complement(n);
    for (text, n, expected) in [
        ("(2,2):(1,3)", 1, "1:0"),
        ("(2,2):(1,3)", 2, "1:0"),
        ("(3,2):(2,7)", 4, "2:1"),
        ("(64,64):(72,1)", 64, "1:0"),
        ("(4,2,2):(2,16,41)", 5, "2:1"),
    ] {
        assert_eq!(
            complement(text, n).unwrap().to_string(),
            expected,
            "{text}, {n}"
        );
    }
    // The copy at 2 would meet the block at 3, and the one at 64 the second row at 72.
    assert_eq!(
        complement("(2,2):(1,3)", 3).unwrap_err().code(),
        "not_chained"
    );
    assert_eq!(
        complement("(64,64):(72,1)", 65).unwrap_err().code(),
        "not_chained"
    );
}

/// CuTe's rule, fold by fold: the least stride first, gaps rounded down, what is left of `n` rounded up.
#[test]
fn partial_complements_are_those_of_cute() {
    let (mut more, mut same) = (0, 0);
    for (s0, s1, s2) in [
        (2, 2, 2),
        (3, 2, 1),
        (4, 3, 1),
        (2, 3, 2),
        (1, 1, 4),
        (5, 2, 2),
    ] {
        for code in 0..10 * 10 * 4 {
            let d = [
                code % 10,
                code / 10 % 10,
                [0, 5, 14, 24][code as usize / 100],
            ];
            let layout = Layout::flat(&[s0, s1, s2], &d).unwrap();
            for n in [1, 7, 24, 100] {
                let mut modes: Vec<_> = [s0, s1, s2]
                    .into_iter()
                    .zip(d)
                    .filter(|m| m.0 > 1 && m.1 != 0)
                    .collect();
                modes.sort_by_key(|m| m.1);
                let mut result = vec![(1, 0)];
                let mut last = 1;
                for &(extent, stride) in &modes {
                    result.push((stride / last, last));
                    last = stride * extent;
                }
                result.push(((n + last - 1) / last, last));
                let exists = result[1..].iter().all(|m| m.0 > 0);
                match layout.complement_partial(n) {
                    Ok(found) => {
                        assert!(exists, "{layout}");
                        let found: Vec<_> = (0..found.leaves()).map(|i| found.leaf(i)).collect();
                        assert_eq!(
                            oracle::table(&found),
                            oracle::table(&result),
                            "{layout}, {n}"
                        );
                        match layout.complement(n) {
                            Ok(strict) if n >= layout.cosize() => {
                                assert_eq!(Ok(strict), layout.complement_partial(n));
                                same += 1;
                            }
                            Ok(_) => {}
                            Err(_) => more += 1,
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "not_chained");
                        assert!(!exists, "{layout}");
                    }
                }
            }
        }
    }
    assert!(more > 200 && same > 200, "{more} {same}");
}
