//! Laws of notation, coordinates and evaluation.

mod strategies;

use core::cmp::Ordering;

use layout_core::{
    Affine, CoordLayout, IntTuple, Lanes, Layout, Slicer, Swizzled, ceil_div, colexicographic,
    compatible, congruent, coordinates, crd2crd, crd2idx, elementwise_less, evenly_divides,
    idx2crd, lexicographic, linear, make_ordered_layout, product_each, shape_div, weakly_congruent,
};
use proptest::prelude::*;
use strategies::{Floor, layouts, shapes, swizzled, table, with_values};

/// The offset from the definition: each leaf's coordinate times its stride.
fn dot(coordinate: &IntTuple, layout: &Layout) -> i64 {
    (0..layout.leaves())
        .map(|i| coordinate.leaf(i) * layout.leaf(i).1)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_what_was_printed_gives_it_back(l in layouts(), s in swizzled()) {
        prop_assert_eq!(Layout::parse(&l.to_string()), Ok(l));
        prop_assert_eq!(IntTuple::parse(&l.shape().to_string()), Ok(l.shape()));
        prop_assert_eq!(Swizzled::parse(&s.to_string()), Ok(s));
        prop_assert_eq!(Affine::parse(&l.to_string()).map(|a| a.as_static()), Ok(Some(l)));
    }

    #[test]
    fn index_is_the_dot_product_of_coordinate_and_stride(l in layouts()) {
        for (i, c) in coordinates(&l.shape()).unwrap().enumerate() {
            prop_assert_eq!(l.index(i as i64), dot(&c, &l));
            prop_assert_eq!(l.at_coord(&c), Ok(dot(&c, &l)));
        }
    }

    #[test]
    fn coordinates_come_in_colexicographic_order(shape in shapes()) {
        let all: Vec<IntTuple> = coordinates(&shape).unwrap().collect();
        prop_assert_eq!(all.len() as i64, shape.size().unwrap());
        for pair in all.windows(2) {
            prop_assert_eq!(colexicographic(&pair[0], &pair[1]), Ok(Ordering::Less));
            prop_assert_eq!(lexicographic(&pair[1], &pair[1]), Ok(Ordering::Equal));
        }
        for (i, c) in all.iter().enumerate() {
            prop_assert_eq!(elementwise_less(c, &shape), Ok(true));
            prop_assert_eq!(linear(c, &shape), Ok(i as i64));
        }
    }

    #[test]
    fn idx2crd_and_crd2idx_undo_each_other_beyond_the_size_too(l in layouts(), i in 0i64..5_000) {
        let c = idx2crd(i, &l.shape()).unwrap();
        prop_assert_eq!(linear(&c, &l.shape()), Ok(i));
        prop_assert_eq!(crd2idx(&c, &l.shape(), &l.stride()), Ok(l.index(i)));
        prop_assert_eq!(l.coord(i), Ok(c));
    }

    #[test]
    fn crd2crd_keeps_the_linear_coordinate(shape in shapes(), i in 0i64..3_000) {
        let size = shape.size().unwrap();
        let other = IntTuple::flat(&[size, 1]).unwrap();
        let c = idx2crd(i % size, &shape).unwrap();
        let there = crd2crd(&c, &shape, &other).unwrap();
        prop_assert_eq!(there.leaf(0), i % size);
        prop_assert_eq!(crd2crd(&there, &other, &shape), Ok(c));
    }

    #[test]
    fn one_linear_coordinate_a_mode_is_enough(l in layouts()) {
        let sizes: Vec<i64> = (0..l.rank()).map(|k| l.get(k).unwrap().size()).collect();
        for i in 0..l.size() {
            let mut rest = i;
            let c: Vec<i64> = sizes.iter().map(|n| { let x = rest % n; rest /= n; x }).collect();
            prop_assert_eq!(l.at(&c), l.index(i));
            if !l.shape().is_int() {
                prop_assert_eq!(l.at_coord(&IntTuple::flat(&c).unwrap()), Ok(l.index(i)));
            }
        }
    }

    #[test]
    fn cosize_spans_the_least_to_the_greatest_offset(l in layouts()) {
        let offsets = table(&l);
        let (min, max) = (offsets.iter().min().unwrap(), offsets.iter().max().unwrap());
        prop_assert_eq!(l.offset_range(), (*min, *max));
        prop_assert_eq!(l.cosize(), max - min + 1);
    }

    #[test]
    fn index_with_agrees_in_every_arithmetic(l in layouts(), i in 0i64..3_000) {
        let i = i % l.size();
        prop_assert_eq!(l.index_with(&i), l.index(i));
        prop_assert_eq!(l.index_with(&(i as i32)), l.index(i) as i32);
        if l.offset_range().0 == 0 {
            prop_assert_eq!(l.index_with(&(i as u64)), l.index(i) as u64);
        }
        prop_assert_eq!(l.index_with(&Lanes([0, i])).0, [l.index(0), l.index(i)]);
    }

    #[test]
    fn index_with_agrees_under_a_swizzle(s in swizzled(), i in 0i64..3_000) {
        let i = i % s.size();
        prop_assert_eq!(s.index_with(&i), s.index(i));
        prop_assert_eq!(s.index_with(&Lanes([i])).0, [s.index(i)]);
    }

    #[test]
    fn at_with_agrees_with_at(l in layouts()) {
        let c: Vec<i64> = (0..l.rank()).map(|k| l.get(k).unwrap().size() - 1).collect();
        prop_assert_eq!(l.at_with(&c), Ok(l.at(&c)));
    }

    #[test]
    fn a_shape_is_compatible_with_its_refinements_only(l in layouts()) {
        let shape = l.shape();
        let size = IntTuple::int(shape.size().unwrap());
        let modes = product_each(&shape).unwrap();
        prop_assert!(compatible(&shape, &shape) && compatible(&size, &shape));
        prop_assert!(compatible(&modes, &shape) && compatible(&size, &modes));
        prop_assert!(weakly_congruent(&modes, &shape) && congruent(&shape, &l.stride()));
        prop_assert_eq!(compatible(&shape, &size), shape.is_int());
        prop_assert_eq!(congruent(&shape.flatten(), &shape), shape.depth() <= 1);
    }

    #[test]
    fn ceil_div_covers_and_never_loses_an_element(shape in shapes(), n in 1i64..200) {
        let tiles = ceil_div(&shape, &IntTuple::int(n)).unwrap();
        prop_assert!(congruent(&tiles, &shape));
        let (size, count) = (shape.size().unwrap(), tiles.size().unwrap());
        prop_assert!(count * n >= size, "{} tiles of {} for {}", count, n, shape);
        if shape.is_int() {
            prop_assert_eq!(count, (size + n - 1) / n);
        }
    }

    #[test]
    fn dividing_a_shape_by_itself_leaves_ones(shape in shapes()) {
        let ones = with_values(&shape, &vec![1; shape.leaves()]);
        prop_assert_eq!(shape_div(&shape, &shape), Ok(ones));
        prop_assert_eq!(ceil_div(&shape, &shape), Ok(ones));
        prop_assert!(evenly_divides(&shape, &shape));
    }

    #[test]
    fn ordered_layouts_are_compact_in_their_order(shape in shapes(), keys in prop::collection::vec(0i64..4, 16)) {
        let order = with_values(&shape, &keys[..shape.leaves()]);
        let l = make_ordered_layout(&shape, &order).unwrap();
        prop_assert_eq!(l.shape(), shape);
        prop_assert!(l.is_bijective());
        for i in 0..l.leaves() {
            for j in 0..l.leaves() {
                let apart = l.leaf(i).0 > 1 && l.leaf(j).0 > 1;
                if apart && (order.leaf(i), i) < (order.leaf(j), j) {
                    prop_assert!(l.leaf(i).1 < l.leaf(j).1);
                }
            }
        }
    }

    #[test]
    fn make_layout_like_keeps_the_order_of_the_strides(l in layouts()) {
        let like = l.compact_like();
        prop_assert_eq!(like.shape(), l.shape());
        prop_assert!(like.filter_zeros().is_bijective());
        for i in 0..l.leaves() {
            prop_assert_eq!(like.leaf(i).1 == 0, l.leaf(i).1 == 0 || l.leaf(i).0 == 1);
            for j in 0..l.leaves() {
                if l.leaf(i).1.abs() < l.leaf(j).1.abs() && like.leaf(j).1 > 0 {
                    prop_assert!(like.leaf(i).1 < like.leaf(j).1);
                }
            }
        }
    }

    #[test]
    fn named_strides_evaluate_to_the_bound_layout(l in layouts(), k in layouts(), v in -9i64..100, i in 0i64..3_000) {
        // Strides d + e·ld with d from one layout and e from another.
        let text: Vec<String> =
            (0..l.leaves()).map(|j| format!("{}*ld+{}", k.leaf(j % k.leaves()).1, l.leaf(j).1)).collect();
        let extents: Vec<String> = (0..l.leaves()).map(|j| l.leaf(j).0.to_string()).collect();
        let text = format!("({}):({})", extents.join(","), text.join(","));
        let affine = Affine::parse(&text).unwrap();
        prop_assert_eq!(Affine::parse(&affine.to_string()), Ok(affine));
        let bound = affine.bind(&[v]).unwrap();
        for j in 0..l.leaves() {
            prop_assert_eq!(bound.leaf(j).1, k.leaf(j % k.leaves()).1 * v + l.leaf(j).1);
        }
        let i = i % l.size();
        prop_assert_eq!(affine.checked_index(i).unwrap().bind(&[v]), Ok(bound.index(i)));
        prop_assert_eq!(affine.index_with(&i, &[v]), Ok(bound.index(i)));
    }

}

#[test]
fn shape_div_divides_the_size_or_uses_it_up() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(shape in shapes(), n in 1i64..200)| {
        let divisor = IntTuple::int(n);
        if let Ok(rest) = floor.count(shape_div(&shape, &divisor)) {
            prop_assert!(congruent(&rest, &shape));
            let (size, left) = (shape.size().unwrap(), rest.size().unwrap());
            prop_assert!(left * n == size || (left == 1 && n % size == 0));
            prop_assert_eq!(ceil_div(&shape, &divisor), Ok(rest));
            prop_assert_eq!(evenly_divides(&shape, &divisor), size % n == 0);
        }
    });
    counted.at_least(8);
}

#[test]
fn an_identity_layout_returns_the_coordinate() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(shape in shapes())| {
        if let Ok(identity) = floor.count(CoordLayout::identity(&shape)) {
            for (i, c) in coordinates(&shape).unwrap().enumerate() {
                prop_assert_eq!(identity.checked_index(i as i64), Ok(c));
                prop_assert_eq!(identity.at_coord(&c), Ok(c));
            }
            prop_assert_eq!(identity.coshape(), Ok(shape));
        } else {
            prop_assert!(shape.leaves() > layout_core::MAX_AXES);
        }
    });
    counted.at_least(95);
}

#[test]
fn no_text_makes_the_parsers_panic() {
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(text in "[-+()0-9,:_ oSw<>*a-z]{0,40}")| {
        if let Ok(l) = Layout::parse(&text) {
            prop_assert_eq!(Layout::parse(&l.to_string()), Ok(l));
        }
        for result in [
            Swizzled::parse(&text).map(|_| ()),
            IntTuple::parse(&text).map(|_| ()),
            Slicer::parse(&text).map(|_| ()),
            Affine::parse(&text).map(|_| ()),
        ] {
            if let Err(error) = result {
                prop_assert!(error.span.0 <= error.span.1 && error.span.1 <= text.len());
                prop_assert!(!error.message().as_str().is_empty());
            }
        }
    });
}
