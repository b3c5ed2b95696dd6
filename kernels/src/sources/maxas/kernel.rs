//! The SGEMM kernel, from its maps: read from top to bottom it is the kernel from entry to exit.
//!
//! ```text
//! tile 0: global -> registers -> stage 0
//! for each tile: next tile: global -> registers | 8 k steps from this stage | next tile: registers -> other stage | barrier
//! epilogue: 8 passes; alpha*acc -> staging rows -> (beta*C +) -> C, within a warp
//! ```
//!
//! Half of the block loads the tile of B (x), the other half that of A (y). A tile whose rows are all inside and whose vectors are
//! aligned is loaded 16 bytes at a time; any other tile element by element, with zeros outside.

mod load;
mod store;
use std::rc::Rc;

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Address, Addresses, Alternating, Cache, Choice, Class, Extent, Instructions, Logic, Reg, Role,
    Stride, Type,
};
use layout_codegen::ir::{Cmp, Element, Entry, Kernel};
use layout_codegen::view::View;

use super::maps::{BYTES, K_STEP, Maps, Side};
use super::{Maxas, sides};
use crate::gemm::epilogue::{self, End, Finish, Types};
use crate::gemm::one_kernel::{OneKernel as _, output};
use crate::gemm::scheduler::TileSchedule;
use crate::gemm::{DataType, LIMIT, Operands, PlanError};

const ZERO: f32 = 0.0;

/// The kernel.
pub(super) fn entry(
    plan: Maxas,
    name: &str,
    finish: &dyn Finish,
    operands: Operands,
) -> Result<Entry, PlanError> {
    let maps = plan.maps()?;
    let mut k = Kernel::new(name, plan.threads());
    k.describe(format!(
        "{plan}: C = alpha op(A) op(B) + beta C, f32, row-major, {operands}"
    ));
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<36} {}", l.name, l.layout, l.meaning));
    }
    // 16 warps of 128 registers; the smaller tile has more addresses for the same sums: 12 warps of 168.
    k.blocks_per_multiprocessor(if plan.threads() == 64 { 6 } else { 2 });

    let mut g = Gemm::new(&mut k, &maps, finish, operands)?;
    let (acc, depth) = (g.accumulators(), g.depth);
    let zero = g.k.constant(0);
    g.k.comment("tile 0 to stage 0");
    let staged = g.k.regs(Class::F32, g.vectors * 4);
    // Without a product the sums are empty: the first tile counts as all outside, and A and B are not read.
    let end = g.end.clone();
    let first_depth = match end.no_product(g.k) {
        Some(no_product) => g.k.select(no_product, zero, depth),
        None => depth,
    };
    g.load_tile(zero, first_depth, None, &staged)?;
    g.store_tile(zero, zero, None, &staged)?;
    g.k.barrier();

    let product = end.has_product(g.k);
    let handle = g.k.open_loop("k0", K_STEP, K_STEP, LIMIT as i64 + K_STEP);
    // Alternating i multiplies from stage i mod 2 and fills the other; its counter is 8·(i + 1).
    let one = g.k.constant(1);
    let turns = g.k.div(handle.counter, K_STEP);
    let filled = g.k.rem(turns, 2);
    let read = g.k.xor(filled, one);
    let turn = Alternating::new(g.k, "stage", read, &handle);
    let other = g.k.xor(turn.stage, one);
    let mut more = g.k.compare(Cmp::Lt, handle.counter, depth);
    if let Some(product) = product {
        more = g.k.combine(Logic::And, more, product, 1);
    }
    g.k.begin_if(more, true);
    g.k.name_branch("ends", "no_load");
    g.k.comment("the next tile to registers");
    g.load_tile(handle.counter, depth, Some(&handle), &staged)?;
    g.k.end_if();
    let step = g.k.constant(K_STEP);
    let tile = g.k.sub(handle.counter, step);
    let reads = g.read_addresses(&turn, tile)?;
    g.multiply(&reads, &acc);
    g.k.begin_if(more, true);
    g.k.name_branch("ends", "no_store");
    g.k.comment("the next tile to the other stage");
    g.store_tile(other, handle.counter, Some(&turn), &staged)?;
    g.k.end_if();
    g.k.barrier();
    g.k.close_loop_while(&handle, more);

    g.k.open_region();
    g.epilogue(&acc)?;
    g.k.close_region();

    Ok(k.finish())
}

/// What the parts of the kernel share.
struct Gemm<'a> {
    k: &'a mut Kernel,
    maps: &'a Maps,
    sides: [(Side, bool); 2],
    tid: Expr,
    /// Thread within the half of the block that loads one operand.
    t: Expr,
    /// This thread loads the x operand.
    loads_x: Reg,
    /// B and A: (side, k).
    operands: [View; 2],
    /// The first row or column of the tile that this thread loads.
    origin: Expr,
    /// The halves of the stages for x and y: (side, k, stage, first k of the tile).
    stages: [View; 2],
    /// The staging rows of C: (x, y quad, pass).
    staging: View,
    /// The parameter k.
    depth: Expr,
    /// Rows that are all inside and vectors that are aligned: what a load in vectors needs besides 8 whole k.
    fast: Reg,
    x0: Expr,
    y0: Expr,
    vectors: usize,
    c: View,
    m: Expr,
    n: Expr,
    end: Rc<End<'a>>,
}

/// Shared operands of the reads: for each k step, the two quads of x and the two of y.
type Reads = Vec<[Address; 4]>;

impl<'a> Gemm<'a> {
    fn new(
        k: &'a mut Kernel,
        maps: &'a Maps,
        finish: &'a dyn Finish,
        operands: Operands,
    ) -> Result<Self, PlanError> {
        let (threads, w) = (maps.threads(), maps.w);
        let hi = LIMIT as i64;
        let [a, b, c] = ["A", "B", "C"].map(|p| k.param_pointer(p));
        let inputs = epilogue::pointers(finish);
        let inputs: Vec<_> = inputs.iter().map(|p| k.param_pointer(&p.0)).collect();
        let [m, n, depth, lda, ldb, ldc] =
            ["m", "n", "k", "lda", "ldb", "ldc"].map(|p| k.param_u32(p, hi));
        let types = Types {
            sum: Element::F32,
            scalar: finish.computes_in(DataType::F32),
            output: output(DataType::F32, finish),
            packs: false,
        };
        let end = End::new(k, finish, types, &inputs, [m, n].map(Extent::Value))?;
        let stage_bytes = 2 * maps.half_stage();
        k.reserve_shared(2 * stage_bytes as u64, 2 * stage_bytes as u32, false);

        let tid = k.thread();
        let tile = TileSchedule::Columns.tile(k, [m, n], (w, w))?;
        let (x0, y0) = (tile.col, tile.row);

        let half = k.constant(threads / 2);
        let loads_x = k.compare(Cmp::Lt, tid, half);
        let t = k.rem(tid, threads / 2);
        let operand = k.select(loads_x, b, a);
        let ld = k.select(loads_x, ldb, lda);
        let origin = k.select(loads_x, x0, y0);
        let extent = k.select(loads_x, n, m);

        let zero = k.constant(0);
        // Vectors serve a tile whose rows are all inside, if they are aligned.
        let width = k.constant(w);
        let last = k.add(origin, width);
        let inside = k.compare(Cmp::Le, last, extent);
        let low = k.rem(operand, 16);
        let low_ld = k.rem(ld, 4);
        let (aligned, aligned_ld) = (
            k.compare(Cmp::Eq, low, zero),
            k.compare(Cmp::Eq, low_ld, zero),
        );
        let fast = k.combine(Logic::And, inside, aligned, 0);
        let fast = k.combine(Logic::And, fast, aligned_ld, 0);
        let vectors = (w * K_STEP / (threads / 2) / 4) as usize;

        let sides = sides(operands);
        let mut matrix = |name, (base, bytes), (rows, cols), ld, role| {
            let extents = vec![Extent::Value(rows), Extent::Value(cols)];
            let strides = vec![Stride::Value(ld), Stride::Fixed(1)];
            k.launch_global(name, base, bytes, extents, strides, role)
        };
        let mut operand = |name, base, along, side, ld| {
            if along {
                matrix(name, (base, BYTES), (depth, side), ld, Role::Input).transposed()
            } else {
                matrix(name, (base, BYTES), (side, depth), ld, Role::Input)
            }
        };
        let operands = [
            operand("B", b, sides[0].1, n, ldb),
            operand("A", a, sides[1].1, m, lda),
        ];
        let c = (c, i64::from(types.output.bytes()));
        let c = matrix("C", c, (m, n), ldc, Role::Output);
        let mut half = |name, offset| -> Result<View, PlanError> {
            // The last mode says which tile along k a stage holds, by its first k; it has no stride.
            let shape = [w, K_STEP, 2, LIMIT as i64].map(Extent::Fixed);
            let layout = maps.half_of_stage()?.into();
            let stage = vec![stage_bytes, 0];
            Ok(k.shared_at(name, BYTES, layout, offset, shape.into(), stage))
        };
        let stages = [half("stages.x", 0)?, half("stages.y", maps.half_stage())?];
        // In the place of the stages.
        let rows = [w, w / 8].map(Extent::Fixed);
        let layout = maps.staging()?.into();
        // The same rows in each pass: a mode without a stride.
        let mut rows = rows.to_vec();
        rows.push(Extent::Fixed(8));
        let staging = k.shared_at("staging", BYTES, layout, 0, rows, vec![0]);
        Ok(Self {
            k,
            maps,
            sides,
            tid,
            t,
            loads_x,
            operands,
            origin,
            stages,
            staging,
            depth,
            fast,
            x0,
            y0,
            vectors,
            c,
            m,
            n,
            end: Rc::new(end),
        })
    }

    /// 8 (y) × 8 (x) sums a thread, set to 0.
    fn accumulators(&mut self) -> Vec<Vec<Reg>> {
        let acc: Vec<Vec<Reg>> = (0..8).map(|_| self.k.regs(Class::F32, 8)).collect();
        self.k.comment("acc: 8 (y) x 8 (x) f32 a thread");
        for r in acc.iter().flatten() {
            self.k.set(Type::F32, *r, ZERO);
        }
        acc
    }

    /// Whether both operands lie the same way, so that both halves of the block run the same code.
    fn alike(&self) -> bool {
        self.sides[0].1 == self.sides[1].1
    }

    /// Puts the loaded values of the tile that begins at k = `tile` into stage `stage`: vectors where the side is contiguous, single floats where k is.
    fn store_tile(
        &mut self,
        stage: Expr,
        tile: Expr,
        turn: Option<&Alternating<'_>>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let [x, y] = self.sides;
        let mut first = Vec::new();
        for (view, (_, along)) in self.stages.clone().iter().zip(self.sides) {
            let (side, step) = self.coordinates(along, self.t, 0)?;
            first.push(view.moved(self.k, &[side, step, stage, tile])?);
        }
        let first = Choice::new(self.k, self.loads_x, [&first[0], &first[1]])?;
        if self.alike() {
            return self.store_side("writeS", x, &first, turn, staged);
        }
        let name = |(side, along)| self.maps.load(side, along).store_name;
        let names = [name(x), name(y)];
        self.k.begin_if(self.loads_x, false);
        self.k.name_branch("store_y", "stored");
        self.store_side(names[0], x, &first.known(true), turn, staged)?;
        self.k.otherwise();
        self.store_side(names[1], y, &first.known(false), turn, staged)?;
        self.k.end_if();
        Ok(())
    }

    fn store_side(
        &mut self,
        name: &str,
        (_, along): (Side, bool),
        first: &Choice,
        turn: Option<&Alternating<'_>>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let zero = self.k.constant(0);
        let width = if along { 4 } else { 1 };
        for (v, regs) in (0..).step_by(width).zip(staged.chunks(width)) {
            let (side, step) = self.coordinates(along, zero, v)?;
            let by = [side, step, zero, zero];
            let at = first.element(self.k, [&by, &by], turn)?;
            self.k.store(None, Type::F32, regs, at);
            self.k.tag(name);
        }
        Ok(())
    }

    fn read_addresses(&mut self, turn: &Alternating<'_>, tile: Expr) -> Result<Reads, PlanError> {
        let mut all = Vec::new();
        for step in 0..K_STEP {
            let mut one = Vec::new();
            for (i, bytes) in [self.maps.read_x, self.maps.read_y].iter().enumerate() {
                let quad = self.maps.elements(bytes)?;
                let first = self.stages[i].at_index(self.k, &quad, &[self.tid])?;
                for half in [0, self.maps.w / 2] {
                    let by = [half, step].map(|c| self.k.constant(c));
                    let by = [by[0], by[1], turn.stage, tile];
                    one.push(first.element_in(self.k, &by, Some(turn))?);
                }
            }
            all.push([one[0], one[1], one[2], one[3]]);
        }
        Ok(all)
    }

    /// Eight outer products; the fragments of the next k step are fetched while this one is multiplied.
    fn multiply(&mut self, reads: &Reads, acc: &[Vec<Reg>]) {
        let fragments: [Vec<Reg>; 2] = [self.k.regs(Class::F32, 16), self.k.regs(Class::F32, 16)];
        self.k.comment("fragments: 2 buffers of 8 (x) + 8 (y) f32");
        self.fetch(&reads[0], &fragments[0]);
        for step in 0..reads.len() {
            if let Some(next) = reads.get(step + 1) {
                self.fetch(next, &fragments[(step + 1) % 2]);
            }
            let (x, y) = fragments[step % 2].split_at(8);
            for (j, row) in acc.iter().enumerate() {
                for (i, sum) in row.iter().enumerate() {
                    self.k.mul_add(Type::F32, *sum, x[i], y[j], *sum);
                }
            }
        }
    }

    fn fetch(&mut self, at: &[Address; 4], into: &[Reg]) {
        for (i, (a, regs)) in at.iter().zip(into.chunks(4)).enumerate() {
            self.k.load(None, Cache::Coherent, Type::F32, regs, *a);
            self.k.tag(if i < 2 { "readAs" } else { "readBs" });
        }
    }
}
