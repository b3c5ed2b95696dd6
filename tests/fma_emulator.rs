//! The plans by fused multiply-adds that have one kernel for all problems (maxas's, the R700's, the Radeon DGEMM's) on the emulator, against a
//! double-precision reference: random ragged problems with every check of the sanitizer on, the wavefronts that were proven, and the edge
//! cases of BLAS.

mod common;

use common::emulated::{Product, product, strict};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::ParamKind;
use tilewright::emulator::{Arg, GlobalMemory, Launch, Module, Report, run};
use tilewright::host::{Inputs, Matrix, check};
use tilewright::kernels::gemm::{
    ArgumentValue, Config, DataType, Emitted, Gemm, Mainloop, Operands, Specialized,
};

/// The kernels of the sources.
const SOURCES: [&str; 4] = [
    "sgemm-maxas-64",
    "sgemm-maxas-128",
    "dgemm-4x4",
    "sgemm-r700-64",
];

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

fn plans() -> Vec<Specialized> {
    SOURCES.map(named).to_vec()
}

fn kernel(plan: &Specialized, operands: Operands) -> Emitted {
    plan.emit(operands, Arch(80)).expect("the plan proves")
}

fn emulated(plan: &Specialized, kernel: &Emitted, problem: &Gemm, inputs: &Inputs) -> Product {
    let run = product((plan, kernel), (problem, inputs), strict());
    let run = run.expect("the emulator runs it");
    let clean = run.outcome.clean();
    assert_eq!(clean, Ok(()), "{}, {problem:?}", plan.name());
    run
}

fn assert_right(plan: &Specialized, problem: &Gemm, inputs: &Inputs, run: &Product) {
    let check = check(problem, plan.data_type, inputs, &run.c).expect("shapes agree");
    assert!(check.gaps_untouched, "{}, {problem:?}", plan.name());
    assert!(check.passed, "{}, {problem:?}: {check:?}", plan.name());
}

/// The wavefronts that the emulator counted for each execution of each shared access are those that the plan proved for all. Without
/// terms in the sums, the loops of the outer products have no turn: nothing is read from a stage.
fn assert_proven_wavefronts(plan: &Specialized, problem: &Gemm, run: &Product) {
    let no_turn = problem.k == 0 || problem.alpha == 0.0;
    for counted in &run.outcome.accesses {
        let proven = &counted.proof;
        let expected = Some((proven.wavefronts, proven.wavefronts));
        let outer = matches!(plan.mainloop, Mainloop::OuterProduct(_));
        let none = outer && no_turn && proven.access.starts_with("read");
        let expected = if none { None } else { expected };
        assert_eq!(
            counted.wavefronts,
            expected,
            "{}: {}",
            plan.name(),
            proven.access
        );
    }
}

fn two_hundred_problems(plan: &Specialized) {
    let kernels = Operands::ALL.map(|operands| kernel(plan, operands));
    for (seed, problem) in (0..).zip(common::problems(200, 2)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let kernel = &kernels[at.expect("one of four")];
        let inputs = Inputs::random(&problem, plan.data_type, seed);
        let run = emulated(plan, kernel, &problem, &inputs);
        assert_right(plan, &problem, &inputs, &run);
        match run.outcome.report {
            Some(_) => assert_proven_wavefronts(plan, &problem, &run),
            None => assert_eq!(problem.m * problem.n, 0),
        }
    }
}

#[test]
fn two_hundred_random_problems_of_sgemm_maxas_64() {
    two_hundred_problems(&named("sgemm-maxas-64"));
}

#[test]
fn two_hundred_random_problems_of_sgemm_maxas_128() {
    two_hundred_problems(&named("sgemm-maxas-128"));
}

#[test]
fn two_hundred_random_problems_of_dgemm_4x4() {
    two_hundred_problems(&named("dgemm-4x4"));
}

#[test]
fn two_hundred_random_problems_of_sgemm_r700_64() {
    two_hundred_problems(&named("sgemm-r700-64"));
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

/// The main loop runs where tiles are whole and rows are aligned: several turns of it, then the rest.
#[test]
fn the_main_loop_and_the_rest_agree() {
    for plan in plans() {
        for operands in Operands::ALL {
            for (m, n, k) in [(64, 64, 24), (128, 64, 40), (128, 192, 63), (64, 128, 23)] {
                for more in [0, 1] {
                    let mut problem = Gemm::packed(m, n, k, operands);
                    problem.lda = problem.lda.next_multiple_of(4) + more;
                    problem.ldb = problem.ldb.next_multiple_of(4) + more;
                    problem.ldc += more;
                    (problem.alpha, problem.beta) = (1.5, -0.5);
                    let inputs = Inputs::random(&problem, plan.data_type, k);
                    let run = emulated(&plan, &kernel(&plan, operands), &problem, &inputs);
                    assert_right(&plan, &problem, &inputs, &run);
                }
            }
        }
    }
}

/// Lanes `l` and `l^1` of the one read of a stage, `l` and `l^2` of the other read the same 16 bytes: two wavefronts for the 512 bytes that 32
/// lanes ask for, where distinct vectors would take four (one for each quarter of the warp).
#[test]
fn the_fragment_reads_profit_from_the_pair_rule() {
    for plan in plans() {
        for operands in Operands::ALL {
            let proof = plan.prove(operands).expect("it proves");
            let names = [["readAs", "readBs"], ["readX", "readY"]];
            let reads = proof.accesses.iter();
            let reads = reads.filter(|a| names.iter().flatten().any(|n| a.access == *n));
            let reads: Vec<_> = reads.map(|a| (a.wavefronts, a.ideal)).collect();
            assert_eq!(reads, [(2, 2); 2], "{}", plan.name());
        }
    }
}

/// The stores of the outer products, too.
#[test]
fn every_access_of_a_stage_of_outer_products_is_free_of_conflicts() {
    for plan in ["dgemm-4x4", "sgemm-r700-64"].map(named) {
        for operands in Operands::ALL {
            let proof = plan.prove(operands).expect("it proves");
            assert_eq!(proof.accesses.len(), 4);
            for access in &proof.accesses {
                assert_eq!(access.wavefronts, access.ideal, "{plan}: {}", access.access);
            }
        }
    }
}

#[test]
fn no_rows_or_no_columns_is_nothing_to_do() {
    for plan in plans() {
        for operands in Operands::ALL {
            for (m, n) in [(0, 0), (0, 70), (70, 0)] {
                let mut problem = Gemm::packed(m, n, 70, operands);
                problem.beta = 0.5;
                assert_eq!(plan.launch(&problem), Ok(None));
                let inputs = Inputs::random(&problem, plan.data_type, 1);
                let run = emulated(&plan, &kernel(&plan, operands), &problem, &inputs);
                assert!(run.outcome.report.is_none());
                assert_eq!(run.c, inputs.c);
            }
        }
    }
}

/// With no terms in the sums, C becomes β·C: exactly, since that is a single product.
#[test]
fn no_terms_in_the_sums_gives_beta_c() {
    for plan in plans() {
        for operands in Operands::ALL {
            for beta in [0.0, 1.0, -0.375, 1.1] {
                let mut problem = Gemm::packed(70, 133, 0, operands);
                (problem.alpha, problem.beta, problem.ldc) = (2.5, beta, 135);
                let inputs = Inputs::random(&problem, plan.data_type, 2);
                let run = emulated(&plan, &kernel(&plan, operands), &problem, &inputs);
                for (r, c) in (0..70).flat_map(|r| (0..133).map(move |c| (r, c))) {
                    let old = inputs.c.at(r, c);
                    let expected = match plan.data_type {
                        DataType::F64 => beta * old,
                        _ => f64::from(beta as f32 * old as f32),
                    };
                    // Zeros of either sign are equal.
                    let error = (run.c.at(r, c) - expected).abs();
                    assert!(error <= 0.0, "{}, beta {beta}, ({r}, {c})", plan.name());
                }
                assert!(run.c.gaps_untouched(&inputs.c));
            }
        }
    }
}

#[test]
fn beta_zero_and_alpha_zero_do_not_spread_nan() {
    for plan in plans() {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(129, 67, 21, operands);
            problem.ldc = 69;
            let mut inputs = Inputs::random(&problem, plan.data_type, 3);
            inputs.c = inputs.c.filled(f64::NAN);
            let run = emulated(&plan, &kernel(&plan, operands), &problem, &inputs);
            assert_right(&plan, &problem, &inputs, &run);

            (problem.alpha, problem.beta) = (0.0, -1.0);
            let mut inputs = Inputs::random(&problem, plan.data_type, 4);
            inputs.a = inputs.a.filled(f64::NAN);
            inputs.b = inputs.b.filled(f64::INFINITY);
            let run = emulated(&plan, &kernel(&plan, operands), &problem, &inputs);
            assert_right(&plan, &problem, &inputs, &run);
        }
    }
}

/// Runs with buffers of the caller's: addresses of A, B and C.
fn on_buffers(
    plan: &Specialized,
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
            ArgumentValue::Float(v) if argument.kind == ParamKind::F64 => Arg::F64(v),
            ArgumentValue::Float(v) => Arg::F32(v as f32),
            ArgumentValue::Bias
            | ArgumentValue::Given
            | ArgumentValue::TensorMap(..)
            | ArgumentValue::Workspace(_) => {
                unreachable!("{} has no such parameter", plan.name())
            }
        });
    let config = Launch {
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.shared_bytes,
        args: args.collect(),
        ..Launch::default()
    };
    let module = Module::parse(&kernel(plan, problem.operands).ptx).expect("valid PTX");
    run(&module, &launch.kernel, &config, memory, &strict()).expect("a possible launch")
}

fn placed(memory: &mut GlobalMemory, m: &Matrix, shift: u64) -> u64 {
    let room = m.bytes.len() as u64 + shift;
    let at = memory.alloc(room, 256).expect("an allocation") + shift;
    memory.write(at, &m.bytes).expect("inside");
    at
}

/// β = 0 never reads C: a C that nobody has written gives no finding, and with β = 1 it gives one.
#[test]
fn beta_zero_never_reads_c() {
    for plan in plans() {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(65, 130, 9, operands);
            let inputs = Inputs::random(&problem, plan.data_type, 4);
            for (beta, clean) in [(0.0, true), (-0.0, true), (1.0, false)] {
                problem.beta = beta;
                let mut memory = GlobalMemory::new();
                let a = placed(&mut memory, &inputs.a, 0);
                let b = placed(&mut memory, &inputs.b, 0);
                let room = inputs.c.bytes.len() as u64;
                let c = memory.alloc(room, 256).expect("an allocation");
                let report = on_buffers(&plan, &problem, &mut memory, [a, b, c]);
                let found = &report.findings;
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{}, {operands}, beta {beta}: {found:?}",
                    plan.name()
                );
            }
        }
    }
}

/// α = 0 never reads A or B: addresses where there is nothing give no finding, and with α = 1 they do. So it is with k = 0.
#[test]
fn alpha_zero_never_reads_a_or_b() {
    for plan in plans() {
        for operands in Operands::ALL {
            for (alpha, k, clean) in [
                (0.0, 64, true),
                (-0.0, 13, true),
                (1.0, 0, true),
                (1.0, 64, false),
            ] {
                let mut problem = Gemm::packed(128, 130, k, operands);
                (problem.alpha, problem.beta) = (alpha, 0.5);
                let c = Inputs::random(&problem, plan.data_type, 5).c;
                let mut memory = GlobalMemory::new();
                let at = placed(&mut memory, &c, 0);
                let report = on_buffers(&plan, &problem, &mut memory, [0x1000, 0x2000, at]);
                let found = report.findings.first();
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{}, {operands}, alpha {alpha}: {found:?}",
                    plan.name()
                );
                if clean {
                    let bytes = memory.read(at, c.bytes.len()).expect("inside");
                    let after = Matrix { bytes, ..c.clone() };
                    let halved: Vec<f64> = c.packed().iter().map(|x| x / 2.0).collect();
                    assert_eq!(
                        after.packed(),
                        halved,
                        "{}, {operands}, alpha {alpha}",
                        plan.name()
                    );
                }
            }
        }
    }
}

/// Operands that begin anywhere: vectors are loaded and stored only where they are aligned.
#[test]
fn operands_need_no_alignment_beyond_an_element() {
    for plan in plans() {
        let element = u64::from(plan.data_type.bytes());
        for operands in Operands::ALL {
            let problem = Gemm::packed(128, 128, 40, operands);
            let inputs = Inputs::random(&problem, plan.data_type, 7);
            let mut results = Vec::new();
            for shift in (0..16).step_by(element as usize) {
                let mut memory = GlobalMemory::new();
                let all = [&inputs.a, &inputs.b, &inputs.c];
                let at = all.map(|m| placed(&mut memory, m, shift));
                let report = on_buffers(&plan, &problem, &mut memory, at);
                let found = &report.findings;
                assert!(
                    report.is_clean(),
                    "{}, {operands}, shift {shift}: {found:?}",
                    plan.name()
                );
                results.push(memory.read(at[2], inputs.c.bytes.len()).expect("inside"));
            }
            assert!(
                results.iter().all(|r| *r == results[0]),
                "{}, {operands}",
                plan.name()
            );
        }
    }
}
