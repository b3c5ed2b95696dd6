//! Atoms: what one hardware instruction does, as layouts.
//!
//! **What.** A tensor-core instruction is three *thread-value layouts*: for each operand, the coordinate of the matrix that
//! a lane's value number `i` holds. A copy instruction is two: what each thread gives, and what each thread gets. Everything
//! that a tiling needs is then composition ([`crate::partition`]), and no formula of the PTX manual is ever written again.
//!
//! **Conventions.** A thread-value layout maps `(thread, value)` to the colexicographic index of a coordinate, the first
//! axis fastest: `row + ROWS·col`. Operand A is `(m, k)`, C and D are `(m, n)`, and B is `(n, k)` (CuTe's convention), so B's
//! index is `n + N·k`. Values are numbered as the manual numbers the elements of a fragment (a0, a1, …); several narrow
//! values share a 32-bit register, lowest first.
//!
//! **Worked example.** C of `m16n8` has, with `g = lane >> 2` and `t = lane & 3`, element `i` at row `g + 8·(i >> 1)` and
//! column `2t + (i & 1)`. The index is `row + 16·col`, so `t` counts 32, `g` counts 1, the low bit of `i` 16 and the high
//! bit 8:
//!
//! ```
//! use layout_core::atoms;
//! assert_eq!(atoms::MMA_M16N8K16_F16.c.to_string(), "((4,8),(2,2)):((32,1),(16,8))");
//! let (lane, i) = (13, 2);
//! let (row, col) = ((lane >> 2) + 8 * (i >> 1), 2 * (lane & 3) + (i & 1));
//! assert_eq!(atoms::MMA_M16N8K16_F16.c.at(&[lane, i]), row + 16 * col);
//! ```
//!
//! Sources: PTX ISA 9.0, sections on mma fragments (9.7.14.5), ldmatrix, stmatrix, wgmma register fragments (9.7.15.5) and
//! cp.async; AMD R700 ISA manual, section 2.6.2. The tests restate the formulas and compare every lane and value.

mod copy;
mod mma;
mod wgmma;

pub use crate::banks::r700::write_map as r700_lds_write;
pub use copy::{
    COPY_ATOMS, CP_ASYNC_4, CP_ASYNC_8, CP_ASYNC_16, CopyAtom, LDMATRIX_X1, LDMATRIX_X1_TRANS,
    LDMATRIX_X2, LDMATRIX_X2_TRANS, LDMATRIX_X4, LDMATRIX_X4_TRANS, STMATRIX_X1, STMATRIX_X1_TRANS,
    STMATRIX_X2, STMATRIX_X2_TRANS, STMATRIX_X4, STMATRIX_X4_TRANS, vector_copy,
};
pub use mma::{
    MMA_ATOMS, MMA_M8N8K4_F64, MMA_M8N8K16_S8, MMA_M8N8K16_U8, MMA_M16N8K4_F64, MMA_M16N8K4_TF32,
    MMA_M16N8K8_BF16, MMA_M16N8K8_F16, MMA_M16N8K8_F16_F16, MMA_M16N8K8_F64, MMA_M16N8K8_TF32,
    MMA_M16N8K16_BF16, MMA_M16N8K16_F16, MMA_M16N8K16_F16_F16, MMA_M16N8K16_F64, MMA_M16N8K16_S8,
    MMA_M16N8K16_U8, MMA_M16N8K32_E4M3, MMA_M16N8K32_E5M2, MMA_M16N8K32_S8, MMA_M16N8K32_U8,
    MmaAtom,
};
pub use wgmma::{wgmma, wgmma_a, wgmma_d};

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parse::expect_parse;

/// The element types of operands and registers, with the names PTX gives them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Scalar {
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// `tf32`: 32 bits, of which 19 count; convert with `cvt.rna.tf32` first.
    Tf32,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `s8`.
    S8,
    /// `u8`.
    U8,
    /// `e4m3`.
    E4m3,
    /// `e5m2`.
    E5m2,
    /// `s32`.
    S32,
}

impl Scalar {
    /// Width in bits, in memory and in a register.
    pub const fn bits(self) -> i64 {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
        }
    }

    /// The type's name in PTX.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::S32 => "s32",
        }
    }
}

/// How many registers a lane holds a fragment of `values` elements in: 32-bit ones, or 64-bit ones for `f64`.
pub const fn registers(values: i64, scalar: Scalar) -> i64 {
    if scalar.bits() == 64 {
        values
    } else {
        values * scalar.bits() / 32
    }
}

/// Where each lane has to point, so that a copy atom fills a fragment: `(thread, position) -> coordinate index`, position
/// counting the elements that one address stands for.
///
/// `fragment` is the thread-value layout of the operand, `atom` copies the same number of values to each of the same threads.
/// The value that the atom puts at `(thread, i)` is the one that the operand wants there, so the address layout is
/// `fragment ∘ dst⁻¹ ∘ src`.
///
/// ```
/// use layout_core::atoms;
/// // A of m16n8k16 by ldmatrix.x4: lane l points at row l % 16, column 8·(l / 16).
/// let points = atoms::addresses_for(&atoms::LDMATRIX_X4, &atoms::MMA_M16N8K16_F16.a).unwrap();
/// for lane in 0..32 {
///     assert_eq!(points.at(&[lane, 0]), lane % 16 + 16 * 8 * (lane / 16));
/// }
/// ```
///
/// # Errors
///
/// A fragment of another number of threads or values, and the errors of
/// [`composition`](crate::composition()): an atom whose rows are not rows of the operand.
pub const fn addresses_for(atom: &CopyAtom, fragment: &Layout) -> Result<Layout, LayoutError> {
    let threads = attempt!(fragment.get(0)).size();
    let values = attempt!(fragment.get(1)).size();
    let atom_values = attempt!(atom.dst.get(1)).size();
    if threads != atom.threads || values != atom_values {
        return Err(LayoutError::NotDivisible {
            operation: "a fragment filled by one copy atom",
            mode: if threads == atom.threads { 1 } else { 0 },
            value: if threads == atom.threads {
                values
            } else {
                threads
            },
            divisor: if threads == atom.threads {
                atom_values
            } else {
                atom.threads
            },
        });
    }
    let inverse = attempt!(atom.dst.right_inverse());
    let by_element = attempt!(fragment.compose(&inverse));
    by_element.compose(&atom.src)
}

/// The colexicographic identity layout of a flat shape: the reference coordinates of a tile.
pub(crate) const fn identity(shape: &[i64]) -> Result<Layout, LayoutError> {
    Layout::compact(attempt!(IntTuple::flat(shape)))
}

/// Layouts of this module are written in the notation.
const fn tv(text: &str) -> Layout {
    expect_parse(Layout::parse(text))
}
