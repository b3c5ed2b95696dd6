//! Printers: the only places that write instruction text. Each reads the representation that the prover reads.

mod hopper;
pub mod opencl;
mod ptx;

pub(crate) use ptx::{module, register};
