//! Runs PTX on the emulator: buffers of bytes, launches in order on one memory, and what was found.

use std::collections::HashMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Value, json};
use tilewright::emulator::{
    self, Arg, Device, Finding, GlobalMemory, Launch, MemoryError, Module, Options, Param, Report,
    RunError, ScalarType, TensorElement, TensorMap, TensorSwizzle,
};
use tilewright::host::{counters_to_json, finding_to_json};
use tilewright_workbench::Refusal;

use crate::{answer, refusal};

/// The kernels of a text, by name: (name, type, bytes) of each parameter.
#[pyfunction]
pub(crate) fn entries(py: Python<'_>, ptx: &str) -> PyResult<HashMap<String, Vec<Parameter>>> {
    let module = module(ptx).map_err(|error| refusal::of_kernel(py, &error))?;
    let kernels = module.kernels().filter_map(|name| module.kernel(name));
    let kernels = kernels.map(|kernel| {
        let params = kernel.params().iter();
        let params = params.map(|p| (p.name.clone(), p.ty.name().to_owned(), p.size));
        (kernel.name().to_owned(), params.collect())
    });
    Ok(kernels.collect())
}

type Parameter = (String, String, u32);

/// A buffer: its name, its first bytes or how many undefined ones it has, and what its address is a multiple of.
#[derive(FromPyObject)]
struct Memory {
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    content: Content,
    #[pyo3(item)]
    alignment: u64,
}

#[derive(FromPyObject)]
enum Content {
    Bytes(Vec<u8>),
    Undefined(u64),
}

/// A launch: the kernel, its geometry, and a value for each parameter.
#[derive(FromPyObject)]
struct Job<'py> {
    #[pyo3(item)]
    kernel: String,
    #[pyo3(item)]
    grid: [u32; 3],
    #[pyo3(item)]
    block: Option<[u32; 3]>,
    #[pyo3(item)]
    cluster: Option<[u32; 3]>,
    #[pyo3(item)]
    shared_bytes: u32,
    #[pyo3(item)]
    params: Vec<Bound<'py, PyAny>>,
}

/// Runs launches in order, and gives (report, contents of the buffers).
///
/// A parameter is a number, the bytes of a structure, {"buffer": i, "offset": n}, or {"buffer": i, "offset": n, "map": tensor map of a launch
/// contract}.
#[pyfunction]
#[pyo3(signature = (ptx, buffers, launches, options))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    ptx: &str,
    buffers: Vec<Bound<'py, PyAny>>,
    launches: Vec<Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Bound<'py, PyBytes>>)> {
    let refuse = |error: Refusal| refusal::of_kernel(py, &error);
    let module = module(ptx).map_err(refuse)?;
    let options = settings(options)?;
    let mut memory = GlobalMemory::new();
    let mut placed = Vec::new();
    for buffer in buffers {
        placed.push(place(&mut memory, buffer.extract()?).map_err(refuse)?);
    }
    let mut total = Total::default();
    for launch in launches {
        let job: Job<'_> = launch.extract()?;
        let launch = prepared(py, &module, &job, &placed)?;
        let ran = py.detach(|| emulator::run(&module, &job.kernel, &launch, &mut memory, &options));
        let report = ran.map_err(|error| refuse(impossible(&error)))?;
        let clean = report.is_clean();
        total.add(&job.kernel, &report, &placed);
        if !clean {
            break;
        }
    }
    let contents = placed.iter().map(|buffer| {
        let read = memory.read(buffer.address, buffer.bytes as usize);
        let content = read.map_err(|error| refuse(impossible(&error.into())))?;
        Ok(PyBytes::new(py, &content))
    });
    let contents = contents.collect::<PyResult<Vec<_>>>()?;
    Ok((answer::json(py, &total.to_json())?, contents))
}

fn module(ptx: &str) -> Result<Module, Refusal> {
    Module::parse(ptx).map_err(|error| Refusal::new("invalid_ptx", error.to_string()))
}

/// A launch that can't start.
fn impossible(error: &RunError) -> Refusal {
    let code = match error {
        RunError::UnknownKernel { .. } => "no_such_kernel",
        RunError::ArgumentCount { .. }
        | RunError::ArgumentSize { .. }
        | RunError::ArgumentType { .. } => "wrong_arguments",
        RunError::Geometry(_) | RunError::SharedMemory { .. } => "invalid_launch",
        RunError::Unsupported(_) => "unsupported_instruction",
        RunError::Memory(_) => "emulator_memory",
        _ => "emulator",
    };
    Refusal::new(code, error.to_string())
}

/// What the emulator is asked to report besides, and as which GPU.
fn settings(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let text = |name: &str| -> PyResult<Option<String>> {
        given
            .get_item(name)?
            .map(|value| value.extract())
            .transpose()
    };
    let number = |name: &str| -> PyResult<Option<u64>> {
        given
            .get_item(name)?
            .map(|value| value.extract())
            .transpose()
    };
    let also: Vec<String> = match given.get_item("also")? {
        Some(value) => value.extract()?,
        None => Vec::new(),
    };
    let known = ["undefined_global", "global_races", "lane_races"];
    if let Some(other) = also.iter().find(|name| !known.contains(&name.as_str())) {
        let message = format!("`{other}` is not reported; there are {}", known.join(", "));
        let error = Refusal::usage("unknown_option", message);
        return Err(refusal::of_kernel(given.py(), &error));
    }
    let asked = |name: &str| also.iter().any(|other| other == name);
    let mut options = Options {
        undefined_global: asked("undefined_global"),
        global_races: asked("global_races"),
        lane_races: asked("lane_races"),
        ..Options::default()
    };
    if let Some(name) = text("device")? {
        let Some(device) = Device::named(&name) else {
            let names: Vec<&str> = Device::ALL.iter().map(Device::name).collect();
            let message = format!(
                "there is no device `{name}`; there are {}",
                names.join(", ")
            );
            let error = Refusal::usage("unknown_device", message);
            return Err(refusal::of_kernel(given.py(), &error));
        };
        options.device = device;
    }
    options.schedule = number("schedule")?.unwrap_or(options.schedule);
    if let Some(limit) = number("step_limit")? {
        (options.step_limit, options.total_step_limit) = (limit, limit);
    }
    Ok(options)
}

/// A buffer in the emulator's memory.
struct Placed {
    name: String,
    address: u64,
    bytes: u64,
}

fn place(memory: &mut GlobalMemory, buffer: Memory) -> Result<Placed, Refusal> {
    let refuse = |error: MemoryError| impossible(&error.into());
    let bytes = match &buffer.content {
        Content::Bytes(content) => content.len() as u64,
        Content::Undefined(bytes) => *bytes,
    };
    let address = memory
        .alloc(bytes, buffer.alignment.max(1))
        .map_err(refuse)?;
    if let Content::Bytes(content) = &buffer.content {
        memory.write(address, content).map_err(refuse)?;
    }
    Ok(Placed {
        name: buffer.name,
        address,
        bytes,
    })
}

/// The launch with a value for each parameter.
fn prepared(
    py: Python<'_>,
    module: &Module,
    job: &Job<'_>,
    buffers: &[Placed],
) -> PyResult<Launch> {
    let refuse = |error: Refusal| refusal::of_kernel(py, &error);
    let Some(kernel) = module.kernel(&job.kernel) else {
        let names: Vec<&str> = module.kernels().collect();
        let (name, names) = (&job.kernel, names.join(", "));
        let message = format!("the text has no kernel `{name}`; it has {names}");
        return Err(refuse(Refusal::usage("no_such_kernel", message)));
    };
    let (expected, found) = (kernel.params().len(), job.params.len());
    if expected != found {
        return Err(refuse(impossible(&RunError::ArgumentCount {
            expected,
            found,
        })));
    }
    let params = kernel.params().iter().zip(&job.params);
    let args = params.map(|(param, value)| argument(param, value, buffers));
    Ok(Launch {
        grid: job.grid,
        block: job
            .block
            .or(kernel.required_threads())
            .unwrap_or([32, 1, 1]),
        cluster: job.cluster.or(kernel.required_cluster()).unwrap_or([1; 3]),
        dynamic_shared: job.shared_bytes,
        args: args.collect::<PyResult<_>>()?,
        ..Launch::default()
    })
}

/// The value of a parameter, of the type that the text declares.
fn argument(param: &Param, value: &Bound<'_, PyAny>, buffers: &[Placed]) -> PyResult<Arg> {
    if let Ok(dict) = value.cast::<PyDict>() {
        let item = |name: &str| dict.get_item(name).ok().flatten();
        let buffer = item("buffer").and_then(|i| i.extract::<usize>().ok());
        let offset = item("offset").and_then(|n| n.extract::<u64>().ok());
        let placed = buffer.and_then(|i| buffers.get(i));
        let Some(placed) = placed else {
            let message = format!("{value} is not one of the {} buffers", buffers.len());
            return Err(PyTypeError::new_err(message));
        };
        let address = placed.address.saturating_add(offset.unwrap_or(0));
        return match item("map") {
            None => Ok(Arg::Ptr(address)),
            Some(map) => tensor_map(&map, address).map(Arg::Bytes),
        };
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Arg::Bytes(bytes.as_bytes().to_vec()));
    }
    number(param, value).map_err(|_| {
        let (name, ty, bytes) = (&param.name, param.ty.name(), param.size);
        PyTypeError::new_err(format!(
            "the parameter `{name}` is {ty} of {bytes} bytes, and {value} is not a value of it: give a number in its range, an array, or bytes"
        ))
    })
}

fn number(param: &Param, value: &Bound<'_, PyAny>) -> PyResult<Arg> {
    use ScalarType as T;
    let float = |bytes| match bytes {
        4 => value.extract::<f32>().map(Arg::F32),
        _ => value.extract::<f64>().map(Arg::F64),
    };
    match (param.ty, param.size) {
        (T::F32 | T::F64, bytes) => float(bytes),
        // Untyped bits take what the number is.
        (T::B32 | T::B64, bytes) if value.extract::<i64>().is_err() => float(bytes),
        (T::S32, 4) => value.extract::<i32>().map(Arg::S32),
        (T::S64, 8) => value.extract::<i64>().map(|v| Arg::U64(v as u64)),
        (_, 4) => value.extract::<u32>().map(Arg::U32),
        (_, 8) => value.extract::<u64>().map(Arg::U64),
        (_, bytes @ (1 | 2)) => {
            let number = value.extract::<i32>()?;
            Ok(Arg::Bytes(number.to_le_bytes()[..bytes as usize].to_vec()))
        }
        _ => Err(PyTypeError::new_err("not a number")),
    }
}

/// The bytes of a tensor map from its value in a launch contract.
fn tensor_map(map: &Bound<'_, PyAny>, address: u64) -> PyResult<Vec<u8>> {
    use TensorElement as E;
    // As `cuda.h` numbers them.
    const TYPES: [E; 13] = [
        E::U8,
        E::U16,
        E::U32,
        E::S32,
        E::U64,
        E::S64,
        E::F16,
        E::F32,
        E::F64,
        E::Bf16,
        E::F32Ftz,
        E::Tf32,
        E::Tf32Ftz,
    ];
    let constant =
        |name: &str| -> PyResult<usize> { map.get_item(name)?.get_item("value")?.extract() };
    let Some(&element) = TYPES.get(constant("data_type")?) else {
        return Err(PyTypeError::new_err(
            "the tensor map has an unknown data type",
        ));
    };
    let map = TensorMap {
        sizes: map.get_item("sizes")?.extract()?,
        strides: map.get_item("strides_bytes")?.extract()?,
        box_sizes: map.get_item("box")?.extract()?,
        element_strides: map.get_item("element_strides")?.extract()?,
        swizzle: match map.get_item("swizzle_bytes")?.extract()? {
            32 => TensorSwizzle::Bytes32,
            64 => TensorSwizzle::Bytes64,
            128 => TensorSwizzle::Bytes128,
            _ => TensorSwizzle::None,
        },
        nan_outside: constant("oob_fill")? == 1,
        ..TensorMap::new(element, address)
    };
    let encoded = map.encode();
    Ok(encoded
        .map_err(|error| PyTypeError::new_err(error.to_string()))?
        .to_vec())
}

/// What several launches reported.
#[derive(Default)]
struct Total {
    findings: Vec<Value>,
    notes: Vec<Value>,
    found: u64,
    counters: Vec<Value>,
    printed: String,
    blocks: u64,
    time_ms: f64,
}

impl Total {
    fn add(&mut self, kernel: &str, report: &Report, buffers: &[Placed]) {
        let told = |finding: &Finding| {
            let mut value = finding_to_json(finding);
            value["buffer"] = json!(buffer_of(finding, buffers));
            value["kernel"] = json!(kernel);
            value["text"] = json!(finding.to_string());
            value
        };
        self.findings.extend(report.findings.iter().map(told));
        self.notes.extend(report.notes.iter().map(told));
        self.found += report.total_findings;
        let mut counters = counters_to_json(&report.counters);
        counters["kernel"] = json!(kernel);
        self.counters.push(counters);
        self.printed.push_str(&report.printed);
        self.blocks += report.blocks;
        self.time_ms += report.wall.as_secs_f64() * 1e3;
    }

    fn to_json(&self) -> Value {
        json!({
            "findings": self.findings,
            "notes": self.notes,
            "total_findings": self.found,
            "counters": self.counters,
            "printed": self.printed,
            "blocks": self.blocks,
            "time_ms": self.time_ms,
        })
    }
}

/// The buffer that a finding is about: allocations lie 16 MiB apart.
fn buffer_of<'a>(finding: &Finding, buffers: &'a [Placed]) -> Option<&'a str> {
    const NEAR: u64 = 1 << 20;
    let address = finding.address?;
    let near = |b: &&Placed| {
        (b.address.saturating_sub(NEAR)..b.address + b.bytes + NEAR).contains(&address)
    };
    buffers.iter().find(near).map(|b| b.name.as_str())
}
