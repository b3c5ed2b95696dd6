//! An OpenCL device at run time, on machines that may have none: buffers, programs from source, launches, times.
//!
//! OpenCL's loader (`libOpenCL`) is opened when it is first asked for, as the CUDA driver is. A program is compiled by the device's own
//! compiler, once for each text, and a launch is checked against the number of parameters that the kernel has. Everything is in order on one queue.
//!
//! ```no_run
//! use tilewright_gpu::opencl::{ClArg, ClDevice, ClDeviceError};
//!
//! fn double(source: &str, input: &[u8]) -> Result<Vec<u8>, ClDeviceError> {
//!     let device = ClDevice::open()?;
//!     let program = device.build(source)?;
//!     let mut data = device.alloc(input.len())?;
//!     device.write(&mut data, 0, input)?;
//!     let n = (input.len() / 4) as u32;
//!     program.kernel("double")?.launch([n.div_ceil(256), 1, 1], [256, 1, 1], &[ClArg::Buffer(&data), ClArg::U32(n)])?;
//!     device.read(&data, 0, input.len())
//! }
//! ```

mod error;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use opencl3::error_codes::ClError;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;

pub use error::ClDeviceError;

/// An open device: the first that OpenCL finds.
#[derive(Debug, Clone)]
pub struct ClDevice {
    open: Arc<Open>,
}

#[derive(Debug)]
struct Open {
    name: String,
    doubles: bool,
    local_bytes: u64,
    // The queue and the programs are closed before their context.
    queue: CommandQueue,
    /// What was compiled, by its text.
    programs: Mutex<HashMap<String, Arc<Program>>>,
    context: Context,
}

/// Bytes in the memory of a device.
#[derive(Debug)]
pub struct ClBuffer {
    memory: Buffer<u8>,
    bytes: usize,
}

/// A program that the device has compiled.
#[derive(Debug, Clone)]
pub struct ClProgram {
    open: Arc<Open>,
    program: Arc<Program>,
}

/// A kernel of a program.
#[derive(Debug)]
pub struct ClKernel {
    open: Arc<Open>,
    kernel: Kernel,
    name: String,
    parameters: usize,
}

/// An argument of a kernel. OpenCL's buffers are handles without an address, which is what sets it apart from [`Arg`](crate::Arg).
#[derive(Debug, Clone, Copy)]
pub enum ClArg<'a> {
    /// A pointer to global memory.
    Buffer(&'a ClBuffer),
    /// An unsigned 32-bit integer.
    U32(u32),
    /// A signed 32-bit integer.
    I32(i32),
    /// An unsigned 64-bit integer.
    U64(u64),
    /// A signed 64-bit integer.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
}

impl ClDevice {
    /// Opens the first device.
    ///
    /// # Errors
    ///
    /// [`ClDeviceError::NoLoader`] and [`ClDeviceError::NoDevice`] where there is none, [`ClDeviceError::NoCompiler`] for one that takes no source.
    pub fn open() -> Result<Self, ClDeviceError> {
        // Loaders that are first called by two threads at once tell one of them that there is no device.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let all = get_all_devices(CL_DEVICE_TYPE_ALL);
        let all = all.map_err(|e| ClDeviceError::of("clGetDeviceIDs", &e))?;
        let device = Device::new(*all.first().ok_or(ClDeviceError::NoDevice)?);
        let information = |e: ClError| ClDeviceError::of("clGetDeviceInfo", &e);
        let name = device.name().map_err(information)?;
        if !device.compiler_available().map_err(information)? {
            return Err(ClDeviceError::NoCompiler { device: name });
        }
        let context =
            Context::from_device(&device).map_err(|e| ClDeviceError::of("clCreateContext", &e))?;
        // SAFETY: the device is the one that the context was made of.
        let queue = unsafe {
            CommandQueue::create_with_properties(
                &context,
                device.id(),
                CL_QUEUE_PROFILING_ENABLE,
                0,
            )
        };
        let queue =
            queue.map_err(|e| ClDeviceError::of("clCreateCommandQueueWithProperties", &e))?;
        let doubles = device.double_fp_config().is_ok_and(|flags| flags != 0);
        let local_bytes = device.local_mem_size().map_err(information)?;
        let open = Open {
            name,
            doubles,
            local_bytes,
            queue,
            programs: Mutex::default(),
            context,
        };
        Ok(Self {
            open: Arc::new(open),
        })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.open.name
    }

    /// Bytes of local memory of a work-group.
    pub fn local_bytes(&self) -> u64 {
        self.open.local_bytes
    }

    /// Memory of `bytes` bytes, of which nothing is known.
    ///
    /// # Errors
    ///
    /// The device has no room.
    pub fn alloc(&self, bytes: usize) -> Result<ClBuffer, ClDeviceError> {
        // SAFETY: no memory of the host is given.
        let memory = unsafe {
            Buffer::create(
                &self.open.context,
                CL_MEM_READ_WRITE,
                bytes.max(1),
                std::ptr::null_mut(),
            )
        };
        let memory = memory.map_err(|e| ClDeviceError::of("clCreateBuffer", &e))?;
        Ok(ClBuffer { memory, bytes })
    }

    /// A part of a buffer as a buffer of its own; `first` is a multiple of what the device aligns buffers to.
    ///
    /// # Errors
    ///
    /// A part that is not inside, or that begins elsewhere.
    pub fn part(&self, of: &ClBuffer, first: usize) -> Result<ClBuffer, ClDeviceError> {
        let bytes = of.bytes.saturating_sub(first);
        of.holds(first, bytes.max(1))?;
        // SAFETY: the part is inside; OpenCL keeps the buffer as long as its part.
        let memory = unsafe { of.memory.create_sub_buffer(CL_MEM_READ_WRITE, first, bytes) };
        let memory = memory.map_err(|e| ClDeviceError::of("clCreateSubBuffer", &e))?;
        Ok(ClBuffer { memory, bytes })
    }

    /// Writes bytes from byte `first` on.
    ///
    /// # Errors
    ///
    /// Bytes outside of the buffer, or a call that fails.
    pub fn write(
        &self,
        to: &mut ClBuffer,
        first: usize,
        bytes: &[u8],
    ) -> Result<(), ClDeviceError> {
        to.holds(first, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let queue = &self.open.queue;
        // SAFETY: the bytes are inside of the buffer, and the call returns when they are written.
        let written =
            unsafe { queue.enqueue_write_buffer(&mut to.memory, CL_BLOCKING, first, bytes, &[]) };
        written.map_err(|e| ClDeviceError::of("clEnqueueWriteBuffer", &e))?;
        Ok(())
    }

    /// Reads `count` bytes from byte `first` on.
    ///
    /// # Errors
    ///
    /// Bytes outside of the buffer, or a call that fails; an error of a launch before shows here.
    pub fn read(
        &self,
        from: &ClBuffer,
        first: usize,
        count: usize,
    ) -> Result<Vec<u8>, ClDeviceError> {
        from.holds(first, count)?;
        let mut bytes = vec![0; count];
        if count > 0 {
            let queue = &self.open.queue;
            // SAFETY: the bytes are inside of the buffer, and the call returns when they are read.
            let read = unsafe {
                queue.enqueue_read_buffer(&from.memory, CL_BLOCKING, first, &mut bytes, &[])
            };
            read.map_err(|e| ClDeviceError::of("clEnqueueReadBuffer", &e))?;
        }
        Ok(bytes)
    }

    /// Compiles a program; one that this device has compiled before is the same.
    ///
    /// # Errors
    ///
    /// [`ClDeviceError::NoDoubles`] for a program in f64 on a device without, [`ClDeviceError::Build`] with the compiler's log.
    pub fn build(&self, source: &str) -> Result<ClProgram, ClDeviceError> {
        if source.contains("cl_khr_fp64") && !self.open.doubles {
            let device = self.open.name.clone();
            return Err(ClDeviceError::NoDoubles { device });
        }
        let programs = || {
            let programs = self.open.programs.lock();
            programs.unwrap_or_else(PoisonError::into_inner)
        };
        let of = |program: &Arc<Program>| ClProgram {
            open: Arc::clone(&self.open),
            program: Arc::clone(program),
        };
        if let Some(program) = programs().get(source) {
            return Ok(of(program));
        }
        // Without the lock, so that other threads go on.
        let context = &self.open.context;
        let program = Program::create_and_build_from_source(context, source, "-cl-std=CL1.2");
        let program = Arc::new(program.map_err(|log| ClDeviceError::Build { log })?);
        programs().insert(source.to_owned(), Arc::clone(&program));
        Ok(of(&program))
    }
}

impl ClBuffer {
    /// Its size in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    fn holds(&self, first: usize, count: usize) -> Result<(), ClDeviceError> {
        match first.checked_add(count) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(ClDeviceError::Bounds {
                bytes: self.bytes,
                asked: (first, count),
            }),
        }
    }
}

impl ClProgram {
    /// The kernel of a name.
    ///
    /// # Errors
    ///
    /// [`ClDeviceError::NoKernel`] if there is none.
    pub fn kernel(&self, name: &str) -> Result<ClKernel, ClDeviceError> {
        let unknown = || ClDeviceError::NoKernel {
            name: name.to_owned(),
        };
        if name.contains('\0') {
            return Err(unknown());
        }
        let kernel = Kernel::create(&self.program, name).map_err(|_| unknown())?;
        let parameters = kernel.num_args();
        let parameters = parameters.map_err(|e| ClDeviceError::of("clGetKernelInfo", &e))?;
        Ok(ClKernel {
            open: Arc::clone(&self.open),
            kernel,
            name: name.to_owned(),
            parameters: parameters as usize,
        })
    }
}

impl ClKernel {
    /// Launches `groups` work-groups of `threads` threads along x, y, z, waits for them, and returns their time in milliseconds.
    ///
    /// # Errors
    ///
    /// [`ClDeviceError::Arguments`] for too few or too many, or a call that fails: also for an argument of a size that the parameter does not have.
    pub fn launch(
        &self,
        groups: [u32; 3],
        threads: [u32; 3],
        arguments: &[ClArg<'_>],
    ) -> Result<f64, ClDeviceError> {
        if arguments.len() != self.parameters {
            return Err(ClDeviceError::Arguments {
                kernel: self.name.clone(),
                expected: self.parameters,
                found: arguments.len(),
            });
        }
        for (i, argument) in (0..).zip(arguments) {
            // SAFETY: the index is that of a parameter, and OpenCL compares the size with the parameter's.
            let set = unsafe {
                match argument {
                    ClArg::Buffer(b) => self.kernel.set_arg(i, &b.memory.get()),
                    ClArg::U32(v) => self.kernel.set_arg(i, v),
                    ClArg::I32(v) => self.kernel.set_arg(i, v),
                    ClArg::U64(v) => self.kernel.set_arg(i, v),
                    ClArg::I64(v) => self.kernel.set_arg(i, v),
                    ClArg::F32(v) => self.kernel.set_arg(i, v),
                    ClArg::F64(v) => self.kernel.set_arg(i, v),
                }
            };
            set.map_err(|e| ClDeviceError::of("clSetKernelArg", &e))?;
        }
        let local = threads.map(|t| t as usize);
        let global = [0, 1, 2].map(|i| groups[i] as usize * local[i]);
        let queue = &self.open.queue;
        // SAFETY: both arrays have three sizes; buffers live until the launch has ended, which is waited for.
        let event = unsafe {
            queue.enqueue_nd_range_kernel(
                self.kernel.get(),
                3,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            )
        };
        let event = event.map_err(|e| ClDeviceError::of("clEnqueueNDRangeKernel", &e))?;
        queue
            .finish()
            .map_err(|e| ClDeviceError::of("clFinish", &e))?;
        let profiling = |e: ClError| ClDeviceError::of("clGetEventProfilingInfo", &e);
        let start = event.profiling_command_start().map_err(profiling)?;
        let end = event.profiling_command_end().map_err(profiling)?;
        Ok(end.saturating_sub(start) as f64 / 1e6)
    }
}
