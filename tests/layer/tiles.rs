//! Persistent blocks: which tile each block takes in which iteration, for all sizes, and what is refused.

use tilewright::Layout;
use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::{Staged, Stages, TileOrder, TileScheduler, WarpRole};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::{Predicate, S32};
use tilewright::codegen::view::View;
use tilewright::host::{Arg, On, run};

use super::hopper::{HOPPER, clean, mma, numbers, size};
use super::natural::ran;
use super::{ARCH, Done, Result, layout, without_lines};

/// The largest extent.
const MOST: i64 = 1 << 14;

/// Rows and columns of a tile.
const TILE: [i64; 2] = [4, 64];

/// An order of tiles, and the element of a list at which it takes the tile of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Rows,
    Columns,
    Groups(u32),
    /// 3 rows of tiles together, column by column, of up to 6 × 5 tiles.
    Layouts,
    List,
}

const ORDERS: [Order; 7] = [
    Order::Rows,
    Order::Columns,
    Order::Groups(1),
    Order::Groups(3),
    Order::Groups(1 << 20),
    Order::Layouts,
    Order::List,
];

/// A list of all tiles that is no layout: by steps of a number without a common factor.
fn list(tiles: usize) -> Vec<i32> {
    let step = [7, 11, 13]
        .into_iter()
        .find(|step| !tiles.is_multiple_of(*step));
    let at = |i| (i * step.unwrap_or(1) + 5) % tiles.max(1);
    (0..tiles).map(|i| at(i) as i32).collect()
}

impl Order {
    fn layouts() -> [Layout; 2] {
        [layout("(3,5,2):(1,0,3)"), layout("(3,5,2):(0,1,0)")]
    }

    /// The order in a kernel; a list is an input of it.
    fn of(self, k: &mut Kernel, extents: [Expr; 2]) -> Result<TileOrder> {
        Ok(match self {
            Self::Rows => TileOrder::Rows,
            Self::Columns => TileOrder::Columns,
            Self::Groups(rows) => TileOrder::Groups(rows),
            Self::Layouts => TileOrder::Layouts(Self::layouts()),
            Self::List => {
                let (list, tiles) = list_of(k, extents, TILE)?;
                let zero = k.constant(0);
                k.assume_distinct(&list, "each tile is taken once");
                k.assume_range(&list, zero, tiles, "numbers of tiles");
                TileOrder::List(list)
            }
        })
    }

    /// The tiles of R × C in order; none for those outside of the matrix.
    fn tiles(self, [rows, columns]: [usize; 2]) -> Vec<[usize; 2]> {
        let all = rows * columns;
        let by_groups = |of: usize| {
            let groups = (0..rows).step_by(of.max(1));
            let group = |first: usize| {
                let own = first..(first + of).min(rows);
                (0..columns).flat_map(move |j| own.clone().map(move |i| [i, j]))
            };
            groups.flat_map(group).collect()
        };
        match self {
            Self::Rows => (0..all).map(|i| [i / columns, i % columns]).collect(),
            Self::Columns => (0..all).map(|i| [i % rows, i / rows]).collect(),
            Self::Groups(of) => by_groups(of as usize),
            Self::Layouts => (0..30).map(|i| [i % 3 + i / 15 * 3, i / 3 % 5]).collect(),
            Self::List => {
                let at = |i: i32| [i as usize / columns, i as usize % columns];
                list(all).into_iter().map(at).collect()
            }
        }
    }
}

/// The list of a kernel, and the number of its tiles.
fn list_of(k: &mut Kernel, [m, n]: [Expr; 2], [tm, tn]: [i64; 2]) -> Result<(View, Expr)> {
    let (rows, columns) = (k.tiles_in(m, tm)?, k.tiles_in(n, tn)?);
    let tiles = k.mul(rows, columns);
    Ok((k.input("list", Element::S32, &[tiles]), tiles))
}

/// y[i, j] ← the number of the iteration and the block that has the tile of (i, j), of so many blocks.
fn numbered(order: Order, blocks: u32, constant: Option<[i64; 2]>) -> Result<Proven> {
    let most = if order == Order::Layouts {
        [24, 320]
    } else {
        [MOST; 2]
    };
    let mut k = Kernel::new("numbered", 64);
    let extents = match constant {
        Some(sizes) => sizes.map(|n| k.constant(n)),
        None => [k.size("m", most[0]), k.size("n", most[1])],
    };
    let order = order.of(&mut k, extents)?;
    let scheduler = TileScheduler::linear(extents, TILE, blocks, order);
    write_numbers(&mut k, extents, blocks, &scheduler)?;
    Ok(k.build(ARCH)?)
}

fn write_numbers(
    k: &mut Kernel,
    extents: [Expr; 2],
    blocks: u32,
    scheduler: &TileScheduler,
) -> Done {
    let y = k.output("y", Element::S32, &extents);
    let block = k.blocks(Axis::X, blocks)?;
    k.persistent(scheduler, |k, tile| {
        let number = k.linear(&[(blocks.into(), tile.number()), (1, block)], 0);
        let number = S32::index(k, number);
        write_tile(k, (&y, extents), tile.at(), number)
    })
}

/// The tile of y at a row and a column of tiles ← a number.
fn write_tile(
    k: &mut Kernel,
    (y, extents): (&View, [Expr; 2]),
    [row, column]: [Expr; 2],
    number: S32,
) -> Done {
    let thread = k.thread();
    let j = k.linear(&[(TILE[1], column), (1, thread)], 0);
    for i in 0..TILE[0] {
        let i = k.linear(&[(TILE[0], row)], i);
        let down = Predicate::of(k, i, Cmp::Lt, extents[0]);
        let inside = Predicate::of(k, j, Cmp::Lt, extents[1]).and(k, down);
        k.when(inside, |k| y.store(k, &[i, j], number))?;
    }
    Ok(())
}

/// Each element has the number of its tile.
fn check_numbered(kernel: &Proven, order: Order, [m, n]: [usize; 2], sizes: bool) -> Result {
    let counts = [m.div_ceil(4), n.div_ceil(64)];
    let tiles = list(counts[0] * counts[1]);
    let mut args = vec![("y", Arg::output::<i32>(m * n))];
    if sizes {
        args.extend([("m", size(m)), ("n", size(n))]);
    }
    if order == Order::List {
        args.push(("list", Arg::input(&tiles)));
    }
    let found: Vec<i32> = ran(kernel, args)?.get("y")?;
    let all = order.tiles(counts);
    for (at, found) in found.iter().enumerate() {
        let tile = [at / n / 4, at % n / 64];
        let wanted = all.iter().position(|t| *t == tile).expect("a tile");
        let is = *found as usize;
        assert_eq!(is, wanted, "{order:?}, {m} x {n}, tile {tile:?}");
    }
    Ok(())
}

#[test]
fn each_tile_is_taken_in_its_order_for_all_sizes() -> Result {
    for order in ORDERS {
        for blocks in [1, 3, 4] {
            let kernel = numbered(order, blocks, None)?;
            assert_eq!(kernel.proof.covered, ["y"], "{order:?}");
            for sizes in [[1, 1], [4, 64], [5, 63], [23, 300], [24, 64], [3, 320]] {
                check_numbered(&kernel, order, sizes, true)?;
            }
        }
    }
    Ok(())
}

/// Extents that are numbers, of one tile, of one row or column of tiles, and of more.
#[test]
fn tiles_of_constant_extents_are_taken_once() -> Result {
    for sizes in [[4, 64], [3, 300], [21, 60], [24, 320]] {
        for order in ORDERS {
            for blocks in [1, 3] {
                let kernel = numbered(order, blocks, Some(sizes))
                    .map_err(|e| format!("{order:?}, {sizes:?}, {blocks}: {e}"))?;
                check_numbered(&kernel, order, sizes.map(|n| n as usize), false)?;
            }
        }
        // A rectangle of blocks, of which some have no tile.
        for blocks in [[1, 1], [2, 3], [4, 1]] {
            let mut k = Kernel::new("rectangle", 64);
            let extents = sizes.map(|n| k.constant(n));
            let y = k.output("y", Element::S32, &extents);
            let scheduler = TileScheduler::rectangle(extents, TILE, blocks);
            k.persistent(&scheduler, |k, tile| {
                write_tile(k, (&y, extents), tile.at(), S32::from(7))
            })?;
            let kernel = k.build(ARCH)?;
            assert_eq!(kernel.proof.covered, ["y"]);
            let [m, n] = sizes.map(|n| n as usize);
            let found: Vec<i32> = ran(&kernel, vec![("y", Arg::output::<i32>(m * n))])?.get("y")?;
            assert!(found.iter().all(|x| *x == 7), "{sizes:?} by {blocks:?}");
        }
    }
    Ok(())
}

/// What is wrong with a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrong {
    Nothing,
    /// The producer takes the tiles in another order.
    OtherOrder,
    /// By another number of blocks.
    OtherBlocks,
    /// It counts steps of the tiles of another order.
    OtherNumber,
    /// It drains the ring after the steps of other tiles.
    OtherTotal,
}

/// c ← a·bᵀ of tiles of 64 × 64 by persistent blocks; sums leave by TMA.
fn product(order: Order, wrong: Wrong) -> Result<std::result::Result<Proven, ProofError>> {
    let mut k = Kernel::new("product", 256);
    let most = if order == Order::Layouts {
        [6 * 64, 5 * 64]
    } else {
        [MOST; 2]
    };
    let (m, n, depth) = (
        k.size("m", most[0]),
        k.size("n", most[1]),
        k.size("k", MOST),
    );
    let a = k.input("a", Element::F16, &[m, depth]);
    let b = k.input("b", Element::F16, &[n, depth]);
    let c = k.output("c", Element::F16, &[m, n]);
    let (extents, tile) = ([m, n], [64, 64]);
    let taken = match order {
        Order::List => {
            let (list, tiles) = list_of(&mut k, extents, tile)?;
            let zero = k.constant(0);
            k.assume_distinct(&list, "each tile is taken once");
            k.assume_range(&list, zero, tiles, "numbers of tiles");
            TileOrder::List(list)
        }
        other => other.of(&mut k, extents)?,
    };
    let scheduler = |blocks, order| TileScheduler::linear(extents, tile, blocks, order);
    let of_consumers = scheduler(3, taken.clone());
    let of_producer = match wrong {
        Wrong::OtherOrder => scheduler(3, TileOrder::Columns),
        Wrong::OtherBlocks => scheduler(2, taken),
        _ => of_consumers.clone(),
    };
    let mma = mma(64, "(1,1,1):(0,0,0)")?;
    let tiles = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::F16, [64, 64], &[]));
    let (ring, steps) = (
        k.tma_ring(Stages::new(4).lag(1), tiles)?,
        k.tiles_in(depth, 64)?,
    );
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        k.persistent(&of_consumers, |k, tile| {
            let before = k.mul(tile.number(), steps);
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            k.consume(&ring, before, steps, |k, [a, b], _| {
                k.gemm(&mma, &a, &b, &sums)
            })?;
            let c = c.tile(k, &[64, 64], &tile.at())?;
            let sums = k.convert_fragment(&sums, Element::F16)?;
            k.tma_store(&c, &sums)
        })
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        k.persistent(&of_producer, |k, tile| {
            let number = if wrong == Wrong::OtherNumber {
                tile.at()[0]
            } else {
                tile.number()
            };
            let ([i, j], before) = (tile.at(), k.mul(number, steps));
            k.produce(&ring, before, steps, |k, [to_a, to_b], step| {
                let from_a = a.tile(k, &[64, 64], &[i, step])?;
                let from_b = b.tile(k, &[64, 64], &[j, step])?;
                k.tma_load(&from_a, &to_a)?;
                k.tma_load(&from_b, &to_b)
            })
        })?;
        let drained = match wrong {
            Wrong::OtherTotal => scheduler(2, TileOrder::Rows),
            _ => of_producer.clone(),
        };
        // A number of tiles times the steps is not followed modulo the stages.
        if order == Order::Layouts {
            return Ok(());
        }
        let tiles = k.tiles_of_block(&drained)?;
        let uses = k.mul(tiles, steps);
        k.drain(&ring, uses)
    })?;
    Ok(k.build(HOPPER))
}

#[test]
fn products_of_tiles_in_each_order() -> Result {
    for order in ORDERS {
        let kernel = product(order, Wrong::Nothing)?.map_err(|e| format!("{order:?}: {e}"))?;
        assert_eq!(kernel.proof.covered, ["c"]);
        for (m, n, depth) in [(64, 64, 64), (1, 200, 8), (300, 136, 200), (130, 64, 0)] {
            let (a, b) = (numbers(m * depth, 1), numbers(n * depth, 2));
            let tiles = list(m.div_ceil(64) * n.div_ceil(64));
            let mut args = vec![
                ("m", size(m)),
                ("n", size(n)),
                ("k", size(depth)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<half::f16>(m * n)),
            ];
            if order == Order::List {
                args.push(("list", Arg::input(&tiles)));
            }
            let outcome = run(&kernel, On::Emulator, args)?;
            clean(&outcome);
            let c: Vec<half::f16> = outcome.get("c")?;
            for (at, &c) in c.iter().enumerate() {
                let (row, column) = (&a[at / n * depth..][..depth], &b[at % n * depth..][..depth]);
                let terms = row.iter().zip(column).map(|(x, y)| x.to_f32() * y.to_f32());
                let sum = half::f16::from_f32(terms.fold(0.0, |sum, x| sum + x));
                assert_eq!(c, sum, "{order:?}, {m} x {n} x {depth}, element {at}");
            }
        }
    }
    Ok(())
}

#[test]
fn roles_with_other_tiles_are_refused() {
    for (wrong, said) in [
        (
            Wrong::OtherOrder,
            "by another scheduler than the first role",
        ),
        (Wrong::OtherBlocks, "axis x of the grid"),
        (Wrong::OtherNumber, "ring"),
        (Wrong::OtherTotal, "axis x of the grid"),
    ] {
        let error = match product(Order::Groups(2), wrong) {
            Ok(Ok(_)) => panic!("{wrong:?} is proven"),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(said), "{wrong:?}: {error}");
    }
}

/// What is refused of one loop over the tiles of y, by what is said.
fn refused(
    build: impl FnOnce(&mut Kernel, [Expr; 2]) -> Result<(TileScheduler, [Expr; 2])>,
    said: &str,
) -> Result {
    let mut k = Kernel::new("refused", 64);
    let extents = [k.size("m", 24), k.size("n", 320)];
    let (scheduler, covered) = build(&mut k, extents)?;
    write_numbers(&mut k, covered, 3, &scheduler)?;
    let error = without_lines(&k.build(ARCH).expect_err(said));
    assert!(error.contains(said), "`{error}` instead of `{said}`");
    Ok(())
}

#[test]
fn orders_that_are_none_are_refused() -> Result {
    let by = |extents, order| TileScheduler::linear(extents, TILE, 3, order);
    let layouts = |row: &str, column: &str| TileOrder::Layouts([layout(row), layout(column)]);
    for (row, column, said) in [
        ("(3,5,2):(1,0,0)", "(3,5,2):(0,1,0)", "is assigned twice"),
        (
            "(3,5,2):(1,0,3)",
            "(3,5,2):(0,1,1)",
            "tile (3, 0) is assigned to no block",
        ),
        (
            "(3,5,1):(1,0,3)",
            "(3,5,1):(0,1,0)",
            "tile (3, 0) is assigned to no block",
        ),
        (
            "(3,4,2):(1,0,3)",
            "(3,4,2):(0,1,0)",
            "tile (0, 4) is assigned to no block",
        ),
        ("(3,5,2):(1,0,3)", "(3,5,1):(0,1,0)", "as many elements"),
    ] {
        refused(
            |_, extents| Ok((by(extents, layouts(row, column)), extents)),
            said,
        )?;
    }
    refused(
        |_, extents| Ok((by(extents, TileOrder::Groups(0)), extents)),
        "groups of 0 rows",
    )?;
    // Tiles of half of the columns, of another tile, of another matrix.
    for order in [TileOrder::Rows, TileOrder::Columns, TileOrder::Groups(2)] {
        refused(
            |k, [m, n]| {
                let half = k.div(n, 2);
                Ok((by([m, half], order.clone()), [m, n]))
            },
            "is not written exactly once",
        )?;
        refused(
            |_, extents| {
                let tiles = TileScheduler::linear(extents, [8, 64], 3, order.clone());
                Ok((tiles, extents))
            },
            "is not written exactly once",
        )?;
        refused(
            |k, [m, _]| {
                let other = k.size("other", 320);
                Ok((by([m, other], order.clone()), [m, m]))
            },
            "is not written exactly once",
        )?;
    }
    let mut k = Kernel::new("large", 64);
    let extents = ["m", "n"].map(|name| k.size(name, 1 << 30));
    write_numbers(&mut k, extents, 3, &by(extents, TileOrder::Rows))?;
    let error = k.build(ARCH).expect_err("2^52 tiles").to_string();
    assert!(error.contains("there may be fewer than 2^31"), "{error}");
    Ok(())
}

#[test]
fn lists_that_may_be_no_permutation_are_refused() -> Result {
    // Distinct, the first number and how many more there are than tiles, elements more than tiles.
    for (distinct, range, more, said) in [
        (
            false,
            Some((0, 0)),
            0,
            "state that they are distinct (`Kernel::assume_distinct`)",
        ),
        (
            true,
            None,
            0,
            "state that they are from 0 to the number of tiles (`Kernel::assume_range`)",
        ),
        (true, Some((0, 1)), 0, "from 0 to the number of tiles"),
        (true, Some((-1, 0)), 0, "from 0 to the number of tiles"),
        (true, Some((1, 1)), 0, "from 0 to the number of tiles"),
        (
            true,
            Some((0, 0)),
            1,
            "of another number of elements than there are tiles",
        ),
        (
            true,
            Some((0, 0)),
            -1,
            "of another number of elements than there are tiles",
        ),
    ] {
        refused(
            |k, extents| {
                let (rows, columns) = (k.tiles_in(extents[0], 4)?, k.tiles_in(extents[1], 64)?);
                let tiles = k.mul(rows, columns);
                let elements = match more {
                    -1 => rows,
                    _ => k.linear(&[(1, tiles)], more),
                };
                let list = k.input("list", Element::S32, &[elements]);
                if distinct {
                    k.assume_distinct(&list, "each tile is taken once");
                }
                if let Some((low, high)) = range {
                    let (low, high) = (k.constant(low), k.linear(&[(1, tiles)], high));
                    k.assume_range(&list, low, high, "numbers of tiles");
                }
                let order = TileOrder::List(list);
                Ok((TileScheduler::linear(extents, TILE, 3, order), extents))
            },
            said,
        )?;
    }
    // What is stated is checked before a launch.
    let kernel = numbered(Order::List, 3, None)?;
    for (tiles, said) in [
        ([0, 1, 2, 1], "`list`"),
        ([0, 1, 2, 4], "element 3 of `list` is 4"),
        ([0, -1, 2, 3], "element 1 of `list` is -1"),
    ] {
        let args = [
            ("m", size(8)),
            ("n", size(128)),
            ("y", Arg::output::<i32>(8 * 128)),
            ("list", Arg::input(&tiles)),
        ];
        let error = run(&kernel, On::Emulator, args).unwrap_err();
        assert_eq!(error.code(), "not_as_stated");
        assert!(error.to_string().contains(said), "{error}");
    }
    Ok(())
}
