//! `ldmatrix` and `stmatrix` of bytes (`sm_100a` and later families).
//!
//! The rows that lanes point at are 16 bytes, as for matrices of halves, so a block is numbered
//! `byte + 16·row + 16·ROWS·matrix` as it lies in memory:
//!
//! | instruction | a matrix in memory | lane's address | byte b of register r of lane t + 4g |
//! |---|---|---|---|
//! | `ldmatrix.m16n16.trans.b8` | 16 rows | row `lane & 15` of matrix `lane >> 4` | row 4t + b, byte g + 8·(r & 1), matrix r >> 1 |
//! | `ldmatrix.m8n16.b8x16` | 8 rows | row `lane & 7` of matrix `lane >> 3` | row g, byte 4t + b, matrix r |
//! | `stmatrix.m16n8.trans.b8` | 8 rows | row `lane & 7` of matrix `lane >> 3` | row 2t + (b & 1), byte g + 8·(b >> 1), matrix r |
//!
//! So the transposed load gives a lane four neighbours down a column, which is what A and B of an 8-bit `mma` want of a matrix
//! stored across k; and the store takes C of `m16n8`, packed to bytes, and writes its columns as rows.
//!
//! The formats `b4x16_p64` and `b6x16_p32` read rows of 16 elements of 4 or 6 bits, packed into the first 8 or 12 of 16 bytes,
//! and give each element a byte ([`CopyAtom::memory_bits`]).
//!
//! Sources: PTX ISA 9.0, sections 9.7.14.5.15 (figures 105 and 106) and 9.7.14.5.16 (figure 108); CuTe's
//! `copy_traits_sm100.hpp`, whose `SM100_U8x8_LDSM_T` permutes the bytes after the load. Not run on the hardware here.

use super::{CopyAtom, Target, tv};
use crate::layout::Layout;

const ROWS_M16_X1: Layout = tv("((16,2),16):((16,0),1)");
const ROWS_M16_X2: Layout = tv("((16,2),16):((16,256),1)");
const ROWS_M8_X1: Layout = tv("((8,4),16):((16,0),1)");
const ROWS_M8_X2: Layout = tv("((8,2,2),16):((16,128,0),1)");
const ROWS_M8_X4: Layout = tv("((8,4),16):((16,128),1)");

const M16N16_X1: Layout = tv("((4,8),(4,2)):((64,1),(16,8))");
const M16N16_X2: Layout = tv("((4,8),(4,2,2)):((64,1),(16,8,256))");
const M8N16_X1: Layout = tv("((4,8),4):((4,16),1)");
const M8N16_X2: Layout = tv("((4,8),(4,2)):((4,16),(1,128))");
const M8N16_X4: Layout = tv("((4,8),(4,4)):((4,16),(1,128))");
const M16N8_X1: Layout = tv("((4,8),(2,2)):((32,1),(16,8))");
const M16N8_X2: Layout = tv("((4,8),(2,2,2)):((32,1),(16,8,128))");
const M16N8_X4: Layout = tv("((4,8),(2,2,4)):((32,1),(16,8,128))");

/// The targets named by the PTX ISA; families (`sm_100f`, …) have them from PTX ISA 8.8.
const BLACKWELL: Target = Target::SmOnly("sm_100a, sm_110a, sm_120a and their families");

/// Declares the atoms and the list of them.
macro_rules! atoms {
    ($($name:ident, $ptx:literal, $src:ident, $dst:ident, $stores:literal, $rows:literal, $bits:literal;)*) => {
        $(
            #[doc = concat!("`", $ptx, "`.")]
            pub const $name: CopyAtom = CopyAtom {
                name: $ptx,
                threads: 32,
                element_bits: 8,
                src: $src,
                dst: $dst,
                stores: $stores,
                matrix: [$rows, 16],
                memory_bits: $bits,
                target: BLACKWELL,
            };
        )*

        /// Every `ldmatrix` and `stmatrix` of bytes.
        ///
        /// ```
        /// use layout_core::atoms::{BYTE_MATRIX_ATOMS, LDMATRIX_M16N16_X1};
        /// assert!(BYTE_MATRIX_ATOMS.contains(&&LDMATRIX_M16N16_X1));
        /// // Byte 2 of register 1 of lane 5 = 1 + 4·1: row 4·1 + 2, byte 1 + 8.
        /// assert_eq!(LDMATRIX_M16N16_X1.dst.at(&[5, 4 + 2]), 9 + 16 * 6);
        /// ```
        pub const BYTE_MATRIX_ATOMS: &[&CopyAtom] = &[$(&$name),*];
    };
}

atoms! {
    LDMATRIX_M16N16_X1, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", ROWS_M16_X1, M16N16_X1, false, 16, 8;
    LDMATRIX_M16N16_X2, "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", ROWS_M16_X2, M16N16_X2, false, 16, 8;
    LDMATRIX_M16N16_X1_B6, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32", ROWS_M16_X1, M16N16_X1, false, 16, 6;
    LDMATRIX_M16N16_X2_B6, "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32", ROWS_M16_X2, M16N16_X2, false, 16, 6;
    LDMATRIX_M16N16_X1_B4, "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64", ROWS_M16_X1, M16N16_X1, false, 16, 4;
    LDMATRIX_M16N16_X2_B4, "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64", ROWS_M16_X2, M16N16_X2, false, 16, 4;
    LDMATRIX_M8N16_X1_B6, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32", ROWS_M8_X1, M8N16_X1, false, 8, 6;
    LDMATRIX_M8N16_X2_B6, "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32", ROWS_M8_X2, M8N16_X2, false, 8, 6;
    LDMATRIX_M8N16_X4_B6, "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32", ROWS_M8_X4, M8N16_X4, false, 8, 6;
    LDMATRIX_M8N16_X1_B4, "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64", ROWS_M8_X1, M8N16_X1, false, 8, 4;
    LDMATRIX_M8N16_X2_B4, "ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64", ROWS_M8_X2, M8N16_X2, false, 8, 4;
    LDMATRIX_M8N16_X4_B4, "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", ROWS_M8_X4, M8N16_X4, false, 8, 4;
    STMATRIX_M16N8_X1, "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", M16N8_X1, ROWS_M8_X1, true, 8, 8;
    STMATRIX_M16N8_X2, "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8", M16N8_X2, ROWS_M8_X2, true, 8, 8;
    STMATRIX_M16N8_X4, "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", M16N8_X4, ROWS_M8_X4, true, 8, 8;
}
