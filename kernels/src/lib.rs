//! The kernels that come with Tilewright.
//!
//! Each is a function from a small configuration to a [`Proven`] kernel, written with the public interface of [`layout_codegen`] alone, so that a program can
//! take it as it is, or copy and change it. The names of the parameters are those of the tensors and sizes in the module's formula.
//!
//! | kernel | computes |
//! |---|---|
//! | [`gemm`] | products of matrices: [`select`] chooses the plan for a problem, [`devices`] distributes it over several devices |
//! | [`sources`] | products as published sources compute them: maxas, the DGEMM for the HD 7970, the R700's memory |
//! | [`softmax()`](softmax::softmax) | softmax of each row |
//! | [`rms_norm`](norm::rms_norm), [`layer_norm`](norm::layer_norm) | norms of each row |
//! | [`norm_backward`](norm::norm_backward) | the gradients of the norms |
//! | [`cross_entropy()`](cross_entropy::cross_entropy) | the cross entropy of each row of logits, and its gradient |
//! | [`gemv()`](gemv::gemv) | the product of up to 16 rows with a large matrix |
//! | [`grouped()`](grouped::grouped) | the products of rows with the matrices of their groups |
//! | [`block_scaled()`](block_scaled::block_scaled) | products of 8-bit floats with scales of blocks |
//! | [`quantize()`](quantize::quantize) | 8-bit operands with scales, also of SwiGLU |
//! | [`experts`] | routing of tokens to experts, rows in their order, weighted sums of rows |
//! | [`weight_only()`](weight_only::weight_only) | products with 4-bit weights, which [`repack`](weight_only::repack) puts in their order |
//! | [`row_sums`](reduce::row_sums) | the sum of each row |
//! | [`transpose()`](transpose::transpose) | a transposed matrix |
//! | [`attention()`](attention::attention) | attention, forward |
//!
//! # Numerics
//!
//! All kernels but those of [`gemm`] accumulate in f32 and round once, to the type of the result. All are reproducible bit by bit: the order of the sums depends on the configuration and
//! the length of a row, never on timing. A row's result does not depend on the other rows of the batch, nor on how many there are: the configuration follows from
//! the length of a row alone. Gradients of weights ([`norm_backward`](norm::norm_backward)) add rows in an order that depends on how many there are. Each module says what becomes of NaN and infinities.
//!
//! ```
//! use layout_codegen::Arch;
//! use layout_codegen::ir::Element;
//! use tilewright_kernels::rows::RowTile;
//! use tilewright_kernels::softmax::softmax;
//!
//! let kernel = softmax(&RowTile::new(Element::Bf16, 1000)?, Arch(80))?;
//! assert_eq!(kernel.name(), "softmax_bf16");
//! assert!(kernel.ptx.contains(".entry softmax_bf16"));
//! # Ok::<(), tilewright_kernels::KernelError>(())
//! ```

#![forbid(unsafe_code)]

pub mod attention;
pub mod block_scaled;
pub mod cross_entropy;
pub mod devices;
mod error;
pub mod experts;
pub mod gemm;
pub mod gemv;
pub mod grouped;
mod mainloop;
pub mod norm;
mod online;
pub mod quantize;
pub mod reduce;
pub mod rows;
pub mod select;
pub mod softmax;
pub mod sources;
pub mod transpose;
pub mod weight_only;

pub use error::KernelError;
pub use layout_codegen::Proven;
