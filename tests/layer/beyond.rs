//! Blocks and iterations without a tile of their own, beyond the end of the output: they must store nothing. A stranger gives them another block's tile.

use half::f16;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::{TileOrder, TileScheduler};
use tilewright::codegen::value::{F32, Predicate, S32};
use tilewright::codegen::view::View;
use tilewright::host::{Arg, On, run};
use tilewright::{Layout, TiledMma, atoms};

use super::hopper::{HOPPER, size};
use super::{Result, layout};

/// How a tile leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Threads,
    Boxes,
}

/// Rows and columns of a tile.
const ROWS: i64 = 32;
const TILE: i64 = 64;

fn element(by: By) -> Element {
    if by == By::Boxes {
        Element::F16
    } else {
        Element::S32
    }
}

/// A row of tiles, or the first one behind the end.
fn wrapped(k: &mut Kernel, row: Expr, m: Expr) -> Expr {
    let (first, zero) = (k.scale(row, ROWS), k.constant(0));
    k.choose(first, Cmp::Lt, m, row, zero)
}

/// A tile of 32 x 64 of c at a row and a column of tiles ← a number.
fn store(
    k: &mut Kernel,
    by: By,
    (c, extents): (&View, [Expr; 2]),
    at: [Expr; 2],
    number: Expr,
) -> Result {
    let tile = [
        Layout::mode(32, 1)?,
        Layout::mode(16, 1)?,
        Layout::mode(16, 1)?,
    ];
    let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &layout("(2,1,1):(1,0,0)"), &tile)?;
    let thread = k.thread();
    if by == By::Threads {
        let value = S32::index(k, number);
        let j = k.linear(&[(TILE, at[1]), (1, thread)], 0);
        for i in 0..ROWS {
            let i = k.linear(&[(ROWS, at[0])], i);
            let down = Predicate::of(k, i, Cmp::Lt, extents[0]);
            let inside = Predicate::of(k, j, Cmp::Lt, extents[1]).and(k, down);
            k.when(inside, |k| c.store(k, &[i, j], value))?;
        }
        return Ok(());
    }
    let sums = k.accumulators(&mma, [ROWS, TILE], thread)?;
    let number = S32::index(k, number).to_f32(k);
    sums.update(k, |k, x| x.add(k, number))?;
    let sums = k.convert_fragment(&sums, Element::F16)?;
    let c = c.tile(k, &[ROWS, TILE], &at)?;
    Ok(k.tma_store(&c, &sums)?)
}

/// c ← the number of the tile, by two blocks that share the two tiles of an iteration.
fn shared(by: By, wrong: bool) -> Result<Kernel> {
    let mut k = Kernel::new("shared", 64);
    let (m, n) = (k.size("m", 1 << 15), k.constant(64));
    let c = k.output("c", element(by), &[m, n]);
    let (block, tiles, zero) = (k.blocks(Axis::X, 2)?, k.tiles_in(m, ROWS)?, k.constant(0));
    k.for_loop("i", 0, 2, tiles, |k, i| {
        let tile = k.add(i, block);
        let row = if wrong { wrapped(k, tile, m) } else { tile };
        store(k, by, (&c, [m, n]), [row, zero], tile)
    })?;
    Ok(k)
}

/// What a cluster's blocks take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cluster {
    /// The tile of their number.
    Right,
    /// The first tile behind the last.
    Wrapped,
    /// From the last one, and then the first again.
    FromLast,
}

/// c ← the number of the tile, by clusters of two blocks.
fn cluster(by: By, how: Cluster) -> Result<Kernel> {
    let mut k = Kernel::new("cluster", 64);
    k.clusters([2, 1, 1]);
    let (m, n) = (k.size("m", 1 << 15), k.constant(64));
    let c = k.output("c", element(by), &[m, n]);
    let zero = k.constant(0);
    let tile = if how == Cluster::FromLast {
        k.tiles_from_last(Axis::X, m, ROWS)?
    } else {
        k.tiles(Axis::X, m, ROWS)?
    };
    let row = if how == Cluster::Wrapped {
        wrapped(&mut k, tile, m)
    } else {
        tile
    };
    store(&mut k, by, (&c, [m, n]), [row, zero], tile)?;
    Ok(k)
}

/// c ← 1 + the column of the tile + 10 times its row, in an order of 3 x 2 tiles.
fn layouts(wrong: bool) -> Result<Kernel> {
    let mut k = Kernel::new("layouts", 64);
    let (m, n) = (k.size("m", 3 * ROWS), k.size("n", 128));
    let c = k.output("c", element(By::Boxes), &[m, n]);
    let order = TileOrder::Layouts([layout("(3,2):(1,0)"), layout("(3,2):(0,1)")]);
    let scheduler = TileScheduler::linear([m, n], [ROWS, TILE], 2, order);
    k.persistent(&scheduler, |k, tile| -> Result {
        let [row, column] = tile.at();
        let number = k.linear(&[(10, row), (1, column)], 1);
        let row = if wrong { wrapped(k, row, m) } else { row };
        store(k, By::Boxes, (&c, [m, n]), [row, column], number)
    })?;
    Ok(k)
}

/// The scheduler is of a narrower matrix, and has the second column of tiles only in rows that are none.
fn narrower(by: By) -> Result<Kernel> {
    let mut k = Kernel::new("narrower", 64);
    let (m, n, narrow) = (k.size("m", 2 * ROWS), k.constant(128), k.constant(64));
    let c = k.output("c", element(by), &[m, n]);
    let order = TileOrder::Layouts([layout("(2,2):(1,5)"), layout("(2,2):(0,1)")]);
    let scheduler = TileScheduler::linear([m, narrow], [ROWS, TILE], 2, order);
    k.persistent(&scheduler, |k, tile| -> Result {
        let [row, column] = tile.at();
        let number = k.linear(&[(10, row), (1, column)], 1);
        store(k, by, (&c, [m, n]), [row, column], number)
    })?;
    Ok(k)
}

/// c ← x, where threads behind the end begin at the end's last tile, and may leave out what is below the block's own tile.
fn mixed(leaves_out: bool) -> Result<Kernel> {
    let mut k = Kernel::new("mixed", 64);
    let n = k.size("n", 1 << 20);
    let c = k.output("c", Element::F32, &[n]);
    let x: F32 = k.argument("x");
    let (block, thread) = (k.tiles(Axis::X, n, 64)?, k.thread());
    let origin = k.scale(block, 64);
    let at = k.add(origin, thread);
    let back = k.linear(&[(1, n)], -64);
    let back = k.clamp(back, 0, 1 << 20);
    let base = k.choose(at, Cmp::Lt, n, origin, back);
    let at = k.add(base, thread);
    let inside = Predicate::of(&mut k, at, Cmp::Lt, n);
    let not_below = Predicate::of(&mut k, at, Cmp::Ge, origin);
    let p = if leaves_out {
        inside.and(&mut k, not_below)
    } else {
        inside
    };
    k.when(p, |k| c.store(k, &[at], x))?;
    Ok(k)
}

/// Each row of tiles has what its kernel writes there, by so many iterations or blocks.
fn check(k: Kernel, by: By, sizes: &[(&str, usize)], tiles: &[i32], columns: usize) -> Result {
    let kernel = k.build(HOPPER)?;
    let elements = tiles.len() * (ROWS * TILE) as usize;
    let mut args: Vec<(&str, Arg<'_>)> = sizes.iter().map(|&(n, s)| (n, size(s))).collect();
    args.push(match by {
        By::Threads => ("c", Arg::output::<i32>(elements)),
        By::Boxes => ("c", Arg::output::<f16>(elements)),
    });
    let outcome = run(&kernel, On::Emulator, args)?;
    outcome.assert_clean();
    let found: Vec<i32> = match by {
        By::Threads => outcome.get("c")?,
        By::Boxes => {
            let all: Vec<f16> = outcome.get("c")?;
            all.iter().map(|x| x.to_f32() as i32).collect()
        }
    };
    for (at, found) in found.iter().enumerate() {
        let (row, column) = (at / columns / ROWS as usize, at % columns / TILE as usize);
        let tile = row * (columns / TILE as usize) + column;
        assert_eq!(*found, tiles[tile], "{by:?}, element {at}");
    }
    Ok(())
}

fn refused(k: Result<Kernel>, what: &str) {
    match k {
        Err(error) => panic!("{what}: not built: {error}"),
        Ok(k) => match k.build(HOPPER) {
            Err(error) => assert_eq!(error.code(), "coverage", "{what}: {error}"),
            Ok(_) => panic!("{what}: proven"),
        },
    }
}

#[test]
fn tiles_behind_the_end_are_not_stored() -> Result {
    for by in [By::Threads, By::Boxes] {
        check(shared(by, false)?, by, &[("m", 96)], &[0, 1, 2], 64)?;
        check(
            cluster(by, Cluster::Right)?,
            by,
            &[("m", 96)],
            &[0, 1, 2],
            64,
        )?;
    }
    let sizes = [("m", 64), ("n", 128)];
    check(layouts(false)?, By::Boxes, &sizes, &[1, 2, 11, 12], 128)
}

/// Blocks without a tile of their own, of what an iteration has, of a cluster, of an order for larger matrices, have the first one.
#[test]
fn tiles_that_blocks_without_one_store_again_are_refused() {
    for by in [By::Threads, By::Boxes] {
        refused(shared(by, true), "the last iteration's second block");
        refused(
            cluster(by, Cluster::Wrapped),
            "the last cluster's second block",
        );
        refused(
            cluster(by, Cluster::FromLast),
            "no tile is left for the last cluster's second block",
        );
    }
    refused(layouts(true), "rows of tiles behind the last");
}

/// What is counted of a matrix that is narrower than the output is nothing of the output's other columns.
#[test]
fn schedules_of_another_matrix_are_refused() {
    for by in [By::Threads, By::Boxes] {
        refused(narrower(by), "no block has the second column of tiles");
    }
}

/// Threads of one block that begin at different tiles: some of them where it does, others at the end.
#[test]
fn tiles_that_threads_move_back_apart_are_refused() {
    for leaves_out in [false, true] {
        refused(mixed(leaves_out), "elements of two threads");
    }
}
