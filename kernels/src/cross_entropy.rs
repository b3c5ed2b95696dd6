//! Cross entropy of each row of logits with a target class, and its gradient: lossᵢ = log Σⱼ exp(xᵢⱼ) − xᵢₜ and dxᵢⱼ = scale·(exp(xᵢⱼ) / Σⱼ exp(xᵢⱼ) − [j = t]), t the
//! target of row i. Rows of 1 to 131,072 classes; f32, f16 or bf16; computed in f32, the loss is of f32.
//!
//! ```text
//! x: rows × cols ──▶ maximum m, sum of exp(x − m), x at the target ──▶ loss: rows
//!                └─▶ exp(x − m)/sum − [j = t], times scale         ──▶ dx: rows × cols
//! ```
//!
//! The gradient is stored by the same kernel, so that no other reads the logits again. Up to 32,768 classes stay in the registers of a block; from `sm_90` on, long rows stay in the shared
//! memory of a cluster of blocks ([`RowTile::for_arch`]). Elsewhere longer rows are read twice, the second time mostly from the L2 cache. With the mean of the losses as the result, `scale` is 1/rows, or the gradient of the result over rows.
//!
//! A target outside of 0..cols, such as PyTorch's `ignore_index` −100, gives a loss of 0 and a gradient of 0. NaN and infinities as in PyTorch: NaN or +∞ in a row gives NaN, and so does a row of −∞.

use std::f32::consts::LN_2;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{BrainPair, F32, HalfPair, Predicate, S32};
use layout_codegen::view::{View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::online::{Online, exp};
use crate::rows::{MOST_ROWS, Row, RowTile};

/// The kernel `cross_entropy_<element>(rows, cols, x, target, loss, dx, scale)`: target has s32.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::cross_entropy::cross_entropy;
/// use tilewright_kernels::rows::RowTile;
///
/// let kernel = cross_entropy(&RowTile::new(Element::Bf16, 128_256)?, Arch(80))?;
/// assert_eq!(kernel.proof.covered, ["loss", "dx"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Proof`] for an architecture that lacks an instruction: `sm_75` has no bf16.
pub fn cross_entropy(tile: &RowTile, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    let mut k = tile.kernel(&format!("cross_entropy_{element}"));
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let x = k.input("x", element, &[rows, cols]);
    let target = k.input("target", Element::S32, &[rows]);
    let loss = k.output("loss", Element::F32, &[rows]);
    let dx = k.output("dx", element, &[rows, cols]);
    let scale: F32 = k.argument("scale");
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    // The row of a thread's elements, and its target; outside of 0..cols there is none.
    let across = i64::from(tile.threads) / tile.rows;
    let row = k.div(thread, across);
    let of_thread = k.linear(&[(tile.rows, i), (1, row)], 0);
    let target: S32 = target.load(&mut k, &[of_thread])?;
    let classes = S32::index(&mut k, cols);
    let (low, high) = (target.ge(&mut k, 0), target.lt(&mut k, classes));
    let counts = low.and(&mut k, high);
    let target = target.to_index(&mut k);
    let load = |k: &mut Kernel, tile: &RowTile, j| tile.load_logits(k, &x, [i, j], thread);
    // The maximum of the row, and the sum of the powers.
    let nothing = |_: &mut Kernel, _| Ok(());
    let row = Row::new(&mut k, tile, (cols, thread), (&load, 1))?;
    let online = Online::new(&mut k);
    row.visit(&mut k, &load, nothing, |k, _, x, ()| online.add(k, x))?;
    let own = online.total(&mut k, &tile.groups()?)?;
    let [m, sum] = tile.over_blocks(&mut k, own)?;
    // Outside of the row, what is loaded is not used.
    let inside = k.clamp(target, 0, tile.most - 1);
    let chosen = element_of(&mut k, &x, element, [of_thread, inside])?;
    let log = sum.log2(&mut k).fma(&mut k, LN_2, m).sub(&mut k, chosen);
    let value = counts.select(&mut k, log, 0.0);
    let zero = k.constant(0);
    let like = tile.place(&mut k, &x, [i, zero], thread)?;
    let to = loss.tile(&mut k, &[tile.rows], &[i])?;
    let to = like.along(&mut k, 0, &to)?;
    let value = k.fragment_of(&to, value)?;
    tile.once(&mut k, |k| k.store_fragment(&to, &value))?;

    let by = sum.reciprocal(&mut k).mul(&mut k, scale);
    let (step_of_target, ignored) = (k.div(inside, tile.width()), counts.not());
    row.visit(&mut k, &load, nothing, |k, at, x, ()| {
        let d = x.map(k, |k, x| exp(k, x, m).mul(k, by))?;
        let has_target = Predicate::of(k, at, Cmp::Eq, step_of_target);
        k.when(has_target, |k| {
            let with_target = d.map_at(k, |k, d, [_, column]| {
                let column = k.linear(&[(tile.width(), at), (1, column)], 0);
                let less = d.sub(k, scale);
                Predicate::of(k, column, Cmp::Eq, target).select(k, less, d)
            })?;
            d.assign(k, &with_target)
        })?;
        k.when(ignored, |k| d.update(k, |_, _| 0.0.into()))?;
        let (to, d) = (tile.place(k, &dx, [i, at], thread)?, d.convert(k, element)?);
        k.store_fragment(&to, &d)
    })?;
    tile.end(&mut k);
    Ok(k.build(arch)?)
}

/// An element, in f32.
fn element_of(k: &mut Kernel, x: &View, element: Element, at: [Expr; 2]) -> Result<F32, ViewError> {
    Ok(match element {
        Element::F16 => x.load::<HalfPair>(k, &at)?.to_f32(k)[0],
        Element::Bf16 => x.load::<BrainPair>(k, &at)?.to_f32(k)[0],
        _ => x.load(k, &at)?,
    })
}
