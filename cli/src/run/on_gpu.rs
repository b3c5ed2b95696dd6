//! A run on a GPU.

use tilewright::gpu::{self, Arg, Gpu, GpuError, LaunchConfig};

use super::Job;
use super::argument::{Argument, Value};
use super::report::{Buffer, Report};
use crate::error::CliError;

/// Loads the file and runs its kernel.
pub(super) fn run(job: &Job<'_>, gpu: &Gpu) -> Result<Report, CliError> {
    let refuse = |error: GpuError| refusal(&error);
    let module = gpu.load_ptx(&job.ptx).map_err(refuse)?;
    let name = job.kernel(&module.kernel_names().map_err(refuse)?)?;
    let kernel = module.kernel(&name).map_err(refuse)?;

    let mut args = Vec::new();
    let mut memories: Vec<(usize, gpu::Buffer)> = Vec::new();
    for (argument, content) in job.arguments.iter().zip(&job.contents) {
        args.push(match argument {
            Argument::Value(value) => by_value(value),
            Argument::Buffer(buffer) => {
                let memory = gpu
                    .alloc(buffer.len_bytes(content.as_deref()) as usize)
                    .map_err(refuse)?;
                match content {
                    Some(content) => memory.write(0, content),
                    // There is no way to see a read of it; what it gives is at least conspicuous.
                    None => memory.poison(),
                }
                .map_err(refuse)?;
                let arg = Arg::from(&memory);
                memories.push((args.len(), memory));
                arg
            }
        });
    }
    let block = job.args.block.unwrap_or([32, 1, 1]);
    let config = LaunchConfig::new(job.args.grid, block)
        .cluster(job.args.cluster)
        .shared_bytes(job.args.shared);
    let start = gpu.stream().record().map_err(refuse)?;
    kernel.launch(&config, &args).map_err(refuse)?;
    let end = gpu.stream().record().map_err(refuse)?;
    gpu.synchronize().map_err(refuse)?;

    let mut report = job.new_report(gpu.info().name.clone(), name, block);
    report.time_ms = start.milliseconds_to(&end).map_err(refuse)?;
    report.attributes = Some(kernel.attributes());
    for (index, memory) in memories {
        let Argument::Buffer(buffer) = &job.arguments[index] else {
            continue;
        };
        let content = memory.download::<u8>().map_err(refuse)?;
        let name = format!("argument {index}");
        report.buffers.push(Buffer {
            name,
            element: buffer.element,
            content,
            out: buffer.out.clone(),
        });
    }
    Ok(report)
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
