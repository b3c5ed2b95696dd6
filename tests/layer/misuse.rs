//! What authors of roles and rings get wrong, each a small mistake in a product that is right: the prover refuses it. `tests/fuzz_hopper` draws more of them.

use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, WarpRole};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{TiledMma, atoms};

use super::{Done, Result, layout};

/// c of 64 × 64 tiles ← a·bᵀ, and what it is made of.
struct Product {
    arrays: [View; 3],
    at: [Expr; 2],
    mma: TiledMma,
    ring: Ring<'static, 2>,
    steps: Expr,
}

impl Product {
    /// Builds the kernel: so many threads, clusters of so many blocks along x.
    fn built(
        (threads, blocks): (u32, u32),
        write: impl FnOnce(&mut Kernel, &Self) -> Done,
    ) -> Result<std::result::Result<Proven, ProofError>> {
        let mut k = Kernel::new("product", threads);
        k.clusters([blocks, 1, 1]);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, 1 << 15));
        let arrays = [
            k.input("a", Element::F16, &[m, depth]),
            k.input("b", Element::F16, &[n, depth]),
            k.output("c", Element::F32, &[m, n]),
        ];
        let at = [k.tiles(Axis::X, m, 64)?, k.tiles(Axis::Y, n, 64)?];
        let atom = atoms::wgmma(64, atoms::Scalar::F16, atoms::Scalar::F32)?;
        let tiles = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::F16, [64, 64], &[]));
        let product = Self {
            arrays,
            at,
            mma: TiledMma::new(atom, &layout("(1,1,1):(0,0,0)"))?,
            ring: k.tma_ring(Stages::new(3).lag(1), tiles)?,
            steps: k.tiles_in(depth, 64)?,
        };
        write(&mut k, &product)?;
        Ok(k.build(super::hopper::HOPPER))
    }

    fn load(&self, k: &mut Kernel, [to_a, to_b]: &[View; 2], step: Expr, both: [bool; 2]) -> Done {
        for (which, to) in [to_a, to_b].into_iter().enumerate() {
            let from = self.arrays[which].tile(k, &[64, 64], &[self.at[which], step])?;
            if both[which] {
                k.tma_multicast(&from, to, Axis::X)?;
            } else {
                k.tma_load(&from, to)?;
            }
        }
        Ok(())
    }

    /// The producer that is right, of all steps; operands that a cluster loads together.
    fn fill(&self, k: &mut Kernel, both: [bool; 2]) -> Done {
        let zero = k.constant(0);
        k.produce(&self.ring, zero, self.steps, |k, to, step| {
            self.load(k, &to, step, both)
        })
    }

    fn producer(&self, k: &mut Kernel) -> Done {
        k.producer(WarpRole::new("producer", 4), |k| self.fill(k, [false; 2]))
    }

    /// The consumers, with steps of their own.
    fn consumers(
        &self,
        k: &mut Kernel,
        step: impl FnOnce(&mut Kernel, &Fragment, Expr) -> Done,
    ) -> Done {
        k.role(WarpRole::new("consumers", 4), |k, thread| {
            self.tile(k, thread, step)
        })
    }

    fn tile(
        &self,
        k: &mut Kernel,
        thread: Expr,
        step: impl FnOnce(&mut Kernel, &Fragment, Expr) -> Done,
    ) -> Done {
        let sums = k.accumulators(&self.mma, [64, 64], thread)?;
        k.for_loop("multiply", 0, 1, self.steps, |k, i| step(k, &sums, i))?;
        k.wait_wgmma(0);
        let c = self.arrays[2].tile(k, &[64, 64], &self.at)?;
        let c = c.partition_c(k, &self.mma, thread)?;
        k.store_fragment(&c.vectors(k, 2)?, &sums)
    }

    /// Consumers that read one stage more than [`Product::fill`] fills.
    fn one_more(&self, k: &mut Kernel) -> Done {
        k.role(WarpRole::new("consumers", 4), |k, thread| {
            let sums = k.accumulators(&self.mma, [64, 64], thread)?;
            k.for_loop("multiply", 0, 1, self.steps, |k, i| self.step(k, &sums, i))?;
            self.step(k, &sums, self.steps)?;
            k.wait_wgmma(0);
            let c = self.arrays[2].tile(k, &[64, 64], &self.at)?;
            let c = c.partition_c(k, &self.mma, thread)?;
            k.store_fragment(&c.vectors(k, 2)?, &sums)
        })
    }

    /// The stage behind those of [`Product::fill`], with the last step once more.
    fn fill_last(&self, k: &mut Kernel) -> Done {
        k.fill_stage(&self.ring, self.steps, self.steps, |k, to| {
            self.load(k, &to, self.steps, [false, true])
        })
    }

    /// A step that is right.
    fn step(&self, k: &mut Kernel, sums: &Fragment, i: Expr) -> Done {
        let [a, b] = k.arrived(&self.ring, i, i)?;
        k.gemm(&self.mma, &a, &b, sums)?;
        k.wait_wgmma(1);
        k.release(&self.ring, i)
    }
}

/// The code of the refusal; empty if it is accepted.
fn code(
    shape: (u32, u32),
    write: impl FnOnce(&mut Kernel, &Product) -> Done,
) -> Result<&'static str> {
    Ok(match Product::built(shape, write)? {
        Ok(_) => "",
        Err(error) => error.code(),
    })
}

/// A mistake in a step of the consumers.
type Step = fn(&Product, &mut Kernel, &Fragment, Expr) -> Done;

#[test]
fn steps_of_consumers() -> Result {
    let steps: [(&str, &str, Step); 10] = [
        ("", "right", |p, k, sums, i| p.step(k, sums, i)),
        (
            "ring",
            "products of two steps in flight",
            |p, k, sums, i| {
                let [a, b] = k.arrived(&p.ring, i, i)?;
                k.gemm(&p.mma, &a, &b, sums)?;
                k.wait_wgmma(2);
                k.release(&p.ring, i)
            },
        ),
        ("in_flight", "products not waited for", |p, k, sums, i| {
            let [a, b] = k.arrived(&p.ring, i, i)?;
            k.gemm(&p.mma, &a, &b, sums)?;
            k.release(&p.ring, i)
        }),
        ("ring", "released before the products", |p, k, sums, i| {
            let [a, b] = k.arrived(&p.ring, i, i)?;
            k.release(&p.ring, i)?;
            k.gemm(&p.mma, &a, &b, sums)?;
            k.wait_wgmma(1);
            Ok(())
        }),
        ("ring", "never released", |p, k, sums, i| {
            let [a, b] = k.arrived(&p.ring, i, i)?;
            k.gemm(&p.mma, &a, &b, sums)?;
            k.wait_wgmma(1);
            Ok(())
        }),
        ("ring", "released twice", |p, k, sums, i| {
            p.step(k, sums, i)?;
            k.release(&p.ring, i)
        }),
        ("ring", "the next stage released", |p, k, sums, i| {
            let [a, b] = k.arrived(&p.ring, i, i)?;
            k.gemm(&p.mma, &a, &b, sums)?;
            k.wait_wgmma(1);
            let next = k.linear(&[(1, i)], 1);
            k.release(&p.ring, next)
        }),
        ("ring", "the next stage waited for", |p, k, sums, i| {
            let next = k.linear(&[(1, i)], 1);
            let [a, b] = k.arrived(&p.ring, next, i)?;
            k.gemm(&p.mma, &a, &b, sums)?;
            k.wait_wgmma(1);
            k.release(&p.ring, next)
        }),
        (
            "ring",
            "the tile called that of the next step",
            |p, k, sums, i| {
                let next = k.linear(&[(1, i)], 1);
                let [a, b] = k.arrived(&p.ring, i, next)?;
                k.gemm(&p.mma, &a, &b, sums)?;
                k.wait_wgmma(1);
                k.release(&p.ring, i)
            },
        ),
        ("ring", "one factor for both", |p, k, sums, i| {
            let [a, _] = k.arrived(&p.ring, i, i)?;
            k.gemm(&p.mma, &a, &a, sums)?;
            k.wait_wgmma(1);
            k.release(&p.ring, i)
        }),
    ];
    let mut other = Vec::new();
    for (wanted, what, step) in steps {
        let found = code((256, 1), |k, p| {
            p.consumers(k, |k, sums, i| step(p, k, sums, i))?;
            p.producer(k)
        })?;
        if found != wanted {
            other.push(format!("{what}: `{found}`"));
        }
    }
    assert!(other.is_empty(), "{other:#?}");
    Ok(())
}

/// A mistake in the roles of a block.
type Roles = fn(&Product, &mut Kernel) -> Done;

#[test]
fn roles_of_a_block() -> Result {
    let roles: [(&str, &str, (u32, u32), Roles); 11] = [
        ("", "a producer of one warp", (160, 1), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.producer(WarpRole::new("producer", 1), |k| p.fill(k, [false; 2]))
        }),
        ("divergent", "consumers behind a warp", (160, 1), |p, k| {
            k.producer(WarpRole::new("producer", 1), |k| p.fill(k, [false; 2]))?;
            p.consumers(k, |k, sums, i| p.step(k, sums, i))
        }),
        (
            "divergent",
            "all threads of a role produce",
            (256, 1),
            |p, k| {
                p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
                k.role(WarpRole::new("producer", 4), |k, _| p.fill(k, [false; 2]))
            },
        ),
        ("ring", "two producers", (384, 1), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            p.producer(k)?;
            p.producer(k)
        }),
        ("ring", "no producer", (256, 1), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.role(WarpRole::new("idle", 4), |_, _| Done::Ok(()))
        }),
        ("coverage", "two roles with one tile", (384, 1), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.role(WarpRole::new("others", 4), |k, thread| {
                p.tile(k, thread, |k, sums, i| p.step(k, sums, i))
            })?;
            p.producer(k)
        }),
        ("", "a cluster", (256, 2), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.producer(WarpRole::new("producer", 4), |k| {
                p.fill(k, [false, true])?;
                k.drain(&p.ring, p.steps)
            })
        }),
        ("ring", "a cluster that does not drain", (256, 2), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.producer(WarpRole::new("producer", 4), |k| p.fill(k, [false, true]))
        }),
        ("ring", "a fill behind the drain", (256, 2), |p, k| {
            p.one_more(k)?;
            k.producer(WarpRole::new("producer", 4), |k| {
                p.fill(k, [false, true])?;
                k.drain(&p.ring, p.steps)?;
                p.fill_last(k)
            })
        }),
        ("", "a drain behind all fills", (256, 2), |p, k| {
            p.one_more(k)?;
            k.producer(WarpRole::new("producer", 4), |k| {
                p.fill(k, [false, true])?;
                p.fill_last(k)?;
                let uses = k.linear(&[(1, p.steps)], 1);
                k.drain(&p.ring, uses)
            })
        }),
        ("ring", "a multicast of the own rows", (256, 2), |p, k| {
            p.consumers(k, |k, sums, i| p.step(k, sums, i))?;
            k.producer(WarpRole::new("producer", 4), |k| {
                p.fill(k, [true, true])?;
                k.drain(&p.ring, p.steps)
            })
        }),
    ];
    let mut other = Vec::new();
    for (wanted, what, shape, write) in roles {
        let found = code(shape, |k, p| write(p, k))?;
        if found != wanted {
            other.push(format!("{what}: `{found}`"));
        }
    }
    assert!(other.is_empty(), "{other:#?}");
    Ok(())
}

/// The products of one ring wait for the stages of the other: what is released is the ring that was read.
#[test]
fn rings_are_not_mistaken() -> Result {
    for (wanted, other) in [("", false), ("ring", true)] {
        let mut k = Kernel::new("product", 256);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, 1 << 15));
        let arrays =
            [("a", m), ("b", n)].map(|(name, rows)| k.input(name, Element::F16, &[rows, depth]));
        let c = k.output("c", Element::F32, &[m, n]);
        let at = [k.tiles(Axis::X, m, 64)?, k.tiles(Axis::Y, n, 64)?];
        let atom = atoms::wgmma(64, atoms::Scalar::F16, atoms::Scalar::F32)?;
        let mma = TiledMma::new(atom, &layout("(1,1,1):(0,0,0)"))?;
        let mut ring = |name| {
            let tile = Staged::new(name, Element::F16, [64, 64], &[]);
            k.tma_ring(Stages::new(2), [tile])
        };
        let rings = [ring("tile_a")?, ring("tile_b")?];
        let steps = k.tiles_in(depth, 64)?;
        k.role(WarpRole::new("consumers", 4), |k, thread| {
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            k.for_loop("multiply", 0, 1, steps, |k, i| {
                let ([a], [b]) = (k.arrived(&rings[0], i, i)?, k.arrived(&rings[1], i, i)?);
                k.gemm(&mma, &a, &b, &sums)?;
                k.wait_wgmma(0);
                k.release(&rings[0], i)?;
                k.release(&rings[usize::from(!other)], i)
            })?;
            let c = c.tile(k, &[64, 64], &at)?.partition_c(k, &mma, thread)?;
            k.store_fragment(&c.vectors(k, 2)?, &sums)
        })?;
        k.producer(WarpRole::new("producer", 4), |k| {
            k.for_loop("fill", 0, 1, steps, |k, i| {
                for which in 0..2 {
                    let from = arrays[which].tile(k, &[64, 64], &[at[which], i])?;
                    k.fill_stage(&rings[which], i, i, |k, [to]| k.tma_load(&from, &to))?;
                }
                Ok::<(), ViewError>(())
            })
        })?;
        let found = k
            .build(super::hopper::HOPPER)
            .err()
            .map_or("", |e| e.code());
        assert_eq!(found, wanted);
    }
    Ok(())
}
