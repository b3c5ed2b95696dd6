//! The package for Python: built as a wheel by maturin, installed into an empty virtual environment, and tested there, on arrays of numpy among others.
//!
//! maturin is a program that is fetched as a wheel; it stays in `target/tools`. The build has a profile of its own, which compiles soon.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace_root;

/// The version of maturin.
const MATURIN: &str = "1.16.0";

/// Makes sure that there are a Python and maturin, and returns maturin's path.
///
/// # Errors
///
/// A sentence for the developer: what is missing.
pub(crate) fn maturin() -> Result<PathBuf, String> {
    let home = workspace_root()
        .join("target/tools")
        .join(format!("maturin-{MATURIN}"));
    let path = program(&home, "maturin");
    if !path.exists() {
        let requirement = format!("maturin=={MATURIN}");
        eprintln!("fetching {requirement}");
        let fetched = environment(&home).and_then(|()| install(&home, &[requirement.as_ref()]));
        let fetched = fetched.and_then(|()| numpy());
        fetched.map_err(|why| {
            // Half of an environment is not taken for a whole one.
            let _ = fs::remove_dir_all(&home);
            format!("{requirement} can't be had: {why}")
        })?;
    }
    Ok(path)
}

/// The folder of numpy, whose arrays the tests take.
fn numpy() -> Result<PathBuf, String> {
    let home = workspace_root().join("target/tools/numpy");
    if !home.join("numpy").exists() {
        eprintln!("fetching numpy");
        let target = ["--target".as_ref(), home.as_os_str(), "numpy".as_ref()];
        pip(Path::new("python3"), &target)?;
    }
    Ok(home)
}

/// Builds the wheel, installs it and runs the tests of `python/tests`.
///
/// # Errors
///
/// A sentence for the developer: what failed.
pub(crate) fn test(maturin: &Path, env: &[(&str, String)]) -> Result<(), String> {
    let root = workspace_root();
    let folder = root.join("target/python");
    let (wheels, home) = (folder.join("wheels"), folder.join("environment"));
    for old in [&wheels, &home] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(|error| format!("{}: {error}", old.display()))?;
        }
    }
    let mut build = Command::new(maturin);
    build
        .args(["build", "--locked", "--profile", "wheel", "--out"])
        .arg(&wheels)
        .current_dir(root.join("python"))
        .envs(env.iter().map(|(key, value)| (key, value)));
    succeed(&mut build)?;
    environment(&home)?;
    let wheel = only(&wheels)?;
    // By its file alone, so that it needs nothing else.
    install(&home, &["--no-index".as_ref(), wheel.as_ref()])?;
    let mut tests = Command::new(program(&home, "python"));
    tests
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(root.join("python/tests"))
        .env("PYTHONPATH", numpy()?)
        .current_dir(&folder);
    succeed(&mut tests)
}

/// An empty virtual environment.
fn environment(home: &Path) -> Result<(), String> {
    succeed(Command::new("python3").args(["-m", "venv"]).arg(home))
}

fn install(home: &Path, what: &[&OsStr]) -> Result<(), String> {
    pip(&program(home, "python"), what)
}

fn pip(python: &Path, what: &[&OsStr]) -> Result<(), String> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.args(["--disable-pip-version-check", "--only-binary=:all:"]);
    succeed(pip.args(what))
}

/// A program of a virtual environment.
fn program(home: &Path, name: &str) -> PathBuf {
    if cfg!(windows) {
        home.join("Scripts").join(name).with_extension("exe")
    } else {
        home.join("bin").join(name)
    }
}

/// The one file of a folder.
fn only(folder: &Path) -> Result<PathBuf, String> {
    let mut entries = fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(Result::ok);
    match (entries.next(), entries.next()) {
        (Some(entry), None) => Ok(entry.path()),
        _ => Err(format!("{}: one wheel is expected", folder.display())),
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!(
            "{} does not start: {error}",
            command.get_program().display()
        )),
    }
}
