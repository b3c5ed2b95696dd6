//! The calculator as a question: an expression in, its value or a refusal out.

use std::fmt;

use serde_json::Value as Json;

use crate::calculator::{self, EvalError};
use crate::{Notation, Refusal};

/// The value of an expression: a layout, an integer, a coordinate, a truth value. Its text is the notation, which reads back as the same
/// value.
#[derive(Clone, Debug)]
pub struct Evaluated(calculator::Value);

impl Evaluated {
    /// The value for programs, as `eval --json` prints it: `{"kind":"layout","text":…,"shape":…,"stride":…,…}`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        calculator::to_json(&self.0)
    }

    /// The parts of a tuple of layouts, shapes or coordinates that is no coordinate itself; none of any other value.
    ///
    /// ```
    /// use tilewright_workbench::evaluate;
    ///
    /// let tiler = evaluate("(4:1, (8,2):(2,1))")?.parts();
    /// assert_eq!(tiler[1].to_string(), "(8,2):(2,1)");
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        match &self.0 {
            calculator::Value::List(items) => items.iter().cloned().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// The value as another library writes it.
    ///
    /// # Errors
    ///
    /// Code `not_in_notation`: a value of a kind that the notation does not have, or a layout that is no map of Triton's.
    ///
    /// ```
    /// use tilewright_workbench::{Notation, evaluate};
    ///
    /// let tile = evaluate("Sw<3,3,3> o (64,64):(64,1)")?;
    /// let triton = tile.written(&Notation::named("triton-shared")?)?;
    /// assert_eq!(triton, "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>");
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn written(&self, notation: &Notation) -> Result<String, Refusal> {
        notation.write(&self.0)
    }
}

impl fmt::Display for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The value of an expression of the calculator, whose grammar is in `docs/cli.md`.
///
/// # Errors
///
/// Bad syntax, unknown names, operands of the wrong kind, and whatever the algebra refuses, with the offending bytes.
///
/// ```
/// use tilewright_workbench::evaluate;
///
/// assert_eq!(evaluate("cosize((4,8):(16,1))")?.to_string(), "56");
/// # Ok::<(), tilewright_workbench::Refusal>(())
/// ```
pub fn evaluate(text: &str) -> Result<Evaluated, Refusal> {
    calculator::evaluate(text).map(Evaluated).map_err(|error| {
        // What can't be read is bad usage; what the algebra refuses is an answer.
        let refusal = match error.code {
            "syntax" | "too_long" | "integer_too_large" => {
                Refusal::usage(error.code, error.message)
            }
            code => Refusal::new(code, error.message),
        };
        refusal.at(error.span, text)
    })
}

/// The calculator's functions: the name, how it is called, and what it gives.
///
/// ```
/// let all = tilewright_workbench::functions();
/// assert!(all.contains(&("cosize", "cosize(L)", "elements of memory that the layout reaches")));
/// ```
#[must_use]
pub fn functions() -> &'static [(&'static str, &'static str, &'static str)] {
    calculator::FUNCTIONS
}

/// The refusal of an expression of `length` bytes, more than [`MAX_LENGTH`](crate::MAX_LENGTH), for callers that don't keep all of it.
///
/// ```
/// assert_eq!(tilewright_workbench::too_long(1 << 30).code(), "too_long");
/// ```
#[must_use]
pub fn too_long(length: usize) -> Refusal {
    let error = EvalError::too_long(length);
    Refusal::usage(error.code, error.message).at(error.span, "")
}
