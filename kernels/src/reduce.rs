//! The sum of each row of a matrix: yᵢ = Σⱼ xᵢⱼ. Rows of 1 to 131,072 elements; f32, f16 or bf16; summed in f32, and y is of f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment rows × cols ──reduce──▶ fragment rows × 1 ──▶ y
//! ```
//!
//! The fragment of the sums has the layout that the reduction leaves: every thread that had a part of a row has its sum, and the first of them stores it.
//!
//! NaN and infinities as in PyTorch: NaN in a row, or ∞ and −∞ in one, give NaN.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::Combine;
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::rows::{MOST_ROWS, RowTile};

/// The kernel `row_sums_<element>(rows, cols, x, y)`.
///
/// # Errors
///
/// [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn row_sums(tile: &RowTile, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    let mut k = tile.kernel(&format!("row_sums_{element}"));
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows]);
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    let share = |k: &mut Kernel, j| tile.share(k, &x, [i, j], thread);
    let zero = k.constant(0);
    let first = share(&mut k, zero)?;
    let y = y.tile(&mut k, &[tile.rows], &[i])?;
    let y = first.along(&mut k, 0, &y)?;
    let sums = if tile.is_kept() {
        k.load_fragment(&first)?.convert(&mut k, Element::F32)?
    } else {
        // Tile upon tile, and one sum of a row in the end.
        let sums = k.fragment_of(&first, 0.0)?;
        k.for_loop("column", 0, tile.cols, cols, |k, column| {
            let j = k.div(column, tile.cols);
            let x = share(k, j)?;
            let x = k.load_fragment(&x)?.convert(k, Element::F32)?;
            sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
        })?;
        sums
    };
    let sums = sums.reduce(&mut k, 1, Combine::Add)?;
    k.store_fragment(&y, &sums)?;
    Ok(k.build(arch)?)
}
