//! Products of 8-bit floats with scales.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::block_scaled::{ARCH, BLOCK, BlockScaled, Scales, block_scaled};
use tilewright_kernels::gemm::{DataType, Gemm, Operands, Trans};
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar, tolerance};

/// c = Σ over blocks of k of the scales times a·bᵀ of the block. The inputs are a, b, `scale_a` and `scale_b`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScaledProduct {
    /// The kernel.
    pub kernel: BlockScaled,
    /// Rows of a and c.
    pub m: u64,
    /// Rows of b, columns of c.
    pub n: u64,
    /// Columns of a and b.
    pub k: u64,
}

impl ScaledProduct {
    /// The problem for matrices of these sizes.
    pub fn new(kernel: BlockScaled, [m, n, k]: [u64; 3]) -> Self {
        Self { kernel, m, n, k }
    }

    /// Extents of the scales of a and of b. Rows of those of 1×128 are padded to 16 bytes, as TMA reads them.
    fn scales(&self) -> [Vec<u64>; 2] {
        let blocks = |extent: u64| extent.div_ceil(BLOCK as u64);
        let rows = |extent: u64| vec![blocks(self.k), extent.next_multiple_of(4)];
        match self.kernel.scales {
            Scales::Blocks => [rows(self.m), vec![blocks(self.n), blocks(self.k)]],
            Scales::Rows128 => [rows(self.m), rows(self.n)],
            Scales::Rows => [vec![self.m], vec![self.n]],
        }
    }
}

impl Problem for ScaledProduct {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        block_scaled(self.kernel, arch)
    }

    fn least_arch(&self) -> Arch {
        ARCH
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let mut all = vec![("m", self.m), ("n", self.n), ("k", self.k)];
        if self.kernel.scales != Scales::Rows {
            let [of_a, of_b] = self.scales();
            all.extend([("ld_scale_a", of_a[1]), ("ld_scale_b", of_b[1])]);
        }
        let all = all.into_iter();
        all.map(|(name, size)| (name, extent(size))).collect()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let [of_a, of_b] = self.scales();
        vec![
            Tensor::new("a", Role::Input, self.kernel.element, &[self.m, self.k]),
            Tensor::new("b", Role::Input, self.kernel.element, &[self.n, self.k]),
            Tensor::new("scale_a", Role::Input, Element::F32, &of_a),
            Tensor::new("scale_b", Role::Input, Element::F32, &of_b),
            Tensor::new("c", Role::Output, self.kernel.result, &[self.m, self.n]),
        ]
    }

    fn rows(&self) -> usize {
        self.m as usize
    }

    fn row_cost(&self) -> usize {
        (self.n * self.k) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let [a, b, scale_a, scale_b] = inputs else {
            return Vec::new();
        };
        let scale = |block: usize, j: usize| match self.kernel.scales {
            Scales::Blocks => scale_a.at(block, row) * scale_b.at(j / BLOCK as usize, block),
            Scales::Rows128 => scale_a.at(block, row) * scale_b.at(block, j),
            Scales::Rows => scale_a.at(0, row) * scale_b.at(0, j),
        };
        let sums = Sums::new(self.kernel.element, Some(self.kernel.scales), self.k);
        let a: Vec<f64> = (0..a.cols).map(|k| a.at(row, k)).collect();
        let columns = (0..self.n as usize).map(|j| {
            sums.expected(
                (&a, |k| b.at(j, k)),
                |block| scale(block, j),
                self.kernel.result,
            )
        });
        vec![columns.collect()]
    }
}

/// Sums of products, block after block of k, each times its scale.
pub(super) struct Sums {
    of_block: usize,
    relative: f64,
}

impl Sums {
    /// Over k products of elements of a type. Without scales of blocks all of k is one block.
    pub(super) fn new(element: Element, scales: Option<Scales>, k: u64) -> Self {
        // What the tensor cores sum, and additions of f32 behind it.
        let (of_block, blocks) = match scales {
            None | Some(Scales::Rows) => (k.max(1) as usize, 0),
            Some(_) => (BLOCK as usize, k.div_ceil(BLOCK as u64)),
        };
        let operands = Operands {
            a: Trans::N,
            b: Trans::T,
        };
        let mut sums = Gemm::packed(1, 1, k.min(of_block as u64), operands);
        sums.output = Some(Element::F32);
        let of_type = match element {
            Element::E5m2 => DataType::E5m2,
            Element::E4m3 => DataType::E4m3,
            _ => DataType::Bf16,
        };
        let relative = tolerance(&sums, of_type) + f64::powi(0.5, 24) * (blocks + 4) as f64;
        Self { of_block, relative }
    }

    /// The sum of the products of a row of a and a row of b, of which `scale` gives the factor of each block, rounded to `result`.
    pub(super) fn expected(
        &self,
        (a, b): (&[f64], impl Fn(usize) -> f64),
        scale: impl Fn(usize) -> f64,
        result: Element,
    ) -> Expected {
        let unit = roundoff(result);
        let (mut value, mut size) = (0.0, 0.0);
        for (block, a) in a.chunks(self.of_block).enumerate() {
            let first = block * self.of_block;
            let terms = a.iter().enumerate().map(|(k, x)| x * b(first + k));
            let (sum, magnitude) = terms.fold((0.0, 0.0), |(sum, size): (f64, f64), term| {
                (sum + term, size + term.abs())
            });
            let scale = scale(block);
            value += scale * sum;
            size += (scale * magnitude).abs();
        }
        let allowed = 1.25 * self.relative * size;
        Expected {
            value,
            allowed: allowed * (1.0 + unit) + unit * value.abs() + f64::powi(0.5, 133),
        }
    }
}
