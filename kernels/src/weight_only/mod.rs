//! Products with 4-bit weights: c = a·wᵀ, a is m × k in bf16 or f16, w is n × k in 4 bits with scales of groups along k, c is m × n.
//!
//! ```text
//! w: pieces of 16 rows × 64 of k, a 16-byte load a lane ──cp.async──▶ stages ──▶ words ──shift, lop3, sub──▶ A fragments ─┐
//! a: m × k ──cp.async──▶ stages ──ldmatrix──▶ B fragments ───────────────────────────────────────────────────────────────┴▶ mma.sync ──▶ sums of a group
//! sums of a group × scale ──▶ added in f32 ──▶ shared memory of the warps and blocks that share k ──▶ added in their order ──▶ c
//! ```
//!
//! The weights are the instruction's A, so that few rows of a fill its short side: cᵀ = w·aᵀ. The order of weights in memory is made for the instruction, the loads and the unpacking; [`order`]
//! derives it, and [`repack`] makes it from the orders of checkpoints. The picture is that of [`Design::MmaSync`]; by [`Design::Wgmma`], on Hopper, a lane loads its words to registers, the weights
//! are the A of `wgmma` there, and a comes by TMA.
//!
//! # Numerics
//!
//! A weight is (q − 8)·scale or (q − zero)·scale with q from 0 to 15, or e2m1·scale. The integers and e2m1 are exact in bf16 and f16; tensor cores sum their products with a within a group in f32, and
//! that sum is multiplied with the scale in f32 and added. So weights are not rounded. By `wgmma` an integer is multiplied with the scale in the type of a, which rounds the weight once, and tensor cores
//! sum all of k in f32. The sums of the warps and blocks that share k are added in f32 in their order, and the result is rounded once. Results are
//! reproducible bit by bit, a row of c does not depend on the other rows of a, and NaN and ∞ of a row of a reach that row of c alone.

mod hopper;
pub mod order;
mod product;
pub mod repack;
pub mod scales;
mod unpack;

use std::fmt;

use layout_codegen::ir::Element;
use layout_codegen::{Arch, Proven};

use crate::KernelError;

/// The first architecture that has the instructions.
pub const ARCH: Arch = Arch(80);

/// The architecture of the design for Hopper.
pub const WGMMA_ARCH: Arch = Arch(90);

/// The types of a and c.
pub const ELEMENTS: [Element; 2] = [Element::Bf16, Element::F16];

/// The largest n.
const MOST: i64 = 1 << 24;

/// The largest k.
const MOST_K: i64 = 1 << 20;

/// The most rows of a.
pub const MOST_ROWS: i64 = 1 << 16;

/// How weights of 4 bits are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Weights {
    /// Integers q from 0 to 15 that mean q − 8, or q less the zero point of their group. Groups of 32, 64 or 128 have a scale in the type of a.
    Int4,
    /// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. Groups of 32 have a power of two in a byte (e8m0) as their scale.
    Mxfp4,
    /// e2m1; groups of 16 have a scale in e4m3, and all weights a factor in f32.
    Nvfp4,
}

impl Weights {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Int4, Self::Mxfp4, Self::Nvfp4];

    /// The groups along k that can have a scale.
    pub fn groups(self) -> &'static [i64] {
        match self {
            Self::Int4 => &[32, 64, 128],
            Self::Mxfp4 => &[32],
            Self::Nvfp4 => &[16],
        }
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int4 => "int4",
            Self::Mxfp4 => "mxfp4",
            Self::Nvfp4 => "nvfp4",
        })
    }
}

/// What a block computes, and how.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tile {
    /// Rows of a: 8, 16, 32 or 64.
    pub m: i64,
    /// Rows of w: 32, 64, 128 or 256.
    pub n: i64,
    /// Weights along k of a stage: 128, 256 or 512.
    pub k: i64,
    /// Warps that share the rows of w, and warps that share k: 1 to 16 in all.
    pub warps: [i64; 2],
    /// Stages of the ring: 2 to 8.
    pub stages: i64,
    /// Blocks of a cluster, which share k and add their sums through distributed shared memory: 1, 2, 4 or 8. More than 1 is for `sm_90` and newer.
    pub cluster: u32,
}

/// What a block computes by `wgmma`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WgmmaTile {
    /// Rows of a: 32, 64, 128, 192 or 256.
    pub m: i64,
    /// Rows of w: 64 or 128, a consumer warpgroup for each 64.
    pub n: i64,
    /// Weights along k of a stage: 128 or 256.
    pub k: i64,
    /// Stages: 2 to 8.
    pub stages: i64,
    /// Blocks of a cluster, which load their common tile of a together: 1, 2 or 4.
    pub cluster: u32,
}

/// How a block computes the product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Design {
    /// By `mma.sync`, from `sm_80` on. Scales multiply sums of groups.
    MmaSync(Tile),
    /// By `wgmma`, on Hopper: int4, k a multiple of 8. Scales multiply weights.
    Wgmma(WgmmaTile),
}

/// A product with 4-bit weights.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::weight_only::{WeightOnly, Weights, weight_only};
///
/// let what = WeightOnly::new(Element::Bf16, Weights::Int4, 128, [1, 4096, 4096], Arch(80));
/// let kernel = weight_only(what, Arch(80))?;
/// assert_eq!(kernel.name(), "weight_only_bf16_int4_g128_8x32");
/// assert_eq!(kernel.proof.covered, ["c"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WeightOnly {
    /// The type of a, c and the scales of int4: bf16 or f16.
    pub element: Element,
    /// How weights are numbers.
    pub weights: Weights,
    /// Weights along k that have a scale in common.
    pub group: i64,
    /// Each group has a zero point too, in the type of a.
    pub zero_points: bool,
    /// How a block computes it.
    pub design: Design,
}

/// Multiprocessors of the GPU that the tiles are chosen for.
const MULTIPROCESSORS: u64 = 132;

impl Tile {
    /// The tile for m rows of a and n rows of w.
    pub fn new(m: u64, n: u64, arch: Arch) -> Self {
        let all = [8, 16, 32, 64];
        let rows = all.into_iter().find(|&rows| m <= rows as u64).unwrap_or(64);
        // Stages of 64 rows are half as deep; where a multiprocessor has one block, its stages are twice as deep.
        let alone = n.div_ceil(128).saturating_mul(2) <= MULTIPROCESSORS && m <= 16;
        let (k, stages) = match (rows, alone) {
            (64, _) => (128, 3),
            (_, true) if arch >= Arch(90) => (512, 3),
            _ => (256, 3),
        };
        let tile = |n, warps, cluster| Self {
            m: rows,
            n,
            k,
            warps,
            stages,
            cluster,
        };
        // A warp has the sums of one piece, where each has many.
        let (of_128, of_64) = if rows > 16 {
            ([8, 1], [4, 2])
        } else {
            ([4, 2], [2, 2])
        };
        let candidates = if arch >= Arch(90) && rows <= 16 {
            let deep = Self {
                k: 512,
                ..tile(32, [2, 4], 2)
            };
            [tile(128, of_128, 2), tile(128, of_128, 4), deep]
        } else if arch >= Arch(90) {
            [
                tile(128, of_128, 2),
                tile(128, of_128, 4),
                tile(64, of_64, 4),
            ]
        } else {
            [
                tile(128, of_128, 1),
                tile(64, of_64, 1),
                tile(32, [2, 2], 1),
            ]
        };
        // By portable tiles, which no cluster shares, a multiprocessor has two blocks; tiles of more rows have more to multiply.
        let least = if rows <= 16 && arch < Arch(90) {
            2 * MULTIPROCESSORS - 12
        } else {
            MULTIPROCESSORS * 3 / 4
        };
        let blocks = |tile: &Self| {
            let across = n.div_ceil(tile.n as u64) * u64::from(tile.cluster);
            across.saturating_mul(m.div_ceil(rows as u64))
        };
        // Of those with enough blocks, the one that shares them most evenly among the multiprocessors; where two do, the larger.
        let evenness = |tile: &Self| {
            let blocks = blocks(tile);
            let rounds = blocks.div_ceil(MULTIPROCESSORS).max(1);
            blocks.saturating_mul(64) / MULTIPROCESSORS.saturating_mul(rounds)
        };
        let enough = candidates.into_iter().rev();
        let enough = enough.filter(|tile| blocks(tile) >= least);
        enough.max_by_key(evenness).unwrap_or(candidates[2])
    }

    fn rules(self, arch: Arch) -> Vec<Rule> {
        let Self {
            m,
            n,
            k,
            warps: [across, along],
            stages,
            cluster,
        } = self;
        let warps = across.saturating_mul(along);
        let divides = |parts: i64, whole: i64| parts > 0 && whole % parts == 0;
        let blocks = [1, 2, 4, 8].contains(&cluster) && (cluster == 1 || arch >= Arch(90));
        vec![
            (
                "rows of a in a tile",
                m,
                [8, 16, 32, 64].contains(&m),
                "8, 16, 32 or 64",
            ),
            (
                "rows of w in a tile",
                n,
                [32, 64, 128, 256].contains(&n),
                "32, 64, 128 or 256",
            ),
            (
                "weights along k of a stage",
                k,
                [128, 256, 512].contains(&k),
                "128, 256 or 512",
            ),
            ("warps", warps, (1..=16).contains(&warps), "1 to 16"),
            (
                "warps that share the rows of w",
                across,
                divides(across, n / order::PIECE_ROWS),
                "a divisor of the tile's rows by 16",
            ),
            (
                "warps that share k",
                along,
                divides(along, k / order::PIECE_K),
                "a divisor of the stage's k by 64",
            ),
            ("stages", stages, (2..=8).contains(&stages), "2 to 8"),
            (
                "blocks of a cluster",
                cluster.into(),
                blocks,
                "1; or 2, 4 or 8 for sm_90 and newer",
            ),
        ]
    }
}

impl WgmmaTile {
    /// The tile for m rows of a and n rows of w: the most rows of a with which most multiprocessors have a block.
    pub fn new(m: u64, n: u64) -> Self {
        let across = n.div_ceil(128);
        let enough = |rows: &i64| {
            let blocks = across.saturating_mul(m.div_ceil(*rows as u64));
            *rows < 2 * m as i64 && blocks >= MULTIPROCESSORS * 3 / 4
        };
        let rows = [256, 128, 64].into_iter().find(enough).unwrap_or(32);
        let (k, stages) = match rows {
            256 => (128, 3),
            128 => (128, 5),
            64 => (256, 4),
            _ => (256, 6),
        };
        Self {
            m: rows,
            n: 128,
            k,
            stages,
            cluster: 2,
        }
    }

    fn rules(self, arch: Arch) -> Vec<Rule> {
        let Self {
            m,
            n,
            k,
            stages,
            cluster,
        } = self;
        vec![
            (
                "architecture of products by wgmma",
                arch.0.into(),
                arch == WGMMA_ARCH,
                "90 (sm_90a)",
            ),
            (
                "rows of a in a tile",
                m,
                [32, 64, 128, 192, 256].contains(&m),
                "32, 64, 128, 192 or 256",
            ),
            (
                "rows of w in a tile",
                n,
                [64, 128].contains(&n),
                "64 or 128",
            ),
            (
                "weights along k of a stage",
                k,
                [128, 256].contains(&k),
                "128 or 256",
            ),
            ("stages", stages, (2..=8).contains(&stages), "2 to 8"),
            (
                "blocks of a cluster",
                cluster.into(),
                [1, 2, 4].contains(&cluster),
                "1, 2 or 4",
            ),
        ]
    }
}

/// What a number counts, the number, whether it is accepted, and what is.
type Rule = (&'static str, i64, bool, &'static str);

impl WeightOnly {
    /// The product for sizes (m, n, k), with enough blocks where there are: by `wgmma` for more than 16 rows where that is possible, else by the shortest tile that has all rows, up to 64.
    pub fn new(
        element: Element,
        weights: Weights,
        group: i64,
        [m, n, k]: [u64; 3],
        arch: Arch,
    ) -> Self {
        let by_wgmma = arch == WGMMA_ARCH && m > 16 && weights == Weights::Int4;
        let design = if by_wgmma && k.is_multiple_of(8) {
            Design::Wgmma(WgmmaTile::new(m, n))
        } else {
            Design::MmaSync(Tile::new(m, n, arch))
        };
        Self {
            element,
            weights,
            group,
            zero_points: false,
            design,
        }
    }

    fn validate(&self, arch: Arch) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        let refuse = |what, given: String, accepted| {
            Err(KernelError::Number {
                what,
                given,
                accepted,
            })
        };
        let is_int4 = self.weights == Weights::Int4;
        if self.zero_points && !is_int4 {
            return refuse("weights with zero points", self.weights.to_string(), "int4");
        }
        if matches!(self.design, Design::Wgmma(_)) && !is_int4 {
            return refuse(
                "weights of a product by wgmma",
                self.weights.to_string(),
                "int4",
            );
        }
        let groups = match self.weights {
            Weights::Int4 => "32, 64 or 128, which int4 has",
            Weights::Mxfp4 => "32, which mxfp4 has",
            Weights::Nvfp4 => "16, which nvfp4 has",
        };
        let has = self.weights.groups().contains(&self.group);
        let mut rules = vec![("weights of a group", self.group, has, groups)];
        rules.extend(match self.design {
            Design::MmaSync(tile) => tile.rules(arch),
            Design::Wgmma(tile) => tile.rules(arch),
        });
        match rules.into_iter().find(|(_, _, is, _)| !is) {
            None => Ok(()),
            Some((what, given, _, accepted)) => refuse(what, given.to_string(), accepted),
        }
    }

    fn name(&self) -> String {
        let Self {
            element,
            weights,
            group,
            ..
        } = self;
        let zeros = if self.zero_points { "_zeros" } else { "" };
        let (design, m, n, cluster) = match self.design {
            Design::MmaSync(tile) => ("", tile.m, tile.n, tile.cluster),
            Design::Wgmma(tile) => ("_wgmma", tile.m, tile.n, tile.cluster),
        };
        let cluster = match cluster {
            1 => String::new(),
            blocks => format!("_cluster{blocks}"),
        };
        format!("weight_only_{element}_{weights}_g{group}{zeros}{design}_{m}x{n}{cluster}")
    }
}

/// The kernel `weight_only_<element>_<weights>_g<group>_<tile>(m, n, k, a, w, scales, c)`: a is m × k and c is m × n, row-major; w are words in the order of [`order::packed`], n rounded up to 16
/// rows and k to 64; scales are ⌈k / group⌉ × n of int4, and words in the order of [`scales::packed_scales`] of mxfp4 and nvfp4. With zero points, `zeros` of the same shape come behind the scales;
/// nvfp4 has the parameter `factor` at the end. The last group may be shorter than the others.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the configuration does not allow; [`KernelError::View`] and [`KernelError::Proof`] for stages that do not fit shared memory, and for an
/// architecture that lacks an instruction.
pub fn weight_only(what: WeightOnly, arch: Arch) -> Result<Proven, KernelError> {
    what.validate(arch)?;
    match what.design {
        Design::MmaSync(tile) => product::build(what, tile, arch),
        Design::Wgmma(tile) => hopper::build(what, tile, arch),
    }
}
