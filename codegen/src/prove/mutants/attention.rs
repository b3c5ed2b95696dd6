//! Mutants of the frame of attention: o = mask(q·kᵀ)·v with two products, two rings, a causal mask on some tiles, and the result of the first product as an
//! operand of the second. The weights are the scores themselves, so that small integers are exact.

use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

use super::{Subject, judged};
use crate::index::Expr;
use crate::ir::{Axis, Cmp, Element, Entry, Kernel};
use crate::pipeline::Staged;
use crate::value::Predicate;
use crate::view::{Use, View, ViewError};

/// Elements of a head.
const HEAD: i64 = 16;

/// Queries of a block, and keys of a step.
const TILE: i64 = 32;

/// The kernel, with so many stages of both rings.
fn attention(stages: i64) -> Result<Entry, ViewError> {
    let mut k = Kernel::new("attention", 64);
    let (queries, keys) = (k.size("queries", 1 << 20), k.size("keys", 1 << 20));
    let (zero, width, thread) = (k.pool.constant(0), k.pool.constant(HEAD), k.thread());
    let q = k.input("q", Element::F16, &[queries, width]);
    let [key, value] = ["k", "v"].map(|name| k.input(name, Element::F16, &[keys, width]));
    let o = k.output("o", Element::F32, &[queries, width]);
    let i = k.tiles_from_last(Axis::X, queries, TILE)?;

    let [rows, side] = [32, 16].map(|extent| Layout::mode(extent, 1));
    let side = side?;
    let warps = Layout::flat(&[2, 1, 1], &[1, 0, 0])?;
    let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &warps, &[rows?, side, side])?;
    let read_q = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let read_k = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::B)?;
    let read_v = TiledCopy::for_operand(atoms::LDMATRIX_X4_TRANS, &mma, Operand::B)?;
    let write = TiledCopy::new(
        atoms::CP_ASYNC_16.recast(16)?,
        &Layout::flat(&[32, 2], &[2, 1])?,
        &Layout::flat(&[1, 8], &[0, 1])?,
    )?;
    let uses = [Use::target(&write), Use::source(&read_q)];
    let q_tile = k.shared_for("q_tile", Element::F16, [TILE, HEAD], &uses)?;
    let from = q.tile(&mut k, &[TILE, HEAD], &[i, zero])?;
    let from = from.partition_s(&mut k, &write, thread)?;
    let to = q_tile.partition_d(&mut k, &write, thread)?;
    k.copy(&from, &to)?;
    let fill = |of: View| {
        move |k: &mut Kernel, [to]: [View; 1], t: Expr| {
            let from = of.tile(k, &[TILE, HEAD], &[t, zero])?;
            let from = from.partition_s(k, &write, thread)?;
            let to = to.partition_d(k, &write, thread)?;
            k.copy(&from, &to)
        }
    };
    let uses = [Use::target(&write), Use::source(&read_k)];
    let tile = [Staged::new("k_tile", Element::F16, [TILE, HEAD], &uses)];
    let key_ring = k.ring(stages, tile, fill(key))?;
    let uses = [Use::target(&write), Use::source(&read_v).transposed()];
    let tile = [Staged::new("v_tile", Element::F16, [TILE, HEAD], &uses)];
    let value_ring = k.ring(stages, tile, fill(value))?;

    let [first, last] = [1, TILE].map(|row| k.pool.linear(&[(TILE, i)], row));
    let (end, seen) = (k.smaller(keys, last), k.smaller(keys, first));
    let steps = k.tiles_in(end, TILE)?;
    let sums = k.accumulators(&mma, [TILE, HEAD], thread)?;
    k.pipeline(&[&key_ring, &value_ring], steps, |k, step| {
        let [tile] = step.arrived(k, &key_ring)?;
        let scores = k.accumulators(&mma, [TILE, TILE], thread)?;
        let a = q_tile.partition_s(k, &read_q, thread)?;
        let b = tile.partition_s(k, &read_k, thread)?;
        let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
        k.gemm(&mma, &a, &b, &scores)?;

        let t = step.index();
        let behind = k.pool.linear(&[(TILE, t)], TILE);
        let partly = Predicate::of(k, behind, Cmp::Gt, seen);
        k.when(partly, |k| {
            let masked = scores.map_at(k, |k, x, [row, column]| {
                let row = k.pool.linear(&[(TILE, i), (1, row)], 0);
                let key = k.pool.linear(&[(TILE, t), (1, column)], 0);
                Predicate::of(k, key, Cmp::Le, row).select(k, x, 0.0)
            })?;
            scores.assign(k, &masked)
        })?;
        let weights = scores.convert(k, Element::F16)?;
        let [tile] = step.arrived(k, &value_ring)?;
        for (part, a) in (0..).zip(weights.split(1, 2)?) {
            let at = [k.pool.constant(part), zero];
            let b = tile.tile(k, &[16, HEAD], &at)?.transposed();
            let b = b.partition_s(k, &read_v, thread)?;
            let b = k.load_fragment(&b)?;
            k.gemm(&mma, &a, &b, &sums)?;
        }
        Ok::<(), ViewError>(())
    })?;
    let o = o.tile(&mut k, &[TILE, HEAD], &[i, zero])?;
    let o = o.partition_c(&mut k, &mma, thread)?;
    k.store_fragment(&o.vectors(&k, 2)?, &sums)?;
    Ok(k.finish())
}

/// −1, 0 or 1 in binary16.
fn binary16(x: f32) -> u16 {
    let one = 15 << 10;
    if x == 0.0 {
        0
    } else if x > 0.0 {
        one
    } else {
        one | 1 << 15
    }
}

/// Runs the text on several numbers of queries and keys: clean, and right in every bit.
fn judge(text: &str) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    let d = HEAD as usize;
    for (queries, keys) in [(32, 32), (70, 100), (100, 33), (5, 1), (3, 0)] {
        let mut memory = GlobalMemory::new();
        let of = |n: usize, seed: usize| -> Vec<f32> {
            let number = |i: usize| ((i * seed + i / 7) % 3) as f32 - 1.0;
            (0..n * d).map(number).collect()
        };
        let (q, k, v) = (of(queries, 5), of(keys, 7), of(keys, 11));
        let mut place = |values: &[f32]| {
            let bytes = values.iter().flat_map(|&x| binary16(x).to_le_bytes());
            let bytes: Vec<u8> = bytes.collect();
            let at = memory
                .alloc(bytes.len().max(1) as u64, 256)
                .expect("memory");
            memory.write(at, &bytes).expect("allocated");
            Arg::Ptr(at)
        };
        let inputs = [place(&q), place(&k), place(&v)];
        let o = memory.alloc(4 * (queries * d) as u64, 256).expect("memory");
        let [q_at, k_at, v_at] = inputs;
        let sizes = [queries, keys].map(|n| Arg::U32(n as u32));
        let [queries_arg, keys_arg] = sizes;
        let launch = Launch {
            grid: [queries.div_ceil(TILE as usize) as u32, 1, 1],
            block: [64, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            args: vec![queries_arg, keys_arg, q_at, k_at, v_at, Arg::Ptr(o)],
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 18,
            global_races: true,
            ..Options::default()
        };
        let report = match run(&module, "attention", &launch, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(e.to_string()),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{queries}x{keys}: {finding:?}"));
        }
        let mut wanted = vec![0.0f32; queries * d];
        for row in 0..queries {
            for key in 0..keys.min(row + 1) {
                let score: f32 = (0..d).map(|c| q[row * d + c] * k[key * d + c]).sum();
                for c in 0..d {
                    wanted[row * d + c] += score * v[key * d + c];
                }
            }
        }
        let out = memory.read(o, 4 * queries * d).expect("allocated");
        for (i, (bytes, wanted)) in out.chunks(4).zip(&wanted).enumerate() {
            if f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).to_bits()
                != (wanted + 0.0).to_bits()
            {
                return Some(format!("{queries}x{keys}: element {i} is wrong"));
            }
        }
    }
    None
}

#[test]
fn mutants_of_attention() {
    let mut all = 0;
    for stages in [1, 2] {
        let subject = Subject {
            name: format!("attention, stages: {stages}"),
            entry: attention(stages).expect("it is built"),
            others: Vec::new(),
            judge: Box::new(judge),
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
