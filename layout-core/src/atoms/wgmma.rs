//! `wgmma`: the fragments of a warpgroup.
//!
//! 128 threads, four warps one below the other: thread = `t + 4g + 32w`, and warp `w` owns rows `16w..16w+16`. D is
//! `row 16w + g + 8·((i>>1)&1)`, `col 8·(i>>2) + 2t + (i&1)`; A in registers is D's formula over 16 columns for 16-bit
//! elements, and the same pattern with 4 or 1 neighbours along k for 8-bit and tf32 elements. Eight values of D, packed to
//! 16 bits, are exactly the registers of one `stmatrix.x4`.

use super::{MmaAtom, Scalar, Target, tv};
use crate::error::{LayoutError, attempt};
use crate::layout::Layout;

/// D (and C) of `wgmma` m64nN: `(thread, value) -> row + 64·col`, `N / 2` values a thread.
///
/// ```
/// use layout_core::atoms::wgmma_d;
/// // Lane 5 of warp 1: row 16 + 1, columns 2 and 3.
/// let d = wgmma_d(64).unwrap();
/// assert_eq!([0, 1].map(|value| d.at(&[32 + 5, value])), [17 + 64 * 2, 17 + 64 * 3]);
/// assert!(wgmma_d(12).is_err());
/// ```
///
/// # Errors
///
/// `n` that is not a multiple of 8 from 8 to 256.
pub const fn wgmma_d(n: i64) -> Result<Layout, LayoutError> {
    if n % 8 != 0 || n < 8 || n > 256 {
        return Err(LayoutError::InvalidNumber {
            operation: "wgmma",
            argument: "n",
            value: n,
            accepted: "a multiple of 8 from 8 to 256",
        });
    }
    let threads = tv("(4,8,4):(128,1,16)");
    let values = attempt!(Layout::flat(&[2, 2, n / 8], &[64, 8, 512]));
    Layout::tuple(&[threads, values])
}

/// A of `wgmma` in registers: `(thread, value) -> row + 64·k`, over 32 bytes of k.
///
/// ```
/// use layout_core::atoms::{Scalar, wgmma_a};
/// // 64 rows of 16 halves.
/// let a = wgmma_a(Scalar::F16);
/// assert_eq!((a.size(), a.at(&[32 + 5, 0])), (64 * 16, 17 + 64 * 2));
/// ```
pub const fn wgmma_a(scalar: Scalar) -> Layout {
    match scalar.bits() {
        // Four neighbours along k: row g + 8((i>>2)&1), column 4t + (i&3) + 16(i>>3), k = 32.
        8 => tv("((4,8,4),(4,2,2)):((256,1,16),(64,8,1024))"),
        // Two: row g + 8((i>>1)&1), column 2t + (i&1) + 8(i>>2), k = 16.
        16 => tv("((4,8,4),(2,2,2)):((128,1,16),(64,8,512))"),
        // One (tf32): row g + 8(i&1), column t + 4(i>>1), k = 8.
        _ => tv("((4,8,4),(2,2)):((64,1,16),(8,256))"),
    }
}

/// The `wgmma.mma_async` instruction `m64nNkK` (K is 32 bytes), A in registers or in shared memory.
///
/// ```
/// use layout_core::atoms::{Scalar, wgmma};
/// let atom = wgmma(128, Scalar::Bf16, Scalar::F32).unwrap();
/// assert_eq!([atom.m, atom.n, atom.k, atom.threads], [64, 128, 16, 128]);
/// assert_eq!(atom.registers(), [4, 0, 64]);
/// ```
///
/// # Errors
///
/// `n` that is not a multiple of 8 from 8 to 256 (integers: of 16 beyond 32, see the PTX ISA); an operand type that wgmma does
/// not take (`f64`, `f32`, `s32`).
pub const fn wgmma(n: i64, operand: Scalar, accumulator: Scalar) -> Result<MmaAtom, LayoutError> {
    let name = match (operand, accumulator) {
        (Scalar::F16, Scalar::F32) => "wgmma.mma_async.sync.aligned.f32.f16.f16",
        (Scalar::F16, Scalar::F16) => "wgmma.mma_async.sync.aligned.f16.f16.f16",
        (Scalar::Bf16, Scalar::F32) => "wgmma.mma_async.sync.aligned.f32.bf16.bf16",
        (Scalar::Tf32, Scalar::F32) => "wgmma.mma_async.sync.aligned.f32.tf32.tf32",
        (Scalar::E4m3, Scalar::F32) => "wgmma.mma_async.sync.aligned.f32.e4m3.e4m3",
        (Scalar::E5m2, Scalar::F32) => "wgmma.mma_async.sync.aligned.f32.e5m2.e5m2",
        (Scalar::E4m3, Scalar::F16) => "wgmma.mma_async.sync.aligned.f16.e4m3.e4m3",
        (Scalar::E5m2, Scalar::F16) => "wgmma.mma_async.sync.aligned.f16.e5m2.e5m2",
        (Scalar::S8, Scalar::S32) => "wgmma.mma_async.sync.aligned.s32.s8.s8",
        (Scalar::U8, Scalar::S32) => "wgmma.mma_async.sync.aligned.s32.u8.u8",
        _ => {
            return Err(LayoutError::Unsupported {
                operation: "wgmma",
                given: refused(operand),
                accepted: "f16 into f16 or f32; bf16 or tf32 into f32; e4m3 or e5m2 into f16 or f32; s8 or u8 into s32",
            });
        }
    };
    let integer = matches!(operand, Scalar::S8 | Scalar::U8);
    if integer && n > 32 && n % 16 != 0 {
        return Err(LayoutError::InvalidNumber {
            operation: "wgmma of s8 or u8",
            argument: "n",
            value: n,
            accepted: "8, 16, 24, 32 or a multiple of 16 up to 256",
        });
    }
    let c = attempt!(wgmma_d(n));
    let k = 256 / operand.bits();
    let whole_b = attempt!(super::identity(&[n, k]));
    let b = attempt!(Layout::tuple(&[attempt!(Layout::mode(128, 0)), whole_b]));
    Ok(MmaAtom::unchecked(
        name,
        [64, n, k, 1],
        128,
        [operand, operand, accumulator],
        [wgmma_a(operand), b, c],
        Target::SmOnly("sm_90a"),
    ))
}

/// What is wrong where no pair of types with that operand fits.
const fn refused(operand: Scalar) -> &'static str {
    match operand {
        Scalar::F16 => "f16 into a type other than f16 and f32",
        Scalar::Bf16 => "bf16 into a type other than f32",
        Scalar::Tf32 => "tf32 into a type other than f32",
        Scalar::E4m3 => "e4m3 into a type other than f16 and f32",
        Scalar::E5m2 => "e5m2 into a type other than f16 and f32",
        Scalar::S8 => "s8 into a type other than s32",
        Scalar::U8 => "u8 into a type other than s32",
        _ => operand.name(),
    }
}
