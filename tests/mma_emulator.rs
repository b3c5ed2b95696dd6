//! The `mma.sync` plans on the emulator, with every check of the sanitizer on: 500 random problems for each type, and what BLAS promises
//! at the edges.
//!
//! Each problem takes the next plan of its type that has a kernel for it, adapted to it: numbers within what rounding explains, nothing
//! touched in the gaps, no finding, and the wavefronts that were proven at every shared access that was executed.

mod common;

use std::collections::BTreeMap;

use common::emulated::{assert_right, emulated, run};
use common::mma::{Case, TYPES, activations, adapted, cases, plans_of};
use tilewright::codegen::Arch;
use tilewright::host::Inputs;
use tilewright::kernels::gemm::{
    Bias, Config, DataType, Epilogue, Gemm, Operands, Schedule, Specialized,
};

fn five_hundred_problems(data_type: DataType) {
    let plans = plans_of(data_type);
    let mut served = vec![0; plans.len()];
    // (plan, access), and whether any problem executed it.
    let mut executed: BTreeMap<(usize, String), bool> = BTreeMap::new();
    for (i, case) in cases(data_type, 500, 5).iter().enumerate() {
        let turn = plans.iter().cycle().skip(i % plans.len());
        let (plan, adapted) = adapted(turn.take(plans.len()), case);
        let inputs = Inputs::random(&case.problem, data_type, case.seed);
        let run = emulated(&adapted, case, &inputs);
        assert_right(&adapted, case, &inputs, &run);
        let at = plans.iter().position(|p| p.name() == plan.name());
        let at = at.expect("one of them");
        served[at] += 1;
        for access in run.outcome.accesses {
            let name = access.proof.access;
            *executed.entry((at, name)).or_default() |= access.wavefronts.is_some();
        }
    }
    for (plan, served) in plans.iter().zip(served) {
        assert!(served >= 20, "{} served {served} problems", plan.name());
    }
    for ((plan, access), executed) in executed {
        assert!(executed, "{} never executed {access}", plans[plan].name());
    }
}

macro_rules! five_hundred_problems {
    ($($name:ident: $data_type:ident,)*) => { $(
        #[test]
        fn $name() {
            five_hundred_problems(DataType::$data_type);
        }
    )* };
}

five_hundred_problems! {
    f16: F16,
    f16_summed_in_f16: F16Acc16,
    bf16: Bf16,
    tf32: Tf32,
    s8: S8,
    e4m3: E4m3,
    e5m2: E5m2,
    f64: F64,
    f32: F32,
}

/// What makes the 500 problems worth their time: they are not all alike.
#[test]
fn the_random_problems_cover_what_they_are_meant_to() {
    for data_type in TYPES {
        let cases = cases(data_type, 500, 5);
        let some = |p: &dyn Fn(&Case) -> bool| cases.iter().filter(|c| p(c)).count();
        let least = data_type.bytes();
        for operands in Operands::ALL {
            assert_eq!(some(&|c| c.problem.operands == operands), 125);
        }
        // Every width of A, B and C, of which C's depends on its type.
        for matrix in 0..2 {
            for width in (0..=4).map(|i| 1 << i).filter(|&w| w >= least) {
                let number = some(&|c| c.problem.widths(data_type)[matrix] == width);
                assert!(number >= 40, "{data_type}: {number} of width {width}");
            }
        }
        assert!(some(&|c| c.problem.widths(data_type)[2] == 16) >= 40);
        for &result in data_type.results() {
            let widest = |c: &Case| c.problem.result(data_type) == result;
            let narrow = |c: &Case| c.problem.widths(data_type)[2] == result.bytes();
            assert!(some(&|c| widest(c) && narrow(c)) >= 20, "C in {result}");
        }
        for bias in [Bias::None, Bias::Row, Bias::Column] {
            assert!(some(&|c| c.problem.epilogue.bias == bias) >= 80);
        }
        for &activation in activations(data_type) {
            assert!(some(&|c| c.problem.epilogue.activation == activation) >= 60);
        }
        let several = |c: &Case| c.problem.batch.count > 1;
        assert!(some(&several) >= 80);
        for matrix in 0..2 {
            assert!(some(&|c| several(c) && c.problem.batch.strides[matrix] == 0) >= 8);
        }
        assert!(some(&|c| c.schedule.split > 1 && c.problem.k > 128) >= 30);
        assert!(some(&|c| c.schedule.pack) >= 100);
        assert!(some(&|c| c.schedule.pack && c.schedule.split > 1 && c.problem.k > 128) >= 10);
        assert!(some(&|c| c.problem.alpha == 0.0) >= 20 && some(&|c| c.problem.beta == 0.0) >= 20);
        let empty = |c: &Case| c.problem.m == 0 || c.problem.n == 0 || c.problem.k == 0;
        assert!(some(&empty) >= 10);
        assert!(some(&|c| c.problem.m > 64 && c.problem.n > 64 && !several(c)) >= 20);
    }
}

/// Problems at the edges for every transpose, with rows that are not aligned: plain ones and ones with what an epilogue has. Each with a
/// plan that is adapted to it: a large tile for packed operands and the smallest for operands as they lie.
fn edges(
    data_type: DataType,
    [m, n, k]: [u64; 3],
    [alpha, beta]: [f64; 2],
    split: u32,
) -> Vec<(Specialized, Case)> {
    let plans = plans_of(data_type);
    let mut all = Vec::new();
    for operands in Operands::ALL {
        for (i, &activation) in activations(data_type).iter().enumerate() {
            let mut problem = Gemm::packed(m, n, k, operands);
            problem.epilogue = Epilogue {
                bias: [Bias::None, Bias::Row, Bias::Column][i],
                activation,
            };
            (problem.lda, problem.ldb, problem.ldc) =
                (problem.lda + 1, problem.ldb + 2, problem.ldc + 3);
            (problem.alpha, problem.beta) = (alpha, beta);
            for pack in [true, false] {
                let case = Case {
                    problem,
                    schedule: Schedule { split, pack },
                    seed: 3,
                };
                let smallest = plans.iter().min_by_key(|p| {
                    let [m, n, k] = p.tile();
                    m * n * k
                });
                let plan = if pack { plans.first() } else { smallest };
                let (_, adapted) = adapted(plan.into_iter(), &case);
                all.push((adapted, case));
            }
        }
    }
    all
}

/// β = 0 does not read C: what is NaN there goes nowhere.
#[test]
fn beta_zero_does_not_spread_nan() {
    for data_type in TYPES {
        for (plan, case) in edges(data_type, [35, 37, 21], [1.0, 0.0], 1) {
            let mut inputs = Inputs::random(&case.problem, data_type, case.seed);
            inputs.c = inputs.c.filled(f64::NAN);
            let run = emulated(&plan, &case, &inputs);
            assert_right(&plan, &case, &inputs, &run);
        }
    }
}

/// α = 0 never reads A or B: there is nothing where they should be, and still no finding. Bias and activation are applied.
#[test]
fn alpha_zero_never_reads_a_or_b() {
    for data_type in TYPES {
        for split in [1, 2] {
            for (plan, case) in edges(data_type, [35, 37, 70], [0.0, -1.0], split) {
                let inputs = Inputs::random(&case.problem, data_type, case.seed);
                let mut without = inputs.clone();
                without.a.bytes.clear();
                without.b.bytes.clear();
                let run = emulated(&plan, &case, &without);
                assert_right(&plan, &case, &inputs, &run);
            }
        }
    }
}

/// Without terms in the sums, C becomes activation(β·C + bias).
#[test]
fn no_terms_in_the_sums_leaves_c_and_the_bias() {
    for data_type in TYPES {
        for beta in [0.0, 2.0] {
            for (plan, case) in edges(data_type, [35, 37, 0], [3.0, beta], 1) {
                let inputs = Inputs::random(&case.problem, data_type, case.seed);
                let run = emulated(&plan, &case, &inputs);
                assert_right(&plan, &case, &inputs, &run);
            }
        }
    }
}

#[test]
fn no_rows_or_no_columns_is_nothing_to_do() {
    for data_type in TYPES {
        for size in [[0, 5, 7], [5, 0, 7], [0, 0, 0]] {
            for (plan, case) in edges(data_type, size, [1.0, 1.0], 1) {
                let inputs = Inputs::random(&case.problem, data_type, case.seed);
                let run = emulated(&plan, &case, &inputs);
                assert!(run.outcome.report.is_none());
                assert_eq!(run.c, inputs.c);
            }
        }
    }
}

/// Products of 8-bit floats have barriers between them where the architecture widens the factors: they are right with them.
#[test]
fn what_is_emitted_for_one_architecture_alone_is_right() {
    let mut different = 0;
    for data_type in [DataType::E4m3, DataType::E5m2] {
        let plans = plans_of(data_type);
        for (i, case) in cases(data_type, 60, 23).iter().enumerate() {
            let turn = plans.iter().cycle().skip(i % plans.len());
            let (_, plan) = adapted(turn.take(plans.len()), case);
            let [first, kernel] = [plan.min_arch(), Arch(100)].map(|arch| {
                let kernel = plan.emit(case.problem.operands, arch);
                kernel.expect("the plan proves")
            });
            if first.ptx.lines().count() == kernel.ptx.lines().count() {
                continue;
            }
            different += 1;
            let inputs = Inputs::random(&case.problem, data_type, case.seed);
            let run = run(&plan, &kernel, case, &inputs);
            assert_right(&plan, case, &inputs, &run);
        }
    }
    assert!(different >= 20, "{different} kernels");
}

/// No shared access of any plan has a conflict, in any orientation, with any width of copies that it has.
#[test]
fn no_shared_access_has_a_conflict() {
    let mut seen = 0;
    for plan in TYPES.into_iter().flat_map(plans_of) {
        for operands in Operands::ALL {
            for width in [16, 8, 4, 2, 1] {
                let mut problem = Gemm::packed(256, 256, 256, operands);
                (problem.alignment.a, problem.alignment.b) = (width, width);
                // Alignments below an element's size and narrow copies of large tiles are refused.
                let Ok(plan) = plan.specialize(&problem, Schedule::default()) else {
                    assert!(width < 16, "{}, {operands}", plan.name());
                    continue;
                };
                for a in plan.prove(operands).expect("the plan proves").accesses {
                    let what = format!("{}, {operands}, {width}", plan.name());
                    assert_eq!(a.wavefronts, a.ideal, "{what}: {}", a.access);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 1000, "{seen} accesses");
}

/// A plan as it is listed takes aligned operands; others are refused by name, with what to do.
#[test]
fn what_a_plan_is_not_adapted_to_is_refused_by_name() {
    let plan = "mma-f16-64x64x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("there is such a plan");
    let mut problem = Gemm::packed(100, 104, 104, Operands::ALL[0]);
    problem.ldb = 105;
    let error = plan
        .launch(&problem)
        .expect_err("105 halves are no multiple of 16 bytes");
    assert_eq!(error.code(), "unaligned");
    let text = error.to_string();
    assert!(
        text.contains("of B start at multiples of 2 bytes") && text.contains("Config::specialize"),
        "{text}"
    );
}
