//! Cross entropy of each row of logits with a target class, and its gradient: lossᵢ = log Σⱼ exp(xᵢⱼ) − xᵢₜ and dxᵢⱼ = scale·(exp(xᵢⱼ) / Σⱼ exp(xᵢⱼ) − [j = t]), t the
//! target of row i. Rows of 1 to 131,072 classes; f32, f16 or bf16; computed in f32, the loss is of f32.
//!
//! ```text
//! x: rows × cols ──▶ maximum m, sum of exp(x − m), x at the target ──▶ loss: rows
//!                └─▶ exp(x − m)/sum − [j = t], times scale         ──▶ dx: rows × cols
//! ```
//!
//! The gradient is stored by the same kernel, so that no other reads the logits again. Up to 32,768 classes stay in the registers of a block, and more in those of a cluster of blocks from
//! `sm_90` on. Elsewhere longer rows are read twice, the second time mostly from the L2 cache. With the mean of the losses as the result, `scale` is 1/rows, or the gradient of the result over rows.
//!
//! A target outside of 0..cols, such as PyTorch's `ignore_index` −100, gives a loss of 0 and a gradient of 0. NaN and infinities as in PyTorch: NaN or +∞ in a row gives NaN, and so does a row of −∞.

use std::f32::consts::LN_2;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::online::{Online, exp, total};
use crate::rows::{MOST_ROWS, RowTile};

/// What becomes of an element, with whether its column is the target of its row.
type Chosen<'a> = dyn Fn(&mut Kernel, F32, Predicate) -> F32 + 'a;

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
    let zero = k.constant(0);
    // The row of a thread's elements, and its target; outside of 0..cols there is none.
    let across = i64::from(tile.threads) / tile.rows;
    let row = k.div(thread, across);
    let row = k.linear(&[(tile.rows, i), (1, row)], 0);
    let target: S32 = target.load(&mut k, &[row])?;
    let classes = S32::index(&mut k, cols);
    let (low, high) = (target.ge(&mut k, 0), target.lt(&mut k, classes));
    let counts = low.and(&mut k, high);
    let target = target.to_index(&mut k);
    // What this thread has of tile j of a matrix; beyond the end of a row it is −∞, which adds nothing.
    let share = |k: &mut Kernel, of: &View, j| {
        tile.share(k, of, [i, j], thread)?
            .filled(k, f32::NEG_INFINITY)
    };
    let load = |k: &mut Kernel, j| -> Result<Fragment, ViewError> {
        let x = share(k, &x, j)?;
        k.load_fragment(&x)?.convert(k, Element::F32)
    };
    // The elements of tile j, each with whether its column is the target.
    let with_target = |k: &mut Kernel, x: &Fragment, j: Expr, f: &Chosen<'_>| {
        x.map_at(k, |k, x, [_, column]| {
            let column = k.linear(&[(tile.cols, j), (1, column)], 0);
            let here = Predicate::of(k, column, Cmp::Eq, target);
            f(k, x, here)
        })
    };
    let at_target = |k: &mut Kernel, x: F32, here: Predicate| here.select(k, x, 0.0);
    // The maximum of the row, the sum of the powers, and x at the target.
    let first = tile.first(&mut k)?;
    let mut resident = None;
    let [m, sum, chosen] = if tile.is_in_registers() {
        let x = load(&mut k, first)?;
        let m = tile.most_of_block(&mut k, &x)?;
        let sum = x.zip(&mut k, &m, exp)?.reduce(&mut k, 1, Combine::Add)?;
        let chosen = with_target(&mut k, &x, first, &at_target)?;
        let chosen = chosen.reduce(&mut k, 1, Combine::Add)?;
        resident = Some(x);
        // All elements of a thread are of one row.
        let [m, sum, chosen] = [m, sum, chosen].map(|of| of.thread_values(&mut k));
        let own = [m?[0], sum?[0], chosen?[0]];
        if tile.blocks == 1 {
            own
        } else {
            let [m, sum, chosen] = tile.of_ranks(&mut k, "parts", own)?;
            let ranks = tile.ranks()?;
            let [m, sum] = total(&mut k, [m, sum], &ranks)?;
            [m, sum, k.reduce(chosen, &ranks, Combine::Add)?]
        }
    } else {
        let (online, chosen) = (Online::new(&mut k), k.variable(F32::from(0.0)));
        k.for_loop("column", 0, tile.cols, cols, |k, column| {
            let j = k.div(column, tile.cols);
            let x = load(k, j)?;
            online.add(k, &x)?;
            let x = with_target(k, &x, j, &at_target)?.combine(k, Combine::Add)?;
            let more = chosen.get(k).add(k, x);
            chosen.set(k, more);
            Ok::<(), ViewError>(())
        })?;
        let block = tile.block()?;
        let [m, sum] = online.total(&mut k, &block)?;
        let own = chosen.get(&mut k);
        [m, sum, k.reduce(own, &block, Combine::Add)?]
    };

    let log = sum.log2(&mut k).fma(&mut k, LN_2, m).sub(&mut k, chosen);
    let value = counts.select(&mut k, log, 0.0);
    let like = share(&mut k, &x, zero)?;
    let to = loss.tile(&mut k, &[tile.rows], &[i])?;
    let to = like.along(&mut k, 0, &to)?;
    let value = k.fragment_of(&to, value)?;
    tile.once(&mut k, |k| k.store_fragment(&to, &value))?;

    let by = sum.reciprocal(&mut k).mul(&mut k, scale);
    let gradient = |k: &mut Kernel, j, x: &Fragment| -> Result<(), ViewError> {
        let d = with_target(k, x, j, &|k, x, here| {
            let one = here.select(k, scale, 0.0);
            let d = exp(k, x, m).mul(k, by).sub(k, one);
            counts.select(k, d, 0.0)
        })?;
        let (to, d) = (share(k, &dx, j)?, d.convert(k, element)?);
        k.store_fragment(&to, &d)
    };
    match resident {
        Some(x) => gradient(&mut k, first, &x)?,
        None => k.for_loop("column", 0, tile.cols, cols, |k, column| {
            let j = k.div(column, tile.cols);
            let x = load(k, j)?;
            gradient(k, j, &x)
        })?,
    }
    tile.end(&mut k);
    Ok(k.build(arch)?)
}
