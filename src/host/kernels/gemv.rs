//! Products of few rows with a large matrix.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::gemm::{Bias, DataType, Epilogue, Gemm, Operands, Trans};
use tilewright_kernels::gemv::{Gemv, gemv};
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar, tolerance};

/// y = activation(α·x·wᵀ + β·y + bias) for x of m × k, 16 rows at most, and w of n × k.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FewRows {
    /// The kernel.
    pub kernel: Gemv,
    /// Rows of x and y, 16 at most.
    pub m: u64,
    /// Rows of w, columns of y.
    pub n: u64,
    /// Columns of x and w.
    pub k: u64,
    /// α and β, if they are parameters of the kernel.
    pub scalars: [f32; 2],
}

impl FewRows {
    /// The problem with α = 1 and β = 0.
    pub fn new(kernel: Gemv, [m, n, k]: [u64; 3]) -> Self {
        Self {
            kernel,
            m,
            n,
            k,
            scalars: [1.0, 0.0],
        }
    }

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
        let mut all = sizes.map(|(name, size)| (name, extent(size))).to_vec();
        if self.kernel.scaled {
            let [alpha, beta] = self.scalars.map(Scalar::F32);
            all.extend([("alpha", alpha), ("beta", beta)]);
        }
        all
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Self {
            kernel, m, n, k, ..
        } = *self;
        let y = if kernel.scaled {
            Role::InOut
        } else {
            Role::Output
        };
        let mut all = vec![
            Tensor::new("x", Role::Input, kernel.element, &[m, k]),
            Tensor::new("w", Role::Input, kernel.element, &[n, k]),
        ];
        let bias = match kernel.epilogue.bias {
            Bias::None => None,
            Bias::Row => Some(m),
            Bias::Column => Some(n),
        };
        all.extend(bias.map(|n| Tensor::new("bias", Role::Input, kernel.result, &[n])));
        all.push(Tensor::new("y", y, kernel.result, &[m, n]));
        all
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
        let Epilogue { bias, activation } = self.kernel.epilogue;
        let [alpha, beta] = if self.kernel.scaled {
            self.scalars.map(f64::from)
        } else {
            [1.0, 0.0]
        };
        let columns = (0..self.n as usize).map(|j| {
            let terms = x.iter().enumerate().map(|(k, x)| x * w.at(j, k));
            let (value, size) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), term| {
                (sum + term, size + term.abs())
            });
            // With α = 0 nothing is multiplied.
            let (product, size) = if alpha == 0.0 {
                (0.0, 0.0)
            } else {
                (alpha * value, (alpha * size).abs())
            };
            let old = match inputs.last() {
                Some(y) if beta != 0.0 => beta * y.at(row, j),
                _ => 0.0,
            };
            let added = match bias {
                Bias::None => 0.0,
                Bias::Row => inputs[2].at(0, row),
                Bias::Column => inputs[2].at(0, j),
            };
            let unit = roundoff(self.kernel.result);
            let value = activation.apply(product + old + added);
            // Each step rounds to f32. A GELU is at most 1.13 as steep as its argument, and its power of two has a relative error of 2⁻²².
            let ends = product.abs() + old.abs() + added.abs();
            let allowed = 1.25 * (relative * size + f64::powi(0.5, 21) * ends);
            Expected {
                value,
                allowed: allowed * (1.0 + unit) + unit * value.abs() + tiny,
            }
        });
        vec![columns.collect()]
    }
}
