//! Plans on an OpenCL device: random ragged problems against float64, α and β, and memory that must not be touched.

use tilewright::banks::AMD_GCN;
use tilewright::gpu::opencl::ClDevice;
use tilewright::host::{GemmKernel, Inputs, On, RunOptions, check, run_with};
use tilewright::kernels::gemm::opencl::{EmittedOpenCl, emit};
use tilewright::kernels::gemm::{Config, Gemm, Operands, Specialized};

use super::{common, left_out};

/// The device, which must be there.
pub(crate) fn device() -> ClDevice {
    ClDevice::open().unwrap_or_else(|e| {
        panic!("{e}; or leave these tests out with TILEWRIGHT_NO_OPENCL=1");
    })
}

/// Runs on the device, which must be there.
pub(crate) fn on_device() -> RunOptions {
    RunOptions {
        opencl: Some(device()),
        ..RunOptions::default()
    }
}

/// Runs a problem, with everything held against the reference.
fn checked(
    options: &RunOptions,
    (plan, emitted): (&Specialized, &EmittedOpenCl),
    problem: &Gemm,
    inputs: &Inputs,
) {
    let what = || format!("{}, {problem:?}", plan.name());
    let kernel = GemmKernel::opencl(plan, emitted, problem).expect("it serves the problem");
    let args = kernel.args(inputs).expect("they fit");
    let outcome = run_with(&kernel, On::OpenCl, args, options);
    let outcome = outcome.unwrap_or_else(|e| panic!("{}: {e}", what()));
    assert_eq!(outcome.clean(), Ok(()), "{}", what());
    let c = kernel.result(inputs, &outcome).expect("a result");
    let check = check(problem, plan.data_type, inputs, &c).expect("shapes agree");
    assert!(check.gaps_untouched, "{}", what());
    assert!(check.passed, "{}: {check:?}", what());
}

/// A hundred problems for each way of the operands that the plan takes.
fn hundreds(name: &str, ways: &[&str]) {
    if left_out() {
        return;
    }
    let options = on_device();
    let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
    for way in ways {
        let operands: Operands = way.parse().expect("a way");
        let emitted = emit(&plan, operands, &AMD_GCN).expect("it proves and has a form");
        let mut read = 0;
        let problems = common::problems(400, 2);
        let problems = problems.iter().filter(|p| p.operands == operands);
        for (seed, problem) in (0..).zip(problems) {
            let mut inputs = Inputs::random(problem, plan.data_type, seed);
            if problem.beta == 0.0 {
                // Where C is read although β = 0, the result is NaN.
                inputs.c.bytes.fill(0xff);
                read += 1;
            }
            checked(&options, (&plan, &emitted), problem, &inputs);
        }
        assert!(read >= 5, "{read} problems without C");
    }
}

#[test]
fn a_hundred_problems_sgemm_64() {
    hundreds("sgemm-maxas-64", &["nn", "nt", "tn", "tt"]);
}

#[test]
fn a_hundred_problems_dgemm() {
    hundreds("dgemm-4x4", &["nn", "nt", "tn", "tt"]);
}

#[test]
fn a_hundred_problems_sgemm_r700() {
    hundreds("sgemm-r700-64", &["nn", "nt", "tn", "tt"]);
}
