//! The interpreter: blocks in parallel, warps of a block in turn, lanes of a warp together.
//!
//! A [`Context`] is what all blocks share and nobody changes; a [`Worker`] is one thread's memory, used for one block after the
//! other; a [`Block`] holds warps, shared memory and barriers. [`run_block`] lets each warp run until it waits, then serves the
//! barriers, until all warps are done or none can move, which is a deadlock.

mod alu;
mod approximate;
mod atomics;
mod barrier;
mod block_end;
mod boxes;
mod bulk;
mod bulk_groups;
mod calls;
mod cluster;
mod code;
mod combine;
mod compare;
mod convert;
mod copies;
mod cvt;
mod decimal;
mod fp;
mod fp16;
mod fp32;
mod fp64;
mod global;
mod gmem;
mod in_flight;
mod lanes;
mod lds;
mod lmem;
mod local;
mod matrix;
mod mbarrier;
mod mem;
mod mma;
mod pack;
mod packed;
mod phases;
mod places;
mod printed;
mod printf;
mod quads;
mod rare;
mod registers;
mod rounding;
mod rounds;
pub(crate) mod schedule;
mod services;
mod smem;
mod sparse;
mod stack;
mod start;
mod step;
mod stores;
mod sums;
mod tensor;
mod traffic;
mod transfer;
mod undefined;
mod view;
mod warp;
mod wgmma;
mod wide;
mod wmma;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::fences::Fences;
use crate::ir::Program;
use crate::launch::{Launch, Options};
use crate::memory::GlobalMemory;
use crate::module::Kernel;
use crate::pattern::Pattern;
use crate::proxies::{Clocks, READERS};
use crate::report::{Finding, FindingKind, Traffic};
use crate::shared::Shadow;
use crate::shared_data::SharedData;

use barrier::Barriers;
use cluster::{BlockState, Gate};
use global::GlobalShadow;
use phases::Mbarriers;
use printed::Printed;
use printf::Formats;
use rounds::Rounds;
use schedule::Schedule;
use start::Restart;
use undefined::Origins;
pub(crate) use undefined::{ALL, READS};
use warp::Warp;
use wgmma::Warpgroups;

/// Instructions a warp runs before another gets its turn, if it does not wait earlier.
const SLICE: u32 = 1 << 16;

/// What every block of a launch shares.
#[allow(clippy::struct_excessive_bools)] // independent switches
pub(crate) struct Context<'a> {
    pub(crate) program: &'a Program,
    pub(crate) params: &'a [u8],
    pub(crate) variables: &'a [u64],
    pub(crate) memory: &'a GlobalMemory,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) threads: u32,
    pub(crate) sanitize: bool,
    pub(crate) lane_races: bool,
    pub(crate) undefined_global: bool,
    pub(crate) profile: bool,
    pub(crate) schedule: u64,
    pub(crate) step_limit: u64,
    pub(crate) total_step_limit: u64,
    pub(crate) global_shadow: Option<GlobalShadow>,
    /// Warp instructions of the whole run so far; clusters that run, and those of them that only go round in loops.
    pub(crate) steps: AtomicU64,
    pub(crate) busy: AtomicU32,
    pub(crate) idle: AtomicU32,
    /// Held for 64-bit atomics, which are two words.
    pub(crate) atomic_lock: Mutex<()>,
    restart: Restart,
    /// The machine has AVX2 and FMA.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "only there is a second version")
    )]
    simd: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        kernel: &'a Kernel,
        launch: &Launch,
        params: &'a [u8],
        variables: &'a [u64],
        memory: &'a GlobalMemory,
        options: &Options,
    ) -> Self {
        let program = &kernel.program;
        let shadow = || GlobalShadow::new(memory, program.global_grain);
        Self {
            program,
            params,
            variables,
            memory,
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared: launch.dynamic_shared,
            // Without a dynamic part not even the padding in front of it is there to be used.
            shared_bytes: match launch.dynamic_shared {
                0 => program.shared_static,
                n => program.shared_dynamic + n,
            },
            threads: launch.block.iter().product(),
            sanitize: options.sanitize,
            lane_races: options.lane_races,
            undefined_global: options.undefined_global,
            profile: options.profile,
            schedule: options.schedule,
            step_limit: options.step_limit.min(options.total_step_limit),
            total_step_limit: options.total_step_limit,
            global_shadow: options.global_races.then(shadow),
            steps: AtomicU64::new(0),
            busy: AtomicU32::new(0),
            idle: AtomicU32::new(0),
            atomic_lock: Mutex::new(()),
            restart: Restart::new(program),
            simd: !options.portable && step::simd_available(),
        }
    }

    /// Warps of a block.
    pub(crate) fn warps(&self) -> usize {
        self.threads.div_ceil(32) as usize
    }

    /// Clusters of the grid.
    pub(crate) fn clusters(&self) -> u64 {
        let blocks = |d: [u32; 3]| d.iter().map(|&d| u64::from(d)).product::<u64>();
        blocks(self.grid) / blocks(self.cluster).max(1)
    }

    /// Blocks of a cluster.
    pub(crate) fn blocks(&self) -> usize {
        self.cluster.iter().product::<u32>() as usize
    }
}

/// Counts of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) warps: u64,
    pub(crate) lanes: u64,
    pub(crate) wavefronts: u64,
    pub(crate) ideal: u64,
    pub(crate) min: u32,
    pub(crate) max: u32,
}

const NO_COUNT: Count = Count {
    warps: 0,
    lanes: 0,
    wavefronts: 0,
    ideal: 0,
    min: 0,
    max: 0,
};

/// Findings and notes so far, one for each kind and instruction, with the number of the block.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: HashMap<(FindingKind, usize, Grade), (u64, Finding)>,
}

/// Whether what was found is wrong, or only not promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Grade {
    Finding,
    Note,
}

/// Where a finding happens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Site {
    pub(crate) pc: usize,
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    pub(crate) address: Option<u64>,
}

/// One thread's state.
pub(crate) struct Worker {
    warps: Vec<Warp>,
    env: Env,
}

/// All that a running warp may touch besides itself.
#[allow(clippy::struct_excessive_bools)] // independent states
pub(crate) struct Env {
    pub(crate) counts: Vec<Count>,
    /// By instruction: what it moved; empty unless asked for.
    pub(crate) traffic: Vec<Traffic>,
    /// By instruction: the last shared access pattern.
    pub(crate) patterns: Vec<Pattern>,
    /// By instruction: the allocation it accessed last.
    pub(crate) hints: Vec<u32>,
    pub(crate) findings: Findings,
    /// Where the undefined values of the blocks came from.
    pub(crate) origins: Origins,
    pub(crate) shared: SharedData,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) barriers: Barriers,
    pub(crate) mbarriers: Mbarriers,
    pub(crate) groups: Warpgroups,
    /// All warps of the block have exited.
    pub(crate) ended: bool,
    /// The block of the cluster whose state is here, by rank; how many there are, and the state of the others.
    pub(crate) rank: usize,
    pub(crate) blocks: usize,
    pub(crate) parked: Vec<BlockState>,
    /// The barrier of the cluster.
    pub(crate) gate: Gate,
    /// Phases of mbarriers completed and copies issued, which those who wait may look at again.
    pub(crate) events: u64,
    /// What the blocks have done that others could see, see [`rounds`].
    pub(crate) effects: u64,
    /// Row operations as this machine computes them.
    pub(crate) code: code::Code,
    /// Somebody waits for what [`serve`] does.
    pub(crate) attention: bool,
    pub(crate) block: u64,
    pub(crate) ctaid: [u32; 3],
    /// Instructions that the block's warps have executed: what `%clock` shows. It is the same in every run, since the warps of a
    /// block take turns in a fixed order.
    pub(crate) clock: u64,
    /// Instructions of the current turn, which `clock` does not have yet; up to date for the operations in `rare.rs`.
    pub(crate) turn: u32,
    /// The block cannot go on.
    pub(crate) abort: bool,
    /// Some warp ran into the step limit: no use in running more blocks.
    full: bool,
    /// What kernels printed, and the formats that they used.
    printed: Printed,
    formats: Formats,
    /// The first block that reached an instruction that is missing, and that instruction's error.
    lacking: Option<(u64, u32)>,
}

impl Env {
    /// Records a finding; the message is only made if it is the first of its kind at this instruction.
    #[cold]
    #[inline(never)]
    pub(crate) fn report(
        &mut self,
        cx: &Context<'_>,
        kind: FindingKind,
        site: Site,
        message: &dyn Fn() -> String,
    ) {
        self.record(cx, (kind, Grade::Finding), site, message);
    }

    /// Records a note: something that the ISA does not promise, which hardware allows and programs in wide use do.
    #[cold]
    #[inline(never)]
    pub(crate) fn note(
        &mut self,
        cx: &Context<'_>,
        kind: FindingKind,
        site: Site,
        message: &dyn Fn() -> String,
    ) {
        self.record(cx, (kind, Grade::Note), site, message);
    }

    fn record(
        &mut self,
        cx: &Context<'_>,
        (kind, grade): (FindingKind, Grade),
        site: Site,
        message: &dyn Fn() -> String,
    ) {
        let block = self.block;
        let ctaid = self.ctaid;
        let make = || {
            let meta = &cx.program.meta[site.pc];
            Finding {
                kind,
                line: meta.line,
                column: meta.column,
                opcode: meta.opcode.clone(),
                block: ctaid,
                warp: site.warp,
                lanes: site.lanes,
                address: site.address,
                message: message(),
                count: 1,
                source: None,
                also: Vec::new(),
            }
        };
        match self.findings.found.entry((kind, site.pc, grade)) {
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert((block, make()));
            }
            std::collections::hash_map::Entry::Occupied(mut e) => {
                let (first, finding) = e.get_mut();
                let count = finding.count + 1;
                // The lowest block speaks, whatever order the threads took.
                if block < *first {
                    *finding = make();
                    *first = block;
                }
                finding.count = count;
            }
        }
    }
}

impl Worker {
    pub(crate) fn new(cx: &Context<'_>) -> Self {
        let n = cx.program.insts.len();
        let blocks = cx.blocks();
        let proxies = cx.program.uses_async;
        let columns = if proxies || blocks > 1 {
            READERS
        } else {
            cx.warps()
        };
        let shadow = |rank| {
            let mut clocks = Clocks::new(rank, blocks, proxies);
            clocks.fences = cx.program.relaxes.then(|| Box::new(Fences::new()));
            let grain = cx.program.shared_grain;
            cx.sanitize
                .then(|| Shadow::new(cx.shared_bytes, grain, columns, cx.lane_races, clocks))
        };
        let state = |rank| BlockState {
            shared: SharedData::new(cx.shared_bytes),
            shadow: shadow(rank),
            barriers: Barriers::new(),
            mbarriers: Mbarriers::default(),
            groups: Warpgroups::default(),
            block: 0,
            ctaid: [0; 3],
            clock: 0,
            ended: false,
        };
        // The first block's place holds what is in the way while another block is current.
        let parked = match blocks {
            1 => Vec::new(),
            n => (0..n).map(state).collect(),
        };
        Self {
            warps: (0..cx.warps() * blocks)
                .map(|w| Warp::new(cx, (w % cx.warps()) as u32))
                .collect(),
            env: Env {
                counts: vec![NO_COUNT; n],
                traffic: vec![Traffic::default(); if cx.profile { n } else { 0 }],
                patterns: vec![Pattern::default(); n],
                hints: vec![0; n],
                findings: Findings::default(),
                origins: Origins::default(),
                shared: SharedData::new(cx.shared_bytes),
                shadow: shadow(0),
                barriers: Barriers::new(),
                mbarriers: Mbarriers::default(),
                groups: Warpgroups::default(),
                ended: false,
                rank: 0,
                blocks,
                parked,
                gate: Gate::default(),
                events: 0,
                effects: 0,
                code: code::PLAIN,
                attention: false,
                block: 0,
                ctaid: [0; 3],
                clock: 0,
                turn: 0,
                abort: false,
                full: false,
                printed: Printed::default(),
                formats: Formats::default(),
                lacking: None,
            },
        }
    }

    /// Reports that the run has reached its limit while `left` blocks had still to run or to end.
    pub(crate) fn report_total(&mut self, cx: &Context<'_>, left: u64) {
        let (site, limit) = (Site::default(), cx.total_step_limit);
        self.env.full = true;
        self.env.report(cx, FindingKind::StepLimit, site, &|| {
            format!(
                "the run executed more than {limit} warp instructions; it was given up with {left} blocks left"
            )
        });
    }

    /// No further blocks are worth running.
    pub(crate) fn is_full(&self) -> bool {
        self.env.full
    }

    /// The error of the missing instruction that was reached, if one was.
    pub(crate) fn lacking(&self) -> Option<u32> {
        self.env.lacking.map(|(_, number)| number)
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.env.printed.merge(&other.env.printed);
        self.env.lacking = match (self.env.lacking, other.env.lacking) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (a, b) in self.env.traffic.iter_mut().zip(&other.env.traffic) {
            a.add(b);
        }
        for (a, b) in self.env.counts.iter_mut().zip(&other.env.counts) {
            a.min = if a.min == 0 || (b.min != 0 && b.min < a.min) {
                b.min
            } else {
                a.min
            };
            a.max = a.max.max(b.max);
            a.warps += b.warps;
            a.lanes += b.lanes;
            a.wavefronts += b.wavefronts;
            a.ideal += b.ideal;
        }
        for (key, (block, mut finding)) in other.env.findings.found {
            match self.env.findings.found.remove(&key) {
                Some((first, mut kept)) if first < block => {
                    kept.count += finding.count;
                    self.env.findings.found.insert(key, (first, kept));
                }
                old => {
                    finding.count += old.map_or(0, |(_, f)| f.count);
                    self.env.findings.found.insert(key, (block, finding));
                }
            }
        }
        self
    }

    /// Counts, traffic, findings and notes, and what was printed, block after block.
    pub(crate) fn finish(self) -> (Vec<Count>, Vec<Traffic>, [Vec<Finding>; 2], String) {
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        for ((_, _, grade), (_, finding)) in self.env.findings.found {
            match grade {
                Grade::Finding => findings.push(finding),
                Grade::Note => notes.push(finding),
            }
        }
        (
            self.env.counts,
            self.env.traffic,
            [findings, notes],
            self.env.printed.finish(),
        )
    }
}

/// Runs the blocks of cluster number `index` (x fastest) from start to end; the result is how many warp instructions they executed.
pub(crate) fn run_cluster(cx: &Context<'_>, worker: &mut Worker, index: u64) -> u64 {
    cx.busy.fetch_add(1, Relaxed);
    let mut rounds = Rounds::default();
    run_warps(cx, worker, index, &mut rounds);
    rounds.end(cx);
    cx.busy.fetch_sub(1, Relaxed);
    worker.warps.iter().map(|warp| warp.steps).sum()
}

/// Rounds in which all warps only give up waiting at mbarriers and wait again, after which it is a hang.
const PATIENCE: u32 = 64;

/// Makes the blocks of cluster number `index` ready.
fn begin(cx: &Context<'_>, worker: &mut Worker, index: u64) {
    let Worker { warps, env } = worker;
    let along = |d: usize| u64::from(cx.grid[d] / cx.cluster[d].max(1)).max(1);
    let at = [
        index % along(0),
        index / along(0) % along(1),
        index / along(0) / along(1),
    ];
    let [sx, sy, _] = cx.cluster;
    env.abort = false;
    env.events = 0;
    env.attention = false;
    env.gate.reset(env.blocks);
    env.origins.reset();
    for (rank, warps) in warps.chunks_mut(cx.warps()).enumerate() {
        let r = rank as u32;
        let within = [r % sx, r / sx % sy, r / sx / sy];
        env.enter(rank);
        env.ctaid = [0, 1, 2].map(|d| at[d] as u32 * cx.cluster[d] + within[d]);
        let [x, y, z] = env.ctaid.map(u64::from);
        env.block = x + u64::from(cx.grid[0]) * (y + u64::from(cx.grid[1]) * z);
        env.clock = 0;
        env.ended = false;
        env.barriers.reset();
        env.mbarriers.reset();
        env.groups.reset();
        env.shared.reset();
        if let Some(shadow) = &mut env.shadow {
            shadow.reset();
        }
        for warp in warps {
            (env.code.start)(warp, cx, env.ctaid);
        }
    }
}

fn run_warps(cx: &Context<'_>, worker: &mut Worker, index: u64, rounds: &mut Rounds) {
    begin(cx, worker, index);
    let Worker { warps, env } = worker;
    let each = cx.warps();
    let (mut tired, mut events, mut steps) = (0, 0, 0);
    let mut schedule = Schedule::new(cx.schedule, index);
    loop {
        let (mut moved, mut alive) = (false, false);
        let order = schedule.as_mut().map(|s| s.order(warps.len()));
        for place in 0..warps.len() {
            let k = order.as_ref().map_or(place, |order| order[place]);
            let warp = &mut warps[k];
            if warp.live == 0 {
                continue;
            }
            alive = true;
            if warp.polled != env.events && !warp.waits.is_empty() {
                warp.wake();
            }
            if !warp.is_runnable() {
                continue;
            }
            moved = true;
            env.enter(k / each);
            let before = warp.steps;
            let slice = match &mut schedule {
                Some(schedule) => {
                    let lanes = schedule.below(warp.splits.len());
                    warp.prefer(lanes);
                    schedule.turn()
                }
                None => SLICE,
            };
            step::run_warp(cx, env, warp, slice);
            let used = warp.steps - before;
            steps += used;
            rounds::look(env, warp);
            let (limit, all) = (cx.total_step_limit, cx.steps.fetch_add(used, Relaxed));
            if all + used > limit {
                let site = Site {
                    pc: warp.current_pc(),
                    warp: warp.index,
                    lanes: warp.live,
                    address: None,
                };
                env.full = true;
                env.abort = true;
                if all <= limit {
                    env.report(cx, FindingKind::StepLimit, site, &|| {
                        format!("the run executed more than {limit} warp instructions")
                    });
                }
            }
            if warp.steps > cx.step_limit {
                let pc = warp.current_pc();
                let site = Site {
                    pc,
                    warp: warp.index,
                    lanes: warp.live,
                    address: None,
                };
                env.full = true;
                env.abort = true;
                let steps = cx.step_limit;
                env.report(cx, FindingKind::StepLimit, site, &|| {
                    format!("a warp executed more than {steps} instructions")
                });
            }
            let ended = warp.live == 0;
            if env.barriers.any_active() {
                let first = k / each * each;
                barrier::serve(cx, env, &mut warps[first..first + each]);
            }
            if env.attention || env.gate.stirred || ended {
                serve(cx, env, warps, k / each, ended);
            }
            if env.abort {
                return;
            }
        }
        if !alive {
            return;
        }
        if moved {
            if rounds.forever(cx, env, warps, steps) {
                env.full = true;
                env.abort = true;
                return;
            }
            continue;
        }
        // Nobody moves: waits at mbarriers give up, as the hardware's do after a time.
        if env.events != events {
            (tired, events) = (0, env.events);
        }
        tired += 1;
        if tired > PATIENCE || !warps.iter().any(Warp::polls) {
            barrier::deadlock(cx, env, warps, each);
            return;
        }
        for w in warps.iter_mut().filter(|w| w.polls()) {
            w.expired = w.waits.iter().fold(0, |m, x| m | x.lanes);
            w.wake();
        }
    }
}

/// What takes more than one warp: `wgmma`, the barrier of the cluster, copies that mbarriers wait for, the end of block `rank`.
fn serve(cx: &Context<'_>, env: &mut Env, warps: &mut [Warp], rank: usize, ended: bool) {
    let each = cx.warps();
    env.attention = false;
    env.gate.serve(warps, each);
    let own = &mut warps[rank * each..(rank + 1) * each];
    wgmma::serve(cx, env, own);
    if env.mbarriers.track_copies() {
        if own.iter().any(Warp::polls) {
            mbarrier::serve_copies(cx, env, own);
        }
        env.attention = true;
    }
    if ended && own.iter().all(|w| w.live == 0) {
        block_end::end_block(cx, env, own);
    }
}
