//! The layouts and functions that types are made of.

use core::marker::PhantomData;

use super::tuple::each_arity;
use super::{StaticLayout, StaticTuple, plain};
use crate::composed::composition_swizzled;
use crate::error::expect;
use crate::message::{Message, fail};
use crate::swizzled::Swizzled;

/// The plain layout `Shape:Stride` of two congruent tuples.
#[derive(Clone, Copy, Debug)]
pub struct Layout<Shape, Stride>(PhantomData<(Shape, Stride)>);

impl<Shape: StaticTuple, Stride: StaticTuple> StaticLayout for Layout<Shape, Stride> {
    const LAYOUT: Swizzled =
        Swizzled::plain(expect(crate::Layout::new(Shape::TUPLE, Stride::TUPLE)));
}

/// `Sw<B,M,S>` as a type, `S` relative and of either sign. It acts on the unit of the layout that it is composed with.
#[derive(Clone, Copy, Debug)]
pub struct Swizzle<const B: u32, const M: u32, const S: i32>;

/// The layouts `L0, L1, …` side by side as the modes of one.
#[derive(Clone, Copy, Debug)]
pub struct Modes<T>(PhantomData<T>);

macro_rules! modes {
    ($($T:ident)+) => {
        impl<$($T: StaticLayout),+> StaticLayout for Modes<($($T,)+)> {
            const LAYOUT: Swizzled = Swizzled::plain(expect(crate::Layout::tuple(&[
                $(plain(&$T::LAYOUT, "a mode of another layout")),+
            ])));
        }
    };
}

each_arity!(modes);

/// `N o L`: the layout moved by `N`, inside its swizzle if it has one.
#[derive(Clone, Copy, Debug)]
pub struct Offset<const N: i64, L>(PhantomData<L>);

impl<const N: i64, L: StaticLayout> StaticLayout for Offset<N, L> {
    const LAYOUT: Swizzled = expect(Swizzled::new(
        L::LAYOUT.swizzle(),
        L::LAYOUT.offset() + N,
        L::LAYOUT.layout(),
    ));
}

/// What can stand on the left of a composition, as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Function<'a> {
    /// A swizzle.
    Swizzle(crate::Swizzle),
    /// A layout.
    Layout(&'a Swizzled),
}

/// What can stand on the left of [`Compose`]: a static layout or a [`Swizzle`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand on the left of a composition",
    label = "expected a static layout or `typed::Swizzle<B, M, S>`"
)]
pub trait StaticFunction {
    /// The function as a value.
    const FUNCTION: Function<'static>;
}

impl<L: StaticLayout> StaticFunction for L {
    const FUNCTION: Function<'static> = Function::Layout(&L::LAYOUT);
}

impl<const B: u32, const M: u32, const S: i32> StaticFunction for Swizzle<B, M, S> {
    const FUNCTION: Function<'static> = Function::Swizzle(expect(crate::Swizzle::new(B, M, S)));
}

/// `Outer ∘ Inner`: a swizzle or a layout after a layout.
#[derive(Clone, Copy, Debug)]
pub struct Compose<Outer, Inner>(PhantomData<(Outer, Inner)>);

impl<Outer: StaticFunction, Inner: StaticLayout> StaticLayout for Compose<Outer, Inner> {
    const LAYOUT: Swizzled = compose(&Outer::FUNCTION, &Inner::LAYOUT);
}

/// `outer ∘ inner` in a constant.
#[track_caller]
pub(crate) const fn compose(outer: &Function<'_>, inner: &Swizzled) -> Swizzled {
    match outer {
        Function::Layout(outer) => expect(composition_swizzled(
            outer,
            &plain(inner, "the right-hand side of a composition with a layout"),
        )),
        Function::Swizzle(swizzle) => {
            let other = inner.swizzle();
            if !other.is_identity() && !swizzle.is_identity() {
                fail(
                    &Message::new()
                        .text("a swizzle of a layout that is swizzled already, by Sw<")
                        .int(other.b() as i64)
                        .text(",")
                        .int(other.m() as i64)
                        .text(",")
                        .int(other.s() as i64)
                        .text(">; compose the two as matrices (f2::LinearMap) instead"),
                );
            }
            let swizzle = if swizzle.is_identity() {
                other
            } else {
                *swizzle
            };
            expect(Swizzled::new(swizzle, inner.offset(), inner.layout()))
        }
    }
}
