//! Modules from PTX text, and the kernels in them.
//!
//! The driver compiles PTX when it is loaded. It writes what it found wrong to a buffer that must be offered beforehand;
//! [`Module::load_ptx`] offers one, so that a refusal shows the line. A [`Kernel`] knows the sizes of its parameters (the
//! driver tells) and what it costs: [`KernelAttributes`].

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as Attribute, CUjit_option, CUmodule, CUresult,
};

use crate::cubin;
use crate::device::{Context, Gpu};
use crate::driver::{check, describe};
use crate::error::GpuError;
use crate::timing::Stream;

/// Bytes of the compiler's log that are kept.
const LOG_BYTES: usize = 1 << 16;

/// A loaded module. Clones are the same module; it stays loaded while a kernel of it lives.
#[derive(Debug, Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
    stream: Arc<Stream>,
    log: String,
}

/// A module handle, unloaded when dropped.
#[derive(Debug)]
struct Loaded {
    context: Arc<Context>,
    raw: CUmodule,
}

// SAFETY: a module handle may be used from any thread in which its context is current, as every call here makes it.
unsafe impl Send for Loaded {}
// SAFETY: as above; the handle never changes.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded once; no kernel of it lives, since each holds this. An error has nobody left to tell.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel of a loaded module.
#[derive(Debug, Clone)]
pub struct Kernel {
    loaded: Arc<Loaded>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) raw: Function,
    name: String,
    parameters: Vec<usize>,
    attributes: KernelAttributes,
}

/// A function handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(pub(crate) CUfunction);

// SAFETY: as for `Loaded`, which every owner of a `Function` holds.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// What a kernel needs, as the driver compiled it (`cuFuncGetAttribute`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: spills and arrays; 0 in a good kernel.
    pub local_bytes: u32,
    /// Bytes of shared memory that the kernel declares itself.
    pub static_shared_bytes: u32,
    /// Bytes of constant memory.
    pub const_bytes: u32,
    /// The largest block that can be launched.
    pub max_threads_per_block: u32,
    /// The architecture that the code was compiled for, as ten times the major plus the minor version.
    pub binary_version: u32,
}

impl Module {
    pub(crate) fn load_ptx(gpu: &Gpu, ptx: &str) -> Result<Self, GpuError> {
        let text =
            CString::new(ptx).map_err(|_| GpuError::invalid("the PTX contains a NUL character"))?;
        // SAFETY: the text ends in NUL.
        unsafe { Self::load(gpu, text.as_bytes_with_nul()) }
    }

    pub(crate) fn load_cubin(gpu: &Gpu, cubin: &[u8]) -> Result<Self, GpuError> {
        if let Some(what) = cubin::refusal(cubin) {
            return Err(GpuError::invalid(what));
        }
        // SAFETY: a file that is as long as its own headers say.
        unsafe { Self::load(gpu, cubin) }
    }

    /// Loads PTX text or a cubin.
    ///
    /// # Safety
    ///
    /// The driver is told no length: text must end in NUL, and a cubin must hold everything that its headers tell of.
    unsafe fn load(gpu: &Gpu, image: &[u8]) -> Result<Self, GpuError> {
        gpu.context.bind()?;
        let (mut info, mut error) = (vec![0_u8; LOG_BYTES], vec![0_u8; LOG_BYTES]);
        let mut options = [
            CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_LOG_VERBOSE,
        ];
        // An option's value is passed in place of a pointer: buffers as pointers, sizes and flags as numbers.
        let mut values: [*mut c_void; 5] = [
            info.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
            error.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(LOG_BYTES),
            std::ptr::without_provenance_mut(1),
        ];
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current; the driver finds the end of the image (the caller's promise); both option arrays have the length given and each value is
        // what its option asks for; the logs live until the call returns and are no longer than said.
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut raw,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if matches!(
            result,
            CUresult::CUDA_ERROR_INVALID_IMAGE
                | CUresult::CUDA_ERROR_INVALID_PTX
                | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
                | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                | CUresult::CUDA_ERROR_INVALID_SOURCE
        ) {
            return Err(GpuError::Jit {
                name: describe(result).0,
                log: until_nul(&error),
            });
        }
        check("cuModuleLoadDataEx", result)?;
        let loaded = Arc::new(Loaded {
            context: gpu.context.clone(),
            raw,
        });
        Ok(Self {
            loaded,
            stream: gpu.stream.clone(),
            log: until_nul(&info),
        })
    }

    /// What the compiler had to say about the kernels: registers, spills, warnings.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// The names of the kernels in the module.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn kernel_names(&self) -> Result<Vec<String>, GpuError> {
        self.loaded.context.bind()?;
        let mut count = 0;
        // SAFETY: the module is loaded; the count goes to a local variable.
        check("cuModuleGetFunctionCount", unsafe {
            sys::cuModuleGetFunctionCount(&raw mut count, self.loaded.raw)
        })?;
        let mut functions: Vec<CUfunction> = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: the vector has room for the number of functions given.
        let result = unsafe {
            sys::cuModuleEnumerateFunctions(functions.as_mut_ptr(), count, self.loaded.raw)
        };
        check("cuModuleEnumerateFunctions", result)?;
        functions.into_iter().map(function_name).collect()
    }

    /// The kernel called `name`.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoKernel`] with the names that there are, or a failure of the driver.
    pub fn kernel(&self, name: &str) -> Result<Kernel, GpuError> {
        let not_found = || -> GpuError {
            let available = self.kernel_names().unwrap_or_default();
            GpuError::NoKernel {
                name: name.to_owned(),
                available,
            }
        };
        let text = CString::new(name).map_err(|_| not_found())?;
        self.loaded.context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in NUL, the handle goes to a local variable.
        let result =
            unsafe { sys::cuModuleGetFunction(&raw mut raw, self.loaded.raw, text.as_ptr()) };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(not_found());
        }
        check("cuModuleGetFunction", result)?;
        let (loaded, stream) = (self.loaded.clone(), self.stream.clone());
        let (parameters, attributes) = (parameter_sizes(raw)?, attributes(raw)?);
        Ok(Kernel {
            loaded,
            stream,
            raw: Function(raw),
            name: name.to_owned(),
            parameters,
            attributes,
        })
    }
}

impl Kernel {
    /// The name in the PTX.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sizes of the parameters in bytes, in order.
    pub fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// What the kernel needs.
    pub fn attributes(&self) -> KernelAttributes {
        self.attributes
    }

    /// How many blocks of `threads` threads with `shared_bytes` of dynamic shared memory one multiprocessor holds.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn blocks_per_sm(&self, threads: u32, shared_bytes: u32) -> Result<u32, GpuError> {
        self.allow_shared(shared_bytes)?;
        let mut blocks = 0;
        // SAFETY: a context is current and the function's module is loaded; the result goes to a local variable.
        let result = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.raw.0,
                threads as i32,
                shared_bytes as usize,
            )
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", result)?;
        Ok(blocks.max(0) as u32)
    }

    pub(crate) fn bind(&self) -> Result<(), GpuError> {
        self.loaded.context.bind()
    }

    /// Lets the kernel be launched with `bytes` of dynamic shared memory: above 48 KiB that has to be asked for.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<(), GpuError> {
        self.bind()?;
        let limit = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let allowed = attribute(self.raw.0, limit)?;
        if bytes <= allowed {
            Ok(())
        } else {
            self.set(limit, bytes)
        }
    }

    /// Lets the kernel be launched in clusters of more than 8 blocks.
    pub(crate) fn allow_large_clusters(&self) -> Result<(), GpuError> {
        self.bind()?;
        self.set(
            Attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            1,
        )
    }

    /// The clusters that the text declares (`.reqnctapercluster`), if it does.
    pub(crate) fn declared_cluster(&self) -> Result<Option<[u32; 3]>, GpuError> {
        self.bind()?;
        let [width, height, depth] = [
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        ]
        .map(|size| attribute(self.raw.0, size));
        let declared = [width?, height?, depth?];
        Ok((declared[0] > 0).then(|| declared.map(|size| size.max(1))))
    }

    fn set(&self, attribute: Attribute, value: u32) -> Result<(), GpuError> {
        // SAFETY: a context is current and the function's module is loaded.
        check("cuFuncSetAttribute", unsafe {
            sys::cuFuncSetAttribute(self.raw.0, attribute, value as i32)
        })
    }
}

fn attribute(function: CUfunction, attribute: Attribute) -> Result<u32, GpuError> {
    let mut value = 0;
    // SAFETY: the callers hold the function's module loaded and a context current; the value goes to a local variable.
    check("cuFuncGetAttribute", unsafe {
        sys::cuFuncGetAttribute(&raw mut value, attribute, function)
    })?;
    Ok(value.max(0) as u32)
}

fn attributes(function: CUfunction) -> Result<KernelAttributes, GpuError> {
    Ok(KernelAttributes {
        registers: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        local_bytes: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        static_shared_bytes: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        const_bytes: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        max_threads_per_block: attribute(
            function,
            Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        )?,
        binary_version: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
    })
}

fn parameter_sizes(function: CUfunction) -> Result<Vec<usize>, GpuError> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the callers hold the function's module loaded; the results go to local variables.
        let result = unsafe {
            sys::cuFuncGetParamInfo(function, sizes.len(), &raw mut offset, &raw mut size)
        };
        if result == CUresult::CUDA_ERROR_INVALID_VALUE {
            // No parameter of this number: the documented end of the list.
            return Ok(sizes);
        }
        check("cuFuncGetParamInfo", result)?;
        sizes.push(size);
    }
}

fn function_name(function: CUfunction) -> Result<String, GpuError> {
    let mut name = std::ptr::null();
    // SAFETY: `function` comes from a loaded module.
    check("cuFuncGetName", unsafe {
        sys::cuFuncGetName(&raw mut name, function)
    })?;
    if name.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the driver's string, which ends in NUL and lives as long as the module.
    Ok(unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned())
}

/// The text of a log buffer that the driver filled.
fn until_nul(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
}
