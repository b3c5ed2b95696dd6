//! Proptest strategies for layouts: nested, extents with any factors and of 1, strides of either sign and 0.
//!
//! Sizes stay small enough to enumerate (at most [`MAX_SIZE`] elements), so that a property may look at every coordinate.

use proptest::prelude::*;

use crate::{IntTuple, Layout, Swizzle, Swizzled};

/// Elements of a layout that a strategy makes, at most.
pub const MAX_SIZE: i64 = 3000;

/// What stands in for a layout that does not fit, which the bounds below rule out.
fn or_unit(layout: Result<Layout, crate::LayoutError>) -> Layout {
    layout.unwrap_or(Layout::UNIT)
}

/// Any nested layout: extents 1 to 7, strides of either sign and 0, depth up to 3.
pub fn layouts() -> impl Strategy<Value = Layout> + Clone {
    let stride = prop_oneof![
        Just(0i64),
        -9i64..40,
        1i64..9,
        (0u32..7).prop_map(|bit| 1 << bit)
    ];
    let leaf =
        (1i64..=7, stride).prop_map(|(extent, stride)| or_unit(Layout::mode(extent, stride)));
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop::collection::vec(inner, 1..=3).prop_map(|modes| or_unit(Layout::tuple(&modes)))
    })
    .prop_filter("small enough to enumerate", |layout| {
        layout.size() <= MAX_SIZE
    })
    .boxed()
}

/// Nested layouts that are bijections onto `0..size`: compact, the modes in random order.
pub fn bijective_layouts() -> impl Strategy<Value = Layout> + Clone {
    injective(1)
}

/// Nested injective layouts, with gaps of up to `gap − 1` between the modes.
pub fn injective_layouts() -> impl Strategy<Value = Layout> + Clone {
    injective(4)
}

fn injective(gap: i64) -> impl Strategy<Value = Layout> + Clone {
    layouts()
        .prop_flat_map(move |layout| {
            let leaves = layout.leaves();
            (
                Just(layout.shape()),
                Just((0..leaves).collect::<Vec<usize>>()).prop_shuffle(),
                prop::collection::vec(1..=gap, leaves),
            )
        })
        .prop_map(|(shape, order, gaps)| {
            let mut strides = vec![0; shape.leaves()];
            let mut running = 1;
            for leaf in order {
                if shape.leaf(leaf) > 1 {
                    running *= gaps[leaf];
                    strides[leaf] = running;
                    running *= shape.leaf(leaf);
                }
            }
            or_unit(Layout::new(shape, with_values(&shape, &strides)))
        })
        .boxed()
}

/// Nested shapes of positive extents.
pub fn shapes() -> impl Strategy<Value = IntTuple> + Clone {
    layouts().prop_map(|layout| layout.shape())
}

/// Swizzles of the low ten bits, of either direction; source and target may overlap.
pub fn swizzles() -> impl Strategy<Value = Swizzle> + Clone {
    (0u32..=3, 0u32..=3, prop_oneof![-4i32..=-1, 1i32..=4])
        .prop_map(|(b, m, s)| Swizzle::new(b, m, s).unwrap_or(Swizzle::IDENTITY))
}

/// Composed layouts `Sw o offset o L`; offsets may be negative.
pub fn swizzled_layouts() -> impl Strategy<Value = Swizzled> + Clone {
    (swizzles(), -20i64..100, layouts()).prop_map(|(swizzle, offset, layout)| {
        Swizzled::new(swizzle, offset, layout).unwrap_or(Swizzled::plain(layout))
    })
}

/// The tuple with the parentheses of `shape` and other integers.
fn with_values(shape: &IntTuple, values: &[i64]) -> IntTuple {
    fn build(shape: &IntTuple, values: &mut std::slice::Iter<'_, i64>) -> IntTuple {
        if shape.is_int() {
            return IntTuple::int(values.next().copied().unwrap_or(0));
        }
        let parts: Vec<IntTuple> = (0..shape.rank())
            .filter_map(|i| shape.get(i).ok())
            .map(|part| build(&part, values))
            .collect();
        IntTuple::tuple(&parts).unwrap_or(IntTuple::int(0))
    }
    build(shape, &mut values.iter())
}
