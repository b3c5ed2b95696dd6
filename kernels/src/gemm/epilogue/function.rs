//! An epilogue made of a closure.

use std::fmt;
use std::sync::Arc;

use layout_codegen::ir::{Element, Kernel};

use super::{Finish, Fragment, Input};
use crate::gemm::{DataType, PlanError};

type Body = dyn Fn(&mut Kernel, &mut Fragment<'_>) -> Result<(), PlanError> + Send + Sync;

/// An epilogue from a closure and the inputs that it reads.
///
/// ```
/// use tilewright_kernels::gemm::epilogue::{Function, Input};
/// use tilewright_kernels::gemm::Config;
/// use layout_codegen::ir::Element;
///
/// let residual = Function::new("residual", |k, c| {
///     let residual = c.matrix::<f32>(k, "residual")?;
///     for (j, (sum, more)) in c.values(k)?.into_iter().zip(residual).enumerate() {
///         let sum = sum.add(k, more);
///         c.set(k, j, sum)?;
///     }
///     Ok(())
/// })
/// .input(Input::matrix("residual", Element::F16).aligned_to(16));
/// let config: Config = "mma-f16-128x256x64".parse()?;
/// assert!(config.with_epilogue(residual).is_ok());
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
#[derive(Clone)]
pub struct Function {
    name: String,
    inputs: Vec<Input>,
    computes_in: Option<Element>,
    output: Option<Element>,
    body: Arc<Body>,
}

impl Function {
    /// An epilogue that is called `name` in the kernel's entry: letters, digits and underscores.
    pub fn new(
        name: impl Into<String>,
        body: impl Fn(&mut Kernel, &mut Fragment<'_>) -> Result<(), PlanError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            inputs: Vec::new(),
            computes_in: None,
            output: None,
            body: Arc::new(body),
        }
    }

    /// It reads this input; parameters are in the order of these calls, pointers before leading dimensions before scalars.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// It reads a number.
    #[must_use]
    pub fn scalar(self, name: impl Into<String>) -> Self {
        self.input(Input::scalar(name))
    }

    /// It reads an element for each row of C.
    #[must_use]
    pub fn by_row(self, name: impl Into<String>, element: Element) -> Self {
        self.input(Input::by_row(name, element))
    }

    /// It reads an element for each column of C.
    #[must_use]
    pub fn by_column(self, name: impl Into<String>, element: Element) -> Self {
        self.input(Input::by_column(name, element))
    }

    /// It reads an element for each element of C.
    #[must_use]
    pub fn matrix(self, name: impl Into<String>, element: Element) -> Self {
        self.input(Input::matrix(name, element))
    }

    /// It computes in this type; the default is that of the product's sums (`f32`, `f64`, or `s32` for products of integers).
    #[must_use]
    pub fn computes_in(mut self, element: Element) -> Self {
        self.computes_in = Some(element);
        self
    }

    /// C has elements of this type. Without, of those that the product has.
    #[must_use]
    pub fn output(mut self, element: Element) -> Self {
        self.output = Some(element);
        self
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .field("inputs", &self.inputs)
            .field("computes_in", &self.computes_in)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

impl Finish for Function {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn inputs(&self) -> Vec<Input> {
        self.inputs.clone()
    }

    fn computes_in(&self, data_type: DataType) -> Element {
        self.computes_in.unwrap_or_else(|| data_type.scalar())
    }

    fn output(&self) -> Option<Element> {
        self.output
    }

    fn finish(&self, k: &mut Kernel, c: &mut Fragment<'_>) -> Result<(), PlanError> {
        (self.body)(k, c)
    }
}
