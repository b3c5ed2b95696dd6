//! What the operations of [`super::Op`] are: the small enumerations of the instruction set.

/// Integer and bit operations; each instruction names its width by the [`Op`] that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOp {
    Add,
    Sub,
    AddSat,
    SubSat,
    MulLo,
    MulHiU,
    MulHiS,
    MadLo,
    MadHiU,
    MadHiS,
    MadHiSat,
    Mul24LoU,
    Mul24LoS,
    Mul24HiU,
    Mul24HiS,
    Mad24LoU,
    Mad24LoS,
    Mad24HiU,
    Mad24HiS,
    Mad24HiSat,
    DivU,
    DivS,
    RemU,
    RemS,
    Neg,
    Abs,
    MinU,
    MinS,
    MaxU,
    MaxS,
    MinRelu,
    MaxRelu,
    SadU,
    SadS,
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    ShrU,
    ShrS,
    BfeU,
    BfeS,
    Brev,
    Popc,
    Clz,
    BfindU,
    BfindS,
    BfindShiftU,
    BfindShiftS,
    Fns,
    BmskClamp,
    BmskWrap,
    SzextClampU,
    SzextClampS,
    SzextWrapU,
    SzextWrapS,
    Prmt,
    PrmtF4e,
    PrmtB4e,
    PrmtRc8,
    PrmtEcl,
    PrmtEcr,
    PrmtRc16,
    ShfLWrap,
    ShfLClamp,
    ShfRWrap,
    ShfRClamp,
    Dp4aUU,
    Dp4aUS,
    Dp4aSU,
    Dp4aSS,
    Dp2aLoUU,
    Dp2aLoUS,
    Dp2aLoSU,
    Dp2aLoSS,
    Dp2aHiUU,
    Dp2aHiUS,
    Dp2aHiSU,
    Dp2aHiSS,
}

/// Floating-point operations of f32, f64 and the halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Min,
    Max,
    MinNan,
    MaxNan,
    MinXorsign,
    MaxXorsign,
    MinNanXorsign,
    MaxNanXorsign,
    Abs,
    Neg,
    Rcp,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    Copysign,
    /// Add, subtract or multiply with the result clamped below at zero (`fma.rn.relu`).
    FmaRelu,
    /// [`FloatOp::Fma`] that gives 0 if an operand is the NaN by which tensor copies fill what is outside the array.
    FmaOob,
    /// Both.
    FmaOobRelu,
}

impl FloatOp {
    /// Minimum and maximum in all forms.
    pub(crate) fn is_extremum(self) -> bool {
        matches!(
            self,
            Self::Min
                | Self::Max
                | Self::MinNan
                | Self::MaxNan
                | Self::MinXorsign
                | Self::MaxXorsign
                | Self::MinNanXorsign
                | Self::MaxNanXorsign
        )
    }
}

/// Rounding of a float result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    /// To nearest, ties away from zero (`.rna`).
    NearestAway,
    Zero,
    Down,
    Up,
}

/// The modifiers of a float operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatMode {
    pub(crate) rounding: Rounding,
    /// Flush subnormal inputs and results to zero of the same sign.
    pub(crate) ftz: bool,
    /// Clamp to [0, 1], NaN to 0.
    pub(crate) sat: bool,
}

impl FloatMode {
    pub(crate) const PLAIN: Self = Self {
        rounding: Rounding::Nearest,
        ftz: false,
        sat: false,
    };
}

/// Comparison operators of `setp` and `set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// What a comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CmpType {
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F32Ftz,
    F16Ftz,
    F64,
}

/// How `setp` combines its comparison with predicate `c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bool {
    And,
    Or,
    Xor,
}

/// A format that `cvt` reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    U(u8),
    S(u8),
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
}

/// The packing of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packed {
    /// One value to one value.
    No,
    /// Two registers to one with two values.
    Join,
    /// One register of two values to one register of two values.
    Both,
}

/// Read-modify-write operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomOp {
    Add,
    MinU,
    MinS,
    MaxU,
    MaxS,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Inc,
    Dec,
    AddF32,
    AddF64,
    AddF16x2,
    AddBf16x2,
    AddF16,
    AddBf16,
    MinF16,
    MaxF16,
    MinBf16,
    MaxBf16,
    /// Flushes subnormal numbers, as bulk reductions do.
    AddF32Ftz,
}

impl AtomOp {
    /// Whether a place holds the same after operations of this kind in any order.
    pub(crate) fn commutes(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::MinU
                | Self::MinS
                | Self::MaxU
                | Self::MaxS
                | Self::And
                | Self::Or
                | Self::Xor
        )
    }
}

/// Modes of `shfl.sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

/// Modes of `vote.sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

/// Block barrier operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarKind {
    Sync,
    Arrive,
    RedPopc,
    RedAnd,
    RedOr,
}

/// Element types of `mma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MmaType {
    F16,
    Bf16,
    Tf32,
    F64,
    E4m3,
    E5m2,
    S8,
    U8,
    S32,
    F32,
    S4,
    U4,
    /// Single bits.
    B1,
}

/// Properties that `testp` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestP {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// What a video instruction does with each pair of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VideoOp {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    Average,
    Shl,
    Shr,
    Set(Cmp),
    /// Multiply, add the third operand, shift right.
    Mad {
        shift: u8,
        plus_one: bool,
    },
}

/// How a video instruction joins its result with the third operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// It does not.
    None,
    Add,
    Min,
    Max,
    /// The result replaces a part of the third operand.
    Merge,
}
