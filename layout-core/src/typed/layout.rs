//! The layouts and functions that types are made of.

use core::marker::PhantomData;

use super::tuple::each_arity;
use super::{StaticLayout, StaticTuple, plain};
use crate::error::{LayoutError, expect};
use crate::function::Function;
use crate::space::single;
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

/// What stands on the left of a composition of types, as a value that is cheap to evaluate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum LeftOperand<'a> {
    /// A swizzle.
    Swizzle(crate::Swizzle),
    /// A layout.
    Layout(&'a Swizzled),
}

impl LeftOperand<'_> {
    /// `self ∘ inner`: [`Function::compose`], which must have one swizzled layout as its result.
    ///
    /// ```
    /// use layout_core::{Swizzled, typed::LeftOperand};
    /// let scale = Swizzled::parse("8:2").unwrap();
    /// let inner = Swizzled::parse("Sw<2,0,2> o 16:1").unwrap();
    /// assert_eq!(LeftOperand::Layout(&scale).compose(&inner).unwrap().to_string(), "Sw<2,1,2> o 16:2");
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Function::compose`]; [`LayoutError::SeveralSteps`].
    pub const fn compose(&self, inner: &Swizzled) -> Result<Swizzled, LayoutError> {
        let composed = match self {
            LeftOperand::Layout(outer) => match inner.as_plain() {
                // The usual case, without the weight of the others: it is evaluated for every type.
                Some(plain) => return outer.compose(&plain),
                None => Function::Layout(**outer).compose(&Function::Layout(*inner)),
            },
            LeftOperand::Swizzle(swizzle) => {
                if inner.swizzle().is_identity() {
                    return Swizzled::new(*swizzle, inner.offset(), inner.layout());
                }
                Function::Swizzle(*swizzle).compose(&Function::Layout(*inner))
            }
        };
        match composed {
            Ok(composed) => single(&composed),
            Err(error) => Err(error),
        }
    }
}

/// What can stand on the left of [`Compose`]: a static layout or a [`Swizzle`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand on the left of a composition",
    label = "expected a static layout or `typed::Swizzle<B, M, S>`"
)]
pub trait StaticFunction {
    /// The function as a value.
    const FUNCTION: LeftOperand<'static>;
}

impl<L: StaticLayout> StaticFunction for L {
    const FUNCTION: LeftOperand<'static> = LeftOperand::Layout(&L::LAYOUT);
}

impl<const B: u32, const M: u32, const S: i32> StaticFunction for Swizzle<B, M, S> {
    const FUNCTION: LeftOperand<'static> =
        LeftOperand::Swizzle(expect(crate::Swizzle::new(B, M, S)));
}

/// `Outer ∘ Inner`: a swizzle or a layout after a layout.
#[derive(Clone, Copy, Debug)]
pub struct Compose<Outer, Inner>(PhantomData<(Outer, Inner)>);

impl<Outer: StaticFunction, Inner: StaticLayout> StaticLayout for Compose<Outer, Inner> {
    const LAYOUT: Swizzled = expect(Outer::FUNCTION.compose(&Inner::LAYOUT));
}
