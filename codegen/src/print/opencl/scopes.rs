//! Where each register is declared, and whether its declaration is its value.
//!
//! A register whose first mention in a region is a value that it always gets there is declared with it, in the innermost region that
//! holds all its mentions; any other one at the top of the kernel. So a value that one iteration of a loop leaves for the next is declared
//! outside of the loop.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Entry, If, Loop, LoopEnd, Node, Reg, Src, Statement};

/// A region: 0 is the kernel, the others in the order in which they begin.
pub(super) type Scope = usize;

/// What is known of a register.
struct Mentions {
    /// The region of the first mention.
    begins: Scope,
    /// How often it is used, and the region of the last use.
    uses: usize,
    used_in: Scope,
    /// The innermost region that holds all mentions.
    scope: Scope,
    /// The region of each value, in order, and whether it is always given there.
    values: usize,
    /// The first mention within each region on the way to it: whether it is a value that the region always gives.
    first: BTreeMap<Scope, bool>,
}

/// Where registers are declared.
pub(super) struct Declarations {
    /// Registers that are declared at the top of the kernel, without a value.
    pub(super) at_top: Vec<Reg>,
    /// Registers that are declared with their first value, with whether it is the only one.
    with_value: BTreeMap<Reg, bool>,
    /// Registers with one value that is used once, in the same iteration of every loop.
    used_once: BTreeSet<Reg>,
}

impl Declarations {
    pub(super) fn of(entry: &Entry) -> Self {
        let mut walk = Walk {
            parents: vec![0],
            iterations: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        walk.nodes(&entry.nodes, 0);
        let mut all = Self {
            at_top: Vec::new(),
            with_value: BTreeMap::new(),
            used_once: BTreeSet::new(),
        };
        for (reg, m) in &walk.known {
            if Walk::declared_with_value(m) {
                all.with_value.insert(*reg, m.values == 1);
            } else {
                all.at_top.push(*reg);
            }
            if m.values == 1 && m.uses == 1 && walk.same_iteration(m.begins, m.used_in) {
                all.used_once.insert(*reg);
            }
        }
        all
    }

    /// Whether a register keeps its only value.
    pub(super) fn is_constant(&self, reg: Reg) -> bool {
        self.with_value(reg) == Some(true)
    }

    /// Whether a register's only value may as well stand where it is used.
    pub(super) fn is_used_once(&self, reg: Reg) -> bool {
        self.is_constant(reg) && self.used_once.contains(&reg)
    }

    /// Whether the first value of a register declares it, and whether it is the only one.
    pub(super) fn with_value(&self, reg: Reg) -> Option<bool> {
        self.with_value.get(&reg).copied()
    }
}

struct Walk {
    parents: Vec<Scope>,
    /// Regions that are the bodies of loops.
    iterations: BTreeSet<Scope>,
    known: BTreeMap<Reg, Mentions>,
}

impl Walk {
    fn open(&mut self, parent: Scope) -> Scope {
        self.parents.push(parent);
        self.parents.len() - 1
    }

    /// Whether a region on the way from the innermost common one to the kernel begins with the value.
    fn declared_with_value(m: &Mentions) -> bool {
        m.first.get(&m.scope).copied().unwrap_or(false)
    }

    /// Whether `inner` is `outer`, or in it without a loop between.
    fn same_iteration(&self, outer: Scope, inner: Scope) -> bool {
        let way = self.way(inner);
        let until = way.iter().position(|&s| s == outer);
        until.is_some_and(|n| !way[..n].iter().any(|s| self.iterations.contains(s)))
    }

    /// The way from a region to the kernel.
    fn way(&self, mut scope: Scope) -> Vec<Scope> {
        let mut way = vec![scope];
        while scope != 0 {
            scope = self.parents[scope];
            way.push(scope);
        }
        way
    }

    fn mention(&mut self, reg: Reg, scope: Scope, value: bool, always: bool) {
        let way = self.way(scope);
        let known = self.known.entry(reg).or_insert_with(|| Mentions {
            scope,
            begins: scope,
            uses: 0,
            used_in: scope,
            values: 0,
            first: BTreeMap::new(),
        });
        if value {
            known.values += 1;
        } else {
            known.uses += 1;
            known.used_in = scope;
        }
        for (i, at) in way.iter().enumerate() {
            let direct = i == 0 && value && always;
            known.first.entry(*at).or_insert(direct);
        }
        let of: BTreeSet<Scope> = way.into_iter().collect();
        let mut common = known.scope;
        while !of.contains(&common) {
            common = self.parents[common];
        }
        known.scope = common;
    }

    fn source(&mut self, src: Src, scope: Scope) {
        if let Src::Reg(r) = src {
            self.mention(r, scope, false, false);
        }
    }

    fn nodes(&mut self, nodes: &[Node], scope: Scope) {
        for node in nodes {
            match node {
                Node::Inst(s) => self.statement(s, scope),
                // The printer refuses roles.
                Node::Roles(_) | Node::Comment(_) | Node::Assume(_) => {}
                Node::If(branch) => self.branches(branch, scope),
                Node::Loop(iterations) => self.iterations(iterations, scope),
                Node::Leave { when, .. } | Node::Exit { when, .. } => {
                    self.mention(when.reg, scope, false, false);
                }
            }
        }
    }

    fn statement(&mut self, s: &Statement, scope: Scope) {
        for r in s.inst.sources() {
            self.mention(r, scope, false, false);
        }
        if let Some(guard) = s.guard {
            self.mention(guard.reg, scope, false, false);
        }
        for r in s.inst.results() {
            self.mention(r, scope, true, s.guard.is_none());
        }
    }

    fn branches(&mut self, b: &If, scope: Scope) {
        self.mention(b.when.reg, scope, false, false);
        let then = self.open(scope);
        self.nodes(&b.then, then);
        let otherwise = self.open(scope);
        self.nodes(&b.otherwise, otherwise);
    }

    fn iterations(&mut self, l: &Loop, scope: Scope) {
        self.source(l.start, scope);
        self.mention(l.counter, scope, true, true);
        self.nodes(&l.entry, scope);
        if let LoopEnd::Below { limit, .. } = l.end {
            self.source(limit, scope);
        }
        let body = self.open(scope);
        self.iterations.insert(body);
        self.nodes(&l.body, body);
        // The counter grows, and another iteration is decided, outside of the body's braces.
        self.mention(l.counter, scope, true, true);
        if let LoopEnd::While { again } = l.end {
            self.mention(again, scope, false, false);
        }
    }
}
