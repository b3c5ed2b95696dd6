//! Several GPUs in one process: reading each other's memory, and copying by the copy engines.
//!
//! A copy between GPUs is work of a stream like any other; the GPU's copy engine does it while its multiprocessors multiply. Streams of different
//! GPUs are ordered by events ([`Stream::wait`]).

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUmemorytype, CUresult};
use std::time::{Duration, Instant};

use crate::device::Gpu;
use crate::driver::check;
use crate::error::GpuError;
use crate::timing::Stream;

/// Rows of bytes in device memory, the first of which begins at an address.
///
/// ```
/// use tilewright_gpu::Pitched;
/// let block = Pitched { address: 0x1000, pitch: 256 };
/// assert_eq!(block.pitch, 256);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pitched {
    /// The address of the first byte.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: usize,
}

impl Gpu {
    /// Lets this GPU read and write the memory of `other`. Asking twice does no harm, and neither does asking for itself.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoPeerAccess`] if the two are not linked, or a failure of the driver.
    pub fn reach(&self, other: &Self) -> Result<(), GpuError> {
        let (from, to) = (self.info().ordinal, other.info().ordinal);
        if from == to {
            return Ok(());
        }
        let mut linked = 0;
        // SAFETY: both devices were opened; the result goes to a local variable.
        check("cuDeviceCanAccessPeer", unsafe {
            sys::cuDeviceCanAccessPeer(
                &raw mut linked,
                self.context.device(),
                other.context.device(),
            )
        })?;
        if linked == 0 {
            return Err(GpuError::NoPeerAccess { from, to });
        }
        self.context.bind()?;
        // SAFETY: the context of `self` is current, that of `other` lives; 0 is the only flag.
        let result = unsafe { sys::cuCtxEnablePeerAccess(other.context.raw(), 0) };
        match result {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            result => check("cuCtxEnablePeerAccess", result),
        }
    }
}

impl Stream {
    /// Enqueues that `rows` rows of `width` bytes are copied, from and to the memory of any GPUs that reach each other.
    ///
    /// # Safety
    ///
    /// Both blocks must lie in allocations that live until the copy has run, and everything else that uses them must be ordered with this stream.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if rows overlap, or a failure of the driver.
    pub unsafe fn copy(
        &self,
        to: Pitched,
        from: Pitched,
        width: usize,
        rows: usize,
    ) -> Result<(), GpuError> {
        if width == 0 || rows == 0 {
            return Ok(());
        }
        let overlaps = |block: Pitched| rows > 1 && block.pitch < width;
        if overlaps(to) || overlaps(from) {
            return Err(GpuError::invalid(format!(
                "rows of {width} bytes can't lie {} and {} bytes apart",
                from.pitch, to.pitch
            )));
        }
        self.bind()?;
        let whole = |block: Pitched| rows == 1 || block.pitch == width;
        if whole(to) && whole(from) {
            // One run of bytes, for which the copy engines are fastest.
            // SAFETY: the caller's promise; addresses are unified, so the driver knows whose memory each is.
            return check("cuMemcpyAsync", unsafe {
                sys::cuMemcpyAsync(to.address, from.address, width * rows, self.raw())
            });
        }
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: std::ptr::null(),
            srcDevice: from.address,
            srcArray: std::ptr::null_mut(),
            srcPitch: from.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: std::ptr::null_mut(),
            dstDevice: to.address,
            dstArray: std::ptr::null_mut(),
            dstPitch: to.pitch,
            WidthInBytes: width,
            Height: rows,
        };
        // SAFETY: the caller's promise; the driver reads the description before it returns.
        check("cuMemcpy2DAsync", unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const copy, self.raw())
        })
    }

    /// Whether the work on this stream is done.
    ///
    /// # Errors
    ///
    /// A failure of the driver, or of a kernel that has run.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.bind()?;
        // SAFETY: the stream lives as long as `self`.
        match unsafe { sys::cuStreamQuery(self.raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuStreamQuery", result).map(|()| true),
        }
    }

    /// Waits until the work on this stream is done, but no longer than to `deadline`. `what` names the work in the error.
    ///
    /// # Errors
    ///
    /// [`GpuError::TimedOut`], a failure of the driver, or of a kernel that has run.
    pub fn wait_until(&self, deadline: Deadline, what: &str) -> Result<(), GpuError> {
        while !self.is_done()? {
            if deadline.is_past() {
                return Err(deadline.passed(what));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// A time limit that has begun.
///
/// ```
/// use std::time::Duration;
/// use tilewright_gpu::Deadline;
/// let soon = Deadline::after(Duration::from_secs(10));
/// assert!(!soon.is_past());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(limit: Duration) -> Self {
        Self {
            at: Instant::now() + limit,
            limit,
        }
    }

    /// The error that `what` has not ended in time.
    pub fn passed(&self, what: &str) -> GpuError {
        GpuError::TimedOut {
            what: what.to_owned(),
            milliseconds: self.limit.as_millis() as u64,
        }
    }

    /// How much time is left; none when it has passed.
    pub fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    pub fn is_past(&self) -> bool {
        Instant::now() >= self.at
    }
}
