//! Instructions of Hopper: addresses and parities against the use of a stage that they mean, boxes of TMA and matrix descriptors against the layout of the
//! stage, element by element.
//!
//! What they do to a ring becomes an event ([`Piped`]); [`ring`](crate::prove::protocol::ring) shows that roles keep to the protocol.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::index::Expr;
use crate::index::code::Ty;
use crate::ir::{
    Address, Arrangement, DESCRIPTOR_BITS, Extent, Hopper, Matrix, OrderArrival, Place, Reg, Role,
    Side, StageUse, Statement,
};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num};
use crate::prove::algebra::offsets::Offsets;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Event, Machine, Val};

/// Something done to a ring, by some threads.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Piped {
    pub(in crate::prove) what: What,
    pub(in crate::prove) threads: Mask,
}

/// What is done.
#[derive(Clone, Debug)]
pub(in crate::prove) enum What {
    /// An mbarrier is made: the `which`-th of its ring, for so many arrivals.
    Made(usize, i64, u32),
    /// Mbarriers that were made are made visible.
    Published,
    /// Threads wait for all of the cluster.
    ClusterMet,
    /// A wait for one side of a use of a stage, or for a role's iteration.
    Wait(Used, Side),
    /// An arrival with which the role of this number passes its iteration on.
    Pass(Used, u32, OrderArrival),
    /// An arrival that releases a stage: to the own block, or to that of a rank, by each thread.
    Arrive(Used, Option<Num>),
    /// An arrival that announces bytes.
    Expect(Used, u32),
    /// A copy to units of 16 bytes of a stage.
    Fill(Used, Fill),
    /// A product reads units of a stage.
    Read(Used, Region),
    /// Threads read units of a stage into registers.
    Fetch(Used, Region),
    /// Arrivals at a named barrier of so many threads, which wait for it or not.
    Named { id: u32, count: u32, waits: bool },
    /// Products are closed to a group.
    Commit,
    /// All groups but some are complete.
    Complete(u32),
}

/// Which use of a stage of which ring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::prove) struct Used {
    pub(in crate::prove) ring: usize,
    pub(in crate::prove) index: Lin,
}

/// Part of a stage.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Region {
    /// The name of the buffer.
    pub(in crate::prove) name: String,
    /// Units of 16 bytes, from the start of the first stage of all buffers.
    pub(in crate::prove) units: Rc<BTreeSet<i64>>,
    /// Which of the values that the stage keeps one after the other.
    pub(in crate::prove) version: Vec<Lin>,
}

/// A copy, of each block of a cluster.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Fill {
    /// What the block of each rank copies; without clusters one.
    pub(in crate::prove) from: Vec<Region>,
    /// The blocks that get it, a bit for each rank; none: the own block.
    pub(in crate::prove) to: Option<u16>,
    /// Where the tile of the stage begins in the array that is copied.
    pub(in crate::prove) origin: Vec<Lin>,
}

impl Fill {
    /// What comes to the block of a rank.
    pub(in crate::prove) fn arriving_at(&self, rank: usize) -> impl Iterator<Item = &Region> {
        let goes = move |from: usize| self.to.map_or(from == rank, |to| to >> rank & 1 != 0);
        (0..)
            .zip(&self.from)
            .filter(move |(from, _)| goes(*from))
            .map(|(_, region)| region)
    }

    /// A block copies to others.
    pub(in crate::prove) fn is_shared(&self) -> bool {
        self.to.is_some()
    }
}

/// Bytes of a unit.
pub(in crate::prove) const UNIT: i64 = 16;

/// Bytes after which every swizzle repeats.
const PERIOD: i64 = 1024;
/// Rows after which a swizzle repeats.
pub(in crate::prove) const ROWS: i64 = 8;

/// A place in a stage, or an mbarrier.
pub(in crate::prove) struct Staged {
    pub(in crate::prove) buffer: usize,
    /// Its coordinates within the stage, for each thread.
    pub(in crate::prove) inner: Vec<Num>,
    pub(in crate::prove) version: Vec<Lin>,
}

impl Machine<'_> {
    /// An instruction of Hopper.
    pub(in crate::prove) fn hopper(
        &mut self,
        s: &Statement,
        inst: &Hopper,
    ) -> Result<(), ProofError> {
        if let Hopper::Remote(remote) = inst {
            return self.remote(s, remote);
        }
        let threads = self.threads_of(s)?;
        let what = match inst {
            // Above.
            Hopper::Remote(_) => return Ok(()),
            Hopper::ParamAddress { to, .. } => {
                self.registers.insert(*to, Val::Data(None));
                return Ok(());
            }
            // They change nothing but times: `dependents` holds the places of those that order grids.
            Hopper::PrefetchMap { .. } | Hopper::WaitForGrid | Hopper::LaunchDependents => {
                return Ok(());
            }
            Hopper::Bulk(inst) => return self.bulk(inst, threads, s.guard.is_some()),
            Hopper::BarrierInit { at, count } => {
                single("mbarrier.init", threads)?;
                let (ring, which) = self.made(*at)?;
                What::Made(ring, which, *count)
            }
            Hopper::BarrierInitFence => What::Published,
            Hopper::Arrive { at, stage } => {
                let used = self.barrier(*at, *stage, (Side::Empty, 0))?;
                What::Arrive(used, None)
            }
            Hopper::Pass {
                what,
                at,
                role,
                stage,
            } => {
                let ordered_roles = self.entry.rings[stage.ring].ordered_roles;
                let next = what.side((role + 1) % ordered_roles.max(1));
                let used = self.barrier(*at, *stage, (next, 0))?;
                What::Pass(used, *role, *what)
            }
            Hopper::ArriveAt {
                at,
                block,
                remote,
                stage,
            } => {
                let used = self.barrier(*at, *stage, (Side::Empty, 0))?;
                let rank = self.integer(*block).as_number();
                let rank = rank.ok_or_else(|| {
                    self.refused(
                        used.ring,
                        "an arrival at a block whose rank is not a number",
                    )
                })?;
                self.registers.insert(*remote, Val::Data(None));
                What::Arrive(used, Some(rank))
            }
            Hopper::ClusterBarrier { .. }
                if self.divergent > 0 || self.left || s.guard.is_some() =>
            {
                return Err(ProofError::Divergent {
                    what: "a barrier of the cluster".to_owned(),
                });
            }
            Hopper::ClusterBarrier { orders } => {
                if *orders {
                    self.cluster_orders()?;
                }
                self.block_meets();
                What::ClusterMet
            }
            Hopper::NamedBarrier {
                id,
                threads: count,
                waits,
            } => {
                let whole = self.role == Some(threads) && self.divergent == 0;
                if s.guard.is_some() || !whole {
                    return Err(ProofError::Divergent {
                        what: "a barrier of a role".to_owned(),
                    });
                }
                let all = threads.list().iter().filter(|t| **t).count();
                if *waits && all == *count as usize {
                    // `named` shows that no others arrive at it.
                    self.events.push(Event::RoleMeets);
                }
                What::Named {
                    id: *id,
                    count: *count,
                    waits: *waits,
                }
            }
            Hopper::Expect { at, bytes, stage } => {
                single("mbarrier.arrive.expect_tx", threads)?;
                let used = self.barrier(*at, *stage, (Side::Full, 0))?;
                What::Expect(used, *bytes)
            }
            Hopper::Wait {
                at,
                parity,
                side,
                stage,
                done,
            } => {
                // A stage is empty when consumers have arrived `lag` uses after they read it.
                let ahead = match side {
                    Side::Full | Side::Order(_) | Side::Complete(_) => 0,
                    Side::Empty => self.entry.rings[stage.ring].lag,
                };
                let used = self.barrier(*at, *stage, (*side, ahead))?;
                self.parity(*parity, used, (*side, ahead))?;
                self.registers.insert(*done, Val::Data(None));
                What::Wait(used, *side)
            }
            Hopper::TensorCopy { .. } => {
                single("a copy by TMA", threads)?;
                let (used, fill) = self.box_of(inst)?;
                What::Fill(used, fill)
            }
            Hopper::Wgmma {
                a,
                b,
                d,
                atom,
                add,
                begins,
            } => {
                whole_warpgroups("wgmma", s, threads)?;
                let on = self.predicate(*add);
                let (said, what) = if *begins {
                    (
                        Formula::False,
                        "a product that begins sums and may add to others",
                    )
                } else {
                    (
                        Formula::True,
                        "a product that may not add to its accumulators",
                    )
                };
                if *on != said {
                    let what = what.to_owned();
                    return Err(ProofError::Undecided { what });
                }
                let first = a.matrix().map(|a| (a, atom.m));
                for (matrix, side) in first.into_iter().chain([(b, atom.n)]) {
                    let (used, region) = self.operand_of(matrix, (side, atom.k), threads)?;
                    let what = What::Read(used, region);
                    self.events
                        .push(Event::Piped(Rc::new(Piped { what, threads })));
                }
                for &to in d {
                    self.registers.insert(to, Val::Data(None));
                }
                return Ok(());
            }
            Hopper::Fetch { at, to, stage } => {
                let (used, region) = self.fetched(s, (*at, to.len()), *stage, threads)?;
                for &to in to {
                    self.registers.insert(to, Val::Data(None));
                }
                What::Fetch(used, region)
            }
            Hopper::WgmmaFence => return whole_warpgroups("wgmma.fence", s, threads),
            Hopper::SetRegisters { .. } => return whole_warpgroups("setmaxnreg", s, threads),
            Hopper::WgmmaCommit => {
                whole_warpgroups("wgmma.commit_group", s, threads)?;
                What::Commit
            }
            Hopper::WgmmaWait { pending } => {
                whole_warpgroups("wgmma.wait_group", s, threads)?;
                What::Complete(*pending)
            }
        };
        self.events
            .push(Event::Piped(Rc::new(Piped { what, threads })));
        Ok(())
    }

    /// The threads that execute a statement: known for each of them.
    fn threads_of(&mut self, s: &Statement) -> Result<Mask, ProofError> {
        let undecided = || {
            ProofError::Undecided {
            what: "an instruction of a pipeline under a condition that is not of the thread's index alone".to_owned(),
        }
        };
        if self.undecided > 0 || self.left {
            return Err(undecided());
        }
        let active = self.facts.active;
        let Some(p) = s.guard else {
            return Ok(active);
        };
        let guard = self.guard(p);
        let list = active.list();
        let known = |t: usize| !list[t] || guard.for_thread(t).is_some();
        if !(0..self.threads).all(known) {
            return Err(undecided());
        }
        Ok(active.keep(|t| guard.for_thread(t) == Some(true)))
    }

    /// Where an address is in a stage, or which mbarrier it is, held against its place.
    pub(in crate::prove) fn staged(
        &mut self,
        at: Address,
        used: Option<Used>,
    ) -> Result<Staged, ProofError> {
        self.staged_at(at, used, None)
    }

    /// The same in the block of a rank.
    fn staged_at(
        &mut self,
        at: Address,
        used: Option<Used>,
        rank: Option<i64>,
    ) -> Result<Staged, ProofError> {
        let Place::Element {
            buffer,
            coordinates,
        } = self.place(at.place())?
        else {
            return Err(ProofError::Undecided {
                what: "a choice between stages".to_owned(),
            });
        };
        let mut known = Vec::new();
        for e in coordinates {
            let c = self.evaluate(e);
            known.push(self.of_rank(c, rank));
        }
        let coordinates = known;
        let info = self.entry.buffers[buffer].clone();
        let Arrangement::Shared {
            layout,
            outer,
            offset,
        } = &info.arrangement
        else {
            return Err(ProofError::Undecided {
                what: format!("{}: a stage in global memory", info.name),
            });
        };
        let wrong = || ProofError::Address {
            access: info.name.clone(),
            thread: 0,
        };
        let inside = coordinates.len() - outer.len();
        let mut wanted = self.shared_base().plus(*offset);
        let mut inner = Vec::new();
        let mut version = Vec::new();
        for (mode, c) in coordinates.iter().enumerate() {
            if mode >= inside {
                match outer[mode - inside] {
                    0 => version.push(*c),
                    stride => {
                        let slot = used.map(|used| self.slot(used));
                        if slot != Some(*c) {
                            return Err(wrong());
                        }
                        wanted = wanted.add(&c.scale(stride));
                    }
                }
                continue;
            }
            if let Some(k) = c.as_number() {
                inner.push(k);
            } else if outer.is_empty() {
                // An mbarrier of a slot that is not a number: the layout counts them one after the other.
                wanted = wanted.add(&c.scale(info.bytes));
                inner.push(Num::ZERO);
            } else {
                return Err(ProofError::Undecided {
                    what: format!(
                        "{}: a coordinate in a stage that is not a number",
                        info.name
                    ),
                });
            }
        }
        let extents = info.fixed_extents();
        let known = self.offsets.remove(&buffer);
        let mut offsets = known.unwrap_or_else(|| Offsets::of(layout, &extents[..inside]));
        let byte = offsets.of_numbers(&inner);
        self.offsets.insert(buffer, offsets);
        let wanted = wanted.add(&Lin::number(byte.ok_or_else(wrong)?));
        let address = self.integer(at.base()).plus(at.immediate());
        let address = self.of_rank(address, rank);
        let facts = self.facts.clone();
        let difference = address.sub(&wanted);
        if !self.symbols.is_zero(&difference, &facts) {
            return Err(wrong());
        }
        self.addresses += 1;
        Ok(Staged {
            buffer,
            inner,
            version,
        })
    }

    /// A value in the block of a rank.
    fn of_rank(&self, x: Lin, rank: Option<i64>) -> Lin {
        match (self.ranks, rank) {
            (Some(ranks), Some(rank)) => ranks.at(&x, rank),
            _ => x,
        }
    }

    pub(in crate::prove) fn used(&mut self, stage: StageUse) -> Used {
        Used {
            ring: stage.ring,
            index: self.evaluate(stage.index),
        }
    }

    /// The slot of a use of a stage: its index modulo the number of stages.
    fn slot(&mut self, used: Used) -> Lin {
        let stages = self.entry.rings[used.ring].stages;
        if stages.count_ones() == 1 {
            return self.symbols.low(&used.index, stages.trailing_zeros());
        }
        let rounds = self.symbols.div(&used.index, stages);
        used.index.sub(&rounds.scale(stages))
    }

    /// The parity register of a wait is that of the phase that the use needs: of the arrivals so many uses ahead.
    fn parity(
        &mut self,
        register: crate::ir::Reg,
        used: Used,
        (side, ahead): (Side, i64),
    ) -> Result<(), ProofError> {
        let stages = match side {
            Side::Order(_) | Side::Complete(_) => 1,
            _ => self.entry.rings[used.ring].stages,
        };
        let index = used.index.plus(ahead);
        let rounds = if stages.count_ones() == 1 {
            self.symbols.shr(&index, stages.trailing_zeros())
        } else {
            self.symbols.div(&index, stages)
        };
        let odd = self.symbols.low(&rounds, 1);
        let wanted = match side {
            Side::Empty | Side::Order(0) | Side::Complete(0) => Lin::constant(1).sub(&odd),
            Side::Full | Side::Order(_) | Side::Complete(_) => odd,
        };
        let found = self.integer(register);
        let facts = self.facts.clone();
        if self.symbols.is_zero(&found.sub(&wanted), &facts) {
            return Ok(());
        }
        Err(self.refused(
            used.ring,
            "a wait is for another phase than its use of the stage needs",
        ))
    }

    pub(in crate::prove) fn refused(&self, ring: usize, reason: impl Into<String>) -> ProofError {
        ProofError::Ring {
            ring: self.entry.rings[ring].name.clone(),
            reason: reason.into(),
        }
    }

    /// A coordinate of a copy by TMA, which reads it as a signed number.
    pub(in crate::prove) fn coordinate(&mut self, register: Reg) -> Lin {
        let x = self.integer(register);
        self.read(&x, Ty::S32)
    }

    /// Which mbarrier of which ring is made.
    fn made(&mut self, at: Address) -> Result<(usize, i64), ProofError> {
        let staged = self.staged(at, None)?;
        let ring = self
            .entry
            .rings
            .iter()
            .position(|r| r.barriers == staged.buffer);
        let which = staged.inner.first().and_then(|k| k.one());
        match (ring, which) {
            (Some(ring), Some(which)) => Ok((ring, which)),
            _ => Err(ProofError::Undecided {
                what: "an mbarrier that is of no ring".to_owned(),
            }),
        }
    }

    /// An mbarrier is that of the use so many ahead.
    fn barrier(
        &mut self,
        at: Address,
        stage: StageUse,
        (side, ahead): (Side, i64),
    ) -> Result<Used, ProofError> {
        let used = self.used(stage);
        let Place::Element {
            buffer,
            coordinates,
        } = self.place(at.place())?
        else {
            return Err(self.refused(used.ring, "a choice between mbarriers"));
        };
        let which = coordinates.first().map(|&e| self.evaluate(e));
        let arrival = Used {
            index: used.index.plus(ahead),
            ..used
        };
        let (ring, stages, ordered_roles) = {
            let ring = &self.entry.rings[used.ring];
            (ring.barriers, ring.stages, i64::from(ring.ordered_roles))
        };
        let wanted = match side {
            Side::Full => self.slot(arrival),
            Side::Empty => self.slot(arrival).plus(stages),
            Side::Order(role) => Lin::constant(2 * stages + i64::from(role)),
            Side::Complete(role) => Lin::constant(2 * stages + ordered_roles + i64::from(role)),
        };
        if buffer != ring || which != Some(wanted) {
            return Err(self.refused(used.ring, "an mbarrier is not that of its stage"));
        }
        self.staged(at, None)?;
        Ok(used)
    }

    /// A copy by TMA: each element of the box lands where the layout of the stage has it.
    fn box_of(&mut self, inst: &Hopper) -> Result<(Used, Fill), ProofError> {
        let Hopper::TensorCopy {
            to,
            map,
            coordinates,
            from,
            barrier,
            blocks,
            stage,
            ..
        } = inst
        else {
            return Err(ProofError::Undecided {
                what: "a copy".to_owned(),
            });
        };
        let used = self.barrier(*barrier, *stage, (Side::Full, 0))?;
        let count = self.ranks.map_or(1, |ranks| ranks.count);
        if blocks.is_some_and(|to| to == 0 || i64::from(to) >> count != 0) {
            return Err(self.refused(
                used.ring,
                format!("a copy goes to other blocks than the {count} of a cluster"),
            ));
        }
        // In the block of each rank.
        let mut staged = Vec::new();
        for rank in 0..count {
            staged.push(self.staged_at(*to, Some(used), Some(rank))?);
        }
        let buffer = staged[0].buffer;
        let map = self.entry.tensor_maps[*map].clone();
        let name = self.entry.buffers[buffer].name.clone();
        let refuse = |reason: &str| ProofError::Undecided {
            what: format!("copy of {} to {name}: {reason}", map.name),
        };
        if self.entry.buffers[map.buffer].role == Role::Output {
            return Err(refuse(
                "an output, which may be stored to while it is copied",
            ));
        }
        if from.len() != coordinates.len()
            || from.len() != self.entry.buffers[map.buffer].extents.len()
        {
            return Err(refuse("another number of coordinates than the array has"));
        }
        let facts = self.facts.clone();
        for (register, &meant) in coordinates.iter().rev().zip(from) {
            let difference = self.coordinate(*register).sub(&self.evaluate(meant));
            if !self.symbols.is_zero(&difference, &facts) {
                return Err(ProofError::Address {
                    access: format!("copy of {}", map.name),
                    thread: facts.active.first().unwrap_or(0),
                });
            }
        }
        let bytes = self.entry.buffers[buffer].bytes;
        if !self.begins_with_a_piece(from, bytes) {
            return Err(refuse(
                "a box that may begin inside of 16 bytes of a row, which is an illegal instruction: let its innermost coordinate be a multiple of 16 bytes",
            ));
        }
        let [rows, cols] = map.extents;
        let width = cols * bytes;
        let permuted = matches!(map.swizzle, 32 | 64 | 128) && width == map.swizzle;
        let vector =
            map.swizzle == 0 && rows == 1 && (1..=256).contains(&cols) && width % UNIT == 0;
        let fits = bytes == self.entry.buffers[map.buffer].bytes
            && (permuted || vector)
            && (1..=256).contains(&rows);
        if !fits {
            return Err(refuse(
                "a box whose rows are not one period of its swizzle, and that is no vector of whole units",
            ));
        }
        let thread = facts.active.first().unwrap_or(0);
        let mut fill = Fill {
            from: Vec::new(),
            to: *blocks,
            origin: Vec::new(),
        };
        for (rank, staged) in (0..).zip(staged) {
            let start: Vec<i64> = staged.inner.iter().map(|k| k.at(thread)).collect();
            let how = [0, rows, cols, map.swizzle];
            let units = self.units(buffer, &start, &how, |first| {
                let mut all = Vec::new();
                for row in 0..rows {
                    for col in 0..cols {
                        let plain = first + row * width + col * bytes;
                        let lands = if permuted {
                            swizzled(plain, map.swizzle)
                        } else {
                            plain
                        };
                        all.push(([row, col], lands));
                    }
                }
                (first % (ROWS * 128) == 0).then_some(all)
            });
            let units = units.ok_or_else(|| ProofError::Address {
                access: format!("copy of {} to {name}", map.name),
                thread,
            })?;
            // The box's own place in the stage is not the tile's.
            let before = from.len().saturating_sub(start.len());
            let mut origin = Vec::new();
            for (mode, &from) in from.iter().enumerate() {
                let at = self.evaluate(from);
                let within = mode.checked_sub(before).map_or(0, |mode| start[mode]);
                origin.push(self.of_rank(at, Some(rank)).plus(-within));
            }
            if rank == 0 {
                fill.origin = origin;
            } else if blocks.is_some() && origin != fill.origin {
                return Err(self.refused(
                    used.ring,
                    format!(
                        "{name}: blocks of a cluster copy parts of different tiles to each other"
                    ),
                ));
            }
            fill.from.push(Region {
                name: name.clone(),
                units,
                version: staged.version,
            });
        }
        Ok((used, fill))
    }

    /// The innermost coordinate of a box is a multiple of 16 bytes: measured on an H200, where another one is an illegal instruction; it is no part of the PTX ISA.
    pub(in crate::prove) fn begins_with_a_piece(
        &mut self,
        coordinates: &[Expr],
        bytes: i64,
    ) -> bool {
        let Some(&innermost) = coordinates.last() else {
            return false;
        };
        let innermost = self.evaluate(innermost);
        let rest = self
            .symbols
            .low(&innermost, (UNIT / bytes).max(1).trailing_zeros());
        let facts = self.facts.clone();
        self.symbols.is_zero(&rest, &facts)
    }

    /// The units of a stage that hold elements at coordinates from `start`, if they are where `at` says; bytes from the start of shared memory's stages. What
    /// `at` depends on besides, `how` says, so that each is computed once.
    pub(in crate::prove) fn units(
        &mut self,
        buffer: usize,
        start: &[i64],
        how: &[i64],
        at: impl Fn(i64) -> Option<Vec<([i64; 2], i64)>>,
    ) -> Option<Rc<BTreeSet<i64>>> {
        let key = [&[buffer as i64], how, start].concat();
        if let Some(known) = self.known_units.get(&key) {
            return Some(Rc::clone(known));
        }
        let info = &self.entry.buffers[buffer];
        let Arrangement::Shared {
            offset, ref outer, ..
        } = info.arrangement
        else {
            return None;
        };
        let extent = |mode: usize| match info.extents[mode] {
            Extent::Fixed(n) => n,
            _ => 0,
        };
        let (rows, cols) = (extent(0), extent(1));
        let offsets = self.offsets.get_mut(&buffer)?;
        let [row0, col0] = *start else { return None };
        // Swizzles are of addresses: those of stages are multiples of their periods.
        let whole = |bytes: &i64| bytes % PERIOD == 0;
        let aligned = self
            .entry
            .shared
            .is_some_and(|s| i64::from(s.align) >= PERIOD)
            && whole(&offset)
            && outer.iter().all(whole);
        if !aligned {
            return None;
        }
        let first = offsets.at(&[row0, col0]);
        let mut units = BTreeSet::new();
        for ([row, col], byte) in at(first)? {
            let (row, col) = (row0 + row, col0 + col);
            let inside = (0..rows).contains(&row) && (0..cols).contains(&col);
            if !inside || offsets.at(&[row, col]) != byte {
                return None;
            }
            units.insert((offset + byte) / UNIT);
        }
        let units = Rc::new(units);
        self.known_units.insert(key, Rc::clone(&units));
        Some(units)
    }

    /// An operand of `wgmma`: each element that the descriptor means is where the layout of the stage has it.
    fn operand_of(
        &mut self,
        m: &Matrix,
        (side, depth): (i64, i64),
        threads: Mask,
    ) -> Result<(Used, Region), ProofError> {
        let Place::Element { buffer, .. } = self.place(m.at.place())? else {
            return Err(ProofError::Undecided {
                what: "a choice between operands of wgmma".to_owned(),
            });
        };
        let name = self.entry.buffers[buffer].name.clone();
        let used = self.used(m.stage);
        if !self.entry.rings[used.ring].buffers.contains(&buffer) {
            return Err(ProofError::Undecided {
                what: format!("wgmma of {name}, which is no stage of its ring"),
            });
        }
        let staged = self.staged(m.at, Some(used))?;
        let refuse = |thread| ProofError::Address {
            access: format!("wgmma of {name}"),
            thread,
        };
        // The low half is the address in units, without the rank of the block, and the leading offset.
        let base = self.shared_base();
        let address = self.integer(m.at.base()).plus(m.at.immediate());
        let within = self.symbols.low(&base, DESCRIPTOR_BITS);
        let address = address.sub(&base).add(&within);
        let low = self.integer(m.low).scale(UNIT);
        let facts = self.facts.clone();
        let leading = low.sub(&address).as_constant();
        let leading = leading
            .filter(|k| *k >= 0 && k % (1 << 20) == 0)
            .map(|k| (k >> 20) * UNIT);
        let Some(leading) = leading.filter(|k| *k < 1 << 18) else {
            return Err(refuse(facts.active.first().unwrap_or(0)));
        };
        let (stride, mode) = (i64::from(m.high & 0x3fff) * UNIT, m.high >> 30);
        if mode == 0 || m.high & 0x3fff_c000 != 0 {
            return Err(ProofError::Undecided {
                what: format!("wgmma of {name} without a swizzle, or with a base offset"),
            });
        }
        // Bytes of a row of the swizzle.
        let row = 256 >> mode;
        let bytes = self.entry.buffers[buffer].bytes;
        let mut all = BTreeSet::new();
        let list = threads.list();
        let mut known: Vec<Vec<i64>> = Vec::new();
        for group in (0..self.threads).step_by(128).filter(|&t| list[t]) {
            let start: Vec<i64> = staged.inner.iter().map(|k| k.at(group)).collect();
            let same = |t: usize| staged.inner.iter().zip(&start).all(|(k, s)| k.at(t) == *s);
            if !(group..group + 128).all(same) {
                return Err(ProofError::Divergent {
                    what: format!("wgmma of {name}: a descriptor that differs within a warpgroup"),
                });
            }
            if known.contains(&start) {
                continue;
            }
            let how = [1, side, depth, leading, stride, row, m.k_major.into()];
            let units = self.units(buffer, &start, &how, |first| {
                let mut elements = Vec::new();
                // A descriptor has the address before the swizzle. It is the address of the first element only where the swizzle does not move that.
                let plain = swizzled(first, row);
                if plain != first {
                    return None;
                }
                for s in 0..side {
                    for k in 0..depth {
                        let at = if m.k_major {
                            plain + s / ROWS * stride + s % ROWS * row + k * bytes
                        } else {
                            let wide = row / bytes;
                            plain
                                + s / wide * leading
                                + s % wide * bytes
                                + k / ROWS * stride
                                + k % ROWS * row
                        };
                        let place = if m.k_major { [s, k] } else { [k, s] };
                        elements.push((place, swizzled(at, row)));
                    }
                }
                Some(elements)
            });
            all.extend(units.ok_or_else(|| refuse(group))?.iter());
            known.push(start);
        }
        let region = Region {
            name,
            units: Rc::new(all),
            version: staged.version,
        };
        Ok((used, region))
    }
}

/// A byte under the swizzle of so many bytes, which is its own inverse: chunks of 16 bytes are permuted by the number of the 128 bytes that they are in.
pub(in crate::prove) fn swizzled(byte: i64, period: i64) -> i64 {
    byte ^ (byte >> 3 & (period - UNIT))
}

fn single(what: &str, threads: Mask) -> Result<(), ProofError> {
    let count = threads.list().iter().filter(|t| **t).count();
    if count == 1 {
        return Ok(());
    }
    Err(ProofError::Divergent {
        what: format!("{what} by {count} threads, where one is to execute it"),
    })
}

fn whole_warpgroups(what: &str, s: &Statement, threads: Mask) -> Result<(), ProofError> {
    let list = threads.list();
    // Warps after the last whole warpgroup, such as a producer of one warp, belong to no warpgroup.
    let whole = list.chunks(128).all(|group| {
        let all = group.len() == 128 && group.iter().all(|&t| t);
        all || group.iter().all(|&t| !t)
    });
    if s.guard.is_none() && whole {
        return Ok(());
    }
    Err(ProofError::Divergent {
        what: format!("{what} by part of a warpgroup"),
    })
}
