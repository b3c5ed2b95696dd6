//! The composed layout `Sw o offset o L`: `c -> Sw(offset + L(c))`.
//!
//! The offset stands *inside* the swizzle, since a swizzle is not additive: `Sw(16 + x)` is not `16 + Sw(x)` when 16 touches
//! a bit that the swizzle reads or changes. Slicing a swizzled layout therefore moves the fixed coordinates' offset to that
//! place and is exact ([`slice_swizzled`](crate::slice_swizzled)).
//!
//! ```
//! use layout_core::Swizzled;
//! let tile = Swizzled::parse("Sw<3,0,3> o (8,8):(8,1)").unwrap();
//! assert_eq!(tile.at(&[3, 5]), (3 * 8 + 5) ^ 3);
//! assert_eq!(tile.to_string(), "Sw<3,0,3> o (8,8):(8,1)");
//! ```
//!
//! `cosize` is the true one: `Sw<2,0,2> o 9:1` reaches offset 10 (from 8), so it needs 11 elements although `9:1` needs 9.

use core::fmt;
use core::str::FromStr;

use crate::error::LayoutError;
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::profile::MAX_MODES;
use crate::swizzle::Swizzle;

/// `Sw o offset o L`: `c -> Sw(offset + L(c))`. A plain layout is the case of no swizzle and offset 0. Units: elements, or
/// whatever the layout counts; the swizzle acts on that same unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Swizzled {
    swizzle: Swizzle,
    offset: i64,
    layout: Layout,
}

impl Swizzled {
    /// `swizzle o offset o layout`.
    ///
    /// # Errors
    ///
    /// Offsets that do not fit in 63 bits.
    pub const fn new(swizzle: Swizzle, offset: i64, layout: Layout) -> Result<Self, LayoutError> {
        const LIMIT: i64 = i64::MAX / 2;
        let (min, max) = layout.offset_range();
        match (offset.checked_add(min), offset.checked_add(max)) {
            (Some(min), Some(max)) if min >= -LIMIT && max <= LIMIT => Ok(Self {
                swizzle,
                offset,
                layout,
            }),
            // A plain layout may use all 64 bits: nothing is added to it or changed in it.
            _ if offset == 0 && swizzle.is_identity() => Ok(Self {
                swizzle,
                offset,
                layout,
            }),
            _ => Err(LayoutError::Overflow {
                operation: "the offsets of a composed layout",
            }),
        }
    }

    /// The plain layout as a composed one.
    pub const fn plain(layout: Layout) -> Self {
        Self {
            swizzle: Swizzle::IDENTITY,
            offset: 0,
            layout,
        }
    }

    /// Reads `Sw<3,4,3> o 16 o (8,64):(64,1)`; swizzle and offset may be left out.
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

    /// The swizzle, [`Swizzle::IDENTITY`] for none.
    pub const fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// What is added before the swizzle.
    pub const fn offset(&self) -> i64 {
        self.offset
    }

    /// The layout inside.
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The layout inside, if neither swizzle nor offset change it.
    pub const fn as_plain(&self) -> Option<Layout> {
        if self.swizzle.is_identity() && self.offset == 0 {
            Some(self.layout)
        } else {
            None
        }
    }

    /// The shape of the layout inside.
    pub const fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    /// Number of top-level modes.
    pub const fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// Number of coordinates.
    pub const fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The true greatest offset plus 1 (less the least offset, if that is negative): the elements that memory for it needs.
    ///
    /// Exact, by branch and bound over the modes. A layout built to defeat the search (more than a million branches) gets
    /// an upper bound of it, never less.
    pub const fn cosize(&self) -> i64 {
        let (min, max) = self.offset_range();
        max - (if min < 0 { min } else { 0 }) + 1
    }

    /// Least and greatest offset that occur (see [`cosize`](Self::cosize) on exactness).
    pub const fn offset_range(&self) -> (i64, i64) {
        if self.swizzle.is_identity() {
            let (min, max) = self.layout.offset_range();
            return (self.offset + min, self.offset + max);
        }
        let max = greatest(&self.layout, self.offset, 1, self.swizzle, 0);
        // Sw(x) = !(Sw(!x) ^ target), so the least is the complement of the greatest over the complements.
        let min = !greatest(
            &self.layout,
            !self.offset,
            -1,
            self.swizzle,
            self.swizzle.target_mask(),
        );
        (min, max)
    }

    /// The offset at linear coordinate `i`; see [`Layout::index`].
    pub const fn index(&self, i: i64) -> i64 {
        self.swizzle
            .apply(self.offset.wrapping_add(self.layout.index(i)))
    }

    /// [`Swizzled::index`], or an error where it does not fit.
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
    /// # Panics
    ///
    /// Unless there is exactly one coordinate for each top-level mode, as [`Layout::at`].
    #[track_caller]
    pub const fn at(&self, coordinates: &[i64]) -> i64 {
        self.swizzle
            .apply(self.offset.wrapping_add(self.layout.at(coordinates)))
    }

    /// The offset at any compatible coordinate; see [`Layout::at_coord`].
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

    /// The natural coordinate of linear coordinate `i`; see [`Layout::coord`].
    ///
    /// # Errors
    ///
    /// A negative `i`.
    pub const fn coord(&self, i: i64) -> Result<IntTuple, LayoutError> {
        self.layout.coord(i)
    }

    /// The same swizzle and offset around another layout.
    ///
    /// # Errors
    ///
    /// As [`Swizzled::new`].
    pub const fn with_layout(&self, layout: Layout) -> Result<Self, LayoutError> {
        Self::new(self.swizzle, self.offset, layout)
    }

    /// Whether two composed layouts are written the same, in `const`.
    pub const fn equals(&self, other: &Self) -> bool {
        self.swizzle.equals(&other.swizzle)
            && self.offset == other.offset
            && self.layout.equals(&other.layout)
    }

    const fn finish(&self, inner: i64) -> Result<i64, LayoutError> {
        match self.offset.checked_add(inner) {
            Some(x) => Ok(self.swizzle.apply(x)),
            None => Err(LayoutError::Overflow {
                operation: "evaluation of a composed layout",
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
        stride[k] = layout.stride[leaf] * sign;
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

impl From<Layout> for Swizzled {
    fn from(layout: Layout) -> Self {
        Self::plain(layout)
    }
}

impl fmt::Display for Swizzled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.swizzle != Swizzle::IDENTITY {
            write!(f, "{} o ", self.swizzle)?;
        }
        if self.offset != 0 {
            write!(f, "{} o ", self.offset)?;
        }
        write!(f, "{}", self.layout)
    }
}

impl fmt::Debug for Swizzled {
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
            return Err(self.error(ParseErrorKind::Expected('S')));
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
        // Numbers beyond 99 are all equally wrong; this keeps them from wrapping into range.
        let b = if numbers[0] < 0 || numbers[0] > 99 {
            99
        } else {
            numbers[0] as u32
        };
        let m = if numbers[1] < 0 || numbers[1] > 99 {
            99
        } else {
            numbers[1] as u32
        };
        let s = if numbers[2] < -99 || numbers[2] > 99 {
            99
        } else {
            numbers[2] as i32
        };
        match Swizzle::new(b, m, s) {
            Ok(swizzle) => Ok(swizzle),
            Err(error) => Err(self.error_since(start, error)),
        }
    }

    /// `[swizzle o] [offset o] layout`.
    const fn swizzled(&mut self) -> Result<Swizzled, ParseError> {
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
