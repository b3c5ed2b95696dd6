//! Every way in which the GPU can refuse, each as one sentence that says what to do.

use std::fmt;

/// Why something could not be done on the GPU. [`GpuError::code`] is stable, the sentence is not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// The driver library is not there or can't start.
    NoDriver {
        /// What failed.
        reason: String,
    },
    /// The driver lacks a function that is needed.
    OldDriver {
        /// The first missing function.
        symbol: &'static str,
    },
    /// The driver works and sees no GPU.
    NoDevice,
    /// No GPU has that number.
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A call of the driver failed.
    Driver {
        /// The function of the driver API.
        call: &'static str,
        /// Its `CUresult`.
        status: u32,
        /// The name of the status.
        name: String,
        /// The driver's explanation.
        text: String,
    },
    /// Device memory is exhausted.
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// The driver's compiler refused the PTX.
    Jit {
        /// The name of the status.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// The module has no kernel of that name.
    NoKernel {
        /// The name asked for.
        name: String,
        /// The kernels that it has.
        available: Vec<String>,
    },
    /// The arguments of a launch are not those that the kernel takes.
    Arguments {
        /// The kernel.
        kernel: String,
        /// Sizes in bytes of the kernel's parameters.
        expected: Vec<usize>,
        /// Sizes in bytes of the arguments.
        found: Vec<usize>,
    },
    /// A request that makes no sense, refused before the driver saw it.
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// cuBLAS or NCCL can't be loaded.
    NoLibrary {
        /// The library, such as `cublas`.
        library: &'static str,
        /// Every name that was tried.
        tried: Vec<String>,
    },
    /// One GPU can't read the memory of another.
    NoPeerAccess {
        /// The number of the GPU that would read.
        from: usize,
        /// The number of the GPU whose memory it is.
        to: usize,
    },
    /// Work did not end in time.
    TimedOut {
        /// What was waited for.
        what: String,
        /// The limit in milliseconds.
        milliseconds: u64,
    },
    /// A call of NCCL failed.
    Nccl {
        /// The function.
        call: &'static str,
        /// Its `ncclResult_t`.
        status: i32,
    },
    /// A call of cuBLAS failed.
    Cublas {
        /// The function.
        call: &'static str,
        /// Its `cublasStatus_t`.
        status: i32,
    },
}

impl GpuError {
    /// A stable name of the kind of error, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDriver { .. } => "no_cuda_driver",
            Self::OldDriver { .. } => "old_cuda_driver",
            Self::NoDevice => "no_gpu",
            Self::NoSuchDevice { .. } => "no_such_gpu",
            Self::Driver { .. } => "cuda_error",
            Self::OutOfMemory { .. } => "gpu_out_of_memory",
            Self::Jit { .. } => "ptx_rejected",
            Self::NoKernel { .. } => "no_such_kernel",
            Self::Arguments { .. } => "wrong_arguments",
            Self::Invalid { .. } => "invalid_request",
            Self::NoLibrary {
                library: "nccl", ..
            } => "no_nccl",
            Self::NoLibrary { .. } => "no_cublas",
            Self::NoPeerAccess { .. } => "no_peer_access",
            Self::TimedOut { .. } => "gpu_timed_out",
            Self::Nccl { .. } => "nccl_error",
            Self::Cublas { .. } => "cublas_error",
        }
    }

    /// Whether this machine simply has no GPU that can be used, so that a caller may turn to something else.
    pub fn means_no_gpu(&self) -> bool {
        matches!(
            self,
            Self::NoDriver { .. }
                | Self::OldDriver { .. }
                | Self::NoDevice
                | Self::NoSuchDevice { .. }
        )
    }

    /// Whether a GPU is lost to this process: a kernel on it went wrong, and every later call that concerns it fails alike.
    pub fn means_lost_gpu(&self) -> bool {
        matches!(self, Self::Driver { status, .. } if is_sticky(*status))
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver { reason } => write!(f, "there is no CUDA driver here: {reason}"),
            Self::OldDriver { symbol } => {
                write!(
                    f,
                    "the CUDA driver is too old: it lacks {symbol}; driver 550 (CUDA 12.4) or newer is needed"
                )
            }
            Self::NoDevice => write!(f, "the CUDA driver finds no GPU"),
            Self::NoSuchDevice { ordinal, count } => {
                write!(
                    f,
                    "there is no GPU {ordinal}: this machine has {count}, counted from 0"
                )
            }
            Self::Driver {
                call,
                status,
                name,
                text,
            } => {
                write!(f, "{call} failed with {name} ({status}): {text}")?;
                if is_sticky(*status) {
                    write!(
                        f,
                        "; the kernel before it went wrong, and no GPU call of this process can succeed any more"
                    )?;
                }
                Ok(())
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "the GPU has no room for another {bytes} bytes")
            }
            Self::Jit { name, log } if log.is_empty() => {
                write!(f, "the CUDA driver refuses the PTX with {name}")
            }
            Self::Jit { name, log } => {
                write!(f, "the CUDA driver refuses the PTX with {name}:\n{log}")
            }
            Self::NoKernel { name, available } => {
                write!(
                    f,
                    "the module has no kernel `{name}`; it has: {}",
                    available.join(", ")
                )
            }
            Self::Arguments {
                kernel,
                expected,
                found,
            } => write!(
                f,
                "kernel `{kernel}` takes {} parameters of {expected:?} bytes, but {} arguments of {found:?} bytes were given",
                expected.len(),
                found.len()
            ),
            Self::Invalid { what } => write!(f, "{what}"),
            Self::NoLibrary { library, tried } => {
                let variable = if *library == "nccl" {
                    "NCCL_PATH"
                } else {
                    "CUBLAS_PATH"
                };
                write!(
                    f,
                    "{library} can't be loaded; set {variable} to its file or folder (tried: {})",
                    tried.join(", ")
                )
            }
            Self::NoPeerAccess { from, to } => write!(
                f,
                "GPU {from} can't read the memory of GPU {to}: the driver has no peer access between them; take GPUs of one host that are \
                 linked by NVLink or one PCIe root (`nvidia-smi topo -p2p r` lists them)"
            ),
            Self::TimedOut { what, milliseconds } => write!(
                f,
                "{what} has not ended after {milliseconds} ms; it may be hung or lost, so this process should end (`nvidia-smi` shows the GPU's state)"
            ),
            Self::Nccl { call, status } => {
                write!(f, "{call} failed with {} ({status})", nccl_status(*status))
            }
            Self::Cublas { call, status } => write!(
                f,
                "{call} failed with {} ({status})",
                cublas_status(*status)
            ),
        }
    }
}

impl std::error::Error for GpuError {}

/// Errors of a kernel that has run, after which the context is lost (CUDA driver API, `CUresult`).
fn is_sticky(status: u32) -> bool {
    matches!(status, 700 | 702 | 710 | 714..=719)
}

/// The names of `cublasStatus_t` (cuBLAS documentation, section 2.2.2).
fn cublas_status(status: i32) -> &'static str {
    match status {
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "an unknown status",
    }
}

/// The names of `ncclResult_t` (NCCL documentation, section Types).
fn nccl_status(status: i32) -> &'static str {
    match status {
        1 => "ncclUnhandledCudaError",
        2 => "ncclSystemError",
        3 => "ncclInternalError",
        4 => "ncclInvalidArgument",
        5 => "ncclInvalidUsage",
        6 => "ncclRemoteError",
        7 => "ncclInProgress",
        _ => "an unknown status",
    }
}
