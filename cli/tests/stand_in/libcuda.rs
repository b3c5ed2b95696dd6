//! A driver without GPUs behind it, which refuses all memory and all work. What the command says before the first allocation can be tested with it on any
//! machine.

mod devices;

use std::ffi::c_int;

use devices::REFUSED;

/// Calls that fail.
macro_rules! refused {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            REFUSED
        }
    )*};
}

refused! {
    cuMemAlloc_v2 cuMemFree_v2 cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemsetD8_v2 cuMemsetD8Async cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction
    cuModuleGetFunctionCount cuModuleEnumerateFunctions cuFuncGetName cuFuncGetAttribute cuFuncSetAttribute cuFuncGetParamInfo cuLaunchKernelEx
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuEventCreate cuEventRecord cuEventSynchronize cuEventDestroy_v2 cuEventElapsedTime
    cuTensorMapEncodeTiled cuMemcpyAsync cuMemcpy2DAsync_v2 cuStreamWriteValue32_v2 cuStreamWaitValue32_v2
}
