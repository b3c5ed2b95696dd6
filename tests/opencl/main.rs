//! The OpenCL C text at work: run on PoCL against float64, and compiled for AMD's chips by clang, instruction by instruction.
//!
//! PoCL runs OpenCL on the CPU (Debian: `pocl-opencl-icd`); clang 16 and libclc 16 compile for GCN (`clang-16`, `libclc-16`). `cargo xtask test`
//! installs them where it can. Where they cannot be had, `TILEWRIGHT_NO_OPENCL=1` leaves these tests out, and each says so.

#[path = "../common/mod.rs"]
mod common;
mod compile;
mod index;
mod isa;
mod kernels;
mod own;
mod parts;
mod run;

/// Whether the tests are left out; then they say so.
fn left_out() -> bool {
    let out = std::env::var_os("TILEWRIGHT_NO_OPENCL").is_some_and(|v| v == "1");
    if out {
        common::say("no OpenCL (TILEWRIGHT_NO_OPENCL=1): not run");
    }
    out
}
