//! Registers of `wgmma`, accumulators and fragments: not touched while products that write or read them are in flight, and fenced after they were.
//!
//! ```text
//! mov d, 0          dirty: the next product needs a fence
//! wgmma.fence       clean
//! wgmma d           in flight, of the open group
//! commit            in flight, of the youngest group
//! wait_group 0      complete
//! add x, d, …       allowed; the next product needs a fence again
//! ```
//!
//! Sums that were begun are not lost, and none counts twice: a product begins new sums where the ones before were read, and adds to sums where they were
//! not.
//!
//! The state is followed through branches and loops until it repeats; where paths meet, what is in flight or dirty on one of them is.

use std::collections::BTreeSet;

use crate::ir::{Entry, Hopper, Inst, Node, Reg};
use crate::prove::ProofError;

/// Groups of products that may be in flight: more than kernels have a use for.
const GROUPS: usize = 16;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct State {
    /// Registers touched since the last fence; none before the first fence, where all count as touched.
    dirty: Option<BTreeSet<Reg>>,
    /// Accumulators and fragments of products of each group, the youngest, still open one first.
    groups: Vec<BTreeSet<Reg>>,
    /// Accumulators with sums that nothing has read.
    unread: BTreeSet<Reg>,
    /// Accumulators with sums that something has read.
    read: BTreeSet<Reg>,
}

/// Whether the kernel has such products at all, and keeps to the rules.
pub(in crate::prove) fn settled(entry: &Entry) -> Result<(), ProofError> {
    // Only a kernel with pipelines between roles has them.
    if entry.rings.is_empty() {
        return Ok(());
    }
    nodes(&entry.nodes, State::default()).map(|_| ())
}

impl State {
    fn in_flight(&self, reg: Reg) -> bool {
        self.groups.iter().any(|group| group.contains(&reg))
    }

    /// What holds where two paths meet.
    fn joined(mut self, other: &Self) -> Self {
        self.dirty = match (self.dirty, &other.dirty) {
            (Some(a), Some(b)) => Some(a.union(b).copied().collect()),
            _ => None,
        };
        for (i, group) in other.groups.iter().enumerate() {
            match self.groups.get_mut(i) {
                Some(own) => own.extend(group),
                None => self.groups.push(group.clone()),
            }
        }
        self.unread.extend(&other.unread);
        self.read.extend(&other.read);
        self
    }
}

fn nodes(all: &[Node], mut state: State) -> Result<State, ProofError> {
    for node in all {
        state = match node {
            Node::Inst(s) => {
                if let Some(p) = s.guard {
                    touched(&mut state, p.reg)?;
                }
                instruction(&s.inst, state)?
            }
            Node::If(b) => {
                touched(&mut state, b.when.reg)?;
                let then = nodes(&b.then, state.clone())?;
                then.joined(&nodes(&b.otherwise, state)?)
            }
            Node::Loop(l) => {
                let mut at_top = nodes(&l.entry, state)?;
                loop {
                    let next = at_top.clone().joined(&nodes(&l.body, at_top.clone())?);
                    if next == at_top {
                        break at_top;
                    }
                    // Each iteration closes a group that no iteration waits for.
                    if let Some(&register) = next.groups.iter().skip(GROUPS).flatten().next() {
                        return Err(refused(register));
                    }
                    at_top = next;
                }
            }
            Node::Roles(roles) => {
                for role in roles {
                    let end = nodes(&role.body, state.clone())?;
                    if let Some(&register) = end.groups.iter().flatten().next() {
                        return Err(refused(register));
                    }
                }
                state
            }
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => state,
        };
    }
    Ok(state)
}

fn instruction(inst: &Inst, mut state: State) -> Result<State, ProofError> {
    let Inst::Hopper(hopper) = inst else {
        for reg in inst.sources() {
            touched(&mut state, reg)?;
            if state.unread.remove(&reg) {
                state.read.insert(reg);
            }
        }
        for reg in inst.results() {
            touched(&mut state, reg)?;
            state.unread.remove(&reg);
            state.read.remove(&reg);
        }
        return Ok(state);
    };
    match &**hopper {
        Hopper::WgmmaFence => state.dirty = Some(BTreeSet::new()),
        Hopper::Wgmma {
            d,
            a,
            b,
            add,
            begins,
            ..
        } => {
            let matrices = a.matrix().into_iter().chain([b]);
            for reg in matrices.map(|matrix| matrix.low).chain([*add]) {
                touched(&mut state, reg)?;
            }
            // Products in flight add to the same sums in order; all else about their registers waits.
            let sums = |reg: &Reg| state.unread.contains(reg);
            let of_a = a
                .registers()
                .iter()
                .find(|reg| d.contains(reg) || sums(reg));
            let of_d = d.iter().find(|reg| state.in_flight(**reg) && !sums(reg));
            if let Some(&register) = of_a.or(of_d) {
                return Err(refused(register));
            }
            let clean = |reg: &&Reg| {
                state
                    .dirty
                    .as_ref()
                    .is_some_and(|dirty| !dirty.contains(reg))
            };
            let mut registers = d.iter().chain(a.registers());
            if let Some(&register) = registers.find(|reg| !clean(reg)) {
                return Err(ProofError::Fence {
                    register: crate::print::register(register),
                });
            }
            for reg in d {
                if *begins && state.unread.contains(reg) {
                    let register = crate::print::register(*reg);
                    return Err(ProofError::Lost { register });
                }
                if !*begins && state.read.contains(reg) {
                    let register = crate::print::register(*reg);
                    return Err(ProofError::Twice { register });
                }
                state.read.remove(reg);
                state.unread.insert(*reg);
            }
            if state.groups.is_empty() {
                state.groups.push(BTreeSet::new());
            }
            state.groups[0].extend(d.iter().chain(a.registers()));
        }
        Hopper::WgmmaCommit => state.groups.insert(0, BTreeSet::new()),
        // The open group is not committed, and no wait counts it.
        Hopper::WgmmaWait { pending } => state.groups.truncate(*pending as usize + 1),
        _ => {
            for reg in inst.sources().into_iter().chain(inst.results()) {
                touched(&mut state, reg)?;
            }
        }
    }
    while state.groups.last().is_some_and(BTreeSet::is_empty) {
        state.groups.pop();
    }
    Ok(state)
}

/// A register is read or written by an instruction other than `wgmma`.
fn touched(state: &mut State, reg: Reg) -> Result<(), ProofError> {
    if state.in_flight(reg) {
        return Err(refused(reg));
    }
    if let Some(dirty) = &mut state.dirty {
        dirty.insert(reg);
    }
    Ok(())
}

fn refused(register: Reg) -> ProofError {
    ProofError::InFlight {
        register: crate::print::register(register),
    }
}
