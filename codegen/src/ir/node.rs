//! Structure: instructions, and the regions that they stand in.
//!
//! Control flow is nested, never a jump: a branch is an [`If`], a loop has one entry and is left at its end or by [`Node::Leave`], and a
//! kernel ends at its last instruction or by [`Node::Exit`]. So a reader of the representation, the prover first, follows it from top to
//! bottom.

use super::assumption::Assumption;
use super::inst::Statement;
use super::value::{Pred, Reg, Src};

/// What a region consists of.
///
/// ```
/// use layout_codegen::ir::{Kernel, Node};
///
/// let mut k = Kernel::new("k", 32);
/// k.comment("nothing to do");
/// assert_eq!(k.finish().nodes, [Node::Comment("nothing to do".to_owned())]);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Node {
    /// An instruction.
    Inst(Statement),
    /// A line for the reader of the text.
    Comment(String),
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

/// A branch: threads where `when` holds execute `then`, the others `otherwise`.
///
/// ```
/// use layout_codegen::ir::{Cmp, Kernel, Node};
///
/// let mut k = Kernel::new("k", 32);
/// let (thread, n) = (k.thread(), k.size("n", 100));
/// let inside = k.compare(Cmp::Lt, thread, n);
/// k.begin_if(inside, false);
/// k.comment("inside");
/// k.end_if();
/// let entry = k.finish();
/// let Some(Node::If(branch)) = entry.nodes.last() else { panic!("a branch") };
/// assert_eq!((branch.when, branch.then.len(), branch.otherwise.len()), (inside.into(), 1, 0));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct If {
    /// The guard.
    pub when: Pred,
    /// All threads of the block agree.
    pub uniform: bool,
    /// Where the guard holds.
    pub then: Vec<Node>,
    /// Where it does not.
    pub otherwise: Vec<Node>,
    /// What the text calls the other side, and the end.
    pub names: [&'static str; 2],
    /// The guard that the author asked for.
    pub meant: Pred,
}

/// What one role of a block does: the threads from the end of the role before it to its own end.
///
/// ```
/// use layout_codegen::ir::{Kernel, Node};
///
/// let mut k = Kernel::new("k", 256);
/// k.begin_role("first", 128);
/// k.comment("one warpgroup");
/// k.begin_role("second", 256);
/// k.comment("the other");
/// k.end_roles();
/// let entry = k.finish();
/// let Some(Node::Roles(roles)) = entry.nodes.last() else { panic!("roles") };
/// assert_eq!((roles[0].name, roles[1].end, roles[1].is), ("first", 256, None));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct RoleRegion {
    /// Its name.
    pub name: &'static str,
    /// The thread behind its last one: a multiple of 128.
    pub end: u32,
    /// The predicate that a thread is in this role or one before; none for the last role.
    pub is: Option<Reg>,
    /// What it does.
    pub body: Vec<Node>,
}

/// A loop. Its counter is set to `start`, and grows by `step` at the end of each turn.
///
/// ```
/// use layout_codegen::ir::{Kernel, Node};
///
/// let mut k = Kernel::new("k", 32);
/// let n = k.size("n", 100);
/// let turn = k.open_loop("i", 0, 8, 100);
/// k.close_loop(&turn, n);
/// let entry = k.finish();
/// let Some(Node::Loop(turns)) = entry.nodes.last() else { panic!("a loop") };
/// assert_eq!((turns.name.as_str(), turns.step, turns.most), ("i", 8, 100));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Loop {
    /// Its name, for the reader of the text.
    pub name: String,
    /// What the text calls the place behind it; none for its name with `_end`.
    pub behind: Option<&'static str>,
    /// The counter.
    pub counter: Reg,
    /// Its first value.
    pub start: Src,
    /// What it grows by.
    pub step: i64,
    /// Its greatest value in a turn: the prover shows that it is.
    pub most: i64,
    /// Once, before the first turn: the initial values of what the loop carries.
    pub entry: Vec<Node>,
    /// Each turn.
    pub body: Vec<Node>,
    /// How it ends.
    pub end: LoopEnd,
    /// How the author counts.
    pub meant: Counts,
}

/// How a loop counts, as its author asked for it: the prover holds the loop against it.
///
/// ```
/// use layout_codegen::ir::{Kernel, Node};
///
/// let mut k = Kernel::new("k", 32);
/// let n = k.size("n", 100);
/// let turn = k.open_loop("i", 0, 8, 100);
/// k.close_loop(&turn, n);
/// let entry = k.finish();
/// let Some(Node::Loop(turns)) = entry.nodes.last() else { panic!("a loop") };
/// assert_eq!((turns.meant.step, turns.meant.limit.is_some()), (8, true));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counts {
    /// The counter's first value.
    pub start: Src,
    /// What it grows by.
    pub step: i64,
    /// What it stays below, if that ends the loop.
    pub limit: Option<Src>,
}

/// How a loop ends.
///
/// ```
/// use layout_codegen::ir::{Cmp, Kernel, LoopEnd, Node};
///
/// let mut k = Kernel::new("k", 32);
/// let n = k.size("n", 100);
/// let turn = k.open_loop("i", 0, 1, 100);
/// let last = k.compare(Cmp::Ge, turn.counter, n);
/// k.leave_loop(last, true);
/// k.close_endless_loop(&turn, "counted");
/// let entry = k.finish();
/// let Some(Node::Loop(turns)) = entry.nodes.last() else { panic!("a loop") };
/// assert_eq!(turns.end, LoopEnd::Left);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LoopEnd {
    /// It turns while the counter is below the limit; not at all if it is not at first.
    Below {
        /// The limit.
        limit: Src,
        /// The predicate that there is no first turn.
        none: Reg,
        /// The predicate of another turn.
        again: Reg,
    },
    /// It turns at least once, and again while a predicate that the body computes holds.
    While {
        /// The predicate.
        again: Reg,
    },
    /// Only [`Node::Leave`] ends it.
    Left,
}
