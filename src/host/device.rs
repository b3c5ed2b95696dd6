//! A plan on a GPU.

use std::fmt;

use layout_codegen::plan::{ArgumentValue, Emitted, Gemm, Launch, Plan, PlanError};
use layout_codegen::ptx::ParamKind;
use tilewright_gpu::{Arg, Buffer, Gpu, GpuError, Kernel, LaunchConfig, TimeOptions};

use super::placement::{Addresses, WORKSPACE_ALIGNMENT, operands};
use super::{Inputs, Matrix, OperandError};

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
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
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

/// The launches of a plan with their kernels loaded and their workspace allocated.
pub(crate) struct Loaded {
    steps: Vec<(Kernel, Launch)>,
    workspace: Buffer,
    /// Registers of a thread of the main kernel.
    pub(crate) registers: u32,
}

impl Loaded {
    pub(crate) fn new(gpu: &Gpu, kernel: &Emitted, launch: &Launch) -> Result<Self, GpuError> {
        let module = gpu.load_ptx(&kernel.ptx)?;
        let steps = launch
            .sequence()
            .map(|step| Ok((module.kernel(&step.kernel)?, step.clone())))
            .collect::<Result<Vec<_>, GpuError>>()?;
        let workspace = gpu.alloc((launch.workspace_bytes + WORKSPACE_ALIGNMENT) as usize)?;
        // What a kernel reads before another wrote it is NaN.
        workspace.poison()?;
        let registers = module.kernel(&launch.kernel)?.attributes().registers;
        Ok(Self {
            steps,
            workspace,
            registers,
        })
    }

    /// The arguments of every launch for operands at these addresses: A, B, C, bias.
    pub(crate) fn bind(&self, [a, b, c, bias]: [u64; 4]) -> Vec<Vec<Arg>> {
        let workspace = self
            .workspace
            .address()
            .next_multiple_of(WORKSPACE_ALIGNMENT);
        let addresses = Addresses {
            a,
            b,
            c,
            bias,
            workspace,
        };
        let arguments = |(_, step): &(Kernel, Launch)| device_arguments(step, &addresses);
        self.steps.iter().map(arguments).collect()
    }

    /// Launches everything in order; returns before it has run.
    pub(crate) fn run(&self, arguments: &[Vec<Arg>]) -> Result<(), GpuError> {
        for ((kernel, step), arguments) in self.steps.iter().zip(arguments) {
            let config = LaunchConfig::new(step.grid, step.block)
                .cluster(step.cluster)
                .shared_bytes(step.shared_bytes);
            kernel.launch(&config, arguments)?;
        }
        Ok(())
    }
}

/// Bytes of NaN on either side of an operand.
const GUARD: usize = 256;

/// An operand in device memory, at a multiple of its alignment, between NaN.
pub(crate) struct Placed {
    pub(crate) buffer: Buffer,
    /// Bytes from the start of the buffer.
    pub(crate) offset: usize,
    len: usize,
}

impl Placed {
    /// Below 16, at an odd multiple of `alignment`; from 16 on at a multiple of 256 or of the alignment, as allocations are.
    pub(crate) fn new(gpu: &Gpu, bytes: &[u8], alignment: u64) -> Result<Self, GpuError> {
        let boundary = alignment.max(GUARD as u64);
        let buffer = gpu.alloc(bytes.len() + 2 * GUARD + 2 * boundary as usize)?;
        buffer.poison()?;
        let odd = if alignment < 16 { alignment } else { 0 };
        let base = (buffer.address() + GUARD as u64).next_multiple_of(boundary) + odd;
        let offset = (base - buffer.address()) as usize;
        buffer.write(offset, bytes)?;
        Ok(Self {
            buffer,
            offset,
            len: bytes.len(),
        })
    }

    pub(crate) fn address(&self) -> u64 {
        self.buffer.address() + self.offset as u64
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, GpuError> {
        self.buffer.read(self.offset, self.len)
    }

    /// The bytes on both sides are still those that were put there.
    pub(crate) fn guards_untouched(&self) -> Result<bool, GpuError> {
        let end = self.offset + self.len;
        let before = self.buffer.read::<u8>(0, self.offset)?;
        let after = self.buffer.read::<u8>(end, self.buffer.len_bytes() - end)?;
        Ok(before.iter().chain(&after).all(|&byte| byte == 0xff))
    }
}

/// Runs all launches of `kernel`, emitted by `plan`, once on `inputs`, and then times them together if `repeats` is not 0 (on the C
/// that they left, once its bytes have been read: the result is that of one product).
///
/// The matrices lie at addresses that are multiples of exactly what the problem promises (where that is below 16 bytes), between bytes
/// of NaN.
///
/// # Errors
///
/// The plan's refusal of the problem, a matrix that is not what the problem says, or the driver's of the text, the memory or a launch.
pub fn launch_on(
    gpu: &Gpu,
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    repeats: usize,
) -> Result<DeviceRun, DeviceError> {
    inputs.fit(problem, plan.data_type())?;
    let Some(launch) = plan.launch(problem)? else {
        return Ok(DeviceRun {
            c: inputs.c.clone(),
            time_ms: None,
            registers: None,
            guards_untouched: true,
        });
    };
    let loaded = Loaded::new(gpu, kernel, &launch)?;
    let placed = operands(problem, inputs)
        .into_iter()
        .map(|(bytes, alignment)| Placed::new(gpu, bytes, alignment))
        .collect::<Result<Vec<_>, GpuError>>()?;
    let at = |i: usize| placed[i].address();
    let arguments = loaded.bind([at(0), at(1), at(2), at(3)]);
    loaded.run(&arguments)?;
    gpu.synchronize()?;
    let bytes = placed[2].read()?;
    let untouched = placed.iter().map(Placed::guards_untouched);
    let guards_untouched = untouched
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .all(|untouched| untouched);
    let time_ms = if repeats == 0 {
        None
    } else {
        let options = TimeOptions {
            repeats,
            ..TimeOptions::default()
        };
        let timing = gpu.time(options, |_| loaded.run(&arguments))?;
        Some(timing.median())
    };
    Ok(DeviceRun {
        c: Matrix {
            bytes,
            ..inputs.c.clone()
        },
        time_ms,
        registers: Some(loaded.registers),
        guards_untouched,
    })
}

/// The arguments of a launch, with the addresses that they point at.
fn device_arguments(launch: &Launch, addresses: &Addresses) -> Vec<Arg> {
    launch
        .arguments
        .iter()
        .map(|argument| match (argument.value, argument.kind) {
            (ArgumentValue::Int(v), ParamKind::U64) => Arg::U64(v),
            (ArgumentValue::Int(v), _) => Arg::U32(v as u32),
            (ArgumentValue::Float(v), ParamKind::F64) => Arg::F64(v),
            (ArgumentValue::Float(v), ParamKind::S32) => Arg::I32(v as i32),
            (ArgumentValue::Float(v), _) => Arg::F32(v as f32),
            (pointer, _) => Arg::Ptr(addresses.of(pointer).unwrap_or_default()),
        })
        .collect()
}
