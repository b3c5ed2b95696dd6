//! Another element width: the same memory counted in larger or smaller units.
//!
//! `upcast(L, 4)` counts in units of four elements: a mode of stride 1 loses a factor of 4, strides of 4 and more are
//! divided. `downcast` is the other direction, `recast(L, 16, 64)` goes from 16-bit to 64-bit elements.
//!
//! ```text
//! upcast((8,4):(1,8), 4)  =  (2,4):(1,2)      downcast((2,4):(1,2), 4)  =  (8,4):(1,8)
//! ```
//!
//! Exactness: in `upcast`, coordinate `c` of `L` lies in unit `⌊L(c)/n⌋ = U(c')`, where `c'` is `c` with the digits inside the
//! unit dropped. A mode that straddles units (`6:1` by 4), or ends inside one (`2:1` by 4) where no other mode goes on, is
//! refused, never rounded. Swizzles shift their `M` by `log₂ n`; when
//! that goes below 0 the bits of the swizzle that act inside the unit are dropped.

use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

impl Layout {
    /// The layout in units of `n` elements.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert_eq!(l("((2,2),3):((1,2),12)").upcast(4).unwrap().to_string(), "((1,1),3):((0,1),3)");
    /// assert_eq!(l("(6,4):(1,6)").upcast(4).unwrap_err().code(), "not_divisible");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::StraddlesUnit`] where a mode does not fill whole units, [`LayoutError::UnitOverlap`] where modes overlap in one;
    /// [`LayoutError::NegativeStride`] for a negative stride smaller than the unit.
    pub const fn upcast(&self, n: i64) -> Result<Self, LayoutError> {
        attempt!(at_least_one("upcast", "n", n));
        let mut result = *self;
        // Greatest offset inside a unit that the dropped digits reach.
        let mut inside = 0;
        let mut i = 0;
        while i < self.leaves() {
            let (extent, stride) = (self.shape[i], self.step(i));
            if stride % n == 0 {
                result.stride[i] = [stride / n];
            } else if extent == 1 {
                result.stride[i] = [0];
            } else if stride < 0 {
                return Err(LayoutError::NegativeStride {
                    operation: "upcast",
                    mode: i,
                    stride,
                });
            } else {
                // Digits of this mode inside one unit.
                let digits = n / stride;
                if n % stride != 0 {
                    return Err(straddles(i, extent, stride, n));
                }
                let dropped = if extent <= digits { extent } else { digits };
                if extent % dropped != 0 || (dropped < digits && !continued(self, extent * stride))
                {
                    return Err(straddles(i, extent, stride, n));
                }
                inside += (dropped - 1) * stride;
                if inside >= n {
                    return Err(LayoutError::UnitOverlap {
                        operation: "upcast",
                        mode: i,
                        n,
                    });
                }
                result.shape[i] = extent / dropped;
                result.stride[i] = [if dropped == digits { 1 } else { 0 }];
            }
            i += 1;
        }
        result.checked()
    }

    /// The layout in units `n` times smaller: the mode of stride 1 is extended to run through the parts of a unit; without
    /// one, only the first part of each unit is addressed.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let l = |s: &str| Layout::parse(s).unwrap();
    /// assert_eq!(l("(2,4):(1,2)").downcast(4).unwrap().to_string(), "(8,4):(1,8)");
    /// assert_eq!(l("4:2").downcast(4).unwrap().to_string(), "4:8");
    /// ```
    ///
    /// # Errors
    ///
    /// Two modes of stride 1, or one of −1: the parts of a unit cannot be added to either; overflow.
    pub const fn downcast(&self, n: i64) -> Result<Self, LayoutError> {
        attempt!(at_least_one("downcast", "n", n));
        let unit = attempt!(unit_mode(self, n));
        let mut result = *self;
        let mut i = 0;
        while i < self.leaves() {
            let (extent, stride) = (self.shape[i], self.step(i));
            if i == unit {
                result.shape[i] = attempt!(fits(extent.checked_mul(n), "downcast"));
            } else {
                result.stride[i] = [attempt!(fits(stride.checked_mul(n), "downcast"))];
            }
            i += 1;
        }
        result.checked()
    }

    /// The layout of elements of `old_bits` as one of elements of `new_bits`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// let halves = Layout::parse("(8,64):(64,1)").unwrap();
    /// assert_eq!(halves.recast(16, 128).unwrap().to_string(), "(8,8):(8,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`upcast`](Self::upcast) and [`downcast`](Self::downcast); widths below 1.
    pub const fn recast(&self, old_bits: i64, new_bits: i64) -> Result<Self, LayoutError> {
        let (up, down) = attempt!(ratio(old_bits, new_bits));
        attempt!(self.upcast(up)).downcast(down)
    }
}

/// Whether a mode goes on at `stride`.
const fn continued(layout: &Layout, stride: i64) -> bool {
    let mut i = 0;
    while i < layout.leaves() {
        if layout.shape[i] > 1 && layout.step(i) == stride {
            return true;
        }
        i += 1;
    }
    false
}

const fn straddles(mode: usize, extent: i64, stride: i64, n: i64) -> LayoutError {
    LayoutError::StraddlesUnit {
        operation: "upcast",
        mode,
        extent,
        stride,
        n,
    }
}

/// The mode that runs from unit to unit, and so goes on inside: the one of stride 1, an extent of 1 only if there is no
/// other. Beyond the leaves if there is none.
const fn unit_mode(layout: &Layout, n: i64) -> Result<usize, LayoutError> {
    let mut unit = layout.leaves();
    let mut i = 0;
    while i < layout.leaves() {
        let (extent, stride) = (layout.shape[i], layout.step(i));
        if n > 1 && extent > 1 && stride == -1 {
            return Err(LayoutError::NegativeStride {
                operation: "downcast",
                mode: i,
                stride,
            });
        }
        if stride == 1 {
            if unit == layout.leaves() || (extent > 1 && layout.shape[unit] == 1) {
                unit = i;
            } else if extent > 1 && n > 1 {
                return Err(LayoutError::TwoUnitModes {
                    operation: "downcast",
                    first: unit,
                    second: i,
                });
            }
        }
        i += 1;
    }
    Ok(unit)
}

/// Numerator and denominator of `new / old` in lowest terms.
const fn ratio(old_bits: i64, new_bits: i64) -> Result<(i64, i64), LayoutError> {
    attempt!(at_least_one("recast", "old_bits", old_bits));
    attempt!(at_least_one("recast", "new_bits", new_bits));
    let common = crate::search::greatest_common_divisor(old_bits as i128, new_bits as i128) as i64;
    Ok((new_bits / common, old_bits / common))
}

impl Swizzle {
    /// The swizzle on units of `n`: `⌊Sw(x)/n⌋ = Sw'(⌊x/n⌋)`.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// let bytes = Swizzle::new(3, 4, 3).unwrap();
    /// assert_eq!(bytes.upcast(2).unwrap().to_string(), "Sw<3,3,3>");
    /// assert_eq!(bytes.upcast(32).unwrap().to_string(), "Sw<2,0,3>");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::SwizzleUnit`] where `n` is not a power of two, or where a swizzle with `S < 0` reads bits inside the
    /// unit.
    pub const fn upcast(&self, n: i64) -> Result<Self, LayoutError> {
        attempt!(at_least_one("upcast", "n", n));
        if self.is_identity() {
            return Ok(*self);
        }
        let (b, m, s) = (self.b(), self.m(), self.s());
        let error = LayoutError::SwizzleUnit {
            operation: "upcast",
            b,
            m,
            s,
            ratio: n,
        };
        if n & (n - 1) != 0 {
            return Err(error);
        }
        let shift = n.trailing_zeros();
        if shift <= m {
            return Self::new(b, m - shift, s);
        }
        if s < 0 {
            return Err(error);
        }
        // Bits m..shift are changed inside the unit only.
        let lost = shift - m;
        if lost >= b {
            Ok(Self::IDENTITY)
        } else {
            Self::new(b - lost, 0, s)
        }
    }

    /// The swizzle on units `n` times smaller: `M` grows by `log₂ n`.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// let halves = Swizzle::new(3, 3, 3).unwrap();
    /// assert_eq!(halves.downcast(2).unwrap().to_string(), "Sw<3,4,3>");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::SwizzleUnit`] where `n` is not a power of two; fields beyond bit 62.
    pub const fn downcast(&self, n: i64) -> Result<Self, LayoutError> {
        attempt!(at_least_one("downcast", "n", n));
        if self.is_identity() {
            return Ok(*self);
        }
        let (b, m, s) = (self.b(), self.m(), self.s());
        if n & (n - 1) != 0 {
            return Err(LayoutError::SwizzleUnit {
                operation: "downcast",
                b,
                m,
                s,
                ratio: n,
            });
        }
        Self::new(b, m + n.trailing_zeros(), s)
    }
}

impl Swizzled {
    /// The layout in units of `n` elements, swizzle and offset included; see [`Layout::upcast`] and [`Swizzle::upcast`].
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let bytes = Swizzled::parse("Sw<3,4,3> o (8,128):(128,1)").unwrap();
    /// assert_eq!(bytes.upcast(2).unwrap().to_string(), "Sw<3,3,3> o (8,64):(64,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::upcast`] and [`Swizzle::upcast`]; an offset that is not a multiple of `n`.
    pub const fn upcast(&self, n: i64) -> Result<Self, LayoutError> {
        let inner = attempt!(self.layout.upcast(n));
        let offset = self.offset[0];
        if offset % n != 0 {
            return Err(LayoutError::OffsetNotDivisible {
                operation: "upcast",
                offset,
                divisor: n,
            });
        }
        Self::new(attempt!(self.swizzle.upcast(n)), offset / n, inner)
    }

    /// The layout in units `n` times smaller, swizzle and offset included.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let halves = Swizzled::parse("Sw<3,3,3> o (8,64):(64,1)").unwrap();
    /// assert_eq!(halves.downcast(2).unwrap().to_string(), "Sw<3,4,3> o (8,128):(128,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Layout::downcast`] and [`Swizzle::downcast`].
    pub const fn downcast(&self, n: i64) -> Result<Self, LayoutError> {
        let inner = attempt!(self.layout.downcast(n));
        let offset = attempt!(fits(self.offset[0].checked_mul(n), "downcast"));
        Self::new(attempt!(self.swizzle.downcast(n)), offset, inner)
    }

    /// The layout of elements of `old_bits` as one of elements of `new_bits`, swizzle and offset included.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let bytes = Swizzled::parse("Sw<3,4,3> o (8,128):(128,1)").unwrap();
    /// assert_eq!(bytes.recast(8, 256).unwrap().to_string(), "Sw<2,0,3> o (8,4):(4,1)");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`upcast`](Self::upcast) and [`downcast`](Self::downcast).
    pub const fn recast(&self, old_bits: i64, new_bits: i64) -> Result<Self, LayoutError> {
        let (up, down) = attempt!(ratio(old_bits, new_bits));
        attempt!(self.upcast(up)).downcast(down)
    }
}
