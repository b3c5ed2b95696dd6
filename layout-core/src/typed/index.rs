//! Index functions without loops: one step for each leaf, each behind `if const`.
//!
//! The functions are nested by number of leaves, so that a layout of two costs the compiler two. A step takes a digit off the coordinate. For an extent that is a power of two that is an and and a shift, also of
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

/// The field that a swizzle reads, and how far it is moved. The mask is 0 if there is no swizzle.
#[derive(Clone, Copy)]
struct Field {
    mask: i64,
    right: u32,
    left: u32,
}

struct Unrolled<L>(PhantomData<L>);

impl<L: StaticLayout> Unrolled<L> {
    const LINEAR: Steps = linear_steps(&L::LAYOUT.layout());
    const BY_MODE: Steps = mode_steps(&L::LAYOUT.layout());
    const FIELD: Field = {
        let swizzle = L::LAYOUT.swizzle();
        let distance = swizzle.s().unsigned_abs();
        Field {
            mask: swizzle.source_mask(),
            right: if swizzle.s() > 0 { distance } else { 0 },
            left: if swizzle.s() < 0 { distance } else { 0 },
        }
    };
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

/// Declares functions that take the steps `$k…` each and go on with the next function if there are more, so that a layout
/// of few leaves is little code even before optimisation.
macro_rules! steps {
    ($steps:ident: $name:ident [$($k:literal)*] $next:literal $($more:tt)*) => {
        #[inline(always)]
        fn $name<L: StaticLayout, const R: usize>(
            coordinate: [i64; R],
            mut sum: i64,
            mut rest: i64,
        ) -> i64 {
            // One constant, which folds into the code below: a constant for each step would cost the compiler more.
            let steps = const { &Unrolled::<L>::$steps };
            $(
                if steps.len > $k {
                    let step = &steps.step[$k];
                    if step.first {
                        rest = coordinate[step.mode];
                    }
                    let part = if step.last {
                        rest
                    } else {
                        let (part, next) = digit(rest, step.extent);
                        rest = next;
                        part
                    };
                    sum = sum.wrapping_add(part.wrapping_mul(step.stride));
                }
            )*
            steps!(@more $steps coordinate sum rest $next $($more)*)
        }
        steps!($steps: $($more)*);
    };
    ($steps:ident:) => {};
    (@more $steps:ident $coordinate:ident $sum:ident $rest:ident $next:literal $name:ident $($more:tt)*) => {
        if const { Unrolled::<L>::$steps.len > $next } {
            $name::<L, R>($coordinate, $sum, $rest)
        } else {
            $sum
        }
    };
    (@more $steps:ident $coordinate:ident $sum:ident $rest:ident $next:literal) => {{
        let _ = $rest;
        $sum
    }};
}

steps! { LINEAR:
    linear_0 [0] 1
    linear_1 [1] 2
    linear_2 [2 3] 4
    linear_4 [4 5 6 7] 8
    linear_8 [8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31] 32
}

steps! { BY_MODE:
    by_mode_0 [0] 1
    by_mode_1 [1] 2
    by_mode_2 [2 3] 4
    by_mode_4 [4 5 6 7] 8
    by_mode_8 [8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31] 32
}

#[inline(always)]
fn swizzle<L: StaticLayout>(offset: i64) -> i64 {
    let field = const { Unrolled::<L>::FIELD };
    offset ^ (((offset & field.mask) >> field.right) << field.left)
}

/// The offset at linear coordinate `i`.
#[inline(always)]
pub(super) fn linear<L: StaticLayout>(i: i64) -> i64 {
    swizzle::<L>(linear_0::<L, 1>([i], const { L::LAYOUT.offset() }, 0))
}

/// The offset at one linear coordinate for each mode.
#[inline(always)]
pub(super) fn by_mode<L: StaticLayout, const R: usize>(coordinates: [i64; R]) -> i64 {
    const { check_rank(&L::LAYOUT.shape(), R) };
    swizzle::<L>(by_mode_0::<L, R>(
        coordinates,
        const { L::LAYOUT.offset() },
        0,
    ))
}
