//! From a problem to its launch, with the plan's own epilogue or another.

use std::sync::Arc;

use super::maps::TILE;
use super::{OuterPlan, kernel, output};
use crate::Arch;
use crate::gemm::epilogue::{Finish, given};
use crate::gemm::fused::Family;
use crate::gemm::raster::Raster;
use crate::gemm::{
    DataType, Epilogue, Gemm, LIMIT, Launch, Operands, Plan, PlanError, ProblemError, Schedule,
};
use crate::ir::{Element, Entry};

impl OuterPlan {
    fn unsupported(self, what: impl Into<String>, instead: impl Into<String>) -> PlanError {
        PlanError::Unsupported {
            plan: self.name(),
            what: what.into(),
            instead: instead.into(),
        }
    }

    /// The problem asks for nothing but a product of matrices of the plan's type, with C of the epilogue's type.
    fn serves(self, finish: &dyn Finish, problem: &Gemm) -> Result<(), PlanError> {
        let data_type = self.data_type();
        problem.placed(data_type)?;
        let instead = match data_type {
            DataType::F64 => "leave it out, or take an mma-f64 plan",
            _ => {
                "leave it out, or take a plan with cp.async: sgemm-128x128x16 and others, for sm_80 and later"
            }
        };
        let result = problem.result(data_type);
        if result != output(self, finish) {
            return Err(self.unsupported(format!("C in {result}"), instead));
        }
        if problem.epilogue != Epilogue::default() {
            return Err(self.unsupported("a bias or an activation", instead));
        }
        if problem.batch.count != 1 {
            return Err(self.unsupported("batches", instead));
        }
        Ok(())
    }
}

impl Family for OuterPlan {
    fn entry_name_with(&self, finish: &dyn Finish, operands: Operands) -> String {
        kernel::entry_name(*self, finish, operands)
    }

    fn entries_with(
        &self,
        finish: &dyn Finish,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError> {
        if output(*self, finish) == Element::Bf16 && arch < Arch(80) {
            return Err(self.unsupported("C in bf16", "take C in f16 or f32, or sm_80"));
        }
        Ok(vec![kernel::entry(*self, finish, operands)?])
    }

    fn adapt_with(
        &self,
        finish: &dyn Finish,
        problem: &Gemm,
        schedule: Schedule,
    ) -> Result<Arc<dyn Family>, PlanError> {
        self.serves(finish, problem)?;
        if schedule != Schedule::default() {
            return Err(self.unsupported(
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
        self.serves(finish, problem)?;
        let single = self.data_type().scalar() == Element::F32;
        for (name, value) in [("alpha", problem.alpha), ("beta", problem.beta)] {
            if single && !(value as f32).is_finite() {
                return Err(ProblemError::NotFinite(name).into());
            }
        }
        if problem.m == 0 || problem.n == 0 {
            return Ok(None);
        }
        let tile = TILE as u64;
        let grid = Raster::Grouped.grid((problem.m, problem.n), (tile, tile), ("batch", 1))?;
        let inputs = given(finish, problem);
        let mut launch = Launch::single(
            self.entry_name_with(finish, problem.operands),
            grid.map(|v| v as u32),
            self.threads(),
            0,
            Launch::arguments(problem, &inputs, kernel::parameters(*self, finish), |_| {
                None
            }),
        );
        launch.inputs = inputs;
        Ok(Some(launch))
    }
}
