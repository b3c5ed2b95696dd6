//! Every way in which OpenCL can refuse, each as one sentence that says what to do.

use std::fmt;

use opencl3::error_codes::ClError;

/// What OpenCL's loader answers if no platform is registered (`cl_khr_icd`).
const PLATFORM_NOT_FOUND: i32 = -1001;

/// What the dynamic loading of OpenCL's loader answers if there is none.
const NO_LOADER: i32 = -2000;

/// Why something could not be done on an OpenCL device. [`ClDeviceError::code`] is stable, the sentence is not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClDeviceError {
    /// OpenCL's loader, `libOpenCL`, is not installed.
    NoLoader,
    /// The loader finds no device.
    NoDevice,
    /// The device has no compiler.
    NoCompiler {
        /// The device.
        device: String,
    },
    /// The device has no arithmetic in double precision, and the kernel needs it.
    NoDoubles {
        /// The device.
        device: String,
    },
    /// The device's compiler refused the program.
    Build {
        /// The compiler's log.
        log: String,
    },
    /// The program has no kernel of that name.
    NoKernel {
        /// The name asked for.
        name: String,
    },
    /// The arguments of a launch are not as many as the kernel takes.
    Arguments {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// More bytes than a buffer has.
    Bounds {
        /// Bytes of the buffer.
        bytes: usize,
        /// The first byte and the number of bytes that were asked for.
        asked: (usize, usize),
    },
    /// A call of OpenCL failed.
    Call {
        /// The function.
        call: &'static str,
        /// The name of what it answered.
        name: String,
    },
}

impl ClDeviceError {
    /// A stable name of the kind of error, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoLoader | Self::NoDevice => "no_opencl_device",
            Self::NoCompiler { .. } => "no_opencl_compiler",
            Self::NoDoubles { .. } => "no_doubles",
            Self::Build { .. } => "opencl_rejected",
            Self::NoKernel { .. } => "no_such_kernel",
            Self::Arguments { .. } => "wrong_arguments",
            Self::Bounds { .. } => "invalid_request",
            Self::Call { .. } => "opencl_error",
        }
    }

    /// Whether there is no OpenCL device, rather than one that does not do what was asked.
    pub fn means_no_device(&self) -> bool {
        matches!(self, Self::NoLoader | Self::NoDevice)
    }

    /// The error of a call.
    pub(super) fn of(call: &'static str, error: &ClError) -> Self {
        match error.0 {
            NO_LOADER => Self::NoLoader,
            PLATFORM_NOT_FOUND => Self::NoDevice,
            _ => Self::Call {
                call,
                name: error.to_string(),
            },
        }
    }
}

impl fmt::Display for ClDeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLoader => write!(
                f,
                "there is no OpenCL here: libOpenCL does not load; install a loader and a driver (on Debian `ocl-icd-libopencl1` and, for the CPU, `pocl-opencl-icd`)"
            ),
            Self::NoDevice => write!(
                f,
                "OpenCL finds no device; install a driver (for the CPU, on Debian, `pocl-opencl-icd`)"
            ),
            Self::NoCompiler { device } => write!(
                f,
                "OpenCL device {device} has no compiler, and kernels are given as source: take another device"
            ),
            Self::NoDoubles { device } => write!(
                f,
                "OpenCL device {device} has no arithmetic in f64 (cl_khr_fp64): take a kernel in f32, or another device"
            ),
            Self::Build { log } => write!(f, "the OpenCL compiler refuses the program:\n{log}"),
            Self::NoKernel { name } => write!(f, "the OpenCL program has no kernel `{name}`"),
            Self::Arguments {
                kernel,
                expected,
                found,
            } => write!(
                f,
                "OpenCL kernel `{kernel}` takes {expected} arguments, and {found} were given"
            ),
            Self::Bounds {
                bytes,
                asked: (first, count),
            } => write!(
                f,
                "{count} bytes from byte {first} on of an OpenCL buffer of {bytes} bytes were asked for"
            ),
            Self::Call { call, name } => write!(f, "{call} failed with {name}"),
        }
    }
}

impl std::error::Error for ClDeviceError {}
