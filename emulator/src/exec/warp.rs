//! The state of a warp: registers, and the groups of lanes that divergence makes.
//!
//! A *split* is a set of lanes at one program counter. Usually there is one. A divergent branch makes two, and a *node* that
//! remembers where they meet again. A split that reaches its node's meeting point arrives and vanishes; when all lanes of the node
//! have arrived (or exited), one split goes on from there. Splits take turns, so lanes may wait for each other.
//!
//! Example: lanes 0..16 of `@p bra A; …; A:` branch: node {meet: A, total: all}, the branching split is at A at once and arrives; the
//! other runs to A, arrives, and all 32 go on.

use super::Context;
use super::alu::Row32;
use super::bulk_groups::Store;
use super::calls::Activation;
use super::local::Local;
use super::mbarrier::Wait;
use super::registers::Rows;
use super::rounds::Mark;
use super::undefined::{ALL, Bits, NOTHING};
use super::wgmma::Pipeline;
use crate::ir::Reg;
use crate::types::File;

/// No meeting point.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a split is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Waits at a block barrier.
    Barrier,
    /// Waits at `bar.warp.sync` for the lanes of the mask.
    WarpSync(u32),
    /// Waits at an mbarrier.
    Poll,
    /// Waits at the barrier of the cluster.
    Cluster,
    /// Waits for this many `wgmma` of its warpgroup.
    Wgmma(u64),
}

/// A group of lanes at one place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Split {
    pub(crate) pc: u32,
    /// Lanes; 0 for a free slot.
    pub(crate) mask: u32,
    pub(crate) node: u32,
    pub(crate) state: State,
}

/// Where parted lanes meet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) meet: u32,
    /// Lanes that will meet, less those that exited.
    pub(super) total: u32,
    pub(super) arrived: u32,
    pub(super) parent: u32,
    /// The call whose lanes these are: they meet behind it when they have returned. [`NOWHERE`] if lanes parted at a branch.
    pub(crate) call: u32,
}

impl Node {
    /// Where its lanes go on.
    fn resume(&self) -> u32 {
        if self.call == NOWHERE {
            self.meet
        } else {
            self.call + 1
        }
    }
}

/// A copy that has not landed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingCopy {
    pub(crate) pc: u32,
    pub(crate) lane: u8,
    pub(crate) bytes: u8,
    /// Offset in the block's shared window.
    pub(crate) to: u32,
    pub(crate) data: [u32; 4],
    /// Sequence number of the group of its lane.
    pub(crate) group: u32,
    /// Sequence number among the copies of the warp.
    pub(crate) serial: u32,
}

/// A warp.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) index: u32,
    /// Not yet started once.
    pub(super) fresh: bool,
    pub(crate) r32: Rows<u32>,
    pub(crate) r64: Rows<u64>,
    pub(crate) p: Vec<u32>,
    /// Which instructions it watches for undefined bits, and these if it watches all.
    pub(crate) watch: u8,
    pub(crate) bits: Option<Box<Bits>>,
    /// Lanes in which each register has been written; kept only for tracked registers, and not while it watches all.
    pub(crate) def32: Vec<u32>,
    pub(crate) def64: Vec<u32>,
    pub(crate) def_p: Vec<u32>,
    /// Carry flags of the lanes.
    pub(crate) carry: u32,
    /// Lanes that the block has.
    pub(crate) launched: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) splits: Vec<Split>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) current: usize,
    pub(crate) steps: u64,
    /// Atomics and strong loads executed: how lanes that spin for others are recognised.
    pub(crate) polls: u64,
    /// Lanes were let go from their meeting point without the others, because those seemed to spin.
    pub(crate) let_go: bool,
    pub(crate) local: Local,
    /// Where the frame of each lane's function starts in its local memory, and where it ends.
    pub(crate) frames: Row32,
    pub(crate) ends: Row32,
    /// Calls that have not returned, by their nodes.
    pub(crate) active: Vec<Activation>,
    /// `cp.async` copies in flight, in order of issue, and the number of committed groups of each lane.
    pub(crate) copies: Vec<PendingCopy>,
    pub(crate) groups: [u32; 32],
    /// `cp.async` copies issued.
    pub(crate) issued: u32,
    /// Bulk copies to global memory that nobody has waited for, and the number of committed bulk groups of each lane.
    pub(crate) stores: Vec<Store>,
    pub(crate) bulk_groups: [u32; 32],
    /// Waits at mbarriers that are suspended; lanes whose wait is to give up; the events that had been when the warp last waited.
    pub(crate) waits: Vec<Wait>,
    pub(crate) expired: u32,
    pub(crate) polled: u64,
    /// The phase of the cluster's barrier at which each lane has arrived, until it has waited.
    pub(crate) gate: [Option<u64>; 32],
    /// Phases of the cluster's barrier up to the last one that it has waited for.
    pub(crate) gates: u64,
    /// What it does with its warpgroup.
    pub(crate) wgmma: Pipeline,
    /// How it was some turns ago.
    pub(crate) mark: Mark,
}

impl Warp {
    pub(crate) fn new(cx: &Context<'_>, index: u32) -> Self {
        let p = cx.program;
        let first = index * 32;
        let lanes = cx.threads.saturating_sub(first).min(32);
        let launched = if lanes == 32 {
            u32::MAX
        } else {
            (1 << lanes) - 1
        };
        let rows = [p.rows32.len(), p.rows64.len(), p.rows_pred.len()];
        Self::with_rows(index, launched, rows, p.local_bytes)
    }

    /// With so many rows of 32 bits, of 64 bits and of predicates.
    pub(super) fn with_rows(
        index: u32,
        launched: u32,
        [n32, n64, n_pred]: [usize; 3],
        local_bytes: u32,
    ) -> Self {
        Self {
            index,
            fresh: true,
            r32: Rows::new(n32),
            r64: Rows::new(n64),
            p: vec![0; n_pred],
            watch: NOTHING,
            bits: None,
            def32: vec![0; n32],
            def64: vec![0; n64],
            def_p: vec![0; n_pred],
            carry: 0,
            launched,
            live: 0,
            splits: Vec::new(),
            nodes: Vec::new(),
            current: 0,
            steps: 0,
            polls: 0,
            let_go: false,
            local: Local::new(local_bytes),
            frames: [0; 32],
            ends: [local_bytes; 32],
            active: Vec::new(),
            copies: Vec::new(),
            groups: [0; 32],
            issued: 0,
            stores: Vec::new(),
            bulk_groups: [0; 32],
            waits: Vec::new(),
            expired: 0,
            polled: 0,
            gate: [None; 32],
            gates: 0,
            wgmma: Pipeline::default(),
            mark: Mark::default(),
        }
    }

    /// Lets the splits that wait at mbarriers look again.
    pub(crate) fn wake(&mut self) {
        for s in &mut self.splits {
            if s.state == State::Poll {
                s.state = State::Running;
            }
        }
    }

    /// Whether some split waits at an mbarrier.
    pub(crate) fn polls(&self) -> bool {
        let mut splits = self.splits.iter();
        splits.any(|s| s.mask != 0 && s.state == State::Poll)
    }

    /// Whether some split may run.
    pub(crate) fn is_runnable(&self) -> bool {
        self.splits
            .iter()
            .any(|s| s.mask != 0 && s.state == State::Running)
    }

    /// The program counter of the current split, or of any.
    pub(crate) fn current_pc(&self) -> usize {
        let mut live = self.splits.iter().filter(|s| s.mask != 0);
        let current = self.splits.get(self.current).filter(|s| s.mask != 0);
        current.or(live.next_back()).map_or(0, |s| s.pc as usize)
    }

    /// The lanes in which register row `row` of `file` has been written.
    pub(crate) fn defined(&self, file: File, row: u32) -> u32 {
        if let (ALL, Some(bits)) = (self.watch, &self.bits) {
            return !bits.lanes(Reg { file, row });
        }
        match file {
            File::R32 => self.def32[row as usize],
            File::R64 => self.def64[row as usize],
            File::Pred => self.def_p[row as usize],
        }
    }

    pub(crate) fn define(&mut self, file: File, row: u32, lanes: u32) {
        if let (ALL, Some(bits)) = (self.watch, &mut self.bits) {
            return bits.clear(Reg { file, row }, lanes);
        }
        match file {
            File::R32 => self.def32[row as usize] |= lanes,
            File::R64 => self.def64[row as usize] |= lanes,
            File::Pred => self.def_p[row as usize] |= lanes,
        }
    }

    pub(crate) fn undefine(&mut self, file: File, row: u32, lanes: u32) {
        if let (ALL, Some(bits)) = (self.watch, &mut self.bits) {
            return bits.forget(Reg { file, row }, lanes);
        }
        match file {
            File::R32 => self.def32[row as usize] &= !lanes,
            File::R64 => self.def64[row as usize] &= !lanes,
            File::Pred => self.def_p[row as usize] &= !lanes,
        }
    }

    fn add_split(&mut self, split: Split) -> usize {
        if let Some(i) = self.splits.iter().position(|s| s.mask == 0) {
            self.splits[i] = split;
            return i;
        }
        self.splits.push(split);
        self.splits.len() - 1
    }

    fn add_node(&mut self, fresh: Node) -> u32 {
        // A node without lanes is free; the root never is.
        let others = self.nodes.get(1..).unwrap_or_default();
        if let Some(i) = others.iter().position(|n| n.total == 0) {
            self.nodes[i + 1] = fresh;
            return i as u32 + 1;
        }
        self.nodes.push(fresh);
        self.nodes.len() as u32 - 1
    }

    /// The node of the current split's lanes when they part, to meet at `meet`.
    fn parted(&mut self, meet: u32) -> u32 {
        let s = self.splits[self.current];
        if self.nodes[s.node as usize].meet == meet {
            return s.node;
        }
        self.add_node(Node {
            meet,
            total: s.mask,
            arrived: 0,
            parent: s.node,
            call: NOWHERE,
        })
    }

    /// The current split parts: the lanes `gone` are at `meet` already, where they wait for the others, which go on. Example: lanes that leave a loop.
    pub(crate) fn leave(&mut self, gone: u32, meet: u32) {
        let node = self.parted(meet);
        self.nodes[node as usize].arrived |= gone;
        let split = &mut self.splits[self.current];
        split.mask &= !gone;
        split.node = node;
    }

    /// The current split parts: `taken` lanes go to `target`, the others to `next`; they meet at `meet`. Returns the split of `taken`.
    pub(crate) fn diverge(&mut self, taken: u32, target: u32, next: u32, meet: u32) -> usize {
        let s = self.splits[self.current];
        let node = self.parted(meet);
        self.splits[self.current] = Split {
            pc: next,
            mask: s.mask & !taken,
            node,
            state: State::Running,
        };
        self.add_split(Split {
            pc: target,
            mask: taken,
            node,
            state: State::Running,
        })
    }

    /// Split `split` enters a function at `entry`, called at `call`; its lanes meet again when they have returned. Returns their node.
    pub(crate) fn enter(&mut self, split: usize, entry: u32, call: u32) -> usize {
        let s = self.splits[split];
        let node = self.add_node(Node {
            meet: NOWHERE,
            total: s.mask,
            arrived: 0,
            parent: s.node,
            call,
        });
        self.splits[split].pc = entry;
        self.splits[split].node = node;
        node as usize
    }

    /// The call that the current split would return from, and its node; `None` in the kernel itself.
    pub(crate) fn innermost_call(&self) -> Option<(usize, u32)> {
        let mut n = self.splits.get(self.current)?.node;
        while n != 0 {
            let node = self.nodes[n as usize];
            if node.call != NOWHERE {
                return Some((n as usize, node.call));
            }
            n = node.parent;
        }
        None
    }

    /// Lanes `mask` of the current split return from their function and wait behind the call for the others.
    pub(crate) fn return_lanes(&mut self, mask: u32) {
        let s = self.splits[self.current];
        self.splits[self.current].mask &= !mask;
        let mut n = s.node;
        while n != 0 && self.nodes[n as usize].call == NOWHERE {
            self.nodes[n as usize].total &= !mask;
            n = self.nodes[n as usize].parent;
        }
        self.nodes[n as usize].arrived |= mask;
        if self.splits[self.current].mask == 0 {
            self.settle(s.node);
        }
    }

    /// The current split has reached its meeting point.
    pub(crate) fn arrive(&mut self) {
        let s = self.splits[self.current];
        self.splits[self.current].mask = 0;
        self.nodes[s.node as usize].arrived |= s.mask;
        self.settle(s.node);
    }

    /// Lanes `mask` of the current split leave the kernel.
    pub(crate) fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        let s = self.splits[self.current];
        self.splits[self.current].mask &= !mask;
        let mut n = s.node;
        loop {
            self.nodes[n as usize].total &= !mask;
            if n == 0 {
                break;
            }
            n = self.nodes[n as usize].parent;
        }
        if self.splits[self.current].mask == 0 {
            self.settle(s.node);
        }
    }

    /// If all lanes of node `n` have arrived, they go on; if none are left, its parent may be complete.
    fn settle(&mut self, mut n: u32) {
        while n != 0 {
            let node = self.nodes[n as usize];
            if node.arrived != node.total {
                return;
            }
            self.nodes[n as usize].total = 0;
            if node.total != 0 {
                self.current = self.add_split(Split {
                    pc: node.resume(),
                    mask: node.total,
                    node: node.parent,
                    state: State::Running,
                });
                return;
            }
            n = node.parent;
        }
    }

    /// The current split spins, perhaps for lanes that wait at a meeting point for it: those go on without it.
    ///
    /// Example: the lane that got a lock waits after the loop in which the others try to get it.
    pub(crate) fn let_waiting_go(&mut self) {
        let mut n = self.splits[self.current].node;
        while n != 0 {
            let node = self.nodes[n as usize];
            if node.arrived != 0 {
                self.nodes[n as usize].total &= !node.arrived;
                self.nodes[n as usize].arrived = 0;
                self.add_split(Split {
                    pc: node.resume(),
                    mask: node.arrived,
                    node: node.parent,
                    state: State::Running,
                });
                self.let_go = true;
            }
            n = node.parent;
        }
    }

    /// Makes another runnable split the current one; false if there is none.
    pub(crate) fn rotate(&mut self) -> bool {
        let n = self.splits.len();
        for k in 1..=n {
            // Without a division.
            let i = self.current + k;
            let i = if i < n { i } else { i - n };
            if self.splits[i].mask != 0 && self.splits[i].state == State::Running {
                self.current = i;
                return true;
            }
        }
        false
    }

    /// Makes split `i` the next to run, if it can.
    pub(crate) fn prefer(&mut self, i: usize) {
        let runs = |s: &Split| s.mask != 0 && s.state == State::Running;
        if self.splits.get(i).is_some_and(runs) {
            self.current = i;
        }
    }

    /// Lets splits at `bar.warp.sync` go on when all the lanes they name are there.
    pub(crate) fn serve_warp_sync(&mut self) -> bool {
        let mut waiting = 0;
        for s in &self.splits {
            if s.mask != 0 && matches!(s.state, State::WarpSync(_)) {
                waiting |= s.mask;
            }
        }
        let live = self.live;
        let mut any = false;
        for s in &mut self.splits {
            if let State::WarpSync(mask) = s.state
                && s.mask != 0
                && mask & live & !waiting == 0
            {
                s.state = State::Running;
                any = true;
            }
        }
        any
    }
}
