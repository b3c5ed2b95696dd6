//! Strips that are rounded, put together by `stmatrix`, and copied to C as boxes by TMA.
//!
//! ```text
//! lane 0    wait until the place's last box is read
//! warp      barrier; α, activation, rounding, stmatrix; fence; barrier
//! lane 0    the box, a group of its own
//! ```
//!
//! The copy cuts off what is outside of C, so that there is no predicate and no address of an element. A warp has places for several boxes, and goes on
//! with its products while they are copied.

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Addresses, Extent, Instructions, MapHandle, Reg};
use layout_codegen::view::View;

use super::{Strip, strips};
use crate::gemm::PlanError;
use crate::gemm::mma_sync::boxes::{Boxes, STAGED};
use crate::gemm::mma_sync::kernel::Gemm;

/// The boxes of a kernel.
#[derive(Clone)]
pub(in crate::gemm::mma_sync::kernel) struct BoxStores<'a> {
    maps: &'a Boxes,
    /// The tensor map of C.
    map: MapHandle,
    /// (row, column, warp, which place, strip)
    view: View,
}

impl<'a> Gemm<'a> {
    /// What boxes of C need; none in a kernel that stores none.
    pub(in crate::gemm::mma_sync::kernel) fn box_stores(&mut self) -> Option<BoxStores<'a>> {
        let maps = self.maps.boxes.as_ref()?;
        let of = maps.of;
        let map = self
            .k
            .tensor_map("boxesC", &self.c, [of.rows, of.columns], of.swizzle_bytes);
        let warps = self.plan.warps.0 * self.plan.warps.1;
        let strips = self.plan.strips(&self.maps.staging);
        let shape = [of.rows, of.columns, warps, maps.places, strips].map(Extent::Fixed);
        let strides = vec![maps.places * maps.bytes(), maps.bytes(), 0];
        let at = self.plan.staging_at(self.maps);
        let bytes = self.maps.c_bytes;
        let view = self
            .k
            .shared_at("boxes", bytes, maps.shared, at, shape.into(), strides);
        Some(BoxStores { maps, map, view })
    }

    /// Accumulators to C, where C is not read.
    pub(in crate::gemm::mma_sync::kernel) fn store_boxes(
        &mut self,
        boxes: &BoxStores<'a>,
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let places = boxes.maps.places;
        let lane0 = self.lane0();
        let apart = self.plan.rows_between_strips(&self.maps.staging);
        for strip in strips(acc, apart, self.plan.chunks()) {
            let number = self.k.constant(strip.number);
            let place = self.k.constant(strip.number % places);
            self.k.open_region();
            self.k.comment(format!("strip {}, a box", strip.number));
            let words = self.rounded_words(&strip);
            if self.plan.turns.are_several() || strip.number >= places {
                // What the place was filled with before is read.
                self.k.wait_for_boxes(places as u32 - 1, lane0);
                self.k.warp_barrier();
            }
            self.put_together(boxes, [place, number], &words)?;
            self.k.fence_for_copies();
            self.k.warp_barrier();
            let zero = self.k.constant(0);
            let warp = self.k.div(self.tid, 32);
            let by = [zero, zero, warp, place, number];
            let from = boxes.view.element(self.k, &by)?;
            let to = self.corner(&strip)?;
            self.k.store_box(boxes.map, &to, from, lane0);
            self.k.commit_boxes(lane0);
            self.k.close_region();
        }
        Ok(())
    }

    /// Behind the last tile: the places of boxes are the block's until they are read.
    pub(in crate::gemm::mma_sync::kernel) fn boxes_are_read(&mut self) {
        if self.boxes.is_some() {
            let lane0 = self.lane0();
            self.k.wait_for_boxes(0, lane0);
        }
    }

    /// The tensor map is brought near.
    pub(in crate::gemm::mma_sync::kernel) fn prefetch_boxes(&mut self, first: Reg) {
        if let Some(boxes) = &self.boxes {
            self.k.prefetch_map(boxes.map, first);
        }
    }

    pub(in crate::gemm::mma_sync::kernel) fn lane0(&mut self) -> Reg {
        let zero = self.k.constant(0);
        self.k.compare(Cmp::Eq, self.lane, zero)
    }

    /// The elements of C of a strip that a lane has, two in a register, atom after atom.
    fn rounded_words(&mut self, strip: &Strip<'_>) -> Vec<Reg> {
        let Some(end) = self.end.clone() else {
            return Vec::new();
        };
        let mut words = Vec::new();
        for atom in strip.atoms {
            let values = end.scaled(self.k, atom);
            if let Some(linear) = end.linear() {
                for &s in &values {
                    linear.activate(self.k, s);
                }
            }
            words.extend(end.rounded(self.k, &values));
        }
        words
    }

    /// A lane's words of a strip to the place of a box, four at a time.
    fn put_together(
        &mut self,
        boxes: &BoxStores<'a>,
        [place, number]: [Expr; 2],
        words: &[Reg],
    ) -> Result<(), PlanError> {
        let (row, column) = &boxes.maps.points;
        let warp = self.k.div(self.tid, 32);
        for (which, words) in (0..).zip(words.chunks(4)) {
            let kernel = &mut *self.k;
            let which = kernel.constant(which);
            let r = kernel.index(row, &[self.lane, which])?;
            let c = kernel.index(column, &[self.lane, which])?;
            let at = boxes.view.element(self.k, &[r, c, warp, place, number])?;
            self.k.store_matrix(words.to_vec(), boxes.maps.trans, at);
            self.k.tag(STAGED);
        }
        Ok(())
    }

    /// The first row and column of a strip in C.
    fn corner(&mut self, strip: &Strip<'_>) -> Result<[Expr; 2], PlanError> {
        let rows = self.plan.rows_of_warps()?;
        let columns = self.plan.columns_of_warps()?;
        let kernel = &mut *self.k;
        let down = kernel.index(&rows, &[self.warp.0])?;
        let across = kernel.index(&columns, &[self.warp.1])?;
        let [down, across] = [
            (self.spans[0].origin, down, strip.down),
            (
                self.spans[1].origin,
                across,
                strip.chunk * self.plan.strip_cols(),
            ),
        ]
        .map(|(origin, of_warp, of_strip)| {
            let of_strip = kernel.constant(of_strip);
            let first = kernel.add(origin, of_warp);
            kernel.add(first, of_strip)
        });
        Ok([down, across])
    }
}
