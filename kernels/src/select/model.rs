//! How long a plan will take: an analytic model.
//!
//! # The formula
//!
//! A block multiplies its tile in `steps = ⌈⌈k / depth⌉ / split⌉` steps along k. One step asks four units of the multiprocessor for so
//! many clocks each:
//!
//! | demand | clocks of one step of one block |
//! |---|---|
//! | `math` | 2·M·N·depth / rate of the type; with elements of 8-bit floats / 128 where they are widened first |
//! | `slots` | instructions of all warps / 4: products, reads of fragments, copies, tf32 rounding |
//! | `shared` | wavefronts: bytes copied / 128, and bytes of fragments that all warps read / 128 |
//! | `l2` | bytes copied that are inside the matrices, of what a cluster shares the block's part / (bytes that the cache gives a multiprocessor a clock while all ask) |
//!
//! `r` blocks of a multiprocessor ask for r times as much. Two more demands are bytes from memory, each element once, and the latency of memory divided by
//! the steps that are copied ahead. Demands overlap, but not wholly: together they take their p-norm, with p = 3.7 for products of warpgroups, which one
//! thread issues, 5.7 for those of a ping-pong schedule, and 3.86 · (w/2)^0.765 with `w` warps for each scheduler; FMA kernels take the largest, 0.2 / w of the others, and 40 clocks.
//!
//! ```text
//! period(r) = (math^p + slots^p + shared^p + l2^p + (0.98 memory)^p + latency^p)^(1/p) + 8 (warps) or 11 clocks (warpgroups)
//! ```
//!
//! Registers, threads and shared memory say how many blocks `R` fit on a multiprocessor. Full waves run R blocks on each and the last one
//! ⌈rest / multiprocessors⌉; each wave begins, and stores its tiles at its end:
//!
//! ```text
//! clocks  = Σ waves: steps · period + begin + store + 1710 between them
//! store   = r · (0.16 · (2·accumulator bytes / 128 + bytes of C / (half of what the cache gives)) + 11.3 · stores of all warps, 3.5 to 22 of warpgroups)
//! busy    = ((clocks / clock)^4.5 + (seconds at the power limit)^4.5)^(1/4.5), of products of warpgroups
//! kernel  = launch + max(busy, bytes from and to memory / bandwidth)
//! seconds = kernel + sum of partial sums (split > 1) + copies of operands (pack), each with its share of a launch
//! ```
//!
//! Persistent blocks fill the stages of the next tile while they store one: `clocks = begin + Σ tiles: steps · period + 0.78 · store`. Where two
//! warpgroups have a ping-pong schedule, each has half of a tile, in as many steps, and only the last half is stored behind all products:
//! `clocks = begin + Σ halves: (steps · period + 250) - 250 + store / 2`, and for each tile what half a store takes longer than half of the products.
//!
//! # What short products showed
//!
//! The constants are fitted to 1162 random products of six types, measured on one H100 (`docs/tuning.md` says how). What had to be counted for them:
//!
//! * grids of groups of eight rows of tiles have blocks without a tile, which take places on multiprocessors: 108 tiles in 144 blocks leave some
//!   of 132 multiprocessors with two that multiply, and take as long as 264;
//! * a block of warps takes 22 clocks for each sum of a lane to begin and end: straight lines of thousands of instructions that are run once;
//! * C in narrow stores takes 11.3 (warps) or 19.7 clocks (warpgroups, vector by vector) for each store of a warp, which is what odd products wait for, and rows that do not begin
//!   with a sector 3.8 times the clocks of their bytes; in a straight line it takes 3.5 clocks, or in 16-bit types, where multiprocessors have several tiles, 87 clocks for one store of each warp;
//! * blocks of warpgroups with one tile each drift apart: in full waves from the fourth on, a step takes 1.06 times as long;
//! * of a wave's beginning and end, `r` blocks on a multiprocessor cover 0.22 · (1 − 1/r) for one another: they drift apart;
//! * what is transposed moves at 0.95 of the bandwidth of memory, and partial sums at 0.81, or 0.24 of the cache's rate where that is less;
//! * a kernel that packs narrow rows has a block for each, and one that adds partial sums a block for each row of C: waves of those take the latency of memory,
//!   longer than their bytes;
//! * a cluster runs on one GPC: of 132 multiprocessors 116 take clusters of four blocks, 112 clusters of eight, and blocks that fill clusters up take places;
//! * tf32 products with A and B swapped in tiles of more than 64 rows take 0.92 of their demands, blocks of warpgroups with more sums than 128×256 1.03;
//! * at the power limit the time of a product is proportional to its energy, that of m·n·k multiply-adds and of the bytes through shared memory; with fewer than four stages
//!   blocks read less from the cache and need less energy;
//! * copies through registers (below 4 bytes) leave 848 clocks of a step uncovered;
//! * TMA takes 6.4 clocks for each 128 bytes of a box outside of the matrix. If these are a third of a stage or more and memory is the bound, 0.4 of that time
//!   is added to the wait for memory. Of rows that do not begin with a line the cache gives it 0.73 of the bytes, of those
//!   that do not begin with a sector of 32 bytes 0.35; `cp.async` gets as many as of others.
//!
//! In detail: FMA kernels fill 1.1 − 0.4 / w of their slots, at least 0.4 and at most all (register banks), a read of fragments costs them 3 slots, and a k at
//! least 36 clocks; other blocks cover what their blocks begin and end with. Products of warpgroups take 1.42 times the rate of those of warps; each
//! warpgroup reads its rows of A and all of B from shared memory (its columns of B and all of A where they are swapped). Copies narrower than 16 bytes take an
//! instruction and a wavefront for every 32 pieces; those that go through registers (below 4 bytes, before `sm_80`, and in FMA kernels) another of both to be stored.
//! Memory moves every operand once if they fit into half of the cache, and otherwise what the tiles of each wave need. Kernels around products of warpgroups are
//! launched beside the one before and add 0.2 of a launch, others 0.58. C of 16-bit elements goes through shared memory rounded, where it is not read.
//!
//! # Worked example
//!
//! f16, 4096³, `mma-f16-128x256x64` on an H200 (132 multiprocessors, 1.98 GHz): 512 tiles, 64 steps, 8 warps.
//!
//! * math: 2·128·256·64 / 2400 = 1748; shared: (128 + 256)·64·2 / 128 = 384 copied, 8·(64 + 64)·64·2 / 128 = 1024 read, 1408 together;
//!   l2: 49,152 / (1.45 · 5120 / 132) = 874; slots: 3.08 · (1024 products + 256 reads + 96 copies) / 4 = 1060; latency: 1188 / 2 = 594;
//! * shared memory of 147,456 bytes lets one block on a multiprocessor, so w = 2 and p = 3.86: period = 2002;
//! * ⌈512 / 132⌉ = 4 waves, each 64·2002 = 128,200 clocks and 5030 to begin and to end, and 1710 for each of three more: 537,880 clocks or 271.7 µs;
//! * 5.2 µs for the launch: 276.9 µs, which is 496 TFLOP/s. Measured: 485.

mod around;
mod period;
pub(super) mod power;
mod whole;
use super::machine::Machine;
use crate::gemm::scheduler::{best_rectangle, linear_wave};
use crate::gemm::{Config, DataType, Gemm, Mainloop, Order, Schedule, Scheduler, Trans};

/// Bytes of a line of the cache, and of a sector.
pub(super) const LINE: u64 = 128;
pub(super) const SECTOR: u64 = 32;

/// Bytes that the cache gives a clock, of those that [`Machine`] has. It is above 1 because little else of a step is waited for meanwhile.
const FROM_L2: f64 = 1.45;

/// The share that is left for boxes of TMA whose rows do not begin with a line, or with a sector.
const WITHIN_LINES: f64 = 0.728;
const WITHIN_SECTORS: f64 = 0.5;

/// Slots that a read of fragments takes in an FMA kernel: its own, and those of products whose factors the register cache loses.
const FMA_READ: f64 = 3.0;

/// Threads of a multiprocessor that FMA kernels are made for, with 128 registers each; half of them beside more than 64 sums.
const FMA_THREADS: u32 = 512;

/// How much faster tensor cores are with products of warpgroups than with those of warps: measured at 8192³ in f16. Of other types they multiply as many
/// bytes.
const WARPGROUP_RATE: f64 = 1.42;

/// Schedulers of a multiprocessor.
const SCHEDULERS: f64 = 4.0;

/// Bytes of one wavefront.
const WAVEFRONT: f64 = 128.0;

/// What holds a product up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// Tensor cores, FMA units or the schedulers that feed them.
    Issue,
    /// Wavefronts of shared memory.
    SharedMemory,
    /// Bytes from the level 2 cache.
    L2,
    /// Bytes from and to memory.
    Memory,
    /// Waiting: for memory, for launches, for the first and last tiles.
    Latency,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bound::Issue => "issue",
            Bound::SharedMemory => "shared memory",
            Bound::L2 => "L2",
            Bound::Memory => "memory",
            Bound::Latency => "latency",
        })
    }
}

/// Clocks that one step along k of one block asks of each unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demands {
    /// Tensor cores or FMA units.
    pub math: f64,
    /// Schedulers.
    pub slots: f64,
    /// Shared memory.
    pub shared: f64,
    /// The multiprocessor's share of the level 2 cache.
    pub l2: f64,
}

/// What the model says of one plan, schedule and problem.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Seconds from the first launch to the end of the last.
    pub seconds: f64,
    /// Seconds of these that are not the product's own kernel: operands copied, partial sums added.
    pub around: f64,
    /// Blocks of the product's kernel.
    pub blocks: u64,
    /// Blocks that a multiprocessor holds at a time.
    pub resident: u32,
    /// Blocks divided by all that run at a time: 3.9 is three full waves and most of a fourth.
    pub waves: f64,
    /// Steps along k of one block.
    pub steps: u64,
    /// What one step asks for.
    pub demands: Demands,
    /// Clocks of a step with `resident` blocks on each multiprocessor.
    pub period: f64,
    /// What holds it up.
    pub bound: Bound,
}

/// Estimates a configuration with `schedule` for `problem` on `machine`.
pub fn estimate(
    config: &Config,
    schedule: Schedule,
    problem: &Gemm,
    machine: &Machine,
) -> Estimate {
    Model {
        config: *config,
        schedule,
        problem,
        machine,
    }
    .estimate()
}

/// One operand.
struct Operand {
    /// Its side of the tile: rows of C for A, columns for B.
    side: u32,
    /// The warps' side.
    warp_side: u32,
    /// Elements of `side` that are inside the matrix, on average, those of a stage.
    inside: f64,
    /// Bytes of one copy.
    width: u32,
    /// Whether k is contiguous.
    k_major: bool,
    /// A, not B.
    is_a: bool,
}

struct Model<'a> {
    config: Config,
    schedule: Schedule,
    problem: &'a Gemm,
    machine: &'a Machine,
}

impl Model<'_> {
    /// Rows and columns of tiles.
    fn tiles(&self) -> (u64, u64) {
        let [m, n, _] = self.config.tile;
        (
            self.problem.m.div_ceil(m.into()),
            self.problem.n.div_ceil(n.into()),
        )
    }

    /// Rows and columns of persistent blocks, and how many tiles each has; none where blocks have one.
    fn persistent_grid(&self) -> Option<([u32; 2], u64)> {
        let [m, n, _] = self.config.tile;
        if self.config.scheduler == Scheduler::Persistent(Order::Linear) {
            return Some(linear_wave(self.tiles().into()));
        }
        self.config.scheduler.is_persistent().then(|| {
            best_rectangle(
                self.tiles().into(),
                [m.into(), n.into()],
                self.config.cluster,
            )
        })
    }

    /// Steps along k of one part, at least one, and the parts: no more than there are with so many steps each.
    fn split(&self) -> (u64, u64) {
        let all = self.problem.k.div_ceil(self.config.tile[2].into()).max(1);
        // Persistent blocks do not split sums.
        let parts = if self.config.scheduler.is_persistent() {
            1
        } else {
            self.schedule.split.max(1)
        };
        let steps = all.div_ceil(u64::from(parts));
        (steps, all.div_ceil(steps))
    }

    /// Whether operands that are narrower than 16 bytes are packed: not in a batch.
    fn packs(&self) -> bool {
        // Tensor maps are of rows that begin at multiples of 16 bytes.
        let must = self.config.is_wgmma();
        (self.schedule.pack || must) && self.problem.batch.count == 1
    }

    /// Bytes of an element of C, read if β is not 0, and written.
    fn result_bytes(&self) -> f64 {
        let bytes = self.problem.result(self.config.data_type).bytes();
        f64::from(bytes) * if self.problem.beta == 0.0 { 1.0 } else { 2.0 }
    }

    /// Bytes of a sum outside of its thread.
    fn sum_bytes(&self) -> f64 {
        f64::from(self.config.data_type.scalar().bytes())
    }

    fn operands(&self) -> [Operand; 2] {
        let (a, p) = (&self.config, self.problem);
        let widths = p.widths(a.data_type);
        let (rows, cols) = self.tiles();
        let [wm, wn] = a.warp_tile();
        let width = |w: u32| if self.packs() { 16 } else { w };
        let transposed = a.transposed(p.operands);
        let inside = |extent: u64, tiles: u64| extent as f64 / tiles.max(1) as f64;
        [
            Operand {
                side: a.rows_of_stage(),
                warp_side: wm,
                inside: inside(p.m, rows) / f64::from(a.parts_of_tile()),
                width: width(widths[0]),
                k_major: transposed[0] || p.operands.a == Trans::N,
                is_a: true,
            },
            Operand {
                side: a.tile[1],
                warp_side: wn,
                inside: inside(p.n, cols),
                width: width(widths[1]),
                k_major: !a.is_through_registers() && (transposed[1] || p.operands.b == Trans::T),
                is_a: false,
            },
        ]
    }

    /// What one step of one block asks for.
    fn demands(&self) -> Demands {
        let a = &self.config;
        let [_, n, depth] = a.tile;
        let m = a.rows_of_stage();
        let bytes = f64::from(a.data_type.bytes());
        // Those that multiply at the same time.
        let warps = f64::from(a.warp_count() / a.parts_of_tile());
        let products = f64::from(m) * f64::from(n) * f64::from(depth);
        let mut rate = match a.mainloop {
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => {
                self.machine.fma_rate(a.data_type)
            }
            Mainloop::MmaSync { .. } => self.machine.rate(a.data_type),
            Mainloop::Wgmma(_) => WARPGROUP_RATE * self.machine.rate(DataType::F16) * 2.0 / bytes,
        };
        let half_shape = a.is_mma_sync() && a.data_type == DataType::F64 && a.instruction()[0] < 16;
        if half_shape && self.machine.arch.0 == 90 {
            // Half of the tensor cores' width is left unused by m8n8k4 there.
            rate /= 2.0;
        }
        let mut slots = products / f64::from(a.products_of_instruction());
        let (mut shared, mut l2, mut widened) = (0.0, 0.0, 0.0);
        let sms = self.machine.multiprocessors.into();
        for o in self.operands() {
            // Copies.
            let tile_bytes = f64::from(o.side * depth) * bytes;
            l2 += self.l2_clocks(&o, sms);
            let pieces = tile_bytes / f64::from(32 * o.width);
            let whole = tile_bytes / WAVEFRONT;
            slots += pieces;
            shared += pieces.max(whole);
            if a.is_wgmma() {
                // One thread copies; each warpgroup reads its rows of A, and all of B, or its columns of B, and all of A.
                slots -= pieces;
                let times = if o.is_a == a.swap_ab {
                    warps / 4.0
                } else {
                    1.0
                };
                shared += times * whole;
                continue;
            }
            if o.width < 4 || !a.is_asynchronous() {
                slots += 2.0 * pieces.min(whole);
                shared += whole;
            }
            // Reads.
            if a.is_fma() {
                // 16 bytes at a time; the pair rule halves the wavefronts.
                let [rows, columns] = a.factors_of_a_lane();
                let each = f64::from(if o.is_a { rows } else { columns });
                let read = warps * 32.0 * each * f64::from(depth) * bytes;
                slots += FMA_READ * read / 512.0;
                shared += read / WAVEFRONT / 2.0;
                continue;
            }
            let elements = warps * f64::from(o.warp_side * depth);
            let pairs = a.data_type.bytes() == 1 && !o.k_major;
            if bytes < 3.0 || (bytes < 8.0 && o.k_major) {
                slots += elements * bytes / 512.0;
                shared += elements * bytes / WAVEFRONT;
                // Bytes that are neighbours along the side are put apart, a register at a time.
                slots += if pairs { elements * bytes / 128.0 } else { 0.0 };
            } else {
                // One load an element.
                slots += elements / 32.0;
                shared += elements / 32.0 * (bytes / 4.0).max(1.0);
            }
            match a.data_type {
                DataType::Tf32 => slots += elements / 32.0,
                DataType::E4m3 | DataType::E5m2 => {
                    widened += self.machine.f8_widened.map_or(0.0, |rate| elements / rate);
                }
                _ => {}
            }
        }
        if a.is_fma() && a.is_asynchronous() {
            // K-major operands go through registers and are transposed on the way.
            for o in self.operands().iter().filter(|o| o.k_major) {
                slots += f64::from(o.side * depth) / 32.0 * 1.25;
            }
        }
        Demands {
            math: 2.0 * products / rate + widened,
            slots: slots / SCHEDULERS,
            shared,
            l2,
        }
    }

    /// Bytes of an operand that one step of one block copies from inside the matrix, on average.
    fn copied_bytes(&self, o: &Operand) -> f64 {
        let bytes = self.config.data_type.bytes();
        // Boxes bring whole panels of a side that is contiguous, of 32 or 64 bytes where it has no more.
        let along = u64::from(o.side * bytes);
        let panels = if self.is_in_panels(o) && !matches!(along, 32 | 64) {
            along.next_multiple_of(LINE) as f64 / along as f64
        } else {
            1.0
        };
        panels * o.inside * f64::from(self.config.tile[2] * bytes)
    }

    /// Whether boxes bring an operand by panels of rows along its side.
    fn is_in_panels(&self, o: &Operand) -> bool {
        self.config.is_wgmma() && !o.k_major
    }

    /// Clocks that one step of one block waits for an operand from the cache while so many multiprocessors ask. The blocks of a cluster that have its tile in
    /// common ask for it once.
    fn l2_clocks(&self, o: &Operand, busy: u64) -> f64 {
        let [rows, columns] = self.config.cluster;
        let sharing = f64::from(if o.is_a { columns } else { rows });
        self.copied_bytes(o) / sharing / self.l2_share(o, busy)
    }

    /// Bytes of an operand that the cache gives a multiprocessor a clock while so many ask.
    fn l2_share(&self, o: &Operand, busy: u64) -> f64 {
        let (m, pitch) = (self.machine, self.pitch(o));
        let tile = u64::from(o.side * self.config.data_type.bytes());
        let part = match self.config.mainloop {
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => {
                return m.l2_share();
            }
            // Tiles of 144 columns begin within lines (1536³ f16: 0.0202 ms in nn, 0.0160 in nt).
            _ if self.is_in_panels(o)
                && !tile.is_multiple_of(LINE)
                && pitch.is_multiple_of(LINE) =>
            {
                WITHIN_LINES
            }
            _ if self.is_copied_first(o) || pitch.is_multiple_of(LINE) => 1.0,
            Mainloop::Wgmma(_) if pitch.is_multiple_of(SECTOR) => WITHIN_LINES,
            Mainloop::Wgmma(_) => WITHIN_SECTORS,
            Mainloop::MmaSync { .. } => 1.0,
        };
        part * FROM_L2 * m.l2_bytes_per_clock / busy.max(1) as f64
    }

    /// Whether an operand is copied to rows of whole lines before the product: its rows are narrow, it is transposed, or boxes are to begin lines.
    fn is_copied_first(&self, o: &Operand) -> bool {
        let [a, b, _] = self.problem.widths(self.config.data_type);
        let width = if o.is_a { a } else { b };
        let [of_a, of_b] = self.config.transposed(self.problem.operands);
        let transposed = if o.is_a { of_a } else { of_b };
        let by_boxes = self.config.is_wgmma();
        let moved = by_boxes && self.schedule.pack && !self.pitch(o).is_multiple_of(LINE);
        self.packs() && (width < 16 || moved || transposed)
    }

    /// Bytes from row to row of an operand.
    fn pitch(&self, o: &Operand) -> u64 {
        let p = self.problem;
        let elements = if o.is_a { p.lda } else { p.ldb };
        elements.saturating_mul(self.config.data_type.bytes().into())
    }

    /// Blocks that a multiprocessor holds; at least one, for a plan that does not fit is no candidate.
    fn resident(&self) -> u32 {
        let (a, m) = (&self.config, self.machine);
        let threads = a.threads();
        let narrow = self.operands().iter().any(|o| o.width < 16);
        let f8 = matches!(a.data_type, DataType::E4m3 | DataType::E5m2);
        // Products of warpgroups multiply 8-bit floats as they are.
        let widened = f8 && m.f8_widened.is_some() && a.is_mma_sync();
        let registers = threads * a.registers(narrow, widened).next_multiple_of(8);
        let made_for = match a.mainloop {
            Mainloop::Simt { .. } if a.sums_of_a_lane() > 64 => FMA_THREADS / 2,
            Mainloop::Simt { .. } => FMA_THREADS,
            _ => m.threads_per_sm,
        };
        [
            m.threads_per_sm.min(made_for) / threads,
            m.blocks_per_sm,
            m.registers_per_sm / registers,
            m.shared_bytes_per_sm / (a.shared_bytes() + m.shared_bytes_reserved),
        ]
        .into_iter()
        .min()
        .unwrap_or(1)
        .max(1)
    }
}
