//! Whether matrices are those of a problem.

use std::fmt;

use layout_codegen::ir::Element;
use tilewright_kernels::gemm::{Batch, Bias, DataType, Gemm};

use super::{Inputs, Matrix};

/// A matrix that is not what the problem says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandError {
    /// `A`, `B`, `C` or `the bias`.
    pub matrix: &'static str,
    /// What the problem says.
    pub expected: String,
    /// What it is.
    pub found: String,
}

impl fmt::Display for OperandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            matrix,
            expected,
            found,
        } = self;
        write!(f, "{matrix} is {found}, and the problem takes {expected}")
    }
}

impl std::error::Error for OperandError {}

/// What a matrix has to be: element, rows, columns, leading dimension, how many and how far apart.
#[derive(Clone, Copy)]
struct Shape {
    element: Element,
    rows: u64,
    cols: u64,
    ld: u64,
    count: u64,
    stride: u64,
}

impl Shape {
    fn of(matrix: &Matrix) -> Self {
        Self {
            element: matrix.element,
            rows: matrix.rows as u64,
            cols: matrix.cols as u64,
            ld: matrix.ld as u64,
            count: matrix.count as u64,
            stride: matrix.stride as u64,
        }
    }

    /// Bytes from the first element to the last; none if no memory has so many.
    fn bytes(self) -> Option<u64> {
        if self.rows == 0 || self.cols == 0 || self.count == 0 {
            return Some(0);
        }
        let matrices = (self.count - 1).checked_mul(self.stride)?;
        let rows = (self.rows - 1).checked_mul(self.ld)?;
        let elements = matrices.checked_add(rows)?.checked_add(self.cols)?;
        elements.checked_mul(self.element.bytes().into())
    }

    /// The same elements at the same places: what lies between single rows or matrices does not matter.
    fn same(self, other: Self) -> bool {
        let shape = |s: Self| (s.element, s.rows, s.cols, s.count);
        shape(self) == shape(other)
            && (self.rows <= 1 || self.ld == other.ld)
            && (self.count <= 1 || self.stride == other.stride)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            element,
            rows,
            cols,
            ld,
            count,
            stride,
        } = self;
        write!(f, "{rows}x{cols} of {element} with rows {ld} apart")?;
        if *count != 1 {
            write!(f, ", {count} times, {stride} apart")?;
        }
        Ok(())
    }
}

fn fits(name: &'static str, matrix: &Matrix, expected: Shape) -> Result<(), OperandError> {
    let found = Shape::of(matrix);
    let refuse = |expected: String, found: String| {
        Err(OperandError {
            matrix: name,
            expected,
            found,
        })
    };
    if !found.same(expected) {
        return refuse(expected.to_string(), found.to_string());
    }
    match found.bytes() {
        Some(bytes) if bytes == matrix.bytes.len() as u64 => Ok(()),
        Some(bytes) => refuse(
            format!("{bytes} bytes"),
            format!("{} bytes", matrix.bytes.len()),
        ),
        None => refuse("what memory can hold".to_owned(), found.to_string()),
    }
}

/// Bytes from the first element that a product reads or writes to the last, of A, B, C and the bias: as many as there can be if no memory
/// has so many; none for a bias that is not there.
#[cfg(any(feature = "emulator", feature = "gpu"))]
pub(crate) fn operand_bytes(problem: &Gemm, data_type: DataType) -> [Option<u64>; 4] {
    let result = problem.result(data_type);
    let [stride_a, stride_b, stride_c] = problem.batch.strides;
    let bytes = |element, (rows, cols), ld, stride| {
        let count = problem.batch.count;
        let shape = Shape {
            element,
            rows,
            cols,
            ld,
            count,
            stride,
        };
        Some(shape.bytes().unwrap_or(u64::MAX))
    };
    let factor = |shape, ld, stride| match problem.alpha {
        // Nobody reads it.
        0.0 => Some(0),
        _ => bytes(data_type.operand(), shape, ld, stride),
    };
    let elements = match problem.epilogue.bias {
        Bias::None => None,
        Bias::Row => Some(problem.m),
        Bias::Column => Some(problem.n),
    };
    [
        factor(problem.stored_a(), problem.lda, stride_a),
        factor(problem.stored_b(), problem.ldb, stride_b),
        bytes(result, (problem.m, problem.n), problem.ldc, stride_c),
        elements.map(|n| n.saturating_mul(result.bytes().into())),
    ]
}

/// C is what the problem says.
pub(crate) fn result_fits(
    c: &Matrix,
    problem: &Gemm,
    data_type: DataType,
) -> Result<(), OperandError> {
    let expected = Shape {
        element: problem.result(data_type),
        rows: problem.m,
        cols: problem.n,
        ld: problem.ldc,
        count: problem.batch.count,
        stride: problem.batch.strides[2],
    };
    fits("C", c, expected)
}

impl Inputs {
    /// Whether the operands are those of a problem: element types, rows, columns, leading dimensions and batch. With α = 0 nobody reads A
    /// and B, and they can be anything.
    ///
    /// # Errors
    ///
    /// The first that is not.
    pub fn fit(&self, problem: &Gemm, data_type: DataType) -> Result<(), OperandError> {
        let Batch {
            count,
            strides: [stride_a, stride_b, _],
        } = problem.batch;
        let factors = [
            ("A", &self.a, problem.stored_a(), problem.lda, stride_a),
            ("B", &self.b, problem.stored_b(), problem.ldb, stride_b),
        ];
        let read = if problem.alpha == 0.0 { 0 } else { 2 };
        for (name, matrix, (rows, cols), ld, stride) in factors.into_iter().take(read) {
            let expected = Shape {
                element: data_type.operand(),
                rows,
                cols,
                ld,
                count,
                stride,
            };
            fits(name, matrix, expected)?;
        }
        result_fits(&self.c, problem, data_type)?;
        let len = match problem.epilogue.bias {
            Bias::None => return Ok(()),
            Bias::Row => problem.m,
            Bias::Column => problem.n,
        };
        let expected = Shape {
            element: problem.result(data_type),
            rows: 1,
            cols: len,
            ld: len,
            count: 1,
            stride: 0,
        };
        match &self.bias {
            Some(bias) => fits("the bias", bias, expected),
            None => Err(OperandError {
                matrix: "the bias",
                expected: expected.to_string(),
                found: "not there".to_owned(),
            }),
        }
    }
}
