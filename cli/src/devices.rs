//! `--devices`: a product over several devices, for `gemm`, `bench` and `plans`.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::devices::Movement;
use tilewright::gpu::{Gpu, devices as gpus_here};
use tilewright::host::devices::{
    DeviceGemm, Devices, DevicesComparison, DevicesRun, DevicesRunError, Emulation, OnDevices,
    Rank, compare_devices,
};
use tilewright::host::{Check, Inputs, check};
use tilewright::kernels::devices::{Action, DevicesError, Placement, Program, ProgramProof};
use tilewright::kernels::gemm::{Config, DataType, Gemm, Scheduler, Specialized};

use crate::error::{CliError, Outcome};
use crate::gemm::select::{self, Device, ScheduleArgs};
use crate::{memory, output};

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
        let made = match (self.movement, devices) {
            (MoveBy::Auto, Some(devices)) => devices.program(problem, placement, data_type),
            (MoveBy::Auto | MoveBy::Copies, _) => Program::derive(problem, placement),
            (MoveBy::Direct, _) => {
                let made = Program::direct(problem, placement).map_err(|e| refused(&e))?;
                return made.ok_or_else(|| {
                    let message = "direct stores take A and B that are cut along k alike (columns,rows,…) and β = 0; use `--movement copies`";
                    CliError::new("no_direct", message)
                });
            }
            (MoveBy::Collective, _) => {
                let made = Program::collective(problem, placement).map_err(|e| refused(&e))?;
                let moves = placement.movements().map_err(|e| refused(&e))?;
                let nothing =
                    [&moves.a, &moves.b, &moves.c].map(|m| m.movement() == Movement::Nothing);
                if nothing == [true; 3] {
                    let message = "nothing moves with these shards, so that there is no collective; use `--movement auto`";
                    return Err(CliError::new("no_collective", message));
                }
                return made.ok_or_else(|| {
                    CliError::new(
                        "no_collective",
                        "no single all-gather or reduce-scatter does what moves here: it takes equal shards of whole rows as they are stored (A not \
                         transposed, B transposed), and nothing added after a reduce-scatter (β, bias, activation); use `--movement copies`",
                    )
                });
            }
        };
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
    match error {
        DevicesError::Placement { .. } | DevicesError::Distribution(_) => {
            CliError::usage(error.code(), error.to_string())
        }
        _ => CliError::new(error.code(), error.to_string()),
    }
}

fn failed(error: &DevicesRunError) -> CliError {
    match error {
        DevicesRunError::Devices(e) => refused(e),
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
pub(crate) struct Chooser<'a> {
    pub(crate) plan: &'a str,
    pub(crate) schedule: &'a ScheduleArgs,
    pub(crate) data_type: DataType,
    pub(crate) arch: Arch,
    pub(crate) gpu: Option<&'a Gpu>,
}

/// An error on the way to a program with kernels.
enum Refused {
    Cli(Box<CliError>),
    Run(DevicesRunError),
}

impl From<DevicesRunError> for Refused {
    fn from(error: DevicesRunError) -> Self {
        Self::Run(error)
    }
}

/// The tile of the persistent plan for products that overlap, and how many tiles fill a GPU.
const WIDE: [u32; 2] = [128, 256];
const FILLED: u64 = 100;

/// From this k on, multiprocessors left idle cost more than the time between tiles that persistent blocks save.
const LONG: u64 = 6144;

/// Whether the blocks of a persistent plan leave multiprocessors of `all` idle, throughout or in the last wave. Alone, another plan would leave as many idle in its
/// last wave; of two products that overlap, blocks of the second one take their place, unless persistent ones still sit there.
fn leaves_room(plan: &Specialized, local: &Gemm, all: u64) -> bool {
    let Ok(Some(launch)) = plan.launch(local) else {
        return false;
    };
    let tiles = tiles(plan.tile(), local);
    let blocks: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let waves = tiles.div_ceil(blocks.max(1));
    // A twentieth is not worth the slower main loop.
    tiles.saturating_mul(20) < waves.saturating_mul(19 * all.max(blocks))
}

fn tiles([m, n, _]: [u32; 3], local: &Gemm) -> u64 {
    let (down, across) = (local.m.div_ceil(m.into()), local.n.div_ceil(n.into()));
    down.saturating_mul(across)
}

/// The persistent plan of the [`WIDE`] tile, if the type has one and the product fills the GPU with it: what the model chooses for a product alone, such as
/// 192×160, is up to 8 % slower beside another one (8192×7168×8192 in bf16 on two H200: 0.680 instead of 0.633 ms).
fn wide(data_type: DataType, local: &Gemm) -> Option<Config> {
    Config::table().find(|config| {
        let [m, n, _] = config.tile;
        config.data_type == data_type
            && [m, n] == WIDE
            && tiles(config.tile, local) >= FILLED
            && config.scheduler.is_persistent()
            && config.cluster_blocks() == 1
    })
}

impl Chooser<'_> {
    fn kernels(&self, program: &Program) -> Result<DeviceGemm, CliError> {
        let products = |device: usize| {
            let ops = program.ops.iter().filter(move |op| op.device == device);
            ops.filter(|op| matches!(op.action, Action::Product(_)))
                .count()
        };
        let overlap = (0..program.devices).any(|device| products(device) > 1);
        let named = |name: &str, local: &Gemm| {
            select::plan(
                name,
                self.schedule,
                self.data_type,
                local,
                self.arch,
                self.gpu,
            )
            .map_err(|e| Refused::Cli(Box::new(e)))
        };
        let choose = |local: &Gemm| -> Result<Specialized, Refused> {
            let plan = named(self.plan, local)?;
            if self.plan != "auto" || !overlap || !plan.scheduler.is_persistent() {
                return Ok(plan);
            }
            // What the model chose serves; another plan may not.
            let plan = wide(self.data_type, local)
                .and_then(|config| named(&config.to_string(), local).ok())
                .unwrap_or(plan);
            let all = self.gpu.map_or(0, |gpu| gpu.info().sm_count);
            if leaves_room(&plan, local, all.into()) && local.k >= LONG {
                let one_tile_a_block = Config {
                    scheduler: Scheduler::Grid,
                    ..plan.config()
                };
                if let Ok(plan) = named(&one_tile_a_block.to_string(), local) {
                    return Ok(plan);
                }
            }
            Ok(plan)
        };
        DeviceGemm::with(program.clone(), self.data_type, self.arch, choose).map_err(|e| match e {
            Refused::Cli(e) => *e,
            Refused::Run(e) => failed(&e),
        })
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
        return as_rank(asked, count, usize::from(rank), &program, &placement);
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
    let product = chooser.kernels(&program)?;
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
    program: &Program,
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

/// Everything that there is to say about a product over devices.
struct Report<'a> {
    placement: &'a Placement,
    shards: &'a str,
    product: &'a DeviceGemm,
    ran: Option<&'a (String, DevicesRun)>,
    check: Option<Check>,
    passed: bool,
}

impl Report<'_> {
    fn movements(&self) -> Result<[(char, String); 3], CliError> {
        let moves = self.placement.movements().map_err(|e| refused(&e))?;
        Ok([
            ('A', moves.a.movement().to_string()),
            ('B', moves.b.movement().to_string()),
            ('C', moves.c.movement().to_string()),
        ])
    }

    fn to_text(&self) -> Result<String, CliError> {
        let mut text = String::new();
        let moved: Vec<String> = self
            .movements()?
            .iter()
            .map(|(matrix, movement)| format!("{matrix} {movement}"))
            .collect();
        let devices = self.placement.devices();
        let _ = writeln!(text, "devices    {devices}, shards {}", self.shards);
        let _ = writeln!(text, "movement   {}", moved.join(", "));
        for ((from, to), bytes) in self.product.link_bytes() {
            let _ = writeln!(text, "  link     {from} -> {to}: {bytes} bytes");
        }
        if let Some(proof) = self.product.proof() {
            let _ = writeln!(
                text,
                "proven     {} products, {}: no race in any schedule ({} ordered pairs), every element of C complete",
                proof.products,
                moved_by(proof),
                proof.ordered_pairs
            );
        }
        for (plan, [m, n, k]) in self.product.plans() {
            let _ = writeln!(text, "plan       {plan} for {m}x{n}x{k}");
        }
        let Some((device, run)) = self.ran else {
            let _ = write!(text, "ran        nowhere");
            return Ok(text);
        };
        let _ = writeln!(text, "ran on     {device}");
        if let Some(ms) = run.time_ms {
            let p = self.product.program().problem;
            let flops = 2.0 * p.m as f64 * p.n as f64 * p.k as f64;
            let _ = writeln!(
                text,
                "time       {ms:.4} ms, {:.1} TFLOP/s on all devices together",
                flops / ms / 1e9
            );
        }
        for finding in &run.findings {
            let _ = writeln!(text, "finding    {finding}");
        }
        if let Some(c) = self.check {
            let _ = writeln!(
                text,
                "error      largest relative {:.2e}, tolerance {:.2e}",
                c.max_rel_err, c.tolerance
            );
        }
        let _ = write!(text, "{}", if self.passed { "passed" } else { "FAILED" });
        Ok(text)
    }

    fn to_json(&self) -> Result<Value, CliError> {
        let proof = self.product.proof().map(proof_json);
        let p = self.product.program().problem;
        let finite = |v: f64| v.is_finite().then_some(v);
        let links: Vec<Value> = links_json(self.product);
        let plans: Vec<Value> = self
            .product
            .plans()
            .into_iter()
            .map(|(plan, [m, n, k])| json!({"plan": plan, "m": m, "n": n, "k": k}))
            .collect();
        let [a, b, c] = self.movements()?;
        let run = self.ran.map(|(_, run)| run);
        Ok(json!({
            "devices": self.placement.devices(),
            "shards": self.shards,
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "movement": {"a": a.1, "b": b.1, "c": c.1},
            "links": links,
            "proof": proof,
            "plans": plans,
            "device": self.ran.map_or("none", |(device, _)| device),
            "time_ms": run.and_then(|run| run.time_ms),
            "findings": run.map_or(&[][..], |run| &run.findings),
            "max_abs_err": self.check.and_then(|c| finite(c.max_abs_err)),
            "max_rel_err": self.check.and_then(|c| finite(c.max_rel_err)),
            "tolerance": self.check.map(|c| c.tolerance),
            "passed": run.map(|_| self.passed),
        }))
    }
}

/// How many operations move things: `2 copies and 2 flags`.
fn moved_by(proof: &ProgramProof) -> String {
    let (one, of) = (proof.collectives, "collective operation");
    match one {
        0 => format!("{} copies and {} flags", proof.copies, proof.flags),
        1 => format!("1 {of}"),
        _ => format!("{one} {of}s"),
    }
}

fn proof_json(proof: &ProgramProof) -> Value {
    json!({
        "products": proof.products,
        "copies": proof.copies,
        "collectives": proof.collectives,
        "flags": proof.flags,
        "ordered_pairs": proof.ordered_pairs,
    })
}

fn links_json(product: &DeviceGemm) -> Vec<Value> {
    product
        .link_bytes()
        .into_iter()
        .map(|((from, to), bytes)| json!({"from": from, "to": to, "bytes": bytes}))
        .collect()
}

/// `plans --devices`: what would move for a product, and what each device would do, step by step.
pub(crate) fn plan(
    args: &DevicesArgs,
    count: usize,
    problem: &Gemm,
    data_type: DataType,
    json: bool,
) -> Outcome {
    let placement = args.placement(problem, count)?;
    let program = args.program(problem, &placement, data_type, None)?;
    let proof = program.prove().map_err(|e| refused(&e))?;
    let moves = placement.movements().map_err(|e| refused(&e))?;
    let bytes = |elements: u64, result: bool| {
        let element = if result {
            problem.result(data_type).bytes()
        } else {
            data_type.bytes()
        };
        elements.saturating_mul(element.into())
    };
    let matrices = [
        ("A", &placement.a, &moves.a, false),
        ("B", &placement.b, &moves.b, false),
        ("C", &placement.c, &moves.c, true),
    ];
    if json {
        let rows: Vec<Value> = matrices
            .iter()
            .map(|(name, distribution, moved, result)| {
                json!({
                    "matrix": name,
                    "layout": distribution.layout().to_string(),
                    "movement": moved.movement().to_string(),
                    "bytes": bytes(moved.total(), *result),
                    "busiest_link_bytes": bytes(moved.busiest_link(), *result),
                })
            })
            .collect();
        let ops: Vec<Value> = program
            .ops
            .iter()
            .map(|op| json!({"device": op.device, "stream": op.stream, "action": op.action.to_string()}))
            .collect();
        output::print_json(&json!({
            "devices": count,
            "m": problem.m,
            "n": problem.n,
            "k": problem.k,
            "dtype": data_type.to_string(),
            "matrices": rows,
            "operations": ops,
            "proof": proof_json(&proof),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let Gemm { m, n, k, .. } = *problem;
    let mut text = format!("{data_type} {m}x{n}x{k} on {count} devices\n");
    for (name, distribution, moved, result) in matrices {
        let _ = writeln!(
            text,
            "  {name}  {:<42} {}, {} bytes in all, {} on the busiest link",
            distribution.layout().to_string(),
            moved.movement(),
            bytes(moved.total(), result),
            bytes(moved.busiest_link(), result)
        );
    }
    let _ = writeln!(
        text,
        "proven: {} products, {}, {} ordered pairs",
        proof.products,
        moved_by(&proof),
        proof.ordered_pairs
    );
    for op in &program.ops {
        let _ = writeln!(text, "  {op}");
    }
    output::print_line(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// What `bench` was asked for.
pub(crate) struct Bench<'a> {
    pub(crate) args: &'a DevicesArgs,
    pub(crate) problems: &'a [(DataType, Gemm)],
    pub(crate) plans: &'a [String],
    pub(crate) schedule: &'a ScheduleArgs,
    pub(crate) repeats: usize,
    pub(crate) seed: u64,
    pub(crate) json: bool,
}

/// `bench --devices`: ours against its products alone, and against NCCL and a product in sequence.
pub(crate) fn bench(asked: &Bench<'_>, count: usize) -> Outcome {
    let devices = Devices::open(count)
        .map_err(|e| CliError::new(e.code(), format!("bench measures on GPUs: {e}")))?;
    let gpu = &devices.gpus()[0];
    let arch = select::newest(gpu)?;
    let mut rows = Vec::new();
    let mut failed_any = false;
    if !asked.json {
        output::print_line(&format!(
            "{count} x {}, {arch}; shards {}; times in ms, medians of timing slices",
            gpu.info().name,
            asked.args.shards
        ));
        output::print_line(
            "dtype    trans      m      n      k  plan                                        ours    alone  overhead  NCCL+ours  NCCL+cuBLAS",
        );
    }
    for (data_type, problem) in asked.problems {
        for plan in asked.plans {
            let chooser = Chooser {
                plan,
                schedule: asked.schedule,
                data_type: *data_type,
                arch,
                gpu: Some(gpu),
            };
            let row = asked.row(&devices, &chooser, problem);
            let passed = row.as_ref().is_ok_and(|(_, row)| row.passed);
            failed_any |= !passed;
            if !asked.json {
                output::print_line(&line(*data_type, problem, plan, &row));
            }
            rows.push(row_json(*data_type, problem, plan, &row));
        }
    }
    if asked.json {
        output::print_json(&json!({
            "device": gpu.info().name,
            "devices": count,
            "arch": arch.to_string(),
            "shards": asked.args.shards,
            "rows": rows,
        }));
    }
    Ok(ExitCode::from(u8::from(failed_any)))
}

/// The plans that were taken, and the figures.
type Row = Result<(String, DevicesComparison), CliError>;

impl Bench<'_> {
    fn row(&self, devices: &Devices, chooser: &Chooser<'_>, problem: &Gemm) -> Row {
        let placement = self.args.placement(problem, devices.gpus().len())?;
        let program = self
            .args
            .program(problem, &placement, chooser.data_type, Some(devices))?;
        let alone = Program::alone(problem, &placement).map_err(|e| refused(&e))?;
        memory::for_rows(problem, chooser.data_type)?;
        let product = chooser.kernels(&program)?;
        let alone = chooser.kernels(&alone)?;
        let mut plans: Vec<String> = product.plans().into_iter().map(|(plan, _)| plan).collect();
        plans.dedup();
        let proof = product.proof();
        if proof.is_some_and(|proof| proof.collectives > 0) {
            plans.insert(0, "NCCL".to_owned());
        }
        let row = compare_devices(
            devices,
            &placement,
            &product,
            &alone,
            self.args.on(self.repeats),
            self.seed,
        )
        .map_err(|e| without_nccl(&e))?;
        Ok((plans.join("+"), row))
    }
}

fn line(data_type: DataType, problem: &Gemm, plan: &str, row: &Row) -> String {
    let Gemm { m, n, k, .. } = *problem;
    let head = format!(
        "{:<8} {:<5} {m:>6} {n:>6} {k:>6}",
        data_type.to_string(),
        problem.operands.to_string()
    );
    let (plans, row) = match row {
        Ok(row) => row,
        Err(refusal) => return format!("{head}  {plan:<40} not run: {}", refusal.message()),
    };
    let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.4}"));
    let mut text = format!(
        "{head}  {plans:<40} {:>8.4} {:>8.4} {:>8.1}% {:>10} {:>12}",
        row.ours_ms,
        row.alone_ms,
        row.overhead() * 100.0,
        ms(row.nccl_ms),
        ms(row.nccl_cublas_ms)
    );
    if !row.passed {
        let _ = write!(
            text,
            "  WRONG: error {:.2e} > {:.2e}",
            row.max_rel_err, row.tolerance
        );
    }
    if let Some(missing) = &row.missing {
        let _ = write!(text, "  ({missing})");
    }
    text
}

fn row_json(data_type: DataType, problem: &Gemm, plan: &str, row: &Row) -> Value {
    let Gemm { m, n, k, .. } = *problem;
    let mut value = json!({
        "dtype": data_type.to_string(),
        "trans": problem.operands.to_string(),
        "m": m,
        "n": n,
        "k": k,
        "plan": plan,
    });
    let more = match row {
        Ok((plans, row)) => json!({
            "plan": plans,
            "passed": row.passed,
            "ours_ms": row.ours_ms,
            "alone_ms": row.alone_ms,
            "overhead": row.overhead(),
            "nccl_ms": row.nccl_ms,
            "nccl_cublas_ms": row.nccl_cublas_ms,
            "missing": row.missing,
            "max_rel_err": row.max_rel_err,
            "tolerance": row.tolerance,
        }),
        Err(refusal) => refusal.to_json(),
    };
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}
