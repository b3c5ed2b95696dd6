//! From accumulators to C: each warp turns its strip through shared memory, so that C is read and written as wide as its alignment
//! allows, neighbouring lanes next to each other.
//!
//! A strip is as many rows as the atom has and the warp's columns wide. Fragments write pairs, rows read vectors; the layout between
//! them is derived from these two accesses. No barrier of the block is needed: a warp reads what it wrote.
//!
//! Where an operand's side lies in another order ([`OperandMaps::arrangement`]), so are the rows or columns of C. Then two atoms share their
//! columns, and a lane writes four neighbours of them: two of each atom.

use layout_codegen::ir::instructions::Reg;
use layout_core::atoms::MmaAtom;
use layout_core::banks::Access;
use layout_core::derive::{Family, Pattern, Tile, derive, derive_layout};
use layout_core::{Layout, LayoutError, Swizzled};

use super::operand::is_fma;
use crate::gemm::{PlanError, Refusal};

/// The accesses that stage sums: their store and their load.
pub(crate) const SUMS: [&str; 2] = ["stageC", "fetchC"];
/// Those that stage elements of C, rounded already.
pub(crate) const ROUNDED: [&str; 2] = ["stageRounded", "fetchRounded"];

/// The names of the shared accesses of each way to store C. A kernel that has two takes one of them in a launch, as its arguments have it: sums where C
/// is read or its rows are not aligned, else rounded elements.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::gemm::Operands;
/// use tilewright_kernels::gemm::mma_sync::WAYS_TO_STORE;
/// use tilewright_kernels::gemm::Config;
///
/// let config: Config = "wgmma-f16-128x128x64".parse()?;
/// let kernel = config.kernel().emit(Operands::ALL[0], Arch(90))?;
/// for name in WAYS_TO_STORE.concat() {
///     assert!(!kernel.lines_of(name).is_empty(), "{name}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const WAYS_TO_STORE: [&[&str]; 2] = [&SUMS, &ROUNDED];

/// The staging of one warp's strip of C.
#[derive(Clone, Debug)]
pub(crate) struct Staging {
    /// Rows of a strip: those of the atom.
    pub(crate) rows: i64,
    /// Columns of a strip: those of the warp, of one product after the other.
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
    /// (lane, (row half, atom)) → `row + R·column` of the first of the `together` accumulators that a lane writes at once; two atoms count as
    /// one where they share their columns.
    pub(crate) write: Layout,
    /// Neighbours of a row in one atom's accumulators of a lane: 2, or 4 of an FMA atom.
    pub(crate) run: i64,
    /// Neighbours that a lane writes at once: 2 of one atom, or 4 of two.
    pub(crate) together: i64,
    /// (lane, ((part of the columns, pass down the rows), part of a vector)) → `row + R·column` of the first accumulator of each read of the first
    /// product.
    pub(crate) read: Layout,
    /// Lanes store what they hold, and nothing is staged: reads are of their own accumulators.
    pub(crate) held: bool,
}

impl Staging {
    /// The staging for a warp that is `cols` columns wide in each of `products` products and stores `vector` elements of C at once; accumulators of
    /// `bytes` bytes. The sides of
    /// A and B lie in another order where `rows_arranged` and `cols_arranged` say so.
    pub(crate) fn new(
        atom: &MmaAtom,
        (rows_arranged, cols_arranged): (bool, bool),
        (cols, products): (i64, i64),
        vector: i64,
        bytes: i64,
    ) -> Result<Self, PlanError> {
        let rows = atom.m;
        let per_row = cols / vector;
        let cols = cols * products;
        // Lanes along a row first; a longer row is walked in several parts.
        let along = per_row.min(32);
        let (again, down) = (per_row / along, 32 / along);
        let parts = (vector * bytes / 16).max(1);
        // C fragment: the pairs of a lane. Its values are (pair, half of the rows). In an FMA atom, (4 neighbours, 4 rows).
        let run = if is_fma(atom) { 4 } else { 2 };
        let halves = atom.c.get(1)?.size() / run;
        let place = place_of_c(atom, (rows_arranged, cols_arranged), rows)?;
        let first = place.compose(&atom.c.get(0)?)?;
        let atoms = if cols_arranged { 2 } else { 1 };
        let write = Layout::tuple(&[
            first,
            Layout::flat(
                &[halves, cols / (atom.n * atoms)],
                &[
                    match halves {
                        1 => 0,
                        _ if run == 4 => 1,
                        _ => place.index(8),
                    },
                    rows * atom.n * atoms,
                ],
            )?,
        ])?;
        let together = run * atoms;
        let read = Layout::tuple(&[
            Layout::flat(&[along, down], &[rows * vector, 1])?,
            Layout::tuple(&[
                Layout::flat(&[again, rows / down], &[rows * vector * along, down])?,
                Layout::mode(parts, rows * 16 / bytes)?,
            ])?,
        ])?;
        let refuse = |reason: String| {
            PlanError::Refused(Refusal {
                obligation: "a layout for the epilogue of C through shared memory".to_owned(),
                reason,
            })
        };
        let row_major = |i: i64| i % rows * cols + i / rows;
        let lanes = |l: &Layout| std::array::from_fn(|lane| row_major(l.at(&[lane as i64, 0])));
        let patterns = [
            Pattern {
                access: store(together * bytes),
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
        if best.matrix.is_some() {
            best = derive(tile, &patterns, Family::Permuted).map_err(|e| refuse(e.to_string()))?;
        } else if best.rotation.is_some() {
            best = derive_layout(tile, &patterns).map_err(|e| refuse(e.to_string()))?;
        }
        let derived = best
            .layout
            .ok_or_else(|| refuse("nothing was derived".to_owned()))?;
        Ok(Self {
            rows,
            cols,
            bytes,
            derived,
            shared: layout_codegen::view::in_bytes(&derived, bytes)?,
            certificate: best.certificate.to_string(),
            vector,
            write,
            run,
            together,
            read,
            held: false,
        })
    }

    /// No staging, where lanes store what they hold: `place` says where (row, column) of the atom is in C, and `atoms` of them make a strip of so many times
    /// its columns as rows. Where the two halves of the rows are neighbours in C, a lane stores both at once.
    pub(crate) fn held(
        atom: &MmaAtom,
        place: impl Fn(i64) -> Result<Layout, LayoutError>,
        (atoms, cols): (i64, i64),
        vector: i64,
        bytes: i64,
    ) -> Result<Self, PlanError> {
        let rows = atoms * atom.n;
        let place = place(rows)?;
        let between_halves = place.index(8);
        let vector = vector.min(if between_halves == rows { 2 } else { 1 });
        let first = place.compose(&atom.c.get(0)?)?;
        // The accumulators of a lane: two neighbours down the rows, and two along them.
        let down = Layout::flat(&[2, atoms], &[1, atom.n])?;
        let along = Layout::mode(2 / vector, between_halves)?;
        let read = Layout::tuple(&[
            first,
            Layout::tuple(&[Layout::tuple(&[along, down])?, Layout::mode(1, 0)?])?,
        ])?;
        let plain: Swizzled = Layout::flat(&[rows, cols], &[cols, 1])?.into();
        Ok(Self {
            rows,
            cols,
            bytes,
            derived: plain,
            shared: plain,
            certificate: "none: lanes store what they hold".to_owned(),
            vector,
            write: read,
            run: 2,
            together: 2,
            read,
            held: true,
        })
    }

    /// Bytes of one warp's strip.
    pub(crate) fn bytes(&self) -> i64 {
        if self.held {
            return 0;
        }
        let unit = (1i64 << self.shared.swizzle().width()).max(128);
        (self.shared.cosize() + unit - 1) / unit * unit
    }

    /// The accumulators of a lane's vector, of those of the strip that it holds: of an atom two neighbours along Cᵀ's rows, which are two rows of C, in both
    /// halves of its rows, which are two columns of C.
    pub(crate) fn of_lane(&self, pass: i64, atoms: &[Vec<Reg>]) -> Vec<Reg> {
        let (along, down) = (2 / self.vector, pass * self.vector / 2);
        let atom = &atoms[(down / 2) as usize];
        let first = pass % along;
        (first..first + self.vector)
            .map(|half| atom[(down % 2 + 2 * half) as usize])
            .collect()
    }

    /// Row and column of `row + R·column`, as layouts of the same domain as `l`.
    pub(crate) fn split(&self, l: &Layout) -> Result<(Layout, Layout), PlanError> {
        let (r, c) = (self.rows, self.cols);
        Ok((
            Layout::flat(&[r, c], &[1, 0])?.compose(l)?,
            Layout::flat(&[r, c], &[0, 1])?.compose(l)?,
        ))
    }
}

/// (row, column) of an atom of C → `row + R·column` of what it is in the warp's part of C, for the order in which the sides of A and B have.
pub(crate) fn place_of_c(
    atom: &MmaAtom,
    (rows_arranged, cols_arranged): (bool, bool),
    stride: i64,
) -> Result<Layout, PlanError> {
    let across = if cols_arranged { 2 * stride } else { stride };
    Ok(if rows_arranged {
        Layout::flat(&[8, 2, atom.n], &[2, 1, across])?
    } else {
        Layout::flat(&[atom.m, atom.n], &[1, across])?
    })
}

/// The store of a lane's accumulators, `bytes` of them.
fn store(bytes: i64) -> Access {
    match bytes {
        4 => Access::St32,
        16 => Access::St128,
        _ => Access::St64,
    }
}

/// The load of a lane's accumulators, `bytes` of them or 16 at a time.
fn fetch(bytes: i64) -> Access {
    match bytes {
        2 => Access::Ld16,
        4 => Access::Ld32,
        8 => Access::Ld64,
        _ => Access::Ld128,
    }
}
