//! Python values as operands of an expression.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PySlice, PyString, PyTuple};
use tilewright_workbench::{Evaluated, evaluate};

use crate::layout::Layout;
use crate::{answer, refusal};

/// The text of an operand: a [`Layout`], an int, a tuple or list of operands, the notation as a string, `_` for None and for `:`.
pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(layout) = value.cast::<Layout>() {
        return Ok(layout.get().text().to_owned());
    }
    if let Ok(string) = value.cast::<PyString>() {
        let string = string.to_cow()?;
        return match evaluate(&string) {
            Ok(value) => Ok(value.to_string()),
            // An operation or an instruction, such as `ldmatrix.x4`.
            Err(_) if is_word(&string) => Ok(string.into_owned()),
            Err(error) => Err(refusal::of_layout(value.py(), &error)),
        };
    }
    if value.is_none() || is_all(value) {
        return Ok("_".to_owned());
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        let parts = value.try_iter()?.map(|part| text(&part?));
        return Ok(format!(
            "({})",
            parts.collect::<PyResult<Vec<_>>>()?.join(",")
        ));
    }
    // What says that it is an integer, such as those of numpy.
    let is_bool = value.is_instance_of::<PyBool>();
    let index = value.call_method0("__index__").ok().filter(|_| !is_bool);
    let Some(index) = index else {
        let message = format!(
            "a layout, an int, a tuple of them, a string in the notation or None is expected, not {}",
            value.repr()?.to_cow()?
        );
        return Err(PyTypeError::new_err(message));
    };
    Ok(index.str()?.to_cow()?.into_owned())
}

/// A word of the calculator: the name of an instruction, for example.
fn is_word(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(part)
}

/// `:`, a slice without ends.
fn is_all(value: &Bound<'_, PyAny>) -> bool {
    let ends = ["start", "stop", "step"];
    value.is_instance_of::<PySlice>()
        && ends
            .iter()
            .all(|end| value.getattr(*end).is_ok_and(|end| end.is_none()))
}

/// The texts of several operands, separated by commas.
pub(crate) fn texts<'py>(values: impl IntoIterator<Item = Bound<'py, PyAny>>) -> PyResult<String> {
    let texts = values.into_iter().map(|value| text(&value));
    Ok(texts.collect::<PyResult<Vec<_>>>()?.join(", "))
}

/// The value of an expression, or the exception that says what is wrong with it.
pub(crate) fn evaluated(py: Python<'_>, text: &str) -> PyResult<Evaluated> {
    evaluate(text).map_err(|error| refusal::of_layout(py, &error))
}

/// The value of an expression as a Python value.
pub(crate) fn value<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    answer::evaluated(py, evaluated(py, text)?)
}
