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

use layout_codegen::ir::Entry;

use crate::gemm::epilogue::Finish;
use crate::gemm::obligation::{fetches_what_is_needed, one_to_one};
use crate::gemm::one_kernel::OneKernel;
use crate::gemm::{
    Config, DataType, Mainloop, NamedLayout, Obligation, Operands, PlanError, Scheduler, Trans,
};
use maps::{Maps, Side};

/// One of the two kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Maxas {
    /// Rows and columns of C that a block computes: 64 or 128.
    tile: u32,
}

impl Maxas {
    /// 64 threads, 64×64.
    pub const SGEMM_64: Self = Self { tile: 64 };
    /// 256 threads, 128×128.
    pub const SGEMM_128: Self = Self { tile: 128 };
    /// Both kernels.
    pub const ALL: [Self; 2] = [Self::SGEMM_64, Self::SGEMM_128];

    /// Threads of a block.
    pub const fn threads(self) -> u32 {
        self.tile * self.tile / 64
    }

    /// Its maps.
    ///
    /// # Errors
    ///
    /// An operation of the algebra that refused.
    pub fn maps(self) -> Result<Maps, PlanError> {
        Ok(Maps::new(self.tile.into())?)
    }
}

impl fmt::Display for Maxas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sgemm-maxas-{}", self.tile)
    }
}

impl From<Maxas> for Config {
    fn from(kernel: Maxas) -> Self {
        Self {
            data_type: DataType::F32,
            mainloop: Mainloop::Maxas(kernel),
            tile: [kernel.tile, kernel.tile, maps::K_STEP as u32],
            stages: 2,
            scheduler: Scheduler::Grid,
            cluster: [1, 1],
            swap_ab: false,
        }
    }
}

/// The sides of a product: x is B, y is A. An operand is "along" its side if that side's index is contiguous in memory.
fn sides(operands: Operands) -> [(Side, bool); 2] {
    [
        (Side::X, operands.b == Trans::N),
        (Side::Y, operands.a == Trans::T),
    ]
}

impl OneKernel for Maxas {
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

    fn entry(
        &self,
        name: &str,
        finish: &dyn Finish,
        operands: Operands,
    ) -> Result<Entry, PlanError> {
        kernel::entry(*self, name, finish, operands)
    }
}
