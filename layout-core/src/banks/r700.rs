//! The write map of AMD's R700 local data share: conflict-free for every legal stride.
//!
//! The memory has 4 banks of 256 entries of 16 bytes. A thread writes 4 dwords at a time, to
//!
//! ```text
//! bank  = thread mod 4
//! entry = ((thread >> 2) * dst_stride + dst_index) / 4        stride and index in dwords
//! ```
//!
//! so that four neighbours always meet four banks. A thread of a group of up to 64 owns 64 dwords; each doubling of the group halves that,
//! down to 4 at 1024. As layouts: `place`, (bank, entry) -> byte, is `(4,256):(16,64)`; the threads' map, ((t mod 4, t / 4), slot) ->
//! place, is composed with it.
//!
//! ```
//! use layout_core::banks::r700::write_map;
//! let map = write_map(64, 16).unwrap();
//! assert_eq!(map.to_string(), "((4,16),4):((16,256),64)");
//! assert_eq!(map.at(&[5, 2]), 16 * 1 + 64 * (4 + 2)); // thread 5, dst_index 8: bank 1, entry 6
//! assert!(write_map(128, 64).is_err()); // 128 threads own 32 dwords each
//! ```
//!
//! Source: AMD R700-family instruction set architecture, section 2.6.2.

use core::fmt;

use crate::error::LayoutError;
use crate::int_tuple::IntTuple;
use crate::layout::Layout;

/// Threads of the largest group.
///
/// ```
/// use layout_core::banks::r700::{MAX_GROUP, owned_dwords};
/// assert_eq!(owned_dwords(MAX_GROUP), Ok(4));
/// assert!(owned_dwords(MAX_GROUP + 1).is_err());
/// ```
pub const MAX_GROUP: i64 = 1024;

/// The errors of an R700 write.
///
/// ```
/// use layout_core::banks::r700::{R700Error, write_map};
/// let error = write_map(128, 64).unwrap_err();
/// assert_eq!(error, R700Error::BeyondOwned { dwords: 64, owned: 32, threads: 128 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum R700Error {
    /// A group of 0 or of more than 1024 threads.
    Group {
        /// Its threads.
        threads: i64,
    },
    /// A stride that is not a multiple of 4 from 4 to 64 dwords.
    Stride {
        /// The stride in dwords.
        dwords: i64,
    },
    /// A stride beyond the dwords that a thread of this group owns.
    BeyondOwned {
        /// The stride in dwords.
        dwords: i64,
        /// The dwords a thread owns.
        owned: i64,
        /// Threads of the group.
        threads: i64,
    },
    /// An index that is not a multiple of 4, or not below the stride: the write would reach another thread's dwords.
    Index {
        /// The index in dwords.
        dwords: i64,
        /// The stride in dwords.
        stride: i64,
    },
    /// A thread that is not in the group.
    Thread {
        /// The thread.
        thread: i64,
        /// Threads of the group.
        threads: i64,
    },
    /// The layouts do not compose.
    Layout(LayoutError),
}

impl R700Error {
    /// A stable `snake_case` name for the kind of error.
    ///
    /// ```
    /// use layout_core::banks::r700::write_map;
    /// assert_eq!(write_map(64, 0).unwrap_err().code(), "stride");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Group { .. } => "group",
            Self::Stride { .. } => "stride",
            Self::BeyondOwned { .. } => "beyond_owned",
            Self::Index { .. } => "index",
            Self::Thread { .. } => "thread",
            Self::Layout(error) => error.code(),
        }
    }
}

impl fmt::Display for R700Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Group { threads } => write!(
                f,
                "a group of {threads} threads; groups have 1 to {MAX_GROUP}"
            ),
            Self::Stride { dwords } => {
                write!(
                    f,
                    "dst_stride is {dwords}; strides are multiples of 4 dwords from 4 to 64"
                )
            }
            Self::BeyondOwned {
                dwords,
                owned,
                threads,
            } => {
                write!(
                    f,
                    "dst_stride is {dwords}; a thread of a group of {threads} owns {owned} dwords, so use at most {owned}"
                )
            }
            Self::Index { dwords, stride } => {
                write!(
                    f,
                    "dst_index is {dwords}; indices are multiples of 4 dwords from 0, below the stride of {stride}"
                )
            }
            Self::Thread { thread, threads } => {
                write!(
                    f,
                    "thread {thread} is not in a group of {threads}; use 0 to {}",
                    threads - 1
                )
            }
            Self::Layout(ref error) => error.fmt(f),
        }
    }
}

impl core::error::Error for R700Error {}

/// Dwords that each thread owns: 64 up to 64 threads, 32 up to 128, down to 4 at 1024.
///
/// ```
/// use layout_core::banks::r700::owned_dwords;
/// assert_eq!([64, 65, 1024].map(|threads| owned_dwords(threads).unwrap()), [64, 32, 4]);
/// ```
///
/// # Errors
/// [`R700Error::Group`].
pub const fn owned_dwords(threads: i64) -> Result<i64, R700Error> {
    if threads < 1 || threads > MAX_GROUP {
        return Err(R700Error::Group { threads });
    }
    Ok(4096 / allotted(threads))
}

/// Threads that a group takes up: whole wavefronts of 64, in powers of two.
const fn allotted(threads: i64) -> i64 {
    if threads <= 64 {
        64
    } else {
        (threads as u64).next_power_of_two() as i64
    }
}

/// Where a write goes: (bank, entry).
///
/// ```
/// use layout_core::banks::r700::write_place;
/// // Thread 5 of 64, stride 16 dwords, dst_index 8: bank 1, entry 6.
/// assert_eq!(write_place(64, 16, 8, 5), Ok((1, 6)));
/// ```
///
/// # Errors
/// An illegal group, stride, index or thread.
pub const fn write_place(
    threads: i64,
    dst_stride: i64,
    dst_index: i64,
    thread: i64,
) -> Result<(i64, i64), R700Error> {
    if let Err(error) = check(threads, dst_stride) {
        return Err(error);
    }
    if dst_index < 0 || dst_index >= dst_stride || dst_index % 4 != 0 {
        return Err(R700Error::Index {
            dwords: dst_index,
            stride: dst_stride,
        });
    }
    if thread < 0 || thread >= threads {
        return Err(R700Error::Thread { thread, threads });
    }
    Ok((thread % 4, ((thread >> 2) * dst_stride + dst_index) / 4))
}

const fn check(threads: i64, dst_stride: i64) -> Result<(), R700Error> {
    let owned = match owned_dwords(threads) {
        Ok(owned) => owned,
        Err(error) => return Err(error),
    };
    if dst_stride < 4 || dst_stride > 64 || dst_stride % 4 != 0 {
        return Err(R700Error::Stride { dwords: dst_stride });
    }
    if dst_stride > owned {
        return Err(R700Error::BeyondOwned {
            dwords: dst_stride,
            owned,
            threads,
        });
    }
    Ok(())
}

/// The write map as a composed layout: (thread, `dst_index` / 4) to the byte address (16 for the next bank, 64 for the next entry),
/// over all threads that the group takes up.
///
/// ```
/// use layout_core::banks::r700::{write_map, write_place};
/// let map = write_map(64, 16).unwrap();
/// assert_eq!(map.to_string(), "((4,16),4):((16,256),64)");
/// let (bank, entry) = write_place(64, 16, 8, 5).unwrap();
/// assert_eq!(map.at(&[5, 8 / 4]), 16 * bank + 64 * entry);
/// ```
///
/// # Errors
/// An illegal group or stride.
pub const fn write_map(threads: i64, dst_stride: i64) -> Result<Layout, R700Error> {
    if let Err(error) = check(threads, dst_stride) {
        return Err(error);
    }
    match composed(allotted(threads), dst_stride) {
        Ok(map) => Ok(map),
        Err(error) => Err(R700Error::Layout(error)),
    }
}

const fn composed(threads: i64, dst_stride: i64) -> Result<Layout, LayoutError> {
    // (bank, entry) -> byte
    let place = match Layout::flat(&[4, 256], &[16, 64]) {
        Ok(place) => place,
        Err(error) => return Err(error),
    };
    // ((thread mod 4, thread / 4), slot) -> bank + 4 * entry
    let shape = match (
        IntTuple::flat(&[4, threads / 4]),
        IntTuple::flat(&[1, dst_stride]),
    ) {
        (Ok(shape), Ok(stride)) => (shape, stride),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let threads = match Layout::new(shape.0, shape.1) {
        Ok(threads) => threads,
        Err(error) => return Err(error),
    };
    let slots = match Layout::mode(dst_stride / 4, 4) {
        Ok(slots) => slots,
        Err(error) => return Err(error),
    };
    match Layout::tuple(&[threads, slots]) {
        Ok(writes) => place.compose(&writes),
        Err(error) => Err(error),
    }
}
