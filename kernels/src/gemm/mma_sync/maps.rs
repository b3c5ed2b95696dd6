//! The maps of one kernel: what brings A and B to the fragments of the atom, and the accumulators to C.

use layout_codegen::Arch;
use layout_codegen::ir::instructions::barriers_of_ring;
use layout_core::atoms::MmaAtom;
use layout_core::{Layout, LayoutError};

use super::operand::{Copies, OperandMaps, PANELS};
use super::staging::{Staging, place_of_c};
use crate::gemm::config::strip_columns;
use crate::gemm::variant::Variant;
use crate::gemm::{Operands, PlanError, Specialized, Trans};

/// Rows of C that are stored together where sums are those of Cᵀ, at most: 8 vectors of two elements a lane, or 16 single ones.
const STRIP_ROWS: i64 = 32;

/// All maps of one kernel.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) atom: MmaAtom,
    pub(crate) a: OperandMaps,
    pub(crate) b: OperandMaps,
    pub(crate) staging: Staging,
}

impl Maps {
    /// Reads and copies of both operands, by the names of their tags.
    pub(super) fn each(&self) -> [(&'static str, &'static str, &OperandMaps, bool); 2] {
        [
            ("copyA", "readA", &self.a, true),
            ("copyB", "readB", &self.b, false),
        ]
    }
}

impl Specialized {
    /// The maps for one choice of transposes.
    pub(crate) fn maps(&self, operands: Operands) -> Result<Maps, PlanError> {
        let atom = self.atom();
        let threads = self.thread_count();
        let Variant { copies, cached, .. } = self.variant;
        let [a, b] = [0, 1].map(|i: usize| {
            let copies = Copies::of(copies[i], self.is_asynchronous(), cached[i]);
            (threads, copies)
        });
        let [a_major, b_major] = self.k_major(operands);
        let (rows, columns) = (
            self.staged_side(self.stage_rows(), a_major),
            self.staged_side(self.tile_of_c().1, b_major),
        );
        let sides = [(true, a_major, rows), (false, b_major, columns)];
        let of_warpgroups = |(is_a, k_major, side)| {
            OperandMaps::of_warpgroups(&atom, is_a, k_major, (side, self.depth()), threads)
        };
        let [a, b] = if self.is_through_registers() {
            let b =
                OperandMaps::through_registers(&atom, (self.tile_of_c().1, self.depth()), threads);
            [of_warpgroups(sides[0])?, b?]
        } else if self.is_wgmma() {
            let [a, b] = sides.map(of_warpgroups);
            [a?, b?]
        } else {
            let a = OperandMaps::new(&atom, true, a_major, (self.tile_of_c().0, self.depth()), a)?;
            let b = OperandMaps::new(&atom, false, b_major, (self.tile_of_c().1, self.depth()), b)?;
            [a, b]
        };
        let bytes = i64::from(self.data_type.scalar().bytes());
        let vector = if self.partial() {
            16 / bytes
        } else {
            self.variant.store / i64::from(self.variant.output.bytes())
        };
        let arranged = (a.is_arranged(), b.is_arranged());
        let cols = (self.strip_cols(), self.variant.products);
        let staging = if self.swap_ab {
            let place = |stride| self.column_order().place_of_c(&atom, stride);
            // As many as divide the tile.
            let atoms = (1..=STRIP_ROWS / atom.n).rev();
            let mut atoms = atoms.filter(|n| self.tile_of_c().0 % (n * atom.n) == 0);
            let strip = (atoms.next().unwrap_or(1), self.strip_cols());
            Staging::held(&atom, place, strip, vector, bytes)?
        } else {
            Staging::new(&atom, arranged, cols, vector, bytes)?
        };
        Ok(Maps {
            atom,
            a,
            b,
            staging,
        })
    }

    /// Rows or columns of C whose elements a stage has: those of the tile, and where they are contiguous whole panels of 128 bytes, as boxes bring them, or one
    /// of 64 or 32.
    fn staged_side(&self, side: i64, k_major: bool) -> i64 {
        let bytes = i64::from(self.data_type.bytes());
        if !self.is_wgmma() || k_major || PANELS.contains(&(side * bytes)) {
            return side;
        }
        let panel = PANELS[0] / bytes;
        (side + panel - 1) / panel * panel
    }

    /// Rows and columns of an operand's stage that products read.
    pub(super) fn read_of_stage(&self, o: &OperandMaps, is_a: bool) -> [i64; 2] {
        let side = if is_a {
            self.stage_rows()
        } else {
            self.tile_of_c().1
        };
        if o.k_major {
            [side, self.depth()]
        } else {
            [self.depth(), side]
        }
    }

    /// Whether k is contiguous in the A and the B that the kernel reads.
    pub(super) fn k_major(&self, operands: Operands) -> [bool; 2] {
        let [a, b] = self.transposed(operands);
        [
            operands.a == Trans::N || a,
            !self.is_through_registers() && (operands.b == Trans::T || b),
        ]
    }

    /// Columns of C that a warp stages at once: all of its own, or some where staging is beside the stages.
    pub(super) fn strip_cols(&self) -> i64 {
        let own = self.tile_of_c().1 / self.warp_grid().1;
        if self.swap_ab {
            // Those between the first and the last.
            self.column_order().width
        } else if self.is_wgmma() {
            let warps = self.warp_grid().0 * self.warp_grid().1;
            let width = i64::from(strip_columns(own as u32, warps as u32));
            width.min(64 / self.variant.products)
        } else {
            own
        }
    }

    /// Into how many pieces the columns of a warp are cut, to be staged one after the other.
    pub(super) fn chunks(&self) -> i64 {
        if self.swap_ab {
            return 1;
        }
        self.tile_of_c().1 / self.warp_grid().1 / self.strip_cols()
    }

    /// How many strips a warp stages, one after the other.
    pub(super) fn strips(&self, staging: &Staging) -> i64 {
        self.tile_of_c().0 / self.warp_grid().0 / staging.rows * self.chunks()
    }

    /// Row of the grid of warps → the first row of its part of the tile. A warp of a warpgroup has 16 rows of each of its products.
    pub(super) fn rows_of_warps(&self) -> Result<Layout, LayoutError> {
        let (warps, own) = (self.warp_grid().0, self.tile_of_c().0 / self.warp_grid().0);
        if self.products_down() > 1 {
            return Layout::flat(&[4, warps / 4], &[16, 4 * own]);
        }
        Layout::mode(warps, own)
    }

    /// How many products a warpgroup makes one below the other.
    pub(super) fn products_down(&self) -> i64 {
        if self.is_wgmma() && !self.swap_ab {
            self.tile_of_c().0 / self.warp_grid().0 / 16
        } else {
            1
        }
    }

    /// Rows from one strip of a warp to the next below it.
    pub(super) fn rows_between_strips(&self, staging: &Staging) -> i64 {
        if self.products_down() > 1 {
            4 * staging.rows
        } else {
            staging.rows
        }
    }

    /// Column of the grid of warps → the first column of its part of the tile.
    pub(super) fn columns_of_warps(&self) -> Result<Layout, LayoutError> {
        if self.swap_ab {
            return self.column_order().first_columns(self.tile_of_c().1, 1);
        }
        Layout::mode(self.warp_grid().1, self.tile_of_c().1 / self.warp_grid().1)
    }

    /// Where the mbarriers of the stages are, in bytes.
    pub(super) fn barriers_at(&self, maps: &Maps) -> i64 {
        self.staging_at(maps) + self.staging_bytes(maps)
    }

    /// Bytes of the staging of C, of all warps.
    pub(super) fn staging_bytes(&self, maps: &Maps) -> i64 {
        maps.staging.bytes() * self.warp_grid().0 * self.warp_grid().1
    }

    /// Where the staging of C is: in the place of the stages, or behind them where a warp does not know that the others are done with them.
    pub(super) fn staging_at(&self, maps: &Maps) -> i64 {
        if self.is_wgmma() {
            self.stages_of(maps) * self.stage_bytes(maps)
        } else {
            0
        }
    }

    /// How many stages there are: those of the plan, or where columns of B are brought as whole panels, as many as there is room for.
    pub(super) fn stages_of(&self, maps: &Maps) -> i64 {
        let stage = self.stage_bytes(maps);
        let panels = maps.b.stage_bytes() * self.variant.products - self.bytes_of_b();
        if !self.is_wgmma() || self.swap_ab || panels == 0 {
            return self.wanted_stages();
        }
        let barriers = 8 * barriers_of_ring(self.wanted_stages(), self.shares_of_ring());
        let room =
            i64::from(Arch(self.min_arch().0).shared_limit()) - self.staging_bytes(maps) - barriers;
        self.wanted_stages().min((room / stage).max(2))
    }

    /// Bytes of B's part of the tile, of all products.
    fn bytes_of_b(&self) -> i64 {
        self.variant.products
            * self.tile_of_c().1
            * self.depth()
            * i64::from(self.data_type.bytes())
    }

    /// Bytes of a stage: a tile of A, and one of B for each product.
    pub(super) fn stage_bytes(&self, maps: &Maps) -> i64 {
        maps.a.stage_bytes() + self.variant.products * maps.b.stage_bytes()
    }

    /// Dynamic shared memory: the stages, with the staging of C in their place.
    pub(in crate::gemm) fn shared_bytes_of(&self, maps: &Maps) -> i64 {
        if self.is_wgmma() {
            let barriers = barriers_of_ring(self.stages_of(maps), self.shares_of_ring());
            return self.barriers_at(maps) + 8 * barriers;
        }
        let stages = self.wanted_stages() * self.stage_bytes(maps);
        stages.max(self.staging_bytes(maps))
    }

    /// (lane, warp rows, warp columns, values) → `row + M·column` of the tile of C.
    pub(super) fn owners(&self, maps: &Maps) -> Result<Layout, PlanError> {
        let (m, n) = self.tile_of_c();
        let (wm, wn) = (m / self.warp_grid().0, n / self.warp_grid().1);
        let atom = &maps.atom;
        if self.swap_ab {
            let c = self.column_order().place_of_c(atom, m)?.compose(&atom.c)?;
            return Ok(Layout::tuple(&[
                c.get(0)?,
                self.column_order().first_columns(n, m)?,
                c.get(1)?,
                Layout::mode(m / atom.n, atom.n)?,
            ])?);
        }
        let arranged = (maps.a.is_arranged(), maps.b.is_arranged());
        let place = place_of_c(atom, arranged, m)?;
        let c = place.compose(&atom.c)?;
        let across = if arranged.1 {
            Layout::flat(&[2, wn / (2 * atom.n)], &[m, 2 * m * atom.n])?
        } else {
            Layout::mode(wn / atom.n, m * atom.n)?
        };
        let columns = Layout::mode(self.warp_grid().1, m * wn)?;
        let warps = Layout::tuple(&[self.rows_of_warps()?, columns])?;
        let apart = self.rows_between_strips(&maps.staging) / maps.staging.rows * atom.m;
        Ok(Layout::tuple(&[
            c.get(0)?,
            warps,
            c.get(1)?,
            Layout::mode(wm / atom.m, apart)?,
            across,
        ])?)
    }
}
