//! Complements against brute force: the translates of the tile that fill a range, found greedily.

mod oracle;

use layout_core::Layout;

#[test]
fn complement_fills_the_range_whenever_some_layout_does() {
    let (mut right, mut impossible) = (0, 0);
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
                let expected = oracle::distinct(&oracle::table(&counted))
                    .and_then(|tile| oracle::fill(&tile, n))
                    .filter(|starts| oracle::is_layout(starts));
                let found = layout.complement(n).ok().map(|c| {
                    oracle::table(&(0..c.leaves()).map(|i| c.leaf(i)).collect::<Vec<_>>())
                });
                assert_eq!(found, expected, "complement({layout}, {n})");
                if expected.is_some() {
                    right += 1;
                } else {
                    impossible += 1;
                }
            }
        }
    }
    assert!(right > 3_000 && impossible > 3_000, "{right} {impossible}");
}
