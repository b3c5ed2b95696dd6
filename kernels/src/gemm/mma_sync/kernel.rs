//! The kernel of the family, read from top to bottom from its entry to its exit.

mod assembler;
mod copy;
mod fragment;
mod lane;
mod multiply;
mod origin;
mod parameters;
mod store;
mod straight;
mod swapped;
mod tiles;
mod warpgroups;
use std::rc::Rc;

use layout_codegen::Arch;
use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{Addresses, Extent, Instructions, Logic, MapHandle, Reg};
use layout_codegen::ir::{Axis, Cmp, Entry, Kernel};
use layout_codegen::view::View;
use layout_core::{Layout, TensorBox};

use super::cluster::Portion;
use super::maps::Maps;
use super::operand::OperandMaps;
use crate::gemm::edges::Span;
use crate::gemm::epilogue::{self, End};
use crate::gemm::{DataType, Operands, PlanError, Specialized, scalar_kind};
use copy::copy_coordinates;
use origin::Origin;
pub(super) use parameters::parameters;

/// The kernels of the module: the product, and those that come before and after it.
pub(super) fn entries(
    plan: &Specialized,
    operands: Operands,
    arch: Arch,
) -> Result<Vec<Entry>, PlanError> {
    let maps = plan.maps(operands)?;
    let entry = plan.entry_name(operands);
    let mut k = Kernel::new(&entry, plan.threads());
    k.launch_clusters(plan.cluster_of_grid());
    describe(&mut k, plan, operands, &maps)?;
    // One block a multiprocessor needs no directive; but with one, ptxas 13.0 spills in the f64 128x128 kernel, and without, in others.
    let blocks = plan.blocks_per_sm(&maps, arch) as u32;
    if blocks > 1 || plan.data_type != DataType::F64 {
        k.blocks_per_multiprocessor(blocks);
    }

    let mut g = Gemm::new(&mut k, plan, &maps)?;
    g.one_by_one = plan.multiplies_one_by_one(arch);
    if !plan.scheduler.is_persistent() {
        // The last group of rows may reach beyond C: a cluster there has nothing to do.
        g.k.exit(g.outside, true);
    }
    if plan.is_wgmma() {
        g.by_warpgroups()?;
    } else {
        let acc = g.accumulators();
        g.fill()?;
        g.main_loop(&acc)?;
        g.k.open_fresh_region();
        g.epilogue(&acc)?;
        g.k.close_region();
    }

    let mut kernels = plan.packing(operands).kernels(operands)?;
    kernels.push(k);
    if plan.partial() {
        kernels.push(plan.partial_sums(operands).kernel()?);
    }
    Ok(kernels.into_iter().map(Kernel::finish).collect())
}

/// The comment above the kernel: what it computes, its layouts, what they cost.
fn describe(
    k: &mut Kernel,
    plan: &Specialized,
    operands: Operands,
    maps: &Maps,
) -> Result<(), PlanError> {
    k.describe(format!(
        "{}: C = alpha op(A) op(B) + beta C, {}, row-major, {operands}",
        plan.name(),
        plan.data_type
    ));
    let instruction = if plan.is_wgmma() {
        plan.product_name(maps)?
    } else {
        plan.instruction_atom().name.to_owned()
    };
    k.describe(format!(
        "stages {}, {} k each; warps {}x{}; {instruction}",
        plan.stages_of(maps),
        plan.depth(),
        plan.warp_grid().0,
        plan.warp_grid().1,
    ));
    k.describe(plan.variant.to_string());
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<40} {}", l.name, l.layout, l.meaning));
    }
    let staged = plan.staging_bytes(maps);
    k.describe(format!(
        "shared memory: {} bytes of stages, {staged} of the epilogue in their place",
        plan.stages_of(maps) * plan.stage_bytes(maps)
    ));
    Ok(())
}

/// One operand in the kernel.
struct Side<'a> {
    maps: &'a OperandMaps,
    is_a: bool,
    tag: &'static str,
    read_tag: &'static str,
    /// First row or column of C of this block, and how many there are in all.
    origin: Expr,
    extent: Expr,
    /// The operand from this thread's first element in the first tile along k.
    corner: View,
    /// The same at the loop's counter, in a loop that carries its address.
    carried: Option<View>,
    /// Its stages: (row, column, stage, first k of the tile).
    stages: View,
    /// Its tensor map, and what of a stage this block copies by it, if copies are by TMA.
    map: Option<(MapHandle, Portion)>,
}

struct Gemm<'a> {
    k: &'a mut Kernel,
    plan: &'a Specialized,
    maps: &'a Maps,
    /// A, B and, in a dual product, B2.
    sides: Vec<Side<'a>>,
    tid: Expr,
    lane: Expr,
    /// Row and column of the warp in the grid of warps.
    warp: (Expr, Expr),
    /// The tile's rows and columns of C.
    spans: [Span; 2],
    m: Expr,
    n: Expr,
    /// C, or this block's partial sums, and its leading dimension.
    c: View,
    ldc: Expr,
    /// Each warp's strip of C: (row, column, warp, strip); none where lanes store what they hold.
    staging: Option<View>,
    /// Length of the sums, of this block's part of them; 0 if alpha is 0, so that A and B are not read.
    depth: Expr,
    /// The first k of this block's part of the sums, and its layer of a batch.
    first_k: Expr,
    layer: Option<Expr>,
    /// The cluster has nothing to do.
    outside: Reg,
    /// Every row of both tiles can be read.
    inside: Reg,
    /// How sums become C; none for partial sums.
    end: Option<Rc<End<'a>>>,
    /// What partial sums are multiplied with, if there is such a factor.
    factor: Option<Reg>,
    /// The assembler may not move reads of fragments over products.
    one_by_one: bool,
}

/// Fragments of one k step: A by rows of atoms, B by columns, those of B2 after them.
struct Fragments {
    a: Vec<Vec<Reg>>,
    b: Vec<Vec<Reg>>,
}

impl<'a> Gemm<'a> {
    fn new(k: &'a mut Kernel, plan: &'a Specialized, maps: &'a Maps) -> Result<Self, PlanError> {
        let finish = plan.finish();
        let hi = plan.limit() as i64;
        let partial = plan.partial();
        // A tensor map has the address in it.
        let mut pointer = |name| {
            if plan.is_wgmma() {
                k.constant(0)
            } else {
                k.param_pointer(name)
            }
        };
        let [a, b] = ["A", "B"].map(&mut pointer);
        let b2 = (plan.variant.products == 2).then(|| pointer("B2"));
        let c = k.param_pointer(if partial { "partial" } else { "C" });
        let inputs = if partial {
            Vec::new()
        } else {
            epilogue::pointers(finish)
        };
        let inputs: Vec<_> = inputs.iter().map(|p| k.param_pointer(&p.0)).collect();
        let most = plan.most();
        let [m, n] = [("m", most[0]), ("n", most[1])].map(|(p, most)| k.param_u32(p, most));
        let [whole_depth, lda, ldb] = ["k", "lda", "ldb"].map(|p| k.param_u32(p, hi));
        let ldc = k.param_u32(if partial { "pitch" } else { "ldc" }, hi);
        let chunk = partial.then(|| k.param_u32("chunk", hi));
        let scalar = plan.scalar();
        let factor = finish.factor().filter(|_| partial);
        let factor = factor.map(|name| k.param_scalar(name, scalar_kind(scalar)));
        let (end, no_product) = if partial {
            (None, factor.map(|f| epilogue::is_zero(k, scalar, f)))
        } else {
            let extents = [m, n].map(Extent::Value);
            let end = End::new(k, finish, plan.types(), &inputs, extents)?;
            let none = end.no_product(k);
            (Some(Rc::new(end)), none)
        };
        k.reserve_shared(plan.shared_bytes_of(maps) as u64, 1024, true);
        let tid = k.thread();
        let lane = k.rem(tid, 32);
        let warp = k.div(tid, 32);
        let grid = Layout::flat(&[plan.warp_grid().0, plan.warp_grid().1], &[1, 0])?;
        let warp_row = k.index(&grid, &[warp])?;
        let grid = Layout::flat(&[plan.warp_grid().0, plan.warp_grid().1], &[0, 1])?;
        let warp_col = k.index(&grid, &[warp])?;

        let origin = Origin::new(k, plan, [m, n], (whole_depth, chunk))?;
        let (row0, col0) = (origin.row, origin.col);
        let all = origin::Operands {
            pointers: [a, b, c],
            b2,
            ld: [lda, ldb, ldc],
            m,
            n,
            k: whole_depth,
        };
        let ([a, b, c], b2) = origin.matrices(k, plan, maps, &all)?;
        let zero = k.constant(0);
        let depth = match no_product {
            Some(no_product) => k.select(no_product, zero, origin.depth),
            None => origin.depth,
        };
        let (tm, tn) = plan.tile_of_c();
        let packed = |i: usize, o: &OperandMaps| plan.variant.pack[i].is_some() && !o.k_major;
        let across = |o: &OperandMaps| if o.k_major { 1 } else { o.vector };
        // The blocks of a cluster leave together.
        let rank = k.cluster_rank(Axis::X)?;
        let above = k.scale(rank, tm);
        let first_of_cluster = k.sub(row0, above);
        let outside = k.compare(Cmp::Ge, first_of_cluster, m);
        let rows = Span {
            origin: row0,
            tile: tm,
            // Rows of a copied operand are zeros up to its pitch.
            size: if packed(0, &maps.a) { lda } else { m },
            multiple: across(&maps.a),
        };
        let cols = Span {
            origin: col0,
            tile: tn,
            size: if packed(1, &maps.b) { ldb } else { n },
            multiple: across(&maps.b).max(maps.staging.vector),
        };
        let (row0, rows_inside) = rows.moved_back(k);
        let (col0, cols_inside) = cols.moved_back(k);
        let [rows_inside, cols_inside] = [rows_inside, cols_inside]
            .map(|[whole, movable]| k.combine(Logic::Or, whole, movable, 0));
        let inside = k.combine(Logic::And, rows_inside, cols_inside, 0);

        let first_k = origin.k;
        let stage_bytes = plan.stage_bytes(maps);
        // Of split sums: in FMA kernels, and where k is contiguous in both operands and a thread has this many sums, operands are moved to the part's
        // first k once, as those of a batch are. To add it in each copy takes registers that `sm_80` does not have.
        let moved_once = partial
            && (plan.is_fma()
                || (maps.a.k_major && maps.b.k_major && plan.sums_of_a_thread() >= 128));
        let stages = plan.stages_of(maps);
        let (a_bytes, b_bytes) = (maps.a.stage_bytes(), maps.b.stage_bytes());
        let mut side = |i: usize, maps: &'a OperandMaps, whole: View, origin, extent| {
            let (name, offset, tag, read_tag) = [
                ("sharedA", 0, "copyA", "readA"),
                ("sharedB", a_bytes, "copyB", "readB"),
                ("sharedB2", a_bytes + b_bytes, "copyB2", "readB2"),
            ][i];
            // The last mode says which tile along k a stage holds, by its first k; it has no stride.
            let shape = [maps.rows, maps.cols, stages, hi].map(Extent::Fixed);
            let map = if plan.is_wgmma() {
                let name = ["A", "B", "B2"][i];
                let of = TensorBox::of(&maps.derived, maps.bytes)?;
                let portion = plan.portion(maps, i == 0)?;
                let extents = [portion.rows, of.columns];
                let map = k.tensor_map(name, &whole, extents, of.swizzle_bytes);
                Some((map, portion))
            } else {
                None
            };
            let stages = k.shared_at(
                name,
                maps.bytes,
                maps.shared,
                offset,
                shape.into(),
                vec![stage_bytes, 0],
            );
            let zero = k.constant(0);
            let (row, col) = copy_coordinates(k, maps, tid, zero)?;
            let (whole, first_k) = if moved_once {
                let (down, across) = maps.place(zero, first_k);
                (whole.moved(k, &[down, across])?.pinned(k), zero)
            } else {
                (whole, first_k)
            };
            let (down, across) = maps.place(origin, first_k);
            let (row, col) = (k.add(down, row), k.add(across, col));
            Ok::<_, PlanError>(Side {
                maps,
                is_a: i == 0,
                tag,
                read_tag,
                origin,
                extent,
                corner: whole.moved(k, &[row, col])?.pinned(k),
                carried: None,
                stages,
                map,
            })
        };
        let mut sides = vec![side(0, &maps.a, a, row0, m)?, side(1, &maps.b, b, col0, n)?];
        if let Some(b2) = b2 {
            sides.push(side(2, &maps.b, b2, col0, n)?);
        }
        let st = &maps.staging;
        let warps = plan.warp_grid().0 * plan.warp_grid().1;
        // The same rows for each strip of the warp: a mode without a stride.
        let passes = plan.strips(st);
        let strips = [st.rows, st.cols, warps, passes].map(Extent::Fixed);
        // In the place of the stages, or behind them.
        let strip = vec![st.bytes(), 0];
        let at = plan.staging_at(maps);
        let staging = (!st.held)
            .then(|| k.shared_at("staging", st.bytes, st.shared, at, strips.into(), strip));
        Ok(Self {
            k,
            plan,
            maps,
            sides,
            tid,
            lane,
            warp: (warp_row, warp_col),
            spans: [rows, cols],
            m,
            n,
            c,
            ldc,
            staging,
            depth,
            first_k: origin.k,
            layer: origin.layer(),
            outside,
            inside,
            end,
            factor,
            one_by_one: false,
        })
    }

    /// Atoms of a warp along the rows and the columns of a product; of Cᵀ strips, and the atoms of each.
    fn atoms(&self) -> (i64, i64) {
        let (m, n) = self.plan.tile_of_c();
        let st = &self.maps.staging;
        if st.held {
            // One below the other, by strips.
            return (m / st.rows, st.rows / self.maps.atom.n);
        }
        (
            m / self.plan.warp_grid().0 / self.maps.atom.m,
            n / self.plan.warp_grid().1 / self.maps.atom.n,
        )
    }
}
