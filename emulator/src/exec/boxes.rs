//! Boxes of tensor copies: their rows, the bytes of a row that a copy moves, and where these lie on both sides.
//!
//! A load clips at the element: what lies outside the array is filled. A store clips rows at the array's extent, but along the innermost dimension it writes
//! whole [chunks](CHUNK) of 16 bytes of the row: each that begins inside the extent, as measured on an H100 (`tests/fixtures/h100/tensor_store_edges.csv`). So
//! a store of 64 halves into rows of 13 writes bytes 0 to 31 of each row, 6 of them beyond the extent of 26 bytes.
//!
//! That was measured for tiled stores of two dimensions at coordinates 0. Tiled stores of other ranks, and at other coordinates, are taken to do the same; at a
//! coordinate that is not at a multiple of 16 bytes, chunks are those of the row of the array, and the box ends the last. A row of the box that begins at the
//! extent or beyond it writes nothing. Reductions and im2col stores have not been measured and clip at the element here.

use super::bulk::Piece;
use crate::tensor_map::{Im2col, TensorMap};

/// Bytes that a tiled store writes together.
const CHUNK: u64 = 16;

/// One row of the box: the coordinates of its first element.
pub(super) type Corner = [i64; 5];

/// The rows of a tiled box at `start`, in the order of shared memory.
pub(super) fn tile_rows(map: &TensorMap, start: Corner) -> Vec<Corner> {
    let mut rows = vec![start];
    for d in 1..map.sizes.len() {
        let step = map.step(d);
        let count = map.box_sizes[d].div_ceil(step);
        rows = (0..count)
            .flat_map(|k| {
                let add = i64::from(k * step);
                rows.iter().map(move |row| {
                    let mut row = *row;
                    row[d] += add;
                    row
                })
            })
            .collect();
    }
    rows
}

/// The pixels of an im2col box whose filter stands at `start`, shifted by `offsets`.
pub(super) fn pixel_rows(
    map: &TensorMap,
    c: &Im2col,
    start: Corner,
    offsets: &[u32],
) -> Vec<Corner> {
    let (dims, last) = (c.lower.len(), map.sizes.len() - 1);
    let mut at = start;
    let mut rows = Vec::new();
    for _ in 0..c.pixels {
        let mut row = at;
        for (d, o) in offsets.iter().enumerate().take(dims) {
            row[d + 1] += i64::from(*o);
        }
        rows.push(row);
        // The next position of the filter: along W, then H, then D, then the next image.
        let mut d = 0;
        loop {
            if d == dims {
                at[last] += 1;
                break;
            }
            at[d + 1] += i64::from(map.step(d + 1));
            if at[d + 1] <= map.sizes[d + 1] as i64 - 1 + i64::from(c.upper[d]) {
                break;
            }
            at[d + 1] = i64::from(c.lower[d]);
            d += 1;
        }
    }
    rows
}

/// What clips the rows of a box at the extent of the innermost dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clip {
    /// The element.
    Element,
    /// The chunk that begins inside the extent.
    Chunk,
}

/// The bytes of a row of the box that a copy moves to or from the array, counted from the row's beginning: `from..to` lie in the array, `to..end` behind its
/// extent.
struct Span {
    from: u64,
    to: u64,
    end: u64,
}

/// What a copy of a box of `inner` elements a row moves of `row`.
fn span(map: &TensorMap, row: &Corner, inner: u32, clip: Clip) -> Span {
    let size = map.element.bytes();
    let inside = (1..map.sizes.len()).all(|d| (0..map.sizes[d] as i64).contains(&row[d]));
    let from = (-row[0]).clamp(0, i64::from(inner)) as u64 * size;
    let to = (map.sizes[0] as i64 - row[0]).clamp(0, i64::from(inner)) as u64 * size;
    if !inside || to <= from {
        return Span {
            from: 0,
            to: 0,
            end: 0,
        };
    }
    let row_bytes = u64::from(inner) * size;
    let end = match clip {
        Clip::Chunk if to < row_bytes => {
            let extent = map.sizes[0] * size;
            (to + extent.next_multiple_of(CHUNK) - extent).min(row_bytes)
        }
        _ => to,
    };
    Span { from, to, end }
}

/// The global address of the first byte of `row`, which may lie outside the array.
fn row_address(map: &TensorMap, row: &Corner) -> u64 {
    let first = row[0].wrapping_mul(map.element.bytes() as i64);
    (1..map.sizes.len()).fold(map.address.wrapping_add(first as u64), |address, d| {
        address.wrapping_add(row[d].wrapping_mul(map.strides[d - 1] as i64) as u64)
    })
}

/// The pieces of a box of `inner` elements a row, whose first byte is at `shared`.
pub(super) fn pieces(
    map: &TensorMap,
    rows: &[Corner],
    inner: u32,
    shared: u32,
    clip: Clip,
) -> Vec<Piece> {
    let bytes = u64::from(inner) * map.element.bytes();
    let pitch = map.pitch(bytes);
    let mut out = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let global = row_address(map, row);
        let moved = span(map, row, inner, clip);
        let mut at = 0;
        while at < bytes {
            let mut end = [moved.from, moved.to, moved.end, bytes]
                .into_iter()
                .filter(|e| *e > at)
                .min()
                .unwrap_or(bytes);
            if map.swizzle.span().is_some() {
                end = end.min((at / 16 + 1) * 16);
            }
            let valid = (moved.from..moved.end).contains(&at);
            let linear = shared as u64 + number as u64 * pitch + at;
            out.push(Piece {
                shared: map.swizzle.apply(linear as u32),
                global: valid.then(|| global.wrapping_add(at)),
                bytes: (end - at) as u32,
            });
            at = end;
        }
    }
    out
}

/// What a store writes behind the extent of the innermost dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excess {
    /// The first row of the box where it does.
    pub(super) row: Corner,
    /// The global address of its first byte behind the extent.
    pub(super) address: u64,
    /// Bytes of each row.
    pub(super) bytes: u64,
    /// How many rows.
    pub(super) rows: usize,
}

/// What a store of a box of `inner` elements a row writes behind the extent; `None` if its chunks end there.
pub(super) fn excess(map: &TensorMap, rows: &[Corner], inner: u32) -> Option<Excess> {
    let spans = rows
        .iter()
        .map(|row| (row, span(map, row, inner, Clip::Chunk)));
    let mut beyond = spans.filter(|(_, s)| s.end > s.to);
    let (row, first) = beyond.next()?;
    Some(Excess {
        row: *row,
        address: row_address(map, row).wrapping_add(first.to),
        bytes: first.end - first.to,
        rows: 1 + beyond.count(),
    })
}
