//! Bijections, covers, disjointness, alignment and carries.
//!
//! Each has a closed form where strides allow one, and an enumeration where they don't. Example: `(4,8):(8,1)` is a
//! bijection onto 0..32 because its strides, sorted, are 1 and 8 with extents 8 and 4: each stride is the product of the extents
//! below it.

use crate::banks::Access;
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;

use super::ProofError;

/// The most indices that are enumerated.
const LIMIT: i64 = 1 << 17;

/// A range of bytes of shared memory.
///
/// ```
/// use layout_core::proof::{Region, disjoint};
/// let (a, b) = (Region { base: 0, bytes: 1024 }, Region { base: 1024, bytes: 512 });
/// assert!(disjoint(a, b).is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Region {
    /// The first byte.
    pub base: i64,
    /// How many.
    pub bytes: i64,
}

impl Region {
    /// The range of `bytes` bytes from `base` on.
    ///
    /// ```
    /// use layout_core::proof::{Region, disjoint};
    /// assert!(disjoint(Region::new(0, 1024), Region::new(1024, 512)).is_ok());
    /// ```
    pub const fn new(base: i64, bytes: i64) -> Self {
        Self { base, bytes }
    }
}

/// The leaf with the least stride that is not done yet; extents of 1 are left out.
const fn next_by_stride(layout: &Layout, done: &[bool; crate::MAX_MODES]) -> Option<usize> {
    let mut least: Option<usize> = None;
    let mut i = 0;
    while i < layout.leaves() {
        if !done[i] && layout.leaf(i).0 > 1 {
            match least {
                Some(l) if layout.leaf(l).1 <= layout.leaf(i).1 => {}
                _ => least = Some(i),
            }
        }
        i += 1;
    }
    least
}

/// Whether sorted strides are the running product of the extents: the layout is a bijection onto `0..size`.
const fn is_compact(layout: &Layout) -> bool {
    let mut expected = 1_i64;
    let mut done = [false; crate::MAX_MODES];
    while let Some(i) = next_by_stride(layout, &done) {
        if layout.leaf(i).1 != expected {
            return false;
        }
        expected *= layout.leaf(i).0;
        done[i] = true;
    }
    true
}

/// Whether each sorted stride exceeds all that the smaller ones reach: the layout is injective.
const fn is_spread(layout: &Layout) -> bool {
    let mut reach = 0_i64;
    let mut done = [false; crate::MAX_MODES];
    while let Some(i) = next_by_stride(layout, &done) {
        let (extent, stride) = layout.leaf(i);
        if stride <= reach {
            return false;
        }
        reach += (extent - 1) * stride;
        done[i] = true;
    }
    true
}

/// Proves that the map is a bijection onto `0..size`.
///
/// ```
/// use layout_core::{Swizzled, proof::{ProofError, bijective}};
/// assert!(bijective(&Swizzled::parse("Sw<2,0,2> o (4,4):(4,1)").unwrap()).is_ok());
/// let padded = bijective(&Swizzled::parse("(4,4):(1,5)").unwrap()).unwrap_err();
/// assert!(matches!(padded, ProofError::OutOfRange { size: 16, .. }));
/// ```
///
/// # Errors
/// [`ProofError::Collision`] or [`ProofError::OutOfRange`] with the indices that show it; [`ProofError::TooManyCases`] for more than
/// 2^17 indices that no closed form covers.
pub const fn bijective(map: &Swizzled) -> Result<(), ProofError> {
    let size = map.size();
    if map.offset() == 0 && is_compact(&map.layout()) && size % swizzle_period(map.swizzle()) == 0 {
        return Ok(());
    }
    distinct(map, size)
}

/// Proves that the map is injective, with offsets anywhere in `0..`.
///
/// ```
/// use layout_core::{Swizzled, proof::{ProofError, injective}};
/// assert!(injective(&Swizzled::parse("(4,4):(1,5)").unwrap()).is_ok());
/// let error = injective(&Swizzled::parse("(4,4):(1,3)").unwrap()).unwrap_err();
/// assert_eq!(error, ProofError::Collision { first: 3, second: 4, offset: 3 });
/// ```
///
/// # Errors
/// [`ProofError::Collision`], [`ProofError::NegativeOffset`]; offsets from 2^17 on that no closed form covers are
/// [`ProofError::TooManyCases`].
pub const fn injective(map: &Swizzled) -> Result<(), ProofError> {
    // A swizzle is a bijection of the non-negative integers: the layout alone decides.
    let layout = map.layout();
    let (least, most) = layout.offset_range();
    if map.offset() + least < 0 {
        let mut index = 0;
        while index + 1 < map.size() && map.offset() + layout.index(index) >= 0 {
            index += 1;
        }
        return Err(ProofError::NegativeOffset {
            index,
            offset: map.offset() + layout.index(index),
        });
    }
    if is_spread(&layout) {
        return Ok(());
    }
    let Ok(plain) = Swizzled::new(Swizzle::IDENTITY, -least, layout) else {
        return Err(ProofError::TooManyCases {
            cases: i64::MAX,
            limit: LIMIT,
        });
    };
    match distinct(&plain, most - least + 1) {
        Err(ProofError::Collision { first, second, .. }) => Err(ProofError::Collision {
            first,
            second,
            offset: map.index(first),
        }),
        other => other,
    }
}

/// Enumerates: offsets within `0..bound`, each at most once.
const fn distinct(map: &Swizzled, bound: i64) -> Result<(), ProofError> {
    let size = map.size();
    if size > LIMIT || bound > LIMIT {
        let cases = if size > bound { size } else { bound };
        return Err(ProofError::TooManyCases {
            cases,
            limit: LIMIT,
        });
    }
    let mut seen = [0_u64; (LIMIT / 64) as usize];
    let mut index = 0;
    while index < size {
        let offset = map.index(index);
        if offset < 0 || offset >= bound {
            return Err(ProofError::OutOfRange {
                index,
                offset,
                size: bound,
            });
        }
        let (word, bit) = ((offset / 64) as usize, offset % 64);
        if seen[word] >> bit & 1 == 1 {
            let mut first = 0;
            while map.index(first) != offset {
                first += 1;
            }
            return Err(ProofError::Collision {
                first,
                second: index,
                offset,
            });
        }
        seen[word] |= 1 << bit;
        index += 1;
    }
    Ok(())
}

/// Proves that the threads' values cover the tile's elements `0..tile` exactly once. `map` sends (thread, value) to the
/// element; the indices in a refusal are linear in (thread, value).
///
/// ```
/// use layout_core::{Layout, proof::covers_exactly_once};
/// // 32 threads with two neighbours each.
/// assert!(covers_exactly_once(64, &Layout::parse("(32,2):(2,1)").unwrap()).is_ok());
/// assert_eq!(
///     covers_exactly_once(128, &Layout::parse("(32,2):(2,1)").unwrap()).unwrap_err().code(),
///     "size_mismatch",
/// );
/// ```
///
/// # Errors
/// [`ProofError::SizeMismatch`], or as [`bijective`].
pub const fn covers_exactly_once(tile: i64, map: &Layout) -> Result<(), ProofError> {
    if map.size() != tile {
        return Err(ProofError::SizeMismatch {
            size: map.size(),
            tile,
        });
    }
    bijective(&Swizzled::plain(*map))
}

/// Proves that the two regions are disjoint.
///
/// ```
/// use layout_core::proof::{ProofError, Region, disjoint};
/// let region = |base, bytes| Region { base, bytes };
/// assert!(disjoint(region(0, 64), region(64, 64)).is_ok());
/// assert_eq!(disjoint(region(0, 64), region(48, 64)), Err(ProofError::Overlap { byte: 48 }));
/// ```
///
/// # Errors
/// [`ProofError::Overlap`] with the first shared byte.
pub const fn disjoint(a: Region, b: Region) -> Result<(), ProofError> {
    let first = if a.base > b.base { a.base } else { b.base };
    let (a_end, b_end) = (a.base + a.bytes, b.base + b.bytes);
    let end = if a_end < b_end { a_end } else { b_end };
    if first < end {
        Err(ProofError::Overlap { byte: first })
    } else {
        Ok(())
    }
}

/// Proves that `value` is a multiple of `of`.
///
/// ```
/// use layout_core::proof::{ProofError, multiple_of};
/// assert!(multiple_of(3072, 1024).is_ok());
/// assert_eq!(multiple_of(1000, 16), Err(ProofError::NotMultiple { value: 1000, of: 16 }));
/// ```
///
/// # Errors
/// [`ProofError::NotMultiple`].
pub const fn multiple_of(value: i64, of: i64) -> Result<(), ProofError> {
    if of > 0 && value % of == 0 {
        Ok(())
    } else {
        Err(ProofError::NotMultiple { value, of })
    }
}

/// The period of a swizzle, 2^(highest xor bit + 1) in the swizzle's unit. Bases, stages and sub-tiles that are multiples of it
/// commute with the swizzle.
///
/// ```
/// use layout_core::{Swizzle, proof::swizzle_period};
/// // The 128-byte swizzle repeats after 8 rows of 128 bytes.
/// assert_eq!(swizzle_period(Swizzle::new(3, 4, 3).unwrap()), 1024);
/// ```
pub const fn swizzle_period(swizzle: Swizzle) -> i64 {
    1 << swizzle.width()
}

/// Proves that every byte offset of `map` is a multiple of the access width.
///
/// ```
/// use layout_core::{Swizzled, banks::Access, proof::aligned};
/// let rows = Swizzled::parse("(8,4):(72,16)").unwrap();
/// assert!(aligned(Access::Ld64, &rows).is_ok());
/// assert_eq!(aligned(Access::Ld128, &rows).unwrap_err().code(), "not_multiple");
/// ```
///
/// # Errors
/// [`ProofError::NotMultiple`] with the offset or stride at fault; [`ProofError::TooManyCases`] for more than 2^17 offsets under
/// a swizzle that changes bits inside the access.
pub const fn aligned(access: Access, map: &Swizzled) -> Result<(), ProofError> {
    let bytes = access.bytes() as i64;
    if map.swizzle().target_mask() & (bytes - 1) != 0 {
        // Only the offsets themselves can tell.
        if map.size() > LIMIT {
            return Err(ProofError::TooManyCases {
                cases: map.size(),
                limit: LIMIT,
            });
        }
        let mut index = 0;
        while index < map.size() {
            if map.index(index) % bytes != 0 {
                return Err(ProofError::NotMultiple {
                    value: map.index(index),
                    of: bytes,
                });
            }
            index += 1;
        }
        return Ok(());
    }
    if map.offset() % bytes != 0 {
        return Err(ProofError::NotMultiple {
            value: map.offset(),
            of: bytes,
        });
    }
    let layout = map.layout();
    let mut leaf = 0;
    while leaf < layout.leaves() {
        let (extent, stride) = layout.leaf(leaf);
        if extent > 1 && stride % bytes != 0 {
            return Err(ProofError::NotMultiple {
                value: stride,
                of: bytes,
            });
        }
        leaf += 1;
    }
    Ok(())
}

/// Proves that no mode of the layout carries into another, nor into `base`: their offsets may be combined by `or` and `xor` as
/// well as by addition.
///
/// ```
/// use layout_core::{Layout, proof::carry_free};
/// assert!(carry_free(1024, &Layout::parse("(8,8):(128,16)").unwrap()).is_ok());
/// assert_eq!(carry_free(64, &Layout::parse("(8,8):(128,16)").unwrap()).unwrap_err().code(), "carry");
/// ```
///
/// # Errors
/// [`ProofError::Carry`] with the mode and the bit, [`ProofError::NegativeStride`], [`ProofError::NegativeBase`].
pub const fn carry_free(base: i64, layout: &Layout) -> Result<(), ProofError> {
    if base < 0 {
        return Err(ProofError::NegativeBase { base });
    }
    let mut taken = base;
    let mut leaf = 0;
    while leaf < layout.leaves() {
        let (extent, stride) = layout.leaf(leaf);
        if extent > 1 && stride != 0 {
            if stride < 0 {
                return Err(ProofError::NegativeStride { leaf, stride });
            }
            let mask = reachable_bits(extent, stride);
            if taken & mask != 0 {
                return Err(ProofError::Carry {
                    leaf,
                    bit: (taken & mask).trailing_zeros(),
                });
            }
            taken |= mask;
        }
        leaf += 1;
    }
    Ok(())
}

/// The bits that multiples of `stride` below `extent` times it can have: exact if they are the xors of the powers', else all from the
/// lowest to the highest.
const fn reachable_bits(extent: i64, stride: i64) -> i64 {
    let reach = (extent - 1) * stride;
    let all = (u64::MAX >> reach.leading_zeros()) as i64 & !((stride & -stride) - 1);
    if !(extent as u64).is_power_of_two() {
        return all;
    }
    let mut exact = 0;
    let mut bit = 0;
    while bit < extent.trailing_zeros() {
        if exact & (stride << bit) != 0 {
            return all;
        }
        exact |= stride << bit;
        bit += 1;
    }
    exact
}
