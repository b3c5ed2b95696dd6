//! Launches of the kernel transpose_f32 for rows = 1000, cols = 700; written by Tilewright.

use std::sync::Arc;

#[allow(unused_imports)]
use cudarc::driver::{CudaModule, CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, DriverError, LaunchConfig, PushKernelArg as _};

/// Why nothing was launched.
#[derive(Debug)]
pub enum Refused {
    Buffer { name: &'static str, reason: &'static str },
    Driver(DriverError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Buffer { name, reason } => write!(f, "buffer {name} {reason}"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<DriverError> for Refused {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

fn check(name: &'static str, address: u64, bytes: usize, least: u64, alignment: u64) -> Result<(), Refused> {
    if (bytes as u64) < least {
        return Err(Refused::Buffer { name, reason: "is shorter than the kernels need" });
    }
    if address % alignment != 0 {
        return Err(Refused::Buffer { name, reason: "is not aligned as the kernels need" });
    }
    Ok(())
}

/// The buffers, borrowed for the launch: one that is written overlaps no other.
pub struct Buffers<'b> {
    /// At least 2800000 bytes.
    pub x: &'b CudaSlice<f32>,
    /// At least 2800000 bytes.
    pub y: &'b mut CudaSlice<f32>,
}

/// rows and cols.
pub const SIZES: [u64; 2] = [1000, 700];

/// Bytes of the workspace.
pub const WORKSPACE_BYTES: u64 = 0;

/// Launches the kernels of the module on a stream, in order.
pub fn launch(module: &Arc<CudaModule>, stream: &Arc<CudaStream>, buffers: Buffers<'_>) -> Result<(), Refused> {
    let bytes = buffers.x.num_bytes();
    let (at_x, _x) = buffers.x.device_ptr(stream);
    check("x", at_x, bytes, 2800000, 16)?;
    let bytes = buffers.y.num_bytes();
    let (at_y, _y) = buffers.y.device_ptr_mut(stream);
    check("y", at_y, bytes, 2800000, 16)?;
    let kernel = module.load_function("transpose_f32")?;
    let mut launch = stream.launch_builder(&kernel);
    let p0 = 1000_u32; // rows
    launch.arg(&p0);
    let p1 = 700_u32; // cols
    launch.arg(&p1);
    let p2 = at_x; // x
    launch.arg(&p2);
    let p3 = at_y; // y
    launch.arg(&p3);
    let config = LaunchConfig { grid_dim: (16, 11, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the values are those of the kernel's parameters, and the buffers were checked.
    unsafe { launch.launch(config) }?;
    Ok(())
}
