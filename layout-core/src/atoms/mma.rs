//! `mma.sync`: the fragments and the instructions made of them.
//!
//! With `g = lane >> 2` and `t = lane & 3`, every fragment is a layout of `((t, g), bits of i)`; the strides are read off the
//! manual's formulas. There are few distinct fragments: the width of an element decides how many neighbours along `k` a lane
//! holds (4 of 8 bits, 2 of 16, 1 of 32 and 64), and the shape decides how often.

use super::{Scalar, registers, tv};
use crate::layout::Layout;

/// A matrix instruction: `D (m×n) = A (m×k) · B (k×n) + C`, with the thread-value layouts of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
pub struct MmaAtom {
    /// The instruction in PTX; for wgmma, without the operands' immediates.
    pub name: &'static str,
    /// Rows of A, C and D.
    pub m: i64,
    /// Columns of B, C and D.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// Threads that execute it together: 32 (a warp) or 128 (a warpgroup).
    pub threads: i64,
    /// Element type of A.
    pub a_type: Scalar,
    /// Element type of B.
    pub b_type: Scalar,
    /// Element type of C and D.
    pub c_type: Scalar,
    /// A: `(thread, value) -> m + M·k`. For wgmma, of A in registers.
    pub a: Layout,
    /// B: `(thread, value) -> n + N·k`. For wgmma, whose B is read from shared memory through a descriptor, every thread
    /// stands for the whole of B: `(128, (N, K)):(0, (1, N))`.
    pub b: Layout,
    /// C and D: `(thread, value) -> m + M·n`.
    pub c: Layout,
    /// The first architecture that has it: 75 for `sm_75`.
    pub min_arch: u32,
}

impl MmaAtom {
    /// Values of A, B and C that a thread holds.
    pub const fn values(&self) -> [i64; 3] {
        let threads = self.threads;
        [
            self.m * self.k / threads,
            if threads == 128 {
                self.n * self.k
            } else {
                self.n * self.k / threads
            },
            self.m * self.n / threads,
        ]
    }

    /// Registers that a thread holds A, B and C in: 32-bit ones, or 64-bit ones for `f64`. 0 for the B of wgmma.
    pub const fn registers(&self) -> [i64; 3] {
        let [a, b, c] = self.values();
        [
            registers(a, self.a_type),
            if self.threads == 128 {
                0
            } else {
                registers(b, self.b_type)
            },
            registers(c, self.c_type),
        ]
    }
}

// C and D.
const C_8X8: Layout = tv("((4,8),2):((16,1),8)");
const C_16X8: Layout = tv("((4,8),(2,2)):((32,1),(16,8))");

// 64-bit and tf32 elements: one along k. Row g + 8(i&1), column t + 4(i>>1).
const A_8X4: Layout = tv("((4,8),1):((8,1),0)");
const B_8X4: Layout = tv("((4,8),1):((8,1),0)");
const A_16X4: Layout = tv("((4,8),2):((16,1),8)");
const A_16X8_B32: Layout = tv("((4,8),(2,2)):((16,1),(8,64))");
const A_16X16_B64: Layout = tv("((4,8),(2,4)):((16,1),(8,64))");
const B_8X8_B32: Layout = tv("((4,8),2):((8,1),32)");
const B_8X16_B64: Layout = tv("((4,8),4):((8,1),32)");

// 16-bit elements: two along k.
const A_16X8_B16: Layout = tv("((4,8),(2,2)):((32,1),(16,8))");
const A_16X16_B16: Layout = tv("((4,8),(2,2,2)):((32,1),(16,8,128))");
const B_8X8_B16: Layout = tv("((4,8),2):((16,1),8)");
const B_8X16_B16: Layout = tv("((4,8),(2,2)):((16,1),(8,64))");

// 8-bit elements: four along k.
const A_8X16_B8: Layout = tv("((4,8),4):((32,1),8)");
const B_8X16_B8: Layout = tv("((4,8),4):((32,1),8)");
const A_16X16_B8: Layout = tv("((4,8),(4,2)):((64,1),(16,8))");
const A_16X32_B8: Layout = tv("((4,8),(4,2,2)):((64,1),(16,8,256))");
const B_8X32_B8: Layout = tv("((4,8),(4,2)):((32,1),(8,128))");

/// Declares the atoms and the list of them.
macro_rules! atoms {
    ($($(#[$doc:meta])* $name:ident: $m:literal $n:literal $k:literal, $ptx:literal,
       $d:ident $a:ident $b:ident, $la:ident $lb:ident $lc:ident, $arch:literal;)*) => {
        $($(#[$doc])* pub const $name: MmaAtom = MmaAtom {
            name: $ptx,
            m: $m,
            n: $n,
            k: $k,
            threads: 32,
            a_type: Scalar::$a,
            b_type: Scalar::$b,
            c_type: Scalar::$d,
            a: $la,
            b: $lb,
            c: $lc,
            min_arch: $arch,
        };)*

        /// Every `mma.sync` atom.
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
    /// `u8` into `s32`, 8×8×16.
    MMA_M8N8K16_U8: 8 8 16, "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_8X16_B8 B_8X16_B8 C_8X8, 75;
    /// `s8` into `s32`, 16×8×16.
    MMA_M16N8K16_S8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `u8` into `s32`, 16×8×16.
    MMA_M16N8K16_U8: 16 8 16, "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X16_B8 B_8X16_B8 C_16X8, 80;
    /// `s8` into `s32`, 16×8×32.
    MMA_M16N8K32_S8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        S32 S8 S8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `u8` into `s32`, 16×8×32.
    MMA_M16N8K32_U8: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
        S32 U8 U8, A_16X32_B8 B_8X32_B8 C_16X8, 80;
    /// `e4m3` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E4M3: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
        F32 E4m3 E4m3, A_16X32_B8 B_8X32_B8 C_16X8, 89;
    /// `e5m2` into `f32`, 16×8×32 (PTX ISA 8.4).
    MMA_M16N8K32_E5M2: 16 8 32, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
        F32 E5m2 E5m2, A_16X32_B8 B_8X32_B8 C_16X8, 89;
}
