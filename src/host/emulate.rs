//! A plan on the emulator: the emitted text, its launches in order, and what the emulator counted.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use layout_codegen::plan::{ArgumentValue, Emitted, Gemm, Launch, Plan, PlanError};
use layout_codegen::ptx::ParamKind;
use ptx_emulator::{
    Arg, Counters, GlobalMemory, InstructionCounter, MemoryError, Module, Options, ParseError,
    Report, RunError, run,
};

use super::placement::{Addresses, WORKSPACE_ALIGNMENT, operands};
use super::{Inputs, Matrix, OperandError};

/// A run on the emulator.
#[derive(Debug)]
pub struct EmulatedRun {
    /// C after the product.
    pub c: Matrix,
    /// Findings and counters; none if there was nothing to launch.
    pub report: Option<Report>,
    /// What each shared access of the plan cost.
    pub accesses: Vec<EmulatedAccess>,
}

/// What a shared access cost on the emulator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmulatedAccess {
    /// Its name in the plan's proof.
    pub access: String,
    /// The least and the most wavefronts of one execution; none if it was never executed.
    pub wavefronts: Option<(u32, u32)>,
}

/// Why a run on the emulator failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum EmulateError {
    /// The plan refused the problem.
    Plan(PlanError),
    /// A matrix is not what the problem says.
    Operand(OperandError),
    /// The emulator could not read the text.
    Parse(ParseError),
    /// The emulator refused the launch.
    Run(RunError),
    /// The operands do not fit the emulator's memory.
    Memory(MemoryError),
}

impl fmt::Display for EmulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
            Self::Parse(e) => write!(f, "the emulator can't read the kernel: {e}"),
            Self::Run(e) => write!(f, "the emulator can't run the kernel: {e}"),
            Self::Memory(e) => write!(f, "the emulator's memory: {e}"),
        }
    }
}

impl std::error::Error for EmulateError {}

impl From<PlanError> for EmulateError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl From<OperandError> for EmulateError {
    fn from(e: OperandError) -> Self {
        Self::Operand(e)
    }
}

impl From<ParseError> for EmulateError {
    fn from(e: ParseError) -> Self {
        Self::Parse(e)
    }
}

impl From<RunError> for EmulateError {
    fn from(e: RunError) -> Self {
        Self::Run(e)
    }
}

impl From<MemoryError> for EmulateError {
    fn from(e: MemoryError) -> Self {
        Self::Memory(e)
    }
}

/// Runs all launches of `kernel`, emitted by `plan`, on `inputs`. The report is of all of them: findings in order, counters by the lines
/// of the one text, times and blocks summed.
///
/// The matrices lie at addresses that are multiples of exactly what the problem promises, each in an allocation of its own that begins
/// and ends with it. The workspace is never written before the kernels run: reading it then is a finding with
/// [`Options::undefined_global`], and otherwise gives NaN.
///
/// # Errors
///
/// The plan's refusal of the problem, a matrix that is not what the problem says, or the emulator's of the text or the launch. What the
/// kernel does wrong while it runs is a finding of the report, not an error.
pub fn emulate(
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    options: &Options,
) -> Result<EmulatedRun, EmulateError> {
    inputs.fit(problem, plan.data_type())?;
    let Some(launch) = plan.launch(problem)? else {
        return Ok(EmulatedRun {
            c: inputs.c.clone(),
            report: None,
            accesses: Vec::new(),
        });
    };
    let module = Module::parse(&kernel.ptx)?;
    let mut memory = GlobalMemory::new();
    let addresses = place(&mut memory, &launch, problem, inputs, options)?;
    let mut runs: Vec<(&str, Report)> = Vec::new();
    for step in launch.sequence() {
        let config = ptx_emulator::Launch {
            grid: step.grid,
            block: step.block,
            cluster: step.cluster,
            dynamic_shared: step.shared_bytes,
            args: arguments(step, &addresses),
        };
        let report = run(&module, &step.kernel, &config, &mut memory, options)?;
        runs.push((&step.kernel, report));
    }
    let report = merged(runs);
    let bytes = memory.read(addresses.c, inputs.c.bytes.len())?;
    let accesses = kernel
        .proof
        .accesses
        .iter()
        .map(|access| {
            let lines = kernel.lines_of(&access.access);
            let counted = report.counters.instructions.iter();
            let counted = counted.filter(|i| lines.contains(&(i.line as usize)) && i.warps > 0);
            let wavefronts = counted.fold(None, |range: Option<(u32, u32)>, i| {
                let (lo, hi) = range.unwrap_or((u32::MAX, 0));
                Some((lo.min(i.min_wavefronts), hi.max(i.max_wavefronts)))
            });
            EmulatedAccess {
                access: access.access.clone(),
                wavefronts,
            }
        })
        .collect();
    Ok(EmulatedRun {
        c: Matrix {
            bytes,
            ..inputs.c.clone()
        },
        report: Some(report),
        accesses,
    })
}

/// Allocates the matrices, the bias and the workspace. The emulator's allocations are aligned to what is asked for and no more.
fn place(
    memory: &mut GlobalMemory,
    launch: &Launch,
    problem: &Gemm,
    inputs: &Inputs,
    options: &Options,
) -> Result<Addresses, MemoryError> {
    let mut placed = [0; 4];
    for (slot, (bytes, alignment)) in placed.iter_mut().zip(operands(problem, inputs)) {
        *slot = memory.alloc(bytes.len() as u64, alignment)?;
        memory.write(*slot, bytes)?;
    }
    let workspace = memory.alloc(launch.workspace_bytes, WORKSPACE_ALIGNMENT)?;
    if !options.undefined_global {
        memory.write(workspace, &vec![0xff; launch.workspace_bytes as usize])?;
    }
    let [a, b, c, bias] = placed;
    Ok(Addresses {
        a,
        b,
        c,
        bias,
        workspace,
    })
}

/// One report of several launches, each with the name of its kernel: an entry of the text that is launched twice counts twice.
fn merged(runs: Vec<(&str, Report)>) -> Report {
    let mut all = Report {
        findings: Vec::new(),
        total_findings: 0,
        counters: Counters::default(),
        blocks: 0,
        wall: Duration::ZERO,
    };
    // Where the instructions of each kernel begin.
    let mut starts: HashMap<&str, usize> = HashMap::new();
    for (kernel, report) in runs {
        all.findings.extend(report.findings);
        all.total_findings += report.total_findings;
        all.blocks += report.blocks;
        all.wall += report.wall;
        let (sum, one) = (&mut all.counters, report.counters);
        sum.warp_instructions += one.warp_instructions;
        sum.lane_instructions += one.lane_instructions;
        sum.wavefronts += one.wavefronts;
        sum.ideal_wavefronts += one.ideal_wavefronts;
        let Some(&start) = starts.get(kernel) else {
            starts.insert(kernel, sum.instructions.len());
            sum.instructions.extend(one.instructions);
            continue;
        };
        for (sum, one) in sum.instructions[start..].iter_mut().zip(one.instructions) {
            add(sum, &one);
        }
    }
    all
}

/// Adds the counts of an instruction in another launch.
fn add(sum: &mut InstructionCounter, one: &InstructionCounter) {
    if one.warps > 0 {
        (sum.min_wavefronts, sum.max_wavefronts) = if sum.warps > 0 {
            (
                sum.min_wavefronts.min(one.min_wavefronts),
                sum.max_wavefronts.max(one.max_wavefronts),
            )
        } else {
            (one.min_wavefronts, one.max_wavefronts)
        };
    }
    sum.warps += one.warps;
    sum.lanes += one.lanes;
    sum.wavefronts += one.wavefronts;
    sum.ideal_wavefronts += one.ideal_wavefronts;
}

fn arguments(launch: &Launch, addresses: &Addresses) -> Vec<Arg> {
    launch
        .arguments
        .iter()
        .map(|argument| match (argument.value, argument.kind) {
            (ArgumentValue::Int(v), ParamKind::U64) => Arg::U64(v),
            (ArgumentValue::Int(v), _) => Arg::U32(v as u32),
            (ArgumentValue::Float(v), ParamKind::F64) => Arg::F64(v),
            (ArgumentValue::Float(v), ParamKind::S32) => Arg::S32(v as i32),
            (ArgumentValue::Float(v), _) => Arg::F32(v as f32),
            (pointer, _) => Arg::Ptr(addresses.of(pointer).unwrap_or_default()),
        })
        .collect()
}
