//! Rings over TMA, roles of warps and products of warpgroups: what is right, what a stranger gets wrong, and what is said of it.

use half::f16;
use tilewright::codegen::Arch;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, WarpRole};
use tilewright::codegen::value::{Predicate, S32};
use tilewright::codegen::view::{Combine, View, ViewError};
use tilewright::host::{Arg, Contract, On, Outcome, Scalar, run};
use tilewright::{Layout, TiledMma, atoms};

use super::{Done, Result, layout};

pub(super) const HOPPER: Arch = Arch(90);

/// c of 64 × 64 tiles ← a·bᵀ, and what it is made of.
struct Product {
    k: Kernel,
    arrays: [View; 3],
    at: [Expr; 2],
    mma: TiledMma,
    ring: Ring<'static, 2>,
    zero: Expr,
    steps: Expr,
}

impl Product {
    fn new(stages: Stages) -> Result<Self> {
        let mut k = Kernel::new("product", 256);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, 1 << 15));
        let (a, b) = (
            k.input("a", Element::F16, &[m, depth]),
            k.input("b", Element::F16, &[n, depth]),
        );
        let c = k.output("c", Element::F32, &[m, n]);
        let at = [k.tiles(Axis::X, m, 64)?, k.tiles(Axis::Y, n, 64)?];
        let mma = mma(64, "(1,1,1):(0,0,0)")?;
        let tiles = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::F16, [64, 64], &[]));
        let ring = k.tma_ring(stages, tiles)?;
        let (zero, steps) = (k.constant(0), k.tiles_in(depth, 64)?);
        Ok(Self {
            k,
            arrays: [a, b, c],
            at,
            mma,
            ring,
            zero,
            steps,
        })
    }

    /// The producer, with what it does in a step after its loads.
    fn produce(&mut self, more: impl FnOnce(&mut Kernel, [View; 2], Expr) -> Done) -> Done {
        let ([a, b, _], [i, j]) = (&self.arrays, self.at);
        let (ring, zero, steps) = (&self.ring, self.zero, self.steps);
        self.k.producer(WarpRole::new("producer", 4), |k| {
            k.produce(ring, zero, steps, |k, [to_a, to_b], step| {
                let (from_a, from_b) = (
                    a.tile(k, &[64, 64], &[i, step])?,
                    b.tile(k, &[64, 64], &[j, step])?,
                );
                k.tma_load(&from_a, &to_a)?;
                k.tma_load(&from_b, &to_b)?;
                more(k, [to_a, to_b], step)
            })
        })
    }

    /// The consumers, with what they do in a step after their products.
    fn consume(&mut self, more: impl FnOnce(&mut Kernel, &Ring<'static, 2>, Expr) -> Done) -> Done {
        let ([_, _, c], [i, j]) = (&self.arrays, self.at);
        let (ring, mma, zero, steps) = (&self.ring, &self.mma, self.zero, self.steps);
        self.k.role(WarpRole::new("consumers", 4), |k, thread| {
            let sums = k.accumulators(mma, [64, 64], thread)?;
            k.consume(ring, zero, steps, |k, [a, b], step| {
                k.gemm(mma, &a, &b, &sums)?;
                more(k, ring, step)
            })?;
            let c = c.tile(k, &[64, 64], &[i, j])?.partition_c(k, mma, thread)?;
            k.store_fragment(&c.vectors(k, 2)?, &sums)
        })
    }
}

pub(super) fn mma(n: i64, groups: &str) -> Result<TiledMma> {
    let atom = atoms::wgmma(n, atoms::Scalar::F16, atoms::Scalar::F32)?;
    Ok(TiledMma::new(atom, &layout(groups))?)
}

/// Small whole numbers: sums of their products are exact.
pub(super) fn numbers(count: usize, seed: usize) -> Vec<f16> {
    let all = (0..count).map(|i| ((i * 7 + seed * 5 + i / 13) % 9) as f32 - 4.0);
    all.map(f16::from_f32).collect()
}

pub(super) fn size(n: usize) -> Arg<'static> {
    Arg::from(n as u32)
}

pub(super) fn clean(outcome: &Outcome) {
    outcome.assert_clean();
}

#[test]
fn products_of_any_number_of_steps() -> Result {
    for stages in [Stages::new(1), Stages::new(2).lag(1), Stages::new(5).lag(3)] {
        let mut p = Product::new(stages)?;
        p.consume(|_, _, _| Ok(()))?;
        p.produce(|_, _, _| Ok(()))?;
        let kernel = p.k.build(HOPPER)?;
        assert!(kernel.ptx.contains(".target sm_90a"));
        for (m, n, depth) in [(64, 64, 64), (1, 200, 8), (65, 63, 1000), (70, 64, 0)] {
            let (a, b) = (numbers(m * depth, 1), numbers(n * depth, 2));
            let args = [
                ("m", size(m)),
                ("n", size(n)),
                ("k", size(depth)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<f32>(m * n)),
            ];
            let outcome = run(&kernel, On::Emulator, args)?;
            clean(&outcome);
            let c: Vec<f32> = outcome.get("c")?;
            for (at, &c) in c.iter().enumerate() {
                let row = &a[at / n * depth..][..depth];
                let column = &b[at % n * depth..][..depth];
                let sum: f32 = row
                    .iter()
                    .zip(column)
                    .map(|(x, y)| x.to_f32() * y.to_f32())
                    .fold(0.0, |sum, x| sum + x);
                assert_eq!(
                    c.to_bits(),
                    sum.to_bits(),
                    "{m} x {n} x {depth}, element {at}"
                );
            }
        }
    }
    Ok(())
}

/// Products in a row, as attention has them: the scores of 128 queries with 64 keys, rounded, are the first factor of the second product, without a move. Keys and
/// values have rings of their own; queries come to registers once.
#[test]
fn scores_are_the_first_factor_of_the_next_product() -> Result {
    let (queries, keys, d) = (128, 64, 64);
    let mut k = Kernel::new("scores", 384);
    let [m, n] = ["m", "n"].map(|name| k.size(name, 1 << 15));
    let width = k.constant(d);
    let [q, keys_in, values] = [("q", m), ("keys", n), ("values", n)]
        .map(|(name, rows)| k.input(name, Element::F16, &[rows, width]));
    let o = k.output("o", Element::F32, &[m, width]);
    let i = k.tiles(Axis::X, m, queries)?;
    let (first, second) = (mma(keys, "(2,1,1):(1,0,0)")?, mma(d, "(2,1,1):(1,0,0)")?);
    let ring_k = k.tma_ring(
        Stages::new(2),
        [Staged::new("tile_k", Element::F16, [keys, d], &[])],
    )?;
    let ring_v = k.tma_ring(
        Stages::new(3),
        [Staged::new("tile_v", Element::F16, [keys, d], &[])],
    )?;
    let (zero, steps) = (k.constant(0), k.tiles_in(n, keys)?);
    k.role(WarpRole::new("consumers", 8).registers(208), |k, thread| {
        let q = q
            .tile(k, &[queries, d], &[i, zero])?
            .partition_a(k, &first, thread)?;
        let q = k.load_fragment(&q.vectors(k, 2)?)?;
        let sums = k.accumulators(&second, [queries, d], thread)?;
        k.for_loop("keys", 0, 1, steps, |k, step| {
            let scores = k.accumulators(&first, [queries, keys], thread)?;
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
        let o = o
            .tile(k, &[queries, d], &[i, zero])?
            .partition_c(k, &second, thread)?;
        k.store_fragment(&o.vectors(k, 2)?, &sums)
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.for_loop("fill", 0, 1, steps, |k, step| {
            for (ring, from) in [(&ring_k, &keys_in), (&ring_v, &values)] {
                let from = from.tile(k, &[keys, d], &[step, zero])?;
                k.fill_stage(ring, step, step, |k, [to]| k.tma_load(&from, &to))?;
            }
            Done::Ok(())
        })
    })?;
    let kernel = k.build(HOPPER)?;
    let d = d as usize;
    for (m, n) in [(128, 64), (100, 200), (130, 0)] {
        let (q, keys, values) = (numbers(m * d, 1), numbers(n * d, 2), numbers(n * d, 3));
        let args = [
            ("m", size(m)),
            ("n", size(n)),
            ("q", Arg::input(&q)),
            ("keys", Arg::input(&keys)),
            ("values", Arg::input(&values)),
            ("o", Arg::output::<f32>(m * d)),
        ];
        let outcome = run(&kernel, On::Emulator, args)?;
        clean(&outcome);
        let o: Vec<f32> = outcome.get("o")?;
        for (i, row) in q.chunks(d).enumerate() {
            let dot = |key: &[f16]| {
                row.iter()
                    .zip(key)
                    .map(|(x, y)| x.to_f32() * y.to_f32())
                    .fold(0.0, |sum, x| sum + x)
            };
            let scores: Vec<f32> = keys
                .chunks(d)
                .map(|key| f16::from_f32(dot(key)).to_f32())
                .collect();
            for j in 0..d {
                let sum: f32 = scores
                    .iter()
                    .enumerate()
                    .map(|(t, s)| s * values[t * d + j].to_f32())
                    .fold(0.0, |sum, x| sum + x);
                assert_eq!(
                    o[i * d + j].to_bits(),
                    sum.to_bits(),
                    "{m} queries, {n} keys, row {i}, column {j}"
                );
            }
        }
    }
    Ok(())
}

/// Accumulators of `mma.sync` leave by TMA as well, and any number of columns that is a multiple of 16 bytes.
#[test]
fn fragments_are_stored_as_boxes() -> Result {
    for (columns, element) in [
        (16, Element::F16),
        (48, Element::F16),
        (64, Element::Bf16),
        (128, Element::F16),
    ] {
        let mut k = Kernel::new("boxes", 64);
        let (m, n) = (k.size("m", 1 << 15), k.size("n", 1 << 15));
        let c = k.output("c", element, &[m, n]);
        let at = [k.tiles(Axis::X, m, 32)?, k.tiles(Axis::Y, n, columns)?];
        let tile = [
            Layout::mode(32, 1)?,
            Layout::mode(16, 1)?,
            Layout::mode(16, 1)?,
        ];
        let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &layout("(2,1,1):(1,0,0)"), &tile)?;
        let thread = k.thread();
        let sums = k.accumulators(&mma, [32, columns], thread)?;
        sums.update(&mut k, |k, x| x.add(k, 3.0))?;
        let sums = k.convert_fragment(&sums, element)?;
        let c = c.tile(&mut k, &[32, columns], &at)?;
        k.tma_store(&c, &sums)?;
        let kernel = k.build(HOPPER)?;
        assert!(kernel.ptx.contains(".target sm_90\n"));
        for (m, n) in [(32, 128), (33, 8), (1, 136)] {
            let output = if element == Element::F16 {
                Arg::output::<f16>(m * n)
            } else {
                Arg::output::<half::bf16>(m * n)
            };
            let outcome = run(
                &kernel,
                On::Emulator,
                [("m", size(m)), ("n", size(n)), ("c", output)],
            )?;
            clean(&outcome);
            outcome.assert_counted_as_proven();
            let three = if element == Element::F16 {
                f16::from_f32(3.0).to_bits()
            } else {
                half::bf16::from_f32(3.0).to_bits()
            };
            assert!(
                outcome
                    .bytes("c")?
                    .chunks(2)
                    .all(|x| x == three.to_le_bytes())
            );
        }
        let output = if element == Element::F16 {
            Arg::output::<f16>(96)
        } else {
            Arg::output::<half::bf16>(96)
        };
        let args = [("m", size(8)), ("n", size(12)), ("c", output)];
        let error = run(&kernel, On::Emulator, args).unwrap_err();
        assert!(error.to_string().contains("multiples of 8"), "{error}");
    }
    Ok(())
}

/// What the prover says of a product whose author does something more in a step.
fn refused(build: impl FnOnce(&mut Product) -> Done, said: &str) {
    let refusal = || -> Result<String> {
        let mut p = Product::new(Stages::new(3).lag(1))?;
        build(&mut p)?;
        Ok(p.k.build(HOPPER).expect_err(said).to_string())
    };
    let error = refusal().expect("it is written");
    assert!(error.contains(said), "`{error}` instead of `{said}`");
}

#[test]
fn misuse_of_a_ring_is_refused() {
    // A step more is read than is filled.
    refused(
        |p| {
            let one = p.k.constant(1);
            let filled = p.steps;
            p.steps = p.k.add(filled, one);
            p.consume(|_, _, _| Ok(()))?;
            p.steps = filled;
            p.produce(|_, _, _| Ok(()))
        },
        "roles use stages another number of times",
    );
    // The first stage is left out.
    refused(
        |p| {
            p.consume(|_, _, _| Ok(()))?;
            p.zero = p.k.constant(1);
            p.produce(|_, _, _| Ok(()))
        },
        "the first use in a loop is not the one after those before it",
    );
    // A tile comes twice.
    refused(
        |p| {
            let (a, [i, _]) = (p.arrays[0].clone(), p.at);
            p.consume(|_, _, _| Ok(()))?;
            p.produce(|k, [to, _], step| {
                let from = a.tile(k, &[64, 64], &[i, step])?;
                k.tma_load(&from, &to)
            })
        },
        "two copies to the same bytes",
    );
    // Given back twice.
    refused(
        |p| {
            p.consume(|k, ring, step| k.release(ring, step))?;
            p.produce(|_, _, _| Ok(()))
        },
        "a stage is released",
    );
    // The sums are read in the step.
    refused(
        |p| {
            let ([_, _, c], [i, j]) = (&p.arrays, p.at);
            let (ring, mma, zero, steps) = (&p.ring, &p.mma, p.zero, p.steps);
            p.k.role(WarpRole::new("consumers", 4), |k, thread| {
                let sums = k.accumulators(mma, [64, 64], thread)?;
                k.consume(ring, zero, steps, |k, [a, b], _| {
                    k.gemm(mma, &a, &b, &sums)?;
                    sums.update(k, |k, x| x.add(k, 1.0))
                })?;
                let c = c.tile(k, &[64, 64], &[i, j])?.partition_c(k, mma, thread)?;
                k.store_fragment(&c.vectors(k, 2)?, &sums)
            })?;
            p.produce(|_, _, _| Ok(()))
        },
        "products",
    );
}

/// What the layer says of a kernel that is not written as it is to be.
fn malformed(build: impl FnOnce(&mut Kernel) -> Done, said: &str) {
    let mut k = Kernel::new("roles", 256);
    let done = build(&mut k);
    let error = match done {
        Err(error) => error.to_string(),
        Ok(()) => k.build(HOPPER).expect_err(said).to_string(),
    };
    assert!(error.contains(said), "`{error}` instead of `{said}`");
}

#[test]
fn roles_have_the_registers_of_a_block() -> Result {
    let with = |registers: [u32; 3]| {
        let mut k = Kernel::new("roles", 384);
        for (name, registers) in ["first", "second", "third"].into_iter().zip(registers) {
            let role = WarpRole::new(name, 4).registers(registers);
            k.role(role, |_, _| Done::Ok(()))?;
        }
        Ok::<_, ViewError>(k.build(HOPPER).map_err(|e| e.to_string()))
    };
    with([240, 240, 24])??;
    let error = with([240, 240, 40])?.expect_err("66,560 registers");
    assert!(error.contains("its roles have 66560 registers"), "{error}");
    Ok(())
}

#[test]
fn wrong_roles_and_rings_are_told() {
    let idle =
        |k: &mut Kernel, warps: u32| k.role(WarpRole::new("idle", warps), |_, _| Done::Ok(()));
    let tile = || [Staged::new("tile", Element::F16, [64, 64], &[])];
    malformed(|k| idle(k, 4), "roles of 128 of the block's 256 threads");
    malformed(|k| idle(k, 0), "the role `idle` of 0 warps");
    malformed(
        |k| idle(k, 9),
        "the block has 256 threads, of which 0 have a role",
    );
    malformed(
        |k| {
            idle(k, 8)?;
            idle(k, 1)
        },
        "the role `idle` of 1 warps",
    );
    malformed(
        |k| k.role(WarpRole::new("outer", 8), |k, _| idle(k, 4)),
        "begins in a role",
    );
    malformed(
        |k| {
            idle(k, 4)?;
            k.barrier();
            idle(k, 4)
        },
        "something is done between",
    );
    malformed(
        |k| k.role(WarpRole::new("many", 8).registers(248), |_, _| Done::Ok(())),
        "248 registers a thread of the role `many`",
    );
    malformed(
        |k| k.role(WarpRole::new("few", 2).registers(40), |_, _| Done::Ok(())),
        "whole warpgroups",
    );
    malformed(
        |k| k.tma_ring(Stages::new(0), tile()).map(|_| ()),
        "a ring of 0 stages",
    );
    malformed(
        |k| k.tma_ring(Stages::new(2).lag(2), tile()).map(|_| ()),
        "a lag of 2 steps of 2 stages",
    );
    malformed(
        |k| k.tma_ring(Stages::new(2).ping_pong(9), tile()).map(|_| ()),
        "9 roles in a ping-pong schedule",
    );
    malformed(
        |k| {
            let narrow = [Staged::new("tile", Element::F16, [64, 8], &[])];
            k.tma_ring(Stages::new(2), narrow).map(|_| ())
        },
        "multiples of 32 bytes",
    );
    malformed(
        |k| {
            let ring = k.tma_ring(Stages::new(2), tile())?;
            let zero = k.constant(0);
            k.arrived(&ring, zero, zero).map(|_| ())
        },
        "outside of roles",
    );
    malformed(
        |k| {
            let ring = k.ring(2, tile(), |_, _, _| Ok(()))?;
            let zero = k.constant(0);
            k.role(WarpRole::new("all", 8), |k, _| {
                k.arrived(&ring, zero, zero).map(|_| ())
            })
        },
        "a ring over TMA (`Kernel::tma_ring`)",
    );
    malformed(
        |k| {
            let ring = k.tma_ring(Stages::new(2), tile())?;
            let steps = k.size("n", 100);
            k.pipeline(&[&ring], steps, |_, _| Done::Ok(()))
        },
        "the ring over TMA `tile`",
    );
    malformed(
        |k| {
            let n = k.size("n", 100);
            let two = k.constant(2);
            let odd = k.mul(n, two);
            let odd = k.add(odd, two);
            let x = k.input("x", Element::F16, &[n, odd]);
            let ring = k.tma_ring(Stages::new(2), tile())?;
            let zero = k.constant(0);
            k.producer(WarpRole::new("all", 8), |k| {
                k.fill_stage(&ring, zero, zero, |k, [to]| {
                    let from = x.tile(k, &[64, 64], &[zero, zero])?;
                    k.tma_load(&from, &to)
                })
            })
        },
        "its rows are multiples of 16 bytes",
    );
    malformed(
        |k| {
            k.clusters([2, 1, 1]);
            Ok(())
        },
        "clusters of 2 blocks along x, which counts no tiles",
    );
    malformed(
        |k| {
            k.clusters([9, 9, 1]);
            Ok(())
        },
        "a cluster has 1 to 8",
    );
}

#[test]
fn wrong_operands_of_wgmma_are_told() -> Result {
    let mut k = Kernel::new("k", 128);
    let thread = k.thread();
    let of_64 = mma(64, "(1,1,1):(0,0,0)")?;
    let sums = k.accumulators(&of_64, [64, 64], thread)?;
    let plain = k.shared("plain", Element::F16, &super::swizzled("(64,64):(64,1)"))?;
    let other = k.shared("other", Element::Bf16, &super::swizzled("(64,64):(64,1)"))?;
    let small = k.shared("small", Element::F16, &super::swizzled("(64,32):(32,1)"))?;
    let halves = k.convert_fragment(&sums, Element::F16)?;
    let mut said = |a: &View, b: &View| k.gemm(&of_64, a, b, &sums).unwrap_err().to_string();
    assert!(said(&plain, &plain).contains("a tile of a stage of a ring over TMA"));
    assert!(said(&other, &other).contains("bf16"));
    assert!(said(&small, &plain).contains("64x64"));
    let error = k.gemm(&of_64, &halves, &halves, &sums).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("wgmma reads B from shared memory"),
        "{error}"
    );
    // mma.sync takes fragments.
    let warp = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(4,1,1):(1,0,0)"))?;
    let of_warps = k.accumulators(&warp, [64, 64], thread)?;
    let error = k.gemm(&warp, &plain, &plain, &of_warps).unwrap_err();
    assert!(error.to_string().contains("load it first"), "{error}");
    Ok(())
}

/// Rings that roles use in other orders make them wait for each other: a producer that fills one ring whole before the other, for consumers that take turns between them.
#[test]
fn rings_are_used_in_one_order() -> Result {
    let build = |apart: bool| -> Result<std::result::Result<(), String>> {
        let mut k = Kernel::new("product", 256);
        let [m, depth] = ["m", "k"].map(|name| k.size(name, 1 << 15));
        let sixty_four = k.constant(64);
        let (a, b) = (
            k.input("a", Element::F16, &[m, depth]),
            k.input("b", Element::F16, &[sixty_four, depth]),
        );
        let c = k.output("c", Element::F32, &[m, sixty_four]);
        let i = k.tiles(Axis::X, m, 64)?;
        let mma = mma(64, "(1,1,1):(0,0,0)")?;
        let [of_a, of_b] = ["tile_a", "tile_b"].map(|name| {
            k.tma_ring(
                Stages::new(2),
                [Staged::new(name, Element::F16, [64, 64], &[])],
            )
        });
        let (of_a, of_b) = (of_a?, of_b?);
        let (zero, steps) = (k.constant(0), k.tiles_in(depth, 64)?);
        k.role(WarpRole::new("consumers", 4), |k, thread| {
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            k.for_loop("multiply", 0, 1, steps, |k, step| {
                let ([a], [b]) = (k.arrived(&of_a, step, step)?, k.arrived(&of_b, step, step)?);
                k.gemm(&mma, &a, &b, &sums)?;
                k.wait_wgmma(0);
                k.release(&of_a, step)?;
                k.release(&of_b, step)
            })?;
            let c = c
                .tile(k, &[64, 64], &[i, zero])?
                .partition_c(k, &mma, thread)?;
            k.store_fragment(&c.vectors(k, 2)?, &sums)
        })?;
        k.producer(WarpRole::new("producer", 4), |k| {
            let load = |k: &mut Kernel, x: &View, row: Expr, step: Expr, to: &View| -> Done {
                let from = x.tile(k, &[64, 64], &[row, step])?;
                k.tma_load(&from, to)
            };
            if apart {
                k.produce(&of_a, zero, steps, |k, [to], step| {
                    load(k, &a, i, step, &to)
                })?;
                return k.produce(&of_b, zero, steps, |k, [to], step| {
                    load(k, &b, zero, step, &to)
                });
            }
            k.for_loop("fill", 0, 1, steps, |k, step| {
                k.fill_stage(&of_b, step, step, |k, [to]| load(k, &b, zero, step, &to))?;
                k.fill_stage(&of_a, step, step, |k, [to]| load(k, &a, i, step, &to))
            })
        })?;
        Ok(k.build(HOPPER).map(|_| ()).map_err(|e| e.to_string()))
    };
    build(false)?.expect("in the same loops");
    let error = build(true)?.expect_err("one ring behind the other");
    assert!(
        error.contains("so that they may wait for each other forever"),
        "{error}"
    );
    Ok(())
}

/// What a copy writes at some time until the kernel ends, no thread reads; and a stage that nobody reads is not filled.
#[test]
fn copies_without_an_end_are_refused() -> Result {
    let mut k = Kernel::new("boxes", 128);
    let (m, n) = (k.size("m", 1 << 15), k.constant(64));
    let c = k.output("c", Element::F16, &[m, n]);
    let (i, zero, thread) = (k.tiles(Axis::X, m, 64)?, k.constant(0), k.thread());
    let mma = mma(64, "(1,1,1):(0,0,0)")?;
    let sums = k.accumulators(&mma, [64, 64], thread)?;
    let c = c.tile(&mut k, &[64, 64], &[i, zero])?;
    let old = c.partition_c(&mut k, &mma, thread)?;
    let old = k.load_fragment(&old.vectors(&k, 2)?)?;
    let sums = k.convert_fragment(&sums, Element::F16)?;
    k.tma_store(&c, &sums)?;
    let _ = old;
    let error = k.build(HOPPER).expect_err("it is read").to_string();
    assert!(error.contains("a store by TMA writes it"), "{error}");

    let mut k = Kernel::new("nobody", 128);
    let (m, n) = (k.size("m", 1 << 15), k.constant(64));
    let a = k.input("a", Element::F16, &[m, n]);
    let ring = k.tma_ring(
        Stages::new(2),
        [Staged::new("tile", Element::F16, [64, 64], &[])],
    )?;
    let (zero, one) = (k.constant(0), k.constant(1));
    k.producer(WarpRole::new("producer", 4), |k| {
        k.produce(&ring, zero, one, |k, [to], step| {
            let from = a.tile(k, &[64, 64], &[step, zero])?;
            k.tma_load(&from, &to)
        })
    })?;
    let error = k.build(HOPPER).expect_err("nobody reads").to_string();
    assert!(error.contains("no role reads what is filled"), "{error}");

    // Warpgroups that share k would have the same sums.
    let mut k = Kernel::new("k", 256);
    let thread = k.thread();
    let shared = self::mma(64, "(1,1,2):(0,0,1)")?;
    let sums = k.accumulators(&shared, [64, 64], thread);
    assert!(
        sums.is_err()
            || sums.is_ok_and(|sums| {
                let plain = k
                    .shared("plain", Element::F16, &super::swizzled("(64,64):(64,1)"))
                    .expect("shared");
                k.gemm(&shared, &plain, &plain, &sums).is_err()
            })
    );
    Ok(())
}

/// A copy is to the whole tile of a stage, of an array as it is declared, and of views of this kernel.
#[test]
fn copies_of_parts_are_refused() -> Result {
    let mut said = Vec::new();
    let mut other = Kernel::new("other", 32);
    let far = other.size("m", 100);
    let elsewhere = other.input("x", Element::F16, &[far, far]);
    let mut k = Kernel::new("parts", 256);
    let [m, n] = ["m", "n"].map(|name| k.size(name, 1 << 15));
    let a = k.input("a", Element::F16, &[m, n]);
    let ring = k.tma_ring(
        Stages::new(2),
        [Staged::new("tile", Element::F16, [64, 64], &[])],
    )?;
    let (zero, half) = (k.constant(0), k.constant(32));
    k.producer(WarpRole::new("producer", 8), |k| {
        k.fill_stage(&ring, zero, zero, |k, [to]| {
            let from = a.tile(k, &[64, 64], &[zero, zero])?;
            k.tma_load(&from, &to)?;
            let part = a
                .part(k, &[zero, zero], &[m, half])?
                .tile(k, &[64, 64], &[zero, zero])?;
            said.push(k.tma_load(&part, &to));
            let (rows, some) = (
                a.tile(k, &[32, 64], &[zero, zero])?,
                to.tile(k, &[32, 64], &[zero, zero])?,
            );
            said.push(k.tma_load(&rows, &some));
            said.push(k.tma_load(&elsewhere, &to));
            said.push(k.tma_load(&to, &to));
            Done::Ok(())
        })
    })?;
    let said: Vec<String> = said
        .into_iter()
        .map(|done| done.unwrap_err().to_string())
        .collect();
    for (said, what) in said.iter().zip([
        "a whole array",
        "the whole tile of a stage",
        "the kernel `other`",
        "global memory",
    ]) {
        assert!(said.contains(what), "`{said}` instead of `{what}`");
    }
    for shape in [
        [64, i64::MAX],
        [64, i64::MIN],
        [1 << 62, 64],
        [i64::MAX & !7, 64],
    ] {
        let mut k = Kernel::new("k", 128);
        assert!(
            k.tma_ring(
                Stages::new(2),
                [Staged::new("tile", Element::F16, shape, &[])]
            )
            .is_err()
        );
    }
    let mut k = Kernel::new("k", 256);
    for _ in 0..2 {
        k.role(WarpRole::new("many", 4).registers(u32::MAX), |_, _| {
            Done::Ok(())
        })?;
    }
    assert!(k.build(HOPPER).is_err());
    Ok(())
}

/// y = x + 1 in a grid that may begin beside the one before. `waits` says at which place it waits.
fn beside(waits: &str) -> Result<Kernel> {
    let mut k = Kernel::new("beside", 128);
    let n = k.size("n", 1 << 20);
    let x = k.input("x", Element::F32, &[n]);
    let y = k.output("y", Element::F32, &[n]);
    let counts = k.partial_output("counts", Element::S32, &[n]);
    let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    let i = k.linear(&[(128, block), (1, thread)], 0);
    let wait = |k: &mut Kernel, place: &str| {
        if place == waits {
            k.wait_for_grid();
        }
    };
    wait(&mut k, "first");
    let half = k.constant(64);
    let lower = Predicate::of(&mut k, thread, Cmp::Lt, half);
    k.when(lower, |k| {
        wait(k, "some");
        Done::Ok(())
    })?;
    counts.atomic(&mut k, &[i], Combine::Add, S32::from(1))?;
    wait(&mut k, "behind an atomic operation");
    let value = x.load::<f32>(&mut k, &[i])?;
    k.launch_dependents();
    let more = value.add(&mut k, 1.0);
    y.store(&mut k, &[i], more)?;
    Ok(k)
}

#[test]
fn a_grid_beside_the_one_before_waits_for_it() -> Result {
    let kernel = beside("first")?.build(HOPPER)?;
    let contract = Contract::new(&kernel, [("n", Scalar::U32(100))])?;
    assert!(contract.launches[0].beside_previous);
    let x: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let args = [
        ("n", size(100)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(100)),
        ("counts", Arg::in_out(&[0_i32; 100])),
    ];
    let outcome = run(&kernel, On::Emulator, args)?;
    clean(&outcome);
    let y: Vec<f32> = outcome.get("y")?;
    assert!(
        x.iter()
            .zip(y)
            .all(|(x, y)| (x + 1.0).to_bits() == y.to_bits())
    );
    let code = |waits| -> Result<&'static str> {
        Ok(beside(waits)?.build(HOPPER).expect_err(waits).code())
    };
    assert_eq!(code("some")?, "divergent");
    assert_eq!(code("behind an atomic operation")?, "early");
    // Without a wait it is launched behind the grid before; an older architecture has none.
    let alone = beside("never")?.build(HOPPER)?;
    let contract = Contract::new(&alone, [("n", Scalar::U32(100))])?;
    assert!(!contract.launches[0].beside_previous);
    assert!(beside("first")?.build(Arch(80)).is_err());
    Ok(())
}
