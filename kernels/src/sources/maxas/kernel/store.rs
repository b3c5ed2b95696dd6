//! From sums to C: eight passes, each through staging rows of shared memory, so that a warp writes whole rows of C.
//!
//! A warp reads back only what it wrote, so its lanes wait for each other and the block does not. A lane reads back single elements, whose
//! neighbours are those of the neighbouring lanes.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Addresses, Cache, Class, Instructions, Reg, Type};
use layout_codegen::ir::{Cmp, Kernel};
use layout_codegen::view::View;
use layout_core::Layout;

use super::Gemm;
use crate::gemm::PlanError;
use crate::gemm::epilogue::{Loaded, Place};

/// Elements of a pass that are finished at once: more would keep more predicates alive than a thread has. They have one column.
const AT_ONCE: i64 = 4;

/// What all elements of a thread have in common.
struct Thread {
    /// (thread, value, pass) → column and row of the tile.
    x_of: Layout,
    y_of: Layout,
    /// Its first column and row of C, and how many there are from there on.
    x: Expr,
    y: Expr,
    left_x: Expr,
    left_y: Expr,
    /// C from there on, and the epilogue's matrices.
    corner: View,
    matrices: Vec<Option<View>>,
}

impl Gemm<'_> {
    /// Eight passes: one of the eight rows of each y quad pair, through the staging rows, to C.
    pub(super) fn epilogue(&mut self, acc: &[Vec<Reg>]) -> Result<(), PlanError> {
        let w = self.maps.w;
        let zero = self.k.constant(0);
        let thread = self.thread_of_c()?;
        let mut columns = Vec::new();
        for first in [0, AT_ONCE] {
            let (dx, _) = self.moved(&thread, first, zero)?;
            let kernel = &mut *self.k;
            let (x, left) = (kernel.add(thread.x, dx), kernel.sub(thread.left_x, dx));
            columns.push(self.end.load_columns(self.k, x, left, 1)?);
        }
        let quad = self.maps.elements(&self.maps.write_c)?;
        let first = self.staging.at_index(self.k, &quad, &[self.tid])?;
        let half = self.k.constant(w / 2);
        for (pass, row) in (0..).zip(acc) {
            self.k.open_region();
            self.k.comment(format!("row {} of the y quads", pass % 4));
            // Before they are staged, not after: that takes up to 30 registers less.
            let row = self.end.scaled(self.k, row);
            self.k.warp_barrier();
            let pass = self.k.constant(pass);
            for (regs, half) in [(&row[..4], zero), (&row[4..], half)] {
                let at = first.element(self.k, &[half, zero, pass])?;
                self.k.store(None, Type::F32, regs, at);
                self.k.tag("writeCs");
            }
            self.k.warp_barrier();
            for (first, loaded) in [0, AT_ONCE].into_iter().zip(&columns) {
                self.update(&thread, first, pass, loaded)?;
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// What all elements of a thread have in common.
    fn thread_of_c(&mut self) -> Result<Thread, PlanError> {
        let w = self.maps.w;
        let x_of = Layout::flat(&[w, w], &[1, 0])?.compose(&self.maps.c_out)?;
        let y_of = Layout::flat(&[w, w], &[0, 1])?.compose(&self.maps.c_out)?;
        let kernel = &mut *self.k;
        let zero = kernel.constant(0);
        let x = kernel.index(&x_of, &[self.tid, zero])?;
        let y = kernel.index(&y_of, &[self.tid, zero])?;
        let (x, y) = (kernel.add(self.x0, x), kernel.add(self.y0, y));
        let (left_x, left_y) = (kernel.sub(self.n, x), kernel.sub(self.m, y));
        Ok(Thread {
            x_of,
            y_of,
            x,
            y,
            left_x,
            left_y,
            corner: self.c.moved(self.k, &[y, x])?.pinned(self.k),
            matrices: self.end.matrices(self.k, (y, x))?,
        })
    }

    /// Columns and rows from a thread's first element to value `v` of a pass.
    fn moved(&mut self, thread: &Thread, v: i64, pass: Expr) -> Result<(Expr, Expr), PlanError> {
        let kernel = &mut *self.k;
        let value = kernel.constant(self.maps.threads() * v);
        let dx = kernel.index(&thread.x_of, &[value, pass])?;
        Ok((dx, kernel.index(&thread.y_of, &[value, pass])?))
    }

    /// Finishes the elements of a pass from `first` on.
    fn update(
        &mut self,
        thread: &Thread,
        first: i64,
        pass: Expr,
        columns: &Loaded,
    ) -> Result<(), PlanError> {
        let read = self.maps.elements(&self.maps.read_c)?;
        let zero = self.k.constant(0);
        let end = self.end.clone();
        let mut elements = Vec::new();
        for v in first..first + AT_ONCE {
            let from = self.k.constant(v);
            let from = self.staging.at_index(self.k, &read, &[self.tid, from])?;
            let at = from.element(self.k, &[zero, zero, pass])?;
            let value = self.k.reg(Class::F32);
            self.k.load(None, Cache::Coherent, Type::F32, &[value], at);
            self.k.tag("readCs");

            let (dx, dy) = self.moved(thread, v, pass)?;
            let targets = vec![thread.corner.element(self.k, &[dy, dx])?];
            let kernel = &mut *self.k;
            let at = (kernel.add(thread.y, dy), kernel.add(thread.x, dx));
            let constant = |k: &Kernel, e: Expr| k.as_const(e).unwrap_or(0);
            let [x, y] = [dx, dy].map(|e| constant(self.k, e));
            let inside = self.k.compare_here(Cmp::Gt, thread.left_x, x, None);
            let inside = self.k.compare_here(Cmp::Gt, thread.left_y, y, Some(inside));
            let mut loaded = columns.clone();
            end.load_rows(self.k, at.0, Some(inside), &mut loaded)?;
            let place = Place {
                at,
                targets,
                matrices: &thread.matrices,
                by: (dy, dx),
                row: inside,
                whole: None,
                left: thread.left_x,
            };
            elements.push((value, loaded, place));
        }
        end.update_each(self.k, &elements)
    }
}
