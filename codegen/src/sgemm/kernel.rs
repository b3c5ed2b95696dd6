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

mod epilogue;
mod load;

use layout_core::Layout;

use super::maps::{K_STEP, Maps, Side};
use super::{GRID_Y, LIMIT, SgemmPlan, sides};
use crate::index::Expr;
use crate::index::layout::index;
use crate::plan::{Arch, Emitted, Operands, Plan, PlanError, Proof};
use crate::ptx::{Address, Class, Kernel, LoopHandle, ParamKind, Pred, Reg, Space};

/// The kernel's parameters, in order.
pub(super) const PARAMETERS: [(&str, ParamKind); 11] = [
    ("A", ParamKind::Pointer),
    ("B", ParamKind::Pointer),
    ("C", ParamKind::Pointer),
    ("m", ParamKind::U32),
    ("n", ParamKind::U32),
    ("k", ParamKind::U32),
    ("lda", ParamKind::U32),
    ("ldb", ParamKind::U32),
    ("ldc", ParamKind::U32),
    ("alpha", ParamKind::F32),
    ("beta", ParamKind::F32),
];

/// The name of the kernel's entry.
pub(super) fn entry_name(plan: SgemmPlan, operands: Operands) -> String {
    format!("{}_{operands}", plan.label().replace('-', "_"))
}

const ZERO: &str = "0f00000000";

/// Writes the kernel.
pub(super) fn emit(
    plan: SgemmPlan,
    operands: Operands,
    arch: Arch,
    proof: Proof,
) -> Result<Emitted, PlanError> {
    let maps = plan.maps()?;
    let mut k = Kernel::new(&entry_name(plan, operands));
    k.describe(format!(
        "{plan}: C = alpha op(A) op(B) + beta C, f32, row-major, {operands}"
    ));
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<36} {}", l.name, l.layout, l.meaning));
    }
    for a in &proof.accesses {
        k.describe(format!(
            "{:>10}   {}: {} wavefronts, ideal {}",
            a.access, a.op, a.wavefronts, a.ideal
        ));
    }
    k.directive(format!(".maxntid {}, 1, 1", plan.threads()));
    // 16 warps of 128 registers; the smaller tile has more addresses for the same sums: 12 warps of 168.
    k.directive(format!(
        ".minnctapersm {}",
        if plan.threads() == 64 { 6 } else { 2 }
    ));

    let mut g = Gemm::new(&mut k, &maps, operands)?;
    let (acc, depth) = (g.accumulators(), g.depth);
    let zero = g.k.pool.constant(0);
    // Without a product the sums are empty: the first tile counts as all outside, and A and B are not read.
    let no_product = g.k.compare_float("eq", g.alpha, ZERO);
    let product = g.k.compare_float("neu", g.alpha, ZERO);
    let first_depth = g.k.select("first_depth", no_product, zero, depth);
    g.k.comment("tile 0 to stage 0");
    let staged = g.k.regs(Class::F32, g.vectors * 4);
    g.load_tile(zero, first_depth, None, &staged)?;
    g.store_tile(zero, None, &staged)?;
    g.k.ins("bar.sync 0");

    let stage = g.k.pool.var("stage", 0, 1, 1);
    let one = g.k.pool.constant(1);
    let other = g.k.pool.xor(stage, one);
    let handle = g.k.open_loop("k0", K_STEP, K_STEP, LIMIT as i64);
    let more = g.k.compare("lt", handle.counter, depth);
    let more = g.k.combine("and", more, product, 1);
    let (loaded, stored) = (g.k.label("no_load"), g.k.label("no_store"));
    g.k.branch(Some(Pred::from(more).not()), &loaded, true);
    g.k.comment("the next tile to registers");
    g.load_tile(handle.counter, depth, Some(&handle), &staged)?;
    g.k.place(&loaded);
    let reads = g.read_addresses(stage, &handle)?;
    g.multiply(&reads, &acc);
    g.k.branch(Some(Pred::from(more).not()), &stored, true);
    g.k.comment("the next tile to the other stage");
    g.store_tile(other, Some(&handle), &staged)?;
    g.k.place(&stored);
    g.k.ins("bar.sync 0");
    g.k.close_loop_while(&handle, more);

    g.k.open_region();
    g.epilogue(&acc)?;
    g.k.close_region();
    g.k.ins("ret");

    let address_registers = [k.addresses()].into();
    let ptx = k.finish(arch.ptx_version(), &arch.to_string());
    Ok(Emitted {
        ptx,
        kernel: entry_name(plan, operands),
        proof,
        address_registers,
    })
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
    /// The operand that this thread loads: pointer, leading dimension, first row or column of the tile.
    operand: Expr,
    ld: Expr,
    origin: Expr,
    /// The parameter k.
    depth: Expr,
    /// Rows that are all inside and vectors that are aligned: what a load in vectors needs besides 8 whole k.
    fast: Reg,
    smem: Expr,
    x0: Expr,
    y0: Expr,
    vectors: usize,
    c: Expr,
    m: Expr,
    n: Expr,
    ldc: Expr,
    alpha: Reg,
    beta: Reg,
}

/// Shared operands of the reads: for each k step, the two quads of x and the two of y.
type Reads = Vec<[Address; 4]>;

impl<'a> Gemm<'a> {
    fn new(k: &'a mut Kernel, maps: &'a Maps, operands: Operands) -> Result<Self, PlanError> {
        let (threads, w) = (maps.threads(), maps.w);
        let hi = LIMIT as i64;
        let [a, b, c] = ["A", "B", "C"].map(|p| k.param_pointer(p));
        let [m, n, depth, lda, ldb, ldc] =
            ["m", "n", "k", "lda", "ldb", "ldc"].map(|p| k.param_u32(p, hi));
        let [alpha, beta] = ["alpha", "beta"].map(|p| k.param_scalar(p, ParamKind::F32));
        let stage_bytes = 2 * maps.half_stage();
        let smem = k.shared_memory(2 * stage_bytes as u64, 2 * stage_bytes as u32);

        let tid = k.special("%tid.x", threads - 1);
        let bx = k.special("%ctaid.x", hi / w);
        let (by, bz) = (
            k.special("%ctaid.y", GRID_Y as i64 - 1),
            k.special("%ctaid.z", hi / w / GRID_Y as i64),
        );
        let grid = Layout::flat(&[GRID_Y as i64, 1], &[1, GRID_Y as i64])?;
        let tile_y = index(&mut k.pool, &grid, &[by, bz])?;
        let corner = Layout::mode(1, w)?;
        let x0 = index(&mut k.pool, &corner, &[bx])?;
        let y0 = index(&mut k.pool, &corner, &[tile_y])?;

        let half = k.pool.constant(threads / 2);
        let loads_x = k.compare("lt", tid, half);
        let t = k.pool.rem(tid, threads / 2);
        let operand = k.select("operand", loads_x, b, a);
        let ld = k.select("ld", loads_x, ldb, lda);
        let origin = k.select("origin", loads_x, x0, y0);
        let extent = k.select("extent", loads_x, n, m);

        let zero = k.pool.constant(0);
        // Vectors serve a tile whose rows are all inside, if they are aligned.
        let width = k.pool.constant(w);
        let end = k.pool.add(origin, width);
        let inside = k.compare("le", end, extent);
        let low = k.pool.and(operand, 15);
        let low_ld = k.pool.and(ld, 3);
        let (aligned, aligned_ld) = (k.compare("eq", low, zero), k.compare("eq", low_ld, zero));
        let fast = k.combine("and", inside, aligned, 0);
        let fast = k.combine("and", fast, aligned_ld, 0);
        let vectors = (w * K_STEP / (threads / 2) / 4) as usize;
        Ok(Self {
            maps,
            sides: sides(operands),
            tid,
            t,
            loads_x,
            operand,
            ld,
            origin,
            depth,
            fast,
            smem,
            x0,
            y0,
            vectors,
            c,
            m,
            n,
            ldc,
            alpha,
            beta,
            k,
        })
    }

    /// 8 (y) × 8 (x) sums a thread, set to 0.
    fn accumulators(&mut self) -> Vec<Vec<Reg>> {
        let acc: Vec<Vec<Reg>> = (0..8).map(|_| self.k.regs(Class::F32, 8)).collect();
        self.k.comment("acc: 8 (y) x 8 (x) f32 a thread");
        for r in acc.iter().flatten() {
            self.k.ins(format!("mov.f32 {r}, {ZERO}"));
        }
        acc
    }

    /// Whether both operands lie the same way, so that both halves of the block run the same code.
    fn alike(&self) -> bool {
        self.sides[0].1 == self.sides[1].1
    }

    /// Puts the loaded values into stage `stage`: vectors where the side is contiguous, single floats where k is.
    fn store_tile(
        &mut self,
        stage: Expr,
        of: Option<&LoopHandle>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let [x, y] = self.sides;
        let done = self.k.label("stored");
        if self.alike() {
            return self.store_side(x, stage, of, staged);
        }
        let other = self.k.label("store_y");
        self.k
            .branch(Some(Pred::from(self.loads_x).not()), &other, false);
        self.store_side(x, stage, of, staged)?;
        self.k.branch(None, &done, false);
        self.k.place(&other);
        self.store_side(y, stage, of, staged)?;
        self.k.place(&done);
        Ok(())
    }

    fn store_side(
        &mut self,
        (side, along): (Side, bool),
        stage: Expr,
        of: Option<&LoopHandle>,
        staged: &[Reg],
    ) -> Result<(), PlanError> {
        let load = self.maps.load(side, along);
        let zero = self.k.pool.constant(0);
        let thread = |g: &mut Self, along: bool| {
            index(
                &mut g.k.pool,
                &g.maps.load(Side::X, along).store,
                &[g.t, zero],
            )
        };
        let half = self.half_base();
        let mut first = thread(self, self.sides[0].1)?;
        if !self.alike() {
            let second = thread(self, self.sides[1].1)?;
            first = self.k.select("store", self.loads_x, first, second);
        }
        let base = self.k.pool.add(half, first);
        let name = if self.alike() {
            "writeS"
        } else {
            load.store_name
        };
        let width = if along { 4 } else { 1 };
        for (i, regs) in staged.chunks(width).enumerate() {
            let v = self.k.pool.constant((i * width) as i64);
            let distance = index(&mut self.k.pool, &load.store, &[zero, v])?;
            let e = self.k.pool.add(base, distance);
            let at = self.staged_address(e, stage, of)?;
            self.k.store(None, "f32", regs, at);
            self.k.tag(name);
        }
        Ok(())
    }

    /// Where the half of the stage begins that this thread fills.
    fn half_base(&mut self) -> Expr {
        let (x, y) = (
            self.k.pool.constant(0),
            self.k.pool.constant(self.maps.half_stage()),
        );
        self.k.select("half_base", self.loads_x, x, y)
    }

    /// A byte of stage `stage`, as an operand.
    fn staged_address(
        &mut self,
        e: Expr,
        stage: Expr,
        of: Option<&LoopHandle>,
    ) -> Result<Address, PlanError> {
        let stages = Layout::mode(2, 2 * self.maps.half_stage())?;
        let at = index(&mut self.k.pool, &stages, &[stage])?;
        let e = self.k.pool.add(e, at);
        let e = self.k.pool.add(self.smem, e);
        let alternating =
            of.and_then(|handle| self.k.alternating(Space::Shared, e, "stage", handle));
        Ok(alternating.unwrap_or_else(|| self.k.address(Space::Shared, e)))
    }

    fn read_addresses(&mut self, stage: Expr, of: &LoopHandle) -> Result<Reads, PlanError> {
        let mut all = Vec::new();
        let (fx, _) = self.maps.fragment_read(Side::X)?;
        let (fy, _) = self.maps.fragment_read(Side::Y)?;
        for step in 0..K_STEP {
            let mut one = Vec::new();
            for (map, base) in [(&fx, 0), (&fy, self.maps.half_stage())] {
                for quad in 0..2 {
                    let v = self.k.pool.constant(4 * (quad + 2 * step));
                    let e = index(&mut self.k.pool, map, &[self.tid, v])?;
                    let base = self.k.pool.constant(base);
                    let e = self.k.pool.add(e, base);
                    one.push(self.staged_address(e, stage, Some(of))?);
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
                    self.k
                        .ins(format!("fma.rn.f32 {sum}, {}, {}, {sum}", x[i], y[j]));
                }
            }
        }
    }

    fn fetch(&mut self, at: &[Address; 4], into: &[Reg]) {
        for (i, (a, regs)) in at.iter().zip(into.chunks(4)).enumerate() {
            self.k.load(None, "", "f32", regs, *a);
            self.k.tag(if i < 2 { "readAs" } else { "readBs" });
        }
    }
}
