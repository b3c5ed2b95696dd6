//! Rows that stay in the registers of a block: x and dy are read once.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate, S32};
use layout_codegen::view::{Combine, Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};

use super::{Means, Norm, launch_next, parts};
use crate::KernelError;
use crate::rows::{MOST_ROWS, RowTile};

/// dx, and the sums of each block's rows.
pub(super) fn of_rows(
    norm: Norm,
    tile: &RowTile,
    blocks: u32,
    arch: Arch,
) -> Result<Proven, KernelError> {
    let element = tile.element;
    let name = format!("{norm}_backward_{element}");
    let mut k = Kernel::new(&name, tile.threads);
    // 128 registers a thread: sums, the next tile, and what is computed.
    k.blocks_per_multiprocessor(512 / tile.threads);
    let (rows, cols) = (k.size("rows", MOST_ROWS), k.size("cols", tile.most));
    let [x, dy] = ["x", "dy"].map(|name| k.input(name, element, &[rows, cols]));
    let w = k.input("w", element, &[cols]);
    let dx = k.output("dx", element, &[rows, cols]);
    let parts = parts(norm, &mut k, Kernel::output, blocks, cols);
    let eps: F32 = k.argument("eps");
    let (block, thread, zero) = (k.blocks(Axis::X, blocks)?, k.thread(), k.constant(0));
    let share = |k: &mut Kernel, of: &View, i| tile.share(k, of, [i, zero], thread);
    // What this thread has of a vector along the rows.
    let like = share(&mut k, &x, block)?;
    let along = |k: &mut Kernel, of: &View, vector: i64| -> Result<Partition, ViewError> {
        let of = of.tile(k, &[tile.cols], &[zero])?;
        like.along(k, 1, &of)?.vectors(k, vector)
    };
    let w = along(&mut k, &w, tile.vector)?;
    let w = k.load_fragment(&w)?;
    let sums = parts.iter().map(|_| k.fragment_of(&like, 0.0));
    let sums = sums.collect::<Result<Vec<_>, _>>()?;
    let inverse = S32::index(&mut k, cols).to_f32(&mut k).reciprocal(&mut k);
    let row = Row {
        norm,
        rows,
        cols,
        height: tile.rows,
        inverse,
        eps,
    };

    let load = |k: &mut Kernel, i| -> Result<[Fragment; 2], ViewError> {
        let (x, dy) = (share(k, &x, i)?, share(k, &dy, i)?);
        Ok([k.load_fragment(&x)?, k.load_fragment(&dy)?])
    };
    let ahead = load(&mut k, block)?;
    let tiles = k.tiles_in(rows, tile.rows)?;
    k.for_loop("i", 0, blocks.into(), tiles, |k, first| {
        let i = k.add(first, block);
        let [x, dy] = &ahead;
        let (x, dy) = (x.convert(k, Element::F32)?, dy.convert(k, Element::F32)?);
        let next = k.linear(&[(1, i)], blocks.into());
        let next = load(k, next)?;
        let w = w.convert(k, Element::F32)?;
        let g = dy.zip(k, &w, |k, dy, w| dy.mul(k, w))?;
        let (d, normed) = row.gradient(k, i, x, &g)?;
        sums[0].update_with_both(k, [&dy, &normed], |k, sum, dy, x| dy.fma(k, x, sum))?;
        if let Some(sums) = sums.get(1) {
            sums.update_with(k, &dy, |k, sum, dy| sum.add(k, dy))?;
        }
        let (to, d) = (share(k, &dx, i)?, d.convert(k, element)?);
        k.store_fragment(&to, &d)?;
        let mut both = ahead.iter().zip(&next);
        both.try_for_each(|(ahead, next)| ahead.assign(k, next))
    })?;
    launch_next(&mut k, arch);
    for (sums, parts) in sums.iter().zip(&parts) {
        let sums = sums.reduce(&mut k, 0, Combine::Add)?;
        let own = parts.slice(&mut k, &[block])?;
        let to = along(&mut k, &own, tile.vector.min(4))?;
        k.store_fragment(&to, &sums)?;
    }
    Ok(k.build(arch)?)
}

/// What is computed of a tile of rows.
struct Row {
    norm: Norm,
    rows: Expr,
    cols: Expr,
    /// Rows of a tile.
    height: i64,
    /// 1/cols.
    inverse: F32,
    eps: F32,
}

impl Row {
    /// dx of tile `i` of the rows, and x̂, which is 0 in rows behind the last.
    fn gradient(
        &self,
        k: &mut Kernel,
        i: Expr,
        mut x: Fragment,
        g: &Fragment,
    ) -> Result<(Fragment, Fragment), ViewError> {
        let inverse = self.inverse;
        let mean = |k: &mut Kernel, of: &Fragment| {
            let sum = of.reduce(k, 1, Combine::Add)?;
            sum.map(k, |k, sum| sum.mul(k, inverse))
        };
        if self.norm == Norm::Layer {
            let mean = mean(k, &x)?;
            x = x.zip(k, &mean, |k, x, mean| x.sub(k, mean))?;
        }
        let squares = x.map_at(k, |k, x, [_, column]| {
            let square = x.mul(k, x);
            match self.norm {
                // x is 0 behind the end of a row.
                Norm::Rms => square,
                Norm::Layer => Predicate::of(k, column, Cmp::Lt, self.cols).select(k, square, 0.0),
            }
        })?;
        let sum = squares.reduce(k, 1, Combine::Add)?;
        let scale = sum.map_at(k, |k, sum, [row, _]| {
            let row = k.linear(&[(self.height, i), (1, row)], 0);
            let scale = sum.fma(k, inverse, self.eps).rsqrt(k);
            Predicate::of(k, row, Cmp::Lt, self.rows).select(k, scale, 0.0)
        })?;
        let normed = x.zip(k, &scale, |k, x, scale| x.mul(k, scale))?;
        let along = normed.zip(k, g, |k, x, g| x.mul(k, g))?;
        let along = mean(k, &along)?;
        let of_g = match self.norm {
            Norm::Rms => None,
            Norm::Layer => Some(mean(k, g)?),
        };
        let means = Means { scale, along, of_g };
        Ok((means.gradient(k, &normed, g)?, normed))
    }
}
