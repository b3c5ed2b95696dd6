//! Products with 4-bit weights, and weights put in the order that they want.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use layout_core::Layout;
use tilewright_kernels::gemm::{DataType, Gemm, Operands, Trans};
use tilewright_kernels::weight_only::repack::{Order, repack_kernel};
use tilewright_kernels::weight_only::scales::packed_scales;
use tilewright_kernels::weight_only::{
    ARCH, Design, WGMMA_ARCH, WeightOnly, Weights, order, weight_only,
};
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::matrix::{decode, next};
use crate::host::{Matrix, Role, Scalar, tolerance};

/// Values of 4 bits in a word.
const NIBBLES: i64 = 8;

/// c = a·wᵀ for weights of 4 bits. The inputs are a, the packed words of w, the scales, and the zero points if there are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WeightOnlyProduct {
    /// The type of a, c and the scales.
    pub element: Element,
    /// How weights are numbers.
    pub weights: Weights,
    /// Weights along k that have a scale in common.
    pub group: i64,
    /// Each group has a zero point too.
    pub zero_points: bool,
    /// How a block computes it; without, the design for these sizes and the architecture.
    pub design: Option<Design>,
    /// The factor of all weights of nvfp4.
    pub factor: f32,
    /// Rows of a and c.
    pub m: u64,
    /// Rows of w, columns of c.
    pub n: u64,
    /// Columns of a, weights of a row.
    pub k: u64,
}

impl WeightOnlyProduct {
    /// The problem for sizes (m, n, k), without zero points.
    pub fn new(element: Element, weights: Weights, group: i64, [m, n, k]: [u64; 3]) -> Self {
        Self {
            element,
            weights,
            group,
            zero_points: false,
            design: None,
            factor: 1.0,
            m,
            n,
            k,
        }
    }

    fn what(&self, arch: Arch) -> WeightOnly {
        let size = [self.m, self.n, self.k];
        let auto = WeightOnly::new(self.element, self.weights, self.group, size, arch);
        WeightOnly {
            zero_points: self.zero_points,
            design: self.design.unwrap_or(auto.design),
            ..auto
        }
    }

    /// Groups of a row.
    fn groups(&self) -> u64 {
        self.k.div_ceil(self.group.max(1) as u64)
    }

    /// The type of the scales, and their extents: words of four bytes of mxfp4 and nvfp4.
    fn scales(&self) -> (Element, [u64; 2]) {
        if self.weights == Weights::Int4 {
            return (self.element, [self.groups(), self.n]);
        }
        let [pieces, words] = packed(self.n, self.k);
        let of_piece = 256 / self.group.max(1) as u64;
        (Element::S32, [pieces, words / 128 * of_piece])
    }

    /// The scale of a row's group.
    fn scale(&self, scales: &Matrix, place: &Layout, [row, group]: [usize; 2]) -> f64 {
        if self.weights == Weights::Int4 {
            return scales.at(group, row);
        }
        let at = place.at(&[row as i64, group as i64]);
        let byte = scales.bytes[at as usize];
        match self.weights {
            Weights::Mxfp4 if byte == 255 => f64::NAN,
            Weights::Mxfp4 => f64::powi(2.0, i32::from(byte) - 127),
            _ => decode(Element::E4m3, &[byte]),
        }
    }

    /// The number of a weight without its scale, for the zero point of its group.
    fn number(&self, q: u8, zero: f64) -> f64 {
        if self.weights == Weights::Int4 {
            return f64::from(q) - zero;
        }
        let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(q & 7)];
        if q < 8 { magnitude } else { -magnitude }
    }
}

impl Problem for WeightOnlyProduct {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        weight_only(self.what(arch), arch)
    }

    fn least_arch(&self) -> Arch {
        match self.design {
            Some(Design::Wgmma(_)) => WGMMA_ARCH,
            _ => ARCH,
        }
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let sizes = [("m", self.m), ("n", self.n), ("k", self.k)];
        let mut all = sizes.map(|(name, size)| (name, extent(size))).to_vec();
        if self.weights == Weights::Nvfp4 {
            all.push(("factor", Scalar::F32(self.factor)));
        }
        all
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (element, (of_scales, scales)) = (self.element, self.scales());
        let mut all = vec![
            Tensor::new("a", Role::Input, element, &[self.m, self.k]),
            Tensor::new("w", Role::Input, Element::S32, &packed(self.n, self.k)),
            Tensor::new("scales", Role::Input, of_scales, &scales),
        ];
        if self.zero_points {
            all.push(Tensor::new("zeros", Role::Input, element, &scales));
        }
        all.push(Tensor::new("c", Role::Output, element, &[self.m, self.n]));
        all
    }

    /// Any words; zero points from 0 to 15; powers of two from 1/8 to 16 of mxfp4, any numbers of nvfp4.
    fn random(&self, seed: u64) -> Vec<Matrix> {
        let tensors = self.tensors();
        let inputs = tensors.iter().filter(|t| t.role == Role::Input);
        let inputs = inputs.zip(seed..).map(|(tensor, seed)| {
            let (rows, cols) = tensor.rows();
            let mut matrix = Matrix::random(tensor.element, rows, cols, cols, seed);
            let mut state = seed;
            match tensor.name {
                "w" => any_words(&mut matrix, &mut state),
                "scales" if self.weights != Weights::Int4 => {
                    for byte in &mut matrix.bytes {
                        let random = next(&mut state);
                        *byte = match self.weights {
                            Weights::Mxfp4 => 124 + (random % 8) as u8,
                            _ => (random % 256) as u8,
                        };
                        // Not NaN.
                        *byte &= if *byte & 0x7f == 0x7f { 0xf7 } else { 0xff };
                    }
                }
                "zeros" => {
                    for row in 0..matrix.rows {
                        for column in 0..matrix.cols {
                            matrix.set(row, column, (next(&mut state) % 16) as f64);
                        }
                    }
                }
                _ => {}
            }
            matrix
        });
        inputs.collect()
    }

    fn rows(&self) -> usize {
        self.m as usize
    }

    fn row_cost(&self) -> usize {
        (self.n * self.k) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let [a, w, scales, zeros @ ..] = inputs else {
            return Vec::new();
        };
        let (n, k) = (self.n as i64, self.k as i64);
        let places = (order::packed(n, k), packed_scales(n, k, self.group));
        let (Ok(place), Ok(place_of_scales)) = places else {
            return Vec::new();
        };
        let group = self.group as usize;
        // By wgmma, tensor cores sum all of k, of weights that are rounded to the type of a.
        let auto = self.what(WGMMA_ARCH).design;
        let (of_sum, rounded) = match self.design.unwrap_or(auto) {
            Design::MmaSync(_) => (self.group as u64, 0.0),
            Design::Wgmma(_) => (self.k, roundoff(self.element)),
        };
        // Tensor cores sum a group, and what follows is of f32: a multiplication and an addition for each group, and additions of what warps and blocks have.
        let operands = Operands {
            a: Trans::N,
            b: Trans::T,
        };
        let mut sums = Gemm::packed(self.m, self.n, self.k.min(of_sum), operands);
        sums.output = Some(Element::F32);
        let of_type = match self.element {
            Element::F16 => DataType::F16,
            _ => DataType::Bf16,
        };
        let of_f32 = f64::powi(0.5, 24) * (self.groups() + 64) as f64;
        let relative = tolerance(&sums, of_type) + of_f32 + rounded;
        let unit = roundoff(self.element);
        let a: Vec<f64> = (0..a.cols).map(|k| a.at(row, k)).collect();
        let columns = (0..self.n as usize).map(|j| {
            let (mut value, mut size) = (0.0, 0.0);
            for (number, a) in a.chunks(group).enumerate() {
                let zero = zeros.first().map_or(8.0, |zeros| zeros.at(number, j));
                let (mut sum, mut magnitude) = (0.0, 0.0);
                for (k, x) in (number * group..).zip(a) {
                    let q = nibble(w, &place, [j as i64, k as i64]);
                    let product = x * self.number(q, zero);
                    sum += product;
                    magnitude += product.abs();
                }
                let scale = self.scale(scales, &place_of_scales, [j, number]);
                value += scale * sum;
                size += (scale * magnitude).abs();
            }
            if self.weights == Weights::Nvfp4 {
                value *= f64::from(self.factor);
                size *= f64::from(self.factor).abs();
            }
            let allowed = 1.25 * relative * size;
            Expected {
                value,
                allowed: allowed * (1.0 + unit) + unit * value.abs() + self.element.underflow(),
            }
        });
        vec![columns.collect()]
    }
}

/// The words of a checkpoint in the order of the product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repacked {
    /// How the checkpoint has them.
    pub order: Order,
    /// Rows of weights.
    pub n: u64,
    /// Weights of a row.
    pub k: u64,
}

impl Problem for Repacked {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        // Extents that words do not divide are refused.
        self.order.layout(self.n as i64, self.k as i64)?;
        repack_kernel(self.order, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let sizes = [("n", self.n), ("k", self.k)];
        sizes.map(|(name, size)| (name, extent(size))).to_vec()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let from = match self.order {
            Order::RowMajor => [self.n, self.k / 8],
            Order::Gptq => [self.k / 8, self.n],
            Order::Awq => [self.k, self.n / 8],
        };
        vec![
            Tensor::new("from", Role::Input, Element::S32, &from),
            Tensor::new("w", Role::Output, Element::S32, &packed(self.n, self.k)),
        ]
    }

    fn random(&self, seed: u64) -> Vec<Matrix> {
        let (rows, cols) = self.tensors()[0].rows();
        let mut words = Matrix::random(Element::S32, rows, cols, cols, seed);
        any_words(&mut words, &mut seed.clone());
        vec![words]
    }

    fn rows(&self) -> usize {
        packed(self.n, self.k)[0] as usize
    }

    fn row_cost(&self) -> usize {
        (16 * self.k) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let (n, k) = (self.n as i64, self.k as i64);
        let layouts = (self.order.layout(n, k), order::packed(n, k));
        let ([from], (Ok(source), Ok(place))) = (inputs, layouts) else {
            return Vec::new();
        };
        let mut words = vec![0u32; packed(self.n, self.k)[1] as usize];
        let first = row as i64 * words.len() as i64 * NIBBLES;
        for j in (row as i64 * 16..n).take(16) {
            for k in 0..k {
                let to = place.at(&[j, k]) - first;
                let value = u32::from(nibble(from, &source, [j, k]));
                words[(to / NIBBLES) as usize] |= value << (4 * (to % NIBBLES));
            }
        }
        let exact = words.into_iter().map(|word| Expected {
            value: f64::from(word as i32),
            allowed: 0.0,
        });
        vec![exact.collect()]
    }
}

/// Extents of the packed words: pieces of 16 rows, and the words of all their pieces along k.
fn packed(n: u64, k: u64) -> [u64; 2] {
    [n.div_ceil(16), k.div_ceil(64) * 128]
}

/// Random bits.
fn any_words(matrix: &mut Matrix, state: &mut u64) {
    for word in matrix.bytes.chunks_exact_mut(4) {
        word.copy_from_slice(&next(state).to_le_bytes()[..4]);
    }
}

/// The 4 bits at a place of words.
fn nibble(words: &Matrix, place: &Layout, at: [i64; 2]) -> u8 {
    let at = place.at(&at);
    let byte = words.bytes.get((at / 2) as usize).copied().unwrap_or(0);
    byte >> (4 * (at % 2)) & 15
}
