//! The feature `testing`: its strategies make what they say, its assertions hold and fail where they must.

use std::collections::HashSet;
use std::panic::catch_unwind;

use proptest::prelude::*;
use tilewright::banks::Access;
use tilewright::testing::{assert_bijective, assert_conflict_free, assert_injective, strategies};
use tilewright::{Layout, Swizzled, layout};

/// All offsets.
fn offsets(layout: &Swizzled) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.index(i)).collect()
}

proptest! {
    #[test]
    fn layouts_are_small(layout in strategies::layouts()) {
        prop_assert!(layout.size() <= strategies::MAX_SIZE);
        prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
    }

    #[test]
    fn bijective_layouts_are_bijective(layout in strategies::bijective_layouts()) {
        let mut found = offsets(&Swizzled::plain(layout));
        found.sort_unstable();
        prop_assert_eq!(found, (0..layout.size()).collect::<Vec<_>>());
        assert_bijective!(layout);
        assert_bijective!(&layout, "{layout}");
    }

    #[test]
    fn injective_layouts_are_injective(layout in strategies::injective_layouts()) {
        let found: HashSet<i64> = offsets(&Swizzled::plain(layout)).into_iter().collect();
        prop_assert_eq!(found.len() as i64, layout.size());
    }

    #[test]
    fn assert_bijective_agrees_with_brute_force(layout in strategies::swizzled_layouts()) {
        let mut found = offsets(&layout);
        found.sort_unstable();
        let expected = found == (0..layout.size()).collect::<Vec<_>>();
        prop_assert_eq!(tilewright::testing::check_bijective(&layout).is_ok(), expected);
    }

    #[test]
    fn swizzles_are_bijections(swizzle in strategies::swizzles(), x in 0i64..4096) {
        prop_assert_eq!(swizzle.inverse_apply(swizzle.apply(x)), x);
    }

    #[test]
    fn shapes_have_positive_extents(shape in strategies::shapes()) {
        prop_assert!((0..shape.leaves()).all(|i| shape.leaf(i) >= 1));
    }
}

/// The message of a panic.
fn message(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *catch_unwind(f)
        .expect_err("it must panic")
        .downcast::<String>()
        .expect("a message")
}

#[test]
fn assert_bijective_names_the_coordinates() {
    let text = message(|| assert_bijective!(layout!((4,2):(1,2))));
    assert!(
        text.contains("(4,2):(1,2) is not bijective onto 0..8"),
        "{text}"
    );
    assert!(
        text.ends_with("the coordinates (2,0) and (0,1) both have the offset 2"),
        "{text}"
    );
    let text = message(|| assert_bijective!(layout!(4:2), "tile {}", 3));
    assert!(
        text.ends_with("the coordinate 2 has the offset 4: tile 3"),
        "{text}"
    );
    let text = message(|| assert_bijective!(layout!(((2,2),3):((6,1),1))));
    assert!(
        text.contains("the coordinates ((0,1),0) and ((0,0),1)"),
        "{text}"
    );
}

#[test]
fn assert_injective_names_two_coordinates_of_one_offset() {
    assert_injective!(layout!((32,32):(33,1)));
    let text = message(|| assert_injective!(layout!((4,2):(1,2)), "tile {}", 3));
    assert!(
        text.contains(
            "(4,2):(1,2) is not injective: the coordinates (2,0) and (0,1) both have the offset 2: tile 3"
        ),
        "{text}"
    );
}

#[test]
fn assert_conflict_free_takes_a_tile_its_element_and_lanes() {
    let plain = layout!((32,32):(32,1));
    let column = layout!(32:32);
    assert_conflict_free!("ld.32", (layout!((32,32):(33,1)), 4, column));
    assert_conflict_free!(
        "ld.32",
        (layout!(Sw<5,0,5> o (32,32):(32,1)), 4, &column),
        "tile"
    );
    let text = message(|| assert_conflict_free!("ld.32", (plain, 4, column), "tile {}", 7));
    assert!(
        text.contains(
            "takes 32 wavefronts, 1 without conflicts: in phase 0, lanes 0 at (0,0), 1 at (1,0)"
        ),
        "{text}"
    );
    assert!(text.ends_with(": tile 7"), "{text}");
    // The first mode fastest becomes row-major by composition.
    let lanes = plain.compose(&layout!(32:32)).unwrap();
    assert_conflict_free!("ld.32", (plain, 4, lanes));
    let text = message(|| assert_conflict_free!("ld.32", (plain, 4, layout!(32:40))));
    assert!(
        text.contains("lane 26 of 32:40 touches element 1040, outside the tile's 32x32"),
        "{text}"
    );
    let text = message(|| assert_conflict_free!("ld.32", (layout!(32:1), 4, column)));
    assert!(text.contains("has 1 modes; a tile has two"), "{text}");
}

#[test]
fn assert_conflict_free_names_the_lanes() {
    // Rows of 128 bytes: 8 rows in the same banks.
    let text = message(|| assert_conflict_free!("ldmatrix.x4", layout!((16,2):(128,16))));
    assert!(
        text.contains("takes 32 wavefronts, 4 without conflicts"),
        "{text}"
    );
    assert!(
        text.contains("lanes 0, 1, 2, 3, 4, 5, 6, 7 ask bank 0"),
        "{text}"
    );
    assert_conflict_free!("ldmatrix.x4", layout!(Sw<3,4,3> o (16,2):(128,16)));
    // For every step of k and every block of rows as well.
    assert_conflict_free!(
        "ldmatrix.x4",
        layout!(Sw<3,4,3> o ((16,2),4,8):((128,16),32,2048)),
        "the tile"
    );
    let access: Access = "ld.32".parse().unwrap();
    assert_conflict_free!(access, layout!(32:4));
    let text = message(|| assert_conflict_free!("ld.32", layout!((32,2):(4,2))));
    assert!(text.contains("no count can be proven"), "{text}");
    let text = message(|| assert_conflict_free!("ld.3", layout!(32:4)));
    assert!(text.contains("no such access"), "{text}");
}
