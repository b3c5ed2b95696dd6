//! Indices from data: gather, page tables, rows of any length.

#![expect(
    clippy::float_cmp,
    reason = "sums of small integers, and copies, are exact"
)]

use half::f16;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::value::{F32, Predicate, S32};
use tilewright::codegen::view::{Combine, View, ViewError};
use tilewright::host::{Arg, Contract, Language, On, Scalar, run};
use tilewright::{TiledMma, atoms};

use super::natural::{numbers, ran};
use super::{ARCH, Result, layout, swizzled};

/// y[i] = table[ids[i]]: a row of any length a block.
fn gather() -> Result<Kernel> {
    let mut k = Kernel::new("gather", 64);
    let [n, rows, cols] = ["n", "rows", "cols"].map(|name| k.size(name, 1 << 20));
    let ids = k.input("ids", Element::S32, &[n]);
    let table = k.input("table", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[n, cols]);
    let (i, j) = (k.tiles(Axis::X, n, 1)?, k.tiles(Axis::Y, cols, 256)?);
    let row = ids.load::<u32>(&mut k, &[i])?.to_index(&mut k);
    let (thread, shares) = (k.thread(), layout("(64,4):(4,1)"));
    let from = table.tile(&mut k, &[1, 256], &[row, j])?;
    let from = from.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    let to = y.tile(&mut k, &[1, 256], &[i, j])?;
    let to = to.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    k.copy(&from, &to)?;
    Ok(k)
}

#[test]
pub(super) fn rows_of_a_table() -> Result {
    let kernel = gather()?.build(ARCH)?;
    for cols in [1_usize, 255, 256, 260] {
        let (n, rows) = (9_u32, 5_u32);
        let table = numbers(rows as usize * cols);
        // What is beyond the table is zeros.
        let ids = vec![4, 0, 3, 3, 5, 1, -1, i32::MIN, 2];
        let outcome = ran(
            &kernel,
            vec![
                ("n", Arg::from(n)),
                ("rows", Arg::from(rows)),
                ("cols", Arg::from(cols as u32)),
                ("ids", Arg::input(&ids)),
                ("table", Arg::input(&table)),
                ("y", Arg::output::<f32>(n as usize * cols)),
            ],
        )?;
        let y: Vec<f32> = outcome.get("y")?;
        for (row, id) in y.chunks(cols).zip(&ids) {
            let at = usize::try_from(*id).unwrap_or(1 << 40) * cols;
            let right = table.get(at..at + cols);
            let zeros = vec![0.0; cols];
            assert_eq!(row, right.unwrap_or(&zeros), "{id}, {cols}");
        }
    }
    Ok(())
}

/// The sums of rows of a sparse matrix: row i has the values from first[i] to first[i + 1], and a thread has a row.
fn row_sums() -> Result<Kernel> {
    let mut k = Kernel::new("row_sums", 128);
    let (rows, entries) = (k.size("rows", 1 << 24), k.size("entries", 1 << 28));
    let ends = k.linear(&[(1, rows)], 1);
    let first = k.input("first", Element::S32, &[ends]);
    let values = k.input("values", Element::F32, &[entries]);
    let y = k.output("y", Element::F32, &[rows]);
    let (block, thread) = (k.tiles(Axis::X, rows, 128)?, k.thread());
    let row = k.linear(&[(128, block), (1, thread)], 0);
    let next = k.linear(&[(1, row)], 1);
    let begin = first.load::<u32>(&mut k, &[row])?.to_index(&mut k);
    let end = first.load::<u32>(&mut k, &[next])?.to_index(&mut k);
    let count = k.sub(end, begin);
    let (count, sum) = (k.clamp(count, 0, 1 << 28), k.variable(F32::from(0.0)));
    k.for_loop("e", 0, 1, count, |k, e| {
        let at = k.add(begin, e);
        let value = values.load::<f32>(k, &[at])?;
        let more = sum.get(k).add(k, value);
        sum.set(k, more);
        super::Done::Ok(())
    })?;
    let sum = sum.get(&mut k);
    y.store(&mut k, &[row], sum)?;
    Ok(k)
}

#[test]
pub(super) fn rows_of_any_length() -> Result {
    let kernel = row_sums()?.build(ARCH)?;
    let lengths = (0..300_i32).map(|i| i * 7 % 13 * (i % 3));
    let mut first = vec![0];
    for n in lengths {
        first.push(first[first.len() - 1] + n);
    }
    let entries = first[300];
    let values = numbers(entries as usize);
    let outcome = ran(
        &kernel,
        vec![
            ("rows", Arg::from(300_u32)),
            ("entries", Arg::from(entries as u32)),
            ("first", Arg::input(&first)),
            ("values", Arg::input(&values)),
            ("y", Arg::output::<f32>(300)),
        ],
    )?;
    let y: Vec<f32> = outcome.get("y")?;
    for (row, ends) in y.iter().zip(first.windows(2)) {
        let right: f32 = values[ends[0] as usize..ends[1] as usize].iter().sum();
        assert_eq!(*row, right);
    }
    Ok(())
}

/// x[at + i] = rows of `new`, for a position in memory: a key cache grows by n rows.
fn append() -> Result<Kernel> {
    let mut k = Kernel::new("append", 64);
    let [n, rows, cols] = ["n", "rows", "cols"].map(|name| k.size(name, 1 << 20));
    let (one, zero) = (k.constant(1), k.constant(0));
    let new = k.input("new", Element::F32, &[n, cols]);
    let position = k.input("position", Element::S32, &[one]);
    let cache = k.partial_output("cache", Element::F32, &[rows, cols]);
    let (i, j) = (k.tiles(Axis::X, n, 4)?, k.tiles(Axis::Y, cols, 64)?);
    let at = position.load::<u32>(&mut k, &[zero])?.to_index(&mut k);
    let (thread, shares) = (k.thread(), layout("((16,4),4):((16,1),4)"));
    let from = new.tile(&mut k, &[4, 64], &[i, j])?;
    let to = cache.part(&mut k, &[at, zero], &[n, cols])?;
    let to = to.tile(&mut k, &[4, 64], &[i, j])?;
    let [from, to] = [from, to].map(|v| v.partition(&mut k, &shares, thread));
    k.copy(&from?, &to?)?;
    Ok(k)
}

#[test]
pub(super) fn rows_are_appended() -> Result {
    let kernel = append()?.build(ARCH)?;
    let (n, rows, cols) = (6_usize, 20_usize, 70_usize);
    let new = numbers(n * cols);
    for at in [0, 3, 14, 17, 40, -1] {
        let before = vec![-1.0_f32; rows * cols];
        let outcome = ran(
            &kernel,
            vec![
                ("n", Arg::from(n as u32)),
                ("rows", Arg::from(rows as u32)),
                ("cols", Arg::from(cols as u32)),
                ("new", Arg::input(&new)),
                ("position", Arg::input(&[at])),
                ("cache", Arg::in_out(&before)),
            ],
        )?;
        let cache: Vec<f32> = outcome.get("cache")?;
        for (row, values) in cache.chunks(cols).enumerate() {
            let from = row as i64 - i64::from(at);
            let inside = (0..n as i64).contains(&from) && at >= 0;
            let right = if inside {
                new[from as usize * cols..][..cols].to_vec()
            } else {
                vec![-1.0; cols]
            };
            assert_eq!(values, right, "{at}, row {row}");
        }
    }
    Ok(())
}

/// y[to[i]] = x[i], for a permutation.
fn scatter(distinct: bool, inside: bool) -> Result<Kernel> {
    let mut k = Kernel::new("scatter", 128);
    let n = k.size("n", 1 << 30);
    let x = k.input("x", Element::F32, &[n]);
    let to = k.input("to", Element::S32, &[n]);
    let y = k.partial_output("y", Element::F32, &[n]);
    if distinct {
        k.assume_distinct(&to, "a permutation");
    }
    let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    let i = k.linear(&[(128, block), (1, thread)], 0);
    let end = if inside { n } else { k.constant(1 << 31) };
    let p = Predicate::of(&mut k, i, Cmp::Lt, end);
    k.when(p, |k| {
        let at = to.load::<u32>(k, &[i])?.to_index(k);
        let value = x.load::<f32>(k, &[i])?;
        y.store(k, &[at], value)
    })?;
    Ok(k)
}

#[test]
pub(super) fn a_permutation_scatters() -> Result {
    let kernel = scatter(true, true)?.build(ARCH)?;
    assert!(
        kernel
            .ptx
            .contains("// assumed: the elements of `to` are distinct (a permutation)")
    );
    let n = 300_i32;
    let (x, to): (_, Vec<i32>) = (numbers(300), (0..n).map(|i| i * 7 % n).collect());
    let args = |to: Vec<i32>| {
        vec![
            ("n", Arg::from(n as u32)),
            ("x", Arg::input(&numbers(300))),
            ("to", Arg::input(&to)),
            ("y", Arg::in_out(&[0.0_f32; 300])),
        ]
    };
    let y: Vec<f32> = ran(&kernel, args(to.clone()))?.get("y")?;
    for (x, to) in x.iter().zip(&to) {
        assert_eq!(y[*to as usize], *x);
    }
    // What is stated is in the text of every host, and checked.
    let contract = Contract::new(&kernel, [("n", Scalar::U32(300))])?;
    for language in [
        Language::Rust,
        Language::Cudarc,
        Language::C,
        Language::Python,
    ] {
        let text = contract.host(language)?;
        assert!(
            text.contains("nothing here checks: the elements of `to` are distinct (a permutation)"),
            "{text}"
        );
    }
    let mut twice = to;
    twice[17] = twice[5];
    let error = run(&kernel, On::Emulator, args(twice)).unwrap_err();
    assert_eq!(error.code(), "not_as_stated");
    // Without the statement two threads may have an element; threads beyond n have none of `to`, and element 0 is not theirs.
    assert_eq!(
        scatter(false, true)?.build(ARCH).unwrap_err().code(),
        "shared_element"
    );
    assert_eq!(
        scatter(true, false)?.build(ARCH).unwrap_err().code(),
        "shared_element"
    );
    Ok(())
}

/// Stores at indices from two tensors, each of distinct elements, or at such indices and at computed ones: they may meet.
#[test]
fn indices_from_two_tensors_may_meet() -> Result {
    let code = |kind: usize| -> Result<&'static str> {
        let mut k = Kernel::new("two", 64);
        let n = k.size("n", 1 << 20);
        let [a, b] = ["a", "b"].map(|name| k.input(name, Element::S32, &[n]));
        let y = k.partial_output("y", Element::F32, &[n]);
        k.assume_distinct(&a, "a permutation");
        k.assume_distinct(&b, "another one");
        let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
        let i = k.linear(&[(128, block), (1, thread)], 0);
        let far = k.linear(&[(1, i)], 64);
        let inside = Predicate::of(&mut k, far, Cmp::Lt, n);
        k.when(inside, |k| {
            let first = a.load::<u32>(k, &[i])?.to_index(k);
            let second = match kind {
                0 => a.load::<u32>(k, &[far])?.to_index(k),
                1 => b.load::<u32>(k, &[far])?.to_index(k),
                _ => far,
            };
            y.store(k, &[first], F32::from(1.0))?;
            y.store(k, &[second], F32::from(2.0))
        })?;
        Ok(k.build(ARCH).map_or_else(|e| e.code(), |_| "proven"))
    };
    assert_eq!(
        [code(0)?, code(1)?, code(2)?],
        ["proven", "shared_element", "shared_element"]
    );
    Ok(())
}

/// counts[b] = how many x are b: each block counts in shared memory.
fn histogram(clamped: bool, barriers: [bool; 2]) -> Result<Kernel> {
    let mut k = Kernel::new("histogram", 256);
    let n = k.size("n", 1 << 30);
    let bins = k.constant(256);
    let x = k.input("x", Element::S32, &[n]);
    let counts = k.partial_output("counts", Element::S32, &[bins]);
    let own = k.shared("own", Element::S32, &swizzled("256:1"))?;
    let (block, thread) = (k.tiles(Axis::X, n, 1024)?, k.thread());
    own.store(&mut k, &[thread], S32::from(0))?;
    if barriers[0] {
        k.barrier();
    }
    for v in 0..4 {
        let i = k.linear(&[(1024, block), (1, thread)], 256 * v);
        let p = Predicate::of(&mut k, i, Cmp::Lt, n);
        k.when(p, |k| {
            let bin = x.load::<i32>(k, &[i])?.to_index(k);
            let bin = if clamped { k.clamp(bin, 0, 255) } else { bin };
            own.atomic(k, &[bin], Combine::Add, S32::from(1))
        })?;
    }
    if barriers[1] {
        k.barrier();
    }
    let count = own.load::<i32>(&mut k, &[thread])?;
    counts.atomic(&mut k, &[thread], Combine::Add, count)?;
    Ok(k)
}

#[test]
pub(super) fn a_histogram_with_atomics() -> Result {
    let kernel = histogram(true, [true, true])?.build(ARCH)?;
    let x: Vec<i32> = (0..5000).map(|i| i * i % 301 - 20).collect();
    let outcome = ran(
        &kernel,
        vec![
            ("n", Arg::from(5000_u32)),
            ("x", Arg::input(&x)),
            ("counts", Arg::in_out(&[0_i32; 256])),
        ],
    )?;
    let mut right = vec![0; 256];
    for x in x {
        right[x.clamp(0, 255) as usize] += 1;
    }
    assert_eq!(outcome.get::<i32>("counts")?, right);
    assert_eq!(
        histogram(false, [true; 2])?.build(ARCH).unwrap_err().code(),
        "bounds"
    );
    assert_eq!(
        histogram(true, [false, true])?
            .build(ARCH)
            .unwrap_err()
            .code(),
        "race"
    );
    assert_eq!(
        histogram(true, [true, false])?
            .build(ARCH)
            .unwrap_err()
            .code(),
        "race"
    );
    Ok(())
}

/// keys[s] = the keys of sequence s one after the other, from pages of 16; zeros beyond its length.
fn paged() -> Result<Kernel> {
    let mut k = Kernel::new("paged", 128);
    let [sequences, pages, most] = ["sequences", "pages", "most"].map(|name| k.size(name, 1 << 20));
    let (sixteen, depth, zero) = (k.constant(16), k.constant(64), k.constant(0));
    let (one, positions) = (k.constant(1), k.scale(most, 16));
    let store = k.input("store", Element::F32, &[pages, sixteen, depth]);
    let table = k.input("table", Element::S32, &[sequences, most]);
    let lengths = k.input("lengths", Element::S32, &[sequences]);
    let keys = k.output("keys", Element::F32, &[sequences, positions, depth]);
    let (i, s) = (
        k.tiles(Axis::X, positions, 16)?,
        k.tiles(Axis::Y, sequences, 1)?,
    );
    let page = table.load::<u32>(&mut k, &[s, i])?.to_index(&mut k);
    let length = lengths.load::<i32>(&mut k, &[s])?.to_index(&mut k);
    let rest = k.linear(&[(1, length), (-16, i)], 0);
    let rest = k.clamp(rest, 0, 16);
    let (thread, shares) = (k.thread(), layout("((16,8),(4,2)):((64,1),(16,8))"));
    let from = store.part(&mut k, &[page, zero, zero], &[one, rest, depth])?;
    let from = from.tile(&mut k, &[1, 16, 64], &[zero; 3])?;
    let from = from.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    let to = keys.tile(&mut k, &[1, 16, 64], &[s, i, zero])?;
    let to = to.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    k.copy(&from, &to)?;
    Ok(k)
}

#[test]
pub(super) fn keys_of_pages() -> Result {
    let kernel = paged()?.build(ARCH)?;
    let (table, lengths) = ([5, 2, 0, 3, 1, 6, 4, 4, 4], [40, 48, 0]);
    let store = numbers(6 * 16 * 64);
    let outcome = ran(
        &kernel,
        vec![
            ("sequences", Arg::from(3_u32)),
            ("pages", Arg::from(6_u32)),
            ("most", Arg::from(3_u32)),
            ("store", Arg::input(&store)),
            ("table", Arg::input(&table)),
            ("lengths", Arg::input(&lengths)),
            ("keys", Arg::output::<f32>(3 * 48 * 64)),
        ],
    )?;
    let keys: Vec<f32> = outcome.get("keys")?;
    for (at, key) in keys.chunks(64).enumerate() {
        let (s, position) = (at / 48, at % 48);
        let page = table[3 * s + position / 16] as usize;
        let row = (16 * page + position % 16) * 64;
        let inside = page < 6 && (position as i32) < lengths[s];
        let right = if inside {
            &store[row..row + 64]
        } else {
            &[0.0; 64]
        };
        assert_eq!(key, right, "{at}");
    }
    Ok(())
}

/// c = a b for a of blocks of 16 x 16: those of block row i are first[i] to first[i + 1], and the block column of each is in `column`.
fn block_sparse() -> Result<Kernel> {
    let mut k = Kernel::new("block_sparse", 32);
    let (rows, entries) = (k.size("rows", 1 << 20), k.size("entries", 1 << 20));
    let (depth, n) = (k.size("depth", 1 << 20), k.size("n", 1 << 20));
    let (zero, sixteen) = (k.constant(0), k.constant(16));
    let (ends, m, stacked) = (
        k.linear(&[(1, rows)], 1),
        k.scale(rows, 16),
        k.scale(entries, 16),
    );
    let first = k.input("first", Element::S32, &[ends]);
    let column = k.input("column", Element::S32, &[entries]);
    let a = k.input("a", Element::F16, &[stacked, sixteen]);
    let b = k.input("b", Element::F16, &[depth, n]);
    let c = k.output("c", Element::F32, &[m, n]);
    let (i, j, lane) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 64)?, k.lane());
    let next = k.linear(&[(1, i)], 1);
    let begin = first.load::<u32>(&mut k, &[i])?.to_index(&mut k);
    let end = first.load::<u32>(&mut k, &[next])?.to_index(&mut k);
    let count = k.sub(end, begin);
    let count = k.clamp(count, 0, 1 << 20);
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)"))?;
    let sums = k.accumulators(&mma, [16, 64], lane)?;
    k.for_loop("e", 0, 1, count, |k, e| {
        let e = k.add(begin, e);
        let t = column.load::<u32>(k, &[e])?.to_index(k);
        let a = a
            .tile(k, &[16, 16], &[e, zero])?
            .partition_a(k, &mma, lane)?
            .vectors(k, 2)?;
        let b = b
            .tile(k, &[16, 64], &[t, j])?
            .transposed()
            .partition_b(k, &mma, lane)?;
        let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
        k.gemm(&mma, &a, &b, &sums)
    })?;
    let c = c
        .tile(&mut k, &[16, 64], &[i, j])?
        .partition_c(&mut k, &mma, lane)?;
    k.store_fragment(&c, &sums)?;
    Ok(k)
}

fn halves(n: usize) -> Vec<f16> {
    (0..n)
        .map(|i| f16::from_f32((i * 37 % 17) as f32 - 8.0))
        .collect()
}

#[test]
pub(super) fn a_product_of_sparse_blocks() -> Result {
    let kernel = block_sparse()?.build(ARCH)?;
    let (rows, depth, n) = (3_usize, 80_usize, 72_usize);
    let (first, column) = ([0, 2, 2, 5], [3, 0, 4, 1, 2]);
    let (a, b) = (halves(5 * 256), halves(depth * n));
    let outcome = ran(
        &kernel,
        vec![
            ("rows", Arg::from(rows as u32)),
            ("entries", Arg::from(5_u32)),
            ("depth", Arg::from(depth as u32)),
            ("n", Arg::from(n as u32)),
            ("first", Arg::input(&first)),
            ("column", Arg::input(&column)),
            ("a", Arg::input(&a)),
            ("b", Arg::input(&b)),
            ("c", Arg::output::<f32>(16 * rows * n)),
        ],
    )?;
    let c: Vec<f32> = outcome.get("c")?;
    for (at, c) in c.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let blocks = first[row / 16]..first[row / 16 + 1];
        let products = blocks.flat_map(|e: i32| (0..16).map(move |t| (e as usize, t)));
        let products = products.map(|(e, t)| {
            let b = b[(16 * column[e] as usize + t) * n + col].to_f32();
            a[256 * e + 16 * (row % 16) + t].to_f32() * b
        });
        assert_eq!(*c, products.sum::<f32>(), "{at}");
    }
    Ok(())
}

/// c = a b[g] for the rows of each group g, which are offsets[g] to offsets[g + 1]; a tile of rows takes the groups that have some of them.
fn grouped() -> Result<Kernel> {
    let mut k = Kernel::new("grouped", 128);
    let [groups, m, depth, n] = ["groups", "m", "depth", "n"].map(|name| k.size(name, 1 << 20));
    let ends = k.linear(&[(1, groups)], 1);
    let offsets = k.input("offsets", Element::S32, &[ends]);
    let a = k.input("a", Element::F16, &[m, depth]);
    let b = k.input("b", Element::F16, &[groups, depth, n]);
    let c = k.output("c", Element::F32, &[m, n]);
    let (i, j, thread) = (
        k.tiles(Axis::X, m, 64)?,
        k.tiles(Axis::Y, n, 32)?,
        k.thread(),
    );
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(4,1,1):(1,0,0)"))?;
    let all = k.accumulators(&mma, [64, 32], thread)?;
    k.for_loop("g", 0, 1, groups, |k, g| {
        let next = k.linear(&[(1, g)], 1);
        let begin = offsets.load::<i32>(k, &[g])?.to_index(k);
        let end = offsets.load::<i32>(k, &[next])?.to_index(k);
        let (top, bottom) = (k.scale(i, 64), k.linear(&[(64, i)], 64));
        let below = Predicate::of(k, begin, Cmp::Lt, bottom);
        let here = Predicate::of(k, end, Cmp::Gt, top).and(k, below);
        k.when(here, |k| {
            let (b, steps) = (b.slice(k, &[g])?, k.tiles_in(depth, 16)?);
            let sums = k.accumulators(&mma, [64, 32], thread)?;
            k.for_loop("t", 0, 1, steps, |k, t| {
                let a = a
                    .tile(k, &[64, 16], &[i, t])?
                    .partition_a(k, &mma, thread)?;
                let b = b.tile(k, &[16, 32], &[t, j])?.transposed();
                let b = b.partition_b(k, &mma, thread)?;
                let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
                k.gemm(&mma, &a, &b, &sums)
            })?;
            let own = sums.map_at(k, |k, _, [row, _]| {
                let row = k.add(top, row);
                let below = Predicate::of(k, row, Cmp::Lt, end);
                let own = Predicate::of(k, row, Cmp::Ge, begin).and(k, below);
                own.select(k, F32::from(1.0), 0.0)
            })?;
            all.update_with_both(k, [&own, &sums], |k, all, own, sum| {
                own.gt(k, 0.0).select(k, sum, all)
            })
        })
    })?;
    let c = c
        .tile(&mut k, &[64, 32], &[i, j])?
        .partition_c(&mut k, &mma, thread)?;
    k.store_fragment(&c, &all)?;
    Ok(k)
}

#[test]
pub(super) fn products_of_groups_of_rows() -> Result {
    let kernel = grouped()?.build(ARCH)?;
    let (m, depth, n) = (150_usize, 40_usize, 40_usize);
    let offsets = [0, 30, 30, 100, 150];
    let (a, b) = (halves(m * depth), halves(4 * depth * n));
    let outcome = ran(
        &kernel,
        vec![
            ("groups", Arg::from(4_u32)),
            ("m", Arg::from(m as u32)),
            ("depth", Arg::from(depth as u32)),
            ("n", Arg::from(n as u32)),
            ("offsets", Arg::input(&offsets)),
            ("a", Arg::input(&a)),
            ("b", Arg::input(&b)),
            ("c", Arg::output::<f32>(m * n)),
        ],
    )?;
    let c: Vec<f32> = outcome.get("c")?;
    for (at, c) in c.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let g = (0..4).find(|&g| (offsets[g]..offsets[g + 1]).contains(&(row as i32)));
        let g = g.expect("a group");
        let products =
            (0..depth).map(|t| a[row * depth + t].to_f32() * b[(g * depth + t) * n + col].to_f32());
        assert_eq!(*c, products.sum::<f32>(), "{at}");
    }
    Ok(())
}

/// What a kernel of vectors is refused for: 64 threads, x of s32, its element of this thread as an index, a partial output.
fn refused(body: impl FnOnce(&mut Kernel, [View; 2], [Expr; 3]) -> super::Done) -> Result<String> {
    let mut k = Kernel::new("refused", 64);
    let n = k.size("n", 1 << 30);
    let x = k.input("x", Element::S32, &[n]);
    let y = k.partial_output("y", Element::S32, &[n]);
    let (block, thread) = (k.tiles(Axis::X, n, 64)?, k.thread());
    let i = k.linear(&[(64, block), (1, thread)], 0);
    body(&mut k, [x, y], [block, thread, i])?;
    match k.build(ARCH) {
        Ok(kernel) => Ok(kernel.ptx),
        Err(error) => Ok(error.code().to_owned()),
    }
}

#[test]
fn elements_that_two_threads_store() -> Result {
    let one = S32::from(1);
    // Tiles that overlap, or that all blocks have.
    for factor in [0, 1, 63] {
        let code = refused(|k, [_, y], [block, thread, _]| {
            let at = k.linear(&[(factor, block), (1, thread)], 0);
            y.store(k, &[at], one)
        });
        assert_eq!(code?, "shared_element", "{factor}");
    }
    // Apart, each element or every third one.
    for (factor, step) in [(64, 1), (192, 3), (190, 3), (500, 1)] {
        let text = refused(|k, [_, y], [block, thread, _]| {
            let at = k.linear(&[(factor, block), (step, thread)], 0);
            y.store(k, &[at], one)
        });
        assert!(text?.contains("st.global"), "{factor}");
    }
    // By two threads of a block, or twice by one.
    let code = refused(|k, [_, y], [block, thread, _]| {
        let half = k.div(thread, 2);
        let at = k.linear(&[(64, block), (1, half)], 0);
        y.store(k, &[at], one)
    });
    assert_eq!(code?, "shared_element");
    let code = refused(|k, [_, y], [_, _, i]| {
        y.store(k, &[i], one)?;
        y.store(k, &[i], one)
    });
    assert_eq!(code?, "shared_element");
    // An index from data that is not stated to be distinct, and one that all iterations have.
    let code = refused(|k, [x, y], [_, _, i]| {
        let at = x.load::<i32>(k, &[i])?.to_index(k);
        y.store(k, &[at], one)
    });
    assert_eq!(code?, "shared_element");
    let code = refused(|k, [x, y], [_, _, i]| {
        let at = x.load::<u32>(k, &[i])?.to_index(k);
        y.store(k, &[at], one)
    });
    assert_eq!(code?, "shared_element");
    // A tile of each block at a place from data: two blocks may have the same.
    let code = refused(|k, [x, y], [block, thread, _]| {
        let at = x.load::<u32>(k, &[block])?.to_index(k);
        let at = k.add(at, thread);
        y.store(k, &[at], one)
    });
    assert_eq!(code?, "shared_element");
    let code = refused(|k, [x, y], [block, thread, _]| {
        let at = x.load::<u32>(k, &[block])?.to_index(k);
        let at = k.linear(&[(1, at), (64, block), (1, thread)], 0);
        y.store(k, &[at], one)
    });
    assert_eq!(code?, "shared_element");
    // All blocks from the same place on.
    let text = refused(|k, [x, y], [block, thread, _]| {
        let zero = k.constant(0);
        let at = x.load::<u32>(k, &[zero])?.to_index(k);
        let at = k.linear(&[(1, at), (64, block), (1, thread)], 0);
        y.store(k, &[at], one)
    });
    assert!(text?.contains("st.global"));
    // In a loop: each iteration its own, or all iterations the same.
    for (step, fits) in [(64, true), (1, false), (0, false)] {
        let said = refused(|k, [_, y], [block, thread, _]| {
            let eight = k.constant(8);
            k.for_loop("i", 0, 1, eight, |k, i| {
                let at = k.linear(&[(512, block), (step, i), (1, thread)], 0);
                y.store(k, &[at], one)
            })
        })?;
        assert_eq!(said != "shared_element", fits, "{step}");
    }
    // Atomic operations go together, and with nothing else.
    let code = refused(|k, [_, y], [_, thread, i]| {
        y.atomic(k, &[thread], Combine::Add, one)?;
        y.store(k, &[i], one)
    });
    assert_eq!(code?, "shared_element");
    let code = refused(|k, [_, y], [_, thread, _]| {
        y.atomic(k, &[thread], Combine::Add, one)?;
        let old = y.load::<i32>(k, &[thread])?;
        y.atomic(k, &[thread], Combine::Max, old)
    });
    assert_eq!(code?, "shared_element");
    let code = refused(|k, [x, _], [_, thread, _]| x.atomic(k, &[thread], Combine::Add, one));
    assert_eq!(code?, "input");
    let code = refused(|k, _, [_, thread, _]| {
        let n = k.constant(64);
        let z = k.output("z", Element::S32, &[n]);
        z.atomic(k, &[thread], Combine::Add, one)
    });
    assert_eq!(code?, "coverage");
    // An element of a partial output that another block may have stored.
    let code = refused(|k, [_, y], [_, _, i]| {
        let next = k.linear(&[(1, i)], 1);
        let value = y.load::<i32>(k, &[next])?;
        y.store(k, &[i], value)
    });
    assert_eq!(code?, "overwritten");
    let text = refused(|k, [_, y], [_, _, i]| {
        let value = y.load::<i32>(k, &[i])?.add(k, 1);
        y.store(k, &[i], value)
    });
    assert!(text?.contains("st.global"));
    Ok(())
}

#[test]
fn what_threads_do_by_data() -> Result {
    let shared = |k: &mut Kernel| k.shared("s", Element::S32, &swizzled("64:1"));
    // A barrier, a shuffle or a store of a tile's element in a loop of a length of its own.
    let lengths = |k: &mut Kernel, x: &View, i: Expr| -> std::result::Result<Expr, ViewError> {
        let length = x.load::<i32>(k, &[i])?.to_index(k);
        Ok(k.clamp(length, 0, 100))
    };
    let code = refused(|k, [x, _], [_, _, i]| {
        let length = lengths(k, &x, i)?;
        k.for_loop("e", 0, 1, length, |k, _| {
            k.barrier();
            super::Done::Ok(())
        })
    });
    assert_eq!(code?, "divergent");
    let code = refused(|k, [x, y], [_, _, i]| {
        let length = lengths(k, &x, i)?;
        k.for_loop("e", 0, 1, length, |k, e| {
            let e = S32::index(k, e);
            let _ = e.shuffle(k, Shuffle::Butterfly, 1);
            super::Done::Ok(())
        })?;
        y.store(k, &[i], S32::from(1))
    });
    assert_eq!(code?, "partial_warp");
    let code = refused(|k, [x, y], [_, _, i]| {
        let length = lengths(k, &x, i)?;
        k.for_loop("e", 0, 1, length, |k, _| y.store(k, &[i], S32::from(1)))
    });
    assert_eq!(code?, "shared_element");
    // Shared memory that others write while a thread goes on.
    for (by, barrier, right) in [(0, false, true), (1, false, false), (1, true, true)] {
        let said = refused(|k, [x, y], [_, thread, i]| {
            let (s, length) = (shared(k)?, lengths(k, &x, i)?);
            let next = k.linear(&[(1, thread)], by);
            let next = k.rem(next, 64);
            s.store(k, &[thread], S32::from(0))?;
            k.barrier();
            let sum = k.variable(S32::from(0));
            k.for_loop("e", 0, 1, length, |k, _| {
                let more = s.load::<i32>(k, &[next])?.add(k, 1);
                sum.set(k, more);
                if by == 0 {
                    s.store(k, &[thread], more)?;
                }
                super::Done::Ok(())
            })?;
            if barrier {
                k.barrier();
            }
            s.store(k, &[thread], S32::from(2))?;
            let sum = sum.get(k);
            y.store(k, &[i], sum)
        })?;
        assert_eq!(said != "race", right, "{by} {barrier}: {said}");
    }
    // What all threads of a block read from one place is alike: they may wait in a loop of that length, and on one side of a branch.
    let alike = |at: usize| {
        refused(|k, [x, y], [block, thread, i]| {
            let at = [block, thread][at];
            let length = lengths(k, &x, at)?;
            k.for_loop("e", 0, 1, length, |k, _| {
                k.barrier();
                super::Done::Ok(())
            })?;
            let ten = k.constant(10);
            let p = Predicate::of(k, length, Cmp::Lt, ten);
            super::barrier_when(k, p);
            y.store(k, &[i], S32::from(1))
        })
    };
    assert!(alike(0)?.contains("bar.sync"));
    assert_eq!(alike(1)?, "divergent");
    // In each iteration another element: what was decided of one is not decided of the next.
    for barrier in [false, true] {
        let said = refused(|k, [x, y], [_, thread, i]| {
            let (s, many) = (shared(k)?, k.constant(10));
            let (next, one) = (k.linear(&[(1, thread)], 1), k.constant(1));
            let next = k.rem(next, 64);
            s.store(k, &[thread], S32::from(0))?;
            k.barrier();
            k.for_loop("t", 0, 1, many, |k, t| {
                let what = x.load::<u32>(k, &[t])?.to_index(k);
                let p = Predicate::of(k, what, Cmp::Lt, one);
                k.when_else(
                    p,
                    |k| s.load::<i32>(k, &[next]).map(|_| ()),
                    |k| s.store(k, &[thread], S32::from(1)),
                )?;
                if barrier {
                    k.barrier();
                }
                super::Done::Ok(())
            })?;
            y.store(k, &[i], S32::from(1))
        })?;
        assert_eq!(said == "race", !barrier, "{said}");
    }
    // An index ends with the branch that loaded it.
    let code = refused(|k, [x, y], [block, _, i]| {
        let mut inner = i;
        let (zero, p) = (k.constant(0), block);
        let p = Predicate::of(k, p, Cmp::Gt, zero);
        k.when(p, |k| {
            inner = x.load::<u32>(k, &[i])?.to_index(k);
            super::Done::Ok(())
        })?;
        let value = x.load::<i32>(k, &[inner])?;
        y.store(k, &[i], value)
    });
    assert_eq!(code?, "malformed");
    Ok(())
}
