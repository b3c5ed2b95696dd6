//! What must hold of memory: an order of accesses in shared memory without races, and coverage of outputs in global memory.
//!
//! [`order`] follows the tree of events along every path, [`cover`] counts the stores of the grid.

pub(super) mod access;
pub(super) mod cover;
pub(super) mod fetched;
pub(super) mod order;
pub(super) mod shared;
