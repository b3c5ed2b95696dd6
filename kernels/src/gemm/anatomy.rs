//! What a block of a plan is made of, and what it asks of a multiprocessor: warps, instructions, copies, registers, shared memory.
//!
//! [`Plan::anatomy`](super::Plan::anatomy) answers for each family. [`select`](crate::select) estimates times from the answer and knows no family by
//! name.
//!
//! Registers are estimated from what a thread must hold: its accumulators, two sets of fragments, and forty for addresses and loops. For
//! `mma-f16-128x128x64` that is 128 + 2·32 + 40 = 232, and the assembler takes 246. Copies narrower than 16 bytes keep more addresses, and
//! 8-bit floats that are widened to f16 keep their wide fragments; both are counted as the assembler does for the 64×64 tiles.
//!
//! ```
//! use tilewright_kernels::gemm::registry::plan_named;
//!
//! let anatomy = plan_named("mma-f16-128x128x64")?.anatomy();
//! assert_eq!((anatomy.warps, anatomy.stages, anatomy.instruction), ((2, 2), 3, (16, 8, 16)));
//! assert_eq!(anatomy.registers(false, false), 232);
//! # Ok::<(), tilewright_kernels::gemm::PlanError>(())
//! ```

use layout_codegen::Arch;
use layout_codegen::ir::instructions::barriers_of_ring;

use super::{DataType, Operands, Trans};

/// Registers of a thread beside accumulators and fragments.
const OTHER_REGISTERS: u32 = 40;

/// The same for FMA kernels, which keep what they copy in registers in place of addresses.
const OTHER_REGISTERS_FMA: u32 = 28;

/// Addresses and pieces of copies narrower than 16 bytes: `mma-f16-64x64x64` takes 154 registers with them and 106 without.
const NARROW_REGISTERS: u32 = 46;

/// Wide fragments of 8-bit floats: `mma-e4m3-64x64x64` takes 171 registers, `mma-s8-64x64x64` 128.
const WIDENED_REGISTERS: u32 = 64;

/// What multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Units {
    /// Fused multiply-adds of single threads.
    Fma,
    /// Tensor cores, by `mma.sync`.
    Tensor,
    /// Tensor cores, by products of warpgroups, which read shared memory themselves, one factor or both.
    Warpgroup,
}

/// How warpgroups make products.
///
/// ```
/// use tilewright_kernels::gemm::registry::plan_named;
/// assert!(plan_named("wgmma-tf32-256x128x32-swapped")?.anatomy().form.is_swapped());
/// assert!(plan_named("wgmma-e4m3-128x128x128-promoted")?.anatomy().form.is_promoted());
/// assert_eq!(plan_named("wgmma-s8-256x128x128-pingpong")?.anatomy().form.ordered_roles(), 2);
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Form {
    /// A·B, both from shared memory. Plans of other units have no other form.
    #[default]
    Plain,
    /// The same, and the sums of a stage are added to sums in f32, for the numbers' sake: those of `wgmma` keep about 14 bits in 8-bit floats. It is slower,
    /// so that such a plan is taken by its name alone.
    Promoted,
    /// Cᵀ = Bᵀ·Aᵀ: the instruction has at least 64 rows, which are columns of C then, and as few as 8 columns. 32-bit elements of B go through registers, so
    /// that B with contiguous columns needs no transpose; otherwise B is transposed first.
    Swapped,
    /// A·B, and the rows of a tile are those of two warpgroups that take turns: one stores its half of the tile while the other multiplies. A stage has the
    /// rows of one of them.
    PingPong,
}

impl Form {
    /// Sums of stages are added to others.
    pub const fn is_promoted(self) -> bool {
        matches!(self, Form::Promoted)
    }

    /// A and B have exchanged their roles.
    pub const fn is_swapped(self) -> bool {
        matches!(self, Form::Swapped)
    }

    /// Into how many parts the rows of a tile are cut, of which each is multiplied in a turn of its own.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Form;
    /// assert_eq!([Form::Plain, Form::PingPong].map(Form::ordered_roles), [1, 2]);
    /// ```
    pub const fn ordered_roles(self) -> u32 {
        match self {
            Form::PingPong => 2,
            Form::Plain | Form::Promoted | Form::Swapped => 1,
        }
    }
}

/// Which tiles of C a block has. A block with several takes one after the other, and a launch has as many blocks as multiprocessors hold.
///
/// ```
/// use tilewright_kernels::gemm::Turns;
/// use tilewright_kernels::gemm::registry::plan_named;
///
/// let of = |name| plan_named(name).map(|plan| plan.anatomy().turns);
/// assert_eq!(of("wgmma-bf16-128x256x64")?, Turns::One);
/// assert_eq!(of("wgmma-bf16-128x256x64-persistent")?, Turns::Rectangle);
/// assert_eq!(of("wgmma-e4m3-256x144x128-pingpong-dealt")?, Turns::Dealt);
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Turns {
    /// One tile.
    One,
    /// Tiles in steps of a rectangle of blocks.
    Rectangle,
    /// Tiles that are dealt out one by one in the order of all tiles.
    Dealt,
}

impl Turns {
    /// A block has tile after tile.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Turns;
    /// assert_eq!([Turns::One, Turns::Rectangle, Turns::Dealt].map(Turns::are_several), [false, true, true]);
    /// ```
    pub const fn are_several(self) -> bool {
        !matches!(self, Turns::One)
    }
}

/// What a block is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Anatomy {
    /// Its type.
    pub data_type: DataType,
    /// What multiplies.
    pub units: Units,
    /// Rows and columns of C, and the elements along k of a stage.
    pub tile: (u32, u32, u32),
    /// Warps along the rows and the columns.
    pub warps: (u32, u32),
    /// Stages in shared memory, at least 2.
    pub stages: u32,
    /// Rows and columns of C, and elements along k, that one instruction of a warp multiplies; a fused multiply-add has one element of C for
    /// each of its 32 lanes.
    pub instruction: (u32, u32, u32),
    /// Copies to shared memory are asynchronous (`cp.async`) where rows are aligned to words; otherwise they go through registers.
    pub asynchronous: bool,
    /// Rows of tiles that run one after another in each column of tiles, so that they share tiles of B; none if tiles run along the rows.
    pub group: Option<u32>,
    /// Which tiles of C a block has.
    pub turns: Turns,
    /// How products of warpgroups are made.
    pub form: Form,
    /// Blocks of a cluster along the rows and the columns of C: those one below the other copy their tile of B once, those side by side that of A. (1, 1)
    /// without clusters.
    pub cluster: (u32, u32),
}

impl Anatomy {
    /// Blocks of a cluster.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// let blocks = |name| plan_named(name).map(|plan| plan.anatomy().cluster_blocks());
    /// assert_eq!(blocks("wgmma-f16-128x256x64")?, 1);
    /// assert_eq!(blocks("wgmma-f16-128x256x64-cluster2x1")?, 2);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster.0 * self.cluster.1
    }

    /// Warps of a block.
    pub fn warp_count(&self) -> u32 {
        self.warps.0 * self.warps.1
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        // A warpgroup beside those that multiply has the operands copied.
        let producer = if self.units == Units::Warpgroup {
            128
        } else {
            0
        };
        32 * self.warp_count() + producer
    }

    /// Rows and columns of C that a warp computes.
    pub fn warp_tile(&self) -> (u32, u32) {
        (self.tile.0 / self.warps.0, self.tile.1 / self.warps.1)
    }

    /// Bytes of the tiles of A and B in one stage.
    pub fn stage_bytes(&self) -> u32 {
        (self.rows_of_stage() + self.tile.1) * self.tile.2 * self.data_type.bytes()
    }

    /// Rows of C that are multiplied at once: those of the tile, or of one of the warpgroups that take turns.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// let rows = |name| plan_named(name).map(|plan| plan.anatomy().rows_of_stage());
    /// assert_eq!(rows("wgmma-s8-128x256x128")?, 128);
    /// assert_eq!(rows("wgmma-s8-256x128x128-pingpong")?, 128);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn rows_of_stage(&self) -> u32 {
        self.tile.0 / self.form.ordered_roles()
    }

    /// Whether a warpgroup passes its turn on while its last products are in flight, so that the tensor cores never wait. Plans whose blocks lie in rectangles leave the gap: without
    /// it the blocks drift apart, and rows that they share come from memory instead of the cache.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// assert!(plan_named("wgmma-e4m3-256x144x128-pingpong-dealt")?.anatomy().overlaps());
    /// assert!(!plan_named("wgmma-bf16-256x128x64-pingpong")?.anatomy().overlaps());
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn overlaps(&self) -> bool {
        self.turns == Turns::Dealt && self.form.ordered_roles() > 1
    }

    /// Bytes of shared memory: all stages, or as many of those with whole panels of contiguous columns of B as there is room for. What C is staged through shares the
    /// place of those of warps.
    pub fn shared_bytes(&self) -> u32 {
        let bytes = self.data_type.bytes();
        let panels = match self.units {
            Units::Warpgroup if bytes == 2 => {
                self.tile.1.next_multiple_of(128 / bytes) - self.tile.1
            }
            _ => 0,
        };
        // Behind the stages of warpgroups are a strip of sums of each warp, but where lanes store what they hold, and its mbarriers.
        let strip = 16 * 4 * strip_columns(self.tile.1, self.warp_count());
        let behind = match self.units {
            Units::Warpgroup if self.form.is_swapped() => 16 * self.stages,
            Units::Warpgroup => {
                let mbarriers = barriers_of_ring(
                    self.stages.into(),
                    (self.form.ordered_roles(), self.overlaps()),
                );
                self.warp_count() * strip + 8 * mbarriers as u32
            }
            _ => 0,
        };
        let stage = self.stage_bytes();
        let with_panels = stage + panels * self.tile.2 * bytes;
        let fitting = match panels {
            0 => self.stages,
            _ => self
                .stages
                .min(Arch(90).shared_limit().saturating_sub(behind) / with_panels),
        };
        (self.stages * stage).max(fitting * with_panels) + behind
    }

    /// Registers of a thread, estimated; `narrow` if copies are narrower than 16 bytes, `widened` if 8-bit floats are not multiplied as such.
    pub fn registers(&self, narrow: bool, widened: bool) -> u32 {
        let (wm, wn) = self.warp_tile();
        let sets = 1 + u32::from(self.form.is_promoted());
        let accumulators = sets * wm * wn / 32 * self.data_type.accumulator().bytes() / 4;
        let (fragments, other) = match self.units {
            Units::Fma => {
                let factors: u32 = self.factors_of_a_lane().iter().sum();
                let wide = self.data_type.bytes() / 4;
                (factors * wide, OTHER_REGISTERS_FMA)
            }
            // Fragments are read from shared memory.
            Units::Warpgroup => (0, OTHER_REGISTERS),
            Units::Tensor => (
                (wm + wn) * self.instruction.2 * self.data_type.bytes() / 128,
                OTHER_REGISTERS,
            ),
        };
        let mut all = accumulators + 2 * fragments + other;
        if narrow && self.units == Units::Tensor {
            all += NARROW_REGISTERS;
        }
        if widened {
            all += WIDENED_REGISTERS;
        }
        all.min(255)
    }

    /// Whether k must be contiguous in both operands as `wgmma` reads them from shared memory: it takes the side contiguous of 16-bit elements alone.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// assert!(plan_named("wgmma-tf32-128x256x32")?.anatomy().is_k_major());
    /// assert!(!plan_named("wgmma-f16-128x256x64")?.anatomy().is_k_major());
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn is_k_major(&self) -> bool {
        self.units == Units::Warpgroup && self.data_type.bytes() != 2
    }

    /// B goes to the tensor cores through registers.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// assert!(plan_named("wgmma-tf32-64x128x64-swapped")?.anatomy().is_through_registers());
    /// assert!(!plan_named("wgmma-bf16-16x64x128-swapped")?.anatomy().is_through_registers());
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn is_through_registers(&self) -> bool {
        self.form.is_swapped() && self.data_type.bytes() == 4
    }

    /// Which of A and B, lying as `operands` says, is transposed before the product: where k must be contiguous and is not, or, of B that goes through
    /// registers, is and must not.
    ///
    /// ```
    /// use tilewright_kernels::gemm::Operands;
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// let nn: Operands = "nn".parse()?;
    /// let of = |name| plan_named(name).map(|plan| plan.anatomy().transposed(nn));
    /// assert_eq!(of("wgmma-tf32-128x256x32")?, [false, true]);
    /// assert_eq!(of("wgmma-tf32-256x128x32-swapped")?, [false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transposed(&self, operands: Operands) -> [bool; 2] {
        let b = (operands.b == Trans::N) != self.is_through_registers();
        [operands.a == Trans::T, b].map(|side| side && self.is_k_major())
    }

    /// Elements of C that a lane has sums of.
    pub fn sums_of_a_lane(&self) -> u32 {
        let (wm, wn) = self.warp_tile();
        wm * wn / 32
    }

    /// Rows and columns of C that a lane of an FMA kernel has sums of: in a grid of 4×8 lanes where copies are asynchronous, else as many of both.
    ///
    /// ```
    /// use tilewright_kernels::gemm::registry::plan_named;
    /// assert_eq!(plan_named("sgemm-256x128x8")?.anatomy().factors_of_a_lane(), [16, 8]);
    /// assert_eq!(plan_named("sgemm-maxas-128")?.anatomy().factors_of_a_lane(), [8, 8]);
    /// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
    /// ```
    pub fn factors_of_a_lane(&self) -> [u32; 2] {
        let (wm, wn) = self.warp_tile();
        if self.asynchronous {
            [wm / 4, wn / 8]
        } else {
            [(wm * wn / 32).isqrt(); 2]
        }
    }

    /// Products that one instruction of a warp adds.
    pub fn products_of_instruction(&self) -> u32 {
        let (m, n, k) = self.instruction;
        m * n * k
    }
}

/// Columns of sums that a warp of warpgroups stages at once: as many as divide those of the tile, and of three warpgroups fewer, so that there is room for
/// their stages.
pub(crate) fn strip_columns(columns: u32, warps: u32) -> u32 {
    let widest = if warps > 8 { 32 } else { 64 };
    let divides = |width: &u32| columns.is_multiple_of(*width);
    [widest, 32, 16]
        .into_iter()
        .find(divides)
        .unwrap_or(columns)
}
