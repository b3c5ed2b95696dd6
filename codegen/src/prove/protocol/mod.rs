//! Protocols of asynchronous instructions: rings of stages, named barriers, accumulators of `wgmma`, registers of roles, and grids that depend on each other.

pub(super) mod accumulators;
pub(super) mod dependents;
pub(super) mod meant;
pub(super) mod named;
pub(super) mod operands;
pub(super) mod registers;
pub(super) mod ring;
