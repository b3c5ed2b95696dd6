//! Accesses: the address held against its place, the bounds, the guard, the cost.

use std::rc::Rc;

use layout_core::banks::{Access as Op, Matrices};

use crate::index::code::Ty;
use crate::ir::{
    Address, Arrangement, Element, Entry, Extent, Hopper, Inst, Place, Reg, Remote, Role, Space,
    Statement, Stride, Type,
};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::counted::Source;
use crate::prove::walk::execute::{Arrives, Dealt, DealtList, Event, Machine, Val};

/// What an access does to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) enum Kind {
    Read,
    Write,
    /// A write that arrives once it was waited for.
    Async,
    /// An atomic operation: a read and a write that no other one comes between.
    Atomic,
    /// A read by a copy to global memory, which goes on until it is waited for.
    Sent,
}

/// An access of shared memory, with the address of each thread.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::prove) struct Access {
    pub(in crate::prove) kind: Kind,
    pub(in crate::prove) op: Option<Op>,
    pub(in crate::prove) name: String,
    /// The first byte of each thread that takes part.
    pub(in crate::prove) at: Num,
    /// The threads that take part.
    pub(in crate::prove) active: Mask,
    /// The buffer of each thread's byte.
    pub(in crate::prove) buffer: Num,
    /// Which of the values that its buffer keeps at the same bytes, one after the other: its coordinates in modes without a stride.
    pub(in crate::prove) version: Vec<Lin>,
    pub(in crate::prove) bytes: u32,
    /// Threads may leave it out.
    pub(in crate::prove) maybe: bool,
    pub(in crate::prove) tagged: bool,
    /// Its bytes are those that are touched, once: no index from data, and no atomic operation.
    pub(in crate::prove) exact: bool,
    /// What it is made from, where that changes from iteration to iteration.
    pub(in crate::prove) source: Option<Rc<Source>>,
}

impl Access {
    pub(in crate::prove) fn same_effect(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.active == other.active
            && self.at.is_equal(other.at, self.active)
            && self.bytes == other.bytes
            && self.buffer.is_equal(other.buffer, self.active)
            && self.version == other.version
            && self.maybe == other.maybe
            && self.source == other.source
    }

    /// Threads take part, with an element of a buffer at the given byte each.
    pub(in crate::prove) fn take(&mut self, at: Num, active: Mask, buffer: u16) {
        if self.active.is_empty() {
            (self.at, self.active, self.buffer) = (at, active, Num::same(buffer.into()));
        } else {
            self.at = Num::chosen(active, at, self.at);
            self.buffer = Num::chosen(active, Num::same(buffer.into()), self.buffer);
            self.active = self.active.or(active);
        }
    }
}

/// An access of global memory.
#[derive(Clone, Debug)]
pub(in crate::prove) struct GlobalAccess {
    pub(in crate::prove) name: String,
    pub(in crate::prove) buffer: usize,
    pub(in crate::prove) store: bool,
    /// It is an atomic operation.
    pub(in crate::prove) atomic: bool,
    pub(in crate::prove) coordinates: Vec<Lin>,
    /// Elements at once, along the last mode.
    pub(in crate::prove) width: i64,
    pub(in crate::prove) facts: Facts,
    /// Its guard.
    pub(in crate::prove) guard: Rc<Formula>,
    /// What branches have decided before it.
    pub(in crate::prove) path: Vec<Rc<Formula>>,
    /// What holds since threads have left the kernel.
    pub(in crate::prove) stays: Vec<Rc<Formula>>,
    pub(in crate::prove) address: Lin,
    pub(in crate::prove) bytes: u32,
    /// The iterations of the loops that it is in.
    pub(in crate::prove) iterations: Vec<Sym>,
    /// How many accesses are before it.
    pub(in crate::prove) position: usize,
    /// Of a read, when it is done.
    pub(in crate::prove) arrives: Arrives,
}

/// An access as the instruction says it.
pub(in crate::prove) struct Touch<'s> {
    statement: &'s Statement,
    at: Address,
    pub(in crate::prove) bytes: u32,
    pub(in crate::prove) kind: Kind,
    op: Option<Op>,
    /// For asynchronous copies: the bytes that are read.
    size: Option<Lin>,
}

fn plain(bytes: u32, load: bool) -> Option<Op> {
    Some(match (bytes, load) {
        (1, true) => Op::Ld8,
        (2, true) => Op::Ld16,
        (4, true) => Op::Ld32,
        (8, true) => Op::Ld64,
        (16, true) => Op::Ld128,
        (1, false) => Op::St8,
        (2, false) => Op::St16,
        (4, false) => Op::St32,
        (8, false) => Op::St64,
        (16, false) => Op::St128,
        _ => return None,
    })
}

impl Machine<'_> {
    /// An instruction that touches memory.
    pub(in crate::prove) fn touch(&mut self, s: &Statement) -> Result<(), ProofError> {
        let simple = |at: &Address, ty: &Type, n: usize, kind| {
            let bytes = ty.bytes() * n as u32;
            Touch {
                statement: s,
                at: *at,
                bytes,
                kind,
                op: plain(bytes, kind == Kind::Read),
                size: None,
            }
        };
        match &s.inst {
            Inst::Load { at, ty, to, .. } => {
                let address = self.integer(at.base()).plus(at.immediate());
                self.access(&simple(at, ty, to.len(), Kind::Read))?;
                self.elements_loaded(s, at, to, &address);
            }
            Inst::Store {
                at,
                ty,
                from,
                atomic,
            } => {
                let kind = match atomic {
                    Some(_) => Kind::Atomic,
                    None => Kind::Write,
                };
                self.access(&simple(at, ty, from.len(), kind))?;
            }
            Inst::LoadMatrix { at, to, trans } => {
                let op = (to.len() == 4).then_some(Op::LdMatrix {
                    matrices: Matrices::X4,
                    trans: *trans,
                });
                self.access(&Touch {
                    statement: s,
                    at: *at,
                    bytes: 16,
                    kind: Kind::Read,
                    op,
                    size: None,
                })?;
                for &r in to {
                    self.registers.insert(r, Val::Data(None));
                }
            }
            Inst::StoreMatrix { at, from, trans } => {
                let op = (from.len() == 4).then_some(Op::StMatrix {
                    matrices: Matrices::X4,
                    trans: *trans,
                });
                self.access(&Touch {
                    statement: s,
                    at: *at,
                    bytes: 16,
                    kind: Kind::Write,
                    op,
                    size: None,
                })?;
            }
            Inst::CopyAsync {
                to,
                from,
                bytes,
                size,
                ..
            } => {
                let op = match bytes {
                    4 => Op::CpAsync4,
                    8 => Op::CpAsync8,
                    _ => Op::CpAsync16,
                };
                let size = size.map(|r| {
                    let size = self.integer(r);
                    self.read(&size, Ty::U32)
                });
                self.access(&Touch {
                    statement: s,
                    at: *from,
                    bytes: *bytes,
                    kind: Kind::Read,
                    op: None,
                    size: Some(size.unwrap_or_else(|| Lin::constant((*bytes).into()))),
                })?;
                self.access(&Touch {
                    statement: s,
                    at: *to,
                    bytes: *bytes,
                    kind: Kind::Async,
                    op: Some(op),
                    size: None,
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What registers hold after a load. An integer of an input is the element that it is: nothing writes inputs, so that all who read one place have one number.
    fn elements_loaded(&mut self, s: &Statement, at: &Address, to: &[Reg], address: &Lin) {
        let place = match self.entry.places.get(at.place() as usize) {
            Some(Place::Element {
                buffer,
                coordinates,
            }) => {
                let info = &self.entry.buffers[*buffer];
                let integers = info.space == Space::Global
                    && info.role == Role::Input
                    && info.element == Some(Element::S32);
                integers.then(|| (*buffer, coordinates.clone()))
            }
            _ => None,
        };
        let Some((buffer, coordinates)) = place else {
            for &r in to {
                let value = self.loaded(at.space(), address, s.guard.is_some());
                self.registers.insert(r, value);
            }
            return;
        };
        let coordinates: Vec<Lin> = coordinates.into_iter().map(|e| self.evaluate(e)).collect();
        let guard = s.guard.map(|p| self.guard(p));
        let range = self.stated_range(buffer);
        for (v, &r) in (0..).zip(to) {
            let mut at = coordinates.clone();
            if let Some(last) = at.last_mut() {
                *last = last.plus(v);
            }
            let element = self.symbols.element(buffer, at, range);
            self.learn_range(buffer, &element, guard.as_ref());
            let value = match &guard {
                None => Val::Int(element),
                // Threads that leave the load out keep what they had.
                Some(guard) => match self.registers.get(&r) {
                    Some(&Val::Int(before)) => {
                        Val::Int(self.symbols.ite(guard, &element, &before, self.threads))
                    }
                    _ => Val::Data(None),
                },
            };
            self.registers.insert(r, value);
        }
    }

    /// The numbers that an element of an input may be: those that an author states, or those of its type. Registers hold bits, so that either sign may stand for them.
    fn stated_range(&self, buffer: usize) -> (i128, i128) {
        let pool = &self.entry.pool;
        let stated = self.entry.buffers[buffer].ranges();
        let bounds = stated.map(|(low, high)| (pool.facts(low).lo, pool.facts(high).hi - 1));
        let all = bounds.reduce(|(a, b), (low, high)| (a.max(low), b.min(high)));
        // Where two ranges have nothing in common, an input has no elements: nothing is made of that.
        let some = all.filter(|(low, high)| low <= high);
        some.unwrap_or(Ty::U32.range())
    }

    /// What an author states of an input becomes a fact of an element that is loaded. Where it is not loaded there may be no element.
    fn learn_range(&mut self, buffer: usize, element: &Lin, loaded: Option<&Rc<Formula>>) {
        let entry = self.entry;
        for (low, high) in entry.buffers[buffer].ranges() {
            let (low, high) = (self.evaluate(low), self.evaluate(high));
            for room in [element.sub(&low), high.sub(element).plus(-1)] {
                let mut fact = Rc::new(Formula::ge(room));
                if let Some(loaded) = loaded {
                    fact = Formula::or(&loaded.not(), &fact);
                }
                if !self.facts.all.contains(&fact) {
                    self.learn(&fact);
                }
            }
        }
    }

    /// What is stored was not left over from an earlier iteration on the path that is taken. A register that is of an earlier iteration on every path is
    /// one that a pipeline carries, on purpose.
    fn of_this_iteration(&mut self, t: &Touch<'_>) -> Result<(), ProofError> {
        let from = match &t.statement.inst {
            Inst::Store { from, .. } | Inst::StoreMatrix { from, .. } => from,
            Inst::Hopper(inst) => match &**inst {
                Hopper::Remote(Remote {
                    values,
                    stores: true,
                    ..
                }) => values,
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        for reg in from {
            let Some(stale) = self.stale.get(reg).cloned() else {
                continue;
            };
            if *stale == Formula::True {
                continue;
            }
            let facts = self.facts.with(&stale);
            if !self.symbols.contradicts(&facts) {
                return Err(ProofError::Stale {
                    access: self.name_of(t, t.at.place()),
                    register: crate::print::register(*reg),
                });
            }
        }
        Ok(())
    }

    /// An access to shared memory by loads or stores of another kind; its cost is not that of the banks.
    pub(in crate::prove) fn touch_of(
        s: &Statement,
        at: Address,
        bytes: u32,
        kind: Kind,
    ) -> Touch<'_> {
        Touch {
            statement: s,
            at,
            bytes,
            kind,
            op: None,
            size: None,
        }
    }

    /// An access's guard, and what is known where it holds.
    pub(in crate::prove) fn guarded(&mut self, t: &Touch<'_>) -> (Rc<Formula>, Facts) {
        let guard = match t.statement.guard {
            Some(p) => self.guard(p),
            None => Rc::new(Formula::True),
        };
        let mut facts = self.facts.with(&guard);
        facts.all.extend(self.promises());
        facts.active = guard.possible(facts.active);
        (guard, facts)
    }

    /// An access of shared memory without its threads.
    pub(in crate::prove) fn found(
        &self,
        t: &Touch<'_>,
        guard: &Rc<Formula>,
        facts: &Facts,
    ) -> Access {
        Access {
            kind: t.kind,
            op: t.op,
            name: self.name_of(t, t.at.place()),
            at: Num::ZERO,
            active: Mask::of(vec![false; self.threads]),
            buffer: Num::ZERO,
            version: Vec::new(),
            bytes: t.bytes,
            maybe: self.undecided > 0
                || self.left
                || guard.conjuncts().iter().any(|f| {
                    let active = facts.active.list();
                    let unknown = |(i, a): (usize, &bool)| *a && f.for_thread(i).is_none();
                    active.iter().enumerate().any(unknown)
                }),
            tagged: t.statement.tag.is_some(),
            exact: t.kind != Kind::Atomic,
            source: None,
        }
    }

    /// An access is of a width that its place was made for, and what it stores is of this iteration.
    pub(in crate::prove) fn of_its_width(&mut self, t: &Touch<'_>) -> Result<(), ProofError> {
        self.of_this_iteration(t)?;
        let meant = self.entry.widths.get(t.at.place() as usize).copied();
        if meant.is_none_or(|m| m & t.bytes == 0) {
            return Err(ProofError::Width {
                access: self.name_of(t, t.at.place()),
                bytes: t.bytes,
            });
        }
        Ok(())
    }

    pub(in crate::prove) fn access(&mut self, t: &Touch<'_>) -> Result<(), ProofError> {
        self.of_its_width(t)?;
        let (guard, facts) = self.guarded(t);
        if self.is_input(t.at.place()) {
            self.made_at_all(t, &guard)?;
        }
        let address = self.integer(t.at.base()).plus(t.at.immediate());
        if t.at.space() == Space::Shared {
            let mut found = self.found(t, &guard, &facts);
            let parts = self.parts(&found.name, t.at.place(), &address, &facts)?;
            if let [part] = &parts[..]
                && matches!(t.kind, Kind::Read | Kind::Atomic)
                && self.is_of_data(part)
            {
                self.anywhere(part, &facts, &mut found)?;
                let found = Rc::new(found);
                self.accesses.push(Rc::clone(&found));
                self.events.push(Event::Access(found));
                return Ok(());
            }
            found.source = self.source_of(&parts, &facts, &guard);
            if found.source.is_some() && !parts.iter().all(|part| self.is_of_numbers(part)) {
                // Said iteration by iteration where the loop ends.
                self.events.push(Event::Counted(Rc::new(found)));
                return Ok(());
            }
            for part in &parts {
                self.placed(part, &mut found)?;
            }
            let found = Rc::new(found);
            self.accesses.push(Rc::clone(&found));
            self.events.push(Event::Access(found));
            return Ok(());
        }
        self.global(t, t.at.place(), &address, &facts, &guard)
    }

    fn is_input(&self, place: u32) -> bool {
        match self.entry.places.get(place as usize) {
            Some(Place::Element { buffer, .. }) => {
                let buffer = &self.entry.buffers[*buffer];
                buffer.space == Space::Global && buffer.role == Role::Input
            }
            Some(Place::Either { then, .. }) => self.is_input(*then),
            None => false,
        }
    }

    /// The guard of a read is not one that never holds in any launch for threads that are still there: what it is to read would be left out. (On one side of a
    /// branch a guard may well never hold.)
    fn made_at_all(&mut self, t: &Touch<'_>, guard: &Rc<Formula>) -> Result<(), ProofError> {
        let mut all = self.promises();
        all.extend(self.stays.iter().flat_map(Formula::conjuncts));
        let still_there = Facts {
            all,
            active: self.facts.active,
        };
        let symbols = &mut self.symbols;
        let refuted = |f: &Rc<Formula>| symbols.refutes(f, &still_there);
        match self.facts.active.first() {
            Some(thread) if guard.conjuncts().iter().any(refuted) => Err(ProofError::Guard {
                access: self.name_of(t, t.at.place()),
                thread,
            }),
            _ => Ok(()),
        }
    }

    fn name_of(&self, t: &Touch<'_>, place: u32) -> String {
        let reads = t.kind == Kind::Read;
        name_of(self.entry, t.statement, (t.at.space(), place), reads)
    }

    /// What every launch keeps to, of what the kernel has computed so far.
    pub(in crate::prove) fn promises(&mut self) -> Vec<Rc<Formula>> {
        let mut all = self.entry.promises.clone();
        all.retain(|&(a, b)| self.is_computed(a) && self.is_computed(b));
        all.into_iter()
            .map(|(a, b)| {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                Rc::new(Formula::ge(b.sub(&a)))
            })
            .collect()
    }

    /// The threads for which a predicate of the thread's index holds, and the others.
    pub(in crate::prove) fn sides(
        &mut self,
        when: crate::ir::Reg,
        facts: &Facts,
    ) -> Result<[Facts; 2], ProofError> {
        let f = self.predicate(when);
        let mut sides = [facts.clone(), facts.clone()];
        let mut masks = [vec![false; self.threads], vec![false; self.threads]];
        let active = facts.active.list();
        for i in 0..self.threads {
            match f.for_thread(i) {
                Some(holds) => masks[usize::from(!holds)][i] = active[i],
                None if active[i] => {
                    return Err(ProofError::Undecided {
                        what: "a choice of buffers by more than the thread's index".to_owned(),
                    });
                }
                None => {}
            }
        }
        for (side, mask) in sides.iter_mut().zip(masks) {
            side.active = Mask::of(mask);
        }
        Ok(sides)
    }

    pub(in crate::prove) fn place(&self, number: u32) -> Result<Place, ProofError> {
        let found = self.entry.places.get(number as usize).cloned();
        found.ok_or_else(|| ProofError::Undecided {
            what: "an address without a place".to_owned(),
        })
    }

    pub(in crate::prove) fn extent(&mut self, buffer: usize, mode: usize) -> Option<Lin> {
        if let Some(known) = self.extents.get(&(buffer, mode)) {
            return Some(*known);
        }
        let value = match self.entry.buffers[buffer].extents[mode] {
            Extent::Fixed(n) => Lin::constant(n),
            Extent::Value(e) | Extent::Padded { whole: e, .. } => self.evaluate(e),
            Extent::Blocks(_) => return None,
        };
        self.extents.insert((buffer, mode), value);
        Some(value)
    }

    fn global(
        &mut self,
        t: &Touch<'_>,
        place: u32,
        address: &Lin,
        facts: &Facts,
        guard: &Rc<Formula>,
    ) -> Result<(), ProofError> {
        let (buffer, coordinates) = match self.place(place)? {
            Place::Either {
                when,
                then,
                otherwise,
            } => {
                let [a, b] = self.sides(when, facts)?;
                self.global(t, then, address, &a, guard)?;
                return self.global(t, otherwise, address, &b, guard);
            }
            Place::Element {
                buffer,
                coordinates,
            } => (buffer, coordinates),
        };
        if facts.active.is_empty() {
            return Ok(());
        }
        let name = self.name_of(t, place);
        let info = self.entry.buffers[buffer].clone();
        let Arrangement::Global { base, strides } = &info.arrangement else {
            return Err(ProofError::Undecided {
                what: format!("{name}: a place in shared memory by a global address"),
            });
        };
        let coordinates: Vec<Lin> = coordinates.into_iter().map(|e| self.evaluate(e)).collect();
        // The address is the layout at the coordinates.
        let mut wanted = self.evaluate(*base);
        for (c, stride) in coordinates.iter().zip(strides) {
            let stride = match stride {
                Stride::Fixed(s) => Lin::constant(*s),
                Stride::Value(e) => self.evaluate(*e),
            };
            let Some(part) = c.mul(&stride) else {
                return Err(ProofError::Undecided {
                    what: format!("{name}: an address of too many factors"),
                });
            };
            wanted = wanted.add(&part.scale(info.bytes));
        }
        let difference = address.sub(&wanted);
        if !self.symbols.is_zero(&difference, facts) {
            let thread = facts.active.first().unwrap_or(0);
            return Err(ProofError::Address {
                access: name,
                thread,
            });
        }
        let width = (i64::from(t.bytes) / info.bytes).max(1);
        let last = coordinates.len() - 1;
        self.aligned(&name, address, t.bytes, facts)?;
        match &t.size {
            Some(size) => {
                self.partial_bounds(&name, (buffer, info.bytes), &coordinates, size, facts)?;
            }
            None => {
                for (mode, c) in coordinates.iter().enumerate() {
                    let n = if mode == last { width } else { 1 };
                    self.within(&name, (buffer, mode), c, &Lin::constant(n), facts)?;
                }
            }
        }
        let store = t.kind != Kind::Read;
        if store {
            if info.role == Role::Input {
                return Err(ProofError::Input {
                    access: name,
                    input: info.name,
                });
            }
            if info.role == Role::Output && t.kind == Kind::Atomic {
                return Err(ProofError::Coverage {
                    output: info.name,
                    reason: "an atomic operation adds to what is there: declare it by `Kernel::partial_output`".to_owned(),
                });
            }
            self.note_deals();
        }
        let asynchronous = matches!(t.statement.inst, Inst::CopyAsync { .. });
        if asynchronous {
            self.loading.push((self.global.len(), None));
        }
        self.global.push(GlobalAccess {
            name,
            buffer,
            store,
            atomic: t.kind == Kind::Atomic,
            coordinates,
            width,
            facts: facts.clone(),
            guard: Rc::clone(guard),
            path: self.path.clone(),
            stays: self.stays.clone(),
            address: *address,
            bytes: t.bytes,
            iterations: self.iterations.clone(),
            position: self.global.len(),
            arrives: if asynchronous {
                Arrives::Later
            } else {
                Arrives::Now
            },
        });
        self.addresses += 1;
        Ok(())
    }

    /// Notes how the innermost open loop deals out tiles, if it does.
    pub(in crate::prove) fn note_deals(&mut self) {
        let Some(&counter) = self.counters.last() else {
            return;
        };
        if self.deals.iter().any(|d| d.iterations == self.iterations) {
            return;
        }
        let entry = self.entry;
        for deal in entry.deals.iter().filter(|d| d.counter == counter) {
            let list = deal.order.and_then(|order| order.list);
            let list = list.map(|(buffer, _)| DealtList {
                buffer,
                distinct: entry.buffers[buffer].is_distinct(),
                ranges: entry.buffers[buffer]
                    .ranges()
                    .map(|(low, high)| (self.evaluate(low), self.evaluate(high)))
                    .collect(),
            });
            let dealt = Dealt {
                list,
                iterations: self.iterations.clone(),
                origin: deal.origin.map(|e| self.evaluate(e)),
                covers: deal.extents.map(|e| self.evaluate(e)),
                tiles: deal.tiles,
                order: deal.order.map(|order| order.map(|e| self.evaluate(e))),
            };
            self.deals.push(dealt);
        }
    }
}

/// What an access is called: by its tag, or by what it does to which buffer.
pub(in crate::prove) fn name_of(
    entry: &Entry,
    statement: &Statement,
    (space, place): (Space, u32),
    reads: bool,
) -> String {
    if let Some(tag) = &statement.tag
        && space == Space::Shared
    {
        return tag.clone();
    }
    let verb = if reads { "read" } else { "write" };
    match entry.places.get(place as usize) {
        Some(Place::Element { buffer, .. }) => format!("{verb} {}", entry.buffers[*buffer].name),
        Some(Place::Either { then, .. }) => name_of(entry, statement, (space, *then), reads),
        None => verb.to_owned(),
    }
}
