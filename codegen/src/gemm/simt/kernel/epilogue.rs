//! From sums to C: eight passes, each through staging rows of shared memory, so that a warp writes whole rows of C.
//!
//! A warp reads back only what it wrote, so its lanes wait for each other and the block does not.

use layout_core::Layout;

use super::{Gemm, ZERO};
use crate::gemm::PlanError;
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Binary, Cache, Class, Cmp, Kernel, Reg, Type};
use crate::view::View;

impl Gemm<'_> {
    /// Eight passes: one of the eight rows of each y quad pair, through the staging rows, to C.
    pub(super) fn epilogue(&mut self, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let w = self.maps.w;
        let zero = self.k.pool.constant(0);
        let x_of = Layout::flat(&[w, w], &[1, 0])?.compose(&self.maps.c_out)?;
        let y_of = Layout::flat(&[w, w], &[0, 1])?.compose(&self.maps.c_out)?;
        let x = index(&mut self.k.pool, &x_of, &[self.tid, zero])?;
        let y = index(&mut self.k.pool, &y_of, &[self.tid, zero])?;
        let (x, y) = (self.k.pool.add(self.x0, x), self.k.pool.add(self.y0, y));
        let corner = self.c.moved(self.k, &[y, x])?.pinned(self.k);
        let quad = self.maps.elements(&self.maps.write_c)?;
        let first = self.staging.at_index(self.k, &quad, &[self.tid])?;
        let half = self.k.pool.constant(w / 2);
        let reads_c = self.k.compare_scalar(Cmp::Neu, Type::F32, self.beta, ZERO);

        let (left_x, left_y) = (self.k.pool.sub(self.n, x), self.k.pool.sub(self.m, y));

        for pass in 0..8 {
            self.k.open_region();
            let row = &acc[pass as usize];
            self.k.comment(format!("row {} of the y quads", pass % 4));
            let scaled = self.k.regs(Class::F32, 8);
            for (s, a) in scaled.iter().zip(row) {
                self.k.binary(Binary::Mul, Type::F32, *s, *a, self.alpha);
            }
            self.k.warp_barrier();
            let pass_of = self.k.pool.constant(pass);
            let halves = [(&scaled[..4], zero), (&scaled[4..], half)];
            for (regs, half) in halves {
                let at = first.element(self.k, &[half, zero, pass_of])?;
                self.k.store(None, Type::F32, regs, at);
                self.k.tag("writeCs");
            }
            self.k.warp_barrier();
            // Four at a time: more would keep more predicates alive than a thread has.
            for first in [0, 4] {
                self.update(
                    first,
                    pass,
                    &corner,
                    (left_x, left_y),
                    (&x_of, &y_of),
                    reads_c,
                )?;
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// C ← staged + β·C for the four elements `first..first + 4` of a pass.
    #[allow(clippy::too_many_arguments)]
    fn update(
        &mut self,
        first: i64,
        pass: i64,
        corner: &View,
        (left_x, left_y): (Expr, Expr),
        (x_of, y_of): (&Layout, &Layout),
        reads_c: Reg,
    ) -> Result<(), PlanError> {
        let (out, old) = (self.k.regs(Class::F32, 4), self.k.regs(Class::F32, 4));
        let read = self.maps.elements(&self.maps.read_c)?;
        let mut targets = Vec::new();
        let zero = self.k.pool.constant(0);
        let pass = self.k.pool.constant(pass);
        for (v, (r, c)) in (first..).zip(out.iter().zip(&old)) {
            let value = self.k.pool.constant(v);
            let from = self.staging.at_index(self.k, &read, &[self.tid, value])?;
            let at = from.element(self.k, &[zero, zero, pass])?;
            self.k.load(None, Cache::Coherent, Type::F32, &[*r], at);
            self.k.tag("readCs");

            let value = self.k.pool.constant(self.maps.threads() * v);
            let dx = index(&mut self.k.pool, x_of, &[value, pass])?;
            let dy = index(&mut self.k.pool, y_of, &[value, pass])?;
            let at = corner.element(self.k, &[dy, dx])?;
            let constant = |k: &Kernel, e: Expr| k.pool.as_const(e).unwrap_or(0);
            let (dx, dy) = (constant(self.k, dx), constant(self.k, dy));
            let inside = self.k.compare_here(Cmp::Gt, left_x, dx, None);
            let inside = self.k.compare_here(Cmp::Gt, left_y, dy, Some(inside));
            let both = self.k.and_here(inside, reads_c);
            self.k.set(Type::F32, *c, ZERO);
            self.k
                .load(Some(both.into()), Cache::Coherent, Type::F32, &[*c], at);
            targets.push((inside, at));
        }
        for ((r, c), (inside, at)) in out.iter().zip(&old).zip(targets) {
            self.k.mul_add(Type::F32, *r, self.beta, *c, *r);
            self.k.store(Some(inside.into()), Type::F32, &[*r], at);
        }
        Ok(())
    }
}
