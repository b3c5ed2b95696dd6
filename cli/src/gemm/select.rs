//! What `auto` means: the device, the architecture and the plan.
//!
//! The plan is the one that was fastest where `tilewright tune` measured the problem, or one near it, on the same GPU; else the one that the
//! model of time says is fastest (`tilewright plans --for`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tilewright::codegen::{Arch, UnknownArch};
use tilewright::gpu::Gpu;
use tilewright::host::{self, FindingsError};
use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::{DataType, Gemm, PlanError, ProblemError, Specialized};
use tilewright::kernels::select::{Choice, Findings, Machine, SelectError, Wanted};

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
    /// The first OpenCL device, in OpenCL C
    Opencl,
    /// Nowhere: only the proofs, the text and the launch contract
    None,
}

/// The language of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Target {
    /// PTX, for NVIDIA's GPUs and the emulator
    Ptx,
    /// OpenCL C, for any OpenCL device
    Opencl,
}

/// What a plan leaves open; what is not given is chosen.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ScheduleArgs {
    /// Split-K: so many ranges of k, whose partial sums a second kernel adds (chosen by default)
    #[arg(long, value_name = "SPLITS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) split: Option<u32>,
    /// Copy operands with unaligned rows to aligned ones first (chosen by default)
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) pack: Option<bool>,
    /// Choose by what `tilewright tune` measured and wrote to this file (by default the one that `TILEWRIGHT_FINDINGS` names, if it is set)
    #[arg(long, value_name = "FILE")]
    pub(crate) findings: Option<PathBuf>,
}

/// The variable that names a file of findings.
const FINDINGS: &str = "TILEWRIGHT_FINDINGS";

/// The file of findings to choose by: the given one, or what the environment names.
pub(crate) fn findings(given: Option<&Path>) -> Result<Option<Findings>, CliError> {
    let named = std::env::var_os(FINDINGS).filter(|name| !name.is_empty());
    let (path, from) = match (given, named) {
        (Some(path), _) => (path.to_owned(), ""),
        (None, Some(name)) => (PathBuf::from(name), ", named by TILEWRIGHT_FINDINGS"),
        (None, None) => return Ok(None),
    };
    load(&path, from).map(Some)
}

/// Reads a file of findings; `from` says who named it.
pub(crate) fn load(path: &Path, from: &str) -> Result<Findings, CliError> {
    host::load_findings(path).map_err(|e: FindingsError| {
        CliError::new(e.code(), format!("{}{from}: {e}", path.display()))
    })
}

/// The machine to choose for: the GPU, or without one what stands for the architecture.
pub(crate) fn machine(arch: Arch, gpu: Option<&Gpu>) -> Machine {
    gpu.map_or_else(|| Machine::for_arch(arch), |gpu| host::machine(gpu.info()))
}

/// The GPU to run on; none means the emulator, or nothing.
pub(crate) fn gpu(on: Device) -> Result<Option<Gpu>, CliError> {
    match on {
        Device::Emulator | Device::Opencl | Device::None => Ok(None),
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

/// The element type of a name; without one that of the plan, and f32 if that is `auto`. A plan that does not exist is refused later, by its
/// name.
pub(crate) fn type_or_plans(name: Option<&str>, plan: &str) -> Result<DataType, CliError> {
    if let Some(name) = name {
        return data_type(name);
    }
    Ok(plan
        .parse::<Config>()
        .map_or(DataType::F32, |config| config.data_type))
}

/// The architecture to generate for: `auto` is the newest that the GPU runs; without one, `sm_80`, or the first later one that the plan, or
/// some plan for the element type, takes.
pub(crate) fn arch(
    name: &str,
    gpu: Option<&Gpu>,
    plan: &str,
    data_type: DataType,
) -> Result<Arch, CliError> {
    if name != "auto" {
        return name
            .parse()
            .map_err(|e: UnknownArch| CliError::usage(e.code(), e.to_string()));
    }
    let Some(gpu) = gpu else {
        let first = match plan {
            "auto" => {
                let of_type = Config::table().filter(|c| c.data_type == data_type);
                of_type.map(|p| p.min_arch()).min()
            }
            name => name.parse::<Config>().ok().map(|p| p.min_arch()),
        };
        return Ok(first.unwrap_or(Arch(80)).max(Arch(80)));
    };
    newest(gpu)
}

/// The newest architecture that kernels are generated for and a GPU runs.
pub(crate) fn newest(gpu: &Gpu) -> Result<Arch, CliError> {
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

/// A refusal of the selection; a plan that does not exist or computes in another type is bad usage, and so is an α or β that the type
/// does not have.
pub(crate) fn refused(e: &SelectError) -> CliError {
    let usage = match e {
        SelectError::Plan(PlanError::Problem(e)) => matches!(
            e,
            ProblemError::NotFinite(_) | ProblemError::NotIntegral { .. }
        ),
        SelectError::Plan(e) => matches!(
            e,
            PlanError::UnknownPlan { .. } | PlanError::WrongType { .. }
        ),
        _ => false,
    };
    if usage {
        CliError::usage(e.code(), e.to_string())
    } else {
        CliError::new(e.code(), e.to_string())
    }
}

/// What the arguments decide: a plan unless its name is `auto`, and what is given of its schedule.
pub(crate) fn wanted(name: &str, schedule: &ScheduleArgs) -> Result<Wanted, CliError> {
    let config = match name {
        "auto" => None,
        name => Some(
            name.parse::<Config>()
                .map_err(|e| refused(&SelectError::Plan(e)))?,
        ),
    };
    Ok(Wanted {
        config,
        split: schedule.split,
        pack: schedule.pack,
    })
}

/// The plan of a name, or the best for `auto`, with the schedule that is given or the best; not adapted.
pub(crate) fn choice(
    name: &str,
    schedule: &ScheduleArgs,
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
    gpu: Option<&Gpu>,
) -> Result<Choice, CliError> {
    let findings = findings(schedule.findings.as_deref())?;
    let machine = machine(arch, gpu);
    wanted(name, schedule)?
        .choose(data_type, problem, arch, &machine, findings.as_ref())
        .map_err(|e| refused(&e))
}

/// The plan of [`choice`], adapted to the problem.
pub(crate) fn plan(
    name: &str,
    schedule: &ScheduleArgs,
    data_type: DataType,
    problem: &Gemm,
    arch: Arch,
    gpu: Option<&Gpu>,
) -> Result<Specialized, CliError> {
    let choice = choice(name, schedule, data_type, problem, arch, gpu)?;
    choice
        .config
        .specialize(problem, choice.schedule)
        .map_err(|e: PlanError| CliError::new(e.code(), e.to_string()))
}
