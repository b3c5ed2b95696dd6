//! Maps between spaces as types.

use core::marker::PhantomData;

use super::{At, Map, Meets, Space};
use crate::typed::{Compose, StaticFunction, StaticLayout, Swizzle};

/// A map known to the compiler: spaces and function are types.
///
/// ```
/// use layout_core::space::{At, Byte, Lane, Static, StaticMap};
/// use layout_core::typed::{C, Layout};
/// type Rows = Static<Lane, Byte, Layout<C<32>, C<128>>>;
/// assert_eq!(Rows::apply(At::new(3)), At::<Byte>::new(384));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static map",
    label = "expected `space::Static<From, To, Layout>`, `Then<…>` or `SwizzleOf<…>`"
)]
pub trait StaticMap {
    /// The domain of the map.
    ///
    /// ```
    /// use layout_core::space::{Byte, Lane, Space, Static, StaticMap};
    /// use layout_core::typed::{C, Layout};
    /// type Words = Static<Lane, Byte, Layout<C<32>, C<4>>>;
    /// assert_eq!(<Words as StaticMap>::From::NAME, "lane");
    /// ```
    type From: Space;
    /// The codomain of the map.
    ///
    /// ```
    /// use layout_core::space::{Byte, Lane, Space, Static, StaticMap};
    /// use layout_core::typed::{C, Layout};
    /// type Words = Static<Lane, Byte, Layout<C<32>, C<4>>>;
    /// assert_eq!(<Words as StaticMap>::To::NAME, "byte");
    /// ```
    type To: Space;
    /// The layout or swizzle of the map.
    ///
    /// ```
    /// use layout_core::space::{Byte, Lane, Static, StaticMap};
    /// use layout_core::typed::{C, Layout, StaticLayout};
    /// type Words = Static<Lane, Byte, Layout<C<32>, C<4>>>;
    /// assert_eq!(<Words as StaticMap>::Function::SIZE, 32);
    /// ```
    type Function: StaticFunction;

    /// The map as a value; only for layouts, not for a swizzle alone.
    ///
    /// ```
    /// use layout_core::space::{Byte, Lane, Static, StaticMap};
    /// use layout_core::typed::{C, Layout};
    /// type Rows = Static<Lane, Byte, Layout<C<32>, C<128>>>;
    /// assert_eq!(format!("{:?}", Rows::map()), "lane -> byte: 32:128");
    /// ```
    #[must_use]
    fn map() -> Map<Self::From, Self::To>
    where
        Self::Function: StaticLayout,
    {
        Map::new(const { <Self::Function as StaticLayout>::LAYOUT })
    }

    /// The image of `at`, unrolled.
    ///
    /// ```
    /// use layout_core::space::{At, Byte, Lane, Static, StaticMap};
    /// use layout_core::typed::{C, Layout};
    /// type Rows = Static<Lane, Byte, Layout<C<32>, C<128>>>;
    /// assert_eq!(Rows::apply(At::new(2)).get(), 256);
    /// ```
    #[expect(
        clippy::inline_always,
        reason = "must fold at every optimisation level, as the index function it calls"
    )]
    #[inline(always)]
    #[must_use]
    fn apply(at: At<Self::From>) -> At<Self::To>
    where
        Self::Function: StaticLayout,
    {
        At::new(<Self::Function as StaticLayout>::index(at.get()))
    }
}

/// The layout type `L` as a map from `From` to `To`.
///
/// ```
/// use layout_core::space::{Byte, Lane, Static, StaticMap};
/// use layout_core::typed::{C, Layout};
/// type Words = Static<Lane, Byte, Layout<C<32>, C<4>>>;
/// assert_eq!(Words::map().layout().to_string(), "32:4");
/// ```
pub struct Static<From, To, L>(PhantomData<(From, To, L)>);

impl<From: Space, To: Space, L: StaticLayout> StaticMap for Static<From, To, L> {
    type From = From;
    type To = To;
    type Function = L;
}

/// `Sw<B,M,S>` on offsets in unit `U`, from `U` to `U`.
///
/// ```
/// use layout_core::space::{Byte, Lane, Static, StaticMap, SwizzleOf, Then};
/// use layout_core::typed::{C, Layout};
/// type Rows = Static<Lane, Byte, Layout<C<16>, C<128>>>;
/// type Swizzled = Then<Rows, SwizzleOf<Byte, 3, 4, 3>>;
/// assert_eq!(Swizzled::map().layout().to_string(), "Sw<3,4,3> o 16:128");
/// ```
pub struct SwizzleOf<U, const B: u32, const M: u32, const S: i32>(PhantomData<U>);

impl<U: Space, const B: u32, const M: u32, const S: i32> StaticMap for SwizzleOf<U, B, M, S> {
    type From = U;
    type To = U;
    type Function = Swizzle<B, M, S>;
}

/// `Inner`, then `Outer`: where `Inner` ends, `Outer` must begin.
///
/// ```
/// use layout_core::space::{At, Byte, Lane, Static, StaticMap, SwizzleOf, Then};
/// use layout_core::typed::{C, Layout};
/// type Rows = Static<Lane, Byte, Layout<(C<16>, C<2>), (C<128>, C<16>)>>;
/// type Address = Then<Rows, SwizzleOf<Byte, 3, 4, 3>>;
/// assert_eq!(Address::apply(At::new(17)).get(), (128 + 16) ^ (1 << 4));
/// ```
pub struct Then<Inner, Outer>(PhantomData<(Inner, Outer)>);

impl<Inner, Outer> StaticMap for Then<Inner, Outer>
where
    Inner: StaticMap,
    Outer: StaticMap,
    Inner::To: Meets<Outer::From>,
    Inner::Function: StaticLayout,
{
    type From = Inner::From;
    type To = Outer::To;
    type Function = Compose<Outer::Function, Inner::Function>;
}
