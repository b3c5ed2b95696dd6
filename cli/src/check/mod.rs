//! `tilewright check -- PROGRAM ARGS…`: a CUDA program on the emulator, with its sanitizer.
//!
//! The program stays as it is. It finds the library of the crate `tilewright-driver` under the name of the CUDA driver, since a folder with that name for it is put in front
//! of `LD_LIBRARY_PATH`; the library writes a report for each process, and this command puts them together. A finding is a failure, and so is a program that
//! fails or never reaches the driver: then nothing was checked.

mod report;
mod sarif;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use clap::ValueEnum;
use tempfile::TempDir;

use crate::error::{CliError, Outcome, finish};
use crate::output;
use report::Checked;

/// Run a CUDA program on the emulator as its driver, and report what its kernels do wrong
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// The program and its arguments
    #[arg(
        required = true,
        last = true,
        value_name = "PROGRAM",
        allow_hyphen_values = true
    )]
    program: Vec<std::ffi::OsString>,
    /// The library that stands in for the driver [default: the one beside the command, or in ../lib]
    #[arg(long, value_name = "FILE")]
    driver: Option<PathBuf>,
    /// The GPU that the program sees: h100, a100, rtx4090, b200, rtx5090; several with commas between
    #[arg(long, value_name = "NAME", default_value = "h100")]
    device: String,
    /// Check only kernels with this in their names; the others run without the sanitizer
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Do not run kernels with this in their names: the memory that their arguments point to is filled with NaNs
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// Run only about so many blocks of each launch; the results of the others are missing
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Also report these: what a kernel is free to do, but few mean to
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FINDINGS")]
    also: Vec<Extra>,
    /// Write the findings as SARIF 2.1.0, which code hosts show beside the source
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Print one JSON value; the program's standard output goes to standard error
    #[arg(long)]
    json: bool,
}

/// What is reported only if asked.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Extra {
    /// Shared memory that lanes of one warp exchange without bar.warp.sync
    LaneRaces,
}

/// The library's file name, as cargo builds it.
const LIBRARY: &str = "libtilewright_driver.so";

/// Runs `check`.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    finish(try_run(args), args.json)
}

fn try_run(args: &CheckArgs) -> Outcome {
    if !cfg!(target_os = "linux") {
        let message =
            "the stand-in for the CUDA driver is a library for Linux: run the check there";
        return Err(CliError::new("unsupported_system", message));
    }
    if let Some(path) = &args.sarif {
        output::named(path)?;
    }
    let library = library(args.driver.as_deref())?;
    let folder = tempfile::tempdir().map_err(|e| CliError::io(&std::env::temp_dir(), &e))?;
    let status = start(args, &library, &folder)?;
    let checked = Checked::read(&folder.path().join("reports"), status, &args.program[0])?;
    if !args.kernel.is_empty() && checked.is_unchecked() {
        let message = format!(
            "no kernel with {} in its name was launched; these were: {}",
            args.kernel.join(" or "),
            checked.names()
        );
        return Err(CliError::new("no_such_kernel", message));
    }
    if let Some(path) = &args.sarif {
        let text = sarif::sarif(&checked).to_string() + "\n";
        output::write_atomically(path, text.as_bytes())?;
    }
    if args.json {
        output::print_json(&checked.to_json());
    } else {
        output::print_line(&checked.text());
    }
    Ok(if checked.passed() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The library that stands in for the driver.
fn library(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return std::fs::canonicalize(given).map_err(|e| CliError::io(given, &e));
    }
    let command = std::env::current_exe().map_err(|e| CliError::io(Path::new("tilewright"), &e))?;
    let folder = command.parent().unwrap_or(Path::new("."));
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    let found = places.iter().find_map(|p| std::fs::canonicalize(p).ok());
    found.ok_or_else(|| {
        let message = format!(
            "there is no {LIBRARY} in {}: build it with `cargo build --release -p tilewright-driver`, or name it by --driver FILE",
            folder.display()
        );
        CliError::new("no_driver_library", message)
    })
}

/// Runs the program with the library as its driver.
fn start(args: &CheckArgs, library: &Path, folder: &TempDir) -> Result<ExitStatus, CliError> {
    let (libraries, reports) = (folder.path().join("lib"), folder.path().join("reports"));
    for folder in [&libraries, &reports] {
        std::fs::create_dir(folder).map_err(|e| CliError::io(folder, &e))?;
    }
    #[cfg(unix)]
    for name in ["libcuda.so.1", "libcuda.so"] {
        let link = libraries.join(name);
        std::os::unix::fs::symlink(library, &link).map_err(|e| CliError::io(&link, &e))?;
    }
    #[cfg(not(unix))]
    let _ = library;
    let mut path = libraries.into_os_string();
    if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|p| !p.is_empty()) {
        path.push(":");
        path.push(before);
    }
    let [program, arguments @ ..] = &args.program[..] else {
        return Err(CliError::usage("usage", "name a program behind `--`"));
    };
    let mut command = Command::new(program);
    let sample = args.sample.map(|n| n.to_string()).unwrap_or_default();
    let also = if args.also.contains(&Extra::LaneRaces) {
        "lane-races"
    } else {
        ""
    };
    command
        .args(arguments)
        .env("LD_LIBRARY_PATH", path)
        .env("TILEWRIGHT_REPORT", reports.join("%p.json"))
        .env("TILEWRIGHT_DEVICE", &args.device)
        .env("TILEWRIGHT_KERNELS", args.kernel.join(","))
        .env("TILEWRIGHT_SKIP", args.skip.join(","))
        .env("TILEWRIGHT_SAMPLE", sample)
        .env("TILEWRIGHT_ALSO", also);
    if args.json {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    command.status().map_err(|e| {
        let message = format!("{} can't be started: {e}", program.display());
        CliError::new("program", message)
    })
}
