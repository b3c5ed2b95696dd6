//! Kernels at work: [`run()`] runs any kernel on the emulator, a GPU or an OpenCL device, and [`check`] compares the C of a plan ([`GemmKernel`]) with a
//! double-precision reference.
//!
//! The check is independent of the kernel: the reference shares only the problem's definition with the plans. Matrices are
//! random, and the memory between their rows is NaN, so that a kernel that reads there gives NaN, and one that writes there
//! is found.

#[cfg(feature = "gpu")]
mod bench;
#[cfg(any(feature = "emulator", feature = "gpu"))]
mod contract;
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub mod devices;
mod findings;
mod fit;
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub mod kernels;
#[cfg(feature = "gpu")]
mod machine;
mod matrix;
mod reference;
#[cfg(feature = "emulator")]
mod report;
#[cfg(any(feature = "emulator", feature = "gpu"))]
mod run;
#[cfg(feature = "gpu")]
mod trial;

#[cfg(feature = "gpu")]
pub use bench::{Comparison, compare};
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub use contract::{Contract, ContractBuffer, ContractLaunch, Language, UnknownLanguage};
pub use findings::{
    EntryError, FindingsError, findings_from_json, findings_to_json, load_findings,
};
pub use fit::OperandError;
#[cfg(feature = "gpu")]
pub use machine::machine;
pub use matrix::Matrix;
pub use reference::{Check, Inputs, check, check_rows, tolerance};
#[cfg(feature = "emulator")]
pub use report::{counters_to_json, finding_to_json, source_to_json};
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub use run::{
    Arg, ArgError, Buffer, BufferElement, BufferType, CountedAccess, GemmKernel, Launches, On,
    Outcome, OutcomeError, Param, ParamType, PtxKernel, Ran, Role, RunError, RunOptions, Runnable,
    Scalar, Scalars, Step, StepArg, Stores, run, run_with,
};
#[cfg(feature = "gpu")]
pub use trial::{Trial, Tried};
