//! What accesses cost: wavefronts in shared memory, sectors in global memory.

pub(super) mod costs;
