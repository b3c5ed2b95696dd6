//! Where the matrices of a problem lie, on the emulator and on a GPU alike.
//!
//! A problem promises that an address is a multiple of so many bytes and no more. Kernels copy as widely as that allows, so a run has to
//! put the matrix exactly there: at an odd multiple of the alignment, with nothing readable, or nothing but NaN, beside it.

use layout_codegen::plan::{ArgumentValue, Gemm};

use super::Inputs;

/// What the launches of a plan pass data through lies at a multiple of this many bytes.
pub(crate) const WORKSPACE_ALIGNMENT: u64 = 256;

/// The address of everything that an argument can point at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Addresses {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
    pub(crate) bias: u64,
    pub(crate) workspace: u64,
}

impl Addresses {
    /// The address that an argument stands for; none for a number.
    pub(crate) fn of(&self, value: ArgumentValue) -> Option<u64> {
        match value {
            ArgumentValue::A => Some(self.a),
            ArgumentValue::B => Some(self.b),
            ArgumentValue::C => Some(self.c),
            ArgumentValue::Bias => Some(self.bias),
            ArgumentValue::Workspace(offset) => Some(self.workspace + offset),
            ArgumentValue::Int(_) | ArgumentValue::Float(_) => None,
        }
    }
}

/// The bytes of A, B, C and the bias, each with what its address is a multiple of. Of a bias nothing is promised but that its elements
/// are aligned.
pub(crate) fn operands<'i>(problem: &Gemm, inputs: &'i Inputs) -> [(&'i [u8], u64); 4] {
    let bias: &[u8] = inputs.bias.as_ref().map_or(&[], |bias| &bias.bytes);
    [
        (&inputs.a.bytes, u64::from(problem.alignment.a)),
        (&inputs.b.bytes, u64::from(problem.alignment.b)),
        (&inputs.c.bytes, u64::from(problem.alignment.c)),
        (bias, u64::from(inputs.c.element.bytes())),
    ]
}
