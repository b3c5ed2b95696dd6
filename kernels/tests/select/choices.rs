//! What is chosen, and in which order.

use layout_codegen::Arch;
use tilewright_kernels::gemm::{DataType, Gemm, Schedule};
use tilewright_kernels::select::{
    Finding, Findings, Machine, ProblemClass, Reason, Timed, Wanted, candidates, choose, estimate,
};

use crate::{best, close, cube, h200, named, operands, split};

#[test]
fn sums_are_split_only_where_it_pays() {
    let few_blocks = Gemm::packed(512, 512, 65_536, operands("nn"));
    for data_type in [DataType::F16, DataType::Bf16, DataType::Tf32, DataType::F64] {
        let chosen = best(data_type, &few_blocks, Arch(90));
        assert!(chosen.schedule.split >= 2, "{data_type}: {}", chosen.config);
        for size in [2048, 4096, 8192] {
            let chosen = best(data_type, &cube(size), Arch(90));
            assert_eq!(chosen.schedule.split, 1, "{data_type} {size}");
        }
        // A product whose own sums are short has nothing to split.
        let short = Gemm::packed(512, 512, 64, operands("nn"));
        assert_eq!(best(data_type, &short, Arch(90)).schedule.split, 1);
    }
}

#[test]
fn packing_pays_for_large_odd_products_and_not_for_small_ones() {
    let odd = |size: u64| Gemm::packed(size - 1, size + 1, size - 3, operands("nn"));
    let plan = named("mma-f16-128x128x64");
    let seconds = |problem: &Gemm, pack| {
        let schedule = Schedule { split: 1, pack };
        estimate(&plan, schedule, problem, &h200()).seconds
    };
    assert!(seconds(&odd(4096), true) < seconds(&odd(4096), false));
    assert!(seconds(&odd(128), true) > seconds(&odd(128), false));
    // Odd rows cost something either way.
    assert!(seconds(&odd(4096), true) > seconds(&cube(4096), false));
    let narrow = Gemm {
        lda: 4098,
        ..cube(4096)
    };
    assert!(seconds(&narrow, false) > seconds(&cube(4096), false));
}

#[test]
fn candidates_are_in_the_order_of_their_times_and_always_the_same() {
    let problem = Gemm::packed(1024, 1024, 5120, operands("nt"));
    let all = || {
        candidates(DataType::F16, &problem, Arch(90), &h200())
            .expect("plans")
            .iter()
            .map(|c| (c.config.to_string(), c.schedule, c.estimate.seconds))
            .collect::<Vec<_>>()
    };
    let first = all();
    assert_eq!(first, all());
    assert!(first.len() > 4);
    // Plans that gain nothing here come last: rows begin with sectors, and k is large.
    let behind = |c: &(String, Schedule, f64)| {
        ["+cluster", "+pingpong"]
            .iter()
            .any(|kind| c.0.contains(kind))
    };
    let place = |c: &(String, Schedule, f64)| (behind(c), c.2);
    for pair in first.windows(2) {
        let [a, b] = pair else { continue };
        assert!(place(a) <= place(b), "{a:?} {b:?}");
    }
    assert!(!behind(&first[0]) && first.iter().any(behind));
    let mut unique = first.clone();
    unique.dedup_by_key(|c| (c.0.clone(), c.1));
    assert_eq!(unique.len(), first.len());
}

/// Clusters are chosen where the operand that their blocks share has rows within sectors, and is not copied to others first; as on an H100, where 1000³ took
/// 0.0117 ms in clusters and 0.0126 without, and 1024³ 0.0098 and 0.0095.
#[test]
fn clusters_are_for_rows_within_sectors() {
    let chosen = |m, n, k, trans| {
        let problem = Gemm::packed(m, n, k, operands(trans));
        let c = choose(DataType::F16, &problem, Arch(90), &h200(), None).expect("a plan");
        c.config.to_string()
    };
    for trans in ["nn", "nt", "tn", "tt"] {
        let (within, whole) = (
            chosen(1000, 1000, 1000, trans),
            chosen(1024, 1024, 1024, trans),
        );
        assert!(within.contains("+cluster"), "{trans}: {within}");
        assert!(!whole.contains("+cluster"), "{trans}: {whole}");
    }
    // Rows of B begin with sectors, those of A do not.
    let of_a = chosen(1000, 1024, 1000, "nn");
    assert!(!of_a.ends_with("+cluster2x1"), "{of_a}");
}

#[test]
fn an_empty_product_is_served() {
    for (m, n, k) in [(0, 8, 8), (8, 0, 8), (8, 8, 0)] {
        let problem = Gemm { m, n, k, ..cube(8) };
        let c = best(DataType::F16, &problem, Arch(80));
        assert!(c.estimate.seconds.is_finite());
    }
}

/// `dgemm-4x4` multiplies on the FMA units, of which the A100 and the H100 have half as many as tensor cores count: it is taken where there is
/// no other plan for f64.
#[test]
fn outer_products_give_way_to_tensor_cores() {
    for arch in Arch::ALL {
        let machine = Machine::for_arch(arch);
        for size in [64, 4095] {
            let all = candidates(DataType::F64, &cube(size), arch, &machine).expect("candidates");
            let outer = all
                .iter()
                .filter(|c| c.config.to_string() == "dgemm-4x4")
                .count();
            let expected = if arch < Arch(80) { all.len() } else { 0 };
            assert_eq!(outer, expected, "{arch}, {size}");
        }
    }
    let seconds = |name: &str| {
        let plan = named(name);
        estimate(&plan, Schedule::default(), &cube(4096), &h200()).seconds
    };
    assert!(seconds("dgemm-4x4") > 1.9 * seconds("mma-f64-128x128x8"));
    assert!(close(
        h200().fma_rate(DataType::F64),
        h200().rate(DataType::F64) / 2.0,
        1e6
    ));
    assert!(close(
        h200().fma_rate(DataType::F32),
        h200().rate(DataType::F32),
        1e6
    ));
}

fn finding(problem: &Gemm, plans: &[(&str, u32, f64)]) -> Findings {
    let mut findings = Findings::default();
    findings.insert(Finding {
        device: h200().name,
        driver: "13.0".to_owned(),
        date: "2026-11-21".to_owned(),
        class: ProblemClass::of(DataType::F16, problem),
        candidates: plans
            .iter()
            .map(|&(plan, parts, milliseconds)| Timed {
                plan: plan.to_owned(),
                schedule: split(parts),
                milliseconds,
            })
            .collect(),
    });
    findings
}

#[test]
fn findings_go_before_the_model() {
    let slow = [("mma-f16-64x64x32", 1, 0.5), ("mma-f16-128x128x32", 1, 0.4)];
    let findings = finding(&cube(4096), &slow);
    let chosen = |problem: &Gemm, machine: &Machine, findings: &Findings| {
        let choice = choose(DataType::F16, problem, Arch(90), machine, Some(findings))
            .expect("there are plans");
        let measured = match choice.reason {
            Reason::Measured { exact, .. } => Some(exact),
            Reason::Estimated(_) => None,
        };
        (choice.config.to_string(), measured)
    };
    let measured = |exact| ("mma-f16-128x128x32".to_owned(), Some(exact));
    assert_eq!(chosen(&cube(4096), &h200(), &findings), measured(true));
    assert_eq!(chosen(&cube(4000), &h200(), &findings), measured(false));
    // Too far, or on another device: the model.
    assert_eq!(chosen(&cube(2048), &h200(), &findings).1, None);
    let other = Machine {
        name: "another".to_owned(),
        ..h200()
    };
    assert_eq!(chosen(&cube(4096), &other, &findings).1, None);
    // A plan that does not run on the architecture, or is not the wanted one, is passed over.
    let findings = finding(
        &cube(4096),
        &[("mma-f16-128x256x64", 1, 0.3), ("mma-f16-64x64x32", 1, 0.4)],
    );
    let choice = |wanted: Wanted, arch| {
        wanted
            .choose(
                DataType::F16,
                &cube(4096),
                Arch(arch),
                &h200(),
                Some(&findings),
            )
            .expect("there are plans")
            .config
            .to_string()
    };
    assert_eq!(choice(Wanted::default(), 80), "mma-f16-128x256x64");
    assert_eq!(choice(Wanted::default(), 86), "mma-f16-64x64x32");
    let wanted = Wanted {
        config: Some(named("mma-f16-64x64x64")),
        ..Wanted::default()
    };
    assert_eq!(choice(wanted, 90), "mma-f16-64x64x64");
}

/// An empty product has no launch, but a kernel that the architecture's shared memory holds.
#[test]
fn empty_products_choose_a_plan_that_fits() {
    for data_type in DataType::ALL {
        for arch in Arch::ALL {
            let mut problem = Gemm::packed(0, 128, 8, operands("nn"));
            problem.lda = 8;
            let machine = Machine::for_arch(arch);
            if let Ok(choice) = choose(data_type, &problem, arch, &machine, None) {
                let plan = choice.config.specialize(&problem, choice.schedule);
                let kernel = plan.expect("it serves").emit(problem.operands, arch);
                assert!(kernel.is_ok(), "{data_type} on {arch}: {kernel:?}");
            }
        }
    }
}
