//! Mutants of kernels on rows: reductions by shuffles and through shared memory, stores by one of several threads, outputs that a loop walks over, a change of the
//! register layout through shared memory.

use layout_core::Layout;
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

use super::{Subject, judged};
use crate::ir::{Axis, Element, Entry, Kernel};
use crate::view::{Combine, ViewError};

/// The longest row.
const MOST: i64 = 1024;

/// y = x + the sum of its row, and z = the sums: rows in two warps, two values of a thread an iteration.
fn centred() -> Result<Entry, ViewError> {
    let mut k = Kernel::new("centred", 64);
    let (rows, cols) = (k.size("rows", 1 << 30), k.size("cols", MOST));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows, cols]);
    let z = k.output("z", Element::F32, &[rows]);
    let (i, thread, zero) = (k.tiles(Axis::X, rows, 1)?, k.thread(), k.pool.constant(0));
    let shares = Layout::tuple(&[Layout::mode(64, 2)?, Layout::mode(2, 1)?])?;
    let share = |k: &mut Kernel, of: &crate::view::View, j| {
        let tile = of.tile(k, &[1, 128], &[i, j])?;
        tile.partition(k, &shares, thread)?.vectors(k, 2)
    };
    let first = share(&mut k, &x, zero)?;
    let sums = k.fragment_of(&first, 0.0)?;
    let columns = k.open_loop("column", 0, 128, MOST);
    let j = k.pool.shr(columns.counter, 7);
    let from = share(&mut k, &x, j)?;
    let value = k.load_fragment(&from)?;
    sums.update_with(&mut k, &value, |k, sum, x| sum.add(k, x))?;
    k.close_loop(&columns, cols);
    let sums = sums.reduce(&mut k, 1, Combine::Add)?;
    let z = z.tile(&mut k, &[1], &[i])?;
    let z = first.along(&mut k, 0, &z)?;
    k.store_fragment(&z, &sums)?;
    let columns = k.open_loop("column", 0, 128, MOST);
    let j = k.pool.shr(columns.counter, 7);
    let from = share(&mut k, &x, j)?;
    let value = k.load_fragment(&from)?;
    let value = value.zip(&mut k, &sums, |k, x, sum| x.add(k, sum))?;
    let to = share(&mut k, &y, j)?;
    k.store_fragment(&to, &value)?;
    k.close_loop(&columns, cols);
    Ok(k.finish())
}

/// y = x + the maximum of its row, by columns of threads, z = the maxima: the rows of a tile are turned around through shared memory.
fn turned() -> Result<Entry, ViewError> {
    let mut k = Kernel::new("centred", 64);
    let (rows, cols) = (k.size("rows", 1 << 30), k.size("cols", 64));
    let x = k.input("x", Element::F32, &[rows, cols]);
    let y = k.output("y", Element::F32, &[rows, cols]);
    let z = k.output("z", Element::F32, &[rows]);
    let (i, thread, zero) = (k.tiles(Axis::X, rows, 4)?, k.thread(), k.pool.constant(0));
    // A row in 16 lanes, four values each; and a column in each thread.
    let by_rows = Layout::tuple(&[Layout::flat(&[16, 4], &[16, 1])?, Layout::mode(4, 4)?])?;
    let by_columns = Layout::tuple(&[Layout::mode(64, 4)?, Layout::mode(4, 1)?])?;
    let tile = x.tile(&mut k, &[4, 64], &[i, zero])?;
    let columns = tile.partition(&mut k, &by_columns, thread)?;
    let rows_of = tile.partition(&mut k, &by_rows, thread)?;
    let x = k.load_fragment(&columns)?;
    let x = x.relayout(&mut k, &by_rows)?;
    let sums = x.reduce(&mut k, 1, Combine::Add)?;
    let z = z.tile(&mut k, &[4], &[i])?;
    let z = rows_of.along(&mut k, 0, &z)?;
    k.store_fragment(&z, &sums)?;
    let value = x.zip(&mut k, &sums, |k, x, sum| x.add(k, sum))?;
    let to = y.tile(&mut k, &[4, 64], &[i, zero])?;
    let to = to.partition(&mut k, &by_rows, thread)?;
    k.store_fragment(&to, &value)?;
    Ok(k.finish())
}

/// Runs the text on matrices of several sizes: clean, and right.
fn judge(text: &str, tile: usize, most: usize) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    for (rows, cols) in [(4, 128), (3, 64), (5, 63), (1, 1), (2, 300), (9, 2)] {
        if cols > most {
            continue;
        }
        let mut memory = GlobalMemory::new();
        let numbers: Vec<f32> = (0..rows * cols).map(|i| (i * 7 % 31) as f32).collect();
        let bytes = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut place = |data: &[u8]| {
            let at = memory.alloc(data.len() as u64, 256).expect("memory");
            memory.write(at, data).expect("allocated");
            at
        };
        let (x, y) = (place(&bytes(&numbers)), place(&vec![255; 4 * rows * cols]));
        let z = place(&vec![255; 4 * rows]);
        let launch = Launch {
            grid: [rows.div_ceil(tile) as u32, 1, 1],
            block: [64, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            args: vec![
                Arg::U32(rows as u32),
                Arg::U32(cols as u32),
                Arg::Ptr(x),
                Arg::Ptr(y),
                Arg::Ptr(z),
            ],
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 18,
            global_races: true,
            ..Options::default()
        };
        let report = match run(&module, "centred", &launch, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(e.to_string()),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{rows}x{cols}: {finding:?}"));
        }
        let sums: Vec<f32> = numbers.chunks(cols).map(|row| row.iter().sum()).collect();
        let values = (0..rows * cols).map(|i| numbers[i] + sums[i / cols]);
        let values: Vec<f32> = values.collect();
        for (at, wanted, what) in [(y, values, "y"), (z, sums, "z")] {
            if memory.read(at, 4 * wanted.len()).expect("allocated") != bytes(&wanted) {
                return Some(format!("{rows}x{cols}: {what} is wrong"));
            }
        }
    }
    None
}

#[test]
fn mutants_of_kernels_on_rows() {
    let mut all = 0;
    for (name, entry, tile, most) in [
        ("rows in a loop", centred(), 1, MOST as usize),
        ("rows turned around", turned(), 4, 64),
    ] {
        let subject = Subject {
            name: name.to_owned(),
            entry: entry.expect("it is built"),
            others: Vec::new(),
            judge: Box::new(move |text| judge(text, tile, most)),
        };
        let (made, refuted) = judged(&subject, 30);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 400, "{all} mutants");
}
