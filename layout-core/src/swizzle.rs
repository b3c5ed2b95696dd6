//! `Swizzle<B,M,S>`: an xor of one field of bits into another.
//!
//! CuTe's convention, with the shift *relative*: `B` bits are xored onto the `B` bits that start at bit `M`; they come from
//! the field `|S|` bits away, above it for `S > 0` and below for `S < 0` (then the field at `M` is the source and the one
//! `|S|` above is changed).
//!
//! ```text
//! Sw<2,0,3>:  ..... s1 s0 . t1 t0      t ^= s;  bit 3 onto bit 0, bit 4 onto bit 1
//! Sw<3,4,3> on bytes: bits 7..9 onto bits 4..6, the 128-byte swizzle of 16-byte chunks
//! ```
//!
//! With `|S| >= B` source and target do not overlap and the swizzle undoes itself. With `0 < |S| < B` it is a bijection
//! that does not; [`Swizzle::inverse_apply`] undoes it. `S = 0` would send every field to 0 and is refused.

use core::fmt;

use crate::error::LayoutError;

/// `Sw<B,M,S>` on the integers: `x ^ ((x >> S) & field)`, `S` relative and of either sign. Units are those of the offsets
/// it is applied to.
///
/// ```
/// use layout_core::Swizzle;
/// let swizzle = Swizzle::new(2, 0, 3).unwrap();
/// assert_eq!(swizzle.apply(0b01_000), 0b01_001);
/// assert_eq!(swizzle.to_string(), "Sw<2,0,3>");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Swizzle {
    b: u32,
    m: u32,
    s: i32,
}

impl Swizzle {
    /// `Sw<0,0,0>`, which changes nothing.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::IDENTITY.apply(13), 13);
    /// ```
    pub const IDENTITY: Self = Self { b: 0, m: 0, s: 0 };

    /// `Sw<b,m,s>`: `b` bits, base `m` (the lowest `m` bits do not change), shift `s`.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(3, 4, 3).unwrap().to_string(), "Sw<3,4,3>");
    /// assert_eq!(Swizzle::new(2, 0, 0).unwrap_err().code(), "invalid_swizzle");
    /// ```
    ///
    /// # Errors
    ///
    /// `s = 0` with `b > 0`, which is not injective; fields beyond bit 62.
    pub const fn new(b: u32, m: u32, s: i32) -> Result<Self, LayoutError> {
        let top = b as u64 + m as u64 + s.unsigned_abs() as u64;
        if (s == 0 && b > 0) || top > 62 {
            return Err(LayoutError::InvalidSwizzle { b, m, s });
        }
        Ok(Self { b, m, s })
    }

    /// Number of bits xored.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(3, 4, -5).unwrap().b(), 3);
    /// ```
    pub const fn b(&self) -> u32 {
        self.b
    }

    /// Number of low bits that do not change.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(3, 4, -5).unwrap().m(), 4);
    /// ```
    pub const fn m(&self) -> u32 {
        self.m
    }

    /// Distance from target to source, positive if the source is above.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(3, 4, -5).unwrap().s(), -5);
    /// ```
    pub const fn s(&self) -> i32 {
        self.s
    }

    /// Whether the swizzle is the identity: no bits.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert!(Swizzle::new(0, 4, 3).unwrap().is_identity());
    /// ```
    pub const fn is_identity(&self) -> bool {
        self.b == 0
    }

    /// Whether two swizzles are written the same, in `const`.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// const SAME: bool = Swizzle::IDENTITY.equals(&Swizzle::IDENTITY);
    /// assert!(SAME);
    /// ```
    pub const fn equals(&self, other: &Self) -> bool {
        self.b == other.b && self.m == other.m && self.s == other.s
    }

    /// The bits that are read.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(2, 0, 3).unwrap().source_mask(), 0b11000);
    /// ```
    pub const fn source_mask(&self) -> i64 {
        ((1i64 << self.b) - 1) << (self.m as i32 + if self.s > 0 { self.s } else { 0 })
    }

    /// The bits that are changed.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(2, 0, 3).unwrap().target_mask(), 0b00011);
    /// ```
    pub const fn target_mask(&self) -> i64 {
        ((1i64 << self.b) - 1) << (self.m as i32 - if self.s < 0 { self.s } else { 0 })
    }

    /// One past the highest bit read or changed.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// assert_eq!(Swizzle::new(3, 4, 3).unwrap().width(), 10); // bits 4 to 9
    /// ```
    pub const fn width(&self) -> u32 {
        if self.b == 0 {
            0
        } else {
            self.b + self.m + self.s.unsigned_abs()
        }
    }

    /// The swizzled offset.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// // The 128-byte swizzle: row 1 exchanges neighbouring chunks of 16 bytes.
    /// assert_eq!(Swizzle::new(3, 4, 3).unwrap().apply(128), 128 + 16);
    /// ```
    pub const fn apply(&self, x: i64) -> i64 {
        x ^ self.moved(x)
    }

    /// The offset that [`apply`](Self::apply) takes to `x`.
    ///
    /// ```
    /// use layout_core::Swizzle;
    /// let swizzle = Swizzle::new(2, 0, 1).unwrap();
    /// assert_eq!(swizzle.apply(0b110), 0b101);
    /// assert_eq!(swizzle.inverse_apply(0b101), 0b110);
    /// ```
    pub const fn inverse_apply(&self, x: i64) -> i64 {
        // With apply = 1 + N over F2, the inverse is 1 + N + N² + …, and N shifts everything out in the end.
        let mut result = x;
        let mut term = self.moved(x);
        while term != 0 {
            result ^= term;
            term = self.moved(term);
        }
        result
    }

    /// The source field, moved onto the target field.
    const fn moved(&self, x: i64) -> i64 {
        let field = x & self.source_mask();
        if self.s >= 0 {
            field >> self.s
        } else {
            field << -self.s
        }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.b, self.m, self.s)
    }
}

impl fmt::Debug for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
