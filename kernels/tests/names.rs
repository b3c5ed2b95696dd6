//! Names of plans: what is printed is read back as the same plan, whether it is listed or not, and a name that no kernel has is one clear error.

use layout_codegen::Arch;
use proptest::prelude::*;
use tilewright_kernels::gemm::mma_sync::{MmaPlan, WARPGROUP_PLANS};
use tilewright_kernels::gemm::registry::{plan_named, plans};
use tilewright_kernels::gemm::{Gemm, Operands, Plan, PlanError, Schedule};

#[test]
fn listed_names_are_read_back() {
    for plan in plans() {
        let again = plan_named(&plan.name()).expect("a plan");
        assert_eq!(again.name(), plan.name());
        assert_eq!(again.anatomy(), plan.anatomy());
    }
    // Each by itself: the same value.
    for plan in WARPGROUP_PLANS {
        let with_stages = MmaPlan {
            stages: plan.stages + 1,
            ..*plan
        };
        let again = plan_named(&with_stages.name()).expect("a plan");
        assert_eq!(
            again.anatomy(),
            with_stages.anatomy(),
            "{}",
            with_stages.name()
        );
    }
}

/// Names in which each part is likely to be right.
fn name() -> impl Strategy<Value = String> {
    let of_type = prop::sample::select(vec![
        "f16", "bf16", "tf32", "s8", "e4m3", "e5m2", "f32", "f16x",
    ]);
    let rows = prop_oneof![8 => (1u32..33).prop_map(|n| 8 * n), 4 => (1u32..4).prop_map(|n| 64 * n), 1 => 0u32..400];
    let columns = prop_oneof![6 => (1u32..17).prop_map(|n| 16 * n), 4 => (1u32..4).prop_map(|n| 64 * n), 1 => 0u32..400];
    let depth = prop::sample::select(vec![16u32, 32, 64, 128, 256]);
    let ends = prop::sample::subsequence(
        vec![
            "-swapped",
            "-pingpong",
            "-persistent",
            "-promoted",
            "-dealt",
            "-cluster2x1",
            "-cluster1x4",
            "-cluster3x1",
            "-3stages",
            "-40stages",
        ],
        0..4,
    );
    (of_type, rows, columns, depth, ends)
        .prop_map(|(t, m, n, k, ends)| format!("wgmma-{t}-{m}x{n}x{k}{}", ends.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_are_plans_or_errors(name in name(), text in "\\PC{0,40}") {
        if let Ok(plan) = plan_named(&name) {
            let again = plan_named(&plan.name()).expect("its own name");
            prop_assert_eq!(again.name(), plan.name());
            prop_assert_eq!(again.anatomy(), plan.anatomy());
        }
        for name in [text.clone(), format!("wgmma-{text}"), format!("wgmma-bf16-{text}"), format!("{name}{text}")] {
            if let Err(error) = plan_named(&name) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// What is named is proven, for a problem whose sizes no tile divides, or has no room: of all names of a grid, every so many.
#[test]
fn unlisted_plans_are_proven() {
    let (mut proven, mut named) = (0, 0);
    let tiles = |swapped: bool| {
        let (rows, columns): (Vec<i64>, Vec<i64>) = if swapped {
            ((2..33).map(|n| 8 * n).collect(), vec![64, 128, 192])
        } else {
            (vec![64, 128, 192], (1..17).map(|n| 16 * n).collect())
        };
        itertools::iproduct!(rows, columns).collect::<Vec<_>>()
    };
    let ends = [
        "",
        "-persistent",
        "-cluster2x1",
        "-cluster1x2",
        "-persistent-cluster1x4",
    ];
    let types = [
        ("bf16", 64),
        ("e4m3", 256),
        ("tf32", 32),
        ("s8", 128),
        ("f16", 128),
    ];
    let mut at = 0;
    for swapped in [true, false] {
        for ((m, n), end, (of, k)) in itertools::iproduct!(tiles(swapped), ends, types) {
            at += 1;
            if at % 23 != 0 {
                continue;
            }
            let word = if swapped { "-swapped" } else { "" };
            let name = format!("wgmma-{of}-{m}x{n}x{k}{word}{end}");
            let plan = match plan_named(&name) {
                Ok(plan) => plan,
                Err(PlanError::Unsupported { .. }) => continue,
                Err(e) => panic!("{name}: {e}"),
            };
            named += 1;
            let operands: Operands = if at % 2 == 0 { "nt" } else { "nn" }
                .parse()
                .expect("transposes");
            let problem = Gemm::packed(304, 648, 656, operands);
            let made = plan
                .adapt(&problem, Schedule::default())
                .and_then(|plan| plan.emit(operands, Arch(90)));
            match made {
                Ok(_) => proven += 1,
                Err(
                    PlanError::SharedMemory { .. }
                    | PlanError::Unsupported { .. }
                    | PlanError::Refused(_),
                ) => {}
                Err(e) => panic!("{name}: {e}"),
            }
        }
    }
    assert!(named > 40 && proven > 3 * named / 4, "{proven} of {named}");
}

#[test]
fn impossible_names_say_what_would_work() {
    for (name, part) in [
        ("wgmma-bf16-128x300x64", "300 columns of its instructions"),
        ("wgmma-bf16-100x128x64", "take 64, 128 or 192"),
        ("wgmma-bf16-8x64x128-swapped", "take a multiple of 16"),
        ("wgmma-bf16-128x128x48", "take a k of 128 or 256 bytes"),
        (
            "wgmma-f16-128x128x65-6stages",
            "a stage of 130 bytes along k",
        ),
        (
            "wgmma-f64-128x128x16",
            "take f16, bf16, tf32, s8, e4m3 or e5m2",
        ),
        ("wgmma-bf16-192x256x64", "128 sums a thread"),
        ("wgmma-bf16-128x128x64-promoted", "take e4m3 or e5m2"),
        ("wgmma-bf16-128x128x64-cluster3x1", "take 2x1 or 1x2"),
        (
            "wgmma-bf16-128x128x64-persistent-dealt",
            "take it with a ping-pong schedule",
        ),
        ("wgmma-bf16-128x128x64-1stages", "take 2 to 32"),
    ] {
        let message = plan_named(name)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(message.contains(part), "{name}: {message}");
    }
    for name in [
        "wgmma-bf16-0x0x0",
        "wgmma-bf16-128x128",
        "wgmma-bf16-128x128x64-persistent-swapped",
        "wgmma-bf16-128x128x64-pingpong-persistent",
        "wgmma--128x128x64",
        "wgmma-bf16-128x128x99999999999999999999",
        "wgmma-bf16-0128x128x64",
        "wgmma-bf16-128x128x64-tma",
        "wgmma-bf16-128x128x64-tma-store",
    ] {
        assert_eq!(
            plan_named(name).err().map(|e| e.code()),
            Some("unknown_plan"),
            "{name}"
        );
    }
}
