//! PoCL and clang for AMD, which the tests of OpenCL C need: found, or installed where that takes no question.
//!
//! They are Debian's [`packages`]. Without them the tests are left out, which the summary says, and in CI is a failure.

use std::path::Path;

use crate::packages;

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
    packages::install(&missing(), missing)
}

/// The packages of what is not there.
fn missing() -> Vec<&'static str> {
    let mut all = packages::missing(&NEEDED);
    if !LOADERS.iter().any(|file| Path::new(file).exists()) {
        all.push("ocl-icd-libopencl1");
    }
    all
}
