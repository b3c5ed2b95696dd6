//! The launch contract: what a host program needs besides the PTX file.

use super::problem::Gemm;
use crate::ptx::ParamKind;

/// Grid, block and parameters of one launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The entry's name.
    pub kernel: String,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The arguments, in the order of the parameters.
    pub arguments: Vec<Argument>,
}

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
    /// Its value.
    pub value: ArgumentValue,
}

/// The value of an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArgumentValue {
    /// The address of matrix A.
    A,
    /// The address of matrix B.
    B,
    /// The address of matrix C, read (unless β = 0) and written.
    C,
    /// An unsigned integer.
    Int(u64),
    /// A floating-point number.
    Float(f64),
}

impl Launch {
    /// The value of each parameter that GEMM kernels have, by name.
    pub(crate) fn gemm_argument(problem: &Gemm, name: &str) -> Option<ArgumentValue> {
        Some(match name {
            "A" => ArgumentValue::A,
            "B" => ArgumentValue::B,
            "C" => ArgumentValue::C,
            "m" => ArgumentValue::Int(problem.m),
            "n" => ArgumentValue::Int(problem.n),
            "k" => ArgumentValue::Int(problem.k),
            "lda" => ArgumentValue::Int(problem.lda),
            "ldb" => ArgumentValue::Int(problem.ldb),
            "ldc" => ArgumentValue::Int(problem.ldc),
            "alpha" => ArgumentValue::Float(problem.alpha),
            "beta" => ArgumentValue::Float(problem.beta),
            _ => return None,
        })
    }
}
