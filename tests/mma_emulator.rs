//! The `mma.sync` plans on the emulator: every type, every transpose, ragged sizes, with every check of the sanitizer on.

mod common;

use tilewright::codegen::plan::{Arch, DataType, Gemm, Operands, plan_named};
use tilewright::emulator::Options;
use tilewright::host::{Inputs, check, emulate};

/// A problem whose rows start at multiples of 16 bytes, as these plans need.
fn aligned(random: &mut common::Random, data_type: DataType, operands: Operands) -> Gemm {
    let [m, n, k] = [(); 3].map(|()| random.below(150));
    let mut problem = Gemm::packed(m, n, k, operands);
    let multiple = u64::from(16 / data_type.bytes());
    problem.lda = problem.lda.next_multiple_of(multiple) + multiple * random.below(3);
    problem.ldb = problem.ldb.next_multiple_of(multiple) + multiple * random.below(3);
    problem.ldc += random.below(4);
    (problem.alpha, problem.beta) = if data_type == DataType::S8 {
        (random.below(5) as f64 - 2.0, random.below(5) as f64 - 2.0)
    } else {
        (random.scalar(), random.scalar())
    };
    problem
}

/// Ten problems for each transpose; numbers, gaps, findings, and wavefronts as proven.
fn forty_problems(name: &str, arch: Arch) {
    let plan = plan_named(name).expect("there is such a plan");
    let data_type = plan.data_type();
    let mut random = common::Random::new(7);
    for operands in Operands::ALL {
        let kernel = plan.emit(operands, arch).expect("the plan proves");
        for seed in 0..10 {
            let problem = aligned(&mut random, data_type, operands);
            let inputs = Inputs::random(&problem, data_type, seed);
            let run = emulate(
                plan.as_ref(),
                &kernel,
                &problem,
                &inputs,
                &Options::default(),
            );
            let run = run.expect("the emulator runs it");
            let Some(report) = &run.report else {
                assert_eq!(problem.m * problem.n, 0);
                continue;
            };
            assert!(
                report.is_clean(),
                "{name}, {problem:?}: {}",
                report.findings[0]
            );
            let check = check(&problem, data_type, &inputs, &run.c).expect("shapes agree");
            assert!(check.passed, "{name}, {problem:?}: {check:?}");
            for (proven, counted) in kernel.proof.accesses.iter().zip(&run.accesses) {
                let expected = (proven.wavefronts, proven.wavefronts);
                assert_eq!(
                    counted.wavefronts,
                    Some(expected),
                    "{name}: {}",
                    proven.access
                );
            }
        }
    }
}

#[test]
fn f16() {
    forty_problems("mma-f16-64x64x32", Arch(80));
    forty_problems("mma-f16-128x256x64", Arch(90));
}

#[test]
fn bf16() {
    forty_problems("mma-bf16-64x64x32", Arch(80));
}

#[test]
fn tf32() {
    forty_problems("mma-tf32-64x64x16", Arch(80));
    forty_problems("mma-tf32-128x128x32", Arch(80));
}

#[test]
fn s8() {
    forty_problems("mma-s8-64x64x64", Arch(80));
}

#[test]
fn e4m3() {
    forty_problems("mma-e4m3-64x64x64", Arch(89));
}

#[test]
fn e5m2() {
    forty_problems("mma-e5m2-64x64x64", Arch(89));
}

#[test]
fn f64() {
    forty_problems("mma-f64-64x64x16", Arch(80));
    forty_problems("mma-f64-64x128x16", Arch(90));
}

/// 16-bit types read and write without a conflict, in every orientation.
#[test]
fn sixteen_bit_operands_have_no_conflicts() {
    for name in [
        "mma-f16-64x64x32",
        "mma-f16-128x256x64",
        "mma-bf16-128x128x32",
    ] {
        let plan = plan_named(name).expect("there is such a plan");
        for operands in Operands::ALL {
            for a in plan.prove(operands).expect("the plan proves").accesses {
                assert_eq!(a.wavefronts, a.ideal, "{name}, {operands}: {}", a.access);
            }
        }
    }
}

#[test]
fn rows_that_are_not_aligned_are_refused_by_name() {
    let plan = plan_named("mma-f16-64x64x32").expect("there is such a plan");
    let mut problem = Gemm::packed(100, 100, 104, Operands::ALL[0]);
    problem.ldb = 101;
    let error = plan
        .launch(&problem)
        .expect_err("101 halves are no multiple of 16 bytes");
    assert_eq!(error.code(), "unaligned");
    assert!(
        error
            .to_string()
            .contains("of B start at multiples of 2 bytes"),
        "{error}"
    );
}
