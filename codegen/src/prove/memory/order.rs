//! The order of accesses in shared memory, along every path.
//!
//! A state records, for each class of units of shared memory (`histories`), the last writer, whether that write has completed and for whom it is ordered, and
//! the readers since. A uniform branch is followed on both sides unless the path has already decided it: a path remembers the outcomes of branches on data, and
//! the range of each value it compared. A loop is followed iteration by iteration until no new state appears, which happens because states and ranges are finite; it
//! may exit after any iteration.
//!
//! Three rules keep the number of states small. Memory states are interned, and so is the effect of a run of accesses and barriers on each. A state is not
//! followed if another one with the same memory has decided less ([`State::covers`]). A loop that leaves shared memory unchanged counts as one iteration ([`Walk::idle`]).

mod decisions;
mod histories;
mod imprint;
mod memory;
#[cfg(test)]
mod tests;
mod versions;

use std::hash::BuildHasher;
use std::rc::Rc;

use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Event, Iterations, Trace};
use crate::prove::walk::memory::Access;
use crate::quick::{Quick, QuickMap};
use decisions::Decisions;
use histories::{Histories, Step};
use memory::{Fault, Sent, Threads, Unit};
use versions::{Renewal, Versions, Way};

/// States that are visited at most.
const STATES: usize = 20_000;

/// Where a path is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    /// The state of shared memory, by its number.
    memory: u32,
    decisions: Decisions,
    /// The thread has left the loop, or the kernel.
    gone: Gone,
}

impl State {
    /// Whether every continuation of `other` is also a continuation of this state.
    fn covers(&self, other: &Self) -> bool {
        self.memory == other.memory
            && self.gone == other.gone
            && self.decisions.covers(&other.decisions)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Gone {
    No,
    Loop,
    Kernel,
}

struct Walk<'t> {
    symbols: &'t Symbols,
    histories: Rc<Histories>,
    /// The states of shared memory so far: a unit of each class.
    memories: Vec<Vec<Unit>>,
    /// Their numbers, by their hash.
    known: QuickMap<u64, Vec<u32>>,
    /// What a run of events, by its address, makes of a state of shared memory where some symbols are 0.
    after: QuickMap<(usize, u32, Vec<Sym>), u32>,
    versions: Versions,
    visited: usize,
}

/// Follows every path; returns how many states were visited.
pub(in crate::prove) fn ordered(trace: &Trace) -> Result<usize, ProofError> {
    let Some((Event::Roles(roles), before)) = trace.events.split_last() else {
        return in_order(&trace.events, None, trace);
    };
    // Roles share stages of rings and nothing else, so that each is a kernel of its own.
    let mut states = 0;
    for (i, (_, events)) in roles.iter().enumerate() {
        for (_, others) in &roles[..i] {
            shared_by_roles(events, others)?;
        }
        let all: Vec<Event> = before.iter().chain(events).cloned().collect();
        states += in_order(&all, Some(before.len()).filter(|_| meets(events)), trace)?;
    }
    Ok(states)
}

/// What one role accesses outside of rings, another does not.
fn shared_by_roles(one: &[Event], other: &[Event]) -> Result<(), ProofError> {
    let ranges = |events: &[Event]| {
        let mut all = Vec::new();
        accesses(events, &mut all);
        let range = |a: Rc<Access>| {
            let (lo, hi) = a.at.range_of(a.active)?;
            Some((lo, hi + i64::from(a.bytes), a))
        };
        all.into_iter().filter_map(range).collect::<Vec<_>>()
    };
    let (a, b) = (ranges(one), ranges(other));
    for (lo, end, x) in &a {
        let shared = b.iter().find(|(from, to, _)| lo < to && from < end);
        if let Some((from, _, y)) = shared {
            let thread = |a: &Access| a.active.first().unwrap_or(0);
            return Err(ProofError::Race {
                accesses: [x.name.clone(), y.name.clone()],
                threads: [thread(x), thread(y)],
                byte: *lo.max(from),
                missing: "roles are ordered by rings only",
            });
        }
    }
    Ok(())
}

fn accesses(events: &[Event], all: &mut Vec<Rc<Access>>) {
    for event in events {
        match event {
            Event::Access(a) => all.push(Rc::clone(a)),
            Event::If(_, a, b) => {
                accesses(a, all);
                accesses(b, all);
            }
            Event::Loop(l) => l.period.iter().for_each(|t| accesses(&t.events, all)),
            _ => {}
        }
    }
}

/// Whether the threads of a role meet at a barrier of their own.
fn meets(events: &[Event]) -> bool {
    events.iter().any(|event| match event {
        Event::RoleMeets => true,
        Event::If(_, a, b) => meets(a) || meets(b),
        Event::Loop(l) => l.period.iter().any(|t| meets(&t.events)),
        _ => false,
    })
}

/// The accesses of threads that do not part; or of those of a role, where threads part behind so many events. A barrier of the role orders what its own threads did:
/// what others did before they parted is ordered by a barrier of the block already.
fn in_order(events: &[Event], part: Option<usize>, trace: &Trace) -> Result<usize, ProofError> {
    let mut versions = Versions::default();
    let histories = Rc::new(Histories::of(events, trace.threads, &mut versions));
    let units = vec![Unit::EMPTY; histories.bytes.len()];
    let mut walk = Walk {
        symbols: &trace.symbols,
        histories,
        memories: Vec::new(),
        known: QuickMap::default(),
        after: QuickMap::default(),
        versions,
        visited: 0,
    };
    let start = State {
        memory: walk.number_of(units),
        decisions: Decisions::default(),
        gone: Gone::No,
    };
    let (before, behind) = events.split_at(part.unwrap_or(0));
    let parted = walk.events(before, vec![start])?;
    let mut units = parted
        .iter()
        .filter(|_| part.is_some())
        .flat_map(|state| &walk.memories[state.memory as usize]);
    if !units.all(Unit::is_settled) {
        return Err(ProofError::Undecided {
            what: "a barrier of a role, where shared memory is accessed before roles part without a barrier of the block behind it".to_owned(),
        });
    }
    let ends = walk.events(behind, parted)?;
    walk.all_sent(&ends)?;
    Ok(walk.visited)
}

impl Walk<'_> {
    fn events(
        &mut self,
        events: &[Event],
        mut states: Vec<State>,
    ) -> Result<Vec<State>, ProofError> {
        let mut rest = events;
        while let Some((event, others)) = rest.split_first() {
            let run = rest.iter().take_while(|e| e.is_simple()).count();
            if run > 0 {
                let (events, others) = rest.split_at(run);
                for state in states.iter_mut().filter(|s| s.gone == Gone::No) {
                    state.memory = self.run(events, state.memory, &state.decisions.zero)?;
                }
                rest = others;
                dedup(&mut states);
                continue;
            }
            rest = others;
            let mut after = Vec::new();
            for state in states {
                if state.gone != Gone::No {
                    after.push(state);
                    continue;
                }
                match event {
                    Event::If(when, then, otherwise) => {
                        for (f, side) in [(Rc::clone(when), then), (when.not(), otherwise)] {
                            for decisions in state.decisions.with(&f) {
                                let mut state = state.clone();
                                state.decisions = decisions;
                                after.extend(self.events(side, vec![state])?);
                            }
                        }
                    }
                    Event::Leave(when) | Event::Exit(when) => {
                        let gone = if matches!(event, Event::Leave(_)) {
                            Gone::Loop
                        } else {
                            Gone::Kernel
                        };
                        for decisions in state.decisions.with(when) {
                            after.push(State {
                                decisions,
                                gone,
                                ..state.clone()
                            });
                        }
                        for decisions in state.decisions.with(&when.not()) {
                            after.push(State {
                                decisions,
                                ..state.clone()
                            });
                        }
                    }
                    Event::Assume(f) => {
                        for decisions in state.decisions.with(f) {
                            after.push(State {
                                decisions,
                                ..state.clone()
                            });
                        }
                    }
                    Event::Loop(iterations) => after.extend(self.iterations(iterations, state)?),
                    _ => {}
                }
            }
            states = after;
            dedup(&mut states);
            self.visited += states.len();
            if self.visited > STATES * 50 || states.len() > STATES {
                return Err(ProofError::Paths {
                    states: self.visited,
                });
            }
        }
        Ok(states)
    }

    /// All states in which a loop is left.
    fn iterations(&mut self, l: &Iterations, mut start: State) -> Result<Vec<State>, ProofError> {
        let mut values = Vec::new();
        collect_iterations(l, &mut values);
        // Once a growing value exceeds the largest constant, every comparison is decided.
        let constants = values.iter().map(|x| x.k.range());
        let most = constants.fold(0, |most, (lo, hi)| most.max(lo.saturating_neg()).max(hi));
        // In a loop inside of another, what was known of its last time is not of this one.
        let symbols = self.symbols;
        start.decisions.forget(l.trips, symbols);
        start.decisions.renew(&l.own, symbols);
        start.decisions.begin(l.iteration, &values, symbols);
        let renewal = Renewal::of(l, &self.histories, &self.versions);
        start.memory = self.with_versions(start.memory, |all, buffer, v| {
            all.entered(buffer, v, (l, symbols), &renewal)
        });
        if let Some(states) = self.idle(l, &start, &renewal)? {
            return Ok(states);
        }
        let mut next: QuickMap<u32, u32> = QuickMap::default();
        let mut left = Vec::new();
        // By the state of shared memory.
        let mut all: QuickMap<u32, Vec<State>> = QuickMap::default();
        let mut count = 0;
        let mut open = vec![start];
        let mut first = true;
        while let Some(state) = open.pop() {
            let known = all.entry(state.memory).or_default();
            if known.iter().any(|k| k.covers(&state)) {
                continue;
            }
            known.push(state.clone());
            count += 1;
            if count > STATES {
                return Err(ProofError::Paths { states: count });
            }
            let mut now = vec![state];
            for iteration in &l.period {
                let mut begun = Vec::new();
                for s in now {
                    let none = first.then(|| s.decisions.with(&iteration.begins.not()));
                    for decisions in none.into_iter().flatten() {
                        left.push((no_iteration((l, symbols), &s, decisions), Way::Before));
                    }
                    for decisions in s.decisions.with(&iteration.begins) {
                        begun.push(State {
                            decisions,
                            ..s.clone()
                        });
                    }
                }
                first = false;
                let after = self.events(&iteration.events, begun)?;
                now = Vec::new();
                for s in after {
                    match s.gone {
                        Gone::No => {
                            for decisions in s.decisions.with(&iteration.again.not()) {
                                let state = State {
                                    decisions,
                                    ..s.clone()
                                };
                                left.push((behind((l, symbols), state), Way::End));
                            }
                            for mut decisions in s.decisions.with(&iteration.again) {
                                decisions.renew(&l.own, symbols);
                                now.push(State {
                                    decisions,
                                    ..s.clone()
                                });
                            }
                        }
                        Gone::Loop => {
                            let state = State {
                                gone: Gone::No,
                                ..s
                            };
                            left.push((behind((l, symbols), state), Way::Midst));
                        }
                        Gone::Kernel => left.push((s, Way::Midst)),
                    }
                }
                dedup(&mut now);
            }
            for mut s in now {
                s.decisions.iteration(l.iteration, &values, most, symbols);
                s.memory = *next.entry(s.memory).or_insert_with(|| {
                    self.with_versions(s.memory, |all, buffer, v| {
                        all.renewed(buffer, v, (l, symbols), &renewal)
                    })
                });
                open.push(s);
            }
        }
        let mut after: QuickMap<(u32, Way), u32> = QuickMap::default();
        let mut states = Vec::new();
        for (mut s, way) in left {
            let before = s.memory;
            s.memory = *after.entry((before, way)).or_insert_with(|| {
                self.with_versions(before, |all, _, v| all.left(v, (l, symbols), way))
            });
            states.push(s);
        }
        dedup(&mut states);
        Ok(states)
    }

    /// The exit states of a loop whose body neither accesses shared memory nor branches and leaves the memory state unchanged; `None` for any other loop.
    /// The number of iterations then makes no difference, and one iteration stands for all.
    fn idle(
        &mut self,
        l: &Iterations,
        start: &State,
        renewal: &Renewal,
    ) -> Result<Option<Vec<State>>, ProofError> {
        let symbols = self.symbols;
        let idle = |e: &Event| e.is_simple() && !matches!(e, Event::Access(_));
        if !l
            .period
            .iter()
            .all(|iteration| iteration.events.iter().all(idle))
        {
            return Ok(None);
        }
        let mut memory = start.memory;
        for iteration in &l.period {
            memory = self.run(&iteration.events, memory, &start.decisions.zero)?;
        }
        let mut renewed =
            |all: &mut Versions, buffer, v| all.renewed(buffer, v, (l, symbols), renewal);
        if memory != start.memory || self.with_versions(memory, &mut renewed) != memory {
            return Ok(None);
        }
        let begins = &l.period[0].begins;
        let none = start.decisions.with(&begins.not());
        let none = none
            .into_iter()
            .map(|d| (no_iteration((l, symbols), start, d), Way::Before));
        let some = start.decisions.with(begins).into_iter().map(|decisions| {
            let state = State {
                decisions,
                ..start.clone()
            };
            (behind((l, symbols), state), Way::End)
        });
        let left: Vec<(State, Way)> = none.chain(some).collect();
        let left = left.into_iter().map(|(state, way)| {
            let memory = self.with_versions(memory, |all, _, v| all.left(v, (l, symbols), way));
            State { memory, ..state }
        });
        Ok(Some(left.collect()))
    }

    /// Where the kernel ends, no copy to global memory reads shared memory any more.
    fn all_sent(&self, ends: &[State]) -> Result<(), ProofError> {
        let units = ends
            .iter()
            .flat_map(|end| self.memories[end.memory as usize].iter().enumerate());
        let mut open = units.filter(|(_, unit)| unit.sent != Sent::No);
        open.next().map_or(Ok(()), |(class, unit)| {
            Err(ProofError::Unfinished {
                access: self.histories.accesses[unit.by[1] as usize].name.clone(),
                byte: self.histories.bytes[class],
            })
        })
    }

    /// The number of a state of shared memory.
    fn number_of(&mut self, units: Vec<Unit>) -> u32 {
        let hash = Quick::default().hash_one(&units);
        let same = self.known.entry(hash).or_default();
        let known = same.iter().find(|&&n| *self.memories[n as usize] == units);
        if let Some(&known) = known {
            return known;
        }
        let number = self.memories.len() as u32;
        same.push(number);
        self.memories.push(units);
        number
    }

    /// What a run of accesses and barriers makes of a state of shared memory.
    fn run(&mut self, events: &[Event], memory: u32, zero: &[Sym]) -> Result<u32, ProofError> {
        let key = (events.as_ptr() as usize, memory, zero.to_vec());
        if let Some(&known) = self.after.get(&key) {
            return Ok(known);
        }
        let mut units = self.memories[memory as usize].clone();
        for event in events {
            match event {
                Event::Access(_) => {
                    let histories = Rc::clone(&self.histories);
                    if let Some(steps) = histories.segment(event) {
                        self.touch(steps, &mut units, zero)?;
                    }
                }
                event => units.iter_mut().for_each(|unit| unit.synchronise(event)),
            }
        }
        let after = self.number_of(units);
        self.after.insert(key, after);
        Ok(after)
    }

    /// What the accesses of a segment make of shared memory.
    fn touch(
        &mut self,
        steps: &[Step],
        units: &mut [Unit],
        zero: &[Sym],
    ) -> Result<(), ProofError> {
        let histories = Rc::clone(&self.histories);
        // Versions where some symbols are 0.
        let mut here: QuickMap<u32, u32> = QuickMap::default();
        let mut expected = |there: u32, meant: u32| {
            let mut of = |version| {
                let known = here.entry(version);
                *known.or_insert_with(|| self.versions.without(version, zero))
            };
            there == meant || of(there) == of(meant)
        };
        // Of several refusals, the one that comes first in the text.
        let mut refused: Option<(u32, u16, ProofError)> = None;
        for step in steps {
            let unit = &mut units[step.class];
            let before = *unit;
            let fault = step.touches.iter().find_map(|touch| {
                let effect = histories.effects[touch.effect as usize];
                let expected = expected(unit.version, effect.version);
                let named = (touch.first.access, touch.first.thread);
                let fault = unit.touch(effect, touch.threads, expected, named)?;
                Some((touch.first, *unit, fault))
            });
            let Some((first, at, fault)) = fault else {
                continue;
            };
            // Which access by which thread it is, one after the other.
            let mut unit = before;
            let mut each = histories.singles(histories.segment_of(first), step.class);
            let single = each.find_map(|single| {
                let (access, thread) = (single.access as usize, single.thread.into());
                let effect = histories.effects[histories.effect(access, thread) as usize];
                let expected = expected(unit.version, effect.version);
                let named = (single.access, single.thread);
                let threads = Threads::One(single.thread);
                let fault = unit.touch(effect, threads, expected, named)?;
                Some((named, unit, fault))
            });
            let (named, unit, fault) = single.unwrap_or(((first.access, first.thread), at, fault));
            if refused.as_ref().is_none_or(|(a, t, _)| named < (*a, *t)) {
                let error = refusal(&histories, named, step.class, unit, fault);
                refused = Some((named.0, named.1, error));
            }
        }
        refused.map_or(Ok(()), |(_, _, error)| Err(error))
    }

    /// The state of shared memory with other versions.
    fn with_versions(
        &mut self,
        memory: u32,
        mut f: impl FnMut(&mut Versions, u16, u32) -> u32,
    ) -> u32 {
        let mut units = self.memories[memory as usize].clone();
        let mut known: QuickMap<(u16, u32), u32> = QuickMap::default();
        for unit in units.iter_mut().filter(|unit| unit.buffer != 0) {
            let key = (unit.buffer, unit.version);
            unit.version = *known
                .entry(key)
                .or_insert_with(|| f(&mut self.versions, key.0, key.1));
        }
        self.number_of(units)
    }
}

/// Why an access is refused that touches the first unit of a class.
fn refusal(
    histories: &Histories,
    (access, thread): (u32, u16),
    class: usize,
    unit: Unit,
    fault: Fault,
) -> ProofError {
    let name = |access: u32| histories.accesses[access as usize].name.clone();
    let (thread, byte) = (thread.into(), histories.bytes[class]);
    match fault {
        Fault::Undefined(missing) => ProofError::Undefined {
            access: name(access),
            thread,
            byte,
            missing,
        },
        Fault::AfterWrite(missing) => ProofError::Race {
            accesses: [name(unit.by[0]), name(access)],
            threads: [unit.writer.into(), thread],
            byte,
            missing,
        },
        Fault::AfterRead(missing) => ProofError::Race {
            accesses: [name(unit.by[1]), name(access)],
            threads: [unit.a_reader.into(), thread],
            byte,
            missing,
        },
    }
}

/// Drops states that another one covers: its paths include theirs.
fn dedup(states: &mut Vec<State>) {
    if states.len() < 2 {
        return;
    }
    let mut kept: Vec<State> = Vec::with_capacity(states.len());
    for state in states.drain(..) {
        if !kept.iter().any(|k| k.covers(&state)) {
            kept.retain(|k| !state.covers(k));
            kept.push(state);
        }
    }
    *states = kept;
}

/// The state behind a loop that has no iteration.
fn no_iteration(
    (l, symbols): (&Iterations, &Symbols),
    before: &State,
    decisions: Decisions,
) -> State {
    let mut state = State {
        decisions,
        ..before.clone()
    };
    state.decisions.forget(l.iteration, symbols);
    state.decisions.zero.push(l.trips);
    state
}

/// A state behind a loop.
fn behind((l, symbols): (&Iterations, &Symbols), mut state: State) -> State {
    state.decisions.forget(l.iteration, symbols);
    state.decisions.forget(l.trips, symbols);
    state
}

fn collect(f: &Formula, all: &mut Vec<Lin>) {
    match f {
        Formula::Ge(x) => all.push(*x),
        Formula::And(a, b) | Formula::Or(a, b) => {
            collect(a, all);
            collect(b, all);
        }
        _ => {}
    }
}

/// The values that a loop, and the loops nested in it, compare with 0.
fn collect_iterations(l: &Iterations, all: &mut Vec<Lin>) {
    for iteration in &l.period {
        collect(&iteration.begins, all);
        collect(&iteration.again, all);
        collect_events(&iteration.events, all);
    }
}

fn collect_events(events: &[Event], all: &mut Vec<Lin>) {
    for e in events {
        match e {
            Event::If(f, a, b) => {
                collect(f, all);
                collect_events(a, all);
                collect_events(b, all);
            }
            Event::Loop(l) => collect_iterations(l, all),
            Event::Leave(f) | Event::Exit(f) | Event::Assume(f) => collect(f, all),
            _ => {}
        }
    }
}
