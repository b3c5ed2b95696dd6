//! Where the rows of each expert begin and end, and those of each block of tokens: one block has a thread for each expert.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::value::U32;
use layout_codegen::view::{View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzled};

use super::masks::sizes;
use super::{MOST_EXPERTS, TOKENS};
use crate::KernelError;

/// Blocks of tokens whose counts are loaded at once.
const AT_ONCE: i64 = 8;

/// The kernel `route_ends(tokens, experts, counts_of_block, counts, offsets, begins)`: `begins` is ⌈tokens / 256⌉ × experts.
pub(super) fn ends(arch: Arch) -> Result<Proven, KernelError> {
    let mut k = Kernel::new("route_ends", MOST_EXPERTS as u32);
    let [tokens, experts] = sizes(&mut k);
    let blocks = k.tiles_in(tokens, TOKENS)?;
    let of_block = k.input("counts_of_block", Element::S32, &[blocks, experts]);
    let [counts, offsets] =
        ["counts", "offsets"].map(|name| k.output(name, Element::S32, &[experts]));
    let begins = k.output("begins", Element::S32, &[blocks, experts]);
    let before = Swizzled::plain(Layout::mode(MOST_EXPERTS + 1, 1)?);
    let before = k.shared("before", Element::S32, &before)?;
    let expert = k.thread();

    let all = k.variable(U32::from(0));
    k.for_loop("block", 0, AT_ONCE, blocks, |k, first| {
        let mut sum = all.get(k);
        for count in next(k, &of_block, [first, expert])? {
            sum = sum.add(k, count);
        }
        all.set(k, sum);
        Ok::<(), ViewError>(())
    })?;
    let count = all.get(&mut k);
    counts.store(&mut k, &[expert], count)?;
    let end = scanned(&mut k, &before, count)?;
    offsets.store(&mut k, &[expert], end)?;

    let row = end.sub(&mut k, count);
    let row = k.variable(row);
    k.for_loop("from", 0, AT_ONCE, blocks, |k, first| {
        let mut begin = row.get(k);
        let counts = next(k, &of_block, [first, expert])?;
        for (number, count) in (0..).zip(counts) {
            let block = k.linear(&[(1, first)], number);
            begins.store(k, &[block, expert], begin)?;
            begin = begin.add(k, count);
        }
        row.set(k, begin);
        Ok::<(), ViewError>(())
    })?;
    Ok(k.build(arch)?)
}

/// The counts of an expert in some blocks; 0 behind the last.
fn next(
    k: &mut Kernel,
    of_block: &View,
    [first, expert]: [Expr; 2],
) -> Result<Vec<U32>, ViewError> {
    let counts = (0..AT_ONCE).map(|number| {
        let block = k.linear(&[(1, first)], number);
        of_block.load::<u32>(k, &[block, expert])
    });
    counts.collect()
}

/// The sum of the numbers of all threads up to this one, in ⌈log₂⌉ steps; element t of the shared memory is of the threads before t.
fn scanned(k: &mut Kernel, before: &View, own: U32) -> Result<U32, ViewError> {
    let (thread, zero) = (k.thread(), k.constant(0));
    let next = k.linear(&[(1, thread)], 1);
    let first = layout_codegen::value::Predicate::of(k, thread, layout_codegen::ir::Cmp::Eq, zero);
    k.when(first, |k| before.store(k, &[zero], U32::from(0)))?;
    before.store(k, &[next], own)?;
    k.barrier();
    let (mut sum, mut distance) = (own, 1);
    while distance < MOST_EXPERTS {
        let from = k.linear(&[(1, thread)], 1 - distance);
        let from = k.clamp(from, 0, MOST_EXPERTS);
        let more = before.load::<u32>(k, &[from])?;
        sum = sum.add(k, more);
        k.barrier();
        before.store(k, &[next], sum)?;
        k.barrier();
        distance *= 2;
    }
    Ok(sum)
}
