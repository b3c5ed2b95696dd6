//! Persistent blocks: each block computes several tiles of a matrix, one after the other.
//!
//! ```text
//! for r in 0..⌈m / (rows·tm)⌉            the block (x, y) of rows × columns has the tile (r·rows + x, c·columns + y)
//!   for c in 0..⌈n / (columns·tn)⌉
//! ```
//!
//! Each role has its own loop over the tiles. While the consumers store one tile, the producer fills the stages of the next.

use crate::index::Expr;
use crate::ir::{Axis, Kernel};
use crate::view::ViewError;

/// A tile of a persistent block ([`Kernel::persistent`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PersistentTile {
    at: [Expr; 2],
    number: Expr,
}

impl PersistentTile {
    /// Its row and column, counted in tiles. A tile of the last iteration may lie outside of the matrix.
    pub fn at(&self) -> [Expr; 2] {
        self.at
    }

    /// The number of tiles that the block computed before.
    pub fn number(&self) -> Expr {
        self.number
    }
}

impl Kernel {
    /// Runs `body` for each tile of this block in a persistent kernel: tiles of `tile` elements cover a matrix of `extents`. The grid has `blocks` blocks, x along rows of tiles and y
    /// along columns, for all extents. Call it in each role that loads, multiplies or stores tiles. Together the blocks compute each tile once.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // y = x by 33 x 4 blocks.
    /// let mut k = Kernel::new("copy", 128);
    /// let (m, n) = (k.size("m", 1 << 20), k.size("n", 1 << 20));
    /// let (x, y) = (k.input("x", Element::F32, &[m, n]), k.output("y", Element::F32, &[m, n]));
    /// let (thread, shares) = (k.thread(), Layout::parse("((32,4),4):((4,1),128)")?);
    /// k.persistent([m, n], [4, 128], [33, 4], |k, tile| {
    ///     let x = x.tile(k, &[4, 128], &tile.at())?.partition(k, &shares, thread)?;
    ///     let y = y.tile(k, &[4, 128], &tile.at())?.partition(k, &shares, thread)?;
    ///     k.copy(&x, &y)
    /// })?;
    /// let copy = k.build(Arch(80))?;
    /// assert_eq!(copy.grid(|_| Some(1000))?, [33, 4, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::GridAxis`] if an axis counts something else, [`ViewError::Extent`] for a tile without elements; those of the body.
    #[track_caller]
    pub fn persistent<E: From<ViewError>>(
        &mut self,
        extents: [Expr; 2],
        tile: [i64; 2],
        blocks: [u32; 2],
        body: impl FnOnce(&mut Self, PersistentTile) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let first = [
            self.blocks(Axis::X, blocks[0])?,
            self.blocks(Axis::Y, blocks[1])?,
        ];
        let [down, across] = self.turns_of(extents, tile, blocks)?;
        self.for_loop("rows", 0, 1, down, |k, row| {
            k.for_loop("columns", 0, 1, across, |k, column| {
                let before = k.pool.mul(row, across);
                let number = k.pool.add(before, column);
                let turns = [row, column];
                let at = [0, 1].map(|mode: usize| {
                    let before = k.pool.scale(turns[mode], i64::from(blocks[mode]));
                    k.pool.add(before, first[mode])
                });
                body(k, PersistentTile { at, number })
            })
        })
    }

    /// The number of tiles of each block ([`Kernel::persistent`]).
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (m, n) = (k.size("m", 1000), k.size("n", 1000));
    /// let tiles = k.tiles_of_block([m, n], [100, 100], [5, 2])?;
    /// assert_eq!(k.range(tiles), (0, 10)); // 2 down and 5 across
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Extent`].
    #[track_caller]
    pub fn tiles_of_block(
        &mut self,
        extents: [Expr; 2],
        tile: [i64; 2],
        blocks: [u32; 2],
    ) -> Result<Expr, ViewError> {
        self.at_line();
        let [down, across] = self.turns_of(extents, tile, blocks)?;
        Ok(self.pool.mul(down, across))
    }

    fn turns_of(
        &mut self,
        extents: [Expr; 2],
        tile: [i64; 2],
        blocks: [u32; 2],
    ) -> Result<[Expr; 2], ViewError> {
        let mut turns = Vec::new();
        for mode in 0..2 {
            let together = tile[mode].saturating_mul(blocks[mode].into());
            turns.push(self.tiles_in(extents[mode], together)?);
        }
        Ok([turns[0], turns[1]])
    }
}
