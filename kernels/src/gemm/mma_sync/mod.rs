//! The portable tensor-core family: `mma.sync`, `ldmatrix`, `cp.async`.
//!
//! A configuration is a type, a tile, a grid of warps and a number of stages, and a problem adds how wide copies are and what becomes of the sums; everything
//! else follows. The shared layouts are derived from the accesses ([`operand`]), the fragments come from the atom of the type, and the kernel
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
//! use tilewright_kernels::gemm::{Config, Operands};
//!
//! let (config, nn): (Config, Operands) = ("sgemm-128x128x16".parse()?, "nn".parse()?);
//! let kernel = config.kernel().emit(nn, Arch(80))?;
//! // 3 stages of 16 k, 64 sums a thread; A is loaded and stored, B copied asynchronously.
//! let mix = kernel.mix.ok_or("a main loop")?;
//! assert_eq!(mix.products, 3 * 16 * 64);
//! assert!(mix.multiplying() > 0.87 && kernel.ptx.contains("cp.async"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Stages are unrolled, so that a stage is an immediate of the address, and a main loop of f16 at 3 stages or more has less than
//! 0.11 address instructions for each `ldmatrix`.

mod adapt;
mod cluster;
mod fragments;
mod kernel;
mod launch;
mod maps;
pub mod operand;
mod staging;
mod swapped;
use layout_codegen::Arch;
use layout_codegen::ir::{Element, Entry};

use super::epilogue::Types;
use super::pack::Packing;
use super::partial_sums::PartialSums;
use super::scheduler::{PERSISTENT_LIMIT, TileSchedule};
use crate::gemm::obligation::one_to_one;
use crate::gemm::{LIMIT, NamedLayout, Obligation, Operands, PlanError, Specialized};
use layout_core::atoms::wgmma;
use maps::Maps;
use operand::Read;
pub use staging::WAYS_TO_STORE;

/// What the emitter reads of a configuration, in the numbers of layouts.
impl Specialized {
    /// Rows and columns of C that a block computes.
    fn tile_of_c(&self) -> (i64, i64) {
        let [m, n, _] = self.tile();
        (m.into(), n.into())
    }

    /// Elements along k of a stage.
    fn depth(&self) -> i64 {
        self.config().tile[2].into()
    }

    /// Warps along the rows and the columns of the tile.
    fn warp_grid(&self) -> (i64, i64) {
        let [down, across] = self.warps();
        (down.into(), across.into())
    }

    /// Stages in shared memory, if all fit.
    fn wanted_stages(&self) -> i64 {
        self.stages.into()
    }

    /// Blocks of a cluster along the rows and the columns of C.
    fn cluster_shape(&self) -> (i64, i64) {
        let [rows, columns] = self.cluster;
        (rows.into(), columns.into())
    }

    /// Into how many parts a ping-pong schedule cuts the rows of the tile; 1 in others.
    fn parts(&self) -> i64 {
        self.parts_of_tile().into()
    }

    /// How a ring's warpgroups share stages: the parts of the tile, and whether their products overlap.
    fn shares_of_ring(&self) -> (u32, bool) {
        (self.parts_of_tile(), self.overlaps())
    }

    /// Rows of C that are multiplied at once.
    fn stage_rows(&self) -> i64 {
        self.rows_of_stage().into()
    }

    /// Threads that multiply.
    fn thread_count(&self) -> i64 {
        32 * i64::from(self.warp_count())
    }

    /// The largest m, n and k.
    pub(super) fn limit(&self) -> u64 {
        if self.scheduler.is_persistent() {
            PERSISTENT_LIMIT as u64
        } else {
            LIMIT
        }
    }

    /// The largest m and n: the limit of the kernel, or what its tiles cover where their number is fixed.
    fn most(&self) -> [i64; 2] {
        let (m, n) = self.tile_of_c();
        let limit = self.limit() as i64;
        match self.variant.tiles {
            TileSchedule::Linear { tiles, .. } => [(tiles[0], m), (tiles[1], n)]
                .map(|(count, tile)| (i64::from(count) * tile).min(limit)),
            _ => [limit; 2],
        }
    }

    /// The kernel stores partial sums.
    fn partial(&self) -> bool {
        matches!(self.variant.tiles, TileSchedule::SplitK(_))
    }

    /// The types on the way from sums to C.
    fn types(&self) -> Types {
        Types {
            sum: self.data_type.scalar(),
            scalar: self.scalar(),
            output: self.variant.output,
            packs: self.is_asynchronous(),
        }
    }

    /// The type that the epilogue computes in.
    fn scalar(&self) -> Element {
        self.finish().computes_in(self.data_type)
    }

    /// What it packs first.
    fn packing(&self, operands: Operands) -> Packing {
        Packing {
            product: self.entry_name(operands),
            element: self.data_type.operand(),
            pieces: self.variant.pack,
            transposes: self.transposed(operands),
            chained: self.is_wgmma(),
        }
    }

    /// Its partial sums, if they are split.
    fn partial_sums(&self, operands: Operands) -> PartialSums<'_> {
        PartialSums {
            product: self.entry_name(operands),
            store: self.variant.store,
            types: self.types(),
            finish: self.finish(),
            scaled: self.is_fma(),
            // Products of warpgroups take so little time that this shows.
            together: if self.is_wgmma() { 8 } else { 1 },
            chained: self.is_wgmma(),
        }
    }

    /// What multiplies, in words: the atom, or the instruction of a warpgroup.
    fn product_name(&self, maps: &Maps) -> Result<String, PlanError> {
        if !self.is_wgmma() {
            return Ok(maps.atom.name.to_owned());
        }
        let columns = self.config().tile[usize::from(!self.swap_ab)];
        // A dual product has an instruction for each half.
        let columns = columns / self.variant.products as u32;
        let of = wgmma(columns.into(), maps.atom.a_type, maps.atom.c_type)?;
        Ok(format!("{}, m64n{}k{}", of.name, of.n, of.k))
    }

    /// The representations of its kernels: the product, and those before and after it.
    pub(super) fn entries_of_tile(
        &self,
        operands: Operands,
        arch: Arch,
    ) -> Result<Vec<Entry>, PlanError> {
        kernel::entries(self, operands, arch)
    }

    /// Its layouts.
    pub(super) fn layouts_of_tile(
        &self,
        operands: Operands,
    ) -> Result<Vec<NamedLayout>, PlanError> {
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
                "(lane, value) -> row + {}*column of {}{}",
                maps.atom.m,
                if self.is_wgmma() {
                    "8 columns of a warp's part of "
                } else {
                    ""
                },
                self.product_name(&maps)?
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

    /// What holds of its layouts.
    pub(super) fn claims_of_tile(&self, operands: Operands) -> Result<Vec<Obligation>, PlanError> {
        let maps = self.maps(operands)?;
        let mut claims = Vec::new();
        for (_, read, o, is_a) in maps.each() {
            let name = format!(
                "{read} delivers the operand of {}",
                self.product_name(&maps)?
            );
            claims.push(fragments::delivered(&name, &maps.atom, o, is_a)?);
        }
        let instruction = self.instruction_atom();
        if instruction != maps.atom {
            claims.push(fragments::in_two_steps(&maps.atom, &instruction)?);
        }
        if self.is_wgmma() {
            let across = if self.swap_ab {
                self.tile_of_c().0
            } else {
                self.tile_of_c().1
            };
            claims.push(fragments::of_warpgroup(&maps.atom, across)?);
        }
        claims.push(one_to_one(
            "each element of C has exactly one accumulator",
            &self.owners(&maps)?.into(),
            self.tile_of_c().0 * self.tile_of_c().1,
        )?);
        Ok(claims)
    }
}

/// Bytes of the widest store of C: 8 elements are what staging is laid out for.
pub(super) fn widest_store(output: Element) -> i64 {
    (8 * i64::from(output.bytes())).min(16)
}
