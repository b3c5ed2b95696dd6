//! `tilewright gemm`: layouts, proofs, PTX, a run, and the check of its numbers.
//!
//! ```text
//! arguments ──▶ problem + plan ──▶ proof ──▶ PTX ──▶ GPU | emulator ──▶ compare with float64 ──▶ report
//! ```

mod contract;
mod opencl;
pub(crate) mod report;
pub(crate) mod select;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tilewright::banks::BankModel;
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::emulator;
use tilewright::gpu::Gpu;
use tilewright::host::{
    self as runner, Check, Contract, GemmKernel, Inputs, Matrix, On, RunError, RunOptions, run_with,
};
use tilewright::kernels::gemm::opencl::emit as emit_opencl;
use tilewright::kernels::gemm::{
    Alignment, Batch, DataType, Emitted as Text, Epilogue, Gemm, Launch, Operands, PlanError,
    ProblemError, Specialized,
};

use crate::devices::{self, DevicesArgs, RankArgs};
use crate::emitted::Emitted;
use crate::error::{CliError, Outcome, finish};
use crate::{emit, memory, output, progress};

use report::Report;
use select::Device;

/// Compute C = alpha op(A) op(B) + beta C with a derived, proven, generated kernel, and check it
#[derive(Args, Debug)]
pub(crate) struct GemmArgs {
    /// Element type (that of the plan by default, and f32 without one)
    #[arg(long)]
    dtype: Option<String>,
    /// Rows of C
    #[arg(long, default_value_t = 256, allow_negative_numbers = true, value_parser = size)]
    m: u64,
    /// Columns of C
    #[arg(long, default_value_t = 256, allow_negative_numbers = true, value_parser = size)]
    n: u64,
    /// Length of the sums
    #[arg(long, default_value_t = 256, allow_negative_numbers = true, value_parser = size)]
    k: u64,
    /// Whether A and B are transposed: nn, nt, tn or tt
    #[arg(long, default_value = "nn")]
    trans: String,
    /// Leading dimension of A, in elements (packed by default)
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    lda: Option<u64>,
    /// Leading dimension of B
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    ldb: Option<u64>,
    /// Leading dimension of C
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    ldc: Option<u64>,
    /// Element type of C (the usual one of the element type by default)
    #[arg(long)]
    ctype: Option<String>,
    /// Add a vector of C's type: none, row (an element for each row of C) or column
    #[arg(long, default_value = "none")]
    bias: String,
    /// Apply a function last: none, relu or gelu
    #[arg(long, default_value = "none")]
    activation: String,
    /// Number of GEMMs of this shape
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = count)]
    batch: u64,
    /// Elements from one matrix A of a batch to the next (packed by default; 0 takes the same for all)
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    stride_a: Option<u64>,
    /// Elements from one matrix B of a batch to the next
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    stride_b: Option<u64>,
    /// Elements from one matrix C of a batch to the next
    #[arg(long, allow_negative_numbers = true, value_parser = size)]
    stride_c: Option<u64>,
    /// The matrices begin at multiples of this many bytes and, below 16, of no more (C of at least an element)
    #[arg(long, value_name = "BYTES", default_value_t = 16, allow_negative_numbers = true, value_parser = alignment)]
    align: u32,
    /// Factor of A·B
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    alpha: f64,
    /// Factor of the old C; 0 does not read it
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    beta: f64,
    /// The plan: auto, or a name that `tilewright plans` lists
    #[arg(long, default_value = "auto")]
    plan: String,
    #[command(flatten)]
    schedule: select::ScheduleArgs,
    /// The architecture to generate for: one such as `sm_80`, or auto (the GPU's; without one `sm_80`, or the first later one that the plan or the type needs)
    #[arg(long, default_value = "auto")]
    arch: String,
    /// The language of the kernel: PTX by default, OpenCL C with `--on opencl`
    #[arg(long, value_enum)]
    target: Option<select::Target>,
    /// With `--target opencl`, the banks of local memory that accesses are proven on: amd-gcn (the default), amd-r700 or nvidia
    #[arg(long, value_name = "MODEL")]
    banks: Option<String>,
    /// Write the kernel's text to this file
    #[arg(long, value_name = "FILE")]
    emit: Option<PathBuf>,
    /// Write the launches for a host of your own: rust, cudarc, c or python, and the file
    #[arg(long, num_args = 2, value_names = ["LANGUAGE", "FILE"])]
    emit_host: Option<Vec<String>>,
    /// Where to run: auto takes a GPU if there is one, and for OpenCL C an OpenCL device
    #[arg(long, value_enum, default_value = "auto")]
    on: Device,
    #[command(flatten)]
    over: DevicesArgs,
    #[command(flatten)]
    rank: RankArgs,
    /// Seed of the random operands
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compare with the reference (on by default); false only runs
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    check: bool,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

/// A size: whole and not negative.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(v) if v < 0 => Err(format!("{v} is negative; sizes are 0 or more")),
        Ok(v) => u64::try_from(v).map_err(|_| format!("{v} is too large")),
        Err(_) => Err("give a whole number".to_owned()),
    }
}

/// A number of products: at least one.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("give at least 1".to_owned()),
        n => Ok(n),
    }
}

/// Bytes that an address is a multiple of.
pub(crate) fn alignment(text: &str) -> Result<u32, String> {
    match size(text)? {
        n if n.is_power_of_two() && n <= 256 => Ok(n as u32),
        n => Err(format!(
            "{n} is no alignment; give a power of two up to 256"
        )),
    }
}

/// The element type of C of a name, if products in `data_type` can have it.
pub(crate) fn output_type(name: &str, data_type: DataType) -> Result<Element, CliError> {
    let known = data_type.results();
    known
        .iter()
        .copied()
        .find(|t| t.to_string() == name)
        .ok_or_else(|| {
            let known: Vec<_> = known.iter().map(ToString::to_string).collect();
            CliError::usage(
                "unknown_ctype",
                format!(
                    "products in {data_type} have no C of type `{name}`; known {} {}",
                    if known.len() == 1 { "is" } else { "are" },
                    known.join(", ")
                ),
            )
        })
}

/// The distances of packed matrices of a batch, or those that are given.
pub(crate) fn batched(problem: &Gemm, count: u64, strides: [Option<u64>; 3]) -> Batch {
    let packed = [
        problem.stored_a().0.saturating_mul(problem.lda),
        problem.stored_b().0.saturating_mul(problem.ldb),
        problem.m.saturating_mul(problem.ldc),
    ];
    let [a, b, c] = [0, 1, 2].map(|i| strides[i].unwrap_or(packed[i]));
    Batch {
        count,
        strides: [a, b, c],
    }
}

/// A, B and C at multiples of `bytes`, but C of at least an element, since its type may be wider than theirs.
pub(crate) fn aligned(problem: &Gemm, bytes: u32, data_type: DataType) -> Alignment {
    Alignment {
        a: bytes,
        b: bytes,
        c: bytes.max(problem.result(data_type).bytes()),
    }
}

pub(crate) fn run(args: &GemmArgs) -> ExitCode {
    finish(gemm(args), args.json)
}

impl GemmArgs {
    fn problem(&self, data_type: DataType) -> Result<Gemm, CliError> {
        let wrong = |e: ProblemError| CliError::usage(e.code(), e.to_string());
        let operands: Operands = self.trans.parse().map_err(wrong)?;
        let mut problem = Gemm::packed(self.m, self.n, self.k, operands);
        problem.lda = self.lda.unwrap_or(problem.lda);
        problem.ldb = self.ldb.unwrap_or(problem.ldb);
        problem.ldc = self.ldc.unwrap_or(problem.ldc);
        (problem.alpha, problem.beta) = (self.alpha, self.beta);
        problem.epilogue = Epilogue {
            bias: self.bias.parse().map_err(wrong)?,
            activation: self.activation.parse().map_err(wrong)?,
        };
        if let Some(name) = &self.ctype {
            problem.output = Some(output_type(name, data_type)?);
        }
        problem.validate(u64::MAX).map_err(wrong)?;
        let strides = [self.stride_a, self.stride_b, self.stride_c];
        problem.batch = batched(&problem, self.batch, strides);
        problem.alignment = aligned(&problem, self.align, data_type);
        problem.placed(data_type).map_err(wrong)?;
        Ok(problem)
    }
}

fn gemm(args: &GemmArgs) -> Outcome {
    let data_type = select::type_or_plans(args.dtype.as_deref(), &args.plan)?;
    let problem = args.problem(data_type)?;
    if let Some(count) = args.over.count() {
        return over_devices(args, data_type, &problem, count);
    }
    if let Some(model) = opencl::target(args)? {
        if args.emit_host.is_some() {
            let message =
                "--emit-host writes launches of PTX; an OpenCL host takes the contract of --json";
            return Err(CliError::usage("usage", message));
        }
        return in_opencl(args, data_type, &problem, model);
    }
    let gpu = select::gpu(args.on)?;
    let made = Made::new(args, data_type, &problem, gpu.as_ref())?;
    let (launch, emitted) = (&made.launch, &made.emitted);
    let kernel = made.kernel(&problem)?;
    let contract = contract::of(&kernel, &problem)?;
    let on = match (args.on, &gpu) {
        (Device::None, _) => None,
        (_, Some(_)) => Some(On::Gpu),
        (_, None) => Some(On::Emulator),
    };
    let inputs = operands(args, data_type, &problem, launch.as_ref(), on)?;
    emit::files(
        args.emit.as_deref(),
        args.emit_host.as_deref(),
        &emitted.ptx,
        &contract,
    )?;
    let ran = match (on, &inputs) {
        (Some(on), Some(inputs)) => Some(ran(&kernel, on, gpu, (&problem, inputs))?),
        _ => None,
    };
    let report = Report {
        check: checked(args, data_type, &problem, inputs.as_ref(), ran.as_ref())?,
        ran,
        ..made.report(&problem, &contract)
    };
    told(args, &report)
}

/// A plan that is proven and printed for a problem.
struct Made {
    arch: Arch,
    plan: Specialized,
    launch: Option<Launch>,
    emitted: Text,
}

impl Made {
    fn new(
        args: &GemmArgs,
        data_type: DataType,
        problem: &Gemm,
        gpu: Option<&Gpu>,
    ) -> Result<Self, CliError> {
        let arch = select::arch(&args.arch, gpu, &args.plan, data_type)?;
        let schedule = &args.schedule;
        let plan = select::plan(&args.plan, schedule, data_type, problem, arch, gpu)?;
        // The proof comes first: a plan that does not prove is not emitted.
        let launch = plan.launch(problem).map_err(refused)?;
        let emitted = plan.emit(problem.operands, arch).map_err(refused)?;
        Ok(Self {
            arch,
            plan,
            launch,
            emitted,
        })
    }

    fn kernel(&self, problem: &Gemm) -> Result<GemmKernel<'_>, CliError> {
        GemmKernel::emitted(&self.plan, &self.emitted, problem).map_err(refused)
    }

    /// The report of a kernel that was not run.
    fn report<'a>(&'a self, problem: &'a Gemm, contract: &'a Contract) -> Report<'a> {
        Report {
            plan: &self.plan,
            target: report::Target::Ptx(self.arch),
            problem,
            kernel: &self.emitted,
            launch: self.launch.as_ref(),
            contract,
            check: None,
            ran: None,
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn refused(e: PlanError) -> CliError {
    CliError::new(e.code(), e.to_string())
}

/// A GEMM with its contract, not run.
pub(crate) fn emitted(args: &GemmArgs) -> Result<Emitted, CliError> {
    let data_type = select::type_or_plans(args.dtype.as_deref(), &args.plan)?;
    let problem = args.problem(data_type)?;
    let made = Made::new(args, data_type, &problem, None)?;
    let contract = contract::of(&made.kernel(&problem)?, &problem)?;
    Ok(Emitted {
        report: made.report(&problem, &contract).to_json(),
        text: made.emitted.ptx.clone(),
    })
}

/// The product over several devices.
fn over_devices(args: &GemmArgs, data_type: DataType, problem: &Gemm, count: usize) -> Outcome {
    let refuse = |message: &str| Err(CliError::usage("usage", message));
    if args.emit.is_some() || args.emit_host.is_some() {
        return refuse(
            "--emit writes one kernel, and a product over devices has several: leave out --devices and give the shapes that \
             `plans --devices` lists",
        );
    }
    if args.target == Some(select::Target::Opencl) || args.on == Device::Opencl {
        return refuse("products over several devices run as PTX: on GPUs or on the emulator");
    }
    let asked = devices::Asked {
        args: &args.over,
        rank: &args.rank,
        problem,
        data_type,
        plan: &args.plan,
        schedule: &args.schedule,
        arch: &args.arch,
        on: args.on,
        seed: args.seed,
        check: args.check,
        json: args.json,
    };
    devices::gemm(&asked, count)
}

/// The operands of a run, if there is one; what does not fit the memory is refused.
fn operands(
    args: &GemmArgs,
    data_type: DataType,
    problem: &Gemm,
    launch: Option<&Launch>,
    on: Option<On>,
) -> Result<Option<Inputs>, CliError> {
    if on.is_none() {
        return Ok(None);
    }
    let workspace = launch.map_or(0, |l| l.workspace_bytes);
    memory::for_all(problem, data_type, workspace)?;
    Ok(Some(Inputs::random(problem, data_type, args.seed)))
}

/// Multiply-accumulates that take the emulator about half a minute.
const LONG: f64 = 3e10;

/// Timed runs on a GPU, after a first one; the time is their median.
const REPEATS: usize = 20;

/// A run and its C.
fn ran(
    kernel: &GemmKernel<'_>,
    on: On,
    gpu: Option<Gpu>,
    (problem, inputs): (&Gemm, &Inputs),
) -> Result<(runner::Outcome, Matrix), CliError> {
    let products = problem.m as f64 * problem.n as f64 * problem.k as f64;
    if on == On::Emulator && products * problem.batch.count as f64 > LONG {
        eprintln!(
            "this takes the emulator a minute or more; `--on none` only proves and writes the kernel"
        );
    }
    let (bar, of_blocks) = progress::blocks();
    let options = RunOptions {
        emulator: emulator::Options {
            progress: Some(of_blocks),
            ..emulator::Options::default()
        },
        repeats: if on == On::Gpu { REPEATS } else { 0 },
        gpu,
        ..RunOptions::default()
    };
    let failed = |e: RunError| CliError::new(e.code(), e.to_string());
    let args = kernel.args(inputs).map_err(|e| failed(e.into()))?;
    let outcome = run_with(kernel, on, args, &options);
    bar.finish_and_clear();
    let outcome = outcome.map_err(failed)?;
    let c = kernel.result(inputs, &outcome);
    let c = c.map_err(|e| CliError::new("outcome", e.to_string()))?;
    Ok((outcome, c))
}

/// The comparison with the reference, if it is wanted.
fn checked(
    args: &GemmArgs,
    data_type: DataType,
    problem: &Gemm,
    inputs: Option<&Inputs>,
    ran: Option<&(runner::Outcome, Matrix)>,
) -> Result<Option<Check>, CliError> {
    match (inputs, ran) {
        (Some(inputs), Some((_, c))) if args.check => {
            let spinner = progress::spinner("checking against float64");
            let check = runner::check(problem, data_type, inputs, c)
                .map_err(|e| CliError::new("reference", e.to_string()))?;
            spinner.finish_and_clear();
            Ok(Some(check))
        }
        _ => Ok(None),
    }
}

/// Prints the report.
fn told(args: &GemmArgs, report: &Report<'_>) -> Outcome {
    if args.json {
        output::print_json(&report.to_json());
    } else {
        let text = report.to_text();
        output::print_line(&text.map_err(|e| CliError::new(e.code(), e.to_string()))?);
    }
    Ok(ExitCode::from(u8::from(!report.passed())))
}

/// The product in OpenCL C, with local memory that has the banks of `model`.
fn in_opencl(
    args: &GemmArgs,
    data_type: DataType,
    problem: &Gemm,
    model: &'static BankModel,
) -> Outcome {
    let name = opencl::plan_name(&args.plan, data_type)?;
    let arch = select::arch("auto", None, name, data_type)?;
    let plan = select::plan(name, &args.schedule, data_type, problem, arch, None)?;
    let launch = plan.launch(problem).map_err(refused)?;
    let emitted = emit_opencl(&plan, problem.operands, model).map_err(refused)?;
    if let Some(path) = &args.emit {
        output::write_atomically(path, emitted.source.as_bytes())?;
    }
    let kernel = GemmKernel::opencl(&plan, &emitted, problem).map_err(refused)?;
    let on = opencl::device(args.on)?;
    let inputs = operands(args, data_type, problem, launch.as_ref(), on)?;
    let ran = match (on, &inputs) {
        (Some(on), Some(inputs)) => Some(ran(&kernel, on, None, (problem, inputs))?),
        _ => None,
    };
    let report = Report {
        plan: &plan,
        target: report::Target::OpenCl(model),
        problem,
        kernel: &opencl::emitted(&emitted),
        launch: launch.as_ref(),
        contract: &contract::of(&kernel, problem)?,
        check: checked(args, data_type, problem, inputs.as_ref(), ran.as_ref())?,
        ran,
    };
    told(args, &report)
}
