//! The product by `mma.sync`.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::pipeline::{Ring, Staged};
use layout_codegen::value::{BrainPair, F32, HalfPair, Predicate, U32, Value};
use layout_codegen::view::{Fragment, Partition, Use, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, LayoutError, Operand, Swizzled, TiledCopy, TiledMma, atoms};

use super::order::{self, LANE_WORDS, PIECE_K, PIECE_ROWS, PIECE_WORDS};
use super::scales::Group;
use super::unpack::{self, Pair};
use super::{MOST, MOST_K, MOST_ROWS, Tile, WeightOnly, Weights};
use crate::KernelError;

/// Unused elements behind a row of sums in shared memory.
const PAD: i64 = 4;

/// Elements of a thread of the sums that it adds.
const VECTOR: i64 = 4;

/// The kernel of a configuration that is valid.
pub(super) fn build(what: WeightOnly, tile: Tile, arch: Arch) -> Result<Proven, KernelError> {
    match what.element {
        Element::F16 => product::<HalfPair>(what, tile, arch),
        _ => product::<BrainPair>(what, tile, arch),
    }
}

/// What a block has of the tensors.
struct Tensors {
    a: View,
    w: View,
    /// Scales, and zero points if there are.
    of_groups: Vec<View>,
    c: View,
    /// The tile of c along m and n, n in parts of the blocks of a cluster.
    at: [Expr; 2],
    /// The tile of w.
    rows: Expr,
    /// The first step along k, and their number.
    steps: [Expr; 2],
}

impl Tensors {
    fn declare(k: &mut Kernel, what: &WeightOnly, tile: Tile) -> Result<Self, KernelError> {
        let Tile {
            m: bm,
            n: bn,
            k: bk,
            cluster,
            ..
        } = tile;
        let blocks = i64::from(cluster);
        let (m, n, depth) = (
            k.size("m", MOST_ROWS),
            k.size("n", MOST),
            k.size("k", MOST_K),
        );
        let [pieces, along] = [k.tiles_in(n, PIECE_ROWS)?, k.tiles_in(depth, PIECE_K)?];
        let words = k.scale(along, PIECE_WORDS);
        let groups = what.scale_extents(k, [n, depth], [pieces, along])?;
        let a = k.input("a", what.element, &[m, depth]);
        let w = k.input("w", Element::S32, &[pieces, words]);
        let names = what.names_of_groups().iter();
        let of_groups = names
            .map(|name| k.input(name, what.scale_element(), &groups))
            .collect();
        let c = k.output("c", what.element, &[m, n]);
        let (part, i) = (k.tiles(Axis::X, n, bn / blocks)?, k.tiles(Axis::Y, m, bm)?);
        let rank = k.cluster_rank(Axis::X)?;
        let rows = k.div(part, blocks);
        // Steps are shared out in order; the last blocks of a cluster may have fewer.
        let (all, each) = (k.tiles_in(depth, bk)?, k.tiles_in(depth, bk * blocks)?);
        let first = k.mul(rank, each);
        let left = k.sub(all, first);
        let left = k.clamp(left, 0, MOST_K);
        let count = k.smaller(left, each);
        Ok(Self {
            a,
            w,
            of_groups,
            c,
            at: [i, part],
            rows,
            steps: [first, count],
        })
    }
}

/// How a block works on a stage.
struct Block {
    what: WeightOnly,
    tile: Tile,
    /// The factor of all weights, of nvfp4.
    factor: Option<F32>,
    mma: TiledMma,
    read_a: TiledCopy,
    lane: Expr,
    /// Which of the warps along the rows of w, and along k.
    warp: [Expr; 2],
}

fn product<T: Pair>(what: WeightOnly, tile: Tile, arch: Arch) -> Result<Proven, KernelError> {
    let Tile {
        m: bm,
        n: bn,
        warps,
        cluster,
        ..
    } = tile;
    let mut k = Kernel::new(&what.name(), (32 * warps[0] * warps[1]) as u32);
    if cluster > 1 {
        k.clusters([cluster, 1, 1]);
    }
    let tensors = Tensors::declare(&mut k, &what, tile)?;
    let mut block = Block::new(&mut k, what, tile)?;
    block.factor = (what.weights == Weights::Nvfp4).then(|| k.argument("factor"));
    let ring = block.ring(&mut k, &tensors)?;
    let each = bn / PIECE_ROWS / warps[0];
    let sums = (0..each).map(|_| k.accumulators(&block.mma, [PIECE_ROWS, bm], block.lane));
    let sums = sums.collect::<Result<Vec<_>, _>>()?;
    let layout = Layout::flat(&[warps[1], bm, bn], &[bm * (bn + PAD), bn + PAD, 1])?;
    let parts = k.shared("parts", Element::F32, &Swizzled::from(layout))?;
    let own = block.shares_of_sums(&mut k, &parts)?;
    match ring {
        Rings::Scales(ring) => k.pipeline(&[&ring], tensors.steps[1], |k, step| {
            let [a, w, scales] = step.arrived(k, &ring)?;
            block.multiply::<T>(k, [&a, &w, &scales], None, (&own, &sums))
        })?,
        Rings::Zeros(ring) => k.pipeline(&[&ring], tensors.steps[1], |k, step| {
            let [a, w, scales, zeros] = step.arrived(k, &ring)?;
            block.multiply::<T>(k, [&a, &w, &scales], Some(&zeros), (&own, &sums))
        })?,
    }
    for (to, sums) in own.iter().zip(&sums) {
        k.store_fragment(to, sums)?;
    }
    block.add(&mut k, &parts, &tensors)?;
    Ok(k.build(arch)?)
}

/// The ring, whose stages have tiles of a, w and scales, and of zero points if there are.
enum Rings<'f> {
    Scales(Ring<'f, 3>),
    Zeros(Ring<'f, 4>),
}

impl Block {
    fn new(k: &mut Kernel, what: WeightOnly, tile: Tile) -> Result<Self, KernelError> {
        // One ldmatrix.x4 loads 16 rows of a, 16 deep, or 8 rows, 32 deep.
        let (shape, of_matrices) = if tile.m < 16 {
            ([8, 16], [8, 32])
        } else {
            ([16, 16], [16, 16])
        };
        let mma = order::product(what.element, shape)?;
        let read = order::product(what.element, of_matrices)?;
        let read_a = TiledCopy::for_operand(atoms::LDMATRIX_X4, &read, Operand::B)?;
        let (lane, warp) = (k.lane(), k.warp());
        let across = tile.warps[0];
        let warp = [k.rem(warp, across), k.div(warp, across)];
        Ok(Self {
            what,
            tile,
            factor: None,
            mma,
            read_a,
            lane,
            warp,
        })
    }

    fn threads(&self) -> i64 {
        32 * self.tile.warps[0] * self.tile.warps[1]
    }

    /// The shapes of the tiles of a, w and what groups have in a stage.
    fn shapes(&self) -> [[i64; 2]; 3] {
        let Tile { m, n, k, .. } = self.tile;
        [
            [m, k],
            [n / PIECE_ROWS, k / PIECE_K * PIECE_WORDS],
            self.what.scale_tile(self.tile),
        ]
    }

    fn ring<'f>(&self, k: &mut Kernel, tensors: &'f Tensors) -> Result<Rings<'f>, KernelError> {
        let ([of_a, of_w, of_groups], what) = (self.shapes(), self.what);
        let (element, stages, threads) = (self.what.element, self.tile.stages, self.threads());
        let copy_a = Copy::of(of_a, 2, threads)?;
        let copy_w = Copy::of(of_w, 4, threads)?;
        let packed = what.has_packed_scales();
        let copy_groups = Copy::of(of_groups, if packed { 4 } else { 2 }, threads)?;
        let uses = [Use::target(&copy_a.tiled), Use::source(&self.read_a)];
        let a = Staged::new("a_tile", element, of_a, &uses);
        let w = Staged::new("w_tile", Element::S32, of_w, &[]);
        let scales = Staged::new("scale_tile", what.scale_element(), of_groups, &[]);
        let first = tensors.steps[0];
        let fill = move |k: &mut Kernel, to: &[View], step| {
            let t = k.add(first, step);
            copy_a.emit(k, (&tensors.a, [tensors.at[0], t]), &to[0])?;
            copy_w.emit(k, (&tensors.w, [tensors.rows, t]), &to[1])?;
            for (from, to) in tensors.of_groups.iter().zip(&to[2..]) {
                copy_groups.emit(k, (from, what.scale_tile_at(tensors.rows, t)), to)?;
            }
            Ok(())
        };
        Ok(if self.what.zero_points {
            let zeros = Staged::new("zero_tile", element, of_groups, &[]);
            Rings::Zeros(k.ring(stages, [a, w, scales, zeros], move |k, to, step| {
                fill(k, &to, step)
            })?)
        } else {
            Rings::Scales(k.ring(stages, [a, w, scales], move |k, to, step| {
                fill(k, &to, step)
            })?)
        })
    }

    /// What the lane has of the sums of each piece of its warp: rows of w by rows of a, as the instruction leaves them.
    fn shares_of_sums(&self, k: &mut Kernel, parts: &View) -> Result<Vec<Partition>, ViewError> {
        let Tile { m, n, warps, .. } = self.tile;
        let own = parts.slice(k, &[self.warp[1]])?.transposed();
        let (each, zero) = (n / PIECE_ROWS / warps[0], k.constant(0));
        let share = |piece| {
            let row = k.linear(&[(each, self.warp[0])], piece);
            let own = own.tile(k, &[PIECE_ROWS, m], &[row, zero])?;
            own.partition_c(k, &self.mma, self.lane)
        };
        (0..each).map(share).collect()
    }

    /// Adds the products of a stage to the sums.
    fn multiply<T: Pair>(
        &self,
        k: &mut Kernel,
        [a, w, scales]: [&View; 3],
        zeros: Option<&View>,
        (own, sums): (&[Partition], &[Fragment]),
    ) -> Result<(), ViewError> {
        let Tile {
            m, n, k: bk, warps, ..
        } = self.tile;
        let (of_warp, each) = (bk / PIECE_K / warps[1], n / PIECE_ROWS / warps[0]);
        let group = self.what.group;
        // Parts of a piece that have one scale, and pieces that do.
        let (cut, run) = (
            (PIECE_K / group).max(1),
            (group / PIECE_K).clamp(1, of_warp),
        );
        let zero = k.constant(0);
        for first in (0..of_warp).step_by(run as usize) {
            let pieces: Vec<Expr> = (first..first + run)
                .map(|p| k.linear(&[(of_warp, self.warp[1])], p))
                .collect();
            let a = pieces.iter().map(|&piece| {
                let a = a.tile(k, &[m, PIECE_K], &[zero, piece])?.partition_s(
                    k,
                    &self.read_a,
                    self.lane,
                )?;
                k.load_fragment(&a)?.split(1, cut as usize)
            });
            let a = a.collect::<Result<Vec<_>, _>>()?;
            for row in 0..each {
                let piece = k.linear(&[(each, self.warp[0])], row);
                let to = (&own[row as usize], &sums[row as usize]);
                let of_groups = self.what.groups::<T>(
                    k,
                    (scales, zeros),
                    ([piece, pieces[0]], cut),
                    (to.0, self.lane),
                )?;
                let partial = of_groups
                    .iter()
                    .map(|_| k.accumulators(&self.mma, [PIECE_ROWS, m], self.lane));
                let partial = partial.collect::<Result<Vec<_>, _>>()?;
                for (a, &at) in a.iter().zip(&pieces) {
                    let words = w.tile(k, &[1, PIECE_WORDS], &[piece, at])?;
                    let words = self.words(k, &words)?;
                    let weights = self.weights::<T>(k, &words, &of_groups)?;
                    for (part, (a, w)) in partial.iter().zip(a.iter().zip(&weights)) {
                        k.gemm(&self.mma, w, a, part)?;
                    }
                }
                for (part, of) in partial.iter().zip(&of_groups) {
                    to.1.update_with_both(k, [part, &of.scales], |k, sum, part, scale| {
                        part.fma(k, scale, sum)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The lane's words of a piece.
    fn words(&self, k: &mut Kernel, piece: &View) -> Result<Vec<U32>, ViewError> {
        let own = Layout::flat(&[32, LANE_WORDS], &[LANE_WORDS, 1])?;
        let own = piece
            .partition(k, &own, self.lane)?
            .vectors(k, LANE_WORDS)?;
        k.load_fragment(&own)?.thread_values(k)
    }

    /// The weights of a piece, in as many parts along k as there are groups.
    fn weights<T: Pair>(
        &self,
        k: &mut Kernel,
        words: &[U32],
        of_groups: &[Group<T>],
    ) -> Result<Vec<Fragment>, ViewError> {
        let tv = order::operand()?;
        let mut all: Vec<Value<T>> = Vec::new();
        let each = words.len() / of_groups.len();
        for (group, words) in of_groups.iter().zip(words.chunks(each)) {
            for &word in words {
                all.extend(match self.what.weights {
                    Weights::Int4 => unpack::integers(k, word, group.zeros),
                    Weights::Mxfp4 | Weights::Nvfp4 => unpack::e2m1(k, word),
                });
            }
        }
        k.fragment([PIECE_ROWS, PIECE_K], &tv, self.lane, &all)?
            .split(1, of_groups.len())
    }

    /// The sums of all warps and blocks that share k, to c.
    fn add(&self, k: &mut Kernel, parts: &View, tensors: &Tensors) -> Result<(), ViewError> {
        let Tile {
            m,
            n,
            warps,
            cluster,
            ..
        } = self.tile;
        let blocks = i64::from(cluster);
        let width = n / blocks;
        let (across, zero) = (width / VECTOR, k.constant(0));
        let used = self.threads().min(m * across);
        let down = used / across;
        let shares = Layout::tuple(&[
            Layout::flat(&[across, down], &[m * VECTOR, 1])?,
            Layout::flat(&[VECTOR, m / down], &[m, down])?,
        ])?;
        if blocks == 1 {
            k.barrier();
        } else {
            k.cluster_barrier();
        }
        let rank = k.cluster_rank(Axis::X)?;
        by_first(k, [used, self.threads()], |k, thread| {
            let c = tensors.c.tile(k, &[m, width], &tensors.at)?;
            let c = c.partition(k, &shares, thread)?.vectors(k, VECTOR)?;
            let sums = k.fragment_of(&c, 0.0)?;
            for block in 0..blocks {
                for warp in 0..warps[1] {
                    let from = if blocks == 1 {
                        parts.clone()
                    } else {
                        let block = k.constant(block);
                        parts.in_block(k, block)?
                    };
                    let warp = k.constant(warp);
                    let from = from
                        .slice(k, &[warp])?
                        .tile(k, &[m, width], &[zero, rank])?;
                    let from = from.partition(k, &shares, thread)?.vectors(k, VECTOR)?;
                    let part = k.load_fragment(&from)?;
                    sums.update_with(k, &part, |k, sum, part| sum.add(k, part))?;
                }
            }
            if let Some(factor) = self.factor {
                sums.update(k, |k, sum| sum.mul(k, factor))?;
            }
            let sums = sums.convert(k, self.what.element)?;
            k.store_fragment(&c, &sums)
        })?;
        if blocks > 1 {
            k.cluster_barrier();
        }
        Ok(())
    }
}

/// Does `body` by the first `used` of all threads.
fn by_first(
    k: &mut Kernel,
    [used, all]: [i64; 2],
    body: impl FnOnce(&mut Kernel, Expr) -> Result<(), ViewError>,
) -> Result<(), ViewError> {
    let thread = k.thread();
    if used == all {
        return body(k, thread);
    }
    let (end, own) = (k.constant(used), k.rem(thread, used));
    let takes = Predicate::of(k, thread, Cmp::Lt, end);
    k.when(takes, |k| body(k, own))
}

/// A tile to a stage by 16 bytes a thread, by as many threads as there are pieces of 16 bytes.
struct Copy {
    tiled: TiledCopy,
    shape: [i64; 2],
    threads: [i64; 2],
}

impl Copy {
    fn of(shape: [i64; 2], bytes: i64, threads: i64) -> Result<Self, LayoutError> {
        let (vector, [rows, columns]) = (16 / bytes, shape);
        let used = threads.min(rows * columns / vector);
        let across = used.min(columns / vector);
        let lanes = Layout::flat(&[used / across, across], &[across, 1])?;
        let values = Layout::flat(&[1, vector], &[0, 1])?;
        let tiled = TiledCopy::new(atoms::CP_ASYNC_16.recast(8 * bytes)?, &lanes, &values)?;
        Ok(Self {
            tiled,
            shape,
            threads: [used, threads],
        })
    }

    fn emit(
        &self,
        k: &mut Kernel,
        (from, at): (&View, [Expr; 2]),
        to: &View,
    ) -> Result<(), ViewError> {
        by_first(k, self.threads, |k, thread| {
            let from = from
                .tile(k, &self.shape, &at)?
                .partition_s(k, &self.tiled, thread)?;
            let to = to.partition_d(k, &self.tiled, thread)?;
            k.copy(&from, &to)
        })
    }
}
