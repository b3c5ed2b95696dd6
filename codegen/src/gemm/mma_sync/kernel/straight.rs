//! The epilogue where no vector of C is partly inside, and C is not read: one straight line of instructions, so that all reads of a strip are in flight at
//! once.
//!
//! The general epilogue branches for each vector: is it inside, can it be stored at once, is C read (β)? The assembler moves nothing across a branch, so each
//! vector waits for shared memory by itself: some 3500 clocks for a tile of 128×256, in which the tensor cores stand still. Here there is one branch a tile,
//! and each store has a predicate:
//!
//! ```text
//! straight = C aligned to 16 bytes, n a multiple of a vector, β = 0
//! if straight   sums · α, activation, rounded to 16 bits, strip → shared memory → vectors of 16 bytes → C where they are inside
//! else          vector by vector
//! ```
//!
//! C of 16-bit elements is rounded before it goes through shared memory: half of the wavefronts. Two strips of 64 columns then have the place of one.

use std::rc::Rc;

use layout_core::Layout;

use super::Gemm;
use super::store::Lane;
use crate::gemm::PlanError;
use crate::gemm::epilogue::{End, Linear, Place, scalar_type};
use crate::gemm::mma_sync::staging::Staging;
use crate::index::layout::index;
use crate::ir::{Address, Cache, Class, Cmp, Extent, Kernel, Logic, Reg, Type};
use crate::view::View;

/// How tiles are stored in a straight line.
pub(super) struct Straight<'a> {
    /// No vector is partly inside, and C is not read.
    pub(super) when: Reg,
    linear: Linear,
    end: Rc<End<'a>>,
}

/// Staging of elements of C that are rounded already.
struct Packed {
    staging: Staging,
    /// (row, column, warp, which of two strips, strip)
    view: View,
}

impl<'a> Gemm<'a> {
    /// How this kernel stores tiles in a straight line, if it does: that of warpgroups, for the product's own epilogue without a bias.
    pub(super) fn straight(&mut self, lane: &Lane) -> Option<Straight<'a>> {
        let plan = self.plan;
        let end = self.end.clone().filter(|_| plan.warpgroups)?;
        let output = plan.variant.output;
        let wide = plan.variant.store == 16 && output.bytes() > 1;
        if !wide || plan.variant.products != 1 {
            return None;
        }
        let linear = end.linear().filter(|l| l.is_of_sums_alone())?;
        let mut all: Vec<Reg> = lane.aligned.into_iter().collect();
        // Each vector is inside or outside as a whole.
        let rest = self.maps.staging.vector - 1;
        let rest = self.k.pool.and(self.n, rest as u64);
        let zero = self.k.pool.constant(0);
        all.push(self.k.compare(Cmp::Eq, rest, zero));
        all.push(end.is_zero(self.k, "beta")?);
        let both = |k: &mut Kernel, a, b| k.combine(Logic::And, a, b, 0);
        let when = all
            .into_iter()
            .reduce(|a, b| both(self.k, a, b))
            .unwrap_or(self.inside);
        Some(Straight { when, linear, end })
    }

    /// Accumulators to C in a straight line.
    pub(super) fn store_straight(
        &mut self,
        straight: &Straight<'a>,
        lane: &Lane,
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let packed = self.packed()?;
        let together = if packed.is_some() { 2 } else { 1 };
        let rows = self.maps.staging.rows;
        let mut number = 0;
        for (i, of_rows) in acc.iter().enumerate() {
            let down = i as i64 * rows;
            let each = of_rows.len() / self.chunks() as usize;
            let strips: Vec<_> = of_rows.chunks(each).enumerate().collect();
            for some in strips.chunks(together) {
                self.k.open_region();
                self.k.comment(format!("strip {number}, straight"));
                // What a strip before was staged in is read.
                self.k.warp_barrier();
                for (half, (_, atoms)) in some.iter().enumerate() {
                    match &packed {
                        Some(packed) => {
                            self.stage_packed(straight, packed, [half as i64, number], atoms)?;
                        }
                        None => self.stage_sums(lane, number, atoms)?,
                    }
                }
                self.k.warp_barrier();
                for (half, (chunk, _)) in some.iter().enumerate() {
                    let to = (down, *chunk as i64);
                    match &packed {
                        Some(packed) => {
                            self.store_packed(packed, [half as i64, number], lane, to)?;
                        }
                        None => self.store_sums(straight, number, lane, to)?,
                    }
                }
                self.k.close_region();
                number += 1;
            }
        }
        Ok(())
    }

    /// Staging of rounded elements; none where C has the size of sums.
    fn packed(&mut self) -> Result<Option<Packed>, PlanError> {
        let output = self.plan.variant.output;
        if output.bytes() != 2 {
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
        let warps = self.plan.warps.0 * self.plan.warps.1;
        let strips = self.plan.tile.0 / self.plan.warps.0 / st.rows * self.chunks();
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
        let warp = self.k.pool.shr(self.tid, 5);
        for (j, atom) in (0..).zip(atoms) {
            let sums = self.finished(straight, atom);
            for (h, pair) in (0..).zip(sums.chunks(2)) {
                let pool = &mut self.k.pool;
                let value = pool.constant(h + halves * j);
                let r = index(pool, &write_row, &[self.lane, value])?;
                let c = index(pool, &write_col, &[self.lane, value])?;
                let (half, number) = (pool.constant(half), pool.constant(number));
                let at = packed.view.element(self.k, &[r, c, warp, half, number])?;
                straight.end.store_rounded(self.k, None, pair, at);
                self.k.tag("stageRounded");
            }
        }
        Ok(())
    }

    /// A strip of rounded elements to C, vector by vector.
    fn store_packed(
        &mut self,
        packed: &Packed,
        [half, number]: [i64; 2],
        lane: &Lane,
        (down, chunk): (i64, i64),
    ) -> Result<(), PlanError> {
        let st = &packed.staging;
        let read = st.split(&st.read)?;
        let warp = self.k.pool.shr(self.tid, 5);
        let mut vectors = Vec::new();
        for pass in 0..st.read.get(1)?.get(0)?.size() {
            let pool = &mut self.k.pool;
            let value = pool.constant(pass);
            let r = index(pool, &read.0, &[self.lane, value])?;
            let c = index(pool, &read.1, &[self.lane, value])?;
            let (half, number) = (pool.constant(half), pool.constant(number));
            let at = packed.view.element(self.k, &[r, c, warp, half, number])?;
            let words = self.k.regs(Class::B32, 4);
            self.k.load(None, Cache::Coherent, Type::B32, &words, at);
            self.k.tag("fetchRounded");
            vectors.push(words);
        }
        for (pass, words) in (0..).zip(vectors) {
            let (guard, to) = self.target(&read, pass, lane, (down, chunk))?;
            self.k.store(Some(guard.into()), Type::B32, &words, to);
        }
        Ok(())
    }

    /// The atoms of a strip as they are to shared memory.
    fn stage_sums(
        &mut self,
        lane: &Lane,
        number: i64,
        atoms: &[Vec<Reg>],
    ) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let (write_row, write_col) = st.split(&st.write)?;
        let (_, ty, _) = scalar_type(self.plan.data_type.scalar());
        let halves = st.write.get(1)?.get(0)?.size();
        for (j, atom) in (0..).zip(atoms) {
            for (h, pair) in (0..).zip(atom.chunks(2)) {
                let pool = &mut self.k.pool;
                let value = pool.constant(h + halves * j);
                let r = index(pool, &write_row, &[self.lane, value])?;
                let c = index(pool, &write_col, &[self.lane, value])?;
                let (zero, number) = (pool.constant(0), pool.constant(number));
                let at = lane.strip.element(self.k, &[r, c, zero, number])?;
                self.k.store(None, ty, pair, at);
                self.k.tag("stageC");
            }
        }
        Ok(())
    }

    /// A strip of sums to C, vector by vector.
    fn store_sums(
        &mut self,
        straight: &Straight<'a>,
        number: i64,
        lane: &Lane,
        (down, chunk): (i64, i64),
    ) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let number = self.k.pool.constant(number);
        let mut vectors = Vec::new();
        for pass in 0..st.read.get(1)?.get(0)?.size() {
            vectors.push(self.fetch_sums(lane, pass, number, 0)?);
        }
        for (pass, sums) in (0..).zip(vectors) {
            let values = self.finished(straight, &sums);
            let (guard, to) = self.target(&lane.read, pass, lane, (down, chunk))?;
            straight.end.store_rounded(self.k, Some(guard), &values, to);
        }
        Ok(())
    }

    /// What the epilogue makes of sums.
    fn finished(&mut self, straight: &Straight<'a>, sums: &[Reg]) -> Vec<Reg> {
        let values = straight.end.scaled(self.k, sums);
        for &s in &values {
            straight.linear.activate(self.k, s);
        }
        values
    }

    /// The predicate that a lane's vector is inside C and this block's own, and its address.
    fn target(
        &mut self,
        read: &(Layout, Layout),
        pass: i64,
        lane: &Lane,
        (down, chunk): (i64, i64),
    ) -> Result<(Reg, Address), PlanError> {
        let pool = &mut self.k.pool;
        let (zero, value) = (pool.constant(0), pool.constant(pass));
        let dr = index(pool, &read.0, &[zero, value])?;
        let dc = index(pool, &read.1, &[zero, value])?;
        let (down, across) = (
            pool.constant(down),
            pool.constant(chunk * self.plan.strip_cols()),
        );
        let (dr, dc) = (pool.add(dr, down), pool.add(dc, across));
        let to_own = pool.sub(lane.own_row, lane.row);
        let left_row = pool.sub(self.m, lane.row);
        let left_col = pool.sub(self.n, lane.col);
        let [down, across] = [dr, dc].map(|e| pool.as_const(e).unwrap_or(0));
        let again = lane.own.len() / self.chunks() as usize;
        let own = lane.own[chunk as usize * again + pass as usize % again];
        let last = across + self.maps.staging.vector - 1;
        let inside = self.k.compare_here(Cmp::Gt, left_col, last, Some(own));
        let inside = self.k.compare_here(Cmp::Gt, left_row, down, Some(inside));
        let inside = self.k.compare_here(Cmp::Le, to_own, down, Some(inside));
        let to = Place::targets(self.k, &lane.corner, (dr, dc), 1)?[0];
        Ok((inside, to))
    }
}
