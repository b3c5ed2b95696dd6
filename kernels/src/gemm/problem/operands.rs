//! The transposes of A and B.

use std::fmt;

use super::ProblemError;

/// Whether an operand is used as it lies in memory or transposed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trans {
    /// As it lies: op(X) = X.
    N,
    /// Transposed: op(X) = Xᵀ.
    T,
}

/// The transposes of A and B: what a kernel's text depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operands {
    /// op(A): `N` is m×k with k contiguous, `T` is stored k×m.
    pub a: Trans,
    /// op(B): `N` is k×n with n contiguous, `T` is stored n×k.
    pub b: Trans,
}

impl Operands {
    /// nn, nt, tn, tt.
    pub const ALL: [Operands; 4] = [
        Operands {
            a: Trans::N,
            b: Trans::N,
        },
        Operands {
            a: Trans::N,
            b: Trans::T,
        },
        Operands {
            a: Trans::T,
            b: Trans::N,
        },
        Operands {
            a: Trans::T,
            b: Trans::T,
        },
    ];
}

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |t| if t == Trans::N { 'n' } else { 't' };
        write!(f, "{}{}", letter(self.a), letter(self.b))
    }
}

impl std::str::FromStr for Operands {
    type Err = ProblemError;

    fn from_str(s: &str) -> Result<Self, ProblemError> {
        Operands::ALL
            .into_iter()
            .find(|o| o.to_string() == s)
            .ok_or_else(|| ProblemError::UnknownTrans(s.to_owned()))
    }
}
