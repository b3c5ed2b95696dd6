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
//! | `l2` | bytes copied that are inside the matrices / (bytes that the cache gives a multiprocessor a clock) |
//!
//! `r` blocks of a multiprocessor ask for r times as much. Units work side by side, so that the largest demand sets the pace, but what
//! is fed by few warps is not covered wholly: with `w` warps for each of the four schedulers, a share 0.2 / w of the other demands is
//! added, and 40 clocks for the barrier. No step is shorter than the latency of memory divided by the steps that are copied ahead:
//!
//! ```text
//! period(r) = max(demands·r, latency / (stages − 1)) + 0.2/w · (the other demands·r) + 40
//! ```
//!
//! Registers, threads and shared memory say how many blocks `R` fit on a multiprocessor. Full waves run R blocks on each and the last one
//! ⌈rest / multiprocessors⌉; each wave fills its first stages and stores its tiles at its end, which other blocks cover if R > 1:
//!
//! ```text
//! clocks  = Σ waves: steps · period + (latency + store) · (1 + (waves − 1) / R) + 1500 · (waves − 1) / R
//! store   = r · (2·accumulator bytes / 128 + bytes of C / (half of what the cache gives))
//! kernel  = launch + max(clocks / clock, bytes from and to memory / bandwidth)
//! seconds = kernel + sum of partial sums (split > 1) + copies of operands (pack), each with its launch
//! ```
//!
//! Blocks that take tile after tile fill the stages of the next tile while they store one: `clocks = Σ tiles: steps · period + store`, and the latency once.
//!
//! In detail: blocks at the edge go through the general loop, so that the last wave takes 1.25 times as long if m or n is no multiple of
//! the tile (1.05 times in FMA kernels by `cp.async`). FMA kernels fill 1.1 − 0.4 / w of their slots, at least 0.4 and at most all (register
//! banks), a read of fragments costs them 3 slots, and a k at least 36 clocks. Products of warpgroups take 1.6 times the rate; each warpgroup reads its rows of A
//! and all of B from shared memory (its columns of B and all of A where they are swapped), and C with fewer than 64 rows takes 1.17 times as long by warps, and 1.1 times by several warpgroups; with fewer rows than its tile
//! has, a swapped plan takes 1.5 times as long. Copies narrower than 16 bytes take an instruction and a wavefront
//! for every 32 pieces; those that go through registers (below 4 bytes, before `sm_80`, and in FMA kernels) another of both to be stored.
//! Memory moves every operand once if they fit into half of the cache, and otherwise what the tiles of each wave need.
//!
//! Where a block of a plan of warpgroups has a multiprocessor to itself, nothing is uncovered; but for those of tf32, unless they are swapped, the products of a step are issued before
//! those of the step before are complete, and a step costs 28 clocks. Of plans of warps twice the share is uncovered in tf32 where k is not contiguous: elements
//! are read one by one. Kernels around products of warpgroups are launched beside the one before and add half a launch. C of 16-bit elements goes through shared memory rounded, where it is not read. A row of a box of TMA is 128 bytes. One
//! that does not begin with a line takes two requests, and one that does not begin with a sector of 32 bytes five sectors of two lines: the cache then gives
//! all multiprocessors together 4280 and 2560 bytes a clock, so that large tiles on few multiprocessors are faster than small ones on all
//! (1000³: 12.6 µs with 64 tiles of 128×128, 14.3 with 128 of 64×128).
//!
//! The constants 0.2, 40, 28, 2, 0.5, 1.25, 1.05, 1.5, 1.1, 0.4, 3, 36, 4280 and 2560 are fitted to `docs/performance.md` and `docs/performance-wgmma.md` (one H200 and
//! one H100); everything else is counted.
//!
//! # Worked example
//!
//! f16, 4096³, `mma-f16-128x256x64` on an H200 (132 multiprocessors, 1.98 GHz): 512 tiles, 64 steps, 8 warps.
//!
//! * math: 2·128·256·64 / 2400 = 1748; shared: (128 + 256)·64·2 / 128 = 384 copied, 8·(64 + 64)·64·2 / 128 = 1024 read, 1408 together;
//!   l2: 49,152 / (5120 / 132) = 1267; slots: (1024 products + 256 reads + 96 copies) / 4 = 344;
//! * shared memory of 147,456 bytes lets one block on a multiprocessor, so w = 2: period = 1748 + 0.1·(1408 + 1267 + 344) + 40 = 2089;
//! * ⌈512 / 132⌉ = 4 waves, each 64·2089 = 133,725 clocks and 1188 + 5427 to begin and to end, and 1500 for three more: 565,863 clocks or 285.8 µs;
//! * 3 µs for the launch: 288.8 µs, which is 476 TFLOP/s. Measured: 485.

use super::machine::Machine;
use crate::gemm::raster::{TURNS_BLOCKS, best_turns};
use crate::gemm::{Anatomy, DataType, Gemm, Plan, Schedule, Trans, Units};

/// The share of other demands that one warp a scheduler leaves uncovered.
const EXPOSED: f64 = 0.2;

/// Clocks of a barrier and what is around it.
const STEP: f64 = 40.0;

/// The same where the products of the next step are in flight.
const STEP_AHEAD: f64 = 28.0;

/// How much more is left uncovered where fragments of tf32 are read one element after the other: measured at 1024³ and 4096³.
const ONE_BY_ONE: f64 = 2.0;

/// The share of a launch that is left where a kernel is launched beside the one before: measured at 1536³ and 2048³ in tf32.
const BESIDE: f64 = 0.5;

/// Bytes of a line of the cache, and of a sector.
pub(super) const LINE: u64 = 128;
const SECTOR: u64 = 32;

/// Bytes a clock that boxes bring to a multiprocessor, however few ask: measured at 1024³ in f16 with 64 tiles of 128×128.
const OF_BOXES: f64 = 38.8;

/// Bytes a clock that the cache gives all multiprocessors for boxes whose rows do not begin with a line, or with a sector: measured at 1000³, 1008³, 2000³ and
/// 4072³ in f16, where they are 0.84 and 0.5 of what it gives for whole lines.
const WITHIN_LINES: f64 = 4280.0 / 5120.0;
const WITHIN_SECTORS: f64 = 2560.0 / 5120.0;

/// How much longer a block takes at the edge of C.
const EDGE: f64 = 1.25;

/// The same of an FMA kernel by `cp.async`, whose general loop multiplies as long as the other.
const EDGE_FMA: f64 = 1.05;

/// The share of the schedulers' slots that FMA kernels fill with many warps a scheduler: register banks and waits take the others.
const FMA_REACHED: f64 = 1.1;

/// What one warp a scheduler leaves unfilled; `w` leave a share 1/w of that.
const FMA_ALONE: f64 = 0.4;

/// Slots that a read of fragments takes in an FMA kernel: its own, and those of products whose factors the register cache loses.
const FMA_READ: f64 = 3.0;

/// Clocks from a read of fragments to the products of an FMA kernel, which reads one k ahead.
const FMA_LATENCY: f64 = 36.0;

/// Threads of a multiprocessor that FMA kernels are made for, with 128 registers each; half of them beside more than 64 sums.
const FMA_THREADS: u32 = 512;

/// The least rows of C that plans for tensor cores multiply.
const ROWS: u64 = 64;

/// How much longer plans take where C has fewer rows, measured at 16×8192×8192: plans of warps, and those of several warpgroups.
const FEW_ROWS: f64 = 1.17;
const FEW_ROWS_OF_WARPGROUPS: f64 = 1.1;

/// The same of swapped plans where C has fewer rows than their tile: measured at 128×8192×8192 in tf32.
const FEW_ROWS_OF_SWAPPED: f64 = 1.5;

/// Clocks until a block that follows another has made its mbarriers or its addresses; measured at 4096×4096×128.
const BEGIN: f64 = 1500.0;

/// How much faster tensor cores are with products of warpgroups than with those of warps: measured at 8192³ in f16. Of other types they multiply as many
/// bytes.
const WARPGROUP_RATE: f64 = 1.6;

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

/// Estimates `plan` with `schedule` for `problem` on `machine`. The plan need not be adapted: its anatomy is all that is asked.
pub fn estimate(
    plan: &dyn Plan,
    schedule: Schedule,
    problem: &Gemm,
    machine: &Machine,
) -> Estimate {
    Model {
        anatomy: plan.anatomy(),
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
    /// Elements of `side` that are inside the matrix, on average.
    inside: f64,
    /// Bytes of one copy.
    width: u32,
    /// Whether k is contiguous.
    k_major: bool,
    /// A, not B.
    is_a: bool,
}

struct Model<'a> {
    anatomy: Anatomy,
    schedule: Schedule,
    problem: &'a Gemm,
    machine: &'a Machine,
}

impl Model<'_> {
    /// Rows and columns of tiles.
    fn tiles(&self) -> (u64, u64) {
        let (m, n, _) = self.anatomy.tile;
        (
            self.problem.m.div_ceil(m.into()),
            self.problem.n.div_ceil(n.into()),
        )
    }

    /// Rows and columns of blocks that take tile after tile, and how many tiles each has; none where blocks have one.
    fn turns(&self) -> Option<([u32; 2], u64)> {
        self.anatomy.turns.then(|| best_turns(self.tiles()))
    }

    /// Steps along k of one part, at least one, and the parts: no more than there are with so many steps each.
    fn split(&self) -> (u64, u64) {
        let all = self.problem.k.div_ceil(self.anatomy.tile.2.into()).max(1);
        // Blocks that take tile after tile do not split sums.
        let parts = if self.anatomy.turns {
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
        let must = self.anatomy.units == Units::Warpgroup;
        (self.schedule.pack || must) && self.problem.batch.count == 1
    }

    /// Bytes of an element of C, read if β is not 0, and written.
    fn result_bytes(&self) -> f64 {
        let bytes = self.problem.result(self.anatomy.data_type).bytes();
        f64::from(bytes) * if self.problem.beta == 0.0 { 1.0 } else { 2.0 }
    }

    /// Bytes of a sum outside of its thread.
    fn sum_bytes(&self) -> f64 {
        f64::from(self.anatomy.data_type.scalar().bytes())
    }

    fn operands(&self) -> [Operand; 2] {
        let (a, p) = (&self.anatomy, self.problem);
        let widths = p.widths(a.data_type);
        let (rows, cols) = self.tiles();
        let (wm, wn) = a.warp_tile();
        let width = |w: u32| if self.packs() { 16 } else { w };
        let transposed = a.transposed(p.operands);
        let inside = |extent: u64, tiles: u64| extent as f64 / tiles.max(1) as f64;
        [
            Operand {
                side: a.tile.0,
                warp_side: wm,
                inside: inside(p.m, rows),
                width: width(widths[0]),
                k_major: transposed[0] || p.operands.a == Trans::N,
                is_a: true,
            },
            Operand {
                side: a.tile.1,
                warp_side: wn,
                inside: inside(p.n, cols),
                width: width(widths[1]),
                k_major: !a.form.is_swapped() && (transposed[1] || p.operands.b == Trans::T),
                is_a: false,
            },
        ]
    }

    /// What one step of one block asks for.
    fn demands(&self) -> Demands {
        let a = &self.anatomy;
        let (m, n, depth) = a.tile;
        let bytes = f64::from(a.data_type.bytes());
        let warps = f64::from(a.warp_count());
        let products = f64::from(m) * f64::from(n) * f64::from(depth);
        let mut rate = match a.units {
            Units::Fma => self.machine.fma_rate(a.data_type),
            Units::Tensor => self.machine.rate(a.data_type),
            Units::Warpgroup => WARPGROUP_RATE * self.machine.rate(DataType::F16) * 2.0 / bytes,
        };
        let half_shape =
            a.units == Units::Tensor && a.data_type == DataType::F64 && a.instruction.0 < 16;
        if half_shape && self.machine.arch.0 == 90 {
            // Half of the tensor cores' width is left unused by m8n8k4 there.
            rate /= 2.0;
        }
        let mut slots = products / f64::from(a.products_of_instruction());
        let (mut shared, mut l2, mut widened) = (0.0, 0.0, 0.0);
        for o in self.operands() {
            // Copies.
            let tile_bytes = f64::from(o.side * depth) * bytes;
            l2 += o.inside * f64::from(depth) * bytes / self.l2_share(&o);
            let pieces = tile_bytes / f64::from(32 * o.width);
            let whole = tile_bytes / WAVEFRONT;
            slots += pieces;
            shared += pieces.max(whole);
            if a.units == Units::Warpgroup {
                // One thread copies; each warpgroup reads its rows of A, and all of B, or its columns of B, and all of A.
                slots -= pieces;
                let times = if o.is_a == a.form.is_swapped() {
                    warps / 4.0
                } else {
                    1.0
                };
                shared += times * whole;
                continue;
            }
            if o.width < 4 || !a.asynchronous {
                slots += 2.0 * pieces.min(whole);
                shared += whole;
            }
            // Reads.
            if a.units == Units::Fma {
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
        if a.units == Units::Fma && a.asynchronous {
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

    /// Bytes of an operand that the cache gives a multiprocessor a clock.
    fn l2_share(&self, o: &Operand) -> f64 {
        let (m, share) = (self.machine, self.machine.l2_share());
        if self.anatomy.units != Units::Warpgroup {
            return share;
        }
        let share = share.min(OF_BOXES);
        if self.is_copied_first(o) {
            return share;
        }
        let pitch = self.pitch(o);
        let part = if pitch.is_multiple_of(LINE) {
            return share;
        } else if pitch.is_multiple_of(SECTOR) {
            WITHIN_LINES
        } else {
            WITHIN_SECTORS
        };
        let (rows, cols) = self.tiles();
        let blocks = rows.saturating_mul(cols).saturating_mul(self.split().1);
        let busy = blocks.clamp(1, m.multiprocessors.into());
        share.min(part * m.l2_bytes_per_clock / busy as f64)
    }

    /// Whether an operand is copied to rows of whole lines before the product: its rows are narrow, it is transposed, or boxes are to begin lines.
    fn is_copied_first(&self, o: &Operand) -> bool {
        let [a, b, _] = self.problem.widths(self.anatomy.data_type);
        let width = if o.is_a { a } else { b };
        let [of_a, of_b] = self.anatomy.transposed(self.problem.operands);
        let transposed = if o.is_a { of_a } else { of_b };
        let by_boxes = self.anatomy.units == Units::Warpgroup;
        let moved = by_boxes && self.schedule.pack && !self.pitch(o).is_multiple_of(LINE);
        self.packs() && (width < 16 || moved || transposed)
    }

    /// Bytes from row to row of an operand.
    fn pitch(&self, o: &Operand) -> u64 {
        let p = self.problem;
        let elements = if o.is_a { p.lda } else { p.ldb };
        elements * u64::from(self.anatomy.data_type.bytes())
    }

    /// Blocks that a multiprocessor holds; at least one, for a plan that does not fit is no candidate.
    fn resident(&self) -> u32 {
        let (a, m) = (&self.anatomy, self.machine);
        let threads = a.threads();
        let narrow = self.operands().iter().any(|o| o.width < 16);
        let f8 = matches!(a.data_type, DataType::E4m3 | DataType::E5m2);
        let widened = f8 && m.f8_widened.is_some();
        let registers = threads * a.registers(narrow, widened).next_multiple_of(8);
        let made_for = match a.units {
            Units::Fma if a.asynchronous && a.sums_of_a_lane() > 64 => FMA_THREADS / 2,
            Units::Fma if a.asynchronous => FMA_THREADS,
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

    /// Whether fragments of tf32 are read one element after the other: `ldmatrix` transposes none of 32 bits.
    fn reads_one_by_one(&self) -> bool {
        self.anatomy.data_type == DataType::Tf32 && self.operands().iter().any(|o| !o.k_major)
    }

    /// Warps for each scheduler with `r` blocks on a multiprocessor.
    fn warps_each(&self, r: u64) -> f64 {
        r as f64 * f64::from(self.anatomy.warp_count()) / SCHEDULERS
    }

    /// Clocks that a step takes with `r` blocks on a multiprocessor, and what sets its pace.
    fn period(&self, r: u64, d: &Demands) -> (f64, Bound) {
        let (blocks, warps) = (r as f64, self.warps_each(r));
        let mut latency =
            self.machine.latency * self.machine.clock / f64::from(self.anatomy.stages - 1);
        if self.anatomy.units == Units::Fma {
            latency = latency.max(FMA_LATENCY * f64::from(self.anatomy.tile.2));
        }
        // FMA kernels issue a product a clock at best, and lose clocks to register banks that other warps fill.
        let slots = match self.anatomy.units {
            Units::Fma => d.slots / (FMA_REACHED - FMA_ALONE / warps).clamp(FMA_ALONE, 1.0),
            Units::Tensor | Units::Warpgroup => d.slots,
        };
        let demands = [
            // Fewer than four warps leave schedulers without work.
            (d.math * blocks / warps.min(1.0), Bound::Issue),
            (slots * blocks / warps.min(1.0), Bound::Issue),
            (d.shared * blocks, Bound::SharedMemory),
            (d.l2 * blocks, Bound::L2),
        ];
        let sum: f64 = demands.iter().map(|d| d.0).sum();
        let most =
            demands.into_iter().fold(
                (0.0, Bound::Issue),
                |most, d| if d.0 > most.0 { d } else { most },
            );
        let (exposed, step) = match self.anatomy.units {
            // One thread copies, and products are in flight until the end of a step; those of the next one as well, but in tf32.
            Units::Warpgroup if self.resident() == 1 => match self.anatomy.data_type {
                DataType::Tf32 if !self.anatomy.form.is_swapped() => (0.0, STEP),
                _ => (0.0, STEP_AHEAD),
            },
            Units::Tensor if self.reads_one_by_one() => {
                ((ONE_BY_ONE * EXPOSED / warps).min(1.0), STEP)
            }
            _ => ((EXPOSED / warps).min(1.0), STEP),
        };
        let others = (sum - most.0) * exposed;
        let (pace, bound) = if latency > most.0 {
            (latency, Bound::Latency)
        } else {
            most
        };
        (pace + others + step, bound)
    }

    /// Clocks to store the tiles of `r` blocks.
    fn store(&self, r: u64) -> f64 {
        let (m, n, _) = self.anatomy.tile;
        let [a, b] = self.operands();
        let rounded = self.anatomy.units == Units::Warpgroup
            && self.problem.beta == 0.0
            && self.split().1 == 1
            && self.result_bytes() < self.sum_bytes();
        let staged_bytes = if rounded {
            self.result_bytes()
        } else {
            self.sum_bytes()
        };
        // Sums of Cᵀ, which lanes store as they hold them, two at a time, take as long.
        let staged = f64::from(m * n) * staged_bytes;
        let c = a.inside * b.inside * self.written_bytes();
        r as f64 * (2.0 * staged / WAVEFRONT + c / (self.machine.l2_share() / 2.0))
    }

    /// Bytes that the product's kernel moves for an element of C or for one of its partial sums.
    fn written_bytes(&self) -> f64 {
        if self.split().1 > 1 {
            self.sum_bytes()
        } else {
            self.result_bytes()
        }
    }

    /// Bytes that the product's kernel moves from and to memory.
    fn memory_bytes(&self, waves: f64, slots: u64) -> f64 {
        let p = self.problem;
        let t = self.anatomy.data_type;
        let (m, n, _) = self.anatomy.tile;
        let (rows, cols) = self.tiles();
        let bytes = f64::from(t.bytes());
        let (k, batch) = (p.k as f64, p.batch.count as f64);
        let both = (p.m as f64 + p.n as f64) * k * bytes;
        let once = both * batch;
        let (_, split) = self.split();
        let fits = both <= self.machine.l2_bytes as f64 / 2.0;
        let read = if fits || rows.saturating_mul(cols) <= slots {
            once
        } else {
            let (down, across) = if let Some(([rows, columns], _)) = self.turns() {
                (rows.into(), columns.into())
            } else if let Some(group) = self.anatomy.group {
                let grouped = split == 1 && p.batch.count == 1;
                let down = if grouped {
                    u64::from(group).min(rows)
                } else {
                    rows.min(slots)
                };
                (down, slots.div_ceil(down).min(cols))
            } else {
                let across = slots.min(cols);
                (slots.div_ceil(across).min(rows), across)
            };
            let of_a_wave = (down * u64::from(m)) as f64 + (across * u64::from(n)) as f64;
            once.max(waves * of_a_wave * k * bytes / split as f64)
        };
        let c = p.m as f64 * p.n as f64 * batch;
        read + c * split as f64 * self.written_bytes()
    }

    /// Seconds to move so many bytes that have just been written, or will be read next: through the cache if they fit into half of it.
    fn moved(&self, bytes: f64) -> f64 {
        let m = self.machine;
        let rate = if bytes <= m.l2_bytes as f64 / 2.0 {
            (m.l2_bytes_per_clock * m.clock / 2.0).max(m.memory_bandwidth)
        } else {
            m.memory_bandwidth
        };
        let launch = match self.anatomy.units {
            Units::Warpgroup => BESIDE * m.launch,
            Units::Tensor | Units::Fma => m.launch,
        };
        launch + m.latency + bytes / rate
    }

    /// Seconds of the launches before and after the product's own.
    fn around(&self) -> f64 {
        let p = self.problem;
        let t = self.anatomy.data_type;
        let (_, split) = self.split();
        let mut seconds = 0.0;
        if split > 1 {
            let c = p.m as f64 * p.n as f64;
            seconds += self.moved(c * (split as f64 * self.sum_bytes() + self.result_bytes()));
        }
        for o in self.operands().iter().filter(|o| self.is_copied_first(o)) {
            // Read and written.
            let extent = if o.is_a { p.m } else { p.n };
            let bytes = extent as f64 * p.k as f64 * f64::from(t.bytes());
            seconds += self.moved(2.0 * bytes);
        }
        seconds
    }

    fn estimate(&self) -> Estimate {
        let (p, machine) = (self.problem, self.machine);
        let (rows, cols) = self.tiles();
        let (steps, split) = self.split();
        let blocks = rows
            .saturating_mul(cols)
            .saturating_mul(split)
            .saturating_mul(p.batch.count);
        let resident = self.resident();
        let demands = self.demands();
        let sms = u64::from(machine.multiprocessors);
        let slots = sms * u64::from(resident);
        let (full, rest) = match self.turns() {
            // As many blocks as fit side by side, and as many more times as the multiprocessors are too few for them.
            Some((_, turns)) => (
                turns.saturating_mul(u64::from(TURNS_BLOCKS).div_ceil(slots)),
                0,
            ),
            None => (blocks / slots, blocks % slots),
        };
        let (period, pace) = self.period(resident.into(), &demands);
        let last = if rest == 0 {
            u64::from(resident)
        } else {
            rest.div_ceil(sms)
        };
        let (last_period, last_pace) = self.period(last, &demands);
        let mut estimate = Estimate {
            seconds: 0.0,
            around: 0.0,
            blocks,
            resident,
            waves: match self.turns() {
                Some(_) => full as f64,
                None => blocks as f64 / slots as f64,
            },
            steps,
            demands,
            period,
            bound: if full > 0 { pace } else { last_pace },
        };
        if blocks == 0 {
            estimate.bound = Bound::Latency;
            return estimate;
        }
        let (tile_m, tile_n, _) = self.anatomy.tile;
        let ragged = !p.m.is_multiple_of(tile_m.into()) || !p.n.is_multiple_of(tile_n.into());
        let fma = self.anatomy.units == Units::Fma && self.anatomy.asynchronous;
        let edge = match ragged {
            true if fma => EDGE_FMA,
            // Boxes that TMA cuts take as long as others.
            true if self.anatomy.units == Units::Warpgroup => 1.0,
            true => EDGE,
            false => 1.0,
        };
        let whole = if rest == 0 { full - 1 } else { full };
        let main = steps as f64 * (whole as f64 * period + last_period * edge);
        let begin_and_end = machine.latency * machine.clock
            + self.store(if whole > 0 { resident.into() } else { last });
        let begin_and_end = if self.anatomy.turns {
            // The stages of the next tile are filled while this one is stored.
            let store = self.store(1);
            begin_and_end + whole as f64 * store
        } else {
            begin_and_end + (begin_and_end + BEGIN) * whole as f64 / f64::from(resident)
        };
        let computing = (main + begin_and_end) / machine.clock;
        let memory = self.memory_bytes(whole as f64 + 1.0, slots.min(blocks))
            / machine.memory_bandwidth
            + machine.latency;
        estimate.around = self.around();
        estimate.seconds = machine.launch + computing.max(memory) + estimate.around;
        if p.m < ROWS {
            estimate.seconds *= match self.anatomy.units {
                Units::Tensor => FEW_ROWS,
                Units::Warpgroup if u64::from(tile_m) > ROWS => FEW_ROWS_OF_WARPGROUPS,
                Units::Warpgroup | Units::Fma => 1.0,
            };
        }
        if self.anatomy.form.is_swapped() && p.m < tile_m.into() {
            estimate.seconds *= FEW_ROWS_OF_SWAPPED;
        }
        let waiting = machine.launch + begin_and_end / machine.clock + estimate.around;
        if memory > computing {
            estimate.bound = Bound::Memory;
        } else if waiting > main / machine.clock {
            estimate.bound = Bound::Latency;
        }
        estimate
    }
}
