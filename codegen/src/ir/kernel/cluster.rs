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
use crate::ir::Address;
use crate::ir::hopper::{Hopper, Remote, Side};
use crate::ir::inst::Axis;
use crate::ir::value::{Class, Reg, Type};

/// Blocks of a cluster at most; more than 8 take an attribute of the launch (CUDA C++ Programming Guide, thread block clusters).
const MOST: u32 = 8;

impl Kernel {
    /// A launch has clusters of so many blocks along x, y and z of the grid, 8 at most in all: blocks that run together and copy tiles that they have in common to each other
    /// ([`Kernel::tma_multicast`]). It is said before the grid and shared memory are used. Of an axis that counts tiles a launch has whole clusters: blocks beyond the last tile have
    /// nothing to store.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// k.clusters([2, 1, 1]);
    /// let m = k.size("m", 1000);
    /// k.tiles(Axis::X, m, 64)?;
    /// let nothing = k.build(Arch(90))?;
    /// assert_eq!(nothing.grid(|_| Some(130))?, [4, 1, 1]); // three tiles
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn clusters(&mut self, blocks: [u32; 3]) {
        self.at_line();
        let all = blocks.iter().fold(1u32, |n, &b| n.saturating_mul(b));
        if !(1..=MOST).contains(&all) {
            self.mistake(format!(
                "clusters of {} blocks: a cluster has 1 to {MOST}",
                blocks.map(|n| n.to_string()).join(" x ")
            ));
            return;
        }
        if self.uses_grid() || self.shared_bytes() > 0 {
            self.mistake("clusters are declared before the grid and shared memory are used");
        }
        self.in_clusters(blocks);
    }

    /// The axes of clusters count something, in whole clusters.
    pub(crate) fn check_clusters(&mut self) {
        for (axis, blocks) in [Axis::X, Axis::Y, Axis::Z].into_iter().zip(self.cluster) {
            let whole = self.whole_axes.iter().find(|(known, _)| *known == axis);
            let counts = match whole {
                Some((_, count)) => count % u64::from(blocks) == 0,
                None => self.tile_axes.iter().any(|t| t.axis == axis),
            };
            if blocks > 1 && !counts {
                self.mistake(format!(
                    "clusters of {blocks} blocks along {}, which counts no tiles, or no whole clusters of blocks",
                    ['x', 'y', 'z'][axis as usize]
                ));
            }
        }
    }

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

    /// The rank of this block among those of its cluster along an axis, which counts tiles or blocks already: the block's index modulo the blocks of a cluster.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// k.clusters([4, 1, 1]);
    /// k.blocks(Axis::X, 8)?;
    /// let rank = k.cluster_rank(Axis::X)?;
    /// assert_eq!(k.range(rank), (0, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Counts of blocks that no layout has. An axis that counts nothing yet is a mistake that [`Kernel::build`] reports.
    pub fn cluster_rank(&mut self, axis: Axis) -> Result<Expr, LayoutError> {
        let blocks = i64::from(self.cluster[axis as usize]);
        if blocks == 1 {
            return Ok(self.pool.constant(0));
        }
        let limit = self.grid_limit[axis as usize];
        if limit < blocks as u64 {
            self.mistake(format!(
                "the rank of a block along {}: let the axis count tiles or blocks first",
                ['x', 'y', 'z'][axis as usize]
            ));
            return Ok(self.pool.constant(0));
        }
        let block = self.block_index(axis, limit);
        let clusters = (limit as i64 + blocks - 1) / blocks;
        let rank = Layout::flat(&[blocks, clusters], &[1, 0])?;
        let rank = index(&mut self.pool, &rank, &[block])?;
        // Before it is scaled: the index times the size of a part of a stage may have more than 32 bits.
        Ok(self.pool.pin(rank))
    }

    /// Waits for all threads of the cluster, and orders no accesses but the making of mbarriers.
    pub(crate) fn meet_cluster(&mut self) {
        let orders = false;
        self.push_hopper(None, Hopper::ClusterBarrier { orders });
    }

    /// All threads of the cluster arrive before any goes on, and see what the others wrote to shared memory, their own and that of other blocks
    /// ([`View::in_block`](crate::view::View::in_block)). It stands outside of branches, loops and roles.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// k.clusters([2, 1, 1]);
    /// k.blocks(Axis::X, 2)?;
    /// k.cluster_barrier();
    /// assert!(k.build(Arch(90))?.ptx.contains("barrier.cluster.arrive.release;"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn cluster_barrier(&mut self) {
        self.at_line();
        let orders = true;
        self.push_hopper(None, Hopper::ClusterBarrier { orders });
    }

    /// A load or a store of what lies at the same place of the shared memory of another block of the cluster.
    pub(crate) fn reach(
        &mut self,
        guard: Option<Reg>,
        at: Address,
        rank: Expr,
        (ty, values, stores): (Type, &[Reg], bool),
    ) {
        self.note_width(at, ty.bytes() * values.len() as u32);
        let (block, there) = (self.value(rank), self.reg(Class::B32));
        let remote = Remote {
            at,
            block,
            rank,
            there,
            ty,
            values: values.to_vec(),
            stores,
        };
        self.push_hopper(guard.map(Into::into), Hopper::Remote(remote));
    }

    /// Waits until every stage of the first `uses` uses is released: behind them no arrival is on its way to this block.
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
