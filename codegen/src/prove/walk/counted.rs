//! Accesses of shared memory whose addresses, or whose threads, depend on a loop's counter.
//!
//! The body of a loop is followed once, with the number of iterations before as a symbol. Where an address in shared memory depends on that symbol, what happens there is
//! said once more for each iteration, with a number in place of the symbol: for all iterations of a loop that has few, or for the iterations of one period where the address
//! depends on the counter modulo a constant.
//!
//! ```text
//! s[i & 1]    iteration = 2·u + 0: s[0]         iteration = 2·u + 1: s[1]
//! s[i]        iteration = 0: s[0]               iteration = 1: s[1]             …  up to the last
//! t > i       iteration = 0: threads 1, 2, …    iteration = 1: threads 2, 3, …
//! ```
//!
//! Registers, global memory and the end of the loop stay what they are.

use std::rc::Rc;

use crate::gcd::gcd;
use crate::ir::{Line, Loop};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Event, Iteration, Iterations, Machine};
use crate::prove::walk::memory::Access;
use crate::prove::walk::remote::Remote;

/// Iterations that are said one by one, at most.
const ITERATIONS: i64 = 64;

/// Accesses that are said so in a kernel, at most.
const ACCESSES: usize = 1 << 16;

/// An element of a buffer for some threads, and the address by which they access it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::prove) struct Part {
    pub(in crate::prove) buffer: usize,
    /// Bytes from where shared memory begins.
    pub(in crate::prove) relative: Lin,
    pub(in crate::prove) coordinates: Vec<Lin>,
    /// The threads, and what holds for them.
    pub(in crate::prove) active: Mask,
}

/// What an access is made from, where that changes from iteration to iteration.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::prove) struct Source {
    parts: Vec<Part>,
    /// What holds for the threads that take part.
    facts: Vec<Rc<Formula>>,
    /// What decides about them: where it is not known, they may leave the access out.
    conditions: Vec<Rc<Formula>>,
    /// They may leave it out for another reason.
    maybe: bool,
    line: Option<Line>,
}

impl Source {
    fn values(&self) -> impl Iterator<Item = &Lin> {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.coordinates.iter().chain([&part.relative]))
    }

    fn depends(&self, iteration: Sym, symbols: &Symbols) -> bool {
        let statements = self.facts.iter().chain(&self.conditions);
        self.address_depends(iteration, symbols)
            || statements
                .into_iter()
                .any(|f| symbols.formula_depends(f, iteration))
    }

    fn address_depends(&self, iteration: Sym, symbols: &Symbols) -> bool {
        self.values()
            .any(|x| x.symbols().any(|s| symbols.depends(s, iteration)))
    }
}

/// How often events are said.
#[derive(Clone, Copy)]
enum Said {
    /// Once for each iteration, which has a number.
    Each,
    /// Once for each iteration of a period.
    Period(i64),
}

/// What an access of a loop's body needs.
#[derive(Default)]
struct Needs {
    /// One whose address depends on the iteration.
    address: Option<Rc<Access>>,
    /// One whose threads depend on it.
    threads: bool,
    /// What counters are taken modulo.
    period: i64,
    /// Events that are of one iteration as they are.
    fixed: bool,
}

impl Machine<'_> {
    /// What an access is made from, if that depends on an iteration of an open loop.
    pub(in crate::prove) fn source_of(
        &self,
        parts: &[Part],
        facts: &Facts,
        guard: &Rc<Formula>,
    ) -> Option<Rc<Source>> {
        if self.iterations.is_empty() {
            return None;
        }
        let symbols = &self.symbols;
        let apart = |f: &&Rc<Formula>| !f.is_uniform(symbols);
        let on_the_way = self.path.iter().filter(apart);
        let source = Source {
            parts: parts.to_vec(),
            facts: facts.all.iter().filter(apart).cloned().collect(),
            conditions: on_the_way.cloned().chain(guard.conjuncts()).collect(),
            maybe: self.left,
            line: self.line,
        };
        let mut open = self.iterations.iter();
        let depends = open.any(|&iteration| source.depends(iteration, symbols));
        depends.then(|| Rc::new(source))
    }

    /// What a loop does in shared memory, iteration by iteration where its accesses need that.
    pub(in crate::prove) fn by_iterations(
        &mut self,
        l: &Loop,
        iterations: Iterations,
    ) -> Result<Vec<Event>, ProofError> {
        let iteration = iterations.iteration;
        let mut needs = Needs {
            period: 1,
            ..Needs::default()
        };
        for t in &iterations.period {
            needs.of(&t.events, iteration, &self.symbols);
        }
        if needs.address.is_none() && !needs.threads {
            return Ok(vec![Event::Loop(Rc::new(iterations))]);
        }
        if iterations.period.len() == 1 && !needs.fixed && self.ranks.is_none() {
            if (2..=ITERATIONS).contains(&needs.period)
                && let Some(said) = self.said(&iterations, Said::Period(needs.period))?
            {
                return Ok(vec![Event::Loop(Rc::new(said))]);
            }
            // One more is the last that does not begin.
            if self.symbols.info(iteration).hi <= i128::from(ITERATIONS)
                && let Some(said) = self.said(&iterations, Said::Each)?
            {
                return Ok(flattened(said));
            }
        }
        let Some(access) = needs.address else {
            return Ok(vec![Event::Loop(Rc::new(iterations))]);
        };
        self.line = access.source.as_ref().and_then(|source| source.line);
        Err(ProofError::Undecided {
            what: format!(
                "{}: an address in shared memory that depends on the counter of the loop `{}`: let the loop have {ITERATIONS} iterations at most, by a constant limit, or take the counter modulo a constant up to {ITERATIONS}",
                access.name, l.name
            ),
        })
    }

    /// A loop with numbers in place of its iteration; none where that leaves an address that depends on it, or where it has too many.
    fn said(
        &mut self,
        iterations: &Iterations,
        how: Said,
    ) -> Result<Option<Iterations>, ProofError> {
        let [body] = &iterations.period[..] else {
            return Ok(None);
        };
        let before = (self.accesses.len(), self.addresses);
        let (iteration, count) = match how {
            Said::Each => (iterations.iteration, ITERATIONS + 1),
            Said::Period(period) => {
                let most = self.symbols.info(iterations.iteration).hi / i128::from(period);
                (self.symbols.free(0, most, false), period)
            }
        };
        let mut all = Vec::new();
        let mut last = false;
        for i in 0..count {
            let by = match how {
                Said::Each => Lin::constant(i),
                Said::Period(period) => Lin::symbol(iteration).scale(period).plus(i),
            };
            let Some(begins) = self.statement_at(&body.begins, iterations.iteration, &by) else {
                break;
            };
            if *begins == Formula::False {
                last = true;
                break;
            }
            let again = self.statement_at(&body.again, iterations.iteration, &by);
            let events = self.events_at(&body.events, iterations.iteration, &by)?;
            let (Some(again), Some(events)) = (again, events) else {
                break;
            };
            last = *again == Formula::False;
            all.push(Iteration {
                begins,
                events,
                again,
            });
            if last {
                break;
            }
        }
        let mut needs = Needs::default();
        for t in &all {
            needs.of(&t.events, iteration, &self.symbols);
        }
        let whole = match how {
            Said::Each => last,
            Said::Period(period) => all.len() as i64 == period && needs.address.is_none(),
        };
        if !whole {
            self.accesses.truncate(before.0);
            self.addresses = before.1;
            return Ok(None);
        }
        Ok(Some(Iterations {
            iteration,
            trips: iterations.trips,
            count: iterations.count,
            period: all,
            own: iterations.own.clone(),
        }))
    }

    fn statement_at(&mut self, f: &Rc<Formula>, iteration: Sym, by: &Lin) -> Option<Rc<Formula>> {
        let f = self.symbols.replace_in(f, iteration, by, self.threads)?;
        Some(self.symbols.by_cases(&f, self.threads))
    }

    fn values_at(&mut self, all: &[Lin], iteration: Sym, by: &Lin) -> Option<Vec<Lin>> {
        let threads = self.threads;
        let at = |x: &Lin| self.symbols.replace(x, iteration, by, threads);
        all.iter().map(at).collect()
    }

    /// Events with a value in place of the iteration; none where one has too many factors.
    fn events_at(
        &mut self,
        events: &[Event],
        iteration: Sym,
        by: &Lin,
    ) -> Result<Option<Vec<Event>>, ProofError> {
        let mut all = Vec::new();
        for event in events {
            match event {
                Event::Access(a) | Event::Counted(a) => {
                    let Some(found) = self.access_at(a, iteration, by)? else {
                        return Ok(None);
                    };
                    all.extend(found);
                }
                Event::If(f, then, otherwise) => {
                    let Some(f) = self.statement_at(f, iteration, by) else {
                        return Ok(None);
                    };
                    let mut sides = Vec::new();
                    for (never, side) in [(Formula::False, then), (Formula::True, otherwise)] {
                        let side = if *f == never { &[][..] } else { &side[..] };
                        let Some(side) = self.events_at(side, iteration, by)? else {
                            return Ok(None);
                        };
                        sides.push(side);
                    }
                    let otherwise = sides.pop().unwrap_or_default();
                    let then = sides.pop().unwrap_or_default();
                    match *f {
                        Formula::True => all.extend(then),
                        Formula::False => all.extend(otherwise),
                        _ => all.push(Event::If(f, then, otherwise)),
                    }
                }
                Event::Loop(l) => {
                    let mut period = Vec::new();
                    for t in &l.period {
                        let begins = self.statement_at(&t.begins, iteration, by);
                        let again = self.statement_at(&t.again, iteration, by);
                        let (Some(begins), Some(again)) = (begins, again) else {
                            return Ok(None);
                        };
                        // What is not begun is not followed.
                        if *begins == Formula::False {
                            period.push(Iteration {
                                begins,
                                events: Vec::new(),
                                again,
                            });
                            continue;
                        }
                        let Some(events) = self.events_at(&t.events, iteration, by)? else {
                            return Ok(None);
                        };
                        period.push(Iteration {
                            begins,
                            events,
                            again,
                        });
                    }
                    let count = l.count.map(|x| self.values_at(&[x], iteration, by));
                    all.extend(flattened(Iterations {
                        iteration: l.iteration,
                        trips: l.trips,
                        count: count.flatten().and_then(|count| count.first().copied()),
                        period,
                        own: l.own.clone(),
                    }));
                }
                Event::Leave(f) | Event::Exit(f) | Event::Assume(f) => {
                    let Some(f) = self.statement_at(f, iteration, by) else {
                        return Ok(None);
                    };
                    all.push(match event {
                        Event::Leave(_) => Event::Leave(f),
                        Event::Exit(_) => Event::Exit(f),
                        _ => Event::Assume(f),
                    });
                }
                // A read is of the access before it; stores to other blocks stand outside of loops.
                Event::Remote(remote) if matches!(**remote, Remote::Read { .. }) => {
                    all.push(event.clone());
                }
                Event::Piped(_) | Event::Remote(_) | Event::Roles(_) => return Ok(None),
                Event::Barrier
                | Event::RoleMeets
                | Event::WarpBarrier
                | Event::WarpsMeet(_)
                | Event::Commit
                | Event::Wait(_)
                | Event::Fence
                | Event::Sent
                | Event::WaitSent(_) => all.push(event.clone()),
            }
        }
        Ok(Some(all))
    }

    /// An access with a value in place of the iteration: no event where no thread takes part, and nothing where it does not have one.
    fn access_at(
        &mut self,
        a: &Rc<Access>,
        iteration: Sym,
        by: &Lin,
    ) -> Result<Option<Vec<Event>>, ProofError> {
        let Some(source) = a.source.as_ref() else {
            let Some(version) = self.values_at(&a.version, iteration, by) else {
                return Ok(None);
            };
            if version == a.version {
                return Ok(Some(vec![Event::Access(Rc::clone(a))]));
            }
            let mut a = (**a).clone();
            a.version = version;
            return Ok(Some(vec![Event::Access(Rc::new(a))]));
        };
        if !source.depends(iteration, &self.symbols) && a.version.is_empty() {
            let event = if source.is_settled(self) {
                Event::Access(Rc::clone(a))
            } else {
                Event::Counted(Rc::clone(a))
            };
            return Ok(Some(vec![event]));
        }
        let mut new = (**source).clone();
        for f in new.facts.iter_mut().chain(&mut new.conditions) {
            match self.symbols.replace_in(f, iteration, by, self.threads) {
                Some(at) => *f = at,
                None => return Ok(None),
            }
        }
        for part in &mut new.parts {
            let relative = self.values_at(&[part.relative], iteration, by);
            let coordinates = self.values_at(&part.coordinates, iteration, by);
            let (Some(relative), Some(coordinates)) = (relative, coordinates) else {
                return Ok(None);
            };
            (part.relative, part.coordinates) = (relative[0], coordinates);
            let statements = new.facts.iter().chain(&new.conditions);
            part.active = statements.fold(part.active, |active, f| f.possible(active));
        }
        new.parts.retain(|part| !part.active.is_empty());
        if new.parts.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let mut found = Access {
            at: Num::ZERO,
            active: Mask::of(vec![false; self.threads]),
            buffer: Num::ZERO,
            version: Vec::new(),
            ..(**a).clone()
        };
        found.maybe = new.maybe
            || new.conditions.iter().any(|f| {
                let unknown = |part: &Part| {
                    let active = part.active.list();
                    (0..active.len()).any(|t| active[t] && f.for_thread(t).is_none())
                };
                new.parts.iter().any(unknown)
            });
        let settled = new.is_settled(self);
        let line = self.line;
        self.line = new.line;
        let still_open = |s: &Sym| new.depends(*s, &self.symbols);
        let more = self.iterations.iter().any(still_open) || by.symbols().any(|s| still_open(&s));
        if settled {
            for part in &new.parts {
                self.placed(part, &mut found)?;
            }
        } else if !more {
            // To say why.
            for part in &new.parts {
                self.placed(part, &mut found)?;
            }
        }
        self.line = line;
        found.source = more.then(|| Rc::new(new));
        let found = Rc::new(found);
        if !settled {
            return Ok(Some(vec![Event::Counted(found)]));
        }
        self.accesses.push(Rc::clone(&found));
        if self.accesses.len() > ACCESSES {
            return Err(ProofError::Undecided {
                what: format!(
                    "{}: more than {ACCESSES} accesses of shared memory that depend on loop counters, one for each iteration: let loops have fewer iterations",
                    found.name
                ),
            });
        }
        Ok(Some(vec![Event::Access(found)]))
    }
}

impl Source {
    /// All addresses are numbers.
    fn is_settled(&self, machine: &Machine<'_>) -> bool {
        let numbers = |part: &Part| machine.is_of_numbers(part);
        self.parts.iter().all(numbers)
    }
}

impl Needs {
    fn of(&mut self, events: &[Event], iteration: Sym, symbols: &Symbols) {
        for event in events {
            match event {
                Event::Access(a) | Event::Counted(a) => {
                    let Some(source) = &a.source else {
                        continue;
                    };
                    if matches!(event, Event::Counted(_))
                        && source.address_depends(iteration, symbols)
                    {
                        for x in source.values() {
                            moduli(x, iteration, symbols, &mut self.period);
                        }
                        self.address.get_or_insert_with(|| Rc::clone(a));
                    } else {
                        self.threads |= source.depends(iteration, symbols);
                    }
                }
                Event::If(_, a, b) => {
                    self.of(a, iteration, symbols);
                    self.of(b, iteration, symbols);
                }
                Event::Loop(l) => l
                    .period
                    .iter()
                    .for_each(|t| self.of(&t.events, iteration, symbols)),
                Event::Piped(_) | Event::Roles(_) => self.fixed = true,
                _ => {}
            }
        }
    }
}

/// The least common multiple of `period` and of what a value takes the iteration modulo.
fn moduli(x: &Lin, iteration: Sym, symbols: &Symbols, period: &mut i64) {
    for s in x
        .symbols()
        .filter(|&s| s != iteration && symbols.depends(s, iteration))
    {
        let (modulus, of) = match &symbols.info(s).definition {
            Definition::Low(of, bits) | Definition::Shr(of, bits) => {
                (1 << (*bits).min(32), [of, of])
            }
            Definition::Div(of, by) => (*by, [of, of]),
            Definition::Xor(a, b)
            | Definition::Min(a, b)
            | Definition::Max(a, b)
            | Definition::Ite(_, a, b)
            // What is not periodic has no period: it is asked anew in each iteration.
            | Definition::Quotient(a, b)
            | Definition::Remainder(a, b) => (1, [a, b]),
            Definition::Read(of, _) => (1, [of, of]),
            Definition::Element(_, at) => {
                at.iter().for_each(|x| moduli(x, iteration, symbols, period));
                continue;
            }
            Definition::Free(_) => continue,
        };
        let most = 1 << 40;
        let multiple = (*period / gcd(*period, modulus)).saturating_mul(modulus);
        *period = multiple.min(most);
        for of in of {
            moduli(of, iteration, symbols, period);
        }
    }
}

/// A loop whose iterations are all known to be made: its events one after the other.
fn flattened(iterations: Iterations) -> Vec<Event> {
    if iterations.period.is_empty() {
        return Vec::new();
    }
    let plain = |e: &Event| match e {
        Event::Access(a) | Event::Counted(a) => a.version.is_empty(),
        e => e.is_simple(),
    };
    let mut length = None;
    for (i, t) in iterations.period.iter().enumerate() {
        match *t.begins {
            Formula::False if i == 0 => length = Some(0),
            Formula::True if t.events.iter().all(plain) => {}
            _ => break,
        }
        match (&length, &*t.again) {
            (None, Formula::False) => length = Some(i + 1),
            (None, Formula::True) => continue,
            _ => {}
        }
        break;
    }
    let Some(length) = length else {
        return vec![Event::Loop(Rc::new(iterations))];
    };
    let made = iterations.period.into_iter().take(length);
    made.flat_map(|t| t.events).collect()
}
