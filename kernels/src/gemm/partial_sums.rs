//! Partial sums to C: the second kernel of split sums.
//!
//! The parts are added in their order, so that the result is the same in every run; then comes the epilogue as in any other kernel.
//!
//! ```text
//! partial   (part, row, column) : (m·pitch, pitch, 1)      pitch: n rounded up to 16 bytes
//! block     (row, c)            : a thread has one vector of columns
//! ```
//!
//! An iteration of the loop reads several parts at once, 0 for those that are not there: with one load in flight a thread waits for the cache as often as there
//! are parts, which takes longer than the bytes do.

use layout_codegen::ir::instructions::{
    Addresses, Binary, Cache, Extent, Instructions, Pred, Role, Stride,
};
use layout_codegen::ir::{Axis, Cmp, Kernel, ParamKind};
use layout_core::Layout;

use super::epilogue::{self, End, Finish, Place, Types, arithmetic, scalar_type};
use super::scheduler::GRID_YZ;
use super::{Argument, Gemm, LIMIT, Launch, Limit, PlanError, ProblemError};

/// Threads of a block.
const THREADS: u32 = 128;

/// The partial sums of a product, and how they become C.
pub(crate) struct PartialSums<'a> {
    /// The name of the product's entry.
    pub(crate) product: String,
    /// Bytes of one store of C.
    pub(crate) store: i64,
    pub(crate) types: Types,
    pub(crate) finish: &'a dyn Finish,
    /// The product's kernel has multiplied the sums with the epilogue's factor.
    pub(crate) scaled: bool,
    /// Parts that a thread reads at once.
    pub(crate) together: i64,
    /// It is launched while the product still runs, and waits for it itself: `sm_90` has the instruction.
    pub(crate) chained: bool,
}

impl PartialSums<'_> {
    /// The parameters, in order.
    pub(crate) fn parameters(&self) -> Vec<(String, ParamKind)> {
        let named = |(name, kind): (&str, ParamKind)| (name.to_owned(), kind);
        let mut all: Vec<_> = ["partial", "C"]
            .map(|p| named((p, ParamKind::Pointer)))
            .into();
        all.extend(epilogue::pointers(self.finish));
        all.extend(["m", "n", "parts", "pitch", "ldc"].map(|p| named((p, ParamKind::U32))));
        all.extend(epilogue::values(self.finish, self.types.scalar));
        all
    }

    /// Elements of a row of partial sums.
    pub(crate) fn pitch(&self, n: u64) -> u64 {
        n.next_multiple_of(16 / u64::from(self.types.sum.bytes()))
    }

    /// Elements of C that a thread has.
    fn vector(&self) -> i64 {
        let sums = 16 / i64::from(self.types.sum.bytes());
        (self.store / i64::from(self.types.output.bytes())).min(sums)
    }

    /// Columns of C that a block has.
    fn columns_of_a_block(&self) -> u64 {
        u64::from(THREADS) * self.vector() as u64
    }

    /// Checks that a grid has room for `n` columns.
    pub(crate) fn fits(&self, n: u64) -> Result<(), ProblemError> {
        Limit::Grid.at_most("n", n, GRID_YZ * self.columns_of_a_block())
    }

    /// The launch after the product's: rows along x, columns along y.
    pub(crate) fn launch(&self, problem: &Gemm, arguments: Vec<Argument>) -> Launch {
        let across = problem.n.div_ceil(self.columns_of_a_block());
        let grid = [problem.m as u32, across as u32, 1];
        Launch::single(self.entry_name(), grid, THREADS, 0, arguments)
    }

    fn entry_name(&self) -> String {
        format!("{}_reduce", self.product)
    }

    /// The kernel.
    pub(crate) fn kernel(&self) -> Result<Kernel, PlanError> {
        kernel(self)
    }
}

fn kernel(sums: &PartialSums<'_>) -> Result<Kernel, PlanError> {
    let (hi, types, finish) = (LIMIT as i64, sums.types, sums.finish);
    let name = sums.entry_name();
    let mut k = Kernel::new(&name, THREADS);
    k.describe(format!("{name}: partial sums to C"));
    if sums.chained {
        k.wait_for_grid();
    }
    let (partial, c) = (k.param_pointer("partial"), k.param_pointer("C"));
    let pointers = epilogue::pointers(finish);
    let inputs: Vec<_> = pointers.iter().map(|p| k.param_pointer(&p.0)).collect();
    let [m, n, parts, pitch, ldc] = [
        ("m", hi),
        ("n", hi),
        ("parts", GRID_YZ as i64),
        ("pitch", hi),
        ("ldc", hi),
    ]
    .map(|(p, hi)| k.param_u32(p, hi));
    let scalar = types.sum;
    // A block has a row: there are as many as m.
    let (rows, columns) = (Extent::Blocks(Axis::X), Extent::Value(n));
    let end = End::new(&mut k, finish, types, &inputs, [rows, columns])?;
    let (class, ty, zero) = scalar_type(scalar);
    let each = sums.vector();
    let row = k.block_index(Axis::X, LIMIT + 1);
    let across = k.block_index(Axis::Y, GRID_YZ);
    let tid = k.thread();
    let vectors = Layout::flat(&[i64::from(THREADS), 1], &[each, each * i64::from(THREADS)])?;
    let col = k.index(&vectors, &[tid, across])?;
    let unit = Stride::Fixed(1);
    let part = k.mul(m, pitch);
    let partial = k.launch_global(
        "partial",
        partial,
        scalar.bytes().into(),
        vec![Extent::Value(parts), rows, Extent::Value(pitch)],
        vec![Stride::Value(part), Stride::Value(pitch), unit],
        Role::Input,
    );
    let bytes = types.output.bytes().into();
    let strides = vec![Stride::Value(ldc), unit];
    let c = k.launch_global("C", c, bytes, vec![rows, columns], strides, Role::Output);
    k.launch_keeps(n, pitch);
    k.launch_tiles(across, n, each * i64::from(THREADS));
    k.rows_aligned(&partial, 16);
    k.rows_aligned(&c, sums.store);
    let source = partial.moved(&mut k, &[row, col])?;
    let target = c.moved(&mut k, &[row, col])?.pinned(&mut k);

    let totals = k.regs(class, each as usize);
    for s in &totals {
        k.set(ty, *s, zero);
    }
    let left = k.sub(n, col);
    let inside = k.compare_here(Cmp::Gt, left, 0, None);
    k.exit(Pred::from(inside).not(), false);
    let together = sums.together;
    let iteration = k.open_loop("part", 0, together, GRID_YZ as i64 + together - 1);
    let nothing = zero;
    let zero = k.constant(0);
    let rest = k.sub(parts, iteration.counter);
    let mut all = Vec::new();
    for i in 0..together {
        let ahead = k.constant(i);
        let part = k.add(iteration.counter, ahead);
        let at = source.moved(&mut k, &[part, zero, zero])?;
        let at = at.element(&mut k, &[])?;
        let terms = k.regs(class, each as usize);
        // The first is there.
        let there = (i > 0).then(|| k.compare_here(Cmp::Gt, rest, i, None));
        if there.is_some() {
            for &t in &terms {
                k.set(ty, t, nothing);
            }
        }
        k.load(there.map(Pred::from), Cache::Coherent, ty, &terms, at);
        all.push(terms);
    }
    for terms in all {
        for (s, t) in totals.iter().zip(&terms) {
            k.binary(Binary::Add, arithmetic(ty), *s, *s, *t);
        }
    }
    k.close_loop(&iteration, parts);

    let targets = Place::targets(&mut k, &target, (zero, zero), each)?;
    let whole = (each > 1).then(|| k.compare_here(Cmp::Ge, left, each, None));
    let mut loaded = end.load_columns(&mut k, col, left, each)?;
    end.load_rows(&mut k, row, None, &mut loaded)?;
    let matrices = end.matrices(&mut k, (row, col))?;
    let place = Place {
        at: (row, col),
        targets,
        matrices: &matrices,
        by: (zero, zero),
        row: inside,
        whole,
        left,
    };
    let finished = if sums.scaled {
        totals
    } else {
        end.scaled(&mut k, &totals)
    };
    end.update(&mut k, [&finished, &[]], &loaded, &place)?;
    Ok(k)
}
