//! A plan with the function that ends its kernel: the plan's own epilogue, or one of the user's.

use std::ops::Deref;
use std::sync::Arc;

use layout_codegen::Arch;
use layout_codegen::ir::{Element, Entry};

use super::{MmaPlan, kernel};
use crate::gemm::epilogue::{Finish, Function, Linear, Types, check};
use crate::gemm::fused::{Family, FusedPlan};
use crate::gemm::pack::Packing;
use crate::gemm::partial_sums::PartialSums;
use crate::gemm::{Epilogue, Gemm, Launch, Operands, Plan, PlanError, Schedule};

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
            element: self.data_type.operand(),
            pieces: self.variant.pack,
            transposes: self.transposed(operands),
            chained: self.warpgroups,
        }
    }

    /// Its partial sums, if they are split.
    pub(super) fn partial_sums(&self, operands: Operands) -> PartialSums<'_> {
        PartialSums {
            product: self.entry_name(operands),
            store: self.variant.store,
            types: self.types(),
            finish: self.finish,
            scaled: self.plan.is_fma(),
            // Products of warpgroups take so little time that this shows.
            together: if self.warpgroups { 8 } else { 1 },
            chained: self.warpgroups,
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
    pub fn with_epilogue(self, function: Function) -> Result<FusedPlan, PlanError> {
        check(&function, self.data_type)?;
        let mut plan = self;
        plan.variant.epilogue = Epilogue::default();
        if let Some(output) = Finish::output(&function) {
            plan.variant.output = output;
            plan.variant.store = plan.variant.store.min(widest_store(output));
        }
        Ok(FusedPlan::new(plan, function))
    }

    /// This plan with two products of the same A, and a function that makes C of the sums of both: A·B are its
    /// [`values`](crate::gemm::epilogue::Fragment::values), A·B2 its [`second`](crate::gemm::epilogue::Fragment::second).
    ///
    /// B2 has the sizes, the transposition and the leading dimension of B; it is a buffer that the caller gives, the parameter `B2`. A block computes
    /// as many sums as before, half of them of each product: its tile of C is half as wide, so that registers, shared memory and the instructions of the
    /// main loop are those of the plan. A is copied once for both products. There are no batches, split sums or packed operands.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use tilewright_kernels::gemm::epilogue::Function;
    /// use tilewright_kernels::gemm::mma_sync::PLANS;
    /// use tilewright_kernels::gemm::{Gemm, Operands, Plan};
    ///
    /// // C = (A·B) ⊙ (A·B2), element by element.
    /// let bilinear = Function::new("bilinear", |k, c| {
    ///     for (j, (s, t)) in c.values::<f32>(k)?.into_iter().zip(c.second(k)?).enumerate() {
    ///         let product = s.mul(k, t);
    ///         c.set(k, j, product)?;
    ///     }
    ///     Ok(())
    /// });
    /// let plan = PLANS[0].with_dual_epilogue(bilinear)?;
    /// assert_eq!((PLANS[0].tile(), plan.tile()), ((128, 256, 64), (128, 128, 64)));
    /// let nt = Operands::ALL[1];
    /// assert_eq!(plan.emit(nt, Arch(80))?.kernel, "mma_f16_128x128x64_nt_dual_bilinear");
    ///
    /// let launch = plan.launch(&Gemm::packed(256, 512, 64, nt))?.expect("something to do");
    /// let b2 = &launch.inputs[0];
    /// assert_eq!((b2.name.as_str(), b2.columns), ("B2", 512 * 64));
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`MmaPlan::with_epilogue`], and a tile that is too narrow to be halved.
    pub fn with_dual_epilogue(mut self, function: Function) -> Result<FusedPlan, PlanError> {
        if self.form.is_swapped() {
            return Err(self.no_dual_swapped());
        }
        let least = 32 * self.warps.1;
        if self.tile.1 < least {
            return Err(PlanError::Epilogue {
                what: format!(
                    "a dual product halves the {} columns of the tile, and {} warps need {least}: take a wider tile",
                    self.tile.1, self.warps.1
                ),
            });
        }
        if self.variant.products == 1 {
            self.tile.1 /= 2;
            self.variant.products = 2;
        }
        self.with_epilogue(function)
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
