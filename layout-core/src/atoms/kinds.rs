//! `mma.sync` with a `.kind`: mixes of 8-, 6- and 4-bit floats of `sm_120a`.
//!
//! `kind::f8f6f4` multiplies any two of five types, in `m16n8k32`. Every value lies in an 8-bit slot: 6-bit ones in its lower bits,
//! `e2m1` in the middle four. `kind::mxf4` and `kind::mxf4nvf4` are `m16n8k64` of packed `e2m1` with a scale for each run of 16
//! or 32 values; their fragments are here, the registers of the scales are not. Sources: PTX ISA 9.0, sections 9.7.14.5.10,
//! 9.7.14.5.11 and 9.7.14.5.14.

use super::mma_sync::{A_16X32_B8, A_16X64_B4, B_8X32_B8, B_8X64_B4, C_16X8};
use super::{MmaAtom, Scalar, Target};
use crate::error::LayoutError;

/// Where the kinds exist. Family targets (`sm_120f`) have `kind::f8f6f4` from PTX ISA 8.8.
pub(super) const SM_120A: Target = Target::SmOnly("sm_120a, sm_121a");

/// The types that `kind::f8f6f4` mixes.
pub(super) const F8F6F4: [Scalar; 5] = [
    Scalar::E4m3,
    Scalar::E5m2,
    Scalar::E3m2,
    Scalar::E2m3,
    Scalar::E2m1,
];

/// The table of `$make!(a, b)` over the five types, in the order of [`F8F6F4`].
macro_rules! f8f6f4_table {
    ($make:ident) => {
        [
            f8f6f4_table!($make, "e4m3"),
            f8f6f4_table!($make, "e5m2"),
            f8f6f4_table!($make, "e3m2"),
            f8f6f4_table!($make, "e2m3"),
            f8f6f4_table!($make, "e2m1"),
        ]
    };
    ($make:ident, $a:literal) => {
        [
            $make!($a, "e4m3"),
            $make!($a, "e5m2"),
            $make!($a, "e3m2"),
            $make!($a, "e2m3"),
            $make!($a, "e2m1"),
        ]
    };
}
pub(super) use f8f6f4_table;

macro_rules! into_f32 {
    ($a:literal, $b:literal) => {
        concat!(
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.",
            $a,
            ".",
            $b,
            ".f32"
        )
    };
}
macro_rules! into_f16 {
    ($a:literal, $b:literal) => {
        concat!(
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.",
            $a,
            ".",
            $b,
            ".f16"
        )
    };
}

/// Names by accumulator (`f32`, `f16`), A and B.
const NAMES: [[[&str; 5]; 5]; 2] = [f8f6f4_table!(into_f32), f8f6f4_table!(into_f16)];

/// Which of the five types it is.
pub(super) const fn f8f6f4_number(
    operation: &'static str,
    scalar: Scalar,
) -> Result<usize, LayoutError> {
    match scalar {
        Scalar::E4m3 => Ok(0),
        Scalar::E5m2 => Ok(1),
        Scalar::E3m2 => Ok(2),
        Scalar::E2m3 => Ok(3),
        Scalar::E2m1 => Ok(4),
        _ => Err(LayoutError::Unsupported {
            operation,
            given: scalar.name(),
            accepted: "e4m3, e5m2, e3m2, e2m3 or e2m1",
        }),
    }
}

/// Which accumulator it is: 0 for `f32`, 1 for `f16`.
pub(super) const fn accumulator_number(
    operation: &'static str,
    scalar: Scalar,
) -> Result<usize, LayoutError> {
    match scalar {
        Scalar::F32 => Ok(0),
        Scalar::F16 => Ok(1),
        _ => Err(LayoutError::Unsupported {
            operation,
            given: scalar.name(),
            accepted: "f32 or f16 as accumulator",
        }),
    }
}

/// `mma.sync.m16n8k32` of `kind::f8f6f4`.
///
/// ```
/// use layout_core::atoms::{self, Scalar};
/// let atom = atoms::mma_f8f6f4(Scalar::E3m2, Scalar::E2m1, Scalar::F32).unwrap();
/// assert_eq!(atom.name, "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32");
/// assert_eq!(atom.registers(), [4, 2, 4]); // four values to a register, whatever their width
/// ```
///
/// # Errors
///
/// A type that is not one of the five, or an accumulator that is neither `f32` nor `f16`.
pub const fn mma_f8f6f4(a: Scalar, b: Scalar, accumulator: Scalar) -> Result<MmaAtom, LayoutError> {
    const OPERATION: &str = "mma.sync of kind::f8f6f4";
    let row = crate::error::attempt!(f8f6f4_number(OPERATION, a));
    let column = crate::error::attempt!(f8f6f4_number(OPERATION, b));
    let table = crate::error::attempt!(accumulator_number(OPERATION, accumulator));
    let mut atom = MmaAtom::unchecked(
        NAMES[table][row][column],
        [16, 8, 32, 1],
        32,
        [a, b, accumulator],
        [A_16X32_B8, B_8X32_B8, C_16X8],
        SM_120A,
    );
    atom.slot_bits[0] = 8;
    atom.slot_bits[1] = 8;
    Ok(atom)
}

/// Every `kind::f8f6f4` atom: 25 pairs of types into `f32`, then into `f16`.
///
/// ```
/// use layout_core::atoms::mma_f8f6f4_atoms;
/// assert_eq!(mma_f8f6f4_atoms().count(), 50);
/// assert!(mma_f8f6f4_atoms().all(|atom| atom.k == 32));
/// ```
pub fn mma_f8f6f4_atoms() -> impl Iterator<Item = MmaAtom> {
    [Scalar::F32, Scalar::F16]
        .into_iter()
        .flat_map(|accumulator| {
            F8F6F4.into_iter().flat_map(move |a| {
                F8F6F4
                    .into_iter()
                    .filter_map(move |b| mma_f8f6f4(a, b, accumulator).ok())
            })
        })
}

/// `m16n8k64` of packed `e2m1` with scales.
const fn e2m1(name: &'static str) -> MmaAtom {
    MmaAtom::unchecked(
        name,
        [16, 8, 64, 1],
        32,
        [Scalar::E2m1, Scalar::E2m1, Scalar::F32],
        [A_16X64_B4, B_8X64_B4, C_16X8],
        SM_120A,
    )
}

/// `e2m1` with a `ue8m0` scale for each 32 values along k.
///
/// ```
/// use layout_core::atoms::MMA_M16N8K64_MXF4;
/// assert_eq!(MMA_M16N8K64_MXF4.registers(), [4, 2, 4]);
/// ```
pub const MMA_M16N8K64_MXF4: MmaAtom = e2m1(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
);
/// `e2m1` with a `ue4m3` scale for each 16 values along k.
///
/// ```
/// use layout_core::atoms::{MMA_M16N8K64_MXF4, MMA_M16N8K64_NVF4};
/// assert_eq!(MMA_M16N8K64_NVF4.a, MMA_M16N8K64_MXF4.a); // only the scales differ
/// ```
pub const MMA_M16N8K64_NVF4: MmaAtom = e2m1(
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
);

/// The atoms of packed `e2m1`. Their scales' registers are not described here.
///
/// ```
/// use layout_core::atoms::{E2M1_ATOMS, Scalar};
/// assert!(E2M1_ATOMS.iter().all(|atom| atom.a_type == Scalar::E2m1));
/// ```
pub const E2M1_ATOMS: &[&MmaAtom] = &[&MMA_M16N8K64_MXF4, &MMA_M16N8K64_NVF4];
