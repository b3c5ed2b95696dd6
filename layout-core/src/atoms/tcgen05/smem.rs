//! Operands in shared memory: the canonical layouts of each swizzle mode.

use crate::error::{LayoutError, at_least_one, attempt, fits};
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

/// The contiguous axis of an operand.
///
/// ```
/// use layout_core::atoms::tcgen05::{Major, SmemSwizzle, smem_operand};
/// let a = smem_operand(Major::Mn, SmemSwizzle::B128, 16, 128, 16).unwrap();
/// assert_eq!(a.layout.at(&[1, 0]), 1); // neighbours along M are contiguous
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Major {
    /// K: A is row-major, B is column-major.
    K,
    /// M of A, N of B: the transposed operands.
    Mn,
}

/// How 16-byte units are permuted within a repeating pattern.
///
/// ```
/// use layout_core::atoms::tcgen05::SmemSwizzle;
/// assert_eq!(SmemSwizzle::B128.bytes().to_string(), "Sw<3,4,3>");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum SmemSwizzle {
    /// Not at all.
    None,
    /// 32-byte swizzle.
    B32,
    /// 64-byte swizzle.
    B64,
    /// 128-byte swizzle.
    B128,
    /// 128-byte swizzle that keeps units of 32 bytes whole: the mode of transposed 32-bit operands.
    B128Atom32,
}

impl SmemSwizzle {
    /// All modes.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::SmemSwizzle;
    /// assert_eq!(SmemSwizzle::ALL.map(SmemSwizzle::name), ["none", "32B", "64B", "128B", "128B_32B"]);
    /// ```
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::B32,
        Self::B64,
        Self::B128,
        Self::B128Atom32,
    ];

    /// The mode's name here: `none`, `32B`, `64B`, `128B`, `128B_32B`.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::SmemSwizzle;
    /// assert_eq!(SmemSwizzle::B64.name(), "64B");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::B32 => "32B",
            Self::B64 => "64B",
            Self::B128 => "128B",
            Self::B128Atom32 => "128B_32B",
        }
    }

    /// Bits 61 to 63 of the shared-memory descriptor.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::SmemSwizzle;
    /// assert_eq!(SmemSwizzle::ALL.map(SmemSwizzle::descriptor_bits), [0, 6, 4, 2, 1]);
    /// ```
    pub const fn descriptor_bits(self) -> u64 {
        match self {
            Self::None => 0,
            Self::B128Atom32 => 1,
            Self::B128 => 2,
            Self::B64 => 4,
            Self::B32 => 6,
        }
    }

    /// 16-byte units in a row of the pattern: 1, 2, 4 or 8.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::SmemSwizzle;
    /// assert_eq!(SmemSwizzle::B64.units(), 4);
    /// ```
    pub const fn units(self) -> i64 {
        match self {
            Self::None => 1,
            Self::B32 => 2,
            Self::B64 => 4,
            Self::B128 | Self::B128Atom32 => 8,
        }
    }

    /// Rows after which an MN-major pattern repeats: 8, or 4 with units of 32 bytes.
    const fn rows(self) -> i64 {
        match self {
            Self::B128Atom32 => 4,
            _ => 8,
        }
    }

    /// The swizzle of byte addresses.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::SmemSwizzle;
    /// assert_eq!(SmemSwizzle::B128Atom32.bytes().to_string(), "Sw<2,5,2>");
    /// ```
    pub const fn bytes(self) -> Swizzle {
        crate::expect(match self {
            Self::None => Swizzle::new(0, 4, 3),
            Self::B32 => Swizzle::new(1, 4, 3),
            Self::B64 => Swizzle::new(2, 4, 3),
            Self::B128 => Swizzle::new(3, 4, 3),
            Self::B128Atom32 => Swizzle::new(2, 5, 2),
        })
    }
}

/// An operand in shared memory, with the fields of its descriptor.
///
/// ```
/// use layout_core::atoms::tcgen05::{Major, SmemSwizzle, smem_operand};
/// let b = smem_operand(Major::K, SmemSwizzle::B64, 16, 64, 32).unwrap();
/// assert_eq!((b.leading_bytes, b.stride_bytes), (16, 512)); // 8 rows of 64 bytes
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct SmemOperand {
    /// `(mn, k) -> element`, with the swizzle.
    pub layout: Swizzled,
    /// The contiguous axis.
    pub major: Major,
    /// The swizzle mode.
    pub swizzle: SmemSwizzle,
    /// Bits of an element.
    pub element_bits: i64,
    /// The descriptor's leading dimension byte offset; 16 for swizzled K-major operands, which do not use it.
    pub leading_bytes: i64,
    /// The descriptor's stride dimension byte offset.
    pub stride_bytes: i64,
}

const OPERATION: &str = "a tcgen05 operand in shared memory";

/// The canonical layout of an operand of `mn` rows (of A; columns of B) and `k` columns, its patterns packed one after the other:
/// along the contiguous axis first, unless the swizzle fixes the order.
///
/// ```
/// use layout_core::atoms::tcgen05::{Major, SmemSwizzle, smem_operand};
/// // 128 rows of 64 halves, 128 bytes each, in 8-row patterns of 1024 bytes.
/// let a = smem_operand(Major::K, SmemSwizzle::B128, 16, 128, 64).unwrap();
/// assert_eq!(a.layout.to_string(), "Sw<3,3,3> o ((8,16),(8,8)):((64,512),(1,8))");
/// assert_eq!((a.stride_bytes, a.swizzle.descriptor_bits()), (1024, 2));
/// ```
///
/// # Errors
///
/// Those of [`smem_operand_strided`].
pub const fn smem_operand(
    major: Major,
    swizzle: SmemSwizzle,
    element_bits: i64,
    mn: i64,
    k: i64,
) -> Result<SmemOperand, LayoutError> {
    // Bytes of one pattern: 8 (or 4) rows of its units.
    let rows = match major {
        Major::K => 8,
        Major::Mn => swizzle.rows(),
    };
    let pattern = rows * swizzle.units() * 16;
    let elements = attempt!(unit_elements(element_bits));
    let (leading, stride) = match (major, swizzle) {
        // Units side by side along k, then the next 8 rows.
        (Major::K, SmemSwizzle::None) => (pattern, attempt!(bytes(pattern, k / elements))),
        (Major::K, _) => (16, pattern),
        // Units side by side along mn, then the next 8 of k.
        (Major::Mn, SmemSwizzle::None) => (attempt!(bytes(pattern, mn / elements)), pattern),
        (Major::Mn, _) => (
            pattern,
            attempt!(bytes(pattern, mn / (elements * swizzle.units()))),
        ),
    };
    smem_operand_strided(major, swizzle, element_bits, mn, k, leading, stride)
}

/// The canonical layout with the two offsets of the descriptor chosen by the caller. With T elements in 16 bytes and W units in
/// a row of the pattern:
///
/// | major | swizzle | `(mn, k) -> element` |
/// |---|---|---|
/// | K | none | `((8,m),(T,k)):((T,SBO),(1,LBO))` |
/// | K | 32, 64, 128 bytes | `((8,m),(T,W)):((W·T,SBO),(1,T))`, LBO unused |
/// | MN | none | `((T,m),(8,k)):((1,SBO),(T,LBO))` |
/// | MN | 32, 64, 128 bytes | `((T,W,m),(8,k)):((1,T,LBO),(W·T,SBO))` |
/// | MN | 128 bytes in units of 32 | `((T,8,m),(4,k)):((1,T,LBO),(8·T,SBO))` |
///
/// ```
/// use layout_core::atoms::tcgen05::{Major, SmemSwizzle, smem_operand_strided};
/// // Patterns of 8 rows, 2048 bytes apart: every second one belongs to another operand.
/// let a = smem_operand_strided(Major::K, SmemSwizzle::B128, 16, 64, 64, 16, 2048).unwrap();
/// assert_eq!(a.layout.at(&[8, 0]), 1024); // in elements
/// ```
///
/// # Errors
///
/// Elements that are not of 4, 8, 16 or 32 bits (those of 6 bits lie in 8); a mode that the operand does not support: 32-bit MN-major
/// operands take only the 128-byte swizzle in units of 32 bytes, all others do not take that one, and 4-bit ones must be
/// K-major; extents that are not a multiple of the pattern, or, for swizzled K-major operands, k wider than the swizzle; offsets
/// that are not multiples of 16 bytes from 0 to 262128.
pub const fn smem_operand_strided(
    major: Major,
    swizzle: SmemSwizzle,
    element_bits: i64,
    mn: i64,
    k: i64,
    leading_bytes: i64,
    stride_bytes: i64,
) -> Result<SmemOperand, LayoutError> {
    let t = attempt!(unit_elements(element_bits));
    attempt!(check_mode(major, swizzle, element_bits));
    attempt!(check_offset(
        "the leading dimension byte offset",
        leading_bytes
    ));
    attempt!(check_offset(
        "the stride dimension byte offset",
        stride_bytes
    ));
    let w = swizzle.units();
    let lbo = leading_bytes * 8 / element_bits;
    let sbo = stride_bytes * 8 / element_bits;
    let rows = swizzle.rows();
    let layout = match (major, swizzle) {
        (Major::K, SmemSwizzle::None) => {
            let m = attempt!(count("the number of rows", mn, 8));
            let units = attempt!(count("k", k, t));
            attempt!(modes(&[8, m], &[t, sbo], &[t, units], &[1, lbo]))
        }
        (Major::K, _) => {
            let m = attempt!(count("the number of rows", mn, 8));
            let units = attempt!(count("k", k, t));
            if units > w {
                return Err(LayoutError::NumberOutOfRange {
                    operation: OPERATION,
                    argument: "k in one descriptor of this swizzle",
                    value: k,
                    least: t,
                    most: w * t,
                });
            }
            attempt!(modes(&[8, m], &[w * t, sbo], &[t, units], &[1, t]))
        }
        (Major::Mn, SmemSwizzle::None) => {
            let m = attempt!(count("the number of rows", mn, t));
            let units = attempt!(count("k", k, 8));
            attempt!(modes(&[t, m], &[1, sbo], &[8, units], &[t, lbo]))
        }
        (Major::Mn, _) => {
            let m = attempt!(count("the number of rows", mn, w * t));
            let units = attempt!(count("k", k, rows));
            attempt!(modes(
                &[t, w, m],
                &[1, t, lbo],
                &[rows, units],
                &[w * t, sbo]
            ))
        }
    };
    // The same permutation, of elements: 2^e elements to a byte move it up, 2^e bytes to an element down.
    let of_bytes = swizzle.bytes();
    let base = match element_bits {
        4 => of_bytes.m() + 1,
        8 => of_bytes.m(),
        16 => of_bytes.m() - 1,
        _ => of_bytes.m() - 2,
    };
    let of_elements = attempt!(Swizzle::new(of_bytes.b(), base, of_bytes.s()));
    Ok(SmemOperand {
        layout: attempt!(Swizzled::new(of_elements, 0, layout)),
        major,
        swizzle,
        element_bits,
        leading_bytes,
        stride_bytes,
    })
}

/// Elements in 16 bytes.
const fn unit_elements(element_bits: i64) -> Result<i64, LayoutError> {
    match element_bits {
        4 | 8 | 16 | 32 => Ok(128 / element_bits),
        _ => Err(LayoutError::InvalidNumber {
            operation: OPERATION,
            argument: "the width of an element in bits",
            value: element_bits,
            accepted: "4, 8, 16 or 32 (elements of 6 bits lie in 8)",
        }),
    }
}

/// Which modes exist (PTX ISA 9.0, table 52).
const fn check_mode(
    major: Major,
    swizzle: SmemSwizzle,
    element_bits: i64,
) -> Result<(), LayoutError> {
    let (given, accepted) = match (major, swizzle, element_bits) {
        (Major::K, SmemSwizzle::B128Atom32, _) => (
            "the 128-byte swizzle in units of 32 bytes of a K-major operand",
            "none, 32B, 64B or 128B",
        ),
        (Major::Mn, _, 4) => ("an MN-major operand of 4 bits", "a K-major one"),
        (Major::Mn, SmemSwizzle::B128Atom32, 8 | 16) => (
            "the 128-byte swizzle in units of 32 bytes of elements of 8 or 16 bits",
            "none, 32B, 64B or 128B",
        ),
        (
            Major::Mn,
            SmemSwizzle::None | SmemSwizzle::B32 | SmemSwizzle::B64 | SmemSwizzle::B128,
            32,
        ) => (
            "this swizzle of an MN-major operand of 32 bits",
            "the 128-byte swizzle in units of 32 bytes",
        ),
        _ => return Ok(()),
    };
    Err(LayoutError::Unsupported {
        operation: OPERATION,
        given,
        accepted,
    })
}

const fn check_offset(argument: &'static str, value: i64) -> Result<(), LayoutError> {
    if value < 0 || value > 0x3fff0 || value % 16 != 0 {
        return Err(LayoutError::InvalidNumber {
            operation: OPERATION,
            argument,
            value,
            accepted: "a multiple of 16 from 0 to 262128",
        });
    }
    Ok(())
}

/// How many patterns an extent has.
const fn count(argument: &'static str, extent: i64, pattern: i64) -> Result<i64, LayoutError> {
    attempt!(at_least_one(OPERATION, argument, extent));
    if extent % pattern != 0 {
        return Err(LayoutError::NotMultiple {
            operation: OPERATION,
            argument,
            value: extent,
            divisor: pattern,
        });
    }
    Ok(extent / pattern)
}

const fn bytes(pattern: i64, patterns: i64) -> Result<i64, LayoutError> {
    fits(pattern.checked_mul(patterns), OPERATION)
}

const fn modes(
    rows: &[i64],
    row_strides: &[i64],
    columns: &[i64],
    column_strides: &[i64],
) -> Result<Layout, LayoutError> {
    Layout::tuple(&[
        attempt!(Layout::flat(rows, row_strides)),
        attempt!(Layout::flat(columns, column_strides)),
    ])
}
