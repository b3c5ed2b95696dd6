//! A plan on a GPU.

use std::fmt;

use tilewright_gpu::{Gpu, GpuError};
use tilewright_kernels::gemm::{Emitted, Gemm, PlanError, Specialized};

use super::run::bind::bind;
use super::run::on_gpu;
use super::{ArgError, GemmKernel, Inputs, Matrix, OperandError, RunError, Runnable};

/// A run on a GPU.
#[derive(Debug)]
pub struct DeviceRun {
    /// C after one product.
    pub c: Matrix,
    /// Milliseconds of one product, all its launches together, the median of several; none if nothing was launched or timed.
    pub time_ms: Option<f64>,
    /// Registers of a thread, as the driver compiled the main kernel.
    pub registers: Option<u32>,
    /// No kernel wrote just before or behind an operand.
    pub guards_untouched: bool,
}

/// Why a run on a GPU failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// The plan refused the problem.
    Plan(PlanError),
    /// A matrix is not what the problem says.
    Operand(OperandError),
    /// The driver refused something.
    Gpu(GpuError),
    /// An operand that the kernel's launches do not take.
    Arg(ArgError),
    /// The launches of the plan do not go together.
    Refused(String),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
            Self::Gpu(e) => e.fmt(f),
            Self::Arg(e) => e.fmt(f),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for DeviceError {}

impl From<PlanError> for DeviceError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl From<OperandError> for DeviceError {
    fn from(e: OperandError) -> Self {
        Self::Operand(e)
    }
}

impl From<GpuError> for DeviceError {
    fn from(e: GpuError) -> Self {
        Self::Gpu(e)
    }
}

impl From<RunError> for DeviceError {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Plan(e) => Self::Plan(e),
            RunError::Gpu(e) => Self::Gpu(e),
            RunError::Arg(e) => Self::Arg(e),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Runs all launches of `kernel`, emitted by `plan`, once on `inputs`, and then times them together if `repeats` is not 0 (on the C
/// that they left, once its bytes have been read: the result is that of one product). [`run`](super::run()) with a [`GemmKernel`] is the
/// same on any device.
///
/// The matrices lie at addresses that are multiples of exactly what the problem promises (where that is below 16 bytes), between bytes
/// of NaN.
///
/// # Errors
///
/// The plan's refusal of the problem, a matrix that is not what the problem says, or the driver's of the text, the memory or a launch.
pub fn launch_on(
    gpu: &Gpu,
    plan: &Specialized,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    repeats: usize,
) -> Result<DeviceRun, DeviceError> {
    inputs.fit(problem, plan.data_type)?;
    let kernel = GemmKernel::emitted(plan, kernel, problem)?;
    let bound = bind(&kernel, kernel.args(inputs))?;
    if bound.steps.is_empty() {
        return Ok(DeviceRun {
            c: inputs.c.clone(),
            time_ms: None,
            registers: None,
            guards_untouched: true,
        });
    }
    let mut run = on_gpu::launch(gpu, (kernel.ptx(), kernel.entry()), &bound, repeats)?;
    Ok(DeviceRun {
        c: Matrix {
            bytes: run.buffers.swap_remove(GemmKernel::C),
            ..inputs.c.clone()
        },
        time_ms: run.median_ms,
        registers: Some(run.registers),
        guards_untouched: run.guards_untouched.into_iter().all(|untouched| untouched),
    })
}
