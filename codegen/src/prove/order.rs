//! The order of accesses in shared memory, along every path.
//!
//! The state is, for each unit of shared memory, who wrote it last, whether that write has arrived and to whom it is ordered, and who has read it
//! since. A branch on which all threads agree is followed on both sides, unless the path has decided it already: a path remembers what it decided
//! about data, and between which numbers a value lies. A loop is followed turn by turn until state and decisions repeat, which they do since both are
//! finite; it may be left after any turn.

use std::collections::HashMap;
use std::rc::Rc;

use super::ProofError;
use super::execute::{Event, Trace, Turns};
use super::formula::Formula;
use super::memory::{Access, Kind};
use super::value::{Lin, Num, Sym};

/// States that are visited at most.
const STATES: usize = 20_000;

/// Who has touched a unit since the last barrier that concerns it.
const NOBODY: u16 = u16::MAX;
/// More than one thread of a warp has; the warp is kept beside it.
const WARP: u16 = 0x8000;
/// Threads of several warps have.
const MANY: u16 = u16::MAX - 1;

/// One unit of shared memory.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// The view that wrote it, plus one; 0 if nothing has.
    buffer: u16,
    /// Which of the view's values at this place it is.
    version: u16,
    /// The thread that wrote it.
    writer: u16,
    /// How far the write is ordered.
    seen: Seen,
    /// Who has read it since.
    reader: u16,
    /// The access that wrote it, and one that read it: for messages.
    by: [u16; 2],
}

/// States are the same whatever the accesses were called.
impl PartialEq for Unit {
    fn eq(&self, other: &Self) -> bool {
        (
            self.buffer,
            self.version,
            self.writer,
            self.seen,
            self.reader,
        ) == (
            other.buffer,
            other.version,
            other.writer,
            other.seen,
            other.reader,
        )
    }
}

impl Eq for Unit {}

/// To whom a write is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Seen {
    /// An asynchronous copy in the group that is still open.
    Open,
    /// One in a closed group, so many groups ago.
    Pending(u8),
    /// Waited for, or written by an instruction: the thread itself sees it.
    Own,
    /// The warp sees it.
    Warp,
    /// All threads see it.
    All,
}

/// What a path has decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Decisions {
    data: Vec<(u32, bool)>,
    /// The range of a value without its constant.
    ranges: Vec<(Lin, i64, i64)>,
    /// Disjunctions that hold.
    either: Vec<Formula>,
    /// Symbols that are 0 for now.
    zero: Vec<Sym>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct State {
    units: Vec<Unit>,
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

const FAR: i64 = i64::MAX / 4;

impl Decisions {
    /// A value with the symbols that are 0 left out, apart from its constant.
    fn form(&self, x: &Lin) -> (Lin, i64) {
        let mut form = Lin {
            terms: x
                .terms
                .iter()
                .filter(|(m, _)| !m.symbols().any(|s| self.zero.contains(&s)))
                .cloned()
                .collect(),
            k: Num::One(0),
        };
        // One sign for a value and its opposite.
        let k = x.k.one().unwrap_or(0);
        if let Some((_, Num::One(c))) = form.terms.first()
            && *c < 0
        {
            form = form.scale(-1);
            return (form, -k);
        }
        (form, k)
    }

    fn is_opposite(&self, x: &Lin) -> bool {
        let first = x
            .terms
            .iter()
            .find(|(m, _)| !m.symbols().any(|s| self.zero.contains(&s)));
        matches!(first, Some((_, Num::One(c))) if *c < 0)
    }

    /// What is known of `x ≥ 0`: the range of the form f with x = ±f + k.
    fn decide(&self, f: &Formula) -> Option<bool> {
        match f {
            Formula::True => Some(true),
            Formula::False => Some(false),
            Formula::Ge(x) => {
                let (lo, hi) = self.range(x);
                if lo >= 0 {
                    Some(true)
                } else if hi < 0 {
                    Some(false)
                } else {
                    None
                }
            }
            Formula::And(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => {
                    let opposite = f.not();
                    self.either.contains(&opposite).then_some(false)
                }
            },
            Formula::Or(..) if self.either.contains(f) => Some(true),
            Formula::Or(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Formula::Opaque(id, _) => self.datum(*id),
            Formula::Not(id, _) => self.datum(*id).map(|v| !v),
        }
    }

    fn datum(&self, id: u32) -> Option<bool> {
        self.data.iter().find(|(i, _)| *i == id).map(|(_, v)| *v)
    }

    fn range(&self, x: &Lin) -> (i64, i64) {
        let opposite = self.is_opposite(x);
        let (form, k) = self.form(x);
        if form.terms.is_empty() {
            let k = x.k.one().unwrap_or(0);
            return (k, k);
        }
        let known = self.ranges.iter().find(|(f, _, _)| *f == form);
        let (lo, hi) = known.map_or((-FAR, FAR), |(_, lo, hi)| (*lo, *hi));
        if opposite {
            // x = −(f + k)
            (-hi.saturating_add(k), -lo.saturating_add(k))
        } else {
            (lo.saturating_add(k), hi.saturating_add(k))
        }
    }

    /// The decisions with `f` added; none where it contradicts them. A disjunction is not remembered.
    fn with(&self, f: &Formula) -> Option<Self> {
        if self.decide(f) == Some(false) {
            return None;
        }
        let mut out = self.clone();
        out.add(f);
        Some(out)
    }

    fn add(&mut self, f: &Formula) {
        match f {
            Formula::And(a, b) => {
                self.add(a);
                self.add(b);
            }
            Formula::Or(a, b) => match (self.decide(a), self.decide(b)) {
                (Some(false), _) => self.add(b),
                (_, Some(false)) => self.add(a),
                (None, None) => self.either.push(f.clone()),
                _ => {}
            },
            Formula::Opaque(id, _) if self.datum(*id).is_none() => {
                self.data.push((*id, true));
                self.data.sort_unstable();
            }
            Formula::Not(id, _) if self.datum(*id).is_none() => {
                self.data.push((*id, false));
                self.data.sort_unstable();
            }
            Formula::Ge(x) => {
                let opposite = self.is_opposite(x);
                let (form, k) = self.form(x);
                if form.terms.is_empty() {
                    return;
                }
                // f + k ≥ 0, or −(f + k) ≥ 0.
                let (lo, hi) = if opposite {
                    (-FAR, k.saturating_neg())
                } else {
                    (k.saturating_neg(), FAR)
                };
                self.narrow(form, lo, hi);
            }
            _ => {}
        }
    }

    fn narrow(&mut self, form: Lin, lo: i64, hi: i64) {
        if let Some((_, a, b)) = self.ranges.iter_mut().find(|(f, _, _)| *f == form) {
            (*a, *b) = ((*a).max(lo), (*b).min(hi));
        } else {
            self.ranges.push((form, lo, hi));
            self.ranges.sort_by_cached_key(|(f, _, _)| format!("{f:?}"));
        }
    }

    /// One more turn: what was known of a value in this turn is known of it, moved by its step, in the next.
    fn turn(&mut self, turn: Sym, values: &[Lin]) {
        self.either.retain(|f| !mentions(f, turn));
        let first = self.zero.contains(&turn);
        let old = std::mem::take(&mut self.ranges);
        let step = |f: &Lin| {
            f.terms
                .iter()
                .find(|(m, _)| m.symbols().eq([turn]))
                .and_then(|(_, c)| c.one())
        };
        if first {
            self.zero.retain(|&s| s != turn);
            // What was known without the turn is known of each value that differs by turns only.
            for (form, lo, hi) in &old {
                for value in values {
                    let (with_turn, _) = self.form(value);
                    let bare = Lin {
                        terms: with_turn
                            .terms
                            .iter()
                            .filter(|(m, _)| !m.symbols().any(|s| s == turn))
                            .cloned()
                            .collect(),
                        k: Num::One(0),
                    };
                    if bare == *form
                        && let Some(a) = step(&with_turn)
                    {
                        self.narrow(with_turn, shifted(*lo, a), shifted(*hi, a));
                    }
                }
            }
        }
        for (form, lo, hi) in old {
            match step(&form) {
                Some(a) => self.narrow(form, shifted(lo, a), shifted(hi, a)),
                None if form.mentions(turn) => {}
                None => self.narrow(form, lo, hi),
            }
        }
    }

    /// What is said of a symbol is forgotten.
    fn forget(&mut self, sym: Sym) {
        self.ranges.retain(|(f, _, _)| !f.mentions(sym));
        self.either.retain(|f| !mentions(f, sym));
        self.zero.retain(|&s| s != sym);
    }
}

/// A bound moved; one that is far stays far.
fn shifted(bound: i64, by: i64) -> i64 {
    if bound.abs() >= FAR / 2 {
        bound
    } else {
        bound.saturating_add(by)
    }
}

struct Walk<'t> {
    grain: i64,
    units: usize,
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
        units: units as usize,
        names,
        numbers,
        visited: 0,
    };
    let empty = Unit {
        buffer: 0,
        version: 0,
        writer: NOBODY,
        seen: Seen::All,
        reader: NOBODY,
        by: [0; 2],
    };
    let start = State {
        units: vec![empty; walk.units],
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
        for event in events {
            let mut after = Vec::new();
            for mut state in states {
                if state.gone != Gone::No {
                    after.push(state);
                    continue;
                }
                match event {
                    Event::Access(a) => {
                        self.touch(a, &mut state)?;
                        after.push(state);
                    }
                    Event::Barrier | Event::WarpBarrier | Event::Commit | Event::Wait(_) => {
                        synchronise(event, &mut state.units);
                        after.push(state);
                    }
                    Event::If(when, then, otherwise) => {
                        for (f, side) in [(Rc::clone(when), then), (when.not(), otherwise)] {
                            if let Some(decisions) = state.decisions.with(&f) {
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
                        if let Some(decisions) = state.decisions.with(when) {
                            after.push(State {
                                decisions,
                                gone,
                                ..state.clone()
                            });
                        }
                        if let Some(decisions) = state.decisions.with(&when.not()) {
                            state.decisions = decisions;
                            after.push(state);
                        }
                    }
                    Event::Loop(turns) => after.extend(self.turns(turns, state)?),
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
        let mut all: Vec<State> = Vec::new();
        let mut open = vec![start];
        let mut first = true;
        while let Some(state) = open.pop() {
            if all.contains(&state) {
                continue;
            }
            all.push(state.clone());
            if all.len() > STATES {
                return Err(ProofError::Paths { states: all.len() });
            }
            let mut now = vec![state];
            for turn in &l.period {
                let mut begun = Vec::new();
                for s in now {
                    if first && let Some(d) = s.decisions.with(&turn.begins.not()) {
                        // No turn at all.
                        let mut none = State {
                            decisions: d,
                            ..s.clone()
                        };
                        none.decisions.forget(l.turn);
                        none.decisions.zero.push(l.trips);
                        left.push(none);
                    }
                    if let Some(d) = s.decisions.with(&turn.begins) {
                        begun.push(State { decisions: d, ..s });
                    }
                }
                first = false;
                let after = self.events(&turn.events, begun)?;
                now = Vec::new();
                for s in after {
                    match s.gone {
                        Gone::No => {
                            if let Some(d) = s.decisions.with(&turn.again.not()) {
                                left.push(behind(
                                    l,
                                    State {
                                        decisions: d,
                                        ..s.clone()
                                    },
                                ));
                            }
                            if let Some(d) = s.decisions.with(&turn.again) {
                                now.push(State { decisions: d, ..s });
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

    fn touch(&self, a: &Rc<Access>, state: &mut State) -> Result<(), ProofError> {
        let number = self.numbers.get(&Rc::as_ptr(a)).copied().unwrap_or(0);
        let each = (i64::from(a.bytes) / self.grain) as usize;
        for (thread, &at) in a.at.iter().enumerate() {
            if at < 0 {
                continue;
            }
            let first = (at / self.grain) as usize;
            for u in first..first + each {
                let unit = &mut state.units[u];
                let fault = if a.kind == Kind::Read {
                    read(
                        unit,
                        thread as u16,
                        (a.buffer[thread] + 1, a.version),
                        number,
                    )
                } else {
                    write(unit, thread as u16, a, thread, number)
                };
                if let Some(fault) = fault {
                    let byte = u as i64 * self.grain;
                    let unit = state.units[u];
                    return Err(self.refusal(a, thread, byte, unit, fault));
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
        let who = |t: u16| {
            if t >= DONE {
                32 * usize::from(t & 0xff)
            } else {
                usize::from(t)
            }
        };
        match fault {
            Fault::Undefined(missing) => ProofError::Undefined {
                access: a.name.clone(),
                thread,
                byte,
                missing,
            },
            Fault::AfterWrite(missing) => ProofError::Race {
                accesses: [name(unit.by[0]), a.name.clone()],
                threads: [who(unit.writer), thread],
                byte,
                missing,
            },
            Fault::AfterRead(missing) => ProofError::Race {
                accesses: [name(unit.by[1]), a.name.clone()],
                threads: [who(unit.reader), thread],
                byte,
                missing,
            },
        }
    }
}

#[derive(Clone, Copy)]
enum Fault {
    Undefined(&'static str),
    AfterWrite(&'static str),
    AfterRead(&'static str),
}

const BARRIER: &str = "no barrier orders them";

fn read(unit: &mut Unit, thread: u16, (buffer, version): (u16, u16), number: u16) -> Option<Fault> {
    if unit.buffer == 0 {
        return Some(Fault::Undefined("nothing has written it"));
    }
    if unit.buffer != buffer {
        return Some(Fault::Undefined("another view has written it"));
    }
    if unit.version != version {
        return Some(Fault::Undefined("what is there is of another pass"));
    }
    match unit.seen {
        Seen::Open | Seen::Pending(_) => {
            return Some(Fault::Undefined(
                "the asynchronous copy that writes it was not waited for",
            ));
        }
        Seen::Own if unit.writer != thread => return Some(Fault::AfterWrite(BARRIER)),
        Seen::Warp if unit.writer / 32 != thread / 32 => return Some(Fault::AfterWrite(BARRIER)),
        _ => {}
    }
    unit.reader = match unit.reader {
        NOBODY => thread,
        MANY => MANY,
        r if r == thread => r,
        r if warp_of(r) != thread / 32 => MANY,
        // Readers before the warp's barrier are ordered before whatever this warp does.
        r if r >= WARP => r,
        r if r >= DONE => thread,
        _ => WARP | (thread / 32),
    };
    unit.by[1] = number;
    None
}

fn write(unit: &mut Unit, thread: u16, a: &Access, index: usize, number: u16) -> Option<Fault> {
    // Nobody else may be about to read what is overwritten.
    match unit.reader {
        NOBODY => {}
        r if r == thread => {}
        r if r != MANY && (DONE..WARP).contains(&r) && warp_of(r) == thread / 32 => {}
        _ => return Some(Fault::AfterRead(BARRIER)),
    }
    if unit.buffer != 0 {
        match unit.seen {
            Seen::Open | Seen::Pending(_) => {
                return Some(Fault::AfterWrite(
                    "the asynchronous copy that writes it was not waited for",
                ));
            }
            Seen::Own if unit.writer != thread => return Some(Fault::AfterWrite(BARRIER)),
            Seen::Warp if unit.writer / 32 != thread / 32 => {
                return Some(Fault::AfterWrite(BARRIER));
            }
            _ => {}
        }
    }
    // A write that threads may leave out leaves what was there, or nothing.
    let buffer = if a.maybe && unit.buffer != a.buffer[index] + 1 {
        0
    } else {
        a.buffer[index] + 1
    };
    *unit = Unit {
        buffer,
        version: a.version,
        writer: thread,
        seen: if a.kind == Kind::Async {
            Seen::Open
        } else {
            Seen::Own
        },
        reader: NOBODY,
        by: [number, unit.by[1]],
    };
    None
}

fn synchronise(event: &Event, units: &mut [Unit]) {
    for unit in units {
        match event {
            Event::Barrier => {
                unit.reader = NOBODY;
                if matches!(unit.seen, Seen::Own | Seen::Warp) {
                    (unit.seen, unit.writer) = (Seen::All, NOBODY);
                }
            }
            Event::WarpBarrier => {
                // Readers of the writer's own warp are done; which warp that is stays known.
                if unit.seen == Seen::Own {
                    unit.seen = Seen::Warp;
                }
                unit.reader = match unit.reader {
                    NOBODY => NOBODY,
                    MANY => MANY,
                    r => done(r),
                };
            }
            Event::Commit => {
                unit.seen = match unit.seen {
                    Seen::Open => Seen::Pending(0),
                    Seen::Pending(n) => Seen::Pending(n.saturating_add(1)),
                    other => other,
                };
            }
            Event::Wait(pending) => {
                if let Seen::Pending(n) = unit.seen
                    && u32::from(n) >= *pending
                {
                    unit.seen = Seen::Own;
                }
            }
            _ => {}
        }
    }
}

/// Readers of one warp after a barrier of the warp: that warp may write now, others may not.
fn done(reader: u16) -> u16 {
    DONE | warp_of(reader)
}

/// The warp of a reader that is not [`NOBODY`] and not [`MANY`].
fn warp_of(reader: u16) -> u16 {
    if reader >= DONE {
        reader & 0xff
    } else {
        reader / 32
    }
}

/// A warp has read, and its lanes have met since.
const DONE: u16 = 0x4000;

fn dedup(states: &mut Vec<State>) {
    let mut kept: Vec<State> = Vec::with_capacity(states.len());
    for s in states.drain(..) {
        if !kept.contains(&s) {
            kept.push(s);
        }
    }
    *states = kept;
}

/// A state behind a loop.
fn behind(l: &Turns, mut state: State) -> State {
    state.decisions.forget(l.turn);
    state.decisions.forget(l.trips);
    state
}

fn mentions(f: &Formula, sym: Sym) -> bool {
    match f {
        Formula::Ge(x) => x.mentions(sym),
        Formula::And(a, b) | Formula::Or(a, b) => mentions(a, sym) || mentions(b, sym),
        _ => false,
    }
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
