//! Rings: roles keep to the protocol of a pipeline, for all numbers of tiles.
//!
//! One role fills stages and others read them. Both count uses of stages from 0, in order:
//!
//! ```text
//! producer    wait empty(i), expect bytes(i), fill(i) …              i = 0, 1, 2, …
//! consumer    wait full(i), read(i) …, reads up to i − L complete, arrive(i)    L: the ring's lag
//! ```
//!
//! For `empty(i)` the producer waits for the arrivals in use i + L − S. If every role does these for the same uses, in this order, and each phase has the
//! arrivals and bytes that its mbarrier was made for, then
//!
//! * what is read is there: `full(i)` completes when the bytes of use i have arrived, and a stage is filled again only after its `empty`;
//! * nothing is overwritten that is still read: the stage of use i held use i − S, and every consumer that arrived in use i − S + L has completed its reads
//!   up to i − S;
//! * nobody waits forever: to fill use i takes the arrivals in use i + L − S, an earlier one as L < S, and a consumer arrives there when that use is full.
//!
//! Reads are of products in flight. Groups of them are complete in their order, so each group that is not is kept with the age of the oldest use that it
//! reads: how many uses were waited for since. An arrival requires reads of age L or more to be complete, where the use itself has age 0:
//!
//! ```text
//! L = 1                      ages of groups, the open one last
//! wait full(i)               1 -          the products of use i − 1 are in flight
//! wgmma …, commit            1 0 -
//! wgmma.wait_group 1         0 -          those of use i − 1 are complete
//! arrive(i)                               use i − 1 is released
//! ```
//!
//! A loop is walked until an iteration begins with no more in flight than those before it.
//!
//! A stage may be held across a loop, as that of the queries in attention: what was waited for before the loop is read in its iterations and released behind it. Such a loop
//! does nothing else with the ring, so that the use that is held is the same in each iteration. What its iterations leave in flight is followed as above, so that the arrival behind
//! the loop still requires all reads to be complete.
//!
//! A role may use a ring at several places of its program, as where the first use is ahead of a loop. The others then have as many, and the uses of each place are those
//! of the place of the role that fills. Of several rings the order matters ([`sequence`]).
//!
//! In a cluster the blocks do the same, and copy to each other ([`blocks`]). Each block's `full` gets the bytes of all copies that come to it, and its `empty` the arrivals of
//! the consumers of all blocks: a producer that waits for its own knows that the stage is empty wherever it copies to. Behind n fills it waits for uses n to
//! n + S − L − 1, which it does not fill: then all arrivals of uses up to n − 1 are there, nothing is on its way to the block, and it may end. What the blocks have
//! in common is the matter of [`cluster`](crate::prove::walk::cluster).
//!
//! A thread may also read a stage into registers, for products that take a factor from there. Such reads are complete for the whole warp behind a barrier
//! of it, and until then they have an age as groups have. With a lag, a role may release the stage of use i − L while it is still reading use i.
//!
//! Consumers may be in a ping-pong schedule ([`ping_pong`]): then the producer has a place in its program for each of them, and each releases what it has read.
//!
//! The index of a use is linear in the iterations of the loops around it. In a loop the first use of an iteration must follow the last one of the iteration before, and the
//! first iteration what came before the loop: by induction the indices are all numbers in order. Behind a loop they go on after its last iteration.

mod blocks;
mod ping_pong;
mod sequence;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Arrangement, Entry, Extent, Kernel, OrderArrival, Ring, Side};
use crate::prove::ProofError;
use crate::prove::algebra::numbers::Mask;
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::cluster::Alike;
use crate::prove::walk::execute::{Event, Iterations, Trace};
use crate::prove::walk::hopper::{Piped, Region, UNIT, Used, What};
use blocks::Arrivals;
use ping_pong::{Flight, Holding, Taken};

/// Groups of products that may be in flight: more than kernels have a use for.
const GROUPS: usize = 16;

/// A place of a role at which it uses a stage.
#[derive(Clone)]
struct Place {
    /// The loops around it, outermost first: the symbol of their iterations, and how many there are.
    loops: Vec<(Sym, Lin)>,
    /// The index of a use, by the iterations of these loops.
    index: Lin,
    /// What is read of a stage.
    reads: Vec<Region>,
    /// What comes to a stage of the block of each rank.
    comes: Vec<Vec<Region>>,
}

/// What a role was found to do with a ring.
#[derive(Clone, Default)]
struct Protocol {
    /// How many uses it makes.
    uses: Option<Lin>,
    /// Fills, or reads.
    fills: bool,
    /// The places where it does: one, or of the producer of a ping-pong schedule one for each consumer.
    places: Vec<Place>,
    /// The place of the use that is held.
    here: usize,
    /// Its place in a ping-pong schedule.
    taken: Option<Taken>,
    /// Blocks of a cluster copy to each other.
    shares: bool,
    /// Stages that are waited for behind the last fill, until they are released.
    drained: i64,
    /// It reads stages into registers.
    fetches: bool,
    /// Threads that release a stage.
    arrivals: Option<Arrivals>,
}

/// The state of one role on one ring.
struct Walk<'a> {
    ring: usize,
    /// What is the same in all blocks of a cluster.
    alike: &'a Alike<'a>,
    role: Mask,
    /// The index that is waited for next.
    next: Lin,
    /// The use that is held: filled, or read.
    held: Option<Used>,
    expected: Option<u32>,
    /// Bytes that have been copied to the block of each rank.
    filled: Vec<u32>,
    /// How many uses later than it was read a stage is released.
    lag: i64,
    /// Groups of products that are not complete, each with the age of the oldest use that it reads; the last is open.
    reading: Vec<Option<i64>>,
    /// The age of the oldest use that threads have read into registers without a barrier of their warps behind it.
    fetching: Option<i64>,
    /// In the use that is held a stage was released.
    gave: bool,
    /// The stage that is waited for is not filled.
    drains: bool,
    /// Whether it is in its phase of the order barrier, in a ping-pong schedule.
    holding: Holding,
    /// Whose MMAs may be in flight where runs overlap.
    flight: Flight,
    /// How many roles a ping-pong schedule has; 1 without one.
    ordered_roles: u32,
    /// Their runs overlap.
    overlaps: bool,
    loops: Vec<(Sym, Lin)>,
    found: Protocol,
}

/// Rings are made before roles part, each role keeps to the protocol, and roles agree.
pub(in crate::prove) fn kept(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
    let no_roles = Vec::new();
    let roles = trace.events.iter().find_map(|e| match e {
        Event::Roles(roles) => Some(roles),
        _ => None,
    });
    let roles = roles.unwrap_or(&no_roles);
    apart(entry, trace)?;
    let alike = Alike::new(trace);
    let blocks = alike.blocks();
    // Of each ring before, what each role does with it, by the number of the role.
    let mut known: Vec<BTreeMap<usize, Protocol>> = Vec::new();
    for (number, ring) in entry.rings.iter().enumerate() {
        let refused = |reason: &str| ProofError::Ring {
            ring: ring.name.clone(),
            reason: reason.to_owned(),
        };
        made(number, ring, trace, blocks).map_err(|reason| refused(&reason))?;
        let parting = trace
            .events
            .iter()
            .position(|e| matches!(e, Event::Roles(_)));
        let before = &trace.events[..parting.unwrap_or(trace.events.len())];
        if mentions(before, number) {
            return Err(refused("it is used before roles part"));
        }
        if !(0..ring.stages).contains(&ring.lag) {
            return Err(refused(
                "stages are released so late that the producer waits for an iteration that it has not filled",
            ));
        }
        let mut all = Vec::new();
        let mut here = BTreeMap::new();
        for (role, (threads, events)) in roles.iter().enumerate() {
            let mut walk = Walk {
                ring: number,
                alike: &alike,
                role: *threads,
                next: Lin::constant(0),
                held: None,
                expected: None,
                filled: vec![0; blocks as usize],
                lag: ring.lag,
                reading: vec![None],
                fetching: None,
                gave: false,
                drains: false,
                holding: Holding::Nothing,
                flight: Flight::Nobody,
                ordered_roles: ring.ordered_roles,
                overlaps: ring.overlaps,
                loops: Vec::new(),
                found: Protocol::default(),
            };
            walk.events(events).map_err(|reason| refused(&reason))?;
            walk.filled_whole().map_err(|reason| refused(&reason))?;
            if walk.is_owing() {
                return Err(refused("a stage is never released"));
            }
            walk.found.uses = Some(walk.next);
            let taken = ping_pong::taken((number, ring.overlaps), (*threads, events), &alike);
            walk.found.taken = taken.map_err(|reason| refused(&reason))?;
            here.insert(role, walk.found.clone());
            if !walk.found.places.is_empty() || walk.found.taken.is_some() {
                all.push(walk.found);
            }
        }
        agreed((entry, &trace.symbols), ring, &all, blocks).map_err(|reason| refused(&reason))?;
        for (at, (before, other)) in known.iter().zip(&entry.rings).enumerate() {
            if ring.ordered_roles.max(other.ordered_roles) > 1 {
                return Err(refused(&format!(
                    "it or the ring `{}` has a ping-pong schedule: that is followed in a kernel of one ring",
                    other.name
                )));
            }
            let both = before
                .iter()
                .filter_map(|(role, a)| Some((a, here.get(role)?)));
            let used = |p: &Protocol| !p.places.is_empty();
            if both
                .clone()
                .any(|(a, b)| used(a) && used(b) && a.fills != b.fills)
            {
                return Err(refused(&format!(
                    "a role fills one of it and the ring `{}` and reads the other: roles could wait for each other forever",
                    other.name
                )));
            }
            let both = |(role, a): (&usize, &'_ Protocol)| {
                let b = here.get(role).filter(|b| used(a) && used(b))?;
                Some(([a.clone(), b.clone()], &roles[*role].1[..]))
            };
            let both: Vec<_> = before.iter().filter_map(both).collect();
            if !sequence::in_one_order([at, number], &both).map_err(|reason| refused(&reason))? {
                return Err(refused(&format!(
                    "roles use it and the ring `{}` in another order, so that they may wait for each other forever: use both in the same loops, in the same order, in every role",
                    other.name
                )));
            }
        }
        known.push(here);
    }
    Ok(())
}

/// Stages and mbarriers are apart from each other, inside of shared memory, and from everything else that is accessed there.
fn apart(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
    let mut taken: Vec<(i64, i64, String)> = Vec::new();
    for buffer in entry
        .rings
        .iter()
        .flat_map(|r| r.buffers.iter().chain([&r.barriers]))
    {
        let info = &entry.buffers[*buffer];
        let Arrangement::Shared {
            layout,
            outer,
            offset,
        } = &info.arrangement
        else {
            continue;
        };
        let (stages, stride) = match (&info.extents[..], &outer[..]) {
            ([.., Extent::Fixed(stages), _], [stride, 0]) => (*stages, *stride),
            _ => (1, 0),
        };
        let bytes = layout.cosize().max(info.bytes);
        // Of plain layouts the last element has its bytes, too.
        let bytes = if outer.is_empty() {
            bytes - 1 + info.bytes
        } else {
            bytes + info.bytes - 1
        };
        for stage in 0..stages {
            let first = offset + stage * stride;
            taken.push((first, first + bytes, info.name.clone()));
        }
    }
    for access in &trace.accesses {
        if let Some((lo, hi)) = access.at.range_of(access.active) {
            let overlaps = |(first, end, _): &&(i64, i64, String)| {
                lo < *end && *first < hi + i64::from(access.bytes)
            };
            if let Some((_, _, name)) = taken.iter().find(overlaps) {
                return Err(ProofError::Undecided {
                    what: format!(
                        "{}: an access of memory that is a stage of a ring, {name}",
                        access.name
                    ),
                });
            }
        }
    }
    taken.sort_unstable();
    let limit = entry.shared.map_or(0, |s| s.bytes) as i64;
    let beyond = taken.last().filter(|(_, end, _)| *end > limit);
    let pair = taken.windows(2).find(|w| w[1].0 < w[0].1);
    if let Some((_, _, name)) = beyond.or(pair.map(|w| &w[1])) {
        return Err(ProofError::Bounds {
            access: name.clone(),
            thread: 0,
            mode: 0,
        });
    }
    Ok(())
}

/// Every mbarrier is made once, for its arrivals, and published before roles part.
fn made(number: usize, ring: &Ring, trace: &Trace, blocks: i64) -> Result<(), String> {
    let all = Kernel::barriers_of_ring(ring.stages, (ring.ordered_roles, ring.overlaps)) as usize;
    let mut counts: Vec<Option<u32>> = vec![None; all];
    let mut maker = None;
    let (mut published, mut met) = (false, false);
    for event in &trace.events {
        match event {
            Event::Piped(piped) => match &piped.what {
                What::Made(of, which, count) if *of == number => {
                    let slot = counts
                        .get_mut(*which as usize)
                        .ok_or("an mbarrier is of no stage")?;
                    if slot.replace(*count).is_some() {
                        return Err("an mbarrier is made twice".to_owned());
                    }
                    (published, met) = (false, false);
                    if *maker.get_or_insert(piped.threads) != piped.threads {
                        return Err("several threads make its mbarriers".to_owned());
                    }
                }
                What::Published if Some(piped.threads) == maker => published = true,
                What::ClusterMet => met = published,
                _ => {}
            },
            Event::Barrier if blocks == 1 => met = published,
            Event::Roles(_) => break,
            _ => {}
        }
    }
    for (which, count) in counts.iter().enumerate() {
        let wanted = match which / ring.stages as usize {
            0 => 1,
            1 => ring.consumers,
            _ => ring.consumers / blocks as u32,
        };
        match count {
            Some(count) if *count == wanted => {}
            Some(count) => {
                return Err(format!(
                    "an mbarrier is made for {count} arrivals and gets {wanted}"
                ));
            }
            None => return Err("an mbarrier is not made".to_owned()),
        }
    }
    if met {
        return Ok(());
    }
    let whose = if blocks == 1 { "block" } else { "cluster" };
    Err(format!(
        "its mbarriers are not published before roles part: a fence of the thread that made them and a barrier of the {whose}"
    ))
}

/// One role fills what the others read, as often, and those that release are as many as the mbarrier counts.
fn agreed(
    (entry, symbols): (&Entry, &Symbols),
    ring: &Ring,
    all: &[Protocol],
    blocks: i64,
) -> Result<(), String> {
    let mut producers = all.iter().filter(|p| p.fills);
    let (producer, others) = (producers.next(), producers.next());
    let consumers: Vec<&Protocol> = all.iter().filter(|p| !p.fills).collect();
    let Some(producer) = producer.filter(|_| others.is_none()) else {
        return Err("not exactly one role fills its stages".to_owned());
    };
    if consumers.is_empty() {
        return Err(
            "no role reads what is filled: the block may end while copies are on their way"
                .to_owned(),
        );
    }
    let given = || consumers.iter().filter_map(|p| p.arrivals.as_ref());
    let fetches = consumers.iter().any(|p| p.fetches);
    if ring.ordered_roles > 1 && fetches && given().any(|a| matches!(a, Arrivals::At(_))) {
        return Err(
            "a stage that one role has read into registers is released to other blocks by the next, whose arrivals are relaxed and order no reads".to_owned(),
        );
    }
    if producer.shares && given().any(|a| matches!(a, Arrivals::Own(_))) {
        return Err(
            "a block copies to stages of another, which give none of them back to it".to_owned(),
        );
    }
    let comes_from_others = producer.shares || given().any(|a| matches!(a, Arrivals::At(_)));
    if comes_from_others && producer.drained < ring.stages - ring.lag {
        return Err(
            "a block may end before others of its cluster have arrived at its mbarriers: its producer is to wait for the last stages behind its fills"
                .to_owned(),
        );
    }
    // In a ping-pong schedule each role releases what it has read; else all of them release each stage.
    let together: Vec<Vec<&Arrivals>> = if ring.ordered_roles > 1 {
        given().map(|a| vec![a]).collect()
    } else {
        vec![given().collect()]
    };
    for rank in 0..blocks as usize {
        for some in &together {
            let arrivals: u32 = some.iter().map(|a| a.at(rank, blocks)).sum();
            if arrivals != ring.consumers {
                return Err(format!(
                    "{arrivals} threads release a stage, and its mbarrier counts {}",
                    ring.consumers
                ));
            }
        }
    }
    let pairs = ping_pong::pairs(ring, producer, &consumers, blocks)?;
    let units = |all: &[Region]| -> BTreeSet<i64> {
        let all = all.iter().flat_map(|r| r.units.iter().copied());
        all.collect()
    };
    let none = Vec::new();
    let beyond = beyond_reads(entry, ring);
    for (consumer, producer) in pairs {
        // In the block of each rank.
        let filled: Vec<BTreeSet<i64>> = (0..blocks as usize)
            .map(|rank| units(producer.comes.get(rank).unwrap_or(&none)))
            .collect();
        let read = units(&consumer.reads);
        let mut missing = filled.iter().flat_map(|filled| read.difference(filled));
        if let Some(unit) = missing.next() {
            return Err(format!(
                "byte {} of a stage is read and never filled",
                unit * UNIT
            ));
        }
        // Its copies would be for nothing.
        let mut unread = filled.iter().flat_map(|filled| filled.difference(&read));
        if let Some(unit) = unread.find(|unit| !beyond.contains(unit)) {
            return Err(format!(
                "byte {} of a stage is filled and never read",
                unit * UNIT
            ));
        }
        let same_loops = consumer.loops.len() == producer.loops.len()
            && consumer
                .loops
                .iter()
                .zip(&producer.loops)
                .all(|(a, b)| a.1 == b.1);
        let both = consumer.loops.iter().zip(&producer.loops);
        let names: Vec<(Sym, Sym)> = both.map(|(to, from)| (from.0, to.0)).collect();
        let of_consumer = |x: &Lin| symbols.renamed(x, &names);
        if !same_loops || of_consumer(&producer.index) != Some(consumer.index) {
            return Err("roles count its uses in other loops".to_owned());
        }
        for region in &consumer.reads {
            let fills = producer.comes.iter().flatten();
            let fills = fills.filter(|f| f.name == region.name);
            for fill in fills {
                let version: Option<Vec<Lin>> = fill.version.iter().map(of_consumer).collect();
                if version.as_ref() != Some(&region.version) {
                    return Err(format!(
                        "{}: another tile is read than was filled in",
                        region.name
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The units of a stage that hold nothing but what the ring says is not read.
fn beyond_reads(entry: &Entry, ring: &Ring) -> BTreeSet<i64> {
    let mut beyond = BTreeSet::new();
    for (buffer, read) in ring.buffers.iter().zip(&ring.read) {
        let info = &entry.buffers[*buffer];
        let (Arrangement::Shared { layout, offset, .. }, [rows, columns, ..]) =
            (&info.arrangement, &info.extents[..])
        else {
            continue;
        };
        let (&Extent::Fixed(rows), &Extent::Fixed(columns)) = (rows, columns) else {
            continue;
        };
        if [rows, columns] == *read {
            continue;
        }
        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column]));
        let (within, outside): (Vec<_>, Vec<_>) =
            all.partition(|at| at[0] < read[0] && at[1] < read[1]);
        let unit = |at: &[i64; 2]| (offset + layout.at(at)) / UNIT;
        beyond.extend(outside.iter().map(unit));
        for at in &within {
            beyond.remove(&unit(at));
        }
    }
    beyond
}

impl Walk<'_> {
    fn events(&mut self, events: &[Event]) -> Result<(), String> {
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Piped(piped) => {
                    self.drains = drains(&piped.what, &events[at..]);
                    self.piped(piped)?;
                }
                Event::WarpBarrier => self.fetching = None,
                Event::Loop(l) => self.repeat(l)?,
                Event::If(_, a, b) if mentions(a, self.ring) || mentions(b, self.ring) => {
                    return Err("it is used under a condition".to_owned());
                }
                Event::Exit(_) | Event::Leave(_) => {
                    return Err("a role may leave before its uses are done".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A loop: by induction over its iterations.
    fn repeat(&mut self, l: &Iterations) -> Result<(), String> {
        let [iteration] = &l.period[..] else {
            if l.period.iter().any(|t| mentions(&t.events, self.ring)) {
                return Err("it is used in a loop whose iterations differ".to_owned());
            }
            return Ok(());
        };
        let own = of_uses(self.ring);
        let Some(first) = first_use(&iteration.events, &own, self.alike.symbols)? else {
            return self.read_in_iterations(&iteration.events);
        };
        let count = counted(l, self.alike)?;
        if self.is_owing() {
            return Err("a stage is in use from before a loop, which uses the ring".to_owned());
        }
        // Each iteration has a run of its own, whose place among those of other roles is that of the fills.
        let apart = ping_pong::waits(&iteration.events, self.ring);
        let at = |number: &Lin| {
            let symbols = self.alike.symbols;
            let index = symbols.shifted(&first, l.iteration, number);
            index.ok_or("its index is not linear".to_owned())
        };
        if !apart && self.holding != Holding::Begun && at(&Lin::constant(0))? != self.next {
            return Err("the first use in a loop is not the one after those before it".to_owned());
        }
        self.next = first;
        self.holding = self.holding.used();
        let (holding, flight) = (self.holding, self.flight);
        self.loops.push((l.iteration, count));
        let top = (self.reading.clone(), self.fetching);
        self.events(&iteration.events)?;
        if self.is_owing() {
            return Err("a stage stays in use from one iteration to the next".to_owned());
        }
        if self.holding != holding {
            return Err(
                "a role has its phase of the order barrier for a part of a loop's iterations"
                    .to_owned(),
            );
        }
        if !apart && at(&Lin::symbol(l.iteration).plus(1))? != self.next {
            return Err(
                "an iteration does not begin with the stage after that of the iteration before"
                    .to_owned(),
            );
        }
        self.until_settled(&iteration.events, first, top)?;
        // A loop may have no iteration.
        self.flight = flight;
        self.loops.pop();
        self.next = at(&count)?;
        Ok(())
    }

    /// A loop that at most reads the stage that is held, which was waited for before it and is released behind it.
    fn read_in_iterations(&mut self, events: &[Event]) -> Result<(), String> {
        if !mentions(events, self.ring) {
            return Ok(());
        }
        if !only_reads(events, self.ring) {
            return Err("a loop has a part of a use of it that begins outside: such a loop reads the stage, and nothing else".to_owned());
        }
        let (next, top) = (self.next, (self.reading.clone(), self.fetching));
        self.events(events)?;
        self.until_settled(events, next, top)
    }

    /// The next iteration of a loop begins with what this one left in flight: iterations are walked until one begins with no more in flight than those before it. `first`
    /// is the first use of an iteration, `top` what was in flight before the loop.
    fn until_settled(
        &mut self,
        events: &[Event],
        first: Lin,
        (mut at_top, mut fetching): (Vec<Option<i64>>, Option<i64>),
    ) -> Result<(), String> {
        loop {
            let next = oldest(&at_top, &self.reading);
            let fetched = fetching.max(self.fetching);
            if next == at_top && fetched == fetching {
                break;
            }
            if next.len() > GROUPS {
                return Err(
                    "each iteration of a loop leaves another group of MMAs in flight".to_owned(),
                );
            }
            at_top.clone_from(&next);
            fetching = fetched;
            let (found, held) = (self.found.clone(), (self.held, self.gave));
            let (expected, filled) = (self.expected, self.filled.clone());
            (self.next, self.reading, self.fetching) = (first, next, fetched);
            self.events(events)?;
            (self.found, (self.held, self.gave)) = (found, held);
            (self.expected, self.filled) = (expected, filled);
        }
        (self.reading, self.fetching) = (at_top, fetching);
        Ok(())
    }

    /// A use is held in which nothing was released.
    fn is_owing(&self) -> bool {
        self.held.is_some() && !self.gave && !self.found.fills
    }

    /// The bytes of the use that was filled last.
    fn filled_whole(&mut self) -> Result<(), String> {
        if !self.found.fills || self.held.is_none() {
            return Ok(());
        }
        match self.expected {
            Some(bytes) => match self.filled.iter().find(|filled| **filled != bytes) {
                None => Ok(()),
                Some(filled) => Err(format!(
                    "{bytes} bytes are expected, and copies bring {filled}"
                )),
            },
            None => Err("bytes are not expected before copies bring them".to_owned()),
        }
    }

    fn piped(&mut self, p: &Piped) -> Result<(), String> {
        let own = |used: &Used| used.ring == self.ring;
        let held = |used: &Used, held: Option<Used>| held == Some(*used);
        self.is_drained(&p.what)?;
        match &p.what {
            What::Wait(used, Side::Empty)
                if own(used) && self.found.fills && self.drains && self.is_behind_fills() =>
            {
                self.drain(used)?;
            }
            What::Wait(used, Side::Order(_)) if own(used) => self.wait_order()?,
            What::Wait(used, Side::Complete(_)) if own(used) => self.settle()?,
            What::Pass(used, _, OrderArrival::Order) if own(used) => self.arrive_order()?,
            What::Pass(used, _, OrderArrival::Complete) if own(used) => self.arrive_complete()?,
            What::Wait(used, side) if own(used) => {
                if self.holding == Holding::Begun {
                    self.next = used.index;
                }
                self.holding = self.holding.used();
                if used.index != self.next {
                    return Err("a use does not follow the one before".to_owned());
                }
                let fills = *side == Side::Empty;
                if self.ordered_roles > 1 && !fills && self.holding == Holding::Nothing {
                    return Err(
                        "a role reads stages outside of its phase of the order barrier".to_owned(),
                    );
                }
                if !self.found.places.is_empty() && self.found.fills != fills {
                    return Err("a role fills its stages and reads them".to_owned());
                }
                self.filled_whole()?;
                if !fills && self.held.is_some() && !self.gave {
                    return Err("a stage is not released before the next is waited for".to_owned());
                }
                if fills != (p.threads.list().iter().filter(|t| **t).count() == 1)
                    || !fills && p.threads != self.role
                {
                    return Err(
                        "one thread fills its stages, and all of a role read them".to_owned()
                    );
                }
                (self.held, self.expected) = (Some(*used), None);
                self.filled.fill(0);
                self.gave = false;
                for age in self
                    .reading
                    .iter_mut()
                    .chain([&mut self.fetching])
                    .flatten()
                {
                    *age += 1;
                }
                self.next = self.next.plus(1);
                self.found.fills = fills;
                self.place(used.index)?;
            }
            What::Expect(used, bytes) if own(used) => {
                if !held(used, self.held) || !self.found.fills || self.expected.is_some() {
                    return Err("bytes are expected of a stage that is not empty".to_owned());
                }
                self.expected = Some(*bytes);
            }
            What::Fill(used, fill) if own(used) => self.fill(used, fill)?,
            What::Read(used, region) | What::Fetch(used, region) if own(used) => {
                if !held(used, self.held) || self.found.fills || p.threads != self.role {
                    return Err(format!(
                        "{}: a stage is read that is not known to be full",
                        region.name
                    ));
                }
                let fetches = matches!(p.what, What::Fetch(..));
                self.found.fetches |= fetches;
                let open = if fetches {
                    Some(&mut self.fetching)
                } else {
                    self.reading.last_mut()
                };
                if let Some(open) = open {
                    open.get_or_insert(0);
                }
                let here = self.found.here;
                self.found.places[here].reads.push(region.clone());
            }
            What::Arrive(used, to) if own(used) => {
                if !held(used, self.held) || self.found.fills || self.gave {
                    return Err("a stage is released that is not in use".to_owned());
                }
                if self.reading.iter().flatten().any(|age| *age >= self.lag) {
                    return Err(
                        "a stage is released before MMAs that read it are complete".to_owned()
                    );
                }
                if self.flight == Flight::Before {
                    return Err(
                        "a stage is released before the MMAs of the phase before are known to be complete".to_owned(),
                    );
                }
                if to.is_some() && self.found.fetches {
                    return Err(
                        "a stage that is read into registers is released to other blocks, whose arrivals are relaxed and order no reads".to_owned(),
                    );
                }
                if self.fetching.is_some_and(|age| age >= self.lag) {
                    return Err(
                        "a stage is released before a barrier of the warp that has read it into registers".to_owned(),
                    );
                }
                let arrivals = self.arrivals(p.threads, *to)?;
                let known = self.found.arrivals.get_or_insert_with(|| arrivals.clone());
                if *known != arrivals {
                    return Err("a stage is released by another number of threads".to_owned());
                }
                self.gave = true;
                // What is held is what is released, or is released later.
                if self.lag == 0 {
                    self.held = None;
                }
            }
            What::Made(ring, ..) if *ring == self.ring => {
                return Err("an mbarrier is made when roles have parted".to_owned());
            }
            // What other threads close or wait for says nothing of the role's own groups.
            What::Commit if p.threads == self.role => self.reading.push(None),
            What::Complete(pending) if p.threads == self.role => {
                let keep = (*pending as usize + 1).min(self.reading.len());
                self.reading.drain(..self.reading.len() - keep);
            }
            _ => {}
        }
        Ok(())
    }
}

/// How often a loop with uses of a ring is gone round: as often in all blocks of a cluster.
fn counted(l: &Iterations, alike: &Alike<'_>) -> Result<Lin, String> {
    let Some(count) = l.count else {
        return Err(
            "it is used in a loop that does not count its iterations from 0 by 1 to its limit"
                .to_owned(),
        );
    };
    if !alike.value(&count) {
        return Err(
            "blocks of a cluster go round the loop that uses it another number of times".to_owned(),
        );
    }
    Ok(count)
}

/// What may be in flight where two paths meet, the open group last.
fn oldest(a: &[Option<i64>], b: &[Option<i64>]) -> Vec<Option<i64>> {
    let from_the_end = |all: &[Option<i64>], i: usize| {
        let at = all.len().checked_sub(i + 1)?;
        all[at]
    };
    let groups = a.len().max(b.len());
    let both = (0..groups).rev();
    both.map(|i| from_the_end(a, i).max(from_the_end(b, i)))
        .collect()
}

/// Whether events are of a ring.
pub(in crate::prove) fn mentions(events: &[Event], ring: usize) -> bool {
    events.iter().any(|event| match event {
        Event::Piped(p) => matches!(&p.what,
            What::Wait(used, _) | What::Pass(used, ..) | What::Arrive(used, _) | What::Expect(used, _)
            | What::Fill(used, _) | What::Read(used, _) | What::Fetch(used, _) if used.ring == ring),
        Event::If(_, a, b) => mentions(a, ring) || mentions(b, ring),
        Event::Loop(l) => l.period.iter().any(|t| mentions(&t.events, ring)),
        _ => false,
    })
}

/// Whether events do nothing with a ring but read its stages.
fn only_reads(events: &[Event], ring: usize) -> bool {
    events.iter().all(|event| match event {
        Event::Piped(p) => {
            matches!(p.what, What::Read(..) | What::Fetch(..))
                || !mentions(std::slice::from_ref(event), ring)
        }
        Event::Loop(l) => l.period.iter().all(|t| only_reads(&t.events, ring)),
        _ => true,
    })
}

/// Whether a stage is waited for until it is empty, and nothing comes to it behind that.
pub(in crate::prove) fn drains(what: &What, behind: &[Event]) -> bool {
    let What::Wait(used, Side::Empty) = what else {
        return false;
    };
    !behind.iter().any(
        |e| matches!(e, Event::Piped(p) if matches!(&p.what, What::Expect(at, _) if at == used)),
    )
}

/// The index of what is counted: of a wait of one kind.
type IndexOf<'a> = dyn Fn(&What) -> Option<Lin> + 'a;

/// The indices of uses of a ring's stages.
fn of_uses(ring: usize) -> impl Fn(&What) -> Option<Lin> {
    move |what| match what {
        What::Wait(_, Side::Order(_) | Side::Complete(_)) => None,
        What::Wait(used, _) if used.ring == ring => Some(used.index),
        _ => None,
    }
}

/// The first index that events count, in the first iteration of the loops among them.
fn first_use(events: &[Event], of: &IndexOf<'_>, symbols: &Symbols) -> Result<Option<Lin>, String> {
    for event in events {
        match event {
            Event::Piped(p) => {
                if let Some(index) = of(&p.what) {
                    return Ok(Some(index));
                }
            }
            Event::Loop(l) => {
                for iteration in &l.period {
                    if let Some(index) = first_use(&iteration.events, of, symbols)? {
                        let first = symbols.shifted(&index, l.iteration, &Lin::constant(0));
                        return first.map(Some).ok_or("its index is not linear".to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(None)
}
