//! Softmax of each row of a matrix: yᵢⱼ = exp(xᵢⱼ − mᵢ) / Σⱼ exp(xᵢⱼ − mᵢ), mᵢ the maximum of row i. Rows of 1 to 131,072 elements; f32, f16 or bf16; computed in f32.
//!
//! ```text
//! x: rows × cols ──▶ step by step of each thread: maximum m so far, sum of exp2((x − m)·log₂e) ──▶ of the row ──▶ exp2((x − m)·log₂e) / sum ──▶ y
//! ```
//!
//! A row is visited twice. The threads that share it combine their maxima and sums. It stays in the registers of a warp, or of the block, as it was loaded, and x is read once. From `sm_90` on,
//! long rows stay in the shared memory of a cluster of blocks ([`RowTile::for_arch`]). Elsewhere rows beyond 32,768 elements are read twice.
//!
//! NaN and infinities as in PyTorch: a row with NaN or +∞ gives NaN, a row of −∞ gives NaN, and −∞ in another row gives 0.

use layout_codegen::ir::{Axis, Kernel};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::online::{Online, exp};
use crate::rows::{MOST_ROWS, Row, RowTile};

/// The kernel `softmax_<element>(rows, cols, x, y)`.
///
/// # Errors
///
/// [`KernelError::Proof`] for an architecture that lacks an instruction: `sm_75` has no bf16.
pub fn softmax(tile: &RowTile, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    let mut k = tile.kernel(&format!("softmax_{element}"));
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[rows, cols]);
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    let load = |k: &mut Kernel, tile: &RowTile, j| tile.load_logits(k, &x, [i, j], thread);
    let nothing = |_: &mut Kernel, _| Ok(());
    let row = Row::new(&mut k, tile, (cols, thread), (&load, 1))?;
    let online = Online::new(&mut k);
    row.visit(&mut k, &load, nothing, |k, _, x, ()| online.add(k, x))?;
    let own = online.total(&mut k, &tile.groups()?)?;
    let [m, sum] = tile.over_blocks(&mut k, own)?;
    let scale = sum.reciprocal(&mut k);
    row.visit(&mut k, &load, nothing, |k, at, x, ()| {
        let value = x.map(k, |k, x| exp(k, x, m).mul(k, scale))?;
        let (to, value) = (
            tile.place(k, &y, [i, at], thread)?,
            value.convert(k, element)?,
        );
        k.store_fragment(&to, &value)
    })?;
    tile.end(&mut k);
    Ok(k.build(arch)?)
}
