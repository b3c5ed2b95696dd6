//! Stages that are held across a loop, uses of a ring at several places, and several rings in one order: what is right, and what a stranger gets wrong.

use half::f16;
use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, TileScheduler, WarpRole};
use tilewright::codegen::view::View;
use tilewright::host::{Arg, On, run};

use super::hopper::{HOPPER, clean, mma, numbers, size};
use super::{Done, Result};

/// Elements of a row of q and of the keys.
const WIDTH: i64 = 128;

/// What an author does with the stage of q.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Held {
    Right,
    GivenBackInTheLoop,
    GivenBackBefore,
    InFlight,
    Kept,
    WaitedForInTheLoop,
    FilledBehind,
    AnotherTile,
    NotFilled,
    ReadBehind,
}

/// o ← Σ q·kᵀ over the tiles of 64 keys, for tiles of 64 queries: q is held in a ring of one stage. A persistent block has several tiles of q.
fn held(what: Held, persistent: bool) -> Result<std::result::Result<Proven, String>> {
    let mut k = Kernel::new("held", 256);
    let [m, n] = ["m", "n"].map(|name| k.size(name, 1 << 15));
    let width = k.constant(WIDTH);
    let columns = k.constant(64);
    let q = k.input("q", Element::F16, &[m, width]);
    let keys = k.input("keys", Element::F16, &[n, width]);
    let o = k.output("o", Element::F32, &[m, columns]);
    let mma = mma(64, "(1,1,1):(0,0,0)")?;
    let mut ring = |name: &str, stages| {
        k.tma_ring(stages, [Staged::new(name, Element::F16, [64, WIDTH], &[])])
    };
    let of_q = ring("tile_q", Stages::new(1))?;
    let of_k = ring("tile_k", Stages::new(2).lag(1))?;
    let (zero, steps) = (k.constant(0), k.tiles_in(n, 64)?);
    // The tile of q, and how many tiles the block had before.
    let tiles = |k: &mut Kernel, body: &mut dyn FnMut(&mut Kernel, [Expr; 2], Expr) -> Done| {
        if persistent {
            let scheduler = TileScheduler::rectangle([m, columns], [64, 64], [2, 1]);
            return k.persistent(&scheduler, |k, tile| body(k, tile.at(), tile.number()));
        }
        let i = k.tiles(Axis::X, m, 64)?;
        body(k, [i, zero], zero)
    };
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        tiles(k, &mut |k, [i, j], number| {
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            let before = k.mul(number, steps);
            let mut tile = None;
            if what != Held::WaitedForInTheLoop {
                tile = Some(k.arrived(&of_q, number, i)?);
            }
            if what == Held::GivenBackBefore {
                k.release(&of_q, number)?;
            }
            k.for_loop("keys", 0, 1, steps, |k, step| {
                let [q] = match &tile {
                    Some(tile) => tile.clone(),
                    None => k.arrived(&of_q, number, i)?,
                };
                let index = k.add(before, step);
                let [tile] = k.arrived(&of_k, index, step)?;
                k.gemm(&mma, &q, &tile, &sums)?;
                k.wait_wgmma(1);
                k.release(&of_k, index)?;
                if what == Held::GivenBackInTheLoop {
                    k.wait_wgmma(0);
                    k.release(&of_q, number)?;
                }
                Done::Ok(())
            })?;
            if what != Held::InFlight {
                k.wait_wgmma(0);
            }
            if !matches!(
                what,
                Held::Kept | Held::GivenBackBefore | Held::GivenBackInTheLoop
            ) {
                k.release(&of_q, number)?;
            }
            if let (Held::ReadBehind, Some([q])) = (what, &tile) {
                k.gemm(&mma, q, q, &sums)?;
            }
            k.wait_wgmma(0);
            let o = o
                .tile(k, &[64, 64], &[i, j])?
                .partition_c(k, &mma, thread)?;
            k.store_fragment(&o.vectors(k, 2)?, &sums)
        })
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        tiles(k, &mut |k, [i, _], number| {
            let before = k.mul(number, steps);
            let queries = |k: &mut Kernel| {
                let tile = if what == Held::AnotherTile { zero } else { i };
                k.fill_stage(&of_q, number, tile, |k, [to]| {
                    let from = q.tile(k, &[64, WIDTH], &[i, zero])?;
                    k.tma_load(&from, &to)
                })
            };
            if !matches!(what, Held::FilledBehind | Held::NotFilled) {
                queries(k)?;
            }
            k.produce(&of_k, before, steps, |k, [to], step| {
                let from = keys.tile(k, &[64, WIDTH], &[step, zero])?;
                k.tma_load(&from, &to)
            })?;
            match what {
                Held::FilledBehind => queries(k),
                _ => Ok(()),
            }
        })
    })?;
    Ok(k.build(HOPPER).map_err(|e| e.to_string()))
}

/// Whether `o` has Σ q·kᵀ over the tiles of 64 keys. Sums of small integers are exact.
pub(super) fn are_scores(o: &[f32], (q, keys): (&[f16], &[f16]), width: usize) {
    for (at, &o) in o.iter().enumerate() {
        let row = &q[at / 64 * width..][..width];
        let dot = |key: &[f16]| -> f32 {
            let terms = row.iter().zip(key).map(|(x, y)| x.to_f32() * y.to_f32());
            terms.sum()
        };
        let sum: f32 = keys.chunks(width).skip(at % 64).step_by(64).map(dot).sum();
        assert_eq!(o.to_bits(), (sum + 0.0).to_bits(), "element {at}");
    }
}

/// A kernel that is refused, with these words.
pub(super) fn refused<W: std::fmt::Debug>(
    what: W,
    built: std::result::Result<Proven, String>,
    said: &str,
) {
    let error = built.expect_err(said);
    assert!(
        error.contains(said),
        "{what:?}: `{error}` instead of `{said}`"
    );
}

#[test]
fn a_stage_is_held_across_a_loop() -> Result {
    for persistent in [false, true] {
        let kernel = held(Held::Right, persistent)??;
        for (m, n) in [(64, 64), (1, 200), (300, 130), (70, 0)] {
            let width = WIDTH as usize;
            let (q, keys) = (numbers(m * width, 1), numbers(n * width, 2));
            let args = vec![
                ("m", size(m)),
                ("n", size(n)),
                ("q", Arg::input(&q)),
                ("keys", Arg::input(&keys)),
                ("o", Arg::output::<f32>(m * 64)),
            ];
            let outcome = run(&kernel, On::Emulator, args)?;
            clean(&outcome);
            are_scores(&outcome.get::<f32>("o")?, (&q, &keys), width);
        }
    }
    Ok(())
}

#[test]
fn misuse_of_a_held_stage_is_refused() -> Result {
    for (what, said) in [
        (Held::GivenBackInTheLoop, "begins outside"),
        (Held::GivenBackBefore, "not known to be full"),
        (Held::InFlight, "before MMAs that read it are complete"),
        (Held::Kept, "never released"),
        (Held::FilledBehind, "wait for each other forever"),
        (Held::AnotherTile, "another tile is read than was filled in"),
        (Held::NotFilled, "not exactly one role fills its stages"),
        (Held::ReadBehind, "not known to be full"),
    ] {
        refused(what, held(what, false)?, said);
    }
    let error = held(Held::WaitedForInTheLoop, false)?.expect_err("waited for in the loop");
    assert!(error.contains("the ring `tile_q_ring`"), "{error}");
    for what in [Held::FilledBehind, Held::GivenBackBefore, Held::Kept] {
        held(what, true)?.expect_err("in persistent blocks");
    }
    Ok(())
}

/// How an author orders two rings, of which the first is a step ahead.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ahead {
    Right,
    InOneLoop,
    SecondFirst,
    LastFirst,
    OneLess,
    OneMore,
}

/// o ← Σ x·xᵀ + Σ y·yᵀ over `steps + 1` tiles of 64 columns; the consumers wait for tile t + 1 of x before they wait for tile t of y.
fn ahead(what: Ahead) -> Result<std::result::Result<Proven, String>> {
    let mut k = Kernel::new("ahead", 256);
    let (m, more) = (k.size("m", 1 << 15), k.size("more", 100));
    let width = k.linear(&[(64, more)], 64);
    let x = k.input("x", Element::F16, &[m, width]);
    let y = k.input("y", Element::F16, &[m, width]);
    let columns = k.constant(64);
    let o = k.output("o", Element::F32, &[m, columns]);
    let mma = mma(64, "(1,1,1):(0,0,0)")?;
    let rings = ["tile_x", "tile_y"].map(|name| {
        k.tma_ring(
            Stages::new(1),
            [Staged::new(name, Element::F16, [64, 64], &[])],
        )
    });
    let [of_x, of_y] = rings;
    let (of_x, of_y) = (of_x?, of_y?);
    let (i, zero) = (k.tiles(Axis::X, m, 64)?, k.constant(0));
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        let sums = k.accumulators(&mma, [64, 64], thread)?;
        let squares = |k: &mut Kernel, ring: &Ring<'static, 1>, step: Expr| {
            let [tile] = k.arrived(ring, step, step)?;
            k.gemm(&mma, &tile, &tile, &sums)?;
            k.wait_wgmma(0);
            k.release(ring, step)
        };
        squares(k, &of_x, zero)?;
        k.for_loop("multiply", 0, 1, more, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            squares(k, &of_x, next)?;
            squares(k, &of_y, step)
        })?;
        squares(k, &of_y, more)?;
        let o = o
            .tile(k, &[64, 64], &[i, zero])?
            .partition_c(k, &mma, thread)?;
        k.store_fragment(&o.vectors(k, 2)?, &sums)
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        let fill = |k: &mut Kernel, of_x_too: bool, step: Expr| {
            let (ring, from) = if of_x_too { (&of_x, &x) } else { (&of_y, &y) };
            k.fill_stage(ring, step, step, |k, [to]| {
                let from = from.tile(k, &[64, 64], &[i, step])?;
                k.tma_load(&from, &to)
            })
        };
        if what == Ahead::InOneLoop {
            let steps = k.linear(&[(1, more)], 1);
            return k.for_loop("fill", 0, 1, steps, |k, step| {
                fill(k, true, step)?;
                fill(k, false, step)
            });
        }
        fill(k, true, zero)?;
        if what == Ahead::LastFirst {
            fill(k, false, zero)?;
        }
        k.for_loop("fill", 0, 1, more, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            match what {
                Ahead::SecondFirst => {
                    fill(k, false, step)?;
                    fill(k, true, next)
                }
                Ahead::LastFirst => {
                    fill(k, true, next)?;
                    fill(k, false, next)
                }
                _ => {
                    fill(k, true, next)?;
                    fill(k, false, step)
                }
            }
        })?;
        match what {
            Ahead::OneLess | Ahead::LastFirst => Ok(()),
            Ahead::OneMore => {
                let next = k.linear(&[(1, more)], 1);
                fill(k, false, more)?;
                fill(k, false, next)
            }
            _ => fill(k, false, more),
        }
    })?;
    Ok(k.build(HOPPER).map_err(|e| e.to_string()))
}

#[test]
fn rings_a_step_apart_are_used_in_one_order() -> Result {
    let kernel = ahead(Ahead::Right)??;
    for (m, more) in [(64, 0), (65, 1), (10, 4)] {
        let width = 64 * (more + 1);
        let (x, y) = (numbers(m * width, 1), numbers(m * width, 2));
        let args = [
            ("m", size(m)),
            ("more", size(more)),
            ("x", Arg::input(&x)),
            ("y", Arg::input(&y)),
            ("o", Arg::output::<f32>(m * 64)),
        ];
        let outcome = run(&kernel, On::Emulator, args)?;
        clean(&outcome);
        let o: Vec<f32> = outcome.get("o")?;
        for (at, &o) in o.iter().enumerate() {
            let (row, column) = (at / 64, at / 64 / 64 * 64 + at % 64);
            let dot = |x: &[f16]| -> f32 {
                let Some(other) = x.get(column * width..(column + 1) * width) else {
                    return 0.0;
                };
                let terms = x[row * width..].iter().zip(other);
                terms.map(|(a, b)| a.to_f32() * b.to_f32()).sum()
            };
            let sum = dot(&x) + dot(&y);
            assert!(
                (o - sum).abs() < 0.5,
                "{m}, {more}, element {at}: {o}, not {sum}"
            );
        }
    }
    for (what, said) in [
        (Ahead::InOneLoop, "filled at 1 places"),
        (Ahead::SecondFirst, "wait for each other forever"),
        (Ahead::LastFirst, "roles count its uses in other loops"),
        (Ahead::OneLess, "another number of times"),
        (Ahead::OneMore, "another number of times"),
    ] {
        refused(what, ahead(what)?, said);
    }
    Ok(())
}

/// A cluster whose producer waits for the last stages of one ring before it fills another.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Drain {
    Right,
    /// In one loop each, of which the consumers hold the last stage of the first across the second.
    BetweenRings,
    /// The second ring is filled in no loop.
    AheadOfTheLast,
    /// A ring that is filled once.
    OfOneStage,
}

/// o ← Σ x·xᵀ + y·yᵀ by clusters that load both together; the last tile of x is held while that of y is read.
fn drained(what: Drain) -> Result<std::result::Result<Proven, String>> {
    let mut k = Kernel::new("drained", 256);
    k.clusters([2, 1, 1]);
    let (m, more) = (k.size("m", 1 << 15), k.size("more", 100));
    let width = k.linear(&[(64, more)], 64);
    let (rows, columns) = (k.constant(64), k.constant(64));
    let x = k.input("x", Element::F16, &[rows, width]);
    let y = k.input("y", Element::F16, &[rows, columns]);
    let o = k.output("o", Element::F32, &[m, columns]);
    let mma = mma(64, "(1,1,1):(0,0,0)")?;
    let mut ring = |name: &str| {
        k.tma_ring(
            Stages::new(1),
            [Staged::new(name, Element::F16, [64, 64], &[])],
        )
    };
    let (of_x, of_y) = (ring("tile_x")?, ring("tile_y")?);
    let (i, zero, one) = (k.tiles(Axis::X, m, 64)?, k.constant(0), k.constant(1));
    let in_loop = what != Drain::OfOneStage;
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        let sums = k.accumulators(&mma, [64, 64], thread)?;
        if in_loop {
            k.for_loop("multiply", 0, 1, more, |k, step| {
                let [tile] = k.arrived(&of_x, step, step)?;
                k.gemm(&mma, &tile, &tile, &sums)?;
                k.wait_wgmma(0);
                k.release(&of_x, step)
            })?;
        }
        let last = if in_loop { more } else { zero };
        let [x] = k.arrived(&of_x, last, last)?;
        let [y] = k.arrived(&of_y, zero, zero)?;
        k.gemm(&mma, &x, &y, &sums)?;
        k.wait_wgmma(0);
        k.release(&of_y, zero)?;
        k.release(&of_x, last)?;
        let o = o
            .tile(k, &[64, 64], &[i, zero])?
            .partition_c(k, &mma, thread)?;
        k.store_fragment(&o.vectors(k, 2)?, &sums)
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        let fill = |k: &mut Kernel, ring: &Ring<'static, 1>, from: &View, step: Expr| {
            k.fill_stage(ring, step, step, |k, [to]| {
                let from = from.tile(k, &[64, 64], &[zero, step])?;
                k.tma_multicast(&from, &to, Axis::X)
            })
        };
        let mut uses = one;
        if in_loop {
            uses = k.linear(&[(1, more)], 1);
            k.for_loop("fill", 0, 1, more, |k, step| fill(k, &of_x, &x, step))?;
            fill(k, &of_x, &x, more)?;
        } else {
            fill(k, &of_x, &x, zero)?;
        }
        if what == Drain::BetweenRings {
            k.drain(&of_x, uses)?;
        }
        fill(k, &of_y, &y, zero)?;
        if what == Drain::AheadOfTheLast {
            k.drain(&of_y, one)?;
            k.drain(&of_x, more)?;
            return Ok(());
        }
        k.drain(&of_y, one)?;
        if what == Drain::BetweenRings {
            return Ok(());
        }
        k.drain(&of_x, uses)
    })?;
    Ok(k.build(HOPPER).map_err(|e| e.to_string()))
}

#[test]
fn the_last_stages_of_a_cluster_are_waited_for_behind_all_fills() -> Result {
    for what in [Drain::Right, Drain::OfOneStage] {
        let kernel = drained(what)??;
        for (m, more) in [(128, 0), (130, 2), (1, 3)] {
            let width = 64 * (more + 1);
            let (x, y) = (numbers(64 * width, 1), numbers(64 * 64, 2));
            let args = [
                ("m", size(m)),
                ("more", size(more)),
                ("x", Arg::input(&x)),
                ("y", Arg::input(&y)),
                ("o", Arg::output::<f32>(m * 64)),
            ];
            clean(&run(&kernel, On::Emulator, args)?);
        }
    }
    for (what, said) in [
        (Drain::BetweenRings, "filled or waited for behind"),
        (Drain::AheadOfTheLast, "ring"),
    ] {
        refused(what, drained(what)?, said);
    }
    Ok(())
}
