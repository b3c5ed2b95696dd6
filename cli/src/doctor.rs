//! `tilewright doctor`: what this machine can do.

use std::process::ExitCode;

use serde_json::json;

use crate::output;

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

/// Runs `doctor`.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    if args.json {
        output::print_json(&json!({"version": version}));
    } else {
        output::print_line(&format!("tilewright {version}"));
    }
    ExitCode::SUCCESS
}
