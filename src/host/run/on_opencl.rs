//! A bound run on an OpenCL device, of the kernel's text in OpenCL C.

use tilewright_gpu::opencl::{ClArg, ClBuffer, ClDevice, ClDeviceError};

use super::arg::{Role, Scalar};
use super::bind::{Bound, BoundStep, Value, WORKSPACE_ALIGNMENT};
use super::error::RunError;

/// Bytes of NaN behind a buffer.
const GUARD: usize = 256;

/// What the device left behind.
pub(super) struct Launched {
    /// In the order of the parameters.
    pub(super) buffers: Vec<Vec<u8>>,
    /// Buffers with a byte changed behind them.
    pub(super) guards_touched: Vec<String>,
    /// Milliseconds of the launches together, the median of the repeats if there are any.
    pub(super) time_ms: f64,
}

/// Places the buffers, runs the launches in order, and then times them `repeats` times on the buffers that they left: the result is that of one run.
pub(super) fn launch(
    device: &ClDevice,
    source: &str,
    bound: &Bound<'_>,
    repeats: usize,
) -> Result<Launched, RunError> {
    let program = device.build(source)?;
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
    let run = || {
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
        Ok::<_, RunError>(time_ms)
    };
    let mut launched = Launched {
        buffers: Vec::new(),
        guards_touched: Vec::new(),
        time_ms: run()?,
    };
    for ((name, buffer), memory) in bound.buffers.iter().zip(&placed) {
        let mut bytes = device.read(memory, 0, buffer.len + GUARD)?;
        let behind = bytes.split_off(buffer.len);
        if behind.iter().any(|&b| b != 0xff) {
            launched.guards_touched.push(name.clone());
        }
        launched.buffers.push(bytes);
    }
    let mut times = (0..repeats).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    times.sort_by(f64::total_cmp);
    if let Some(median) = times.get(repeats / 2) {
        launched.time_ms = *median;
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
