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
//! their keys. To the kernel that is (batch · kv-heads) × group × queries × d, and no index is divided. Of a causal kernel, query i sees keys 0 to i, as
//! with `is_causal` of `PyTorch`: aligned at the top left.
//!
//! A row without keys, or whose scores are all −∞, is 0 and its logarithm −∞. A NaN in a query, or in a key or a value that it sees, makes its row NaN, as does a
//! score of +∞. Weights of 0 are multiplied like others: an infinite or NaN value in a tile that a row looks into shows, even behind the mask.

pub mod hopper;

use std::f32::consts::{LN_2, LOG2_E};

use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::pipeline::Staged;
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Combine, Use, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Operand, TiledCopy, TiledMma, atoms};

use crate::KernelError;

/// Queries and keys of a head at most: addresses are proven not to overflow up to here.
pub const MOST: i64 = 1 << 24;

/// Heads that share their keys at most, and sets of them: axes y and z of the grid.
pub const HEADS: [i64; 2] = [1 << 10, 65_535];

/// The element types.
pub const ELEMENTS: [Element; 2] = [Element::F16, Element::Bf16];

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attention {
    /// f16 or bf16, of q, k, v and o.
    pub element: Element,
    /// Elements of a head: 64 or 128, of [`hopper`] also 256.
    pub head_dim: i64,
    /// Query i sees keys 0 to i.
    pub causal: bool,
}

/// The tile of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Queries of a block, a multiple of 16 · warps.
    pub queries: i64,
    /// Keys of a step, a multiple of 16.
    pub keys: i64,
    /// Warps of a block.
    pub warps: i64,
    /// Stages of the rings of keys and of values.
    pub stages: i64,
}

impl Default for Tile {
    /// The fastest tile on an H100 without spills.
    fn default() -> Self {
        Self {
            queries: 128,
            keys: 64,
            warps: 4,
            stages: 1,
        }
    }
}

/// The kernel `attention_<element>_<head_dim>(sets, group, queries, keys, q, k, v, o, lse)`: `sets` is batch · kv-heads, `group` the heads that share their keys.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::attention::{Attention, Tile, attention};
///
/// let what = Attention { element: Element::Bf16, head_dim: 64, causal: true };
/// let kernel = attention(what, Tile::default(), Arch(80))?;
/// assert_eq!(kernel.proof.covered, ["o", "lse"]);
///
/// let error = attention(what, Tile { queries: 100, ..Tile::default() }, Arch(80)).unwrap_err();
/// assert_eq!(error.to_string(), "queries of a block: 100 is not a multiple of 16 for each warp, at most 256");
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields of the configuration do not allow; [`KernelError::View`] and [`KernelError::Proof`] for a tile
/// that does not fit registers, shared memory or the copies.
pub fn attention(what: Attention, tile: Tile, arch: Arch) -> Result<Proven, KernelError> {
    validate(what, tile)?;
    let Attention {
        element,
        head_dim: d,
        causal,
    } = what;
    let (m, n, threads) = (tile.queries, tile.keys, 32 * tile.warps);
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
    let warps = Layout::flat(&[tile.warps, 1, 1], &[1, 0, 0])?;
    let [rows, side] = [16 * tile.warps, 16].map(|extent| Layout::mode(extent, 1));
    let mma = TiledMma::with_tile(instruction(element), &warps, &[rows?, side?, side?])?;
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
    let staged = [Staged::new("k_tile", element, [n, d], &uses)];
    let key_ring = k.ring(tile.stages, staged, key)?;
    let value = fill(value.slice(&mut k, &[set])?);
    let uses = [Use::target(&write), Use::source(&read_v).transposed()];
    let staged = [Staged::new("v_tile", element, [n, d], &uses)];
    let value_ring = k.ring(tile.stages, staged, value)?;

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

/// Checks the configuration.
fn validate(what: Attention, tile: Tile) -> Result<(), KernelError> {
    KernelError::unless_among(what.element, &ELEMENTS)?;
    let Tile {
        queries,
        keys,
        warps,
        stages,
    } = tile;
    let rules = [
        (
            "elements of a head",
            what.head_dim,
            [64, 128].contains(&what.head_dim),
            "64 or 128",
        ),
        (
            "warps of a block",
            warps,
            (1..=16).contains(&warps),
            "1 to 16",
        ),
        (
            "queries of a block",
            queries,
            (16..=256).contains(&queries) && queries % (16 * warps.max(1)) == 0,
            "a multiple of 16 for each warp, at most 256",
        ),
        (
            "keys of a step",
            keys,
            (16..=256).contains(&keys) && keys % 16 == 0,
            "a multiple of 16, at most 256",
        ),
        ("stages", stages, (1..=8).contains(&stages), "1 to 8"),
    ];
    for (what, given, holds, accepted) in rules {
        if !holds {
            return Err(KernelError::Number {
                what,
                given,
                accepted,
            });
        }
    }
    Ok(())
}

/// The matrix instruction.
fn instruction(element: Element) -> atoms::MmaAtom {
    match element {
        Element::F16 => atoms::MMA_M16N8K16_F16,
        _ => atoms::MMA_M16N8K16_BF16,
    }
}
