//! Consumer roles in a ping-pong schedule: one reads a run of stages while the others run their epilogues.
//!
//! Each of R roles reads runs of stages. The producer has a place for each role, so that its program says in which order the runs are filled:
//!
//! ```text
//! producer  for t in 0..T { run (t, 0), run (t, 1), …, run (t, R − 1) }
//! role r    for t in 0..T { wait order(r, t), run (t, r), wait for all MMAs, arrive at order(r + 1 mod R) }
//! ```
//!
//! The phases of a role's order barrier are counted from 0, in order, as iterations of a ring are. The order barrier of role r gets its arrivals of phase t from role r − 1 behind
//! its run (t, r − 1), and that of role 0 from the last role behind run (t − 1, R − 1). So runs follow each other in the order of the fills, and the roles together read every
//! stage as one role would: a run begins when the one before is complete, all of its stages were full and its MMAs have read them. No phase is missed: the next phase takes an
//! arrival behind this phase's run. Nobody waits forever: a role arrives when its run is read, which takes fills of that run and earlier ones alone.
//!
//! Runs may overlap. Then a role arrives on the order barrier while MMAs are in flight, so that the tensor cores do not idle, and arrives on a second barrier when they are complete:
//!
//! ```text
//! role r    for t in 0..T { wait order(r, t), run (t, r), arrive at order, wait for all MMAs, arrive at complete }
//!           in a run, before stages are released: wait complete(r, t)
//! ```
//!
//! An arrival on an empty barrier says that the MMAs of all earlier iterations have read their stages. So a role waits for the MMAs of the run before, ahead of its first
//! release. They are complete some time behind that run, whatever other roles do, and their barrier has the phases of the order barrier.

use std::collections::BTreeSet;

use super::{IndexOf, Place, Protocol, Walk, counted, first_use};
use crate::ir::{OrderArrival, Ring, Side};
use crate::prove::algebra::numbers::Mask;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::cluster::Alike;
use crate::prove::walk::execute::{Event, Iteration, Iterations};
use crate::prove::walk::hopper::{Piped, What};

/// Places of a role at which it uses a ring: more than kernels have a use for.
const PLACES: u32 = 16;

/// A role's place in the schedule.
#[derive(Clone)]
pub(super) struct Taken {
    /// The number of the role.
    role: u32,
    /// The loops around a run, outermost first: the symbol of their iterations, and how many there are.
    loops: Vec<(Sym, Lin)>,
    /// Threads that arrive on the next role's order barrier.
    passed: Option<u32>,
}

/// Whether a role is in its phase of the order barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// It is not.
    Nothing,
    /// It is, and its first use of a stage is still to come.
    Begun,
    /// It is, and has used a stage.
    Used,
}

impl Holding {
    /// The same behind a use of a stage.
    pub(super) fn used(self) -> Self {
        match self {
            Holding::Nothing => Holding::Nothing,
            Holding::Begun | Holding::Used => Holding::Used,
        }
    }
}

/// Whose MMAs may be in flight where a run begins before those of the run before are complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flight {
    /// Nobody's, or those of the role in its run.
    Nobody,
    /// Those of the run before: stages are not released yet.
    Before,
    /// The role's own, behind its run.
    Own,
}

/// A role's walk over its phases of the order barrier.
struct Count<'a> {
    ring: usize,
    overlaps: bool,
    threads: Mask,
    alike: &'a Alike<'a>,
    /// The number of the next phase.
    next: Lin,
    /// The phase that the role is in.
    held: Option<Lin>,
    /// The phase that it has left, while its MMAs may be in flight.
    unsettled: Option<Lin>,
    loops: Vec<(Sym, Lin)>,
    found: Option<Taken>,
}

/// The place of a role in the ping-pong schedule of a ring, whose phases are counted from 0 in order; none of a role outside of the schedule.
pub(super) fn taken(
    (ring, overlaps): (usize, bool),
    (threads, events): (Mask, &[Event]),
    alike: &Alike<'_>,
) -> Result<Option<Taken>, String> {
    let mut count = Count {
        ring,
        overlaps,
        threads,
        alike,
        next: Lin::constant(0),
        held: None,
        unsettled: None,
        loops: Vec::new(),
        found: None,
    };
    count.events(events)?;
    count.ended()?;
    Ok(count.found)
}

/// Whether events wait for the order barrier.
pub(super) fn waits(events: &[Event], ring: usize) -> bool {
    events.iter().any(|event| match event {
        Event::Piped(p) => phases(ring)(&p.what).is_some(),
        Event::Loop(l) => l.period.iter().any(|t| waits(&t.events, ring)),
        _ => false,
    })
}

/// Whether events arrive on the order barrier.
fn arrives(events: &[Event], ring: usize) -> bool {
    events.iter().any(|event| match event {
        Event::Piped(p) => matches!(&p.what, What::Pass(used, ..) if used.ring == ring),
        Event::Loop(l) => l.period.iter().any(|t| arrives(&t.events, ring)),
        _ => false,
    })
}

/// The numbers of phases.
fn phases(ring: usize) -> impl Fn(&What) -> Option<Lin> {
    move |what| match what {
        What::Wait(used, Side::Order(_)) if used.ring == ring => Some(used.index),
        _ => None,
    }
}

impl Count<'_> {
    fn events(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            match event {
                Event::Piped(piped) => self.piped(piped)?,
                Event::Loop(l) => self.repeat(l)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A loop: by induction over its iterations.
    fn repeat(&mut self, l: &Iterations) -> Result<(), String> {
        let own = phases(self.ring);
        let of: &IndexOf<'_> = &own;
        let [iteration] = &l.period[..] else {
            let own = |t: &Iteration| waits(&t.events, self.ring) || arrives(&t.events, self.ring);
            if l.period.iter().any(own) {
                return Err(
                    "a role waits for its order barrier in a loop whose iterations differ"
                        .to_owned(),
                );
            }
            return l.period.iter().try_for_each(|t| self.events(&t.events));
        };
        let Some(first) = first_use(&iteration.events, of, self.alike.symbols)? else {
            if arrives(&iteration.events, self.ring) {
                return Err("a role arrives on the order barrier in a loop in which it does not wait for it".to_owned());
            }
            // The MMAs before the phase may be waited for here.
            return self.events(&iteration.events);
        };
        let count = counted(l, self.alike)?;
        let at = |number: &Lin| {
            let index = self.alike.symbols.shifted(&first, l.iteration, number);
            index.ok_or("the phase of an order barrier is not linear".to_owned())
        };
        self.ended()?;
        if at(&Lin::constant(0))? != self.next {
            return Err("the first phase of the order barrier in a loop does not follow those before the loop".to_owned());
        }
        self.next = first;
        self.loops.push((l.iteration, count));
        self.events(&iteration.events)?;
        self.loops.pop();
        self.ended()?;
        if at(&Lin::symbol(l.iteration).plus(1))? != self.next {
            return Err(
                "phases of the order barrier are not counted one after the other".to_owned(),
            );
        }
        self.next = at(&count)?;
        Ok(())
    }

    fn piped(&mut self, p: &Piped) -> Result<(), String> {
        match &p.what {
            What::Wait(used, Side::Order(role)) if used.ring == self.ring => {
                self.ended()?;
                if used.index != self.next {
                    return Err(
                        "phases of the order barrier are not counted one after the other"
                            .to_owned(),
                    );
                }
                if p.threads != self.threads {
                    return Err(
                        "some threads of a role do not wait for its order barrier".to_owned()
                    );
                }
                if self.found.is_some() {
                    return Err("a role waits for its order barrier at several places".to_owned());
                }
                self.found = Some(Taken {
                    role: *role,
                    loops: self.loops.clone(),
                    passed: None,
                });
                self.held = Some(used.index);
                self.next = self.next.plus(1);
            }
            What::Wait(used, Side::Complete(role)) if used.ring == self.ring => {
                let own = self.found.as_ref().is_some_and(|found| found.role == *role);
                if self.held != Some(used.index) || !own {
                    return Err(
                        "a role waits for MMAs in a phase of the order barrier that is not its own"
                            .to_owned(),
                    );
                }
                if p.threads != self.threads {
                    return Err(
                        "some threads of a role do not wait for the MMAs before its phase of the order barrier"
                            .to_owned(),
                    );
                }
            }
            What::Pass(used, role, what) if used.ring == self.ring => {
                let passed = match what {
                    OrderArrival::Order => {
                        self.unsettled = self.held.filter(|_| self.overlaps);
                        self.held.take()
                    }
                    OrderArrival::Complete => self.unsettled.take(),
                };
                let found = self.found.as_mut().filter(|found| found.role == *role);
                let Some(found) = found.filter(|_| passed == Some(used.index)) else {
                    return Err(
                        "a role arrives on the order barrier without having waited for it"
                            .to_owned(),
                    );
                };
                let list = p.threads.list();
                let of_role = self.threads.list();
                let mut warps = of_role.chunks(32).zip(list.chunks(32));
                if !warps.all(|(role, pass)| !role.contains(&true) || pass.contains(&true)) {
                    return Err(
                        "a warp reads stages, and others arrive on the order barrier".to_owned(),
                    );
                }
                let count = list.iter().filter(|t| **t).count() as u32;
                if *found.passed.get_or_insert(count) != count {
                    return Err(
                        "another number of threads arrives on the order barrier than has waited for its MMAs"
                            .to_owned(),
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Count<'_> {
    /// The role is in no phase, and no MMAs are in flight behind one.
    fn ended(&self) -> Result<(), String> {
        match (self.held, self.unsettled) {
            (Some(_), _) => Err("a role never arrives on the order barrier".to_owned()),
            (None, Some(_)) => Err("a role never arrives behind its MMAs".to_owned()),
            (None, None) => Ok(()),
        }
    }
}

impl Walk<'_> {
    /// The role waits for its order barrier.
    pub(super) fn wait_order(&mut self) -> Result<(), String> {
        if self.ordered_roles < 2 {
            return Err(
                "a role waits for an order barrier in a ring without a ping-pong schedule"
                    .to_owned(),
            );
        }
        self.holding = Holding::Begun;
        if self.overlaps {
            self.flight = Flight::Before;
        }
        Ok(())
    }

    /// The role knows that the MMAs of the run before are complete.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        if self.holding == Holding::Nothing || !self.overlaps {
            return Err(
                "a role waits for MMAs in a phase of the order barrier that is not its own"
                    .to_owned(),
            );
        }
        self.flight = Flight::Nobody;
        Ok(())
    }

    /// The role arrives on the order barrier: it has released what it read, and its reads are complete unless runs overlap.
    pub(super) fn arrive_order(&mut self) -> Result<(), String> {
        if self.holding == Holding::Nothing {
            return Err(
                "a role arrives on the order barrier without having waited for it".to_owned(),
            );
        }
        if self.is_owing() {
            return Err("a stage is in use when the role arrives on the order barrier".to_owned());
        }
        if !self.overlaps {
            self.complete(
                "the role arrives on the order barrier before MMAs that read stages are complete",
            )?;
        }
        (self.holding, self.held) = (Holding::Nothing, None);
        if self.overlaps {
            self.flight = Flight::Own;
        }
        Ok(())
    }

    /// The role says that the MMAs of its run are complete.
    pub(super) fn arrive_complete(&mut self) -> Result<(), String> {
        if self.flight != Flight::Own {
            return Err(
                "the role arrives behind its MMAs before it arrives on the order barrier"
                    .to_owned(),
            );
        }
        self.complete(
            "the role arrives behind its MMAs before those that read stages are complete",
        )?;
        self.flight = Flight::Nobody;
        Ok(())
    }

    /// All reads of stages are complete.
    fn complete(&self, otherwise: &str) -> Result<(), String> {
        if self.reading.iter().flatten().next().is_some() || self.fetching.is_some() {
            return Err(otherwise.to_owned());
        }
        Ok(())
    }

    /// The place of a use, known or new.
    pub(super) fn place(&mut self, index: Lin) -> Result<(), String> {
        let places = &mut self.found.places;
        let known = |place: &Place| place.index == index && place.loops == self.loops;
        // Who fills for roles in a ping-pong schedule does so at a place for each of them, and each of them reads at one.
        let most = match (self.ordered_roles, self.found.fills) {
            (1, _) => PLACES,
            (ordered_roles, true) => ordered_roles,
            (_, false) => 1,
        };
        self.found.here = match places.iter().position(known) {
            Some(known) => known,
            None if places.len() < most as usize => {
                places.push(Place {
                    loops: self.loops.clone(),
                    index,
                    reads: Vec::new(),
                    comes: Vec::new(),
                });
                places.len() - 1
            }
            None => return Err("it is used at too many places of a role".to_owned()),
        };
        Ok(())
    }
}

/// Each place at which stages are read, with that at which they are filled: the same for all consumers, or one for each in a ping-pong schedule.
pub(super) fn pairs<'p>(
    ring: &Ring,
    producer: &'p Protocol,
    consumers: &[&'p Protocol],
    blocks: i64,
) -> Result<Vec<(&'p Place, &'p Place)>, String> {
    let mut all = Vec::new();
    if ring.ordered_roles < 2 {
        for consumer in consumers {
            if consumer.uses != producer.uses {
                return Err("roles use stages another number of times".to_owned());
            }
            let (read, filled) = (&consumer.places, &producer.places);
            if read.len() != filled.len() {
                return Err(format!(
                    "it is filled at {} places of a role and read at {} of another",
                    filled.len(),
                    read.len()
                ));
            }
            all.extend(read.iter().zip(filled));
        }
        return Ok(all);
    }
    let count = ring.ordered_roles as usize;
    if consumers.len() != count || producer.places.len() != count || producer.taken.is_some() {
        return Err(format!(
            "the ping-pong schedule has {} roles, {} roles read stages, and stages are filled at {} places",
            ring.ordered_roles,
            consumers.len(),
            producer.places.len()
        ));
    }
    let mut outer: Option<Vec<(Sym, Lin)>> = None;
    let mut within = BTreeSet::new();
    for (number, filled) in (0..ring.ordered_roles).zip(&producer.places) {
        let takes = |p: &&&Protocol| p.taken.as_ref().is_some_and(|t| t.role == number);
        let found = consumers.iter().find(takes);
        let (read, taken) = found
            .and_then(|p| Some((p.places.first()?, p.taken.as_ref()?)))
            .ok_or_else(|| format!("no role has place {number} in the ping-pong schedule"))?;
        let wanted = ring.consumers / blocks as u32;
        if taken.passed != Some(wanted) {
            return Err(format!(
                "{} threads arrive on the order barrier, whose mbarrier counts {wanted}",
                taken.passed.unwrap_or(0)
            ));
        }
        // A phase has one run. The loops around a use of a stage are those around the phase, and inner ones.
        let depth = taken.loops.len();
        if !read.loops.starts_with(&taken.loops) || filled.loops.len() < depth {
            return Err(
                "a role waits for its order barrier in other loops than it reads in".to_owned(),
            );
        }
        // The same phases for all, in which the runs are filled one after the other.
        let around = &filled.loops[..depth];
        if *outer.get_or_insert_with(|| around.to_vec()) != around {
            return Err(
                "stages of roles are filled in other loops than roles wait for the order barrier in".to_owned(),
            );
        }
        if let Some((inner, _)) = filled.loops.get(depth)
            && !within.insert(*inner)
        {
            return Err("stages of several roles are filled in iterations of one loop".to_owned());
        }
        all.push((read, filled));
    }
    Ok(all)
}
