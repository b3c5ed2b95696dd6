//! The power limit: a large product of tensor cores draws all the power that the GPU may have, and the GPU lowers its clock.
//!
//! ```text
//! seconds at the limit = m·n·k · (of a multiply-add) + bytes written to and read from shared memory · (of a byte)
//! ```
//!
//! The costs are those of an H100 with 132 multiprocessors and a limit of 700 W; a GPU with fewer multiprocessors is assumed to have as much power for each. The estimate is the 4.5-norm of
//! this time and the time at full clock. At 6144³ in bf16 an H100 drew 700 W with every plan, at 1.26 to 1.46 GHz instead of 1.98. A product took 456 mJ with 192×192 tiles and 522 mJ with
//! 128×144 tiles, whose warpgroups read 1.08 times as many bytes.

use super::{Model, WAVEFRONT};
use crate::gemm::{Config, DataType, Order, Scheduler};

/// Multiprocessors of the GPU whose power was measured.
const MULTIPROCESSORS: f64 = 132.0;

/// Seconds of a byte through shared memory.
const OF_A_BYTE: f64 = 16e-15;

/// The energy of a linear schedule relative to rectangles of blocks, which share more in the cache: 1.03 for 192×192 tiles at 6144³ in bf16, and 1.08 fits those of 8-bit types.
const LINEAR: f64 = 1.08;

/// The energy of products with a factor in registers relative to others. At 8192³ in tf32 products with A and B swapped took 3.62 ms (nt) and 3.17 (nn), and others 3.05 and, with B transposed first, 3.13.
const THROUGH_REGISTERS: f64 = 1.12;

/// The share of the energy that blocks save which stay close to each other, for each byte of an element: more of their requests to the cache arrive together. At 8192³ the cache read 7 % fewer
/// sectors in f16 and 9 % in tf32, and the products took 1.4 % and 3.5 % less time.
const CLOSER: f64 = 0.0105;

/// Stages with which blocks run ahead of each other.
const STAGES: u32 = 4;

/// The norm that combines the time at full clock with that at the power limit.
const NORM: f64 = 4.5;

impl Model<'_> {
    /// Seconds at the power limit of what takes `seconds` at full clock: all blocks take `steps` steps of `shared` wavefronts each.
    pub(super) fn at_its_power(&self, seconds: f64, steps: f64, shared: f64) -> f64 {
        if !self.config.is_wgmma() {
            return seconds;
        }
        let p = self.problem;
        let products = p.m as f64 * p.n as f64 * p.k as f64 * p.batch.count as f64;
        let bytes = steps * shared * WAVEFRONT;
        let mut limit = products * of_a_product(self.config.data_type) + bytes * OF_A_BYTE;
        if self.config.scheduler == Scheduler::Persistent(Order::Linear) {
            limit *= LINEAR;
        }
        if self.config.is_through_registers() {
            limit *= THROUGH_REGISTERS;
        }
        if stays_close(&self.config) {
            limit *= 1.0 - CLOSER * f64::from(self.config.data_type.bytes());
        }
        limit *= MULTIPROCESSORS / f64::from(self.machine.multiprocessors);
        (seconds.powf(NORM) + limit.powf(NORM)).powf(1.0 / NORM)
    }
}

/// Whether a kernel is persistent with so few stages that they stay close to each other.
pub(in crate::select) fn stays_close(config: &Config) -> bool {
    config.is_wgmma() && config.scheduler.is_persistent() && config.stages < STAGES
}

/// Seconds of a multiply-add: narrower factors need less energy.
fn of_a_product(data_type: DataType) -> f64 {
    match data_type {
        DataType::Tf32 => 3.09e-15,
        DataType::Bf16 => 1.37e-15,
        DataType::E4m3 | DataType::E5m2 => 0.87e-15,
        DataType::S8 => 0.63e-15,
        _ => 1.68e-15,
    }
}
