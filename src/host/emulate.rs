//! A plan on the emulator: the emitted text, the launch contract, and what the emulator counted.

use std::fmt;

use layout_codegen::plan::{ArgumentValue, Emitted, Gemm, Launch, Plan, PlanError};
use layout_codegen::ptx::ParamKind;
use ptx_emulator::{
    Arg, GlobalMemory, MemoryError, Module, Options, ParseError, Report, RunError, run,
};

use super::{Inputs, Matrix};

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

/// Runs `kernel`, emitted by `plan`, on `inputs`.
///
/// # Errors
///
/// The plan's refusal of the problem, or the emulator's of the text or the launch. What the kernel does wrong while it runs is no
/// error but a finding of the report.
pub fn emulate(
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    options: &Options,
) -> Result<EmulatedRun, EmulateError> {
    let Some(launch) = plan.launch(problem)? else {
        return Ok(EmulatedRun {
            c: inputs.c.clone(),
            report: None,
            accesses: Vec::new(),
        });
    };
    let module = Module::parse(&kernel.ptx)?;
    let mut memory = GlobalMemory::new();
    let mut place = |m: &Matrix| -> Result<u64, MemoryError> {
        let address = memory.alloc(m.bytes.len() as u64, 256)?;
        memory.write(address, &m.bytes)?;
        Ok(address)
    };
    let (a, b, c) = (place(&inputs.a)?, place(&inputs.b)?, place(&inputs.c)?);
    let args = arguments(&launch, [a, b, c]);
    let config = ptx_emulator::Launch {
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.shared_bytes,
        args,
    };
    let report = run(&module, &launch.kernel, &config, &mut memory, options)?;
    let bytes = memory.read(c, inputs.c.bytes.len())?;
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

fn arguments(launch: &Launch, [a, b, c]: [u64; 3]) -> Vec<Arg> {
    launch
        .arguments
        .iter()
        .map(|argument| match (argument.value, argument.kind) {
            (ArgumentValue::A, _) => Arg::Ptr(a),
            (ArgumentValue::B, _) => Arg::Ptr(b),
            (ArgumentValue::C, _) => Arg::Ptr(c),
            (ArgumentValue::Bias, _) => Arg::Ptr(0),
            (ArgumentValue::Workspace(offset), _) => Arg::Ptr(offset),
            (ArgumentValue::Int(v), ParamKind::U64) => Arg::U64(v),
            (ArgumentValue::Int(v), _) => Arg::U32(v as u32),
            (ArgumentValue::Float(v), ParamKind::F64) => Arg::F64(v),
            (ArgumentValue::Float(v), ParamKind::S32) => Arg::S32(v as i32),
            (ArgumentValue::Float(v), _) => Arg::F32(v as f32),
        })
        .collect()
}
