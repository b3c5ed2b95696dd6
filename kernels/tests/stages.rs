//! Rings of any number of stages: their slots and phases are remainders and quotients by numbers that are not powers of two, and their plans have names.

use layout_codegen::Arch;
use tilewright_kernels::gemm::mma_sync::{MmaPlan, PLANS, WARPGROUP_PLANS};
use tilewright_kernels::gemm::registry::{plan_named, plans};
use tilewright_kernels::gemm::{Operands, Plan, PlanError};

/// Every plan with a number of stages is proven, or has no room for them.
fn prove(plans: &[MmaPlan], numbers: &[i64]) -> usize {
    let mut proven = 0;
    for plan in plans {
        for &stages in numbers {
            let plan = MmaPlan { stages, ..*plan };
            let operands = if stages % 2 == 0 { "nn" } else { "tt" };
            let operands: Operands = operands.parse().expect("transposes");
            match plan.emit(operands, Arch(plan.arch.max(80))) {
                Ok(_) => proven += 1,
                Err(PlanError::SharedMemory { .. }) => {}
                Err(e) => panic!("{}: {e}", plan.name()),
            }
        }
    }
    proven
}

#[test]
fn stages_of_warpgroups_are_proven() {
    let proven = prove(WARPGROUP_PLANS, &[3, 5, 6]);
    assert!(proven > 90, "{proven}");
}

#[test]
fn stages_of_warps_are_proven() {
    let proven = prove(PLANS, &[2, 5]);
    assert!(proven > 50, "{proven}");
}

#[test]
fn numbers_of_stages_are_in_names() {
    for name in [
        "wgmma-f16-128x128x64-5stages",
        "wgmma-bf16-128x256x64-persistent-cluster2x1-3stages",
        "mma-f16-128x128x32-sm75-3stages",
        "sgemm-128x128x16-4stages",
    ] {
        let plan = plan_named(name).expect("a plan");
        assert_eq!(plan.name(), name);
        let operands: Operands = "nn".parse().expect("transposes");
        // Both may be in one module.
        let entry = name.replace('-', "_");
        assert!(plan.entry_name(operands).starts_with(&entry), "{name}");
    }
    let listed: Vec<String> = plans().iter().map(|plan| plan.name()).collect();
    for plan in plans() {
        // A number is named where the same plan is listed with another one.
        let name = plan.name();
        if let Some((other, _)) = name.rsplit_once('-').filter(|_| name.ends_with("stages")) {
            assert!(listed.iter().any(|listed| listed == other), "{name}");
        }
        // Its own number is no other plan.
        let own = format!("{}-{}stages", plan.name(), plan.anatomy().stages);
        if let Ok(same) = plan_named(&own) {
            assert_eq!(same.name(), plan.name());
        }
    }
    for number in ["0", "1", "33", "99999999999999999999"] {
        let refused = plan_named(&format!("wgmma-f16-128x128x64-{number}stages"));
        let message = refused.err().map(|e| e.to_string()).unwrap_or_default();
        let parts = ["wgmma-f16-128x128x64", number, "take 2 to 32"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    for name in [
        "wgmma-f16-128x128x64--3stages",
        "wgmma-f16-128x128x64-+3stages",
        "wgmma-f16-128x128x64-6stages-6stages",
        "wgmma-tf32-256x128x32-swapped-persistent-3stages-3stages",
        "sgemm-maxas-128-3stages",
        "-3stages",
        "stages",
    ] {
        let code = plan_named(name).err().map(|e| e.code());
        assert_eq!(code, Some("unknown_plan"), "{name}");
    }
}
