//! Kernels whose shared memory is addressed by a loop's counter, or whose threads take part by it: natural ones are proven, and right; their wrong neighbours are
//! refused, and what is said of them names the access.

#![expect(
    clippy::float_cmp,
    reason = "sums of small integers, and copies, are exact"
)]

use super::natural::{clean, numbers, ran};
use super::{ARCH, Done, Result, add, layout, refusal, swizzled};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::{Partition, View, ViewError};
use tilewright::host::{Arg, On, run};

/// An element a thread, and the same by halves of the threads.
const OWN: &str = "(128,1):(1,0)";
const ACROSS: &str = "((64,2),1):((2,1),0)";

/// A thread's part of a tile.
pub(super) fn part(
    k: &mut Kernel,
    v: &View,
    shape: &[i64],
    at: &[Expr],
    tv: &str,
) -> std::result::Result<Partition, ViewError> {
    let thread = k.thread();
    v.tile(k, shape, at)?.partition(k, &layout(tv), thread)
}

/// The sums of columns: a row goes to one of two stages while the last one is read.
fn double_buffer(stages: i64, barriers: usize) -> Result<Kernel> {
    let mut k = Kernel::new("double_buffer", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[cols]);
    let s = k.shared("s", Element::F32, &swizzled("(2,128):(128,1)"))?;
    let (block, zero) = (k.tiles(Axis::X, cols, 128)?, k.constant(0));
    let y = part(&mut k, &y, &[128], &[block], ACROSS)?;
    let sums = k.fragment_of(&y, 0.0)?;
    k.for_loop("i", 0, 1, rows, |k, i| {
        let stage = k.rem(i, stages);
        let from = part(k, &x, &[1, 128], &[i, block], OWN)?;
        let to = part(k, &s, &[1, 128], &[stage, zero], OWN)?;
        k.copy(&from, &to)?;
        (0..barriers).for_each(|_| k.barrier());
        let take = part(k, &s, &[1, 128], &[stage, zero], ACROSS)?;
        let row = k.load_fragment(&take)?;
        add(k, &sums, &row)
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

#[test]
pub(super) fn double_buffer_by_parity() -> Result {
    let kernel = double_buffer(2, 1)?.build(ARCH)?;
    let x = numbers(5 * 150);
    let args = vec![
        ("rows", Arg::from(5_u32)),
        ("cols", Arg::from(150_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(150)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    assert!((0..150).all(|j| y[j] == (0..5).map(|i| x[150 * i + j]).sum::<f32>()));
    for (stages, barriers) in [(2, 0), (1, 1), (1, 0)] {
        let error = refusal(double_buffer(stages, barriers)?);
        assert!(matches!(error.code(), "race" | "undefined"), "{error}");
        assert!(error.to_string().contains(" s"), "{error}");
    }
    Ok(())
}

/// The sums of columns, with the next row on its way to one of `stages` stages while another is read. `barriers`: behind the first row, and in each iteration.
fn column_sums(stages: i64, barriers: [bool; 2]) -> Result<Kernel> {
    let mut k = Kernel::new("column_sums", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[cols]);
    let s = k.shared(
        "s",
        Element::F32,
        &swizzled(&format!("({stages},128):(128,1)")),
    )?;
    let (block, thread, zero) = (k.tiles(Axis::X, cols, 128)?, k.thread(), k.constant(0));
    let (one, across) = (layout("(128,1):(1,0)"), layout("((64,2),1):((2,1),0)"));
    let stage = |k: &mut Kernel, row| {
        let stage = k.rem(row, stages);
        s.tile(k, &[1, 128], &[stage, zero])
    };
    let put = |k: &mut Kernel, row| {
        let from = x
            .tile(k, &[1, 128], &[row, block])?
            .partition(k, &one, thread)?;
        let to = stage(k, row)?.partition(k, &one, thread)?;
        k.copy(&from, &to)
    };
    let y = y
        .tile(&mut k, &[128], &[block])?
        .partition(&mut k, &across, thread)?;
    let sums = k.fragment_of(&y, 0.0)?;
    put(&mut k, zero)?;
    if barriers[0] {
        k.barrier();
    }
    k.for_loop("i", 0, 1, rows, |k, i| {
        let next = k.linear(&[(1, i)], 1);
        put(k, next)?;
        let take = stage(k, i)?.partition(k, &across, thread)?;
        let row = k.load_fragment(&take)?;
        add(k, &sums, &row)?;
        if barriers[1] {
            k.barrier();
        }
        Done::Ok(())
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

#[test]
fn stages_by_the_counter_modulo_a_constant() -> Result {
    for stages in [2, 3, 4, 5] {
        let kernel = column_sums(stages, [true, true])?.build(ARCH)?;
        let x = numbers(5 * 150);
        let args = vec![
            ("rows", Arg::from(5_u32)),
            ("cols", Arg::from(150_u32)),
            ("x", Arg::input(&x)),
            ("y", Arg::output::<f32>(150)),
        ];
        let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
        assert!((0..150).all(|j| y[j] == (0..5).map(|i| x[150 * i + j]).sum::<f32>()));
        for barriers in [[false, true], [true, false], [false, false]] {
            let error = refusal(column_sums(stages, barriers)?);
            assert!(matches!(error.code(), "race" | "undefined"), "{error}");
            assert!(
                error.to_string().contains(" s"),
                "{stages} {barriers:?}: {error}"
            );
        }
    }
    // One stage is overwritten while it is read.
    let error = refusal(column_sums(1, [true, true])?);
    assert_eq!(error.code(), "race", "{error}");
    Ok(())
}

/// a / p
fn divided(k: &mut Kernel, a: F32, p: F32) -> F32 {
    let inverse = p.reciprocal(k);
    a.mul(k, inverse)
}

/// a − f·b
fn less_product(k: &mut Kernel, a: F32, f: F32, b: F32) -> F32 {
    let product = f.mul(k, b);
    a.sub(k, product)
}

/// LU of tiles of 32×32, a row a thread: below the pivot, which is `ahead` rows further.
fn lu_by_rows(below: Cmp, ahead: i64, barriers: usize) -> Result<Kernel> {
    let mut k = Kernel::new("lu_by_rows", 32);
    let (n, side) = (k.size("n", 1 << 20), k.constant(32));
    let y = k.output("y", Element::F32, &[n, side, side]);
    let s = k.shared("s", Element::F32, &swizzled("(32,32):(33,1)"))?;
    let (tile, zero, thread) = (k.tiles(Axis::X, n, 1)?, k.constant(0), k.thread());
    let y = y.slice(&mut k, &[tile])?;
    let y = part(&mut k, &y, &[32, 32], &[zero, zero], "(32,32):(1,32)")?;
    let own = part(&mut k, &s, &[32, 32], &[zero, zero], "(32,32):(1,32)")?;
    k.copy(&y, &own)?;
    k.for_loop("i", 0, 1, side, |k, i| {
        (0..barriers).for_each(|_| k.barrier());
        let row = k.linear(&[(1, i)], ahead);
        let below = Predicate::of(k, thread, below, i);
        let pivot = s.load(k, &[row, i])?;
        k.when(below, |k| {
            let f = s.load(k, &[thread, i])?;
            let f = divided(k, f, pivot);
            s.store(k, &[thread, i], f)?;
            k.for_loop("j", 0, 1, side, |k, j| {
                let right = Predicate::of(k, j, Cmp::Gt, i);
                k.when(right, |k| {
                    let (a, b) = (s.load(k, &[thread, j])?, s.load(k, &[i, j])?);
                    let a = less_product(k, a, f, b);
                    s.store(k, &[thread, j], a)
                })
            })
        })
    })?;
    k.copy(&own, &y)?;
    Ok(k)
}

/// LU of a tile of 16×16, an element a thread.
fn lu_by_elements(barriers: [usize; 2]) -> Result<Kernel> {
    let mut k = Kernel::new("lu_by_elements", 256);
    let side = k.constant(16);
    let x = k.input("x", Element::F32, &[side, side]);
    let y = k.output("y", Element::F32, &[side, side]);
    let s = k.shared("s", Element::F32, &swizzled("(16,16):(16,1)"))?;
    let thread = k.thread();
    let (row, column) = (k.div(thread, 16), k.rem(thread, 16));
    k.blocks(Axis::X, 1)?;
    let value = x.load::<f32>(&mut k, &[row, column])?;
    s.store(&mut k, &[row, column], value)?;
    k.barrier();
    k.for_loop("i", 0, 1, side, |k, i| {
        let below = Predicate::of(k, row, Cmp::Gt, i);
        let here = Predicate::of(k, column, Cmp::Eq, i).and(k, below);
        k.when(here, |k| {
            let (a, pivot) = (s.load(k, &[row, column])?, s.load(k, &[i, i])?);
            let a = divided(k, a, pivot);
            s.store(k, &[row, column], a)
        })?;
        (0..barriers[0]).for_each(|_| k.barrier());
        let right = Predicate::of(k, column, Cmp::Gt, i).and(k, below);
        k.when(right, |k| {
            let (a, f) = (s.load(k, &[row, column])?, s.load(k, &[row, i])?);
            let b = s.load(k, &[i, column])?;
            let a = less_product(k, a, f, b);
            s.store(k, &[row, column], a)
        })?;
        (0..barriers[1]).for_each(|_| k.barrier());
        Done::Ok(())
    })?;
    let value = s.load::<f32>(&mut k, &[row, column])?;
    y.store(&mut k, &[row, column], value)?;
    Ok(k)
}

/// A matrix with a large diagonal.
fn matrix(n: usize) -> Vec<f32> {
    (0..n * n)
        .map(|i| {
            if i / n == i % n {
                40.0
            } else {
                ((i * 7) % 11) as f32 / 8.0
            }
        })
        .collect()
}

fn lu(mut a: Vec<f32>, n: usize) -> Vec<f32> {
    for i in 0..n {
        for r in i + 1..n {
            a[r * n + i] /= a[i * n + i];
            for c in i + 1..n {
                a[r * n + c] -= a[r * n + i] * a[i * n + c];
            }
        }
    }
    a
}

fn near(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{i}: {a} {b}");
    }
}

#[test]
pub(super) fn lu_of_a_tile() -> Result {
    let kernel = lu_by_elements([1, 1])?.build(ARCH)?;
    let x = matrix(16);
    let args = vec![("x", Arg::input(&x)), ("y", Arg::output::<f32>(256))];
    let outcome = clean(&kernel, &args)?;
    near(&outcome.get::<f32>("y")?, &lu(x, 16));
    for barriers in [[0, 1], [1, 0], [0, 0]] {
        let error = refusal(lu_by_elements(barriers)?);
        assert_eq!(error.code(), "race", "{error}");
        assert!(
            error.to_string().contains("read s") && error.to_string().contains("write s"),
            "{error}"
        );
    }
    let kernel = lu_by_rows(Cmp::Gt, 0, 1)?.build(ARCH)?;
    let x = matrix(32);
    let args = vec![
        ("n", Arg::from(2_u32)),
        ("y", Arg::in_out(&[&x[..], &x[..]].concat())),
    ];
    let outcome = clean(&kernel, &args)?;
    let (y, right): (Vec<f32>, _) = (outcome.get("y")?, lu(x, 32));
    y.chunks(1024).for_each(|y| near(y, &right));
    for (below, ahead, barriers, code) in [
        (Cmp::Gt, 0, 0, "race"),
        (Cmp::Ge, 0, 1, "race"),
        (Cmp::Gt, 1, 1, "bounds"),
    ] {
        let error = refusal(lu_by_rows(below, ahead, barriers)?);
        assert_eq!(error.code(), code, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("read s") || text.contains("write s"),
            "{text}"
        );
    }
    Ok(())
}

/// Rows of a tile by what is derived of a counter, and threads by it: what is proven is clean.
#[test]
fn random_rows_by_the_counter() -> Result {
    const TURNS: i64 = 6;
    let mut random = 11_u64;
    let mut below = move |n: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % n
    };
    let (mut proven, mut refused) = (0, 0);
    for round in 0..120 {
        let mut k = Kernel::new("rows", 64);
        let n = k.size("n", 1 << 20);
        let (x, y) = (
            k.input("x", Element::F32, &[n]),
            k.output("y", Element::F32, &[n]),
        );
        let s = k.shared("s", Element::F32, &swizzled("(8,64):(64,1)"))?;
        let (block, thread, zero) = (k.tiles(Axis::X, n, 64)?, k.thread(), k.constant(0));
        let (one, across) = (layout("(64,1):(1,0)"), layout("((32,2),1):((2,1),0)"));
        let [x, y] = [x, y].map(|v| {
            v.tile(&mut k, &[64], &[block])?
                .partition(&mut k, &one, thread)
        });
        let (x, y) = (x?, y?);
        let sums = k.fragment_of(&x, 0.0)?;
        let row = |k: &mut Kernel, i, how| {
            let row = match how {
                0 => i,
                1 => k.linear(&[(-1, i)], TURNS - 1),
                2 => k.div(i, 2),
                3 => k.linear(&[(1, i)], 1),
                4 => k.constant(3),
                _ => {
                    let moved = k.linear(&[(1, i)], how % 2);
                    k.rem(moved, how / 2)
                }
            };
            s.tile(k, &[1, 64], &[row, zero])
        };
        if below(8) != 0 {
            for i in 0..8 {
                let i = k.constant(i);
                let to = row(&mut k, i, 0)?.partition(&mut k, &one, thread)?;
                k.copy(&x, &to)?;
            }
            k.barrier();
        }
        // A loop of any length, where rows are by remainders.
        let bounded = below(2) == 0;
        let how = |n: u64| {
            if bounded {
                n as i64
            } else {
                4 + (n % 7) as i64
            }
        };
        let [put, take] = [how(below(11)), how(below(11))];
        let [guard, share] = [below(4), below(2)];
        let barriers = [below(4) != 0, below(4) != 0];
        let limit = if bounded {
            k.constant(TURNS)
        } else {
            k.size("iterations", 1000)
        };
        k.for_loop("i", 0, 1, limit, |k, i| {
            let to = row(k, i, put)?.partition(k, &one, thread)?;
            let at = k.scale(i, 8);
            match guard {
                0 | 1 => {
                    let cmp = if guard == 0 { Cmp::Ge } else { Cmp::Lt };
                    let p = Predicate::of(k, thread, cmp, at);
                    k.when(p, |k| k.copy(&x, &to))?;
                }
                _ => k.copy(&x, &to)?,
            }
            if barriers[0] {
                k.barrier();
            }
            let from =
                row(k, i, take)?.partition(k, if share == 0 { &one } else { &across }, thread)?;
            let other = k.load_fragment(&from)?;
            add(k, &sums, &other)?;
            if barriers[1] {
                k.barrier();
            }
            Done::Ok(())
        })?;
        k.store_fragment(&y, &sums)?;
        let what = format!("{round}: {put} {take} {guard} {share} {barriers:?} {bounded}");
        match k.build(ARCH) {
            Ok(kernel) => {
                proven += 1;
                let x = numbers(64);
                let mut args = vec![
                    ("n", Arg::from(64_u32)),
                    ("x", Arg::input(&x)),
                    ("y", Arg::output::<f32>(64)),
                ];
                if !bounded {
                    args.push(("iterations", Arg::from(9_u32)));
                }
                let outcome = run(&kernel, On::Emulator, args)?;
                outcome.clean().map_err(|e| format!("{what}: {e}"))?;
            }
            Err(e) => {
                let expected = ["race", "undefined", "bounds"].contains(&e.code());
                assert!(expected, "{what}: {e}");
                assert!(e.to_string().contains(" s"), "{what}: {e}");
                refused += 1;
            }
        }
    }
    assert!(proven > 20 && refused > 20, "{proven} {refused}");
    Ok(())
}

/// A loop that is known to have no iteration does nothing, whatever its body says.
#[test]
fn a_loop_without_iterations() -> Result {
    let mut k = Kernel::new("no_iterations", 32);
    let (n, zero) = (k.size("n", 1 << 20), k.constant(0));
    let y = k.output("y", Element::F32, &[n]);
    let s = k.shared("s", Element::F32, &swizzled("8:1"))?;
    let (block, thread) = (k.tiles(Axis::X, n, 32)?, k.thread());
    k.for_loop("i", 0, 1, zero, |k, i| s.store(k, &[i], F32::from(1.0)))?;
    let at = k.linear(&[(32, block), (1, thread)], 0);
    y.store(&mut k, &[at], F32::from(2.0))?;
    let args = vec![("n", Arg::from(5_u32)), ("y", Arg::output::<f32>(5))];
    assert_eq!(ran(&k.build(ARCH)?, args)?.get::<f32>("y")?, [2.0; 5]);
    Ok(())
}
