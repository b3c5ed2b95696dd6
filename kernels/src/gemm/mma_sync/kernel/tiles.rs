//! Blocks that take tile after tile: a launch has as many as the multiprocessors hold, and each walks over C in steps of all of them.
//!
//! ```text
//! for r in 0..⌈m / (rows·tm)⌉            the block (x, y) of rows × columns has the tile (r·rows + x)·tm, (c·columns + y)·tn
//!   for c in 0..⌈n / (columns·tn)⌉
//!
//! for t in 0..⌈tiles / blocks⌉           or, dealt out one by one: the block has the tile of number t·blocks + x in the order of all tiles
//! ```
//!
//! Roles walk by themselves: while consumers store a tile, the producer fills the stages of the next. Uses of stages are counted through all tiles. A tile
//! outside of C is multiplied, of zeros, and not stored, so that roles count alike.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Instructions, Logic, LoopHandle, Reg};
use layout_codegen::ir::{Axis, Cmp};

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::mma_sync::Depth;
use crate::gemm::raster::{TURNS_LIMIT, order_of_deal, turns_of_deal};

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
        let (tm, tn, depth) = (self.plan.tile.0, self.plan.tile.1, self.plan.depth);
        let first: Vec<Expr> = self.spans.iter().map(|span| span.origin).collect();
        // The loops, the outermost first, and how the origins follow from their counters.
        let (loops, origins) = match self.plan.variant.depth {
            Depth::Turns(rows, columns) => {
                let steps = [i64::from(rows) * tm, i64::from(columns) * tn];
                let loops = [("rows", 0), ("columns", 1)].map(|(name, i): (_, usize)| {
                    self.k.open_loop(name, 0, 1, TURNS_LIMIT / steps[i] + 1)
                });
                self.k.open_fresh_region();
                let origins = [0, 1].map(|i: usize| {
                    let before = self.k.scale(loops[i].counter, steps[i]);
                    self.k.add(first[i], before)
                });
                (loops.into(), origins)
            }
            Depth::Dealt(blocks, tiles) => {
                let (turn, origins) = self.open_deal(blocks, tiles)?;
                (vec![turn], origins)
            }
            Depth::Groups | Depth::Batch | Depth::Split(_) => return Ok(self.only_tile()),
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
        let in_a_row = match self.plan.variant.depth {
            Depth::Turns(_, columns) => Some(self.tiles_along(self.n, i64::from(columns) * tn)),
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
        let ordered_roles = self.plan.ordered_roles();
        let before = (0..ordered_roles).map(|taker| {
            let taker = kernel.constant(taker);
            let parts = kernel.scale(number, ordered_roles);
            let parts = kernel.add(parts, taker);
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

    /// The loop of blocks that have tiles dealt out, and the first row and column of a turn's tile.
    fn open_deal(
        &mut self,
        blocks: u32,
        tiles: [u32; 2],
    ) -> Result<(LoopHandle, [Expr; 2]), PlanError> {
        let order = order_of_deal(tiles, blocks)?;
        let turns = turns_of_deal(tiles, blocks) as i64;
        let block = self.k.block_index(Axis::X, blocks.into());
        let turn = self.k.open_loop("tiles", 0, 1, turns);
        self.k.open_fresh_region();
        let kernel = &mut *self.k;
        let before = kernel.scale(turn.counter, blocks.into());
        let number = kernel.add(before, block);
        let tile = [self.plan.tile.0, self.plan.tile.1];
        let [row, column] = &order;
        let row = kernel.index(row, &[number])?;
        let column = kernel.index(column, &[number])?;
        // Pinned: each use would fold the digits of the number into another form.
        let origin = [(row, tile[0]), (column, tile[1])].map(|(digits, step)| {
            let digits = kernel.pin(digits);
            kernel.scale(digits, step)
        });
        self.k.deal(turn.counter, origin, ([self.m, self.n], tile));
        Ok((turn, origin))
    }

    /// Tiles of so many elements along an extent.
    fn tiles_along(&mut self, extent: Expr, tile: i64) -> Expr {
        let round = self.k.constant(tile - 1);
        let end = self.k.add(extent, round);
        self.k.div(end, tile)
    }

    /// Uses of stages by all tiles of the block.
    pub(super) fn uses_of_stages(&mut self) -> Expr {
        let of_a_part = self.tiles_along(self.depth, self.plan.depth);
        if !self.plan.turns.are_several() {
            return of_a_part;
        }
        let [down, across] = self.turns();
        let tiles = self.k.mul(down, across);
        let parts = self.k.scale(tiles, self.plan.ordered_roles());
        self.k.mul(parts, of_a_part)
    }

    /// How often a block moves down and across, or gets a tile: 1 where it has one tile.
    fn turns(&mut self) -> [Expr; 2] {
        let one = self.k.constant(1);
        let (tm, tn) = (self.plan.tile.0, self.plan.tile.1);
        match self.plan.variant.depth {
            Depth::Turns(rows, columns) => [
                self.tiles_along(self.m, i64::from(rows) * tm),
                self.tiles_along(self.n, i64::from(columns) * tn),
            ],
            Depth::Dealt(blocks, tiles) => {
                let turns = turns_of_deal(tiles, blocks) as i64;
                [self.k.constant(turns), one]
            }
            Depth::Groups | Depth::Batch | Depth::Split(_) => [one; 2],
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
        let turns = self.turns();
        for (turn, count) in tiles.loops.iter().zip(turns).rev() {
            self.k.close_loop(turn, count);
        }
        for (span, first) in self.spans.iter_mut().zip(tiles.first) {
            span.origin = first;
        }
    }
}
