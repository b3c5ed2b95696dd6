//! What no plan can do, and what is asked of the choice.

use layout_codegen::Arch;
use tilewright_kernels::gemm::{
    Activation, Batch, Config, DataType, Epilogue, Gemm, PlanError, ProblemError, Schedule,
    Specialized,
};
use tilewright_kernels::select::{Machine, SelectError, Wanted, candidates, choose};

use crate::{cube, h200, named, operands, split};

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

/// What cannot be done is refused before a kernel is made of it.
#[test]
fn adaptations_that_no_kernel_serves_are_refused() {
    let nn = operands("nn");
    let said = |outcome: Result<Specialized, PlanError>| match outcome {
        Ok(plan) => panic!("{plan} serves"),
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
        .contains("no split of k")
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
            .kernel()
            .emit(nn, Arch(77))
            .expect_err("none")
            .code(),
        "unknown_arch"
    );
    assert_eq!(
        named("sgemm-maxas-64")
            .kernel()
            .emit(nn, Arch(u32::MAX))
            .expect_err("none")
            .code(),
        "unknown_arch"
    );
}

fn adapted(plan: &str, problem: &Gemm, schedule: Schedule) -> Result<Specialized, PlanError> {
    named(plan).specialize(problem, schedule)
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
                assert_eq!(c.config.data_type, data_type);
                assert!(c.config.min_arch() <= arch, "{} on {arch}", c.config);
                let launch = c
                    .config
                    .specialize(&cube(512), c.schedule)
                    .and_then(|p| p.launch(&cube(512)))
                    .expect("a candidate serves")
                    .expect("a launch");
                assert!(launch.shared_bytes <= arch.shared_limit());
            }
        }
    }
}

#[test]
fn what_is_wanted_is_kept() {
    let choice =
        |wanted: Wanted, data_type| wanted.choose(data_type, &cube(4096), Arch(80), &h200(), None);
    let of = |plan| Wanted {
        config: Some(named(plan)),
        ..Wanted::default()
    };
    let chosen = choice(of("mma-f16-64x64x32"), DataType::F16).expect("served");
    assert_eq!(chosen.config.to_string(), "mma-f16-64x64x32");
    let split = Wanted {
        split: Some(5),
        ..Wanted::default()
    };
    assert_eq!(
        choice(split, DataType::F16).expect("served").schedule.split,
        5
    );
    let refused = |wanted, data_type| choice(wanted, data_type).err().map(|e| e.code());
    let impossible = Wanted {
        config: Some(Config {
            stages: 99,
            ..named("mma-f16-64x64x32")
        }),
        ..Wanted::default()
    };
    assert_eq!(refused(impossible, DataType::F16), Some("unsupported"));
    assert_eq!(
        refused(of("mma-f16-64x64x32"), DataType::F32),
        Some("wrong_type")
    );
    assert_eq!(
        refused(of("mma-f64-128x128x8"), DataType::F64),
        Some("arch_too_old")
    );
    let unsplit = Wanted {
        config: Some(named("sgemm-maxas-128")),
        ..split
    };
    assert_eq!(refused(unsplit, DataType::F32), Some("unsupported"));
}

/// Plans that copy through registers are for architectures without `cp.async`, or for who asks for them by name.
#[test]
fn plans_without_cp_async_are_for_architectures_without() {
    let problem = Gemm::packed(1024, 1024, 1024, operands("nn"));
    let names = |arch: Arch| -> Vec<_> {
        let all = candidates(DataType::F16, &problem, arch, &h200()).expect("there are some");
        all.iter().map(|c| c.config.to_string()).collect()
    };
    assert!(names(Arch(75)).iter().all(|name| name.ends_with("+sm75")));
    assert!(!names(Arch(80)).iter().any(|name| name.ends_with("+sm75")));
    let wanted = Wanted {
        config: Some(named("mma-f16-64x64x32+sm75")),
        ..Wanted::default()
    };
    let all = wanted.candidates(DataType::F16, &problem, Arch(90), &h200());
    assert!(!all.expect("it serves").is_empty());
}
