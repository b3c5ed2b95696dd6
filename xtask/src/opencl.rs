//! PoCL and clang for AMD, which the tests of OpenCL C need: found, or installed where that takes no question.
//!
//! They are Debian's packages. Where the program runs as root and `apt-get` is there, they are installed; elsewhere a developer is told
//! the command. Without them the tests are left out, which the summary says, and in CI is a failure.

use std::path::Path;
use std::process::{Command, Stdio};

/// What the tests need: a file that shows that it is there, and Debian's package.
const NEEDED: [(&str, &str); 4] = [
    ("/etc/OpenCL/vendors/pocl.icd", "pocl-opencl-icd"),
    ("/usr/bin/clang-16", "clang-16"),
    ("/usr/lib/clc/tahiti-amdgcn--.bc", "libclc-16"),
    ("/usr/lib/clc/gfx906-amdgcn--.bc", "libclc-16"),
];

/// Where Debian has OpenCL's loader, by architecture.
const LOADERS: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",
    "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1",
];

/// Makes sure that everything is there.
///
/// # Errors
///
/// A sentence for the developer: what is not there and what to install.
pub(crate) fn provide() -> Result<(), String> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let advice = format!("install {} (apt-get install)", missing.join(" "));
    if !is_root() || !starts("apt-get") {
        return Err(advice);
    }
    eprintln!("installing {}", missing.join(" "));
    let installed = apt(&["install", "--yes", "--no-install-recommends"], &missing)
        || (apt(&["update"], &[])
            && apt(&["install", "--yes", "--no-install-recommends"], &missing));
    if installed && self::missing().is_empty() {
        return Ok(());
    }
    Err(format!("{advice}; it failed here"))
}

/// The packages of what is not there.
fn missing() -> Vec<&'static str> {
    let mut all: Vec<_> = NEEDED
        .iter()
        .filter(|(file, _)| !Path::new(file).exists())
        .map(|(_, package)| *package)
        .collect();
    if !LOADERS.iter().any(|file| Path::new(file).exists()) {
        all.push("ocl-icd-libopencl1");
    }
    all.dedup();
    all
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
