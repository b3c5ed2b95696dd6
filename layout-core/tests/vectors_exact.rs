//! Common vectors and alignments against brute force, from the definition: each element lies in a vector of `v` elements that
//! is in order in both layouts and begins at multiples of `v`.

mod oracle;
mod strategies;

use std::collections::HashSet;

use layout_core::{Layout, Swizzle, Swizzled};
use proptest::prelude::*;
use strategies::{chained, layouts};

type Points = HashSet<(i64, i64)>;

/// `x ^ field`, bit by bit from the definition of `Sw<B,M,S>`.
fn swizzled(w: Swizzle, x: i64) -> i64 {
    let (b, m, s) = (w.b() as i32, w.m() as i32, w.s());
    let mut y = x;
    for bit in 0..b {
        let (source, target) = if s > 0 {
            (m + bit + s, m + bit)
        } else {
            (m + bit, m + bit - s)
        };
        y ^= (x >> source & 1) << target;
    }
    y
}

/// The offsets at `0..n`, digit by digit; `swizzle` as well if asked for.
fn offsets(s: &Swizzled, n: i64, swizzle: bool) -> Vec<i64> {
    let l = s.layout();
    let modes: Vec<_> = (0..l.leaves()).map(|k| l.leaf(k)).collect();
    let inner = oracle::table(&modes).into_iter().map(|x| x + s.offset());
    inner
        .take(n as usize)
        .map(|x| if swizzle { swizzled(s.swizzle(), x) } else { x })
        .collect()
}

/// The definition: with `k = a mod v`, the elements at `a − k … a − k + v − 1` lie at `b − k … b − k + v − 1`, a multiple of `v`.
fn common(points: &Points, v: i64) -> bool {
    points.iter().all(|&(a, b)| {
        let k = a.rem_euclid(v);
        (b - k).rem_euclid(v) == 0 && (0..v).all(|j| points.contains(&(a - k + j, b - k + j)))
    })
}

fn largest(points: &Points) -> i64 {
    (1..=points.len() as i64)
        .rev()
        .find(|&v| common(points, v))
        .unwrap()
}

fn points(a: &[i64], b: &[i64]) -> Points {
    a.iter().copied().zip(b.iter().copied()).collect()
}

fn check_pair(a: &Swizzled, b: &Swizzled) -> i64 {
    let n = a.size().min(b.size());
    let expected = largest(&points(&offsets(a, n, true), &offsets(b, n, true)));
    assert_eq!(a.max_common_vector(b), Ok(expected), "{a} and {b}");
    assert_eq!(b.max_common_vector(a), Ok(expected), "{b} and {a}");
    expected
}

fn check_alignment(s: &Swizzled) -> i64 {
    let n = s.size();
    let expected = largest(&points(&offsets(s, n, true), &offsets(s, n, false)));
    assert_eq!(s.max_alignment(), expected, "{s}");
    expected
}

fn s(text: &str) -> Swizzled {
    Swizzled::parse(text).unwrap()
}

#[test]
fn known_vectors() {
    for (a, b, v) in [
        ("Sw<2,2,2> o 64:1", "64:1", 4),
        ("Sw<2,0,2> o (4,4):(1,4)", "Sw<2,0,2> o (4,4):(1,4)", 16),
        ("(4,8):(8,1)", "(4,8):(16,1)", 8),
        ("(4,8):(8,1)", "(4,8):(12,1)", 4),
        ("(4,8):(8,1)", "(4,8):(9,1)", 1),
        ("8:1", "4:1", 4),
        ("8:1", "1 o 8:1", 1),
        ("8:1", "16 o 8:1", 8),
        ("(2,3):(1,2)", "(4,2):(1,4)", 6),
        ("(4,3):(1,0)", "(4,3):(1,4)", 4),
        ("(4,3):(1,0)", "(4,3):(1,0)", 4),
        ("3 o 4:-1", "3 o 4:-1", 4),
        ("Sw<2,1,1> o (8,4):(1,8)", "(8,4):(1,8)", 2),
        ("Sw<2,1,-2> o (8,4):(1,8)", "Sw<2,1,-2> o (8,4):(1,8)", 32),
        ("Sw<3,3,3> o 64 o (8,64):(64,1)", "(8,64):(64,1)", 8),
        ("(4,6):(6,1)", "(6,4):(1,6)", 1),
    ] {
        assert_eq!(check_pair(&s(a), &s(b)), v, "{a} and {b}");
    }
    for (a, v) in [
        ("Sw<3,3,3> o (8,64):(64,1)", 8),
        ("Sw<3,3,3> o 64:1", 64),
        ("Sw<2,0,2> o 4:1", 4),
        ("Sw<2,0,2> o 4 o 4:1", 1),
        ("(9,4):(1,1)", 12),
        ("(8,4):(1,20)", 4),
        ("12 o 8:1", 4),
    ] {
        assert_eq!(check_alignment(&s(a)), v, "{a}");
    }
}

/// Large layouts are decided by their modes or by a few elements; the answers follow from the pitches.
#[test]
fn large_layouts() {
    for (a, b, v) in [
        ("(65536,65536):(65536,1)", "(65536,65536):(65540,1)", 4),
        ("(4096,4096):(4096,1)", "(4096,4096):(4096,1)", 1 << 24),
        ("(4096,4096):(4096,1)", "(4096,4096):(1,4096)", 1),
        (
            "Sw<3,3,3> o (1024,4096):(4096,1)",
            "(1024,4096):(4096,1)",
            8,
        ),
        (
            "Sw<3,4,3> o (128,128):(128,1)",
            "Sw<3,4,3> o (128,128):(128,1)",
            1 << 14,
        ),
    ] {
        assert_eq!(s(a).max_common_vector(&s(b)), Ok(v), "{a} and {b}");
    }
    assert_eq!(s("(1000000,1000000):(1000064,1)").max_alignment(), 64);
}

/// Any small layout, or a compact one: only compact ones have wide vectors often.
fn small() -> impl Strategy<Value = Layout> {
    let compact = prop::sample::select(vec![
        "16:1",
        "(4,4):(4,1)",
        "(4,4):(1,4)",
        "(2,8):(8,1)",
        "((2,2),4):((1,8),2)",
        "(8,4):(1,8)",
        "(8,4):(4,1)",
        "(3,4):(4,1)",
        "(8,4):(1,12)",
        "(8,4):(1,16)",
        "(4,4):(1,0)",
        "(4,8):(16,1)",
        "(4,2,1):(1,4,64)",
    ])
    .prop_map(|text| Layout::parse(text).unwrap());
    let any = prop_oneof![layouts(), chained()]
        .prop_filter("small enough for every v", |l| l.size() <= 64);
    prop_oneof![compact, any]
}

fn swizzles() -> impl Strategy<Value = Swizzle> {
    (0u32..=3, 0u32..=3, prop_oneof![-3i32..=-1, 1i32..=3])
        .prop_map(|(b, m, s)| Swizzle::new(b, m, s).unwrap())
}

fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0i64), -8i64..32, (0u32..7).prop_map(|b| 1 << b)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn vectors_of_any_pair(a in small(), b in small(), w in swizzles(), u in swizzles(), o in offset(), p in offset()) {
        let (x, y) = (Swizzled::new(w, o, a).unwrap(), Swizzled::new(u, p, b).unwrap());
        check_pair(&x, &y);
    }

    #[test]
    fn vectors_of_related_pairs(l in small(), w in swizzles(), o in offset(), padding in 0i64..5) {
        let straight = Swizzled::plain(l);
        let tile = Swizzled::new(w, o, l).unwrap();
        check_pair(&tile, &straight);
        check_pair(&tile, &tile);
        check_pair(&straight, &straight);
        let other = Swizzled::new(Swizzle::IDENTITY, o, l).unwrap();
        check_pair(&tile, &other);
        // The same layout with a longer pitch.
        let stride: Vec<i64> = (0..l.leaves()).map(|k| l.leaf(k).1).map(|d| if d > 2 { d + padding } else { d }).collect();
        let padded = Layout::new(l.shape(), strategies::with_values(&l.shape(), &stride)).unwrap();
        check_pair(&tile, &Swizzled::new(w, o, padded).unwrap());
        prop_assert_eq!(l.max_common_vector(&padded), straight.max_common_vector(&Swizzled::plain(padded)));
    }

    #[test]
    fn alignments_of_any_layout(l in small(), w in swizzles(), o in offset()) {
        check_alignment(&Swizzled::new(w, o, l).unwrap());
        check_alignment(&Swizzled::plain(l));
        prop_assert_eq!(l.max_alignment(), Swizzled::plain(l).max_alignment());
    }
}
