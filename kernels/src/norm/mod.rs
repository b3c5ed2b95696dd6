//! Norms of the rows of a matrix.

mod backward;
mod layer;
mod quantized;
mod rms;
mod steps;

pub use backward::{BLOCKS, Norm, norm_backward};
pub use layer::layer_norm;
pub use rms::{QUANTIZED, RmsNorm, rms_norm};
