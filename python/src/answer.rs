//! Answers as Python values.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::Value;
use tilewright_workbench::Evaluated;

use crate::layout::Layout;

/// JSON as Python values: dicts, lists, strings, numbers, booleans and None.
pub(crate) fn json<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| json(py, item));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(key, json(py, item)?)?;
            }
            Ok(dict.into_any())
        }
        other => scalar(py, other),
    }
}

/// JSON as Python values, with a tuple for an array: coordinates, shapes, strides.
pub(crate) fn nested<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| nested(py, item));
            Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        other => scalar(py, other),
    }
}

fn scalar<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (_, Some(value)) => value.into_pyobject(py)?.into_any(),
            _ => number.as_f64().into_pyobject(py)?.into_any(),
        },
        _ => py.None().into_bound(py),
    })
}

/// The value of an expression: an int, a bool, a tuple, a [`Layout`], a dict for statements about devices, or the text of a sum with names.
pub(crate) fn evaluated(py: Python<'_>, value: Evaluated) -> PyResult<Bound<'_, PyAny>> {
    let answer = value.to_json();
    match answer["kind"].as_str().unwrap_or_default() {
        "int" | "bool" => scalar(py, &answer["value"]),
        "coord" => nested(py, &answer["value"]),
        "expr" => scalar(py, &answer["text"]),
        "list" => {
            let parts = value.parts().into_iter().map(|part| evaluated(py, part));
            Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        "distribution" | "shards" | "redistribution" => json(py, &answer),
        _ => Ok(Bound::new(py, Layout::new(value, answer))?.into_any()),
    }
}
