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
//! use tilewright_kernels::gemm::{Config, Operands};
//!
//! let config: Config = "dgemm-4x4".parse()?;
//! assert_eq!((config.tile, config.threads()), ([64, 64, 8], 256));
//! let tn: Operands = "tn".parse()?;
//! let kernel = config.kernel().emit(tn, Arch(75))?;
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

use layout_codegen::ir::Entry;

use crate::gemm::epilogue::Finish;
use crate::gemm::obligation::{fetches_what_is_needed, one_to_one};
use crate::gemm::one_kernel::OneKernel;
use crate::gemm::{
    Config, DataType, Mainloop, NamedLayout, Obligation, Operands, PlanError, Scheduler,
};
use maps::{DEPTH, Maps, STAGES, Staging, TILE};
pub use side::Side;

/// A kernel of outer products.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OuterProduct {
    /// f64, 256 threads with 4×4 sums each.
    Dgemm4x4,
    /// f32, 64 threads with 8×8 sums each, stages by the R700's write map.
    SgemmR700,
}

impl OuterProduct {
    /// Both kernels.
    pub const ALL: [Self; 2] = [Self::Dgemm4x4, Self::SgemmR700];

    /// The type it computes in.
    pub const fn data_type(self) -> DataType {
        match self {
            Self::Dgemm4x4 => DataType::F64,
            Self::SgemmR700 => DataType::F32,
        }
    }

    /// How tiles lie in shared memory.
    const fn staging(self) -> Staging {
        match self {
            Self::Dgemm4x4 => Staging::Rows,
            Self::SgemmR700 => Staging::R700,
        }
    }

    /// Threads of a block.
    pub const fn threads(self) -> u32 {
        let vectors = TILE as u32 / 2 * self.data_type().bytes() / 16;
        vectors * vectors
    }

    /// Its maps.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    pub fn maps(self) -> Result<Maps, PlanError> {
        Maps::new(self.data_type().bytes().into(), self.staging())
    }

    /// Blocks that share a multiprocessor: 512 threads of 128 registers, or 384 of 168.
    const fn blocks(self) -> u32 {
        match self {
            Self::Dgemm4x4 => 2,
            Self::SgemmR700 => 6,
        }
    }
}

impl fmt::Display for OuterProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dgemm4x4 => "dgemm-4x4",
            Self::SgemmR700 => "sgemm-r700-64",
        })
    }
}

impl From<OuterProduct> for Config {
    fn from(kernel: OuterProduct) -> Self {
        Self {
            data_type: kernel.data_type(),
            mainloop: Mainloop::OuterProduct(kernel),
            tile: [TILE as u32, TILE as u32, DEPTH as u32],
            stages: STAGES as u32,
            scheduler: Scheduler::Grid,
            cluster: [1, 1],
            swap_ab: false,
        }
    }
}

impl OneKernel for OuterProduct {
    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        let maps = self.maps()?;
        let q = TILE / 2 / maps.vector;
        let mut all = vec![NamedLayout {
            name: "owners",
            layout: maps.owners.to_string(),
            meaning: format!("thread -> (x vector, y vector) of its sums, as x + {q}*y"),
        }];
        if self.staging() == Staging::R700 {
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
        if self.staging() == Staging::R700 {
            claims.push(r700::fills()?);
        }
        claims.extend(banks::claims(*self, &maps, operands)?);
        Ok(claims)
    }

    fn entry(
        &self,
        name: &str,
        finish: &dyn Finish,
        operands: Operands,
    ) -> Result<Entry, PlanError> {
        kernel::entry(*self, name, finish, operands)
    }

    fn source_mix(&self) -> Option<(&'static str, f64)> {
        (*self == Self::Dgemm4x4).then_some(("the HD 7970 walk-through", 0.57))
    }
}
