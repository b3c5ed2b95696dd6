//! The product by `wgmma`, for more rows of a: the weights become the instruction's A in registers.
//!
//! ```text
//! producer      a ──TMA──▶ stages; blocks of a cluster load their common tile of a together
//! consumers     w ──16-byte loads, a step ahead──▶ words ──shift, lop3, sub, × scale──▶ A fragments ──wgmma with a of the stage──▶ sums ──▶ c
//! ```
//!
//! A consumer warpgroup has 64 rows of w. While one makes its weights, the tensor cores multiply those of the other.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::pipeline::{Ring, Staged, Stages, WarpRole};
use layout_codegen::value::{BrainPair, HalfPair, U32, Value};
use layout_codegen::view::{Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, TiledMma, atoms};

use super::order::{LANE_WORDS, PIECE_K, PIECE_ROWS, PIECE_WORDS};
use super::unpack::{self, Pair};
use super::{MOST, MOST_K, MOST_ROWS, WeightOnly, WgmmaTile};
use crate::KernelError;

/// Rows of w of a warpgroup.
const ROWS: i64 = 64;

/// The kernel of a configuration that is valid.
pub(super) fn build(what: WeightOnly, tile: WgmmaTile, arch: Arch) -> Result<Proven, KernelError> {
    match what.element {
        Element::F16 => product::<HalfPair>(what, tile, arch),
        _ => product::<BrainPair>(what, tile, arch),
    }
}

/// What a thread has of w in a step.
struct Loaded<T> {
    words: Vec<U32>,
    /// Of each group the scales of the thread's two rows, each in both halves; then the zero points, if there are.
    pairs: Vec<[Value<T>; 2]>,
}

/// What the roles have in common.
struct Parts {
    what: WeightOnly,
    tile: WgmmaTile,
    a: View,
    w: View,
    /// Scales, and zero points if there are.
    of_groups: Vec<View>,
    c: View,
    /// The tile of c along m and n.
    at: [Expr; 2],
    mma: TiledMma,
    ring: Ring<'static, 1>,
    steps: Expr,
    /// Pieces of a row of pieces.
    along: Expr,
}

fn product<T: Pair>(what: WeightOnly, tile: WgmmaTile, arch: Arch) -> Result<Proven, KernelError> {
    let warpgroups = tile.n / ROWS;
    let mut k = Kernel::new(&what.name(), 128 * (warpgroups as u32 + 1));
    if tile.cluster > 1 {
        k.clusters([tile.cluster, 1, 1]);
    }
    let parts = Parts::declare(&mut k, what, tile)?;
    let zero = k.constant(0);
    let mut roles = [
        WarpRole::new("consumers", 4 * warpgroups as u32),
        WarpRole::new("producer", 4),
    ];
    if warpgroups > 1 {
        let [consumers, producer] = roles;
        roles = [consumers.registers(232), producer.registers(40)];
    }
    let [consumers, producer] = roles;
    k.role(consumers, |k, thread| {
        let sums = k.accumulators(&parts.mma, [tile.n, tile.m], thread)?;
        // Words and scales are loaded a step ahead; behind the last step they are 0.
        let first = parts.loaded::<T>(k, zero, thread)?;
        let words: Vec<_> = first.words.iter().map(|&word| k.variable(word)).collect();
        let pairs: Vec<_> = first
            .pairs
            .iter()
            .map(|of| of.map(|x| k.variable(x)))
            .collect();
        k.consume(&parts.ring, zero, parts.steps, |k, [a], step| {
            let next = k.linear(&[(1, step)], 1);
            let next = parts.loaded::<T>(k, next, thread)?;
            let now = Loaded {
                words: words.iter().map(|word| word.get(k)).collect(),
                pairs: pairs.iter().map(|of| of.map(|x| x.get(k))).collect(),
            };
            let weights = parts.weights::<T>(k, &now, thread)?;
            k.gemm(&parts.mma, &weights, &a, &sums)?;
            for (word, next) in words.iter().zip(next.words) {
                word.set(k, next);
            }
            for (of, next) in pairs.iter().zip(next.pairs) {
                of[0].set(k, next[0]);
                of[1].set(k, next[1]);
            }
            Ok::<(), ViewError>(())
        })?;
        parts.store(k, &sums, thread)
    })?;
    k.producer(producer, |k| {
        k.produce(&parts.ring, zero, parts.steps, |k, to, step| {
            parts.load(k, to, step)
        })?;
        if tile.cluster > 1 {
            // Another block of the cluster may still write to this one's stages.
            k.drain(&parts.ring, parts.steps)?;
        }
        Ok::<(), ViewError>(())
    })?;
    Ok(k.build(arch)?)
}

impl Parts {
    fn declare(k: &mut Kernel, what: WeightOnly, tile: WgmmaTile) -> Result<Self, KernelError> {
        let (m, n, depth) = (
            k.size("m", MOST_ROWS),
            k.size("n", MOST),
            k.size("k", MOST_K),
        );
        let [pieces, along] = [k.tiles_in(n, PIECE_ROWS)?, k.tiles_in(depth, PIECE_K)?];
        let (words, all) = (k.constant(PIECE_WORDS), k.mul(pieces, along));
        let groups = k.tiles_in(depth, what.group)?;
        let a = k.input("a", what.element, &[m, depth]);
        let w = k.input("w", Element::S32, &[all, words]);
        let names = what.names_of_groups().iter();
        let of_groups = names
            .map(|name| k.input(name, what.element, &[groups, n]))
            .collect();
        let c = k.output("c", what.element, &[m, n]);
        let (j, i) = (k.tiles(Axis::X, n, tile.n)?, k.tiles(Axis::Y, m, tile.m)?);
        let scalar = match what.element {
            Element::F16 => atoms::Scalar::F16,
            _ => atoms::Scalar::Bf16,
        };
        let atom = atoms::wgmma(tile.m, scalar, atoms::Scalar::F32)?;
        let mma = TiledMma::new(atom, &Layout::flat(&[tile.n / ROWS, 1, 1], &[1, 0, 0])?)?;
        let staged = [Staged::new("a_tile", what.element, [tile.m, tile.k], &[])];
        let ring = k.tma_ring(Stages::new(tile.stages).lag(0), staged)?;
        Ok(Self {
            what,
            tile,
            a,
            w,
            of_groups,
            c,
            at: [i, j],
            mma,
            ring,
            steps: k.tiles_in(depth, tile.k)?,
            along,
        })
    }

    /// The producer's part of a step.
    fn load(&self, k: &mut Kernel, [to]: [View; 1], step: Expr) -> Result<(), ViewError> {
        let a = self
            .a
            .tile(k, &[self.tile.m, self.tile.k], &[self.at[0], step])?;
        if self.tile.cluster > 1 {
            k.tma_multicast(&a, &to, Axis::X)
        } else {
            k.tma_load(&a, &to)
        }
    }

    /// What a thread has of w and the scales in a step.
    fn loaded<T: Pair>(
        &self,
        k: &mut Kernel,
        step: Expr,
        thread: Expr,
    ) -> Result<Loaded<T>, ViewError> {
        let WgmmaTile { n, k: depth, .. } = self.tile;
        let (lane, warp) = (k.rem(thread, 32), k.div(thread, 32));
        let own = Layout::flat(&[32, LANE_WORDS], &[LANE_WORDS, 1])?;
        let (pieces, groups) = (depth / PIECE_K, depth / self.what.group);
        let mut words: Vec<U32> = Vec::new();
        let row = k.linear(&[(n / PIECE_ROWS, self.at[1]), (1, warp)], 0);
        let (first, zero) = (k.mul(row, self.along), k.constant(0));
        for piece in 0..pieces {
            let piece = k.linear(&[(1, first), (pieces, step)], piece);
            let of_piece = self.w.tile(k, &[1, PIECE_WORDS], &[piece, zero])?;
            let of_piece = of_piece.partition(k, &own, lane)?.vectors(k, LANE_WORDS)?;
            words.extend(k.load_fragment(&of_piece)?.thread_values::<u32>(k)?);
        }
        let of_lane = k.div(lane, 4);
        let rows = [0, 1].map(|h| k.linear(&[(PIECE_ROWS, row), (2, of_lane)], h));
        let mut pairs = Vec::new();
        for of in &self.of_groups {
            for group in 0..groups {
                let group = k.linear(&[(groups, step)], group);
                pairs.push([
                    of.load(k, &[group, rows[0]])?,
                    of.load(k, &[group, rows[1]])?,
                ]);
            }
        }
        Ok(Loaded { words, pairs })
    }

    /// The weights of a step as the instruction's A: row g + 8·h of sixteen is row 2·g + h of w.
    fn weights<T: Pair>(
        &self,
        k: &mut Kernel,
        loaded: &Loaded<T>,
        thread: Expr,
    ) -> Result<Fragment, ViewError> {
        let WgmmaTile {
            n: rows, k: depth, ..
        } = self.tile;
        let eight = U32::from(unpack::both(T::BASE + 8));
        let eight = [T::of_bits(k, eight); 2];
        let base = U32::from(unpack::both(T::BASE));
        let base = T::of_bits(k, base);
        let groups = (depth / self.what.group) as usize;
        let (scales, zeros) = loaded.pairs.split_at(groups);
        let each = loaded.words.len() / groups;
        let mut all: Vec<Value<T>> = Vec::new();
        for (group, words) in loaded.words.chunks(each).enumerate() {
            let zeros = zeros
                .get(group)
                .map_or(eight, |of| of.map(|zero| zero.add(k, base)));
            for &word in words {
                let integers = unpack::integers(k, word, zeros);
                for (number, integers) in integers.into_iter().enumerate() {
                    all.push(integers.mul(k, scales[group][number % 2]));
                }
            }
        }
        let threads = Layout::flat(&[4, 8, rows / 16], &[2 * rows, 1, 16])?;
        let values = Layout::flat(&[2, 2, 2, depth / 16], &[rows, 8, 8 * rows, 16 * rows])?;
        k.fragment(
            [rows, depth],
            &Layout::tuple(&[threads, values])?,
            thread,
            &all,
        )
    }

    /// Rounds the sums and stores them, two neighbours of a row of c at once.
    fn store(&self, k: &mut Kernel, sums: &Fragment, thread: Expr) -> Result<(), ViewError> {
        let WgmmaTile { m, n, .. } = self.tile;
        let all: Vec<Value<f32>> = sums.thread_values(k)?;
        // Of a row of a the two rows of w are values 0 and 2 of four, or 1 and 3.
        let order = all.chunks(4).flat_map(|four| [0, 2, 1, 3].map(|i| four[i]));
        let order: Vec<_> = order.collect();
        let threads = Layout::flat(&[4, 8, n / 16], &[2 * n, 2, 16])?;
        let values = Layout::flat(&[2, 2, m / 8], &[1, n, 8 * n])?;
        let tv = Layout::tuple(&[threads, values])?;
        let sums = k
            .fragment([n, m], &tv, thread, &order)?
            .convert(k, self.what.element)?;
        let c = self
            .c
            .transposed()
            .tile(k, &[n, m], &[self.at[1], self.at[0]])?;
        let c = c.partition(k, &tv, thread)?.vectors(k, 2)?;
        k.store_fragment(&c, &sums)
    }
}
