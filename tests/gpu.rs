//! The SGEMM plans on a GPU, against the double-precision reference. Without a GPU this says so and runs nothing.

mod common;

use tilewright::codegen::plan::{Arch, DataType, Emitted, Gemm, Operands, Plan};
use tilewright::codegen::sgemm::SgemmPlan;
use tilewright::gpu::Gpu;
use tilewright::host::{Inputs, Matrix, check, launch_on};

/// The first GPU; none on a machine without one. Anything else that keeps it from being opened is a failure.
fn gpu() -> Option<Gpu> {
    match Gpu::open(0) {
        Ok(gpu) => {
            common::say(&format!("on {}", gpu.info().name));
            Some(gpu)
        }
        Err(error) if error.means_no_gpu() => {
            common::say(&format!("no GPU: not run ({error})"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The newest architecture that kernels are generated for and this GPU runs.
fn arch(gpu: &Gpu) -> Arch {
    let (major, minor) = gpu.info().compute_capability;
    let have = 10 * major + minor;
    let newest = Arch::ALL.into_iter().filter(|a| a.0 <= have).max();
    newest.expect("sm_75 or later")
}

fn launched(
    gpu: &Gpu,
    plan: SgemmPlan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
) -> Matrix {
    launch_on(gpu, &plan, kernel, problem, inputs, 0)
        .unwrap_or_else(|e| panic!("{plan}, {problem:?}: {e}"))
        .c
}

fn fifty_problems(plan: SgemmPlan) {
    let Some(gpu) = gpu() else { return };
    let kernels = Operands::ALL.map(|o| plan.emit(o, arch(&gpu)).expect("the plan proves"));
    for (seed, problem) in (0..).zip(common::problems(50, 3)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let inputs = Inputs::random(&problem, DataType::F32, seed);
        let c = launched(
            &gpu,
            plan,
            &kernels[at.expect("one of four")],
            &problem,
            &inputs,
        );
        let check = check(&problem, DataType::F32, &inputs, &c).expect("shapes agree");
        assert!(check.passed, "{plan}, {problem:?}: {check:?}");
    }
    common::say(&format!("{plan}: 50 problems passed"));
}

#[test]
fn fifty_random_problems_64() {
    fifty_problems(SgemmPlan::MAXAS_64);
}

#[test]
fn fifty_random_problems_128() {
    fifty_problems(SgemmPlan::MAXAS_128);
}

/// What BLAS promises: β = 0 does not read C, α = 0 does not read A or B, no terms give β·C.
#[test]
fn edge_cases() {
    let Some(gpu) = gpu() else { return };
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            let kernel = plan.emit(operands, arch(&gpu)).expect("the plan proves");
            for (alpha, beta, k) in [
                (1.5, 0.0, 40),
                (0.0, -0.5, 40),
                (1.5, -0.5, 0),
                (0.0, 0.0, 9),
            ] {
                let mut problem = Gemm::packed(131, 70, k, operands);
                (problem.alpha, problem.beta, problem.ldc) = (alpha, beta, 73);
                let mut inputs = Inputs::random(&problem, DataType::F32, 8);
                if alpha == 0.0 {
                    inputs.a = inputs.a.filled(f64::NAN);
                    inputs.b = inputs.b.filled(f64::NAN);
                }
                if beta == 0.0 {
                    inputs.c = inputs.c.filled(f64::NAN);
                }
                let c = launched(&gpu, plan, &kernel, &problem, &inputs);
                let check = check(&problem, DataType::F32, &inputs, &c).expect("shapes agree");
                assert!(check.passed, "{plan}, {problem:?}: {check:?}");
            }
        }
    }
}
