//! Products against brute force: the defining identity where it has a layout, and disjoint copies behind the block elsewhere.

mod oracle;

use layout_core::{IntTuple, Layout, Tiler};
use oracle::Modes;

/// `complement(A, n)` with padding, from the rule: sorted by stride, each gap takes the whole copies that fit.
fn copies(block: &[(i64, i64)], n: i64) -> Option<Modes> {
    let mut sorted: Vec<_> = block.iter().filter(|m| m.0 > 1 && m.1 != 0).collect();
    sorted.sort_by_key(|m| m.1);
    let mut covered = 1;
    let mut rest = vec![];
    for &&(extent, stride) in &sorted {
        if stride < covered {
            return None;
        }
        rest.push((stride / covered, covered));
        covered = extent * stride;
    }
    rest.push(((n - 1) / covered + 1, covered));
    Some(rest)
}

/// The largest stretch that the block and its padding take.
fn behind(block: &[(i64, i64)]) -> i64 {
    block
        .iter()
        .filter(|m| m.0 > 1)
        .map(|m| m.0 * m.1)
        .max()
        .unwrap_or(1)
        .max(1)
}

fn modes(l: &Layout) -> Modes {
    (0..l.leaves()).map(|k| l.leaf(k)).collect()
}

#[test]
fn products_are_the_identity_that_defines_them_or_stand_behind_the_block() {
    let (mut identity, mut skipped, mut refused) = (0, 0, 0);
    let strides = [0, 1, 2, 3, 4, 6, 8, 12];
    for (s0, s1) in [(1, 4), (2, 1), (2, 2), (2, 3), (3, 2), (4, 3), (3, 3)] {
        for d in 0..64 {
            let block: Modes = vec![(s0, strides[d % 8]), (s1, strides[d / 8])];
            let layout = Layout::flat(&[s0, s1], &[block[0].1, block[1].1]).unwrap();
            for (tiler, text) in [
                (vec![(2, 1)], "2:1"),
                (vec![(3, 1)], "3:1"),
                (vec![(5, 2)], "5:2"),
                (vec![(1, 0)], "1:0"),
                (vec![(1, 7)], "1:7"),
                (vec![(4, 0)], "4:0"),
                (vec![(2, -1)], "2:-1"),
                (vec![(2, 1), (3, 2)], "(2,3):(1,2)"),
                (vec![(3, 2), (2, 1)], "(3,2):(2,1)"),
                (vec![(2, 3), (1, 5), (3, 1)], "(2,(1,3)):(3,(5,1))"),
            ] {
                let tiler_layout = Layout::parse(text).unwrap();
                let n = layout.size() * tiler_layout.cosize();
                let found = layout.logical_product(&Tiler::Layout(&tiler_layout));
                let Some(copies) = copies(&block, n) else {
                    // Modes that overlap have no gaps to speak of.
                    assert_eq!(
                        found.unwrap_err().code(),
                        "not_chained",
                        "{layout} by {text}"
                    );
                    refused += 1;
                    continue;
                };
                let product = found.unwrap_or_else(|error| panic!("{layout} by {text}: {error}"));
                assert_eq!(product.get(0), Ok(layout));
                let starts = oracle::table(&modes(&product.get(1).unwrap()));
                let offsets = oracle::table(&tiler);
                // A composition below 0 is not asked for: such tilers are judged by the second rule.
                let inside = offsets.iter().all(|&x| x >= 0);
                if inside && oracle::composable(&copies, &tiler) {
                    let expected: Vec<i64> =
                        offsets.iter().map(|&x| oracle::value(&copies, x)).collect();
                    assert_eq!(starts, expected, "{layout} by {text} is {product}");
                    identity += 1;
                } else if inside {
                    let expected: Vec<i64> = offsets.iter().map(|&x| x * behind(&block)).collect();
                    assert_eq!(starts, expected, "{layout} by {text} is {product}");
                    skipped += 1;
                }
                assert!(disjoint(&block, &starts), "{layout} by {text} is {product}");
                for (i, x) in offsets.iter().enumerate() {
                    for (j, y) in offsets.iter().enumerate() {
                        assert_eq!(
                            x.cmp(y),
                            starts[i].cmp(&starts[j]),
                            "{layout} by {text} is {product}"
                        );
                    }
                }
            }
        }
    }
    assert!(
        identity > 1_000 && skipped > 200 && refused > 500,
        "{identity} {skipped} {refused}"
    );
}

/// Whether copies of a block at different places share no offset.
fn disjoint(block: &[(i64, i64)], starts: &[i64]) -> bool {
    let set = |mut values: Vec<i64>| {
        values.sort_unstable();
        values.dedup();
        values
    };
    let (offsets, starts) = (set(oracle::table(block)), set(starts.to_vec()));
    let all = starts
        .iter()
        .flat_map(|s| offsets.iter().map(move |x| x + s))
        .collect();
    set(all).len() == offsets.len() * starts.len()
}

#[test]
fn gaps_of_a_whole_multiple_of_the_row() {
    let l = |text: &str| Layout::parse(text).unwrap();
    let product = |a: &str, n| l(a).logical_product(&Tiler::Int(n)).unwrap().to_string();
    assert_eq!(product("(2,2):(1,4)", 3), "((2,2),3):((1,4),8)");
    assert_eq!(product("(2,2):(1,4)", 4), "((2,2),(2,2)):((1,4),(2,8))");
    let tile = |a: &str, shape: &str| {
        l(a).tile_to_shape(&IntTuple::parse(shape).unwrap(), None)
            .unwrap()
            .to_string()
    };
    assert_eq!(
        tile("(64,32):(64,1)", "(64,32,3)"),
        "((64,1),(32,1),(1,3)):((64,0),(1,0),(0,4096))"
    );
    let blocked = l("(4,3):(1,12)")
        .blocked_product(&l("(1,5):(0,1)"))
        .unwrap();
    assert_eq!(blocked.to_string(), "((4,1),(3,5)):((1,0),(12,36))");
    let raked = l("(4,3):(1,12)").raked_product(&l("(1,5):(0,1)")).unwrap();
    assert_eq!(raked.to_string(), "((1,4),(5,3)):((0,1),(36,12))");
    let by_mode = l("((2,2),2):((1,4),1)");
    let tiler = [Tiler::Int(3), Tiler::Int(2)];
    let modes = Tiler::Modes(&tiler);
    assert_eq!(
        by_mode.zipped_product(&modes).unwrap().to_string(),
        "(((2,2),2),(3,2)):(((1,4),1),(8,2))"
    );
    assert_eq!(
        by_mode.tiled_product(&modes).unwrap().to_string(),
        "(((2,2),2),3,2):(((1,4),1),8,2)"
    );
    assert_eq!(
        by_mode.flat_product(&modes).unwrap().to_string(),
        "((2,2),2,3,2):((1,4),1,8,2)"
    );
}
