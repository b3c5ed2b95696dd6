//! Registers with a meaning: predicates and chosen values that were made from index expressions.
//!
//! The instruction that makes such a register is compared with its meaning (`Machine::as_meant`). A copy or another operation in its place would be compared with nothing, so the last
//! instruction that makes the register must be one that is compared.

use std::collections::BTreeMap;

use crate::ir::{Entry, Inst, Meaning, Node, Reg};
use crate::prove::ProofError;

/// Each register with a meaning is made by an instruction that is compared with it.
pub(in crate::prove) fn kept(entry: &Entry) -> Result<(), ProofError> {
    let mut last = BTreeMap::new();
    each(&entry.nodes, &mut |inst| {
        last.extend(inst.results().into_iter().map(|to| (to, inst)));
    });
    for (to, inst) in last {
        let compared = match entry.meanings.get(&to) {
            None => true,
            Some(Meaning::Compare { .. }) => matches!(inst, Inst::Compare { .. }),
            Some(Meaning::Logic { .. }) => matches!(inst, Inst::Logic { .. }),
            Some(Meaning::Select { .. } | Meaning::Inside { .. }) => {
                matches!(inst, Inst::Select { .. })
            }
            Some(Meaning::Extreme { .. } | Meaning::Divided { .. }) => {
                matches!(inst, Inst::Binary { .. })
            }
        };
        if !compared {
            return Err(meant(to));
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
pub(in crate::prove) fn each<'n>(nodes: &'n [Node], see: &mut impl FnMut(&'n Inst)) {
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
