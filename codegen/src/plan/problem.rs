//! The problem: C ← α·op(A)·op(B) + β·C with row-major operands.

use std::fmt;

/// Element types of A and B, with the type of C that goes with them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataType {
    /// IEEE binary32 by fused multiply-add.
    F32,
    /// IEEE binary16, accumulated in f32; C is f16.
    F16,
    /// bfloat16, accumulated in f32; C is bf16.
    Bf16,
    /// f32 in memory, multiplied with 10 bits of mantissa, accumulated in f32.
    Tf32,
    /// IEEE binary64.
    F64,
    /// 8-bit integers, accumulated in 32-bit integers.
    S8,
    /// 8-bit floats with 4 bits of exponent, accumulated in f32; C is f32.
    E4m3,
    /// 8-bit floats with 5 bits of exponent, accumulated in f32; C is f32.
    E5m2,
}

impl DataType {
    /// Every type.
    pub const ALL: [DataType; 8] = [
        DataType::F32,
        DataType::F16,
        DataType::Bf16,
        DataType::Tf32,
        DataType::F64,
        DataType::S8,
        DataType::E4m3,
        DataType::E5m2,
    ];

    /// The element type of A and B in memory.
    pub fn operand(self) -> Element {
        match self {
            DataType::F32 | DataType::Tf32 => Element::F32,
            DataType::F16 => Element::F16,
            DataType::Bf16 => Element::Bf16,
            DataType::F64 => Element::F64,
            DataType::S8 => Element::S8,
            DataType::E4m3 => Element::E4m3,
            DataType::E5m2 => Element::E5m2,
        }
    }

    /// The element type of C in memory.
    pub fn result(self) -> Element {
        match self {
            DataType::S8 => Element::S32,
            DataType::E4m3 | DataType::E5m2 => Element::F32,
            other => other.operand(),
        }
    }

    /// Bytes of an element of A and B.
    pub fn bytes(self) -> u32 {
        self.operand().bytes()
    }

    /// Bytes of an element of C.
    pub fn c_bytes(self) -> u32 {
        self.result().bytes()
    }
}

/// A type of matrix elements in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary64.
    F64,
    /// 8-bit integer.
    S8,
    /// 32-bit integer.
    S32,
    /// 8-bit float, 4 bits of exponent.
    E4m3,
    /// 8-bit float, 5 bits of exponent.
    E5m2,
}

impl Element {
    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Element::F64 => 8,
            Element::F32 | Element::S32 => 4,
            Element::F16 | Element::Bf16 => 2,
            Element::S8 | Element::E4m3 | Element::E5m2 => 1,
        }
    }

    /// True for integers.
    pub fn is_integer(self) -> bool {
        matches!(self, Element::S8 | Element::S32)
    }

    /// The largest error of rounding a number below the smallest normal one to this type: half the spacing of subnormal numbers; 0 for
    /// integers.
    pub fn underflow(self) -> f64 {
        let exponent = match self {
            Element::F32 => 150,
            Element::F16 => 25,
            Element::Bf16 => 134,
            Element::E4m3 => 10,
            Element::E5m2 => 17,
            // Half of 2^-1074 is no f64 itself.
            Element::F64 | Element::S8 | Element::S32 => return 0.0,
        };
        f64::powi(0.5, exponent)
    }

    /// The largest relative error of rounding a number to this type; 0 for integers.
    pub fn unit_roundoff(self) -> f64 {
        let bits = match self {
            Element::F64 => 53,
            Element::F32 => 24,
            Element::F16 => 11,
            Element::Bf16 => 8,
            Element::E4m3 => 4,
            Element::E5m2 => 3,
            Element::S8 | Element::S32 => return 0.0,
        };
        f64::powi(0.5, bits)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::F32 => "f32",
            DataType::F16 => "f16",
            DataType::Bf16 => "bf16",
            DataType::Tf32 => "tf32",
            DataType::F64 => "f64",
            DataType::S8 => "s8",
            DataType::E4m3 => "e4m3",
            DataType::E5m2 => "e5m2",
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
    /// α or β is no 32-bit integer, as a product of integers needs.
    NotIntegral {
        /// `alpha` or `beta`.
        name: &'static str,
        /// Its value, as text.
        value: String,
    },
    /// A leading dimension whose rows do not start at multiples of 16 bytes.
    Unaligned {
        /// `lda`, `ldb` or `ldc`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What it must be a multiple of.
        multiple: u64,
    },
}

impl ProblemError {
    /// A stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LeadingDimension { .. } => "leading_dimension",
            Self::NotFinite(_) => "not_finite",
            Self::TooLarge { .. } => "too_large",
            Self::UnknownTrans(_) => "unknown_trans",
            Self::NotIntegral { .. } => "not_integral",
            Self::Unaligned { .. } => "unaligned",
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
            Self::NotIntegral { name, value } => {
                write!(
                    f,
                    "{name} is {value}: a product of integers takes a whole number of 32 bits"
                )
            }
            Self::Unaligned {
                name,
                value,
                multiple,
            } => write!(
                f,
                "{name} is {value}, and this plan copies 16 bytes at a time: {name} must be a multiple of {multiple}"
            ),
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

    /// α and β are whole numbers of 32 bits.
    ///
    /// # Errors
    ///
    /// The one that is not.
    pub fn integral(&self) -> Result<(), ProblemError> {
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if value.fract() != 0.0 || value.abs() > f64::from(i32::MAX) {
                return Err(ProblemError::NotIntegral {
                    name,
                    value: value.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Rows of A and B start at multiples of 16 bytes.
    ///
    /// # Errors
    ///
    /// The leading dimension that is no multiple.
    pub fn aligned(&self, data_type: DataType) -> Result<(), ProblemError> {
        let multiple = u64::from(16 / data_type.bytes());
        for (name, value) in [("lda", self.lda), ("ldb", self.ldb)] {
            if value % multiple != 0 {
                return Err(ProblemError::Unaligned {
                    name,
                    value,
                    multiple,
                });
            }
        }
        Ok(())
    }
}
