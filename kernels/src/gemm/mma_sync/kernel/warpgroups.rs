//! The kernel of warpgroups: one thread has TMA fill the stages, warpgroups multiply them, and write their part of C.
//!
//! ```text
//! producer    wait empty(i), expect A and B, copy A, copy B                 boxes of a panel by rows of the tile
//! consumers   wait full(i), wgmma for each 16 k, wait for i - 1, release i - 1; C         64 rows each, or columns with `swap_ab`
//! ```
//!
//! A block that has a multiprocessor to itself waits for the products of a stage when it has issued those of the next one, so that the tensor cores always
//! have work: the ring's lag is 1. Where blocks share one, another block's products fill the gap, and each stage is given back at once: skinny products
//! wait for memory, and the stage that is held longer is one that is not filled (16×8192×8192 on an H100: 53.0 instead of 54.7 µs). So it is in tf32, where
//! boxes are rounded on their way (4096³: 0.352 instead of 0.367 ms), but in a ping-pong schedule, where one multiplies alone (0.385 instead of 0.480 ms).
//!
//! A plan that is promoted has two sets of sums. The instruction adds a stage to the one, which begins at zero, and each stage's sums are added to
//! the other by f32 additions: `wgmma` of 8-bit floats keeps about 14 bits of a sum, which is then one of 128 products and not of all. While
//! a warpgroup adds, the other one multiplies.
//!
//! In a ping-pong plan the consumers are two roles of a warpgroup each, with half of the rows of a tile. They alternate: one stores while the other multiplies:
//!
//! ```text
//! producer          stages of the first half, of the second half
//! first, second     wait for the other, products of the own half, all complete: pass; C        128 rows each, two products below each other
//! ```
//!
//! The blocks of a cluster copy an operand that they have in common in parts, each to all of them ([`cluster`](super::super::cluster)). A stage is filled by several
//! blocks then: each expects all of its bytes, and waits until the consumers of all have given it back, who arrive at the mbarriers of each block. A block ends when all
//! of them have.
//!
//! Each kernel waits for the grid before it when its mbarriers are made, and lets the next one begin: of products one after the other, the blocks of the next are ready when
//! multiprocessors are free.
//!
//! TMA cuts boxes at the edges of the arrays and fills in zeros, so that there is one loop for all sizes. Registers go from the producer, which needs few, to
//! the consumers, which keep the sums.

use std::sync::Arc;

use layout_codegen::Arch;
use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{
    Addresses, Binary, Factor, Instructions, Matrix, OrderArrival, Reg, RingHandle, Side, Type,
};
use layout_core::MatrixDescriptor;
use layout_core::atoms::wgmma;

use super::Gemm;
use super::assembler::REGISTERS;
use crate::gemm::mma_sync::Specialized;
use crate::gemm::{DataType, PlanError};

/// Rows of C that a warpgroup multiplies at once, or columns in a product with A and B swapped.
const ROWS: i64 = 64;

/// The consumer roles of a ping-pong schedule.
const CONSUMERS: [&str; 2] = ["first", "second"];

/// The number of a consumer role, and of the tile that it multiplies.
type RoleTile = (u32, Expr);

/// Registers of sums: of the rows and columns of products, those of each.
type Sums<'s> = &'s [Vec<Vec<Reg>>];

/// Registers of a producer's thread.
const PRODUCER_REGISTERS: u32 = 40;

impl Gemm<'_> {
    /// Everything behind the choice of the tile.
    pub(super) fn by_warpgroups(&mut self) -> Result<(), PlanError> {
        let (plan, threads) = (self.plan, self.plan.thread_count());
        let parts = plan.parts_of_tile();
        let alone = plan.blocks_per_sm(self.maps, Arch(90)) == 1;
        // With a factor in registers a stage is given back as soon as the products of the next one are under way.
        let lag = alone && (plan.data_type != DataType::Tf32 || parts > 1) && !plan.is_promoted();
        let lag = i64::from(lag || plan.is_through_registers());
        let sides = self.sides.iter();
        let views: Vec<_> = sides
            .map(|side| (&side.stages, plan.read_of_stage(side.maps, side.is_a)))
            .collect();
        // Those of all blocks of the cluster that read a stage.
        let (rows, columns) = plan.cluster_shape();
        let warps = (threads / 32 * rows * columns) as u32 / parts;
        let at = plan.barriers_at(self.maps);
        let ring = self.k.shared_ring(
            "stages",
            (plan.stages_of(self.maps), lag, plan.shares_of_ring()),
            at,
            warps,
            &views,
        )?;
        let zero = self.k.constant(0);
        let first = self.k.compare(Cmp::Eq, self.tid, zero);
        for (map, _) in self.sides.iter().filter_map(|side| side.map.as_ref()) {
            self.k.prefetch_map(*map, first);
        }
        self.k.make_rings(std::slice::from_ref(&ring), first)?;
        self.k.wait_for_grid();
        self.k.launch_dependents();

        for consumer in 0..parts {
            let name = if parts == 1 {
                "consumers"
            } else {
                CONSUMERS[consumer as usize]
            };
            self.k
                .begin_role(name, threads as u32 / parts * (consumer + 1));
            if alone {
                // What the producer leaves, by eights.
                let registers = (REGISTERS - 128 * i64::from(PRODUCER_REGISTERS)) / threads / 8 * 8;
                self.k.set_registers(registers.min(240) as u32, true);
            }
            self.consume(&ring, consumer, lag as u32)?;
        }

        self.k.begin_role("producer", threads as u32 + 128);
        if alone {
            self.k.set_registers(PRODUCER_REGISTERS, false);
        }
        let only = self.k.constant(threads);
        let only = self.k.compare(Cmp::Eq, self.tid, only);
        self.k.begin_if(only, false);
        self.k.open_region();
        let tiles = self.open_tiles()?;
        for (part, &before) in (0..).zip(&tiles.before) {
            self.fill_stages(&ring, part, before)?;
        }
        self.close_tiles(tiles);
        self.drain_stages(&ring)?;
        self.k.close_region();
        self.k.end_if();
        self.k.end_roles();
        Ok(())
    }

    /// A role of consumers: all of them, or one of a ping-pong schedule by its number.
    fn consume(&mut self, ring: &RingHandle, consumer: u32, lag: u32) -> Result<(), PlanError> {
        let tiles = self.open_tiles()?;
        let acc = self.accumulators();
        let stage = self.plan.is_promoted().then(|| self.accumulators());
        let order = (tiles.before[consumer as usize], lag);
        if self.plan.is_through_registers() {
            self.multiply_from_registers(ring, order.0, &acc)?;
        } else if !self.plan.is_ping_pong() {
            self.multiply_stages(ring, order, &acc, (stage.as_deref(), None))?;
            self.k.wgmma_wait(0);
        } else {
            let lane0 = self.lane0();
            let turn = (consumer, tiles.number);
            self.k
                .wait_stage(ring, Side::Order(consumer), tiles.number)?;
            let (_, overlaps) = self.plan.shares_of_ring();
            self.multiply_stages(ring, order, &acc, (None, overlaps.then_some(turn)))?;
            if overlaps {
                // The other warpgroup's products begin behind those that are in flight, without a gap.
                self.k
                    .arrive_in_order(OrderArrival::Order, ring, turn, lane0)?;
                self.k.wgmma_wait(0);
                self.k
                    .arrive_in_order(OrderArrival::Complete, ring, turn, lane0)?;
            } else {
                self.k.wgmma_wait(0);
                self.k
                    .arrive_in_order(OrderArrival::Order, ring, turn, lane0)?;
            }
        }
        self.if_inside(&tiles, |g| {
            g.k.open_fresh_region();
            g.epilogue(&acc)?;
            g.k.close_region();
            Ok(())
        })?;
        self.close_tiles(tiles);
        Ok(())
    }

    /// The predicate of the first lane of a warp.
    fn lane0(&mut self) -> Reg {
        let zero = self.k.constant(0);
        self.k.compare(Cmp::Eq, self.lane, zero)
    }

    /// The producer: part `part` of a tile's rows, and its columns, into the stages.
    fn fill_stages(&mut self, ring: &RingHandle, part: i64, before: Expr) -> Result<(), PlanError> {
        let above = self.k.constant(part * self.plan.stage_rows());
        let (depth, most) = (self.plan.depth(), self.plan.limit() as i64);
        let filling = self.k.open_loop("fill", 0, depth, most);
        let k0 = filling.counter;
        let index = self.k.div(k0, depth);
        let index = self.k.add(before, index);
        self.k.wait_stage(ring, Side::Empty, index)?;
        let bytes = self.plan.stage_bytes(self.maps);
        self.k.expect_bytes(ring, index, bytes)?;
        let from_k = self.k.add(self.first_k, k0);
        let slot = self.k.slot(ring, index);
        for i in 0..self.sides.len() {
            let side = &self.sides[i];
            let (o, stages, origin) = (side.maps, side.stages.clone(), side.origin);
            let Some((map, portion)) = &side.map else {
                continue;
            };
            let rank = self
                .k
                .cluster_rank(Specialized::axis_of_sharing(side.is_a))?;
            for number in 0..portion.boxes {
                let [down, across] = portion.place(self.k, number, rank)?;
                let origin = if side.is_a {
                    self.k.add(origin, above)
                } else {
                    origin
                };
                let (row, col) = o.place(origin, from_k);
                let row = self.k.add(row, down);
                let col = self.k.add(col, across);
                let mut from = vec![row, col];
                from.splice(0..0, self.layer);
                let to = stages.element(self.k, &[down, across, slot, k0])?;
                self.k
                    .copy_box(*map, &from, (to, portion.to), ring, index)?;
            }
        }
        self.k.close_loop(&filling, self.depth);
        Ok(())
    }

    /// A consumer: sums of all tiles in `acc`; those of a stage first in `stage`, if there is such a set. In a part that overlaps the one before,
    /// stages are given back behind its products.
    fn multiply_stages(
        &mut self,
        ring: &RingHandle,
        (before, lag): (Expr, u32),
        acc: &[Vec<Vec<Reg>>],
        (stage, turn): (Option<Sums<'_>>, Option<RoleTile>),
    ) -> Result<(), PlanError> {
        let atom = self.maps.atom;
        let (operand, sum) = (atom.a_type, atom.c_type);
        // In a product with A and B swapped the rows of the instruction are columns of B.
        let (first, second, across) = if self.plan.swap_ab {
            (1, 0, self.plan.tile_of_c().0)
        } else {
            (0, 1, self.plan.tile_of_c().1)
        };
        let instruction = Arc::new(wgmma(across, operand, sum)?);
        let zero = self.k.constant(0);
        let lane0 = self.k.compare(Cmp::Eq, self.lane, zero);
        let rows = self.first_rows();
        let add = self.k.compare(Cmp::Eq, zero, zero);
        let begin = stage.map(|_| self.k.compare(Cmp::Ne, zero, zero));
        let (depth, most) = (self.plan.depth(), self.plan.limit() as i64);
        let uses = self.k.open_loop("multiply", 0, depth, most);
        let k0 = uses.counter;
        let index = self.k.div(k0, depth);
        let index = self.k.add(before, index);
        self.k.wait_stage(ring, Side::Full, index)?;
        let slot = self.k.slot(ring, index);
        let flat = |sums: &[Vec<Vec<Reg>>]| sums.concat().concat();
        let (sums, of_stage) = (flat(acc), stage.map(flat));
        let into = of_stage.as_ref().unwrap_or(&sums);
        // One below the other, and those of a dual product side by side.
        let products = self.plan.variant.products as usize;
        let each = into.len() / rows.len() / products;
        self.k.wgmma_fence();
        for step in 0..self.plan.depth() / instruction.k {
            let k = self.k.constant(step * instruction.k);
            let begins = begin.filter(|_| step == 0);
            let add = (begins.is_some(), begins.unwrap_or(add));
            for (i, d) in into.chunks(each).enumerate() {
                let row = rows[i / products];
                let a = self.matrix(first, ring, (row, k), (index, slot, k0))?;
                let second = second + i % products;
                let b = self.matrix(second, ring, (zero, k), (index, slot, k0))?;
                self.k.wgmma(&instruction, d, (Factor::Shared(a), b), add);
            }
        }
        self.k.wgmma_commit();
        self.k.wgmma_wait(lag);
        if let Some((consumer, turn)) = turn {
            self.k.wait_stage(ring, Side::Complete(consumer), turn)?;
        }
        self.release(ring, index, lane0)?;
        for (sum, part) in sums.iter().zip(of_stage.iter().flatten()) {
            self.k.binary(Binary::Add, Type::F32, *sum, *sum, *part);
        }
        self.k.close_loop(&uses, self.depth);
        Ok(())
    }

    /// The first row of a stage of each of a warpgroup's products: of A, or in a product with A and B swapped the first column of B.
    fn first_rows(&mut self) -> Vec<Expr> {
        let count = self.plan.products_down();
        let kernel = &mut *self.k;
        let first = if self.plan.thread_count() / self.plan.parts() == 128 {
            // A warpgroup by itself.
            kernel.constant(0)
        } else {
            let group = kernel.div(self.tid, 128);
            kernel.scale(group, count * ROWS)
        };
        (0..count)
            .map(|i| {
                let below = kernel.constant(i * ROWS);
                kernel.add(first, below)
            })
            .collect()
    }

    /// A warp gives a stage back: to its own block by the lane where `lane0` holds, to each block of a cluster by the lane of its rank.
    pub(super) fn release(
        &mut self,
        ring: &RingHandle,
        index: Expr,
        lane0: Reg,
    ) -> Result<(), PlanError> {
        if !self.plan.is_clustered() {
            return Ok(self.k.release_stage(ring, index, lane0)?);
        }
        let (rows, columns) = self.plan.cluster_shape();
        let blocks = self.k.constant(rows * columns);
        let one_each = self.k.compare(Cmp::Lt, self.lane, blocks);
        self.k
            .release_stage_to(ring, index, (self.lane, one_each))?;
        Ok(())
    }

    /// The shared memory of a block is there until no other block of its cluster arrives there: the producer waits until all stages are given back. Consumers
    /// write C meanwhile, which a barrier of all threads would wait for.
    fn drain_stages(&mut self, ring: &RingHandle) -> Result<(), PlanError> {
        if !self.plan.is_clustered() {
            return Ok(());
        }
        // Its addresses are not computed before the first copy.
        self.k.open_fresh_region();
        let uses = self.uses_of_stages();
        self.k.drain_ring(ring, uses)?;
        self.k.close_region();
        Ok(())
    }

    /// An operand's part of a stage, from an index of its side and of k.
    pub(super) fn matrix(
        &mut self,
        i: usize,
        ring: &RingHandle,
        (side, k): (Expr, Expr),
        (index, slot, k0): (Expr, Expr, Expr),
    ) -> Result<Matrix, PlanError> {
        let (o, stages) = (self.sides[i].maps, self.sides[i].stages.clone());
        let (row, col) = o.place(side, k);
        let by = [row, col, slot, k0];
        let d = MatrixDescriptor::of(&o.derived, o.bytes, o.k_major)?;
        let of = (&stages, &by[..]);
        Ok(self.k.matrix(of, (&d, o.k_major), (ring, index))?)
    }
}
