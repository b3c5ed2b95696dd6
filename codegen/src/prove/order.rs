//! The order of accesses in shared memory, along every path.
//!
//! The state is, for each unit of shared memory, who wrote it last, whether that write has arrived and to whom it is ordered, and who has read it
//! since. A branch on which all threads agree is followed on both sides, unless the path has decided it already: a path remembers what it decided
//! about data, and between which numbers a value lies. A loop is followed turn by turn until state and decisions repeat, which they do since both are
//! finite; it may be left after any turn.
//!
//! Paths that have come to the same state of shared memory share what follows: states are kept once, by number, and so is what a run of accesses and
//! barriers makes of each.

mod decisions;
mod memory;
mod versions;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::rc::Rc;

use super::ProofError;
use super::execute::{Event, Trace, Turns};
use super::formula::Formula;
use super::memory::{Access, Kind};
use super::quick::{Quick, QuickMap, QuickSet};
use super::value::{Lin, Sym};
use decisions::Decisions;
use memory::{Fault, Unit, read, synchronise, write};
use versions::{Renewal, Versions};

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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Gone {
    No,
    Loop,
    Kernel,
}

struct Walk<'t> {
    grain: i64,
    /// The states of shared memory so far.
    memories: Vec<Vec<Unit>>,
    /// Their numbers, by their hash.
    known: QuickMap<u64, Vec<u32>>,
    /// What a run of events, by its address, makes of a state of shared memory where some symbols are 0.
    after: QuickMap<(usize, u32, Vec<Sym>), u32>,
    versions: Versions,
    names: Vec<&'t str>,
    /// The name and the version of each access, by number.
    numbers: HashMap<*const Access, (u16, u32)>,
    visited: usize,
}

/// Follows every path; returns how many states were visited.
pub(super) fn ordered(trace: &Trace) -> Result<usize, ProofError> {
    let grain = trace
        .accesses
        .iter()
        .map(|a| i64::from(a.bytes))
        .min()
        .unwrap_or(16)
        .max(1);
    let most = trace
        .accesses
        .iter()
        .flat_map(|a| a.at.iter().map(move |&at| at + i64::from(a.bytes)))
        .max()
        .unwrap_or(0);
    let mut names: Vec<&str> = Vec::new();
    let mut numbers = HashMap::new();
    let mut versions = Versions::default();
    for a in &trace.accesses {
        let known = names.iter().position(|n| *n == a.name);
        let n = known.unwrap_or(names.len());
        if known.is_none() {
            names.push(&a.name);
        }
        numbers.insert(Rc::as_ptr(a), (n as u16, versions.number(&a.version)));
    }
    let units = (most + grain - 1) / grain;
    let mut walk = Walk {
        grain,
        memories: Vec::new(),
        known: QuickMap::default(),
        after: QuickMap::default(),
        versions,
        names,
        numbers,
        visited: 0,
    };
    let start = State {
        memory: walk.number_of(vec![Unit::EMPTY; units as usize]),
        decisions: Decisions::default(),
        gone: Gone::No,
    };
    walk.events(&trace.events, vec![start])?;
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
                    Event::Loop(turns) => after.extend(self.turns(turns, state)?),
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
    fn turns(&mut self, l: &Turns, mut start: State) -> Result<Vec<State>, ProofError> {
        let mut values = Vec::new();
        for turn in &l.period {
            collect(&turn.begins, &mut values);
            collect(&turn.again, &mut values);
            collect_events(&turn.events, &mut values);
        }
        start.decisions.zero.push(l.turn);
        let renewal = Renewal::of(l);
        start.memory = self.with_versions(start.memory, |all, buffer, v| {
            all.entered(buffer, v, l, &renewal)
        });
        let mut next: QuickMap<u32, u32> = QuickMap::default();
        let mut left = Vec::new();
        let mut all: QuickSet<State> = QuickSet::default();
        let mut open = vec![start];
        let mut first = true;
        while let Some(state) = open.pop() {
            if !all.insert(state.clone()) {
                continue;
            }
            if all.len() > STATES {
                return Err(ProofError::Paths { states: all.len() });
            }
            let mut now = vec![state];
            for turn in &l.period {
                let mut begun = Vec::new();
                for s in now {
                    let none = first.then(|| s.decisions.with(&turn.begins.not()));
                    for decisions in none.into_iter().flatten() {
                        // No turn at all.
                        let mut none = State {
                            decisions,
                            ..s.clone()
                        };
                        none.decisions.forget(l.turn);
                        none.decisions.zero.push(l.trips);
                        left.push((none, false));
                    }
                    for decisions in s.decisions.with(&turn.begins) {
                        begun.push(State {
                            decisions,
                            ..s.clone()
                        });
                    }
                }
                first = false;
                let after = self.events(&turn.events, begun)?;
                now = Vec::new();
                for s in after {
                    match s.gone {
                        Gone::No => {
                            for decisions in s.decisions.with(&turn.again.not()) {
                                let state = State {
                                    decisions,
                                    ..s.clone()
                                };
                                left.push((behind(l, state), true));
                            }
                            for decisions in s.decisions.with(&turn.again) {
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
                            left.push((behind(l, state), true));
                        }
                        Gone::Kernel => left.push((s, true)),
                    }
                }
                dedup(&mut now);
            }
            for mut s in now {
                s.decisions.turn(l.turn, &values);
                s.memory = *next.entry(s.memory).or_insert_with(|| {
                    self.with_versions(s.memory, |all, buffer, v| {
                        all.renewed(buffer, v, l, &renewal)
                    })
                });
                open.push(s);
            }
        }
        let mut after: QuickMap<(u32, bool), u32> = QuickMap::default();
        let mut states = Vec::new();
        for (mut s, turned) in left {
            let before = s.memory;
            s.memory = *after
                .entry((before, turned))
                .or_insert_with(|| self.with_versions(before, |all, _, v| all.left(v, l, turned)));
            states.push(s);
        }
        dedup(&mut states);
        Ok(states)
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
                Event::Access(a) => self.touch(a, &mut units, zero)?,
                event => synchronise(event, &mut units),
            }
        }
        let after = self.number_of(units);
        self.after.insert(key, after);
        Ok(after)
    }

    fn touch(
        &mut self,
        a: &Rc<Access>,
        units: &mut [Unit],
        zero: &[Sym],
    ) -> Result<(), ProofError> {
        let (number, version) = self
            .numbers
            .get(&Rc::as_ptr(a))
            .copied()
            .unwrap_or_default();
        let here = self.versions.without(version, zero);
        // The last version that was looked at, and whether it is the access's.
        let mut last = (version, true);
        let each = (i64::from(a.bytes) / self.grain) as usize;
        for (thread, &at) in a.at.iter().enumerate() {
            if at < 0 {
                continue;
            }
            let first = (at / self.grain) as usize;
            for u in first..first + each {
                let unit = &mut units[u];
                if unit.version != last.0 {
                    last = (
                        unit.version,
                        self.versions.without(unit.version, zero) == here,
                    );
                }
                let fault = if a.kind == Kind::Read {
                    read(unit, thread as u16, (a.buffer[thread] + 1, last.1), number)
                } else {
                    write(unit, thread as u16, a, (version, last.1), number)
                };
                if let Some(fault) = fault {
                    let byte = u as i64 * self.grain;
                    return Err(self.refusal(a, thread, byte, *unit, fault));
                }
            }
        }
        Ok(())
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

    fn refusal(
        &self,
        a: &Access,
        thread: usize,
        byte: i64,
        unit: Unit,
        fault: Fault,
    ) -> ProofError {
        let name = |n: u16| self.names.get(usize::from(n)).map_or("", |n| *n).to_owned();
        match fault {
            Fault::Undefined(missing) => ProofError::Undefined {
                access: a.name.clone(),
                thread,
                byte,
                missing,
            },
            Fault::AfterWrite(missing) => ProofError::Race {
                accesses: [name(unit.by[0]), a.name.clone()],
                threads: [unit.writer.into(), thread],
                byte,
                missing,
            },
            Fault::AfterRead(missing) => ProofError::Race {
                accesses: [name(unit.by[1]), a.name.clone()],
                threads: [unit.a_reader.into(), thread],
                byte,
                missing,
            },
        }
    }
}

fn dedup(states: &mut Vec<State>) {
    if states.len() > 1 {
        let mut seen: QuickSet<State> = QuickSet::default();
        states.retain(|s| seen.insert(s.clone()));
    }
}

/// A state behind a loop.
fn behind(l: &Turns, mut state: State) -> State {
    state.decisions.forget(l.turn);
    state.decisions.forget(l.trips);
    state
}

fn collect(f: &Formula, all: &mut Vec<Lin>) {
    match f {
        Formula::Ge(x) => all.push((**x).clone()),
        Formula::And(a, b) | Formula::Or(a, b) => {
            collect(a, all);
            collect(b, all);
        }
        _ => {}
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
            Event::Leave(f) | Event::Exit(f) => collect(f, all),
            _ => {}
        }
    }
}
