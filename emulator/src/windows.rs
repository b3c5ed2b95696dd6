//! State spaces in one space of addresses: where the window of each begins.
//!
//! A generic address names its state space by the window it lies in: below [`SHARED_WINDOW`] is global memory. Example: `cvta.shared.u64` of shared
//! address `0x10000` is `0x0100_0000_0001_0000`.
//!
//! **Clusters.** The shared window holds the memory of all blocks of a cluster, each in a part of its own: bits 24 and up of an address are the rank of the
//! block, those below the place in its memory, as measured on an H100 (`tests/fixtures/h100/cluster_addresses.csv`). So one variable has another
//! address in each block, `mapa` exchanges the rank, and a block without a cluster has rank 0. Example: byte 16 of block 2 is `0x0201_0010`.

use crate::ast::Space;

/// First address of shared memory within the part of its block: not 0, so that a null pointer is caught, and aligned for every variable.
pub(crate) const SHARED_BASE: u32 = 1 << 16;
/// The lowest bit of the rank in a shared address.
pub(crate) const RANK_SHIFT: u32 = 24;
/// Generic address of shared address 0; other windows above it.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Generic address of local address 0.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Generic address of parameter 0.
pub(crate) const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// Bytes of a window.
pub(crate) const WINDOW: u64 = 1 << 32;

/// Address of byte 0 of the shared memory of block `rank`.
#[inline(always)]
pub(crate) fn shared_start(rank: usize) -> u32 {
    (rank as u32) << RANK_SHIFT | SHARED_BASE
}

/// The generic address of address 0 of `space`.
pub(crate) fn generic_base(space: Space) -> u64 {
    match space {
        Space::Shared | Space::Cluster => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}
