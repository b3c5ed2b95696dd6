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

use std::collections::HashMap;
use std::rc::Rc;

use super::ProofError;
use super::execute::{Event, Trace, Turns};
use super::formula::Formula;
use super::memory::{Access, Kind};
use super::quick::{QuickMap, QuickSet};
use super::value::Lin;
use decisions::Decisions;
use memory::{Fault, Unit, read, synchronise, write};

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
    memories: Vec<Rc<Vec<Unit>>>,
    known: QuickMap<Rc<Vec<Unit>>, u32>,
    /// What a run of events, by its address, makes of a state of shared memory.
    after: QuickMap<(usize, u32), u32>,
    names: Vec<&'t str>,
    numbers: HashMap<*const Access, u16>,
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
    for a in &trace.accesses {
        let known = names.iter().position(|n| *n == a.name);
        let n = known.unwrap_or(names.len());
        if known.is_none() {
            names.push(&a.name);
        }
        numbers.insert(Rc::as_ptr(a), n as u16);
    }
    let units = (most + grain - 1) / grain;
    let mut walk = Walk {
        grain,
        memories: Vec::new(),
        known: QuickMap::default(),
        after: QuickMap::default(),
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
                    state.memory = self.run(events, state.memory)?;
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
                        left.push(none);
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
                                left.push(behind(
                                    l,
                                    State {
                                        decisions,
                                        ..s.clone()
                                    },
                                ));
                            }
                            for decisions in s.decisions.with(&turn.again) {
                                now.push(State {
                                    decisions,
                                    ..s.clone()
                                });
                            }
                        }
                        Gone::Loop => left.push(behind(
                            l,
                            State {
                                gone: Gone::No,
                                ..s
                            },
                        )),
                        Gone::Kernel => left.push(s),
                    }
                }
                dedup(&mut now);
            }
            for mut s in now {
                s.decisions.turn(l.turn, &values);
                open.push(s);
            }
        }
        dedup(&mut left);
        Ok(left)
    }

    /// The number of a state of shared memory.
    fn number_of(&mut self, units: Vec<Unit>) -> u32 {
        let units = Rc::new(units);
        if let Some(&known) = self.known.get(&units) {
            return known;
        }
        let number = self.memories.len() as u32;
        self.memories.push(Rc::clone(&units));
        self.known.insert(units, number);
        number
    }

    /// What a run of accesses and barriers makes of a state of shared memory.
    fn run(&mut self, events: &[Event], memory: u32) -> Result<u32, ProofError> {
        let key = (events.as_ptr() as usize, memory);
        if let Some(&known) = self.after.get(&key) {
            return Ok(known);
        }
        let mut units = self.memories[memory as usize].to_vec();
        for event in events {
            match event {
                Event::Access(a) => self.touch(a, &mut units)?,
                event => synchronise(event, &mut units),
            }
        }
        let after = self.number_of(units);
        self.after.insert(key, after);
        Ok(after)
    }

    fn touch(&self, a: &Rc<Access>, units: &mut [Unit]) -> Result<(), ProofError> {
        let number = self.numbers.get(&Rc::as_ptr(a)).copied().unwrap_or(0);
        let each = (i64::from(a.bytes) / self.grain) as usize;
        for (thread, &at) in a.at.iter().enumerate() {
            if at < 0 {
                continue;
            }
            let first = (at / self.grain) as usize;
            for u in first..first + each {
                let unit = &mut units[u];
                let fault = if a.kind == Kind::Read {
                    let value = (a.buffer[thread] + 1, a.version);
                    read(unit, thread as u16, value, number)
                } else {
                    write(unit, thread as u16, a, thread, number)
                };
                if let Some(fault) = fault {
                    let byte = u as i64 * self.grain;
                    return Err(self.refusal(a, thread, byte, *unit, fault));
                }
            }
        }
        Ok(())
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
