//! What a driver without GPUs behind it says of them: there are as many as `STAND_IN_GPUS` asks for, and they reach each other's memory if
//! `STAND_IN_PEERS` is `1`.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `CUDA_SUCCESS`.
pub const DONE: c_int = 0;
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub const REFUSED: c_int = 801;

fn asked(name: &str) -> c_int {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// Writes a result where a caller wants it.
pub unsafe fn put<T>(place: *mut T, value: T) -> c_int {
    unsafe { place.write(value) };
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuInit(_: c_uint) -> c_int {
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    unsafe { put(version, 13_000) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(_: c_int, name: *mut *const c_char) -> c_int {
    unsafe { put(name, c"CUDA_ERROR_NOT_SUPPORTED".as_ptr()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_: c_int, text: *mut *const c_char) -> c_int {
    unsafe { put(text, c"operation not supported".as_ptr()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    unsafe { put(count, asked("STAND_IN_GPUS")) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    unsafe { put(device, ordinal) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _: c_int) -> c_int {
    let bytes = c"Stand-in".to_bytes_with_nul();
    let count = bytes.len().min(length as usize);
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), name, count) };
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, which: c_int, _: c_int) -> c_int {
    let known = match which {
        16 => 132, // multiprocessors
        75 => 9,   // compute capability
        76 => 0,
        81 | 97 => 227 << 10, // shared memory
        _ => 65_536,
    };
    unsafe { put(value, known) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> c_int {
    unsafe { put(bytes, 80 << 30) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    unsafe { put(free, 80 << 30) + put(total, 80 << 30) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, _: c_int, _: c_int) -> c_int {
    unsafe { put(can, asked("STAND_IN_PEERS")) }
}

/// Calls that hand out something that is never looked at.
macro_rules! handles {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: *mut *mut c_void, _: c_uint) -> c_int {
            unsafe { put(handle, std::ptr::dangling_mut::<u8>().cast()) }
        }
    )*};
}

handles! { cuDevicePrimaryCtxRetain cuStreamCreate }

/// Calls that have nothing to do.
macro_rules! nothing {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            DONE
        }
    )*};
}

nothing! {
    cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuCtxSynchronize cuCtxEnablePeerAccess cuStreamSynchronize cuStreamDestroy_v2 cuStreamQuery
}
