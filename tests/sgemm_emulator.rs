//! The SGEMM plans on the emulator, against a double-precision reference: random ragged problems with every check of the sanitizer
//! on, the bank conflicts that were proven, and the edge cases of BLAS.

mod common;

use tilewright::codegen::Arch;
use tilewright::codegen::gemm::simt::SgemmPlan;
use tilewright::codegen::gemm::{ArgumentValue, DataType, Emitted, Gemm, Operands, Plan};
use tilewright::emulator::{Arg, GlobalMemory, Launch, Module, Options, Report, run};
use tilewright::host::{EmulatedRun, Inputs, Matrix, check, emulate};

/// Everything that the sanitizer can look for.
fn strict() -> Options {
    Options {
        global_races: true,
        undefined_global: true,
        ..Options::default()
    }
}

fn kernel(plan: SgemmPlan, operands: Operands) -> Emitted {
    plan.emit(operands, Arch(80)).expect("the plan proves")
}

fn emulated(plan: SgemmPlan, kernel: &Emitted, problem: &Gemm, inputs: &Inputs) -> EmulatedRun {
    let run = emulate(&plan, kernel, problem, inputs, &strict()).expect("the emulator runs it");
    if let Some(report) = &run.report {
        assert!(
            report.is_clean(),
            "{plan}, {problem:?}: {}",
            report.findings[0]
        );
    }
    run
}

/// The wavefronts that the emulator counted for each execution of each shared access are those that the plan proved for all.
fn assert_proven_wavefronts(plan: SgemmPlan, kernel: &Emitted, run: &EmulatedRun) {
    assert_eq!(run.accesses.len(), kernel.proof.accesses.len());
    for (proven, counted) in kernel.proof.accesses.iter().zip(&run.accesses) {
        assert_eq!(proven.access, counted.access);
        let expected = Some((proven.wavefronts, proven.wavefronts));
        assert_eq!(counted.wavefronts, expected, "{plan}: {}", proven.access);
    }
}

fn two_hundred_problems(plan: SgemmPlan) {
    let kernels = Operands::ALL.map(|operands| kernel(plan, operands));
    for (seed, problem) in (0..).zip(common::problems(200, 2)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let kernel = &kernels[at.expect("one of four")];
        let inputs = Inputs::random(&problem, DataType::F32, seed);
        let run = emulated(plan, kernel, &problem, &inputs);
        let check = check(&problem, DataType::F32, &inputs, &run.c).expect("shapes agree");
        assert!(check.gaps_untouched, "{plan}, {problem:?}");
        assert!(check.passed, "{plan}, {problem:?}: {check:?}");
        match run.report {
            Some(_) => assert_proven_wavefronts(plan, kernel, &run),
            None => assert_eq!(problem.m * problem.n, 0),
        }
    }
}

#[test]
fn two_hundred_random_problems_64() {
    two_hundred_problems(SgemmPlan::MAXAS_64);
}

#[test]
fn two_hundred_random_problems_128() {
    two_hundred_problems(SgemmPlan::MAXAS_128);
}

/// What makes the 200 problems worth their time: they are not all alike.
#[test]
fn the_random_problems_cover_what_they_are_meant_to() {
    let problems = common::problems(200, 2);
    let some = |p: &dyn Fn(&Gemm) -> bool| problems.iter().filter(|g| p(g)).count();
    for operands in Operands::ALL {
        assert_eq!(some(&|g| g.operands == operands), 50);
        assert!(some(&|g| g.operands == operands && g.lda % 2 == 1 && g.ldb % 2 == 1) >= 10);
    }
    assert!(some(&|g| g.alpha == 0.0) >= 5 && some(&|g| g.beta == 0.0) >= 5);
    assert!(some(&|g| g.m > 128 && g.n > 128) >= 5 && some(&|g| g.m < 64 && g.n < 64) >= 5);
    assert!(some(&|g| g.k % 8 != 0) >= 100 && some(&|g| g.k % 8 == 0 && g.k > 0) >= 5);
    // Whole tiles loaded in vectors.
    assert!(some(&|g| g.lda % 4 == 0 && g.m >= 64 && g.k >= 8) >= 5);
}

/// Lanes `l` and `l^1` of readAs, `l` and `l^2` of readBs read the same 16 bytes: two wavefronts for the 512 bytes that 32
/// lanes ask for, where distinct vectors would take four (one for each quarter of the warp).
#[test]
fn the_fragment_reads_profit_from_the_pair_rule() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            let proof = plan.prove(operands).expect("it proves");
            for name in ["readAs", "readBs"] {
                let access = proof.accesses.iter().find(|a| a.access == name);
                let access = access.expect("the access is proven");
                assert_eq!((access.wavefronts, access.ideal), (2, 2), "{plan}: {name}");
            }
        }
    }
}

#[test]
fn no_rows_or_no_columns_is_nothing_to_do() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            for (m, n) in [(0, 0), (0, 70), (70, 0)] {
                let mut problem = Gemm::packed(m, n, 70, operands);
                problem.beta = 0.5;
                assert_eq!(plan.launch(&problem), Ok(None));
                let inputs = Inputs::random(&problem, DataType::F32, 1);
                let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
                assert!(run.report.is_none());
                assert_eq!(run.c, inputs.c);
            }
        }
    }
}

/// With no terms in the sums, C becomes β·C: exactly, since that is a single product.
#[test]
fn no_terms_in_the_sums_gives_beta_c() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            for beta in [0.0, 1.0, -0.375, 1.1] {
                let mut problem = Gemm::packed(70, 133, 0, operands);
                (problem.alpha, problem.beta, problem.ldc) = (2.5, beta, 135);
                let inputs = Inputs::random(&problem, DataType::F32, 2);
                let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
                for (r, c) in (0..70).flat_map(|r| (0..133).map(move |c| (r, c))) {
                    let expected = beta as f32 * inputs.c.at(r, c) as f32;
                    // Zeros of either sign are equal.
                    assert!(
                        (run.c.at(r, c) - f64::from(expected)).abs() <= 0.0,
                        "{plan}, beta {beta}, ({r}, {c})"
                    );
                }
                assert!(run.c.gaps_untouched(&inputs.c));
            }
        }
    }
}

#[test]
fn beta_zero_does_not_spread_nan() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(129, 67, 21, operands);
            problem.ldc = 69;
            let mut inputs = Inputs::random(&problem, DataType::F32, 3);
            inputs.c = inputs.c.filled(f64::NAN);
            let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
            let check = check(&problem, DataType::F32, &inputs, &run.c).expect("shapes agree");
            assert!(check.passed, "{plan}, {operands}: {check:?}");
        }
    }
}

/// Runs with buffers of the caller's: addresses of A, B and C, and what is in C afterwards.
fn on_buffers(
    plan: SgemmPlan,
    problem: &Gemm,
    memory: &mut GlobalMemory,
    [a, b, c]: [u64; 3],
) -> Report {
    let launch = plan.launch(problem).expect("valid").expect("not empty");
    let args = launch
        .arguments
        .iter()
        .map(|argument| match argument.value {
            ArgumentValue::A => Arg::Ptr(a),
            ArgumentValue::B => Arg::Ptr(b),
            ArgumentValue::C => Arg::Ptr(c),
            ArgumentValue::Int(v) => Arg::U32(v as u32),
            ArgumentValue::Float(v) => Arg::F32(v as f32),
            ArgumentValue::Bias
            | ArgumentValue::Given
            | ArgumentValue::TensorMap(_)
            | ArgumentValue::Workspace(_) => {
                unreachable!("{plan} has no such parameter")
            }
        });
    let config = Launch {
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.shared_bytes,
        args: args.collect(),
    };
    let module = Module::parse(&kernel(plan, problem.operands).ptx).expect("valid PTX");
    run(&module, &launch.kernel, &config, memory, &strict()).expect("a possible launch")
}

fn placed(memory: &mut GlobalMemory, m: &Matrix) -> u64 {
    let at = memory
        .alloc(m.bytes.len() as u64, 256)
        .expect("an allocation");
    memory.write(at, &m.bytes).expect("inside");
    at
}

/// β = 0 never reads C: a C that nobody has written gives no finding, and with β = 1 it gives one.
#[test]
fn beta_zero_never_reads_c() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(65, 130, 9, operands);
            let inputs = Inputs::random(&problem, DataType::F32, 4);
            for (beta, clean) in [(0.0, true), (-0.0, true), (1.0, false)] {
                problem.beta = beta;
                let mut memory = GlobalMemory::new();
                let (a, b) = (
                    placed(&mut memory, &inputs.a),
                    placed(&mut memory, &inputs.b),
                );
                let c = memory.alloc(4 * 65 * 130, 256).expect("an allocation");
                let report = on_buffers(plan, &problem, &mut memory, [a, b, c]);
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{plan}, {operands}, beta {beta}: {:?}",
                    report.findings
                );
            }
        }
    }
}

/// α = 0 never reads A or B: addresses where there is nothing give no finding, and with α = 1 they do. So it is with k = 0.
#[test]
fn alpha_zero_never_reads_a_or_b() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            for (alpha, k, clean) in [
                (0.0, 64, true),
                (-0.0, 13, true),
                (1.0, 0, true),
                (1.0, 64, false),
            ] {
                let mut problem = Gemm::packed(128, 130, k, operands);
                (problem.alpha, problem.beta) = (alpha, 0.5);
                let c = Inputs::random(&problem, DataType::F32, 5).c;
                let mut memory = GlobalMemory::new();
                let at = placed(&mut memory, &c);
                let nowhere = [0x1000, 0x2000];
                let report = on_buffers(plan, &problem, &mut memory, [nowhere[0], nowhere[1], at]);
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{plan}, {operands}, alpha {alpha}: {:?}",
                    report.findings
                );
                if clean {
                    let bytes = memory.read(at, c.bytes.len()).expect("inside");
                    let after = Matrix { bytes, ..c.clone() };
                    let halved: Vec<f64> = c.packed().iter().map(|x| x / 2.0).collect();
                    assert_eq!(after.packed(), halved, "{plan}, {operands}, alpha {alpha}");
                }
            }
        }
    }
}

#[test]
fn alpha_zero_does_not_spread_nan() {
    for plan in SgemmPlan::ALL {
        let mut problem = Gemm::packed(70, 70, 70, Operands::ALL[1]);
        (problem.alpha, problem.beta) = (0.0, -1.0);
        let mut inputs = Inputs::random(&problem, DataType::F32, 6);
        inputs.a = inputs.a.filled(f64::NAN);
        inputs.b = inputs.b.filled(f64::INFINITY);
        let run = emulated(plan, &kernel(plan, problem.operands), &problem, &inputs);
        let check = check(&problem, DataType::F32, &inputs, &run.c).expect("shapes agree");
        assert!(check.passed, "{plan}: {check:?}");
    }
}

/// Operands that begin anywhere: vectors are loaded only where they are aligned.
#[test]
fn operands_need_no_alignment_beyond_an_element() {
    for plan in SgemmPlan::ALL {
        for operands in Operands::ALL {
            let problem = Gemm::packed(128, 128, 16, operands);
            let inputs = Inputs::random(&problem, DataType::F32, 7);
            let mut results = Vec::new();
            for shift in [0, 4, 8, 12] {
                let mut memory = GlobalMemory::new();
                let [a, b] = [&inputs.a, &inputs.b].map(|m| {
                    let room = m.bytes.len() as u64 + shift;
                    let at = memory.alloc(room, 256).expect("an allocation") + shift;
                    memory.write(at, &m.bytes).expect("inside");
                    at
                });
                let c = memory.alloc(4 * 128 * 128, 256).expect("an allocation");
                let report = on_buffers(plan, &problem, &mut memory, [a, b, c]);
                assert!(
                    report.is_clean(),
                    "{plan}, {operands}, shift {shift}: {:?}",
                    report.findings
                );
                results.push(memory.read(c, 4 * 128 * 128).expect("inside"));
            }
            assert!(
                results.iter().all(|r| *r == results[0]),
                "{plan}, {operands}"
            );
        }
    }
}
