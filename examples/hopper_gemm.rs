//! A matrix product of one's own on Hopper: c ← a·bᵀ for bf16 matrices of any size, sums in f32.
//!
//! ```text
//! a: m × k, tile (i, t) ──TMA──▶ stage 128 × 64 ──┐
//! b: n × k, tile (j, t) ──TMA──▶ stage 256 × 64 ──┴▶ wgmma of two warpgroups ──▶ c: m × n, tile (i, j)
//! ```
//!
//! One thread has TMA fill the stages of a ring, two warpgroups multiply them: the roles meet at the ring and nowhere else. Boxes, swizzles, bytes, phases, tensor maps and
//! matrix descriptors follow from the tiles. Tiles beyond a or b are filled with zeros, and nothing outside of c is stored.
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
use tilewright::codegen::pipeline::{Staged, Stages, WarpRole};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::host::{Arg, Outcome};
use tilewright::{Layout, TiledMma, atoms};

use common::{Failure, Flags, Number, Report};

/// The largest extent of a matrix: addresses are proven not to overflow up to here.
const MOST: i64 = 1 << 20;

/// A kernel, or what cannot be proven of it.
type Built = Result<Proven, Box<dyn Error>>;

/// How blocks take tiles of c.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Schedule {
    /// A block a tile
    Plain,
    /// 132 blocks that take tile after tile
    Persistent,
    /// The same, where one warpgroup stores while the other multiplies
    PingPong,
    /// A block a tile, two blocks of which copy the rows of b that they have in common to each other
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

/// Stores the sums of a tile of c, rounded: by TMA where rows are `whole` multiples of 16 bytes, else two elements at a time.
fn store(
    k: &mut Kernel,
    whole: bool,
    c: &View,
    mma: &TiledMma,
    (sums, thread): (&Fragment, Expr),
) -> Result<(), ViewError> {
    let sums = k.convert_fragment(sums, Element::Bf16)?;
    if whole {
        return k.tma_store(c, &sums);
    }
    let c = c.partition_c(k, mma, thread)?;
    k.store_fragment(&c.vectors(k, 2)?, &sums)
}

/// A block a tile.
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

/// Blocks that take tile after tile: while one is stored, the first stages of the next are filled.
pub(crate) fn persistent(whole: bool) -> Built {
    let (tm, tn, tk, blocks) = (128, 256, 64, [33, 4]);
    let mut k = Kernel::new("hopper_gemm_persistent", 384);
    let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
    let a = k.pitched_input("a", Element::Bf16, [m, depth], lda);
    let b = k.pitched_input("b", Element::Bf16, [n, depth], ldb);
    let c = k.output("c", Element::Bf16, &[m, n]);

    let instruction = atoms::wgmma(tn, atoms::Scalar::Bf16, atoms::Scalar::F32)?;
    let mma = TiledMma::new(instruction, &Layout::parse("(2,1,1):(1,0,0)")?)?;
    let tiles = [
        Staged::new("tile_a", Element::Bf16, [tm, tk], &[]),
        Staged::new("tile_b", Element::Bf16, [tn, tk], &[]),
    ];
    let ring = k.tma_ring(Stages::new(4).lag(1), tiles)?;
    let steps = k.tiles_in(depth, tk)?;

    k.role(WarpRole::new("consumers", 8).registers(232), |k, thread| {
        k.persistent([m, n], [tm, tn], blocks, |k, tile| {
            let before = k.mul(tile.number(), steps);
            let sums = k.accumulators(&mma, [tm, tn], thread)?;
            k.consume(&ring, before, steps, |k, [x, y], _| {
                k.gemm(&mma, &x, &y, &sums)
            })?;
            let c = c.tile(k, &[tm, tn], &tile.at())?;
            store(k, whole, &c, &mma, (&sums, thread))
        })
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.persistent([m, n], [tm, tn], blocks, |k, tile| {
            let (before, [i, j]) = (k.mul(tile.number(), steps), tile.at());
            k.produce(&ring, before, steps, |k, [to_a, to_b], t| {
                let (from_a, from_b) = (
                    a.tile(k, &[tm, tk], &[i, t])?,
                    b.tile(k, &[tn, tk], &[j, t])?,
                );
                k.tma_load(&from_a, &to_a)?;
                k.tma_load(&from_b, &to_b)
            })
        })
    })?;
    Ok(k.build(Arch(90))?)
}

/// The same by two warpgroups that take turns: each multiplies half of the rows of a tile, and stores while the other one multiplies.
pub(crate) fn ping_pong(whole: bool) -> Built {
    let (tm, tn, tk, blocks) = (128, 192, 64, [16, 8]);
    let mut k = Kernel::new("hopper_gemm_ping_pong", 384);
    let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
    let a = k.pitched_input("a", Element::Bf16, [m, depth], lda);
    let b = k.pitched_input("b", Element::Bf16, [n, depth], ldb);
    let c = k.output("c", Element::Bf16, &[m, n]);

    let instruction = atoms::wgmma(tn, atoms::Scalar::Bf16, atoms::Scalar::F32)?;
    let mma = TiledMma::new(instruction, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let tiles = [
        Staged::new("tile_a", Element::Bf16, [tm, tk], &[]),
        Staged::new("tile_b", Element::Bf16, [tn, tk], &[]),
    ];
    let ring = k.tma_ring(Stages::new(4).lag(1).in_turns(2), tiles)?;
    let steps = k.tiles_in(depth, tk)?;

    // Of the halves of a block's tile, one below the other, each role has its own.
    for half in 0..2 {
        let role = WarpRole::new(["first", "second"][half as usize], 4).registers(232);
        k.role(role, |k, thread| {
            k.persistent([m, n], [2 * tm, tn], blocks, |k, tile| {
                let part = k.linear(&[(2, tile.number())], half);
                let before = k.mul(part, steps);
                let sums = k.accumulators(&mma, [tm, tn], thread)?;
                k.in_turn(&ring, (half as u32, tile.number()), |k| {
                    k.consume(&ring, before, steps, |k, [x, y], _| {
                        k.gemm(&mma, &x, &y, &sums)
                    })
                })?;
                let [i, j] = tile.at();
                let i = k.linear(&[(2, i)], half);
                let c = c.tile(k, &[tm, tn], &[i, j])?;
                store(k, whole, &c, &mma, (&sums, thread))
            })
        })?;
    }
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.persistent([m, n], [2 * tm, tn], blocks, |k, tile| {
            for half in 0..2 {
                let [i, j] = tile.at();
                let (part, i) = (
                    k.linear(&[(2, tile.number())], half),
                    k.linear(&[(2, i)], half),
                );
                let before = k.mul(part, steps);
                k.produce(&ring, before, steps, |k, [to_a, to_b], t| {
                    let (from_a, from_b) = (
                        a.tile(k, &[tm, tk], &[i, t])?,
                        b.tile(k, &[tn, tk], &[j, t])?,
                    );
                    k.tma_load(&from_a, &to_a)?;
                    k.tma_load(&from_b, &to_b)
                })?;
            }
            Ok::<(), ViewError>(())
        })
    })?;
    Ok(k.build(Arch(90))?)
}

/// A block a tile, in clusters of two blocks one below the other: each copies half of their rows of b to both.
pub(crate) fn cluster(whole: bool) -> Built {
    let (tm, tn, tk) = (128, 256, 64);
    let mut k = Kernel::new("hopper_gemm_cluster", 384);
    k.clusters([2, 1, 1]);
    let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
    let a = k.pitched_input("a", Element::Bf16, [m, depth], lda);
    let b = k.pitched_input("b", Element::Bf16, [n, depth], ldb);
    let c = k.output("c", Element::Bf16, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);

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
        let c = c.tile(k, &[tm, tn], &[i, j])?;
        store(k, whole, &c, &mma, (&sums, thread))
    })?;
    k.producer(WarpRole::new("producer", 4).registers(40), |k| {
        k.produce(&ring, none, steps, |k, [to_a, to_b], t| {
            let (from_a, from_b) = (
                a.tile(k, &[tm, tk], &[i, t])?,
                b.tile(k, &[tn, tk], &[j, t])?,
            );
            k.tma_load(&from_a, &to_a)?;
            k.tma_multicast(&from_b, &to_b, Axis::X)
        })?;
        k.drain(&ring, steps)
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
    /// How blocks take tiles of c
    #[arg(long, value_enum, default_value = "plain")]
    schedule: Schedule,
    #[command(flatten)]
    flags: Flags,
}

/// A row begins at a multiple of 16 bytes: that many elements of a row of so many.
pub(crate) fn pitch(columns: u64) -> u64 {
    columns.max(1).next_multiple_of(8)
}

/// Elements of c that are checked at most: of larger matrices a sample.
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
