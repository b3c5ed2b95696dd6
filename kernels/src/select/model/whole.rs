//! The whole: waves of blocks, what begins and ends them, and the launches.

use super::{Bound, Estimate, Model};
use crate::gemm::{Mainloop, Order, Scheduler};

/// The blocks of a kernel on the multiprocessors, wave after wave.
struct Waves {
    /// Waves that are as long as the first, and the blocks on each multiprocessor, of so many, that are busy in them.
    whole: u64,
    full: (u64, u64),
    /// The same of the last one.
    last: (u64, u64),
}

/// How much longer a block takes at the edge of C: plans of warps, and FMA kernels by `cp.async`, whose general loop multiplies as long as the other. Boxes that
/// TMA cuts take as long as others.
const EDGE: f64 = 1.21;
const EDGE_OF_REGISTERS: f64 = 1.25;
const EDGE_FMA: f64 = 1.05;

/// Clocks until a block that follows another has made its mbarriers or its addresses.
const BEGIN: f64 = 1710.0;
const BEGIN_FMA: f64 = 1500.0;

/// What warpgroups wait for their first stage, in latencies.
const FIRST_STAGE: f64 = 0.853;

/// What a store takes of a persistent block: its producer goes on meanwhile.
const STORE_IN_TURNS: f64 = 0.777;

/// Clocks from the last product of a warpgroup to the first of the other in a ping-pong schedule.
const HANDOVER: f64 = 250.0;

/// The share of their demands that products with A and B swapped in tf32 take, whose first operand comes through registers, in tiles of more than 64 rows. With their launch, 312 candidates of 200 random products took
/// 0.95 of the estimate without it.
const SWAPPED: f64 = 0.92;

/// The same of blocks with more sums than two warpgroups have: 192×192 tiles took 0.934 million clocks at 6144³ in bf16 and 128×256 tiles 0.929, where the demands of the former are 0.98 of
/// the latter's; at 5120³ 1.15 times the estimate without this.
const LARGE: f64 = 1.03;
const MOST_SUMS: u32 = 128 * 256;

/// How much longer a step takes from the fourth full wave on: blocks of warpgroups with one tile each drift apart, and ask the cache for rows that are far
/// apart. Persistent blocks stay together (8192³: 1.532 instead of 1.661 ms; 16384³: 12.41 instead of 13.39).
const DRIFT: f64 = 0.06;
const TOGETHER: f64 = 3.0;

/// How much longer persistent blocks are for each share of their time in which memory brings what it has brought before, beyond one that costs
/// nothing: 192×192 tiles in 43×3 blocks took 1.65 ms at 8192³ and 13.35 at 16384³, 128×256 tiles in 16×8 blocks 1.52 and 12.28.
const READ_AGAIN: f64 = 0.35;
const COVERED_READS: f64 = 0.2;

/// Multiprocessors of a GPC of Hopper, at most: a cluster's blocks are on multiprocessors of one.
const GPC: u64 = 18;

/// The share of a wave's beginning and end that many blocks on a multiprocessor cover for one another: they drift apart.
const COVERED: f64 = 0.218;

/// Clocks that a block of warps takes to begin and end for each sum of a lane: long straight lines from a cold instruction cache.
const COLD: f64 = 22.3;

impl Model<'_> {
    pub(super) fn estimate(&self) -> Estimate {
        let (p, machine) = (self.problem, self.machine);
        let (rows, cols) = self.tiles();
        let (steps, split) = self.split();
        let blocks = rows
            .saturating_mul(cols)
            .saturating_mul(split)
            .saturating_mul(p.batch.count);
        let resident = self.resident();
        let demands = self.demands();
        let slots = self.multiprocessors() * u64::from(resident);
        let (full, rest) = if let Some(([rows, columns], each)) = self.persistent_grid() {
            // As many blocks as fit side by side, and as many more times as the multiprocessors are too few for them.
            let launched = u64::from(rows) * u64::from(columns);
            (each.saturating_mul(launched.div_ceil(slots)), 0)
        } else {
            let launched = self.of_whole_clusters(blocks);
            (launched / slots, launched % slots)
        };
        let waves = self.on_multiprocessors(full, rest, u64::from(resident));
        let (period, pace) = self.period(waves.full, &demands);
        let (last_period, last_pace) = self.period(waves.last, &demands);
        let mut estimate = Estimate {
            seconds: 0.0,
            around: 0.0,
            blocks,
            resident,
            waves: match self.persistent_grid() {
                Some(_) => full as f64,
                None => self.of_whole_clusters(blocks) as f64 / slots as f64,
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
        let (whole, last) = (waves.whole as f64, waves.last.0);
        let parts = f64::from(self.config.parts_of_tile());
        let of_a_step = self.drifting(whole) * period + last_period * self.edge();
        let main = parts * steps as f64 * of_a_step;
        let of_a_wave = if waves.whole > 0 {
            resident.into()
        } else {
            last
        };
        let begin_and_end = self.begin() + self.store(of_a_wave) / parts;
        let begin_and_end = if parts > 1.0 {
            // What one warpgroup stores, it stores while another multiplies, as far as that takes as long.
            let handover = if self.config.overlaps() {
                0.0
            } else {
                HANDOVER
            };
            let meanwhile = (parts - 1.0) * (steps as f64 * period + handover);
            let left = (self.store(1) / parts - meanwhile).max(0.0);
            begin_and_end + (parts * (whole + 1.0) - 1.0) * handover + whole * left
        } else if self.config.scheduler.is_persistent() {
            // The stages of the next tile are filled while this one is stored.
            begin_and_end + whole * STORE_IN_TURNS * self.store(1)
        } else if self.config.is_fma() {
            // Other blocks cover it.
            begin_and_end + (begin_and_end + BEGIN_FMA) * whole / f64::from(resident)
        } else {
            // Blocks that begin together end together, but for what others on the multiprocessor cover.
            let others = 1.0 - 1.0 / f64::from(resident);
            begin_and_end + (begin_and_end + BEGIN) * whole * (1.0 - COVERED * others)
        };
        let computing = (main + begin_and_end) * self.share_of_demands() / machine.clock;
        let (moved, again) = self.memory_bytes(whole + 1.0, slots.min(blocks));
        let memory = moved / machine.memory_bandwidth + machine.latency;
        let computing = if self.config.scheduler.is_persistent() {
            let share = again / machine.memory_bandwidth / computing;
            computing * (1.0 + READ_AGAIN * (share - COVERED_READS).max(0.0))
        } else {
            computing
        };
        let all_steps = blocks as f64 * parts * steps as f64;
        let computing = self.at_its_power(computing, all_steps, demands.shared);
        estimate.around = self.around();
        estimate.seconds = machine.launch + computing.max(memory) + estimate.around;
        let waiting = machine.launch + begin_and_end / machine.clock + estimate.around;
        if memory > computing {
            estimate.bound = Bound::Memory;
        } else if waiting > main / machine.clock {
            estimate.bound = Bound::Latency;
        }
        estimate
    }

    /// What a block takes of what its demands say.
    fn share_of_demands(&self) -> f64 {
        if self.config.is_through_registers() && self.config.tile[0] > 64 {
            SWAPPED
        } else if self.config.is_wgmma() && self.config.tile[0] * self.config.tile[1] > MOST_SUMS {
            LARGE
        } else {
            1.0
        }
    }

    /// The multiprocessors that blocks can be on: all of them, or in clusters those of whole clusters of a GPC. Of 132 multiprocessors 112 take clusters of eight: 128 blocks
    /// of `64x128x64-cluster8x1` took 20,400 clocks at 1000³ where 96 of `64x192x64` took 14,400, and on average a multiprocessor was busy for 11,000 and 10,000.
    pub(super) fn multiprocessors(&self) -> u64 {
        let all = u64::from(self.machine.multiprocessors);
        let cluster = u64::from(self.config.cluster_blocks()).max(1);
        let of_a_gpc = GPC / cluster * cluster;
        let able = all * of_a_gpc / GPC / cluster * cluster;
        able.max(1)
    }

    /// So many blocks, with those without a tile that fill up clusters.
    fn of_whole_clusters(&self, blocks: u64) -> u64 {
        let ((rows, cols), [down, across]) = (self.tiles(), self.config.cluster);
        let tiles = rows.saturating_mul(cols);
        if self.config.cluster_blocks() <= 1 || tiles == 0 {
            return blocks;
        }
        let whole = |n: u64, of: u32| n.next_multiple_of(of.into());
        (blocks / tiles).saturating_mul(whole(rows, down).saturating_mul(whole(cols, across)))
    }

    /// The blocks of each multiprocessor, wave after wave: `full` waves of `resident` on each, and `rest` blocks.
    fn on_multiprocessors(&self, full: u64, rest: u64, resident: u64) -> Waves {
        let sms = self.multiprocessors();
        if let Some(([rows, columns], _)) = self.persistent_grid() {
            let (down, across) = self.tiles();
            let busy = if self.config.scheduler == Scheduler::Persistent(Order::Linear) {
                down.saturating_mul(across).min(sms)
            } else {
                down.min(rows.into()) * across.min(columns.into())
            };
            return Waves {
                whole: full - full.min(1),
                full: (resident, busy),
                last: (resident, busy),
            };
        }
        let all = (resident, sms);
        let (whole, mut last) = if rest == 0 {
            (full - full.min(1), all)
        } else {
            (full, (rest.div_ceil(sms), rest.min(sms)))
        };
        if whole == 0 && !self.config.is_fma() {
            last.0 = self.launched().div_ceil(sms).clamp(last.0, resident);
        }
        Waves {
            whole,
            full: all,
            last,
        }
    }

    /// Blocks of the grid up to the last that has a tile. Where rows of tiles are grouped, the last group may have fewer, and blocks without a tile are placed
    /// on multiprocessors like others: 108 tiles in groups of eight and four rows are 144 blocks, and some of 132 multiprocessors get two that multiply.
    fn launched(&self) -> u64 {
        let ((rows, cols), (_, split), p) = (self.tiles(), self.split(), self.problem);
        match self.config.rows_together() {
            Some(group) if split == 1 && p.batch.count == 1 && rows > 0 && cols > 0 => {
                let group = group.min(rows);
                let before = (rows.div_ceil(group) - 1) * group;
                before.saturating_mul(cols) + (cols - 1).saturating_mul(group) + rows - before
            }
            _ => rows
                .saturating_mul(cols)
                .saturating_mul(split)
                .saturating_mul(p.batch.count),
        }
    }

    /// The number of full waves, with the later ones lengthened by the drift of blocks.
    fn drifting(&self, waves: f64) -> f64 {
        let drift = if self.config.is_wgmma() && !self.config.scheduler.is_persistent() {
            DRIFT
        } else {
            0.0
        };
        waves + drift * (waves - TOGETHER).max(0.0)
    }

    /// Clocks until the first step of a block.
    fn begin(&self) -> f64 {
        match self.config.mainloop {
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => {
                self.latency()
            }
            Mainloop::Wgmma(_) => FIRST_STAGE * self.latency(),
            Mainloop::MmaSync { .. } => COLD * f64::from(self.config.sums_of_a_lane()),
        }
    }

    /// How much longer blocks of the last wave take.
    fn edge(&self) -> f64 {
        let (a, p) = (&self.config, self.problem);
        let [m, n, _] = a.tile;
        let ragged = !p.m.is_multiple_of(m.into()) || !p.n.is_multiple_of(n.into());
        match a.mainloop {
            _ if !ragged => 1.0,
            Mainloop::Wgmma(_) => 1.0,
            Mainloop::Simt { .. } => EDGE_FMA,
            Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => EDGE_OF_REGISTERS,
            Mainloop::MmaSync { .. } => EDGE,
        }
    }
}
