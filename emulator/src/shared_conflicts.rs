//! What is wrong with an access to shared memory: the race detector's second look, at accesses that one comparison of clocks could not clear.
//!
//! Example: a write of a unit that warp 3 has read at clock 7, by a warp that has seen clock 6 of warp 3, is [`Conflict::AfterRead`].

use crate::lane_order::{self, Partials};
use crate::proxies::{ACTORS, REMOTE_READER, Remote};
use crate::shared::{Cell, IN_FLIGHT, REMOTE, Shadow, Who};

/// What is wrong with an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Read of bytes never written.
    Undefined,
    /// Read of bytes to which an undefined value was stored, of the origin with this number.
    HoldsUndefined(u32),
    /// Not ordered after this write.
    AfterWrite(Who),
    /// Write not ordered after a read by this warp; the last reader is known if it was that warp.
    AfterRead { warp: u32, who: Option<Who> },
    /// A copy into it is still in flight.
    InFlight(Who),
    /// Another lane's copy was waited for, but no barrier followed.
    NoBarrierAfterWait(Who),
    /// Not ordered after what a warp of another block of the cluster did.
    Elsewhere { other: Remote, wrote: bool },
    /// After a write by another lane of the warp, with nothing between that orders lanes.
    AfterLane(Who),
    /// Write after a read by another lane of the warp, likewise.
    AfterLaneRead(Who),
    /// An asynchronous operation reads or overwrites this write, with no fence between the proxies.
    NoProxyFence(Who),
    /// Written while an asynchronous operation reads it.
    BeingRead(Who),
}

impl Conflict {
    /// Whether it is of two writes.
    pub(crate) fn is_of_writes(self) -> bool {
        matches!(
            self,
            Self::AfterWrite(_) | Self::AfterLane(_) | Self::Elsewhere { wrote: true, .. }
        )
    }
}

impl Shadow {
    /// Whether `other` is another lane of the warp of `who`, at another instruction.
    fn other_lane(who: Who, other: Who) -> bool {
        other.warp() == who.warp()
            && other.lane() != who.lane()
            && other.pc() != who.pc()
            && !(other.is_atomic() && who.is_atomic())
    }

    #[inline(never)]
    pub(crate) fn explain_read(&self, u: usize, who: Who) -> Option<Conflict> {
        let cell = self.cells[u];
        let warp = who.warp() as usize & 31;
        let seen = &self.seen[warp];
        if cell.clock == IN_FLIGHT {
            return Some(Conflict::InFlight(cell.who));
        }
        if cell.clock == REMOTE {
            return self.unordered(self.remote_writes.get(&u), warp, true);
        }
        if cell.clock == 0 {
            return Some(Conflict::Undefined);
        }
        if self.unordered_write(cell, warp) {
            return Some(Conflict::AfterWrite(cell.who));
        }
        let same_warp = cell.who.warp() == who.warp();
        let no_barrier_since = cell.clock == seen[warp];
        if Self::other_lane(who, cell.who) && self.unordered_lane(cell, warp, who.lane()) {
            return Some(Conflict::AfterLane(cell.who));
        }
        if cell.who.is_async() && same_warp && cell.who.lane() != who.lane() && no_barrier_since {
            return Some(Conflict::NoBarrierAfterWait(cell.who));
        }
        None
    }

    #[inline(never)]
    pub(crate) fn explain_write(&self, u: usize, who: Who) -> Option<Conflict> {
        let cell = self.cells[u];
        let warp = who.warp() as usize & 31;
        if cell.clock == IN_FLIGHT {
            return Some(Conflict::InFlight(cell.who));
        }
        if cell.clock == REMOTE {
            let found = self.unordered(self.remote_writes.get(&u), warp, true);
            if found.is_some() && !who.is_atomic() {
                return found;
            }
        } else if self.unordered_write(cell, warp) && !(cell.who.is_atomic() && who.is_atomic()) {
            return Some(Conflict::AfterWrite(cell.who));
        } else if Self::other_lane(who, cell.who) && self.unordered_lane(cell, warp, who.lane()) {
            return Some(Conflict::AfterLane(cell.who));
        }
        self.explain_readers(u, who)
    }

    /// What is wrong with a write because of earlier reads.
    pub(crate) fn explain_readers(&self, u: usize, who: Who) -> Option<Conflict> {
        let warp = who.warp() as usize & 31;
        let seen = &self.seen[warp];
        let last = self.last_reader[u];
        if Self::other_lane(who, last) && self.unordered_readers(u, warp, who.lane(), last.lane()) {
            return Some(Conflict::AfterLaneRead(last));
        }
        self.unread(u, seen, self.some(warp))
            .or_else(|| self.unordered(self.remote_reads.get(&u), warp, false))
    }

    /// Whether nothing orders `warp` after the last write of a unit, one by an actor of this block.
    fn unordered_write(&self, cell: Cell, warp: usize) -> bool {
        cell.clock > self.seen[warp][cell.who.warp() as usize & 63]
            && !lane_order::covers(self.some(warp), cell.who, cell.clock)
    }

    /// What `warp` knows of some lanes of its own block.
    fn some(&self, warp: usize) -> Option<&Partials> {
        self.clocks.some(warp, self.clocks.rank())
    }

    /// Whether the last write of a unit, one by a lane of `warp`, is not ordered before what lane `me` does.
    fn unordered_lane(&self, cell: Cell, warp: usize, me: u32) -> bool {
        let order = self.clocks.lanes.as_ref();
        cell.clock < REMOTE
            && order.is_some_and(|o| {
                cell.clock >= o.since(warp) && !o.is_known(warp, me, cell.who.lane(), cell.clock)
            })
            && !lane_order::covers(self.some(warp), cell.who, cell.clock)
    }

    /// The same of an operation by `lanes` of `warp`, of which the lane is none.
    pub(crate) fn of_other_lane(&self, cell: Cell, warp: usize, lanes: u32) -> bool {
        cell.who.warp() as usize == warp
            && lanes >> cell.who.lane() & 1 == 0
            && self.unordered_lane(cell, warp, lanes.trailing_zeros())
    }

    /// Whether lane `last` of `warp` is the last that has read unit `u`, and nothing has ordered that before what lane `me` does.
    pub(crate) fn unordered_readers(&self, u: usize, warp: usize, me: u32, last: u32) -> bool {
        let Some(order) = &self.clocks.lanes else {
            return false;
        };
        let lanes = 1 << last & order.readers(u, warp);
        let clock = self.reads[self.slot(u, warp)];
        let known = self
            .some(warp)
            .is_some_and(|s| s[warp].covers(lanes, clock));
        lanes != 0 && clock != IN_FLIGHT && !known && !order.is_known(warp, me, last, clock)
    }

    /// A read of unit `u` by an actor of this block that is not in `seen`, nor in what is known of some lanes.
    pub(crate) fn unread(
        &self,
        u: usize,
        seen: &[u32; ACTORS],
        some: Option<&Partials>,
    ) -> Option<Conflict> {
        let known = |w: usize, clock: u32| {
            let partial = some.and_then(|s| s.get(w));
            let order = self.clocks.lanes.as_ref();
            order.is_some_and(|o| partial.is_some_and(|p| p.covers(o.readers(u, w), clock)))
        };
        let mut readers = self.readers(u).filter(|(w, _)| *w != REMOTE_READER);
        let (warp, _) = readers.find(|(w, clock)| *clock > seen[w & 63] && !known(*w, *clock))?;
        let warp = warp as u32;
        let last = self.last_reader[u];
        let who = (last.warp() == warp).then_some(last);
        if self.reads[self.slot(u, warp as usize)] == IN_FLIGHT {
            return Some(who.map_or(Conflict::AfterRead { warp, who }, Conflict::BeingRead));
        }
        Some(Conflict::AfterRead { warp, who })
    }

    /// What another block did, unless warp `warp` is ordered after it.
    fn unordered(&self, other: Option<&Remote>, warp: usize, wrote: bool) -> Option<Conflict> {
        let other = *other?;
        (!self.clocks.has_seen(warp, &other)).then_some(Conflict::Elsewhere { other, wrote })
    }
}
