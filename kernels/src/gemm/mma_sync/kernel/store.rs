//! Accumulators to C, strip by strip, through the warp's own staging.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Addresses, Binary, Cache, Instructions, Logic, Reg, Type};
use layout_codegen::ir::{Cmp, Element};
use layout_codegen::view::View;

use super::Gemm;
use super::lane::Lane;
use crate::gemm::PlanError;
use crate::gemm::epilogue::{Loaded, Place, scalar_type, widen_pair};
use crate::gemm::mma_sync::staging::SUMS;

/// A part of the warp's tile that is staged at once.
#[derive(Clone, Copy)]
struct Strip {
    /// Its number.
    number: Expr,
    /// Its first row.
    down: i64,
    /// Which piece of the columns it has.
    chunk: i64,
}

impl Gemm<'_> {
    /// Accumulators to C, strip by strip.
    pub(super) fn epilogue(&mut self, acc: &[Vec<Vec<Reg>>]) -> Result<(), PlanError> {
        let lane = self.lane_of_c()?;
        let Some(straight) = self.straight(&lane) else {
            return self.store_any(&lane, acc);
        };
        self.k.begin_if(straight.fits, true);
        self.k.name_branch("general", "stored");
        self.k.open_region();
        self.store_straight(&straight, &lane, acc)?;
        self.k.close_region();
        self.k.otherwise();
        self.k.open_region();
        self.store_any(&lane, acc)?;
        self.k.close_region();
        self.k.end_if();
        Ok(())
    }

    /// The general case: each vector is guarded by how much of it is inside.
    fn store_any(&mut self, lane: &Lane, acc: &[Vec<Vec<Reg>>]) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        // Vectors of one row, rows one after the other.
        let (again, down) = {
            let values = st.read.get(1)?.get(0)?;
            (values.get(0)?.size(), values.get(1)?.size())
        };
        let (chunks, products) = (self.plan.chunks(), self.plan.variant.products);
        let columns = match self.end.clone() {
            Some(end) => self.columns_of_lane(&end, lane)?,
            None => Vec::new(),
        };
        let of_strip = |i: usize, chunk: usize| {
            // Of each product the atoms of these columns.
            let each = acc[i].len() / (chunks * products) as usize;
            let of_products = acc[i].chunks(each * chunks as usize);
            let atoms = of_products.flat_map(move |all| &all[each * chunk..each * (chunk + 1)]);
            atoms.cloned().collect::<Vec<_>>()
        };
        let all = (0..acc.len()).flat_map(|i| (0..chunks as usize).map(move |chunk| (i, chunk)));
        for (number, (i, chunk)) in all.enumerate() {
            let strip_acc = of_strip(i, chunk);
            self.k.open_region();
            let strip = Strip {
                number: self.k.constant(number as i64),
                down: i as i64 * self.plan.rows_between_strips(st),
                chunk: chunk as i64,
            };
            self.k.comment(format!("strip {number}: {} rows", st.rows));
            if let Some(to) = &lane.strip {
                // What a strip before was staged in is read.
                if number > 0 || self.plan.scheduler.is_persistent() {
                    self.k.warp_barrier();
                }
                self.stage_any(to, strip, &strip_acc)?;
                self.k.warp_barrier();
            }
            for pass in 0..again * down {
                self.k.open_region();
                let part = strip.chunk * again + pass % again;
                let loaded = columns.get(part as usize).cloned();
                let from = (lane, &strip_acc[..]);
                self.vector(from, pass, strip, loaded.unwrap_or_default())?;
                self.k.close_region();
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// The sums of a strip to shared memory.
    fn stage_any(&mut self, to: &View, strip: Strip, sums: &[Vec<Reg>]) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let zero = self.k.constant(0);
        let (write_row, write_col) = st.split(&st.write)?;
        let (_, ty, _) = scalar_type(self.plan.data_type.scalar());
        let halves = st.write.get(1)?.get(0)?.size();
        for (j, atoms) in (0..).zip(sums.chunks((st.together / st.run) as usize)) {
            let atoms: Vec<_> = atoms.iter().map(|regs| self.sums_to_stage(regs)).collect();
            for h in 0..halves {
                // The first of each atom, then the second: neighbours of a row.
                let nth = |p: i64| atoms.iter().map(move |a| a[(st.run * h + p) as usize]);
                let neighbours: Vec<_> = (0..st.run).flat_map(nth).collect();
                let value = self.k.constant(h + halves * j);
                let r = self.k.index(&write_row, &[self.lane, value])?;
                let c = self.k.index(&write_col, &[self.lane, value])?;
                let at = to.element(self.k, &[r, c, zero, strip.number])?;
                self.k.store(None, ty, &neighbours, at);
                self.k.tag(SUMS[0]);
            }
        }
        Ok(())
    }

    /// One vector of C.
    fn vector(
        &mut self,
        (lane, atoms): (&Lane, &[Vec<Reg>]),
        pass: i64,
        strip: Strip,
        mut loaded: Loaded,
    ) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let (_, ty, _) = scalar_type(self.plan.data_type.scalar());
        let sums = self.fetch_sums((lane, atoms), pass, strip.number, 0)?;
        let second = if self.plan.variant.products == 2 {
            self.fetch_sums((lane, atoms), pass, strip.number, st.cols / 2)?
        } else {
            Vec::new()
        };
        let kernel = &mut *self.k;
        let (zero, value) = (kernel.constant(0), kernel.constant(pass));
        let dr = kernel.index(&lane.read.0, &[zero, value])?;
        let dc = kernel.index(&lane.read.1, &[zero, value])?;
        let (strip_row, chunk) = (
            kernel.constant(strip.down),
            strip.chunk * self.plan.strip_cols(),
        );
        let dr = kernel.add(dr, strip_row);
        let chunk_col = kernel.constant(chunk);
        let dc = kernel.add(dc, chunk_col);
        let count = if self.end.is_some() { st.vector } else { 1 };
        let targets = Place::targets(self.k, &lane.corner, (dr, dc), count)?;
        let kernel = &mut *self.k;
        let to_own = kernel.sub(lane.own_row, lane.row);
        let row = kernel.add(lane.row, dr);
        let left_row = kernel.sub(self.m, lane.row);
        let col = kernel.add(lane.col, dc);
        let left = kernel.sub(self.n, col);
        let by = (dr, dc);
        let dr = kernel.as_const(dr).unwrap_or(0);
        let again = lane.own.len() / self.plan.chunks() as usize;
        let own = lane.own[strip.chunk as usize * again + pass as usize % again];
        let inside = self.k.compare_here(Cmp::Gt, left_row, dr, Some(own));
        let inside = self.k.compare_here(Cmp::Le, to_own, dr, Some(inside));
        let Some(end) = self.end.clone() else {
            // Rows of partial sums are as long as vectors need.
            let both = self.k.compare_here(Cmp::Gt, left, 0, Some(inside));
            self.k.store(Some(both.into()), ty, &sums, targets[0]);
            return Ok(());
        };
        let whole = if st.vector == 1 {
            None
        } else {
            let width = self.k.constant(st.vector);
            let whole = self.k.compare(Cmp::Ge, left, width);
            Some(match lane.aligned {
                Some(aligned) => self.k.combine(Logic::And, aligned, whole, 0),
                None => whole,
            })
        };
        end.load_rows(self.k, row, Some(inside), &mut loaded)?;
        let place = Place {
            at: (row, col),
            targets,
            matrices: &lane.matrices,
            by,
            row: inside,
            whole,
            left,
        };
        let [sums, second] = if self.plan.is_fma() {
            [sums, second]
        } else {
            [sums, second].map(|s| end.scaled(self.k, &s))
        };
        end.update(self.k, [&sums, &second], &loaded, &place)
    }

    /// The sums of one vector, from column `first` of the strip on, or of those that the lane holds itself.
    pub(super) fn fetch_sums(
        &mut self,
        (lane, atoms): (&Lane, &[Vec<Reg>]),
        pass: i64,
        strip: Expr,
        first: i64,
    ) -> Result<Vec<Reg>, PlanError> {
        let st = &self.maps.staging;
        let Some(staged) = &lane.strip else {
            return Ok(st.of_lane(pass, atoms));
        };
        let (class, ty, _) = scalar_type(self.plan.data_type.scalar());
        let values = st.read.get(1)?;
        let (passes, parts) = (values.get(0)?.size(), values.get(1)?.size());
        let each = st.vector.min(16 / st.bytes);
        let zero = self.k.constant(0);
        let mut sums = Vec::new();
        for part in 0..parts {
            let kernel = &mut *self.k;
            let value = kernel.constant(pass + passes * part);
            let r = kernel.index(&lane.read.0, &[self.lane, value])?;
            let c = kernel.index(&lane.read.1, &[self.lane, value])?;
            let first = kernel.constant(first);
            let c = kernel.add(c, first);
            let at = staged.element(self.k, &[r, c, zero, strip])?;
            let regs = self.k.regs(class, each as usize);
            self.k.load(None, Cache::Coherent, ty, &regs, at);
            self.k.tag(SUMS[1]);
            sums.extend(regs);
        }
        Ok(sums)
    }

    /// The sums of one atom as they are staged. Those of an FMA atom are scaled first: four that go to shared memory in one store take four registers that
    /// follow each other, and the factors of the main loop lie so too; sums there would share register banks with them (0.73 instead of 0.87 products a
    /// clock in a tile of 128×128×8, tn, counted in the machine code).
    fn sums_to_stage(&mut self, regs: &[Reg]) -> Vec<Reg> {
        if !self.plan.is_fma() {
            return self.scalars(regs);
        }
        if let Some(end) = self.end.clone() {
            return end.scaled(self.k, regs);
        }
        if let Some(factor) = self.factor {
            for &sum in regs {
                self.k.binary(Binary::Mul, Type::F32, sum, sum, factor);
            }
        }
        regs.to_vec()
    }

    /// The sums of one atom as scalars: half-precision sums are widened.
    fn scalars(&mut self, regs: &[Reg]) -> Vec<Reg> {
        if self.maps.atom.c_type != layout_core::atoms::Scalar::F16 {
            return regs.to_vec();
        }
        let k = &mut *self.k;
        let wide = regs.iter().flat_map(|&r| widen_pair(k, Element::F16, r));
        wide.collect()
    }
}
