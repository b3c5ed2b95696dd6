//! Selection held against measurements, and against what must hold of any model of time.

use layout_codegen::Arch;
use layout_codegen::gemm::{
    Activation, Batch, DataType, Epilogue, Gemm, Operands, Plan, PlanError, ProblemError, Schedule,
    Units,
};
use layout_codegen::registry::{plan_named, plans};
use layout_codegen::select::{
    Bound, Candidate, Finding, Findings, Machine, ProblemClass, Reason, SelectError, Timed, Wanted,
    candidates, choose, estimate,
};
use proptest::prelude::*;

fn operands(text: &str) -> Operands {
    text.parse().expect("nn, nt, tn or tt")
}

fn cube(size: u64) -> Gemm {
    Gemm::packed(size, size, size, operands("nn"))
}

fn named(name: &str) -> Box<dyn Plan> {
    plan_named(name).expect("a plan of this name")
}

fn h200() -> Machine {
    Machine::for_arch(Arch(90))
}

fn split(parts: u32) -> Schedule {
    Schedule {
        split: parts,
        pack: false,
    }
}

/// Whether `a` and `b` are the same to a part in `parts`.
fn close(a: f64, b: f64, parts: f64) -> bool {
    (a - b).abs() <= b.abs() / parts
}

/// TFLOP/s of one H200, from `docs/performance.md` and the runs that it came from: type, transposes, m, n, k, plan.
const MEASURED: &[(&str, [u64; 3], &str, f64)] = &[
    ("nn", [4096, 4096, 4096], "mma-f16-128x256x64", 480.1),
    ("nn", [4096, 4096, 4096], "mma-f16-256x128x64", 487.1),
    ("nn", [4096, 4096, 4096], "mma-f16-128x128x64", 467.7),
    ("nn", [4096, 4096, 4096], "mma-f16-128x128x32", 459.3),
    ("nn", [8192, 8192, 8192], "mma-f16-128x256x64", 498.2),
    ("nn", [1000, 1000, 1000], "mma-f16-64x64x64", 126.5),
    ("nn", [1000, 1000, 1000], "mma-f16-64x64x32", 121.5),
    ("nn", [1000, 1000, 1000], "mma-f16-64x128x64", 148.3),
    ("nn", [1000, 1000, 1000], "mma-f16-128x64x64", 141.6),
    ("nn", [1000, 1000, 1000], "mma-f16-128x128x64", 109.8),
    ("nn", [1024, 1024, 1024], "mma-f16-64x128x64", 181.4),
    ("nn", [2048, 2048, 2048], "mma-f16-128x256x64", 416.8),
    ("nn", [2048, 2048, 2048], "mma-f16-128x128x64", 411.6),
    ("nn", [4096, 4096, 4096], "mma-bf16-128x256x64", 487.8),
    ("nn", [4096, 4096, 4096], "mma-tf32-128x256x32", 221.2),
    ("nn", [4096, 4096, 4096], "mma-tf32-256x128x32", 222.1),
    ("nn", [4096, 4096, 4096], "mma-tf32-64x128x32", 169.1),
    ("nt", [4096, 4096, 4096], "mma-tf32-256x128x32", 237.4),
    ("nn", [4096, 4096, 4096], "mma-f64-128x128x8", 59.8),
    ("nn", [4096, 4096, 4096], "mma-f64-64x128x16", 58.0),
    ("nt", [4096, 4096, 4096], "mma-s8-128x128x64", 679.2),
    ("nt", [4096, 4096, 4096], "mma-s8-128x64x64", 698.8),
    ("nt", [4096, 4096, 4096], "mma-e4m3-128x64x64", 340.8),
    ("nt", [4096, 4096, 4096], "mma-e4m3-64x64x64", 356.1),
    ("nn", [4096, 4096, 4096], "sgemm-maxas-128", 45.8),
    ("nn", [2048, 2048, 2048], "sgemm-maxas-128", 44.8),
    ("nn", [1000, 1000, 1000], "sgemm-maxas-64", 20.0),
    // Plans of warpgroups on one H100.
    (
        "nn",
        [4096, 4096, 4096],
        "wgmma-f16-128x256x64-persistent",
        763.8,
    ),
    (
        "nn",
        [6144, 6144, 6144],
        "wgmma-f16-128x256x64-persistent",
        718.7,
    ),
    (
        "nn",
        [8192, 8192, 8192],
        "wgmma-f16-128x256x64-persistent",
        736.7,
    ),
    (
        "nn",
        [2048, 2048, 2048],
        "wgmma-f16-128x256x64-persistent",
        583.2,
    ),
    ("nn", [2048, 2048, 2048], "wgmma-f16-128x256x64", 579.5),
    ("nn", [2048, 2048, 2048], "wgmma-f16-128x128x64", 521.2),
    ("nn", [1024, 1024, 1024], "wgmma-f16-64x128x64", 204.3),
    ("nn", [1024, 1024, 1024], "wgmma-f16-64x128x128", 228.3),
    ("nn", [1024, 1024, 1024], "wgmma-f16-128x128x64", 184.9),
    ("nn", [1000, 1000, 1000], "wgmma-f16-64x128x64", 140.3),
    ("nn", [1000, 1000, 1000], "wgmma-f16-64x128x128", 140.1),
    ("nn", [1000, 1000, 1000], "wgmma-f16-128x128x64", 158.6),
    ("nn", [1008, 1008, 1008], "wgmma-f16-64x128x64", 181.3),
    ("nn", [1008, 1008, 1008], "wgmma-f16-128x128x64", 175.4),
    ("nn", [2000, 2000, 2000], "wgmma-f16-128x256x64", 525.8),
    ("nn", [2000, 2000, 2000], "wgmma-f16-128x128x64", 436.3),
    ("nn", [2000, 2000, 2000], "wgmma-f16-64x128x64", 293.2),
    ("nn", [4072, 4072, 4072], "wgmma-f16-128x256x64", 401.5),
    ("nn", [4072, 4072, 4072], "wgmma-f16-128x128x64", 316.8),
    ("nn", [4072, 4072, 4072], "wgmma-f16-64x128x64", 210.5),
    (
        "nn",
        [4096, 4096, 128],
        "wgmma-f16-128x256x64-persistent",
        243.1,
    ),
    ("nn", [4096, 4096, 128], "wgmma-f16-128x256x64", 192.2),
    (
        "nt",
        [4096, 4096, 4096],
        "wgmma-s8-128x256x128-persistent",
        1367.4,
    ),
    ("nt", [4096, 4096, 4096], "wgmma-s8-128x256x128", 1206.8),
    (
        "nt",
        [8192, 8192, 8192],
        "wgmma-e4m3-128x256x128-persistent",
        1460.5,
    ),
    (
        "nt",
        [4096, 4096, 4096],
        "wgmma-tf32-128x256x32-persistent",
        389.2,
    ),
    ("nn", [1152, 1152, 1152], "wgmma-f16-128x192x64", 213.8),
    ("nn", [1152, 1152, 1152], "wgmma-f16-128x128x64", 241.3),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x192x64", 400.2),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x256x64", 341.1),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x128x64", 305.2),
    ("nn", [1920, 1920, 1920], "wgmma-f16-128x192x64", 381.4),
    ("nn", [1920, 1920, 1920], "wgmma-f16-128x256x64", 518.0),
    ("nn", [1920, 1920, 1920], "wgmma-f16-128x128x64", 459.8),
    ("nn", [6144, 6144, 6144], "wgmma-f16-128x192x64", 715.7),
    ("nt", [1536, 1536, 1536], "wgmma-s8-128x192x128", 519.5),
    // B is transposed first.
    ("nn", [1024, 1024, 1024], "mma-tf32-64x128x32", 94.1),
    ("nn", [1024, 1024, 1024], "wgmma-tf32-64x128x64", 116.1),
    ("nn", [1024, 1024, 1024], "wgmma-tf32-64x128x32", 101.8),
    ("nn", [1024, 1024, 1024], "wgmma-tf32-128x128x32", 102.1),
    ("nn", [1536, 1536, 1536], "wgmma-tf32-128x192x32", 202.0),
    ("nn", [2048, 2048, 2048], "wgmma-tf32-128x256x32", 279.0),
    ("nt", [2048, 2048, 2048], "wgmma-tf32-128x256x32", 352.7),
    (
        "nn",
        [4096, 4096, 4096],
        "wgmma-tf32-128x256x32-persistent",
        343.5,
    ),
    // B through registers: one H100 with the same clock and as many multiprocessors, as below.
    (
        "nn",
        [1536, 1536, 1536],
        "wgmma-tf32-256x128x32-swapped",
        203.0,
    ),
    (
        "nn",
        [2048, 2048, 2048],
        "wgmma-tf32-256x128x32-swapped",
        337.0,
    ),
    (
        "nn",
        [4096, 4096, 128],
        "wgmma-tf32-256x128x32-swapped-persistent",
        130.6,
    ),
    (
        "nn",
        [4096, 4096, 4096],
        "wgmma-tf32-256x128x32-swapped-persistent",
        369.8,
    ),
    (
        "nn",
        [6144, 6144, 6144],
        "wgmma-tf32-256x128x32-swapped-persistent",
        382.8,
    ),
    (
        "nn",
        [8192, 8192, 8192],
        "wgmma-tf32-256x128x32-swapped-persistent",
        369.6,
    ),
    (
        "tn",
        [4096, 4096, 4096],
        "wgmma-tf32-256x128x32-swapped-persistent",
        318.2,
    ),
    // One H100 with the same clock and as many multiprocessors.
    ("nn", [4096, 4096, 4096], "sgemm-128x128x16", 52.0),
    ("nn", [8192, 8192, 8192], "sgemm-128x128x16", 52.8),
    ("nn", [4096, 4096, 4096], "sgemm-128x256x8", 47.1),
    ("tn", [4096, 4096, 4096], "sgemm-128x256x8", 51.1),
    ("nn", [8192, 8192, 8192], "sgemm-128x256x8", 49.5),
    ("nn", [4096, 4096, 4096], "sgemm-256x128x8", 46.3),
    ("nn", [1000, 1000, 1000], "sgemm-64x64x16", 35.4),
    ("nn", [1024, 1024, 1024], "sgemm-64x64x16", 37.6),
    ("nn", [2048, 2048, 2048], "sgemm-64x64x16", 44.5),
    ("tn", [8192, 8192, 8192], "sgemm-128x128x16", 53.3),
    ("nn", [6144, 6144, 6144], "sgemm-64x64x16", 47.1),
    ("nn", [8192, 8192, 8192], "sgemm-64x64x16", 46.0),
    ("nn", [2048, 2048, 2048], "sgemm-128x128x16", 49.6),
    ("nn", [1000, 1000, 1000], "sgemm-128x32x16", 26.8),
];

fn measured() -> impl Iterator<Item = (Box<dyn Plan>, Gemm, f64)> {
    MEASURED.iter().map(|&(trans, [m, n, k], plan, tflops)| {
        let problem = Gemm::packed(m, n, k, operands(trans));
        (named(plan), problem, 2e-12 * (m * n * k) as f64 / tflops)
    })
}

#[test]
fn estimates_are_near_what_was_measured() {
    for (plan, problem, seconds) in measured() {
        let e = estimate(plan.as_ref(), Schedule::default(), &problem, &h200());
        let factor = e.seconds / seconds;
        assert!(
            (0.8..1.25).contains(&factor),
            "{} at {}: {:.1} us estimated, {:.1} measured",
            plan.name(),
            problem.m,
            e.seconds * 1e6,
            seconds * 1e6
        );
    }
}

#[test]
fn the_best_of_those_measured_is_picked_or_one_within_a_tenth() {
    for (plan, problem, _) in measured() {
        let rivals: Vec<_> = measured()
            .filter(|(p, g, _)| p.data_type() == plan.data_type() && *g == problem)
            .collect();
        let picked = rivals.iter().min_by(|a, b| {
            let of = |p: &dyn Plan| estimate(p, Schedule::default(), &problem, &h200()).seconds;
            of(a.0.as_ref()).total_cmp(&of(b.0.as_ref()))
        });
        let best = rivals.iter().map(|r| r.2).fold(f64::INFINITY, f64::min);
        let picked = picked.expect("at least itself");
        assert!(
            picked.2 <= 1.1 * best,
            "{} at {}",
            picked.0.name(),
            problem.m
        );
    }
}

/// The figures of the worked example in the model's documentation.
#[test]
fn the_worked_example_is_true() {
    let e = estimate(
        named("mma-f16-128x256x64").as_ref(),
        Schedule::default(),
        &cube(4096),
        &h200(),
    );
    let d = e.demands;
    let rounded = [d.math, d.shared, d.l2, d.slots, e.period].map(|v| v.round() as u64);
    assert_eq!(rounded, [1748, 1408, 874, 344, 2002]);
    assert_eq!((e.blocks, e.resident, e.steps), (512, 1, 64));
    assert!((3.0..4.0).contains(&e.waves));
    assert_eq!(e.bound, Bound::Issue);
    assert!((e.seconds * 1e6 - 276.9).abs() < 0.05, "{}", e.seconds);
    let tflops = 2e-12 * 4096f64.powi(3) / e.seconds;
    assert!((tflops - 496.4).abs() < 0.5, "{tflops}");
}

/// Blocks on a multiprocessor by the registers that ptxas 13.0 gives these kernels for `sm_90`, and their shared memory.
#[test]
fn as_many_blocks_are_resident_as_registers_and_shared_memory_allow() {
    for (plan, registers, resident) in [
        ("sgemm-maxas-128", 124, 2),
        ("sgemm-maxas-64", 124, 8),
        ("mma-f16-128x256x64", 238, 1),
        ("mma-f16-128x128x64", 246, 2),
        ("mma-f16-128x128x32", 238, 2),
        ("mma-f16-64x64x64", 106, 3),
        ("mma-f16-64x64x32", 100, 4),
        ("mma-s8-128x128x64", 163, 1),
        ("mma-f64-128x128x8", 254, 1),
        ("mma-f64-64x128x16", 168, 1),
    ] {
        let p = named(plan);
        let anatomy = p.anatomy();
        assert!(
            anatomy.registers(false, false).abs_diff(registers) <= 16,
            "{plan}: {} registers estimated, {registers} counted",
            anatomy.registers(false, false)
        );
        let e = estimate(p.as_ref(), Schedule::default(), &cube(4096), &h200());
        assert_eq!(e.resident, resident, "{plan}");
    }
}

/// The model counts bytes / 128 wavefronts: that is what the proofs say of every copy and every read.
#[test]
fn tensor_core_plans_take_the_wavefronts_that_the_model_counts() {
    for plan in plans() {
        if plan.name().starts_with("sgemm") {
            continue;
        }
        for operands in Operands::ALL {
            let proof = plan.prove(operands).expect("every plan proves");
            let counted = proof
                .accesses
                .iter()
                .filter(|a| a.access.starts_with("copy") || a.access.starts_with("read"));
            for a in counted {
                assert_eq!(a.wavefronts, a.ideal, "{} {}", plan.name(), a.access);
            }
        }
    }
}

#[test]
fn the_geometry_of_a_block_is_that_of_its_launch() {
    for plan in plans() {
        let anatomy = plan.anatomy();
        assert_eq!(anatomy.threads(), plan.threads(), "{}", plan.name());
        let problem = cube(1024);
        let launch = plan
            .adapt(&problem, Schedule::default())
            .and_then(|p| p.launch(&problem))
            .expect("aligned problems are served")
            .expect("there is something to launch");
        // Static shared memory (sgemm) is not part of a launch.
        if launch.shared_bytes > 0 {
            assert_eq!(
                anatomy.shared_bytes(),
                launch.shared_bytes,
                "{}",
                plan.name()
            );
        }
    }
}

fn best(data_type: DataType, problem: &Gemm, arch: Arch) -> Candidate {
    candidates(data_type, problem, arch, &Machine::for_arch(arch))
        .expect("a plan")
        .swap_remove(0)
}

#[test]
fn sums_are_split_only_where_it_pays() {
    let few_blocks = Gemm::packed(512, 512, 65_536, operands("nn"));
    for data_type in [DataType::F16, DataType::Bf16, DataType::Tf32, DataType::F64] {
        let chosen = best(data_type, &few_blocks, Arch(90));
        assert!(
            chosen.schedule.split >= 2,
            "{data_type}: {}",
            chosen.plan.name()
        );
        for size in [2048, 4096, 8192] {
            let chosen = best(data_type, &cube(size), Arch(90));
            assert_eq!(chosen.schedule.split, 1, "{data_type} {size}");
        }
        // A product whose own sums are short has nothing to split.
        let short = Gemm::packed(512, 512, 64, operands("nn"));
        assert_eq!(best(data_type, &short, Arch(90)).schedule.split, 1);
    }
}

/// The H100 that plans of warpgroups were measured on.
fn h100() -> Machine {
    Machine {
        l2_bytes: 50 << 20,
        memory_bandwidth: 2975.2e9,
        ..h200()
    }
}

/// What `docs/performance-wgmma.md` measured to be the fastest there.
#[test]
fn plans_of_warpgroups_are_chosen_as_measured() {
    let cases = [
        (DataType::F16, [1536; 3], "wgmma-f16-128x192x64", (1, false)),
        (DataType::F16, [1920; 3], "wgmma-f16-128x256x64", (1, false)),
        (DataType::F16, [1152; 3], "wgmma-f16-128x128x64", (1, false)),
        (
            DataType::F16,
            [1000; 3],
            "wgmma-f16-64x128x128-cluster2x1",
            (1, false),
        ),
        (DataType::F16, [2000; 3], "wgmma-f16-128x256x64", (1, false)),
        (
            DataType::F16,
            [4072; 3],
            "wgmma-f16-128x256x64-persistent",
            (1, true),
        ),
        (
            DataType::F16,
            [512, 512, 65_536],
            "wgmma-f16-128x256x64",
            (16, false),
        ),
        (
            DataType::Tf32,
            [1024; 3],
            "wgmma-tf32-64x128x64",
            (1, false),
        ),
        (
            DataType::Tf32,
            [1536; 3],
            "wgmma-tf32-192x128x32-swapped",
            (1, false),
        ),
    ];
    for (data_type, [m, n, k], plan, (split, pack)) in cases {
        let problem = Gemm::packed(m, n, k, operands("nn"));
        let chosen = choose(data_type, &problem, Arch(90), &h100(), None).expect("a plan");
        assert_eq!(
            (chosen.plan.name().as_str(), chosen.schedule),
            (plan, Schedule { split, pack }),
            "{data_type} {m}x{n}x{k}"
        );
    }
    // Transposing all of B takes longer than plans of warps, or that take it through registers.
    let skinny = Gemm::packed(128, 8192, 8192, operands("nn"));
    let chosen = best(DataType::Tf32, &skinny, Arch(90)).plan;
    let [_, transposed] = chosen.anatomy().transposed(skinny.operands);
    assert!(!transposed, "{}", chosen.name());
}

#[test]
fn packing_pays_for_large_odd_products_and_not_for_small_ones() {
    let odd = |size: u64| Gemm::packed(size - 1, size + 1, size - 3, operands("nn"));
    let plan = named("mma-f16-128x128x64");
    let seconds = |problem: &Gemm, pack| {
        let schedule = Schedule { split: 1, pack };
        estimate(plan.as_ref(), schedule, problem, &h200()).seconds
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
fn no_candidate_is_beyond_its_architecture() {
    for arch in Arch::ALL {
        for data_type in DataType::ALL {
            let all = match candidates(data_type, &cube(512), arch, &Machine::for_arch(arch)) {
                Ok(all) => all,
                Err(SelectError::NoPlan { needs, .. }) => {
                    assert!(needs.is_none_or(|needs| needs > arch));
                    continue;
                }
                Err(e) => panic!("{data_type} on {arch}: {e}"),
            };
            for c in &all {
                assert_eq!(c.plan.data_type(), data_type);
                assert!(c.plan.min_arch() <= arch, "{} on {arch}", c.plan.name());
                let launch = c
                    .plan
                    .adapt(&cube(512), c.schedule)
                    .and_then(|p| p.launch(&cube(512)))
                    .expect("a candidate serves")
                    .expect("a launch");
                assert!(launch.shared_bytes <= arch.shared_limit());
            }
        }
    }
}

#[test]
fn candidates_are_in_the_order_of_their_times_and_always_the_same() {
    let problem = Gemm::packed(1024, 1024, 5120, operands("nt"));
    let all = || {
        candidates(DataType::F16, &problem, Arch(90), &h200())
            .expect("plans")
            .iter()
            .map(|c| (c.plan.name(), c.schedule, c.estimate.seconds))
            .collect::<Vec<_>>()
    };
    let first = all();
    assert_eq!(first, all());
    assert!(first.len() > 4);
    // Those that gain nothing where rows begin with sectors are behind the others.
    let behind =
        |c: &(String, Schedule, f64)| c.0.contains("-cluster") || c.0.contains("-tma-store");
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
        c.plan.name()
    };
    for trans in ["nn", "nt", "tn", "tt"] {
        let (within, whole) = (
            chosen(1000, 1000, 1000, trans),
            chosen(1024, 1024, 1024, trans),
        );
        assert!(within.contains("-cluster"), "{trans}: {within}");
        assert!(!whole.contains("-cluster"), "{trans}: {whole}");
    }
    // Rows of B begin with sectors, those of A do not.
    let of_a = chosen(1000, 1024, 1000, "nn");
    assert!(!of_a.ends_with("-cluster2x1"), "{of_a}");
}

/// What blocks share is asked for once: of a 128x256 tile B is two thirds of the bytes, A one third.
#[test]
fn a_cluster_asks_the_cache_for_less() {
    let l2 = |name: &str| {
        let plan = plan_named(&format!("wgmma-f16-{name}")).expect("listed");
        let e = estimate(plan.as_ref(), Schedule::default(), &cube(4096), &h200());
        e.demands.l2
    };
    for (alone, cluster, part) in [
        ("128x256x64", "128x256x64-cluster2x1", 2.0 / 3.0),
        (
            "128x256x64-persistent",
            "128x256x64-persistent-cluster1x2",
            5.0 / 6.0,
        ),
        ("128x128x64", "128x128x64-cluster2x1", 3.0 / 4.0),
        ("64x128x128", "64x128x128-cluster2x1", 2.0 / 3.0),
    ] {
        let found = l2(cluster) / l2(alone);
        assert!((found - part).abs() < 1e-9, "{cluster}: {found}");
    }
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
            let outer = all.iter().filter(|c| c.plan.name() == "dgemm-4x4").count();
            let expected = if arch < Arch(80) { all.len() } else { 0 };
            assert_eq!(outer, expected, "{arch}, {size}");
        }
    }
    let seconds = |name: &str| {
        let plan = named(name);
        estimate(plan.as_ref(), Schedule::default(), &cube(4096), &h200()).seconds
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

#[test]
fn what_no_plan_can_do_is_refused_by_name() {
    let machine = Machine::for_arch(Arch(75));
    let refused = candidates(DataType::Tf32, &cube(64), Arch(75), &machine).err();
    assert_eq!(
        refused,
        Some(SelectError::NoPlan {
            data_type: DataType::Tf32,
            arch: Arch(75),
            needs: Some(Arch(80)),
        })
    );
    let relu = Gemm {
        epilogue: Epilogue {
            activation: Activation::Relu,
            ..Epilogue::default()
        },
        ..cube(64)
    };
    let refused = choose(DataType::F32, &relu, Arch(75), &machine, None).err();
    assert!(
        matches!(&refused, Some(SelectError::Plan(PlanError::Unsupported { what, .. })) if what.contains("activation")),
        "{refused:?}"
    );
    let overlapping = Gemm {
        batch: Batch {
            count: 2,
            strides: [0, 0, 64],
        },
        ..cube(64)
    };
    let refused = choose(DataType::F16, &overlapping, Arch(80), &machine, None).err();
    assert!(
        matches!(
            refused,
            Some(SelectError::Plan(PlanError::Problem(
                ProblemError::BatchOverlap { .. }
            )))
        ),
        "{refused:?}"
    );
}

#[test]
fn what_is_wanted_is_kept() {
    let choice = |wanted: Wanted<'_>, data_type| {
        wanted.choose(data_type, &cube(4096), Arch(80), &h200(), None)
    };
    let of = |plan| Wanted {
        plan: Some(plan),
        ..Wanted::default()
    };
    let chosen = choice(of("mma-f16-64x64x32"), DataType::F16).expect("served");
    assert_eq!(chosen.plan.name(), "mma-f16-64x64x32");
    let split = Wanted {
        split: Some(5),
        ..Wanted::default()
    };
    assert_eq!(
        choice(split, DataType::F16).expect("served").schedule.split,
        5
    );
    let refused = |wanted, data_type| choice(wanted, data_type).err().map(|e| e.code());
    assert_eq!(refused(of("no"), DataType::F16), Some("unknown_plan"));
    assert_eq!(
        refused(of("mma-f16-64x64x32"), DataType::F32),
        Some("wrong_type")
    );
    assert_eq!(
        refused(of("mma-f64-128x128x8"), DataType::F64),
        Some("arch_too_old")
    );
    let unsplit = Wanted {
        plan: Some("sgemm-maxas-128"),
        ..split
    };
    assert_eq!(refused(unsplit, DataType::F32), Some("unsupported"));
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
        (choice.plan.name(), measured)
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
    let choice = |wanted: Wanted<'_>, arch| {
        wanted
            .choose(
                DataType::F16,
                &cube(4096),
                Arch(arch),
                &h200(),
                Some(&findings),
            )
            .expect("there are plans")
            .plan
            .name()
    };
    assert_eq!(choice(Wanted::default(), 80), "mma-f16-128x256x64");
    assert_eq!(choice(Wanted::default(), 86), "mma-f16-64x64x32");
    let wanted = Wanted {
        plan: Some("mma-f16-64x64x64"),
        ..Wanted::default()
    };
    assert_eq!(choice(wanted, 90), "mma-f16-64x64x64");
}

#[test]
fn a_machine_with_fewer_multiprocessors_is_slower() {
    let small = Machine {
        multiprocessors: 66,
        ..h200()
    };
    for plan in plans() {
        let of = |machine| estimate(plan.as_ref(), Schedule::default(), &cube(8192), machine);
        let (half, whole) = (of(&small), of(&h200()));
        // What reads so much for each product waits for memory, whatever multiplies.
        let least = if plan.anatomy().units == Units::Warpgroup {
            64
        } else {
            32
        };
        let narrow = plan.tile().0.min(plan.tile().1) <= least;
        if narrow && matches!(whole.bound, Bound::Memory | Bound::L2) {
            continue;
        }
        assert!(half.seconds > 1.5 * whole.seconds, "{}", plan.name());
    }
}

fn any_plan() -> impl Strategy<Value = usize> {
    0..plans().len()
}

fn any_arch() -> impl Strategy<Value = Arch> {
    proptest::sample::select(&Arch::ALL[..])
}

proptest! {
    #[test]
    fn a_longer_sum_never_takes_less_time(
        which in any_plan(),
        arch in any_arch(),
        (m, n) in (1u64..9000, 1u64..9000),
        (k, more) in (1u64..20_000, 1u64..5_000),
        trans in 0usize..4,
    ) {
        let plan = &plans()[which];
        let machine = Machine::for_arch(arch);
        let of = |k| {
            // The same leading dimensions, so that the copies are as wide.
            let problem = Gemm {
                k,
                ..Gemm::packed(m, n, 25_000, Operands::ALL[trans])
            };
            estimate(plan.as_ref(), Schedule::default(), &problem, &machine).seconds
        };
        prop_assert!(of(k) <= of(k + more) * (1.0 + 1e-12));
    }

    #[test]
    fn no_estimate_beats_the_hardware(
        which in any_plan(),
        arch in any_arch(),
        (m, n, k) in (1u64..5000, 1u64..5000, 1u64..5000),
        parts in 1u32..40,
        pack in any::<bool>(),
    ) {
        let plan = &plans()[which];
        let machine = Machine::for_arch(arch);
        let problem = Gemm::packed(m, n, k, Operands::ALL[0]);
        let schedule = Schedule { split: parts, pack };
        let e = estimate(plan.as_ref(), schedule, &problem, &machine);
        // Products of warpgroups multiply as many bytes of every type, 1.6 times those of f16 by warps.
        let rate = match plan.anatomy().units {
            Units::Warpgroup => {
                3.2 * machine.rate(DataType::F16) / f64::from(plan.data_type().bytes())
            }
            _ => machine.rate(plan.data_type()),
        };
        let rate = rate * f64::from(machine.multiprocessors) * machine.clock;
        prop_assert!(e.seconds.is_finite());
        prop_assert!(e.seconds >= machine.launch);
        prop_assert!(e.seconds >= 2.0 * (m * n * k) as f64 / rate);
        let bytes = (m + n) * k * u64::from(plan.data_type().bytes());
        prop_assert!(e.seconds >= bytes as f64 / machine.memory_bandwidth);
    }

    #[test]
    fn batches_and_splits_multiply_blocks(
        (m, n) in (1u64..3000, 1u64..3000),
        count in 1u64..20,
        parts in proptest::sample::select(&[1u32, 2, 4, 8][..]),
    ) {
        let plan = named("mma-f16-64x64x32");
        let problem = Gemm {
            batch: Batch { count, strides: [0, 0, m * n] },
            ..Gemm::packed(m, n, 4096, Operands::ALL[0])
        };
        let e = estimate(plan.as_ref(), split(parts), &problem, &h200());
        let tiles = m.div_ceil(64) * n.div_ceil(64);
        prop_assert_eq!(e.blocks, tiles * count * u64::from(parts));
        prop_assert!(close(e.waves, e.blocks as f64 / (132.0 * f64::from(e.resident)), 1e9));
    }
}

/// Plans that copy through registers are for architectures without `cp.async`, or for who asks for them by name.
#[test]
fn plans_without_cp_async_are_for_architectures_without() {
    let problem = Gemm::packed(1024, 1024, 1024, operands("nn"));
    let names = |arch: Arch| -> Vec<_> {
        let all = candidates(DataType::F16, &problem, arch, &h200()).expect("there are some");
        all.iter().map(|c| c.plan.name()).collect()
    };
    assert!(names(Arch(75)).iter().all(|name| name.ends_with("-sm75")));
    assert!(!names(Arch(80)).iter().any(|name| name.ends_with("-sm75")));
    let wanted = Wanted {
        plan: Some("mma-f16-64x64x32-sm75"),
        ..Wanted::default()
    };
    let all = wanted.candidates(DataType::F16, &problem, Arch(90), &h200());
    assert!(!all.expect("it serves").is_empty());
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
                let plan = choice.plan.adapt(&problem, choice.schedule);
                let kernel = plan.expect("it serves").emit(problem.operands, arch);
                assert!(kernel.is_ok(), "{data_type} on {arch}: {kernel:?}");
            }
        }
    }
}

fn adapted(plan: &str, problem: &Gemm, schedule: Schedule) -> Result<Box<dyn Plan>, PlanError> {
    named(plan).adapt(problem, schedule)
}

/// What cannot be done is refused before a kernel is made of it.
#[test]
fn adaptations_that_no_kernel_serves_are_refused() {
    let nn = operands("nn");
    let said = |outcome: Result<Box<dyn Plan>, PlanError>| match outcome {
        Ok(plan) => panic!("{} serves", plan.name()),
        Err(e) => e.to_string(),
    };
    // B in single bytes leaves no registers, whatever A is copied by.
    let mut mixed = Gemm::packed(256, 256, 256, operands("nt"));
    (mixed.lda, mixed.ldb) = (264, 257);
    let text = said(adapted("mma-e4m3-64x64x64", &mixed, Schedule::default()));
    assert!(
        text.contains("copies of 1 bytes") && text.contains("mma-e4m3-64x64x32"),
        "{text}"
    );

    let mut batch = Gemm::packed(65, 65, 33, nn);
    (batch.batch.count, batch.batch.strides) = (2, [65 * 33, 33 * 65, 65 * 65]);
    let pack = Schedule {
        split: 1,
        pack: true,
    };
    let text = said(adapted("mma-f16-64x64x32", &batch, pack));
    assert!(text.contains("packed operands in a batch"), "{text}");
    let text = said(adapted("mma-f16-128x256x64", &batch, Schedule::default()));
    assert!(!text.contains("--pack"), "{text}");
    assert!(
        said(adapted(
            "mma-f16-64x64x32",
            &Gemm::packed(64, 64, 64, nn),
            split(0)
        ))
        .contains("sums in no part")
    );

    // The kernel that adds partial sums has blocks of 128 columns here.
    let mut wide = Gemm::packed(1, 8_388_481, 1024, nn);
    wide.ldb = 8_388_608;
    let plan = adapted("mma-f16-128x256x64", &wide, split(2)).expect("it adapts");
    let text = plan.launch(&wide).expect_err("65,536 blocks").to_string();
    assert_eq!(
        text,
        "n is 8388481, and a grid has room for no more blocks: n can be at most 8388480"
    );
    let long = Gemm::packed(64, 64, 3_200_000, nn);
    let plan = adapted("mma-f16-64x64x32", &long, split(100_000)).expect("it adapts");
    assert!(
        plan.launch(&long)
            .expect_err("65,536 parts")
            .to_string()
            .starts_with("split is 100000")
    );
    let huge = Gemm::packed(2_000_000_000, 16_000_000, 64_000, nn);
    let plan = adapted("mma-f16-64x64x32", &huge, split(1000));
    let text = plan
        .expect("it adapts")
        .launch(&huge)
        .expect_err("2^64 bytes")
        .to_string();
    assert!(
        text.contains("workspace") || text.contains("grid"),
        "{text}"
    );

    assert_eq!(
        named("mma-f16-64x64x32")
            .emit(nn, Arch(77))
            .expect_err("none")
            .code(),
        "unknown_arch"
    );
    assert_eq!(
        named("sgemm-maxas-64")
            .emit(nn, Arch(u32::MAX))
            .expect_err("none")
            .code(),
        "unknown_arch"
    );
}
