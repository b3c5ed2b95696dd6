//! Roles: threads of a block that part, each group with a region of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Kernel, MapHandle, RingHandle};
use crate::index::Expr;
use crate::ir::hopper::Hopper;
use crate::ir::inst::{Inst, Statement};
use crate::ir::node::{Node, RoleRegion};
use crate::ir::value::{Cmp, Reg};

/// Named barriers of a block, beside the one of all its threads.
const NAMED_BARRIERS: u32 = 15;

/// What a kernel with roles of warps keeps while it is written.
#[derive(Default, Debug)]
pub(crate) struct Parting {
    /// Its rings over TMA.
    pub(crate) rings: Vec<RingHandle>,
    /// Its tensor maps.
    pub(crate) maps: Vec<MapHandle>,
    /// By the number of a ring and the end of a role: the warps of the role that read the ring's stages.
    pub(crate) readers: BTreeMap<usize, BTreeMap<u32, u32>>,
    /// Rings, by their numbers, whose stages each block of a cluster has for itself.
    pub(crate) per_block: BTreeSet<usize>,
    /// Rings, by their numbers, of which threads of the open role have read a stage into registers that is not released yet.
    pub(crate) fetched: BTreeSet<usize>,
    /// A role is open.
    open: bool,
    /// The index of a thread within the open role.
    pub(crate) thread: Option<Expr>,
    /// Nodes of the kernel before its roles.
    pub(crate) before: usize,
    /// All threads have had a role.
    pub(crate) ended: bool,
    /// Named barriers that are taken: those numbered 1 to this.
    named: u32,
    /// The named barrier of the open role's threads.
    own_barrier: Option<u32>,
    /// Order barriers, by their first number, at which the last role has arrived for the first one.
    pub(crate) armed: BTreeSet<u32>,
    /// The scope of the open role.
    scope: usize,
    /// Boxes are stored that are not known to be read.
    pub(crate) sends: bool,
    /// Products of warpgroups that were written.
    pub(crate) products: u32,
    /// How the first role with loops over tiles takes them, as text, with the end of that role.
    pub(crate) schedulers: Vec<(u32, String)>,
}

impl Kernel {
    /// Begins what the threads from the end of the role before to `end` do, until the kernel ends; `end` is a multiple of 32, and of the last role the
    /// number of threads. Barriers of the block are behind the threads then: roles meet at mbarriers.
    pub(crate) fn begin_role(&mut self, name: &str, end: u32) {
        self.end_role();
        if !self.is_closed() {
            self.mistake(format!(
                "the role `{name}` begins in a loop, region or branch: threads part outside of all"
            ));
        }
        let is = (end < self.block[0]).then(|| {
            let (thread, end) = (self.thread(), self.pool.constant(end.into()));
            self.compare(Cmp::Lt, thread, end)
        });
        self.roles.push(RoleRegion {
            name: name.to_owned(),
            end,
            is,
            body: Vec::new(),
        });
        self.parting.open = true;
        self.parting.own_barrier = None;
        self.open_region();
        self.parting.scope = self.scopes.len() - 1;
    }

    /// The first of `count` named barriers that nothing else uses; a mistake is recorded where there are no more.
    pub(crate) fn named_barriers(&mut self, count: u32) -> u32 {
        let first = self.parting.named + 1;
        if self.parting.named.saturating_add(count) > NAMED_BARRIERS {
            self.mistake(format!(
                "more than {NAMED_BARRIERS} named barriers: each role that has a barrier of its own takes one, and an order barrier one for each of its roles"
            ));
            return first.min(NAMED_BARRIERS);
        }
        self.parting.named += count;
        first
    }

    /// A barrier of all threads of the open role.
    pub(crate) fn barrier_of_role(&mut self) {
        let id = match self.parting.own_barrier {
            Some(id) => id,
            None => self.named_barriers(1),
        };
        self.parting.own_barrier = Some(id);
        let threads = self.threads_of_role();
        self.named_barrier(id, threads, true);
    }

    /// All threads of the open role arrive at a named barrier, by `bar.sync` if they wait there, else by `bar.arrive`.
    pub(crate) fn named_barrier(&mut self, id: u32, threads: u32, waits: bool) {
        self.push_hopper(None, Hopper::NamedBarrier { id, threads, waits });
    }

    /// The threads of the open role arrive at a named barrier before the role does anything else.
    pub(crate) fn arrive_at_begin(&mut self, id: u32, threads: u32) {
        let inst = Hopper::NamedBarrier {
            id,
            threads,
            waits: false,
        };
        let at = self.parting.scope;
        self.scopes[at].before.push(Node::Inst(Statement {
            inst: Inst::Hopper(Box::new(inst)),
            guard: None,
            tag: None,
        }));
    }

    /// Ends the last role, and with it the kernel.
    pub(crate) fn end_roles(&mut self) {
        self.end_role();
        let roles = std::mem::take(&mut self.roles);
        self.scope().body.push(Node::Roles(roles));
    }

    /// The predicate of lane 0 of each warp.
    pub(crate) fn first_lane(&mut self) -> Reg {
        let (lane, zero) = (self.lane(), self.pool.constant(0));
        self.compare(Cmp::Eq, lane, zero)
    }

    /// Whether a role is open.
    pub(crate) fn in_role(&self) -> bool {
        self.parting.open
    }

    /// The index of a thread within the open role of warps.
    pub(crate) fn thread_of_role(&self) -> Option<Expr> {
        self.parting.thread
    }

    /// How many nodes the kernel has outside of roles, loops and branches, without comments.
    pub(crate) fn nodes_before_roles(&mut self) -> usize {
        let nodes = self.scope().body.iter();
        nodes.filter(|n| !matches!(n, Node::Comment(_))).count()
    }

    /// The thread behind those that have a role.
    pub(crate) fn end_of_roles(&self) -> u32 {
        self.roles.last().map_or(0, |role| role.end)
    }

    /// Threads of the open role.
    pub(crate) fn threads_of_role(&self) -> u32 {
        let before = self.roles.iter().rev().nth(1).map_or(0, |role| role.end);
        self.end_of_roles() - before
    }

    /// Ends the open role, if there is one.
    pub(crate) fn end_role(&mut self) {
        if !std::mem::take(&mut self.parting.open) {
            return;
        }
        self.parting.thread = None;
        let inner = self.pop_scope();
        if let Some(role) = self.roles.last_mut() {
            role.body.extend(inner.before);
            role.body.extend(inner.top);
            role.body.extend(inner.body);
        }
    }
}
