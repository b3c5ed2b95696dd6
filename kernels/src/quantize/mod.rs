//! Matrices quantised to 8-bit floats with a scale for each block: y = x / scale, where the scale takes the largest magnitude of its block to the largest number of the type, 448 of e4m3 or 57,344 of
//! e5m2.
//!
//! ```text
//! 1x128     x: m × k, tile of 64 × 128   ──16-byte vectors, 8 lanes a row──▶ |x| ──reduce over a row──▶ scale ──▶ y = x·(1/scale)
//! 128x128   x: m × k, tile of 128 × 128  ──16-byte vectors──▶ |x| ──reduce over the block of threads──▶ scale ──▶ y
//! row       x: m × k, whole rows         ──▶ |x| ──reduce over a row──▶ scale ──▶ y
//! ```
//!
//! The results are the operands of [`block_scaled()`](crate::block_scaled::block_scaled): scales of 1×128 are stored as (m, k/128) with strides (1, `ld_scale`), those of 128×128 as (m/128, k/128) with strides
//! (`ld_scale`, 1), and those of rows as a vector. The last block of a row or of a column of blocks may be smaller.
//!
//! What is quantised may also be silu(gate)·up of the halves of x, or rows of x in another order ([`Source`]). RMS norms quantise their results likewise ([`RmsNorm`](crate::norm::RmsNorm)).
//!
//! # Numerics
//!
//! A scale is the largest magnitude times 1/448 (or 1/57,344), rounded to f32, and at least 2⁻¹²⁶; a block of zeros has the scale 1. x is multiplied with 1/scale, which is off by at most one unit in the last place of f32,
//! and rounded once to nearest even; what is beyond the largest number becomes that. silu and its product with up are computed in f32 and not rounded before.
//!
//! A block with NaN has the scale NaN and is NaN. A block with ∞ has the scale ∞; ∞ becomes NaN and other elements 0. No block depends on another.

mod blocks;
mod rows;

use std::fmt;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::value::F32;
use layout_codegen::view::{Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::rows::{ELEMENTS, RowTile};

/// Rows and columns of a block of elements with one scale.
pub const BLOCK: i64 = crate::block_scaled::BLOCK;

/// The types of the results.
pub const RESULTS: [Element; 2] = [Element::E4m3, Element::E5m2];

/// The most rows: tiles of 64 that a grid has room for.
pub const MOST_ROWS: i64 = 64 * 65_535;

/// The longest row, in elements.
pub const MOST: i64 = 1 << 20;

/// Which elements have a scale in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scales {
    /// 128 neighbours of a row, as operand a of a product with scales has them.
    Rows128,
    /// Squares of 128 × 128, as operand b has them.
    Squares,
    /// Each row.
    Rows,
}

impl Scales {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rows128, Self::Squares, Self::Rows];
}

impl fmt::Display for Scales {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows128 => "1x128",
            Self::Squares => "128x128",
            Self::Rows => "row",
        })
    }
}

/// What the values are that are quantised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// x, m × k.
    Matrix,
    /// silu(gate)·up of x, m × 2k: gate is the first k columns, up the others. With scales of 1×128.
    Swiglu,
    /// Row `token_of_row[i]` of x, tokens × k, for row i: rows in the order of [experts](crate::experts). With scales of 1×128. A row that x does not have is of zeros.
    Gathered,
}

/// What is quantised, and how.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::quantize::{Quantize, Scales, quantize};
///
/// let what = Quantize::new(Element::Bf16, Element::E4m3, Scales::Rows128);
/// let kernel = quantize(what, 7168, Arch(89))?;
/// assert_eq!(kernel.name(), "quantize_bf16_e4m3_1x128");
/// assert_eq!(kernel.proof.covered, ["y", "scale"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quantize {
    /// The type of x: f32, f16 or bf16.
    pub element: Element,
    /// The type of y: e4m3 or e5m2.
    pub to: Element,
    /// Which elements have a scale in common.
    pub scales: Scales,
    /// Where the values are from.
    pub source: Source,
}

impl Quantize {
    /// x itself, quantised.
    pub fn new(element: Element, to: Element, scales: Scales) -> Self {
        Self {
            element,
            to,
            scales,
            source: Source::Matrix,
        }
    }

    fn validate(self) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        KernelError::unless_among(self.to, &RESULTS)?;
        let is = self.source == Source::Matrix || self.scales == Scales::Rows128;
        KernelError::unless(
            is,
            "scales of SwiGLU or of gathered rows",
            self.scales,
            "1x128",
        )
    }

    fn name(self) -> String {
        let Self {
            element,
            to,
            scales,
            source,
        } = self;
        let source = match source {
            Source::Matrix => "",
            Source::Swiglu => "_swiglu",
            Source::Gathered => "_gathered",
        };
        format!("quantize{source}_{element}_{to}_{scales}")
    }
}

/// The kernel `quantize_<element>_<to>_<scales>(m, k, ld_scale, x, y, scale)`, with `_swiglu` or `_gathered` behind `quantize`; there are `tokens` before m and `token_of_row` behind x for gathered rows. It takes any sizes up to [`MOST_ROWS`] and [`MOST`].
///
/// With [`Scales::Rows`] there is no `ld_scale`, and the kernel is fastest for rows of `columns` elements: it has the tile of [`RowTile::for_arch`] for them, which says how long rows may be. Other kernels do
/// not depend on `columns`.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields do not allow, [`KernelError::Proof`] for an architecture that lacks an instruction: `sm_89` has all.
pub fn quantize(what: Quantize, columns: u64, arch: Arch) -> Result<Proven, KernelError> {
    what.validate()?;
    match what.scales {
        Scales::Rows128 => blocks::of_rows(what, arch),
        Scales::Squares => blocks::of_squares(what, arch),
        Scales::Rows => {
            let tile = RowTile::for_arch(what.element, what.to, columns, arch)?;
            rows::of_rows(&tile, what, arch)
        }
    }
}

/// The largest finite number of a type that is quantised to.
pub(crate) fn largest(to: Element) -> f32 {
    match to {
        Element::S8 => 127.0,
        Element::E5m2 => 57_344.0,
        _ => 448.0,
    }
}

/// The scale of elements of which `most` is the largest magnitude.
pub(crate) fn scale(k: &mut Kernel, most: F32, to: Element) -> F32 {
    let scale = most.mul(k, 1.0 / largest(to));
    let scale = scale.max_nan(k, f32::MIN_POSITIVE);
    most.eq(k, 0.0).select(k, 1.0.into(), scale)
}

/// The larger of a magnitude and that of x; NaN if one of them is.
pub(crate) fn larger(k: &mut Kernel, most: F32, x: F32) -> F32 {
    let size = x.abs(k);
    most.max_nan(k, size)
}

/// x divided by the scales of its elements, in the type that is quantised to.
pub(crate) fn divided(
    k: &mut Kernel,
    x: &Fragment,
    scales: &Fragment,
    to: Element,
) -> Result<Fragment, ViewError> {
    let by = scales.map(k, |k, scale| scale.reciprocal(k))?;
    x.zip(k, &by, |k, x, by| x.mul(k, by))?.convert(k, to)
}

/// x divided by the scale of all its elements, in the type that is quantised to.
pub(crate) fn divided_by(
    k: &mut Kernel,
    x: &Fragment,
    scale: F32,
    to: Element,
) -> Result<Fragment, ViewError> {
    let by = scale.reciprocal(k);
    x.map(k, |k, x| x.mul(k, by))?.convert(k, to)
}

/// silu(gate)·up = gate / (1 + 2^(−gate·log₂ e))·up.
fn gated(k: &mut Kernel, gate: F32, up: F32) -> F32 {
    let e = gate.mul(k, -std::f32::consts::LOG2_E).exp2(k);
    let sigmoid = e.add(k, 1.0).reciprocal(k);
    gate.mul(k, sigmoid).mul(k, up)
}

/// The scales of blocks of 128 along rows: (m, k/128) with strides (1, `pitch`).
pub(crate) fn scales_of_rows(k: &mut Kernel, [blocks, m]: [Expr; 2], pitch: Expr) -> View {
    k.pitched_output("scale", Element::F32, [blocks, m], pitch)
}
