//! CUDA at run time, on machines that may have none.
//!
//! Nothing here is linked: the driver (`libcuda`) and cuBLAS are opened when they are first asked for, so that a program
//! using this crate builds and starts on any machine, and [`Gpu::open`] says in one sentence why no GPU is available.
//! It provides what running a generated kernel needs: [`Buffer`]s of device memory, [`Module`]s compiled from PTX text by
//! the driver, [`Kernel`]s launched with arguments that are checked against the kernel's own parameter list,
//! [`TensorMap`]s, times from events, cuBLAS for comparison ([`cublas`], [`cublaslt`]), and NVIDIA's assembler as an
//! independent check of the PTX ([`ptxas`]).
//!
//! Function declarations come from `cudarc`. Its safe layer is not used: it compiles PTX without the log that explains a
//! refusal, and it trusts the caller to pass the arguments that the kernel expects. Here the driver is asked for the size
//! of every parameter, so that no argument list, however wrong, makes it read memory that isn't ours.
//!
//! ```no_run
//! use tilewright_gpu::{Arg, Gpu, GpuError, LaunchConfig};
//!
//! fn double(ptx: &str, input: &[f32]) -> Result<Vec<f32>, GpuError> {
//!     let gpu = Gpu::open(0)?;
//!     let kernel = gpu.load_ptx(ptx)?.kernel("double")?;
//!     let data = gpu.upload(input)?;
//!     let n = input.len() as u32;
//!     kernel.launch(&LaunchConfig::new([n.div_ceil(256), 1, 1], [256, 1, 1]), &[Arg::from(&data), Arg::U32(n)])?;
//!     data.download()
//! }
//! ```
//!
//! Several GPUs of one host work together in one process: they read each other's memory ([`Gpu::reach`]), their copy engines move blocks
//! ([`Stream::copy`]), events order their streams ([`Stream::wait`]), a [`Graph`] launches what all of them do, and [`nccl`] has the collectives.
//!
//! With the feature `opencl` there is also an OpenCL device, opened the same way: module `opencl`.
//!
//! All memory operations and launches of one [`Gpu`] are in order, on one stream; a further [`Stream`] is in order with
//! itself and with the plain copies. The `unsafe` code of Tilewright is here, except for one block in the emulator's inner loop.

mod buffer;
mod cubin;
pub mod cublas;
pub mod cublaslt;
mod device;
mod driver;
mod error;
mod graph;
mod kept;
mod launch;
mod library;
mod module;
pub mod nccl;
#[cfg(feature = "opencl")]
pub mod opencl;
mod peer;
pub mod ptxas;
mod tensor_map;
mod timing;

pub use buffer::{Buffer, Element};
pub use device::{DeviceInfo, Gpu, devices, driver_version};
pub use error::GpuError;
pub use graph::Graph;
pub use launch::{Arg, LaunchConfig};
pub use module::{Kernel, KernelAttributes, Module};
pub use peer::{Deadline, Pitched};
pub use tensor_map::{Interleave, L2Promotion, MapElement, MapSwizzle, TensorMap, TensorMapSpec};
pub use timing::{Event, Stream, TimeOptions, Timing};
