//! Refusals as exceptions.

use pyo3::PyTypeInfo;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_workbench::Refusal;

create_exception!(
    tilewright,
    Error,
    PyValueError,
    "A question that can't be answered.\n\n\
     ``code`` is a stable name of the reason, ``span`` the first character and one past the last of ``text`` that the reason is about, or None."
);
create_exception!(
    tilewright,
    LayoutError,
    Error,
    "A layout, an expression or an access that can't be read, or that an operation refuses."
);
create_exception!(
    tilewright,
    KernelError,
    Error,
    "A kernel that does not exist for these options, or PTX that can't be run."
);

/// The exception of a refusal. Spans of the library are of bytes, and Python's of characters.
fn exception<T: PyTypeInfo>(py: Python<'_>, refusal: &Refusal) -> PyErr {
    let message = refusal.text();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let error = PyErr::from_type(py.get_type::<T>(), (message.trim_end().to_owned(),));
    let text = refusal.about();
    let characters = |bytes: usize| text.map(|text| count(text, bytes));
    let span = refusal
        .span()
        .and_then(|(start, end)| Some((characters(start)?, characters(end)?)));
    let value = error.value(py);
    let set = value
        .setattr("code", refusal.code())
        .and_then(|()| value.setattr("message", refusal.message()))
        .and_then(|()| value.setattr("span", span))
        .and_then(|()| value.setattr("text", text));
    match set {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Characters of the first so many bytes.
fn count(text: &str, bytes: usize) -> usize {
    let before = text.char_indices().take_while(|(at, _)| *at < bytes);
    before.count()
}

/// The exception of a refusal about a layout, an access or an expression.
pub(crate) fn of_layout(py: Python<'_>, refusal: &Refusal) -> PyErr {
    exception::<LayoutError>(py, refusal)
}

/// The exception of a refusal about a kernel.
pub(crate) fn of_kernel(py: Python<'_>, refusal: &Refusal) -> PyErr {
    exception::<KernelError>(py, refusal)
}
