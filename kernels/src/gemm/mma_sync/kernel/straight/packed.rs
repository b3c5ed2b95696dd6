//! Sums that are rounded to 16 bits before they go through shared memory.

use layout_codegen::ir::instructions::{Addresses, Cache, Class, Extent, Instructions, Reg};
use layout_codegen::view::View;

use super::{Lane, Straight, Strip};
use crate::gemm::PlanError;
use crate::gemm::mma_sync::kernel::Gemm;
use crate::gemm::mma_sync::staging::{ROUNDED, Staging};
use crate::gemm::pieces::bits;

/// Staging of elements of C that are rounded already.
pub(super) struct Packed {
    staging: Staging,
    /// (row, column, warp, which of two strips, strip)
    view: View,
}

impl<'a> Gemm<'a> {
    /// Staging of rounded elements; none where C has the size of sums.
    pub(super) fn packed(&mut self) -> Result<Option<Packed>, PlanError> {
        let output = self.plan.variant.output;
        if output.bytes() != 2 || self.maps.staging.held {
            return Ok(None);
        }
        let st = &self.maps.staging;
        let bytes = output.bytes().into();
        let staging = Staging::new(
            &self.maps.atom,
            (false, false),
            (st.cols, 1),
            st.vector,
            bytes,
        )?;
        let warps = self.plan.warp_grid().0 * self.plan.warp_grid().1;
        let strips =
            self.plan.tile_of_c().0 / self.plan.warp_grid().0 / st.rows * self.plan.chunks();
        let shape = [st.rows, st.cols, warps, 2, strips].map(Extent::Fixed);
        let (at, strides) = (
            self.plan.staging_at(self.maps),
            vec![st.bytes(), st.bytes() / 2, 0],
        );
        let view = self
            .k
            .shared_at("rounded", bytes, staging.shared, at, shape.into(), strides);
        Ok(Some(Packed { staging, view }))
    }

    /// All strips, two at a time where they have the same rows.
    pub(super) fn store_packed(
        &mut self,
        straight: &Straight<'a>,
        packed: &Packed,
        lane: &Lane,
        strips: &[Strip<'_>],
    ) -> Result<(), PlanError> {
        let of_rows = strips.chunk_by(|a, b| a.down == b.down);
        for (number, some) in (0..).zip(of_rows.flat_map(|strips| strips.chunks(2))) {
            self.k.open_region();
            self.k.comment(format!("strip {number}, rounded"));
            // What a strip before was staged in is read.
            self.k.warp_barrier();
            for (half, strip) in (0..).zip(some) {
                self.stage_packed(straight, packed, [half, number], strip.atoms)?;
            }
            self.k.warp_barrier();
            for (half, strip) in (0..).zip(some) {
                self.copy_packed(packed, [half, number], lane, strip)?;
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// The atoms of a strip, rounded, to shared memory.
    fn stage_packed(
        &mut self,
        straight: &Straight<'a>,
        packed: &Packed,
        [half, number]: [i64; 2],
        atoms: &[Vec<Reg>],
    ) -> Result<(), PlanError> {
        let st = &packed.staging;
        let (write_row, write_col) = st.split(&st.write)?;
        let halves = st.write.get(1)?.get(0)?.size();
        let warp = self.k.div(self.tid, 32);
        for (j, atom) in (0..).zip(atoms) {
            let sums = straight.of_sums_alone(self.k, atom);
            for (h, pair) in (0..).zip(sums.chunks(2)) {
                let kernel = &mut *self.k;
                let value = kernel.constant(h + halves * j);
                let r = kernel.index(&write_row, &[self.lane, value])?;
                let c = kernel.index(&write_col, &[self.lane, value])?;
                let (half, number) = (kernel.constant(half), kernel.constant(number));
                let at = packed.view.element(self.k, &[r, c, warp, half, number])?;
                straight.end.store_rounded(self.k, None, pair, at);
                self.k.tag(ROUNDED[0]);
            }
        }
        Ok(())
    }

    /// A strip of rounded elements to C, vector by vector.
    fn copy_packed(
        &mut self,
        packed: &Packed,
        [half, number]: [i64; 2],
        lane: &Lane,
        strip: &Strip<'_>,
    ) -> Result<(), PlanError> {
        let st = &packed.staging;
        let read = st.split(&st.read)?;
        let warp = self.k.div(self.tid, 32);
        let bytes = st.vector * st.bytes;
        let mut vectors: Vec<Vec<Reg>> = Vec::new();
        for pass in 0..self.passes()? {
            let kernel = &mut *self.k;
            let value = kernel.constant(pass);
            let r = kernel.index(&read.0, &[self.lane, value])?;
            let c = kernel.index(&read.1, &[self.lane, value])?;
            let (half, number) = (kernel.constant(half), kernel.constant(number));
            let at = packed.view.element(self.k, &[r, c, warp, half, number])?;
            let words = self.k.regs(Class::B32, (bytes / 4).max(1) as usize);
            self.k.load(None, Cache::Coherent, bits(bytes), &words, at);
            self.k.tag(ROUNDED[1]);
            vectors.push(words);
        }
        for (pass, words) in (0..).zip(vectors) {
            let (guard, to) = self.target(&read, pass, lane, strip)?;
            self.k.store(Some(guard.into()), bits(bytes), &words, to);
        }
        Ok(())
    }
}
