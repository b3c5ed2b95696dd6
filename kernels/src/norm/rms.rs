//! RMS norm of each row of a matrix: yᵢⱼ = xᵢⱼ·wⱼ / √(Σⱼ xᵢⱼ² / cols + ε). Rows of 1 to 131,072 elements; f32, f16 or bf16; computed in f32.
//!
//! ```text
//! x: rows × cols, tile (i, 0) ──16-byte vectors──▶ fragment ──▶ squares ──reduce──▶ 1/√(mean + ε) ─┐
//! w: cols, along the columns of the tile ──▶ fragment 1 × cols ────────────────────────────────────┴──broadcast──▶ y
//! ```
//!
//! The weights are read while the row is stored, one vector of each thread ahead. From `sm_90` on, long rows are in the shared memory of a cluster of blocks ([`RowTile::for_arch`]).
//! Elsewhere rows beyond 32,768 elements are read twice, quantised ones three times. The variants spill up to 116 bytes a thread where a row has more than 24,576 elements.
//!
//! Two variants, alone or together, save passes over memory in a transformer:
//!
//! * **residual**: the row that is normed is h = x + r, rounded to the type of x and stored, as two kernels would do it.
//! * **quantised**: y is e4m3, e5m2 or s8, divided by the scale of its row with which the largest magnitude becomes 448, 57,344 or 127; the scale is an output in f32, and y·scale is the norm. With
//!   [`RmsNorm::blocks`] each 128 elements of a row have a scale, as operand a of a [product with scales](crate::block_scaled). The scale of zeros is 1.
//!
//! NaN and infinities as the formula has them, and PyTorch on a CPU: a row with NaN gives NaN, and ∞ gives NaN where it stands and 0 elsewhere. PyTorch's
//! kernel for GPUs does the same in rows whose length is a multiple of 4, and gives NaN in the whole row otherwise. Quantised, such a row has NaN for its scale, or such a block.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::value::{F32, S32};
use layout_codegen::view::{Combine, Fragment, ViewError};
use layout_codegen::{Arch, Proven};

use super::quantized::{self, Scales};
use super::steps::{Steps, in_f32};
use crate::KernelError;
use crate::quantize::{divided, larger};
use crate::rows::{MOST_ROWS, Row, RowTile};

/// Variants of the RMS norm; the default is the plain one.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::norm::{RmsNorm, rms_norm};
/// use tilewright_kernels::rows::RowTile;
///
/// let tile = RowTile::new(Element::Bf16, 4096)?;
/// let fused = RmsNorm { residual: true, quantized: Some(Element::S8), ..RmsNorm::default() };
/// let kernel = rms_norm(&tile, fused, Arch(80))?;
/// assert_eq!(kernel.name(), "rms_norm_residual_bf16_s8");
/// assert_eq!(kernel.proof.covered, ["h", "y", "scale"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RmsNorm {
    /// What is normed is h = x + r, which is stored.
    pub residual: bool,
    /// The type that y is quantised to: e4m3, e5m2 (from `sm_89`) or s8.
    pub quantized: Option<Element>,
    /// There is a scale for each 128 elements of a row, and not for each row: (rows, cols/128) with strides (1, `ld_scale`). The tile is that of [`RowTile::for_blocks`].
    pub blocks: bool,
}

/// The types that y can be quantised to.
pub const QUANTIZED: [Element; 3] = [Element::E4m3, Element::E5m2, Element::S8];

impl RmsNorm {
    fn name(self, element: Element) -> String {
        let residual = if self.residual { "_residual" } else { "" };
        let to = self.quantized.map_or(String::new(), |to| format!("_{to}"));
        let blocks = if self.blocks { "_1x128" } else { "" };
        format!("rms_norm{residual}_{element}{to}{blocks}")
    }
}

/// The kernel `rms_norm_<element>(rows, cols, x, y, w, eps)`; with a residual there are r and h behind x, and quantised there is scale behind y and the tile is that of
/// [`RowTile::for_result`]. With scales of blocks there is `ld_scale` before scale, and the tile is that of [`RowTile::for_blocks`].
///
/// # Errors
///
/// [`KernelError::Element`] for other types to quantise to than e4m3, e5m2 and s8, [`KernelError::Number`] for scales of blocks with another tile or without a type to quantise to,
/// [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn rms_norm(tile: &RowTile, variant: RmsNorm, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    if let Some(to) = variant.quantized {
        KernelError::unless_among(to, &QUANTIZED)?;
    }
    if variant.blocks {
        quantized::validate(tile, variant)?;
    }
    let mut k = tile.kernel(&variant.name(element));
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    let x = k.input("x", element, &[rows, cols]);
    let residual = variant.residual.then(|| {
        let r = k.input("r", element, &[rows, cols]);
        (r, k.output("h", element, &[rows, cols]))
    });
    let result = variant.quantized.unwrap_or(element);
    let y = k.output("y", result, &[rows, cols]);
    let scales = match variant.quantized {
        None => None,
        Some(to) if variant.blocks => Some(Scales::of_blocks(&mut k, to, [rows, cols])?),
        Some(to) => Some(Scales::of_rows(&mut k, to, rows)),
    };
    let w = k.input("w", element, &[cols]);
    let eps: F32 = k.argument("eps");
    let zero = k.constant(0);
    let steps = Steps {
        tile,
        i,
        thread,
        y,
        along: vec![w],
    };

    // The row that is normed; of a residual, it is stored when it is first read.
    let read =
        |k: &mut Kernel, tile: &RowTile, j: Expr, first: bool| -> Result<Fragment, ViewError> {
            let x = steps.load(k, tile, &x, j)?;
            let Some((r, h)) = &residual else {
                return Ok(x);
            };
            let (x, r) = (x.convert(k, Element::F32)?, steps.load(k, tile, r, j)?);
            let r = r.convert(k, Element::F32)?;
            let sum = x.zip(k, &r, |k, x, r| x.add(k, r))?.convert(k, element)?;
            if first {
                let to = tile.share(k, h, [i, j], thread)?;
                k.store_fragment(&to, &sum)?;
            }
            Ok(sum)
        };
    let load = |k: &mut Kernel, tile: &RowTile, j| read(k, tile, j, true);
    let again = |k: &mut Kernel, tile: &RowTile, j| read(k, tile, j, false);
    let with_vectors = |k: &mut Kernel, at| steps.with_vectors(k, at);
    let normed = |k: &mut Kernel, x: &Fragment, scale: &Fragment, along: &[Fragment]| {
        let along = in_f32(k, along)?;
        x.zip(k, scale, |k, x, scale| x.mul(k, scale))?
            .zip(k, &along[0], |k, x, w| x.mul(k, w))
    };
    // From the sum of the squares, kept for a step of each thread.
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let loaded = if variant.residual { 2 } else { 1 };
    let row = Row::new(&mut k, tile, (cols, thread), (&load, loaded))?;
    let like = steps.place(&mut k, zero)?;
    let squares = k.fragment_of(&like, 0.0)?;
    let nothing = |_: &mut Kernel, _| Ok(());
    row.visit(&mut k, &load, nothing, |k, _, x, ()| {
        squares.update_with(k, x, |k, sum, x| x.fma(k, x, sum))
    })?;
    let scale = tile
        .reduce(&mut k, "squares", (&squares, Combine::Add))?
        .map(&mut k, |k, sum| sum.fma(k, inverse, eps).rsqrt(k))?;

    let mut of_rows = None;
    if let Some(Scales::Rows(of)) = &scales {
        // The largest magnitudes, likewise.
        let most = k.fragment_of(&like, 0.0)?;
        row.visit(&mut k, &again, with_vectors, |k, _, x, (_, along)| {
            let value = normed(k, x, &scale, &along)?;
            most.update_with(k, &value, larger)
        })?;
        of_rows = Some(of.store(&mut k, &steps, &most)?);
    }
    row.visit(&mut k, &again, with_vectors, |k, at, x, (to, along)| {
        let value = normed(k, x, &scale, &along)?;
        let value = match (&scales, &of_rows) {
            (Some(Scales::Rows(of)), Some(scale)) => divided(k, &value, scale, of.to)?,
            (Some(Scales::Blocks(of)), _) => of.quantized(k, &steps, (at, &value))?,
            _ => value.convert(k, element)?,
        };
        k.store_fragment(&to, &value)
    })?;
    tile.end(&mut k);
    Ok(k.build(arch)?)
}
