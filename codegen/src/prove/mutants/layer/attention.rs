//! Attention on Hopper, small: a stage of queries that each role holds while it goes through the keys, rings of keys and of values, roles that issue MMAs in order, and MMAs
//! that are in flight while the weights of the next step are computed. And a role whose threads exchange what they have through shared memory.
//!
//! The weights are the scores that are not negative, so that all numbers are whole.

use layout_core::atoms::{Scalar, wgmma};
use layout_core::{Layout, Swizzled, TiledMma};

use super::{Given, none_is_refuted, numbers, subject};
use crate::index::Expr;
use crate::ir::{Axis, Cmp, Element, Kernel};
use crate::pipeline::{OrderBarrier, Ring, Staged, Stages, TileScheduler, WarpRole};
use crate::prove::mutants::Subject;
use crate::view::{Fragment, View, ViewError};

type Done = Result<(), ViewError>;

/// Rows of a role, keys of a step, and elements of a head.
const TILE: [i64; 3] = [64, 32, 32];

const MOST: i64 = 1 << 15;

/// Which kernel.
#[derive(Clone, Copy, Debug)]
struct Attention {
    roles: i64,
    /// Blocks take rows after rows.
    persistent: bool,
}

/// What the roles know.
struct Parts {
    what: Attention,
    arrays: [View; 4],
    /// Rows and columns of o, and steps behind the first.
    sizes: [Expr; 2],
    more: Expr,
    /// Of no keys the first tile is one outside of the arrays.
    outside: Expr,
    products: [TiledMma; 2],
    of_q: Vec<Ring<'static, 1>>,
    rings: [Ring<'static, 1>; 2],
    order: Option<OrderBarrier>,
}

impl Parts {
    /// For each run of rows of the block: their number in o, and how many came before.
    fn tiles(
        &self,
        k: &mut Kernel,
        body: impl FnOnce(&mut Kernel, [Expr; 2], Expr) -> Done,
    ) -> Done {
        let ([rows, _, d], [m, columns]) = (TILE, self.sizes);
        let rows = rows * self.what.roles;
        if self.what.persistent {
            let tiles = TileScheduler::rectangle([m, columns], [rows, d], [2, 1]);
            return k.persistent(&tiles, |k, tile| body(k, tile.at(), tile.number()));
        }
        let (i, zero) = (k.tiles(Axis::X, m, rows)?, k.constant(0));
        body(k, [i, zero], zero)
    }

    fn in_order(&self, k: &mut Kernel, role: u32, body: impl FnOnce(&mut Kernel) -> Done) -> Done {
        match &self.order {
            Some(order) => k.in_order(order, role, body),
            None => body(k),
        }
    }

    fn produce(&self, k: &mut Kernel) -> Done {
        let ([rows, keys, d], zero, roles) = (TILE, k.constant(0), self.what.roles);
        self.tiles(k, |k, [i, _], number| {
            for (part, ring) in (0..).zip(&self.of_q) {
                let i = k.linear(&[(roles, i)], part);
                let from = self.arrays[0].tile(k, &[rows, d], &[i, zero])?;
                k.fill_stage(ring, number, i, |k, [to]| k.tma_load(&from, &to))?;
            }
            let before = self.before(k, number);
            let fill = |k: &mut Kernel, which: usize, step: Expr| {
                let at = k.add(step, self.outside);
                let from = self.arrays[1 + which].tile(k, &[keys, d], &[at, zero])?;
                let index = k.add(before, step);
                k.fill_stage(&self.rings[which], index, step, |k, [to]| {
                    k.tma_load(&from, &to)
                })
            };
            fill(k, 0, zero)?;
            k.for_loop("fill", 0, 1, self.more, |k, step| {
                let next = k.linear(&[(1, step)], 1);
                fill(k, 0, next)?;
                fill(k, 1, step)
            })?;
            fill(k, 1, self.more)
        })
    }

    /// Uses of the rings of keys and values in runs of rows before.
    fn before(&self, k: &mut Kernel, number: Expr) -> Expr {
        let uses = k.linear(&[(1, self.more)], 1);
        k.mul(number, uses)
    }

    fn consume(&self, k: &mut Kernel, part: i64, thread: Expr) -> Done {
        let ([rows, keys, d], zero) = (TILE, k.constant(0));
        let [first, second] = &self.products;
        let [of_keys, of_values] = &self.rings;
        let role = part as u32;
        self.tiles(k, |k, [i, j], number| {
            let i = k.linear(&[(self.what.roles, i)], part);
            let before = self.before(k, number);
            let [q] = k.arrived(&self.of_q[part as usize], number, i)?;
            let sums = k.accumulators(second, [rows, d], thread)?;
            let scores = k.accumulators(first, [rows, keys], thread)?;
            let [tile] = k.arrived(of_keys, before, zero)?;
            self.in_order(k, role, |k| k.gemm(first, &q, &tile, &scores))?;
            k.wait_wgmma(0);
            k.release(of_keys, before)?;
            let weights = weights(k, &scores)?;
            k.for_loop("keys", 0, 1, self.more, |k, step| {
                let next = k.linear(&[(1, step)], 1);
                let [here, then] = [step, next].map(|step| k.add(before, step));
                let scores = k.accumulators(first, [rows, keys], thread)?;
                let [tile] = k.arrived(of_keys, then, next)?;
                let [values] = k.arrived(of_values, here, step)?;
                self.in_order(k, role, |k| {
                    k.gemm(first, &q, &tile, &scores)?;
                    k.gemm(second, &weights, &values.transposed(), &sums)
                })?;
                k.wait_wgmma(1);
                k.release(of_keys, then)?;
                let new = self::weights(k, &scores)?;
                k.wait_wgmma(0);
                k.release(of_values, here)?;
                sums.update(k, |k, x| x.add(k, 1.0))?;
                weights.assign(k, &new)
            })?;
            let last = k.add(before, self.more);
            let [values] = k.arrived(of_values, last, self.more)?;
            k.gemm(second, &weights, &values.transposed(), &sums)?;
            k.wait_wgmma(0);
            k.release(of_values, last)?;
            k.release(&self.of_q[part as usize], number)?;
            let o = self.arrays[3].tile(k, &[rows, d], &[i, j])?;
            let o = o.partition_c(k, second, thread)?;
            k.store_fragment(&o.vectors(k, 2)?, &sums)
        })
    }
}

/// Scores that are not negative, rounded.
fn weights(k: &mut Kernel, scores: &Fragment) -> Result<Fragment, ViewError> {
    let weights = scores.map(k, |k, x| x.max(k, 0.0))?;
    k.convert_fragment(&weights, Element::F16)
}

impl Attention {
    fn kernel(self) -> Result<Kernel, ViewError> {
        let ([rows, keys, d], roles) = (TILE, self.roles);
        let mut k = Kernel::new("attention", 128 * roles as u32 + 128);
        let [m, n] = ["m", "n"].map(|name| k.size(name, MOST));
        let width = k.constant(d);
        let [q, key, value] = [("q", m), ("keys", n), ("values", n)]
            .map(|(name, rows)| k.input(name, Element::F16, &[rows, width]));
        let o = k.output("o", Element::F32, &[m, width]);
        let one = Layout::flat(&[1, 1, 1], &[0, 0, 0])?;
        let product = |n| -> Result<TiledMma, ViewError> {
            Ok(TiledMma::new(wgmma(n, Scalar::F16, Scalar::F32)?, &one)?)
        };
        let mut ring = |name: &str, rows, stages| {
            let tile = [Staged::new(name, Element::F16, [rows, d], &[])];
            k.tma_ring(Stages::new(stages), tile)
        };
        let names = ["tile_q", "tile_q1", "tile_q2"];
        let of_q: Result<Vec<_>, _> = names[..roles as usize]
            .iter()
            .map(|name| ring(name, rows, 1))
            .collect();
        let rings = [ring("tile_k", keys, 2)?, ring("tile_v", keys, 2)?];
        let order = if roles > 1 {
            Some(k.order_barrier(roles as u32)?)
        } else {
            None
        };
        let behind = k.linear(&[(1, n)], -keys);
        let behind = k.clamp(behind, 0, MOST);
        let (zero, one) = (k.constant(0), k.constant(1));
        let parts = Parts {
            what: self,
            arrays: [q, key, value, o],
            sizes: [m, width],
            more: k.tiles_in(behind, keys)?,
            outside: k.choose(n, Cmp::Gt, zero, zero, one),
            products: [product(keys)?, product(d)?],
            of_q: of_q?,
            rings,
            order,
        };
        for part in 0..roles {
            let name = ["first", "second", "third"][part as usize];
            k.role(WarpRole::new(name, 4), |k, thread| {
                parts.consume(k, part, thread)
            })?;
        }
        k.producer(WarpRole::new("producer", 4), |k| parts.produce(k))?;
        Ok(k)
    }

    fn launch([m, n]: [u64; 2]) -> (Given, Vec<i64>, Element) {
        let [_, step, d] = TILE.map(|x| x as usize);
        let (q, keys, values) = (
            numbers(m * d as u64, 1),
            numbers(n * d as u64, 2),
            numbers(n * d as u64, 3),
        );
        let more = (n as usize).div_ceil(step).saturating_sub(1);
        let mut o = vec![more as i64; m as usize * d];
        for (row, o) in q.chunks(d).zip(o.chunks_mut(d)) {
            for (key, value) in keys.chunks(d).zip(values.chunks(d)) {
                let score: i64 = row.iter().zip(key).map(|(x, y)| x * y).sum();
                for (o, v) in o.iter_mut().zip(value) {
                    *o += score.max(0) * v;
                }
            }
        }
        let sizes = vec![("m", m), ("n", n)];
        let inputs = vec![("q", q), ("keys", keys), ("values", values)];
        (Given { sizes, inputs }, o, Element::F32)
    }

    fn subject(self, sizes: &[[u64; 2]]) -> Subject {
        let launches = sizes.iter().map(|&size| Self::launch(size)).collect();
        subject(&format!("{self:?}"), self.kernel(), launches)
    }
}

/// y ← x reversed in runs of 64, or twice so, by two roles of 64 threads through shared memory of their own.
fn exchange(twice: bool) -> Result<Kernel, ViewError> {
    let mut k = Kernel::new("exchange", 128);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, 128)?;
    let one = Layout::flat(&[64, 1], &[1, 0])?;
    let plain = Swizzled::parse("64:1").expect("a layout");
    for (role, name) in [(0, "first"), (1, "second")] {
        let own = ["first_run", "second_run"][role];
        let own = k.shared(own, Element::F32, &plain)?;
        let run = k.linear(&[(2, block)], role as i64);
        let (from, to) = (
            x.tile(&mut k, &[64], &[run])?,
            y.tile(&mut k, &[64], &[run])?,
        );
        k.role(WarpRole::new(name, 2), |k, thread| {
            let values = from.partition(k, &one, thread)?;
            let values = k.load_fragment(&values)?;
            let put = own.partition(k, &one, thread)?;
            k.store_fragment(&put, &values)?;
            k.barrier();
            let at = k.linear(&[(-1, thread)], 63);
            let at = k.bounded(at, 63);
            let turned = own.load::<f32>(k, &[at])?;
            let to = to.partition(k, &one, thread)?;
            if twice {
                k.barrier();
                own.store(k, &[thread], turned)?;
                k.barrier();
                return k.copy(&put, &to);
            }
            values.update(k, |_, _| turned)?;
            k.store_fragment(&to, &values)
        })?;
    }
    Ok(k)
}

fn exchanged(n: u64) -> (Given, Vec<i64>, Element) {
    let x = numbers(n, 4);
    let at = |i: usize| i / 64 * 64 + 63 - i % 64;
    let y = (0..n as usize).map(|i| x.get(at(i)).copied().unwrap_or(0));
    let y = y.collect();
    let given = Given {
        sizes: vec![("n", n)],
        inputs: vec![("x", x)],
    };
    (given, y, Element::F32)
}

/// Without the numbers: what a thread leaves in shared memory is not proven, so that a second write may be left out.
fn clean(n: u64) -> (Given, Vec<i64>, Element) {
    (exchanged(n).0, Vec::new(), Element::F32)
}

/// Held stages, order barriers and barriers of roles, products in flight.
#[test]
fn mutants_of_attention() {
    let of = |roles, persistent| Attention { roles, persistent };
    let subjects = vec![
        subject("exchange", exchange(false), [384, 70].map(exchanged).into()),
        subject(
            "exchange twice",
            exchange(true),
            [384, 70].map(clean).into(),
        ),
        of(2, false).subject(&[[200, 136], [40, 0]]),
        of(3, false).subject(&[[150, 72]]),
        of(1, true).subject(&[[330, 136]]),
        of(2, true).subject(&[[330, 72]]),
    ];
    none_is_refuted(subjects, 10, 2500);
}
