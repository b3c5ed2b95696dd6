//! The GPU itself: what it is, its context, its memory and the stream that everything is ordered on.
//!
//! A [`Gpu`] holds the device's *primary* context, the one that the CUDA runtime and therefore cuBLAS use too, so that
//! pointers and streams mean the same to both. A context is current per thread; every operation makes its own current
//! first, which costs nanoseconds and lets a `Gpu` be used from any thread.

use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute as Attribute};

use crate::buffer::{Buffer, Element};
use crate::driver::{check, ensure};
use crate::error::GpuError;
use crate::kept::Kept;
use crate::module::Module;
use crate::ptxas::Ptxas;
use crate::timing::Stream;

/// An opened GPU. Clones are the same GPU.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(crate) context: Arc<Context>,
    pub(crate) stream: Arc<Stream>,
    info: Arc<DeviceInfo>,
    kept: Option<Arc<Kept>>,
}

/// What the driver says about a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The device's number, from 0.
    pub ordinal: usize,
    /// The name of the product.
    pub name: String,
    /// Compute capability as (major, minor); `sm_90` is (9, 0).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of level 2 cache.
    pub l2_bytes: u64,
    /// Bytes of shared memory that one block may have if it asks for it.
    pub shared_bytes_per_block: u32,
    /// Bytes of shared memory of one multiprocessor.
    pub shared_bytes_per_sm: u32,
    /// Registers of 32 bits of one multiprocessor.
    pub registers_per_sm: u32,
    /// Peak clock of the multiprocessors in kHz; 0 if the driver does not say.
    pub clock_khz: u32,
    /// Peak clock of the memory in kHz; 0 if the driver does not say.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// The CUDA version that the driver supports, as (major, minor).
    pub driver_version: (u32, u32),
}

impl DeviceInfo {
    /// The architecture as PTX and ptxas name it, such as `sm_90`.
    pub fn arch(&self) -> String {
        let (major, minor) = self.compute_capability;
        format!("sm_{major}{minor}")
    }
}

/// A retained primary context.
#[derive(Debug)]
pub(crate) struct Context {
    raw: CUcontext,
    device: CUdevice,
}

// SAFETY: a context is a handle that any thread may make current and use; the driver locks what it must.
unsafe impl Send for Context {}
// SAFETY: as above; nothing here is changed after it is made.
unsafe impl Sync for Context {}

impl Context {
    /// Makes the context current for the calling thread, as every call below needs it.
    pub(crate) fn bind(&self) -> Result<(), GpuError> {
        // SAFETY: the context is retained for as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }
}

impl Context {
    pub(crate) fn raw(&self) -> CUcontext {
        self.raw
    }

    pub(crate) fn device(&self) -> CUdevice {
        self.device
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `Gpu::open`. An error here has nobody left to tell.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// The CUDA version that the driver supports, as (major, minor).
///
/// # Errors
///
/// [`GpuError::means_no_gpu`] errors, and failures of the driver.
pub fn driver_version() -> Result<(u32, u32), GpuError> {
    ensure()?;
    let mut version = 0;
    // SAFETY: the result goes to a local variable.
    check("cuDriverGetVersion", unsafe {
        sys::cuDriverGetVersion(&raw mut version)
    })?;
    let version = version.max(0) as u32;
    Ok((version / 1000, version % 1000 / 10))
}

/// Describes every GPU of this machine without opening one; at least one if it succeeds.
///
/// # Errors
///
/// [`GpuError::means_no_gpu`] errors, and failures of the driver.
pub fn devices() -> Result<Vec<DeviceInfo>, GpuError> {
    (0..device_count()?)
        .map(|ordinal| describe(ordinal, device(ordinal)?))
        .collect()
}

impl Gpu {
    /// Opens the GPU of number `ordinal`, from 0.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoDriver`], [`GpuError::OldDriver`], [`GpuError::NoDevice`], [`GpuError::NoSuchDevice`] or a failure
    /// of the driver.
    pub fn open(ordinal: usize) -> Result<Self, GpuError> {
        let count = device_count()?;
        if ordinal >= count {
            return Err(GpuError::NoSuchDevice { ordinal, count });
        }
        let device = device(ordinal)?;
        let info = Arc::new(describe(ordinal, device)?);
        let mut raw = std::ptr::null_mut();
        // SAFETY: `device` is a valid device; the handle goes to a local variable.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&raw mut raw, device)
        })?;
        let context = Arc::new(Context { raw, device });
        let stream = Arc::new(Stream::create(&context)?);
        Ok(Self {
            context,
            stream,
            info,
            kept: None,
        })
    }

    /// What the GPU is.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The stream on which everything happens that names no other.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Another stream.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn new_stream(&self) -> Result<Stream, GpuError> {
        Stream::create(&self.context)
    }

    /// Waits until all work on the GPU is done. The error may be that of any earlier launch.
    ///
    /// # Errors
    ///
    /// A failure of the driver, or of a kernel that has run.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.context.bind()?;
        // SAFETY: a context is current.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Bytes of device memory as (free, total).
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn memory(&self) -> Result<(usize, usize), GpuError> {
        self.context.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current; the results go to local variables.
        check("cuMemGetInfo", unsafe {
            sys::cuMemGetInfo_v2(&raw mut free, &raw mut total)
        })?;
        Ok((free, total))
    }

    /// `bytes` bytes of device memory with unspecified content, aligned to 256 bytes at least.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`] or a failure of the driver.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, GpuError> {
        Buffer::new(&self.context, bytes)
    }

    /// Device memory with the content of `data`.
    ///
    /// # Errors
    ///
    /// As [`Gpu::alloc`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer, GpuError> {
        let buffer = self.alloc(size_of_val(data))?;
        buffer.write(0, data)?;
        Ok(buffer)
    }

    /// Compiles PTX text for this GPU with the driver's compiler.
    ///
    /// # Errors
    ///
    /// [`GpuError::Jit`] with the compiler's log, or a failure of the driver.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module, GpuError> {
        match &self.kept {
            Some(kept) => kept.load(self, ptx),
            None => Module::load_ptx(self, ptx),
        }
    }

    /// Has ptxas assemble a text that [`Gpu::load_ptx`] will be asked for, without loading it: the driver is left alone, so that other threads can
    /// prepare kernels while times are taken. Does nothing if this `Gpu` does not [keep modules](Gpu::keeping_modules) or has no ptxas.
    pub fn prepare_ptx(&self, ptx: &str) {
        if let Some(kept) = &self.kept {
            kept.assemble(self, ptx);
        }
    }

    /// Loads machine code, as [`Ptxas::assemble`] makes it for this GPU's architecture.
    ///
    /// ```no_run
    /// use tilewright_gpu::{Gpu, ptxas};
    ///
    /// # fn load(ptx: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let gpu = Gpu::open(0)?;
    /// let assembly = ptxas::assemble(ptx, &gpu.info().arch())?;
    /// let module = gpu.load_cubin(&assembly.cubin)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] for bytes that are not a complete cubin, [`GpuError::Jit`] for one of another architecture, or a failure of the
    /// driver.
    pub fn load_cubin(&self, cubin: &[u8]) -> Result<Module, GpuError> {
        Module::load_cubin(self, cubin)
    }

    /// The same GPU, whose [`Gpu::load_ptx`] compiles each text once and keeps the module while this `Gpu` or a clone of it lives. With
    /// `ptxas` it assembles there: any number of texts at a time, where the driver's compiler takes one after the other. What ptxas does not
    /// take is left to the driver.
    ///
    /// ```no_run
    /// use tilewright_gpu::{Gpu, ptxas};
    ///
    /// let gpu = Gpu::open(0)?.keeping_modules(ptxas::find().ok());
    /// # Ok::<(), tilewright_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn keeping_modules(self, ptxas: Option<Ptxas>) -> Self {
        Self {
            kept: Some(Arc::new(Kept::new(ptxas))),
            ..self
        }
    }
}

fn device_count() -> Result<usize, GpuError> {
    ensure()?;
    let mut count = 0;
    // SAFETY: the result goes to a local variable.
    check("cuDeviceGetCount", unsafe {
        sys::cuDeviceGetCount(&raw mut count)
    })?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(GpuError::NoDevice),
    }
}

fn device(ordinal: usize) -> Result<CUdevice, GpuError> {
    let mut device = 0;
    // SAFETY: the driver is initialised, since devices were counted; the result goes to a local variable.
    check("cuDeviceGet", unsafe {
        sys::cuDeviceGet(&raw mut device, ordinal as i32)
    })?;
    Ok(device)
}

fn describe(ordinal: usize, device: CUdevice) -> Result<DeviceInfo, GpuError> {
    let number = |attribute: Attribute| {
        let mut value = 0;
        // SAFETY: `device` is a valid device; the result goes to a local variable.
        let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
        check("cuDeviceGetAttribute", result).map(|()| value.max(0) as u32)
    };
    let mut name = [0_u8; 256];
    // SAFETY: the driver writes at most the given length, its NUL included.
    let result =
        unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device) };
    check("cuDeviceGetName", result)?;
    let name = CStr::from_bytes_until_nul(&name)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut memory = 0;
    // SAFETY: `device` is a valid device; the result goes to a local variable.
    check("cuDeviceTotalMem", unsafe {
        sys::cuDeviceTotalMem_v2(&raw mut memory, device)
    })?;
    Ok(DeviceInfo {
        ordinal,
        name,
        compute_capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sm_count: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory as u64,
        l2_bytes: u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        shared_bytes_per_block: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        shared_bytes_per_sm: number(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
        registers_per_sm: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        // Newer drivers may stop answering for clocks: they are of interest, not of need.
        clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
        memory_clock_khz: number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0),
        memory_bus_bits: number(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
            .unwrap_or(0),
        driver_version: driver_version()?,
    })
}
