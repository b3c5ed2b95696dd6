//! SGEMM by the maxas maps: `sgemm-maxas-64` and `sgemm-maxas-128`.
//!
//! The maps are those of the maxas SGEMM walk-through (NervanaSystems/maxas, wiki): 8×8 elements of C a thread as four 4×4 blocks,
//! a k step of 8, shared memory doubled by one exclusive or, and lane maps chosen so that the pair rule of 16-byte loads
//! halves the shared-memory traffic. There they are bit formulas; here each is a layout made by composition in [`maps`],
//! and the kernel has no other source of addresses.
//!
//! maxas is column-major; our operands are row-major, which is the same computation of Cᵀ. So the operand along x (columns of
//! C, contiguous) is B, and the operand along y (rows of C) is A.

mod kernel;
pub mod maps;

use std::fmt;
use std::sync::Arc;

use crate::Arch;
use crate::gemm::epilogue::{Finish, Linear, check, given};
use crate::gemm::fused::Family;
use crate::gemm::obligation::one_to_one;
use crate::gemm::{
    Anatomy, DataType, Epilogue, FusedPlan, Gemm, LIMIT, Launch, NamedLayout, Obligation, Operands,
    Plan, PlanError, ProblemError, Refusal, Schedule, Trans, Units,
};
use crate::ir::{Element, Entry};
use maps::{Maps, Side};

/// Blocks along the y axis of a grid; more tiles go to the z axis.
const GRID_Y: u64 = 65_535;

/// One of the two plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SgemmPlan {
    /// Rows and columns of C that a block computes: 64 or 128.
    tile: u32,
}

impl SgemmPlan {
    /// 64 threads, 64×64.
    pub const MAXAS_64: Self = Self { tile: 64 };
    /// 256 threads, 128×128.
    pub const MAXAS_128: Self = Self { tile: 128 };
    /// Both plans.
    pub const ALL: [Self; 2] = [Self::MAXAS_64, Self::MAXAS_128];

    /// The plan's name.
    pub fn label(self) -> &'static str {
        if self.tile == 64 {
            "sgemm-maxas-64"
        } else {
            "sgemm-maxas-128"
        }
    }

    /// The maps of this plan.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    pub fn maps(self) -> Result<Maps, PlanError> {
        Ok(Maps::new(self.tile.into())?)
    }
}

impl fmt::Display for SgemmPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The sides of a product: x is B, y is A. An operand is "along" its side if that side's index is contiguous in memory.
fn sides(operands: Operands) -> [(Side, bool); 2] {
    [
        (Side::X, operands.b == Trans::N),
        (Side::Y, operands.a == Trans::T),
    ]
}

/// The type of C.
fn output(finish: &dyn Finish) -> Element {
    finish.output().unwrap_or(Element::F32)
}

impl SgemmPlan {
    fn unsupported(self, what: impl Into<String>, instead: &str) -> PlanError {
        PlanError::Unsupported {
            plan: self.name(),
            what: what.into(),
            instead: instead.to_owned(),
        }
    }

    /// The epilogue of the plan as it is listed: α·sum + β·C.
    fn linear() -> Linear {
        Linear::new(Epilogue::default(), Element::F32, DataType::F32)
    }

    /// This plan with a function of your own as its epilogue, in place of α and β. It is used like
    /// [`MmaPlan::with_epilogue`](super::mma_sync::MmaPlan::with_epilogue), but each fragment is one element of C.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::gemm::epilogue::Function;
    /// use layout_codegen::gemm::simt::SgemmPlan;
    /// use layout_codegen::gemm::{Operands, Plan};
    /// use layout_codegen::ir::{Binary, Element};
    ///
    /// // The sum and a residual, stored as f16.
    /// let residual = Function::new("residual", |k, c| {
    ///     let residual = c.matrix(k, "residual")?;
    ///     k.binary(Binary::Add, c.ty(), c.values()[0], c.values()[0], residual[0]);
    ///     Ok(())
    /// })
    /// .matrix("residual", Element::F32)
    /// .output(Element::F16);
    /// let plan = SgemmPlan::MAXAS_128.with_epilogue(residual)?;
    /// assert_eq!(plan.emit(Operands::ALL[0], Arch(75))?.kernel, "sgemm_maxas_128_nn_residual");
    /// # Ok::<(), layout_codegen::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Epilogue`] for names that are not letters, digits and underscores, or are used twice, and for types that are not converted.
    pub fn with_epilogue(self, finish: impl Finish + 'static) -> Result<FusedPlan, PlanError> {
        check(&finish, DataType::F32)?;
        Ok(FusedPlan::new(self, finish))
    }

    /// The problem asks for nothing but a product of f32 matrices, with C of the epilogue's type.
    fn serves(self, finish: &dyn Finish, problem: &Gemm) -> Result<(), PlanError> {
        problem.placed(DataType::F32)?;
        let instead = "leave it out, or take a plan with cp.async: sgemm-128x128x16 and others, for sm_80 and later";
        let result = problem.result(DataType::F32);
        if result != output(finish) {
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

impl Plan for SgemmPlan {
    fn name(&self) -> String {
        self.label().to_owned()
    }

    fn data_type(&self) -> DataType {
        DataType::F32
    }

    fn min_arch(&self) -> Arch {
        Arch(75)
    }

    fn tile(&self) -> (u32, u32, u32) {
        (self.tile, self.tile, maps::K_STEP as u32)
    }

    fn threads(&self) -> u32 {
        self.tile * self.tile / 64
    }

    fn anatomy(&self) -> Anatomy {
        // As square as can be: of these kernels the model of time needs the number of warps, not their arrangement.
        let warps = if self.tile == 64 { (1, 2) } else { (2, 4) };
        Anatomy {
            data_type: DataType::F32,
            units: Units::Fma,
            tile: self.tile(),
            warps,
            stages: 2,
            instruction: (32, 1, 1),
            asynchronous: false,
            group: None,
        }
    }

    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        let maps = self.maps()?;
        let w = self.tile;
        let mut all = vec![NamedLayout {
            name: "quads",
            layout: maps.quads.to_string(),
            meaning: format!(
                "thread -> (x quad, y quad) of its 8x8 elements of C, as x + {}*y",
                w / 8
            ),
        }];
        for (side, along) in sides(operands) {
            let load = maps.load(side, along);
            all.push(NamedLayout {
                name: load.name,
                layout: load.tv.to_string(),
                meaning: format!("(thread of the half block, value) -> element {side} + {w}*k of the tile, {} contiguous in memory", if along { "the tile's side" } else { "k" }),
            });
            all.push(NamedLayout {
                name: load.store_name,
                layout: load.store.to_string(),
                meaning: "(thread, value) -> byte in the stage".to_owned(),
            });
        }
        for (name, layout, meaning) in [
            (
                "readAs",
                maps.read_x,
                "thread -> byte in the x half of the stage, first quad",
            ),
            (
                "readBs",
                maps.read_y,
                "thread -> byte in the y half of the stage, first quad",
            ),
            (
                "writeCs",
                maps.write_c,
                "thread -> byte in the staging rows of C, first quad",
            ),
            (
                "readCs",
                maps.read_c,
                "(thread, (row, half)) -> byte in the staging rows of C",
            ),
            (
                "C",
                maps.c_out,
                "((thread, (row, half)), (pass, half)) -> element x + W*y of the tile of C",
            ),
        ] {
            all.push(NamedLayout {
                name,
                layout: layout.to_string(),
                meaning: meaning.to_owned(),
            });
        }
        Ok(all)
    }

    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        let maps = self.maps()?;
        let w = i64::from(self.tile);
        let mut claims = Vec::new();
        for (side, _) in sides(operands) {
            let read = if side == Side::X { "readAs" } else { "readBs" };
            let name = format!("{read} fetches the elements that the thread's accumulators need");
            let (fetched, needed) = maps.fragment_read(side)?;
            if let Some(i) = (0..fetched.size()).find(|&i| fetched.index(i) != needed.index(i)) {
                let (got, wanted) = (fetched.index(i), needed.index(i));
                let reason = format!("at {i} byte {got} is fetched and byte {wanted} is needed");
                return Err(Refusal {
                    obligation: name,
                    reason,
                }
                .into());
            }
            let evidence = format!("{fetched} = {needed} at all {} coordinates", fetched.size());
            claims.push(Obligation { name, evidence });
        }
        claims.push(one_to_one(
            "each element of C has exactly one accumulator",
            &maps.accumulators()?.into(),
            w * w,
        )?);
        Ok(claims)
    }

    fn entry_name(&self, operands: Operands) -> String {
        self.entry_name_with(&Self::linear(), operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.entries_with(&Self::linear(), operands, arch)
    }

    /// None: its stages are declared in the kernel.
    fn shared_bytes(&self, _: Operands) -> Result<u32, PlanError> {
        Ok(0)
    }

    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        self.adapt_with(&Self::linear(), problem, schedule)?;
        Ok(Box::new(*self))
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.launch_with(&Self::linear(), problem)
    }
}

impl Family for SgemmPlan {
    fn entry_name_with(&self, finish: &dyn Finish, operands: Operands) -> String {
        kernel::entry_name(*self, finish, operands)
    }

    fn entries_with(
        &self,
        finish: &dyn Finish,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError> {
        if output(finish) == Element::Bf16 && arch < Arch(80) {
            let instead = "take C in f16 or f32, or sm_80";
            return Err(self.unsupported("C in bf16", instead));
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
        for (name, value) in [("alpha", problem.alpha), ("beta", problem.beta)] {
            if !(value as f32).is_finite() {
                return Err(ProblemError::NotFinite(name).into());
            }
        }
        if problem.m == 0 || problem.n == 0 {
            return Ok(None);
        }
        let tile = u64::from(self.tile);
        let (x, y) = (problem.n.div_ceil(tile), problem.m.div_ceil(tile));
        let inputs = given(finish, problem);
        let mut launch = Launch::single(
            self.entry_name_with(finish, problem.operands),
            [x as u32, y.min(GRID_Y) as u32, y.div_ceil(GRID_Y) as u32],
            self.threads(),
            0,
            Launch::arguments(problem, &inputs, kernel::parameters(finish), |_| None),
        );
        launch.inputs = inputs;
        Ok(Some(launch))
    }
}
