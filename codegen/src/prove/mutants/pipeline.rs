//! Mutants of a pipeline of two rings: y is the sum of the tiles of x and of z, 16 columns each, each tile read by other threads than those that copied it.

use layout_core::{Layout, TiledCopy, atoms};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

use super::{Subject, judged};
use crate::index::Expr;
use crate::ir::{Axis, Element, Entry, Kernel};
use crate::pipeline::{Ring, Staged};
use crate::view::{Use, View, ViewError};

/// The kernel for rings of so many stages.
fn sums(stages: [i64; 2]) -> Result<Entry, ViewError> {
    let mut k = Kernel::new("sums", 64);
    let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    let (width, zero) = (k.pool.constant(16), k.pool.constant(0));
    let [x, z] = ["x", "z"].map(|name| k.input(name, Element::F32, &[rows, cols]));
    let y = k.output("y", Element::F32, &[rows, width]);
    let (i, thread) = (k.tiles(Axis::X, rows, 16)?, k.thread());
    let copy = TiledCopy::new(
        atoms::CP_ASYNC_16.recast(32)?,
        &Layout::flat(&[16, 4], &[4, 1])?,
        &Layout::flat(&[1, 4], &[0, 1])?,
    )?;
    let lanes = Layout::flat(&[16, 4], &[1, 16])?;
    let reads = Layout::tuple(&[lanes, Layout::mode(4, 64)?])?;
    let uses = [Use::target(&copy), Use::load(&reads)];
    let from = |of: View| {
        move |k: &mut Kernel, [to]: [View; 1], step: Expr| {
            let from = of.tile(k, &[16, 16], &[i, step])?;
            let from = from.partition_s(k, &copy, thread)?;
            let to = to.partition_d(k, &copy, thread)?;
            k.copy(&from, &to)
        }
    };
    let [xs, zs] = ["xs", "zs"].map(|name| Staged::new(name, Element::F32, [16, 16], &uses));
    let xs = k.ring(stages[0], [xs], from(x))?;
    let zs = k.ring(stages[1], [zs], from(z))?;
    let to = y.tile(&mut k, &[16, 16], &[i, zero])?;
    let to = to.partition(&mut k, &reads, thread)?;
    let sums = k.fragment_of(&to, 0.0)?;
    let round = k.pool.constant(15);
    let end = k.pool.add(cols, round);
    let steps = k.pool.shr(end, 4);
    k.pipeline(&[&xs, &zs], steps, |k, step| {
        let mut add = |k: &mut Kernel, ring: &Ring<'_, 1>| {
            let [tile] = step.arrived(k, ring)?;
            let tile = tile.partition(k, &reads, thread)?;
            let values = k.load_fragment(&tile)?;
            sums.update_with(k, &values, |k, sum, value| sum.add(k, value))
        };
        add(k, &xs)?;
        add(k, &zs)
    })?;
    k.store_fragment(&to, &sums)?;
    Ok(k.finish())
}

/// Runs the text on matrices of several sizes: clean, and right in every byte.
fn judge(text: &str) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    for (rows, cols) in [(16, 64), (17, 112), (5, 7), (1, 33), (3, 16), (4, 0)] {
        let mut memory = GlobalMemory::new();
        // Small integers are exact.
        let of = |seed: usize| (0..rows * cols).map(move |i| ((i * seed + i / 7) % 11) as f32);
        let mut place = |values: Vec<f32>, n: usize| {
            let at = memory.alloc(4 * n.max(1) as u64, 256).expect("memory");
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            memory.write(at, &bytes).expect("allocated");
            at
        };
        let x = place(of(3).collect(), rows * cols);
        let z = place(of(5).collect(), rows * cols);
        let y = place(Vec::new(), rows * 16);
        let launch = Launch {
            grid: [rows.div_ceil(16) as u32, 1, 1],
            block: [64, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            args: vec![
                Arg::U32(rows as u32),
                Arg::U32(cols as u32),
                Arg::Ptr(x),
                Arg::Ptr(z),
                Arg::Ptr(y),
            ],
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 18,
            global_races: true,
            ..Options::default()
        };
        let report = match run(&module, "sums", &launch, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(e.to_string()),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{rows}x{cols}: {finding:?}"));
        }
        let mut wanted = vec![0.0f32; rows * 16];
        for (i, (x, z)) in of(3).zip(of(5)).enumerate() {
            wanted[i / cols * 16 + i % cols % 16] += x + z;
        }
        let out = memory.read(y, 4 * rows * 16).expect("allocated");
        for (i, (bytes, wanted)) in out.chunks(4).zip(&wanted).enumerate() {
            if bytes != wanted.to_le_bytes() {
                return Some(format!("{rows}x{cols}: element {i} is wrong"));
            }
        }
    }
    None
}

#[test]
fn mutants_of_a_pipeline() {
    let mut all = 0;
    for stages in [[1, 1], [2, 2], [2, 3]] {
        let subject = Subject {
            name: format!("a pipeline of {} and {} stages", stages[0], stages[1]),
            entry: sums(stages).expect("it is built"),
            others: Vec::new(),
            judge: Box::new(judge),
        };
        let (made, refuted) = judged(&subject, 26);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 1000, "{all} mutants");
}
