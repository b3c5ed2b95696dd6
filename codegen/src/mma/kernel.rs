//! The kernel of the family, read from top to bottom from its entry to its exit.

use layout_core::atoms::Scalar;
use layout_core::{Layout, composition};

use super::operand::{OperandMaps, Read};
use super::{GROUP, LIMIT, Maps, MmaPlan, scalar_kind};
use crate::index::layout::{combined_index, index, swizzled_index};
use crate::index::{Expr, Pool};
use crate::plan::{Arch, DataType, Emitted, Operands, Plan, PlanError, Proof};
use crate::ptx::{Address, Class, Kernel, LoopHandle, ParamKind, Pred, Reg, Space};

/// The kernel's parameters, in order.
pub(super) fn parameters(data_type: DataType) -> Vec<(&'static str, ParamKind)> {
    let scalar = scalar_kind(data_type);
    let mut all: Vec<_> = ["A", "B", "C"].map(|p| (p, ParamKind::Pointer)).into();
    all.extend(["m", "n", "k", "lda", "ldb", "ldc"].map(|p| (p, ParamKind::U32)));
    all.extend(["alpha", "beta"].map(|p| (p, scalar)));
    all
}

/// The name of the kernel's entry.
pub(super) fn entry_name(plan: MmaPlan, operands: Operands) -> String {
    format!("{}_{operands}", plan.name().replace('-', "_"))
}

/// Writes the kernel.
pub(super) fn emit(
    plan: MmaPlan,
    operands: Operands,
    arch: Arch,
    proof: Proof,
) -> Result<Emitted, PlanError> {
    let maps = plan.maps(operands)?;
    let entry = entry_name(plan, operands);
    let mut k = Kernel::new(&entry);
    k.describe(format!(
        "{}: C = alpha op(A) op(B) + beta C, {}, row-major, {operands}",
        plan.name(),
        plan.data_type
    ));
    k.describe(format!(
        "stages {}, {} k each; warps {}x{}; {}",
        plan.stages, plan.depth, plan.warps.0, plan.warps.1, maps.atom.name
    ));
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<40} {}", l.name, l.layout, l.meaning));
    }
    for a in &proof.accesses {
        k.describe(format!(
            "{:>10}   {}: {} wavefronts, ideal {}",
            a.access, a.op, a.wavefronts, a.ideal
        ));
    }
    let threads = plan.thread_count();
    k.directive(format!(".maxntid {threads}, 1, 1"));
    k.directive(format!(".minnctapersm {}", plan.blocks_per_sm(&maps)));

    let mut g = Gemm::new(&mut k, plan, &maps)?;
    let done = g.k.label("done");
    // The last group of rows may reach beyond C: a block there has nothing to do.
    let outside = g.k.compare("ge", g.row0, g.m);
    g.k.branch(Some(outside.into()), &done, true);
    let acc = g.accumulators();
    g.fill()?;
    g.main_loop(&acc)?;
    g.k.open_region();
    g.epilogue(&acc)?;
    g.k.close_region();
    g.k.place(&done);
    g.k.ins("ret");

    let address_registers = k.address_registers().iter().cloned().collect();
    let ptx = k.finish(plan.ptx_version(arch), &arch.to_string());
    Ok(Emitted {
        ptx,
        kernel: entry,
        proof,
        address_registers,
    })
}

impl MmaPlan {
    /// Blocks that share a multiprocessor: as many as registers and shared memory of the smallest architecture allow.
    fn blocks_per_sm(&self, maps: &Maps) -> i64 {
        let (wm, wn) = (self.tile.0 / self.warps.0, self.tile.1 / self.warps.1);
        let accumulators = wm * wn / 32 * maps.atom.c_type.bits() / 32;
        // A multiprocessor has 65,536 registers; f64 fragments take twice the registers of others.
        // 8-bit operands are put together from single bytes where k is not contiguous, and 8-bit floats are widened to f16 where the
        // hardware does not multiply them: both take registers.
        let bytes = self.data_type.bytes() == 1;
        let heavy = accumulators >= 128 || maps.atom.c_type == Scalar::F64 || bytes;
        let by_registers = if heavy { 256 } else { 512 } / self.thread_count();
        by_registers.max(1)
    }

    /// The lowest PTX version that has the instructions: 7.0 for `cp.async` and `mma.sync` of `sm_80`, 7.8 for f64 on `sm_90`, 8.4 for
    /// 8-bit floats.
    fn ptx_version(&self, arch: Arch) -> &'static str {
        let own = arch.ptx_version();
        let needs = match self.data_type {
            DataType::E4m3 | DataType::E5m2 => "8.4",
            DataType::F64 if self.arch >= 90 => "7.8",
            _ => "7.0",
        };
        if needs > own { needs } else { own }
    }
}

/// One operand in the kernel.
struct Side<'a> {
    maps: &'a OperandMaps,
    is_a: bool,
    tag: &'static str,
    read_tag: &'static str,
    /// Leading dimension.
    ld: Expr,
    /// First row or column of C of this block, and how many there are in all.
    origin: Expr,
    extent: Expr,
    /// Address of this thread's first element in the first tile along k.
    corner: Expr,
    /// First byte of the operand in a stage.
    base: i64,
}

struct Gemm<'a> {
    k: &'a mut Kernel,
    plan: MmaPlan,
    maps: &'a Maps,
    sides: [Side<'a>; 2],
    tid: Expr,
    lane: Expr,
    /// Row and column of the warp in the grid of warps.
    warp: (Expr, Expr),
    smem: Expr,
    row0: Expr,
    m: Expr,
    n: Expr,
    col0: Expr,
    ldc: Expr,
    c: Expr,
    /// Length of the sums; 0 if alpha is 0, so that A and B are not read.
    depth: Expr,
    /// Every row of both tiles is inside.
    inside: Reg,
    alpha: Reg,
    beta: Reg,
    stage_bytes: i64,
}

/// Fragments of one k step: A by rows of atoms, B by columns.
struct Fragments {
    a: Vec<Vec<Reg>>,
    b: Vec<Vec<Reg>>,
}

impl<'a> Gemm<'a> {
    fn new(k: &'a mut Kernel, plan: MmaPlan, maps: &'a Maps) -> Result<Self, PlanError> {
        let hi = LIMIT as i64;
        let [a, b, c] = ["A", "B", "C"].map(|p| k.param_pointer(p));
        let [m, n, depth, lda, ldb, ldc] =
            ["m", "n", "k", "lda", "ldb", "ldc"].map(|p| k.param_u32(p, hi));
        let [alpha, beta] =
            ["alpha", "beta"].map(|p| k.param_scalar(p, scalar_kind(plan.data_type)));
        let smem = k.dynamic_shared_memory(1024);
        let threads = plan.thread_count();
        let tid = k.special("%tid.x", threads - 1);
        let lane = k.pool.rem(tid, 32);
        let warp = k.pool.shr(tid, 5);
        let grid = Layout::flat(&[plan.warps.0, plan.warps.1], &[1, 0])?;
        let warp_row = index(&mut k.pool, &grid, &[warp])?;
        let grid = Layout::flat(&[plan.warps.0, plan.warps.1], &[0, 1])?;
        let warp_col = index(&mut k.pool, &grid, &[warp])?;

        // Blocks run down a group of rows, then across the columns, then to the next group.
        let (tm, tn) = plan.tile;
        let (bx, by) = (
            k.special("%ctaid.x", GROUP as i64 - 1),
            k.special("%ctaid.y", 65_534),
        );
        let bz = k.special("%ctaid.z", (hi / tm / GROUP as i64).min(65_534));
        let group = Layout::flat(&[GROUP as i64, 1], &[tm, tm * GROUP as i64])?;
        let row0 = index(&mut k.pool, &group, &[bx, bz])?;
        let col0 = index(&mut k.pool, &Layout::mode(1, tn)?, &[by])?;

        let (zero_text, _) = zero_and_suffix(maps.atom.c_type);
        let no_product = if plan.data_type == DataType::S8 {
            k.compare_register("eq", alpha, 0)
        } else {
            k.compare_float("eq", alpha, zero_text)
        };
        let zero = k.pool.constant(0);
        let depth = k.select("depth", no_product, zero, depth);
        let whole = |k: &mut Kernel, origin: Expr, tile: i64, extent: Expr| {
            let t = k.pool.constant(tile);
            let end = k.pool.add(origin, t);
            k.compare("le", end, extent)
        };
        let rows_inside = whole(k, row0, tm, m);
        let cols_inside = whole(k, col0, tn, n);
        let inside = k.combine("and", rows_inside, cols_inside, 0);

        let stage_a = maps.a.stage_bytes();
        let mut side = |maps: &'a OperandMaps,
                        is_a: bool,
                        ptr,
                        ld,
                        origin,
                        extent,
                        base|
         -> Result<Side<'a>, PlanError> {
            let mut side = Side {
                maps,
                is_a,
                tag: if is_a { "copyA" } else { "copyB" },
                read_tag: if is_a { "readA" } else { "readB" },
                ld,
                origin,
                extent,
                corner: ptr,
                base,
            };
            let zero = k.pool.constant(0);
            let (row, col) = copy_coordinates(&mut k.pool, maps, tid, zero)?;
            let (row, col) = if maps.k_major {
                (k.pool.add(origin, row), col)
            } else {
                (row, k.pool.add(origin, col))
            };
            let corner = global(&mut k.pool, maps, ld, row, col)?;
            let corner = k.pool.add(ptr, corner);
            side.corner = k.pool.pin(corner);
            Ok(side)
        };
        let sides = [
            side(&maps.a, true, a, lda, row0, m, 0)?,
            side(&maps.b, false, b, ldb, col0, n, stage_a)?,
        ];
        let stage_bytes = stage_a + maps.b.stage_bytes();
        Ok(Self {
            k,
            plan,
            maps,
            sides,
            tid,
            lane,
            warp: (warp_row, warp_col),
            smem,
            row0,
            m,
            n,
            col0,
            ldc,
            c,
            depth,
            inside,
            alpha,
            beta,
            stage_bytes,
        })
    }

    /// Atoms of a warp along the rows and the columns.
    fn atoms(&self) -> (i64, i64) {
        let (m, n) = self.plan.tile;
        (
            m / self.plan.warps.0 / self.maps.atom.m,
            n / self.plan.warps.1 / self.maps.atom.n,
        )
    }

    /// The class of an accumulator.
    fn acc_class(&self) -> Class {
        match self.maps.atom.c_type {
            Scalar::F64 => Class::F64,
            Scalar::S32 => Class::B32,
            _ => Class::F32,
        }
    }

    /// Accumulators: atoms by rows and columns, each the registers of one atom, set to 0.
    fn accumulators(&mut self) -> Vec<Vec<Vec<Reg>>> {
        let (rows, cols) = self.atoms();
        let each = self.maps.atom.values()[2];
        let class = self.acc_class();
        let (zero, suffix) = zero_and_suffix(self.maps.atom.c_type);
        self.k
            .comment(format!("acc: {rows} x {cols} atoms of {each} a thread"));
        let mut all = Vec::new();
        for _ in 0..rows {
            let mut row = Vec::new();
            for _ in 0..cols {
                let regs = self.k.regs(class, each as usize);
                for r in &regs {
                    self.k.ins(format!("mov.{suffix} {r}, {zero}"));
                }
                row.push(regs);
            }
            all.push(row);
        }
        all
    }

    /// Copies of the first tiles into all stages but the last.
    fn fill(&mut self) -> Result<(), PlanError> {
        self.k.comment("the first tiles");
        for s in 0..self.plan.stages - 1 {
            let tile = self.k.pool.constant(s * self.plan.depth);
            let zero = self.k.pool.constant(0);
            self.copy_tile(zero, tile, s, 0, s > 0)?;
        }
        Ok(())
    }

    /// Copies the tile at `k0 + offset` to stage `stage`, if there is one and unless it is the first, which is copied in any
    /// case: without products it is all zeros.
    fn copy_tile(
        &mut self,
        k0: Expr,
        offset: Expr,
        stage: i64,
        level: u8,
        may_be_absent: bool,
    ) -> Result<(), PlanError> {
        let at = self.k.pool.add(k0, offset);
        let (edge, done) = (self.k.label("edge"), self.k.label("copied"));
        if may_be_absent {
            let absent = self.k.compare("ge", at, self.depth);
            self.k.branch(Some(absent.into()), &done, true);
        }
        let tile = self.k.pool.constant(self.plan.depth);
        let end = self.k.pool.add(at, tile);
        let whole = self.k.compare("le", end, self.depth);
        let fast = self.k.combine("and", whole, self.inside, level);
        self.k.branch(Some(Pred::from(fast).not()), &edge, true);
        self.copy_part(k0, offset, stage, false, (0, 1))?;
        self.k.branch(None, &done, true);
        self.k.place(&edge);
        self.copy_part(k0, offset, stage, true, (0, 1))?;
        self.k.place(&done);
        self.k.ins("cp.async.commit_group");
        Ok(())
    }

    /// Part `part.0` of `part.1` of the vectors of both operands.
    fn copy_part(
        &mut self,
        k0: Expr,
        offset: Expr,
        stage: i64,
        edge: bool,
        part: (i64, i64),
    ) -> Result<(), PlanError> {
        for i in 0..2 {
            self.copy_side(i, (k0, offset), stage, edge, part)?;
        }
        Ok(())
    }

    /// This thread's vectors of one operand; at an edge, each with the number of its bytes that are inside.
    fn copy_side(
        &mut self,
        i: usize,
        (k0, offset): (Expr, Expr),
        stage: i64,
        edge: bool,
        part: (i64, i64),
    ) -> Result<(), PlanError> {
        // Nothing of this is needed elsewhere.
        self.k.open_region();
        let (o, ld, corner, tag) = (
            self.sides[i].maps,
            self.sides[i].ld,
            self.sides[i].corner,
            self.sides[i].tag,
        );
        let (origin, extent, base) = (
            self.sides[i].origin,
            self.sides[i].extent,
            self.sides[i].base,
        );
        let zero = self.k.pool.constant(0);
        let moved = if o.k_major {
            global(&mut self.k.pool, o, ld, zero, k0)?
        } else {
            global(&mut self.k.pool, o, ld, k0, zero)?
        };
        let pointer = self.k.pool.add(corner, moved);
        let pointer = self.k.pool.pin(pointer);
        let (row, col) = copy_coordinates(&mut self.k.pool, o, self.tid, zero)?;
        // Elements left from this thread's first one to either edge.
        let k_at = self.k.pool.add(k0, offset);
        let (left_row, left_col) = {
            let pool = &mut self.k.pool;
            let left_side = pool.sub(extent, origin);
            let left_k = pool.sub(self.depth, k_at);
            let (r, c) = if o.k_major {
                (left_side, left_k)
            } else {
                (left_k, left_side)
            };
            (pool.sub(r, row), pool.sub(c, col))
        };
        let vectors = o.copy.size() / self.plan.thread_count() / o.vector;
        for v in vectors * part.0 / part.1..vectors * (part.0 + 1) / part.1 {
            let value = self.k.pool.constant(v * o.vector);
            let (dr, dc) = copy_coordinates(&mut self.k.pool, o, zero, value)?;
            let (gr, gc) = if o.k_major {
                (dr, self.k.pool.add(dc, offset))
            } else {
                (self.k.pool.add(dr, offset), dc)
            };
            let distance = global(&mut self.k.pool, o, ld, gr, gc)?;
            let source = self.k.pool.add(pointer, distance);
            let source = self.k.address(Space::Global, source);
            // Swizzled as a whole: row and column of the vector, not of the thread.
            let (r, c) = (self.k.pool.add(row, dr), self.k.pool.add(col, dc));
            let byte = swizzled_index(&mut self.k.pool, &o.shared, &[r, c])?;
            let start = self.k.pool.constant(stage * self.stage_bytes + base);
            let byte = self.k.pool.add(byte, start);
            let byte = self.k.pool.add(byte, self.smem);
            let target = self.k.address(Space::Shared, byte);
            if edge {
                let constant = |pool: &Pool, e: Expr| pool.as_const(e).unwrap_or(0);
                let (dr, dc) = (constant(&self.k.pool, dr), constant(&self.k.pool, dc));
                let size = self.bytes_inside(left_row, left_col, (dr, dc), o);
                self.k.memory_ins(
                    None,
                    &format!("cp.async.cg.shared.global {{0}}, {{1}}, 16, {size}"),
                    &[target, source],
                );
            } else {
                self.k.memory_ins(
                    None,
                    "cp.async.cg.shared.global {0}, {1}, 16",
                    &[target, source],
                );
            }
            self.k.tag(tag);
        }
        self.k.close_region();
        Ok(())
    }

    /// How many of a vector's 16 bytes are inside the matrix.
    fn bytes_inside(
        &mut self,
        left_row: Expr,
        left_col: Expr,
        (dr, dc): (i64, i64),
        o: &OperandMaps,
    ) -> Reg {
        let row_inside = self.k.compare_here("gt", left_row, dr, None);
        let left = self.k.value(left_col);
        let size = self.k.reg(Class::B32);
        self.k.ins(format!("sub.s32 {size}, {left}, {dc}"));
        self.k.ins(format!("max.s32 {size}, {size}, 0"));
        self.k.ins(format!("min.s32 {size}, {size}, {}", o.vector));
        if o.bytes > 1 {
            self.k.ins(format!(
                "shl.b32 {size}, {size}, {}",
                o.bytes.trailing_zeros()
            ));
        }
        self.k
            .ins(format!("selp.b32 {size}, {size}, 0, {row_inside}"));
        size
    }

    /// Elements along k of one step: those of the atom.
    fn k_step(&self) -> i64 {
        self.maps.atom.k
    }

    fn fragments(&mut self) -> Fragments {
        let (rows, cols) = self.atoms();
        let [a, b, _] = self.maps.atom.registers();
        let class = if self.maps.atom.a_type == Scalar::F64 {
            Class::F64
        } else {
            Class::B32
        };
        Fragments {
            a: (0..rows).map(|_| self.k.regs(class, a as usize)).collect(),
            b: (0..cols).map(|_| self.k.regs(class, b as usize)).collect(),
        }
    }

    /// The loop over k, `stages` tiles a turn, so that every stage is an immediate: once without a branch, for as long as every
    /// tile that is copied is whole, and once more for the rest.
    fn main_loop(&mut self, acc: &[Vec<Vec<Reg>>]) -> Result<(), PlanError> {
        let (stages, depth) = (self.plan.stages, self.plan.depth);
        let buffers = [self.fragments(), self.fragments()];
        self.k.ins(format!("cp.async.wait_group {}", stages - 2));
        self.k.ins("bar.sync 0");
        self.k.comment("fragments of the first k step");
        self.fetch(&buffers[0], 0, 0)?;

        // A turn copies up to 2·stages − 2 tiles ahead.
        let ahead = self.k.pool.constant((2 * stages - 1) * depth);
        let enough = self.k.compare("ge", self.depth, ahead);
        let whole = self.k.combine("and", enough, self.inside, 0);
        let beyond = self.k.pool.constant((2 * stages - 1) * depth - 1);
        let limit = self.k.pool.sub(self.depth, beyond);
        let zero = self.k.pool.constant(0);
        let limit = self.k.select("whole_turns", whole, limit, zero);
        let steady = self.k.open_loop("k0", 0, stages * depth, LIMIT as i64);
        for s in 0..stages {
            self.steady_tile(&steady, s, &buffers, acc)?;
        }
        self.k.close_loop(&steady, limit);

        let exit = self.k.label("multiplied");
        let rest = self
            .k
            .resume_loop("k1", &steady, stages * depth, LIMIT as i64);
        for s in 0..stages {
            self.last_tile(&rest, s, &buffers, acc, &exit)?;
        }
        self.k.close_endless_loop(&rest);
        self.k.place(&exit);
        self.k.ins("cp.async.wait_all");
        self.k.ins("bar.sync 0");
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
        let (stages, depth) = (self.plan.stages, self.plan.depth);
        let steps = depth / self.k_step();
        let next = (s + stages - 1) % stages;
        let offset = self.k.pool.constant((s + stages - 1) * depth);
        let parts = (steps - 1).max(1);
        for step in 0..steps {
            let now = ((s * steps + step) % 2) as usize;
            if step + 1 < steps {
                self.fetch(&buffers[1 - now], s, step + 1)?;
            } else {
                self.arrive((s + 1) % stages, &buffers[1 - now])?;
            }
            if step < parts {
                self.copy_part(of.counter, offset, next, false, (step, parts))?;
                if step + 1 == parts {
                    self.k.ins("cp.async.commit_group");
                }
            }
            self.multiply(&buffers[now], acc);
        }
        Ok(())
    }

    /// Waits until the tile of `stage` has arrived, and fetches its first fragments. All that is in flight but the youngest tiles has
    /// arrived, and nobody reads the stage any more that is filled next.
    fn arrive(&mut self, stage: i64, into: &Fragments) -> Result<(), PlanError> {
        self.k
            .ins(format!("cp.async.wait_group {}", self.plan.stages - 2));
        self.k.ins("bar.sync 0");
        self.fetch(into, stage, 0)
    }

    /// One tile of the loop that ends anywhere.
    fn last_tile(
        &mut self,
        of: &LoopHandle,
        s: i64,
        buffers: &[Fragments; 2],
        acc: &[Vec<Vec<Reg>>],
        exit: &str,
    ) -> Result<(), PlanError> {
        let (stages, depth) = (self.plan.stages, self.plan.depth);
        let steps = depth / self.k_step();
        let next = (s + stages - 1) % stages;
        let offset = self.k.pool.constant((s + stages - 1) * depth);
        let end = self.k.pool.constant((s + 1) * depth);
        let end = self.k.pool.add(of.counter, end);
        let more = self.k.compare("lt", end, self.depth);
        for step in 0..steps {
            let now = ((s * steps + step) % 2) as usize;
            if step == 0 {
                self.k
                    .comment(format!("stage {next} gets the tile {} further", stages - 1));
                self.copy_tile(of.counter, offset, next, 1, true)?;
            }
            if step + 1 < steps {
                self.fetch(&buffers[1 - now], s, step + 1)?;
            } else {
                let last = self.k.label("last");
                self.k.branch(Some(Pred::from(more).not()), &last, true);
                self.arrive((s + 1) % stages, &buffers[1 - now])?;
                self.k.place(&last);
            }
            self.multiply(&buffers[now], acc);
        }
        self.k.branch(Some(Pred::from(more).not()), exit, true);
        Ok(())
    }

    /// Brings the fragments of one k step of a stage to registers.
    fn fetch(&mut self, into: &Fragments, stage: i64, step: i64) -> Result<(), PlanError> {
        self.fetch_side(0, &into.a, stage, step)?;
        self.fetch_side(1, &into.b, stage, step)
    }

    fn fetch_side(
        &mut self,
        i: usize,
        into: &[Vec<Reg>],
        stage: i64,
        step: i64,
    ) -> Result<(), PlanError> {
        let (o, is_a, tag) = (
            self.sides[i].maps,
            self.sides[i].is_a,
            self.sides[i].read_tag,
        );
        let atom_side = if is_a {
            self.maps.atom.m
        } else {
            self.maps.atom.n
        };
        let warp_side = into.len() as i64 * atom_side;
        let warp = if is_a { self.warp.0 } else { self.warp.1 };
        let warp_origin = self.k.pool.scale(warp, warp_side);
        match o.read {
            Read::Ldmatrix { trans } => {
                let per_read = o.side / atom_side;
                for (j, regs) in into.chunks(per_read as usize).enumerate() {
                    let (side, k) = coordinates(&mut self.k.pool, o, &o.points, &[self.lane])?;
                    let at = self.fragment_address(
                        i,
                        (warp_origin, j as i64 * o.side, side),
                        (k, step),
                        stage,
                    )?;
                    let regs: Vec<String> =
                        regs.iter().flatten().map(ToString::to_string).collect();
                    let t = if trans { ".trans" } else { "" };
                    self.k.memory_ins(
                        None,
                        &format!(
                            "ldmatrix.sync.aligned.m8n8.x4{t}.shared.b16 {{{}}}, {{0}}",
                            regs.join(", ")
                        ),
                        &[at],
                    );
                    self.k.tag(tag);
                }
            }
            Read::Elements => {
                for (j, regs) in into.iter().enumerate() {
                    let per_register = (4 / o.bytes).max(1);
                    for (r, reg) in regs.iter().enumerate() {
                        let mut parts = Vec::new();
                        for p in 0..per_register {
                            let value = self.k.pool.constant(r as i64 * per_register + p);
                            let (side, k) =
                                coordinates(&mut self.k.pool, o, &o.fragment, &[self.lane, value])?;
                            let at = self.fragment_address(
                                i,
                                (warp_origin, j as i64 * atom_side, side),
                                (k, step),
                                stage,
                            )?;
                            let part = if per_register == 1 {
                                *reg
                            } else {
                                self.k.reg(Class::B32)
                            };
                            let ty = match o.bytes {
                                8 => "f64",
                                4 => "b32",
                                _ => "u8",
                            };
                            self.k.load(None, "", ty, &[part], at);
                            self.k.tag(tag);
                            parts.push(part);
                        }
                        if let [a, b, c, d] = parts[..] {
                            let (low, high) = (self.k.reg(Class::B32), self.k.reg(Class::B32));
                            self.k.ins(format!("prmt.b32 {low}, {a}, {b}, 0x0040"));
                            self.k.ins(format!("prmt.b32 {high}, {c}, {d}, 0x0040"));
                            self.k.ins(format!("prmt.b32 {reg}, {low}, {high}, 0x5410"));
                        }
                    }
                }
            }
        }
        if self.plan.data_type == DataType::Tf32 {
            for r in into.iter().flatten() {
                self.k.ins(format!("mul.f32 {r}, {r}, {ROUND_TF32}"));
            }
        }
        Ok(())
    }

    /// The shared address of a fragment's element: `side` = warp + atom + lane, k = step + lane.
    fn fragment_address(
        &mut self,
        i: usize,
        (warp, atom, lane): (Expr, i64, Expr),
        (k, step): (Expr, i64),
        stage: i64,
    ) -> Result<Address, PlanError> {
        let (o, base) = (self.sides[i].maps, self.sides[i].base);
        let step = step * self.k_step();
        let pool = &mut self.k.pool;
        let atom = pool.constant(atom);
        let side = pool.add(warp, lane);
        let side = pool.add(side, atom);
        let step = pool.constant(step);
        let k = pool.add(k, step);
        let (row, col) = if o.k_major { (side, k) } else { (k, side) };
        let byte = swizzled_index(pool, &o.shared, &[row, col])?;
        let start = pool.constant(stage * self.stage_bytes + base);
        let byte = pool.add(byte, start);
        let byte = pool.add(byte, self.smem);
        Ok(self.k.address(Space::Shared, byte))
    }

    fn multiply(&mut self, f: &Fragments, acc: &[Vec<Vec<Reg>>]) {
        let list = |regs: &[Reg]| {
            regs.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (a, row) in f.a.iter().zip(acc) {
            for (b, sums) in f.b.iter().zip(row) {
                let c = list(sums);
                let name = self.maps.atom.name;
                self.k.ins(format!(
                    "{name} {{{c}}}, {{{}}}, {{{}}}, {{{c}}}",
                    list(a),
                    list(b)
                ));
            }
        }
    }
}

/// 1 + 2⁻¹¹. The tensor cores cut a tf32 factor off after 10 bits of mantissa; multiplied by this first, what they cut off leaves a
/// relative error of at most 2⁻¹¹ either way, the unit roundoff of tf32: for x in [1, 2), x·(1 + 2⁻¹¹) cut off to a multiple of 2⁻¹⁰
/// lies between x − (2⁻¹⁰ − x·2⁻¹¹) and x + x·2⁻¹¹. NaN and infinity stay, as they would not under an integer addition, and
/// `cvt.rna.tf32` runs at a quarter of the rate (measured on H200: 0.34 of cuBLAS with it).
const ROUND_TF32: &str = "0f3F801000";

/// The literal 0 and the type of an accumulator.
fn zero_and_suffix(c: Scalar) -> (&'static str, &'static str) {
    match c {
        Scalar::F64 => ("0d0000000000000000", "f64"),
        Scalar::S32 => ("0", "b32"),
        _ => ("0f00000000", "f32"),
    }
}

/// Row and column of a thread's value in the shared tile.
fn copy_coordinates(
    pool: &mut Pool,
    o: &OperandMaps,
    thread: Expr,
    value: Expr,
) -> Result<(Expr, Expr), PlanError> {
    let row = composition(&Layout::flat(&[o.cols, o.rows], &[0, 1])?, &o.copy)?;
    let col = composition(&Layout::flat(&[o.cols, o.rows], &[1, 0])?, &o.copy)?;
    Ok((
        index(pool, &row, &[thread, value])?,
        index(pool, &col, &[thread, value])?,
    ))
}

/// Side and k of `map`, whose values are `side + S·k`.
fn coordinates(
    pool: &mut Pool,
    o: &OperandMaps,
    map: &Layout,
    at: &[Expr],
) -> Result<(Expr, Expr), PlanError> {
    let most = map.cosize() / o.side + 1;
    let side = composition(&Layout::flat(&[o.side, most], &[1, 0])?, map)?;
    let k = composition(&Layout::flat(&[o.side, most], &[0, 1])?, map)?;
    Ok((index(pool, &side, at)?, index(pool, &k, at)?))
}

/// Byte distance in the operand's matrix of (row, column): `(row,column):(ld,1)`, times the element's bytes.
fn global(
    pool: &mut Pool,
    o: &OperandMaps,
    ld: Expr,
    row: Expr,
    col: Expr,
) -> Result<Expr, PlanError> {
    let unit = |r: i64, c: i64| Layout::flat(&[1, 1], &[o.bytes * r, o.bytes * c]);
    let terms = [(None, unit(0, 1)?), (Some(ld), unit(1, 0)?)];
    Ok(combined_index(pool, &terms, &[row, col])?)
}

impl Gemm<'_> {
    /// Accumulators to C, strip by strip.
    fn epilogue(&mut self, acc: &[Vec<Vec<Reg>>]) -> Result<(), PlanError> {
        let st = &self.maps.staging;
        let (tm, tn) = self.plan.tile;
        let (wm, wn) = (tm / self.plan.warps.0, tn / self.plan.warps.1);
        let pool = &mut self.k.pool;
        let warp = pool.shr(self.tid, 5);
        let own = pool.scale(warp, st.bytes());
        let strip = pool.add(self.smem, own);
        let zero = pool.constant(0);
        let (write_row, write_col) = st.split(&st.write)?;
        let (read_row, read_col) = st.split(&st.read)?;

        // This lane's first element of C, in elements of the matrix.
        let (r, c) = (
            index(pool, &read_row, &[self.lane, zero])?,
            index(pool, &read_col, &[self.lane, zero])?,
        );
        let down = pool.scale(self.warp.0, wm);
        let across = pool.scale(self.warp.1, wn);
        let row = [down, r].into_iter().fold(self.row0, |s, e| pool.add(s, e));
        let col = [across, c]
            .into_iter()
            .fold(self.col0, |s, e| pool.add(s, e));
        let c_bytes = i64::from(self.plan.data_type.result().bytes());
        let unit = |r: i64, c: i64| Layout::flat(&[1, 1], &[c_bytes * r, c_bytes * c]);
        let terms = [(None, unit(0, 1)?), (Some(self.ldc), unit(1, 0)?)];
        let corner = combined_index(pool, &terms, &[row, col])?;
        let corner = pool.add(self.c, corner);
        let corner = pool.pin(corner);
        let (left_row, left_col) = (pool.sub(self.m, row), pool.sub(self.n, col));

        // Vectors serve where 16 bytes are inside and aligned.
        let low = pool.and(self.c, 15);
        let low_ld = pool.and(self.ldc, (st.vector - 1) as u64);
        let aligned = self.k.compare("eq", low, zero);
        let aligned_ld = self.k.compare("eq", low_ld, zero);
        let aligned = self.k.combine("and", aligned, aligned_ld, 0);
        let width = self.k.pool.constant(st.vector);
        let whole = self.k.compare("ge", left_col, width);
        let vectors = self.k.combine("and", aligned, whole, 0);
        let reads_c = match self.plan.data_type {
            DataType::S8 => self.k.compare_register("ne", self.beta, 0),
            _ => self
                .k
                .compare_float("neu", self.beta, zero_and_suffix(self.maps.atom.c_type).0),
        };

        let passes = st.read.get(1)?.get(0)?.size();
        let parts = st.read.get(1)?.get(1)?.size();
        let (_, suffix) = zero_and_suffix(self.maps.atom.c_type);
        for (i, strip_acc) in acc.iter().enumerate() {
            self.k.open_region();
            self.k.comment(format!("strip {i}: {} rows", st.rows));
            if i > 0 {
                self.k.ins("bar.warp.sync 0xffffffff");
            }
            let halves = st.write.get(1)?.get(0)?.size();
            for (j, regs) in strip_acc.iter().enumerate() {
                for (h, pair) in regs.chunks(2).enumerate() {
                    let value = self.k.pool.constant(h as i64 + halves * j as i64);
                    let r = index(&mut self.k.pool, &write_row, &[self.lane, value])?;
                    let c = index(&mut self.k.pool, &write_col, &[self.lane, value])?;
                    let byte = swizzled_index(&mut self.k.pool, &st.shared, &[r, c])?;
                    let byte = self.k.pool.add(byte, strip);
                    let at = self.k.address(Space::Shared, byte);
                    self.k.store(None, suffix, pair, at);
                    self.k.tag("stageC");
                }
            }
            self.k.ins("bar.warp.sync 0xffffffff");
            for pass in 0..passes {
                self.k.open_region();
                let mut sums = Vec::new();
                for part in 0..parts {
                    let value = self.k.pool.constant(pass + passes * part);
                    let r = index(&mut self.k.pool, &read_row, &[self.lane, value])?;
                    let c = index(&mut self.k.pool, &read_col, &[self.lane, value])?;
                    let byte = swizzled_index(&mut self.k.pool, &st.shared, &[r, c])?;
                    let byte = self.k.pool.add(byte, strip);
                    let at = self.k.address(Space::Shared, byte);
                    let regs = self.k.regs(self.acc_class(), (16 / st.bytes) as usize);
                    self.k.load(None, "", suffix, &regs, at);
                    self.k.tag("fetchC");
                    sums.extend(regs);
                }
                let value = self.k.pool.constant(pass);
                let dr = index(&mut self.k.pool, &read_row, &[zero, value])?;
                let strip_row = self.k.pool.constant(i as i64 * st.rows);
                let dr = self.k.pool.add(dr, strip_row);
                let distance = combined_index(&mut self.k.pool, &terms, &[dr, zero])?;
                let target = self.k.pool.add(corner, distance);
                let target = self.k.address(Space::Global, target);
                let dr = self.k.pool.as_const(dr).unwrap_or(0);
                let row_inside = self.k.compare_here("gt", left_row, dr, None);
                self.update(&sums, target, (row_inside, vectors, reads_c), left_col);
                self.k.close_region();
            }
            self.k.close_region();
        }
        Ok(())
    }

    /// C ← α·sums + β·C for one vector of C.
    fn update(
        &mut self,
        sums: &[Reg],
        target: Address,
        (row, vectors, reads_c): (Reg, Reg, Reg),
        left_col: Expr,
    ) {
        let (done, single) = (self.k.label("stored"), self.k.label("single"));
        let (mul, mad) = match self.maps.atom.c_type {
            Scalar::F64 => ("mul.f64", "fma.rn.f64"),
            Scalar::S32 => ("mul.lo.s32", "mad.lo.s32"),
            _ => ("mul.f32", "fma.rn.f32"),
        };
        for s in sums {
            self.k.ins(format!("{mul} {s}, {s}, {}", self.alpha));
        }
        self.k.branch(Some(Pred::from(row).not()), &done, false);
        self.k
            .branch(Some(Pred::from(vectors).not()), &single, false);
        // 16 bytes at once.
        let beta = self.beta;
        let skip = self.k.label("no_c");
        self.k.branch(Some(Pred::from(reads_c).not()), &skip, true);
        match self.plan.data_type {
            DataType::F16 | DataType::Bf16 => {
                let old = self.k.regs(Class::B32, sums.len() / 2);
                self.k.load(None, "", "b32", &old, target);
                for (pair, packed) in sums.chunks(2).zip(&old) {
                    let parts = self.unpack(*packed);
                    for (s, c) in pair.iter().zip(parts) {
                        self.k.ins(format!("{mad} {s}, {beta}, {c}, {s}"));
                    }
                }
            }
            _ => {
                let old = self.k.regs(self.acc_class(), sums.len());
                self.k.load(
                    None,
                    "",
                    zero_and_suffix(self.maps.atom.c_type).1,
                    &old,
                    target,
                );
                for (s, c) in sums.iter().zip(&old) {
                    self.k.ins(format!("{mad} {s}, {beta}, {c}, {s}"));
                }
            }
        }
        self.k.place(&skip);
        match self.plan.data_type {
            DataType::F16 | DataType::Bf16 => {
                let packed: Vec<Reg> = sums
                    .chunks(2)
                    .map(|pair| self.pack(pair[0], pair[1]))
                    .collect();
                self.k.store(None, "b32", &packed, target);
            }
            _ => self
                .k
                .store(None, zero_and_suffix(self.maps.atom.c_type).1, sums, target),
        }
        self.k.branch(None, &done, false);
        // One element after the other.
        self.k.place(&single);
        for (j, s) in sums.iter().enumerate() {
            let inside = self.k.compare_here("gt", left_col, j as i64, None);
            let both = self.k.and_here(inside, reads_c);
            let bytes = self
                .k
                .pool
                .constant(j as i64 * i64::from(self.plan.data_type.result().bytes()));
            let at = self.k.offset(target, bytes).unwrap_or(target);
            let narrow = matches!(self.plan.data_type, DataType::F16 | DataType::Bf16);
            if narrow {
                let (h, zero) = (self.k.reg(Class::B16), "0");
                self.k.ins(format!("mov.b16 {h}, {zero}"));
                self.k.load(Some(both.into()), "", "b16", &[h], at);
                let wide = self.k.reg(Class::F32);
                if self.plan.data_type == DataType::F16 {
                    self.k.ins(format!("cvt.f32.f16 {wide}, {h}"));
                } else {
                    let low = self.k.reg(Class::B16);
                    self.k.ins(format!("mov.b16 {low}, 0"));
                    self.k.ins(format!("mov.b32 {wide}, {{{low}, {h}}}"));
                }
                self.k.ins(format!("{mad} {s}, {beta}, {wide}, {s}"));
                let out = self.k.reg(Class::B16);
                let ty = if self.plan.data_type == DataType::F16 {
                    "f16"
                } else {
                    "bf16"
                };
                self.k.ins(format!("cvt.rn.{ty}.f32 {out}, {s}"));
                self.k.store(Some(inside.into()), "b16", &[out], at);
            } else {
                let (zero, suffix) = zero_and_suffix(self.maps.atom.c_type);
                let c = self.k.reg(self.acc_class());
                self.k.ins(format!("mov.{suffix} {c}, {zero}"));
                self.k.load(Some(both.into()), "", suffix, &[c], at);
                self.k.ins(format!("{mad} {s}, {beta}, {c}, {s}"));
                self.k.store(Some(inside.into()), suffix, &[*s], at);
            }
        }
        self.k.place(&done);
    }

    /// Two f32 as one register of two 16-bit floats.
    fn pack(&mut self, low: Reg, high: Reg) -> Reg {
        let packed = self.k.reg(Class::B32);
        let ty = if self.plan.data_type == DataType::F16 {
            "f16x2"
        } else {
            "bf16x2"
        };
        self.k
            .ins(format!("cvt.rn.{ty}.f32 {packed}, {high}, {low}"));
        packed
    }

    /// The two 16-bit floats of a register as f32.
    fn unpack(&mut self, packed: Reg) -> [Reg; 2] {
        let wide = [self.k.reg(Class::F32), self.k.reg(Class::F32)];
        let halves = [self.k.reg(Class::B16), self.k.reg(Class::B16)];
        self.k.ins(format!(
            "mov.b32 {{{}, {}}}, {packed}",
            halves[0], halves[1]
        ));
        for (w, h) in wide.iter().zip(halves) {
            if self.plan.data_type == DataType::F16 {
                self.k.ins(format!("cvt.f32.f16 {w}, {h}"));
            } else {
                let low = self.k.reg(Class::B16);
                self.k.ins(format!("mov.b16 {low}, 0"));
                self.k.ins(format!("mov.b32 {w}, {{{low}, {h}}}"));
            }
        }
        wide
    }
}
