//! What linear maps refuse, with the numbers that stand in the way.

use crate::message::Message;

use super::MAX_BITS;

/// The errors of linear maps.
///
/// ```
/// use layout_core::f2::{F2Error, LinearMap};
/// assert_eq!(LinearMap::identity(65), Err(F2Error::TooManyBits { bits: 65 }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum F2Error {
    /// More than [`MAX_BITS`] bits.
    TooManyBits {
        /// The bits given.
        bits: u32,
    },
    /// As a layout the map has a size or offsets that do not fit in 64 bits.
    LayoutTooLarge {
        /// The index bits of the map.
        bits: u32,
    },
    /// As a layout the map needs more modes than [`MAX_MODES`](crate::MAX_MODES).
    TooManyModes {
        /// The index bits of the map.
        bits: u32,
    },
    /// A column has a bit set above the number of rows.
    ColumnTooLarge {
        /// Which column.
        column: u32,
        /// Its image.
        image: u64,
        /// The number of rows.
        out_bits: u32,
    },
    /// A product's inner dimensions differ.
    DimensionMismatch {
        /// Columns of the matrix on the left.
        left: u32,
        /// Rows of the matrix on the right.
        right: u32,
    },
    /// The dimensions of a sum differ.
    SumMismatch {
        /// Rows and columns on the left.
        left: (u32, u32),
        /// Rows and columns on the right.
        right: (u32, u32),
    },
    /// An inverse of a map that has none.
    Singular {
        /// The rank of the map.
        rank: u32,
        /// Its number of columns.
        in_bits: u32,
        /// Its number of rows.
        out_bits: u32,
    },
    /// The swizzle's bits do not fit the map, or its parameters do not give a bijection.
    SwizzleDoesNotFit {
        /// Bits moved.
        b: u32,
        /// Lowest target bit (source bit, if `s` is negative).
        m: u32,
        /// Distance from the target to the source bits.
        s: i32,
        /// Bits of the map.
        bits: u32,
    },
    /// An extent is not a power of two, so that this mode does not occupy whole bits of the index.
    ExtentNotPowerOfTwo {
        /// Which leaf.
        leaf: usize,
        /// Its extent.
        extent: i64,
    },
    /// The integer map is not linear over xor: at this index the layout and the matrix differ.
    NotLinear {
        /// The index bit or index at which it shows.
        index: u64,
        /// Where the layout sends it.
        offset: i64,
    },
    /// A stride is negative: it has no bit vector.
    NegativeOffset {
        /// The stride.
        offset: i64,
    },
    /// The map is not a swizzle of a layout with power-of-two strides.
    NotASwizzledLayout {
        /// The column that stands in the way.
        column: u32,
        /// Its image.
        image: u64,
    },
    /// A function on all integers has no index bits to count.
    NoShape,
}

impl F2Error {
    /// A stable `snake_case` name for the kind of error.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::zero(2, 2).unwrap().inverse().unwrap_err().code(), "singular");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooManyBits { .. } => "too_many_bits",
            Self::ColumnTooLarge { .. } => "column_too_large",
            Self::DimensionMismatch { .. } | Self::SumMismatch { .. } => "dimension_mismatch",
            Self::LayoutTooLarge { .. } => "layout_too_large",
            Self::TooManyModes { .. } => "too_many_modes",
            Self::Singular { .. } => "singular",
            Self::SwizzleDoesNotFit { .. } => "swizzle_does_not_fit",
            Self::ExtentNotPowerOfTwo { .. } => "extent_not_power_of_two",
            Self::NotLinear { .. } => "not_linear",
            Self::NegativeOffset { .. } => "negative_offset",
            Self::NotASwizzledLayout { .. } => "not_a_swizzled_layout",
            Self::NoShape => "no_shape",
        }
    }
}

impl F2Error {
    /// The message for people, written without allocation so that it also works in `const`.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let error = LinearMap::identity(65).unwrap_err();
    /// assert_eq!(error.message().as_str(), error.to_string());
    /// ```
    pub const fn message(&self) -> Message {
        self.append_to(Message::new())
    }

    pub(crate) const fn append_to(&self, m: Message) -> Message {
        match *self {
            Self::TooManyBits { bits } => m
                .int(bits as i64)
                .text(" bits are more than the ")
                .int(MAX_BITS as i64)
                .text(" a linear map holds"),
            Self::LayoutTooLarge { bits } => m
                .text("a layout of ")
                .int(bits as i64)
                .text(" index bits has a size or offsets beyond 64 bits; use at most 62 index bits"),
            Self::TooManyModes { bits } => m
                .text("the ")
                .int(bits as i64)
                .text(" index bits of the map need more than 32 modes as a layout; keep it as a map"),
            Self::ColumnTooLarge { column, image, out_bits } => m
                .text("column ")
                .int(column as i64)
                .text(" is ")
                .hex(image)
                .text(", which does not fit in ")
                .count(out_bits as usize, "row", "rows")
                .text("; add rows or clear its high bits"),
            Self::DimensionMismatch { left, right } => m
                .text("the left matrix has ")
                .count(left as usize, "column", "columns")
                .text(" and the right matrix has ")
                .count(right as usize, "row", "rows")
                .text("; a product needs as many columns as rows"),
            Self::SumMismatch { left, right } => m
                .text("the left matrix is ")
                .int(left.0 as i64)
                .text("x")
                .int(left.1 as i64)
                .text(" and the right matrix is ")
                .int(right.0 as i64)
                .text("x")
                .int(right.1 as i64)
                .text("; a sum needs equal dimensions"),
            Self::Singular { rank, in_bits, out_bits } => m
                .text("no inverse: a ")
                .int(out_bits as i64)
                .text("x")
                .int(in_bits as i64)
                .text(" matrix of rank ")
                .int(rank as i64)
                .text(" is not a bijection; use a square matrix of full rank"),
            Self::SwizzleDoesNotFit { b, m: bit, s, bits } => {
                let m = m.text("Swizzle<").int(b as i64).text(",").int(bit as i64).text(",").int(s as i64);
                if s == 0 {
                    m.text("> is not injective: S must not be 0")
                } else {
                    m.text("> needs ")
                        .int(b as i64 + bit as i64 + s.unsigned_abs() as i64)
                        .text(" bits and the map has ")
                        .int(bits as i64)
                }
            }
            Self::ExtentNotPowerOfTwo { leaf, extent } => m
                .text("the extent ")
                .int(extent)
                .text(" of mode ")
                .index(leaf)
                .text(" is not a power of two, so its index has no bits to map"),
            Self::NotLinear { index, offset } => m
                .text("index ")
                .int(index as i64)
                .text(" goes to ")
                .int(offset)
                .text(if index == 0 {
                    ", but a linear map sends 0 to 0; leave out the offset"
                } else {
                    ", which is not the xor of its bits' images: the modes carry into each other"
                }),
            Self::NegativeOffset { offset } => {
                m.text("the stride ").int(offset).text(" is negative and has no bit vector; use strides of at least 0")
            }
            Self::NotASwizzledLayout { column, image } => m
                .text("column ")
                .int(column as i64)
                .text(" (")
                .hex(image)
                .text(") fits no Swizzle<B,M,S> of a layout with power-of-two strides; keep it as a map"),
            Self::NoShape => {
                m.text("a function on all integers has no matrix; compose it with a layout first")
            }
        }
    }
}

impl core::fmt::Display for F2Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.message().as_str())
    }
}

impl core::error::Error for F2Error {}
