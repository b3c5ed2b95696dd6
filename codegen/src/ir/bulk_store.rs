//! Copies by TMA from shared to global memory: what a warp has put together in shared memory leaves as a box of an array.
//!
//! ```text
//! st.shared, stmatrix        every thread puts its part into the box's place
//! Fence                      every thread: what it wrote can be seen by copies
//! bar.warp.sync
//! Box, Commit                one thread: the box to the array, which cuts off what is outside of it
//! …                          other work
//! Wait                       that thread: the copies have read the place
//! bar.warp.sync              it may be written again
//! ```
//!
//! Copies reach shared memory by another path than ordinary instructions (the *asynchronous proxy*): a barrier alone does not order the two, so the fence is
//! needed as well. Copies are counted in groups of the thread that issues them, apart from those of `cp.async`.

use super::address::Address;
use super::value::Reg;
use crate::index::Expr;

/// An instruction of such a copy.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum BulkStore {
    /// What this thread wrote to shared memory by ordinary instructions can be seen by copies that come behind it.
    Fence,
    /// A box of shared memory to an array. Elements outside of the array are left out.
    Box {
        /// Where from.
        from: Address,
        /// The tensor map, by its number.
        map: usize,
        /// The address of the tensor map.
        descriptor: Reg,
        /// Where the box begins, innermost first.
        coordinates: Vec<Reg>,
        /// The same, as the buffer's coordinates.
        to: Vec<Expr>,
    },
    /// Closes this thread's group of copies.
    Commit,
    /// Waits until all groups of this thread but the youngest `pending` have read shared memory.
    Wait {
        /// How many may still read.
        pending: u32,
    },
}

impl BulkStore {
    /// The registers that it reads, those of its address too.
    pub(super) fn sources(&self) -> Vec<Reg> {
        match self {
            BulkStore::Box {
                from,
                descriptor,
                coordinates,
                ..
            } => {
                let mut all = vec![from.base(), *descriptor];
                all.extend(coordinates);
                all
            }
            BulkStore::Fence | BulkStore::Commit | BulkStore::Wait { .. } => Vec::new(),
        }
    }
}
