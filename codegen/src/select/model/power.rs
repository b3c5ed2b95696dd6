//! What power allows: a large product of tensor cores takes all that the GPU may have, which then lowers its clock.
//!
//! ```text
//! seconds at the limit = m·n·k · (of a multiply-add) + bytes written to and read from shared memory · (of a byte)
//! ```
//!
//! The two costs are seconds of the power that an H100 of 132 multiprocessors and 700 W has left beside what it takes in any case; one of fewer multiprocessors is taken to have
//! as much for each. A product takes the 4.5-norm of these seconds and those at full clock. At 6144³ in bf16 an
//! H100 had 700 W with each plan, at 1.26 to 1.46 GHz instead of 1.98, and took 456 mJ with 192×192 tiles, 522 with 128×144 ones, whose warpgroups read 1.08 times as much.

use super::{Model, WAVEFRONT};
use crate::gemm::{DataType, Turns, Units};

/// Multiprocessors of the GPU whose power was measured.
const MULTIPROCESSORS: f64 = 132.0;

/// Seconds of a byte through shared memory.
const OF_A_BYTE: f64 = 16e-15;

/// What tiles that are dealt out one by one take beyond those of rectangles of blocks, which share more in the cache: 192×192 tiles took 1.03 times the energy at 6144³ in bf16, and
/// 256×144 ones in 8-bit types 1.08 times what their bytes say.
const DEALT: f64 = 1.08;

/// What products with a factor in registers take beyond others: exchanged ones of tf32 took 3.17 ms at 8192³ (nn) where those from shared memory took 3.13, with B transposed first.
const THROUGH_REGISTERS: f64 = 1.13;

/// The norm that combines the time at full clock with that at the limit of power.
const NORM: f64 = 4.5;

impl Model<'_> {
    /// The time of what takes `seconds` at full clock, of `steps` of all blocks with `shared` wavefronts each.
    pub(super) fn at_its_power(&self, seconds: f64, steps: f64, shared: f64) -> f64 {
        if self.anatomy.units != Units::Warpgroup {
            return seconds;
        }
        let p = self.problem;
        let products = p.m as f64 * p.n as f64 * p.k as f64 * p.batch.count as f64;
        let bytes = steps * shared * WAVEFRONT;
        let mut limit = products * of_a_product(self.anatomy.data_type) + bytes * OF_A_BYTE;
        if self.anatomy.turns == Turns::Dealt {
            limit *= DEALT;
        }
        if self.anatomy.is_through_registers() {
            limit *= THROUGH_REGISTERS;
        }
        limit *= MULTIPROCESSORS / f64::from(self.machine.multiprocessors);
        (seconds.powf(NORM) + limit.powf(NORM)).powf(1.0 / NORM)
    }
}

/// Seconds of a multiply-add: fewer bits of a factor, fewer transistors that switch.
fn of_a_product(data_type: DataType) -> f64 {
    match data_type {
        DataType::Tf32 => 3.09e-15,
        DataType::Bf16 => 1.37e-15,
        DataType::E4m3 | DataType::E5m2 => 0.87e-15,
        DataType::S8 => 0.63e-15,
        _ => 1.68e-15,
    }
}
