//! The instructions, followed once with exact values for every thread.
//!
//! A loop is followed for as many iterations as what it carries needs to come back (one, or two where an address alternates), with the number of
//! iterations before as a symbol: `iteration = period·u + i`. What an iteration changes is either carried in a known way (it grows by the same step each iteration, or
//! alternates by an exclusive or) or unknown at the top of the loop.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use crate::index::Expr;
use crate::index::code::Operand;
use crate::ir::{
    Axis, Cmp, Comment, DealOrder, Entry, Extent, If, Inst, Line, Node, Pred, Reg, RoleRegion, Src,
    Statement, Type, class_of, last_shared_address,
};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::Mask;
use crate::prove::algebra::offsets::Offsets;
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::assumed::Assumed;
use crate::prove::walk::bulk::SentBox;
use crate::prove::walk::cluster::Ranks;
use crate::prove::walk::data::Made;
use crate::prove::walk::hopper::Piped;
use crate::prove::walk::memory::{Access, GlobalAccess};
use crate::prove::walk::remote::Remote;
use crate::prove::walk::scoped::Scoped;
use crate::quick::{QuickMap, QuickSet};

/// What a register holds.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::prove) enum Val {
    Int(Lin),
    Pred(Rc<Formula>),
    /// Something that takes no part in addresses; what it is, if anything is known of that.
    Data(Option<Datum>),
    /// A value where a statement holds, and none elsewhere.
    Where(Rc<Formula>, Box<Val>),
}

/// A value that takes no part in addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) enum Datum {
    /// A parameter, by its number.
    Param(usize),
    /// A number in the text.
    Literal(Src),
    /// What an instruction has made.
    Made(Made),
}

impl Val {
    /// The statement under which there is a value, and the value.
    fn parts(self) -> (Rc<Formula>, Val) {
        match self {
            Val::Where(f, value) => (f, *value),
            value => (Rc::new(Formula::True), value),
        }
    }
}

/// What happens in shared memory.
#[derive(Clone, Debug)]
pub(in crate::prove) enum Event {
    Access(Rc<Access>),
    /// An access whose address depends on the iteration of a loop that is still open: none is left behind the outermost loop.
    Counted(Rc<Access>),
    Barrier,
    /// All threads of a role meet, that of the events.
    RoleMeets,
    WarpBarrier,
    /// A barrier of the warp on a branch that some warps take: those of these threads.
    WarpsMeet(Mask),
    Commit,
    Wait(u32),
    /// What threads wrote can be seen by copies to global memory.
    Fence,
    /// The threads that issue copies to global memory close a group of them, or wait for all but some.
    Sent,
    WaitSent(u32),
    /// A branch on which all threads agree.
    If(Rc<Formula>, Vec<Event>, Vec<Event>),
    Loop(Rc<Iterations>),
    Leave(Rc<Formula>),
    /// Something done to a ring.
    Piped(Rc<Piped>),
    /// Shared memory of other blocks of the cluster.
    Remote(Rc<Remote>),
    /// Threads part: those of each role, and what they do.
    Roles(Vec<(Mask, Vec<Event>)>),
    Exit(Rc<Formula>),
    /// What is taken as a fact.
    Assume(Rc<Formula>),
}

impl Event {
    /// Whether it happens whatever branches decide.
    pub(in crate::prove) fn is_simple(&self) -> bool {
        !matches!(
            self,
            Event::If(..)
                | Event::Loop(_)
                | Event::Leave(_)
                | Event::Exit(_)
                | Event::Assume(_)
                | Event::Roles(_)
        )
    }
}

/// A loop.
#[derive(Debug)]
pub(in crate::prove) struct Iterations {
    /// The iterations before, in periods.
    pub(in crate::prove) iteration: Sym,
    /// Iterations in all, once it is left.
    pub(in crate::prove) trips: Sym,
    /// The same, where the loop counts them from 0 by 1 to a limit.
    pub(in crate::prove) count: Option<Lin>,
    /// The numbers of symbols and of statements that were made in the body: they are of one iteration.
    pub(in crate::prove) own: Range<u32>,
    /// Each iteration of a period: the statement without which it is not begun, what happens, and the statement with which it goes on.
    pub(in crate::prove) period: Vec<Iteration>,
}

/// One iteration of a period.
#[derive(Debug)]
pub(in crate::prove) struct Iteration {
    pub(in crate::prove) begins: Rc<Formula>,
    pub(in crate::prove) events: Vec<Event>,
    pub(in crate::prove) again: Rc<Formula>,
}

/// What was found.
pub(in crate::prove) struct Trace {
    pub(in crate::prove) threads: usize,
    pub(in crate::prove) events: Vec<Event>,
    pub(in crate::prove) accesses: Vec<Rc<Access>>,
    /// Reads of stages of rings, as of the first stage.
    pub(in crate::prove) fetches: Vec<Rc<Access>>,
    pub(in crate::prove) global: Vec<GlobalAccess>,
    /// Where all threads of the block meet.
    pub(in crate::prove) meetings: Vec<Meeting>,
    /// Boxes that go to global memory.
    pub(in crate::prove) boxes: Vec<SentBox>,
    pub(in crate::prove) addresses: usize,
    pub(in crate::prove) blocks: [Sym; 3],
    /// The ranks of blocks in their clusters, where there are such.
    pub(in crate::prove) ranks: Option<Ranks>,
    /// Elements of each mode of a buffer that matter.
    pub(in crate::prove) used: QuickMap<(usize, usize), Lin>,
    pub(in crate::prove) symbols: Symbols,
    /// What every launch keeps to.
    pub(in crate::prove) promises: Vec<Rc<Formula>>,
    /// What the author states.
    pub(in crate::prove) assumptions: Vec<Assumed>,
    /// What counts tiles, what they cover, and elements of a tile.
    pub(in crate::prove) tilings: Vec<(Lin, Lin, i64)>,
    /// Loops that take each tile of something once.
    pub(in crate::prove) walks: Vec<Walk>,
    /// What deals out tiles, as it is in the loops in which something is stored.
    pub(in crate::prove) deals: Vec<Dealt>,
    /// Axes along which a launch has exactly so many blocks.
    pub(in crate::prove) whole_axes: Vec<(Sym, i64)>,
    /// What parameters are made of.
    pub(in crate::prove) params: Vec<Sym>,
}

/// A place that threads come to: a barrier that all threads of the block meet at, or a wait for asynchronous copies.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Meeting {
    /// How many accesses of global memory are before it.
    before: usize,
    /// The branches and the loops that it is in.
    path: Vec<Rc<Formula>>,
    iterations: Vec<Sym>,
}

/// When a read of global memory has its data.
#[derive(Clone, Debug)]
pub(in crate::prove) enum Arrives {
    /// At once.
    Now,
    /// An asynchronous copy, which is waited for here.
    At(Meeting),
    /// One that is not known to be waited for.
    Later,
}

impl Meeting {
    /// It is come to whenever an access is made: it is in no branch and no loop that the access is not in.
    fn comes_with(&self, access: &GlobalAccess) -> bool {
        access.path.starts_with(&self.path) && access.iterations.starts_with(&self.iterations)
    }

    /// It is met between two accesses whenever both are made: it is in no branch and no loop that neither of them is in.
    pub(in crate::prove) fn is_between(&self, accesses: [&GlobalAccess; 2]) -> bool {
        let met = |a: &&GlobalAccess| self.comes_with(a);
        let [first, second] = accesses.map(|a| a.position < self.before);
        first != second && accesses.iter().any(met)
    }
}

/// A loop from 0 in steps of `tile` up to `covers`, that nothing leaves: each tile is one iteration's.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Walk {
    /// The iterations before.
    pub(in crate::prove) iteration: Sym,
    pub(in crate::prove) covers: Lin,
    pub(in crate::prove) tile: i64,
}

/// What deals out tiles to the iterations of loops and to blocks.
#[derive(Clone, Debug)]
pub(in crate::prove) struct Dealt {
    /// The iterations before, of each open loop.
    pub(in crate::prove) iterations: Vec<Sym>,
    /// The first row and column of the tile.
    pub(in crate::prove) origin: [Lin; 2],
    /// Rows and columns that the tiles cover.
    pub(in crate::prove) covers: [Lin; 2],
    /// Rows and columns of a tile.
    pub(in crate::prove) tiles: [i64; 2],
    /// What the tile is made of, where that is an order for all sizes.
    pub(in crate::prove) order: Option<DealOrder<Lin>>,
    /// Its list, if it has one.
    pub(in crate::prove) list: Option<DealtList>,
}

/// What an author states of a list of tiles.
#[derive(Clone, Debug)]
pub(in crate::prove) struct DealtList {
    pub(in crate::prove) buffer: usize,
    /// No two elements are equal.
    pub(in crate::prove) distinct: bool,
    /// The least number that an element may be, and the first that none is.
    pub(in crate::prove) ranges: Vec<(Lin, Lin)>,
}

/// Registers that may be of an earlier iteration, each with the statement under which it is.
type Stale = Scoped<Reg, Rc<Formula>>;

/// A value, the number of its low bits that are to be 0, values whose low bits are, and the threads.
type MultipleOf = (Lin, u32, Vec<(Lin, u32)>, Mask);

pub(in crate::prove) struct Machine<'a> {
    pub(in crate::prove) entry: &'a Entry,
    pub(in crate::prove) threads: usize,
    pub(in crate::prove) symbols: Symbols,
    pub(in crate::prove) registers: Scoped<Reg, Val>,
    pub(in crate::prove) expressions: Scoped<Expr, Lin>,
    pub(in crate::prove) facts: Facts,
    pub(in crate::prove) events: Vec<Event>,
    pub(in crate::prove) accesses: Vec<Rc<Access>>,
    /// Reads of stages of rings, as of the first stage.
    pub(in crate::prove) fetches: Vec<Rc<Access>>,
    pub(in crate::prove) global: Vec<GlobalAccess>,
    /// Asynchronous reads of global memory that were not waited for, by number, each with how many groups were closed since its own.
    pub(in crate::prove) loading: Vec<(usize, Option<u32>)>,
    /// Boxes that go to global memory, and the threads that issue them.
    pub(in crate::prove) boxes: Vec<SentBox>,
    pub(in crate::prove) issuers: Option<Mask>,
    /// The threads of the role that is being followed.
    pub(in crate::prove) role: Option<Mask>,
    /// Where all threads of the block meet.
    pub(in crate::prove) meetings: Vec<Meeting>,
    pub(in crate::prove) addresses: usize,
    /// The address of shared memory, in units of its alignment.
    pub(in crate::prove) shared: Sym,
    pub(in crate::prove) blocks: [Sym; 3],
    pub(in crate::prove) ranks: Option<Ranks>,
    pub(in crate::prove) extents: QuickMap<(usize, usize), Lin>,
    /// Addresses that were asked for being multiples of a power of two, with what is known of low bits and for which threads.
    pub(in crate::prove) multiples: QuickMap<MultipleOf, bool>,
    /// Where buffers of shared memory keep their elements.
    pub(in crate::prove) offsets: QuickMap<usize, Offsets>,
    /// Units of stages that copies fill and products read, by how they do.
    pub(in crate::prove) known_units: QuickMap<Vec<i64>, Rc<BTreeSet<i64>>>,
    /// High words of products: the factor that is not a number, the one that is, and the bits of a word.
    pub(in crate::prove) high_products: QuickMap<Sym, (Lin, u64, u32)>,
    /// Values that were made of data.
    pub(in crate::prove) data: u32,
    /// Statements about data that all threads have alike, by what they compare, and as what.
    pub(in crate::prove) opaque: QuickMap<(Cmp, Type, Datum, Datum), u32>,
    /// The line of the author's program that is being followed.
    pub(in crate::prove) line: Option<Line>,
    /// Some threads may have left the kernel.
    pub(in crate::prove) left: bool,
    /// Branches on which threads differ, inside of each other.
    pub(in crate::prove) divergent: u32,
    /// How many of them are outside of the innermost loop.
    pub(in crate::prove) divergent_outside: u32,
    /// Those of them that are not a matter of the thread's index: threads may leave out what is in them.
    pub(in crate::prove) undecided: u32,
    /// Those of these on which lanes of one warp may differ.
    pub(in crate::prove) torn: u32,
    /// Registers that may hold a value of an earlier iteration, with the statement under which they do.
    pub(in crate::prove) stale: Stale,
    /// What branches have decided on the way, but for those by the thread's index.
    pub(in crate::prove) path: Vec<Rc<Formula>>,
    /// What holds since threads have left the kernel.
    pub(in crate::prove) stays: Vec<Rc<Formula>>,
    /// What has happened on the way, so that paths can be told apart.
    pub(in crate::prove) iterations: Vec<Sym>,
    /// Their counters.
    pub(in crate::prove) counters: Vec<Reg>,
    pub(in crate::prove) walks: Vec<Walk>,
    /// Of loops that were gone through, by how many iterations they had: where they ended.
    pub(in crate::prove) ended: QuickMap<Sym, Rc<Formula>>,
    pub(in crate::prove) deals: Vec<Dealt>,
    /// What parameters are made of.
    pub(in crate::prove) params: Vec<Sym>,
    /// What the author states, and those of the statements that hold in all of the kernel.
    pub(in crate::prove) assumptions: Vec<Assumed>,
    pub(in crate::prove) assumed: Vec<Rc<Formula>>,
    /// Registers that have a value wherever the innermost loop was left so far.
    pub(in crate::prove) at_leave: Option<QuickSet<Reg>>,
}

/// What instructions are called that all 32 lanes of a warp must execute together.
fn of_whole_warps(inst: &Inst) -> Option<&'static str> {
    Some(match inst {
        Inst::Mma { .. } => "an mma.sync",
        Inst::LoadMatrix { .. } => "an ldmatrix",
        Inst::StoreMatrix { .. } => "an stmatrix",
        Inst::Shuffle { .. } => "a shuffle",
        _ => return None,
    })
}

/// Follows a kernel. An error comes with the line of the author's program that was followed, if it has lines.
pub(in crate::prove) fn execute(entry: &Entry) -> Result<Trace, (ProofError, Option<Line>)> {
    let mut machine = Machine::new(entry).map_err(|e| (e, None))?;
    let (threads, blocks, ranks) = (machine.threads, machine.blocks, machine.ranks);
    let followed = machine.nodes(&entry.nodes);
    followed.map_err(|e| (e, machine.line))?;
    machine.forget();
    let tilings = entry.tilings.iter();
    let tilings = tilings
        .map(|t| {
            let (index, extent) = (machine.evaluate(t.index), machine.evaluate(t.extent));
            (index, extent, t.tile)
        })
        .collect();
    let whole_axes = entry.whole_axes.iter();
    let whole_axes = whole_axes
        .map(|&(axis, count)| (machine.blocks[axis as usize], count as i64))
        .collect();
    let mut promises = machine.promises();
    promises.append(&mut machine.assumed);
    let mut used = QuickMap::default();
    for (number, buffer) in entry.buffers.iter().enumerate() {
        for (mode, extent) in buffer.extents.iter().enumerate() {
            let n = match extent {
                Extent::Fixed(n) => Lin::constant(*n),
                Extent::Value(e) | Extent::Padded { used: e, .. } => machine.evaluate(*e),
                Extent::Blocks(_) => continue,
            };
            used.insert((number, mode), n);
        }
    }
    Ok(Trace {
        threads,
        events: machine.events,
        accesses: machine.accesses,
        fetches: machine.fetches,
        global: machine.global,
        meetings: machine.meetings,
        boxes: machine.boxes,
        addresses: machine.addresses,
        blocks,
        ranks,
        used,
        promises,
        assumptions: machine.assumptions,
        symbols: machine.symbols,
        tilings,
        walks: machine.walks,
        deals: machine.deals,
        whole_axes,
        params: machine.params,
    })
}

impl<'a> Machine<'a> {
    /// A machine that has followed nothing.
    pub(in crate::prove) fn new(entry: &'a Entry) -> Result<Self, ProofError> {
        let threads = entry.block.iter().product::<u32>() as usize;
        let mut symbols = Symbols::default();
        let blocks = [0, 1, 2].map(|i: usize| {
            let most = i128::from(entry.grid_limit[i].saturating_sub(1));
            symbols.free(0, most, false)
        });
        let ranks = Ranks::of(entry, blocks, &mut symbols)?;
        let align = entry.shared.map_or(1, |s| i128::from(s.align));
        let limit = i128::from(last_shared_address(entry.cluster));
        let shared = symbols.free(0, limit / align, false);
        Ok(Machine {
            entry,
            threads,
            symbols,
            registers: Scoped::default(),
            expressions: Scoped::default(),
            facts: Facts {
                all: Vec::new(),
                active: Mask::all(threads),
            },
            events: Vec::new(),
            accesses: Vec::new(),
            fetches: Vec::new(),
            global: Vec::new(),
            loading: Vec::new(),
            boxes: Vec::new(),
            issuers: None,
            role: None,
            addresses: 0,
            meetings: Vec::new(),
            shared,
            blocks,
            ranks,
            extents: QuickMap::default(),
            multiples: QuickMap::default(),
            offsets: QuickMap::default(),
            known_units: QuickMap::default(),
            high_products: QuickMap::default(),
            data: 0,
            opaque: QuickMap::default(),
            line: None,
            left: false,
            divergent: 0,
            divergent_outside: 0,
            undecided: 0,
            torn: 0,
            stale: Scoped::default(),
            path: Vec::new(),
            stays: Vec::new(),
            iterations: Vec::new(),
            counters: Vec::new(),
            walks: Vec::new(),
            ended: QuickMap::default(),
            deals: Vec::new(),
            params: Vec::new(),
            assumptions: Vec::new(),
            assumed: Vec::new(),
            at_leave: None,
        })
    }
}

impl Machine<'_> {
    /// The index of this block along an axis.
    pub(in crate::prove) fn block(&self, axis: Axis) -> Lin {
        Lin::symbol(self.blocks[axis as usize])
    }

    /// The address of the kernel's shared memory.
    pub(in crate::prove) fn shared_base(&self) -> Lin {
        let align = self.entry.shared.map_or(1, |s| s.align);
        Lin::symbol(self.shared).scale(align.into())
    }

    pub(in crate::prove) fn nodes(&mut self, nodes: &[Node]) -> Result<(), ProofError> {
        for (i, node) in nodes.iter().enumerate() {
            match node {
                Node::Roles(_) if i + 1 < nodes.len() => {
                    return Err(ProofError::Undecided {
                        what: "what follows threads that have parted".to_owned(),
                    });
                }
                Node::Comment(Comment::Text(_)) => {}
                Node::Comment(Comment::Line(line)) => self.line = Some(*line),
                Node::Assume(stated) => self.assume(stated)?,
                Node::Inst(statement) => self.statement(statement)?,
                Node::If(branch) => self.branch(branch)?,
                Node::Loop(iterations) => self.iterations(iterations)?,
                Node::Roles(roles) => self.roles(roles)?,
                Node::Leave { when, uniform } => {
                    let f = self.guard(*when);
                    self.agreed(&f, *uniform, "leaving a loop")?;
                    // Under a branch in the loop that some threads take, they leave without the others.
                    if !f.is_uniform(&self.symbols) || self.divergent > self.divergent_outside {
                        return Err(ProofError::Undecided {
                            what: "a loop that threads leave in different iterations".to_owned(),
                        });
                    }
                    let when = self.symbols.by_cases(&f, self.threads);
                    self.events.push(Event::Leave(when));
                    self.registers_at_leave();
                    self.learn(&f.not());
                }
                Node::Exit { when, uniform } => {
                    let f = self.guard(*when);
                    self.agreed(&f, *uniform, "an exit")?;
                    if f.is_uniform(&self.symbols) && self.divergent == 0 {
                        let when = self.symbols.by_cases(&f, self.threads);
                        self.events.push(Event::Exit(when));
                    } else {
                        self.left = true;
                    }
                    self.stays.push(f.not());
                    self.learn(&f.not());
                }
            }
        }
        Ok(())
    }

    /// Threads part for good: each role is followed with its own threads.
    fn roles(&mut self, roles: &[RoleRegion]) -> Result<(), ProofError> {
        let refuse = |what: &str| {
            Err(ProofError::Undecided {
                what: what.to_owned(),
            })
        };
        if self.left || self.divergent > 0 || !self.facts.active.is_full() {
            return refuse("roles of threads of which some have left");
        }
        if !self.iterations.is_empty() {
            return refuse("roles inside of a loop");
        }
        if roles
            .last()
            .is_none_or(|r| r.end as usize != self.threads || r.is.is_some())
        {
            return refuse("threads without a role");
        }
        if roles.iter().any(|r| r.end % 32 != 0) {
            return refuse("a role that has a part of a warp");
        }
        // What every launch keeps to, which sizes of pipelines depend on.
        for promise in self.promises() {
            self.learn(&promise);
        }
        let facts = self.facts.clone();
        let outer = std::mem::take(&mut self.events);
        let mut all = Vec::new();
        let mut first = 0;
        for role in roles {
            let end = role.end as usize;
            if let Some(is) = role.is {
                let f = self.predicate(is);
                if (0..self.threads).any(|t| f.for_thread(t) != Some(t < end)) {
                    return Err(ProofError::Meaning {
                        register: crate::print::register(is),
                    });
                }
            }
            let marks = (
                self.registers.mark(),
                self.stale.mark(),
                self.expressions.mark(),
            );
            self.facts = facts.clone();
            self.facts.active = facts.active.keep(|t| (first..end).contains(&t));
            // Groups of copies are a thread's own.
            self.issuers = None;
            self.role = Some(self.facts.active);
            self.nodes(&role.body)?;
            all.push((self.facts.active, std::mem::take(&mut self.events)));
            self.registers.undo(marks.0);
            self.stale.undo(marks.1);
            self.expressions.undo(marks.2);
            self.registers.unmark();
            self.stale.unmark();
            self.expressions.unmark();
            first = end;
        }
        self.role = None;
        self.facts = facts;
        self.events = outer;
        self.events.push(Event::Roles(all));
        Ok(())
    }

    pub(in crate::prove) fn learn(&mut self, f: &Rc<Formula>) {
        self.facts = self.facts.with(f);
        self.facts.active = f.possible(self.facts.active);
    }

    pub(in crate::prove) fn agreed(
        &self,
        f: &Formula,
        uniform: bool,
        what: &str,
    ) -> Result<(), ProofError> {
        if uniform && !f.is_uniform(&self.symbols) {
            return Err(ProofError::Divergent {
                what: what.to_owned(),
            });
        }
        Ok(())
    }

    pub(in crate::prove) fn guard(&mut self, p: Pred) -> Rc<Formula> {
        let f = self.predicate(p.reg);
        if p.negated { f.not() } else { f }
    }

    pub(in crate::prove) fn predicate(&mut self, reg: Reg) -> Rc<Formula> {
        if let Some(Val::Pred(f)) = self.registers.get(&reg) {
            return Rc::clone(f);
        }
        let f = Rc::new(Formula::Opaque(self.symbols.opaque(), true));
        self.registers.insert(reg, Val::Pred(Rc::clone(&f)));
        f
    }

    fn branch(&mut self, b: &If) -> Result<(), ProofError> {
        if b.when != b.meant {
            return Err(ProofError::Meaning {
                register: crate::print::register(b.when.reg),
            });
        }
        let when = self.guard(b.when);
        self.agreed(&when, b.uniform, "a branch")?;
        let uniform = when.is_uniform(&self.symbols);
        let facts = self.facts.clone();
        let outer = std::mem::take(&mut self.events);
        let mut sides = Vec::new();
        let left = self.left;
        let mut any_left = left;
        self.divergent += u32::from(!uniform);
        let by_index = (0..self.threads).all(|t| when.for_thread(t).is_some());
        self.undecided += u32::from(!uniform && !by_index);
        let torn = !uniform && !by_index && !when.is_alike_in_warps(&self.symbols, self.threads);
        self.torn += u32::from(torn);
        let marks = (
            self.registers.mark(),
            self.stale.mark(),
            self.expressions.mark(),
        );
        let stays = self.stays.clone();
        let mut any_stays = stays.clone();
        for (f, nodes) in [(Rc::clone(&when), &b.then), (when.not(), &b.otherwise)] {
            self.facts = facts.clone();
            self.left = left;
            self.learn(&f);
            self.stays.clone_from(&stays);
            if !by_index {
                self.path.push(Rc::clone(&f));
            }
            if *f != Formula::False {
                self.nodes(nodes)?;
            }
            if !by_index {
                self.path.pop();
            }
            // Who leaves on one side only leaves under its condition; what follows is then not known to be done by all.
            any_stays.extend(self.stays.drain(stays.len()..));
            any_left |= self.left;
            self.expressions.undo(marks.2);
            sides.push((
                std::mem::take(&mut self.events),
                self.registers.undo(marks.0),
                self.stale.undo(marks.1),
            ));
        }
        self.registers.unmark();
        self.stale.unmark();
        self.expressions.unmark();
        self.divergent -= u32::from(!uniform);
        self.undecided -= u32::from(!uniform && !by_index);
        self.torn -= u32::from(torn);
        self.stays = any_stays;
        self.left = any_left;
        self.facts = facts;
        let (other, registers_other, stale_other) = sides.pop().unwrap_or_default();
        let (then, registers, stale) = sides.pop().unwrap_or_default();
        self.merge_registers(&when, registers, registers_other);
        self.merge_stale(&when, &stale, &stale_other);
        self.events = outer;
        if uniform && *when != Formula::True && *when != Formula::False {
            if same(&then, &other) {
                self.events.extend(then);
            } else {
                let when = self.symbols.by_cases(&when, self.threads);
                self.events.push(Event::If(when, then, other));
            }
        } else {
            // Each thread's part of both sides, one after the other.
            self.events.extend(then);
            self.events.extend(other);
        }
        Ok(())
    }

    /// What the two sides of a branch made of the registers.
    fn merge_registers(
        &mut self,
        when: &Rc<Formula>,
        mut then: QuickMap<Reg, Option<Val>>,
        mut otherwise: QuickMap<Reg, Option<Val>>,
    ) {
        let changed: QuickSet<Reg> = then.keys().chain(otherwise.keys()).copied().collect();
        let mut changed: Vec<Reg> = changed.into_iter().collect();
        let not = when.not();
        // Symbols are made on the way: in the same order whenever the same kernel is proven.
        changed.sort_unstable_by_key(|r| (r.class, r.id));
        for reg in changed {
            let before = self.registers.get(&reg).cloned();
            let a = then.remove(&reg).unwrap_or_else(|| before.clone());
            let b = otherwise.remove(&reg).unwrap_or(before);
            let value = match (a, b) {
                (a, _) if **when == Formula::True => match a {
                    Some(a) => a,
                    None => continue,
                },
                (_, b) if **when == Formula::False => match b {
                    Some(b) => b,
                    None => continue,
                },
                (Some(a), Some(b)) if a == b => a,
                (Some(a), Some(b)) => self.joined([when, &not], a, b),
                (Some(a), None) => defined_where(when, a),
                (None, Some(b)) => defined_where(&not, b),
                (None, None) => {
                    self.registers.remove(&reg);
                    continue;
                }
            };
            self.registers.insert(reg, value);
        }
    }

    /// Registers that may be of an earlier iteration behind a branch: where the side that was taken leaves them so.
    fn merge_stale(
        &mut self,
        when: &Rc<Formula>,
        then: &QuickMap<Reg, Option<Rc<Formula>>>,
        otherwise: &QuickMap<Reg, Option<Rc<Formula>>>,
    ) {
        let (fresh, not) = (Rc::new(Formula::False), when.not());
        let changed: QuickSet<Reg> = then.keys().chain(otherwise.keys()).copied().collect();
        for reg in changed {
            let before = self.stale.get(&reg).cloned();
            let of = |side: &QuickMap<Reg, Option<Rc<Formula>>>| {
                let after = side.get(&reg).unwrap_or(&before);
                after.clone().unwrap_or_else(|| Rc::clone(&fresh))
            };
            let (a, b) = (of(then), of(otherwise));
            let stale = if a == b {
                a
            } else {
                Formula::or(&Formula::and(when, &a), &Formula::and(&not, &b))
            };
            if *stale == Formula::False {
                self.stale.remove(&reg);
            } else {
                self.stale.insert(reg, stale);
            }
        }
    }

    /// What a register holds behind a branch, from what it holds on its sides.
    fn joined(&mut self, [when, not]: [&Rc<Formula>; 2], a: Val, b: Val) -> Val {
        let ((f, a), (g, b)) = (a.parts(), b.parts());
        let value = match (a, b) {
            (a, b) if a == b => a,
            (Val::Int(a), Val::Int(b)) => Val::Int(self.symbols.ite(when, &a, &b, self.threads)),
            (Val::Pred(a), Val::Pred(b)) => {
                let (a, b) = (Formula::and(when, &a), Formula::and(not, &b));
                Val::Pred(Formula::or(&a, &b))
            }
            _ => Val::Data(None),
        };
        if *f == Formula::True && *g == Formula::True {
            return value;
        }
        let (f, g) = (Formula::and(when, &f), Formula::and(not, &g));
        Val::Where(Formula::or(&f, &g), Box::new(value))
    }

    /// The register has a value here.
    fn has_value(&mut self, reg: Reg) -> bool {
        let known = match self.registers.get(&reg) {
            Some(Val::Where(f, value)) => {
                let holds = f.conjuncts().iter().all(|f| self.facts.all.contains(f));
                holds.then(|| (**value).clone())
            }
            Some(_) => return true,
            None => None,
        };
        let has = known.is_some();
        if let Some(value) = known {
            self.registers.insert(reg, value);
        }
        has
    }

    pub(in crate::prove) fn source(&mut self, src: Src) -> Lin {
        match src {
            Src::Reg(r) => self.integer(r),
            Src::Int(k) => Lin::constant(k),
            Src::F32(_) | Src::F64(_) => self.unknown(),
        }
    }

    pub(in crate::prove) fn operand(&mut self, v: Operand) -> Lin {
        match v {
            Operand::Imm(k) => Lin::constant(k),
            Operand::Reg(id, ty) => {
                let reg = Reg {
                    class: class_of(ty),
                    id,
                };
                self.integer(reg)
            }
        }
    }

    /// This place.
    fn here(&self) -> Meeting {
        Meeting {
            before: self.global.len(),
            path: self.path.clone(),
            iterations: self.iterations.clone(),
        }
    }

    /// Notes that all threads of the block meet here.
    pub(in crate::prove) fn block_meets(&mut self) {
        self.meetings.push(self.here());
    }

    /// A group of asynchronous copies is closed. It counts for a copy if it is closed wherever the copy is made.
    fn commit_loads(&mut self) {
        let here = self.here();
        for (load, age) in &mut self.loading {
            if here.comes_with(&self.global[*load]) {
                *age = Some(age.map_or(0, |age| age + 1));
            }
        }
    }

    /// All groups but the youngest are waited for.
    fn wait_for_loads(&mut self, pending: u32) {
        let here = self.here();
        let global = &mut self.global;
        self.loading.retain(|&(load, age)| {
            let arrived = age.is_some_and(|age| age >= pending);
            if arrived {
                global[load].arrives = Arrives::At(here.clone());
            }
            !arrived
        });
    }

    /// Whether all lanes of each warp that is here are: what instructions of whole warps need.
    fn whole_warps(&self) -> bool {
        let active = self.facts.active.list();
        let whole = |warp: &[bool]| {
            let same = warp.iter().all(|&a| a == warp[0]);
            same && (warp.len() == 32 || !warp[0])
        };
        self.torn == 0 && !self.left && active.chunks(32).all(whole)
    }

    fn statement(&mut self, s: &Statement) -> Result<(), ProofError> {
        if s.guard.is_none() {
            for reg in s.inst.results() {
                self.stale.remove(&reg);
            }
        }
        let guard = s.guard.map(|p| p.reg);
        for reg in s.inst.sources().into_iter().chain(guard) {
            if !self.has_value(reg) {
                return Err(ProofError::Register {
                    register: crate::print::register(reg),
                });
            }
        }
        if let Some(what) = of_whole_warps(&s.inst)
            && (s.guard.is_some() || !self.whole_warps())
        {
            return Err(ProofError::PartialWarp {
                what: what.to_owned(),
            });
        }
        match &s.inst {
            Inst::Barrier | Inst::WarpBarrier if s.guard.is_some() => Err(ProofError::Divergent {
                what: "a barrier under a guard".to_owned(),
            }),
            Inst::Barrier => {
                let all = self.facts.active.is_full();
                if self.divergent > 0 || self.left || !all {
                    return Err(ProofError::Divergent {
                        what: "a barrier".to_owned(),
                    });
                }
                self.events.push(Event::Barrier);
                self.block_meets();
                Ok(())
            }
            Inst::WarpBarrier => {
                if self.left || (self.divergent > 0 && !self.whole_warps()) {
                    return Err(ProofError::Divergent {
                        what: "a barrier of the warp".to_owned(),
                    });
                }
                if self.divergent == 0 {
                    self.events.push(Event::WarpBarrier);
                    if self.threads <= 32 {
                        self.block_meets();
                    }
                } else if self.undecided == 0 {
                    self.events.push(Event::WarpsMeet(self.facts.active));
                }
                // Which warps meet is not known elsewhere: what they do is not ordered by it.
                Ok(())
            }
            Inst::CommitGroup | Inst::WaitGroup { .. } | Inst::WaitAll if self.divergent > 0 => {
                Err(ProofError::Divergent {
                    what: "a group of asynchronous copies".to_owned(),
                })
            }
            Inst::CommitGroup => {
                self.commit_loads();
                self.events.push(Event::Commit);
                Ok(())
            }
            Inst::WaitGroup { pending } => {
                self.wait_for_loads(*pending);
                self.events.push(Event::Wait(*pending));
                Ok(())
            }
            Inst::WaitAll => {
                self.commit_loads();
                self.wait_for_loads(0);
                self.events.push(Event::Commit);
                self.events.push(Event::Wait(0));
                Ok(())
            }
            Inst::Load { .. }
            | Inst::Store { .. }
            | Inst::StoreMatrix { .. }
            | Inst::CopyAsync { .. }
            | Inst::LoadMatrix { .. } => self.touch(s),
            Inst::Hopper(inst) => self.hopper(s, inst),
            inst => {
                self.compute(inst);
                self.as_meant(inst)?;
                if s.guard.is_some() {
                    // Some threads keep what they had.
                    for to in inst.results() {
                        self.registers.insert(to, Val::Data(None));
                    }
                }
                Ok(())
            }
        }
    }
}

/// What holds a value on one side of a branch only.
fn defined_where(when: &Rc<Formula>, value: Val) -> Val {
    let (f, value) = value.parts();
    Val::Where(Formula::and(when, &f), Box::new(value))
}

/// Whether two sides of a branch do the same in shared memory.
fn same(a: &[Event], b: &[Event]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Event::Access(a), Event::Access(b)) => a.same_effect(b),
            (Event::Barrier, Event::Barrier)
            | (Event::WarpBarrier, Event::WarpBarrier)
            | (Event::Commit, Event::Commit) => true,
            (Event::Wait(a), Event::Wait(b)) => a == b,
            _ => false,
        })
}
