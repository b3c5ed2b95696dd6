//! Development tasks, run as `cargo xtask TASK`.
//!
//! `cargo xtask test` is the one test command: CI runs it, and so does a developer before a change is handed in. It does
//! its own set-up (the only tool that is not a crate is NVIDIA's assembler, see [`ptxas`]), runs every step even when an
//! earlier one failed, and ends with one line that says what passed. There is no second script to keep in step with it.

mod binaries;
mod fuzz;
mod kernels;
mod msrv;
mod opencl;
mod packages;
mod page;
mod ptxas;
mod python;
mod steps;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

tasks:
  test [--no-ptxas]   everything CI runs: formatting, lints, tests, docs, ptxas over the kernels
  kernels [--write]   compare every kernel with tests/golden/kernels.csv, or write that table anew
  fuzz [--hopper] [--seed N] [--programs M]
                      prove and run M random kernels; --program I runs one of them
  page                build the page in the browser, target/page/index.html
  python              build the package for Python and run its tests in an empty environment
  ptxas               fetch NVIDIA's PTX assembler into target/tools and print its path

PTXAS=/path/to/ptxas takes an assembler of your own instead of fetching one.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["test"] => steps::test(steps::Ptxas::Fetch),
        ["test", "--no-ptxas"] => steps::test(steps::Ptxas::LeaveOut),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["page"] => match page::build() {
            Ok(path) => {
                println!("{}", path.display());
                ExitCode::SUCCESS
            }
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        },
        ["python"] => match python::maturin().and_then(|maturin| python::test(&maturin, &[])) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        },
        ["kernels"] => kernels::run("check"),
        ["kernels", "--write"] => kernels::run("write"),
        ["ptxas"] => match ptxas::provide(&workspace_root()) {
            Ok(path) => {
                println!("{}", path.display());
                ExitCode::SUCCESS
            }
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::FAILURE
            }
        },
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The folder of the workspace's `Cargo.toml`: the parent of this crate's.
fn workspace_root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}
