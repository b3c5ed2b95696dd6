//! The problem: C ← α·op(A)·op(B) + β·C with row-major operands.

use std::fmt;

/// Element types of A and B (and of C where a plan has one type only).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// IEEE binary32.
    F32,
}

impl DataType {
    /// Every type.
    pub const ALL: [DataType; 1] = [DataType::F32];

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            DataType::F32 => 4,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::F32 => "f32",
        })
    }
}

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

/// One matrix product. All matrices are row-major; leading dimensions are in elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gemm {
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Length of the sums.
    pub k: u64,
    /// The transposes.
    pub operands: Operands,
    /// Leading dimension of A as it lies in memory: at least k (`N`) or m (`T`).
    pub lda: u64,
    /// Leading dimension of B as it lies in memory: at least n (`N`) or k (`T`).
    pub ldb: u64,
    /// Leading dimension of C: at least n.
    pub ldc: u64,
    /// α
    pub alpha: f64,
    /// β
    pub beta: f64,
}

/// What is wrong with a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProblemError {
    /// A leading dimension shorter than a row.
    LeadingDimension {
        /// Which: `lda`, `ldb` or `ldc`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The row's length.
        row: u64,
    },
    /// α or β is not a number, or infinite, perhaps only after rounding to the type that the kernel takes.
    NotFinite(&'static str),
    /// A size beyond what the kernel's 32-bit counters hold.
    TooLarge {
        /// Which size.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest that works.
        limit: u64,
    },
    /// Not one of nn, nt, tn, tt.
    UnknownTrans(String),
}

impl ProblemError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeadingDimension { .. } => "leading_dimension",
            Self::NotFinite(_) => "not_finite",
            Self::TooLarge { .. } => "too_large",
            Self::UnknownTrans(_) => "unknown_trans",
        }
    }
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeadingDimension { name, value, row } => {
                write!(
                    f,
                    "{name} is {value}, but a row has {row} elements: {name} must be at least {row}"
                )
            }
            Self::NotFinite(name) => write!(
                f,
                "{name} must be a number, and finite in the type that the kernel takes"
            ),
            Self::TooLarge { name, value, limit } => {
                write!(
                    f,
                    "{name} is {value}, and the kernel counts in 32 bits: {name} can be at most {limit}"
                )
            }
            Self::UnknownTrans(s) => write!(
                f,
                "there is no transpose `{s}`; give nn, nt, tn or tt (first letter A, second B)"
            ),
        }
    }
}

impl std::error::Error for ProblemError {}

impl Gemm {
    /// A problem with packed matrices, α = 1, β = 0.
    pub fn packed(m: u64, n: u64, k: u64, operands: Operands) -> Self {
        let lda = if operands.a == Trans::N { k } else { m };
        let ldb = if operands.b == Trans::N { n } else { k };
        Self {
            m,
            n,
            k,
            operands,
            lda: lda.max(1),
            ldb: ldb.max(1),
            ldc: n.max(1),
            alpha: 1.0,
            beta: 0.0,
        }
    }

    /// Rows and columns of A as it lies in memory.
    pub fn stored_a(&self) -> (u64, u64) {
        if self.operands.a == Trans::N {
            (self.m, self.k)
        } else {
            (self.k, self.m)
        }
    }

    /// Rows and columns of B as it lies in memory.
    pub fn stored_b(&self) -> (u64, u64) {
        if self.operands.b == Trans::N {
            (self.k, self.n)
        } else {
            (self.n, self.k)
        }
    }

    /// Checks sizes, leading dimensions and scalars; every count must be at most `limit`.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn validate(&self, limit: u64) -> Result<(), ProblemError> {
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !value.is_finite() {
                return Err(ProblemError::NotFinite(name));
            }
        }
        let sizes = [
            ("m", self.m),
            ("n", self.n),
            ("k", self.k),
            ("lda", self.lda),
            ("ldb", self.ldb),
            ("ldc", self.ldc),
        ];
        for (name, value) in sizes {
            if value > limit {
                return Err(ProblemError::TooLarge { name, value, limit });
            }
        }
        for (name, value, row) in [
            ("lda", self.lda, self.stored_a().1),
            ("ldb", self.ldb, self.stored_b().1),
            ("ldc", self.ldc, self.n),
        ] {
            if value < row.max(1) {
                return Err(ProblemError::LeadingDimension {
                    name,
                    value,
                    row: row.max(1),
                });
            }
        }
        Ok(())
    }
}
