//! The scales of a norm that is quantised: of its rows, or of each 128 elements of a row.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Cmp, Element, Kernel};
use layout_codegen::value::Predicate;
use layout_codegen::view::{Combine, Fragment, View, ViewError};
use layout_core::Layout;

use super::RmsNorm;
use super::steps::Steps;
use crate::KernelError;
use crate::quantize::{BLOCK, MOST_ROWS, divided_by, scale, scales_of_rows};
use crate::rows::RowTile;

/// Where the scales are stored.
pub(super) enum Scales {
    Rows(OfRows),
    Blocks(OfBlocks),
}

/// A scale for each row.
pub(super) struct OfRows {
    pub(super) to: Element,
    scales: View,
}

/// A scale for each 128 elements of a row: a step of a row has whole blocks, and a thread has elements of one of them.
pub(super) struct OfBlocks {
    to: Element,
    scales: View,
}

/// Refuses scales of blocks without a type to quantise to, or with a tile that is not made for them.
pub(super) fn validate(tile: &RowTile, variant: RmsNorm) -> Result<(), KernelError> {
    let whole = tile.vector * i64::from(tile.element.bytes()) == 16 && tile.width() % BLOCK == 0;
    let (given, accepted) = if variant.quantized.is_none() {
        ("no type to quantise to".to_owned(), "e4m3, e5m2 or s8")
    } else if !tile.is_kept() {
        let accepted = "a row that is kept: up to 32,768 elements, from sm_90 on up to 131,072";
        (format!("a row in tiles of {} columns", tile.cols), accepted)
    } else if !whole {
        let accepted = "a multiple of 128: take RowTile::for_blocks";
        (format!("{} columns of a step", tile.width()), accepted)
    } else {
        return Ok(());
    };
    Err(KernelError::Number {
        what: "scales of 1x128",
        given,
        accepted,
    })
}

impl Scales {
    pub(super) fn of_rows(k: &mut Kernel, to: Element, rows: Expr) -> Self {
        let scales = k.output("scale", Element::F32, &[rows]);
        Self::Rows(OfRows { to, scales })
    }

    pub(super) fn of_blocks(
        k: &mut Kernel,
        to: Element,
        [rows, cols]: [Expr; 2],
    ) -> Result<Self, ViewError> {
        let blocks = k.tiles_in(cols, BLOCK)?;
        let pitch = k.size("ld_scale", MOST_ROWS);
        let scales = scales_of_rows(k, [blocks, rows], pitch);
        Ok(Self::Blocks(OfBlocks { to, scales }))
    }
}

impl OfRows {
    /// Stores the scales of the rows of which a thread has found the magnitudes `most`.
    pub(super) fn store(
        &self,
        k: &mut Kernel,
        steps: &Steps<'_>,
        most: &Fragment,
    ) -> Result<Fragment, ViewError> {
        let (tile, zero) = (steps.tile, k.constant(0));
        let like = steps.place(k, zero)?;
        let scales = self.scales.tile(k, &[tile.rows], &[steps.i])?;
        let scales = like.along(k, 0, &scales)?;
        let most = tile.reduce(k, "largest", (most, Combine::MaxNan))?;
        let scale = most.map(k, |k, most| scale(k, most, self.to))?;
        tile.once(k, |k| k.store_fragment(&scales, &scale))?;
        Ok(scale)
    }
}

impl OfBlocks {
    /// Stores the scales of the blocks of step `at`, and quantises its elements.
    pub(super) fn quantized(
        &self,
        k: &mut Kernel,
        steps: &Steps<'_>,
        (at, value): (Expr, &Fragment),
    ) -> Result<Fragment, ViewError> {
        let (tile, thread) = (steps.tile, steps.thread);
        let threads = i64::from(tile.threads);
        // Threads of a block, and of a row.
        let (lanes, across) = (BLOCK / tile.vector, threads / tile.rows);
        let most = value.map(k, |k, y| y.abs(k))?;
        let most = most.combine(k, Combine::MaxNan)?;
        let of_block = Layout::flat(&[lanes, threads / lanes], &[0, 1])?;
        let most = k.reduce(most, &of_block, Combine::MaxNan)?;
        let scale = scale(k, most, self.to);
        let (row, column) = (k.div(thread, across), k.rem(thread, across));
        let row = k.linear(&[(tile.rows, steps.i), (1, row)], 0);
        let block = k.div(column, lanes);
        let block = k.linear(&[(tile.width() / BLOCK, at), (1, block)], 0);
        let (lane, zero) = (k.rem(thread, lanes), k.constant(0));
        let first = Predicate::of(k, lane, Cmp::Eq, zero);
        k.when(first, |k| self.scales.store(k, &[block, row], scale))?;
        divided_by(k, value, scale, self.to)
    }
}
