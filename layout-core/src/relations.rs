//! How two tuples fit together: comparing and dividing shapes.
//!
//! ```text
//! congruent         same parentheses                         (4,(2,2)) and (1,(8,3))
//! weakly congruent  the second refines the first             (4,2) and (4,(2,2))
//! compatible        ... and the sizes agree wherever it does (4,4) and (4,(2,2))
//! ```
//!
//! A layout of shape `t` takes coordinates of every shape that `t` is compatible *with* (the coarser ones).

use core::cmp::Ordering;

use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::int_tuple::{IntTuple, TupleBuilder};
use crate::profile::Node;
use crate::search::greatest_common_divisor;

/// Whether two tuples have the same parentheses.
///
/// ```
/// use layout_core::{IntTuple, congruent};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(congruent(&t("(4,(2,2))"), &t("(1,(8,3))")) && !congruent(&t("(4,4)"), &t("(4,(2,2))")));
/// ```
pub const fn congruent(a: &IntTuple, b: &IntTuple) -> bool {
    a.profile.difference(&b.profile).is_none()
}

/// Whether `b` has the parentheses of `a`, or more inside where `a` has integers.
///
/// ```
/// use layout_core::{IntTuple, weakly_congruent};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(weakly_congruent(&t("(4,2)"), &t("(4,(2,2))")) && !weakly_congruent(&t("(4,(2,2))"), &t("(4,2)")));
/// ```
pub const fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> bool {
    refines(a, a.root(), b, b.root(), false)
}

/// Whether `b` refines `a` and each integer of `a` is the size of what `b` has there: coordinates of `a` are coordinates of
/// `b`.
///
/// ```
/// use layout_core::{IntTuple, compatible};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(compatible(&t("24"), &t("(4,6)")) && compatible(&t("(4,6)"), &t("(4,(2,3))")));
/// assert!(!compatible(&t("(4,6)"), &t("24")) && !compatible(&t("(6,4)"), &t("(4,(2,3))")));
/// ```
pub const fn compatible(a: &IntTuple, b: &IntTuple) -> bool {
    refines(a, a.root(), b, b.root(), true)
}

const fn refines(a: &IntTuple, at: Node, b: &IntTuple, bt: Node, sizes: bool) -> bool {
    if a.profile.is_leaf(at) {
        return !sizes || matches!(node_size(b, bt), Some(size) if size == a.values[at.start]);
    }
    if b.profile.is_leaf(bt) || a.profile.rank(at) != b.profile.rank(bt) {
        return false;
    }
    let mut x = a.profile.first(at);
    let mut y = b.profile.first(bt);
    loop {
        if !refines(a, x, b, y, sizes) {
            return false;
        }
        match (a.profile.next(at, x), b.profile.next(bt, y)) {
            (Some(next_x), Some(next_y)) => {
                x = next_x;
                y = next_y;
            }
            _ => return true,
        }
    }
}

/// Product of a subtree, if it fits.
pub(crate) const fn node_size(tuple: &IntTuple, node: Node) -> Option<i64> {
    let mut size = 1i64;
    let mut i = node.start;
    while i < node.end {
        size = match size.checked_mul(tuple.values[i]) {
            Some(size) => size,
            None => return None,
        };
        i += 1;
    }
    Some(size)
}

/// The size of each element; an integer stays.
///
/// ```
/// use layout_core::{IntTuple, product_each};
/// assert_eq!(product_each(&IntTuple::parse("(4,(2,3))").unwrap()).unwrap().to_string(), "(4,6)");
/// ```
///
/// # Errors
///
/// Overflow.
pub const fn product_each(tuple: &IntTuple) -> Result<IntTuple, LayoutError> {
    if tuple.is_int() {
        return Ok(*tuple);
    }
    let mut builder = TupleBuilder::new();
    builder.open();
    let mut child = Some(tuple.profile.first(tuple.root()));
    while let Some(node) = child {
        builder.leaf(attempt!(fits(node_size(tuple, node), "size")));
        child = tuple.profile.next(tuple.root(), node);
    }
    builder.close();
    builder.finish()
}

/// Whether `b` divides `a`, which may be refined where `b` has integers: an integer of `b` divides the size of what `a` has
/// there, and a tuple of `b` needs a tuple of at least as many elements. Elements of `a` beyond those of `b` are divided by 1.
///
/// ```
/// use layout_core::{IntTuple, evenly_divides};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(evenly_divides(&t("(16,(2,6))"), &t("(4,3)")));
/// assert!(!evenly_divides(&t("16"), &t("(2,8)"))); // no second mode to divide
/// ```
pub const fn evenly_divides(a: &IntTuple, b: &IntTuple) -> bool {
    divides(a, a.root(), b, b.root())
}

const fn divides(a: &IntTuple, at: Node, b: &IntTuple, bt: Node) -> bool {
    if b.profile.is_leaf(bt) {
        return match (node_size(a, at), b.values[bt.start]) {
            (Some(a), b) => b != 0 && a.wrapping_rem(b) == 0,
            _ => false,
        };
    }
    if b.profile.rank(bt) > a.profile.rank(at) {
        return false;
    }
    let mut x = a.profile.first(at);
    let mut y = b.profile.first(bt);
    loop {
        if !divides(a, x, b, y) {
            return false;
        }
        match (a.profile.next(at, x), b.profile.next(bt, y)) {
            (Some(next_x), Some(next_y)) => {
                x = next_x;
                y = next_y;
            }
            _ => return true,
        }
    }
}

/// How many tiles of `b` it takes to cover `a`, rounding up. Tuple by tuple it goes element by element (elements of `a`
/// beyond those of `b` stay); a tuple by an integer is covered from the first leaf on, and no element is lost:
/// `(12,32)` by `32` is `(1,12)`, twelve tiles, since the 32 takes all of the 12 and 8/3 of the other mode.
///
/// ```
/// use layout_core::{IntTuple, ceil_div};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(ceil_div(&t("10"), &t("4")).unwrap(), t("3"));
/// assert_eq!(ceil_div(&t("(12,32)"), &t("32")).unwrap(), t("(1,12)"));
/// assert_eq!(ceil_div(&t("(10,(7,3))"), &t("(4,5)")).unwrap(), t("(3,(2,3))"));
/// ```
///
/// # Errors
///
/// Numbers below 1, or `b` of higher rank than `a`.
pub const fn ceil_div(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    divide(a, b, Rounding::Up)
}

/// The shape that is left of `a` when `b` is taken away: `a / b` where `b` divides, 1 where `a` divides `b`. A tuple by an
/// integer is taken away from the first leaf on.
///
/// ```
/// use layout_core::{IntTuple, shape_div};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(shape_div(&t("(12,32)"), &t("6")).unwrap(), t("(2,32)"));
/// assert_eq!(shape_div(&t("(12,32)"), &t("24")).unwrap(), t("(1,16)"));
/// ```
///
/// # Errors
///
/// [`LayoutError::ShapeNotDivisible`] where neither divides the other (`(12,32)` by `32`: 12 and 32); numbers below 1; `b` of
/// higher rank than `a`.
pub const fn shape_div(a: &IntTuple, b: &IntTuple) -> Result<IntTuple, LayoutError> {
    divide(a, b, Rounding::Never)
}

#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Never,
}

impl Rounding {
    const fn operation(self) -> &'static str {
        match self {
            Self::Up => "ceil_div",
            Self::Never => "shape_div",
        }
    }
}

const fn divide(a: &IntTuple, b: &IntTuple, rounding: Rounding) -> Result<IntTuple, LayoutError> {
    let operation = rounding.operation();
    let mut i = 0;
    while i < a.leaves() || i < b.leaves() {
        if i < a.leaves() {
            let name = if a.depth() == 0 { "a" } else { "a number of a" };
            attempt!(at_least_one(operation, name, a.values[i]));
        }
        if i < b.leaves() {
            let name = if b.depth() == 0 { "b" } else { "a number of b" };
            attempt!(at_least_one(operation, name, b.values[i]));
        }
        i += 1;
    }
    let mut builder = TupleBuilder::new();
    attempt!(divide_node(
        &mut builder,
        a,
        a.root(),
        b,
        b.root(),
        rounding
    ));
    builder.finish()
}

const fn divide_node(
    builder: &mut TupleBuilder,
    a: &IntTuple,
    at: Node,
    b: &IntTuple,
    bt: Node,
    rounding: Rounding,
) -> Result<(), LayoutError> {
    if a.profile.is_leaf(at) || b.profile.is_leaf(bt) {
        let divisor = attempt!(fits(node_size(b, bt), "the size of a divisor"));
        let mut rest = (divisor as i128, 1);
        return divide_by_int(builder, a, at, divisor, &mut rest, rounding);
    }
    let (left, right) = (a.profile.rank(at), b.profile.rank(bt));
    if right > left {
        return Err(LayoutError::TilerRank {
            operation: rounding.operation(),
            modes: left,
            tiles: right,
        });
    }
    builder.open();
    let mut x = Some(a.profile.first(at));
    let mut y = Some(b.profile.first(bt));
    while let Some(node) = x {
        match y {
            Some(divisor) => {
                attempt!(divide_node(builder, a, node, b, divisor, rounding));
                y = b.profile.next(bt, divisor);
            }
            None => builder.append(a, node),
        }
        x = a.profile.next(at, node);
    }
    builder.close();
    Ok(())
}

/// Divides the leaves of a subtree by the fraction `rest`, which each leaf uses up as far as it reaches.
const fn divide_by_int(
    builder: &mut TupleBuilder,
    a: &IntTuple,
    at: Node,
    divisor: i64,
    rest: &mut (i128, i128),
    rounding: Rounding,
) -> Result<(), LayoutError> {
    if !a.profile.is_leaf(at) {
        builder.open();
        let mut child = Some(a.profile.first(at));
        while let Some(node) = child {
            attempt!(divide_by_int(builder, a, node, divisor, rest, rounding));
            child = a.profile.next(at, node);
        }
        builder.close();
        return Ok(());
    }
    let mode = at.start;
    let value = a.values[mode] as i128;
    let (p, q) = *rest;
    if matches!(rounding, Rounding::Never) && (value % p != 0 && p % value != 0) {
        return Err(LayoutError::ShapeNotDivisible {
            mode,
            value: value as i64,
            divisor,
            rest: p as i64,
        });
    }
    // ⌈value / (p/q)⌉, and what is left of p/q after the leaf took its share.
    let scaled = attempt!(fits128(value.checked_mul(q)));
    builder.leaf(((scaled - 1) / p + 1) as i64);
    *rest = if scaled >= p {
        (1, 1)
    } else {
        let common = greatest_common_divisor(p, scaled);
        (p / common, scaled / common)
    };
    Ok(())
}

const fn fits128(value: Option<i128>) -> Result<i128, LayoutError> {
    match value {
        Some(value) => Ok(value),
        None => Err(LayoutError::Overflow {
            operation: "ceil_div",
        }),
    }
}

/// Compares congruent tuples by their first leaf that differs.
///
/// ```
/// use layout_core::{IntTuple, lexicographic};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(lexicographic(&t("(1,5)"), &t("(2,3)")).unwrap().is_lt());
/// ```
///
/// # Errors
///
/// Tuples that are not congruent.
pub const fn lexicographic(a: &IntTuple, b: &IntTuple) -> Result<Ordering, LayoutError> {
    attempt!(require_congruent(a, b));
    let mut i = 0;
    while i < a.leaves() {
        if a.values[i] != b.values[i] {
            return Ok(if a.values[i] < b.values[i] {
                Ordering::Less
            } else {
                Ordering::Greater
            });
        }
        i += 1;
    }
    Ok(Ordering::Equal)
}

/// Compares congruent tuples by their last leaf that differs: the order in which linear coordinates count.
///
/// ```
/// use layout_core::{IntTuple, colexicographic};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert!(colexicographic(&t("(1,5)"), &t("(2,3)")).unwrap().is_gt());
/// ```
///
/// # Errors
///
/// Tuples that are not congruent.
pub const fn colexicographic(a: &IntTuple, b: &IntTuple) -> Result<Ordering, LayoutError> {
    attempt!(require_congruent(a, b));
    let mut i = a.leaves();
    while i > 0 {
        i -= 1;
        if a.values[i] != b.values[i] {
            return Ok(if a.values[i] < b.values[i] {
                Ordering::Less
            } else {
                Ordering::Greater
            });
        }
    }
    Ok(Ordering::Equal)
}

/// Whether every leaf of `a` is less than its partner in `b`: with a shape as `b`, whether a coordinate is inside.
///
/// ```
/// use layout_core::{IntTuple, elementwise_less};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(elementwise_less(&t("(3,7)"), &t("(4,8)")), Ok(true));
/// ```
///
/// # Errors
///
/// Tuples that are not congruent.
pub const fn elementwise_less(a: &IntTuple, b: &IntTuple) -> Result<bool, LayoutError> {
    attempt!(require_congruent(a, b));
    let mut i = 0;
    while i < a.leaves() {
        if a.values[i] >= b.values[i] {
            return Ok(false);
        }
        i += 1;
    }
    Ok(true)
}

const fn require_congruent(a: &IntTuple, b: &IntTuple) -> Result<(), LayoutError> {
    match a.profile.difference(&b.profile) {
        Some(leaf) => Err(LayoutError::NotCongruent {
            leaf,
            left: a.leaves(),
            right: b.leaves(),
        }),
        None => Ok(()),
    }
}
