//! Attention on Hopper, forward: the arguments and the result of the [portable kernel](super::attention), by TMA and `wgmma` of warp-specialised roles.
//!
//! ```text
//! producer      q ──TMA──▶ one stage, once     k, v: tile t of n keys ──TMA──▶ stages of two rings
//! warpgroup     scores(t + 1) = q·k(t + 1)ᵀ   ─── in flight during the softmax of ───┐
//!               o += weights(t)·v(t)          ─── in flight during the softmax ──────┴─▶ weights(t + 1), in registers
//! ```
//!
//! Each warpgroup has 64 queries. It issues the scores of the next tile and the second product of this one together, waits for the scores alone, and computes their
//! softmax while the second product is in flight. With a ping-pong schedule warpgroups also take turns in issuing products, so that one has its softmax while the tensor
//! cores are busy with the products of another (the schedule is that of `FlashAttention` 3, Shah and others 2024).

use std::f32::consts::{LN_2, LOG2_E};

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::pipeline::{OrderBarrier, Ring, Staged, Stages, WarpRole};
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Combine, Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, TiledMma, atoms};

use super::{Attention, ELEMENTS, HEADS, MOST};
use crate::KernelError;

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
    /// Warpgroups take turns in issuing products.
    pub ping_pong: bool,
}

impl Tile {
    /// The tile for heads of `head_dim` elements whose accumulators fit the registers and whose stages fit shared memory.
    pub fn of(what: Attention) -> Self {
        let (warpgroups, keys) = match what.head_dim {
            ..=64 => (3, 128),
            65..=128 if what.causal => (2, 128),
            65..=128 => (2, 176),
            _ => (2, 80),
        };
        Self {
            warpgroups,
            keys,
            stages: 2,
            ping_pong: true,
        }
    }
}

/// What the roles of a kernel have in common.
struct Parts {
    what: Attention,
    /// Queries of a role, and keys of a step.
    tile: [i64; 2],
    scale: f32,
    /// The number of keys, those before which some query of the block sees one, and those that all of them see.
    keys: Expr,
    seen: Expr,
    /// Steps of the block behind the first.
    more: Expr,
    /// q·kᵀ and weights·v.
    products: [TiledMma; 2],
    /// Of keys and of values.
    rings: [Ring<'static, 1>; 2],
    /// Of roles that take turns in issuing products.
    order: Option<OrderBarrier>,
}

/// The state of the softmax of a role's rows.
struct Rows {
    /// The largest score so far, and the sum of weights in the parts of four lanes.
    max: Fragment,
    total: Fragment,
}

/// The kernel `attention_hopper_<element>_<head_dim>(sets, group, queries, keys, q, k, v, o, lse)`, with the meaning of [`attention`](super::attention()).
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::attention::Attention;
/// use tilewright_kernels::attention::hopper::{ARCH, Tile, attention};
///
/// let what = Attention { element: Element::Bf16, head_dim: 64, causal: true };
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
    validate(what, tile)?;
    let Attention {
        element,
        head_dim: d,
        causal,
    } = what;
    let (n, groups) = (tile.keys, tile.warpgroups);
    let m = 64 * groups;
    let mut k = Kernel::new(
        &format!("attention_hopper_{element}_{d}"),
        128 * (groups as u32 + 1),
    );
    let (sets, group) = (k.size("sets", HEADS[1]), k.size("group", HEADS[0]));
    let (queries, keys) = (k.size("queries", MOST), k.size("keys", MOST));
    let (zero, width) = (k.constant(0), k.constant(d));
    let heads = k.mul(sets, group);
    let q = k.input("q", element, &[heads, queries, width]);
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
    let (mut end, mut seen) = (keys, keys);
    if causal {
        let [first, last] = [1, m].map(|row| k.linear(&[(m, i)], row));
        (end, seen) = (k.smaller(keys, last), k.smaller(keys, first));
    }
    // The first step is ahead of the loop; without keys it sees none.
    let behind = k.linear(&[(1, end)], -n);
    let behind = k.clamp(behind, 0, MOST);
    let more = k.tiles_in(behind, n)?;

    let scalar = if element == Element::F16 {
        atoms::Scalar::F16
    } else {
        atoms::Scalar::Bf16
    };
    // Warpgroups that take turns have a role each.
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
        ring("v_tile", [n, d], tile.stages)?,
    ];
    let order = if tile.ping_pong {
        Some(k.order_barrier(roles as u32)?)
    } else {
        None
    };
    let parts = Parts {
        what,
        tile: [rows, n],
        scale: LOG2_E / (d as f32).sqrt(),
        keys,
        seen,
        more,
        products: [product(n)?, product(d)?],
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
            let logarithm = parts.divided(k, &sums, &softmax)?;
            let o = o
                .slice(k, &[set, member])?
                .tile(k, &[rows, d], &[i, zero])?;
            let o = o.partition_c(k, &parts.products[1], thread)?;
            let lse = lse.slice(k, &[set, member])?.tile(k, &[rows], &[i])?;
            let lse = o.along(k, 0, &lse)?;
            k.store_fragment(&lse, &logarithm)?;
            let rounded = sums.convert(k, element)?;
            k.store_fragment(&o.vectors(k, 2)?, &rounded)
        })?;
    }

    k.producer(WarpRole::new("producer", 4).registers(registers[1]), |k| {
        let head = k.mul(set, group);
        let head = k.add(head, member);
        for (number, q_ring) in (0..).zip(&q_rings) {
            let i = k.linear(&[(roles, i)], number);
            let q = q.slice(k, &[head])?.tile(k, &[rows, d], &[i, zero])?;
            k.fill_stage(q_ring, zero, zero, |k, [to]| k.tma_load(&q, &to))?;
        }
        let arrays = [key.slice(k, &[set])?, value.slice(k, &[set])?];
        // Of no keys the first tile is one outside of the arrays: zeros.
        let one = k.constant(1);
        let outside = k.choose(keys, Cmp::Gt, zero, zero, one);
        let fill = |k: &mut Kernel, which: usize, step: Expr| {
            let at = k.add(step, outside);
            let from = arrays[which].tile(k, &[n, d], &[at, zero])?;
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
        let ([m, n], element, zero) = (self.tile, self.what.element, k.constant(0));
        let sums = k.accumulators(second, [m, self.what.head_dim], thread)?;
        let scores = k.accumulators(first, [m, n], thread)?;
        let [tile] = k.arrived(of_keys, zero, zero)?;
        self.in_turn(k, role, |k| k.gemm(first, q, &tile, &scores))?;
        k.wait_wgmma(0);
        k.release(of_keys, zero)?;
        let rows = Rows {
            max: scores.reduce(k, 1, Combine::Max)?,
            total: scores.fold(k, 1, Combine::Add)?,
        };
        rows.max.update(k, |_, _| f32::NEG_INFINITY.into())?;
        rows.total.update(k, |_, _| 0.0.into())?;
        self.mask(k, i, zero, &scores)?;
        let (_, weights) = self.weights(k, &scores, &rows)?;
        let weights = weights.convert(k, element)?;

        k.for_loop("keys", 0, 1, self.more, |k, step| {
            let next = k.linear(&[(1, step)], 1);
            let scores = k.accumulators(first, [m, n], thread)?;
            let [tile] = k.arrived(of_keys, next, next)?;
            let [values] = k.arrived(of_values, step, step)?;
            self.in_turn(k, role, |k| {
                k.gemm(first, q, &tile, &scores)?;
                k.gemm(second, &weights, &values.transposed(), &sums)
            })?;
            // The second product is in flight until its sums are scaled.
            k.wait_wgmma(1);
            k.release(of_keys, next)?;
            self.mask(k, i, next, &scores)?;
            let (shrink, new) = self.weights(k, &scores, &rows)?;
            k.wait_wgmma(0);
            k.release(of_values, step)?;
            sums.update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;
            let new = new.convert(k, element)?;
            weights.assign(k, &new)
        })?;
        let [values] = k.arrived(of_values, self.more, self.more)?;
        k.gemm(second, &weights, &values.transposed(), &sums)?;
        k.wait_wgmma(0);
        k.release(of_values, self.more)?;
        Ok((sums, rows))
    }

    /// Issues products, when it is the role's turn if roles take turns.
    fn in_turn(
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

    /// Divides the sums of rows by their weights; the logarithm of each row's sum.
    fn divided(&self, k: &mut Kernel, sums: &Fragment, rows: &Rows) -> Result<Fragment, ViewError> {
        let total = rows.total.reduce(k, 1, Combine::Add)?;
        let inverse = total.map(k, |k, sum| {
            let (none, inverse) = (sum.eq(k, 0.0), sum.reciprocal(k));
            none.select(k, 0.0.into(), inverse)
        })?;
        sums.update_with(k, &inverse, |k, sum, inverse| sum.mul(k, inverse))?;
        rows.max.zip(k, &total, |k, max, sum| {
            let log2 = sum.log2(k);
            max.fma(k, self.scale, log2).mul(k, LN_2)
        })
    }

    /// −∞ for keys that a query does not see. Most tiles are seen whole.
    fn mask(
        &self,
        k: &mut Kernel,
        i: Expr,
        step: Expr,
        scores: &Fragment,
    ) -> Result<(), ViewError> {
        let [m, n] = self.tile;
        let behind = k.linear(&[(n, step)], n);
        let partly = Predicate::of(k, behind, Cmp::Gt, self.seen);
        k.when(partly, |k| {
            let masked = scores.map_at(k, |k, x, [row, column]| {
                let row = k.linear(&[(m, i), (1, row)], 0);
                let key = k.linear(&[(n, step), (1, column)], 0);
                let mut sees = Predicate::of(k, key, Cmp::Lt, self.keys);
                if self.what.causal {
                    let not_later = Predicate::of(k, key, Cmp::Le, row);
                    sees = sees.and(k, not_later);
                }
                sees.select(k, x, f32::NEG_INFINITY)
            })?;
            scores.assign(k, &masked)
        })
    }

    /// The weights of a tile by its scores, and what the sums so far are multiplied with: the softmax goes on.
    fn weights(
        &self,
        k: &mut Kernel,
        scores: &Fragment,
        rows: &Rows,
    ) -> Result<(Fragment, Fragment), ViewError> {
        let scale = self.scale;
        let weight = |k: &mut Kernel, x: F32, shift: F32| x.fma(k, scale, shift).exp2(k);
        let here = scores.reduce(k, 1, Combine::Max)?;
        let new = here.zip(k, &rows.max, |k, a, b| a.max(k, b))?;
        // −max·scale; 0 where nothing is seen yet, so that −∞ − −∞ does not arise.
        let shift = new.map(k, |k, max| {
            let (none, shift) = (max.eq(k, f32::NEG_INFINITY), max.mul(k, -scale));
            none.select(k, 0.0.into(), shift)
        })?;
        let shrink = rows.max.zip(k, &shift, weight)?;
        rows.max.assign(k, &new)?;
        let weights = scores.zip(k, &shift, weight)?;
        let more = weights.fold(k, 1, Combine::Add)?;
        rows.total
            .update_with(k, &shrink, |k, sum, shrink| sum.mul(k, shrink))?;
        rows.total
            .update_with(k, &more, |k, sum, more| sum.add(k, more))?;
        Ok((shrink, weights))
    }
}

/// Checks the configuration.
fn validate(what: Attention, tile: Tile) -> Result<(), KernelError> {
    KernelError::unless_among(what.element, &ELEMENTS)?;
    let Tile {
        warpgroups,
        keys,
        stages,
        ping_pong,
    } = tile;
    let least = if ping_pong { 2 } else { 1 };
    let rules = [
        (
            "elements of a head",
            what.head_dim,
            [64, 128, 256].contains(&what.head_dim),
            "64, 128 or 256",
        ),
        (
            "consumer warpgroups",
            warpgroups,
            (least..=3).contains(&warpgroups),
            "1 to 3, at least 2 that take turns",
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
