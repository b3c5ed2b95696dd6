//! Flags between the streams of several GPUs: words of device memory that one stream writes and another waits for.
//!
//! They are the driver's stream memory operations, which no kernel takes part in. A flag counts up, so that the same program runs again without being
//! reset: run `n` waits for the value `n`. Operations that follow each other on a stream go to the driver in one call
//! ([`Stream::flag_operations`]): a call takes some microseconds of the host, which small products would wait for.

use cudarc::driver::sys::{
    self, CUstreamBatchMemOpParams, CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags, CUstreamWriteValue_flags,
};

use crate::buffer::Buffer;
use crate::device::Gpu;
use crate::driver::check;
use crate::error::GpuError;
use crate::timing::Stream;

/// How many operations the driver takes in one call.
const MOST: usize = 256;

/// Words that streams of any GPU of the process set and wait for.
#[derive(Debug)]
pub struct Flags {
    words: Buffer,
    count: usize,
}

impl Gpu {
    /// Flags in this GPU's memory, all 0.
    ///
    /// # Errors
    ///
    /// As [`Gpu::alloc`].
    pub fn flags(&self, count: usize) -> Result<Flags, GpuError> {
        Ok(Flags {
            words: self.upload(&vec![0_u32; count.max(1)])?,
            count,
        })
    }
}

impl Flags {
    fn address(&self, flag: usize) -> Result<u64, GpuError> {
        if flag < self.count {
            return Ok(self.words.address() + 4 * flag as u64);
        }
        Err(GpuError::invalid(format!(
            "there is no flag {flag}: there are {}",
            self.count
        )))
    }
}

/// What a stream does with a flag.
#[derive(Clone, Copy, Debug)]
pub enum FlagOperation<'f> {
    /// The flag gets a value when everything before on the stream is done and visible to all GPUs.
    Set(&'f Flags, usize, u32),
    /// The stream waits until the flag is this value or more.
    Wait(&'f Flags, usize, u32),
}

impl FlagOperation<'_> {
    fn parameters(self) -> Result<CUstreamBatchMemOpParams, GpuError> {
        Ok(match self {
            Self::Set(flags, flag, value) => CUstreamBatchMemOpParams {
                writeValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st {
                    operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
                    address: flags.address(flag)?,
                    __bindgen_anon_1:
                        CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1 {
                            value,
                        },
                    flags: CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32,
                    alias: 0,
                },
            },
            Self::Wait(flags, flag, value) => CUstreamBatchMemOpParams {
                waitValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st {
                    operation: CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32,
                    address: flags.address(flag)?,
                    __bindgen_anon_1:
                        CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st__bindgen_ty_1 {
                            value,
                        },
                    flags: CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32,
                    alias: 0,
                },
            },
        })
    }
}

impl Stream {
    /// Enqueues operations on flags, in their order, behind everything that the stream has to do already.
    ///
    /// ```no_run
    /// use tilewright_gpu::{FlagOperation, Gpu};
    ///
    /// let gpu = Gpu::open(0)?;
    /// let (first, second) = (gpu.new_stream()?, gpu.new_stream()?);
    /// let flags = gpu.flags(1)?;
    /// second.flag_operations(&[FlagOperation::Wait(&flags, 0, 1)])?;
    /// first.flag_operations(&[FlagOperation::Set(&flags, 0, 1)])?;
    /// second.synchronize()?;
    /// # Ok::<(), tilewright_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] for a flag that does not exist, or a failure of the driver.
    pub fn flag_operations(&self, operations: &[FlagOperation<'_>]) -> Result<(), GpuError> {
        let mut all = operations
            .iter()
            .map(|operation| operation.parameters())
            .collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() {
            return Ok(());
        }
        self.bind()?;
        for some in all.chunks_mut(MOST) {
            // SAFETY: the words lie in living allocations; the driver reads the array before it returns; default flags order a write behind all
            // earlier writes of the stream.
            check("cuStreamBatchMemOp", unsafe {
                sys::cuStreamBatchMemOp_v2(self.raw(), some.len() as u32, some.as_mut_ptr(), 0)
            })?;
        }
        Ok(())
    }
}
