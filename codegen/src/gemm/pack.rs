//! Operands with narrow rows, copied to rows that begin cache lines before the product.
//!
//! An odd leading dimension allows no copy wider than an element, and a product reads each element as often as there are tiles across.
//! This kernel reads it once, in pieces as wide as the rows allow, and writes words: neighbouring lanes take neighbouring words, so that
//! both sides are coalesced. Between the end of a row and its pitch there are zeros. What a product saves by 16-byte copies is far more,
//! from a few tiles on.
//!
//! ```text
//! block (row, c)    words c·1024 + lane + 256·j of a row, j = 0..4
//! ```

use layout_core::Layout;

use super::pieces::{bits, put_together};
use super::workspace::Workspace;
use super::{Argument, ArgumentValue, Gemm, LIMIT, Launch, Limit, Operands, PlanError, Trans};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{
    Axis, Cache, Class, Cmp, Extent, Kernel, ParamKind, Pred, Reg, Role, Stride, Type,
};
use crate::view::View;

/// Bytes of a line of the caches.
const LINE: u64 = 128;

/// Threads of a block.
const THREADS: i64 = 256;

/// Words of a row that a thread copies.
const WORDS: i64 = 4;

/// Parameters of the kernel.
const PARAMETERS: [(&str, ParamKind); 5] = [
    ("from", ParamKind::Pointer),
    ("to", ParamKind::Pointer),
    ("cols", ParamKind::U32),
    ("ld", ParamKind::U32),
    ("pitch", ParamKind::U32),
];

/// An operand that is copied first.
pub(crate) struct Packed {
    /// The copy.
    pub(crate) launch: Launch,
    pub(crate) at: u64,
    pub(crate) pitch: u64,
}

impl Packed {
    /// Where the copy is.
    pub(crate) fn pointer(&self) -> ArgumentValue {
        ArgumentValue::Workspace(self.at)
    }

    /// Its leading dimension.
    pub(crate) fn pitch(&self) -> ArgumentValue {
        ArgumentValue::Int(self.pitch)
    }
}

/// What a product packs before it multiplies.
pub(crate) struct Packing {
    /// The name of the product's entry.
    pub(crate) product: String,
    /// Bytes of an element of A and B.
    pub(crate) bytes: u32,
    /// For A and B: bytes of one load; none if it is taken as it lies.
    pub(crate) pieces: [Option<i64>; 2],
}

impl Packing {
    /// The name of the kernel for A (0) or B (1).
    fn entry_name(&self, i: usize) -> String {
        format!("{}_pack_{}", self.product, ["a", "b"][i])
    }

    /// The operands that are copied first, with their copies in the workspace.
    pub(crate) fn launches(
        &self,
        problem: &Gemm,
        workspace: &mut Workspace,
    ) -> Result<[Option<Packed>; 2], PlanError> {
        let mut one = |i: usize, shape, ld: u64, from: ArgumentValue| match self.pieces[i] {
            Some(_) => self.launch(i, shape, (ld, from), workspace).map(Some),
            None => Ok(None),
        };
        Ok([
            one(0, problem.stored_a(), problem.lda, ArgumentValue::A)?,
            one(1, problem.stored_b(), problem.ldb, ArgumentValue::B)?,
        ])
    }

    /// The copy of one operand of `rows` × `cols` elements.
    fn launch(
        &self,
        i: usize,
        (rows, cols): (u64, u64),
        (ld, from): (u64, ArgumentValue),
        workspace: &mut Workspace,
    ) -> Result<Packed, PlanError> {
        let bytes = u64::from(self.bytes);
        let pitch = cols.next_multiple_of(LINE / bytes);
        let at = workspace.place([rows, pitch, 1], self.bytes)?;
        let words = (pitch * bytes).div_ceil(4);
        let along = words.div_ceil((THREADS * WORDS) as u64).max(1);
        let name = if i == 0 {
            "a row of A that is packed"
        } else {
            "a row of B that is packed"
        };
        let limit = 65_535 * (THREADS * WORDS) as u64 * 4 / bytes;
        Limit::Grid.at_most(name, cols, limit)?;
        let values = [
            from,
            ArgumentValue::Workspace(at),
            ArgumentValue::Int(cols),
            ArgumentValue::Int(ld),
            ArgumentValue::Int(pitch),
        ];
        let arguments = PARAMETERS.iter().zip(values);
        let arguments = arguments.map(|(&(name, kind), value)| Argument {
            name: name.to_owned(),
            kind,
            value,
        });
        let launch = Launch::single(
            self.entry_name(i),
            [rows.max(1) as u32, along as u32, 1],
            THREADS as u32,
            0,
            arguments.collect(),
        );
        Ok(Packed { launch, at, pitch })
    }

    /// The kernels of the operands that are copied first.
    pub(crate) fn kernels(&self, operands: Operands) -> Result<Vec<Kernel>, PlanError> {
        let mut all = Vec::new();
        for (i, width) in self.pieces.into_iter().enumerate() {
            let Some(width) = width else { continue };
            let stored = [operands.a, operands.b][i];
            let what = ["A", "B"][i];
            let lies = if stored == Trans::N {
                "as it is"
            } else {
                "transposed"
            };
            let name = self.entry_name(i);
            let mut k = Kernel::new(&name, THREADS as u32);
            k.describe(format!(
                "{name}: {what} ({lies}), to rows of whole lines, {width} bytes at a time"
            ));
            copy_rows(&mut k, self.bytes.into(), width)?;
            all.push(k);
        }
        Ok(all)
    }
}

/// Row by row: `to[row·pitch + c] = from[row·ld + c]` for c below `cols`.
fn copy_rows(k: &mut Kernel, bytes: i64, width: i64) -> Result<(), PlanError> {
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
    let col = index(&mut k.pool, &first, &[tid, part])?;
    // A block has a row: there are as many as the grid has blocks along x.
    k.kept_by_launch(cols, pitch);
    k.tiling(part, pitch, each * THREADS * WORDS);
    let mut matrix = |name, base, ld, cols, role| -> Result<View, PlanError> {
        let extents = vec![Extent::Blocks(Axis::X), Extent::Value(cols)];
        let strides = vec![Stride::Value(ld), Stride::Fixed(1)];
        let view = k.global_at(name, base, bytes, extents, strides, role);
        k.rows_aligned(&view, if role == Role::Input { width } else { unit });
        Ok(view.moved(k, &[row, col])?.pinned(k))
    };
    let source = matrix("from", from, ld, cols, Role::Input)?;
    let target = matrix("to", to, pitch, pitch, Role::Output)?;
    let left = k.pool.sub(cols, col);
    let room = k.pool.sub(pitch, col);
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
                let col = k.pool.constant(element);
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
            let col = k.pool.constant(element);
            let at = self.target.element(k, &[col])?;
            let guard =
                guarded.then(|| Pred::from(k.compare_here(Cmp::Gt, self.room, element, None)));
            k.store(guard, Type::B32, &regs, at);
        }
        Ok(())
    }
}
