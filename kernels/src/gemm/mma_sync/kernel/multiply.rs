//! The loop over k: copies ahead, fragments of the next k step, products of this one.

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Instructions, Logic, LoopHandle, Pred, Reg};

use super::copy::InFlight;
use super::fragment::Tile;
use super::{Fragments, Gemm};
use crate::gemm::{LIMIT, PlanError};

impl Gemm<'_> {
    /// Copies of the first tiles into all stages but the last.
    pub(super) fn fill(&mut self) -> Result<(), PlanError> {
        self.k.comment("the first tiles");
        for s in 0..self.plan.wanted_stages() - 1 {
            let tile = self.k.constant(s * self.plan.depth());
            let zero = self.k.constant(0);
            self.copy_tile(zero, tile, s, 0, s > 0)?;
        }
        Ok(())
    }

    /// The loop over k, `stages` tiles an iteration, so that every stage is an immediate: once without a branch, for as long as every
    /// tile that is copied is whole, and once more for the rest.
    pub(super) fn main_loop(&mut self, acc: &[Vec<Vec<Reg>>]) -> Result<(), PlanError> {
        let (stages, depth) = (self.plan.wanted_stages(), self.plan.depth());
        let buffers = [self.fragments(), self.fragments()];
        self.wait(stages - 2);
        self.k.barrier();
        self.k.comment("fragments of the first k step");
        let first = self.k.constant(0);
        self.fetch(&buffers[0], Tile { stage: 0, first }, 0)?;

        // An iteration copies up to 2·stages − 2 tiles ahead.
        let ahead = self.k.constant((2 * stages - 1) * depth);
        let enough = self.k.compare(Cmp::Ge, self.depth, ahead);
        let whole = self.k.combine(Logic::And, enough, self.inside, 0);
        let beyond = self.k.constant((2 * stages - 1) * depth - 1);
        let limit = self.k.sub(self.depth, beyond);
        let zero = self.k.constant(0);
        let limit = self.k.select(whole, limit, zero);
        let steady = self.k.open_loop("k0", 0, stages * depth, LIMIT as i64);
        self.carry(&steady)?;
        for s in 0..stages {
            self.steady_tile(&steady, s, &buffers, acc)?;
        }
        self.carry_no_more();
        self.k.close_loop(&steady, limit);

        let rest = self
            .k
            .resume_loop("k1", &steady, stages * depth, LIMIT as i64);
        for s in 0..stages {
            self.last_tile(&rest, s, &buffers, acc)?;
        }
        self.k.close_endless_loop(&rest, "multiplied");
        if self.has_groups() {
            // Groups of tiles that do not exist are empty, so that this waits for nothing; it says that staging may have the stages.
            self.k.wait_all();
        }
        self.k.barrier();
        Ok(())
    }

    /// One tile of the loop without branches; its copies are spread over the k steps before the last.
    fn steady_tile(
        &mut self,
        of: &LoopHandle,
        s: i64,
        buffers: &[Fragments; 2],
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let (stages, depth) = (self.plan.wanted_stages(), self.plan.depth());
        let steps = depth / self.k_step();
        let next = (s + stages - 1) % stages;
        let offset = self.k.constant((s + stages - 1) * depth);
        // A k step of an FMA atom is too short to wait for memory: all copies start with the tile, and land at its end. Where both operands go through
        // registers, half of each at a time: with all of them under way, ptxas loads late, to save registers, and every tile waits for memory
        // (nt at 4096^3 on an H100: 0.92 of cuBLAS whole, 1.00 in halves). The second half lands before the step whose end is a barrier.
        let fma = self.plan.is_fma();
        let halves = self.is_all_through_registers();
        let parts = match (fma, halves) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => (steps - 1).max(1),
        };
        let every = if fma { steps / parts } else { 1 };
        let mut flying = InFlight::default();
        for step in 0..steps {
            let now = ((s * steps + step) % 2) as usize;
            let last = step + 1 == steps;
            // What was loaded during the step before.
            let landing = halves && (step == every || step + 3 == steps);
            if !fma || last || landing {
                self.land(std::mem::take(&mut flying));
            }
            if last && steps == 1 {
                // There is no step before: the copies must be under way before the wait that counts them.
                flying = self.copy_ahead(of, (next, offset), (step, parts))?;
                self.land(std::mem::take(&mut flying));
            }
            if last {
                self.arrive(of, s + 1, &buffers[1 - now])?;
            } else {
                let tile = self.tile(of, s);
                self.fetch(&buffers[1 - now], tile, step + 1)?;
                if step % every == 0 && step / every < parts {
                    flying = self.copy_ahead(of, (next, offset), (step / every, parts))?;
                }
            }
            self.multiply(&buffers[now], acc);
        }
        Ok(())
    }

    /// Part `step` of `parts` of the copies to stage `next` of the tile `offset` further; what is on its way through registers is
    /// returned.
    fn copy_ahead(
        &mut self,
        of: &LoopHandle,
        (next, offset): (i64, Expr),
        (step, parts): (i64, i64),
    ) -> Result<InFlight, PlanError> {
        // More than registers hold lands at once.
        let pieces = (self.parts() + parts - 1) / parts;
        let mut flying = InFlight::default();
        for piece in 0..pieces {
            self.land(flying);
            let part = (step * pieces + piece, parts * pieces);
            flying = self.copy_part(of.counter, offset, next, false, part)?;
        }
        if step + 1 == parts {
            self.commit();
        }
        Ok(flying)
    }

    /// Waits until tile `s` of the iteration has arrived, and fetches its first fragments. All that is in flight but the youngest tiles has
    /// arrived, and nobody reads the stage any more that is filled next.
    fn arrive(&mut self, of: &LoopHandle, s: i64, into: &Fragments) -> Result<(), PlanError> {
        self.wait(self.plan.wanted_stages() - 2);
        self.k.barrier();
        let tile = self.tile(of, s);
        self.fetch(into, tile, 0)
    }

    /// Tile `s` of an iteration, or the first of the next.
    fn tile(&mut self, of: &LoopHandle, s: i64) -> Tile {
        let offset = self.k.constant(s * self.plan.depth());
        Tile {
            stage: s % self.plan.wanted_stages(),
            first: self.k.add(of.counter, offset),
        }
    }

    /// One tile of the loop that ends anywhere.
    fn last_tile(
        &mut self,
        of: &LoopHandle,
        s: i64,
        buffers: &[Fragments; 2],
        acc: &[Vec<Vec<Reg>>],
    ) -> Result<(), PlanError> {
        let (stages, depth) = (self.plan.wanted_stages(), self.plan.depth());
        let steps = depth / self.k_step();
        let next = (s + stages - 1) % stages;
        let offset = self.k.constant((s + stages - 1) * depth);
        let end = self.k.constant((s + 1) * depth);
        let end = self.k.add(of.counter, end);
        let more = self.k.compare(Cmp::Lt, end, self.depth);
        for step in 0..steps {
            let now = ((s * steps + step) % 2) as usize;
            if step == 0 {
                self.k
                    .comment(format!("stage {next} gets the tile {} further", stages - 1));
                self.copy_tile(of.counter, offset, next, 1, true)?;
            }
            if step + 1 < steps {
                let tile = self.tile(of, s);
                self.fetch(&buffers[1 - now], tile, step + 1)?;
            } else {
                self.k.begin_if(more, true);
                self.k.name_branch("ends", "last");
                self.arrive(of, s + 1, &buffers[1 - now])?;
                self.k.end_if();
            }
            self.multiply(&buffers[now], acc);
        }
        self.k.leave_loop(Pred::from(more).not(), true);
        Ok(())
    }
}
