//! Products over several devices: a [`Program`] with kernels, on the emulator or on GPUs.
//!
//! A [`DeviceGemm`] is a proven program in which every product has a kernel. It takes whole matrices, gives each device its shards, runs, and
//! puts C together from the devices' blocks.
//!
//! ```text
//! problem, placement ─▶ Program (proven) ─▶ a plan for each product ─▶ emulator: p devices, any schedule, race check
//!                                                                 └─▶ GPUs: streams, copy engines, flags in device memory, NCCL for what is small
//! ```
//!
//! ```
//! use tilewright::codegen::Arch;
//! use tilewright::kernels::devices::Placement;
//! use tilewright::kernels::gemm::{DataType, Gemm, Operands, Schedule};
//! use tilewright::kernels::gemm::Config;
//! use tilewright::host::devices::{DeviceGemm, DevicesRunError, Emulation};
//! use tilewright::host::{Inputs, check};
//!
//! let problem = Gemm::packed(100, 72, 40, Operands::ALL[0]);
//! let placement = Placement::parse("rows,columns,columns", &problem, 3)?;
//! let plan = |local: &Gemm| Ok::<_, DevicesRunError>("sgemm-64x64x16".parse::<Config>()?.specialize(local, Schedule::default())?);
//! let product = DeviceGemm::new(&problem, &placement, DataType::F32, Arch(80), plan)?;
//! let inputs = Inputs::random(&problem, DataType::F32, 1);
//! let run = product.emulate(&inputs, &Emulation::default())?;
//! assert!(run.findings.is_empty());
//! assert!(check(&problem, DataType::F32, &inputs, &run.c).unwrap().passed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Program`]: tilewright_kernels::devices::Program

#[cfg(feature = "gpu")]
mod bench;
mod collective;
mod error;
mod jobs;
#[cfg(feature = "emulator")]
mod on_emulator;
#[cfg(feature = "gpu")]
mod on_gpu;
#[cfg(feature = "gpu")]
mod ranks;
mod storage;
#[cfg(feature = "emulator")]
mod watch;

#[cfg(feature = "gpu")]
pub use bench::{DevicesComparison, compare_devices};
pub use error::DevicesRunError;
pub use jobs::DeviceGemm;
#[cfg(feature = "emulator")]
pub use on_emulator::Emulation;
#[cfg(feature = "gpu")]
pub use on_gpu::{Devices, OnDevices};
#[cfg(feature = "gpu")]
pub use ranks::Rank;

use super::Matrix;

/// A run over devices.
#[derive(Clone, Debug)]
pub struct DevicesRun {
    /// C, put together from what the devices have.
    pub c: Matrix,
    /// What was found: findings of the emulator in a kernel, operations without an order, replicas of C that differ.
    pub findings: Vec<String>,
    /// Milliseconds from the first operation to the last, on GPUs.
    pub time_ms: Option<f64>,
}
