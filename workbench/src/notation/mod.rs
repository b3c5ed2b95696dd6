//! Layouts in a question: the notation, or any expression of the calculator that is a layout; and layouts as other libraries write them.

mod write;

pub use write::{NOTATIONS, Notation};

use tilewright::Swizzled;

use crate::Refusal;
use crate::calculator::{evaluate, triton};

/// The layout of integers that the bytes `span` of `text` are: the notation, or any expression.
///
/// # Errors
///
/// Those of the notation, or of the calculator for a text that only that can read; values of other kinds.
pub(crate) fn layout_at(text: &str, span: (usize, usize)) -> Result<Swizzled, Refusal> {
    let part = &text[span.0..span.1];
    let at = |found: (usize, usize)| (found.0 + span.0, found.1 + span.0);
    let written = match Swizzled::parse(part) {
        Ok(layout) => return Ok(layout),
        Err(error) => error,
    };
    let value = evaluate(part).map_err(|error| {
        if is_expression(part) {
            Refusal::usage(error.code, error.message).at(at(error.span), text)
        } else {
            Refusal::usage(written.code(), written.message().as_str()).at(at(written.span), text)
        }
    })?;
    match value.as_layout() {
        Some(Ok(layout)) => Ok(layout),
        Some(Err(error)) => Err(Refusal::usage(error.code(), error.to_string()).at(span, text)),
        None if is_expression(part) => {
            let kind = value.kind();
            let hint = if value.devices().is_some() {
                "; show --devices draws it"
            } else {
                ""
            };
            let message =
                format!("a layout of integers is needed here, plain or swizzled, not {kind}{hint}");
            Err(Refusal::usage("type_mismatch", message).at(span, text))
        }
        None => {
            Err(Refusal::usage(written.code(), written.message().as_str())
                .at(at(written.span), text))
        }
    }
}

/// Whether a text says more than a layout in the notation: it calls a function, composes or binds a name.
pub(crate) fn is_expression(text: &str) -> bool {
    let calls = text.match_indices('(').any(|(i, _)| {
        let before = text[..i].trim_end();
        let word = before
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        word.len() > 1 && word.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    calls
        || text.matches(" o ").count() > 1
        || text.trim_start().starts_with("let ")
        || text.contains(['{', '#', '[', '<', '?']) && !text.trim_start().starts_with("Sw<")
        || triton::extent(text.trim_start()).is_some()
}
