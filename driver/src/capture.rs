//! Capture: what streams would do becomes a graph.
//!
//! A capture begins in one stream. Another joins it when it waits for an event that was recorded in it, and must be joined back, by an event the other way, before the
//! first one ends it. Until then each stream of the capture remembers which nodes its next one comes after.

use std::collections::HashSet;
use std::ffi::{c_int, c_uint};

use crate::c::{Done, Handle, In, Out, api};
use crate::state::{Driver, with};
use crate::status::{
    CAPTURED_EVENT, ILLEGAL_STATE, STREAM_CAPTURE_MERGE, STREAM_CAPTURE_UNJOINED,
    STREAM_CAPTURE_UNMATCHED, STREAM_CAPTURE_UNSUPPORTED, Status,
};
use crate::stream::{Capture, Work};

impl Driver {
    /// Makes work of a stream that is captured a node.
    pub(crate) fn capture(&mut self, stream: Handle, work: Work) -> Done {
        let capture = self
            .stream(stream)?
            .capture
            .clone()
            .ok_or(STREAM_CAPTURE_UNSUPPORTED)?;
        let node = self.add_node(capture.graph, capture.after, work)?;
        if let Some(capture) = &mut self.stream(stream)?.capture {
            capture.after = vec![node];
        }
        Ok(())
    }

    /// A stream waits for nodes of a capture, and takes part in it from then on.
    pub(crate) fn join(&mut self, stream: Handle, graph: Handle, nodes: &[Handle]) -> Done {
        let own = self.streams.values().filter_map(|s| s.capture.as_ref());
        let capture = own.clone().find(|c| c.graph == graph).cloned();
        let capture = capture.ok_or(CAPTURED_EVENT)?;
        match &mut self.stream(stream)?.capture {
            Some(own) if own.graph != graph => return Err(STREAM_CAPTURE_MERGE),
            Some(own) => {
                own.after.extend_from_slice(nodes);
                own.after.sort_unstable();
                own.after.dedup();
            }
            none => {
                *none = Some(Capture {
                    after: nodes.to_vec(),
                    ..capture
                });
            }
        }
        Ok(())
    }

    fn begin(&mut self, stream: Handle, graph: Option<Handle>, after: Vec<Handle>) -> Done {
        let handle = self.resolve(stream)?;
        // The default stream of a context cannot be captured.
        if stream == 1 || stream == 0 && !crate::c::per_thread() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.stream(handle)?.capture.is_some() {
            return Err(ILLEGAL_STATE);
        }
        let (graph, id) = (graph.unwrap_or_else(|| self.handle()), self.handle() as u64);
        self.graphs.entry(graph).or_default();
        self.stream(handle)?.capture = Some(Capture {
            graph,
            after,
            origin: handle,
            id,
        });
        Ok(())
    }

    /// Ends a capture: the streams that have joined leave it.
    fn end(&mut self, stream: Handle) -> Result<Handle, Status> {
        let handle = self.resolve(stream)?;
        let capture = self.stream(handle)?.capture.clone().ok_or(ILLEGAL_STATE)?;
        if capture.origin != handle {
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        // What lies before the end of the origin is joined.
        let (mut before, mut next) = (HashSet::new(), capture.after.clone());
        while let Some(node) = next.pop() {
            if before.insert(node) {
                next.extend_from_slice(&self.node(node)?.after);
            }
        }
        let mut joined = true;
        for other in self.streams.values_mut() {
            if let Some(c) = other.capture.take_if(|c| c.graph == capture.graph) {
                joined &= c.after.iter().all(|node| before.contains(node));
            }
        }
        if joined {
            Ok(capture.graph)
        } else {
            Err(STREAM_CAPTURE_UNJOINED)
        }
    }
}

fn capture_info(
    stream: Handle,
    status: Out<c_int>,
    id: Out<u64>,
    graph: Out<Handle>,
    after: Out<*const Handle>,
    count: Out<usize>,
) -> Done {
    with(|d| {
        let capture = d.stream(stream)?.capture.as_ref();
        status.set(c_int::from(capture.is_some()))?;
        if let Some(capture) = capture {
            id.set_if_wanted(capture.id);
            graph.set_if_wanted(capture.graph);
            after.set_if_wanted(capture.after.as_ptr());
            count.set_if_wanted(capture.after.len());
        }
        Ok(())
    })
}

fn update_capture(stream: Handle, after: In<Handle>, count: usize, flags: c_uint) -> Done {
    with(|d| {
        let after = after.list(count)?;
        let capture = d.stream(stream)?.capture.as_mut().ok_or(ILLEGAL_STATE)?;
        if flags == 0 {
            capture.after.extend(after);
        } else {
            capture.after = after;
        }
        Ok(())
    })
}

api! {
    fn cuStreamBeginCapture_v2(stream: Handle, _mode: c_int) as cuStreamBeginCapture_v2_ptsz {
        with(|d| d.begin(stream, None, Vec::new()))
    }

    fn cuStreamBeginCapture(stream: Handle) as cuStreamBeginCapture_ptsz {
        with(|d| d.begin(stream, None, Vec::new()))
    }

    fn cuStreamBeginCaptureToGraph(stream: Handle, graph: Handle, after: In<Handle>, _data: In<u8>, count: usize, _mode: c_int) as cuStreamBeginCaptureToGraph_ptsz {
        with(|d| d.begin(stream, Some(graph), after.list(count)?))
    }

    fn cuStreamEndCapture(stream: Handle, graph: Out<Handle>) as cuStreamEndCapture_ptsz {
        with(|d| {
            graph.set_if_wanted(0);
            graph.set(d.end(stream)?)
        })
    }

    fn cuStreamIsCapturing(stream: Handle, status: Out<c_int>) as cuStreamIsCapturing_ptsz {
        with(|d| status.set(c_int::from(d.stream(stream)?.capture.is_some())))
    }

    fn cuStreamGetCaptureInfo(stream: Handle, status: Out<c_int>, id: Out<u64>) as cuStreamGetCaptureInfo_ptsz {
        capture_info(stream, status, id, Out::none(), Out::none(), Out::none())
    }

    fn cuStreamGetCaptureInfo_v2(stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, after: Out<*const Handle>, count: Out<usize>) as cuStreamGetCaptureInfo_v2_ptsz {
        capture_info(stream, status, id, graph, after, count)
    }

    fn cuStreamGetCaptureInfo_v3(stream: Handle, status: Out<c_int>, id: Out<u64>, graph: Out<Handle>, after: Out<*const Handle>, data: Out<*const u8>, count: Out<usize>) as cuStreamGetCaptureInfo_v3_ptsz {
        data.set_if_wanted(std::ptr::null());
        capture_info(stream, status, id, graph, after, count)
    }

    fn cuStreamUpdateCaptureDependencies(stream: Handle, after: In<Handle>, count: usize, flags: c_uint) as cuStreamUpdateCaptureDependencies_ptsz {
        update_capture(stream, after, count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2(stream: Handle, after: In<Handle>, _data: In<u8>, count: usize, flags: c_uint) as cuStreamUpdateCaptureDependencies_v2_ptsz {
        update_capture(stream, after, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode(_mode: Out<c_int>) {
        Ok(())
    }
}
