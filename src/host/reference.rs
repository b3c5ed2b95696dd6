//! The reference: the same products in double precision, and how far from them a correct kernel may be.
//!
//! Errors are measured against `|α|·|A|·|B| + |β|·|C| + |bias|` at each element, the *magnitude*: what every rounding of a sum is
//! proportional to at most. How much of it rounding explains is worked out in [`tolerance`], step by step, and never tuned to a result.

#[cfg(feature = "gpu")]
mod sample;

use tilewright_kernels::gemm::{Activation, Batch, Bias, DataType, Gemm, Trans};

use ndarray::Array2;
use ndarray::linalg::general_mat_mul;

use super::fit::result_fits;
use super::{Matrix, OperandError};
#[cfg(feature = "gpu")]
pub(super) use sample::Sample;

/// The operands of a problem.
#[derive(Clone, PartialEq, Debug)]
pub struct Inputs {
    /// A as it lies in memory.
    pub a: Matrix,
    /// B as it lies in memory.
    pub b: Matrix,
    /// C before the product.
    pub c: Matrix,
    /// The bias, one row of m or n elements of C's type, for all products of a batch; none if the epilogue has none.
    pub bias: Option<Matrix>,
}

impl Inputs {
    /// Random operands for a problem, the same for the same seed.
    pub fn random(problem: &Gemm, data_type: DataType, seed: u64) -> Self {
        let first = seed.wrapping_mul(3);
        let (operand, result) = (data_type.operand(), problem.result(data_type));
        let Batch {
            count,
            strides: [stride_a, stride_b, stride_c],
        } = problem.batch;
        let ((ra, ca), (rb, cb)) = (problem.stored_a(), problem.stored_b());
        let bias = match problem.epilogue.bias {
            Bias::None => None,
            Bias::Row => Some(problem.m),
            Bias::Column => Some(problem.n),
        };
        Self {
            a: Matrix::random_batch(operand, (ra, ca, problem.lda), (count, stride_a), first),
            b: Matrix::random_batch(
                operand,
                (rb, cb, problem.ldb),
                (count, stride_b),
                first.wrapping_add(1),
            ),
            c: Matrix::random_batch(
                result,
                (problem.m, problem.n, problem.ldc),
                (count, stride_c),
                first.wrapping_add(2),
            ),
            // Another sequence than that of any matrix of a seed nearby.
            bias: bias.map(|len| Matrix::random(result, 1, len, len, !first)),
        }
    }
}

/// What a comparison with the reference found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// The largest difference.
    pub max_abs_err: f64,
    /// The largest difference relative to the magnitude `|α|·|A|·|B| + |β|·|C| + |bias|` at its element.
    pub max_rel_err: f64,
    /// The largest relative difference that rounding explains.
    pub tolerance: f64,
    /// Nothing between the rows of C or between its matrices changed.
    pub gaps_untouched: bool,
    /// All of it holds.
    pub passed: bool,
}

/// λ of the probabilistic error bound: a sum of n rounded terms is within λ·√n·u of its exact value, relative to the sum of
/// the absolute values, but for a probability below 2·exp(−λ²/2)·n (Higham and Mary 2019, "A new approach to probabilistic
/// rounding error analysis"); 2·exp(−32) at λ = 8.
const LAMBDA: f64 = 8.0;

/// The largest derivative of [`Activation::Gelu`] is below this (1.1290 at x = 1.42).
const GELU_SLOPE: f64 = 1.13;

/// The error of evaluating [`Activation::Gelu`] in units of roundoff, relative to its argument: see [`tolerance`].
const GELU_ROUNDOFFS: f64 = 8.0;

/// Products that a tensor core adds at once, at least (Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores").
const PRODUCTS_AT_ONCE: u64 = 4;

/// Products of 8-bit floats that a tensor core adds at once, at least.
const BYTE_PRODUCTS_AT_ONCE: u64 = 16;

/// What rounding explains, relative to the magnitude `|α|·|A|·|B| + |β|·|C| + |bias|` at an element: never tuned to a result. With u the
/// unit roundoff of the accumulator (2⁻²⁴ for f32, 2⁻¹¹ where sums are kept in f16, 2⁻⁵³ for f64):
///
/// * accumulation: the k products, their sums, the scaling by α and β, the sum of both and, if there is one, the sum with the bias, each
///   rounded once: `λ·√(k+3)·u`, with a bias `λ·√(k+4)·u`. Splitting the sums makes this no larger: an element goes through the sums of
///   its own part and then those of the parts, and as every part has at least one product that chain is never longer than k;
/// * tensor cores cut the sum of each instruction off instead of rounding it, and what is cut off has one sign: at most one unit
///   in the last place, 2u, for every four products (the fewest that an instruction adds at once): `k/4·2u` (not for f64, which rounds);
/// * of 8-bit floats, tensor cores of `sm_89` (and `wgmma`) cut the products of a step at 13 bits below the greatest, and keep the sum to 13 bits
///   (Zhang et al. 2024, "SageAttention2"): at most two units in the last place, `k/16·2·2⁻¹³`;
/// * operands: tf32 rounds both factors of each product to 11 bits: `2·2⁻¹¹`;
/// * the activation. max(x, 0) is exact and brings no two numbers further apart. GELU stretches what came before by its slope, below 1.13, and
///   its own evaluation as `x / (1 + 2^v)`, `v = −log₂e·x·(c₀ + c₀c₁·x²)`, adds to it relative to |x|, which the magnitude bounds: v has
///   at most 6 roundings, of which x·σ(1−σ)·ln 2·v passes on `max σ(1−σ)·t·6u < 1.4u`; ex2.approx is within 2 units in the last place
///   of the rounded value (PTX ISA), 5u, of which σ(1−σ) ≤ ¼ passes on less than 1.3u; the sum with 1 gives u, rcp.approx one unit in
///   the last place, 2u, and the product with x u: 6.7u altogether, taken as 8u for what is quadratic in u;
/// * the result: one rounding to C's type.
///
/// Each step's error comes on top of a value that is already off by the steps before: they compound, `(1+e₁)(1+e₂)−1`.
/// What is subnormal, in f16 sums or in C, rounds to half its spacing instead, which [`check`] takes off the difference first.
///
/// A number that C's type has no room for is infinite in C: that is right where the exact one, give or take what rounding explains, is
/// rounded to infinity.
///
/// Integers are exact modulo 2³²: sums, products with α and β and their sum wrap, as the instructions do.
pub fn tolerance(problem: &Gemm, data_type: DataType) -> f64 {
    let accumulator = data_type.accumulator();
    if accumulator.is_integer() {
        return 0.0;
    }
    let u = accumulator.unit_roundoff();
    let k = problem.k;
    let last = if problem.epilogue.bias == Bias::None {
        3
    } else {
        4
    };
    let accumulation = LAMBDA * ((k + last) as f64).sqrt() * u;
    let cut_off = match data_type {
        DataType::F32 | DataType::F64 => 0.0,
        DataType::E4m3 | DataType::E5m2 => {
            k.div_ceil(BYTE_PRODUCTS_AT_ONCE) as f64 * 2.0 * f64::powi(0.5, 13)
        }
        _ => k.div_ceil(PRODUCTS_AT_ONCE) as f64 * 2.0 * u,
    };
    let operands = if data_type == DataType::Tf32 {
        2.0 * f64::powi(0.5, 11)
    } else {
        0.0
    };
    let sum = accumulation + cut_off + operands;
    let activated = match problem.epilogue.activation {
        Activation::Identity | Activation::Relu => sum,
        Activation::Gelu => {
            let own = GELU_ROUNDOFFS * data_type.scalar().unit_roundoff();
            GELU_SLOPE * sum + (1.0 + sum) * own
        }
    };
    activated + (1.0 + activated) * problem.result(data_type).unit_roundoff()
}

/// What rounding explains absolutely, where numbers are subnormal and rounding is relative to nothing: half the spacing of the subnormal
/// numbers of the accumulator for each step of a sum (twice that, since tensor cores cut off), scaled by α and the slope of GELU, and of
/// C's type for the result. It is 0 or far below any number in play unless one of them is f16.
fn spacing(problem: &Gemm, data_type: DataType) -> f64 {
    let steps = problem.k.div_ceil(PRODUCTS_AT_ONCE) as f64;
    let sums = 2.0 * steps * problem.alpha.abs() * data_type.accumulator().underflow();
    GELU_SLOPE * sums + problem.result(data_type).underflow()
}

/// op(A)·op(B) in double precision, packed m×n; operands are packed as they lie.
fn product(problem: &Gemm, a: Vec<f64>, b: Vec<f64>) -> Result<Vec<f64>, OperandError> {
    let array = |matrix, (rows, cols): (u64, u64), elements: Vec<f64>| {
        let found = elements.len();
        Array2::from_shape_vec((rows as usize, cols as usize), elements).map_err(|_| OperandError {
            matrix,
            expected: format!("{rows}x{cols} elements"),
            found: format!("{found} elements"),
        })
    };
    let a = array("A", problem.stored_a(), a)?;
    let b = array("B", problem.stored_b(), b)?;
    let a = if problem.operands.a == Trans::N {
        a.view()
    } else {
        a.t()
    };
    let b = if problem.operands.b == Trans::N {
        b.view()
    } else {
        b.t()
    };
    // `dot` may return its result column by column: this array's order is fixed.
    let mut c = Array2::zeros((a.nrows(), b.ncols()));
    general_mat_mul(1.0, &a, &b, 0.0, &mut c);
    Ok(c.into_raw_vec_and_offset().0)
}

/// Compares `result` with C ← activation(α·op(A)·op(B) + β·C + bias) in double precision, for every product of a batch. As in BLAS,
/// β = 0 does not read C and α = 0 reads neither A nor B.
///
/// # Errors
///
/// A matrix that is not what the problem says.
pub fn check(
    problem: &Gemm,
    data_type: DataType,
    inputs: &Inputs,
    result: &Matrix,
) -> Result<Check, OperandError> {
    inputs.fit(problem, data_type)?;
    result_fits(result, problem, data_type)?;
    let gaps_untouched = result.gaps_untouched(&inputs.c);
    let errors = (0..result.count)
        .map(|i| {
            let one = Inputs {
                a: factor(problem, &inputs.a, i),
                b: factor(problem, &inputs.b, i),
                c: inputs.c.matrix(i),
                bias: inputs.bias.clone(),
            };
            let expected = Expected::new(problem, data_type, &one)?;
            Ok(expected.largest_errors(&result.matrix(i)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(judged(problem, data_type, &errors, gaps_untouched))
}

/// Matrix `i` of A or B, which is not read if α = 0.
fn factor(problem: &Gemm, all: &Matrix, i: usize) -> Matrix {
    if problem.alpha == 0.0 {
        all.clone()
    } else {
        all.matrix(i)
    }
}

/// The check of products with these absolute and relative errors.
fn judged(
    problem: &Gemm,
    data_type: DataType,
    errors: &[(f64, f64)],
    gaps_untouched: bool,
) -> Check {
    let max_abs_err = errors.iter().map(|e| e.0).fold(0.0, f64::max);
    let max_rel_err = errors.iter().map(|e| e.1).fold(0.0, f64::max);
    let tolerance = tolerance(problem, data_type);
    Check {
        max_abs_err,
        max_rel_err,
        tolerance,
        gaps_untouched,
        passed: max_rel_err <= tolerance && gaps_untouched,
    }
}

/// The elements of one product in double precision, row by row, and what their errors are relative to.
#[derive(Clone, Debug)]
struct Expected {
    cols: usize,
    values: Vec<f64>,
    /// `|α|·|A|·|B| + |β|·|C| + |bias|`
    scales: Vec<f64>,
    tolerance: f64,
    spacing: f64,
    overflow: f64,
}

impl Expected {
    /// C of one product.
    fn new(problem: &Gemm, data_type: DataType, inputs: &Inputs) -> Result<Self, OperandError> {
        // α and β reach the kernel in the type that it scales with.
        let scalar = |v: f64| {
            if data_type == DataType::F64 {
                v
            } else {
                f64::from(v as f32)
            }
        };
        let (alpha, beta) = (scalar(problem.alpha), scalar(problem.beta));
        let (rows, cols) = (problem.m as usize, problem.n as usize);
        let zeros = vec![0.0; rows * cols];
        let (sum, magnitude) = if alpha == 0.0 {
            (zeros.clone(), zeros)
        } else {
            let (a, b) = (inputs.a.packed(), inputs.b.packed());
            let absolute = |v: &[f64]| v.iter().copied().map(f64::abs).collect::<Vec<_>>();
            let magnitude = product(problem, absolute(&a), absolute(&b))?;
            (product(problem, a, b)?, magnitude)
        };
        let (mut values, mut scales) = (Vec::new(), Vec::new());
        for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
            let i = r * cols + c;
            let old = if beta == 0.0 {
                0.0
            } else {
                beta * inputs.c.at(r, c)
            };
            let bias = match (&inputs.bias, problem.epilogue.bias) {
                (None, _) | (_, Bias::None) => 0.0,
                (Some(bias), Bias::Row) => bias.at(0, r),
                (Some(bias), Bias::Column) => bias.at(0, c),
            };
            let before = if data_type.accumulator().is_integer() {
                wrapped([
                    (problem.alpha, sum[i]),
                    (problem.beta, inputs.c.at(r, c)),
                    (1.0, bias),
                ])
            } else {
                alpha * sum[i] + old + bias
            };
            values.push(problem.epilogue.activation.apply(before));
            scales.push(alpha.abs() * magnitude[i] + old.abs() + bias.abs());
        }
        Ok(Self {
            cols,
            values,
            scales,
            tolerance: tolerance(problem, data_type),
            spacing: spacing(problem, data_type),
            overflow: problem.result(data_type).overflow(),
        })
    }

    /// The largest absolute and relative error of a result of as many rows and columns; infinite where a number that should be is none.
    fn largest_errors(&self, result: &Matrix) -> (f64, f64) {
        let (mut max_abs_err, mut max_rel_err) = (0.0_f64, 0.0_f64);
        for (i, (&expected, &scale)) in self.values.iter().zip(&self.scales).enumerate() {
            let got = result.at(i / self.cols, i % self.cols);
            let beyond = expected.abs() + self.tolerance * scale >= self.overflow;
            let difference = if beyond && got.is_infinite() && got.signum() == expected.signum() {
                0.0
            } else {
                (got - expected).abs()
            };
            let relative = match ((difference - self.spacing).max(0.0), scale) {
                (rest, _) if difference.is_nan() => rest + f64::NAN,
                (0.0, _) => 0.0,
                (rest, _) => rest / scale,
            };
            // A NaN anywhere is an infinite error.
            max_abs_err = if difference.is_nan() {
                f64::INFINITY
            } else {
                max_abs_err.max(difference)
            };
            max_rel_err = if relative.is_nan() {
                f64::INFINITY
            } else {
                max_rel_err.max(relative)
            };
        }
        (max_abs_err, max_rel_err)
    }
}

/// The sum of products of whole numbers modulo 2³², as a signed number.
fn wrapped(terms: [(f64, f64); 3]) -> f64 {
    let sum = terms.iter().fold(0_i64, |sum, &(factor, value)| {
        sum.wrapping_add((factor as i64).wrapping_mul(value as i64))
    });
    f64::from(sum as i32)
}

/// As [`check`], for `count` rows of C drawn from the whole matrix, the first and the last among them: what large products are checked
/// by. Of a batch, the first and the last product. The gaps of C are all compared.
///
/// # Errors
///
/// As [`check`].
pub fn check_rows(
    problem: &Gemm,
    data_type: DataType,
    inputs: &Inputs,
    result: &Matrix,
    count: usize,
) -> Result<Check, OperandError> {
    inputs.fit(problem, data_type)?;
    result_fits(result, problem, data_type)?;
    let gaps_untouched = result.gaps_untouched(&inputs.c);
    // The first and the last, as far as there are any.
    let chosen: Vec<_> = (0..result.count.min(1))
        .chain((1..result.count).next_back())
        .collect();
    let rows = spread(problem.m as usize, count);
    let errors = chosen
        .into_iter()
        .map(|i| {
            let (sub, sub_inputs) = of_these_rows(problem, inputs, i, &rows);
            let expected = Expected::new(&sub, data_type, &sub_inputs)?;
            Ok(expected.largest_errors(&of_rows(&result.matrix(i), &rows)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(judged(problem, data_type, &errors, gaps_untouched))
}

/// The smaller product that some rows of product `i` of a batch are.
fn of_these_rows(problem: &Gemm, inputs: &Inputs, i: usize, rows: &[usize]) -> (Gemm, Inputs) {
    let a = factor(problem, &inputs.a, i);
    let inputs = Inputs {
        a: match problem.operands.a {
            _ if problem.alpha == 0.0 => a,
            Trans::N => of_rows(&a, rows),
            Trans::T => of_columns(&a, rows),
        },
        b: factor(problem, &inputs.b, i),
        c: of_rows(&inputs.c.matrix(i), rows),
        bias: match (&inputs.bias, problem.epilogue.bias) {
            (Some(bias), Bias::Row) => Some(of_columns(bias, rows)),
            (bias, _) => bias.clone(),
        },
    };
    let problem = Gemm {
        m: rows.len() as u64,
        ..*problem
    };
    (problem, inputs)
}

/// `count` numbers below `len` spread evenly, the first and the last among them: all of them if there are no more.
fn spread(len: usize, count: usize) -> Vec<usize> {
    if len <= count {
        (0..len).collect()
    } else {
        (0..count)
            .map(|i| i * (len - 1) / (count - 1).max(1))
            .collect()
    }
}

/// The given rows of a matrix, one below the other.
fn of_rows(from: &Matrix, chosen: &[usize]) -> Matrix {
    let size = from.element.bytes() as usize;
    let row = |r: usize| &from.bytes[r * from.ld * size..(r * from.ld + from.cols) * size];
    Matrix {
        rows: chosen.len(),
        ld: from.cols,
        bytes: chosen.iter().flat_map(|&r| row(r)).copied().collect(),
        ..*from
    }
}

/// The given columns of a matrix, side by side.
fn of_columns(from: &Matrix, chosen: &[usize]) -> Matrix {
    let size = from.element.bytes() as usize;
    let element = |r: usize, c: usize| &from.bytes[(r * from.ld + c) * size..][..size];
    let bytes = (0..from.rows).flat_map(|r| chosen.iter().flat_map(move |&c| element(r, c)));
    Matrix {
        cols: chosen.len(),
        ld: chosen.len(),
        bytes: bytes.copied().collect(),
        ..*from
    }
}
