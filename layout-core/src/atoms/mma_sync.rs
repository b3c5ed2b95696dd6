//! `mma.sync` of one product per warp: the fragments and the instructions made of them.
//!
//! With `g = lane >> 2` and `t = lane & 3`, every fragment is a layout of `((t, g), bits of i)`; the strides are read off the
//! manual's formulas (PTX ISA 9.0, sections 9.7.14.5.2 to 9.7.14.5.13). There are few distinct fragments: the width of an element
//! decides how many neighbours along `k` a lane holds (32 of 1 bit, 8 of 4, 4 of 8, 2 of 16, 1 of 32 and 64), and the shape
//! decides how often.
//!
//! The formula of the manual for columns of A of `m16n8k256` with `i < 64` lacks the mask of its other cases: elements 32 to 63
//! are of row `g + 8` and of the same columns as elements 0 to 31, as in `m16n8k128`. An H100 was asked about it, about the other
//! fragments of 4 and 1 bits and about both shapes of 8-bit floats, one element of A at a time: the maps are these.

use super::{MmaAtom, Scalar, Target, tv};
use crate::layout::Layout;

// C and D.
pub(super) const C_8X8: Layout = tv("((4,8),2):((16,1),8)");
pub(super) const C_16X8: Layout = tv("((4,8),(2,2)):((32,1),(16,8))");

// 64-bit and tf32 elements: one along k. Row g + 8(i&1), column t + 4(i>>1).
const A_8X4: Layout = tv("((4,8),1):((8,1),0)");
const B_8X4: Layout = tv("((4,8),1):((8,1),0)");
pub(super) const A_16X4: Layout = tv("((4,8),2):((16,1),8)");
pub(super) const A_16X8_B32: Layout = tv("((4,8),(2,2)):((16,1),(8,64))");
const A_16X16_B64: Layout = tv("((4,8),(2,4)):((16,1),(8,64))");
pub(super) const B_8X8_B32: Layout = tv("((4,8),2):((8,1),32)");
const B_8X16_B64: Layout = tv("((4,8),4):((8,1),32)");
pub(super) const B_8X16_B32: Layout = B_8X16_B64;

// 16-bit elements: two along k.
pub(super) const A_16X8_B16: Layout = tv("((4,8),(2,2)):((32,1),(16,8))");
pub(super) const A_16X16_B16: Layout = tv("((4,8),(2,2,2)):((32,1),(16,8,128))");
const B_8X8_B16: Layout = tv("((4,8),2):((16,1),8)");
pub(super) const B_8X16_B16: Layout = tv("((4,8),(2,2)):((16,1),(8,64))");
pub(super) const B_8X32_B16: Layout = tv("((4,8),(2,4)):((16,1),(8,64))");

// 8-bit elements: four along k.
const A_8X16_B8: Layout = tv("((4,8),4):((32,1),8)");
const B_8X16_B8: Layout = tv("((4,8),4):((32,1),8)");
pub(super) const A_16X16_B8: Layout = tv("((4,8),(4,2)):((64,1),(16,8))");
pub(super) const A_16X32_B8: Layout = tv("((4,8),(4,2,2)):((64,1),(16,8,256))");
pub(super) const B_8X32_B8: Layout = tv("((4,8),(4,2)):((32,1),(8,128))");
pub(super) const B_8X64_B8: Layout = tv("((4,8),(4,4)):((32,1),(8,128))");

// 4-bit elements: eight along k.
const A_8X32_B4: Layout = tv("((4,8),8):((64,1),8)");
const B_8X32_B4: Layout = tv("((4,8),8):((64,1),8)");
pub(super) const A_16X32_B4: Layout = tv("((4,8),(8,2)):((128,1),(16,8))");
pub(super) const A_16X64_B4: Layout = tv("((4,8),(8,2,2)):((128,1),(16,8,512))");
pub(super) const B_8X64_B4: Layout = tv("((4,8),(8,2)):((64,1),(8,256))");
pub(super) const B_8X128_B4: Layout = tv("((4,8),(8,4)):((64,1),(8,256))");

// Bits: a whole register along k.
const A_8X128_B1: Layout = tv("((4,8),32):((256,1),8)");
const B_8X128_B1: Layout = tv("((4,8),32):((256,1),8)");
const A_16X128_B1: Layout = tv("((4,8),(32,2)):((512,1),(16,8))");
const A_16X256_B1: Layout = tv("((4,8),(32,2,2)):((512,1),(16,8,2048))");
const B_8X256_B1: Layout = tv("((4,8),(32,2)):((256,1),(8,1024))");

/// Declares the atoms and the list of them.
macro_rules! atoms {
    ($($(#[$doc:meta])* $name:ident: $m:literal $n:literal $k:literal, $ptx:literal,
       $d:ident $a:ident $b:ident, $la:ident $lb:ident $lc:ident, $arch:literal;)*) => {
        $($(#[$doc])* pub const $name: MmaAtom = MmaAtom::unchecked(
            $ptx,
            [$m, $n, $k, 1],
            32,
            [Scalar::$a, Scalar::$b, Scalar::$d],
            [$la, $lb, $lc],
            Target::Sm($arch),
        );)*

        /// Every `mma.sync` atom that computes one product per warp and whose types have no `.kind`.
        ///
        /// ```
        /// use layout_core::atoms::{MMA_ATOMS, Scalar};
        /// // The shapes that multiply `bf16`.
        /// let bf16 = MMA_ATOMS.iter().filter(|atom| atom.a_type == Scalar::Bf16);
        /// assert!(bf16.map(|atom| [atom.m, atom.n, atom.k]).eq([[16, 8, 8], [16, 8, 16]]));
        /// ```
        pub const MMA_ATOMS: &[&MmaAtom] = &[$(&$name),*];
    };
}

atoms! {
    /// `f64`, 8×8×4.
    MMA_M8N8K4_F64: 8 8 4, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        F64 F64 F64, A_8X4 B_8X4 C_8X8, 80;
    /// `f64`, 16×8×4.
    MMA_M16N8K4_F64: 16 8 4, "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64",
        F64 F64 F64, A_16X4 B_8X4 C_16X8, 90;
    /// `f64`, 16×8×8.
    MMA_M16N8K8_F64: 16 8 8, "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
        F64 F64 F64, A_16X8_B32 B_8X8_B32 C_16X8, 90;
    /// `f64`, 16×8×16.
    MMA_M16N8K16_F64: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
        F64 F64 F64, A_16X16_B64 B_8X16_B64 C_16X8, 90;
    /// `tf32` into `f32`, 16×8×4.
    MMA_M16N8K4_TF32: 16 8 4, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
        F32 Tf32 Tf32, A_16X4 B_8X4 C_16X8, 80;
    /// `tf32` into `f32`, 16×8×8.
    MMA_M16N8K8_TF32: 16 8 8, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        F32 Tf32 Tf32, A_16X8_B32 B_8X8_B32 C_16X8, 80;
    /// `f16` into `f32`, 16×8×8.
    MMA_M16N8K8_F16: 16 8 8, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
        F32 F16 F16, A_16X8_B16 B_8X8_B16 C_16X8, 75;
    /// `f16` into `f16`, 16×8×8.
    MMA_M16N8K8_F16_F16: 16 8 8, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
        F16 F16 F16, A_16X8_B16 B_8X8_B16 C_16X8, 75;
    /// `bf16` into `f32`, 16×8×8.
    MMA_M16N8K8_BF16: 16 8 8, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        F32 Bf16 Bf16, A_16X8_B16 B_8X8_B16 C_16X8, 80;
    /// `f16` into `f32`, 16×8×16.
    MMA_M16N8K16_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        F32 F16 F16, A_16X16_B16 B_8X16_B16 C_16X8, 80;
    /// `f16` into `f16`, 16×8×16.
    MMA_M16N8K16_F16_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        F16 F16 F16, A_16X16_B16 B_8X16_B16 C_16X8, 80;
    /// `bf16` into `f32`, 16×8×16.
    MMA_M16N8K16_BF16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        F32 Bf16 Bf16, A_16X16_B16 B_8X16_B16 C_16X8, 80;
    /// `s8` into `s32`, 8×8×16.
    MMA_M8N8K16_S8: 8 8 16, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_8X16_B8 B_8X16_B8 C_8X8, 75;
    /// `s8` times `u8` into `s32`, 8×8×16.
    MMA_M8N8K16_S8_U8: 8 8 16, "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32",
        S32 S8 U8, A_8X16_B8 B_8X16_B8 C_8X8, 75;
    /// `u8` times `s8` into `s32`, 8×8×16.
    MMA_M8N8K16_U8_S8: 8 8 16, "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32",
        S32 U8 S8, A_8X16_B8 B_8X16_B8 C_8X8, 75;
    /// `u8` into `s32`, 8×8×16.
    MMA_M8N8K16_U8: 8 8 16, "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_8X16_B8 B_8X16_B8 C_8X8, 75;
    /// `s8` into `s32`, 16×8×16.
    MMA_M16N8K16_S8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `s8` times `u8` into `s32`, 16×8×16.
    MMA_M16N8K16_S8_U8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32",
        S32 S8 U8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `u8` times `s8` into `s32`, 16×8×16.
    MMA_M16N8K16_U8_S8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32",
        S32 U8 S8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `u8` into `s32`, 16×8×16.
    MMA_M16N8K16_U8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `s8` into `s32`, 16×8×32.
    MMA_M16N8K32_S8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `s8` times `u8` into `s32`, 16×8×32.
    MMA_M16N8K32_S8_U8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
        S32 S8 U8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `u8` times `s8` into `s32`, 16×8×32.
    MMA_M16N8K32_U8_S8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32",
        S32 U8 S8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `u8` into `s32`, 16×8×32.
    MMA_M16N8K32_U8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `s4` into `s32`, 8×8×32.
    MMA_M8N8K32_S4: 8 8 32, "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32",
        S32 S4 S4, A_8X32_B4 B_8X32_B4 C_8X8, 75;
    /// `s4` times `u4` into `s32`, 8×8×32.
    MMA_M8N8K32_S4_U4: 8 8 32, "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32",
        S32 S4 U4, A_8X32_B4 B_8X32_B4 C_8X8, 75;
    /// `u4` times `s4` into `s32`, 8×8×32.
    MMA_M8N8K32_U4_S4: 8 8 32, "mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32",
        S32 U4 S4, A_8X32_B4 B_8X32_B4 C_8X8, 75;
    /// `u4` into `s32`, 8×8×32.
    MMA_M8N8K32_U4: 8 8 32, "mma.sync.aligned.m8n8k32.row.col.s32.u4.u4.s32",
        S32 U4 U4, A_8X32_B4 B_8X32_B4 C_8X8, 75;
    /// `s4` into `s32`, 16×8×32.
    MMA_M16N8K32_S4: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32",
        S32 S4 S4, A_16X32_B4 B_8X32_B4 C_16X8, 80;
    /// `s4` times `u4` into `s32`, 16×8×32.
    MMA_M16N8K32_S4_U4: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.s4.u4.s32",
        S32 S4 U4, A_16X32_B4 B_8X32_B4 C_16X8, 80;
    /// `u4` times `s4` into `s32`, 16×8×32.
    MMA_M16N8K32_U4_S4: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.u4.s4.s32",
        S32 U4 S4, A_16X32_B4 B_8X32_B4 C_16X8, 80;
    /// `u4` into `s32`, 16×8×32.
    MMA_M16N8K32_U4: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32",
        S32 U4 U4, A_16X32_B4 B_8X32_B4 C_16X8, 80;
    /// `s4` into `s32`, 16×8×64.
    MMA_M16N8K64_S4: 16 8 64, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
        S32 S4 S4, A_16X64_B4 B_8X64_B4 C_16X8, 80;
    /// `s4` times `u4` into `s32`, 16×8×64.
    MMA_M16N8K64_S4_U4: 16 8 64, "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
        S32 S4 U4, A_16X64_B4 B_8X64_B4 C_16X8, 80;
    /// `u4` times `s4` into `s32`, 16×8×64.
    MMA_M16N8K64_U4_S4: 16 8 64, "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32",
        S32 U4 S4, A_16X64_B4 B_8X64_B4 C_16X8, 80;
    /// `u4` into `s32`, 16×8×64.
    MMA_M16N8K64_U4: 16 8 64, "mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32",
        S32 U4 U4, A_16X64_B4 B_8X64_B4 C_16X8, 80;
    /// `b1` into `s32`, 8×8×128, bits combined by xor and counted.
    MMA_M8N8K128_B1_XOR: 8 8 128, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
        S32 B1 B1, A_8X128_B1 B_8X128_B1 C_8X8, 75;
    /// `b1` into `s32`, 8×8×128, bits combined by and and counted.
    MMA_M8N8K128_B1_AND: 8 8 128, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
        S32 B1 B1, A_8X128_B1 B_8X128_B1 C_8X8, 80;
    /// `b1` into `s32`, 16×8×128, bits combined by xor and counted.
    MMA_M16N8K128_B1_XOR: 16 8 128, "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc",
        S32 B1 B1, A_16X128_B1 B_8X128_B1 C_16X8, 80;
    /// `b1` into `s32`, 16×8×128, bits combined by and and counted.
    MMA_M16N8K128_B1_AND: 16 8 128, "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc",
        S32 B1 B1, A_16X128_B1 B_8X128_B1 C_16X8, 80;
    /// `b1` into `s32`, 16×8×256, bits combined by xor and counted.
    MMA_M16N8K256_B1_XOR: 16 8 256, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
        S32 B1 B1, A_16X256_B1 B_8X256_B1 C_16X8, 80;
    /// `b1` into `s32`, 16×8×256, bits combined by and and counted.
    MMA_M16N8K256_B1_AND: 16 8 256, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
        S32 B1 B1, A_16X256_B1 B_8X256_B1 C_16X8, 80;
    /// `e4m3` into `f32`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E4M3: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32",
        F32 E4m3 E4m3, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e4m3` into `f16`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E4M3_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16",
        F16 E4m3 E4m3, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e4m3` times `e5m2` into `f32`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E4M3_E5M2: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32",
        F32 E4m3 E5m2, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e4m3` times `e5m2` into `f16`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E4M3_E5M2_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e5m2.f16",
        F16 E4m3 E5m2, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e5m2` times `e4m3` into `f32`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E5M2_E4M3: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e4m3.f32",
        F32 E5m2 E4m3, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e5m2` times `e4m3` into `f16`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E5M2_E4M3_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16",
        F16 E5m2 E4m3, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e5m2` into `f32`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E5M2: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f32.e5m2.e5m2.f32",
        F32 E5m2 E5m2, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e5m2` into `f16`, 16×8×16 (PTX ISA 8.7).
    MMA_M16N8K16_E5M2_F16: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e5m2.f16",
        F16 E5m2 E5m2, A_16X16_B8 B_8X16_B8 C_16X8, 89;
    /// `e4m3` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E4M3: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
        F32 E4m3 E4m3, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e4m3` into `f16`, 16×8×32 (PTX ISA 8.7).
    MMA_M16N8K32_E4M3_F16: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16",
        F16 E4m3 E4m3, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e4m3` times `e5m2` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E4M3_E5M2: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
        F32 E4m3 E5m2, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e4m3` times `e5m2` into `f16`, 16×8×32 (PTX ISA 8.7).
    MMA_M16N8K32_E4M3_E5M2_F16: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16",
        F16 E4m3 E5m2, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e5m2` times `e4m3` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E5M2_E4M3: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32",
        F32 E5m2 E4m3, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e5m2` times `e4m3` into `f16`, 16×8×32 (PTX ISA 8.7).
    MMA_M16N8K32_E5M2_E4M3_F16: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
        F16 E5m2 E4m3, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e5m2` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E5M2: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
        F32 E5m2 E5m2, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e5m2` into `f16`, 16×8×32 (PTX ISA 8.7).
    MMA_M16N8K32_E5M2_F16: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16",
        F16 E5m2 E5m2, A_16X32_B8 B_8X32_B8 C_16X8, 89;
}
