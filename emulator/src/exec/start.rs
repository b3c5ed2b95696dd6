//! How a warp is at the first instruction of a block.
//!
//! Rows of constants, addresses and thread numbers are the same in every block and are filled once. Those that depend on the block hold one value in
//! all lanes. Registers start undefined: a recognisable pattern, so that a use of one shows even without the sanitizer.

use super::Context;
use super::rounds::Mark;
use super::warp::{NOWHERE, Node, Split, State, Warp};
use crate::ir::{RowInit, Special};

/// What an undefined register holds; the sanitizer reports its use.
const UNDEFINED: u64 = 0xdead_beef_dead_beef;

impl Warp {
    /// Ready at the first instruction of block `ctaid`.
    pub(crate) fn start(&mut self, cx: &Context<'_>, ctaid: [u32; 3]) {
        let p = cx.program;
        let (first, index) = (std::mem::take(&mut self.fresh), self.index);
        for ((init, row), defined) in p
            .rows32
            .iter()
            .zip(self.r32.iter_mut())
            .zip(&mut self.def32)
        {
            match init {
                RowInit::Register => (*row, *defined) = ([UNDEFINED as u32; 32], 0),
                _ if first => {
                    *row = std::array::from_fn(|lane| {
                        initial(cx, index, *init, ctaid, lane as u32) as u32
                    });
                    *defined = u32::MAX;
                }
                _ if is_of_block(*init) => {
                    *row = [initial(cx, index, *init, ctaid, 0) as u32; 32];
                    *defined = u32::MAX;
                }
                _ => {}
            }
        }
        for ((init, row), defined) in p
            .rows64
            .iter()
            .zip(self.r64.iter_mut())
            .zip(&mut self.def64)
        {
            match init {
                RowInit::Register => (*row, *defined) = ([UNDEFINED; 32], 0),
                _ if first => {
                    *row =
                        std::array::from_fn(|lane| initial(cx, index, *init, ctaid, lane as u32));
                    *defined = u32::MAX;
                }
                _ if is_of_block(*init) => {
                    *row = [initial(cx, index, *init, ctaid, 0); 32];
                    *defined = u32::MAX;
                }
                _ => {}
            }
        }
        for (i, init) in p.rows_pred.iter().enumerate() {
            let constant = matches!(init, RowInit::Const(_));
            self.p[i] = if matches!(init, RowInit::Const(1..)) {
                u32::MAX
            } else {
                0
            };
            self.def_p[i] = if constant { u32::MAX } else { 0 };
        }
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
        self.let_go = false;
        self.local.fill(0);
        self.frames = [(0, p.local_bytes); 32];
        self.callers.iter_mut().for_each(Vec::clear);
        self.copies.clear();
        self.groups = [0; 32];
        self.issued = 0;
        self.stores.clear();
        self.bulk_groups = [0; 32];
        self.waits.clear();
        self.expired = 0;
        self.polled = 0;
        self.gate = [None; 32];
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

/// What lane `lane` of warp `index` has in a row at the start of block `ctaid`.
fn initial(cx: &Context<'_>, index: u32, init: RowInit, ctaid: [u32; 3], lane: u32) -> u64 {
    let special = match init {
        RowInit::Register => return UNDEFINED,
        RowInit::Const(v) => return v,
        // Set by each call of the function.
        RowInit::Frame(..) => return 0,
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
    let cluster_ctaid = |d: u8| axis(ctaid, d) % axis(cx.cluster, d);
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
        Special::NsmId => 1,
        Special::ClusterId(d) => axis(ctaid, d) / axis(cx.cluster, d),
        Special::NclusterId(d) => axis(cx.grid, d) / axis(cx.cluster, d),
        Special::ClusterCtaid(d) => cluster_ctaid(d),
        Special::ClusterNctaid(d) => axis(cx.cluster, d),
        Special::ClusterCtarank => {
            let [cx_, cy, _] = cx.cluster;
            cluster_ctaid(0) + cx_ * (cluster_ctaid(1) + cy * cluster_ctaid(2))
        }
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
