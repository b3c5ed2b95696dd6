//! Reading a question's fields. The page sends all of them as text, as they stand in its fields and in its address.

use serde_json::Value;
use tilewright_workbench::Refusal;

/// The fields of a question.
pub(crate) struct Arguments<'a>(pub(crate) &'a Value);

impl<'a> Arguments<'a> {
    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&'a str, Refusal> {
        self.optional(name)?
            .ok_or_else(|| Refusal::usage("missing", format!("`{name}` is empty")))
    }

    /// A text; none if it is not there or blank.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match &self.0[name] {
            Value::Null => Ok(None),
            Value::String(text) => Ok((!text.trim().is_empty()).then_some(text.trim())),
            _ => Err(Refusal::usage("json", format!("`{name}` is a text"))),
        }
    }

    /// Whether a switch is on.
    #[cfg(feature = "layouts")]
    pub(crate) fn is_on(&self, name: &str) -> bool {
        matches!(&self.0[name], Value::Bool(true))
    }

    /// A size from 1 to `most`.
    #[cfg(feature = "kernels")]
    pub(crate) fn size(&self, name: &str, most: u64) -> Result<u64, Refusal> {
        let text = self.text(name)?;
        let size = text.parse().ok().filter(|size| (1..=most).contains(size));
        size.ok_or_else(|| {
            let message = format!("`{name}` is a whole number from 1 to {most} here, not `{text}`");
            Refusal::usage("size", message)
        })
    }
}
