//! Why a run over devices failed.

use std::fmt;

#[cfg(feature = "gpu")]
use tilewright_gpu::GpuError;
use tilewright_kernels::devices::DevicesError;
use tilewright_kernels::gemm::PlanError;
use tilewright_kernels::select::SelectError;

use crate::host::{OperandError, RunError};

/// Why a product over devices could not be made or run.
#[derive(Debug)]
#[non_exhaustive]
pub enum DevicesRunError {
    /// The placement or the program is refused.
    Devices(Box<DevicesError>),
    /// A plan refused one of the products.
    Plan(Box<PlanError>),
    /// No plan serves one of the products.
    Select(Box<SelectError>),
    /// A matrix is not what the problem says.
    Operand(OperandError),
    /// A kernel could not be run.
    Run(Box<RunError>),
    /// A GPU refused something.
    #[cfg(feature = "gpu")]
    Gpu {
        /// The device's number among those of the run.
        device: usize,
        /// What it said.
        error: GpuError,
    },
    /// Several GPUs can't be used any more, and the driver does not say which of them is the cause.
    #[cfg(feature = "gpu")]
    Lost {
        /// Their numbers among those of the run.
        devices: Vec<usize>,
        /// What the driver says of each of them.
        error: GpuError,
    },
    /// The processes of a run did not find each other.
    Meeting {
        /// Where they meet.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// A program without a proof does not run on GPUs.
    Unproven,
    /// The number of devices is not that of the program.
    DeviceCount {
        /// What the program has.
        program: usize,
        /// What there is.
        found: usize,
    },
}

impl DevicesRunError {
    /// A stable name of the kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Devices(e) => e.code(),
            Self::Plan(e) => e.code(),
            Self::Select(e) => e.code(),
            Self::Operand(_) => "operand",
            Self::Run(_) => "run",
            #[cfg(feature = "gpu")]
            Self::Gpu { error, .. } | Self::Lost { error, .. } => error.code(),
            Self::DeviceCount { .. } => "device_count",
            Self::Meeting { .. } => "ranks_did_not_meet",
            Self::Unproven => "unproven",
        }
    }
}

impl fmt::Display for DevicesRunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Devices(e) => e.fmt(f),
            Self::Plan(e) => e.fmt(f),
            Self::Select(e) => e.fmt(f),
            Self::Operand(e) => e.fmt(f),
            Self::Run(e) => e.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Gpu { device, error } => write!(f, "device {device}: {error}"),
            #[cfg(feature = "gpu")]
            Self::Lost { devices, error } => {
                let all: Vec<_> = devices.iter().map(usize::to_string).collect();
                write!(
                    f,
                    "devices {}: {error}; one of them is lost, and the others that work with it",
                    all.join(", ")
                )
            }
            Self::Meeting { address, reason } => write!(
                f,
                "the ranks did not meet at {address}: {reason}; start every rank with the same address, rank 0 on that host"
            ),
            Self::Unproven => f.write_str(
                "the program was taken without a proof, and GPUs run proven programs only: make it with DeviceGemm::with",
            ),
            Self::DeviceCount { program, found } => write!(
                f,
                "the program is for {program} devices, and {found} are open; open as many as it has"
            ),
        }
    }
}

impl std::error::Error for DevicesRunError {}

impl From<DevicesError> for DevicesRunError {
    fn from(e: DevicesError) -> Self {
        Self::Devices(Box::new(e))
    }
}

impl From<PlanError> for DevicesRunError {
    fn from(e: PlanError) -> Self {
        Self::Plan(Box::new(e))
    }
}

impl From<SelectError> for DevicesRunError {
    fn from(e: SelectError) -> Self {
        Self::Select(Box::new(e))
    }
}

impl From<OperandError> for DevicesRunError {
    fn from(e: OperandError) -> Self {
        Self::Operand(e)
    }
}

impl From<RunError> for DevicesRunError {
    fn from(e: RunError) -> Self {
        Self::Run(Box::new(e))
    }
}
