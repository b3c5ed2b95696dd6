//! A part of C that stands for the whole: what large products are checked by.
//!
//! Rows and columns are spread evenly, so that the corners are among them and every part of C is near one. What a sample needs of the operands
//! is a smaller product:
//!
//! ```text
//! rows 0, 3, 6 and columns 0, 4 of a 7×5 C:   [3 rows of A] · [2 columns of B]
//! ```

use tilewright_kernels::gemm::{Bias, DataType, Gemm, Trans};

use super::{Check, Expected, Inputs, judged, of_columns, of_rows, of_these_rows, spread};
use crate::host::{Matrix, OperandError};

/// Elements of C where some of its rows and some of its columns meet.
#[derive(Clone, Debug)]
pub(in crate::host) struct Sample {
    /// The rows, in order.
    pub(in crate::host) rows: Vec<usize>,
    /// The columns, in order.
    columns: Vec<usize>,
    problem: Gemm,
    data_type: DataType,
    expected: Expected,
}

impl Sample {
    /// Some rows × columns elements of the first product.
    ///
    /// # Errors
    ///
    /// A matrix that is not what the problem says.
    pub(in crate::host) fn new(
        problem: &Gemm,
        data_type: DataType,
        inputs: &Inputs,
        (rows, columns): (usize, usize),
    ) -> Result<Self, OperandError> {
        inputs.fit(problem, data_type)?;
        let rows = spread(problem.m as usize, rows);
        let columns = spread(problem.n as usize, columns);
        let (sub, inputs) = of_these_rows(problem, inputs, 0, &rows);
        let inputs = Inputs {
            b: match problem.operands.b {
                _ if problem.alpha == 0.0 => inputs.b,
                Trans::N => of_columns(&inputs.b, &columns),
                Trans::T => of_rows(&inputs.b, &columns),
            },
            c: of_columns(&inputs.c, &columns),
            bias: match (inputs.bias, problem.epilogue.bias) {
                (Some(bias), Bias::Column) => Some(of_columns(&bias, &columns)),
                (bias, _) => bias,
            },
            ..inputs
        };
        let problem = Gemm {
            n: columns.len() as u64,
            ..sub
        };
        Ok(Self {
            rows,
            columns,
            problem,
            data_type,
            expected: Expected::new(&problem, data_type, &inputs)?,
        })
    }

    /// Compares the sample's rows of a result, whole and one below the other, with the reference.
    pub(in crate::host) fn check(&self, rows: &Matrix) -> Check {
        let errors = self
            .expected
            .largest_errors(&of_columns(rows, &self.columns));
        judged(&self.problem, self.data_type, &[errors], true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_kernels::gemm::Operands;

    /// C in f64 by its definition, rounded to f32.
    fn product(problem: &Gemm, inputs: &Inputs) -> Matrix {
        let mut c = inputs.c.clone();
        let (a, b) = (&inputs.a, &inputs.b);
        for (i, j) in (0..c.rows).flat_map(|i| (0..c.cols).map(move |j| (i, j))) {
            let terms = (0..problem.k as usize).map(|k| {
                let a = if problem.operands.a == Trans::N {
                    a.at(i, k)
                } else {
                    a.at(k, i)
                };
                let b = if problem.operands.b == Trans::N {
                    b.at(k, j)
                } else {
                    b.at(j, k)
                };
                a * b
            });
            let sum = problem.alpha * terms.sum::<f64>() + problem.beta * c.at(i, j);
            let at = (i * c.ld + j) * 4;
            c.bytes[at..at + 4].copy_from_slice(&(sum as f32).to_le_bytes());
        }
        c
    }

    #[test]
    fn a_sample_sees_what_is_wrong_in_its_rows_and_columns_alone() {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(29, 23, 17, operands);
            (problem.ldc, problem.alpha, problem.beta) = (25, 1.5, -0.5);
            let inputs = Inputs::random(&problem, DataType::F32, 3);
            let sample = Sample::new(&problem, DataType::F32, &inputs, (5, 3)).expect("it fits");
            assert_eq!(sample.rows, [0, 7, 14, 21, 28]);
            let right = product(&problem, &inputs);
            let passes = |c: &Matrix| sample.check(&of_rows(c, &sample.rows)).passed;
            assert!(passes(&right), "{operands}");
            for (i, j) in (0..29).flat_map(|i| (0..23).map(move |j| (i, j))) {
                let mut wrong = right.clone();
                wrong.bytes[(i * 25 + j) * 4 + 3] ^= 0x40;
                let sampled = i % 7 == 0 && j % 11 == 0;
                assert_eq!(passes(&wrong), !sampled, "{operands}: {i}, {j}");
            }
        }
    }
}
