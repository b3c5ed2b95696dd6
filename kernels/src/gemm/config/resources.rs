//! What a block asks of a multiprocessor: registers and shared memory, as far as [`select`](crate::select) needs to know them before there is a kernel.
//!
//! Registers are estimated from what a thread must hold: its accumulators, two sets of fragments, and forty for addresses and loops. For
//! `mma-f16-128x128x64` that is 128 + 2·32 + 40 = 232, and the assembler takes 246. Copies narrower than 16 bytes keep more addresses, and
//! 8-bit floats that are widened to f16 keep their wide fragments; both are counted as the assembler does for the 64×64 tiles.
//!
//! ```
//! use tilewright_kernels::gemm::Config;
//!
//! let config: Config = "mma-f16-128x128x64".parse()?;
//! assert_eq!((config.warps(), config.stages, config.instruction()), ([2, 2], 3, [16, 8, 16]));
//! assert_eq!(config.registers(false, false), 232);
//! # Ok::<(), tilewright_kernels::gemm::PlanError>(())
//! ```

use layout_codegen::Arch;
use layout_codegen::ir::instructions::barriers_of_ring;

use super::{Config, Mainloop};

/// Registers of a thread beside accumulators and fragments.
const OTHER_REGISTERS: u32 = 40;

/// The same for FMA kernels, which keep what they copy in registers in place of addresses.
const OTHER_REGISTERS_FMA: u32 = 28;

/// Addresses and pieces of copies narrower than 16 bytes: `mma-f16-64x64x64` takes 154 registers with them and 106 without.
const NARROW_REGISTERS: u32 = 46;

/// Wide fragments of 8-bit floats: `mma-e4m3-64x64x64` takes 171 registers, `mma-s8-64x64x64` 128.
const WIDENED_REGISTERS: u32 = 64;

impl Config {
    /// Bytes of the tiles of A and B in one stage.
    pub fn stage_bytes(&self) -> u32 {
        (self.rows_of_stage() + self.tile[1]) * self.tile[2] * self.data_type.bytes()
    }

    /// Bytes of shared memory, estimated: all stages, or as many of those with whole panels of contiguous columns of B as there is room for. C is staged in the
    /// place of the stages where warps multiply by themselves, and behind them where warpgroups do.
    pub fn shared_bytes(&self) -> u32 {
        let bytes = self.data_type.bytes();
        let columns = self.tile[1];
        let panels = match self.mainloop {
            Mainloop::Wgmma(_) if bytes == 2 => columns.next_multiple_of(128 / bytes) - columns,
            _ => 0,
        };
        let behind = match self.mainloop {
            Mainloop::Wgmma(_) if self.swap_ab => 16 * self.stages,
            Mainloop::Wgmma(_) => {
                let ring = (self.parts_of_tile(), self.overlaps());
                let mbarriers = barriers_of_ring(self.stages.into(), ring) as u32;
                let strip = 16 * 4 * strip_columns(columns, self.warp_count());
                self.warp_count() * strip + 8 * mbarriers
            }
            _ => 0,
        };
        let stage = self.stage_bytes();
        let with_panels = stage + panels * self.tile[2] * bytes;
        let fitting = match panels {
            0 => self.stages,
            _ => self
                .stages
                .min(Arch(90).shared_limit().saturating_sub(behind) / with_panels),
        };
        (self.stages * stage).max(fitting * with_panels) + behind
    }

    /// Registers of a thread, estimated; `narrow` if copies are narrower than 16 bytes, `widened` if 8-bit floats are not multiplied as such.
    pub fn registers(&self, narrow: bool, widened: bool) -> u32 {
        let [wm, wn] = self.warp_tile();
        let sets = 1 + u32::from(self.is_promoted());
        let accumulators = sets * wm * wn / 32 * self.data_type.accumulator().bytes() / 4;
        let (fragments, other) = match self.mainloop {
            // Fragments are read from shared memory.
            Mainloop::Wgmma(_) => (0, OTHER_REGISTERS),
            Mainloop::MmaSync { .. } => {
                let [_, _, k] = self.instruction();
                (
                    (wm + wn) * k * self.data_type.bytes() / 128,
                    OTHER_REGISTERS,
                )
            }
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => {
                let factors: u32 = self.factors_of_a_lane().iter().sum();
                (factors * self.data_type.bytes() / 4, OTHER_REGISTERS_FMA)
            }
        };
        let mut all = accumulators + 2 * fragments + other;
        if narrow && self.is_mma_sync() {
            all += NARROW_REGISTERS;
        }
        if widened {
            all += WIDENED_REGISTERS;
        }
        all.min(255)
    }

    /// Elements of C that a lane has sums of.
    pub fn sums_of_a_lane(&self) -> u32 {
        let [wm, wn] = self.warp_tile();
        wm * wn / 32
    }

    /// Rows and columns of C that a lane of an FMA kernel has sums of: in a grid of 4×8 lanes where copies are asynchronous, else as many of both.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let factors = |name: &str| name.parse().map(|config: Config| config.factors_of_a_lane());
    /// assert_eq!(factors("sgemm-256x128x8")?, [16, 8]);
    /// assert_eq!(factors("sgemm-maxas-128")?, [8, 8]);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn factors_of_a_lane(&self) -> [u32; 2] {
        let [wm, wn] = self.warp_tile();
        if self.is_asynchronous() {
            [wm / 4, wn / 8]
        } else {
            [(wm * wn / 32).isqrt(); 2]
        }
    }

    /// Products that one instruction of a warp adds.
    pub fn products_of_instruction(&self) -> u32 {
        self.instruction().iter().product()
    }
}

/// Columns of sums that a warp of warpgroups stages at once: as many as divide those of the tile, and of three warpgroups fewer, so that there is room for
/// their stages.
pub(crate) fn strip_columns(columns: u32, warps: u32) -> u32 {
    let widest = if warps > 8 { 32 } else { 64 };
    let divides = |width: &u32| columns.is_multiple_of(*width);
    [widest, 32, 16]
        .into_iter()
        .find(divides)
        .unwrap_or(columns)
}
