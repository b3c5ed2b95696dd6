//! Clusters: the blocks of one run together, each other's shared memory, and the barrier of the cluster (PTX ISA, section 9.7.13.3).
//!
//! A worker runs all blocks of a cluster, in turn. What belongs to one block is in the fields of [`Env`] while it runs and in
//! [`Env::parked`] while another does.

use super::barrier::{Barriers, lane_list};
use super::mem::{addresses, get_lane, lanes_of, set_lane};
use super::phases::Mbarriers;
use super::places::by_rank;
use super::smem::report_conflict;
use super::warp::{State, Warp};
use super::wgmma::Warpgroups;
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::ir::{Access, Scope};
use crate::lane_order::covers;
use crate::proxies::{Knowledge, REMOTE_READER, Remote};
use crate::report::FindingKind;
use crate::shared::{Cell, IN_FLIGHT, REMOTE, Shadow, Who};
use crate::shared_conflicts::Conflict;
use crate::shared_data::SharedData;

/// What belongs to one block of a cluster.
pub(crate) struct BlockState {
    pub(crate) shared: SharedData,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) barriers: Barriers,
    pub(crate) mbarriers: Mbarriers,
    pub(crate) groups: Warpgroups,
    pub(crate) block: u64,
    pub(crate) ctaid: [u32; 3],
    pub(crate) clock: u64,
    /// All its warps have exited.
    pub(crate) ended: bool,
}

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Phases completed.
    phase: u64,
    /// Lanes that have arrived, by rank and warp.
    arrived: Vec<[u32; 32]>,
    /// What those who arrive know, and what those knew who completed the last phase.
    seen: Knowledge,
    done: Knowledge,
    /// The same by rank of what is passed on to the block alone: at a fence of its scope, by relaxed arrivals.
    seen_within: Vec<Knowledge>,
    done_within: Vec<Knowledge>,
    /// Somebody has arrived or exited.
    pub(crate) stirred: bool,
}

impl Gate {
    pub(crate) fn reset(&mut self, blocks: usize) {
        // Every block of a worker uses the same memory.
        let old = std::mem::take(self);
        let (mut arrived, mut within) = (old.arrived, [old.seen_within, old.done_within]);
        arrived.clear();
        arrived.resize(blocks, [0; 32]);
        for knowledge in &mut within {
            knowledge.clear();
            knowledge.resize(blocks, Knowledge::NONE);
        }
        self.arrived = arrived;
        [self.seen_within, self.done_within] = within;
    }

    /// Whether somebody has arrived, and so have all live lanes: of warps that come block after block, `warps` to a block.
    fn is_complete(&self, all: &[Warp], warps: usize) -> bool {
        self.arrived.iter().flatten().any(|m| *m != 0)
            && all.iter().enumerate().all(|(k, w)| {
                let here = self.arrived[k / warps][w.index as usize & 31];
                w.live & !here == 0
            })
    }

    /// Completes the phase.
    fn complete(&mut self, all: &mut [Warp]) {
        self.phase += 1;
        self.arrived.fill([0; 32]);
        self.done = std::mem::replace(&mut self.seen, Knowledge::NONE);
        self.done_within.fill(Knowledge::NONE);
        std::mem::swap(&mut self.seen_within, &mut self.done_within);
        for s in all.iter_mut().flat_map(|w| &mut w.splits) {
            if s.mask != 0 && s.state == State::Cluster {
                s.state = State::Running;
            }
        }
    }
}

/// Completes the phase of the cluster's barrier if all live lanes have arrived: of warps that come block after block, `warps` to a block. What the warps
/// did that have exited is ordered before it.
pub(crate) fn serve_gate(env: &mut Env, all: &mut [Warp], warps: usize) {
    env.gate.stirred = false;
    if !env.gate.is_complete(all, warps) {
        return;
    }
    let mut exited = Knowledge::NONE;
    for (k, w) in all.iter().enumerate().filter(|(_, w)| w.live == 0) {
        env.within(k / warps, |env| {
            if let Some(shadow) = &env.shadow {
                shadow.give(w.index as usize, &mut exited);
            }
        });
    }
    env.gate.seen.add(&exited);
    env.gate.complete(all);
}

impl Env {
    /// Makes block `rank` of the cluster the current one.
    pub(crate) fn enter(&mut self, rank: usize) {
        if rank == self.rank {
            return;
        }
        let from = std::mem::replace(&mut self.rank, rank);
        for r in [from, rank] {
            let Some(p) = self.parked.get_mut(r) else {
                continue;
            };
            std::mem::swap(&mut self.shared, &mut p.shared);
            std::mem::swap(&mut self.shadow, &mut p.shadow);
            std::mem::swap(&mut self.barriers, &mut p.barriers);
            std::mem::swap(&mut self.mbarriers, &mut p.mbarriers);
            std::mem::swap(&mut self.groups, &mut p.groups);
            std::mem::swap(&mut self.block, &mut p.block);
            std::mem::swap(&mut self.ctaid, &mut p.ctaid);
            std::mem::swap(&mut self.clock, &mut p.clock);
            std::mem::swap(&mut self.ended, &mut p.ended);
        }
    }

    /// Does `f` with block `rank` as the current one.
    pub(crate) fn within<T>(&mut self, rank: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        let back = self.rank;
        self.enter(rank);
        let result = f(self);
        self.enter(back);
        result
    }

    /// Whether block `rank` has exited; reports an access of it.
    pub(crate) fn check_alive(&mut self, cx: &Context<'_>, site: Site, rank: usize) -> bool {
        let ended = rank != self.rank && self.parked.get(rank).is_some_and(|p| p.ended);
        if ended {
            self.report(cx, FindingKind::BlockExited, site, &|| {
                format!("access to the shared memory of block {rank} of the cluster, all of whose threads have exited; a barrier.cluster before its exit keeps it alive")
            });
        }
        !ended
    }
}

/// A load or store of the shared memory of another block.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn remote(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    lanes: u32,
    store: bool,
    rank: usize,
    space: Space,
) {
    let (bytes, count) = (u32::from(a.bytes), u32::from(a.count));
    let total = bytes * count;
    let at = addresses(w, a.address);
    for l in lanes_of(lanes) {
        let Some(offset) = remote_place(cx, env, w, pc, (l, at[l]), total, rank, space) else {
            continue;
        };
        observe(cx, env, w, pc, l, rank, (offset, total), store, a.strong);
        for (e, reg) in a.regs.iter().enumerate().take(count as usize) {
            let place = offset + e as u32 * bytes;
            if store {
                let value = get_lane(w, *reg, l);
                env.within(rank, |env| env.shared.store(place, bytes, value));
            } else {
                let value = env.within(rank, |env| env.shared.load(place, bytes));
                set_lane(w, *reg, l, value, bytes, a.signed);
            }
        }
    }
}

/// Resolves the address of lane `l` in the shared memory of block `rank`, and reports an invalid one.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn remote_place(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    (l, address): (usize, u64),
    bytes: u32,
    rank: usize,
    space: Space,
) -> Option<u32> {
    let site = Site {
        pc,
        warp: w.index,
        lanes: 1 << l,
        address: Some(address),
    };
    let Some((_, offset)) = env.place(space, address, bytes) else {
        let place = env.describe(space, address);
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("lane {l} accesses {bytes} bytes at {place}")
        });
        return None;
    };
    if !address.is_multiple_of(u64::from(bytes)) {
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!("lane {l} accesses {bytes} bytes at shared address {address:#x}, not a multiple of {bytes}")
        });
        return None;
    }
    env.check_alive(cx, site, rank).then_some(offset)
}

/// Records an access of `bytes` at `offset` of block `rank`'s shared memory, and reports it if it is a race.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn observe(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    lane: usize,
    rank: usize,
    (offset, bytes): (u32, u32),
    store: bool,
    strong: bool,
) {
    let Some(shadow) = &env.shadow else { return };
    let warp = w.index as usize & 31;
    let seen = shadow.clocks.far(warp, rank);
    let some = shadow.clocks.some(warp, rank);
    let own = env.rank;
    let mut who = Who::new(pc, w.index, lane as u32);
    if strong {
        who = who.atomic();
    }
    let me = Remote {
        rank: own as u32,
        who,
        clock: shadow.seen[warp][warp],
    };
    // What this warp knows of third blocks.
    let knows = |other: &Remote| {
        shadow.clocks.has_seen(warp, other)
            || (other.rank as usize == own
                && shadow.seen[warp][other.who.warp() as usize & 63] >= other.clock)
    };
    let target = env.parked.get(rank).and_then(|p| p.shadow.as_ref());
    let Some(target) = target else { return };
    let units = units(target, offset, bytes);
    let mut conflict = None;
    for u in units.clone() {
        let cell = target.cells[u];
        let both_strong = strong && cell.who.is_atomic();
        let written = match cell.clock {
            IN_FLIGHT => Some(Conflict::InFlight(cell.who)),
            REMOTE => target
                .remote_writes
                .get(&u)
                .filter(|o| !(knows(o) || strong && o.who.is_atomic()))
                .map(|o| Conflict::Elsewhere {
                    other: *o,
                    wrote: true,
                }),
            0 if store => None,
            0 => Some(Conflict::Undefined),
            c if c > seen[cell.who.warp() as usize & 63]
                && !covers(some, cell.who, c)
                && !both_strong =>
            {
                let other = Remote {
                    rank: rank as u32,
                    who: cell.who,
                    clock: c,
                };
                Some(Conflict::Elsewhere { other, wrote: true })
            }
            _ if store => None,
            _ => target.holds_undefined(u),
        };
        let read = || {
            let who = match target.unread(u, &seen, some)? {
                Conflict::AfterRead { who: Some(who), .. } | Conflict::BeingRead(who) => who,
                Conflict::AfterRead { warp, .. } => Who::new(pc, warp, 0),
                _ => return None,
            };
            let other = Remote {
                rank: rank as u32,
                who,
                clock: 0,
            };
            Some(Conflict::Elsewhere {
                other,
                wrote: false,
            })
        };
        let read_elsewhere = || {
            let other = *target.remote_reads.get(&u).filter(|o| !knows(o))?;
            Some(Conflict::Elsewhere {
                other,
                wrote: false,
            })
        };
        let read = || read().or_else(read_elsewhere);
        let found = written.or_else(|| if store { read() } else { None });
        conflict = conflict.or(found.map(|c| (u, c)));
    }
    let grain = target.grain;
    if let Some(target) = env.parked.get_mut(rank).and_then(|p| p.shadow.as_mut()) {
        for u in units {
            if store {
                target.cells[u] = Cell { clock: REMOTE, who };
                target.remote_writes.insert(u, me);
            } else if !strong {
                target.mark_read(u, REMOTE_READER, IN_FLIGHT);
                target.remote_reads.insert(u, me);
            }
        }
    }
    if let Some((u, c)) = conflict {
        report_conflict(cx, env, who, (rank, (u as u32) << grain), c, store);
    }
}

/// The units that `bytes` bytes from `offset` on lie in.
pub(crate) fn units(shadow: &Shadow, offset: u32, bytes: u32) -> std::ops::Range<usize> {
    let first = (offset >> shadow.grain) as usize;
    let last = ((offset + bytes.max(1) - 1) >> shadow.grain) as usize;
    first.min(shadow.cells.len())..(last + 1).min(shadow.cells.len())
}

/// `barrier.cluster.arrive`. A relaxed one passes on which asynchronous operations are complete, the mbarriers that a fence has released, and what its lanes knew at
/// their last fence.
pub(crate) fn arrive(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    (aligned, relaxed): (bool, bool),
    active: u32,
) {
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    divergent(cx, env, w, site, aligned, active);
    let here = env.gate.arrived[env.rank][w.index as usize & 31];
    if here & active != 0 {
        let again = here & active;
        env.report(cx, FindingKind::BarrierMismatch, site, &|| {
            format!(
                "lanes {} arrive at the barrier of the cluster again before it has completed",
                lane_list(again)
            )
        });
    }
    let phase = env.gate.phase;
    env.gate.arrived[env.rank][w.index as usize & 31] |= active;
    env.gate.stirred = true;
    for l in lanes_of(active) {
        w.gate[l] = Some(phase);
    }
    env.mbarriers.pass_gate(w.index, active, phase);
    if let Some(shadow) = &mut env.shadow {
        if relaxed {
            let (warp, gate) = (w.index as usize, &mut env.gate);
            shadow.give_completed(warp, &mut gate.seen);
            shadow.give_fenced(warp, Scope::Cluster, active, &mut gate.seen);
            let within = &mut gate.seen_within[env.rank];
            shadow.give_fenced(warp, Scope::Block, active, within);
        } else {
            shadow.give(w.index as usize, &mut env.gate.seen);
        }
        shadow.tick(w.index as usize);
    }
}

/// `barrier.cluster.wait`. Returns whether the lanes must wait.
pub(crate) fn wait(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    aligned: bool,
    active: u32,
) -> bool {
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    divergent(cx, env, w, site, aligned, active);
    let without = lanes_of(active)
        .filter(|&l| w.gate[l].is_none())
        .fold(0u32, |m, l| m | 1 << l);
    if without != 0 {
        env.report(cx, FindingKind::BarrierMismatch, site, &|| {
            format!(
                "lanes {} wait at the barrier of the cluster without having arrived",
                lane_list(without)
            )
        });
    }
    let phase = env.gate.phase;
    if lanes_of(active).any(|l| w.gate[l].is_some_and(|p| p == phase)) {
        return true;
    }
    for l in lanes_of(active) {
        w.gate[l] = None;
    }
    w.gates = phase;
    if let Some(shadow) = &mut env.shadow {
        shadow.take(w.index as usize, &env.gate.done);
        shadow.take(w.index as usize, &env.gate.done_within[env.rank]);
        shadow.order_lanes(w.index as usize);
    }
    false
}

fn divergent(cx: &Context<'_>, env: &mut Env, w: &Warp, site: Site, aligned: bool, active: u32) {
    if aligned && w.apart & active != 0 {
        let missing = w.live & !active;
        env.report(cx, FindingKind::Divergent, site, &|| {
            format!(
                "executed by lanes {} only; lanes {} are elsewhere",
                lane_list(active),
                lane_list(missing)
            )
        });
    }
}

/// The shared accesses of `lanes`, at generic or cluster addresses `at`: those of the own block by `own`, the others as remote ones.
#[allow(clippy::too_many_arguments)] // an access is that much
pub(crate) fn sort(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    a: &Access,
    at: &[u64; 32],
    lanes: u32,
    store: bool,
    window: u64,
) {
    let space = if window == 0 {
        Space::Cluster
    } else {
        Space::Generic
    };
    for (rank, lanes) in by_rank(at, lanes, window) {
        if rank == env.rank {
            super::lds::shared(cx, env, w, pc, a, lanes, store, window);
        } else {
            remote(cx, env, w, pc, a, lanes, store, rank, space);
        }
    }
}
