//! `mma.sync.m8n8k4` of `f16`: four products per warp, one for each quad pair.
//!
//! Quad pair `q` is lanes `4q..4q+4` and `16+4q..16+4q+4`, so a lane is `l + 4q + 16h`, and `q` is the block. Sources: PTX ISA 9.0,
//! section 9.7.14.5.1. The index of A is `row + 8·k + 32·q`, that of B `n + 8·k + 32·q`, that of C `row + 8·col + 64·q`:
//!
//! | operand | element i of lane l + 4q + 16h |
//! |---|---|
//! | A `.row` | row l + 4h, k = i |
//! | A `.col` | row i + 4h, k = l |
//! | B `.row` | k = l, n = i + 4h |
//! | B `.col` | k = i, n = l + 4h |
//! | C, D in `f16` | row l + 4h, col i |
//! | C, D in `f32` | row (l & 1) + (i & 2) + 4h, col (i & 4) + (l & 2) + (i & 1) |
//!
//! The instruction is made for `sm_70`; later processors run it much more slowly. An H100 has these maps, measured one element of A
//! at a time for the eight atoms whose C and D have one type.

use super::{MmaAtom, Scalar, Target, tv};
use crate::layout::Layout;

// A .row and B .col are the same map, as are A .col and B .row.
const ALONG_K: Layout = tv("((4,4,2),4):((1,32,4),8)");
const ACROSS_K: Layout = tv("((4,4,2),4):((8,32,4),1)");
const C_F16: Layout = tv("((4,4,2),8):((1,64,4),8)");
const C_F32: Layout = tv("((2,2,4,2),(2,2,2)):((1,16,64,4),(8,2,32))");

/// An atom whose D may have another type than its C.
const fn atom(
    name: &'static str,
    [c_type, d_type]: [Scalar; 2],
    [a, b, c, d]: [Layout; 4],
) -> MmaAtom {
    let mut atom = MmaAtom::unchecked(
        name,
        [8, 8, 4, 4],
        32,
        [Scalar::F16, Scalar::F16, c_type],
        [a, b, c],
        Target::Sm(70),
    );
    atom.d_type = d_type;
    atom.d = d;
    atom.slot_bits[3] = d_type.bits();
    atom
}

/// Declares the atoms of each pair of layouts, and the list of all.
macro_rules! atoms {
    ($($f32:ident $mixed:ident $f16:ident: $la:literal $lb:literal, $a:ident $b:ident;)*) => {
        $(
            #[doc = concat!("`f16` into `f32`, four times 8×8×4, A `.", $la, "`, B `.", $lb, "`.")]
            pub const $f32: MmaAtom = atom(
                concat!("mma.sync.aligned.m8n8k4.", $la, ".", $lb, ".f32.f16.f16.f32"),
                [Scalar::F32; 2],
                [$a, $b, C_F32, C_F32],
            );
            #[doc = concat!("`f16` with C in `f16` and D in `f32`, four times 8×8×4, A `.", $la, "`, B `.", $lb, "`.")]
            pub const $mixed: MmaAtom = atom(
                concat!("mma.sync.aligned.m8n8k4.", $la, ".", $lb, ".f32.f16.f16.f16"),
                [Scalar::F16, Scalar::F32],
                [$a, $b, C_F16, C_F32],
            );
            #[doc = concat!("`f16` into `f16`, four times 8×8×4, A `.", $la, "`, B `.", $lb, "`.")]
            pub const $f16: MmaAtom = atom(
                concat!("mma.sync.aligned.m8n8k4.", $la, ".", $lb, ".f16.f16.f16.f16"),
                [Scalar::F16; 2],
                [$a, $b, C_F16, C_F16],
            );
        )*

        /// Every `mma.sync.m8n8k4` of `f16`.
        ///
        /// ```
        /// use layout_core::atoms::{MMA_M8N8K4_ROW_COL_F16, QUAD_PAIR_ATOMS};
        /// assert!(QUAD_PAIR_ATOMS.iter().all(|atom| atom.blocks == 4));
        /// // Value 2 of lane 1 + 4·3 + 16: row 1 + 4, column k = 2 of A of quad pair 3.
        /// assert_eq!(MMA_M8N8K4_ROW_COL_F16.a.at(&[29, 2]), 5 + 8 * 2 + 32 * 3);
        /// ```
        pub const QUAD_PAIR_ATOMS: &[&MmaAtom] = &[$(&$f32, &$mixed, &$f16),*];
    };
}

atoms! {
    MMA_M8N8K4_ROW_COL_F16 MMA_M8N8K4_ROW_COL_F16_F16_F32 MMA_M8N8K4_ROW_COL_F16_F16: "row" "col", ALONG_K ALONG_K;
    MMA_M8N8K4_ROW_ROW_F16 MMA_M8N8K4_ROW_ROW_F16_F16_F32 MMA_M8N8K4_ROW_ROW_F16_F16: "row" "row", ALONG_K ACROSS_K;
    MMA_M8N8K4_COL_COL_F16 MMA_M8N8K4_COL_COL_F16_F16_F32 MMA_M8N8K4_COL_COL_F16_F16: "col" "col", ACROSS_K ALONG_K;
    MMA_M8N8K4_COL_ROW_F16 MMA_M8N8K4_COL_ROW_F16_F16_F32 MMA_M8N8K4_COL_ROW_F16_F16: "col" "row", ACROSS_K ACROSS_K;
}
