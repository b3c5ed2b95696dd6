//! Why a kernel is not built.

use std::error::Error;
use std::fmt;

use layout_codegen::ir::Element;
use layout_codegen::prove::ProofError;
use layout_codegen::view::ViewError;
use layout_core::LayoutError;

/// Why a configuration gives no kernel.
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::rows::RowTile;
///
/// let error = RowTile::new(Element::S8, 100).unwrap_err();
/// assert_eq!(error.to_string(), "there is no such kernel for elements of type s8: take f32, f16 or bf16");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel does not exist for this element type.
    Element {
        /// The type that was asked for.
        given: Element,
        /// The accepted types.
        accepted: &'static [Element],
    },
    /// A number in the configuration is out of range.
    Number {
        /// What the number counts.
        what: &'static str,
        /// The number that was asked for.
        given: String,
        /// The accepted numbers.
        accepted: &'static str,
    },
    /// The layouts or views of the configuration do not fit.
    View(ViewError),
    /// The kernel can't be proven for this configuration.
    Proof(Box<ProofError>),
}

impl KernelError {
    /// A stable name of the kind of error, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Element { .. } => "element",
            Self::Number { .. } => "number",
            Self::View(_) => "view",
            Self::Proof(_) => "not_proven",
        }
    }

    /// Refuses a number that is not one of those accepted.
    pub(crate) fn unless(
        is: bool,
        what: &'static str,
        given: impl fmt::Display,
        accepted: &'static str,
    ) -> Result<(), KernelError> {
        if is {
            return Ok(());
        }
        Err(Self::Number {
            what,
            given: given.to_string(),
            accepted,
        })
    }

    /// Refuses an element type that is not among those `accepted`.
    pub(crate) fn unless_among(
        given: Element,
        accepted: &'static [Element],
    ) -> Result<(), KernelError> {
        if accepted.contains(&given) {
            return Ok(());
        }
        Err(Self::Element { given, accepted })
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element { given, accepted } => {
                write!(
                    f,
                    "there is no such kernel for elements of type {given}: take "
                )?;
                for (i, element) in accepted.iter().enumerate() {
                    let before = match accepted.len() - i {
                        _ if i == 0 => "",
                        1 => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}{element}")?;
                }
                Ok(())
            }
            Self::Number {
                what,
                given,
                accepted,
            } => write!(f, "{what}: {given} is not {accepted}"),
            Self::View(error) => error.fmt(f),
            Self::Proof(error) => error.fmt(f),
        }
    }
}

impl Error for KernelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::View(error) => Some(error),
            Self::Proof(error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

impl From<ViewError> for KernelError {
    fn from(error: ViewError) -> Self {
        Self::View(error)
    }
}

impl From<LayoutError> for KernelError {
    fn from(error: LayoutError) -> Self {
        Self::View(error.into())
    }
}

impl From<ProofError> for KernelError {
    fn from(error: ProofError) -> Self {
        Self::Proof(Box::new(error))
    }
}
