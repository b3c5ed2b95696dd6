//! State spaces in one space of addresses: where the window of each begins.
//!
//! A generic address names its state space by the window it lies in: below [`SHARED_WINDOW`] is global memory. Example: `cvta.shared.u64` of shared
//! address `0x10000` is `0x0100_0000_0001_0000`.

use crate::ast::Space;

/// First address of the shared window of a block: not 0, so that a null pointer is caught, and aligned for every variable.
pub(crate) const SHARED_BASE: u32 = 1 << 16;
/// Generic address of shared address 0; other windows above it.
pub(crate) const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Generic address of local address 0.
pub(crate) const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Generic address of parameter 0.
pub(crate) const PARAM_WINDOW: u64 = 0x0300_0000_0000_0000;
/// Bytes of a window.
pub(crate) const WINDOW: u64 = 1 << 32;

/// What the offset of a variable counts from, in its own state space.
pub(crate) fn window_base(space: Space) -> u64 {
    if matches!(space, Space::Shared | Space::Cluster) {
        u64::from(SHARED_BASE)
    } else {
        0
    }
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
