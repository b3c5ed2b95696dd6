//! From accumulators to C: each warp turns its strip through shared memory, so that C is read and written as wide as its alignment
//! allows, neighbouring lanes next to each other.
//!
//! A strip is as many rows as the atom has and the warp's columns wide. Fragments write pairs, rows read vectors; the layout between
//! them is derived from these two accesses. No barrier of the block is needed: a warp reads what it wrote.

use layout_core::atoms::MmaAtom;
use layout_core::banks::Access;
use layout_core::derive::{Family, Pattern, Tile, derive};
use layout_core::{Layout, Swizzled, composition};

use crate::plan::{AccessProof, Obligation, PlanError, Refusal, prove_access, prove_bijection};

/// The staging of one warp's strip of C.
#[derive(Clone, Debug)]
pub(crate) struct Staging {
    /// Rows of a strip: those of the atom.
    pub(crate) rows: i64,
    /// Columns of a strip: those of the warp.
    pub(crate) cols: i64,
    /// Bytes of an accumulator.
    pub(crate) bytes: i64,
    /// (row, column) → accumulator of the strip.
    pub(crate) derived: Swizzled,
    /// (row, column) → byte of the strip.
    pub(crate) shared: Swizzled,
    /// Why this layout.
    pub(crate) certificate: String,
    /// Elements of C that a lane stores at once.
    pub(crate) vector: i64,
    /// (lane, (row half, atom)) → `row + R·column` of the first of each pair that a lane writes.
    pub(crate) write: Layout,
    /// (lane, ((part of the columns, pass down the rows), part of a vector)) → `row + R·column` of the first accumulator of each read.
    pub(crate) read: Layout,
}

impl Staging {
    /// The staging for a warp that is `cols` columns wide and stores `vector` elements of C at once; accumulators of `bytes` bytes.
    pub(crate) fn new(
        atom: &MmaAtom,
        cols: i64,
        vector: i64,
        bytes: i64,
    ) -> Result<Self, PlanError> {
        let rows = atom.m;
        let per_row = cols / vector;
        // Lanes along a row first; a longer row is walked in several parts.
        let along = per_row.min(32);
        let (again, down) = (per_row / along, 32 / along);
        let parts = (vector * bytes / 16).max(1);
        // C fragment: the pairs of a lane. Its values are (pair, half of the rows).
        let halves = atom.c.get(1)?.size() / 2;
        let place = Layout::flat(&[atom.m, atom.n], &[1, rows])?;
        let first = composition(&place, &atom.c.get(0)?)?;
        let write = Layout::tuple(&[
            first,
            Layout::flat(
                &[halves, cols / atom.n],
                &[if halves > 1 { 8 } else { 0 }, rows * atom.n],
            )?,
        ])?;
        let read = Layout::tuple(&[
            Layout::flat(&[along, down], &[rows * vector, 1])?,
            Layout::tuple(&[
                Layout::flat(&[again, rows / down], &[rows * vector * along, down])?,
                Layout::mode(parts, rows * 16 / bytes)?,
            ])?,
        ])?;
        let refuse = |reason: String| {
            PlanError::Refused(Refusal {
                obligation: "a layout for the staging of C".to_owned(),
                reason,
            })
        };
        let row_major = |i: i64| i % rows * cols + i / rows;
        let lanes = |l: &Layout| std::array::from_fn(|lane| row_major(l.at(&[lane as i64, 0])));
        let patterns = [
            Pattern {
                access: if bytes == 8 {
                    Access::St128
                } else {
                    Access::St64
                },
                elements: lanes(&write),
            },
            Pattern {
                access: fetch(vector * bytes),
                elements: lanes(&read),
            },
        ];
        let tile = Tile {
            rows,
            cols,
            elem_bytes: bytes,
        };
        let mut best = derive(tile, &patterns, Family::Any).map_err(|e| refuse(e.to_string()))?;
        if best.layout.is_none() {
            best = derive(tile, &patterns, Family::Permuted).map_err(|e| refuse(e.to_string()))?;
        }
        let derived = best
            .layout
            .ok_or_else(|| refuse("nothing was derived".to_owned()))?;
        Ok(Self {
            rows,
            cols,
            bytes,
            derived,
            shared: super::operand::in_bytes(&derived, bytes)?,
            certificate: best.certificate.to_string(),
            vector,
            write,
            read,
        })
    }

    /// Bytes of one warp's strip.
    pub(crate) fn bytes(&self) -> i64 {
        let unit = (1i64 << self.shared.swizzle().width()).max(128);
        (self.shared.cosize() + unit - 1) / unit * unit
    }

    /// Row and column of `row + R·column`, as layouts of the same domain as `l`.
    pub(crate) fn split(&self, l: &Layout) -> Result<(Layout, Layout), PlanError> {
        let (r, c) = (self.rows, self.cols);
        Ok((
            composition(&Layout::flat(&[r, c], &[1, 0])?, l)?,
            composition(&Layout::flat(&[r, c], &[0, 1])?, l)?,
        ))
    }

    pub(crate) fn prove(&self) -> Result<Vec<Obligation>, PlanError> {
        let n = self.rows * self.cols;
        let pairs = Layout::tuple(&[self.write, Layout::mode(2, self.rows)?])?;
        let each = self.vector.min(16 / self.bytes);
        let vectors = Layout::tuple(&[self.read, Layout::mode(each, self.rows)?])?;
        Ok(vec![
            prove_bijection(
                "each accumulator of a strip is staged exactly once",
                &pairs.into(),
                n,
            )?,
            prove_bijection(
                "each accumulator of a strip is read back exactly once",
                &vectors.into(),
                n,
            )?,
        ])
    }

    pub(crate) fn accesses(&self) -> Result<Vec<AccessProof>, PlanError> {
        let bytes = |l: &Layout| -> Result<Swizzled, PlanError> {
            // Through the strip's own layout: (row, column) from `row + R·column`.
            let place = self.shared.layout();
            let inner = composition(&place, l)?;
            Ok(Swizzled::new(
                self.shared.swizzle(),
                self.shared.offset(),
                inner,
            )?)
        };
        let store = if self.bytes == 8 {
            Access::St128
        } else {
            Access::St64
        };
        Ok(vec![
            prove_access("stageC", store, &bytes(&self.write)?)?,
            prove_access(
                "fetchC",
                fetch(self.vector * self.bytes),
                &bytes(&self.read)?,
            )?,
        ])
    }
}

/// The load of a lane's accumulators, `bytes` of them or 16 at a time.
fn fetch(bytes: i64) -> Access {
    match bytes {
        4 => Access::Ld32,
        8 => Access::Ld64,
        _ => Access::Ld128,
    }
}
