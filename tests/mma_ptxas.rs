//! NVIDIA's assembler accepts the `mma.sync` plans without a spill: every plan with every transpose for the first architecture that it
//! claims and for `sm_90`, two of the transposes for the others, and what problems ask of a plan beside its tile.

mod common;

use std::sync::Mutex;

use tilewright::codegen::plan::{
    Activation, Arch, Batch, Bias, Element, Gemm, Operands, Plan, PlanError, Schedule, plan_named,
    plans,
};
use tilewright::gpu::ptxas::{self, Ptxas};

/// ptxas; none if it was left out, which is said.
fn assembler() -> Option<Ptxas> {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    if found.is_none() {
        common::say("no ptxas: not run");
    }
    found
}

/// Does each job on one of the machine's processors.
fn on_all_processors<T: Send>(jobs: Vec<T>, work: impl Fn(T) + Sync) {
    let jobs = Mutex::new(jobs);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().expect("no job panics while it takes one").pop();
                    let Some(job) = job else { break };
                    work(job);
                }
            });
        }
    });
}

/// Assembles one kernel; a plan that is refused for lack of shared memory claims nothing.
fn assembles(ptxas: &Ptxas, plan: &dyn Plan, operands: Operands, arch: Arch) {
    let kernel = match plan.emit(operands, arch) {
        Ok(kernel) => kernel,
        Err(PlanError::SharedMemory { .. }) => return,
        Err(e) => panic!("{}, {operands}, {arch}: {e}", plan.name()),
    };
    let assembly = ptxas
        .assemble(&kernel.ptx, &arch.to_string())
        .unwrap_or_else(|e| panic!("{}, {operands}, {arch}: {e}", kernel.kernel));
    for r in &assembly.kernels {
        assert!(!r.spills(), "{}, {operands}, {arch}: {r:?}", kernel.kernel);
    }
}

#[test]
fn every_plan_assembles_without_spills() {
    let Some(ptxas) = assembler() else { return };
    let mut jobs = Vec::new();
    for plan in plans() {
        if !plan.name().starts_with("mma-") {
            continue;
        }
        let [nn, _, _, tt] = Operands::ALL;
        for arch in Arch::ALL.into_iter().filter(|a| *a >= plan.min_arch()) {
            for operands in Operands::ALL {
                let whole = arch == plan.min_arch() || arch == Arch(90);
                if whole || (arch >= Arch(100) && [nn, tt].contains(&operands)) {
                    jobs.push((plan.name(), operands, arch));
                }
            }
        }
    }
    on_all_processors(jobs, |(name, operands, arch)| {
        let plan = plan_named(&name).expect("it was listed");
        assembles(&ptxas, plan.as_ref(), operands, arch);
    });
}

/// What a problem of one size asks for.
fn wishes() -> Vec<(Gemm, Schedule)> {
    let mut all = Vec::new();
    for operands in Operands::ALL {
        let plain = Gemm::packed(1024, 1024, 1024, operands);
        for bytes in [8, 4, 2, 1] {
            let mut problem = plain;
            (problem.alignment.a, problem.alignment.b) = (bytes, bytes);
            problem.alignment.c = bytes.max(4);
            all.push((problem, Schedule::default()));
            if bytes == 1 {
                all.push((
                    problem,
                    Schedule {
                        split: 1,
                        pack: true,
                    },
                ));
            }
        }
        // Widths that differ.
        for (a, b) in [(8, 1), (1, 8), (4, 1), (16, 1)] {
            let mut problem = plain;
            (problem.alignment.a, problem.alignment.b) = (a, b);
            problem.alignment.c = 4;
            all.push((problem, Schedule::default()));
        }
        // Rows that begin within a sector of the cache.
        all.push((
            Gemm::packed(1000, 1000, 1000, operands),
            Schedule::default(),
        ));
        let mut problem = plain;
        problem.epilogue.bias = Bias::Column;
        problem.epilogue.activation = Activation::Gelu;
        all.push((problem, Schedule::default()));
        problem.epilogue.activation = Activation::Relu;
        problem.epilogue.bias = Bias::Row;
        all.push((
            problem,
            Schedule {
                split: 3,
                pack: false,
            },
        ));
        for output in [Element::F32, Element::F16, Element::Bf16] {
            let mut problem = plain;
            problem.output = Some(output);
            problem.batch = Batch {
                count: 3,
                strides: [1 << 20; 3],
            };
            all.push((problem, Schedule::default()));
        }
    }
    all
}

#[test]
fn every_variant_assembles_without_spills() {
    let Some(ptxas) = assembler() else { return };
    let mut jobs = Vec::new();
    // These show every variant; of the others only narrow copies, which crowd the registers most. What a plan refuses it does not claim.
    let all = [
        "mma-f16-128x256x64",
        "mma-f16-64x64x64",
        "mma-f16-64x64x32-sm75",
        "mma-f16acc16-64x64x32",
        "mma-bf16-64x64x32",
        "mma-tf32-128x256x32",
        "mma-tf32-64x64x16",
        "mma-s8-64x64x64",
        "mma-e4m3-64x64x64",
        "mma-e5m2-64x64x32",
        "mma-f64-128x128x8",
        "mma-f64-64x64x16",
    ];
    let names: Vec<_> = plans().iter().map(|plan| plan.name()).collect();
    assert!(all.iter().all(|name| names.iter().any(|n| n == name)));
    for name in names.iter().filter(|name| name.starts_with("mma-")) {
        for (problem, schedule) in wishes() {
            if !all.contains(&name.as_str())
                && (problem.alignment.a.min(problem.alignment.b) == 16 || schedule.pack)
            {
                continue;
            }
            let plan = plan_named(name).expect("it is listed");
            match plan.adapt(&problem, schedule) {
                Ok(plan) => jobs.push((plan, problem.operands)),
                Err(PlanError::Unsupported { .. } | PlanError::Problem(_)) => {}
                Err(e) => panic!("{name}, {problem:?}: {e}"),
            }
        }
    }
    assert!(jobs.len() > 200, "{} variants", jobs.len());
    on_all_processors(jobs, |(plan, operands)| {
        assembles(&ptxas, plan.as_ref(), operands, plan.min_arch());
    });
}
