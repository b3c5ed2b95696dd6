//! Problems for the kernels that come with Tilewright: the kernel, its tensors, and a reference.
//!
//! A [`Problem`] has the sizes, a kernel for them, the shapes of the tensors, and a reference in f64 with the error that rounding allows for each element. The
//! reference shares nothing with the kernel but the formula.
//!
//! ```
//! use tilewright::codegen::Arch;
//! use tilewright::codegen::ir::Element;
//! use tilewright::host::kernels::{Problem, RowOperation, Rows};
//! use tilewright::host::{On, run};
//!
//! let problem = Rows::new(RowOperation::Softmax, Element::F16, 5, 77);
//! let kernel = problem.kernel(Arch(80))?;
//! let inputs = problem.random(1);
//! let outcome = run(&kernel, On::Emulator, problem.args(&inputs))?;
//! outcome.assert_clean();
//! let compared = problem.compare(&inputs, &outcome)?;
//! assert!(compared.passed(), "{compared:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention;
mod block_scaled;
mod cross_entropy;
mod experts;
mod gemv;
mod grouped;
mod norm_backward;
mod quantized;
mod rows;
mod sequence;
mod transpose;
mod varlen;
mod weight_only;

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::{KernelError, Proven};

use super::matrix::decode;
use super::run::arg::ALIGNMENT;
use super::{Arg, Buffer, Matrix, Outcome, OutcomeError, Role, Scalar};

pub use attention::{Design, Heads};
pub use block_scaled::ScaledProduct;
pub use cross_entropy::CrossEntropy;
pub use experts::{CombinedRows, GatheredRows, Routing};
pub use gemv::FewRows;
pub use grouped::GroupedProduct;
pub use norm_backward::NormBackward;
pub use quantized::Quantized;
pub use rows::{RowOperation, Rows};
pub use sequence::Sequence;
pub use transpose::Transposed;
pub use varlen::Varlen;
pub use weight_only::{Repacked, WeightOnlyProduct};

/// A tensor of a kernel: contiguous, the last extent innermost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// The name of its parameter.
    pub name: &'static str,
    /// What the kernel does with it.
    pub role: Role,
    /// The type of its elements.
    pub element: Element,
    /// Its extents.
    pub shape: Vec<u64>,
}

impl Tensor {
    fn new(name: &'static str, role: Role, element: Element, shape: &[u64]) -> Self {
        Self {
            name,
            role,
            element,
            shape: shape.to_vec(),
        }
    }

    /// How many elements it has; as many as fit the type if there are more.
    pub fn elements(&self) -> u64 {
        if self.shape.contains(&0) {
            return 0;
        }
        let extents = self.shape.iter();
        extents.fold(1, |n: u64, &extent| n.saturating_mul(extent))
    }

    /// Elements from one index to the next along each extent.
    ///
    /// ```
    /// use tilewright::codegen::ir::Element;
    /// use tilewright::host::Role;
    /// use tilewright::host::kernels::Tensor;
    ///
    /// let q = Tensor { name: "q", role: Role::Input, element: Element::F16, shape: vec![2, 8, 100, 64] };
    /// assert_eq!(q.strides(), [51_200, 6_400, 64, 1]);
    /// ```
    pub fn strides(&self) -> Vec<u64> {
        let mut strides = vec![1u64; self.shape.len()];
        for i in (1..self.shape.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(self.shape[i]);
        }
        strides
    }

    /// Its rows along the innermost extent, and their length.
    fn rows(&self) -> (u64, u64) {
        let cols = self.shape.last().copied().unwrap_or(1);
        (self.elements().checked_div(cols).unwrap_or(0), cols)
    }
}

/// An element of a result, and how far rounding may take it from that.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// The value in f64.
    pub value: f64,
    /// The largest error allowed.
    pub allowed: f64,
}

/// What the comparison of a run with the reference gave.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Compared {
    /// The largest absolute error; infinite for NaN or ∞ in a wrong place.
    pub max_abs_err: f64,
    /// The largest error in units of what is allowed at its place.
    pub of_allowed: f64,
}

impl Compared {
    /// Whether every error is allowed.
    pub fn passed(&self) -> bool {
        self.of_allowed <= 1.0
    }

    fn add(&mut self, got: f64, wanted: Expected) {
        let error = (got - wanted.value).abs();
        let same =
            got.to_bits() == wanted.value.to_bits() || (got.is_nan() && wanted.value.is_nan());
        let (error, of_allowed) = match error {
            _ if same || error == 0.0 => (0.0, 0.0),
            e if !e.is_finite() || wanted.allowed.is_nan() => (f64::INFINITY, f64::INFINITY),
            e => (e, e / wanted.allowed),
        };
        self.max_abs_err = self.max_abs_err.max(error);
        self.of_allowed = self.of_allowed.max(of_allowed);
    }
}

/// A kernel that comes with Tilewright on a problem of some size.
pub trait Problem {
    /// The kernel for this problem; of several, the first.
    ///
    /// # Errors
    ///
    /// [`KernelError`] for a configuration that has no kernel on this architecture.
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError>;

    /// All kernels for this problem, as they are launched.
    ///
    /// # Errors
    ///
    /// As [`Problem::kernel`].
    fn sequence(&self, arch: Arch) -> Result<Sequence, KernelError> {
        Sequence::new(vec![self.kernel(arch)?], arch)
    }

    /// The first architecture that has what the kernel needs.
    fn least_arch(&self) -> Arch {
        Arch(80)
    }

    /// The arguments that are numbers, by their names.
    fn scalars(&self) -> Vec<(&'static str, Scalar)>;

    /// The tensors: the inputs, then those that are read and written, then the other outputs.
    fn tensors(&self) -> Vec<Tensor>;

    /// Row `row` of each output. An output with one element a row has that; one without rows has all its elements in row 0, and none in others.
    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>>;

    /// The index of element `column` of a row of an output with `cols` elements a row: behind those of the rows before it, unless the output lies otherwise.
    fn place(&self, _output: &str, [row, column]: [usize; 2], cols: usize) -> usize {
        row * cols + column
    }

    /// How many rows the outputs have.
    fn rows(&self) -> usize;

    /// About how many operations the reference of a row takes.
    fn row_cost(&self) -> usize;

    /// Random numbers for the tensors that are read, the same for the same seed: rows of the innermost extent.
    fn random(&self, seed: u64) -> Vec<Matrix> {
        let tensors = self.tensors();
        let inputs = tensors.iter().filter(|t| t.role != Role::Output);
        let inputs = inputs.zip(seed..).map(|(tensor, seed)| {
            let (rows, cols) = tensor.rows();
            Matrix::random(tensor.element, rows, cols, cols, seed)
        });
        inputs.collect()
    }

    /// The arguments of a launch.
    fn args<'a>(&self, inputs: &'a [Matrix]) -> Vec<(&'static str, Arg<'a>)> {
        let mut inputs = inputs.iter();
        let scalars = self.scalars().into_iter();
        let mut args: Vec<_> = scalars.map(|(n, s)| (n, Arg::Scalar(s))).collect();
        for tensor in self.tensors() {
            let arg = match (tensor.role, inputs.next()) {
                (role @ (Role::Input | Role::InOut), Some(input)) => Arg::matrix(input, role),
                _ => Arg::Buffer(Buffer {
                    element: tensor.element.into(),
                    role: tensor.role,
                    alignment: ALIGNMENT,
                    len: tensor.elements() as usize * tensor.element.bytes() as usize,
                    content: None,
                }),
            };
            args.push((tensor.name, arg));
        }
        args
    }

    /// Compares a run's outputs with the reference: all rows, or some at even distances where all would take minutes.
    ///
    /// # Errors
    ///
    /// [`OutcomeError`] for an outcome that lacks an output.
    fn compare(&self, inputs: &[Matrix], outcome: &Outcome) -> Result<Compared, OutcomeError> {
        let tensors = self.tensors();
        let outputs = tensors.iter().filter(|t| t.role != Role::Input);
        let outputs = outputs.map(|t| Ok((t, outcome.bytes(t.name)?)));
        let outputs = outputs.collect::<Result<Vec<_>, OutcomeError>>()?;
        let (few, rows) = (OPERATIONS / self.row_cost().max(1), self.rows());
        let mut compared = Compared::default();
        for row in (0..rows).step_by(rows.div_ceil(few.max(1)).max(1)) {
            for ((output, bytes), wanted) in outputs.iter().zip(self.expected(inputs, row)) {
                let (size, cols) = (output.element.bytes() as usize, wanted.len());
                for (column, wanted) in wanted.into_iter().enumerate() {
                    let start = self.place(output.name, [row, column], cols) * size;
                    let got = bytes.get(start..start + size);
                    compared.add(got.map_or(f64::NAN, |b| decode(output.element, b)), wanted);
                }
            }
        }
        Ok(compared)
    }
}

/// Operations of the reference at most.
const OPERATIONS: usize = 1 << 31;

/// A size as an argument; one that does not fit 32 bits is refused with the range of the parameter.
fn extent(size: u64) -> Scalar {
    u32::try_from(size).map_or(Scalar::U64(size), Scalar::U32)
}

/// Half a unit in the last place of 1.
fn roundoff(element: Element) -> f64 {
    let bits = match element {
        Element::F32 => 24,
        Element::F16 => 11,
        Element::Bf16 => 8,
        Element::F64 => 53,
        Element::E4m3 => 4,
        Element::E5m2 => 3,
        Element::S8 | Element::S32 => return 0.0,
    };
    f64::powi(0.5, bits)
}
