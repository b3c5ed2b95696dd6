//! Atoms: hardware instructions as layouts.
//!
//! **What.** A tensor-core instruction is three *thread-value layouts*: for each operand, the coordinate of the matrix that
//! a lane's value number `i` holds. A copy instruction is two: the source and the destination of each thread. Tilings are
//! compositions of these layouts ([`crate::partition`]), without the formulas of the PTX manual.
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
//! **What there is.** One list for each family:
//!
//! | list | instructions |
//! |---|---|
//! | [`MMA_ATOMS`] | `mma.sync` of `f64`, `tf32`, `f16`, `bf16`, 8-bit floats and integers, 4-bit integers, bits |
//! | [`QUAD_PAIR_ATOMS`] | Volta's `mma.sync.m8n8k4` of `f16`: four products at once |
//! | [`mma_f8f6f4`], [`E2M1_ATOMS`] | `mma.sync` of 8-, 6- and 4-bit floats of `sm_120a` |
//! | [`SPARSE_MMA_ATOMS`], [`mma_sp_f8f6f4`], [`SPARSE_E2M1_ATOMS`] | `mma.sp` with its metadata |
//! | [`wgmma`] | `wgmma.mma_async` |
//! | [`tcgen05`] | operands, accumulators and copies of `tcgen05` |
//! | [`COPY_ATOMS`], [`BYTE_MATRIX_ATOMS`], [`vector_copy`] | `ldmatrix`, `stmatrix`, `cp.async`, plain loads and stores |
//! | [`FMA_M16N32_F32`] | outer products of a warp by `fma` |
//! | [`MFMA_ATOMS`], [`WMMA_ATOMS`] | AMD's matrix instructions |
//! | [`r700_lds_write`] | LDS writes of AMD's R700 |
//!
//! Not here: the registers of the scale factors of block-scaled kinds; accumulators whose C is `f16` and D `f32`, apart from
//! Volta's; AMD's sparse `smfmac`, and AMD targets other than gfx90a, gfx942 and gfx11.
//!
//! [`MmaAtom::new`], [`SparseMmaAtom::new`] and [`CopyAtom::new`] declare others, and check them.
//!
//! Sources: PTX ISA 9.0 and AMD's manuals, as each module says. The tests compare every lane and value with tables made by formulas
//! written independently of the layouts (`tests/golden/atoms`), or by AMD's calculator.

pub mod tcgen05;

mod amd;
mod copy;
mod copy_bytes;
mod fma;
mod kinds;
mod mma;
mod mma_sync;
mod quad_pair;
mod scalar;
mod sparse;
mod wgmma;

pub use crate::banks::r700::write_map as r700_lds_write;
pub use amd::*;
pub use copy::{
    COPY_ATOMS, CP_ASYNC_4, CP_ASYNC_8, CP_ASYNC_16, CopyAtom, LDMATRIX_X1, LDMATRIX_X1_TRANS,
    LDMATRIX_X2, LDMATRIX_X2_TRANS, LDMATRIX_X4, LDMATRIX_X4_TRANS, STMATRIX_X1, STMATRIX_X1_TRANS,
    STMATRIX_X2, STMATRIX_X2_TRANS, STMATRIX_X4, STMATRIX_X4_TRANS, vector_copy,
};
pub use copy_bytes::*;
pub use fma::FMA_M16N32_F32;
pub use kinds::{E2M1_ATOMS, MMA_M16N8K64_MXF4, MMA_M16N8K64_NVF4, mma_f8f6f4, mma_f8f6f4_atoms};
pub use mma::MmaAtom;
pub use mma_sync::*;
pub use quad_pair::*;
pub use scalar::{Scalar, Target};
pub use sparse::*;
pub use wgmma::{wgmma, wgmma_a, wgmma_d};

use crate::error::{LayoutError, attempt};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;
use crate::parse::expect_parse;

/// Registers that a fragment of `values` elements takes in a lane: 32-bit registers, or 64-bit ones for `f64`.
///
/// ```
/// use layout_core::atoms::{Scalar, registers};
/// assert_eq!((registers(8, Scalar::F16), registers(4, Scalar::F64)), (4, 4));
/// ```
pub const fn registers(values: i64, scalar: Scalar) -> i64 {
    if scalar.bits() == 64 {
        values
    } else {
        values * scalar.bits() / 32
    }
}

/// The address of each lane for a copy atom that fills a fragment, or stores it: `(thread, position) -> coordinate index`, where the
/// position counts the elements at one address.
///
/// `fragment` is the thread-value layout of the operand, `atom` copies the same number of values to each of the same threads.
/// The atom must have at `(thread, i)` the value that the operand has there, so the address layout is
/// `fragment ∘ registers⁻¹ ∘ memory`.
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
/// [`Layout::compose`]: an atom whose rows are not rows of the operand.
pub const fn addresses_for(atom: &CopyAtom, fragment: &Layout) -> Result<Layout, LayoutError> {
    let threads = attempt!(fragment.get(0)).size();
    let values = attempt!(fragment.get(1)).size();
    let atom_values = attempt!(atom.registers().get(1)).size();
    if threads != atom.threads || values != atom_values {
        let same_threads = threads == atom.threads;
        return Err(LayoutError::NumberMismatch {
            operation: atom.name,
            argument: if same_threads {
                "the number of values of the fragment"
            } else {
                "the number of threads of the fragment"
            },
            value: if same_threads { values } else { threads },
            expected: if same_threads {
                atom_values
            } else {
                atom.threads
            },
        });
    }
    let inverse = attempt!(atom.registers().right_inverse());
    let by_element = attempt!(fragment.compose(&inverse));
    by_element.compose(&atom.memory())
}

/// The colexicographic identity layout of a flat shape: the reference coordinates of a tile.
pub(crate) const fn identity(shape: &[i64]) -> Result<Layout, LayoutError> {
    Layout::compact(attempt!(IntTuple::flat(shape)))
}

/// Layouts of this module are written in the notation.
const fn tv(text: &str) -> Layout {
    expect_parse(Layout::parse(text))
}
