//! A program over GPUs against what one would write without it: NCCL's collective, and then the product.
//!
//! Four things alternate on the same devices: the program; its products alone, as if everything were there already (what the overhead is measured
//! against); NCCL's collective followed by our kernel; and by cuBLAS. NCCL's forms are timed where the movement is one all-gather of equal shards
//! or one reduce-scatter of equal chunks.

use std::time::Duration;

use layout_codegen::ir::Element;
use layout_core::devices::Movement;
use tilewright_gpu::cublas::{Cublas, Gemm as CublasGemm, Matrix as CublasMatrix, Scalar};
use tilewright_gpu::nccl::Nccl;
use tilewright_gpu::{Deadline, GpuError};
use tilewright_kernels::devices::{Action, Operand, Placement};
use tilewright_kernels::gemm::{DataType, Trans};

use super::on_gpu::Session;
use super::{DeviceGemm, Devices, DevicesRunError, OnDevices};
use crate::host::bench::{cublas_types, gpu_type};
use crate::host::{Inputs, check_rows};

/// A program's time, and what it is compared with, in milliseconds: medians of slices.
#[derive(Clone, PartialEq, Debug)]
pub struct DevicesComparison {
    /// The program: products and movement overlapped.
    pub ours_ms: f64,
    /// Its products alone.
    pub alone_ms: f64,
    /// NCCL's collective and our kernel one after the other; none if NCCL is not there or has no such collective.
    pub nccl_ms: Option<f64>,
    /// NCCL's collective and cuBLAS; none as above, or if cuBLAS has no such product.
    pub nccl_cublas_ms: Option<f64>,
    /// Why a comparison is missing.
    pub missing: Option<String>,
    /// The largest relative error on the checked rows.
    pub max_rel_err: f64,
    /// What rounding explains.
    pub tolerance: f64,
    /// The error is within the tolerance, and replicas agree.
    pub passed: bool,
}

impl DevicesComparison {
    /// What the movement costs: the program's time over that of its products alone, less 1.
    pub fn overhead(&self) -> f64 {
        self.ours_ms / self.alone_ms - 1.0
    }
}

/// Timing slices of everything.
const SLICES: usize = 5;

/// The collective that does the same.
#[derive(Clone, Copy)]
enum Collective {
    /// Of this operand, in place.
    AllGather(Operand),
    /// Of C's elements.
    ReduceScatter(Element, Scalar),
}

/// Times a product over GPUs. `alone` is the same with everything in its place ([`Program::alone`](tilewright_kernels::devices::Program::alone)).
///
/// # Errors
///
/// As [`DeviceGemm::launch_on`]. NCCL or cuBLAS that are missing are no errors.
pub fn compare_devices(
    devices: &Devices,
    placement: &Placement,
    product: &DeviceGemm,
    alone: &DeviceGemm,
    options: OnDevices,
    seed: u64,
) -> Result<DevicesComparison, DevicesRunError> {
    compare(devices, placement, [product, alone], options, seed)
        .map_err(|error| devices.blame(error))
}

fn compare(
    devices: &Devices,
    placement: &Placement,
    [product, alone]: [&DeviceGemm; 2],
    options: OnDevices,
    seed: u64,
) -> Result<DevicesComparison, DevicesRunError> {
    let problem = product.program.problem;
    let data_type = product.data_type;
    let inputs = Inputs::random(&problem, data_type, seed);
    let deadline = || Deadline::after(options.limit);
    let mut ours = Session::new(product, devices, &inputs, deadline())?;
    let mut theirs = Session::new(alone, devices, &inputs, deadline())?;
    ours.run(deadline())?;
    let memory = ours.download()?;
    let (c, findings) = product.collect(&inputs, &memory);
    drop(memory);
    let check = check_rows(&problem, data_type, &inputs, &c, 24).map_err(DevicesRunError::from)?;
    let mut missing = None;
    let collective = collective(placement, product);
    if collective.is_none() {
        missing = Some("no single collective of equal parts moves the same".to_owned());
    }
    let nccl = collective.and_then(|collective| match Nccl::all(devices.gpus()) {
        Ok(nccl) => Some((nccl, collective)),
        Err(error) => {
            missing = Some(error.to_string());
            None
        }
    });
    let cublas: Option<Vec<Cublas>> = match nccl {
        Some(_) => devices
            .gpus()
            .iter()
            .map(|gpu| Cublas::new(gpu).ok())
            .collect(),
        None => None,
    };
    let types = match data_type {
        // Plain cuBLAS has no products of them.
        DataType::E4m3 | DataType::E5m2 => None,
        _ => cublas_types(data_type, &problem),
    };
    let mut times: [Vec<f64>; 4] = Default::default();
    let each = options.repeats.div_ceil(SLICES).max(2);
    for _ in 0..SLICES {
        times[0].push(ours.time(each, deadline())?);
        times[1].push(theirs.time(each, deadline())?);
        if let Some((nccl, collective)) = &nccl {
            let sequence = |multiply: &dyn Fn(usize) -> Result<(), DevicesRunError>| {
                sequence(&theirs, alone, nccl, *collective, multiply, each)
            };
            let job = |device: usize| {
                let ops = alone.program.ops.iter().enumerate();
                ops.filter(move |(_, op)| {
                    op.device == device && matches!(op.action, Action::Product(_))
                })
                .map(|(index, _)| index)
            };
            times[2].push(sequence(&|device| {
                job(device).try_for_each(|op| theirs.launch(op, devices.gpus()[device].stream()))
            })?);
            if let (Some(cublas), Some(types)) = (&cublas, types) {
                let call = |device: usize| {
                    job(device).try_for_each(|op| {
                        let Some(job) = &alone.jobs[op] else {
                            return Ok(());
                        };
                        let matrix = |which: usize, scalar: Scalar, ld: u64| {
                            let buffer = theirs.buffer(job.buffers[which])?;
                            Ok::<_, DevicesRunError>(CublasMatrix {
                                offset: job.spans[which].offset / scalar.bytes(),
                                ..CublasMatrix::new(buffer, ld as usize)
                            })
                        };
                        let p = &job.problem;
                        let size = [p.m, p.n, p.k].map(|v| v as usize);
                        let product = CublasGemm {
                            trans_a: p.operands.a == Trans::T,
                            trans_b: p.operands.b == Trans::T,
                            alpha: p.alpha,
                            beta: p.beta,
                            ..CublasGemm::new(
                                types,
                                size,
                                matrix(0, types.a, p.lda)?,
                                matrix(1, types.b, p.ldb)?,
                                matrix(2, types.c, p.ldc)?,
                            )
                        };
                        cublas[device]
                            .gemm(&product)
                            .map_err(|error| DevicesRunError::Gpu { device, error })
                    })
                };
                match sequence(&call) {
                    Ok(ms) => times[3].push(ms),
                    Err(error) => missing = Some(error.to_string()),
                }
            }
        }
    }
    let [ours_ms, alone_ms, nccl_ms, nccl_cublas_ms] = times.map(|mut slices| {
        slices.sort_by(f64::total_cmp);
        slices.get(slices.len() / 2).copied()
    });
    drop((ours, theirs));
    Ok(DevicesComparison {
        ours_ms: ours_ms.unwrap_or(f64::NAN),
        alone_ms: alone_ms.unwrap_or(f64::NAN),
        nccl_ms,
        nccl_cublas_ms,
        missing,
        max_rel_err: check.max_rel_err,
        tolerance: check.tolerance,
        passed: check.passed && findings.is_empty(),
    })
}

/// The collective of equal parts that moves what the program moves, if there is one.
fn collective(placement: &Placement, product: &DeviceGemm) -> Option<Collective> {
    let moves = placement.movements().ok()?;
    let problem = &product.program.problem;
    let devices = placement.devices() as u64;
    let nothing = |movement| movement == Movement::Nothing;
    let (a, b, c) = (moves.a.movement(), moves.b.movement(), moves.c.movement());
    // A shard must be a run of whole stored rows.
    let rows_of = |operand: Operand| match operand {
        Operand::A => (problem.operands.a == Trans::N).then_some(problem.m),
        Operand::B => (problem.operands.b == Trans::T).then_some(problem.n),
        Operand::C => Some(problem.m),
    };
    let equal = |operand| rows_of(operand).is_some_and(|rows| rows % devices == 0);
    match (a, b, c) {
        (Movement::AllGather, _, _) if nothing(b) && nothing(c) && equal(Operand::A) => {
            let by_rows = (0..placement.devices())
                .all(|device| placement.a.shard(device).columns.indices() == problem.k);
            by_rows.then_some(Collective::AllGather(Operand::A))
        }
        (_, Movement::AllGather, _) if nothing(a) && nothing(c) && equal(Operand::B) => {
            let by_columns = (0..placement.devices())
                .all(|device| placement.b.shard(device).rows.indices() == problem.k);
            by_columns.then_some(Collective::AllGather(Operand::B))
        }
        (_, _, Movement::ReduceScatter) if equal(Operand::C) => {
            let element = problem.result(product.data_type);
            let ty = gpu_type(element)?;
            let by_rows = (0..placement.devices())
                .all(|device| placement.c.shard(device).columns.indices() == problem.n);
            by_rows.then_some(Collective::ReduceScatter(element, ty))
        }
        _ => None,
    }
}

/// Milliseconds of the collective and the products, one after the other, on the GPUs' own streams.
fn sequence(
    session: &Session<'_>,
    alone: &DeviceGemm,
    nccl: &Nccl,
    collective: Collective,
    multiply: &dyn Fn(usize) -> Result<(), DevicesRunError>,
    repeats: usize,
) -> Result<f64, DevicesRunError> {
    let gpus = session.gpus();
    let at = |device| move |error| DevicesRunError::Gpu { device, error };
    let name = |operand: Operand| operand.to_string();
    let buffer = |device: usize, operand: Operand| {
        let number = alone.program.find(device, &name(operand));
        number.map_or_else(
            || {
                Err(DevicesRunError::Gpu {
                    device,
                    error: GpuError::Invalid {
                        what: format!("there is no {operand}"),
                    },
                })
            },
            |number| session.buffer(number),
        )
    };
    let once = || -> Result<(), DevicesRunError> {
        if let Collective::AllGather(operand) = collective {
            let mut places = Vec::new();
            for device in 0..gpus.len() {
                let buffer = buffer(device, operand)?;
                places.push((buffer.address(), buffer.len_bytes() / gpus.len()));
            }
            nccl.group(|nccl| {
                for (device, &(address, bytes)) in places.iter().enumerate() {
                    let own = address + (device * bytes) as u64;
                    // SAFETY: each device's buffer has the shards of all, its own in its place; the streams are waited for below.
                    unsafe {
                        nccl.all_gather(device, (own, address), bytes, gpus[device].stream())?;
                    }
                }
                Ok(())
            })
            .map_err(at(0))?;
        }
        (0..gpus.len()).try_for_each(multiply)?;
        if let Collective::ReduceScatter(element, ty) = collective {
            let mut places = Vec::new();
            for device in 0..gpus.len() {
                let buffer = buffer(device, Operand::C)?;
                places.push((buffer.address(), buffer.len_bytes() / gpus.len()));
            }
            let size = element.bytes() as usize;
            nccl.group(|nccl| {
                for (device, &(address, bytes)) in places.iter().enumerate() {
                    let own = address + (device * bytes) as u64;
                    // SAFETY: each device's buffer has a term of the whole C; the streams are waited for below.
                    unsafe {
                        nccl.reduce_scatter(
                            device,
                            (address, own),
                            bytes / size,
                            ty,
                            gpus[device].stream(),
                        )?;
                    }
                }
                Ok(())
            })
            .map_err(at(0))?;
        }
        Ok(())
    };
    once()?;
    let record = |device: usize| gpus[device].stream().record().map_err(at(device));
    let starts = (0..gpus.len()).map(record).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..repeats {
        once()?;
    }
    let ends = (0..gpus.len()).map(record).collect::<Result<Vec<_>, _>>()?;
    let deadline = Deadline::after(Duration::from_mins(1));
    for (device, gpu) in gpus.iter().enumerate() {
        gpu.stream()
            .wait_until(deadline, "NCCL's collective")
            .map_err(at(device))?;
    }
    let mut longest: f64 = 0.0;
    for (device, (start, end)) in starts.iter().zip(&ends).enumerate() {
        longest = longest.max(start.milliseconds_to(end).map_err(at(device))?);
    }
    Ok(longest / repeats.max(1) as f64)
}
