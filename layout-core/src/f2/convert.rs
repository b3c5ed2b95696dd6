//! Between layouts and matrices: what is linear over xor, and what a matrix is as a layout.
//!
//! A layout with power-of-two extents sends index bit `j` to some offset `c_j`, and an index to the *sum* of its bits' offsets. The
//! sum is the xor for every index exactly if no two of the `c_j` share a bit (two that do carry already when just those two bits are
//! set). For example `(4,2):(1,4)` has columns 1, 2, 4 and is linear; `(4,2):(1,3)` has 1, 2, 3 and is not: index 5 goes to 4, not
//! to `1 ^ 3 = 2`.

use crate::chain::Step;
use crate::layout::Layout;
use crate::modes::Modes;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

use super::{F2Error, LinearMap, MAX_BITS};

const fn bits_of(x: u64) -> u32 {
    64 - x.leading_zeros()
}

impl LinearMap {
    /// The layout as a matrix: index bits (colexicographic, first mode lowest) to offset bits; as many rows as the greatest offset has
    /// bits.
    ///
    /// # Errors
    /// An extent that is not a power of two, a negative stride, or modes that carry into each other ([`F2Error::NotLinear`]).
    pub(crate) const fn of_plain(layout: &Layout) -> Result<Self, F2Error> {
        let mut map = Self {
            columns: [0; MAX_BITS as usize],
            in_bits: 0,
            out_bits: 0,
        };
        let mut taken = 0_u64;
        let mut leaf = 0;
        while leaf < layout.leaves() {
            let (extent, stride) = layout.leaf(leaf);
            if extent < 1 || !(extent as u64).is_power_of_two() {
                return Err(F2Error::ExtentNotPowerOfTwo { leaf, extent });
            }
            if extent > 1 && stride < 0 {
                return Err(F2Error::NegativeOffset { offset: stride });
            }
            let mut bit = 0;
            while bit < extent.trailing_zeros() {
                if map.in_bits == MAX_BITS {
                    return Err(F2Error::TooManyBits { bits: MAX_BITS + 1 });
                }
                let image = (stride as u64) << bit;
                if taken & image != 0 {
                    let mut other = 0;
                    while map.columns[other as usize] & image == 0 {
                        other += 1;
                    }
                    return Err(F2Error::NotLinear {
                        index: 1 << other | 1 << map.in_bits,
                        offset: (map.columns[other as usize] + image) as i64,
                    });
                }
                taken |= image;
                map.columns[map.in_bits as usize] = image;
                map.in_bits += 1;
                bit += 1;
            }
            leaf += 1;
        }
        map.out_bits = bits_of(taken);
        Ok(map)
    }

    /// The swizzled layout as a matrix; it must have no offset inside the swizzle.
    ///
    /// # Errors
    /// Those of [`Layout::matrix`], and [`F2Error::NotLinear`] at index 0 if that does not go to 0.
    pub(crate) const fn of_layout(layout: &Swizzled) -> Result<Self, F2Error> {
        if layout.offset() != 0 {
            return Err(F2Error::NotLinear {
                index: 0,
                offset: layout.index(0),
            });
        }
        let mut map = match Self::of_plain(&layout.layout()) {
            Ok(map) => map,
            Err(error) => return Err(error),
        };
        map = match map.followed_by(&Step::Swizzle(layout.swizzle())) {
            Ok(map) => map,
            Err(error) => return Err(error),
        };
        Ok(map)
    }

    /// `step ∘ self`, with as many rows as the greatest image has bits. A layout's last mode is unbounded.
    pub(crate) const fn followed_by(&self, step: &Step) -> Result<Self, F2Error> {
        let mut map = *self;
        let outer = match step {
            Step::Layout(layout) => match Self::from_unbounded(layout, self.out_bits) {
                Ok(outer) => outer,
                Err(error) => return Err(error),
            },
            Step::Offset(0) => return Ok(map),
            Step::Offset(offset) => {
                return Err(F2Error::NotLinear {
                    index: 0,
                    offset: *offset,
                });
            }
            _ => Self {
                columns: [0; MAX_BITS as usize],
                in_bits: 0,
                out_bits: 0,
            },
        };
        let mut taken = 0;
        let mut j = 0;
        while j < map.in_bits as usize {
            let column = map.columns[j];
            map.columns[j] = match step {
                Step::Swizzle(swizzle) => swizzle.apply(column as i64) as u64,
                Step::InverseSwizzle(swizzle) => swizzle.inverse_apply(column as i64) as u64,
                _ => outer.apply(column),
            };
            taken |= map.columns[j];
            j += 1;
        }
        map.out_bits = bits_of(taken);
        Ok(map)
    }

    /// The layout's matrix on `bits` index bits: its last mode goes on as far as needed.
    const fn from_unbounded(layout: &Layout, bits: u32) -> Result<Self, F2Error> {
        let mut longer = *layout;
        let last = layout.leaves() - 1;
        let size = layout.size() as u64;
        if size.is_power_of_two() && size.trailing_zeros() < bits && bits < 62 {
            longer.shape[last] <<= bits - size.trailing_zeros();
        }
        match Self::of_plain(&longer) {
            Ok(map) if map.in_bits > bits => Ok(map.columns_range(0, bits)),
            other => other,
        }
    }

    /// [`compose`](Self::compose) of matrices that say nothing about the bits between them: columns beyond the rows of `inner`
    /// are left out, and rows beyond the columns of `self` must be 0.
    pub(crate) const fn compose_padded(&self, inner: &Self) -> Result<Self, F2Error> {
        if self.in_bits >= inner.out_bits {
            return self.columns_range(0, inner.out_bits).compose(inner);
        }
        self.compose(inner)
    }

    /// The matrix as `Sw o L` with `L` a flat layout of the index, where there is one. With strides that are powers of two every
    /// column has one bit, the offset under `L`, or two at the swizzle's distance; other strides are searched for up to 32
    /// rows.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let map = LinearMap::from_columns(&[1, 2, 5, 10], 4).unwrap();
    /// assert_eq!(map.to_layout().unwrap().to_string(), "Sw<2,0,2> o (16):(1)");
    /// ```
    ///
    /// # Errors
    /// [`F2Error::NotASwizzledLayout`] with the column that fits no swizzle; [`F2Error::TooManyModes`] if the layout would need more modes
    /// than a layout holds, [`F2Error::LayoutTooLarge`] if its size or offsets would not fit in 64 bits.
    pub const fn to_layout(&self) -> Result<Swizzled, F2Error> {
        if self.in_bits > 62 {
            return Err(F2Error::LayoutTooLarge { bits: self.in_bits });
        }
        let mut distance = 0;
        let mut j = 0;
        while j < self.in_bits {
            let image = self.columns[j as usize];
            if image.count_ones() == 2 {
                distance = (bits_of(image) - 1 - image.trailing_zeros()) as i32;
                break;
            }
            j += 1;
        }
        let first = match self.with_distance(distance) {
            Ok(layout) => return Ok(layout),
            Err(error) => error,
        };
        if distance != 0
            && let Ok(layout) = self.with_distance(-distance)
        {
            return Ok(layout);
        }
        match self.with_any_swizzle() {
            Some(layout) => Ok(layout),
            None => Err(first),
        }
    }

    /// The matrix as `Sw o L` where `L` may have any strides: for some swizzle the columns without it share no bits. The
    /// plain layout is the swizzle of no bits.
    const fn with_any_swizzle(&self) -> Option<Swizzled> {
        /// Rows up to which all swizzles are tried.
        const LIMIT: u32 = 32;
        let rows = if self.out_bits > LIMIT {
            0
        } else {
            self.out_bits
        };
        let mut b = 0;
        while b <= rows {
            let mut m = 0;
            while b + m <= rows {
                let mut distance = 0;
                while b + m + distance <= rows {
                    let s = distance as i32;
                    if let Some(layout) = self.under(b, m, s) {
                        return Some(layout);
                    }
                    if let Some(layout) = self.under(b, m, -s) {
                        return Some(layout);
                    }
                    distance += 1;
                    if b == 0 {
                        break;
                    }
                }
                m += 1;
                if b == 0 {
                    break;
                }
            }
            b += 1;
        }
        None
    }

    /// The matrix as `Sw<b,m,s> o L`, if there is such an `L`.
    const fn under(&self, b: u32, m: u32, s: i32) -> Option<Swizzled> {
        let Ok(swizzle) = Swizzle::new(b, m, s) else {
            return None;
        };
        let mut modes = Modes::<1>::EMPTY;
        let mut taken = 0;
        let mut j = 0;
        while j < self.in_bits as usize {
            let stride = swizzle.inverse_apply(self.columns[j] as i64);
            if stride < 0 || taken & stride != 0 || modes.len == crate::MAX_MODES {
                return None;
            }
            taken |= stride;
            modes.push_coalesced(2, [stride]);
            j += 1;
        }
        match modes.into_layout() {
            Ok(layout) => match Swizzled::new(swizzle, 0, layout) {
                Ok(layout) => Some(layout),
                Err(_) => None,
            },
            Err(_) => None,
        }
    }

    /// The same, once the swizzle's `s` is known (0: no swizzle).
    const fn with_distance(&self, s: i32) -> Result<Swizzled, F2Error> {
        // Source positions of two-bit columns; positions of one-bit columns, which no source field may cover.
        let mut sources = 0_u64;
        let mut plain = 0_u64;
        let mut taken = 0_i64;
        let mut strides = [0_i64; MAX_BITS as usize];
        let mut j = 0;
        while j < self.in_bits {
            let image = self.columns[j as usize];
            // Of 0, take bit 0: it is not used.
            let high = (image | 1).ilog2();
            let low = if image == 0 {
                0
            } else {
                image.trailing_zeros()
            };
            let source = if s > 0 { high } else { low };
            match image.count_ones() {
                0 => {}
                1 if high < 63 => plain |= image,
                2 if s != 0 && high - low == s.unsigned_abs() && high < 62 => {
                    sources |= 1 << source;
                }
                _ => return Err(F2Error::NotASwizzledLayout { column: j, image }),
            }
            let stride = if image == 0 { 0 } else { 1 << source };
            // Equal columns cancel in the map and add in a layout.
            if taken & stride != 0 {
                return Err(F2Error::NotASwizzledLayout { column: j, image });
            }
            taken |= stride;
            strides[j as usize] = stride;
            j += 1;
        }
        let swizzle = if sources == 0 {
            Swizzle::IDENTITY
        } else {
            let first = sources.trailing_zeros();
            let b = bits_of(sources) - first;
            let field = ((1_u64 << b) - 1) << first;
            if field & plain != 0 {
                let image = 1 << (field & plain).trailing_zeros();
                let mut column = 0;
                while self.columns[column as usize] != image {
                    column += 1;
                }
                return Err(F2Error::NotASwizzledLayout { column, image });
            }
            let m = if s > 0 {
                first - s.unsigned_abs()
            } else {
                first
            };
            match Swizzle::new(b, m, s) {
                Ok(swizzle) => swizzle,
                Err(_) => {
                    return Err(F2Error::SwizzleDoesNotFit {
                        b,
                        m,
                        s,
                        bits: self.out_bits,
                    });
                }
            }
        };
        // Runs of doubling strides are one mode.
        let mut shape = [1_i64; crate::MAX_MODES];
        let mut stride = [0_i64; crate::MAX_MODES];
        let mut modes = 0;
        let mut j = 0;
        while j < self.in_bits as usize {
            let continues = modes > 0 && strides[j] == stride[modes - 1] * shape[modes - 1];
            if continues {
                shape[modes - 1] *= 2;
            } else {
                if modes == crate::MAX_MODES {
                    return Err(F2Error::TooManyModes { bits: self.in_bits });
                }
                shape[modes] = 2;
                stride[modes] = strides[j];
                modes += 1;
            }
            j += 1;
        }
        if modes == 0 {
            modes = 1;
        }
        match Layout::flat(shape.split_at(modes).0, stride.split_at(modes).0) {
            Ok(layout) => match Swizzled::new(swizzle, 0, layout) {
                Ok(layout) => Ok(layout),
                Err(_) => Err(F2Error::LayoutTooLarge { bits: self.in_bits }),
            },
            Err(_) => Err(F2Error::LayoutTooLarge { bits: self.in_bits }),
        }
    }
}

impl Layout {
    /// The layout as a matrix over F2: index bits (colexicographic, first mode lowest) to offset bits; as many rows as the
    /// greatest offset has bits.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4,2):(1,4)").unwrap().matrix().unwrap().columns(), [1, 2, 4]);
    /// assert_eq!(Layout::parse("(4,2):(1,3)").unwrap().matrix().unwrap_err().code(), "not_linear");
    /// ```
    ///
    /// # Errors
    /// An extent that is not a power of two, a negative stride, or modes that carry into each other ([`F2Error::NotLinear`]).
    pub const fn matrix(&self) -> Result<LinearMap, F2Error> {
        LinearMap::of_plain(self)
    }
}

impl Swizzled {
    /// The swizzled layout as a matrix over F2; it must have no offset inside the swizzle.
    ///
    /// ```
    /// use layout_core::Swizzled;
    /// let tile = Swizzled::parse("Sw<1,0,1> o 4:1").unwrap();
    /// assert_eq!(tile.matrix().unwrap().columns(), [1, 3]);
    /// ```
    ///
    /// # Errors
    /// Those of [`Layout::matrix`], and [`F2Error::NotLinear`] at index 0 if that does not go to 0.
    pub const fn matrix(&self) -> Result<LinearMap, F2Error> {
        LinearMap::of_layout(self)
    }
}
