//! A plan on the emulator: the emitted text, its launches in order, and what the emulator counted.

use std::fmt;

use ptx_emulator::{MemoryError, Options, ParseError, Report};
use tilewright_kernels::gemm::{Emitted, Gemm, PlanError, Specialized};

use super::run::bind::bind;
use super::run::on_emulator;
use super::{ArgError, GemmKernel, Inputs, Matrix, OperandError, RunError, Runnable};

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
    Run(ptx_emulator::RunError),
    /// The operands do not fit the emulator's memory.
    Memory(MemoryError),
    /// An operand that the kernel's launches do not take.
    Arg(ArgError),
    /// The launches of the plan do not go together.
    Refused(String),
}

impl fmt::Display for EmulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
            Self::Parse(e) => write!(f, "the emulator can't read the kernel: {e}"),
            Self::Run(e) => write!(f, "the emulator can't run the kernel: {e}"),
            Self::Memory(e) => write!(f, "the emulator's memory: {e}"),
            Self::Arg(e) => e.fmt(f),
            Self::Refused(reason) => f.write_str(reason),
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

impl From<RunError> for EmulateError {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Plan(e) => Self::Plan(e),
            RunError::Parse(e) => Self::Parse(e),
            RunError::Emulator(e) => Self::Run(e),
            RunError::Memory(e) => Self::Memory(e),
            RunError::Arg(e) => Self::Arg(e),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// Runs all launches of `kernel`, emitted by `plan`, on `inputs`. The report is of all of them: findings in order, counters by the lines
/// of the one text, times and blocks summed. [`run`](super::run()) with a [`GemmKernel`] is the same on any device.
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
    plan: &Specialized,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    options: &Options,
) -> Result<EmulatedRun, EmulateError> {
    inputs.fit(problem, plan.data_type)?;
    let kernel = GemmKernel::emitted(plan, kernel, problem)?;
    let bound = bind(&kernel, kernel.args(inputs))?;
    if bound.steps.is_empty() {
        return Ok(EmulatedRun {
            c: inputs.c.clone(),
            report: None,
            accesses: Vec::new(),
        });
    }
    let mut run = on_emulator::emulate(kernel.ptx(), &bound, options)?;
    let (accesses, _) = on_emulator::accesses(&kernel, &run.report);
    let accesses = accesses.into_iter().map(|counted| EmulatedAccess {
        access: counted.proof.access,
        wavefronts: counted.wavefronts,
    });
    Ok(EmulatedRun {
        c: Matrix {
            bytes: run.buffers.swap_remove(GemmKernel::C),
            ..inputs.c.clone()
        },
        report: Some(run.report),
        accesses: accesses.collect(),
    })
}
