//! Outputs that the blocks of a grid of a fixed size share without a loop: a row, or a tile, for each block, or all for the first of them. Natural kernels are proven, and right; their wrong neighbours
//! are refused.

use super::natural::{numbers, ran};
use super::shared_by_counter::part;
use super::{ARCH, Result};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::host::Arg;

/// An element a thread.
const ROW: &str = "(64,1):(1,0)";

/// Row `of(block)` of y ← the sums of the columns of rows block, block + step, block + 2·step … of x.
fn partial_sums(
    blocks: u32,
    step: i64,
    rows_of_y: i64,
    of: impl Fn(&mut Kernel, Expr) -> Expr,
) -> Result<Kernel> {
    let mut k = Kernel::new("partial_sums", 64);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 64));
    let rows_of_y = k.constant(rows_of_y);
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows_of_y, cols]);
    let (block, zero) = (k.blocks(Axis::X, blocks)?, k.constant(0));
    let row = of(&mut k, block);
    let y = part(&mut k, &y, &[1, 64], &[row, zero], "(64,1):(1,0)")?;
    let sums = k.fragment_of(&y, 0.0)?;
    k.for_loop("i", 0, step, rows, |k, i| {
        let row = k.add(i, block);
        let x = part(k, &x, &[1, 64], &[row, zero], ROW)?;
        let x = k.load_fragment(&x)?;
        sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

fn own(_: &mut Kernel, block: Expr) -> Expr {
    block
}

#[test]
fn each_block_stores_a_row() -> Result {
    for blocks in [1_usize, 2, 5] {
        let kernel = partial_sums(blocks as u32, blocks as i64, blocks as i64, own)?.build(ARCH)?;
        assert_eq!(kernel.proof.covered, ["y"]);
        for (rows, cols) in [(0, 7), (1, 64), (4, 1), (13, 33)] {
            let x = numbers(rows * cols);
            let args = vec![
                ("rows", Arg::from(rows as u32)),
                ("cols", Arg::from(cols as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(blocks * cols)),
            ];
            let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
            let mut right = vec![0.0; blocks * cols];
            for (i, x) in x.iter().enumerate() {
                right[i / cols % blocks * cols + i % cols] += x;
            }
            assert_eq!(y, right, "{blocks} blocks, {rows} x {cols}");
        }
    }
    Ok(())
}

/// A block behind the last row stores nothing, because stores outside are left out.
#[test]
fn more_blocks_than_rows_store_them_all() -> Result {
    assert_eq!(
        partial_sums(4, 4, 3, own)?.build(ARCH)?.proof.covered,
        ["y"]
    );
    Ok(())
}

#[test]
fn rows_that_no_block_or_two_blocks_store_are_refused() {
    let shifted = |k: &mut Kernel, block| k.linear(&[(1, block)], 1);
    let doubled = |k: &mut Kernel, block| k.scale(block, 2);
    let halved = |k: &mut Kernel, block| k.div(block, 2);
    let wrapped = |k: &mut Kernel, block| k.rem(block, 3);
    let first = |k: &mut Kernel, _| k.constant(0);
    let refused = |kernel: Result<Kernel>, what: &str| {
        assert!(kernel.is_ok_and(|k| k.build(ARCH).is_err()), "{what}");
    };
    refused(partial_sums(4, 4, 5, own), "a row too many");
    refused(partial_sums(4, 4, 5, shifted), "the first row is missed");
    refused(partial_sums(4, 4, 4, shifted), "the first row is missed");
    refused(partial_sums(4, 4, 8, doubled), "odd rows are missed");
    refused(partial_sums(4, 4, 7, doubled), "odd rows are missed");
    refused(partial_sums(4, 4, 2, halved), "two blocks a row");
    refused(partial_sums(4, 4, 4, halved), "two blocks a row");
    refused(partial_sums(4, 4, 3, wrapped), "the first row twice");
    refused(partial_sums(4, 4, 1, first), "all blocks one row");
}

/// What blocks store and where: y[i] ← x.
#[derive(Clone, Copy)]
struct Fill {
    blocks: u32,
    /// The largest size of y.
    most: i64,
    /// Elements from one block's to the next's.
    step: i64,
    /// Threads that store an element.
    stores: i64,
    /// Blocks along y, that all do the same.
    layers: u32,
    /// Times that a block stores it.
    times: i64,
    /// The last block that has a tile of its own: those behind it have the same.
    last: i64,
}

const FILL: Fill = Fill {
    blocks: 5,
    most: 320,
    step: 64,
    stores: 64,
    layers: 1,
    times: 1,
    last: 1 << 20,
};

fn fill(f: Fill) -> Result<Kernel> {
    let mut k = Kernel::new("fill", 64);
    let (n, x): (Expr, F32) = (k.size("n", f.most), k.argument("x"));
    let y = k.output("y", Element::F32, &[n]);
    let (block, thread) = (k.blocks(Axis::X, f.blocks)?, k.thread());
    if f.layers > 1 {
        k.blocks(Axis::Y, f.layers)?;
    }
    let block = k.clamp(block, 0, f.last);
    let at = k.linear(&[(f.step, block), (1, thread)], 0);
    let stores = k.constant(f.stores);
    let of_thread = Predicate::of(&mut k, thread, Cmp::Lt, stores);
    let store = |k: &mut Kernel| k.when(of_thread, |k| y.store(k, &[at], x));
    if f.times == 1 {
        store(&mut k)?;
    } else {
        let times = k.constant(f.times);
        k.for_loop("i", 0, 1, times, |k, _| store(k))?;
    }
    Ok(k)
}

#[test]
fn blocks_store_tiles_of_a_bounded_size() -> Result {
    for (blocks, step, stores) in [(5, 64, 64), (7, 64, 64), (10, 32, 32), (320, 1, 1)] {
        let kernel = fill(Fill {
            blocks,
            step,
            stores,
            ..FILL
        })?
        .build(ARCH)?;
        for n in [0_usize, 1, 63, 64, 65, 319, 320] {
            let args = vec![
                ("n", Arg::from(n as u32)),
                ("x", Arg::from(3.0_f32)),
                ("y", Arg::output::<f32>(n)),
            ];
            let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
            assert_eq!(y, vec![3.0; n], "{blocks} blocks of {step}, n = {n}");
        }
    }
    Ok(())
}

#[test]
fn tiles_with_gaps_or_overlaps_are_refused() -> Result {
    let wrong = [
        ("the size can be larger", Fill { most: 321, ..FILL }),
        ("one block too few", Fill { blocks: 4, ..FILL }),
        (
            "a gap",
            Fill {
                step: 65,
                most: 325,
                ..FILL
            },
        ),
        (
            "an overlap",
            Fill {
                step: 63,
                most: 315,
                ..FILL
            },
        ),
        ("the last of a tile is missed", Fill { stores: 63, ..FILL }),
        ("twice, by two layers", Fill { layers: 2, ..FILL }),
        ("twice, by two iterations", Fill { times: 2, ..FILL }),
        (
            "the last tile twice",
            Fill {
                blocks: 6,
                last: 4,
                ..FILL
            },
        ),
        (
            "all blocks one tile",
            Fill {
                most: 64,
                last: 0,
                ..FILL
            },
        ),
    ];
    for (what, f) in wrong {
        assert!(fill(f)?.build(ARCH).is_err(), "{what}");
    }
    Ok(())
}

/// y[i] ← x[i] in 64 elements a block along x, of the blocks along y where `stores` says so.
fn by_one_of(
    along_y: impl Fn(&mut Kernel) -> Result<Expr>,
    stores: impl Fn(&mut Kernel, Expr) -> Predicate,
) -> Result<Kernel> {
    let mut k = Kernel::new("by_one", 64);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let i = k.tiles(Axis::X, n, 64)?;
    let block = along_y(&mut k)?;
    let x = part(&mut k, &x, &[64], &[i], "(64,1):(1,0)")?;
    let y = part(&mut k, &y, &[64], &[i], "(64,1):(1,0)")?;
    let x = k.load_fragment(&x)?;
    let stores = stores(&mut k, block);
    k.when(stores, |k| k.store_fragment(&y, &x))?;
    Ok(k)
}

fn four(k: &mut Kernel) -> Result<Expr> {
    Ok(k.blocks(Axis::Y, 4)?)
}

fn is(of: Expr, how: Cmp, number: i64) -> impl Fn(&mut Kernel) -> Predicate {
    move |k| {
        let number = k.constant(number);
        Predicate::of(k, of, how, number)
    }
}

#[test]
fn the_first_block_stores_for_all() -> Result {
    let kernels = [
        by_one_of(four, |k, block| is(block, Cmp::Eq, 0)(k))?,
        by_one_of(four, |k, block| is(block, Cmp::Lt, 1)(k))?,
    ];
    for kernel in kernels {
        let kernel = kernel.build(ARCH)?;
        assert_eq!(kernel.proof.covered, ["y"]);
        for n in [0, 1, 64, 1000] {
            let x = numbers(n);
            let args = vec![
                ("n", Arg::from(n as u32)),
                ("x", Arg::input(&x)),
                ("y", Arg::output::<f32>(n)),
            ];
            assert_eq!(ran(&kernel, args)?.get::<f32>("y")?, x);
        }
    }
    Ok(())
}

#[test]
fn stores_of_no_block_two_blocks_or_one_that_may_not_be_there_are_refused() {
    let refused = |kernel: Result<Kernel>, what: &str| {
        assert!(kernel.is_ok_and(|k| k.build(ARCH).is_err()), "{what}");
    };
    refused(
        by_one_of(four, |k, block| is(block, Cmp::Lt, 2)(k)),
        "two blocks",
    );
    refused(
        by_one_of(four, |k, block| is(block, Cmp::Ge, 0)(k)),
        "all blocks",
    );
    refused(
        by_one_of(four, |k, block| is(block, Cmp::Eq, 4)(k)),
        "no block",
    );
    refused(
        by_one_of(four, |k, block| is(block, Cmp::Lt, 0)(k)),
        "no block",
    );
    let even = |k: &mut Kernel, block| {
        let odd = k.rem(block, 2);
        is(odd, Cmp::Eq, 0)(k)
    };
    refused(by_one_of(four, even), "every second block");
    // The first block stores what is in the tiles with even numbers alone.
    let first_of_even = |k: &mut Kernel, block| {
        let thread = k.thread();
        let (odd, first) = (k.rem(thread, 2), is(block, Cmp::Eq, 0)(k));
        let even = is(odd, Cmp::Eq, 0)(k);
        first.and(k, even)
    };
    refused(by_one_of(four, first_of_even), "half of the elements");
    // Of tiles there may be none.
    let of_tiles = |k: &mut Kernel| {
        let m = k.size("m", 1000);
        Ok(k.tiles(Axis::Y, m, 8)?)
    };
    refused(
        by_one_of(of_tiles, |k, block| is(block, Cmp::Eq, 0)(k)),
        "a grid that may have no block",
    );
}
