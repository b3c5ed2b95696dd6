//! Products of 8-bit floats with scales: c = Σ over blocks of k of `scale_a`·`scale_b`·(a·bᵀ of the block), on Hopper. a is m × k, b is n × k, both e4m3 or both e5m2, row-major; c is m × n in bf16 or f32.
//!
//! ```text
//! producer      a, b: 128 of k, and their scales ──TMA──▶ stages
//! consumers     one stage ──wgmma──▶ partial sums ──× scale_a[row]·scale_b──▶ added to the sums in f32     [`Scales::Blocks`], [`Scales::Rows128`]
//!               all stages ──wgmma──▶ sums ──× scale_a[row], × scale_b[column]──▶ c                        [`Scales::Rows`]
//! ```
//!
//! Two consumer warpgroups have 64 rows of a tile each: one adds its partial sums while the tensor cores have the products of the other. A block goes from tile to tile, and its producer loads the
//! first stages of the next tile while one is stored.
//!
//! # Numerics
//!
//! With scales of blocks, the tensor cores sum 128 products of a block and keep 13 bits of a sum; each partial sum is multiplied with its scales and added in f32 by `fma`, block after block, and the result is
//! rounded once. With [`Scales::Rows`] the tensor cores sum all of k, as PyTorch's `use_fast_accum`, and the result is multiplied with the scale of its row of a, then with that of its row of b.
//! Results are reproducible bit by bit, and a row of c does not depend on the other rows of a. NaN and infinities of a row of a reach that row of c alone.

use std::fmt;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::pipeline::{TileOrder, TileScheduler, WarpRole};
use layout_codegen::view::{Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};

use crate::KernelError;
use crate::gemm::scheduler::best_rectangle;
use crate::mainloop::{self, MainLoop};

/// The architecture that has the instructions of this kernel.
pub const ARCH: Arch = Arch(90);

/// The element types of a and b.
pub const ELEMENTS: [Element; 2] = [Element::E4m3, Element::E5m2];

/// The element types of c.
pub const RESULTS: [Element; 2] = [Element::Bf16, Element::F32];

/// Elements along k that have a scale in common, and rows of b that have one in [`Scales::Blocks`].
pub const BLOCK: i64 = 128;

/// The blocks of a GPU with 132 multiprocessors.
pub const BLOCKS: u32 = 132;

/// The largest m, n and k.
const MOST: i64 = 1 << 20;

/// Rows of tiles that blocks compute at the same time share columns of b in the level-2 cache.
const GROUP: u32 = 8;

/// Which elements have a scale in common. All scales are numbers of f32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scales {
    /// A scale for each row and 128 of k of a, and for each 128 rows and 128 of k of b. `scale_a` is ⌈k / 128⌉ × m, so that (m, k / 128) has strides (1, m); `scale_b` is ⌈n / 128⌉ × ⌈k / 128⌉.
    Blocks,
    /// The same for each row and 128 of k of both; `scale_b` is ⌈k / 128⌉ × n.
    Rows128,
    /// A scale for each row of a and of b.
    Rows,
}

impl Scales {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Blocks, Self::Rows128, Self::Rows];
}

impl fmt::Display for Scales {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocks => "1x128,128x128",
            Self::Rows128 => "1x128,1x128",
            Self::Rows => "row,row",
        })
    }
}

/// The tile of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Rows: 64 or 128, a consumer warpgroup for each 64.
    pub m: i64,
    /// Columns: 64 or 128.
    pub n: i64,
    /// Stages of 128 of k: 2 to 12.
    pub stages: i64,
    /// Clusters of two blocks along m: each block loads half of their common tile of b, by TMA multicast to both.
    pub multicast: bool,
    /// c is stored by TMA: bf16, and n is a multiple of 8.
    pub tma_store: bool,
}

/// A product with scales.
///
/// ```
/// use tilewright_kernels::block_scaled::{ARCH, BlockScaled, Scales, block_scaled};
///
/// use layout_codegen::ir::Element;
///
/// let what = BlockScaled::new(Element::E4m3, Scales::Blocks, [4096, 7168]);
/// let kernel = block_scaled(what, ARCH)?;
/// assert_eq!(kernel.name(), "block_scaled_e4m3_128x128_multicast_tma");
/// assert_eq!(kernel.proof.covered, ["c"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockScaled {
    /// The type of a and b: e4m3 or e5m2.
    pub element: Element,
    /// Which elements have a scale in common.
    pub scales: Scales,
    /// The type of c: bf16 or f32.
    pub result: Element,
    /// The tile of a block.
    pub tile: Tile,
    /// Blocks of the grid along rows and columns of tiles, together one for each multiprocessor. With multicast each block has the tiles that are whole rectangles apart; without, blocks take
    /// tiles in turn, in groups of rows.
    pub grid: [u32; 2],
}

impl BlockScaled {
    /// The product for c of m × n: the largest tile that gives most multiprocessors work.
    pub fn new(element: Element, scales: Scales, [m, n]: [u64; 2]) -> Self {
        let tiles = |tile: &Tile| [m.div_ceil(tile.m as u64), n.div_ceil(tile.n as u64)];
        let enough = |tile: &Tile| {
            let [rows, columns] = tiles(tile);
            rows.saturating_mul(columns) >= u64::from(BLOCKS) * 3 / 4
        };
        let tma_store = n % 8 == 0;
        let tile = |m, n, stages| Tile {
            m,
            n,
            stages,
            multicast: false,
            tma_store,
        };
        let all = if m <= 64 {
            [tile(64, 128, 8), tile(64, 64, 8)]
        } else {
            [tile(128, 128, 5), tile(128, 64, 6)]
        };
        let mut tile = all.into_iter().find(enough).unwrap_or(all[1]);
        // In the time of its products, a multiprocessor gets little more from the level-2 cache than a stage has.
        tile.multicast = tile.m == 128 && m > 128;
        let grid = if tile.multicast {
            let sizes = [tile.m, tile.n].map(|size| size as u64);
            best_rectangle(tiles(&tile), sizes, [2, 1]).0
        } else {
            [BLOCKS, 1]
        };
        Self {
            element,
            scales,
            result: Element::Bf16,
            tile,
            grid,
        }
    }

    fn validate(&self, arch: Arch) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        KernelError::unless_among(self.result, &RESULTS)?;
        let Tile {
            m,
            n,
            stages,
            multicast,
            tma_store,
        } = self.tile;
        let [down, across] = self.grid;
        let whole = !multicast || down.is_multiple_of(2);
        let blocks = i64::from(down).saturating_mul(across.into());
        let sizes = [
            (
                "architecture of products with scales",
                i64::from(arch.0),
                arch == ARCH,
                "90 (sm_90a)",
            ),
            ("rows of a tile", m, [64, 128].contains(&m), "64 or 128"),
            ("columns of a tile", n, [64, 128].contains(&n), "64 or 128"),
            ("stages", stages, (2..=12).contains(&stages), "2 to 12"),
            (
                "blocks along rows of tiles, by twos in clusters",
                down.into(),
                whole,
                "even",
            ),
            ("blocks", blocks, (1..=4096).contains(&blocks), "1 to 4096"),
            (
                "bytes of an element that TMA stores",
                self.result.bytes().into(),
                !tma_store || self.result == Element::Bf16,
                "2 (bf16)",
            ),
        ];
        let wrong = sizes.into_iter().find(|(_, _, is, _)| !is);
        wrong.map_or(Ok(()), |(what, given, _, accepted)| {
            Err(KernelError::Number {
                what,
                given: given.to_string(),
                accepted,
            })
        })
    }

    fn name(&self) -> String {
        let Tile { m, n, .. } = self.tile;
        let scales = match self.scales {
            Scales::Blocks => "",
            Scales::Rows128 => "_rows128",
            Scales::Rows => "_rows",
        };
        let store = if self.tile.tma_store { "_tma" } else { "" };
        let result = if self.result == Element::F32 {
            "_f32"
        } else {
            ""
        };
        let multicast = if self.tile.multicast {
            "_multicast"
        } else {
            ""
        };
        format!(
            "block_scaled_{}_{m}x{n}{multicast}{scales}{store}{result}",
            self.element
        )
    }
}

/// What the roles have in common.
struct Parts {
    what: BlockScaled,
    arrays: [View; 2],
    scales: [View; 2],
    c: View,
    main: MainLoop,
    /// Iterations of the ring for a tile.
    steps: Expr,
    tiles: TileScheduler,
}

/// The kernel `block_scaled_<element>_<tile>(m, n, k, ld_scale_a, ld_scale_b, a, b, scale_a, scale_b, c)`. Rows of `scale_a` are `ld_scale_a` elements apart, those of `scale_b` `ld_scale_b`, multiples of 4 where a scale is of 1×128; with
/// [`Scales::Rows`] the scales are vectors, and neither parameter is there. k is a multiple of 16; its last block may be shorter than 128.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields do not allow; [`KernelError::View`] and [`KernelError::Proof`] for stages that do not fit shared memory.
pub fn block_scaled(what: BlockScaled, arch: Arch) -> Result<Proven, KernelError> {
    what.validate(arch)?;
    let warpgroups = what.tile.m / 64;
    let mut k = Kernel::new(&what.name(), 128 * (warpgroups as u32 + 1));
    if what.tile.multicast {
        k.clusters([2, 1, 1]);
    }
    let parts = Parts::declare(&mut k, what)?;
    let mut roles = [
        WarpRole::new("consumers", 4 * warpgroups as u32),
        WarpRole::new("producer", 4),
    ];
    // Two warpgroups with 128 sums and partial sums a thread: the producer gives up registers.
    if [what.tile.m, what.tile.n] == [128; 2] {
        let [consumers, producer] = roles;
        roles = [consumers.registers(232), producer.registers(40)];
    }
    let [consumers, producer] = roles;
    k.role(consumers, |k, thread| {
        k.persistent(&parts.tiles, |k, tile| {
            let before = k.mul(tile.number(), parts.steps);
            let c = parts.c.tile(k, &[what.tile.m, what.tile.n], &tile.at())?;
            let to = c.partition_c(k, &parts.main.mma, thread)?.vectors(k, 2)?;
            let sums = parts.sums(k, (before, tile.at()), (&to, thread))?;
            let sums = sums.convert(k, what.result)?;
            if what.tile.tma_store {
                return k.tma_store(&c, &sums);
            }
            k.store_fragment(&to, &sums)
        })
    })?;
    k.producer(producer, |k| {
        k.persistent(&parts.tiles, |k, tile| {
            let before = k.mul(tile.number(), parts.steps);
            parts.load(k, before, tile.at())
        })?;
        if !what.tile.multicast {
            return Ok(());
        }
        // The other block of a cluster may still write to this one's stages.
        let all = k.tiles_of_block(&parts.tiles)?;
        let all = k.mul(all, parts.steps);
        k.drain(&parts.main.ring, all)
    })?;
    Ok(k.build(arch)?)
}

impl Parts {
    fn declare(k: &mut Kernel, what: BlockScaled) -> Result<Self, KernelError> {
        let Tile {
            m: tm,
            n: tn,
            stages,
            multicast,
            ..
        } = what.tile;
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, MOST));
        let of_k = k.tiles_in(depth, BLOCK)?;
        let of_b = match what.scales {
            Scales::Blocks => [k.tiles_in(n, BLOCK)?, of_k],
            _ => [of_k, n],
        };
        let pitches = (what.scales != Scales::Rows)
            .then(|| ["ld_scale_a", "ld_scale_b"].map(|name| k.size(name, MOST)));
        let arrays =
            [("a", m), ("b", n)].map(|(name, rows)| k.input(name, what.element, &[rows, depth]));
        let scales = match pitches {
            None => {
                [("scale_a", m), ("scale_b", n)].map(|(name, n)| k.input(name, Element::F32, &[n]))
            }
            Some([pitch_a, pitch_b]) => [
                k.pitched_input("scale_a", Element::F32, [of_k, m], pitch_a),
                k.pitched_input("scale_b", Element::F32, of_b, pitch_b),
            ],
        };
        let c = k.output("c", what.result, &[m, n]);
        let main = MainLoop::declare(k, what.element, Some(what.scales), [tm, tn, stages])?;
        let tiles = if multicast {
            TileScheduler::rectangle([m, n], [tm, tn], what.grid)
        } else {
            let blocks = what.grid[0] * what.grid[1];
            TileScheduler::linear([m, n], [tm, tn], blocks, TileOrder::Groups(GROUP))
        };
        Ok(Self {
            what,
            arrays,
            scales,
            c,
            main,
            steps: k.tiles_in(depth, BLOCK)?,
            tiles,
        })
    }

    /// The producer's part of a tile of c.
    fn load(&self, k: &mut Kernel, before: Expr, [i, j]: [Expr; 2]) -> Result<(), ViewError> {
        let [a, b] = &self.arrays;
        let Tile {
            m, n, multicast, ..
        } = self.what.tile;
        k.produce(
            &self.main.ring,
            before,
            self.steps,
            |k, [to_a, to_b], step| {
                let from_a = a.tile(k, &[m, BLOCK], &[i, step])?;
                let from_b = b.tile(k, &[n, BLOCK], &[j, step])?;
                k.tma_load(&from_a, &to_a)?;
                if multicast {
                    k.tma_multicast(&from_b, &to_b, Axis::X)?;
                } else {
                    k.tma_load(&from_b, &to_b)?;
                }
                self.main.load_scales(k, (before, step), |k, operand| {
                    let (width, at) = [(m, i), (n, j)][operand];
                    self.scales[operand].tile(k, &[1, width], &[step, at])
                })
            },
        )
    }

    /// The consumers' part: the scaled sums of a tile of c.
    fn sums(
        &self,
        k: &mut Kernel,
        (before, [i, j]): (Expr, [Expr; 2]),
        (to, thread): (&Partition, Expr),
    ) -> Result<Fragment, ViewError> {
        let Tile { m, n, .. } = self.what.tile;
        let [of_a, of_b] = &self.scales;
        let block = k.scale(j, n);
        let block = k.div(block, BLOCK);
        let steps = (before, self.steps);
        let sums = self.main.sums(k, steps, (to, thread), |k, step| {
            of_b.load(k, &[block, step])
        })?;
        if self.what.scales != Scales::Rows {
            return Ok(sums);
        }
        let scales = [of_a.tile(k, &[m], &[i])?, of_b.tile(k, &[n], &[j])?];
        mainloop::scaled(k, sums, to, &scales)
    }
}
