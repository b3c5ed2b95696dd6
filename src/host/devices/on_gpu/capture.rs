//! A program as one CUDA graph over all devices.
//!
//! Operations are captured from the program's streams in the program's order. A flag is an event: recorded where it is set, awaited where it is waited for, which the
//! proof puts behind. Nothing of a run is left to the host, so that a run takes one call of the driver, and the driver knows every dependency: it may put work of
//! different streams into one queue without a deadlock ([`Graph`]).

use std::cell::Cell;

use tilewright_gpu::nccl::Nccl;
use tilewright_gpu::{Buffer, Event, GpuError, Graph, Pitched, Stream};
use tilewright_kernels::devices::{Action, Op, Program, Region};

use super::{Ready, at};
use crate::host::devices::collective::enqueue;
use crate::host::devices::storage::Span;
use crate::host::devices::{DeviceGemm, DevicesRunError};

/// What a program runs on.
pub(super) struct Placed<'a> {
    pub(super) product: &'a DeviceGemm,
    pub(super) buffers: &'a [Buffer],
    pub(super) jobs: &'a [Option<Ready>],
    /// Of each device, its streams.
    pub(super) streams: &'a [Vec<Stream>],
    /// None while a graph is captured: one thread would wait in the first rank's part of a collective.
    pub(super) nccl: Option<&'a Nccl>,
}

impl Placed<'_> {
    /// Captures the program. The buffers and kernels must live as long as the graph is launched.
    pub(super) fn capture(&self) -> Result<Graph, DevicesRunError> {
        let streams: Vec<&Stream> = self.streams.iter().flatten().collect();
        let device = Cell::new(0);
        // SAFETY: `Kept` has the graph, and all that it uses; the streams are new and used for nothing else.
        let captured = unsafe { Graph::capture(&streams, || self.enqueue(None, &device)) };
        captured.map_err(at(device.get()))
    }

    /// Enqueues one device's operations of a program that [needs no graph](ordered_by_collectives). Each device has a thread for it.
    pub(super) fn enqueue_device(&self, device: usize) -> Result<(), DevicesRunError> {
        let enqueued = self.enqueue(Some(device), &Cell::new(device));
        enqueued.map_err(at(device))
    }

    /// Enqueues every operation, or those of one device; `device` is that of the latest.
    fn enqueue(&self, only: Option<usize>, device: &Cell<usize>) -> Result<(), GpuError> {
        let program = &self.product.program;
        let mut flags: Vec<Option<Event>> = Vec::new();
        flags.resize_with(program.flags, || None);
        for (index, op) in program.ops.iter().enumerate() {
            if only.is_some_and(|only| only != op.device) {
                continue;
            }
            device.set(op.device);
            let stream = &self.streams[op.device][op.stream];
            match &op.action {
                Action::Set(flag) => flags[*flag] = Some(stream.record()?),
                Action::Wait(flag) => match &flags[*flag] {
                    Some(event) => stream.wait(event)?,
                    None => {
                        return Err(GpuError::Invalid {
                            what: format!("{op}: nothing has set the flag"),
                        });
                    }
                },
                Action::Copy { from, to } => self.copy(stream, from, to)?,
                Action::Product(_) => {
                    if let Some((loaded, args)) = &self.jobs[index] {
                        loaded.run_on(stream, args)?;
                    }
                }
                Action::Collective(part) => {
                    let nccl = self.nccl.ok_or_else(|| GpuError::Invalid {
                        what: format!("{op}: on GPUs, collectives stand in programs of one stream a device, without copies and flags"),
                    })?;
                    let address = |buffer: usize| self.buffers[buffer].address();
                    let rank = (nccl, op.device);
                    // SAFETY: the buffers live as long as what is enqueued (`Kept`); a thread for each rank calls.
                    unsafe { enqueue(part, &self.product.storage, address, rank, stream)? }
                }
            }
        }
        Ok(())
    }

    fn copy(&self, stream: &Stream, from: &Region, to: &Region) -> Result<(), GpuError> {
        let storage = &self.product.storage;
        let source = storage[from.buffer].span(&from.block);
        let target = storage[to.buffer].span(&to.block);
        let place = |region: &Region, span: Span| Pitched {
            address: self.buffers[region.buffer].address() + span.offset as u64,
            pitch: span.pitch,
        };
        // Where rows are whole on both sides their padding goes along, which makes one run of bytes of the block.
        let whole = |region: &Region| storage[region.buffer].has_whole_rows(&region.block);
        let width = if source.pitch == target.pitch && whole(from) && whole(to) {
            source.pitch
        } else {
            source.width
        };
        // SAFETY: both blocks lie in buffers that live as long as the graph (`Kept`); the program is proven: whatever else
        // uses the elements is ordered with this copy. Padding belongs to no block.
        unsafe { stream.copy(place(to, target), place(from, source), width, source.rows) }
    }
}

/// Whether a program needs no graph: each device has one stream, which touches only its own memory, and data passes between devices only in collectives,
/// which all devices reach in the same order. Runs then follow each other without a barrier, and NCCL's kernels wait for each other on the GPUs.
pub(super) fn ordered_by_collectives(program: &Program) -> bool {
    let own = |op: &Op| matches!(op.action, Action::Collective(_) | Action::Product(_));
    program.streams == 1 && program.reaching().is_none() && program.ops.iter().all(own)
}
