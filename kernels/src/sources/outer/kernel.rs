//! The kernel of an outer-product plan, from its maps: read from top to bottom it is the kernel from entry to exit.
//!
//! ```text
//! tile 0: global -> registers -> stage 0
//! main loop, two tiles a turn, every tile whole:   for stage s in 0, 1:
//!     next tile: global -> registers | 8 outer products from stage s | next tile: registers -> stage 1 - s | barrier
//! rest, a tile a turn:   8 outer products from stage 0 | barrier | next tile -> stage 0, each element with its own predicate and zeros outside | barrier
//! epilogue: vectors of sums -> C
//! ```
//!
//! Stages are unrolled, so that each is an immediate; addresses in global memory advance once a turn; and the main loop has no branch. Nothing
//! in it is special to NVIDIA: loads, stores, fused multiply-adds and one barrier a tile.

mod load;
mod multiply;
mod store;
use std::rc::Rc;

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Addresses, Class, Extent, Instructions, Logic, Reg, Role, Src, Stride, Type,
};
use layout_codegen::ir::{Cmp, Entry, Kernel};
use layout_codegen::view::View;
use layout_core::Layout;

use super::OuterProduct;
use super::maps::{DEPTH, Maps, STAGES, TILE};
use super::side::Side;
use crate::gemm::epilogue::{self, End, Finish, Types, scalar_type};
use crate::gemm::one_kernel::{OneKernel as _, output};
use crate::gemm::scheduler::TileSchedule;
use crate::gemm::{LIMIT, Operands, PlanError};

/// The kernel.
pub(super) fn entry(
    plan: OuterProduct,
    name: &str,
    finish: &dyn Finish,
    operands: Operands,
) -> Result<Entry, PlanError> {
    let maps = plan.maps()?;
    let mut k = Kernel::new(name, plan.threads());
    k.describe(format!(
        "{plan}: C = alpha op(A) op(B) + beta C, {}, row-major, {operands}",
        plan.data_type()
    ));
    for l in plan.layouts(operands)? {
        k.describe(format!("{:>10} = {:<36} {}", l.name, l.layout, l.meaning));
    }
    k.blocks_per_multiprocessor(plan.blocks());

    let mut g = Gemm::new(&mut k, plan, &maps, finish, operands)?;
    let acc = g.accumulators();
    g.first_tile()?;
    g.main_loop(&acc)?;
    g.k.open_fresh_region();
    g.epilogue(&acc)?;
    g.k.close_region();
    Ok(k.finish())
}

/// One operand in the kernel.
struct Operand {
    side: Side,
    /// The side's index is contiguous in memory.
    along: bool,
    /// The operand from this thread's first element in the first tile along k.
    corner: View,
    /// Its part of the stages, from where this thread stores: (side, k, stage, first k of the tile).
    stores: View,
    /// The same from where this thread reads.
    reads: View,
    /// Elements from this thread's first one to the edge of the matrix, along the side.
    left: Expr,
    /// k of this thread's first element in a tile.
    step: Expr,
    /// All of the tile's side is inside, and vectors are aligned.
    whole: Reg,
}

/// Where an operand is: its address, its leading dimension, its part of C's rows or columns.
struct Source {
    base: Expr,
    ld: Expr,
    /// The first row or column of the tile, and how many there are in all.
    origin: Expr,
    extent: Expr,
}

/// What the parts of the kernel share.
struct Gemm<'a> {
    k: &'a mut Kernel,
    maps: &'a Maps,
    tid: Expr,
    /// Class, type and zero of an element.
    element: (Class, Type, Src),
    /// x and y.
    operands: [Operand; 2],
    /// First row and column of C of this block.
    row0: Expr,
    col0: Expr,
    m: Expr,
    n: Expr,
    c: View,
    ldc: Expr,
    /// Length of the sums; 0 without a product, and for a block without rows, so that A and B are not read.
    depth: Expr,
    end: Rc<End<'a>>,
}

impl<'a> Gemm<'a> {
    fn new(
        k: &'a mut Kernel,
        plan: OuterProduct,
        maps: &'a Maps,
        finish: &'a dyn Finish,
        operands: Operands,
    ) -> Result<Self, PlanError> {
        let hi = LIMIT as i64;
        let [a, b, c] = ["A", "B", "C"].map(|p| k.param_pointer(p));
        let inputs = epilogue::pointers(finish);
        let inputs: Vec<_> = inputs.iter().map(|p| k.param_pointer(&p.0)).collect();
        let [m, n, depth, lda, ldb, ldc] =
            ["m", "n", "k", "lda", "ldb", "ldc"].map(|p| k.param_u32(p, hi));
        let sum = plan.data_type().accumulator();
        let types = Types {
            sum,
            scalar: finish.computes_in(plan.data_type()),
            output: output(plan.data_type(), finish),
            packs: false,
        };
        let end = End::new(k, finish, types, &inputs, [m, n].map(Extent::Value))?;
        let zero = k.constant(0);
        let depth = match end.no_product(k) {
            Some(no_product) => k.select(no_product, zero, depth),
            None => depth,
        };
        k.reserve_shared(maps.shared_bytes() as u64, 1024, false);
        let tid = k.thread();
        let tile = TileSchedule::Groups.tile(k, [m, n], (TILE, TILE))?;
        let (row0, col0) = (tile.row, tile.col);
        // The last group of rows may reach beyond C. A block there has empty sums and nothing to store; it does not leave, since OpenCL's
        // barriers are met by all threads, and not every compiler gets a barrier in a branch right.
        let outside = k.compare(Cmp::Ge, row0, m);
        let depth = k.select(outside, zero, depth);
        let x = Source {
            base: b,
            ld: ldb,
            origin: col0,
            extent: n,
        };
        let y = Source {
            base: a,
            ld: lda,
            origin: row0,
            extent: m,
        };
        let along = Side::ALL.map(|side| side.is_along(operands));
        let operands = [
            Operand::new(k, maps, (Side::X, along[0]), &x, (tid, depth))?,
            Operand::new(k, maps, (Side::Y, along[1]), &y, (tid, depth))?,
        ];
        let extents = vec![Extent::Value(m), Extent::Value(n)];
        let strides = vec![Stride::Value(ldc), Stride::Fixed(1)];
        let bytes = types.output.bytes().into();
        Ok(Self {
            c: k.launch_global("C", c, bytes, extents, strides, Role::Output),
            k,
            maps,
            tid,
            element: scalar_type(sum),
            operands,
            row0,
            col0,
            m,
            n,
            ldc,
            depth,
            end: Rc::new(end),
        })
    }
}

impl Operand {
    fn new(
        k: &mut Kernel,
        maps: &Maps,
        (side, along): (Side, bool),
        from: &Source,
        (tid, depth): (Expr, Expr),
    ) -> Result<Self, PlanError> {
        let load = maps.load(along);
        let zero = k.constant(0);
        let [name, stages] = [["B", "stages.x"], ["A", "stages.y"]][side as usize];
        let (rows, cols) = if along {
            (depth, from.extent)
        } else {
            (from.extent, depth)
        };
        let extents = vec![Extent::Value(rows), Extent::Value(cols)];
        let strides = vec![Stride::Value(from.ld), Stride::Fixed(1)];
        let view = k.launch_global(name, from.base, maps.bytes, extents, strides, Role::Input);
        let (first, step) = coordinates(k, &load.tv, tid, zero)?;
        let at = k.add(from.origin, first);
        let corner = view.moved(k, &place(along, at, step))?.pinned(k);

        // The last mode says which tile along k a stage holds, by its first k; it has no stride.
        let shape = [TILE, DEPTH, STAGES, LIMIT as i64].map(Extent::Fixed);
        let [operand, stage] = maps.apart;
        let offset = operand * side as i64;
        let outer = vec![stage, 0];
        let stages = k.shared_at(
            stages,
            maps.bytes,
            maps.stage.into(),
            offset,
            shape.into(),
            outer,
        );
        let width = k.constant(TILE);
        let last = k.add(from.origin, width);
        let mut whole = k.compare(Cmp::Le, last, from.extent);
        if load.loaded > 1 {
            let low = k.rem(from.base, load.loaded * maps.bytes);
            let low_ld = k.rem(from.ld, load.loaded);
            for low in [low, low_ld] {
                let aligned = k.compare(Cmp::Eq, low, zero);
                whole = k.combine(Logic::And, whole, aligned, 0);
            }
        }
        Ok(Self {
            side,
            along,
            corner,
            stores: stages.at_index(k, &load.tv.get(0)?, &[tid])?,
            reads: stages.at_index(k, &maps.first(side)?, &[tid])?,
            left: k.sub(from.extent, at),
            step,
            whole,
        })
    }
}

/// Coordinates in the operand's memory, whose rows run along its side or along k.
fn place(along: bool, side: Expr, step: Expr) -> [Expr; 2] {
    if along { [step, side] } else { [side, step] }
}

/// The side and the k index of a value of a thread, in the tile.
fn coordinates(
    k: &mut Kernel,
    tv: &Layout,
    thread: Expr,
    value: Expr,
) -> Result<(Expr, Expr), PlanError> {
    let side = Layout::flat(&[TILE, DEPTH], &[1, 0])?.compose(tv)?;
    let step = Layout::flat(&[TILE, DEPTH], &[0, 1])?.compose(tv)?;
    Ok((
        k.index(&side, &[thread, value])?,
        k.index(&step, &[thread, value])?,
    ))
}
