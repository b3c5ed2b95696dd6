//! One type under every kind of layout: extents, and strides that are vectors of integers.
//!
//! `(4,(2,3)):(2,(1,8))` sends the coordinate `(c0,(c1,c2))` to `2·c0 + 1·c1 + 8·c2`. The same function takes a linear
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
//! Nothing in this depends on what the offsets are. Strides may be integers ([`Layout`](crate::Layout)), linear forms in
//! names that get their values at run time ([`Affine`](crate::Affine)), or coordinates ([`CoordLayout`](crate::CoordLayout)):
//! vectors with `K` integer components in each case. The operations that only rearrange modes or add strides are therefore
//! written once, for every `K`.
//!
//! Extents are at least 1; strides may be zero (the same element again) or negative (downwards). A layout whose size or
//! whose offsets would not fit in 64 bits cannot be made, so that evaluation inside the domain never overflows.

use core::fmt;

use crate::basis::Basis;
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, write_tuple};
use crate::modes::Modes;
use crate::profile::{MAX_MODES, Node, Profile, ProfileBuilder};

pub(crate) const EVALUATION: &str = "evaluation of a layout";
pub(crate) const SIZE: &str = "the size of a layout";
const OFFSETS: &str = "the offsets of a layout";

/// A function from coordinates to offsets with `K` integer components: congruent shape and strides.
///
/// Use it by the names of its kinds: [`Layout`](crate::Layout) (`K = 1`, integer offsets), [`Affine`](crate::Affine) (named
/// strides) and [`CoordLayout`](crate::CoordLayout) (offsets that are coordinates). Units are the user's: elements, bytes,
/// threads.
///
/// ```
/// use layout_core::{Affine, CoordLayout, Layout};
/// let rows = Layout::parse("4:2").unwrap();
/// // The same method on every kind.
/// assert_eq!(Layout::parse("(8,64):(64,1)").unwrap().compose(&rows).unwrap().to_string(), "4:128");
/// assert_eq!(Affine::parse("(8,64):(ld,1)").unwrap().compose(&rows).unwrap().to_string(), "4:2*ld");
/// assert_eq!(CoordLayout::parse("(8,64):(1@0,1@1)").unwrap().compose(&rows).unwrap().to_string(), "4:2@0");
/// ```
#[derive(Clone, Copy)]
pub struct Strided<const K: usize> {
    pub(crate) profile: Profile,
    pub(crate) shape: [i64; MAX_MODES],
    pub(crate) stride: [[i64; K]; MAX_MODES],
    pub(crate) basis: Basis,
}

/// Whether no component of a vector differs from 0.
pub(crate) const fn is_zero<const K: usize>(vector: &[i64; K]) -> bool {
    let mut k = 0;
    while k < K {
        if vector[k] != 0 {
            return false;
        }
        k += 1;
    }
    true
}

/// `a + n·b`, or the overflow of `operation`.
pub(crate) const fn add_scaled<const K: usize>(
    a: &[i64; K],
    n: i64,
    b: &[i64; K],
    operation: &'static str,
) -> Result<[i64; K], LayoutError> {
    let mut result = *a;
    let mut k = 0;
    while k < K {
        let sum = a[k] as i128 + n as i128 * b[k] as i128;
        if sum > i64::MAX as i128 || sum < i64::MIN as i128 {
            return Err(LayoutError::Overflow { operation });
        }
        result[k] = sum as i64;
        k += 1;
    }
    Ok(result)
}

impl<const K: usize> Strided<K> {
    /// The layout whose top-level modes are the given layouts.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert_eq!(Layout::tuple(&[l("4:1"), l("(2,3):(4,8)")]).unwrap().to_string(), "(4,(2,3)):(1,(4,8))");
    /// ```
    ///
    /// # Errors
    ///
    /// An empty slice, a result beyond the capacity, coordinates with different axes.
    pub const fn tuple(modes: &[Self]) -> Result<Self, LayoutError> {
        if modes.is_empty() {
            return Err(LayoutError::EmptyTuple);
        }
        let mut builder = LayoutBuilder::like(&modes[0]);
        builder.open();
        let mut i = 0;
        while i < modes.len() {
            attempt!(builder.append_other(&modes[i], modes[i].root()));
            i += 1;
        }
        builder.close();
        builder.finish()
    }

    /// The extents.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(8,1)").unwrap().shape().to_string(), "(4,8)");
    /// ```
    pub const fn shape(&self) -> IntTuple {
        IntTuple {
            profile: self.profile,
            values: self.shape,
        }
    }

    /// Number of top-level modes; 1 for a bare mode such as `8:1`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,(2,2)):(2,(1,8))").unwrap().rank(), 2);
    /// ```
    pub const fn rank(&self) -> usize {
        self.profile.rank(self.root())
    }

    /// Deepest nesting: 0 for `8:1`, 1 for `(4,8):(1,4)`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,(2,2)):(2,(1,8))").unwrap().depth(), 2);
    /// ```
    pub const fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// Number of leaves: modes that are integers.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,(2,2)):(2,(1,8))").unwrap().leaves(), 3);
    /// ```
    pub const fn leaves(&self) -> usize {
        self.profile.leaves()
    }

    /// Number of coordinates: the product of the extents.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(16,1)").unwrap().size(), 32);
    /// ```
    pub const fn size(&self) -> i64 {
        self.node_size(self.root())
    }

    /// The natural coordinate of linear coordinate `i` (CuTe's `idx2crd`). The last leaf never wraps, so this is defined
    /// for every `i >= 0`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let layout = Layout::parse("(4,(2,2)):(2,(1,8))").unwrap();
    /// assert_eq!(layout.coord(7).unwrap().to_string(), "(3,(1,0))");
    /// ```
    ///
    /// # Errors
    ///
    /// A negative `i`.
    pub const fn coord(&self, i: i64) -> Result<IntTuple, LayoutError> {
        if i < 0 {
            return Err(LayoutError::NegativeIndex { index: i });
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

    /// Whether two layouts are written the same, in `const`; named strides may be numbered differently. See
    /// [`equal_as_functions`](Self::equal_as_functions) for sameness as functions.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert!(!l("(2,2):(1,2)").equals(&l("4:1")) && l("(2,2):(1,2)").equal_as_functions(&l("4:1")));
    /// ```
    pub const fn equals(&self, other: &Self) -> bool {
        self.shape().equals(&other.shape()) && self.same_strides(other)
    }

    pub(crate) const fn root(&self) -> Node {
        self.profile.root()
    }

    /// The strides of leaves `0..leaves`, which both have, are the same vectors in a common basis.
    pub(crate) const fn same_strides(&self, other: &Self) -> bool {
        let Ok(merged) = self.basis.merge::<K>(&other.basis) else {
            return false;
        };
        if let (Basis::Axes(a), Basis::Axes(b)) = (&self.basis, &other.basis)
            && a.difference(b).is_some()
        {
            return false;
        }
        let mut i = 0;
        while i < self.leaves() {
            let theirs = merged.adapt(&other.stride[i]);
            let mut k = 0;
            while k < K {
                if self.stride[i][k] != theirs[k] {
                    return false;
                }
                k += 1;
            }
            i += 1;
        }
        true
    }

    pub(crate) const fn extract(&self, node: Node) -> Result<Self, LayoutError> {
        let mut builder = LayoutBuilder::like(self);
        builder.append(self, node);
        builder.finish()
    }

    /// The leaves as a flat list of modes.
    pub(crate) const fn modes(&self) -> Modes<K> {
        Modes {
            len: self.leaves(),
            extent: self.shape,
            stride: self.stride,
        }
    }

    /// A flat list of modes in this layout's basis: `1:0` for none, a bare mode for one.
    pub(crate) const fn with_modes(&self, modes: &Modes<K>) -> Result<Self, LayoutError> {
        let profile = if modes.len <= 1 {
            Profile::LEAF
        } else {
            Profile::flat(modes.len)
        };
        self.with_profile(modes, profile)
    }

    /// The modes with the given parentheses around them, in this layout's basis.
    pub(crate) const fn with_profile(
        &self,
        modes: &Modes<K>,
        profile: Profile,
    ) -> Result<Self, LayoutError> {
        let mut shape = [0; MAX_MODES];
        let mut stride = [[0; K]; MAX_MODES];
        shape[0] = 1;
        let mut i = 0;
        while i < modes.len {
            shape[i] = modes.extent[i];
            stride[i] = modes.stride[i];
            i += 1;
        }
        Self {
            profile,
            shape,
            stride,
            basis: self.basis,
        }
        .checked()
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

    /// The offset of linear coordinate `i` of a subtree; its last leaf never wraps.
    pub(crate) const fn checked_node_index(
        &self,
        node: Node,
        i: i64,
    ) -> Result<[i64; K], LayoutError> {
        let mut offset = [0; K];
        let mut rest = i;
        let mut k = node.start;
        while k < node.end {
            let extent = self.shape[k];
            let digit = if k + 1 < node.end {
                rest.rem_euclid(extent)
            } else {
                rest
            };
            offset = attempt!(add_scaled(&offset, digit, &self.stride[k], EVALUATION));
            rest = rest.div_euclid(extent);
            k += 1;
        }
        Ok(offset)
    }

    /// The offset at a coordinate: an integer may stand for a whole mode, a tuple never for an integer.
    pub(crate) const fn vector_at(&self, coordinate: &IntTuple) -> Result<[i64; K], LayoutError> {
        self.node_at(self.root(), coordinate, coordinate.root())
    }

    const fn node_at(
        &self,
        node: Node,
        coordinate: &IntTuple,
        at: Node,
    ) -> Result<[i64; K], LayoutError> {
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
            return Err(LayoutError::CoordinateMismatch {
                mode: node.start,
                expected,
                found,
            });
        }
        let mut offset = [0; K];
        let mut mode = Some(self.profile.first(node));
        let mut element = Some(coordinate.profile.first(at));
        while let (Some(m), Some(e)) = (mode, element) {
            let part = attempt!(self.node_at(m, coordinate, e));
            offset = attempt!(add_scaled(&offset, 1, &part, EVALUATION));
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
        let components = self.basis.components();
        let mut size = 1i128;
        let mut k = 0;
        // The extents with the first component, which most layouts have alone; then the others.
        loop {
            let mut min = 0i128;
            let mut max = 0i128;
            let mut i = 0;
            while i < leaves {
                let extent = self.shape[i];
                if k == 0 {
                    if extent < 1 {
                        return Err(LayoutError::InvalidExtent { mode: i, extent });
                    }
                    size *= extent as i128;
                    if size > LIMIT {
                        return Err(LayoutError::Overflow { operation: SIZE });
                    }
                }
                let reach = (extent as i128 - 1) * self.stride[i][k] as i128;
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
            k += 1;
            if k >= components || k >= K {
                return Ok(self);
            }
        }
    }

    /// Every stride times `factor`.
    pub(crate) const fn scaled(
        &self,
        factor: i64,
        operation: &'static str,
    ) -> Result<Self, LayoutError> {
        let mut result = *self;
        let mut i = 0;
        while i < self.leaves() {
            result.stride[i] = attempt!(add_scaled(&[0; K], factor, &self.stride[i], operation));
            i += 1;
        }
        result.checked()
    }

    /// The layout with integer strides, if they are integers: no name is used, or the coordinates are integers.
    pub(crate) const fn integers(&self) -> Option<Strided<1>> {
        let mut stride = [[0; 1]; MAX_MODES];
        let mut i = 0;
        while i < self.leaves() {
            let mut k = 1;
            while k < K {
                if self.stride[i][k] != 0 {
                    return None;
                }
                k += 1;
            }
            stride[i] = [self.stride[i][0]];
            i += 1;
        }
        if let Basis::Axes(profile) = &self.basis
            && profile.leaves() > 1
        {
            return None;
        }
        Some(Strided {
            profile: self.profile,
            shape: self.shape,
            stride,
            basis: Basis::Integers,
        })
    }
}

/// Sets the compact stride of leaf `i` and returns the next running product.
pub(crate) const fn compact_step(
    shape: &IntTuple,
    stride: &mut [[i64; 1]; MAX_MODES],
    running: i64,
    i: usize,
) -> Result<i64, LayoutError> {
    let extent = shape.values[i];
    if extent < 1 {
        return Err(LayoutError::InvalidExtent { mode: i, extent });
    }
    if extent > 1 {
        stride[i] = [running];
    }
    fits(running.checked_mul(extent), SIZE)
}

impl<const K: usize> PartialEq for Strided<K> {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl<const K: usize> Eq for Strided<K> {}

impl<const K: usize> core::hash::Hash for Strided<K> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.shape().hash(state);
        // Equal layouts may number their names differently, so only what does not depend on that counts.
        let components = match self.basis {
            Basis::Axes(_) => K,
            _ => 1,
        };
        for stride in &self.stride[..self.leaves()] {
            stride[..components].hash(state);
        }
    }
}

impl<const K: usize> fmt::Display for Strided<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.profile, |f, i| write!(f, "{}", self.shape[i]))?;
        f.write_str(":")?;
        write_tuple(f, &self.profile, |f, i| {
            self.basis.write_vector(f, &self.stride[i])
        })
    }
}

impl<const K: usize> fmt::Debug for Strided<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Basis {
    /// A stride or a component of an offset: `8`, `2*ld+1`, `1@0`.
    pub(crate) fn write_vector<const K: usize>(
        &self,
        f: &mut fmt::Formatter<'_>,
        vector: &[i64; K],
    ) -> fmt::Result {
        match self {
            Self::Integers => write!(f, "{}", vector[0]),
            Self::Names(names) => write_form(f, names, vector),
            Self::Axes(profile) => write_axes(f, profile, vector),
        }
    }
}

/// `2*ld+1`: names first, in order of first use.
fn write_form(
    f: &mut fmt::Formatter<'_>,
    names: &crate::basis::Names,
    vector: &[i64],
) -> fmt::Result {
    let mut first = true;
    for p in 0..names.len {
        let factor = vector[p + 1];
        if factor == 0 {
            continue;
        }
        match factor {
            1 if first => {}
            1 => f.write_str("+")?,
            -1 => f.write_str("-")?,
            _ if first || factor < 0 => write!(f, "{factor}*")?,
            _ => write!(f, "+{factor}*")?,
        }
        f.write_str(names.name[p].as_str())?;
        first = false;
    }
    match vector[0] {
        0 if !first => Ok(()),
        constant if first || constant < 0 => write!(f, "{constant}"),
        constant => write!(f, "+{constant}"),
    }
}

/// `1@0+2@1`; the path of a nested axis from the inside out, `1@0@1` for element 0 of element 1, as CuTe writes it.
fn write_axes(f: &mut fmt::Formatter<'_>, profile: &Profile, vector: &[i64]) -> fmt::Result {
    let mut first = true;
    for (axis, &part) in vector.iter().enumerate().take(profile.leaves()) {
        if part == 0 {
            continue;
        }
        let plus = if first || part < 0 { "" } else { "+" };
        write!(f, "{plus}{part}")?;
        let mut path = [0; crate::MAX_DEPTH];
        let depth = profile.path(axis, &mut path);
        if depth == 0 {
            // The one axis of integer coordinates.
            f.write_str("@0")?;
        }
        for index in path[..depth].iter().rev() {
            write!(f, "@{index}")?;
        }
        first = false;
    }
    if first { f.write_str("0") } else { Ok(()) }
}

/// Builds a layout from left to right; errors are reported by `finish`.
#[derive(Clone, Copy)]
pub(crate) struct LayoutBuilder<const K: usize> {
    profile: ProfileBuilder,
    shape: [i64; MAX_MODES],
    stride: [[i64; K]; MAX_MODES],
    basis: Basis,
}

impl LayoutBuilder<1> {
    pub(crate) const fn new() -> Self {
        Self::with_basis(Basis::Integers)
    }

    /// Appends the mode `extent:stride`.
    pub(crate) const fn leaf(&mut self, extent: i64, stride: i64) {
        self.mode(extent, [stride]);
    }
}

impl<const K: usize> LayoutBuilder<K> {
    pub(crate) const fn with_basis(basis: Basis) -> Self {
        Self {
            profile: ProfileBuilder::new(),
            shape: [0; MAX_MODES],
            stride: [[0; K]; MAX_MODES],
            basis,
        }
    }

    /// A builder of layouts in the basis of `layout`.
    pub(crate) const fn like(layout: &Strided<K>) -> Self {
        Self::with_basis(layout.basis)
    }

    pub(crate) const fn open(&mut self) {
        self.profile.open();
    }

    pub(crate) const fn close(&mut self) {
        self.profile.close();
    }

    /// Appends one mode.
    pub(crate) const fn mode(&mut self, extent: i64, stride: [i64; K]) {
        if let Some(at) = self.profile.leaf() {
            self.shape[at] = extent;
            self.stride[at] = stride;
        }
    }

    /// Appends a subtree of `layout`, which has this basis, with its own parentheses.
    pub(crate) const fn append(&mut self, layout: &Strided<K>, node: Node) {
        let from = self.profile.leaves();
        self.profile.append(&layout.profile, node);
        self.copy(layout, node, from);
    }

    /// Appends the elements of a subtree of `layout`, which has this basis, without its outermost parentheses.
    pub(crate) const fn append_elements(&mut self, layout: &Strided<K>, node: Node) {
        let from = self.profile.leaves();
        self.profile.append_elements(&layout.profile, node);
        self.copy(layout, node, from);
    }

    /// Appends a subtree of a layout of any basis, to a builder whose basis widens to hold both.
    pub(crate) const fn append_other(
        &mut self,
        layout: &Strided<K>,
        node: Node,
    ) -> Result<(), LayoutError> {
        let merged = attempt!(self.basis.merge::<K>(&layout.basis));
        self.basis = merged.basis;
        let from = self.profile.leaves();
        self.append(layout, node);
        let mut i = from;
        while i < self.profile.leaves() {
            self.stride[i] = merged.adapt(&self.stride[i]);
            i += 1;
        }
        Ok(())
    }

    /// Copies the modes of a subtree to the leaves that were made for them.
    const fn copy(&mut self, layout: &Strided<K>, node: Node, from: usize) {
        let mut to = from;
        while to < self.profile.leaves() {
            self.shape[to] = layout.shape[node.start + to - from];
            self.stride[to] = layout.stride[node.start + to - from];
            to += 1;
        }
    }

    pub(crate) const fn finish(&self) -> Result<Strided<K>, LayoutError> {
        attempt!(self.finish_unchecked()).checked()
    }

    /// The tree without the checks of a layout: for tuples of any integers, which are built as shapes without strides.
    pub(crate) const fn finish_unchecked(&self) -> Result<Strided<K>, LayoutError> {
        let profile = attempt!(self.profile.finish());
        Ok(Strided {
            profile,
            shape: self.shape,
            stride: self.stride,
            basis: self.basis,
        })
    }
}
