//! Contexts: primary ones, one a device, and created ones. All of them share one memory.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};

use crate::c::{Handle, In, Out, api};
use crate::state::{Driver, STACK, with};
use crate::status::{
    INVALID_CONTEXT, INVALID_VALUE, PEER_ACCESS_ALREADY_ENABLED, PEER_ACCESS_NOT_ENABLED, Status,
    UNSUPPORTED_LIMIT,
};
use crate::stream::wait_for_all;

/// Called with a context, a key and a value when the context ends.
pub(crate) type Destructor = extern "C" fn(Handle, *mut c_void, *mut c_void);

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: c_int,
    pub(crate) is_primary: bool,
    /// How often a primary context is held.
    retained: u32,
    flags: c_uint,
    /// What has gone wrong in it for good: a kernel's access out of bounds and the like.
    pub(crate) failed: Option<Status>,
    /// Values that the runtime keeps by keys.
    pub(crate) storage: HashMap<usize, (usize, Option<Destructor>)>,
    limits: HashMap<c_int, usize>,
    peers: Vec<Handle>,
}

impl Context {
    pub(crate) fn new(device: c_int, is_primary: bool) -> Self {
        Self {
            device,
            is_primary,
            retained: 0,
            flags: 0,
            failed: None,
            storage: HashMap::new(),
            limits: HashMap::new(),
            peers: Vec::new(),
        }
    }
}

impl Driver {
    fn primary(&mut self, device: c_int) -> Result<(Handle, &mut Context), Status> {
        self.device(device)?;
        let handle = self.primary[device as usize];
        let context = self.contexts.get_mut(&handle).ok_or(INVALID_CONTEXT)?;
        Ok((handle, context))
    }

    /// The context with this handle, the current one for 0.
    pub(crate) fn context(&mut self, handle: Handle) -> Result<(Handle, &mut Context), Status> {
        if handle == 0 {
            return self.current();
        }
        let context = self.contexts.get_mut(&handle).ok_or(INVALID_CONTEXT)?;
        Ok((handle, context))
    }

    /// A new context, which becomes current.
    fn create_context(
        &mut self,
        out: Out<Handle>,
        flags: c_uint,
        device: c_int,
    ) -> Result<(), Status> {
        self.device(device)?;
        let handle = self.handle();
        out.set(handle)?;
        let mut context = Context::new(device, false);
        context.flags = flags;
        self.contexts.insert(handle, context);
        STACK.with_borrow_mut(|stack| stack.push(handle));
        Ok(())
    }
}

/// Tells those who keep values in a context that it ends; without the lock, since they may call the API.
fn end(handle: Handle, storage: HashMap<usize, (usize, Option<Destructor>)>) {
    for (key, (value, destructor)) in storage {
        if let Some(destructor) = destructor {
            let pointer = std::ptr::with_exposed_provenance_mut;
            destructor(handle, pointer(key), pointer(value));
        }
    }
}

/// Makes `handle` current in place of the context that is.
fn make_current(handle: Handle) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.push(handle);
    });
}

fn reset(device: c_int) -> Result<(), Status> {
    let (handle, storage) = with(|d| {
        let (handle, context) = d.primary(device)?;
        context.retained = 0;
        context.failed = None;
        context.peers.clear();
        Ok((handle, std::mem::take(&mut context.storage)))
    })?;
    end(handle, storage);
    Ok(())
}

api! {
    fn cuDevicePrimaryCtxRetain(out: Out<Handle>, device: c_int) {
        with(|d| {
            let (handle, context) = d.primary(device)?;
            context.retained += 1;
            out.set(handle)
        })
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) as cuDevicePrimaryCtxRelease {
        let last = with(|d| {
            let (_, context) = d.primary(device)?;
            let before = context.retained;
            context.retained = before.checked_sub(1).ok_or(INVALID_CONTEXT)?;
            Ok(before == 1)
        })?;
        if last { reset(device) } else { Ok(()) }
    }

    fn cuDevicePrimaryCtxReset_v2(device: c_int) as cuDevicePrimaryCtxReset {
        reset(device)
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        with(|d| {
            let (_, context) = d.primary(device)?;
            flags.set(context.flags)?;
            active.set(c_int::from(context.retained > 0))
        })
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) as cuDevicePrimaryCtxSetFlags {
        with(|d| {
            d.primary(device)?.1.flags = flags;
            Ok(())
        })
    }

    fn cuCtxCreate_v2(out: Out<Handle>, flags: c_uint, device: c_int) {
        with(|d| d.create_context(out, flags, device))
    }

    fn cuCtxCreate_v3(out: Out<Handle>, _affinity: In<u8>, _count: c_int, flags: c_uint, device: c_int) {
        with(|d| d.create_context(out, flags, device))
    }

    fn cuCtxCreate_v4(out: Out<Handle>, _parameters: In<u8>, flags: c_uint, device: c_int) {
        with(|d| d.create_context(out, flags, device))
    }

    fn cuCtxDestroy_v2(context: Handle) as cuCtxDestroy {
        let removed = with(|d| {
            let found = d.contexts.get(&context).ok_or(INVALID_CONTEXT)?;
            if found.is_primary {
                return Err(INVALID_CONTEXT);
            }
            d.contexts.remove(&context).ok_or(INVALID_CONTEXT)
        })?;
        STACK.with_borrow_mut(|stack| {
            if stack.last() == Some(&context) {
                stack.pop();
            }
        });
        end(context, removed.storage);
        Ok(())
    }

    fn cuCtxPushCurrent_v2(context: Handle) as cuCtxPushCurrent {
        with(|d| d.contexts.get(&context).map(|_| ()).ok_or(INVALID_CONTEXT))?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(out: Out<Handle>) as cuCtxPopCurrent {
        with(|_| Ok(()))?;
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        out.set_if_wanted(popped);
        Ok(())
    }

    fn cuCtxSetCurrent(context: Handle) {
        with(|d| {
            if context != 0 && !d.contexts.contains_key(&context) {
                return Err(INVALID_CONTEXT);
            }
            make_current(context);
            Ok(())
        })
    }

    fn cuCtxGetCurrent(out: Out<Handle>) {
        with(|_| Ok(()))?;
        out.set(STACK.with_borrow(|stack| stack.last().copied()).unwrap_or(0))
    }

    fn cuCtxGetDevice(device: Out<c_int>) {
        with(|d| device.set(d.current()?.1.device))
    }

    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle) {
        with(|d| device.set(d.context(context)?.1.device))
    }

    fn cuCtxGetFlags(flags: Out<c_uint>) {
        with(|d| flags.set(d.current()?.1.flags))
    }

    fn cuCtxSetFlags(flags: c_uint) {
        with(|d| {
            d.current()?.1.flags = flags;
            Ok(())
        })
    }

    fn cuCtxGetId(context: Handle, id: Out<u64>) {
        with(|d| id.set(d.context(context)?.0 as u64))
    }

    fn cuCtxSynchronize() {
        wait_for_all()
    }

    fn cuCtxSynchronize_v2(_context: Handle) {
        wait_for_all()
    }

    fn cuCtxSetLimit(limit: c_int, value: usize) {
        with(|d| {
            if !(0..10).contains(&limit) {
                return Err(UNSUPPORTED_LIMIT);
            }
            d.current()?.1.limits.insert(limit, value);
            Ok(())
        })
    }

    fn cuCtxGetLimit(value: Out<usize>, limit: c_int) {
        with(|d| {
            // Stack, printf, heap, launches and depth of kernels that launch, L2.
            let default = match limit {
                0 => 1024,
                1 => 1 << 20,
                2 => ptx_emulator::HEAP_BYTES as usize,
                3 => 2,
                4 => 2048,
                5 => 64,
                6..=9 => 0,
                _ => return Err(UNSUPPORTED_LIMIT),
            };
            let set = d.current()?.1.limits.get(&limit).copied();
            value.set(set.unwrap_or(default))
        })
    }

    fn cuCtxGetCacheConfig(config: Out<c_int>) {
        with(|d| d.current().map(|_| ()))?;
        config.set(0)
    }

    fn cuCtxSetCacheConfig(_config: c_int) {
        with(|d| d.current().map(|_| ()))
    }

    fn cuCtxGetSharedMemConfig(config: Out<c_int>) {
        with(|d| d.current().map(|_| ()))?;
        config.set(1)
    }

    fn cuCtxSetSharedMemConfig(_config: c_int) {
        with(|d| d.current().map(|_| ()))
    }

    fn cuCtxGetApiVersion(context: Handle, version: Out<c_uint>) {
        with(|d| d.context(context).map(|_| ()))?;
        version.set(3020)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        with(|d| d.current().map(|_| ()))?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache() {
        with(|d| d.current().map(|_| ()))
    }

    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        with(|d| {
            let device = d.contexts.get(&peer).ok_or(INVALID_CONTEXT)?.device;
            let (_, context) = d.current()?;
            if flags != 0 || context.device == device {
                return Err(INVALID_VALUE);
            }
            if context.peers.contains(&peer) {
                return Err(PEER_ACCESS_ALREADY_ENABLED);
            }
            context.peers.push(peer);
            Ok(())
        })
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        with(|d| {
            let (_, context) = d.current()?;
            let at = context.peers.iter().position(|p| *p == peer);
            context.peers.remove(at.ok_or(PEER_ACCESS_NOT_ENABLED)?);
            Ok(())
        })
    }

    fn cuProfilerStart() {
        Ok(())
    }

    fn cuProfilerStop() {
        Ok(())
    }

    fn cuProfilerInitialize(_config: In<u8>, _output: In<u8>, _mode: c_int) {
        Ok(())
    }
}
