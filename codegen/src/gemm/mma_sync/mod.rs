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
//! Stages are unrolled, so that a stage is an immediate of the address, and a main loop of f16 at 3 stages or more has less than
//! 0.11 address instructions for each `ldmatrix`.

mod fragments;
mod kernel;
mod launch;
pub mod operand;
mod product;
mod staging;
mod variant;

use layout_core::Layout;
use layout_core::atoms::{self, MmaAtom};

use crate::Arch;
use crate::gemm::obligation::one_to_one;
use crate::gemm::raster::{GROUP, Raster};
use crate::gemm::{
    Anatomy, DataType, Gemm, Launch, NamedLayout, Obligation, Operands, Plan, PlanError, Schedule,
    Trans, Units,
};
use crate::ir::Entry;
use operand::{Copies, OperandMaps, Read};
pub use product::FusedPlan;
use product::Product;
use staging::Staging;
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
}

const fn plan(
    data_type: DataType,
    tile: (i64, i64),
    depth: i64,
    warps: (i64, i64),
    stages: i64,
    arch: u32,
) -> MmaPlan {
    MmaPlan {
        data_type,
        tile,
        depth,
        warps,
        stages,
        arch,
        variant: Variant::aligned(data_type),
    }
}

/// The plans that are listed.
pub const PLANS: &[MmaPlan] = &[
    plan(DataType::F16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::F16, (256, 128), 64, (4, 2), 3, 80),
    plan(DataType::F16, (128, 128), 64, (2, 2), 3, 80),
    plan(DataType::F16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::F16, (64, 128), 64, (2, 2), 4, 80),
    plan(DataType::F16, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::F16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::F16, (128, 128), 32, (2, 4), 2, 75),
    plan(DataType::F16, (64, 64), 32, (2, 2), 2, 75),
    plan(DataType::F16Acc16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::F16Acc16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::F16Acc16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::F16Acc16, (128, 128), 32, (2, 4), 2, 75),
    plan(DataType::F16Acc16, (64, 64), 32, (2, 2), 2, 75),
    plan(DataType::Bf16, (128, 256), 64, (2, 4), 3, 80),
    plan(DataType::Bf16, (256, 128), 64, (4, 2), 3, 80),
    plan(DataType::Bf16, (128, 128), 64, (2, 2), 3, 80),
    plan(DataType::Bf16, (128, 128), 32, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 128), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::Bf16, (64, 64), 32, (2, 2), 4, 80),
    plan(DataType::Tf32, (256, 128), 32, (4, 2), 4, 90),
    plan(DataType::Tf32, (128, 256), 32, (2, 4), 3, 80),
    plan(DataType::Tf32, (128, 128), 16, (2, 2), 4, 80),
    plan(DataType::Tf32, (64, 128), 32, (2, 4), 3, 80),
    plan(DataType::Tf32, (64, 64), 16, (2, 2), 4, 80),
    plan(DataType::S8, (128, 128), 64, (2, 4), 4, 80),
    plan(DataType::S8, (128, 64), 64, (2, 2), 4, 80),
    plan(DataType::S8, (64, 64), 64, (2, 2), 4, 80),
    plan(DataType::E4m3, (128, 64), 64, (4, 2), 3, 89),
    plan(DataType::E4m3, (64, 64), 64, (2, 2), 3, 89),
    plan(DataType::E4m3, (64, 64), 32, (2, 2), 4, 89),
    plan(DataType::E5m2, (128, 64), 64, (4, 2), 3, 89),
    plan(DataType::E5m2, (64, 64), 64, (2, 2), 3, 89),
    plan(DataType::E5m2, (64, 64), 32, (2, 2), 4, 89),
    plan(DataType::F64, (128, 128), 8, (4, 2), 4, 90),
    plan(DataType::F64, (64, 128), 16, (2, 4), 3, 90),
    plan(DataType::F64, (64, 64), 32, (2, 2), 3, 90),
    plan(DataType::F64, (64, 64), 16, (2, 2), 3, 80),
];

/// All maps of one kernel.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) atom: MmaAtom,
    pub(crate) a: OperandMaps,
    pub(crate) b: OperandMaps,
    pub(crate) staging: Staging,
    /// Bytes of an element of C.
    pub(crate) c_bytes: i64,
}

impl MmaPlan {
    /// The atom that multiplies.
    fn atom(&self) -> MmaAtom {
        match self.data_type {
            DataType::F16 => atoms::MMA_M16N8K16_F16,
            DataType::F16Acc16 => atoms::MMA_M16N8K16_F16_F16,
            DataType::Bf16 => atoms::MMA_M16N8K16_BF16,
            DataType::Tf32 | DataType::F32 => atoms::MMA_M16N8K8_TF32,
            DataType::S8 => atoms::MMA_M16N8K32_S8,
            DataType::E4m3 => atoms::MMA_M16N8K32_E4M3,
            DataType::E5m2 => atoms::MMA_M16N8K32_E5M2,
            DataType::F64 if self.arch >= 90 => atoms::MMA_M16N8K8_F64,
            DataType::F64 => atoms::MMA_M8N8K4_F64,
        }
    }

    /// Copies are asynchronous where rows are aligned to words.
    fn has_cp_async(&self) -> bool {
        self.arch >= 80
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

    /// The maps for one choice of transposes.
    pub(crate) fn maps(&self, operands: Operands) -> Result<Maps, PlanError> {
        let atom = self.atom();
        let threads = self.thread_count();
        let Variant { copies, cached, .. } = self.variant;
        let [a, b] = [0, 1].map(|i: usize| {
            let copies = Copies::of(copies[i], self.has_cp_async(), cached[i]);
            (threads, copies)
        });
        let a = OperandMaps::new(
            &atom,
            true,
            operands.a == Trans::N,
            (self.tile.0, self.depth),
            a,
        )?;
        let b = OperandMaps::new(
            &atom,
            false,
            operands.b == Trans::T,
            (self.tile.1, self.depth),
            b,
        )?;
        let bytes = i64::from(self.data_type.scalar().bytes());
        let vector = if self.partial() {
            16 / bytes
        } else {
            self.variant.store / i64::from(self.variant.output.bytes())
        };
        let arranged = (a.is_arranged(), b.is_arranged());
        let staging = Staging::new(&atom, arranged, self.tile.1 / self.warps.1, vector, bytes)?;
        Ok(Maps {
            atom,
            a,
            b,
            staging,
            c_bytes: self.variant.output.bytes().into(),
        })
    }

    /// The kernel stores partial sums.
    fn partial(&self) -> bool {
        matches!(self.variant.depth, Depth::Split(_))
    }

    fn shared_bytes_of(&self, maps: &Maps) -> i64 {
        let stages = self.stages * (maps.a.stage_bytes() + maps.b.stage_bytes());
        let staging = maps.staging.bytes() * self.warps.0 * self.warps.1;
        stages.max(staging)
    }
}

impl Maps {
    /// Reads and copies of both operands, by the names of their tags.
    fn each(&self) -> [(&'static str, &'static str, &OperandMaps, bool); 2] {
        [
            ("copyA", "readA", &self.a, true),
            ("copyB", "readB", &self.b, false),
        ]
    }
}

impl Plan for MmaPlan {
    fn name(&self) -> String {
        let (m, n) = self.tile;
        let old = if self.arch < 80 { "-sm75" } else { "" };
        format!("mma-{}-{m}x{n}x{}{old}", self.data_type, self.depth)
    }

    fn data_type(&self) -> DataType {
        self.data_type
    }

    fn min_arch(&self) -> Arch {
        Arch(self.arch)
    }

    fn tile(&self) -> (u32, u32, u32) {
        (self.tile.0 as u32, self.tile.1 as u32, self.depth as u32)
    }

    fn threads(&self) -> u32 {
        self.thread_count() as u32
    }

    fn anatomy(&self) -> Anatomy {
        let instruction = self.instruction();
        Anatomy {
            data_type: self.data_type,
            units: Units::Tensor,
            tile: self.tile(),
            warps: (self.warps.0 as u32, self.warps.1 as u32),
            stages: self.stages as u32,
            instruction: (
                instruction.m as u32,
                instruction.n as u32,
                instruction.k as u32,
            ),
            asynchronous: self.has_cp_async(),
            group: Some(GROUP as u32),
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
                Read::Elements => all.push(NamedLayout {
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
        claims.push(one_to_one(
            "each element of C has exactly one owner",
            &self.owners(&maps)?.into(),
            self.tile.0 * self.tile.1,
        )?);
        Ok(claims)
    }

    fn entry_name(&self, operands: Operands) -> String {
        let finish = &self.linear();
        Product {
            plan: *self,
            finish,
        }
        .entry_name(operands)
    }

    fn entries(&self, operands: Operands, arch: Arch) -> Result<Vec<Entry>, PlanError> {
        let finish = &self.linear();
        kernel::entries(
            Product {
                plan: *self,
                finish,
            },
            operands,
            arch,
        )
    }

    fn ptx_version(&self, arch: Arch) -> &'static str {
        self.version(arch)
    }

    fn shared_bytes(&self, operands: Operands) -> Result<u32, PlanError> {
        Ok(self.shared_bytes_of(&self.maps(operands)?) as u32)
    }

    fn adapt(&self, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
        let finish = &self.linear();
        let product = Product {
            plan: *self,
            finish,
        };
        Ok(Box::new(product.adapted(problem, schedule)?))
    }

    fn launch(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        let finish = &self.linear();
        Product {
            plan: *self,
            finish,
        }
        .launched(problem)
    }
}

impl MmaPlan {
    /// (lane, warp rows, warp columns, values) → `row + M·column` of the tile of C.
    fn owners(&self, maps: &Maps) -> Result<Layout, PlanError> {
        let (m, n) = self.tile;
        let (wm, wn) = (m / self.warps.0, n / self.warps.1);
        let atom = &maps.atom;
        let arranged = (maps.a.is_arranged(), maps.b.is_arranged());
        let place = staging::place_of_c(atom, arranged, m)?;
        let c = place.compose(&atom.c)?;
        let across = if arranged.1 {
            Layout::flat(&[2, wn / (2 * atom.n)], &[m, 2 * m * atom.n])?
        } else {
            Layout::mode(wn / atom.n, m * atom.n)?
        };
        Ok(Layout::tuple(&[
            c.get(0)?,
            Layout::flat(&[self.warps.0, self.warps.1], &[wm, m * wn])?,
            c.get(1)?,
            Layout::mode(wm / atom.m, atom.m)?,
            across,
        ])?)
    }
}

/// The order of tiles.
fn raster(depth: Depth) -> Raster {
    match depth {
        Depth::Groups => Raster::Grouped,
        Depth::Batch | Depth::Split(_) => Raster::Layers,
    }
}
