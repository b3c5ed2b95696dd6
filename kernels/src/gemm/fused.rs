//! A plan with an epilogue of the user's, for every family that ends its kernels by [`epilogue`](super::epilogue).

use std::fmt;
use std::sync::Arc;

use layout_codegen::Arch;
use layout_codegen::ir::Entry;

use super::epilogue::{Finish, InputKind};
use super::{
    Anatomy, DataType, Epilogue, Gemm, Launch, NamedLayout, Obligation, Operands, Plan, PlanError,
    Schedule,
};

/// What a family makes of an epilogue: the part of its plans that depends on it.
pub(crate) trait Family: Plan + fmt::Debug {
    /// The name of the entry that multiplies.
    fn entry_name_with(&self, finish: &dyn Finish, operands: Operands) -> String;

    /// The representations of its kernels.
    fn entries_with(
        &self,
        finish: &dyn Finish,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError>;

    /// The plan for one problem.
    fn adapt_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
        schedule: Schedule,
    ) -> Result<Arc<dyn Family>, PlanError>;

    /// How a problem is launched.
    fn launch_with(&self, finish: &dyn Finish, problem: &Gemm)
    -> Result<Option<Launch>, PlanError>;
}

/// A plan whose epilogue is a function of the user's: what `with_epilogue` of a family's plan returns.
///
/// ```
/// use tilewright_kernels::gemm::epilogue::Function;
/// use tilewright_kernels::sources::maxas::SgemmPlan;
/// use tilewright_kernels::gemm::{FusedPlan, Plan};
///
/// let same = Function::new("same", |_, _| Ok(()));
/// let plan: FusedPlan = SgemmPlan::MAXAS_64.with_epilogue(same)?;
/// assert_eq!(plan.name(), "sgemm-maxas-64+same");
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FusedPlan {
    plan: Arc<dyn Family>,
    finish: Arc<dyn Finish>,
}

impl FusedPlan {
    /// `plan` with the epilogue `finish`, whose names and types are checked.
    pub(crate) fn new(plan: impl Family + 'static, finish: impl Finish + 'static) -> Self {
        Self {
            plan: Arc::new(plan),
            finish: Arc::new(finish),
        }
    }

    /// Checks that the problem asks for nothing that the function replaces: bias, activation, and factors that it does not read.
    fn leaves(&self, problem: &Gemm) -> Result<(), PlanError> {
        let unsupported = |what: String, instead: &str| {
            Err(PlanError::Unsupported {
                plan: self.name(),
                what,
                instead: instead.to_owned(),
            })
        };
        if problem.epilogue != Epilogue::default() {
            return unsupported(
                "a bias or an activation beside an epilogue of its own".to_owned(),
                "compute it in the epilogue's function",
            );
        }
        let inputs = self.finish.inputs();
        for (name, value, neutral) in [("alpha", problem.alpha, 1.0), ("beta", problem.beta, 0.0)] {
            let changed = (value - neutral).abs() > 0.0;
            if changed && !inputs.iter().any(|i| i.name == name) {
                return unsupported(
                    format!("{name} = {value}, which its epilogue does not read"),
                    &format!("declare a scalar `{name}`, or leave it {neutral}"),
                );
            }
        }
        let matrix = |kind| matches!(kind, InputKind::Matrix { .. });
        if problem.batch.count != 1 && inputs.iter().any(|i| matrix(i.kind)) {
            return unsupported(
                "a batch with an epilogue that reads a matrix".to_owned(),
                "launch the products one by one",
            );
        }
        Ok(())
    }
}

impl Plan for FusedPlan {
    fn name(&self) -> String {
        format!("{}+{}", self.plan.name(), self.finish.name())
    }

    fn data_type(&self) -> DataType {
        self.plan.data_type()
    }

    fn min_arch(&self) -> Arch {
        self.plan.min_arch()
    }

    fn runs_on(&self, arch: Arch) -> bool {
        self.plan.runs_on(arch)
    }

    fn tile(&self) -> (u32, u32, u32) {
        self.plan.tile()
    }

    fn threads(&self) -> u32 {
        self.plan.threads()
    }

    fn anatomy(&self) -> Anatomy {
        self.plan.anatomy()
    }

    fn shared_bytes(&self, operands: Operands) -> Result<u32, PlanError> {
        self.plan.shared_bytes(operands)
    }

    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        self.leaves(problem)?;
        Ok(Box::new(Self {
            plan: self.plan.adapt_with(&*self.finish, problem, schedule)?,
            finish: self.finish.clone(),
        }))
    }

    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        self.plan.layouts(operands)
    }

    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        self.plan.claims(operands)
    }

    fn entry_name(&self, operands: Operands) -> String {
        self.plan.entry_name_with(&*self.finish, operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.plan.entries_with(&*self.finish, operands, arch)
    }

    fn source_mix(&self) -> Option<(&'static str, f64)> {
        self.plan.source_mix()
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.leaves(problem)?;
        self.plan.launch_with(&*self.finish, problem)
    }
}
