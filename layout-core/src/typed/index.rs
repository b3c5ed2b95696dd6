//! Index functions without loops: one step for each leaf, each behind `if const`.
//!
//! A step takes a digit off the coordinate. For an extent that is a power of two that is an and and a shift, also of
//! negative coordinates (Euclidean, as in [`crate::Layout::index`]); strides are constants, so their products become
//! shifts. Modes are coalesced first, so that there are as few steps as possible.

use core::marker::PhantomData;

use super::{StaticLayout, check_rank};
use crate::coalesce::coalesce;
use crate::layout::Layout;
use crate::profile::MAX_MODES;

/// One leaf, ready for evaluation.
#[derive(Clone, Copy)]
struct Step {
    extent: i64,
    stride: i64,
    /// The top-level mode whose coordinate this leaf takes a digit of.
    mode: usize,
    /// First leaf of that mode.
    first: bool,
    /// Last leaf of that mode: takes what is left.
    last: bool,
}

/// The leaves of a layout.
#[derive(Clone, Copy)]
struct Steps {
    len: usize,
    step: [Step; MAX_MODES],
}

const NONE: Step = Step {
    extent: 1,
    stride: 0,
    mode: 0,
    first: false,
    last: false,
};

/// Coalesced, unless a trailing extent of 1 says how the layout goes on beyond its size.
const fn reduced(layout: &Layout) -> Layout {
    let (extent, _) = layout.leaf(layout.leaves() - 1);
    if extent == 1 {
        *layout
    } else {
        coalesce(layout)
    }
}

/// The steps of one linear coordinate.
const fn linear_steps(layout: &Layout) -> Steps {
    let layout = reduced(layout);
    let mut steps = Steps {
        len: layout.leaves(),
        step: [NONE; MAX_MODES],
    };
    let mut i = 0;
    while i < steps.len {
        let (extent, stride) = layout.leaf(i);
        steps.step[i] = Step {
            extent,
            stride,
            mode: 0,
            first: i == 0,
            last: i + 1 == steps.len,
        };
        i += 1;
    }
    steps
}

/// The steps of one coordinate for each top-level mode.
const fn mode_steps(layout: &Layout) -> Steps {
    let mut steps = Steps {
        len: 0,
        step: [NONE; MAX_MODES],
    };
    let mut mode = 0;
    while mode < layout.rank() {
        if let Ok(part) = layout.get(mode) {
            let inner = linear_steps(&part);
            let mut i = 0;
            while i < inner.len {
                steps.step[steps.len] = inner.step[i];
                steps.step[steps.len].mode = mode;
                steps.len += 1;
                i += 1;
            }
        }
        mode += 1;
    }
    steps
}

struct Unrolled<L>(PhantomData<L>);

impl<L: StaticLayout> Unrolled<L> {
    const LINEAR: Steps = linear_steps(&L::LAYOUT.layout());
    const BY_MODE: Steps = mode_steps(&L::LAYOUT.layout());
}

/// Digit and rest of a Euclidean division by a constant.
#[inline(always)]
fn digit(rest: i64, extent: i64) -> (i64, i64) {
    if extent & (extent - 1) == 0 {
        (rest & (extent - 1), rest >> extent.trailing_zeros())
    } else {
        (rest.rem_euclid(extent), rest.div_euclid(extent))
    }
}

/// The steps `$k…` of `$steps`, each only if the layout has it.
macro_rules! unroll {
    ($L:ident, $steps:ident, $coordinate:ident, $sum:ident, $rest:ident: $($k:literal)*) => {
        $(
            if const { Unrolled::<$L>::$steps.len > $k } {
                if const { Unrolled::<$L>::$steps.step[$k].first } {
                    $rest = $coordinate[const { Unrolled::<$L>::$steps.step[$k].mode }];
                }
                let part = if const { Unrolled::<$L>::$steps.step[$k].last } {
                    $rest
                } else {
                    let (part, next) = digit($rest, const { Unrolled::<$L>::$steps.step[$k].extent });
                    $rest = next;
                    part
                };
                $sum = $sum.wrapping_add(part.wrapping_mul(const { Unrolled::<$L>::$steps.step[$k].stride }));
            }
        )*
    };
}

/// Declares an evaluation: eight leaves inline, the others behind one test each of eight.
macro_rules! evaluation {
    ($name:ident, $more:ident, $steps:ident) => {
        #[inline(always)]
        fn $name<L: StaticLayout, const R: usize>(coordinate: [i64; R]) -> i64 {
            let mut sum = const { L::LAYOUT.offset() };
            let mut rest = 0;
            unroll!(L, $steps, coordinate, sum, rest: 0 1 2 3 4 5 6 7);
            if const { Unrolled::<L>::$steps.len > 8 } {
                sum = $more::<L, R>(coordinate, sum, rest);
            }
            swizzle::<L>(sum)
        }

        #[inline(always)]
        fn $more<L: StaticLayout, const R: usize>(
            coordinate: [i64; R],
            sum: i64,
            rest: i64,
        ) -> i64 {
            let (mut sum, mut rest) = (sum, rest);
            unroll!(L, $steps, coordinate, sum, rest:
                8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
            let _ = rest;
            sum
        }
    };
}

evaluation!(evaluate_linear, more_linear, LINEAR);
evaluation!(evaluate_by_mode, more_by_mode, BY_MODE);

#[inline(always)]
fn swizzle<L: StaticLayout>(offset: i64) -> i64 {
    if const { L::LAYOUT.swizzle().is_identity() } {
        offset
    } else {
        let field = offset & const { L::LAYOUT.swizzle().source_mask() };
        let moved = if const { L::LAYOUT.swizzle().s() >= 0 } {
            field >> const { L::LAYOUT.swizzle().s().unsigned_abs() }
        } else {
            field << const { L::LAYOUT.swizzle().s().unsigned_abs() }
        };
        offset ^ moved
    }
}

/// The offset at linear coordinate `i`.
#[inline(always)]
pub(super) fn linear<L: StaticLayout>(i: i64) -> i64 {
    evaluate_linear::<L, 1>([i])
}

/// The offset at one linear coordinate for each mode.
#[inline(always)]
pub(super) fn by_mode<L: StaticLayout, const R: usize>(coordinates: [i64; R]) -> i64 {
    const { check_rank(&L::LAYOUT.shape(), R) };
    evaluate_by_mode::<L, R>(coordinates)
}
