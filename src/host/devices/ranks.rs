//! The same program with a process for each device, on one host or on many, over NCCL.
//!
//! Every process runs its device's part. A copy between devices is a send of one and a receive of the other, which NCCL pairs; both are enqueued on the
//! devices' copy streams in the order of the program, which is the same in all processes, so that no two ranks wait for each other. A flag that
//! the copying device waited for is, on the sending side, an event on its own stream: nothing is sent before it is there.
//!
//! Processes find each other by an address: rank 0 listens there and hands out NCCL's identity. Waits have a time limit here too.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::ops::Range;
use std::time::Duration;

use layout_core::devices::Block;
use tilewright_gpu::nccl::{Id, Nccl};
use tilewright_gpu::{Buffer, Deadline, Event, Gpu, GpuError, Pitched, Stream};
use tilewright_kernels::devices::{Action, DevicesError, Region};
use tilewright_kernels::gemm::{Bias, Gemm, Trans};

use super::collective::enqueue;
use super::on_gpu::{Ready, at, load, placed_error};
use super::storage::cut;
use super::{DeviceGemm, DevicesRun, DevicesRunError, OnDevices};
use crate::host::{Check, Inputs, Matrix, check};

/// One process of several that run a program together.
#[derive(Debug)]
pub struct Rank {
    gpu: Gpu,
    nccl: Nccl,
    /// Its number, which is that of the device in the program.
    number: usize,
}

/// What a process says first, so that a stranger's connection is not taken for a rank's.
const GREETING: [u8; 8] = *b"tilerank";

impl Rank {
    /// Joins `ranks` processes as number `rank`, with a GPU of this process: those that meet at `address`, where rank 0 listens. Waits for the others, at
    /// most `limit`.
    ///
    /// # Errors
    ///
    /// [`DevicesRunError::Meeting`] if the processes don't find each other in time, [`DevicesRunError::Gpu`] without NCCL or the GPU.
    pub fn join(
        gpu: Gpu,
        rank: usize,
        ranks: usize,
        address: &str,
        limit: Duration,
    ) -> Result<Self, DevicesRunError> {
        if rank >= ranks {
            return Err(DevicesRunError::DeviceCount {
                program: ranks,
                found: rank,
            });
        }
        let at = at(rank);
        let deadline = Deadline::after(limit);
        let id = if rank == 0 {
            let id = Id::new().map_err(&at)?;
            hand_out(address, &id, ranks - 1, deadline)?;
            id
        } else {
            fetch(address, rank, deadline)?
        };
        // NCCL waits for all ranks, however long: one that is lost by now must not hold this one for ever.
        let (send, connected) = std::sync::mpsc::channel();
        let own = gpu.clone();
        std::thread::spawn(move || send.send(Nccl::rank(&own, &id, rank, ranks)));
        let nccl = connected
            .recv_timeout(deadline.left())
            .map_err(|_| meeting(address, "NCCL has not connected all ranks in time"))?
            .map_err(at)?;
        Ok(Self {
            gpu,
            nccl,
            number: rank,
        })
    }
}

fn meeting(address: &str, reason: impl Into<String>) -> DevicesRunError {
    DevicesRunError::Meeting {
        address: address.to_owned(),
        reason: reason.into(),
    }
}

fn resolved(address: &str) -> Result<SocketAddr, DevicesRunError> {
    let mut found = address
        .to_socket_addrs()
        .map_err(|e| meeting(address, format!("{e}; give HOST:PORT")))?;
    found
        .next()
        .ok_or_else(|| meeting(address, "the name has no address; give HOST:PORT"))
}

/// Rank 0: gives the identity to everyone who asks, until all have it.
fn hand_out(
    address: &str,
    id: &Id,
    others: usize,
    deadline: Deadline,
) -> Result<(), DevicesRunError> {
    if others == 0 {
        return Ok(());
    }
    let wrong = |e: std::io::Error| meeting(address, e.to_string());
    let listener = TcpListener::bind(resolved(address)?).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    let mut served = 0;
    while served < others {
        if deadline.is_past() {
            return Err(meeting(
                address,
                format!("{served} of {others} other ranks came in time"),
            ));
        }
        match listener.accept() {
            Ok((mut stream, _)) => served += usize::from(serve(&mut stream, id).is_ok()),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => return Err(wrong(e)),
        }
    }
    Ok(())
}

fn serve(stream: &mut TcpStream, id: &Id) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut greeting = [0; 8];
    stream.read_exact(&mut greeting)?;
    if greeting != GREETING {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&id.to_bytes())
}

/// Every other rank: asks until rank 0 answers.
fn fetch(address: &str, rank: usize, deadline: Deadline) -> Result<Id, DevicesRunError> {
    let to = resolved(address)?;
    loop {
        let asked =
            TcpStream::connect_timeout(&to, Duration::from_secs(1)).and_then(|mut stream| {
                stream.set_read_timeout(Some(Duration::from_secs(2)))?;
                stream.write_all(&GREETING)?;
                let mut bytes = [0; 128];
                stream.read_exact(&mut bytes)?;
                Ok(bytes)
            });
        match asked {
            Ok(bytes) => return Ok(Id::from_bytes(bytes)),
            Err(e) if deadline.is_past() => {
                let reason = format!("rank {rank} got no answer of rank 0 in time ({e})");
                return Err(meeting(address, reason));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The device's part of a program, loaded.
struct Part {
    /// Of each buffer, the memory if it is this device's.
    buffers: Vec<Option<Buffer>>,
    jobs: Vec<Option<Ready>>,
    streams: Vec<Stream>,
    /// Staging memory of each copy whose block is not contiguous: NCCL sends contiguous bytes.
    staging: BTreeMap<usize, Buffer>,
    _bias: Option<Buffer>,
}

impl DeviceGemm {
    /// Runs this process's part of the program. C in the result has this rank's block; the rest of it is as in `inputs`.
    ///
    /// # Errors
    ///
    /// As [`DeviceGemm::launch_on`].
    pub fn launch_as(
        &self,
        rank: &Rank,
        inputs: &Inputs,
        options: OnDevices,
    ) -> Result<DevicesRun, DevicesRunError> {
        inputs.fit(&self.program.problem, self.data_type)?;
        if self.proof.is_none() {
            return Err(DevicesRunError::Unproven);
        }
        if let Some(op) = self.program.reaching() {
            let reason = format!(
                "{op}: it writes into another device's memory, which belongs to another process here; use a program with copies"
            );
            return Err(DevicesError::Unsupported { reason }.into());
        }
        let part = self.part(rank, inputs)?;
        let deadline = Deadline::after(options.limit);
        let what = format!("rank {}'s part of the product", rank.number);
        let ended = self.enqueue_part(rank, &part).and_then(|()| {
            let mut streams = part.streams.iter();
            streams
                .try_for_each(|stream| stream.wait_until(deadline, &what))
                .map_err(at(rank.number))
        });
        if let Err(error) = ended {
            // Freeing memory waits for the device: it would hang where the run does.
            std::mem::forget(part);
            return Err(error);
        }
        let mut c = inputs.c.clone();
        let result = &self.program.results[rank.number];
        if let Some(buffer) = &part.buffers[result.buffer] {
            let bytes: Vec<u8> = buffer.download().map_err(at(rank.number))?;
            self.storage[result.buffer].take(&bytes, &result.block, &mut c);
        }
        Ok(DevicesRun {
            c,
            findings: Vec::new(),
            time_ms: None,
        })
    }

    /// Compares a rank's block of C with the reference.
    ///
    /// # Errors
    ///
    /// A matrix that is not what the problem says.
    pub fn check_part(
        &self,
        rank: usize,
        inputs: &Inputs,
        c: &Matrix,
    ) -> Result<Check, DevicesRunError> {
        let whole = &self.program.problem;
        let none = Block {
            rows: 0..0,
            columns: 0..0,
        };
        let block = self
            .program
            .results
            .get(rank)
            .map_or(none, |r| r.block.clone());
        let Block { rows, columns } = block.clone();
        let length = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let cut_from = |matrix: &Matrix, rows: Range<u64>, columns: Range<u64>, trans: Trans| {
            cut(matrix, &Block { rows, columns }, trans == Trans::T)
        };
        let problem = Gemm {
            alpha: whole.alpha,
            beta: whole.beta,
            output: whole.output,
            epilogue: whole.epilogue,
            ..Gemm::packed(length(&rows), length(&columns), whole.k, whole.operands)
        };
        let range = match whole.epilogue.bias {
            Bias::None => 0..0,
            Bias::Row => rows.clone(),
            Bias::Column => columns.clone(),
        };
        let bias = inputs.bias.as_ref();
        let part = Inputs {
            a: cut_from(&inputs.a, rows, 0..whole.k, whole.operands.a),
            b: cut_from(&inputs.b, 0..whole.k, columns, whole.operands.b),
            c: cut(&inputs.c, &block, false),
            bias: bias.map(|bias| cut_from(bias, 0..1, range, Trans::N)),
        };
        let c = cut(c, &block, false);
        Ok(check(&problem, self.data_type, &part, &c)?)
    }

    fn part(&self, rank: &Rank, inputs: &Inputs) -> Result<Part, DevicesRunError> {
        let (program, device, gpu) = (&self.program, rank.number, &rank.gpu);
        let mut buffers = Vec::new();
        for (number, described) in program.buffers.iter().enumerate() {
            let mine = described.device == device;
            let placed = mine.then(|| gpu.upload(&self.initial(number, inputs)));
            buffers.push(placed.transpose().map_err(at(device))?);
        }
        let bias = inputs.bias.as_ref().map(|bias| gpu.upload(&bias.bytes));
        let bias = bias.transpose().map_err(at(device))?;
        let mut jobs = Vec::new();
        for (op, job) in program.ops.iter().zip(&self.jobs) {
            jobs.push(match job {
                Some(job) if op.device == device => {
                    let address =
                        |buffer: usize| buffers[buffer].as_ref().map_or(0, Buffer::address);
                    load(gpu, job, address, bias.as_ref()).map_err(|e| placed_error(device, e))?
                }
                _ => None,
            });
        }
        // Before anything is enqueued: an allocation may wait for the device.
        let mut staging = BTreeMap::new();
        for (index, op) in program.ops.iter().enumerate() {
            let Action::Copy { from, to } = &op.action else {
                continue;
            };
            let ends = [from, to].map(|region| program.buffers[region.buffer].device);
            let Some(end) = ends.iter().position(|&end| end == device) else {
                continue;
            };
            let region = [from, to][end];
            let span = self.storage[region.buffer].span(&region.block);
            if ends[0] != ends[1] && !span.is_run() {
                let memory = gpu.alloc(span.width * span.rows).map_err(at(device))?;
                staging.insert(index, memory);
            }
        }
        let streams = (0..program.streams).map(|_| gpu.new_stream());
        let streams = streams.collect::<Result<_, _>>().map_err(at(device))?;
        gpu.synchronize().map_err(at(device))?;
        Ok(Part {
            buffers,
            jobs,
            streams,
            staging,
            _bias: bias,
        })
    }

    fn enqueue_part(&self, rank: &Rank, part: &Part) -> Result<(), DevicesRunError> {
        let (program, device) = (&self.program, rank.number);
        // The flags that this device has set. Those of other devices announce what was sent from there; the receive behind them waits by itself.
        let mut flags: BTreeMap<usize, Event> = BTreeMap::new();
        // Of each stream of any device, the flags of this device that it has waited for: what is sent on its behalf waits for them here.
        let mut seen = vec![Vec::new(); program.devices * program.streams];
        for (index, op) in program.ops.iter().enumerate() {
            let place = op.device * program.streams + op.stream;
            let done = match &op.action {
                Action::Set(flag) if op.device == device => {
                    let set = part.streams[op.stream].record();
                    set.map(|event| drop(flags.insert(*flag, event)))
                }
                Action::Wait(flag) => match flags.get(flag) {
                    Some(event) => {
                        seen[place].push(*flag);
                        if op.device == device {
                            part.streams[op.stream].wait(event)
                        } else {
                            Ok(())
                        }
                    }
                    None => Ok(()),
                },
                Action::Product(_) => match &part.jobs[index] {
                    Some((loaded, args)) => loaded.run_on(&part.streams[op.stream], args),
                    None => Ok(()),
                },
                Action::Collective(taken) if op.device == device => {
                    let address =
                        |buffer: usize| part.buffers[buffer].as_ref().map_or(0, Buffer::address);
                    let stream = &part.streams[op.stream];
                    // SAFETY: the buffers are of this part, which lives until it has ended; the process has one rank, and one thread for it.
                    unsafe { enqueue(taken, &self.storage, address, (&rank.nccl, 0), stream) }
                }
                Action::Copy { from, to } => {
                    let ends = [from, to].map(|region| program.buffers[region.buffer].device);
                    if ends.contains(&device) {
                        let waited = seen[place].iter().filter_map(|flag| flags.get(flag));
                        self.transfer(rank, part, index, ends, (from, to), waited)
                    } else {
                        Ok(())
                    }
                }
                Action::Collective(_) | Action::Set(_) => Ok(()),
            };
            done.map_err(at(device))?;
        }
        Ok(())
    }

    /// A copy of which this device is an end, or both.
    fn transfer<'e>(
        &self,
        rank: &Rank,
        part: &Part,
        index: usize,
        [source, target]: [usize; 2],
        (from, to): (&Region, &Region),
        mut waited: impl Iterator<Item = &'e Event>,
    ) -> Result<(), GpuError> {
        let device = rank.number;
        let stream = &part.streams[self.program.ops[index].stream];
        let place = |region: &Region| {
            let span = self.storage[region.buffer].span(&region.block);
            let address = part.buffers[region.buffer]
                .as_ref()
                .map_or(0, Buffer::address);
            let pitched = Pitched {
                address: address + span.offset as u64,
                pitch: span.pitch,
            };
            (pitched, span)
        };
        if source == target {
            let ((source, span), (target, _)) = (place(from), place(to));
            // SAFETY: both blocks lie in buffers of this part, which live until it has ended; the program is proven.
            return unsafe { stream.copy(target, source, span.width, span.rows) };
        }
        let region = if source == device { from } else { to };
        let (block, span) = place(region);
        let bytes = span.width * span.rows;
        if bytes == 0 {
            return Ok(());
        }
        let staging = part.staging.get(&index);
        let run = staging.map_or(block, |memory| Pitched {
            address: memory.address(),
            pitch: span.width,
        });
        let direct = staging.is_none();
        if source == device {
            waited.try_for_each(|event| stream.wait(event))?;
            // SAFETY: as above; the staging buffer has as many bytes and lives as long.
            unsafe {
                if !direct {
                    stream.copy(run, block, span.width, span.rows)?;
                }
                rank.nccl.send(0, run.address, bytes, target, stream)
            }
        } else {
            // SAFETY: as above.
            unsafe {
                rank.nccl.receive(0, run.address, bytes, source, stream)?;
                if direct {
                    Ok(())
                } else {
                    stream.copy(block, run, span.width, span.rows)
                }
            }
        }
    }
}
