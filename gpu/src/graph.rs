//! Work on the streams of one or several GPUs, captured once and launched as a whole: a CUDA graph.
//!
//! Streams order each other by events ([`Stream::wait`]), so the driver knows every dependency, across GPUs too. Stream memory operations
//! (`cuStreamWaitValue32`) would order them without its knowledge, and then it may queue work behind a wait that this very work must end: on four H100s
//! (driver 580.159.04) all copies that leave a GPU for others share one queue, so that one copy behind such a wait holds up every other.
//! A launch is one call of the driver, however many GPUs and operations the graph has, and launches on one stream run one after the other.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::device::Context;
use crate::driver::check;
use crate::error::GpuError;
use crate::timing::Stream;

/// Work that was captured from streams and is ready to be launched.
#[derive(Debug)]
pub struct Graph {
    context: Arc<Context>,
    /// The driver wants launches of one graph one at a time.
    raw: Mutex<Handle>,
}

#[derive(Debug)]
struct Handle(CUgraphExec);

// SAFETY: a graph handle may be used from any thread, by one at a time.
unsafe impl Send for Handle {}

/// A graph that is not ready for launches yet.
struct Captured(CUgraph);

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: created once. An error has nobody left to tell.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

impl Graph {
    /// Captures what `work` enqueues on `streams`, of any GPUs, instead of running it. All streams begin together, and a launch has ended when all have.
    ///
    /// # Safety
    ///
    /// Whatever the captured work uses (memory, kernels) must live until the last launch has run. Until this returns, nothing else may be enqueued on
    /// these streams or on a default stream of their GPUs.
    ///
    /// # Errors
    ///
    /// What `work` returns, [`GpuError::Invalid`] without streams, or a failure of the driver: `work` waited for the GPU, say.
    pub unsafe fn capture<E: From<GpuError>>(
        streams: &[&Stream],
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        let [first, others @ ..] = streams else {
            return Err(GpuError::invalid("a graph is captured from one stream or more").into());
        };
        first.bind()?;
        // SAFETY: the stream lives, and its context is current.
        check("cuStreamBeginCapture", unsafe {
            sys::cuStreamBeginCapture_v2(
                first.raw(),
                CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
            )
        })?;
        let done = between(first, others, work);
        let mut graph = Captured(std::ptr::null_mut());
        first.bind()?;
        // SAFETY: the stream is being captured; the handle goes to a local variable.
        let ended = check("cuStreamEndCapture", unsafe {
            sys::cuStreamEndCapture(first.raw(), &raw mut graph.0)
        });
        done?;
        ended?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the graph lives; the handle goes to a local variable.
        check("cuGraphInstantiate", unsafe {
            sys::cuGraphInstantiateWithFlags(&raw mut raw, graph.0, 0)
        })?;
        Ok(Self {
            context: first.context().clone(),
            raw: Mutex::new(Handle(raw)),
        })
    }

    /// Enqueues the graph on a stream of the GPU whose stream was captured first, behind everything that the stream has to do already.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        stream.bind()?;
        let graph = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles live; what the graph uses does by the promise to `capture`.
        check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(graph.0, stream.raw())
        })
    }
}

/// Does the work behind a fork of all streams from the first, and joins them to it.
fn between<E: From<GpuError>>(
    first: &Stream,
    others: &[&Stream],
    work: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let begun = first.record()?;
    for stream in others {
        stream.wait(&begun)?;
    }
    work()?;
    for stream in others {
        first.wait(&stream.record()?)?;
    }
    Ok(())
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            let raw = self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: created once; launches that run complete. An error has nobody left to tell.
            let _ = unsafe { sys::cuGraphExecDestroy(raw.0) };
        }
    }
}
