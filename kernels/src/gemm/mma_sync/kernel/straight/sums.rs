//! Sums that go through shared memory as they are, and are finished vector by vector, with what C held.

use layout_codegen::ir::instructions::{Address, Addresses, Instructions, Reg};
use layout_codegen::view::View;

use super::{Lane, Straight, Strip};
use crate::gemm::PlanError;
use crate::gemm::epilogue::scalar_type;
use crate::gemm::mma_sync::kernel::Gemm;
use crate::gemm::mma_sync::staging::SUMS;

/// A vector of C before it is finished.
struct Vector {
    /// It is inside C and this block's own.
    inside: Reg,
    at: Address,
    /// What C held, as it lies in memory; nothing where C is not read.
    previous: Vec<Reg>,
}

impl<'a> Gemm<'a> {
    /// All strips, one after the other. `keeps`: C is read, that of a strip before the one before it is finished.
    pub(super) fn store_sums(
        &mut self,
        straight: &Straight<'a>,
        lane: &Lane,
        strips: &[Strip<'_>],
        keeps: bool,
    ) -> Result<(), PlanError> {
        let mut next = match strips.first() {
            Some(strip) if keeps => self.vectors(straight, lane, strip, true)?,
            _ => Vec::new(),
        };
        for (i, strip) in strips.iter().enumerate() {
            self.k.open_region();
            let how = if keeps { "with what C held" } else { "sums" };
            self.k.comment(format!("strip {}, {how}", strip.number));
            let mut vectors = std::mem::take(&mut next);
            match strips.get(i + 1) {
                Some(strip) if keeps => {
                    next = self.vectors(straight, lane, strip, true)?;
                }
                _ => {}
            }
            if let Some(to) = &lane.strip {
                // What a strip before was staged in is read.
                self.k.warp_barrier();
                self.stage_sums(to, strip)?;
                self.k.warp_barrier();
            }
            if !keeps {
                vectors = self.vectors(straight, lane, strip, false)?;
            }
            let number = self.k.constant(strip.number);
            let fetched: Result<Vec<_>, _> = (0..vectors.len() as i64)
                .map(|pass| self.fetch_sums((lane, strip.atoms), pass, number, 0))
                .collect();
            for (sums, vector) in fetched?.into_iter().zip(vectors) {
                let values = straight.end.scaled(self.k, &sums);
                let previous = straight.end.widened(self.k, &vector.previous);
                let parts = (&values[..], &previous[..]);
                let linear = straight.linear;
                linear.update(self.k, &straight.end, parts);
                let inside = Some(vector.inside);
                straight
                    .end
                    .store_rounded(self.k, inside, &values, vector.at);
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// The vectors of C of a strip that a lane has, with what C held there.
    fn vectors(
        &mut self,
        straight: &Straight<'a>,
        lane: &Lane,
        strip: &Strip<'_>,
        keeps: bool,
    ) -> Result<Vec<Vector>, PlanError> {
        let mut all = Vec::new();
        for pass in 0..self.passes()? {
            let (inside, at) = self.target(&lane.read, pass, lane, strip)?;
            let count = self.maps.staging.vector as usize;
            let previous = if keeps {
                straight.end.load_previous(self.k, inside, count, at)
            } else {
                Vec::new()
            };
            all.push(Vector {
                inside,
                at,
                previous,
            });
        }
        Ok(all)
    }

    /// The atoms of a strip as they are to shared memory.
    fn stage_sums(&mut self, to: &View, strip: &Strip<'_>) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let (write_row, write_col) = st.split(&st.write)?;
        let (_, ty, _) = scalar_type(self.plan.data_type.scalar());
        let halves = st.write.get(1)?.get(0)?.size();
        for (j, atom) in (0..).zip(strip.atoms) {
            for (h, pair) in (0..).zip(atom.chunks(2)) {
                let kernel = &mut *self.k;
                let value = kernel.constant(h + halves * j);
                let r = kernel.index(&write_row, &[self.lane, value])?;
                let c = kernel.index(&write_col, &[self.lane, value])?;
                let (zero, number) = (kernel.constant(0), kernel.constant(strip.number));
                let at = to.element(self.k, &[r, c, zero, number])?;
                self.k.store(None, ty, pair, at);
                self.k.tag(SUMS[0]);
            }
        }
        Ok(())
    }
}
