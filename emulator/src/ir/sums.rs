//! Which arithmetic the tensor cores of an architecture have: the parameters of the model in `exec/sums.rs`.
//!
//! | `.target` | f16, bf16 | tf32 | e4m3, e5m2 |
//! |---|---|---|---|
//! | to `sm_75` | 24 bits, 8 deep | | |
//! | `sm_80` to `sm_89` | 24 bits, 8 deep | 24 bits, 4 deep | 13 bits, 16 deep, kept to 13 bits |
//! | `sm_90`, `mma.sync` | 25 bits, 16 deep | 25 bits, 8 deep | as f16, in halves (below) |
//! | `sm_90`, `wgmma` | 25 bits, 16 deep | 25 bits, 8 deep | 13 bits, 32 deep, kept to 13 bits |
//! | `sm_100` to `sm_110` | 25 bits, 16 deep | 25 bits, 8 deep | as f16, in halves |
//! | `sm_120` on | 25 bits, 16 deep | 25 bits, 8 deep | 25 bits, 32 deep |
//!
//! **Bytes in halves.** Where `mma.sync` has no unit for bytes, the assembler widens them to f16, by registers: bytes 0 and 1 of each register of A and B
//! make one product of f16 and bytes 2 and 3 another. The first starts from zero, the second from its sum, and C is added at the end, in f32 or f16, to
//! nearest. The order is that of the machine code; an H100 gives the same bits.
//!
//! Example: an `mma.sync` of m16n8k16 with f16 is one step on `sm_90` and two of eight products on `sm_80`.

use super::MmaType;

/// In what the sum of a step is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// f32, rounded toward zero.
    F32,
    /// f32 with 13 fraction bits, rounded toward zero.
    E8m13,
    /// f16, rounded to nearest.
    F16,
}

/// How products and accumulator of a floating-point product of matrices are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Fraction bits to which addends are cut, below the greatest exponent.
    pub(crate) fraction: u8,
    /// Products that are added in one step.
    pub(crate) depth: u8,
    /// The least exponents of factors of A and B that are not zero.
    pub(crate) least: [i16; 2],
    /// What a step leaves.
    pub(crate) kept: Kept,
    /// Bytes in halves: the products whose place along the depth is 0 or 1 of 4 first, then the others, and C at the end.
    pub(crate) halves: bool,
    /// The target has a unit for `m8n8k4` of f16.
    pub(crate) has_quads: bool,
}

impl Sums {
    /// The arithmetic of `.target sm_<arch>` for factors of the types `factors` and sums of type `sum`; `wgmma` for the asynchronous instruction.
    pub(crate) fn of(arch: u32, factors: [MmaType; 2], sum: MmaType, wgmma: bool) -> Self {
        let factor = factors[0];
        let bytes = matches!(factor, MmaType::E4m3 | MmaType::E5m2);
        // From sm_90 to sm_110 only wgmma has a unit for bytes.
        let converted = bytes && (90..120).contains(&arch) && !wgmma;
        let (fraction, depth) = match (arch, factor) {
            (80..90, MmaType::Tf32) => (24, 4),
            (80..90, _) if bytes => (13, 16),
            (0..90, _) => (24, 8),
            (90..100, _) if bytes && wgmma => (13, 32),
            (120.., _) if bytes => (25, 32),
            (_, MmaType::Tf32) => (25, 8),
            _ => (25, 16),
        };
        let kept = match sum {
            MmaType::F16 => Kept::F16,
            _ if fraction == 13 => Kept::E8m13,
            _ => Kept::F32,
        };
        let least = factors.map(|factor| match factor {
            MmaType::E4m3 if !converted => -6,
            MmaType::E4m3 | MmaType::E5m2 | MmaType::F16 => -14,
            _ => -126,
        });
        Self {
            fraction,
            depth,
            least,
            kept,
            halves: converted,
            has_quads: arch < 80,
        }
    }
}
