//! What the assembler is told, so that it does not spill: blocks that share a multiprocessor, barriers that it may not move reads over, and
//! the version of PTX.

use layout_codegen::Arch;
use layout_core::atoms::Scalar;

use super::super::maps::Maps;
use crate::gemm::{Specialized, TileSchedule};

/// Registers of a multiprocessor of `sm_90`.
pub(super) const REGISTERS: i64 = 65_536;

/// Bytes of shared memory of a multiprocessor of `sm_90`, and those that the system takes of each block.
const SHARED: i64 = 228 << 10;
const SHARED_RESERVED: i64 = 1 << 10;

/// Registers of a thread of a warpgroup beside its sums.
const FEW_REGISTERS: i64 = 64;

impl Specialized {
    /// Blocks that share a multiprocessor: as many as registers and shared memory of the smallest architecture allow.
    pub(super) fn blocks_per_sm(&self, maps: &Maps, arch: Arch) -> i64 {
        if self.is_wgmma() {
            // Several blocks share the registers as they are at the start.
            let sums = (1 + i64::from(self.is_promoted())) * self.sums_of_a_thread();
            let registers = self.threads() as i64 * (sums + FEW_REGISTERS);
            let by_shared = SHARED / (self.shared_bytes_of(maps) + SHARED_RESERVED);
            return by_shared.min(REGISTERS / registers).max(1);
        }
        let (wm, wn) = (
            self.tile_of_c().0 / self.warp_grid().0,
            self.tile_of_c().1 / self.warp_grid().1,
        );
        let scalars = i64::from(self.data_type.scalar().bytes()) / 4;
        let accumulators = wm * wn / 32 * scalars * self.variant.products;
        // A multiprocessor has 65,536 registers; f64 fragments take twice the registers of others.
        // 8-bit operands are put together from single bytes where k is not contiguous, and 8-bit floats are widened to f16 where the
        // hardware does not multiply them: both take registers. So do the addresses of narrow copies.
        let bytes = self.data_type.bytes() == 1;
        let narrow = self.variant.copies.iter().any(|&c| c < 16) || self.min_arch().0 < 80;
        if self.is_fma() {
            // 128 registers beside 64 sums: the fragments of a k step are few. But for narrow copies, and for split sums beside so many of them where
            // the assembler is not that of `sm_90` and `sm_100`, 128 do not suffice.
            let narrow = self.variant.copies.iter().any(|&c| c < 16);
            let crowded = accumulators >= 64 && self.partial() && ![90, 100].contains(&arch.0);
            let threads = if accumulators > 64 || narrow || crowded {
                256
            } else {
                512
            };
            return (threads / self.thread_count()).max(1);
        }
        let heavy = accumulators >= 128 || maps.atom.c_type == Scalar::F64 || bytes || narrow;
        // Of few sums of f64 four blocks fit; more of them cover the beginning and the end of short sums.
        let light = maps.atom.c_type == Scalar::F64
            && accumulators <= 32
            && !narrow
            && self.min_arch().0 >= 90;
        let threads = match (heavy && !light, accumulators) {
            (true, _) => 256,
            (false, 64..) => 384,
            (false, _) => 512,
        };
        let by_registers = threads / self.thread_count();
        by_registers.max(1)
    }

    /// A barrier of the warp stands before each product, so that the assembler does not read fragments far ahead of it.
    ///
    /// `sm_90` and `sm_100` have no products of 8-bit floats by `mma.sync`: the assembler widens both factors to f16, and reads so far
    /// ahead that, with two k steps or more a stage, it spills what narrow copies need; on `sm_100` what a batch or split sums need as well.
    pub(super) fn multiplies_one_by_one(&self, arch: Arch) -> bool {
        let narrow = self.variant.copies.iter().any(|&c| c < 4);
        let layers = self.variant.tiles != TileSchedule::Groups;
        self.is_widened()
            && self.depth() > 32
            && match arch.0 {
                90 => narrow,
                100 => narrow || layers,
                _ => false,
            }
    }
}
