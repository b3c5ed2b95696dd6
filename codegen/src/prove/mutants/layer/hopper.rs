//! Kernels of roles, rings over TMA, `wgmma` and boxes.

use layout_core::atoms::{MMA_M16N8K16_F16, Scalar, wgmma};
use layout_core::{Layout, TiledMma};

use super::{Given, none_is_refuted, numbers, subject};
use crate::index::Expr;
use crate::ir::{Axis, Element, Kernel};
use crate::pipeline::{Ring, Staged, Stages, TileOrder, TileScheduler, WarpRole};
use crate::prove::mutants::Subject;
use crate::view::{Fragment, View, ViewError};

type Done = Result<(), ViewError>;

/// The schedules of `examples/hopper_gemm.rs`, and other orders of tiles.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Schedule {
    Plain,
    Persistent([u32; 2]),
    PingPong([u32; 2]),
    /// So many blocks that take one column of tiles after the other.
    Columns(u32),
    /// The same in groups of so many rows of tiles.
    Groups(u32, u32),
    Cluster,
}

/// c ← a·bᵀ, f16 with sums in f32; rounded to f16 if it leaves by TMA.
struct Product {
    schedule: Schedule,
    /// Columns of the tile of a role, which has 64 rows, and 64 along k.
    columns: i64,
    boxes: bool,
    /// b is k × n.
    transposed: bool,
    /// a and b have a ring each.
    apart: bool,
}

const MOST: i64 = 1 << 15;

/// The rings of a product.
#[expect(clippy::large_enum_variant, reason = "a kernel has few rings")]
enum Rings {
    Both(Ring<'static, 2>),
    Each(Ring<'static, 1>, Ring<'static, 1>),
}

/// What the roles of a product know.
struct Parts {
    arrays: [View; 3],
    /// Rows and columns of the tile of a role, and its extent along k.
    tile: [i64; 3],
    mma: TiledMma,
    rings: Rings,
    steps: Expr,
    transposed: bool,
    boxes: bool,
    cluster: bool,
}

impl Parts {
    fn load(&self, k: &mut Kernel, before: Expr, [i, j]: [Expr; 2]) -> Done {
        let ([a, b, _], [tm, tn, tk]) = (&self.arrays, self.tile);
        let of_a = |k: &mut Kernel, to: &View, t: Expr| {
            let from = a.tile(k, &[tm, tk], &[i, t])?;
            k.tma_load(&from, to)
        };
        let of_b = |k: &mut Kernel, to: &View, t: Expr| {
            let from = if self.transposed {
                b.tile(k, &[tk, tn], &[t, j])?
            } else {
                b.tile(k, &[tn, tk], &[j, t])?
            };
            if self.cluster {
                k.tma_multicast(&from, to, Axis::X)
            } else {
                k.tma_load(&from, to)
            }
        };
        match &self.rings {
            Rings::Both(ring) => k.produce(ring, before, self.steps, |k, [to_a, to_b], t| {
                of_a(k, &to_a, t)?;
                of_b(k, &to_b, t)
            }),
            Rings::Each(ring_a, ring_b) => k.for_loop("fill", 0, 1, self.steps, |k, t| {
                let index = k.add(before, t);
                k.fill_stage(ring_a, index, t, |k, [to]| of_a(k, &to, t))?;
                k.fill_stage(ring_b, index, t, |k, [to]| of_b(k, &to, t))
            }),
        }
    }

    fn multiply(&self, k: &mut Kernel, before: Expr, sums: &Fragment) -> Done {
        let product = |k: &mut Kernel, a: &View, b: &View| {
            if self.transposed {
                k.gemm(&self.mma, a, &b.transposed(), sums)
            } else {
                k.gemm(&self.mma, a, b, sums)
            }
        };
        match &self.rings {
            Rings::Both(ring) => {
                k.consume(ring, before, self.steps, |k, [a, b], _| product(k, &a, &b))
            }
            Rings::Each(ring_a, ring_b) => {
                k.for_loop("multiply", 0, 1, self.steps, |k, t| {
                    let index = k.add(before, t);
                    let ([a], [b]) = (k.arrived(ring_a, index, t)?, k.arrived(ring_b, index, t)?);
                    product(k, &a, &b)?;
                    k.wait_wgmma(1);
                    k.release(ring_a, index)?;
                    k.release(ring_b, index)
                })?;
                k.wait_wgmma(0);
                Ok(())
            }
        }
    }

    fn store(&self, k: &mut Kernel, at: [Expr; 2], (sums, thread): (&Fragment, Expr)) -> Done {
        let c = self.arrays[2].tile(k, &self.tile[..2], &at)?;
        if self.boxes {
            let sums = k.convert_fragment(sums, Element::F16)?;
            return k.tma_store(&c, &sums);
        }
        let c = c.partition_c(k, &self.mma, thread)?;
        k.store_fragment(&c.vectors(k, 2)?, sums)
    }
}

impl Product {
    fn tile(&self) -> [i64; 3] {
        [64, self.columns, 64]
    }

    fn kernel(&self) -> Result<Kernel, ViewError> {
        let [tm, tn, tk] = self.tile();
        let halves = if let Schedule::PingPong(_) = self.schedule {
            2
        } else {
            1
        };
        let mut k = Kernel::new("product", 128 * halves as u32 + 128);
        if self.schedule == Schedule::Cluster {
            k.clusters([2, 1, 1]);
        }
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, MOST));
        let of_b = if self.transposed {
            [depth, n]
        } else {
            [n, depth]
        };
        let (a, b) = (
            k.input("a", Element::F16, &[m, depth]),
            k.input("b", Element::F16, &of_b),
        );
        let out = if self.boxes {
            Element::F16
        } else {
            Element::F32
        };
        let c = k.output("c", out, &[m, n]);
        let one = Layout::flat(&[1, 1, 1], &[0, 0, 0])?;
        let mma = TiledMma::new(wgmma(tn, Scalar::F16, Scalar::F32)?, &one)?;
        let stages = Stages::new(3).lag(1).ping_pong(halves as u32);
        let shape = if self.transposed { [tk, tn] } else { [tn, tk] };
        let (tile_a, tile_b) = (
            Staged::new("tile_a", Element::F16, [tm, tk], &[]),
            Staged::new("tile_b", Element::F16, shape, &[]),
        );
        let rings = if self.apart {
            Rings::Each(k.tma_ring(stages, [tile_a])?, k.tma_ring(stages, [tile_b])?)
        } else {
            Rings::Both(k.tma_ring(stages, [tile_a, tile_b])?)
        };
        let p = Parts {
            arrays: [a, b, c],
            tile: self.tile(),
            mma,
            rings,
            steps: k.tiles_in(depth, tk)?,
            transposed: self.transposed,
            boxes: self.boxes,
            cluster: self.schedule == Schedule::Cluster,
        };
        for half in 0..halves {
            // As many as there are.
            let registers = if halves > 1 { 232 } else { 240 };
            let role = WarpRole::new(["first", "second"][half as usize], 4).registers(registers);
            k.role(role, |k, thread| {
                self.tiles(k, [m, n], &p, |k, at, (before, number)| {
                    let at = half_of(k, at, (half, halves));
                    let before = run_of(k, (before, number), p.steps, (half, halves));
                    let sums = k.accumulators(&p.mma, [tm, tn], thread)?;
                    match &p.rings {
                        Rings::Both(ring) if halves > 1 => {
                            k.ping_pong(ring, (half as u32, number), |k| {
                                p.multiply(k, before, &sums)
                            })?;
                        }
                        _ => p.multiply(k, before, &sums)?,
                    }
                    p.store(k, at, (&sums, thread))
                })
            })?;
        }
        k.producer(WarpRole::new("producer", 4).registers(40), |k| {
            self.tiles(k, [m, n], &p, |k, at, (before, number)| {
                for half in 0..halves {
                    let at = half_of(k, at, (half, halves));
                    let before = run_of(k, (before, number), p.steps, (half, halves));
                    p.load(k, before, at)?;
                }
                Ok(())
            })?;
            match &p.rings {
                Rings::Both(ring) if p.cluster => k.drain(ring, p.steps),
                _ => Ok(()),
            }
        })?;
        Ok(k)
    }

    /// For each tile of the block: where it is, how many iterations of a ring came before, and how many tiles.
    fn tiles(
        &self,
        k: &mut Kernel,
        [m, n]: [Expr; 2],
        p: &Parts,
        body: impl FnOnce(&mut Kernel, [Expr; 2], (Expr, Expr)) -> Done,
    ) -> Done {
        let [tm, tn, _] = self.tile();
        let extents = [m, n];
        let tiles = match self.schedule {
            Schedule::Plain | Schedule::Cluster => {
                let (at, none) = (
                    [k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?],
                    k.constant(0),
                );
                return body(k, at, (none, none));
            }
            Schedule::Persistent(blocks) => TileScheduler::rectangle(extents, [tm, tn], blocks),
            Schedule::PingPong(blocks) => TileScheduler::rectangle(extents, [2 * tm, tn], blocks),
            Schedule::Columns(blocks) => {
                TileScheduler::linear(extents, [tm, tn], blocks, TileOrder::Columns)
            }
            Schedule::Groups(blocks, rows) => {
                TileScheduler::linear(extents, [tm, tn], blocks, TileOrder::Groups(rows))
            }
        };
        k.persistent(&tiles, |k, tile| {
            let before = k.mul(tile.number(), p.steps);
            body(k, tile.at(), (before, tile.number()))
        })
    }

    /// A launch with its result.
    fn launch(&self, [m, n, depth]: [u64; 3]) -> (Given, Vec<i64>, Element) {
        let (a, b) = (numbers(m * depth, 1), numbers(n * depth, 2));
        let of_b = |t: u64, j: u64| {
            b[if self.transposed {
                t * n + j
            } else {
                j * depth + t
            } as usize]
        };
        let sum = |i: u64, j: u64| {
            (0..depth)
                .map(|t| a[(i * depth + t) as usize] * of_b(t, j))
                .sum()
        };
        let c = (0..m * n).map(|at| sum(at / n, at % n)).collect();
        let given = Given {
            sizes: vec![("m", m), ("n", n), ("k", depth)],
            inputs: vec![("a", a), ("b", b)],
        };
        (
            given,
            c,
            if self.boxes {
                Element::F16
            } else {
                Element::F32
            },
        )
    }

    fn subject(&self, sizes: &[[u64; 3]]) -> Subject {
        let Self {
            schedule,
            columns,
            boxes,
            transposed,
            apart,
        } = self;
        let name = format!(
            "{schedule:?} product, {columns} columns, boxes {boxes}, transposed {transposed}, two rings {apart}"
        );
        let launches = sizes.iter().map(|&size| self.launch(size)).collect();
        subject(&name, self.kernel(), launches)
    }
}

/// The rows of a role in a ping-pong schedule.
fn half_of(k: &mut Kernel, [i, j]: [Expr; 2], (half, of): (i64, i64)) -> [Expr; 2] {
    [k.linear(&[(of, i)], half), j]
}

/// How many iterations of the ring come before a role's run.
fn run_of(
    k: &mut Kernel,
    (before, number): (Expr, Expr),
    steps: Expr,
    (half, of): (i64, i64),
) -> Expr {
    if of == 1 {
        return before;
    }
    let number = k.linear(&[(of, number)], half);
    k.mul(number, steps)
}

/// o = (q·kᵀ)·v by so many roles, each with rows of its own: two rings, and the rounded scores as the first factor from registers.
fn scores(roles: i64) -> Result<Kernel, ViewError> {
    let (rows, keys, d) = (64, 32, 32);
    let mut k = Kernel::new("scores", 128 * roles as u32 + 128);
    let [m, n] = ["m", "n"].map(|name| k.size(name, MOST));
    let width = k.constant(d);
    let [q, keys_in, values] = [("q", m), ("keys", n), ("values", n)]
        .map(|(name, rows)| k.input(name, Element::F16, &[rows, width]));
    let o = k.output("o", Element::F32, &[m, width]);
    let i = k.tiles(Axis::X, m, rows * roles)?;
    let one = Layout::flat(&[1, 1, 1], &[0, 0, 0])?;
    let mma = |n| -> Result<TiledMma, ViewError> {
        Ok(TiledMma::new(wgmma(n, Scalar::F16, Scalar::F32)?, &one)?)
    };
    let (first, second) = (mma(keys)?, mma(d)?);
    let mut ring = |name, stages| {
        k.tma_ring(
            Stages::new(stages),
            [Staged::new(name, Element::F16, [keys, d], &[])],
        )
    };
    let (ring_k, ring_v) = (ring("tile_k", 2)?, ring("tile_v", 3)?);
    let (zero, steps) = (k.constant(0), k.tiles_in(n, keys)?);
    for part in 0..roles {
        let name = ["first", "second"][part as usize];
        k.role(WarpRole::new(name, 4).registers(160), |k, thread| {
            let row = k.linear(&[(roles, i)], part);
            let q = q.tile(k, &[rows, d], &[row, zero])?;
            let q = q.partition_a(k, &first, thread)?;
            let q = k.load_fragment(&q.vectors(k, 2)?)?;
            let sums = k.accumulators(&second, [rows, d], thread)?;
            k.for_loop("keys", 0, 1, steps, |k, step| {
                let scores = k.accumulators(&first, [rows, keys], thread)?;
                let [tile] = k.arrived(&ring_k, step, step)?;
                k.gemm(&first, &q, &tile, &scores)?;
                k.wait_wgmma(0);
                k.release(&ring_k, step)?;
                let weights = k.convert_fragment(&scores, Element::F16)?;
                let [tile] = k.arrived(&ring_v, step, step)?;
                k.gemm(&second, &weights, &tile.transposed(), &sums)?;
                k.wait_wgmma(0);
                k.release(&ring_v, step)
            })?;
            let o = o.tile(k, &[rows, d], &[row, zero])?;
            let o = o.partition_c(k, &second, thread)?;
            k.store_fragment(&o.vectors(k, 2)?, &sums)
        })?;
    }
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.for_loop("fill", 0, 1, steps, |k, step| {
            for (ring, from) in [(&ring_k, &keys_in), (&ring_v, &values)] {
                let from = from.tile(k, &[keys, d], &[step, zero])?;
                k.fill_stage(ring, step, step, |k, [to]| k.tma_load(&from, &to))?;
            }
            Done::Ok(())
        })
    })?;
    Ok(k)
}

fn of_scores([m, n]: [u64; 2]) -> (Given, Vec<i64>, Element) {
    let d = 32;
    let (q, keys, values) = (
        numbers(m * d as u64, 1),
        numbers(n * d as u64, 2),
        numbers(n * d as u64, 3),
    );
    let mut o = vec![0; m as usize * d];
    for (row, o) in q.chunks(d).zip(o.chunks_mut(d)) {
        for (key, value) in keys.chunks(d).zip(values.chunks(d)) {
            let score: i64 = row.iter().zip(key).map(|(x, y)| x * y).sum();
            for (o, v) in o.iter_mut().zip(value) {
                *o += score * v;
            }
        }
    }
    let given = Given {
        sizes: vec![("m", m), ("n", n)],
        inputs: vec![("q", q), ("keys", keys), ("values", values)],
    };
    (given, o, Element::F32)
}

/// c = 3 as fragments of `mma.sync` that leave by TMA, without roles.
fn boxes() -> Result<Kernel, ViewError> {
    let mut k = Kernel::new("boxes", 64);
    let (m, n) = (k.size("m", MOST), k.size("n", MOST));
    let c = k.output("c", Element::F16, &[m, n]);
    let at = [k.tiles(Axis::X, m, 32)?, k.tiles(Axis::Y, n, 48)?];
    let [rows, columns] = [32, 16].map(|extent| Layout::mode(extent, 1));
    let columns = columns?;
    let warps = Layout::flat(&[2, 1, 1], &[1, 0, 0])?;
    let mma = TiledMma::with_tile(MMA_M16N8K16_F16, &warps, &[rows?, columns, columns])?;
    let thread = k.thread();
    let sums = k.accumulators(&mma, [32, 48], thread)?;
    sums.update(&mut k, |k, x| x.add(k, 3.0))?;
    let sums = k.convert_fragment(&sums, Element::F16)?;
    let c = c.tile(&mut k, &[32, 48], &at)?;
    k.tma_store(&c, &sums)?;
    Ok(k)
}

/// A persistent product of one block whose result leaves by boxes.
pub(in crate::prove::mutants) fn by_boxes(sizes: &[[u64; 3]]) -> Subject {
    let product = Product {
        schedule: Schedule::Persistent([1, 1]),
        columns: 128,
        boxes: true,
        transposed: false,
        apart: false,
    };
    product.subject(sizes)
}

/// The four schedules, with a ring of both operands or one each, and results that leave by boxes or not.
#[test]
fn mutants_of_products() {
    let product = |schedule, boxes, transposed, apart| Product {
        schedule,
        columns: 64,
        boxes,
        transposed,
        apart,
    };
    let subjects = vec![
        product(Schedule::Plain, false, false, false).subject(&[[72, 70, 264]]),
        product(Schedule::Plain, true, true, true).subject(&[[72, 72, 264]]),
        product(Schedule::Persistent([1, 2]), true, false, false).subject(&[[136, 200, 136]]),
        product(Schedule::Persistent([2, 1]), false, true, false).subject(&[[200, 136, 136]]),
        product(Schedule::PingPong([1, 1]), false, false, false).subject(&[[136, 72, 264]]),
        product(Schedule::Columns(3), false, false, false).subject(&[[136, 200, 136]]),
        product(Schedule::Groups(2, 2), true, false, false).subject(&[[200, 136, 72]]),
        product(Schedule::Cluster, true, false, false).subject(&[[136, 72, 264]]),
    ];
    none_is_refuted(subjects, 6, 900);
}

/// Products in a row by one role and by two, and boxes without roles.
#[test]
fn mutants_of_scores_and_boxes() {
    let scores = |roles, name: &str| {
        let launches = [[200, 136], [40, 0]].map(of_scores);
        subject(name, scores(roles), launches.into())
    };
    let boxes_of = |m, n| {
        let given = Given {
            sizes: vec![("m", m), ("n", n)],
            inputs: Vec::new(),
        };
        (given, vec![3; (m * n) as usize], Element::F16)
    };
    let subjects = vec![
        scores(1, "scores of one role"),
        scores(2, "scores of two roles"),
        subject("boxes", boxes(), vec![boxes_of(33, 136), boxes_of(1, 8)]),
    ];
    none_is_refuted(subjects, 12, 500);
}
