//! Layouts whose offsets are coordinates: for predicates and TMA boxes.
//!
//! `identity((4,8))` maps the coordinate `(i,j)` to itself. Its strides are basis vectors, written as CuTe does:
//! `(4,8):(1@0,1@1)`, where `1@k` counts along axis `k`. Tiling a tensor and its identity layout in the same way gives each
//! thread the coordinates that it holds:
//!
//! ```
//! use layout_core::{CoordLayout, IntTuple, Layout};
//! let identity = CoordLayout::identity(&IntTuple::parse("(4,8)").unwrap()).unwrap();
//! let threads = Layout::parse("(2,16):(16,1)").unwrap();
//! let owned = identity.compose(&threads).unwrap();
//! assert_eq!(owned.to_string(), "(2,(4,4)):(4@1,(1@0,1@1))");
//! assert_eq!(owned.checked_index(3).unwrap().to_string(), "(1,4)");
//! ```
//!
//! A stride may have parts along several axes (`1@0+1@1`). An axis inside a nested coordinate is written from the inside
//! out: `1@0@1` counts along element 0 of element 1. There are at most [`MAX_AXES`] axes.

use core::str::FromStr;

use crate::basis::{Basis, MAX_PATH, Paths};
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::profile::{MAX_DEPTH, MAX_MODES, Profile, ProfileBuilder};
use crate::strided::{EVALUATION, Strided, add_scaled};
use crate::swizzled::Swizzled;

/// Axes that the coordinates can have.
///
/// ```
/// use layout_core::{CoordLayout, MAX_AXES};
/// assert_eq!(MAX_AXES, 8);
/// assert_eq!(CoordLayout::parse("4:1@8").unwrap_err().code(), "invalid_axis");
/// ```
pub const MAX_AXES: usize = 8;

/// A layout with coordinates instead of offsets.
///
/// ```
/// use layout_core::CoordLayout;
/// let transposed = CoordLayout::parse("(8,4):(1@1,1@0)").unwrap();
/// assert_eq!(transposed.checked_index(9).unwrap().to_string(), "(1,1)");
/// ```
pub type CoordLayout = Strided<MAX_AXES>;

impl Strided<MAX_AXES> {
    /// The layout that maps each coordinate of `shape` to itself (CuTe's `make_identity_layout`).
    ///
    /// ```
    /// use layout_core::{CoordLayout, IntTuple};
    /// let shape = IntTuple::parse("(4,(2,3))").unwrap();
    /// let identity = CoordLayout::identity(&shape).unwrap();
    /// assert_eq!(identity.to_string(), "(4,(2,3)):(1@0,(1@0@1,1@1@1))");
    /// ```
    ///
    /// # Errors
    ///
    /// More than [`MAX_AXES`] leaves; the errors of [`Layout::new`] for the shape.
    pub const fn identity(shape: &IntTuple) -> Result<Self, LayoutError> {
        let axes = shape.leaves();
        if axes > MAX_AXES {
            let limit = MAX_AXES;
            return Err(LayoutError::TooManyAxes { axes, limit });
        }
        let mut stride = [[0; MAX_AXES]; MAX_MODES];
        let mut i = 0;
        while i < axes {
            stride[i][i] = 1;
            i += 1;
        }
        Self {
            profile: shape.profile,
            shape: shape.values,
            stride,
            basis: Basis::Axes(shape.profile),
        }
        .checked()
    }

    /// Reads `(4,8):(1@0,1@1)`. Each stride is 0 or a sum of `integer@axis`; `E<1>` is `1@1`.
    ///
    /// ```
    /// use layout_core::CoordLayout;
    /// let layout = CoordLayout::parse("(4,8):(E<1>,2@0+1@1)").unwrap();
    /// assert_eq!(layout.to_string(), "(4,8):(1@1,2@0+1@1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.coord_layout() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// The layout along one axis: the same shape, and the strides' parts along that axis.
    ///
    /// ```
    /// use layout_core::CoordLayout;
    /// let layout = CoordLayout::parse("(4,8):(1@0,2@1)").unwrap();
    /// assert_eq!(layout.axis(1).unwrap().to_string(), "(4,8):(0,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// An axis beyond those of the coordinates.
    pub const fn axis(&self, axis: usize) -> Result<Layout, LayoutError> {
        let count = self.axes();
        if axis >= count {
            return Err(LayoutError::OutOfRange {
                what: "axis",
                index: axis,
                count,
            });
        }
        let mut stride = [[0]; MAX_MODES];
        let mut i = 0;
        while i < self.leaves() {
            stride[i] = [self.stride[i][axis]];
            i += 1;
        }
        Layout::from_parts(self.shape(), stride)
    }

    /// How many axes the coordinates have.
    pub(crate) const fn axes(&self) -> usize {
        self.basis.codomain().leaves()
    }

    /// The coordinate at linear coordinate `i`; the last leaf never wraps.
    ///
    /// ```
    /// use layout_core::CoordLayout;
    /// let layout = CoordLayout::parse("(4,8):(1@0,1@1)").unwrap();
    /// assert_eq!(layout.checked_index(6).unwrap().to_string(), "(2,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<IntTuple, LayoutError> {
        Ok(self.coordinate(&attempt!(self.checked_node_index(self.root(), i))))
    }

    /// The coordinate at a coordinate of the domain, natural, linear or partly linear.
    ///
    /// ```
    /// use layout_core::{CoordLayout, IntTuple};
    /// let layout = CoordLayout::parse("(4,8):(1@1,2@0)").unwrap();
    /// let at = layout.at_coord(&IntTuple::flat(&[3, 5]).unwrap()).unwrap();
    /// assert_eq!(at.to_string(), "(10,3)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::at_coord`].
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<IntTuple, LayoutError> {
        Ok(self.coordinate(&attempt!(self.vector_at(coordinate))))
    }

    pub(crate) const fn coordinate(&self, vector: &[i64; MAX_AXES]) -> IntTuple {
        let mut values = [0; MAX_MODES];
        let mut k = 0;
        while k < self.axes() {
            values[k] = vector[k];
            k += 1;
        }
        IntTuple {
            profile: self.basis.codomain(),
            values,
        }
    }

    /// The number of different values along each axis, from the least to the greatest: the shape of the smallest box that
    /// holds all coordinates.
    ///
    /// ```
    /// use layout_core::CoordLayout;
    /// let layout = CoordLayout::parse("(4,8):(1@0,2@1)").unwrap();
    /// assert_eq!(layout.coshape().unwrap().to_string(), "(4,15)");
    /// ```
    ///
    /// # Errors
    ///
    /// None for a valid layout.
    pub const fn coshape(&self) -> Result<IntTuple, LayoutError> {
        let mut extents = [0; MAX_AXES];
        let mut k = 0;
        while k < self.axes() {
            extents[k] = attempt!(self.axis(k)).cosize();
            k += 1;
        }
        Ok(self.coordinate(&extents))
    }

    /// Coordinates in the smallest box that holds all of them: the product of [`coshape`](Self::coshape).
    ///
    /// ```
    /// use layout_core::CoordLayout;
    /// assert_eq!(CoordLayout::parse("(4,8):(1@0,2@1)").unwrap().cosize(), Ok(60));
    /// ```
    ///
    /// # Errors
    ///
    /// A box of more than 2⁶³ coordinates.
    pub const fn cosize(&self) -> Result<i64, LayoutError> {
        attempt!(self.coshape()).size()
    }
}

impl Swizzled<MAX_AXES> {
    /// The coordinate at linear coordinate 0, which is added to all others.
    ///
    /// ```
    /// use layout_core::{CoordLayout, Slicer};
    /// let identity = CoordLayout::parse("(4,8):(1@0,1@1)").unwrap();
    /// let row = identity.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.to_string(), "(3,0) o (8):(1@1)");
    /// assert_eq!(row.offset_coord().to_string(), "(3,0)");
    /// ```
    pub const fn offset_coord(&self) -> IntTuple {
        self.layout.coordinate(&self.offset)
    }

    /// The coordinate at linear coordinate `i`; see [`CoordLayout::checked_index`].
    ///
    /// ```
    /// use layout_core::{CoordLayout, Slicer};
    /// let identity = CoordLayout::parse("(4,8):(1@0,1@1)").unwrap();
    /// let row = identity.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.coord_index(5).unwrap().to_string(), "(3,5)");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn coord_index(&self, i: i64) -> Result<IntTuple, LayoutError> {
        self.coord_at(&IntTuple::int(i))
    }

    /// The coordinate at a coordinate of the domain; see [`CoordLayout::at_coord`].
    ///
    /// ```
    /// use layout_core::{CoordLayout, IntTuple, Slicer};
    /// let identity = CoordLayout::parse("(4,8):(1@0,1@1)").unwrap();
    /// let row = identity.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
    /// assert_eq!(row.coord_at(&IntTuple::int(2)).unwrap().to_string(), "(3,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`CoordLayout::at_coord`].
    pub const fn coord_at(&self, coordinate: &IntTuple) -> Result<IntTuple, LayoutError> {
        let inner = attempt!(self.layout.vector_at(coordinate));
        let sum = attempt!(add_scaled(&self.offset, 1, &inner, EVALUATION));
        Ok(self.layout.coordinate(&sum))
    }

    /// The layout moved by a coordinate.
    ///
    /// ```
    /// use layout_core::{CoordLayout, IntTuple, Swizzled};
    /// let tile = Swizzled::plain(CoordLayout::parse("(4,8):(1@0,1@1)").unwrap());
    /// let second = tile.moved_to(&IntTuple::flat(&[0, 8]).unwrap()).unwrap();
    /// assert_eq!(second.to_string(), "(0,8) o (4,8):(1@0,1@1)");
    ///
    /// let column = Swizzled::plain(CoordLayout::parse("4:1@0").unwrap());
    /// let second = column.moved_to(&IntTuple::flat(&[0, 8]).unwrap()).unwrap();
    /// assert_eq!(second.to_string(), "(0,8) o 4:1@0");
    /// ```
    ///
    /// # Errors
    ///
    /// A coordinate without an axis that the layout uses; overflow.
    pub const fn moved_to(&self, by: &IntTuple) -> Result<Self, LayoutError> {
        let inside = attempt!(self.within(&by.profile));
        let mut vector = [0; MAX_AXES];
        let mut k = 0;
        while k < by.leaves() {
            vector[k] = by.values[k];
            k += 1;
        }
        inside.moved(&vector, inside.layout)
    }

    /// The same coordinates with the parentheses of `codomain`, which may have more axes: a stride such as `1@0` names an axis
    /// and leaves open which others there are.
    pub(crate) const fn within(&self, codomain: &Profile) -> Result<Self, LayoutError> {
        let own = self.layout.basis.codomain();
        let Some(leaf) = own.difference(codomain) else {
            return Ok(*self);
        };
        // As written: the coordinate or the layout that the coordinates go into comes first.
        let (left, right) = (codomain.leaves(), own.leaves());
        let refused = Err(LayoutError::NotCongruent { leaf, left, right });
        if left > MAX_AXES {
            return refused;
        }
        let mut moved = *self;
        moved.layout.basis = Basis::Axes(*codomain);
        moved.layout.stride = [[0; MAX_AXES]; crate::MAX_MODES];
        moved.offset = [0; MAX_AXES];
        let mut axis = 0;
        while axis < right {
            let place = same_path(&own, axis, codomain);
            let mut used = false;
            let mut i = 0;
            while i < self.layout.leaves() {
                used = used || self.layout.stride[i][axis] != 0;
                if let Some(place) = place {
                    moved.layout.stride[i][place] = self.layout.stride[i][axis];
                }
                i += 1;
            }
            match place {
                Some(place) => moved.offset[place] = self.offset[axis],
                None if used || self.offset[axis] != 0 => return refused,
                None => {}
            }
            axis += 1;
        }
        Ok(moved)
    }
}

/// The leaf of `other` that has the path of leaf `leaf` of `profile`, if there is one.
const fn same_path(profile: &Profile, leaf: usize, other: &Profile) -> Option<usize> {
    let mut path = [0; MAX_DEPTH];
    let depth = profile.path(leaf, &mut path);
    // A single axis is axis 0, whether it stands in parentheses or not.
    let depth = if depth == 0 { 1 } else { depth };
    let mut node = other.root();
    if other.is_leaf(node) && depth == 1 && path[0] == 0 {
        return Some(0);
    }
    let mut d = 0;
    while d < depth {
        if other.is_leaf(node) {
            return None;
        }
        node = match other.child(node, path[d]) {
            Some(child) => child,
            None => return None,
        };
        d += 1;
    }
    if other.is_leaf(node) {
        Some(node.start)
    } else {
        None
    }
}

/// A coordinate layout moved by a coordinate: what a slice or a tile of one is.
///
/// ```
/// use layout_core::{CoordLayout, Slicer, MovedCoords};
/// let identity = CoordLayout::parse("(4,8):(1@0,1@1)").unwrap();
/// let row: MovedCoords = identity.slice(&Slicer::parse("(3,_)").unwrap()).unwrap();
/// assert_eq!(row.offset_coord().to_string(), "(3,0)");
/// ```
pub type MovedCoords = Swizzled<MAX_AXES>;

impl<const K: usize> Strided<K> {
    /// A layout of integers that is the same at two coordinates exactly if this one is: axes side by side in one integer.
    pub(crate) const fn linearized(&self, operation: &'static str) -> Result<Layout, LayoutError> {
        if let Basis::Names(_) = self.basis {
            return match self.integers() {
                Some(layout) => Ok(layout),
                None => Err(LayoutError::NamedStrides { operation }),
            };
        }
        if self.basis.components() == 1 {
            return Ok(self.component(0));
        }
        let mut stride = [[0i64]; MAX_MODES];
        let mut weight = 1i64;
        let mut k = 0;
        while k < self.basis.components() && k < K {
            let mut reach = 0i64;
            let mut i = 0;
            while i < self.leaves() {
                let step = self.stride[i][k];
                let part = attempt!(fits(step.checked_mul(weight), operation));
                stride[i][0] = attempt!(fits(stride[i][0].checked_add(part), operation));
                reach += ((self.shape[i] - 1) * step).abs();
                i += 1;
            }
            let width = attempt!(fits(reach.checked_mul(2), operation));
            weight = attempt!(fits(weight.checked_mul(width + 1), operation));
            k += 1;
        }
        Layout::from_parts(self.shape(), stride)
    }
}

impl FromStr for Strided<MAX_AXES> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// A layout whose strides are sums of `integer@axis`.
    pub(crate) const fn coord_layout(&mut self) -> Result<CoordLayout, ParseError> {
        self.peek();
        let start = self.at;
        let shape = match self.tuple() {
            Ok(shape) => shape,
            Err(error) => return Err(error),
        };
        if let Err(error) = self.require(b':') {
            return Err(error);
        }
        let mut terms = Terms::new();
        let mut profile = ProfileBuilder::new();
        let mut depth = 0usize;
        loop {
            while self.take(b'(') {
                depth += 1;
                profile.open();
            }
            let leaf = profile.leaf();
            if let Some(error) = profile.error() {
                return Err(self.error_since(start, error));
            }
            if let Some(leaf) = leaf
                && let Err(error) = self.axis_sum(&mut terms, leaf)
            {
                return Err(error);
            }
            while depth > 0 && self.take(b')') {
                depth -= 1;
                profile.close();
            }
            if depth == 0 {
                break;
            }
            if !self.take(b',') {
                return Err(self.error(ParseErrorKind::ExpectedCommaOrClose));
            }
        }
        let made = match profile.finish() {
            Ok(profile) => match shape.profile.difference(&profile) {
                None => terms.layout(shape),
                Some(leaf) => Err(LayoutError::NotCongruent {
                    leaf,
                    left: shape.leaves(),
                    right: profile.leaves(),
                }),
            },
            Err(error) => Err(error),
        };
        match made {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.error_since(start, error)),
        }
    }

    /// `2@1 - 1@0`, `E<1>`, `0`.
    const fn axis_sum(&mut self, terms: &mut Terms, leaf: usize) -> Result<(), ParseError> {
        let mut first = true;
        loop {
            let negative = if self.take(b'-') {
                true
            } else if self.take(b'+') || first {
                false
            } else {
                return Ok(());
            };
            first = false;
            self.peek();
            let start = self.at;
            let mut factor = 1;
            let mut path = [0u8; MAX_PATH];
            let mut length = 0;
            if self.word(b"E") {
                // Outermost first, as CuTe's template arguments.
                let mut open = b'<';
                while self.take(open) {
                    open = b',';
                    if let Err(error) = self.axis_index(&mut path, &mut length) {
                        return Err(error);
                    }
                }
                if let Err(error) = self.require(b'>') {
                    return Err(error);
                }
            } else {
                factor = match self.integer() {
                    Ok(factor) => factor,
                    Err(error) => return Err(error),
                };
                while self.take(b'@') {
                    if let Err(error) = self.axis_index(&mut path, &mut length) {
                        return Err(error);
                    }
                }
                // Innermost first: turn the path around.
                let mut i = 0;
                while i < length / 2 {
                    path.swap(i, length - 1 - i);
                    i += 1;
                }
                if length == 0 && factor == 0 {
                    continue;
                }
            }
            if length == 0 {
                return Err(self.error_since(start, LayoutError::MissingAxis));
            }
            let factor = if negative {
                factor.wrapping_neg()
            } else {
                factor
            };
            if let Err(error) = terms.push(leaf, factor, path, length) {
                return Err(self.error_since(start, error));
            }
        }
    }

    const fn axis_index(
        &mut self,
        path: &mut [u8; MAX_PATH],
        length: &mut usize,
    ) -> Result<(), ParseError> {
        self.peek();
        let start = self.at;
        let index = match self.integer() {
            Ok(index) => index,
            Err(error) => return Err(error),
        };
        if index < 0 || index >= MAX_AXES as i64 {
            let (axis, limit) = (index, MAX_AXES);
            return Err(self.error_since(start, LayoutError::InvalidAxis { axis, limit }));
        }
        if *length == MAX_PATH {
            return Err(self.error_since(start, LayoutError::DeepAxis { limit: MAX_PATH }));
        }
        path[*length] = index as u8;
        *length += 1;
        Ok(())
    }
}

/// The terms of all strides, before the axes are known.
struct Terms {
    paths: Paths,
    leaf: [usize; MAX_MODES * 2],
    factor: [i64; MAX_MODES * 2],
}

impl Terms {
    const fn new() -> Self {
        Self {
            paths: Paths::new(),
            leaf: [0; MAX_MODES * 2],
            factor: [0; MAX_MODES * 2],
        }
    }

    const fn push(
        &mut self,
        leaf: usize,
        factor: i64,
        path: [u8; MAX_PATH],
        length: usize,
    ) -> Result<(), LayoutError> {
        let at = self.paths.len;
        if at == MAX_MODES * 2 {
            return Err(LayoutError::TooManyTerms {
                limit: MAX_MODES * 2,
            });
        }
        self.paths.path[at] = path;
        self.paths.depth[at] = length as u8;
        self.leaf[at] = leaf;
        self.factor[at] = factor;
        self.paths.len += 1;
        Ok(())
    }

    const fn layout(&self, shape: IntTuple) -> Result<CoordLayout, LayoutError> {
        let (mut codomain, axis) = attempt!(self.paths.profile(MAX_AXES));
        if codomain.leaves() == 1 {
            // One axis: the coordinates are integers.
            codomain = crate::profile::Profile::LEAF;
        }
        let mut stride = [[0i64; MAX_AXES]; MAX_MODES];
        let mut t = 0;
        while t < self.paths.len {
            let sum = &mut stride[self.leaf[t]][axis[t]];
            *sum = attempt!(fits(sum.checked_add(self.factor[t]), "a stride"));
            t += 1;
        }
        Strided {
            profile: shape.profile,
            shape: shape.values,
            stride,
            basis: Basis::Axes(codomain),
        }
        .checked()
    }
}
