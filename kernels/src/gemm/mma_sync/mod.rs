//! The portable tensor-core family: `mma.sync`, `ldmatrix`, `cp.async`.
//!
//! A plan is a type, a tile, a grid of warps and a number of stages, and a [`Variant`] for what a problem asks of it; everything else
//! follows. The shared layouts are derived from the accesses ([`operand`]), the fragments come from the atom of the type, and the kernel
//! strings them together:
//!
//! ```text
//! cp.async: global -> stage s+stages-1     (as wide as the rows are aligned, zeros outside)
//! ldmatrix: stage s -> fragments           (the next k step while this one is multiplied)
//! mma.sync: fragments -> accumulators
//! ```
//!
//! In f32 the atom is no instruction but a warp's outer product of fused multiply-adds
//! ([`FMA_M16N32_F32`](layout_core::atoms::FMA_M16N32_F32)): the same frame with 16-byte reads of both factors, and with operands whose k is contiguous
//! transposed on their way through registers:
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::gemm::Operands;
//! use tilewright_kernels::gemm::registry::plan_named;
//!
//! let nn: Operands = "nn".parse()?;
//! let kernel = plan_named("sgemm-128x128x16")?.emit(nn, Arch(80))?;
//! // 3 stages of 16 k, 64 sums a thread; A is loaded and stored, B copied asynchronously.
//! let mix = kernel.mix.ok_or("a main loop")?;
//! assert_eq!(mix.products, 3 * 16 * 64);
//! assert!(mix.multiplying() > 0.87 && kernel.ptx.contains("cp.async"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Stages are unrolled, so that a stage is an immediate of the address, and a main loop of f16 at 3 stages or more has less than
//! 0.11 address instructions for each `ldmatrix`.

mod cluster;
mod fragments;
mod kernel;
mod launch;
mod maps;
mod name;
pub mod operand;
mod plans;
mod product;
mod staging;
mod swapped;
mod variant;
use layout_codegen::Arch;
use layout_codegen::ir::Entry;
use layout_core::atoms::{self, MmaAtom};

use crate::gemm::fused::Family;
use crate::gemm::obligation::one_to_one;
use crate::gemm::raster::{GROUP, Raster, TURNS_LIMIT};
use crate::gemm::{
    Anatomy, DataType, Form, Gemm, LIMIT, Launch, NamedLayout, Obligation, Operands, Plan,
    PlanError, Schedule, Turns, Units,
};
use operand::Read;
pub use plans::{PLANS, WARPGROUP_PLANS};
use product::Product;
pub use staging::WAYS_TO_STORE;
pub use variant::{Depth, Variant};

/// One plan of the family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmaPlan {
    /// Element type.
    pub data_type: DataType,
    /// Rows and columns of C that a block computes.
    pub tile: (i64, i64),
    /// Elements along k of one stage.
    pub depth: i64,
    /// Warps along the rows and the columns of the tile.
    pub warps: (i64, i64),
    /// Stages in shared memory.
    pub stages: i64,
    /// The first architecture of this plan: 75 without `cp.async`, 80, 89 for 8-bit floats, 90 for the larger f64 atoms.
    pub arch: u32,
    /// What its kernel is made for.
    pub variant: Variant,
    /// Products are of warpgroups (`wgmma`), and operands copied by TMA: for `sm_90` alone.
    pub warpgroups: bool,
    /// Which tiles of C a block has. Those with several are for GPUs of 128 multiprocessors and more.
    pub turns: Turns,
    /// How warpgroups multiply.
    pub form: Form,
    /// Blocks of a cluster along the rows and the columns of C, which share operands by multicast: (1, 1) without clusters.
    pub cluster: (i64, i64),
}

impl MmaPlan {
    /// The atom that multiplies.
    fn atom(&self) -> MmaAtom {
        match self.data_type {
            DataType::F16 => atoms::MMA_M16N8K16_F16,
            DataType::F16Acc16 => atoms::MMA_M16N8K16_F16_F16,
            DataType::Bf16 => atoms::MMA_M16N8K16_BF16,
            DataType::Tf32 => atoms::MMA_M16N8K8_TF32,
            DataType::F32 => atoms::FMA_M16N32_F32,
            DataType::S8 => atoms::MMA_M16N8K32_S8,
            DataType::E4m3 => atoms::MMA_M16N8K32_E4M3,
            DataType::E5m2 => atoms::MMA_M16N8K32_E5M2,
            DataType::F64 if self.arch >= 90 => atoms::MMA_M16N8K8_F64,
            DataType::F64 => atoms::MMA_M8N8K4_F64,
        }
    }

    /// Its products are fused multiply-adds of single lanes.
    fn is_fma(&self) -> bool {
        operand::is_fma(&self.atom())
    }

    /// Copies are asynchronous where rows are aligned to words.
    fn has_cp_async(&self) -> bool {
        self.arch >= 80
    }

    /// B goes to the tensor cores through registers.
    fn is_through_registers(&self) -> bool {
        self.anatomy().is_through_registers()
    }

    /// How many warpgroups take turns; 1 where all of them multiply every stage.
    fn ordered_roles(&self) -> i64 {
        self.form.ordered_roles().into()
    }

    /// How many warpgroups take turns, and whether their turns overlap.
    fn turns_of_ring(&self) -> (u32, bool) {
        (self.form.ordered_roles(), self.anatomy().overlaps())
    }

    /// A ping-pong schedule is of two warpgroups in a persistent kernel.
    fn takes_turns(&self) -> Result<(), PlanError> {
        let turns = matches!(self.variant.depth, Depth::Turns(..) | Depth::Dealt(..));
        let blocks = self.warpgroups && turns;
        let halves = self.warps == (8, 1) && [128, 256].contains(&self.tile.0);
        if self.ordered_roles() == 1 || blocks && halves && self.variant.products == 1 {
            return Ok(());
        }
        Err(PlanError::Unsupported {
            plan: self.name(),
            what: "a ping-pong schedule in a dual product or a plan of another kind".to_owned(),
            instead: format!(
                "take {}, or one product, 8x1 warps, 128 or 256 rows and a persistent kernel",
                self.plain().name()
            ),
        })
    }

    /// Rows of C that are multiplied at once.
    fn rows_of_stage(&self) -> i64 {
        self.tile.0 / self.ordered_roles()
    }

    fn thread_count(&self) -> i64 {
        32 * self.warps.0 * self.warps.1
    }

    /// The instruction that multiplies: the atom itself, or one of half its depth before `sm_80`.
    fn instruction(&self) -> MmaAtom {
        match (self.arch, self.data_type) {
            (..80, DataType::F16Acc16) => atoms::MMA_M16N8K8_F16_F16,
            (..80, _) => atoms::MMA_M16N8K8_F16,
            _ => self.atom(),
        }
    }

    /// The largest m, n and k.
    pub(super) fn limit(&self) -> u64 {
        if self.turns.are_several() {
            TURNS_LIMIT as u64
        } else {
            LIMIT
        }
    }

    /// The largest m and n: the limit of the plan, or what the tiles cover that are dealt out.
    fn most(&self) -> [i64; 2] {
        let tile = [self.tile.0, self.tile.1];
        let limit = self.limit() as i64;
        match self.variant.depth {
            Depth::Dealt(_, tiles) => {
                [0, 1].map(|i: usize| (i64::from(tiles[i]) * tile[i]).min(limit))
            }
            _ => [limit; 2],
        }
    }

    /// The kernel stores partial sums.
    fn partial(&self) -> bool {
        matches!(self.variant.depth, Depth::Split(_))
    }
}

impl Plan for MmaPlan {
    fn name(&self) -> String {
        let (m, n) = self.tile;
        let stages = self.stages_in_name();
        if self.is_fma() {
            return format!("sgemm-{m}x{n}x{}{stages}", self.depth);
        }
        if self.warpgroups {
            let swapped = if self.form.is_swapped() {
                "-swapped"
            } else {
                ""
            };
            let own = match (self.form, self.turns.are_several()) {
                (Form::PingPong, _) => "-pingpong",
                (_, true) => "-persistent",
                (Form::Promoted, _) => "-promoted",
                _ => "",
            };
            let dealt = match self.turns {
                Turns::Dealt => "-dealt",
                Turns::One | Turns::Rectangle => "",
            };
            let cluster = match self.cluster {
                (1, 1) => String::new(),
                (rows, columns) => format!("-cluster{rows}x{columns}"),
            };
            let depth = self.depth;
            return format!(
                "wgmma-{}-{m}x{n}x{depth}{swapped}{own}{dealt}{cluster}{stages}",
                self.data_type
            );
        }
        let old = if self.arch < 80 { "-sm75" } else { "" };
        format!("mma-{}-{m}x{n}x{}{old}{stages}", self.data_type, self.depth)
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn min_arch(&self) -> Arch {
        Arch(self.arch)
    }

    fn runs_on(&self, arch: Arch) -> bool {
        if self.warpgroups {
            return arch == Arch(90);
        }
        self.min_arch() <= arch
    }

    fn tile(&self) -> (u32, u32, u32) {
        (self.tile.0 as u32, self.tile.1 as u32, self.depth as u32)
    }

    fn threads(&self) -> u32 {
        let producer = if self.warpgroups { 128 } else { 0 };
        self.thread_count() as u32 + producer
    }

    fn anatomy(&self) -> Anatomy {
        let instruction = self.instruction();
        let of_tensor_cores = [instruction.m, instruction.n, instruction.k].map(|e| e as u32);
        let (units, [m, n, k]) = if self.warpgroups {
            let of_a_warp = if self.form.is_swapped() {
                [self.tile.0, 16, instruction.k]
            } else {
                [16, self.tile.1, instruction.k]
            };
            let of_a_warp = of_a_warp.map(|e| e as u32);
            (Units::Warpgroup, of_a_warp)
        } else if self.is_fma() {
            // A multiply-add in each lane: the atom is many of them.
            (Units::Fma, [32, 1, 1])
        } else {
            (Units::Tensor, of_tensor_cores)
        };
        Anatomy {
            data_type: self.data_type,
            units,
            tile: self.tile(),
            warps: (self.warps.0 as u32, self.warps.1 as u32),
            stages: self.stages as u32,
            instruction: (m, n, k),
            asynchronous: self.has_cp_async(),
            group: Some(GROUP as u32),
            turns: self.turns,
            form: self.form,
            cluster: (self.cluster.0 as u32, self.cluster.1 as u32),
        }
    }

    fn layouts(&self, operands: Operands) -> Result<Vec<NamedLayout>, PlanError> {
        let maps = self.maps(operands)?;
        let mut all = Vec::new();
        for (copy, read, o, _) in maps.each() {
            let (shared, points) = if copy == "copyA" {
                ("sharedA", "pointsA")
            } else {
                ("sharedB", "pointsB")
            };
            let what = if o.k_major { "(side, k)" } else { "(k, side)" };
            all.push(NamedLayout {
                name: shared,
                layout: o.derived.to_string(),
                meaning: format!("{what} -> element of the stage; {}", o.certificate),
            });
            all.push(NamedLayout {
                name: copy,
                layout: o.copy.to_string(),
                meaning: format!("(thread, value) -> column + {}*row of the tile", o.cols),
            });
            match o.read {
                Read::Ldmatrix { .. } | Read::LdmatrixPairs => all.push(NamedLayout {
                    name: points,
                    layout: o.points.to_string(),
                    meaning: format!(
                        "lane -> side + {}*k that it points {} at",
                        o.side,
                        o.read_pattern().access
                    ),
                }),
                // The descriptor is of the shared layout.
                Read::Descriptor => {}
                Read::Elements | Read::Vectors | Read::Neighbours => all.push(NamedLayout {
                    name: read,
                    layout: o.fragment.to_string(),
                    meaning: format!(
                        "(lane, value) -> side + {}*k of the element that it loads",
                        o.side
                    ),
                }),
            }
        }
        all.push(NamedLayout {
            name: "fragmentC",
            layout: maps.atom.c.to_string(),
            meaning: format!(
                "(lane, value) -> row + {}*column of {}",
                maps.atom.m, maps.atom.name
            ),
        });
        all.push(NamedLayout {
            name: "staging",
            layout: maps.staging.derived.to_string(),
            meaning: format!(
                "(row, column) of a warp's strip of C -> element; {}",
                maps.staging.certificate
            ),
        });
        Ok(all)
    }

    fn claims(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        let maps = self.maps(operands)?;
        let mut claims = Vec::new();
        for (_, read, o, is_a) in maps.each() {
            let name = format!("{read} delivers the fragment of {}", maps.atom.name);
            claims.push(fragments::delivered(&name, &maps.atom, o, is_a)?);
        }
        let instruction = self.instruction();
        if instruction != maps.atom {
            claims.push(fragments::in_two_steps(&maps.atom, &instruction)?);
        }
        if self.warpgroups {
            let across = if self.form.is_swapped() {
                self.tile.0
            } else {
                self.tile.1
            };
            claims.push(fragments::of_warpgroup(&maps.atom, across)?);
        }
        claims.push(one_to_one(
            "each element of C has exactly one accumulator",
            &self.owners(&maps)?.into(),
            self.tile.0 * self.tile.1,
        )?);
        Ok(claims)
    }

    fn entry_name(&self, operands: Operands) -> String {
        self.entry_name_with(&self.linear(), operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        self.entries_with(&self.linear(), operands, arch)
    }

    fn shared_bytes(&self, operands: Operands) -> Result<u32, PlanError> {
        Ok(self.shared_bytes_of(&self.maps(operands)?) as u32)
    }

    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        let finish = &self.linear();
        Ok(Box::new(self.product(finish).adapted(problem, schedule)?))
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.launch_with(&self.linear(), problem)
    }
}

/// The order of tiles.
fn raster(depth: Depth) -> Raster {
    match depth {
        Depth::Groups => Raster::Grouped,
        Depth::Batch | Depth::Split(_) => Raster::Layers,
        Depth::Turns(rows, columns) => Raster::Turns([rows, columns]),
        Depth::Dealt(blocks, tiles) => Raster::Dealt(blocks, tiles),
    }
}
