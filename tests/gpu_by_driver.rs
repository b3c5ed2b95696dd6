//! The host's code for a GPU without one: a sample of `gpu.rs` and `run_on_gpu.rs` on the library of `driver/`, which stands in for the CUDA driver.
//!
//! The library must be the driver from the start of a process, so that the test runs itself again with it in front of `LD_LIBRARY_PATH`; there it is the sample.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/iota.rs"]
mod iota;

use std::process::Command;

use iota::{assert_timed, iota};
use rayon::prelude::*;
use tilewright::codegen::Arch;
use tilewright::gpu::Gpu;
use tilewright::host::{Arg, GemmKernel, Inputs, On, RunOptions, check, run, run_with};
use tilewright::kernels::gemm::{Config, Gemm, Operands, PlanError, Schedule, Specialized};

/// Says that the library is the driver.
const INSIDE: &str = "TILEWRIGHT_TEST_BY_DRIVER";

/// The GPU that the library shows.
fn gpu() -> Gpu {
    let gpu = Gpu::open(0).expect("the library has a GPU");
    assert_eq!(gpu.info().name, "NVIDIA H100 80GB HBM3");
    gpu
}

/// The sample passes, and the sanitizer finds nothing in its kernels.
#[test]
fn the_sample_passes_and_is_clean() {
    if std::env::var_os(INSIDE).is_some() {
        every_plan_gives_the_numbers_of_the_reference(&gpu());
        return a_kernel_runs_and_is_timed();
    }
    let test = std::env::current_exe().expect("this test");
    let library = test.with_file_name("libtilewright_driver.so");
    assert!(library.exists(), "{} is not there", library.display());
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::os::unix::fs::symlink(&library, folder.path().join(name)).expect("a link");
    }
    let report = folder.path().join("report.json");
    let output = Command::new(test)
        .args(["--nocapture", "the_sample_passes_and_is_clean"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .env("TILEWRIGHT_REPORT", &report)
        .output()
        .expect("it starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{log}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let report = std::fs::read_to_string(&report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(kernels.len() > 40, "{} kernels", kernels.len());
    for kernel in kernels {
        let findings = kernel["findings"].as_array().expect("findings");
        assert!(findings.is_empty(), "{}: {findings:#?}", kernel["name"]);
        assert!(
            kernel["errors"].as_array().is_some_and(Vec::is_empty),
            "{kernel}"
        );
    }
}

/// Every plan that the device runs, on one problem with ragged tiles.
fn every_plan_gives_the_numbers_of_the_reference(gpu: &Gpu) {
    let all = Config::table().filter(|config| config.runs_on(Arch(90)));
    let all: Vec<_> = all.map(Config::kernel).collect();
    assert!(all.len() > 40, "{} plans", all.len());
    all.par_iter().enumerate().for_each(|(i, plan)| {
        right(gpu, plan, i);
    });
}

fn right(gpu: &Gpu, plan: &Specialized, i: usize) {
    let operands = Operands::ALL[i % 4];
    let problem = Gemm {
        alpha: 2.0,
        beta: [0.0, -1.0][i / 4 % 2],
        ..Gemm::packed(136, 72, 48, operands)
    };
    let kernel = match GemmKernel::new(plan, &problem, Schedule::default(), Arch(90)) {
        Ok(kernel) => kernel,
        // Of a transpose that the plan does not have.
        Err(PlanError::Unsupported { .. }) => return,
        Err(error) => panic!("{}: {error}", plan.name()),
    };
    let inputs = Inputs::random(&problem, plan.data_type, i as u64);
    let options = RunOptions {
        gpu: Some(gpu.clone()),
        ..RunOptions::default()
    };
    let args = kernel.args(&inputs).expect("they fit");
    let outcome = run_with(&kernel, On::Gpu, args, &options);
    let outcome = outcome.unwrap_or_else(|e| panic!("{}: {e}", plan.name()));
    assert_eq!(outcome.clean(), Ok(()), "{}", plan.name());
    let c = kernel.result(&inputs, &outcome).expect("C");
    let check = check(&problem, plan.data_type, &inputs, &c).expect("shapes agree");
    assert!(check.passed, "{}: {check:?}", plan.name());
}

/// A kernel from PTX text, timed: by events, and by a graph of the launch.
fn a_kernel_runs_and_is_timed() {
    let out = ("out", Arg::output::<u32>(32));
    assert_timed(&run(&iota(), On::Gpu, [out]).expect("it runs"));
}
