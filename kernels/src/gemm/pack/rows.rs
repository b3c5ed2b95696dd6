//! Row by row: a copy whose rows begin lines. Rows that are aligned to 16 bytes go in vectors ([`copy_vectors`]), others in words of pieces.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Addresses, Cache, Class, Extent, Instructions, Pred, Reg, Role, Stride, Type,
};
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::view::{Partition, View};
use layout_core::Layout;

use super::{THREADS, WORDS};
use crate::gemm::pieces::{bits, put_together};
use crate::gemm::{LIMIT, PlanError};

/// Row by row: `to[row·pitch + c] = from[row·ld + c]` for c below `cols`.
pub(crate) fn copy_rows(k: &mut Kernel, bytes: i64, width: i64) -> Result<(), PlanError> {
    let hi = LIMIT as i64;
    let (from, to) = (k.param_pointer("from"), k.param_pointer("to"));
    let [cols, ld, pitch] = ["cols", "ld", "pitch"].map(|p| k.param_u32(p, hi));
    let row = k.block_index(Axis::X, LIMIT + 1);
    let part = k.block_index(Axis::Y, 65_535);
    let tid = k.thread();
    let unit = width.max(4);
    // (thread, part) → this thread's first element, and the distance of its words.
    let each = unit / bytes;
    let first = Layout::flat(&[THREADS, 1], &[each, each * THREADS * WORDS])?;
    let col = k.index(&first, &[tid, part])?;
    // A block has a row: there are as many as the grid has blocks along x.
    k.launch_keeps(cols, pitch);
    k.launch_tiles(part, pitch, each * THREADS * WORDS);
    let mut matrix = |name, base, ld, cols, role| -> Result<View, PlanError> {
        let extents = vec![Extent::Blocks(Axis::X), Extent::Value(cols)];
        let strides = vec![Stride::Value(ld), Stride::Fixed(1)];
        let view = k.launch_global(name, base, bytes, extents, strides, role);
        k.rows_aligned(&view, if role == Role::Input { width } else { unit });
        Ok(view.moved(k, &[row, col])?.pinned(k))
    };
    let source = matrix("from", from, ld, cols, Role::Input)?;
    let target = matrix("to", to, pitch, pitch, Role::Output)?;
    let left = k.sub(cols, col);
    let room = k.sub(pitch, col);
    let words = Words {
        source,
        target,
        left,
        room,
        each,
        bytes,
    };
    // All of a thread's words are inside, or they are taken one element after the other.
    let last = (WORDS - 1) * THREADS * each + each;
    let whole = k.compare_here(Cmp::Ge, left, last, None);
    k.begin_if(whole, false);
    k.name_branch("single", "copied");
    words.copy(k, width / bytes, false)?;
    k.otherwise();
    words.copy(k, 1, true)?;
    k.end_if();
    Ok(())
}

/// Rows and columns that a block copies in vectors of 16 bytes: 64 threads have a kilobyte of a row, in four rows four times.
pub(crate) fn tile(element: Element) -> [i64; 2] {
    [16, 1024 / i64::from(element.bytes())]
}

/// `to[row·pitch + c] = from[row·ld + c]`, rows aligned to 16 bytes. What lies between a row's end and its pitch is left as it is: tensor maps end with the row.
pub(crate) fn copy_vectors(k: &mut Kernel, element: Element) -> Result<(), PlanError> {
    let (hi, bytes) = (LIMIT as i64, i64::from(element.bytes()));
    let (from, to) = (k.param_pointer("from"), k.param_pointer("to"));
    let [rows, cols, ld, pitch] = ["rows", "cols", "ld", "pitch"].map(|p| k.param_u32(p, hi));
    let [down, across] = tile(element);
    let i = k.block_index(Axis::X, (hi / down) as u64 + 1);
    let j = k.block_index(Axis::Y, 65_535);
    k.launch_tiles(i, rows, down);
    k.launch_tiles(j, cols, across);
    let v = 16 / bytes;
    // (thread, value) → row + 16·column
    let shares = Layout::tuple(&[
        Layout::flat(&[64, THREADS / 64], &[v * down, 1])?,
        Layout::flat(&[v, down * 64 / THREADS], &[down, THREADS / 64])?,
    ])?;
    let thread = k.thread();
    let mut vectors = |name: &str, base, ld, role| -> Result<Partition, PlanError> {
        let extents = vec![Extent::Value(rows), Extent::Value(cols)];
        let strides = vec![Stride::Value(ld), Stride::Fixed(1)];
        let view = k.launch_global(name, base, bytes, extents, strides, role);
        k.rows_aligned(&view, 16);
        let view = k.of_element(view, element);
        let own = view.tile(k, &[down, across], &[i, j])?;
        Ok(own.partition(k, &shares, thread)?.vectors(k, v)?)
    };
    let source = vectors("from", from, ld, Role::Input)?;
    let target = vectors("to", to, pitch, Role::Output)?;
    k.copy(&source, &target)?;
    Ok(())
}

/// A thread's words.
struct Words {
    /// The operand and the copy from its first element on.
    source: View,
    target: View,
    /// Elements from there to the end of the row, and of its copy.
    left: Expr,
    room: Expr,
    /// Elements that are stored at once.
    each: i64,
    /// Bytes of an element.
    bytes: i64,
}

impl Words {
    /// Loads all words in pieces of `piece` elements, and stores them; where `guarded`, only what is inside.
    fn copy(&self, k: &mut Kernel, piece: i64, guarded: bool) -> Result<(), PlanError> {
        let size = piece * self.bytes;
        let mut words = Vec::new();
        for j in 0..WORDS {
            let mut parts: Vec<Reg> = Vec::new();
            for p in (0..self.each).step_by(piece as usize) {
                let element = j * THREADS * self.each + p;
                let col = k.constant(element);
                let at = self.source.element(k, &[col])?;
                let regs = k.regs(Class::B32, (size / 4).max(1) as usize);
                let guard = guarded.then(|| {
                    for r in &regs {
                        k.set(Type::B32, *r, 0);
                    }
                    Pred::from(k.compare_here(Cmp::Gt, self.left, element, None))
                });
                k.load(guard, Cache::Coherent, bits(size), &regs, at);
                parts.extend(regs);
            }
            words.push(parts);
        }
        for (j, parts) in (0..).zip(words) {
            let element = j * THREADS * self.each;
            let regs = put_together(k, &parts, size);
            let col = k.constant(element);
            let at = self.target.element(k, &[col])?;
            let guard =
                guarded.then(|| Pred::from(k.compare_here(Cmp::Gt, self.room, element, None)));
            k.store(guard, Type::B32, &regs, at);
        }
        Ok(())
    }
}
