//! Plans that store C by TMA, on the emulator with every check of the sanitizer on: numbers, gaps, findings, wavefronts, and that boxes are what stores it.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{GemmKernel, Inputs, On, Outcome, check, run};
use tilewright::kernels::gemm::mma_sync::{Depth, MmaPlan, Variant, WARPGROUP_PLANS};
use tilewright::kernels::gemm::registry::plan_named;
use tilewright::kernels::gemm::{
    Activation, Batch, Bias, DataType, Epilogue, Gemm, Operands, Plan, Schedule, Trans,
};
use tilewright::kernels::select::{Machine, candidates, choose};

/// The access that puts a box together.
const BOXES: &str = "stageBox";

fn listed() -> impl Iterator<Item = &'static MmaPlan> {
    WARPGROUP_PLANS.iter().filter(|plan| plan.tma_store)
}

/// Runs a problem: right, clean, as proven. Whether boxes stored C.
fn stored_by_boxes(plan: &MmaPlan, problem: &Gemm, schedule: Schedule) -> bool {
    let what = format!("{} {problem:?} {schedule:?}", plan.name());
    let kernel = if let Depth::Turns(..) = plan.variant.depth {
        let emitted = plan.emit(problem.operands, Arch(90)).expect("it proves");
        let kernel = GemmKernel::emitted(plan, &emitted, problem);
        return right(&what, &kernel.expect("it serves"), problem, plan);
    } else {
        GemmKernel::new(plan, problem, schedule, Arch(90))
    };
    right(
        &what,
        &kernel.unwrap_or_else(|e| panic!("{what}: {e}")),
        problem,
        plan,
    )
}

fn right(what: &str, kernel: &GemmKernel<'_>, problem: &Gemm, plan: &MmaPlan) -> bool {
    let inputs = Inputs::random(problem, plan.data_type(), 7);
    let outcome = run(kernel, On::Emulator, kernel.args(&inputs));
    let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
    outcome.assert_clean();
    if problem.k > 0 && problem.alpha != 0.0 {
        outcome.assert_counted_as_proven();
    }
    let c = kernel.result(&inputs, &outcome).expect("C");
    let found = check(problem, plan.data_type(), &inputs, &c).expect("a check");
    assert!(found.passed, "{what}: {found:?}");
    boxes(&outcome).is_some_and(|executed| executed)
}

/// Whether boxes were stored; none in a kernel that has none.
fn boxes(outcome: &Outcome) -> Option<bool> {
    let mut all = outcome.accesses.iter();
    let found = all.find(|a| a.proof.access == BOXES)?;
    assert_eq!(found.proof.wavefronts, found.proof.ideal);
    Some(found.wavefronts.is_some())
}

/// Rows that begin at multiples of 16 bytes, whatever the columns are.
fn aligned(m: u64, n: u64, k: u64, operands: Operands) -> Gemm {
    let packed = Gemm::packed(m, n, k, operands);
    let up = |x: u64| x.div_ceil(8) * 8;
    Gemm {
        lda: up(packed.lda),
        ldb: up(packed.ldb),
        ldc: up(packed.ldc) + 8,
        ..packed
    }
}

/// Blocks of a persistent plan are as many as multiprocessors; here there are few, so that each takes several tiles.
fn with_turns(plan: &MmaPlan, rows: u32, columns: u32) -> MmaPlan {
    let depth = Depth::Turns(rows, columns);
    MmaPlan {
        variant: Variant {
            depth,
            ..plan.variant
        },
        ..*plan
    }
}

#[test]
fn odd_sizes_of_all_transposes() {
    let sizes = [
        [129, 248, 65],
        [1, 8, 1],
        [136, 264, 200],
        [200, 71, 130],
        [7, 520, 8],
        [64, 56, 0],
    ];
    let blocks = [(1, 1), (2, 1), (1, 2)];
    let mut cases = sizes.iter().zip(blocks.iter().cycle()).cycle();
    for plan in listed() {
        for operands in Operands::ALL {
            let (&[m, n, k], &(rows, columns)) = cases.next().expect("endless");
            let plan = if plan.turns.are_several() {
                with_turns(plan, rows, columns)
            } else {
                *plan
            };
            let problem = aligned(m, n, k, operands);
            // TMA stores whole pieces of 16 bytes.
            let by_boxes = stored_by_boxes(&plan, &problem, Schedule::default());
            assert_eq!(by_boxes, n % 8 == 0, "{m}x{n}x{k}");
        }
        // 4 transposes and 6 sizes: another pairing with the next plan.
        cases.next();
    }
}

/// Tiles one after the other in the places of boxes, with tiles that are not in C; α and activations; then the same reading C.
#[test]
fn several_tiles_and_functions_of_sums() {
    let [nn, nt, ..] = Operands::ALL;
    let activation = |activation| Epilogue {
        activation,
        ..Epilogue::default()
    };
    for plan in listed().filter(|plan| plan.turns.are_several()) {
        for (beta, by_boxes) in [(0.0, true), (-1.0, false)] {
            let problem = Gemm {
                alpha: -0.5,
                beta,
                ..aligned(300, 600, 72, nt)
            };
            let plan = with_turns(plan, 1, 2);
            assert_eq!(
                stored_by_boxes(&plan, &problem, Schedule::default()),
                by_boxes
            );
        }
    }
    for plan in listed().filter(|plan| !plan.turns.are_several()) {
        let cases = [
            (Activation::Relu, 2.0, 0.0, true),
            (Activation::Gelu, -1.5, 0.0, true),
            (Activation::Relu, 1.0, 0.5, false),
            // Nothing is multiplied.
            (Activation::Identity, 0.0, 0.0, true),
        ];
        for (function, alpha, beta, by_boxes) in cases {
            let problem = Gemm {
                alpha,
                beta,
                epilogue: activation(function),
                ..aligned(70, 136, 72, nn)
            };
            assert_eq!(
                stored_by_boxes(plan, &problem, Schedule::default()),
                by_boxes
            );
        }
    }
}

/// What no box is for is stored as other plans store it: rows that begin anywhere, C of 32 bits, a bias, a batch, parts of the sums.
#[test]
fn other_products_are_stored_by_vectors() {
    let plan = listed()
        .find(|plan| !plan.turns.are_several())
        .expect("listed");
    let [nn, .., tt] = Operands::ALL;
    let whole = Schedule::default();
    let column = Epilogue {
        bias: Bias::Column,
        ..Epilogue::default()
    };
    let batch = Batch {
        count: 2,
        strides: [64 * 72, 72 * 136, 64 * 144],
    };
    let problems = [
        Gemm::packed(65, 131, 70, tt),
        Gemm {
            output: Some(Element::F32),
            ..aligned(65, 131, 70, nn)
        },
        Gemm {
            epilogue: column,
            ..aligned(65, 131, 70, nn)
        },
        Gemm {
            batch,
            ..aligned(64, 130, 72, nn)
        },
    ];
    for problem in &problems {
        assert!(!stored_by_boxes(plan, problem, whole), "{problem:?}");
    }
    let parts = Schedule { split: 2, ..whole };
    assert!(!stored_by_boxes(plan, &aligned(65, 136, 300, nn), parts));
    // Operands that are copied first are no matter of C.
    let packed = Schedule {
        pack: true,
        ..whole
    };
    assert!(stored_by_boxes(plan, &aligned(65, 136, 72, nn), packed));
}

/// A kernel that stores boxes is for a C that a tensor map can say.
#[test]
fn what_no_map_can_say_is_refused() {
    let plan = plan_named("wgmma-bf16-128x128x64-tma-store").expect("listed");
    let odd = Gemm {
        ldc: 132,
        ..Gemm::packed(64, 128, 64, Operands::ALL[0])
    };
    let error = plan
        .launch(&odd)
        .expect_err("rows of 264 bytes")
        .to_string();
    assert!(error.contains('C') && error.contains("16"), "{error}");
    let adapted = plan.adapt(&odd, Schedule::default()).expect("by vectors");
    assert!(adapted.launch(&odd).is_ok());
}

/// One tile stored by boxes takes fewer instructions than by vectors, and half of the wavefronts: nothing is read back.
#[test]
fn a_tile_by_boxes_costs_less() {
    for plan in listed().filter(|plan| !plan.turns.are_several()) {
        let (m, n, k) = plan.tile();
        let problem = Gemm::packed(m.into(), n.into(), k.into(), Operands::ALL[1]);
        let counted = |name: &str| {
            let plan = plan_named(name).expect("listed");
            let kernel = GemmKernel::new(plan.as_ref(), &problem, Schedule::default(), Arch(90));
            let kernel = kernel.expect("it serves");
            let inputs = Inputs::random(&problem, plan.data_type(), 3);
            let outcome = run(&kernel, On::Emulator, kernel.args(&inputs)).expect("a run");
            let counters = outcome.report.expect("a report").counters;
            (counters.warp_instructions, counters.wavefronts)
        };
        let name = plan.name();
        let (by_boxes, by_vectors) = (counted(&name), counted(&name.replace("-tma-store", "")));
        println!("{name}: {by_boxes:?} instead of {by_vectors:?} instructions and wavefronts");
        assert!(by_boxes.0 < by_vectors.0, "{name}");
        assert!(2 * by_boxes.1 <= by_vectors.1, "{name}");
    }
}

/// No GPU has been measured: the model never takes them, and they are candidates for what measures.
#[test]
fn they_are_measured_and_not_chosen_by_the_model() {
    let machine = Machine::for_arch(Arch(90));
    for size in [512, 4096, 8192] {
        for data_type in [DataType::F16, DataType::Bf16] {
            let problem = Gemm::packed(size, size, size, "nt".parse().expect("operands"));
            assert_eq!(problem.operands.a, Trans::N);
            let all = candidates(data_type, &problem, Arch(90), &machine).expect("candidates");
            assert!(all.iter().any(|c| c.plan.anatomy().tma_store));
            let chosen = choose(data_type, &problem, Arch(90), &machine, None).expect("a plan");
            assert!(!chosen.plan.anatomy().tma_store);
        }
    }
}
