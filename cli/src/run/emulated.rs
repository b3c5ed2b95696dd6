//! A run on the emulator.

use std::path::Path;

use tilewright::emulator::{
    self, Arg, GlobalMemory, Kernel, Launch, MemoryError, Module, Options, ParseError,
    ParseErrorKind, RunError, TensorMap, TensorMapError, Texture,
};

use super::argument::{Bound, Passed, Piece, SetVariable, Value};
use super::profile::Profile;
use super::report::{Buffer, Report, Watched};
use super::schedules::Schedules;
use super::{Extra, Job, content, list};
use crate::error::CliError;
use crate::progress;

/// Parses the file and runs its kernel, under several schedules if asked.
pub(super) fn run(job: &Job<'_>) -> Result<Report, CliError> {
    let module = job.args.module(&job.ptx)?;
    let names: Vec<String> = module.kernels().map(str::to_owned).collect();
    let name = job.kernel(&names)?;
    let kernel = module.kernel(&name);
    let block = job
        .args
        .block
        .or_else(|| kernel?.required_threads())
        .unwrap_or([32, 1, 1]);
    let bound = job.bind(Some(&module), kernel)?;
    let start = || Start::new(job, &bound, &module, kernel, block);
    let first = job.args.schedule;
    let (mut outcome, mut contents) = start()?.run(job, &module, &name, first)?;
    let mut schedules = Schedules::new(first);
    for seed in first + 1..first + job.args.schedules.max(1) {
        if !outcome.is_clean() {
            break;
        }
        let (other, after) = start()?.run(job, &module, &name, seed)?;
        if schedules.compare(seed, [&outcome, &other], &bound, [&contents, &after]) {
            (outcome, contents) = (other, after);
        }
    }

    let mut report = job.new_report(
        "emulator".to_owned(),
        name.clone(),
        [block, job.cluster(kernel)],
    );
    report.time_ms = outcome.wall.as_secs_f64() * 1e3;
    for ((name, buffer), content) in bound.buffers.into_iter().zip(contents) {
        report.buffers.push(Buffer {
            name,
            element: buffer.element,
            content,
            out: buffer.out,
        });
    }
    if job.args.schedules > 1 || first > 0 {
        report.schedules = Some(schedules);
    }
    if job.args.profile.is_some() || job.args.profile_html.is_some() {
        report.profile = Some(Profile::new(
            &name,
            &module,
            &job.ptx,
            &outcome,
            job.args.profile,
        ));
    }
    report.watched = Some(Watched {
        report: outcome,
        sanitized: !job.args.no_sanitize,
    });
    Ok(report)
}

/// Memory with the buffers, and the launch.
struct Start {
    memory: GlobalMemory,
    /// Address and size of each buffer.
    places: Vec<(u64, u64)>,
    launch: Launch,
}

impl Start {
    fn new(
        job: &Job<'_>,
        bound: &Bound,
        module: &Module,
        kernel: Option<&Kernel>,
        block: [u32; 3],
    ) -> Result<Self, CliError> {
        let mut memory = GlobalMemory::new();
        let mut places = Vec::new();
        for (_, buffer) in &bound.buffers {
            let content = content(buffer)?;
            let bytes = buffer.len_bytes(content.as_deref());
            let address = memory.alloc(bytes, 256).map_err(refuse)?;
            if let Some(content) = content {
                memory.write(address, &content).map_err(refuse)?;
            }
            places.push((address, bytes));
        }
        let addresses: Vec<u64> = places.iter().map(|(address, _)| *address).collect();
        let known = list::variables(module);
        let mut variables = Vec::new();
        for (name, set) in &bound.variables {
            let address = match set {
                SetVariable::Buffer(buffer) => {
                    let (address, bytes) = places[*buffer];
                    let variable = known.iter().find(|v| v.name == *name);
                    variable.map_or(Ok(()), |v| v.check(Some(bytes)))?;
                    address
                }
                SetVariable::Bytes(passed) => {
                    let bytes = passed.bytes(&addresses, &mut |piece, at| {
                        piece_bytes(&mut memory, piece, at)
                    })?;
                    let address = memory.alloc(bytes.len() as u64, 256).map_err(refuse)?;
                    memory.write(address, &bytes).map_err(refuse)?;
                    address
                }
            };
            variables.push((name.clone(), address));
        }
        let args = bound.passed.iter().map(|passed| match passed {
            Passed::Value(value) => Ok(by_value(value)),
            Passed::Address(place) => Ok(Arg::Ptr(place.address(&addresses))),
            Passed::Structure(..) => {
                let bytes = passed.bytes(&addresses, &mut |piece, at| {
                    piece_bytes(&mut memory, piece, at)
                });
                bytes.map(Arg::Bytes)
            }
        });
        let launch = Launch {
            grid: job.args.grid,
            block,
            cluster: job.cluster(kernel),
            dynamic_shared: job.args.shared,
            cooperative: job.args.cooperative,
            args: args.collect::<Result<Vec<Arg>, CliError>>()?,
            variables,
        };
        Ok(Self {
            memory,
            places,
            launch,
        })
    }

    /// The report and the contents of the buffers after a run with the schedule `seed`.
    fn run(
        mut self,
        job: &Job<'_>,
        module: &Module,
        name: &str,
        seed: u64,
    ) -> Result<(emulator::Report, Vec<Vec<u8>>), CliError> {
        let (bar, of_blocks) = progress::blocks();
        let options = Options {
            sanitize: !job.args.no_sanitize,
            undefined_global: job.args.also.contains(&Extra::UndefinedGlobal),
            global_races: job.args.also.contains(&Extra::GlobalRaces),
            lane_races: job.args.also.contains(&Extra::LaneRaces),
            step_limit: job.args.step_limit.unwrap_or(1 << 26),
            total_step_limit: job.args.step_limit.unwrap_or(1 << 31),
            profile: job.args.profile.is_some() || job.args.profile_html.is_some(),
            schedule: seed,
            device: job.args.device,
            registers: job.args.registers,
            progress: Some(of_blocks),
            ..Options::default()
        };
        let result = emulator::run(module, name, &self.launch, &mut self.memory, &options);
        bar.finish_and_clear();
        let outcome = result.map_err(|error| match &error {
            RunError::Unsupported(missing) => unreadable(&job.args.file, &job.ptx, missing),
            _ => impossible(&error),
        })?;
        let contents = self.places.iter().map(|(address, bytes)| {
            let content = self.memory.read(*address, *bytes as usize);
            content.map_err(refuse)
        });
        Ok((outcome, contents.collect::<Result<_, _>>()?))
    }
}

/// The bytes of a piece whose array lies at `address`.
fn piece_bytes(
    memory: &mut GlobalMemory,
    piece: &Piece,
    address: u64,
) -> Result<Vec<u8>, CliError> {
    match piece {
        Piece::Address(_) => Ok(address.to_le_bytes().into()),
        Piece::Tensor(map, _) => {
            let map = TensorMap {
                address,
                ..(**map).clone()
            };
            let refuse = |e: TensorMapError| CliError::usage("wrong_tensor_map", e.to_string());
            map.encode().map(|bytes| bytes.to_vec()).map_err(refuse)
        }
        Piece::Texture(texture, _) => {
            let texture = Texture {
                address,
                ..(**texture).clone()
            };
            let refuse = |e: MemoryError| CliError::usage("wrong_texture", e.to_string());
            let handle = memory.bind_texture(texture).map_err(refuse)?;
            Ok(handle.to_le_bytes().into())
        }
    }
}

fn refuse(error: MemoryError) -> CliError {
    impossible(&error.into())
}

fn by_value(value: &Value) -> Arg {
    match value {
        Value::U32(value) => Arg::U32(*value),
        Value::S32(value) => Arg::S32(*value),
        Value::U64(value) => Arg::U64(*value),
        Value::S64(value) => Arg::U64(*value as u64),
        Value::F32(value) => Arg::F32(*value),
        Value::F64(value) => Arg::F64(*value),
        Value::Bytes(bytes) => Arg::Bytes(bytes.clone()),
    }
}

/// The error of a text that the emulator can't read, with its line.
pub(super) fn unreadable(file: &Path, ptx: &str, error: &ParseError) -> CliError {
    let code = match error.kind {
        ParseErrorKind::UnknownInstruction(_) => "unknown_instruction",
        ParseErrorKind::Unsupported(_) | ParseErrorKind::UnknownModifier { .. } => {
            "unsupported_instruction"
        }
        _ => "invalid_ptx",
    };
    let span = span(ptx, error.line as usize, error.column as usize);
    CliError::new(code, format!("{}:{error}", file.display())).at(span, ptx)
}

/// The bytes of the word at a line and a column in characters, both from 1.
fn span(text: &str, line: usize, column: usize) -> (usize, usize) {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = &text[line_start..];
    let before = rest
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(rest.len(), |(at, _)| at);
    let word = rest[before..].find(|c: char| c.is_whitespace() || ",;()[]{}".contains(c));
    let start = line_start + before;
    (
        start,
        start
            + word
                .unwrap_or(rest.len() - before)
                .max(1)
                .min(text.len() - start),
    )
}

/// A launch that can't start: bad usage, unless it is for want of memory or threads.
fn impossible(error: &RunError) -> CliError {
    let mut message = error.to_string();
    if let RunError::ArgumentSize {
        expected, found, ..
    } = error
        && found < expected
    {
        let missing = expected - found;
        message.push_str("; a structure may end with zero:");
        message.push_str(&missing.to_string());
    }
    match error {
        RunError::UnknownKernel { .. } => CliError::usage("no_such_kernel", message),
        RunError::ArgumentCount { .. }
        | RunError::ArgumentSize { .. }
        | RunError::ArgumentType { .. }
        | RunError::Variable(_) => CliError::usage("wrong_arguments", message),
        RunError::Geometry(_) | RunError::SharedMemory { .. } => {
            CliError::usage("invalid_launch", message)
        }
        RunError::Memory(_) => CliError::new("emulator_memory", message),
        _ => CliError::new("emulator", message),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn a_line_and_a_column_are_a_place_in_the_text() {
        let text = "one\n  é frob.u32 %r1, x;\n";
        let (start, end) = span(text, 2, 5);
        assert_eq!(&text[start..end], "frob.u32");
        let (start, end) = span(text, 2, 14);
        assert_eq!(&text[start..end], "%r1");
        for line in 0..5 {
            for column in 0..30 {
                let (start, end) = span(text, line, column);
                assert!(start <= end && end <= text.len());
            }
        }
    }
}
