//! The subcommand `eval`: one expression, or one a line from standard input.
//!
//! With `--stdin` every line gets exactly one line of answer, errors included, and none of them ends the run; the exit
//! code then says only whether the lines could be read. A line is answered before the program waits for the next one, so
//! that it can be driven as a coprocess. Without `--json` an error on a line is answered by
//! `error: CODE at START..END: MESSAGE`.

use std::io::{self, Write};
use std::process::ExitCode;

use tilewright_workbench::{MAX_LENGTH, evaluate, too_long};

use crate::error::{CliError, report};
use crate::{input, output};

/// Arguments of `eval`.
#[derive(clap::Args)]
pub(crate) struct EvalArgs {
    /// The expression, such as '(4,(2,2)):(2,(1,8)) o 4:2' or 'cosize((4,8):(16,1))'
    #[arg(
        required_unless_present = "stdin",
        conflicts_with = "stdin",
        allow_hyphen_values = true
    )]
    expression: Option<String>,

    /// Read one expression a line from standard input and answer one line each
    #[arg(long)]
    stdin: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `eval`.
pub(crate) fn run(args: &EvalArgs) -> ExitCode {
    match &args.expression {
        // Expressions may start with a minus, so clap lets misspelt options through.
        Some(text) if misspelt_option(text) => {
            let message = format!("unexpected argument '{text}' found");
            report(&CliError::usage("usage", message), args.json)
        }
        Some(text) => one(text, args.json),
        None => match lines(args.json) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let message = format!("standard input: {error}");
                report(&CliError::new("io", message), args.json)
            }
        },
    }
}

fn misspelt_option(text: &str) -> bool {
    text.strip_prefix("--")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn one(text: &str, json: bool) -> ExitCode {
    match evaluate(text) {
        Ok(value) => {
            if json {
                output::print_json(&value.to_json());
            } else {
                output::print_line(&value.to_string());
            }
            ExitCode::SUCCESS
        }
        Err(error) => report(&error, json),
    }
}

/// Answers every line of standard input. The error is of reading; once an answer can't be written, no more lines are read.
fn lines(json: bool) -> io::Result<()> {
    let mut lines = io::BufReader::new(io::stdin().lock());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    loop {
        // Nothing more to answer at once: whoever sent the last line may wait for its answer.
        if !lines.buffer().contains(&b'\n')
            && let Err(error) = out.flush()
        {
            output::written(Err(error));
            return Ok(());
        }
        // What is answered by then is written in any case. One byte beyond the limit shows that the line is longer; its end may have two more.
        let read = input::line(&mut lines, &mut line, MAX_LENGTH + 3);
        let Ok(Some(length)) = read else {
            output::written(out.flush());
            return read.map(|_| ());
        };
        let result = match std::str::from_utf8(&line) {
            // Says how long the whole line is, which was not kept.
            _ if length > line.len() as u64 => Err(too_long(length as usize)),
            Ok(text) => evaluate(text.trim_end_matches(['\n', '\r'])),
            Err(error) => {
                let at = error.valid_up_to();
                let message = "the line is not UTF-8 text";
                Err(CliError::new("not_utf8", message).at((at, line.len()), ""))
            }
        };
        let answer = match (result, json) {
            (Ok(value), true) => value.to_json().to_string(),
            (Ok(value), false) => value.to_string(),
            (Err(error), true) => error.to_json().to_string(),
            (Err(error), false) => {
                let (start, end) = error.span().unwrap_or_default();
                format!(
                    "error: {} at {start}..{end}: {}",
                    error.code(),
                    error.message()
                )
            }
        };
        if let Err(error) = writeln!(out, "{answer}") {
            output::written(Err(error));
            return Ok(());
        }
    }
}
