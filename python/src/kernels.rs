//! The kernels that come with Tilewright, and the command itself.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use tilewright::codegen::Arch;
use tilewright_cli::{Emitted, Setting};
use tilewright_workbench::Refusal;

use crate::{answer, refusal};

/// The kernels by name: what each computes, and its options as (name, what it says, default, whether it is a flag).
#[pyfunction]
pub(crate) fn kernels(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for kernel in tilewright_cli::kernels() {
        let options = kernel.options.into_iter();
        let options: Vec<_> = options
            .map(|o| (o.name, o.about, o.default, o.is_flag))
            .collect();
        all.set_item(kernel.name, (kernel.computes, options))?;
    }
    Ok(all)
}

/// A kernel's PTX and what `tilewright kernel NAME --json` prints.
#[pyfunction]
pub(crate) fn kernel<'py>(
    py: Python<'py>,
    name: &str,
    options: &Bound<'py, PyDict>,
) -> PyResult<(String, Bound<'py, PyAny>)> {
    let options = settings(options)?;
    emitted(py, |given| tilewright_cli::kernel(name, given), &options)
}

/// A GEMM's PTX and what `tilewright gemm --json` prints.
#[pyfunction]
pub(crate) fn gemm<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
) -> PyResult<(String, Bound<'py, PyAny>)> {
    emitted(py, tilewright_cli::gemm, &settings(options)?)
}

/// The compute capabilities that kernels are generated for, such as 90 for `sm_90`.
#[pyfunction]
pub(crate) fn architectures() -> Vec<u32> {
    Arch::ALL.iter().map(|arch| arch.0).collect()
}

/// Runs the command with these words, the first of which is its name; the result is its exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    // The library's exit codes have no way to be read.
    let code = py.detach(|| tilewright_cli::main(words));
    if code == std::process::ExitCode::SUCCESS {
        return 0;
    }
    [1, 2]
        .into_iter()
        .find(|&n| code == std::process::ExitCode::from(n))
        .unwrap_or(1)
}

fn emitted<'py>(
    py: Python<'py>,
    make: impl FnOnce(&[(&str, Setting)]) -> Result<Emitted, Refusal> + Send,
    options: &[(String, Setting)],
) -> PyResult<(String, Bound<'py, PyAny>)> {
    let given: Vec<(&str, Setting)> = options
        .iter()
        .map(|(name, setting)| (name.as_str(), setting.clone()))
        .collect();
    let made = py.detach(|| make(&given));
    let made = made.map_err(|error| refusal::of_kernel(py, &error))?;
    Ok((made.text, answer::json(py, &made.report)?))
}

/// Options by name. One that is None is not given.
fn settings(options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Setting)>> {
    let given = options.iter().filter(|(_, value)| !value.is_none());
    let settings = given.map(|(name, value)| {
        let setting = match value.cast::<PyBool>() {
            Ok(flag) => Setting::Flag(flag.is_true()),
            Err(_) => Setting::Text(value.str()?.extract()?),
        };
        Ok((name.extract()?, setting))
    });
    settings.collect()
}
