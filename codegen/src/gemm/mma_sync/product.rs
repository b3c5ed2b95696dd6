//! A plan with the function that ends its kernel: the plan's own epilogue, or one of the user's.

use std::ops::Deref;
use std::sync::Arc;

use super::{MmaPlan, kernel};
use crate::Arch;
use crate::gemm::epilogue::{Finish, InputKind, Linear, Types, check};
use crate::gemm::pack::Packing;
use crate::gemm::partial_sums::PartialSums;
use crate::gemm::{
    Anatomy, DataType, Epilogue, Gemm, GivenInput, Launch, NamedLayout, Obligation, Operands, Plan,
    PlanError, Schedule,
};
use crate::ir::{Element, Entry};

/// A plan and how its sums become C.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) plan: MmaPlan,
    pub(super) finish: &'a dyn Finish,
}

impl Deref for Product<'_> {
    type Target = MmaPlan;

    fn deref(&self) -> &MmaPlan {
        &self.plan
    }
}

impl Product<'_> {
    /// The name of the entry that multiplies.
    pub(super) fn entry_name(&self, operands: Operands) -> String {
        let variant = self.variant.suffix(self.data_type);
        let own = self.finish.name();
        let end = if own.is_empty() { "" } else { "_" };
        format!(
            "{}_{operands}{variant}{end}{own}",
            self.name().replace('-', "_")
        )
    }

    /// The types on the way from sums to C.
    pub(super) fn types(&self) -> Types {
        Types {
            sum: self.data_type.scalar(),
            scalar: self.scalar(),
            output: self.variant.output,
            packs: self.arch >= 80,
        }
    }

    /// The type that the epilogue computes in.
    pub(super) fn scalar(&self) -> Element {
        self.finish.computes_in(self.data_type)
    }

    /// What it packs first.
    pub(super) fn packing(&self, operands: Operands) -> Packing {
        Packing {
            product: self.entry_name(operands),
            bytes: self.data_type.bytes(),
            pieces: self.variant.pack,
        }
    }

    /// Its partial sums, if they are split.
    pub(super) fn partial_sums(&self, operands: Operands) -> PartialSums<'_> {
        PartialSums {
            product: self.entry_name(operands),
            store: self.variant.store,
            types: self.types(),
            finish: self.finish,
        }
    }

    /// What the epilogue reads beside the product's own buffers, for a problem; the bias is one of the product's own.
    pub(super) fn given(&self, problem: &Gemm) -> Vec<GivenInput> {
        if self.variant.epilogue != Epilogue::default() {
            return Vec::new();
        }
        let inputs = self.finish.inputs().into_iter();
        inputs
            .filter_map(|input| {
                let element = input.element()?;
                let (rows, columns, alignment) = match input.kind {
                    InputKind::Row(_) => (problem.m, 1, element.bytes()),
                    InputKind::Column(_) => (1, problem.n, element.bytes()),
                    InputKind::Matrix { aligned, .. } => (problem.m, problem.n, aligned),
                    InputKind::Scalar => return None,
                };
                let matrix = matches!(input.kind, InputKind::Matrix { .. });
                Some(GivenInput {
                    leading_dimension: matrix.then(|| input.leading_dimension()),
                    name: input.name,
                    element,
                    rows,
                    columns,
                    alignment,
                })
            })
            .collect()
    }
}

impl MmaPlan {
    /// The epilogue that the plan's variant names.
    pub(super) fn linear(&self) -> Linear {
        Linear::new(self.variant.epilogue, self.variant.output, self.data_type)
    }

    /// This plan with a function of your own as its epilogue, in place of α, β, bias and activation.
    ///
    /// The plan that is returned is used like any other: adapted to a problem, emitted, launched, run. The problem leaves bias and activation out;
    /// its α and β are those of scalars `alpha` and `beta`, if the function declares them, and 1 and 0 otherwise. C has the function's element type, which the
    /// problem names as its output. [`epilogue`](crate::gemm::epilogue) has an example.
    ///
    /// # Errors
    ///
    /// [`PlanError::Epilogue`] for names that are not letters, digits and underscores, or are used twice, and for types that are not converted.
    pub fn with_epilogue(self, finish: impl Finish + 'static) -> Result<FusedPlan, PlanError> {
        check(&finish, self.data_type)?;
        let mut plan = self;
        plan.variant.epilogue = Epilogue::default();
        if let Some(output) = finish.output() {
            plan.variant.output = output;
            plan.variant.store = plan.variant.store.min(widest_store(output));
        }
        let finish = Arc::new(finish);
        Ok(FusedPlan { plan, finish })
    }
}

/// Bytes of the widest store of C: 8 elements are what staging is laid out for.
pub(super) fn widest_store(output: Element) -> i64 {
    (8 * i64::from(output.bytes())).min(16)
}

/// A plan whose epilogue is a function of the user's: what [`MmaPlan::with_epilogue`] returns.
#[derive(Clone, Debug)]
pub struct FusedPlan {
    plan: MmaPlan,
    finish: Arc<dyn Finish>,
}

impl FusedPlan {
    fn product(&self) -> Product<'_> {
        Product {
            plan: self.plan,
            finish: &*self.finish,
        }
    }

    /// The problem leaves to the function what is the function's.
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
        self.plan.data_type
    }

    fn min_arch(&self) -> Arch {
        self.plan.min_arch()
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
            plan: self.product().adapted(problem, schedule)?,
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
        self.product().entry_name(operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        kernel::entries(self.product(), operands, arch)
    }

    fn ptx_version(&self, arch: Arch) -> &'static str {
        self.plan.ptx_version(arch)
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.leaves(problem)?;
        self.product().launched(problem)
    }
}
