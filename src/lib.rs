//! Tilewright: a typed layout algebra for GPU tiles.
pub use layout_codegen as codegen;
pub use layout_core::*;
pub use layout_macros::*;
#[cfg(feature = "emulator")]
pub use ptx_emulator as emulator;
#[cfg(feature = "gpu")]
pub use tilewright_gpu as gpu;
