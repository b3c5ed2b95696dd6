//! Cross entropy and its gradient.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::cross_entropy::cross_entropy;
use tilewright_kernels::rows::RowTile;
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar};

/// The losses of `rows` targets among `cols` classes, and the gradient of their mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrossEntropy {
    /// The type of the logits and their gradient: f32, f16 or bf16.
    pub element: Element,
    /// Rows of logits.
    pub rows: u64,
    /// Classes.
    pub cols: u64,
}

/// Half a unit of f32 in the last place of 1.
const ULP: f64 = 1.0 / (1u64 << 24) as f64;

/// A target that counts for nothing, as PyTorch's default.
const IGNORED: f64 = -100.0;

impl CrossEntropy {
    /// What a gradient is multiplied by: that of the mean.
    fn scale(&self) -> f32 {
        1.0 / self.rows.max(1) as f32
    }
}

impl Problem for CrossEntropy {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        let tile = RowTile::for_arch(self.element, self.element, self.cols, arch)?;
        cross_entropy(&tile, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        vec![
            ("rows", extent(self.rows)),
            ("cols", extent(self.cols)),
            ("scale", Scalar::F32(self.scale())),
        ]
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (all, each) = ([self.rows, self.cols], [self.rows]);
        vec![
            Tensor::new("x", Role::Input, self.element, &all),
            Tensor::new("target", Role::Input, Element::S32, &each),
            Tensor::new("loss", Role::Output, Element::F32, &each),
            Tensor::new("dx", Role::Output, self.element, &all),
        ]
    }

    fn rows(&self) -> usize {
        self.rows as usize
    }

    fn row_cost(&self) -> usize {
        16 * self.cols as usize
    }

    /// Random logits; targets all over the classes, and one row in eight without.
    fn random(&self, seed: u64) -> Vec<Matrix> {
        let x = Matrix::random(self.element, self.rows, self.cols, self.cols, seed);
        let mut target = Matrix::random(Element::S32, 1, self.rows, self.rows, seed + 1);
        for row in 0..self.rows as usize {
            let step = row as u64 * 7919 + seed;
            let class = if row % 8 == 5 || self.cols == 0 {
                IGNORED
            } else {
                (step % self.cols) as f64
            };
            target.set(0, row, class);
        }
        vec![x, target]
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let x: Vec<f64> = (0..self.cols as usize)
            .map(|j| inputs[0].at(row, j))
            .collect();
        let target = inputs[1].at(0, row);
        let class = x.get(target as usize).filter(|_| target >= 0.0);
        let exact = |value| Expected {
            value,
            allowed: 0.0,
        };
        let Some(&of_target) = class else {
            return vec![vec![exact(0.0)], vec![exact(0.0); x.len()]];
        };
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = x.iter().copied().fold(f64::INFINITY, f64::min);
        let e: Vec<f64> = x.iter().map(|x| (x - most).exp()).collect();
        let sum: f64 = e.iter().sum();
        // As those of a softmax.
        let exponent = if least.is_finite() {
            (most - least).min(128.0)
        } else {
            128.0
        };
        let relative = ULP * (32.0 + 3.0 * exponent);
        let loss = sum.ln() + most - of_target;
        // log2 has 2⁻²² beside its relative error; the sums round once each.
        let loss = Expected {
            value: loss,
            allowed: relative
                + 8.0 * ULP
                + 4.0 * ULP * (sum.ln().abs() + most.abs() + of_target.abs()),
        };
        let (scale, unit) = (f64::from(self.scale()), roundoff(self.element));
        let tiny = unit * f64::powi(0.5, if unit > 1e-6 { 13 } else { 125 });
        let gradient = e.iter().enumerate().map(|(j, e)| {
            let (p, one) = (e / sum, f64::from(u8::from(j == target as usize)));
            let value = scale * (p - one);
            Expected {
                value,
                allowed: scale * (relative * p + 4.0 * ULP * (p + one)) + unit * value.abs() + tiny,
            }
        });
        vec![vec![loss], gradient.collect()]
    }
}
