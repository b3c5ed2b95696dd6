//! Persistent blocks: a launch has as many as the multiprocessors hold, and each walks over C in steps of all of them.
//!
//! ```text
//! for r in 0..⌈m / (rows·tm)⌉            the block (x, y) of rows × columns has the tile (r·rows + x)·tm, (c·columns + y)·tn
//!   for c in 0..⌈n / (columns·tn)⌉
//!
//! for t in 0..⌈tiles / blocks⌉           linear: the block has the tile of number t·blocks + x in the order of all tiles
//! ```
//!
//! Roles walk by themselves: while consumers store a tile, the producer fills the stages of the next. Uses of stages are counted through all tiles. A tile
//! outside of C is multiplied, of zeros, and not stored, so that roles count alike.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Instructions, Logic, LoopHandle, Reg};
use layout_codegen::ir::{Axis, Cmp};

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::scheduler::{PERSISTENT_LIMIT, TileSchedule, linear_order, linear_tiles_each};

/// The open loops over tiles; none in a block that has one tile.
pub(super) struct Tiles {
    /// The outermost first.
    loops: Vec<LoopHandle>,
    /// Tiles of the block before this one.
    pub(super) number: Expr,
    /// Uses of stages by the parts of tiles before each part of this one.
    pub(super) before: Vec<Expr>,
    /// Origins of the first tile, of C and of each side.
    first: Vec<Expr>,
    /// The tile is in C; none where every tile is.
    inside: Option<Reg>,
}

impl Gemm<'_> {
    /// Begins with the first tile.
    pub(super) fn open_tiles(&mut self) -> Result<Tiles, PlanError> {
        let (tm, tn, depth) = (
            self.plan.tile_of_c().0,
            self.plan.tile_of_c().1,
            self.plan.depth(),
        );
        let first: Vec<Expr> = self.spans.iter().map(|span| span.origin).collect();
        // The loops, the outermost first, and how the origins follow from their counters.
        let (loops, origins) = match self.plan.variant.tiles {
            TileSchedule::Rectangle([rows, columns]) => {
                let steps = [i64::from(rows) * tm, i64::from(columns) * tn];
                let loops = [("rows", 0), ("columns", 1)].map(|(name, i): (_, usize)| {
                    self.k
                        .open_loop(name, 0, 1, PERSISTENT_LIMIT / steps[i] + 1)
                });
                self.k.open_fresh_region();
                let origins = [0, 1].map(|i: usize| {
                    let before = self.k.scale(loops[i].counter, steps[i]);
                    self.k.add(first[i], before)
                });
                (loops.into(), origins)
            }
            TileSchedule::Linear { blocks, tiles } => {
                let (iteration, origins) = self.open_linear(blocks, tiles)?;
                (vec![iteration], origins)
            }
            TileSchedule::Groups
            | TileSchedule::Columns
            | TileSchedule::Batch
            | TileSchedule::SplitK(_) => return Ok(self.only_tile()),
        };
        let mut inside = None;
        for (i, origin) in origins.into_iter().enumerate() {
            self.spans[i].origin = origin;
            inside = Some(self.has_tile(i, inside));
        }
        let moved = [0, 1].map(|i: usize| self.spans[i].moved_back(self.k).0);
        for side in &mut self.sides {
            side.origin = moved[usize::from(!side.is_a)];
        }
        let in_a_row = match self.plan.variant.tiles {
            TileSchedule::Rectangle([_, columns]) => {
                Some(self.tiles_along(self.n, i64::from(columns) * tn))
            }
            _ => None,
        };
        let of_a_tile = self.tiles_along(self.depth, depth);
        let kernel = &mut *self.k;
        let number = match (in_a_row, &loops[..]) {
            (Some(in_a_row), [down, across]) => {
                let rows_before = kernel.mul(down.counter, in_a_row);
                kernel.add(rows_before, across.counter)
            }
            _ => loops[0].counter,
        };
        let parts_of_tile = self.plan.parts();
        let before = (0..parts_of_tile).map(|part| {
            let part = kernel.constant(part);
            let parts = kernel.scale(number, parts_of_tile);
            let parts = kernel.add(parts, part);
            let before = kernel.mul(parts, of_a_tile);
            kernel.pin(before)
        });
        Ok(Tiles {
            before: before.collect(),
            loops,
            number,
            first,
            inside,
        })
    }

    /// The tile of a block that has one.
    fn only_tile(&mut self) -> Tiles {
        let number = self.k.constant(0);
        // A block that fills up a cluster multiplies with the others.
        let mut inside = None;
        if self.plan.is_clustered() {
            inside = Some(self.has_tile(0, None));
            inside = Some(self.has_tile(1, inside));
        }
        Tiles {
            loops: Vec::new(),
            number,
            before: vec![number],
            first: Vec::new(),
            inside,
        }
    }

    /// The loop of a linear schedule, and the first row and column of the tile of an iteration.
    fn open_linear(
        &mut self,
        blocks: u32,
        tiles: [u32; 2],
    ) -> Result<(LoopHandle, [Expr; 2]), PlanError> {
        let order = linear_order(tiles, blocks)?;
        let iterations = linear_tiles_each(tiles, blocks) as i64;
        let block = self.k.block_index(Axis::X, blocks.into());
        let iteration = self.k.open_loop("tiles", 0, 1, iterations);
        self.k.open_fresh_region();
        let kernel = &mut *self.k;
        let before = kernel.scale(iteration.counter, blocks.into());
        let number = kernel.add(before, block);
        let tile = [self.plan.tile_of_c().0, self.plan.tile_of_c().1];
        let [row, column] = &order;
        let row = kernel.index(row, &[number])?;
        let column = kernel.index(column, &[number])?;
        // Pinned: each use would fold the digits of the number into another form.
        let origin = [(row, tile[0]), (column, tile[1])].map(|(digits, step)| {
            let digits = kernel.pin(digits);
            kernel.scale(digits, step)
        });
        self.k
            .deal(iteration.counter, origin, ([self.m, self.n], tile));
        Ok((iteration, origin))
    }

    /// Tiles of so many elements along an extent.
    fn tiles_along(&mut self, extent: Expr, tile: i64) -> Expr {
        let round = self.k.constant(tile - 1);
        let end = self.k.add(extent, round);
        self.k.div(end, tile)
    }

    /// Uses of stages by all tiles of the block.
    pub(super) fn uses_of_stages(&mut self) -> Expr {
        let of_a_part = self.tiles_along(self.depth, self.plan.depth());
        if !self.plan.scheduler.is_persistent() {
            return of_a_part;
        }
        let [down, across] = self.iterations();
        let tiles = self.k.mul(down, across);
        let parts = self.k.scale(tiles, self.plan.parts());
        self.k.mul(parts, of_a_part)
    }

    /// How often a block moves down and across, or gets a tile: 1 where it has one tile.
    fn iterations(&mut self) -> [Expr; 2] {
        let one = self.k.constant(1);
        let (tm, tn) = (self.plan.tile_of_c().0, self.plan.tile_of_c().1);
        match self.plan.variant.tiles {
            TileSchedule::Rectangle([rows, columns]) => [
                self.tiles_along(self.m, i64::from(rows) * tm),
                self.tiles_along(self.n, i64::from(columns) * tn),
            ],
            TileSchedule::Linear { blocks, tiles } => {
                let iterations = linear_tiles_each(tiles, blocks) as i64;
                [self.k.constant(iterations), one]
            }
            TileSchedule::Groups
            | TileSchedule::Columns
            | TileSchedule::Batch
            | TileSchedule::SplitK(_) => [one; 2],
        }
    }

    /// The tile is in C, by its rows (0) or its columns (1), and where another statement holds.
    fn has_tile(&mut self, mode: usize, other: Option<Reg>) -> Reg {
        let extent = [self.m, self.n][mode];
        let own = self.k.compare(Cmp::Lt, self.spans[mode].origin, extent);
        match other {
            Some(other) => self.k.combine(Logic::And, other, own, 0),
            None => own,
        }
    }

    /// What is done for a tile that is in C.
    pub(super) fn if_inside(
        &mut self,
        tiles: &Tiles,
        body: impl FnOnce(&mut Self) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let Some(inside) = tiles.inside else {
            return body(self);
        };
        self.k.begin_if(inside, false);
        body(self)?;
        self.k.end_if();
        Ok(())
    }

    /// Goes on with the next tile.
    pub(super) fn close_tiles(&mut self, tiles: Tiles) {
        if tiles.loops.is_empty() {
            return;
        }
        self.k.close_region();
        let iterations = self.iterations();
        for (iteration, count) in tiles.loops.iter().zip(iterations).rev() {
            self.k.close_loop(iteration, count);
        }
        for (span, first) in self.spans.iter_mut().zip(tiles.first) {
            span.origin = first;
        }
    }
}
