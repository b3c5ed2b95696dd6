//! Launches: grid, arguments, options, and [`run`], which spreads the blocks over the cores.

use std::fmt;
use std::sync::Arc;

use crate::causes;
use crate::clock::Stopwatch;
use crate::decode::END;
use crate::device::Device;
use crate::error::RunError;
use crate::exec::residents::Residents;
use crate::exec::{Context, Tally};
use crate::memory::GlobalMemory;
use crate::module::{Kernel, Module, Param};
use crate::report::{Counters, Finding, InstructionCounter, Report};
use crate::threads;
use crate::types::ScalarType;
use crate::variables::{bound_variables, initialise};

/// Shared memory a block may have: 227 KiB, the limit of `sm_90`.
pub const MAX_SHARED_BYTES: u64 = 227 * 1024;

/// Bytes of `printf` output that a report keeps; what a kernel prints beyond them is dropped.
pub const MAX_PRINTED: usize = 1 << 20;

/// Bytes of a cooperative launch's workspace: the barrier of the grid.
const WORKSPACE_BYTES: usize = 256;

/// A kernel argument, held against the type of the parameter in the PTX text. Pointers are addresses in the emulator's memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// 32-bit unsigned.
    U32(u32),
    /// 32-bit signed.
    S32(i32),
    /// 64-bit unsigned.
    U64(u64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// A pointer from [`GlobalMemory::alloc`], or a pointer plus an offset.
    Ptr(u64),
    /// The bytes of the parameter, for structures and types without a variant of their own.
    Bytes(Vec<u8>),
}

impl Arg {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::U32(v) => v.to_le_bytes().to_vec(),
            Self::S32(v) => v.to_le_bytes().to_vec(),
            Self::U64(v) | Self::Ptr(v) => v.to_le_bytes().to_vec(),
            Self::F32(v) => v.to_le_bytes().to_vec(),
            Self::F64(v) => v.to_le_bytes().to_vec(),
            Self::Bytes(b) => b.clone(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::U32(_) => "a 32-bit unsigned integer",
            Self::S32(_) => "a 32-bit signed integer",
            Self::U64(_) => "a 64-bit unsigned integer",
            Self::F32(_) => "an f32",
            Self::F64(_) => "an f64",
            Self::Ptr(_) => "a pointer",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Whether a parameter of type `ty` may take this argument, sizes aside.
    fn fits(&self, ty: ScalarType) -> bool {
        match self {
            Self::F32(_) | Self::F64(_) => !ty.is_int(),
            Self::U32(_) | Self::S32(_) | Self::U64(_) | Self::Ptr(_) => !ty.is_float(),
            Self::Bytes(_) => true,
        }
    }
}

/// What to launch a kernel with.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Blocks in x, y, z. A zero anywhere runs nothing.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z; at most 1024 in all.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y, z; `[1, 1, 1]` for none.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// All blocks must run at once, and may synchronise (`cudaLaunchCooperativeKernel`).
    pub cooperative: bool,
    /// One argument for each parameter.
    pub args: Vec<Arg>,
    /// `.global` and `.const` variables of the module, by name, that lie at an address of the caller's: as long as nothing has written there, they get their
    /// initial bytes, and what the kernel stores is left there. Other variables are made anew for each launch.
    pub variables: Vec<(String, u64)>,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            dynamic_shared: 0,
            cooperative: false,
            args: Vec::new(),
            variables: Vec::new(),
        }
    }
}

/// Called with (blocks done, blocks in all), from any thread.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How to run.
#[derive(Clone)]
#[allow(clippy::struct_excessive_bools)] // independent switches
pub struct Options {
    /// Check registers, shared-memory races and the like. Bounds, alignment, barriers and deadlock are always checked.
    pub sanitize: bool,
    /// Also report global memory accessed by two blocks, one of them storing another value, unless a fence and an atomic operation or strong accesses order them.
    pub global_races: bool,
    /// Also report shared memory that one lane writes and another lane of its warp accesses, with no `bar.warp.sync` or barrier between, and what other warps do after
    /// an arrival at an mbarrier by one lane that orders only what that lane did. Lanes are not
    /// ordered by instructions on hardware; here they are, so that such a kernel computes what its author meant.
    pub lane_races: bool,
    /// Also report uses of values read from global memory that neither host nor kernel wrote.
    pub undefined_global: bool,
    /// The GPU, which decides how many blocks are resident at once and may wait for each other.
    pub device: Device,
    /// Registers of a thread, for the same.
    pub registers: u32,
    /// Host threads to run blocks on; 0 for all cores. Blocks that communicate run on one, so that each run gives the same.
    pub workers: usize,
    /// Instructions a warp may execute before it counts as an endless loop.
    pub step_limit: u64,
    /// Warp instructions the whole run may execute before it is given up; each block counts for at least 512.
    pub total_step_limit: u64,
    /// Count bytes by memory and sectors by instruction ([`crate::Traffic`]).
    pub profile: bool,
    /// The order of blocks and warps: 0 for the usual one, else the seed of another, on one host thread. A GPU promises none.
    pub schedule: u64,
    /// Run only about so many blocks, evenly spread over the grid; 0 for all. What the others would have written is not there. Kernels whose blocks
    /// may wait for each other run whole.
    pub sample: u64,
    /// Findings to keep in the report.
    pub max_findings: usize,
    /// Use only code that every machine has. The results are the same to the bit; it is slower.
    pub portable: bool,
    /// Progress callback.
    pub progress: Option<Progress>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sanitize: true,
            global_races: false,
            lane_races: false,
            undefined_global: false,
            device: Device::default(),
            registers: 64,
            workers: 0,
            step_limit: 1 << 28,
            total_step_limit: 1 << 40,
            profile: false,
            schedule: 0,
            sample: 0,
            max_findings: 100,
            portable: false,
            progress: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("sanitize", &self.sanitize)
            .field("global_races", &self.global_races)
            .field("lane_races", &self.lane_races)
            .field("undefined_global", &self.undefined_global)
            .field("device", &self.device)
            .field("registers", &self.registers)
            .field("workers", &self.workers)
            .field("step_limit", &self.step_limit)
            .field("total_step_limit", &self.total_step_limit)
            .field("profile", &self.profile)
            .field("schedule", &self.schedule)
            .field("sample", &self.sample)
            .field("max_findings", &self.max_findings)
            .field("portable", &self.portable)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

fn arguments(kernel: &Kernel, args: &[Arg]) -> Result<Vec<u8>, RunError> {
    if args.len() != kernel.params.len() {
        return Err(RunError::ArgumentCount {
            expected: kernel.params.len(),
            found: args.len(),
        });
    }
    let mut block = vec![0u8; kernel.param_bytes as usize];
    for (index, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        let Param {
            name,
            ty,
            size,
            offset,
            ..
        } = param;
        let mut bytes = arg.bytes();
        if matches!(arg, Arg::Ptr(_)) && *size == 4 && kernel.program.short_addresses {
            bytes.truncate(4);
        }
        if bytes.len() as u64 != u64::from(*size) {
            let (expected, found) = (*size, bytes.len() as u32);
            return Err(RunError::ArgumentSize {
                index,
                name: name.clone(),
                expected,
                found,
            });
        }
        if !arg.fits(*ty) {
            return Err(RunError::ArgumentType {
                index,
                name: name.clone(),
                expected: ty.name(),
                found: arg.kind(),
            });
        }
        block[*offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}

fn geometry(kernel: &Kernel, launch: &Launch) -> Result<(), RunError> {
    let fail = |what: String| Err(RunError::Geometry(what));
    let threads: u64 = launch.block.iter().map(|&d| u64::from(d)).product();
    let [bx, by, bz] = launch.block;
    if threads == 0 || threads > 1024 || bz > 64 {
        return fail(format!(
            "a block of {bx}×{by}×{bz} threads; 1 to 1024 in all and at most 64 in z are possible"
        ));
    }
    if launch.grid[1] > 65_535 || launch.grid[2] > 65_535 || launch.grid[0] > i32::MAX as u32 {
        return fail(format!(
            "a grid of {} blocks; at most 2147483647×65535×65535 are possible",
            extents(launch.grid)
        ));
    }
    if let Some(required) = kernel.required_threads
        && required != launch.block
    {
        return fail(format!(
            "`{}` requires blocks of {} threads (.reqntid), not {}",
            kernel.name,
            extents(required),
            extents(launch.block)
        ));
    }
    if let Some(max) = kernel.max_threads {
        let most: u64 = max.iter().map(|&d| u64::from(d)).product();
        if threads > most {
            return fail(format!(
                "`{}` takes at most {most} threads a block (.maxntid), not {threads}",
                kernel.name
            ));
        }
    }
    let cluster: u64 = launch.cluster.iter().map(|&d| u64::from(d)).product();
    if cluster == 0 || cluster > 16 {
        return fail(format!(
            "a cluster of {} blocks; 1 to 16 are possible",
            extents(launch.cluster)
        ));
    }
    if launch
        .grid
        .iter()
        .zip(launch.cluster)
        .any(|(g, c)| g % c != 0)
    {
        return fail(format!(
            "a grid of {} blocks is not a multiple of a cluster of {}",
            extents(launch.grid),
            extents(launch.cluster)
        ));
    }
    if let Some(most) = kernel.max_cluster
        && cluster > u64::from(most)
    {
        return fail(format!(
            "`{}` takes clusters of at most {most} blocks (.maxclusterrank), not {cluster}",
            kernel.name
        ));
    }
    if let Some(required) = kernel.required_cluster
        && required != launch.cluster
    {
        return fail(format!(
            "`{}` requires clusters of {required:?}, not {:?}",
            kernel.name, launch.cluster
        ));
    }
    Ok(())
}

/// The clusters of `launch` that are resident at once.
fn residents(kernel: &Kernel, launch: &Launch, options: &Options) -> Result<u64, RunError> {
    let Options {
        device, registers, ..
    } = options;
    let threads = launch.block.iter().product();
    let shared = match launch.dynamic_shared {
        0 => kernel.program.shared_static,
        n => kernel.program.shared_dynamic + n,
    };
    let blocks = device.blocks_at_once(threads, shared, *registers);
    let (name, size) = (device.name(), launch.cluster.iter().product::<u32>());
    let what = format!(
        "{threads} threads with {registers} registers each and {shared} bytes of shared memory"
    );
    if blocks == 0 {
        return Err(RunError::Geometry(format!(
            "a block of {what} does not fit on a multiprocessor of {name}"
        )));
    }
    let clusters = blocks / u64::from(size.max(1));
    let grid: u64 = launch.grid.iter().map(|&d| u64::from(d)).product();
    let most = clusters * u64::from(size);
    if launch.cooperative && grid > most {
        return Err(RunError::Geometry(format!(
            "a cooperative launch of {grid} blocks, which must all run at once; {name} holds {most} blocks of {what}"
        )));
    }
    Ok(clusters.max(1))
}

/// Runs kernel `name` of `module` over the whole grid and waits for its end.
///
/// As many blocks as [`Options::device`] holds at once are resident and may wait for each other; further ones start in order as others end. Warps of a block take
/// turns, lanes of a warp run together. What the kernel does wrong is a finding in the report, not an error; a block that cannot go on (deadlock, trap) is given
/// up and the others still run. The report does not depend on the host.
///
/// # Errors
///
/// [`RunError`] if the launch itself is impossible: no such kernel, wrong arguments, impossible dimensions.
///
/// # Examples
///
/// ```
/// use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};
/// let text = r"
/// .version 8.0
/// .target sm_80
/// .address_size 64
/// .visible .entry fill(.param .u64 out) {
///     .reg .b32 %r<2>;
///     .reg .b64 %rd<4>;
///     ld.param.u64 %rd0, [out];
///     mov.u32 %r0, %tid.x;
///     mul.wide.u32 %rd1, %r0, 4;
///     add.u64 %rd2, %rd0, %rd1;
///     st.global.u32 [%rd2], %r0;
///     ret;
/// }";
/// let module = Module::parse(text)?;
/// let mut memory = GlobalMemory::new();
/// let out = memory.alloc(4 * 32, 256)?;
/// let launch = Launch { args: vec![Arg::Ptr(out)], ..Launch::default() };
/// let report = run(&module, "fill", &launch, &mut memory, &Options::default())?;
/// assert!(report.is_clean());
/// assert_eq!(memory.read(out + 4 * 7, 4)?, 7u32.to_le_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run(
    module: &Module,
    name: &str,
    launch: &Launch,
    memory: &mut GlobalMemory,
    options: &Options,
) -> Result<Report, RunError> {
    let start = Stopwatch::start();
    let Some(kernel) = module.kernel(name) else {
        let available = module.kernels().map(str::to_owned).collect();
        return Err(RunError::UnknownKernel {
            name: name.to_owned(),
            available,
        });
    };
    let params = arguments(kernel, &launch.args)?;
    geometry(kernel, launch)?;
    let requested = u64::from(kernel.program.shared_dynamic) + u64::from(launch.dynamic_shared);
    if requested > MAX_SHARED_BYTES {
        return Err(RunError::SharedMemory {
            requested,
            limit: MAX_SHARED_BYTES,
        });
    }
    let bound = bound_variables(module, launch, memory)?;
    let residents = residents(kernel, launch, options)?;
    let mut variables = Vec::new();
    // Those that keep what the caller has written.
    let mut kept = Vec::new();
    for (v, place) in module.variables.iter().zip(&bound) {
        let len = v.bytes.len() as u64;
        let address = match place {
            Some(address) => *address,
            None => memory.alloc(len, 256.max(u64::from(v.align)))?,
        };
        kept.push(place.is_some() && memory.is_written(address, len));
        variables.push(address);
    }
    initialise(module, &variables, &kept, memory)?;
    if kernel.program.uses_heap {
        memory.make_heap()?;
    }
    let mut workspace = 0;
    if launch.cooperative {
        workspace = memory.alloc(WORKSPACE_BYTES as u64, 256)?;
        memory.write(workspace, &[0; WORKSPACE_BYTES])?;
    }
    let mut blocks: u64 = launch.grid.iter().map(|&d| u64::from(d)).product();
    let result = {
        let places = (residents, workspace);
        let context = Context::new(kernel, launch, &params, &variables, memory, options, places);
        blocks = blocks.min(context.clusters() * context.blocks() as u64);
        let clusters = Residents::new(&context, options.progress.as_ref());
        let alone = options.schedule != 0
            || kernel.program.communicates
            || options.workers == 1
            || options.workers == 0 && !threads::available();
        let tallies = if alone {
            Ok(vec![clusters.work()])
        } else {
            let most = context.clusters();
            threads::on_each(options.workers, most, || clusters.work()).map_err(RunError::Workers)
        };
        tallies.map(|tallies| tallies.into_iter().reduce(Tally::merge))
    };
    for (address, _) in variables.iter().zip(&bound).filter(|(_, b)| b.is_none()) {
        memory.free(*address)?;
    }
    if launch.cooperative {
        memory.free(workspace)?;
    }
    let result = result?;
    if let Some(number) = result.as_ref().and_then(Tally::lacking) {
        let error = kernel.program.missing.get(number as usize);
        return Err(error.map_or_else(
            || RunError::Workers("an instruction is missing".to_owned()),
            |e| RunError::Unsupported(e.clone()),
        ));
    }
    let mut report = match result {
        Some(tally) => summary(module, kernel, tally, options.max_findings),
        None => Report {
            findings: Vec::new(),
            notes: Vec::new(),
            total_findings: 0,
            counters: Counters::default(),
            printed: String::new(),
            blocks,
            wall: start.elapsed(),
        },
    };
    report.blocks = blocks;
    report.wall = start.elapsed();
    Ok(report)
}

fn summary(module: &Module, kernel: &Kernel, tally: Tally, max_findings: usize) -> Report {
    let mut counters = Counters::default();
    let (counts, traffic, [findings, notes], printed) = tally.finish();
    for (i, (count, meta)) in counts.iter().zip(&kernel.program.meta).enumerate() {
        let traffic = traffic.get(i).copied().unwrap_or_default();
        counters.traffic.add(&traffic);
        counters.warp_instructions += count.warps;
        counters.lane_instructions += count.lanes;
        counters.wavefronts += count.wavefronts;
        counters.ideal_wavefronts += count.ideal;
        if meta.opcode == END {
            // The implicit exit at the end of a body is not in the text.
            continue;
        }
        counters.instructions.push(InstructionCounter {
            line: meta.line,
            opcode: meta.opcode.clone(),
            warps: count.warps,
            lanes: count.lanes,
            wavefronts: count.wavefronts,
            ideal_wavefronts: count.ideal,
            min_wavefronts: count.min,
            max_wavefronts: count.max,
            traffic,
        });
    }
    let in_order = |mut found: Vec<Finding>| {
        found.sort_by_key(|f| (f.line, f.column, f.kind));
        causes::merge(&kernel.program, &module.lines, found)
    };
    let (mut findings, mut notes) = (in_order(findings), in_order(notes));
    let total_findings = findings.len() as u64;
    findings.truncate(max_findings);
    notes.truncate(max_findings);
    Report {
        findings,
        notes,
        total_findings,
        counters,
        printed,
        blocks: 0,
        wall: std::time::Duration::ZERO,
    }
}

/// `4×2×1`
fn extents([x, y, z]: [u32; 3]) -> String {
    format!("{x}×{y}×{z}")
}
