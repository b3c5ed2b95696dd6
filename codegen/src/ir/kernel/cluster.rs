//! Clusters: blocks of a launch that run together and reach each other's shared memory.
//!
//! A cluster is a tile of the grid, so that a block's rank along an axis is a layout of its index: `index mod blocks`.
//!
//! ```text
//! clusters of 2 along x      ctaid.x    0  1  2  3  4  5        rank    0  1  0  1  0  1      (2,…):(1,0)
//! ```

use layout_core::{Layout, LayoutError};

use super::{Kernel, RingHandle};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::hopper::{Hopper, Side};
use crate::ir::inst::Axis;
use crate::ir::value::{Class, Reg};

impl Kernel {
    /// A launch has clusters of so many blocks along x, y and z.
    pub(crate) fn in_clusters(&mut self, blocks: [u32; 3]) {
        self.cluster = blocks;
    }

    /// Whether blocks run in clusters.
    pub(crate) fn has_clusters(&self) -> bool {
        self.cluster.iter().any(|&blocks| blocks > 1)
    }

    /// So many blocks along an axis, and more to whole clusters.
    pub(crate) fn whole_clusters(&self, axis: Axis, blocks: u64) -> u64 {
        blocks.next_multiple_of(self.cluster[axis as usize].into())
    }

    /// The rank of this block among those of its cluster along an axis, whose index [`Kernel::block_index`] gave.
    pub(crate) fn cluster_rank(&mut self, axis: Axis) -> Result<Expr, LayoutError> {
        let blocks = i64::from(self.cluster[axis as usize]);
        if blocks == 1 {
            return Ok(self.pool.constant(0));
        }
        let limit = self.grid_limit[axis as usize];
        let block = self.block_index(axis, limit);
        let clusters = (limit as i64 + blocks - 1) / blocks;
        let rank = Layout::flat(&[blocks, clusters], &[1, 0])?;
        let rank = index(&mut self.pool, &rank, &[block])?;
        // Before it is scaled: the index times the size of a part of a stage may have more than 32 bits.
        Ok(self.pool.pin(rank))
    }

    /// Waits for all threads of the cluster.
    pub(crate) fn cluster_barrier(&mut self) {
        self.push_hopper(None, Hopper::ClusterBarrier);
    }

    /// Waits until every stage of the first `uses` uses is given back: behind them no arrival is on its way to this block.
    pub(crate) fn drain_ring(&mut self, ring: &RingHandle, uses: Expr) -> Result<(), LayoutError> {
        let uses = self.pool.pin(uses);
        for behind in 0..ring.stages - ring.lag {
            let behind = self.pool.constant(behind);
            let index = self.pool.add(uses, behind);
            self.wait_stage(ring, Side::Empty, index)?;
        }
        Ok(())
    }

    /// As [`Kernel::release_stage`], to each block of the cluster: every thread where `only` holds tells the block of rank `block`.
    pub(crate) fn release_stage_to(
        &mut self,
        ring: &RingHandle,
        index: Expr,
        (block, only): (Expr, Reg),
    ) -> Result<(), LayoutError> {
        let at = self.barrier_of(ring, Side::Empty, index)?;
        let block = self.value(block);
        let stage = Self::stage_use(ring, index);
        let remote = self.reg(Class::B32);
        self.push_hopper(
            Some(only.into()),
            Hopper::ArriveAt {
                at,
                block,
                remote,
                stage,
            },
        );
        Ok(())
    }
}
