//! `--devices`: a product over several devices, for `gemm`, `bench` and `plans`.

mod bench;
mod gemm;
mod plan;
mod report;

use std::time::Duration;

use clap::Args;
use tilewright::codegen::Arch;
use tilewright::gpu::{Gpu, devices as gpus_here};
use tilewright::host::devices::{DeviceGemm, Devices, DevicesRunError, OnDevices};
use tilewright::kernels::devices::{DevicesError, Placement, Plans, Program, Transport};
use tilewright::kernels::gemm::{DataType, Gemm};

use crate::error::CliError;
use crate::gemm::select::{self, Device, ScheduleArgs};

pub(crate) use bench::{Bench, bench};
pub(crate) use gemm::{Asked, gemm};
pub(crate) use plan::plan;

/// Options of a product over several devices.
#[derive(Args, Debug, Clone)]
pub(crate) struct DevicesArgs {
    /// Spread the GEMM over this many devices of one host
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) devices: Option<u16>,
    /// How A, B and C lie on the devices: each rows, columns, replicas, `RxC` (a grid of blocks) or a layout (device, local) -> (row, column)
    #[arg(
        long,
        value_name = "A,B,C",
        default_value = "rows,columns,columns",
        requires = "devices"
    )]
    shards: String,
    /// How matrices move
    #[arg(long, value_enum, default_value = "auto", requires = "devices")]
    movement: MoveBy,
    /// Give up if the devices are not done after this many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "60",
        requires = "devices",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    limit: u64,
}

/// How matrices move.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum MoveBy {
    /// The fastest way on GPUs for the bytes that move; copies elsewhere
    Auto,
    /// Copies that overlap with GEMMs
    Copies,
    /// GEMMs that store terms of C into the memory of the device that adds them
    Direct,
    /// One all-gather or reduce-scatter of NCCL, before or after the GEMMs
    Collective,
}

/// Options of one process of several.
#[derive(Args, Debug, Clone)]
pub(crate) struct RankArgs {
    /// Run as this one of the devices, in a process of its own; the others run likewise, on this host or on others, and copies go over NCCL
    #[arg(long, value_name = "R", requires_all = ["devices", "meet"])]
    rank: Option<u16>,
    /// Where the processes find each other: rank 0 listens there
    #[arg(long, value_name = "HOST:PORT", requires = "rank")]
    meet: Option<String>,
}

impl DevicesArgs {
    /// How many devices, if the product is spread over any.
    pub(crate) fn count(&self) -> Option<usize> {
        self.devices.map(usize::from)
    }

    fn placement(&self, problem: &Gemm, devices: usize) -> Result<Placement, CliError> {
        Placement::parse(&self.shards, problem, devices).map_err(|e| refused(&e))
    }

    /// The program of a placement, for these GPUs if there are any.
    fn program(
        &self,
        problem: &Gemm,
        placement: &Placement,
        data_type: DataType,
        devices: Option<&Devices>,
    ) -> Result<Program, CliError> {
        let transport = match (self.movement, devices) {
            (MoveBy::Auto, Some(devices)) => {
                let made = devices.program(problem, placement, data_type);
                return made.map_err(|e| refused(&e));
            }
            (MoveBy::Auto | MoveBy::Copies, _) => Transport::Copies,
            (MoveBy::Direct, _) => Transport::Direct,
            (MoveBy::Collective, _) => Transport::Collective,
        };
        let made = transport.program(problem, placement);
        made.map_err(|e| refused(&e))
    }

    fn on(&self, repeats: usize) -> OnDevices {
        OnDevices {
            limit: Duration::from_secs(self.limit),
            repeats,
        }
    }
}

fn refused(error: &DevicesError) -> CliError {
    let instead = match error {
        DevicesError::Placement { .. } | DevicesError::Distribution(_) => {
            return CliError::usage(error.code(), error.to_string());
        }
        DevicesError::NoCollective {
            nothing_moves: true,
        } => "; use `--movement auto`",
        DevicesError::NoDirect | DevicesError::NoCollective { .. } => "; use `--movement copies`",
        _ => "",
    };
    CliError::new(error.code(), format!("{error}{instead}"))
}

fn failed(error: &DevicesRunError) -> CliError {
    match error {
        DevicesRunError::Devices(e) => refused(e),
        DevicesRunError::Select(e) => select::refused(e),
        e => CliError::new(e.code(), e.to_string()),
    }
}

/// The error of a run in one process, which can do without NCCL.
fn without_nccl(error: &DevicesRunError) -> CliError {
    match error.code() {
        "no_nccl" => {
            let advice = "use `--movement copies`, which does not need NCCL";
            CliError::new(error.code(), format!("{error}; {advice}"))
        }
        _ => failed(error),
    }
}

/// What chooses the plan of each product.
struct Chooser<'a> {
    plan: &'a str,
    schedule: &'a ScheduleArgs,
    data_type: DataType,
    arch: Arch,
    gpu: Option<&'a Gpu>,
}

impl Chooser<'_> {
    fn kernels(&self, program: Program) -> Result<DeviceGemm, CliError> {
        let findings = select::findings(self.schedule.findings.as_deref())?;
        let plans = Plans {
            wanted: select::wanted(self.plan, self.schedule)?,
            data_type: self.data_type,
            arch: self.arch,
            machine: select::machine(self.arch, self.gpu),
            findings: findings.as_ref(),
        };
        DeviceGemm::chosen(program, &plans).map_err(|e| failed(&e))
    }
}

/// The GPUs to run on; none for the emulator. `auto` takes GPUs if there are enough.
fn open(on: Device, count: usize) -> Result<Option<Devices>, CliError> {
    let enough = || gpus_here().is_ok_and(|gpus| gpus.len() >= count);
    match on {
        Device::Emulator | Device::None | Device::Opencl => Ok(None),
        Device::Auto if !enough() => Ok(None),
        Device::Gpu | Device::Auto => Devices::open(count).map(Some).map_err(|e| {
            CliError::new(
                e.code(),
                format!("{e}; `--on emulator` runs any number of devices"),
            )
        }),
    }
}
