//! `tilewright kernel NAME`: any kernel that comes with Tilewright, on random tensors, compared with a reference in float64.
//!
//! [`tilewright::host::kernels`] defines what is launched and what is right. This module has the options and the report.

mod asked;
mod block_scaled;
mod experts;
mod grouped;
mod options;
mod quantize;
mod report;
mod tune;
mod weight_only;

use std::process::ExitCode;

use clap::{Command, Subcommand as _};
use serde_json::json;
use tilewright::codegen::{Arch, UnknownArch};
use tilewright::emulator;
use tilewright::gpu::Gpu;
use tilewright::host::kernels::{Compared, Problem, Sequence, Tensor};
use tilewright::host::{
    Contract, ContractBuffer, On, Outcome as Run, RunOptions, Runnable as _, run_with,
};

use crate::emitted::Emitted;
use crate::error::{CliError, Outcome, finish};
use crate::gemm::select::{Device, gpu, newest};
use crate::{emit, memory, output, progress};
use options::{Kernel, Options};
use report::Report;

pub(crate) use options::KernelArgs;

/// Timed runs on a GPU, after a first one; the time is their median.
const REPEATS: usize = 20;

pub(crate) fn run(args: &KernelArgs) -> ExitCode {
    if let Kernel::Attention(args) = &args.kernel
        && args.tune
    {
        let problem = args.problem();
        let problem = problem.map_err(|e| CliError::new(e.code(), e.to_string()));
        let done = problem.and_then(|problem| tune::tune(&problem, &args.options));
        return finish(done, args.options.json);
    }
    match (&args.kernel, args.kernel.asked()) {
        (_, Some((stated, options))) => {
            let done = stated.and_then(|problem| kernel(&*problem, options));
            finish(done, options.json)
        }
        (Kernel::List { json }, None) => list(*json),
        (_, None) => list(false),
    }
}

/// A kernel with its contract, not run.
pub(crate) fn emitted(args: &KernelArgs) -> Result<Emitted, CliError> {
    let Some((stated, options)) = args.kernel.asked() else {
        return Err(CliError::usage("usage", "`list` is not a kernel"));
    };
    let problem = stated?;
    let made = Made::new(&*problem, options, None)?;
    Ok(Emitted {
        report: made.report(&*problem, None).to_json(),
        text: made.kernel.ptx().to_owned(),
    })
}

/// The names of the kernels, with what they compute.
fn list(json: bool) -> ExitCode {
    let kernels = Kernel::augment_subcommands(Command::new("kernel"));
    let about = |c: &Command| c.get_about().map(ToString::to_string).unwrap_or_default();
    let kernels = kernels.get_subcommands().filter(|c| c.get_name() != "list");
    let kernels: Vec<_> = kernels
        .map(|c| (c.get_name().to_owned(), about(c)))
        .collect();
    if json {
        let all = kernels
            .iter()
            .map(|(n, about)| json!({"name": n, "computes": about}));
        output::print_json(&all.collect());
    } else {
        for (name, about) in kernels {
            output::print_line(&format!("{name:<18} {about}"));
        }
    }
    ExitCode::SUCCESS
}

/// A kernel that is built and proven, and its contract.
struct Made {
    kernel: Sequence,
    arch: Arch,
    contract: Contract,
}

impl Made {
    fn new(problem: &dyn Problem, options: &Options, gpu: Option<&Gpu>) -> Result<Self, CliError> {
        let arch = arch(&options.arch, gpu, problem.least_arch())?;
        let kernel = problem.sequence(arch);
        let kernel = kernel.map_err(|e| CliError::new(e.code(), e.to_string()))?;
        let contract = Contract::new(&kernel, problem.scalars());
        let contract = contract.map_err(|e| CliError::new(e.code(), e.to_string()))?;
        Ok(Self {
            kernel,
            arch,
            contract,
        })
    }

    fn report(&self, problem: &dyn Problem, ran: Option<(Run, Compared)>) -> Report<'_> {
        Report {
            kernel: &self.kernel,
            arch: self.arch,
            launch: self.contract.to_json_with(|buffer| tensor(problem, buffer)),
            ran,
        }
    }
}

/// Builds, proves, writes, runs and compares a kernel.
fn kernel(problem: &dyn Problem, options: &Options) -> Outcome {
    let device = options.on;
    if device == Device::Opencl {
        let message = "these kernels run as PTX: on a GPU or on the emulator";
        return Err(CliError::usage("usage", message));
    }
    let gpu = gpu(device)?;
    let made = Made::new(problem, options, gpu.as_ref())?;
    let emit_host = options.emit_host.as_deref();
    let ptx = made.kernel.ptx();
    emit::files(options.emit.as_deref(), emit_host, ptx, &made.contract)?;

    let ran = match device {
        Device::None => None,
        _ => Some(ran(problem, &made.kernel, gpu, options.seed)?),
    };
    let report = made.report(problem, ran);
    if options.json {
        output::print_json(&report.to_json());
    } else {
        output::print_line(&report.to_text());
    }
    Ok(ExitCode::from(u8::from(!report.passed())))
}

/// A run on random tensors, and its comparison with the reference.
fn ran(
    problem: &dyn Problem,
    kernel: &Sequence,
    gpu: Option<Gpu>,
    seed: u64,
) -> Result<(Run, Compared), CliError> {
    memory_of(problem)?;
    let inputs = problem.random(seed);
    let (bar, of_blocks) = progress::blocks();
    let options = RunOptions {
        repeats: REPEATS,
        emulator: emulator::Options {
            progress: Some(of_blocks),
            ..RunOptions::default().emulator
        },
        ..RunOptions::default()
    };
    let on = if gpu.is_some() { On::Gpu } else { On::Emulator };
    let options = RunOptions { gpu, ..options };
    let outcome = run_with(kernel, on, problem.args(&inputs), &options);
    bar.finish_and_clear();
    let outcome = outcome.map_err(|e| CliError::new(e.code(), e.to_string()))?;
    let bar = progress::spinner("comparing with float64");
    let compared = problem.compare(&inputs, &outcome);
    bar.finish_and_clear();
    let compared = compared.map_err(|e| CliError::new("outcome", e.to_string()))?;
    Ok((outcome, compared))
}

/// Checks that the tensors of a problem fit memory.
fn memory_of(problem: &dyn Problem) -> Result<(), CliError> {
    let tensors = problem.tensors();
    let bytes = |t: &Tensor| u128::from(t.elements()) * u128::from(t.element.bytes());
    memory::for_buffers(tensors.iter().map(bytes).sum())
}

/// The architecture of a name. `auto` is that of the GPU or, without one, the first that the kernel supports.
fn arch(name: &str, gpu: Option<&Gpu>, least: Arch) -> Result<Arch, CliError> {
    match (name, gpu) {
        ("auto", Some(gpu)) => newest(gpu),
        ("auto", None) => Ok(least),
        _ => name
            .parse()
            .map_err(|e: UnknownArch| CliError::usage(e.code(), e.to_string())),
    }
}

/// The value of a parameter that is the address of a tensor.
fn tensor(problem: &dyn Problem, buffer: &ContractBuffer) -> serde_json::Value {
    let tensors = problem.tensors();
    let tensor = tensors.iter().find(|t| t.name == buffer.name);
    tensor.map_or(serde_json::Value::Null, |t| {
        json!({"tensor": t.name, "shape": t.shape, "strides": t.strides(), "dtype": t.element.to_string()})
    })
}
