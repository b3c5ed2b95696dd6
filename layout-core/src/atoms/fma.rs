//! Outer products of fused multiply-adds by a warp, as atoms.
//!
//! **What.** No instruction multiplies matrices here: each lane holds a few elements of a column of A and of a row of B, and multiplies all pairs by
//! `fma`. Seen as a whole, a warp multiplies an M×1 matrix by a 1×N matrix, so that the tilings of tensor-core kernels serve FMA kernels too.
//!
//! **Why these lanes.** A lane reads 4 neighbours of A and 4 of B by one 16-byte load each. Lanes `l` and `l^1` read the same 4 of B, lanes `l` and `l^2`
//! the same 4 of A: the pair rule merges the phases of both loads, so that each costs 2 wavefronts and not 4 (the lane map of maxas).
//!
//! **Worked example.** Lane bits 0 and 4 are the row of the 4×8 grid of lanes, bits 1 to 3 its column. Lane 19 = 0b10011 has row 3 and column 1:
//!
//! ```
//! use layout_core::atoms::FMA_M16N32_F32 as FMA;
//! assert_eq!((FMA.a.at(&[19, 0]), FMA.b.at(&[19, 0])), (12, 4));
//! assert_eq!(FMA.c.at(&[19, 0]), 12 + 16 * 4);
//! ```

use super::{MmaAtom, Scalar, Target, tv};

/// 4×4 products a lane, 4×8 lanes: 16×1 by 1×32 of `f32`.
///
/// Values of C are numbered along a row first, so that 4 neighbours lie in 4 registers that follow each other.
///
/// ```
/// use layout_core::atoms::FMA_M16N32_F32;
/// assert!(FMA_M16N32_F32.checked().is_ok());
/// assert_eq!(FMA_M16N32_F32.registers(), [4, 4, 16]);
/// ```
pub const FMA_M16N32_F32: MmaAtom = MmaAtom::unchecked(
    "fma.rn.f32, 4x4 a lane",
    [16, 32, 1, 1],
    32,
    [Scalar::F32; 3],
    [
        tv("((2,8,2),4):((4,0,8),1)"),
        tv("((2,8,2),4):((0,4,0),1)"),
        tv("((2,8,2),(4,4)):((4,64,8),(16,1))"),
    ],
    Target::Sm(50),
);
