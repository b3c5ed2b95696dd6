//! Printers: the only places that write instruction text. Each reads the representation that the prover reads.

mod hopper;
pub mod opencl;
mod ptx;

pub use ptx::module;
pub(crate) use ptx::{class_type, mnemonic, register};
