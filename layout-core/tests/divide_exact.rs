//! Divides against brute force: which exist, what the tiles hold, and what hangs over.

mod oracle;

use layout_core::{Layout, Tiler};
use oracle::Modes;

fn check(a: &Modes, tile: (i64, i64), tally: &mut [usize; 2]) {
    let shape: Vec<i64> = a.iter().map(|m| m.0).collect();
    let stride: Vec<i64> = a.iter().map(|m| m.1).collect();
    let layout = Layout::flat(&shape, &stride).unwrap();
    let size = layout.size();
    // The tile's offsets, and where tiles start, in the linear coordinates of `a`.
    let taken = if tile.1 == 0 {
        vec![0]
    } else {
        oracle::table(&[tile])
    };
    let starts = oracle::distinct(&taken).and_then(|t| oracle::fill(&t, size));
    let starts = starts.filter(|s| oracle::is_layout(s));
    let possible = starts.as_ref().is_some_and(|starts| {
        // (tile, starts) as a list of modes: the starts' own modes found by trying.
        oracle::factorizations(starts.len() as i64)
            .into_iter()
            .any(|factors| {
                let mut modes = vec![tile];
                let mut at = 1;
                for n in factors {
                    modes.push((n, starts[at as usize]));
                    at *= n;
                }
                let same: Vec<i64> = oracle::table(&[&[(1, 0)], &modes[1..]].concat());
                same == *starts && oracle::composable(a, &modes)
            })
    });
    let tiler = Layout::mode(tile.0, tile.1).unwrap();
    let result = layout.logical_divide(&Tiler::Layout(&tiler));
    assert_eq!(
        result.is_ok(),
        possible,
        "logical_divide({layout}, {tiler}): {result:?}"
    );
    let Ok(divided) = result else {
        tally[1] += 1;
        return;
    };
    tally[0] += 1;
    let starts = starts.unwrap();
    let whole = divided.rounded_up();
    assert_eq!(whole.size(), tile.0 * starts.len() as i64);
    let mut seen = vec![0; size as usize];
    for j in 0..whole.size() {
        let x = tiler.index(j % tile.0) + starts[(j / tile.0) as usize];
        assert_eq!(
            whole.index(j),
            oracle::value(a, x),
            "{layout} / {tiler} at {j}"
        );
        assert_eq!(divided.contains(j), x < size, "{layout} / {tiler} at {j}");
        if x < size {
            seen[x as usize] += 1;
        }
    }
    // Every element is in exactly one tile (as often as the tile repeats it).
    let times = if tile.1 == 0 { tile.0 } else { 1 };
    assert!(
        seen.iter().all(|&n| n == times),
        "{layout} / {tiler}: {seen:?}"
    );
    assert_eq!(divided.is_exact(), divided.overhang() == 0);
    assert_eq!(divided.exact().is_ok(), divided.is_exact());
}

#[test]
fn logical_divide_exists_exactly_when_brute_force_finds_one() {
    let mut tally = [0; 2];
    for s0 in 2..=6 {
        for s1 in 2..=6 {
            for a in [vec![(s0, 1_009), (s1, 1)], vec![(s0 * s1, 3)]] {
                for s in 1..=12 {
                    for d in 0..=12 {
                        check(&a, (s, d), &mut tally);
                    }
                }
            }
        }
    }
    assert!(tally[0] > 2_000 && tally[1] > 200, "{tally:?}");
}
