//! Kernels as anyone would write them are accepted, and right: what the prover refuses must not grow with what it knows.

use super::{ARCH, Result, add, layout, swizzled, vectors};
use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Binary, Class, Cmp, Element, Kernel, Type};
use tilewright::codegen::value::{F32, Kind, Predicate, S32, Value};
use tilewright::codegen::view::{Combine, Fragment, View, ViewError};
use tilewright::host::{Arg, On, Outcome, run};

/// The words of a fragment as values.
fn values<T: Kind>(k: &mut Kernel, fragment: &Fragment) -> Result<Vec<Value<T>>> {
    let mut all = Vec::new();
    fragment.map_words(k, |_, x: Value<T>| {
        all.push(x);
        x
    })?;
    Ok(all)
}

/// A fragment like another one with other values.
fn with<T: Kind>(k: &mut Kernel, like: &Fragment, new: &[Value<T>]) -> Result<Fragment, ViewError> {
    let mut next = new.iter();
    like.map_words(k, |_, x| next.next().copied().unwrap_or(x))
}

/// Runs a kernel on the emulator, which finds nothing and counts what was proven.
fn ran(kernel: &Proven, args: Vec<(&str, Arg<'_>)>) -> Result<Outcome> {
    let outcome = run(kernel, On::Emulator, args)?;
    outcome.assert_clean();
    outcome.assert_counted_as_proven();
    Ok(outcome)
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37) % 101) as f32 - 50.0).collect()
}

#[test]
fn prefix_sums() -> Result {
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let [x, y, mine] = [x, y, tile.clone()].map(|v| v.partition(&mut k, &one, thread));
    let (y, mine) = (y?, mine?);
    let sums = k.load_fragment(&x?)?;
    for by in [1, 2, 4, 8, 16, 32, 64] {
        k.store_fragment(&mine, &sums)?;
        k.barrier();
        let [back, by] = [-by, by].map(|by| k.pool.constant(by));
        let behind = k.compare(Cmp::Ge, thread, by);
        k.begin_if(behind, false);
        let before = tile.at(&mut k, &[back])?.partition(&mut k, &one, thread)?;
        let before = k.load_fragment(&before)?;
        sums.update_with(&mut k, &before, |k, a, b| a.add(k, b))?;
        k.end_if();
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
fn rows(
    outputs: [&str; 2],
) -> Result<(Kernel, Fragment, Vec<tilewright::codegen::view::Partition>)> {
    let mut k = Kernel::new("rows", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.pool.constant(128));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let outputs = outputs.map(|name| k.output(name, Element::F32, &[rows]));
    let (i, zero, thread) = (k.tiles(Axis::X, rows, 4)?, k.pool.constant(0), k.thread());
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
fn argmax_and_the_two_largest() -> Result {
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

#[test]
fn rotary_embedding() -> Result {
    let mut k = Kernel::new("rope", 128);
    let (rows, all, half) = (
        k.size("rows", 1 << 20),
        k.pool.constant(64),
        k.pool.constant(32),
    );
    let x = k.input("x", Element::F32, &[rows, all]);
    let [c, s] = ["c", "s"].map(|name| k.input(name, Element::F32, &[rows, half]));
    let y = k.output("y", Element::F32, &[rows, all]);
    let (i, thread) = (k.tiles(Axis::X, rows, 4)?, k.thread());
    let side = |k: &mut Kernel, v: &View, j: i64| {
        let j = k.pool.constant(j);
        v.tile(k, &[4, 32], &[i, j])?
            .partition(k, &layout("((32,4),1):((4,1),0)"), thread)
    };
    let load = |k: &mut Kernel, v: &View, j: i64| -> Result<Fragment, ViewError> {
        let share = side(k, v, j)?;
        k.load_fragment(&share)
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
    assert_eq!(k.build(ARCH)?.proof.covered, ["y"]);
    Ok(())
}

#[test]
fn convolution_of_one_dimension() -> Result {
    let mut k = Kernel::new("conv1d", 128);
    let n = k.size("n", 1 << 20);
    let two = k.pool.constant(2);
    let longer = k.pool.add(n, two);
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
        let j = k.pool.constant(j);
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
    let (zero, two) = (k.pool.constant(0), k.pool.constant(2));
    let longer = k.pool.add(n, two);
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
        let by = k.pool.constant(by);
        v.at(k, &[by])?.partition(k, &one, thread)
    };
    let (from, to) = (part(&mut k, &x, 0)?, part(&mut k, &tile, 0)?);
    k.copy(&from, &to)?;
    let halo = k.compare(Cmp::Lt, thread, two);
    k.begin_if(halo, false);
    let (from, to) = (part(&mut k, &x, 128)?, part(&mut k, &tile, 128)?);
    k.copy(&from, &to)?;
    k.end_if();
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
    let zero = k.pool.constant(0);
    for size in [2, 4, 8, 16, 32, 64, 128] {
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
            let bit = k.pool.and(first, size as u64);
            let up = Predicate::of(&mut k, bit, Cmp::Eq, zero);
            let held = k.load_fragment(&pair)?;
            let held_values = values::<f32>(&mut k, &held)?;
            let (a, b) = (held_values[0], held_values[1]);
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
    let y: Vec<f32> = ran(&kernel, args)?.get("y")?;
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
    let (n, eight) = (k.size("n", 1 << 20), k.pool.constant(8));
    let (x, y) = (
        k.input("x", Element::S32, &[n]),
        k.output("y", Element::F32, &[n, eight]),
    );
    let (block, thread, zero) = (k.tiles(Axis::X, n, 128)?, k.thread(), k.pool.constant(0));
    let x =
        x.tile(&mut k, &[128], &[block])?
            .partition(&mut k, &layout("(128,1):(1,0)"), thread)?;
    let y = y.tile(&mut k, &[128, 8], &[block, zero])?;
    let y = y.partition(&mut k, &layout("(128,8):(1,128)"), thread)?;
    let words = k.load_fragment(&x)?;
    let word = values::<i32>(&mut k, &words)?[0].register(&mut k);
    let all: Vec<F32> = (0..8)
        .map(|i| {
            let (moved, low) = (k.reg(Class::B32), k.reg(Class::B32));
            k.binary(Binary::Shr, Type::U32, moved, word, 4 * i);
            k.binary(Binary::And, Type::B32, low, moved, 15);
            S32::of(low).expect("32 bits").to_f32(&mut k)
        })
        .collect();
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

#[test]
fn small_products_in_batches() -> Result {
    let mut k = Kernel::new("products", 64);
    let (batch, four, zero) = (
        k.size("batch", 1 << 20),
        k.pool.constant(4),
        k.pool.constant(0),
    );
    let [a, b] = ["a", "b"].map(|name| k.input(name, Element::F32, &[batch, four, four]));
    let c = k.output("c", Element::F32, &[batch, four, four]);
    let (block, thread) = (k.tiles(Axis::X, batch, 64)?, k.thread());
    // A product a thread; value v is row v mod 4, column v / 4.
    let [a, b, c] = [a, b, c].map(|v| {
        v.tile(&mut k, &[64, 4, 4], &[block, zero, zero])?
            .partition(&mut k, &layout("(64,16):(1,64)"), thread)
    });
    let c = c?;
    let (a, b) = (k.load_fragment(&a?)?, k.load_fragment(&b?)?);
    let (a, b) = (values::<f32>(&mut k, &a)?, values::<f32>(&mut k, &b)?);
    let mut all = Vec::new();
    for v in 0..16 {
        let (row, column) = (v % 4, v / 4);
        let mut sum = F32::from(0.0);
        for i in 0..4 {
            sum = a[row + 4 * i].fma(&mut k, b[i + 4 * column], sum);
        }
        all.push(sum);
    }
    let sums = k.fragment_of(&c, 0.0)?;
    let sums = with(&mut k, &sums, &all)?;
    k.store_fragment(&c, &sums)?;
    assert_eq!(k.build(ARCH)?.proof.covered, ["c"]);
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
    assert_eq!(k.build(ARCH)?.proof.covered, ["y"]);
    Ok(())
}

#[test]
fn two_vectors_one_after_the_other() -> Result {
    let mut k = Kernel::new("concat", 128);
    let (n, two) = (k.size("n", 1 << 20), k.pool.constant(2));
    let inputs = ["a", "b"].map(|name| k.input(name, Element::F32, &[n]));
    let y = k.output("y", Element::F32, &[two, n]);
    let (block, thread, one) = (
        k.tiles(Axis::X, n, 128)?,
        k.thread(),
        layout("(128,1):(1,0)"),
    );
    for (row, x) in (0..).zip(inputs) {
        let row = k.pool.constant(row);
        let x = x
            .tile(&mut k, &[128], &[block])?
            .partition(&mut k, &one, thread)?;
        let y = y
            .tile(&mut k, &[1, 128], &[row, block])?
            .partition(&mut k, &one, thread)?;
        k.copy(&x, &y)?;
    }
    assert_eq!(k.build(ARCH)?.proof.covered, ["y"]);
    Ok(())
}

#[test]
fn column_sums() -> Result {
    let mut k = Kernel::new("column_sums", 128);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let (one_row, zero) = (k.pool.constant(1), k.pool.constant(0));
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
    let turn = k.open_loop("row", 0, 1, 1 << 20);
    let x = x
        .tile(&mut k, &[1, 128], &[turn.counter, block])?
        .partition(&mut k, &one, thread)?;
    let x = k.load_fragment(&x)?;
    sums.update_with(&mut k, &x, |k, sum, x| sum.add(k, x))?;
    k.close_loop(&turn, rows);
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
    let (rows, cols) = (k.size("rows", 1 << 20), k.pool.constant(128));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let target = k.input("target", Element::F32, &[rows]);
    let loss = k.output("loss", Element::F32, &[rows]);
    let (i, zero, thread) = (k.tiles(Axis::X, rows, 4)?, k.pool.constant(0), k.thread());
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
    assert_eq!(k.build(ARCH)?.proof.covered, ["loss"]);
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
            k.begin_if(p, true);
            k.barrier();
            k.otherwise();
            k.barrier();
            k.end_if();
            // The opposite of an integer comparison is another comparison.
            if kind == 0 {
                for p in [a.lt(k, b), a.ge(k, b)] {
                    k.begin_if(p, true);
                    k.barrier();
                    k.end_if();
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
    let (rounds, one_bit) = (k.size("rounds", 1000), k.pool.constant(1));
    k.copy(&x, &put[0])?;
    k.barrier();
    let turn = k.open_loop("round", 0, 1, 1000);
    let bit = k.pool.and(turn.counter, 1);
    let even = k.compare(Cmp::Lt, bit, one_bit);
    k.begin_if(even, true);
    for (now, next) in [(0, 1), (1, 0)] {
        k.copy(&x, &put[next])?;
        let read = k.load_fragment(&take[now])?;
        add(&mut k, &sums, &read)?;
        if now == 0 {
            k.otherwise();
        }
    }
    k.end_if();
    if barrier {
        k.barrier();
    }
    k.close_loop(&turn, rounds);
    k.store_fragment(&y, &sums)?;
    Ok(k)
}
