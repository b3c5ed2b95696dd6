//! The scalar types of PTX and their sizes (PTX ISA, sections 5.2.1 to 5.2.3).
//!
//! One flat enum, because every later stage only asks four things of a type: how many bits it has, whether it is signed,
//! whether it is a float, and which register file holds it. A register of type `.b32` serves every 32-bit instruction type;
//! the decoder therefore compares *sizes*, not names. Example: `ld.u8 %r1, [...]` may target a 32-bit register, because loads,
//! stores and conversions accept registers wider than the instruction's type.

/// A scalar PTX type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the variants are the ISA's own names
pub enum ScalarType {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    B8,
    B16,
    B32,
    B64,
    B128,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    Pred,
}

impl ScalarType {
    /// The type named by a modifier without its dot (`"u32"`), or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        use ScalarType as T;
        Some(match name {
            "u8" => T::U8,
            "u16" => T::U16,
            "u32" => T::U32,
            "u64" => T::U64,
            "s8" => T::S8,
            "s16" => T::S16,
            "s32" => T::S32,
            "s64" => T::S64,
            "b8" => T::B8,
            "b16" => T::B16,
            "b32" => T::B32,
            "b64" => T::B64,
            "b128" => T::B128,
            "f16" => T::F16,
            "f16x2" => T::F16x2,
            "bf16" => T::Bf16,
            "bf16x2" => T::Bf16x2,
            "tf32" => T::Tf32,
            "f32" => T::F32,
            "f64" => T::F64,
            "e4m3" => T::E4m3,
            "e5m2" => T::E5m2,
            "e4m3x2" => T::E4m3x2,
            "e5m2x2" => T::E5m2x2,
            "pred" => T::Pred,
            _ => return None,
        })
    }

    /// The name as PTX writes it, without the dot.
    pub fn name(self) -> &'static str {
        use ScalarType as T;
        match self {
            T::U8 => "u8",
            T::U16 => "u16",
            T::U32 => "u32",
            T::U64 => "u64",
            T::S8 => "s8",
            T::S16 => "s16",
            T::S32 => "s32",
            T::S64 => "s64",
            T::B8 => "b8",
            T::B16 => "b16",
            T::B32 => "b32",
            T::B64 => "b64",
            T::B128 => "b128",
            T::F16 => "f16",
            T::F16x2 => "f16x2",
            T::Bf16 => "bf16",
            T::Bf16x2 => "bf16x2",
            T::Tf32 => "tf32",
            T::F32 => "f32",
            T::F64 => "f64",
            T::E4m3 => "e4m3",
            T::E5m2 => "e5m2",
            T::E4m3x2 => "e4m3x2",
            T::E5m2x2 => "e5m2x2",
            T::Pred => "pred",
        }
    }

    /// Size in bits; 1 for a predicate.
    pub fn bits(self) -> u32 {
        use ScalarType as T;
        match self {
            T::Pred => 1,
            T::U8 | T::S8 | T::B8 | T::E4m3 | T::E5m2 => 8,
            T::U16 | T::S16 | T::B16 | T::F16 | T::Bf16 | T::E4m3x2 | T::E5m2x2 => 16,
            T::U32 | T::S32 | T::B32 | T::F32 | T::F16x2 | T::Bf16x2 | T::Tf32 => 32,
            T::U64 | T::S64 | T::B64 | T::F64 => 64,
            T::B128 => 128,
        }
    }

    /// Size in bytes in memory; 1 for a predicate, which memory never holds.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Signed integers.
    pub fn is_signed(self) -> bool {
        use ScalarType as T;
        matches!(self, T::S8 | T::S16 | T::S32 | T::S64)
    }

    /// Signed or unsigned integers, not the untyped `.bN`.
    pub fn is_int(self) -> bool {
        use ScalarType as T;
        self.is_signed() || matches!(self, T::U8 | T::U16 | T::U32 | T::U64)
    }

    /// The untyped `.b8` to `.b128`.
    pub fn is_untyped(self) -> bool {
        use ScalarType as T;
        matches!(self, T::B8 | T::B16 | T::B32 | T::B64 | T::B128)
    }

    /// Every floating-point type, packed ones included.
    pub fn is_float(self) -> bool {
        !self.is_int() && !self.is_untyped() && self != ScalarType::Pred
    }

    /// Types of `mov`, `selp` and the like: no halves, which are moved as bits.
    pub(crate) fn is_plain(self) -> bool {
        self.is_int() || self.is_untyped() || matches!(self, ScalarType::F32 | ScalarType::F64)
    }

    /// Whether a register of type `register`, large enough, may be an operand of this type (PTX ISA, section 9.4): untyped bits go
    /// with everything, signed integers with unsigned ones and with packed halves, floats only with their own type.
    pub(crate) fn agrees_with(self, register: Self) -> bool {
        self.is_untyped()
            || register.is_untyped()
            || self == register
            || (self.is_int() && (register.is_int() || register == ScalarType::F16x2))
    }

    /// The file that holds registers of this type, or `None` for `.b128`.
    pub(crate) fn file(self) -> Option<File> {
        match self.bits() {
            1 => Some(File::Pred),
            64 => Some(File::R64),
            128 => None,
            _ => Some(File::R32),
        }
    }
}

/// The three register files of a warp: 32 lanes of `u32`, 32 lanes of `u64`, one mask bit a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum File {
    /// Registers of up to 32 bits, zero-extended.
    R32,
    /// Registers of 64 bits.
    R64,
    /// Predicates.
    Pred,
}
