//! The command `tilewright`: one module a subcommand.
//!
//! Every subcommand is an `Args` struct for clap and a function `run(args) -> ExitCode`. What they share is the contract
//! towards the terminal: `--json` puts one JSON value on standard output and nothing else; progress and diagnostics go to
//! standard error; the exit code is 0 on success, 1 when what was asked for does not hold or can't be done, 2 on bad
//! usage. `error::CliError` and `output` keep that contract, so that no subcommand has to.
//!
//! The same subcommands are open to other programs in this process: [`main`] is the whole command, [`kernel`](fn@kernel) and
//! [`gemm`](fn@gemm) give what `tilewright kernel NAME --emit` and `tilewright gemm --emit` write, as values. The package for Python is made of them.

mod banks;
mod bench;
mod check;
mod derive;
mod devices;
mod doctor;
mod emit;
mod emitted;
mod error;
mod eval;
mod gemm;
mod index;
mod input;
mod kernel;
mod layers;
mod manual;
mod memory;
mod output;
mod plans;
mod progress;
mod run;
mod show;
mod tune;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::error::CliError;

pub use emitted::{Emitted, Named, NamedOption, Setting, gemm, kernel, kernels};

/// Layouts for GPU tiles: compose them, prove them, lower them to kernels, run those anywhere.
#[derive(Parser)]
#[command(name = "tilewright", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Banks(banks::BanksArgs),
    Derive(derive::DeriveArgs),
    /// Say what this machine can do: GPU, driver, cuBLAS, ptxas, versions
    Doctor(doctor::DoctorArgs),
    Bench(bench::BenchArgs),
    Check(check::CheckArgs),
    Completions(manual::CompletionsArgs),
    Gemm(Box<gemm::GemmArgs>),
    Index(index::IndexArgs),
    Kernel(Box<kernel::KernelArgs>),
    Man(manual::ManArgs),
    Plans(plans::PlansArgs),
    /// Run a kernel of a PTX file on the emulator, with its sanitizer, or on the GPU
    Run(run::RunArgs),
    /// Compute with layouts: compose, divide, invert, slice, compare
    Eval(eval::EvalArgs),
    Show(show::ShowArgs),
    Tune(tune::TuneArgs),
}

/// Runs the command with the words of its command line, of which the first is its own name.
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    let code = match parsed(&words) {
        Ok(cli) => match cli.command {
            Command::Banks(args) => banks::run(&args),
            Command::Derive(args) => derive::run(&args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Check(args) => check::run(&args),
            Command::Completions(args) => manual::completions(&args, Cli::command()),
            Command::Man(args) => manual::man(&args, Cli::command()),
            Command::Gemm(args) => gemm::run(&args),
            Command::Index(args) => index::run(&args),
            Command::Kernel(args) => kernel::run(&args),
            Command::Plans(args) => plans::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Eval(args) => eval::run(&args),
            Command::Show(args) => show::run(&args),
            Command::Tune(args) => tune::run(&args),
        },
        Err(error) => refuse(&error, &words),
    };
    output::verdict(code)
}

/// The command line. The value of an option may begin with a minus sign and a digit: what reads it says what it takes.
fn parsed(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, clap::Error> {
    let command = Cli::command().mut_subcommands(|subcommand| {
        subcommand.mut_args(|argument| {
            let takes = argument.get_action().takes_values() && !argument.is_positional();
            argument.allow_negative_numbers(takes)
        })
    });
    let mut matches = command.try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// Shows clap's help, version or error; the latter as JSON if that was asked for.
fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let json = words
        .iter()
        .skip(1)
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json");
    if error.use_stderr() && json {
        return error::report(&CliError::usage("usage", usage_message(error)), true);
    }
    let (text, own) = (error.to_string(), worded(&error.to_string()));
    let shown = if error.use_stderr() && own != text {
        // Colours are left out with the words.
        write!(io::stderr(), "{own}")
    } else {
        error.print()
    };
    let shown = shown.and_then(|()| io::stdout().flush());
    // Nobody is left to tell if standard error does not take it.
    if !error.use_stderr() {
        output::written(shown);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Clap's message on one line, without the `error: ` in front and the hints behind.
fn usage_message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let end = ["\n\n  tip:", "\n\nUsage:", "\n\nFor more"]
        .into_iter()
        .filter_map(|hint| text.find(hint))
        .min()
        .unwrap_or(text.len());
    // One sentence, whatever clap laid out in lines.
    let words: Vec<_> = text[..end].split_whitespace().collect();
    worded(&words.join(" "))
}

/// What the standard library and clap say about a number, and what the command says.
const WORDS: [(&str, &str); 6] = [
    ("invalid digit found in string", "give a whole number"),
    (
        "cannot parse integer from empty string",
        "give a whole number",
    ),
    (
        "number too large to fit in target type",
        "this number is too large",
    ),
    (
        "number too small to fit in target type",
        "this number is too small",
    ),
    ("invalid float literal", "give a number"),
    ("cannot parse float from empty string", "give a number"),
];

/// A message of clap's in the words of the command's own: what would be accepted, and no value of 300 digits.
fn worded(text: &str) -> String {
    let mut text = text.to_owned();
    for (theirs, own) in WORDS {
        text = text.replace(theirs, own);
    }
    // `0 is not in 1..=1024`
    if let Some((before, rest)) = text.split_once(" is not in ") {
        let range = rest.split_whitespace().next().unwrap_or_default();
        let value = before.rsplit(' ').next().unwrap_or_default();
        if let Some((first, last)) = range.split_once("..=") {
            let (start, end) = (&before[..before.len() - value.len()], &rest[range.len()..]);
            text = format!("{start}give {first} to {last}{end}");
        }
    }
    shortened(&text)
}

/// The text with `…` in the middle of words that nobody reads, such as 300 digits.
fn shortened(text: &str) -> String {
    /// Letters of the longest word that is shown, and of each of its ends.
    const MOST: usize = 60;
    const END: usize = 12;
    let short = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        if letters.len() <= MOST {
            return word.to_owned();
        }
        let (start, end) = (&letters[..END], &letters[letters.len() - END..]);
        let mut shown: String = start.iter().collect();
        shown.push('…');
        shown.extend(end);
        shown
    };
    let words: Vec<String> = text.split(' ').map(short).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_value_of_300_digits_is_not_repeated() {
        let digits = "9".repeat(300);
        let Err(error) = parsed(["tilewright", "gemm", "--m", &digits]) else {
            panic!("too large");
        };
        let message = usage_message(&error);
        assert!(
            message.len() < 160 && message.contains("'99999999999…"),
            "{message}"
        );
        assert!(worded(&error.to_string()).len() < 300);
    }

    #[test]
    fn numbers_are_refused_in_the_words_of_the_command() {
        for (words, message) in [
            (["gemm", "--split", "0"], "give 1 to 1024"),
            (["gemm", "--split", "-1"], "give 1 to 1024"),
            (["gemm", "--seed", "x"], "give a whole number"),
            (["gemm", "--seed", "-1"], "give a whole number"),
            (["gemm", "--seed", ""], "give a whole number"),
            (["gemm", "--alpha", "x"], "give a number"),
            (
                ["run", "--shared", "99999999999999999999"],
                "this number is too large",
            ),
            (["run", "--grid", "-1"], "`-1` is not a number of 32 bits"),
        ] {
            let Err(error) = parsed([&["tilewright"], &words[..]].concat()) else {
                panic!("{words:?} must be refused");
            };
            let shown = usage_message(&error);
            assert!(shown.contains(message), "{words:?}: {shown}");
            assert!(worded(&error.to_string()).contains(message), "{words:?}");
        }
    }

    #[test]
    fn a_usage_error_is_one_sentence() {
        let Err(error) = parsed(["tilewright", "doctor", "--jsn"]) else {
            panic!("--jsn must be refused");
        };
        let message = usage_message(&error);
        assert!(
            message.starts_with("unexpected argument '--jsn' found"),
            "{message}"
        );
        assert!(
            !message.contains("Usage:") && !message.contains("error:"),
            "{message}"
        );
        assert!(!message.contains("tip:"), "{message}");
    }
}
