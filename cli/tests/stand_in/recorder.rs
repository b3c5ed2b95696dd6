//! A driver without GPUs behind it, which has memory and takes all work without doing any. On the file that `STAND_IN_LOG` names it writes a line for each
//! launch: the kernel, its shape, its attributes, and its parameters: numbers as bits, `pointer`, and of a tensor map what was encoded, but for the
//! address. What hosts launch can be compared with it on any machine.

mod devices;

use std::alloc::{Layout, alloc};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;

use devices::{DONE, put};

/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID: c_int = 1;

static LOG: Mutex<Option<File>> = Mutex::new(None);
/// What was encoded, by the number that stands in the map.
static MAPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn log(line: &str) {
    let mut log = LOG.lock().expect("one thread at a time");
    let path = || std::env::var_os("STAND_IN_LOG").expect("STAND_IN_LOG");
    let file = log.get_or_insert_with(|| File::create(path()).expect("a file"));
    writeln!(file, "{line}").expect("written");
}

/// A kernel: its name, and the bytes of its parameters as its text declares them.
struct Function {
    name: String,
    sizes: Vec<usize>,
    /// Blocks of a cluster that the text declares; zeros without.
    cluster: [c_int; 3],
}

impl Function {
    fn of(text: &str, name: &str) -> Option<Self> {
        let mut entries = text.split(".entry ").skip(1);
        let own = entries.find(|entry| entry.split('(').next().map(str::trim) == Some(name))?;
        let (_, list) = own.split_once('(')?;
        let (list, rest) = list.split_once(')')?;
        let declared = rest.split('{').next()?.split_once(".reqnctapercluster ");
        let declared = declared.and_then(|(_, sizes)| sizes.lines().next());
        let mut cluster = [0; 3];
        for (place, size) in cluster
            .iter_mut()
            .zip(declared.unwrap_or_default().split(','))
        {
            *place = size.trim().parse().unwrap_or(0);
        }
        let size = |param: &str| {
            let map = param.contains("[128]");
            let wide = [".u64", ".f64"].iter().any(|ty| param.contains(ty));
            if map {
                128
            } else if wide {
                8
            } else {
                4
            }
        };
        Some(Self {
            name: name.to_owned(),
            sizes: list.split(',').map(size).collect(),
            cluster,
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    text: *const c_char,
    _: c_uint,
    _: *mut c_int,
    _: *mut *mut c_void,
) -> c_int {
    let text = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    unsafe { put(module, Box::into_raw(Box::new(text)).cast()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *const String,
    name: *const c_char,
) -> c_int {
    let (text, name) = unsafe { (&*module, CStr::from_ptr(name)) };
    match Function::of(text, &name.to_string_lossy()) {
        Some(found) => unsafe { put(function, Box::into_raw(Box::new(found)).cast()) },
        None => INVALID,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetParamInfo(
    function: *const Function,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> c_int {
    match unsafe { &*function }.sizes.get(index) {
        Some(bytes) => unsafe { put(offset, 0) + put(size, *bytes) },
        None => INVALID,
    }
}

/// The clusters that the text declares; of the others, none is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    which: c_int,
    function: *const Function,
) -> c_int {
    let known = match which {
        11..=13 => unsafe { &*function }.cluster[which as usize - 11],
        _ => 0,
    };
    unsafe { put(value, known) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncSetAttribute(
    function: *const Function,
    which: c_int,
    value: c_int,
) -> c_int {
    log(&format!(
        "attribute {which} of {} is {value}",
        unsafe { &*function }.name
    ));
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(
    place: *mut u64,
    ty: c_uint,
    rank: u32,
    address: u64,
    sizes: *const u64,
    strides: *const u64,
    lengths: *const u32,
    steps: *const u32,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
) -> c_int {
    if !(place as usize).is_multiple_of(64) || !address.is_multiple_of(16) || rank == 0 {
        return INVALID;
    }
    let rank = rank as usize;
    let (sizes, strides, lengths, steps) = unsafe {
        (
            std::slice::from_raw_parts(sizes, rank),
            std::slice::from_raw_parts(strides, rank - 1),
            std::slice::from_raw_parts(lengths, rank),
            std::slice::from_raw_parts(steps, rank),
        )
    };
    let text = format!(
        "map(type {ty} sizes {sizes:?} strides {strides:?} box {lengths:?} steps {steps:?} interleave {interleave} swizzle {swizzle} promotion {promotion} fill {fill})"
    );
    let mut maps = MAPS.lock().expect("one thread at a time");
    maps.push(text);
    unsafe { put(place, maps.len() as u64 - 1) }
}

#[repr(C)]
pub struct Attribute {
    id: c_uint,
    padding: c_uint,
    value: [c_uint; 16],
}

#[repr(C)]
pub struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: *mut c_void,
    attributes: *const Attribute,
    count: c_uint,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const Config,
    function: *const Function,
    params: *const *const u8,
    _: *mut *mut c_void,
) -> c_int {
    let (config, function) = unsafe { (&*config, &*function) };
    let mut line = format!(
        "{} grid {:?} block {:?} shared {}",
        function.name, config.grid, config.block, config.shared
    );
    for i in 0..config.count as usize {
        let attribute = unsafe { &*config.attributes.add(i) };
        let _ = write!(
            line,
            " attribute {} {:?}",
            attribute.id,
            &attribute.value[..3]
        );
    }
    for (i, size) in function.sizes.iter().enumerate() {
        let place = unsafe { *params.add(i) };
        match size {
            128 => {
                let number = unsafe { place.cast::<u64>().read_unaligned() } as usize;
                let maps = MAPS.lock().expect("one thread at a time");
                let _ = write!(line, " {}", maps[number]);
            }
            8 => line.push_str(" pointer"),
            _ => {
                let _ = write!(line, " {:x}", unsafe {
                    place.cast::<u32>().read_unaligned()
                });
            }
        }
    }
    log(&line);
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    // Never freed: the program ends soon.
    match Layout::from_size_align(bytes.max(1), 256) {
        Ok(layout) => unsafe { put(address, alloc(layout) as u64) },
        Err(_) => INVALID,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> c_int {
    unsafe { std::ptr::copy(from, to as *mut u8, bytes) };
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> c_int {
    unsafe { std::ptr::copy(from as *const u8, to, bytes) };
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8_v2(to: u64, value: u8, bytes: usize) -> c_int {
    unsafe { std::ptr::write_bytes(to as *mut u8, value, bytes) };
    DONE
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(
    to: u64,
    value: u8,
    bytes: usize,
    _: *mut c_void,
) -> c_int {
    unsafe { cuMemsetD8_v2(to, value, bytes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, _: c_uint) -> c_int {
    unsafe { put(event, std::ptr::dangling_mut::<u8>().cast()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime_v2(
    time: *mut f32,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    unsafe { put(time, 1.0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(
    time: *mut f32,
    start: *mut c_void,
    end: *mut c_void,
) -> c_int {
    unsafe { cuEventElapsedTime_v2(time, start, end) }
}

/// Calls that have nothing to do.
macro_rules! nothing {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            DONE
        }
    )*};
}

nothing! { cuMemFree_v2 cuModuleUnload cuEventRecord cuEventSynchronize cuEventDestroy_v2 cuEventQuery }

/// Calls that nobody makes here, which the driver must have.
macro_rules! refused {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> c_int {
            devices::REFUSED
        }
    )*};
}

refused! {
    cuModuleGetFunctionCount cuModuleEnumerateFunctions cuFuncGetName cuOccupancyMaxActiveBlocksPerMultiprocessor cuMemcpyAsync cuMemcpy2DAsync_v2
    cuMemcpyDtoD_v2 cuStreamWriteValue32_v2 cuStreamWaitValue32_v2 cuStreamBatchMemOp_v2
}
