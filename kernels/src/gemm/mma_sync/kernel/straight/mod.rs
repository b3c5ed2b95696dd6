//! The epilogue where no vector of C is partly inside: one straight line of instructions, so that all reads of a strip are in flight at once.
//!
//! The general epilogue branches for each vector: is it inside, can it be stored at once, is C read (β)? The assembler moves nothing across a branch, so each
//! vector waits for memory by itself: some 3500 clocks for a tile of 128×256, in which the tensor cores stand still, and more where C is read. Here there
//! are at most two branches a tile, and each access has a predicate:
//!
//! ```text
//! fits = C aligned to 16 bytes, n a multiple of a vector
//! if fits and β = 0   sums · α, activation, rounded to 16 bits, strip → shared memory → vectors of 16 bytes → C where they are inside
//! else if fits        strip → shared memory → vectors of sums · α + β · C, activation → C; the next strip's C is on its way meanwhile
//! else                vector by vector
//! ```
//!
//! Variants for rows of C that are not aligned to 16 bytes store narrower vectors, down to single elements. They take the first way where β = 0, and otherwise go vector by vector. Neighbouring
//! lanes have neighbouring elements: in 16-bit types a warp stores 64 contiguous bytes of a row at once.
//!
//! The second way is for blocks that have a multiprocessor to themselves: others have too few registers for it, and another block to fill the gaps.
//!
//! C of 16-bit elements that is a function of the sums alone is rounded before it goes through shared memory: half of the wavefronts. Two strips of 64
//! columns then have the place of one. A bias is added vector by vector: with it a straight line spills in some variants.

mod packed;
mod sums;
use std::rc::Rc;

use layout_codegen::Arch;
use layout_codegen::ir::instructions::{Address, Instructions, Logic, Reg};
use layout_codegen::ir::{Cmp, Kernel};
use layout_core::Layout;

use super::Gemm;
use super::lane::Lane;
use crate::gemm::PlanError;
use crate::gemm::epilogue::{End, Linear, Place};

/// How tiles are stored in a straight line.
pub(super) struct Straight<'a> {
    /// No vector is partly inside; and β is 0, where only that is stored so.
    pub(super) fits: Reg,
    /// β is 0: C is not read. None if that is known.
    drops_c: Option<Reg>,
    linear: Linear,
    end: Rc<End<'a>>,
}

/// A part of a warp's tile that goes through shared memory at once.
struct Strip<'s> {
    number: i64,
    /// Its first row in the warp's tile.
    down: i64,
    /// Which piece of the columns it has.
    chunk: i64,
    /// The sums of its atoms.
    atoms: &'s [Vec<Reg>],
}

/// The parts of a warp's accumulators, with `apart` rows from one to the next below it, and one of `chunks` pieces of the columns each.
fn strips(acc: &[Vec<Vec<Reg>>], apart: i64, chunks: i64) -> Vec<Strip<'_>> {
    let mut strips = Vec::new();
    for (i, of_rows) in (0..).zip(acc) {
        let each = of_rows.len() / chunks as usize;
        for (chunk, atoms) in (0..).zip(of_rows.chunks(each)) {
            strips.push(Strip {
                number: i * chunks + chunk,
                down: i * apart,
                chunk,
                atoms,
            });
        }
    }
    strips
}

impl<'a> Gemm<'a> {
    /// How this kernel stores tiles in a straight line, if it does: that of warpgroups, for the product's own epilogue without a bias.
    pub(super) fn straight(&mut self, lane: &Lane) -> Option<Straight<'a>> {
        let plan = self.plan;
        let end = self.end.clone().filter(|_| plan.is_wgmma())?;
        let output = plan.variant.output;
        if output.bytes() == 1 || plan.variant.products != 1 {
            return None;
        }
        let linear = end.linear().filter(|l| l.is_of_sums_alone())?;
        // Blocks that share a multiprocessor have too few registers for a strip of C besides the sums. In narrow vectors such a strip takes too many registers in any block.
        let reads_c = plan.variant.store == 16 && plan.blocks_per_sm(self.maps, Arch(90)) == 1;
        let mut all: Vec<Reg> = lane.aligned.into_iter().collect();
        // Each vector is inside or outside as a whole.
        let rest = self.maps.staging.vector - 1;
        if rest > 0 {
            let rest = self.k.rem(self.n, rest + 1);
            let zero = self.k.constant(0);
            all.push(self.k.compare(Cmp::Eq, rest, zero));
        }
        let drops_c = end.is_zero(self.k, "beta")?;
        if !reads_c {
            all.push(drops_c);
        }
        let both = |k: &mut Kernel, a, b| k.combine(Logic::And, a, b, 0);
        let fits = all
            .into_iter()
            .reduce(|a, b| both(self.k, a, b))
            .unwrap_or(self.inside);
        Some(Straight {
            fits,
            drops_c: reads_c.then_some(drops_c),
            linear,
            end,
        })
    }

    /// Accumulators to C in a straight line.
    pub(super) fn store_straight(
        &mut self,
        straight: &Straight<'a>,
        lane: &Lane,
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let apart = self.plan.rows_between_strips(&self.maps.staging);
        let strips = strips(acc, apart, self.plan.chunks());
        if let Some(drops_c) = straight.drops_c {
            self.k.begin_if(drops_c, true);
            self.k.name_branch("keeps_c", "replaced");
            self.k.open_region();
        }
        match self.packed()? {
            Some(packed) => self.store_packed(straight, &packed, lane, &strips)?,
            None => self.store_sums(straight, lane, &strips, false)?,
        }
        if straight.drops_c.is_some() {
            self.k.close_region();
            self.k.otherwise();
            self.k.open_region();
            self.store_sums(straight, lane, &strips, true)?;
            self.k.close_region();
            self.k.end_if();
        }
        Ok(())
    }

    /// How many vectors of a strip a lane has.
    fn passes(&self) -> Result<i64, PlanError> {
        Ok(self.maps.staging.read.get(1)?.get(0)?.size())
    }

    /// The predicate that a lane's vector is inside C and this block's own, and its address.
    fn target(
        &mut self,
        read: &(Layout, Layout),
        pass: i64,
        lane: &Lane,
        strip: &Strip<'_>,
    ) -> Result<(Reg, Address), PlanError> {
        let kernel = &mut *self.k;
        let (zero, value) = (kernel.constant(0), kernel.constant(pass));
        let dr = kernel.index(&read.0, &[zero, value])?;
        let dc = kernel.index(&read.1, &[zero, value])?;
        let (down, across) = (
            kernel.constant(strip.down),
            kernel.constant(strip.chunk * self.plan.strip_cols()),
        );
        let (dr, dc) = (kernel.add(dr, down), kernel.add(dc, across));
        let to_own = kernel.sub(lane.own_row, lane.row);
        let left_row = kernel.sub(self.m, lane.row);
        let left_col = kernel.sub(self.n, lane.col);
        let [down, across] = [dr, dc].map(|e| kernel.as_const(e).unwrap_or(0));
        let own = lane.own[self.part(lane, strip, pass)];
        let last = across + self.maps.staging.vector - 1;
        let inside = self.k.compare_here(Cmp::Gt, left_col, last, Some(own));
        let inside = self.k.compare_here(Cmp::Gt, left_row, down, Some(inside));
        let inside = self.k.compare_here(Cmp::Le, to_own, down, Some(inside));
        let to = Place::targets(self.k, &lane.corner, (dr, dc), 1)?[0];
        Ok((inside, to))
    }

    /// Which of the parts of a row that a lane has vectors in a pass over a strip takes.
    fn part(&self, lane: &Lane, strip: &Strip<'_>, pass: i64) -> usize {
        let again = lane.own.len() / self.plan.chunks() as usize;
        strip.chunk as usize * again + pass as usize % again
    }
}

impl Straight<'_> {
    /// What the epilogue makes of sums where C is not read.
    fn of_sums_alone(&self, k: &mut Kernel, sums: &[Reg]) -> Vec<Reg> {
        let values = self.end.scaled(k, sums);
        for &s in &values {
            self.linear.activate(k, s);
        }
        values
    }
}
