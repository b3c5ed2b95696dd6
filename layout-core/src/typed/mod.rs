//! Layouts as types.
//!
//! **What.** A type that implements [`StaticLayout`] *is* a layout: `Layout<(C<8>, C<64>), (C<64>, C<1>)>` is
//! `(8,64):(64,1)`, `Compose<Swizzle<3, 3, 3>, …>` its swizzled form, `LogicalDivide<L, C<4>>` its division by 4. Nothing new is
//! computed here: every type evaluates to a value of the algebra in an associated const, by the same functions that
//! run elsewhere, and an operation that refuses is a compile error with the numbers in it.
//!
//! **Why.** An index function of a static layout unrolls: extents, strides and swizzle are constants of the function, so what
//! is left is shifts, ands and xors, at every optimisation level (a plain loop over modes is a loop with divisions at
//! opt-level s). A swizzled ldmatrix address is 15 instructions or fewer, checked by a test that reads the assembly.
//!
//! ```
//! use layout_core::typed::{C, Compose, Layout, StaticLayout, Swizzle};
//! // 8 rows of 64 halves, 16-byte chunks swizzled by row. Units: elements, also of the swizzle.
//! type Rows = Layout<(C<8>, C<64>), (C<64>, C<1>)>;
//! type Tile = Compose<Swizzle<3, 3, 3>, Rows>;
//! assert_eq!(Tile::LAYOUT.to_string(), "Sw<3,3,3> o (8,64):(64,1)");
//! assert_eq!(Tile::at([5, 8]), 5 * 64 + (8 ^ (5 << 3)));
//! ```
//!
//! A swizzle type has no unit: it acts on the unit of the layout. Where units may be confused, use the maps of
//! [`crate::space`], whose swizzles name their unit.
//!
//! Constants of generic types are evaluated when the code that uses them is generated: `cargo check` does not see a failing
//! composition of types. The macro `layout!` does; so does `const _: () = check::<MyLayout>();`.

#![expect(
    clippy::inline_always,
    reason = "index functions of constants must fold at every optimisation level"
)]

mod index;
mod layout;
mod operations;
mod tuple;

pub use layout::{Compose, Layout, LeftOperand, Modes, Offset, StaticFunction, Swizzle};
pub use operations::{
    BlockedProduct, Coalesce, Complement, ComposeByMode, Divide, Downcast, Filter, FlatDivide,
    FlatProduct, Keep, LeftInverse, LogicalDivide, LogicalProduct, Mode, Open, Product,
    RakedProduct, Recast, RightInverse, Slice, StaticSlicer, StaticTiler, TiledDivide,
    TiledProduct, Upcast, ZippedDivide, ZippedProduct,
};
pub use tuple::{C, StaticTuple};

use crate::int_tuple::IntTuple;
use crate::message::{Message, fail};
use crate::swizzled::Swizzled;

/// A layout known to the compiler: `const LAYOUT` and index functions without loops or branches.
///
/// ```
/// use layout_core::typed::{C, Layout, StaticLayout};
/// type Tile = Layout<(C<4>, C<8>), (C<8>, C<1>)>;
/// const ELEMENTS: i64 = Tile::SIZE;
/// assert_eq!((ELEMENTS, Tile::RANK, Tile::index(5)), (32, 2, 9));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static layout",
    label = "expected a static layout",
    note = "write a layout as a type: `typed::Layout<(C<8>, C<64>), (C<64>, C<1>)>`, or `Compose<Outer, Inner>`"
)]
pub trait StaticLayout {
    /// The layout as a value: `Sw o offset o L`, the swizzle being `Sw<0,0,0>` for a plain one.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<C<4>, C<2>>::LAYOUT.to_string(), "4:2");
    /// ```
    const LAYOUT: Swizzled;

    /// Number of coordinates.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<C<4>, C<2>>::SIZE, 4);
    /// ```
    const SIZE: i64 = Self::LAYOUT.size();

    /// Elements of memory that the layout needs: the greatest offset plus 1.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<C<4>, C<2>>::COSIZE, 7);
    /// ```
    const COSIZE: i64 = Self::LAYOUT.cosize();

    /// Number of top-level modes.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<(C<4>, (C<2>, C<2>)), (C<1>, (C<4>, C<8>))>::RANK, 2);
    /// ```
    const RANK: usize = Self::LAYOUT.rank();

    /// The offset at linear coordinate `i`, unrolled. The same as `LAYOUT.index(i)` for every `i`.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<(C<4>, C<8>), (C<8>, C<1>)>::index(5), 9);
    /// ```
    #[inline(always)]
    #[must_use]
    fn index(i: i64) -> i64
    where
        Self: Sized,
    {
        index::linear::<Self>(i)
    }

    /// The offset at one linear coordinate for each top-level mode, unrolled. The same as `LAYOUT.at(&coordinates)`; a wrong
    /// number of coordinates does not compile.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// assert_eq!(Layout::<(C<4>, C<8>), (C<8>, C<1>)>::at([1, 2]), 10);
    /// ```
    #[inline(always)]
    #[must_use]
    fn at<const R: usize>(coordinates: [i64; R]) -> i64
    where
        Self: Sized,
    {
        index::by_mode::<Self, R>(coordinates)
    }
}

/// Forces the evaluation of a static layout: `const _: () = check::<MyLayout>();` makes `cargo check` report what does not
/// compose.
///
/// ```
/// use layout_core::typed::{C, Layout, LogicalDivide, check};
/// const _: () = check::<LogicalDivide<Layout<C<32>, C<1>>, C<4>>>();
/// ```
///
/// ```compile_fail
/// # use layout_core::typed::{C, Layout, LogicalDivide, check};
/// // 5 does not divide 32.
/// const _: () = check::<LogicalDivide<Layout<C<32>, C<1>>, C<5>>>();
/// ```
pub const fn check<L: StaticLayout>() {
    let _ = L::LAYOUT;
}

/// The layout of `value` alone, or a compile error that says which operation needs it plain.
#[track_caller]
const fn plain(value: &Swizzled, operation: &str) -> crate::Layout {
    let Some(layout) = value.as_plain() else {
        let swizzle = value.swizzle();
        fail(
            &Message::new()
                .text(operation)
                .text(" needs a plain layout, and this one is Sw<")
                .int(swizzle.b() as i64)
                .text(",")
                .int(swizzle.m() as i64)
                .text(",")
                .int(swizzle.s() as i64)
                .text("> o ")
                .int(value.offset())
                .text(" o L; apply the operation to L and compose the swizzle afterwards"),
        )
    };
    layout
}

/// The number of coordinates must be the rank.
#[track_caller]
const fn check_rank(shape: &IntTuple, found: usize) {
    if shape.rank() != found {
        fail(
            &Message::new()
                .text("the layout has ")
                .index(shape.rank())
                .text(" modes and the coordinate has ")
                .index(found)
                .text("; give one coordinate a mode, or one for all to `index`"),
        );
    }
}
