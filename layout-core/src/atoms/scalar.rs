//! Element types of operands, and the hardware that has an instruction.

use core::fmt;

/// The element types of operands and registers, with the names that PTX (or, for AMD, the instruction) gives them.
///
/// What an instruction calls its operands is not always what lies in memory: `tf32` is stored as `f32`, `b1` and `e2m3` have no address. The elements that a
/// kernel loads, converts and stores are a type of their own in the code generator (`Element`).
///
/// ```
/// use layout_core::atoms::{MMA_M16N8K16_F16, Scalar};
/// assert_eq!((MMA_M16N8K16_F16.a_type, MMA_M16N8K16_F16.d_type), (Scalar::F16, Scalar::F32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Scalar {
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// `tf32`: 32 bits, of which 19 count; convert with `cvt.rna.tf32` first.
    Tf32,
    /// `xf32` of gfx942: `f32` whose product uses the 10 upper bits of the mantissa.
    Xf32,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `s8`.
    S8,
    /// `u8`.
    U8,
    /// `s4`: two to a byte, the lower nibble first.
    S4,
    /// `u4`: two to a byte, the lower nibble first.
    U4,
    /// `b1`: one bit, eight to a byte, the lowest first.
    B1,
    /// `iu8` of AMD's WMMA: signed or unsigned bytes, as a bit of the instruction says.
    Iu8,
    /// `iu4` of AMD's WMMA: signed or unsigned nibbles, as a bit of the instruction says.
    Iu4,
    /// `e4m3`.
    E4m3,
    /// `e5m2`.
    E5m2,
    /// `e2m3`: 6 bits.
    E2m3,
    /// `e3m2`: 6 bits.
    E3m2,
    /// `e2m1`: 4 bits.
    E2m1,
    /// `fp8` of gfx942: 4 bits of exponent, 3 of mantissa, one NaN and no negative zero.
    Fp8,
    /// `bf8` of gfx942: 5 bits of exponent, 2 of mantissa, one NaN and no negative zero.
    Bf8,
    /// `s32`.
    S32,
}

impl Scalar {
    /// Every type.
    ///
    /// ```
    /// use layout_core::atoms::Scalar;
    /// assert!(Scalar::ALL.iter().all(|scalar| scalar.bits() <= 64));
    /// ```
    pub const ALL: &'static [Self] = &[
        Self::F16,
        Self::Bf16,
        Self::Tf32,
        Self::Xf32,
        Self::F32,
        Self::F64,
        Self::S8,
        Self::U8,
        Self::S4,
        Self::U4,
        Self::B1,
        Self::Iu8,
        Self::Iu4,
        Self::E4m3,
        Self::E5m2,
        Self::E2m3,
        Self::E3m2,
        Self::E2m1,
        Self::Fp8,
        Self::Bf8,
        Self::S32,
    ];

    /// Width in bits, packed. Some instructions want narrow values in wider slots of a register
    /// ([`MmaAtom::slot_bits`](super::MmaAtom::slot_bits)).
    ///
    /// ```
    /// use layout_core::atoms::Scalar;
    /// assert_eq!([Scalar::F64, Scalar::Tf32, Scalar::E3m2, Scalar::B1].map(Scalar::bits), [64, 32, 6, 1]);
    /// ```
    pub const fn bits(self) -> i64 {
        match self {
            Self::B1 => 1,
            Self::S4 | Self::U4 | Self::Iu4 | Self::E2m1 => 4,
            Self::E2m3 | Self::E3m2 => 6,
            Self::S8 | Self::U8 | Self::Iu8 | Self::E4m3 | Self::E5m2 | Self::Fp8 | Self::Bf8 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::Xf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    /// The type's name in PTX, or in AMD's instruction.
    ///
    /// ```
    /// use layout_core::atoms::Scalar;
    /// assert_eq!(Scalar::Bf16.name(), "bf16");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::Xf32 => "xf32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S4 => "s4",
            Self::U4 => "u4",
            Self::B1 => "b1",
            Self::Iu8 => "iu8",
            Self::Iu4 => "iu4",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::E2m3 => "e2m3",
            Self::E3m2 => "e3m2",
            Self::E2m1 => "e2m1",
            Self::Fp8 => "fp8",
            Self::Bf8 => "bf8",
            Self::S32 => "s32",
        }
    }
}

/// The processors that have an instruction.
///
/// ```
/// use layout_core::atoms::{LDMATRIX_X4, Target, WMMA_F32_F16};
/// assert_eq!(LDMATRIX_X4.target, Target::Sm(75));
/// assert_eq!(WMMA_F32_F16.target.to_string(), "gfx11");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Target {
    /// NVIDIA `sm_N` and later: `Sm(75)`.
    Sm(u32),
    /// The NVIDIA targets named here and no others, such as `sm_120a`.
    SmOnly(&'static str),
    /// The AMD targets named here, such as `gfx90a, gfx942`.
    Gfx(&'static str),
}

impl Target {
    /// The first NVIDIA architecture that has the instruction, 75 for `sm_75`, if all later ones have it too.
    ///
    /// ```
    /// use layout_core::atoms::Target;
    /// assert_eq!(Target::Sm(90).min_sm(), Some(90));
    /// assert_eq!(Target::SmOnly("sm_120a").min_sm(), None);
    /// ```
    pub const fn min_sm(self) -> Option<u32> {
        match self {
            Self::Sm(arch) => Some(arch),
            Self::SmOnly(_) | Self::Gfx(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm(arch) => write!(f, "sm_{arch} and later"),
            Self::SmOnly(names) | Self::Gfx(names) => f.write_str(names),
        }
    }
}
