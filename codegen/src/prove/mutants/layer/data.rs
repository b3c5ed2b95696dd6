//! Kernels whose indices and bounds come from data.

use layout_core::{Layout, Swizzled};

use super::{Given, none_is_refuted, numbers, subject};
use crate::ir::{Axis, Cmp, Element, Kernel};
use crate::prove::mutants::Subject;
use crate::value::{F32, Predicate, S32};
use crate::view::{Combine, ViewError};

/// y[i] = table[ids[i]], a row of zeros beyond the table; negative ids are row 0.
fn gather() -> Result<Kernel, ViewError> {
    let mut k = Kernel::new("gather", 64);
    let (n, rows, cols) = (
        k.size("n", 1 << 20),
        k.size("rows", 1 << 20),
        k.constant(256),
    );
    let ids = k.input("ids", Element::S32, &[n]);
    let table = k.input("table", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[n, cols]);
    let (i, zero, thread) = (k.tiles(Axis::X, n, 1)?, k.constant(0), k.thread());
    let row = ids.load::<i32>(&mut k, &[i])?.to_index(&mut k);
    let row = k.clamp(row, 0, 1 << 20);
    let shares = Layout::flat(&[64, 4], &[4, 1])?;
    let from = table.tile(&mut k, &[1, 256], &[row, zero])?;
    let from = from.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    let to = y.tile(&mut k, &[1, 256], &[i, zero])?;
    let to = to.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    k.copy(&from, &to)?;
    Ok(k)
}

fn gathered() -> Subject {
    let launches = [(6, 3), (1, 1)].map(|(n, rows)| {
        let ids: Vec<i64> = [2, 7, -1, 0, 3, 1].into_iter().take(n).collect();
        let table = numbers(rows * 256, 1);
        let row = |id: i64| {
            let begin = 256 * id.max(0) as usize;
            table
                .get(begin..begin + 256)
                .map_or(vec![0; 256], <[i64]>::to_vec)
        };
        let y = ids.iter().flat_map(|&id| row(id)).collect();
        let given = Given {
            sizes: vec![("n", n as u64), ("rows", rows)],
            inputs: vec![("ids", ids), ("table", table)],
        };
        (given, y, Element::F32)
    });
    subject("rows at indices from data", gather(), launches.into())
}

/// y[i] = the sum of values[first[i]] to values[first[i + 1] − 1]: each thread has a loop of a length of its own.
fn ragged_sums() -> Result<Kernel, ViewError> {
    let mut k = Kernel::new("ragged_sums", 64);
    let (rows, entries) = (k.size("rows", 1 << 24), k.size("entries", 1 << 28));
    let ends = k.linear(&[(1, rows)], 1);
    let first = k.input("first", Element::S32, &[ends]);
    let values = k.input("values", Element::F32, &[entries]);
    let y = k.output("y", Element::F32, &[rows]);
    let (block, thread) = (k.tiles(Axis::X, rows, 64)?, k.thread());
    let row = k.linear(&[(64, block), (1, thread)], 0);
    let next = k.linear(&[(1, row)], 1);
    let begin = first.load::<u32>(&mut k, &[row])?.to_index(&mut k);
    let end = first.load::<u32>(&mut k, &[next])?.to_index(&mut k);
    let (count, sum) = (k.sub(end, begin), k.variable(F32::from(0.0)));
    let count = k.clamp(count, 0, 1 << 28);
    k.for_loop("entry", 0, 1, count, |k, entry| {
        let at = k.add(begin, entry);
        let (value, before) = (values.load::<f32>(k, &[at])?, sum.get(k));
        let more = before.add(k, value);
        sum.set(k, more);
        Ok::<(), ViewError>(())
    })?;
    let sum = sum.get(&mut k);
    y.store(&mut k, &[row], sum)?;
    Ok(k)
}

fn summed() -> Subject {
    let launches = [70, 1].map(|rows| {
        // Some rows are empty, and the last one reaches beyond the values.
        let first: Vec<i64> = (0..=rows).map(|i| i * (i + 3) / 5).collect();
        let entries = first[rows as usize] - 1;
        let values = numbers(entries.max(0) as u64, 1);
        let y = first.windows(2).map(|ends| {
            let inside = (ends[0]..ends[1]).filter_map(|at| values.get(at as usize));
            inside.sum()
        });
        let y = y.collect();
        let given = Given {
            sizes: vec![("rows", rows as u64), ("entries", entries.max(0) as u64)],
            inputs: vec![("first", first), ("values", values)],
        };
        (given, y, Element::F32)
    });
    subject(
        "loops up to bounds from data",
        ragged_sums(),
        launches.into(),
    )
}

/// What is combined by atomic operations is not counted by the prover: runs are clean, whatever they count.
///
/// counts[b] = how often b occurs in x, from 0 to 255: in shared memory by each block, then added to those of all.
fn histogram() -> Result<Kernel, ViewError> {
    let mut k = Kernel::new("histogram", 256);
    let (n, bins) = (k.size("n", 1 << 30), k.constant(256));
    let x = k.input("x", Element::S32, &[n]);
    let counts = k.partial_output("counts", Element::S32, &[bins]);
    let own = k.shared(
        "own",
        Element::S32,
        &Swizzled::new(layout_core::Swizzle::IDENTITY, 0, Layout::mode(256, 1)?)?,
    )?;
    let (block, thread) = (k.tiles(Axis::X, n, 256)?, k.thread());
    let i = k.linear(&[(256, block), (1, thread)], 0);
    own.store(&mut k, &[thread], S32::from(0))?;
    k.barrier();
    let inside = Predicate::of(&mut k, i, Cmp::Lt, n);
    k.when(inside, |k| {
        let bin = x.load::<i32>(k, &[i])?.to_index(k);
        let bin = k.clamp(bin, 0, 255);
        own.atomic(k, &[bin], Combine::Add, S32::from(1))
    })?;
    k.barrier();
    let count = own.load::<i32>(&mut k, &[thread])?;
    counts.atomic(&mut k, &[thread], Combine::Add, count)?;
    Ok(k)
}

fn counted() -> Subject {
    let launches = [300, 1].map(|n| {
        let x: Vec<i64> = (0..n).map(|i| i * 37 % 290 - 17).collect();
        let given = Given {
            sizes: vec![("n", n as u64)],
            inputs: vec![("x", x), ("counts", vec![0; 256])],
        };
        (given, Vec::new(), Element::S32)
    });
    subject("bins from data", histogram(), launches.into())
}

#[test]
fn mutants_of_bounds_from_data() {
    none_is_refuted(vec![gathered(), summed(), counted()], 40, 100);
}
