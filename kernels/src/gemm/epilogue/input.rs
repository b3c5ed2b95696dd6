//! What an epilogue reads beside the sums.

use layout_codegen::ir::Element;

use super::Finish;
use super::convert::converts;
use crate::gemm::{DataType, Gemm, GivenInput, PlanError};

/// What an input is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InputKind {
    /// One number, of the type that the epilogue computes in.
    Scalar,
    /// m elements, one for each row of C.
    Row(Element),
    /// n elements, one for each column of C.
    Column(Element),
    /// m×n elements, row-major, with a leading dimension of its own, the parameter `ld_NAME`.
    Matrix {
        /// The elements.
        element: Element,
        /// The alignment of its address and its rows, in bytes: the width of one read where C is written in vectors.
        aligned: u32,
    },
}

/// An input of an epilogue: a parameter of the kernel.
///
/// ```
/// use tilewright_kernels::gemm::epilogue::{Input, InputKind};
/// use layout_codegen::ir::Element;
///
/// let residual = Input::matrix("residual", Element::F16).aligned_to(16);
/// assert_eq!(residual.kind, InputKind::Matrix { element: Element::F16, aligned: 16 });
/// assert_eq!(residual.element(), Some(Element::F16));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// The parameter's name. Scalars `alpha` and `beta` are the problem's; all others are given by the caller.
    pub name: String,
    /// What it is.
    pub kind: InputKind,
}

impl Input {
    fn new(name: impl Into<String>, kind: InputKind) -> Self {
        let name = name.into();
        Self { name, kind }
    }

    /// One number, of the type that the epilogue computes in.
    pub fn scalar(name: impl Into<String>) -> Self {
        Self::new(name, InputKind::Scalar)
    }

    /// m elements, one for each row of C.
    pub fn by_row(name: impl Into<String>, element: Element) -> Self {
        Self::new(name, InputKind::Row(element))
    }

    /// n elements, one for each column of C.
    pub fn by_column(name: impl Into<String>, element: Element) -> Self {
        Self::new(name, InputKind::Column(element))
    }

    /// m×n elements with a leading dimension of their own, the parameter `ld_NAME`, aligned to an element.
    pub fn matrix(name: impl Into<String>, element: Element) -> Self {
        let aligned = element.bytes();
        Self::new(name, InputKind::Matrix { element, aligned })
    }

    /// The same matrix with its address and rows aligned to `bytes`, a power of two; less than an element counts as an element.
    #[must_use]
    pub fn aligned_to(mut self, bytes: u32) -> Self {
        if let InputKind::Matrix { element, aligned } = &mut self.kind {
            *aligned = bytes.clamp(element.bytes(), 16);
        }
        self
    }

    /// The type of its elements; none of a scalar.
    pub fn element(&self) -> Option<Element> {
        match self.kind {
            InputKind::Scalar => None,
            InputKind::Row(e) | InputKind::Column(e) | InputKind::Matrix { element: e, .. } => {
                Some(e)
            }
        }
    }

    /// The parameter of a matrix's leading dimension.
    pub(crate) fn leading_dimension(&self) -> String {
        format!("ld_{}", self.name)
    }
}

/// Names of the product's own parameters, and of what its text declares.
const RESERVED: [&str; 18] = [
    "A", "B", "B2", "C", "partial", "m", "n", "k", "lda", "ldb", "ldc", "pitch", "chunk", "parts",
    "strideA", "strideB", "strideC", "smem",
];

fn is_name(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An epilogue's names can be parameters, and its types are converted, for products in `data_type`.
pub(crate) fn check(finish: &dyn Finish, data_type: DataType) -> Result<(), PlanError> {
    let refuse = |what: String| Err(PlanError::Epilogue { what });
    let list = |all: &[Element]| {
        let names: Vec<_> = all.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    let (scalar, sum) = (finish.computes_in(data_type), data_type.scalar());
    let serves: &[Element] = match sum {
        Element::S32 => &[Element::S32, Element::F32],
        Element::F64 => &[Element::F64],
        _ => &[Element::F32],
    };
    if !serves.contains(&scalar) {
        return refuse(format!(
            "it computes in {scalar}, and sums in {sum} are converted to {} only",
            list(serves)
        ));
    }
    let converts = converts(scalar);
    if let Some(output) = finish.output().filter(|o| !converts.contains(o)) {
        return refuse(format!(
            "C in {output}: from {scalar} it is stored in {}",
            list(converts)
        ));
    }
    let name = finish.name();
    if !is_name(&name) {
        return refuse(format!(
            "the name `{name}`: a name is a letter and then letters, digits and underscores"
        ));
    }
    let mut seen: Vec<String> = RESERVED.map(str::to_owned).into();
    for input in finish.inputs() {
        let mut names = vec![input.name.clone()];
        if matches!(input.kind, InputKind::Matrix { .. }) {
            names.push(input.leading_dimension());
        }
        for name in names {
            if !is_name(&name) {
                return refuse(format!(
                    "the input `{name}`: a name is a letter and then letters, digits and underscores"
                ));
            }
            if seen.contains(&name) {
                return refuse(format!("the input `{name}`: the name is taken"));
            }
            seen.push(name);
        }
        let own = matches!(input.name.as_str(), "alpha" | "beta");
        if own && input.kind != InputKind::Scalar {
            let name = &input.name;
            return refuse(format!("the input `{name}`: it is the problem's scalar"));
        }
        if let Some(element) = input.element().filter(|e| !converts.contains(e)) {
            return refuse(format!(
                "the input `{}` in {element}: {scalar} is computed from {}",
                input.name,
                list(converts)
            ));
        }
        if let InputKind::Matrix { aligned, .. } = input.kind
            && !aligned.is_power_of_two()
        {
            return refuse(format!(
                "the input `{}` aligned to {aligned} bytes: give a power of two",
                input.name
            ));
        }
    }
    if let Some(factor) = finish.factor() {
        let inputs = finish.inputs();
        if !inputs
            .iter()
            .any(|i| i.name == factor && i.kind == InputKind::Scalar)
        {
            return refuse(format!("the factor `{factor}`: declare it as a scalar"));
        }
    }
    Ok(())
}

/// What an epilogue reads from memory, for a problem.
pub(crate) fn given(finish: &dyn Finish, problem: &Gemm) -> Vec<GivenInput> {
    let inputs = finish.inputs().into_iter();
    inputs
        .filter_map(|input| {
            let element = input.element()?;
            let (rows, columns, alignment) = match input.kind {
                InputKind::Row(_) => (problem.m, 1, element.bytes()),
                InputKind::Column(_) => (1, problem.n, element.bytes()),
                InputKind::Matrix { aligned, .. } => (problem.m, problem.n, aligned),
                InputKind::Scalar => return None,
            };
            let matrix = matches!(input.kind, InputKind::Matrix { .. });
            Some(GivenInput {
                leading_dimension: matrix.then(|| input.leading_dimension()),
                name: input.name,
                element,
                rows,
                columns,
                alignment,
            })
        })
        .collect()
}
