//! `gemm --devices`: derive, prove, run, compare; in one process, or as one of several.

use std::process::ExitCode;

use tilewright::gpu::{Gpu, devices as gpus_here};
use tilewright::host::devices::{DevicesRun, Emulation, Rank};
use tilewright::host::{Check, Inputs, check};
use tilewright::kernels::devices::{Placement, Program};
use tilewright::kernels::gemm::{DataType, Gemm};

use super::report::Report;
use super::{Chooser, DevicesArgs, MoveBy, RankArgs, failed, open, without_nccl};
use crate::error::{CliError, Outcome};
use crate::gemm::select::{self, Device, ScheduleArgs};
use crate::{memory, output};

/// What `gemm` was asked for.
pub(crate) struct Asked<'a> {
    pub(crate) args: &'a DevicesArgs,
    pub(crate) rank: &'a RankArgs,
    pub(crate) problem: &'a Gemm,
    pub(crate) data_type: DataType,
    pub(crate) plan: &'a str,
    pub(crate) schedule: &'a ScheduleArgs,
    pub(crate) arch: &'a str,
    pub(crate) on: Device,
    pub(crate) seed: u64,
    pub(crate) check: bool,
    pub(crate) json: bool,
}

/// `gemm --devices`: derive, prove, run, compare.
pub(crate) fn gemm(asked: &Asked<'_>, count: usize) -> Outcome {
    let (problem, data_type) = (asked.problem, asked.data_type);
    let placement = asked.args.placement(problem, count)?;
    if let Some(rank) = asked.rank.rank {
        if asked.args.movement == MoveBy::Direct {
            let message = "a rank cannot store into another process's memory; use `--movement copies` or `--movement collective`";
            return Err(CliError::usage("usage", message));
        }
        let program = asked.args.program(problem, &placement, data_type, None)?;
        return as_rank(asked, count, usize::from(rank), program, &placement);
    }
    let devices = open(asked.on, count)?;
    let program = asked
        .args
        .program(problem, &placement, data_type, devices.as_ref())?;
    let gpu = devices.as_ref().map(|devices| &devices.gpus()[0]);
    let chooser = Chooser {
        plan: asked.plan,
        schedule: asked.schedule,
        data_type,
        arch: select::arch(asked.arch, gpu, asked.plan, data_type)?,
        gpu,
    };
    let product = chooser.kernels(program)?;
    let mut ran: Option<(String, DevicesRun)> = None;
    let mut compared = None;
    if asked.on != Device::None {
        memory::for_all(problem, data_type, product.most_bytes())?;
        let inputs = Inputs::random(problem, data_type, asked.seed);
        let (name, run) = if let Some(devices) = &devices {
            let name = format!("{count} x {}", devices.gpus()[0].info().name);
            (name, product.launch_on(devices, &inputs, asked.args.on(20)))
        } else {
            let emulation = Emulation {
                seed: asked.seed,
                ..Emulation::default()
            };
            let name = format!("{count} emulated");
            (name, product.emulate(&inputs, &emulation))
        };
        let run = run.map_err(|e| without_nccl(&e))?;
        if asked.check {
            let made = check(problem, data_type, &inputs, &run.c);
            compared = Some(made.map_err(|e| CliError::new("reference", e.to_string()))?);
        }
        ran = Some((name, run));
    }
    let passed = compared.is_none_or(|c: Check| c.passed)
        && ran.as_ref().is_none_or(|(_, run)| run.findings.is_empty());
    let report = Report {
        placement: &placement,
        shards: &asked.args.shards,
        product: &product,
        ran: ran.as_ref(),
        check: compared,
        passed,
    };
    if asked.json {
        output::print_json(&report.to_json()?);
    } else {
        output::print_line(&report.to_text()?);
    }
    Ok(ExitCode::from(u8::from(!passed)))
}

/// This process's part of the product, on the GPU of its rank among those that it sees.
fn as_rank(
    asked: &Asked<'_>,
    count: usize,
    rank: usize,
    program: Program,
    placement: &Placement,
) -> Outcome {
    if rank >= count {
        let message = format!(
            "--rank {rank}: of {count} devices the ranks are 0 to {}",
            count - 1
        );
        return Err(CliError::usage("usage", message));
    }
    if matches!(asked.on, Device::Emulator | Device::None | Device::Opencl) {
        let message = "ranks are processes with a GPU each; without --rank, `--on emulator` runs all devices in one process";
        return Err(CliError::usage("usage", message));
    }
    let gpu_error = |e: tilewright::gpu::GpuError| CliError::new(e.code(), e.to_string());
    let visible = gpus_here().map_err(gpu_error)?.len();
    let gpu = Gpu::open(rank % visible.max(1)).map_err(gpu_error)?;
    let chooser = Chooser {
        plan: asked.plan,
        schedule: asked.schedule,
        data_type: asked.data_type,
        arch: select::arch(asked.arch, Some(&gpu), asked.plan, asked.data_type)?,
        gpu: Some(&gpu),
    };
    let product = chooser.kernels(program)?;
    memory::for_all(asked.problem, asked.data_type, product.most_bytes())?;
    let inputs = Inputs::random(asked.problem, asked.data_type, asked.seed);
    let options = asked.args.on(0);
    let meet = asked.rank.meet.as_deref().unwrap_or_default();
    let name = format!("rank {rank} of {count}, {}", gpu.info().name);
    let joined =
        Rank::join(gpu.clone(), rank, count, meet, options.limit).map_err(|e| failed(&e))?;
    let run = product
        .launch_as(&joined, &inputs, options)
        .map_err(|e| failed(&e))?;
    let check = if asked.check {
        let made = product.check_part(rank, &inputs, &run.c);
        Some(made.map_err(|e| failed(&e))?)
    } else {
        None
    };
    let passed = check.is_none_or(|c| c.passed);
    let ran = (name, run);
    let report = Report {
        placement,
        shards: &asked.args.shards,
        product: &product,
        ran: Some(&ran),
        check,
        passed,
    };
    if asked.json {
        output::print_json(&report.to_json()?);
    } else {
        output::print_line(&report.to_text()?);
    }
    Ok(ExitCode::from(u8::from(!passed)))
}
