//! Persistent blocks: each block computes several tiles of a matrix, one after the other, in an order that a tile scheduler has.
//!
//! ```text
//! rectangle   for r in 0..⌈m / (rows·tm)⌉            the block (x, y) of rows × columns has the tile (r·rows + x, c·columns + y)
//!               for c in 0..⌈n / (columns·tn)⌉
//! linear      for p = x, x + B, x + 2·B … below      B blocks; the tile of number p, or of the p-th number of a list
//!               ⌈m / tm⌉ · ⌈n / tn⌉
//! ```
//!
//! Each role has its own loop over the tiles, by the same scheduler. While the consumers store one tile, the producer fills the stages of the next.
//!
//! A number becomes a row and a column by quotients and remainders: the matrix has any size. The prover holds them against the order's definition (`prove/memory/cover/deals.rs`).

use layout_core::Layout;

use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Axis, DealOrder, Kernel, Raster};
use crate::view::{View, ViewError};

/// Tiles of a launch, at most: their numbers are 32-bit integers.
const MOST: i64 = i32::MAX as i64;

/// The order in which blocks take the tiles of a matrix of R × C tiles ([`TileScheduler::linear`]).
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a kernel has few orders of tiles"
)]
pub enum TileOrder {
    /// Row by row: tile (0, 0), (0, 1), … (0, C − 1), (1, 0), …
    Rows,
    /// Column by column: tile (0, 0), (1, 0), … (R − 1, 0), (0, 1), …
    Columns,
    /// In groups of so many rows of tiles, each column by column; the last group has the rows that are left. Tiles that blocks compute at the same time then share rows of
    /// one factor and columns of the other in the level-2 cache.
    Groups(u32),
    /// Any other order of a matrix of bounded size: two layouts with as many elements, from the number of a tile to its row and to its column. Tiles beyond the matrix are not stored.
    Layouts([Layout; 2]),
    /// The order of a list, such as the longest tiles first: an input of s32 with one mode, and an element for each tile. The element is the tile's number row by row. The kernel states that
    /// they are distinct ([`Kernel::assume_distinct`]) and from 0 to the number of tiles ([`Kernel::assume_range`]), which makes the list a permutation.
    List(View),
}

/// How persistent blocks share the tiles of a matrix ([`Kernel::persistent`]).
#[derive(Clone, Debug)]
pub struct TileScheduler {
    extents: [Expr; 2],
    tile: [i64; 2],
    blocks: Blocks,
}

/// The blocks of a launch, and the tiles that they take.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a kernel has few schedulers of tiles"
)]
enum Blocks {
    Rectangle([u32; 2]),
    Linear(u32, TileOrder),
}

impl TileScheduler {
    /// Tiles of `tile` elements that cover a matrix of `extents`, for a grid of `blocks`: x along rows of tiles, y along columns. In each iteration the blocks have a rectangle of neighbouring tiles.
    /// Clusters may share what their tiles have in common.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::TileScheduler;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (m, n) = (k.size("m", 1000), k.size("n", 1000));
    /// let tiles = TileScheduler::rectangle([m, n], [100, 100], [5, 2]);
    /// let each = k.tiles_of_block(&tiles)?;
    /// assert_eq!(k.range(each), (0, 10)); // 2 down and 5 across
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rectangle(extents: [Expr; 2], tile: [i64; 2], blocks: [u32; 2]) -> Self {
        Self {
            extents,
            tile,
            blocks: Blocks::Rectangle(blocks),
        }
    }

    /// Tiles of `tile` elements that cover a matrix of `extents`, for a grid of so many blocks along x: block b takes the tiles b, b + `blocks`, b + 2·`blocks`, … in this order.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::{TileOrder, TileScheduler};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (m, n) = (k.size("m", 1000), k.size("n", 1000));
    /// let tiles = TileScheduler::linear([m, n], [100, 100], 7, TileOrder::Groups(4));
    /// let each = k.tiles_of_block(&tiles)?;
    /// assert_eq!(k.range(each), (0, 15)); // 100 tiles for 7 blocks
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn linear(extents: [Expr; 2], tile: [i64; 2], blocks: u32, order: TileOrder) -> Self {
        Self {
            extents,
            tile,
            blocks: Blocks::Linear(blocks, order),
        }
    }
}

/// A tile of a persistent block ([`Kernel::persistent`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PersistentTile {
    at: [Expr; 2],
    number: Expr,
}

impl PersistentTile {
    /// Its row and column, counted in tiles. A tile of the last iteration may lie outside of the matrix, of a rectangle of blocks or of an order by layouts.
    pub fn at(&self) -> [Expr; 2] {
        self.at
    }

    /// The number of tiles that the block computed before.
    pub fn number(&self) -> Expr {
        self.number
    }
}

impl Kernel {
    /// Runs `body` for each tile of this block in a persistent kernel. The grid has the blocks of the scheduler, for all extents. Call it in each role that loads, multiplies or stores tiles, with
    /// the same scheduler. Together the blocks compute each tile once.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_codegen::pipeline::{TileOrder, TileScheduler};
    /// use layout_core::Layout;
    ///
    /// // y = x by 132 blocks.
    /// let mut k = Kernel::new("copy", 128);
    /// let (m, n) = (k.size("m", 1 << 16), k.size("n", 1 << 16));
    /// let (x, y) = (k.input("x", Element::F32, &[m, n]), k.output("y", Element::F32, &[m, n]));
    /// let (thread, shares) = (k.thread(), Layout::parse("((32,4),4):((4,1),128)")?);
    /// let tiles = TileScheduler::linear([m, n], [4, 128], 132, TileOrder::Groups(8));
    /// k.persistent(&tiles, |k, tile| {
    ///     let x = x.tile(k, &[4, 128], &tile.at())?.partition(k, &shares, thread)?;
    ///     let y = y.tile(k, &[4, 128], &tile.at())?.partition(k, &shares, thread)?;
    ///     k.copy(&x, &y)
    /// })?;
    /// let copy = k.build(Arch(80))?;
    /// assert_eq!(copy.grid(|_| Some(1000))?, [132, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::GridAxis`] if an axis counts something else, [`ViewError::Extent`] for a tile without elements; those of the body. Roles with different schedulers, groups without rows,
    /// layouts that differ in their elements and more than 2³¹ tiles are mistakes that [`Kernel::build`] reports.
    #[track_caller]
    pub fn persistent<E: From<ViewError>>(
        &mut self,
        tiles: &TileScheduler,
        body: impl FnOnce(&mut Self, PersistentTile) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        self.one_scheduler(tiles);
        match &tiles.blocks {
            Blocks::Rectangle(blocks) => self.by_rectangles(tiles, *blocks, body),
            Blocks::Linear(blocks, order) => self.by_numbers(tiles, (*blocks, order), body),
        }
    }

    /// The number of tiles of this block ([`Kernel::persistent`]).
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::TileScheduler;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (m, n) = (k.size("m", 1000), k.size("n", 1000));
    /// let tiles = TileScheduler::rectangle([m, n], [100, 100], [5, 2]);
    /// let each = k.tiles_of_block(&tiles)?;
    /// assert_eq!(k.range(each), (0, 10)); // 2 down and 5 across
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Extent`], [`ViewError::GridAxis`].
    #[track_caller]
    pub fn tiles_of_block(&mut self, tiles: &TileScheduler) -> Result<Expr, ViewError> {
        self.at_line();
        match &tiles.blocks {
            Blocks::Rectangle(blocks) => {
                let [down, across] = self.iterations_of(tiles, *blocks)?;
                Ok(self.pool.mul(down, across))
            }
            Blocks::Linear(blocks, order) => self.iterations_of_numbers(tiles, (*blocks, order)),
        }
    }

    /// Loops of roles take the same tiles in the same order, so that what one loads is what another computes with.
    fn one_scheduler(&mut self, tiles: &TileScheduler) {
        if !self.in_role() {
            return;
        }
        // The text has all of a scheduler, its expressions and its list.
        let (role, own) = (self.end_of_roles(), format!("{tiles:?}"));
        let known = &mut self.parting.schedulers;
        if known.first().is_none_or(|(first, _)| *first == role) {
            known.push((role, own));
        } else if !known.iter().any(|(_, known)| *known == own) {
            self.mistake(
                "a role takes tiles by another scheduler than the first role with such loops: give all of them the same (`TileScheduler`)",
            );
        }
    }

    fn by_rectangles<E: From<ViewError>>(
        &mut self,
        tiles: &TileScheduler,
        blocks: [u32; 2],
        body: impl FnOnce(&mut Self, PersistentTile) -> Result<(), E>,
    ) -> Result<(), E> {
        let first = [
            self.blocks(Axis::X, blocks[0])?,
            self.blocks(Axis::Y, blocks[1])?,
        ];
        let [down, across] = self.iterations_of(tiles, blocks)?;
        self.for_loop("rows", 0, 1, down, |k, row| {
            k.for_loop("columns", 0, 1, across, |k, column| {
                let before = k.pool.mul(row, across);
                let number = k.pool.add(before, column);
                let iterations = [row, column];
                let at = [0, 1].map(|mode: usize| {
                    let before = k.pool.scale(iterations[mode], i64::from(blocks[mode]));
                    k.pool.add(before, first[mode])
                });
                body(k, PersistentTile { at, number })
            })
        })
    }

    fn iterations_of(
        &mut self,
        tiles: &TileScheduler,
        blocks: [u32; 2],
    ) -> Result<[Expr; 2], ViewError> {
        let [down, across] = [0, 1].map(|mode: usize| {
            let together = tiles.tile[mode].saturating_mul(blocks[mode].into());
            self.tiles_in(tiles.extents[mode], together)
        });
        Ok([down?, across?])
    }

    fn by_numbers<E: From<ViewError>>(
        &mut self,
        tiles: &TileScheduler,
        (blocks, order): (u32, &TileOrder),
        body: impl FnOnce(&mut Self, PersistentTile) -> Result<(), E>,
    ) -> Result<(), E> {
        let count = self.iterations_of_numbers(tiles, (blocks, order))?;
        let block = self.blocks(Axis::X, blocks)?;
        self.for_loop("tiles", 0, 1, count, |k, iteration| {
            let before = k.pool.scale(iteration, blocks.into());
            let position = k.pool.add(before, block);
            let (at, how) = k.tile_at(tiles, order, position)?;
            let origin = [0, 1].map(|mode: usize| k.pool.scale(at[mode], tiles.tile[mode]));
            k.deal_in_order(iteration, origin, (tiles.extents, tiles.tile), how);
            body(
                k,
                PersistentTile {
                    at,
                    number: iteration,
                },
            )
        })
    }

    /// The number of this block's tiles: ⌊(all − block + blocks − 1) / blocks⌋.
    fn iterations_of_numbers(
        &mut self,
        tiles: &TileScheduler,
        (blocks, order): (u32, &TileOrder),
    ) -> Result<Expr, ViewError> {
        let counts = self.counts(tiles)?;
        let most = counts.map(|n| self.range(n).1);
        let all = if let TileOrder::Layouts([row, column]) = order {
            if row.size() != column.size() {
                self.mistake(format!(
                    "an order of tiles by {row} and {column}: give two layouts with as many elements"
                ));
            }
            self.pool.constant(row.size())
        } else if most[0].saturating_mul(most[1]) > MOST - i64::from(blocks) {
            self.mistake(format!(
                "a matrix of up to {} x {} tiles: there may be fewer than 2^31: take larger tiles, or smaller sizes (`Kernel::size`)",
                most[0], most[1]
            ));
            return Ok(self.pool.constant(0));
        } else {
            self.pool.mul(counts[0], counts[1])
        };
        let block = self.blocks(Axis::X, blocks)?;
        let rounding = self.pool.constant(i64::from(blocks) - 1);
        let rounding = self.pool.sub(rounding, block);
        let end = self.pool.add(all, rounding);
        Ok(self.pool.div(end, blocks.into()))
    }

    /// Rows and columns of tiles.
    fn counts(&mut self, tiles: &TileScheduler) -> Result<[Expr; 2], ViewError> {
        let [rows, columns] = tiles.extents;
        Ok([
            self.tiles_in(rows, tiles.tile[0])?,
            self.tiles_in(columns, tiles.tile[1])?,
        ])
    }

    /// The tile at a position, and what it is made of.
    fn tile_at(
        &mut self,
        tiles: &TileScheduler,
        order: &TileOrder,
        position: Expr,
    ) -> Result<([Expr; 2], Option<DealOrder<Expr>>), ViewError> {
        let counts = self.counts(tiles)?;
        let list = match order {
            TileOrder::Layouts(layouts) => {
                let [row, column] = layouts;
                let row = index(&mut self.pool, row, &[position])?;
                let column = index(&mut self.pool, column, &[position])?;
                return Ok(([row, column], None));
            }
            TileOrder::List(list) => {
                let element = list.load::<u32>(self, &[position])?.to_index(self);
                Some((list.number(), element))
            }
            _ => None,
        };
        let number = list.map_or(position, |(_, element)| element);
        let (at, raster) = match order {
            TileOrder::Columns => {
                let [column, row] = self.digits(number, [counts[1], counts[0]]);
                ([row, column], Raster::Columns)
            }
            TileOrder::Groups(of) => self.in_groups(number, (*of).into(), counts),
            _ => (self.digits(number, counts), Raster::Rows),
        };
        let how = DealOrder {
            position,
            list,
            raster,
        };
        Ok((at, Some(how)))
    }

    /// A number of at least 1, where there is a tile: what may be divided by.
    fn divisor(&mut self, count: Expr) -> Expr {
        let most = self.range(count).1.max(1);
        self.clamp(count, 1, most)
    }

    /// A value that is below a count wherever there is a tile.
    fn below(&mut self, e: Expr, count: Expr) -> Expr {
        match self.range(count).1 - 1 {
            ..1 => self.pool.constant(0),
            most => self.clamp(e, 0, most),
        }
    }

    /// The quotient of a number below the product of two counts by the second, and what is left.
    fn digits(&mut self, number: Expr, [slow, fast]: [Expr; 2]) -> [Expr; 2] {
        let by = self.divisor(fast);
        let quotient = self.quotient(number, by);
        [self.below(quotient, slow), self.remainder(number, by)]
    }

    /// The tile of a number in groups of so many rows, each column by column.
    fn in_groups(&mut self, number: Expr, of: i64, counts: [Expr; 2]) -> ([Expr; 2], Raster<Expr>) {
        if of == 0 {
            self.mistake("groups of 0 rows of tiles: give at least 1 (`TileOrder::Groups`)");
        }
        let [rows, columns] = counts;
        // A group of more rows than there are has them all.
        let of = of.clamp(1, self.range(rows).1.max(1));
        let across = self.divisor(columns);
        let tiles = self.pool.scale(across, of);
        let group = self.quotient(number, tiles);
        let groups = (self.range(rows).1 - 1).max(0) / of;
        let group = self.clamp(group, 0, groups);
        let first = self.pool.scale(group, of);
        let left = self.pool.sub(rows, first);
        let height = self.clamp(left, 1, of);
        let within = self.remainder(number, tiles);
        let column = self.quotient(within, height);
        let column = self.below(column, columns);
        let down = self.remainder(within, height);
        let row = self.pool.add(first, down);
        ([row, column], Raster::Groups { of, group, height })
    }
}
