//! The sixteen barriers of a block (PTX ISA, section 9.7.13.1), and what happens when nobody can move.
//!
//! A barrier without a thread count completes when every warp that still lives has arrived with all its live lanes: it waits for the threads that have not
//! exited, and orders what the others did before they exited. With a count, it completes when that many threads have arrived, full warps counting 32; threads
//! that exit do not arrive. Completion joins the clocks of all who arrived, so that accesses before it are ordered before accesses after it; `bar.arrive` gives
//! its clock and goes on.
//!
//! `.aligned` (which `bar` always is) promises that all threads execute the same instruction: those of a warp, for which [`Warp::wait_for_others`] waits, and,
//! without a count, those of the block. With a count, roles may meet at instructions of their own.

use std::fmt::Write;

use super::mem::lanes_of;
use super::warp::{State, Warp};
use super::{Context, Env, Site};
use crate::ir::{Bar, BarKind, NONE, Reg};
use crate::proxies::Knowledge;
use crate::report::FindingKind;
use crate::types::File;

/// One barrier.
#[derive(Debug, Clone)]
// Each flag is a fact of its own.
#[allow(clippy::struct_excessive_bools)]
struct Barrier {
    /// Threads it waits for; `None` for the whole block.
    count: Option<u32>,
    /// Lanes that arrived, by warp.
    arrived: [u32; 32],
    /// Warp, split and destination of who waits.
    waiting: Vec<(u32, usize, Reg, BarKind)>,
    /// What the arrived warps had seen of each other's clocks.
    seen: Knowledge,
    popc: u32,
    all: bool,
    any: bool,
    /// The first arrival: where, whether it was `.aligned`, of which warp, and whether it was a reduction.
    pc: usize,
    aligned: bool,
    warp: u32,
    reduces: bool,
}

/// The barriers of a block.
#[derive(Debug)]
pub(crate) struct Barriers {
    list: Vec<Barrier>,
    /// Barriers at which somebody has arrived, as bits.
    active: u16,
}

const IDLE: Barrier = Barrier {
    count: None,
    arrived: [0; 32],
    waiting: Vec::new(),
    seen: Knowledge::NONE,
    popc: 0,
    all: true,
    any: false,
    pc: 0,
    aligned: false,
    warp: 0,
    reduces: false,
};

impl Barriers {
    pub(crate) fn new() -> Self {
        Self {
            list: vec![IDLE; 16],
            active: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        if self.active != 0 {
            self.list.fill(IDLE);
        }
        self.active = 0;
    }

    pub(crate) fn any_active(&self) -> bool {
        self.active != 0
    }
}

/// The lanes of a mask in words.
pub(crate) fn lane_list(mask: u32) -> String {
    let mut parts = Vec::new();
    let mut lane = 0;
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let first = lane;
        while lane < 32 && mask >> lane & 1 == 1 {
            lane += 1;
        }
        parts.push(if lane - first == 1 {
            first.to_string()
        } else {
            format!("{first}-{}", lane - 1)
        });
    }
    parts.join(",")
}

/// The current split of `w` arrives. Returns whether it must wait.
#[inline(never)]
pub(crate) fn arrive(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    bar: &Bar,
    active: u32,
) -> bool {
    let lane = active.trailing_zeros() as usize & 31;
    let site = Site {
        pc,
        warp: w.index,
        lanes: active,
        address: None,
    };
    let id = w.r32[bar.id as usize][lane];
    let count = (bar.count != NONE).then(|| w.r32[bar.count as usize][lane]);
    let uniform = |row: u32| {
        row == NONE || lanes_of(active).all(|l| w.r32[row as usize][l] == w.r32[row as usize][lane])
    };
    if !uniform(bar.id) || !uniform(bar.count) {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            "lanes of the warp name different barriers or counts".to_owned()
        });
    }
    if id > 15 {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            format!("barrier {id}; there are 0 to 15")
        });
        return false;
    }
    if let Some(n) = count.filter(|n| n % 32 != 0 || *n == 0) {
        env.report(cx, FindingKind::BadOperand, site, &|| {
            format!("a thread count of {n} is not a positive multiple of 32")
        });
        return false;
    }
    if bar.aligned && w.apart & active != 0 {
        let missing = w.live & !active;
        env.report(cx, FindingKind::Divergent, site, &|| {
            format!(
                "executed by lanes {} only; lanes {} are elsewhere",
                lane_list(active),
                lane_list(missing)
            )
        });
    }
    let Some(b) = env.barriers.list.get_mut(id as usize) else {
        return false;
    };
    let fresh = env.barriers.active >> id & 1 == 0;
    let reduces = !matches!(bar.kind, BarKind::Sync | BarKind::Arrive);
    let mut problem = None;
    let mut elsewhere = None;
    if fresh {
        b.count = count;
        (b.pc, b.aligned, b.warp, b.reduces) = (pc, bar.aligned, w.index, reduces);
    } else if b.count != count {
        problem = Some(format!(
            "barrier {id} is in use with a count of {} and now {}",
            threads(b.count),
            threads(count)
        ));
    } else if b.arrived[w.index as usize & 31] & active != 0 {
        problem = Some(format!(
            "the warp arrives at barrier {id} again before it has completed"
        ));
    } else if b.reduces != reduces {
        let line = cx.program.meta[b.pc].line;
        problem = Some(format!(
            "barrier {id} is in use by line {line}: bar.red and the others do not mix"
        ));
    } else if count.is_none() && b.pc != pc && b.warp != w.index && (b.aligned || bar.aligned) {
        elsewhere = Some((b.warp, cx.program.meta[b.pc].line));
    }
    env.barriers.active |= 1 << id;
    b.arrived[w.index as usize & 31] |= active;
    if bar.p != NONE {
        let p = w.p[bar.p as usize] ^ if bar.negated { u32::MAX } else { 0 };
        b.popc += (p & active).count_ones();
        b.all &= p & active == active;
        b.any |= p & active != 0;
    }
    if let Some(shadow) = &mut env.shadow {
        shadow.give(w.index as usize, &mut b.seen);
        if bar.kind == BarKind::Arrive {
            shadow.tick(w.index as usize);
        }
    }
    let wait = bar.kind != BarKind::Arrive;
    if wait {
        b.waiting.push((w.index, w.current, bar.d, bar.kind));
    }
    if let Some(text) = problem {
        env.report(cx, FindingKind::BarrierMismatch, site, &|| text.clone());
    }
    if let Some((other, line)) = elsewhere {
        env.report(cx, FindingKind::Divergent, site, &|| {
            format!("warp {other} waits at barrier {id} in line {line}, not here: without a thread count, all threads of the block must execute the same .aligned barrier")
        });
    }
    wait
}

fn threads(count: Option<u32>) -> String {
    count.map_or_else(|| "the whole block".to_owned(), |n| format!("{n} threads"))
}

/// Completes every barrier that can complete.
#[inline(never)]
pub(crate) fn serve(env: &mut Env, warps: &mut [Warp]) {
    for id in 0..16 {
        if env.barriers.active >> id & 1 == 0 {
            continue;
        }
        let b = &env.barriers.list[id];
        let complete = match b.count {
            None => warps
                .iter()
                .all(|w| w.live & !b.arrived[w.index as usize & 31] == 0),
            Some(n) => {
                let of = |w: &Warp| match b.arrived[w.index as usize & 31] {
                    0 => 0,
                    m if w.live & !m == 0 => 32,
                    m => m.count_ones(),
                };
                warps.iter().map(of).sum::<u32>() >= n
            }
        };
        if complete {
            release(env, warps, id);
        }
    }
}

fn release(env: &mut Env, warps: &mut [Warp], id: usize) {
    let mut b = std::mem::replace(&mut env.barriers.list[id], IDLE);
    env.barriers.active &= !(1 << id);
    if let (None, Some(shadow)) = (b.count, &env.shadow) {
        for w in warps.iter().filter(|w| w.live == 0) {
            shadow.give(w.index as usize, &mut b.seen);
        }
    }
    for (warp, split, d, kind) in b.waiting {
        let w = &mut warps[warp as usize];
        let Some(s) = w.splits.get_mut(split) else {
            continue;
        };
        s.state = State::Running;
        let mask = s.mask;
        match (kind, d.file) {
            _ if d.row == NONE => {}
            (BarKind::RedPopc, _) => {
                for l in lanes_of(mask) {
                    w.r32[d.row as usize][l] = b.popc;
                }
            }
            (_, File::Pred) => {
                let truth = if kind == BarKind::RedAnd {
                    b.all
                } else {
                    b.any
                };
                let p = &mut w.p[d.row as usize];
                *p = if truth { *p | mask } else { *p & !mask };
            }
            _ => {}
        }
        if let Some(shadow) = &mut env.shadow {
            shadow.take(warp as usize, &b.seen);
            shadow.order_lanes(warp as usize);
        }
    }
}

/// Nothing moves and somebody still lives: of `warps`, `each` to a block.
#[inline(never)]
pub(crate) fn deadlock(cx: &Context<'_>, env: &mut Env, warps: &[Warp], each: usize) {
    let mut places = Vec::new();
    let mut first = None;
    let mut exited = 0;
    for (k, w) in warps.iter().enumerate() {
        exited += u32::from(w.live == 0);
        env.enter(k / each);
        for s in w.splits.iter().filter(|s| s.mask != 0) {
            // A barrier is behind the split, what is tried again before it.
            let again = matches!(
                s.state,
                State::Poll | State::Cluster | State::Wgmma(_) | State::Together
            );
            let pc = (s.pc as usize).saturating_sub(usize::from(!again));
            let line = cx.program.meta[pc].line;
            let opcode = &cx.program.meta[pc].opcode;
            first = first.or(Some((
                k / each,
                Site {
                    pc,
                    warp: w.index,
                    lanes: s.mask,
                    address: None,
                },
            )));
            let whole = if s.mask == w.launched {
                String::new()
            } else {
                format!(" lanes {}", lane_list(s.mask))
            };
            let block = if env.blocks > 1 {
                format!("block {} of the cluster, ", k / each)
            } else {
                String::new()
            };
            let mut place = format!("{block}warp {}{whole} at line {line} ({opcode})", w.index);
            let waits = w.waits.iter().find(|x| x.lanes & s.mask != 0);
            if let (State::Poll, Some(x)) = (s.state, waits) {
                place += " for ";
                place += &env.mbarriers.describe(x.offset, x.phase, w.index);
            }
            places.push(place);
        }
    }
    let Some((rank, site)) = first else { return };
    for rank in 0..env.blocks {
        env.enter(rank);
        super::block_end::report_unbalanced(cx, env);
    }
    env.enter(rank);
    let more = places.len().saturating_sub(8);
    places.truncate(8);
    let mut text = format!("every warp waits: {}", places.join(", "));
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    if exited > 0 {
        let _ = write!(text, "; {exited} warps have exited");
    }
    env.report(cx, FindingKind::Deadlock, site, &|| text.clone());
}
