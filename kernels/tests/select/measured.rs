//! The model against what GPUs measured.

use layout_codegen::Arch;
use tilewright_kernels::gemm::{Config, DataType, Gemm, Schedule};
use tilewright_kernels::select::{Bound, Candidate, candidates, estimate};

use crate::{best, cube, h100, h200, named, operands};

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
        "wgmma-f16-128x256x64+persistent",
        763.8,
    ),
    (
        "nn",
        [6144, 6144, 6144],
        "wgmma-f16-128x256x64+persistent",
        718.7,
    ),
    (
        "nn",
        [8192, 8192, 8192],
        "wgmma-f16-128x256x64+persistent",
        736.7,
    ),
    (
        "nn",
        [2048, 2048, 2048],
        "wgmma-f16-128x256x64+persistent",
        583.2,
    ),
    ("nn", [2048, 2048, 2048], "wgmma-f16-128x256x64", 579.5),
    (
        "nn",
        [2048, 2048, 2048],
        "wgmma-f16-128x128x64+stages4",
        521.2,
    ),
    ("nn", [1024, 1024, 1024], "wgmma-f16-64x128x64", 204.3),
    ("nn", [1024, 1024, 1024], "wgmma-f16-64x128x128", 228.3),
    (
        "nn",
        [1024, 1024, 1024],
        "wgmma-f16-128x128x64+stages4",
        184.9,
    ),
    (
        "nn",
        [1000, 1000, 1000],
        "wgmma-f16-64x128x128+cluster2x1",
        181.2,
    ),
    ("nt", [1000, 1000, 1000], "wgmma-bf16-64x128x128", 150.4),
    (
        "nt",
        [1000, 1000, 1000],
        "wgmma-bf16-64x128x128+cluster2x1",
        177.1,
    ),
    ("nt", [1000, 1000, 1000], "wgmma-bf16-128x128x64", 162.5),
    ("nt", [1008, 1008, 1008], "wgmma-bf16-64x128x128", 201.0),
    ("nt", [1008, 1008, 1008], "wgmma-bf16-128x128x64", 179.6),
    (
        "nt",
        [2000, 2000, 2000],
        "wgmma-bf16-128x256x64+persistent",
        555.2,
    ),
    ("nt", [2000, 2000, 2000], "wgmma-bf16-128x128x64", 433.5),
    ("nt", [2000, 2000, 2000], "wgmma-bf16-64x128x128", 323.6),
    (
        "nt",
        [3000, 3000, 3000],
        "wgmma-bf16-192x192x64+persistent+cluster2x1",
        621.3,
    ),
    (
        "nt",
        [3000, 3000, 3000],
        "wgmma-bf16-128x256x64+persistent+cluster2x1",
        519.6,
    ),
    (
        "nt",
        [3000, 3000, 3000],
        "wgmma-bf16-128x256x64+persistent",
        411.7,
    ),
    ("nt", [3000, 3000, 3000], "wgmma-bf16-128x128x64", 338.8),
    (
        "nt",
        [4072, 4072, 4072],
        "wgmma-bf16-128x256x64+persistent+cluster2x1",
        661.6,
    ),
    (
        "nt",
        [4072, 4072, 4072],
        "wgmma-bf16-128x256x64+persistent",
        493.0,
    ),
    ("nt", [4072, 4072, 4072], "wgmma-bf16-128x128x64", 364.5),
    ("nt", [4072, 4072, 4072], "wgmma-bf16-64x128x128", 256.6),
    (
        "nt",
        [1536, 1536, 1536],
        "wgmma-bf16-128x144x64+persistent",
        442.4,
    ),
    (
        "nt",
        [1536, 1536, 1536],
        "wgmma-bf16-192x128x64+persistent",
        406.3,
    ),
    (
        "nt",
        [1536, 1536, 1536],
        "wgmma-bf16-128x256x64+persistent",
        339.6,
    ),
    (
        "nt",
        [2304, 2304, 2304],
        "wgmma-bf16-192x128x64+persistent",
        555.7,
    ),
    (
        "nt",
        [2304, 2304, 2304],
        "wgmma-bf16-128x144x64+persistent",
        507.4,
    ),
    (
        "nt",
        [2304, 2304, 2304],
        "wgmma-bf16-192x192x64+persistent",
        428.1,
    ),
    (
        "nt",
        [2560, 2560, 2560],
        "wgmma-bf16-128x144x64+persistent",
        582.9,
    ),
    (
        "nt",
        [2560, 2560, 2560],
        "wgmma-bf16-192x160x64+persistent",
        571.4,
    ),
    (
        "nt",
        [2560, 2560, 2560],
        "wgmma-bf16-192x128x64+persistent",
        496.2,
    ),
    (
        "nt",
        [3072, 3072, 3072],
        "wgmma-bf16-192x192x64+persistent",
        689.6,
    ),
    (
        "nt",
        [3072, 3072, 3072],
        "wgmma-bf16-192x128x64+persistent",
        666.0,
    ),
    (
        "nt",
        [3072, 3072, 3072],
        "wgmma-bf16-128x256x64+persistent",
        564.9,
    ),
    (
        "nt",
        [5120, 5120, 5120],
        "wgmma-bf16-192x160x64+persistent",
        698.5,
    ),
    (
        "nt",
        [5120, 5120, 5120],
        "wgmma-bf16-128x256x64+persistent",
        667.8,
    ),
    (
        "nt",
        [6144, 6144, 6144],
        "wgmma-bf16-192x192x64+persistent",
        781.8,
    ),
    (
        "nt",
        [6144, 6144, 6144],
        "wgmma-bf16-128x256x64+persistent",
        754.8,
    ),
    ("nn", [16, 8192, 8192], "wgmma-tf32-64x128x64+swapab", 22.2),
    (
        "nn",
        [1024, 1024, 1024],
        "wgmma-tf32-64x128x64+swapab",
        151.3,
    ),
    (
        "nn",
        [1000, 1000, 1000],
        "wgmma-tf32-64x128x64+swapab",
        127.8,
    ),
    (
        "nn",
        [128, 8192, 8192],
        "wgmma-tf32-64x128x64+swapab",
        171.7,
    ),
    (
        "nn",
        [8192, 128, 8192],
        "wgmma-tf32-64x128x64+swapab",
        164.3,
    ),
    (
        "nn",
        [4096, 4096, 128],
        "wgmma-f16-128x256x64+persistent",
        243.1,
    ),
    ("nn", [4096, 4096, 128], "wgmma-f16-128x256x64", 192.2),
    (
        "nt",
        [4096, 4096, 4096],
        "wgmma-s8-128x256x128+persistent",
        1367.4,
    ),
    ("nt", [4096, 4096, 4096], "wgmma-s8-128x256x128", 1206.8),
    (
        "nt",
        [8192, 8192, 8192],
        "wgmma-e4m3-128x256x128+persistent",
        1460.5,
    ),
    (
        "nt",
        [4096, 4096, 4096],
        "wgmma-tf32-128x256x32+persistent",
        389.2,
    ),
    ("nn", [1152, 1152, 1152], "wgmma-f16-128x192x64", 213.8),
    (
        "nn",
        [1152, 1152, 1152],
        "wgmma-f16-128x128x64+stages4",
        241.3,
    ),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x192x64", 400.2),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x256x64", 341.1),
    (
        "nn",
        [1536, 1536, 1536],
        "wgmma-f16-128x128x64+stages4",
        305.2,
    ),
    ("nn", [1920, 1920, 1920], "wgmma-f16-128x192x64", 381.4),
    ("nn", [1920, 1920, 1920], "wgmma-f16-128x256x64", 518.0),
    (
        "nn",
        [1920, 1920, 1920],
        "wgmma-f16-128x128x64+stages4",
        459.8,
    ),
    ("nn", [6144, 6144, 6144], "wgmma-f16-128x192x64", 715.7),
    ("nt", [1536, 1536, 1536], "wgmma-s8-128x192x128", 519.5),
    ("nn", [512, 1024, 2048], "wgmma-f16-64x64x128", 210.6),
    (
        "nn",
        [16_384, 16_384, 16_384],
        "wgmma-f16-128x256x64+persistent",
        708.9,
    ),
    (
        "nn",
        [16_384, 16_384, 16_384],
        "wgmma-f16-128x256x64",
        657.1,
    ),
    ("nn", [1024, 1024, 1024], "wgmma-f16-128x128x64", 197.0),
    ("nn", [1152, 1152, 1152], "wgmma-f16-128x128x64", 248.6),
    ("nn", [1536, 1536, 1536], "wgmma-f16-128x128x64", 309.7),
    ("nn", [2048, 2048, 2048], "wgmma-f16-128x128x64", 509.8),
    ("nt", [1024, 1024, 1024], "wgmma-tf32-128x128x32", 130.2),
    ("nt", [2048, 2048, 2048], "wgmma-s8-128x128x128", 760.2),
    ("nt", [2048, 2048, 2048], "wgmma-e4m3-128x128x128", 734.2),
    // B is transposed first.
    ("nn", [1024, 1024, 1024], "mma-tf32-64x128x32", 94.1),
    ("nn", [1024, 1024, 1024], "wgmma-tf32-64x128x64", 116.1),
    ("nn", [1024, 1024, 1024], "wgmma-tf32-64x128x32", 101.8),
    (
        "nn",
        [1024, 1024, 1024],
        "wgmma-tf32-128x128x32+stages4",
        102.1,
    ),
    ("nn", [1536, 1536, 1536], "wgmma-tf32-128x192x32", 202.0),
    ("nn", [2048, 2048, 2048], "wgmma-tf32-128x256x32", 279.0),
    ("nt", [2048, 2048, 2048], "wgmma-tf32-128x256x32", 352.7),
    (
        "nn",
        [4096, 4096, 4096],
        "wgmma-tf32-128x256x32+persistent",
        343.5,
    ),
    // B through registers: one H100 with the same clock and as many multiprocessors, as below.
    (
        "nn",
        [1536, 1536, 1536],
        "wgmma-tf32-256x128x32+swapab",
        203.0,
    ),
    (
        "nn",
        [2048, 2048, 2048],
        "wgmma-tf32-256x128x32+swapab",
        337.0,
    ),
    (
        "nn",
        [4096, 4096, 128],
        "wgmma-tf32-256x128x32+swapab+persistent",
        130.6,
    ),
    (
        "nn",
        [4096, 4096, 4096],
        "wgmma-tf32-256x128x32+swapab+persistent",
        369.8,
    ),
    (
        "nn",
        [6144, 6144, 6144],
        "wgmma-tf32-256x128x32+swapab+persistent",
        382.8,
    ),
    (
        "nn",
        [8192, 8192, 8192],
        "wgmma-tf32-256x128x32+swapab+persistent",
        369.6,
    ),
    (
        "tn",
        [4096, 4096, 4096],
        "wgmma-tf32-256x128x32+swapab+persistent",
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

fn measured() -> impl Iterator<Item = (Config, Gemm, f64)> {
    MEASURED.iter().map(|&(trans, [m, n, k], plan, tflops)| {
        let problem = Gemm::packed(m, n, k, operands(trans));
        (named(plan), problem, 2e-12 * (m * n * k) as f64 / tflops)
    })
}

#[test]
fn estimates_are_near_what_was_measured() {
    for (plan, problem, seconds) in measured() {
        let e = estimate(&plan, Schedule::default(), &problem, &h200());
        let factor = e.seconds / seconds;
        assert!(
            (0.8..1.25).contains(&factor),
            "{} at {}: {:.1} us estimated, {:.1} measured",
            plan,
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
            .filter(|(p, g, _)| p.data_type == plan.data_type && *g == problem)
            .collect();
        let picked = rivals.iter().min_by(|a, b| {
            let of = |p: &Config| estimate(p, Schedule::default(), &problem, &h200()).seconds;
            of(&a.0).total_cmp(&of(&b.0))
        });
        let best = rivals.iter().map(|r| r.2).fold(f64::INFINITY, f64::min);
        let picked = picked.expect("at least itself");
        assert!(picked.2 <= 1.1 * best, "{} at {}", picked.0, problem.m);
    }
}

/// The figures of the worked example in the model's documentation.
#[test]
fn the_worked_example_is_true() {
    let e = estimate(
        &named("mma-f16-128x256x64"),
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

/// What the model chooses on an H100.
fn chosen_on_h100(data_type: DataType, [m, n, k]: [u64; 3], trans: &str) -> Candidate {
    let problem = Gemm::packed(m, n, k, operands(trans));
    let all = candidates(data_type, &problem, Arch(90), &h100());
    all.expect("plans").into_iter().next().expect("a plan")
}

/// What `docs/performance.md` measured to be the fastest there.
#[test]
fn plans_of_warpgroups_are_chosen_as_measured() {
    let cases = [
        (
            DataType::F16,
            [1536; 3],
            "wgmma-f16-128x160x64+persistent",
            (1, false),
        ),
        (
            DataType::F16,
            [1152; 3],
            "wgmma-f16-128x96x64+persistent",
            (1, false),
        ),
        (
            DataType::F16,
            [3072; 3],
            "wgmma-f16-192x192x64+persistent",
            (1, false),
        ),
        (
            DataType::F16,
            [3000; 3],
            "wgmma-f16-192x192x64+persistent+cluster2x1",
            (1, false),
        ),
        (
            DataType::F16,
            [1000; 3],
            "wgmma-f16-64x192x64+cluster8x1",
            (1, false),
        ),
        (DataType::F16, [2000; 3], "wgmma-f16-128x256x64", (1, false)),
        (
            DataType::F16,
            [4072; 3],
            "wgmma-f16-128x256x64+persistent+cluster2x1",
            (1, false),
        ),
        (
            DataType::F16,
            [512, 512, 65_536],
            "wgmma-f16-128x128x64",
            (8, false),
        ),
        (
            DataType::F16,
            [64, 4096, 4096],
            "wgmma-f16-64x64x128",
            (1, false),
        ),
        (
            DataType::F16,
            [512, 1024, 2048],
            "wgmma-f16-64x64x128",
            (1, false),
        ),
        (
            DataType::F16,
            [16_384; 3],
            "wgmma-f16-128x256x64+persistent+cluster2x1+stages3",
            (1, false),
        ),
        (
            DataType::Tf32,
            [1024; 3],
            "wgmma-tf32-64x128x64+swapab",
            (1, false),
        ),
        (
            DataType::Tf32,
            [1536; 3],
            "wgmma-tf32-192x128x32+swapab",
            (1, false),
        ),
    ];
    for (data_type, size, plan, (split, pack)) in cases {
        let chosen = chosen_on_h100(data_type, size, "nn");
        assert_eq!(
            (chosen.config.to_string().as_str(), chosen.schedule),
            (plan, Schedule { split, pack }),
            "{data_type} {size:?}"
        );
    }
    // Transposing all of B takes longer than plans of warps, or that take it through registers.
    let skinny = Gemm::packed(128, 8192, 8192, operands("nn"));
    let chosen = best(DataType::Tf32, &skinny, Arch(90)).config;
    let [_, transposed] = chosen.transposed(skinny.operands);
    assert!(!transposed, "{}", chosen.to_string());
}

/// At the power limit products of 16-bit types take clusters and few stages, those of 8-bit types clusters, or a linear scheduler where rectangles of blocks leave many multiprocessors idle, and those of tf32
/// with contiguous columns of B take it from registers.
#[test]
fn large_products_take_the_plans_that_need_least_power() {
    for (data_type, size, trans, expected) in [
        (DataType::Bf16, [4096; 3], "nt", "128x256x64+persistent"),
        (DataType::Bf16, [6144; 3], "nt", "+cluster2x1+stages3"),
        (DataType::Bf16, [8192; 3], "nt", "+cluster2x1+stages3"),
        (DataType::Bf16, [16_384; 3], "nt", "+cluster2x1+stages3"),
        (DataType::F16, [8192; 3], "nn", "+cluster2x1+stages3"),
        (DataType::S8, [2048; 3], "nt", "+pingpong"),
        (DataType::S8, [4096; 3], "nt", "128x256x128+persistent"),
        (DataType::E4m3, [4096; 3], "nt", "128x256x128+persistent"),
        (DataType::S8, [7168; 3], "nt", "+linear"),
        (DataType::S8, [16_384, 8192, 4096], "nt", "+linear"),
        (DataType::S8, [8192; 3], "nt", "+persistent+cluster2x1"),
        (DataType::S8, [16_384; 3], "nt", "+persistent+cluster2x1"),
        (DataType::E4m3, [7168; 3], "nt", "+linear"),
        (DataType::E4m3, [6144; 3], "nt", "+persistent+cluster2x1"),
        (DataType::E4m3, [8192; 3], "nt", "+persistent+cluster2x1"),
        (DataType::E5m2, [8192; 3], "nt", "+persistent+cluster2x1"),
        (DataType::Tf32, [4096; 3], "nn", "+swapab+persistent"),
        (DataType::Tf32, [6144; 3], "nn", "+persistent+stages3"),
        (DataType::Tf32, [8192; 3], "nn", "+persistent+stages3"),
        (DataType::Tf32, [16_384; 3], "nn", "+persistent+stages3"),
        (DataType::Tf32, [6144; 3], "nt", "128x256x32+persistent"),
        (DataType::Tf32, [8192; 3], "nt", "+persistent+cluster2x1"),
    ] {
        let name = chosen_on_h100(data_type, size, trans).config.to_string();
        assert!(
            name.ends_with(expected),
            "{data_type} {trans} {size:?}: {name}"
        );
    }
}

/// Warpgroups take turns where tiles fill C: elsewhere that took up to 1.3 times as long (`tests/golden/selection`).
#[test]
fn warpgroups_take_turns_where_tiles_fill_c() {
    for (data_type, size, expected) in [
        (DataType::S8, [4096, 4096, 2048], true),
        (DataType::S8, [2048, 2048, 2048], true),
        (DataType::E4m3, [7168, 7168, 7168], true),
        (DataType::S8, [7808, 4800, 7424], false),
        (DataType::S8, [5152, 7856, 2352], false),
        (DataType::S8, [6816, 3840, 3456], false),
        (DataType::Tf32, [1408, 5376, 1216], false),
        (DataType::Bf16, [3856, 6088, 472], false),
    ] {
        let plan = chosen_on_h100(data_type, size, "nt").config;
        let turns = plan.parts_of_tile() > 1;
        assert_eq!(turns, expected, "{size:?}: {plan}");
    }
}

/// Of 132 multiprocessors 112 take clusters of eight: what more blocks wait for was measured with 128 and 144 of them.
#[test]
fn clusters_of_eight_are_taken_while_they_fit() {
    for (size, expected) in [
        ([1000, 1000, 1000], true),
        ([904, 1096, 1000], true),
        ([1000, 1300, 1000], true),
        ([1400, 1000, 1000], false),
        ([600, 1800, 1000], false),
        ([1000, 1000, 200], false),
    ] {
        let name = chosen_on_h100(DataType::Bf16, size, "nt")
            .config
            .to_string();
        let eight = name.ends_with("+cluster8x1");
        assert_eq!(eight, expected, "{size:?}: {name}");
    }
}
