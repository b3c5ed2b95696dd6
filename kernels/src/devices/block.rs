//! Rectangles of a matrix.

use std::ops::Range;

use layout_core::devices::Block;

pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

pub(super) fn elements(block: &Block) -> u64 {
    length(&block.rows).saturating_mul(length(&block.columns))
}

pub(super) fn is_empty(block: &Block) -> bool {
    elements(block) == 0
}

fn common(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// What lies in both.
pub(super) fn intersection(a: &Block, b: &Block) -> Block {
    Block {
        rows: common(&a.rows, &b.rows),
        columns: common(&a.columns, &b.columns),
    }
}

pub(super) fn overlap(a: &Block, b: &Block) -> bool {
    !is_empty(&intersection(a, b))
}

/// Whether `outer` has all of `inner`.
pub(super) fn contains(outer: &Block, inner: &Block) -> bool {
    is_empty(inner) || intersection(outer, inner) == *inner
}

/// `block` without what lies in `hole`: at most four rectangles.
pub(super) fn without(block: &Block, hole: &Block) -> Vec<Block> {
    let hole = intersection(block, hole);
    if is_empty(&hole) {
        return vec![block.clone()];
    }
    let of = |rows: Range<u64>, columns: Range<u64>| Block { rows, columns };
    let parts = [
        of(block.rows.start..hole.rows.start, block.columns.clone()),
        of(hole.rows.end..block.rows.end, block.columns.clone()),
        of(hole.rows.clone(), block.columns.start..hole.columns.start),
        of(hole.rows.clone(), hole.columns.end..block.columns.end),
    ];
    parts.into_iter().filter(|part| !is_empty(part)).collect()
}

/// Elements of C of a product that keep a GPU busy: about a hundred tiles of 128×256.
pub(super) const BUSY: u64 = 3 << 20;

/// What the rows or columns of a part are a multiple of, if it has enough: tiles of kernels.
pub(super) const TILE: u64 = 256;

/// A range in `count` parts, as equal as multiples of [`TILE`] allow if each part has at least one of them, and the last ones shorter. Parts that would be empty
/// are left out.
pub(super) fn cut(range: &Range<u64>, count: u64) -> Vec<Range<u64>> {
    let total = length(range);
    let step = match total.div_ceil(count.max(1)) {
        step if total >= count * TILE => step.next_multiple_of(TILE),
        step => step,
    };
    let at = |part: u64| (range.start + part * step).min(range.end);
    (0..count)
        .map(|part| at(part)..at(part + 1))
        .filter(|part| length(part) > 0)
        .collect()
}

/// Whether `parts` are `whole`, cut along one axis in equal parts that are in order.
pub(super) fn stacked(parts: &[Block], whole: &Block) -> bool {
    let cut = |along: fn(&Block) -> &Range<u64>, across: fn(&Block) -> &Range<u64>| {
        let total = length(along(whole));
        let step = total / parts.len().max(1) as u64;
        let start = along(whole).start;
        step > 0
            && step * parts.len() as u64 == total
            && parts.iter().zip(0..).all(|(part, number)| {
                let at = start + number * step;
                *along(part) == (at..at + step) && across(part) == across(whole)
            })
    };
    !is_empty(whole) && (cut(|b| &b.rows, |b| &b.columns) || cut(|b| &b.columns, |b| &b.rows))
}
