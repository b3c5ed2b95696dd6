//! Names of registers and literals as PTX spells them.

use core::fmt;

use crate::index::code::{Op, Ty};

/// A register class of PTX.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// 16 bits, `%h`
    B16,
    /// 32 bits, `%r`
    B32,
    /// 64 bits, `%rd`
    B64,
    /// `f32`, `%f`
    F32,
    /// `f64`, `%fd`
    F64,
    /// predicate, `%p`
    Pred,
}

impl Class {
    /// Every class, in the order of declaration.
    pub const ALL: [Class; 6] = [
        Class::B16,
        Class::B32,
        Class::B64,
        Class::F32,
        Class::F64,
        Class::Pred,
    ];

    /// The prefix of its registers' names.
    pub fn prefix(self) -> &'static str {
        match self {
            Class::B16 => "%h",
            Class::B32 => "%r",
            Class::B64 => "%rd",
            Class::F32 => "%f",
            Class::F64 => "%fd",
            Class::Pred => "%p",
        }
    }

    /// The type in its declaration.
    pub fn type_name(self) -> &'static str {
        match self {
            Class::B16 => ".b16",
            Class::B32 => ".b32",
            Class::B64 => ".b64",
            Class::F32 => ".f32",
            Class::F64 => ".f64",
            Class::Pred => ".pred",
        }
    }
}

/// A virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reg {
    /// Its class.
    pub class: Class,
    /// Its number within the class.
    pub id: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.id)
    }
}

/// A guard: a predicate register, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pred {
    /// The register, of class [`Class::Pred`].
    pub reg: Reg,
    /// True for `@!p`.
    pub negated: bool,
}

impl Pred {
    /// The opposite guard.
    #[must_use]
    #[allow(clippy::should_implement_trait)] // `Pred::from(p).not()` reads in the order of `@!p`.
    pub fn not(self) -> Self {
        Self {
            negated: !self.negated,
            ..self
        }
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

impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}{}", if self.negated { "!" } else { "" }, self.reg)
    }
}

/// `{a, b, c, d}`, or the register alone.
pub(crate) fn vector(regs: &[Reg]) -> String {
    match regs {
        [one] => one.to_string(),
        _ => format!(
            "{{{}}}",
            regs.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// The registers that hold values of `ty`.
pub(crate) fn class_of(ty: Ty) -> Class {
    if ty.wide() { Class::B64 } else { Class::B32 }
}

/// The mnemonic of `op` on `ty`, where the first argument is of type `from`.
pub(crate) fn mnemonic(op: Op, ty: Ty, from: Ty) -> &'static str {
    match (op, ty) {
        (Op::Add, Ty::U32 | Ty::S32) => "add.s32",
        (Op::Add, _) => "add.s64",
        (Op::Sub, Ty::U32 | Ty::S32) => "sub.s32",
        (Op::Sub, _) => "sub.s64",
        (Op::Mul, Ty::U32 | Ty::S32) => "mul.lo.s32",
        (Op::Mul, _) => "mul.lo.s64",
        (Op::Mad, Ty::U32 | Ty::S32) => "mad.lo.s32",
        (Op::Mad, _) => "mad.lo.s64",
        (Op::MulWide, Ty::S32) => "mul.wide.s32",
        (Op::MulWide, _) => "mul.wide.u32",
        (Op::MadWide, Ty::S32) => "mad.wide.s32",
        (Op::MadWide, _) => "mad.wide.u32",
        (Op::MulHi, Ty::U32) => "mul.hi.u32",
        (Op::MulHi, Ty::S32) => "mul.hi.s32",
        (Op::MulHi, Ty::U64) => "mul.hi.u64",
        (Op::MulHi, Ty::S64) => "mul.hi.s64",
        (Op::Shl, Ty::U32 | Ty::S32) => "shl.b32",
        (Op::Shl, _) => "shl.b64",
        (Op::Shr, Ty::U32) => "shr.u32",
        (Op::Shr, Ty::S32) => "shr.s32",
        (Op::Shr, Ty::U64) => "shr.u64",
        (Op::Shr, Ty::S64) => "shr.s64",
        (Op::And, Ty::U32 | Ty::S32) => "and.b32",
        (Op::And, _) => "and.b64",
        (Op::Xor, Ty::U32 | Ty::S32) => "xor.b32",
        (Op::Xor, _) => "xor.b64",
        (Op::Div, Ty::U32) => "div.u32",
        (Op::Div, Ty::S32) => "div.s32",
        (Op::Div, Ty::U64) => "div.u64",
        (Op::Div, Ty::S64) => "div.s64",
        (Op::Widen, _) if from.signed() => "cvt.s64.s32",
        (Op::Widen, _) => "cvt.u64.u32",
        (Op::Narrow, _) => "cvt.u32.u64",
    }
}
