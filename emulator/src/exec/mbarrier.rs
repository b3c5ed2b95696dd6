//! mbarriers (PTX ISA, section 9.7.13.15): counts of arrivals and bytes that make phases.
//!
//! An object has a phase, the arrivals that the phase still needs and the bytes that it still expects; when both are zero the phase completes and
//! the next begins with the full count of arrivals. What threads know when they arrive belongs to the phase, and who finds it completed learns
//! it. A wait for parity P is for the current phase if that has parity P, and otherwise for the one before, which is complete: so a fresh
//! object lets a wait for parity 1 pass.
//!
//! A wait that finds its phase incomplete is false the first time, as the hardware's may be after a while: who does not try again shows. The second time
//! it lands the copies that this object tracks, which come as late as the rules permit. If that is not enough the lanes are suspended until some
//! phase completes. When nobody else can move the wait gives up and is false; if all warps only wait again, it is a hang.
//!
//! The object's 8 bytes hold its state, so that a store over it shows at the next operation.

use super::bulk::Landing;
use super::mem::{addresses, lanes_of};
use super::phases::{Arrived, CopyArrival, MOST, Object};
use super::rare::{get, set};
use super::step::{Next, set_pred};
use super::warp::{State, Warp};
use super::{Context, Env, Site};
use crate::ast::Space;
use crate::ir::{Mbarrier, MbarrierKind, NONE, Scope};
use crate::proxies::{Knowledge, Remote, mbarrier_actor};
use crate::report::FindingKind;
use crate::shared::Who;

/// A lane's wait that is suspended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    pub(crate) offset: u32,
    /// The phase waited for.
    pub(crate) phase: u64,
}

/// Where an operation on an object happens.
#[derive(Debug, Clone, Copy)]
struct At {
    site: Site,
    rank: usize,
    offset: u32,
    /// The block of the executing warp.
    from: usize,
}

fn misuse(cx: &Context<'_>, env: &mut Env, at: &At, text: &dyn Fn() -> String) {
    let (from, site) = (at.from, at.site);
    env.within(from, |env| {
        env.report(cx, FindingKind::Mbarrier, site, text);
    });
}

/// Stores the state of the object at `offset` into its bytes.
fn save(env: &mut Env, offset: u32) {
    if let Some(o) = env.mbarriers.objects.get(&offset) {
        let image = o.image();
        env.shared.store(offset, 8, image);
    }
}

/// The object at `at`, of the current block, must be valid; reports it if not.
fn valid(cx: &Context<'_>, env: &mut Env, at: &At) -> bool {
    let offset = at.offset;
    let bytes = env.shared.load(offset, 8);
    let Some(o) = env.mbarriers.objects.get(&offset) else {
        misuse(cx, env, at, &|| {
            format!(
                "shared byte {offset} holds no mbarrier: mbarrier.init has not made it, or mbarrier.inval has ended it"
            )
        });
        return false;
    };
    let pc = o.init.2;
    if bytes != o.image() {
        let line = cx.program.meta[pc].line;
        misuse(cx, env, at, &|| {
            format!(
                "the mbarrier at shared byte {offset}, initialised at line {line}, has been overwritten with other data: mbarrier.inval must come first"
            )
        });
        save(env, offset);
    }
    true
}

/// Whether the executing warp is ordered after the initialisation of the object; reports it if not.
fn check_init(cx: &Context<'_>, env: &mut Env, w: &Warp, at: &At) {
    let warp = w.index as usize & 31;
    let (rank, offset) = (at.rank, at.offset);
    let init = env.within(rank, |env| {
        let o = env.mbarriers.objects.get(&offset)?;
        let waited = o.gate.is_some_and(|phase| phase < w.gates);
        (!waited).then_some(o.init)
    });
    let (Some((by, clock, pc)), Some(shadow)) = (init, &env.shadow) else {
        return;
    };
    let by = by as usize & 31;
    let seen = if rank == env.rank {
        shadow.seen[warp][by]
    } else {
        shadow.clocks.far(warp, rank)[by]
    };
    let some = shadow.clocks.some(warp, rank).map_or(0, |s| s[by].clock);
    if seen.max(some) < clock {
        let line = cx.program.meta[pc].line;
        let site = at.site;
        let barrier = if rank == env.rank {
            "barrier"
        } else {
            "barrier of the cluster"
        };
        env.report(cx, FindingKind::Mbarrier, site, &|| {
            format!("the mbarrier at shared byte {offset} is used, and nothing orders this after its initialisation by warp {by} at line {line}: a {barrier} must lie between")
        });
    }
}

/// An asynchronous operation of `w` will signal the object at `offset` of block `rank`: it must exist and, if the operation belongs to the asynchronous
/// `proxy`, be visible to that.
pub(crate) fn check_target(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    site: Site,
    (rank, offset): (usize, u32),
    proxy: bool,
) -> bool {
    let at = At {
        site,
        rank,
        offset,
        from: env.rank,
    };
    if !env.within(rank, |env| valid(cx, env, &at)) {
        return false;
    }
    check_init(cx, env, w, &at);
    let Some((by, clock, pc)) = env.within(rank, |env| {
        let o = env.mbarriers.objects.get(&offset)?;
        (proxy && !o.published).then_some(o.init)
    }) else {
        return true;
    };
    let fenced = env.shadow.as_ref().map_or(u32::MAX, |s| {
        s.clocks.fenced(w.index as usize & 31, rank)[by as usize & 31]
    });
    if fenced < clock {
        let line = cx.program.meta[pc].line;
        if env.within(rank, |env| env.mbarriers.is_half_published(offset)) {
            env.note(cx, FindingKind::MissingProxyFence, site, &|| {
                format!("the copy signals the mbarrier at shared byte {offset}, initialised at line {line}: the fence.mbarrier_init behind that was executed by another thread than the initialisation, for which alone it speaks by the ISA")
            });
            return true;
        }
        env.report(cx, FindingKind::MissingProxyFence, site, &|| {
            format!("the copy signals the mbarrier at shared byte {offset}, whose initialisation at line {line} no fence.mbarrier_init.release.cluster or fence.proxy.async makes visible to the asynchronous proxy")
        });
    }
    true
}

/// `count` bytes are expected by (or with a negative count, have come to) the object at `offset` of the current block.
fn count_bytes(cx: &Context<'_>, env: &mut Env, at: &At, count: i64) {
    let Some(o) = env.mbarriers.objects.get_mut(&at.offset) else {
        return;
    };
    o.tx += count;
    o.counted = at.site.pc;
    let (tx, offset) = (o.tx, at.offset);
    if tx.abs() > MOST {
        o.tx = tx.clamp(-MOST, MOST);
        misuse(cx, env, at, &|| {
            format!(
                "the mbarrier at shared byte {offset} would expect {tx} bytes; it counts to {MOST}"
            )
        });
    }
}

/// Completes the phase of the object at `offset` of the current block if it is due.
fn settle(env: &mut Env, offset: u32) {
    let Some(o) = env.mbarriers.objects.get_mut(&offset) else {
        return;
    };
    if o.pending == 0 && o.tx == 0 {
        o.phase += 1;
        o.pending = o.expected;
        let seen = std::mem::take(&mut o.seen);
        o.done.add(&seen);
        env.events += 1;
    }
    save(env, offset);
}

/// `count` arrivals at the object of the current block; `what` is known to those who arrive.
fn arrive(cx: &Context<'_>, env: &mut Env, at: &At, count: i64, what: Option<&Knowledge>) {
    let Some(o) = env.mbarriers.objects.get_mut(&at.offset) else {
        return;
    };
    if let Some(k) = what {
        let own = at.from == at.rank;
        let seen = if own {
            &mut o.seen.own
        } else {
            &mut o.seen.others
        };
        seen.add(k);
    }
    let (left, expected, phase, offset) = (o.pending, o.expected, o.phase, at.offset);
    o.pending = (left - count).max(0);
    if count > left {
        misuse(cx, env, at, &|| {
            format!(
                "{count} arrivals at the mbarrier at shared byte {offset} in phase {phase}, which needs only {left} more of {expected}"
            )
        });
    }
}

/// Lands the copies that the object at `offset` of the current block tracks.
fn land(cx: &Context<'_>, env: &mut Env, offset: u32) {
    let Some(o) = env.mbarriers.objects.get_mut(&offset) else {
        return;
    };
    let landings = std::mem::take(&mut o.landings);
    if landings.is_empty() {
        return;
    }
    let actor = o.actor;
    let clock = env.shadow.as_mut().map(|s| s.clocks.advance(actor));
    let rank = env.rank;
    for landing in landings {
        landing.land(cx, env, actor, clock.unwrap_or(0));
        let site = Site {
            pc: landing.pc,
            warp: landing.warp,
            lanes: landing.lanes,
            address: Some(u64::from(offset + env.start())),
        };
        let at = At {
            site,
            rank,
            offset,
            from: rank,
        };
        if let (Some(clock), Some(o)) = (clock, env.mbarriers.objects.get_mut(&offset)) {
            o.seen.own.add_clock(rank, actor, clock);
        }
        count_bytes(cx, env, &at, -i64::from(landing.bytes));
        settle(env, offset);
    }
}

/// Registers a copy that will signal the object at `offset` of the current block.
pub(crate) fn track(env: &mut Env, offset: u32, landing: Landing) {
    if let Some(o) = env.mbarriers.objects.get_mut(&offset) {
        o.landings.push(landing);
    }
}

/// Resolves the address of lane `l` to an mbarrier object, and reports an invalid one.
fn place(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    space: Space,
    (l, address): (usize, u64),
) -> Option<At> {
    let site = Site {
        pc,
        warp: w.index,
        lanes: 1 << l,
        address: Some(address),
    };
    let Some((rank, offset)) = env.place(space, address, 8) else {
        let place = env.describe(space, address);
        env.report(cx, FindingKind::OutOfBounds, site, &|| {
            format!("lane {l} names an mbarrier at {place}")
        });
        return None;
    };
    if offset % 8 != 0 {
        env.report(cx, FindingKind::Misaligned, site, &|| {
            format!("lane {l} names an mbarrier at shared byte {offset}, not a multiple of 8")
        });
        return None;
    }
    let from = env.rank;
    env.check_alive(cx, site, rank).then_some(At {
        site,
        rank,
        offset,
        from,
    })
}

/// `mbarrier.*` and `cp.async.mbarrier.arrive`.
pub(crate) fn execute(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Mbarrier,
    active: u32,
) -> Next {
    if let MbarrierKind::Wait { parity } = m.kind {
        return wait(cx, env, w, pc, m, parity, active);
    }
    let arrives = matches!(
        m.kind,
        MbarrierKind::Arrive { .. } | MbarrierKind::CopyArrive { .. }
    );
    let warp = w.index as usize;
    let passed_on = |env: &Env, lane: usize, to: usize| {
        let shadow = env.shadow.as_ref().filter(|_| arrives)?;
        let mut known = Knowledge::NONE;
        match m.relaxed {
            None => shadow.give_lane(warp, lane, &mut known),
            Some(scope) => {
                shadow.give_completed(warp, &mut known);
                // The threads that wait are those of the block of the object.
                let needed = if to == env.rank {
                    Scope::Block
                } else {
                    Scope::Cluster
                };
                if needed == Scope::Block || scope == Scope::Cluster {
                    shadow.give_fenced(warp, needed, 1 << lane, &mut known);
                }
            }
        }
        Some(known)
    };
    let mut known = None;
    let mut begun: Vec<(At, u64)> = Vec::new();
    let at = addresses(w, m.address);
    for l in lanes_of(active) {
        let Some(at) = place(cx, env, w, pc, m.space, (l, at[l])) else {
            continue;
        };
        let operand = if m.a.row == NONE {
            1
        } else {
            get(w, m.a, l) as u32
        };
        if m.kind != MbarrierKind::Init {
            if !env.within(at.rank, |env| valid(cx, env, &at)) {
                continue;
            }
            check_init(cx, env, w, &at);
        }
        if m.kind == MbarrierKind::Init {
            init(cx, env, w, &at, l, i64::from(operand));
            continue;
        }
        let who = (w.index, l, w.issued);
        note_remote(env, w, &at);
        // All lanes pass on the same, unless they are checked one by one or have fences of their own.
        if known.is_none() || cx.lane_races || m.relaxed.is_some() {
            known = passed_on(env, l, at.rank);
        }
        let same = |(known, _): &(At, u64)| (known.rank, known.offset) == (at.rank, at.offset);
        if arrives && !begun.iter().any(same) {
            begun.push((at, phase(env, &at)));
        }
        let state = env.within(at.rank, |env| {
            apply(cx, env, &at, m, i64::from(operand), known.as_ref(), who)
        });
        if m.d.row != NONE {
            set(w, m.d, l, state);
        }
    }
    for (at, before) in begun {
        skips(cx, env, w, &at, before);
    }
    if let Some(shadow) = &mut env.shadow {
        shadow.tick(w.index as usize);
    }
    Next::On
}

/// The phase of the object at `at`, or 0 if the address has no object.
fn phase(env: &mut Env, at: &At) -> u64 {
    env.within(at.rank, |env| {
        env.mbarriers.objects.get(&at.offset).map_or(0, |o| o.phase)
    })
}

/// Reports an instruction that has completed more than one phase since `before`. No thread can have waited for the first of them, and a wait by
/// parity confuses them.
fn skips(cx: &Context<'_>, env: &mut Env, w: &Warp, at: &At, before: u64) {
    let completed = phase(env, at).saturating_sub(before);
    if completed < 2 {
        return;
    }
    let (warp, offset) = (w.index, at.offset);
    env.within(at.rank, |env| {
        misuse(cx, env, at, &|| {
            format!(
                "the lanes of warp {warp} complete {completed} phases of the mbarrier at shared byte {offset} at once, and no \
                 thread can wait for the first: let one lane arrive, or initialise the mbarrier with the number of arrivals"
            )
        });
    });
}

/// Notes what a warp does to an object of another block, whose exit must be ordered after it.
fn note_remote(env: &mut Env, w: &Warp, at: &At) {
    let (Some(shadow), false) = (&env.shadow, at.rank == env.rank) else {
        return;
    };
    let warp = w.index as usize & 31;
    let me = Remote {
        rank: env.rank as u32,
        who: Who::new(at.site.pc, w.index, at.site.lanes.trailing_zeros()),
        clock: shadow.seen[warp][warp],
    };
    let offset = at.offset;
    env.within(at.rank, |env| {
        let Some(o) = env.mbarriers.objects.get_mut(&offset) else {
            return;
        };
        o.remote
            .retain(|(r, _)| (r.rank, r.who.warp()) != (me.rank, me.who.warp()));
        o.remote.push((me, o.phase));
    });
}

/// What an instruction other than init and wait does to a valid object of the current block; returns the state before.
fn apply(
    cx: &Context<'_>,
    env: &mut Env,
    at: &At,
    m: &Mbarrier,
    operand: i64,
    known: Option<&Knowledge>,
    (warp, lane, before): (u32, usize, u32),
) -> u64 {
    let offset = at.offset;
    let object = env.mbarriers.objects.get(&offset);
    let state = object.map_or(0, |o| {
        o.phase << 32 | 1 << 31 | (o.pending as u64 & 0xf_ffff)
    });
    match m.kind {
        MbarrierKind::Inval => {
            if object.is_some_and(|o| !o.landings.is_empty()) {
                misuse(cx, env, at, &|| {
                    format!(
                        "the mbarrier at shared byte {offset} is invalidated while copies are in flight that will signal it"
                    )
                });
                land(cx, env, offset);
            }
            env.mbarriers.objects.remove(&offset);
            return state;
        }
        MbarrierKind::ExpectTx => count_bytes(cx, env, at, operand),
        MbarrierKind::CompleteTx => count_bytes(cx, env, at, -operand),
        MbarrierKind::Arrive {
            drop,
            expect_tx,
            no_complete,
        } => {
            let count = if expect_tx { 1 } else { operand };
            if !(1..=MOST).contains(&count) {
                misuse(cx, env, at, &|| {
                    format!("a count of {count} arrivals; 1 to {MOST} are possible")
                });
            }
            if expect_tx {
                count_bytes(cx, env, at, operand);
            }
            let mut completes = false;
            if let Some(o) = env.mbarriers.objects.get_mut(&offset) {
                if drop {
                    o.expected = (o.expected - count).max(0);
                }
                completes = o.pending == count && o.tx == 0;
            }
            if no_complete && completes {
                misuse(cx, env, at, &|| {
                    format!(
                        ".noComplete, and this arrival completes the phase of the mbarrier at shared byte {offset}"
                    )
                });
            }
            arrive(cx, env, at, count, known);
        }
        MbarrierKind::CopyArrive { no_increment } => {
            if let Some(o) = env.mbarriers.objects.get_mut(&offset) {
                o.pending += i64::from(!no_increment && o.pending < MOST);
                let (lane, pc) = (lane as u32, at.site.pc);
                o.copies.push(CopyArrival {
                    warp,
                    lane,
                    pc,
                    before,
                });
                env.attention = true;
            }
            save(env, offset);
            return state;
        }
        MbarrierKind::Init | MbarrierKind::Wait { .. } => {}
    }
    settle(env, offset);
    state
}

/// `mbarrier.init` by lane `l`.
fn init(cx: &Context<'_>, env: &mut Env, w: &Warp, at: &At, l: usize, count: i64) {
    let offset = at.offset;
    if at.rank != env.rank {
        misuse(cx, env, at, &|| {
            "an mbarrier of another block is initialised; each block must do it for its own"
                .to_owned()
        });
        return;
    }
    if !(1..=MOST).contains(&count) {
        misuse(cx, env, at, &|| {
            format!("an mbarrier for {count} arrivals; 1 to {MOST} are possible")
        });
    }
    if let Some(old) = env.mbarriers.objects.get(&offset) {
        let line = cx.program.meta[old.init.2].line;
        misuse(cx, env, at, &|| {
            format!(
                "shared byte {offset} holds an mbarrier since line {line}; mbarrier.inval must end it before another is made there"
            )
        });
    }
    let mut clock = 0;
    let mut conflict = None;
    if let Some(shadow) = &mut env.shadow {
        let warp = w.index as usize & 31;
        clock = shadow.seen[warp][warp];
        let who = Who::new(at.site.pc, w.index, l as u32);
        for u in super::cluster::units(shadow, offset, 8) {
            conflict = shadow.write(u, who).map(|c| (who, c)).or(conflict);
        }
    }
    if let Some((who, c)) = conflict {
        super::smem::report_conflict(cx, env, who, (env.rank, offset), c, true);
    }
    let made = env.mbarriers.made;
    env.mbarriers.made += 1;
    let count = count.clamp(1, MOST);
    env.mbarriers.objects.insert(
        offset,
        Object {
            expected: count,
            pending: count,
            tx: 0,
            phase: 0,
            actor: mbarrier_actor(made),
            seen: Arrived::default(),
            done: Arrived::default(),
            init: (w.index, clock, at.site.pc),
            by: 1 << l,
            published: false,
            half_published: false,
            released: false,
            gate: None,
            counted: at.site.pc,
            passed: [0; 32],
            landings: Vec::new(),
            remote: Vec::new(),
            copies: Vec::new(),
        },
    );
    save(env, offset);
}

/// `mbarrier.test_wait` and `try_wait`.
fn wait(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    m: &Mbarrier,
    parity: bool,
    active: u32,
) -> Next {
    let at = addresses(w, m.address);
    let tried = w
        .waits
        .iter()
        .filter(|x| x.pc as usize == pc)
        .fold(0, |lanes, x| lanes | x.lanes & active);
    w.waits.retain(|x| x.lanes & active == 0);
    let mut done = 0u32;
    let mut pending = Vec::new();
    for l in lanes_of(active) {
        let address = at[l];
        let Some(at) = place(cx, env, w, pc, m.space, (l, address)) else {
            done |= 1 << l;
            continue;
        };
        if at.rank != env.rank {
            let rank = at.rank;
            misuse(cx, env, &at, &|| {
                format!(
                    "a wait at an mbarrier of block {rank}; only threads of that block may wait there"
                )
            });
            done |= 1 << l;
            continue;
        }
        if !valid(cx, env, &at) {
            done |= 1 << l;
            continue;
        }
        check_init(cx, env, w, &at);
        let operand = get(w, m.a, l);
        let phase = env.mbarriers.objects.get(&at.offset).map_or(0, |o| o.phase);
        // The phase that is waited for: complete if it is before the current one.
        let want = if parity {
            if operand > 1 {
                // Hardware looks at the lowest bit. Pipelines that keep a phase as ±1 or count it up rely on that.
                env.note(cx, FindingKind::BadOperand, at.site, &|| {
                    format!(
                        "a parity of {operand:#x}; the ISA knows 0 and 1, and hardware takes the lowest bit"
                    )
                });
            }
            if phase & 1 == operand & 1 {
                phase
            } else {
                phase.wrapping_sub(1)
            }
        } else {
            let state = operand >> 32;
            if operand >> 31 & 1 == 0 || state > phase || phase - state > 1 {
                misuse(cx, env, &at, &|| {
                    format!(
                        "the state {operand:#x} is none that an arrival gave in the current phase or the one before"
                    )
                });
            }
            state
        };
        if want == phase && tried >> l & 1 == 1 {
            land(cx, env, at.offset);
        }
        let now = env.mbarriers.objects.get(&at.offset).map_or(0, |o| o.phase);
        if want == now {
            pending.push((l, at.offset, want));
        } else {
            done |= 1 << l;
            if let Some(o) = env.mbarriers.objects.get_mut(&at.offset) {
                o.passed[w.index as usize & 31] = want.wrapping_add(1);
            }
            if let (Some(shadow), Some(o)) =
                (&mut env.shadow, env.mbarriers.objects.get(&at.offset))
            {
                o.done.tell(shadow, w.index as usize, m.relaxed, 1 << l);
            }
        }
    }
    let tired = w.expired & active != 0;
    w.expired &= !active;
    if done == 0 && !tired {
        // Nobody goes on: sleep until some phase completes.
        for (l, offset, phase) in pending {
            let same = w
                .waits
                .iter_mut()
                .find(|x| x.pc as usize == pc && (x.offset, x.phase) == (offset, phase));
            match same {
                Some(x) => x.lanes |= 1 << l,
                None => w.waits.push(Wait {
                    lanes: 1 << l,
                    pc: pc as u32,
                    offset,
                    phase,
                }),
            }
        }
        if tried == active {
            let s = &mut w.splits[w.current];
            s.pc = pc as u32;
            s.state = State::Poll;
            w.polled = env.events;
            env.attention = true;
            return Next::Stop;
        }
    }
    if m.d.row != NONE {
        set_pred(w, m.d.row, done, active);
    }
    if done != 0
        && let Some(shadow) = &mut env.shadow
    {
        shadow.tick(w.index as usize);
    }
    Next::On
}

/// Lands the `cp.async` copies that mbarriers of the current block wait for, whose warps are `warps`.
pub(crate) fn serve_copies(cx: &Context<'_>, env: &mut Env, warps: &mut [Warp]) {
    let waiting: Vec<(u32, CopyArrival)> = env
        .mbarriers
        .objects
        .iter_mut()
        .flat_map(|(at, o)| std::mem::take(&mut o.copies).into_iter().map(|c| (*at, c)))
        .collect();
    let rank = env.rank;
    for (offset, c) in waiting {
        let CopyArrival {
            warp,
            lane,
            pc,
            before,
        } = c;
        let Some(w) = warps.get_mut(warp as usize) else {
            continue;
        };
        super::copies::land(env, w, |c| u32::from(c.lane) == lane && c.serial < before);
        let mut known = Knowledge::NONE;
        if let Some(shadow) = &mut env.shadow {
            shadow.give_lane(warp as usize, lane as usize, &mut known);
            shadow.tick(warp as usize);
        }
        let site = Site {
            pc,
            warp,
            lanes: 1 << lane,
            address: Some(u64::from(offset + env.start())),
        };
        let at = At {
            site,
            rank,
            offset,
            from: rank,
        };
        arrive(cx, env, &at, 1, Some(&known));
        settle(env, offset);
    }
}
