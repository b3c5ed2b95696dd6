//! Launching a kernel.
//!
//! The driver takes one pointer for each parameter and reads as many bytes from it as the parameter has. Arguments here
//! are values; their sizes are compared with the kernel's own list before anything is launched. A cluster is a launch
//! attribute, which is why every launch goes through `cuLaunchKernelEx`; a kernel that declares its cluster size in the
//! PTX (`.reqnctapercluster`) is launched without one, and refuses a launch that asks for another.

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig};

use crate::buffer::Buffer;
use crate::driver::check;
use crate::error::GpuError;
use crate::module::Kernel;
use crate::tensor_map::TensorMap;
use crate::timing::Stream;

/// The shape of a launch: blocks, threads, clusters, dynamic shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; `[1, 1, 1]` without clusters. Where the PTX declares the size itself, either that or `[1, 1, 1]`.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// The kernel may begin while the one before it on the stream still runs (programmatic dependent launch). It must wait by `griddepcontrol.wait` before it
    /// touches what that one reads or writes.
    pub beside_previous: bool,
}

impl LaunchConfig {
    /// A launch without clusters and dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            cluster: [1, 1, 1],
            shared_bytes: 0,
            beside_previous: false,
        }
    }

    /// The same, beside the kernel before it on the stream, for which it waits itself.
    ///
    /// ```
    /// use tilewright_gpu::LaunchConfig;
    ///
    /// let after = LaunchConfig::new([4, 1, 1], [128, 1, 1]);
    /// assert!(after.beside_previous().beside_previous && !after.beside_previous);
    /// ```
    #[must_use]
    pub fn beside_previous(self) -> Self {
        Self {
            beside_previous: true,
            ..self
        }
    }

    /// The same with `bytes` of dynamic shared memory.
    #[must_use]
    pub fn shared_bytes(self, bytes: u32) -> Self {
        Self {
            shared_bytes: bytes,
            ..self
        }
    }

    /// The same in clusters of these blocks.
    #[must_use]
    pub fn cluster(self, cluster: [u32; 3]) -> Self {
        Self { cluster, ..self }
    }
}

/// One kernel argument, as the driver reads it: buffers are addresses in device memory. A call that places host data itself takes other arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// An unsigned 32-bit integer.
    U32(u32),
    /// A signed 32-bit integer.
    I32(i32),
    /// An unsigned 64-bit integer.
    U64(u64),
    /// A signed 64-bit integer.
    I64(i64),
    /// A single-precision number.
    F32(f32),
    /// A double-precision number.
    F64(f64),
    /// A device address. Take `Arg::from(&buffer)` for a [`Buffer`]'s.
    Ptr(u64),
    /// Any other bytes, passed as they are.
    Bytes(Vec<u8>),
}

impl From<&Buffer> for Arg {
    fn from(buffer: &Buffer) -> Self {
        Self::Ptr(buffer.address())
    }
}

impl From<&TensorMap> for Arg {
    fn from(map: &TensorMap) -> Self {
        Self::Bytes(map.to_bytes())
    }
}

impl Arg {
    /// The bytes that the kernel sees.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::U32(value) => value.to_ne_bytes().to_vec(),
            Self::I32(value) => value.to_ne_bytes().to_vec(),
            Self::U64(value) | Self::Ptr(value) => value.to_ne_bytes().to_vec(),
            Self::I64(value) => value.to_ne_bytes().to_vec(),
            Self::F32(value) => value.to_ne_bytes().to_vec(),
            Self::F64(value) => value.to_ne_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

/// Bytes as aligned as any parameter can be: a tensor map's 128.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Line([u8; 128]);

/// Arguments in memory, each at the start of a [`Line`].
struct Packed {
    lines: Vec<Line>,
    first: Vec<usize>,
}

impl Packed {
    fn new(values: &[Vec<u8>]) -> Self {
        let (mut lines, mut first) = (Vec::new(), Vec::new());
        for value in values {
            first.push(lines.len());
            for chunk in value.chunks(128) {
                let mut line = Line([0; 128]);
                line.0[..chunk.len()].copy_from_slice(chunk);
                lines.push(line);
            }
        }
        Self { lines, first }
    }

    /// One pointer an argument, valid while `self` lives.
    fn pointers(&mut self) -> Vec<*mut c_void> {
        let base = self.lines.as_mut_ptr();
        self.first
            .iter()
            .map(|&line| base.wrapping_add(line).cast())
            .collect()
    }
}

impl Kernel {
    /// Launches the kernel on its GPU's own stream; returns before it has run.
    ///
    /// # Errors
    ///
    /// [`GpuError::Arguments`] if the arguments are not what the kernel takes, [`GpuError::Invalid`] for an empty grid,
    /// block or cluster, a grid of no whole number of clusters or another cluster than the PTX declares, or a failure of the driver. An error of the kernel itself shows when its results are read.
    pub fn launch(&self, config: &LaunchConfig, args: &[Arg]) -> Result<(), GpuError> {
        self.launch_on(&self.stream, config, args)
    }

    /// As [`Kernel::launch`], on `stream`.
    ///
    /// # Errors
    ///
    /// As [`Kernel::launch`].
    pub fn launch_on(
        &self,
        stream: &Stream,
        config: &LaunchConfig,
        args: &[Arg],
    ) -> Result<(), GpuError> {
        let values: Vec<Vec<u8>> = args.iter().map(Arg::to_bytes).collect();
        let found: Vec<usize> = values.iter().map(Vec::len).collect();
        if found != self.parameters() {
            let (kernel, expected) = (self.name().to_owned(), self.parameters().to_vec());
            return Err(GpuError::Arguments {
                kernel,
                expected,
                found,
            });
        }
        check_shape(config)?;
        self.allow_shared(config.shared_bytes)?;
        let declared = self.declared_cluster()?;
        if let Some(declared) = declared {
            check_declared(self.name(), config, declared)?;
        }
        let cluster = declared.unwrap_or(config.cluster);
        let blocks_in_cluster: u64 = cluster.iter().map(|&n| u64::from(n)).product();
        if blocks_in_cluster > 8 {
            self.allow_large_clusters()?;
        }
        let mut attributes = Vec::new();
        if blocks_in_cluster > 1 && declared.is_none() {
            attributes.push(cluster_attribute(cluster));
        }
        if config.beside_previous {
            attributes.push(beside_attribute());
        }
        let raw = CUlaunchConfig {
            gridDimX: config.grid[0],
            gridDimY: config.grid[1],
            gridDimZ: config.grid[2],
            blockDimX: config.block[0],
            blockDimY: config.block[1],
            blockDimZ: config.block[2],
            sharedMemBytes: config.shared_bytes,
            hStream: stream.raw(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let mut packed = Packed::new(&values);
        let mut pointers = packed.pointers();
        // SAFETY: a context is current (`allow_shared`) and the module is loaded; `pointers` has one entry for each of
        // the kernel's parameters, each pointing to as many bytes as the parameter has (compared above); the driver
        // copies them and the attributes before it returns.
        let result = unsafe {
            sys::cuLaunchKernelEx(
                &raw const raw,
                self.raw.0,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check("cuLaunchKernelEx", result)
    }
}

/// Refuses what the driver would only call an invalid value.
fn check_shape(config: &LaunchConfig) -> Result<(), GpuError> {
    let LaunchConfig {
        grid,
        block,
        cluster,
        ..
    } = config;
    if [grid, block, cluster]
        .iter()
        .any(|shape| shape.contains(&0))
    {
        let what = format!(
            "a launch needs at least one block, thread and cluster: grid {grid:?}, block {block:?}, cluster {cluster:?}"
        );
        return Err(GpuError::invalid(what));
    }
    whole_clusters(*grid, *cluster)
}

/// Refuses a grid that ends inside of a cluster.
fn whole_clusters(grid: [u32; 3], cluster: [u32; 3]) -> Result<(), GpuError> {
    if (0..3).any(|axis| !grid[axis].is_multiple_of(cluster[axis])) {
        return Err(GpuError::invalid(format!(
            "a grid of {grid:?} blocks is no whole number of {cluster:?} clusters"
        )));
    }
    Ok(())
}

/// Refuses a launch that asks for other clusters than the PTX declares: the driver takes those of the PTX, and the kernel counts on them.
fn check_declared(kernel: &str, config: &LaunchConfig, declared: [u32; 3]) -> Result<(), GpuError> {
    let asked = config.cluster;
    if asked != declared && asked != [1, 1, 1] {
        return Err(GpuError::invalid(format!(
            "the launch asks for clusters of {asked:?} blocks, and the PTX of {kernel} declares {declared:?} (.reqnctapercluster): give these, or [1, 1, 1]"
        )));
    }
    whole_clusters(config.grid, declared)
}

fn cluster_attribute(cluster: [u32; 3]) -> CUlaunchAttribute {
    // SAFETY: a C struct of integers and plain unions, of which all bits zero is a value.
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = cluster[0];
    attribute.value.clusterDim.y = cluster[1];
    attribute.value.clusterDim.z = cluster[2];
    attribute
}

fn beside_attribute() -> CUlaunchAttribute {
    // SAFETY: a C struct of integers and plain unions, of which all bits zero is a value.
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    attribute
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_keeps_its_bytes_and_is_aligned() {
        let values = vec![
            vec![1_u8, 2, 3, 4],
            (0..200).collect(),
            vec![9; 8],
            (0..128).collect(),
        ];
        let mut packed = Packed::new(&values);
        for (pointer, value) in packed.pointers().into_iter().zip(&values) {
            assert_eq!(pointer.addr() % 128, 0);
            // SAFETY: `packed` lives, and the pointer is to the bytes of this argument.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), value.len()) };
            assert_eq!(bytes, &value[..]);
        }
    }

    #[test]
    fn shapes_that_cannot_be_launched_are_refused() {
        let good = LaunchConfig::new([4, 2, 1], [32, 1, 1]);
        assert_eq!(check_shape(&good), Ok(()));
        assert_eq!(check_shape(&good.cluster([2, 2, 1])), Ok(()));
        for bad in [
            LaunchConfig::new([0, 1, 1], [32, 1, 1]),
            LaunchConfig::new([1, 1, 1], [32, 0, 1]),
            good.cluster([1, 0, 1]),
            good.cluster([3, 1, 1]),
        ] {
            assert!(check_shape(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_launch_agrees_with_the_clusters_that_the_text_declares() {
        let config = LaunchConfig::new([4, 6, 1], [32, 1, 1]);
        let declared = |cluster| check_declared("k", &config.cluster(cluster), [2, 3, 1]);
        assert_eq!(declared([2, 3, 1]), Ok(()));
        assert_eq!(declared([1, 1, 1]), Ok(()));
        let error = declared([4, 1, 1]).expect_err("another cluster");
        assert_eq!(
            error.to_string(),
            "the launch asks for clusters of [4, 1, 1] blocks, and the PTX of k declares [2, 3, 1] (.reqnctapercluster): give these, or [1, 1, 1]"
        );
        // Without a cluster in the launch, the grid still has whole ones.
        let error = check_declared("k", &config, [3, 1, 1]).expect_err("part of a cluster");
        assert!(
            error
                .to_string()
                .contains("no whole number of [3, 1, 1] clusters")
        );
    }

    #[test]
    fn cluster_attributes_have_the_layout_of_the_header() {
        // cuda.h: id, 4 bytes of padding, a union of 64 bytes.
        assert_eq!(size_of::<CUlaunchAttribute>(), 72);
        let attribute = cluster_attribute([2, 3, 4]);
        // SAFETY: the member that was set.
        let dims = unsafe { attribute.value.clusterDim };
        assert_eq!((dims.x, dims.y, dims.z), (2, 3, 4));
    }
}
