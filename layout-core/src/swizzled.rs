//! The swizzled layout `Sw o offset o L`: `c -> Sw(offset + L(c))`.
//!
//! The offset stands *inside* the swizzle, since a swizzle is not additive: `Sw(16 + x)` is not `16 + Sw(x)` when 16 touches
//! a bit that the swizzle reads or changes. Slicing a swizzled layout therefore moves the fixed coordinates' offset to that
//! place and is exact. Operations that only rearrange coordinates act on the layout inside:
//! `(Sw o offset o L) ∘ B = Sw o offset o (L ∘ B)`, and so do the divides.
//!
//! ```
//! use layout_core::Swizzled;
//! let tile = Swizzled::parse("Sw<3,0,3> o (8,8):(8,1)").unwrap();
//! assert_eq!(tile.at(&[3, 5]), (3 * 8 + 5) ^ 3);
//! assert_eq!(tile.to_string(), "Sw<3,0,3> o (8,8):(8,1)");
//! ```
//!
//! `cosize` includes the swizzle: `Sw<2,0,2> o 9:1` reaches offset 10 (from 8), so it needs 11 elements although `9:1` needs 9.

use core::fmt;
use core::str::FromStr;

use crate::basis::Basis;
use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::profile::MAX_MODES;
use crate::strided::{Strided, add_scaled, is_zero};
use crate::structure::rearranging;
use crate::swizzle::Swizzle;

/// `Sw o offset o L`: `c -> Sw(offset + L(c))`. A plain layout is the case of no swizzle and offset 0. The swizzle acts on
/// the unit of the layout's offsets: elements, bytes, …
///
/// `Swizzled` alone is a swizzled [`Layout`]. `K` is the number of components of an offset, as in [`Strided`]: slices of a
/// layout with named strides or of a coordinate layout have an offset too.
///
/// ```
/// use layout_core::Swizzled;
/// let tile = Swizzled::parse("Sw<3,4,3> o 16 o (8,64):(64,1)").unwrap();
/// assert_eq!((tile.swizzle().b(), tile.offset(), tile.size()), (3, 16, 512));
/// ```
#[derive(Clone, Copy)]
pub struct Swizzled<const K: usize = 1> {
    pub(crate) swizzle: Swizzle,
    pub(crate) offset: [i64; K],
    pub(crate) layout: Strided<K>,
}

impl<const K: usize> PartialEq for Swizzled<K> {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl<const K: usize> Eq for Swizzled<K> {}

impl<const K: usize> core::hash::Hash for Swizzled<K> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        // Names may be numbered differently in equal offsets.
        self.swizzle.hash(state);
        self.offset[..1].hash(state);
        self.layout.hash(state);
    }
}

impl<const K: usize> Swizzled<K> {
    /// The plain layout as a swizzled one.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let layout = Layout::parse("(8,64):(64,1)").unwrap();
    /// assert_eq!(Swizzled::plain(layout).as_plain(), Some(layout));
    /// ```
    pub const fn plain(layout: Strided<K>) -> Self {
        Self {
            swizzle: Swizzle::IDENTITY,
            offset: [0; K],
            layout,
        }
    }

    /// The swizzle, [`Swizzle::IDENTITY`] for none.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert!(Swizzled::parse("8:1").unwrap().swizzle().is_identity());
    /// ```
    pub const fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// The layout inside.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 9:1").unwrap().layout().to_string(), "9:1");
    /// ```
    pub const fn layout(&self) -> Strided<K> {
        self.layout
    }

    /// The layout inside, if neither swizzle nor offset change it.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert!(Swizzled::parse("9:1").unwrap().as_plain().is_some());
    /// assert!(Swizzled::parse("3 o 9:1").unwrap().as_plain().is_none());
    /// ```
    pub const fn as_plain(&self) -> Option<Strided<K>> {
        if self.swizzle.is_identity() && is_zero(&self.offset) {
            Some(self.layout)
        } else {
            None
        }
    }

    /// The shape of the layout inside.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().shape().to_string(), "(4,4)");
    /// ```
    pub const fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    /// Number of top-level modes.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().rank(), 2);
    /// ```
    pub const fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Number of coordinates.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().size(), 16);
    /// ```
    pub const fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The natural coordinate of linear coordinate `i`; see [`Layout::coord`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// assert_eq!(tile.coord(6).unwrap().to_string(), "(2,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// A negative `i`.
    pub const fn coord(&self, i: i64) -> Result<IntTuple, LayoutError> {
        self.layout.coord(i)
    }

    /// The same swizzle and offset around another layout.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o 4 o 16:1").unwrap();
    /// let other = tile.with_layout(Layout::parse("(4,4):(4,1)").unwrap()).unwrap();
    /// assert_eq!(other.to_string(), "Sw<2,0,2> o 4 o (4,4):(4,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Offsets that do not fit in 63 bits.
    pub const fn with_layout(&self, layout: Strided<K>) -> Result<Self, LayoutError> {
        self.moved(&[0; K], layout)
    }

    /// The same swizzle around another layout, moved further by `offset`.
    pub(crate) const fn moved(
        &self,
        offset: &[i64; K],
        layout: Strided<K>,
    ) -> Result<Self, LayoutError> {
        const LIMIT: i128 = i64::MAX as i128 / 2;
        let moved = Self {
            swizzle: self.swizzle,
            offset: attempt!(add_scaled(&self.offset, 1, offset, "an offset")),
            layout,
        };
        if moved.swizzle.is_identity() && is_zero(&moved.offset) {
            // A plain layout may use all 64 bits: nothing is added to it or changed in it.
            return Ok(moved);
        }
        let mut k = 0;
        while k < K {
            let (mut min, mut max) = (moved.offset[k] as i128, moved.offset[k] as i128);
            let mut i = 0;
            while i < layout.leaves() {
                let reach = (layout.shape[i] as i128 - 1) * layout.stride[i][k] as i128;
                if reach < 0 {
                    min += reach;
                } else {
                    max += reach;
                }
                i += 1;
            }
            if min < -LIMIT || max > LIMIT {
                return Err(LayoutError::Overflow {
                    operation: "the offsets of a swizzled layout",
                });
            }
            k += 1;
        }
        Ok(moved)
    }

    /// Whether two swizzled layouts are written the same, in `const`.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let s = |text: &str| Swizzled::parse(text).unwrap();
    /// assert!(s("Sw<2,0,2> o 9:1").equals(&s("Sw<2,0,2> o 9:1")));
    /// ```
    pub const fn equals(&self, other: &Self) -> bool {
        if !self.swizzle.equals(&other.swizzle) || !self.layout.equals(&other.layout) {
            return false;
        }
        let Ok(merged) = self.layout.basis.merge::<K>(&other.layout.basis) else {
            return false;
        };
        let theirs = merged.adapt(&other.offset);
        let mut k = 0;
        while k < K {
            if self.offset[k] != theirs[k] {
                return false;
            }
            k += 1;
        }
        true
    }

    /// Top-level mode `i`, under the same swizzle and offset.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// assert_eq!(tile.get(0).unwrap().to_string(), "Sw<2,0,2> o 4:4");
    /// ```
    ///
    /// # Errors
    ///
    /// `i` at or beyond the rank.
    pub const fn get(&self, i: usize) -> Result<Self, LayoutError> {
        self.with_layout(attempt!(self.layout.get(i)))
    }

    /// The same modes without inner parentheses; a bare mode stays.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<2,0,2> o ((2,2),4):((4,8),1)").unwrap();
    /// assert_eq!(tile.flatten().to_string(), "Sw<2,0,2> o (2,2,4):(4,8,1)");
    /// ```
    #[must_use]
    pub const fn flatten(&self) -> Self {
        Self {
            layout: self.layout.flatten(),
            ..*self
        }
    }
}

rearranging!([<const K: usize>] Swizzled<K>, Strided<K>, mode => mode, self => self.layout, result => self.with_layout(result),
    "Swizzled::parse(\"Sw<2,0,2> o (2,3,4):(1,2,6)\").unwrap()");

impl Swizzled {
    /// `swizzle o offset o layout`.
    ///
    /// ```
    /// use layout_core::{Layout, Swizzle, Swizzled};
    /// let rows = Layout::parse("(8,64):(64,1)").unwrap();
    /// let tile = Swizzled::new(Swizzle::new(3, 3, 3).unwrap(), 0, rows).unwrap();
    /// assert_eq!(tile.to_string(), "Sw<3,3,3> o (8,64):(64,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// Offsets that do not fit in 63 bits.
    pub const fn new(swizzle: Swizzle, offset: i64, layout: Layout) -> Result<Self, LayoutError> {
        Self {
            swizzle,
            ..Self::plain(layout)
        }
        .moved(&[offset], layout)
    }

    /// Reads `Sw<3,4,3> o 16 o (8,64):(64,1)`; swizzle and offset may be left out.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 3 o 9:1").unwrap().offset(), 3);
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.swizzled() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// The offset that is added before the swizzle.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 3 o 9:1").unwrap().offset(), 3);
    /// ```
    pub const fn offset(&self) -> i64 {
        self.offset[0]
    }

    /// The greatest offset plus 1 (less the least offset, if that is negative): the elements of memory that the layout needs.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 9:1").unwrap().cosize(), 11);
    /// ```
    ///
    /// Exact, by branch and bound over the modes. A layout built to defeat the search (more than a million branches) gets
    /// an upper bound of it, never less.
    pub const fn cosize(&self) -> i64 {
        let (min, max) = self.offset_range();
        max - (if min < 0 { min } else { 0 }) + 1
    }

    /// Least and greatest offset that occur (see [`cosize`](Self::cosize) on exactness).
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 4 o 4:1").unwrap().offset_range(), (4, 7));
    /// ```
    pub const fn offset_range(&self) -> (i64, i64) {
        if self.swizzle.is_identity() {
            let (min, max) = self.layout.offset_range();
            return (self.offset[0] + min, self.offset[0] + max);
        }
        let max = greatest(&self.layout, self.offset[0], 1, self.swizzle, 0);
        // Sw(x) = !(Sw(!x) ^ target), so the least is the complement of the greatest over the complements.
        let min = !greatest(
            &self.layout,
            !self.offset[0],
            -1,
            self.swizzle,
            self.swizzle.target_mask(),
        );
        (min, max)
    }

    /// The offset at linear coordinate `i`; see [`Layout::index`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let column = Swizzled::parse("Sw<2,0,2> o 4:4").unwrap();
    /// assert_eq!([0, 1, 2, 3].map(|i| column.index(i)), [0, 5, 10, 15]);
    /// ```
    pub const fn index(&self, i: i64) -> i64 {
        self.swizzle
            .apply(self.offset[0].wrapping_add(self.layout.index(i)))
    }

    /// [`Swizzled::index`], or an error where it does not fit.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let column = Swizzled::parse("Sw<2,0,2> o 4:4").unwrap();
    /// assert_eq!(column.checked_index(3), Ok(15));
    /// ```
    ///
    /// # Errors
    ///
    /// Overflow, which needs a coordinate far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<i64, LayoutError> {
        match self.layout.checked_index(i) {
            Ok(inner) => self.finish(inner),
            Err(error) => Err(error),
        }
    }

    /// The offset at one linear coordinate for each top-level mode.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().at(&[3, 1]), 14);
    /// ```
    ///
    /// # Panics
    ///
    /// Unless there is exactly one coordinate for each top-level mode, as [`Layout::at`].
    #[track_caller]
    pub const fn at(&self, coordinates: &[i64]) -> i64 {
        self.swizzle
            .apply(self.offset[0].wrapping_add(self.layout.at(coordinates)))
    }

    /// The offset at any compatible coordinate; see [`Layout::at_coord`].
    ///
    /// ```
    /// use layout_core::{IntTuple, Swizzled};
    /// let tile = Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap();
    /// assert_eq!(tile.at_coord(&IntTuple::int(7)), Ok(14));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::at_coord`].
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<i64, LayoutError> {
        match self.layout.at_coord(coordinate) {
            Ok(inner) => self.finish(inner),
            Err(error) => Err(error),
        }
    }

    const fn finish(&self, inner: i64) -> Result<i64, LayoutError> {
        match self.offset[0].checked_add(inner) {
            Some(x) => Ok(self.swizzle.apply(x)),
            None => Err(LayoutError::Overflow {
                operation: "evaluation of a swizzled layout",
            }),
        }
    }
}

/// Part of the search for the greatest offset: modes before `mode` are fixed in `base`, `mode` runs over `low..=high`.
#[derive(Clone, Copy)]
struct Branch {
    mode: usize,
    low: i64,
    high: i64,
    base: i64,
    bound: i64,
}

/// Branches that the search looks at, at most.
const BRANCH_LIMIT: usize = 1 << 20;

/// The greatest `Sw(base + sign·L(c)) ^ flip`, by halving one mode after the other, largest stride first.
const fn greatest(layout: &Layout, base: i64, sign: i64, swizzle: Swizzle, flip: i64) -> i64 {
    let (order, len) = crate::complement::sorted_leaves(layout);
    // Strides upwards, in falling order; a mode downwards starts at its other end.
    let mut base = base;
    let mut extent = [0i64; MAX_MODES];
    let mut stride = [0i64; MAX_MODES];
    let mut k = 0;
    while k < len {
        let leaf = order[len - 1 - k];
        extent[k] = layout.shape[leaf];
        stride[k] = layout.step(leaf) * sign;
        if stride[k] < 0 {
            base += (extent[k] - 1) * stride[k];
            stride[k] = -stride[k];
        }
        k += 1;
    }
    // reach[k]: what modes k and later can add.
    let mut reach = [0i64; MAX_MODES + 1];
    k = len;
    while k > 0 {
        k -= 1;
        reach[k] = reach[k + 1] + (extent[k] - 1) * stride[k];
    }
    if len == 0 {
        return swizzle.apply(base) ^ flip;
    }
    let mut stack = [Branch {
        mode: 0,
        low: 0,
        high: 0,
        base: 0,
        bound: 0,
    }; 2 * 64 + MAX_MODES];
    stack[0] = Branch {
        mode: 0,
        low: 0,
        high: extent[0] - 1,
        base,
        bound: i64::MAX,
    };
    let mut depth = 1;
    let mut best = i64::MIN;
    let mut visited = 0;
    while depth > 0 {
        depth -= 1;
        let branch = stack[depth];
        if branch.bound <= best {
            continue;
        }
        visited += 1;
        if visited > BRANCH_LIMIT {
            // Give up: nothing left is greater than its bound.
            best = branch.bound;
            continue;
        }
        let k = branch.mode;
        if branch.low == branch.high {
            let base = branch.base + branch.low * stride[k];
            if k + 1 == len {
                let value = swizzle.apply(base) ^ flip;
                if value > best {
                    best = value;
                }
            } else {
                stack[depth] = Branch {
                    mode: k + 1,
                    low: 0,
                    high: extent[k + 1] - 1,
                    base,
                    bound: branch.bound,
                };
                depth += 1;
            }
            continue;
        }
        let middle = branch.low + (branch.high - branch.low) / 2;
        let mut lower = branch;
        lower.high = middle;
        let mut upper = branch;
        upper.low = middle + 1;
        lower.bound = bound(&lower, stride[k], reach[k + 1], swizzle, flip);
        upper.bound = bound(&upper, stride[k], reach[k + 1], swizzle, flip);
        // The more promising half is looked at first.
        let (first, second) = if lower.bound > upper.bound {
            (lower, upper)
        } else {
            (upper, lower)
        };
        stack[depth] = second;
        stack[depth + 1] = first;
        depth += 2;
    }
    best
}

/// No value of the branch is greater than this: bits above the first that varies are known, the others may be 1.
const fn bound(branch: &Branch, stride: i64, reach: i64, swizzle: Swizzle, flip: i64) -> i64 {
    let mut low = branch.base + branch.low * stride;
    let high = branch.base + branch.high * stride + reach;
    if low < 0 && high >= 0 {
        // The sign is never changed, so the greatest is among those from 0 up.
        low = 0;
    }
    let varying = (low ^ high) as u64;
    let unknown = if varying == 0 {
        0
    } else {
        (u64::MAX >> varying.leading_zeros()) as i64
    };
    let unknown = unknown | (swizzle.apply(unknown) ^ unknown);
    ((swizzle.apply(low) ^ flip) & !unknown) | unknown
}

impl<const K: usize> From<Strided<K>> for Swizzled<K> {
    fn from(layout: Strided<K>) -> Self {
        Self::plain(layout)
    }
}

impl<const K: usize> fmt::Display for Swizzled<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.swizzle != Swizzle::IDENTITY {
            write!(f, "{} o ", self.swizzle)?;
        }
        if !is_zero(&self.offset) {
            match self.layout.basis {
                Basis::Axes(profile) => {
                    crate::int_tuple::write_tuple(f, &profile, |f, k| {
                        write!(f, "{}", self.offset[k])
                    })?;
                }
                basis => basis.write_vector(f, &self.offset)?,
            }
            f.write_str(" o ")?;
        }
        write!(f, "{}", self.layout)
    }
}

impl<const K: usize> fmt::Debug for Swizzled<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Swizzled {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// `Sw<B,M,S>`, also spelt `S<…>` or `Swizzle<…>`.
    pub(crate) const fn swizzle(&mut self) -> Result<Swizzle, ParseError> {
        self.peek();
        let start = self.at;
        if !(self.word(b"Swizzle") || self.word(b"Sw") || self.word(b"S")) {
            return Err(self.error(ParseErrorKind::ExpectedSwizzle));
        }
        let mut numbers = [0i64; 3];
        let open = [b'<', b',', b','];
        let mut i = 0;
        while i < 3 {
            if let Err(error) = self.require(open[i]) {
                return Err(error);
            }
            numbers[i] = match self.integer() {
                Ok(number) => number,
                Err(error) => return Err(error),
            };
            i += 1;
        }
        if let Err(error) = self.require(b'>') {
            return Err(error);
        }
        let argument = ["B", "M", "S"];
        i = 0;
        while i < 3 {
            let least = if i == 2 { -62 } else { 0 };
            if numbers[i] < least || numbers[i] > 62 {
                let error = LayoutError::InvalidNumber {
                    operation: "Sw<B,M,S>",
                    argument: argument[i],
                    value: numbers[i],
                    accepted: if i == 2 { "-62 to 62" } else { "0 to 62" },
                };
                return Err(self.error_since(start, error));
            }
            i += 1;
        }
        let (b, m, s) = (numbers[0] as u32, numbers[1] as u32, numbers[2] as i32);
        match Swizzle::new(b, m, s) {
            Ok(swizzle) => Ok(swizzle),
            Err(error) => Err(self.error_since(start, error)),
        }
    }

    /// `[swizzle o] [offset o] layout`.
    pub(crate) const fn swizzled(&mut self) -> Result<Swizzled, ParseError> {
        let mut swizzle = Swizzle::IDENTITY;
        let mut offset = 0;
        self.peek();
        let start = self.at;
        if self.peek() == b'S' {
            swizzle = match self.swizzle() {
                Ok(swizzle) => swizzle,
                Err(error) => return Err(error),
            };
            if let Err(error) = self.require(b'o') {
                return Err(error);
            }
        }
        if self.at_integer() {
            // An offset if `o` follows, else the shape of a layout of one mode.
            let before = *self;
            let number = match self.integer() {
                Ok(number) => number,
                Err(error) => return Err(error),
            };
            if self.take(b'o') {
                offset = number;
            } else {
                *self = before;
            }
        }
        let layout = match self.layout() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match Swizzled::new(swizzle, offset, layout) {
            Ok(layout) => Ok(layout),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}
