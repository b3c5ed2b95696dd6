//! Layer norm of each row of a matrix: yᵢⱼ = (xᵢⱼ − μᵢ)·wⱼ / √(σᵢ² + ε) + bⱼ, μᵢ and σᵢ² the mean and the variance of row i. Rows of 1 to 131,072 elements; f32, f16 or
//! bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──reduce──▶ μ ──▶ x − μ ──▶ squares, masked ──reduce──▶ 1/√(σ² + ε) ─┐
//! w, b: cols, along the columns of the tile ──▶ fragments 1 × cols ──────────────────────────────────────────────────────────────┴──broadcast──▶ y
//! ```
//!
//! The variance is the mean of (x − μ)², in a second pass over the registers: no difference of large numbers. Beyond the end of a row, x − μ is no element and
//! is masked out by its coordinate. Rows beyond 32,768 elements are in the registers of a cluster of blocks from `sm_90` on, and read three times elsewhere.
//!
//! NaN and infinities as in PyTorch: a row with NaN or ∞ gives NaN.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Kernel};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, Fragment, ViewError};
use layout_codegen::{Arch, Proven};

use super::steps::Steps;
use crate::KernelError;
use crate::rows::{MOST_ROWS, RowTile};

/// The kernel `layer_norm_<element>(rows, cols, x, y, w, b, eps)`.
///
/// # Errors
///
/// [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn layer_norm(tile: &RowTile, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    let mut k = tile.kernel(&format!("layer_norm_{element}"));
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", element, &[rows, cols]);
    let along = ["w", "b"].map(|name| k.input(name, element, &[cols]));
    let eps: F32 = k.argument("eps");
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    let zero = k.constant(0);
    let steps = Steps {
        tile,
        i,
        thread,
        y,
        along: along.into(),
    };
    let store = |k: &mut Kernel, j, x: &Fragment, scale: &Fragment| {
        steps.each(k, j, x, |k, to, x, along| {
            let value = x
                .zip(k, scale, |k, x, scale| x.mul(k, scale))?
                .zip(k, &along[0], |k, x, w| x.mul(k, w))?
                .zip(k, &along[1], |k, x, b| x.add(k, b))?
                .convert(k, element)?;
            k.store_fragment(to, &value)
        })
    };
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let mean = |k: &mut Kernel, sum: F32| sum.mul(k, inverse);
    let scale = |k: &mut Kernel, sum: F32| sum.fma(k, inverse, eps).rsqrt(k);
    let centred =
        |k: &mut Kernel, x: &Fragment, mean: &Fragment| x.zip(k, mean, |k, x, mean| x.sub(k, mean));
    // The squares of what is inside the row, in tile j: one vector of each thread, to which the others are added.
    let squares = |k: &mut Kernel, x: &Fragment, j: Expr| -> Result<Fragment, ViewError> {
        let (first, like) = (k.scale(j, tile.cols), steps.place(k, zero)?);
        let sums = k.fragment_of(&like, 0.0)?;
        for (step, x) in (0..).zip(x.split(1, tile.steps as usize)?) {
            let x = x.map_at(k, |k, x, [_, column]| {
                let before = k.constant(step * steps.width());
                let (before, square) = (k.add(first, before), x.mul(k, x));
                let column = k.add(before, column);
                Predicate::of(k, column, Cmp::Lt, cols).select(k, square, 0.0)
            })?;
            sums.update_with(k, &x, |k, sum, x| sum.add(k, x))?;
        }
        Ok(sums)
    };
    if tile.is_in_registers() {
        let j = tile.first(&mut k)?;
        let x = steps.load(&mut k, &x, j)?;
        let mean = tile
            .reduce(&mut k, "sums", (&x, Combine::Add))?
            .map(&mut k, mean)?;
        let x = centred(&mut k, &x, &mean)?;
        let squares = squares(&mut k, &x, j)?;
        let scale = tile
            .reduce(&mut k, "squares", (&squares, Combine::Add))?
            .map(&mut k, scale)?;
        store(&mut k, j, &x, &scale)?;
        tile.end(&mut k);
        return Ok(k.build(arch)?);
    }
    let first = steps.share(&mut k, &x, zero)?;
    let sums = k.fragment_of(&first, 0.0)?;
    steps.tiles(&mut k, cols, |k, j| {
        let x = steps.load(k, &x, j)?;
        sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
    })?;
    let mean = sums.reduce(&mut k, 1, Combine::Add)?.map(&mut k, mean)?;
    let like = steps.place(&mut k, zero)?;
    let sums = k.fragment_of(&like, 0.0)?;
    steps.tiles(&mut k, cols, |k, j| {
        let x = steps.load(k, &x, j)?;
        let x = centred(k, &x, &mean)?;
        let squares = squares(k, &x, j)?;
        sums.update_with(k, &squares, |k, sum, x| sum.add(k, x))
    })?;
    let scale = sums.reduce(&mut k, 1, Combine::Add)?.map(&mut k, scale)?;
    steps.tiles(&mut k, cols, |k, j| {
        let x = steps.load(k, &x, j)?;
        let x = centred(k, &x, &mean)?;
        store(k, j, &x, &scale)
    })?;
    Ok(k.build(arch)?)
}
