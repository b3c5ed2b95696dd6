//! What the examples share: flags, numbers, the launch, the report as text or as one JSON object.
//!
//! The contract is that of the command `tilewright`: with `--json` there is one JSON value on standard output and nothing else; progress and
//! diagnostics go to standard error; the exit code is 0 on success, 1 if the kernel failed or could not run, 2 on bad usage.

mod number;

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use serde_json::{Value, json};
use tilewright::codegen::prove::AccessProof;
use tilewright::host::{
    Arg, Contract, Language, On, Outcome, OutcomeError, RunError, RunOptions, Runnable, Scalar,
    UnknownLanguage, run_with,
};

pub(crate) use number::Number;

/// Where to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Device {
    /// A GPU if there is one, else the emulator
    Auto,
    /// The first GPU
    Gpu,
    /// The CPU
    Emulator,
    /// Nowhere: only the proof, the text and the launch contract
    None,
}

/// The flags of every example.
#[derive(Args, Clone, Debug)]
pub(crate) struct Flags {
    /// Where to run
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) on: Device,
    /// Seed of the random input
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the PTX to this file
    #[arg(long, value_name = "FILE.ptx")]
    pub(crate) emit: Option<PathBuf>,
    /// Write the launch for a host in a language: rust, cudarc, c or python
    #[arg(long, value_names = ["LANGUAGE", "FILE"], num_args = 2)]
    pub(crate) emit_host: Option<Vec<String>>,
    /// Print one JSON value
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs on a GPU after the first, of which the time is the median.
const REPEATS: usize = 20;

impl Flags {
    /// Whether anything is run.
    pub(crate) fn runs(&self) -> bool {
        self.on != Device::None
    }

    /// Runs the kernel where the flags say.
    ///
    /// # Errors
    ///
    /// Those of [`run_with`].
    pub(crate) fn launch<'n, 'a>(
        &self,
        kernel: &dyn Runnable,
        args: impl IntoIterator<Item = (&'n str, Arg<'a>)>,
    ) -> Result<Outcome, Failure> {
        let on = match self.on {
            Device::Gpu => On::Gpu,
            Device::Emulator => On::Emulator,
            Device::Auto | Device::None => On::Auto,
        };
        let options = RunOptions {
            repeats: REPEATS,
            ..RunOptions::default()
        };
        let outcome = run_with(kernel, on, args, &options)?;
        eprintln!(
            "`{}` on {} ({})",
            kernel.entry(),
            outcome.device,
            outcome.why
        );
        Ok(outcome)
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A stable name, in `snake_case`.
    pub(crate) code: String,
    /// A sentence for people.
    pub(crate) message: String,
    /// The command line itself is wrong.
    pub(crate) usage: bool,
}

impl Failure {
    /// What was asked for cannot be done.
    pub(crate) fn new(code: impl Into<String>, message: impl Display) -> Self {
        Self {
            code: code.into(),
            message: message.to_string(),
            usage: false,
        }
    }

    /// The kernel could not be built.
    pub(crate) fn unproven(error: impl Display) -> Self {
        Self::new("not_proven", error)
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        Self::new(e.code(), e)
    }
}

impl From<OutcomeError> for Failure {
    fn from(e: OutcomeError) -> Self {
        Self::new("outcome", e)
    }
}

/// A size: whole and not negative.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(v) if v < 0 => Err(format!("{v} is negative; sizes are 0 or more")),
        Ok(v) => u64::try_from(v).map_err(|_| format!("{v} is too large")),
        Err(_) => Err("give a whole number".to_owned()),
    }
}

/// A size as an argument of a kernel; one that does not fit its type is refused with the range of the parameter.
#[allow(dead_code)] // Products have their sizes in the plan.
pub(crate) fn extent(name: &str, size: u64) -> (&str, Scalar) {
    (
        name,
        u32::try_from(size).map_or(Scalar::U64(size), Scalar::U32),
    )
}

/// The elements of a buffer of these extents, if `bytes` bytes for each fit into free memory.
///
/// # Errors
///
/// `too_large`.
pub(crate) fn fits(extents: &[u64], bytes: usize) -> Result<usize, Failure> {
    let count = extents
        .iter()
        .fold(1u128, |n, &e| n.saturating_mul(e.into()));
    let needed = count.saturating_mul(bytes as u128);
    let free = free_memory();
    if needed > free {
        let gib = |bytes: u128| bytes.div_ceil(1 << 30);
        let (needed, free) = (gib(needed), gib(free));
        let message = format!(
            "the buffers and their check take {needed} GiB of memory, and {free} GiB are free: take smaller sizes, or `--on none`"
        );
        return Err(Failure::new("too_large", message));
    }
    Ok(count as usize)
}

/// Bytes of memory that are free, where Linux says it, else 16 GiB.
fn free_memory() -> u128 {
    let known = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
            line.split_whitespace().next()?.parse::<u128>().ok()
        });
    known.map_or(16 << 30, |kib| kib << 10)
}

/// What there is to say of a kernel and a run of it.
pub(crate) struct Report {
    accesses: Vec<AccessProof>,
    launch: Value,
    device: String,
    passed: Option<bool>,
    max_abs_err: Option<f64>,
    findings: Vec<String>,
    measured: Vec<(String, u32)>,
    time_ms: Option<f64>,
}

impl Report {
    /// The report of a kernel for these sizes and numbers, before it runs. Writes the file that the flags ask for.
    ///
    /// # Errors
    ///
    /// Sizes that the kernel was not proven for, and a file that cannot be written.
    pub(crate) fn new(
        kernel: &dyn Runnable,
        flags: &Flags,
        scalars: &[(&str, Scalar)],
    ) -> Result<Self, Failure> {
        let contract = Contract::new(kernel, scalars.iter().cloned())?;
        let write = |path: &Path, text: &str| {
            let written = std::fs::write(path, text);
            written.map_err(|e| Failure::new("io", format!("{}: {e}", path.display())))
        };
        if let Some([language, path]) = flags.emit_host.as_deref() {
            let language: Language = language.parse().map_err(|e: UnknownLanguage| Failure {
                usage: true,
                ..Failure::new("unknown_language", e)
            })?;
            write(Path::new(path), &contract.host(language)?)?;
        }
        if let Some(path) = &flags.emit {
            write(path, kernel.ptx())?;
        }
        let launch = contract.to_json();
        Ok(Self {
            accesses: kernel.accesses(),
            launch,
            device: "none".to_owned(),
            passed: None,
            max_abs_err: None,
            findings: Vec::new(),
            measured: Vec::new(),
            time_ms: None,
        })
    }

    /// Adds what a run gave: it passes if no error is above the tolerance, nothing was found, and every access took as many wavefronts as
    /// were proven.
    #[allow(dead_code)] // Some examples have a bound for each element.
    pub(crate) fn ran(&mut self, outcome: &Outcome, max_abs_err: f64, tolerance: f64) {
        self.ran_within(outcome, max_abs_err, max_abs_err <= tolerance);
    }

    /// Adds what a run gave: as [`Report::ran`], where it is known whether each element is within its bound.
    pub(crate) fn ran_within(&mut self, outcome: &Outcome, max_abs_err: f64, within: bool) {
        let findings = outcome.findings();
        for finding in &findings {
            eprintln!("finding: {finding}");
        }
        let measured = outcome.accesses.iter();
        let measured = measured.filter_map(|a| Some((a.proof.access.clone(), a.wavefronts?.1)));
        self.measured = measured.collect();
        self.passed = Some(findings.is_empty() && within);
        self.max_abs_err = max_abs_err.is_finite().then_some(max_abs_err);
        self.findings = findings;
        self.time_ms = outcome.time_ms;
        self.device.clone_from(&outcome.device);
    }

    /// The JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let measured = |name: &str| {
            self.measured
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, w)| w)
        };
        let accesses = self.accesses.iter();
        let smem = accesses.map(|a| {
            json!({
                "access": a.access, "op": a.op.to_string(), "wavefronts": a.wavefronts, "ideal": a.ideal,
                "measured": measured(&a.access),
            })
        });
        json!({
            "device": self.device,
            "passed": self.passed,
            "max_abs_err": self.max_abs_err,
            "findings": self.findings.len(),
            "smem": smem.collect::<Vec<_>>(),
            "launch": self.launch,
            "time_ms": self.time_ms,
        })
    }
}

/// The report for people.
fn text(report: &Value) -> String {
    let mut lines = vec!["shared memory          wavefronts: proven  ideal  counted".to_owned()];
    let or_dash = |v: &Value| {
        if v.is_null() {
            "-".to_owned()
        } else {
            v.to_string()
        }
    };
    for a in report["smem"].as_array().into_iter().flatten() {
        let [name, op] = ["access", "op"].map(|key| a[key].as_str().unwrap_or_default());
        let [proven, ideal, counted] =
            ["wavefronts", "ideal", "measured"].map(|key| or_dash(&a[key]));
        lines.push(format!(
            "  {name:<16} {op:<13} {proven:>8} {ideal:>6} {counted:>8}"
        ));
    }
    let launch = &report["launch"];
    lines.push(if launch.is_null() {
        "nothing to launch".to_owned()
    } else {
        format!("grid {}, block {}", launch["grid"], launch["block"])
    });
    for stated in launch["assumptions"].as_array().into_iter().flatten() {
        let [condition, reason] = ["condition", "reason"].map(|k| stated[k].as_str());
        lines.push(format!(
            "assumed: {} ({})",
            condition.unwrap_or_default(),
            reason.unwrap_or_default()
        ));
    }
    if let Some(ms) = report["time_ms"].as_f64() {
        lines.push(format!("{ms:.4} ms on {}", report["device"]));
    }
    let verdict = match report["passed"].as_bool() {
        None => "proven, not run",
        Some(true) => "passed",
        Some(false) => "FAILED",
    };
    lines.push(format!("{verdict}\n"));
    lines.join("\n")
}

/// Reads the command line, runs the command (which also says whether `--json` was given), and shows what it gives.
pub(crate) fn main<C: Parser>(run: impl Fn(&C) -> (bool, Result<Value, Failure>)) -> ExitCode {
    let command = match C::try_parse() {
        Ok(command) => command,
        Err(error) => return refuse(&error),
    };
    match run(&command) {
        (json, Ok(report)) => {
            let shown = if json {
                format!("{report}\n")
            } else {
                text(&report)
            };
            print(&shown);
            ExitCode::from(u8::from(report["passed"] == false))
        }
        (json, Err(failure)) => fail(&failure, json),
    }
}

fn fail(failure: &Failure, json: bool) -> ExitCode {
    if json {
        let error = json!({"error": {"code": failure.code, "message": failure.message}});
        print(&format!("{error}\n"));
    } else {
        eprintln!("error: {}", failure.message);
    }
    ExitCode::from(if failure.usage { 2 } else { 1 })
}

/// A reader that has gone away has seen what it wanted.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Shows clap's help or its error; the latter as JSON if that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let first = text.split("\n\n").next().unwrap_or(text);
        let words: Vec<_> = first.split_whitespace().collect();
        let message = words.join(" ");
        return fail(
            &Failure {
                usage: true,
                ..Failure::new("usage", message)
            },
            true,
        );
    }
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
