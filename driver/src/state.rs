//! What the library remembers: one driver for the process, behind one lock.
//!
//! Calls run one after another, whatever thread they come from. Work on a stream is done before the call returns, unless the stream waits for a value that another one
//! writes ([`crate::stream`]); so is a kernel. Handles are numbers that no two objects share, so that a stale one is an error and never an address.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ptx_emulator::GlobalMemory;

use crate::c::{Handle, api};
use crate::context::Context;
use crate::device::Device;
use crate::event::Event;
use crate::graph::{Executable, Graph, Node};
use crate::memory::Allocation;
use crate::module::{Function, Link, Module};
use crate::pool::Pool;
use crate::report::Reports;
use crate::status::{INVALID_CONTEXT, INVALID_VALUE, NOT_INITIALIZED, NOT_PERMITTED, Status};
use crate::stream::Stream;

/// The driver of the process.
#[derive(Default)]
pub(crate) struct Driver {
    pub(crate) devices: Vec<Device>,
    pub(crate) memory: GlobalMemory,
    /// By their first address.
    pub(crate) allocations: BTreeMap<u64, Allocation>,
    pub(crate) contexts: HashMap<Handle, Context>,
    /// The primary contexts, by device.
    pub(crate) primary: Vec<Handle>,
    /// Modules and libraries.
    pub(crate) modules: HashMap<Handle, Module>,
    /// Functions and kernels.
    pub(crate) functions: HashMap<Handle, Function>,
    pub(crate) links: HashMap<Handle, Link>,
    pub(crate) streams: HashMap<Handle, Stream>,
    pub(crate) events: HashMap<Handle, Event>,
    pub(crate) graphs: HashMap<Handle, Graph>,
    pub(crate) nodes: HashMap<Handle, Node>,
    pub(crate) executables: HashMap<Handle, Executable>,
    pub(crate) pools: HashMap<Handle, Pool>,
    pub(crate) reports: Reports,
    last_handle: Handle,
}

impl Driver {
    /// A number that nothing else has. They begin behind those that the API gives a meaning of their own, such as the stream 2.
    pub(crate) fn handle(&mut self) -> Handle {
        self.last_handle += 16;
        0x10_0000 + self.last_handle
    }

    /// The current context of the thread.
    pub(crate) fn current(&mut self) -> Result<(Handle, &mut Context), Status> {
        let current = STACK.with_borrow(|stack| stack.last().copied());
        let handle = current.filter(|c| *c != 0).ok_or(INVALID_CONTEXT)?;
        let context = self.contexts.get_mut(&handle).ok_or(INVALID_CONTEXT)?;
        Ok((handle, context))
    }

    /// The current context, unless what has run in it has gone wrong: then that is the answer of every call.
    pub(crate) fn alive(&mut self) -> Result<Handle, Status> {
        let (handle, context) = self.current()?;
        match context.failed {
            Some(status) => Err(status),
            None => Ok(handle),
        }
    }

    /// The device of the current context.
    pub(crate) fn current_device(&mut self) -> Result<c_int, Status> {
        Ok(self.current()?.1.device)
    }
}

thread_local! {
    /// The contexts of the thread, the current one last; 0 is none.
    pub(crate) static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    /// A function of the host's program runs, called by a stream.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

static DRIVER: Mutex<Option<Box<Driver>>> = Mutex::new(None);

fn lock() -> Result<MutexGuard<'static, Option<Box<Driver>>>, Status> {
    // The driver's own rule: host functions that streams call must not call it.
    if IN_HOST_FUNCTION.get() {
        return Err(NOT_PERMITTED);
    }
    // A call that panicked has left the state as it was between two of its steps.
    Ok(DRIVER.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Calls `f` with the driver, if it is initialised.
pub(crate) fn with<R>(f: impl FnOnce(&mut Driver) -> Result<R, Status>) -> Result<R, Status> {
    let mut driver = lock()?;
    f(driver.as_mut().ok_or(NOT_INITIALIZED)?)
}

/// Calls a function of the host's program, which may call nothing of the API.
pub(crate) fn host_function(call: impl FnOnce()) {
    let before = IN_HOST_FUNCTION.replace(true);
    call();
    IN_HOST_FUNCTION.set(before);
}

extern "C" fn at_exit() {
    let _ = with(|d| {
        d.reports.write();
        Ok(())
    });
}

fn initialise() -> Result<(), Status> {
    unsafe extern "C" {
        fn atexit(call: extern "C" fn()) -> c_int;
    }
    let mut driver = lock()?;
    if driver.is_none() {
        *driver = Some(Box::new(Driver {
            devices: crate::device::devices()?,
            ..Driver::default()
        }));
        if crate::settings::settings().report.is_some() {
            // SAFETY: the function of the C library, with a function that stays loaded: this library is linked into the process for good (`-z nodelete`).
            unsafe { atexit(at_exit) };
        }
    }
    let driver = driver.as_mut().ok_or(NOT_INITIALIZED)?;
    for device in driver.primary.len()..driver.devices.len() {
        let handle = driver.handle();
        driver.primary.push(handle);
        let context = Context::new(device as c_int, true);
        driver.contexts.insert(handle, context);
    }
    Ok(())
}

api! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        initialise()
    }
}
