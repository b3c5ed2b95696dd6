//! How a warp is at the first instruction of a block.
//!
//! Rows of constants, addresses and thread numbers are the same in every block that a warp runs in and are filled once: addresses of shared memory too, since a
//! warp always belongs to a block of the same rank. Those that depend on the block hold one value in all lanes. Registers start undefined: a recognisable pattern, so that a use of one shows even without the sanitizer.

use std::ops::Range;

use super::Context;
use super::registers::Rows;
use super::rounds::Mark;
use super::warp::{NOWHERE, Node, Split, State, Warp};
use crate::ir::{Program, RowInit, Special};
use crate::windows::shared_start;

/// What an undefined register holds; the sanitizer reports its use.
const UNDEFINED: u64 = 0xdead_beef_dead_beef;

/// The rows of one register file that every block starts anew.
#[derive(Debug)]
struct Anew {
    /// Registers, as ranges of rows.
    registers: Vec<Range<usize>>,
    /// Rows that differ from block to block.
    of_block: Vec<usize>,
}

impl Anew {
    fn of(rows: &[RowInit]) -> Self {
        let mut registers: Vec<Range<usize>> = Vec::new();
        for (row, _) in rows
            .iter()
            .enumerate()
            .filter(|(_, i)| **i == RowInit::Register)
        {
            match registers.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => registers.push(row..row + 1),
            }
        }
        let all = rows.iter().enumerate();
        let of_block = all.filter(|(_, init)| is_of_block(**init));
        Self {
            registers,
            of_block: of_block.map(|(row, _)| row).collect(),
        }
    }

    /// Does so with `rows`, of which `defined` says in which lanes they are defined; `value` is what a row holds that differs from block to block.
    #[inline(always)]
    fn start<T: Copy + Default>(
        &self,
        rows: &mut Rows<T>,
        defined: &mut [u32],
        undefined: T,
        value: impl Fn(usize) -> T,
    ) {
        for range in &self.registers {
            rows.fill(range.clone(), undefined);
            defined[range.clone()].fill(0);
        }
        for &row in &self.of_block {
            rows[row] = [value(row); 32];
            defined[row] = u32::MAX;
        }
    }
}

/// The rows of both files that every block of a launch starts anew.
#[derive(Debug)]
pub(super) struct Restart {
    r32: Anew,
    r64: Anew,
}

impl Restart {
    pub(super) fn new(p: &Program) -> Self {
        Self {
            r32: Anew::of(&p.rows32),
            r64: Anew::of(&p.rows64),
        }
    }
}

impl Warp {
    /// Fills the rows that are the same in every block of the rank of block `ctaid`.
    #[inline(never)]
    fn first(&mut self, cx: &Context<'_>, ctaid: [u32; 3]) {
        let (p, index) = (cx.program, self.index);
        let value = |init: RowInit, lane: usize| initial(cx, index, init, ctaid, lane as u32);
        for (row, init) in p.rows32.iter().enumerate() {
            self.def32[row] = u32::MAX;
            self.r32[row] = match init {
                RowInit::Special(_) => std::array::from_fn(|lane| value(*init, lane) as u32),
                _ => [value(*init, 0) as u32; 32],
            };
        }
        for (row, init) in p.rows64.iter().enumerate() {
            self.def64[row] = u32::MAX;
            self.r64[row] = match init {
                RowInit::Special(_) => std::array::from_fn(|lane| value(*init, lane)),
                _ => [value(*init, 0); 32],
            };
        }
    }

    /// Ready at the first instruction of block `ctaid`.
    #[inline(always)]
    pub(crate) fn start(&mut self, cx: &Context<'_>, ctaid: [u32; 3]) {
        let (p, index) = (cx.program, self.index);
        if std::mem::take(&mut self.fresh) {
            self.first(cx, ctaid);
        }
        let value = |init: RowInit| initial(cx, index, init, ctaid, 0);
        let Restart { r32, r64 } = &cx.restart;
        r32.start(&mut self.r32, &mut self.def32, UNDEFINED as u32, |row| {
            value(p.rows32[row]) as u32
        });
        r64.start(&mut self.r64, &mut self.def64, UNDEFINED, |row| {
            value(p.rows64[row])
        });
        for (i, init) in p.rows_pred.iter().enumerate() {
            let constant = matches!(init, RowInit::Const(_));
            self.p[i] = if matches!(init, RowInit::Const(1..)) {
                u32::MAX
            } else {
                0
            };
            self.def_p[i] = if constant { u32::MAX } else { 0 };
        }
        self.watch_anew(cx.sanitize);
        self.carry = 0;
        self.live = self.launched;
        self.nodes.clear();
        self.nodes.push(Node {
            meet: NOWHERE,
            total: self.launched,
            arrived: 0,
            parent: 0,
            call: NOWHERE,
        });
        self.splits.clear();
        self.splits.push(Split {
            pc: 0,
            mask: self.launched,
            node: 0,
            state: State::Running,
        });
        self.current = 0;
        self.mark = Mark::default();
        self.steps = 0;
        self.polls = 0;
        (self.spins, self.spin_polls) = (0, 0);
        (self.idle, self.idle_polls) = (0, 0);
        (self.cleared, self.apart, self.joint) = (0, 0, 0);
        self.local.restart(p.local_bytes);
        self.frames = [0; 32];
        self.ends = [p.local_bytes; 32];
        self.copies.clear();
        self.groups = [0; 32];
        self.issued = 0;
        self.stores.clear();
        self.bulk_groups = [0; 32];
        self.waits.clear();
        self.expired = 0;
        self.polled = 0;
        self.gate = [None; 32];
        self.gates = 0;
        self.wgmma.reset();
    }
}

/// Whether a row differs from block to block; all its lanes are the same then. Rows of frames change with calls and start at 0.
fn is_of_block(init: RowInit) -> bool {
    matches!(
        init,
        RowInit::Frame(..)
            | RowInit::Special(
                Special::Ctaid(_)
                    | Special::ClusterId(_)
                    | Special::ClusterCtaid(_)
                    | Special::ClusterCtarank
            )
    )
}

/// The rank of block `ctaid` in its cluster.
fn rank(cx: &Context<'_>, ctaid: [u32; 3]) -> u32 {
    let [sx, sy, _] = cx.cluster;
    let within = |d: usize| ctaid[d] % cx.cluster[d];
    within(0) + sx * (within(1) + sy * within(2))
}

/// What lane `lane` of warp `index` has in a row at the start of block `ctaid`.
fn initial(cx: &Context<'_>, index: u32, init: RowInit, ctaid: [u32; 3], lane: u32) -> u64 {
    let special = match init {
        RowInit::Register => return UNDEFINED,
        RowInit::Const(v) => return v,
        // Set by each call of the function.
        RowInit::Frame(..) => return 0,
        RowInit::Shared(offset) => {
            let start = shared_start(rank(cx, ctaid) as usize);
            return u64::from(start).wrapping_add(offset as u64);
        }
        RowInit::Variable(number, offset) => {
            return cx
                .variables
                .get(number as usize)
                .map_or(0, |a| a.wrapping_add(offset as u64));
        }
        RowInit::Special(s) => s,
    };
    let thread = index * 32 + lane;
    let [bx, by, _] = cx.block;
    let axis = |v: [u32; 3], d: u8| v[usize::from(d)];
    u64::from(match special {
        Special::Tid(0) => thread % bx,
        Special::Tid(1) => thread / bx % by,
        Special::Tid(_) => thread / bx / by,
        Special::Ntid(d) => axis(cx.block, d),
        Special::Ctaid(d) => axis(ctaid, d),
        Special::Nctaid(d) => axis(cx.grid, d),
        Special::LaneId => lane,
        Special::WarpId => index,
        Special::NwarpId => cx.warps() as u32,
        Special::SmId | Special::GridId | Special::Zero => 0,
        Special::Workspace { high: false } => cx.workspace as u32,
        Special::Workspace { high: true } => (cx.workspace >> 32) as u32,
        Special::NsmId => 1,
        Special::ClusterId(d) => axis(ctaid, d) / axis(cx.cluster, d),
        Special::NclusterId(d) => axis(cx.grid, d) / axis(cx.cluster, d),
        Special::ClusterCtaid(d) => axis(ctaid, d) % axis(cx.cluster, d),
        Special::ClusterNctaid(d) => axis(cx.cluster, d),
        Special::ClusterCtarank => rank(cx, ctaid),
        Special::ClusterNctarank => cx.cluster.iter().product(),
        Special::IsExplicitCluster => u32::from(cx.cluster != [1, 1, 1]),
        Special::LanemaskEq => 1 << lane,
        Special::LanemaskLe => u32::MAX >> (31 - lane),
        Special::LanemaskLt => (1 << lane) - 1,
        Special::LanemaskGe => u32::MAX << lane,
        Special::LanemaskGt => !(u32::MAX >> (31 - lane)),
        Special::TotalSmem => cx.shared_bytes,
        Special::DynamicSmem => cx.dynamic_shared,
    })
}
