//! A program over devices on GPUs of one host.
//!
//! The program is captured once as a CUDA graph over all devices ([`capture`]); each run is one launch of it on the first device, behind the one before.
//! A program whose devices only collectives order is enqueued without a graph, by a thread for each device: small products would wait for the graph's end.
//!
//! Nothing waits without a limit. If a device is lost, the run ends with one error, and what the GPUs may still use is kept until they are done with it.

mod capture;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tilewright_gpu::cublas::Scalar;
use tilewright_gpu::nccl::Nccl;
use tilewright_gpu::{Arg as GpuArg, Buffer, Deadline, Event, Gpu, GpuError, Graph, Stream, ptxas};
use tilewright_kernels::devices::{DevicesError, Placement, Program};
use tilewright_kernels::gemm::{DataType, Gemm};

use super::jobs::Job;
use super::{DeviceGemm, DevicesRun, DevicesRunError};
use crate::host::run::arg;
use crate::host::run::bind::bind;
use crate::host::run::on_gpu::Loaded;
use crate::host::{Arg, Inputs, Role, RunError, Runnable};
use capture::{Placed, ordered_by_collectives};

/// GPUs that reach each other's memory.
#[derive(Debug)]
pub struct Devices {
    /// Opened when a program first needs it. A run that does not end keeps it open: closing it would wait for that run.
    nccl: OnceLock<Result<Arc<Mutex<Nccl>>, GpuError>>,
    /// What runs that did not end in time may still use. The next session waits for them: to synchronise with a GPU is to wait for them without a limit.
    unended: Mutex<Vec<Kept>>,
    gpus: Vec<Gpu>,
}

impl Devices {
    /// Opens the first `count` GPUs of this host.
    ///
    /// # Errors
    ///
    /// [`DevicesRunError::Gpu`] if there are fewer, or two of them have no peer access.
    pub fn open(count: usize) -> Result<Self, DevicesRunError> {
        let at = |device| move |error| DevicesRunError::Gpu { device, error };
        let assembler = ptxas::find().ok();
        let mut gpus = Vec::new();
        for device in 0..count {
            let gpu = Gpu::open(device).map_err(at(device))?;
            gpus.push(gpu.keeping_modules(assembler.clone()));
        }
        for (device, gpu) in gpus.iter().enumerate() {
            for other in &gpus {
                gpu.reach(other).map_err(at(device))?;
            }
        }
        Ok(Self {
            nccl: OnceLock::new(),
            unended: Mutex::default(),
            gpus,
        })
    }

    /// Waits for runs that did not end in their time, and frees what they used.
    fn settle(&self, deadline: Deadline) -> Result<(), DevicesRunError> {
        let mut unended = self.unended.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(kept) = unended.last() {
            if kept.check(deadline, "an earlier product on these GPUs")? {
                unended.pop();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(())
    }

    /// An error with the GPUs that it is about. A lost GPU shows in calls for others too: memory of one that reads the lost one's can't be had, and where a
    /// kernel waits for the lost one, its own GPU may be lost with it.
    pub(super) fn blame(&self, error: DevicesRunError) -> DevicesRunError {
        match &error {
            DevicesRunError::Gpu { error: found, .. } if found.means_lost_gpu() => {}
            _ => return error,
        }
        // A query concerns no other GPU.
        let all = self.gpus.iter().enumerate();
        let mut lost: Vec<(usize, GpuError)> = all
            .filter_map(|(device, gpu)| Some((device, gpu.stream().is_done().err()?)))
            .filter(|(_, found)| found.means_lost_gpu())
            .collect();
        match (lost.pop(), lost.is_empty()) {
            (Some((device, error)), true) => DevicesRunError::Gpu { device, error },
            (Some((device, error)), false) => {
                let others = lost.into_iter().map(|(device, _)| device);
                let devices = others.chain([device]).collect();
                DevicesRunError::Lost { devices, error }
            }
            (None, _) => error,
        }
    }

    /// Keeps what a run that has not ended may still use. Freeing memory waits for the device: it would hang where the run does.
    fn keep(&self, kept: Option<Kept>) {
        let mut unended = self.unended.lock().unwrap_or_else(PoisonError::into_inner);
        unended.extend(kept);
    }

    /// The program that takes the least time on these devices: [`Program::quickest`]; where NCCL can't be had, [`Program::direct`] instead of a collective of
    /// terms, and [`Program::derive`] of factors.
    ///
    /// # Errors
    ///
    /// As [`Program::derive`].
    pub fn program(
        &self,
        problem: &Gemm,
        placement: &Placement,
        data_type: DataType,
    ) -> Result<Program, DevicesError> {
        let program = Program::quickest(problem, placement, data_type)?;
        if !program.parts().is_empty() && self.nccl().is_err() {
            return match Program::direct(problem, placement)? {
                Some(program) => Ok(program),
                None => Program::derive(problem, placement),
            };
        }
        Ok(program)
    }

    /// NCCL with a rank for each GPU.
    fn nccl(&self) -> Result<&Arc<Mutex<Nccl>>, DevicesRunError> {
        let open = || {
            // Opening has no limit of its own, and may wait for a GPU that is lost.
            let (gpus, deadline) = (self.gpus.clone(), Deadline::after(CONNECTING));
            let (send, opened) = channel();
            std::thread::spawn(move || send.send(connected(&gpus, deadline)));
            let nccl = opened.recv_timeout(deadline.left());
            let nccl = nccl.map_err(|e| match e {
                RecvTimeoutError::Timeout => deadline.passed("NCCL's opening"),
                RecvTimeoutError::Disconnected => GpuError::Invalid {
                    what: "NCCL's opening ended without a result".to_owned(),
                },
            })??;
            Ok(Arc::new(Mutex::new(nccl)))
        };
        let found = self.nccl.get_or_init(open).as_ref();
        found.map_err(|error| DevicesRunError::Gpu {
            device: 0,
            error: error.clone(),
        })
    }

    /// The GPUs, in the order of the program's devices.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        let now = Deadline::after(Duration::ZERO);
        if self.settle(now).is_err() {
            let unended = self.unended.get_mut();
            std::mem::forget(std::mem::take(
                unended.unwrap_or_else(PoisonError::into_inner),
            ));
        }
    }
}

/// NCCL with a rank for each GPU, connected: a rank makes its connections in its first operation, and waits for the others in it, on the host and without a
/// limit. Here all ranks come to it.
fn connected(gpus: &[Gpu], deadline: Deadline) -> Result<Nccl, GpuError> {
    let nccl = Nccl::all(gpus)?;
    let memory = gpus
        .iter()
        .map(|gpu| gpu.upload(&vec![0_u8; 16 * gpus.len()]))
        .collect::<Result<Vec<_>, _>>()?;
    for sums in [false, true] {
        nccl.group(|nccl| {
            for (rank, (gpu, buffer)) in gpus.iter().zip(&memory).enumerate() {
                let (whole, stream) = (buffer.address(), gpu.stream());
                let own = whole + 16 * rank as u64;
                // SAFETY: 16 bytes a rank, which live until the streams are done; one thread calls.
                unsafe {
                    if sums {
                        nccl.reduce_scatter(rank, (whole, own), 4, Scalar::F32, stream)?;
                    } else {
                        nccl.all_gather(rank, (own, whole), 16, stream)?;
                    }
                }
            }
            Ok(())
        })?;
    }
    let done = gpus
        .iter()
        .try_for_each(|gpu| gpu.stream().wait_until(deadline, "NCCL's first operation"));
    if let Err(error) = done {
        // NCCL and the driver would wait for the operation.
        std::mem::forget((nccl, memory));
        return Err(error);
    }
    Ok(nccl)
}

/// How long NCCL may take to open and to connect all GPUs.
const CONNECTING: Duration = Duration::from_mins(1);

/// How to run on GPUs.
///
/// ```
/// use std::time::Duration;
/// use tilewright::host::devices::OnDevices;
/// let patient = OnDevices { limit: Duration::from_secs(600), ..OnDevices::default() };
/// assert!(patient.limit > OnDevices::default().limit);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OnDevices {
    /// How long the host waits for the devices before it gives up.
    pub limit: Duration,
    /// Runs that are timed after the first; none gives no time.
    pub repeats: usize,
}

impl Default for OnDevices {
    fn default() -> Self {
        Self {
            limit: Duration::from_mins(1),
            repeats: 0,
        }
    }
}

impl DeviceGemm {
    /// Runs the program on GPUs, once, and then `repeats` times for its time.
    ///
    /// # Errors
    ///
    /// A matrix that is not what the problem says, a number of devices that is not the program's, or the first error of a GPU: memory that does
    /// not suffice, a lost device, a time limit that passed.
    pub fn launch_on(
        &self,
        devices: &Devices,
        inputs: &Inputs,
        options: OnDevices,
    ) -> Result<DevicesRun, DevicesRunError> {
        self.run_on(devices, inputs, options)
            .map_err(|error| devices.blame(error))
    }

    fn run_on(
        &self,
        devices: &Devices,
        inputs: &Inputs,
        options: OnDevices,
    ) -> Result<DevicesRun, DevicesRunError> {
        let deadline = || Deadline::after(options.limit);
        let mut session = Session::new(self, devices, inputs, deadline())?;
        session.run(deadline())?;
        let memory = session.download()?;
        let (c, findings) = self.collect(inputs, &memory);
        let time_ms = match options.repeats {
            0 => None,
            repeats => Some(session.time(repeats, deadline())?),
        };
        Ok(DevicesRun {
            c,
            findings,
            time_ms,
        })
    }
}

/// A program loaded on devices.
pub(super) struct Session<'a> {
    product: &'a DeviceGemm,
    devices: &'a Devices,
    /// What the devices may still use: kept if a run does not end.
    kept: Option<Kept>,
}

/// A product's launches and their arguments.
pub(super) type Ready = (Loaded, Vec<Vec<GpuArg>>);

/// Everything on the devices.
struct Kept {
    /// For programs with collectives.
    nccl: Option<Arc<Mutex<Nccl>>>,
    /// None for programs that [`ordered_by_collectives`] says it of.
    graph: Option<Graph>,
    buffers: Vec<Buffer>,
    jobs: Vec<Option<Ready>>,
    /// Of each device. The graph runs on the first one's first; the others were there to capture it.
    streams: Vec<Vec<Stream>>,
    _biases: Vec<Option<Buffer>>,
}

/// What has not ended where a time limit passes.
const RUN: &str = "the product over several GPUs";

/// How many runs are enqueued ahead of those that are done, about twice. A driver's queue that is full blocks the caller for as long as nothing leaves it: for
/// ever, if a device is lost.
const AHEAD: usize = 64;

pub(super) fn at(device: usize) -> impl Fn(GpuError) -> DevicesRunError {
    move |error| DevicesRunError::Gpu { device, error }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept")
            .field("buffers", &self.buffers)
            .finish_non_exhaustive()
    }
}

impl Kept {
    fn placed<'a>(&'a self, product: &'a DeviceGemm, nccl: Option<&'a Nccl>) -> Placed<'a> {
        Placed {
            product,
            buffers: &self.buffers,
            jobs: &self.jobs,
            streams: &self.streams,
            nccl,
        }
    }

    /// Whether every device is done.
    ///
    /// # Errors
    ///
    /// The first device that is lost; else that the time of `what` has passed, with a device that is not done.
    fn check(&self, deadline: Deadline, what: &str) -> Result<bool, DevicesRunError> {
        let mut waiting = None;
        for (device, streams) in self.streams.iter().enumerate() {
            for stream in streams {
                if !stream.is_done().map_err(at(device))? {
                    waiting = Some(device);
                }
            }
        }
        match waiting {
            Some(device) if deadline.is_past() => {
                let error = deadline.passed(what);
                Err(DevicesRunError::Gpu { device, error })
            }
            waiting => Ok(waiting.is_none()),
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(
        product: &'a DeviceGemm,
        devices: &'a Devices,
        inputs: &Inputs,
        deadline: Deadline,
    ) -> Result<Self, DevicesRunError> {
        let program = &product.program;
        inputs.fit(&program.problem, product.data_type)?;
        if product.proof.is_none() {
            return Err(DevicesRunError::Unproven);
        }
        if devices.gpus.len() != program.devices {
            return Err(DevicesRunError::DeviceCount {
                program: program.devices,
                found: devices.gpus.len(),
            });
        }
        devices.settle(deadline)?;
        let nccl = if program.parts().is_empty() {
            None
        } else {
            Some(devices.nccl()?.clone())
        };
        let mut buffers = Vec::new();
        for (number, buffer) in program.buffers.iter().enumerate() {
            let gpu = &devices.gpus[buffer.device];
            let content = product.initial(number, inputs);
            buffers.push(gpu.upload(&content).map_err(at(buffer.device))?);
        }
        let mut biases = Vec::new();
        for (device, gpu) in devices.gpus.iter().enumerate() {
            let bias = inputs.bias.as_ref();
            let placed = bias.map(|bias| gpu.upload(&bias.bytes)).transpose();
            biases.push(placed.map_err(at(device))?);
        }
        let mut jobs = Vec::new();
        for (op, job) in program.ops.iter().zip(&product.jobs) {
            let gpu = &devices.gpus[op.device];
            let bias = biases[op.device].as_ref();
            jobs.push(match job {
                Some(job) => load(gpu, job, |buffer| buffers[buffer].address(), bias)
                    .map_err(|e| placed_error(op.device, e))?,
                None => None,
            });
        }
        let mut streams = Vec::new();
        for (device, gpu) in devices.gpus.iter().enumerate() {
            let made = (0..program.streams).map(|_| gpu.new_stream());
            streams.push(made.collect::<Result<Vec<_>, _>>().map_err(at(device))?);
        }
        for (device, gpu) in devices.gpus.iter().enumerate() {
            // Uploads and the poisoning of workspaces are on other streams.
            gpu.synchronize().map_err(at(device))?;
        }
        let mut kept = Kept {
            nccl,
            graph: None,
            buffers,
            jobs,
            streams,
            _biases: biases,
        };
        if !ordered_by_collectives(program) {
            kept.graph = Some(kept.placed(product, None).capture()?);
        }
        Ok(Self {
            product,
            devices,
            kept: Some(kept),
        })
    }

    fn kept(&self) -> Result<&Kept, DevicesRunError> {
        self.kept.as_ref().ok_or_else(|| DevicesRunError::Gpu {
            device: 0,
            error: GpuError::Invalid {
                what: "an earlier run has not ended".to_owned(),
            },
        })
    }

    /// The memory of a buffer.
    pub(super) fn buffer(&self, buffer: usize) -> Result<&Buffer, DevicesRunError> {
        Ok(&self.kept()?.buffers[buffer])
    }

    /// Enqueues the launches of an operation's product on a stream of the caller's.
    pub(super) fn launch(&self, op: usize, stream: &Stream) -> Result<(), DevicesRunError> {
        let device = self.product.program.ops[op].device;
        match &self.kept()?.jobs[op] {
            Some((loaded, args)) => loaded.run_on(stream, args).map_err(at(device)),
            None => Ok(()),
        }
    }

    /// Enqueues the program `times` times, and gives the events behind the first and the last run, of each stream that runs end on.
    fn enqueue(
        &mut self,
        times: usize,
        deadline: Deadline,
    ) -> Result<Vec<(Event, Event)>, DevicesRunError> {
        let enqueued = self.enqueue_on_all(times, deadline);
        if enqueued.is_err() {
            // Other devices may wait for what was not enqueued.
            self.devices.keep(self.kept.take());
        }
        enqueued
    }

    fn enqueue_on_all(
        &self,
        times: usize,
        deadline: Deadline,
    ) -> Result<Vec<(Event, Event)>, DevicesRunError> {
        let kept = self.kept()?;
        let stop = AtomicBool::new(false);
        // No other program's collectives in between: all ranks come to them in one order.
        let nccl = kept.nccl.as_ref().map(|nccl| locked(nccl));
        if let Some(graph) = &kept.graph {
            let launch = |stream: &Stream| graph.launch(stream).map_err(at(0));
            return Ok(vec![runs(kept, (0, times), deadline, &stop, launch)?]);
        }
        let (product, nccl) = (self.product, nccl.as_deref());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..kept.streams.len())
                .map(|device| {
                    let stop = &stop;
                    scope.spawn(move || {
                        let enqueue =
                            |_: &Stream| kept.placed(product, nccl).enqueue_device(device);
                        let done = runs(kept, (device, times), deadline, stop, enqueue);
                        if done.is_err() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        done
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }

    /// Waits until all devices are done. If they are not in time, or one fails, the devices keep what they may still use.
    pub(super) fn finish(&mut self, deadline: Deadline) -> Result<(), DevicesRunError> {
        let ended = self.all_done(deadline);
        if ended.is_err() {
            self.devices.keep(self.kept.take());
        }
        ended
    }

    fn all_done(&self, deadline: Deadline) -> Result<(), DevicesRunError> {
        let kept = self.kept()?;
        while !kept.check(deadline, RUN)? {
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    pub(super) fn run(&mut self, deadline: Deadline) -> Result<(), DevicesRunError> {
        self.enqueue(1, deadline)?;
        self.finish(deadline)
    }

    /// Milliseconds of one run, from several one behind the other.
    pub(super) fn time(
        &mut self,
        repeats: usize,
        deadline: Deadline,
    ) -> Result<f64, DevicesRunError> {
        // The end of the first run is where the time begins.
        let repeats = repeats.max(1);
        let events = self.enqueue(1 + repeats, deadline)?;
        self.finish(deadline)?;
        let mut total: f64 = 0.0;
        for (device, (first, last)) in events.iter().enumerate() {
            total = total.max(first.milliseconds_to(last).map_err(at(device))?);
        }
        Ok(total / repeats as f64)
    }

    /// The content of all buffers.
    pub(super) fn download(&self) -> Result<Vec<Vec<u8>>, DevicesRunError> {
        let kept = self.kept()?;
        let buffers = kept.buffers.iter().zip(&self.product.program.buffers);
        let results = &self.product.program.results;
        buffers
            .enumerate()
            .map(|(number, (buffer, described))| {
                // Only results are looked at.
                if results.iter().any(|result| result.buffer == number) {
                    buffer.download().map_err(at(described.device))
                } else {
                    Ok(Vec::new())
                }
            })
            .collect()
    }

    pub(super) fn gpus(&self) -> &[Gpu] {
        &self.devices.gpus
    }
}

fn locked(nccl: &Mutex<Nccl>) -> MutexGuard<'_, Nccl> {
    nccl.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enqueues several runs on a device's first stream, no more ahead of those that are done than fit, and gives the events behind the first and the last.
fn runs(
    kept: &Kept,
    (device, times): (usize, usize),
    deadline: Deadline,
    stop: &AtomicBool,
    mut enqueue: impl FnMut(&Stream) -> Result<(), DevicesRunError>,
) -> Result<(Event, Event), DevicesRunError> {
    let stream = &kept.streams[device][0];
    let record = || stream.record().map_err(at(device));
    enqueue(stream)?;
    let first = record()?;
    let mut before: Option<Event> = None;
    for run in 1..times {
        enqueue(stream)?;
        if run % AHEAD == 0
            && let Some(event) = before.replace(record()?)
        {
            while !event.is_done().map_err(at(device))? {
                kept.check(deadline, RUN)?;
                if stop.load(Ordering::Relaxed) {
                    return Ok((first, record()?));
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }
    Ok((first, record()?))
}

pub(super) fn placed_error(device: usize, error: RunError) -> DevicesRunError {
    match error {
        RunError::Gpu(error) => DevicesRunError::Gpu { device, error },
        other => other.into(),
    }
}

/// A kernel with its arguments, or none if there is nothing to launch.
pub(super) fn load(
    gpu: &Gpu,
    job: &Job,
    address: impl Fn(usize) -> u64,
    bias: Option<&Buffer>,
) -> Result<Option<Ready>, RunError> {
    // Sizes and alignments are checked as in every run; the memory is the session's.
    let described = |which: usize, len: usize, alignment: u32| {
        Arg::Buffer(arg::Buffer {
            element: job.kernel.operand_type(which),
            role: Role::Output,
            alignment: alignment.into(),
            len,
            content: None,
        })
    };
    let alignment = job.problem.alignment;
    let [a, b, c] = job.spans.map(super::storage::Span::len);
    let mut args = vec![
        ("A", described(0, a, alignment.a)),
        ("B", described(1, b, alignment.b)),
        ("C", described(2, c, alignment.c)),
    ];
    let mut addresses: Vec<u64> = (0..3)
        .map(|which| address(job.buffers[which]) + job.spans[which].offset as u64)
        .collect();
    if let (Some(range), Some(bias)) = (&job.bias, bias) {
        let element = job.kernel.operand_type(2);
        let size = element.bytes() as u64;
        let len = ((range.end - range.start) * size) as usize;
        args.push((
            "bias",
            Arg::Buffer(arg::Buffer {
                element,
                role: Role::Output,
                alignment: size,
                len,
                content: None,
            }),
        ));
        addresses.push(bias.address() + range.start * size);
    }
    let bound = bind(job.kernel.as_ref(), args)?;
    if bound.steps.is_empty() {
        return Ok(None);
    }
    let loaded = Loaded::new(gpu, job.kernel.ptx(), job.kernel.entry(), &bound)?;
    let args = loaded.bind(gpu, addresses)?;
    Ok(Some((loaded, args)))
}
