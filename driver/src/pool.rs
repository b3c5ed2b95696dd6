//! Memory pools: names for where memory is from. Each allocation is one of the emulator's own, so that an access beyond it is found; nothing is kept for later.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};

use crate::c::{Done, Handle, In, Out, api};
use crate::state::{Driver, with};
use crate::status::{INVALID_VALUE, Status};
use crate::stream::{Work, submit};

/// A pool.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    device: c_int,
    is_default: bool,
    attributes: HashMap<c_int, u64>,
}

/// `CUmemPoolProps`, as far as it is read.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Properties {
    kind: c_int,
    handles: c_int,
    place: [c_int; 2],
}

impl Driver {
    fn default_pool(&mut self, device: c_int) -> Result<Handle, Status> {
        self.device(device)?;
        let is = |p: &Pool| p.is_default && p.device == device;
        if let Some((handle, _)) = self.pools.iter().find(|(_, p)| is(p)) {
            return Ok(*handle);
        }
        let handle = self.handle();
        let pool = Pool {
            device,
            is_default: true,
            ..Pool::default()
        };
        self.pools.insert(handle, pool);
        Ok(handle)
    }

    fn pool(&mut self, handle: Handle) -> Result<&mut Pool, Status> {
        self.pools.get_mut(&handle).ok_or(INVALID_VALUE)
    }

    /// Bytes of the allocations of a pool.
    fn used(&self, pool: Handle) -> u64 {
        let of = self.allocations.values().filter(|a| a.pool == pool);
        of.map(|a| a.bytes).sum()
    }
}

/// Memory at once: an address is needed when the call returns.
fn allocate(out: Out<u64>, bytes: usize, pool: Option<Handle>) -> Done {
    with(|d| {
        let device = d.current_device()?;
        let pool = pool.map_or_else(|| d.default_pool(device), Ok)?;
        d.pool(pool)?;
        out.set(d.allocate(bytes as u64, pool)?)
    })
}

api! {
    fn cuMemAllocAsync(out: Out<u64>, bytes: usize, _stream: Handle) as cuMemAllocAsync_ptsz {
        allocate(out, bytes, None)
    }

    fn cuMemAllocFromPoolAsync(out: Out<u64>, bytes: usize, pool: Handle, _stream: Handle) as cuMemAllocFromPoolAsync_ptsz {
        allocate(out, bytes, Some(pool))
    }

    fn cuMemFreeAsync(address: u64, stream: Handle) as cuMemFreeAsync_ptsz {
        submit(stream, Work::Free(address))
    }

    fn cuDeviceGetDefaultMemPool(out: Out<Handle>, device: c_int) {
        with(|d| out.set(d.default_pool(device)?))
    }

    fn cuDeviceGetMemPool(out: Out<Handle>, device: c_int) {
        with(|d| out.set(d.default_pool(device)?))
    }

    fn cuDeviceSetMemPool(device: c_int, pool: Handle) {
        with(|d| {
            d.device(device)?;
            d.pool(pool).map(|_| ())
        })
    }

    fn cuMemPoolCreate(out: Out<Handle>, properties: In<Properties>) {
        with(|d| {
            let Properties { kind: _, handles, place: [_, device] } = properties.get()?;
            d.device(device)?;
            // Handles for other processes are not supported.
            if handles != 0 {
                return Err(crate::status::NOT_SUPPORTED);
            }
            let handle = d.handle();
            d.pools.insert(handle, Pool { device, ..Pool::default() });
            out.set(handle)
        })
    }

    fn cuMemPoolDestroy(pool: Handle) {
        with(|d| {
            if d.pool(pool)?.is_default {
                return Err(INVALID_VALUE);
            }
            d.pools.remove(&pool);
            Ok(())
        })
    }

    fn cuMemPoolTrimTo(pool: Handle, _bytes: usize) {
        with(|d| d.pool(pool).map(|_| ()))
    }

    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: In<c_void>) {
        with(|d| {
            let value = match attribute {
                1..=3 => u64::from(In(value.0.cast::<u32>()).get()?),
                4..=8 => In(value.0.cast::<u64>()).get()?,
                _ => return Err(INVALID_VALUE),
            };
            d.pool(pool)?.attributes.insert(attribute, value);
            Ok(())
        })
    }

    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Out<c_void>) {
        with(|d| {
            let used = d.used(pool);
            let set = d.pool(pool)?.attributes.get(&attribute).copied();
            match attribute {
                1..=3 => value.cast::<u32>().set(set.unwrap_or(1) as u32),
                4 => value.cast::<u64>().set(set.unwrap_or(0)),
                5..=8 => value.cast::<u64>().set(used),
                _ => Err(INVALID_VALUE),
            }
        })
    }

    fn cuMemPoolSetAccess(pool: Handle, _access: In<u8>, _count: usize) {
        with(|d| d.pool(pool).map(|_| ()))
    }

    fn cuMemPoolGetAccess(flags: Out<c_int>, pool: Handle, _place: In<[c_int; 2]>) {
        with(|d| d.pool(pool).and_then(|_| flags.set(3)))
    }
}
