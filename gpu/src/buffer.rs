//! Device memory, with bounds checked on the host side.
//!
//! A [`Buffer`] is bytes: what they mean is up to the kernel. Reading and writing go through slices of plain numbers
//! ([`Element`]; half precision travels as `u16`). Copies are synchronous and ordered behind the work of every stream of
//! this crate, so that [`Buffer::download`] after a launch sees what the kernel wrote.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUresult};

use crate::device::Context;
use crate::driver::check;
use crate::error::GpuError;

/// Plain numbers: no padding, no invalid bit pattern.
///
/// # Safety
///
/// Every pattern of `size_of::<Self>()` bytes must be a value of the type.
pub unsafe trait Element: Copy + Default + 'static {}

macro_rules! elements {
    ($($number:ty)*) => { $(
        // SAFETY: a primitive number; every bit pattern is one.
        unsafe impl Element for $number {}
    )* };
}
elements! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

/// Bytes of device memory, freed when dropped.
#[derive(Debug)]
pub struct Buffer {
    context: Arc<Context>,
    address: u64,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Self, GpuError> {
        context.bind()?;
        let mut address = 0;
        // An empty buffer still gets an address of its own: the driver refuses to allocate nothing.
        // SAFETY: a context is current; the address goes to a local variable.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1)) };
        if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(GpuError::OutOfMemory { bytes });
        }
        check("cuMemAlloc", result)?;
        Ok(Self {
            context: context.clone(),
            address,
            bytes,
        })
    }

    /// The device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The size in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `data` to byte `offset` and the following.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if it reaches behind the end, or a failure of the driver.
    pub fn write<T: Element>(&self, offset: usize, data: &[T]) -> Result<(), GpuError> {
        let bytes = size_of_val(data);
        self.contains(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        let to = self.address + offset as u64;
        // SAFETY: the source is a slice of `bytes` bytes, the destination lies within this allocation (checked above).
        check("cuMemcpyHtoD", unsafe {
            sys::cuMemcpyHtoD_v2(to, data.as_ptr().cast(), bytes)
        })
    }

    /// `count` elements from byte `offset` on.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if it reaches behind the end, a failure of the driver, or of a kernel that has run.
    pub fn read<T: Element>(&self, offset: usize, count: usize) -> Result<Vec<T>, GpuError> {
        let bytes = count
            .checked_mul(size_of::<T>())
            .ok_or_else(|| GpuError::invalid("the size overflows"))?;
        self.contains(offset, bytes)?;
        let mut data = vec![T::default(); count];
        if bytes == 0 {
            return Ok(data);
        }
        self.context.bind()?;
        let from = self.address + offset as u64;
        // SAFETY: the destination is a vector of `bytes` bytes in which any bit pattern is valid (`Element`), the source
        // lies within this allocation (checked above), and the call returns when the copy is complete.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), from, bytes)
        })?;
        Ok(data)
    }

    /// Copies `bytes` bytes from byte `from` to byte `to` of the same buffer; the two ranges must not overlap.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if either reaches behind the end or they overlap, or a failure of the driver.
    pub fn copy_within(&self, from: usize, to: usize, bytes: usize) -> Result<(), GpuError> {
        self.contains(from, bytes)?;
        self.contains(to, bytes)?;
        if from.abs_diff(to) < bytes {
            let what = format!("{bytes} bytes at {from} and at {to} overlap");
            return Err(GpuError::invalid(what));
        }
        if bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        let [from, to] = [from, to].map(|offset| self.address + offset as u64);
        // SAFETY: both ranges lie within this allocation and do not overlap (checked above).
        check("cuMemcpyDtoD", unsafe {
            sys::cuMemcpyDtoD_v2(to, from, bytes)
        })
    }

    /// The whole buffer as elements.
    ///
    /// # Errors
    ///
    /// [`GpuError::Invalid`] if the size is no multiple of the element's, a failure of the driver, or of a kernel that
    /// has run.
    pub fn download<T: Element>(&self) -> Result<Vec<T>, GpuError> {
        if !self.bytes.is_multiple_of(size_of::<T>()) {
            let what = format!(
                "a buffer of {} bytes is no whole number of {}-byte elements",
                self.bytes,
                size_of::<T>()
            );
            return Err(GpuError::invalid(what));
        }
        self.read(0, self.bytes / size_of::<T>())
    }

    /// Sets every byte to `value`.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn fill(&self, value: u8) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        // SAFETY: exactly the bytes of this allocation.
        check("cuMemsetD8", unsafe {
            sys::cuMemsetD8_v2(self.address, value, self.bytes)
        })
    }

    /// Sets every byte to 0xff: NaN in every floating-point type, -1 in every integer, so that what a kernel forgot to
    /// write shows.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn poison(&self) -> Result<(), GpuError> {
        self.fill(0xff)
    }

    fn contains(&self, offset: usize, bytes: usize) -> Result<(), GpuError> {
        if offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.bytes)
        {
            return Ok(());
        }
        let what = format!(
            "{bytes} bytes at {offset} do not lie within a buffer of {} bytes",
            self.bytes
        );
        Err(GpuError::invalid(what))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated in `new` and freed here only; the driver waits for kernels in flight. An error (of an
            // earlier kernel, say) has nobody left to tell.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
