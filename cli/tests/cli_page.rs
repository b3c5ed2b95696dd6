//! The commands of the README and of the book's pages work, and print what the pages show. The tables of options of `docs/cli.md` are generated from
//! `--help` (`TILEWRIGHT_UPDATE=1` writes them anew).

mod common;

use std::fmt::Write;

use common::{check_page, tilewright};

#[test]
fn the_command_of_the_readme() {
    check_page(include_str!("../../README.md"), &[], 1);
}

#[test]
fn the_commands_of_the_commands_page() {
    check_page(include_str!("../../docs/cli.md"), &[], 9);
}

#[test]
fn the_commands_of_the_emulators_page() {
    let page = include_str!("../../docs/emulator.md");
    check_page(page, &[("ptx", "double.ptx")], 3);
}

#[test]
fn the_command_of_the_page_on_tuning() {
    check_page(include_str!("../../docs/tuning.md"), &[], 1);
}

/// What an option or an argument is, by `--help`.
#[derive(Default)]
struct Described {
    name: String,
    default: String,
    text: String,
}

/// The options and arguments of a command, read from its `--help`. Those that all commands have are left out.
fn described(command: &str) -> Vec<Described> {
    let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
    let output = tilewright(&args);
    assert!(output.status.success(), "{command}");
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let mut all: Vec<Described> = Vec::new();
    let mut inside = false;
    // Of a description the first paragraph, and the values behind it.
    let mut first = true;
    for line in help.lines() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        if indent == 0 && !text.is_empty() {
            inside = text == "Options:" || text == "Arguments:";
            continue;
        }
        if text.is_empty() {
            first = false;
        }
        if !inside || text.is_empty() || text == "Possible values:" {
            continue;
        }
        let starts = ["-", "[", "<"].iter().any(|s| text.starts_with(s));
        if indent <= 6 && starts {
            let (name, rest) = text.split_once("  ").unwrap_or((text, ""));
            let mut option = Described {
                name: name.to_owned(),
                ..Described::default()
            };
            add(&mut option, rest.trim());
            all.push(option);
            first = true;
        } else if first
            || ["- ", "[default", "[possible"]
                .iter()
                .any(|s| text.starts_with(s))
        {
            add(all.last_mut().expect("an option"), text);
        }
    }
    all.retain(|o| !["--json", "-h, --help", "-V, --version"].contains(&o.name.as_str()));
    all
}

/// Adds a line of `--help` to what it describes: a default, a list of values, one of them, or text.
fn add(option: &mut Described, line: &str) {
    let mut line = line.to_owned();
    if let Some((before, default)) = line.clone().rsplit_once("[default: ") {
        let (default, after) = default.split_once(']').expect("its end");
        option.default = format!("`{default}`");
        line = format!("{}{after}", before.trim_end());
    }
    if let Some(values) = line.strip_prefix("[possible values: ") {
        let values = values.trim_end_matches(']').split(", ");
        let values: Vec<String> = values.map(|v| format!("`{v}`")).collect();
        line = format!("({})", values.join(", "));
    } else if let Some((value, meaning)) = line.strip_prefix("- ").and_then(|l| l.split_once(':')) {
        line = format!("`{value}`: {}.", meaning.trim().trim_end_matches('.'));
    }
    if !option.text.is_empty() && !line.is_empty() {
        let end = if line.starts_with('`') && !option.text.ends_with('.') {
            ". "
        } else {
            " "
        };
        option.text += end;
    }
    option.text += &line;
}

/// The table of a command's options.
fn options(command: &str) -> String {
    let mut table = String::from("| option | default | |\n|---|---|---|\n");
    for option in described(command) {
        let text = option.text.trim_end_matches(':').replace('|', "\\|");
        let _ = writeln!(table, "| `{}` | {} | {text} |", option.name, option.default);
    }
    table
}

/// The table of all commands.
fn commands() -> String {
    let help = String::from_utf8(tilewright(&["--help"]).stdout).expect("UTF-8");
    let (_, list) = help.split_once("Commands:\n").expect("the commands");
    let mut table = String::from("| command | |\n|---|---|\n");
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let (name, about) = line.trim().split_once("  ").expect("a description");
        if name != "help" {
            let _ = writeln!(table, "| `{name}` | {} |", about.trim());
        }
    }
    table
}

#[test]
fn the_tables_of_options_are_those_of_the_help() {
    let mut parts = vec![("commands", commands())];
    for name in [
        "gemm",
        "kernel attention",
        "kernel gemv",
        "kernel grouped",
        "kernel rms_norm",
        "plans",
        "tune",
        "bench",
        "run",
        "check",
        "banks",
        "derive",
        "index",
        "show",
        "eval",
    ] {
        parts.push((name, options(name)));
    }
    common::generated::parts("cli.md", &parts);
}

#[test]
fn the_commands_of_the_first_page() {
    check_page(include_str!("../../docs/getting-started.md"), &[], 5);
}

#[test]
fn the_commands_of_the_page_on_banks() {
    let page = include_str!("../../docs/banks.md");
    check_page(page, &[("csv", "accesses.csv")], 6);
}

#[test]
fn the_commands_of_the_pages_on_custom_kernels() {
    check_page(include_str!("../../docs/own-kernels.md"), &[], 1);
    check_page(include_str!("../../docs/own-kernels-products.md"), &[], 1);
}

#[test]
fn the_commands_of_the_page_on_devices() {
    check_page(include_str!("../../docs/devices.md"), &[], 4);
}
