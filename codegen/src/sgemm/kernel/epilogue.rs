//! From sums to C: eight passes, each through staging rows of shared memory, so that a warp writes whole rows of C.
//!
//! A warp reads back only what it wrote, so its lanes wait for each other and the block does not.

use layout_core::Layout;

use super::{Gemm, ZERO};
use crate::index::Expr;
use crate::index::layout::{combined_index, index};
use crate::plan::PlanError;
use crate::ptx::{Class, Kernel, Reg, Space};

impl Gemm<'_> {
    /// Eight passes: one of the eight rows of each y quad pair, through the staging rows, to C.
    pub(super) fn epilogue(&mut self, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let w = self.maps.w;
        let zero = self.k.pool.constant(0);
        let write = index(&mut self.k.pool, &self.maps.write_c, &[self.tid])?;
        let write = self.k.pool.add(self.smem, write);
        let half = self.k.pool.constant(w / 2 * 4);
        let write_at = self.k.address(Space::Shared, write);
        let second = self.k.pool.add(write, half);
        let write_second = self.k.address(Space::Shared, second);
        let reads_c = self.k.compare_float("neu", self.beta, ZERO);

        let x_of = Layout::flat(&[w, w], &[1, 0])?.compose(&self.maps.c_out)?;
        let y_of = Layout::flat(&[w, w], &[0, 1])?.compose(&self.maps.c_out)?;
        let unit = |x: i64, y: i64| Layout::flat(&[1, 1], &[4 * x, 4 * y]);
        let terms = [(None, unit(1, 0)?), (Some(self.ldc), unit(0, 1)?)];
        let x = index(&mut self.k.pool, &x_of, &[self.tid, zero])?;
        let y = index(&mut self.k.pool, &y_of, &[self.tid, zero])?;
        let (x, y) = (self.k.pool.add(self.x0, x), self.k.pool.add(self.y0, y));
        let corner = combined_index(&mut self.k.pool, &terms, &[x, y])?;
        let corner = self.k.pool.add(self.c, corner);
        let corner = self.k.pool.pin(corner);
        let (left_x, left_y) = (self.k.pool.sub(self.n, x), self.k.pool.sub(self.m, y));

        for pass in 0..8 {
            self.k.open_region();
            let row = &acc[pass as usize];
            self.k.comment(format!("row {} of the y quads", pass % 4));
            let scaled = self.k.regs(Class::F32, 8);
            for (s, a) in scaled.iter().zip(row) {
                self.k.ins(format!("mul.f32 {s}, {a}, {}", self.alpha));
            }
            self.k.ins("bar.warp.sync 0xffffffff");
            for (regs, at) in [(&scaled[..4], write_at), (&scaled[4..], write_second)] {
                self.k.store(None, "f32", regs, at);
                self.k.tag("writeCs");
            }
            self.k.ins("bar.warp.sync 0xffffffff");
            // Four at a time: more would keep more predicates alive than a thread has.
            for first in [0, 4] {
                self.update(
                    first,
                    pass,
                    corner,
                    (left_x, left_y),
                    (&x_of, &y_of),
                    &terms,
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
        corner: Expr,
        (left_x, left_y): (Expr, Expr),
        (x_of, y_of): (&Layout, &Layout),
        terms: &[(Option<Expr>, Layout)],
        reads_c: Reg,
    ) -> Result<(), PlanError> {
        let (out, old) = (self.k.regs(Class::F32, 4), self.k.regs(Class::F32, 4));
        let mut targets = Vec::new();
        let pass = self.k.pool.constant(pass);
        for (v, (r, c)) in (first..).zip(out.iter().zip(&old)) {
            let value = self.k.pool.constant(v);
            let e = index(&mut self.k.pool, &self.maps.read_c, &[self.tid, value])?;
            let e = self.k.pool.add(self.smem, e);
            let at = self.k.address(Space::Shared, e);
            self.k.load(None, "", "f32", &[*r], at);
            self.k.tag("readCs");

            let value = self.k.pool.constant(self.maps.threads() * v);
            let dx = index(&mut self.k.pool, x_of, &[value, pass])?;
            let dy = index(&mut self.k.pool, y_of, &[value, pass])?;
            let distance = combined_index(&mut self.k.pool, terms, &[dx, dy])?;
            let e = self.k.pool.add(corner, distance);
            let at = self.k.address(Space::Global, e);
            let constant = |k: &Kernel, e: Expr| k.pool.as_const(e).unwrap_or(0);
            let (dx, dy) = (constant(self.k, dx), constant(self.k, dy));
            let inside = self.k.compare_here("gt", left_x, dx, None);
            let inside = self.k.compare_here("gt", left_y, dy, Some(inside));
            let both = self.k.and_here(inside, reads_c);
            self.k.ins(format!("mov.f32 {c}, {ZERO}"));
            self.k.load(Some(both.into()), "", "f32", &[*c], at);
            targets.push((inside, at));
        }
        for ((r, c), (inside, at)) in out.iter().zip(&old).zip(targets) {
            self.k
                .ins(format!("fma.rn.f32 {r}, {}, {c}, {r}", self.beta));
            self.k.store(Some(inside.into()), "f32", &[*r], at);
        }
        Ok(())
    }
}
