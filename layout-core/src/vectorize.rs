//! How wide an access may be: common vectors, alignment, and taking elements from a domain.

use crate::complement::sorted_leaves;
use crate::error::{LayoutError, at_least_one, attempt};
use crate::int_tuple::IntTuple;
use crate::inverse::contiguous;
use crate::layout::Layout;
use crate::modes::{Modes, SEARCH_LIMIT};
use crate::search::greatest_common_divisor;
use crate::swizzled::Swizzled;

/// Coordinates that a common layout of swizzled layouts is searched in one by one, at most.
const COMMON_LIMIT: i64 = 1 << 10;

/// Offsets whose neighbours are looked up, at most.
const ALIGNMENT_LIMIT: i64 = 1 << 16;

impl Layout {
    /// The layout `C` of coordinates over which both layouts run through the same offsets one by one:
    /// `A(C(i)) = B(C(i)) = i`. It is the longest prefix of `B`'s right inverse with that property.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// // Both are contiguous along the second mode.
    /// let common = l("(4,8):(8,1)").max_common_layout(&l("(4,8):(16,1)")).unwrap();
    /// assert_eq!(common.to_string(), "8:4");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow.
    pub const fn max_common_layout(&self, b: &Self) -> Result<Self, LayoutError> {
        let inverse = attempt!(b.right_inverse());
        let mut prefix = Modes::<1>::EMPTY;
        let mut i = 0;
        while i < inverse.leaves() {
            let (extent, stride) = inverse.leaf(i);
            // The longest part of the mode that still counts one by one: what counts, counts when cut short.
            let (mut counts, mut most) = (1, extent);
            let mut middle = extent;
            while counts < most {
                let mut longer = prefix;
                longer.push_coalesced(middle, [stride]);
                if self.counts(&attempt!(longer.into_layout())) {
                    counts = middle;
                } else {
                    most = middle - 1;
                }
                middle = counts + (most - counts + 1) / 2;
            }
            prefix.push_coalesced(counts, [stride]);
            if counts < extent {
                break;
            }
            i += 1;
        }
        prefix.into_layout()
    }

    /// Whether `self ∘ c` is `0, 1, 2, …` within the domain.
    const fn counts(&self, c: &Self) -> bool {
        match self.compose_strict(c) {
            Ok(r) => {
                let r = r.coalesce();
                r.leaves() == 1 && (r.step(0) == 1 || r.shape[0] == 1)
            }
            Err(_) => false,
        }
    }

    /// How many elements one vector access can move between the two layouts: the size of
    /// [`max_common_layout`](Self::max_common_layout).
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert_eq!(l("(4,8):(8,1)").max_common_vector(&l("(4,8):(16,1)")), Ok(8));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`max_common_layout`](Self::max_common_layout).
    pub const fn max_common_vector(&self, b: &Self) -> Result<i64, LayoutError> {
        Ok(attempt!(self.max_common_layout(b)).size())
    }

    /// The largest `V` such that the offsets, as a set, fall into aligned runs of `V`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(8,4):(1,20)").unwrap().max_alignment(), 4);
    /// assert_eq!(Layout::parse("(9,4):(1,1)").unwrap().max_alignment(), 12);
    /// ```
    ///
    /// Exact where the modes do not overlap, leave no gaps, or have at most 2¹⁶ coordinates; otherwise a `V` with that property.
    pub const fn max_alignment(&self) -> i64 {
        let bound = self.alignment_of_modes();
        if self.modes_are_apart() {
            return bound;
        }
        if self.has_no_gaps() {
            let (min, max) = self.offset_range();
            return greatest_common_divisor(-(min as i128), max as i128 + 1) as i64;
        }
        Swizzled::plain(*self).alignment_of_runs(bound)
    }

    /// An alignment of the offsets, from the modes alone: the run from 0 on, and the strides of what it does not use.
    const fn alignment_of_modes(&self) -> i64 {
        let (run, used) = contiguous(self);
        let mut alignment = 1i128;
        let mut i = 0;
        while i < run.len {
            alignment *= run.extent[i] as i128;
            i += 1;
        }
        i = 0;
        while i < self.leaves() {
            if self.shape[i] > used[i] {
                let step = self.step(i).unsigned_abs() as i128 * used[i] as i128;
                alignment = greatest_common_divisor(alignment, step);
            }
            i += 1;
        }
        alignment as i64
    }

    /// Whether every stride is positive or 0, and beyond what the smaller ones reach together.
    const fn modes_are_apart(&self) -> bool {
        let (order, len) = sorted_leaves(self);
        let mut reach = 0;
        let mut i = 0;
        while i < len {
            let stride = self.step(order[i]);
            if stride <= reach {
                return false;
            }
            reach += (self.shape[order[i]] - 1) * stride;
            i += 1;
        }
        true
    }
}

impl Swizzled {
    /// The layout of coordinates over which both run through consecutive offsets, each from its offset at 0:
    /// `A(C(i)) − A(0) = B(C(i)) − B(0) = i`. The longest such layout up to 2¹⁰ coordinates; beyond, the longest prefix
    /// of the common layout of the layouts inside that the swizzles leave in order.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// let common = s("Sw<3,3,3> o (8,64):(64,1)").max_common_layout(&s("(8,64):(64,1)")).unwrap();
    /// assert_eq!(common.to_string(), "64:8");
    /// let moved = s("Sw<3,3,3> o 64 o (8,64):(64,1)").max_common_layout(&s("(8,64):(64,1)")).unwrap();
    /// assert_eq!(moved.to_string(), "8:8");
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow.
    pub const fn max_common_layout(&self, b: &Self) -> Result<Layout, LayoutError> {
        let inside = attempt!(self.layout.max_common_layout(&b.layout));
        let (size, common) = (inside.size(), self.size());
        if common > COMMON_LIMIT {
            // The swizzles leave the first offsets of the common layout inside in order, up to here.
            let mut run = 1;
            while run < size && run < SEARCH_LIMIT && self.both_at(b, inside.index(run), run) {
                run += 1;
            }
            return prefix(&inside, run);
        }
        // The coordinates of consecutive offsets, one by one.
        let mut coordinates = [0i64; COMMON_LIMIT as usize];
        let mut len = 1;
        while len < common {
            let Ok(at) = self.preimage(self.index(0) + len) else {
                break;
            };
            if at >= b.size() || !self.both_at(b, at, len) {
                break;
            }
            coordinates[len as usize] = at;
            len += 1;
        }
        // Coordinate 0 need not be the first where layouts are not injective.
        while len > 1 {
            if let Some(layout) = layout_of(&coordinates, len) {
                return Ok(layout);
            }
            len -= 1;
        }
        Ok(Layout::UNIT)
    }

    /// Whether both are `i` beyond their first offsets at coordinate `at`.
    const fn both_at(&self, b: &Self, at: i64, i: i64) -> bool {
        self.index(at) == self.index(0) + i && b.index(at) == b.index(0) + i
    }

    /// How many elements one vector access can move between the two: the size of
    /// [`max_common_layout`](Self::max_common_layout).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// assert_eq!(s("Sw<3,3,3> o 64 o (8,64):(64,1)").max_common_vector(&s("(8,64):(64,1)")), Ok(8));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`max_common_layout`](Self::max_common_layout).
    pub const fn max_common_vector(&self, b: &Self) -> Result<i64, LayoutError> {
        Ok(attempt!(self.max_common_layout(b)).size())
    }

    /// The largest `V` such that the offsets, as a set, fall into aligned runs of `V`.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// assert_eq!(s("Sw<3,3,3> o (8,64):(64,1)").max_alignment(), 512); // a permutation of 0..512
    /// assert_eq!(s("Sw<3,3,3> o (8,8):(64,1)").max_alignment(), 8);
    /// ```
    ///
    /// Exact where the offsets have no gaps or there are at most 2¹⁶ coordinates; otherwise a `V` with that property.
    pub const fn max_alignment(&self) -> i64 {
        let inner = self.layout.max_alignment() as i128;
        let mut bound = greatest_common_divisor(inner, self.offset[0].unsigned_abs() as i128);
        if self.swizzle.is_identity() {
            if self.offset[0] == 0 {
                return inner as i64;
            }
        } else {
            bound = greatest_common_divisor(bound, 1 << self.swizzle.m());
        }
        let (min, max) = self.offset_range();
        if let Ok(true) = self.is_compact() {
            let ends = (min.unsigned_abs() as i128, max as i128 + 1);
            return greatest_common_divisor(ends.0, ends.1.unsigned_abs() as i128) as i64;
        }
        self.alignment_of_runs(bound as i64)
    }

    /// The greatest common divisor of where runs of consecutive offsets begin and end; `bound` where that is too much work.
    const fn alignment_of_runs(&self, bound: i64) -> i64 {
        let size = self.size();
        if size > ALIGNMENT_LIMIT {
            return bound;
        }
        let mut alignment = 0i128;
        let mut i = 0;
        while i < size {
            let offset = self.index(i);
            let mut end = 0;
            while end < 2 {
                // The offset before the one, the one after the other.
                let neighbour = if end == 0 { offset - 1 } else { offset + 1 };
                match self.preimage(neighbour) {
                    Ok(_) => {}
                    Err(LayoutError::NotInImage { .. }) => {
                        let boundary = (offset + end).unsigned_abs() as i128;
                        alignment = greatest_common_divisor(alignment, boundary);
                    }
                    Err(_) => return bound,
                }
                end += 1;
            }
            if alignment == 1 {
                return 1;
            }
            i += 1;
        }
        alignment as i64
    }
}

/// The first `n` coordinates of a layout of `run` and more: whole modes, and the part of the next that still fits.
const fn prefix(inside: &Layout, run: i64) -> Result<Layout, LayoutError> {
    let mut modes = Modes::<1>::EMPTY;
    let mut left = run;
    let mut i = 0;
    while i < inside.leaves() && left > 1 {
        let (extent, stride) = inside.leaf(i);
        let part = if extent < left { extent } else { left };
        modes.push_coalesced(part, [stride]);
        left = if part == extent { left / extent } else { 1 };
        i += 1;
    }
    modes.into_layout()
}

/// The flat layout with the first `len` values, if there is one: each factor is the longest linear run.
const fn layout_of(values: &[i64], len: i64) -> Option<Layout> {
    let mut modes = Modes::<1>::EMPTY;
    let mut step = 1i64;
    while step < len {
        let stride = values[step as usize];
        let mut run = 2;
        while step * run < len && values[(step * run) as usize] == stride * run {
            run += 1;
        }
        if len % (step * run) != 0 || modes.len == crate::MAX_MODES {
            return None;
        }
        modes.push(run, [stride]);
        step *= run;
    }
    let Ok(layout) = modes.into_layout() else {
        return None;
    };
    let mut i = 0;
    while i < len {
        if layout.index(i) != values[i as usize] {
            return None;
        }
        i += 1;
    }
    Some(layout)
}

/// A layout that takes `n` coordinates of a shape, in rising order, evenly from each mode, so that the shape can be divided
/// by it.
///
/// ```
/// use layout_core::{IntTuple, domain_distribute};
/// let shape = IntTuple::parse("(15,14)").unwrap();
/// assert_eq!(domain_distribute(&shape, 6).unwrap().to_string(), "(3,2):(1,15)");
/// ```
///
/// # Errors
///
/// [`LayoutError::SizeNotDivisible`] where `n` has a factor that the extents lack (CuTe returns fewer coordinates then).
pub const fn domain_distribute(shape: &IntTuple, n: i64) -> Result<Layout, LayoutError> {
    attempt!(at_least_one("domain_distribute", "n", n));
    let domain = attempt!(Layout::compact(*shape));
    let mut modes = Modes::<1>::EMPTY;
    let mut rest = n;
    let mut i = 0;
    while i < domain.leaves() {
        let common = greatest_common_divisor(domain.shape[i] as i128, rest as i128) as i64;
        modes.push_coalesced(common, [domain.step(i)]);
        rest /= common;
        i += 1;
    }
    if rest != 1 {
        return Err(LayoutError::SizeNotDivisible {
            operation: "domain_distribute",
            size: domain.size(),
            divisor: n,
        });
    }
    modes.into_layout()
}
