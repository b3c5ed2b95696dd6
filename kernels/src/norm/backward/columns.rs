//! The sums of the parts of dw and db that blocks have added: the last kernel of a backward.

use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::view::{Combine, View};
use layout_codegen::{Arch, Proven};
use layout_core::Layout;

use super::{Norm, parts, wait_for_last};
use crate::KernelError;
use crate::rows::LONGEST;

/// Threads of a block that add the parts of the same columns, each those of every 16th row, and columns of a block.
const DOWN: i64 = 16;
const COLUMNS: i64 = 32;

/// The most rows that a thread loads at a time.
const AT_A_TIME: u32 = 20;

/// The sums of the blocks' parts.
pub(super) fn of_columns(
    norm: Norm,
    element: Element,
    blocks: u32,
    arch: Arch,
) -> Result<Proven, KernelError> {
    // A thread has two columns: a register of 16-bit results.
    let across = COLUMNS / 2;
    let name = format!("{norm}_backward_{element}_sums");
    let mut k = Kernel::new(&name, (across * DOWN) as u32);
    let cols = k.size("cols", LONGEST);
    let parts = parts(norm, &mut k, Kernel::input, blocks, cols);
    let results = norm.gradients().iter();
    let results: Vec<View> = results
        .map(|name| k.output(name, element, &[cols]))
        .collect();
    let (j, thread) = (k.tiles(Axis::X, cols, COLUMNS)?, k.thread());
    let rows = blocks.div_ceil(DOWN as u32);
    let steps = rows.div_ceil(AT_A_TIME);
    let rows = i64::from(rows.div_ceil(steps));
    let height = DOWN * rows;
    let shares = Layout::tuple(&[
        Layout::flat(&[across, DOWN], &[height, 1])?,
        Layout::flat(&[rows, 2], &[DOWN, height * across])?,
    ])?;
    wait_for_last(&mut k, arch);
    for (parts, result) in parts.iter().zip(&results) {
        let share = |k: &mut Kernel, i| {
            parts
                .tile(k, &[height, COLUMNS], &[i, j])?
                .partition(k, &shares, thread)
        };
        let zero = k.constant(0);
        let first = share(&mut k, zero)?;
        let sums = k.load_fragment(&first)?;
        for step in 1..i64::from(steps) {
            let step = k.constant(step);
            let more = share(&mut k, step)?;
            let more = k.load_fragment(&more)?;
            sums.update_with(&mut k, &more, |k, sum, more| sum.add(k, more))?;
        }
        let sums = sums.reduce(&mut k, 0, Combine::Add)?;
        let sums = sums.convert(&mut k, element)?;
        let to = result.tile(&mut k, &[COLUMNS], &[j])?;
        let to = first.along(&mut k, 1, &to)?;
        k.store_fragment(&to, &sums)?;
    }
    Ok(k.build(arch)?)
}
