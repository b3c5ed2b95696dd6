//! The configuration of a product, a value: which main loop, which tile, how many stages, which tile scheduler.
//!
//! ```text
//! Config ── specialize(problem, schedule) ──▶ Specialized ── prove, emit, launch
//! ```
//!
//! A configuration has a name that says everything about it: [`Display`](std::fmt::Display) writes it and [`FromStr`](std::str::FromStr) reads it
//! back ([`name`]). [`Config::table`] lists those that [`select`](crate::select) chooses from; any other that [`Config::validate`] accepts works as well.
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::gemm::{Config, Gemm, Operands, Schedule, Scheduler};
//!
//! let config: Config = "wgmma-bf16-152x128x64+swapab+persistent".parse()?;
//! assert_eq!(config.tile, [152, 128, 64]);
//! assert_eq!(config.to_string(), "wgmma-bf16-152x128x64+swapab+persistent");
//! // One block a tile instead.
//! let other = Config { scheduler: Scheduler::Grid, ..config };
//! assert_eq!(other.to_string(), "wgmma-bf16-152x128x64+swapab");
//!
//! let nt: Operands = "nt".parse()?;
//! let layer = Gemm::packed(300, 4096, 4096, nt);
//! let kernel = other.specialize(&layer, Schedule::default())?;
//! assert!(kernel.emit(nt, Arch(90))?.ptx.contains("wgmma.mma_async"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod name;
mod resources;
mod table;
mod validate;
use layout_codegen::Arch;
use layout_core::atoms::{self, MmaAtom};

use super::epilogue::Function;
use super::scheduler::{GROUP, Order, Scheduler};
use super::{DataType, Gemm, Operands, PlanError, Schedule, Specialized, Trans};
use crate::sources::maxas::Maxas;
use crate::sources::outer::OuterProduct;
pub(crate) use resources::strip_columns;
pub(crate) use validate::STAGES;

/// How the tile of a block is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mainloop {
    /// Fused multiply-adds of single threads, copies by `cp.async`.
    Simt {
        /// Warps along the rows and the columns of the tile.
        warps: [u32; 2],
    },
    /// Tensor cores by `mma.sync`.
    MmaSync {
        /// Warps along the rows and the columns of the tile.
        warps: [u32; 2],
        /// The first architecture that it is for: 75 copies through registers, from 80 on `cp.async`, from 90 on with the larger atoms of f64.
        arch: Arch,
    },
    /// Tensor cores by `wgmma`, and copies by TMA: a warpgroup issues the copies, the others multiply. For `sm_90` alone.
    Wgmma(Wgmma),
    /// A kernel of maxas.
    Maxas(Maxas),
    /// Outer products by plain instructions.
    OuterProduct(OuterProduct),
}

/// How the warpgroups of a `wgmma` main loop share the work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wgmma {
    /// Each multiplies its rows of every stage.
    Cooperative,
    /// Two-level accumulation: the sums of each stage are added to sums in f32, because `wgmma` keeps about 14 bits of a sum of 8-bit floats. It is slower, so
    /// selection never chooses it.
    Promoted,
    /// A ping-pong schedule of two consumer warpgroups. Each has half of the tile's rows, and one stores while the other multiplies. A stage has the rows of one half.
    PingPong,
}

/// A configuration of a product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The type of A and B, and how sums are kept.
    pub data_type: DataType,
    /// How a tile is multiplied.
    pub mainloop: Mainloop,
    /// Rows and columns of C that a block computes, and elements along k of a stage.
    pub tile: [u32; 3],
    /// Stages in shared memory.
    pub stages: u32,
    /// Which tiles a block computes.
    pub scheduler: Scheduler,
    /// Blocks of a cluster along the rows and the columns of C. `[2, 1]` shares tiles of B by TMA multicast, `[1, 2]` tiles of A; `[1, 1]` is no cluster.
    pub cluster: [u32; 2],
    /// Cᵀ = Bᵀ·Aᵀ, by `wgmma`: the instruction has at least 64 rows, which are columns of C then, and as few as 8 columns. 32-bit elements of B go
    /// through registers, so that B with contiguous columns needs no transpose; otherwise B is transposed first.
    pub swap_ab: bool,
}

impl Config {
    /// The kernel for operands aligned to 16 bytes, with α and β alone as its epilogue: what a table of kernels shows, and what a program that knows its
    /// problems at compile time takes.
    pub fn kernel(self) -> Specialized {
        Specialized::of(self)
    }

    /// The kernel for a problem: with copies as wide as its alignment allows, its type of C, its epilogue, its batch, and the given schedule.
    ///
    /// # Errors
    ///
    /// Those of [`Config::validate`], and [`PlanError::Unsupported`] with what would work, or what is wrong with the problem.
    pub fn specialize(self, problem: &Gemm, schedule: Schedule) -> Result<Specialized, PlanError> {
        self.kernel().specialize(problem, schedule)
    }

    /// The kernel with a function of your own as its epilogue: [`Specialized::with_epilogue`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn with_epilogue(self, function: Function) -> Result<Specialized, PlanError> {
        self.kernel().with_epilogue(function)
    }

    /// The kernel of two products of the same A: [`Specialized::with_dual_epilogue`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn with_dual_epilogue(self, function: Function) -> Result<Specialized, PlanError> {
        self.kernel().with_dual_epilogue(function)
    }

    /// The first architecture that it runs on.
    pub fn min_arch(&self) -> Arch {
        match self.mainloop {
            Mainloop::Simt { .. } => Arch(80),
            Mainloop::MmaSync { arch, .. } => arch,
            Mainloop::Wgmma(_) => Arch(90),
            Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => Arch(75),
        }
    }

    /// Whether an architecture has its instructions.
    pub fn runs_on(&self, arch: Arch) -> bool {
        if self.is_wgmma() {
            return arch == Arch(90);
        }
        self.min_arch() <= arch
    }

    /// It multiplies by `wgmma`.
    pub const fn is_wgmma(&self) -> bool {
        matches!(self.mainloop, Mainloop::Wgmma(_))
    }

    /// It multiplies by `mma.sync`.
    pub const fn is_mma_sync(&self) -> bool {
        matches!(self.mainloop, Mainloop::MmaSync { .. })
    }

    /// Its products are fused multiply-adds of single threads.
    pub const fn is_fma(&self) -> bool {
        !self.is_wgmma() && !self.is_mma_sync()
    }

    /// Two warpgroups have halves of a tile in a ping-pong schedule.
    pub const fn is_ping_pong(&self) -> bool {
        matches!(self.mainloop, Mainloop::Wgmma(Wgmma::PingPong))
    }

    /// Sums of stages are added to others.
    pub const fn is_promoted(&self) -> bool {
        matches!(self.mainloop, Mainloop::Wgmma(Wgmma::Promoted))
    }

    /// Copies to shared memory are asynchronous where rows are aligned to words; otherwise they go through registers.
    pub fn is_asynchronous(&self) -> bool {
        self.min_arch() >= Arch(80)
    }

    /// Rows of tiles that run one after another in each column of tiles, so that they share tiles of B; none if tiles run along the rows.
    pub(crate) fn rows_together(&self) -> Option<u64> {
        let along_rows = matches!(self.mainloop, Mainloop::Maxas(_));
        (!along_rows).then_some(GROUP)
    }

    /// Blocks of a cluster.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let config: Config = "wgmma-f16-128x256x64+cluster2x1".parse()?;
    /// assert_eq!(config.cluster_blocks(), 2);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub const fn cluster_blocks(&self) -> u32 {
        self.cluster[0] * self.cluster[1]
    }

    /// Warps that multiply, along the rows and the columns of the tile.
    pub fn warps(&self) -> [u32; 2] {
        let [m, n, _] = self.tile;
        match self.mainloop {
            Mainloop::Simt { warps } | Mainloop::MmaSync { warps, .. } => warps,
            Mainloop::Wgmma(_) if self.swap_ab => [1, n / 16],
            Mainloop::Wgmma(Wgmma::PingPong) => [8, 1],
            Mainloop::Wgmma(_) => [m / 16, 1],
            Mainloop::Maxas(kernel) => as_square(kernel.threads()),
            Mainloop::OuterProduct(kernel) => as_square(kernel.threads()),
        }
    }

    /// Warps that multiply.
    pub fn warp_count(&self) -> u32 {
        let [down, across] = self.warps();
        down * across
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        // A warpgroup beside those that multiply has the operands copied.
        let producer = if self.is_wgmma() { 128 } else { 0 };
        32 * self.warp_count() + producer
    }

    /// Rows and columns of C that a warp computes.
    pub fn warp_tile(&self) -> [u32; 2] {
        let [down, across] = self.warps();
        [self.tile[0] / down, self.tile[1] / across]
    }

    /// Into how many parts the rows of a tile are cut, each of a consumer of its own.
    pub const fn parts_of_tile(&self) -> u32 {
        if self.is_ping_pong() { 2 } else { 1 }
    }

    /// Rows of C that are multiplied at once, which are those of a stage: those of the tile, or of one half in a ping-pong schedule.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let rows = |name: &str| name.parse().map(|config: Config| config.rows_of_stage());
    /// assert_eq!(rows("wgmma-s8-128x256x128")?, 128);
    /// assert_eq!(rows("wgmma-s8-256x128x128+pingpong")?, 128);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub const fn rows_of_stage(&self) -> u32 {
        self.tile[0] / self.parts_of_tile()
    }

    /// Whether a warpgroup of a ping-pong schedule lets the other begin while its own last products are in flight, so that the tensor cores never wait.
    /// Rectangles of blocks leave the gap: without it the blocks drift apart, and rows that they share come from memory instead of the cache.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let overlaps = |name: &str| name.parse().map(|config: Config| config.overlaps());
    /// assert!(overlaps("wgmma-e4m3-256x144x128+pingpong+linear")?);
    /// assert!(!overlaps("wgmma-bf16-256x128x64+pingpong")?);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn overlaps(&self) -> bool {
        self.is_ping_pong() && self.scheduler == Scheduler::Persistent(Order::Linear)
    }

    /// The atom that multiplies.
    pub(crate) fn atom(&self) -> MmaAtom {
        match self.data_type {
            DataType::F16 => atoms::MMA_M16N8K16_F16,
            DataType::F16Acc16 => atoms::MMA_M16N8K16_F16_F16,
            DataType::Bf16 => atoms::MMA_M16N8K16_BF16,
            DataType::Tf32 => atoms::MMA_M16N8K8_TF32,
            DataType::F32 => atoms::FMA_M16N32_F32,
            DataType::S8 => atoms::MMA_M16N8K32_S8,
            DataType::E4m3 => atoms::MMA_M16N8K32_E4M3,
            DataType::E5m2 => atoms::MMA_M16N8K32_E5M2,
            DataType::F64 if self.min_arch() >= Arch(90) => atoms::MMA_M16N8K8_F64,
            DataType::F64 => atoms::MMA_M8N8K4_F64,
        }
    }

    /// The instruction that multiplies: the atom itself, or one of half its depth before `sm_80`.
    pub(crate) fn instruction_atom(&self) -> MmaAtom {
        match (self.is_asynchronous(), self.data_type) {
            (false, DataType::F16Acc16) => atoms::MMA_M16N8K8_F16_F16,
            (false, _) => atoms::MMA_M16N8K8_F16,
            _ => self.atom(),
        }
    }

    /// Rows and columns of C, and elements along k, that one instruction of a warp multiplies; a fused multiply-add has one element of C for each of its
    /// 32 lanes.
    pub fn instruction(&self) -> [u32; 3] {
        let atom = self.instruction_atom();
        let [m, n, k] = [atom.m, atom.n, atom.k].map(|e| e as u32);
        match self.mainloop {
            Mainloop::Wgmma(_) if self.swap_ab => [self.tile[0], 16, k],
            Mainloop::Wgmma(_) => [16, self.tile[1], k],
            Mainloop::MmaSync { .. } => [m, n, k],
            Mainloop::Simt { .. } | Mainloop::Maxas(_) | Mainloop::OuterProduct(_) => [32, 1, 1],
        }
    }

    /// Whether k must be contiguous in both operands as `wgmma` reads them from shared memory: it takes the side contiguous of 16-bit elements alone.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let k_major = |name: &str| name.parse().map(|config: Config| config.is_k_major());
    /// assert!(k_major("wgmma-tf32-128x256x32")?);
    /// assert!(!k_major("wgmma-f16-128x256x64")?);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn is_k_major(&self) -> bool {
        self.is_wgmma() && self.data_type.bytes() != 2
    }

    /// B goes to the tensor cores through registers.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Config;
    /// let through = |name: &str| name.parse().map(|config: Config| config.is_through_registers());
    /// assert!(through("wgmma-tf32-64x128x64+swapab")?);
    /// assert!(!through("wgmma-bf16-16x64x128+swapab")?);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn is_through_registers(&self) -> bool {
        self.swap_ab && self.data_type.bytes() == 4
    }

    /// Which of A and B, lying as `operands` says, is transposed before the product: where k must be contiguous and is not, or, of B that goes through
    /// registers, is and must not.
    ///
    /// ```
    /// use tilewright_kernels::gemm::{Config, Operands};
    /// let nn: Operands = "nn".parse()?;
    /// let of = |name: &str| name.parse().map(|config: Config| config.transposed(nn));
    /// assert_eq!(of("wgmma-tf32-128x256x32")?, [false, true]);
    /// assert_eq!(of("wgmma-tf32-256x128x32+swapab")?, [false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transposed(&self, operands: Operands) -> [bool; 2] {
        let b = (operands.b == Trans::N) != self.is_through_registers();
        [operands.a == Trans::T, b].map(|side| side && self.is_k_major())
    }
}

/// As many warps as threads make, as square as can be: of FMA kernels the model of time needs the number, not the arrangement.
const fn as_square(threads: u32) -> [u32; 2] {
    if threads == 64 { [1, 2] } else { [2, 4] }
}
