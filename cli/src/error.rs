//! How the command reports what it can't do.
//!
//! Its one error type is the workbench's [`Refusal`]: a stable code, a sentence, the place in the user's text, and whether the command line
//! itself was wrong (exit code 2) or the answer is negative (exit code 1). People read it on standard error with the place underlined; under
//! `--json` it is `{"error":{"code":"syntax","message":"…","span":[3,4]}}` on standard output and nothing is written to standard error.

use std::process::ExitCode;

use tilewright_workbench::Refusal;

use crate::output;

/// A failure of the command, ready to be shown to people or programs.
pub(crate) type CliError = Refusal;

/// What a subcommand returns: the exit code, or the error to report.
pub(crate) type Outcome = Result<ExitCode, CliError>;

/// Writes the error to standard output (`json`) or to standard error, and says how the command exits.
pub(crate) fn report(error: &CliError, json: bool) -> ExitCode {
    if json {
        output::print_json(&error.to_json());
    } else {
        eprint!("{}", error.text());
    }
    ExitCode::from(if error.is_usage() { 2 } else { 1 })
}

/// The exit code of `outcome`, its error reported.
pub(crate) fn finish(outcome: Outcome, json: bool) -> ExitCode {
    outcome.unwrap_or_else(|error| report(&error, json))
}
