//! The driver library: found, complete and initialised before anything else calls it.
//!
//! `cudarc` opens `libcuda` at the first call of any function and panics if the library, or later a function in it, is
//! missing. Both are looked up here first, once in a process: [`ensure`] opens the library, asks it for every function
//! that this crate calls, and initialises it. Every public entry of the crate goes through it, so that a missing driver
//! is an error value and never a panic.

use std::ffi::CStr;
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUevent, CUresult};

use crate::error::GpuError;

/// Every function of the driver that this crate calls. The youngest, `cuFuncGetParamInfo`, is of CUDA 12.4.
const FUNCTIONS: [&str; 47] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemsetD8_v2",
    "cuMemsetD8Async",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetFunctionCount",
    "cuModuleEnumerateFunctions",
    "cuFuncGetName",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuFuncGetParamInfo",
    "cuLaunchKernelEx",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuStreamDestroy_v2",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuTensorMapEncodeTiled",
    "cuDeviceCanAccessPeer",
    "cuCtxEnablePeerAccess",
    "cuMemcpyAsync",
    "cuMemcpy2DAsync_v2",
    "cuStreamWriteValue32_v2",
    "cuStreamWaitValue32_v2",
    "cuStreamQuery",
];

/// Loads and initialises the driver, once in a process.
pub(crate) fn ensure() -> Result<(), GpuError> {
    static STATE: OnceLock<Result<(), GpuError>> = OnceLock::new();
    STATE.get_or_init(start).clone()
}

fn start() -> Result<(), GpuError> {
    // SAFETY: opening libcuda runs its initialisers, which is what it is opened for; nothing else is assumed of it.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDriver {
            reason: "libcuda can't be opened".to_owned(),
        });
    }
    for symbol in FUNCTIONS {
        // SAFETY: the library is present, so this does not panic; the symbol is looked up and never called.
        let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
        if found.is_err() {
            return Err(GpuError::OldDriver { symbol });
        }
    }
    // SAFETY: the function is there, and 0 is the only flag that it takes.
    let result = unsafe { sys::cuInit(0) };
    match result {
        CUresult::CUDA_ERROR_NO_DEVICE => Err(GpuError::NoDevice),
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            let reason =
                "the libcuda found first is the toolkit's stub, meant for linking only".to_owned();
            Err(GpuError::NoDriver { reason })
        }
        _ => check("cuInit", result),
    }
}

/// The error of `call`, if `result` is one.
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), GpuError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (name, text) = describe(result);
    Err(GpuError::Driver {
        call,
        status: result as u32,
        name,
        text,
    })
}

/// The name and the explanation of a status, in the driver's words.
pub(crate) fn describe(result: CUresult) -> (String, String) {
    let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both calls store a pointer to a static string, or null for a status that they do not know.
    unsafe {
        let _ = sys::cuGetErrorName(result, &raw mut name);
        let _ = sys::cuGetErrorString(result, &raw mut text);
    }
    let owned = |string: *const std::ffi::c_char| {
        if string.is_null() {
            return "unknown".to_owned();
        }
        // SAFETY: not null, hence one of the driver's static strings, which end in NUL.
        unsafe { CStr::from_ptr(string) }
            .to_string_lossy()
            .into_owned()
    };
    (owned(name), owned(text))
}

/// Milliseconds between two events that have both happened.
///
/// `cudarc` calls `cuEventElapsedTime_v2`, which drivers before CUDA 12.8 lack; the first version does the same and is in
/// every driver.
pub(crate) fn elapsed_ms(start: CUevent, end: CUevent) -> Result<f32, GpuError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
    ensure()?;
    let symbol = "cuEventElapsedTime";
    // SAFETY: the driver is loaded (`ensure`), and this is the function's type in the driver API reference.
    let function = unsafe { sys::culib().get::<ElapsedTime>(symbol.as_bytes()) };
    let function = function.map_err(|_| GpuError::OldDriver { symbol })?;
    let mut milliseconds = 0.0;
    // SAFETY: the callers pass live events; the result goes to a local variable.
    check(symbol, unsafe {
        function(&raw mut milliseconds, start, end)
    })?;
    Ok(milliseconds)
}
