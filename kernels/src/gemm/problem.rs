//! The problem: C ← activation(α·op(A)·op(B) + β·C + bias) with row-major operands, once or for a batch of matrices.

mod error;
mod operands;
use layout_codegen::ir::Element;

use super::{DataType, Epilogue};
pub use error::{Limit, ProblemError};
pub use operands::{Operands, Trans};

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
    /// The element type of C; none for the one that goes with A and B.
    pub output: Option<Element>,
    /// Bias and activation.
    pub epilogue: Epilogue,
    /// How many products, and how far apart their matrices are.
    pub batch: Batch,
    /// What the addresses of the matrices are multiples of.
    pub alignment: Alignment,
}

/// A batch of products of one shape whose matrices lie at regular distances.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Batch {
    /// Number of products.
    pub count: u64,
    /// Elements from one matrix to the next, of A, B and C; 0 uses the same matrix for all (not for C).
    pub strides: [u64; 3],
}

impl Batch {
    /// A single product.
    pub const ONE: Batch = Batch {
        count: 1,
        strides: [0; 3],
    };
}

/// The number of bytes that the address of each matrix is a multiple of: a power of two, at least an element's size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Alignment {
    /// Of A.
    pub a: u32,
    /// Of B.
    pub b: u32,
    /// Of C.
    pub c: u32,
}

impl Alignment {
    /// What allocations have, and more than any copy needs.
    pub const FULL: Alignment = Alignment {
        a: 16,
        b: 16,
        c: 16,
    };
}

/// A factor as an error prints it: large ones by their exponent, not in hundreds of digits.
fn written(value: f64) -> String {
    if value.abs() < 1e15 {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

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
            output: None,
            epilogue: Epilogue::default(),
            batch: Batch::ONE,
            alignment: Alignment::FULL,
        }
    }

    /// The element type of C for products in `data_type`.
    pub fn result(&self, data_type: DataType) -> Element {
        self.output.unwrap_or_else(|| data_type.result())
    }

    /// What the rows of A, B and C, their matrices in a batch and their addresses are multiples of, in bytes, at most 16: the widest copy
    /// that serves all of them.
    pub fn widths(&self, data_type: DataType) -> [u32; 3] {
        let (operand, result) = (data_type.bytes(), self.result(data_type).bytes());
        let one = |bytes: u32, alignment: u32, ld: u64, stride: u64| {
            let stride = if self.batch.count > 1 { stride } else { 0 };
            let all = (ld | stride).wrapping_mul(u64::from(bytes)) | u64::from(alignment);
            1 << all.trailing_zeros().min(4)
        };
        let [a, b, c] = self.batch.strides;
        [
            one(operand, self.alignment.a, self.lda, a),
            one(operand, self.alignment.b, self.ldb, b),
            one(result, self.alignment.c, self.ldc, c),
        ]
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
            Limit::Counter.at_most(name, value, limit)?;
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
            let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
            if value.fract() != 0.0 || !fits {
                return Err(ProblemError::NotIntegral {
                    name,
                    value: written(value),
                });
            }
        }
        Ok(())
    }

    /// Addresses are multiples of an element, and the matrices of C in a batch do not overlap.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn placed(&self, data_type: DataType) -> Result<(), ProblemError> {
        let (operand, result) = (data_type.bytes(), self.result(data_type).bytes());
        for (matrix, bytes, element) in [
            ("A", self.alignment.a, operand),
            ("B", self.alignment.b, operand),
            ("C", self.alignment.c, result),
        ] {
            if !bytes.is_power_of_two() || bytes < element {
                return Err(ProblemError::Alignment {
                    matrix,
                    bytes,
                    element,
                });
            }
        }
        let stride = self.batch.strides[2];
        let least = match (self.m, self.n) {
            (0, _) | (_, 0) => 0,
            (m, n) => (m - 1).saturating_mul(self.ldc).saturating_add(n),
        };
        if self.batch.count > 1 && stride < least {
            return Err(ProblemError::BatchOverlap { stride, least });
        }
        Ok(())
    }
}
