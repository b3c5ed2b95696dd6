//! Arithmetic on tuples: sums, products and multiples, leaf by leaf.
//!
//! ```text
//! sum((4,(2,3)))                 9        product_like((2,(3,4)), (1,1))   (2,12)
//! inner_product((2,3), (4,5))   23        elem_scale((2,3), (4,(5,6)))     (8,90)
//! round_up((10,7), (4,5))       (12,10)
//! ```

use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::int_tuple::{IntTuple, TupleBuilder};
use crate::profile::Node;
use crate::relations::node_size;

/// The sum of all integers of a tuple.
///
/// ```
/// use layout_core::{IntTuple, sum};
/// assert_eq!(sum(&IntTuple::parse("(4,(2,3))").unwrap()), Ok(9));
/// ```
///
/// # Errors
///
/// Overflow.
pub const fn sum(tuple: &IntTuple) -> Result<i64, LayoutError> {
    let mut total = 0i64;
    let mut i = 0;
    while i < tuple.leaves() {
        total = attempt!(fits(total.checked_add(tuple.values[i]), "sum"));
        i += 1;
    }
    Ok(total)
}

/// The sum of the products of the integers of two congruent tuples.
///
/// ```
/// use layout_core::{IntTuple, inner_product};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(inner_product(&t("(2,3)"), &t("(4,5)")), Ok(23));
/// ```
///
/// # Errors
///
/// Different parentheses, overflow.
pub const fn inner_product(a: &IntTuple, b: &IntTuple) -> Result<i64, LayoutError> {
    if let Some(leaf) = a.profile.difference(&b.profile) {
        let (left, right) = (a.leaves(), b.leaves());
        return Err(LayoutError::NotCongruent { leaf, left, right });
    }
    let mut total = 0i64;
    let mut i = 0;
    while i < a.leaves() {
        let part = attempt!(fits(a.values[i].checked_mul(b.values[i]), "inner_product"));
        total = attempt!(fits(total.checked_add(part), "inner_product"));
        i += 1;
    }
    Ok(total)
}

/// The sizes of the parts of `tuple` that the integers of `guide` stand for, with the parentheses of `guide`.
///
/// ```
/// use layout_core::{IntTuple, product_like};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(product_like(&t("(2,(3,4))"), &t("(1,1)")).unwrap(), t("(2,12)"));
/// ```
///
/// # Errors
///
/// A tuple that does not refine the guide; overflow.
pub const fn product_like(tuple: &IntTuple, guide: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    attempt!(scale_node(
        &mut builder,
        "product_like",
        guide,
        guide.root(),
        tuple,
        tuple.root(),
        false
    ));
    builder.finish()
}

/// Each integer of `a` times the size of what `b` has there.
///
/// ```
/// use layout_core::{IntTuple, elem_scale};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(elem_scale(&t("(2,3)"), &t("(4,(5,6))")).unwrap(), t("(8,90)"));
/// ```
///
/// # Errors
///
/// A tuple `b` that does not refine `a`; overflow.
pub const fn elem_scale(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    attempt!(scale_node(
        &mut builder,
        "elem_scale",
        a,
        a.root(),
        b,
        b.root(),
        true
    ));
    builder.finish()
}

/// For each integer of `a` the size of what `b` has there, times the integer if `times`.
const fn scale_node(
    builder: &mut TupleBuilder,
    operation: &'static str,
    a: &IntTuple,
    at: Node,
    b: &IntTuple,
    bt: Node,
    times: bool,
) -> Result<(), LayoutError> {
    if a.profile.is_leaf(at) {
        let mut value = attempt!(fits(node_size(b, bt), operation));
        if times {
            value = attempt!(fits(value.checked_mul(a.values[at.start]), operation));
        }
        builder.leaf(value);
        return Ok(());
    }
    let (left, right) = (a.profile.rank(at), b.profile.rank(bt));
    if b.profile.is_leaf(bt) {
        return Err(LayoutError::IntegerForTuple {
            operation,
            elements: left,
        });
    }
    if left != right {
        return Err(LayoutError::RankMismatch {
            operation,
            left,
            right,
        });
    }
    builder.open();
    let mut x = Some(a.profile.first(at));
    let mut y = Some(b.profile.first(bt));
    while let (Some(node), Some(other)) = (x, y) {
        attempt!(scale_node(builder, operation, a, node, b, other, times));
        x = a.profile.next(at, node);
        y = b.profile.next(bt, other);
    }
    builder.close();
    Ok(())
}

/// The least multiple of `b` that is not below `a`, element by element; elements of `a` beyond those of `b` stay, and an
/// integer `b` is for the first element.
///
/// ```
/// use layout_core::{IntTuple, round_up};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(round_up(&t("10"), &t("4")).unwrap(), t("12"));
/// assert_eq!(round_up(&t("(10,7)"), &t("(4,5)")).unwrap(), t("(12,10)"));
/// ```
///
/// # Errors
///
/// Numbers below 1, a tuple `b` where `a` has an integer, `b` of higher rank than `a`; overflow.
pub const fn round_up(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    let mut builder = TupleBuilder::new();
    attempt!(round_node(&mut builder, a, a.root(), b, b.root()));
    builder.finish()
}

const fn round_node(
    builder: &mut TupleBuilder,
    a: &IntTuple,
    at: Node,
    b: &IntTuple,
    bt: Node,
) -> Result<(), LayoutError> {
    const OPERATION: &str = "round_up";
    let leaves = (a.profile.is_leaf(at), b.profile.is_leaf(bt));
    if leaves.0 && leaves.1 {
        let (x, y) = (a.values[at.start], b.values[bt.start]);
        attempt!(at_least_one(OPERATION, "a", x));
        attempt!(at_least_one(OPERATION, "b", y));
        builder.leaf(attempt!(fits(((x - 1) / y + 1).checked_mul(y), OPERATION)));
        return Ok(());
    }
    let (left, right) = (a.profile.rank(at), b.profile.rank(bt));
    if leaves.0 {
        return Err(LayoutError::TupleForInteger {
            operation: OPERATION,
            mode: at.start,
            elements: right,
        });
    }
    if right > left {
        return Err(LayoutError::TilerRank {
            operation: OPERATION,
            modes: left,
            tiles: right,
        });
    }
    builder.open();
    let mut x = Some(a.profile.first(at));
    // An integer is for the first element.
    let mut y = Some(b.profile.first(bt));
    while let Some(node) = x {
        match y {
            Some(other) => {
                attempt!(round_node(builder, a, node, b, other));
                y = b.profile.next(bt, other);
            }
            None => builder.append(a, node),
        }
        x = a.profile.next(at, node);
    }
    builder.close();
    Ok(())
}
