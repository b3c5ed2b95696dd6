//! From accumulators to C by TMA: each warp puts its rows of C, rounded to 16 bits, together in shared memory by `stmatrix`, and one lane has them copied as a
//! box.
//!
//! ```text
//! fragments of two atoms           (lane, value) → row + 16·column       the accumulators that a lane holds
//!   ∘ registers of stmatrix⁻¹      an element of four 8×8 matrices → where it is in C
//!   ∘ memory of stmatrix           (lane, position) → row + 16·column    what each lane points at: 8 neighbours of a row
//! staging, of what a box reads     (row, column) → byte                  Sw<3,4,3> o (16,64):(128,2) where 64 columns are 128 bytes
//! ```
//!
//! All follows from the atom and the columns: which lane points where, which box and which swizzle. A warp waits for itself alone, and has places for several
//! boxes: while one is copied it fills the next.

use layout_core::atoms::{CopyAtom, MmaAtom, STMATRIX_X4, STMATRIX_X4_TRANS, addresses_for};
use layout_core::banks::{Access, Matrices, NVIDIA, wavefronts};
use layout_core::{Layout, Swizzle, Swizzled, TensorBox};

use super::staging::Staging;
use crate::gemm::{Obligation, PlanError, Refusal};

/// The name of the shared access that puts a box together.
pub(crate) const STAGED: &str = "stageBox";

/// Bytes of an element.
const BYTES: i64 = 2;

/// How a warp's elements of C leave as boxes.
#[derive(Clone, Debug)]
pub(crate) struct Boxes {
    /// (row, column) → element of the place of a box.
    pub(crate) derived: Swizzled,
    /// (row, column) → byte of the place of a box.
    pub(crate) shared: Swizzled,
    /// The box that reads it.
    pub(crate) of: TensorBox,
    /// (lane, which `stmatrix` along the row) → row that the lane points at, and the column where it begins.
    pub(crate) points: (Layout, Layout),
    /// The instruction transposes its matrices.
    pub(crate) trans: bool,
    /// Atoms side by side that it takes at once.
    pub(crate) together: i64,
    /// How many boxes a warp has places for.
    pub(crate) places: i64,
}

impl Boxes {
    /// The boxes of strips of `staging`, of which a warp has `strips`, in the place of the staging.
    pub(crate) fn new(atom: &MmaAtom, staging: &Staging, strips: i64) -> Result<Self, PlanError> {
        let (rows, columns) = (staging.rows, staging.cols);
        let swizzle = [128, 64, 32].into_iter().find(|s| columns * BYTES == *s);
        let swizzle = swizzle.ok_or_else(|| {
            refused(format!(
                "rows of {columns} elements are not 128, 64 or 32 bytes"
            ))
        })?;
        let plain = Layout::row_major(&[rows, columns])?;
        // Pieces of 16 bytes are permuted by the number of their 128 bytes.
        let bits = (swizzle / 16_i64).trailing_zeros();
        let derived = Swizzled::new(Swizzle::new(bits, 3, 3)?, 0, plain)?;
        let shared = layout_codegen::view::in_bytes(&derived, BYTES)?;
        let of = TensorBox::of(&derived, BYTES).map_err(|e| refused(e.to_string()))?;
        if of.copies != 1 {
            return Err(refused(format!("{} boxes side by side", of.copies)));
        }
        // As many atoms as one instruction has matrices for.
        let together = 8 * 8 * 4 / (atom.m * atom.n);
        let side_by_side = Layout::mode(together, atom.m * atom.n)?;
        let fragment = Layout::tuple(&[
            atom.c.get(0)?,
            Layout::tuple(&[atom.c.get(1)?, side_by_side])?,
        ])?;
        let (points, trans) = [(&STMATRIX_X4, false), (&STMATRIX_X4_TRANS, true)]
            .into_iter()
            .find_map(|(by, trans)| Some((points(by, &fragment, rows)?, trans)))
            .ok_or_else(|| {
                refused(format!(
                    "stmatrix puts no rows of C together from the accumulators of {}",
                    atom.name
                ))
            })?;
        let along = Layout::mode(columns / (together * atom.n), rows * together * atom.n)?;
        let points = Layout::tuple(&[points, along])?;
        let row = Layout::flat(&[rows, columns], &[1, 0])?.compose(&points)?;
        let column = Layout::flat(&[rows, columns], &[0, 1])?.compose(&points)?;
        let bytes = rows * columns * BYTES;
        // As many as there is room for, so that each strip of a tile has the same place in every tile.
        let room = staging.bytes() / bytes;
        let places = (1..=room.min(strips)).rev().find(|n| strips % n == 0);
        let places = places.ok_or_else(|| refused(format!("no room for {bytes} bytes")))?;
        let all = Self {
            derived,
            shared,
            of,
            points: (row, column),
            trans,
            together,
            places,
        };
        all.without_conflicts()?;
        Ok(all)
    }

    /// Bytes of the place of a box.
    pub(crate) fn bytes(&self) -> i64 {
        self.of.rows * self.of.columns * BYTES
    }

    /// `stmatrix` puts each accumulator of the atoms where it is in C: element by element, from the definition of the instruction (PTX ISA, `stmatrix`).
    pub(crate) fn delivered(&self, atom: &MmaAtom) -> Result<Obligation, Refusal> {
        let name = "stmatrix puts the fragment's elements where they are in C".to_owned();
        let (row, column) = &self.points;
        for lane in 0..32 {
            for (register, part) in (0..4).flat_map(|r| [(r, 0), (r, 1)]) {
                // Register j of a lane is elements 2·(lane mod 4) and the next of row lane/4 of matrix j, or of that column where it transposes.
                let (line, along) = if self.trans {
                    (2 * (lane % 4) + part, lane / 4)
                } else {
                    (lane / 4, 2 * (lane % 4) + part)
                };
                let pointer = [8 * register + line, 0];
                let stored = (row.at(&pointer), column.at(&pointer) + along);
                // The lane's values: those of one atom, then of the next.
                let value = 2 * register + part;
                let each = atom.c.size() / 32;
                let at = atom.c.at(&[lane, value % each]);
                let held = (at % atom.m, at / atom.m + value / each * atom.n);
                if stored != held {
                    return Err(Refusal {
                        obligation: name,
                        reason: format!(
                            "lane {lane} register {register}: element {stored:?} instead of {held:?}"
                        ),
                    });
                }
            }
        }
        let evidence = format!("{} atoms at once, by enumeration", self.together);
        Ok(Obligation { name, evidence })
    }

    /// Each `stmatrix` takes as many wavefronts as it has matrices.
    fn without_conflicts(&self) -> Result<(), PlanError> {
        let (row, column) = &self.points;
        let access = Access::StMatrix {
            matrices: Matrices::X4,
            trans: self.trans,
        };
        for which in 0..row.get(1)?.size() {
            let byte = |lane| {
                let at = [lane as i64, which];
                self.shared.at(&[row.at(&at), column.at(&at)])
            };
            let counted = wavefronts(&NVIDIA, access, &std::array::from_fn(byte));
            let counted = counted.map_err(|e| refused(e.to_string()))?;
            if counted.wavefronts != counted.ideal {
                return Err(refused(format!(
                    "stmatrix takes {} wavefronts instead of {}",
                    counted.wavefronts, counted.ideal
                )));
            }
        }
        Ok(())
    }
}

/// Lane → `row + R·column` that it points at for `by` to store the fragment; none where that does not store eight neighbours of a row.
fn points(by: &CopyAtom, fragment: &Layout, rows: i64) -> Option<Layout> {
    let points = addresses_for(by, fragment).ok()?;
    let neighbours = (0..points.size()).all(|i| {
        let (lane, position) = (i % 32, i / 32);
        points.at(&[lane, position]) == points.at(&[lane, 0]) + rows * position
    });
    let lane = points.get(0).ok()?;
    neighbours.then_some(lane)
}

fn refused(reason: String) -> PlanError {
    PlanError::Refused(Refusal {
        obligation: "boxes of C that TMA stores".to_owned(),
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout_core::atoms::MMA_M16N8K16_F16;

    fn strip(columns: i64) -> Staging {
        Staging::new(&MMA_M16N8K16_F16, (false, false), (columns, 1), 8, 4).expect("a staging")
    }

    #[test]
    fn lanes_point_at_rows_of_sixteen_columns() {
        let boxes = Boxes::new(&MMA_M16N8K16_F16, &strip(64), 4).expect("boxes");
        let (row, column) = &boxes.points;
        for lane in 0..32 {
            for which in 0..4 {
                let at = [lane, which];
                let pointed = (row.at(&at), column.at(&at));
                assert_eq!(pointed, (lane % 16, 16 * which + 8 * (lane / 16)));
            }
        }
        assert_eq!(boxes.derived.to_string(), "Sw<3,3,3> o (16,64):(64,1)");
        let of = boxes.of;
        assert_eq!((of.rows, of.columns, of.swizzle_bytes), (16, 64, 128));
        assert_eq!((boxes.places, boxes.together, boxes.trans), (2, 2, false));
    }

    /// As many places as strips have in turn; narrower boxes have narrower swizzles, and conflicts where their rows share banks.
    #[test]
    fn places_and_widths() {
        let of = |columns, strips| Boxes::new(&MMA_M16N8K16_F16, &strip(columns), strips);
        assert_eq!(of(64, 3).map(|b| b.places), Ok(1));
        assert_eq!(of(64, 1).map(|b| b.places), Ok(1));
        assert_eq!(of(32, 2).map(|b| b.of.swizzle_bytes), Ok(64));
        let wide = of(128, 2).expect_err("256 bytes").to_string();
        assert!(wide.contains("not 128, 64 or 32 bytes"), "{wide}");
    }
}
