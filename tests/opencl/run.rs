//! Plans on an OpenCL device: random ragged problems against float64, α and β, and memory that must not be touched.

use tilewright::banks::AMD_GCN;
use tilewright::gpu::opencl::{ClDevice, ClProgram};
use tilewright::host::{GemmKernel, Inputs, Matrix, Outcome, check, run_on_opencl};
use tilewright::kernels::gemm::opencl::{EmittedOpenCl, emit};
use tilewright::kernels::gemm::{Config, Gemm, Operands, Specialized};

use super::{common, left_out};

/// The device, which must be there.
pub(crate) fn device() -> ClDevice {
    ClDevice::open().unwrap_or_else(|e| {
        panic!("{e}; or leave these tests out with TILEWRIGHT_NO_OPENCL=1");
    })
}

/// A plan's kernel for one way of its operands, compiled.
struct Built {
    emitted: EmittedOpenCl,
    program: ClProgram,
}

fn build(device: &ClDevice, plan: &Specialized, operands: Operands) -> Built {
    let emitted = emit(plan, operands, &AMD_GCN).expect("it proves and has a form");
    let program = device.build(&emitted.source);
    Built {
        program: program.unwrap_or_else(|e| panic!("{}: {e}", emitted.kernel)),
        emitted,
    }
}

/// C after a problem, with everything held against the reference.
fn checked(
    device: &ClDevice,
    plan: &Specialized,
    built: &Built,
    problem: &Gemm,
    inputs: &Inputs,
) -> Matrix {
    let what = || format!("{}, {problem:?}", plan.name());
    let kernel = GemmKernel::opencl(plan, &built.emitted, problem).expect("it serves the problem");
    let outcome: Outcome = run_on_opencl(device, &built.program, &kernel, kernel.args(inputs))
        .unwrap_or_else(|e| panic!("{}: {e}", what()));
    assert!(
        outcome.guards_touched.is_empty(),
        "{}: wrote behind {:?}",
        what(),
        outcome.guards_touched
    );
    assert!(outcome.inputs_changed.is_empty(), "{}", what());
    let c = kernel.result(inputs, &outcome).expect("a result");
    let check = check(problem, plan.data_type, inputs, &c).expect("shapes agree");
    assert!(check.gaps_untouched, "{}", what());
    assert!(check.passed, "{}: {check:?}", what());
    c
}

/// A hundred problems for each way of the operands that the plan takes.
fn hundreds(name: &str, ways: &[&str]) {
    if left_out() {
        return;
    }
    let device = device();
    let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
    for way in ways {
        let operands: Operands = way.parse().expect("a way");
        let built = build(&device, &plan, operands);
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
            checked(&device, &plan, &built, problem, &inputs);
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
