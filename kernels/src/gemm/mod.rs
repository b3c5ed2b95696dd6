//! Matrix products: the problem, the plans for it, and one room for each family of kernels.
//!
//! A kernel family is a struct of named layouts and a schedule:
//!
//! ```text
//! problem ──▶ plan (layouts, schedule) ──▶ proof (obligations discharged) ──▶ PTX text + launch contract
//! ```
//!
//! A [`Plan`] names its layouts, proves what the kernel relies on, and only then writes the kernel: [`Plan::emit`] fails if
//! [`Plan::prove`] does. The launch contract is complete: any host program can launch the file with it.

mod anatomy;
mod compiled;
mod data_type;
pub(crate) mod edges;
pub mod epilogue;
mod error;
pub(crate) mod fused;
mod launch;
pub mod mma_sync;
pub(crate) mod obligation;
pub(crate) mod one_kernel;
pub mod opencl;
pub(crate) mod pack;
pub(crate) mod partial_sums;
pub(crate) mod pieces;
mod plan;
mod problem;
pub(crate) mod raster;
pub mod registry;
mod tensor_map;
pub(crate) mod workspace;
use layout_codegen::ir::{Element, ParamKind};

pub use anatomy::{Anatomy, Form, Turns, Units};
pub use compiled::{CompiledKernel, CompiledParam, GridRule, KernelParts, compile};
pub use data_type::DataType;
pub use epilogue::{Activation, Bias, Epilogue, GELU};
pub use error::PlanError;
pub use fused::FusedPlan;
pub use launch::{Argument, ArgumentValue, Declared, GivenInput, Launch};
pub use obligation::{Obligation, Proof, Refusal};
pub use plan::{Emitted, NamedLayout, Plan, Schedule};
pub use problem::{Alignment, Batch, Gemm, Limit, Operands, ProblemError, Trans};
pub use tensor_map::{CompiledMap, MapSource, Mode};

/// The largest size or leading dimension: kernels compare signed 32-bit distances to the edge, and a grid may begin tiles beyond it.
pub(crate) const LIMIT: u64 = (1 << 31) - (1 << 24);

/// A parameter of an element's type.
pub(crate) fn scalar_kind(element: Element) -> ParamKind {
    match element {
        Element::S32 => ParamKind::S32,
        Element::F64 => ParamKind::F64,
        _ => ParamKind::F32,
    }
}
