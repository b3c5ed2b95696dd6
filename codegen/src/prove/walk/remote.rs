//! Distributed shared memory: loads from and stores to the shared memory of other blocks of the cluster.
//!
//! One walk over the instructions, with the rank as a symbol, is a walk of all blocks of a cluster ([`cluster`](crate::prove::walk::cluster)). Barriers of the cluster that order accesses stand
//! outside of branches, loops and roles, so that they cut what all blocks do into the same *phases*:
//!
//! ```text
//! phase 0    partial[t] = …                                  own tile
//! cluster barrier
//! phase 1    sum = Σ partial of block r, r < blocks          read through `in_block`
//! cluster barrier
//! phase 2    y = sum                                         no access to other blocks: they may have ended
//! ```
//!
//! A tile that is accessed through other blocks somewhere in the kernel
//!
//! * shares its bytes with no other tile, and is no stage of a ring;
//! * is not touched by asynchronous copies, which barriers do not order;
//! * is written at the top level alone: no branch, which blocks may take differently, and no loop. So each of its bytes is in the same state in all blocks;
//! * is, in a phase in which others read it, written by nobody: no access of one block meets a write of another;
//! * is, in a phase in which others write it, neither read nor written by its own block, and each element is written by one thread of one block. This is shown by numbers: for each
//!   rank, each thread's address and the rank that it writes to.
//!
//! A read of another block's tile is a read of the own tile at the same place for [`order`](crate::prove::memory::order): what the other block has there was written and ordered as the own is, since
//! the state is the same in all blocks. Elements that are sent to *all* blocks in a phase count as written behind its end; those that only some blocks are sent, or that threads may
//! leave out, are undefined behind it unless they were defined before.
//!
//! Phase 0 has no access to other blocks, which may not have begun, and the last phase has none, since they may have ended. The rank is proven to be one of the cluster.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::index::code::Ty;
use crate::ir::{Arrangement, Buffer, Entry, Extent, Remote as Inst, Space, Statement};
use crate::prove::ProofError;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::cluster::Ranks;
use crate::prove::walk::execute::{Event, Machine, Trace, Val};
use crate::prove::walk::memory::{Access, Kind};

/// What is done to the shared memory of other blocks.
#[derive(Debug)]
pub(in crate::prove) enum Remote {
    /// A tile is read.
    Read { name: String, buffer: usize },
    /// Elements of a tile are written.
    Sent(Sent),
    /// The accesses behind it, up to the barrier, are what was sent.
    Received,
    /// A barrier of the cluster that orders accesses.
    Ordered,
}

/// A store to other blocks.
#[derive(Debug)]
pub(in crate::prove) struct Sent {
    name: String,
    buffer: usize,
    bytes: i64,
    /// Bytes of an element.
    element: i64,
    /// Threads may leave it out.
    maybe: bool,
    active: Mask,
    /// By the rank of the block that stores: where to, and the rank of the block there.
    by_rank: Vec<[Num; 2]>,
}

impl Sent {
    /// Each element: its first byte, the rank of its block, and the rank and the thread that write it.
    fn elements(&self) -> impl Iterator<Item = (i64, i64, (usize, usize))> {
        let threads: Vec<usize> = (0..)
            .zip(self.active.list().iter())
            .filter_map(|(t, active)| active.then_some(t))
            .collect();
        let by_rank = self.by_rank.iter().enumerate();
        by_rank.flat_map(move |(rank, [at, block])| {
            let (at, block) = (*at, *block);
            let each: Vec<_> = threads
                .iter()
                .flat_map(|&t| {
                    let parts = (0..self.bytes).step_by(self.element as usize);
                    parts.map(move |part| (at.at(t) + part, block.at(t), (rank, t)))
                })
                .collect();
            each
        })
    }
}

fn refused<T>(reason: String) -> Result<T, ProofError> {
    Err(ProofError::Cluster { reason })
}

impl Machine<'_> {
    /// The rank of the block that is accessed: the one that is meant, and one of the cluster.
    fn rank_of(
        &mut self,
        inst: &Inst,
        name: &str,
        (ranks, facts): (Ranks, &Facts),
    ) -> Result<Lin, ProofError> {
        if inst.at.space() != Space::Shared || self.role.is_some() {
            return refused(format!(
                "{name} in another block, in a role or of another memory"
            ));
        }
        let block = self.integer(inst.block);
        let block = self.read(&block, Ty::U32);
        let meant = self.evaluate(inst.rank);
        if !self.symbols.is_zero(&block.sub(&meant), facts) {
            let thread = facts.active.first().unwrap_or(0);
            return Err(ProofError::Address {
                access: name.to_owned(),
                thread,
            });
        }
        let room = Lin::constant(ranks.count - 1).sub(&block);
        if !self.symbols.at_least_zero(&block, facts) || !self.symbols.at_least_zero(&room, facts) {
            return refused(format!(
                "{name} in a block whose rank is not known to be one of the {} of a cluster",
                ranks.count
            ));
        }
        Ok(block)
    }

    /// A load from or a store to the shared memory of a block of the cluster.
    pub(in crate::prove) fn remote(
        &mut self,
        s: &Statement,
        inst: &Inst,
    ) -> Result<(), ProofError> {
        let bytes = inst.ty.bytes() * inst.values.len() as u32;
        let kind = if inst.stores { Kind::Write } else { Kind::Read };
        let touch = Self::touch_of(s, inst.at, bytes, kind);
        let (guard, facts) = self.guarded(&touch);
        let mut found = self.found(&touch, &guard, &facts);
        let name = found.name.clone();
        let Some(ranks) = self.ranks else {
            return refused(format!(
                "{name} in another block, in a kernel without clusters"
            ));
        };
        let block = self.rank_of(inst, &name, (ranks, &facts))?;
        self.registers.insert(inst.there, Val::Data(None));
        let address = self.integer(inst.at.base()).plus(inst.at.immediate());
        let parts = self.parts(&name, inst.at.place(), &address, &facts)?;
        let [part] = &parts[..] else {
            return refused(format!("{name} in another block: a choice between tiles"));
        };
        let undecided = || ProofError::Undecided {
            what: format!(
                "{name} in another block: a place or a rank that depends on more than the thread and the own rank"
            ),
        };
        // Of the block of each rank: its place, if that is a matter of numbers.
        let mut places = Vec::new();
        for rank in 0..ranks.count {
            let mut of_rank = part.clone();
            of_rank.relative = ranks.at(&part.relative, rank);
            for c in &mut of_rank.coordinates {
                *c = ranks.at(c, rank);
            }
            if self.is_of_numbers(&of_rank) {
                found.active = Mask::of(vec![false; self.threads]);
                self.placed(&of_rank, &mut found)?;
                places.push(found.clone());
            }
        }
        let all = places.len() as i64 == ranks.count;
        let buffer = part.buffer;
        if inst.stores {
            self.of_its_width(&touch)?;
            if !all {
                return Err(undecided());
            }
            let mut by_rank = Vec::new();
            for (rank, place) in (0..).zip(places) {
                let block = ranks.at(&block, rank).as_number();
                by_rank.push([place.at, block.ok_or_else(undecided)?]);
            }
            let sent = Sent {
                name,
                buffer,
                bytes: bytes.into(),
                element: self.entry.buffers[buffer].bytes.max(1),
                maybe: found.maybe,
                active: facts.active,
                by_rank,
            };
            self.events.push(Event::Remote(Rc::new(Remote::Sent(sent))));
            return Ok(());
        }
        if all {
            self.of_its_width(&touch)?;
            places.dedup();
            for place in places {
                self.events.push(Event::Access(Rc::new(place)));
            }
        } else {
            self.access(&touch)?;
        }
        // Those that are left out keep what they had, if anything.
        for &to in &inst.values {
            if s.guard.is_none() || self.registers.get(&to).is_some() {
                self.registers.insert(to, Val::Data(None));
            }
        }
        self.events
            .push(Event::Remote(Rc::new(Remote::Read { name, buffer })));
        Ok(())
    }

    /// A barrier of the cluster that orders accesses: what was sent since the last one is there.
    pub(in crate::prove) fn cluster_orders(&mut self) -> Result<(), ProofError> {
        if !self.facts.active.is_full() {
            return Err(ProofError::Divergent {
                what: "a barrier of the cluster".to_owned(),
            });
        }
        let ordered = |e: &Event| matches!(e, Event::Remote(r) if matches!(**r, Remote::Ordered));
        let begin = self.events.iter().rposition(ordered).map_or(0, |i| i + 1);
        let blocks = self.ranks.map_or(1, |ranks| ranks.count);
        // By buffer and byte: the ranks of the blocks that have it for sure, a bit each.
        let mut there: BTreeMap<(usize, i64), (u32, i64, &str)> = BTreeMap::new();
        for event in &self.events[begin..] {
            if let Event::Remote(remote) = event
                && let Remote::Sent(sent) = &**remote
            {
                for (byte, block, _) in sent.elements() {
                    let at = there.entry((sent.buffer, byte));
                    let known = at.or_insert((0, sent.element, &sent.name));
                    known.0 |= u32::from(!sent.maybe) << block;
                }
            }
        }
        let mut groups: BTreeMap<(usize, bool), (i64, String, Vec<i64>)> = BTreeMap::new();
        for ((buffer, byte), (ranks, element, name)) in there {
            let all = ranks.count_ones() == blocks as u32;
            let group = groups.entry((buffer, !all));
            let group = group.or_insert_with(|| (element, name.to_owned(), Vec::new()));
            group.2.push(byte);
        }
        self.events.push(Event::Remote(Rc::new(Remote::Received)));
        for ((buffer, maybe), (element, name, bytes)) in groups {
            for some in bytes.chunks(self.threads) {
                let threads = 0..self.threads;
                let at = |t: usize| some.get(t).copied().unwrap_or(some[0]);
                self.events.push(Event::Access(Rc::new(Access {
                    kind: Kind::Write,
                    op: None,
                    name: name.clone(),
                    at: Num::each(threads.clone().map(at).collect()),
                    active: Mask::of(threads.map(|t| t < some.len()).collect()),
                    buffer: Num::same(buffer as i64),
                    version: Vec::new(),
                    bytes: element as u32,
                    maybe,
                    tagged: false,
                    exact: true,
                    source: None,
                })));
            }
        }
        self.events.push(Event::Barrier);
        self.events.push(Event::Remote(Rc::new(Remote::Ordered)));
        Ok(())
    }
}

/// What a phase does to tiles that are accessed through other blocks.
#[derive(Default)]
struct Phase<'t> {
    /// By the buffer: what reads it and what writes it in its own block.
    read: BTreeMap<usize, &'t str>,
    written: BTreeMap<usize, &'t str>,
    /// The same, in other blocks.
    taken: BTreeMap<usize, &'t str>,
    sent: Vec<&'t Sent>,
}

/// Accesses to the shared memory of other blocks meet no others.
pub(in crate::prove) fn kept(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
    let mut buffers = BTreeMap::new();
    reached(&trace.events, &mut buffers);
    if buffers.is_empty() {
        return Ok(());
    }
    if trace.events.iter().any(|e| matches!(e, Event::Roles(_))) {
        return refused(
            "shared memory of other blocks is accessed in a kernel with roles".to_owned(),
        );
    }
    for (&buffer, name) in &buffers {
        alone(entry, buffer, name)?;
    }
    let is =
        |event: &Event, what: fn(&Remote) -> bool| matches!(event, Event::Remote(r) if what(r));
    let ordered = |event: &Event| is(event, |r| matches!(r, Remote::Ordered));
    let mut phases = Vec::new();
    for events in trace.events.split(ordered) {
        // What was received has been looked at as what was sent.
        let own = events
            .split(|e| is(e, |r| matches!(r, Remote::Received)))
            .next()
            .unwrap_or(&[]);
        let mut phase = Phase::default();
        phase.take(own, false, &buffers)?;
        phases.push(phase);
    }
    let last = phases.len() - 1;
    for (number, phase) in phases.iter().enumerate() {
        let any = phase.taken.values().copied();
        let any = any.chain(phase.sent.iter().map(|sent| &*sent.name)).next();
        if let Some(name) = any {
            if number == 0 {
                return refused(format!(
                    "{name} in another block, which may not have begun, or written it: put a barrier of the cluster (`Kernel::cluster_barrier`) before it"
                ));
            }
            if number == last {
                return refused(format!(
                    "{name} in another block, which may have ended: put a barrier of the cluster (`Kernel::cluster_barrier`) behind the last access to other blocks"
                ));
            }
        }
        phase.kept()?;
    }
    Ok(())
}

/// The buffers that are accessed through other blocks, with a name of such an access.
fn reached<'t>(events: &'t [Event], all: &mut BTreeMap<usize, &'t str>) {
    for event in events {
        match event {
            Event::Remote(remote) => match &**remote {
                Remote::Read { name, buffer } | Remote::Sent(Sent { name, buffer, .. }) => {
                    all.insert(*buffer, name);
                }
                Remote::Received | Remote::Ordered => {}
            },
            Event::If(_, a, b) => {
                reached(a, all);
                reached(b, all);
            }
            Event::Loop(l) => l.period.iter().for_each(|t| reached(&t.events, all)),
            Event::Roles(roles) => roles.iter().for_each(|(_, events)| reached(events, all)),
            _ => {}
        }
    }
}

/// A tile shares its bytes with no other, and is no stage of a ring.
fn alone(entry: &Entry, buffer: usize, name: &str) -> Result<(), ProofError> {
    let is_stage =
        |a: &Arrangement| !matches!(a, Arrangement::Shared { outer, .. } if outer.is_empty());
    let own = &entry.buffers[buffer];
    let Some((first, end)) = bytes_of(own).filter(|_| !is_stage(&own.arrangement)) else {
        return refused(format!("{name} in another block: a stage of a ring"));
    };
    let mut others = entry.buffers.iter().enumerate();
    let meets = |other| bytes_of(other).is_some_and(|(from, to)| from < end && first < to);
    match others.find(|(number, other)| *number != buffer && meets(other)) {
        Some((_, other)) => refused(format!(
            "{name} in another block: the tile shares its bytes with `{}`",
            other.name
        )),
        None => Ok(()),
    }
}

/// The bytes of shared memory that a buffer is within; none in global memory.
fn bytes_of(buffer: &Buffer) -> Option<(i64, i64)> {
    let Arrangement::Shared {
        layout,
        outer,
        offset,
    } = &buffer.arrangement
    else {
        return None;
    };
    let first = offset + layout.offset().min(0);
    let inner = buffer.extents.len() - outer.len();
    let mut end = offset + layout.offset().max(0) + layout.cosize() + buffer.bytes - 1;
    for (extent, stride) in buffer.extents[inner..].iter().zip(outer) {
        end = match extent {
            _ if *stride == 0 => end,
            Extent::Fixed(n) => end + stride * (n - 1),
            _ => i64::MAX,
        };
    }
    Some((first, end))
}

impl<'t> Phase<'t> {
    /// Notes what events do to the buffers; `inside` of a branch or a loop.
    fn take(
        &mut self,
        events: &'t [Event],
        inside: bool,
        buffers: &BTreeMap<usize, &str>,
    ) -> Result<(), ProofError> {
        let within = |name: &str| {
            refused(format!(
                "{name}, a tile that is accessed through other blocks, in a branch or a loop, which blocks may take differently: write it outside of both"
            ))
        };
        for event in events {
            match event {
                Event::Access(a) | Event::Counted(a) => {
                    for &buffer in buffers.keys() {
                        let active = a.active.list();
                        let of = a.buffer.values();
                        let any = (0..).zip(active.iter());
                        if !any
                            .filter(|(_, a)| **a)
                            .any(|(t, _)| of.at(t) == buffer as i64)
                        {
                            continue;
                        }
                        match a.kind {
                            Kind::Read => self.read.insert(buffer, &a.name),
                            Kind::Async | Kind::Sent => {
                                return refused(format!(
                                    "{}, a tile that is accessed through other blocks, by an asynchronous copy, which barriers do not order: take loads and stores",
                                    a.name
                                ));
                            }
                            _ if inside => return within(&a.name),
                            _ => self.written.insert(buffer, &a.name),
                        };
                    }
                }
                Event::Remote(remote) => match &**remote {
                    Remote::Read { name, buffer } => {
                        self.taken.insert(*buffer, name);
                    }
                    Remote::Sent(sent) if inside => return within(&sent.name),
                    Remote::Sent(sent) => self.sent.push(sent),
                    Remote::Received | Remote::Ordered => {}
                },
                Event::If(_, a, b) => {
                    self.take(a, true, buffers)?;
                    self.take(b, true, buffers)?;
                }
                Event::Loop(l) => {
                    for iteration in &l.period {
                        self.take(&iteration.events, true, buffers)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn kept(&self) -> Result<(), ProofError> {
        let between = "with no barrier of the cluster (`Kernel::cluster_barrier`) between them";
        for (buffer, name) in &self.taken {
            if let Some(write) = self.written.get(buffer) {
                return refused(format!("{name} in another block and {write}, {between}"));
            }
        }
        let mut writers: BTreeMap<(i64, i64), (usize, usize)> = BTreeMap::new();
        for sent in &self.sent {
            let own = [&self.taken, &self.read, &self.written];
            if let Some(other) = own.iter().find_map(|all| all.get(&sent.buffer)) {
                return refused(format!(
                    "{} in another block and {other}, {between}",
                    sent.name
                ));
            }
            for (byte, block, (rank, thread)) in sent.elements() {
                let (r, t) = *writers.entry((block, byte)).or_insert((rank, thread));
                if (r, t) != (rank, thread) {
                    return refused(format!(
                        "{} in another block: thread {t} of rank {r} and thread {thread} of rank {rank} both write byte {byte} of the block of rank {block}",
                        sent.name
                    ));
                }
            }
        }
        Ok(())
    }
}
