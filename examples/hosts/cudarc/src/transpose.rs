//! Launches of the kernel transpose_f32; written by Tilewright.

use std::sync::Arc;

#[allow(unused_imports)]
use cudarc::driver::{CudaModule, CudaSlice, CudaStream, DevicePtr as _, DevicePtrMut as _, DriverError, LaunchConfig, PushKernelArg as _};

/// Why nothing was launched.
#[derive(Debug)]
pub enum Refused {
    Argument { name: &'static str, reason: &'static str },
    Driver(DriverError),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument { name, reason } => write!(f, "{name} {reason}"),
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
        return Err(Refused::Argument { name, reason: "is shorter than the kernels need" });
    }
    if address % alignment != 0 {
        return Err(Refused::Argument { name, reason: "is not aligned as the kernels need" });
    }
    Ok(())
}

/// The buffers, borrowed for the launch: one that is written overlaps no other.
pub struct Buffers<'b> {
    /// At least as many bytes as [`Scalars::bytes`] gives.
    pub x: &'b CudaSlice<f32>,
    /// At least as many bytes as [`Scalars::bytes`] gives.
    pub y: &'b mut CudaSlice<f32>,
}

/// The bytes that each buffer has at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes {
    pub x: u64,
    pub y: u64,
}

/// The sizes and other numbers of a launch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scalars {
    /// At most 1073741824.
    pub rows: u32,
    /// At most 1073741824.
    pub cols: u32,
}

impl Scalars {
    /// The blocks of the launch, none along an axis if there is nothing to do.
    pub fn grid(&self) -> Result<[u32; 3], Refused> {
        if self.rows > 1073741824 {
            return Err(Refused::Argument { name: "rows", reason: "is more than 1073741824, which the kernel was proven for" });
        }
        if self.cols > 1073741824 {
            return Err(Refused::Argument { name: "cols", reason: "is more than 1073741824, which the kernel was proven for" });
        }
        let blocks: [i64; 3] = [(i64::from(self.rows) + 63) / 64, (i64::from(self.cols) + 63) / 64, 1];
        if blocks.iter().zip([16777216, 65535, 1]).any(|(n, most)| *n > most) {
            return Err(Refused::Argument { name: "the grid", reason: "has more blocks along an axis than there can be" });
        }
        Ok(blocks.map(|n| n as u32))
    }

    /// The bytes that each buffer has at least.
    pub fn bytes(&self) -> Bytes {
        Bytes {
            x: (i64::saturating_mul(i64::saturating_mul(i64::from(self.rows), i64::from(self.cols)), 4)) as u64,
            y: (i64::saturating_mul(i64::saturating_mul(i64::from(self.cols), i64::from(self.rows)), 4)) as u64,
        }
    }
}

/// Bytes of the workspace.
pub const WORKSPACE_BYTES: u64 = 0;

/// Launches the kernels of the module on a stream, in order.
pub fn launch(module: &Arc<CudaModule>, stream: &Arc<CudaStream>, buffers: Buffers<'_>, scalars: Scalars) -> Result<(), Refused> {
    let grid = scalars.grid()?;
    if grid.contains(&0) {
        return Ok(());
    }
    let needed = scalars.bytes();
    let bytes = buffers.x.num_bytes();
    let (at_x, _x) = buffers.x.device_ptr(stream);
    check("x", at_x, bytes, needed.x, 16)?;
    let bytes = buffers.y.num_bytes();
    let (at_y, _y) = buffers.y.device_ptr_mut(stream);
    check("y", at_y, bytes, needed.y, 16)?;
    let kernel = module.load_function("transpose_f32")?;
    let mut launch = stream.launch_builder(&kernel);
    let p0 = scalars.rows; // rows
    launch.arg(&p0);
    let p1 = scalars.cols; // cols
    launch.arg(&p1);
    let p2 = at_x; // x
    launch.arg(&p2);
    let p3 = at_y; // y
    launch.arg(&p3);
    let config = LaunchConfig { grid_dim: grid.into(), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the values are those of the kernel's parameters, and the buffers were checked.
    unsafe { launch.launch(config) }?;
    Ok(())
}
