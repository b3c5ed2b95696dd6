//! What the model takes from plans: the geometry of a block, its wavefronts and what it asks of the cache.

use tilewright_kernels::gemm::{Config, Operands, Schedule};
use tilewright_kernels::select::estimate;

use crate::{cube, h200, named};

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
        let anatomy = p;
        assert!(
            anatomy.registers(false, false).abs_diff(registers) <= 16,
            "{plan}: {} registers estimated, {registers} counted",
            anatomy.registers(false, false)
        );
        let e = estimate(&p, Schedule::default(), &cube(4096), &h200());
        assert_eq!(e.resident, resident, "{plan}");
    }
}

/// The model counts bytes / 128 wavefronts: that is what the proofs say of every copy and every read.
#[test]
fn tensor_core_plans_take_the_wavefronts_that_the_model_counts() {
    for plan in Config::table() {
        if plan.to_string().starts_with("sgemm") {
            continue;
        }
        for operands in Operands::ALL {
            let proof = plan.kernel().prove(operands).expect("every plan proves");
            let counted = proof
                .accesses
                .iter()
                .filter(|a| a.access.starts_with("copy") || a.access.starts_with("read"));
            for a in counted {
                assert_eq!(a.wavefronts, a.ideal, "{} {}", plan, a.access);
            }
        }
    }
}

#[test]
fn the_geometry_of_a_block_is_that_of_its_launch() {
    for plan in Config::table() {
        let problem = cube(1024);
        let launch = plan
            .specialize(&problem, Schedule::default())
            .and_then(|p| p.launch(&problem))
            .expect("aligned problems are served")
            .expect("there is something to launch");
        assert_eq!(launch.block, [plan.threads(), 1, 1], "{plan}");
        // Static shared memory (sgemm) is not part of a launch. Where columns of B come as whole panels, there may be fewer stages.
        if launch.shared_bytes > 0 {
            let of = |operands| plan.kernel().shared_bytes(operands).expect("a size");
            assert_eq!(launch.shared_bytes, of(problem.operands), "{plan}");
            let most = Operands::ALL.into_iter().map(of).max();
            assert_eq!(Some(plan.shared_bytes()), most, "{plan}");
        }
    }
}

/// What blocks share is asked for once: of a 128x256 tile B is two thirds of the bytes, A one third.
#[test]
fn a_cluster_asks_the_cache_for_less() {
    let l2 = |name: &str| {
        let plan = format!("wgmma-f16-{name}")
            .parse::<Config>()
            .expect("listed");
        let e = estimate(&plan, Schedule::default(), &cube(4096), &h200());
        e.demands.l2
    };
    for (alone, cluster, part) in [
        ("128x256x64", "128x256x64+cluster2x1", 2.0 / 3.0),
        (
            "128x256x64+persistent",
            "128x256x64+persistent+cluster1x2",
            5.0 / 6.0,
        ),
        ("128x128x64", "128x128x64+cluster2x1", 3.0 / 4.0),
        ("64x128x128", "64x128x128+cluster2x1", 2.0 / 3.0),
    ] {
        let found = l2(cluster) / l2(alone);
        assert!((found - part).abs() < 1e-9, "{cluster}: {found}");
    }
}
