//! Modes of an output that the blocks of a grid of a fixed size share without a loop, such as a row of partial sums for each block.
//!
//! Where a launch has exactly B blocks along an axis, block b stores what begins at `t·b` along the mode. The intervals `[t·b, t·b + t)` are apart, and together they
//! are `[0, t·B)`. If the mode has at most `t·B` elements, whatever the sizes are, they cut it into tiles as the grid of [`Kernel::tiles`](crate::ir::Kernel::tiles) does. A block whose
//! tile is behind the end of the mode has none: then it must store nothing.
//!
//! ```text
//! y: B × n      block b stores row b                   t = 1
//! y: 1000       128 blocks store 8 elements each       t = 8: the blocks from 125 on must store nothing
//! ```

use super::Output;
use crate::prove::algebra::value::{Lin, Mono};

impl Output<'_> {
    /// The tiling of a mode in which stores begin at a multiple of the block's index: origin, extent, elements of a tile.
    pub(super) fn by_block(&mut self, first: &Lin, extent: &Lin) -> Option<(Lin, Lin, i64)> {
        let [(mono, tile)] = first.terms.list()[..] else {
            return None;
        };
        let tile = tile.one().filter(|tile| *tile > 0)?;
        let mut whole = self.trace.whole_axes.iter();
        let &(block, blocks) = whole.find(|(block, _)| mono == Mono::of(*block))?;
        let all = i128::from(blocks) * i128::from(tile);
        let covers = self.trace.symbols.range(extent).1 <= all;
        covers.then(|| (Lin::symbol(block).scale(tile), *extent, tile))
    }
}
