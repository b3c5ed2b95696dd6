//! A run on a GPU.

use tilewright::emulator::{self, Kernel, Module};
use tilewright::gpu::{self, Arg, Gpu, GpuError, LaunchConfig};
use tilewright::gpu::{Interleave, MapElement, MapSwizzle, TensorMap, TensorMapSpec};

use super::argument::{Passed, Piece, Value};
use super::report::{Buffer, Report};
use super::{Job, content};
use crate::error::CliError;

/// Loads the file and runs its kernel.
pub(super) fn run(job: &Job<'_>, gpu: &Gpu) -> Result<Report, CliError> {
    let refuse = |error: GpuError| refusal(&error);
    if job.args.cooperative {
        let message = "--cooperative is for the emulator only: --on emulator";
        return Err(CliError::usage("emulator_only", message));
    }
    let module = gpu.load_ptx(&job.ptx).map_err(refuse)?;
    let name = job.kernel(&module.kernel_names().map_err(refuse)?)?;
    let kernel = module.kernel(&name).map_err(refuse)?;

    // The driver does not tell the parameters' names: the emulator reads them, if it can.
    let read = Module::parse(&job.ptx).ok();
    let entry = read.as_ref().and_then(|module| module.kernel(&name));
    let bound = job.bind(read.as_ref(), entry)?;
    if !bound.variables.is_empty() {
        let message = "--variable is for the emulator only: --on emulator";
        return Err(CliError::usage("wrong_arguments", message));
    }
    let mut memories = Vec::new();
    for (_, buffer) in &bound.buffers {
        let content = content(buffer)?;
        let bytes = buffer.len_bytes(content.as_deref()) as usize;
        let memory = gpu.alloc(bytes).map_err(refuse)?;
        match content {
            Some(content) => memory.write(0, &content),
            // There is no way to see a read of it; what it gives is at least conspicuous.
            None => memory.poison(),
        }
        .map_err(refuse)?;
        memories.push(memory);
    }
    let addresses: Vec<u64> = memories.iter().map(gpu::Buffer::address).collect();
    let mut make = |piece: &Piece, address: u64| match piece {
        Piece::Address(_) => Ok(address.to_le_bytes().into()),
        Piece::Tensor(map, _) => {
            let map = TensorMap::encode(gpu, &specification(map, address)?).map_err(refuse)?;
            Ok(map.to_bytes())
        }
        Piece::Texture(..) => {
            let message = "textures are for the emulator only: --on emulator";
            Err(CliError::usage("wrong_texture", message))
        }
    };
    let args = bound.passed.iter().map(|passed| match passed {
        Passed::Value(value) => Ok(by_value(value)),
        Passed::Address(place) => Ok(Arg::U64(place.address(&addresses))),
        Passed::Structure(..) => passed.bytes(&addresses, &mut make).map(Arg::Bytes),
    });
    let args = args.collect::<Result<Vec<Arg>, CliError>>()?;
    let required = entry.and_then(Kernel::required_threads);
    let block = job.args.block.or(required).unwrap_or([32, 1, 1]);
    let config = LaunchConfig::new(job.args.grid, block)
        .cluster(job.cluster(entry))
        .shared_bytes(job.args.shared);
    let start = gpu.stream().record().map_err(refuse)?;
    kernel.launch(&config, &args).map_err(refuse)?;
    let end = gpu.stream().record().map_err(refuse)?;
    gpu.synchronize().map_err(refuse)?;

    let mut report = job.new_report(gpu.info().name.clone(), name, [block, job.cluster(entry)]);
    report.time_ms = start.milliseconds_to(&end).map_err(refuse)?;
    report.attributes = Some(kernel.attributes());
    for ((name, buffer), memory) in bound.buffers.into_iter().zip(memories) {
        let content = memory.download::<u8>().map_err(refuse)?;
        report.buffers.push(Buffer {
            name,
            element: buffer.element,
            content,
            out: buffer.out,
        });
    }
    Ok(report)
}

/// The driver's map of what `map` describes.
fn specification(map: &emulator::TensorMap, address: u64) -> Result<TensorMapSpec, CliError> {
    use emulator::{TensorElement as From, TensorSwizzle as Swizzle};
    let element = match map.element {
        From::U8 => MapElement::U8,
        From::U16 => MapElement::U16,
        From::U32 => MapElement::U32,
        From::S32 => MapElement::I32,
        From::U64 => MapElement::U64,
        From::S64 => MapElement::I64,
        From::F16 => MapElement::F16,
        From::Bf16 => MapElement::Bf16,
        From::F32 => MapElement::F32,
        From::Tf32 => MapElement::Tf32,
        From::F64 => MapElement::F64,
        other => {
            let message = format!("the driver's tensor maps have no elements {other:?}");
            return Err(CliError::usage("wrong_tensor_map", message));
        }
    };
    if map.im2col.is_some() {
        let message = "tensor maps of im2col are for the emulator only: --on emulator";
        return Err(CliError::usage("wrong_tensor_map", message));
    }
    Ok(TensorMapSpec {
        sizes: map.sizes.clone(),
        strides: map.strides.clone(),
        box_sizes: map.box_sizes.clone(),
        element_strides: map.element_strides.clone(),
        swizzle: match map.swizzle {
            Swizzle::Bytes32 => MapSwizzle::Bytes32,
            Swizzle::Bytes64 => MapSwizzle::Bytes64,
            Swizzle::Bytes128 => MapSwizzle::Bytes128,
            _ => MapSwizzle::None,
        },
        interleave: match map.interleave {
            emulator::TensorInterleave::Bytes16 => Interleave::Bytes16,
            emulator::TensorInterleave::Bytes32 => Interleave::Bytes32,
            _ => Interleave::None,
        },
        nan_outside: map.nan_outside,
        ..TensorMapSpec::new(element, address)
    })
}

fn by_value(value: &Value) -> Arg {
    match value {
        Value::U32(value) => Arg::U32(*value),
        Value::S32(value) => Arg::I32(*value),
        Value::U64(value) => Arg::U64(*value),
        Value::S64(value) => Arg::I64(*value),
        Value::F32(value) => Arg::F32(*value),
        Value::F64(value) => Arg::F64(*value),
        Value::Bytes(bytes) => Arg::Bytes(bytes.clone()),
    }
}

/// The GPU's error as the command's.
pub(super) fn refusal(error: &GpuError) -> CliError {
    let make = match error {
        GpuError::Arguments { .. } | GpuError::Invalid { .. } | GpuError::NoKernel { .. } => {
            CliError::usage
        }
        _ => CliError::new,
    };
    make(error.code(), error.to_string())
}
