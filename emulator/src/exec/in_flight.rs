//! Bytes of shared memory that an asynchronous operation writes or reads: checked when it is issued, and in flight until somebody has waited for it.
//!
//! Example: a bulk copy is issued into bytes 0 to 1024 for an mbarrier. A warp that stores to byte 64 before it has waited there stores into bytes in
//! flight; the copy's issue itself is a race with a warp that has read byte 64 and not told the issuer.

use super::bulk::Landing;
use super::cluster::units;
use super::smem::{is_allowed, report_conflict};
use super::warp::Warp;
use super::{Context, Env};
use crate::lane_order::covers;
use crate::proxies::{ACTORS, Remote, WARPGROUPS};
use crate::shared::{Cell, IN_FLIGHT, REMOTE, Shadow, Who, fill};
use crate::shared_conflicts::Conflict;

/// Begins the writing of `landing` in the shared memory of block `rank` by an operation of `w` for the mbarrier `actor`: checks that all earlier
/// accesses are ordered before, and marks the bytes as in flight.
pub(crate) fn begin_writing(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    (rank, actor): (usize, u32),
    landing: &Landing,
) {
    let Some(shadow) = &env.shadow else { return };
    let (to, reduction) = (&landing.to, landing.reduction.is_some());
    let warp = w.index as usize & 31;
    let own = env.rank;
    let seen = if rank == own {
        shadow.seen[warp]
    } else {
        shadow.clocks.far(warp, rank)
    };
    let fenced = if landing.proxy {
        shadow.clocks.fenced(warp, rank)
    } else {
        [u32::MAX; ACTORS]
    };
    let me = Who::new(pc, actor, w.index);
    let far: Vec<_> = (0..env.blocks)
        .map(|r| shadow.clocks.far(warp, r))
        .collect();
    let some: Vec<_> = (0..env.blocks)
        .map(|r| shadow.clocks.some(warp, r).copied())
        .collect();
    let mine = shadow.seen[warp];
    let knows = |o: &Remote| {
        let row = if o.rank as usize == own {
            &mine
        } else {
            &far[o.rank as usize]
        };
        row[o.who.warp() as usize & 63] >= o.clock
            || covers(some[o.rank as usize].as_ref(), o.who, o.clock)
    };
    let lanes = landing.lanes;
    let mut found = None;
    env.within(rank, |env| {
        let Some(shadow) = &mut env.shadow else {
            return;
        };
        let mut previous = usize::MAX;
        for (offset, bytes) in to {
            for u in units(shadow, *offset, *bytes) {
                // Two pieces of the copy may meet within a unit.
                if std::mem::replace(&mut previous, u) == u {
                    continue;
                }
                let cell = shadow.cells[u];
                let actor_of = cell.who.warp() as usize & 63;
                let generic = actor_of < WARPGROUPS;
                let conflict = match cell.clock {
                    IN_FLIGHT if reduction && cell.who.is_atomic() => None,
                    IN_FLIGHT => Some(Conflict::InFlight(cell.who)),
                    0 if reduction => Some(Conflict::Undefined),
                    0 => None,
                    REMOTE => shadow.remote_writes.get(&u).filter(|o| !knows(o)).map(|o| {
                        Conflict::Elsewhere {
                            other: *o,
                            wrote: true,
                        }
                    }),
                    _ if reduction && cell.who.is_atomic() => None,
                    c if c > seen[actor_of] && !covers(some[rank].as_ref(), cell.who, c) => {
                        Some(Conflict::AfterWrite(cell.who))
                    }
                    _ if rank == own && shadow.of_other_lane(cell, warp, lanes) => {
                        Some(Conflict::AfterLane(cell.who))
                    }
                    c if generic && c > fenced[actor_of] => Some(Conflict::NoProxyFence(cell.who)),
                    _ => None,
                };
                let last = shadow.last_reader[u];
                let conflict = conflict.or_else(|| {
                    let found = rank == own
                        && last.warp() as usize == warp
                        && lanes >> last.lane() & 1 == 0
                        && shadow.unordered_readers(u, warp, lanes.trailing_zeros(), last.lane());
                    found.then_some(Conflict::AfterLaneRead(last))
                });
                let conflict = conflict.or_else(|| shadow.unread(u, &seen, some[rank].as_ref()));
                let conflict = conflict.or_else(|| {
                    let other = *shadow.remote_reads.get(&u).filter(|o| !knows(o))?;
                    Some(Conflict::Elsewhere {
                        other,
                        wrote: false,
                    })
                });
                found = found.or(conflict.map(|c| ((u as u32) << shadow.grain, c)));
                let who = if reduction { me.atomic() } else { me };
                shadow.cells[u] = Cell {
                    clock: IN_FLIGHT,
                    who,
                };
            }
        }
    });
    if let Some((offset, c)) = found {
        let who = Who::new(pc, w.index, 0);
        report_conflict(cx, env, who, (rank, offset), c, true);
    }
}

/// The clocks of the latest writes, by actor, of units that an operation reads.
#[derive(Debug)]
pub(crate) struct Writes([u32; ACTORS]);

impl Writes {
    /// Whether they are ordered before what `warp` of the block does now, and fenced.
    pub(crate) fn are_known(&self, shadow: &Shadow, warp: usize, rank: usize) -> bool {
        let (seen, fenced) = (&shadow.seen[warp & 31], shadow.clocks.fenced(warp, rank));
        let known = self.0.iter().zip(seen).all(|(wrote, seen)| wrote <= seen);
        known && (0..WARPGROUPS).all(|actor| self.0[actor] <= fenced[actor])
    }
}

/// Begins the reading of `from` in the block's own shared memory by an asynchronous operation of `w`: checks that all writes are ordered
/// before and fenced, and marks the bytes as being read by `reader`. `lanes` of the warp have issued it. Gives those writes, if they are.
pub(crate) fn begin_reading(
    cx: &Context<'_>,
    env: &mut Env,
    w: &Warp,
    pc: usize,
    (reader, lanes): (u32, u32),
    from: impl Iterator<Item = (u32, u32)>,
) -> Option<Writes> {
    let shadow = env.shadow.as_mut()?;
    let mut writes = Writes([0; ACTORS]);
    let warp = w.index as usize & 31;
    let seen = shadow.seen[warp];
    let fenced = shadow.clocks.fenced(warp, env.rank);
    let me = Who::new(pc, reader, w.index);
    let (mut found, mut allowed) = (None, None);
    // Most units were written together: what holds of one holds of the next.
    let mut same = None;
    for (offset, bytes) in from {
        let range = units(shadow, offset, bytes);
        for u in range.clone() {
            let cell = shadow.cells[u];
            if same == Some(cell) {
                continue;
            }
            let actor = cell.who.warp() as usize & 63;
            let conflict = match cell.clock {
                0 => Some(Conflict::Undefined),
                IN_FLIGHT => Some(Conflict::InFlight(cell.who)),
                REMOTE => shadow
                    .remote_writes
                    .get(&u)
                    .filter(|o| !shadow.clocks.has_seen(warp, o))
                    .map(|o| Conflict::Elsewhere {
                        other: *o,
                        wrote: true,
                    }),
                c if c > seen[actor]
                    && !covers(shadow.clocks.some(warp, env.rank), cell.who, c) =>
                {
                    Some(Conflict::AfterWrite(cell.who))
                }
                _ if shadow.of_other_lane(cell, warp, lanes) => Some(Conflict::AfterLane(cell.who)),
                c if actor < WARPGROUPS && c > fenced[actor] => {
                    Some(Conflict::NoProxyFence(cell.who))
                }
                _ => shadow.holds_undefined(u),
            };
            if let Some(c) = conflict {
                let first = if is_allowed(cx, pc, c) {
                    &mut allowed
                } else {
                    &mut found
                };
                *first = first.or(Some(((u as u32) << shadow.grain, c)));
            }
            // What another block wrote is known by other means: too great for any clock here.
            writes.0[actor] = writes.0[actor].max(cell.clock);
            same = Some(cell).filter(|_| conflict.is_none() && cell.clock != REMOTE);
        }
        fill(&mut shadow.last_reader[range.clone()], me);
        shadow.mark_all_read(range, reader as usize, IN_FLIGHT);
    }
    if let Some((offset, c)) = found.or(allowed) {
        let who = Who::new(pc, w.index, 0);
        report_conflict(cx, env, who, (env.rank, offset), c, false);
        return None;
    }
    Some(writes)
}

/// Warp `warp` knows that its bulk copies have read `from`.
pub(crate) fn end_reading(env: &mut Env, warp: usize, from: &[(u32, u32)]) {
    let Some(shadow) = &mut env.shadow else {
        return;
    };
    let clock = shadow.seen[warp & 31][warp & 31];
    for (offset, bytes) in from {
        for u in units(shadow, *offset, *bytes) {
            shadow.mark_read(u, warp & 31, clock);
        }
    }
}
