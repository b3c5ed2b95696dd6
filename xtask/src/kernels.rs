//! `cargo xtask kernels`: the golden table of kernels, all of it.
//!
//! The work is that of `tests/kernel_table`, which knows the product of all variants and looks at a share of it in every `cargo test`;
//! `TILEWRIGHT_KERNELS` tells it to go through the whole. It is built in release, since it emits thousands of kernels.

use std::process::{Command, ExitCode};

use crate::{ptxas, workspace_root};

/// Runs the test over the whole table; `mode` is `check` or `write`.
pub(crate) fn run(mode: &str) -> ExitCode {
    let path = match ptxas::provide(&workspace_root()) {
        Ok(path) => path,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::FAILURE;
        }
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--release", "--package", "tilewright"])
        .args(["--features", "gpu", "--test", "kernel_table", "--"])
        .args([
            "--exact",
            "no_kernel_is_worse_than_the_table_says",
            "--nocapture",
        ])
        .current_dir(workspace_root())
        .env("PTXAS", path)
        .env("TILEWRIGHT_KERNELS", mode)
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
