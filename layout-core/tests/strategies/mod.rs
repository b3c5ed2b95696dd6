//! Layouts to try laws on: nested, extents with any factors and of 1, strides of either sign and 0.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part"
)]

use layout_core::{IntTuple, Layout, Swizzle, Swizzled};
use proptest::prelude::*;

/// Any nested layout of up to some thousand elements.
pub fn layouts() -> impl Strategy<Value = Layout> {
    let stride = prop_oneof![
        Just(0i64),
        -9i64..40,
        1i64..9,
        (0u32..7).prop_map(|b| 1 << b)
    ];
    let leaf = (1i64..=7, stride).prop_map(|(n, d)| Layout::mode(n, d).unwrap());
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop::collection::vec(inner, 1..=3).prop_map(|modes| Layout::tuple(&modes).unwrap())
    })
    .prop_filter("small enough to enumerate", |l| {
        l.size() <= 3_000 && l.leaves() <= 9
    })
}

/// Any nested layout with strides of at least 0.
pub fn upward() -> impl Strategy<Value = Layout> {
    layouts().prop_map(|l| {
        let stride: Vec<i64> = (0..l.leaves()).map(|i| l.leaf(i).1.abs()).collect();
        Layout::new(l.shape(), with_values(&l.shape(), &stride)).unwrap()
    })
}

/// A nested injective layout: compact in a random order, with gaps.
pub fn chained() -> impl Strategy<Value = Layout> {
    spread(layouts())
}

/// As [`chained`], with two modes.
pub fn chained_pair() -> impl Strategy<Value = Layout> {
    let pair = (layouts(), layouts()).prop_map(|(a, b)| Layout::tuple(&[a, b]).unwrap());
    spread(pair.prop_filter("small enough to enumerate", |l| l.size() <= 3_000))
}

fn spread(layouts: impl Strategy<Value = Layout>) -> impl Strategy<Value = Layout> {
    (layouts, any::<u64>()).prop_map(|(l, seed)| {
        let mut order: Vec<usize> = (0..l.leaves()).collect();
        let mut state = seed;
        let mut next = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for i in (1..order.len()).rev() {
            order.swap(i, next(i as u64 + 1) as usize);
        }
        let mut stride = vec![0; l.leaves()];
        let mut running = 1;
        for i in order {
            if l.leaf(i).0 == 1 {
                continue;
            }
            running *= if next(4) == 0 { 1 + next(3) as i64 } else { 1 };
            stride[i] = running;
            running *= l.leaf(i).0;
        }
        Layout::new(l.shape(), with_values(&l.shape(), &stride)).unwrap()
    })
}

/// A nested shape.
pub fn shapes() -> impl Strategy<Value = IntTuple> {
    layouts().prop_map(|l| l.shape())
}

/// The tuple with the parentheses of `shape` and the given integers.
pub fn with_values(shape: &IntTuple, values: &[i64]) -> IntTuple {
    fn build(shape: &IntTuple, values: &mut std::slice::Iter<'_, i64>) -> IntTuple {
        if shape.is_int() {
            return IntTuple::int(*values.next().unwrap());
        }
        let parts: Vec<IntTuple> = (0..shape.rank())
            .map(|i| build(&shape.get(i).unwrap(), values))
            .collect();
        IntTuple::tuple(&parts).unwrap()
    }
    build(shape, &mut values.iter())
}

/// Any swizzle on the low ten bits, of either direction, overlapping or not.
pub fn swizzles() -> impl Strategy<Value = Swizzle> {
    (0u32..=3, 0u32..=3, prop_oneof![-4i32..=-1, 1i32..=4])
        .prop_map(|(b, m, s)| Swizzle::new(b, m, s).unwrap())
}

/// Any composed layout.
pub fn swizzled() -> impl Strategy<Value = Swizzled> {
    (swizzles(), -20i64..100, layouts()).prop_map(|(s, o, l)| Swizzled::new(s, o, l).unwrap())
}

/// A layout that often composes on the right with one of the given size: small offsets, divisors of the size.
pub fn right_hand(size: i64) -> impl Strategy<Value = Layout> {
    let divisors: Vec<i64> = (1..=size).filter(|d| size % d == 0).collect();
    let leaf = (
        prop::sample::select(divisors.clone()),
        prop::sample::select(divisors),
        0i64..=2,
    )
        .prop_map(|(n, d, wild)| {
            Layout::mode(n.min(64), if wild == 0 { n % 7 } else { d }).unwrap()
        });
    prop_oneof![
        leaf.clone(),
        (leaf.clone(), leaf).prop_map(|(a, b)| Layout::tuple(&[a, b]).unwrap())
    ]
    .prop_filter("small enough to enumerate", |l| l.size() <= 3_000)
}

/// All offsets in order of the linear coordinate.
pub fn table(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.index(i)).collect()
}

/// The distinct offsets, sorted.
pub fn image(layout: &Layout) -> Vec<i64> {
    let mut offsets = table(layout);
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// Counts how often an operation answered, so that a law about its answers cannot pass by refusing.
pub(crate) struct Floor {
    asked: core::cell::Cell<u32>,
    answered: core::cell::Cell<u32>,
}

impl Floor {
    pub(crate) const fn new() -> Self {
        Self {
            asked: core::cell::Cell::new(0),
            answered: core::cell::Cell::new(0),
        }
    }

    /// The result, counted.
    pub(crate) fn count<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        self.asked.set(self.asked.get() + 1);
        self.answered
            .set(self.answered.get() + u32::from(result.is_ok()));
        result
    }

    /// Fails unless at least `percent` of the questions were answered.
    #[track_caller]
    pub(crate) fn at_least(&self, percent: u32) {
        let (asked, answered) = (self.asked.get(), self.answered.get());
        assert!(
            asked > 0 && answered * 100 >= asked * percent,
            "{answered} of {asked} answered, fewer than {percent} %"
        );
    }
}
