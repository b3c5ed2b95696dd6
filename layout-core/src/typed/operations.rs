//! The operations of the algebra as types. Each is one struct whose `LAYOUT` calls the function of the same name.
//!
//! Divides are exact: a tile that does not divide is a compile error, since a type has nowhere to keep the predicate. Take the
//! divide of values ([`crate::logical_divide`]) for ragged sizes.

use core::marker::PhantomData;

use super::tuple::each_arity;
use super::{C, StaticLayout, plain};
use crate::composition::Tiler;
use crate::error::expect;
use crate::int_tuple::IntTuple;
use crate::slice::Slicer;
use crate::swizzled::Swizzled;
use crate::{
    blocked_product, coalesce, complement, composition_by_mode_swizzled, downcast_swizzled, filter,
    flat_divide_swizzled, flat_product, left_inverse, logical_divide_swizzled, logical_product,
    raked_product, recast_swizzled, right_inverse, slice_swizzled, tiled_divide_swizzled,
    tiled_product, upcast_swizzled, zipped_divide_swizzled, zipped_product,
};

/// A tiler as a type: `C<N>`, a static layout, [`Keep`], or a tuple of these (one for each mode).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static tiler",
    label = "expected `C<N>`, a static layout, `Keep`, or a tuple of these"
)]
pub trait StaticTiler {
    /// The tiler as a value.
    const TILER: Tiler<'static>;
}

/// `_` as a tiler: the mode as it is.
#[derive(Clone, Copy, Debug)]
pub struct Keep;

impl StaticTiler for Keep {
    const TILER: Tiler<'static> = Tiler::Keep;
}

impl<const N: i64> StaticTiler for C<N> {
    const TILER: Tiler<'static> = Tiler::Int(N);
}

/// The layout inside a tiler needs an address.
struct Plain<L>(PhantomData<L>);

impl<L: StaticLayout> Plain<L> {
    const PLAIN: &'static crate::Layout = &plain(&L::LAYOUT, "a tiler");
}

impl<L: StaticLayout> StaticTiler for L {
    const TILER: Tiler<'static> = Tiler::Layout(Plain::<L>::PLAIN);
}

macro_rules! static_tiler {
    ($($T:ident)+) => {
        impl<$($T: StaticTiler),+> StaticTiler for ($($T,)+) {
            const TILER: Tiler<'static> = {
                const fn tiler<'a>(modes: &'a [Tiler<'a>]) -> Tiler<'a> {
                    Tiler::Modes(modes)
                }
                tiler(&[$($T::TILER),+])
            };
        }
    };
}

each_arity!(static_tiler);

/// A coordinate with holes as a type: `C<N>`, [`Open`] for `_`, or a tuple of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static coordinate",
    label = "expected `C<N>`, `Open`, or a tuple of these"
)]
pub trait StaticSlicer {
    /// The coordinate, 0 where it is open.
    const TUPLE: IntTuple;
    /// Bit `i`: leaf `i` is open.
    const OPEN: u32;
}

/// `_` in a coordinate: the mode stays.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl StaticSlicer for Open {
    const TUPLE: IntTuple = IntTuple::int(0);
    const OPEN: u32 = 1;
}

impl<const N: i64> StaticSlicer for C<N> {
    const TUPLE: IntTuple = IntTuple::int(N);
    const OPEN: u32 = 0;
}

macro_rules! static_slicer {
    ($($T:ident)+) => {
        impl<$($T: StaticSlicer),+> StaticSlicer for ($($T,)+) {
            const TUPLE: IntTuple = expect(IntTuple::tuple(&[$($T::TUPLE),+]));
            const OPEN: u32 = {
                let parts = [$(($T::TUPLE.leaves(), $T::OPEN)),+];
                let (mut open, mut at, mut i) = (0, 0, 0);
                while i < parts.len() {
                    open |= parts[i].1 << at;
                    at += parts[i].0;
                    i += 1;
                }
                open
            };
        }
    };
}

each_arity!(static_slicer);

/// Declares operations on plain layouts, `Name<A, …>` for `name(&A, …)`.
macro_rules! operations {
    ($($(#[$doc:meta])* $Name:ident[$($param:tt)*][$($phantom:ident),*][$($bound:tt)*] = $value:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $Name<$($param)*>(PhantomData<($($phantom,)*)>);
            impl<$($bound)*> StaticLayout for operations!(@name $Name $($param)*) {
                const LAYOUT: Swizzled = $value;
            }
        )*
    };
    (@name $Name:ident $A:ident) => { $Name<$A> };
    (@name $Name:ident $A:ident, $B:ident) => { $Name<$A, $B> };
    (@name $Name:ident $A:ident, const $N:ident: $t:ty) => { $Name<$A, $N> };
    (@name $Name:ident $A:ident, const $N:ident: $t:ty, const $O:ident: $u:ty) => { $Name<$A, $N, $O> };
}

operations! {
    /// [`coalesce`]: the same function with as few modes as possible.
    Coalesce[L][L][L: StaticLayout] = expect(L::LAYOUT.with_layout(coalesce(&L::LAYOUT.layout())));
    /// [`filter`]: without modes of stride 0.
    Filter[L][L][L: StaticLayout] = expect(L::LAYOUT.with_layout(filter(&L::LAYOUT.layout())));
    /// Top-level mode `I` of a plain layout.
    Mode[L, const I: usize][L][L: StaticLayout, const I: usize] =
        Swizzled::plain(expect(plain(&L::LAYOUT, "a mode").get(I)));
    /// [`complement`]: what `L` leaves out of `0..N`.
    Complement[L, const N: i64][L][L: StaticLayout, const N: i64] =
        Swizzled::plain(expect(complement(&plain(&L::LAYOUT, "complement"), N)));
    /// [`right_inverse`] of a plain layout.
    RightInverse[L][L][L: StaticLayout] =
        Swizzled::plain(expect(right_inverse(&plain(&L::LAYOUT, "right_inverse"))));
    /// [`left_inverse`] of a plain layout.
    LeftInverse[L][L][L: StaticLayout] =
        Swizzled::plain(expect(left_inverse(&plain(&L::LAYOUT, "left_inverse"))));
    /// [`composition_by_mode`](crate::composition_by_mode).
    ComposeByMode[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(composition_by_mode_swizzled(&L::LAYOUT, &T::TILER));
    /// [`logical_divide`](crate::logical_divide): `((tile0,rest0),(tile1,rest1),…)`. The tile must divide.
    LogicalDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(logical_divide_swizzled(&L::LAYOUT, &T::TILER)).exact());
    /// [`zipped_divide`](crate::zipped_divide): `((tile0,tile1,…),(rest0,rest1,…))`. The tile must divide.
    ZippedDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(zipped_divide_swizzled(&L::LAYOUT, &T::TILER)).exact());
    /// [`tiled_divide`](crate::tiled_divide): `((tile0,tile1,…),rest0,rest1,…)`. The tile must divide.
    TiledDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(tiled_divide_swizzled(&L::LAYOUT, &T::TILER)).exact());
    /// [`flat_divide`](crate::flat_divide): `(tile0,tile1,…,rest0,rest1,…)`. The tile must divide.
    FlatDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(flat_divide_swizzled(&L::LAYOUT, &T::TILER)).exact());
    /// [`logical_product`]: `L` repeated as `T` says.
    LogicalProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        Swizzled::plain(expect(logical_product(&plain(&L::LAYOUT, "logical_product"), &T::TILER)));
    /// [`zipped_product`].
    ZippedProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        Swizzled::plain(expect(zipped_product(&plain(&L::LAYOUT, "zipped_product"), &T::TILER)));
    /// [`tiled_product`].
    TiledProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        Swizzled::plain(expect(tiled_product(&plain(&L::LAYOUT, "tiled_product"), &T::TILER)));
    /// [`flat_product`].
    FlatProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        Swizzled::plain(expect(flat_product(&plain(&L::LAYOUT, "flat_product"), &T::TILER)));
    /// [`blocked_product`]: blocks of `L`, arranged by `T`.
    BlockedProduct[L, T][L, T][L: StaticLayout, T: StaticLayout] = Swizzled::plain(expect(
        blocked_product(&plain(&L::LAYOUT, "blocked_product"), &plain(&T::LAYOUT, "blocked_product"))
    ));
    /// [`raked_product`]: `L` interleaved with `T`.
    RakedProduct[L, T][L, T][L: StaticLayout, T: StaticLayout] = Swizzled::plain(expect(
        raked_product(&plain(&L::LAYOUT, "raked_product"), &plain(&T::LAYOUT, "raked_product"))
    ));
    /// [`upcast`](crate::upcast): in units of `N` elements, swizzle included.
    Upcast[L, const N: i64][L][L: StaticLayout, const N: i64] = expect(upcast_swizzled(&L::LAYOUT, N));
    /// [`downcast`](crate::downcast): in units of one `N`-th element, swizzle included.
    Downcast[L, const N: i64][L][L: StaticLayout, const N: i64] = expect(downcast_swizzled(&L::LAYOUT, N));
    /// [`recast`](crate::recast) from `OLD`-bit to `NEW`-bit elements, swizzle included.
    Recast[L, const OLD: i64, const NEW: i64][L][L: StaticLayout, const OLD: i64, const NEW: i64] =
        expect(recast_swizzled(&L::LAYOUT, OLD, NEW));
    /// [`slice_swizzled`]: some coordinates fixed, exact under a swizzle.
    Slice[L, S][L, S][L: StaticLayout, S: StaticSlicer] =
        expect(slice_swizzled(&Slicer::new(S::TUPLE, S::OPEN), &L::LAYOUT));
}

/// [`LogicalDivide`], the divide that the others rearrange.
pub type Divide<L, T> = LogicalDivide<L, T>;

/// [`LogicalProduct`], the product that the others rearrange.
pub type Product<L, T> = LogicalProduct<L, T>;
