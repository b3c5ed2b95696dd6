//! The subcommand `eval`: one expression, or one a line from standard input.
//!
//! With `--stdin` every line gets exactly one line of answer, errors included, and none of them ends the run; the exit
//! code then says only whether the lines could be read. A line is answered before the program waits for the next one, so
//! that it can be driven as a coprocess. Without `--json` an error on a line is answered by
//! `error: CODE at START..END: MESSAGE`.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright_workbench::{Evaluated, MAX_LENGTH, Notation, evaluate, too_long};

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

    /// Write the value as another library does: pycute, cute, cute-cpp, cute-dsl, triton, triton:16x8, triton-shared
    #[arg(long, value_name = "NAME", default_value = "tilewright")]
    notation: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How answers are written.
struct Writer {
    notation: Notation,
    /// Whether the notation is another than ours.
    foreign: bool,
    json: bool,
}

impl Writer {
    fn json(&self, value: &Evaluated) -> Result<Value, CliError> {
        let mut answer = value.to_json();
        if self.foreign {
            answer["written"] = json!(value.written(&self.notation)?);
        }
        Ok(answer)
    }

    /// The answer on one line, as it was asked for.
    fn line(&self, value: &Evaluated) -> Result<String, CliError> {
        if self.json {
            return Ok(self.json(value)?.to_string());
        }
        value.written(&self.notation)
    }
}

/// Runs `eval`.
pub(crate) fn run(args: &EvalArgs) -> ExitCode {
    let writer = match Notation::named(&args.notation) {
        Ok(notation) => Writer {
            notation,
            foreign: args.notation != "tilewright",
            json: args.json,
        },
        Err(error) => return report(&error, args.json),
    };
    match &args.expression {
        // Expressions may start with a minus, so clap lets misspelt options through.
        Some(text) if misspelt_option(text) => {
            let message = format!("unexpected argument '{text}' found");
            report(&CliError::usage("usage", message), args.json)
        }
        Some(text) => one(text, &writer),
        None => match lines(&writer) {
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

fn one(text: &str, writer: &Writer) -> ExitCode {
    let answer = evaluate(text).and_then(|value| {
        if writer.json {
            output::print_json(&writer.json(&value)?);
        } else {
            output::print_line(&writer.line(&value)?);
        }
        Ok(())
    });
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error, writer.json),
    }
}

/// Answers every line of standard input. The error is of reading; once an answer can't be written, no more lines are read.
fn lines(writer: &Writer) -> io::Result<()> {
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
        let answer = match (result.and_then(|value| writer.line(&value)), writer.json) {
            (Ok(line), _) => line,
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
