//! The kernel of the family, read from top to bottom from its entry to its exit.

mod copy;
mod fragment;
mod multiply;
mod store;

use layout_core::Layout;
use layout_core::atoms::Scalar;

use super::finish::{Finish, scalar_text};
use super::operand::OperandMaps;
use super::{Depth, GROUP, LIMIT, Maps, MmaPlan, pack, reduce, scalar_kind};
use crate::index::Expr;
use crate::index::layout::{combined_index, index};
use crate::plan::{self, Arch, DataType, Emitted, Operands, Plan, PlanError, Proof};
use crate::ptx::{Class, Kernel, ParamKind, Reg, module};
pub(super) use copy::{bits, put_together};
use copy::{copy_coordinates, global};
pub(super) use store::Bias;

/// The kernel's parameters, in order.
pub(super) fn parameters(plan: &MmaPlan) -> Vec<(&'static str, ParamKind)> {
    let scalar = scalar_kind(plan.data_type.scalar());
    let mut all: Vec<_> = ["A", "B"].map(|p| (p, ParamKind::Pointer)).into();
    if plan.partial() {
        all.push(("partial", ParamKind::Pointer));
        all.extend(["m", "n", "k", "lda", "ldb", "pitch", "chunk"].map(|p| (p, ParamKind::U32)));
        all.push(("alpha", scalar));
        return all;
    }
    all.push(("C", ParamKind::Pointer));
    if plan.variant.epilogue.bias != plan::Bias::None {
        all.push(("bias", ParamKind::Pointer));
    }
    all.extend(["m", "n", "k", "lda", "ldb", "ldc"].map(|p| (p, ParamKind::U32)));
    all.extend(["alpha", "beta"].map(|p| (p, scalar)));
    if plan.variant.depth == Depth::Batch {
        all.extend(["strideA", "strideB", "strideC"].map(|p| (p, ParamKind::U32)));
    }
    all
}

/// The name of the kernel's entry.
pub(super) fn entry_name(plan: MmaPlan, operands: Operands) -> String {
    let variant = plan.variant.suffix(plan.data_type);
    format!("{}_{operands}{variant}", plan.name().replace('-', "_"))
}

/// Writes the module: the kernel, and those that come before and after it.
pub(super) fn emit(
    plan: MmaPlan,
    operands: Operands,
    arch: Arch,
    proof: Proof,
) -> Result<Emitted, PlanError> {
    let maps = plan.maps(operands)?;
    let entry = entry_name(plan, operands);
    let mut k = Kernel::new(&entry);
    describe(&mut k, plan, operands, &maps, &proof)?;
    let threads = plan.thread_count();
    k.directive(format!(".maxntid {threads}, 1, 1"));
    k.directive(format!(".minnctapersm {}", plan.blocks_per_sm(&maps)));

    let mut g = Gemm::new(&mut k, plan, &maps)?;
    g.one_by_one = plan.multiplies_one_by_one(arch);
    let done = g.k.label("done");
    // The last group of rows may reach beyond C: a block there has nothing to do.
    let outside = g.outside;
    g.k.branch(Some(outside.into()), &done, true);
    let acc = g.accumulators();
    g.fill()?;
    g.main_loop(&acc)?;
    g.k.open_fresh_region();
    g.epilogue(&acc)?;
    g.k.close_region();
    g.k.place(&done);
    g.k.ins("ret");

    let mut kernels = pack::kernels(&plan, operands)?;
    kernels.push(k);
    if plan.partial() {
        kernels.push(reduce::kernel(&plan, operands)?);
    }
    let address_registers = kernels.iter().map(Kernel::addresses).collect();
    let ptx = module(kernels, plan.ptx_version(arch), &arch.to_string());
    Ok(Emitted {
        ptx,
        kernel: entry,
        proof,
        address_registers,
    })
}

/// The comment above the kernel: what it computes, its layouts, what they cost.
fn describe(
    k: &mut Kernel,
    plan: MmaPlan,
    operands: Operands,
    maps: &Maps,
    proof: &Proof,
) -> Result<(), PlanError> {
    k.describe(format!(
        "{}: C = alpha op(A) op(B) + beta C, {}, row-major, {operands}",
        plan.name(),
        plan.data_type
    ));
    k.describe(format!(
        "stages {}, {} k each; warps {}x{}; {}",
        plan.stages,
        plan.depth,
        plan.warps.0,
        plan.warps.1,
        plan.instruction().name
    ));
    k.describe(plan.variant.to_string());
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<40} {}", l.name, l.layout, l.meaning));
    }
    for a in &proof.accesses {
        k.describe(format!(
            "{:>10}   {}: {} wavefronts, ideal {}",
            a.access, a.op, a.wavefronts, a.ideal
        ));
    }
    let staged = maps.staging.bytes() * plan.warps.0 * plan.warps.1;
    k.describe(format!(
        "shared memory: {} bytes of stages, {staged} of staging in their place",
        plan.stages * (maps.a.stage_bytes() + maps.b.stage_bytes())
    ));
    Ok(())
}

impl MmaPlan {
    /// Blocks that share a multiprocessor: as many as registers and shared memory of the smallest architecture allow.
    fn blocks_per_sm(&self, maps: &Maps) -> i64 {
        let (wm, wn) = (self.tile.0 / self.warps.0, self.tile.1 / self.warps.1);
        let scalars = i64::from(self.data_type.scalar().bytes()) / 4;
        let accumulators = wm * wn / 32 * scalars;
        // A multiprocessor has 65,536 registers; f64 fragments take twice the registers of others.
        // 8-bit operands are put together from single bytes where k is not contiguous, and 8-bit floats are widened to f16 where the
        // hardware does not multiply them: both take registers. So do the addresses of narrow copies.
        let bytes = self.data_type.bytes() == 1;
        let narrow = self.variant.copies.iter().any(|&c| c < 16) || self.arch < 80;
        let heavy = accumulators >= 128 || maps.atom.c_type == Scalar::F64 || bytes || narrow;
        let threads = match (heavy, accumulators) {
            (true, _) => 256,
            (false, 64..) => 384,
            (false, _) => 512,
        };
        let by_registers = threads / self.thread_count();
        by_registers.max(1)
    }

    /// A barrier of the warp stands before each product, so that the assembler does not read fragments far ahead of it.
    ///
    /// `sm_90` and `sm_100` have no products of 8-bit floats by `mma.sync`: the assembler widens both factors to f16, and reads so far
    /// ahead that, with two k steps or more a stage, it spills what narrow copies need; on `sm_100` what a batch or split sums need as well.
    fn multiplies_one_by_one(&self, arch: Arch) -> bool {
        let narrow = self.variant.copies.iter().any(|&c| c < 4);
        let layers = self.variant.depth != Depth::Groups;
        self.is_widened()
            && self.depth > 32
            && match arch.0 {
                90 => narrow,
                100 => narrow || layers,
                _ => false,
            }
    }

    /// The lowest PTX version that has the instructions: 7.0 for `cp.async` and `mma.sync` of `sm_80`, 7.8 for f64 on `sm_90`, 8.4 for
    /// 8-bit floats.
    fn ptx_version(&self, arch: Arch) -> &'static str {
        let own = arch.ptx_version();
        let needs = match self.data_type {
            DataType::E4m3 | DataType::E5m2 => "8.4",
            DataType::F64 if self.arch >= 90 => "7.8",
            _ if self.arch < 80 => "6.5",
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
    /// The tile's rows and columns of C.
    extents: [Extent; 2],
    m: Expr,
    n: Expr,
    /// C, or this block's partial sums, and its leading dimension.
    c: Expr,
    ldc: Expr,
    bias: Bias,
    /// Length of the sums, of this block's part of them; 0 if alpha is 0, so that A and B are not read.
    depth: Expr,
    /// This block has nothing to do.
    outside: Reg,
    /// Every row of both tiles can be read.
    inside: Reg,
    /// How sums become C; none for partial sums.
    finish: Option<Finish>,
    stage_bytes: i64,
    /// The assembler may not move reads of fragments over products.
    one_by_one: bool,
}

/// Fragments of one k step: A by rows of atoms, B by columns.
struct Fragments {
    a: Vec<Vec<Reg>>,
    b: Vec<Vec<Reg>>,
}

impl<'a> Gemm<'a> {
    fn new(k: &'a mut Kernel, plan: MmaPlan, maps: &'a Maps) -> Result<Self, PlanError> {
        let hi = LIMIT as i64;
        let partial = plan.partial();
        let [a, b] = ["A", "B"].map(|p| k.param_pointer(p));
        let c = k.param_pointer(if partial { "partial" } else { "C" });
        let bias = (!partial && plan.variant.epilogue.bias != plan::Bias::None)
            .then(|| k.param_pointer("bias"));
        let [m, n, whole_depth, lda, ldb] =
            ["m", "n", "k", "lda", "ldb"].map(|p| k.param_u32(p, hi));
        let ldc = k.param_u32(if partial { "pitch" } else { "ldc" }, hi);
        let chunk = partial.then(|| k.param_u32("chunk", hi));
        let scalar = plan.data_type.scalar();
        let (finish, no_product) = if partial {
            let alpha = k.param_scalar("alpha", scalar_kind(scalar));
            let zero = scalar_text(scalar).2;
            let none = match scalar {
                plan::Element::S32 => k.compare_register("eq", alpha, 0),
                _ => k.compare_float("eq", alpha, zero),
            };
            (None, none)
        } else {
            let finish = Finish::new(k, &plan);
            let none = finish.no_product(k);
            (Some(finish), none)
        };
        let smem = k.dynamic_shared_memory(1024);
        let threads = plan.thread_count();
        let tid = k.special("%tid.x", threads - 1);
        let lane = k.pool.rem(tid, 32);
        let warp = k.pool.shr(tid, 5);
        let grid = Layout::flat(&[plan.warps.0, plan.warps.1], &[1, 0])?;
        let warp_row = index(&mut k.pool, &grid, &[warp])?;
        let grid = Layout::flat(&[plan.warps.0, plan.warps.1], &[0, 1])?;
        let warp_col = index(&mut k.pool, &grid, &[warp])?;

        let origin = Origin::new(k, plan, (whole_depth, chunk))?;
        let (row0, col0) = (origin.row, origin.col);
        let [a, b, c] = origin.matrices(k, maps, (m, ldc), [a, b, c])?;
        let zero = k.pool.constant(0);
        let depth = k.select("depth", no_product, zero, origin.depth);
        let (tm, tn) = plan.tile;
        let packed = |i: usize, o: &OperandMaps| plan.variant.pack[i].is_some() && !o.k_major;
        let across = |o: &OperandMaps| if o.k_major { 1 } else { o.vector };
        let outside = k.compare("ge", row0, m);
        let rows = Extent {
            name: "row",
            origin: row0,
            tile: tm,
            // Rows of a copied operand are zeros up to its pitch.
            size: if packed(0, &maps.a) { lda } else { m },
            multiple: across(&maps.a),
        };
        let cols = Extent {
            name: "col",
            origin: col0,
            tile: tn,
            size: if packed(1, &maps.b) { ldb } else { n },
            multiple: across(&maps.b).max(maps.staging.vector),
        };
        let (row0, rows_inside) = rows.moved_back(k, "");
        let (col0, cols_inside) = cols.moved_back(k, "");
        let [rows_inside, cols_inside] =
            [rows_inside, cols_inside].map(|[whole, movable]| k.combine("or", whole, movable, 0));
        let inside = k.combine("and", rows_inside, cols_inside, 0);

        let stage_a = maps.a.stage_bytes();
        let first_k = origin.k;
        // Of split sums: where k is contiguous in both operands and a thread has this many sums, its operands are moved to the part's
        // first k once, as those of a batch are. To add it in each copy takes registers that `sm_80` does not have.
        let moved_once =
            partial && maps.a.k_major && maps.b.k_major && plan.sums_of_a_thread() >= 128;
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
            let (ptr, first_k) = if moved_once {
                let first = global(&mut k.pool, maps, ld, zero, first_k)?;
                let ptr = k.pool.add(ptr, first);
                (k.pool.pin(ptr), zero)
            } else {
                (ptr, first_k)
            };
            let (row, col) = copy_coordinates(&mut k.pool, maps, tid, zero)?;
            let (row, col) = if maps.k_major {
                (k.pool.add(origin, row), k.pool.add(first_k, col))
            } else {
                (k.pool.add(first_k, row), k.pool.add(origin, col))
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
            extents: [rows, cols],
            m,
            n,
            c,
            ldc,
            bias: Bias::new(&plan.variant, bias),
            depth,
            outside,
            inside,
            finish,
            stage_bytes,
            one_by_one: false,
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

    /// Accumulators: atoms by rows and columns, each the registers of one atom, set to 0.
    fn accumulators(&mut self) -> Vec<Vec<Vec<Reg>>> {
        let (rows, cols) = self.atoms();
        let each = self.maps.atom.registers()[2];
        let (class, suffix, zero) = match self.maps.atom.c_type {
            // Two sums in each register.
            Scalar::F16 => (Class::B32, "b32", "0"),
            _ => scalar_text(self.plan.data_type.scalar()),
        };
        self.k.comment(format!(
            "acc: {rows} x {cols} atoms of {each} registers a thread"
        ));
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
}

/// One direction of a block's tile in C.
struct Extent {
    /// The variable's name.
    name: &'static str,
    origin: Expr,
    tile: i64,
    /// Rows or columns that can be read.
    size: Expr,
    /// What a tile's place and its size must be multiples of, so that copies and stores stay aligned.
    multiple: i64,
}

impl Extent {
    /// Where the tile is computed, and the two reasons why all of it can be read there: it is whole where it is, or it was moved. The last
    /// tile is moved back until it ends with C, so that its copies need no predicates; what another block owns is not stored. Where that is
    /// not possible it stays.
    ///
    /// `end` is added to the variables' names: the end of the kernel computes them once more, so that they are not kept for it.
    fn moved_back(&self, k: &mut Kernel, end: &str) -> (Expr, [Reg; 2]) {
        let tile = k.pool.constant(self.tile);
        let last = k.pool.add(self.origin, tile);
        let whole = k.compare("le", last, self.size);
        let large = k.compare("ge", self.size, tile);
        let movable = if self.multiple == 1 {
            large
        } else {
            let rest = k.pool.and(self.size, (self.multiple - 1) as u64);
            let zero = k.pool.constant(0);
            let aligned = k.compare("eq", rest, zero);
            k.combine("and", large, aligned, 0)
        };
        let back = k.pool.sub(self.size, tile);
        let name = |what: &str| format!("{}{what}{end}", self.name);
        // Below 0 it is not taken.
        let back = k.bounded(&name("_back"), back, LIMIT as i64);
        let back = k.select(&name("_if"), movable, back, self.origin);
        let first = k.select(&name(""), whole, self.origin, back);
        (first, [whole, movable])
    }
}

/// Where a block begins: in C, and along k.
struct Origin {
    row: Expr,
    col: Expr,
    /// The first product of this block's sums.
    k: Expr,
    /// How many there are.
    depth: Expr,
    /// Which product of a batch, or which part of the sums.
    layer: Option<Expr>,
    layers: Depth,
}

impl Origin {
    fn new(
        k: &mut Kernel,
        plan: MmaPlan,
        (depth, chunk): (Expr, Option<Expr>),
    ) -> Result<Self, PlanError> {
        let hi = LIMIT as i64;
        let (tm, tn) = plan.tile;
        let zero = k.pool.constant(0);
        let by = k.special("%ctaid.y", 65_534);
        let col = index(&mut k.pool, &Layout::mode(1, tn)?, &[by])?;
        let layers = plan.variant.depth;
        if layers == Depth::Groups {
            // Blocks run down a group of rows, then across the columns, then to the next group.
            let bx = k.special("%ctaid.x", GROUP as i64 - 1);
            let bz = k.special("%ctaid.z", (hi / tm / GROUP as i64).min(65_534));
            let group = Layout::flat(&[GROUP as i64, 1], &[tm, tm * GROUP as i64])?;
            let row = index(&mut k.pool, &group, &[bx, bz])?;
            return Ok(Self {
                row,
                col,
                k: zero,
                depth,
                layer: None,
                layers,
            });
        }
        let bx = k.special("%ctaid.x", hi / tm);
        let bz = k.special("%ctaid.z", 65_534);
        let row = index(&mut k.pool, &Layout::mode(1, tm)?, &[bx])?;
        let (first, depth) = match chunk {
            None => (zero, depth),
            Some(chunk) => {
                // The launch has no part that begins after the last product.
                let unit = Layout::mode(1, 1)?;
                let first = combined_index(&mut k.pool, &[(Some(chunk), unit)], &[bz])?;
                let first = k.bounded("first_k", first, hi);
                let left = k.pool.sub(depth, first);
                let left = k.bounded("left_k", left, hi);
                let last = k.compare("lt", left, chunk);
                (first, k.select("part_k", last, left, chunk))
            }
        };
        Ok(Self {
            row,
            col,
            k: first,
            depth,
            layer: Some(bz),
            layers,
        })
    }

    /// This layer's A, B and C (or partial sums, of m rows).
    fn matrices(
        &self,
        k: &mut Kernel,
        maps: &Maps,
        (m, ldc): (Expr, Expr),
        [a, b, c]: [Expr; 3],
    ) -> Result<[Expr; 3], PlanError> {
        let Some(layer) = self.layer else {
            return Ok([a, b, c]);
        };
        let moved = |k: &mut Kernel, base, stride, bytes| -> Result<Expr, PlanError> {
            let unit = Layout::mode(1, bytes)?;
            let distance = combined_index(&mut k.pool, &[(Some(stride), unit)], &[layer])?;
            let at = k.pool.add(base, distance);
            Ok(k.pool.pin(at))
        };
        if let Depth::Split(_) = self.layers {
            let rows = combined_index(&mut k.pool, &[(Some(ldc), Layout::mode(1, 1)?)], &[m])?;
            let bytes = maps.staging.bytes;
            return Ok([a, b, moved(k, c, rows, bytes)?]);
        }
        let [sa, sb, sc] =
            ["strideA", "strideB", "strideC"].map(|p| k.param_u32(p, i64::from(u32::MAX)));
        Ok([
            moved(k, a, sa, maps.a.bytes)?,
            moved(k, b, sb, maps.b.bytes)?,
            moved(k, c, sc, maps.c_bytes)?,
        ])
    }
}
