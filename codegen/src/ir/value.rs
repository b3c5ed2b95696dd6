//! Registers, guards, literals and the types that instructions take.

/// A register class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// A predicate.
    Pred,
}

impl Class {
    /// Every class, in the order of declaration.
    pub(crate) const ALL: [Class; 6] = [
        Class::B16,
        Class::B32,
        Class::B64,
        Class::F32,
        Class::F64,
        Class::Pred,
    ];
}

/// A virtual register: it exists in the representation and in the printed text, and the assembler gives it a machine register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reg {
    /// Its class.
    pub(crate) class: Class,
    /// Its number within the class.
    pub(crate) id: u32,
}

/// A guard: a predicate register, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pred {
    /// The register, of class [`Class::Pred`].
    pub(crate) reg: Reg,
    /// True where the guard holds if the register does not.
    pub(crate) negated: bool,
}

impl Pred {
    /// The opposite guard.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // A guard is negated where it is used: `p.not()` reads in the order of `@!p`.
    pub fn not(self) -> Self {
        Self {
            negated: !self.negated,
            ..self
        }
    }
}

impl Reg {
    /// Its class.
    pub fn class(self) -> Class {
        self.class
    }
}

impl From<Reg> for Pred {
    fn from(reg: Reg) -> Self {
        Self {
            reg,
            negated: false,
        }
    }
}

/// A source operand: a register or a literal. Floats are kept by their bits, so that operands compare exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Src {
    /// A register.
    Reg(Reg),
    /// An integer literal.
    Int(i64),
    /// The bits of a binary32 literal.
    F32(u32),
    /// The bits of a binary64 literal.
    F64(u64),
}

impl From<Reg> for Src {
    fn from(reg: Reg) -> Self {
        Src::Reg(reg)
    }
}

impl From<i64> for Src {
    fn from(value: i64) -> Self {
        Src::Int(value)
    }
}

impl From<f32> for Src {
    fn from(value: f32) -> Self {
        Src::F32(value.to_bits())
    }
}

impl From<f64> for Src {
    fn from(value: f64) -> Self {
        Src::F64(value.to_bits())
    }
}

/// The type of an instruction's operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// 16 bits without a meaning.
    B16,
    /// 32 bits without a meaning.
    B32,
    /// 64 bits without a meaning.
    B64,
    /// Unsigned 8-bit integers.
    U8,
    /// Signed 8-bit integers.
    S8,
    /// Unsigned 16-bit integers.
    U16,
    /// Unsigned 32-bit integers.
    U32,
    /// Unsigned 64-bit integers.
    U64,
    /// Signed 32-bit integers.
    S32,
    /// Signed 64-bit integers.
    S64,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// Two IEEE binary16 in a 32-bit register.
    F16x2,
    /// Two bfloat16 in a 32-bit register.
    Bf16x2,
    /// Two 8-bit floats with 4 bits of exponent in a 16-bit register.
    E4m3x2,
    /// Two 8-bit floats with 5 bits of exponent in a 16-bit register.
    E5m2x2,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Type {
    /// Bytes of one operand in memory; 0 for predicates, which have no place there.
    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Type::U8 | Type::S8 => 1,
            Type::B16 | Type::U16 | Type::F16 | Type::Bf16 | Type::E4m3x2 | Type::E5m2x2 => 2,
            Type::B32 | Type::U32 | Type::S32 | Type::F32 | Type::F16x2 | Type::Bf16x2 => 4,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 8,
        }
    }
}

/// A comparison. Ordered comparisons of floats are false where an operand is NaN.
///
/// ```
/// use layout_codegen::ir::{Cmp, Kernel};
///
/// let mut k = Kernel::new("k", 32);
/// let (thread, n) = (k.thread(), k.size("n", 100));
/// // The smaller of two.
/// let smaller = k.choose(thread, Cmp::Lt, n, thread, n);
/// assert_ne!(smaller, n);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    /// a = b
    Eq,
    /// a ≠ b
    Ne,
    /// a < b
    Lt,
    /// a ≤ b
    Le,
    /// a > b
    Gt,
    /// a ≥ b
    Ge,
    /// a ≠ b, or one of them is NaN
    Neu,
}

impl Cmp {
    /// The comparison that holds where this one does not; none for ordered comparisons of floats, whose opposite is not ordered.
    ///
    /// ```
    /// use layout_codegen::ir::Cmp;
    ///
    /// assert_eq!((Cmp::Lt.opposite(), Cmp::Neu.opposite()), (Some(Cmp::Ge), None));
    /// ```
    #[must_use]
    pub const fn opposite(self) -> Option<Self> {
        Some(match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
            Cmp::Neu => return None,
        })
    }
}

/// Two predicates to one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Logic {
    /// Both.
    And,
    /// At least one.
    Or,
    /// One of them.
    Xor,
}
