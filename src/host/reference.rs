//! The reference: the same product in double precision, and how far from it a correct kernel may be.

use layout_codegen::plan::{DataType, Element, Gemm, Trans};

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ShapeError};

use super::Matrix;

/// The operands of a problem.
#[derive(Clone, PartialEq, Debug)]
pub struct Inputs {
    /// A as it lies in memory.
    pub a: Matrix,
    /// B as it lies in memory.
    pub b: Matrix,
    /// C before the product.
    pub c: Matrix,
}

impl Inputs {
    /// Random operands for a problem, the same for the same seed.
    pub fn random(problem: &Gemm, data_type: DataType, seed: u64) -> Self {
        let ((ra, ca), (rb, cb)) = (problem.stored_a(), problem.stored_b());
        let first = seed.wrapping_mul(3);
        Self {
            a: Matrix::random(data_type.operand(), ra, ca, problem.lda, first),
            b: Matrix::random(
                data_type.operand(),
                rb,
                cb,
                problem.ldb,
                first.wrapping_add(1),
            ),
            c: Matrix::random(
                data_type.result(),
                problem.m,
                problem.n,
                problem.ldc,
                first.wrapping_add(2),
            ),
        }
    }
}

/// What a comparison with the reference found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// The largest difference.
    pub max_abs_err: f64,
    /// The largest difference relative to `|α|·|A|·|B| + |β|·|C|` at its element: what rounding errors are proportional to.
    pub max_rel_err: f64,
    /// The largest relative difference that rounding explains.
    pub tolerance: f64,
    /// No element of the gaps between the rows of C changed.
    pub gaps_untouched: bool,
    /// All of it holds.
    pub passed: bool,
}

/// λ of the probabilistic error bound: a sum of n rounded terms is within λ·√n·u of its exact value, relative to the sum of
/// the absolute values, but for a probability below 2·exp(−λ²/2)·n (Higham and Mary 2019, "A new approach to probabilistic
/// rounding error analysis"); 2·exp(−32) at λ = 8.
const LAMBDA: f64 = 8.0;

/// What rounding explains, relative to `|α|·|A|·|B| + |β|·|C|` at an element: never tuned to a result.
///
/// * accumulation: the k products, their sums, the scaling by α and β and the last sum, each rounded once: `λ·√(k+3)·u`;
/// * tensor cores cut the sum of each instruction off instead of rounding it, and what is cut off has one sign: at most one unit
///   in the last place, 2u, for every four products (the fewest that an instruction adds at once): `k/4·2u` (not for f64, which rounds);
/// * operands: tf32 rounds both factors of each product to 11 bits: `2·2⁻¹¹`;
/// * the result: one rounding to C's type. (Where that is subnormal, half its spacing is taken off the difference first.)
///
/// Integers are exact.
pub fn tolerance(data_type: DataType, k: u64) -> f64 {
    let u = match data_type {
        DataType::F64 => Element::F64.unit_roundoff(),
        DataType::S8 => return 0.0,
        _ => Element::F32.unit_roundoff(),
    };
    let accumulation = LAMBDA * ((k + 3) as f64).sqrt() * u;
    let cut_off = match data_type {
        DataType::F32 | DataType::F64 => 0.0,
        _ => k.div_ceil(4) as f64 * 2.0 * u,
    };
    let operands = if data_type == DataType::Tf32 {
        2.0 * f64::powi(0.5, 11)
    } else {
        0.0
    };
    let result = data_type.result().unit_roundoff();
    accumulation + cut_off + operands + result
}

/// op(A)·op(B) in double precision, packed m×n; operands are packed as they lie.
fn product(problem: &Gemm, a: Vec<f64>, b: Vec<f64>) -> Result<Vec<f64>, ShapeError> {
    let shape = |(rows, cols): (u64, u64)| (rows as usize, cols as usize);
    let a = Array2::from_shape_vec(shape(problem.stored_a()), a)?;
    let b = Array2::from_shape_vec(shape(problem.stored_b()), b)?;
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

/// Compares `result` with C ← α·op(A)·op(B) + β·C in double precision. As in BLAS, β = 0 does not read C and α = 0
/// reads neither A nor B.
///
/// # Errors
///
/// Operands that do not have the problem's shape.
pub fn check(
    problem: &Gemm,
    data_type: DataType,
    inputs: &Inputs,
    result: &Matrix,
) -> Result<Check, ShapeError> {
    // α and β reach the kernel in the type that it scales with.
    let scalar = |v: f64| {
        if data_type == DataType::F64 {
            v
        } else {
            f64::from(v as f32)
        }
    };
    let (alpha, beta) = (scalar(problem.alpha), scalar(problem.beta));
    let zeros = vec![0.0; (problem.m * problem.n) as usize];
    let (sum, magnitude) = if alpha == 0.0 {
        (zeros.clone(), zeros)
    } else {
        let (a, b) = (inputs.a.packed(), inputs.b.packed());
        let absolute = |v: &[f64]| v.iter().copied().map(f64::abs).collect::<Vec<_>>();
        let magnitude = product(problem, absolute(&a), absolute(&b))?;
        (product(problem, a, b)?, magnitude)
    };
    let underflow = result.element.underflow();
    let (mut max_abs_err, mut max_rel_err) = (0.0_f64, 0.0_f64);
    let rows = if result.cols == 0 { 0 } else { result.rows };
    for r in 0..rows {
        for c in 0..result.cols {
            let i = r * result.cols + c;
            let old = if beta == 0.0 {
                0.0
            } else {
                beta * inputs.c.at(r, c)
            };
            let expected = alpha * sum[i] + old;
            let scale = alpha.abs() * magnitude[i] + old.abs();
            let difference = (result.at(r, c) - expected).abs();
            // Below the smallest normal number, rounding to C's type is not relative to anything.
            let relative = match ((difference - underflow).max(0.0), scale) {
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
    }
    let tolerance = tolerance(data_type, problem.k);
    let gaps_untouched = result.gaps_untouched(&inputs.c);
    let passed = max_rel_err <= tolerance && gaps_untouched;
    Ok(Check {
        max_abs_err,
        max_rel_err,
        tolerance,
        gaps_untouched,
        passed,
    })
}

/// As [`check`], for `count` rows of C drawn from the whole matrix, the first and the last among them: what large products are checked
/// by.
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
) -> Result<Check, ShapeError> {
    let m = problem.m as usize;
    if m <= count {
        return check(problem, data_type, inputs, result);
    }
    // Rows at a stride that shares no factor with a tile's side.
    let rows: Vec<usize> = (0..count).map(|i| i * (m - 1) / (count - 1)).collect();
    let pick = |from: &Matrix| {
        let size = from.element.bytes() as usize;
        let row = |r: usize| &from.bytes[r * from.ld * size..(r * from.ld + from.cols) * size];
        let bytes = rows.iter().flat_map(|&r| row(r)).copied().collect();
        Matrix {
            element: from.element,
            rows: count,
            cols: from.cols,
            ld: from.cols,
            bytes,
        }
    };
    let a = if problem.operands.a == Trans::N {
        pick(&inputs.a)
    } else {
        columns(&inputs.a, &rows)
    };
    let sub = Gemm {
        m: count as u64,
        lda: a.ld as u64,
        ldc: problem.n,
        ..*problem
    };
    let sub_inputs = Inputs {
        a,
        b: inputs.b.clone(),
        c: pick(&inputs.c),
    };
    check(&sub, data_type, &sub_inputs, &pick(result))
}

/// The given columns of a matrix, side by side.
fn columns(from: &Matrix, chosen: &[usize]) -> Matrix {
    let size = from.element.bytes() as usize;
    let element = |r: usize, c: usize| &from.bytes[(r * from.ld + c) * size..][..size];
    let bytes = (0..from.rows).flat_map(|r| chosen.iter().flat_map(move |&c| element(r, c)));
    Matrix {
        element: from.element,
        rows: from.rows,
        cols: chosen.len(),
        ld: chosen.len(),
        bytes: bytes.copied().collect(),
    }
}
