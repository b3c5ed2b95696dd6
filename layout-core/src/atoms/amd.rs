//! AMD's matrix instructions: MFMA of CDNA2 and CDNA3 (waves of 64 lanes), WMMA of RDNA3 (waves of 32 or 64).
//!
//! **MFMA.** M = N is 4, 16 or 32. The 64 lanes are, fastest first, M rows of A, the blocks, and what is left along k; a lane's values
//! are neighbours along k:
//!
//! | operand | value v of lane l |
//! |---|---|
//! | A | row l % M, block (l / M) % blocks, k = V·(l / (M·blocks)) + v, with V values in a lane |
//! | B | the same with a column for the row |
//! | C, D 32×32 | row 8·((v / 4) % 4) + 4·(l / 32) + v % 4, column l % 32, block v / 16 |
//! | C, D 16×16 | row 4·(l / 16) + v % 4, column l % 16, block v / 4 |
//! | C, D 4×4 | row v, column l % 4, block l / 4 |
//! | C, D 16×16 in `f64` | row 4v + l / 16, column l % 16 |
//! | C, D 4×4 in `f64` | row l / 16, column l % 4, block (l / 4) % 4 |
//!
//! The modifiers CBSZ, ABID and BLGP, which broadcast or permute blocks, are 0 here.
//!
//! **WMMA** of gfx11 is 16×16×16. Lanes 16 to 31 hold the same values of A and B as lanes 0 to 15 (in a wave of 64, all four groups of
//! 16 do): lane l has row l % 16 of A and column l % 16 of B, all of k. C and D have column l % 16 and row `2v + l / 16` (wave of 64:
//! `4v + l / 16`). A C of `f16` or `bf16` takes one half of each 32-bit register, the lower one, or with the bit of OPSEL the
//! upper one; the other half of D is kept.
//!
//! Sources: "AMD Instinct MI200" and "MI300" instruction set architecture (CDNA2, CDNA3), chapters on matrix arithmetic
//! instructions; "RDNA3" instruction set architecture, section on WMMA; AMD's matrix instruction calculator, from which the
//! tables of the tests were made.

use super::{MmaAtom, Scalar, Target, tv};
use crate::error::{LayoutError, attempt};
use crate::layout::Layout;

/// C and D of MFMA by shape: 32-bit accumulators of 32, 16 and 4 rows; `f64` of 16 and 4.
const C_32: Layout = tv("((32,2),(4,4)):((32,4),(1,8))");
const C_32_2B: Layout = tv("((32,2),(4,4,2)):((32,4),(1,8,1024))");
const C_16: Layout = tv("((16,4),4):((16,4),1)");
const C_16_4B: Layout = tv("((16,4),(4,4)):((16,4),(1,256))");
const C_4_16B: Layout = tv("((4,16),4):((4,16),1)");
const C_16_F64: Layout = tv("((16,4),4):((16,1),4)");
const C_4_F64: Layout = tv("((4,4,4),1):((4,16,1),0)");

/// A of MFMA, and B, whose columns take the place of the rows: `row + M·k + M·K·block`.
const fn operand(m: i64, k: i64, blocks: i64) -> Result<Layout, LayoutError> {
    let groups = 64 / (m * blocks);
    let values = k / groups;
    let lanes = if blocks == 1 {
        Layout::flat(&[m, groups], &[1, m * values])
    } else if groups == 1 {
        Layout::flat(&[m, blocks], &[1, m * k])
    } else {
        Layout::flat(&[m, blocks, groups], &[1, m * k, m * values])
    };
    Layout::tuple(&[attempt!(lanes), attempt!(Layout::mode(values, m))])
}

const fn mfma(
    name: &'static str,
    m: i64,
    k: i64,
    blocks: i64,
    types: [Scalar; 3],
    targets: &'static str,
) -> MmaAtom {
    let c = match (m, blocks, types[2].bits()) {
        (32, 1, _) => C_32,
        (32, _, _) => C_32_2B,
        (16, _, 64) => C_16_F64,
        (16, 1, _) => C_16,
        (16, _, _) => C_16_4B,
        (_, _, 64) => C_4_F64,
        _ => C_4_16B,
    };
    let a = crate::expect(operand(m, k, blocks));
    MmaAtom::unchecked(
        name,
        [m, m, k, blocks],
        64,
        types,
        [a, a, c],
        Target::Gfx(targets),
    )
}

/// Declares the atoms, the list of them, and the names that CDNA2 gives those it shares with CDNA3.
macro_rules! mfma_atoms {
    ($($doc:literal, $name:ident: $m:literal $k:literal $blocks:literal, $mnemonic:literal $cdna2:literal,
       $d:ident $a:ident $b:ident, $targets:literal;)*) => {
        $(
            #[doc = concat!($doc, ".")]
            pub const $name: MmaAtom = mfma(
                $mnemonic,
                $m,
                $k,
                $blocks,
                [Scalar::$a, Scalar::$b, Scalar::$d],
                $targets,
            );
        )*

        /// Every MFMA atom of gfx90a and gfx942. Those of both have their CDNA3 name.
        ///
        /// ```
        /// use layout_core::atoms::{MFMA_ATOMS, MFMA_F32_32X32X8_F16};
        /// assert!(MFMA_ATOMS.contains(&&MFMA_F32_32X32X8_F16));
        /// // Value 5 of lane 33 of C: row 8·1 + 4·1 + 1, column 1.
        /// assert_eq!(MFMA_F32_32X32X8_F16.c.at(&[33, 5]), 13 + 32);
        /// ```
        pub const MFMA_ATOMS: &[&MmaAtom] = &[$(&$name),*];

        /// The CDNA2 name of each of [`MFMA_ATOMS`], empty where CDNA2 lacks the instruction or uses the same name.
        ///
        /// ```
        /// use layout_core::atoms::{MFMA_ATOMS, MFMA_CDNA2_NAMES};
        /// let name = "v_mfma_f64_16x16x4_f64";
        /// let i = MFMA_ATOMS.iter().position(|atom| atom.name == name).unwrap();
        /// assert_eq!(MFMA_CDNA2_NAMES[i], "v_mfma_f64_16x16x4f64");
        /// ```
        pub const MFMA_CDNA2_NAMES: &[&str] = &[$($cdna2),*];
    };
}

mfma_atoms! {
    "`f32` into `f32`, 32×32×1, 2 blocks", MFMA_F32_32X32X1_2B_F32: 32 1 2, "v_mfma_f32_32x32x1_2b_f32" "v_mfma_f32_32x32x1f32",
        F32 F32 F32, "gfx90a, gfx942";
    "`f32` into `f32`, 16×16×1, 4 blocks", MFMA_F32_16X16X1_4B_F32: 16 1 4, "v_mfma_f32_16x16x1_4b_f32" "v_mfma_f32_16x16x1f32",
        F32 F32 F32, "gfx90a, gfx942";
    "`f32` into `f32`, 4×4×1, 16 blocks", MFMA_F32_4X4X1_16B_F32: 4 1 16, "v_mfma_f32_4x4x1_16b_f32" "v_mfma_f32_4x4x1f32",
        F32 F32 F32, "gfx90a, gfx942";
    "`f32` into `f32`, 32×32×2", MFMA_F32_32X32X2_F32: 32 2 1, "v_mfma_f32_32x32x2_f32" "v_mfma_f32_32x32x2f32",
        F32 F32 F32, "gfx90a, gfx942";
    "`f32` into `f32`, 16×16×4", MFMA_F32_16X16X4_F32: 16 4 1, "v_mfma_f32_16x16x4_f32" "v_mfma_f32_16x16x4f32",
        F32 F32 F32, "gfx90a, gfx942";
    "`f16` into `f32`, 32×32×4, 2 blocks", MFMA_F32_32X32X4_2B_F16: 32 4 2, "v_mfma_f32_32x32x4_2b_f16" "v_mfma_f32_32x32x4f16",
        F32 F16 F16, "gfx90a, gfx942";
    "`f16` into `f32`, 16×16×4, 4 blocks", MFMA_F32_16X16X4_4B_F16: 16 4 4, "v_mfma_f32_16x16x4_4b_f16" "v_mfma_f32_16x16x4f16",
        F32 F16 F16, "gfx90a, gfx942";
    "`f16` into `f32`, 4×4×4, 16 blocks", MFMA_F32_4X4X4_16B_F16: 4 4 16, "v_mfma_f32_4x4x4_16b_f16" "v_mfma_f32_4x4x4f16",
        F32 F16 F16, "gfx90a, gfx942";
    "`f16` into `f32`, 32×32×8", MFMA_F32_32X32X8_F16: 32 8 1, "v_mfma_f32_32x32x8_f16" "v_mfma_f32_32x32x8f16",
        F32 F16 F16, "gfx90a, gfx942";
    "`f16` into `f32`, 16×16×16", MFMA_F32_16X16X16_F16: 16 16 1, "v_mfma_f32_16x16x16_f16" "v_mfma_f32_16x16x16f16",
        F32 F16 F16, "gfx90a, gfx942";
    "`bf16` into `f32`, 32×32×4, 2 blocks", MFMA_F32_32X32X4_2B_BF16: 32 4 2, "v_mfma_f32_32x32x4_2b_bf16" "v_mfma_f32_32x32x4bf16_1k",
        F32 Bf16 Bf16, "gfx90a, gfx942";
    "`bf16` into `f32`, 16×16×4, 4 blocks", MFMA_F32_16X16X4_4B_BF16: 16 4 4, "v_mfma_f32_16x16x4_4b_bf16" "v_mfma_f32_16x16x4bf16_1k",
        F32 Bf16 Bf16, "gfx90a, gfx942";
    "`bf16` into `f32`, 4×4×4, 16 blocks", MFMA_F32_4X4X4_16B_BF16: 4 4 16, "v_mfma_f32_4x4x4_16b_bf16" "v_mfma_f32_4x4x4bf16_1k",
        F32 Bf16 Bf16, "gfx90a, gfx942";
    "`bf16` into `f32`, 32×32×8", MFMA_F32_32X32X8_BF16: 32 8 1, "v_mfma_f32_32x32x8_bf16" "v_mfma_f32_32x32x8bf16_1k",
        F32 Bf16 Bf16, "gfx90a, gfx942";
    "`bf16` into `f32`, 16×16×16", MFMA_F32_16X16X16_BF16: 16 16 1, "v_mfma_f32_16x16x16_bf16" "v_mfma_f32_16x16x16bf16_1k",
        F32 Bf16 Bf16, "gfx90a, gfx942";
    "`bf16` into `f32`, 32×32×2, 2 blocks", MFMA_F32_32X32X2BF16: 32 2 2, "v_mfma_f32_32x32x2bf16" "",
        F32 Bf16 Bf16, "gfx90a";
    "`bf16` into `f32`, 16×16×2, 4 blocks", MFMA_F32_16X16X2BF16: 16 2 4, "v_mfma_f32_16x16x2bf16" "",
        F32 Bf16 Bf16, "gfx90a";
    "`bf16` into `f32`, 4×4×2, 16 blocks", MFMA_F32_4X4X2BF16: 4 2 16, "v_mfma_f32_4x4x2bf16" "",
        F32 Bf16 Bf16, "gfx90a";
    "`bf16` into `f32`, 32×32×4", MFMA_F32_32X32X4BF16: 32 4 1, "v_mfma_f32_32x32x4bf16" "",
        F32 Bf16 Bf16, "gfx90a";
    "`bf16` into `f32`, 16×16×8", MFMA_F32_16X16X8BF16: 16 8 1, "v_mfma_f32_16x16x8bf16" "",
        F32 Bf16 Bf16, "gfx90a";
    "`i8` into `i32`, 32×32×4, 2 blocks", MFMA_I32_32X32X4_2B_I8: 32 4 2, "v_mfma_i32_32x32x4_2b_i8" "v_mfma_i32_32x32x4i8",
        S32 S8 S8, "gfx90a, gfx942";
    "`i8` into `i32`, 16×16×4, 4 blocks", MFMA_I32_16X16X4_4B_I8: 16 4 4, "v_mfma_i32_16x16x4_4b_i8" "v_mfma_i32_16x16x4i8",
        S32 S8 S8, "gfx90a, gfx942";
    "`i8` into `i32`, 4×4×4, 16 blocks", MFMA_I32_4X4X4_16B_I8: 4 4 16, "v_mfma_i32_4x4x4_16b_i8" "v_mfma_i32_4x4x4i8",
        S32 S8 S8, "gfx90a, gfx942";
    "`i8` into `i32`, 32×32×8", MFMA_I32_32X32X8I8: 32 8 1, "v_mfma_i32_32x32x8i8" "",
        S32 S8 S8, "gfx90a";
    "`i8` into `i32`, 16×16×16", MFMA_I32_16X16X16I8: 16 16 1, "v_mfma_i32_16x16x16i8" "",
        S32 S8 S8, "gfx90a";
    "`i8` into `i32`, 32×32×16", MFMA_I32_32X32X16_I8: 32 16 1, "v_mfma_i32_32x32x16_i8" "",
        S32 S8 S8, "gfx942";
    "`i8` into `i32`, 16×16×32", MFMA_I32_16X16X32_I8: 16 32 1, "v_mfma_i32_16x16x32_i8" "",
        S32 S8 S8, "gfx942";
    "`f64` into `f64`, 16×16×4", MFMA_F64_16X16X4_F64: 16 4 1, "v_mfma_f64_16x16x4_f64" "v_mfma_f64_16x16x4f64",
        F64 F64 F64, "gfx90a, gfx942";
    "`f64` into `f64`, 4×4×4, 4 blocks", MFMA_F64_4X4X4_4B_F64: 4 4 4, "v_mfma_f64_4x4x4_4b_f64" "v_mfma_f64_4x4x4f64",
        F64 F64 F64, "gfx90a, gfx942";
    "`xf32` into `f32`, 16×16×8", MFMA_F32_16X16X8_XF32: 16 8 1, "v_mfma_f32_16x16x8_xf32" "",
        F32 Xf32 Xf32, "gfx942";
    "`xf32` into `f32`, 32×32×4", MFMA_F32_32X32X4_XF32: 32 4 1, "v_mfma_f32_32x32x4_xf32" "",
        F32 Xf32 Xf32, "gfx942";
    "`bf8` into `f32`, 16×16×32", MFMA_F32_16X16X32_BF8_BF8: 16 32 1, "v_mfma_f32_16x16x32_bf8_bf8" "",
        F32 Bf8 Bf8, "gfx942";
    "`bf8` times `fp8` into `f32`, 16×16×32", MFMA_F32_16X16X32_BF8_FP8: 16 32 1, "v_mfma_f32_16x16x32_bf8_fp8" "",
        F32 Bf8 Fp8, "gfx942";
    "`fp8` times `bf8` into `f32`, 16×16×32", MFMA_F32_16X16X32_FP8_BF8: 16 32 1, "v_mfma_f32_16x16x32_fp8_bf8" "",
        F32 Fp8 Bf8, "gfx942";
    "`fp8` into `f32`, 16×16×32", MFMA_F32_16X16X32_FP8_FP8: 16 32 1, "v_mfma_f32_16x16x32_fp8_fp8" "",
        F32 Fp8 Fp8, "gfx942";
    "`bf8` into `f32`, 32×32×16", MFMA_F32_32X32X16_BF8_BF8: 32 16 1, "v_mfma_f32_32x32x16_bf8_bf8" "",
        F32 Bf8 Bf8, "gfx942";
    "`bf8` times `fp8` into `f32`, 32×32×16", MFMA_F32_32X32X16_BF8_FP8: 32 16 1, "v_mfma_f32_32x32x16_bf8_fp8" "",
        F32 Bf8 Fp8, "gfx942";
    "`fp8` times `bf8` into `f32`, 32×32×16", MFMA_F32_32X32X16_FP8_BF8: 32 16 1, "v_mfma_f32_32x32x16_fp8_bf8" "",
        F32 Fp8 Bf8, "gfx942";
    "`fp8` into `f32`, 32×32×16", MFMA_F32_32X32X16_FP8_FP8: 32 16 1, "v_mfma_f32_32x32x16_fp8_fp8" "",
        F32 Fp8 Fp8, "gfx942";
}

const WMMA_AB: Layout = tv("((16,2),16):((1,0),16)");
const WMMA_C: Layout = tv("((16,2),8):((16,1),2)");
const WMMA_AB_W64: Layout = tv("((16,4),16):((1,0),16)");
const WMMA_C_W64: Layout = tv("((16,4),4):((16,1),4)");

const fn wmma(name: &'static str, lanes: i64, types: [Scalar; 3]) -> MmaAtom {
    let [ab, c] = if lanes == 32 {
        [WMMA_AB, WMMA_C]
    } else {
        [WMMA_AB_W64, WMMA_C_W64]
    };
    let mut atom = MmaAtom::unchecked(
        name,
        [16, 16, 16, 1],
        lanes,
        types,
        [ab, ab, c],
        Target::Gfx("gfx11"),
    );
    // Half a register for each value of a 16-bit C.
    (atom.slot_bits[2], atom.slot_bits[3]) = (32, 32);
    atom
}

/// Declares the atoms of waves of 32 and of 64 lanes, and the list of all.
macro_rules! wmma_atoms {
    ($($doc:literal, $name:ident $wide:ident: $mnemonic:literal, $d:ident $ab:ident;)*) => {
        $(
            #[doc = concat!($doc, ", 16×16×16, 32 lanes.")]
            pub const $name: MmaAtom =
                wmma($mnemonic, 32, [Scalar::$ab, Scalar::$ab, Scalar::$d]);
            #[doc = concat!($doc, ", 16×16×16, 64 lanes.")]
            pub const $wide: MmaAtom =
                wmma($mnemonic, 64, [Scalar::$ab, Scalar::$ab, Scalar::$d]);
        )*

        /// Every WMMA atom of gfx11, for waves of 32 and of 64 lanes.
        ///
        /// ```
        /// use layout_core::atoms::{WMMA_ATOMS, WMMA_F32_F16};
        /// assert!(WMMA_ATOMS.iter().all(|atom| [atom.m, atom.n, atom.k] == [16; 3]));
        /// // Value 3 of lane 17 of C: row 2·3 + 1, column 1.
        /// assert_eq!(WMMA_F32_F16.c.at(&[17, 3]), 7 + 16);
        /// ```
        pub const WMMA_ATOMS: &[&MmaAtom] = &[$(&$name, &$wide),*];
    };
}

wmma_atoms! {
    "`f16` into `f32`", WMMA_F32_F16 WMMA_F32_F16_W64: "v_wmma_f32_16x16x16_f16", F32 F16;
    "`bf16` into `f32`", WMMA_F32_BF16 WMMA_F32_BF16_W64: "v_wmma_f32_16x16x16_bf16", F32 Bf16;
    "`f16` into `f16`", WMMA_F16_F16 WMMA_F16_F16_W64: "v_wmma_f16_16x16x16_f16", F16 F16;
    "`bf16` into `bf16`", WMMA_BF16_BF16 WMMA_BF16_BF16_W64: "v_wmma_bf16_16x16x16_bf16", Bf16 Bf16;
    "Signed or unsigned bytes into `i32`", WMMA_I32_IU8 WMMA_I32_IU8_W64: "v_wmma_i32_16x16x16_iu8", S32 Iu8;
    "Signed or unsigned nibbles into `i32`", WMMA_I32_IU4 WMMA_I32_IU4_W64: "v_wmma_i32_16x16x16_iu4", S32 Iu4;
}
