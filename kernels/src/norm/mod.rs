//! Norms of the rows of a matrix.

mod layer;
mod rms;
mod steps;

pub use layer::layer_norm;
pub use rms::{QUANTIZED, RmsNorm, rms_norm};
