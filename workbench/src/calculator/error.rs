//! The calculator's error: a stable code, a sentence, and the bytes it is about.

use std::borrow::Cow;

use tilewright::{LayoutError, ParseError};

/// First byte and one past the last.
pub(crate) type Span = (usize, usize);

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvalError {
    /// A stable name for programs, in `snake_case`.
    pub(crate) code: &'static str,
    /// The sentence for people.
    pub(crate) message: Cow<'static, str>,
    /// The offending bytes of the expression.
    pub(crate) span: Span,
}

impl EvalError {
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        span: Span,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            span,
        }
    }

    /// An expression of `length` bytes, which is more than [`MAX_LENGTH`](super::MAX_LENGTH).
    pub(crate) fn too_long(length: usize) -> Self {
        let most = super::MAX_LENGTH;
        let message = format!("the expression has {length} bytes, more than {most}");
        Self::new("too_long", message, (most, length))
    }

    /// Bad syntax.
    pub(crate) fn syntax(message: impl Into<Cow<'static, str>>, span: Span) -> Self {
        Self::new("syntax", message, span)
    }

    /// An operand or argument of the wrong kind.
    pub(crate) fn kind(message: impl Into<Cow<'static, str>>, span: Span) -> Self {
        Self::new("type_mismatch", message, span)
    }

    /// What the algebra refused.
    pub(crate) fn layout(error: LayoutError, span: Span) -> Self {
        Self::new(error.code(), error.to_string(), span)
    }

    /// What the notation refused, about the same bytes.
    pub(crate) fn notation(error: &ParseError, span: Span) -> Self {
        Self::new(error.code(), error.message().as_str().to_owned(), span)
    }
}
