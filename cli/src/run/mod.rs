//! `tilewright run FILE.ptx`: any kernel, with arguments from the command line.
//!
//! ```text
//! tilewright run vector_add.ptx --grid 4 --block 256 \
//!     --arg buf:f32:1024:random --arg buf:f32:1024:iota --arg buf:f32:1024=sum.bin --arg f32:2 --arg u32:1024
//! ```
//!
//! On the emulator, which is the default, the sanitizer watches: its findings and the wavefronts of every shared-memory
//! access are the report, and a finding is a failure. On a GPU only the result and the time are known.
//! [`argument`] has the syntax of `--arg`.

mod argument;
mod element;
mod emulated;
mod list;
mod on_gpu;
mod profile;
mod report;
mod schedules;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use tilewright::emulator::{Device, Kernel, Module};
use tilewright::gpu::Gpu;

use self::argument::{Argument, Bound, Buffer, Content, Given, bind};
use self::report::Report;
use crate::error::{CliError, Outcome, finish};
use crate::{input, memory, output};

/// Bytes of the largest PTX file that is read.
const MOST_TEXT: u64 = 256 << 20;

/// Arguments of `run`.
#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // independent flags
pub(crate) struct RunArgs {
    /// The PTX file
    file: PathBuf,
    /// The kernel; not needed if the file has just one
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Run nothing: list the file's kernels and their parameters
    #[arg(long, conflicts_with_all = ["args", "buffers", "variables"])]
    list: bool,
    /// Blocks in x, y and z
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple, default_value = "1")]
    grid: [u32; 3],
    /// Threads of a block in x, y and z; as the kernel requires by default, else 32, one warp
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    block: Option<[u32; 3]>,
    /// Blocks of a cluster in x, y and z; as the kernel requires by default, else 1
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = triple)]
    cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// One argument, in the order of the parameters or by name: u32:5, n=u32:5, buf:f32:1024:random(7), x=buf:f32:in.bin=out.bin
    #[arg(long = "arg", value_name = "[NAME=]ARG", long_help = ARGUMENT_HELP, allow_hyphen_values = true)]
    args: Vec<String>,
    /// A buffer that arguments refer to by ref:NAME: rows=buf:u64:8:iota
    #[arg(long = "buffer", value_name = "NAME=BUF")]
    buffers: Vec<String>,
    /// On the emulator, a .global or .const variable of the file: count=u32:5, table=buf:f32:64:iota; a buf: is printed after the run
    #[arg(long = "variable", value_name = "NAME=ARG", allow_hyphen_values = true)]
    variables: Vec<String>,
    /// Where to run
    #[arg(long, value_enum, default_value_t = Place::Emulator)]
    on: Place,
    /// Elements of each buffer to print after the run
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    print: usize,
    /// On the emulator, check only bounds, alignment, barriers and deadlock
    #[arg(long)]
    no_sanitize: bool,
    /// On the emulator, also report these: what a kernel is free to do, but few mean to
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FINDINGS")]
    also: Vec<Extra>,
    /// On the emulator, refuse a file with an instruction that the emulator lacks, reached or not
    #[arg(long)]
    strict: bool,
    /// On the emulator, warp instructions of the whole run after which it is given up [default: 2³¹, of them 2²⁶ by one warp]
    #[arg(long, value_name = "COUNT")]
    step_limit: Option<u64>,
    /// On the emulator, try so many orders of blocks and warps, until one gives a finding or other results
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    schedules: u64,
    /// On the emulator, the order to start from: 0 is the usual one, others are seeds; what --schedules found runs again
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=u64::MAX / 2))]
    schedule: u64,
    /// On the emulator, the GPU that says how many blocks run at once: h100, a100, rtx4090, …
    #[arg(long, value_name = "NAME", value_parser = device, default_value = "h100")]
    device: Device,
    /// On the emulator, registers of a thread, for the same
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=255))]
    registers: u32,
    /// On the emulator, a cooperative launch: all blocks must run at once, and may synchronise
    #[arg(long)]
    cooperative: bool,
    /// On the emulator, count what each line costs: the instruction mix, wavefronts, sectors, bytes
    #[arg(long, value_name = "LINES", num_args = 0..=1, default_missing_value = "20")]
    profile: Option<usize>,
    /// On the emulator, the same as one page, annotated on the text
    #[arg(long, value_name = "FILE")]
    profile_html: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

const ARGUMENT_HELP: &str = "\
One argument, for the parameter NAME, or for the next parameter that no name takes:

  u32:5  s32:-1  u64:0x10  s64:…  f32:1.5  f64:nan    a number
  bytes:0011aabb                                      the bytes of a structure
  zero:128                                            so many bytes of zeros
  struct:u32:5,ref:x,tensor:…                         the members of a structure, each aligned to its size, a tensor map to 64 bytes
  buf:ELEMENT:COUNT[:FILL][=OUT]                      a buffer of COUNT elements
  buf:ELEMENT:FILE[=OUT]                              a buffer with a file's raw content
  ref:NAME[+BYTES]                                    a pointer into the buffer of parameter NAME or of --buffer NAME=…
  tensor:ELEMENT:SIZES:box=SIZES:of=NAME[+BYTES]      a tensor map of that buffer; SIZES are innermost first, 512x256. Further
                                                      keys: strides=BYTESx… steps= swizzle=32, 64, 128 fill=nan, and instead of
                                                      a box the lower= upper= channels= pixels= of im2col

  texture:TEXEL:SIZES:of=NAME[+BYTES]                 the handle of a texture or surface of that buffer; SIZES are innermost first.
                                                      Further keys: channels=1, 2, 4 layers= pitch=BYTES filter=point, linear
                                                      coords=texels, unit read=element, unit address=clamp, border, wrap, mirror border=

ELEMENT is u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 or f64. FILL is none (never written, the default), zero, iota,
random, random(SEED) or a number, nan and inf among them. OUT is a file that takes the raw content after the run.";

/// Where a kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// On a GPU if there is one, else on the emulator
    Auto,
    /// On the GPU
    Gpu,
    /// On the CPU, with the sanitizer
    Emulator,
}

/// What the emulator reports only if asked.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Extra {
    /// Reads of global memory that neither the command nor the kernel wrote
    UndefinedGlobal,
    /// Global memory that two blocks access, one of them storing
    GlobalRaces,
    /// Shared memory that lanes of one warp exchange without bar.warp.sync
    LaneRaces,
}

/// A launch, read and checked: what both places need.
struct Job<'a> {
    args: &'a RunArgs,
    ptx: String,
    arguments: Vec<Argument>,
    /// Buffers of `--buffer`.
    buffers: Vec<(String, Buffer)>,
    /// What `--variable` sets.
    variables: Vec<(String, Given)>,
}

/// Runs `run`.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    finish(try_run(args), args.json)
}

fn try_run(args: &RunArgs) -> Outcome {
    if args.list {
        return list::list(args);
    }
    let job = Job::read(args)?;
    let gpu = match args.on {
        Place::Emulator => None,
        Place::Gpu => Some(Gpu::open(0).map_err(|error| on_gpu::refusal(&error))?),
        Place::Auto => match Gpu::open(0) {
            Ok(gpu) => Some(gpu),
            Err(error) if error.means_no_gpu() => None,
            Err(error) => return Err(on_gpu::refusal(&error)),
        },
    };
    let report = match gpu {
        Some(gpu) => on_gpu::run(&job, &gpu)?,
        None => emulated::run(&job)?,
    };
    report.save(args.profile_html.as_deref())?;
    if args.json {
        output::print_json(&report.to_json(args.print));
    } else {
        output::print_line(&report.text(args.print));
    }
    Ok(if report.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl<'a> Job<'a> {
    fn read(args: &'a RunArgs) -> Result<Self, CliError> {
        let places = 1..;
        let arguments = places.zip(&args.args);
        let arguments = arguments
            .map(|(place, text)| Argument::parse(text, place))
            .collect::<Result<Vec<_>, _>>()?;
        let places = args.args.len() + 1..;
        let buffers = places.zip(&args.buffers);
        let buffers = buffers
            .map(|(place, text)| Argument::parse_buffer(text, place))
            .collect::<Result<Vec<_>, _>>()?;
        let places = args.args.len() + args.buffers.len() + 1..;
        let variables = places.zip(&args.variables);
        let variables = variables
            .map(|(place, text)| Argument::parse_variable(text, place))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            args,
            ptx: args.text()?,
            arguments,
            buffers,
            variables,
        })
    }

    /// The arguments, assigned to the parameters of the kernel if the emulator can read it.
    fn bind(&self, module: Option<&Module>, kernel: Option<&Kernel>) -> Result<Bound, CliError> {
        let parameters = kernel.map(|kernel| kernel.params().iter().map(list::parameter).collect());
        let parameters: Option<Vec<_>> = parameters;
        let variables: Vec<_> = module.map_or_else(Vec::new, list::variables);
        let known = (parameters.as_deref(), &variables[..]);
        let bound = bind(&self.arguments, &self.buffers, &self.variables, known)?;
        let sizes = bound
            .buffers
            .iter()
            .map(|(_, buffer)| match &buffer.content {
                Content::Filled(count, _) => u128::from(*count) * buffer.element.bytes() as u128,
                Content::File(path) => std::fs::metadata(path).map_or(0, |m| m.len().into()),
            });
        memory::for_buffers(sizes.sum())?;
        Ok(bound)
    }

    /// The kernel to run: the one asked for, or the only one of `names`.
    fn kernel(&self, names: &[String]) -> Result<String, CliError> {
        match (&self.args.kernel, names) {
            (Some(name), names) if names.contains(name) => Ok(name.clone()),
            (Some(name), names) => {
                let message = format!(
                    "{} has no kernel `{name}`; it has: {}",
                    self.file(),
                    names.join(", ")
                );
                Err(CliError::usage("no_such_kernel", message))
            }
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(CliError::new(
                "no_such_kernel",
                format!("{} has no kernel", self.file()),
            )),
            (None, names) => {
                let message = format!(
                    "{} has several kernels, choose one by --kernel: {}",
                    self.file(),
                    names.join(", ")
                );
                Err(CliError::usage("no_such_kernel", message))
            }
        }
    }

    fn file(&self) -> String {
        self.args.file.display().to_string()
    }

    /// The cluster to run with.
    fn cluster(&self, kernel: Option<&Kernel>) -> [u32; 3] {
        let required = kernel.and_then(Kernel::required_cluster);
        self.args.cluster.or(required).unwrap_or([1; 3])
    }

    fn new_report(
        &self,
        device: String,
        kernel: String,
        [block, cluster]: [[u32; 3]; 2],
    ) -> Report {
        let RunArgs { grid, shared, .. } = *self.args;
        Report::new(device, kernel, [grid, block, cluster], shared)
    }
}

impl RunArgs {
    /// The PTX.
    fn text(&self) -> Result<String, CliError> {
        let ptx = input::file(&self.file, MOST_TEXT, "a PTX file")?;
        String::from_utf8(ptx).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let file = self.file.display();
            let message = format!("{file} is not text (byte {at} is not UTF-8)");
            CliError::new("invalid_ptx", message)
        })
    }

    /// The file's kernels as the emulator reads them.
    fn module(&self, ptx: &str) -> Result<Module, CliError> {
        let parse = if self.strict {
            Module::parse_strict
        } else {
            Module::parse
        };
        parse(ptx).map_err(|error| emulated::unreadable(&self.file, ptx, &error))
    }
}

/// The bytes that a buffer holds at first; nothing for one that is not to be written.
fn content(buffer: &Buffer) -> Result<Option<Vec<u8>>, CliError> {
    match &buffer.content {
        Content::Filled(count, fill) => Ok(buffer.element.fill(*count as usize, *fill)),
        Content::File(path) => input::file(path, argument::MAX_BYTES, "a buffer").map(Some),
    }
}

/// `4`, `4,2` or `4,2,1`.
fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut triple = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("there are at most three dimensions".to_owned());
    }
    for (place, part) in triple.iter_mut().zip(parts) {
        *place = part
            .trim()
            .parse()
            .map_err(|_| format!("`{part}` is not a number of 32 bits"))?;
    }
    if triple.contains(&0) {
        return Err("every dimension is at least 1".to_owned());
    }
    Ok(triple)
}

/// A device by its name.
fn device(text: &str) -> Result<Device, String> {
    Device::named(text).ok_or_else(|| {
        let names: Vec<&str> = Device::ALL.iter().map(Device::name).collect();
        format!(
            "there is no device `{text}`; there are: {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{device, triple};

    #[test]
    fn devices_are_found_by_name() {
        assert_eq!(device("a100").map(|d| d.multiprocessors()), Ok(108));
        let error = device("a1000").expect_err("no device");
        assert!(
            error.contains("`a1000`") && error.contains("h100, "),
            "{error}"
        );
    }

    #[test]
    fn dimensions_are_read() {
        assert_eq!(triple("4"), Ok([4, 1, 1]));
        assert_eq!(triple("4,2"), Ok([4, 2, 1]));
        assert_eq!(triple("4, 2, 3"), Ok([4, 2, 3]));
        for bad in ["", "0", "1,0", "1,2,3,4", "-1", "4294967296", "x"] {
            assert!(triple(bad).is_err(), "{bad}");
        }
    }
}
