//! Edges: a tile that would reach beyond C is moved back until it ends with C.
//!
//! ```text
//! n = 100, tiles of 64:    0 ─────── 64 ─────── 128      as blocks have them
//!                          0 ─────── 64
//!                               36 ─────── 100           as they are computed: no predicates in the copies
//!                                    64 ── 100           what the second block stores; 36..64 is the first one's
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Instructions, Logic, Reg};
use layout_codegen::ir::{Cmp, Kernel};

use super::LIMIT;

/// One direction of a block's tile in C.
pub(crate) struct Span {
    pub(crate) origin: Expr,
    pub(crate) tile: i64,
    /// Rows or columns that can be read.
    pub(crate) size: Expr,
    /// What a tile's place and its size must be multiples of, so that copies and stores stay aligned.
    pub(crate) multiple: i64,
}

impl Span {
    /// Where the tile is computed, and the two reasons why all of it can be read there: it is whole where it is, or it was moved. The last
    /// tile is moved back until it ends with C, so that its copies need no predicates; what another block owns is not stored. Where that is
    /// not possible it stays.
    pub(crate) fn moved_back(&self, k: &mut Kernel) -> (Expr, [Reg; 2]) {
        let tile = k.constant(self.tile);
        let last = k.add(self.origin, tile);
        let whole = k.compare(Cmp::Le, last, self.size);
        let large = k.compare(Cmp::Ge, self.size, tile);
        let movable = if self.multiple == 1 {
            large
        } else {
            let rest = k.rem(self.size, self.multiple);
            let zero = k.constant(0);
            let aligned = k.compare(Cmp::Eq, rest, zero);
            k.combine(Logic::And, large, aligned, 0)
        };
        let back = k.sub(self.size, tile);
        // Below 0 it is not taken.
        let back = k.bounded(back, LIMIT as i64);
        let back = k.select(movable, back, self.origin);
        let first = k.select(whole, self.origin, back);
        (first, [whole, movable])
    }
}

/// The first row or column of a tile that is not another block's: tiles that were not moved back begin at multiples of their size.
pub(crate) fn first_own(k: &mut Kernel, origin: Expr, tile: i64) -> Expr {
    let kernel = &mut *k;
    let last = kernel.constant(tile - 1);
    let last = kernel.add(origin, last);
    let beyond = kernel.rem(last, tile);
    kernel.sub(last, beyond)
}
