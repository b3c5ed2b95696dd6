//! Accesses: the address held against its place, the bounds, the guard, the cost.

use std::rc::Rc;

use layout_core::banks::{self, Access as Op, BankModel, Matrices};

use super::ProofError;
use super::access::AccessProof;
use super::execute::{Event, Machine, Trace, Val};
use super::formula::Formula;
use super::offsets::Offsets;
use super::quick::QuickMap;
use super::solve::Facts;
use super::value::{Lin, Num, Sym};
use crate::ir::{Address, Arrangement, Extent, Inst, Place, Role, Space, Statement, Stride, Type};

/// What an access does to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    /// A write that arrives once it was waited for.
    Async,
}

/// An access of shared memory, with the address of each thread.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Access {
    pub(super) kind: Kind,
    pub(super) op: Option<Op>,
    pub(super) name: String,
    /// The byte of each thread; negative where it does not take part.
    pub(super) at: Vec<i64>,
    /// The buffer of each thread's byte.
    pub(super) buffer: Vec<u16>,
    /// Which of the values that its buffer keeps at the same bytes, one after the other: its coordinates in modes without a stride.
    pub(super) version: Vec<Lin>,
    pub(super) bytes: u32,
    /// Threads may leave it out.
    pub(super) maybe: bool,
    pub(super) tagged: bool,
}

impl Access {
    pub(super) fn same_effect(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.at == other.at
            && self.bytes == other.bytes
            && self.buffer == other.buffer
            && self.version == other.version
            && self.maybe == other.maybe
    }
}

/// An access of global memory.
#[derive(Clone, Debug)]
pub(super) struct GlobalAccess {
    pub(super) name: String,
    pub(super) buffer: usize,
    pub(super) store: bool,
    pub(super) coordinates: Vec<Lin>,
    /// Elements at once, along the last mode.
    pub(super) width: i64,
    pub(super) facts: Facts,
    /// Its guard.
    pub(super) guard: Rc<Formula>,
    /// What branches have decided before it.
    pub(super) path: Vec<Rc<Formula>>,
    /// What holds since threads have left the kernel.
    pub(super) stays: Vec<Rc<Formula>>,
    pub(super) sectors: Option<(u32, u32)>,
    /// The turns of the loops that it is in.
    pub(super) turns: Vec<Sym>,
}

/// What a global access costs in sectors of 32 bytes; only accesses whose lanes differ by constants have one.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel};
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Swizzled};
///
/// // y = x through shared memory, an element a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1000);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let tile = k.shared("tile", Element::F32, &Swizzled::parse("128:1")?)?;
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let tile = tile.partition(&mut k, &one, thread)?;
/// k.copy(&x, &tile)?;
/// k.copy(&tile, &y)?;
/// let proof = k.build(Arch(80))?.proof;
/// let read = &proof.global[0];
/// assert_eq!((read.access.as_str(), read.sectors, read.ideal), ("read x", 4, 4)); // 128 bytes a warp
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GlobalCost {
    /// The buffer, and whether it is read or written.
    pub access: String,
    /// The most sectors of a warp's execution.
    pub sectors: u32,
    /// Sectors if its bytes were side by side.
    pub ideal: u32,
}

impl Trace {
    pub(super) fn shared_costs(&self, model: &BankModel) -> Vec<AccessProof> {
        let mut all: Vec<AccessProof> = Vec::new();
        let mut known = Costs::default();
        for a in &self.accesses {
            let Some(op) = a.op.filter(|_| a.tagged) else {
                continue;
            };
            let Some((wavefronts, ideal)) = cost(model, op, &a.at, !a.maybe, &mut known) else {
                continue;
            };
            match all.iter_mut().find(|c| c.access == a.name) {
                Some(c) => {
                    c.wavefronts = c.wavefronts.max(wavefronts);
                    c.ideal = c.ideal.max(ideal);
                }
                None => all.push(AccessProof {
                    access: a.name.clone(),
                    op,
                    wavefronts,
                    ideal,
                }),
            }
        }
        all
    }

    pub(super) fn global_costs(&self) -> Vec<GlobalCost> {
        let mut all: Vec<GlobalCost> = Vec::new();
        for a in &self.global {
            let Some((sectors, ideal)) = a.sectors else {
                continue;
            };
            match all.iter_mut().find(|c| c.access == a.name) {
                Some(c) => (c.sectors, c.ideal) = (c.sectors.max(sectors), c.ideal.max(ideal)),
                None => all.push(GlobalCost {
                    access: a.name.clone(),
                    sectors,
                    ideal,
                }),
            }
        }
        all
    }
}

/// What warps were found to cost.
type Costs = QuickMap<(Op, [i64; 32]), Option<(u32, u32)>>;

/// Bytes of one word in each bank: whole rounds of the banks move no word to another bank.
const ROUND: i64 = 128;

/// The most wavefronts of a warp and their ideal. If it is not `exact` which lanes take part, only warps count of which all do.
fn cost(
    model: &BankModel,
    op: Op,
    at: &[i64],
    exact: bool,
    known: &mut Costs,
) -> Option<(u32, u32)> {
    at.chunks(32)
        .filter_map(|warp| <[i64; 32]>::try_from(warp).ok())
        .filter(|warp| warp.iter().all(|&a| a >= 0) || (exact && warp.iter().any(|&a| a >= 0)))
        .filter_map(|warp| {
            let active = warp.iter().filter(|&&a| a >= 0);
            let rounds = active.min().map_or(0, |least| least / ROUND * ROUND);
            let warp = warp.map(|a| if a < 0 { a } else { a - rounds });
            *known.entry((op, warp)).or_insert_with(|| {
                let counted = banks::wavefronts(model, op, &warp).ok()?;
                Some((counted.wavefronts, counted.ideal))
            })
        })
        .max()
}

/// An access as the instruction says it.
struct Touch<'s> {
    statement: &'s Statement,
    at: Address,
    bytes: u32,
    kind: Kind,
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
    pub(super) fn touch(&mut self, s: &Statement) -> Result<(), ProofError> {
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
                self.access(&simple(at, ty, to.len(), Kind::Read))?;
                for &r in to {
                    self.registers.insert(r, Val::Data(false));
                }
            }
            Inst::Store { at, ty, from } => {
                self.access(&simple(at, ty, from.len(), Kind::Write))?;
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
                    self.registers.insert(r, Val::Data(false));
                }
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
                let size = size.map(|r| self.integer(r));
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

    /// What is stored was not left over from an earlier turn on the path that is taken. A register that is of an earlier turn on every path is
    /// one that a pipeline carries, on purpose.
    fn of_this_turn(&mut self, t: &Touch<'_>) -> Result<(), ProofError> {
        let Inst::Store { from, .. } = &t.statement.inst else {
            return Ok(());
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

    fn access(&mut self, t: &Touch<'_>) -> Result<(), ProofError> {
        self.of_this_turn(t)?;
        let guard = match t.statement.guard {
            Some(p) => self.guard(p),
            None => Rc::new(Formula::True),
        };
        let mut facts = self.facts.with(&guard);
        facts.all.extend(self.promises());
        facts.active = guard.possible(&facts.active);
        if self.is_input(t.at.place()) {
            self.made_at_all(t, &guard)?;
        }
        let address = self.integer(t.at.base()).plus(t.at.immediate());
        let meant = self.entry.widths.get(t.at.place() as usize).copied();
        if meant.is_none_or(|m| m & t.bytes == 0) {
            return Err(ProofError::Width {
                access: self.name_of(t, t.at.place()),
                bytes: t.bytes,
            });
        }
        if t.at.space() == Space::Shared {
            let mut found = Access {
                kind: t.kind,
                op: t.op,
                name: self.name_of(t, t.at.place()),
                at: vec![-1; self.threads],
                buffer: vec![0; self.threads],
                version: Vec::new(),
                bytes: t.bytes,
                maybe: self.undecided > 0
                    || self.left
                    || guard.conjuncts().iter().any(|f| {
                        (0..self.threads).any(|i| facts.active[i] && f.for_thread(i).is_none())
                    }),
                tagged: t.statement.tag.is_some(),
            };
            self.shared(t, t.at.place(), &address, &facts, &mut found)?;
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

    /// The guard of a read is not one that never holds for threads that are still there: what it is to read would be left out. (On one side of a branch a
    /// guard may well never hold.)
    fn made_at_all(&self, t: &Touch<'_>, guard: &Rc<Formula>) -> Result<(), ProofError> {
        let still_there = Facts {
            all: self.stays.iter().flat_map(Formula::conjuncts).collect(),
            active: Rc::clone(&self.facts.active),
        };
        let refuted = |f: &Rc<Formula>| self.symbols.refutes(f, &still_there);
        match self.facts.active.iter().position(|&a| a) {
            Some(thread) if guard.conjuncts().iter().any(refuted) => Err(ProofError::Guard {
                access: self.name_of(t, t.at.place()),
                thread,
            }),
            _ => Ok(()),
        }
    }

    fn name_of(&self, t: &Touch<'_>, place: u32) -> String {
        if let Some(tag) = &t.statement.tag
            && t.at.space() == Space::Shared
        {
            return tag.clone();
        }
        let verb = if t.kind == Kind::Read {
            "read"
        } else {
            "write"
        };
        match &self.entry.places.get(place as usize) {
            Some(Place::Element { buffer, .. }) => {
                format!("{verb} {}", self.entry.buffers[*buffer].name)
            }
            Some(Place::Either { then, .. }) => self.name_of(t, *then),
            None => verb.to_owned(),
        }
    }

    /// What every launch keeps to.
    pub(super) fn promises(&mut self) -> Vec<Rc<Formula>> {
        let all = self.entry.promises.clone();
        all.into_iter()
            .map(|(a, b)| {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                Rc::new(Formula::ge(b.sub(&a)))
            })
            .collect()
    }

    /// The threads for which a predicate of the thread's index holds, and the others.
    fn sides(&mut self, when: crate::ir::Reg, facts: &Facts) -> Result<[Facts; 2], ProofError> {
        let f = self.predicate(when);
        let mut sides = [facts.clone(), facts.clone()];
        let mut masks = [vec![false; self.threads], vec![false; self.threads]];
        for i in 0..self.threads {
            match f.for_thread(i) {
                Some(holds) => masks[usize::from(!holds)][i] = facts.active[i],
                None if facts.active[i] => {
                    return Err(ProofError::Undecided {
                        what: "a choice of buffers by more than the thread's index".to_owned(),
                    });
                }
                None => {}
            }
        }
        for (side, mask) in sides.iter_mut().zip(masks) {
            side.active = mask.into();
        }
        Ok(sides)
    }

    fn place(&self, number: u32) -> Result<Place, ProofError> {
        let found = self.entry.places.get(number as usize).cloned();
        found.ok_or_else(|| ProofError::Undecided {
            what: "an address without a place".to_owned(),
        })
    }

    pub(super) fn extent(&mut self, buffer: usize, mode: usize) -> Option<Lin> {
        if let Some(known) = self.extents.get(&(buffer, mode)) {
            return Some(known.clone());
        }
        let value = match self.entry.buffers[buffer].extents[mode] {
            Extent::Fixed(n) => Lin::constant(n),
            Extent::Value(e) | Extent::Padded { whole: e, .. } => self.evaluate(e),
            Extent::Blocks(_) => return None,
        };
        self.extents.insert((buffer, mode), value.clone());
        Some(value)
    }

    fn shared(
        &mut self,
        t: &Touch<'_>,
        place: u32,
        address: &Lin,
        facts: &Facts,
        found: &mut Access,
    ) -> Result<(), ProofError> {
        let (buffer, coordinates) = match self.place(place)? {
            Place::Either {
                when,
                then,
                otherwise,
            } => {
                let [a, b] = self.sides(when, facts)?;
                self.shared(t, then, address, &a, found)?;
                return self.shared(t, otherwise, address, &b, found);
            }
            Place::Element {
                buffer,
                coordinates,
            } => (buffer, coordinates),
        };
        let name = found.name.clone();
        let coordinates: Vec<Lin> = coordinates.into_iter().map(|e| self.evaluate(e)).collect();
        let info = &self.entry.buffers[buffer];
        let Arrangement::Shared {
            layout,
            outer,
            offset,
        } = &info.arrangement
        else {
            return Err(ProofError::Undecided {
                what: format!("{name}: a place in global memory by a shared address"),
            });
        };
        let elem = info.bytes;
        let width = (i64::from(t.bytes) / elem).max(1);
        let inner = coordinates.len() - outer.len();
        let base = self.shared_base();
        let relative = address.sub(&base);
        let Some(relative) = relative.as_number().cloned() else {
            return Err(ProofError::Undecided {
                what: format!(
                    "{name}: an address in shared memory that depends on more than the thread and the turn"
                ),
            });
        };
        let mut version = Vec::new();
        let mut numbers: Vec<Num> = Vec::new();
        for (mode, c) in coordinates.iter().enumerate() {
            if mode >= inner && outer[mode - inner] == 0 {
                // It is no part of the address: it tells which of the values that are kept here one after the other is meant.
                if !self.symbols.is_uniform(c) {
                    return Err(ProofError::Undecided {
                        what: format!("{name}: threads that are in different passes"),
                    });
                }
                version.push(c.clone());
                numbers.push(Num::One(0));
                continue;
            }
            match c.as_number() {
                Some(k) => numbers.push(k.clone()),
                None => {
                    return Err(ProofError::Undecided {
                        what: format!(
                            "{name}: a coordinate in shared memory that depends on more than the thread and the turn"
                        ),
                    });
                }
            }
        }
        // Both sides of a choice are of the same pass.
        if found.at.iter().any(|&at| at >= 0) && found.version != version {
            return Err(ProofError::Undecided {
                what: format!("{name}: threads that are in different passes"),
            });
        }
        found.version = version;
        let extents: Vec<Option<i64>> = info
            .extents
            .iter()
            .map(|e| match e {
                Extent::Fixed(n) => Some(*n),
                _ => None,
            })
            .collect();
        let limit = self.entry.shared.map_or(0, |s| s.bytes) as i64;
        let mut at = vec![0i64; inner];
        let taking_part = |t: usize| facts.active[t];
        let question = (
            (buffer, t.bytes),
            relative.clone(),
            numbers.clone(),
            Rc::clone(&facts.active),
        );
        if self.placed.contains(&question) {
            for thread in (0..self.threads).filter(|&t| taking_part(t)) {
                found.at[thread] = relative.at(thread);
                found.buffer[thread] = buffer as u16;
            }
            self.addresses += 1;
            return Ok(());
        }
        let known = self.offsets.remove(&buffer);
        let mut offsets = known.unwrap_or_else(|| Offsets::of(layout, &extents[..inner]));
        for thread in 0..self.threads {
            if !taking_part(thread) {
                continue;
            }
            for (mode, (k, extent)) in numbers.iter().zip(&extents).enumerate() {
                let k = k.at(thread);
                if k < 0 || extent.is_some_and(|n| k >= n) {
                    return Err(ProofError::Bounds {
                        access: name,
                        thread,
                        mode,
                    });
                }
            }
            for (slot, k) in at.iter_mut().zip(&numbers) {
                *slot = k.at(thread);
            }
            let mut byte = offsets.at(&at) + offset;
            for (k, stride) in numbers[inner..].iter().zip(outer) {
                byte += k.at(thread) * stride;
            }
            let real = relative.at(thread);
            if byte != real {
                return Err(ProofError::Address {
                    access: name,
                    thread,
                });
            }
            if real % i64::from(t.bytes) != 0 {
                return Err(ProofError::Alignment {
                    access: name,
                    bytes: t.bytes,
                });
            }
            if real < 0 || real + i64::from(t.bytes) > limit {
                return Err(ProofError::Bounds {
                    access: name,
                    thread,
                    mode: inner,
                });
            }
            // The elements of a vector are neighbours along one mode.
            if width > 1 && !offsets.are_neighbours(&mut at, width, elem) {
                return Err(ProofError::Address {
                    access: name,
                    thread,
                });
            }
            found.at[thread] = real;
            found.buffer[thread] = buffer as u16;
        }
        self.offsets.insert(buffer, offsets);
        self.placed.insert(question);
        self.addresses += 1;
        Ok(())
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
        if facts.active.iter().all(|a| !a) {
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
            let thread = facts.active.iter().position(|&a| a).unwrap_or(0);
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
        let sectors = self.sectors(address, t.bytes, facts);
        self.global.push(GlobalAccess {
            name,
            buffer,
            store: t.kind != Kind::Read,
            coordinates,
            width,
            facts: facts.clone(),
            guard: Rc::clone(guard),
            path: self.path.clone(),
            stays: self.stays.clone(),
            sectors,
            turns: self.turns.clone(),
        });
        self.addresses += 1;
        Ok(())
    }
}
