//! Changes of the register layout: nothing, shuffles, shared memory.

use tilewright::codegen::ir::{Element, Kernel};
use tilewright::codegen::value::S32;
use tilewright::codegen::{Arch, Proven};
use tilewright::{Layout, Operand, TiledMma, atoms};

use super::{Result, computed, kernel, numbers};

/// Instructions that shuffle, and that store to shared memory.
fn moves(kernel: &Proven) -> (usize, usize) {
    let shuffles = kernel.ptx.matches("shfl.sync.idx").count();
    (shuffles, kernel.accesses().len())
}

/// There and back again: x by `tv`, then by `other`, doubled, and back.
fn there_and_back(shape: [i64; 2], threads: u32, tv: &str, other: &str) -> Result<(usize, usize)> {
    let (tv, other) = (Layout::parse(tv)?, Layout::parse(other)?);
    let built = kernel(shape, threads, &tv, true, |k, x| {
        let there = x.relayout(k, &other)?;
        // A value that depends on the coordinates, so that a wrong place shows.
        let there = there.map_at(k, |k, x, [row, column]| {
            let [row, column] = [row, column].map(|e| S32::index(k, e));
            let at = row.mul(k, 1000).add(k, column).to_f32(k);
            x.add(k, at)
        })?;
        there.relayout(k, &tv)
    })?;
    let [rows, cols] = shape.map(|n| n as usize);
    let x = numbers(rows * cols);
    let y = computed(&built, rows, &x, rows * cols)?;
    for (i, y) in y.into_iter().enumerate() {
        let (row, column) = (i / cols, i % cols);
        assert_eq!(
            y,
            x[i] + (1000 * row + column) as f32,
            "{tv} to {other}: {row}, {column}"
        );
    }
    Ok(moves(&built))
}

#[test]
fn the_same_layout_in_another_order_takes_nothing() -> Result {
    assert_eq!(
        there_and_back(
            [4, 64],
            32,
            "((8,4),8):((32,1),4)",
            "((8,4),(2,4)):((32,1),(16,4))"
        )?,
        (0, 0)
    );
    Ok(())
}

#[test]
fn lanes_exchange_by_shuffles() -> Result {
    // Neighbouring lanes: pairs of a row by value or by lane.
    let (shuffles, shared) = there_and_back([1, 64], 32, "(32,2):(1,32)", "(32,2):(2,1)")?;
    assert!(
        shuffles > 0 && shared == 0,
        "{shuffles} shuffles, {shared} accesses"
    );
    // C of m16n8k16 with four neighbours a lane.
    let c = "((4,8),(2,2)):((32,1),(16,8))";
    let (shuffles, shared) = there_and_back([16, 8], 32, c, "((2,16),4):((64,1),16)")?;
    assert!(
        shuffles > 0 && shared == 0,
        "{shuffles} shuffles, {shared} accesses"
    );
    Ok(())
}

#[test]
fn warps_exchange_through_shared_memory() -> Result {
    let (shuffles, shared) = there_and_back(
        [64, 64],
        128,
        "((64,2),32):((1,2048),64)",
        "((64,2),32):((64,32),1)",
    )?;
    assert!(
        shuffles == 0 && shared > 0,
        "{shuffles} shuffles, {shared} accesses"
    );
    Ok(())
}

#[test]
fn c_of_one_product_is_a_of_the_next() -> Result {
    let mut k = Kernel::new("k", 128);
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(4,1,1):(1,0,0)")?)?;
    let thread = k.thread();
    let scores = k
        .accumulators(&mma, [64, 64], thread)?
        .convert(&mut k, Element::F16)?;
    // Nothing moves: no shuffle, and no shared memory.
    let weights = scores.operand(&mut k, &mma, Operand::A)?;
    assert_eq!(weights.values(), scores.values());
    let built = k.build(Arch(80))?;
    assert_eq!(moves(&built), (0, 0));
    // And as A it multiplies.
    let mut k = Kernel::new("k", 128);
    let thread = k.thread();
    let values = k.accumulators(&mma, [16, 64], thread);
    assert!(values.is_err());
    Ok(())
}
