//! The product with A and B swapped, Cᵀ = Bᵀ·Aᵀ: the first operand of `wgmma` is B, the second A.
//!
//! ```text
//!                     first operand, 64 rows a warpgroup    second operand          sums
//! C  = A·B            A, a descriptor                       B, a descriptor         rows of C, a strip of 16 a warp
//! Cᵀ = Bᵀ·Aᵀ          B's columns                           A, a descriptor         columns of C, 16 a warp
//! ```
//!
//! Two kinds of plans gain by it:
//!
//! * Few rows of C. The instruction has 64 rows, but as few as 8 columns: a product of 16 rows of A does not fill three quarters of its tile of A with zeros.
//!   B is a descriptor, and the rows of the instruction are the columns of C in order.
//! * tf32. `wgmma` takes 32-bit operands from shared memory with k contiguous alone, but the fragment of its first operand may come from registers, in whatever
//!   order threads read it: B may lie with its columns contiguous, and needs no transpose.
//!
//! The rows of Bᵀ in registers may go to the rows of the instruction in any order, if the columns of C do likewise. Which order is best
//! follows from the two accesses. A tile of B lies as TMA puts it under the swizzle of 128 bytes: k by k 32 columns, whose chunks of four are permuted by k mod 8. A warp
//! reads columns g for k = t and t + 4 (lane = t + 4g). Two neighbours are rows g and g + 8 of the instruction, so that one load of 8 bytes brings both:
//! half a warp, whose lanes have all t and the two low bits of g, then covers all banks if one bit of g is bit 1 of the column (the other half of a chunk) and the
//! other is bit 4 (a chunk that t does not reach). And a warp stores whole sectors of 32 bytes if its columns have all of bits 0, 1 and 2:
//!
//! ```text
//! bit of the column     0      1      2      3       4      5       6…
//! bit of the row        3 (h)  0 (g)  2 (g)  4 (w)   1 (g)  5 (w)   the warpgroup
//! ```

use layout_core::atoms::MmaAtom;
use layout_core::{Layout, LayoutError};

use super::Specialized;
use super::operand::{OperandMaps, Read};
use crate::gemm::{Obligation, PlanError, Refusal};

/// Rows of the instruction.
const ROWS: i64 = 64;

/// In which order the columns of C go to the rows of the instruction.
#[derive(Debug)]
pub(super) struct ColumnOrder {
    /// The column of each bit of a row within a warp: of g, and then h.
    rows: [i64; 4],
    /// The first column for each bit of the warp in its warpgroup.
    warps: [i64; 2],
    /// Columns from a warp's first to its last, those between that belong to another warp included.
    pub(super) width: i64,
}

/// As a descriptor has them.
const IN_ORDER: ColumnOrder = ColumnOrder {
    rows: [1, 2, 4, 8],
    warps: [16, 32],
    width: 16,
};

/// For B in registers, two neighbours at a time.
const NEIGHBOURS: ColumnOrder = ColumnOrder {
    rows: [2, 16, 4, 1],
    warps: [8, 32],
    width: 32,
};

impl ColumnOrder {
    /// Row of the instruction within a warp → column, as a multiple of `stride`.
    fn columns(&self, stride: i64) -> Result<Layout, LayoutError> {
        Layout::flat(&[2; 4], &self.rows.map(|s| s * stride))
    }

    /// Warp → its first column in a tile of `cols`, as a multiple of `stride`.
    pub(super) fn first_columns(&self, cols: i64, stride: i64) -> Result<Layout, LayoutError> {
        let [x, y] = self.warps.map(|s| s * stride);
        Layout::flat(&[2, 2, cols / ROWS], &[x, y, ROWS * stride])
    }

    /// (row, column) of an atom of Cᵀ → `row + R·column` of C, in the warp's columns; atoms follow each other down the rows of C.
    pub(super) fn place_of_c(&self, atom: &MmaAtom, stride: i64) -> Result<Layout, LayoutError> {
        Layout::tuple(&[self.columns(stride)?, Layout::mode(atom.n, 1)?])
    }
}

impl Specialized {
    /// In which order a product with A and B swapped has the columns of C.
    pub(super) fn column_order(&self) -> &'static ColumnOrder {
        if self.is_through_registers() {
            &NEIGHBOURS
        } else {
            &IN_ORDER
        }
    }
}

impl OperandMaps {
    /// The maps of B with contiguous columns as the first operand of `wgmma`, in registers: the tile as [`OperandMaps::of_warpgroups`] has it.
    ///
    /// # Errors
    ///
    /// A tile whose rows are not whole panels.
    pub fn through_registers(
        atom: &MmaAtom,
        tile: (i64, i64),
        threads: i64,
    ) -> Result<Self, PlanError> {
        let mut maps = Self::of_warpgroups(atom, false, false, tile, threads)?;
        // The fragment's row becomes a column, and a column of it k.
        let to_tile = Layout::tuple(&[NEIGHBOURS.columns(1)?, Layout::mode(atom.k, ROWS)?])?;
        maps.fragment = to_tile.compose(&atom.a)?;
        maps.points = maps.fragment.get(0)?;
        (maps.read, maps.side) = (Read::Neighbours, ROWS);
        "a box of TMA, of which half a warp reads a word in each bank"
            .clone_into(&mut maps.certificate);
        Ok(maps)
    }
}

/// Each lane reads what `wgmma` wants of it in registers, up to the order of the columns, which is that of C: value by value, from the instruction's own
/// fragment.
pub(super) fn delivered(
    name: &str,
    atom: &MmaAtom,
    o: &OperandMaps,
) -> Result<Obligation, Refusal> {
    let refuse = |reason: String| Refusal {
        obligation: name.to_owned(),
        reason,
    };
    let stated = |e: LayoutError| refuse(e.to_string());
    let whole = layout_core::atoms::wgmma_a(atom.a_type);
    let order = NEIGHBOURS.columns(1).map_err(stated)?;
    let first = NEIGHBOURS.first_columns(ROWS, 1).map_err(stated)?;
    for thread in 0..128 {
        for value in 0..4 {
            let wanted = whole.at(&[thread, value]);
            let (row, k) = (wanted % ROWS, wanted / ROWS);
            let column = first.index(row / 16) + order.index(row % 16);
            let read = o.fragment.at(&[thread % 32, value]);
            let (own, own_k) = (read % ROWS + first.index(thread / 32), read / ROWS);
            if (own, own_k) != (column, k) {
                return Err(refuse(format!(
                    "thread {thread}, value {value} reads (column, k) = {:?} and the product wants {:?}",
                    (own, own_k),
                    (column, k)
                )));
            }
        }
    }
    Ok(Obligation {
        name: name.to_owned(),
        evidence: format!(
            "{} and {whole}, value by value; columns in the order {order}, warps from {first}",
            o.fragment
        ),
    })
}
