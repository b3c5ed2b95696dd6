//! `cargo xtask fuzz`: random kernels, proven and run.
//!
//! The work is that of `tests/fuzz_kernels` and `tests/fuzz_hopper`, of which every `cargo test` does a fixed part. What it prints is its own: one line of JSON, and on standard
//! error each program that was proven and is wrong.

use std::process::{Command, ExitCode};

use crate::workspace_root;

/// Runs it with its arguments (`--seed N`, `--programs M`, `--program I` for one of them), built in release; with `--hopper` that of `tests/fuzz_hopper`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let hopper = args.contains(&"--hopper");
    let test = if hopper {
        "fuzz_hopper"
    } else {
        "fuzz_kernels"
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--release", "--package", "tilewright"])
        .args(["--features", "host,emulator", "--test", test, "--"])
        .args(args.iter().filter(|arg| **arg != "--hopper"))
        .current_dir(workspace_root())
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: cargo does not start: {error}");
            ExitCode::FAILURE
        }
    }
}
