//! What plans share that have one kernel for all problems: those of maxas, of the HD 7970 walk-through and of the R700.
//!
//! Their kernels take operands as they lie, vectors where they are aligned and single elements elsewhere. So nothing adapts them: a problem is served or
//! it is not, and its launch is one kernel whose parameters are always the same.
//!
//! ```text
//! A B C, pointers of the epilogue's inputs | m n k lda ldb ldc | α β, or the epilogue's numbers
//! ```

use std::fmt;
use std::sync::Arc;

use layout_codegen::Arch;
use layout_codegen::ir::{Element, Entry, ParamKind};

use super::epilogue::{self, Finish, Linear, given};
use super::fused::Family;
use super::{
    DataType, Epilogue, Gemm, LIMIT, Launch, Operands, Plan, PlanError, ProblemError, Schedule,
};

/// A plan of one kernel.
pub(crate) trait OneKernel: Plan + fmt::Debug + Copy + 'static {
    /// The kernel with an epilogue.
    fn kernel(&self, finish: &dyn Finish, operands: Operands) -> Result<Entry, PlanError>;

    /// Blocks along x, y and z for a problem that is not empty.
    fn grid(&self, problem: &Gemm) -> Result<[u64; 3], PlanError>;

    /// The epilogue of the plan as it is listed: α·sum + β·C.
    fn linear(&self) -> Linear {
        let data_type = self.data_type();
        Linear::new(Epilogue::default(), data_type.result(), data_type)
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

fn unsupported(plan: &dyn Plan, what: impl Into<String>, instead: &str) -> PlanError {
    PlanError::Unsupported {
        plan: plan.name(),
        what: what.into(),
        instead: instead.to_owned(),
    }
}

/// The problem asks for nothing but a product of matrices of the plan's type, with C of the epilogue's type.
fn serves(plan: &dyn Plan, finish: &dyn Finish, problem: &Gemm) -> Result<(), PlanError> {
    let data_type = plan.data_type();
    problem.placed(data_type)?;
    let instead = match data_type {
        DataType::F64 => "leave it out, or take an mma-f64 plan",
        _ => {
            "leave it out, or take a plan with cp.async: sgemm-128x128x16 and others, for sm_80 and later"
        }
    };
    let result = problem.result(data_type);
    if result != output(data_type, finish) {
        return Err(unsupported(plan, format!("C in {result}"), instead));
    }
    if problem.epilogue != Epilogue::default() {
        return Err(unsupported(plan, "a bias or an activation", instead));
    }
    if problem.batch.count != 1 {
        return Err(unsupported(plan, "batches", instead));
    }
    Ok(())
}

impl<P: OneKernel> Family for P {
    fn entry_name_with(&self, finish: &dyn Finish, operands: Operands) -> String {
        let own = finish.name();
        let end = if own.is_empty() { "" } else { "_" };
        format!("{}_{operands}{end}{own}", self.name().replace('-', "_"))
    }

    fn entries_with(
        &self,
        finish: &dyn Finish,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError> {
        if output(self.data_type(), finish) == Element::Bf16 && arch < Arch(80) {
            let instead = "take C in f16 or f32, or sm_80";
            return Err(unsupported(self, "C in bf16", instead));
        }
        Ok(vec![self.kernel(finish, operands)?])
    }

    fn adapt_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
        schedule: Schedule,
    ) -> Result<Arc<dyn Family>, PlanError> {
        serves(self, finish, problem)?;
        if schedule != Schedule::default() {
            return Err(unsupported(
                self,
                "split sums or packed operands",
                "leave both out; it takes operands as they lie",
            ));
        }
        Ok(Arc::new(*self))
    }

    fn launch_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
    ) -> Result<Option<Launch>, PlanError> {
        problem.validate(LIMIT)?;
        serves(self, finish, problem)?;
        let single = self.data_type().scalar() == Element::F32;
        for (name, value) in [("alpha", problem.alpha), ("beta", problem.beta)] {
            if single && !(value as f32).is_finite() {
                return Err(ProblemError::NotFinite(name).into());
            }
        }
        if problem.m == 0 || problem.n == 0 {
            return Ok(None);
        }
        let grid = self.grid(problem)?;
        let inputs = given(finish, problem);
        let parameters = parameters(self.data_type(), finish);
        let mut launch = Launch::single(
            self.entry_name_with(finish, problem.operands),
            grid.map(|v| v as u32),
            self.threads(),
            0,
            Launch::arguments(problem, &inputs, parameters, |_| None),
        );
        launch.inputs = inputs;
        Ok(Some(launch))
    }
}
