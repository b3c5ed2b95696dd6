//! The calculator, derivations, wavefronts and index code: the workbench's questions.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_workbench::index_code::Target;
use tilewright_workbench::{Notation, Refusal, derivation, index_code, ncu};

use crate::refusal::of_layout;
use crate::{answer, operand};

/// The value of an expression of the calculator: a layout, an int, a bool or a tuple.
///
/// >>> evaluate("(4,(2,2)):(2,(1,8)) o 4:2")
/// Layout('(2,2):(4,1)')
#[pyfunction]
pub(crate) fn evaluate<'py>(py: Python<'py>, expression: &str) -> PyResult<Bound<'py, PyAny>> {
    operand::value(py, expression)
}

/// The value of a function of the calculator for operands: layouts, ints, tuples, strings in the notation, None for `_`.
#[pyfunction]
#[pyo3(signature = (name, *operands))]
pub(crate) fn call<'py>(
    py: Python<'py>,
    name: &str,
    operands: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    operand::value(py, &format!("{name}({})", operand::texts(operands.iter())?))
}

/// The calculator's functions: name, how it is called, and what it gives.
#[pyfunction]
pub(crate) fn functions() -> Vec<(&'static str, &'static str, &'static str)> {
    tilewright_workbench::functions().to_vec()
}

/// A value as another library writes it: pycute, cute, cute-cpp, cute-dsl, triton, triton:16x8, triton-shared.
#[pyfunction]
pub(crate) fn written(value: &Bound<'_, PyAny>, notation: &str) -> PyResult<String> {
    let (py, text) = (value.py(), operand::text(value)?);
    let refuse = |error: Refusal| of_layout(py, &error);
    let notation = Notation::named(notation).map_err(|error| of_layout(py, &error))?;
    let value = operand::evaluated(py, &text)?;
    value.written(&notation).map_err(refuse)
}

/// The best shared-memory layout for all accesses to a tile, with its certificate: what `tilewright derive --json` prints.
///
/// `tile` is "64x64" or (64, 64), `elem` a type such as "bf16" or its bytes, each access "OP @ LAYOUT", whose layout maps the lane to the
/// row-major index of its first element, and `family` plain, swizzle, permuted, padded, f2, rotated, tma or any.
#[pyfunction]
#[pyo3(signature = (tile, elem, accesses, family="any"))]
pub(crate) fn derive<'py>(
    py: Python<'py>,
    tile: &Bound<'py, PyAny>,
    elem: &Bound<'py, PyAny>,
    accesses: Vec<String>,
    family: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let question = derivation::Question {
        tile: &tile_text(tile)?,
        elem: elem.str()?.to_cow()?.as_ref().to_owned().as_str(),
        accesses: accesses.iter().map(String::as_str).collect(),
        family,
    }
    .answer();
    let answer = question.map_err(|error| of_layout(py, &error))?;
    answer::json(py, &answer.to_json())
}

/// The wavefronts of accesses to a tile in a layout, and the best layout for each: what `tilewright banks --json` prints.
#[pyfunction]
#[pyo3(signature = (accesses, layout=None, tile=None, elem=None))]
pub(crate) fn wavefronts<'py>(
    py: Python<'py>,
    accesses: Vec<String>,
    layout: Option<&Bound<'py, PyAny>>,
    tile: Option<&Bound<'py, PyAny>>,
    elem: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let layout = layout.map(operand::text).transpose()?;
    let tile = tile.map(tile_text).transpose()?;
    let elem = elem
        .map(|elem| elem.str()?.extract::<String>())
        .transpose()?;
    let model = ncu::Model {
        tile: tile.as_deref(),
        layout: layout.as_deref(),
        elem: elem.as_deref().unwrap_or("f32"),
        accesses: accesses.iter().map(String::as_str).collect(),
    };
    let counted = model.count().map_err(|error| of_layout(py, &error))?;
    answer::json(py, &counted.to_json())
}

/// The index function of a layout in a language: what `tilewright index --json` prints.
#[pyfunction]
#[pyo3(signature = (layout, target="cuda", name="offset", coords="modes", ty=None, ranges=Vec::new()))]
pub(crate) fn index<'py>(
    py: Python<'py>,
    layout: &Bound<'py, PyAny>,
    target: &str,
    name: &str,
    coords: &str,
    ty: Option<&str>,
    ranges: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    // A text is looked at as it is: names in it may be strides that only index code knows.
    let layout = match layout.extract::<String>() {
        Ok(text) => text,
        Err(_) => operand::text(layout)?,
    };
    let refuse = |error: Refusal| of_layout(py, &error);
    let question = index_code::Question {
        layout: &layout,
        target: language(target).map_err(refuse)?,
        name,
        coords,
        ty,
        ranges: ranges.iter().map(String::as_str).collect(),
    };
    answer::json(py, &question.to_json().map_err(refuse)?)
}

fn language(name: &str) -> Result<Target, Refusal> {
    let all = [Target::Rust, Target::Ptx, Target::Cuda, Target::OpenCl];
    let named = all.into_iter().find(|target| target.name() == name);
    named.ok_or_else(|| {
        let names = all.map(Target::name).join(", ");
        let message = format!("there is no target `{name}`; there are {names}");
        Refusal::usage("unknown_target", message)
    })
}

/// "64x64", or the two numbers.
pub(crate) fn tile_text(tile: &Bound<'_, PyAny>) -> PyResult<String> {
    match tile.extract::<(i64, i64)>() {
        Ok((rows, cols)) => Ok(format!("{rows}x{cols}")),
        Err(_) => tile.extract(),
    }
}
