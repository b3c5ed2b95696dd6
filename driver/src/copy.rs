//! Copies and sets, in all forms: boxes of bytes between two places with pitches.
//!
//! An address is the device's if an allocation there says so, and else the host's: so are all copies one, whatever the name of the function. Copies between two places of
//! the device take along which bytes were never written.

use std::ffi::{c_int, c_uint};

use crate::c::{Done, Handle, In, api, host_read, host_write};
use crate::memory::Place;
use crate::state::Driver;
use crate::status::{INVALID_VALUE, NOT_SUPPORTED};
use crate::stream::{Work, submit, submit_now};

/// One side of a copy: where it begins, and bytes from one row and one slice to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) slice: u64,
}

/// A copy of `size[0]` bytes a row, `size[1]` rows a slice and `size[2]` slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) to: Side,
    pub(crate) from: Side,
    pub(crate) size: [u64; 3],
}

/// A set of `width` elements of 1, 2 or 4 bytes a row and `height` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) address: u64,
    pub(crate) pitch: u64,
    pub(crate) value: u32,
    pub(crate) element: u32,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Copy {
    fn line(to: u64, from: u64, bytes: usize) -> Self {
        let side = |address| Side {
            address,
            pitch: 0,
            slice: 0,
        };
        Self {
            to: side(to),
            from: side(from),
            size: [bytes as u64, 1, 1],
        }
    }
}

impl Driver {
    /// Whether the address is memory of the device that the host cannot reach.
    fn is_on_device(&self, address: u64) -> bool {
        self.allocation(address).map_or_else(
            || self.memory.rest(address).is_some(),
            |a| a.place == Place::Device,
        )
    }

    fn copy_row(&mut self, to: u64, from: u64, bytes: usize) -> Done {
        let refuse = |_| INVALID_VALUE;
        match (self.is_on_device(to), self.is_on_device(from)) {
            (true, true) => self.memory.copy(to, from, bytes).map_err(refuse),
            (true, false) => self
                .memory
                .write(to, &host_read(from, bytes))
                .map_err(refuse),
            (false, true) => {
                let read = self.memory.read(from, bytes).map_err(refuse)?;
                host_write(to, &read);
                Ok(())
            }
            (false, false) => {
                host_write(to, &host_read(from, bytes));
                Ok(())
            }
        }
    }

    pub(crate) fn copy(&mut self, copy: &Copy) -> Done {
        let Copy {
            to,
            from,
            size: [bytes, rows, slices],
        } = *copy;
        if bytes == 0 || rows == 0 || slices == 0 {
            return Ok(());
        }
        if to.address == 0 || from.address == 0 {
            return Err(INVALID_VALUE);
        }
        for z in 0..slices {
            for y in 0..rows {
                let at = |side: Side| {
                    let offset = z
                        .checked_mul(side.slice)?
                        .checked_add(y.checked_mul(side.pitch)?)?;
                    side.address.checked_add(offset)
                };
                let (to, from) = (at(to).ok_or(INVALID_VALUE)?, at(from).ok_or(INVALID_VALUE)?);
                self.copy_row(to, from, bytes as usize)?;
            }
        }
        Ok(())
    }

    pub(crate) fn set(&mut self, set: &Set) -> Done {
        let Set {
            address,
            pitch,
            value,
            element,
            width,
            height,
        } = *set;
        if !matches!(element, 1 | 2 | 4) || address % u64::from(element) != 0 {
            return Err(INVALID_VALUE);
        }
        if height > 1 && pitch < width * u64::from(element) {
            return Err(INVALID_VALUE);
        }
        let pattern = &value.to_le_bytes()[..element as usize];
        let row = pattern.repeat(width as usize);
        for y in 0..height {
            let address = address + y * pitch;
            // Managed memory and the host's own are known to the emulator as well.
            self.memory
                .write(address, &row)
                .map_err(|_| INVALID_VALUE)?;
        }
        Ok(())
    }
}

/// `CUDA_MEMCPY2D`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Side2D {
    x: usize,
    y: usize,
    kind: c_int,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY3D`; `CUDA_MEMCPY3D_PEER` differs in the reserved fields alone.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Copy3D {
    from: Side3D,
    to: Side3D,
    size: [usize; 3],
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Side3D {
    at: [usize; 3],
    level: usize,
    kind: c_int,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// The address of a side: of the host, the device, or either; arrays are not supported.
fn base(kind: c_int, host: u64, device: u64) -> Result<u64, crate::status::Status> {
    match kind {
        1 => Ok(host),
        2 | 4 => Ok(device),
        3 => {
            crate::stubs::say("copies of CUDA arrays");
            Err(NOT_SUPPORTED)
        }
        _ => Err(INVALID_VALUE),
    }
}

impl TryFrom<Copy2D> for Copy {
    type Error = crate::status::Status;

    fn try_from(copy: Copy2D) -> Result<Self, Self::Error> {
        let side = |side: Side2D| -> Result<Side, Self::Error> {
            let pitch = if side.pitch == 0 {
                copy.width
            } else {
                side.pitch
            } as u64;
            if copy.height > 1 && pitch < copy.width as u64 {
                return Err(INVALID_VALUE);
            }
            let start = base(side.kind, side.host, side.device)?;
            let address = start + side.y as u64 * pitch + side.x as u64;
            Ok(Side {
                address,
                pitch,
                slice: 0,
            })
        };
        Ok(Self {
            to: side(copy.to)?,
            from: side(copy.from)?,
            size: [copy.width as u64, copy.height as u64, 1],
        })
    }
}

impl TryFrom<Copy3D> for Copy {
    type Error = crate::status::Status;

    fn try_from(copy: Copy3D) -> Result<Self, Self::Error> {
        let [width, height, depth] = copy.size.map(|n| n as u64);
        let side = |side: Side3D| -> Result<Side, Self::Error> {
            let pitch = if side.pitch == 0 {
                width
            } else {
                side.pitch as u64
            };
            let rows = if side.height == 0 {
                height
            } else {
                side.height as u64
            };
            let [x, y, z] = side.at.map(|n| n as u64);
            let start = base(side.kind, side.host, side.device)?;
            let slice = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
            Ok(Side {
                address: start + z * slice + y * pitch + x,
                pitch,
                slice,
            })
        };
        Ok(Self {
            to: side(copy.to)?,
            from: side(copy.from)?,
            size: [width, height, depth],
        })
    }
}

/// A copy that is done when the call returns.
fn now(to: u64, from: u64, bytes: usize) -> Done {
    submit_now(Work::Copy(Copy::line(to, from, bytes)))
}

/// A copy of a stream.
fn queued(to: u64, from: u64, bytes: usize, stream: Handle) -> Done {
    submit(stream, Work::Copy(Copy::line(to, from, bytes)))
}

fn set(address: u64, pitch: usize, value: u32, element: u32, size: [usize; 2]) -> Work {
    let [width, height] = size.map(|n| n as u64);
    Work::Set(Set {
        address,
        pitch: pitch as u64,
        value,
        element,
        width,
        height,
    })
}

api! {
    fn cuMemcpy(to: u64, from: u64, bytes: usize) as cuMemcpy_ptds {
        now(to, from, bytes)
    }

    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle) as cuMemcpyAsync_ptsz {
        queued(to, from, bytes, stream)
    }

    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) as cuMemcpyHtoD_v2_ptds {
        now(to, from, bytes)
    }

    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) as cuMemcpyDtoH_v2_ptds {
        now(to, from, bytes)
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) as cuMemcpyDtoD_v2_ptds {
        now(to, from, bytes)
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) as cuMemcpyHtoDAsync_v2_ptsz {
        queued(to, from, bytes, stream)
    }

    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) as cuMemcpyDtoHAsync_v2_ptsz {
        queued(to, from, bytes, stream)
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) as cuMemcpyDtoDAsync_v2_ptsz {
        queued(to, from, bytes, stream)
    }

    fn cuMemcpyPeer(to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize) as cuMemcpyPeer_ptds {
        now(to, from, bytes)
    }

    fn cuMemcpyPeerAsync(to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize, stream: Handle) as cuMemcpyPeerAsync_ptsz {
        queued(to, from, bytes, stream)
    }

    fn cuMemcpy2D_v2(copy: In<Copy2D>) as cuMemcpy2D_v2_ptds {
        submit_now(Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy2DUnaligned_v2(copy: In<Copy2D>) as cuMemcpy2DUnaligned_v2_ptds {
        submit_now(Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy2DAsync_v2(copy: In<Copy2D>, stream: Handle) as cuMemcpy2DAsync_v2_ptsz {
        submit(stream, Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy3D_v2(copy: In<Copy3D>) as cuMemcpy3D_v2_ptds {
        submit_now(Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy3DAsync_v2(copy: In<Copy3D>, stream: Handle) as cuMemcpy3DAsync_v2_ptsz {
        submit(stream, Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy3DPeer(copy: In<Copy3D>) as cuMemcpy3DPeer_ptds {
        submit_now(Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemcpy3DPeerAsync(copy: In<Copy3D>, stream: Handle) as cuMemcpy3DPeerAsync_ptsz {
        submit(stream, Work::Copy(copy.get()?.try_into()?))
    }

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) as cuMemsetD8_v2_ptds {
        submit_now(set(to, 0, value.into(), 1, [count, 1]))
    }

    fn cuMemsetD16_v2(to: u64, value: u16, count: usize) as cuMemsetD16_v2_ptds {
        submit_now(set(to, 0, value.into(), 2, [count, 1]))
    }

    fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) as cuMemsetD32_v2_ptds {
        submit_now(set(to, 0, value, 4, [count, 1]))
    }

    fn cuMemsetD2D8_v2(to: u64, pitch: usize, value: u8, width: usize, height: usize) as cuMemsetD2D8_v2_ptds {
        submit_now(set(to, pitch, value.into(), 1, [width, height]))
    }

    fn cuMemsetD2D16_v2(to: u64, pitch: usize, value: u16, width: usize, height: usize) as cuMemsetD2D16_v2_ptds {
        submit_now(set(to, pitch, value.into(), 2, [width, height]))
    }

    fn cuMemsetD2D32_v2(to: u64, pitch: usize, value: c_uint, width: usize, height: usize) as cuMemsetD2D32_v2_ptds {
        submit_now(set(to, pitch, value, 4, [width, height]))
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) as cuMemsetD8Async_ptsz {
        submit(stream, set(to, 0, value.into(), 1, [count, 1]))
    }

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: Handle) as cuMemsetD16Async_ptsz {
        submit(stream, set(to, 0, value.into(), 2, [count, 1]))
    }

    fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: Handle) as cuMemsetD32Async_ptsz {
        submit(stream, set(to, 0, value, 4, [count, 1]))
    }

    fn cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) as cuMemsetD2D8Async_ptsz {
        submit(stream, set(to, pitch, value.into(), 1, [width, height]))
    }

    fn cuMemsetD2D16Async(to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) as cuMemsetD2D16Async_ptsz {
        submit(stream, set(to, pitch, value.into(), 2, [width, height]))
    }

    fn cuMemsetD2D32Async(to: u64, pitch: usize, value: c_uint, width: usize, height: usize, stream: Handle) as cuMemsetD2D32Async_ptsz {
        submit(stream, set(to, pitch, value, 4, [width, height]))
    }
}
