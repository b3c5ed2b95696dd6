//! Blocks that take tile after tile: a launch has as many as the multiprocessors hold, and each walks over C in steps of all of them.
//!
//! ```text
//! for r in 0..⌈m / (rows·tm)⌉            the block (x, y) of rows × columns has the tile (r·rows + x)·tm, (c·columns + y)·tn
//!   for c in 0..⌈n / (columns·tn)⌉
//! ```
//!
//! Roles walk by themselves: while consumers store a tile, the producer fills the stages of the next. Uses of stages are counted through all tiles. A tile
//! outside of C is multiplied, of zeros, and not stored, so that roles count alike.

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::mma_sync::Depth;
use crate::gemm::raster::TURNS_LIMIT;
use crate::index::Expr;
use crate::ir::{Cmp, Logic, LoopHandle, Reg};

/// The open loops over tiles; none in a block that has one tile.
pub(super) struct Tiles {
    loops: Option<[LoopHandle; 2]>,
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
    pub(super) fn open_tiles(&mut self) -> Tiles {
        let number = self.k.pool.constant(0);
        let Depth::Turns(rows, columns) = self.plan.variant.depth else {
            // A block that fills up a cluster multiplies with the others.
            let mut inside = None;
            if self.plan.is_clustered() {
                inside = Some(self.has_tile(0, None));
                inside = Some(self.has_tile(1, inside));
            }
            return Tiles {
                loops: None,
                number,
                before: vec![number],
                first: Vec::new(),
                inside,
            };
        };
        let (tm, tn, depth) = (self.plan.tile.0, self.plan.tile.1, self.plan.depth);
        let steps = [i64::from(rows) * tm, i64::from(columns) * tn];
        let [down, across] = [("rows", 0), ("columns", 1)]
            .map(|(name, i): (_, usize)| self.k.open_loop(name, 0, 1, TURNS_LIMIT / steps[i] + 1));
        self.k.open_fresh_region();
        let first: Vec<Expr> = self.spans.iter().map(|span| span.origin).collect();
        let mut inside = None;
        for (i, turn) in [&down, &across].into_iter().enumerate() {
            let before = self.k.pool.scale(turn.counter, steps[i]);
            self.spans[i].origin = self.k.pool.add(first[i], before);
            inside = Some(self.has_tile(i, inside));
        }
        let moved = [0, 1].map(|i: usize| self.spans[i].moved_back(self.k).0);
        for side in &mut self.sides {
            side.origin = moved[usize::from(!side.is_a)];
        }
        let in_a_row = self.tiles_along(self.n, steps[1]);
        let of_a_tile = self.tiles_along(self.depth, depth);
        let pool = &mut self.k.pool;
        let rows_before = pool.mul(down.counter, in_a_row);
        let number = pool.add(rows_before, across.counter);
        let takers = self.plan.takers();
        let before = (0..takers).map(|taker| {
            let taker = pool.constant(taker);
            let parts = pool.scale(number, takers);
            let parts = pool.add(parts, taker);
            let before = pool.mul(parts, of_a_tile);
            pool.pin(before)
        });
        Tiles {
            loops: Some([down, across]),
            before: before.collect(),
            number,
            first,
            inside,
        }
    }

    /// Tiles of so many elements along an extent.
    fn tiles_along(&mut self, extent: Expr, tile: i64) -> Expr {
        let round = self.k.pool.constant(tile - 1);
        let end = self.k.pool.add(extent, round);
        self.k.pool.div(end, tile)
    }

    /// Uses of stages by all tiles of the block.
    pub(super) fn uses_of_stages(&mut self) -> Expr {
        let of_a_part = self.tiles_along(self.depth, self.plan.depth);
        if !self.plan.persistent {
            return of_a_part;
        }
        let [down, across] = self.turns();
        let tiles = self.k.pool.mul(down, across);
        let parts = self.k.pool.scale(tiles, self.plan.takers());
        self.k.pool.mul(parts, of_a_part)
    }

    /// How often a block moves down and across: 1 where it has one tile.
    fn turns(&mut self) -> [Expr; 2] {
        let one = self.k.pool.constant(1);
        let Depth::Turns(rows, columns) = self.plan.variant.depth else {
            return [one; 2];
        };
        let (tm, tn) = (self.plan.tile.0, self.plan.tile.1);
        [
            self.tiles_along(self.m, i64::from(rows) * tm),
            self.tiles_along(self.n, i64::from(columns) * tn),
        ]
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
        let Some([down, across]) = tiles.loops else {
            return;
        };
        self.k.close_region();
        let [turns_down, turns_across] = self.turns();
        self.k.close_loop(&across, turns_across);
        self.k.close_loop(&down, turns_down);
        for (span, first) in self.spans.iter_mut().zip(tiles.first) {
            span.origin = first;
        }
    }
}
