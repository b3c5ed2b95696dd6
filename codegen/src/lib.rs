//! Tilewright's code generator: composed layouts to index expressions to complete PTX kernels.
//!
//! Index functions ([`index`]) stand alone, for macros and other people's programs; the feature `kernels` (on by default) has the rest.

#![forbid(unsafe_code)]

mod gcd;
pub mod index;
mod quick;

#[cfg(feature = "kernels")]
mod arch;
#[cfg(feature = "kernels")]
pub mod devices;
#[cfg(feature = "kernels")]
mod formulas;
#[cfg(feature = "kernels")]
pub mod gemm;
#[cfg(feature = "kernels")]
pub mod ir;
#[cfg(feature = "kernels")]
pub mod mix;
#[cfg(feature = "kernels")]
pub mod pipeline;
#[cfg(feature = "kernels")]
pub mod print;
#[cfg(feature = "kernels")]
pub mod prove;
#[cfg(feature = "kernels")]
mod proven;
#[cfg(feature = "kernels")]
pub mod registry;
#[cfg(feature = "kernels")]
pub mod select;
#[cfg(feature = "kernels")]
pub mod value;
#[cfg(feature = "kernels")]
pub mod view;

#[cfg(feature = "kernels")]
pub use arch::{Arch, UnknownArch};
#[cfg(feature = "kernels")]
pub use formulas::{Formula, Formulas, Range, Stated};
#[cfg(feature = "kernels")]
pub use proven::{Buffer, ContractError, Elements, Proven, Usage};
