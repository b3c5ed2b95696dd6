//! The command `tilewright`, whose parts are in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewright_cli::main(std::env::args_os())
}
