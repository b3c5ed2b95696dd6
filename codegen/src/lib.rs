//! Tilewright's code generator: composed layouts to index expressions to complete PTX kernels.

#![forbid(unsafe_code)]

pub mod index;
pub mod ir;
pub mod mma;
pub mod plan;
pub mod print;
pub mod prove;
mod proven;
pub mod select;
pub mod sgemm;
pub mod view;

pub use proven::{ContractError, Proven};
