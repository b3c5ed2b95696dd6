//! Softmax of each row of a matrix: yᵢⱼ = exp(xᵢⱼ − mᵢ) / Σⱼ exp(xᵢⱼ − mᵢ), mᵢ the maximum of row i. Rows of 1 to 131,072 elements; f32, f16 or bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──▶ maximum ──▶ exp2((x − m)·log₂e) ──▶ sum ──▶ e/s ──▶ y
//! ```
//!
//! A row stays in the registers of a warp, or of the block, and x is read once. The lanes and warps that share a row combine their parts by what the layout of
//! the fragment says: [`Fragment::reduce`](layout_codegen::view::Fragment::reduce). Rows beyond 32,768 elements are in the registers of a cluster of blocks from `sm_90` on. Elsewhere they are read
//! twice: first each thread keeps a running maximum and the sum that belongs to it.
//!
//! NaN and infinities as in PyTorch: a row with NaN or +∞ gives NaN, a row of −∞ gives NaN, and −∞ in another row gives 0.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::{Combine, Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::online::{Online, exp, total};
use crate::rows::{MOST_ROWS, RowTile};

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
    // What this thread has of tile j of a matrix; beyond the end of a row it is −∞, which adds nothing.
    let share = |k: &mut Kernel, of: &View, j| {
        tile.share(k, of, [i, j], thread)?
            .filled(k, f32::NEG_INFINITY)
    };
    let load = |k: &mut Kernel, j| -> Result<Fragment, ViewError> {
        let x = share(k, &x, j)?;
        k.load_fragment(&x)?.convert(k, Element::F32)
    };
    let store = |k: &mut Kernel, j, value: &Fragment| -> Result<(), ViewError> {
        let (y, value) = (share(k, &y, j)?, value.convert(k, element)?);
        k.store_fragment(&y, &value)
    };
    if tile.is_in_registers() {
        let j = tile.first(&mut k)?;
        let x = load(&mut k, j)?;
        let most = tile.most_of_block(&mut k, &x)?;
        let e = x.zip(&mut k, &most, exp)?;
        let sum = e.reduce(&mut k, 1, Combine::Add)?;
        let scale = if tile.blocks == 1 {
            sum.map(&mut k, |k, sum| sum.reciprocal(k))?
        } else {
            let own = [most, sum.clone()].map(|of| of.thread_values(&mut k));
            let [most, of_block] = own;
            let most = most?[0];
            let all = tile.of_ranks(&mut k, "parts", [most, of_block?[0]])?;
            let [m, all] = total(&mut k, all, &tile.ranks()?)?;
            let by = all.reciprocal(&mut k);
            let scale = exp(&mut k, most, m).mul(&mut k, by);
            sum.map(&mut k, |_, _| scale)?
        };
        let value = e.zip(&mut k, &scale, |k, e, scale| e.mul(k, scale))?;
        store(&mut k, j, &value)?;
        tile.end(&mut k);
        return Ok(k.build(arch)?);
    }
    let online = Online::new(&mut k);
    k.for_loop("column", 0, tile.cols, cols, |k, column| {
        let j = k.div(column, tile.cols);
        let x = load(k, j)?;
        online.add(k, &x)
    })?;
    let [m, sum] = online.total(&mut k, &tile.block()?)?;
    let scale = sum.reciprocal(&mut k);
    k.for_loop("column", 0, tile.cols, cols, |k, column| {
        let j = k.div(column, tile.cols);
        let x = load(k, j)?;
        let value = x.map(k, |k, x| exp(k, x, m).mul(k, scale))?;
        store(k, j, &value)
    })?;
    Ok(k.build(arch)?)
}
