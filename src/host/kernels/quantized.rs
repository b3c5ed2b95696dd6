//! Matrices quantised to 8-bit types with scales.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::quantize::{BLOCK, Quantize, Scales, Source, quantize};
use tilewright_kernels::{KernelError, Proven};

use super::experts::{random_rows, row_of};
use super::rows::ULP;
use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar};

/// y = x / scale in an 8-bit type, and the scales. The input is x: m × k, or m × 2k if silu(gate)·up is quantised; for gathered rows it is tokens × k, and `token_of_row` is another input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantized {
    /// The kernel.
    pub kernel: Quantize,
    /// Rows of x and y.
    pub m: u64,
    /// Columns of y.
    pub k: u64,
    /// Rows of x that rows of y are gathered from.
    pub tokens: u64,
    /// Elements from one row of the scales in memory to the next, at least as many as it has.
    pub ld_scale: u64,
}

impl Quantized {
    /// The problem for y of m × k, its scales packed.
    pub fn new(kernel: Quantize, [m, k]: [u64; 2]) -> Self {
        let ld_scale = match kernel.scales {
            Scales::Squares => blocks(k),
            _ => m,
        };
        Self {
            kernel,
            m,
            k,
            tokens: m,
            ld_scale,
        }
    }

    /// What is quantised for a row of y.
    fn values(&self, inputs: &[Matrix], row: usize) -> Vec<f64> {
        let (x, k) = (&inputs[0], self.k as usize);
        let row = match (self.kernel.source, inputs) {
            (Source::Gathered, [x, token_of_row]) => row_of(x, token_of_row.at(0, row)),
            _ => Some(row),
        };
        let Some(row) = row else {
            return vec![0.0; k];
        };
        let value = |j: usize| {
            if self.kernel.source != Source::Swiglu {
                return x.at(row, j);
            }
            let (gate, up) = (x.at(row, j), x.at(row, k + j));
            gate / (1.0 + (-gate).exp()) * up
        };
        (0..k).map(value).collect()
    }

    /// The relative error of what is quantised.
    fn relative(&self, x: &Matrix, row: usize) -> f64 {
        if self.kernel.source != Source::Swiglu {
            return 0.0;
        }
        // The exponent, its product with log₂ e and 1 + e round once, exp2 has 2⁻²², the reciprocal and two products round.
        let gates = (0..self.k as usize).map(|j| x.at(row, j).abs().min(128.0));
        ULP * (16.0 + 3.0 * gates.fold(0.0, f64::max))
    }
}

/// Blocks of an extent.
fn blocks(extent: u64) -> u64 {
    extent.div_ceil(BLOCK as u64)
}

/// The largest magnitude; NaN if there is one.
fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    let larger = |most: f64, y: f64| {
        if most.is_nan() || y.abs() <= most {
            most
        } else {
            y.abs()
        }
    };
    values.into_iter().fold(0.0, larger)
}

/// The scale of values of which `most` is the largest magnitude, and may be off by a part of `relative`.
fn scale(most: f64, to: Element, relative: f64) -> Expected {
    let largest = match to {
        Element::S8 => 127.0,
        Element::E5m2 => 57_344.0,
        _ => 448.0,
    };
    let value = if most == 0.0 {
        1.0
    } else if most.is_nan() {
        most
    } else {
        (most / largest).max(f32::MIN_POSITIVE.into())
    };
    Expected {
        value,
        allowed: (relative + 4.0 * ULP) * value,
    }
}

/// Values divided by their scale and rounded to a type, where both may be off by a part of `relative`.
fn divided(values: &[f64], scale: f64, (to, relative): (Element, f64)) -> Vec<Expected> {
    let off = 2.0 * relative + 8.0 * ULP;
    let of = |y: &f64| {
        let value = y / scale;
        let half = match to {
            // There is no NaN in s8.
            Element::S8 if value.is_nan() => {
                return Expected {
                    value: 0.0,
                    allowed: 0.0,
                };
            }
            Element::S8 => 0.5,
            // Half the distance of the least numbers.
            Element::E5m2 => (value.abs() * roundoff(to)).max(f64::powi(0.5, 17)),
            _ => (value.abs() * roundoff(to)).max(f64::powi(0.5, 10)),
        };
        Expected {
            value,
            allowed: half + off * value.abs(),
        }
    };
    values.iter().map(of).collect()
}

/// Values quantised with one scale, and the scale.
pub(super) fn quantized(
    values: &[f64],
    (to, relative): (Element, f64),
) -> (Vec<Expected>, Expected) {
    let scale = scale(most(values.iter().copied()), to, relative);
    (divided(values, scale.value, (to, relative)), scale)
}

/// Values quantised with a scale for each 128, and the scales.
pub(super) fn quantized_by_blocks(
    values: &[f64],
    how: (Element, f64),
) -> (Vec<Expected>, Vec<Expected>) {
    let (mut all, mut scales) = (Vec::new(), Vec::new());
    for block in values.chunks(BLOCK as usize) {
        let (values, scale) = quantized(block, how);
        all.extend(values);
        scales.push(scale);
    }
    (all, scales)
}

impl Problem for Quantized {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        quantize(self.kernel, self.k, arch)
    }

    fn least_arch(&self) -> Arch {
        Arch(89)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let mut all = vec![("m", self.m), ("k", self.k)];
        if self.kernel.source == Source::Gathered {
            all.push(("tokens", self.tokens));
        }
        if self.kernel.scales != Scales::Rows {
            all.push(("ld_scale", self.ld_scale));
        }
        let all = all.into_iter();
        all.map(|(name, size)| (name, extent(size))).collect()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Quantize {
            element,
            to,
            scales,
            source,
        } = self.kernel;
        let of_scales = match scales {
            Scales::Rows128 => vec![blocks(self.k), self.ld_scale],
            Scales::Squares => vec![blocks(self.m), self.ld_scale],
            Scales::Rows => vec![self.m],
        };
        let x = match source {
            Source::Matrix => [self.m, self.k],
            Source::Swiglu => [self.m, self.k.saturating_mul(2)],
            Source::Gathered => [self.tokens, self.k],
        };
        let mut all = vec![Tensor::new("x", Role::Input, element, &x)];
        if source == Source::Gathered {
            let names = Tensor::new("token_of_row", Role::Input, Element::S32, &[self.m]);
            all.push(names);
        }
        all.extend([
            Tensor::new("y", Role::Output, to, &[self.m, self.k]),
            Tensor::new("scale", Role::Output, Element::F32, &of_scales),
        ]);
        all
    }

    fn random(&self, seed: u64) -> Vec<Matrix> {
        let tensors = self.tensors();
        let (rows, cols) = tensors[0].rows();
        let x = Matrix::random(self.kernel.element, rows, cols, cols, seed);
        if self.kernel.source != Source::Gathered {
            return vec![x];
        }
        vec![x, random_rows([1, self.m], self.tokens, seed)]
    }

    fn rows(&self) -> usize {
        self.m as usize
    }

    fn row_cost(&self) -> usize {
        let rows = match self.kernel.scales {
            Scales::Squares => BLOCK as usize,
            _ => 1,
        };
        16 * rows * self.k as usize
    }

    /// The scales of a row are those of all its blocks.
    fn place(&self, output: &str, [row, column]: [usize; 2], cols: usize) -> usize {
        match (output, self.kernel.scales) {
            ("scale", Scales::Rows128) => column * self.ld_scale as usize + row,
            ("scale", Scales::Squares) => row / BLOCK as usize * self.ld_scale as usize + column,
            _ => row * cols + column,
        }
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let (x, to) = (&inputs[0], self.kernel.to);
        let values = self.values(inputs, row);
        let how = (to, self.relative(x, row));
        match self.kernel.scales {
            Scales::Rows128 => {
                let (y, scales) = quantized_by_blocks(&values, how);
                vec![y, scales]
            }
            Scales::Rows => {
                let (y, scale) = quantized(&values, how);
                vec![y, vec![scale]]
            }
            Scales::Squares => {
                let first = row / BLOCK as usize * BLOCK as usize;
                let last = (first + BLOCK as usize).min(x.rows);
                let (mut all, mut scales) = (Vec::new(), Vec::new());
                for (number, block) in values.chunks(BLOCK as usize).enumerate() {
                    let columns = (0..block.len()).map(|j| number * BLOCK as usize + j);
                    let square = columns.flat_map(|j| (first..last).map(move |i| x.at(i, j)));
                    let scale = scale(most(square), to, 0.0);
                    all.extend(divided(block, scale.value, how));
                    scales.push(scale);
                }
                vec![all, scales]
            }
        }
    }
}
