//! How wide an access may be: common vectors, alignment, and taking elements from a domain.
//!
//! # Common vectors
//!
//! Vectors of `v` elements copy between `A` and `B` if every element lies in a vector: the elements at the offsets `c·v` to
//! `c·v + v − 1` of the one lie, in this order, at `v` consecutive offsets of the other, of which the first is a multiple of `v`.
//! An offset may have several elements, if the layout repeats it; then one of them counts. The elements are those whose linear
//! coordinate both layouts have.
//!
//! In other words: draw the points `(A(i), B(i))`. A vector is a diagonal run of `v` points that begins at multiples of `v`, and
//! the points must be a union of such runs. They are exactly if `v` divides `B(i) − A(i)` for every `i`, and the ends of every
//! longest diagonal run. So the possible `v` are the divisors of one number, the greatest common divisor of all these.
//!
//! ```text
//! A = Sw<2,2,2> o 64:1, B = 64:1     A(i):  0 … 15  20 … 23  16 … 19  28 …
//!                                    B(i):  0 … 15  16 … 19  20 … 23  24 …    runs end at 16, 20, 24: v = 4
//! ```
//!
//! The modes alone give a vector that is surely common. The points are looked up one by one only until nothing smaller than
//! what they allow is left above it: mostly a few.

use crate::complement::sorted_leaves;
use crate::error::{LayoutError, at_least_one, attempt};
use crate::int_tuple::IntTuple;
use crate::inverse::{chain, contiguous, leaf_steps};
use crate::layout::Layout;
use crate::modes::{Modes, SEARCH_LIMIT};
use crate::profile::MAX_MODES;
use crate::search::{Search, greatest_common_divisor};
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// Coordinates that a common layout of swizzled layouts is searched in one by one, at most.
const COMMON_LIMIT: i64 = 1 << 10;

/// Steps that looking up the points of two layouts takes, at most: some millions of branches and elements.
const STEP_LIMIT: i64 = 1 << 22;

impl Layout {
    /// The layout `C` of coordinates over which both layouts run through the same offsets one by one:
    /// `A(C(i)) = B(C(i)) = i`. It is the longest prefix of a right inverse of `B` with that property.
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
        let common = attempt!(self.prefix_that_counts(&attempt!(b.right_inverse())));
        // Where offsets occur several times, the longest inverse need not be the one that both share.
        let chained = attempt!(self.prefix_that_counts(&attempt!(chain(b))));
        Ok(if chained.size() > common.size() {
            chained
        } else {
            common
        })
    }

    /// The longest prefix `C` of an inverse with `self(C(i)) = i`.
    const fn prefix_that_counts(&self, inverse: &Self) -> Result<Self, LayoutError> {
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

    /// The largest `v` such that vectors of `v` elements copy between the two layouts: for every `c`, the elements at the
    /// offsets `c·v` to `c·v + v − 1` of the one lie, in this order, at `v` consecutive offsets of the other, of which the first is a
    /// multiple of `v`. See the head of `vectorize.rs`.
    ///
    /// [`max_common_layout`](Self::max_common_layout) is about the first vector alone, so that it may be longer.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let vector = |a: &str, b: &str| Layout::parse(a).unwrap().max_common_vector(&Layout::parse(b).unwrap());
    /// assert_eq!(vector("(4,8):(8,1)", "(4,8):(16,1)"), Ok(8));
    /// // Rows of 8, but every second one begins at a multiple of 4 only.
    /// assert_eq!(vector("(4,8):(8,1)", "(4,8):(12,1)"), Ok(4));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::SearchLimit`] where the modes do not decide and the search would take more than 2²² steps.
    pub const fn max_common_vector(&self, b: &Self) -> Result<i64, LayoutError> {
        Swizzled::plain(*self).max_common_vector(&Swizzled::plain(*b))
    }

    /// The largest `V` such that the offsets, as a set, fall into aligned runs of `V`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(8,4):(1,20)").unwrap().max_alignment(), 4);
    /// assert_eq!(Layout::parse("(9,4):(1,1)").unwrap().max_alignment(), 12);
    /// ```
    ///
    /// Exact where the modes do not overlap, leave no gaps, or the search ends within 2²² steps; otherwise a `V` with that
    /// property.
    pub const fn max_alignment(&self) -> i64 {
        let bound = self.alignment_of_modes();
        if self.modes_are_apart() {
            return bound;
        }
        if self.has_no_gaps() {
            let (min, max) = self.offset_range();
            return greatest_common_divisor(-(min as i128), max as i128 + 1) as i64;
        }
        let plain = Swizzled::plain(*self);
        Vectors::of(&plain, &plain, bound).safe
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
    /// This is one run. Under a swizzle the others may be shorter: [`max_common_vector`](Self::max_common_vector) is the width
    /// that all accesses can have.
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

    /// The largest `v` such that vectors of `v` elements copy between the two: for every `c`, the elements at the offsets `c·v` to
    /// `c·v + v − 1` of the one lie, in this order, at `v` consecutive offsets of the other, of which the first is a multiple of
    /// `v`. See [`Layout::max_common_vector`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// // Offsets 16 to 19 become 20 to 23.
    /// assert_eq!(s("Sw<2,2,2> o 64:1").max_common_vector(&s("64:1")), Ok(4));
    /// let tile = s("Sw<2,0,2> o (4,4):(1,4)");
    /// assert_eq!(tile.max_common_vector(&tile), Ok(16));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::max_common_vector`].
    pub const fn max_common_vector(&self, b: &Self) -> Result<i64, LayoutError> {
        let vectors = Vectors::of(self, b, vector_of_modes(self, b));
        if vectors.largest {
            Ok(vectors.safe)
        } else {
            Err(LayoutError::SearchLimit {
                operation: "max_common_vector",
            })
        }
    }

    /// The largest `V` such that the offsets, as a set, fall into aligned runs of `V`, each of which the swizzle keeps in order:
    /// the elements at the offsets `c·V` to `c·V + V − 1` lie, in this order, at `V` consecutive offsets of the layout without the
    /// swizzle, of which the first is a multiple of `V`.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let alignment = |text: &str| Swizzled::parse(text).unwrap().max_alignment();
    /// assert_eq!(alignment("(8,64):(64,1)"), 512);
    /// assert_eq!(alignment("Sw<3,3,3> o (8,64):(64,1)"), 8); // chunks of 8 stay whole, and change places
    /// assert_eq!(alignment("Sw<3,3,3> o 64:1"), 64); // the first row, which does not change
    /// assert_eq!(alignment("12 o 4:1"), 4);
    /// ```
    ///
    /// Exact as [`Layout::max_alignment`] is.
    pub const fn max_alignment(&self) -> i64 {
        let straight = Self {
            swizzle: Swizzle::IDENTITY,
            ..*self
        };
        if self.swizzle.is_identity() {
            if self.offset[0] == 0 {
                return self.layout.max_alignment();
            }
            if let Ok(true) = self.is_compact() {
                let (min, max) = self.offset_range();
                return greatest_common_divisor(min as i128, max as i128 + 1).unsigned_abs() as i64;
            }
        }
        Vectors::of(self, &straight, vector_of_modes(self, &straight)).safe
    }
}

/// What is known of the vectors that two layouts have in common.
#[derive(Clone, Copy)]
struct Vectors {
    /// A common vector.
    safe: i64,
    /// Whether there is no larger one.
    largest: bool,
}

impl Vectors {
    /// The greatest common divisor of what the points `(a(i), b(i))` ask for, down to `safe`, which divides it.
    const fn of(a: &Swizzled, b: &Swizzled, safe: i64) -> Self {
        let size = if a.size() < b.size() {
            a.size()
        } else {
            b.size()
        };
        let found = Self {
            safe,
            largest: true,
        };
        // The least and the greatest offset are ends of runs.
        let mut allowed = gcd(a.ends(size), b.ends(size));
        if allowed == safe as i128 {
            return found;
        }
        // The points are looked up by the layout that repeats its offsets less.
        let (a, b) = if a.layout.nullspace().size() > b.layout.nullspace().size() {
            (b, a)
        } else {
            (a, b)
        };
        let points = Points::of(a, b, size);
        let mut steps = 0;
        let mut i = 0;
        while i < size {
            let (x, y) = (a.index(i), b.index(i));
            allowed = gcd(allowed, y as i128 - x as i128);
            // The ends of the run, if it does not go on.
            let mut side = -1;
            while side < 2 {
                match points.contains(x.checked_add(side), y.checked_add(side), &mut steps) {
                    Some(true) => {}
                    Some(false) => {
                        let end = if side < 0 { x as i128 } else { x as i128 + 1 };
                        allowed = gcd(allowed, end);
                    }
                    None => {
                        return Self {
                            safe,
                            largest: false,
                        };
                    }
                }
                side += 2;
            }
            if allowed == safe as i128 {
                return found;
            }
            i += 1;
        }
        // At most the length of a run, of which there are no more elements than were looked at.
        Self {
            safe: allowed as i64,
            largest: true,
        }
    }
}

/// The points `(a(i), b(i))` for `0 <= i < size`, to be looked up.
struct Points<'a> {
    a: &'a Swizzled,
    b: &'a Swizzled,
    size: i64,
    search: Search,
    /// The step of the linear coordinate for each digit of the search.
    step: [i64; MAX_MODES],
    /// Coordinates along which `a` stands still.
    still: Layout,
}

impl<'a> Points<'a> {
    const fn of(a: &'a Swizzled, b: &'a Swizzled, size: i64) -> Self {
        let layout = a.layout.coalesce();
        let steps = leaf_steps(&layout);
        let (order, len) = sorted_leaves(&layout);
        let mut points = Self {
            a,
            b,
            size,
            search: Search::EMPTY,
            step: [0; MAX_MODES],
            still: layout.nullspace(),
        };
        let mut k = 0;
        while k < len {
            let (extent, stride) = layout.leaf(order[k]);
            points.search.push(stride, 0, extent - 1);
            points.step[k] = steps[order[k]];
            k += 1;
        }
        points
    }

    /// Whether `(x, y)` is a point; `None` where `steps` goes beyond the limit.
    const fn contains(&self, x: Option<i64>, y: Option<i64>, steps: &mut i64) -> Option<bool> {
        let (Some(x), Some(y)) = (x, y) else {
            return Some(false);
        };
        let Some(inside) = self
            .a
            .swizzle
            .inverse_apply(x)
            .checked_sub(self.a.offset[0])
        else {
            return Some(false);
        };
        let mut walk = self.search.walk(inside);
        let mut before = 0;
        loop {
            let Ok(digits) = self.search.next(&mut walk, "") else {
                return None;
            };
            *steps += walk.branches - before;
            before = walk.branches;
            if *steps > STEP_LIMIT {
                return None;
            }
            let Some(digits) = digits else {
                return Some(false);
            };
            let mut at = 0;
            let mut k = 0;
            while k < self.search.len {
                at += digits[k] * self.step[k];
                k += 1;
            }
            let mut z = 0;
            while z < self.still.size() {
                *steps += 1;
                if *steps > STEP_LIMIT {
                    return None;
                }
                let i = at + self.still.index(z);
                if i < self.size && self.b.index(i) == y {
                    return Some(true);
                }
                z += 1;
            }
        }
    }
}

impl Swizzled {
    /// What the ends of the offsets ask of an alignment: 0 for nothing, where a swizzle or a shorter domain hides them.
    const fn ends(&self, size: i64) -> i128 {
        if !self.swizzle.is_identity() || size != self.size() {
            return 0;
        }
        let (min, max) = self.layout.offset_range();
        let offset = self.offset[0] as i128;
        gcd(min as i128 + offset, max as i128 + 1 + offset)
    }
}

/// A vector that the two layouts surely have in common, from their modes.
///
/// Cut into common digits, the layouts without swizzles and offsets are one list of modes `extent:(stride in a, stride in b)`.
/// Modes that count one by one in both make a run; with the steps of all other modes, the offsets and the bits that swizzles
/// leave alone it has what divides all.
const fn vector_of_modes(a: &Swizzled, b: &Swizzled) -> i64 {
    const PAIRS: usize = 2 * MAX_MODES;
    let size = if a.size() < b.size() {
        a.size()
    } else {
        b.size()
    };
    let (x, y) = (a.layout.coalesce(), b.layout.coalesce());
    let mut extent = [0i64; PAIRS];
    let mut steps = [(0i128, 0i128); PAIRS];
    let mut len = 0;
    let (mut offset_a, mut offset_b) = (a.offset[0] as i128, b.offset[0] as i128);
    let (mut i, mut j) = (0, 0);
    // What is left of the two leaves, their steps there, and what is left of the domain.
    let (mut left_x, mut left_y) = (x.shape[0], y.shape[0]);
    let (mut step_x, mut step_y) = (x.step(0) as i128, y.step(0) as i128);
    let mut left = size;
    while left > 1 {
        let mut q = if left_x < left_y { left_x } else { left_y };
        if q > left {
            q = left;
        }
        // At the end of the domain it does not matter how the leaves go on.
        if q < left && (left_x % q != 0 || left_y % q != 0) {
            return 1;
        }
        // A mode downwards has the same offsets as one upwards from its other end.
        let down = step_x < 0 || (step_x == 0 && step_y < 0);
        if down {
            offset_a += (q as i128 - 1) * step_x;
            offset_b += (q as i128 - 1) * step_y;
        }
        extent[len] = q;
        steps[len] = if down {
            (-step_x, -step_y)
        } else {
            (step_x, step_y)
        };
        len += 1;
        left /= q;
        left_x /= q;
        left_y /= q;
        step_x *= q as i128;
        step_y *= q as i128;
        if left_x == 1 && i + 1 < x.leaves() {
            i += 1;
            (left_x, step_x) = (x.shape[i], x.step(i) as i128);
        }
        if left_y == 1 && j + 1 < y.leaves() {
            j += 1;
            (left_y, step_y) = (y.shape[j], y.step(j) as i128);
        }
    }
    // The run: each mode begins where the one before ends.
    let mut run = 1i128;
    let mut k = 0;
    while k < len {
        if steps[k].0 == run && steps[k].1 == run {
            run *= extent[k] as i128;
            steps[k] = (0, 0);
            k = 0;
        } else {
            k += 1;
        }
    }
    let mut vector = gcd(run, gcd(offset_a, offset_b));
    k = 0;
    while k < len {
        vector = gcd(vector, gcd(steps[k].0, steps[k].1));
        k += 1;
    }
    if !a.swizzle.is_identity() {
        vector = gcd(vector, 1 << a.swizzle.m());
    }
    if !b.swizzle.is_identity() {
        vector = gcd(vector, 1 << b.swizzle.m());
    }
    vector as i64
}

/// The greatest common divisor, not negative.
const fn gcd(a: i128, b: i128) -> i128 {
    greatest_common_divisor(a, b).unsigned_abs() as i128
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
/// use layout_core::{IntTuple, domain_distribute, domain_distribute_partial};
/// let shape = IntTuple::parse("(15,14)").unwrap();
/// assert_eq!(domain_distribute(&shape, 6).unwrap().to_string(), "(3,2):(1,15)");
/// // 4 = 2·2, and only one of the extents is even.
/// assert_eq!(domain_distribute(&shape, 4).unwrap_err().code(), "not_divisible");
/// assert_eq!(domain_distribute_partial(&shape, 4).unwrap().to_string(), "2:15");
/// ```
///
/// # Errors
///
/// [`LayoutError::SizeNotDivisible`] where `n` has a factor that the extents lack; [`domain_distribute_partial`] takes fewer
/// coordinates then.
pub const fn domain_distribute(shape: &IntTuple, n: i64) -> Result<Layout, LayoutError> {
    const OPERATION: &str = "domain_distribute";
    attempt!(at_least_one(OPERATION, "n", n));
    let distributed = attempt!(domain_distribute_partial(shape, n));
    if distributed.size() != n {
        return Err(LayoutError::SizeNotDivisible {
            operation: OPERATION,
            size: attempt!(Layout::compact(*shape)).size(),
            divisor: n,
        });
    }
    Ok(distributed)
}

/// As [`domain_distribute`], but with fewer than `n` coordinates where `n` has a factor that the extents lack, as CuTe's
/// `domain_distribute` does: from each mode in turn the greatest common divisor of its extent and of what is left of `n`.
///
/// ```
/// use layout_core::{IntTuple, domain_distribute_partial};
/// let shape = IntTuple::parse("(64,3)").unwrap();
/// assert_eq!(domain_distribute_partial(&shape, 128).unwrap().to_string(), "64:1");
/// ```
///
/// # Errors
///
/// `n` below 1; extents below 1.
pub const fn domain_distribute_partial(shape: &IntTuple, n: i64) -> Result<Layout, LayoutError> {
    attempt!(at_least_one("domain_distribute_partial", "n", n));
    let domain = attempt!(Layout::compact(*shape));
    let mut modes = Modes::<1>::EMPTY;
    let mut rest = n;
    let mut i = 0;
    while i < domain.leaves() {
        let common = gcd(domain.shape[i] as i128, rest as i128) as i64;
        modes.push_coalesced(common, [domain.step(i)]);
        rest /= common;
        i += 1;
    }
    modes.into_layout()
}
