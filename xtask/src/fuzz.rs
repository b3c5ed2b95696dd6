//! `cargo xtask fuzz`: random kernels, proven and run.
//!
//! The work is that of `tests/fuzz_kernels`, of which every `cargo test` does a fixed part. What it prints is its own: one line of JSON, and on standard
//! error each program that was proven and is wrong.

use std::process::{Command, ExitCode};

use crate::workspace_root;

/// Runs it with its arguments (`--seed N`, `--programs M`, `--program I` for one of them), built in release.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--release", "--package", "tilewright"])
        .args([
            "--features",
            "host,emulator",
            "--test",
            "fuzz_kernels",
            "--",
        ])
        .args(args)
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
