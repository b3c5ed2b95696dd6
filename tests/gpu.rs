//! The plans on a GPU, against the double-precision reference. Without a GPU this says so and runs nothing.

mod common;

use common::mma::{Case, adapted, cases, plans_of};
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

/// C after a plan ran; what lies beside the operands is as it was.
fn launched(
    gpu: &Gpu,
    plan: &dyn Plan,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
) -> Matrix {
    let what = format!("{}, {problem:?}", plan.name());
    let run = launch_on(gpu, plan, kernel, problem, inputs, 0);
    let run = run.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(run.guards_untouched, "{what}: wrote beside an operand");
    run.c
}

fn fifty_problems(plan: SgemmPlan) {
    let Some(gpu) = gpu() else { return };
    let kernels = Operands::ALL.map(|o| plan.emit(o, arch(&gpu)).expect("the plan proves"));
    for (seed, problem) in (0..).zip(common::problems(50, 3)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let inputs = Inputs::random(&problem, DataType::F32, seed);
        let c = launched(
            &gpu,
            &plan,
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
                let c = launched(&gpu, &plan, &kernel, &problem, &inputs);
                let check = check(&problem, DataType::F32, &inputs, &c).expect("shapes agree");
                assert!(check.passed, "{plan}, {problem:?}: {check:?}");
            }
        }
    }
}

/// Tests that the one hundred problems of a type are shared out between: what takes time is the driver's compiler, which takes
/// one module at a time from each process.
const SHARES: usize = 4;

/// One hundred random problems of each mma type, by every plan that this GPU runs in turn: one of the shares of them.
fn one_hundred_problems(data_type: DataType, share: usize) {
    let Some(gpu) = gpu() else { return };
    let arch = arch(&gpu);
    let Some(plans) = plans_on(data_type, arch) else {
        return;
    };
    let cases = cases(data_type, 100, 9);
    let mine = cases.iter().enumerate().skip(share).step_by(SHARES);
    let count = mine.clone().count();
    for (i, case) in mine {
        let turn = plans.iter().cycle().skip(i % plans.len());
        let (_, plan) = adapted(turn.take(plans.len()).map(AsRef::as_ref), case);
        assert_right(&gpu, plan.as_ref(), case, false);
    }
    common::say(&format!(
        "{data_type}: {count} of {} problems passed",
        cases.len()
    ));
}

/// The plans of a type that an architecture runs; says so if there are none.
fn plans_on(data_type: DataType, arch: Arch) -> Option<Vec<Box<dyn Plan>>> {
    let mut plans = plans_of(data_type);
    plans.retain(|plan| plan.min_arch() <= arch);
    if plans.is_empty() {
        common::say(&format!(
            "{data_type}: not run, {arch} has no such products"
        ));
    }
    (!plans.is_empty()).then_some(plans)
}

/// Numbers, gaps and what lies beside the operands. With `poisoned`, what BLAS promises not to read is NaN.
fn assert_right(gpu: &Gpu, plan: &dyn Plan, case: &Case, poisoned: bool) {
    let (problem, data_type) = (&case.problem, plan.data_type());
    let what = format!("{}, {case:?}", plan.name());
    let kernel = plan
        .emit(problem.operands, arch(gpu))
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut inputs = Inputs::random(problem, data_type, case.seed);
    if poisoned && problem.alpha == 0.0 {
        inputs.a = inputs.a.filled(f64::NAN);
        inputs.b = inputs.b.filled(f64::NAN);
    }
    if poisoned && problem.beta == 0.0 {
        inputs.c = inputs.c.filled(f64::NAN);
    }
    let c = launched(gpu, plan, &kernel, problem, &inputs);
    let check = check(problem, data_type, &inputs, &c).expect("shapes agree");
    assert!(check.passed, "{what}: {check:?}");
}

/// α = 0 reads neither A nor B, β = 0 does not read C, no terms leave C and the bias, and an empty C is nothing to do: by the smallest
/// plan.
fn edge_cases_of(data_type: DataType) {
    let Some(gpu) = gpu() else { return };
    let Some(mut plans) = plans_on(data_type, arch(&gpu)) else {
        return;
    };
    plans.sort_by_key(|plan| {
        let (m, n, k) = plan.tile();
        m * n * k
    });
    for mut case in cases(data_type, 16, 10) {
        match case.seed % 4 {
            0 => case.problem.alpha = 0.0,
            1 => case.problem.beta = 0.0,
            2 => case.problem.k = 0,
            _ => (case.problem.alpha, case.problem.beta) = (0.0, 0.0),
        }
        let (_, plan) = adapted(plans.iter().map(AsRef::as_ref), &case);
        assert_right(&gpu, plan.as_ref(), &case, true);
    }
    common::say(&format!("{data_type}: the edge cases passed"));
}

macro_rules! mma {
    ($($name:ident: $data_type:ident,)*) => { $(
        mod $name {
            use super::{DataType, edge_cases_of, one_hundred_problems};

            #[test]
            fn problems_first_quarter() {
                one_hundred_problems(DataType::$data_type, 0);
            }

            #[test]
            fn problems_second_quarter() {
                one_hundred_problems(DataType::$data_type, 1);
            }

            #[test]
            fn problems_third_quarter() {
                one_hundred_problems(DataType::$data_type, 2);
            }

            #[test]
            fn problems_last_quarter() {
                one_hundred_problems(DataType::$data_type, 3);
            }

            #[test]
            fn edge_cases() {
                edge_cases_of(DataType::$data_type);
            }
        }
    )* };
}

mma! {
    mma_f16: F16,
    mma_f16_summed_in_f16: F16Acc16,
    mma_bf16: Bf16,
    mma_tf32: Tf32,
    mma_s8: S8,
    mma_e4m3: E4m3,
    mma_e5m2: E5m2,
    mma_f64: F64,
}
