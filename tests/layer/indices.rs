//! Indices from data: gather, page tables, rows of any length.

use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::value::F32;
use tilewright::host::Arg;

use super::natural::{numbers, ran};
use super::{ARCH, Result, layout};

/// y[i] = table[ids[i]]: a row of any length a block.
fn gather() -> Result<Kernel> {
    let mut k = Kernel::new("gather", 64);
    let (n, rows, cols) = (
        k.size("n", 1 << 20),
        k.size("rows", 1 << 20),
        k.size("cols", 1 << 16),
    );
    let ids = k.input("ids", Element::S32, &[n]);
    let table = k.input("table", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[n, cols]);
    let (i, j, thread) = (
        k.tiles(Axis::X, n, 1)?,
        k.tiles(Axis::Y, cols, 256)?,
        k.thread(),
    );
    let row = ids.load::<u32>(&mut k, &[i])?.to_index(&mut k);
    let shares = layout("(64,4):(4,1)");
    let from = table.tile(&mut k, &[1, 256], &[row, j])?;
    let from = from.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    let to = y.tile(&mut k, &[1, 256], &[i, j])?;
    let to = to.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    k.copy(&from, &to)?;
    Ok(k)
}

#[test]
fn rows_of_a_table() -> Result {
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
fn rows_of_any_length() -> Result {
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
