//! Memory: what is allocated, where, and what the API tells of it.
//!
//! Memory of a device is the emulator's own, at addresses that the host cannot reach, with unmapped space around each allocation: an access beyond one is never
//! inside another. Memory of the host that kernels reach (`cuMemHostAlloc`, `cuMemHostRegister`, managed memory) is at one address for both: the emulator is given
//! the words as they are ([`ptx_emulator::GlobalMemory::map`]).

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::AtomicU32;

use crate::c::{Done, Handle, In, Out, api};
use crate::state::{Driver, with};
use crate::status::{
    HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, INVALID_VALUE, NOT_FOUND,
    OUT_OF_MEMORY, Status,
};

/// Where an allocation lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Device,
    /// Allocated here for host and device.
    Host,
    /// The host's own, made known by `cuMemHostRegister`.
    Registered,
    Managed,
}

/// An allocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) place: Place,
    pub(crate) device: c_int,
    pub(crate) context: Handle,
    /// The pool that it is from; 0 for none.
    pub(crate) pool: Handle,
}

/// Alignment of memory of the host.
const PAGE: usize = 4096;

fn layout(bytes: u64) -> Result<Layout, Status> {
    let bytes = usize::try_from(bytes.max(1)).map_err(|_| OUT_OF_MEMORY)?;
    Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE).map_err(|_| OUT_OF_MEMORY)
}

/// The words from an address on that cover `bytes` bytes.
fn words(base: *mut c_void, bytes: u64) -> &'static [AtomicU32] {
    let count = bytes.div_ceil(4) as usize;
    // SAFETY: the memory is aligned and as long as that: it was just allocated, or the caller of `cuMemHostRegister` vouches for it and for leaving it there
    // until it is freed or unregistered, which ends the only use of the words. Atomics, since the host's program may access it at any time.
    unsafe { std::slice::from_raw_parts(base.cast::<AtomicU32>().cast_const(), count) }
}

/// New words of the host that are 0, on pages of their own.
pub(crate) fn pages(bytes: u64) -> Result<&'static [AtomicU32], Status> {
    // SAFETY: the layout has a size other than 0.
    let memory = unsafe { alloc_zeroed(layout(bytes)?) };
    if memory.is_null() {
        return Err(OUT_OF_MEMORY);
    }
    let _ = memory.expose_provenance();
    Ok(words(memory.cast(), bytes))
}

impl Driver {
    /// The allocation that has this address.
    pub(crate) fn allocation(&self, address: u64) -> Option<&Allocation> {
        let (_, found) = self.allocations.range(..=address).next_back()?;
        (address - found.base < found.bytes.max(1)).then_some(found)
    }

    /// New memory of the current device.
    pub(crate) fn allocate(&mut self, bytes: u64, pool: Handle) -> Result<u64, Status> {
        let context = self.alive()?;
        let device = self.current_device()?;
        let used: u64 = self.allocations.values().map(|a| a.bytes).sum();
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if bytes > self.device(device)?.memory.saturating_sub(used) {
            return Err(OUT_OF_MEMORY);
        }
        let base = self.memory.alloc(bytes, 512).map_err(|_| OUT_OF_MEMORY)?;
        let place = Place::Device;
        self.allocations.insert(
            base,
            Allocation {
                base,
                bytes,
                place,
                device,
                context,
                pool,
            },
        );
        Ok(base)
    }

    /// New memory that host and device reach.
    fn allocate_host(&mut self, bytes: u64, place: Place) -> Result<u64, Status> {
        let context = self.alive()?;
        let device = self.current_device()?;
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let mapped = self.memory.map(pages(bytes)?);
        let base = mapped.map_err(|_| OUT_OF_MEMORY)?;
        self.allocations.insert(
            base,
            Allocation {
                base,
                bytes,
                place,
                device,
                context,
                pool: 0,
            },
        );
        Ok(base)
    }

    /// Ends an allocation that starts at `address`, of one of these places.
    pub(crate) fn release(&mut self, address: u64, places: &[Place]) -> Done {
        let found = self.allocations.get(&address);
        let found = *found
            .filter(|a| places.contains(&a.place))
            .ok_or(INVALID_VALUE)?;
        self.allocations.remove(&address);
        // A registered place may begin within a word.
        self.memory.free(address & !3).map_err(|_| INVALID_VALUE)?;
        if matches!(found.place, Place::Host | Place::Managed) {
            let memory = std::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: allocated above with the layout of as many bytes, and no longer mapped.
            unsafe { dealloc(memory, layout(found.bytes)?) }
        }
        Ok(())
    }

    fn register(&mut self, address: u64, bytes: u64) -> Done {
        let context = self.alive()?;
        let device = self.current_device()?;
        if address == 0 || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        // Whole words: bytes beside the range count as inside.
        let base = address & !3;
        let from = std::ptr::with_exposed_provenance_mut(base as usize);
        let mapped = self.memory.map(words(from, address + bytes - base));
        mapped.map_err(|_| HOST_MEMORY_ALREADY_REGISTERED)?;
        let place = Place::Registered;
        self.allocations.insert(
            address,
            Allocation {
                base: address,
                bytes,
                place,
                device,
                context,
                pool: 0,
            },
        );
        Ok(())
    }

    fn pointer_attribute(&self, attribute: c_int, address: u64, out: Out<c_void>) -> Done {
        let a = self.allocation(address).ok_or(INVALID_VALUE)?;
        let on_host = a.place != Place::Device;
        let (word, long) = (
            |value: u32| out.cast::<u32>().set(value),
            |value: u64| out.cast::<u64>().set(value),
        );
        match attribute {
            1 => long(a.context as u64),
            // Host 1, device 2; managed memory counts as the device's.
            2 => word(match a.place {
                Place::Host | Place::Registered => 1,
                Place::Device | Place::Managed => 2,
            }),
            3 => long(address),
            4 if on_host => long(address),
            6 | 10 | 13..=15 | 21 => word(u32::from(attribute == 13)),
            7 | 11 | 19 | 20 => long(a.base),
            8 => word(u32::from(a.place == Place::Managed)),
            9 => word(a.device as u32),
            12 | 18 => long(a.bytes),
            16 => word(3),
            17 => long(a.pool as u64),
            _ => Err(INVALID_VALUE),
        }
    }
}

api! {
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        with(|d| {
            let device = d.current_device()?;
            let all = d.device(device)?.memory;
            let here = d.allocations.values().filter(|a| a.device == device);
            let used: u64 = here.map(|a| a.bytes).sum();
            free.set(all.saturating_sub(used) as usize)?;
            total.set(all as usize)
        })
    }

    fn cuMemAlloc_v2(out: Out<u64>, bytes: usize) {
        with(|d| out.set(d.allocate(bytes as u64, 0)?))
    }

    fn cuMemAllocPitch_v2(out: Out<u64>, pitch: Out<usize>, width: usize, height: usize, _element: c_uint) {
        with(|d| {
            let row = width.next_multiple_of(512);
            let bytes = row.checked_mul(height).ok_or(OUT_OF_MEMORY)?;
            let address = d.allocate(bytes as u64, 0)?;
            pitch.set(row)?;
            out.set(address)
        })
    }

    fn cuMemFree_v2(address: u64) {
        with(|d| {
            let _ = d.alive()?;
            if address == 0 {
                return Ok(());
            }
            d.release(address, &[Place::Device, Place::Managed])
        })
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, address: u64) {
        with(|d| {
            let found = d.allocation(address).ok_or(NOT_FOUND)?;
            base.set_if_wanted(found.base);
            bytes.set_if_wanted(found.bytes as usize);
            Ok(())
        })
    }

    fn cuMemAllocManaged(out: Out<u64>, bytes: usize, _flags: c_uint) {
        with(|d| out.set(d.allocate_host(bytes as u64, Place::Managed)?))
    }

    fn cuMemAllocHost_v2(out: Out<u64>, bytes: usize) {
        with(|d| out.set(d.allocate_host(bytes as u64, Place::Host)?))
    }

    fn cuMemHostAlloc(out: Out<u64>, bytes: usize, _flags: c_uint) {
        with(|d| out.set(d.allocate_host(bytes as u64, Place::Host)?))
    }

    fn cuMemFreeHost(memory: In<u8>) {
        with(|d| {
            if memory.is_null() {
                return Ok(());
            }
            d.release(memory.address(), &[Place::Host])
        })
    }

    fn cuMemHostGetDevicePointer_v2(out: Out<u64>, memory: In<u8>, _flags: c_uint) {
        with(|d| {
            let found = d.allocation(memory.address()).ok_or(INVALID_VALUE)?;
            if found.place == Place::Device {
                return Err(INVALID_VALUE);
            }
            out.set(memory.address())
        })
    }

    fn cuMemHostGetFlags(flags: Out<c_uint>, memory: In<u8>) {
        with(|d| {
            let found = d.allocation(memory.address()).ok_or(INVALID_VALUE)?;
            // Mapped.
            flags.set(if found.place == Place::Host { 2 } else { return Err(INVALID_VALUE) })
        })
    }

    fn cuMemHostRegister_v2(memory: In<u8>, bytes: usize, _flags: c_uint) {
        with(|d| d.register(memory.address(), bytes as u64))
    }

    fn cuMemHostUnregister(memory: In<u8>) {
        with(|d| {
            let released = d.release(memory.address(), &[Place::Registered]);
            released.map_err(|_| HOST_MEMORY_NOT_REGISTERED)
        })
    }

    fn cuPointerGetAttribute(out: Out<c_void>, attribute: c_int, address: u64) {
        with(|d| d.pointer_attribute(attribute, address, out))
    }

    fn cuPointerGetAttributes(count: c_uint, attributes: In<c_int>, outs: In<Out<c_void>>, address: u64) {
        with(|d| {
            for i in 0..count as usize {
                let (attribute, out) = (attributes.at(i)?, outs.at(i)?);
                // What is not known of a pointer is 0 here, and no error.
                if d.pointer_attribute(attribute, address, out).is_err() {
                    match attribute {
                        1 | 3 | 4 | 7 | 11 | 12 | 17 | 18 | 19 | 20 => out.cast::<u64>().set(0)?,
                        9 => out.cast::<c_int>().set(-2)?,
                        _ => out.cast::<u32>().set(0)?,
                    }
                }
            }
            Ok(())
        })
    }

    fn cuPointerSetAttribute(_value: In<c_void>, attribute: c_int, _address: u64) {
        // Synchronous operations, which all of them are.
        if attribute == 6 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    fn cuMemAdvise(_address: u64, _bytes: usize, _advice: c_int, _where: u64) as cuMemAdvise_v2 {
        Ok(())
    }

    fn cuMemPrefetchAsync(_address: u64, _bytes: usize, _device: c_int, _stream: Handle) as cuMemPrefetchAsync_ptsz {
        Ok(())
    }

    fn cuMemPrefetchAsync_v2(_address: u64, _bytes: usize, _where: u64, _flags: c_uint, _stream: Handle) as cuMemPrefetchAsync_v2_ptsz {
        Ok(())
    }

    fn cuMemRangeGetAttribute(out: Out<c_void>, size: usize, _attribute: c_int, _address: u64, _bytes: usize) {
        if size != 4 {
            return Err(INVALID_VALUE);
        }
        out.cast::<c_int>().set(0)
    }
}
