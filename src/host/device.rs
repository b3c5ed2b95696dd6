//! A plan on a GPU.

use std::fmt;

use layout_codegen::plan::{ArgumentValue, Emitted, Gemm, Launch, Plan, PlanError};
use layout_codegen::ptx::ParamKind;
use tilewright_gpu::{Arg, Gpu, GpuError, LaunchConfig, TimeOptions};

use super::{Inputs, Matrix};

/// A run on a GPU.
#[derive(Debug)]
pub struct DeviceRun {
    /// C after one product.
    pub c: Matrix,
    /// Milliseconds of one launch, the median of several; none if nothing was launched or timed.
    pub time_ms: Option<f64>,
    /// Registers of a thread, as the driver compiled the kernel.
    pub registers: Option<u32>,
}

/// Why a run on a GPU failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DeviceError {
    /// The plan refused the problem.
    Plan(PlanError),
    /// The driver refused something.
    Gpu(GpuError),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Gpu(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

impl From<PlanError> for DeviceError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl From<GpuError> for DeviceError {
    fn from(e: GpuError) -> Self {
        Self::Gpu(e)
    }
}

/// Runs `kernel`, emitted by `plan`, once on `inputs`, and then times it if `repeats` is not 0 (on a copy of C, so that the result
/// is that of one product).
///
/// # Errors
///
/// The plan's refusal of the problem, or the driver's of the text, the memory or the launch.
pub fn launch_on(
    gpu: &Gpu,
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    repeats: usize,
) -> Result<DeviceRun, DeviceError> {
    let Some(launch) = plan.launch(problem)? else {
        return Ok(DeviceRun {
            c: inputs.c.clone(),
            time_ms: None,
            registers: None,
        });
    };
    let module = gpu.load_ptx(&kernel.ptx)?;
    let function = module.kernel(&launch.kernel)?;
    let upload = |m: &Matrix| -> Result<_, GpuError> {
        let buffer = gpu.alloc(m.bytes.len().max(16))?;
        buffer.write(0, &m.bytes)?;
        Ok(buffer)
    };
    let (a, b, c) = (upload(&inputs.a)?, upload(&inputs.b)?, upload(&inputs.c)?);
    let config = LaunchConfig::new(launch.grid, launch.block)
        .cluster(launch.cluster)
        .shared_bytes(launch.shared_bytes);
    let args = device_arguments(&launch, [a.address(), b.address(), c.address()]);
    function.launch(&config, &args)?;
    gpu.synchronize()?;
    let bytes: Vec<u8> = c.read(0, inputs.c.bytes.len())?;
    let time_ms = if repeats == 0 {
        None
    } else {
        let options = TimeOptions {
            repeats,
            ..TimeOptions::default()
        };
        let timing = gpu.time(options, |_| function.launch(&config, &args))?;
        Some(timing.median())
    };
    let registers = Some(function.attributes().registers);
    Ok(DeviceRun {
        c: Matrix {
            bytes,
            ..inputs.c.clone()
        },
        time_ms,
        registers,
    })
}

/// The arguments of a launch, with the addresses of A, B and C.
pub(crate) fn device_arguments(launch: &Launch, [a, b, c]: [u64; 3]) -> Vec<Arg> {
    launch
        .arguments
        .iter()
        .map(|argument| match (argument.value, argument.kind) {
            (ArgumentValue::A, _) => Arg::Ptr(a),
            (ArgumentValue::B, _) => Arg::Ptr(b),
            (ArgumentValue::C, _) => Arg::Ptr(c),
            (ArgumentValue::Bias, _) => Arg::Ptr(0),
            (ArgumentValue::Workspace(offset), _) => Arg::Ptr(offset),
            (ArgumentValue::Int(v), ParamKind::U64) => Arg::U64(v),
            (ArgumentValue::Int(v), _) => Arg::U32(v as u32),
            (ArgumentValue::Float(v), ParamKind::F64) => Arg::F64(v),
            (ArgumentValue::Float(v), ParamKind::S32) => Arg::I32(v as i32),
            (ArgumentValue::Float(v), _) => Arg::F32(v as f32),
        })
        .collect()
}
