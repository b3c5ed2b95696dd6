//! `cuGetExportTable`: tables of functions that the CUDA runtime asks the driver for by identifier.
//!
//! They are not documented. What is here are the tables of CUDA 12 and 13 with the identifiers, positions and arguments that open implementations of
//! the driver have published: values that a library keeps by context, the primary context of a device, and two buffers for tools. Positions that nobody
//! is known to call answer "not supported", and so does the authentication that the runtime of nvcc asks for first: its programs stop there with an error.

use std::ffi::{c_int, c_void};

use crate::c::{Done, Handle, Out, api};
use crate::context::Destructor;
use crate::state::with;
use crate::status::{INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED};

/// An entry of a table: a function, the size of the table in bytes, or nothing.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Entry(*const c_void);

// SAFETY: a table is read and never written; what its pointers lead to are functions and numbers.
unsafe impl Sync for Entry {}

const fn size(entries: usize) -> Entry {
    Entry(std::ptr::without_provenance(8 * entries))
}

const NONE: Entry = Entry(std::ptr::null());

/// What a position answers that nobody is known to call.
extern "C" fn unknown() -> c_int {
    crate::stubs::say("function of an export table that the runtime has called");
    NOT_SUPPORTED.0
}

const UNKNOWN: Entry = Entry(unknown as *const c_void);

macro_rules! call {
    ($name:ident) => {
        Entry($name as *const c_void)
    };
}

extern "C" fn primary_context(out: Out<Handle>, device: c_int) -> c_int {
    crate::c::answer("export: primary context", || {
        with(|d| {
            d.device(device)?;
            out.set(d.primary[device as usize])
        })
    })
}

extern "C" fn keep(context: Handle, key: usize, value: usize, end: Option<Destructor>) -> c_int {
    crate::c::answer("export: keep a value", || {
        with(|d| {
            d.context(context)?.1.storage.insert(key, (value, end));
            Ok(())
        })
    })
}

extern "C" fn forget(context: Handle, key: usize) -> c_int {
    crate::c::answer("export: forget a value", || {
        with(|d| {
            d.context(context)?.1.storage.remove(&key);
            Ok(())
        })
    })
}

extern "C" fn kept(out: Out<usize>, context: Handle, key: usize) -> c_int {
    crate::c::answer("export: a kept value", || {
        with(|d| {
            let found = d.context(context)?.1.storage.get(&key);
            out.set(found.ok_or(INVALID_HANDLE)?.0)
        })
    })
}

/// Memory that tools of the runtime share with the driver. Without tools both only look whether it is zero.
#[repr(C, align(64))]
struct Buffer(std::cell::UnsafeCell<[u64; 1024]>);

// SAFETY: nothing here reads or writes it.
unsafe impl Sync for Buffer {}

static BUFFERS: [Buffer; 2] = [const { Buffer(std::cell::UnsafeCell::new([0; 1024])) }; 2];

extern "C" fn first_buffer(out: Out<*mut c_void>, size: Out<usize>) {
    out.set_if_wanted(BUFFERS[0].0.get().cast());
    size.set_if_wanted(1024);
}

extern "C" fn second_buffer(out: Out<*mut c_void>, size: Out<usize>) {
    out.set_if_wanted(BUFFERS[1].0.get().cast());
    size.set_if_wanted(14);
}

/// Whether a context is one of a kind that there is none of here.
extern "C" fn is_special(_context: Handle, answer: Out<u32>, more: Out<*const c_void>) -> c_int {
    answer.set_if_wanted(0);
    let _ = more;
    0
}

extern "C" fn zero() -> c_int {
    0
}

static RUNTIME: [Entry; 13] = [
    size(13),
    UNKNOWN,
    call!(primary_context),
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    call!(zero),
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    call!(zero),
];
static TLS: [Entry; 4] = [size(4), NONE, NONE, NONE];
static HOOKS: [Entry; 7] = [
    size(7),
    NONE,
    call!(first_buffer),
    NONE,
    NONE,
    NONE,
    call!(second_buffer),
];
static STORAGE: [Entry; 4] = [call!(keep), call!(forget), call!(kept), NONE];
static CHECKS: [Entry; 4] = [size(4), NONE, call!(is_special), call!(zero)];

/// The tables by identifier.
static TABLES: [(u128, &[Entry]); 5] = [
    (0x6bd5_fb6c_5bf4_e74a_8987_d939_12fd_9df9, &RUNTIME),
    (0x42d8_5a81_23f6_cb47_8298_f6e7_8a3a_ecdc, &TLS),
    (0xa094_798c_2e74_2e74_93f2_0800_200c_0a66, &HOOKS),
    (0xc693_336e_1121_df11_a8c3_68f3_55d8_9593, &STORAGE),
    (0x263e_8860_7cd2_6143_92f6_bbd5_006d_fa7e, &CHECKS),
];

/// By this table the CUDA runtime asks a driver to authenticate itself with a key of the vendor's, which this library does not have.
const AUTHENTICATION: u128 = 0xd408_2055_bde6_704b_8d34_ba12_3c66_e1f2;

fn find(out: Out<*const c_void>, id: Out<[u8; 16]>) -> Done {
    let id = u128::from_be_bytes(id.get()?);
    let found = TABLES.iter().find(|(known, _)| *known == id);
    if crate::settings::trace() {
        eprintln!(
            "tilewright: export table {id:032x}, {}",
            if found.is_some() { "known" } else { "unknown" }
        );
    }
    if id == AUTHENTICATION {
        crate::stubs::say(
            "authentication that the CUDA runtime of nvcc asks for; programs on the driver API run",
        );
        return Err(NOT_SUPPORTED);
    }
    let (_, table) = found.ok_or(INVALID_VALUE)?;
    out.set(table.as_ptr().cast())
}

api! {
    fn cuGetExportTable(out: Out<*const c_void>, id: Out<[u8; 16]>) {
        find(out, id)
    }
}
