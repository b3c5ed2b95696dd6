//! Streams: work in order.
//!
//! Work is done when it is submitted, before the call returns: that is one of the orders that the API permits, and the same in every run. A stream that waits for a value in memory
//! (`cuStreamWaitValue32`) which is not there yet keeps what follows, and goes on when other work has brought the value. A stream that is captured keeps
//! nothing: its work becomes nodes of a graph.
//!
//! Example: stream A waits for the value 1 at an address and then copies; stream B writes 1 there. `submit` puts A's wait and copy on A's list, B's write is
//! done at once, and [`Driver::go_on`] then finds that A's first work can be done, and the second.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::time::{Duration, Instant};

use crate::c::{Done, Handle, In, Out, api, per_thread};
use crate::copy::{Copy, Set};
use crate::launch::Launch;
use crate::memory::Place;
use crate::state::{Driver, host_function, with};
use crate::status::{
    INVALID_HANDLE, INVALID_VALUE, LAUNCH_TIMEOUT, NOT_READY, STREAM_CAPTURE_UNSUPPORTED, Status,
};

/// A function of the host's program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HostCall {
    /// `CUhostFn`
    Function(extern "C" fn(*mut c_void)),
    /// `CUstreamCallback`, with its stream.
    Callback(extern "C" fn(Handle, c_int, *mut c_void), Handle),
}

/// What a stream does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Kernel(Launch),
    Copy(Copy),
    Set(Set),
    Host(HostCall, usize),
    /// An event, and which of its records this is.
    Record(Handle, u64),
    /// Until this record of the event is done.
    Wait(Handle, u64),
    /// Stores a value of so many bytes.
    Write([u64; 3]),
    /// Until a value of so many bytes compares, by the API's number of the comparison.
    WaitValue([u64; 3], c_uint),
    Free(u64),
    /// The nodes of a graph in an order that they may have.
    Graph(Vec<Work>),
    Nothing,
}

/// A capture that a stream takes part in.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    pub(crate) graph: Handle,
    /// What the next node depends on.
    pub(crate) after: Vec<Handle>,
    /// The stream in which it began.
    pub(crate) origin: Handle,
    pub(crate) id: u64,
}

/// A stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) context: Handle,
    flags: c_uint,
    priority: c_int,
    pub(crate) capture: Option<Capture>,
    waiting: VecDeque<Work>,
    /// The thread whose own stream it is.
    thread: Option<std::thread::ThreadId>,
    is_legacy: bool,
}

/// How long a call waits for a stream that waits.
const PATIENCE: Duration = Duration::from_mins(1);

impl Driver {
    /// The stream that a handle means to the current thread: 0 and 1 are the context's, 2 is the thread's own.
    pub(crate) fn resolve(&mut self, stream: Handle) -> Result<Handle, Status> {
        let own = stream == 2 || stream == 0 && per_thread();
        if stream > 2 {
            let known = self.streams.contains_key(&stream);
            return if known {
                Ok(stream)
            } else {
                Err(INVALID_HANDLE)
            };
        }
        let context = self.current()?.0;
        let thread = own.then(|| std::thread::current().id());
        let is = |s: &Stream| {
            s.context == context && s.is_legacy != own && s.thread == thread && (own || s.is_legacy)
        };
        if let Some((handle, _)) = self.streams.iter().find(|(_, s)| is(s)) {
            return Ok(*handle);
        }
        let handle = self.handle();
        let stream = Stream {
            context,
            thread,
            is_legacy: !own,
            ..Stream::default()
        };
        self.streams.insert(handle, stream);
        Ok(handle)
    }

    pub(crate) fn stream(&mut self, stream: Handle) -> Result<&mut Stream, Status> {
        let handle = self.resolve(stream)?;
        self.streams.get_mut(&handle).ok_or(INVALID_HANDLE)
    }

    /// Gives a stream work; whether it is done.
    fn submit(&mut self, stream: Handle, work: Work) -> Result<bool, Status> {
        let handle = self.resolve(stream)?;
        let stream = self.stream(handle)?;
        if stream.capture.is_some() {
            self.capture(handle, work)?;
            return Ok(true);
        }
        if !stream.waiting.is_empty() {
            stream.waiting.push_back(work);
            return Ok(false);
        }
        self.alive()?;
        if !self.perform(&work)? {
            self.stream(handle)?.waiting.push_back(work);
            return Ok(false);
        }
        self.go_on();
        Ok(true)
    }

    /// Does what streams that waited can do by now.
    fn go_on(&mut self) {
        loop {
            let mut done = false;
            let waiting: Vec<Handle> = self
                .streams
                .iter()
                .filter(|(_, s)| !s.waiting.is_empty())
                .map(|(h, _)| *h)
                .collect();
            for handle in waiting {
                while let Some(first) = self
                    .streams
                    .get(&handle)
                    .and_then(|s| s.waiting.front())
                    .cloned()
                {
                    // What goes wrong now has nobody to be told to but those who wait.
                    if !self.perform(&first).unwrap_or(true) {
                        break;
                    }
                    done = true;
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.waiting.pop_front();
                    }
                }
            }
            if !done {
                return;
            }
        }
    }

    /// Does a piece of work, unless it has to wait.
    fn perform(&mut self, work: &Work) -> Result<bool, Status> {
        match work {
            Work::Kernel(launch) => self.launch(launch)?,
            Work::Copy(copy) => self.copy(copy)?,
            Work::Set(set) => self.set(set)?,
            Work::Host(call, data) => {
                let data = std::ptr::with_exposed_provenance_mut(*data);
                host_function(|| match call {
                    HostCall::Function(call) => call(data),
                    HostCall::Callback(call, stream) => call(*stream, 0, data),
                });
            }
            Work::Record(event, record) => {
                if let Some(event) = self.events.get_mut(event) {
                    event.happen(*record);
                }
            }
            Work::Wait(event, record) => {
                let event = self.events.get(event);
                return Ok(event.is_none_or(|e| e.has_happened(*record)));
            }
            Work::Write([address, value, bytes]) => {
                let bytes = &value.to_le_bytes()[..*bytes as usize];
                self.memory
                    .write(*address, bytes)
                    .map_err(|_| INVALID_VALUE)?;
            }
            Work::WaitValue([address, value, bytes], how) => {
                let found = self
                    .memory
                    .read(*address, *bytes as usize)
                    .map_err(|_| INVALID_VALUE)?;
                let mut word = [0; 8];
                word[..found.len()].copy_from_slice(&found);
                return Ok(compares(u64::from_le_bytes(word), *value, *bytes, *how));
            }
            Work::Free(address) => self.release(*address, &[Place::Device, Place::Managed])?,
            Work::Graph(nodes) => {
                for node in nodes {
                    if !self.perform(node)? {
                        return Err(crate::status::NOT_SUPPORTED);
                    }
                }
            }
            Work::Nothing => {}
        }
        Ok(true)
    }

    /// Whether a stream, or one of all, still waits.
    fn waits(&self, stream: Option<Handle>) -> bool {
        let of = |(handle, s): (&Handle, &Stream)| {
            stream.is_none_or(|h| h == *handle) && !s.waiting.is_empty()
        };
        self.streams.iter().any(of)
    }

    /// Whether a stream of the process is captured.
    fn captures(&self) -> bool {
        self.streams.values().any(|s| s.capture.is_some())
    }
}

/// Whether a value in memory is what a stream waits for: at least, equal, a common bit, a bit in neither.
fn compares(found: u64, value: u64, bytes: u64, how: c_uint) -> bool {
    let shift = 64 - 8 * bytes;
    match how & 7 {
        0 => (found.wrapping_sub(value) << shift) as i64 >= 0,
        1 => found == value,
        2 => found & value != 0,
        _ => !(found | value) << shift != 0,
    }
}

/// Gives a stream work.
pub(crate) fn submit(stream: Handle, work: Work) -> Done {
    with(|d| d.submit(stream, work).map(|_| ()))
}

/// Gives the default stream work and waits for its end.
pub(crate) fn submit_now(work: Work) -> Done {
    let (stream, done) = with(|d| {
        let stream = d.resolve(0)?;
        Ok((stream, d.submit(stream, work)?))
    })?;
    if done {
        return with(|d| d.alive().map(|_| ()));
    }
    wait(Some(stream))
}

/// Waits for a stream, or for all; the answer is what has gone wrong in the context.
fn wait(stream: Option<Handle>) -> Done {
    let start = Instant::now();
    loop {
        let ready = with(|d| {
            d.go_on();
            d.alive()?;
            Ok(!d.waits(stream))
        })?;
        if ready {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            eprintln!(
                "tilewright: a stream waits for a value that nothing has written for {} s",
                PATIENCE.as_secs()
            );
            return Err(LAUNCH_TIMEOUT);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for all streams.
pub(crate) fn wait_for_all() -> Done {
    if with(|d| Ok(d.captures()))? {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    wait(None)
}

/// Waits until a record of an event is done.
pub(crate) fn wait_for_event(event: Handle) -> Done {
    let start = Instant::now();
    loop {
        let ready = with(|d| {
            d.go_on();
            d.alive()?;
            Ok(d.events.get(&event).ok_or(INVALID_HANDLE)?.is_done())
        })?;
        if ready {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(LAUNCH_TIMEOUT);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn create(out: Out<Handle>, flags: c_uint, priority: c_int) -> Done {
    with(|d| {
        let context = d.alive()?;
        let handle = d.handle();
        out.set(handle)?;
        d.streams.insert(
            handle,
            Stream {
                context,
                flags,
                priority,
                ..Stream::default()
            },
        );
        Ok(())
    })
}

fn value(stream: Handle, address: u64, value: u64, bytes: u64, how: Option<c_uint>) -> Done {
    let place = [address, value, bytes];
    submit(
        stream,
        how.map_or(Work::Write(place), |how| Work::WaitValue(place, how)),
    )
}

api! {
    fn cuStreamCreate(out: Out<Handle>, flags: c_uint) {
        create(out, flags, 0)
    }

    fn cuStreamCreateWithPriority(out: Out<Handle>, flags: c_uint, priority: c_int) {
        create(out, flags, priority.clamp(-5, 0))
    }

    fn cuStreamDestroy_v2(stream: Handle) as cuStreamDestroy {
        with(|d| {
            if stream <= 2 {
                return Err(INVALID_HANDLE);
            }
            d.go_on();
            // What it waits for is forgotten with it.
            d.streams.remove(&stream).map(|_| ()).ok_or(INVALID_HANDLE)
        })
    }

    fn cuStreamSynchronize(stream: Handle) as cuStreamSynchronize_ptsz {
        let handle = with(|d| {
            let handle = d.resolve(stream)?;
            if d.stream(handle)?.capture.is_some() {
                return Err(STREAM_CAPTURE_UNSUPPORTED);
            }
            Ok(handle)
        })?;
        wait(Some(handle))
    }

    fn cuStreamQuery(stream: Handle) as cuStreamQuery_ptsz {
        with(|d| {
            let handle = d.resolve(stream)?;
            if d.stream(handle)?.capture.is_some() {
                return Err(STREAM_CAPTURE_UNSUPPORTED);
            }
            d.go_on();
            d.alive()?;
            if d.waits(Some(handle)) { Err(NOT_READY) } else { Ok(()) }
        })
    }

    fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) as cuStreamGetFlags_ptsz {
        with(|d| flags.set(d.stream(stream)?.flags))
    }

    fn cuStreamGetPriority(stream: Handle, priority: Out<c_int>) as cuStreamGetPriority_ptsz {
        with(|d| priority.set(d.stream(stream)?.priority))
    }

    fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) as cuStreamGetCtx_ptsz {
        with(|d| context.set(d.stream(stream)?.context))
    }

    fn cuStreamGetCtx_v2(stream: Handle, context: Out<Handle>, green: Out<Handle>) as cuStreamGetCtx_v2_ptsz {
        green.set_if_wanted(0);
        with(|d| context.set(d.stream(stream)?.context))
    }

    fn cuStreamGetId(stream: Handle, id: Out<u64>) as cuStreamGetId_ptsz {
        with(|d| id.set(d.resolve(stream)? as u64))
    }

    fn cuStreamGetDevice(stream: Handle, device: Out<c_int>) as cuStreamGetDevice_ptsz {
        with(|d| {
            let context = d.stream(stream)?.context;
            device.set(d.context(context)?.1.device)
        })
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) as cuStreamWaitEvent_ptsz {
        with(|d| {
            let found = d.events.get(&event).ok_or(INVALID_HANDLE)?;
            if let Some((graph, nodes)) = found.captured.clone() {
                return d.join(stream, graph, &nodes);
            }
            let last = found.last();
            if d.stream(stream)?.capture.is_some() {
                return Err(crate::status::STREAM_CAPTURE_UNSUPPORTED);
            }
            d.submit(stream, Work::Wait(event, last)).map(|_| ())
        })
    }

    fn cuStreamAddCallback(stream: Handle, call: Option<extern "C" fn(Handle, c_int, *mut c_void)>, data: *mut c_void, _flags: c_uint) as cuStreamAddCallback_ptsz {
        let call = HostCall::Callback(call.ok_or(INVALID_VALUE)?, stream);
        submit(stream, Work::Host(call, data.expose_provenance()))
    }

    fn cuLaunchHostFunc(stream: Handle, call: Option<extern "C" fn(*mut c_void)>, data: *mut c_void) as cuLaunchHostFunc_ptsz {
        let call = HostCall::Function(call.ok_or(INVALID_VALUE)?);
        submit(stream, Work::Host(call, data.expose_provenance()))
    }

    fn cuStreamAttachMemAsync(stream: Handle, _address: u64, _bytes: usize, _flags: c_uint) as cuStreamAttachMemAsync_ptsz {
        with(|d| d.stream(stream).map(|_| ()))
    }

    fn cuStreamCopyAttributes(to: Handle, from: Handle) as cuStreamCopyAttributes_ptsz {
        with(|d| {
            d.stream(from)?;
            d.stream(to).map(|_| ())
        })
    }

    fn cuStreamSetAttribute(stream: Handle, _attribute: c_int, _value: In<u8>) as cuStreamSetAttribute_ptsz {
        with(|d| d.stream(stream).map(|_| ()))
    }

    fn cuStreamGetAttribute(stream: Handle, _attribute: c_int, value: Out<[u8; 64]>) as cuStreamGetAttribute_ptsz {
        with(|d| d.stream(stream).map(|_| ()))?;
        value.set([0; 64])
    }

    fn cuStreamWriteValue32_v2(stream: Handle, address: u64, word: u32, _flags: c_uint) as cuStreamWriteValue32 as cuStreamWriteValue32_ptsz as cuStreamWriteValue32_v2_ptsz {
        value(stream, address, word.into(), 4, None)
    }

    fn cuStreamWriteValue64_v2(stream: Handle, address: u64, word: u64, _flags: c_uint) as cuStreamWriteValue64 as cuStreamWriteValue64_ptsz as cuStreamWriteValue64_v2_ptsz {
        value(stream, address, word, 8, None)
    }

    fn cuStreamWaitValue32_v2(stream: Handle, address: u64, word: u32, flags: c_uint) as cuStreamWaitValue32 as cuStreamWaitValue32_ptsz as cuStreamWaitValue32_v2_ptsz {
        value(stream, address, word.into(), 4, Some(flags))
    }

    fn cuStreamWaitValue64_v2(stream: Handle, address: u64, word: u64, flags: c_uint) as cuStreamWaitValue64 as cuStreamWaitValue64_ptsz as cuStreamWaitValue64_v2_ptsz {
        value(stream, address, word, 8, Some(flags))
    }
}
