//! The transpose of an operand: what was contiguous along the side becomes contiguous along k.
//!
//! ```text
//! from: rows × cols, tile (i, j) ──words of a row──▶ shared tile ──elements of a column──▶ to: cols × pitch, tile (j, i)
//! ```
//!
//! A warp reads and writes 128 bytes in a row. The tile's layout is derived from both accesses. Where rows are not aligned to words, elements are
//! read one by one. Of 4096×4096 words an H100 needs 44 µs, in which its memory moves 2.5 TB/s; vectors of four words need as long.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Extent, Instructions, Role, Stride};
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::{Use, View};
use layout_core::Layout;

use super::THREADS;
use crate::gemm::{LIMIT, PlanError};

/// Rows and columns of a tile: a warp has 32 words of a row, and two rows of halves or words are 128 bytes together.
pub(crate) fn tile(element: Element) -> i64 {
    32 * per_word(element).max(2)
}

/// Elements of a word.
fn per_word(element: Element) -> i64 {
    (4 / i64::from(element.bytes())).max(1)
}

/// (thread, value) → row + tile·column, `v` neighbours of a row at a time.
fn shares(element: Element, v: i64) -> Result<Layout, PlanError> {
    let n = tile(element);
    let (warps, parts) = (THREADS / 32, n / (32 * v));
    Ok(Layout::tuple(&[
        Layout::flat(&[32, warps], &[v * n, 1])?,
        Layout::flat(&[v, n / warps, parts], &[n, warps, 32 * v * n])?,
    ])?)
}

/// The tile, laid out for its two accesses.
fn shared(k: &mut Kernel, element: Element, v: i64) -> Result<View, PlanError> {
    let shares = shares(element, v)?;
    let uses = [
        Use::store(&shares).vectors(v),
        Use::load(&shares).transposed(),
    ];
    let n = tile(element);
    Ok(k.shared_for("tile", element, [n, n], &uses)?)
}

/// Fills in the kernel; `width` bytes are read at a time, if rows are not aligned to words.
pub(crate) fn transpose(
    k: &mut Kernel,
    name: &str,
    element: Element,
    width: Option<i64>,
) -> Result<(), PlanError> {
    let bytes = i64::from(element.bytes());
    let whole = width.is_none_or(|width| width >= 4);
    let v = if whole { per_word(element) } else { 1 };
    let n = tile(element);
    k.describe(format!(
        "{name}: the transpose, {} bytes at a time",
        v * bytes
    ));
    let hi = LIMIT as i64;
    let (from, to) = (k.param_pointer("from"), k.param_pointer("to"));
    let [rows, cols, ld, pitch] = ["rows", "cols", "ld", "pitch"].map(|p| k.param_u32(p, hi));
    let mut matrix = |name: &str, base, [down, across]: [Expr; 2], ld, role| {
        let extents = vec![Extent::Value(down), Extent::Value(across)];
        let strides = vec![Stride::Value(ld), Stride::Fixed(1)];
        let view = k.launch_global(name, base, bytes, extents, strides, role);
        k.rows_aligned(&view, if role == Role::Input { v * bytes } else { 16 });
        k.of_element(view, element)
    };
    let x = matrix("from", from, [rows, cols], ld, Role::Input);
    let y = matrix("to", to, [cols, rows], pitch, Role::Output);
    // Block (i, j) of the grid has tile (i, j) of the operand, which is tile (j, i) of its transpose.
    let i = k.block_index(Axis::X, (LIMIT as i64 / n) as u64 + 1);
    let j = k.block_index(Axis::Y, 65_535);
    k.launch_tiles(i, rows, n);
    k.launch_tiles(j, cols, n);
    let (shares, thread) = (shares(element, v)?, k.thread());
    let tile = shared(k, element, v)?;
    let source = x
        .tile(k, &[n, n], &[i, j])?
        .partition(k, &shares, thread)?
        .vectors(k, v)?;
    let put = tile.partition(k, &shares, thread)?.vectors(k, v)?;
    k.copy(&source, &put)?;
    k.barrier();
    let take = tile.transposed().partition(k, &shares, thread)?;
    let target = y
        .tile(k, &[n, n], &[j, i])?
        .partition(k, &shares, thread)?
        .vectors(k, v)?;
    k.copy(&take, &target)?;
    Ok(())
}
