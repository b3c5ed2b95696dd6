//! Tilewright is a layout algebra for GPU tiles: you describe which thread touches which element, and it derives shared-memory layouts without bank
//! conflicts, index code, and complete PTX kernels, each with a proof.
//!
//! A [`Layout`] maps coordinates to offsets, in CuTe's notation and with CuTe's operations ([`Layout::compose`], [`Layout::complement`],
//! [`Layout::logical_divide`], …). A [`Swizzled`] layout permutes the offsets. Operations are exact and `const fn`; where no layout satisfies
//! the law of an operation, it returns an error.
//!
//! # Three uses
//!
//! Derive a conflict-free layout in a macro ([`conflict_free!`], [`ConflictFree`]; at run time [`mod@derive`]):
//!
//! ```
//! use tilewright::{Swizzled, conflict_free};
//! const TILE: Swizzled = conflict_free!(
//!     tile = (64, 64), element = f16, write = cp_async_16(threads = 128), read = ldmatrix_x4
//! );
//! assert_eq!(TILE.to_string(), "Sw<3,3,3> o (64,64):(64,1)");
//! ```
//!
//! Generate index code for a kernel ([`index_fn!`], [`ptx_index!`]; CUDA C and OpenCL C by [`codegen::index`]):
//!
//! ```
//! use tilewright::{index_fn, ptx_index};
//! index_fn! { fn tile(row: u32, col: u32) -> u32 = Sw<3,3,3> o (64,64):(64,1); }
//! assert_eq!(tile(1, 0), 72);
//! // A snippet that reads %row and %col and writes %tile.
//! const PTX: &str = ptx_index!(tile(row, col) = Sw<3,3,3> o (64,64):(64,1));
//! assert!(PTX.contains("xor.b32"));
//! ```
//!
//! Property-test a hand-written layout (feature `testing`). The two assertions are proofs over all elements and lanes:
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use proptest::prelude::*;
//! use tilewright::{Swizzled, layout, testing::{assert_bijective, assert_conflict_free}};
//! fn by_hand(row: i64, col: i64) -> i64 { row * 64 + (col ^ (row % 8 * 8)) }
//! const MEANT: Swizzled = layout!(Sw<3,3,3> o (64,64):(64,1));
//! proptest!(|(row in 0..64_i64, col in 0..64_i64)| {
//!     prop_assert_eq!(by_hand(row, col), MEANT.at(&[row, col]));
//! });
//! assert_bijective!(MEANT);
//! // Elements of 2 bytes. Lane l points at the row of 8 whose first element is 64*row + column.
//! assert_conflict_free!("ldmatrix.x4", (MEANT, 2, layout!((16,2):(64,8))));
//! # }
//! ```
//!
//! # Where to go next
//!
//! | to | see |
//! |---|---|
//! | write layouts as constants, checked where they stand | [`layout!`], [`shape!`] |
//! | compute with swizzles, offsets, named strides, coordinates | [`Swizzled`], [`Affine`], [`CoordLayout`]: the same methods; any composition: [`Function`], [`Chain`] |
//! | have layouts and units as types | [`typed`], [`space`] |
//! | look up an instruction's fragments (`ldmatrix`, `mma`, `wgmma`, `tcgen05`, …) | [`atoms`], [`partition`] |
//! | count and prove bank conflicts | [`banks`], [`proof`], over F2 [`f2`] |
//! | write a kernel from views and thread-value layouts, and have it proven | [`codegen::ir::Kernel`], [`codegen::view`], [`codegen::Proven`] |
//! | take a GEMM kernel | [`kernels::gemm`], as a constant [`kernel!`]; the fastest for a problem: [`kernels::select`] |
//! | use softmax, a norm, a transpose, attention | `kernels` (feature `kernels`, part of `host`) |
//! | run and check a kernel on the emulator or a GPU | `host` (feature `host`, with `emulator` or `gpu`) |
//! | run any PTX on the CPU with a sanitizer | `emulator` (feature `emulator`) |
//! | load PTX on a GPU; cuBLAS and ptxas | `gpu` (feature `gpu`) |
//! | print the same kernels as OpenCL C | [`kernels::gemm::opencl`], [`codegen::print::opencl`]; on a device `gpu::opencl` (feature `opencl`) |
//! | distribute matrices over several devices | [`kernels::devices`] (feature `kernels`) |
//! | test your own layouts | `testing` (feature `testing`) |
//!
//! The default features are `macros` and `index`, for index functions. `codegen` adds the code generator for kernels, `kernels` the kernels that come with Tilewright, `kernel` the macro of that name. Without default features
//! there is the algebra alone, which depends on `num-traits` and nothing else.

#[cfg(feature = "host")]
pub mod host;

#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "index")]
#[doc(inline)]
pub use layout_codegen as codegen;
pub use layout_core::*;
#[cfg(feature = "macros")]
pub use layout_macros::*;
#[cfg(feature = "emulator")]
#[doc(inline)]
pub use ptx_emulator as emulator;
#[cfg(feature = "gpu")]
#[doc(inline)]
pub use tilewright_gpu as gpu;
#[cfg(feature = "kernels")]
#[doc(inline)]
pub use tilewright_kernels as kernels;

/// The snippets of `docs/algebra.md`, as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/algebra.md")]
struct AlgebraPage;

/// The snippets of `docs/banks.md`, as tests.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../docs/banks.md")]
struct BanksPage;

/// The snippets of `docs/testing.md`, as tests.
#[cfg(all(doctest, feature = "testing", feature = "macros"))]
#[doc = include_str!("../docs/testing.md")]
struct TestingPage;

/// The snippets of `docs/getting-started.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/getting-started.md")]
struct GettingStartedPage;

/// The snippets of `docs/devices.md`, as tests.
#[cfg(all(doctest, feature = "kernels"))]
#[doc = include_str!("../docs/devices.md")]
struct DevicesPage;

/// The snippets of `docs/proofs.md`, as tests.
#[cfg(all(doctest, feature = "kernels", feature = "macros"))]
#[doc = include_str!("../docs/proofs.md")]
struct ProofsPage;

/// The snippets of `docs/index-functions.md`, as tests.
#[cfg(all(doctest, feature = "kernel"))]
#[doc = include_str!("../docs/index-functions.md")]
struct IndexPage;

/// The snippets of `docs/tuning.md`, as tests.
#[cfg(all(doctest, feature = "host"))]
#[doc = include_str!("../docs/tuning.md")]
struct TuningPage;

/// The snippets of `docs/kernels.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "kernels"))]
#[doc = include_str!("../docs/kernels.md")]
struct KernelsPage;

/// The snippets of `docs/emulator.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/emulator.md")]
struct EmulatorPage;

/// The snippets of `docs/hosts.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "gpu", feature = "kernel"))]
#[doc = include_str!("../docs/hosts.md")]
struct HostsPage;

/// The snippets of `docs/own-kernels.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels.md")]
struct OwnKernelsPage;

/// The snippets of `docs/own-kernels-hopper.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels-hopper.md")]
struct OwnKernelsHopperPage;

/// The snippets of `docs/own-kernels-products.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator"))]
#[doc = include_str!("../docs/own-kernels-products.md")]
struct OwnKernelsProductsPage;

/// The snippets of `README.md`, as tests.
#[cfg(all(doctest, feature = "host", feature = "emulator", feature = "testing"))]
#[doc = include_str!("../README.md")]
struct ReadmePage;
