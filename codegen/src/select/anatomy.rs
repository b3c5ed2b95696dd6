//! What a block of a plan asks of a multiprocessor: threads, registers, shared memory, and how its tile is cut into warps.
//!
//! A [`Plan`] says its tile and its threads. How the tile is dealt out to warps and how many stages it keeps is known to the families;
//! this module asks them by the plan's name. A plan of a family that it does not know is taken to have square warps and two stages.
//!
//! Registers are estimated from what a thread must hold: its accumulators, two sets of fragments, and forty for addresses and loops. For
//! `mma-f16-128x128x64` that is 128 + 2·32 + 40 = 232, and the assembler takes 246. Copies narrower than 16 bytes keep more addresses, and
//! 8-bit floats that are widened to f16 their wide fragments; both are counted as the assembler does for the 64×64 tiles.

use crate::gemm::simt::SgemmPlan;
use crate::gemm::{DataType, Plan, mma_sync};

/// Registers of a thread beside accumulators and fragments.
const OTHER_REGISTERS: u32 = 40;

/// The same for FMA kernels, which keep what they copy in registers in place of addresses.
const OTHER_REGISTERS_FMA: u32 = 28;

/// Addresses and pieces of copies narrower than 16 bytes: `mma-f16-64x64x64` takes 154 registers with them and 106 without.
const NARROW_REGISTERS: u32 = 46;

/// Wide fragments of 8-bit floats: `mma-e4m3-64x64x64` takes 171 registers, `mma-s8-64x64x64` 128.
const WIDENED_REGISTERS: u32 = 64;

/// What multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Units {
    /// Fused multiply-adds of single threads.
    Fma,
    /// Tensor cores, by `mma.sync`.
    Tensor,
}

/// What a block is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Anatomy {
    /// Its type.
    pub data_type: DataType,
    /// What multiplies.
    pub units: Units,
    /// Rows and columns of C, and the elements along k of a stage.
    pub tile: (u32, u32, u32),
    /// Warps along the rows and the columns.
    pub warps: (u32, u32),
    /// Stages in shared memory.
    pub stages: u32,
    /// The first architecture of the plan.
    pub since: u32,
}

impl Anatomy {
    /// The anatomy of a plan, adapted or not.
    pub fn of(plan: &dyn Plan) -> Self {
        let name = plan.name();
        let known = mma_sync::PLANS
            .iter()
            .find(|p| p.name() == name)
            .map(|p| (p.warps, p.stages));
        let count = (plan.threads() / 32).max(1);
        let fma = SgemmPlan::ALL.iter().any(|p| p.name() == name);
        let (warps, stages) = match known {
            Some(((m, n), stages)) => ((m as u32, n as u32), stages as u32),
            None => (square(count), 2),
        };
        Self {
            data_type: plan.data_type(),
            units: if fma { Units::Fma } else { Units::Tensor },
            tile: plan.tile(),
            warps,
            stages: stages.max(2),
            since: plan.min_arch().0,
        }
    }

    /// Warps of a block.
    pub fn warp_count(&self) -> u32 {
        self.warps.0 * self.warps.1
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        32 * self.warp_count()
    }

    /// Rows and columns of C that a warp computes.
    pub fn warp_tile(&self) -> (u32, u32) {
        (self.tile.0 / self.warps.0, self.tile.1 / self.warps.1)
    }

    /// Bytes of the tiles of A and B in one stage.
    pub fn stage_bytes(&self) -> u32 {
        (self.tile.0 + self.tile.1) * self.tile.2 * self.data_type.bytes()
    }

    /// Bytes of shared memory: all stages. What C is staged through shares their place.
    pub fn shared_bytes(&self) -> u32 {
        self.stages * self.stage_bytes()
    }

    /// Registers of a thread, estimated; `narrow` if copies are narrower than 16 bytes, `widened` if 8-bit floats are not multiplied as such.
    pub fn registers(&self, narrow: bool, widened: bool) -> u32 {
        let (wm, wn) = self.warp_tile();
        let accumulators = wm * wn / 32 * self.data_type.accumulator().bytes() / 4;
        let (fragments, other) = match self.units {
            // Eight of A and eight of B.
            Units::Fma => (16, OTHER_REGISTERS_FMA),
            Units::Tensor => (
                (wm + wn) * self.depth_of_instruction() * self.data_type.bytes() / 128,
                OTHER_REGISTERS,
            ),
        };
        let mut all = accumulators + 2 * fragments + other;
        if narrow && self.units == Units::Tensor {
            all += NARROW_REGISTERS;
        }
        if widened {
            all += WIDENED_REGISTERS;
        }
        all.min(255)
    }

    /// Elements along k that one instruction multiplies.
    pub fn depth_of_instruction(&self) -> u32 {
        match (self.units, self.data_type) {
            (Units::Fma, _) => 1,
            (_, DataType::F64) => {
                if self.since >= 90 {
                    8
                } else {
                    4
                }
            }
            (_, data_type) if self.since < 80 => 16 / data_type.bytes(),
            (_, data_type) => 32 / data_type.bytes(),
        }
    }

    /// Products that one instruction of a warp adds.
    pub fn products_of_instruction(&self) -> u32 {
        match self.units {
            Units::Fma => 32,
            Units::Tensor if self.depth_of_instruction() == 4 => 8 * 8 * 4,
            Units::Tensor => 16 * 8 * self.depth_of_instruction(),
        }
    }
}

/// `count` warps in a grid that is as square as it can be, more of them along the columns.
fn square(count: u32) -> (u32, u32) {
    let rows = (1..=count)
        .take_while(|r| r * r <= count)
        .filter(|r| count.is_multiple_of(*r))
        .last()
        .unwrap_or(1);
    (rows, count / rows)
}
