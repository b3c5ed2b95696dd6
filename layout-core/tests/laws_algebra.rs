//! Laws of the operations on plain layouts.

mod strategies;

use layout_core::{
    Affine, CoordLayout, IntTuple, Layout, Slicer, Tiler, domain_distribute,
    domain_distribute_partial,
};
use proptest::prelude::*;
use strategies::{
    Floor, chained, chained_pair, image, layouts, right_hand, shapes, table, upward, with_values,
};

fn pairs() -> impl Strategy<Value = (Layout, Layout)> {
    layouts().prop_flat_map(|a| (Just(a), right_hand(a.size())))
}

/// The extents without inner parentheses, as text.
fn extents(l: &Layout) -> String {
    (0..l.leaves())
        .map(|j| l.leaf(j).0.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn coalescing_keeps_the_function(l in layouts()) {
        prop_assert_eq!(table(&l.coalesce()), table(&l));
    }

    #[test]
    fn coalescing_leaves_nothing_to_merge(l in layouts()) {
        let c = l.coalesce();
        prop_assert!(c.depth() <= 1 && (c.leaves() > 1 || c.depth() == 0));
        prop_assert_eq!(c.coalesce(), c);
        for i in 1..c.leaves() {
            let ((n, d), (_, next)) = (c.leaf(i - 1), c.leaf(i));
            prop_assert!(n > 1 && n * d != next);
        }
    }

    #[test]
    fn layouts_are_the_same_function_exactly_if_they_coalesce_to_the_same(a in layouts(), b in layouts()) {
        prop_assert_eq!(a.equal_as_functions(&b), table(&a) == table(&b));
        let flat = Layout::new(a.shape().flatten(), a.stride().flatten()).unwrap();
        prop_assert!(a.equal_as_functions(&flat));
    }

    #[test]
    fn coalescing_by_profile_keeps_each_mode(l in layouts()) {
        if l.shape().is_int() { return Ok(()); }
        let profile = IntTuple::flat(&vec![1; l.rank()]).unwrap();
        let c = l.coalesce_by_profile(&profile).unwrap();
        prop_assert_eq!(c.rank(), l.rank());
        for k in 0..l.rank() {
            prop_assert_eq!(c.get(k).unwrap(), l.get(k).unwrap().coalesce());
        }
    }

    #[test]
    fn filtering_keeps_the_offsets_and_drops_what_repeats_them(l in layouts()) {
        prop_assert_eq!(image(&l.filter()), image(&l));
        prop_assert_eq!(image(&l.filter_zeros()), image(&l));
        prop_assert_eq!(l.filter_zeros().filter(), l.filter());
    }

    #[test]
    fn composition_with_the_counting_layout_changes_nothing(a in layouts()) {
        let counting = Layout::mode(a.size(), 1).unwrap();
        prop_assert!(a.compose(&counting).unwrap().equal_as_functions(&a));
        let natural = Layout::compact(a.shape()).unwrap();
        prop_assert!(a.compose(&natural).unwrap().equal_as_functions(&a));
        prop_assert_eq!(table(&counting.compose(&a).unwrap()), table(&a));
    }

    #[test]
    fn composition_is_associative((a, b) in pairs(), n in 1i64..8, d in 0i64..4) {
        let c = Layout::mode(n, d).unwrap();
        if let (Ok(ab), Ok(bc)) = (a.compose(&b), b.compose(&c))
            && let (Ok(left), Ok(right)) = (ab.compose(&c), a.compose(&bc))
            && (n - 1) * d < b.size()
        {
            prop_assert!(left.equal_as_functions(&right), "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn strict_composition_is_composition_inside_the_domain((a, b) in pairs()) {
        let (min, max) = b.offset_range();
        if min >= 0 && max < a.size() {
            prop_assert_eq!(a.compose_strict(&b), a.compose(&b));
        } else {
            prop_assert_eq!(a.compose_strict(&b).unwrap_err().code(), "out_of_domain");
        }
    }

    #[test]
    fn a_layout_and_its_complement_cover_the_range_once(l in chained(), n in 1i64..4_000) {
        let c = l.complement(n).unwrap();
        let offsets = table(&c);
        prop_assert!(offsets.windows(2).all(|w| w[0] < w[1]), "ordered");
        let both = Layout::tuple(&[l.filter(), c]).unwrap();
        prop_assert!(both.is_bijective(), "{} and {}", l, c);
        prop_assert!(both.size() >= n);
    }

    #[test]
    fn a_right_inverse_counts_the_contiguous_offsets(l in layouts()) {
        let r = l.right_inverse().unwrap();
        for i in 0..r.size() {
            prop_assert!(r.index(i) < l.size());
            prop_assert_eq!(l.index(r.index(i)), i, "{} and {}", l, r);
        }
    }

    #[test]
    fn a_left_inverse_undoes_an_injective_chain(l in chained()) {
        let x = l.left_inverse().unwrap();
        for i in 0..l.size() {
            prop_assert_eq!(x.index(l.index(i)), i, "{} and {}", l, x);
        }
        if l.is_bijective() {
            prop_assert!(x.equal_as_functions(&l.right_inverse().unwrap()));
        }
    }

    #[test]
    fn a_preimage_exists_for_offsets_in_the_image_only(l in layouts()) {
        let offsets = image(&l);
        let (min, max) = l.offset_range();
        for y in min - 1..=max + 1 {
            match l.preimage(y) {
                Ok(i) => prop_assert!(0 <= i && i < l.size() && l.index(i) == y),
                Err(error) => {
                    prop_assert_eq!(error.code(), "not_in_image");
                    prop_assert!(offsets.binary_search(&y).is_err());
                }
            }
        }
    }

    #[test]
    fn the_nullspace_stands_still(l in layouts()) {
        let n = l.nullspace();
        prop_assert_eq!(n.size() * l.filter_zeros().size(), l.size());
        for i in 0..n.size() {
            prop_assert!(n.index(i) < l.size());
            prop_assert_eq!(l.index(n.index(i)), 0);
        }
    }

    #[test]
    fn the_guard_of_a_divide_by_mode_tells_what_hangs_over(a in 1i64..12, b in 1i64..12, m in 1i64..8, n in 1i64..8) {
        let whole = Layout::col_major(&[a, b]).unwrap();
        let tile = IntTuple::flat(&[m, n]).unwrap();
        let divided = whole.zipped_divide(&Tiler::Tuple(&tile)).unwrap();
        let layout = divided.rounded_up();
        let inside = (0..layout.size()).filter(|&i| divided.contains(i)).count() as i64;
        prop_assert_eq!(inside, a * b);
        prop_assert_eq!(divided.is_exact(), a % m == 0 && b % n == 0);
        let rest = layout.get(1).unwrap();
        prop_assert_eq!(rest.size(), ((a + m - 1) / m) * ((b + n - 1) / n));
    }

    #[test]
    fn downcasting_addresses_every_part_of_a_unit(l in chained(), n in 1i64..6) {
        let d = l.downcast(n).unwrap();
        let has_unit = (0..l.leaves()).any(|j| l.leaf(j) .1 == 1);
        if has_unit {
            let mut parts: Vec<i64> =
                table(&l).into_iter().flat_map(|y| (0..n).map(move |v| n * y + v)).collect();
            parts.sort_unstable();
            prop_assert_eq!(image(&d), parts);
        } else {
            prop_assert_eq!(table(&d), table(&l).into_iter().map(|y| n * y).collect::<Vec<_>>());
        }
        if n.count_ones() == 1 || has_unit {
            prop_assert!(d.upcast(n).unwrap().equal_as_functions(&l), "{} {}", l, d);
        }
    }

    #[test]
    fn a_slice_and_its_dice_share_out_the_modes(l in layouts(), open in any::<u32>(), i in 0i64..3_000) {
        let fixed = l.coord(i % l.size()).unwrap();
        let slicer = Slicer::new(fixed, open);
        prop_assert_eq!(Slicer::parse(&slicer.to_string()), Ok(slicer));
        let slice = l.slice(&slicer).unwrap();
        let (kept, offset) = (slice.layout(), slice.offset());
        prop_assert_eq!(kept.size() * l.dice(&slicer).unwrap().size(), l.size());
        for j in 0..kept.size() {
            // Fill the holes with the j-th coordinate of what was kept.
            let inner = kept.coord(j).unwrap();
            let mut next = 0;
            let values: Vec<i64> = (0..l.leaves()).map(|k| {
                if slicer.is_open(k) { next += 1; inner.leaf(next - 1) } else { fixed.leaf(k) }
            }).collect();
            let full = with_values(&l.shape(), &values);
            prop_assert_eq!(Ok(offset + kept.index(j)), l.at_coord(&full));
        }
    }

    #[test]
    fn a_common_layout_counts_for_both((a, b) in (chained(), chained())) {
        let c = a.max_common_layout(&b).unwrap();
        // Vectors divide the run of offsets from 0 on that both have at the same coordinate.
        let both = |i: &i64| a.preimage(*i).is_ok_and(|x| x < b.size() && b.index(x) == *i);
        let run = (0..a.size()).take_while(both).count() as i64;
        prop_assert!(run >= c.size());
        prop_assert_eq!(run % a.max_common_vector(&b).unwrap(), 0);
        for i in 0..c.size() {
            prop_assert!(b.index(c.index(i)) == i && a.index(c.index(i)) == i, "{} {} {}", a, b, c);
        }
        let own = a.max_common_layout(&a).unwrap();
        prop_assert!(own.equal_as_functions(&a.right_inverse().unwrap()));
    }

    #[test]
    fn alignment_splits_the_offsets_into_whole_vectors(l in chained()) {
        let v = l.max_alignment();
        let offsets = image(&l);
        let whole = |v: i64| {
            offsets.chunks(v as usize).all(|run| {
                run.len() as i64 == v && run[0] % v == 0 && run[run.len() - 1] == run[0] + v - 1
            })
        };
        prop_assert!(whole(v), "{} aligned by {}", l, v);
        for wider in v + 1..=l.size() {
            prop_assert!(!whole(wider), "{} aligned by {} but {} said", l, wider, v);
        }
    }

    #[test]
    fn distributing_takes_rising_coordinates_that_divide_the_domain(shape in shapes(), n in 1i64..60) {
        let size = shape.size().unwrap();
        match domain_distribute(&shape, n) {
            Ok(d) => {
                prop_assert_eq!(d.size(), n);
                prop_assert!(table(&d).windows(2).all(|w| w[0] < w[1]));
                let domain = Layout::compact(shape).unwrap();
                prop_assert!(domain.zipped_divide(&Tiler::Layout(&d)).is_ok_and(|z| z.is_exact()));
            }
            Err(error) => {
                prop_assert_eq!(error.code(), "not_divisible");
                prop_assert!(size % n != 0);
                // Fewer, but of the same kind.
                let d = domain_distribute_partial(&shape, n).unwrap();
                prop_assert!(d.size() < n && n % d.size() == 0);
                prop_assert_eq!(domain_distribute(&shape, d.size()), Ok(d));
            }
        }
    }

    #[test]
    fn properties_agree_with_enumeration(l in layouts()) {
        let offsets = image(&l);
        let (min, max) = l.offset_range();
        let injective = offsets.len() as i64 == l.size();
        let gapless = offsets.len() as i64 == max - min + 1;
        prop_assert_eq!(l.is_injective(), Ok(injective));
        prop_assert_eq!(l.is_compact(), injective && gapless);
        prop_assert_eq!(l.is_surjective_onto(max + 1), gapless && min == 0);
        prop_assert!(!l.is_surjective_onto(max + 2));
        prop_assert_eq!(l.is_bijective(), injective && gapless && min == 0);
    }

}

#[test]
fn composition_is_one_function_after_the_other() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((a, b) in pairs())| {
        if let Ok(r) = floor.count(a.compose(&b)) {
            prop_assert_eq!(r.size(), b.size());
            for i in 0..b.size() {
                prop_assert_eq!(r.index(i), a.index(b.index(i)), "{} ∘ {} = {}", a, b, r);
            }
        }
    });
    counted.at_least(60);
}

#[test]
fn composition_has_the_modes_of_the_right_hand_side() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((a, b) in pairs())| {
        if let Ok(r) = floor.count(a.compose(&b)) {
            prop_assert!(layout_core::compatible(&b.shape(), &r.shape()));
        }
    });
    counted.at_least(55);
}

#[test]
fn composition_by_mode_composes_each_mode_and_keeps_the_others() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(a in layouts(), b in layouts(), c in layouts(), tile in 1i64..9)| {
        let whole = Layout::tuple(&[a, b, c]).unwrap();
        let t = Layout::mode(tile, 1).unwrap();
        let modes = [Tiler::Keep, Tiler::Layout(&t)];
        if let Ok(r) = floor.count(whole.compose_by_mode(&Tiler::Modes(&modes))) {
            prop_assert_eq!(r.get(0), Ok(a));
            prop_assert_eq!(r.get(1), b.compose(&t));
            prop_assert_eq!(r.get(2), Ok(c));
            prop_assert_eq!(r.rank(), 3);
        } else {
            prop_assert!(b.compose(&t).is_err());
        }
    });
    counted.at_least(60);
}

#[test]
fn a_left_inverse_is_a_quasi_inverse() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(l in layouts())| {
        if let Ok(x) = floor.count(l.left_inverse()) {
            for i in 0..l.size() {
                prop_assert_eq!(l.index(x.index(l.index(i))), l.index(i), "{} and {}", l, x);
            }
        }
    });
    counted.at_least(60);
}

/// One rule: the last mode goes on without end, also if its extent is 1. Evaluation, composition and divides follow it; what is
/// about the offsets inside alone (coalescing, complements, products) drops the mode.
#[test]
fn a_trailing_extent_of_1_goes_on() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(a in layouts(), d in -3i64..70, n in 1i64..40, t in 1i64..12)| {
        let inside = a.coalesce();
        let one = Layout::mode(1, d).unwrap();
        let a = Layout::tuple(&[inside, one]).unwrap();
        let size = inside.size();
        for x in 0..3 * size {
            prop_assert_eq!(a.index(x), inside.index(x % size) + x / size * d);
        }
        if let Ok(r) = floor.count(a.compose(&Layout::mode(n, 1).unwrap())) {
            for i in 0..n {
                prop_assert_eq!(r.index(i), a.index(i), "{} o {}:1", a, n);
            }
        }
        if let Ok(divided) = a.logical_divide(&Tiler::Int(t)) {
            let both = Layout::tuple(&[Layout::mode(t, 1).unwrap(), Layout::mode(t, 1).unwrap().complement(size).unwrap()]).unwrap();
            let whole = divided.rounded_up();
            let composed = a.compose(&both);
            prop_assert!(composed.is_err() || composed == Ok(whole), "{} by {}", a, t);
            for i in (0..whole.size()).filter(|&i| divided.contains(i)) {
                prop_assert_eq!(whole.index(i), a.index(divided.guard().index(i)));
            }
        }
        prop_assert!(a.equal_as_functions(&inside));
        prop_assert_eq!(a.complement(n), inside.complement(n));
        let tiler = Tiler::Int(n);
        prop_assert_eq!(
            a.logical_product(&tiler).map(|p| p.get(1)),
            inside.logical_product(&tiler).map(|p| p.get(1))
        );
    });
    counted.at_least(25);
    let a = Layout::parse("(10,1):(1,64)").unwrap();
    assert_eq!(a.index(12), 66);
    let refused = a
        .compose(&Layout::parse("14:1").unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("over mode 0 (extent 10) of the coalesced left-hand layout into its last mode, whose extent is 1"),
        "{refused}"
    );
    let by = |n| {
        a.logical_divide(&Tiler::Int(n))
            .unwrap()
            .rounded_up()
            .to_string()
    };
    // 10 and 11 do not exist, and no layout has A's values there: any will do. Up to 20 there is one that has.
    assert_eq!(by(4), "(4,3):(1,4)");
    assert_eq!(by(20), "((10,2),1):((1,64),0)");
}

#[test]
fn dividing_visits_every_element_exactly_once() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((a, tile) in pairs())| {
        let tile = tile.filter();
        if let Ok(divided) = floor.count(a.logical_divide(&Tiler::Layout(&tile))) {
            let whole = divided.rounded_up();
            let mut visited: Vec<i64> = (0..whole.size())
                .filter(|&i| divided.contains(i))
                .map(|i| divided.guard().index(i))
                .collect();
            for i in (0..whole.size()).filter(|&i| divided.contains(i)) {
                prop_assert_eq!(whole.index(i), a.index(divided.guard().index(i)));
            }
            visited.sort_unstable();
            prop_assert!(visited.into_iter().eq(0..a.size()), "{} / {}", a, tile);
            prop_assert_eq!(divided.overhang(), whole.size() - a.size());
        }
    });
    counted.at_least(45);
}

#[test]
fn the_first_mode_of_a_divide_is_the_tile() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((a, tile) in pairs())| {
        if let Ok(divided) = floor.count(a.logical_divide(&Tiler::Layout(&tile))) {
            let first = divided.rounded_up().get(0).unwrap();
            for i in (0..first.size()).filter(|&i| divided.contains(i)) {
                prop_assert_eq!(first.index(i), a.index(tile.index(i)), "{} / {}", a, tile);
            }
        }
    });
    counted.at_least(45);
}

#[test]
fn the_four_divides_arrange_the_same_modes() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(a in layouts(), b in layouts(), c in layouts(), m in 1i64..8, n in 1i64..8)| {
        let whole = Layout::tuple(&[a, b, c]).unwrap();
        let tile = IntTuple::flat(&[m, n]).unwrap();
        let tiler = Tiler::Tuple(&tile);
        if let Ok(logical) = floor.count(whole.logical_divide(&tiler)) {
            let logical = logical.rounded_up();
            let zipped = whole.zipped_divide(&tiler).unwrap().rounded_up();
            let tiled = whole.tiled_divide(&tiler).unwrap().rounded_up();
            let flat = whole.flat_divide(&tiler).unwrap().rounded_up();
            prop_assert!(zipped.equal_as_functions(&tiled) && zipped.equal_as_functions(&flat));
            let part = |mode: usize, half: usize| logical.get(mode).unwrap().get(half).unwrap();
            prop_assert_eq!(zipped.get(0), Layout::tuple(&[part(0, 0), part(1, 0)]));
            prop_assert_eq!(zipped.get(1), Layout::tuple(&[part(0, 1), part(1, 1), c]));
            prop_assert_eq!(tiled, Layout::tuple(&[zipped.get(0).unwrap(), part(0, 1), part(1, 1), c]).unwrap());
            prop_assert_eq!(flat, Layout::tuple(&[part(0, 0), part(1, 0), part(0, 1), part(1, 1), c]).unwrap());
        }
    });
    counted.at_least(30);
}

#[test]
fn a_product_repeats_its_block_without_overlap() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(block in chained(), tiler in layouts())| {
        if let Ok(product) = floor.count(block.logical_product(&Tiler::Layout(&tiler))) {
            prop_assert_eq!(product.get(0), Ok(block));
            let tiles = product.get(1).unwrap();
            prop_assert!(layout_core::compatible(&tiler.shape(), &tiles.shape()));
            // Distinct tiles share no offset, tiles are met in the order of the tiler.
            let starts = image(&tiles);
            prop_assert_eq!(starts.len(), image(&tiler).len());
            prop_assert_eq!(image(&product).len(), starts.len() * image(&block).len());
            for i in 0..tiler.size() {
                for j in 0..tiler.size().min(40) {
                    prop_assert_eq!(tiler.index(i).cmp(&tiler.index(j)), tiles.index(i).cmp(&tiles.index(j)));
                }
            }
        }
    });
    counted.at_least(70);
}

#[test]
fn the_four_products_arrange_the_same_modes() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(a in chained(), b in chained(), m in 1i64..8, n in 1i64..8)| {
        let whole = Layout::tuple(&[a, b]).unwrap();
        let tile = IntTuple::flat(&[m, n]).unwrap();
        let tiler = Tiler::Tuple(&tile);
        if let Ok(logical) = floor.count(whole.logical_product(&tiler)) {
            let zipped = whole.zipped_product(&tiler).unwrap();
            let part = |mode: usize| logical.get(mode).unwrap().get(1).unwrap();
            prop_assert_eq!(zipped.get(0), Ok(whole));
            prop_assert_eq!(zipped.get(1), Layout::tuple(&[part(0), part(1)]));
            let tiled = whole.tiled_product(&tiler).unwrap();
            prop_assert_eq!(tiled, Layout::tuple(&[whole, part(0), part(1)]).unwrap());
            let flat = whole.flat_product(&tiler).unwrap();
            prop_assert_eq!(flat, Layout::tuple(&[a, b, part(0), part(1)]).unwrap());
        } else {
            // Only a gap that the repetitions do not fill evenly refuses.
            prop_assert!(!a.is_bijective() || !b.is_bijective());
        }
    });
    counted.at_least(60);
}

#[test]
fn blocked_and_raked_products_differ_in_order_only() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(block in chained_pair(), m in 1i64..5, n in 1i64..5)| {
        let tiler = Layout::col_major(&[m, n]).unwrap();
        if let Ok(blocked) = floor.count(block.blocked_product(&tiler)) {
            let raked = block.raked_product(&tiler).unwrap();
            prop_assert_eq!(image(&blocked), image(&raked));
            prop_assert_eq!(blocked.is_injective(), Ok(true));
            for k in 0..2 {
                let (x, y) = (blocked.get(k).unwrap(), raked.get(k).unwrap());
                prop_assert_eq!(x.get(0), y.get(1));
                prop_assert_eq!(x.get(1), y.get(0));
                prop_assert_eq!(x.get(0), block.get(k));
            }
        } else {
            prop_assert!(!block.is_bijective());
        }
    });
    counted.at_least(65);
}

#[test]
fn tile_to_shape_fills_the_shape_with_the_block() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(block in chained_pair(), m in 1i64..5, n in 1i64..5)| {
        let (a, b) = (block.get(0).unwrap(), block.get(1).unwrap());
        let shape = IntTuple::flat(&[a.size() * m, b.size() * n]).unwrap();
        for order in [None, Some(IntTuple::flat(&[2, 1]).unwrap())] {
            let Ok(tiled) = floor.count(block.tile_to_shape(&shape, order.as_ref())) else {
                prop_assert!(!block.is_bijective());
                continue;
            };
            prop_assert_eq!(layout_core::product_each(&tiled.shape()), Ok(shape));
            prop_assert_eq!(tiled.is_injective(), Ok(true));
            for i in 0..a.size() {
                prop_assert_eq!(tiled.at(&[i, b.size() - 1]), block.at(&[i, b.size() - 1]));
            }
        }
    });
    counted.at_least(68);
}

#[test]
fn upcasting_counts_whole_units() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(l in upward(), k in 0u32..4)| {
        let n = 1i64 << k;
        if let Ok(u) = floor.count(l.upcast(n)) {
            for (c, i) in layout_core::coordinates(&l.shape()).unwrap().zip(0..) {
                // The digits inside the unit are the low ones of each mode.
                let values: Vec<i64> =
                    (0..l.leaves()).map(|j| c.leaf(j) / (l.leaf(j).0 / u.leaf(j).0)).collect();
                let coarse = with_values(&l.shape(), &values);
                prop_assert_eq!(u.at_coord(&coarse), Ok(l.index(i).div_euclid(n)), "{} by {}", l, n);
            }
        }
    });
    counted.at_least(45);
}

#[test]
fn recasting_there_and_back_changes_nothing() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(l in chained(), up in 1i64..5, down in 1i64..5)| {
        if (0..l.leaves()).any(|j| l.leaf(j).1 == 1)
            && let Ok(there) = floor.count(l.recast(8 * down, 8 * up))
            && let Ok(back) = there.recast(8 * up, 8 * down)
        {
            prop_assert_eq!(image(&back), image(&l), "{} {} {}", l, there, back);
        }
    });
    counted.at_least(50);
}

#[test]
fn composing_named_strides_is_composing_every_binding() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((a, b) in pairs(), v in 50i64..60)| {
        // Strides d·ld: the composition must hold for any ld, so in particular for this one.
        let text: Vec<String> = (0..a.leaves()).map(|j| format!("{}*ld+{}", a.leaf(j).1, j)).collect();
        let affine = Affine::parse(&format!("({}):({})", extents(&a), text.join(","))).unwrap();
        if let Ok(r) = floor.count(affine.compose(&b)) {
            let bound = affine.bind(&[v]).unwrap();
            prop_assert!(r.bind(&[v]).unwrap().equal_as_functions(&bound.compose(&b).unwrap()));
            prop_assert!(r.coalesce().bind(&[v]).unwrap().equal_as_functions(&r.bind(&[v]).unwrap()));
        }
    });
    counted.at_least(65);
}

#[test]
fn composing_an_identity_layout_gives_the_coordinates() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |(shape in shapes(), b in layouts())| {
        if let Ok(identity) = floor.count(CoordLayout::identity(&shape))
            && let Ok(r) = identity.compose(&b)
        {
            for i in 0..b.size() {
                prop_assert_eq!(r.checked_index(i), identity.checked_index(b.index(i)));
            }
        }
    });
    counted.at_least(95);
}
