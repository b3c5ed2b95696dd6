//! Tilewright's code generator: composed layouts to index expressions to complete PTX kernels.
//!
//! Index functions ([`index`]) stand alone, for macros and other people's programs; the feature `kernels` (on by default) has the rest.

#![forbid(unsafe_code)]

// The built-in products are subjects of the prover's own tests, which change their representations: these tests compile them against this crate.
#[cfg(test)]
extern crate self as layout_codegen;
#[cfg(test)]
#[allow(dead_code, missing_docs, unreachable_pub, unused_imports)]
#[path = "../../kernels/src/gemm/mod.rs"]
pub mod gemm;
#[cfg(test)]
#[allow(dead_code, missing_docs, unreachable_pub, unused_imports)]
#[path = "../../kernels/src/sources/mod.rs"]
pub mod sources;

mod gcd;
pub mod index;
mod quick;

#[cfg(feature = "kernels")]
mod arch;
#[cfg(feature = "kernels")]
mod formulas;
#[cfg(feature = "kernels")]
pub mod ir;
#[cfg(feature = "kernels")]
pub mod mix;
#[cfg(feature = "kernels")]
mod module;
#[cfg(feature = "kernels")]
pub mod pipeline;
#[cfg(feature = "kernels")]
pub mod print;
#[cfg(feature = "kernels")]
pub mod prove;
#[cfg(feature = "kernels")]
mod proven;
#[cfg(feature = "kernels")]
pub mod tensor_map;
#[cfg(feature = "kernels")]
pub mod value;
#[cfg(feature = "kernels")]
pub mod view;

#[cfg(feature = "kernels")]
pub use arch::{Arch, UnknownArch};
#[cfg(feature = "kernels")]
pub use formulas::{Formula, Formulas, Range, Stated};
#[cfg(feature = "kernels")]
pub use module::{Module, ModuleError, OpenClModule};
#[cfg(feature = "kernels")]
pub use proven::{Buffer, ContractError, Elements, Proven, Usage};
