//! Expressions over layouts: parsed and evaluated in one pass.
//!
//! ```text
//! (4,(2,2)):(2,(1,8)) o 4:2          a layout: (2,2):(4,1)
//! let a = Sw<3,4,3> o (8,64):(64,1); a(3,_)
//! cosize(a), is_bijective(a), a == b, a((1,2)), (8,64):(2*ld,1)
//! ```
//!
//! There is no syntax tree: [`parser`] computes values as it reads, so that a chain of a million `+` needs no stack, and
//! only parentheses nest (at most [`parser::MAX_NESTING`] deep). Layouts live on the heap here (the algebra itself
//! needs none), which keeps a value small. [`functions`] is the table of the algebra's operations by name.

pub(crate) mod devices;
mod error;
mod foreign;
mod form;
mod functions;
pub(crate) mod instructions;
mod json;
mod lexer;
mod operators;
mod parser;
pub(crate) mod triton;
mod value;

pub(crate) use error::{EvalError, Span};
pub(crate) use functions::FUNCTIONS;
pub(crate) use json::to_json;
pub(crate) use value::Value;

/// The longest expression that is looked at, in bytes.
pub(crate) const MAX_LENGTH: usize = 1 << 20;

/// The value of an expression.
///
/// # Errors
///
/// A stable code, a message and the offending bytes: for bad syntax, for unknown names, for operands of the wrong kind,
/// and for whatever the algebra refuses.
pub(crate) fn evaluate(text: &str) -> Result<Value, EvalError> {
    if text.len() > MAX_LENGTH {
        return Err(EvalError::too_long(text.len()));
    }
    parser::Parser::new(text)?.program()
}
