//! Values that are computed anew behind a loop of products, so that they occupy no register in it.
//!
//! A compiler computes what depends on the thread once, before the loop, and keeps it for what comes after: addresses, distances to the edges,
//! some twelve registers of `dgemm-4x4`. On a GPU of AMD each register costs wavefronts. So behind the loop a block begins in which the values that
//! are still needed are declared again, under the same names, from a thread index that `KEEP` hides from the compiler:
//!
//! ```text
//! const uint thread = (uint)get_local_id(0);
//! const uint r48 = (thread << 4) & 496u;
//! for (…) { products }
//! {
//!     uint thread = (uint)get_local_id(0);
//!     KEEP1(thread);
//!     const uint r48 = (thread << 4) & 496u;
//!     …
//! }
//! ```
//!
//! The same happens in each iteration of a loop of products that follows, and behind its barriers: it takes what the first loop leaves, a few iterations at most.
//! Elsewhere `KEEP1` is nothing, and a compiler sees the same value twice.

use std::collections::BTreeSet;

use super::expression::bare;
use crate::ir::{Loop, LoopEnd, Node, Reg, Src, Statement};

/// A value of the kernel's outermost region that threads do not share.
struct Constant {
    name: String,
    /// Its declaration.
    line: String,
    /// The names in its value.
    words: BTreeSet<String>,
    /// It is the thread's index.
    is_thread: bool,
}

/// The values that differ between threads, in order.
#[derive(Default)]
pub(super) struct Anew {
    constants: Vec<Constant>,
}

impl Anew {
    /// Notes a constant with its declaration, if threads do not share it.
    pub(super) fn note(&mut self, name: &str, value: &str, line: String) {
        let words: BTreeSet<String> = words(value).map(str::to_owned).collect();
        let is_thread = words.contains("get_local_id");
        if is_thread || self.constants.iter().any(|c| words.contains(&c.name)) {
            self.constants.push(Constant {
                name: name.to_owned(),
                line,
                words,
                is_thread,
            });
        }
    }

    /// The declarations of what these names need, the thread's index hidden; nothing if they need none.
    pub(super) fn lines(&self, mut needed: BTreeSet<String>) -> Vec<String> {
        for c in self.constants.iter().rev() {
            if needed.contains(&c.name) {
                needed.extend(c.words.iter().cloned());
            }
        }
        let of = self.constants.iter().filter(|c| needed.contains(&c.name));
        of.flat_map(|c| match c.line.strip_prefix("const ") {
            Some(line) if c.is_thread => vec![line.to_owned(), format!("KEEP1({});", c.name)],
            _ => vec![c.line.clone()],
        })
        .collect()
    }
}

/// The names in an expression.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let within = |c: char| c.is_ascii_alphanumeric() || c == '_';
    bare(text)
        .split(move |c| !within(c))
        .filter(|w| !w.is_empty())
}

/// The registers that nodes mention.
pub(super) fn mentioned(nodes: &[Node], all: &mut BTreeSet<Reg>) {
    for node in nodes {
        match node {
            Node::Inst(s) => statement(s, all),
            Node::If(b) => {
                all.insert(b.when.reg);
                mentioned(&b.then, all);
                mentioned(&b.otherwise, all);
            }
            Node::Loop(l) => iterations(l, all),
            Node::Leave { when, .. } | Node::Exit { when, .. } => {
                all.insert(when.reg);
            }
            // The printer refuses roles.
            Node::Roles(_) | Node::Comment(_) | Node::Assume(_) => {}
        }
    }
}

fn statement(s: &Statement, all: &mut BTreeSet<Reg>) {
    all.extend(s.inst.sources());
    all.extend(s.guard.map(|g| g.reg));
}

fn iterations(l: &Loop, all: &mut BTreeSet<Reg>) {
    let limit = match l.end {
        LoopEnd::Below { limit, .. } => Some(limit),
        LoopEnd::While { .. } | LoopEnd::Left => None,
    };
    for src in [Some(l.start), limit].into_iter().flatten() {
        if let Src::Reg(r) = src {
            all.insert(r);
        }
    }
    mentioned(&l.entry, all);
    mentioned(&l.body, all);
}

/// Whether every iteration of a loop does the same: no branch, and no instruction with a guard.
pub(super) fn is_straight(body: &[Node]) -> bool {
    body.iter().all(|node| match node {
        Node::Inst(s) => s.guard.is_none(),
        Node::Comment(_) | Node::Assume(_) => true,
        Node::Roles(_) | Node::If(_) | Node::Loop(_) | Node::Leave { .. } | Node::Exit { .. } => {
            false
        }
    })
}
