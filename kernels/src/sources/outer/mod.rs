//! Products as sums of outer products, by plain instructions: `dgemm-4x4` and `sgemm-r700-64`.
//!
//! Two of the project's sources are kernels for AMD's GPUs, and both are made here of the same few layouts:
//!
//! * `dgemm-4x4` is the DGEMM of the Radeon HD 7970 walk-through, which reads the generated ISA line by line: a thread owns 4×4 doubles of C and
//!   adds the outer product of 4 + 4 values for each k. There 57 % of the loop are fused multiply-adds and loads; of this kernel's loop at least
//!   95 % are ([`mix`](layout_codegen::mix)).
//! * `sgemm-r700-64` stores its tiles in shared memory where the R700's local data share puts what threads write, and reads them by the inverse of
//!   that map ([`r700`]).
//!
//! ```text
//! global -> registers     the next tile, while this one is multiplied
//! registers -> stage      two stages, unrolled
//! stage -> registers      two vectors of 16 bytes a side and k
//! fma                     4×4 sums of f64, 8×8 of f32
//! ```
//!
//! Nothing asks for tensor cores, asynchronous copies or exchanges within a warp, so that any GPU can run these kernels. Both
//! serve all transposes: an operand whose rows run along k is transposed on its way to the stage.
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::sources::outer::OuterPlan;
//! use tilewright_kernels::gemm::{Operands, Plan};
//!
//! let plan = OuterPlan::DGEMM_4X4;
//! assert_eq!((plan.tile(), plan.threads()), ((64, 64, 8), 256));
//! let tn: Operands = "tn".parse()?;
//! let kernel = plan.emit(tn, Arch(75))?;
//! assert_eq!(kernel.kernel, "dgemm_4x4_tn");
//! assert!(kernel.proof.accesses.iter().all(|a| a.wavefronts == a.ideal));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod banks;
mod kernel;
pub mod maps;
pub mod r700;
mod side;
use std::fmt;

use layout_codegen::Arch;
use layout_codegen::ir::Entry;

use crate::gemm::epilogue::{Finish, Function, check};
use crate::gemm::fused::Family;
use crate::gemm::obligation::{fetches_what_is_needed, one_to_one};
use crate::gemm::one_kernel::OneKernel;
use crate::gemm::raster::{GROUP, Raster};
use crate::gemm::{
    Anatomy, DataType, Form, FusedPlan, Gemm, Launch, NamedLayout, Obligation, Operands, Plan,
    PlanError, Schedule, Turns, Units,
};
use maps::{DEPTH, Maps, STAGES, Staging, TILE};
pub use side::Side;

/// A plan of outer products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OuterPlan {
    label: &'static str,
    data_type: DataType,
    staging: Staging,
}

impl OuterPlan {
    /// f64, 256 threads with 4×4 sums each.
    pub const DGEMM_4X4: Self = Self {
        label: "dgemm-4x4",
        data_type: DataType::F64,
        staging: Staging::Rows,
    };
    /// f32, 64 threads with 8×8 sums each, stages by the R700's write map.
    pub const SGEMM_R700_64: Self = Self {
        label: "sgemm-r700-64",
        data_type: DataType::F32,
        staging: Staging::R700,
    };
    /// Both plans.
    pub const ALL: [Self; 2] = [Self::DGEMM_4X4, Self::SGEMM_R700_64];

    /// The plan's name.
    pub fn label(self) -> &'static str {
        self.label
    }

    /// The maps of this plan.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    pub fn maps(self) -> Result<Maps, PlanError> {
        Maps::new(self.data_type.bytes().into(), self.staging)
    }

    /// This plan with a function of your own as its epilogue, in place of α and β. It is used like
    /// [`MmaPlan::with_epilogue`](crate::gemm::mma_sync::MmaPlan::with_epilogue).
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use tilewright_kernels::gemm::epilogue::Function;
    /// use tilewright_kernels::sources::outer::OuterPlan;
    /// use tilewright_kernels::gemm::{Operands, Plan};
    ///
    /// let twice = Function::new("twice", |k, c| {
    ///     for (j, sum) in c.values::<f64>(k)?.into_iter().enumerate() {
    ///         let twice = sum.add(k, sum);
    ///         c.set(k, j, twice)?;
    ///     }
    ///     Ok(())
    /// });
    /// let plan = OuterPlan::DGEMM_4X4.with_epilogue(twice)?;
    /// assert_eq!(plan.emit(Operands::ALL[0], Arch(75))?.kernel, "dgemm_4x4_nn_twice");
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PlanError::Epilogue`] for names that are not letters, digits and underscores, or are used twice, and for types that are not converted.
    pub fn with_epilogue(self, function: Function) -> Result<FusedPlan, PlanError> {
        check(&function, self.data_type)?;
        Ok(FusedPlan::new(self, function))
    }

    /// Blocks that share a multiprocessor: 512 threads of 128 registers, or 384 of 168.
    fn blocks(self) -> u32 {
        match self.staging {
            Staging::Rows => 2,
            Staging::R700 => 6,
        }
    }
}

impl fmt::Display for OuterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)
    }
}

impl Plan for OuterPlan {
    fn name(&self) -> String {
        self.label.to_owned()
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn min_arch(&self) -> Arch {
        Arch(75)
    }

    fn tile(&self) -> (u32, u32, u32) {
        (TILE as u32, TILE as u32, DEPTH as u32)
    }

    fn threads(&self) -> u32 {
        let vectors = TILE / 2 * i64::from(self.data_type.bytes()) / 16;
        (vectors * vectors) as u32
    }

    fn anatomy(&self) -> Anatomy {
        // As square as can be: of FMA kernels the model of time needs the number of warps, not their arrangement.
        let warps = if self.threads() == 64 { (1, 2) } else { (2, 4) };
        Anatomy {
            data_type: self.data_type,
            units: Units::Fma,
            tile: self.tile(),
            warps,
            stages: STAGES as u32,
            instruction: (32, 1, 1),
            asynchronous: false,
            group: Some(GROUP as u32),
            turns: Turns::One,
            form: Form::Plain,
            cluster: (1, 1),
        }
    }

    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        let maps = self.maps()?;
        let q = TILE / 2 / maps.vector;
        let mut all = vec![NamedLayout {
            name: "owners",
            layout: maps.owners.to_string(),
            meaning: format!("thread -> (x vector, y vector) of its sums, as x + {q}*y"),
        }];
        if self.staging == Staging::R700 {
            all.push(NamedLayout {
                name: "r700",
                layout: r700::writes()?.to_string(),
                meaning:
                    "the R700's write map, (thread, vector + 2*operand + 4*stage) -> byte of all stages"
                        .to_owned(),
            });
        }
        all.push(NamedLayout {
            name: "stage",
            layout: maps.stage.to_string(),
            meaning: "(side, k) -> byte in an operand's part of a stage".to_owned(),
        });
        for side in Side::ALL {
            let along = side.is_along(operands);
            let load = maps.load(along);
            let contiguous = if along { "the tile's side" } else { "k" };
            all.push(NamedLayout {
                name: side.load(),
                layout: load.tv.to_string(),
                meaning: format!(
                    "(thread, value) -> element {side} + {TILE}*k of the tile, {contiguous} contiguous in memory"
                ),
            });
            all.push(NamedLayout {
                name: side.store(),
                layout: load.store.to_string(),
                meaning: "(thread, value) -> byte in the operand's part of a stage".to_owned(),
            });
        }
        for side in Side::ALL {
            all.push(NamedLayout {
                name: side.read(),
                layout: maps.reads[side as usize].to_string(),
                meaning: format!("thread -> byte of its first vector of {side}"),
            });
        }
        all.push(NamedLayout {
            name: "C",
            layout: maps.accumulators()?.to_string(),
            meaning: format!(
                "(thread, (element, half) of x, (element, half) of y) -> element x + {TILE}*y of the tile of C"
            ),
        });
        Ok(all)
    }

    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        let maps = self.maps()?;
        let mut claims = Vec::new();
        for side in Side::ALL {
            claims.push(fetches_what_is_needed(
                side.read(),
                &maps.fragment_read(side)?,
            )?);
        }
        claims.push(one_to_one(
            "each element of C has exactly one accumulator",
            &maps.accumulators()?.into(),
            TILE * TILE,
        )?);
        for side in Side::ALL {
            let load = maps.load(side.is_along(operands));
            claims.push(one_to_one(
                &format!("{} brings each element of the tile once", side.load()),
                &load.tv.into(),
                TILE * DEPTH,
            )?);
        }
        if self.staging == Staging::R700 {
            claims.push(r700::fills()?);
        }
        claims.extend(banks::claims(*self, &maps, operands)?);
        Ok(claims)
    }

    fn entry_name(&self, operands: Operands) -> String {
        self.entry_name_with(&self.linear(), operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.entries_with(&self.linear(), operands, arch)
    }

    fn source_mix(&self) -> Option<(&'static str, f64)> {
        (*self == Self::DGEMM_4X4).then_some(("the HD 7970 walk-through", 0.57))
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

impl OneKernel for OuterPlan {
    fn kernel(&self, finish: &dyn Finish, operands: Operands) -> Result<Entry, PlanError> {
        kernel::entry(*self, finish, operands)
    }

    fn grid(&self, problem: &Gemm) -> Result<[u64; 3], PlanError> {
        let tile = TILE as u64;
        let size = (problem.m, problem.n);
        Ok(Raster::Grouped.grid(size, (tile, tile), ("batch", 1))?)
    }
}
