//! The operations of the algebra as types. Each is one struct whose `LAYOUT` calls the function of the same name.
//!
//! Divides are exact: a tile that does not divide is a compile error, since a type cannot carry the predicate. Take the
//! divide of values ([`crate::Layout::logical_divide`]) for ragged sizes.

use core::marker::PhantomData;

use super::tuple::each_arity;
use super::{C, StaticLayout, plain};
use crate::composition::Tiler;
use crate::error::expect;
use crate::int_tuple::IntTuple;
use crate::slice::Slicer;
use crate::swizzled::Swizzled;

/// A tiler as a type: `C<N>`, a static layout, [`Keep`], or a tuple of these (one for each mode).
///
/// ```
/// use layout_core::typed::{C, Keep, Layout, LogicalDivide, StaticLayout, StaticTiler};
/// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
/// fn divided<T: StaticTiler>() -> String {
///     LogicalDivide::<Matrix, T>::LAYOUT.to_string()
/// }
/// assert_eq!(divided::<(C<4>, C<3>)>(), "((4,2),(3,2)):((1,4),(8,24))");
/// assert_eq!(divided::<(C<4>, Keep)>(), "((4,2),6):((1,4),8)");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static tiler",
    label = "expected `C<N>`, a static layout, `Keep`, or a tuple of these"
)]
pub trait StaticTiler {
    /// The tiler as a value.
    ///
    /// ```
    /// use layout_core::{Tiler, typed::{C, StaticTiler}};
    /// assert_eq!(C::<4>::TILER, Tiler::Int(4));
    /// ```
    const TILER: Tiler<'static>;
}

/// `_` as a tiler: the mode as it is.
///
/// ```
/// use layout_core::typed::{C, ComposeByMode, Keep, Layout, StaticLayout};
/// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
/// assert_eq!(ComposeByMode::<Matrix, (Keep, C<3>)>::LAYOUT.to_string(), "(8,3):(1,8)");
/// ```
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
///
/// ```
/// use layout_core::typed::{C, Open, StaticSlicer};
/// assert_eq!(<(C<3>, Open)>::OPEN, 0b10);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static coordinate",
    label = "expected `C<N>`, `Open`, or a tuple of these"
)]
pub trait StaticSlicer {
    /// The coordinate, 0 where it is open.
    ///
    /// ```
    /// use layout_core::typed::{C, Open, StaticSlicer};
    /// assert_eq!(<(C<3>, Open) as StaticSlicer>::TUPLE.to_string(), "(3,0)");
    /// ```
    const TUPLE: IntTuple;
    /// Bit `i`: leaf `i` is open.
    ///
    /// ```
    /// use layout_core::typed::{C, Open, StaticSlicer};
    /// assert_eq!(<(Open, (C<3>, Open))>::OPEN, 0b101);
    /// ```
    const OPEN: u32;
}

/// `_` in a coordinate: the mode stays.
///
/// ```
/// use layout_core::typed::{C, Layout, Open, Slice, StaticLayout};
/// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
/// assert_eq!(Slice::<Matrix, (C<3>, Open)>::LAYOUT.to_string(), "3 o (6):(8)");
/// ```
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
    /// [`coalesce`](crate::Layout::coalesce): the same function with as few modes as possible.
    ///
    /// ```
    /// use layout_core::typed::{C, Coalesce, Layout, StaticLayout};
    /// assert_eq!(Coalesce::<Layout<(C<4>, C<8>), (C<1>, C<4>)>>::LAYOUT.to_string(), "32:1");
    /// ```
    Coalesce[L][L][L: StaticLayout] = L::LAYOUT.coalesce();
    /// [`filter`](crate::Layout::filter): without modes of stride 0.
    ///
    /// ```
    /// use layout_core::typed::{C, Filter, Layout, StaticLayout};
    /// assert_eq!(Filter::<Layout<(C<4>, C<8>), (C<0>, C<1>)>>::LAYOUT.to_string(), "8:1");
    /// ```
    Filter[L][L][L: StaticLayout] = L::LAYOUT.filter();
    /// Top-level mode `I`.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, Mode, StaticLayout};
    /// assert_eq!(Mode::<Layout<(C<4>, C<8>), (C<8>, C<1>)>, 1>::LAYOUT.to_string(), "8:1");
    /// ```
    Mode[L, const I: usize][L][L: StaticLayout, const I: usize] = expect(L::LAYOUT.get(I));
    /// [`complement`](crate::Layout::complement): the offsets of `0..N` that `L` leaves out.
    ///
    /// ```
    /// use layout_core::typed::{C, Complement, Layout, StaticLayout};
    /// assert_eq!(Complement::<Layout<C<4>, C<2>>, 16>::LAYOUT.to_string(), "(2,2):(1,8)");
    /// ```
    Complement[L, const N: i64][L][L: StaticLayout, const N: i64] = expect(L::LAYOUT.complement(N));
    /// [`right_inverse`](crate::Layout::right_inverse) of a plain layout.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, RightInverse, StaticLayout};
    /// type Rows = Layout<(C<4>, C<8>), (C<8>, C<1>)>;
    /// assert_eq!(RightInverse::<Rows>::LAYOUT.to_string(), "(8,4):(4,1)");
    /// ```
    RightInverse[L][L][L: StaticLayout] =
        Swizzled::plain(expect(plain(&L::LAYOUT, "right_inverse").right_inverse()));
    /// [`left_inverse`](crate::Layout::left_inverse) of a plain layout.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, LeftInverse, StaticLayout};
    /// type Rows = Layout<(C<4>, C<8>), (C<8>, C<1>)>;
    /// assert_eq!(LeftInverse::<Rows>::index(Rows::index(13)), 13);
    /// ```
    LeftInverse[L][L][L: StaticLayout] =
        Swizzled::plain(expect(plain(&L::LAYOUT, "left_inverse").left_inverse()));
    /// [`compose_by_mode`](crate::Layout::compose_by_mode).
    ///
    /// ```
    /// use layout_core::typed::{C, ComposeByMode, Layout, StaticLayout};
    /// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
    /// assert_eq!(ComposeByMode::<Matrix, (Layout<C<4>, C<2>>, C<3>)>::LAYOUT.to_string(), "(4,3):(2,8)");
    /// ```
    ComposeByMode[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(L::LAYOUT.compose_by_mode(&T::TILER));
    /// [`logical_divide`](crate::Layout::logical_divide): `((tile0,rest0),(tile1,rest1),…)`. The tile must divide.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, LogicalDivide, StaticLayout};
    /// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
    /// assert_eq!(LogicalDivide::<Matrix, (C<4>, C<3>)>::LAYOUT.to_string(), "((4,2),(3,2)):((1,4),(8,24))");
    /// ```
    LogicalDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(L::LAYOUT.logical_divide(&T::TILER)).exact());
    /// [`zipped_divide`](crate::Layout::zipped_divide): `((tile0,tile1,…),(rest0,rest1,…))`. The tile must divide.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout, ZippedDivide};
    /// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
    /// assert_eq!(ZippedDivide::<Matrix, (C<4>, C<3>)>::LAYOUT.to_string(), "((4,3),(2,2)):((1,8),(4,24))");
    /// ```
    ZippedDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(L::LAYOUT.zipped_divide(&T::TILER)).exact());
    /// [`tiled_divide`](crate::Layout::tiled_divide): `((tile0,tile1,…),rest0,rest1,…)`. The tile must divide.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout, TiledDivide};
    /// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
    /// assert_eq!(TiledDivide::<Matrix, (C<4>, C<3>)>::LAYOUT.to_string(), "((4,3),2,2):((1,8),4,24)");
    /// ```
    TiledDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(L::LAYOUT.tiled_divide(&T::TILER)).exact());
    /// [`flat_divide`](crate::Layout::flat_divide): `(tile0,tile1,…,rest0,rest1,…)`. The tile must divide.
    ///
    /// ```
    /// use layout_core::typed::{C, FlatDivide, Layout, StaticLayout};
    /// type Matrix = Layout<(C<8>, C<6>), (C<1>, C<8>)>;
    /// assert_eq!(FlatDivide::<Matrix, (C<4>, C<3>)>::LAYOUT.to_string(), "(4,3,2,2):(1,8,4,24)");
    /// ```
    FlatDivide[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(expect(L::LAYOUT.flat_divide(&T::TILER)).exact());
    /// [`logical_product`](crate::Layout::logical_product): `L` repeated as `T` says.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, LogicalProduct, StaticLayout};
    /// type Row = Layout<C<4>, C<1>>;
    /// assert_eq!(LogicalProduct::<Row, Layout<C<3>, C<1>>>::LAYOUT.to_string(), "(4,3):(1,4)");
    /// ```
    LogicalProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(L::LAYOUT.logical_product(&T::TILER));
    /// [`zipped_product`](crate::Layout::zipped_product).
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout, ZippedProduct};
    /// type Block = Layout<(C<2>, C<4>), (C<1>, C<2>)>;
    /// type Grid = Layout<(C<3>, C<5>), (C<1>, C<3>)>;
    /// assert_eq!(ZippedProduct::<Block, Grid>::LAYOUT.to_string(), "((2,4),(3,5)):((1,2),(8,24))");
    /// ```
    ZippedProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(L::LAYOUT.zipped_product(&T::TILER));
    /// [`tiled_product`](crate::Layout::tiled_product).
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout, TiledProduct};
    /// type Block = Layout<(C<2>, C<4>), (C<1>, C<2>)>;
    /// type Grid = Layout<(C<3>, C<5>), (C<1>, C<3>)>;
    /// assert_eq!(TiledProduct::<Block, Grid>::LAYOUT.to_string(), "((2,4),3,5):((1,2),8,24)");
    /// ```
    TiledProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(L::LAYOUT.tiled_product(&T::TILER));
    /// [`flat_product`](crate::Layout::flat_product).
    ///
    /// ```
    /// use layout_core::typed::{C, FlatProduct, Layout, StaticLayout};
    /// type Block = Layout<(C<2>, C<4>), (C<1>, C<2>)>;
    /// type Grid = Layout<(C<3>, C<5>), (C<1>, C<3>)>;
    /// assert_eq!(FlatProduct::<Block, Grid>::LAYOUT.to_string(), "(2,4,3,5):(1,2,8,24)");
    /// ```
    FlatProduct[L, T][L, T][L: StaticLayout, T: StaticTiler] =
        expect(L::LAYOUT.flat_product(&T::TILER));
    /// [`blocked_product`](crate::Layout::blocked_product): blocks of `L`, arranged by `T`.
    ///
    /// ```
    /// use layout_core::typed::{BlockedProduct, C, Layout, StaticLayout};
    /// type Block = Layout<(C<2>, C<2>), (C<1>, C<2>)>;
    /// type Grid = Layout<(C<3>, C<4>), (C<1>, C<3>)>;
    /// assert_eq!(BlockedProduct::<Block, Grid>::LAYOUT.to_string(), "((2,3),(2,4)):((1,4),(2,12))");
    /// ```
    BlockedProduct[L, T][L, T][L: StaticLayout, T: StaticLayout] =
        expect(L::LAYOUT.blocked_product(&plain(&T::LAYOUT, "blocked_product")));
    /// [`raked_product`](crate::Layout::raked_product): `L` interleaved with `T`.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, RakedProduct, StaticLayout};
    /// type Block = Layout<(C<2>, C<2>), (C<1>, C<2>)>;
    /// type Grid = Layout<(C<3>, C<4>), (C<1>, C<3>)>;
    /// assert_eq!(RakedProduct::<Block, Grid>::LAYOUT.to_string(), "((3,2),(4,2)):((4,1),(12,2))");
    /// ```
    RakedProduct[L, T][L, T][L: StaticLayout, T: StaticLayout] =
        expect(L::LAYOUT.raked_product(&plain(&T::LAYOUT, "raked_product")));
    /// [`upcast`](crate::Swizzled::upcast): in units of `N` elements, swizzle included.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, StaticLayout, Upcast};
    /// assert_eq!(Upcast::<Layout<(C<8>, C<4>), (C<1>, C<8>)>, 4>::LAYOUT.to_string(), "(2,4):(1,2)");
    /// ```
    Upcast[L, const N: i64][L][L: StaticLayout, const N: i64] = expect(L::LAYOUT.upcast(N));
    /// [`downcast`](crate::Swizzled::downcast): in units of one `N`-th element, swizzle included.
    ///
    /// ```
    /// use layout_core::typed::{C, Downcast, Layout, StaticLayout};
    /// assert_eq!(Downcast::<Layout<(C<2>, C<4>), (C<1>, C<2>)>, 4>::LAYOUT.to_string(), "(8,4):(1,8)");
    /// ```
    Downcast[L, const N: i64][L][L: StaticLayout, const N: i64] = expect(L::LAYOUT.downcast(N));
    /// [`recast`](crate::Swizzled::recast) from `OLD`-bit to `NEW`-bit elements, swizzle included.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, Recast, StaticLayout};
    /// assert_eq!(Recast::<Layout<(C<8>, C<4>), (C<1>, C<8>)>, 16, 32>::LAYOUT.to_string(), "(4,4):(1,4)");
    /// ```
    Recast[L, const OLD: i64, const NEW: i64][L][L: StaticLayout, const OLD: i64, const NEW: i64] =
        expect(L::LAYOUT.recast(OLD, NEW));
    /// [`slice`](crate::Swizzled::slice): some coordinates fixed, exact under a swizzle.
    ///
    /// ```
    /// use layout_core::typed::{C, Layout, Open, Slice, StaticLayout};
    /// type Rows = Layout<(C<8>, C<6>), (C<6>, C<1>)>;
    /// assert_eq!(Slice::<Rows, (C<3>, Open)>::LAYOUT.to_string(), "18 o (6):(1)");
    /// ```
    Slice[L, S][L, S][L: StaticLayout, S: StaticSlicer] =
        expect(L::LAYOUT.slice(&Slicer::new(S::TUPLE, S::OPEN)));
}

/// [`LogicalDivide`], the divide that the others rearrange.
///
/// ```
/// use layout_core::typed::{C, Divide, Layout, StaticLayout};
/// assert_eq!(Divide::<Layout<C<32>, C<1>>, C<4>>::LAYOUT.to_string(), "(4,8):(1,4)");
/// ```
pub type Divide<L, T> = LogicalDivide<L, T>;

/// [`LogicalProduct`], the product that the others rearrange.
///
/// ```
/// use layout_core::typed::{C, Layout, Product, StaticLayout};
/// assert_eq!(Product::<Layout<C<4>, C<1>>, Layout<C<3>, C<1>>>::LAYOUT.to_string(), "(4,3):(1,4)");
/// ```
pub type Product<L, T> = LogicalProduct<L, T>;
