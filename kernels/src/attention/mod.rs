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
//! Tensors are contiguous, as [`Order`] says; `group` neighbouring heads share their keys. [`Mask`] says which keys a query sees. With a soft cap X, scores s become
//! X·tanh(s/X) before the mask; tanh has a relative error of 2⁻¹¹. A sink is a score for each head that joins the sum of the weights and has no value.
//!
//! A row without keys, or with scores that are all −∞, is 0; its logarithm is −∞, or the sink. A NaN in a query, or in a key or a value that it sees, makes its row NaN, as does a
//! score of +∞. Weights of 0 are multiplied like others: an infinite or NaN value in a tile that a row looks into shows, even behind the mask.

pub mod hopper;
mod mask;
mod softmax;
mod tensors;

use layout_codegen::ir::{Element, Kernel};
use layout_codegen::pipeline::Staged;
use layout_codegen::view::{Use, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, LayoutError, Operand, TiledCopy, TiledMma, atoms};

use crate::KernelError;
use softmax::Softmax;
use tensors::{Part, Tensors};

pub use mask::{Align, Mask};

/// Queries and keys of a head at most: addresses are proven not to overflow up to here.
pub const MOST: i64 = 1 << 24;

/// Heads of a sequence at most: axis y of the grid; sequences times heads are below 2³¹.
pub const HEADS: i64 = 32_767;

/// Sequences at most: axis z of the grid.
pub const BATCHES: i64 = 65_535;

/// The element types.
pub const ELEMENTS: [Element; 2] = [Element::F16, Element::Bf16];

/// The order of the modes of q, k, v and o. The logarithms are always of (batch, head, query).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// (batch, head, sequence, d), as `scaled_dot_product_attention` of `PyTorch` takes them.
    #[default]
    BatchHeadSequence,
    /// (batch, sequence, head, d), as `FlashAttention` takes them.
    BatchSequenceHead,
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attention {
    /// f16 or bf16, of q, k, v and o.
    pub element: Element,
    /// Elements of a head of q and k: 64 or 128, of [`hopper`] also 96, 192 and 256.
    pub head_dim: i64,
    /// Elements of a head of v and o, as `head_dim`.
    pub value_dim: i64,
    /// Heads that share their keys.
    pub group: i64,
    /// Which keys a query sees.
    pub mask: Mask,
    /// Scores s become X·tanh(s/X) with this X.
    pub softcap: Option<f32>,
    /// An input `sinks` of f32, a score for each head that joins its sums.
    pub sinks: bool,
    /// An output `lse` of f32, the logarithm of each row's sum.
    pub lse: bool,
    /// The order of the tensors' modes.
    pub order: Order,
}

impl Attention {
    /// Every head with its own keys, all of which a query sees; no other option.
    pub fn new(element: Element, head_dim: i64) -> Self {
        Self {
            element,
            head_dim,
            value_dim: head_dim,
            group: 1,
            mask: Mask::ALL,
            softcap: None,
            sinks: false,
            lse: false,
            order: Order::BatchHeadSequence,
        }
    }

    /// Checks the configuration; heads are of `dims` elements.
    fn validate(&self, dims: (&[i64], &'static str)) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        self.mask.validate()?;
        let Self {
            head_dim,
            value_dim,
            group,
            ..
        } = *self;
        numbers(&[
            (
                "elements of a head",
                head_dim,
                dims.0.contains(&head_dim),
                dims.1,
            ),
            (
                "values of a head",
                value_dim,
                dims.0.contains(&value_dim),
                dims.1,
            ),
            (
                "heads that share their keys",
                group,
                (1..=HEADS).contains(&group),
                "1 to 32767",
            ),
        ])?;
        match self.softcap {
            Some(cap) if !(1e-3..=1e6).contains(&cap) => Err(KernelError::Number {
                what: "soft cap",
                given: cap.to_string(),
                accepted: "0.001 to 1000000",
            }),
            _ => Ok(()),
        }
    }
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

impl Tile {
    /// The tile for heads of these sizes without spills.
    pub fn of(what: Attention) -> Self {
        let strided = what.order == Order::BatchSequenceHead;
        let keys = if what.value_dim > 64 && (strided || what.head_dim <= 64) {
            32
        } else {
            64
        };
        Self {
            keys,
            ..Self::default()
        }
    }
}

impl Tile {
    /// The tiles that are worth measuring for a GPU; not all of them fit heads of every size.
    pub fn candidates() -> impl Iterator<Item = Self> {
        let shapes = [(64, 4), (128, 4), (128, 8), (192, 4), (256, 8)];
        shapes.into_iter().flat_map(|(queries, warps)| {
            let tile = move |keys, stages| Self {
                queries,
                keys,
                warps,
                stages,
            };
            let keys = [32, 64, 96, 128].into_iter();
            keys.flat_map(move |keys| [1, 2].map(|stages| tile(keys, stages)))
        })
    }
}

impl Default for Tile {
    /// The fastest tile on an H100 without spills, of contiguous heads with as many values.
    fn default() -> Self {
        Self {
            queries: 128,
            keys: 64,
            warps: 4,
            stages: 1,
        }
    }
}

/// The kernel `attention_<element>_<head_dim>(batch, kv_heads, queries, keys, q, k, v, o)`, with `sinks` behind `v` and `lse` behind `o` where they are asked for.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::attention::{Attention, Mask, Tile, attention};
///
/// let what = Attention { mask: Mask::CAUSAL, lse: true, ..Attention::new(Element::Bf16, 64) };
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
    validate(&what, tile)?;
    let (element, d, of_values) = (what.element, what.head_dim, what.value_dim);
    let (m, n, threads) = (tile.queries, tile.keys, 32 * tile.warps);
    let mut k = Kernel::new(&format!("attention_{element}_{d}"), threads as u32);
    let tensors = Tensors::declare(&mut k, &what, m, false)?;
    let (i, zero, thread) = (tensors.i, k.constant(0), k.thread());

    // Warps side by side along the queries; two atoms along keys, whose B is one ldmatrix.
    let warps = Layout::flat(&[tile.warps, 1, 1], &[1, 0, 0])?;
    let [rows, side] = [16 * tile.warps, 16].map(|extent| Layout::mode(extent, 1));
    let mma = TiledMma::with_tile(instruction(element), &warps, &[rows?, side?, side?])?;
    let read_q = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let read_k = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::B)?;
    let read_v = TiledCopy::for_operand(atoms::LDMATRIX_X4_TRANS, &mma, Operand::B)?;
    let (write, write_v) = (copy_of(threads, d)?, copy_of(threads, of_values)?);

    // The queries arrive with the first keys: their copies belong to the same group.
    let uses = [Use::target(&write), Use::source(&read_q)];
    let q_tile = k.shared_for("q_tile", element, [m, d], &uses)?;
    let from = tensors.q.tile(&mut k, m, i)?;
    let from = from.partition_s(&mut k, &write, thread)?;
    let to = q_tile.partition_d(&mut k, &write, thread)?;
    k.copy(&from, &to)?;
    let first_query = k.linear(&[(m, i)], 0);
    let [first, steps] = tensors.masked.tiles(&mut k, (first_query, m), n)?;
    let fill = |of: Part, write: TiledCopy| {
        move |k: &mut Kernel, [to]: [View; 1], t| {
            let t = k.add(first, t);
            let from = of.tile(k, n, t)?;
            let from = from.partition_s(k, &write, thread)?;
            let to = to.partition_d(k, &write, thread)?;
            k.copy(&from, &to)
        }
    };
    let uses = [Use::target(&write), Use::source(&read_k)];
    let staged = [Staged::new("k_tile", element, [n, d], &uses)];
    let key_ring = k.ring(tile.stages, staged, fill(tensors.key.clone(), write))?;
    let uses = [Use::target(&write_v), Use::source(&read_v).transposed()];
    let staged = [Staged::new("v_tile", element, [n, of_values], &uses)];
    let value_ring = k.ring(tile.stages, staged, fill(tensors.value.clone(), write_v))?;

    let softmax = Softmax::of(&what);
    let sums = k.accumulators(&mma, [m, of_values], thread)?;
    let sink = tensors.sink(&mut k)?;
    let rows = softmax.rows(&mut k, &sums, sink)?;
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
        softmax.capped(k, &scores)?;
        let first_key = k.linear(&[(n, step.index()), (n, first)], 0);
        let at = [first_query, first_key];
        tensors.masked.apply(k, &scores, at, [m, n])?;
        let (shrink, weights) = softmax.weights(k, &scores, &rows)?;
        sums.update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;

        let weights = weights.convert(k, element)?;
        let [tile] = step.arrived(k, &value_ring)?;
        for (part, a) in (0..).zip(weights.split(1, n as usize / 16)?) {
            let at = [k.constant(part), zero];
            let b = tile.tile(k, &[16, of_values], &at)?.transposed();
            let b = b.partition_s(k, &read_v, thread)?;
            let b = k.load_fragment(&b)?;
            k.gemm(&mma, &a, &b, &sums)?;
        }
        Ok::<(), ViewError>(())
    })?;

    let total = Softmax::divided(&mut k, &sums, &rows)?;
    let o = tensors.o.tile(&mut k, m, i)?;
    let o = o.partition_c(&mut k, &mma, thread)?;
    if what.lse {
        let logarithm = softmax.logarithm(&mut k, &rows, &total)?;
        tensors.store_lse(&mut k, (m, i), &o, &logarithm)?;
    }
    let rounded = sums.convert(&mut k, element)?;
    k.store_fragment(&o.vectors(&k, 2)?, &rounded)?;
    Ok(k.build(arch)?)
}

/// A thread copies eight elements of a row of `width` elements.
fn copy_of(threads: i64, width: i64) -> Result<TiledCopy, LayoutError> {
    let eights = Layout::flat(&[threads * 8 / width, width / 8], &[width / 8, 1])?;
    let eight = Layout::flat(&[1, 8], &[0, 1])?;
    TiledCopy::new(atoms::CP_ASYNC_16.recast(16)?, &eights, &eight)
}

/// Checks the configuration.
fn validate(what: &Attention, tile: Tile) -> Result<(), KernelError> {
    what.validate((&[64, 128], "64 or 128"))?;
    let Tile {
        queries,
        keys,
        warps,
        stages,
    } = tile;
    let queries_fit = (16..=256).contains(&queries) && queries % (16 * warps.max(1)) == 0;
    numbers(&[
        (
            "warps of a block",
            warps,
            (1..=16).contains(&warps),
            "1 to 16",
        ),
        (
            "queries of a block",
            queries,
            queries_fit,
            "a multiple of 16 for each warp, at most 256",
        ),
        keys_of_a_step(keys),
        ("stages", stages, (1..=8).contains(&stages), "1 to 8"),
    ])
}

/// A number of the configuration, whether it is accepted, and what is.
type Rule = (&'static str, i64, bool, &'static str);

fn keys_of_a_step(keys: i64) -> Rule {
    let accepted = (16..=256).contains(&keys) && keys % 16 == 0;
    (
        "keys of a step",
        keys,
        accepted,
        "a multiple of 16, at most 256",
    )
}

/// The error of the first rule that does not hold.
fn numbers(rules: &[Rule]) -> Result<(), KernelError> {
    match rules.iter().find(|rule| !rule.2) {
        Some(&(what, given, _, accepted)) => Err(KernelError::Number {
            what,
            given: given.to_string(),
            accepted,
        }),
        None => Ok(()),
    }
}

/// The matrix instruction.
fn instruction(element: Element) -> atoms::MmaAtom {
    match element {
        Element::F16 => atoms::MMA_M16N8K16_F16,
        _ => atoms::MMA_M16N8K16_BF16,
    }
}
