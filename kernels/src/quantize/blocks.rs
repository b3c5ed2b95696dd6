//! Scales of blocks of 1 × 128 and of 128 × 128.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Combine, Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::{BLOCK, MOST, MOST_ROWS, Quantize, Source};
use crate::KernelError;
use crate::experts::MOST_TOKENS;

/// Rows of a tile with scales of 1 × 128, and threads of a row.
const ROWS: i64 = 64;
const LANES: i64 = 8;

/// The layout (thread, value) → row + rows·column of a tile of `rows` × 128: `lanes` threads a row, in vectors.
fn shares(
    [rows, at_once]: [i64; 2],
    [lanes, vector]: [i64; 2],
) -> Result<Layout, layout_core::LayoutError> {
    let thread = Layout::flat(&[lanes, at_once], &[vector * rows, 1])?;
    let vectors = BLOCK / (lanes * vector);
    let value = Layout::flat(
        &[vector, vectors, rows / at_once],
        &[rows, lanes * vector * rows, at_once],
    )?;
    Layout::tuple(&[thread, value])
}

/// A tile of a matrix and how its threads share it.
struct Tile {
    rows: i64,
    shares: Layout,
    vector: i64,
    at: [Expr; 2],
    thread: Expr,
}

impl Tile {
    fn of(&self, k: &mut Kernel, matrix: &View) -> Result<Partition, ViewError> {
        let tile = matrix.tile(k, &[self.rows, BLOCK], &self.at)?;
        tile.partition(k, &self.shares, self.thread)?
            .vectors(k, self.vector)
    }

    fn load(&self, k: &mut Kernel, matrix: &View) -> Result<Fragment, ViewError> {
        let from = self.of(k, matrix)?;
        k.load_fragment(&from)?.convert(k, Element::F32)
    }

    /// The thread's values of both halves of a matrix of m × 2 × k.
    fn halves(&self, k: &mut Kernel, matrix: &View) -> Result<[Vec<F32>; 2], ViewError> {
        let [i, block] = self.at;
        let mut of = |half: i64| {
            let half = k.constant(half);
            let tile = matrix.tile(k, &[self.rows, 1, BLOCK], &[i, half, block])?;
            let from = tile.partition(k, &self.shares, self.thread)?;
            let from = from.vectors(k, self.vector)?;
            let half = k.load_fragment(&from)?.convert(k, Element::F32)?;
            half.thread_values::<f32>(k)
        };
        Ok([of(0)?, of(1)?])
    }
}

impl Tile {
    /// The thread's values of the rows of a matrix that are named for its own, which are `distance` apart.
    fn gathered(
        &self,
        k: &mut Kernel,
        [matrix, names]: [&View; 2],
        distance: i64,
    ) -> Result<Vec<F32>, ViewError> {
        let [i, block] = self.at;
        let (row, lane) = (k.div(self.thread, LANES), k.rem(self.thread, LANES));
        let of_row = shares([1, 1], [LANES, self.vector])?;
        // The names first, then all rows: each load is on its way before what it gives is used.
        let numbers = 0..self.rows / distance;
        let named = numbers.map(|number| {
            let row = k.linear(&[(self.rows, i), (1, row)], number * distance);
            Ok(names.load::<u32>(k, &[row])?.to_index(k))
        });
        let named = named.collect::<Result<Vec<Expr>, ViewError>>()?;
        let zero = k.constant(0);
        let parts = named.into_iter().map(|named| {
            let from = matrix.at(k, &[named, zero])?;
            let from = from.tile(k, &[1, BLOCK], &[zero, block])?;
            let from = from.partition(k, &of_row, lane)?;
            let from = from.vectors(k, self.vector)?;
            k.load_fragment(&from)
        });
        let parts = parts.collect::<Result<Vec<Fragment>, ViewError>>()?;
        let mut values = Vec::new();
        for part in parts {
            let part = part.convert(k, Element::F32)?;
            values.extend(part.thread_values::<f32>(k)?);
        }
        Ok(values)
    }
}

/// A fragment that is shared out as `like`, of these values.
fn filled(k: &mut Kernel, like: &Partition, values: Vec<F32>) -> Result<Fragment, ViewError> {
    let mut values = values.into_iter();
    let zero = k.fragment_of(like, 0.0)?;
    zero.map(k, |_, zero| values.next().unwrap_or(zero))
}

pub(super) fn of_rows(what: Quantize, arch: Arch) -> Result<Proven, KernelError> {
    let vector = 16 / i64::from(what.element.bytes());
    let threads = 256;
    let mut k = Kernel::new(&what.name(), threads as u32);
    let tokens = match what.source {
        Source::Gathered => Some(k.size("tokens", MOST_TOKENS)),
        _ => None,
    };
    let (m, cols) = (k.size("m", MOST_ROWS), k.size("k", MOST));
    let [block, blocks] = k.counted_tiles(Axis::X, cols, BLOCK)?;
    let i = k.tiles(Axis::Y, m, ROWS)?;
    let pitch = k.size("ld_scale", MOST_ROWS);
    let halves = k.constant(2);
    let x = match (what.source, tokens) {
        (Source::Swiglu, _) => k.input("x", what.element, &[m, halves, cols]),
        (_, Some(tokens)) => k.input("x", what.element, &[tokens, cols]),
        _ => k.input("x", what.element, &[m, cols]),
    };
    let token_of_row = tokens.map(|_| k.input("token_of_row", Element::S32, &[m]));
    let y = k.output("y", what.to, &[m, cols]);
    let scales = super::scales_of_rows(&mut k, [blocks, m], pitch);
    let tile = Tile {
        rows: ROWS,
        shares: shares([ROWS, threads / LANES], [LANES, vector])?,
        vector,
        at: [i, block],
        thread: k.thread(),
    };
    let to = tile.of(&mut k, &y)?;
    let value = match (what.source, &token_of_row) {
        (Source::Swiglu, _) => {
            let [gate, up] = tile.halves(&mut k, &x)?;
            let values = gate.into_iter().zip(up);
            let values = values.map(|(gate, up)| super::gated(&mut k, gate, up));
            let values = values.collect();
            filled(&mut k, &to, values)?
        }
        (_, Some(token_of_row)) => {
            let values = tile.gathered(&mut k, [&x, token_of_row], threads / LANES)?;
            filled(&mut k, &to, values)?
        }
        _ => tile.load(&mut k, &x)?,
    };
    let most = value
        .map(&mut k, |k, x| x.abs(k))?
        .reduce(&mut k, 1, Combine::MaxNan)?;
    let scale = most.map(&mut k, |k, most| super::scale(k, most, what.to))?;
    let of_block = scales.slice(&mut k, &[block])?;
    let of_block = of_block.tile(&mut k, &[ROWS], &[i])?;
    let of_block = to.along(&mut k, 0, &of_block)?;
    k.store_fragment(&of_block, &scale)?;
    let value = super::divided(&mut k, &value, &scale, what.to)?;
    k.store_fragment(&to, &value)?;
    Ok(k.build(arch)?)
}

pub(super) fn of_squares(what: Quantize, arch: Arch) -> Result<Proven, KernelError> {
    let vector = 16 / i64::from(what.element.bytes());
    let (threads, lanes) = (512, BLOCK / vector);
    let mut k = Kernel::new(&what.name(), threads as u32);
    let (m, cols) = (k.size("m", MOST_ROWS), k.size("k", MOST));
    let pitch = k.size("ld_scale", MOST);
    let [block, across] = k.counted_tiles(Axis::X, cols, BLOCK)?;
    let [i, down] = k.counted_tiles(Axis::Y, m, BLOCK)?;
    let x = k.input("x", what.element, &[m, cols]);
    let y = k.output("y", what.to, &[m, cols]);
    let scales = k.pitched_output("scale", Element::F32, [down, across], pitch);
    let tile = Tile {
        rows: BLOCK,
        shares: shares([BLOCK, threads / lanes], [lanes, vector])?,
        vector,
        at: [i, block],
        thread: k.thread(),
    };
    let value = tile.load(&mut k, &x)?;
    let most = value.map(&mut k, |k, x| x.abs(k))?;
    let most = most.combine(&mut k, Combine::MaxNan)?;
    let most = k.reduce(most, &Layout::mode(threads, 0)?, Combine::MaxNan)?;
    let scale = super::scale(&mut k, most, what.to);
    let zero = k.constant(0);
    let first = Predicate::of(&mut k, tile.thread, Cmp::Eq, zero);
    k.when(first, |k| scales.store(k, &[i, block], scale))?;
    let value = super::divided_by(&mut k, &value, scale, what.to)?;
    let to = tile.of(&mut k, &y)?;
    k.store_fragment(&to, &value)?;
    Ok(k.build(arch)?)
}
