//! Backward of the norms.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::norm::{BLOCKS, Norm, norm_backward};
use tilewright_kernels::rows::RowTile;
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Sequence, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar};

/// The gradients of a norm of the rows of a matrix of `rows × cols`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NormBackward {
    /// Which norm.
    pub norm: Norm,
    /// f32, f16 or bf16.
    pub element: Element,
    /// Rows of x.
    pub rows: u64,
    /// Columns of x.
    pub cols: u64,
    /// ε of the norm.
    pub eps: f32,
    /// Blocks that add rows of dw.
    pub blocks: u32,
}

/// Half a unit of f32 in the last place of 1.
const ULP: f64 = 1.0 / (1u64 << 24) as f64;

/// Errors of f32 in what is multiplied, and in the sum of a row along a tree.
const OF_ROW: f64 = 64.0 * ULP;

/// A row of the reference.
struct Row {
    dx: Vec<Expected>,
    /// x̂, and its error.
    normed: Vec<(f64, f64)>,
}

impl NormBackward {
    /// The problem with 1e-5 for ε, and [`BLOCKS`] blocks.
    pub fn new(norm: Norm, element: Element, rows: u64, cols: u64) -> Self {
        Self {
            norm,
            element,
            rows,
            cols,
            eps: 1e-5,
            blocks: BLOCKS,
        }
    }

    fn kernels(&self, arch: Arch) -> Result<Vec<Proven>, KernelError> {
        let tile = RowTile::backward(self.element, self.cols)?;
        norm_backward(self.norm, &tile, self.blocks, arch)
    }

    /// Half of the least positive number of a result, about.
    fn tiny(&self) -> f64 {
        let unit = roundoff(self.element);
        unit * f64::powi(0.5, if unit > 1e-6 { 13 } else { 125 })
    }

    fn row(&self, [x, dy, w]: [&Matrix; 3], row: usize) -> Row {
        let cols = self.cols as usize;
        let n = cols as f64;
        let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / n;
        let mut x: Vec<f64> = (0..cols).map(|j| x.at(row, j)).collect();
        let g: Vec<f64> = (0..cols).map(|j| dy.at(row, j) * w.at(0, j)).collect();
        // Errors of x − μ: the sum's along a tree, and its own rounding.
        let mut shifts = vec![0.0; cols];
        if self.norm == Norm::Layer {
            let size = mean(&mut x.iter().map(|x| x.abs()));
            let of_row = mean(&mut x.iter().copied());
            for (x, shift) in x.iter_mut().zip(&mut shifts) {
                *shift = 24.0 * ULP * (size + x.abs());
                *x -= of_row;
            }
        }
        let squares = mean(&mut x.iter().map(|x| x * x));
        let r = (squares + f64::from(self.eps)).sqrt().recip();
        let normed = x.iter().zip(&shifts);
        let normed: Vec<(f64, f64)> = normed
            .map(|(x, shift)| (x * r, OF_ROW * (x * r).abs() + shift * r))
            .collect();
        let both = || g.iter().zip(&normed);
        let along = mean(&mut both().map(|(g, (x, _))| g * x));
        let along_size = mean(&mut both().map(|(g, (x, _))| (g * x).abs()));
        let along_error = mean(&mut both().map(|(g, (_, error))| g.abs() * error));
        let along_error = OF_ROW * along_size + along_error;
        let (of_g, of_g_size) = match self.norm {
            Norm::Rms => (0.0, 0.0),
            Norm::Layer => (
                mean(&mut g.iter().copied()),
                mean(&mut g.iter().map(|g| g.abs())),
            ),
        };
        let dx = both().map(|(g, (x, error))| {
            let value = r * (g - x * along - of_g);
            let error = OF_ROW * (g.abs() + (x * along).abs() + of_g_size)
                + error * along.abs()
                + x.abs() * along_error;
            Expected {
                value,
                allowed: roundoff(self.element) * value.abs() + r * error + self.tiny(),
            }
        });
        Row {
            dx: dx.collect(),
            normed,
        }
    }

    /// dw and db.
    fn of_columns(&self, inputs: [&Matrix; 3]) -> Vec<Vec<Expected>> {
        let none = Expected {
            value: 0.0,
            allowed: 0.0,
        };
        let mut all = vec![vec![none; self.cols as usize]; self.norm.gradients().len()];
        // A thread adds its rows one after the other; then threads and blocks.
        let adds = self.rows.div_ceil(self.blocks.into()) as f64 + 32.0;
        for row in 0..self.rows as usize {
            let normed = self.row(inputs, row).normed;
            for (j, (x, error)) in normed.into_iter().enumerate() {
                let dy = inputs[1].at(row, j);
                let terms = [(dy * x, dy.abs() * error), (dy, 0.0)];
                for (column, (term, error)) in all.iter_mut().zip(terms) {
                    column[j].value += term;
                    column[j].allowed += adds * ULP * term.abs() + error;
                }
            }
        }
        for sum in all.iter_mut().flatten() {
            sum.allowed += roundoff(self.element) * sum.value.abs() + self.tiny();
        }
        all
    }
}

impl Problem for NormBackward {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        self.kernels(arch).map(|mut all| all.swap_remove(0))
    }

    fn sequence(&self, arch: Arch) -> Result<Sequence, KernelError> {
        Sequence::new(self.kernels(arch)?, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        vec![
            ("rows", extent(self.rows)),
            ("cols", extent(self.cols)),
            ("eps", Scalar::F32(self.eps)),
        ]
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (matrix, vector) = ([self.rows, self.cols], [self.cols]);
        let mut tensors = vec![
            Tensor::new("x", Role::Input, self.element, &matrix),
            Tensor::new("dy", Role::Input, self.element, &matrix),
            Tensor::new("w", Role::Input, self.element, &vector),
            Tensor::new("dx", Role::Output, self.element, &matrix),
        ];
        let gradients = self.norm.gradients().iter();
        tensors
            .extend(gradients.map(|name| Tensor::new(name, Role::Output, self.element, &vector)));
        tensors
    }

    /// One without rows has dw in row 0.
    fn rows(&self) -> usize {
        self.rows.max(1) as usize
    }

    fn row_cost(&self) -> usize {
        32 * self.cols as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let [x, dy, w] = inputs else {
            return Vec::new();
        };
        let inputs = [x, dy, w];
        let dx = (row < self.rows as usize).then(|| self.row(inputs, row).dx);
        let mut all = vec![dx.unwrap_or_default()];
        if row == 0 {
            all.extend(self.of_columns(inputs));
        }
        all
    }
}
