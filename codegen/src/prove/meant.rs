//! What a kernel declares of its registers, and no instruction shows.
//!
//! A predicate or a chosen value has a meaning, and the instruction that makes it is held against it (`Machine::as_meant`). A copy or another operation in that place would be held against
//! nothing, so the last instruction that makes such a register is one of those that are.
//!
//! Roles that set their registers (`setmaxnreg`) wait until the multiprocessor has as many. What no role leaves is never there:
//!
//! ```text
//! 384 threads begin with 65536 / 384 = 168 registers each, by eights
//! 256 of them set 232, 128 set 40      232·256 + 40·128 = 64512 of 65536
//! without the 40                       232·256 + 168·128 = 80896: the 256 wait forever
//! ```

use std::collections::BTreeMap;

use super::ProofError;
use crate::ir::{Entry, Hopper, Inst, Meaning, Node, Reg, RoleRegion};

/// 32-bit registers of a multiprocessor (CUDA C++ Programming Guide, technical specifications).
const REGISTERS: u32 = 65_536;

/// Each register with a meaning is made by an instruction that is held against it, and roles set registers that there are.
pub(super) fn declared(entry: &Entry) -> Result<(), ProofError> {
    let mut last = BTreeMap::new();
    each(&entry.nodes, &mut |inst| {
        last.extend(inst.results().into_iter().map(|to| (to, inst)));
    });
    for (to, inst) in last {
        let held = match entry.meanings.get(&to) {
            None => true,
            Some(Meaning::Compare { .. }) => matches!(inst, Inst::Compare { .. }),
            Some(Meaning::Logic { .. }) => matches!(inst, Inst::Logic { .. }),
            Some(Meaning::Select { .. } | Meaning::Inside { .. }) => {
                matches!(inst, Inst::Select { .. })
            }
            Some(Meaning::Extreme { .. }) => matches!(inst, Inst::Binary { .. }),
        };
        if !held {
            return Err(meant(to));
        }
    }
    for node in &entry.nodes {
        if let Node::Roles(roles) = node {
            registers(entry, roles)?;
        }
    }
    Ok(())
}

fn meant(to: Reg) -> ProofError {
    ProofError::Meaning {
        register: crate::print::register(to),
    }
}

/// Calls `see` with each instruction, in the order of the text.
fn each<'n>(nodes: &'n [Node], see: &mut impl FnMut(&'n Inst)) {
    for node in nodes {
        match node {
            Node::Inst(s) => see(&s.inst),
            Node::If(b) => {
                each(&b.then, see);
                each(&b.otherwise, see);
            }
            Node::Loop(l) => {
                each(&l.entry, see);
                each(&l.body, see);
            }
            Node::Roles(roles) => roles.iter().for_each(|role| each(&role.body, see)),
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => {}
        }
    }
}

/// The registers of all roles are those of the block's share of a multiprocessor.
fn registers(entry: &Entry, roles: &[RoleRegion]) -> Result<(), ProofError> {
    let share = REGISTERS / entry.min_blocks.unwrap_or(1).max(1);
    let threads: u32 = entry.block.iter().product();
    let launched = share / threads.max(1) / 8 * 8;
    let (mut begin, mut all, mut any) = (0, 0, false);
    for role in roles {
        let mut set = Vec::new();
        each(&role.body, &mut |inst| {
            if let Inst::Hopper(h) = inst
                && let Hopper::SetRegisters { count, .. } = **h
            {
                set.push(count);
            }
        });
        any |= !set.is_empty();
        let most = set.into_iter().max().unwrap_or(launched);
        all += u64::from(most) * u64::from(role.end.saturating_sub(begin));
        begin = role.end;
    }
    if any && all > share.into() {
        return Err(ProofError::Malformed {
            what: format!(
                "its roles have {all} registers, of {share} for a block: threads that set more wait for them forever; set fewer, or let other roles set fewer"
            ),
        });
    }
    Ok(())
}
