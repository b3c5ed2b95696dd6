//! The state of a warp: registers, and the groups of lanes that divergence makes.
//!
//! A *split* is a set of lanes at one program counter. Usually there is one. A divergent branch makes two, and a *node* that
//! remembers where they meet again. A split that reaches its node's meeting point arrives and vanishes; when all lanes of the node
//! have arrived (or exited), one split goes on from there. Splits take turns, so lanes may wait for each other.
//!
//! Example: lanes 0..16 of `@p bra A; …; A:` branch: node {meet: A, total: all}, the branching split is at A at once and arrives; the
//! other runs to A, arrives, and all 32 go on.

use super::alu::Row32;
use super::bulk_groups::Store;
use super::calls::Activation;
use super::local::Local;
use super::mbarrier::Wait;
use super::mem::lanes_of;
use super::registers::Rows;
use super::rounds::Mark;
use super::undefined::{ALL, Bits, NOTHING};
use super::wgmma::Pipeline;
use super::{Context, LOOKS};
use crate::ir::Reg;
use crate::types::File;

/// Instructions that a warp executes, looking at memory, until lanes that have met go on without those that have not: for loops without a branch back
/// ([`crate::ir::Op::Spin`]).
const LONG: u32 = 1 << 16;

/// No meeting point.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a split is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Waits at a block barrier.
    Barrier,
    /// Waits at `bar.warp.sync` for the lanes of [`Warp::members`].
    WarpSync,
    /// Waits at an mbarrier.
    Poll,
    /// Waits at the barrier of the cluster.
    Cluster,
    /// Waits for this many `wgmma` of its warpgroup.
    Wgmma(u64),
    /// Stands before an instruction that lanes execute together, until those of [`Warp::members`] come to it.
    Together,
    /// Another split executes its next instruction for it ([`Warp::joint`]).
    Joint,
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

impl Split {
    /// Whether it stands before an instruction of several lanes.
    fn stands(&self) -> bool {
        self.mask != 0 && self.state == State::Together
    }
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
    /// The number of its instruction's read in [`super::sources::Sources`].
    pub(crate) read: u32,
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
    /// Instructions since lanes may have been let go, and `polls` then.
    pub(super) spins: u32,
    pub(super) spin_polls: u64,
    /// How often splits have come round in loops that look at memory, since an effect; and `polls` then.
    pub(super) idle: u32,
    pub(super) idle_polls: u64,
    /// Lanes that may execute the instruction before which they stand, and those of them to which not all come with whom they are to execute it.
    pub(super) cleared: u32,
    pub(super) apart: u32,
    /// Lanes that stand before a barrier.
    at_barrier: u32,
    /// Lanes of several splits that execute their next instruction as one; 0 if there are none.
    pub(super) joint: u32,
    /// The split that executes the instruction of the `joint` lanes.
    executes: usize,
    /// The lanes of that split.
    own: u32,
    pub(crate) local: Local,
    /// Where the frame of each lane's function starts in its local memory, and where it ends.
    pub(crate) frames: Row32,
    pub(crate) ends: Row32,
    /// Calls that have not returned, by their nodes.
    pub(crate) active: Vec<Activation>,
    /// By lane that waits at `bar.warp.sync`, or stands before an instruction of several lanes: the lanes that it waits for, which must wait with the same mask.
    pub(super) members: [u32; 32],
    /// Those that have met theirs, and wait for the other lanes of their split.
    met: u32,
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
            spins: 0,
            spin_polls: 0,
            idle: 0,
            idle_polls: 0,
            cleared: 0,
            apart: 0,
            at_barrier: 0,
            joint: 0,
            executes: 0,
            own: 0,
            local: Local::new(local_bytes),
            frames: [0; 32],
            ends: [local_bytes; 32],
            active: Vec::new(),
            members: [0; 32],
            met: 0,
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
    #[inline]
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

    #[inline]
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

    #[inline]
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
        // Others may have waited for them.
        for i in 0..self.splits.len() {
            self.complete(i);
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

    /// Counts `used` instructions of a split, with an effect that others could see or without. Splits that wait may do so for lanes that wait at a meeting point
    /// for them: those go on alone.
    ///
    /// Example: the lane that got a lock waits after the loop in which the others try to get it.
    ///
    /// Returns whether all that its splits do is wait for other warps.
    #[inline(always)]
    pub(super) fn spin(&mut self, used: u32, effect: bool) -> bool {
        self.spins += used;
        self.idle = if effect { 0 } else { self.idle };
        (self.spins >= LONG || self.idle >= LOOKS) && self.is_waiting()
    }

    #[cold]
    #[inline(never)]
    fn is_waiting(&mut self) -> bool {
        let waits = self.idle >= LOOKS * self.running();
        if !waits && self.spins < LONG {
            return false;
        }
        self.idle = 0;
        !self.let_others_go() && waits
    }

    /// The current split comes round in a loop that looks at memory: another has its turn.
    pub(super) fn come_round(&mut self) {
        self.idle += u32::from(self.polls != self.idle_polls);
        self.idle_polls = self.polls;
        self.rotate();
    }

    /// Lanes that wait at a meeting point for splits that run go on alone if these have looked at memory. Whether there are any.
    fn let_others_go(&mut self) -> bool {
        let mut any = false;
        if self.polls != self.spin_polls {
            for i in 0..self.splits.len() {
                let s = self.splits[i];
                if s.mask != 0 && s.state == State::Running {
                    any |= self.let_waiting_go(s.node);
                }
            }
        }
        (self.spins, self.spin_polls) = (0, self.polls);
        any
    }

    /// Whether lanes wait at a meeting point for a split that runs.
    pub(super) fn keeps_lanes(&self) -> bool {
        let mut running = self
            .splits
            .iter()
            .filter(|s| s.mask != 0 && s.state == State::Running);
        running.any(|s| {
            let mut n = s.node;
            while n != 0 && self.nodes[n as usize].arrived == 0 {
                n = self.nodes[n as usize].parent;
            }
            n != 0
        })
    }

    /// Lanes that have met at `n` or a node around it go on without those that have not. Whether there are any.
    fn let_waiting_go(&mut self, n: u32) -> bool {
        self.let_go(n, |_| true)
    }

    /// Likewise those that go on where `goes` says.
    fn let_go(&mut self, mut n: u32, goes: impl Fn(u32) -> bool) -> bool {
        let mut any = false;
        while n != 0 {
            let node = self.nodes[n as usize];
            if node.arrived != 0 && goes(node.resume()) {
                self.nodes[n as usize].total &= !node.arrived;
                self.nodes[n as usize].arrived = 0;
                self.add_split(Split {
                    pc: node.resume(),
                    mask: node.arrived,
                    node: node.parent,
                    state: State::Running,
                });
                any = true;
            }
            n = node.parent;
        }
        any
    }

    /// Whether its only split has ended, or waits for other warps.
    #[inline(always)]
    pub(super) fn is_stopped(&self) -> bool {
        let [split] = self.splits.as_slice() else {
            return false;
        };
        let own = matches!(
            split.state,
            State::Running | State::WarpSync | State::Together
        );
        split.mask == 0 || !own
    }

    /// How many splits may run.
    fn running(&self) -> u32 {
        let runs = |s: &&Split| s.mask != 0 && s.state == State::Running;
        self.splits.iter().filter(runs).count() as u32
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

    /// The lanes that wait at `bar.warp.sync` for others.
    pub(super) fn at_warp_sync(&self) -> u32 {
        let splits = self.splits.iter();
        let waiting = splits.filter(|s| s.mask != 0 && s.state == State::WarpSync);
        waiting.fold(0, |lanes, s| lanes | s.mask) & !self.met
    }

    /// Those of `lanes`, which wait at `bar.warp.sync` or come to it, whose members are all among them with the same mask.
    pub(super) fn synchronised(&self, lanes: u32) -> u32 {
        let is_complete = |l: usize| {
            let members = self.members[l];
            let here = lanes_of(members & lanes);
            members & self.live & !lanes == 0 && { here }.all(|k| self.members[k] == members)
        };
        lanes_of(lanes)
            .filter(|&l| is_complete(l))
            .fold(0, |m, l| m | 1 << l)
    }

    /// Lets splits at `bar.warp.sync` go on when all the lanes they name are there, or have exited.
    pub(crate) fn serve_warp_sync(&mut self) -> bool {
        match self.at_warp_sync() {
            0 => false,
            waiting => self.meet(self.synchronised(waiting)),
        }
    }

    /// The lanes `complete` have met at `bar.warp.sync`: splits that wait there go on if all their lanes have.
    pub(super) fn meet(&mut self, complete: u32) -> bool {
        self.met |= complete & self.at_warp_sync();
        let mut any = false;
        for s in &mut self.splits {
            if s.mask != 0 && s.state == State::WarpSync && s.mask & !self.met == 0 {
                s.state = State::Running;
                self.met &= !s.mask;
                any = true;
            }
        }
        any
    }

    /// Whether the lanes `active`, which come to an instruction that they execute together with the lanes of `members`, must wait for others: not
    /// for the lanes `skipping`, which are not to execute it.
    ///
    /// Lanes may come to it over several paths: compilers thread jumps through conditions that they know, and lanes that take a lock do so one by one.
    /// Example: `if (tid == 0) x = 5; if (last) __syncthreads();` has two branches to the barrier, one behind the store.
    pub(super) fn wait_for_others(&mut self, active: u32, members: &Row32, skipping: u32) -> bool {
        let waits = self.must_wait(active, members, skipping);
        if self.cleared & active != active {
            self.apart &= !active;
        }
        self.cleared &= !active;
        waits
    }

    /// [`Self::wait_for_others`] before it happens.
    pub(super) fn must_wait(&mut self, active: u32, members: &Row32, skipping: u32) -> bool {
        if self.cleared & active == active {
            return false;
        }
        let skipped = lanes_of(active).any(|l| members[l] & skipping != 0);
        if active == self.live || skipped {
            return false;
        }
        for l in lanes_of(active) {
            self.members[l] = members[l];
        }
        self.synchronised(active) != active
    }

    /// The current split, of lanes that must wait for others, stands before the instruction `pc`, which may be a barrier. If it is the last of its members, all
    /// of them go on: as one split if they are in one call of a function. Those in different calls execute the instruction as one, except for a barrier,
    /// at which each split waits by itself.
    pub(super) fn stand(&mut self, pc: u32, barrier: bool) {
        let split = &mut self.splits[self.current];
        (split.pc, split.state) = (pc, State::Together);
        let lanes = split.mask;
        self.at_barrier = (self.at_barrier & !lanes) | if barrier { lanes } else { 0 };
        self.complete(self.current);
    }

    /// If split `i` stands before an instruction of several lanes, and all of these do, they go on.
    fn complete(&mut self, i: usize) -> bool {
        let split = self.splits[i];
        // One instruction at a time: when it has been executed, this is asked again.
        if !split.stands() || self.joint != 0 {
            return false;
        }
        let (own, pc) = (split.mask, split.pc);
        // Splits of which each lane finds all its members.
        let mut here = u32::MAX;
        loop {
            let is_in = |s: &&Split| s.stands() && s.pc == pc && s.mask & !here == 0;
            let all = self.splits.iter().filter(is_in);
            let all = all.fold(0, |m, s| m | s.mask);
            if all == here {
                break;
            }
            here = self.synchronised(all);
        }
        if here & own == 0 {
            return false;
        }
        if !self.join(pc, here) || here != self.live {
            self.cleared |= here;
        }
        true
    }

    /// Lets splits go on that stand before an instruction of several lanes: those that need no others any more, else all if the others cannot come, or shall
    /// not be waited for (`now`).
    pub(super) fn give_up_others(&mut self, now: bool) -> bool {
        if (0..self.splits.len()).any(|i| self.complete(i)) {
            return true;
        }
        // Those at `bar.warp.sync` wait for lanes of their warp, the others perhaps for other warps.
        let may_come =
            |s: &Split| s.mask != 0 && !matches!(s.state, State::Together | State::WarpSync);
        if !now && self.splits.iter().any(may_come) {
            return false;
        }
        let mut any = false;
        // Lanes may wait at a meeting point for those that wait for them at the instruction there: in a recursion, whose calls come to it before their callers do.
        for i in 0..self.splits.len() {
            let s = self.splits[i];
            if s.stands() {
                any |= self.let_go(s.node, |place| place == s.pc);
            }
        }
        if any {
            return true;
        }
        for s in self.splits.iter_mut().filter(|s| s.stands()) {
            s.state = State::Running;
            self.cleared |= s.mask;
            self.apart |= s.mask;
            any = true;
        }
        any
    }

    /// The splits with lanes of `lanes`, which stand at `pc`, go on. Whether they execute what they stand at as one.
    fn join(&mut self, pc: u32, lanes: u32) -> bool {
        let is_in = |s: &&Split| s.mask & lanes != 0;
        let splits = || self.splits.iter().filter(is_in);
        let node = splits().map(|s| s.node).reduce(|a, b| self.common(a, b));
        let inside = |node| splits().all(|s| self.ancestors(s.node).any(|n| n == node));
        let Some(node) = node.filter(|n| inside(*n)) else {
            let as_one = lanes & self.at_barrier == 0;
            let state = if as_one { State::Joint } else { State::Running };
            for (i, s) in self.splits.iter_mut().enumerate() {
                if s.mask & lanes != 0 {
                    s.state = state;
                    self.executes = i;
                }
            }
            if as_one {
                let s = &mut self.splits[self.executes];
                (self.joint, self.own) = (lanes, s.mask);
                (s.mask, s.state) = (lanes, State::Running);
            }
            return as_one;
        };
        for i in 0..self.splits.len() {
            let Split { mask, node: n, .. } = self.splits[i];
            if mask & lanes == 0 {
                continue;
            }
            self.splits[i].mask = 0;
            let mut around = n;
            while around != node {
                self.nodes[around as usize].total &= !mask;
                around = self.nodes[around as usize].parent;
            }
            // Nobody waits for them any more.
            if n != node {
                self.settle(n);
            }
        }
        self.current = self.add_split(Split {
            pc,
            mask: lanes,
            node,
            state: State::Running,
        });
        true
    }

    /// Whether the next instruction is executed for the lanes of several splits; the split that does so is the current one then.
    pub(super) fn begin_joint(&mut self) -> bool {
        if self.joint != 0 {
            self.current = self.executes;
        }
        self.joint != 0
    }

    /// The instruction has been executed: its splits go on behind it.
    pub(super) fn end_joint(&mut self) {
        let next = self.splits[self.executes].pc;
        self.splits[self.executes].mask = self.own;
        for s in self.splits.iter_mut().filter(|s| s.state == State::Joint) {
            (s.pc, s.state) = (next, State::Running);
        }
        self.joint = 0;
    }

    /// A node and those around it in the same call of a function, the innermost first.
    fn ancestors(&self, node: u32) -> impl Iterator<Item = u32> {
        let mut next = Some(node);
        std::iter::from_fn(move || {
            let n = next?;
            let node = self.nodes[n as usize];
            next = (n != 0 && node.call == NOWHERE).then_some(node.parent);
            Some(n)
        })
    }

    /// The innermost node around both `a` and `b`; `a` if they are in different calls.
    fn common(&self, a: u32, b: u32) -> u32 {
        let mut of_a = self.ancestors(a);
        of_a.find(|n| self.ancestors(b).any(|m| m == *n))
            .unwrap_or(a)
    }
}
