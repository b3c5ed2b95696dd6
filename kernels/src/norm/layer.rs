//! Layer norm of each row of a matrix: yᵢⱼ = (xᵢⱼ − μᵢ)·wⱼ / √(σᵢ² + ε) + bⱼ, μᵢ and σᵢ² the mean and the variance of row i. Rows of 1 to 131,072 elements; f32, f16 or
//! bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──reduce──▶ μ ──▶ x − μ ──▶ squares, masked ──reduce──▶ 1/√(σ² + ε) ─┐
//! w, b: cols, along the columns of the tile ──▶ fragments 1 × cols ──────────────────────────────────────────────────────────────┴──broadcast──▶ y
//! ```
//!
//! The variance is the mean of (x − μ)², in a second pass over the row: no difference of large numbers. Beyond the end of a row, x − μ is no element and
//! is masked out by its coordinate. From `sm_90` on, long rows are in the shared memory of a cluster of blocks ([`RowTile::for_arch`]);
//! elsewhere rows beyond 32,768 elements are read three times.
//!
//! NaN and infinities as in PyTorch: a row with NaN or ∞ gives NaN.

use layout_codegen::ir::{Axis, Cmp, Kernel};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, Fragment};
use layout_codegen::{Arch, Proven};

use super::steps::{Steps, in_f32};
use crate::KernelError;
use crate::rows::{MOST_ROWS, Row, RowTile};

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
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let load = |k: &mut Kernel, tile: &RowTile, j| steps.load(k, tile, &x, j);
    let nothing = |_: &mut Kernel, _| Ok(());
    let row = Row::new(&mut k, tile, (cols, thread), (&load, 1))?;

    // Sums are kept for a step of each thread, to which the others are added.
    let like = steps.place(&mut k, zero)?;
    let sums = k.fragment_of(&like, 0.0)?;
    row.visit(&mut k, &load, nothing, |k, _, x, ()| {
        sums.update_with(k, x, |k, sum, x| sum.add(k, x))
    })?;
    let mean = tile
        .reduce(&mut k, "sums", (&sums, Combine::Add))?
        .map(&mut k, |k, sum| sum.mul(k, inverse))?;
    let centred = |k: &mut Kernel, x: &Fragment| x.zip(k, &mean, |k, x, mean| x.sub(k, mean));

    let squares = k.fragment_of(&like, 0.0)?;
    row.visit(&mut k, &load, nothing, |k, at, x, ()| {
        let inside = centred(k, x)?.map_at(k, |k, x, [_, column]| {
            let column = k.linear(&[(tile.width(), at), (1, column)], 0);
            let square = x.mul(k, x);
            Predicate::of(k, column, Cmp::Lt, cols).select(k, square, 0.0)
        })?;
        squares.update_with(k, &inside, |k, sum, x| sum.add(k, x))
    })?;
    let scale = tile
        .reduce(&mut k, "squares", (&squares, Combine::Add))?
        .map(&mut k, |k, sum| sum.fma(k, inverse, eps).rsqrt(k))?;

    let with_vectors = |k: &mut Kernel, at| steps.with_vectors(k, at);
    row.visit(&mut k, &load, with_vectors, |k, _, x, (to, along)| {
        let along = in_f32(k, &along)?;
        let value = centred(k, x)?
            .zip(k, &scale, |k, x, scale| x.mul(k, scale))?
            .zip(k, &along[0], |k, x, w| x.mul(k, w))?
            .zip(k, &along[1], |k, x, b| x.add(k, b))?
            .convert(k, element)?;
        k.store_fragment(&to, &value)
    })?;
    tile.end(&mut k);
    Ok(k.build(arch)?)
}
