//! Kernels on the rows of a matrix: softmax, norms, sums.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::norm::{RmsNorm, layer_norm, rms_norm};
use tilewright_kernels::quantize::BLOCK;
use tilewright_kernels::reduce::row_sums;
use tilewright_kernels::rows::RowTile;
use tilewright_kernels::softmax::softmax;
use tilewright_kernels::{KernelError, Proven};

use super::quantized::{quantized, quantized_by_blocks};
use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::matrix::rounded;
use crate::host::{Matrix, Role, Scalar};

/// What is computed of each row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowOperation {
    /// [`softmax()`](tilewright_kernels::softmax::softmax)
    Softmax,
    /// [`rms_norm`](tilewright_kernels::norm::rms_norm)
    RmsNorm(RmsNorm),
    /// [`layer_norm`](tilewright_kernels::norm::layer_norm)
    LayerNorm,
    /// [`row_sums`](tilewright_kernels::reduce::row_sums)
    RowSums,
}

/// An operation on the rows of a matrix of `rows × cols`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rows {
    /// What is computed.
    pub operation: RowOperation,
    /// f32, f16 or bf16.
    pub element: Element,
    /// Rows of x.
    pub rows: u64,
    /// Columns of x.
    pub cols: u64,
    /// ε of the norms.
    pub eps: f32,
}

/// Half a unit of f32 in the last place of 1.
pub(super) const ULP: f64 = 1.0 / (1u64 << 24) as f64;

impl Rows {
    /// The problem, with 1e-5 for the ε of the norms.
    pub fn new(operation: RowOperation, element: Element, rows: u64, cols: u64) -> Self {
        Self {
            operation,
            element,
            rows,
            cols,
            eps: 1e-5,
        }
    }

    /// Whether there is a scale for each 128 elements of a row.
    fn has_blocks(&self) -> bool {
        matches!(self.operation, RowOperation::RmsNorm(variant) if variant.blocks)
    }

    /// Half of the least positive number of a result, about.
    fn tiny(&self) -> f64 {
        let unit = roundoff(self.element);
        unit * f64::powi(0.5, if unit > 1e-6 { 13 } else { 125 })
    }

    fn softmax(&self, x: &[f64]) -> Vec<Expected> {
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = x.iter().copied().fold(f64::INFINITY, f64::min);
        let e: Vec<f64> = x.iter().map(|x| (x - most).exp()).collect();
        let sum: f64 = e.iter().sum();
        // Of the exponent: x − m and its product with log₂e round once each, exp2 has 2⁻²²; the sum rounds along a tree; the result once. Below 2⁻¹²⁶, exp2 is 0.
        let exponent = if least.is_finite() {
            most - least
        } else {
            128.0
        };
        let relative = roundoff(self.element) + ULP * (32.0 + 3.0 * exponent.min(128.0));
        let expected = |e: f64| Expected {
            value: e / sum,
            allowed: relative * e / sum + self.tiny(),
        };
        e.into_iter().map(expected).collect()
    }

    /// The results of an RMS norm of `h`, which is x or the sum with the residual.
    fn rms_norm(&self, variant: RmsNorm, h: &[f64], w: &Matrix) -> Vec<Vec<Expected>> {
        let mean = h.iter().map(|h| h * h).sum::<f64>() / h.len() as f64;
        let norm = (mean + f64::from(self.eps)).sqrt().recip();
        let y = h.iter().enumerate().map(|(j, h)| h * norm * w.at(0, j));
        let y: Vec<f64> = y.collect();
        // Squares and their sum round along a tree, halved by the root; 1/cols and 1/√ have 2⁻²³ each; two products; the result once.
        let of_f32 = 32.0 * ULP;
        let Some(to) = variant.quantized else {
            let relative = roundoff(self.element) + of_f32;
            let y = y.into_iter().map(|value| Expected {
                value,
                allowed: relative * value.abs() + self.tiny(),
            });
            return vec![y.collect()];
        };
        if variant.blocks {
            let (y, scales) = quantized_by_blocks(&y, (to, 2.0 * of_f32));
            return vec![y, scales];
        }
        let (y, scale) = quantized(&y, (to, 2.0 * of_f32));
        vec![y, vec![scale]]
    }

    fn layer_norm(&self, x: &[f64], w: &Matrix, b: &Matrix) -> Vec<Expected> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let size = x.iter().map(|x| x.abs()).sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let scale = (variance + f64::from(self.eps)).sqrt().recip();
        // The mean has the error of a sum of n numbers along a tree, x − μ that error and its own rounding; the rest as in the RMS norm. An error of the mean adds to the
        // variance with its square only.
        let unit = roundoff(self.element);
        let expected = |(j, x): (usize, &f64)| {
            let (w, b) = (w.at(0, j), b.at(0, j));
            let scaled = (x - mean) * scale * w;
            let value = scaled + b;
            let shift = 24.0 * ULP * (size + x.abs()) * scale * w.abs();
            Expected {
                value,
                allowed: unit * value.abs()
                    + 32.0 * ULP * (scaled.abs() + b.abs())
                    + shift
                    + self.tiny(),
            }
        };
        x.iter().enumerate().map(expected).collect()
    }
}

impl Problem for Rows {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        let result = match self.operation {
            RowOperation::RmsNorm(variant) => variant.quantized.unwrap_or(self.element),
            _ => self.element,
        };
        let tile = match self.operation {
            // Nothing is read twice.
            RowOperation::RowSums => RowTile::new(self.element, self.cols)?,
            RowOperation::RmsNorm(variant) if variant.blocks => {
                RowTile::for_blocks(self.element, result, self.cols, arch)?
            }
            _ => RowTile::for_arch(self.element, result, self.cols, arch)?,
        };
        match self.operation {
            RowOperation::Softmax => softmax(&tile, arch),
            RowOperation::RmsNorm(variant) => rms_norm(&tile, variant, arch),
            RowOperation::LayerNorm => layer_norm(&tile, arch),
            RowOperation::RowSums => row_sums(&tile, arch),
        }
    }

    fn least_arch(&self) -> Arch {
        match self.operation {
            // Elsewhere longer rows are not kept.
            RowOperation::RmsNorm(RmsNorm { blocks: true, .. }) if self.cols > 32_768 => Arch(90),
            RowOperation::RmsNorm(RmsNorm {
                quantized: Some(Element::E4m3 | Element::E5m2),
                ..
            }) => Arch(89),
            _ => Arch(80),
        }
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let mut scalars = vec![("rows", extent(self.rows)), ("cols", extent(self.cols))];
        let norm = matches!(
            self.operation,
            RowOperation::RmsNorm(_) | RowOperation::LayerNorm
        );
        if norm {
            scalars.push(("eps", Scalar::F32(self.eps)));
        }
        if self.has_blocks() {
            scalars.push(("ld_scale", extent(self.rows)));
        }
        scalars
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (matrix, vector, each) = ([self.rows, self.cols], [self.cols], [self.rows]);
        let input = |name| Tensor::new(name, Role::Input, self.element, &matrix);
        let along = |name| Tensor::new(name, Role::Input, self.element, &vector);
        let output = |name, element| Tensor::new(name, Role::Output, element, &matrix);
        let mut tensors = vec![input("x")];
        match self.operation {
            RowOperation::Softmax => tensors.push(output("y", self.element)),
            RowOperation::RowSums => {
                tensors.push(Tensor::new("y", Role::Output, Element::F32, &each));
            }
            RowOperation::LayerNorm => {
                tensors.extend(["w", "b"].map(along));
                tensors.push(output("y", self.element));
            }
            RowOperation::RmsNorm(variant) => {
                tensors.extend(variant.residual.then(|| input("r")));
                tensors.push(along("w"));
                tensors.extend(variant.residual.then(|| output("h", self.element)));
                tensors.push(output("y", variant.quantized.unwrap_or(self.element)));
                let blocks = [self.cols.div_ceil(BLOCK as u64), self.rows];
                let scales: &[u64] = if variant.blocks { &blocks } else { &each };
                let scale = Tensor::new("scale", Role::Output, Element::F32, scales);
                tensors.extend(variant.quantized.map(|_| scale));
            }
        }
        tensors
    }

    fn rows(&self) -> usize {
        self.rows as usize
    }

    fn place(&self, output: &str, [row, column]: [usize; 2], cols: usize) -> usize {
        if output == "scale" && self.has_blocks() {
            return column * self.rows as usize + row;
        }
        row * cols + column
    }

    fn row_cost(&self) -> usize {
        16 * self.cols as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let numbers = |of: &Matrix| -> Vec<f64> { (0..of.cols).map(|j| of.at(row, j)).collect() };
        let x = numbers(&inputs[0]);
        match (self.operation, &inputs[1..]) {
            (RowOperation::LayerNorm, [w, b]) => vec![self.layer_norm(&x, w, b)],
            (RowOperation::RmsNorm(variant), [w]) => self.rms_norm(variant, &x, w),
            (RowOperation::RmsNorm(variant), [r, w]) => {
                let sum =
                    |(x, r): (&f64, f64)| rounded(self.element, f64::from(*x as f32 + r as f32));
                let h: Vec<f64> = x.iter().zip(numbers(r)).map(sum).collect();
                let exact = |&value: &f64| Expected {
                    value,
                    allowed: 0.0,
                };
                let stored = h.iter().map(exact).collect();
                let mut all = vec![stored];
                all.extend(self.rms_norm(variant, &h, w));
                all
            }
            (RowOperation::RowSums, _) => {
                let size: f64 = x.iter().map(|x| x.abs()).sum();
                // Up to 8 tiles one after the other, a tree of 32 values, five shuffles, a tree of 32 warps.
                vec![vec![Expected {
                    value: x.iter().sum(),
                    allowed: 24.0 * ULP * size,
                }]]
            }
            _ => vec![self.softmax(&x)],
        }
    }
}
