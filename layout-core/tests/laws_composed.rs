//! Laws of swizzles and composed layouts.

mod strategies;

use layout_core::{IntTuple, Layout, Slicer, Swizzle, Swizzled, Tiler};
use proptest::prelude::*;
use strategies::{Floor, chained, layouts, right_hand, swizzled, swizzles};

fn offsets(s: &Swizzled) -> Vec<i64> {
    (0..s.size()).map(|i| s.index(i)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_swizzle_xors_the_source_field_onto_the_target(s in swizzles(), x in any::<i64>()) {
        let y = s.apply(x);
        for bit in 0..64u32 {
            let get = |v: i64, bit: u32| v >> bit & 1;
            let low = if s.s() > 0 { s.m() } else { s.m() + s.s().unsigned_abs() };
            let target = (low..low + s.b()).contains(&bit);
            let source = bit as i32 + s.s();
            let expected = if target { get(x, bit) ^ get(x, source as u32) } else { get(x, bit) };
            prop_assert_eq!(get(y, bit), expected, "bit {} of {}", bit, s);
        }
    }

    #[test]
    fn the_inverse_of_a_swizzle_undoes_it(s in swizzles(), x in any::<i64>()) {
        prop_assert_eq!(s.inverse_apply(s.apply(x)), x);
        prop_assert_eq!(s.apply(s.inverse_apply(x)), x);
    }

    #[test]
    fn a_swizzle_is_an_involution_exactly_if_its_fields_are_apart(s in swizzles()) {
        let involution = (0..1 << 12).all(|x| s.apply(s.apply(x)) == x);
        prop_assert_eq!(involution, s.s().unsigned_abs() >= s.b());
    }

    #[test]
    fn cosize_is_the_true_greatest_offset_plus_one(s in swizzled()) {
        let all = offsets(&s);
        let (min, max) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
        prop_assert_eq!(s.offset_range(), (min, max), "{}", s);
        prop_assert_eq!(s.cosize(), max - min.min(0) + 1);
    }

    #[test]
    fn a_slice_of_a_swizzled_layout_is_exact(s in swizzled(), i in 0i64..3_000) {
        // Fix every other leaf.
        let fixed = s.coord(i % s.size()).unwrap();
        let slicer = Slicer::new(fixed, 0x5555_5555);
        let part = s.slice(&slicer).unwrap();
        for j in 0..part.size() {
            let inner = part.coord(j).unwrap();
            let mut next = 0;
            let values: Vec<i64> = (0..fixed.leaves()).map(|k| {
                if slicer.is_open(k) { next += 1; inner.leaf(next - 1) } else { fixed.leaf(k) }
            }).collect();
            let full = strategies::with_values(&s.shape(), &values);
            prop_assert_eq!(Ok(part.index(j)), s.at_coord(&full));
        }
    }

    #[test]
    fn the_right_inverse_of_a_swizzled_layout_returns_to_the_offset(w in swizzles(), l in chained()) {
        let s = Swizzled::new(w, 0, l).unwrap();
        let inverse = s.right_inverse().unwrap();
        for x in 0..l.right_inverse().unwrap().size() {
            let y = w.apply(x);
            prop_assert_eq!(s.index(inverse.index(y)), y);
        }
    }

    #[test]
    fn the_left_inverse_of_a_swizzled_layout_returns_to_the_coordinate(
        w in swizzles(), o in 0i64..64, l in chained(),
    ) {
        let s = Swizzled::new(w, o, l).unwrap();
        let inverse = s.left_inverse().unwrap();
        for i in 0..s.size() {
            prop_assert_eq!(inverse.index(s.index(i)), i);
            prop_assert_eq!(inverse.checked_index(s.index(i)), Ok(i));
            prop_assert_eq!(s.preimage(s.index(i)), Ok(i));
        }
    }

    #[test]
    fn upcasting_a_swizzle_acts_on_whole_units(s in swizzles(), k in 0u32..8, x in 0i64..1 << 14) {
        let n = 1i64 << k;
        match s.upcast(n) {
            Ok(u) => prop_assert_eq!(u.apply(x.div_euclid(n)), s.apply(x).div_euclid(n)),
            Err(error) => {
                prop_assert_eq!(error.code(), "swizzle_unit");
                prop_assert!(s.s() < 0 && k > s.m());
            }
        }
    }

    #[test]
    fn downcasting_a_swizzle_moves_whole_units(s in swizzles(), k in 0u32..8, x in 0i64..1 << 14) {
        let n = 1i64 << k;
        let d = s.downcast(n).unwrap();
        prop_assert_eq!(d.apply(x), s.apply(x.div_euclid(n)) * n + x.rem_euclid(n));
        prop_assert_eq!(d.upcast(n), Ok(s));
    }

    #[test]
    fn recasting_a_composed_layout_keeps_its_memory(w in swizzles(), o in 0i64..8, l in chained(), k in 0u32..3) {
        let n = 1i64 << k;
        let s = Swizzled::new(w, o, l).unwrap();
        let down = s.downcast(n).unwrap();
        if (0..l.leaves()).any(|j| l.leaf(j).1 == 1) {
            let mut parts: Vec<i64> = offsets(&s).into_iter().flat_map(|y| (0..n).map(move |v| n * y + v)).collect();
            let mut found = offsets(&down);
            parts.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, parts);
        }
        prop_assert_eq!(s.recast(8 * n, 8), Ok(down));
        let up = down.upcast(n).unwrap();
        prop_assert_eq!(up.equal_as_functions(&s), Ok(true));
    }

    #[test]
    fn properties_of_composed_layouts_agree_with_enumeration(s in swizzled()) {
        let mut all = offsets(&s);
        let size = all.len();
        all.sort_unstable();
        all.dedup();
        let (min, max) = (all[0], all[all.len() - 1]);
        let gapless = all.len() as i64 == max - min + 1;
        let injective = all.len() == size;
        prop_assert_eq!(s.is_injective(), Ok(injective));
        prop_assert_eq!(s.is_compact(), Ok(injective && gapless));
        prop_assert_eq!(s.is_surjective_onto(max + 1), Ok(gapless && min == 0));
        prop_assert_eq!(s.is_bijective(), Ok(injective && gapless && min == 0));
    }

    #[test]
    fn equality_of_composed_layouts_is_equality_of_tables(w in swizzles(), v in swizzles(), o in 0i64..3, p in 0i64..3, l in layouts(), m in layouts()) {
        let (a, b) = (Swizzled::new(w, o, l).unwrap(), Swizzled::new(v, p, l).unwrap());
        let c = Swizzled::new(w, o, m).unwrap();
        for (x, y) in [(a, b), (a, c), (b, c), (a, a)] {
            prop_assert_eq!(x.equal_as_functions(&y), Ok(offsets(&x) == offsets(&y)));
        }
    }

    #[test]
    fn alignment_under_a_swizzle_gives_whole_vectors(w in swizzles(), o in 0i64..64, l in chained()) {
        let s = Swizzled::new(w, o, l).unwrap();
        let v = s.max_alignment();
        let mut all = offsets(&s);
        all.sort_unstable();
        for run in all.chunks(v as usize) {
            prop_assert!(run.len() as i64 == v && run[0] % v == 0 && run[run.len() - 1] == run[0] + v - 1);
        }
    }

    #[test]
    fn tiling_a_swizzled_atom_repeats_the_swizzle(b in 0u32..4, m in 1i64..4, n in 1i64..4) {
        let atom = Swizzled::new(
            Swizzle::new(b, 3, 3).unwrap(), 0, Layout::row_major(&[8, 64]).unwrap(),
        ).unwrap();
        let shape = IntTuple::flat(&[8 * m, 64 * n]).unwrap();
        let tiled = atom.tile_to_shape(&shape, None).unwrap();
        prop_assert_eq!(tiled.is_bijective(), Ok(true));
        for i in 0..8 {
            for j in 0..64 {
                prop_assert_eq!(tiled.at(&[i, j]), atom.at(&[i, j]));
            }
        }
    }
}

#[test]
fn composing_under_a_swizzle_is_one_function_after_the_other() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((s, b) in swizzled().prop_flat_map(|s| (Just(s), right_hand(s.size()))))| {
        if let Ok(r) = floor.count(s.compose(&b)) {
            for i in 0..b.size() {
                prop_assert_eq!(r.index(i), s.index(b.index(i)));
            }
        }
    });
    counted.at_least(60);
}

#[test]
fn dividing_under_a_swizzle_divides_the_layout_inside() {
    let counted = Floor::new();
    let floor = &counted;
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, |((s, t) in swizzled().prop_flat_map(|s| (Just(s), right_hand(s.size()))))| {
        let tiler = Tiler::Layout(&t);
        if let Ok(divided) = floor.count(s.logical_divide(&tiler)) {
            let whole = divided.rounded_up();
            for i in (0..whole.size()).filter(|&i| divided.contains(i)) {
                prop_assert_eq!(whole.index(i), s.index(divided.guard().index(i)));
            }
            let zipped = s.zipped_divide(&tiler).unwrap().rounded_up();
            prop_assert_eq!(offsets(&zipped), offsets(&whole));
        }
    });
    counted.at_least(45);
}
