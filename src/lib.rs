//! Tilewright: a typed layout algebra for GPU tiles.
//!
//! A [`Layout`] maps coordinates to memory, a [`Swizzle`] permutes it, and layouts compose exactly. From them come proofs (bijections,
//! coverage, bank conflicts), index functions, and whole GEMM kernels as PTX text.
//!
//! ```
//! use tilewright::{Layout, layout};
//!
//! const TILE: Layout = layout!((4,(2,2)):(2,(1,8)));
//! assert_eq!(TILE.at(&[3, 2]), 14);
//! assert!(Layout::parse("(8,64):(64,1)")?.size() == 512);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | layouts, their operations and properties | here: [`Layout`], [`Swizzled`]; methods [`Layout::compose`], [`Layout::complement`], [`Layout::logical_divide`], … |
//! | named strides, coordinates as offsets | [`Affine`], [`CoordLayout`], with the same methods |
//! | compositions of any operands | [`Function`], of several steps [`Chain`] |
//! | the same as types | [`typed`], [`space`] |
//! | instructions as layouts: `ldmatrix`, `mma`, `wgmma`, … | [`atoms`], [`partition`] |
//! | bank models and the cost of an access | [`banks`], proofs of it in [`proof`] and over F2 in [`f2`] |
//! | matrices over several devices, what moves between them | `devices` (feature `codegen`) |
//! | the best shared layout for given accesses | [`mod@derive`], or at compile time [`ConflictFree`] and [`conflict_free!`] |
//! | layouts at compile time, checked where you write them | [`layout!`], [`shape!`] |
//! | index functions in Rust and PTX | [`index_fn!`], [`ptx_index!`]; the compiler is [`codegen::index`] |
//! | GEMM kernels | [`codegen::gemm`], by name [`codegen::registry`], as constants [`kernel!`]; which one to take: [`codegen::select`] |
//! | kernels of your own, from views and thread-value layouts, proven | [`codegen::ir::Kernel`], [`codegen::view`], [`codegen::Proven`] |
//! | PTX on the CPU, with a sanitizer | `emulator` (feature `emulator`) |
//! | PTX on a GPU, cuBLAS, ptxas | `gpu` (feature `gpu`) |
//! | OpenCL C of the same kernels | [`codegen::gemm::opencl`], [`codegen::print::opencl`]; on a device `gpu::opencl` (feature `opencl`) |
//! | any kernel run on the emulator or a GPU, and checked | `host` (feature `host`, with `emulator` or `gpu`) |
//! | assertions and strategies for your own tests | `testing` (feature `testing`) |
//!
//! The default feature `macros` has the macros and the code generator; without default features there is the algebra alone, which depends on
//! `num-traits` and nothing else.

#[cfg(feature = "host")]
pub mod host;

#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "codegen")]
pub use layout_codegen as codegen;
pub use layout_core::*;
#[cfg(feature = "macros")]
pub use layout_macros::*;
#[cfg(feature = "emulator")]
pub use ptx_emulator as emulator;
#[cfg(feature = "gpu")]
pub use tilewright_gpu as gpu;

/// The snippets of `docs/algebra.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/algebra.md")]
struct AlgebraPage;

/// The snippets of `docs/algebra-swizzles.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/algebra-swizzles.md")]
struct AlgebraSwizzlesPage;

/// The snippets of `docs/checked.md`, as tests.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../docs/checked.md")]
struct CheckedPage;

/// The snippets of `docs/devices.md`, as tests.
#[cfg(all(doctest, feature = "codegen"))]
#[doc = include_str!("../docs/devices.md")]
struct DevicesPage;

/// The snippets of `docs/devices-products.md`, as tests.
#[cfg(all(doctest, feature = "codegen"))]
#[doc = include_str!("../docs/devices-products.md")]
struct DevicesPageProducts;

/// The snippets of `docs/proofs.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/proofs.md")]
struct ProofsPage;

/// The snippets of `docs/index-functions.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/index-functions.md")]
struct IndexPage;

/// The snippets of `docs/tuning.md`, as tests.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../docs/tuning.md")]
struct TuningPage;

/// The snippets of `docs/kernels.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels.md")]
struct KernelsPage;

/// The snippets of `docs/kernels-plan.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels-plan.md")]
struct KernelsPlanPage;

/// The snippets of `docs/kernels-clusters.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels-clusters.md")]
struct KernelsClustersPage;

/// The snippets of `docs/kernels-variants.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels-variants.md")]
struct KernelsVariantsPage;

/// The snippets of `docs/kernels-launching.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu"))]
#[doc = include_str!("../docs/kernels-launching.md")]
struct KernelsLaunchingPage;

/// The snippets of `docs/own-kernels.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels.md")]
struct OwnKernelsPage;

/// The snippets of `docs/own-kernels-products.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels-products.md")]
struct OwnKernelsProductsPage;

/// The snippets of `docs/own-kernels-rows.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels-rows.md")]
struct OwnKernelsRowsPage;

/// The snippets of `docs/opencl.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/opencl.md")]
struct OpenClPage;

/// The snippets of `README.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../README.md")]
struct ReadmePage;
