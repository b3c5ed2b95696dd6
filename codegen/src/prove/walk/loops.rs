//! Loops: what an iteration carries to the next.

use std::rc::Rc;

use crate::index::code::{Op, Operand, Ty};
use crate::ir::{Cmp, Counts, Inst, Loop, LoopEnd, Node, Reg, Src, Type, class_of};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Event, Iteration, Iterations, Machine, Val, Walk};
use crate::prove::walk::memory::Kind;
use crate::quick::{QuickMap, QuickSet};

/// What a loop does to a register that it carries.
enum Step {
    /// It grows by this each iteration.
    Grows(Lin),
    /// Its bits change back and forth.
    Alternates(i64),
}

/// How a loop's body assigns a register.
struct Assigned<'n> {
    /// The instruction, if it is the only one and every iteration has it.
    only: Option<&'n Inst>,
}

/// The registers that a loop's body assigns.
type Assignments<'n> = QuickMap<Reg, Assigned<'n>>;

impl Machine<'_> {
    pub(in crate::prove) fn iterations(&mut self, l: &Loop) -> Result<(), ProofError> {
        let limit = match l.end {
            LoopEnd::Below { limit, .. } => Some(limit),
            _ => None,
        };
        let counts = Counts {
            start: l.start,
            step: l.step,
            limit,
        };
        if counts != l.meant {
            return Err(ProofError::Meaning {
                register: crate::print::register(l.counter),
            });
        }
        let refuse = |reason: &'static str| {
            Err(ProofError::Loop {
                name: l.name.clone(),
                reason,
            })
        };
        if !(1..=i64::from(u32::MAX)).contains(&l.step) {
            return refuse("its step is not from 1 to 2^32 - 1: it would not end");
        }
        let start = self.source(l.start);
        let start = self.read(&start, Ty::U32);
        self.registers.insert(l.counter, Val::Int(start));
        self.nodes(&l.entry)?;
        // Threads that do not agree on the limit go through the loop apart.
        let apart = match l.end {
            LoopEnd::Below { limit, uniform, .. } => {
                let begins = self.below(l.counter, limit);
                self.agreed(&begins, uniform, "the end of a loop")?;
                !begins.is_uniform(&self.symbols)
            }
            _ => false,
        };
        self.divergent += u32::from(apart);
        self.undecided += u32::from(apart);
        self.torn += u32::from(apart);
        let outside = std::mem::replace(&mut self.divergent_outside, self.divergent);
        // Who exits in an iteration is missing in the next one, from its top on.
        self.left |= exits_apart(&l.body, false);
        let mut assigned = Assignments::default();
        assignments(&l.body, true, &mut assigned);
        // What is carried from iteration to iteration in a way that is known.
        let mut steps: Vec<(Reg, Lin, Step)> =
            vec![(l.counter, start, Step::Grows(Lin::constant(l.step)))];
        let mut period = 1;
        for (&reg, count) in &assigned {
            let Some(only) = count.only else {
                continue;
            };
            let Some(Val::Int(first)) = self.registers.get(&reg).cloned() else {
                continue;
            };
            if let Some(step) = self.step(reg, only, &assigned) {
                if let Step::Alternates(_) = step {
                    period = 2;
                }
                steps.push((reg, first, step));
            }
        }
        // Iterations before this one: as many as the counter has room for.
        let room = (l.most.max(0) / (l.step * period)).into();
        let (iteration, zero) = (self.symbols.free(0, room, apart), Lin::constant(0));
        let trips = self
            .symbols
            .free(0, i128::from(l.most.max(0) / l.step) + 1, apart);
        let made = self.symbols.made();
        let outer = std::mem::take(&mut self.events);
        let facts = self.facts.clone();
        self.iterations.push(iteration);
        self.counters.push(l.counter);
        let outer_leave = self.at_leave.take();
        let mut iterations = Vec::new();
        let (entered, stale) = (self.registers.mark(), self.stale.mark());
        for i in 0..period {
            self.forget();
            self.registers.undo(entered);
            self.facts = facts.clone();
            let before = Lin::symbol(iteration).scale(period).plus(i);
            self.carry(&assigned, &steps, i, None, |_| Some(before));
            let begins = match l.end {
                LoopEnd::Below { limit, .. } => self.below(l.counter, limit),
                _ => Rc::new(Formula::True),
            };
            if !apart {
                self.agreed(&begins, true, "the end of a loop")?;
            }
            self.learn(&begins);
            let counter = self.integer(l.counter);
            let room = Lin::constant(l.most).sub(&counter);
            if i == 0 {
                // So it is in the first iteration, and in each that follows one in which it is.
                let first = self
                    .symbols
                    .replace_in(&begins, iteration, &zero, self.threads);
                let mut facts = first.map_or(facts.clone(), |first| facts.with(&first));
                for trips in start.symbols() {
                    if let Some(ended) = self.ended.get(&trips) {
                        facts = facts.with(ended);
                    }
                }
                let room = Lin::constant(l.most).sub(&start);
                if !self.symbols.at_least_zero(&room, &facts) {
                    return refuse("its counter may begin beyond its bound");
                }
            }
            self.learn(&Rc::new(Formula::ge(room)));
            self.nodes(&l.body)?;
            // The counter as it is after this iteration.
            let counter = self.integer(l.counter).plus(l.step);
            if self.read(&counter, Ty::U32) != counter {
                return refuse(
                    "its counter may pass 2^32 - 1 with its step, and begin again at 0: bound its limit",
                );
            }
            self.registers.insert(l.counter, Val::Int(counter));
            let again = match l.end {
                LoopEnd::Below { limit, .. } => self.below(l.counter, limit),
                LoopEnd::While { again } => {
                    let f = self.predicate(again);
                    self.agreed(&f, true, "the end of a loop")?;
                    self.registers_at_leave();
                    f
                }
                LoopEnd::Left => Rc::new(Formula::True),
            };
            if !apart {
                self.agreed(&again, true, "the end of a loop")?;
            }
            // The next iteration's counter is within its bounds, too.
            let facts = self.facts.with(&again);
            let counter = self.integer(l.counter);
            let room = Lin::constant(l.most).sub(&counter);
            if !self.symbols.at_least_zero(&room, &facts) {
                return refuse("its counter may go beyond its bound, so that it may not end");
            }
            let threads = self.threads;
            iterations.push(Iteration {
                begins: self.symbols.by_cases(&begins, threads),
                events: std::mem::take(&mut self.events),
                again: self.symbols.by_cases(&again, threads),
            });
        }
        self.iterations.pop();
        self.counters.pop();
        self.divergent_outside = outside;
        self.divergent -= u32::from(apart);
        self.undecided -= u32::from(apart);
        self.torn -= u32::from(apart);
        self.events = outer;
        // Behind the loop: after so many iterations.
        self.forget();
        self.registers.undo(entered);
        self.registers.unmark();
        self.facts = facts;
        let mut count = None;
        if let (LoopEnd::Below { limit, .. }, 1, Src::Int(0)) = (l.end, period, l.start)
            && !apart
            && !is_left(&l.body)
            && !matches!(limit, Src::Reg(r) if assigned.contains_key(&r))
        {
            let covers = self.source(limit);
            let covers = self.read(&covers, Ty::U32);
            let tile = l.step;
            // An iteration has as many tiles of what is counted.
            let counted = self.tiles_counted(&covers);
            let counted = counted.and_then(|(of, each)| Some((of, each.checked_mul(tile)?)));
            let walks = [(covers, tile)].into_iter().chain(counted);
            self.walks.extend(walks.map(|(covers, tile)| Walk {
                iteration,
                covers,
                tile,
            }));
            count = Some(match tile {
                1 => covers,
                _ => self.symbols.div(&covers.plus(tile - 1), tile),
            });
        }
        if apart {
            // A thread does this any number of times, and nothing orders it with what others do: once, if at all, is as good. No address changes with the iteration.
            for iteration in &iterations {
                self.accesses_apart(l, &iteration.events)?;
            }
        } else {
            let own = made..self.symbols.made();
            let iterations = Iterations {
                iteration,
                trips,
                count,
                own,
                period: iterations,
            };
            let events = self.by_iterations(l, iterations)?;
            self.events.extend(events);
        }
        let all = Lin::symbol(trips);
        if let (LoopEnd::Below { limit, .. }, 1) = (l.end, period)
            && !matches!(limit, Src::Reg(r) if assigned.contains_key(&r))
        {
            // The last iteration that was completed began below the limit, if one was.
            let limit = self.source(limit);
            let limit = self.read(&limit, Ty::U32);
            let last = start.add(&all.plus(-1).scale(l.step));
            let (below, none) = (limit.sub(&last).plus(-1), all.scale(-1));
            let [below, none] = [below, none].map(|x| Rc::new(Formula::ge(x)));
            self.ended.insert(trips, Formula::or(&below, &none));
        }
        let parity = if period == 1 { 0 } else { -1 };
        // What has a value wherever the loop is left; a loop that may not have an iteration leaves what there was.
        let left = std::mem::replace(&mut self.at_leave, outer_leave).unwrap_or_default();
        let turned = !matches!(l.end, LoopEnd::Below { .. });
        self.carry(&assigned, &steps, parity, turned.then_some(&left), |reg| {
            Some(all.plus(ahead(l, reg)?))
        });
        self.stale.undo(stale);
        self.stale.unmark();
        Ok(())
    }

    /// An extent and a tile of which `count` is the number of tiles, `⌊(extent + tile − 1) / tile⌋`: a quotient of a quotient where the compiler of indices
    /// shifts before it multiplies.
    fn tiles_counted(&self, count: &Lin) -> Option<(Lin, i64)> {
        let (mut of, mut tile) = (*count, 1_i64);
        while let Some(symbol) = of.single() {
            let (inner, by) = match self.symbols.info(symbol).definition {
                Definition::Shr(inner, bits) => (inner, 1_i64.checked_shl(bits)?),
                Definition::Div(inner, by) => (inner, by),
                _ => break,
            };
            (of, tile) = (inner, tile.checked_mul(by)?);
        }
        (tile > 1).then(|| (of.plus(1 - tile), tile))
    }

    /// Notes which registers have a value where the loop is left.
    pub(in crate::prove) fn registers_at_leave(&mut self) {
        let here = |reg: &Reg| !matches!(self.registers.get(reg), None | Some(Val::Where(..)));
        let all = match self.at_leave.take() {
            Some(all) => all.into_iter().filter(here).collect(),
            None => self.registers.keys().copied().filter(here).collect(),
        };
        self.at_leave = Some(all);
    }

    /// Sets the registers that a loop changes to what they are after `made` of their steps, if that is known: at the top of an iteration, or behind the
    /// loop, with those that have a value wherever it is left. `parity` is that of the iterations made; negative where it is not known.
    fn carry(
        &mut self,
        assigned: &Assignments<'_>,
        steps: &[(Reg, Lin, Step)],
        parity: i64,
        left: Option<&QuickSet<Reg>>,
        made: impl Fn(Reg) -> Option<Lin>,
    ) {
        for reg in assigned.keys() {
            // What has had no value before the loop has none at its top.
            let before = !matches!(self.registers.get(reg), None | Some(Val::Where(..)));
            if before || left.is_some_and(|left| left.contains(reg)) {
                self.registers.insert(*reg, Val::Data(None));
                self.stale.insert(*reg, Rc::new(Formula::True));
            } else {
                self.registers.remove(reg);
            }
        }
        for (reg, first, step) in steps {
            let value = match step {
                Step::Grows(by) => made(*reg)
                    .and_then(|made| by.mul(&made))
                    .map(|grown| first.add(&grown)),
                Step::Alternates(_) if parity == 0 => Some(*first),
                Step::Alternates(by) if parity == 1 => {
                    let by = Lin::constant(*by);
                    Some(self.symbols.xor(first, &by))
                }
                Step::Alternates(_) => None,
            };
            if let Some(value) = value {
                self.registers.insert(*reg, Val::Int(value));
            }
        }
    }

    /// The one assignment of a register in a loop, if it is a step from iteration to iteration.
    fn step(&mut self, reg: Reg, inst: &Inst, assigned: &Assignments<'_>) -> Option<Step> {
        let Inst::Index { op, ty, args, .. } = inst else {
            return None;
        };
        let own = |a: &Operand| matches!(a, Operand::Reg(id, ty) if *id == reg.id && class_of(*ty) == reg.class);
        let fixed = |a: &Operand| match a {
            Operand::Imm(_) => true,
            Operand::Reg(id, ty) => !assigned.contains_key(&Reg {
                class: class_of(*ty),
                id: *id,
            }),
        };
        match (op, &args[..]) {
            (Op::Add, [a, by]) if own(a) && fixed(by) => Some(Step::Grows(self.operand(*by))),
            (Op::MadWide, [a, b, c]) if own(c) && fixed(a) && fixed(b) && !ty.signed() => {
                let product = self.operand(*a).mul(&self.operand(*b))?;
                Some(Step::Grows(product))
            }
            (Op::Xor, [a, Operand::Imm(by)]) if own(a) => Some(Step::Alternates(*by)),
            _ => None,
        }
    }

    fn below(&mut self, counter: Reg, limit: Src) -> Rc<Formula> {
        self.comparison(Cmp::Lt, Type::U32, counter.into(), limit)
    }

    /// What threads do to shared memory in a loop that they go through apart.
    fn accesses_apart(&mut self, l: &Loop, events: &[Event]) -> Result<(), ProofError> {
        for event in events {
            match event {
                Event::Access(a) if matches!(a.kind, Kind::Read | Kind::Write | Kind::Atomic) => {
                    self.events.push(Event::Access(Rc::clone(a)));
                }
                Event::If(_, then, otherwise) => {
                    self.accesses_apart(l, then)?;
                    self.accesses_apart(l, otherwise)?;
                }
                Event::Loop(inner) => {
                    for iteration in &inner.period {
                        self.accesses_apart(l, &iteration.events)?;
                    }
                }
                Event::Leave(_) | Event::Assume(_) => {}
                Event::Counted(a) => {
                    return Err(ProofError::Undecided {
                        what: format!(
                            "{}: an address in shared memory that depends on the counter of the loop `{}`, which threads go through different numbers of times",
                            a.name, l.name
                        ),
                    });
                }
                _ => {
                    return Err(ProofError::Divergent {
                        what: "an asynchronous copy or a wait in a loop that threads go through different numbers of times".to_owned(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// What nodes assign; `always` if every iteration has all of them.
fn assignments<'n>(nodes: &'n [Node], always: bool, all: &mut Assignments<'n>) {
    for node in nodes {
        match node {
            Node::Inst(s) => {
                let always = always && s.guard.is_none();
                for reg in s.inst.results() {
                    all.entry(reg)
                        .and_modify(|a| a.only = None)
                        .or_insert(Assigned {
                            only: always.then_some(&s.inst),
                        });
                }
            }
            Node::If(b) => {
                assignments(&b.then, false, all);
                assignments(&b.otherwise, false, all);
            }
            Node::Loop(l) => {
                assignments(&l.entry, false, all);
                assignments(&l.body, false, all);
                all.insert(l.counter, Assigned { only: None });
            }
            // Threads do not come back from roles.
            Node::Roles(_)
            | Node::Comment(_)
            | Node::Assume(_)
            | Node::Leave { .. }
            | Node::Exit { .. } => {}
        }
    }
}

/// How many more steps a register has made behind the loop than iterations were completed; nothing if that depends on where the loop was left.
///
/// An iteration that leaves the loop in its midst is not completed, and the counter has not counted it. A register that is stepped before that place
/// has made a step more.
fn ahead(l: &Loop, reg: Reg) -> Option<i64> {
    let leaves = |node: &Node| leaves_loop(std::slice::from_ref(node));
    let steps = |node: &Node| matches!(node, Node::Inst(s) if s.inst.results().contains(&reg));
    // The counter is stepped at the end.
    let step = l.body.iter().position(steps).unwrap_or(l.body.len());
    let mut places = l.body.iter().enumerate().filter(|(_, node)| leaves(node));
    let before = places.clone().any(|(place, _)| place < step);
    let behind = places.any(|(place, _)| place > step);
    match (before, behind) {
        (_, false) => Some(0),
        (false, true) if matches!(l.end, LoopEnd::Left) => Some(1),
        _ => None,
    }
}

/// Whether something leaves the loop in whose body this is.
fn leaves_loop(body: &[Node]) -> bool {
    body.iter().any(|node| match node {
        Node::Leave { .. } => true,
        Node::If(branch) => leaves_loop(&branch.then) || leaves_loop(&branch.otherwise),
        _ => false,
    })
}

/// Whether some threads may end in these nodes and others go on. `divergent`: not all threads come here.
fn exits_apart(nodes: &[Node], divergent: bool) -> bool {
    nodes.iter().any(|node| match node {
        Node::Exit { uniform, .. } => divergent || !uniform,
        Node::If(b) => {
            let divergent = divergent || !b.uniform;
            exits_apart(&b.then, divergent) || exits_apart(&b.otherwise, divergent)
        }
        Node::Loop(inner) => exits_apart(&inner.body, divergent),
        Node::Leave { .. }
        | Node::Roles(_)
        | Node::Inst(_)
        | Node::Comment(_)
        | Node::Assume(_) => false,
    })
}

/// Whether something in a loop's body leaves the loop, or the kernel.
fn is_left(body: &[Node]) -> bool {
    body.iter().any(|node| match node {
        Node::Leave { .. } | Node::Exit { .. } => true,
        Node::If(branch) => is_left(&branch.then) || is_left(&branch.otherwise),
        // What leaves a loop inside leaves only that one; what exits is found there, too.
        Node::Loop(inner) => is_left(&inner.body),
        Node::Roles(_) | Node::Inst(_) | Node::Comment(_) | Node::Assume(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Class, Kernel};

    /// A loop that is left in its midst, or also at its end, with a register that is stepped before that, and one behind.
    fn left_in_its_midst(endless: bool, inside_a_branch: bool) -> (Loop, [Reg; 2]) {
        let mut k = Kernel::new("k", 32);
        let n = k.size("n", 100);
        let registers = [k.reg(Class::B32), k.reg(Class::B32)];
        for r in registers {
            k.set(Type::U32, r, 0);
        }
        let iteration = k.open_loop("i", 0, 1, 100);
        let last = k.compare(Cmp::Ge, iteration.counter, n);
        k.binary(
            crate::ir::Binary::Add,
            Type::U32,
            registers[0],
            registers[0],
            4,
        );
        if inside_a_branch {
            k.begin_if(last, true);
            k.leave_loop(last, true);
            k.end_if();
        } else {
            k.leave_loop(last, true);
        }
        k.binary(
            crate::ir::Binary::Add,
            Type::U32,
            registers[1],
            registers[1],
            4,
        );
        if endless {
            k.close_endless_loop(&iteration, "counted");
        } else {
            k.close_loop(&iteration, n);
        }
        let found = k.finish().nodes.into_iter().find_map(|node| match node {
            Node::Loop(l) => Some(*l),
            _ => None,
        });
        (found.expect("a loop"), registers)
    }

    #[test]
    fn a_step_before_the_place_where_a_loop_is_left_is_one_more() {
        for inside_a_branch in [false, true] {
            let (l, [before, behind]) = left_in_its_midst(true, inside_a_branch);
            let all = [before, behind, l.counter].map(|r| ahead(&l, r));
            assert_eq!(all, [Some(1), Some(0), Some(0)]);
            // Left at its end too, the first register has made as many steps as iterations were completed.
            let (l, [before, behind]) = left_in_its_midst(false, inside_a_branch);
            let all = [before, behind, l.counter].map(|r| ahead(&l, r));
            assert_eq!(all, [None, Some(0), Some(0)]);
        }
    }
}
