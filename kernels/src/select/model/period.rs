//! The clocks of one step along k, and of storing a tile.

use super::{Bound, Demands, Model, SCHEDULERS, SECTOR, WAVEFRONT};
use crate::gemm::{Bias, DataType, Mainloop};

/// How well the demands of a step overlap: p of their p-norm, which is their sum for 1 and the largest alone for ∞. That of warpgroups; of
/// a ping-pong schedule, which wait for the cache less than their bytes say (half of a tile takes half of its time); and of warps, two for each scheduler.
const OVERLAP_OF_WARPGROUPS: f64 = 3.7;
const OVERLAP_OF_TURNS: f64 = 5.7;
const OVERLAP: f64 = 3.86;

/// Twice the warps overlap 2^0.765 times as well.
const OVERLAP_BY_WARPS: f64 = 0.765;

/// Clocks of TMA for 128 bytes of a box that lie outside of the matrix, which it fills with zeros. Those inside wait for the cache.
const OUTSIDE: f64 = 6.38;

/// The share of that time that is added to the wait for memory, where zeros are a third of a stage or more: one engine brings both (bf16 on an H200, 64×64 tiles:
/// 16×8192×8192 takes 0.0502 ms, 64×8192×8192 0.0431).
const IN_THE_WAY: f64 = 0.4;

/// Slots of plans of warps that are not counted: addresses, waits and branches are two for each that is.
const SLOTS: f64 = 3.08;

/// How much longer slots and wavefronts take where copies are narrower than 16 bytes.
const NARROW: f64 = 1.31;

/// Clocks that a step waits for copies that go through registers, which nothing covers.
const THROUGH_REGISTERS: f64 = 848.0;

/// How much longer products take whose 8-bit floats are widened first.
const WIDENED: f64 = 1.13;

/// Clocks of a step that nothing covers: a barrier, or the two mbarriers of a stage.
const STEP_OF_WARPS: f64 = 8.46;
const STEP_OF_WARPGROUPS: f64 = 10.6;

/// How much longer boxes of TMA are on their way than loads of lanes.
const LATENCY_OF_WARPGROUPS: f64 = 1.45;

/// The share of a step's bytes from memory that competes with its other demands: stages ahead ask for them while others are waited for. All of them bound
/// the whole.
const MEMORY: f64 = 0.977;

/// The share of what is staged and written that a store takes, and clocks for each store of a warp, of plans of warps and of warpgroups: the straight
/// lines are run once, from a cold instruction cache.
const STORE: f64 = 0.16;
const STORE_OF_A_WARP: f64 = 11.3;
const STORE_OF_A_WARPGROUP: f64 = 19.7;

/// Clocks for each narrow store of a warp in a straight line. In 16-bit types, where multiprocessors store several tiles, the instruction cache has lost the line before the next tile needs it: then
/// these are the clocks for one store of each warp of the block.
const STORE_OF_A_NARROW_LINE: f64 = 3.5;
const STORE_OF_A_LONG_LINE: f64 = 87.0;

/// How much longer rows of C take to be written that do not begin with a sector.
const RAGGED: f64 = 3.76;

/// FMA kernels: the share of other demands that one warp a scheduler leaves uncovered, and clocks of a barrier and what is around it.
const EXPOSED: f64 = 0.2;
const STEP: f64 = 40.0;

/// FMA kernels: the share of the schedulers' slots that they fill with many warps a scheduler (register banks and waits take the others), and what one warp
/// a scheduler leaves unfilled; `w` leave a share 1/w of that.
const FMA_REACHED: f64 = 1.1;
const FMA_ALONE: f64 = 0.4;

/// Clocks from a read of fragments to the products of an FMA kernel, which reads one k ahead.
const FMA_LATENCY: f64 = 36.0;

/// The largest of some demands, and whose it is.
fn largest(demands: &[(f64, Bound)]) -> (f64, Bound) {
    demands.iter().fold(
        (0.0, Bound::Issue),
        |most, &d| if d.0 > most.0 { d } else { most },
    )
}

impl Model<'_> {
    /// Warps for each scheduler with `r` blocks on a multiprocessor.
    fn warps_each(&self, r: u64) -> f64 {
        r as f64 * f64::from(self.config.warp_count()) / SCHEDULERS
    }

    /// Clocks from asking for an element in memory until it is there.
    pub(super) fn latency(&self) -> f64 {
        self.machine.latency * self.machine.clock
    }

    /// Clocks that a step takes with `r` blocks on each of `busy` multiprocessors, and what sets its pace.
    pub(super) fn period(&self, (r, busy): (u64, u64), d: &Demands) -> (f64, Bound) {
        if self.config.is_fma() {
            return self.period_of_fma(r, d);
        }
        let (a, blocks, warps) = (&self.config, r as f64, self.warps_each(r));
        // Fewer than four warps leave schedulers without work.
        let alone = warps.min(1.0);
        let [of_a, of_b] = self.operands();
        let [l2_a, l2_b] = [&of_a, &of_b].map(|o| self.l2_clocks(o, busy));
        let l2 = blocks * (l2_a + l2_b);
        let of_latency = match a.mainloop {
            Mainloop::Wgmma(_) => LATENCY_OF_WARPGROUPS,
            _ => 1.0,
        };
        let latency = of_latency * self.latency() / f64::from(a.stages - 1);
        let memory = MEMORY * blocks * self.memory_bytes_of_a_step() * busy as f64
            / (self.machine.memory_bandwidth / self.machine.clock);
        let (math, shared) = (d.math * blocks / alone, d.shared * blocks);
        let slots = d.slots * blocks / alone;
        let mut waits = [
            (l2, Bound::L2),
            (memory, Bound::Memory),
            (latency, Bound::Latency),
        ];
        let (units, overlap, added) = if a.is_wgmma() {
            let inside = self.copied_bytes(&of_a) + self.copied_bytes(&of_b);
            let outside = (f64::from(a.stage_bytes()) - inside).max(0.0);
            let zeros = blocks * outside / WAVEFRONT * OUTSIDE;
            if memory > l2.max(math) && 3.0 * outside > f64::from(a.stage_bytes()) {
                waits[1].0 += IN_THE_WAY * zeros;
            }
            // Products read shared memory themselves.
            let product = if shared > math {
                (shared, Bound::SharedMemory)
            } else {
                (math, Bound::Issue)
            };
            let units = [product, (slots, Bound::Issue), (zeros, Bound::L2)];
            let overlap = if a.parts_of_tile() > 1 {
                OVERLAP_OF_TURNS
            } else {
                OVERLAP_OF_WARPGROUPS
            };
            (units, overlap, STEP_OF_WARPGROUPS)
        } else {
            let width = of_a.width.min(of_b.width);
            let narrow = if width < 16 { NARROW } else { 1.0 };
            let f8 = matches!(a.data_type, DataType::E4m3 | DataType::E5m2);
            let widened = if f8 && self.machine.f8_widened.is_some() {
                WIDENED
            } else {
                1.0
            };
            let units = [
                (math * widened, Bound::Issue),
                (slots * SLOTS * narrow, Bound::Issue),
                (shared * narrow, Bound::SharedMemory),
            ];
            let overlap = OVERLAP * (warps / 2.0).powf(OVERLAP_BY_WARPS);
            let registers = width < 4 || !a.is_asynchronous();
            (
                units,
                overlap.max(1.0),
                STEP_OF_WARPS + if registers { THROUGH_REGISTERS } else { 0.0 },
            )
        };
        let all = [units[0], units[1], units[2], waits[0], waits[1], waits[2]];
        let (most, bound) = largest(&all);
        // Divided by the largest, so that no power overflows.
        let sum: f64 = all.iter().map(|d| (d.0 / most).powf(overlap)).sum();
        (most * sum.powf(1.0 / overlap) + added, bound)
    }

    /// The same of FMA kernels: the largest demand, and a share of the others that few warps leave uncovered.
    fn period_of_fma(&self, r: u64, d: &Demands) -> (f64, Bound) {
        let (blocks, warps) = (r as f64, self.warps_each(r));
        let latency = self.latency() / f64::from(self.config.stages - 1);
        let latency = latency.max(FMA_LATENCY * f64::from(self.config.tile[2]));
        // They issue a product a clock at best, and lose clocks to register banks that other warps fill.
        let slots = d.slots / (FMA_REACHED - FMA_ALONE / warps).clamp(FMA_ALONE, 1.0);
        let demands = [
            (d.math * blocks / warps.min(1.0), Bound::Issue),
            (slots * blocks / warps.min(1.0), Bound::Issue),
            (d.shared * blocks, Bound::SharedMemory),
            (d.l2 * blocks, Bound::L2),
        ];
        let (most, bound) = largest(&demands);
        let sum: f64 = demands.iter().map(|d| d.0).sum();
        let others = (sum - most) * (EXPOSED / warps).min(1.0);
        let (pace, bound) = if latency > most {
            (latency, Bound::Latency)
        } else {
            (most, bound)
        };
        (pace + others + STEP, bound)
    }

    /// Bytes from memory for one step of one block, every element once.
    fn memory_bytes_of_a_step(&self) -> f64 {
        let (p, (rows, cols), (steps, split)) = (self.problem, self.tiles(), self.split());
        let bytes = f64::from(self.config.data_type.bytes());
        let all = (p.m as f64 + p.n as f64) * p.k as f64 * bytes;
        all / (rows as f64 * cols as f64 * split as f64 * steps as f64).max(1.0)
    }

    /// Clocks to store the tiles of `r` blocks.
    pub(super) fn store(&self, r: u64) -> f64 {
        let [m, n, _] = self.config.tile;
        let [a, b] = self.operands();
        let rounded = self.config.is_wgmma()
            && self.problem.beta == 0.0
            && self.split().1 == 1
            && self.result_bytes() < self.sum_bytes();
        let staged_bytes = if rounded {
            self.result_bytes()
        } else {
            self.sum_bytes()
        };
        let staged = f64::from(m * n) * staged_bytes;
        let parts = f64::from(self.config.parts_of_tile());
        let c = parts * a.inside * b.inside * self.written_bytes();
        let staged = 2.0 * staged / WAVEFRONT;
        let written = c / (self.machine.l2_share() / 2.0);
        let of_a_warp = match self.config.mainloop {
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => {
                return r as f64 * (staged + written);
            }
            Mainloop::MmaSync { .. } => STORE_OF_A_WARP,
            Mainloop::Wgmma(_) => self.store_of_a_warpgroup(),
        };
        let bytes_of_c = self.problem.result(self.config.data_type).bytes();
        let pitch = self.problem.ldc.saturating_mul(bytes_of_c.into());
        let in_sectors = self.split().1 > 1 || pitch.is_multiple_of(SECTOR);
        let ragged = if in_sectors { 1.0 } else { RAGGED };
        // Rows of partial sums are aligned.
        let width = if self.split().1 > 1 {
            16
        } else {
            self.problem.widths(self.config.data_type)[2]
        };
        // Lanes store sums of Cᵀ as they hold them: neighbours of a row where B went through registers.
        let sum = self.written_bytes() as u32;
        let width = match self.config {
            a if a.is_through_registers() => width.min(2 * sum),
            a if a.swap_ab => width.min(sum),
            _ => width,
        };
        let stores = f64::from(m * n) * self.written_bytes() / f64::from(32 * width);
        r as f64 * (STORE * (staged + ragged * written) + of_a_warp * stores)
    }

    /// Clocks for each store of a warp, of plans of warpgroups.
    fn store_of_a_warpgroup(&self) -> f64 {
        let width = self.problem.widths(self.config.data_type)[2];
        let straight = self.problem.beta == 0.0
            && self.problem.epilogue.bias == Bias::None
            && self.result_bytes() > 1.0
            && !self.config.swap_ab;
        if width >= 16 || self.split().1 > 1 || !straight {
            return STORE_OF_A_WARPGROUP;
        }
        let (rows, columns) = self.tiles();
        let at_once = self.multiprocessors() * u64::from(self.resident());
        if rows * columns > at_once && self.result_bytes() < self.sum_bytes() {
            let [down, across] = self.config.warps();
            STORE_OF_A_LONG_LINE / f64::from(down * across)
        } else {
            STORE_OF_A_NARROW_LINE
        }
    }

    /// Bytes that the product's kernel moves for an element of C or for one of its partial sums.
    pub(super) fn written_bytes(&self) -> f64 {
        if self.split().1 > 1 {
            self.sum_bytes()
        } else {
            self.result_bytes()
        }
    }
}
