//! Coordinates: from nested to linear and back, from one shape to another, and all of them in order.
//!
//! Linear coordinates count colexicographically: the first leaf runs fastest. The last leaf never wraps, so that a
//! coordinate beyond the shape keeps its value through `idx2crd` and `crd2idx`.

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::profile::MAX_MODES;

/// The offset of a coordinate under a shape and strides: an integer stands for a whole mode, a tuple never for an integer.
///
/// ```
/// use layout_core::{IntTuple, crd2idx};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// let (shape, stride) = (t("(3,(2,3))"), t("(3,(12,1))"));
/// for coordinate in ["16", "(1,5)", "(1,(1,2))"] {
///     assert_eq!(crd2idx(&t(coordinate), &shape, &stride), Ok(17));
/// }
/// ```
///
/// # Errors
///
/// Shape and stride that make no layout, a coordinate that does not fit the shape, overflow.
pub const fn crd2idx(
    coordinate: &IntTuple,
    shape: &IntTuple,
    stride: &IntTuple,
) -> Result<i64, LayoutError> {
    attempt!(Layout::new(*shape, *stride)).at_coord(coordinate)
}

/// The linear coordinate of a coordinate of `shape`.
///
/// ```
/// use layout_core::{IntTuple, linear};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(linear(&t("(1,(1,2))"), &t("(3,(2,3))")), Ok(16));
/// ```
///
/// # Errors
///
/// As [`crd2idx`].
pub const fn linear(coordinate: &IntTuple, shape: &IntTuple) -> Result<i64, LayoutError> {
    attempt!(counting(shape)).at_coord(coordinate)
}

/// The natural coordinate of a linear one.
///
/// ```
/// use layout_core::{IntTuple, idx2crd};
/// let shape = IntTuple::parse("(3,(2,3))").unwrap();
/// assert_eq!(idx2crd(16, &shape).unwrap().to_string(), "(1,(1,2))");
/// ```
///
/// # Errors
///
/// A negative index, or an invalid shape.
pub const fn idx2crd(index: i64, shape: &IntTuple) -> Result<IntTuple, LayoutError> {
    attempt!(counting(shape)).coord(index)
}

/// A coordinate of one shape as the natural coordinate of another at the same linear coordinate.
///
/// ```
/// use layout_core::{IntTuple, crd2crd};
/// let t = |s: &str| IntTuple::parse(s).unwrap();
/// assert_eq!(crd2crd(&t("(1,(1,2))"), &t("(3,(2,3))"), &t("(9,2)")), Ok(t("(7,1)")));
/// ```
///
/// # Errors
///
/// As [`crd2idx`] and [`idx2crd`].
pub const fn crd2crd(
    coordinate: &IntTuple,
    from: &IntTuple,
    to: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    idx2crd(attempt!(linear(coordinate, from)), to)
}

/// The layout that counts the coordinates of a shape, extents of 1 included.
const fn counting(shape: &IntTuple) -> Result<Layout, LayoutError> {
    // A trailing extent of 1 must still count on, so it needs its stride.
    let mut layout = attempt!(Layout::compact(*shape));
    let size = layout.size();
    let mut running = 1;
    let mut i = 0;
    while i < layout.leaves() {
        layout.stride[i] = [running];
        running *= layout.shape[i];
        i += 1;
    }
    debug_assert!(running == size);
    Ok(layout)
}

/// All natural coordinates of a shape, first leaf fastest.
///
/// ```
/// use layout_core::{IntTuple, coordinates};
/// let shape = IntTuple::parse("(2,(1,2))").unwrap();
/// let all: Vec<String> = coordinates(&shape).unwrap().map(|c| c.to_string()).collect();
/// assert_eq!(all, ["(0,(0,0))", "(1,(0,0))", "(0,(0,1))", "(1,(0,1))"]);
/// ```
///
/// # Errors
///
/// Extents below 1, or a size that does not fit.
pub const fn coordinates(shape: &IntTuple) -> Result<Coordinates, LayoutError> {
    let layout = attempt!(Layout::compact(*shape));
    let start = IntTuple {
        profile: shape.profile,
        values: [0; MAX_MODES],
    };
    Ok(Coordinates {
        shape: *shape,
        next: start,
        left: layout.size(),
    })
}

/// Iterator over the coordinates of a shape; see [`coordinates`].
///
/// ```
/// use layout_core::{IntTuple, coordinates};
/// assert_eq!(coordinates(&IntTuple::parse("(2,3)").unwrap()).unwrap().len(), 6);
/// ```
#[derive(Clone, Debug)]
pub struct Coordinates {
    shape: IntTuple,
    next: IntTuple,
    left: i64,
}

impl Iterator for Coordinates {
    type Item = IntTuple;

    fn next(&mut self) -> Option<IntTuple> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let current = self.next;
        for i in 0..self.shape.leaves() {
            self.next.values[i] += 1;
            if self.next.values[i] < self.shape.values[i] {
                break;
            }
            self.next.values[i] = 0;
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Coordinates {}
