//! Attention on Hopper, forward: the arguments and the result of the [portable kernel](super::attention), by TMA and `wgmma` of warp-specialised roles.
//!
//! ```text
//! producer      q ──TMA──▶ one stage, once     k, v: tile t of n keys ──TMA──▶ stages of two rings
//! warpgroup     scores(t + 1) = q·k(t + 1)ᵀ   ─── in flight during the softmax of ───┐
//!               o += weights(t)·v(t)          ─── in flight during the softmax ──────┴─▶ weights(t + 1), in registers
//! ```
//!
//! Each warpgroup has 64 queries. It issues the scores of the next tile and the second product of this one together, waits for the scores alone, and computes their
//! softmax while the second product is in flight. In a ping-pong schedule one warpgroup also computes its softmax while the tensor cores run the MMAs of another (the schedule is that of
//! `FlashAttention` 3, Shah and others 2024).

use layout_codegen::index::Expr;
use layout_codegen::ir::{Cmp, Element, Kernel};
use layout_codegen::pipeline::{OrderBarrier, Ring, Staged, Stages, WarpRole};
use layout_codegen::value::Predicate;
use layout_codegen::view::{Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, TiledMma, atoms};

use super::softmax::{Rows, Softmax};
use super::tensors::{Tensors, VARLEN_SIZES};
use super::{Attention, keys_of_a_step, numbers};
use crate::KernelError;
use crate::grouped::Kind;
use crate::grouped::table::{Of, table};

/// The architecture that has these instructions.
pub const ARCH: Arch = Arch(90);

/// The tile of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Consumer warpgroups, 1 to 3: a block has 64 queries for each of them.
    pub warpgroups: i64,
    /// Keys of a step, a multiple of 16.
    pub keys: i64,
    /// Stages of the rings of keys and of values.
    pub stages: i64,
    /// Ping-pong schedule: one warpgroup issues its MMAs while the others compute their softmax.
    pub ping_pong: bool,
}

impl Tile {
    /// The tile whose accumulators fit the registers and whose stages fit shared memory; the fastest on an H200.
    pub fn of(what: Attention) -> Self {
        let (warpgroups, keys) = match what.head_dim.max(what.value_dim) {
            ..=64 => (3, 128),
            65..=128 => (2, 176),
            129..=192 if what.value_dim <= 128 => (2, 112),
            _ => (2, 80),
        };
        Self {
            warpgroups,
            keys,
            stages: 2,
            ping_pong: true,
        }
    }

    /// The same for [sequences of any lengths](varlen), which need registers for where a sequence begins.
    pub fn of_varlen(what: Attention) -> Self {
        let tile = Self::of(what);
        Self {
            warpgroups: tile.warpgroups.min(2),
            keys: tile.keys.min(160),
            ..tile
        }
    }

    /// The tiles that are worth measuring for a GPU; not all of them fit heads of every size.
    pub fn candidates() -> impl Iterator<Item = Self> {
        let keys = [64, 80, 96, 112, 128, 144, 160, 176, 192].into_iter();
        keys.flat_map(|keys| {
            let tile = |warpgroups, ping_pong| Self {
                warpgroups,
                keys,
                stages: 2,
                ping_pong,
            };
            [(2, false), (2, true), (3, false), (3, true)].map(|(m, ping_pong)| tile(m, ping_pong))
        })
    }
}

/// What the roles of a kernel have in common.
struct Parts {
    element: Element,
    /// Values of a head.
    values: i64,
    tensors: Tensors,
    softmax: Softmax,
    /// Queries of a block.
    queries: i64,
    /// Queries of a role, and keys of a step.
    tile: [i64; 2],
    /// The first tile of keys that some query of the block sees, and the number of steps after the first.
    first: Expr,
    more: Expr,
    /// q·kᵀ and weights·v.
    products: [TiledMma; 2],
    /// Of keys and of values.
    rings: [Ring<'static, 1>; 2],
    /// Of a ping-pong schedule.
    order: Option<OrderBarrier>,
}

/// The kernel `attention_hopper_<element>_<head_dim>(batch, kv_heads, queries, keys, q, k, v, o)`, with the meaning of [`attention`](super::attention()).
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::attention::{Attention, Mask};
/// use tilewright_kernels::attention::hopper::{ARCH, Tile, attention};
///
/// let what = Attention { mask: Mask::CAUSAL, lse: true, ..Attention::new(Element::Bf16, 64) };
/// let kernel = attention(what, Tile::of(what), ARCH)?;
/// assert_eq!(kernel.proof.covered, ["o", "lse"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields of the configuration do not allow; [`KernelError::View`] and [`KernelError::Proof`] for a tile
/// that does not fit shared memory, and for another architecture than [`ARCH`].
pub fn attention(what: Attention, tile: Tile, arch: Arch) -> Result<Proven, KernelError> {
    validate(&what, tile, arch)?;
    let name = format!("attention_hopper_{}_{}", what.element, what.head_dim);
    forward(&name, what, tile, arch, |k, m| {
        Tensors::declare(k, &what, m, true)
    })
}

/// The kernels of attention over sequences of any lengths one after another: q is queries × heads × d, k and v are keys × heads × d, of all sequences. Sequence s has the rows from
/// `query_ends[s − 1]` to `query_ends[s]`, and keys by `key_ends`; ends are limited to the number of rows, do not decrease, and stay on the device. They are the offsets of `FlashAttention`'s
/// `varlen` interface without the first, 0.
///
/// * `attention_tiles_<m>(queries, sequences, query_ends, tile_row, tile_group, row_tile)` finds the tiles of the queries, as [grouped products](mod@crate::grouped) do.
/// * `attention_varlen_<element>_<head_dim>(queries, sequences, kv_heads, keys, tile_row, tile_group, row_tile, query_ends, key_ends, q, k, v, o)`; `lse` is heads × queries.
///
/// What is in between is a workspace of three arrays of queries + sequences + 1 numbers of s32. Rows that no sequence has keep what they held.
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::attention::Attention;
/// use tilewright_kernels::attention::hopper::{ARCH, Tile, varlen};
///
/// let what = Attention::new(Element::Bf16, 128);
/// let [tiles, attention] = &varlen(what, Tile::of_varlen(what), ARCH)?[..] else { unreachable!() };
/// assert_eq!(attention.name(), "attention_varlen_bf16_128");
/// # let _ = tiles;
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// As [`attention`]; [`KernelError::Number`] for other warpgroups than 1 or 2.
pub fn varlen(what: Attention, tile: Tile, arch: Arch) -> Result<Vec<Proven>, KernelError> {
    validate(&what, tile, arch)?;
    numbers(&[(
        "consumer warpgroups for sequences of any lengths",
        tile.warpgroups,
        tile.warpgroups <= 2,
        "1 or 2",
    )])?;
    let m = 64 * tile.warpgroups;
    let of = Of {
        kernel: format!("attention_tiles_{m}"),
        sizes: VARLEN_SIZES,
        groups: "query_ends",
        tile: m,
        align: 1,
    };
    let name = format!("attention_varlen_{}_{}", what.element, what.head_dim);
    Ok(vec![
        table(&of, Kind::Offsets, arch)?,
        forward(&name, what, tile, arch, |k, m| {
            Tensors::declare_varlen(k, &what, m)
        })?,
    ])
}

/// The kernel of attention, with its arguments as `declare` gives them for `m` queries of a block.
fn forward(
    name: &str,
    what: Attention,
    tile: Tile,
    arch: Arch,
    declare: impl FnOnce(&mut Kernel, i64) -> Result<Tensors, ViewError>,
) -> Result<Proven, KernelError> {
    let (element, d, of_values) = (what.element, what.head_dim, what.value_dim);
    let (n, groups) = (tile.keys, tile.warpgroups);
    let m = 64 * groups;
    let mut k = Kernel::new(name, 128 * (groups as u32 + 1));
    let tensors = declare(&mut k, m)?;
    let (i, zero) = (tensors.i, k.constant(0));
    let first_query = k.linear(&[(m, i), (1, tensors.begin)], 0);
    let [first, steps] = tensors.masked.tiles(&mut k, (first_query, m), n)?;
    // The first step comes before the loop. Without keys its tile is outside of the arrays: zeros.
    let tiles = k.tiles_in(tensors.masked.keys, n)?;
    let outside = k.linear(&[(1, tiles)], 1);
    let first = k.choose(steps, Cmp::Gt, zero, first, outside);
    let more = k.linear(&[(1, steps)], -1);
    let more = k.clamp(more, 0, i64::MAX);

    let scalar = if element == Element::F16 {
        atoms::Scalar::F16
    } else {
        atoms::Scalar::Bf16
    };
    // In a ping-pong schedule each warpgroup has a role.
    let roles = if tile.ping_pong { groups } else { 1 };
    let rows = m / roles;
    let side = Layout::flat(&[groups / roles, 1, 1], &[1, 0, 0])?;
    let product = |columns| -> Result<TiledMma, KernelError> {
        let atom = atoms::wgmma(columns, scalar, atoms::Scalar::F32)?;
        Ok(TiledMma::new(atom, &side)?)
    };
    let mut ring = |name: &str, shape, stages| {
        let staged = [Staged::new(name, element, shape, &[])];
        k.tma_ring(Stages::new(stages), staged)
    };
    let names = ["q_tile", "q_tile_1", "q_tile_2"];
    let q_rings: Result<Vec<_>, _> = names[..roles as usize]
        .iter()
        .map(|name| ring(name, [rows, d], 1))
        .collect();
    let q_rings = q_rings?;
    let rings = [
        ring("k_tile", [n, d], tile.stages)?,
        ring("v_tile", [n, of_values], tile.stages)?,
    ];
    let order = if tile.ping_pong {
        Some(k.order_barrier(roles as u32)?)
    } else {
        None
    };
    let parts = Parts {
        element,
        values: of_values,
        softmax: Softmax::of(&what),
        tensors,
        queries: m,
        tile: [rows, n],
        first,
        more,
        products: [product(n)?, product(of_values)?],
        rings,
        order,
    };

    let registers = if groups == 3 { [160, 32] } else { [240, 24] };
    for (number, q_ring) in (0..).zip(&q_rings) {
        let name = ["consumers", "consumers_1", "consumers_2"][number as usize];
        let consumers = WarpRole::new(name, (rows / 16) as u32).registers(registers[0]);
        k.role(consumers, |k, thread| {
            // The role's tile of the queries.
            let i = k.linear(&[(roles, i)], number);
            let [q] = k.arrived(q_ring, zero, zero)?;
            let (sums, softmax) = parts.weighted(k, (number as u32, i), &q, thread)?;
            k.release(q_ring, zero)?;
            let total = Softmax::divided(k, &sums, &softmax)?;
            let o = parts.tensors.o.tile(k, rows, i)?;
            let o = o.partition_c(k, &parts.products[1], thread)?;
            if what.lse {
                let logarithm = parts.softmax.logarithm(k, &softmax, &total)?;
                parts.tensors.store_lse(k, (rows, i), &o, &logarithm)?;
            }
            let rounded = sums.convert(k, element)?;
            let o = parts.tensors.owned(k, (rows, i), &o.vectors(k, 2)?)?;
            k.store_fragment(&o, &rounded)
        })?;
    }

    k.producer(WarpRole::new("producer", 4).registers(registers[1]), |k| {
        for (number, q_ring) in (0..).zip(&q_rings) {
            let i = k.linear(&[(roles, i)], number);
            let q = parts.tensors.q.tile(k, rows, i)?;
            k.fill_stage(q_ring, zero, zero, |k, [to]| k.tma_load(&q, &to))?;
        }
        let arrays = [&parts.tensors.key, &parts.tensors.value];
        let fill = |k: &mut Kernel, which: usize, step: Expr| {
            let at = k.add(first, step);
            let from = arrays[which].tile(k, n, at)?;
            k.fill_stage(&parts.rings[which], step, step, |k, [to]| {
                k.tma_load(&from, &to)
            })
        };
        // In the order in which they are read.
        fill(k, 0, zero)?;
        k.for_loop("fill", 0, 1, more, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            fill(k, 0, next)?;
            fill(k, 1, step)
        })?;
        fill(k, 1, more)
    })?;
    Ok(k.build(arch)?)
}

impl Parts {
    /// The sums of weighted values of the rows of tile `i` of the queries, not yet divided, and their softmax: what role number `role` does.
    fn weighted(
        &self,
        k: &mut Kernel,
        (role, i): (u32, Expr),
        q: &View,
        thread: Expr,
    ) -> Result<(Fragment, Rows), ViewError> {
        let [first, second] = &self.products;
        let [of_keys, of_values] = &self.rings;
        let ([m, n], zero) = (self.tile, k.constant(0));
        let sums = k.accumulators(second, [m, self.values], thread)?;
        let scores = k.accumulators(first, [m, n], thread)?;
        let [tile] = k.arrived(of_keys, zero, zero)?;
        self.in_order(k, role, |k| k.gemm(first, q, &tile, &scores))?;
        k.wait_wgmma(0);
        k.release(of_keys, zero)?;
        let sink = self.tensors.sink(k)?;
        let rows = self.softmax.rows(k, &sums, sink)?;
        self.masked(k, (i, zero), &scores)?;
        let (_, weights) = self.softmax.weights(k, &scores, &rows)?;
        let weights = weights.convert(k, self.element)?;

        k.for_loop("keys", 0, 1, self.more, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            let scores = k.accumulators(first, [m, n], thread)?;
            let [tile] = k.arrived(of_keys, next, next)?;
            let [values] = k.arrived(of_values, step, step)?;
            self.in_order(k, role, |k| {
                k.gemm(first, q, &tile, &scores)?;
                k.gemm(second, &weights, &values.transposed(), &sums)
            })?;
            // The second product is in flight until its sums are scaled.
            k.wait_wgmma(1);
            k.release(of_keys, next)?;
            let seen = self.seen(k, (i, next));
            let shrink = rows.shrink(k)?;
            let softmax = |k: &mut Kernel| {
                self.masked(k, (i, next), &scores)?;
                let (factor, new) = self.softmax.weights(k, &scores, &rows)?;
                shrink.assign(k, &factor)?;
                scores.assign(k, &new)
            };
            when(k, seen, softmax, |_| Ok(()))?;
            k.wait_wgmma(0);
            k.release(of_values, step)?;
            let shrunk = |k: &mut Kernel| {
                sums.update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;
                let new = scores.convert(k, self.element)?;
                weights.assign(k, &new)
            };
            let nothing = |k: &mut Kernel| {
                scores.update(k, |_, _| 0.0.into())?;
                let new = scores.convert(k, self.element)?;
                weights.assign(k, &new)
            };
            when(k, seen, shrunk, nothing)
        })?;
        let [values] = k.arrived(of_values, self.more, self.more)?;
        k.gemm(second, &weights, &values.transposed(), &sums)?;
        k.wait_wgmma(0);
        k.release(of_values, self.more)?;
        Ok((sums, rows))
    }

    /// Whether some query of tile `i` of a role sees a key of a step. Only short steps ask: there the first role misses many of the last ones, and the branch costs less than it saves.
    /// With a window to the left, heads of 256 have no registers left for it.
    fn seen(&self, k: &mut Kernel, at: (Expr, Expr)) -> Option<Predicate> {
        let [m, n] = self.tile;
        let masked = &self.tensors.masked;
        let pays = 3 * n <= 2 * self.queries && masked.mask.left.is_none();
        (self.order.is_some() && pays).then(|| {
            let at = self.place(k, at);
            masked.sees(k, at, m)
        })
    }

    /// Issues products, in a ping-pong schedule after the role before.
    fn in_order(
        &self,
        k: &mut Kernel,
        role: u32,
        products: impl FnOnce(&mut Kernel) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        match &self.order {
            Some(order) => k.in_order(order, role, products),
            None => products(k),
        }
    }

    /// Caps and masks the scores of a step of the rows of tile `i` of the queries.
    fn masked(
        &self,
        k: &mut Kernel,
        (i, step): (Expr, Expr),
        scores: &Fragment,
    ) -> Result<(), ViewError> {
        self.softmax.capped(k, scores)?;
        let at = self.place(k, (i, step));
        self.tensors.masked.apply(k, scores, at, self.tile)
    }

    /// The first query of tile `i`, and the first key of a step.
    fn place(&self, k: &mut Kernel, (i, step): (Expr, Expr)) -> [Expr; 2] {
        let [m, n] = self.tile;
        [
            k.linear(&[(m, i), (1, self.tensors.begin)], 0),
            k.linear(&[(n, self.first), (n, step)], 0),
        ]
    }
}

/// Does `then` where a predicate holds, if there is one, and else `otherwise`.
fn when(
    k: &mut Kernel,
    predicate: Option<Predicate>,
    then: impl FnOnce(&mut Kernel) -> Result<(), ViewError>,
    otherwise: impl FnOnce(&mut Kernel) -> Result<(), ViewError>,
) -> Result<(), ViewError> {
    match predicate {
        Some(predicate) => k.when_else(predicate, then, otherwise),
        None => then(k),
    }
}

/// Checks the configuration.
fn validate(what: &Attention, tile: Tile, arch: Arch) -> Result<(), KernelError> {
    what.validate((&[64, 96, 128, 192, 256], "64, 96, 128, 192 or 256"))?;
    let Tile {
        warpgroups,
        keys,
        stages,
        ping_pong,
    } = tile;
    let least = if ping_pong { 2 } else { 1 };
    numbers(&[
        (
            "architecture of the design for Hopper",
            arch.0.into(),
            arch == ARCH,
            "90 (sm_90a)",
        ),
        (
            "consumer warpgroups",
            warpgroups,
            (least..=3).contains(&warpgroups),
            "1 to 3, at least 2 in a ping-pong schedule",
        ),
        keys_of_a_step(keys),
        ("stages", stages, (1..=8).contains(&stages), "1 to 8"),
    ])
}
