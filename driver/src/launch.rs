//! Launches: from the API's arguments to a run of the emulator, and from its findings to what the API says afterwards.
//!
//! A kernel that does what stops a GPU (an access out of bounds, a trap) leaves its context in error: the launch itself succeeds, as it does on a GPU, and all
//! later calls that wait for it say what has happened.

use std::ffi::{c_int, c_uint};
use std::io::Write as _;

use ptx_emulator::{self as emulator, Arg, FindingKind, Options, RunError};

use crate::c::{Done, Handle, In, api, host_read};
use crate::module::{NON_PORTABLE_CLUSTER, max_threads, registers};
use crate::settings::settings;
use crate::state::{Driver, with};
use crate::status::{
    ASSERT, COOPERATIVE_LAUNCH_TOO_LARGE, ILLEGAL_ADDRESS, INVALID_CLUSTER_SIZE, INVALID_VALUE,
    LAUNCH_FAILED, LAUNCH_OUT_OF_RESOURCES, LAUNCH_TIMEOUT, MISALIGNED_ADDRESS, NOT_SUPPORTED,
    OUT_OF_MEMORY, Status,
};
use crate::stream::{Work, submit};

/// What a launch is about, by the API's attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) cooperative: bool,
}

/// A launch with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) function: Handle,
    pub(crate) shape: Shape,
    /// The bytes of each parameter.
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// `CUlaunchConfig`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: Handle,
    attributes: In<Attribute>,
    count: u32,
}

/// `CUlaunchAttribute`
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Attribute {
    id: c_int,
    pad: c_int,
    value: [u32; 16],
}

/// Where an array of pointers to arguments, or a list of options about one buffer of them, is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) each: In<In<u8>>,
    pub(crate) extra: In<u64>,
}

impl Driver {
    /// Reads the arguments of a launch, and checks what the API checks at once.
    pub(crate) fn prepared(
        &mut self,
        function: Handle,
        shape: Shape,
        from: Arguments,
    ) -> Result<Launch, Status> {
        let device = self.current_device()?;
        let most_shared = self.device(device)?.shared_of_a_block();
        let (known, _, kernel) = self.code(function)?;
        let threads: u64 = shape.block.iter().map(|n| u64::from(*n)).product();
        if threads == 0 || shape.grid.contains(&0) {
            return Err(INVALID_VALUE);
        }
        if threads > u64::from(max_threads(kernel)) {
            return Err(INVALID_VALUE);
        }
        let dynamic = shape.shared as c_int;
        let all = dynamic.saturating_add(kernel.static_shared() as c_int);
        if !(0..=known.max_dynamic_shared(kernel)).contains(&dynamic) || all > most_shared {
            return Err(INVALID_VALUE);
        }
        let cluster: u32 = shape.cluster.unwrap_or([1; 3]).iter().product();
        if cluster > 8 && !known.is_set(NON_PORTABLE_CLUSTER) {
            return Err(INVALID_CLUSTER_SIZE);
        }
        let buffer = buffer(from.extra)?;
        let mut arguments = Vec::new();
        for (i, parameter) in kernel.params().iter().enumerate() {
            let (offset, size) = (parameter.offset as usize, parameter.size as usize);
            arguments.push(if let Some(buffer) = &buffer {
                let bytes = buffer.get(offset..offset + size);
                bytes.ok_or(INVALID_VALUE)?.to_vec()
            } else {
                let at = from.each.at(i)?;
                if at.is_null() {
                    return Err(INVALID_VALUE);
                }
                host_read(at.address(), size)
            });
        }
        Ok(Launch {
            function,
            shape,
            arguments,
        })
    }

    /// Runs a kernel.
    pub(crate) fn launch(&mut self, launch: &Launch) -> Done {
        let context = self.alive()?;
        let device = self.current_device()?;
        let device = self.device(device)?.emulated();
        let (function, module, kernel) = self.code(launch.function)?;
        let (name, parsed, text) = (
            function.name().to_owned(),
            module.parsed.clone(),
            module.text.clone(),
        );
        let matches = |list: &[String]| list.iter().any(|part| name.contains(part.as_str()));
        if matches(&settings().skipped) {
            self.reports.skipped(&name);
            self.poison(&launch.arguments);
            return Ok(());
        }
        let checked = settings().kernels.is_empty() || matches(&settings().kernels);
        let shape = &launch.shape;
        let threads = shape.block.iter().product();
        let start = emulator::Launch {
            grid: shape.grid,
            block: shape.block,
            cluster: shape
                .cluster
                .or(kernel.required_cluster())
                .unwrap_or([1; 3]),
            dynamic_shared: shape.shared,
            cooperative: shape.cooperative,
            args: launch.arguments.iter().cloned().map(Arg::Bytes).collect(),
            variables: module.variables.clone(),
        };
        let options = Options {
            sanitize: checked,
            global_races: checked,
            undefined_global: checked,
            lane_races: checked && settings().lane_races,
            device,
            registers: registers(threads),
            sample: settings().sample,
            ..Options::default()
        };
        match emulator::run(&parsed, &name, &start, &mut self.memory, &options) {
            Ok(report) => {
                print(&report.printed);
                let fatal = report.findings.iter().find_map(|f| fatal(f.kind));
                self.reports.add(&name, &text, &report, checked);
                if let Some(context) = self.contexts.get_mut(&context) {
                    context.failed = fatal;
                }
                Ok(())
            }
            Err(error) => {
                eprintln!("tilewright: {name} can't be run: {error}");
                self.reports.refused(&name, &error.to_string());
                Err(refusal(&error, &start))
            }
        }
    }

    /// Fills the memory that arguments point to with NaNs: what a kernel that did not run would have written is in there.
    fn poison(&mut self, arguments: &[Vec<u8>]) {
        for argument in arguments {
            for word in argument.chunks_exact(8) {
                let address = word.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
                if let Some(found) = self.allocation(address).copied() {
                    let _ = self.memory.poison(found.base, found.bytes);
                }
            }
        }
    }
}

/// The arguments that `CU_LAUNCH_PARAM_BUFFER_POINTER` and `_SIZE` give: pairs of a number and a pointer, up to 0.
fn buffer(extra: In<u64>) -> Result<Option<Vec<u8>>, Status> {
    if extra.is_null() {
        return Ok(None);
    }
    let (mut address, mut size) = (0, 0);
    for i in 0..8 {
        match extra.at(2 * i)? {
            0 => break,
            1 => address = extra.at(2 * i + 1)?,
            2 => {
                let place = extra.at(2 * i + 1)? as usize;
                size = In(std::ptr::with_exposed_provenance::<usize>(place)).get()?;
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok((address != 0).then(|| host_read(address, size)))
}

/// What the context answers from now on after a finding of this kind; nothing for what a GPU goes on after.
fn fatal(kind: FindingKind) -> Option<Status> {
    Some(match kind {
        FindingKind::OutOfBounds | FindingKind::BlockExited | FindingKind::TensorMap => {
            ILLEGAL_ADDRESS
        }
        FindingKind::Misaligned => MISALIGNED_ADDRESS,
        FindingKind::Assertion => ASSERT,
        FindingKind::Deadlock | FindingKind::EndlessLoop | FindingKind::StepLimit => LAUNCH_TIMEOUT,
        FindingKind::Trap | FindingKind::StackOverflow | FindingKind::BadOperand => LAUNCH_FAILED,
        _ => return None,
    })
}

/// The status of a launch that cannot start.
fn refusal(error: &RunError, launch: &emulator::Launch) -> Status {
    match error {
        RunError::Geometry(_) if launch.cooperative => COOPERATIVE_LAUNCH_TOO_LARGE,
        RunError::Geometry(_) if launch.cluster != [1; 3] => INVALID_CLUSTER_SIZE,
        RunError::SharedMemory { .. } => LAUNCH_OUT_OF_RESOURCES,
        RunError::Unsupported(_) => NOT_SUPPORTED,
        RunError::Memory(_) => OUT_OF_MEMORY,
        _ => INVALID_VALUE,
    }
}

/// What a kernel printed, to where the program prints.
fn print(text: &str) {
    if !text.is_empty() {
        let mut out = std::io::stdout().lock();
        // Nobody is left to tell if it is closed.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl Config {
    pub(crate) fn shape(&self) -> Result<Shape, Status> {
        let mut shape = Shape {
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            ..Shape::default()
        };
        for i in 0..self.count as usize {
            let Attribute { id, value, .. } = self.attributes.at(i)?;
            match id {
                2 => shape.cooperative = value[0] != 0,
                // All zeros are no cluster.
                4 if value[..3] != [0; 3] => shape.cluster = Some([value[0], value[1], value[2]]),
                // The rest is about speed: when a kernel may start, and where its data are kept.
                _ => {}
            }
        }
        Ok(shape)
    }
}

fn start(function: Handle, shape: Shape, stream: Handle, each: In<In<u8>>, extra: In<u64>) -> Done {
    let launch = with(|d| d.prepared(function, shape, Arguments { each, extra }))?;
    submit(stream, Work::Kernel(launch))
}

api! {
    fn cuLaunchKernel(function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: Handle, each: In<In<u8>>, extra: In<u64>) as cuLaunchKernel_ptsz {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, ..Shape::default() };
        start(function, shape, stream, each, extra)
    }

    fn cuLaunchCooperativeKernel(function: Handle, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint, stream: Handle, each: In<In<u8>>) as cuLaunchCooperativeKernel_ptsz {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, cooperative: true, cluster: None };
        start(function, shape, stream, each, In(std::ptr::null()))
    }

    fn cuLaunchKernelEx(config: In<Config>, function: Handle, each: In<In<u8>>, extra: In<u64>) as cuLaunchKernelEx_ptsz {
        let config = config.get()?;
        start(function, config.shape()?, config.stream, each, extra)
    }
}
