//! Operands that are copied before the product: with narrow rows, to rows that begin cache lines, or transposed.
//!
//! An odd leading dimension allows no copy wider than an element, and a product reads each element as often as there are tiles across.
//! This kernel reads it once, in pieces as wide as the rows allow, and writes words: neighbouring lanes take neighbouring words, so that
//! both sides are coalesced. Between the end of a row and its pitch there are zeros. What a product saves by 16-byte copies is far more,
//! from a few tiles on.
//!
//! ```text
//! block (row, c)    words c·1024 + lane + 256·j of a row, j = 0..4
//! ```
//!
//! `wgmma` takes operands of 8 and 32 bits with k contiguous alone. Where the side is contiguous in memory, the copy is the transpose
//! ([`transposed`]), also of rows that are aligned.

mod rows;
mod transposed;
use layout_codegen::ir::{Element, Kernel, ParamKind};

use super::workspace::Workspace;
use super::{Argument, ArgumentValue, Gemm, Launch, Limit, Operands, PlanError, Trans};

/// Bytes of a line of the caches.
pub(crate) const LINE: u64 = 128;

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

/// Parameters of the kernels that transpose, and that copy vectors.
const SIZED: [(&str, ParamKind); 6] = [
    ("from", ParamKind::Pointer),
    ("to", ParamKind::Pointer),
    ("rows", ParamKind::U32),
    ("cols", ParamKind::U32),
    ("ld", ParamKind::U32),
    ("pitch", ParamKind::U32),
];

/// What has a limit, of A and B.
const ROWS: [&str; 2] = ["a row of A that is packed", "a row of B that is packed"];

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
    /// An element of A and B.
    pub(crate) element: Element,
    /// For A and B: bytes of one load; none if it is taken as it lies.
    pub(crate) pieces: [Option<i64>; 2],
    /// Whether A and B are transposed, whatever their rows are.
    pub(crate) transposes: [bool; 2],
    /// Whether kernels are launched while the one before still runs, and wait for it themselves: `sm_90` has the instruction.
    pub(crate) chained: bool,
}

impl Packing {
    /// The name of the kernel for A (0) or B (1).
    fn entry_name(&self, i: usize) -> String {
        let what = if self.transposes[i] {
            "transpose"
        } else {
            "pack"
        };
        format!("{}_{what}_{}", self.product, ["a", "b"][i])
    }

    /// The operands that are copied first, with their copies in the workspace.
    pub(crate) fn launches(
        &self,
        problem: &Gemm,
        workspace: &mut Workspace,
    ) -> Result<[Option<Packed>; 2], PlanError> {
        let mut one = |i: usize, shape, ld: u64, from: ArgumentValue| {
            if self.transposes[i] {
                return self.transpose(i, shape, (ld, from), workspace).map(Some);
            }
            match self.pieces[i] {
                Some(_) => self.launch(i, shape, (ld, from), workspace).map(Some),
                None => Ok(None),
            }
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
        let bytes = u64::from(self.element.bytes());
        let pitch = cols.next_multiple_of(LINE / bytes);
        let at = workspace.place([rows, pitch, 1], self.element.bytes())?;
        let to = ArgumentValue::Workspace(at);
        let (grid, arguments) = if self.pieces[i] == Some(16) {
            let [down, across] = rows::tile(self.element).map(|side| side as u64);
            Limit::Grid.at_most(ROWS[i], cols, 65_535 * across)?;
            let sizes = [rows, cols, ld, pitch].map(ArgumentValue::Int);
            let grid = [rows.div_ceil(down).max(1), cols.div_ceil(across).max(1)];
            (grid, arguments(&SIZED, [from, to], sizes))
        } else {
            let words = (pitch * bytes).div_ceil(4);
            let along = words.div_ceil((THREADS * WORDS) as u64).max(1);
            let limit = 65_535 * (THREADS * WORDS) as u64 * 4 / bytes;
            Limit::Grid.at_most(ROWS[i], cols, limit)?;
            let sizes = [cols, ld, pitch].map(ArgumentValue::Int);
            let grid = [rows.max(1), along];
            (grid, arguments(&PARAMETERS, [from, to], sizes))
        };
        let launch = Launch::single(
            self.entry_name(i),
            [grid[0] as u32, grid[1] as u32, 1],
            THREADS as u32,
            0,
            arguments,
        );
        Ok(Packed { launch, at, pitch })
    }

    /// The transpose of one operand of `rows` × `cols` elements.
    fn transpose(
        &self,
        i: usize,
        (rows, cols): (u64, u64),
        (ld, from): (u64, ArgumentValue),
        workspace: &mut Workspace,
    ) -> Result<Packed, PlanError> {
        let bytes = u64::from(self.element.bytes());
        let pitch = rows.next_multiple_of(LINE / bytes);
        let at = workspace.place([cols, pitch, 1], self.element.bytes())?;
        let tile = transposed::tile(self.element) as u64;
        Limit::Grid.at_most(ROWS[i], cols, 65_535 * tile)?;
        let sizes = [rows, cols, ld, pitch].map(ArgumentValue::Int);
        let launch = Launch::single(
            self.entry_name(i),
            [
                rows.div_ceil(tile).max(1) as u32,
                cols.div_ceil(tile).max(1) as u32,
                1,
            ],
            THREADS as u32,
            0,
            arguments(&SIZED, [from, ArgumentValue::Workspace(at)], sizes),
        );
        Ok(Packed { launch, at, pitch })
    }

    /// The kernel for A (0) or B (1), as far as all have it.
    fn begin(&self, i: usize) -> Kernel {
        let mut k = Kernel::new(&self.entry_name(i), THREADS as u32);
        if self.chained {
            k.wait_for_grid();
            k.launch_dependents();
        }
        k
    }

    /// The kernels of the operands that are copied first.
    pub(crate) fn kernels(&self, operands: Operands) -> Result<Vec<Kernel>, PlanError> {
        let mut all = Vec::new();
        for (i, width) in self.pieces.into_iter().enumerate() {
            if self.transposes[i] {
                let mut k = self.begin(i);
                transposed::transpose(&mut k, &self.entry_name(i), self.element, width)?;
                all.push(k);
                continue;
            }
            let Some(width) = width else { continue };
            let stored = [operands.a, operands.b][i];
            let what = ["A", "B"][i];
            let lies = if stored == Trans::N {
                "as it is"
            } else {
                "transposed"
            };
            let mut k = self.begin(i);
            k.describe(format!(
                "{}: {what} ({lies}), to rows of whole lines, {width} bytes at a time",
                self.entry_name(i)
            ));
            if width == 16 {
                rows::copy_vectors(&mut k, self.element)?;
            } else {
                rows::copy_rows(&mut k, self.element.bytes().into(), width)?;
            }
            all.push(k);
        }
        Ok(all)
    }
}

/// The arguments of a copy: pointers, and then sizes.
fn arguments<const N: usize>(
    parameters: &[(&str, ParamKind)],
    pointers: [ArgumentValue; 2],
    sizes: [ArgumentValue; N],
) -> Vec<Argument> {
    let values = pointers.into_iter().chain(sizes);
    let all = parameters.iter().zip(values);
    all.map(|(&(name, kind), value)| Argument {
        name: name.to_owned(),
        kind,
        value,
    })
    .collect()
}
