//! A block's shared memory and its shadow, which knows who wrote and who read.
//!
//! **Happens-before.** Every warp has a clock, and a vector of how far it has seen each other warp's clock (vector clocks, as in
//! `FastTrack`: Flanagan and Freund, 2009, at warp granularity). A barrier joins the vectors of the warps that meet there and
//! advances their clocks. An access races with an earlier one of another warp if that warp's clock then is more than what is seen now.
//! Lanes of one warp are ordered by the order of instructions.
//!
//! **Shadow.** For each unit (the smallest shared access of the kernel, 1 to 16 bytes, at most a word here): the last write (clock, warp, lane,
//! instruction) and, for each warp, the clock of its last read. So a write is checked against every reader exactly.
//!
//! **Asynchronous copies** land at the wait and are *in flight* before: any access to a unit in flight is a finding. Example: warp 0
//! issues `cp.async` into bytes 0..16, waits, and warp 1 reads without a barrier: the write carries warp 0's clock 1, of which
//! warp 1 has seen 0: a race.
//!
//! **Actors.** What is ordered are actors: the 32 warps of the block, its 8 warpgroups as readers by `wgmma`, and its mbarriers as writers of
//! the bulk copies that they track, each with a clock of its own. See [`crate::proxies`] for those and for what other blocks of the cluster do.

use std::collections::HashMap;
use std::ops::Range;

use crate::proxies::{ACTORS, Clocks, REMOTE_READER, Remote};
use crate::shared_conflicts::Conflict;

/// Clock value of a unit with a copy in flight.
pub(crate) const IN_FLIGHT: u32 = u32::MAX;
/// Clock value of a unit that another block wrote last: see [`Shadow::remote_writes`].
pub(crate) const REMOTE: u32 = u32::MAX - 1;

/// Who did an access, packed: instruction, actor, lane and two flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Who(u32);

impl Who {
    const ASYNC: u32 = 1 << 11;
    const ATOMIC: u32 = 1 << 12;

    /// Lane `lane` of warp `warp`; for an actor above the warps `lane` is the warp that issued the operation.
    pub(crate) fn new(pc: usize, warp: u32, lane: u32) -> Self {
        Self((pc as u32) << 13 | (warp & 63) << 5 | (lane & 31))
    }

    pub(crate) fn asynchronous(self) -> Self {
        Self(self.0 | Self::ASYNC)
    }

    pub(crate) fn atomic(self) -> Self {
        Self(self.0 | Self::ATOMIC)
    }

    pub(crate) fn pc(self) -> usize {
        (self.0 >> 13) as usize
    }

    /// The actor, which is a warp below 32.
    #[inline(always)]
    pub(crate) fn warp(self) -> u32 {
        self.0 >> 5 & 63
    }

    pub(crate) fn lane(self) -> u32 {
        self.0 & 31
    }

    /// Whether `warp` did it, and no asynchronous copy.
    #[inline(always)]
    pub(crate) fn is_plain_of(self, warp: usize) -> bool {
        self.0 & (63 << 5 | Self::ASYNC) == (warp as u32) << 5
    }

    #[inline(always)]
    pub(crate) fn is_async(self) -> bool {
        self.0 & Self::ASYNC != 0
    }

    #[inline(always)]
    pub(crate) fn is_atomic(self) -> bool {
        self.0 & Self::ATOMIC != 0
    }
}

/// The last write of a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The writer's clock; 0 if never written.
    pub(crate) clock: u32,
    pub(crate) who: Who,
}

/// Fills few places: by fours in line, where [`slice::fill`] calls a function.
#[inline(always)]
pub(crate) fn fill<T: Copy>(places: &mut [T], value: T) {
    let (fours, rest) = places.as_chunks_mut::<4>();
    for four in fours {
        *four = [value; 4];
    }
    for one in rest {
        *one = value;
    }
}

/// The shadow of shared memory. Units are numbered from the start of the block's window.
#[derive(Debug)]
pub(crate) struct Shadow {
    /// log2 of the bytes of a unit: 0, 1 or 2.
    pub(crate) grain: u32,
    /// Whether the lanes of a warp count as unordered until `bar.warp.sync` or a barrier; `clocks` has their order then.
    pub(crate) lanes: bool,
    warps: usize,
    /// Actors that have a column in `reads`: the warps, and if others read too, [`REMOTE_READER`] and the warpgroups.
    columns: usize,
    pub(crate) cells: Vec<Cell>,
    /// Clock of the last read of unit u by actor a at [`Shadow::slot`]: by columns, since who reads one unit reads its neighbours.
    pub(crate) reads: Vec<u32>,
    /// By unit: at least the clocks of its reads by warps; kept if only warps have columns.
    pub(crate) newest: Vec<u32>,
    pub(crate) last_reader: Vec<Who>,
    /// By warp: clocks up to which it has seen every warp, below its own; 0 if others than warps have clocks.
    pub(crate) floors: [u32; 32],
    /// Row w: how far warp w has seen each actor's clock.
    pub(crate) seen: Vec<[u32; ACTORS]>,
    /// What warps know besides: fences between proxies, and clocks of other blocks.
    pub(crate) clocks: Clocks,
    /// Last writes and reads by warps of other blocks, by unit.
    pub(crate) remote_writes: HashMap<usize, Remote>,
    pub(crate) remote_reads: HashMap<usize, Remote>,
    /// By unit: the undefined bits that a store has put there and the number of their origin, as long as the unit's last write is this one.
    pub(crate) stored: HashMap<usize, (u32, u32, Cell)>,
}

impl Shadow {
    pub(crate) fn new(
        bytes: u32,
        grain_bytes: u32,
        (warps, others): (usize, bool),
        lanes: bool,
        mut clocks: Clocks,
    ) -> Self {
        let columns = if others { warps + 1 + warps / 4 } else { warps };
        let grain = grain_bytes.clamp(1, 4).trailing_zeros();
        let units = ((bytes.div_ceil(4) * 4) >> grain) as usize;
        clocks.lanes = lanes.then(|| Box::new(clocks.lane_order(units, warps)));
        let mut s = Self {
            grain,
            lanes,
            warps,
            columns,
            cells: vec![Cell::default(); units],
            reads: vec![0; units * columns],
            newest: vec![0; units],
            last_reader: vec![Who::default(); units],
            floors: [0; 32],
            seen: vec![[0; ACTORS]; 32],
            clocks,
            remote_writes: HashMap::new(),
            remote_reads: HashMap::new(),
            stored: HashMap::new(),
        };
        s.reset();
        s
    }

    /// Forgets everything, for the next block.
    pub(crate) fn reset(&mut self) {
        self.cells.fill(Cell::default());
        self.reads.fill(0);
        self.newest.fill(0);
        self.last_reader.fill(Who::default());
        self.floors = [0; 32];
        for (w, row) in self.seen.iter_mut().enumerate().take(self.warps) {
            *row = [0; ACTORS];
            row[w] = 1;
        }
        for w in 0..self.warps {
            self.settle(w);
        }
        self.clocks.reset();
        self.remote_writes.clear();
        self.remote_reads.clear();
        self.stored.clear();
    }

    /// `bits` of the `bytes` (at most 8) at `offset`, just stored, are undefined, with origin `from`.
    pub(crate) fn store_undefined(&mut self, offset: u32, bytes: u32, bits: u64, from: u32) {
        let size = 1u32 << self.grain;
        for k in (0..bytes.max(size)).step_by(size as usize) {
            let u = ((offset + k) >> self.grain) as usize;
            let bits = (bits >> (8 * k)) as u32 & (u32::MAX >> (32 - 8 * size));
            if bits == 0 {
                self.stored.remove(&u);
            } else if let Some(cell) = self.cells.get(u) {
                self.stored.insert(u, (bits, from, *cell));
            }
        }
    }

    /// The undefined bits of unit `u` that a store has put there, and the number of their origin.
    pub(crate) fn stored_undefined(&self, u: usize) -> Option<(u32, u32)> {
        let (bits, from, cell) = self.stored.get(&u)?;
        (self.cells.get(u) == Some(cell)).then_some((*bits, *from))
    }

    /// The conflict of an access that uses unit `u`, if a store has put undefined bits there.
    pub(crate) fn holds_undefined(&self, u: usize) -> Option<Conflict> {
        let (_, from) = self.stored_undefined(u)?;
        Some(Conflict::HoldsUndefined(from))
    }

    /// The undefined bits of the `bytes` (at most 8) at `offset`, and the number of their origin if a store has put them there.
    pub(crate) fn undefined(&self, offset: u32, bytes: u32) -> (u64, Option<u32>) {
        let size = 1u32 << self.grain;
        let (mut out, mut origin) = (0, None);
        for k in (0..bytes).step_by(size as usize) {
            let u = ((offset + k) >> self.grain) as usize;
            let bits = match self.cells.get(u) {
                Some(Cell { clock: 0, .. }) => u32::MAX,
                _ => match self.stored_undefined(u) {
                    Some((bits, from)) => {
                        origin = Some(from);
                        bits
                    }
                    None => 0,
                },
            };
            out |= u64::from(bits & (u32::MAX >> (32 - 8 * size))) << (8 * k);
        }
        (out & (u64::MAX >> (64 - 8 * bytes)), origin)
    }

    /// Whether only warps of this block have clocks.
    #[inline(always)]
    pub(crate) fn is_simple(&self) -> bool {
        self.columns == self.warps
    }

    /// The place in `reads` of unit `u` and actor `actor`.
    #[inline(always)]
    pub(crate) fn slot(&self, u: usize, actor: usize) -> usize {
        let column = if actor < REMOTE_READER {
            actor
        } else {
            actor - REMOTE_READER + self.warps
        };
        column * self.cells.len() + u
    }

    /// The actors that read, with the clocks of their last reads of unit `u`.
    pub(crate) fn readers(&self, u: usize) -> impl Iterator<Item = (usize, u32)> {
        let others = REMOTE_READER..REMOTE_READER + self.columns - self.warps;
        let clocks = self.reads.iter().skip(u).step_by(self.cells.len().max(1));
        (0..self.warps).chain(others).zip(clocks.copied())
    }

    /// Marks unit `u` as read by `actor` at `clock`.
    pub(crate) fn mark_read(&mut self, u: usize, actor: usize, clock: u32) {
        self.mark_all_read(u..u + 1, actor, clock);
    }

    /// Marks `units` as read by `actor` at `clock`; nothing if it has no column.
    #[inline(always)]
    pub(crate) fn mark_all_read(&mut self, units: Range<usize>, actor: usize, clock: u32) {
        let slots = self.slot(units.start, actor)..self.slot(units.end, actor);
        let is_simple = self.is_simple();
        let (Some(reads), Some(newest)) = (self.reads.get_mut(slots), self.newest.get_mut(units))
        else {
            return;
        };
        fill(reads, clock);
        if is_simple {
            for newest in newest {
                *newest = (*newest).max(clock);
            }
        }
    }

    /// Recomputes how far `warp` has seen all others.
    pub(crate) fn settle(&mut self, warp: usize) {
        if !self.is_simple() {
            return;
        }
        let seen = &self.seen[warp & 31];
        let others = seen[..self.warps].iter().copied();
        let floor = others.fold(seen[warp & 31] - 1, u32::min);
        self.floors[warp & 31] = floor;
    }

    /// A plain read of unit `u`.
    #[inline(always)]
    pub(crate) fn read(&mut self, u: usize, who: Who) -> Option<Conflict> {
        let (warp, cell) = (who.warp() as usize, self.cells[u]);
        let seen = &self.seen[warp & 31];
        let ordered = cell.clock.wrapping_sub(1) < seen[cell.who.warp() as usize & 63];
        self.mark_read(u, warp & 31, self.seen[warp & 31][warp & 31]);
        self.last_reader[u] = who;
        if ordered && !cell.who.is_async() && !self.lanes {
            return None;
        }
        if let Some(order) = &mut self.clocks.lanes {
            order.note_reader(u, warp & 31, who.lane());
        }
        self.explain_read(u, who)
    }

    /// A write of unit `u`; atomics do not conflict with each other.
    #[inline(always)]
    pub(crate) fn write(&mut self, u: usize, who: Who) -> Option<Conflict> {
        let warp = who.warp() as usize & 31;
        let cell = self.cells[u];
        let seen = &self.seen[warp];
        let mut bad = cell.clock > seen[cell.who.warp() as usize & 63];
        if !self.is_simple() || self.newest[u] > self.floors[warp] {
            for (actor, clock) in self.readers(u) {
                bad |= clock > seen[actor & 63];
            }
        }
        let conflict = if bad || self.lanes {
            self.explain_write(u, who)
        } else {
            None
        };
        self.cells[u] = Cell {
            clock: self.seen[warp][warp],
            who,
        };
        conflict
    }

    /// A strong read (volatile or atomic): ordered with strong writes by the hardware, not recorded as a reader.
    pub(crate) fn read_strong(&mut self, u: usize, who: Who) -> Option<Conflict> {
        let cell = self.cells[u];
        let fine = match cell.clock {
            0 | IN_FLIGHT => false,
            REMOTE => self
                .remote_writes
                .get(&u)
                .is_some_and(|r| r.who.is_atomic()),
            _ => cell.who.is_atomic(),
        };
        if fine {
            None
        } else {
            self.explain_read(u, who)
        }
    }

    /// A copy into unit `u` starts.
    pub(crate) fn begin_copy(&mut self, u: usize, who: Who) -> Option<Conflict> {
        let conflict = self.write(u, who);
        self.cells[u] = Cell {
            clock: IN_FLIGHT,
            who,
        };
        conflict
    }

    /// The copy by `who` into unit `u` has landed and been waited for.
    pub(crate) fn land_copy(&mut self, u: usize, who: Who) {
        let warp = who.warp() as usize & 31;
        self.cells[u] = Cell {
            clock: self.seen[warp][warp],
            who: who.asynchronous(),
        };
    }

    /// All lanes of `warp` are ordered: what any of them did is visible to all.
    pub(crate) fn order_lanes(&mut self, warp: usize) {
        self.tick(warp);
        let clock = self.seen[warp & 31][warp & 31];
        if let Some(order) = &mut self.clocks.lanes {
            order.order(warp, clock);
        }
    }

    /// The same of the lanes `members` alone, of those of `warp` that are `live`.
    pub(crate) fn order_lanes_of(&mut self, warp: usize, members: u32, live: u32) {
        if members & live == live {
            return self.order_lanes(warp);
        }
        let clock = self.seen[warp & 31][warp & 31];
        if let Some(order) = &mut self.clocks.lanes {
            order.order_some(warp, members & live, clock);
        }
        self.tick(warp);
    }

    /// Advances the clock of `warp`: what it does from now on is not yet released to anyone.
    pub(crate) fn tick(&mut self, warp: usize) {
        let clock = &mut self.seen[warp & 31][warp & 31];
        *clock = (*clock + 1).min(REMOTE - 1);
        self.settle(warp);
    }
}
