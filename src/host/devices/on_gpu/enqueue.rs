//! What one run of a program enqueues on a device.
//!
//! Each call of the driver takes some microseconds of the host, and a small product is over in as many. So operations on flags that follow each other
//! on a stream go to the driver together: one of two devices makes 7 calls a run instead of 14, the barrier behind the run included.

use layout_codegen::devices::{Action, Op, Program, Region};
use tilewright_gpu::nccl::Nccl;
use tilewright_gpu::{FlagOperation, GpuError, Pitched, Stream};

use super::{Kept, Session};
use crate::host::devices::collective::enqueue;
use crate::host::devices::storage::Span;

/// Flags of a device's barrier, behind those of the program: `DONE`, `GO`, and one for each stream.
const DONE: usize = 0;
const GO: usize = 1;
const JOIN: usize = 2;

/// How many flags a device's barrier has.
pub(super) fn barrier_flags(program: &Program) -> usize {
    JOIN + program.streams
}

/// The streams of a device, with the operations on flags that each has yet to get.
struct Streams<'k> {
    streams: &'k [Stream],
    waiting: Vec<Vec<FlagOperation<'k>>>,
}

impl<'k> Streams<'k> {
    fn new(streams: &'k [Stream]) -> Self {
        Self {
            streams,
            waiting: vec![Vec::new(); streams.len()],
        }
    }

    fn flag(&mut self, stream: usize, operation: FlagOperation<'k>) {
        self.waiting[stream].push(operation);
    }

    /// A stream that has got everything, for work that comes behind.
    fn ready(&mut self, stream: usize) -> Result<&'k Stream, GpuError> {
        let to = &self.streams[stream];
        to.flag_operations(&self.waiting[stream])?;
        self.waiting[stream].clear();
        Ok(to)
    }
}

impl Session<'_> {
    /// Enqueues a device's operations, and its part of the barrier.
    pub(super) fn enqueue_device(
        &self,
        kept: &Kept,
        (device, nccl): (usize, Option<&Nccl>),
        value: u32,
    ) -> Result<(), GpuError> {
        let program = &self.product.program;
        let mut streams = Streams::new(&kept.streams[device]);
        let flag = |flag: usize| {
            let (home, number) = kept.homes[flag];
            (&kept.flags[home], number)
        };
        for (index, op) in program.ops.iter().enumerate() {
            if op.device != device {
                continue;
            }
            match &op.action {
                Action::Set(set) => {
                    let (flags, number) = flag(*set);
                    streams.flag(op.stream, FlagOperation::Set(flags, number, value));
                }
                Action::Wait(awaited) => {
                    let (flags, number) = flag(*awaited);
                    streams.flag(op.stream, FlagOperation::Wait(flags, number, value));
                }
                Action::Copy { from, to } => {
                    self.copy(kept, streams.ready(op.stream)?, from, to)?;
                }
                Action::Collective(part) => {
                    let stream = streams.ready(op.stream)?;
                    let nccl = nccl.ok_or_else(|| GpuError::Invalid {
                        what: "a collective needs NCCL".to_owned(),
                    })?;
                    let address = |buffer: usize| kept.buffers[buffer].address();
                    // SAFETY: the buffers are the session's, which live until the run has ended; a thread for each rank calls.
                    unsafe {
                        enqueue(part, &self.product.storage, address, (nccl, device), stream)?;
                    }
                }
                Action::Product(_) => {
                    if let Some((loaded, args)) = &kept.jobs[index] {
                        loaded.run_on(streams.ready(op.stream)?, args)?;
                    }
                }
            }
        }
        if !ordered_by_collectives(program) {
            barrier(&mut streams, kept, device, value);
        }
        // Stream 0 comes last: it waits for the others.
        (0..kept.streams[device].len())
            .rev()
            .try_for_each(|stream| streams.ready(stream).map(drop))
    }

    fn copy(
        &self,
        kept: &Kept,
        stream: &Stream,
        from: &Region,
        to: &Region,
    ) -> Result<(), GpuError> {
        let storage = &self.product.storage;
        let source = storage[from.buffer].span(&from.block);
        let target = storage[to.buffer].span(&to.block);
        let place = |region: &Region, span: Span| Pitched {
            address: kept.buffers[region.buffer].address() + span.offset as u64,
            pitch: span.pitch,
        };
        // Where rows are whole on both sides their padding goes along, which makes one run of bytes of the block.
        let whole = |region: &Region| storage[region.buffer].has_whole_rows(&region.block);
        let width = if source.pitch == target.pitch && whole(from) && whole(to) {
            source.pitch
        } else {
            source.width
        };
        // SAFETY: both blocks lie in buffers of the session, which live until the run has ended (`Kept`); the program is proven: whatever else
        // uses the elements is ordered with this copy. Padding belongs to no block.
        unsafe { stream.copy(place(to, target), place(from, source), width, source.rows) }
    }
}

/// Whether a run may begin on a device before the previous one has ended on the others: each device has one stream, which touches only its own memory, and
/// data passes between devices only in collectives, which all devices reach in the same order.
fn ordered_by_collectives(program: &Program) -> bool {
    let own = |op: &Op| matches!(op.action, Action::Collective(_) | Action::Product(_));
    program.streams == 1 && program.ops.iter().all(own)
}

/// No stream of this device goes on before all devices have come here.
fn barrier<'k>(streams: &mut Streams<'k>, kept: &'k Kept, device: usize, value: u32) {
    let first = |device: usize| {
        let homes = kept.homes.iter();
        homes.filter(|(home, _)| *home == device).count()
    };
    let (flags, own) = (&kept.flags[device], first(device));
    for stream in 1..streams.streams.len() {
        let join = own + JOIN + stream;
        streams.flag(stream, FlagOperation::Set(flags, join, value));
        streams.flag(stream, FlagOperation::Wait(flags, own + GO, value));
        streams.flag(0, FlagOperation::Wait(flags, join, value));
    }
    streams.flag(0, FlagOperation::Set(flags, own + DONE, value));
    for other in (0..kept.streams.len()).filter(|&other| other != device) {
        let done = first(other) + DONE;
        streams.flag(0, FlagOperation::Wait(&kept.flags[other], done, value));
    }
    streams.flag(0, FlagOperation::Set(flags, own + GO, value));
}

/// The device whose memory has each flag: that of the first stream that waits for it.
pub(super) fn homes(program: &Program) -> Vec<usize> {
    let mut homes = vec![0; program.flags];
    let mut found = vec![false; program.flags];
    for op in &program.ops {
        if let Action::Wait(flag) = op.action
            && !found[flag]
        {
            (homes[flag], found[flag]) = (op.device, true);
        }
    }
    homes
}
