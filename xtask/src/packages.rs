//! Debian's packages that tests need: found, or installed where that takes no question.
//!
//! Where the program runs as root and `apt-get` is there, what is missing is installed; elsewhere a developer is told the command.

use std::path::Path;
use std::process::{Command, Stdio};

/// Makes sure that every file is there by installing its package.
///
/// # Errors
///
/// A sentence for the developer: what to install.
pub(crate) fn provide(needed: &[(&str, &'static str)]) -> Result<(), String> {
    install(&missing(needed), || missing(needed))
}

/// The packages of the files that are not there, each once.
pub(crate) fn missing(needed: &[(&str, &'static str)]) -> Vec<&'static str> {
    let mut all: Vec<_> = needed
        .iter()
        .filter(|(file, _)| !Path::new(file).exists())
        .map(|(_, package)| *package)
        .collect();
    all.dedup();
    all
}

/// Installs packages, after which `left` says which of them are still missing.
///
/// # Errors
///
/// A sentence for the developer: what to install.
pub(crate) fn install(
    packages: &[&'static str],
    left: impl Fn() -> Vec<&'static str>,
) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    let advice = format!("install {} (apt-get install)", packages.join(" "));
    if !is_root() || !starts("apt-get") {
        return Err(advice);
    }
    eprintln!("installing {}", packages.join(" "));
    let install = ["install", "--yes", "--no-install-recommends"];
    let installed = apt(&install, packages) || (apt(&["update"], &[]) && apt(&install, packages));
    if installed && left().is_empty() {
        return Ok(());
    }
    Err(format!("{advice}; it failed here"))
}

fn apt(arguments: &[&str], packages: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn starts(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_missing() {
        let needed = [
            ("/", "root"),
            ("/no/such/file", "none"),
            ("/no/such/other", "none"),
        ];
        assert_eq!(missing(&needed), ["none"]);
        assert_eq!(provide(&needed[..1]), Ok(()));
    }
}
