//! Terms: numbers of all threads, linear sums of symbols, conditions, and the solver that decides them.
//!
//! ```text
//! numbers     a number for each thread of a block, kept once          value     Σ cᵢ·mᵢ + t over symbols
//! symbols     sizes, indices, counters, and what is defined of them   formula   conditions on values
//! meaning     what an instruction does to bits                        solve     is g ≥ 0, under these facts?
//! ```
//!
//! Nothing here knows an instruction's place, memory or a kernel.

pub(super) mod floors;
pub(super) mod formula;
pub(super) mod meaning;
pub(super) mod numbers;
pub(super) mod offsets;
pub(super) mod solve;
pub(super) mod symbols;
pub(super) mod value;
pub(super) mod values;
