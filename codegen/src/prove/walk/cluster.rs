//! Clusters: what holds of a block holds of each, whatever its rank.
//!
//! A block knows its rank as its index modulo the blocks of a cluster, so that one walk over the instructions, with the rank as a symbol, is a walk of all blocks:
//! what is the same whatever the rank is the same for all of them. The blocks of a cluster
//!
//! * leave early together: the conditions of exits do not depend on the rank;
//! * have as many iterations: nor do the numbers of iterations of the loops in which they use rings;
//! * meet before they use mbarriers of each other, and wait for what is on its way to them before they end, so that nothing is sent to a block that has
//!   ended (both in [`ring`](crate::prove::protocol::ring)).
//!
//! ```text
//! block b of clusters of 2       rank = b mod 2       first row of the cluster = 128·b − 128·(b mod 2)      the same for both
//! ```

use std::rc::Rc;

use crate::ir::{Axis, Entry};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::{Definition, Symbols};
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Event, Trace};
use crate::prove::walk::hopper::What;

/// The ranks of the blocks of a cluster.
#[derive(Clone, Copy, Debug)]
pub(in crate::prove) struct Ranks {
    /// The index of the block along the axis of the clusters.
    pub(in crate::prove) block: Sym,
    /// Its rank, if a value depends on it.
    rank: Sym,
    /// Blocks of a cluster.
    pub(in crate::prove) count: i64,
}

impl Ranks {
    /// The ranks of a kernel's blocks; none without clusters.
    pub(in crate::prove) fn of(
        entry: &Entry,
        blocks: [Sym; 3],
        symbols: &mut Symbols,
    ) -> Result<Option<Self>, ProofError> {
        if entry.cluster_blocks() == 1 {
            return Ok(None);
        }
        let along: Vec<usize> = (0..3).filter(|&axis| entry.cluster[axis] > 1).collect();
        let undecided = || ProofError::Undecided {
            what: format!(
                "clusters of {:?} blocks, which are not 2, 4, 8 or 16 along one axis",
                entry.cluster
            ),
        };
        let [axis] = along[..] else {
            return Err(undecided());
        };
        let (count, block) = (entry.cluster[axis], blocks[axis]);
        if !count.is_power_of_two() || count > 16 {
            return Err(undecided());
        }
        let rank = symbols.low(&Lin::symbol(block), count.trailing_zeros());
        let rank = rank.symbols().next().ok_or_else(undecided)?;
        Ok(Some(Self {
            block,
            rank,
            count: count.into(),
        }))
    }

    /// A value in the block of a rank, as far as it depends on the rank itself.
    pub(in crate::prove) fn at(self, x: &Lin, rank: i64) -> Lin {
        x.substitute(self.rank, &Lin::constant(rank)).unwrap_or(*x)
    }
}

/// What is the same in all blocks of a cluster.
pub(in crate::prove) struct Alike<'a> {
    pub(in crate::prove) symbols: &'a Symbols,
    ranks: Option<Ranks>,
    /// Numbers of iterations that may differ.
    iterations: Vec<Sym>,
}

impl<'a> Alike<'a> {
    pub(in crate::prove) fn new(trace: &'a Trace) -> Self {
        let mut alike = Self {
            symbols: &trace.symbols,
            ranks: trace.ranks,
            iterations: Vec::new(),
        };
        if alike.ranks.is_some() {
            alike.differing_iterations(&trace.events);
        }
        alike
    }

    /// Blocks of a cluster.
    pub(in crate::prove) fn blocks(&self) -> i64 {
        self.ranks.map_or(1, |ranks| ranks.count)
    }

    /// Loops that blocks may go round another number of times.
    fn differing_iterations(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::If(_, a, b) => {
                    self.differing_iterations(a);
                    self.differing_iterations(b);
                }
                Event::Roles(roles) => {
                    for (_, events) in roles {
                        self.differing_iterations(events);
                    }
                }
                Event::Loop(l) => {
                    if l.count.is_none_or(|count| !self.value(&count)) {
                        self.iterations.extend([l.iteration, l.trips]);
                    }
                    for iteration in &l.period {
                        self.differing_iterations(&iteration.events);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a value is the same in all blocks of a cluster.
    pub(in crate::prove) fn value(&self, x: &Lin) -> bool {
        let Some(ranks) = self.ranks else { return true };
        // The index and the rank grow together: their difference is the cluster's.
        let coefficient = |sym: Sym| {
            let own = Lin::symbol(sym);
            let known = x.terms.list();
            let of_own = own.terms.list();
            known
                .iter()
                .find(|(m, _)| *m == of_own[0].0)
                .map(|(_, c)| *c)
        };
        let x = match (coefficient(ranks.block), coefficient(ranks.rank)) {
            (Some(block), Some(rank)) if rank == block.scale(-1) => {
                let block = Lin::symbol(ranks.block).scale_each(block);
                x.sub(&block).sub(&Lin::symbol(ranks.rank).scale_each(rank))
            }
            _ => *x,
        };
        x.symbols().all(|sym| self.symbol(sym, ranks))
    }

    fn symbol(&self, sym: Sym, ranks: Ranks) -> bool {
        if sym == ranks.block || sym == ranks.rank || self.iterations.contains(&sym) {
            return false;
        }
        let info = self.symbols.info(sym);
        match &info.definition {
            // Of a parameter, another axis or iterations; not of what is known to differ, or is not known at all.
            Definition::Free(_) => {
                let mut of = self.symbols.origins(sym);
                !info.each && of.all(|origin| self.symbol(origin, ranks))
            }
            // The cluster's number.
            Definition::Shr(a, bits)
                if *a == Lin::symbol(ranks.block) && 1i64 << bits >= ranks.count =>
            {
                true
            }
            made => made.all(|x| self.value(x), |p| self.formula(p)),
        }
    }

    /// Whether a statement holds in all blocks of a cluster or in none.
    fn formula(&self, f: &Rc<Formula>) -> bool {
        match &**f {
            Formula::True | Formula::False => true,
            Formula::Ge(x) => self.value(x),
            Formula::And(a, b) | Formula::Or(a, b) => self.formula(a) && self.formula(b),
            // Of data that all threads of a block have alike, those of parameters.
            Formula::Opaque(id, each) | Formula::Not(id, each) => !each && self.symbols.lasts(*id),
        }
    }
}

/// The blocks of a cluster leave early together, and meet where all of their threads do.
pub(in crate::prove) fn kept(entry: &Entry, trace: &Trace) -> Result<(), ProofError> {
    let refused = |reason: &str| {
        Err(ProofError::Cluster {
            reason: reason.to_owned(),
        })
    };
    let alike = Alike::new(trace);
    let mut roles = None;
    for event in &trace.events {
        match event {
            Event::Exit(when) if alike.blocks() > 1 && !alike.formula(when) => {
                return refused(
                    "a block may leave while others of its cluster go on and wait for it",
                );
            }
            // Its condition counts in the branch alone, which blocks may take differently.
            event if alike.blocks() > 1 && leaves_inside(event) => {
                return refused("a block may leave from within a branch, a loop or a role");
            }
            Event::Roles(all) => roles = Some(all),
            event if !is_barrier(event) && meets(std::slice::from_ref(event)) => {
                return refused("a barrier of the cluster in a branch or a loop");
            }
            _ => {}
        }
    }
    if alike.blocks() == 1 {
        let any = |(_, events): &(_, Vec<Event>)| meets(events);
        if meets(&trace.events) || roles.is_some_and(|all| all.iter().any(any)) {
            return refused("a barrier of the cluster in a kernel without clusters");
        }
        return Ok(());
    }
    let whole =
        |&(axis, blocks): &(Axis, u64)| blocks.is_multiple_of(entry.cluster[axis as usize].into());
    if !entry.whole_axes.iter().all(whole) {
        return refused("a launch has no whole number of them along an axis");
    }
    if roles.is_some_and(|all| all.iter().any(|(_, events)| meets(events))) {
        return refused("a barrier of the cluster where roles have parted");
    }
    Ok(())
}

/// Whether threads leave the kernel somewhere inside an event.
fn leaves_inside(event: &Event) -> bool {
    let any = |events: &[Event]| {
        events
            .iter()
            .any(|e| matches!(e, Event::Exit(_)) || leaves_inside(e))
    };
    match event {
        Event::If(_, a, b) => any(a) || any(b),
        Event::Loop(l) => l.period.iter().any(|iteration| any(&iteration.events)),
        Event::Roles(roles) => roles.iter().any(|(_, events)| any(events)),
        _ => false,
    }
}

fn is_barrier(event: &Event) -> bool {
    matches!(event, Event::Piped(p) if matches!(p.what, What::ClusterMet))
}

/// Whether threads meet those of the cluster in some event, but for what roles do.
fn meets(events: &[Event]) -> bool {
    events.iter().any(|event| match event {
        Event::If(_, a, b) => meets(a) || meets(b),
        Event::Loop(l) => l.period.iter().any(|iteration| meets(&iteration.events)),
        event => is_barrier(event),
    })
}
