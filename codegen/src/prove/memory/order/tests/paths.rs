//! The walk against single executions. If an execution of a random kernel with branches and nested loops is refused for some choice of sizes, the walk must
//! refuse the kernel. This checks that the rules that limit the number of states (covering, widening, idle loops) only add paths.

use std::rc::Rc;

use super::{Random, access, trace};
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::memory::order::ordered;
use crate::prove::walk::execute::{Event, Iteration, Iterations};
use crate::prove::walk::memory::Kind;

/// Sizes go from 0 to here.
const LARGEST: i64 = 4;

/// Loops in loops, and branches in branches, at most.
const DEPTH: usize = 2;
const BRANCHES: usize = 2;

/// A generator of kernels.
struct Kernels {
    random: Random,
    symbols: Symbols,
    /// The sizes, and the iterations of the loops around an event.
    known: Vec<Sym>,
    /// The branches around an event.
    branches: usize,
}

impl Kernels {
    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// A size or an iteration.
    fn known(&mut self) -> Lin {
        let n = self.known.len() as u64;
        let at = self.below(n) as usize;
        Lin::symbol(self.known[at])
    }

    /// A size or an iteration, or a value that is defined by them.
    fn derived(&mut self) -> Lin {
        let x = self.known();
        let other = self.known();
        match self.below(12) {
            0 => self.symbols.low(&x, 1),
            1 => self.symbols.low(&x.add(&other), 2),
            2 => self.symbols.shr(&x, 1),
            3 => self.symbols.div(&x, 3),
            4 => self.symbols.xor(&x, &Lin::constant(1)),
            5 => self.symbols.min(&x, &other),
            6 => x.mul(&other).unwrap_or(x),
            _ => x,
        }
    }

    /// A condition on sizes and iterations.
    fn condition(&mut self) -> Rc<Formula> {
        let sign = if self.below(2) == 0 { 1 } else { -1 };
        let mut x = self.derived().scale(sign).plus(self.below(7) as i64 - 3);
        if self.below(3) == 0 {
            let other = self.known();
            x = x.sub(&other);
        }
        let one = Rc::new(Formula::ge(x));
        match self.below(5) {
            0 => Formula::and(&one, &self.condition()),
            1 => Formula::or(&one, &self.condition()),
            _ => one,
        }
    }

    fn events(&mut self, depth: usize) -> Vec<Event> {
        let count = 1 + self.below(4);
        (0..count).flat_map(|_| self.event(depth)).collect()
    }

    fn event(&mut self, depth: usize) -> Vec<Event> {
        let shared = |kind, at: fn(i64) -> i64| {
            let a = access(kind, 4, |t| 4 * at(t as i64));
            Event::Access(Rc::new(a))
        };
        match self.below(10) {
            0 => vec![shared(Kind::Write, |t| t)],
            1 => vec![shared(Kind::Read, |t| t)],
            2 => vec![Event::Barrier, shared(Kind::Read, |t| (t + 1) % 96)],
            3 => vec![
                Event::Barrier,
                shared(Kind::Read, |t| 95 - t),
                Event::Barrier,
            ],
            4 => vec![shared(Kind::Write, |t| (t + 32) % 96), Event::Barrier],
            5 | 6 if self.branches < BRANCHES => {
                self.branches += 1;
                let when = self.condition();
                let (then, otherwise) = (self.events(depth), self.events(depth));
                self.branches -= 1;
                vec![Event::If(when, then, otherwise)]
            }
            7 if depth > 0 => vec![Event::Leave(self.condition())],
            _ if depth < DEPTH => vec![self.iterations(depth)],
            _ => vec![Event::Barrier],
        }
    }

    /// A loop whose counter goes in steps of 1 or 2 up to a size, a number, or the iteration of an outer loop.
    fn iterations(&mut self, depth: usize) -> Event {
        let limit = match self.below(3) {
            0 => Lin::constant(2),
            _ => self.known(),
        };
        let step = 1 + self.below(2) as i64;
        let iteration = self.symbols.free(0, 1 << 20, false);
        let trips = self.symbols.free(0, 1 << 20, false);
        self.known.push(iteration);
        // Every third loop only waits.
        let events = match self.below(3) {
            0 => vec![Event::Barrier],
            _ => self.events(depth + 1),
        };
        self.known.pop();
        let left = |iterations: i64| {
            let counter = Lin::symbol(iteration).plus(iterations).scale(step);
            Rc::new(Formula::ge(limit.sub(&counter).plus(-1)))
        };
        Event::Loop(Rc::new(Iterations {
            iteration,
            trips,
            count: None,
            own: 0..0,
            period: vec![Iteration {
                begins: left(0),
                events,
                again: left(1),
            }],
        }))
    }
}

/// The values of symbols.
type Values = Vec<(Sym, i64)>;

fn holds(f: &Formula, symbols: &Symbols, values: &Values) -> bool {
    let known = symbols.holds_at(f, values);
    known.expect("conditions are of numbers that have a value")
}

/// Appends the events that are executed with these values. Returns whether `Leave` ended the loop around them.
fn execute(
    events: &[Event],
    symbols: &Symbols,
    values: &mut Values,
    line: &mut Vec<Event>,
) -> bool {
    for event in events {
        match event {
            Event::If(when, then, otherwise) => {
                let side = if holds(when, symbols, values) {
                    then
                } else {
                    otherwise
                };
                if execute(side, symbols, values, line) {
                    return true;
                }
            }
            Event::Leave(when) => {
                if holds(when, symbols, values) {
                    return true;
                }
            }
            Event::Loop(l) => {
                let [iteration] = &l.period[..] else {
                    unreachable!("periods are of one iteration")
                };
                values.push((l.iteration, 0));
                let at = values.len() - 1;
                while holds(&iteration.begins, symbols, values) {
                    if execute(&iteration.events, symbols, values, line)
                        || !holds(&iteration.again, symbols, values)
                    {
                        break;
                    }
                    values[at].1 += 1;
                }
                values.truncate(at);
            }
            simple => line.push(simple.clone()),
        }
    }
    false
}

#[test]
fn what_an_execution_refuses_the_walk_refuses() {
    let mut kernels = Kernels {
        random: Random(11),
        symbols: Symbols::default(),
        known: Vec::new(),
        branches: 0,
    };
    kernels.known = (0..2)
        .map(|_| kernels.symbols.free(0, 1 << 20, false))
        .collect();
    let sizes = kernels.known.clone();
    // By whether an execution is refused, and whether the walk refuses.
    let mut seen = [[0; 2]; 2];
    for round in 0..3000 {
        let mut events = vec![
            Event::Access(Rc::new(access(Kind::Write, 4, |t| 4 * t as i64))),
            Event::Barrier,
        ];
        events.extend(kernels.events(0));
        events.extend(kernels.events(0));
        let mut refused = None;
        for (x, y) in (0..=LARGEST).flat_map(|x| (0..=LARGEST).map(move |y| (x, y))) {
            let mut values = vec![(sizes[0], x), (sizes[1], y)];
            let mut line = Vec::new();
            execute(&events, &kernels.symbols, &mut values, &mut line);
            if ordered(&trace(line)).is_err() {
                refused = Some((x, y));
                break;
            }
        }
        let mut all = trace(events.clone());
        std::mem::swap(&mut all.symbols, &mut kernels.symbols);
        let walked = ordered(&all);
        std::mem::swap(&mut all.symbols, &mut kernels.symbols);
        if let (Some(sizes), Ok(_)) = (refused, &walked) {
            panic!("{round}: refused at {sizes:?}: {events:?}");
        }
        seen[usize::from(refused.is_some())][usize::from(walked.is_err())] += 1;
    }
    // The walk also refuses kernels that only larger sizes refuse, or sizes whose relation it does not know.
    let [[right, strict], [_, refused]] = seen;
    assert!(
        right > 450 && refused > 500 && 2 * strict < right,
        "{seen:?}"
    );
}
