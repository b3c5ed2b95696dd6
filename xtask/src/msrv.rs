//! The oldest compiler that the manifests promise, `rust-version`, tested as what it is.
//!
//! Where the compiler of the run is that one, every other step is its test. Where it is newer, the workspace is checked with the promised one
//! if rustup has it; otherwise the summary says that it was not.

use std::process::Command;

use crate::workspace_root;

/// Who tests the promised compiler.
pub(crate) enum Msrv {
    /// The compiler of this run is the promised one.
    ThisRun(String),
    /// rustup has it under this name.
    Installed(String),
    /// It is not there: a sentence.
    Missing(String),
}

/// Finds out.
///
/// # Errors
///
/// The compiler is older than promised, or the manifest promises nothing.
pub(crate) fn find() -> Result<Msrv, String> {
    let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml"))
        .map_err(|error| format!("Cargo.toml: {error}"))?;
    let promised = promised(&manifest).ok_or("Cargo.toml has no rust-version = \"…\"")?;
    let here = version(Command::new("rustc").arg("--version")).ok_or("rustc does not start")?;
    let (old, new) = (numbers(&promised), numbers(&here));
    if new < old {
        return Err(format!(
            "rustc is {here}, older than the promised {promised}"
        ));
    }
    if new[..2] == old[..2] {
        return Ok(Msrv::ThisRun(here));
    }
    let toolchain = format!("+{promised}");
    // Without rustup, cargo takes +1.95 for a command.
    let installed = Command::new("rustup")
        .args(["run", &promised, "rustc", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    Ok(if installed {
        Msrv::Installed(toolchain)
    } else {
        Msrv::Missing(format!(
            "rustc is {here}; `rustup toolchain install {promised}` to test the oldest one promised"
        ))
    })
}

/// The value of `rust-version`.
fn promised(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|l| l.starts_with("rust-version"))?;
    Some(line.split('"').nth(1)?.to_owned())
}

/// `1.95.0` of `rustc 1.95.0 (…)`.
fn version(command: &mut Command) -> Option<String> {
    let output = command.current_dir(workspace_root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.split_whitespace().nth(1)?.to_owned())
}

/// Major, minor and patch; what is missing is 0.
fn numbers(version: &str) -> [u32; 3] {
    let mut parts = version
        .split(['.', '-'])
        .map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(numbers("1.95"), [1, 95, 0]);
        assert_eq!(numbers("1.100.0-nightly"), [1, 100, 0]);
        assert!(numbers("1.100.0") > numbers("1.95.1"));
        assert_eq!(
            promised("[x]\nrust-version = \"1.95\"\n").as_deref(),
            Some("1.95")
        );
    }
}
