//! Products of few rows with a large matrix.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::gemm::{DataType, Gemm, Operands, Trans};
use tilewright_kernels::gemv::{Gemv, gemv};
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar, tolerance};

/// y = x·wᵀ for x of m × k, 16 rows at most, and w of n × k.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FewRows {
    /// The kernel.
    pub kernel: Gemv,
    /// Rows of x and y, 16 at most.
    pub m: u64,
    /// Rows of w, columns of y.
    pub n: u64,
    /// Columns of x and w.
    pub k: u64,
}

impl FewRows {
    fn data_type(&self) -> DataType {
        match self.kernel.element {
            Element::F16 => DataType::F16,
            Element::Bf16 => DataType::Bf16,
            _ => DataType::E4m3,
        }
    }
}

impl Problem for FewRows {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        gemv(self.kernel, arch)
    }

    fn least_arch(&self) -> Arch {
        match self.kernel.element {
            Element::E4m3 => Arch(89),
            _ => Arch(80),
        }
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let sizes = [("m", self.m), ("n", self.n), ("k", self.k)];
        sizes.map(|(name, size)| (name, extent(size))).into()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Self { kernel, m, n, k } = *self;
        vec![
            Tensor::new("x", Role::Input, kernel.element, &[m, k]),
            Tensor::new("w", Role::Input, kernel.element, &[n, k]),
            Tensor::new("y", Role::Output, kernel.result, &[m, n]),
        ]
    }

    fn rows(&self) -> usize {
        self.m as usize
    }

    fn row_cost(&self) -> usize {
        (self.n * self.k) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let (x, w) = (&inputs[0], &inputs[1]);
        let operands = Operands {
            a: Trans::N,
            b: Trans::T,
        };
        // In f32 but for the last rounding.
        let mut sums = Gemm::packed(self.m, self.n, self.k, operands);
        sums.output = Some(Element::F32);
        let relative = tolerance(&sums, self.data_type());
        let tiny = if self.kernel.result == Element::F16 {
            f64::powi(0.5, 25)
        } else {
            f64::powi(0.5, 133)
        };
        let x: Vec<f64> = (0..x.cols).map(|k| x.at(row, k)).collect();
        let columns = (0..self.n as usize).map(|j| {
            let terms = x.iter().enumerate().map(|(k, x)| x * w.at(j, k));
            let (value, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), term| {
                (sum + term, size + term.abs())
            });
            let unit = roundoff(self.kernel.result);
            Expected {
                value,
                allowed: relative * size * (1.0 + unit) + unit * value.abs() + tiny,
            }
        });
        vec![columns.collect()]
    }
}
