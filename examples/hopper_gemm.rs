//! A matrix product of one's own on Hopper: c ← a·bᵀ for bf16 matrices of any size, sums in f32.
//!
//! ```text
//! a: m × k, tile (i, t) ──TMA──▶ stage 128 × 64 ──┐
//! b: n × k, tile (j, t) ──TMA──▶ stage 256 × 64 ──┴▶ wgmma of two warpgroups ──▶ c: m × n, tile (i, j)
//! ```
//!
//! One thread issues the TMA copies into the stages of a ring, two warpgroups multiply them. Boxes, swizzles, byte counts, phases, tensor maps and matrix descriptors follow from
//! the tiles. Tiles beyond a or b read as zeros, and nothing outside of c is stored. `plain` is the kernel as a whole; the variants share its declarations (`Product`).
//!
//! `cargo run --release --example hopper_gemm -- --m 1000 --n 700 --k 300`

pub(crate) mod common;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use half::bf16;
use serde_json::Value;
use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{
    PersistentTile, Ring, Staged, Stages, TileScheduler, WarpRole,
};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::host::{Arg, Outcome};
use tilewright::{Layout, TiledMma, atoms};

use common::{Failure, Flags, Number, Report};

/// The largest extent of a matrix: addresses are proven not to overflow up to here.
const MOST: i64 = 1 << 20;

/// A kernel, or what cannot be proven of it.
type Built = Result<Proven, Box<dyn Error>>;

/// How tiles of c are assigned to blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Schedule {
    /// One block for each tile
    Plain,
    /// 132 persistent blocks
    Persistent,
    /// Persistent blocks in which one warpgroup stores while the other multiplies
    PingPong,
    /// One block for each tile, in clusters of two that load their common tile of b together
    Cluster,
}

impl Schedule {
    /// The kernel, for rows of c that are multiples of 16 bytes (`whole`), or any.
    pub(crate) fn kernel(self, whole: bool) -> Built {
        match self {
            Self::Plain => plain(),
            Self::Persistent => persistent(whole),
            Self::PingPong => ping_pong(whole),
            Self::Cluster => cluster(whole),
        }
    }
}

/// One block for each tile.
pub(crate) fn plain() -> Built {
    let (tm, tn, tk) = (128, 256, 64);
    let mut k = Kernel::new("hopper_gemm", 384);
    let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
    let a = k.pitched_input("a", Element::Bf16, [m, depth], lda);
    let b = k.pitched_input("b", Element::Bf16, [n, depth], ldb);
    let c = k.output("c", Element::Bf16, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);

    // Two warpgroups, one below the other.
    let instruction = atoms::wgmma(tn, atoms::Scalar::Bf16, atoms::Scalar::F32)?;
    let mma = TiledMma::new(instruction, &Layout::parse("(2,1,1):(1,0,0)")?)?;
    let tiles = [
        Staged::new("tile_a", Element::Bf16, [tm, tk], &[]),
        Staged::new("tile_b", Element::Bf16, [tn, tk], &[]),
    ];
    let ring = k.tma_ring(Stages::new(4).lag(1), tiles)?;
    let (none, steps) = (k.constant(0), k.tiles_in(depth, tk)?);

    k.role(WarpRole::new("consumers", 8).registers(232), |k, thread| {
        let sums = k.accumulators(&mma, [tm, tn], thread)?;
        k.consume(&ring, none, steps, |k, [x, y], _| {
            k.gemm(&mma, &x, &y, &sums)
        })?;
        let sums = k.convert_fragment(&sums, Element::Bf16)?;
        let c = c
            .tile(k, &[tm, tn], &[i, j])?
            .partition_c(k, &mma, thread)?;
        k.store_fragment(&c.vectors(k, 2)?, &sums)
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.produce(&ring, none, steps, |k, [to_a, to_b], t| {
            let (from_a, from_b) = (
                a.tile(k, &[tm, tk], &[i, t])?,
                b.tile(k, &[tn, tk], &[j, t])?,
            );
            k.tma_load(&from_a, &to_a)?;
            k.tma_load(&from_b, &to_b)
        })
    })?;
    Ok(k.build(Arch(90))?)
}

/// What the variants have in common: the arrays, the instruction, and the ring of the tiles of a and b.
struct Product {
    tile: [i64; 3],
    sizes: [Expr; 2],
    arrays: [View; 3],
    mma: TiledMma,
    ring: Ring<'static, 2>,
    /// Iterations of the ring for a tile of c.
    steps: Expr,
}

impl Product {
    /// Tiles of `[tm, tn, tk]` elements, and consumer warpgroups along M.
    fn declare(
        k: &mut Kernel,
        tile: [i64; 3],
        warpgroups: i64,
        stages: Stages,
    ) -> Result<Self, ViewError> {
        let [tm, tn, tk] = tile;
        let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
        let a = k.pitched_input("a", Element::Bf16, [m, depth], lda);
        let b = k.pitched_input("b", Element::Bf16, [n, depth], ldb);
        let c = k.output("c", Element::Bf16, &[m, n]);
        let instruction = atoms::wgmma(tn, atoms::Scalar::Bf16, atoms::Scalar::F32)?;
        let mma = TiledMma::new(instruction, &Layout::flat(&[warpgroups, 1, 1], &[1, 0, 0])?)?;
        let tiles = [
            Staged::new("tile_a", Element::Bf16, [tm, tk], &[]),
            Staged::new("tile_b", Element::Bf16, [tn, tk], &[]),
        ];
        Ok(Self {
            tile,
            sizes: [m, n],
            arrays: [a, b, c],
            mma,
            ring: k.tma_ring(stages, tiles)?,
            steps: k.tiles_in(depth, tk)?,
        })
    }

    /// The producer's part of the tile `at` of c; a cluster along x loads its common tile of b together.
    fn load(
        &self,
        k: &mut Kernel,
        before: Expr,
        at: [Expr; 2],
        cluster: bool,
    ) -> Result<(), ViewError> {
        let ([a, b, _], [tm, tn, tk]) = (&self.arrays, self.tile);
        k.produce(&self.ring, before, self.steps, |k, [to_a, to_b], t| {
            let from_a = a.tile(k, &[tm, tk], &[at[0], t])?;
            let from_b = b.tile(k, &[tn, tk], &[at[1], t])?;
            k.tma_load(&from_a, &to_a)?;
            if cluster {
                k.tma_multicast(&from_b, &to_b, Axis::X)
            } else {
                k.tma_load(&from_b, &to_b)
            }
        })
    }

    /// The consumers' part: adds the products of a tile of c to its sums.
    fn multiply(&self, k: &mut Kernel, before: Expr, sums: &Fragment) -> Result<(), ViewError> {
        k.consume(&self.ring, before, self.steps, |k, [x, y], _| {
            k.gemm(&self.mma, &x, &y, sums)
        })
    }

    fn sums(&self, k: &mut Kernel, thread: Expr) -> Result<Fragment, ViewError> {
        k.accumulators(&self.mma, [self.tile[0], self.tile[1]], thread)
    }

    /// Rounds the sums and stores the tile `at` of c: by TMA if its rows are `whole` multiples of 16 bytes, else two elements at a time.
    fn store(
        &self,
        k: &mut Kernel,
        whole: bool,
        at: [Expr; 2],
        (sums, thread): (&Fragment, Expr),
    ) -> Result<(), ViewError> {
        let c = self.arrays[2].tile(k, &[self.tile[0], self.tile[1]], &at)?;
        let sums = k.convert_fragment(sums, Element::Bf16)?;
        if whole {
            return k.tma_store(&c, &sums);
        }
        let c = c.partition_c(k, &self.mma, thread)?;
        k.store_fragment(&c.vectors(k, 2)?, &sums)
    }
}

/// Persistent blocks: the producer loads the first stages of the next tile while one is stored.
pub(crate) fn persistent(whole: bool) -> Built {
    let (tm, tn) = (128, 256);
    let mut k = Kernel::new("hopper_gemm_persistent", 384);
    let p = Product::declare(&mut k, [tm, tn, 64], 2, Stages::new(4).lag(1))?;
    let tiles = TileScheduler::rectangle(p.sizes, [tm, tn], [33, 4]);
    k.role(WarpRole::new("consumers", 8).registers(232), |k, thread| {
        k.persistent(&tiles, |k, tile| {
            let before = k.mul(tile.number(), p.steps);
            let sums = p.sums(k, thread)?;
            p.multiply(k, before, &sums)?;
            p.store(k, whole, tile.at(), (&sums, thread))
        })
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.persistent(&tiles, |k, tile| {
            let before = k.mul(tile.number(), p.steps);
            p.load(k, before, tile.at(), false)
        })
    })?;
    Ok(k.build(Arch(90))?)
}

/// Persistent blocks with a ping-pong schedule: each of two warpgroups has half of the rows of a tile, and stores while the other multiplies.
pub(crate) fn ping_pong(whole: bool) -> Built {
    let (tm, tn) = (128, 192);
    let mut k = Kernel::new("hopper_gemm_ping_pong", 384);
    let p = Product::declare(&mut k, [tm, tn, 64], 1, Stages::new(4).lag(1).ping_pong(2))?;
    let tiles = TileScheduler::rectangle(p.sizes, [2 * tm, tn], [16, 8]);
    // The row of a half of a block's tile, and the iterations of the ring before it.
    let half_of = |k: &mut Kernel, tile: PersistentTile, half: i64| {
        let [i, j] = tile.at();
        let (row, number) = (
            k.linear(&[(2, i)], half),
            k.linear(&[(2, tile.number())], half),
        );
        (k.mul(number, p.steps), [row, j])
    };
    for half in 0..2 {
        let role = WarpRole::new(["first", "second"][half as usize], 4).registers(232);
        k.role(role, |k, thread| {
            k.persistent(&tiles, |k, tile| {
                let (before, at) = half_of(k, tile, half);
                let sums = p.sums(k, thread)?;
                k.ping_pong(&p.ring, (half as u32, tile.number()), |k| {
                    p.multiply(k, before, &sums)
                })?;
                p.store(k, whole, at, (&sums, thread))
            })
        })?;
    }
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.persistent(&tiles, |k, tile| {
            for half in 0..2 {
                let (before, at) = half_of(k, tile, half);
                p.load(k, before, at, false)?;
            }
            Ok::<(), ViewError>(())
        })
    })?;
    Ok(k.build(Arch(90))?)
}

/// One block for each tile, in clusters of two along the rows: each block loads half of their common tile of b for both.
pub(crate) fn cluster(whole: bool) -> Built {
    let (tm, tn) = (128, 256);
    let mut k = Kernel::new("hopper_gemm_cluster", 384);
    k.clusters([2, 1, 1]);
    let p = Product::declare(&mut k, [tm, tn, 64], 2, Stages::new(4).lag(1))?;
    let at = [
        k.tiles(Axis::X, p.sizes[0], tm)?,
        k.tiles(Axis::Y, p.sizes[1], tn)?,
    ];
    let none = k.constant(0);
    k.role(WarpRole::new("consumers", 8).registers(232), |k, thread| {
        let sums = p.sums(k, thread)?;
        p.multiply(k, none, &sums)?;
        p.store(k, whole, at, (&sums, thread))
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        p.load(k, none, at, true)?;
        k.drain(&p.ring, p.steps)
    })?;
    Ok(k.build(Arch(90))?)
}

/// Matrix product on Hopper: c ← a·bᵀ
#[derive(Parser, Debug)]
struct Command {
    /// Rows of a and c
    #[arg(long, default_value = "300", value_parser = common::size)]
    m: u64,
    /// Columns of c
    #[arg(long, default_value = "520", value_parser = common::size)]
    n: u64,
    /// Elements of a sum
    #[arg(long, default_value = "200", value_parser = common::size)]
    k: u64,
    /// How tiles of c are assigned to blocks
    #[arg(long, value_enum, default_value = "plain")]
    schedule: Schedule,
    #[command(flatten)]
    flags: Flags,
}

/// The pitch of rows of `columns` elements: rows begin at multiples of 16 bytes.
pub(crate) fn pitch(columns: u64) -> u64 {
    columns.max(1).next_multiple_of(8)
}

/// The number of elements of c that are checked; of a larger c a sample.
const CHECKED: usize = 1 << 16;

impl Command {
    fn run(&self) -> Result<Value, Failure> {
        let kernel = self
            .schedule
            .kernel(self.n.is_multiple_of(8))
            .map_err(Failure::unproven)?;
        let sizes = [
            ("m", self.m),
            ("n", self.n),
            ("k", self.k),
            ("lda", pitch(self.k)),
            ("ldb", pitch(self.k)),
        ];
        let scalars = sizes.map(|(name, size)| common::extent(name, size));
        let mut report = Report::new(&kernel, &self.flags, &scalars)?;
        if self.flags.runs() {
            let a = common::fits(&[self.m, pitch(self.k)], 8)?;
            let b = common::fits(&[self.n, pitch(self.k)], 8)?;
            let c = common::fits(&[self.m, self.n], 8)?;
            let a = bf16::random(a, self.flags.seed);
            let b = bf16::random(b, self.flags.seed.wrapping_add(1));
            let sizes = [self.m, self.n, self.k].map(|size| size as usize);
            let mut args = vec![
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<bf16>(c)),
            ];
            args.extend(
                scalars
                    .into_iter()
                    .map(|(name, scalar)| (name, Arg::Scalar(scalar))),
            );
            let outcome = self.flags.launch(&kernel, args)?;
            let (error, within) = errors(sizes, &a, &b, &outcome)?;
            report.ran_within(&outcome, error, within);
        }
        Ok(report.to_json())
    }
}

/// The largest error of c against sums in double precision, and whether each is within what rounding allows: half a unit in the last place of the result, and
/// of each sum in f32.
pub(crate) fn errors(
    [m, n, k]: [usize; 3],
    a: &[bf16],
    b: &[bf16],
    outcome: &Outcome,
) -> Result<(f64, bool), Failure> {
    let c: Vec<bf16> = outcome.get("c")?;
    let pitch = pitch(k as u64) as usize;
    // A step that has no factor in common with the number of elements.
    let step = (m * n / CHECKED).max(1) | 1;
    let (mut worst, mut within) = (0.0f64, true);
    for at in (0..m * n).step_by(step) {
        let (row, column) = (&a[at / n * pitch..][..k], &b[at % n * pitch..][..k]);
        let terms = row.iter().zip(column).map(|(x, y)| x.to_f64() * y.to_f64());
        let (sum, size) = terms.fold((0.0, 0.0), |(s, z), x| (s + x, z + x.abs()));
        let error = (c[at].to_f64() - sum).abs();
        let allowed = f64::powi(0.5, 8) * sum.abs()
            + f64::powi(0.5, 22) * k as f64 * size
            + f64::powi(0.5, 126);
        worst = worst.max(error);
        within &= error <= allowed;
    }
    Ok((worst, within))
}

fn main() -> ExitCode {
    common::main(|command: &Command| (command.flags.json, command.run()))
}
