//! Kernels and their launch contracts as values: what `--emit` and `--json` write, for programs that call the command's functions.
//!
//! Options are the command's by their names, so that a kernel that the command has is here too:
//!
//! ```
//! use tilewright_cli::{Setting, kernel};
//!
//! let options = [("dtype", Setting::Text("bf16".to_owned())), ("rows", Setting::Text("64".to_owned()))];
//! let softmax = kernel("softmax", &options)?;
//! assert!(softmax.text.contains(".entry") && softmax.report["launch"]["block"].is_array());
//! let error = kernel("softmax", &[("row", Setting::Flag(true))]).err().map(|e| e.message().to_owned());
//! assert!(error.is_some_and(|e| e.starts_with("softmax has no option `row`; it has arch, cols, dtype, rows")));
//! # Ok::<(), tilewright_workbench::Refusal>(())
//! ```

use clap::{Arg, Command, CommandFactory as _};
use serde_json::Value;

use crate::error::CliError;
use crate::{Cli, parsed, usage_message};

/// A kernel that is proven and printed, and not run.
#[derive(Clone, PartialEq, Debug)]
pub struct Emitted {
    /// The PTX.
    pub text: String,
    /// What `--json` prints; `launch` is the contract.
    pub report: Value,
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether an option without a value is given; of one with a value, `true` or `false`.
    Flag(bool),
    /// The text that the command line would have.
    Text(String),
}

/// A kernel that comes with Tilewright.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub computes: String,
    /// Its options.
    pub options: Vec<NamedOption>,
}

/// An option of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedOption {
    /// Its name, words joined by `_`.
    pub name: String,
    /// What it says.
    pub about: String,
    /// Its value if it is not given.
    pub default: Option<String>,
    /// Whether it has no value.
    pub is_flag: bool,
}

/// Options of a run and of files, which these functions have no use for.
const OF_RUNS: [&str; 14] = [
    "check",
    "devices",
    "emit",
    "emit_host",
    "json",
    "limit",
    "meet",
    "movement",
    "on",
    "rank",
    "seed",
    "shards",
    "target",
    "tune",
];

/// The kernels of `tilewright kernel`, by name.
///
/// ```
/// let all = tilewright_cli::kernels();
/// let softmax = all.iter().find(|k| k.name == "softmax");
/// assert!(softmax.is_some_and(|k| k.options.iter().any(|o| o.name == "rows")));
/// ```
pub fn kernels() -> Vec<Named> {
    let cli = Cli::command();
    let kernels = cli.find_subcommand("kernel").into_iter();
    let kernels = kernels.flat_map(Command::get_subcommands);
    let kernels = kernels.filter(|c| c.get_name() != "list");
    kernels.map(named).collect()
}

/// A kernel of `tilewright kernel NAME` for these options, proven and printed.
///
/// # Errors
///
/// There is no kernel or option of a name, a value is refused, or the kernel does not exist for these options.
pub fn kernel(name: &str, options: &[(&str, Setting)]) -> Result<Emitted, CliError> {
    let cli = Cli::command();
    let mut all = cli.find_subcommand("kernel").into_iter();
    let known = all
        .find_map(|kernels| kernels.find_subcommand(name))
        .filter(|_| name != "list");
    let Some(command) = known else {
        let names: Vec<String> = kernels().into_iter().map(|k| k.name).collect();
        let message = format!(
            "there is no kernel `{name}`; there are {}",
            names.join(", ")
        );
        return Err(CliError::usage("unknown_kernel", message));
    };
    match parse(&["kernel", name], command, options)?.command {
        crate::Command::Kernel(args) => crate::kernel::emitted(&args),
        _ => Err(CliError::usage("usage", "a kernel is asked for")),
    }
}

/// The GEMM of `tilewright gemm` for these options, proven and printed.
///
/// ```
/// use tilewright_cli::{Setting, gemm};
///
/// let product = gemm(&[("dtype", Setting::Text("f16".to_owned())), ("m", Setting::Text("512".to_owned()))])?;
/// assert_eq!(product.report["m"], 512);
/// # Ok::<(), tilewright_workbench::Refusal>(())
/// ```
///
/// # Errors
///
/// There is no option of a name, a value is refused, or there is no such GEMM.
pub fn gemm(options: &[(&str, Setting)]) -> Result<Emitted, CliError> {
    let cli = Cli::command();
    let command = cli.find_subcommand("gemm").unwrap_or(&cli);
    match parse(&["gemm"], command, options)?.command {
        crate::Command::Gemm(args) => crate::gemm::emitted(&args),
        _ => Err(CliError::usage("usage", "a GEMM is asked for")),
    }
}

/// Reads the command line with these options, of a run on no device.
fn parse(first: &[&str], command: &Command, options: &[(&str, Setting)]) -> Result<Cli, CliError> {
    let mut words = vec!["tilewright".to_owned()];
    words.extend(first.iter().map(|&word| word.to_owned()));
    words.push("--on=none".to_owned());
    for (name, setting) in options {
        let Some(arg) = options_of(command).find(|arg| underscored(arg) == *name) else {
            return Err(unknown(command, name));
        };
        let long = arg.get_long().unwrap_or_default();
        match (setting, arg.get_action().takes_values()) {
            (Setting::Flag(false), false) => {}
            (Setting::Flag(true), false) => words.push(format!("--{long}")),
            (Setting::Flag(value), true) => words.push(format!("--{long}={value}")),
            (Setting::Text(text), true) => words.push(format!("--{long}={text}")),
            (Setting::Text(text), false) => {
                let message = format!("`{name}` is true or false, not `{text}`");
                return Err(CliError::usage("usage", message));
            }
        }
    }
    parsed(&words).map_err(|error| CliError::usage("usage", usage_message(&error)))
}

fn unknown(command: &Command, name: &str) -> CliError {
    let mut known: Vec<String> = options_of(command).map(underscored).collect();
    known.sort_unstable();
    let (of, known) = (command.get_name(), known.join(", "));
    let message = format!("{of} has no option `{name}`; it has {known}");
    CliError::usage("unknown_option", message)
}

/// The options of a command that say what its kernel is.
fn options_of(command: &Command) -> impl Iterator<Item = &Arg> {
    let all = command.get_arguments().filter(|a| a.get_long().is_some());
    all.filter(|arg| {
        let name = underscored(arg);
        name != "help" && name != "version" && !OF_RUNS.contains(&name.as_str())
    })
}

fn underscored(arg: &Arg) -> String {
    arg.get_long().unwrap_or_default().replace('-', "_")
}

fn named(command: &Command) -> Named {
    let text = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string);
    let options = options_of(command).map(|arg| {
        let is_flag = !arg.get_action().takes_values();
        let defaults = arg.get_default_values().iter();
        let default = defaults.map(|v| v.to_string_lossy().into_owned()).next();
        NamedOption {
            name: underscored(arg),
            about: text(arg.get_help()).unwrap_or_default(),
            default: default.filter(|_| !is_flag),
            is_flag,
        }
    });
    Named {
        name: command.get_name().to_owned(),
        computes: text(command.get_about()).unwrap_or_default(),
        options: options.collect(),
    }
}
