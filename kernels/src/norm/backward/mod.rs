//! Backward of RMS norm and layer norm. Rows of 1 to 131,072 elements; f32, f16 or bf16; computed in f32.
//!
//! ```text
//! x̂ = x·r                  r = 1/√(mean of x² + ε)          RMS norm
//! x̂ = (x − μ)·r            r = 1/√(σ² + ε)                  layer norm
//! g = dy·w
//! dx = r·(g − x̂·mean(g·x̂))                                  RMS norm: the means are of a row
//! dx = r·(g − x̂·mean(g·x̂) − mean(g))                        layer norm
//! dw = sum of dy·x̂ over the rows     db = sum of dy over the rows, of the layer norm
//! ```
//!
//! The forward pass saves nothing: r and μ are computed again. A row of up to 8192 elements of x and dy is read once and stays in registers (`resident`); the next tile is loaded while one
//! is computed:
//!
//! ```text
//! block b of B:   tiles b, b + B, b + 2B … of x and dy ──▶ dx
//!                 dy·x̂, dy ──added in registers──▶ row b of dw_parts, db_parts: B × cols of f32
//! last kernel:    columns of dw_parts, db_parts ──added──▶ dw, db
//! ```
//!
//! Longer rows are read twice (`streamed`), of the layer norm three times, because no block has registers for the sums of all columns: a first kernel has the means of each row, a second one has dx and
//! the parts by tiles of columns.
//!
//! There are no atomic operations. Each sum has a fixed order: a thread adds its rows one after the other, a block adds the rows of its tile along
//! a tree, and the last kernel adds the blocks. So dx of a row does not depend on other rows, and dw and db depend on the number of rows and blocks, never on timing.
//!
//! NaN and infinities as the formulas have them: a row with NaN or ∞ in x or dy gives NaN in dx; dw and db have NaN where a row adds one.

mod columns;
mod resident;
mod streamed;

use std::fmt;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::view::{Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::rows::RowTile;

/// Which norm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Norm {
    /// [`rms_norm`](super::rms_norm)
    Rms,
    /// [`layer_norm`](super::layer_norm)
    Layer,
}

impl Norm {
    /// The gradients of the vectors along the rows: dw, and of the layer norm db.
    pub fn gradients(self) -> &'static [&'static str] {
        match self {
            Norm::Rms => &["dw"],
            Norm::Layer => &["dw", "db"],
        }
    }
}

impl fmt::Display for Norm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Norm::Rms => "rms_norm",
            Norm::Layer => "layer_norm",
        })
    }
}

/// The most blocks that add rows.
const MOST_BLOCKS: u32 = 4096;

/// Two blocks on each multiprocessor of an H100 or H200.
pub const BLOCKS: u32 = 264;

/// The kernels of a backward, in the order of their launches.
///
/// * `<norm>_backward_<element>(rows, cols, x, dy, w, dx, dw_parts, eps)`, of the layer norm with `db_parts` behind `dw_parts`. The parts are blocks × cols of f32.
/// * `<norm>_backward_<element>_sums(cols, dw_parts, dw)`, of the layer norm `(cols, dw_parts, db_parts, dw, db)`.
///
/// For rows that are not in registers there is one before them, `<norm>_backward_<element>_means(rows, cols, x, dy, w, scale, along, eps)`, of the layer norm with `mean` and `of_g` behind `along`: a number
/// of f32 for each row, which the next kernel has in place of eps. Of their parts there is a row for every 16 blocks.
///
/// The tile is that of [`RowTile::backward`].
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::norm::{BLOCKS, Norm, norm_backward};
/// use tilewright_kernels::rows::RowTile;
///
/// let tile = RowTile::backward(Element::Bf16, 1000)?;
/// let kernels = norm_backward(Norm::Layer, &tile, BLOCKS, Arch(80))?;
/// assert_eq!(kernels[0].proof.covered, ["dx", "dw_parts", "db_parts"]);
/// assert_eq!(kernels[1].proof.covered, ["dw", "db"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Number`] for no block or more than 4096, [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn norm_backward(
    norm: Norm,
    tile: &RowTile,
    blocks: u32,
    arch: Arch,
) -> Result<Vec<Proven>, KernelError> {
    if !(1..=MOST_BLOCKS).contains(&blocks) {
        return Err(KernelError::Number {
            what: "blocks",
            given: blocks.to_string(),
            accepted: "1 to 4096",
        });
    }
    let of_columns = |blocks| columns::of_columns(norm, tile.element, blocks, arch);
    if tile.is_kept() {
        let rows = resident::of_rows(norm, tile, blocks, arch)?;
        return Ok(vec![rows, of_columns(blocks)?]);
    }
    let means = streamed::means(norm, tile, arch)?;
    let blocks = blocks.div_ceil(16);
    let tiles = streamed::of_tiles(norm, tile, blocks, arch)?;
    Ok(vec![means, tiles, of_columns(blocks)?])
}

/// The parts of dw and db: a row of f32 for each block, made by `declare`.
fn parts(
    norm: Norm,
    k: &mut Kernel,
    declare: fn(&mut Kernel, &str, Element, &[Expr]) -> View,
    blocks: u32,
    cols: Expr,
) -> Vec<View> {
    let all = k.constant(blocks.into());
    let names = norm.gradients().iter();
    let parts = names.map(|name| declare(k, &format!("{name}_parts"), Element::F32, &[all, cols]));
    parts.collect()
}

/// Lets the next kernel be launched while this one ends, where the architecture can.
fn launch_next(k: &mut Kernel, arch: Arch) {
    if arch >= Arch(90) {
        k.launch_dependents();
    }
}

/// The other end of [`launch_next`].
fn wait_for_last(k: &mut Kernel, arch: Arch) {
    if arch >= Arch(90) {
        k.wait_for_grid();
    }
}

/// Numbers of the rows of a tile, rows × 1.
struct Means {
    /// r; 0 in rows behind the last.
    scale: Fragment,
    /// The mean of g·x̂.
    along: Fragment,
    /// The mean of g, for the layer norm.
    of_g: Option<Fragment>,
}

impl Means {
    /// dx of x̂ and g.
    fn gradient(
        &self,
        k: &mut Kernel,
        normed: &Fragment,
        g: &Fragment,
    ) -> Result<Fragment, ViewError> {
        let along = self.along.map(k, |k, along| along.neg(k))?;
        let mut d = g.zip3(k, [normed, &along], |k, g, x, along| x.fma(k, along, g))?;
        if let Some(mean) = &self.of_g {
            d = d.zip(k, mean, |k, d, mean| d.sub(k, mean))?;
        }
        d.zip(k, &self.scale, |k, d, scale| d.mul(k, scale))
    }
}
