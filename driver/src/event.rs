//! Events. Times are of the host's clock when the work before them was done.

use std::ffi::c_uint;
use std::time::Instant;

use crate::c::{Done, Handle, Out, api};
use crate::state::with;
use crate::status::{CAPTURED_EVENT, INVALID_HANDLE, NOT_READY};
use crate::stream::{Work, submit, wait_for_event};

/// An event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    flags: c_uint,
    /// Records that were asked for, and those that are done.
    records: u64,
    done: u64,
    at: Option<Instant>,
    /// Recorded in a capture: the graph, and the nodes that it stands for.
    pub(crate) captured: Option<(Handle, Vec<Handle>)>,
}

/// No time is kept.
const DISABLE_TIMING: c_uint = 2;

impl Event {
    /// The record with this number is done.
    pub(crate) fn happen(&mut self, record: u64) {
        self.done = self.done.max(record);
        self.at = Some(Instant::now());
    }

    pub(crate) fn has_happened(&self, record: u64) -> bool {
        self.done >= record
    }

    pub(crate) fn is_done(&self) -> bool {
        self.has_happened(self.records)
    }

    /// The number of the last record.
    pub(crate) fn last(&self) -> u64 {
        self.records
    }
}

fn record(event: Handle, stream: Handle) -> Done {
    let number = with(|d| {
        let capture = d.stream(stream)?.capture.clone();
        let found = d.events.get_mut(&event).ok_or(INVALID_HANDLE)?;
        if let Some(capture) = capture {
            found.captured = Some((capture.graph, capture.after));
            return Ok(None);
        }
        found.captured = None;
        found.records += 1;
        Ok(Some(found.records))
    })?;
    number.map_or(Ok(()), |number| submit(stream, Work::Record(event, number)))
}

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Done {
    with(|d| {
        d.alive()?;
        let time = |event: Handle| {
            let event = d.events.get(&event).ok_or(INVALID_HANDLE)?;
            if event.captured.is_some() {
                return Err(CAPTURED_EVENT);
            }
            if event.flags & DISABLE_TIMING != 0 || event.records == 0 {
                return Err(INVALID_HANDLE);
            }
            let done = event.is_done();
            event.at.filter(|_| done).ok_or(NOT_READY)
        };
        let (start, end) = (time(start)?, time(end)?);
        let seconds = if end >= start {
            (end - start).as_secs_f64()
        } else {
            -(start - end).as_secs_f64()
        };
        milliseconds.set((seconds * 1e3) as f32)
    })
}

api! {
    fn cuEventCreate(out: Out<Handle>, flags: c_uint) {
        with(|d| {
            d.alive()?;
            let handle = d.handle();
            d.events.insert(handle, Event { flags, ..Event::default() });
            out.set(handle)
        })
    }

    fn cuEventDestroy_v2(event: Handle) as cuEventDestroy {
        with(|d| d.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE))
    }

    fn cuEventRecord(event: Handle, stream: Handle) as cuEventRecord_ptsz {
        record(event, stream)
    }

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, _flags: c_uint) as cuEventRecordWithFlags_ptsz {
        record(event, stream)
    }

    fn cuEventQuery(event: Handle) {
        with(|d| {
            d.alive()?;
            let event = d.events.get(&event).ok_or(INVALID_HANDLE)?;
            match (&event.captured, event.is_done()) {
                (Some(_), _) => Err(CAPTURED_EVENT),
                (None, true) => Ok(()),
                (None, false) => Err(NOT_READY),
            }
        })
    }

    fn cuEventSynchronize(event: Handle) {
        with(|d| {
            let event = d.events.get(&event).ok_or(INVALID_HANDLE)?;
            if event.captured.is_some() { Err(CAPTURED_EVENT) } else { Ok(()) }
        })?;
        wait_for_event(event)
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }
}
