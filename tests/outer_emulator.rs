//! The plans of outer products on the emulator, against a double-precision reference: random ragged problems with every check of the
//! sanitizer on, the wavefronts that were proven, and the edge cases of BLAS.

mod common;

use tilewright::codegen::Arch;
use tilewright::codegen::gemm::outer::OuterPlan;
use tilewright::codegen::gemm::{ArgumentValue, Emitted, Gemm, Operands, Plan};
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

fn kernel(plan: OuterPlan, operands: Operands) -> Emitted {
    plan.emit(operands, Arch(75)).expect("the plan proves")
}

fn emulated(plan: OuterPlan, kernel: &Emitted, problem: &Gemm, inputs: &Inputs) -> EmulatedRun {
    let run = emulate(&plan, kernel, problem, inputs, &strict()).expect("the emulator runs it");
    if let Some(report) = &run.report {
        let first = report.findings.first();
        assert!(report.is_clean(), "{plan}, {problem:?}: {first:?}");
    }
    run
}

fn assert_right(plan: OuterPlan, problem: &Gemm, inputs: &Inputs, run: &EmulatedRun) {
    let check = check(problem, plan.data_type(), inputs, &run.c).expect("shapes agree");
    assert!(check.gaps_untouched, "{plan}, {problem:?}");
    assert!(check.passed, "{plan}, {problem:?}: {check:?}");
}

fn two_hundred_problems(plan: OuterPlan) {
    let kernels = Operands::ALL.map(|operands| kernel(plan, operands));
    for (seed, problem) in (0..).zip(common::problems(200, 12)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let kernel = &kernels[at.expect("one of four")];
        let inputs = Inputs::random(&problem, plan.data_type(), seed);
        let run = emulated(plan, kernel, &problem, &inputs);
        assert_right(plan, &problem, &inputs, &run);
        if run.report.is_none() {
            assert_eq!(problem.m * problem.n, 0);
            continue;
        }
        assert_eq!(run.accesses.len(), kernel.proof.accesses.len());
        for (proven, counted) in kernel.proof.accesses.iter().zip(&run.accesses) {
            assert_eq!(proven.access, counted.access);
            // Without terms in the sums no loop has a turn, and nothing is read from a stage.
            let expected = Some((proven.wavefronts, proven.wavefronts));
            let is_read = proven.access.starts_with("read");
            let none = (problem.k == 0 || problem.alpha == 0.0) && is_read;
            let expected = if none { None } else { expected };
            assert_eq!(counted.wavefronts, expected, "{plan}: {}", proven.access);
        }
    }
}

#[test]
fn two_hundred_random_problems_of_dgemm_4x4() {
    two_hundred_problems(OuterPlan::DGEMM_4X4);
}

#[test]
fn two_hundred_random_problems_of_sgemm_r700_64() {
    two_hundred_problems(OuterPlan::SGEMM_R700_64);
}

/// The main loop runs where tiles are whole and rows are aligned: several turns of it, then the rest.
#[test]
fn the_main_loop_and_the_rest_agree() {
    for plan in OuterPlan::ALL {
        for operands in Operands::ALL {
            for (m, n, k) in [(64, 64, 24), (128, 64, 40), (128, 192, 63), (64, 128, 23)] {
                for more in [0, 1] {
                    let mut problem = Gemm::packed(m, n, k, operands);
                    problem.lda = problem.lda.next_multiple_of(4) + more;
                    problem.ldb = problem.ldb.next_multiple_of(4) + more;
                    problem.ldc += more;
                    (problem.alpha, problem.beta) = (1.5, -0.5);
                    let inputs = Inputs::random(&problem, plan.data_type(), k);
                    let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
                    assert_right(plan, &problem, &inputs, &run);
                }
            }
        }
    }
}

#[test]
fn every_access_of_a_stage_is_free_of_conflicts() {
    for plan in OuterPlan::ALL {
        for operands in Operands::ALL {
            let proof = plan.prove(operands).expect("it proves");
            assert_eq!(proof.accesses.len(), 4);
            for access in &proof.accesses {
                assert_eq!(access.wavefronts, access.ideal, "{plan}: {}", access.access);
                if access.access.starts_with("read") {
                    // Half of what 512 different bytes would cost, by the pair rule.
                    assert_eq!(access.wavefronts, 2, "{plan}: {}", access.access);
                }
            }
        }
    }
}

#[test]
fn no_rows_or_no_columns_is_nothing_to_do() {
    for plan in OuterPlan::ALL {
        for (m, n) in [(0, 0), (0, 70), (70, 0)] {
            let problem = Gemm::packed(m, n, 70, Operands::ALL[0]);
            assert_eq!(plan.launch(&problem), Ok(None));
        }
    }
}

/// With no terms in the sums, C becomes β·C.
#[test]
fn no_terms_in_the_sums_gives_beta_c() {
    for plan in OuterPlan::ALL {
        for beta in [0.0, 1.0, -0.375] {
            let operands = Operands::ALL[1];
            let mut problem = Gemm::packed(70, 133, 0, operands);
            (problem.alpha, problem.beta, problem.ldc) = (2.5, beta, 135);
            let inputs = Inputs::random(&problem, plan.data_type(), 2);
            let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
            for (r, c) in (0..70).flat_map(|r| (0..133).map(move |c| (r, c))) {
                let expected = beta * inputs.c.at(r, c);
                // A single product, rounded to f32 at most.
                let error = (run.c.at(r, c) - expected).abs();
                assert!(
                    error <= expected.abs() * 1e-7,
                    "{plan}, beta {beta}, ({r}, {c})"
                );
            }
            assert!(run.c.gaps_untouched(&inputs.c));
        }
    }
}

#[test]
fn beta_zero_and_alpha_zero_do_not_spread_nan() {
    for plan in OuterPlan::ALL {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(129, 67, 21, operands);
            problem.ldc = 69;
            let mut inputs = Inputs::random(&problem, plan.data_type(), 3);
            inputs.c = inputs.c.filled(f64::NAN);
            let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
            assert_right(plan, &problem, &inputs, &run);

            (problem.alpha, problem.beta) = (0.0, -1.0);
            let mut inputs = Inputs::random(&problem, plan.data_type(), 4);
            inputs.a = inputs.a.filled(f64::NAN);
            inputs.b = inputs.b.filled(f64::INFINITY);
            let run = emulated(plan, &kernel(plan, operands), &problem, &inputs);
            assert_right(plan, &problem, &inputs, &run);
        }
    }
}

/// Runs with buffers of the caller's: addresses of A, B and C.
fn on_buffers(
    plan: OuterPlan,
    problem: &Gemm,
    memory: &mut GlobalMemory,
    [a, b, c]: [u64; 3],
) -> Report {
    let launch = plan.launch(problem).expect("valid").expect("not empty");
    let double = plan == OuterPlan::DGEMM_4X4;
    let args = launch
        .arguments
        .iter()
        .map(|argument| match argument.value {
            ArgumentValue::A => Arg::Ptr(a),
            ArgumentValue::B => Arg::Ptr(b),
            ArgumentValue::C => Arg::Ptr(c),
            ArgumentValue::Int(v) => Arg::U32(v as u32),
            ArgumentValue::Float(v) if double => Arg::F64(v),
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

fn placed(memory: &mut GlobalMemory, m: &Matrix, shift: u64) -> u64 {
    let room = m.bytes.len() as u64 + shift;
    let at = memory.alloc(room, 256).expect("an allocation") + shift;
    memory.write(at, &m.bytes).expect("inside");
    at
}

/// β = 0 never reads C: a C that nobody has written gives no finding, and with β = 1 it gives one.
#[test]
fn beta_zero_never_reads_c() {
    for plan in OuterPlan::ALL {
        for operands in Operands::ALL {
            let mut problem = Gemm::packed(65, 130, 9, operands);
            let inputs = Inputs::random(&problem, plan.data_type(), 4);
            for (beta, clean) in [(0.0, true), (-0.0, true), (1.0, false)] {
                problem.beta = beta;
                let mut memory = GlobalMemory::new();
                let a = placed(&mut memory, &inputs.a, 0);
                let b = placed(&mut memory, &inputs.b, 0);
                let room = inputs.c.bytes.len() as u64;
                let c = memory.alloc(room, 256).expect("an allocation");
                let report = on_buffers(plan, &problem, &mut memory, [a, b, c]);
                let found = &report.findings;
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{plan}, {operands}, beta {beta}: {found:?}"
                );
            }
        }
    }
}

/// α = 0 never reads A or B: addresses where there is nothing give no finding, and with α = 1 they do. So it is with k = 0.
#[test]
fn alpha_zero_never_reads_a_or_b() {
    for plan in OuterPlan::ALL {
        for operands in Operands::ALL {
            for (alpha, k, clean) in [
                (0.0, 64, true),
                (-0.0, 13, true),
                (1.0, 0, true),
                (1.0, 64, false),
            ] {
                let mut problem = Gemm::packed(128, 130, k, operands);
                (problem.alpha, problem.beta) = (alpha, 0.5);
                let c = Inputs::random(&problem, plan.data_type(), 5).c;
                let mut memory = GlobalMemory::new();
                let at = placed(&mut memory, &c, 0);
                let report = on_buffers(plan, &problem, &mut memory, [0x1000, 0x2000, at]);
                let found = report.findings.first();
                assert_eq!(
                    report.is_clean(),
                    clean,
                    "{plan}, {operands}, alpha {alpha}: {found:?}"
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

/// Operands that begin anywhere: vectors are loaded and stored only where they are aligned.
#[test]
fn operands_need_no_alignment_beyond_an_element() {
    for plan in OuterPlan::ALL {
        let element = u64::from(plan.data_type().bytes());
        for operands in Operands::ALL {
            let problem = Gemm::packed(128, 128, 40, operands);
            let inputs = Inputs::random(&problem, plan.data_type(), 7);
            let mut results = Vec::new();
            for shift in (0..16).step_by(element as usize) {
                let mut memory = GlobalMemory::new();
                let all = [&inputs.a, &inputs.b, &inputs.c];
                let at = all.map(|m| placed(&mut memory, m, shift));
                let report = on_buffers(plan, &problem, &mut memory, at);
                let found = &report.findings;
                assert!(
                    report.is_clean(),
                    "{plan}, {operands}, shift {shift}: {found:?}"
                );
                results.push(memory.read(at[2], inputs.c.bytes.len()).expect("inside"));
            }
            assert!(
                results.iter().all(|r| *r == results[0]),
                "{plan}, {operands}"
            );
        }
    }
}
