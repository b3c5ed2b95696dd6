//! The boundary to C: what callers pass, and how functions answer.
//!
//! Every function of the driver API gets pointers that are null or point to as much as the API says; that is the caller's part of the contract, and nothing here
//! can check more of it. [`Out`], [`In`] and [`Text`] are such pointers. Only C makes them, as arguments of a function that [`api!`] defines or as members of a structure,
//! so that the two or three `unsafe` blocks of their methods are the only ones that read or write through a caller's pointer.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{INVALID_VALUE, Status, UNKNOWN};

/// The outcome of a function of the API.
pub(crate) type Done = Result<(), Status>;

/// A handle of the API: a number that names an object, never an address; 0 for none.
pub(crate) type Handle = usize;

/// Where a result goes; null if nobody wants it or by mistake.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Where a result goes that nobody wants.
    pub(crate) fn none() -> Self {
        Self(std::ptr::null_mut())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Stores a result that is required.
    pub(crate) fn set(self, value: T) -> Done {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        self.set_if_wanted(value);
        Ok(())
    }

    /// Stores a result that may be left out.
    pub(crate) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so the caller of the API vouches for a place of this type.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Stores several results one after another.
    pub(crate) fn set_all(self, values: impl IntoIterator<Item = T>) {
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: the caller of the API vouches for as many places as it asked for; callers here pass no more.
            Out(unsafe { self.0.add(i) }).set_if_wanted(value);
        }
    }

    /// What the place holds, of arguments that are read and written.
    pub(crate) fn get(self) -> Result<T, Status>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// The same place as one of another type.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// What a function reads: one value or several.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct In<T>(pub(crate) *const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    /// The same place as one of another type.
    #[allow(clippy::cast_ptr_alignment)] // reads ask for no alignment
    pub(crate) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    /// The value.
    pub(crate) fn get(self) -> Result<T, Status> {
        self.at(0)
    }

    /// The value with this index.
    pub(crate) fn at(self, index: usize) -> Result<T, Status> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, so the caller of the API vouches for as many values as the API reads here.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// The first `count` values. A null pointer has none.
    pub(crate) fn list(self, count: usize) -> Result<Vec<T>, Status> {
        (0..count).map(|i| self.at(i)).collect()
    }
}

/// A string of C.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl From<In<u8>> for Text {
    fn from(bytes: In<u8>) -> Self {
        Self(bytes.0.cast())
    }
}

impl Text {
    pub(crate) fn get(self) -> Result<String, Status> {
        self.bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The bytes before its end, for as long as the call lasts.
    pub(crate) fn bytes<'a>(self) -> Result<&'a [u8], Status> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, so the caller of the API vouches for a string that ends in NUL and lives for the call.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// Memory of the host at an address that the caller vouches for.
pub(crate) fn host_read(address: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the API says that `len` bytes can be read there; the vector has room for them. The host's program may write at the same time, which is its race.
    unsafe {
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
        bytes.set_len(len);
    }
    bytes
}

/// Stores to memory of the host at an address that the caller vouches for.
pub(crate) fn host_write(address: u64, bytes: &[u8]) {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the API says that as many bytes can be written there, and they are not the vector's.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
}

thread_local! {
    /// The function that runs is one of those whose stream 0 is the thread's own.
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether stream 0 is the thread's own here.
pub(crate) fn per_thread() -> bool {
    PER_THREAD.get()
}

/// The answer of a function: its status, or "unknown" should it panic, which must not reach C. `TILEWRIGHT_TRACE=1` prints it.
pub(crate) fn answer(name: &str, body: impl FnOnce() -> Done) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(UNKNOWN));
    let code = result.err().map_or(0, |status| status.0);
    if crate::settings::trace() {
        eprintln!("tilewright: {name} = {code}");
    }
    code
}

/// As `call`, under another name: one that ends in `_ptsz` or `_ptds` takes the thread's own stream for 0.
pub(crate) fn under_name(name: &str, call: impl FnOnce() -> c_int) -> c_int {
    let own = name.ends_with("_ptsz") || name.ends_with("_ptds");
    let before = PER_THREAD.replace(own || PER_THREAD.get());
    let code = call();
    PER_THREAD.set(before);
    code
}

/// Defines functions of the API, each with the other names that it has, and `symbols`, which lists them all.
macro_rules! api {
    ($(fn $name:ident $arguments:tt $(as $alias:ident)* $body:block)*) => {
        $(
            api!(@function $name $arguments $body);
            $(api!(@alias $alias $name $arguments);)*
        )*

        /// The functions of this module, by name.
        pub(crate) fn symbols(add: &mut dyn FnMut(&'static str, *const std::ffi::c_void)) {
            $(
                add(stringify!($name), $name as *const std::ffi::c_void);
                $(add(stringify!($alias), $alias as *const std::ffi::c_void);)*
            )*
        }
    };
    (@function $name:ident ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        // SAFETY: the name is the API's, which this library stands in for; no other library of the process may define it.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            $crate::c::answer(stringify!($name), move || $body)
        }
    };
    (@alias $alias:ident $name:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        // SAFETY: as for the function itself.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $alias($($argument: $type),*) -> std::ffi::c_int {
            $crate::c::under_name(stringify!($alias), move || $name($($argument),*))
        }
    };
}
pub(crate) use api;
