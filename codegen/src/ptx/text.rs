//! Names of registers and literals as PTX spells them.

use core::fmt;

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
