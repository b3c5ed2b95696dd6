//! A plan with the function that ends its kernel: the plan's own epilogue, or one of the user's.

use std::ops::Deref;
use std::sync::Arc;

use super::{MmaPlan, kernel};
use crate::Arch;
use crate::gemm::epilogue::{Finish, Linear, Types, check};
use crate::gemm::fused::{Family, FusedPlan};
use crate::gemm::pack::Packing;
use crate::gemm::partial_sums::PartialSums;
use crate::gemm::{Epilogue, Gemm, Launch, Operands, Plan, PlanError, Schedule};
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
}

impl MmaPlan {
    /// This plan with an epilogue.
    pub(super) fn product<'a>(&self, finish: &'a dyn Finish) -> Product<'a> {
        let plan = *self;
        Product { plan, finish }
    }

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
        Ok(FusedPlan::new(plan, finish))
    }
}

impl Family for MmaPlan {
    fn entry_name_with(&self, finish: &dyn Finish, operands: Operands) -> String {
        self.product(finish).entry_name(operands)
    }

    fn entries_with(
        &self,
        finish: &dyn Finish,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError> {
        kernel::entries(self.product(finish), operands, arch)
    }

    fn adapt_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
        schedule: Schedule,
    ) -> Result<Arc<dyn Family>, PlanError> {
        Ok(Arc::new(self.product(finish).adapted(problem, schedule)?))
    }

    fn launch_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
    ) -> Result<Option<Launch>, PlanError> {
        self.product(finish).launched(problem)
    }
}

/// Bytes of the widest store of C: 8 elements are what staging is laid out for.
pub(super) fn widest_store(output: Element) -> i64 {
    (8 * i64::from(output.bytes())).min(16)
}
