//! A bound run on an OpenCL device: any kernel, with its text in OpenCL C.

use tilewright_gpu::opencl::{ClArg, ClBuffer, ClDevice, ClDeviceError, ClProgram};

use super::arg::{Arg, Role, Scalar};
use super::bind::{Bound, BoundStep, Value, WORKSPACE_ALIGNMENT, bind};
use super::error::RunError;
use super::outcome::{Outcome, Ran};
use super::runnable::Runnable;

/// Bytes of NaN behind a buffer.
const GUARD: usize = 256;

/// Runs a kernel on an OpenCL device, as [`run()`](super::run) does elsewhere: `program` was built from its text in OpenCL C.
///
/// ```no_run
/// use tilewright::banks::AMD_GCN;
/// use tilewright::kernels::gemm::{DataType, Gemm, Operands, opencl};
/// use tilewright::kernels::gemm::Config;
/// use tilewright::gpu::opencl::ClDevice;
/// use tilewright::host::{GemmKernel, Inputs, check, run_on_opencl};
///
/// let plan = "sgemm-maxas-64".parse::<Config>()?;
/// let problem = Gemm::packed(70, 50, 30, Operands::ALL[0]);
/// let emitted = opencl::emit(&plan.kernel(), problem.operands, &AMD_GCN)?;
/// let kernel = GemmKernel::opencl(&plan.kernel(), &emitted, &problem)?;
/// let inputs = Inputs::random(&problem, DataType::F32, 1);
/// let device = ClDevice::open()?;
/// let program = device.build(&emitted.source)?;
/// let outcome = run_on_opencl(&device, &program, &kernel, kernel.args(&inputs))?;
/// assert!(check(&problem, DataType::F32, &inputs, &kernel.result(&inputs, &outcome)?)?.passed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of [`run()`](super::run) before anything runs, and the device's refusal of the text, the memory or a launch.
pub fn run_on_opencl<'n, 'a, K: Runnable + ?Sized>(
    device: &ClDevice,
    program: &ClProgram,
    kernel: &K,
    args: impl IntoIterator<Item = (&'n str, Arg<'a>)>,
) -> Result<Outcome, RunError> {
    let bound = bind(kernel, args)?;
    let launched = launch(device, program, &bound)?;
    let name = device.name().to_owned();
    let ran = (Ran::OpenCl, name, "as asked".to_owned());
    Ok(Outcome {
        time_ms: (!bound.steps.is_empty()).then_some(launched.time_ms),
        guards_touched: launched.guards_touched,
        ..super::outcome(kernel, &bound, ran, launched.buffers)
    })
}

/// What the device left behind.
struct Launched {
    /// In the order of the parameters.
    buffers: Vec<Vec<u8>>,
    /// Buffers with a byte changed behind them.
    guards_touched: Vec<String>,
    /// Milliseconds of the launches together.
    time_ms: f64,
}

fn launch(device: &ClDevice, program: &ClProgram, bound: &Bound<'_>) -> Result<Launched, RunError> {
    let mut placed = Vec::new();
    for (_, buffer) in &bound.buffers {
        let mut memory = device.alloc(buffer.len + GUARD)?;
        device.write(&mut memory, 0, &vec![0xff; buffer.len + GUARD])?;
        let content = buffer.content.as_ref();
        if let Some(content) = content.filter(|_| buffer.role != Role::Output) {
            device.write(&mut memory, 0, content)?;
        }
        placed.push(memory);
    }
    let workspace = (bound.workspace_bytes + WORKSPACE_ALIGNMENT) as usize;
    let mut memory = device.alloc(workspace)?;
    // What a kernel reads before another wrote it is NaN.
    device.write(&mut memory, 0, &vec![0xff; workspace])?;
    let mut time_ms = 0.0;
    for BoundStep { step, values } in &bound.steps {
        let parts = values.iter().map(|v| part(device, &memory, v));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let arguments = values.iter().zip(&parts);
        let arguments: Vec<ClArg<'_>> = arguments
            .map(|(value, part)| argument(value, part.as_ref(), &placed))
            .collect::<Result<_, _>>()?;
        let kernel = program.kernel(&step.entry)?;
        time_ms += kernel.launch(step.grid, step.block, &arguments)?;
    }
    let mut launched = Launched {
        buffers: Vec::new(),
        guards_touched: Vec::new(),
        time_ms,
    };
    for ((name, buffer), memory) in bound.buffers.iter().zip(&placed) {
        let mut bytes = device.read(memory, 0, buffer.len + GUARD)?;
        let behind = bytes.split_off(buffer.len);
        if behind.iter().any(|&b| b != 0xff) {
            launched.guards_touched.push(name.clone());
        }
        launched.buffers.push(bytes);
    }
    Ok(launched)
}

/// The part of the workspace that a value is a pointer to.
fn part(
    device: &ClDevice,
    workspace: &ClBuffer,
    value: &Value,
) -> Result<Option<ClBuffer>, ClDeviceError> {
    match value {
        Value::Workspace(offset) => device.part(workspace, *offset as usize).map(Some),
        Value::Buffer(_) | Value::Scalar(_) | Value::TensorMap(..) => Ok(None),
    }
}

fn argument<'b>(
    value: &Value,
    part: Option<&'b ClBuffer>,
    buffers: &'b [ClBuffer],
) -> Result<ClArg<'b>, RunError> {
    let refused = |reason: &str| RunError::Refused {
        reason: reason.to_owned(),
    };
    match value {
        Value::Buffer(i) => {
            let buffer = buffers.get(*i).map(ClArg::Buffer);
            buffer.ok_or_else(|| refused("its launch names a buffer that there is not"))
        }
        Value::TensorMap(..) => Err(refused("OpenCL has no tensor maps")),
        Value::Workspace(_) => {
            let part = part.map(ClArg::Buffer);
            part.ok_or_else(|| refused("its launch has no workspace"))
        }
        Value::Scalar(scalar) => Ok(match scalar {
            Scalar::U32(v) => ClArg::U32(*v),
            Scalar::I32(v) => ClArg::I32(*v),
            Scalar::U64(v) => ClArg::U64(*v),
            Scalar::I64(v) => ClArg::I64(*v),
            Scalar::F32(v) => ClArg::F32(*v),
            Scalar::F64(v) => ClArg::F64(*v),
            Scalar::Bytes(_) => {
                return Err(refused(
                    "a parameter is a structure, and OpenCL kernels take pointers and numbers",
                ));
            }
        }),
    }
}
