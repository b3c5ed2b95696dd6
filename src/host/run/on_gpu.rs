//! A bound run on a GPU.

use layout_codegen::tensor_map::{MapArgument, MapType};
use tilewright_gpu::{
    Arg, Buffer, Gpu, GpuError, Kernel, L2Promotion, LaunchConfig, MapElement, MapSwizzle, Stream,
    TensorMap, TensorMapSpec, TimeOptions,
};
use tilewright_kernels::gemm::Declared;

use super::arg::{self, Role, Scalar};
use super::bind::{Addresses, Bound, BoundStep, Here, Value, WORKSPACE_ALIGNMENT};
use super::error::RunError;

/// What the GPU left behind, and the buffers in the order of the parameters.
pub(crate) struct Launched {
    pub(crate) buffers: Vec<Vec<u8>>,
    /// Of each buffer, whether the bytes around it are as they were.
    pub(crate) guards_untouched: Vec<bool>,
    /// Milliseconds of the launches, once.
    pub(crate) time_ms: f64,
    /// The median of several more times; none if there were none.
    pub(crate) median_ms: Option<f64>,
    /// Registers of a thread of the main entry.
    pub(crate) registers: u32,
}

/// Bytes of NaN on either side of a buffer.
const GUARD: usize = 256;

/// A buffer in device memory, at a multiple of its alignment, between NaN.
pub(crate) struct Placed {
    pub(crate) buffer: Buffer,
    /// Bytes from the start of the buffer.
    pub(crate) offset: usize,
    len: usize,
}

impl Placed {
    /// Below 16, at an odd multiple of its alignment; from 16 on at a multiple of 256 or of the alignment, as allocations are.
    pub(crate) fn new(gpu: &Gpu, placed: &arg::Buffer<'_>) -> Result<Self, GpuError> {
        let (len, alignment) = (placed.len, placed.alignment);
        let boundary = alignment.max(GUARD as u64);
        let buffer = gpu.alloc(len + 2 * GUARD + 2 * boundary as usize)?;
        buffer.poison()?;
        let odd = if alignment < 16 { alignment } else { 0 };
        let base = (buffer.address() + GUARD as u64).next_multiple_of(boundary) + odd;
        let offset = (base - buffer.address()) as usize;
        if let Some(content) = placed
            .content
            .as_ref()
            .filter(|_| placed.role != Role::Output)
        {
            buffer.write(offset, content)?;
        }
        Ok(Self {
            buffer,
            offset,
            len,
        })
    }

    pub(crate) fn address(&self) -> u64 {
        self.buffer.address() + self.offset as u64
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, GpuError> {
        self.buffer.read(self.offset, self.len)
    }

    /// The bytes on both sides are still those that were put there.
    pub(crate) fn guards_untouched(&self) -> Result<bool, GpuError> {
        let end = self.offset + self.len;
        let before = self.buffer.read::<u8>(0, self.offset)?;
        let after = self.buffer.read::<u8>(end, self.buffer.len_bytes() - end)?;
        Ok(before.iter().chain(&after).all(|&byte| byte == 0xff))
    }
}

/// The launches of a run with their kernels loaded and their workspace allocated.
pub(crate) struct Loaded {
    steps: Vec<(Kernel, BoundStep)>,
    /// Of each launch, whether it begins beside the one before: its kernel waits for that itself.
    beside: Vec<bool>,
    workspace: Buffer,
    /// Registers of a thread of the main entry.
    pub(crate) registers: u32,
}

impl Loaded {
    pub(crate) fn new(
        gpu: &Gpu,
        ptx: &str,
        entry: &str,
        bound: &Bound<'_>,
    ) -> Result<Self, GpuError> {
        let module = gpu.load_ptx(ptx)?;
        let steps = bound
            .steps
            .iter()
            .map(|step| Ok((module.kernel(&step.step.entry)?, step.clone())))
            .collect::<Result<Vec<_>, GpuError>>()?;
        let waits = |step: &BoundStep| Declared::of(ptx, &step.step.entry).waits;
        let beside = bound.steps.iter().map(waits).collect();
        let workspace = gpu.alloc((bound.workspace_bytes + WORKSPACE_ALIGNMENT) as usize)?;
        // What a kernel reads before another wrote it is NaN.
        workspace.poison()?;
        let registers = module.kernel(entry)?.attributes().registers;
        Ok(Self {
            steps,
            beside,
            workspace,
            registers,
        })
    }

    /// The arguments of every launch for buffers at these addresses, in the order of the parameters.
    pub(crate) fn bind(&self, gpu: &Gpu, buffers: Vec<u64>) -> Result<Vec<Vec<Arg>>, GpuError> {
        let workspace = self
            .workspace
            .address()
            .next_multiple_of(WORKSPACE_ALIGNMENT);
        let addresses = Addresses { buffers, workspace };
        let of_step = |(_, step): &(Kernel, BoundStep)| {
            let values = step.values.iter();
            values.map(|v| device(gpu, v, &addresses)).collect()
        };
        self.steps.iter().map(of_step).collect()
    }

    /// Launches everything in order, beside what the GPU's own stream does, if the first kernel waits for that; returns before it has run.
    pub(crate) fn run(&self, arguments: &[Vec<Arg>]) -> Result<(), GpuError> {
        self.enqueue(None, arguments)
    }

    /// The same on a stream, behind what it does: blocks that wait would take the place of kernels on other streams, for which this one may wait as well.
    pub(crate) fn run_on(&self, stream: &Stream, arguments: &[Vec<Arg>]) -> Result<(), GpuError> {
        self.enqueue(Some(stream), arguments)
    }

    fn enqueue(&self, stream: Option<&Stream>, arguments: &[Vec<Arg>]) -> Result<(), GpuError> {
        let steps = self.steps.iter().zip(&self.beside).zip(arguments);
        for (i, (((kernel, BoundStep { step, .. }), beside), arguments)) in steps.enumerate() {
            let mut config = LaunchConfig::new(step.grid, step.block)
                .cluster(step.cluster)
                .shared_bytes(step.shared_bytes);
            config.beside_previous = *beside && (i > 0 || stream.is_none());
            match stream {
                Some(stream) => kernel.launch_on(stream, &config, arguments)?,
                None => kernel.launch(&config, arguments)?,
            }
        }
        Ok(())
    }
}

/// Places the buffers, runs the launches in order, and then times them `repeats` times (on the buffers that they left, once their bytes have
/// been read: the result is that of one run).
pub(crate) fn launch(
    gpu: &Gpu,
    (ptx, entry): (&str, &str),
    bound: &Bound<'_>,
    repeats: usize,
) -> Result<Launched, RunError> {
    let loaded = Loaded::new(gpu, ptx, entry, bound)?;
    let placed = bound
        .buffers
        .iter()
        .map(|(_, buffer)| Placed::new(gpu, buffer))
        .collect::<Result<Vec<_>, GpuError>>()?;
    let arguments = loaded.bind(gpu, placed.iter().map(Placed::address).collect())?;
    let start = gpu.stream().record()?;
    loaded.run(&arguments)?;
    let end = gpu.stream().record()?;
    gpu.synchronize()?;
    let buffers = placed.iter().map(Placed::read);
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let guards = placed.iter().map(Placed::guards_untouched);
    let guards_untouched = guards.collect::<Result<Vec<_>, _>>()?;
    let median_ms = if repeats == 0 {
        None
    } else {
        let options = TimeOptions {
            repeats,
            ..TimeOptions::default()
        };
        let timing = gpu.time(options, |_| loaded.run(&arguments))?;
        Some(timing.median())
    };
    Ok(Launched {
        buffers,
        guards_untouched,
        time_ms: start.milliseconds_to(&end)?,
        median_ms,
        registers: loaded.registers,
    })
}

/// A value as the driver takes it.
fn device(gpu: &Gpu, value: &Value, addresses: &Addresses) -> Result<Arg, GpuError> {
    let scalar = match addresses.of(value) {
        Here::Address(address) => return Ok(Arg::Ptr(address)),
        Here::TensorMap(address, map) => return tensor_map(gpu, address, map),
        Here::Scalar(scalar) => scalar,
    };
    Ok(match scalar {
        Scalar::U32(v) => Arg::U32(*v),
        Scalar::I32(v) => Arg::I32(*v),
        Scalar::U64(v) => Arg::U64(*v),
        Scalar::I64(v) => Arg::I64(*v),
        Scalar::F32(v) => Arg::F32(*v),
        Scalar::F64(v) => Arg::F64(*v),
        Scalar::Bytes(bytes) => Arg::Bytes(bytes.clone()),
    })
}

/// A tensor map, encoded by the driver.
fn tensor_map(gpu: &Gpu, address: u64, of: &MapArgument) -> Result<Arg, GpuError> {
    Ok(Arg::from(&TensorMap::encode(gpu, &spec(address, of))?))
}

/// What [`tilewright_gpu`] calls the encoding of a map.
fn spec(address: u64, of: &MapArgument) -> TensorMapSpec {
    let encoding = of.encoding();
    let element = match encoding.data_type {
        MapType::U8 => MapElement::U8,
        MapType::U16 => MapElement::U16,
        MapType::U32 => MapElement::U32,
        MapType::U64 => MapElement::U64,
        MapType::Tf32 => MapElement::Tf32,
    };
    TensorMapSpec {
        sizes: encoding.sizes,
        strides: encoding.strides_bytes,
        box_sizes: encoding.box_sizes,
        element_strides: encoding.element_strides,
        swizzle: match encoding.swizzle_bytes {
            32 => MapSwizzle::Bytes32,
            64 => MapSwizzle::Bytes64,
            128 => MapSwizzle::Bytes128,
            _ => MapSwizzle::None,
        },
        l2_promotion: match encoding.l2_promotion_bytes {
            64 => L2Promotion::Bytes64,
            128 => L2Promotion::Bytes128,
            256 => L2Promotion::Bytes256,
            _ => L2Promotion::None,
        },
        ..TensorMapSpec::new(element, address)
    }
}
