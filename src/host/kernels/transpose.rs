//! The transpose of a matrix.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::transpose::transpose;
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent};
use crate::host::{Matrix, Role, Scalar};

/// y = xᵀ for x of `rows × cols`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transposed {
    /// f32, f16 or s8.
    pub element: Element,
    /// Rows of x.
    pub rows: u64,
    /// Columns of x.
    pub cols: u64,
}

impl Problem for Transposed {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        transpose(self.element, self.rows >= self.cols, arch)
    }

    fn least_arch(&self) -> Arch {
        Arch(75)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        vec![("rows", extent(self.rows)), ("cols", extent(self.cols))]
    }

    fn tensors(&self) -> Vec<Tensor> {
        vec![
            Tensor::new("x", Role::Input, self.element, &[self.rows, self.cols]),
            Tensor::new("y", Role::Output, self.element, &[self.cols, self.rows]),
        ]
    }

    fn rows(&self) -> usize {
        self.cols as usize
    }

    fn row_cost(&self) -> usize {
        self.rows as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let column = (0..self.rows as usize).map(|i| Expected {
            value: inputs[0].at(i, row),
            allowed: 0.0,
        });
        vec![column.collect()]
    }
}
