//! How sums become C: the epilogue, as a function over the fragment of C that a thread holds.
//!
//! ```text
//! sums ──▶ times the factor ──▶ is it inside? ──▶ Finish::function(fragment) ──▶ converted, stored
//!                                                  ▲ scalars, vectors by row or column, matrices, the previous C
//! ```
//!
//! A kernel calls the function for every vector of C that a thread stores, and for single elements at the edges. The function gets the
//! sums as values, knows their row and columns, reads further operands with the guards of C, and sets the values to store.
//! What it reads is declared ([`Input`]), so that it is part of the launch contract: parameters, types, sizes. The product's own epilogue
//! (α, β, bias, activation) is one such function.
//!
//! A kernel with a function of your own is used like any other ([`Config::with_epilogue`](super::Config::with_epilogue)):
//!
//! ```
//! use layout_codegen::Arch;
//! use tilewright_kernels::gemm::epilogue::Function;
//! use tilewright_kernels::gemm::{Config, Gemm, Operands};
//! use layout_codegen::ir::Element;
//!
//! // Row i of C is scaled by element i of `scale`, and rounded to 8-bit integers.
//! let quantised = Function::new("quantised", |k, c| {
//!     for (j, sum) in c.values::<f32>(k)?.into_iter().enumerate() {
//!         let scale = c.vector(k, "scale", j)?;
//!         let scaled = sum.mul(k, scale);
//!         c.set(k, j, scaled)?;
//!     }
//!     Ok(())
//! })
//! .by_row("scale", Element::F32)
//! .output(Element::S8);
//!
//! let config: Config = "mma-f16-128x256x64".parse()?;
//! let fused = config.with_epilogue(quantised)?;
//! let nn = Operands::ALL[0];
//! let kernel = fused.emit(nn, Arch(80))?;
//! assert!(kernel.kernel.ends_with("_quantised"));
//!
//! let mut problem = Gemm::packed(100, 200, 64, nn);
//! problem.output = Some(Element::S8);
//! let launch = fused.launch(&problem)?.expect("something to do");
//! let scale = &launch.inputs[0];
//! assert_eq!((scale.name.as_str(), scale.element, scale.rows), ("scale", Element::F32, 100));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convert;
mod end;
mod fragment;
mod function;
mod input;
mod linear;
mod spec;
use std::fmt;

use layout_codegen::ir::instructions::Reg;
use layout_codegen::ir::{Element, Kernel};

use super::{DataType, PlanError};
pub(crate) use convert::{arithmetic, scalar_type, widen_pair};
pub(crate) use end::{End, Loaded, Place, Types, is_zero, pointers, values};
pub use fragment::Fragment;
pub use function::Function;
pub use input::{Input, InputKind};
pub(crate) use input::{check, given};
pub(crate) use linear::Linear;
pub(crate) use spec::gelu_exponent;
pub use spec::{Activation, Bias, Epilogue, GELU};

/// How sums become C. [`Function`] is one of a closure; [`Linear`] is the product's own.
pub(crate) trait Finish: fmt::Debug + Send + Sync {
    /// What the kernel's entry is called after the plan and its variant: letters, digits and underscores.
    fn name(&self) -> String;

    /// What it reads beside the sums, in the order of the parameters.
    fn inputs(&self) -> Vec<Input>;

    /// The type that it computes in: `f32`, `f64` or `s32`. Sums are converted to it first.
    fn computes_in(&self, data_type: DataType) -> Element {
        data_type.scalar()
    }

    /// The element type of C; none for those that the product has.
    fn output(&self) -> Option<Element> {
        None
    }

    /// The product's own epilogue, if it is that: kernels then store tiles directly from registers where C is not read.
    fn linear(&self) -> Option<Linear> {
        None
    }

    /// The name of the scalar that each sum is multiplied with first. If it is 0, A and B are not read.
    fn factor(&self) -> Option<&str> {
        None
    }

    /// Registers that all fragments share, from the scalars in their order; computed once, at the kernel's entry.
    ///
    /// # Errors
    ///
    /// The function's own.
    fn prepare(&self, _k: &mut Kernel, _scalars: &[Reg]) -> Result<Vec<Reg>, PlanError> {
        Ok(Vec::new())
    }

    /// Turns the sums of a fragment into the values to store, in place or by [`Fragment::set`].
    ///
    /// # Errors
    ///
    /// An input that is not declared, or the function's own.
    fn finish(&self, k: &mut Kernel, c: &mut Fragment<'_>) -> Result<(), PlanError>;
}

impl<F: Finish + ?Sized> Finish for std::sync::Arc<F> {
    fn name(&self) -> String {
        (**self).name()
    }
    fn inputs(&self) -> Vec<Input> {
        (**self).inputs()
    }
    fn computes_in(&self, data_type: DataType) -> Element {
        (**self).computes_in(data_type)
    }
    fn output(&self) -> Option<Element> {
        (**self).output()
    }
    fn linear(&self) -> Option<Linear> {
        (**self).linear()
    }
    fn factor(&self) -> Option<&str> {
        (**self).factor()
    }
    fn prepare(&self, k: &mut Kernel, scalars: &[Reg]) -> Result<Vec<Reg>, PlanError> {
        (**self).prepare(k, scalars)
    }
    fn finish(&self, k: &mut Kernel, c: &mut Fragment<'_>) -> Result<(), PlanError> {
        (**self).finish(k, c)
    }
}
