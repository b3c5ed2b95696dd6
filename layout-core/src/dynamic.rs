//! Evaluation in any arithmetic: the same layout on integers, on a vector of lanes, on symbolic expressions.
//!
//! [`Layout::index_with`] evaluates a static layout at a coordinate of any type that is an [`IndexInt`]: it can be added and
//! multiplied, made from constants, and divided by constants. Every integer of `num-traits` is one; an index compiler
//! implements it for its expressions. Only the operations that the layout needs are computed: no division for a mode of extent 1, no
//! remainder for the last mode, no product with 1.
//!
//! ```
//! use layout_core::{Lanes, Layout};
//! let tile = Layout::parse("(4,8):(8,1)").unwrap();
//! assert_eq!(tile.index_with(&5u32), 9);
//! let warp = Lanes([0i64, 1, 4, 5]);
//! assert_eq!(tile.index_with(&warp).0, [0, 8, 1, 9]);
//! ```

use core::ops::{Add, Mul};

use num_traits::{Euclid, FromPrimitive, PrimInt};

use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// What an index is computed with. Constants are 64-bit; a narrower type may assume that they fit (they do, for a layout
/// whose size and offsets fit). Sums and products are those of the type: an unsigned integer overflows on negative
/// strides.
///
/// ```
/// use layout_core::{IndexInt, Layout};
/// /// The offset of coordinate 5 in any arithmetic.
/// fn offset<T: IndexInt>(layout: &Layout) -> T {
///     layout.index_with(&T::constant(5))
/// }
/// let tile = Layout::parse("(4,8):(8,1)").unwrap();
/// assert_eq!((offset::<u8>(&tile), offset::<i64>(&tile)), (9, 9));
/// ```
pub trait IndexInt: Clone + Add<Output = Self> + Mul<Output = Self> {
    /// The constant `value`.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(u8::constant(5), 5);
    /// ```
    fn constant(value: i64) -> Self;

    /// Quotient by a positive constant, rounded down.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(IndexInt::div_floor(-5i64, 4), -2);
    /// ```
    #[must_use]
    fn div_floor(self, divisor: i64) -> Self;

    /// Remainder by a positive constant, from 0 up.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(IndexInt::rem_floor(-5i64, 4), 3);
    /// ```
    #[must_use]
    fn rem_floor(self, divisor: i64) -> Self;

    /// Bitwise and with a constant.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(13u32.and(6), 4);
    /// ```
    #[must_use]
    fn and(self, mask: i64) -> Self;

    /// Bitwise exclusive or.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(13u32.xor(6), 11);
    /// ```
    #[must_use]
    fn xor(self, other: Self) -> Self;

    /// Shift towards the high bits.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(13u32.shift_left(2), 52);
    /// ```
    #[must_use]
    fn shift_left(self, bits: u32) -> Self;

    /// Shift towards the low bits, keeping the sign.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!((-5i64).shift_right(1), -3);
    /// ```
    #[must_use]
    fn shift_right(self, bits: u32) -> Self;

    /// Product with a constant.
    ///
    /// ```
    /// use layout_core::IndexInt;
    /// assert_eq!(13u32.scale(4), 52);
    /// ```
    #[must_use]
    fn scale(self, factor: i64) -> Self {
        if factor == 1 {
            self
        } else {
            self * Self::constant(factor)
        }
    }
}

impl<T: PrimInt + Euclid + FromPrimitive> IndexInt for T {
    fn constant(value: i64) -> Self {
        // A constant that does not fit a narrow type is cut off, as its hardware would.
        T::from_i64(value).unwrap_or_else(|| {
            let mut result = T::zero();
            for bit in 0..(T::zero().count_zeros().min(64)) {
                if value >> bit & 1 == 1 {
                    result = result | (T::one() << bit as usize);
                }
            }
            result
        })
    }

    fn div_floor(self, divisor: i64) -> Self {
        self.div_euclid(&Self::constant(divisor))
    }

    fn rem_floor(self, divisor: i64) -> Self {
        self.rem_euclid(&Self::constant(divisor))
    }

    fn and(self, mask: i64) -> Self {
        self & Self::constant(mask)
    }

    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    fn shift_left(self, bits: u32) -> Self {
        self << bits as usize
    }

    fn shift_right(self, bits: u32) -> Self {
        self >> bits as usize
    }
}

/// One value for each of `N` lanes, computed together.
///
/// ```
/// use layout_core::{Lanes, Layout};
/// let rows = Layout::parse("(4,8):(8,1)").unwrap();
/// assert_eq!(rows.index_with(&Lanes([0, 1, 4, 5])), Lanes([0, 8, 1, 9]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lanes<const N: usize>(pub [i64; N]);

impl<const N: usize> Add for Lanes<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }
}

impl<const N: usize> Mul for Lanes<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i].wrapping_mul(other.0[i])))
    }
}

impl<const N: usize> IndexInt for Lanes<N> {
    fn constant(value: i64) -> Self {
        Self([value; N])
    }

    fn div_floor(self, divisor: i64) -> Self {
        Self(self.0.map(|x| x.div_euclid(divisor)))
    }

    fn rem_floor(self, divisor: i64) -> Self {
        Self(self.0.map(|x| x.rem_euclid(divisor)))
    }

    fn and(self, mask: i64) -> Self {
        Self(self.0.map(|x| x & mask))
    }

    fn xor(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] ^ other.0[i]))
    }

    fn shift_left(self, bits: u32) -> Self {
        Self(self.0.map(|x| x << bits))
    }

    fn shift_right(self, bits: u32) -> Self {
        Self(self.0.map(|x| x >> bits))
    }
}

/// A sum that starts without a zero.
pub(crate) struct Sum<T>(Option<T>);

impl<T: IndexInt> Sum<T> {
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    pub(crate) fn add(&mut self, term: T) {
        self.0 = Some(match self.0.take() {
            Some(sum) => sum + term,
            None => term,
        });
    }

    pub(crate) fn finish(self) -> T {
        self.0.unwrap_or_else(|| T::constant(0))
    }
}

/// The digit of a mode, and what is left for the modes after it.
pub(crate) fn digit<T: IndexInt>(rest: T, extent: i64, last: bool) -> (T, T) {
    if last {
        (rest.clone(), rest)
    } else if extent == 1 {
        (T::constant(0), rest)
    } else {
        (rest.clone().rem_floor(extent), rest.div_floor(extent))
    }
}

impl Layout {
    /// The offset at linear coordinate `i` in any arithmetic; the last leaf never wraps.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(8,1)").unwrap().index_with(&5u32), 9);
    /// ```
    pub fn index_with<T: IndexInt>(&self, i: &T) -> T {
        let mut sum = Sum::new();
        self.sum_range(&mut sum, 0, self.leaves(), i.clone());
        sum.finish()
    }

    /// The offset at one linear coordinate for each top-level mode, in any arithmetic.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,8):(8,1)").unwrap().at_with(&[1u32, 2]), Ok(10));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::CoordinateMismatch`] unless there are as many coordinates as modes.
    pub fn at_with<T: IndexInt>(&self, coordinates: &[T]) -> Result<T, LayoutError> {
        let (expected, found) = (self.rank(), coordinates.len());
        if expected != found {
            return Err(LayoutError::CoordinateMismatch {
                mode: 0,
                expected,
                found,
            });
        }
        let root = self.root();
        let mut sum = Sum::new();
        let mut node = Some(self.profile.first(root));
        for coordinate in coordinates {
            if let Some(at) = node {
                self.sum_range(&mut sum, at.start, at.end, coordinate.clone());
                node = self.profile.next(root, at);
            }
        }
        Ok(sum.finish())
    }

    /// Adds the offset of linear coordinate `rest` of leaves `start..end`.
    fn sum_range<T: IndexInt>(&self, sum: &mut Sum<T>, start: usize, end: usize, mut rest: T) {
        // Leaves after the last stride that is not 0 need no digits.
        let used = (start..end)
            .rev()
            .find(|&k| self.stride[k][0] != 0)
            .map_or(start, |k| k + 1);
        for k in start..used {
            let (digit, next) = digit(rest, self.shape[k], k + 1 == end);
            rest = next;
            if self.stride[k][0] != 0 && (self.shape[k] > 1 || k + 1 == end) {
                sum.add(digit.scale(self.stride[k][0]));
            }
        }
    }
}

impl Swizzle {
    /// The swizzled offset in any arithmetic.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(2, 0, 2).unwrap().apply_with(&5u8), 4);
    /// ```
    pub fn apply_with<T: IndexInt>(&self, x: &T) -> T {
        if self.is_identity() {
            return x.clone();
        }
        let field = x.clone().and(self.source_mask());
        let moved = if self.s() >= 0 {
            field.shift_right(self.s().unsigned_abs())
        } else {
            field.shift_left(self.s().unsigned_abs())
        };
        x.clone().xor(moved)
    }
}

impl Swizzled {
    /// The offset at linear coordinate `i` in any arithmetic.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o 4:4").unwrap().index_with(&3u32), 15);
    /// ```
    pub fn index_with<T: IndexInt>(&self, i: &T) -> T {
        self.finish_with(self.layout().index_with(i))
    }

    /// The offset at one linear coordinate for each top-level mode, in any arithmetic.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// assert_eq!(Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap().at_with(&[3i64, 1]), Ok(14));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::at_with`].
    pub fn at_with<T: IndexInt>(&self, coordinates: &[T]) -> Result<T, LayoutError> {
        Ok(self.finish_with(self.layout().at_with(coordinates)?))
    }

    fn finish_with<T: IndexInt>(&self, inner: T) -> T {
        let x = if self.offset() == 0 {
            inner
        } else {
            inner + T::constant(self.offset())
        };
        self.swizzle().apply_with(&x)
    }
}
