//! A scale for each row.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::Combine;
use layout_codegen::{Arch, Proven};

use super::{MOST_ROWS, Quantize};
use crate::KernelError;
use crate::rows::{Row, RowTile};

pub(super) fn of_rows(tile: &RowTile, what: Quantize, arch: Arch) -> Result<Proven, KernelError> {
    let (element, to) = (what.element, what.to);
    let mut k = tile.kernel(&what.name());
    let (rows, cols) = (k.size("m", MOST_ROWS), k.size("k", tile.most));
    let x = k.input("x", element, &[rows, cols]);
    let y = k.output("y", to, &[rows, cols]);
    let scales = k.output("scale", Element::F32, &[rows]);
    let (i, thread) = (k.tiles(Axis::X, rows, tile.rows)?, k.thread());
    let load = |k: &mut Kernel, tile: &RowTile, j| {
        let of = tile.share(k, &x, [i, j], thread)?;
        k.load_fragment(&of)
    };
    let nothing = |_: &mut Kernel, _| Ok(());
    let row = Row::new(&mut k, tile, (cols, thread), (&load, 1))?;
    let zero = k.constant(0);
    let like = tile.place(&mut k, &y, [i, zero], thread)?;
    let most = k.fragment_of(&like, 0.0)?;
    row.visit(&mut k, &load, nothing, |k, _, x, ()| {
        most.update_with(k, x, super::larger)
    })?;
    let most = tile.reduce(&mut k, "largest", (&most, Combine::MaxNan))?;
    let scale = most.map(&mut k, |k, most| super::scale(k, most, to))?;
    let of_rows = scales.tile(&mut k, &[tile.rows], &[i])?;
    let of_rows = like.along(&mut k, 0, &of_rows)?;
    tile.once(&mut k, |k| k.store_fragment(&of_rows, &scale))?;
    let place = |k: &mut Kernel, at| tile.place(k, &y, [i, at], thread);
    row.visit(&mut k, &load, place, |k, _, x, place| {
        let value = super::divided(k, x, &scale, to)?;
        k.store_fragment(&place, &value)
    })?;
    tile.end(&mut k);
    Ok(k.build(arch)?)
}
