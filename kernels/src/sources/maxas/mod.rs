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

use layout_codegen::Arch;
use layout_codegen::ir::Entry;

use crate::gemm::epilogue::{Finish, Function, check};
use crate::gemm::fused::Family;
use crate::gemm::obligation::{fetches_what_is_needed, one_to_one};
use crate::gemm::one_kernel::OneKernel;
use crate::gemm::{
    Anatomy, DataType, Form, FusedPlan, Gemm, Launch, NamedLayout, Obligation, Operands, Plan,
    PlanError, Schedule, Trans, Turns, Units,
};
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

impl SgemmPlan {
    /// This plan with a function of your own as its epilogue, in place of α and β. It is used like
    /// [`MmaPlan::with_epilogue`](crate::gemm::mma_sync::MmaPlan::with_epilogue), but each fragment is one element of C.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use tilewright_kernels::gemm::epilogue::Function;
    /// use tilewright_kernels::sources::maxas::SgemmPlan;
    /// use tilewright_kernels::gemm::{Operands, Plan};
    /// use layout_codegen::ir::Element;
    ///
    /// // The sum and a residual, stored as f16.
    /// let residual = Function::new("residual", |k, c| {
    ///     let residual = c.matrix::<f32>(k, "residual")?;
    ///     for (j, (sum, more)) in c.values(k)?.into_iter().zip(residual).enumerate() {
    ///         let sum = sum.add(k, more);
    ///         c.set(k, j, sum)?;
    ///     }
    ///     Ok(())
    /// })
    /// .matrix("residual", Element::F32)
    /// .output(Element::F16);
    /// let plan = SgemmPlan::MAXAS_128.with_epilogue(residual)?;
    /// assert_eq!(plan.emit(Operands::ALL[0], Arch(75))?.kernel, "sgemm_maxas_128_nn_residual");
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Epilogue`] for names that are not letters, digits and underscores, or are used twice, and for types that are not converted.
    pub fn with_epilogue(self, function: Function) -> Result<FusedPlan, PlanError> {
        check(&function, DataType::F32)?;
        Ok(FusedPlan::new(self, function))
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
            turns: Turns::One,
            form: Form::Plain,
            cluster: (1, 1),
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
            claims.push(fetches_what_is_needed(read, &maps.fragment_read(side)?)?);
        }
        claims.push(one_to_one(
            "each element of C has exactly one accumulator",
            &maps.accumulators()?.into(),
            w * w,
        )?);
        Ok(claims)
    }

    fn entry_name(&self, operands: Operands) -> String {
        self.entry_name_with(&self.linear(), operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.entries_with(&self.linear(), operands, arch)
    }

    /// None: its stages are declared in the kernel.
    fn shared_bytes(&self, _: Operands) -> Result<u32, PlanError> {
        Ok(0)
    }

    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        self.adapt_with(&self.linear(), problem, schedule)?;
        Ok(Box::new(*self))
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.launch_with(&self.linear(), problem)
    }
}

impl OneKernel for SgemmPlan {
    fn kernel(&self, finish: &dyn Finish, operands: Operands) -> Result<Entry, PlanError> {
        kernel::entry(*self, finish, operands)
    }

    fn grid(&self, problem: &Gemm) -> Result<[u64; 3], PlanError> {
        let tile = u64::from(self.tile);
        let (x, y) = (problem.n.div_ceil(tile), problem.m.div_ceil(tile));
        Ok([x, y.min(GRID_Y), y.div_ceil(GRID_Y)])
    }
}
