//! The plans on a GPU, against the double-precision reference. Without a GPU this says so and runs nothing.
//!
//! What takes time is compiling a thousand kernels. The driver compiles one at a time in each process, so that they are assembled by ptxas
//! where there is one, as many at a time as there are cores: the problems of every test go to one pool of threads. The fifty random problems
//! of the SGEMM plans are compiled by the driver, as a program without ptxas would do it. Each test says how long it took, and for what.

mod common;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::mma::{Case, adapted, cases, plans_of};
use rayon::prelude::*;
use tilewright::codegen::Arch;
use tilewright::gpu::ptxas::{self, PtxasError};
use tilewright::gpu::{Gpu, GpuError};
use tilewright::host::{GemmKernel, Inputs, On, RunOptions, check, run_with};
use tilewright::kernels::gemm::{Config, DataType, Emitted, Gemm, Operands, Schedule, Specialized};

fn named(name: &str) -> Specialized {
    name.parse::<Config>().expect("a configuration").kernel()
}

/// The first GPU, opened once for all tests; none on a machine without one. Anything else that keeps it from being opened is a failure.
fn first_gpu() -> Option<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, GpuError>> = OnceLock::new();
    match GPU.get_or_init(|| Gpu::open(0)) {
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

/// The GPU with kernels assembled by ptxas, if there is one, each text once.
fn assembled() -> Option<&'static Gpu> {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    let first = first_gpu()?;
    Some(GPU.get_or_init(|| {
        let ptxas = match ptxas::for_tests() {
            Ok(ptxas) => ptxas,
            Err(PtxasError::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        };
        common::say(&match &ptxas {
            Some(ptxas) => format!("{} assembles", ptxas.path().display()),
            None => "no ptxas: the driver compiles, one kernel at a time".to_owned(),
        });
        first.clone().keeping_modules(ptxas)
    }))
}

/// The GPU with kernels compiled by its driver, each text once.
fn compiled() -> Option<&'static Gpu> {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    let first = first_gpu()?;
    Some(GPU.get_or_init(|| first.clone().keeping_modules(None)))
}

/// What a problem's time goes to.
#[derive(Clone, Copy)]
enum Phase {
    /// Proofs and text.
    Emit,
    /// ptxas or the driver's compiler; waiting for a core or the driver's lock is in it.
    Compile,
    /// Operands, memory, launches.
    Run,
    /// The reference.
    Check,
}

/// Where the time of a test went.
struct Spent {
    since: Instant,
    /// Nanoseconds of each phase, summed over the threads.
    phases: [AtomicU64; 4],
}

impl Spent {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            phases: [const { AtomicU64::new(0) }; 4],
        }
    }

    fn on<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let result = work();
        let nanoseconds = since.elapsed().as_nanos() as u64;
        self.phases[phase as usize].fetch_add(nanoseconds, Relaxed);
        result
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = |phase: Phase| {
            let nanoseconds = self.phases[phase as usize].load(Relaxed);
            Duration::from_nanos(nanoseconds).as_secs_f64()
        };
        write!(
            f,
            "in {:.1} s (summed over threads: emit {:.1} s, compile {:.1} s, run {:.1} s, check {:.1} s)",
            self.since.elapsed().as_secs_f64(),
            phase(Phase::Emit),
            phase(Phase::Compile),
            phase(Phase::Run),
            phase(Phase::Check),
        )
    }
}

/// The newest architecture that kernels are generated for and this GPU runs.
fn arch(gpu: &Gpu) -> Arch {
    let (major, minor) = gpu.info().compute_capability;
    let have = 10 * major + minor;
    let newest = Arch::ALL.into_iter().filter(|a| a.0 <= have).max();
    newest.expect("sm_75 or later")
}

/// Runs a plan, and compares C with the reference; what lies beside the operands is as it was, and a second run gives the same bits.
fn assert_runs_right(
    (gpu, spent): (&Gpu, &Spent),
    plan: &Specialized,
    kernel: &Emitted,
    problem: &Gemm,
    inputs: &Inputs,
    what: &str,
) {
    let loaded = spent.on(Phase::Compile, || gpu.load_ptx(&kernel.ptx));
    loaded.unwrap_or_else(|e| panic!("{what}: {e}"));
    let bound = GemmKernel::emitted(plan, kernel, problem);
    let bound = bound.unwrap_or_else(|e| panic!("{what}: {e}"));
    let options = RunOptions {
        gpu: Some(gpu.clone()),
        ..RunOptions::default()
    };
    let run = || {
        let args = bound.args(inputs).expect("they fit");
        let outcome = spent.on(Phase::Run, || run_with(&bound, On::Gpu, args, &options));
        outcome.unwrap_or_else(|e| panic!("{what}: {e}"))
    };
    let (outcome, again) = (run(), run());
    assert_eq!(outcome.clean(), Ok(()), "{what}");
    assert!(
        again.bytes("C") == outcome.bytes("C"),
        "{what}: the second run gave other bits"
    );
    let c = bound.result(inputs, &outcome).expect("C");
    let check = spent.on(Phase::Check, || check(problem, plan.data_type, inputs, &c));
    let check = check.expect("shapes agree");
    assert!(check.passed, "{what}: {check:?}");
}

fn fifty_problems(plan: &Specialized) {
    let Some(gpu) = compiled() else { return };
    let spent = Spent::new();
    let emit = |o| plan.emit(o, arch(gpu)).expect("the plan proves");
    let kernels = spent.on(Phase::Emit, || Operands::ALL.map(emit));
    for (seed, problem) in (0..).zip(common::problems(50, 3)) {
        let at = Operands::ALL.iter().position(|&o| o == problem.operands);
        let inputs = Inputs::random(&problem, plan.data_type, seed);
        let kernel = &kernels[at.expect("one of four")];
        let what = format!("{}, {problem:?}", plan.name());
        assert_runs_right((gpu, &spent), plan, kernel, &problem, &inputs, &what);
    }
    common::say(&format!("{}: 50 problems passed {spent}", plan.name()));
}

#[test]
fn fifty_random_problems_64() {
    fifty_problems(&named("sgemm-maxas-64"));
}

#[test]
fn fifty_random_problems_128() {
    fifty_problems(&named("sgemm-maxas-128"));
}

#[test]
fn fifty_random_problems_of_dgemm_4x4() {
    fifty_problems(&named("dgemm-4x4"));
}

#[test]
fn fifty_random_problems_of_sgemm_r700_64() {
    fifty_problems(&named("sgemm-r700-64"));
}

/// Fifty random problems of every plan of f32 by fused multiply-adds in the family of `mma.sync`: epilogues, batches, split sums and packing
/// too. Where a plan has no kernel for the narrow copies of a batch, which cannot be packed, another case is drawn.
#[test]
fn fifty_random_problems_of_every_f32_plan() {
    let Some(gpu) = assembled() else { return };
    let Some(plans) = plans_on(DataType::F32, arch(gpu)) else {
        return;
    };
    let drawn = cases(DataType::F32, 100, 12);
    for plan in plans {
        let spent = Spent::new();
        let served = drawn.iter().filter(|case| {
            case.problem.batch.count == 1 || plan.specialize(&case.problem, case.schedule).is_ok()
        });
        let served: Vec<&Case> = served.take(50).collect();
        assert_eq!(served.len(), 50, "{}: too few cases are drawn", plan.name());
        served.into_par_iter().for_each(|case| {
            let (_, adapted) = adapted(std::iter::once(&plan), case);
            assert_right((gpu, &spent), &adapted, case, false);
        });
        common::say(&format!("{}: 50 problems passed {spent}", plan.name()));
    }
}

/// What BLAS promises: β = 0 does not read C, α = 0 does not read A or B, no terms give β·C.
#[test]
fn edge_cases() {
    let Some(gpu) = assembled() else { return };
    let spent = Spent::new();
    for plan in [
        "sgemm-maxas-64",
        "sgemm-maxas-128",
        "dgemm-4x4",
        "sgemm-r700-64",
    ]
    .map(named)
    {
        let plan = &plan;
        for operands in Operands::ALL {
            let emitted = spent.on(Phase::Emit, || plan.emit(operands, arch(gpu)));
            let kernel = emitted.expect("the plan proves");
            for (alpha, beta, k) in [
                (1.5, 0.0, 40),
                (0.0, -0.5, 40),
                (1.5, -0.5, 0),
                (0.0, 0.0, 9),
            ] {
                let mut problem = Gemm::packed(131, 70, k, operands);
                (problem.alpha, problem.beta, problem.ldc) = (alpha, beta, 73);
                let mut inputs = Inputs::random(&problem, plan.data_type, 8);
                if alpha == 0.0 {
                    inputs.a = inputs.a.filled(f64::NAN);
                    inputs.b = inputs.b.filled(f64::NAN);
                }
                if beta == 0.0 {
                    inputs.c = inputs.c.filled(f64::NAN);
                }
                let what = format!("{}, {problem:?}", plan.name());
                assert_runs_right((gpu, &spent), plan, &kernel, &problem, &inputs, &what);
            }
        }
    }
    common::say(&format!("by multiply-adds: the edge cases passed {spent}"));
}

/// Tests that the two hundred problems of a type are shared out between.
const SHARES: usize = 4;

/// Two hundred random problems of each mma type, by every plan that this GPU runs in turn: one of the shares of them.
fn two_hundred_problems(data_type: DataType, share: usize) {
    let Some(gpu) = assembled() else { return };
    let Some(plans) = plans_on(data_type, arch(gpu)) else {
        return;
    };
    let spent = Spent::new();
    let cases = cases(data_type, 200, 9);
    let mine: Vec<_> = (share..cases.len()).step_by(SHARES).collect();
    mine.par_iter().for_each(|&i| {
        let turn = plans.iter().cycle().skip(i % plans.len());
        let (_, plan) = adapted(turn.take(plans.len()), &cases[i]);
        assert_right((gpu, &spent), &plan, &cases[i], false);
    });
    common::say(&format!(
        "{data_type}: {} of {} problems passed {spent}",
        mine.len(),
        cases.len()
    ));
}

/// The plans of a type that an architecture runs; says so if there are none.
fn plans_on(data_type: DataType, arch: Arch) -> Option<Vec<Specialized>> {
    let mut plans = plans_of(data_type);
    plans.retain(|plan| plan.runs_on(arch));
    if plans.is_empty() {
        common::say(&format!(
            "{data_type}: not run, {arch} has no such products"
        ));
    }
    (!plans.is_empty()).then_some(plans)
}

/// Numbers, gaps and what lies beside the operands. With `poisoned`, what BLAS promises not to read is NaN.
fn assert_right((gpu, spent): (&Gpu, &Spent), plan: &Specialized, case: &Case, poisoned: bool) {
    let (problem, data_type) = (&case.problem, plan.data_type);
    let what = format!("{}, {case:?}", plan.name());
    let emitted = spent.on(Phase::Emit, || plan.emit(problem.operands, arch(gpu)));
    let kernel = emitted.unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut inputs = Inputs::random(problem, data_type, case.seed);
    if poisoned && problem.alpha == 0.0 {
        inputs.a = inputs.a.filled(f64::NAN);
        inputs.b = inputs.b.filled(f64::NAN);
    }
    if poisoned && problem.beta == 0.0 {
        inputs.c = inputs.c.filled(f64::NAN);
    }
    assert_runs_right((gpu, spent), plan, &kernel, problem, &inputs, &what);
}

/// α = 0 reads neither A nor B, β = 0 does not read C, no terms leave C and the bias, and an empty C is nothing to do: by the smallest
/// plan.
fn edge_cases_of(data_type: DataType) {
    let Some(gpu) = assembled() else { return };
    let Some(mut plans) = plans_on(data_type, arch(gpu)) else {
        return;
    };
    let spent = Spent::new();
    plans.sort_by_key(|plan| {
        let [m, n, k] = plan.tile();
        m * n * k
    });
    cases(data_type, 16, 10)
        .into_par_iter()
        .for_each(|mut case| {
            match case.seed % 4 {
                0 => case.problem.alpha = 0.0,
                1 => case.problem.beta = 0.0,
                2 => case.problem.k = 0,
                _ => (case.problem.alpha, case.problem.beta) = (0.0, 0.0),
            }
            let (_, plan) = adapted(plans.iter(), &case);
            assert_right((gpu, &spent), &plan, &case, true);
        });
    common::say(&format!("{data_type}: the edge cases passed {spent}"));
}

/// Every plan of warpgroups, those with clusters too: sizes with and without ragged tiles, groups of rows that are not full, rows of 16 bytes, of every transpose.
#[test]
fn plans_of_warpgroups() {
    let Some(gpu) = assembled() else { return };
    let spent = Spent::new();
    let all = Config::table().filter(|c| c.is_wgmma() && c.runs_on(arch(gpu)));
    let all: Vec<Config> = all.collect();
    let sizes: [[u64; 3]; 7] = [
        [256, 512, 256],
        [1000, 1000, 1000],
        [1300, 328, 712],
        [129, 40, 2056],
        [37, 1101, 75],
        [4104, 1032, 72],
        // Rows of C that end within 16 bytes, of blocks that have several tiles.
        [4104, 1029, 72],
    ];
    let cases: Vec<_> = (0..2 * all.len() * sizes.len()).collect();
    cases.par_iter().for_each(|&i| {
        let (plan, [m, n, k]) = (&all[i / 2 / sizes.len()], sizes[i / 2 % sizes.len()]);
        let operands = Operands::ALL[(i / 2 + i / 2 / sizes.len()) % 4];
        let case = Case {
            problem: Gemm {
                alpha: 2.0,
                beta: [0.0, -1.0][i % 2],
                ldc: n.next_multiple_of(8),
                ..Gemm::packed(m, n, k, operands)
            },
            schedule: Schedule::default(),
            seed: i as u64,
        };
        let adapted = plan.specialize(&case.problem, case.schedule);
        let adapted = adapted.unwrap_or_else(|e| panic!("{plan}, {case:?}: {e}"));
        assert_right((gpu, &spent), &adapted, &case, false);
    });
    common::say(&format!(
        "{} plans of warpgroups: {} problems passed {spent}",
        all.len(),
        cases.len()
    ));
}

macro_rules! mma {
    ($($name:ident: $data_type:ident,)*) => { $(
        mod $name {
            use super::{DataType, edge_cases_of, two_hundred_problems};

            #[test]
            fn problems_first_quarter() {
                two_hundred_problems(DataType::$data_type, 0);
            }

            #[test]
            fn problems_second_quarter() {
                two_hundred_problems(DataType::$data_type, 1);
            }

            #[test]
            fn problems_third_quarter() {
                two_hundred_problems(DataType::$data_type, 2);
            }

            #[test]
            fn problems_last_quarter() {
                two_hundred_problems(DataType::$data_type, 3);
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
    fma_f32: F32,
}
