//! Tilewright: a typed layout algebra for GPU tiles.
#[cfg(feature = "host")]
pub mod host;

#[cfg(feature = "testing")]
pub mod testing;

pub use layout_codegen as codegen;
pub use layout_core::*;
// No macro is public yet.
#[allow(unused_imports, unreachable_pub)]
pub use layout_macros::*;
#[cfg(feature = "emulator")]
pub use ptx_emulator as emulator;
#[cfg(feature = "gpu")]
pub use tilewright_gpu as gpu;

/// The snippets of `docs/proofs.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/proofs.md")]
struct ProofsPage;

/// The snippets of `docs/index.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/index.md")]
struct IndexPage;

/// The snippets of `docs/tuning.md`, as tests.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../docs/tuning.md")]
struct TuningPage;

/// The snippets of `docs/kernels.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels.md")]
struct KernelsPage;

/// The snippets of `README.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../README.md")]
struct ReadmePage;
