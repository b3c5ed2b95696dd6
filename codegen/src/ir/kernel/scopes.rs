//! Where values may be used, and what the author of a kernel did wrong.
//!
//! A value belongs to its kernel and to the loop body, branch or region that computed it. Methods of values return values, so that a wrong use is recorded and
//! [`Kernel::build`] reports the first one.
//!
//! ```text
//! scope 1          x = …                              x may be used anywhere below
//! ├─ scope 2       when(p) { y = … }                  y ends here: threads without p have no y
//! └─ scope 3       for i { z = …; x and z }           i and z end here
//! ```

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::{Kernel, Scope};
use crate::index::{Expr, PoolId};
use crate::ir::value::Reg;
use crate::ir::{Node, Statement};

/// Where the value in a register may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    kernel: PoolId,
    scope: u32,
    /// How often the register had been set: only those of fragments and variables are set again.
    version: u32,
}

/// The scopes that are open.
#[derive(Debug)]
pub(super) struct Open {
    scopes: Vec<u32>,
    last: u32,
    loops: Vec<OpenLoop>,
}

/// An open loop: its scope, and what values of outer scopes it has used that are held by registers which are set again.
#[derive(Debug)]
struct OpenLoop {
    scope: u32,
    outer: HashSet<Reg>,
}

impl Open {
    pub(super) fn new() -> Self {
        Self {
            scopes: vec![1],
            last: 1,
            loops: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self) {
        self.last += 1;
        self.scopes.push(self.last);
    }

    pub(super) fn enter_loop(&mut self) {
        self.enter();
        self.loops.push(OpenLoop {
            scope: self.last,
            outer: HashSet::new(),
        });
    }

    pub(super) fn leave(&mut self) {
        let left = self.scopes.pop();
        self.loops.pop_if(|l| Some(l.scope) == left);
    }

    fn here(&self) -> u32 {
        self.scopes.last().copied().unwrap_or(0)
    }
}

/// How many kernels are remembered by their names, for messages.
const REMEMBERED: usize = 256;

static NAMES: Mutex<VecDeque<(PoolId, String)>> = Mutex::new(VecDeque::new());

/// Remembers the name of a kernel.
pub(super) fn remember(kernel: PoolId, name: &str) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if names.len() == REMEMBERED {
        names.pop_front();
    }
    names.push_back((kernel, name.to_owned()));
}

/// How a message calls a kernel.
fn called(kernel: PoolId) -> String {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = names.iter().rev().find(|(id, _)| *id == kernel);
    known.map_or_else(
        || "another kernel".to_owned(),
        |(_, name)| format!("the kernel `{}`", name.escape_default()),
    )
}

/// All instructions of these nodes, inner ones too.
fn each_statement(nodes: &[Node], f: &mut impl FnMut(&Statement)) {
    for node in nodes {
        match node {
            Node::Inst(statement) => f(statement),
            Node::If(branch) => {
                each_statement(&branch.then, f);
                each_statement(&branch.otherwise, f);
            }
            Node::Loop(l) => {
                each_statement(&l.entry, f);
                each_statement(&l.body, f);
            }
            Node::Roles(roles) => {
                for role in roles {
                    each_statement(&role.body, f);
                }
            }
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => {}
        }
    }
}

impl Kernel {
    /// Records what the author did wrong; `build` reports the first of these.
    pub(crate) fn mistake(&mut self, what: impl Into<String>) {
        if self.mistakes.len() < 16 {
            let mut what = what.into();
            if let Some(line) = self.line {
                what = format!("{what} ({}:{})", line.file(), line.line());
            }
            self.mistakes.push(what);
        }
    }

    /// The first thing that the author did wrong.
    pub(crate) fn first_mistake(&self) -> Option<String> {
        let foreign = || {
            let of = called(self.pool.foreign()?);
            Some(self.foreign("an index expression", &of))
        };
        self.mistakes.first().cloned().or_else(foreign)
    }

    /// Records a mistake if something is of another kernel.
    pub(super) fn own(&mut self, of: PoolId, what: &str) {
        if of != self.pool.id() {
            let text = self.foreign(what, &called(of));
            self.mistake(text);
        }
    }

    /// Records a mistake if an instruction has a register that this kernel has not made.
    pub(super) fn own_registers(&mut self) {
        let made = |reg: &Reg| self.registers.get(&reg.class).is_some_and(|&n| reg.id < n);
        let mut others = false;
        let scopes = self.scopes.iter().flat_map(|s| [&s.top, &s.body]);
        for nodes in scopes {
            each_statement(nodes, &mut |s| {
                let guard = s.guard.map(|p| p.reg);
                let read = s.inst.sources().into_iter().chain(guard);
                others |= !read.chain(s.inst.results()).all(|reg| made(&reg));
            });
        }
        if others {
            let text = self.foreign("a register", "another kernel");
            self.mistake(text);
        }
    }

    fn foreign(&self, what: &str, of: &str) -> String {
        format!(
            "{what} of {of} is used in the kernel `{}`: a kernel uses its own values only",
            self.name.escape_default()
        )
    }

    /// Where the value that a register holds now may be used.
    pub(crate) fn origin(&self, register: Reg) -> Origin {
        Origin {
            version: self.versions.get(&register).copied().unwrap_or(0),
            ..self.here()
        }
    }

    /// Where what is made here may be used.
    pub(crate) fn here(&self) -> Origin {
        Origin {
            kernel: self.pool.id(),
            scope: self.open.here(),
            version: 0,
        }
    }

    /// Why something of an expression's kernel may not be used in this one, if so.
    pub(crate) fn elsewhere(&self, what: &str, of: Expr) -> Option<String> {
        (of.pool() != self.pool.id()).then(|| self.foreign(what, &called(of.pool())))
    }

    /// Why what was made there may not be used here, if so.
    pub(crate) fn out_of_reach(&self, what: &str, of: Origin) -> Option<String> {
        if of.kernel != self.pool.id() {
            return Some(self.foreign(what, &called(of.kernel)));
        }
        let ended = self.open.scopes.binary_search(&of.scope).is_err();
        ended.then(|| {
            format!(
                "{what} is used outside of the loop, branch or region that computed it: threads that did not run through it have none. Declare a variable or a \
                 fragment before it, and set that in it"
            )
        })
    }

    /// Whether a value may be used here; records a mistake if not.
    pub(crate) fn admits(&mut self, of: Origin, register: Reg) -> bool {
        if let Some(what) = self.out_of_reach("a value", of) {
            self.mistake(what);
            return false;
        }
        let version = self.versions.get(&register).copied().unwrap_or(0);
        if version != of.version {
            self.mistake(
                "a value of a fragment is used after the fragment was set again: take it from the fragment anew, or keep it in a variable (`Kernel::variable`)",
            );
            return false;
        }
        for l in self.open.loops.iter_mut().filter(|l| l.scope > of.scope) {
            l.outer.insert(register);
        }
        true
    }

    /// Notes that registers which values may have been taken from are set again here.
    pub(crate) fn sets(&mut self, registers: &[Reg]) {
        for &register in registers {
            *self.versions.entry(register).or_insert(0) += 1;
            if self.open.loops.iter().any(|l| l.outer.contains(&register)) {
                self.mistake(
                    "a loop sets a fragment of which it uses a value that was taken before the loop: take the value in the loop, or keep it in a variable \
                     (`Kernel::variable`)",
                );
            }
        }
    }

    /// Whether all threads of a block have the same value of an expression for certain: it is of parameters, block indices and counters of uniform loops.
    pub(crate) fn agrees(&self, e: Expr) -> bool {
        let names = self.pool.variables(e);
        names.iter().all(|name| self.uniform.contains(name))
    }

    /// Notes that a variable is uniform.
    pub(super) fn note_uniform(&mut self, variable: &str) {
        self.uniform.insert(variable.to_owned());
    }

    pub(super) fn push_scope(&mut self, scope: Scope) {
        self.scopes.push(scope);
        self.open.enter();
    }

    /// What a public function opens, it closes, whatever the author's `body` did: none if the kernel is no longer the one that was opened.
    pub(crate) fn around<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = (self.pool.id(), self.open.scopes.clone());
        let done = body(self);
        let same = before == (self.pool.id(), self.open.scopes.clone());
        if !same {
            self.mistake("a loop, branch or region ends in another kernel than it began in: do not exchange kernels inside of one");
        }
        (done, same)
    }
}
