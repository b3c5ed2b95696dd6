//! Rows that are not in registers: the means of each row, then dx and the parts of dw and db by tiles of columns.
//!
//! ```text
//! means:      a row a block, tile by tile ──▶ scale r, along mean(g·x̂); of the layer norm mean μ, of_g mean(g): rows of f32
//! of_tiles:   tile j of columns by block (j, b), rows in 16s: tiles b, b + B … ──▶ dx, row b of the parts
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::{Means, Norm, launch_next, parts, wait_for_last};
use crate::KernelError;
use crate::rows::{MOST_ROWS, RowTile};

impl Norm {
    /// The numbers of each row that the first kernel gives the second.
    fn means(self) -> &'static [&'static str] {
        match self {
            Norm::Rms => &["scale", "along"],
            Norm::Layer => &["scale", "along", "mean", "of_g"],
        }
    }
}

/// The means of each row.
pub(super) fn means(norm: Norm, tile: &RowTile, arch: Arch) -> Result<Proven, KernelError> {
    let element = tile.element;
    let name = format!("{norm}_backward_{element}_means");
    let mut k = Kernel::new(&name, tile.threads);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let [x, dy] = ["x", "dy"].map(|name| k.input(name, element, &[rows, cols]));
    let w = k.input("w", element, &[cols]);
    let results = norm.means().iter();
    let results = results.map(|name| k.output(name, Element::F32, &[rows]));
    let results: Vec<View> = results.collect();
    let eps: F32 = k.argument("eps");
    let (i, thread, zero) = (
        k.tiles(Axis::X, rows, tile.rows)?,
        k.thread(),
        k.constant(0),
    );
    let share = |k: &mut Kernel, of: &View, j| tile.share(k, of, [i, j], thread);
    let like = share(&mut k, &x, zero)?;
    // x and g of tile j.
    let load = |k: &mut Kernel, j: Expr| -> Result<[Fragment; 2], ViewError> {
        let (x, dy) = (share(k, &x, j)?, share(k, &dy, j)?);
        let w = w.tile(k, &[tile.cols], &[j])?;
        let w = like.along(k, 1, &w)?.vectors(k, tile.vector)?;
        let all = [&x, &dy, &w].map(|of| k.load_fragment(of)?.convert(k, Element::F32));
        let [x, dy, w] = all;
        Ok([x?, dy?.zip(k, &w?, |k, dy, w| dy.mul(k, w))?])
    };
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let mean = |k: &mut Kernel, sums: &Fragment| {
        let sum = sums.reduce(k, 1, Combine::Add)?;
        sum.map(k, |k, sum| sum.mul(k, inverse))
    };
    let tiles =
        |k: &mut Kernel, visit: &mut dyn FnMut(&mut Kernel, Expr) -> Result<(), ViewError>| {
            k.for_loop("column", 0, tile.cols, cols, |k, column| {
                let j = k.div(column, tile.cols);
                visit(k, j)
            })
        };
    let mut of_row = None;
    if norm == Norm::Layer {
        let [of_x, of_g] = [(); 2].map(|()| k.fragment_of(&like, 0.0));
        let (of_x, of_g) = (of_x?, of_g?);
        tiles(&mut k, &mut |k, j| {
            let [x, g] = load(k, j)?;
            of_x.update_with(k, &x, |k, sum, x| sum.add(k, x))?;
            of_g.update_with(k, &g, |k, sum, g| sum.add(k, g))
        })?;
        of_row = Some([mean(&mut k, &of_x)?, mean(&mut k, &of_g)?]);
    }
    let [squares, along] = [(); 2].map(|()| k.fragment_of(&like, 0.0));
    let (squares, along) = (squares?, along?);
    tiles(&mut k, &mut |k, j| {
        let [mut x, g] = load(k, j)?;
        if let Some([mean, _]) = &of_row {
            // Behind the end of the row, x − μ is no element; g is 0 there.
            let centred = x.zip(k, mean, |k, x, mean| x.sub(k, mean))?;
            x = centred.map_at(k, |k, x, [_, column]| {
                let column = k.linear(&[(tile.cols, j), (1, column)], 0);
                Predicate::of(k, column, Cmp::Lt, cols).select(k, x, 0.0)
            })?;
        }
        squares.update_with(k, &x, |k, sum, x| x.fma(k, x, sum))?;
        along.update_with_both(k, [&x, &g], |k, sum, x, g| x.fma(k, g, sum))
    })?;
    let scale = squares.reduce(&mut k, 1, Combine::Add)?;
    let scale = scale.map(&mut k, |k, sum| sum.fma(k, inverse, eps).rsqrt(k))?;
    let along = mean(&mut k, &along)?;
    let along = along.zip(&mut k, &scale, |k, along, scale| along.mul(k, scale))?;
    let all = [scale, along]
        .into_iter()
        .chain(of_row.into_iter().flatten());
    for (value, to) in all.zip(&results) {
        let to = to.tile(&mut k, &[tile.rows], &[i])?;
        let to = like.along(&mut k, 0, &to)?;
        k.store_fragment(&to, &value)?;
    }
    Ok(k.build(arch)?)
}

/// Warps of a block, which have rows of their own, and rows of a thread.
const WARPS: i64 = 8;
const ROWS: i64 = 2;

/// dx, and the sums of each block's rows, of a tile of columns.
pub(super) fn of_tiles(
    norm: Norm,
    tile: &RowTile,
    blocks: u32,
    arch: Arch,
) -> Result<Proven, KernelError> {
    let element = tile.element;
    let name = format!("{norm}_backward_{element}");
    let mut k = Kernel::new(&name, 32 * WARPS as u32);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let [x, dy] = ["x", "dy"].map(|name| k.input(name, element, &[rows, cols]));
    let w = k.input("w", element, &[cols]);
    let means = norm.means().iter();
    let means: Vec<View> = means
        .map(|name| k.input(name, Element::F32, &[rows]))
        .collect();
    let dx = k.output("dx", element, &[rows, cols]);
    let parts = parts(norm, &mut k, Kernel::output, blocks, cols);

    // A warp has a vector of each lane, or as many as fill a register.
    let vector = tile.vector;
    let each = vector * (4 / i64::from(element.bytes()) / vector).max(1);
    let (height, width) = (WARPS * ROWS, 32 * each);
    let shares = Layout::tuple(&[
        Layout::flat(&[32, WARPS], &[vector * height, 1])?,
        Layout::flat(
            &[vector, each / vector, ROWS],
            &[height, 32 * vector * height, WARPS],
        )?,
    ])?;
    let (j, thread) = (k.tiles(Axis::X, cols, width)?, k.thread());
    let block = k.blocks(Axis::Y, blocks)?;
    wait_for_last(&mut k, arch);
    let share = |k: &mut Kernel, of: &View, i| {
        of.tile(k, &[height, width], &[i, j])?
            .partition(k, &shares, thread)?
            .vectors(k, vector)
    };
    let like = share(&mut k, &x, block)?;
    let along = |k: &mut Kernel, of: &View, vector: i64| -> Result<Partition, ViewError> {
        let of = of.tile(k, &[width], &[j])?;
        like.along(k, 1, &of)?.vectors(k, vector)
    };
    let w = along(&mut k, &w, vector)?;
    let w = k.load_fragment(&w)?.convert(&mut k, Element::F32)?;
    let sums = parts.iter().map(|_| k.fragment_of(&like, 0.0));
    let sums = sums.collect::<Result<Vec<_>, _>>()?;
    let tiles = k.tiles_in(rows, height)?;
    k.for_loop("i", 0, blocks.into(), tiles, |k, first| {
        let i = k.add(first, block);
        let (x, dy) = (share(k, &x, i)?, share(k, &dy, i)?);
        let (x, dy) = (k.load_fragment(&x)?, k.load_fragment(&dy)?);
        let of_row = means.iter().map(|of| {
            let of = of.tile(k, &[height], &[i])?;
            let of = like.along(k, 0, &of)?;
            k.load_fragment(&of)
        });
        let mut of_row = of_row.collect::<Result<Vec<_>, _>>()?.into_iter();
        let (Some(scale), Some(along)) = (of_row.next(), of_row.next()) else {
            return Ok(());
        };
        let (mut x, dy) = (x.convert(k, Element::F32)?, dy.convert(k, Element::F32)?);
        if let Some(mean) = of_row.next() {
            x = x.zip(k, &mean, |k, x, mean| x.sub(k, mean))?;
        }
        let g = dy.zip(k, &w, |k, dy, w| dy.mul(k, w))?;
        let normed = x.zip(k, &scale, |k, x, scale| x.mul(k, scale))?;
        let of_g = of_row.next();
        let d = Means { scale, along, of_g }.gradient(k, &normed, &g)?;
        sums[0].update_with_both(k, [&dy, &normed], |k, sum, dy, x| dy.fma(k, x, sum))?;
        if let Some(sums) = sums.get(1) {
            sums.update_with(k, &dy, |k, sum, dy| sum.add(k, dy))?;
        }
        let (to, d) = (share(k, &dx, i)?, d.convert(k, element)?);
        k.store_fragment(&to, &d)
    })?;
    launch_next(&mut k, arch);
    for (sums, parts) in sums.iter().zip(&parts) {
        let sums = sums.reduce(&mut k, 0, Combine::Add)?;
        let own = parts.slice(&mut k, &[block])?;
        let to = along(&mut k, &own, vector.min(4))?;
        k.store_fragment(&to, &sums)?;
    }
    Ok(k.build(arch)?)
}
