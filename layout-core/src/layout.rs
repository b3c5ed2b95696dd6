//! The layout: a shape and a stride with the same parentheses, a function from coordinates to offsets.
//!
//! `(4,(2,3)):(2,(1,8))` takes the coordinate `(c0,(c1,c2))` to `2·c0 + 1·c1 + 8·c2`. The same function takes a linear
//! coordinate `i`, which counts through the shape with the first mode fastest (colexicographic order):
//!
//! ```text
//! i            0  1  2  3    4  5  6  7    8 …
//! coordinate  (0,(0,0)) …    (0,(1,0)) …   (0,(0,1))
//! offset       0  2  4  6    1  3  5  7    8 …
//! ```
//!
//! The last mode never wraps: index 24 of this layout of 24 elements is `(0,(0,3))`, offset 24. That is what lets a layout
//! be composed with one that reaches beyond its size.
//!
//! Extents are at least 1; strides may be zero (the same element again) or negative (downwards). A layout whose size or
//! whose offsets would not fit in 64 bits cannot be made, so that evaluation inside the domain never overflows.

use core::fmt;
use core::str::FromStr;

use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, write_tuple};
use crate::parse::{ParseError, Scanner};
use crate::profile::{MAX_MODES, Node, Profile, ProfileBuilder};

const EVALUATION: &str = "evaluation of a layout";
const SIZE: &str = "the size of a layout";
const OFFSETS: &str = "the offsets of a layout";

/// A function from coordinates to offsets: congruent shape and stride. Units are the user's (elements, bytes, threads).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    pub(crate) profile: Profile,
    pub(crate) shape: [i64; MAX_MODES],
    pub(crate) stride: [i64; MAX_MODES],
}

impl Layout {
    /// `1:0`: one coordinate, offset 0.
    pub const UNIT: Self = {
        let mut shape = [0; MAX_MODES];
        shape[0] = 1;
        Self {
            profile: Profile::LEAF,
            shape,
            stride: [0; MAX_MODES],
        }
    };

    /// The layout `shape:stride`.
    ///
    /// # Errors
    ///
    /// Different parentheses, an extent below 1, a size or offsets that do not fit in 64 bits.
    pub const fn new(shape: IntTuple, stride: IntTuple) -> Result<Self, LayoutError> {
        if let Some(leaf) = shape.profile.difference(&stride.profile) {
            return Err(LayoutError::NotCongruent {
                leaf,
                left: shape.leaves(),
                right: stride.leaves(),
            });
        }
        Self {
            profile: shape.profile,
            shape: shape.values,
            stride: stride.values,
        }
        .checked()
    }

    /// The one mode `extent:stride`, without parentheses.
    ///
    /// # Errors
    ///
    /// An extent below 1, offsets that do not fit in 64 bits.
    pub const fn mode(extent: i64, stride: i64) -> Result<Self, LayoutError> {
        Self::new(IntTuple::int(extent), IntTuple::int(stride))
    }

    /// The flat layout `(s0,s1,…):(d0,d1,…)`; one mode gives `(s0):(d0)`.
    ///
    /// # Errors
    ///
    /// Slices of different lengths or empty, and the errors of [`Layout::new`].
    pub const fn flat(shape: &[i64], stride: &[i64]) -> Result<Self, LayoutError> {
        Self::new(
            attempt!(IntTuple::flat(shape)),
            attempt!(IntTuple::flat(stride)),
        )
    }

    /// The layout whose top-level modes are the given layouts.
    ///
    /// # Errors
    ///
    /// An empty slice, or a result beyond the capacity.
    pub const fn tuple(modes: &[Self]) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::new();
        builder.open();
        let mut i = 0;
        while i < modes.len() {
            builder.append(&modes[i], modes[i].root());
            i += 1;
        }
        builder.close();
        builder.finish()
    }

    /// The compact layout of a flat shape, first mode fastest: `(4,8)` gives `(4,8):(1,4)`. Modes of extent 1 get stride 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn col_major(shape: &[i64]) -> Result<Self, LayoutError> {
        Self::compact(attempt!(IntTuple::flat(shape)))
    }

    /// The compact layout of a flat shape, last mode fastest: `(4,8)` gives `(4,8):(8,1)`. Modes of extent 1 get stride 0.
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn row_major(shape: &[i64]) -> Result<Self, LayoutError> {
        Self::compact_row_major(attempt!(IntTuple::flat(shape)))
    }

    /// The compact layout of a nested shape, first leaf fastest (CuTe's `make_layout(shape)`).
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn compact(shape: IntTuple) -> Result<Self, LayoutError> {
        let mut stride = [0; MAX_MODES];
        let mut running = 1i64;
        let mut i = 0;
        while i < shape.leaves() {
            running = attempt!(compact_step(&shape, &mut stride, running, i));
            i += 1;
        }
        Self {
            profile: shape.profile,
            shape: shape.values,
            stride,
        }
        .checked()
    }

    /// The compact layout of a nested shape, last leaf fastest (CuTe's `LayoutRight`).
    ///
    /// # Errors
    ///
    /// The errors of [`Layout::new`].
    pub const fn compact_row_major(shape: IntTuple) -> Result<Self, LayoutError> {
        let mut stride = [0; MAX_MODES];
        let mut running = 1i64;
        let mut i = shape.leaves();
        while i > 0 {
            i -= 1;
            running = attempt!(compact_step(&shape, &mut stride, running, i));
        }
        Self {
            profile: shape.profile,
            shape: shape.values,
            stride,
        }
        .checked()
    }

    /// Reads CuTe's notation, `(4,(2,2)):(2,(1,8))`.
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.layout() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// The extents.
    pub const fn shape(&self) -> IntTuple {
        IntTuple {
            profile: self.profile,
            values: self.shape,
        }
    }

    /// The strides.
    pub const fn stride(&self) -> IntTuple {
        IntTuple {
            profile: self.profile,
            values: self.stride,
        }
    }

    /// Number of top-level modes; 1 for a bare mode such as `8:1`.
    pub const fn rank(&self) -> usize {
        self.profile.rank(self.root())
    }

    /// Deepest nesting: 0 for `8:1`, 1 for `(4,8):(1,4)`.
    pub const fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// Number of leaves: modes that are integers.
    pub const fn leaves(&self) -> usize {
        self.profile.leaves()
    }

    /// Extent and stride of leaf `i` in order of writing; `(1, 0)` for `i` out of range.
    pub const fn leaf(&self, i: usize) -> (i64, i64) {
        if i < self.leaves() {
            (self.shape[i], self.stride[i])
        } else {
            (1, 0)
        }
    }

    /// Top-level mode `i`.
    ///
    /// # Errors
    ///
    /// `i` at or beyond the rank.
    pub const fn get(&self, i: usize) -> Result<Self, LayoutError> {
        match self.profile.child(self.root(), i) {
            Some(node) => self.extract(node),
            None => Err(LayoutError::ModeOutOfRange {
                mode: i,
                rank: self.rank(),
            }),
        }
    }

    /// Number of coordinates: the product of the extents.
    pub const fn size(&self) -> i64 {
        self.node_size(self.root())
    }

    /// Number of offsets from the least to the greatest that occur, both included; for strides upwards that is the
    /// greatest offset plus 1. Memory for the layout needs this many elements.
    pub const fn cosize(&self) -> i64 {
        let (min, max) = self.offset_range();
        max - min + 1
    }

    /// Least and greatest offset. Offset 0 always occurs, so the least is at most 0.
    pub const fn offset_range(&self) -> (i64, i64) {
        let mut min = 0;
        let mut max = 0;
        let mut i = 0;
        while i < self.leaves() {
            let reach = (self.shape[i] - 1) * self.stride[i];
            if reach < 0 {
                min += reach;
            } else {
                max += reach;
            }
            i += 1;
        }
        (min, max)
    }

    /// The offset at linear coordinate `i`, first leaf fastest. The last leaf never wraps, and a negative `i` continues it
    /// downwards. Never overflows for `0 <= i < size()`; far outside it wraps around (see [`Layout::checked_index`]).
    pub const fn index(&self, i: i64) -> i64 {
        self.node_index(self.root(), i)
    }

    /// [`Layout::index`], or an error where the offset does not fit in 64 bits.
    ///
    /// # Errors
    ///
    /// Overflow, which needs a coordinate far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<i64, LayoutError> {
        self.checked_node_index(self.root(), i)
    }

    /// The offset at one linear coordinate for each top-level mode. In each mode the last leaf never wraps.
    ///
    /// # Panics
    ///
    /// Unless there is exactly one coordinate for each top-level mode, as indexing an array out of range does; for
    /// coordinates from outside use [`Layout::at_coord`].
    #[track_caller]
    pub const fn at(&self, coordinates: &[i64]) -> i64 {
        let root = self.root();
        let mut child = Some(self.profile.first(root));
        let mut offset = 0i64;
        let mut i = 0;
        while let Some(node) = child {
            assert!(i < coordinates.len(), "fewer coordinates than modes");
            offset = offset.wrapping_add(self.node_index(node, coordinates[i]));
            child = self.profile.next(root, node);
            i += 1;
        }
        assert!(i == coordinates.len(), "more coordinates than modes");
        offset
    }

    /// The offset at a coordinate, natural (`(1,(0,2))`), linear (`9`) or anything between (`(1,4)`): an integer may stand
    /// for a whole mode, a tuple never for an integer. In each mode so addressed the last leaf never wraps.
    ///
    /// # Errors
    ///
    /// A coordinate that does not fit the shape; overflow far outside the domain.
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<i64, LayoutError> {
        self.node_at(self.root(), coordinate, coordinate.root())
    }

    /// The natural coordinate of linear coordinate `i` (CuTe's `idx2crd`). The last leaf never wraps, so this is defined
    /// for every `i >= 0` and `at_coord(&coord(i)?) == checked_index(i)`.
    ///
    /// # Errors
    ///
    /// A negative `i`.
    pub const fn coord(&self, i: i64) -> Result<IntTuple, LayoutError> {
        if i < 0 {
            return Err(LayoutError::CoordinateOutOfRange {
                mode: 0,
                coordinate: i,
                extent: self.size(),
            });
        }
        let mut values = [0; MAX_MODES];
        let mut rest = i;
        let last = self.leaves() - 1;
        let mut k = 0;
        while k < last {
            values[k] = rest % self.shape[k];
            rest /= self.shape[k];
            k += 1;
        }
        values[last] = rest;
        Ok(IntTuple {
            profile: self.profile,
            values,
        })
    }

    /// Whether two layouts are written the same, in `const`. See [`equal_as_functions`](crate::equal_as_functions) for
    /// sameness as functions.
    pub const fn equals(&self, other: &Self) -> bool {
        self.shape().equals(&other.shape()) && self.stride().equals(&other.stride())
    }

    pub(crate) const fn root(&self) -> Node {
        self.profile.root()
    }

    pub(crate) const fn extract(&self, node: Node) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::new();
        builder.append(self, node);
        builder.finish()
    }

    /// Product of the extents of a subtree.
    pub(crate) const fn node_size(&self, node: Node) -> i64 {
        let mut size = 1;
        let mut i = node.start;
        while i < node.end {
            size *= self.shape[i];
            i += 1;
        }
        size
    }

    /// Offset of the linear coordinate `i` of a subtree, wrapping around far outside the domain.
    const fn node_index(&self, node: Node, i: i64) -> i64 {
        let mut offset = 0i64;
        let mut rest = i;
        let mut k = node.start;
        while k + 1 < node.end {
            let extent = self.shape[k];
            offset = offset.wrapping_add(rest.rem_euclid(extent).wrapping_mul(self.stride[k]));
            rest = rest.div_euclid(extent);
            k += 1;
        }
        offset.wrapping_add(rest.wrapping_mul(self.stride[k]))
    }

    const fn checked_node_index(&self, node: Node, i: i64) -> Result<i64, LayoutError> {
        let mut offset = 0i64;
        let mut rest = i;
        let mut k = node.start;
        while k < node.end {
            let extent = self.shape[k];
            let digit = if k + 1 < node.end {
                rest.rem_euclid(extent)
            } else {
                rest
            };
            let part = attempt!(fits(digit.checked_mul(self.stride[k]), EVALUATION));
            offset = attempt!(fits(offset.checked_add(part), EVALUATION));
            rest = rest.div_euclid(extent);
            k += 1;
        }
        Ok(offset)
    }

    const fn node_at(
        &self,
        node: Node,
        coordinate: &IntTuple,
        at: Node,
    ) -> Result<i64, LayoutError> {
        if coordinate.profile.is_leaf(at) {
            return self.checked_node_index(node, coordinate.values[at.start]);
        }
        let expected = if self.profile.is_leaf(node) {
            0
        } else {
            self.profile.rank(node)
        };
        let found = coordinate.profile.rank(at);
        if expected != found {
            let expected = if expected == 0 { 1 } else { expected };
            return Err(LayoutError::CoordinateMismatch {
                mode: node.start,
                expected,
                found,
            });
        }
        let mut offset = 0i64;
        let mut mode = Some(self.profile.first(node));
        let mut element = Some(coordinate.profile.first(at));
        while let (Some(m), Some(e)) = (mode, element) {
            let part = attempt!(self.node_at(m, coordinate, e));
            offset = attempt!(fits(offset.checked_add(part), EVALUATION));
            mode = self.profile.next(node, m);
            element = coordinate.profile.next(at, e);
        }
        Ok(offset)
    }

    /// The layout, if its extents are positive and its size and offsets fit.
    pub(crate) const fn checked(self) -> Result<Self, LayoutError> {
        // Wide arithmetic, one comparison a step: cheaper in `const` than calls of checked_mul and checked_add.
        const LIMIT: i128 = i64::MAX as i128;
        let leaves = self.profile.leaves();
        let mut size = 1i128;
        let mut min = 0i128;
        let mut max = 0i128;
        let mut i = 0;
        while i < leaves {
            let extent = self.shape[i];
            if extent < 1 {
                return Err(LayoutError::InvalidExtent { mode: i, extent });
            }
            size *= extent as i128;
            if size > LIMIT {
                return Err(LayoutError::Overflow { operation: SIZE });
            }
            let reach = (extent as i128 - 1) * self.stride[i] as i128;
            if reach < 0 {
                min += reach;
            } else {
                max += reach;
            }
            // The number of offsets, max - min + 1, must fit, since cosize reports it.
            if max > LIMIT || min < -LIMIT || max - min >= LIMIT {
                return Err(LayoutError::Overflow { operation: OFFSETS });
            }
            i += 1;
        }
        Ok(self)
    }
}

/// Sets the compact stride of leaf `i` and returns the next running product.
const fn compact_step(
    shape: &IntTuple,
    stride: &mut [i64; MAX_MODES],
    running: i64,
    i: usize,
) -> Result<i64, LayoutError> {
    let extent = shape.values[i];
    if extent < 1 {
        return Err(LayoutError::InvalidExtent { mode: i, extent });
    }
    if extent > 1 {
        stride[i] = running;
    }
    fits(running.checked_mul(extent), SIZE)
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.profile, |f, i| write!(f, "{}", self.shape[i]))?;
        f.write_str(":")?;
        write_tuple(f, &self.profile, |f, i| write!(f, "{}", self.stride[i]))
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Layout {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// `tuple ":" tuple`.
    pub(crate) const fn layout(&mut self) -> Result<Layout, ParseError> {
        self.peek();
        let start = self.at;
        let shape = match self.tuple() {
            Ok(shape) => shape,
            Err(error) => return Err(error),
        };
        if let Err(error) = self.require(b':') {
            return Err(error);
        }
        let stride = match self.tuple() {
            Ok(stride) => stride,
            Err(error) => return Err(error),
        };
        match Layout::new(shape, stride) {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}

/// Builds a layout from left to right; errors are reported by `finish`.
#[derive(Clone, Copy)]
pub(crate) struct LayoutBuilder {
    profile: ProfileBuilder,
    shape: [i64; MAX_MODES],
    stride: [i64; MAX_MODES],
}

impl LayoutBuilder {
    pub(crate) const fn new() -> Self {
        Self {
            profile: ProfileBuilder::new(),
            shape: [0; MAX_MODES],
            stride: [0; MAX_MODES],
        }
    }

    pub(crate) const fn open(&mut self) {
        self.profile.open();
    }

    pub(crate) const fn close(&mut self) {
        self.profile.close();
    }

    pub(crate) const fn leaf(&mut self, extent: i64, stride: i64) {
        if let Some(at) = self.profile.leaf() {
            self.shape[at] = extent;
            self.stride[at] = stride;
        }
    }

    /// Appends a subtree of `layout`, with its own parentheses.
    pub(crate) const fn append(&mut self, layout: &Layout, node: Node) {
        let from = self.profile.leaves();
        self.profile.append(&layout.profile, node);
        self.copy(layout, node, from);
    }

    /// Appends the elements of a subtree of `layout`, without its outermost parentheses.
    pub(crate) const fn append_elements(&mut self, layout: &Layout, node: Node) {
        let from = self.profile.leaves();
        self.profile.append_elements(&layout.profile, node);
        self.copy(layout, node, from);
    }

    /// Copies the modes of a subtree to the leaves that were made for them.
    const fn copy(&mut self, layout: &Layout, node: Node, from: usize) {
        let mut to = from;
        while to < self.profile.leaves() {
            self.shape[to] = layout.shape[node.start + to - from];
            self.stride[to] = layout.stride[node.start + to - from];
            to += 1;
        }
    }

    pub(crate) const fn finish(&self) -> Result<Layout, LayoutError> {
        let profile = attempt!(self.profile.finish());
        Layout {
            profile,
            shape: self.shape,
            stride: self.stride,
        }
        .checked()
    }
}
