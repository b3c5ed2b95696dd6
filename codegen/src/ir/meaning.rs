//! What a predicate or a chosen value means: the expressions that it was made from. The prover holds the instruction against it.

use super::inst::Binary;
use super::value::{Cmp, Logic, Reg};
use crate::index::Expr;

/// What a register is to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// `a cmp b`, and another predicate if given.
    Compare {
        /// The comparison.
        cmp: Cmp,
        /// The left side.
        a: Expr,
        /// The right side.
        b: Expr,
        /// The other predicate.
        and: Option<Reg>,
    },
    /// Two predicates to one.
    Logic {
        /// The operation.
        op: Logic,
        /// The left side.
        a: Reg,
        /// The right side.
        b: Reg,
    },
    /// `a` where `p` holds, else `b`.
    Select {
        /// The predicate.
        p: Reg,
        /// The value where it holds.
        a: Expr,
        /// The value where it does not.
        b: Expr,
    },
    /// Bytes of the elements of a vector that are inside: `left` of them, at least 0 and at most `most`; none where `p` does not hold.
    Inside {
        /// The row is inside.
        p: Reg,
        /// Elements from the vector's first to the end of the row.
        left: Expr,
        /// Elements of the vector.
        most: i64,
        /// Bytes of an element.
        bytes: i64,
    },
    /// The smaller or the larger of a value and a number.
    Extreme {
        /// [`Binary::Min`] or [`Binary::Max`].
        op: Binary,
        /// The value.
        of: Expr,
        /// The number.
        end: i64,
    },
    /// The quotient of two values, or what is left.
    Divided {
        /// [`Binary::Div`] or [`Binary::Rem`].
        op: Binary,
        /// What is divided.
        of: Expr,
        /// By what.
        by: Expr,
    },
}
