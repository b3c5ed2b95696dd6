//! `tilewright completions` and `tilewright man`: what shells and `man` read, made from the command line's own description.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::error::{CliError, Outcome, finish};
use crate::output;

/// Print the completions of a shell
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright
  tilewright completions zsh > ~/.zfunc/_tilewright
  tilewright completions fish > ~/.config/fish/completions/tilewright.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    /// Print one JSON value: the shell and its script
    #[arg(long)]
    json: bool,
}

/// Write the manual pages: tilewright.1, and one for each subcommand
#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder to write to; without one the page of the command itself is printed
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Print one JSON value: the files written, or the page
    #[arg(long)]
    json: bool,
}

/// Runs `completions`.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tilewright", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if args.json {
        output::print_json(&serde_json::json!({"shell": args.shell.to_string(), "script": script}));
    } else {
        output::print_line(script.trim_end());
    }
    ExitCode::SUCCESS
}

/// Runs `man`.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    finish(write(args, command), args.json)
}

fn write(args: &ManArgs, command: Command) -> Outcome {
    let Some(folder) = &args.dir else {
        let text = page(command)?;
        if args.json {
            output::print_json(&serde_json::json!({"page": text}));
        } else {
            output::print_line(text.trim_end());
        }
        return Ok(ExitCode::SUCCESS);
    };
    let mut pages = Vec::new();
    for subcommand in command.get_subcommands() {
        let name = format!("tilewright-{}", subcommand.get_name());
        let page = page(subcommand.clone().name(name.clone()))?;
        pages.push((folder.join(format!("{name}.1")), page));
    }
    pages.insert(0, (folder.join("tilewright.1"), page(command)?));
    let files: Vec<_> = pages
        .iter()
        .map(|(path, page)| (path.as_path(), page.as_bytes()))
        .collect();
    output::write_together(&files)?;
    let names: Vec<String> = files.iter().map(|(p, _)| p.display().to_string()).collect();
    if args.json {
        output::print_json(&serde_json::json!({"files": names}));
    } else {
        output::print_line(&names.join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// One page, as `man` reads it.
fn page(command: Command) -> Result<String, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| CliError::new("io", error.to_string()))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
