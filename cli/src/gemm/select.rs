//! What `auto` means: the device, the architecture and the plan.

use clap::{Args, ValueEnum};
use tilewright::codegen::plan::{
    Arch, DataType, Gemm, Plan, PlanError, Schedule, plan_named, plans,
};
use tilewright::gpu::Gpu;

use crate::error::CliError;

/// Where a kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Device {
    /// A GPU if there is one, else the emulator
    Auto,
    /// The first GPU
    Gpu,
    /// The CPU
    Emulator,
}

/// What a plan leaves open; what is not given is chosen.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ScheduleArgs {
    /// Split the sums into this many parts, added by a second kernel (chosen by default)
    #[arg(long, value_name = "PARTS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) split: Option<u32>,
    /// Copy operands with odd rows to aligned ones first (chosen by default)
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) pack: Option<bool>,
}

/// The GPU to run on; none means the emulator.
pub(crate) fn gpu(on: Device) -> Result<Option<Gpu>, CliError> {
    match on {
        Device::Emulator => Ok(None),
        Device::Gpu => Gpu::open(0)
            .map(Some)
            .map_err(|e| CliError::new(e.code(), format!("{e}; `--on emulator` needs none"))),
        Device::Auto => match Gpu::open(0) {
            Ok(gpu) => Ok(Some(gpu)),
            Err(e) if e.means_no_gpu() => Ok(None),
            Err(e) => Err(CliError::new(e.code(), e.to_string())),
        },
    }
}

/// The element type of a name.
pub(crate) fn data_type(name: &str) -> Result<DataType, CliError> {
    DataType::ALL
        .into_iter()
        .find(|t| t.to_string() == name)
        .ok_or_else(|| {
            let known: Vec<_> = DataType::ALL.iter().map(ToString::to_string).collect();
            CliError::usage(
                "unknown_dtype",
                format!(
                    "there is no element type `{name}` here; known are {}",
                    known.join(", ")
                ),
            )
        })
}

/// The architecture to generate for: `auto` is the newest that the GPU runs, or `sm_80` without one.
pub(crate) fn arch(name: &str, gpu: Option<&Gpu>) -> Result<Arch, CliError> {
    if name != "auto" {
        return name
            .parse()
            .map_err(|e: tilewright::codegen::plan::PlanError| {
                CliError::usage(e.code(), e.to_string())
            });
    }
    let Some(gpu) = gpu else { return Ok(Arch(80)) };
    let have = gpu.info().arch();
    let number = have.trim_start_matches("sm_").parse().unwrap_or(0);
    Arch::ALL
        .into_iter()
        .rev()
        .find(|a| a.0 <= number)
        .ok_or_else(|| {
            CliError::new(
                "arch_too_old",
                format!(
                    "this GPU is {have}, and kernels need {} or later",
                    Arch::ALL[0]
                ),
            )
        })
}

/// Blocks that fill a large GPU: fewer tiles than this, and smaller tiles are the better choice.
const MANY_BLOCKS: u64 = 132;

/// The plan of a name, adapted to the problem; `auto` takes the largest tile that still makes enough blocks.
pub(crate) fn plan(
    name: &str,
    schedule: ScheduleArgs,
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
) -> Result<Box<dyn Plan>, CliError> {
    let plan = unadapted(name, data_type, problem, arch)?;
    let schedule = Schedule {
        split: schedule.split.unwrap_or(1),
        pack: schedule.pack.unwrap_or(false),
    };
    plan.adapt(problem, schedule)
        .map_err(|e: PlanError| CliError::new(e.code(), e.to_string()))
}

fn unadapted(
    name: &str,
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
) -> Result<Box<dyn Plan>, CliError> {
    if name != "auto" {
        let plan = plan_named(name).map_err(|e| CliError::usage(e.code(), e.to_string()))?;
        if plan.data_type() != data_type {
            let e = tilewright::codegen::plan::PlanError::WrongType {
                plan: plan.name(),
                asked: data_type,
                serves: plan.data_type(),
            };
            return Err(CliError::usage(e.code(), e.to_string()));
        }
        return Ok(plan);
    }
    let mut fitting: Vec<_> = plans()
        .into_iter()
        .filter(|p| p.data_type() == data_type && p.min_arch() <= arch)
        .filter(|p| match p.launch(problem) {
            Ok(Some(launch)) => launch.shared_bytes <= arch.shared_limit(),
            // Nothing to launch, or a refusal that says more than its absence here would.
            Ok(None) | Err(_) => true,
        })
        .collect();
    fitting.sort_by_key(|p| std::cmp::Reverse(p.tile().0 * p.tile().1));
    let blocks = |p: &dyn Plan| {
        problem
            .m
            .div_ceil(p.tile().0.into())
            .saturating_mul(problem.n.div_ceil(p.tile().1.into()))
    };
    let best = fitting
        .iter()
        .position(|p| blocks(p.as_ref()) >= MANY_BLOCKS)
        .unwrap_or(fitting.len().saturating_sub(1));
    if fitting.is_empty() {
        return Err(CliError::new(
            "no_plan",
            format!("no plan computes in {data_type} on {arch}"),
        ));
    }
    Ok(fitting.swap_remove(best))
}
