//! Tilewright's code generator: composed layouts to index expressions to complete PTX kernels.

#![forbid(unsafe_code)]

mod arch;
pub mod devices;
mod formulas;
mod gcd;
pub mod gemm;
pub mod index;
pub mod ir;
pub mod mix;
pub mod pipeline;
pub mod print;
pub mod prove;
mod proven;
mod quick;
pub mod registry;
pub mod select;
pub mod value;
pub mod view;

pub use arch::{Arch, UnknownArch};
pub use formulas::{Formula, Formulas, Range, Stated};
pub use proven::{Buffer, ContractError, Proven, Usage};
