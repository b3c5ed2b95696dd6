//! Structure: instructions, and the regions that they stand in.
//!
//! Control flow is nested, never a jump: a branch is an [`If`], a loop has one entry and is left at its end or by [`Node::Leave`], and a
//! kernel ends at its last instruction or by [`Node::Exit`]. So a reader of the representation, the prover first, follows it from top to
//! bottom.

use super::assumption::Assumption;
use super::inst::Statement;
use super::value::{Pred, Reg, Src};

/// What a region consists of.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Node {
    /// An instruction.
    Inst(Statement),
    /// No instruction: for readers of the text and of messages.
    Comment(Comment),
    /// What the author takes as a fact from here on.
    Assume(Box<Assumption>),
    /// A branch.
    If(Box<If>),
    /// A loop.
    Loop(Box<Loop>),
    /// Threads part, each role with a region of its own, to the end of the kernel.
    Roles(Vec<RoleRegion>),
    /// Leaves the innermost loop where the guard holds.
    Leave {
        /// The guard.
        when: Pred,
        /// All threads of the block agree.
        uniform: bool,
    },
    /// Ends the kernel for threads where the guard holds.
    Exit {
        /// The guard.
        when: Pred,
        /// All threads of the block agree.
        uniform: bool,
    },
}

/// Nodes without the lines of the author's program, for a printer that arranges neighbours.
pub(crate) fn without_lines(nodes: &[Node]) -> Vec<Node> {
    let kept = nodes
        .iter()
        .filter(|node| !matches!(node, Node::Comment(Comment::Line(_))));
    let kept = kept.cloned().map(|mut node| {
        match &mut node {
            Node::If(branch) => {
                branch.then = without_lines(&branch.then);
                branch.otherwise = without_lines(&branch.otherwise);
            }
            Node::Loop(repeated) => {
                repeated.entry = without_lines(&repeated.entry);
                repeated.body = without_lines(&repeated.body);
            }
            Node::Roles(roles) => {
                for role in roles {
                    role.body = without_lines(&role.body);
                }
            }
            Node::Inst(_)
            | Node::Comment(_)
            | Node::Assume(_)
            | Node::Leave { .. }
            | Node::Exit { .. } => {}
        }
        node
    });
    kept.collect()
}

/// What readers of the text and of messages are told.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Comment {
    /// A line of the text.
    Text(String),
    /// The line of the author's program that emits what follows.
    Line(Line),
}

/// A line of the author's program.
pub(crate) type Line = &'static std::panic::Location<'static>;

/// A branch: threads where `when` holds execute `then`, the others `otherwise`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct If {
    /// The guard.
    pub(crate) when: Pred,
    /// All threads of the block agree.
    pub(crate) uniform: bool,
    /// Where the guard holds.
    pub(crate) then: Vec<Node>,
    /// Where it does not.
    pub(crate) otherwise: Vec<Node>,
    /// What the text calls the other side, and the end.
    pub(crate) names: [&'static str; 2],
    /// The guard that the author asked for.
    pub(crate) meant: Pred,
}

/// What one role of a block does: the threads from the end of the role before it to its own end.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RoleRegion {
    /// Its name.
    pub(crate) name: String,
    /// The thread behind its last one: a multiple of 32.
    pub(crate) end: u32,
    /// The predicate that a thread is in this role or one before; none for the last role.
    pub(crate) is: Option<Reg>,
    /// What it does.
    pub(crate) body: Vec<Node>,
}

/// A loop. Its counter is set to `start`, and grows by `step` at the end of each iteration.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Loop {
    /// Its name, for the reader of the text.
    pub(crate) name: String,
    /// What the text calls the place behind it; none for its name with `_end`.
    pub(crate) behind: Option<&'static str>,
    /// The counter.
    pub(crate) counter: Reg,
    /// Its first value.
    pub(crate) start: Src,
    /// What it grows by.
    pub(crate) step: i64,
    /// Its greatest value in an iteration: the prover shows that it is.
    pub(crate) most: i64,
    /// Once, before the first iteration: the initial values of what the loop carries.
    pub(crate) entry: Vec<Node>,
    /// Each iteration.
    pub(crate) body: Vec<Node>,
    /// How it ends.
    pub(crate) end: LoopEnd,
    /// How the author counts.
    pub(crate) meant: Counts,
}

/// How a loop counts, as its author asked for it: the prover holds the loop against it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Counts {
    /// The counter's first value.
    pub(crate) start: Src,
    /// What it grows by.
    pub(crate) step: i64,
    /// What it stays below, if that ends the loop.
    pub(crate) limit: Option<Src>,
}

/// How a loop ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum LoopEnd {
    /// It repeats while the counter is below the limit; not at all if it is not at first.
    Below {
        /// The limit.
        limit: Src,
        /// The predicate that there is no first iteration.
        none: Reg,
        /// The predicate of another iteration.
        again: Reg,
        /// All threads of the block agree on the limit.
        uniform: bool,
    },
    /// It runs at least once, and again while a predicate that the body computes holds.
    While {
        /// The predicate.
        again: Reg,
    },
    /// Only [`Node::Leave`] ends it.
    Left,
}
