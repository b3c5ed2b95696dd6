//! Tilewright for Python: the module `tilewright._native`.
//!
//! Every function is one of the library's or of the command's, with its answer as Python values and its refusal as an exception. What
//! needs no Rust is Python, in the folder `tilewright` beside this one: the names of pycute, launches, PyTorch's operators.

// Arguments come from Python by value.
#![allow(clippy::needless_pass_by_value)]

mod answer;
mod emulator;
mod kernels;
mod layout;
mod operand;
mod picture;
mod questions;
mod refusal;

use pyo3::prelude::*;

/// Layouts, questions about them, kernels and the emulator; `tilewright` is the module to import.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::emulator::{entries, run};
    #[pymodule_export]
    use crate::kernels::{architectures, command, gemm, kernel, kernels};
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::picture::{Picture, instruction, instructions};
    #[pymodule_export]
    use crate::questions::{call, derive, evaluate, functions, index, wavefronts, written};
    #[pymodule_export]
    use crate::refusal::{Error, KernelError, LayoutError};
}
