//! Tilewright's code generator: composed layouts to index expressions to complete PTX kernels.

#![forbid(unsafe_code)]

pub mod index;
pub mod mma;
pub mod plan;
pub mod ptx;
pub mod select;
pub mod sgemm;
