//! What kernels of the sources share, those of maxas, of the HD 7970 walk-through and of the R700: one kernel serves all problems.
//!
//! They take operands as they lie, vectors where they are aligned and single elements elsewhere. So nothing adapts them: a problem is served or
//! it is not, and its launch is one kernel whose parameters are always the same.
//!
//! ```text
//! A B C, pointers of the epilogue's inputs | m n k lda ldb ldc | α β, or the epilogue's numbers
//! ```

use layout_codegen::Arch;
use layout_codegen::ir::{Element, Entry, ParamKind};

use super::epilogue::{self, Finish, given};
use super::{
    DataType, Epilogue, Gemm, LIMIT, Launch, NamedLayout, Obligation, Operands, PlanError,
    ProblemError, Specialized,
};

/// A kernel that serves all problems.
pub(crate) trait OneKernel {
    /// Its layouts.
    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError>;

    /// What holds of its layouts.
    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError>;

    /// The kernel by this name, with an epilogue.
    fn entry(
        &self,
        name: &str,
        finish: &dyn Finish,
        operands: Operands,
    ) -> Result<Entry, PlanError>;

    /// What its source reports of its main loop.
    fn source_mix(&self) -> Option<(&'static str, f64)> {
        None
    }
}

/// The kernel's parameters, in order.
fn parameters(data_type: DataType, finish: &dyn Finish) -> Vec<(String, ParamKind)> {
    let named = |kind| move |name: &str| (name.to_owned(), kind);
    let pointers = ["A", "B", "C"].map(named(ParamKind::Pointer)).into_iter();
    let sizes = ["m", "n", "k", "lda", "ldb", "ldc"].map(named(ParamKind::U32));
    let scalar = finish.computes_in(data_type);
    pointers
        .chain(epilogue::pointers(finish))
        .chain(sizes)
        .chain(epilogue::values(finish, scalar))
        .collect()
}

/// The type of C.
pub(crate) fn output(data_type: DataType, finish: &dyn Finish) -> Element {
    finish.output().unwrap_or(data_type.result())
}

/// The problem is one product of matrices of the kernel's type. C has the epilogue's type, and there is no bias or activation.
pub(super) fn serves(kernel: &Specialized, problem: &Gemm) -> Result<(), PlanError> {
    let data_type = kernel.data_type;
    problem.placed(data_type)?;
    let instead = match data_type {
        DataType::F64 => "leave it out, or take an mma-f64 plan",
        _ => {
            "leave it out, or take a plan with cp.async: sgemm-128x128x16 and others, for sm_80 and later"
        }
    };
    let result = problem.result(data_type);
    if result != output(data_type, kernel.finish()) {
        return Err(kernel.unsupported(format!("C in {result}"), instead));
    }
    if problem.epilogue != Epilogue::default() {
        return Err(kernel.unsupported("a bias or an activation", instead));
    }
    if problem.batch.count != 1 {
        return Err(kernel.unsupported("batches", instead));
    }
    Ok(())
}

pub(super) fn entries(
    one: &dyn OneKernel,
    kernel: &Specialized,
    operands: Operands,
    arch: Arch,
) -> Result<Vec<Entry>, PlanError> {
    let finish = kernel.finish();
    if output(kernel.data_type, finish) == Element::Bf16 && arch < Arch(80) {
        let instead = "take C in f16 or f32, or sm_80";
        return Err(kernel.unsupported("C in bf16", instead));
    }
    let name = kernel.entry_name(operands);
    Ok(vec![one.entry(&name, finish, operands)?])
}

pub(super) fn launched(kernel: &Specialized, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
    problem.validate(LIMIT)?;
    serves(kernel, problem)?;
    let single = kernel.data_type.scalar() == Element::F32;
    for (name, value) in [("alpha", problem.alpha), ("beta", problem.beta)] {
        if single && !(value as f32).is_finite() {
            return Err(ProblemError::NotFinite(name).into());
        }
    }
    if problem.m == 0 || problem.n == 0 {
        return Ok(None);
    }
    let [tm, tn, _] = kernel.tile().map(u64::from);
    let grid = kernel.tiles().grid([problem.m, problem.n], [tm, tn], 1)?;
    let inputs = given(kernel.finish(), problem);
    let parameters = parameters(kernel.data_type, kernel.finish());
    let mut launch = Launch::single(
        kernel.entry_name(problem.operands),
        grid.map(|v| v as u32),
        kernel.threads(),
        0,
        Launch::arguments(problem, &inputs, parameters, |_| None),
    );
    launch.inputs = inputs;
    Ok(Some(launch))
}
