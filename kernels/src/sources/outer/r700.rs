//! Tiles in shared memory where the R700's local data share puts what threads write.
//!
//! A thread owns its part of that memory and writes 16 bytes at a time, to bank `thread mod 4` and entry
//! `(thread >> 2)·stride + index` ([`layout_core::banks::r700`]), so that four neighbours always meet four banks. Each of 64 threads takes 8
//! entries, one for each vector of each operand in each stage:
//!
//! ```text
//! write map   (thread, slot) -> byte         ((4,16),9):((16,576),64)     slot = vector + 2·operand + 4·stage
//! owned       (thread, value) -> element     ((4,2,8),(4,2)):((4,32,64),(1,16))
//! stage       (side, k) -> byte              write map o inverse of owned = ((32,2),8):((4,576),1152)
//! ```
//!
//! Two things are free. Which elements a thread loads (`owned`): its second vector is the neighbour of four threads' first, so that 32 elements of
//! a side are 128 bytes in a row, one wavefront of NVIDIA's banks, and eight of the R700's, which takes four lanes at a time. And the stride,
//! which the R700 does not mind: NVIDIA's memory is 128 bytes wide, two entries, so that eight neighbours meet different banks only if the stride is
//! an odd number of entries. With 9 they do; the ninth is not used.
//! Reads are not written down: they are `stage` composed with the elements that a thread needs.
//!
//! ```
//! use tilewright_kernels::sources::outer::r700;
//!
//! assert_eq!(r700::stage()?.to_string(), "((32,2),8):((4,576),1152)");
//! # Ok::<(), tilewright_kernels::gemm::PlanError>(())
//! ```

use layout_core::Layout;
use layout_core::banks::r700::write_map;

use super::maps::{DEPTH, TILE};
use crate::gemm::obligation::one_to_one;
use crate::gemm::{Obligation, PlanError, Refusal};

/// Threads of the group that writes.
pub const THREADS: i64 = 64;

/// Dwords from a thread's first entry to that of the fourth thread after it: nine slots of 4 dwords, of which the last is not used.
pub const STRIDE: i64 = 36;

/// Bytes of all stages, with what is not used.
pub const BYTES: i64 = THREADS * STRIDE * 4;

/// Bytes of a slot's step: one entry of all four banks.
const ENTRY: i64 = 64;

/// From the slots of x to those of y, and from a stage to the next, in bytes.
pub const APART: [i64; 2] = [2 * ENTRY, 4 * ENTRY];

/// (thread, (element of a vector, vector)) → element `side + 64·k` of an operand's tile.
///
/// # Errors
///
/// None.
pub fn owned() -> Result<Layout, PlanError> {
    Ok(Layout::tuple(&[
        Layout::flat(&[4, 2, 8], &[4, 32, TILE])?,
        Layout::flat(&[4, 2], &[1, 16])?,
    ])?)
}

/// The write map: (thread, slot) → byte.
///
/// # Errors
///
/// None for this group and stride.
pub fn writes() -> Result<Layout, PlanError> {
    write_map(THREADS, STRIDE).map_err(|e| {
        PlanError::Refused(Refusal {
            obligation: "the R700's write map exists".to_owned(),
            reason: e.to_string(),
        })
    })
}

/// (side, k) → byte in one operand's part of a stage: the write map after the inverse of what threads load.
///
/// # Errors
///
/// None: both maps are bijective.
pub fn stage() -> Result<Layout, PlanError> {
    let writes = writes()?;
    // (thread, (element of a vector, vector)) → byte; the vectors are the first two slots.
    let slots = Layout::flat(&[2], &[1])?;
    let vectors = writes.get(1)?.compose(&slots)?;
    let values = Layout::tuple(&[Layout::mode(4, 4)?, vectors])?;
    let written = Layout::tuple(&[writes.get(0)?, values])?;
    let thread_and_value = owned()?.right_inverse()?;
    let tile = Layout::flat(&[TILE, DEPTH], &[1, TILE])?;
    Ok(written.compose(&thread_and_value)?.compose(&tile)?)
}

/// The claim that no two writes meet: all slots of all threads are the memory, each dword once.
pub(super) fn fills() -> Result<Obligation, PlanError> {
    let writes = writes()?;
    // A write is four dwords, and the map counts bytes.
    let bytes = Layout::tuple(&[writes, Layout::mode(4, 4)?])?;
    let dwords = Layout::flat(&[4, BYTES / 4], &[0, 1])?.compose(&bytes)?;
    Ok(one_to_one(
        "the R700's write map is bijective: slots of threads to the memory, each dword once",
        &dwords.into(),
        BYTES / 4,
    )?)
}
