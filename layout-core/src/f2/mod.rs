//! Linear maps over F2: index functions whose addition is xor.
//!
//! **What.** When every extent of a layout is a power of two and no stride makes two modes carry into each other, the
//! layout sends the *bits* of its index to bits of its offset, and a swizzle xors some of those bits into others. Both
//! are then the same thing: a matrix over the field with two elements, applied to the bit vector of the index.
//!
//! **Why.** An enumeration of every lane of every warp on the integer side is one Gaussian elimination here:
//! the rank of the lanes' part of the matrix gives the bank conflicts of an access, for *all* values of the other
//! coordinates ([`crate::proof`]); an inverse exists exactly when the layout is a bijection; the kernel names the
//! coordinates that alias.
//!
//! **Worked example.** `Swizzle<1,0,1>` on two bits sends `x` to `x ^ ((x >> 1) & 1)`. Column `j` of its matrix is the image
//! of the index `1 << j`:
//!
//! | index bit | column (binary) |
//! |---|---|
//! | 0 | `01` |
//! | 1 | `11` |
//!
//! so index 3 goes to `01 ^ 11 = 10`.
//!
//! ```
//! use layout_core::f2::LinearMap;
//! let swizzle = LinearMap::swizzle(1, 0, 1, 2).unwrap();
//! assert_eq!([0, 1, 2, 3].map(|x| swizzle.apply(x)), [0, 1, 3, 2]);
//! assert_eq!(swizzle.compose(&swizzle).unwrap(), LinearMap::identity(2).unwrap());
//! ```
//!
//! Columns are `u64`s, so that applying the map is a handful of xors, and everything is `const fn`.

mod convert;
mod error;
mod span;

pub use error::F2Error;
pub use span::Span;

/// The most input or output bits that a [`LinearMap`] holds.
///
/// ```
/// use layout_core::f2::{LinearMap, MAX_BITS};
/// assert!(LinearMap::identity(MAX_BITS).is_ok());
/// assert!(LinearMap::identity(MAX_BITS + 1).is_err());
/// ```
pub const MAX_BITS: u32 = 64;

/// A matrix over F2 with `out_bits` rows and `in_bits` columns; column `j` is the image of the index `1 << j`.
///
/// ```
/// use layout_core::f2::LinearMap;
/// let map = LinearMap::from_columns(&[0b01, 0b11], 2).unwrap();
/// assert_eq!(map.apply(0b11), 0b01 ^ 0b11);
/// assert_eq!(map.to_string(), "[1, 3]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct LinearMap {
    columns: [u64; MAX_BITS as usize],
    in_bits: u32,
    out_bits: u32,
}

/// The low `bits` bits set; `bits` at most 64.
pub(crate) const fn low_mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

impl LinearMap {
    /// The map that sends everything to 0.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::zero(3, 2).unwrap().apply(0b101), 0);
    /// ```
    ///
    /// # Errors
    /// [`F2Error::TooManyBits`].
    pub const fn zero(in_bits: u32, out_bits: u32) -> Result<Self, F2Error> {
        let most = if in_bits > out_bits {
            in_bits
        } else {
            out_bits
        };
        if most > MAX_BITS {
            return Err(F2Error::TooManyBits { bits: most });
        }
        Ok(Self {
            columns: [0; MAX_BITS as usize],
            in_bits,
            out_bits,
        })
    }

    /// The identity on `bits` bits.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::identity(3).unwrap().apply(0b101), 0b101);
    /// ```
    ///
    /// # Errors
    /// [`F2Error::TooManyBits`].
    pub const fn identity(bits: u32) -> Result<Self, F2Error> {
        let mut map = match Self::zero(bits, bits) {
            Ok(map) => map,
            Err(e) => return Err(e),
        };
        let mut j = 0;
        while j < bits {
            map.columns[j as usize] = 1 << j;
            j += 1;
        }
        Ok(map)
    }

    /// The map whose column `j` is `columns[j]`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let reversal = LinearMap::from_columns(&[0b100, 0b010, 0b001], 3).unwrap();
    /// assert_eq!(reversal.apply(0b110), 0b011);
    /// ```
    ///
    /// # Errors
    /// [`F2Error::TooManyBits`], or [`F2Error::ColumnTooLarge`] if a column does not fit `out_bits` rows.
    pub const fn from_columns(columns: &[u64], out_bits: u32) -> Result<Self, F2Error> {
        if columns.len() > MAX_BITS as usize {
            return Err(F2Error::TooManyBits {
                bits: columns.len() as u32,
            });
        }
        let mut map = match Self::zero(columns.len() as u32, out_bits) {
            Ok(map) => map,
            Err(e) => return Err(e),
        };
        let mut j = 0;
        while j < columns.len() {
            if columns[j] & !low_mask(out_bits) != 0 {
                return Err(F2Error::ColumnTooLarge {
                    column: j as u32,
                    image: columns[j],
                    out_bits,
                });
            }
            map.columns[j] = columns[j];
            j += 1;
        }
        Ok(map)
    }

    /// `Swizzle<b, m, s>` on `bits` bits, `s` relative as in `CuTe`: for `s > 0` the bits `m+s .. m+s+b` are xored into
    /// `m .. m+b`, for `s < 0` the bits `m .. m+b` into `m-s .. m-s+b`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// // Bits 2 and 3 are xored into bits 0 and 1.
    /// assert_eq!(LinearMap::swizzle(2, 0, 2, 4).unwrap().to_string(), "[1, 2, 5, 10]");
    /// ```
    ///
    /// # Errors
    /// [`F2Error::SwizzleDoesNotFit`] if a source bit lies above `bits`, or if `s` is 0 with `b > 0` (not a bijection).
    pub const fn swizzle(b: u32, m: u32, s: i32, bits: u32) -> Result<Self, F2Error> {
        let mut map = match Self::identity(bits) {
            Ok(map) => map,
            Err(e) => return Err(e),
        };
        if b == 0 {
            return Ok(map);
        }
        let distance = s.unsigned_abs();
        if s == 0 || b as u64 + m as u64 + distance as u64 > bits as u64 {
            return Err(F2Error::SwizzleDoesNotFit { b, m, s, bits });
        }
        let mut i = 0;
        while i < b {
            let (source, target) = if s > 0 {
                (m + distance + i, m + i)
            } else {
                (m + i, m + distance + i)
            };
            map.columns[source as usize] ^= 1 << target;
            i += 1;
        }
        Ok(map)
    }

    /// Number of columns: bits of the index.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::zero(3, 2).unwrap().in_bits(), 3);
    /// ```
    pub const fn in_bits(&self) -> u32 {
        self.in_bits
    }

    /// Number of rows: bits of the offset.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::zero(3, 2).unwrap().out_bits(), 2);
    /// ```
    pub const fn out_bits(&self) -> u32 {
        self.out_bits
    }

    /// The image of index bit `j`; 0 beyond the columns.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::swizzle(1, 0, 1, 2).unwrap().column(1), 0b11);
    /// ```
    pub const fn column(&self, j: u32) -> u64 {
        if j < self.in_bits {
            self.columns[j as usize]
        } else {
            0
        }
    }

    /// The columns, as the images of the index bits from the lowest.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::swizzle(1, 0, 1, 2).unwrap().columns(), [0b01, 0b11]);
    /// ```
    pub const fn columns(&self) -> &[u64] {
        self.columns.split_at(self.in_bits as usize).0
    }

    /// The index bits that reach offset bit `i`, as a mask.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// // Offset bit 0 is the xor of index bits 0 and 1.
    /// assert_eq!(LinearMap::swizzle(1, 0, 1, 2).unwrap().row(0), 0b11);
    /// ```
    pub const fn row(&self, i: u32) -> u64 {
        let mut row = 0;
        let mut j = 0;
        while j < self.in_bits {
            if i < MAX_BITS && self.columns[j as usize] >> i & 1 == 1 {
                row |= 1 << j;
            }
            j += 1;
        }
        row
    }

    /// The image of `x`: the xor of the columns of its set bits. Bits above the columns are ignored.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::swizzle(1, 0, 1, 2).unwrap().apply(3), 2);
    /// ```
    pub const fn apply(&self, x: u64) -> u64 {
        let mut rest = x & low_mask(self.in_bits);
        let mut y = 0;
        while rest != 0 {
            y ^= self.columns[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        y
    }

    /// `self ∘ inner`: first `inner`, then `self`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let swizzle = LinearMap::swizzle(1, 0, 1, 2).unwrap();
    /// let swap = LinearMap::from_columns(&[0b10, 0b01], 2).unwrap();
    /// assert_eq!(swizzle.compose(&swap).unwrap().apply(1), swizzle.apply(2));
    /// ```
    ///
    /// # Errors
    /// [`F2Error::DimensionMismatch`] unless `inner` has as many rows as `self` has columns.
    pub const fn compose(&self, inner: &Self) -> Result<Self, F2Error> {
        if self.in_bits != inner.out_bits {
            return Err(F2Error::DimensionMismatch {
                left: self.in_bits,
                right: inner.out_bits,
            });
        }
        let mut map = *inner;
        map.out_bits = self.out_bits;
        let mut j = 0;
        while j < map.in_bits {
            map.columns[j as usize] = self.apply(inner.columns[j as usize]);
            j += 1;
        }
        Ok(map)
    }

    /// The sum `x -> self(x) ^ other(x)`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let identity = LinearMap::identity(2).unwrap();
    /// assert_eq!(identity.xor(&identity).unwrap(), LinearMap::zero(2, 2).unwrap());
    /// ```
    ///
    /// # Errors
    /// [`F2Error::SumMismatch`] unless both have the same rows and columns.
    pub const fn xor(&self, other: &Self) -> Result<Self, F2Error> {
        if self.in_bits != other.in_bits || self.out_bits != other.out_bits {
            return Err(F2Error::SumMismatch {
                left: (self.out_bits, self.in_bits),
                right: (other.out_bits, other.in_bits),
            });
        }
        let mut map = *self;
        let mut j = 0;
        while j < map.in_bits {
            map.columns[j as usize] ^= other.columns[j as usize];
            j += 1;
        }
        Ok(map)
    }

    /// The block-diagonal map: `self` on the low bits, `high` on the bits above.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let one = LinearMap::identity(1).unwrap();
    /// let swap = LinearMap::from_columns(&[0b10, 0b01], 2).unwrap();
    /// assert_eq!(one.direct_sum(&swap).unwrap().columns(), [0b001, 0b100, 0b010]);
    /// ```
    ///
    /// # Errors
    /// [`F2Error::TooManyBits`].
    pub const fn direct_sum(&self, high: &Self) -> Result<Self, F2Error> {
        let mut map = match Self::zero(self.in_bits + high.in_bits, self.out_bits + high.out_bits) {
            Ok(map) => map,
            Err(e) => return Err(e),
        };
        let mut j = 0;
        while j < map.in_bits {
            map.columns[j as usize] = if j < self.in_bits {
                self.columns[j as usize]
            } else if self.out_bits < MAX_BITS {
                high.columns[(j - self.in_bits) as usize] << self.out_bits
            } else {
                0
            };
            j += 1;
        }
        Ok(map)
    }

    /// Rows become columns.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let swizzle = LinearMap::swizzle(1, 0, 1, 2).unwrap();
    /// assert_eq!(swizzle.transpose().columns(), [0b11, 0b10]);
    /// ```
    pub const fn transpose(&self) -> Self {
        let mut map = Self {
            columns: [0; MAX_BITS as usize],
            in_bits: self.out_bits,
            out_bits: self.in_bits,
        };
        let mut i = 0;
        while i < self.out_bits {
            map.columns[i as usize] = self.row(i);
            i += 1;
        }
        map
    }

    /// The map followed by a projection onto the offset bits `low .. low + count`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// // Of byte offsets, bits 2 to 6 are the bank.
    /// let stride_8 = LinearMap::from_columns(&[8, 16, 32, 64, 128], 8).unwrap();
    /// assert_eq!(stride_8.rows(2, 5).columns(), [2, 4, 8, 16, 0]);
    /// ```
    pub const fn rows(&self, low: u32, count: u32) -> Self {
        let count = if low >= self.out_bits {
            0
        } else if count > self.out_bits - low {
            self.out_bits - low
        } else {
            count
        };
        let mut map = Self {
            columns: [0; MAX_BITS as usize],
            in_bits: self.in_bits,
            out_bits: count,
        };
        let mut j = 0;
        while j < self.in_bits {
            if count > 0 {
                map.columns[j as usize] = self.columns[j as usize] >> low & low_mask(count);
            }
            j += 1;
        }
        map
    }

    /// The map restricted to the index bits `low .. low + count`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let map = LinearMap::from_columns(&[1, 2, 4], 3).unwrap();
    /// assert_eq!(map.columns_range(1, 2).columns(), [2, 4]);
    /// ```
    pub const fn columns_range(&self, low: u32, count: u32) -> Self {
        let count = if low >= self.in_bits {
            0
        } else if count > self.in_bits - low {
            self.in_bits - low
        } else {
            count
        };
        let mut map = Self {
            columns: [0; MAX_BITS as usize],
            in_bits: count,
            out_bits: self.out_bits,
        };
        let mut j = 0;
        while j < count {
            map.columns[j as usize] = self.columns[(low + j) as usize];
            j += 1;
        }
        map
    }

    /// The dimension of the image.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::from_columns(&[1, 2, 3], 2).unwrap().rank(), 2);
    /// ```
    pub const fn rank(&self) -> u32 {
        self.image().dimension()
    }

    /// The span of the columns.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let image = LinearMap::from_columns(&[0b01, 0b01], 2).unwrap().image();
    /// assert!(image.contains(0b01) && !image.contains(0b10));
    /// ```
    pub const fn image(&self) -> Span {
        let mut span = Span::new();
        let mut j = 0;
        while j < self.in_bits {
            span.insert(self.columns[j as usize]);
            j += 1;
        }
        span
    }

    /// A basis of the indices that go to 0. Two indices alias exactly if their xor is in it.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// // Indices 0b01 and 0b10 have one image, so their xor is in the kernel.
    /// let kernel = LinearMap::from_columns(&[0b01, 0b01], 2).unwrap().kernel();
    /// assert!(kernel.iter().eq([0b11]));
    /// ```
    pub const fn kernel(&self) -> Span {
        // Columns reduced among themselves, each with the combination of index bits that made it.
        let mut leads = [0_u64; MAX_BITS as usize];
        let mut combinations = [0_u64; MAX_BITS as usize];
        let mut kernel = Span::new();
        let mut j = 0;
        while j < self.in_bits {
            let mut image = self.columns[j as usize];
            let mut combination = 1_u64 << j;
            while image != 0 {
                let lead = 63 - image.leading_zeros() as usize;
                if leads[lead] == 0 {
                    leads[lead] = image;
                    combinations[lead] = combination;
                    break;
                }
                image ^= leads[lead];
                combination ^= combinations[lead];
            }
            if image == 0 {
                kernel.insert(combination);
            }
            j += 1;
        }
        kernel
    }

    /// Whether the map is a bijection.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert!(LinearMap::swizzle(2, 0, 2, 4).unwrap().is_invertible());
    /// assert!(!LinearMap::from_columns(&[1, 1], 2).unwrap().is_invertible());
    /// ```
    pub const fn is_invertible(&self) -> bool {
        self.in_bits == self.out_bits && self.rank() == self.in_bits
    }

    /// The inverse map.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let map = LinearMap::from_columns(&[0b010, 0b100, 0b001], 3).unwrap();
    /// let inverse = map.inverse().unwrap();
    /// assert!((0..8).all(|x| inverse.apply(map.apply(x)) == x));
    /// ```
    ///
    /// # Errors
    /// [`F2Error::Singular`] if the map is not a bijection.
    pub const fn inverse(&self) -> Result<Self, F2Error> {
        let n = self.in_bits;
        if !self.is_invertible() {
            return Err(F2Error::Singular {
                rank: self.rank(),
                in_bits: n,
                out_bits: self.out_bits,
            });
        }
        // Column operations that turn `self` into the identity turn the identity into the inverse.
        let mut left = self.columns;
        let mut right = [0_u64; MAX_BITS as usize];
        let mut j = 0;
        while j < n {
            right[j as usize] = 1 << j;
            j += 1;
        }
        let mut row = 0;
        while row < n {
            let mut pivot = row;
            while pivot < n && left[pivot as usize] >> row & 1 == 0 {
                pivot += 1;
            }
            left.swap(row as usize, pivot as usize);
            right.swap(row as usize, pivot as usize);
            let mut j = 0;
            while j < n {
                if j != row && left[j as usize] >> row & 1 == 1 {
                    left[j as usize] ^= left[row as usize];
                    right[j as usize] ^= right[row as usize];
                }
                j += 1;
            }
            row += 1;
        }
        Ok(Self {
            columns: right,
            in_bits: n,
            out_bits: n,
        })
    }
}

impl core::fmt::Display for LinearMap {
    /// The columns, lowest index bit first, as decimal images: `[1, 3]`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("[")?;
        for (j, column) in self.columns().iter().enumerate() {
            if j > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{column}")?;
        }
        f.write_str("]")
    }
}
