//! Index functions without loops: one step for each leaf, each behind `if const`.
//!
//! A step takes a digit off the coordinate. For an extent that is a power of two that is an and and a shift, also of
//! negative coordinates (Euclidean, as in [`crate::Layout::index`]); strides are constants, so their products become
//! shifts. Modes are coalesced first, so that there are as few steps as possible.

use core::marker::PhantomData;

use super::{StaticLayout, check_rank};
use crate::error::expect;
use crate::layout::Layout;
use crate::profile::MAX_MODES;
use crate::swizzled::Swizzled;

/// One leaf, ready for evaluation.
#[derive(Clone, Copy)]
struct Step {
    extent: i64,
    stride: i64,
    /// The top-level mode whose coordinate this leaf takes a digit of.
    mode: u8,
    /// First leaf of that mode.
    first: bool,
    /// Last leaf of that mode: takes what is left.
    last: bool,
}

/// The leaves of a layout, and what comes before and after them.
#[derive(Clone, Copy)]
struct Steps {
    /// The offset inside the swizzle.
    offset: i64,
    /// The field that the swizzle reads; 0 without a swizzle.
    mask: i64,
    /// How far it moves down, or up.
    right: u32,
    left: u32,
    len: usize,
    step: [Step; MAX_MODES],
}

impl Steps {
    /// No leaf yet.
    const fn around(layout: &Swizzled) -> Self {
        let swizzle = layout.swizzle();
        let distance = swizzle.s().unsigned_abs();
        Self {
            offset: layout.offset(),
            mask: swizzle.source_mask(),
            right: if swizzle.s() > 0 { distance } else { 0 },
            left: if swizzle.s() < 0 { distance } else { 0 },
            len: 0,
            step: [NONE; MAX_MODES],
        }
    }

    /// Appends the leaves of one coordinate, that of mode `mode`.
    const fn push(&mut self, layout: &Layout, mode: usize) {
        let layout = reduced(layout);
        let leaves = layout.leaves();
        let mut i = 0;
        while i < leaves {
            let (extent, stride) = layout.leaf(i);
            self.step[self.len] = Step {
                extent,
                stride,
                mode: mode as u8,
                first: i == 0,
                last: i + 1 == leaves,
            };
            self.len += 1;
            i += 1;
        }
    }
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
        layout.coalesce()
    }
}

struct Unrolled<L>(PhantomData<L>);

impl<L: StaticLayout> Unrolled<L> {
    /// The steps of one linear coordinate.
    const LINEAR: Steps = {
        let mut steps = Steps::around(&L::LAYOUT);
        steps.push(&L::LAYOUT.layout(), 0);
        steps
    };

    /// The steps of one coordinate for each top-level mode.
    const BY_MODE: Steps = {
        let layout = L::LAYOUT.layout();
        let mut steps = Steps::around(&L::LAYOUT);
        let mut mode = 0;
        while mode < layout.rank() {
            steps.push(&expect(layout.get(mode)), mode);
            mode += 1;
        }
        steps
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
                        rest = coordinate[step.mode as usize];
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
    linear_few [0 1 2 3] 4
    linear_more [4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31] 32
}

steps! { BY_MODE:
    by_mode_few [0 1 2 3] 4
    by_mode_more [4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31] 32
}

#[inline(always)]
fn swizzle(steps: &Steps, offset: i64) -> i64 {
    offset ^ (((offset & steps.mask) >> steps.right) << steps.left)
}

/// The offset at linear coordinate `i`.
#[inline(always)]
pub(super) fn linear<L: StaticLayout>(i: i64) -> i64 {
    let steps = const { &Unrolled::<L>::LINEAR };
    swizzle(steps, linear_few::<L, 1>([i], steps.offset, 0))
}

/// The offset at one linear coordinate for each mode.
#[inline(always)]
pub(super) fn by_mode<L: StaticLayout, const R: usize>(coordinates: [i64; R]) -> i64 {
    const { check_rank(&L::LAYOUT.shape(), R) };
    let steps = const { &Unrolled::<L>::BY_MODE };
    swizzle(steps, by_mode_few::<L, R>(coordinates, steps.offset, 0))
}
