//! AMD R700: the write map of the local data share.
//!
//! The LDS has 4 banks of 256 entries of 16 bytes. A thread can only write to its own place: bank `thread mod 4`, dword
//! `(thread >> 2)·dst_stride + dst_index` of that bank (R700 ISA manual, section 2.6.2). That is a layout; no two threads
//! ever meet in a bank, whatever the stride.

use crate::error::{LayoutError, attempt};
use crate::layout::Layout;

/// Dwords of one bank: 256 entries of 4.
const BANK_DWORDS: i64 = 1024;

/// `(thread, dst_index) -> bank + 4·dword`, `dword` counting within the bank; `dst_index` runs over the thread's own
/// `dst_stride` dwords. Bijective onto `0..threads·dst_stride` dwords.
///
/// ```
/// use layout_core::atoms::r700_lds_write;
/// let write = r700_lds_write(64, 16).unwrap();
/// assert_eq!(write.to_string(), "((4,16),16):((1,64),4)");
/// ```
///
/// # Errors
///
/// `dst_stride` that is not a multiple of 4 from 4 to 64, a thread group that is not a multiple of 4 from 4 to 1024, or more
/// than the 16 KB of the LDS.
pub const fn r700_lds_write(threads: i64, dst_stride: i64) -> Result<Layout, LayoutError> {
    attempt!(multiple_of_4(
        "R700 dst_stride in dwords",
        1,
        dst_stride,
        64
    ));
    attempt!(multiple_of_4("R700 threads of a group", 0, threads, 1024));
    let size = threads / 4 * dst_stride;
    if size > BANK_DWORDS {
        return Err(LayoutError::TooLarge {
            operation: "an R700 thread group's writes (dwords of one bank)",
            size,
            limit: BANK_DWORDS,
        });
    }
    let group = attempt!(Layout::flat(&[4, threads / 4], &[1, 4 * dst_stride]));
    Layout::tuple(&[group, attempt!(Layout::mode(dst_stride, 4))])
}

const fn multiple_of_4(
    operation: &'static str,
    mode: usize,
    value: i64,
    limit: i64,
) -> Result<(), LayoutError> {
    if value < 1 {
        return Err(LayoutError::InvalidExtent {
            mode,
            extent: value,
        });
    }
    if value % 4 != 0 {
        return Err(LayoutError::NotDivisible {
            operation,
            mode,
            value,
            divisor: 4,
        });
    }
    if value > limit {
        return Err(LayoutError::TooLarge {
            operation,
            size: value,
            limit,
        });
    }
    Ok(())
}
