//! Attention, forward: o ← softmax(q·kᵀ/√d)·v for every head, without ever writing the scores, and the logarithm of each row's sum.
//!
//! ```text
//! q: 128 queries ──cp.async──▶ shared, once ──ldmatrix──▶ A ─┐
//! k: tile t of 64 keys ──cp.async──▶ ring ──ldmatrix──▶ B ───┴▶ mma ──▶ scores, 128 x 64, in registers
//!                                        scores ──mask, maximum, 2^x──▶ weights ──round to 16 bits──▶ A ─┐
//! v: tile t of 64 keys ──cp.async──▶ ring ──ldmatrix.trans──▶ B ─────────────────────────────────────────┴▶ mma ──▶ o, 128 x d
//! ```
//!
//! A warp owns whole rows, so that maxima and sums cross four lanes at most. The fragment of the scores, rounded, *is* the fragment that the second
//! product wants: the layouts say so, and no data moves. When the maximum of a row grows, what was summed so far is scaled down (the online softmax of Milakov
//! and Gimelshein 2018; the order of the loops is that of `FlashAttention` 2, Dao 2023). The copy of one operand is under way while the other is computed with.
//!
//! Tensors are contiguous: q and o are batch × heads × queries × d, k and v are batch × kv-heads × keys × d; `heads / kv-heads` neighbouring heads share
//! their keys. To the kernel that is (batch · kv-heads) × group × queries × d, and no index is divided. `--causal` lets query i see keys 0 to i, as
//! `is_causal` of `PyTorch` does: aligned at the top left.
//!
//! A row without keys, or whose scores are all −∞, is 0 and its logarithm −∞. A NaN in a query, or in a key or a value that it sees, makes its row NaN, as does a
//! score of +∞. Weights of 0 are multiplied like others: an infinite or NaN value in a tile that a row looks into shows, even behind the mask.
//!
//! `cargo run --release --example attention -- --dtype bf16 --heads 8 --kv-heads 2 --queries 300 --keys 500 --causal`

pub(crate) mod common;

use std::error::Error;
use std::f32::consts::{LN_2, LOG2_E};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use half::{bf16, f16};
use serde_json::Value;
use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::Staged;
use tilewright::codegen::value::{F32, Predicate};
use tilewright::codegen::view::{Combine, Use, View, ViewError};
use tilewright::host::{Arg, Outcome};
use tilewright::{Layout, Operand, TiledCopy, TiledMma, atoms};

use common::{Failure, Flags, Number, Report};

/// Queries and keys of a head at most: addresses are proven not to overflow up to here.
pub(crate) const MOST: i64 = 1 << 24;

/// Heads that share their keys at most, and sets of them: axes y and z of the grid.
pub(crate) const HEADS: [i64; 2] = [1 << 10, 65_535];

/// A kernel, or what cannot be proven of it.
type Built = Result<Proven, Box<dyn Error>>;

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    /// f16 or bf16.
    pub(crate) element: Element,
    /// Elements of a head: 64 or 128.
    pub(crate) d: i64,
    /// Query i sees keys 0 to i.
    pub(crate) causal: bool,
}

/// How a block computes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Queries of a block.
    pub(crate) queries: i64,
    /// Keys of a step.
    pub(crate) keys: i64,
    /// Warps of a block: each has 16 queries, or several times 16.
    pub(crate) warps: i64,
    /// Stages of the rings of keys and of values.
    pub(crate) stages: i64,
}

/// The kernel.
pub(crate) fn attention(what: Attention, how: Schedule, arch: Arch) -> Built {
    let Attention { element, d, causal } = what;
    let (m, n, threads) = (how.queries, how.keys, 32 * how.warps);
    let mut k = Kernel::new(&format!("attention_{element}_{d}"), threads as u32);
    let (sets, group) = (k.size("sets", HEADS[1]), k.size("group", HEADS[0]));
    let (queries, keys) = (k.size("queries", MOST), k.size("keys", MOST));
    let (zero, width, thread) = (k.constant(0), k.constant(d), k.thread());
    let q = k.input("q", element, &[sets, group, queries, width]);
    let [key, value] = ["k", "v"].map(|name| k.input(name, element, &[sets, keys, width]));
    let o = k.output("o", element, &[sets, group, queries, width]);
    let lse = k.output("lse", Element::F32, &[sets, group, queries]);

    // Block (i, member, set) has m queries of one head. Causal rows grow longer: the longest first.
    let i = if causal {
        k.tiles_from_last(Axis::X, queries, m)?
    } else {
        k.tiles(Axis::X, queries, m)?
    };
    let (member, set) = (k.tiles(Axis::Y, group, 1)?, k.tiles(Axis::Z, sets, 1)?);

    // Warps side by side along the queries; two atoms along keys, whose B is one ldmatrix.
    let warps = Layout::flat(&[how.warps, 1, 1], &[1, 0, 0])?;
    let [rows, side] = [16 * how.warps, 16].map(|extent| Layout::mode(extent, 1));
    let mma = TiledMma::with_tile(what.product(), &warps, &[rows?, side?, side?])?;
    let read_q = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let read_k = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::B)?;
    let read_v = TiledCopy::for_operand(atoms::LDMATRIX_X4_TRANS, &mma, Operand::B)?;
    // A thread copies eight elements of a row.
    let eights = Layout::flat(&[threads * 8 / d, d / 8], &[d / 8, 1])?;
    let eight = Layout::flat(&[1, 8], &[0, 1])?;
    let write = TiledCopy::new(atoms::CP_ASYNC_16.recast(16)?, &eights, &eight)?;

    // The queries arrive with the first keys: their copies belong to the same group.
    let uses = [Use::target(&write), Use::source(&read_q)];
    let q_tile = k.shared_for("q_tile", element, [m, d], &uses)?;
    let q = q.slice(&mut k, &[set, member])?;
    let from = q.tile(&mut k, &[m, d], &[i, zero])?;
    let from = from.partition_s(&mut k, &write, thread)?;
    let to = q_tile.partition_d(&mut k, &write, thread)?;
    k.copy(&from, &to)?;
    let fill = |of: View| {
        move |k: &mut Kernel, [to]: [View; 1], t| {
            let from = of.tile(k, &[n, d], &[t, zero])?;
            let from = from.partition_s(k, &write, thread)?;
            let to = to.partition_d(k, &write, thread)?;
            k.copy(&from, &to)
        }
    };
    let key = fill(key.slice(&mut k, &[set])?);
    let uses = [Use::target(&write), Use::source(&read_k)];
    let tile = [Staged::new("k_tile", element, [n, d], &uses)];
    let key_ring = k.ring(how.stages, tile, key)?;
    let value = fill(value.slice(&mut k, &[set])?);
    let uses = [Use::target(&write), Use::source(&read_v).transposed()];
    let tile = [Staged::new("v_tile", element, [n, d], &uses)];
    let value_ring = k.ring(how.stages, tile, value)?;

    // Some query of this block sees the keys before `end`, all of them those before `seen`.
    let (mut end, mut seen) = (keys, keys);
    if causal {
        let [first, last] = [1, m].map(|row| k.linear(&[(m, i)], row));
        (end, seen) = (k.smaller(keys, last), k.smaller(keys, first));
    }
    let steps = k.tiles_in(end, n)?;

    // Scores are scaled to base 2; the sum of a row is kept in the parts of four lanes.
    let scale = LOG2_E / (d as f32).sqrt();
    let weight = |k: &mut Kernel, x: F32, shift: F32| x.fma(k, scale, shift).exp2(k);
    let sums = k.accumulators(&mma, [m, d], thread)?;
    let total = sums.fold(&mut k, 1, Combine::Add)?;
    let max = sums.reduce(&mut k, 1, Combine::Max)?;
    max.update(&mut k, |_, _| f32::NEG_INFINITY.into())?;
    k.pipeline(&[&key_ring, &value_ring], steps, |k, step| {
        let [tile] = step.arrived(k, &key_ring)?;
        let scores = k.accumulators(&mma, [m, n], thread)?;
        for part in 0..d / 16 {
            let at = [zero, k.constant(part)];
            let (a, b) = (q_tile.tile(k, &[m, 16], &at)?, tile.tile(k, &[n, 16], &at)?);
            let a = a.partition_s(k, &read_q, thread)?;
            let b = b.partition_s(k, &read_k, thread)?;
            let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
            k.gemm(&mma, &a, &b, &scores)?;
        }

        // Most tiles are seen whole.
        let t = step.index();
        let behind = k.linear(&[(n, t)], n);
        let partly = Predicate::of(k, behind, Cmp::Gt, seen);
        k.when(partly, |k| {
            let masked = scores.map_at(k, |k, x, [row, column]| {
                let row = k.linear(&[(m, i), (1, row)], 0);
                let key = k.linear(&[(n, t), (1, column)], 0);
                let mut sees = Predicate::of(k, key, Cmp::Lt, keys);
                if causal {
                    let not_later = Predicate::of(k, key, Cmp::Le, row);
                    sees = sees.and(k, not_later);
                }
                sees.select(k, x, f32::NEG_INFINITY)
            })?;
            scores.assign(k, &masked)
        })?;

        let here = scores.reduce(k, 1, Combine::Max)?;
        let new = here.zip(k, &max, |k, a, b| a.max(k, b))?;
        // −max·scale; 0 where nothing is seen yet, so that −∞ − −∞ does not arise.
        let shift = new.map(k, |k, max| {
            let (none, shift) = (max.eq(k, f32::NEG_INFINITY), max.mul(k, -scale));
            none.select(k, 0.0.into(), shift)
        })?;
        let shrink = max.zip(k, &shift, weight)?;
        max.assign(k, &new)?;
        let weights = scores.zip(k, &shift, weight)?;
        let more = weights.fold(k, 1, Combine::Add)?;
        total.update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;
        total.update_with(k, &more, |k, sum, more| sum.add(k, more))?;
        sums.update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;

        let weights = weights.convert(k, element)?;
        let [tile] = step.arrived(k, &value_ring)?;
        for (part, a) in (0..).zip(weights.split(1, n as usize / 16)?) {
            let at = [k.constant(part), zero];
            let b = tile.tile(k, &[16, d], &at)?.transposed();
            let b = b.partition_s(k, &read_v, thread)?;
            let b = k.load_fragment(&b)?;
            k.gemm(&mma, &a, &b, &sums)?;
        }
        Ok::<(), ViewError>(())
    })?;

    let total = total.reduce(&mut k, 1, Combine::Add)?;
    let inverse = total.map(&mut k, |k, sum| {
        let (none, inverse) = (sum.eq(k, 0.0), sum.reciprocal(k));
        none.select(k, 0.0.into(), inverse)
    })?;
    sums.update_with(&mut k, &inverse, |k, sum, inverse| sum.mul(k, inverse))?;
    let logarithm = max.zip(&mut k, &total, |k, max, sum| {
        let log2 = sum.log2(k);
        max.fma(k, scale, log2).mul(k, LN_2)
    })?;
    let o = o.slice(&mut k, &[set, member])?;
    let o = o.tile(&mut k, &[m, d], &[i, zero])?;
    let lse = lse.slice(&mut k, &[set, member])?;
    let lse = lse.tile(&mut k, &[m], &[i])?;
    let o = o.partition_c(&mut k, &mma, thread)?;
    let lse = o.along(&mut k, 0, &lse)?;
    k.store_fragment(&lse, &logarithm)?;
    let rounded = sums.convert(&mut k, element)?;
    k.store_fragment(&o.vectors(&k, 2)?, &rounded)?;
    Ok(k.build(arch)?)
}

impl Attention {
    /// The matrix instruction.
    fn product(&self) -> atoms::MmaAtom {
        match self.element {
            Element::F16 => atoms::MMA_M16N8K16_F16,
            _ => atoms::MMA_M16N8K16_BF16,
        }
    }
}

impl Default for Schedule {
    /// The fastest on an H100, of those that need no local memory.
    fn default() -> Self {
        Self {
            queries: 128,
            keys: 64,
            warps: 4,
            stages: 1,
        }
    }
}

/// Extents of the tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Batch · kv-heads.
    pub(crate) sets: usize,
    /// Heads that share their keys.
    pub(crate) group: usize,
    /// Queries of a head.
    pub(crate) queries: usize,
    /// Keys of a head.
    pub(crate) keys: usize,
}

/// Runs the kernel by `launch`: o, then the logarithms.
pub(crate) fn outputs<'a, T: Number>(
    what: Attention,
    sizes: Sizes,
    inputs: [&'a [T]; 3],
    launch: impl FnOnce(Vec<(&'static str, Arg<'a>)>) -> Result<Outcome, Failure>,
) -> Result<(Outcome, Vec<T>, Vec<f32>), Failure> {
    let Sizes {
        sets,
        group,
        queries,
        keys,
    } = sizes;
    let rows = sets * group * queries;
    let [q, k, v] = inputs;
    let outcome = launch(vec![
        ("sets", Arg::from(sets as u32)),
        ("group", Arg::from(group as u32)),
        ("queries", Arg::from(queries as u32)),
        ("keys", Arg::from(keys as u32)),
        ("q", Arg::input(q)),
        ("k", Arg::input(k)),
        ("v", Arg::input(v)),
        ("o", Arg::output::<T>(rows * what.d as usize)),
        ("lse", Arg::output::<f32>(rows)),
    ])?;
    let (o, lse) = (outcome.get("o")?, outcome.get("lse")?);
    Ok((outcome, o, lse))
}

/// Attention of one row in f64: the row, the sums of the weights times |v|, and the logarithm.
pub(crate) fn reference<T: Number>(
    what: Attention,
    sizes: Sizes,
    [q, k, v]: [&[T]; 3],
    row: usize,
) -> (Vec<f64>, Vec<f64>, f64) {
    let d = what.d as usize;
    let (head, query) = (row / sizes.queries, row % sizes.queries);
    let first = head / sizes.group * sizes.keys;
    let seen = if what.causal {
        sizes.keys.min(query + 1)
    } else {
        sizes.keys
    };
    let at = |x: &[T], row: usize, c: usize| -> f64 { x[row * d + c].into() };
    let score = |key: usize| {
        let terms = (0..d).map(|c| at(q, row, c) * at(k, first + key, c));
        terms.sum::<f64>() / (d as f64).sqrt()
    };
    let scores: Vec<f64> = (0..seen).map(score).collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    let (mut o, mut size) = (vec![0.0; d], vec![0.0; d]);
    for (key, weight) in weights.iter().enumerate() {
        for c in 0..d {
            let x = at(v, first + key, c) * weight / total;
            o[c] += x;
            size[c] += x.abs();
        }
    }
    (o, size, max + total.ln())
}

/// The largest error of some rows: absolute, and in units of what rounding allows.
///
/// With u the unit of the 16-bit type, weights are rounded (u of Σ w·|v|), then the result (u of it); scores are summed in f32, and their error goes into the
/// exponent (2⁻¹³ of the same sum covers heads of 128 elements below 1). Weights of f16 below 2⁻¹⁴ have an absolute error of 2⁻²⁵.
pub(crate) fn error<T: Number>(
    what: Attention,
    sizes: Sizes,
    inputs: [&[T]; 3],
    (o, lse): (&[T], &[f32]),
    rows: impl Iterator<Item = usize>,
) -> (f64, f64) {
    let tiny = match what.element {
        Element::F16 => f64::powi(0.5, 25),
        _ => 0.0,
    };
    let (d, mut absolute, mut worst) = (what.d as usize, 0.0f64, 0.0f64);
    let mut judge = |error: f64, allowed: f64| {
        let error = if error.is_nan() { f64::INFINITY } else { error };
        absolute = absolute.max(error);
        worst = worst.max(error / allowed);
    };
    for row in rows {
        let (wanted, size, logarithm) = reference(what, sizes, inputs, row);
        for c in 0..d {
            let here: f64 = o[row * d + c].into();
            let rounding = T::ROUNDOFF * (size[c] + wanted[c].abs()) + f64::powi(0.5, 13) * size[c];
            judge(
                (here - wanted[c]).abs(),
                rounding + tiny * (1 + sizes.keys) as f64,
            );
        }
        let there = f64::from(lse[row]);
        let same = there.to_bits() == logarithm.to_bits(); // −∞, too
        judge(
            if same { 0.0 } else { (there - logarithm).abs() },
            1e-4 * (1.0 + logarithm.abs()),
        );
    }
    (absolute, worst)
}

/// Attention by a kernel of one's own, proven, and checked on some rows
#[derive(Parser, Debug)]
#[command(name = "attention")]
pub(crate) struct Command {
    /// Element type
    #[arg(long, value_enum, default_value = "f16")]
    dtype: DataType,
    /// Sequences
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, value_parser = common::size)]
    batch: u64,
    /// Heads of queries
    #[arg(long, default_value_t = 4, allow_negative_numbers = true, value_parser = common::size)]
    heads: u64,
    /// Heads of keys and values, a divisor of the heads; as many if it is not given
    #[arg(long, allow_negative_numbers = true, value_parser = common::size)]
    kv_heads: Option<u64>,
    /// Queries of a head
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = common::size)]
    queries: u64,
    /// Keys of a head
    #[arg(long, default_value_t = 300, allow_negative_numbers = true, value_parser = common::size)]
    keys: u64,
    /// Elements of a head: 64 or 128
    #[arg(long, default_value = "64", value_parser = ["64", "128"])]
    head_dim: String,
    /// Query i sees keys 0 to i
    #[arg(long)]
    causal: bool,
    /// Queries of a block
    #[arg(long, value_parser = clap::value_parser!(u16).range(16..=256))]
    tile_queries: Option<u16>,
    /// Keys of a step
    #[arg(long, value_parser = clap::value_parser!(u16).range(16..=256))]
    tile_keys: Option<u16>,
    /// Warps of a block
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    warps: Option<u16>,
    /// Stages of the rings of keys and values
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=8))]
    stages: Option<u16>,
    #[command(flatten)]
    flags: Flags,
}

/// The element types.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DataType {
    F16,
    Bf16,
}

/// Multiplications of the check at most: of longer problems, rows are checked at even distances.
const CHECKED: usize = 1 << 31;

impl Command {
    /// Builds the kernel, runs it and reports.
    ///
    /// # Errors
    ///
    /// Heads that kv-heads do not divide, sizes that the kernel was not proven for, and whatever keeps it from running.
    pub(crate) fn run(&self) -> Result<Value, Failure> {
        match self.dtype {
            DataType::F16 => self.run_in::<f16>(Element::F16),
            DataType::Bf16 => self.run_in::<bf16>(Element::Bf16),
        }
    }

    fn run_in<T: Number>(&self, element: Element) -> Result<Value, Failure> {
        let d = if self.head_dim == "64" { 64 } else { 128 };
        let what = Attention {
            element,
            d,
            causal: self.causal,
        };
        let mut how = Schedule::default();
        let asked = [self.tile_queries, self.tile_keys, self.warps, self.stages];
        let parts = [
            &mut how.queries,
            &mut how.keys,
            &mut how.warps,
            &mut how.stages,
        ];
        for (part, asked) in parts.into_iter().zip(asked) {
            *part = asked.map_or(*part, i64::from);
        }
        let kv_heads = self.kv_heads.unwrap_or(self.heads);
        let group = match (self.heads, kv_heads) {
            (0, 0) => 1,
            (heads, kv) if kv > 0 && heads % kv == 0 => heads / kv,
            (heads, kv) => {
                let message = format!("{kv} kv-heads do not divide {heads} heads: take a divisor");
                return Err(Failure {
                    usage: true,
                    ..Failure::new("kv_heads", message)
                });
            }
        };
        let sets = self.batch.saturating_mul(kv_heads);
        let kernel = attention(what, how, Arch(80)).map_err(Failure::unproven)?;
        let named = [
            common::extent("sets", sets),
            common::extent("group", group),
            common::extent("queries", self.queries),
            common::extent("keys", self.keys),
        ];
        let mut report = Report::new(&kernel, &self.flags, &named)?;
        if self.flags.runs() {
            let heads = sets.saturating_mul(group);
            // Four tensors on the host, and once more on the device.
            let longest = self.queries.max(self.keys);
            common::fits(&[heads, longest, d as u64], 16)?;
            let [sets, group, queries, keys] =
                [sets, group, self.queries, self.keys].map(|n| n as usize);
            let sizes = Sizes {
                sets,
                group,
                queries,
                keys,
            };
            let (rows, d) = (sets * group * queries, d as usize);
            let q = T::random(rows * d, self.flags.seed);
            let [k, v] = [1, 2].map(|more| T::random(sets * keys * d, self.flags.seed + more));
            let inputs = [&q[..], &k[..], &v[..]];
            let launch = |args| self.flags.launch(&kernel, args);
            let (outcome, o, lse) = outputs(what, sizes, inputs, launch)?;
            let few = (CHECKED / (2 * keys * d).max(1)).max(1);
            let checked = (0..rows).step_by(rows.div_ceil(few).max(1));
            let (error, of_allowed) = error(what, sizes, inputs, (&o, &lse), checked);
            report.ran_within(&outcome, error, of_allowed <= 1.0);
        }
        Ok(report.to_json())
    }
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.flags.json, command.run()))
}
