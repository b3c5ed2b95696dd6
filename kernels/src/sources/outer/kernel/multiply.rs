//! The loops over k: outer products of the vectors that a thread reads from a stage, while the next tile is on its way.

use layout_codegen::index::Expr;
use layout_codegen::ir::Cmp;
use layout_codegen::ir::instructions::{Addresses, Cache, Instructions, Logic, Reg};

use super::{DEPTH, Gemm, STAGES, TILE};
use crate::gemm::{LIMIT, PlanError};

/// The vectors of one k: those of x, then those of y.
type Fragments = [Vec<Reg>; 2];

impl Gemm<'_> {
    /// Sums of a thread, set to 0: a row for each value of y.
    pub(super) fn accumulators(&mut self) -> Vec<Vec<Reg>> {
        let (class, ty, zero) = self.element;
        let each = 2 * self.maps.vector as usize;
        self.k
            .comment(format!("acc: {each} (y) x {each} (x) a thread"));
        let acc: Vec<Vec<Reg>> = (0..each).map(|_| self.k.regs(class, each)).collect();
        for r in acc.iter().flatten() {
            self.k.set(ty, *r, zero);
        }
        acc
    }

    /// Two tiles a turn without a branch or a predicate for as long as every tile that is loaded is whole, and a loop for the rest.
    pub(super) fn main_loop(&mut self, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let turn = Self::turn();
        // A turn loads the two tiles after the one that it begins with.
        let ahead = self.k.constant(turn + DEPTH);
        let enough = self.k.compare(Cmp::Ge, self.depth, ahead);
        let [x, y] = [0, 1].map(|i: usize| self.operands[i].whole);
        let whole = self.k.combine(Logic::And, x, y, 0);
        let whole = self.k.combine(Logic::And, whole, enough, 0);
        let beyond = self.k.constant(turn + DEPTH - 1);
        let limit = self.k.sub(self.depth, beyond);
        let zero = self.k.constant(0);
        let limit = self.k.select(whole, limit, zero);
        let steady = self.k.open_loop("k0", 0, turn, LIMIT as i64);
        let from = self.carried(&steady)?;
        for stage in 0..STAGES {
            let (this, next) = self.tiles(steady.counter, stage);
            let tile = self.load_vectors(&from, stage * DEPTH)?;
            self.multiply(stage, this, acc)?;
            self.store_tile((stage + 1) % STAGES, next, &tile)?;
            self.k.barrier();
        }
        self.k.close_loop(&steady, limit);

        // What is left, one tile a turn, in stage 0: the main loop has left its next tile there. A tile is loaded behind the products, when no factor
        // occupies a register: these turns are few, and the addresses and distances of single elements many. Tiles beyond the end are zeros, so that a
        // turn needs no branch.
        let rest = self
            .k
            .resume_loop("k1", &steady, DEPTH, LIMIT as i64 + turn);
        let (this, next) = self.tiles(rest.counter, 0);
        self.multiply(0, this, acc)?;
        self.k.barrier();
        self.elements_to_stage(0, next)?;
        self.k.barrier();
        self.k.close_loop(&rest, self.depth);
        Ok(())
    }

    /// First k of the tile in a stage of the turn at `counter`, and of the tile after it.
    fn tiles(&mut self, counter: Expr, stage: i64) -> (Expr, Expr) {
        let [this, next] = [stage, stage + 1].map(|i| {
            let ahead = self.k.constant(i * DEPTH);
            self.k.add(counter, ahead)
        });
        (this, next)
    }

    /// Eight outer products from a stage; the vectors of the next k are read while those of this one are multiplied.
    fn multiply(&mut self, stage: i64, tile: Expr, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let buffers = [self.fragments(), self.fragments()];
        self.fetch(&buffers[0], stage, tile, 0)?;
        for step in 0..DEPTH {
            let now = (step % 2) as usize;
            if step + 1 < DEPTH {
                self.fetch(&buffers[1 - now], stage, tile, step + 1)?;
            }
            let [x, y] = &buffers[now];
            for (row, &b) in acc.iter().zip(y) {
                for (&sum, &a) in row.iter().zip(x) {
                    self.k.mul_add(self.element.1, sum, a, b, sum);
                }
            }
        }
        Ok(())
    }

    fn fragments(&mut self) -> Fragments {
        let each = 2 * self.maps.vector as usize;
        [0, 1].map(|_| self.k.regs(self.element.0, each))
    }

    /// Reads both vectors of either side for one k.
    fn fetch(
        &mut self,
        into: &Fragments,
        stage: i64,
        tile: Expr,
        step: i64,
    ) -> Result<(), PlanError> {
        let [stage, step] = [stage, step].map(|e| self.k.constant(e));
        for (i, values) in into.iter().enumerate() {
            let (tag, from) = (self.operands[i].side.read(), self.operands[i].reads.clone());
            let vector = self.maps.vector as usize;
            for (half, regs) in (0..).zip(values.chunks(vector)) {
                let half = self.k.constant(half * TILE / 2);
                let at = from.element(self.k, &[half, step, stage, tile])?;
                self.k.load(None, Cache::Coherent, self.element.1, regs, at);
                self.k.tag(tag);
            }
        }
        Ok(())
    }
}
