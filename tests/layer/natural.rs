//! Kernels as anyone would write them are accepted, and right: what the prover refuses must not grow with what it knows.
#![allow(clippy::float_cmp)] // sums of small whole numbers are exact

use float8::F8E4M3;
use half::bf16;

use super::convert::of_e4m3;
use super::{ARCH, Done, Result, add, barrier_when, layout, swizzled, vectors};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::value::{F32, Kind, Predicate, S32, U32, Value};
use tilewright::codegen::view::{Combine, Fragment, Packed, Partition, View};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Arg, On, Outcome, run};

/// A fragment like another one with other values.
fn with<T: Kind>(k: &mut Kernel, like: &Fragment, new: &[Value<T>]) -> Result<Fragment> {
    let mut next = new.iter();
    Ok(like.map_words(k, |_, x| next.next().copied().unwrap_or(x))?)
}

/// Runs a kernel on the emulator, which finds nothing and counts what was proven.
#[expect(clippy::needless_pass_by_value, reason = "tests write the list there")]
pub(super) fn ran(kernel: &Proven, args: Vec<(&str, Arg<'_>)>) -> Result<Outcome> {
    let outcome = clean(kernel, &args)?;
    outcome.assert_counted_as_proven();
    Ok(outcome)
}

/// Runs a kernel on the emulator, which finds nothing.
pub(super) fn clean(kernel: &Proven, args: &[(&str, Arg<'_>)]) -> Result<Outcome> {
    let outcome = run(kernel, On::Emulator, args.to_vec())?;
    outcome.assert_clean();
    super::hosts::record(kernel, args, &outcome)?;
    Ok(outcome)
}

pub(super) fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37) % 101) as f32 - 50.0).collect()
}

#[test]
pub(super) fn prefix_sums() -> Result {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let [x, y, mine] = [x, y, tile.clone()].map(|v| v.partition(&mut k, &one, thread));
    let (y, mine) = (y?, mine?);
    let sums = k.load_fragment(&x?)?;
    for by in [1, 2, 4, 8, 16, 32, 64] {
        k.store_fragment(&mine, &sums)?;
        k.barrier();
        let [back, by] = [-by, by].map(|by| k.constant(by));
        let behind = Predicate::of(&mut k, thread, Cmp::Ge, by);
        k.when(behind, |k| {
            let before = tile.at(k, &[back])?.partition(k, &one, thread)?;
            let before = k.load_fragment(&before)?;
            sums.update_with(k, &before, |k, a, b| a.add(k, b))
        })?;
        k.barrier();
    }
    k.store_fragment(&y, &sums)?;
    let kernel = k.build(ARCH)?;
    let x = numbers(300);
    let args = vec![
        ("n", Arg::from(300_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(300)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    for (i, y) in y.iter().enumerate() {
        assert_eq!(*y, x[i / 128 * 128..=i].iter().sum::<f32>(), "{i}");
    }
    Ok(())
}

/// Rows of 128 elements, four a block: a fragment of them, and where a value of each row goes.
fn rows(outputs: [&str; 2]) -> Result<(Kernel, Fragment, Vec<Partition>)> {
    let mut k = Kernel::new("of_rows", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.constant(128));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let outputs = outputs.map(|name| k.output(name, Element::F32, &[rows]));
    let (i, zero, thread) = (k.tiles(Axis::X, rows, 4)?, k.constant(0), k.thread());
    let x = x.tile(&mut k, &[4, 128], &[i, zero])?;
    let x = x.partition(&mut k, &layout("((32,4),4):((4,1),128)"), thread)?;
    let mut along = Vec::new();
    for y in outputs {
        let y = y.tile(&mut k, &[4], &[i])?;
        along.push(x.along(&mut k, 0, &y)?);
    }
    let x = k.load_fragment(&x)?;
    Ok((k, x, along))
}

#[test]
pub(super) fn argmax_and_the_two_largest() -> Result {
    let (mut k, x, y) = rows(["largest", "where"])?;
    let largest = x.reduce(&mut k, 1, Combine::Max)?;
    let here = x.zip(&mut k, &largest, |k, x, m| {
        x.eq(k, m).select(k, F32::from(1.0), 0.0)
    })?;
    let at = here.map_at(&mut k, |k, here, [_, column]| {
        let column = S32::index(k, column).to_f32(k);
        here.gt(k, 0.0).select(k, column, 1e9)
    })?;
    let at = at.reduce(&mut k, 1, Combine::Min)?;
    k.store_fragment(&y[0], &largest)?;
    k.store_fragment(&y[1], &at)?;
    let argmax = k.build(ARCH)?;

    let (mut k, x, y) = rows(["first", "second"])?;
    let first = x.reduce(&mut k, 1, Combine::Max)?;
    let rest = x.zip(&mut k, &first, |k, x, m| {
        x.lt(k, m).select(k, x, f32::NEG_INFINITY)
    })?;
    let second = rest.reduce(&mut k, 1, Combine::Max)?;
    k.store_fragment(&y[0], &first)?;
    k.store_fragment(&y[1], &second)?;
    let two = k.build(ARCH)?;

    let x = numbers(7 * 128);
    let args = |a, b| {
        let rows = ("rows", Arg::from(7_u32));
        vec![
            rows,
            ("x", Arg::input(&x)),
            (a, Arg::output::<f32>(7)),
            (b, Arg::output::<f32>(7)),
        ]
    };
    let (argmax, two) = (
        ran(&argmax, args("largest", "where"))?,
        ran(&two, args("first", "second"))?,
    );
    let [at, second]: [Vec<f32>; 2] = [argmax.get("where")?, two.get("second")?];
    for (i, row) in x.chunks(128).enumerate() {
        let most = row.iter().copied().fold(f32::MIN, f32::max);
        assert_eq!(row.iter().position(|x| *x == most), Some(at[i] as usize));
        let rest = row.iter().copied().filter(|x| *x < most);
        assert_eq!(rest.fold(f32::MIN, f32::max), second[i]);
    }
    Ok(())
}

/// The eight largest elements of each row, largest first, and their columns.
fn top_8() -> Result<Kernel> {
    let mut k = Kernel::new("top_8", 128);
    let (rows, cols, eight) = (k.size("rows", 1 << 20), k.constant(128), k.constant(8));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let largest = k.output("largest", Element::F32, &[eight, rows]);
    let columns = k.output("columns", Element::F32, &[eight, rows]);
    let (i, zero, thread) = (k.tiles(Axis::X, rows, 4)?, k.constant(0), k.thread());
    // A warp has a row.
    let x = x.tile(&mut k, &[4, 128], &[i, zero])?;
    let part = x.partition(&mut k, &layout("((32,4),4):((4,1),128)"), thread)?;
    let mut x = k.load_fragment(&part)?;
    let column = x.map_at(&mut k, |k, _, [_, column]| S32::index(k, column).to_f32(k))?;
    for rank in 0..8 {
        let most = x.reduce(&mut k, 1, Combine::Max)?;
        let at = x.zip3(&mut k, [&column, &most], |k, x, c, m| {
            x.eq(k, m).select(k, c, 1e9)
        })?;
        let at = at.reduce(&mut k, 1, Combine::Min)?;
        let rank = k.constant(rank);
        for (view, value) in [(&largest, &most), (&columns, &at)] {
            let to = view.slice(&mut k, &[rank])?.tile(&mut k, &[4], &[i])?;
            let to = part.along(&mut k, 0, &to)?;
            k.store_fragment(&to, value)?;
        }
        x = x.zip3(&mut k, [&column, &at], |k, x, c, at| {
            c.eq(k, at).not().select(k, x, f32::NEG_INFINITY)
        })?;
    }
    Ok(k)
}

#[test]
pub(super) fn the_eight_largest_of_rows() -> Result {
    let kernel = top_8()?.build(ARCH)?;
    assembles(&kernel, ARCH);
    // Some elements are equal: the first column comes first.
    let x = numbers(7 * 128);
    let args = vec![
        ("rows", Arg::from(7_u32)),
        ("x", Arg::input(&x)),
        ("largest", Arg::output::<f32>(56)),
        ("columns", Arg::output::<f32>(56)),
    ];
    let outcome = ran(&kernel, args)?;
    let [largest, columns]: [Vec<f32>; 2] = [outcome.get("largest")?, outcome.get("columns")?];
    for (i, row) in x.chunks(128).enumerate() {
        let mut order: Vec<usize> = (0..128).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
        for (rank, &column) in order[..8].iter().enumerate() {
            let at = 7 * rank + i;
            assert_eq!((largest[at], columns[at]), (row[column], column as f32));
        }
    }
    Ok(())
}

#[test]
pub(super) fn rotary_embedding() -> Result {
    let mut k = Kernel::new("rope", 128);
    let (rows, all, half) = (k.size("rows", 1 << 20), k.constant(64), k.constant(32));
    let x = k.input("x", Element::F32, &[rows, all]);
    let [c, s] = ["c", "s"].map(|name| k.input(name, Element::F32, &[rows, half]));
    let y = k.output("y", Element::F32, &[rows, all]);
    let (i, thread) = (k.tiles(Axis::X, rows, 4)?, k.thread());
    let side = |k: &mut Kernel, v: &View, j: i64| {
        let j = k.constant(j);
        v.tile(k, &[4, 32], &[i, j])?
            .partition(k, &layout("((32,4),1):((4,1),0)"), thread)
    };
    let load = |k: &mut Kernel, v: &View, j: i64| -> Result<Fragment> {
        let share = side(k, v, j)?;
        Ok(k.load_fragment(&share)?)
    };
    let (a, b) = (load(&mut k, &x, 0)?, load(&mut k, &x, 1)?);
    let (c, s) = (load(&mut k, &c, 0)?, load(&mut k, &s, 0)?);
    let mul = |k: &mut Kernel, x: &Fragment, y: &Fragment| x.zip(k, y, |k, x, y| x.mul(k, y));
    let (ac, bs) = (mul(&mut k, &a, &c)?, mul(&mut k, &b, &s)?);
    let (bc, as_) = (mul(&mut k, &b, &c)?, mul(&mut k, &a, &s)?);
    let first = ac.zip(&mut k, &bs, |k, x, y| x.sub(k, y))?;
    let second = bc.zip(&mut k, &as_, |k, x, y| x.add(k, y))?;
    for (j, value) in [(0, first), (1, second)] {
        let to = side(&mut k, &y, j)?;
        k.store_fragment(&to, &value)?;
    }
    let kernel = k.build(ARCH)?;
    let (x, c, s) = (numbers(7 * 64), numbers(7 * 32), numbers(7 * 32 + 3));
    let args = vec![
        ("rows", Arg::from(7_u32)),
        ("x", Arg::input(&x)),
        ("c", Arg::input(&c)),
        ("s", Arg::input(&s[3..])),
        ("y", Arg::output::<f32>(7 * 64)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    for i in 0..7 * 32 {
        let (row, j) = (i / 32 * 64, i % 32);
        let (a, b, c, s) = (x[row + j], x[row + 32 + j], c[i], s[3 + i]);
        assert_eq!(
            [y[row + j], y[row + 32 + j]],
            [a * c - b * s, b * c + a * s]
        );
    }
    Ok(())
}

#[test]
fn convolution_of_one_dimension() -> Result {
    let mut k = Kernel::new("conv1d", 128);
    let n = k.size("n", 1 << 20);
    let two = k.constant(2);
    let longer = k.add(n, two);
    let (x, y) = (
        k.input("x", Element::F32, &[longer]),
        k.output("y", Element::F32, &[n]),
    );
    let weights: [F32; 3] = ["w0", "w1", "w2"].map(|name| k.argument(name));
    let (block, thread, one) = (
        k.tiles(Axis::X, n, 128)?,
        k.thread(),
        layout("(128,1):(1,0)"),
    );
    let y = y
        .tile(&mut k, &[128], &[block])?
        .partition(&mut k, &one, thread)?;
    let sums = k.fragment_of(&y, 0.0)?;
    for (j, w) in (0..).zip(weights) {
        let j = k.constant(j);
        let x = x.tile(&mut k, &[128], &[block])?.at(&mut k, &[j])?;
        let x = x.partition(&mut k, &one, thread)?;
        let x = k.load_fragment(&x)?;
        sums.update_with(&mut k, &x, |k, sum, x| x.fma(k, w, sum))?;
    }
    k.store_fragment(&y, &sums)?;
    let kernel = k.build(ARCH)?;
    let x = numbers(302);
    let weight = |w: f32| Arg::from(w);
    let args = vec![
        ("n", Arg::from(300_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(300)),
        ("w0", weight(1.0)),
        ("w1", weight(2.0)),
        ("w2", weight(3.0)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    assert!((0..300).all(|i| y[i] == x[i] + 2.0 * x[i + 1] + 3.0 * x[i + 2]));
    Ok(())
}

#[test]
fn stencil_with_a_halo() -> Result {
    let mut k = Kernel::new("stencil", 128);
    let n = k.size("n", 1 << 20);
    let (zero, two) = (k.constant(0), k.constant(2));
    let longer = k.add(n, two);
    let (x, y) = (
        k.input("x", Element::F32, &[longer]),
        k.output("y", Element::F32, &[n]),
    );
    let tile = k.shared("tile", Element::F32, &swizzled("130:1"))?;
    let tile = tile.tile(&mut k, &[128], &[zero])?;
    let (block, thread, one) = (
        k.tiles(Axis::X, n, 128)?,
        k.thread(),
        layout("(128,1):(1,0)"),
    );
    let x = x.tile(&mut k, &[128], &[block])?;
    let part = |k: &mut Kernel, v: &View, by: i64| {
        let by = k.constant(by);
        v.at(k, &[by])?.partition(k, &one, thread)
    };
    let (from, to) = (part(&mut k, &x, 0)?, part(&mut k, &tile, 0)?);
    k.copy(&from, &to)?;
    let halo = Predicate::of(&mut k, thread, Cmp::Lt, two);
    k.when(halo, |k| {
        let (from, to) = (part(k, &x, 128)?, part(k, &tile, 128)?);
        k.copy(&from, &to)
    })?;
    k.barrier();
    let y = y
        .tile(&mut k, &[128], &[block])?
        .partition(&mut k, &one, thread)?;
    let sums = k.fragment_of(&y, 0.0)?;
    for by in 0..3 {
        let x = part(&mut k, &tile, by)?;
        let x = k.load_fragment(&x)?;
        sums.update_with(&mut k, &x, |k, sum, x| sum.add(k, x))?;
    }
    k.store_fragment(&y, &sums)?;
    let kernel = k.build(ARCH)?;
    let x = numbers(302);
    let args = vec![
        ("n", Arg::from(300_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(300)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    assert!((0..300).all(|i| y[i] == x[i] + x[i + 1] + x[i + 2]));
    Ok(())
}

/// y = the sum of the four neighbours in x, which ends in zeros: a tile of x with its halo in shared memory.
fn stencil_2d() -> Result<Kernel> {
    let mut k = Kernel::new("stencil_2d", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows, cols]);
    let s = k.shared("s", Element::F32, &swizzled("(18,34):(34,1)"))?;
    let (i, j) = (k.tiles(Axis::X, rows, 16)?, k.tiles(Axis::Y, cols, 32)?);
    let (thread, zero, end) = (k.thread(), k.constant(0), k.constant(18));
    for v in 0..5 {
        let e = k.linear(&[(1, thread)], 128 * v);
        let (row, col) = (k.div(e, 34), k.rem(e, 34));
        let above = k.linear(&[(16, i), (1, row)], -1);
        let left = k.linear(&[(32, j), (1, col)], -1);
        let inside = Predicate::of(&mut k, row, Cmp::Lt, end);
        k.when(inside, |k| {
            let value = x.load::<f32>(k, &[above, left])?;
            s.store(k, &[row, col], value)
        })?;
    }
    k.barrier();
    let tv = layout("((32,4),4):((16,1),4)");
    let s = s.tile(&mut k, &[16, 32], &[zero, zero])?;
    let y = y.tile(&mut k, &[16, 32], &[i, j])?;
    let y = y.partition(&mut k, &tv, thread)?;
    let sums = k.fragment_of(&y, 0.0)?;
    for by in [[0, 1], [1, 0], [1, 2], [2, 1]] {
        let by = by.map(|by| k.constant(by));
        let x = s.at(&mut k, &by)?.partition(&mut k, &tv, thread)?;
        let x = k.load_fragment(&x)?;
        sums.update_with(&mut k, &x, |k, sum, x| sum.add(k, x))?;
    }
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

#[test]
pub(super) fn stencil_of_two_dimensions() -> Result {
    let kernel = stencil_2d()?.build(ARCH)?;
    assembles(&kernel, ARCH);
    for (rows, cols) in [(1_usize, 1_usize), (16, 32), (37, 70)] {
        let x = numbers(rows * cols);
        let args = vec![
            ("rows", Arg::from(rows as u32)),
            ("cols", Arg::from(cols as u32)),
            ("x", Arg::input(&x)),
            ("y", Arg::output::<f32>(rows * cols)),
        ];
        let y: Vec<f32> = clean(&kernel, &args)?.get("y")?;
        let at = |i: usize, j: usize| {
            if i < rows && j < cols {
                x[i * cols + j]
            } else {
                0.0
            }
        };
        for (e, y) in y.iter().enumerate() {
            let (i, j) = (e / cols, e % cols);
            let right =
                at(i.wrapping_sub(1), j) + at(i, j.wrapping_sub(1)) + at(i, j + 1) + at(i + 1, j);
            assert_eq!(*y, right, "{i} {j}");
        }
    }
    Ok(())
}

#[test]
fn bitonic_sort() -> Result {
    let mut k = Kernel::new("sort", 64);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (block, thread, two) = (
        k.tiles(Axis::X, n, 128)?,
        k.thread(),
        layout("(64,2):(1,64)"),
    );
    let [x, y] = [x, y].map(|v| v.tile(&mut k, &[128], &[block]));
    let [x, y, all] = [x?, y?, tile.clone()].map(|v| v.partition(&mut k, &two, thread));
    let (x, y, all) = (x?, y?, all?);
    k.copy(&x, &all)?;
    for size in [2, 4, 8, 16, 32, 64, 128_u32] {
        let mut apart = size / 2;
        while apart > 0 {
            k.barrier();
            let share = layout(&format!(
                "(({apart},{}),2):((1,{}),{apart})",
                64 / apart,
                2 * apart
            ));
            let pair = tile.partition(&mut k, &share, thread)?;
            let first = pair.coordinates(&mut k, 0)?[0];
            let up = U32::index(&mut k, first).and(&mut k, size).eq(&mut k, 0);
            let held = k.load_fragment(&pair)?;
            let values: Vec<F32> = held.thread_values(&mut k)?;
            let (a, b) = (values[0], values[1]);
            let (low, high) = (a.min(&mut k, b), a.max(&mut k, b));
            let new = [up.select(&mut k, low, high), up.select(&mut k, high, low)];
            let new = with(&mut k, &held, &new)?;
            k.store_fragment(&pair, &new)?;
            apart /= 2;
        }
    }
    k.barrier();
    k.copy(&all, &y)?;
    let kernel = k.build(ARCH)?;
    let x = numbers(256);
    let args = vec![
        ("n", Arg::from(256_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(256)),
    ];
    // The exchanges have one name, and 1 or 2 wavefronts by their distance: they are not counted one by one.
    let outcome = run(&kernel, On::Emulator, args)?;
    outcome.assert_clean();
    let y: Vec<f32> = outcome.get("y")?;
    for (x, y) in x.chunks(128).zip(y.chunks(128)) {
        let mut x = x.to_vec();
        x.sort_by(f32::total_cmp);
        assert_eq!(x, y);
    }
    Ok(())
}

#[test]
fn nibbles_unpacked() -> Result {
    let mut k = Kernel::new("unpack", 128);
    let (n, eight) = (k.size("n", 1 << 20), k.constant(8));
    let (x, y) = (
        k.input("x", Element::S32, &[n]),
        k.output("y", Element::F32, &[n, eight]),
    );
    let (block, thread, zero) = (k.tiles(Axis::X, n, 128)?, k.thread(), k.constant(0));
    let x =
        x.tile(&mut k, &[128], &[block])?
            .partition(&mut k, &layout("(128,1):(1,0)"), thread)?;
    let y = y.tile(&mut k, &[128, 8], &[block, zero])?;
    let y = y.partition(&mut k, &layout("(128,8):(1,128)"), thread)?;
    let words = k.load_fragment(&x)?;
    let word = words.thread_values::<u32>(&mut k)?[0];
    let nibble = |i: u32| word.shr(&mut k, 4 * i).and(&mut k, 15).to_f32(&mut k);
    let all: Vec<F32> = (0..8).map(nibble).collect();
    let new = k.fragment_of(&y, 0.0)?;
    let new = with(&mut k, &new, &all)?;
    k.store_fragment(&y, &new)?;
    let kernel = k.build(ARCH)?;
    let x: Vec<i32> = (0..200_u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) as i32)
        .collect();
    let args = vec![
        ("n", Arg::from(200_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(1600)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    assert!((0..1600).all(|i| y[i] == (x[i / 8] as u32 >> (4 * (i % 8)) & 15) as f32));
    Ok(())
}

/// C = AB of 8×8 matrices: a product a thread.
#[test]
fn small_products_in_batches() -> Result {
    let mut k = Kernel::new("products", 32);
    let (batch, side, zero) = (k.size("batch", 1 << 20), k.constant(8), k.constant(0));
    let [a, b] = ["a", "b"].map(|name| k.input(name, Element::F32, &[batch, side, side]));
    let c = k.output("c", Element::F32, &[batch, side, side]);
    let (block, thread) = (k.tiles(Axis::X, batch, 32)?, k.thread());
    // Value v is row v mod 8, column v / 8.
    let [a, b, c] = [a, b, c].map(|v| {
        v.tile(&mut k, &[32, 8, 8], &[block, zero, zero])?
            .partition(&mut k, &layout("(32,64):(1,32)"), thread)
    });
    let c = c?;
    let (a, b) = (k.load_fragment(&a?)?, k.load_fragment(&b?)?);
    let a: Vec<F32> = a.thread_values(&mut k)?;
    let b: Vec<F32> = b.thread_values(&mut k)?;
    let mut all = Vec::new();
    for v in 0..64 {
        let (row, column) = (v % 8, v / 8);
        let mut sum = F32::from(0.0);
        for i in 0..8 {
            sum = a[row + 8 * i].fma(&mut k, b[i + 8 * column], sum);
        }
        all.push(sum);
    }
    let sums = k.fragment_of(&c, 0.0)?;
    let sums = with(&mut k, &sums, &all)?;
    k.store_fragment(&c, &sums)?;
    let kernel = k.build(ARCH)?;
    let (a, b) = (numbers(40 * 64), numbers(41 * 64));
    let args = vec![
        ("batch", Arg::from(40_u32)),
        ("a", Arg::input(&a)),
        ("b", Arg::input(&b[64..])),
        ("c", Arg::output::<f32>(40 * 64)),
    ];
    let c: Vec<f32> = ran(&kernel, args)?.get("c")?;
    for (at, c) in c.iter().enumerate() {
        let (matrix, row, column) = (at / 64 * 64, at / 8 % 8 * 8, at % 8);
        let products = (0..8).map(|i| a[matrix + row + i] * b[64 + matrix + 8 * i + column]);
        assert_eq!(*c, products.sum::<f32>(), "{at}");
    }
    Ok(())
}

#[test]
fn permuted_modes() -> Result {
    let mut k = Kernel::new("permute", 128);
    let [a, b, c] =
        [("a", 1 << 15), ("b", 1 << 15), ("c", 1 << 20)].map(|(name, most)| k.size(name, most));
    let (x, y) = (
        k.input("x", Element::F32, &[a, b, c]),
        k.output("y", Element::F32, &[b, a, c]),
    );
    let (block, i, j) = (
        k.tiles(Axis::X, c, 128)?,
        k.tiles(Axis::Y, a, 1)?,
        k.tiles(Axis::Z, b, 1)?,
    );
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let x = x
        .tile(&mut k, &[1, 1, 128], &[i, j, block])?
        .partition(&mut k, &one, thread)?;
    let y = y
        .tile(&mut k, &[1, 1, 128], &[j, i, block])?
        .partition(&mut k, &one, thread)?;
    k.copy(&x, &y)?;
    let kernel = k.build(ARCH)?;
    let [a, b, c] = [3, 5, 150];
    let x = numbers(a * b * c);
    let args = vec![
        ("a", Arg::from(a as u32)),
        ("b", Arg::from(b as u32)),
        ("c", Arg::from(c as u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(x.len())),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    for (at, y) in y.iter().enumerate() {
        let (j, i, l) = (at / c / a, at / c % a, at % c);
        assert_eq!(*y, x[(i * b + j) * c + l]);
    }
    Ok(())
}

#[test]
fn two_vectors_one_after_the_other() -> Result {
    let mut k = Kernel::new("concat", 128);
    let (n, two) = (k.size("n", 1 << 20), k.constant(2));
    let inputs = ["a", "b"].map(|name| k.input(name, Element::F32, &[n]));
    let y = k.output("y", Element::F32, &[two, n]);
    let (block, thread, one) = (
        k.tiles(Axis::X, n, 128)?,
        k.thread(),
        layout("(128,1):(1,0)"),
    );
    for (row, x) in (0..).zip(inputs) {
        let row = k.constant(row);
        let x = x
            .tile(&mut k, &[128], &[block])?
            .partition(&mut k, &one, thread)?;
        let y = y
            .tile(&mut k, &[1, 128], &[row, block])?
            .partition(&mut k, &one, thread)?;
        k.copy(&x, &y)?;
    }
    let kernel = k.build(ARCH)?;
    let both = numbers(2 * 300);
    let args = vec![
        ("n", Arg::from(300_u32)),
        ("a", Arg::input(&both[..300])),
        ("b", Arg::input(&both[300..])),
        ("y", Arg::output::<f32>(600)),
    ];
    assert_eq!(ran(&kernel, args)?.get::<f32>("y")?, both);
    Ok(())
}

#[test]
fn column_sums() -> Result {
    let mut k = Kernel::new("column_sums", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let (one_row, zero) = (k.constant(1), k.constant(0));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[one_row, cols]);
    let (block, thread, one) = (
        k.tiles(Axis::X, cols, 128)?,
        k.thread(),
        layout("(128,1):(1,0)"),
    );
    let y = y
        .tile(&mut k, &[1, 128], &[zero, block])?
        .partition(&mut k, &one, thread)?;
    let sums = k.fragment_of(&y, 0.0)?;
    k.for_loop("row", 0, 1, rows, |k, row| {
        let x = x.tile(k, &[1, 128], &[row, block])?;
        let x = x.partition(k, &one, thread)?;
        let x = k.load_fragment(&x)?;
        sums.update_with(k, &x, |k, sum, x| sum.add(k, x))
    })?;
    k.store_fragment(&y, &sums)?;
    let kernel = k.build(ARCH)?;
    let x = numbers(5 * 150);
    let args = vec![
        ("rows", Arg::from(5_u32)),
        ("cols", Arg::from(150_u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(150)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    assert!((0..150).all(|j| y[j] == (0..5).map(|i| x[150 * i + j]).sum::<f32>()));
    Ok(())
}

#[test]
fn cross_entropy() -> Result {
    let mut k = Kernel::new("cross_entropy", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.constant(128));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let target = k.input("target", Element::F32, &[rows]);
    let loss = k.output("loss", Element::F32, &[rows]);
    let (i, zero, thread) = (k.tiles(Axis::X, rows, 4)?, k.constant(0), k.thread());
    let share = x.tile(&mut k, &[4, 128], &[i, zero])?;
    let share = share.partition(&mut k, &layout("((32,4),4):((4,1),128)"), thread)?;
    let [target, loss] = [target, loss].map(|v| {
        let v = v.tile(&mut k, &[4], &[i])?;
        share.along(&mut k, 0, &v)
    });
    let (target, loss) = (target?, loss?);
    let (x, target) = (k.load_fragment(&share)?, k.load_fragment(&target)?);
    let most = x.reduce(&mut k, 1, Combine::Max)?;
    let powers = x.zip(&mut k, &most, |k, x, m| {
        x.sub(k, m).mul(k, std::f32::consts::LOG2_E).exp2(k)
    })?;
    let sum = powers.reduce(&mut k, 1, Combine::Add)?;
    let column = x.map_at(&mut k, |k, _, [_, column]| S32::index(k, column).to_f32(k))?;
    let chosen = column.zip(&mut k, &target, |k, c, t| {
        c.eq(k, t).select(k, F32::from(1.0), 0.0)
    })?;
    let picked = x.zip(&mut k, &chosen, |k, x, c| x.mul(k, c))?;
    let picked = picked.reduce(&mut k, 1, Combine::Add)?;
    let log = sum.map(&mut k, |k, s| s.log2(k).mul(k, std::f32::consts::LN_2))?;
    let all = log.zip(&mut k, &most, |k, a, b| a.add(k, b))?;
    let all = all.zip(&mut k, &picked, |k, a, b| a.sub(k, b))?;
    k.store_fragment(&loss, &all)?;
    let kernel = k.build(ARCH)?;
    let x: Vec<f32> = numbers(7 * 128).iter().map(|x| x / 10.0).collect();
    let targets: Vec<f32> = (0..7).map(|i| (i * 29 % 128) as f32).collect();
    let args = vec![
        ("rows", Arg::from(7_u32)),
        ("x", Arg::input(&x)),
        ("target", Arg::input(&targets)),
        ("loss", Arg::output::<f32>(7)),
    ];
    let losses: Vec<f32> = ran(&kernel, args)?.get("loss")?;
    for ((row, target), loss) in x.chunks(128).zip(targets).zip(losses) {
        let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        let right = sum.ln() - f64::from(row[target as usize]);
        assert!((f64::from(loss) - right).abs() < 1e-4, "{loss} {right}");
    }
    Ok(())
}

/// Branches on arguments around barriers: either side of the same predicate has one.
#[test]
fn barriers_on_both_sides_of_an_argument() -> Result {
    for kind in 0..4 {
        let kernel = super::through_shared(|k| {
            let (a, b): (S32, S32) = (k.argument("a"), k.argument("b"));
            let p = match kind {
                0 => a.lt(k, b),
                1 => a.ge(k, -3),
                2 => {
                    let (f, g): (F32, F32) = (k.argument("f"), k.argument("g"));
                    f.lt(k, g)
                }
                _ => {
                    let (least, most) = (a.min(k, b), a.max(k, b));
                    most.sub(k, least).gt(k, 7)
                }
            };
            let wait = |k: &mut Kernel| {
                k.barrier();
                Done::Ok(())
            };
            k.when_else(p, wait, wait).expect("barriers");
            // The opposite of an integer comparison is another comparison.
            if kind == 0 {
                for p in [a.lt(k, b), a.ge(k, b)] {
                    barrier_when(k, p);
                }
            }
        })?;
        kernel.build(ARCH)?;
    }
    Ok(())
}

/// Two stages taken by turns, by the parity of the iteration: with a barrier in each, one stage is filled while the other is read.
#[test]
fn two_stages_by_parity() -> Result {
    by_parity(true)?.build(ARCH)?;
    let error = super::refusal(by_parity(false)?);
    assert!(matches!(error.code(), "race" | "undefined"), "{error}");
    Ok(())
}

fn by_parity(barrier: bool) -> Result<Kernel> {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let stages = ["even", "odd"].map(|name| k.shared(name, Element::F32, &swizzled("128:1")));
    let [even, odd] = stages;
    let (even, odd) = (even?, odd?);
    let (thread, one, across) = (
        k.thread(),
        layout("(128,1):(1,0)"),
        layout("((64,2),1):((2,1),0)"),
    );
    let [x, y] = [x, y].map(|v| v.partition(&mut k, &one, thread));
    let (x, y) = (x?, y?);
    let put = [&even, &odd].map(|v| v.partition(&mut k, &one, thread));
    let take = [&even, &odd].map(|v| v.partition(&mut k, &across, thread));
    let ([put0, put1], [take0, take1]) = (put, take);
    let (put, take) = ([put0?, put1?], [take0?, take1?]);
    let sums = k.fragment_of(&x, 0.0)?;
    let (rounds, one_bit) = (k.size("rounds", 1000), k.constant(1));
    k.copy(&x, &put[0])?;
    k.barrier();
    k.for_loop("round", 0, 1, rounds, |k, round| {
        let bit = k.rem(round, 2);
        let even = Predicate::of(k, bit, Cmp::Lt, one_bit);
        let stage = |now: usize, next: usize| {
            let (x, put, take, sums) = (&x, &put, &take, &sums);
            move |k: &mut Kernel| {
                k.copy(x, &put[next])?;
                let read = k.load_fragment(&take[now])?;
                add(k, sums, &read)
            }
        };
        k.when_else(even, stage(0, 1), stage(1, 0))?;
        if barrier {
            k.barrier();
        }
        Done::Ok(())
    })?;
    k.store_fragment(&y, &sums)?;
    Ok(k)
}

/// NVIDIA's assembler takes a kernel; with the feature `gpu`, which finds the assembler.
#[cfg(feature = "gpu")]
pub(super) fn assembles(kernel: &Proven, arch: Arch) {
    use tilewright::gpu::ptxas;

    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    if let Some(ptxas) = found {
        let assembled = ptxas.assemble(&kernel.ptx, &arch.to_string());
        assembled.unwrap_or_else(|e| panic!("{e}\n{}", kernel.ptx));
    }
}

#[cfg(not(feature = "gpu"))]
pub(super) fn assembles(_: &Proven, _: Arch) {}

/// A thread's part of a tile, four elements at once.
pub(super) fn fours(
    k: &mut Kernel,
    v: &View,
    shape: &[i64],
    at: &[Expr],
    tv: &str,
) -> Result<Partition> {
    let (tile, thread) = (v.tile(k, shape, at)?, k.thread());
    Ok(tile.partition(k, &layout(tv), thread)?.vectors(k, 4)?)
}

/// h = x + r; y = h/√(mean of h² + ε)·w, each row of it divided by the scale with which its largest number becomes 448, as e4m3.
fn norm_to_e4m3() -> Result<Kernel> {
    let mut k = Kernel::new("norm_to_e4m3", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.constant(512));
    let [x, r] = ["x", "r"].map(|name| k.input(name, Element::F32, &[rows, cols]));
    let w = k.input("w", Element::F32, &[cols]);
    let h = k.output("h", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::E4m3, &[rows, cols]);
    let scale = k.output("scale", Element::F32, &[rows]);
    let eps: F32 = k.argument("eps");
    let (i, zero) = (k.tiles(Axis::X, rows, 4)?, k.constant(0));
    // A warp has a row.
    let tv = "((32,4),(4,4)):((16,1),(4,512))";
    let of = |k: &mut Kernel, v: &View| fours(k, v, &[4, 512], &[i, zero], tv);
    let (x, r) = (of(&mut k, &x)?, of(&mut k, &r)?);
    let (to_h, to_y) = (of(&mut k, &h)?, of(&mut k, &y)?);
    let (w, scale) = (
        w.tile(&mut k, &[512], &[zero])?,
        scale.tile(&mut k, &[4], &[i])?,
    );
    let (w, scale) = (x.along(&mut k, 1, &w)?, x.along(&mut k, 0, &scale)?);
    let (x, r, w) = (
        k.load_fragment(&x)?,
        k.load_fragment(&r)?,
        k.load_fragment(&w)?,
    );
    let h = x.zip(&mut k, &r, |k, x, r| x.add(k, r))?;
    k.store_fragment(&to_h, &h)?;
    let squares = h.map(&mut k, |k, h| h.mul(k, h))?;
    let sum = squares.reduce(&mut k, 1, Combine::Add)?;
    let norm = sum.map(&mut k, |k, s| s.fma(k, 1.0 / 512.0, eps).rsqrt(k))?;
    let y = h.zip3(&mut k, [&norm, &w], |k, h, norm, w| {
        h.mul(k, norm).mul(k, w)
    })?;
    let sizes = y.map(&mut k, |k, y| y.abs(k))?;
    let most = sizes.reduce(&mut k, 1, Combine::Max)?;
    let scales = most.map(&mut k, |k, most| most.mul(k, 1.0 / 448.0).max(k, 1e-30))?;
    k.store_fragment(&scale, &scales)?;
    let inverse = scales.map(&mut k, |k, scale| scale.reciprocal(k))?;
    let y = y.zip(&mut k, &inverse, |k, y, inverse| y.mul(k, inverse))?;
    let y = y.convert(&mut k, Element::E4m3)?;
    k.store_fragment(&to_y, &y)?;
    Ok(k)
}

#[test]
pub(super) fn residual_norm_and_e4m3_with_a_scale_a_row() -> Result {
    let error = norm_to_e4m3()?.build(ARCH).map(|_| ()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("conversion of 8-bit floats (e4m3, e5m2)")
            && error.to_string().contains("sm_89 is the first to have"),
        "{error}"
    );
    let kernel = norm_to_e4m3()?.build(Arch(89))?;
    assembles(&kernel, Arch(89));
    let (x, r, w) = (numbers(7 * 512), numbers(7 * 512 + 3), numbers(512));
    let r = &r[3..];
    let args = vec![
        ("rows", Arg::from(7_u32)),
        ("eps", Arg::from(1e-5_f32)),
        ("x", Arg::input(&x)),
        ("r", Arg::input(r)),
        ("w", Arg::input(&w)),
        ("h", Arg::output::<f32>(7 * 512)),
        ("y", Arg::output::<F8E4M3>(7 * 512)),
        ("scale", Arg::output::<f32>(7)),
    ];
    let outcome = ran(&kernel, args)?;
    let (h, scales): (Vec<f32>, Vec<f32>) = (outcome.get("h")?, outcome.get("scale")?);
    let y: Vec<F8E4M3> = outcome.get("y")?;
    for (row, scale) in scales.into_iter().enumerate() {
        let of = row * 512..(row + 1) * 512;
        assert!(of.clone().all(|i| h[i] == x[i] + r[i]));
        let sum: f64 = h[of.clone()].iter().map(|&h| f64::from(h).powi(2)).sum();
        let norm = 1.0 / (sum / 512.0 + 1e-5).sqrt();
        let exact: Vec<f64> = of
            .clone()
            .map(|i| f64::from(h[i]) * norm * f64::from(w[i % 512]))
            .collect();
        let most = exact.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let scale = f64::from(scale);
        assert!((scale - most / 448.0).abs() < 1e-5 * scale);
        for (i, exact) in of.zip(exact) {
            let (quotient, y) = (exact / scale, of_e4m3(y[i].to_bits()));
            // Half a unit in the last place, or half the least number, and what f32 adds.
            let allowed = (quotient.abs() / 16.0).max(f64::powi(0.5, 10)) * 1.0001;
            assert!((y - quotient).abs() <= allowed, "{i}: {y} of {quotient}");
        }
    }
    Ok(())
}

/// Ten rounds of Philox 4x32.
fn philox(k: &mut Kernel, mut c: [U32; 4], mut key: [U32; 2]) -> [U32; 4] {
    for _ in 0..10 {
        let [a, b] = [(c[0], 0xd251_1f53_u32), (c[2], 0xcd9e_8d57)];
        let (low, high) = (a.0.mul(k, a.1), a.0.mul_hi(k, a.1));
        let (second, first) = (b.0.mul(k, b.1), b.0.mul_hi(k, b.1));
        let new = first.xor(k, c[1]).xor(k, key[0]);
        c = [new, second, high.xor(k, c[3]).xor(k, key[1]), low];
        key = [key[0].add(k, 0x9e37_79b9), key[1].add(k, 0xbb67_ae85)];
    }
    c
}

/// y = x/(1 − p), or 0 where the random number is below p·2³²; four numbers a thread of one Philox.
fn dropout() -> Result<Kernel> {
    let mut k = Kernel::new("dropout", 128);
    let n = k.size("n", 1 << 30);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let [seed, offset, below]: [U32; 3] = ["seed", "offset", "below"].map(|name| k.argument(name));
    let scale: F32 = k.argument("scale");
    let (block, thread) = (k.tiles(Axis::X, n, 512)?, k.thread());
    let of = |k: &mut Kernel, v: &View| fours(k, v, &[512], &[block], "(128,4):(4,1)");
    let (x, y) = (of(&mut k, &x)?, of(&mut k, &y)?);
    let number = k.linear(&[(128, block), (1, thread)], 0);
    let number = U32::index(&mut k, number);
    let counter = [number, offset, 0.into(), 0.into()];
    let mut random = philox(&mut k, counter, [seed, 0.into()]).into_iter();
    let kept = k.load_fragment(&x)?.map(&mut k, |k, x| {
        let keep = random.next().unwrap_or(below).ge(k, below);
        let scaled = x.mul(k, scale);
        keep.select(k, scaled, 0.0)
    })?;
    k.store_fragment(&y, &kept)?;
    Ok(k)
}

/// The same in Rust.
fn philox_of(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b] =
            [(c[0], 0xd251_1f53_u64), (c[2], 0xcd9e_8d57)].map(|(c, by)| u64::from(c) * by);
        let high = |x: u64| (x >> 32) as u32;
        c = [
            high(b) ^ c[1] ^ key[0],
            b as u32,
            high(a) ^ c[3] ^ key[1],
            a as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c
}

#[test]
pub(super) fn dropout_by_philox() -> Result {
    // The published answers to counters and keys of zeros and of ones.
    let known = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    assert_eq!(philox_of([0; 4], [0; 2]), known);
    let known = [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd];
    assert_eq!(philox_of([u32::MAX; 4], [u32::MAX; 2]), known);
    let kernel = dropout()?.build(ARCH)?;
    assembles(&kernel, ARCH);
    let (x, below) = (numbers(1030), 0x4000_0000_u32);
    let args = vec![
        ("n", Arg::from(1030_u32)),
        ("seed", Arg::from(1234_u32)),
        ("offset", Arg::from(7_u32)),
        ("below", Arg::from(below)),
        ("scale", Arg::from(0.75_f32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(1030)),
    ];
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
    let mut kept = 0;
    for (i, y) in y.into_iter().enumerate() {
        let random = philox_of([i as u32 / 4, 7, 0, 0], [1234, 0])[i % 4];
        let right = if random >= below { x[i] * 0.75 } else { 0.0 };
        assert_eq!(y, right, "{i}");
        kept += usize::from(random >= below);
    }
    assert!((700..850).contains(&kept), "{kept}");
    Ok(())
}

/// Sums of each row of a over pieces of 512 columns, times x.
fn gemv_of_pieces() -> Result<Kernel> {
    let mut k = Kernel::new("gemv_of_pieces", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let pieces = k.tiles_in(cols, 512)?;
    let (a, x) = (
        k.input("a", Element::F32, &[rows, cols]),
        k.input("x", Element::F32, &[cols]),
    );
    let sums = k.output("sums", Element::F32, &[pieces, rows]);
    let (i, j) = (k.tiles(Axis::X, rows, 4)?, k.tiles(Axis::Y, pieces, 1)?);
    let tv = "((32,4),4):((16,1),4)";
    let a_of = |k: &mut Kernel, piece: Expr| fours(k, &a, &[4, 128], &[i, piece], tv);
    let first = k.scale(j, 4);
    let part = a_of(&mut k, first)?;
    let sum = k.fragment_of(&part, 0.0)?;
    for step in 0..4 {
        let piece = k.linear(&[(4, j)], step);
        let part = a_of(&mut k, piece)?;
        let x = x.tile(&mut k, &[128], &[piece])?;
        let x = part.along(&mut k, 1, &x)?;
        let (a, x) = (k.load_fragment(&part)?, k.load_fragment(&x)?);
        sum.update_with_both(&mut k, [&a, &x], |k, sum, a, x| a.fma(k, x, sum))?;
    }
    let sum = sum.reduce(&mut k, 1, Combine::Add)?;
    let to = sums.slice(&mut k, &[j])?.tile(&mut k, &[4], &[i])?;
    let to = part.along(&mut k, 0, &to)?;
    k.store_fragment(&to, &sum)?;
    Ok(k)
}

/// y = the sums of the pieces.
fn gemv_of_sums() -> Result<Kernel> {
    let mut k = Kernel::new("gemv_of_sums", 128);
    let (pieces, rows) = (k.size("pieces", 1 << 11), k.size("rows", 1 << 20));
    let sums = k.input("sums", Element::F32, &[pieces, rows]);
    let y = k.output("y", Element::F32, &[rows]);
    let (block, thread) = (k.tiles(Axis::X, rows, 128)?, k.thread());
    let one = layout("(128,1):(1,0)");
    let y = y.tile(&mut k, &[128], &[block])?;
    let y = y.partition(&mut k, &one, thread)?;
    let sum = k.fragment_of(&y, 0.0)?;
    k.for_loop("piece", 0, 1, pieces, |k, piece| {
        let part = sums.slice(k, &[piece])?.tile(k, &[128], &[block])?;
        let part = part.partition(k, &one, thread)?;
        let part = k.load_fragment(&part)?;
        sum.update_with(k, &part, |k, sum, part| sum.add(k, part))
    })?;
    k.store_fragment(&y, &sum)?;
    Ok(k)
}

#[test]
pub(super) fn split_k_gemv_in_two_kernels() -> Result {
    let (first, second) = (gemv_of_pieces()?.build(ARCH)?, gemv_of_sums()?.build(ARCH)?);
    assembles(&first, ARCH);
    assembles(&second, ARCH);
    assert!(first.ptx.contains("fma.rn.f32"));
    for (rows, cols) in [(7_usize, 1300_usize), (8, 1024)] {
        let (pieces, a, x) = (cols.div_ceil(512), numbers(rows * cols), numbers(cols + 5));
        let args = vec![
            ("rows", Arg::from(rows as u32)),
            ("cols", Arg::from(cols as u32)),
            ("a", Arg::input(&a)),
            ("x", Arg::input(&x[5..])),
            ("sums", Arg::output::<f32>(pieces * rows)),
        ];
        let sums: Vec<f32> = ran(&first, args)?.get("sums")?;
        let args = vec![
            ("pieces", Arg::from(pieces as u32)),
            ("rows", Arg::from(rows as u32)),
            ("sums", Arg::input(&sums)),
            ("y", Arg::output::<f32>(rows)),
        ];
        let y: Vec<f32> = ran(&second, args)?.get("y")?;
        for (row, y) in a.chunks(cols).zip(y) {
            let products = row.iter().zip(&x[5..]).map(|(a, x)| a * x);
            assert_eq!(y, products.sum::<f32>());
        }
    }
    Ok(())
}

/// w = the weights of 4 bits, each row of them times its scale, as bf16.
fn int4_weights() -> Result<Kernel> {
    let mut k = Kernel::new("int4_weights", 128);
    let (rows, words) = (k.size("rows", 1 << 20), k.size("words", 1 << 17));
    let cols = k.scale(words, 8);
    let packed = k.input("packed", Element::S32, &[rows, words]);
    let scale = k.input("scale", Element::F32, &[rows]);
    let w = k.output("w", Element::Bf16, &[rows, cols]);
    let (i, j) = (k.tiles(Axis::X, rows, 16)?, k.tiles(Axis::Y, cols, 256)?);
    // Eight threads have a row's 32 words, and their 256 weights.
    let packed = fours(
        &mut k,
        &packed,
        &[16, 32],
        &[i, j],
        "((8,16),4):((64,1),16)",
    )?;
    let tv = "((8,16),(8,4)):((512,1),(16,128))";
    let to = fours(&mut k, &w, &[16, 256], &[i, j], tv)?;
    let scale = scale.tile(&mut k, &[16], &[i])?;
    let scale = packed.along(&mut k, 0, &scale)?;
    let (packed, scale) = (k.load_fragment(&packed)?, k.load_fragment(&scale)?);
    let weights = packed.unpack(&mut k, Packed::S4, Element::F32)?;
    let weights = weights.zip(&mut k, &scale, |k, w, scale| w.mul(k, scale))?;
    let weights = weights.convert(&mut k, Element::Bf16)?;
    k.store_fragment(&to, &weights)?;
    Ok(k)
}

#[test]
pub(super) fn int4_weights_to_bf16() -> Result {
    let kernel = int4_weights()?.build(ARCH)?;
    assembles(&kernel, ARCH);
    for (rows, words) in [(17_usize, 33_usize), (16, 64)] {
        let packed: Vec<i32> = (0..rows * words)
            .map(|i| (i as u32).wrapping_mul(0x9e37_79b9) as i32)
            .collect();
        let scale: Vec<f32> = (0..rows).map(|i| 0.37 + i as f32).collect();
        let args = vec![
            ("rows", Arg::from(rows as u32)),
            ("words", Arg::from(words as u32)),
            ("packed", Arg::input(&packed)),
            ("scale", Arg::input(&scale)),
            ("w", Arg::output::<bf16>(rows * words * 8)),
        ];
        let w: Vec<bf16> = ran(&kernel, args)?.get("w")?;
        for (i, w) in w.into_iter().enumerate() {
            // The sign is the highest of the 4 bits.
            let code = packed[i / 8] << (28 - 4 * (i % 8)) >> 28;
            let right = bf16::from_f32(code as f32 * scale[i / (8 * words)]);
            assert_eq!(w, right, "{i}");
        }
    }
    Ok(())
}

/// y = a x + y by a grid of one size: its blocks share the tiles.
fn strided(blocks: u32, step: i64, of: impl Fn(&mut Kernel, Expr, Expr) -> Expr) -> Result<Kernel> {
    let mut k = Kernel::new("saxpy", 64);
    let (n, a): (Expr, F32) = (k.size("n", 1 << 30), k.argument("a"));
    let x = k.input("x", Element::F32, &[n]);
    let y = k.output("y", Element::F32, &[n]);
    let (block, thread) = (k.blocks(Axis::X, blocks)?, k.thread());
    let (tiles, share) = (k.tiles_in(n, 128)?, layout("(64,2):(1,64)"));
    k.for_loop("i", 0, step, tiles, |k, i| {
        let tile = of(k, i, block);
        let [x, y] = [&x, &y].map(|v| v.tile(k, &[128], &[tile])?.partition(k, &share, thread));
        let (x, y) = (x?, y?);
        let (new, old) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
        let sum = new.zip(k, &old, |k, x, y| x.fma(k, a, y))?;
        k.store_fragment(&y, &sum)
    })?;
    Ok(k)
}

#[test]
pub(super) fn grid_stride() -> Result {
    let add = |k: &mut Kernel, i, block| k.add(i, block);
    for blocks in [1, 3, 8] {
        let kernel = strided(blocks, blocks.into(), add)?.build(ARCH)?;
        for n in [0_usize, 1, 127, 128, 129, 500, 3 * 128, 5000] {
            let (x, y) = (numbers(n), numbers(n + 1));
            let outcome = ran(
                &kernel,
                vec![
                    ("n", Arg::from(n as u32)),
                    ("a", Arg::from(2.0_f32)),
                    ("x", Arg::input(&x)),
                    ("y", Arg::in_out(&y[..n])),
                ],
            )?;
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x.mul_add(2.0, *y)).collect();
            assert_eq!(
                outcome.get::<f32>("y")?,
                expected,
                "{blocks} blocks, n = {n}"
            );
        }
    }
    // Tiles that two blocks have, or none.
    for (blocks, step) in [(4, 3), (3, 4), (8, 1), (8, 16)] {
        assert!(
            strided(blocks, step, add)?.build(ARCH).is_err(),
            "{blocks} blocks by {step}"
        );
    }
    let own = |_: &mut Kernel, i, _| i;
    assert!(strided(4, 4, own)?.build(ARCH).is_err());
    assert!(strided(4, 1, own)?.build(ARCH).is_err());
    assert!(strided(1, 2, own)?.build(ARCH).is_err());
    let ahead = |k: &mut Kernel, i, block| k.linear(&[(1, i), (1, block)], 1);
    assert!(strided(4, 4, ahead)?.build(ARCH).is_err());
    let twice = |k: &mut Kernel, i, block| k.linear(&[(1, i), (2, block)], 0);
    assert!(strided(4, 4, twice)?.build(ARCH).is_err());
    assert!(strided(4, 8, twice)?.build(ARCH).is_err());
    // An axis counts one thing.
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 100);
    k.blocks(Axis::X, 4)?;
    assert_eq!(k.blocks(Axis::X, 4).is_ok(), k.blocks(Axis::X, 5).is_err());
    assert!(k.tiles(Axis::X, n, 32).is_err());
    k.tiles(Axis::Y, n, 32)?;
    assert!(k.blocks(Axis::Y, 4).is_err());
    k.block_index(Axis::Z, 3);
    assert!(k.blocks(Axis::Z, 4).is_err());
    k.blocks(Axis::Z, 3)?;
    let mut none = Kernel::new("none", 32);
    none.blocks(Axis::Y, 0)?;
    assert!(none.build(ARCH).is_err());
    Ok(())
}
