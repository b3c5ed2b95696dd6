//! Mutants of a transpose through shared memory.

use layout_core::{Layout, Swizzled};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

use super::{Subject, judged};
use crate::ir::{Axis, Element, Entry, Kernel};
use crate::view::ViewError;

fn transpose(element: Element, vector: i64) -> Result<Entry, ViewError> {
    let mut k = Kernel::new("transpose", 256);
    let (rows, cols) = (k.size("rows", 1 << 30), k.size("cols", 1 << 30));
    let from = k.input("from", element, &[rows, cols]);
    let to = k.output("to", element, &[cols, rows]);
    let (x, y) = (k.tiles(Axis::X, cols, 64)?, k.tiles(Axis::Y, rows, 64)?);
    let padded = Layout::flat(&[64, 64], &[65, 1])?;
    let shared = k.shared("tile", element, &Swizzled::from(padded))?;
    let thread = k.thread();
    let v = vector;
    let threads = Layout::tuple(&[
        Layout::flat(&[64 / v, 4 * v], &[64 * v, 1])?,
        Layout::flat(&[v, 16 / v], &[64, 4 * v])?,
    ])?;
    let source = from.tile(&mut k, &[64, 64], &[y, x])?;
    let source = source.partition(&mut k, &threads, thread)?.vectors(&k, v)?;
    let there = shared.partition(&mut k, &threads, thread)?;
    k.copy(&source, &there)?;
    k.barrier();
    let turned = shared.transposed().partition(&mut k, &threads, thread)?;
    let target = to.tile(&mut k, &[64, 64], &[x, y])?;
    let target = target.partition(&mut k, &threads, thread)?.vectors(&k, v)?;
    k.copy(&turned, &target)?;
    Ok(k.finish())
}

/// Runs the text on matrices of several sizes: clean, and right in every byte.
fn judge(text: &str, bytes: usize) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    for (rows, cols) in [(64, 64), (72, 132), (67, 65), (1, 130), (130, 1)] {
        let mut memory = GlobalMemory::new();
        let n = rows * cols * bytes;
        let data: Vec<u8> = (0..n).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut place = || {
            let at = memory.alloc(n as u64, 256).expect("memory");
            memory.write(at, &data).expect("allocated");
            at
        };
        let (from, to) = (place(), place());
        let launch = Launch {
            grid: [cols.div_ceil(64) as u32, rows.div_ceil(64) as u32, 1],
            block: [256, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            args: vec![
                Arg::U32(rows as u32),
                Arg::U32(cols as u32),
                Arg::Ptr(from),
                Arg::Ptr(to),
            ],
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 18,
            global_races: true,
            ..Options::default()
        };
        let report = match run(&module, "transpose", &launch, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(e.to_string()),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{rows}x{cols}: {finding:?}"));
        }
        let out = memory.read(to, n).expect("allocated");
        for r in 0..rows {
            for c in 0..cols {
                let (a, b) = ((r * cols + c) * bytes, (c * rows + r) * bytes);
                if data[a..a + bytes] != out[b..b + bytes] {
                    return Some(format!("{rows}x{cols}: element ({r}, {c}) is wrong"));
                }
            }
        }
    }
    None
}

#[test]
fn mutants_of_the_transpose() {
    let mut all = 0;
    for (element, vector) in [
        (Element::F32, 1),
        (Element::F32, 4),
        (Element::F16, 2),
        (Element::S8, 4),
    ] {
        let bytes = element.bytes() as usize;
        let subject = Subject {
            name: format!("transpose of {element}, vectors of {vector}"),
            entry: transpose(element, vector).expect("it is built"),
            others: Vec::new(),
            judge: Box::new(move |text| judge(text, bytes)),
        };
        let (made, refuted) = judged(&subject, 26);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 1200, "{all} mutants");
}
