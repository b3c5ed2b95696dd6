//! Reductions, maps with coordinates and broadcasts.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::{Combine, ViewError};
use tilewright::{Layout, TiledMma, atoms};

use super::{Result, computed, kernel, numbers};

/// Layouts of a tile, each with its threads: rows in lanes, rows over warps, rows in both, columns, repeated modes.
const SHARES: [([i64; 2], u32, &str); 8] = [
    ([1, 128], 32, "(32,4):(4,1)"),
    ([4, 64], 32, "((8,4),8):((32,1),4)"),
    ([1, 1024], 128, "(128,8):(8,1)"),
    ([2, 512], 256, "((128,2),4):((8,1),2)"),
    ([2, 512], 256, "((2,128),4):((1,2),256)"),
    (
        [16, 64],
        128,
        "((4,8,2,2),(2,2,2)):((32,1,8,512),(16,256,128))",
    ),
    ([1, 96], 96, "(96,1):(1,0)"),
    ([8, 192], 96, "(96,(8,2)):(8,(1,768))"),
];

#[test]
fn rows_and_columns_by_any_layout() -> Result {
    for (shape, threads, tv) in SHARES {
        let tv = Layout::parse(tv)?;
        let [rows, cols] = shape.map(|n| n as usize);
        for (how, host) in [
            (Combine::Add, (|a, b| a + b) as fn(f32, f32) -> f32),
            (Combine::Max, f32::max),
            (Combine::Min, f32::min),
            (Combine::MaxNan, f32::max),
            (Combine::MinNan, f32::min),
        ] {
            let of_rows = kernel(shape, threads, &tv, true, |k, x| x.reduce(k, 1, how))?;
            let m = 2 * rows;
            let x = numbers(m * cols);
            let wanted: Vec<f32> = x
                .chunks(cols)
                .map(|row| row.iter().copied().reduce(host).unwrap_or(0.0))
                .collect();
            assert_eq!(computed(&of_rows, m, &x, m)?, wanted, "{tv} {how:?}");
            // The maximum of a column: of one tile.
            let of_columns = kernel(shape, threads, &tv, false, |k, x| x.reduce(k, 0, how))?;
            let x = numbers(rows * cols);
            let wanted: Vec<f32> = (0..cols)
                .map(|c| {
                    (0..rows)
                        .map(|r| x[r * cols + c])
                        .reduce(host)
                        .unwrap_or(0.0)
                })
                .collect();
            assert_eq!(
                computed(&of_columns, rows, &x, cols)?,
                wanted,
                "{tv} {how:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_row_with_nan() -> Result {
    let tv = Layout::parse("(128,8):(8,1)")?;
    let mut x = numbers(1024);
    x[77] = f32::NAN;
    for (how, nan) in [
        (Combine::Max, false),
        (Combine::MaxNan, true),
        (Combine::MinNan, true),
        (Combine::Add, true),
    ] {
        let maxima = kernel([1, 1024], 128, &tv, true, |k, x| x.reduce(k, 1, how))?;
        assert_eq!(computed(&maxima, 1, &x, 1)?[0].is_nan(), nan, "{how:?}");
    }
    Ok(())
}

#[test]
fn what_was_reduced_is_broadcast() -> Result {
    for (shape, threads, tv) in SHARES {
        let tv = Layout::parse(tv)?;
        let [rows, cols] = shape.map(|n| n as usize);
        let centred = kernel(shape, threads, &tv, true, |k, x| {
            let (most, least) = (x.reduce(k, 1, Combine::Max)?, x.reduce(k, 0, Combine::Min)?);
            x.zip(k, &most, |k, x, m| x.sub(k, m))?
                .zip(k, &least, |k, x, m| x.mul(k, m))
        })?;
        let x = numbers(rows * cols);
        let y = computed(&centred, rows, &x, rows * cols)?;
        for r in 0..rows {
            let most = x[r * cols..][..cols]
                .iter()
                .copied()
                .fold(f32::MIN, f32::max);
            for c in 0..cols {
                let least = (0..rows).map(|r| x[r * cols + c]).fold(f32::MAX, f32::min);
                assert_eq!(
                    y[r * cols + c],
                    (x[r * cols + c] - most) * least,
                    "{tv} {r} {c}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_mask_by_coordinates() -> Result {
    let tv = Layout::parse("((8,4),8):((32,1),4)")?;
    let masked = kernel([4, 64], 32, &tv, true, |k, x| {
        x.map_at(k, |k, x, [row, column]| {
            Predicate::of(k, column, Cmp::Le, row).select(k, x, -1.0)
        })
    })?;
    let x = numbers(256);
    let y = computed(&masked, 4, &x, 256)?;
    for (i, y) in y.into_iter().enumerate() {
        assert_eq!(y, if i % 64 <= i / 64 { x[i] } else { -1.0 });
    }
    Ok(())
}

#[test]
fn state_of_a_loop() -> Result {
    let tv = Layout::parse("(128,8):(8,1)")?;
    let sums = kernel([1, 1024], 128, &tv, true, |k, x| {
        // Three times the sum of the row, reduced in each turn.
        let state = x
            .reduce(k, 1, Combine::Max)?
            .map(k, |_, _| F32::from(0.0))?;
        let n = k.constant(3);
        k.for_loop("i", 0, 1, n, |k, _| {
            let sum = x.reduce(k, 1, Combine::Add)?;
            state.update_with(k, &sum, |k, old, sum| old.add(k, sum))?;
            state.update(k, |k, old| old.mul(k, 1.0))
        })?;
        Ok(state)
    })?;
    let x = numbers(1024);
    assert_eq!(computed(&sums, 1, &x, 1)?, [3.0 * x.iter().sum::<f32>()]);
    Ok(())
}

#[test]
fn values_of_repeated_threads() -> Result {
    for (groups, of) in [
        ("128:0", (|_| 0) as fn(usize) -> usize),
        ("(32,4):(0,1)", |t| t / 32),
        ("(4,32):(1,0)", |t| t % 4),
        ("(2,2,32):(0,1,2)", |t| t / 2),
        ("(32,2,2):(1,0,32)", |t| t % 32 + 32 * (t / 64)),
    ] {
        let (tv, groups) = (Layout::parse("(128,1):(1,0)")?, Layout::parse(groups)?);
        let sums = kernel([1, 128], 128, &tv, true, |k, x| {
            let x = x.map(k, |_, x| x)?;
            let value: F32 = x.thread_values(k)?[0];
            let sum = k.reduce(value, &groups, Combine::Add)?;
            x.map(k, |_, _| sum)
        })?;
        let x = numbers(128);
        let wanted: Vec<f32> = (0..128)
            .map(|t| (0..128).filter(|&u| of(u) == of(t)).map(|u| x[u]).sum())
            .collect();
        assert_eq!(computed(&sums, 1, &x, 128)?, wanted, "{groups}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_reduced_is_refused() -> Result {
    let mut k = Kernel::new("k", 32);
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let lane = k.lane();
    let sums = k.accumulators(&mma, [16, 16], lane)?;
    let error = sums.reduce(&mut k, 2, Combine::Add).expect_err("two modes");
    assert_eq!(
        error.to_string(),
        "a reduction of a fragment of 16x16 f32: mode 2 of 2: it has one or two"
    );
    let halves = sums.convert(&mut k, Element::F16)?;
    let error = halves.reduce(&mut k, 1, Combine::Add).expect_err("f16");
    assert!(
        error.to_string().contains("convert it to f32 first"),
        "{error}"
    );
    // Lanes that move along the diagonal.
    let tv = Layout::parse("(32,32):(33,32)")?;
    let error =
        kernel([32, 32], 32, &tv, true, |k, x| x.reduce(k, 1, Combine::Add)).expect_err("diagonal");
    assert!(!error.to_string().is_empty());
    Ok(())
}

#[test]
fn a_shuffle_of_half_a_warp_is_refused() {
    let mut k = Kernel::new("k", 32);
    let (thread, half) = (k.thread(), k.constant(16));
    let p = Predicate::of(&mut k, thread, Cmp::Lt, half);
    k.when(p, |k| {
        let _ = F32::from(1.0).shuffle(k, Shuffle::Butterfly, 1);
        Ok::<(), ViewError>(())
    })
    .expect("a branch");
    let error = k.build(Arch(80)).expect_err("half of the lanes");
    assert_eq!(error.code(), "partial_warp");
}
