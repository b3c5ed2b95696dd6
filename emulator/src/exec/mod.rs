//! The interpreter: blocks in parallel, warps of a block in turn, lanes of a warp together.
//!
//! A [`Context`] is what all blocks share and nobody changes. A [`Worker`] holds the blocks of one cluster: their warps, shared memory and barriers; it is used
//! for one cluster after the other. A [`Tally`] is what a host thread counts and finds. [`run`] lets each warp run until it waits, then serves the barriers, until
//! all warps are done, none can move, which is a deadlock, or all wait for other clusters; [`residents`] says which clusters run.

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
mod map_fences;
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
pub(crate) mod residents;
mod rounding;
mod rounds;
mod schedule;
mod services;
mod smem;
mod sources;
mod sparse;
mod stack;
mod start;
mod step;
mod stores;
mod sums;
mod tensor;
mod texture;
mod traffic;
mod transfer;
mod undefined;
mod view;
mod warp;
mod wgmma;
mod wgmma_product;
mod wide;
mod wmma;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::fences::Fences;
use crate::ir::Program;
use crate::launch::{Launch, Options};
use crate::memory::{Allocation, GlobalMemory};
use crate::module::Kernel;
use crate::pattern::Pattern;
use crate::proxies::Clocks;
use crate::report::{Finding, FindingKind, Traffic};
use crate::shared::Shadow;
use crate::shared_data::SharedData;

use barrier::Barriers;
use cluster::{BlockState, Gate};
use global::GlobalShadow;
use map_fences::MapFences;
use phases::Mbarriers;
use printed::Printed;
use printf::Formats;
use rounds::Mark;
use schedule::Schedule;
use sources::Sources;
use start::Restart;
use undefined::Origins;
pub(crate) use undefined::{ALL, READS};
use warp::{Split, State, Warp};
use wgmma::Warpgroups;

/// Instructions a warp runs before another gets its turn, if it does not wait earlier. Where blocks may wait for each other, a cluster starts with short turns and
/// doubles them, so that those that only look at memory are found out soon.
const SLICE: u32 = 1 << 16;
const FIRST_SLICE: u32 = 1 << 7;
/// The longest turn of a warp that is looked at closely.
const WATCHED_SLICE: u32 = 1 << 10;

/// How often a warp looks at memory, without an effect, if it waits for others.
const LOOKS: u32 = 4;
/// Instructions of a cluster without an effect on global memory after which it lets others run: if it has looked at global memory, and if not.
const QUIET: u64 = 1 << 16;
const LONG: u64 = 1 << 24;

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
    /// Some allocation counts the stores to its bytes.
    pub(crate) counts_stores: bool,
    /// Tensor maps in global memory, if the kernel copies by maps and the sanitizer is on.
    pub(crate) map_fences: Option<MapFences>,
    /// Of how many clusters one is run.
    pub(crate) stride: u64,
    /// Clusters that the device holds at once, and its name.
    pub(crate) residents: u64,
    pub(crate) device: &'static str,
    /// Address of what a cooperative launch gives to synchronise the grid; 0 for none.
    pub(crate) workspace: u64,
    /// Warp instructions of the whole run so far.
    steps: AtomicU64,
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
    /// Whether accesses of global memory are looked at beyond their bounds.
    pub(crate) fn observes(&self) -> bool {
        self.undefined_global || self.global_shadow.is_some() || self.counts_stores
    }

    pub(crate) fn new(
        kernel: &'a Kernel,
        launch: &Launch,
        params: &'a [u8],
        variables: &'a [u64],
        memory: &'a GlobalMemory,
        options: &Options,
        (residents, workspace): (u64, u64),
    ) -> Self {
        let program = &kernel.program;
        let blocks = |d: [u32; 3]| d.iter().map(|&d| u64::from(d)).product::<u64>();
        let all = blocks(launch.grid);
        let stride = match options.sample {
            // Blocks that wait for others need all of them.
            0 => 1,
            _ if program.communicates || launch.cooperative => 1,
            n => (all / n).max(1),
        };
        let shadow = || GlobalShadow::new(memory, program, program.global_grain);
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
            counts_stores: memory.allocations().iter().any(Allocation::counts_stores),
            map_fences: (options.sanitize && program.has_tensor_copies)
                .then(|| MapFences::new(memory)),
            stride,
            residents,
            device: options.device.name(),
            workspace,
            steps: AtomicU64::new(0),
            atomic_lock: Mutex::new(()),
            restart: Restart::new(program),
            simd: !options.portable && step::simd_available(),
        }
    }

    /// Warps of a block.
    pub(crate) fn warps(&self) -> usize {
        self.threads.div_ceil(32) as usize
    }

    /// Clusters of the grid that are run.
    pub(crate) fn clusters(&self) -> u64 {
        let blocks = |d: [u32; 3]| d.iter().map(|&d| u64::from(d)).product::<u64>();
        (blocks(self.grid) / blocks(self.cluster).max(1)).div_ceil(self.stride)
    }

    /// Counts `steps` more warp instructions of the run. If its limit is exceeded: whether it was not before.
    fn count(&self, steps: u64) -> Option<bool> {
        let (limit, before) = (self.total_step_limit, self.steps.fetch_add(steps, Relaxed));
        (before.saturating_add(steps) > limit).then_some(before <= limit)
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

/// The blocks of a cluster.
pub(crate) struct Worker {
    warps: Vec<Warp>,
    env: Env,
    turns: Turns,
}

/// How the warps of a cluster take turns. They do so in passes, in which each that can run has one turn.
#[derive(Debug, Default)]
struct Turns {
    /// The cluster.
    index: u64,
    schedule: Option<Schedule>,
    /// Instructions of a turn.
    slice: u32,
    /// Passes in which all that waits only gave up waiting at mbarriers, and the events before.
    tired: u32,
    events: u64,
    /// Instructions so far, at the last stop, and at the last effect on global memory.
    steps: u64,
    stopped: u64,
    quiet: u64,
    /// [`Env::published`] and [`Env::looks`] at these times.
    published_at_stop: u64,
    published: u64,
    looks: u64,
    /// Whether the cluster is looked at closely, and the events of all clusters when it went on.
    watched: bool,
    all_events: u64,
}

/// Whether a cluster has ended, or waits for others; then whether it goes round in loops.
pub(crate) enum Outcome {
    Ended,
    Waits { round: bool },
}

/// What a host thread counts and finds, and what it remembers of each instruction: in the [`Env`] of the cluster that it runs, else here.
#[derive(Default)]
pub(crate) struct Tally {
    counts: Vec<Count>,
    traffic: Vec<Traffic>,
    patterns: Vec<Pattern>,
    hints: Vec<u32>,
    findings: Findings,
    printed: Printed,
    formats: Formats,
    lacking: Option<(u64, u32)>,
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
    /// What asynchronous copies of the cluster read in global memory.
    pub(crate) sources: Sources,
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
    /// What the blocks have done that others could see, see [`rounds`]; of that, what other clusters could.
    pub(crate) effects: u64,
    pub(crate) published: u64,
    /// Accesses of global memory, and those of them that look for what other clusters do.
    pub(crate) touches: u64,
    pub(crate) looks: u64,
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
        let blocks = cx.blocks();
        let proxies = cx.program.uses_async;
        let others = proxies || blocks > 1;
        let shadow = |rank| {
            let mut clocks = Clocks::new(rank, blocks, proxies);
            clocks.fences = cx.program.relaxes.then(|| Box::new(Fences::new()));
            let grain = cx.program.shared_grain;
            cx.sanitize.then(|| {
                Shadow::new(
                    cx.shared_bytes,
                    grain,
                    (cx.warps(), others),
                    cx.lane_races,
                    clocks,
                )
            })
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
                counts: Vec::new(),
                traffic: Vec::new(),
                patterns: Vec::new(),
                hints: Vec::new(),
                findings: Findings::default(),
                origins: Origins::default(),
                shared: SharedData::new(cx.shared_bytes),
                shadow: shadow(0),
                barriers: Barriers::new(),
                mbarriers: Mbarriers::default(),
                groups: Warpgroups::default(),
                sources: Sources::default(),
                ended: false,
                rank: 0,
                blocks,
                parked,
                gate: Gate::default(),
                events: 0,
                effects: 0,
                published: 0,
                touches: 0,
                looks: 0,
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
            turns: Turns::default(),
        }
    }

    /// Takes what a host thread counts and finds, or releases it.
    fn exchange(&mut self, tally: &mut Tally) {
        use std::mem::swap;
        let env = &mut self.env;
        swap(&mut env.counts, &mut tally.counts);
        swap(&mut env.traffic, &mut tally.traffic);
        swap(&mut env.patterns, &mut tally.patterns);
        swap(&mut env.hints, &mut tally.hints);
        swap(&mut env.findings, &mut tally.findings);
        swap(&mut env.printed, &mut tally.printed);
        swap(&mut env.formats, &mut tally.formats);
        swap(&mut env.lacking, &mut tally.lacking);
    }

    /// The cluster goes on, watched closely if `watched`; there have been `events` of all clusters. Others may have changed memory since it was last seen in a loop.
    fn watch(&mut self, watched: bool, events: u64) {
        let turns = &mut self.turns;
        turns.watched = watched;
        if turns.all_events != events {
            turns.all_events = events;
            self.warps.iter_mut().for_each(|w| w.mark = Mark::default());
        }
    }

    /// The events of all clusters when it last went on.
    fn all_events(&self) -> u64 {
        self.turns.all_events
    }

    /// Number of the cluster.
    fn index(&self) -> u64 {
        self.turns.index
    }

    /// Warp instructions of the cluster.
    fn steps(&self) -> u64 {
        self.turns.steps
    }

    /// Its instructions since it stopped the last time, and whether other clusters could see what they did.
    fn since_last_stop(&mut self) -> (u64, bool) {
        let (turns, published) = (&mut self.turns, self.env.published);
        let result = (
            turns.steps - turns.stopped,
            turns.published_at_stop != published,
        );
        (turns.stopped, turns.published_at_stop) = (turns.steps, published);
        result
    }

    /// Reports that `resident` clusters wait, `forever` or for as long as they may, while `others` have not started.
    fn report_waits(&mut self, cx: &Context<'_>, forever: bool, resident: u64, others: u64) {
        let Self { warps, env, .. } = self;
        let Some(k) = warps.iter().position(|w| w.live != 0 && w.is_runnable()) else {
            return;
        };
        env.enter(k / cx.warps());
        let device = cx.device;
        let (size, limit) = (cx.blocks() as u64, cx.step_limit);
        let unstarted = match others * size {
            0 => String::new(),
            n => format!(
                "; {n} blocks have not started, since {device} holds {} at once",
                resident * size
            ),
        };
        rounds::report(cx, env, &warps[k], forever, &|| {
            if forever {
                format!(
                    "the lanes come back here with the same registers, and nobody changes the memory that they read: the loop never ends{unstarted}"
                )
            } else {
                format!(
                    "all {} blocks that run wait for others, and none has changed global memory for {limit} warp instructions{unstarted}",
                    resident * size
                )
            }
        });
    }

    /// Reports that the run has reached its limit while `left` blocks had still to run or to end.
    fn report_total(&mut self, cx: &Context<'_>, limit: u64, left: u64) {
        let site = Site::default();
        self.env.full = true;
        self.env.report(cx, FindingKind::StepLimit, site, &|| {
            format!(
                "the run executed more than {limit} warp instructions; it was given up with {left} blocks left"
            )
        });
    }

    /// No further blocks are worth running.
    fn is_full(&self) -> bool {
        self.env.full
    }
}

impl Tally {
    fn new(cx: &Context<'_>) -> Self {
        let n = cx.program.insts.len();
        Self {
            counts: vec![NO_COUNT; n],
            traffic: vec![Traffic::default(); if cx.profile { n } else { 0 }],
            patterns: vec![Pattern::default(); n],
            hints: vec![0; n],
            ..Self::default()
        }
    }

    /// The error of the missing instruction that was reached, if one was.
    pub(crate) fn lacking(&self) -> Option<u32> {
        self.lacking.map(|(_, number)| number)
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.printed.merge(&other.printed);
        self.lacking = match (self.lacking, other.lacking) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for (a, b) in self.traffic.iter_mut().zip(&other.traffic) {
            a.add(b);
        }
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
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
        for (key, (block, mut finding)) in other.findings.found {
            match self.findings.found.remove(&key) {
                Some((first, mut kept)) if first < block => {
                    kept.count += finding.count;
                    self.findings.found.insert(key, (first, kept));
                }
                old => {
                    finding.count += old.map_or(0, |(_, f)| f.count);
                    self.findings.found.insert(key, (block, finding));
                }
            }
        }
        self
    }

    /// Counts, traffic, findings and notes, and what was printed, block after block.
    pub(crate) fn finish(self) -> (Vec<Count>, Vec<Traffic>, [Vec<Finding>; 2], String) {
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        for ((_, _, grade), (_, finding)) in self.findings.found {
            match grade {
                Grade::Finding => findings.push(finding),
                Grade::Note => notes.push(finding),
            }
        }
        (
            self.counts,
            self.traffic,
            [findings, notes],
            self.printed.finish(),
        )
    }
}

/// Passes in which all warps only give up waiting at mbarriers and wait again, after which it is a hang.
const PATIENCE: u32 = 64;

impl Worker {
    /// Makes the blocks of cluster number `index` (x fastest) ready.
    fn begin(&mut self, cx: &Context<'_>, index: u64) {
        let Self { warps, env, turns } = self;
        let published = env.published;
        *turns = Turns {
            index,
            schedule: Schedule::new(cx.schedule, index),
            slice: if cx.program.communicates {
                FIRST_SLICE
            } else {
                SLICE
            },
            published_at_stop: published,
            published,
            looks: env.looks,
            ..Turns::default()
        };
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
        env.sources.reset();
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
}

/// Runs the blocks of a cluster until they end or wait for other clusters.
fn run(cx: &Context<'_>, worker: &mut Worker) -> Outcome {
    let Worker { warps, env, turns } = worker;
    let each = cx.warps();
    loop {
        let (mut moved, mut alive) = (false, false);
        // Whether all that moves only looks at memory.
        let mut looking = true;
        let (effects, looks) = (env.effects, env.looks);
        let order = turns.schedule.as_mut().map(|s| s.order(warps.len()));
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
            let (before, polls) = (warp.steps, warp.polls);
            let most = if turns.watched {
                turns.slice.min(WATCHED_SLICE)
            } else {
                turns.slice
            };
            let slice = match &mut turns.schedule {
                Some(schedule) => {
                    let lanes = schedule.below(warp.splits.len());
                    warp.prefer(lanes);
                    schedule.turn().min(most)
                }
                None => most,
            };
            step::run_warp(cx, env, warp, slice);
            let used = warp.steps - before;
            turns.steps += used;
            looking &= warp.polls - polls >= u64::from(LOOKS) || !warp.is_runnable();
            // In a random order, lanes that could go on may just not have had their turn.
            let is_running = |s: &&Split| s.mask != 0 && s.state == State::Running;
            let parted = warp.splits.iter().filter(is_running).count() > 1;
            if turns.schedule.is_some() && parted {
                warp.mark = Mark::default();
            } else {
                rounds::look(env, warp, turns.watched);
            }
            if let Some(first) = cx.count(used) {
                let limit = cx.total_step_limit;
                if first {
                    rounds::report(cx, env, warp, false, &|| {
                        format!("the run executed more than {limit} warp instructions")
                    });
                }
                (env.full, env.abort) = (true, true);
            } else if warp.steps > cx.step_limit {
                let limit = cx.step_limit;
                rounds::report(cx, env, warp, false, &|| {
                    format!("a warp executed more than {limit} instructions")
                });
            }
            let ended = warp.live == 0;
            if env.barriers.any_active() {
                let first = k / each * each;
                barrier::serve(env, &mut warps[first..first + each]);
            }
            if env.attention || env.gate.stirred || ended {
                serve(cx, env, warps, k / each, ended);
            }
            if env.abort {
                return Outcome::Ended;
            }
        }
        if !alive {
            return Outcome::Ended;
        }
        if moved {
            turns.slice = (2 * turns.slice).min(SLICE);
            let round = rounds::all(env, warps);
            if let Some((w, false)) = round {
                // Nobody else can let them go.
                rounds::report(cx, env, w, true, &|| {
                    "the lanes come back here with the same registers, and nobody changes the memory that they read: the loop never ends".to_owned()
                });
                return Outcome::Ended;
            }
            looking &= env.effects == effects && env.looks != looks;
            if looking || turns.is_quiet(env) || round.is_some() {
                turns.pause(cx, env);
                return Outcome::Waits {
                    round: round.is_some(),
                };
            }
            continue;
        }
        // Nobody moves: waits at mbarriers give up, as the hardware's do after a time.
        if env.events != turns.events {
            (turns.tired, turns.events) = (0, env.events);
        }
        turns.tired += 1;
        // If that does not help, lanes before instructions of several lanes go on alone.
        if turns.tired > 1 || !warps.iter().any(Warp::polls) {
            let mut parted = false;
            for w in warps.iter_mut() {
                parted |= w.give_up_others(true);
            }
            if parted {
                continue;
            }
        }
        if turns.tired > PATIENCE || !warps.iter().any(Warp::polls) {
            barrier::deadlock(cx, env, warps, each);
            return Outcome::Ended;
        }
        for w in warps.iter_mut().filter(|w| w.polls()) {
            w.expired = w.waits.iter().fold(0, |m, x| m | x.lanes);
            w.wake();
        }
    }
}

impl Turns {
    /// Whether the cluster has gone so long without an effect on global memory that it may wait for others.
    fn is_quiet(&mut self, env: &Env) -> bool {
        if env.published != self.published {
            (self.published, self.quiet, self.looks) = (env.published, self.steps, env.looks);
        }
        let steps = self.steps - self.quiet;
        steps >= if env.looks == self.looks { LONG } else { QUIET }
    }

    /// The cluster lets others run.
    fn pause(&mut self, cx: &Context<'_>, env: &Env) {
        (self.quiet, self.looks) = (self.steps, env.looks);
        if cx.program.communicates {
            self.slice = FIRST_SLICE;
        }
    }
}

/// What takes more than one warp: `wgmma`, the barrier of the cluster, copies that mbarriers wait for, the end of block `rank`.
fn serve(cx: &Context<'_>, env: &mut Env, warps: &mut [Warp], rank: usize, ended: bool) {
    let each = cx.warps();
    env.attention = false;
    cluster::serve_gate(env, warps, each);
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
