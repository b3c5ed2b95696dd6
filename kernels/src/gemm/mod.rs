//! Matrix products: the problem, the configurations for it, and their kernels.
//!
//! ```text
//! problem ──▶ Config (a value) ──▶ Specialized (for the problem) ──▶ proof (obligations discharged) ──▶ PTX text + launch contract
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`config`] | the configuration, its [name](config::name), the table of tiles, which combinations exist |
//! | [`scheduler`](Scheduler) | which tiles a block computes, in which order |
//! | [`mma_sync`] | the main loops of tiles: `wgmma`, `mma.sync`, fused multiply-adds |
//! | [`epilogue`] | how sums become C |
//! | [`sources`](crate::sources) | kernels of published sources, one for all problems |
//!
//! [`Specialized`] names its layouts, proves what the kernel relies on, and only then writes the kernel: [`Specialized::emit`] fails if
//! [`Specialized::prove`] does. The launch contract is complete: any host program can launch the file with it.

mod compiled;
pub mod config;
mod data_type;
pub(crate) mod edges;
pub mod epilogue;
mod error;
mod launch;
pub mod mma_sync;
pub(crate) mod obligation;
pub(crate) mod one_kernel;
pub mod opencl;
pub(crate) mod pack;
pub(crate) mod partial_sums;
pub(crate) mod pieces;
mod problem;
mod schedule;
pub(crate) mod scheduler;
mod specialized;
mod tensor_map;
mod variant;
pub(crate) mod workspace;
use layout_codegen::ir::{Element, ParamKind};

pub use compiled::{CompiledKernel, CompiledParam, KernelParts, compile};
pub use config::{Config, Mainloop, Wgmma};
pub use data_type::DataType;
pub use epilogue::{Activation, Bias, Epilogue, GELU};
pub use error::PlanError;
pub use launch::{Argument, ArgumentValue, Declared, GivenInput, Launch};
pub use obligation::{Obligation, Proof, Refusal};
pub use problem::{Alignment, Batch, Gemm, Limit, Operands, ProblemError, Trans};
pub use schedule::Schedule;
pub use scheduler::{Order, Scheduler, TileSchedule};
pub use specialized::{Emitted, NamedLayout, Specialized};
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
