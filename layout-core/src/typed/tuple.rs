//! Integers and nested tuples of integers as types: `C<4>`, `(C<4>, (C<2>, C<2>))`.

use crate::error::expect;
use crate::int_tuple::IntTuple;

/// The integer `N` as a type: a shape or stride of one mode.
///
/// ```
/// use layout_core::typed::{C, StaticTuple};
/// assert_eq!(C::<4>::TUPLE.to_string(), "4");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct C<const N: i64>;

/// A nested tuple of integers as a type: `C<N>`, or a tuple of up to eight of these.
///
/// ```
/// use layout_core::typed::{C, StaticTuple};
/// assert_eq!(<(C<4>, (C<2>, C<2>))>::TUPLE.to_string(), "(4,(2,2))");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a static integer tuple",
    label = "expected `C<N>` or a tuple of such",
    note = "write integers as `C<4>` and nest them as `(C<4>, (C<2>, C<2>))`, at most 8 to a tuple; an array or a plain integer is not a type"
)]
pub trait StaticTuple {
    /// The tuple as a value.
    ///
    /// ```
    /// use layout_core::typed::{C, StaticTuple};
    /// assert_eq!(<(C<4>, C<8>)>::TUPLE.size(), Ok(32));
    /// ```
    const TUPLE: IntTuple;

    /// The value of a bare integer. (Cheaper to evaluate than the whole tuple.)
    #[doc(hidden)]
    const LEAF: Option<i64> = None;
}

impl<const N: i64> StaticTuple for C<N> {
    const TUPLE: IntTuple = IntTuple::int(N);
    const LEAF: Option<i64> = Some(N);
}

/// Calls a macro for each arity with the names of the type parameters.
macro_rules! each_arity {
    ($callback:ident) => {
        $callback!(T0);
        $callback!(T0 T1);
        $callback!(T0 T1 T2);
        $callback!(T0 T1 T2 T3);
        $callback!(T0 T1 T2 T3 T4);
        $callback!(T0 T1 T2 T3 T4 T5);
        $callback!(T0 T1 T2 T3 T4 T5 T6);
        $callback!(T0 T1 T2 T3 T4 T5 T6 T7);
    };
}
pub(super) use each_arity;

/// The flat tuple of the given elements, if all are integers.
const fn flat<const N: usize>(elements: [Option<i64>; N]) -> Option<IntTuple> {
    let mut values = [0; N];
    let mut i = 0;
    while i < N {
        match elements[i] {
            Some(value) => values[i] = value,
            None => return None,
        }
        i += 1;
    }
    Some(expect(IntTuple::flat(&values)))
}

macro_rules! static_tuple {
    ($($T:ident)+) => {
        impl<$($T: StaticTuple),+> StaticTuple for ($($T,)+) {
            const TUPLE: IntTuple = match flat([$($T::LEAF),+]) {
                Some(tuple) => tuple,
                None => expect(IntTuple::tuple(&[$($T::TUPLE),+])),
            };
        }
    };
}

each_arity!(static_tuple);
